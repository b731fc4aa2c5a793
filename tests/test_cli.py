from __future__ import annotations

import errno
import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import render
from render.cli import cli, run
from render.codes import CODES, page
from render.model import schema
from tests.project import PLATFORM, Project, project

WEB = """\
name: web
source:
  chart:
    url: oci://charts.example.org/web
    version: "1.0.0"
"""
DB = WEB.replace("web", "db")
MAIL = WEB.replace("web", "mail")
BAD = WEB.replace("version:", "verison:")
DUBIOUS = WEB + "values:\n  enabled: yes\n"
FULL_OF_FAULTS = {
    "catalog/a.yaml": BAD.replace("web", "a"),
    "catalog/b/b.yaml": DB + "dependsOn: [nothing]\nupdate: {range: 1.x}\n",
    "catalog/c.yaml": "name: c\n  kind: container\n",
    "catalog/d.yaml": MAIL,
}
SUPERUSER = hasattr(os, "geteuid") and os.geteuid() == 0
needs_permissions = pytest.mark.skipif(SUPERUSER, reason="the superuser reads and writes everything")

HELMRELEASE = "apps/web/helmrelease.yaml"


def web(folder: Path, *more: str) -> Project:
    """Return a repository with one service and, for each further one, its text."""
    files = {f"catalog/{index}.yaml": text for index, text in enumerate(more)}
    return project(folder, {"catalog/web.yaml": WEB, **files})


def last(text: str) -> str:
    return text.rstrip("\n").split("\n")[-1]


def spawn(made: Project, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the program as its own process in the repository's folder."""
    top = str(Path(render.__file__).parent.parent)
    return subprocess.run(
        [sys.executable, "-m", "render", *arguments],
        cwd=made.folder,
        env={**os.environ, "PYTHONPATH": top, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


# Exit codes


def test_build_of_a_sound_catalog_exits_0_and_prints_only_the_counts(tmp_path: Path) -> None:
    ran = web(tmp_path).run("build")

    assert ran.code == 0
    assert ran.out == ""
    assert ran.err == "1 service, 7 files: 7 changed, 0 unchanged, 0 pruned\n"


def test_second_build_changes_nothing(tmp_path: Path) -> None:
    made = web(tmp_path)
    made.run("build")
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.yaml")}

    ran = made.run("build")

    assert ran.code == 0
    assert ran.err == "1 service, 7 files: 0 changed, 7 unchanged, 0 pruned\n"
    assert before == {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.yaml")}


def test_build_with_a_fault_exits_1_and_writes_nothing(tmp_path: Path) -> None:
    made = project(tmp_path, {"catalog/web.yaml": BAD})

    ran = made.run("build")

    assert ran.code == 1
    assert ran.out == ""
    assert "error[R101]: unknown field `verison` in `source.chart`" in ran.err
    assert last(ran.err) == "1 error in 1 file (2 checked)"
    assert made.tree() == {}


@pytest.mark.parametrize(
    ("arguments", "suggestion"),
    [
        (("biuld",), "build"),
        (("build", "--plattform", "x.yaml"), "--platform"),
        (("build", "--format", "xml"), "'full', 'concise', 'json', 'github'"),
        (("build", "--fail-on", "never"), "'error', 'warning'"),
        (("schema", "servise"), "'service', 'platform'"),
        (("explain", "R999"), "there is no code R999"),
        (("build", "--reset-tags", "wbe"), "wbe"),
        (("build", "--allow-reinstall", "wbe"), "wbe"),
        (("build", "--force", "../elsewhere.yaml"), "not below the output root"),
        (("build", "--force", "apps/nothing.yaml"), "there is no such file"),
        (("build", "--force", "catalog"), "this is a folder; name the files in it"),
    ],
)
def test_usage_errors_exit_2_and_say_what_is_possible(
    tmp_path: Path, arguments: tuple[str, ...], suggestion: str
) -> None:
    made = web(tmp_path / "top")

    ran = made.run(*arguments)

    assert ran.code == 2
    assert ran.out == ""
    assert suggestion in ran.err
    assert made.tree() == {}


def test_bug_exits_3_and_says_that_the_input_is_not_at_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr("render.model.fields.Record.__init__", broken)

    ran = web(tmp_path).run("build")

    assert ran.code == 3
    assert ran.out == ""
    assert ran.err.startswith("internal error: ZeroDivisionError: by zero\n")
    assert "Traceback" in ran.err
    assert last(ran.err) == "this is a bug in render; the input is not at fault"


# Streams and formats


@pytest.mark.parametrize("command", ["build", "check"])
@pytest.mark.parametrize("style", ["full", "concise"])
def test_report_for_people_goes_to_stderr(tmp_path: Path, command: str, style: str) -> None:
    ran = project(tmp_path, {"catalog/web.yaml": BAD}).run(command, "--format", style)

    assert ran.code == 1
    assert ran.out == ""
    assert "R101" in ran.err


def test_concise_report_has_one_line_for_each_fault(tmp_path: Path) -> None:
    ran = project(tmp_path, {"catalog/web.yaml": BAD}).run("build", "--format", "concise")

    assert ran.err == (
        "catalog/web.yaml:5:5: R101 unknown field `verison` in `source.chart`; rename it to `version`\n"
        "1 error in 1 file (2 checked)\n"
    )


def test_concise_report_tells_warnings_from_errors(tmp_path: Path) -> None:
    ran = project(tmp_path, {"catalog/web.yaml": DUBIOUS}).run("build", "--format", "concise")

    assert ran.code == 0
    assert ran.err.startswith("catalog/web.yaml:7:12: R008 warning: two readers take")


@pytest.mark.parametrize("command", ["build", "check"])
def test_json_report_is_all_of_stdout(tmp_path: Path, command: str) -> None:
    ran = project(tmp_path, {"catalog/web.yaml": BAD}).run(command, "--format", "json")

    report = json.loads(ran.out)
    assert ran.code == 1
    assert ran.err == ""
    assert report["version"] == 1
    assert report["files"] is None
    (fault,) = report["diagnostics"]
    assert fault["code"] == "R101"
    assert fault["severity"] == "error"
    assert (fault["file"], fault["line"], fault["column"]) == ("catalog/web.yaml", 5, 5)
    assert fault["hint"] == "rename it to `version`"


def test_json_report_of_a_sound_build_lists_the_files(tmp_path: Path) -> None:
    made = web(tmp_path)

    report = json.loads(made.run("build", "--format", "json").out)

    assert report["diagnostics"] == []
    assert report["services"] == 1
    assert report["files"]["new"] == sorted(made.tree())
    assert report["files"]["changed"] == report["files"]["stale"] == []
    assert json.loads(made.run("build", "--format", "json").out)["files"]["unchanged"] == 7


def test_json_check_tells_what_is_new_changed_and_stale(tmp_path: Path) -> None:
    made = web(tmp_path, DB)
    made.run("build")
    (tmp_path / "catalog/0.yaml").write_text(MAIL)
    (tmp_path / "catalog/web.yaml").write_text(WEB + "values: {a: 1}\n")

    ran = made.run("check", "--format", "json")

    files = json.loads(ran.out)["files"]
    assert ran.code == 1
    assert HELMRELEASE in files["changed"]
    assert "apps/mail/helmrelease.yaml" in files["new"]
    assert "apps/db/helmrelease.yaml" in files["stale"]


@pytest.mark.parametrize("command", ["build", "check"])
def test_github_report_is_workflow_commands_on_stdout(tmp_path: Path, command: str) -> None:
    ran = project(tmp_path, {"catalog/web.yaml": BAD}).run(command, "--format", "github")

    assert ran.code == 1
    assert ran.out.startswith(
        "::error file=catalog/web.yaml,line=5,col=5,title=R101::unknown field `verison` in `source.chart`%0A"
    )
    assert ran.out.count("\n") == 1
    assert last(ran.err) == "1 error in 1 file (2 checked)"


def test_github_report_escapes_what_would_end_a_command(tmp_path: Path) -> None:
    name = "catalog/100%, a:b.yaml"

    ran = project(tmp_path, {name: BAD}).run("build", "--format", "github")

    assert "file=catalog/100%25%2C a%3Ab.yaml,line=5" in ran.out


def test_quiet_success_says_nothing(tmp_path: Path) -> None:
    ran = web(tmp_path).run("build", "-q")

    assert (ran.code, ran.out, ran.err) == (0, "", "")


def test_quiet_does_not_hide_faults(tmp_path: Path) -> None:
    ran = project(tmp_path, {"catalog/web.yaml": BAD}).run("build", "--quiet")

    assert ran.code == 1
    assert "R101" in ran.err
    assert last(ran.err) == "1 error in 1 file (2 checked)"


def test_verbose_lists_the_files_that_change(tmp_path: Path) -> None:
    made = web(tmp_path, DB)
    made.run("build")
    (tmp_path / "catalog/0.yaml").unlink()
    (tmp_path / "catalog/web.yaml").write_text(WEB + "values: {a: 1}\n")
    (tmp_path / "catalog/mail.yaml").write_text(MAIL)

    lines = made.run("build", "-v").err.split("\n")

    assert f"~ {HELMRELEASE}" in lines
    assert "+ apps/mail/source.yaml" in lines
    assert "- apps/db/source.yaml" in lines
    assert "~ apps/web/source.yaml" not in lines


def test_warnings_alone_exit_0_and_are_counted(tmp_path: Path) -> None:
    made = project(tmp_path, {"catalog/web.yaml": DUBIOUS})

    ran = made.run("build")

    assert ran.code == 0
    assert ran.err.endswith("1 warning in 1 file (2 checked)\n1 service, 7 files: 7 changed, 0 unchanged, 0 pruned\n")
    assert HELMRELEASE in made.tree()


def test_fail_on_warning_writes_nothing(tmp_path: Path) -> None:
    made = project(tmp_path, {"catalog/web.yaml": DUBIOUS})

    ran = made.run("build", "--fail-on", "warning")

    assert ran.code == 1
    assert made.tree() == {}
    assert ran.err.endswith(" would be changed, 0 unchanged, 0 would be pruned\n")


def test_fail_on_warning_makes_a_clean_check_fail(tmp_path: Path) -> None:
    made = project(tmp_path, {"catalog/web.yaml": DUBIOUS})
    made.run("build")

    assert made.run("check").code == 0
    assert made.run("check", "--fail-on", "warning").code == 1


# All faults at once


def test_all_faults_of_all_files_are_told_sorted_and_nothing_is_written(tmp_path: Path) -> None:
    made = project(tmp_path, FULL_OF_FAULTS)

    ran = made.run("build", "--format", "concise")

    lines = ran.err.splitlines()
    places = [line.split(": ")[0] for line in lines[:-1]]
    files = [place.split(":")[0] for place in places]
    assert ran.code == 1
    assert set(files) == {"catalog/a.yaml", "catalog/b/b.yaml", "catalog/c.yaml"}
    assert files == sorted(files)
    assert lines[-1] == f"{len(places)} errors in 3 files (5 checked)"
    assert made.tree() == {}


def test_report_does_not_depend_on_the_order_of_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = project(tmp_path, FULL_OF_FAULTS)
    expected = made.run("build").err
    scandir = os.scandir

    monkeypatch.setattr(os, "scandir", lambda path: iter(sorted(scandir(path), key=lambda one: one.name, reverse=True)))

    assert made.run("build").err == expected


def test_broken_service_makes_no_dependent_look_broken(tmp_path: Path) -> None:
    dependent = DB + "dependsOn: [web]\n"

    ran = project(tmp_path, {"catalog/web.yaml": BAD, "catalog/db.yaml": dependent}).run("build", "--format", "concise")

    assert ran.err.splitlines()[-1] == "1 error in 1 file (3 checked)"


def test_unreadable_file_makes_no_dependent_look_broken(tmp_path: Path) -> None:
    dependent = DB + "dependsOn: [web]\n"

    ran = project(tmp_path, {"catalog/web.yaml": "name: [web\n", "catalog/db.yaml": dependent}).run("build")

    assert ran.err.splitlines()[-1] == "1 error in 1 file (3 checked)"


# check


def test_check_of_a_clean_tree_exits_0(tmp_path: Path) -> None:
    made = web(tmp_path)
    made.run("build")

    ran = made.run("check")

    assert (ran.code, ran.out) == (0, "")
    assert ran.err == "1 service, 7 files: 0 would be changed, 7 unchanged, 0 would be pruned\n"


def test_check_of_a_stale_tree_exits_1_with_a_diff_and_writes_nothing(tmp_path: Path) -> None:
    made = web(tmp_path)
    made.run("build")
    before = made.tree()
    (tmp_path / "catalog/web.yaml").write_text(WEB + "values: {colour: blue}\n")

    ran = made.run("check")

    assert ran.code == 1
    assert f"--- {HELMRELEASE}\n+++ {HELMRELEASE}\n" in ran.out
    assert "+    colour: blue\n" in ran.out
    assert ran.err == "1 service, 7 files: 1 would be changed, 6 unchanged, 0 would be pruned\n"
    assert made.tree() == before


def test_check_of_an_empty_tree_shows_new_files_against_dev_null(tmp_path: Path) -> None:
    made = web(tmp_path)

    ran = made.run("check")

    assert ran.code == 1
    assert f"--- /dev/null\n+++ {HELMRELEASE}\n" in ran.out
    assert made.tree() == {}


def test_check_names_a_file_that_nothing_renders_any_more(tmp_path: Path) -> None:
    made = web(tmp_path, DB)
    made.run("build")
    (tmp_path / "catalog/0.yaml").unlink()

    ran = made.run("check")

    assert ran.code == 1
    assert "--- apps/db/helmrelease.yaml\n+++ /dev/null\n" in ran.out
    assert "would be pruned" in last(ran.err)
    assert (tmp_path / "apps/db/helmrelease.yaml").exists()


def test_check_of_an_edited_tree_exits_1_and_says_so(tmp_path: Path) -> None:
    made = web(tmp_path)
    made.run("build")
    edited = tmp_path / HELMRELEASE
    edited.write_text(edited.read_text().replace("interval: 1h", "interval: 5m"))

    ran = made.run("check")

    assert ran.code == 1
    assert "error[R503]: the file was edited by hand" in ran.err
    assert ran.out.count("-  interval: 5m\n+  interval: 1h\n") == 1
    assert "interval" not in ran.err


ONLY = {"catalog/web.yaml": WEB + "values: {colour: blue}\n", "catalog/db.yaml": DB, "catalog/mail.yaml": MAIL}


def test_check_of_one_service_sees_its_files_only(tmp_path: Path) -> None:
    made = project(tmp_path, ONLY)
    made.run("build")
    (tmp_path / "catalog/web.yaml").write_text(WEB)
    edited = tmp_path / "apps/mail/helmrelease.yaml"
    edited.write_text(edited.read_text().replace("interval: 1h", "interval: 5m"))

    clean = made.run("check", "--only", "db")
    stale = made.run("check", "--only", "web", "--only", "db")
    mine = made.run("check", "--only", "mail")

    assert (clean.code, clean.out) == (0, "")
    assert clean.err == "1 service, 3 files: 0 would be changed, 3 unchanged, 0 would be pruned\n"
    assert stale.code == 1
    assert stale.out.startswith(f"--- {HELMRELEASE}\n")
    assert stale.err == "2 services, 6 files: 1 would be changed, 5 unchanged, 0 would be pruned\n"
    assert "error[R503]" in mine.err


def test_check_of_a_service_that_is_not_there_is_a_usage_error(tmp_path: Path) -> None:
    ran = web(tmp_path).run("check", "--only", "wbe")

    assert ran.code == 2
    assert "--only wbe: there is no such service in the catalog" in ran.err


def test_check_hides_secrets_in_the_diff(tmp_path: Path) -> None:
    secret = """\
        name: keys
        extraObjects:
          - apiVersion: v1
            kind: Secret
            metadata:
              name: keys
            stringData:
              colour: hunter2
        """

    ran = project(tmp_path, {"catalog/keys.yaml": secret}).run("check")

    assert "kind: Secret" in ran.out
    assert "hunter2" not in ran.out + ran.err


def test_secret_literals_of_a_generator_are_in_no_report(tmp_path: Path) -> None:
    keys = """\
        name: keys
        kustomize:
          secretGenerator:
            - name: keys
              literals:
                - colour=hunter2
        """
    files = {"catalog/keys.yaml": keys, "catalog/broken.yaml": keys.replace("- colour=hunter2", "- [colour=hunter2]")}

    ran = project(tmp_path, {"catalog/keys.yaml": keys}).run("check")
    broken = project(tmp_path / "broken", files).run("build")

    assert "secretGenerator" in ran.out
    assert broken.code == 1
    assert "hunter2" not in ran.out + ran.err + broken.out + broken.err


# --force


def test_force_takes_over_exactly_the_named_file(tmp_path: Path) -> None:
    made = web(tmp_path, DB)
    made.run("build")
    first, second = tmp_path / HELMRELEASE, tmp_path / "apps/db/helmrelease.yaml"
    sound = first.read_bytes()
    for path in (first, second):
        path.write_text(path.read_text().replace("interval: 1h", "interval: 5m"))

    ran = made.run("build", "--force", HELMRELEASE)

    assert ran.code == 1
    assert "apps/db/helmrelease.yaml" in ran.err
    assert f"--> {HELMRELEASE}" not in ran.err
    assert b"interval: 5m" in first.read_bytes()

    assert made.run("build", "--force", HELMRELEASE, "--force", str(second)).code == 0
    assert first.read_bytes() == sound


# Input and output places


def test_missing_catalog_is_told(tmp_path: Path) -> None:
    ran = web(tmp_path).run("build", "katalog")

    assert ran.code == 1
    assert "error[R001]: cannot read the folder" in ran.err
    assert " --> katalog\n" in ran.err


def test_missing_platform_file_is_told(tmp_path: Path) -> None:
    made = web(tmp_path)

    ran = made.run("build", "--platform", "clusters/home.yaml")

    assert ran.code == 1
    assert "error[R105]: there is no platform file\n --> clusters/home.yaml\n" in ran.err
    assert made.tree() == {}


def test_platform_path_that_is_a_folder_is_told(tmp_path: Path) -> None:
    ran = web(tmp_path).run("build", "--platform", "catalog")

    assert ran.code == 1
    assert "error[R001]: cannot read the file" in ran.err


def test_file_over_one_mebibyte_is_refused(tmp_path: Path) -> None:
    ran = project(tmp_path, {"catalog/web.yaml": WEB + "#" * (1 << 20)}).run("build")

    assert ran.code == 1
    assert "error[R005]: the file is 1.0 MiB, more than 1 MiB" in ran.err


@needs_permissions
def test_unreadable_file_is_fatal(tmp_path: Path) -> None:
    made = web(tmp_path, DB)
    (tmp_path / "catalog/0.yaml").chmod(0)

    ran = made.run("build")

    assert ran.code == 1
    assert "error[R001]: cannot read the file: permission denied\n --> catalog/0.yaml\n" in ran.err
    assert not (tmp_path / "apps").exists()


@needs_permissions
def test_read_only_root_is_told(tmp_path: Path) -> None:
    made = web(tmp_path)
    root = tmp_path / "out"
    root.mkdir(mode=0o555)

    ran = made.run("build", "--out", "out")

    assert ran.code == 1
    assert "error[R508]: " in ran.err
    assert list(root.iterdir()) == []


@needs_permissions
def test_root_in_a_read_only_folder_is_told(tmp_path: Path) -> None:
    made = web(tmp_path)
    (tmp_path / "locked").mkdir(mode=0o555)

    ran = made.run("build", "--out", "locked/out")

    assert ran.code == 1
    assert "error[R508]: " in ran.err


@pytest.mark.parametrize("command", ["build", "check"])
def test_root_below_a_file_is_told(tmp_path: Path, command: str) -> None:
    made = web(tmp_path)
    (tmp_path / "out").write_text("a file\n")

    ran = made.run(command, "--out", "out/tree")

    assert ran.code == 1
    assert "error[R508]: the output root cannot be made: this is not a folder\n --> out\n" in ran.err


def test_root_that_the_system_refuses_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    made = web(tmp_path)
    monkeypatch.setattr(os, "makedirs", refused)

    ran = made.run("build", "--out", "out")

    assert ran.code == 1
    assert "error[R508]: cannot make or lock the output root: permission denied\n --> out\n" in ran.err


def test_root_that_nothing_is_written_to_is_not_made(tmp_path: Path) -> None:
    made = project(tmp_path, {"catalog/web.yaml": WEB + "kustomize: {resources: [mine.yaml]}\n"})

    ran = made.run("build", "--out", "out/tree")

    assert "error[R507]" in ran.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("command", ["build", "check"])
def test_root_that_is_a_file_is_told(tmp_path: Path, command: str) -> None:
    made = web(tmp_path)
    (tmp_path / "out").write_text("a file\n")

    ran = made.run(command, "--out", "out")

    assert ran.code == 1
    assert "error[R508]: the output root is not a folder\n --> out\n" in ran.err
    assert (tmp_path / "out").read_text() == "a file\n"


@pytest.mark.parametrize("linked", ["apps", "apps/web", HELMRELEASE, "apps/kustomization.yaml", "flux"])
def test_nothing_is_written_through_a_link(tmp_path: Path, linked: str) -> None:
    made = web(tmp_path)
    outside = tmp_path / "outside"
    is_file = linked.endswith(".yaml")
    outside.mkdir()
    target = outside / "file.yaml" if is_file else outside
    if is_file:
        target.write_text("mine: true\n")
    (tmp_path / linked).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / linked).symlink_to(target)

    ran = made.run("build")

    assert ran.code == 1
    assert "error[R506]: " in ran.err
    assert [path.name for path in outside.iterdir()] == (["file.yaml"] if is_file else [])
    assert not is_file or target.read_text() == "mine: true\n"
    assert not (tmp_path / "apps/web/source.yaml").exists()


def test_default_root_is_the_platforms_from_the_top_of_the_repository(tmp_path: Path) -> None:
    made = project(
        tmp_path,
        {
            "catalog/web.yaml": WEB,
            "clusters/home/platform.yaml": PLATFORM + "root: clusters/home\n",
            ".git/HEAD": "ref: refs/heads/main\n",
        },
    )

    ran = made.run("build", "--platform", "clusters/home/platform.yaml")

    assert ran.code == 0
    assert (tmp_path / "clusters/home" / HELMRELEASE).exists()
    assert not (tmp_path / "apps").exists()


def test_out_moves_the_files_and_changes_none(tmp_path: Path) -> None:
    made = web(tmp_path)
    made.run("build")

    made.run("build", "--out", "elsewhere")

    tree = made.tree()
    here = {path: data for path, data in tree.items() if not path.startswith("elsewhere/")}
    assert {f"elsewhere/{path}": data for path, data in here.items()}.items() <= tree.items()
    assert len(tree) == 2 * len(here)


def test_flux_paths_name_the_platforms_root_whatever_out_says(tmp_path: Path) -> None:
    made = project(tmp_path, {"catalog/web.yaml": WEB, "platform.yaml": PLATFORM + "root: clusters/home\n"})

    made.run("build", "--out", "elsewhere")

    assert '  path: "./clusters/home/apps"\n' in (tmp_path / "elsewhere/flux/kustomizations.yaml").read_text()


def test_headers_name_the_catalog_folder_from_any_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = web(tmp_path)
    made.run("build")
    expected = made.tree()
    inner = tmp_path / "catalog"
    monkeypatch.chdir(inner)

    code = run(["build", ".", "--platform", "../platform.yaml", "--out", ".."])

    assert code == 0
    assert made.tree() == expected
    assert "7 unchanged" in capsys.readouterr().err


def test_without_image_automation_switching_back_and_forth_gives_the_first_tree(tmp_path: Path) -> None:
    automated = WEB.replace("source:\n", "source:\n  image: ghcr.io/example/web:1.2.3\n") + "update: {range: 1.x}\n"
    made = project(tmp_path, {"catalog/web.yaml": automated})
    made.run("build")
    first = made.tree()

    assert made.run("build", "--no-image-automation").code == 0
    without = made.tree()
    assert made.run("build").code == 0

    assert made.tree() == first
    assert "apps/web/image-automation.yaml" in first
    assert "apps/web/image-automation.yaml" not in without
    assert not any(b"imagepolicy" in data for data in without.values())


# Other commands


@pytest.mark.parametrize("kind", ["service", "platform"])
def test_schema_prints_the_published_schema(tmp_path: Path, kind: str) -> None:
    ran = web(tmp_path).run("schema", kind)

    assert ran.code == 0
    assert ran.err == ""
    assert ran.out == schema.text("service" if kind == "service" else "platform")
    assert json.loads(ran.out)["$defs"]


@pytest.mark.parametrize("code", ["R101", "r101"])
def test_explain_prints_the_page_of_a_code(tmp_path: Path, code: str) -> None:
    ran = web(tmp_path).run("explain", code)

    assert (ran.code, ran.out, ran.err) == (0, page("R101"), "")


@pytest.mark.parametrize(
    ("code", "suggestion"), [("R1O1", "; did you mean R101?"), ("R888", ""), ("R10", ""), ("R10x", ""), ("x", "")]
)
def test_explain_suggests_the_one_code_that_is_a_character_away(tmp_path: Path, code: str, suggestion: str) -> None:
    ran = web(tmp_path).run("explain", code)

    assert ran.code == 2
    assert ran.err.endswith(f"there is no code {code}{suggestion}\n")


def test_every_code_can_be_explained(tmp_path: Path) -> None:
    made = web(tmp_path)

    assert all(made.run("explain", code).out == page(code) for code in CODES)


@pytest.mark.parametrize("command", sorted(cli.commands))
def test_help_shows_two_examples_that_run(tmp_path: Path, command: str) -> None:
    ran = web(tmp_path).run(command, "--help")

    examples = [" ".join(one.split()) for one in ran.out.partition("Examples:")[2].split("\n\n") if one.strip()]
    assert ran.code == 0
    assert len(examples) >= 2
    for example in examples:
        words = example.split(" > ")[0].split(" | ")[-1].split()
        assert words[:2] == ["render", command]
        cli.commands[command].make_context(command, words[2:], resilient_parsing=False).close()


def test_help_of_the_program_lists_every_command(tmp_path: Path) -> None:
    ran = web(tmp_path).run("-h")

    assert ran.code == 0
    assert all(command in ran.out for command in cli.commands)


# As a process


def test_version_is_one_line(tmp_path: Path) -> None:
    made = web(tmp_path)

    ran = spawn(made, "--version")

    assert (ran.returncode, ran.stdout, ran.stderr) == (0, f"render {render.__version__}\n", "")
    assert made.run("--version").out == ran.stdout


def test_process_keeps_product_and_report_apart(tmp_path: Path) -> None:
    made = web(tmp_path)

    checked = spawn(made, "check")
    built = spawn(made, "build")

    assert checked.returncode == 1
    assert checked.stdout.startswith("--- /dev/null\n")
    assert checked.stderr == "1 service, 7 files: 7 would be changed, 0 unchanged, 0 would be pruned\n"
    assert (built.returncode, built.stdout) == (0, "")
    assert built.stderr == "1 service, 7 files: 7 changed, 0 unchanged, 0 pruned\n"


def test_process_exits_2_on_usage_errors(tmp_path: Path) -> None:
    ran = spawn(web(tmp_path), "biuld")

    assert ran.returncode == 2
    assert ran.stdout == ""
    assert "build" in ran.stderr


def test_reports_are_utf8_in_any_locale(tmp_path: Path) -> None:
    made = project(tmp_path, {"catalog/web.yaml": WEB + "größe: 1\n"})

    locale = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}

    ran = spawn(made, "build", "--format", "concise", **locale)
    product = spawn(made, "build", "--format", "json", **locale)

    assert ran.returncode == product.returncode == 1
    assert "unknown field `größe`" in ran.stderr
    assert "unknown field `größe`" in product.stdout


@pytest.mark.parametrize(
    ("environment", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True)]
)
def test_colour_only_on_a_terminal_and_not_against_no_color(
    tmp_path: Path, environment: dict[str, str], coloured: bool
) -> None:
    made = project(tmp_path, {"catalog/web.yaml": BAD})
    master, slave = pty.openpty()
    clean = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "FORCE_COLOR")}
    top = str(Path(render.__file__).parent.parent)

    subprocess.run(
        [sys.executable, "-m", "render", "build"],
        cwd=made.folder,
        env={**clean, "PYTHONPATH": top, **environment},
        stdout=subprocess.PIPE,
        stderr=slave,
        check=False,
    )
    os.close(slave)
    text = os.read(master, 1 << 16).decode()
    os.close(master)

    assert "R101" in text
    assert ("\x1b[" in text) is coloured
    assert "\x1b[" not in spawn(made, "build").stderr


def test_stale_files_are_annotated_in_github(tmp_path: Path) -> None:
    made = web(tmp_path)
    made.run("build", "--out", "out")
    (tmp_path / "catalog/web.yaml").write_text((tmp_path / "catalog/web.yaml").read_text() + "labels: {tier: front}\n")
    (tmp_path / "out/apps/web/source.yaml").unlink()

    ran = made.run("check", "--out", "out", "--format", "github")

    assert ran.code == 1
    assert (
        "::error file=out/apps/web/helmrelease.yaml,title=stale::the generated file is stale; "
        "run `render build`, and commit\n"
    ) in ran.out
    assert "::error file=out/apps/web/source.yaml,title=stale::the generated file is missing; " in ran.out


@pytest.mark.parametrize("path", ["", "a" * 300, "a/" * 3000])
@pytest.mark.parametrize(
    "arguments",
    [
        "build --out", "check --out", "sync --out", "build", "images", "renovate", "build --platform",
        "init --cluster a", "new a --chart b --catalog", "new a --chart b --file", "diff x", "flux", "import",
        "import x --catalog",
        "override a --overrides", "check --tree", "build --force", "policy --tags x --spec", "policy web --tags",
    ],
)  # fmt: skip
def test_path_that_no_file_can_have_is_a_wrong_command_line(path: str, arguments: str, tmp_path: Path) -> None:
    made = project(
        tmp_path, {"catalog/web.yaml": "name: web\nsource: {chart: {url: 'oci://r.example/a', version: '1'}}\n"}
    )
    before = made.tree()
    ran = made.run(*arguments.split(), path)

    assert (ran.code, ran.out) == (2, "")
    assert "the path is empty" in ran.err if not path else "the name is too long" in ran.err
    assert made.tree() == before


STREAMED = (
    "build --out out",
    "check --format json",
    "flux -",
    "new a --image r.example/a:1.2.3 --dry-run",
    "new b --chart oci://r.example/b",
    "init infra --cluster a",
    "sync --dry-run",
    "--version",
)


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-", ">/dev/full", "2>/dev/full"])
def test_streams_that_take_nothing_are_no_bug(closed: str, tmp_path: Path) -> None:
    if "full" in closed and not Path("/dev/full").exists():
        pytest.skip("there is no such device")
    web = "name: web\nsource: {chart: {url: 'oci://r.example/a', version: '1.0.0'}}\n"
    project(tmp_path, {"catalog/web.yaml": web})
    script = "\n".join(f"{sys.executable} -m render {one} {closed}\necho $? >&3" for one in STREAMED)
    environ = {**os.environ, "PYTHONPATH": str(Path(render.__file__).parents[1]), "RENDER_CACHE_DIR": ""}
    # Buffered streams fail at the end, others at once.
    environ["PYTHONUNBUFFERED"] = "" if closed == ">/dev/full" else "1"
    command = ["sh", "-c", f"exec 3>codes\n{script}"]
    ran = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
    codes = [int(line) for line in (tmp_path / "codes").read_text().split()]

    assert len(codes) == len(STREAMED)
    assert max(codes) <= 2
    assert "Traceback" not in ran.stderr
    assert "Exception ignored" not in ran.stderr
    assert (tmp_path / "infra/platform.yaml").is_file()
    assert closed != ">/dev/full" or "cannot print what there is to say: no space left on device" in ran.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        "build",
        "check",
        "images",
        "renovate",
        "sync",
        "check --tree .",
        "policy web --tags x",
        "new a --image r.example/a:1",
    ],
)
def test_catalog_that_is_a_link_to_itself_is_a_fault(arguments: str, tmp_path: Path) -> None:
    made = project(tmp_path, {"x": "1.0.0\n"})
    (tmp_path / "catalog").rmdir()
    (tmp_path / "catalog").symlink_to("catalog")

    assert made.run(*arguments.split()).code == 1


@pytest.mark.parametrize(
    "arguments",
    ["build", "check", "diff out out", "check --tree out", "new a --image r.example/a:1 --catalog out"],
)
def test_folder_behind_one_that_is_locked_is_a_fault(
    arguments: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    web = "name: web\nsource: {chart: {url: 'oci://r.example/a', version: '1.0.0'}}\n"
    made = project(tmp_path, {"catalog/web.yaml": web, "platform.yaml": PLATFORM + "root: out\n"})
    (tmp_path / "out").symlink_to("locked/out")
    look = os.stat

    def refuse(path: Any, *rest: Any, **more: Any) -> os.stat_result:
        if str(path).split("/")[-1] == "out" and more.get("follow_symlinks", True):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return look(path, *rest, **more)

    monkeypatch.setattr(os, "stat", refuse)

    assert made.run(*arguments.split()).code in (1, 2)
