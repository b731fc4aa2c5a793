"""HelmReleases of a repository that do not carry the override table."""

from __future__ import annotations

import contextlib
import textwrap
from pathlib import Path
from typing import Any

import pytest

from render.build import build
from render.carried import Carried, Emitted, check_trees
from render.override import read_table
from tests.project import project

PLATFORM = """\
cluster: test
root: clusters/test
flux: {version: "2.9"}
registries:
  imageOverrides:
  - {name: docker.io/library/nginx, newName: mirror.example/nginx}
  - {name: docker.io/library/redis, newName: mirror.example/redis, newTag: "7.0"}
"""
SERVICE = 'name: web\nsource: {image: nginx:1, chart: {url: "oci://charts.example/web", version: 1.0.0}}\n'
RELEASE = """\
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: own, namespace: apps}
spec:
  chartRef: {kind: OCIRepository, name: own}
"""
FIRST = "      - name: docker.io/library/nginx\n        newName: mirror.example/nginx\n"
SECOND = '      - name: docker.io/library/redis\n        newName: mirror.example/redis\n        newTag: "7.0"\n'
HEAD = "  postRenderers:\n"
ITEM = "  - kustomize:\n      images:\n"
MARK = "  # registries.imageOverrides\n"
CARRIED = HEAD + MARK + ITEM + FIRST + SECOND


FLOW = (
    "  postRenderers: [{kustomize: {images: [{name: docker.io/library/nginx, newName: mirror.example/nginx},"
    " {newTag: '7.0', newName: mirror.example/redis, name: docker.io/library/redis}]}}]\n"
)
REDIS, NGINX = "in the entry for `docker.io/library/redis`", "in the entry for `docker.io/library/nginx`"


def check(folder: Path, files: dict[str, Any], *folders: str, root: str | None = None) -> Carried:
    made = project(folder, {"platform.yaml": PLATFORM, "catalog/web.yaml": SERVICE, **files})
    with contextlib.chdir(made.folder):
        emitted = Emitted()
        built = build(Path("catalog"), Path("platform.yaml"), visit=emitted)
        assert not built.failed
        table = read_table(Path("platform.yaml")).placed
        return check_trees(map(Path, folders or ("repo",)), table, emitted, Path(root) if root else None)


def told(found: Carried) -> list[str]:
    return [f"{one.code} {one.location} {one.message}; {one.hint}" for one in found.diagnostics]


def test_release_that_carries_the_table_is_in_order(tmp_path: Path) -> None:
    found = check(tmp_path, {"repo/own.yaml": RELEASE + CARRIED})

    assert (told(found), found.releases, found.faulty) == ([], 1, 0)
    assert found.line == "1 HelmRelease checked, 0 without the override table as it is"


@pytest.mark.parametrize(
    "text",
    [
        HEAD + ITEM + FIRST + SECOND,
        HEAD + "  - kustomize: {patches: []}\n" + MARK + ITEM + FIRST + SECOND,
        FLOW,
    ],
)
def test_form_and_comment_do_not_count(text: str, tmp_path: Path) -> None:
    assert told(check(tmp_path, {"repo/own.yaml": RELEASE + text})) == []


def test_release_without_post_renderers_lacks_the_table(tmp_path: Path) -> None:
    found = check(tmp_path, {"repo/own.yaml": RELEASE})

    what = "the HelmRelease `own` does not carry the override table"
    hint = "end `spec.postRenderers` with `# registries.imageOverrides` and an item `kustomize.images`"
    assert told(found) == [f"R610 repo/own.yaml:3:18 {what}; {hint} of the table's 2 entries"]
    assert [str(place) for place, _ in found.diagnostics[0].related] == ["platform.yaml:5:3"]
    assert found.faulty == 1


def test_other_post_renderers_are_not_the_table(tmp_path: Path) -> None:
    text = HEAD + "  - kustomize:\n      images:\n      - {name: quay.io/a/b, newTag: '1'}\n"

    (told_,) = told(check(tmp_path, {"repo/own.yaml": RELEASE + text}))

    assert told_.startswith("R610 repo/own.yaml:6:3 the HelmRelease `own` does not carry the override table;")


@pytest.mark.parametrize("mark", [MARK, ""])
@pytest.mark.parametrize(
    ("entries", "hint"),
    [
        (FIRST, "add the entry for `docker.io/library/redis`"),
        (SECOND, "add the entry for `docker.io/library/nginx`"),
        (FIRST + SECOND.replace("7.0", "6.2"), f"set `newTag: 7.0` {REDIS}"),
        (FIRST + SECOND.replace('newTag: "7.0"', "digest: x"), f"set `newTag: 7.0` {REDIS} (1 more to change)"),
        (FIRST.replace("mirror.", "old.") + SECOND, f"set `newName: mirror.example/nginx` {NGINX}"),
        (FIRST + SECOND + "      - {name: a, newName: b}\n", "remove the entry for `a`"),
        (SECOND + FIRST, "put the entries into the order of the table"),
        (FIRST + SECOND + FIRST, "remove the entries that are there twice (1 more to change)"),
    ],
)
def test_outdated_table_is_told_with_the_first_change(entries: str, hint: str, mark: str, tmp_path: Path) -> None:
    (told_,) = told(check(tmp_path, {"repo/own.yaml": RELEASE + HEAD + mark + ITEM + entries}))

    line = 8 if mark else 7
    expected = f"R610 repo/own.yaml:{line}:5 the HelmRelease `own` carries another override table; {hint}"
    assert expected == told_


def test_table_must_be_the_last_post_renderer(tmp_path: Path) -> None:
    text = CARRIED + "  - kustomize: {patches: []}\n"

    (told_,) = told(check(tmp_path, {"repo/own.yaml": RELEASE + text}))

    assert "carries the override table before other post-renderers" in told_


def test_a_marked_table_is_stale_even_before_the_right_one(tmp_path: Path) -> None:
    text = HEAD + MARK + ITEM + "      - {name: quay.io/a/b, newTag: '1'}\n" + ITEM + FIRST + SECOND

    (told_,) = told(check(tmp_path, {"repo/own.yaml": RELEASE + text}))

    assert "carries another override table" in told_


def test_without_a_table_only_a_marked_one_is_told(tmp_path: Path) -> None:
    platform = PLATFORM.partition("registries")[0] + "registries: {imageOverrides: []}\n"
    files = {"platform.yaml": platform, "repo/a.yaml": RELEASE, "repo/b.yaml": RELEASE + CARRIED}
    unmarked = {"repo/c.yaml": RELEASE + CARRIED.replace(MARK, "")}

    (told_,) = told(check(tmp_path, {**files, **unmarked}))

    assert told_ == (
        "R610 repo/b.yaml:8:5 the HelmRelease `own` carries an override table, and has none; "
        "remove the item and its comment line"
    )


def test_lists_and_streams_are_searched_and_other_objects_are_not(tmp_path: Path) -> None:
    patch = RELEASE.partition("spec:")[0] + "spec: {interval: 1h}\n"
    other = "kind: HelmRelease\napiVersion: example.org/v1\nspec: {chart: x}\n"
    listed = "kind: List\napiVersion: v1\nitems:\n" + textwrap.indent(RELEASE, "  ").replace("  api", "- api", 1)

    found = check(tmp_path, {"repo/all.yaml": "---\n".join((patch, other, listed, RELEASE)), "repo/x.yaml": "a: 1\n"})

    assert (found.releases, found.faulty, found.files) == (2, 2, 1)


def test_hidden_folders_chart_templates_and_other_files_are_left_out(tmp_path: Path) -> None:
    files = {
        "repo/.git/a.yaml": RELEASE,
        "repo/chart/Chart.yaml": "name: x\n",
        "repo/chart/templates/a.yaml": RELEASE + "{{ if .x }}",
        "repo/readme.md": RELEASE,
        "repo/deep/er/a.yml": RELEASE,
    }

    assert [one.location.path for one in check(tmp_path, files).diagnostics] == ["repo/deep/er/a.yml"]


def test_file_that_cannot_be_parsed_is_a_warning(tmp_path: Path) -> None:
    found = check(tmp_path, {"repo/a.yaml": "kind: HelmRelease\n  x: [", "repo/b.yaml": "other: [\n"})

    assert [(one.severity, one.code, one.location.path) for one in found.diagnostics] == [
        ("warning", "R610", "repo/a.yaml")
    ]


def test_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    assert [one.code for one in check(tmp_path, {}, "nowhere").diagnostics] == ["R001"]


def generated(folder: Path, mode: str = "all", out: str = "clusters/test", platform: str = PLATFORM) -> None:
    service = SERVICE + f"imageOverrides: {mode}\n"
    made = project(folder, {"catalog/web.yaml": service, "platform.yaml": platform})
    assert made.run("build", "--out", out).code == 0


@pytest.mark.parametrize("mode", ["all", "declared", "none"])
def test_generated_releases_carry_what_their_service_emits(mode: str, tmp_path: Path) -> None:
    generated(tmp_path, mode)

    found = check(tmp_path, {"catalog/web.yaml": SERVICE + f"imageOverrides: {mode}\n"}, ".", root="clusters/test")

    assert (told(found), found.releases) == ([], 1)


def test_generated_release_of_an_older_table_is_outdated(tmp_path: Path) -> None:
    generated(tmp_path, platform=PLATFORM.replace('"7.0"', '"6.2"'))

    (told_,) = told(check(tmp_path, {}, "clusters/test"))

    assert told_.endswith(
        "carries another override table; set `newTag: 7.0` in the entry for `docker.io/library/redis`"
    )


def test_generated_trees_of_other_clusters_are_passed_over(tmp_path: Path) -> None:
    generated(tmp_path, platform=PLATFORM.replace('"7.0"', '"6.2"'), out="clusters/other")
    generated(tmp_path)

    assert told(check(tmp_path, {}, ".", root="clusters/test")) == []
    # They are looked at when they are what is asked for.
    assert len(told(check(tmp_path, {}, "clusters/other", root="clusters/test"))) == 1
