"""A service without a chart in, its Deployment or StatefulSet, Service and claims out."""

from __future__ import annotations

from render.catalog import Definition
from render.model.read import snake_case
from render.plan import paths
from render.plan.context import Context, Header, Report, node_at
from render.plan.images import ImagePlan, Images
from render.plan.part import Part
from render.plan.podparts import VOLUME_SOURCES, check_parts
from render.plan.probes import seconds_to_ready
from render.plan.sources import plain
from render.plan.writing import Writer
from render.yaml.source import Mapping, Scalar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    from render.model.service import Volume, Workload

Document: TypeAlias = "tuple[str, dict[str, Any]]"
"""A template's name and what it is given."""


NAME_LABEL = "app.kubernetes.io/name"
PROGRESS_DEADLINE = 600
"""Seconds after which Kubernetes calls a rollout failed; its own default, written down because the gate rests on it."""

PRUNE_OPT_OUT = {"kustomize.toolkit.fluxcd.io/prune": "disabled"}
"""Annotation of what must outlive the service that is disabled or renamed: claims and namespaces."""


class Plain(Part):
    """Plans one plain workload."""

    def __init__(
        self, context: Context, definition: Definition, header: Header, images: Images, report: Report
    ) -> None:
        super().__init__(context, definition, header, images, report)
        workload = definition.service.workload
        assert workload is not None
        self.workload: Workload = workload
        self.node = definition.root.get("workload")

    def plan(self, writer: Writer, *, rollback: bool) -> list[Document]:
        """Return the documents of workload.yaml; none after reporting."""
        is_stateful = any(volume.claim_template is not None for volume in self.workload.volumes)
        check_parts(self.report, self.node, self.workload, is_stateful=is_stateful)
        volumes = [self._volume(index, volume) for index, volume in enumerate(self.workload.volumes)]
        if rollback:
            self._check_rollback(is_stateful=is_stateful)
        main = self._main()
        if main is None or self.report.failed:
            return []
        name, service = self.header.object_name, self.definition.service
        common = {
            "name": name,
            "namespace": self.header.namespace,
            "labels": {NAME_LABEL: service.name, **service.labels},
            "annotations": service.annotations or None,
        }
        selector = {NAME_LABEL: service.name}
        pod = self._pod(writer.whole(main), [volume for volume in volumes if volume])
        documents = [
            ("statefulset", {**common, **self._stateful(selector, pod)})
            if is_stateful
            else ("deployment", {**common, **self._deployment(selector, pod, rollback=rollback)})
        ]
        if self.workload.ports:
            documents.append(self._service(common, selector))
        kept = {**common, "annotations": {**PRUNE_OPT_OUT, **service.annotations}}
        documents += [
            ("persistentvolumeclaim", {**kept, "name": f"{name}-{volume.name}", "spec": claim_spec(volume.claim)})
            for volume in self.workload.volumes
            if volume.claim is not None
        ]
        return documents

    @property
    def deadline(self) -> int:
        """Seconds after which Kubernetes calls a rollout failed: longer than the probes let a pod take to be ready."""
        probes = self.workload.probes
        startup, readiness = (plain(one) for one in (probes and probes.startup, probes and probes.readiness))
        return max(PROGRESS_DEADLINE, seconds_to_ready(startup, readiness) + PROGRESS_DEADLINE // 2)

    def _main(self) -> ImagePlan | None:
        """Return the container's image; None after reporting."""
        main = next((plan for plan in self.images.plans if plan.shape == "container"), None)
        source = self.definition.service.source
        if main is None and (not source or source.image is None or any(not plan.key for plan in self.images.plans)):
            self.report.error(
                "R207",
                self.definition.root.key("workload"),
                "a workload needs `source.image`",
                cause="it is what the container runs",
                hint="add `source: {image: registry/name:tag}`",
            )
        return main

    def _deployment(self, selector: dict[str, str], pod: dict[str, Any], *, rollback: bool) -> dict[str, Any]:
        return {
            "replicas": self._replicas(),
            "progressDeadlineSeconds": self.deadline if rollback else None,
            "strategy": self.workload.strategy,
            "selector": selector,
            "pod": pod,
        }

    def _replicas(self) -> int:
        return 1 if self.workload.replicas is None else self.workload.replicas

    def _stateful(self, selector: dict[str, str], pod: dict[str, Any]) -> dict[str, Any]:
        templates = [
            {"metadata": {"name": volume.name}, "spec": claim_spec(volume.claim_template)}
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
        given = [name for name in VOLUME_SOURCES if getattr(volume, snake_case(name)) is not None]
        if len(given) != 1:
            told = " and ".join(f"`{name}`" for name in given) or "none"
            allowed = ", ".join(f"`{name}`" for name in VOLUME_SOURCES)
            self.report.error(
                "R405",
                paths.find(self.node, ("volumes", index, *given[1:2])),
                f"the volume `{volume.name}` must have exactly one source, and has {told}",
                cause=f"a volume is one of {allowed}",
                hint="add the one it is" if not given else "keep one of them",
            )
            return None
        claim = volume.existing_claim
        if volume.claim is not None:
            claim = f"{self.header.object_name}-{volume.name}"
        if claim is not None:
            return {"name": volume.name, "persistentVolumeClaim": {"claimName": claim}}
        if volume.claim_template is not None:
            return None
        return {"name": volume.name, given[0]: getattr(volume, snake_case(given[0]))}

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

    def _keeps_no_pod(self, strategy: Any) -> bool:
        """Whether a rolling update may take all pods away at once, counted as the Deployment controller does."""
        replicas = self._replicas()
        rolling = plain(strategy.get("rollingUpdate")) if isinstance(strategy, Mapping) else None
        if not replicas or not isinstance(rolling, dict):
            return False
        surge = _share(rolling.get("maxSurge"), replicas, up=True)
        unavailable = _share(rolling.get("maxUnavailable"), replicas, up=False)
        # With nothing to add and nothing to take away there would be no update, so one is taken away.
        return (unavailable or int(not surge)) >= replicas

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
        kind: str | None = strategy.text("type") if isinstance(strategy, Mapping) else None
        if kind == "Recreate":
            self.report.error(
                "R403",
                node_at(self.node, "strategy", "type"),
                f"the strategy `{kind}` keeps no old pod while a new one proves itself",
                cause="`autoRollbackOnFailedHealth` needs RollingUpdate",
                hint=f"remove `strategy.type`, {off}",
            )
        elif self._keeps_no_pod(strategy):
            self.report.error(
                "R403",
                node_at(self.node, "strategy", "rollingUpdate"),
                "this rolling update keeps no old pod while a new one proves itself",
                cause="the only pod is taken away first"
                if self._replicas() == 1
                else f"all {self._replicas()} pods may be unavailable at a time",
                hint=f"set `maxSurge: 1` and `maxUnavailable: 0`, {off}",
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


def _share(value: Any, replicas: int, *, up: bool) -> int:
    """Return a number of pods that is written as one, or as a percentage; 25 % where it is not written."""
    text = str("25%" if value is None else value)
    number = text.removesuffix("%")
    if not number.isdigit():
        return 0
    if number == text:
        return int(number)
    return -(-int(number) * replicas // 100) if up else int(number) * replicas // 100


def claim_spec(spec: Any) -> dict[str, Any]:
    """Return a claim's spec with the access mode that a single pod needs, unless it names its own."""
    assert isinstance(spec, Mapping)
    made: dict[str, Any] = {} if spec.get("accessModes") is not None else {"accessModes": ["ReadWriteOnce"]}
    return {**made, **{key.text: value for key, value in spec.entries}}
