"""A service's chart and the platform's named sources in, the source object and the release's reference to it out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from render.catalog import Definition
from render.flux.api import OBJECTS
from render.flux.semver import Constraint, RangeError
from render.plan import paths
from render.plan.context import Context, Report, node_at
from render.yaml.source import Mapping, Node

if TYPE_CHECKING:
    from render.model.platform import ChartSource
    from render.model.service import Chart

CHART_LAYER = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
"""Media type of the layer that holds a chart, which OCIRepository copies as it is."""


@dataclass(frozen=True, slots=True)
class SourcePlan:
    """A source object: its template, its name and what it says."""

    template: str
    kind: str
    name: str
    namespace: str
    spec: dict[str, Any]
    shared: str | None
    """The platform's key, when services share the object."""


@dataclass(frozen=True, slots=True)
class ChartPlan:
    """Where a release takes its chart from."""

    source: SourcePlan
    chart: dict[str, Any] | None
    """`spec.chart`, for HelmRepository and GitRepository."""
    chart_ref: dict[str, Any] | None
    """`spec.chartRef`, for OCIRepository."""


class Charts:
    """Plans the chart of one service."""

    def __init__(self, context: Context, definition: Definition, report: Report) -> None:
        self.context = context
        self.definition = definition
        self.report = report
        self.node = paths.find(definition.root, ("source", "chart"))

    def entry(self) -> ChartSource | None:
        """Return the platform's entry that the chart names; reports an unknown name."""
        source = self.definition.service.source
        if source is None or source.chart is None or source.chart.repository is None:
            return None
        key = source.chart.repository
        entry = self.context.platform.charts.get(key)
        if entry is None:
            import difflib

            close = difflib.get_close_matches(key, self.context.platform.charts, 1)
            self.report.error(
                "R204",
                node_at(self.node, "repository"),
                f"the chart source `{key}` is not in the platform file",
                cause=f"`{self.context.file.label}` names the sources under `charts`",
                hint=f"use `{close[0]}`" if close else "add it under `charts`, or give the chart's `url` here",
            )
        return entry

    def plan(self, name: str, namespace: str, entry: ChartSource | None) -> ChartPlan | None:
        """Return the chart's plan; None after reporting."""
        chart = self.definition.service.source.chart if self.definition.service.source else None
        assert chart is not None
        if not self._is_one_form(chart):
            return None
        if chart.repository is not None and entry is None:
            return None
        url, git = (entry.url, entry.git) if entry else (chart.url, chart.git)
        if git is not None:
            return self._git(name, namespace, chart, entry, git)
        assert url is not None
        if url.startswith("oci://"):
            return self._oci(name, namespace, chart, entry, url)
        return self._http(name, namespace, chart, entry, url)

    def _is_one_form(self, chart: Chart) -> bool:
        forms = [form for form in ("repository", "url", "git") if getattr(chart, form) is not None]
        if len(forms) == 1:
            if chart.url is not None and not chart.url.startswith(("oci://", "https://", "http://")):
                self.report.error(
                    "R204",
                    node_at(self.node, "url"),
                    f"`source.chart.url` must begin with `oci://` or `https://`, not `{chart.url}`",
                    hint="write the scheme; a chart in a Git repository goes under `git`",
                )
                return False
            return True
        named = " and ".join(f"`{form}`" for form in forms) or "none of them"
        self.report.error(
            "R204",
            self.node,
            f"`source.chart` must have one of `repository`, `url` and `git`, and has {named}",
            hint="name a chart source of the platform, or give one address",
        )
        return False

    def _version(self, chart: Chart, entry: ChartSource | None) -> tuple[str | None, str | None] | None:
        """Return exact version and range, of which one is set; None after reporting."""
        exact, ranged = chart.version, chart.version_range
        if exact is None and ranged is None and entry is not None:
            exact, ranged = entry.version, entry.version_range
        elif entry is not None and entry.version is not None and exact is not None and exact != entry.version:
            self.report.error(
                "R204",
                node_at(self.node, "version"),
                f"`{chart.repository}` is version `{entry.version}` for every service, not `{exact}`",
                cause="an entry of the platform with a `version` is one source that its services share",
                hint="remove `version` here, or there",
            )
            return None
        if exact is not None and ranged is not None:
            self.report.error(
                "R204", self.node, "a chart has either `version` or `versionRange`", hint="remove one of the two"
            )
            return None
        if exact is None and ranged is None:
            self.report.error(
                "R102",
                self.node,
                "`source.chart` needs the field `version`",
                cause="without it Flux takes the newest chart, and upgrades by itself",
                hint='add `version: "…"`, or say `versionRange` if that is wanted',
            )
            return None
        if exact is not None and not self._is_exact(exact):
            return None
        if ranged is not None:
            try:
                Constraint.parse(ranged)
            except RangeError as error:
                self.report.error(
                    "R701",
                    node_at(self.node, "versionRange"),
                    f"`versionRange` is no range: {error}",
                    hint="correct it",
                )
                return None
        return exact, ranged

    def _is_exact(self, version: str) -> bool:
        body, _, digest = version.partition("@")
        if all(c.isalnum() or c in "._+-" for c in body) and "x" not in body.split(".") and body:
            return True
        self.report.error(
            "R204",
            node_at(self.node, "version"),
            f"`source.chart.version` must be one exact version, not `{version}`",
            cause="a range lets the cluster change the chart without a commit",
            hint=f'write one version, or `versionRange: "{version}"`'
            if not digest
            else "write `VERSION` or `VERSION@sha256:…`",
        )
        return False

    def _common(self, chart: Chart, entry: ChartSource | None, url: str) -> dict[str, Any]:
        """Return the fields that every kind of source has."""
        origin: Any = entry or chart
        made: dict[str, Any] = {"interval": origin.interval or self.context.platform.defaults.interval, "url": url}
        return made

    def _access(self, chart: Chart, entry: ChartSource | None, url: str) -> dict[str, Any] | None:
        """Return credentials: the source's own, else those of its registry."""
        origin: Any = entry or chart
        made: dict[str, Any] = {
            "provider": origin.provider,
            "secretRef": origin.secret_ref and {"name": origin.secret_ref.name},
            "certSecretRef": origin.cert_secret_ref and {"name": origin.cert_secret_ref.name},
            "insecure": origin.insecure,
        }
        if any(value is not None for value in made.values()):
            return made
        found = credentials_of(self.context, url.partition("://")[2], self.report, self.node)
        if found is None:
            return None
        return {**made, **found}

    def _oci(self, name: str, namespace: str, chart: Chart, entry: ChartSource | None, url: str) -> ChartPlan | None:
        chart_name = chart.name or (entry.name if entry else None)
        if chart_name:
            url = f"{url.rstrip('/')}/{chart_name}"
        versions = self._version(chart, entry)
        access = self._access(chart, entry, url)
        if versions is None or access is None or not self._no_values_files(chart, "an OCI chart"):
            return None
        exact, ranged = versions
        ref: dict[str, Any]
        if exact is not None:
            tag, _, digest = exact.partition("@")
            # OCI tags cannot hold `+`; Helm pushes `_` in its place.
            ref = {"tag": _quoted(tag.replace("+", "_")), "digest": _quoted(digest) if digest else None}
        else:
            ref = {"semver": _quoted(ranged or "")}
        spec = {
            **self._common(chart, entry, url),
            "provider": access["provider"],
            "layerSelector": {"mediaType": _quoted(CHART_LAYER), "operation": "copy"},
            "ref": ref,
            "secretRef": access["secretRef"],
            "certSecretRef": access["certSecretRef"],
            "insecure": access["insecure"],
            "verify": (entry or chart).verify,
        }
        has_own_chart = entry is not None and chart.name not in (None, entry.name)
        shared = chart.repository if entry is not None and entry.version is not None and not has_own_chart else None
        source = self._source("ocirepository", "OCIRepository", name, namespace, spec, shared)
        ref_namespace = source.namespace if source.namespace != namespace else None
        chart_ref = {"kind": "OCIRepository", "name": source.name, "namespace": ref_namespace}
        return ChartPlan(source, None, chart_ref) if self._is_valid(source) else None

    def _http(self, name: str, namespace: str, chart: Chart, entry: ChartSource | None, url: str) -> ChartPlan | None:
        chart_name = chart.name or (entry.name if entry else None)
        versions = self._version(chart, entry)
        access = self._access(chart, entry, url)
        if chart_name is None:
            self.report.error(
                "R102",
                self.node,
                "`source.chart` needs the field `name`",
                cause="a Helm repository holds many charts",
                hint="add `name: …`",
            )
        if versions is None or chart_name is None or access is None:
            return None
        exact, ranged = versions
        # `insecure` and `provider` are for OCI only.
        spec = {
            **self._common(chart, entry, url),
            "secretRef": access["secretRef"],
            "certSecretRef": access["certSecretRef"],
        }
        source = self._source("helmrepository", "HelmRepository", name, namespace, spec, chart.repository)
        reference = {"kind": "HelmRepository", "name": source.name}
        if source.namespace != namespace:
            reference["namespace"] = source.namespace
        made = {
            "chart": chart_name,
            "version": _quoted(exact or ranged or ""),
            "sourceRef": reference,
            "valuesFiles": chart.values_files,
        }
        return ChartPlan(source, {"spec": made}, None) if self._is_valid(source) else None

    def _git(self, name: str, namespace: str, chart: Chart, entry: ChartSource | None, url: str) -> ChartPlan | None:
        path = chart.path or (entry.path if entry else None)
        ref: Any = chart.ref or (entry.ref if entry else None)
        missing = [field for field, value in (("path", path), ("ref", ref)) if value is None]
        for field in missing:
            cause = (
                "without `ref` Flux takes the branch `master`"
                if field == "ref"
                else "the chart is a folder of the repository"
            )
            example = "{tag: v1.2.3}" if field == "ref" else "charts/name"
            self.report.error(
                "R102",
                self.node,
                f"`source.chart` needs the field `{field}`",
                cause=cause,
                hint=f"add `{field}: {example}`",
            )
        if missing:
            return None
        access = self._access(chart, entry, url)
        if access is None:
            return None
        spec = {
            **self._common(chart, entry, url),
            "provider": access["provider"],
            "ref": ref,
            "secretRef": access["secretRef"],
            "verify": (entry or chart).verify,
        }
        source = self._source("gitrepository", "GitRepository", name, namespace, spec, None)
        reference = {"kind": "GitRepository", "name": source.name}
        made = {
            "chart": path,
            "sourceRef": reference,
            "reconcileStrategy": "Revision",
            "valuesFiles": chart.values_files,
        }
        return ChartPlan(source, {"spec": made}, None) if self._is_valid(source) else None

    def _no_values_files(self, chart: Chart, what: str) -> bool:
        if chart.values_files is None:
            return True
        self.report.error(
            "R204",
            node_at(self.node, "valuesFiles"),
            f"`valuesFiles` does not go with {what}",
            cause="`chartRef` has no such field",
            hint="put the values under `values`",
        )
        return False

    def _source(
        self, template: str, kind: str, name: str, namespace: str, spec: dict[str, Any], shared: str | None
    ) -> SourcePlan:
        if shared is None:
            return SourcePlan(template, kind, name, namespace, spec, None)
        if self.context.platform.flux.cross_namespace_refs:
            namespace = self.context.flux_namespace
        return SourcePlan(template, kind, shared, namespace, spec, shared)

    def _is_valid(self, source: SourcePlan) -> bool:
        """Check the source object against its API; faults are shown at the chart."""
        problems = OBJECTS[source.kind].rules(plain(source.spec), self.context.flux)
        for problem in problems:
            self.report.error(
                "R401", node_at(self.node, *problem.path), problem.message, cause=problem.cause, hint=problem.hint
            )
        return not problems


def credentials_of(context: Context, image: str, report: Report, node: Node | None) -> dict[str, Any] | None:
    """Return the access fields for an image or URL path (empty without credentials); None after reporting a tie."""
    found = context.credentials(image)
    if len(found) > 1:
        place = context.file.source.place(context.file.root.get("registries"))
        report.error(
            "R606",
            node,
            f"two entries of `registries.credentials` match `{image}` equally",
            cause=f"both name the registry `{found[0].registry.rstrip('/')}`",
            hint="remove one of them, or give one a longer path",
            related=((place, "the platform's registries"),),
        )
        return None
    if not found:
        return dict.fromkeys(("provider", "secretRef", "certSecretRef", "insecure"))
    entry = found[0]
    return {
        "provider": entry.provider,
        "secretRef": entry.secret_ref and {"name": entry.secret_ref.name},
        "certSecretRef": entry.cert_secret_ref and {"name": entry.cert_secret_ref.name},
        "insecure": entry.insecure,
    }


def _quoted(text: str) -> Any:
    from render.yaml.emit import Marked

    return Marked(text)


def plain(value: Any) -> Any:
    """Return a value of ours, or a source node, as plain data for the rules of the API tables."""
    from render.yaml.emit import Commented, Marked
    from render.yaml.source import Scalar, Sequence

    kind = type(value)
    if kind is Marked:
        return value.text
    if kind is Commented:
        return plain(value.value)
    if kind is dict:
        return {key: plain(inner) for key, inner in value.items() if inner is not None}
    if kind is list:
        return [plain(inner) for inner in value]
    if kind is Mapping:
        return {key.text: plain(inner) for key, inner in value.entries}
    if kind is Sequence:
        return [plain(inner) for inner in value.items]
    if kind is Scalar:
        return _plain_scalar(value)
    return value


def _plain_scalar(node: Any) -> Any:
    if node.style:
        return node.text
    if node.is_null:
        return None
    if node.text in ("true", "True", "TRUE"):
        return True
    if node.text in ("false", "False", "FALSE"):
        return False
    body = node.text.removeprefix("-")
    return int(node.text) if body.isdigit() and body.isascii() and (body == "0" or body[0] != "0") else node.text
