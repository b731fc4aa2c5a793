"""A machine's disks and networks in, the devices, volumes and networks of a VirtualMachineInstance out."""

from __future__ import annotations

from collections.abc import Callable, Set

from render.flux.api_core import CORE
from render.flux.api_kubevirt import VOLUMES
from render.flux.image import Reference
from render.model.read import Reader, compile_schema, snake_case
from render.plan import paths
from render.plan.context import Report, node_at
from render.structs import field, struct
from render.yaml.source import Mapping, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from render.model.vm import DataVolume, Vm, VmDisk, VmNetwork
    from render.plan.images import ImagePlan

MAIN = "main"
"""How a disk names the image of `source.image`."""
CLOUD_INIT = "cloud-init"
"""Name of the disk that cloud-init reads."""
SOURCES = ("image", "dataVolume", "claim", "existingClaim", "existingDataVolume", "emptyDisk", "volume")
"""What a disk may be."""
CONTENTS = ("registry", "http", "pvc", "blank")
"""What a DataVolume may be filled from."""
_BUS = {"disk": "virtio", "cdrom": "sata", "lun": "scsi"}
_LASTING = ("dataVolume", "claim", "existingClaim", "existingDataVolume")
_UNITS: dict[str, int] = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15, "E": 10**18} | {
    f"{unit}i": 2 ** (10 * power) for power, unit in enumerate("KMGTPE", 1)
}
SMALLEST = 2**20
"""Bytes below which a size is a slip, such as a forgotten unit."""


def size_of(quantity: str) -> int:
    """Return the bytes of a quantity, rounded down."""
    unit = quantity.lstrip("0123456789.")
    whole, _, fraction = quantity.removesuffix(unit).partition(".")
    scale: int = 10 ** len(fraction)
    return int(whole + fraction) * _UNITS[unit] // scale


def check_size(report: Report, node: Node | None, label: str, quantity: str | None) -> None:
    """Refuse a size of less than a megabyte."""
    if quantity is None or size_of(quantity) >= SMALLEST:
        return
    report.error(
        "R228",
        node,
        f"`{label}` is {size_of(quantity)} bytes",
        cause="a number without a unit is one of bytes, and so few are hardly meant",
        hint=f"write `{quantity}Mi` or `{quantity}Gi`" if quantity.isdigit() else "write a size such as `2Gi`",
    )


@struct()
class Devices:
    """What disks and networks render to."""

    disks: list[dict[str, Any]] = field(default_factory=list)
    interfaces: list[dict[str, Any]] = field(default_factory=list)
    volumes: list[dict[str, Any]] = field(default_factory=list)
    networks: list[dict[str, Any]] = field(default_factory=list)
    data_volumes: list[dict[str, Any]] = field(default_factory=list)
    """`dataVolumeTemplates`."""
    claims: list[tuple[str, Any]] = field(default_factory=list)
    """Name and spec of each claim that is rendered."""


class Disks:
    """Plans the disks."""

    def __init__(
        self,
        report: Report,
        node: Node | None,
        images: dict[str, ImagePlan],
        write: Callable[[ImagePlan], Any],
        name: str,
        namespace: str,
    ) -> None:
        self.report = report
        self.node = node
        """The mapping of `vm`."""
        self.images = images
        """By their names under `images`, and `main`."""
        self.write = write
        """Returns an image as it is written."""
        self.name = name
        self.namespace = namespace
        self.used: set[str] = set()
        """Names of the images that a disk names."""

    def plan(self, disks: list[VmDisk], made: Devices, broken: Set[str]) -> None:
        """Add the disks; what is wrong with one is reported, unless it is a `broken` image, which was."""
        for index, disk in enumerate(disks):
            self._check_name(index, disk, disks)
            registry = disk.data_volume.registry if disk.data_volume is not None else None
            images = {name for name in (disk.image, registry and registry.image) if name}
            self.used |= images
            if images & broken:
                continue
            given = [name for name in SOURCES if getattr(disk, snake_case(name)) is not None]
            if len(given) != 1:
                self._refuse_sources(index, disk, given)
                continue
            self._check_form(index, disk, given[0])
            volume = self._volume(index, disk, given[0], made)
            if volume is not None:
                made.volumes.append({"name": disk.name, **volume})
            made.disks.append(_disk(disk))

    def _at(self, index: int, *path: str | int) -> Node | None:
        return node_at(self.node, "disks", index, *path)

    def _check_name(self, index: int, disk: VmDisk, disks: list[VmDisk]) -> None:
        names = [one.name for one in disks]
        first = names.index(disk.name)
        if disk.name == CLOUD_INIT:
            self._refuse(
                self._at(index, "name"),
                f"`{CLOUD_INIT}` is no name for a disk",
                "it is the disk that cloud-init reads",
                "take another name",
            )
        elif first < index:
            self.report.error(
                "R221",
                self._at(index, "name"),
                f"two disks have the name `{disk.name}`",
                cause="KubeVirt refuses the whole object",
                hint="rename one of them",
                related=((self.report.source.place(self._at(first, "name")), "the other one"),),
            )

    def _refuse_sources(self, index: int, disk: VmDisk, given: list[str]) -> None:
        told = " and ".join(f"`{name}`" for name in given) or "none"
        self.report.error(
            "R221",
            self._at(index, *given[1:2]),
            f"the disk `{disk.name}` must have exactly one source, and has {told}",
            cause=f"a disk is one of {', '.join(f'`{name}`' for name in SOURCES)}",
            hint="keep one of them" if given else "add the one it is, such as `image: main`",
        )

    def _check_form(self, index: int, disk: VmDisk, source: str) -> None:
        if disk.pull_secret is not None and source != "image":
            node = self._at(index, "pullSecret")
            cause = "a DataVolume takes its credentials by `registry.secretRef`, and other disks pull nothing"
            self._refuse(node, "`pullSecret` belongs to a containerDisk", cause, "remove it")
        if disk.type == "lun" and source not in _LASTING:
            self._refuse(
                self._at(index, "type"),
                f"the disk `{disk.name}` cannot be a `lun`",
                "KubeVirt passes on SCSI commands only to claims and DataVolumes",
                "write `type: disk`",
            )
        if disk.type == "cdrom" and disk.bus == "virtio":
            self._refuse(
                self._at(index, "bus"),
                f"the drive `{disk.name}` cannot be attached by `virtio`",
                "there are no virtio drives for discs",
                "write `sata`, or remove `bus`",
            )

    def _volume(self, index: int, disk: VmDisk, source: str, made: Devices) -> dict[str, Any] | None:
        """Return the source of a volume; None after reporting."""
        if disk.image is not None:
            plan = self._image(index, disk.image, "image")
            if plan is None:
                return None
            return {"containerDisk": {"image": self.write(plan), "imagePullSecret": disk.pull_secret}}
        if disk.data_volume is not None:
            return self._data_volume(index, disk, disk.data_volume, made)
        if disk.claim is not None:
            return self._claim(index, disk, made)
        if disk.existing_claim is not None:
            return {"persistentVolumeClaim": {"claimName": disk.existing_claim}}
        if disk.existing_data_volume is not None:
            return {"dataVolume": {"name": disk.existing_data_volume}}
        if disk.empty_disk is not None:
            check_size(self.report, self._at(index, source), f"vm.disks[{index}].emptyDisk", disk.empty_disk)
            return {"emptyDisk": {"capacity": disk.empty_disk}}
        return self._other(index, disk)

    def _image(self, index: int, name: str, *path: str) -> ImagePlan | None:
        plan = self.images.get(name)
        if plan is not None:
            return plan
        known = ", ".join(f"`{one}`" for one in self.images) or "none"
        where = self._at(index, *path)
        if name == MAIN:
            hint = "add `source: {image: registry/name:tag}`"
        else:
            hint = "add it under `images`, or write `main` for `source.image`"
        self._refuse(where, f"there is no image `{name}`", f"the service's images are {known}", hint)
        return None

    def _claim(self, index: int, disk: VmDisk, made: Devices) -> dict[str, Any] | None:
        node = paths.find(self.node, ("disks", index, "claim"))
        assert node is not None
        before = len(self.report.items)
        check = compile_schema(CORE["PersistentVolumeClaimSpec"])
        Reader(self.report.source, self.report.items).read(check, node, f"vm.disks[{index}].claim")
        if len(self.report.items) > before:
            self.report.failed = True
            return None
        if paths.find(node, ("resources", "requests", "storage")) is None:
            self.report.error(
                "R405",
                node,
                f"`vm.disks[{index}].claim` needs `resources.requests.storage`",
                cause="Kubernetes refuses a claim without a size",
                hint="add `resources: {requests: {storage: 1Gi}}`",
            )
            return None
        name = f"{self.name}-{disk.name}"
        made.claims.append((name, disk.claim))
        return {"persistentVolumeClaim": {"claimName": name}}

    def _other(self, index: int, disk: VmDisk) -> dict[str, Any] | None:
        node: Any = disk.volume
        named = [key for key, _ in node.entries]
        if len(named) == 1 and named[0].text in VOLUMES:
            return {named[0].text: node.get(named[0].text)}
        wrong = next((key for key in named if key.text not in VOLUMES), None)
        self._refuse(
            wrong or (named[1] if named else self._at(index, "volume")),
            f"the `volume` of the disk `{disk.name}` must be one source that has no field of its own",
            f"these are {', '.join(f'`{name}`' for name in VOLUMES)}",
            "write one of them",
        )
        return None

    def _data_volume(self, index: int, disk: VmDisk, volume: DataVolume, made: Devices) -> dict[str, Any] | None:
        label = f"vm.disks[{index}].dataVolume"
        check_size(self.report, self._at(index, "dataVolume", "size"), f"{label}.size", volume.size)
        given = [name for name in CONTENTS if getattr(volume, name) not in (None, False)]
        if len(given) != 1:
            told = " and ".join(f"`{name}`" for name in given) or "none"
            self._refuse(
                self._at(index, "dataVolume", *given[1:2]),
                f"the DataVolume of `{disk.name}` must have exactly one source, and has {told}",
                f"it is filled from one of {', '.join(f'`{name}`' for name in CONTENTS)}",
                "keep one of them" if given else "add one, such as `blank: true`",
            )
            return None
        source = self._content(index, volume)
        if source is None:
            return None
        name = f"{self.name}-{disk.name}"
        storage = {
            "accessModes": list(volume.access_modes) if volume.access_modes else None,
            "volumeMode": volume.volume_mode,
            "storageClassName": volume.storage_class_name,
            "resources": {"requests": {"storage": volume.size}},
        }
        made.data_volumes.append({"metadata": {"name": name}, "spec": {"source": source, "storage": storage}})
        return {"dataVolume": {"name": name}}

    def _content(self, index: int, volume: DataVolume) -> dict[str, Any] | None:
        if volume.registry is not None:
            given = volume.registry
            plan = self._image(index, given.image, "dataVolume", "registry", "image")
            if plan is None:
                return None
            plan.shape = "dataVolume"
            registry = {
                "url": f"docker://{_importable(plan.effective)}",
                "pullMethod": given.pull_method,
                "secretRef": given.secret_ref,
                "certConfigMap": given.cert_config_map,
            }
            return {"registry": registry}
        if volume.http is not None:
            http = volume.http
            return {"http": {"url": http.url, "secretRef": http.secret_ref, "certConfigMap": http.cert_config_map}}
        if volume.pvc is not None:
            return {"pvc": {"name": volume.pvc.name, "namespace": volume.pvc.namespace or self.namespace}}
        return {"blank": {}}

    def _refuse(self, node: Node | None, message: str, cause: str, hint: str) -> None:
        self.report.error("R221", node, message, cause=cause, hint=hint)


def _importable(text: str) -> str:
    """Return a reference as CDI's importer takes it, which refuses a tag beside a digest."""
    reference = Reference.parse(text)
    return str(Reference(reference.name, None, reference.digest)) if reference.digest is not None else text


def _disk(disk: VmDisk) -> dict[str, Any]:
    target = {"bus": disk.bus or _BUS[disk.type], "readonly": disk.read_only}
    return {"name": disk.name, disk.type: target, "bootOrder": disk.boot_order, "serial": disk.serial}


class Networks:
    """Plans the networks."""

    def __init__(self, report: Report, node: Node | None) -> None:
        self.report = report
        self.node = node
        """The mapping of `vm`."""

    def plan(self, networks: list[VmNetwork] | None, made: Devices) -> None:
        """Add the networks and their interfaces; what is wrong with one is reported."""
        if networks is None:
            made.networks.append({"name": "default", "pod": {}})
            made.interfaces.append({"name": "default", "masquerade": {}})
            return
        pods = [index for index, one in enumerate(networks) if one.multus is None]
        for index, network in enumerate(networks):
            self._differ(index, "name", [one.name for one in networks])
            self._differ(index, "macAddress", [(one.mac_address or "").lower() for one in networks])
            binding = network.binding or ("bridge" if network.multus else "masquerade")
            self._check(index, network, binding, pods)
            made.networks.append(
                {"name": network.name, "multus": {"networkName": network.multus}}
                if network.multus
                else {"name": network.name, "pod": {}}
            )
            ports = [{"name": one.name, "port": one.port, "protocol": one.protocol} for one in network.ports]
            made.interfaces.append(
                {
                    "name": network.name,
                    binding: {},
                    "macAddress": network.mac_address,
                    "model": network.model,
                    "bootOrder": network.boot_order,
                    "ports": ports or None,
                }
            )

    def _check(self, index: int, network: VmNetwork, binding: str, pods: list[int]) -> None:
        is_pod = network.multus is None
        if is_pod and index != pods[0]:
            self._refuse(
                index,
                (),
                f"the network `{network.name}` is a second one of the pod",
                "a pod has one network of its own",
                "name a NetworkAttachmentDefinition with `multus`, or remove it",
            )
        allowed = ("masquerade", "bridge") if is_pod else ("bridge", "sriov")
        if binding not in allowed:
            whose = "the pod's network" if is_pod else "a network of Multus"
            self._refuse(
                index,
                ("binding",),
                f"`{binding}` does not bind {whose}",
                "KubeVirt refuses the whole object",
                f"write `{allowed[0]}` or `{allowed[1]}`",
            )
        if network.ports and binding != "masquerade":
            self._refuse(
                index,
                ("ports",),
                f"the network `{network.name}` forwards no ports",
                "only `masquerade` does; in others all ports reach the guest",
                "remove `ports`",
            )
        taken: set[str] = set()
        for number, port in enumerate(network.ports):
            shown = [f"{port.port}/{port.protocol}", *([f"`{port.name}`"] if port.name else [])]
            told = next((one for one in shown if one in taken), None)
            if told is not None:
                self._refuse(
                    index,
                    ("ports", number),
                    f"the port {told} is there twice",
                    "KubeVirt refuses the whole object",
                    "remove one of them",
                )
            taken.update(shown)

    def _differ(self, index: int, field: str, values: list[str]) -> None:
        first = values.index(values[index])
        if values[index] and first < index:
            what = "name" if field == "name" else "MAC address"
            self.report.error(
                "R222",
                node_at(self.node, "networks", index, field),
                f"two networks have the {what} `{values[index]}`",
                cause="KubeVirt refuses the whole object",
                hint="give each its own",
                related=((self.report.source.place(node_at(self.node, "networks", first, field)), "the other one"),),
            )

    def _refuse(self, index: int, path: tuple[str | int, ...], message: str, cause: str, hint: str) -> None:
        self.report.error("R222", node_at(self.node, "networks", index, *path), message, cause=cause, hint=hint)


def check_boot_order(report: Report, vm: Vm, node: Mapping) -> None:
    """Refuse a place in the order of booting that is taken."""
    taken: dict[int, Node | None] = {}
    orders = {
        "disks": [disk.boot_order for disk in vm.disks or []],
        "networks": [network.boot_order for network in vm.networks or []],
    }
    for listed, places in orders.items():
        for index, place in enumerate(places):
            if place is None:
                continue
            here = node_at(node, listed, index, "bootOrder")
            if place in taken:
                report.error(
                    "R221",
                    here,
                    f"the place {place} in the order of booting is taken",
                    cause="KubeVirt refuses the whole object",
                    hint="give each its own",
                    related=((report.source.place(taken[place]), "taken here"),),
                )
            taken.setdefault(place, here)
