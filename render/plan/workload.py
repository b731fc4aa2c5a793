"""A service without a chart in, its Deployment or StatefulSet, Service and claims out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from render.catalog import Definition
from render.plan import paths
from render.plan.context import Context, Header, Report, node_at
from render.plan.images import Images
from render.plan.writing import Writer
from render.yaml.source import Mapping, Node, Scalar

if TYPE_CHECKING:
    from render.model.service import Volume, Workload

Document = tuple[str, dict[str, Any]]
"""A template's name and what it is given."""

NAME_LABEL = "app.kubernetes.io/name"
PROGRESS_DEADLINE = 600
"""Seconds after which Kubernetes calls a rollout failed; its own default, written down because the gate rests on it."""

_SOURCES = ("empty_dir", "config_map", "secret", "host_path", "nfs", "existing_claim", "claim", "claim_template")
_YAML_NAMES = {
    "empty_dir": "emptyDir",
    "config_map": "configMap",
    "host_path": "hostPath",
    "existing_claim": "existingClaim",
    "claim_template": "claimTemplate",
}


class Plain:
    """Plans one plain workload."""

    def __init__(
        self, context: Context, definition: Definition, header: Header, images: Images, report: Report
    ) -> None:
        self.context = context
        self.definition = definition
        self.header = header
        self.images = images
        self.report = report
        workload = definition.service.workload
        assert workload is not None
        self.workload: Workload = workload
        self.node = definition.root.get("workload")

    def plan(self, writer: Writer, *, rollback: bool) -> list[Document]:
        """Return the documents of workload.yaml; none after reporting."""
        service = self.definition.service
        main = next((plan for plan in self.images.plans if plan.shape == "container"), None)
        if main is None:
            if not self.report.failed:
                self.report.error(
                    "R207",
                    self.definition.root.key("workload"),
                    "a workload needs `source.image`",
                    cause="it is what the container runs",
                    hint="add `source: {image: registry/name:tag}`",
                )
            return []
        volumes = [self._volume(index, volume) for index, volume in enumerate(self.workload.volumes)]
        is_stateful = any(volume.claim_template is not None for volume in self.workload.volumes)
        if rollback:
            self._check_rollback(is_stateful=is_stateful)
        if self.report.failed:
            return []
        labels = {NAME_LABEL: service.name, **service.labels}
        name, namespace = self.header.object_name, self.header.namespace
        common = {"name": name, "namespace": namespace, "labels": labels, "annotations": service.annotations or None}
        pod = self._pod(writer.whole(main), [volume for volume in volumes if volume])
        documents: list[Document] = []
        selector = {NAME_LABEL: service.name}
        if is_stateful:
            documents.append(("statefulset", {**common, **self._stateful(selector, pod)}))
        else:
            deployment = {
                "replicas": self._replicas(),
                "progressDeadlineSeconds": PROGRESS_DEADLINE if rollback else None,
                "strategy": self.workload.strategy,
                "selector": selector,
                "pod": pod,
            }
            documents.append(("deployment", {**common, **deployment}))
        if self.workload.ports:
            documents.append(self._service(common, selector))
        documents += [
            ("persistentvolumeclaim", {**common, "name": f"{name}-{volume.name}", "spec": _claim(volume.claim)})
            for volume in self.workload.volumes
            if volume.claim is not None
        ]
        return documents

    def _replicas(self) -> int:
        return 1 if self.workload.replicas is None else self.workload.replicas

    def _stateful(self, selector: dict[str, str], pod: dict[str, Any]) -> dict[str, Any]:
        templates = [
            {"metadata": {"name": volume.name}, "spec": _claim(volume.claim_template)}
            for volume in self.workload.volumes
            if volume.claim_template is not None
        ]
        return {
            "replicas": self._replicas(),
            "serviceName": self.header.object_name,
            "updateStrategy": self.workload.strategy,
            "selector": selector,
            "pod": pod,
            "volumeClaimTemplates": templates,
        }

    def _pod(self, image: Any, volumes: list[dict[str, Any]]) -> dict[str, Any]:
        workload = self.workload
        probes = workload.probes
        container = {
            "name": self.definition.service.name,
            "image": image,
            "command": workload.command,
            "args": workload.args,
            "env": [self._variable(name, value) for name, value in workload.env.items()] or None,
            "envFrom": workload.env_from or None,
            "ports": [
                {"name": port.name, "containerPort": port.container_port, "protocol": port.protocol}
                for port in workload.ports
            ]
            or None,
            "startupProbe": probes and probes.startup,
            "readinessProbe": probes and probes.readiness,
            "livenessProbe": probes and probes.liveness,
            "resources": workload.resources,
            "volumeMounts": [self._mount(volume) for volume in workload.volumes] or None,
            "securityContext": workload.security_context,
        }
        return {
            "serviceAccountName": workload.service_account_name,
            "securityContext": workload.pod_security_context,
            "containers": [container],
            "volumes": volumes or None,
        }

    def _variable(self, name: str, value: Any) -> dict[str, Any]:
        if isinstance(value, str):
            node = paths.find(self.node, ("env", name))
            return {"name": name, "value": node if type(node) is Scalar else value}
        return {"name": name, "valueFrom": value.value_from}

    def _mount(self, volume: Volume) -> dict[str, Any]:
        return {
            "name": volume.name,
            "mountPath": volume.mount_path,
            "subPath": volume.sub_path,
            "readOnly": volume.read_only,
        }

    def _volume(self, index: int, volume: Volume) -> dict[str, Any] | None:
        """Return the pod's volume; None for a claim template, and after reporting."""
        given = [source for source in _SOURCES if getattr(volume, source) is not None]
        names = [_YAML_NAMES.get(source, source) for source in given]
        if len(given) != 1:
            told = " and ".join(f"`{name}`" for name in names) or "none"
            allowed = ", ".join(f"`{_YAML_NAMES.get(source, source)}`" for source in _SOURCES)
            self.report.error(
                "R405",
                node_at(self.node, "volumes", index),
                f"the volume `{volume.name}` must have exactly one source, and has {told}",
                cause=f"a volume is one of {allowed}",
                hint="add the one it is" if not given else "keep one of them",
            )
            return None
        source = given[0]
        value: Any = getattr(volume, source)
        if source in ("claim", "claim_template"):
            self._check_claim(index, volume, value, names[0])
        if source == "claim_template":
            return None
        if source == "claim":
            return {
                "name": volume.name,
                "persistentVolumeClaim": {"claimName": f"{self.header.object_name}-{volume.name}"},
            }
        if source == "existing_claim":
            return {"name": volume.name, "persistentVolumeClaim": {"claimName": value}}
        return {"name": volume.name, names[0]: value}

    def _check_claim(self, index: int, volume: Volume, claim: Node, name: str) -> None:
        if paths.find(claim, ("resources", "requests", "storage")) is None:
            self.report.error(
                "R405",
                node_at(self.node, "volumes", index, name),
                f"the `{name}` of the volume `{volume.name}` needs `resources.requests.storage`",
                cause="Kubernetes refuses a claim without a size",
                hint="add `resources: {requests: {storage: 1Gi}}`",
            )

    def _service(self, common: dict[str, Any], selector: dict[str, str]) -> Document:
        options = self.workload.service
        annotations = {**(common["annotations"] or {}), **(options.annotations if options else {})}
        ports = [
            {
                "name": port.name,
                "port": port.port if port.port is not None else port.container_port,
                "targetPort": port.name,
                "protocol": port.protocol,
            }
            for port in self.workload.ports
        ]
        context = {
            **common,
            "annotations": annotations or None,
            "type": options.type if options else None,
            "selector": selector,
            "ports": ports,
        }
        return ("service", context)

    def _check_rollback(self, *, is_stateful: bool) -> None:
        """Refuse what keeps no old pod, or has no gate, when a failed update must not take the service down."""
        off = "or set `update.autoRollbackOnFailedHealth: false`"
        if is_stateful:
            self.report.error(
                "R403",
                self.definition.root.key("workload"),
                "a StatefulSet cannot keep the old pod while a new one proves itself",
                cause="`autoRollbackOnFailedHealth` rests on the old pod, and a StatefulSet replaces it first",
                hint=f"use a `claim` instead of the `claimTemplate`, {off}",
            )
            return
        strategy = self.workload.strategy
        kind = strategy.text("type") if isinstance(strategy, Mapping) else None
        if kind is not None and kind != "RollingUpdate":
            self.report.error(
                "R403",
                node_at(self.node, "strategy", "type"),
                f"the strategy `{kind}` keeps no old pod while a new one proves itself",
                cause="`autoRollbackOnFailedHealth` needs RollingUpdate",
                hint=f"remove `strategy.type`, {off}",
            )
        probes = self.workload.probes
        if probes is None or probes.readiness is None:
            self.report.error(
                "R403",
                self.definition.root.key("workload"),
                "`workload` needs `probes.readiness`",
                cause="`autoRollbackOnFailedHealth` keeps the old pod until the new one proves ready",
                hint=f"add a readiness probe, {off}",
            )


def _claim(spec: Any) -> dict[str, Any]:
    """Return a claim's spec with the access mode that a single pod needs, unless it names its own."""
    assert isinstance(spec, Mapping)
    made: dict[str, Any] = {} if spec.get("accessModes") is not None else {"accessModes": ["ReadWriteOnce"]}
    return {**made, **{key.text: value for key, value in spec.entries}}
