"""The parts of a workload that are written in Kubernetes' form in, what is wrong with them out."""

from __future__ import annotations

from functools import cache

from render.flux.api_core import CORE
from render.model.read import Check, Reader, compile_schema
from render.plan import paths
from render.plan.context import Report
from render.yaml.source import Mapping, Node, Scalar, Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from render.model.service import Workload

VOLUME_SOURCES = {
    "emptyDir": "EmptyDirVolumeSource",
    "configMap": "ConfigMapVolumeSource",
    "secret": "SecretVolumeSource",
    "hostPath": "HostPathVolumeSource",
    "nfs": "NFSVolumeSource",
    "existingClaim": "",
    "claim": "PersistentVolumeClaimSpec",
    "claimTemplate": "PersistentVolumeClaimSpec",
}
"""What a volume may be, with Kubernetes' name of the form; empty for a form of ours."""

_HANDLERS = ("exec", "grpc", "httpGet", "tcpSocket")
_REFUSED = "Kubernetes refuses the whole object"


def check_parts(report: Report, node: Node | None, workload: Workload, *, is_stateful: bool) -> None:
    """Report unknown fields and wrong values of the parts, and what Kubernetes wants exactly one of, or unlike others.

    `node` is the mapping that `workload` was read from.
    """
    parts = _Parts(report, node)
    for name in ("startup", "readiness", "liveness"):
        if parts.check("Probe", "probes", name):
            parts.one_of(_HANDLERS, "probes", name)
    parts.check("ResourceRequirements", "resources")
    parts.check("SecurityContext", "securityContext")
    parts.check("PodSecurityContext", "podSecurityContext")
    if parts.check("StatefulSetUpdateStrategy" if is_stateful else "DeploymentStrategy", "strategy"):
        parts.strategy("OnDelete" if is_stateful else "Recreate")
    for name, value in workload.env.items():
        if not isinstance(value, str) and parts.check("EnvVarSource", "env", name, "valueFrom"):
            parts.one_of(tuple(CORE["EnvVarSource"]["properties"]), "env", name, "valueFrom")
    for index in range(len(workload.env_from)):
        if parts.check("EnvFromSource", "envFrom", index):
            parts.one_of(("configMapRef", "secretRef"), "envFrom", index)
    for index in range(len(workload.volumes)):
        for name, form in VOLUME_SOURCES.items():
            if form and parts.check(form, "volumes", index, name) and name in ("claim", "claimTemplate"):
                parts.size("volumes", index, name)
    parts.differ("ports", "name", [port.name for port in workload.ports])
    if len({port.name for port in workload.ports}) == len(workload.ports):
        ends = [f"{port.port or port.container_port}/{port.protocol}" for port in workload.ports]
        parts.differ("ports", "port", ends)
    parts.differ("volumes", "name", [volume.name for volume in workload.volumes])
    parts.differ("volumes", "mountPath", [volume.mount_path for volume in workload.volumes])


class _Parts:
    def __init__(self, report: Report, node: Node | None) -> None:
        self.report = report
        self.node = node

    def check(self, form: str, *path: str | int) -> bool:
        """Whether the part at a path is there and has its form; reports where it has not."""
        part = paths.find(self.node, path)
        if part is None or (type(part) is Scalar and part.is_null):
            return False
        before = len(self.report.items)
        Reader(self.report.source, self.report.items).read(_check(form), part, _shown(path))
        if len(self.report.items) > before:
            self.report.failed = True
            return False
        return True

    def one_of(self, names: tuple[str, ...], *path: str | int) -> None:
        """Report a part that has not exactly one of some fields."""
        part = paths.find(self.node, path)
        assert type(part) is Mapping
        given = [key for key, value in part.entries if key.text in names and not _is_null(value)]
        if len(given) == 1:
            return
        told = " and ".join(f"`{key.text}`" for key in given) or "none"
        self.report.error(
            "R104" if given else "R102",
            given[1] if given else part,
            f"`{_shown(path)}` must have exactly one form, and has {told}",
            cause=f"Kubernetes takes one of {', '.join(f'`{name}`' for name in names)}",
            hint="keep one of them" if given else f"add one, such as `{names[-1]}`",
        )

    def strategy(self, other: str) -> None:
        """Report a strategy of no type that there is, and settings of a rolling update for another type."""
        part = paths.find(self.node, ("strategy",))
        assert type(part) is Mapping
        kind = part.get("type")
        if type(kind) is not Scalar or kind.is_null or kind.text == "RollingUpdate":
            return
        if kind.text != other:
            self.report.error(
                "R104",
                kind,
                f"`workload.strategy.type` must be `RollingUpdate` or `{other}`, not `{kind.text}`",
                cause=_REFUSED,
                hint=f"write `{other}`, or remove it",
            )
        elif part.get("rollingUpdate") is not None:
            self.report.error(
                "R104",
                part.key("rollingUpdate"),
                f"`workload.strategy.rollingUpdate` does not go with the type `{other}`",
                cause=_REFUSED,
                hint="remove one of the two",
            )

    def size(self, *path: str | int) -> None:
        """Report a claim that does not say how much it wants."""
        if paths.find(self.node, (*path, "resources", "requests", "storage")) is None:
            self.report.error(
                "R405",
                paths.find(self.node, path),
                f"`{_shown(path)}` needs `resources.requests.storage`",
                cause="Kubernetes refuses a claim without a size",
                hint="add `resources: {requests: {storage: 1Gi}}`",
            )

    def differ(self, listed: str, field: str, values: list[str]) -> None:
        """Report items of a list whose `values` are those of an earlier item; `field` is what makes the value."""
        items = paths.find(self.node, (listed,))
        nodes = items.items if type(items) is Sequence else []
        for index, (value, node) in enumerate(zip(values, nodes, strict=False)):
            first = values.index(value)
            if first < index:
                self.report.error(
                    "R104",
                    paths.find(node, (field,)) or node,
                    f"`{_shown((listed, index, field))}` must differ from the others, and `{value}` is taken",
                    cause=_REFUSED,
                    hint="give each its own",
                    related=((self.report.source.place(nodes[first]), "the other one"),),
                )


@cache
def _check(form: str) -> Check:
    return compile_schema(CORE[form])


def _is_null(node: Node) -> bool:
    return type(node) is Scalar and node.is_null


def _shown(path: tuple[str | int, ...]) -> str:
    return "workload" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
