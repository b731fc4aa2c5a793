"""Random HelmReleases, of every field of the v2 API: what is imported renders to itself."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from render.build import build
from render.flux.api import HELM_RELEASE_SPEC, OBJECTS, POST_RENDERER
from render.flux.api_schema import matches_pattern
from render.flux.versions import FluxVersion
from render.importing.importer import Imported, Target, import_repository
from render.model.text import STRINGS
from render.yaml import scalar
from render.yaml.emit import Emitter
from tests.hostile import keys, texts
from tests.project import objects
from tests.services import document, platforms, services
from tests.sound import built as built_from
from tests.sound import examples

FLUX = FluxVersion.parse("2.9")
NAMES = st.sampled_from(("web", "db", "cert-manager", "a"))
DURATIONS = st.sampled_from(("5m", "1h", "90s", "1h30m0s"))
TEXTS = texts().filter(scalar.is_carried)
KEYS = keys().filter(lambda key: bool(key) and scalar.is_carried(key))
"""Without what no kustomize build can write, which the compiler refuses."""
SCALARS: st.SearchStrategy[Any] = st.none() | st.booleans() | st.integers(-5, 10**7) | TEXTS
SOURCES = (
    {"kind": "HelmRepository", "name": "charts", "namespace": "flux-system"},
    {"kind": "HelmRepository", "name": "unknown", "namespace": "flux-system"},
    {"kind": "GitRepository", "name": "unknown"},
    {"kind": "Bucket", "name": "unknown", "namespace": "flux-system"},
)
REFERENCES = (
    {"kind": "OCIRepository", "name": "shared", "namespace": "flux-system"},
    {"kind": "OCIRepository", "name": "unknown"},
    {"kind": "HelmChart", "name": "unknown"},
    {"kind": "ExternalArtifact", "name": "unknown", "namespace": "other"},
)
SHARED = """\
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: charts, namespace: flux-system}
spec: {interval: 1h, url: https://charts.example.org}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: OCIRepository
metadata: {name: shared, namespace: flux-system}
spec:
  interval: 10m
  url: oci://ghcr.io/example/charts/shared
  layerSelector: {mediaType: application/vnd.cncf.helm.chart.content.v1.tar+gzip, operation: copy}
  ref: {tag: 1.2.3}
"""
IMAGES: st.SearchStrategy[Any] = st.sampled_from(
    (
        {"repository": "ghcr.io/example/web", "tag": "v1.2.3"},
        {"repository": "ghcr.io/example/web", "tag": "1.20"},
        {"repository": "web", "tag": "1.2.3@sha256:" + "a" * 64, "pullPolicy": "Always"},
        {"registry": "quay.io", "repository": "example/web", "tag": "v1"},
        {"registry": "quay.io", "repository": "example/web", "tag": "v1", "digest": "sha256:" + "b" * 64},
        {"repository": "ghcr.io/example/web", "tag": 41},
        {"repository": "ghcr.io/example/web", "tag": ""},
        {"name": "ghcr.io/example/web", "tag": "v1"},
        "ghcr.io/example/web:1.2.3",
        "busybox",
        "registry.example:5000/a/b@sha256:" + "c" * 64,
    )
)


def of_schema(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Draw what a table allows."""
    kind = schema.get("type")
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if kind == "boolean":
        return st.booleans()
    if kind == "integer":
        return st.integers(-1, 30)
    if kind == "string":
        return of_text(schema)
    if kind == "array":
        return st.lists(of_schema(schema["items"]), min_size=1, max_size=2)
    if kind == "object" and "properties" in schema:
        required = set(schema.get("required") or ())
        fields = {name: of_schema(inner) for name, inner in schema["properties"].items()}
        return st.fixed_dictionaries(
            {name: field for name, field in fields.items() if name in required},
            optional={name: field for name, field in fields.items() if name not in required},
        ).filter(bool)
    if kind == "object":
        return st.dictionaries(NAMES, TEXTS, min_size=1, max_size=2)
    return st.dictionaries(KEYS, values(), min_size=1, max_size=2)


def of_text(schema: dict[str, Any]) -> st.SearchStrategy[str]:
    pattern = schema.get("pattern", "")
    if "ms|s|m" in pattern:
        return DURATIONS.filter(lambda text: matches_pattern(pattern, text))
    if pattern:
        return st.sampled_from(("a.b", "values.yaml", "x", "a.list[0].c")).filter(
            lambda text: matches_pattern(pattern, text)
        )
    if "maxLength" in schema:
        return NAMES
    return TEXTS.filter(bool)


def values() -> st.SearchStrategy[Any]:
    """Draw values of a chart, images among them."""
    return st.recursive(
        SCALARS | IMAGES,
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(KEYS | st.sampled_from(("image", "app", "sidecar", "initImage")), inner, max_size=4)
        ),
        max_leaves=12,
    )


PLAIN = {
    name: of_schema(field)
    for name, field in HELM_RELEASE_SPEC["properties"].items()
    if name not in ("chart", "chartRef", "values", "interval", "dependsOn", "kubeConfig")
}
PATCHES = POST_RENDERER["properties"]["kustomize"]["properties"]["patches"]
OVERRIDES = st.sampled_from(
    (
        {"name": "docker.io/a/b", "newName": "registry.example.org/a/b"},
        {"name": "other", "newTag": "1.2.3"},
        {"name": "x/y", "newTag": "1.2.3", "digest": "sha256:" + "d" * 64},
    )
)
"""What the compiler takes for images: it refuses names that kustomize panics on."""
PLAIN["postRenderers"] = st.lists(
    st.fixed_dictionaries(
        {
            "kustomize": st.fixed_dictionaries(
                {}, optional={"patches": of_schema(PATCHES), "images": st.lists(OVERRIDES, min_size=1, max_size=2)}
            )
        }
    ),
    min_size=1,
    max_size=2,
)
DEPENDENCIES = st.lists(
    st.fixed_dictionaries({"name": NAMES}, optional={"namespace": st.sampled_from(("apps", "other"))}),
    max_size=2,
    unique_by=lambda one: (one["name"], one.get("namespace", "apps")),
)
CHART_SPEC = HELM_RELEASE_SPEC["properties"]["chart"]["properties"]["spec"]["properties"]


@st.composite
def specs(draw: st.DrawFn) -> dict[str, Any]:
    """Draw the spec of a HelmRelease that the API server takes."""
    spec: dict[str, Any] = {"interval": draw(DURATIONS)}
    if draw(st.booleans()):
        spec["chartRef"] = draw(st.sampled_from(REFERENCES))
    else:
        source = draw(st.sampled_from(SOURCES))
        chart = draw(
            st.fixed_dictionaries(
                {"chart": st.sampled_from(("web", "./charts/web"))},
                optional={
                    "version": st.sampled_from(("1.2.3", "v1.2.3", "1.x", "*", ">=1 <2", "${VERSION:=1.0.0}")),
                    "interval": DURATIONS,
                    "reconcileStrategy": st.sampled_from(("ChartVersion", "Revision")),
                    "valuesFiles": st.lists(st.sampled_from(("a.yaml", "b.yaml")), min_size=1, max_size=2),
                    "ignoreMissingValuesFiles": st.booleans(),
                    "verify": of_schema(CHART_SPEC["verify"]),
                },
            )
        )
        spec["chart"] = {"spec": {**chart, "sourceRef": source}}
        if draw(st.booleans()):
            spec["chart"]["metadata"] = {"labels": {"tier": "a"}}
    optional = draw(st.fixed_dictionaries({}, optional=PLAIN))
    spec |= optional
    if draw(st.booleans()):
        spec["values"] = draw(st.dictionaries(KEYS | st.sampled_from(("image", "app")), values(), max_size=5))
    if draw(st.booleans()):
        spec["dependsOn"] = draw(DEPENDENCIES)
    return spec


def is_sound(spec: dict[str, Any]) -> bool:
    return not OBJECTS["HelmRelease"].rules(spec, FLUX)


class _Quoting(yaml.SafeDumper):
    """Quotes what PyYAML takes for a plain string, and a schema does not."""


def _represent(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = None if (text and STRINGS[text]) or "\n" in text else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Quoting.add_representer(str, _represent)
STYLES = st.sampled_from(("json", "yaml", "ours"))


def text_of(found: dict[str, Any], style: str) -> str:
    """Write an object as JSON, as PyYAML does, or as `render` does."""
    if style == "json":
        return json.dumps(found, indent=2, ensure_ascii=False)
    if style == "yaml":
        made: str = yaml.dump(found, Dumper=_Quoting, sort_keys=False, allow_unicode=True, width=10**6)
        return made
    return Emitter().fields("", found)


def run(texts_: dict[str, str], folder: Path) -> Imported:
    for name, text in texts_.items():
        (folder / name).write_text(text, encoding="utf-8")
    target = Target(folder / "catalog", folder / "platform.yaml")
    made = import_repository([folder / name for name in texts_], target)
    for path, text in made.files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return made


def settled(spec: dict[str, Any], namespace: str) -> dict[str, Any]:
    """Return a spec with what the API says to be the same spelled in one way."""
    made = {name: value for name, value in spec.items() if value not in (None, [], {})}
    chart = made.get("chart")
    if chart is not None:
        inner = dict(chart["spec"])
        source = {"namespace": namespace, **inner["sourceRef"]}
        inner["sourceRef"] = source
        if source["kind"] in ("GitRepository", "Bucket"):
            inner.pop("version", None)
            inner.pop("verify", None)
        else:
            inner.setdefault("version", "*")
        if inner.get("interval") == made["interval"]:
            del inner["interval"]
        inner.setdefault("reconcileStrategy", "ChartVersion")
        made["chart"] = {**chart, "spec": inner}
    if "chartRef" in made:
        made["chartRef"] = {"namespace": namespace, **made["chartRef"]}
    if "dependsOn" in made:
        made["dependsOn"] = [{"namespace": namespace, **one} for one in made["dependsOn"]]
    return without_nulls(made)


def without_nulls(value: Any, path: tuple[str, ...] = ()) -> Any:
    """Return a spec without nulls, which the API server drops; those of `values` are Helm's business."""
    if isinstance(value, dict) and path[:1] != ("values",):
        return {key: without_nulls(inner, (*path, key)) for key, inner in value.items() if inner is not None}
    if isinstance(value, list) and path[:1] != ("values",):
        return [without_nulls(inner, (*path, "")) for inner in value]
    return value


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(spec=specs().filter(is_sound), style=STYLES)
def test_a_release_renders_to_itself(spec: dict[str, Any], style: str) -> None:
    found = {
        "apiVersion": "helm.toolkit.fluxcd.io/v2",
        "kind": "HelmRelease",
        "metadata": {"name": "web", "namespace": "apps", "labels": {"a": "b"}},
        "spec": spec,
    }
    with tempfile.TemporaryDirectory() as top:
        folder = Path(top)
        made = run({"web.yaml": text_of(found, style), "sources.yaml": SHARED}, folder)
        (outcome,) = made.outcomes
        assert outcome.lost == [], (outcome, made.definitions)
        assert outcome.equal or any("Flux ignores it" in n or "is refused" in n for n in outcome.notes), outcome
        built = build(folder / "catalog", folder / "platform.yaml")
        assert not built.failed, built.diagnostics
        (release,) = [one for one in objects(built) if one["kind"] == "HelmRelease"]
    assert release["metadata"] == found["metadata"]
    assert settled(release["spec"], "apps") == settled(yaml.safe_load(text_of(found, style))["spec"], "apps")


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(made=st.lists(specs().filter(is_sound), min_size=2, max_size=6))
def test_defaults_that_are_lifted_change_no_release(made: list[dict[str, Any]]) -> None:
    texts_ = {"sources.yaml": SHARED}
    for index, spec in enumerate(made):
        found = {
            "apiVersion": "helm.toolkit.fluxcd.io/v2",
            "kind": "HelmRelease",
            "metadata": {"name": f"r{index}", "namespace": "apps"},
            "spec": {**spec, "install": {"remediation": {"retries": 3 + (index == 1)}, "crds": "Create"}},
        }
        texts_[f"r{index}.yaml"] = text_of(found, "yaml")
    with tempfile.TemporaryDirectory() as top:
        result = run(texts_, Path(top))

    assert [(one.service, one.lost) for one in result.outcomes] == [(f"r{i}", []) for i in range(len(made))]


TOLD = (
    "spec.postRenderStrategy: hooks pass the platform's override table",
    ": the release carries the platform's override table",
    "the source is rendered as",
    "Flux ignores it for such a source",
)
"""Differences to the release that no definition can say, or that depend on what other services need."""


@settings(examples(25), deadline=None, derandomize=True)
@given(services(), services("two"), platforms())
def test_a_catalog_comes_back_from_its_own_output(
    one: dict[str, Any], two: dict[str, Any], platform: dict[str, Any]
) -> None:
    # Of a table that releases carry in part, no tree tells what was left out of it, nor for whom.
    platform["registries"].pop("emit", None)
    made = built_from({"catalog/a.yaml": document(one) + "---\n" + document(two), "platform.yaml": document(platform)})
    assume(not made.failed)
    with tempfile.TemporaryDirectory() as top:
        folder = Path(top)
        for name, text in made.files.items():
            path = folder / "tree" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        again = import_repository([folder / "tree"], Target(folder / "catalog", folder / "platform.yaml"))
        for path, text in again.files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        second = build(folder / "catalog", folder / "platform.yaml")
    assert [fault for fault in (*again.diagnostics, *second.diagnostics) if fault.severity == "error"] == []
    assert {outcome.service for outcome in again.outcomes} == {"web", "two"}
    for outcome in again.outcomes:
        assert outcome.lost == []
        assert outcome.equal or any(told in note for told in TOLD for note in outcome.notes), outcome
    before, after = (releases(one.files.values()) for one in (made, second))
    assert set(before) == set(after)
    for outcome in again.outcomes:
        if outcome.equal and outcome.object in before:
            namespace = before[outcome.object]["metadata"]["namespace"]
            old, new = before[outcome.object], after[outcome.object]
            assert old["metadata"] == new["metadata"]
            assert settled(old["spec"], namespace) == settled(new["spec"], namespace)


def releases(files: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return the HelmReleases of a tree by how a report names them."""
    found = (one for text in files for one in objects(text) if one["kind"] == "HelmRelease")
    return {"HelmRelease {namespace}/{name}".format_map(one["metadata"]): one for one in found}


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet=st.sampled_from("abc:-{}[]&*!|>'\"#%@`, \n\t0"), max_size=60))
@example("a: &a [*a]")
@example("- - - a")
@example("? a\n: b")
def test_no_text_is_too_odd(text: str) -> None:
    """Whatever stands in a file is imported, or told."""
    spec = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: web, namespace: apps}\n"
    body = "".join(f"    {line}\n" for line in text.split("\n"))
    whole = (
        f"{spec}spec:\n  interval: 1h\n  chartRef: {{kind: OCIRepository, name: shared, namespace: flux-system}}\n"
        f"  values:\n{body}"
    )
    with tempfile.TemporaryDirectory() as top:
        made = run({"web.yaml": whole, "sources.yaml": SHARED}, Path(top))

    assert made.outcomes or made.diagnostics
    for outcome in made.outcomes:
        assert outcome.equal or outcome.lost or made.diagnostics or outcome.notes


@settings(max_examples=60, deadline=None)
@given(st.recursive(SCALARS, lambda i: st.lists(i, max_size=3) | st.dictionaries(NAMES, i, max_size=3), max_leaves=8))
def test_no_shape_is_too_odd(odd: Any) -> None:
    """A spec, metadata or list of another shape is told, and never a crash."""
    release = {
        "apiVersion": "helm.toolkit.fluxcd.io/v2",
        "kind": "HelmRelease",
        "metadata": {"name": "web", "namespace": "apps", "labels": odd, "annotations": odd},
        "spec": {
            "interval": "1h",
            "chart": {"spec": {"chart": "web", "version": "1.2.3", "sourceRef": SOURCES[0]}},
            "dependsOn": odd,
            "postRenderers": odd,
            "valuesFrom": odd,
            "install": odd,
            "values": odd,
        },
    }
    other = {"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "HelmRepository", "metadata": odd, "spec": odd}
    kustomization = {"resources": odd, "patches": odd, "configMapGenerator": odd, "namespace": odd}
    with tempfile.TemporaryDirectory() as top:
        files = {"web.yaml": release, "sources.yaml": other, "kustomization.yaml": kustomization}
        made = run({name: yaml.safe_dump(one) for name, one in files.items()}, Path(top))

    assert made.outcomes or made.diagnostics
