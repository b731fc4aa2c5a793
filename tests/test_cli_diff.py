from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.gitrepo import commit, git
from tests.project import PLATFORM, Project, project

WEB = """\
name: web
namespace: demo
source:
  image: ghcr.io/o/web:1.0.0
  chart:
    url: oci://charts.example.org/web
    version: "1.0.0"
update:
  range: 1.x
"""
DB = """\
name: db
source:
  chart:
    url: oci://charts.example.org/db
    version: "1.0.0"
"""
RELEASE = "apps/web/helmrelease.yaml"


@pytest.fixture
def fleet(tmp_path: Path) -> Project:
    """A repository whose first commit holds two services and their tree."""
    made = project(tmp_path / "fleet", {"catalog/web.yaml": WEB, "catalog/db.yaml": DB})
    assert made.run("build").code == 0
    commit(made.folder)
    return made


def edit(made: Project, path: str, old: str, new: str) -> None:
    file = made.folder / path
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


# A revision


def test_nothing_differs_from_the_revision_that_is_checked_out(fleet: Project) -> None:
    ran = fleet.run("diff", "--base", "HEAD")

    assert (ran.code, ran.out, ran.err) == (0, "", "no difference\n")


def test_changes_since_a_revision_are_told_by_object(fleet: Project) -> None:
    edit(fleet, "catalog/web.yaml", 'version: "1.0.0"', 'version: "2.0.0"')
    (fleet.folder / "catalog/db.yaml").unlink()
    status = git(fleet.folder, "status", "--porcelain")
    ran = fleet.run("diff", "--base", "main")

    assert ran.code == 1
    assert '~ OCIRepository demo/web (apps/web/source.yaml)\n    spec.ref.tag\n   -"1.0.0"\n   +"2.0.0"\n' in ran.out
    assert "- HelmRelease db/db (apps/db/helmrelease.yaml)\n" in ran.out
    assert "  the release `db/db` is uninstalled\n  upgraded: demo/web\n" in ran.out
    assert ran.err == "4 objects removed, 2 changed; releases: 1 uninstalled, 1 upgraded\n"
    assert git(fleet.folder, "status", "--porcelain") == status


def test_the_committed_tree_decides_nothing_but_versions(fleet: Project) -> None:
    edit(fleet, "catalog/web.yaml", 'version: "1.0.0"', 'version: "2.0.0"')
    commit(fleet.folder, "Forget to build")

    assert fleet.run("diff", "--base", "HEAD").code == 0
    assert fleet.run("diff", "--base", "HEAD~1").code == 1


def test_versions_of_the_image_bot_are_those_of_each_side(fleet: Project) -> None:
    first = git(fleet.folder, "rev-parse", "HEAD").strip()
    edit(fleet, RELEASE, 'tag: "1.0.0"', 'tag: "1.4.0"')
    commit(fleet.folder, "Update image")

    assert fleet.run("diff", "--base", "HEAD").code == 0
    ran = fleet.run("diff", "--base", first)
    assert ran.code == 1
    assert "  ghcr.io/o/web:1.0.0 → ghcr.io/o/web:1.4.0\n" in ran.out


def test_output_root_below_the_top_and_a_call_from_elsewhere(tmp_path: Path) -> None:
    files = {"sets/home/catalog/web.yaml": WEB, "sets/home/platform.yaml": PLATFORM + "root: out/home\n"}
    made = project(tmp_path / "fleet", files)
    (tmp_path / "fleet/platform.yaml").unlink()
    commit(made.folder)
    inputs = ("sets/home/catalog", "--platform", "sets/home/platform.yaml")
    assert made.run("build", *inputs).code == 0
    edit(made, f"out/home/{RELEASE}", 'tag: "1.0.0"', 'tag: "1.4.0"')
    commit(made.folder)

    assert made.run("diff", "--base", "HEAD", *inputs).code == 0
    assert made.run("diff", "--base", "HEAD~1", *inputs).code == 1
    assert Project(made.folder / "sets/home").run("diff", "--base", "HEAD").code == 0
    inputs = ("fleet/sets/home/catalog", "--platform", "fleet/sets/home/platform.yaml")
    assert Project(tmp_path).run("diff", "--base", "HEAD", *inputs).code == 0


def test_out_names_the_tree_with_the_versions(tmp_path: Path) -> None:
    made = project(tmp_path / "fleet", {"catalog/web.yaml": WEB})
    assert made.run("build", "--out", "other").code == 0
    edit(made, f"other/{RELEASE}", 'tag: "1.0.0"', 'tag: "1.4.0"')
    commit(made.folder)
    edit(made, f"other/{RELEASE}", 'tag: "1.4.0"', 'tag: "1.5.0"')

    assert "web:1.4.0 → ghcr.io/o/web:1.5.0" in made.run("diff", "--base", "HEAD", "--out", "other").out
    assert made.run("diff", "--base", "HEAD").code == 0


def test_without_image_automation_on_both_sides(fleet: Project) -> None:
    edit(fleet, "catalog/web.yaml", "range: 1.x", 'range: "1.0.x"')

    assert fleet.run("diff", "--base", "HEAD").code == 1
    assert fleet.run("diff", "--base", "HEAD", "--no-image-automation", "--out", "nowhere").code == 0


def test_base_that_does_not_render_is_told_and_nothing_is_compared(fleet: Project) -> None:
    edit(fleet, "catalog/web.yaml", "version:", "verison:")
    commit(fleet.folder, "Break")
    edit(fleet, "catalog/web.yaml", "verison:", "version:")
    ran = fleet.run("diff", "--base", "HEAD")

    assert (ran.code, ran.out) == (1, "")
    assert " --> HEAD:catalog/web.yaml:7:5\n" in ran.err
    assert ran.err.endswith("nothing is compared: HEAD cannot be rendered or read\n")
    page = fleet.run("diff", "--base", "HEAD", "--format", "markdown")
    assert (page.code, "cannot be rendered or read, so nothing is compared." in page.out) == (1, True)
    assert "HEAD:catalog/web.yaml:7:5: R101" in page.out
    made = json.loads(fleet.run("diff", "--base", "HEAD", "--format", "json").out)
    assert (made["failed"], made["objects"], made["diagnostics"][0]["code"]) == (["old"], [], "R101")


def test_working_tree_that_does_not_render_is_told(fleet: Project) -> None:
    edit(fleet, "catalog/web.yaml", "version:", "verison:")
    ran = fleet.run("diff", "--base", "HEAD")

    assert (ran.code, ran.out) == (1, "")
    assert " --> catalog/web.yaml:7:5\n" in ran.err
    assert ran.err.endswith("nothing is compared: the working tree cannot be rendered or read\n")


def test_revision_without_catalog_is_no_empty_tree(tmp_path: Path) -> None:
    made = project(tmp_path / "fleet", {"readme": "x"})
    (made.folder / "platform.yaml").rename(tmp_path / "platform.yaml")
    commit(made.folder)
    (tmp_path / "platform.yaml").rename(made.folder / "platform.yaml")
    (made.folder / "catalog/web.yaml").write_text(WEB)
    ran = made.run("diff", "--base", "HEAD")

    assert (ran.code, ran.out) == (1, "")
    assert "error[R105]: there is no platform file\n --> HEAD:platform.yaml\n" in ran.err


def test_unknown_revision_is_wrong_usage(fleet: Project) -> None:
    ran = fleet.run("diff", "--base", "nope")

    assert (ran.code, ran.out) == (2, "")
    assert ran.err.endswith("Error: --base nope: there is no such revision here\n")


def test_missing_git_is_told(fleet: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    ran = fleet.run("diff", "--base", "main")

    assert ran.code == 2
    assert ran.err.endswith("Error: --base main: `git` is not installed, or not on PATH\n")


def test_catalog_outside_the_repository_is_told(fleet: Project, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    ran = fleet.run("diff", "--base", "main", "../elsewhere")

    assert ran.code == 2
    assert "`../elsewhere` is not in the repository" in ran.err


def test_nothing_is_left_behind(fleet: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))

    assert fleet.run("diff", "--base", "main").code == 0
    assert list(temporary.iterdir()) == []


def test_warnings_of_now_are_told_and_may_fail(fleet: Project) -> None:
    edit(fleet, "catalog/db.yaml", "name: db", "name: db\nvalues: {a: yes}")
    commit(fleet.folder)

    ran = fleet.run("diff", "--base", "HEAD")
    assert (ran.code, "warning[R008]" in ran.err) == (0, True)
    assert fleet.run("diff", "--base", "HEAD", "--fail-on", "warning").code == 1


# Two trees


def test_two_trees(fleet: Project, tmp_path: Path) -> None:
    git(fleet.folder, "worktree", "add", "--quiet", str(tmp_path / "before"), "HEAD")
    edit(fleet, "catalog/web.yaml", "ghcr.io/o/web:1.0.0", "ghcr.io/o/web:1.2.0")
    assert fleet.run("build").code == 0
    ran = fleet.run("diff", str(tmp_path / "before"), ".")

    assert ran.code == 1
    assert "~ HelmRelease demo/web (apps/web/helmrelease.yaml)\n" in ran.out
    assert ran.err == "1 object changed; releases: 1 upgraded\n"
    assert fleet.run("diff", ".", ".").code == 0


def test_files_of_people_are_compared_too(fleet: Project, tmp_path: Path) -> None:
    git(fleet.folder, "worktree", "add", "--quiet", str(tmp_path / "before"), "HEAD")
    own = fleet.folder / "apps/web/own.yaml"
    own.write_text("\ufeffapiVersion: v1\r\nkind: ConfigMap\r\nmetadata: {name: own}\r\n")

    assert "+ ConfigMap own (apps/web/own.yaml)\n" in fleet.run("diff", str(tmp_path / "before"), ".").out


@pytest.mark.parametrize("sides", [(".", "empty"), ("empty", ".")])
def test_folder_without_a_tree_is_no_mass_deletion(fleet: Project, sides: tuple[str, str]) -> None:
    (fleet.folder / "empty").mkdir()
    ran = fleet.run("diff", *sides)

    assert (ran.code, ran.out) == (1, "")
    assert "error[R001]: there is no rendered output in this folder\n --> empty\n" in ran.err
    assert ran.err.endswith("nothing is compared: empty cannot be rendered or read\n")


def test_file_that_cannot_be_read_is_no_deletion(fleet: Project, tmp_path: Path) -> None:
    git(fleet.folder, "worktree", "add", "--quiet", str(tmp_path / "before"), "HEAD")
    release = fleet.folder / RELEASE
    for content in ("a: [\n", "<<<<<<< a\na: 1\n=======\na: 2\n>>>>>>> b\n", "\udcff"):
        release.write_bytes(content.encode("utf-8", "surrogateescape"))
        ran = fleet.run("diff", str(tmp_path / "before"), ".")
        assert (ran.code, ran.out) == (1, "")
        assert RELEASE in ran.err
    release.unlink()
    release.symlink_to(tmp_path / "before" / RELEASE)
    ran = fleet.run("diff", str(tmp_path / "before"), ".")
    assert (ran.code, ran.out, "a symbolic link is not followed" in ran.err) == (1, "", True)


def test_only_filters_by_service(fleet: Project, tmp_path: Path) -> None:
    git(fleet.folder, "worktree", "add", "--quiet", str(tmp_path / "before"), "HEAD")
    edit(fleet, "catalog/web.yaml", 'version: "1.0.0"', 'version: "2.0.0"')
    assert fleet.run("build").code == 0

    for arguments in (("--base", "HEAD"), (str(tmp_path / "before"), ".")):
        assert fleet.run("diff", *arguments, "--only", "db").code == 0
        assert fleet.run("diff", *arguments, "--only", "db", "--only", "web").code == 1
        ran = fleet.run("diff", *arguments, "--only", "nothing")
        assert (ran.code, "--only nothing: there is no such service" in ran.err) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "give two rendered trees, or --base REV"),
        (("a",), "give two rendered trees, or --base REV"),
        (("a", "b", "c"), "give two rendered trees, or --base REV"),
        (("a", "b"), "a: there is no such folder"),
        (("--base", "HEAD", "a", "b"), "--base compares one catalog with itself"),
        (("--base", "--all"), "no name of a revision"),
    ],
)
def test_wrong_usage_is_told(fleet: Project, arguments: tuple[str, ...], told: str) -> None:
    ran = fleet.run("diff", *arguments)

    assert (ran.code, ran.out) == (2, "")
    assert told in ran.err


# Forms


def test_json_is_versioned_and_whole(fleet: Project) -> None:
    edit(fleet, "catalog/web.yaml", "ghcr.io/o/web:1.0.0", "ghcr.io/o/web:1.2.0")
    ran = fleet.run("diff", "--base", "HEAD", "--format", "json")
    made = json.loads(ran.out)

    assert (ran.code, ran.err) == (1, "1 object changed; releases: 1 upgraded\n")
    assert (made["version"], made["old"], made["new"], made["failed"]) == (1, "HEAD", "the working tree", [])
    assert made["counts"] == {"added": 0, "removed": 0, "changed": 1, "moved": 0}
    assert made["objects"] == [
        {
            "group": "helm.toolkit.fluxcd.io",
            "kind": "HelmRelease",
            "namespace": "demo",
            "name": "web",
            "service": "web",
            "status": "changed",
            "file": {"old": RELEASE, "new": RELEASE},
            "changes": [
                {
                    "path": "spec.values.image.tag",
                    "kind": "changed",
                    "old": "1.0.0",
                    "new": "1.2.0",
                    "redacted": False,
                }
            ],
        }
    ]
    assert made["images"][0]["new"] == "ghcr.io/o/web:1.2.0"
    assert made["releases"] == {
        "installed": [],
        "uninstalled": [],
        "upgraded": ["demo/web"],
        "reinstalled": [],
        "byTable": 0,
    }


def test_markdown_is_a_comment(fleet: Project) -> None:
    edit(fleet, "catalog/web.yaml", "ghcr.io/o/web:1.0.0", "ghcr.io/o/web:1.2.0")
    ran = fleet.run("diff", "--base", "HEAD", "--format", "markdown")

    assert ran.code == 1
    assert ran.out.startswith("<!-- render diff -->\n### Rendered changes: <code>HEAD</code>")
    assert "| <code>ghcr.io/o/web:1.0.0</code> | <code>ghcr.io/o/web:1.2.0</code> |" in ran.out
    assert '```diff\n spec.values.image.tag\n-"1.0.0"\n+"1.2.0"\n```\n' in ran.out


def test_override_table_counts_its_upgrades(fleet: Project) -> None:
    edit(
        fleet, "platform.yaml", "imageOverrides: []", "imageOverrides: [{name: ghcr.io/o/web, newName: m.example/web}]"
    )
    ran = fleet.run("diff", "--base", "HEAD")

    assert "the override table changes, which alone upgrades 2 releases" in ran.out
    assert "  ghcr.io/o/web:1.0.0 → m.example/web:1.0.0\n" in ran.out
    assert ran.err.endswith("releases: 2 upgraded\n")
