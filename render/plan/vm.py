"""A `vm` in, its VirtualMachine, claims and cloud-init Secret out."""

from __future__ import annotations

from functools import cache

from render.catalog import Definition
from render.flux.api_kubevirt import AFFINITY, INSTANCE_SPEC, OWN_FIELDS, TOLERATION
from render.model.read import Check, Reader, compile_schema
from render.plan import paths
from render.plan.cloudinit import GuestData
from render.plan.context import Context, Header, Report, node_at
from render.plan.images import Images
from render.plan.part import Part
from render.plan.release import merge
from render.plan.sources import plain
from render.plan.vm_parts import CLOUD_INIT, MAIN, Devices, Disks, Networks, check_boot_order, check_size
from render.plan.workload import NAME_LABEL, PRUNE_OPT_OUT, Document, claim_spec
from render.plan.writing import Writer
from render.yaml.source import Mapping, Node, Scalar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from render.model.vm import Vm

INLINE = 2048
"""Bytes of user data, and of network data, that KubeVirt takes inline; more has to be in a Secret."""
SECRET_SUFFIX = "-cloud-init"  # noqa: S105 - a name, no secret
_UPDATE_FIELDS = frozenset(("cadence", "pin"))
"""Fields of `update` that a machine has a use for."""


@cache
def _check_of(name: str) -> Check:
    return compile_schema({"spec": INSTANCE_SPEC, "affinity": AFFINITY, "tolerations": TOLERATION}[name])


def check_machine(definition: Definition, report: Report) -> None:
    """Refuse what does not go with `kind: vm`, and `vm` without it."""
    service, root = definition.service, definition.root
    if service.kind != "vm":
        if service.vm is not None:
            report.error(
                "R220",
                root.key("vm"),
                "`vm` needs `kind: vm`",
                cause="a service is a container unless it says otherwise",
                hint="add `kind: vm`",
            )
        return
    if service.vm is None:
        report.error(
            "R220",
            root.get("kind"),
            f"the virtual machine `{service.name}` needs `vm`",
            cause="it says how much memory it has, and what it runs from",
            hint="add `vm: {memory: 2Gi}`",
        )
    chart = paths.find(root, ("source", "chart"))
    for label, node in (("source.chart", chart), ("workload", root.get("workload"))):
        if node is not None and not (isinstance(node, Scalar) and node.is_null):
            report.error(
                "R220",
                root.key("workload") if label == "workload" else node,
                f"`{label}` does not go with `kind: vm`",
                cause="a service is delivered in one way",
                hint=f"remove `{label}`, or `kind` and `vm`",
            )
    _check_update(report, root, "update")
    images = root.get("images")
    for key, image in images.entries if isinstance(images, Mapping) else ():
        _check_image(report, image, f"images.{key.text}")
        if isinstance(image, Mapping) and image.get("update") is not None:
            _check_update(report, image, f"images.{key.text}.update", with_cadence=False)
    _check_image(report, paths.find(root, ("source", "image")), "source.image")


def _check_update(report: Report, parent: Mapping, label: str, *, with_cadence: bool = True) -> None:
    update = parent.get("update")
    for key, _ in update.entries if isinstance(update, Mapping) else ():
        if key.text in _UPDATE_FIELDS and (with_cadence or key.text != "cadence"):
            continue
        report.error(
            "R220",
            key,
            f"`{label}.{key.text}` does not go with `kind: vm`",
            cause="a machine updates itself; its image is only what it begins with, and nothing moves it",
            hint="keep `cadence`, or `pin` to turn updates off" if with_cadence else "remove it",
        )


def _check_image(report: Report, image: Node | None, label: str) -> None:
    for key, _ in image.entries if isinstance(image, Mapping) else ():
        if key.text in ("at", "shape", "reach"):
            report.error(
                "R220",
                key,
                f"`{label}.{key.text}` does not go with `kind: vm`",
                cause="a disk of the machine names the image",
                hint="remove it",
            )


class Machine(Part):
    """Plans one virtual machine."""

    def __init__(
        self, context: Context, definition: Definition, header: Header, images: Images, report: Report
    ) -> None:
        super().__init__(context, definition, header, images, report)
        vm = definition.service.vm
        assert vm is not None
        self.vm: Vm = vm
        self.node: Any = definition.root.get("vm")

    def plan(self, writer: Writer) -> list[Document]:
        """Return the documents of vm.yaml; none after reporting."""
        devices = Devices()
        self._disks(writer, devices)
        Networks(self.report, self.node).plan(self.vm.networks, devices)
        check_boot_order(self.report, self.vm, self.node)
        self._check_hardware()
        self._check_eviction(devices)
        further = self._further()
        common = {
            "name": self.header.object_name,
            "namespace": self.header.namespace,
            "labels": {NAME_LABEL: self.header.name, **self.definition.service.labels},
            "annotations": self.definition.service.annotations or None,
        }
        documents = self._cloud_init(common, devices)
        if self.report.failed:
            return []
        kept = {**common, "annotations": {**PRUNE_OPT_OUT, **self.definition.service.annotations}}
        documents += [
            ("persistentvolumeclaim", {**kept, "name": name, "spec": claim_spec(spec)}) for name, spec in devices.claims
        ]
        machine = {
            **common,
            "runStrategy": self.vm.run_strategy,
            "dataVolumeTemplates": devices.data_volumes or None,
            "selector": {NAME_LABEL: self.header.name},
            "instance": self._instance(devices, further),
        }
        return [*documents, ("virtualmachine", machine)]

    # Its parts

    def _disks(self, writer: Writer, devices: Devices) -> None:
        plans = {plan.key or MAIN: plan for plan in self.images.plans}
        usable = {name: plan for name, plan in plans.items() if plan.is_read and plan.is_settled}
        broken = plans.keys() - usable.keys()
        disks = Disks(self.report, self.node, usable, writer.whole, self.header.object_name, self.header.namespace)
        listed = self.vm.disks
        if listed is None:
            self._root_disk(disks, usable, devices, is_broken=MAIN in broken)
        else:
            disks.plan(listed, devices, broken)
        for name, plan in usable.items():
            if name not in disks.used:
                self.report.error(
                    "R207",
                    plan.node,
                    f"`{plan.label}` stands nowhere in the output",
                    cause="no disk of the machine is made of it",
                    hint=f"name it in a disk: `image: {name}`",
                )

    def _root_disk(self, disks: Disks, usable: dict[str, Any], devices: Devices, *, is_broken: bool) -> None:
        """Make the disk of a machine that names none."""
        if MAIN in usable:
            disks.used.add(MAIN)
            devices.volumes.append({"name": "root", "containerDisk": {"image": disks.write(usable[MAIN])}})
            devices.disks.append({"name": "root", "disk": {"bus": "virtio"}})
        elif not is_broken:
            self.report.error(
                "R221",
                self.definition.root.key("vm"),
                "the machine has no disk",
                cause="without `vm.disks` it runs from `source.image`, and there is none",
                hint="add `source: {image: registry/name:tag}`, or `vm.disks`",
            )

    def _check_hardware(self) -> None:
        check_size(self.report, node_at(self.node, "memory"), "vm.memory", self.vm.memory)
        firmware = self.vm.firmware
        if firmware is not None and firmware.bootloader == "bios":
            for name, value in (("secureBoot", firmware.secure_boot), ("persistent", firmware.persistent)):
                if value:
                    self.report.error(
                        "R228",
                        node_at(self.node, "firmware", name),
                        f"`vm.firmware.{name}` needs UEFI",
                        cause="a BIOS has no variables, and verifies nothing",
                        hint="write `bootloader: efi`",
                    )
        for index, toleration in enumerate(self.vm.tolerations):
            self._read("tolerations", toleration, f"vm.tolerations[{index}]")
        if self.vm.affinity is not None:
            self._read("affinity", self.vm.affinity, "vm.affinity")

    def _check_eviction(self, devices: Devices) -> None:
        """Refuse what keeps a node from ever being drained."""
        if self.vm.eviction_strategy != "LiveMigrate":
            return
        pods = {network["name"] for network in devices.networks if "pod" in network}
        bridged = [index for index, one in enumerate(devices.interfaces) if one["name"] in pods and "bridge" in one]
        for index in bridged:
            self._refuse_eviction(
                node_at(self.node, "networks", index, "binding"),
                "a bridge to the pod's network",
                "bind it by `masquerade`",
            )
        for index, disk in enumerate(self.vm.disks or []):
            form = "claim" if disk.claim is not None else "dataVolume"
            given = plain(paths.find(self.node, ("disks", index, form, "accessModes")))
            modes = given or (["ReadWriteOnce"] if disk.claim is not None else [])
            if modes and "ReadWriteMany" not in modes:
                self._refuse_eviction(
                    node_at(self.node, "disks", index, form, "accessModes"),
                    f"the disk `{disk.name}`, which one node mounts at a time,",
                    "use `accessModes: [ReadWriteMany]`",
                )

    def _refuse_eviction(self, node: Node | None, what: str, hint: str) -> None:
        self.report.error(
            "R227",
            node,
            f"{what} cannot migrate, and `evictionStrategy` says that it must",
            cause="the node could never be drained: Kubernetes asks again and again, and KubeVirt refuses",
            hint=f"{hint}, or write `evictionStrategy: LiveMigrateIfPossible`",
        )

    def _read(self, form: str, node: Any, label: str) -> bool:
        before = len(self.report.items)
        Reader(self.report.source, self.report.items).read(_check_of(form), node, label)
        self.report.failed = self.report.failed or len(self.report.items) > before
        return len(self.report.items) == before

    def _further(self) -> Any:
        """Return `vm.spec`; None without one, and after reporting."""
        if self.vm.spec is None:
            return None
        owned = False
        for path, own in OWN_FIELDS.items():
            found = node_at(self.vm.spec, *path[:-1])
            if paths.find(self.vm.spec, path) is None or not isinstance(found, Mapping):
                continue
            owned = True
            self.report.error(
                "R226",
                found.key(path[-1]),
                f"`vm.spec.{paths.show(path)}` is not set here",
                cause="the machine has a field of its own for it",
                hint=f"write `{own}`",
            )
        if owned or not self._read("spec", self.vm.spec, "vm.spec"):
            return None
        return self.vm.spec

    def _cloud_init(self, common: dict[str, Any], devices: Devices) -> list[Document]:
        """Add the disk that cloud-init reads; returns the Secret where one is needed."""
        service = self.definition.service
        data = GuestData(self.report, self.node, self.vm, service.update, self.definition.root.get("update"))
        user = data.user_data(self.context.platform.defaults.interval)
        network = data.network_data()
        given = self.vm.cloud_init.secret_ref if self.vm.cloud_init is not None else None
        source: dict[str, Any] = {}
        held: dict[str, str] = {}
        secret = common["name"] + SECRET_SUFFIX
        if given is not None:
            source["secretRef"] = {"name": given.name}
        elif user is not None and self._is_inline(user):
            source["userData"] = user
        elif user is not None:
            source["secretRef"], held["userdata"] = {"name": secret}, user
        if network is not None and self._is_inline(network):
            source["networkData"] = network
        elif network is not None:
            source["networkDataSecretRef"], held["networkdata"] = {"name": secret}, network
        if source:
            devices.volumes.append({"name": CLOUD_INIT, "cloudInitNoCloud": source})
            devices.disks.append({"name": CLOUD_INIT, "disk": {"bus": "virtio"}})
        return [("secret", {**common, "name": secret, "stringData": held})] if held else []

    def _is_inline(self, text: str) -> bool:
        """Whether KubeVirt takes a text inline, whatever postBuild makes of it."""
        varies = self.context.platform.defaults.substitute is not None and "${" in text
        return len(text.encode()) <= INLINE and not varies

    def _instance(self, devices: Devices, further: Any) -> Any:
        vm = self.vm
        cpu = vm.cpu
        firmware = vm.firmware
        made_of: dict[str, Any] = {
            "disks": devices.disks or None,
            "interfaces": devices.interfaces or None,
            "autoattachPodInterface": None if devices.interfaces else False,
        }
        domain = {
            "cpu": cpu and {"cores": cpu.cores, "sockets": cpu.sockets, "threads": cpu.threads, "model": cpu.model},
            "memory": {"guest": vm.memory},
            "machine": vm.machine and {"type": vm.machine},
            "firmware": firmware and {"bootloader": self._bootloader()},
            # Secure boot rests on the system management mode of the processor.
            "features": {"smm": {"enabled": True}} if firmware and firmware.secure_boot else None,
            "devices": made_of,
        }
        spec = {
            "architecture": vm.architecture,
            "hostname": vm.hostname,
            "evictionStrategy": vm.eviction_strategy,
            "terminationGracePeriodSeconds": vm.termination_grace_period_seconds,
            "priorityClassName": vm.priority_class_name,
            "nodeSelector": dict(vm.node_selector) or None,
            "affinity": vm.affinity,
            "tolerations": list(vm.tolerations) or None,
            "domain": {key: value for key, value in domain.items() if value is not None},
            "networks": devices.networks or None,
            "volumes": devices.volumes,
        }
        whole = {key: value for key, value in spec.items() if value is not None}
        return whole if further is None else merge(whole, further)

    def _bootloader(self) -> dict[str, Any]:
        firmware = self.vm.firmware
        assert firmware is not None
        if firmware.bootloader == "bios":
            return {"bios": {}}
        # KubeVirt's default is secure boot, which most images cannot do without more.
        return {"efi": {"secureBoot": bool(firmware.secure_boot), "persistent": firmware.persistent}}
