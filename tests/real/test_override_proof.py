"""What `render` predicts of images, against what helm and kubectl make of a chart; RENDER_HELM and RENDER_KUBECTL.

Each case renders a service to its HelmRelease, its chart to manifests with the release's values, and these through the
release's post-renderers, in order, as helm-controller runs them. RENDER_KUBECTL_CASES multiplies the random cases
(default 1), RENDER_KUBECTL_SEED picks others.
"""

from __future__ import annotations

import io
import json
import os
import random
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from render.flux.overrides import Entry, Table
from render.inventory import Row, take_inventory
from render.override import read_manifests, rewrite_manifests
from tests.project import Project, only, project
from tests.readings import SIGS, documents

HELM = os.environ.get("RENDER_HELM", "")
KUBECTL = os.environ.get("RENDER_KUBECTL", "")
TIMES = int(os.environ.get("RENDER_KUBECTL_CASES", "1"))
SEED = int(os.environ.get("RENDER_KUBECTL_SEED", "20260702"))
CHART = Path(__file__).parent / "chart"
DIGEST = "sha256:" + "0123456789abcdef" * 4

needs_kubectl = pytest.mark.skipif(not KUBECTL, reason="RENDER_KUBECTL names no binary")
needs_both = pytest.mark.skipif(not (HELM and KUBECTL), reason="RENDER_HELM and RENDER_KUBECTL name no binaries")

SERVICE = f"""\
name: web
namespace: apps
source:
  image: docker.io/library/nginx:1.27.0
  chart: {{url: "oci://charts.example/every-place", version: 1.0.0}}
update: {{range: 1.x}}
images:
  exporter: {{ref: "quay.io/prom/exporter:v1.2.3", shape: registry, at: exporter.image, update: {{range: 1.x}}}}
  proxy: {{ref: "quay.io/team/proxy:2.0.1@{DIGEST}", shape: digest, at: proxy.image, update: {{range: 2.x}}}}
  tools: {{ref: "docker.io/library/tools:3.1.0", shape: string, at: toolsImage, update: {{range: 3.x}}}}
  worker: {{ref: "ghcr.io/example/worker:1.0.0", shape: tag, at: worker.tag, update: {{range: 1.x}}}}
  cache: {{ref: "docker.io/library/memcached:1.6.32", shape: postRenderer, update: {{range: 1.6.x}}}}
  init: {{ref: "ghcr.io/example/init:1.0.0@{DIGEST}", at: init.image}}
  cron: {{ref: "ghcr.io/example/cron:1.0.0", at: cron.image, update: {{pin: 1.0.9}}}}
  migrate: {{ref: "ghcr.io/example/migrate:1.0.0@{DIGEST}", at: migrate.image, update: {{range: 1.x}}}}
  probe: {{ref: "docker.io/library/curl:8.9.0", shape: string, at: probeImage}}
  data: {{ref: "ghcr.io/ex.mple/data:2024.07.1", shape: string, at: dataImage}}
  widget: {{ref: "ghcr.io/example/widget:1.4.0", at: widget.image, update: {{range: 1.x}}}}
  operand: {{ref: "ghcr.io/example/operand:1.4.0", shape: string, at: operandImage, reach: values}}
  agent: {{ref: "ghcr.io/example/agent:1.4.0", shape: string, at: agentImage, reach: values}}
"""
"""A service with an image of every shape, in every place that kustomize looks at and in two where it does not."""

PLACES = {
    "main": "main",
    "exporter": "exporter",
    "proxy": "proxy",
    "tools": "tools",
    "worker": "worker",
    "cache": "cache",
    "init": "init",
    "cron": "cron",
    "migrate": "migrate",
    "probe": "probe",
    "data": "data",
    "probe-data": "data",
    "widget": "widget",
    "widget-cache": "cache",
    "operand": "operand",
    "agent": "agent",
}
"""The declared image of each place in the chart, by the name of the container, volume or field."""

FIXED = {"fixed", "cron-fixed", "nested", "example", "patched", "patched-too"}
"""Places of images that only the chart or a patch knows."""

PATCH = """\
postRenderers:
- kustomize:
    patches:
    - target: {kind: Deployment}
      patch: |
        - op: add
          path: /spec/template/spec/containers/-
          value: {name: patched, image: "docker.io/library/busybox:1.36.0"}
- kustomize:
    patches:
    - patch: |
        apiVersion: batch/v1
        kind: CronJob
        metadata: {name: web}
        spec:
          jobTemplate:
            spec: {template: {spec: {containers: [{name: patched-too, image: "quay.io/prom/other:1"}]}}}
    images:
    - {name: quay.io/prom/other, newName: quay.io/prom/exporter}
"""
"""Patches of the release's own, and an `images` entry beside one: patches run first."""

OWN = """\
postRenderers:
- kustomize:
    images:
    - {name: docker.io/library/nginx, newName: own.example/nginx}
    - {name: docker.io/library/curl, newTag: 8.9.1}
    - {name: docker.io/library/memcached, newName: own.example/memcached}
"""

RENAMES = [
    {"name": "docker.io/library/nginx", "newName": "mirror.example/hub/nginx"},
    {"name": "quay.io/prom/exporter", "newName": "mirror.example/quay/exporter"},
    {"name": "quay.io/team/proxy", "newName": "mirror.example/quay/proxy"},
    {"name": "docker.io/library/tools", "newName": "mirror.example/hub/tools"},
    {"name": "ghcr.io/example/worker", "newName": "mirror.example/worker"},
    {"name": "docker.io/library/memcached", "newName": "mirror.example/hub/memcached"},
    {"name": "docker.io/library/busybox", "newName": "mirror.example/hub/busybox"},
    {"name": "ghcr.io/ex.mple/data", "newName": "mirror.example/data"},
    {"name": "ghcr.io/example/widget", "newName": "mirror.example/widget"},
    {"name": "ghcr.io/example/operand", "newName": "mirror.example/operand"},
    {"name": "ghcr.io/example/agent", "newName": "mirror.example/agent"},
    {"name": "ghcr.io/example/migrate", "newName": "mirror.example/migrate"},
]
VERSIONS = [
    {"name": "docker.io/library/nginx", "newTag": "1.25.0"},
    {"name": "quay.io/team/proxy", "newName": "mirror.example/proxy", "newTag": "2.0.0"},
    {"name": "ghcr.io/example/init", "digest": "sha256:" + "f" * 64},
    {"name": "ghcr.io/example/worker", "newTag": "0.9.0", "digest": "sha256:" + "e" * 64},
    {"name": "docker.io/library/memcached", "newTag": "1.6.1"},
    {"name": "ghcr.io/example/cron", "newTag": "1.0.1"},
]
CHAINED = [
    {"name": "docker.io/library/nginx", "newName": "first.example/nginx"},
    {"name": "first.example/nginx", "newName": "second.example/nginx", "newTag": "1.26.0"},
    {"name": "quay.io/prom/exporter", "newName": "docker.io/library/busybox"},
    {"name": "docker.io/library/busybox", "newName": "mirror.example/busybox"},
]
OTHERS = [
    {"name": "nginx", "newName": "mirror.example/never"},
    {"name": "library/memcached", "newName": "mirror.example/never"},
    {"name": "own.example/nginx", "newName": "mirror.example/own/nginx"},
    {"name": "own.example/memcached", "newName": "mirror.example/own/memcached"},
    {"name": "ghcr.io/example/widge", "newName": "mirror.example/never"},
    {"name": "ghcr.io/ex.mple/data", "newName": "mirror.example/any-character"},
]


def repository(folder: Path, service: str, table: Sequence[dict[str, str]]) -> Project:
    registries = {"imageOverrides": list(table)}
    platform = {"cluster": "test", "flux": {"version": "2.9"}, "registries": registries}
    return project(folder, {"catalog/web.yaml": service, "platform.yaml": json.dumps(platform)})


def run(command: Sequence[str], text: str | None = None) -> str:
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def kustomize(folder: Path, text: str, renderer: dict[str, Any]) -> str:
    """Run one post-renderer as helm-controller does: the manifests as a resource, patches and images of the item."""
    folder.mkdir(exist_ok=True)
    (folder / "helm-output.yaml").write_text(text, encoding="utf-8")
    (folder / "kustomization.yaml").write_text(json.dumps({"resources": ["helm-output.yaml"], **renderer}))
    return run([KUBECTL, "kustomize", str(folder)])


def deployed(folder: Path, release: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the objects that a HelmRelease brings into the cluster: hooks are rendered in a run of their own."""
    (folder / "values.json").write_text(json.dumps(release["spec"].get("values", {})))
    command = [HELM, "template", release["metadata"]["name"], str(CHART), "--values", str(folder / "values.json")]
    parts: dict[bool, list[Any]] = {True: [], False: []}
    for one in yaml.safe_load_all(run(command)):
        if one is not None:
            parts["helm.sh/hook" in (one["metadata"].get("annotations") or {})].append(one)
    assert release["spec"].get("postRenderStrategy", "separate") == "separate"
    objects = []
    for part in parts.values():
        text = yaml.safe_dump_all(part)
        for renderer in release["spec"].get("postRenderers", ()):
            given = dict(renderer["kustomize"])
            # kustomize takes a patch without an object that it fits for an error only when it has no target.
            names = {one["metadata"]["name"] for one in part}
            if "web" not in names:
                given.pop("patches", None)
            text = kustomize(folder / "k", text, given)
        objects += [one for one in yaml.safe_load_all(text) if one is not None]
    return objects


def images_of(node: Any) -> Iterator[tuple[str, str]]:
    """Yield the images of an object, each with the name of the container, volume or field that holds it."""
    if isinstance(node, list):
        for item in node:
            yield from images_of(item)
    if not isinstance(node, dict):
        return
    if "name" in node and isinstance(node.get("image"), str):
        yield node["name"], node["image"]
    if "name" in node and isinstance(node.get("image"), dict):
        yield node["name"], node["image"]["reference"]
    if node.get("name") == "AGENT_IMAGE":
        yield "agent", node["value"]
    if node.get("kind") == "Widget" and "spec" in node:
        yield "operand", node["spec"]["image"]
    for value in node.values():
        yield from images_of(value)


def undeclared(name: str, own: Sequence[dict[str, Any]], table: Sequence[dict[str, str]]) -> str:
    """Return what becomes of an image that the catalog does not declare."""
    text = "quay.io/prom/other:1" if name == "patched-too" else "docker.io/library/busybox:1.36.0"
    if name == "example":
        return text
    for renderer in own:
        text = Table(map(Entry.of, renderer["kustomize"].get("images", ()))).apply(text).text
    return Table(map(Entry.of, table)).apply(text).text


def compare(folder: Path, service: str, table: Sequence[dict[str, str]]) -> int:
    """Assert that every image in the cluster is the predicted one; return how many there are."""
    made = repository(folder, service, table)
    inventory = take_inventory(folder / "catalog", folder / "platform.yaml")
    assert not inventory.build.failed, inventory.build.diagnostics
    rows: dict[str, Row] = {row.image: row for row in inventory.rows}
    build = made.build()
    release = only(build.files["apps/web/helmrelease.yaml"], "HelmRelease")
    found = [pair for one in deployed(folder, release) for pair in images_of(one)]
    own = yaml.safe_load(service).get("postRenderers", [])
    emitted = table if yaml.safe_load(service).get("imageOverrides") != "none" else []
    expected = [
        (name, rows[PLACES[name]].effective if name in PLACES else undeclared(name, own, emitted)) for name, _ in found
    ]
    assert expected == found
    names = {name for name, _ in found}
    assert set(PLACES) | {"fixed", "cron-fixed", "nested", "example"} <= names <= set(PLACES) | FIXED
    return len(found)


TABLES = {"none": [], "renames": RENAMES, "versions": VERSIONS, "chained": CHAINED, "others": OTHERS}


@needs_both
@pytest.mark.parametrize("own", ["", PATCH, OWN], ids=["bare", "patches", "own-images"])
@pytest.mark.parametrize("table", TABLES)
def test_every_image_in_the_cluster_is_the_predicted_one(table: str, own: str, tmp_path: Path) -> None:
    compare(tmp_path, SERVICE + own, TABLES[table])


@needs_both
@pytest.mark.parametrize("mode", ["declared", "none"])
def test_a_release_that_emits_less_is_predicted_too(mode: str, tmp_path: Path) -> None:
    service = SERVICE + PATCH + f"imageOverrides: {mode}\n"
    declared = [one for one in RENAMES if one["name"] != "docker.io/library/busybox"]
    # Under `declared`, the entry that only hits images of the chart is not emitted.
    table = RENAMES if mode == "none" else declared
    compare(tmp_path, service, table)


def random_table(rng: random.Random) -> list[dict[str, str]]:
    """Entries for the images of the chart, in the spellings and forms that the checks of a table let pass."""
    names = [one["name"] for table in TABLES.values() for one in table] + ["docker.io/library/curl", "nginx"]
    table = []
    for name in rng.sample(sorted(set(names)), rng.randint(1, 8)):
        entry = {"name": name}
        kind = rng.random()
        if kind < 0.7:
            entry["newName"] = rng.choice([f"mirror.example/{rng.randint(0, 99)}/x", "second.example/nginx", "a/b"])
        if kind > 0.5:
            entry["newTag"] = rng.choice(["9.9.9", "v1", "latest"])
        if kind > 0.8 or rng.random() < 0.15:
            entry["digest"] = "sha256:" + rng.choice("0123456789abcdef") * 64
        table.append(entry)
    return table


@needs_both
def test_random_tables_are_predicted(tmp_path: Path) -> None:
    rng = random.Random(SEED)
    cases = 0
    for number in range(6 * TIMES):
        folder = tmp_path / str(number)
        folder.mkdir()
        cases += compare(folder, SERVICE + rng.choice(["", PATCH, OWN]), random_table(rng))
    assert cases > 100 * TIMES
    print(f"{cases} images")  # noqa: T201 - shown by `pytest -s`


SCALARS = ["x", '"x"', "'x'", "nginx", '"nginx:1"', "true", "010", "1.0", "1e3", "~", "", "0x1F", "yes", "2024-07-01"]
IMAGES = ["nginx", '"nginx"', "'nginx:1'", "nginx:1.10", "other", "null", "~", "010", '"a@sha256:x"', "nginx@sha256:ab"]


def manifest(rng: random.Random, number: int) -> str:
    """An object as people write one: every style of scalar, anchors, odd places for containers."""
    containers = "".join(
        f"    - name: c{i}\n      image: {rng.choice(IMAGES)}\n      tty: {rng.choice(SCALARS)}\n"
        for i in range(rng.randint(0, 3))
    )
    notes = "".join(f"    note{i}: {rng.choice(SCALARS)}\n" for i in range(rng.randint(0, 3)))
    kind = rng.choice(["Pod", "Deployment", "CronJob", "Widget", "CustomResourceDefinition"])
    below = {
        "Deployment": "  template:\n    spec:\n",
        "CronJob": "  jobTemplate:\n    spec:\n      template:\n        spec:\n",
        "Widget": "  deep:\n  - part:\n",
    }.get(kind, "")
    indent = " " * (
        len(below.rstrip("\n").rpartition("\n")[2]) - len(below.rstrip("\n").rpartition("\n")[2].lstrip(" "))
    )
    body = "  containers:\n" + containers if containers else "  containers: []\n"
    body += rng.choice(["", "  initContainers:\n", "  initContainers: null\n", "  volumes: []\n"])
    body += rng.choice(["", f"  text: |\n    image: {rng.choice(IMAGES)}\n", f"  odd: {rng.choice(SCALARS)}\n"])
    body = "".join(f"{indent}{line}\n" if below else f"{line}\n" for line in body.splitlines())
    text = f"apiVersion: example.org/v1\nkind: {kind}\nmetadata:\n  name: n{number}\n"
    text += rng.choice(["", "  annotations:\n" + notes, "  annotations: {}\n", "  labels: {a: 'b'}\n"])
    return text + f"spec:\n{below}{body}"


def comparable(text: str) -> list[Any]:
    """Return the objects as the API server gets them, by name."""
    return sorted(documents(text, SIGS), key=lambda one: (one["kind"], one["metadata"]["name"]))


@needs_kubectl
def test_rewritten_manifests_equal_those_of_kubectl_as_objects(tmp_path: Path) -> None:
    rng = random.Random(SEED)
    changes = 0
    for _ in range(25 * TIMES):
        text = "---\n".join(manifest(rng, number) for number in range(rng.randint(1, 8)))
        table = [
            {"name": "nginx", "newName": rng.choice(["m.example/n", "other"])},
            {"name": "other", "newTag": "1.10"},
        ]
        (tmp_path / "in.yaml").write_text(text)
        source, faults = read_manifests(tmp_path / "in.yaml", io.BytesIO())
        made, more = rewrite_manifests(source, map(Entry.of, table))
        assert (faults, more) == ([], [])
        assert made is not None
        changes += len(made.changes)
        assert comparable(kustomize(tmp_path / "k", text, {"images": table})) == comparable(made.text)
    assert changes > 25 * TIMES
    print(f"{changes} images rewritten")  # noqa: T201 - shown by `pytest -s`


@needs_both
def test_rewritten_output_of_helm_equals_that_of_kubectl(tmp_path: Path) -> None:
    made = repository(tmp_path, SERVICE, []).build()
    release = only(made.files["apps/web/helmrelease.yaml"], "HelmRelease")
    (tmp_path / "values.json").write_text(json.dumps(release["spec"]["values"]))
    text = run([HELM, "template", "web", str(CHART), "--values", str(tmp_path / "values.json")])
    for table in TABLES.values():
        source, _ = read_manifests(Path("-"), io.BytesIO(text.encode()))
        rewritten, faults = rewrite_manifests(source, map(Entry.of, table))
        assert faults == []
        assert rewritten is not None
        assert comparable(kustomize(tmp_path / "k", text, {"images": table})) == comparable(rewritten.text)
