"""A service with a chart in, its HelmRelease out."""

from __future__ import annotations

from functools import cache

from render.catalog import Definition
from render.committed import TABLE_COMMENT
from render.diagnostics import Location
from render.flux.api import HELM_RELEASE_SPEC, OBJECTS, Path, dotted, matches_pattern
from render.flux.api_schema import DURATION
from render.flux.cadence import format_duration, parse_duration
from render.flux.versions import FluxVersion
from render.model.read import Reader, compile_schema
from render.plan import paths
from render.plan.context import Context, Header, Report, node_at
from render.plan.fluxtree import HELM_TIMEOUT
from render.plan.images import Images
from render.plan.part import Part
from render.plan.probes import allowances
from render.plan.sources import ChartPlan, plain
from render.structs import struct
from render.yaml.emit import Commented
from render.yaml.source import Mapping, Node, Scalar, Sequence, Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from render.model.read import Check

RESERVED = {
    "chartRef": "write `source.chart`",
    "values": "write `values` at the top of the service",
    "valuesFrom": "write `valuesFrom` at the top of the service",
    "dependsOn": "write `dependsOn` at the top of the service",
    "postRenderers": "write `postRenderers` at the top of the service",
}

_ROLLBACK: tuple[Path, ...] = (
    ("upgrade",),
    ("upgrade", "strategy"),
    ("upgrade", "remediation"),
    ("upgrade", "remediation", "remediateLastFailure"),
)
"""Without these a failed upgrade is rolled back under some settings of the controller and of the rest, or never."""

RELEASE_NAME = 53
"""Characters that Helm takes for the name of a release."""

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


CHART_FIELDS = ("interval", "reconcileStrategy", "ignoreMissingValuesFiles", "verify")
"""Fields of `chart.spec` that `release` may hold: how the chart is followed, not which chart it is."""
CHART_RESERVED = ("chart", "version", "sourceRef", "valuesFiles")


@cache
def spec_check() -> Check:
    """Return the check of a HelmRelease spec, nothing required (it is a part)."""
    properties = HELM_RELEASE_SPEC["properties"]
    chart = properties["chart"]
    inner = chart["properties"]["spec"]
    known = {name: inner["properties"][name] for name in CHART_FIELDS}
    spec = {**inner, "properties": known, "required": []}
    chart = {**chart, "properties": {**chart["properties"], "spec": spec}, "required": []}
    return compile_schema(
        {
            **HELM_RELEASE_SPEC,
            "properties": {**properties, "chart": chart},
            "required": [],
            "x-unlisted": sorted(RESERVED),
        }
    )


@cache
def _list_check(field: str) -> Check:
    return compile_schema(HELM_RELEASE_SPEC["properties"][field])


def check_release(source: Source, report: Report, node: Node | None, path: str, flux: FluxVersion) -> None:
    """Check a part of a HelmRelease spec that a person wrote against the v2 API of the target Flux."""
    if type(node) is not Mapping:
        return
    reserved = [(key, key.text, RESERVED[key.text]) for key, _ in node.entries if key.text in RESERVED]
    chart = paths.find(node, ("chart", "spec"))
    for key, _ in chart.entries if type(chart) is Mapping else ():
        if key.text in CHART_RESERVED:
            reserved.append((key, f"chart.spec.{key.text}", "write `source.chart`"))
    for key, field, hint in reserved:
        report.error(
            "R402",
            key,
            f"`{path}.{field}` is not set here",
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


@struct(frozen=True)
class _Written:
    """Where a field of a merged spec was written."""

    source: Source
    node: Node | None
    field: str
    """As its file spells it: `release.upgrade`, `defaults.release.upgrade`."""
    related: tuple[tuple[Location, str], ...] = ()


class Release(Part):
    """Plans one HelmRelease."""

    def __init__(
        self, context: Context, definition: Definition, header: Header, images: Images, report: Report
    ) -> None:
        super().__init__(context, definition, header, images, report)
        self.own = definition.root.get("release")
        self.defaults = paths.find(context.file.root, ("defaults", "release"))

    def plan(
        self, chart: ChartPlan | None, depends_on: list[dict[str, Any]], *, rollback: bool
    ) -> dict[str, Any] | None:
        """Return the spec in order; None after reporting, and without a chart."""
        service = self.definition.service
        check_release(self.definition.source, self.report, self.own, "release", self.context.flux)
        check_list(self.definition, self.report, "valuesFrom", self.context.flux)
        check_list(self.definition, self.report, "postRenderers", self.context.flux)
        if self.report.failed or chart is None:
            return None
        before = len(self.report.items)
        # Without a `release` of its own a service has what others have, which is checked once if it is sound.
        common = self.context.releases.get(rollback) if self.own is None else None
        merged = self._merged(rollback=rollback) if common is None else common
        spec = dict(merged)
        if common is None:
            self._check_merged(spec, rollback=rollback)
        self._check_name(spec)
        self._check_hooks(spec)
        self._check_chart(chart)
        spec["chart"] = chart.chart and merge(chart.chart, spec.get("chart") or {})
        spec["chartRef"] = chart.chart_ref
        self._check_rules(spec if common is None else {"chart": spec["chart"], "chartRef": spec["chartRef"]})
        if self.own is None and len(self.report.items) == before:
            self.context.releases[rollback] = merged
        spec["dependsOn"] = depends_on or None
        spec["valuesFrom"] = service.values_from or None
        spec["postRenderers"] = self._post_renderers() or None
        values = self.images.values
        spec["values"] = values if isinstance(values, Mapping) and values.entries else None
        if self.carries_table and self.context.flux.since("2.9"):
            if "postRenderStrategy" not in spec:
                self._check_patches()
            spec.setdefault("postRenderStrategy", "separate")
        return {field: spec.get(field) for field in FIELDS}

    @property
    def carries_table(self) -> bool:
        """Whether the release carries entries of the override table."""
        return bool(self.images.renderers.emitted)

    def _merged(self, *, rollback: bool) -> dict[str, Any]:
        """Return what platform, `update` and service say, the weakest first."""
        platform = self.context.platform
        spec: dict[str, Any] = {"interval": platform.defaults.interval, "timeout": platform.defaults.timeout}
        parts = (
            platform.defaults.release,
            rollback_fields(platform.defaults.retries) if rollback else None,
            self.definition.service.release,
        )
        for part in parts:
            if part is not None:
                spec = merge(_without_other_strategy(spec, part), part)
        return spec

    def _post_renderers(self) -> list[Any]:
        """Return the release's own renderers, ours for images, and the table."""
        made: list[Any] = list(self.definition.service.post_renderers)
        if self.images.entries:
            made.append({"kustomize": {"images": self.images.entries}})
        if self.carries_table:
            kept = [self.context.overrides[i] for i in self.images.renderers.emitted]
            entries: list[Any] = [
                {"name": e.name, "newName": e.new_name, "newTag": e.new_tag, "digest": e.digest} for e in kept
            ]
            made.append(Commented(TABLE_COMMENT, {"kustomize": {"images": entries}}))
        return made

    def _written(self, path: Path) -> _Written:
        """Return where a field of the merged spec was written: in the service, else in the platform's defaults."""
        own, default = _depth(self.own, path), _depth(self.defaults, path)
        platform = self.context.file.source
        node = node_at(self.defaults, *path)
        if default and not own:
            return _Written(platform, node, f"defaults.release.{dotted(path)}")
        related = ((platform.place(node), "merged with the platform's defaults"),) if own < default else ()
        found = node_at(self.own, *path) or self.definition.root.key("name")
        return _Written(self.definition.source, found, f"release.{dotted(path)}", related)

    def _error(self, code: str, written: _Written, message: str, cause: str, hint: str) -> None:
        """Report a fault of the merged spec; one of the platform's defaults has the same text for every service."""
        self.report.failed = True
        fault = written.source.fault(code, written.node, message, cause=cause, hint=hint, related=written.related)
        self.report.items.append(fault)

    def _check_rules(self, spec: dict[str, Any]) -> None:
        """Check the whole, which may break rules that its parts keep."""
        for problem in OBJECTS["HelmRelease"].rules(plain(spec), self.context.flux):
            self._error("R401", self._written(problem.path), problem.message, problem.cause, problem.hint)

    def _check_chart(self, chart: ChartPlan) -> None:
        """Refuse fields of `chart` where the release names an object that is the chart."""
        own = node_at(self.own, "chart")
        if chart.chart is None and paths.find(self.own, ("chart",)) is not None:
            self.report.error(
                "R402",
                own,
                "`release.chart` does not go with a chart that is an object of its own",
                cause="the release has `chartRef`, and the source object says how it is fetched",
                hint="remove it",
            )

    def _check_merged(self, spec: dict[str, Any], *, rollback: bool) -> None:
        if plain(spec["interval"]) is None:
            written = self._written(("interval",))
            message = f"`{written.field}` must be a duration, not null"
            self._error("R401", written, message, "the Flux API refuses a HelmRelease without it", "remove it")
        if rollback:
            self._check_rollback(spec)

    def _check_rollback(self, spec: dict[str, Any]) -> None:
        """Refuse settings of the service that would defeat the automatic rollback."""
        facts = plain(spec)
        upgrade = facts.get("upgrade") or {}
        remediation = upgrade.get("remediation") or {}
        strategy = (upgrade.get("strategy") or {}).get("name")
        defeats: list[tuple[Path, bool, str]] = [
            *((path, _is_null(facts, path), "without it Flux rolls nothing back") for path in _ROLLBACK),
            (("upgrade", "strategy", "name"), strategy == "RetryOnFailure", "RetryOnFailure never rolls back"),
            (("upgrade", "disableWait"), upgrade.get("disableWait") is True, "the wait is the health gate"),
            (
                ("upgrade", "remediation", "strategy"),
                remediation.get("strategy") == "uninstall",
                "a failed upgrade would uninstall the release",
            ),
            (
                ("upgrade", "remediation", "remediateLastFailure"),
                # Without a limit there is no last failure.
                remediation.get("remediateLastFailure") is False and remediation.get("retries") != -1,
                "the last failure would stay in place",
            ),
        ]
        for path, is_defeated, cause in defeats:
            if is_defeated:
                written = self._written(path)
                message = f"`{written.field}` defeats the automatic rollback of `update`"
                hint = "remove it, or set `update.autoRollbackOnFailedHealth: false`"
                if written.source is not self.definition.source:
                    hint += " in services with `update`"
                self._error("R403", written, message, cause, hint)
        self._check_time(facts)

    def _check_time(self, facts: dict[str, Any]) -> None:
        """Refuse a timeout in which nothing, or not what the values let take its time, becomes ready."""
        upgrade = facts.get("upgrade") or {}
        path: Path = ("upgrade", "timeout") if upgrade.get("timeout") is not None else ("timeout",)
        text = upgrade.get("timeout") or facts.get("timeout") or f"{HELM_TIMEOUT // 60}m"
        if not matches_pattern(DURATION, text):
            return
        seconds = parse_duration(text) // 1_000_000_000
        if not seconds:
            written = self._written(path)
            message = f"`{written.field}: {text}` leaves an upgrade no time"
            self._error(
                "R403", written, message, "every upgrade would be rolled back", "write a longer time, or remove it"
            )
            return
        # Most definitions have no probes, and need not be looked through for them.
        values = self.images.values if "robe" in self.definition.source.text else None
        for allowance in allowances(plain(values)):
            if allowance.seconds <= seconds:
                continue
            node = node_at(values, *allowance.path)
            is_given = facts.get("timeout") is not None or upgrade.get("timeout") is not None
            timeout = self._written(path)
            longer = format_duration(-(-allowance.seconds // 60) * 60 + HELM_TIMEOUT)
            self.report.error(
                "R403",
                node,
                f"`values.{dotted(allowance.path)}` allows {allowance.seconds} s, and an upgrade has only {text}",
                cause="a version that is still starting would be taken for a failed one, and rolled back",
                hint=f"set `release.timeout: {longer}`, or let the probe allow less",
                related=((timeout.source.place(timeout.node), "the time that an upgrade has"),) if is_given else (),
            )

    def _check_name(self, spec: dict[str, Any]) -> None:
        """Refuse a release name that Helm would not take as it is."""
        target = plain(spec.get("targetNamespace"))
        if plain(spec.get("releaseName")) is None and target:
            name = f"{target}-{self.header.object_name}"
            if len(name) > RELEASE_NAME:
                self._error(
                    "R404",
                    self._written(("targetNamespace",)),
                    f"the release name `{name}` has {len(name)} characters, more than {RELEASE_NAME}",
                    "Flux would shorten it to a name with a hash, and Helm's own tools would not find it",
                    f"set `release.releaseName: {self.header.object_name}`",
                )

    def _check_patches(self) -> None:
        """Warn of patches that fail where hooks are rendered apart: without a target a patch must find its object."""
        for index, renderer in enumerate(self.definition.service.post_renderers):
            assert isinstance(renderer, Mapping)
            patches = paths.find(renderer, ("kustomize", "patches"))
            for number, patch in enumerate(patches.items if type(patches) is Sequence else ()):
                if type(patch) is Mapping and patch.get("target") is None:
                    self.report.warn(
                        "R604",
                        patch,
                        f"`postRenderers[{index}].kustomize.patches[{number}]` needs a `target` beside image overrides",
                        cause="hooks pass the post-renderers apart (`separate`), and a patch that finds nothing fails",
                        hint="add `target: {kind: …, name: …}`, with which a patch may find nothing",
                    )

    def _check_hooks(self, spec: dict[str, Any]) -> None:
        """Warn where a release that carries the table keeps its hooks from it."""
        if not self.carries_table or plain(spec.get("postRenderStrategy")) != "nohooks":
            return
        written = self._written(("postRenderStrategy",))
        self.report.items.append(
            written.source.fault(
                "R604",
                written.node,
                f"`{written.field}: nohooks` keeps image overrides from hooks",
                cause="a migration Job of the chart keeps its image",
                hint="remove it; `separate` is written where there are overrides",
                severity="warning",
            )
        )


def _depth(node: Node | None, path: Path) -> int:
    """Return how many steps of a path a tree holds."""
    for depth in range(len(path), 0, -1):
        if paths.find(node, path[:depth]) is not None:
            return depth
    return 0


def _is_null(spec: Any, path: Path) -> bool:
    """Whether a plain spec says `null` at a path."""
    for key in path[:-1]:
        spec = spec.get(key) if isinstance(spec, dict) else None
    return isinstance(spec, dict) and path[-1] in spec and spec[path[-1]] is None


def _without_other_strategy(weak: dict[str, Any], strong: Any) -> dict[str, Any]:
    """Return the weaker part of a spec without each strategy that the stronger part replaces by one of another name.

    A strategy is told by its name, and only RetryOnFailure takes a `retryInterval`.
    """
    for action in ("install", "upgrade"):
        after = _strategy_name(strong, action)
        if after is not None and _strategy_name(weak, action) not in (None, after):
            weak = {**weak, action: {key: value for key, value in _entries(weak[action]) if key != "strategy"}}
    return weak


def _strategy_name(part: Any, action: str) -> Any:
    for key in (action, "strategy", "name"):
        if isinstance(part, dict):
            part = part.get(key)
        else:
            part = dict(_entries(part)).get(key) if isinstance(part, Mapping) else None
    return plain(part)
