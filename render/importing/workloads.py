"""A Deployment or StatefulSet with its Service and claims in, the `workload` that renders them out.

Only what a `workload` can say is one; anything more, and the objects are extra objects of the service.
"""

from __future__ import annotations

from typing import Any

from render.importing.convert import without
from render.importing.reading import Found
from render.plan.podparts import VOLUME_SOURCES
from render.plan.sources import plain
from render.plan.workload import NAME_LABEL, PROGRESS_DEADLINE, PRUNE_OPT_OUT
from render.yaml.source import Mapping, Node, Scalar, Sequence


class _OtherError(Exception):
    """The objects say more than a workload can."""


def workload_of(main: Found, others: list[Found], service: str) -> tuple[dict[str, Any], list[Found]] | None:
    """Return the `workload` of an object, and which of the others belong to it; None when it says more than that."""
    try:
        return _Inverse(main, others, service).run()
    except _OtherError:
        return None


def image_of(main: Found) -> Scalar | None:
    """Return the image of a workload with one container."""
    containers = main.get("spec", "template", "spec", "containers")
    if type(containers) is not Sequence or len(containers.items) != 1 or type(containers.items[0]) is not Mapping:
        return None
    image = containers.items[0].get("image")
    return image if type(image) is Scalar and image.is_string else None


class _Inverse:
    def __init__(self, main: Found, others: list[Found], service: str) -> None:
        self.main = main
        self.others = others
        self.service = service
        self.made: dict[str, Any] = {}
        self.used: list[Found] = []

    def run(self) -> tuple[dict[str, Any], list[Found]]:
        main = self.main
        is_stateful = main.kind == "StatefulSet"
        selector = {NAME_LABEL: self.service}
        spec = _mapping(main.root.get("spec"))
        self._only(_mapping(main.root.get("metadata")), "name", "namespace", "labels", "annotations")
        known = ["strategy", "progressDeadlineSeconds"]
        if is_stateful:
            known = ["serviceName", "updateStrategy", "volumeClaimTemplates"]
        self._only(spec, "replicas", "selector", "template", *known)
        self._equal(plain(spec.get("selector")), {"matchLabels": selector})
        template = _mapping(spec.get("template"))
        self._only(template, "metadata", "spec")
        self._equal(plain(template.get("metadata")), {"labels": selector})
        if (plain(main.get("metadata", "labels")) or {}).get(NAME_LABEL) != self.service:
            raise _OtherError
        if is_stateful:
            self._equal(spec.text("serviceName"), main.name)
        elif spec.get("progressDeadlineSeconds") is not None:
            self._equal(plain(spec.get("progressDeadlineSeconds")), PROGRESS_DEADLINE)
        replicas = spec.get("replicas")
        if replicas is None:
            raise _OtherError
        if plain(replicas) != 1:
            self.made["replicas"] = replicas
        strategy = spec.get("updateStrategy" if is_stateful else "strategy")
        self._set("strategy", strategy)
        pod = _mapping(template.get("spec"))
        self._only(pod, "serviceAccountName", "securityContext", "containers", "volumes")
        self._set("serviceAccountName", pod.get("serviceAccountName"))
        self._set("podSecurityContext", pod.get("securityContext"))
        containers = pod.get("containers")
        if type(containers) is not Sequence or len(containers.items) != 1:
            raise _OtherError
        self._container(_mapping(containers.items[0]))
        self._volumes(_mapping(containers.items[0]), pod, spec)
        return self.made, self.used

    def _set(self, name: str, value: Node | None) -> None:
        if value is not None:
            self.made[name] = value

    def _container(self, container: Mapping) -> None:
        self._only(
            container,
            *("name", "image", "command", "args", "env", "envFrom", "ports", "startupProbe", "readinessProbe"),
            *("livenessProbe", "resources", "volumeMounts", "securityContext"),
        )
        self._equal(container.text("name"), self.service)
        for name in ("command", "args", "envFrom", "resources", "securityContext"):
            self._set(name, container.get(name))
        probes = {
            name: probe
            for name in ("readiness", "liveness", "startup")
            if (probe := container.get(f"{name}Probe")) is not None
        }
        if probes:
            self.made["probes"] = probes
        env: dict[str, Any] = {}
        for item in _items(container.get("env")):
            self._only(item, "name", "value", "valueFrom")
            variable = item.text("name")
            value, origin = item.get("value"), item.get("valueFrom")
            if variable is None or variable in env or (value is None) == (origin is None):
                raise _OtherError
            if value is not None and not (type(value) is Scalar and value.is_string):
                raise _OtherError
            env[variable] = value if origin is None else {"valueFrom": origin}
        if env:
            self.made["env"] = env
        self._ports(container)

    def _ports(self, container: Mapping) -> None:
        ports = _items(container.get("ports"))
        service = next((one for one in self.others if one.kind == "Service" and one.name == self.main.name), None)
        if not ports and service is None:
            return
        if service is None or not ports or service.namespace != self.main.namespace:
            raise _OtherError
        spec = _mapping(service.root.get("spec"))
        self._only(spec, "type", "selector", "ports")
        self._equal(plain(spec.get("selector")), {NAME_LABEL: self.service})
        self._equal(plain(service.get("metadata", "labels")), plain(self.main.get("metadata", "labels")))
        offered = _items(spec.get("ports"))
        if len(offered) != len(ports):
            raise _OtherError
        made = []
        for port, outside in zip(ports, offered, strict=True):
            self._only(port, "name", "containerPort", "protocol")
            self._only(outside, "name", "port", "targetPort", "protocol")
            name = port.text("name")
            self._equal((outside.text("name"), outside.text("targetPort")), (name, name))
            self._equal(port.text("protocol") or "TCP", outside.text("protocol") or "TCP")
            one: dict[str, Any] = {"name": name, "containerPort": port.get("containerPort")}
            if plain(outside.get("port")) != plain(port.get("containerPort")):
                one["port"] = outside.get("port")
            if (port.text("protocol") or "TCP") != "TCP":
                one["protocol"] = port.text("protocol")
            made.append(one)
        self.made["ports"] = made
        own = plain(self.main.get("metadata", "annotations")) or {}
        annotations = {
            k: v for k, v in (plain(service.get("metadata", "annotations")) or {}).items() if own.get(k) != v
        }
        options = {"type": spec.text("type"), "annotations": annotations or None}
        if any(options.values()):
            self.made["service"] = options
        self.used.append(service)

    def _volumes(self, container: Mapping, pod: Mapping, spec: Mapping) -> None:
        volumes = {item.text("name"): item for item in _items(pod.get("volumes"))}
        templates = {
            _mapping(item.get("metadata")).text("name"): item for item in _items(spec.get("volumeClaimTemplates"))
        }
        made, seen = [], set()
        for mount in _items(container.get("volumeMounts")):
            self._only(mount, "name", "mountPath", "subPath", "readOnly")
            name = mount.text("name")
            if name in seen or name is None:
                raise _OtherError
            seen.add(name)
            one: dict[str, Any] = {key.text: value for key, value in mount.entries}
            if name in templates:
                self._only(templates[name], "metadata", "spec")
                one["claimTemplate"] = _claim(_mapping(templates[name].get("spec")))
            elif name in volumes:
                one |= self._source(name, volumes[name])
            else:
                raise _OtherError
            made.append(one)
        if set(volumes) | set(templates) != seen:
            raise _OtherError
        if made:
            self.made["volumes"] = made

    def _source(self, name: str, volume: Mapping) -> dict[str, Any]:
        self._only(volume, "name", *VOLUME_SOURCES, "persistentVolumeClaim")
        (source,) = [(key.text, value) for key, value in volume.entries if key.text != "name"]
        if source[0] != "persistentVolumeClaim":
            return {source[0]: source[1]}
        reference = _mapping(source[1])
        self._only(reference, "claimName")
        claim = reference.text("claimName") or ""
        found = next((one for one in self.others if one.kind == "PersistentVolumeClaim" and one.name == claim), None)
        if found is None or claim != f"{self.main.name}-{name}":
            return {"existingClaim": claim}
        annotations = plain(found.get("metadata", "annotations")) or {}
        own = plain(self.main.get("metadata", "annotations")) or {}
        self._equal(annotations, {**PRUNE_OPT_OUT, **own})
        self._equal(plain(found.get("metadata", "labels")), plain(self.main.get("metadata", "labels")))
        self.used.append(found)
        return {"claim": _claim(_mapping(found.get("spec")))}

    def _only(self, node: Mapping, *names: str) -> None:
        if {key.text for key, _ in node.entries} - set(names):
            raise _OtherError

    def _equal(self, one: object, other: object) -> None:
        if one != other:
            raise _OtherError


def _claim(spec: Mapping) -> Mapping:
    return without(spec, "accessModes") if plain(spec.get("accessModes")) == ["ReadWriteOnce"] else spec


def _mapping(node: Node | None) -> Mapping:
    if type(node) is not Mapping:
        raise _OtherError
    return node


def _items(node: Node | None) -> list[Mapping]:
    if node is None or (type(node) is Scalar and node.is_null):
        return []
    if type(node) is not Sequence:
        raise _OtherError
    return [_mapping(item) for item in node.items]
