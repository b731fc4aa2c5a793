from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from render import cli
from render.session import Inputs, plain_inputs, run_plain
from tests.project import PLATFORM, project

WEB = """\
name: web
source:
  image: ghcr.io/example/web:1.2.3
  chart: {url: "https://charts.example.org", name: web, version: "1.0.0"}
update: {range: 1.x}
"""
FILES = {"platform.yaml": PLATFORM, "catalog/web.yaml": WEB, "other.yaml": PLATFORM.replace("home", "away")}
BROKEN = {**FILES, "catalog/broken.yaml": "name: broken\nsource: 1\n"}


def streams(capfd: pytest.CaptureFixture[str], code: int | None) -> tuple[int | None, str, str]:
    told = capfd.readouterr()
    return (code, told.out, told.err)


@pytest.mark.parametrize("files", [FILES, BROKEN], ids=["sound", "broken"])
@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("-q",),
        ("catalog",),
        ("--out", "out"),
        ("--platform", "other.yaml", "catalog", "--out", "out", "--quiet"),
        ("--platform", "missing.yaml"),
        ("--no-image-automation", "--no-cache"),
        ("--jobs", "2"),
        ("nowhere",),
    ],
    ids=" ".join,
)
def test_usual_calls_do_the_same_with_and_without_click(
    arguments: tuple[str, ...],
    files: dict[str, str],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = []
    for name in ("plain", "click"):
        folder = tmp_path / name
        project(folder, files)
        monkeypatch.chdir(folder)
        for verb in ("check", "build", "check", "build"):
            code = run_plain(verb, arguments, None) if name == "plain" else cli.run([verb, *arguments])
            seen.append(streams(capfd, code))
        written = {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        seen.append((len(written), repr(sorted(written.items())), ""))

    assert seen[:5] == seen[5:]


@pytest.mark.parametrize(
    "arguments",
    [
        ("--help",),
        ("-h",),
        ("--verbose",),
        ("--only", "web"),
        ("--force", "x"),
        ("--jobs", "0"),
        ("--jobs", "65"),
        ("--jobs", "many"),
        ("--jobs", "9" * 5000),
        ("--out", "a" * 256),
        ("a/" * 3000,),
        ("--format", "json"),
        ("--out",),
        ("--out", ""),
        ("--out", "-q"),
        ("--out=out",),
        ("-qv",),
        ("catalog", "catalog"),
        ("--", "catalog"),
        ("",),
    ],
    ids=" ".join,
)
def test_other_calls_are_left_to_click(arguments: Sequence[str]) -> None:
    assert plain_inputs(arguments) is None


def test_the_defaults_are_those_of_the_options(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Inputs] = []
    monkeypatch.setattr("render.session.build", lambda session, *_, **__: given.append(session.inputs))

    assert (cli.run(["build"]), given) == (0, [plain_inputs(())])
