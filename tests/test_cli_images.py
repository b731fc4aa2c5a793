"""`render images` and `render override` on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from render.cli_images import images, override
from tests.project import Project, project

CHART = 'chart: {url: "oci://charts.example/web", version: 1.0.0}'
PLATFORM = """\
cluster: test
flux: {version: "2.9"}
registries:
  imageOverrides:
  - {name: docker.io/library/nginx, newName: mirror.example/nginx}
  - {name: quay.io/chart/only, newName: mirror.example/only}
"""
WEB = f"name: web\nsource: {{image: docker.io/library/nginx:1.27.0, {CHART}}}\nupdate: {{range: 1.x}}\n"
DB = f"name: db\nsource: {{image: docker.io/library/mariadb:11.4.2, {CHART}}}\n"
POD = "kind: Pod\napiVersion: v1\nmetadata: {name: a}\nspec:\n  containers:\n  - {name: a, image: NGINX}\n"


@pytest.fixture
def repo(tmp_path: Path) -> Project:
    return project(tmp_path, {"catalog/web.yaml": WEB, "catalog/db.yaml": DB, "platform.yaml": PLATFORM})


def test_images_are_a_table_with_notes_and_a_count_below(repo: Project) -> None:
    ran = repo.run("images")

    assert ran.code == 0
    assert [line.split() for line in ran.out.splitlines()] == [
        ["service", "image", "at", "declared", "effective", "entries", "policy", "imageRepository", "pinnedBy"],
        ["db", "main", "values.image", *["docker.io/library/mariadb:11.4.2"] * 2, "-", "-", "-", "-"],
        [
            *("web", "main", "values.image", "docker.io/library/nginx:1.27.0", "mirror.example/nginx:1.27.0"),
            *("0", "web", "mirror.example/nginx", "-"),
        ],
    ]
    assert ran.err == (
        "entries that hit no declared image (a chart may bring it): quay.io/chart/only\n2 images, 1 automated\n"
    )


def test_images_as_json_are_a_versioned_document(repo: Project) -> None:
    ran = repo.run("images", "--format", "json", "--only", "db")

    assert json.loads(ran.out) == {
        "version": 1,
        "images": [
            {
                "service": "db",
                "image": "main",
                "at": "values.image",
                "declared": "docker.io/library/mariadb:11.4.2",
                "effective": "docker.io/library/mariadb:11.4.2",
                "entries": [],
                "policy": None,
                "imageRepository": None,
                "pinnedBy": None,
            }
        ],
        "unusedEntries": [1],
        "unreached": [],
        "diagnostics": [],
    }
    assert ran.err == "1 image, 0 automated\n"


@pytest.mark.parametrize("style", ["csv", "markdown"])
def test_images_in_other_forms_name_each_service(style: str, repo: Project) -> None:
    out = repo.run("images", "--format", style).out

    lines = [line.strip("| ") for line in out.splitlines() if "---" not in line]
    assert [line.split("," if style == "csv" else " ")[0] for line in lines] == ["service", "db", "web"]


def test_images_of_an_unknown_service_are_a_usage_error(repo: Project) -> None:
    ran = repo.run("images", "--only", "none")

    assert ran.code == 2
    assert "--only none: there is no such service in the catalog" in ran.err


def test_images_under_another_table(repo: Project) -> None:
    (repo.folder / "new.yaml").write_text("- {name: docker.io/library/mariadb, newTag: '10'}\n")

    ran = repo.run("images", "--overrides", "new.yaml", "--format", "json")

    rows = {row["service"]: row for row in json.loads(ran.out)["images"]}
    assert [rows["db"]["effective"], rows["web"]["effective"]] == [
        "docker.io/library/mariadb:10",
        "docker.io/library/nginx:1.27.0",
    ]


@pytest.mark.parametrize("style", ["table", "json"])
def test_images_of_a_broken_catalog_are_not_shown(style: str, repo: Project) -> None:
    (repo.folder / "catalog/db.yaml").write_text("name: db\nnone: 1\n")

    ran = repo.run("images", "--format", style)

    assert ran.code == 1
    if style == "json":
        made = json.loads(ran.out)
        assert (made["images"], made["diagnostics"][0]["code"]) == ([], "R101")
    else:
        assert ran.out == ""
        assert "error[R101]" in ran.err


def test_images_under_a_broken_table_are_not_shown(repo: Project) -> None:
    (repo.folder / "new.yaml").write_text("- {name: a}\n")

    ran = repo.run("images", "--overrides", "new.yaml")

    assert (ran.code, ran.out) == (1, "")
    assert "error[R601]: `entries[0]`: an entry must change something" in ran.err


def test_warnings_fail_only_when_asked(repo: Project) -> None:
    (repo.folder / "new.yaml").write_text("- {name: a, newName: b}\n- {name: b, newName: c}\n")

    for arguments, code in (([], 0), (["--fail-on", "warning"], 1)):
        ran = repo.run("images", "--overrides", "new.yaml", *arguments)
        assert code == ran.code
        assert "warning[R608]" in ran.err
        assert ran.out.startswith("service")


def test_override_tells_the_effective_image_and_the_entries(repo: Project) -> None:
    ran = repo.run("override", "docker.io/library/nginx:1", "redis", "--platform", "platform.yaml")

    assert (ran.code, ran.err) == (0, "")
    assert ran.out == (
        "docker.io/library/nginx:1 -> mirror.example/nginx:1\n"
        "  entry 0 `docker.io/library/nginx`: docker.io/library/nginx:1 -> mirror.example/nginx:1\n"
        "redis -> redis\n"
    )


def test_override_as_json_is_a_list(repo: Project) -> None:
    ran = repo.run("override", "docker.io/library/nginx:1", "redis", "--platform", "platform.yaml", "--format", "json")

    assert json.loads(ran.out) == [
        {"declared": "docker.io/library/nginx:1", "effective": "mirror.example/nginx:1", "entries": [0]},
        {"declared": "redis", "effective": "redis", "entries": []},
    ]


def test_override_needs_no_catalog_and_no_platform_file(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text('[{"name": "nginx", "newTag": "2"}]')

    result = CliRunner().invoke(override, ["nginx:1", "--overrides", str(tmp_path / "t.json")])

    assert (result.exit_code, result.stdout) == (0, "nginx:1 -> nginx:2\n  entry 0 `nginx`: nginx:1 -> nginx:2\n")


@pytest.mark.parametrize(("options", "code", "told"), [([], 1, "error[R601]"), (["--no-lint"], 0, "")])
def test_override_without_lint_takes_any_table(options: list[str], code: int, told: str, repo: Project) -> None:
    (repo.folder / "t.yaml").write_text("images: [{name: 'ngin.*', newTag: 2}]\n")

    ran = repo.run("override", "nginx:1", "--overrides", "t.yaml", *options)

    assert code == ran.code
    assert ran.out.partition("\n")[0] == ("" if code else "nginx:1 -> nginx:2")
    assert told in ran.err


def test_override_shows_a_misspelled_field_at_its_key(repo: Project) -> None:
    (repo.folder / "t.yaml").write_text("images:\n- name: nginx\n  newname: other\n")

    ran = repo.run("override", "nginx:1", "--overrides", "t.yaml")

    assert (ran.code, ran.out) == (1, "")
    assert "error[R601]: `images[0]`: unknown field `newname`\n --> t.yaml:3:3\n" in ran.err
    assert "hint: rename it to `newName`" in ran.err


def test_override_that_makes_kustomize_panic_is_a_problem(repo: Project) -> None:
    (repo.folder / "t.yaml").write_text("[{name: 'a(', newTag: '2'}]\n")

    ran = repo.run("override", "nginx:1", "--overrides", "t.yaml", "--no-lint")

    assert ran.code == 1
    assert ran.out.startswith("nginx:1: kustomize panics on the name `a(`")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["nginx"], "give the table by either --overrides or --platform"),
        (["nginx", "--overrides", "a", "--platform", "b"], "give the table by either --overrides or --platform"),
        (["--platform", "platform.yaml"], "give either images or --manifest"),
        (["nginx", "--manifest", "-", "--platform", "platform.yaml"], "give either images or --manifest"),
        (["--manifest", "-", "--format", "json", "--platform", "platform.yaml"], "--format json is for images"),
    ],
)
def test_override_says_what_is_missing(arguments: list[str], told: str, repo: Project) -> None:
    ran = repo.run("override", *arguments)

    assert ran.code == 2
    assert told in ran.err


def test_manifests_of_standard_input_are_rewritten(repo: Project) -> None:
    arguments = ["--manifest", "-", "--platform", str(repo.folder / "platform.yaml")]

    result = CliRunner().invoke(override, arguments, input=POD.replace("NGINX", "docker.io/library/nginx:1"))

    assert (result.exit_code, result.stderr) == (0, "1 image rewritten\n")
    assert "    image: mirror.example/nginx:1\n" in result.stdout


def test_manifests_of_a_file_that_kustomize_would_refuse_are_not_printed(repo: Project) -> None:
    (repo.folder / "m.yaml").write_text(POD.replace("  - {name: a, image: NGINX}", "  - text"))

    ran = repo.run("override", "--manifest", "m.yaml", "--platform", "platform.yaml")

    assert (ran.code, ran.out) == (1, "")
    assert "error[R605]" in ran.err
    assert "--> m.yaml:6:5" in ran.err


def test_manifests_that_are_not_there_are_told(repo: Project) -> None:
    ran = repo.run("override", "--manifest", "none.yaml", "--platform", "platform.yaml")

    assert ran.code == 1
    assert "error[R001]" in ran.err


@pytest.mark.parametrize("command", [images, override])
def test_help_ends_with_two_examples(command: Any) -> None:
    out = CliRunner().invoke(command, ["--help"]).stdout

    assert out.partition("Examples:")[2].count(f"render {command.name}") == 2
