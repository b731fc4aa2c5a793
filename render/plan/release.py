"""A service with a chart in, its HelmRelease out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from render.catalog import Definition
from render.flux.api import HELM_RELEASE_SPEC, OBJECTS
from render.flux.versions import FluxVersion, hooks
from render.model.read import Reader, compile_schema
from render.plan.context import Context, Header, Report, node_at
from render.plan.images import Images
from render.plan.sources import ChartPlan, plain
from render.yaml.emit import Commented
from render.yaml.source import Mapping, Node, Scalar, Source

if TYPE_CHECKING:
    from functools import cache

    from render.model.read import Check
else:
    from functools import cache

RESERVED = {
    "chart": "write `source.chart`",
    "chartRef": "write `source.chart`",
    "values": "write `values` at the top of the service",
    "valuesFrom": "write `valuesFrom` at the top of the service",
    "dependsOn": "write `dependsOn` at the top of the service",
    "postRenderers": "write `postRenderers` at the top of the service",
}
TABLE_COMMENT = "registries.imageOverrides"
"""The comment line that alone tells the platform's table from a release's own post-renderers."""

FIELDS = (
    "interval",
    "timeout",
    "chart",
    "chartRef",
    "releaseName",
    "targetNamespace",
    "storageNamespace",
    "serviceAccountName",
    "suspend",
    "maxHistory",
    "persistentClient",
    "kubeConfig",
    "dependsOn",
    "install",
    "upgrade",
    "rollback",
    "uninstall",
    "test",
    "driftDetection",
    "waitStrategy",
    "healthCheckExprs",
    "commonMetadata",
    "valuesFrom",
    "values",
    "postRenderStrategy",
    "postRenderers",
)
"""The order in which the spec is written."""


@cache
def spec_check() -> Check:
    """Return the check of a HelmRelease spec, nothing required (it is a part)."""
    return compile_schema({**HELM_RELEASE_SPEC, "required": []})


@cache
def _list_check(field: str) -> Check:
    return compile_schema(HELM_RELEASE_SPEC["properties"][field])


def check_release(source: Source, report: Report, node: Node | None, path: str, flux: FluxVersion) -> None:
    """Check a part of a HelmRelease spec that a person wrote against the v2 API of the target Flux."""
    if type(node) is not Mapping:
        return
    reserved = [(key, RESERVED[key.text]) for key, _ in node.entries if key.text in RESERVED]
    for key, hint in reserved:
        report.error(
            "R402",
            key,
            f"`{path}.{key.text}` is not set here",
            cause="the service has a field of its own for it",
            hint=hint,
        )
    if reserved:
        return
    before = len(report.items)
    Reader(source, report.items).read(spec_check(), node, path)
    if len(report.items) > before:
        report.failed = True
        return
    _check_rules(report, node, flux, ())


def _check_rules(report: Report, node: Node, flux: FluxVersion, prefix: tuple[str | int, ...]) -> None:
    spec: Any = plain(node)
    for key in reversed(prefix):
        spec = {key: spec}
    for problem in OBJECTS["HelmRelease"].rules(spec, flux, partial=True):  # type: ignore[call-arg]
        keys = problem.path[len(prefix) :]
        report.error("R401", node_at(node, *keys), problem.message, cause=problem.cause, hint=problem.hint)


def check_list(definition: Definition, report: Report, field: str, flux: FluxVersion) -> None:
    """Check a top-level list of the service that has HelmRelease form (`valuesFrom`, `postRenderers`)."""
    node = definition.root.get(field)
    if node is None or (type(node) is Scalar and node.is_null):
        return
    before = len(report.items)
    Reader(definition.source, report.items).read(_list_check(field), node, field)
    if len(report.items) > before:
        report.failed = True
        return
    _check_rules(report, node, flux, (field,))


def merge(weak: Any, strong: Any) -> Any:
    """Return two values merged: mappings key by key, anything else replaced by the stronger."""
    if not isinstance(weak, dict | Mapping) or not isinstance(strong, dict | Mapping):
        return strong
    made = dict(_entries(weak))
    for key, value in _entries(strong):
        made[key] = merge(made[key], value) if key in made else value
    return made


def _entries(value: dict[str, Any] | Mapping) -> list[tuple[str, Any]]:
    if isinstance(value, Mapping):
        return [(key.text, inner) for key, inner in value.entries]
    return [(key, inner) for key, inner in value.items() if inner is not None]


def rollback_fields(retries: int) -> dict[str, Any]:
    """Return the settings under which Flux rolls a failed, health-gated upgrade back.

    Without them it never does; RetryOnFailure never does either, and a cluster gate can make that the default, so the
    strategy is named.
    """
    return {
        "upgrade": {
            "strategy": {"name": "RemediateOnFailure"},
            "remediation": {"retries": retries, "remediateLastFailure": True, "strategy": "rollback"},
        },
        "rollback": {"cleanupOnFail": True},
    }


class Release:
    """Plans one HelmRelease."""

    def __init__(
        self, context: Context, definition: Definition, header: Header, images: Images, report: Report
    ) -> None:
        self.context = context
        self.definition = definition
        self.header = header
        self.images = images
        self.report = report

    def plan(self, chart: ChartPlan, depends_on: list[dict[str, Any]], *, rollback: bool) -> dict[str, Any] | None:
        """Return the spec in order; None after reporting."""
        service = self.definition.service
        platform = self.context.platform
        root = self.definition.root
        check_release(self.definition.source, self.report, root.get("release"), "release", self.context.flux)
        check_list(self.definition, self.report, "valuesFrom", self.context.flux)
        check_list(self.definition, self.report, "postRenderers", self.context.flux)
        if self.report.failed:
            return None
        spec: Any = {"interval": platform.defaults.interval, "timeout": platform.defaults.timeout}
        spec = merge(spec, platform.defaults.release or {})
        if rollback:
            spec = merge(spec, rollback_fields(platform.defaults.retries))
        spec = merge(spec, service.release or {})
        if rollback:
            self._check_rollback(spec)
        self._check_name(spec)
        spec["chart"], spec["chartRef"] = chart.chart, chart.chart_ref
        spec["dependsOn"] = depends_on or None
        spec["valuesFrom"] = service.values_from or None
        values = self.images.values
        spec["values"] = values if isinstance(values, Mapping) and values.entries else None
        renderers = self._post_renderers()
        spec["postRenderers"] = renderers or None
        if self._carries_table() and self.context.flux.since("2.9"):
            spec.setdefault("postRenderStrategy", "separate")
        return {field: spec.get(field) for field in FIELDS}

    def _carries_table(self) -> bool:
        return bool(self.images.renderers.emitted)

    def _post_renderers(self) -> list[Any]:
        """Return the release's own renderers, ours for images, and the table."""
        made: list[Any] = list(self.definition.service.post_renderers)
        if self.images.entries:
            made.append({"kustomize": {"images": self.images.entries}})
        if self._carries_table():
            kept = [self.context.overrides[i] for i in self.images.renderers.emitted]
            entries: list[Any] = [
                {"name": e.name, "newName": e.new_name, "newTag": e.new_tag, "digest": e.digest} for e in kept
            ]
            made.append(Commented(TABLE_COMMENT, {"kustomize": {"images": entries}}))
        return made

    def _check_rollback(self, spec: dict[str, Any]) -> None:
        """Refuse settings of the service that would defeat the automatic rollback."""
        facts = plain(spec)
        upgrade = facts.get("upgrade") or {}
        remediation = upgrade.get("remediation") or {}
        strategy = (upgrade.get("strategy") or {}).get("name")
        defeats = [
            (("upgrade", "strategy", "name"), strategy == "RetryOnFailure", "RetryOnFailure never rolls back"),
            (("upgrade", "disableWait"), upgrade.get("disableWait") is True, "the wait is the health gate"),
            (
                ("upgrade", "remediation", "strategy"),
                remediation.get("strategy") == "uninstall",
                "a failed upgrade would uninstall the release",
            ),
            (
                ("upgrade", "remediation", "remediateLastFailure"),
                remediation.get("remediateLastFailure") is False,
                "the last failure would stay in place",
            ),
        ]
        release = self.definition.root.get("release")
        for path, is_defeated, cause in defeats:
            if is_defeated:
                self.report.error(
                    "R403",
                    node_at(release, *path),
                    f"`release.{'.'.join(path)}` defeats the automatic rollback of `update`",
                    cause=cause,
                    hint="remove it, or set `update.autoRollbackOnFailedHealth: false`",
                )

    def _check_name(self, spec: dict[str, Any]) -> None:
        """Refuse a release name that Helm would not take as it is."""
        target = plain(spec.get("targetNamespace"))
        if plain(spec.get("releaseName")) is None and target:
            name = f"{target}-{self.header.object_name}"
            if len(name) > 53:
                self.report.error(
                    "R404",
                    node_at(self.definition.root.get("release"), "targetNamespace"),
                    f"the release name `{name}` has {len(name)} characters, more than 53",
                    cause="Flux would shorten it to a name with a hash, and Helm's own tools would not find it",
                    hint=f"set `release.releaseName: {self.header.object_name}`",
                )

    def warn_hooks(self) -> None:
        """Warn that hooks escape the overrides on targets that cannot pass them to post-renderers."""
        if self._carries_table() and hooks(self.context.flux) == "nohooks":
            self.report.warn(
                "R604",
                self.definition.root.key("name"),
                f"image overrides do not reach the chart's hooks on Flux {self.context.flux}",
                cause="this release line does not pass hooks to post-renderers; a migration Job keeps its image",
                hint="set the hook's image in `values`, or move to Flux 2.9",
            )
