"""What Go reads from the goldens: `kubectl kustomize` and `helm`, named by RENDER_KUBECTL and RENDER_HELM."""

from __future__ import annotations

import json
import os
import re
import subprocess
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from render import templates
from render.build import build
from render.catalog import Definition, read_catalog, read_platform
from render.flux.image import Reference
from render.flux.overrides import Entry, Table
from render.yaml.source import Mapping, Scalar
from tests.compiled import interpreted
from tests.readings import KYAML, SIGS, documents, leaves, read
from tests.trees import GOLDENS, RENDERINGS, ROOT, golden_files

KUBECTL = os.environ.get("RENDER_KUBECTL", "")
HELM = os.environ.get("RENDER_HELM", "")

pytestmark = pytest.mark.skipif(not (KUBECTL and HELM), reason="RENDER_KUBECTL and RENDER_HELM name no binaries")

FOLDERS = [path.removesuffix("/kustomization.yaml") for path in golden_files() if path.endswith("/kustomization.yaml")]
RELEASES = [path for path in golden_files() if path.endswith("/helmrelease.yaml")]
GENERATES = {"apiVersion", "kind", "resources", "configMapGenerator", "generatorOptions"}

Key = tuple[str, str, str, str]


class Expected(NamedTuple):
    """What a folder is expected to become, and the ConfigMaps that kustomize makes besides."""

    objects: dict[Key, Any]
    generated: dict[Key, str]


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def key(thing: Any) -> Key:
    metadata = thing["metadata"]
    return thing["apiVersion"], thing["kind"], metadata.get("namespace", ""), metadata["name"]


@cache
def expected(folder: Path) -> Expected:
    """Follow a kustomization's resources; every other field must be one of those handled here."""
    (kustomization,) = documents((folder / "kustomization.yaml").read_text("utf-8"), KYAML)
    assert kustomization.keys() <= GENERATES, folder
    made = Expected({}, {})
    for resource in kustomization["resources"]:
        target = (folder / resource).resolve()
        if target.is_dir():
            inner = expected(target)
            assert not made.objects.keys() & inner.objects.keys()
            made.objects.update(inner.objects)
            made.generated.update(inner.generated)
            continue
        for thing in documents(target.read_text("utf-8"), KYAML):
            assert key(thing) not in made.objects
            made.objects[key(thing)] = thing
    for entry in kustomization.get("configMapGenerator", ()):
        made.generated["v1", "ConfigMap", entry["namespace"], entry["name"]] = entry["literals"][0].split("=", 1)[1]
    return made


@pytest.mark.parametrize("folder", FOLDERS)
def test_kustomize_builds_exactly_the_objects_of_the_files(folder: str) -> None:
    objects, generated = expected(GOLDENS / folder)
    out = run(KUBECTL, "kustomize", str(GOLDENS / folder))
    for _, _, _, name in generated:
        out = re.sub(rf"\b{re.escape(name)}-[a-z0-9]{{10}}\b", name, out)
    found = {key(thing): thing for thing in documents(out, SIGS)}
    maps = {at: found.pop(at)["data"] for at in generated}
    assert objects == found
    assert [[text] for text in generated.values()] == [list(data.values()) for data in maps.values()]


@cache
def planned(rendering: str) -> dict[tuple[str, str], dict[str, Any]]:
    """Return what each HelmRelease's template is given, by namespace and name."""
    made: dict[tuple[str, str], dict[str, Any]] = {}
    original = templates.render

    def record(name: str, values: dict[str, Any], *rest: Any) -> str:
        if name == "helmrelease":
            made[values["namespace"], values["name"]] = values
        return original(name, values, *rest)

    platform, automation = RENDERINGS[rendering]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(templates, "render", record)
        build(ROOT / "catalog", ROOT / platform, automation=automation)
    return made


@cache
def built(folder: Path) -> Any:
    """Return the HelmRelease that a kustomize build of a service prints: kyaml's reading."""
    (release,) = (
        thing for thing in documents(run(KUBECTL, "kustomize", str(folder)), SIGS) if thing["kind"] == "HelmRelease"
    )
    return release


@pytest.fixture(scope="module")
def chart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A chart that prints its values: the reading of sigs.k8s.io/yaml."""
    folder = tmp_path_factory.mktemp("chart")
    (folder / "templates").mkdir()
    (folder / "Chart.yaml").write_text("apiVersion: v2\nname: echo\nversion: 0.1.0\n", encoding="utf-8")
    (folder / "templates" / "values.yaml").write_text("{{ .Values | toJson }}\n", encoding="utf-8")
    return folder


@cache
def echoed(chart: Path, file: Path) -> Any:
    out = run(HELM, "template", "echo", str(chart), "--values", str(file))
    return json.loads(out.split("values.yaml\n", 1)[1])


@cache
def definitions() -> dict[str, Definition]:
    return {each.service.name: each for file in read_catalog(ROOT / "catalog") for each in file.definitions}


def image_texts(root: Mapping) -> list[str]:
    """Return the references of a definition's images: `source.image`, each of `images`, and what they are pinned to."""
    source, others = root.get("source"), root.get("images")
    nodes = [(source.get("image"), root)] if isinstance(source, Mapping) else []
    nodes += [(image, image) for _, image in others.entries] if isinstance(others, Mapping) else []
    made = []
    for image, updated in nodes:
        text = image.text if isinstance(image, Scalar) else image.text("ref") if isinstance(image, Mapping) else None
        update = updated.get("update") if isinstance(updated, Mapping) else None
        pin = update.text("pin") if isinstance(update, Mapping) else None
        if text is not None:
            made += [text, f"{Reference.parse(text).name}:{pin}"] if pin else [text]
    return made


def image_parts(definition: Definition, rendering: str) -> set[str]:
    """Return every text that the images of a definition may add to its values."""
    platform, _ = read_platform(ROOT / RENDERINGS[rendering][0])
    assert platform is not None
    overrides = platform.platform.registries.image_overrides or []
    table = Table([Entry(e.name, e.new_name or "", e.new_tag or "", e.digest or "") for e in overrides])
    made: set[str] = set()
    for text in image_texts(definition.root):
        effective = table.apply(text).text
        for reference in (Reference.parse(text), Reference.parse(effective)):
            made |= {str(reference), reference.name, *reference.registry_parts}
            made |= {part for part in (reference.tag_text, reference.tag, reference.digest) if part is not None}
    return made


METADATA = {"name", "namespace", "labels", "annotations"}


@interpreted
@pytest.mark.parametrize("path", RELEASES)
def test_go_reads_of_a_release_what_the_plan_holds(chart: Path, path: str) -> None:
    rendering = path.split("/", 1)[0]
    by_sigs = echoed(chart, GOLDENS / path)
    name = key(by_sigs)[2:]
    plan = {field: value for field, value in planned(rendering)[name].items() if field not in METADATA}
    assert read(plan, SIGS) == by_sigs["spec"]
    assert read(plan, KYAML) == built((GOLDENS / path).parent)["spec"]


@pytest.mark.parametrize("path", RELEASES)
def test_go_reads_the_catalogs_values_and_the_image_parts_besides(chart: Path, path: str) -> None:
    rendering, _, service, _ = path.split("/")
    definition = definitions()[service]
    by_sigs = echoed(chart, GOLDENS / path)
    by_kyaml = built((GOLDENS / path).parent)
    written = definition.root.get("values") or Mapping([])
    parts = image_parts(definition, rendering)
    for reader, release in ((SIGS, by_sigs), (KYAML, by_kyaml)):
        declared, found = leaves(read(written, reader)), leaves(release["spec"].get("values", {}))
        differing = {at for at in declared.keys() | found.keys() if declared.get(at, at) != found.get(at, at)}
        assert {found.get(at) for at in differing} <= parts


def test_the_two_readings_are_told_apart(chart: Path, tmp_path: Path) -> None:
    text = "spec:\n  a: yes\n  b: 0o17\n  c: 2001-02-03\n  d: 1_0\n  on: x\n"
    (tmp_path / "values.yaml").write_text(text, encoding="utf-8")
    by_sigs = {"spec": {"a": True, "b": 15, "c": "2001-02-03", "d": 10, "true": "x"}}
    assert by_sigs == echoed(chart, tmp_path / "values.yaml")
    assert [by_sigs] == documents(text, SIGS)
    thing = "apiVersion: v1\nkind: Test\nmetadata:\n  name: test\n" + text
    (tmp_path / "test.yaml").write_text(thing, encoding="utf-8")
    (tmp_path / "kustomization.yaml").write_text("resources: [test.yaml]\n", encoding="utf-8")
    by_kyaml = {"a": "yes", "b": 15, "c": "2001-02-03T00:00:00Z", "d": 10, "on": "x"}
    assert by_kyaml == documents(run(KUBECTL, "kustomize", str(tmp_path)), SIGS)[0]["spec"]
    assert by_kyaml == documents(thing, KYAML)[0]["spec"]


def test_every_release_and_folder_is_checked() -> None:
    assert len(FOLDERS) > 100
    assert len(RELEASES) > 75
