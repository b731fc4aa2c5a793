"""A service's chart and the platform's named sources in, the source object and the release's reference to it out."""

from __future__ import annotations

from render.catalog import Definition
from render.flux.api import OBJECTS
from render.plan import paths
from render.plan.chart_rules import ACCESS, ChartRules, Form, form_of
from render.plan.context import Context, Report, node_at
from render.structs import struct
from render.yaml.emit import Commented, Marked
from render.yaml.source import Mapping, Scalar, Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from render.model.platform import ChartSource
    from render.model.service import Chart, ExistingSource

CHART_REF_KINDS = ("OCIRepository", "HelmChart", "ExternalArtifact")
"""Source objects that are one chart, which a release names under `chartRef`."""

_Versions = tuple[str | None, str | None]
"""Exact version and range, of which one is set."""

CHART_LAYER = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
"""Media type of the layer that holds a chart, which OCIRepository copies as it is."""


@struct(frozen=True)
class SourcePlan:
    """A source object: its template, its name and what it says."""

    template: str
    kind: str
    name: str
    namespace: str
    spec: dict[str, Any]
    shared: str | None
    """The platform's key, when services share the object."""


@struct(frozen=True)
class ChartPlan:
    """Where a release takes its chart from."""

    source: SourcePlan | None
    """None for a source that the catalog does not bring."""
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
        self.rules = ChartRules(report, self.node, "source.chart")

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
        if not self._has_one_address(chart) or (chart.repository is not None and entry is None):
            return None
        if chart.existing_source is not None:
            return self._existing(namespace, chart, chart.existing_source)
        if entry is not None:
            form = form_of(entry.url, entry.git)
            # What is wrong with the entry is reported in its own file.
            if form is None or not self._leaves_access(chart):
                return None
        else:
            form = self.rules.form(chart.url, chart.git)
        if form is None or not self.rules.fields(form):
            return None
        if form == "git":
            return self._git(name, namespace, chart, entry)
        versions = self._version(chart, entry, form)
        make = self._oci if form == "oci" else self._http
        return make(name, namespace, chart, entry, versions) if versions is not None else None

    def _has_one_address(self, chart: Chart) -> bool:
        addresses = {
            "repository": chart.repository,
            "url": chart.url,
            "git": chart.git,
            "existingSource": chart.existing_source,
        }
        given = [field for field, value in addresses.items() if value is not None]
        if len(given) == 1:
            return True
        named = " and ".join(f"`{field}`" for field in given) or "none of them"
        self.report.error(
            "R204",
            node_at(self.node, given[-1]) if given else self.node,
            f"`source.chart` must have one of `repository`, `url`, `git` and `existingSource`, and has {named}",
            hint="keep one of them" if given else "name a chart source of the platform, or give one address",
        )
        return False

    def _leaves_access(self, chart: Chart) -> bool:
        """Whether a service that names a source of the platform leaves it to the platform how that is reached."""
        given = [field for field in ACCESS if self._is_given(field)]
        for field in given:
            self.report.error(
                "R204",
                node_at(self.node, field),
                f"`source.chart.{field}` does not go with `repository`",
                cause=f"`charts.{chart.repository}` of the platform file says how the source is reached",
                hint="write it there, or give the chart's address here",
            )
        return not given

    def _is_given(self, field: str) -> bool:
        value = self.node.get(field) if type(self.node) is Mapping else None
        return value is not None and not (type(value) is Scalar and value.is_null)

    def _version(self, chart: Chart, entry: ChartSource | None, form: Form) -> _Versions | None:
        """Return exact version and range, of which one is set; None after reporting."""
        exact, ranged = chart.version, chart.version_range
        if exact is not None or ranged is not None:
            if not self.rules.version(form, exact, ranged):
                return None
            if entry is not None and entry.version is not None and exact != entry.version:
                self.report.error(
                    "R204",
                    node_at(self.node, "version" if exact is not None else "versionRange"),
                    f"`{chart.repository}` is version `{entry.version}` for every service, not `{exact or ranged}`",
                    cause="an entry of the platform with a `version` is one source that its services share",
                    hint="remove it here, or there",
                )
                return None
            return exact, ranged
        if entry is not None and (entry.version is not None or entry.version_range is not None):
            return entry.version, entry.version_range
        self.report.error(
            "R102",
            self.node,
            "`source.chart` needs the field `version`",
            cause="without it Flux takes the newest chart, and upgrades by itself",
            hint='add `version: "…"`, or say `versionRange` if that is wanted',
        )
        return None

    def _common(self, chart: Chart, entry: ChartSource | None, url: str) -> dict[str, Any]:
        """Return the fields that every kind of source has."""
        origin: Any = entry or chart
        return {"interval": origin.interval or self.context.platform.defaults.interval, "url": url}

    def _access(self, chart: Chart, entry: ChartSource | None) -> dict[str, Any]:
        """Return the credentials that the source names itself."""
        origin: Any = entry or chart
        return {
            "provider": origin.provider,
            "secretRef": origin.secret_ref and {"name": origin.secret_ref.name},
            "certSecretRef": origin.cert_secret_ref and {"name": origin.cert_secret_ref.name},
            "insecure": origin.insecure,
        }

    def _oci(
        self, name: str, namespace: str, chart: Chart, entry: ChartSource | None, versions: _Versions
    ) -> ChartPlan | None:
        exact, ranged = versions
        url = str(entry.url if entry else chart.url).rstrip("/")
        chart_name = chart.name or (entry.name if entry else None)
        if chart_name:
            url = f"{url}/{chart_name}"
        access = self._access(chart, entry)
        if all(value is None for value in access.values()):
            access = registry_access(self.context, url.partition("://")[2])
        ref: dict[str, Any]
        if exact is not None:
            tag, _, digest = exact.partition("@")
            # OCI tags cannot hold `+`; Helm pushes `_` in its place.
            ref = {"tag": Marked(tag.replace("+", "_")), "digest": Marked(digest) if digest else None}
        else:
            ref = {"semver": Marked(ranged or "")}
        spec = {
            **self._common(chart, entry, url),
            "provider": access["provider"],
            "layerSelector": {"mediaType": Marked(CHART_LAYER), "operation": "copy"},
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
        return ChartPlan(source, None, chart_ref) if self._is_valid(source, chart.repository) else None

    def _http(
        self, name: str, namespace: str, chart: Chart, entry: ChartSource | None, versions: _Versions
    ) -> ChartPlan | None:
        chart_name = chart.name or (entry.name if entry else None)
        if chart_name is None:
            self.report.error(
                "R102",
                self.node,
                "`source.chart` needs the field `name`",
                cause="a Helm repository holds many charts",
                hint="add `name: …`",
            )
            return None
        exact, ranged = versions
        # Secrets of registries have another type than those of Helm repositories, so a source names its own.
        access = self._access(chart, entry)
        spec = {
            **self._common(chart, entry, str(entry.url if entry else chart.url)),
            "secretRef": access["secretRef"],
            "certSecretRef": access["certSecretRef"],
        }
        source = self._source("helmrepository", "HelmRepository", name, namespace, spec, chart.repository)
        reference = {"kind": "HelmRepository", "name": source.name}
        if source.namespace != namespace:
            reference["namespace"] = source.namespace
        made = {
            "chart": chart_name,
            "version": Marked(exact or ranged or ""),
            "sourceRef": reference,
            "valuesFiles": chart.values_files,
        }
        return ChartPlan(source, {"spec": made}, None) if self._is_valid(source, chart.repository) else None

    def _git(self, name: str, namespace: str, chart: Chart, entry: ChartSource | None) -> ChartPlan | None:
        path = chart.path or (entry.path if entry else None)
        ref: Any = chart.ref or (entry.ref if entry else None)
        missing = [field for field, value in (("path", path), ("ref", plain(ref) or None)) if value is None]
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
        access = self._access(chart, entry)
        spec = {
            **self._common(chart, entry, str(entry.git if entry else chart.git)),
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
        return ChartPlan(source, {"spec": made}, None) if self._is_valid(source, chart.repository) else None

    def _existing(self, namespace: str, chart: Chart, source: ExistingSource) -> ChartPlan | None:
        """Return the reference to a source object that something else brings."""
        by_ref, by_path = source.kind in CHART_REF_KINDS, source.kind in ("GitRepository", "Bucket")
        strange = ["ref", *ACCESS]
        strange += ["path"] if not by_path else ["name", "version", "versionRange"]
        strange += ["name", "version", "versionRange", "valuesFiles"] if by_ref else []
        given = [field for field in dict.fromkeys(strange) if self._is_given(field)]
        for field in given:
            is_said = by_ref or field == "ref" or field in ACCESS
            self.report.error(
                "R204",
                node_at(self.node, field),
                f"`source.chart.{field}` does not go with a {source.kind} that exists",
                cause="the object itself says it" if is_said else "it has no such field",
                hint="remove it",
            )
        needed = "path" if by_path else None if by_ref else "name"
        if needed is not None and not self._is_given(needed):
            given.append(needed)
            self.report.error(
                "R102",
                self.node,
                f"`source.chart` needs the field `{needed}`",
                cause="the source holds more than one chart",
                hint=f"add `{needed}: …`",
            )
        where = source.namespace if source.namespace != namespace else None
        if where is not None and not self.context.platform.flux.cross_namespace_refs:
            given.append("existingSource")
            self.report.error(
                "R204",
                node_at(self.node, "existingSource", "namespace"),
                f"the source `{source.name}` is in another namespace, `{where}`",
                cause="`flux.crossNamespaceRefs` is off: the controllers refuse the reference",
                hint="name a source of the service's namespace",
            )
        if given:
            return None
        reference = {"kind": source.kind, "name": source.name, "namespace": where}
        if by_ref:
            return ChartPlan(None, None, reference)
        made: dict[str, Any]
        if by_path:
            made = {"chart": chart.path, "sourceRef": reference, "reconcileStrategy": "Revision"}
        else:
            versions = self._version(chart, None, "http")
            if versions is None:
                return None
            made = {"chart": chart.name, "version": Marked(versions[0] or versions[1] or ""), "sourceRef": reference}
        return ChartPlan(None, {"spec": {**made, "valuesFiles": chart.values_files}}, None)

    def _source(
        self, template: str, kind: str, name: str, namespace: str, spec: dict[str, Any], shared: str | None
    ) -> SourcePlan:
        if shared is None:
            return SourcePlan(template, kind, name, namespace, spec, None)
        if self.context.platform.flux.cross_namespace_refs:
            namespace = self.context.flux_namespace
        return SourcePlan(template, kind, shared, namespace, spec, shared)

    def _is_valid(self, source: SourcePlan, key: str | None) -> bool:
        """Check the source object against its API; faults are shown where they were written."""
        problems = OBJECTS[source.kind].rules(plain(source.spec), self.context.flux)
        for problem in problems:
            origin, node = self.report.source, self.node
            if key is not None and not self._is_given(str(problem.path[0])):
                origin, node = self.context.file.source, node_at(self.context.file.root, "charts", key)
            place = node_at(node, *problem.path)
            self.report.failed = True
            self.report.items.append(
                origin.fault("R401", place, problem.message, cause=problem.cause, hint=problem.hint)
            )
        return not problems


def registry_access(context: Context, image: str) -> dict[str, Any]:
    """Return the access fields that the platform's credentials give an image or an OCI path; all None without any."""
    found = context.credentials(image)
    if not found:
        return dict.fromkeys(("provider", "secretRef", "certSecretRef", "insecure"))
    # Of two that match equally, which is reported in the platform file, any will do.
    entry = found[0]
    return {
        "provider": entry.provider,
        "secretRef": entry.secret_ref and {"name": entry.secret_ref.name},
        "certSecretRef": entry.cert_secret_ref and {"name": entry.cert_secret_ref.name},
        "insecure": entry.insecure,
    }


def plain(value: Any) -> Any:
    """Return a value of ours, or a source node, as plain data for the rules of the API tables."""
    kind = type(value)
    if value is None or kind is str or kind is bool or kind is int:
        return value
    if kind is Scalar:
        return _plain_scalar(value)
    if kind is dict:
        return {key: plain(inner) for key, inner in value.items() if inner is not None}
    if kind is Mapping:
        return {key.text: plain(inner) for key, inner in value.entries}
    if kind is list:
        return [plain(inner) for inner in value]
    if kind is Sequence:
        return [plain(inner) for inner in value.items]
    if kind is Marked:
        return value.text
    return plain(value.value) if kind is Commented else value


def _plain_scalar(node: Scalar) -> Any:
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
