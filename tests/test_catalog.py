from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest

from render.build import build
from render.catalog import with_snippet
from render.diagnostics import Diagnostic, Location
from tests.project import PLATFORM, project, told

WEB = """\
name: web
source:
  chart:
    url: oci://charts.example.org/web
    version: "1.0.0"
"""
ODD = "R001 {} the name holds a control character, or is not UTF-8"
ODD_NAMES = ["a\nb", "a\rb", "a\tb", "a\x1bb", "a\x7fb", "a\x85b", "a\u2028b", "a\u2029b", "a\ufeffb", "caf\udce9"]


def odd(name: str) -> str:
    return ODD.format(name)


@pytest.mark.parametrize("name", ODD_NAMES)
def test_file_name_that_no_header_can_hold_is_refused(tmp_path: Path, name: str) -> None:
    made = project(tmp_path, {f"catalog/{name}.yaml": WEB, "catalog/web.yaml": WEB})

    assert told(made.build()) == [odd(f"catalog/{name}.yaml")]
    assert made.run("build").code == 1
    assert made.run("build", "--format", "json").code == 1
    assert not (tmp_path / "apps").exists()


@pytest.mark.parametrize("name", ODD_NAMES)
def test_folder_name_that_no_header_can_hold_is_refused(tmp_path: Path, name: str) -> None:
    made = project(tmp_path, {f"catalog/{name}/web.yaml": WEB})

    assert told(made.build()) == [odd(f"catalog/{name}")]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_name_of_the_catalog_folder_is_no_exception(tmp_path: Path, name: str) -> None:
    made = project(tmp_path, {f"{name}/web.yaml": WEB})

    ran = made.run("build", name)

    assert ran.code == 1
    assert "error[R001]: the name holds a control character, or is not UTF-8" in ran.err


@pytest.mark.parametrize("name", ODD_NAMES)
def test_name_of_the_platform_file_is_no_exception(tmp_path: Path, name: str) -> None:
    made = project(tmp_path, {"catalog/web.yaml": WEB, f"{name}.yaml": PLATFORM})

    ran = made.run("build", "--platform", f"{name}.yaml")

    assert ran.code == 1
    assert ran.err.count("error[R001]: the name holds a control character, or is not UTF-8") == 1


@pytest.mark.parametrize("name", ["größe", "日本", "a b", "a#b", "a: b", "a'b", "100%", "a;b", "👩‍🚀"])
def test_other_names_are_taken(tmp_path: Path, name: str) -> None:
    made = project(tmp_path, {f"catalog/{name}/{name}.yaml": WEB})

    assert made.run("build").code == 0
    assert made.run("check").code == 0


@pytest.mark.parametrize("name", [".a\nb.yaml", ".hidden/web.yaml", "a\nb.txt", "\udcff"])
def test_files_that_are_not_read_may_have_any_name(tmp_path: Path, name: str) -> None:
    assert told(project(tmp_path, {f"catalog/{name}": "{", "catalog/web.yaml": WEB}).build()) == []


def test_file_that_is_no_regular_one_is_refused_without_waiting(tmp_path: Path) -> None:
    made = project(tmp_path, {"catalog/web.yaml": WEB})
    os.mkfifo(tmp_path / "catalog/pipe.yaml")

    assert told(made.build()) == ["R001 catalog/pipe.yaml cannot read the file: not a regular file"]


def test_link_that_leads_to_itself_is_refused(tmp_path: Path) -> None:
    made = project(tmp_path, {"catalog/web.yaml": WEB})
    (tmp_path / "catalog/loop.yaml").symlink_to("loop.yaml")
    (tmp_path / "catalog/other").symlink_to("other")

    (fault,) = made.build().diagnostics

    assert (fault.code, fault.location.path) == ("R001", "catalog/loop.yaml")


def test_link_to_a_file_of_the_catalog_is_followed(tmp_path: Path) -> None:
    made = project(tmp_path, {"catalog/web.txt": WEB})
    (tmp_path / "catalog/web.yaml").symlink_to("web.txt")

    assert sorted(made.build().names) == ["web"]


def test_platform_path_below_a_file_is_told(tmp_path: Path) -> None:
    made = project(tmp_path, {"catalog/web.yaml": WEB})

    ran = made.run("build", "--platform", "platform.yaml/platform.yaml")

    assert ran.code == 1
    assert "error[R105]: there is no platform file" in ran.err


def test_platform_path_that_is_too_long_is_told(tmp_path: Path) -> None:
    made = project(tmp_path, {"catalog/web.yaml": WEB})
    ran = made.run("build", "--platform", "p" * 300)

    assert ran.code == 2
    assert "Invalid value for '--platform'" in ran.err
    with contextlib.chdir(tmp_path):
        built = build(Path("catalog"), Path("p" * 300))
    assert [fault.code for fault in built.diagnostics] == ["R105"]


def test_a_refused_scalar_gets_no_warning_beside_the_error(tmp_path: Path) -> None:
    text = WEB + "labels: {a: yes}\nvalues: {b: yes}\n"

    made = project(tmp_path, {"catalog/web.yaml": text}).build()

    assert [(fault.code, fault.location.line) for fault in made.diagnostics] == [("R103", 6), ("R008", 7)]


def test_a_secret_is_in_no_warning(tmp_path: Path) -> None:
    text = WEB + "values: {password: yes}\n"

    (fault,) = project(tmp_path, {"catalog/web.yaml": text}).build().diagnostics

    assert fault.code == "R008"
    assert "yes" not in fault.message + fault.hint + fault.snippet


def test_a_fault_without_its_line_gets_it_unless_it_is_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = WEB + "extraObjects:\n  - kind: Secret\n    stringData: {colour: blue}\n"
    project(tmp_path, {"catalog/web.yaml": secret})
    monkeypatch.chdir(tmp_path)

    def shown(path: str, line: int, column: int) -> str:
        return with_snippet(Diagnostic(Location(path, line, column), "R203", "a fault")).snippet

    assert shown("catalog/web.yaml", 1, 1) == "name: web"
    assert shown("catalog/web.yaml", 1, 0) == ""
    assert shown("catalog/web.yaml", 8, 5) == ""
    assert shown("catalog/none.yaml", 1, 1) == ""
