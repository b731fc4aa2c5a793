"""The charts of all releases in, what each definition says of its chart and what the platform file names out.

A source object becomes a named source of the platform, or the service's own, where the platform file can say all that
the object says. One that is not among what was read, that says more, or that is used in a way of its own stays what it
is: the service names it as a source that exists.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from render.diff_nodes import meaning
from render.flux.api import OBJECTS
from render.flux.cadence import CadenceError, cadence
from render.flux.versions import FluxVersion
from render.importing.convert import without
from render.importing.reading import SOURCE, Found, Repository
from render.model.read import Reader, compile_schema
from render.plan.chart_rules import form_of
from render.plan.sources import CHART_LAYER, plain
from render.yaml.source import Mapping, Node, Scalar, Source

_EXACT = re.compile(r"v?[0-9]+\.[0-9]+\.[0-9]+(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?\Z")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+-]{0,127}\Z")
_WILDCARD = re.compile(r"(?:\A|\.)[xX](?:\.|\Z)")
_KEY = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?\Z")
_FLOW = ("interval", "reconcileStrategy", "ignoreMissingValuesFiles", "verify")

KNOWN = {
    "HelmRepository": ("interval", "url", "secretRef", "certSecretRef", "type"),
    "OCIRepository": (
        *("interval", "url", "provider", "layerSelector", "ref", "secretRef", "certSecretRef", "insecure", "verify"),
        "timeout",
    ),
    "GitRepository": ("interval", "url", "provider", "ref", "secretRef", "verify", "timeout"),
}
"""Fields of a source that a platform file can say, or that say what holds without them."""

Key = tuple[str, str, str]
"""Kind, namespace and name of a source."""


@dataclass(slots=True)
class Use:
    """What a release says of its chart."""

    kind: str
    name: str
    namespace: str
    """Of the source."""
    chart: str | None = None
    version: str | None = None
    values_files: Node | None = None
    followed: list[tuple[Scalar, Node]] = field(default_factory=list)
    """How the chart is followed: entries of `release.chart.spec`."""
    metadata: Node | None = None
    notes: list[str] = field(default_factory=list)
    is_folded: bool = False
    """Whether a HelmChart object was folded into the release."""
    source: Found | None = None

    @property
    def key(self) -> Key:
        """The source's identity."""
        return (self.kind, self.namespace, self.name)


def use_of(spec: Mapping, namespace: str, charts: dict[tuple[str, str], Found]) -> Use | None:
    """Return a release's use of its chart; None without any."""
    reference = spec.get("chartRef")
    if type(reference) is Mapping:
        kind, name = reference.text("kind") or "", reference.text("name") or ""
        where = reference.text("namespace") or namespace
        folded = charts.get((where, name)) if kind == "HelmChart" else None
        if folded is not None:
            inner = folded.get("spec")
            if type(inner) is Mapping and not set(_names(inner)) - set(_FOLDED):
                made = _of_chart(inner, where, namespace)
                if made is not None:
                    made.is_folded = True
                    made.notes.append(f"the {folded} is folded into the release, which makes its own")
                    return made
        return Use(kind, name, where) if name else None
    chart = spec.get("chart")
    inner = chart.get("spec") if type(chart) is Mapping else None
    if type(chart) is not Mapping or type(inner) is not Mapping:
        return None
    made = _of_chart(inner, namespace, namespace)
    if made is not None:
        made.metadata = chart.get("metadata")
        interval = inner.text("interval")
        if interval is not None and _same_time(interval, spec.text("interval")):
            made.followed = [one for one in made.followed if one[0].text != "interval"]
    return made


_FOLDED = ("chart", "version", "sourceRef", "valuesFiles", *_FLOW)


def _names(node: Mapping) -> list[str]:
    return [key.text for key, _ in node.entries]


def _of_chart(inner: Mapping, default: str, namespace: str) -> Use | None:
    reference = inner.get("sourceRef")
    if type(reference) is not Mapping:
        return None
    kind, name = reference.text("kind") or "", reference.text("name") or ""
    made = Use(kind, name, reference.text("namespace") or default)
    made.chart, made.version = inner.text("chart"), inner.text("version")
    files = inner.get("valuesFiles")
    made.values_files = None if type(files) is Scalar else files
    made.followed = [(key, value) for key, value in inner.entries if key.text in _FLOW and not _is_null(value)]
    if kind in ("GitRepository", "Bucket"):
        if made.version not in (None, "*"):
            made.notes.append(f"`chart.spec.version` is left out: Flux ignores it for a {kind}")
        made.version = None
        strategy = inner.text("reconcileStrategy")
        made.followed = [one for one in made.followed if one[0].text not in ("reconcileStrategy", "verify")]
        if strategy != "Revision":
            # A chart from Git is rendered with `Revision`, unless the release says otherwise.
            made.followed.append((Scalar("reconcileStrategy", ""), Scalar("ChartVersion", "")))
    else:
        made.followed = [o for o in made.followed if o[0].text != "reconcileStrategy" or _text(o[1]) != "ChartVersion"]
    del namespace
    return made if name and kind else None


def _is_null(node: Node) -> bool:
    return type(node) is Scalar and node.is_null


def _text(node: Node) -> str | None:
    return node.text if type(node) is Scalar else None


def _same_time(one: str, other: str | None) -> bool:
    if other is None or one == other:
        return one == other
    try:
        return cadence(one) == cadence(other)
    except CadenceError:
        return False


@dataclass(slots=True)
class Settled:
    """What becomes of a release's chart."""

    chart: dict[str, Any]
    """`source.chart` of the definition."""
    identity: Key
    """The source that the release is rendered with."""
    is_rendered: bool
    """Whether the catalog brings the source."""
    entry: str | None = None
    """The platform's name for it."""


class Sources:
    """Decides on the sources of a repository's charts."""

    def __init__(self, repository: Repository, flux: FluxVersion, flux_namespace: str, interval: str) -> None:
        self.repository = repository
        self.flux = flux
        self.flux_namespace = flux_namespace
        self.interval = interval
        self.crosses = True
        self.entries: dict[str, dict[str, Any]] = {}
        """`charts` of the platform file: those that are there, and those that are needed."""
        self.added: dict[str, dict[str, Any]] = {}
        self.by_key: dict[Key, Found] = {}
        self.charts: dict[tuple[str, str], Found] = {}
        self.by_name: dict[tuple[str, str], list[Found]] = {}
        for found in repository.of_kind(SOURCE, "HelmRepository", "OCIRepository", "GitRepository", "Bucket"):
            self.by_key.setdefault((found.kind, found.namespace or "", found.name), found)
            self.by_name.setdefault((found.kind, found.name), []).append(found)
        for found in repository.of_kind(SOURCE, "HelmChart"):
            self.charts[(found.namespace or "", found.name)] = found
        self.users: dict[int, list[str]] = {}
        """Services of each source, by the source's identity as a Python object."""

    def find(self, use: Use, release: Found) -> Found | None:
        """Return the source object that a release uses; None when it is not among what was read.

        Of objects whose namespace nothing tells, the nearest is meant: in the file, in the folder, else the only one.
        """
        listed = self.by_name.get((use.kind, use.name), ())
        fitting = [one for one in listed if one.namespace in (None, use.namespace)]
        for near in (
            [one for one in fitting if one.file is release.file],
            [one for one in fitting if one.file.folder == release.file.folder],
            [one for one in fitting if one.namespace is not None],
            fitting,
        ):
            if len(near) == 1:
                return near[0]
        return self.by_key.get(use.key)

    def enter(self, uses: Iterable[tuple[str, Found, Use]]) -> None:
        """Find the source of each service's chart; `uses` are services, their releases and what these use."""
        for service, release, use in uses:
            use.source = self.find(use, release)
            if use.source is not None:
                self.users.setdefault(id(use.source), []).append(service)

    def settle(self, uses: Iterable[tuple[str, str, Use, Found]]) -> dict[str, Settled]:
        """Return what becomes of each service's chart.

        `uses` are services, the namespaces and what is used of their releases, and these.
        """
        listed = list(uses)
        by_url: dict[str, set[int]] = {}
        for _, _, use, _ in listed:
            if use.source is not None and use.kind == "OCIRepository" and (url := use.source.text("spec", "url")):
                by_url.setdefault(url.rstrip("/"), set()).add(id(use.source))
        return {one[0]: self._settle(*one, by_url) for one in listed}

    def _settle(self, service: str, namespace: str, use: Use, release: Found, by_url: dict[str, set[int]]) -> Settled:
        chart = _version_of(use)
        found = use.source
        users = self.users.get(id(found), [])
        is_own = found is not None and found.name == service and found.namespace == namespace and len(users) == 1
        # A source of the service's own gets its labels and annotations.
        if found is None or not self._is_said(found, release if is_own else None):
            return self._existing(use, chart)
        if use.kind == "GitRepository":
            is_ours = found.namespace == self.flux_namespace and found.name == self.flux_namespace
            if len(users) > 1 or is_ours:
                return self._existing(use, chart)
            entry = self._origin(found)
            entry["git"] = entry.pop("url")
            ref = found.get("spec", "ref")
            chart = {**entry, "path": use.chart, "ref": ref if ref is not None else {"branch": "master"}}
            if use.values_files is not None:
                chart["valuesFiles"] = use.values_files
            return Settled(chart, ("GitRepository", namespace, service), True)
        if use.kind == "HelmRepository":
            if is_own and namespace != self.flux_namespace:
                return Settled({**self._origin(found), **chart}, use.key, True)
            key = self._named(found, self._origin(found))
            where = self.flux_namespace if self.crosses else namespace
            return Settled({"repository": key, **chart}, ("HelmRepository", where, key), True, key)
        return self._oci(service, namespace, found, by_url)

    def _oci(self, service: str, namespace: str, found: Found, by_url: dict[str, set[int]]) -> Settled:
        versions = _oci_version(found)
        origin = self._origin(found)
        users = self.users[id(found)]
        twins = [] if self.crosses else self.by_name[(found.kind, found.name)]
        is_common = len(users) > 1 or found.namespace == self.flux_namespace or _are_alike(twins)
        shares = "version" in versions and is_common
        if shares and found.name != service:
            key = self._named(found, {**origin, **versions})
            where = self.flux_namespace if self.crosses else namespace
            return Settled({"repository": key}, ("OCIRepository", where, key), True, key)
        own = ("OCIRepository", namespace, service)
        if len(by_url[str(origin["url"])]) > 1:
            key = self._named(found, origin)
            return Settled({"repository": key, **versions}, own, True, key)
        return Settled({**origin, **versions}, own, True)

    def _existing(self, use: Use, chart: dict[str, Any]) -> Settled:
        reference = {"kind": use.kind, "name": use.name, "namespace": use.namespace}
        if use.kind in ("GitRepository", "Bucket"):
            chart["path"] = chart.pop("name", None)
        return Settled({"existingSource": reference, **chart}, use.key, False)

    def _named(self, found: Found, entry: dict[str, Any]) -> str:
        """Return the platform's name of a source, which is there or is entered."""
        for key, there in self.entries.items():
            if _describes(there, entry, self.interval):
                return key
        key = found.name if _KEY.match(found.name) else re.sub(r"[^a-z0-9]+", "-", found.name.lower()).strip("-")
        if key in self.entries and found.namespace:
            key = f"{key}-{found.namespace}"
        base, number = key or "charts", 2
        while key in self.entries:
            key, number = f"{base}-{number}", number + 1
        self.entries[key] = self.added[key] = entry
        return key

    def _origin(self, found: Found) -> dict[str, Any]:
        """Return how a source is reached, as a platform file or a definition says it."""
        spec = found.get("spec")
        assert type(spec) is Mapping
        made: dict[str, Any] = {
            "url": (spec.text("url") or "").rstrip("/") if found.kind != "HelmRepository" else spec.text("url")
        }
        for name in ("secretRef", "certSecretRef", "insecure", "provider", "verify", "interval"):
            value = spec.get(name)
            if value is None or _is_null(value):
                continue
            if name == "provider" and _text(value) == "generic":
                continue
            if name == "interval" and _text(value) == self.interval:
                continue
            if name == "insecure" and _text(value) == "false":
                continue
            made[name] = _text(value) if name in ("provider", "interval") else value
        return made

    def _is_said(self, found: Found, release: Found | None) -> bool:
        """Whether a platform file, or the service of a release, can say all that a source says."""
        spec, metadata = found.get("spec"), found.get("metadata")
        known = KNOWN.get(found.kind)
        if known is None or type(spec) is not Mapping or type(metadata) is not Mapping:
            return False
        if set(_names(metadata)) - {"name", "namespace", "creationTimestamp", "labels", "annotations"}:
            return False
        for name in ("labels", "annotations"):
            given = release.get("metadata", name) if release is not None else None
            if (plain(metadata.get(name)) or {}) != (plain(given) or {}):
                return False
        if set(_names(without(spec, "timeout", "type"))) - set(known) or spec.text("timeout") not in (
            None,
            "60s",
            "1m",
        ):
            return False
        url = spec.text("url")
        form = form_of(None, url) if found.kind == "GitRepository" else form_of(url, None)
        wanted = {"HelmRepository": "http", "OCIRepository": "oci", "GitRepository": "git"}[found.kind]
        if form != wanted or spec.text("type") not in (None, "default") or "${" in (url or ""):
            return False
        if found.kind == "OCIRepository":
            layer = spec.get("layerSelector")
            if layer is not None and plain(layer) != {"mediaType": CHART_LAYER, "operation": "copy"}:
                return False
            if not _oci_version(found):
                return False
        faults: list[Any] = []
        table = OBJECTS[found.kind]
        Reader(Source("", ""), faults).read(compile_schema({**table.spec, "required": []}), spec, "spec")
        return not faults and not table.rules(plain(spec), self.flux)


def _are_alike(twins: list[Found]) -> bool:
    """Whether several namespaces have the same source under one name."""
    specs = {meaning(spec) for one in twins if (spec := one.get("spec")) is not None}
    return len(twins) > 1 and len(specs) == 1


def _version_of(use: Use) -> dict[str, Any]:
    """Return what a definition says of a chart in a source of many."""
    if use.chart is None:
        return {}
    made: dict[str, Any] = {"name": use.chart}
    if use.kind == "HelmRepository":
        version = use.version or "*"
        is_exact = _EXACT.match(version) or "${" in version
        made["version" if is_exact else "versionRange"] = version
    if use.values_files is not None:
        made["valuesFiles"] = use.values_files
    return made


def _oci_version(found: Found) -> dict[str, Any]:
    """Return the version of an OCI source; empty when a definition cannot say it."""
    ref = found.get("spec", "ref")
    if ref is None or _is_null(ref):
        return {"version": "latest"}
    if type(ref) is not Mapping:
        return {}
    names = set(_names(ref))
    tag, digest, semver = ref.text("tag"), ref.text("digest"), ref.text("semver")
    if names == {"semver"} and semver is not None:
        return {"versionRange": semver}
    if tag is None or names - {"tag", "digest"} or not _TAG.match(tag) or "+" in tag or _WILDCARD.search(tag):
        return {"version": tag} if tag is not None and "${" in tag and names == {"tag"} else {}
    return {"version": f"{tag}@{digest}" if digest else tag}


def _describes(there: dict[str, Any], entry: dict[str, Any], interval: str) -> bool:
    """Whether an entry of the platform file says what is needed."""
    ours = ("at", "shape", "name")
    one = {key: plain(value) for key, value in there.items() if key not in ours and value is not None}
    other = {key: plain(value) for key, value in entry.items()}
    for said in (one, other):
        if "interval" in said and said["interval"] == interval:
            del said["interval"]
        if "url" in said:
            said["url"] = str(said["url"]).rstrip("/")
    return one == other and there.get("name") is None
