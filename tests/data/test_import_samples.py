"""Sixty HelmReleases of public repositories: imported, rendered, compared."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from render.build import build
from render.importing.importer import Imported, Target, import_repository

SHARED = Path(os.environ.get("RENDER_SHARED", Path(__file__).parents[3] / "shared"))
SAMPLES = SHARED / "samples/helmreleases"
NAMES = sorted(path.stem for path in SAMPLES.glob("*.yaml"))

PARTS = {"s17", "s27", "s52", "s56"}
"""Parts of releases: they have no chart, and no API server takes them as they are."""
NOTED = {
    "s09": ["spec.chart.spec.version"],
    "s24": ["spec.chartRef.name"],
    "s31": ["spec.chart", "spec.chartRef"],
    "s39": ["spec.interval"],
    "s42": ["spec.interval"],
    "s48": ["spec.chartRef.name"],
    "s55": ["spec.interval", "spec.values.job.image (marker)"],
    "s57": [
        "spec.postRenderers[0].kustomize.images[name=docker.io/example/metrics].newName (marker)",
        "spec.postRenderers[0].kustomize.images[name=docker.io/example/metrics].newTag (marker)",
    ],
    "s58": ["spec.chart.spec.verify", "spec.chart.spec.version"],
    "s59": ["spec.chart.spec.version (marker)"],
    "s60": [
        "spec.chartRef.name",
        *(
            f"spec.values.controllers.dashboard.{container}.image.{part} (marker)"
            for container in ("containers.app", "initContainers.migrate")
            for part in ("repository", "tag")
        ),
    ],
}
"""Releases that come back with a difference that is told, and the paths of it:

- a version that Flux ignores for a chart from Git (s09, s58), and a signature check that it refuses there (s58);
- the name that `render` gives to an OCI source of one release (s24, s48, s60);
- a HelmChart folded into its release (s31);
- an interval that was missing (s39, s42, s55);
- markers whose policies are in no file (s55, s57, s59, s60).
"""

pytestmark = pytest.mark.skipif(not NAMES, reason="the shared samples are absent")


def imported(name: str, folder: Path) -> Imported:
    """Import one sample, and write what comes of it."""
    made = import_repository([SAMPLES / f"{name}.yaml"], Target(folder / "catalog", folder / "platform.yaml"))
    for path, text in made.files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return made


@pytest.mark.parametrize("name", NAMES)
def test_sample_comes_back_without_a_loss(name: str, tmp_path: Path) -> None:
    made = imported(name, tmp_path)

    if name in PARTS:
        assert made.outcomes == []
        assert [fault.code for fault in made.diagnostics] == ["R908", "R901"]
        return
    assert [one.lost for one in made.outcomes] == [[] for _ in made.outcomes]
    assert not made.failed
    noted = [note.partition(": ")[0] for one in made.outcomes for note in one.notes if note.startswith("spec.")]
    assert sorted(noted) == NOTED.get(name, [])
    assert [one.equal for one in made.outcomes] == [name not in NOTED for _ in made.outcomes]


@pytest.mark.parametrize("name", [name for name in NAMES if name not in PARTS])
def test_what_is_written_builds(name: str, tmp_path: Path) -> None:
    imported(name, tmp_path)
    built = build(tmp_path / "catalog", tmp_path / "platform.yaml")

    assert [fault for fault in built.diagnostics if fault.severity == "error"] == []
    assert built.services > 0


def test_the_counts_are_those_of_the_documentation(tmp_path: Path) -> None:
    outcomes = [one for name in NAMES for one in imported(name, tmp_path / name).outcomes]

    assert len(NAMES) == 60
    assert len(outcomes) == 58
    assert sum(one.equal for one in outcomes) == 47
    assert sum(not one.equal and not one.lost for one in outcomes) == 11
    assert sum(bool(one.lost) for one in outcomes) == 0


def test_all_at_once_lose_nothing(tmp_path: Path) -> None:
    made = import_repository([SAMPLES], Target(tmp_path / "catalog", tmp_path / "platform.yaml"))

    assert [(one.service, one.lost) for one in made.outcomes if one.lost] == []
    assert len(made.outcomes) == 54
    """Four have the name and namespace of another sample."""
    assert [fault.code for fault in made.diagnostics].count("R902") == 4


@pytest.mark.parametrize("name", NAMES)
def test_values_keep_their_comments(name: str, tmp_path: Path) -> None:
    lines = (SAMPLES / f"{name}.yaml").read_text(encoding="utf-8").splitlines()
    starts = [number for number, line in enumerate(lines, 1) if line == "  values:"]
    inside: set[int] = set()
    for start in starts:
        end = next((n for n in range(start + 1, len(lines) + 1) if re.match(r" {0,2}\S", lines[n - 1])), len(lines) + 1)
        inside.update(range(start + 1, end))
    dropped = {line for outcome in imported(name, tmp_path).outcomes for line, _ in outcome.comments}

    assert dropped & inside == set()
