from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.compiled import interpreted

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
HELM = os.environ.get("RENDER_HELM")


def run(script: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if name != "RENDER_HELM"}
    return subprocess.run(
        [sys.executable, str(BENCHMARKS / script), *arguments],
        env={**kept, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_render_gives_the_objects_that_the_generated_services_ask_for() -> None:
    told = run("run.py", "--smoke")

    assert not told.stdout
    assert told.returncode == 0, told.stderr


@pytest.mark.skipif(not HELM, reason="RENDER_HELM names no helm binary")
def test_helm_gives_the_same_objects_as_render() -> None:
    told = run("run.py", "--smoke", RENDER_HELM=HELM or "")

    assert not told.stdout
    assert told.returncode == 0, told.stderr


def test_the_smoke_run_fails_when_objects_are_missing(tmp_path: Path) -> None:
    """A stand-in for helm that prints nothing has to be noticed."""
    stub = tmp_path / "helm"
    stub.write_text("#!/bin/sh\n")
    stub.chmod(0o755)

    told = run("run.py", "--smoke", RENDER_HELM=str(stub))

    assert told.returncode == 1
    assert told.stdout.count("only render gives ") == len(told.stdout.splitlines())
    assert "HelmRelease" in told.stdout


def test_a_service_is_the_same_text_for_every_number_of_services(tmp_path: Path) -> None:
    texts = []
    for count in (3, 7):
        folder = tmp_path / str(count)
        assert run("generate.py", "--n", str(count), "--out", str(folder)).returncode == 0
        texts.append({path.name: path.read_text() for path in folder.rglob("*-0000[0-2].yaml")})

    assert len(texts[0]) == 3
    assert texts[0] == texts[1]


@interpreted
def test_every_stage_of_the_profile_takes_part_in_a_build(tmp_path: Path) -> None:
    told = run("stages.py", "--n", "3", "--work", str(tmp_path))

    assert told.returncode == 0, told.stderr
    assert "| imports |" in told.stdout
    assert "Peak memory: " in told.stdout
