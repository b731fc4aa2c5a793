"""The same input gives the same bytes, whatever surrounds it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from render.build import build
from tests.project import PLATFORM
from tests.services import document, platforms, services
from tests.sound import PLATFORMS, TOP, Files, examples, repository

CHARTS = f"""{PLATFORM}
charts:
  shared: {{url: "https://a.example"}}
  packed: {{url: "oci://a.example/b", version: "3.0.0"}}
"""
ABSENT = CHARTS.replace("registries:\n  imageOverrides: []\n", "")


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def run(out: Path, *, cwd: Path = TOP, catalog: str = "catalog", platform: str = "platform.yaml", **env: str) -> Any:
    """Build in a process of its own and return the tree, the report and the exit code."""
    command = [sys.executable, "-m", "render", "build", catalog, "--platform", platform, "--out", str(out)]
    clean = {"PATH": os.environ["PATH"], "PYTHONPATH": str(TOP)}
    done = subprocess.run(command, cwd=cwd, env={**clean, **env}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return files_of(out)


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The tree of the shipped catalog on the shipped platform."""
    found: dict[str, bytes] = run(tmp_path_factory.mktemp("expected"))
    assert len(found) > 100
    return found


@pytest.mark.parametrize(
    "env",
    [
        {"PYTHONHASHSEED": "0"},
        {"PYTHONHASHSEED": "4294967295"},
        {"LC_ALL": "C"},
        {"LC_ALL": "C.UTF-8"},
        {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"LC_ALL": "C", "PYTHONIOENCODING": "ascii"},
        {"TZ": "Pacific/Kiritimati", "PYTHONOPTIMIZE": "1", "NO_COLOR": "1"},
        {"GITHUB_ACTIONS": "true", "CI": "true", "TERM": "xterm-256color", "HOME": "/nonexistent"},
    ],
    ids=lambda env: ",".join(f"{key}={value}" for key, value in env.items()),
)
def test_the_environment_changes_no_byte(expected: dict[str, bytes], tmp_path: Path, env: dict[str, str]) -> None:
    assert expected == run(tmp_path, **env)


def test_a_second_build_changes_no_byte(expected: dict[str, bytes], tmp_path: Path) -> None:
    assert expected == run(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    assert expected == run(tmp_path)
    assert before == {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}


def test_the_working_directory_changes_no_byte(expected: dict[str, bytes], tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    relative = os.path.relpath(TOP, elsewhere)
    absolute = run(tmp_path / "a", cwd=elsewhere, catalog=f"{TOP}/catalog", platform=f"{TOP}/platform.yaml")

    assert expected == absolute
    assert expected == run(
        tmp_path / "b", cwd=elsewhere, catalog=f"{relative}/catalog", platform=f"{relative}/platform.yaml"
    )
    assert expected == run(tmp_path / "c", cwd=TOP / "catalog", catalog=".", platform="../platform.yaml")
    assert expected == run(tmp_path / "d", catalog="./catalog/", platform="./platform.yaml")


@pytest.mark.parametrize("backwards", [False, True])
def test_the_order_in_which_files_were_made_changes_no_byte(
    expected: dict[str, bytes], tmp_path: Path, backwards: bool
) -> None:
    paths = [path for path in (TOP / "catalog").rglob("*") if path.is_file()]
    paths.sort(key=lambda path: path.name[::-1], reverse=backwards)
    for path in paths:
        target = tmp_path / path.relative_to(TOP)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    shutil.copy(TOP / "platform.yaml", tmp_path)

    assert expected == run(tmp_path / "out", cwd=tmp_path)


@pytest.mark.parametrize("platform", PLATFORMS)
def test_two_builds_in_one_process_are_equal(platform: str) -> None:
    one, two = (build(TOP / "catalog", TOP / platform) for _ in range(2))

    assert list(one.files.items()) == list(two.files.items())
    assert one.diagnostics == two.diagnostics


@examples(40)
@given(services(), services("two"), platforms(), st.permutations(["a", "b/c", "z"]))
def test_files_and_their_folders_may_be_read_in_any_order(
    one: dict[str, Any], two: dict[str, Any], platform: dict[str, Any], order: list[str]
) -> None:
    three = {"name": "three", "dependsOn": [], "source": {"image": "nginx:1.2.3"}, "workload": {}}
    texts = dict(zip(order, map(document, (one, two, three)), strict=True))
    trees = []
    for names in (order, order[::-1]):
        files: Files = {f"catalog/{name}.yaml": texts[name] for name in names}
        with repository({**files, "platform.yaml": document(platform)}) as repo:
            made = repo.build()
            trees.append((dict(made.files), made.diagnostics))

    assert trees[0] == trees[1]


@examples(40)
@given(services(), st.sampled_from(["a.yaml", "deep/er/b.yml"]))
def test_where_a_definition_stands_shows_in_its_header_alone(service: dict[str, Any], name: str) -> None:
    trees = []
    for path in ("web.yaml", name):
        with repository({f"catalog/{path}": document(service), "platform.yaml": CHARTS}) as repo:
            files = repo.build().files
            trees.append({key: text.replace(f"catalog/{path};", "catalog/web.yaml;") for key, text in files.items()})

    assert trees[0] == trees[1]


@examples(40)
@given(services())
def test_an_empty_table_of_overrides_changes_no_byte(service: dict[str, Any]) -> None:
    trees = []
    for platform in (CHARTS, ABSENT, ABSENT + "registries: {}\n", ABSENT + "registries: {imageOverrides: null}\n"):
        with repository({"catalog/web.yaml": document(service), "platform.yaml": platform}) as repo:
            made = repo.build()
            assume(made.files)
            trees.append((dict(made.files), [fault.message for fault in made.diagnostics]))

    assert [trees[0]] * 4 == trees
    assert not any("registries.imageOverrides" in text for text in trees[0][0].values())


def test_the_shipped_catalog_does_not_change_by_an_empty_table(tmp_path: Path) -> None:
    text = (TOP / "platform.yaml").read_text(encoding="utf-8")
    assert "  imageOverrides: []\n" in text
    (tmp_path / "platform.yaml").write_text(text.replace("  imageOverrides: []\n", "  emit: all\n"), encoding="utf-8")

    with_table, without = (build(TOP / "catalog", folder / "platform.yaml") for folder in (TOP, tmp_path))
    assert dict(with_table.files) == dict(without.files)
