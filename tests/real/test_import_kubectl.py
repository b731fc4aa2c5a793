"""What `kubectl kustomize` makes of releases and of their imported definitions: named by RENDER_KUBECTL."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from render.importing.importer import Outcome, Target, import_repository
from tests.project import Project
from tests.test_import import CHARTS, release, values

KUBECTL = os.environ.get("RENDER_KUBECTL", "")
SHARED = Path(os.environ.get("RENDER_SHARED", Path(__file__).parents[3] / "shared"))
SAMPLES = sorted((SHARED / "samples/helmreleases").glob("*.yaml"))

pytestmark = pytest.mark.skipif(not KUBECTL, reason="RENDER_KUBECTL names no binary")

SPELLINGS = """\
octal: 0644
words: [yes, no, on, off, y, n, true]
numbers: [1e3, 0x1F, 1_000, 18.10, 9007199254740993, .5, 0o17]
dates: 2024-07-01
quoted: ["0644", 'yes', "1e3"]
none: [null, ~, ""]
block: |
  a
    b

  c
folded: >-
  a
  b
anchors: &a {x: 1, y: [z]}
again: *a
merged:
  <<: *a
  y: 2
image:
  repository: ghcr.io/example/web
  tag: v1.2.3
"""


def kustomize(folder: Path) -> list[Any]:
    """Return the objects that kustomize makes of a folder, in its JSON."""
    command = [KUBECTL, "kustomize", str(folder), "-o", str(folder / "out.txt")]
    subprocess.run(command, check=True, capture_output=True)
    return list(yaml.load_all((folder / "out.txt").read_text(encoding="utf-8"), yaml.CSafeLoader))


def releases(folder: Path) -> dict[str, Any]:
    return {one["metadata"]["name"]: one for one in kustomize(folder) if one["kind"] == "HelmRelease"}


def both(folder: Path, text: str) -> tuple[dict[str, Any], dict[str, Any], list[Outcome]]:
    """Return the releases of a file as kustomize has them, those of the catalog made of it, and the report."""
    source = folder / "source"
    source.mkdir()
    (source / "web.yaml").write_text(text, encoding="utf-8")
    (source / "charts.yaml").write_text(CHARTS, encoding="utf-8")
    made = import_repository([source], Target(folder / "catalog", folder / "platform.yaml"))
    for path, written in made.files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(written, encoding="utf-8")
    (source / "kustomization.yaml").write_text("resources: [web.yaml]\n")
    ran = Project(folder).run("build", "--out", "tree", "--quiet")
    assert ran.code == 0, ran.err
    return releases(source), releases(folder / "tree/apps"), made.outcomes


def test_values_are_what_kustomize_read_before(tmp_path: Path) -> None:
    before, after, _ = both(tmp_path, release(values(SPELLINGS)))

    assert json.dumps(before["web"]["spec"]["values"], sort_keys=True, default=str) == json.dumps(
        after["web"]["spec"]["values"], sort_keys=True, default=str
    )


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_samples_are_what_kustomize_read_before(sample: Path, tmp_path: Path) -> None:
    text = sample.read_text(encoding="utf-8")
    if "chart" not in text or sample.stem in ("s17", "s56"):
        pytest.skip("a part of a release")
    before, after, outcomes = both(tmp_path, text)

    assert set(before) == set(after)
    for outcome in outcomes:
        old, new = (found[outcome.object.rpartition("/")[2].split()[-1]] for found in (before, after))
        assert dump(old["spec"].get("values")) == dump(new["spec"].get("values"))
        if outcome.equal and "v2beta" not in text:
            for field in (
                "install",
                "upgrade",
                "rollback",
                "valuesFrom",
                "driftDetection",
                "interval",
                "postRenderers",
            ):
                assert dump(old["spec"].get(field)) == dump(new["spec"].get(field))


def dump(value: Any) -> str:
    return json.dumps(value or None, sort_keys=True, default=str)
