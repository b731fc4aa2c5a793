"""One catalog under six override tables: the trees, byte for byte, and the way from one to another.

RENDER_UPDATE_CASES=1 writes the trees anew; read the diff before you commit it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
import yaml

from tests.project import Project, objects, project

FOLDER = Path(__file__).parent / "cases" / "overrides"
CASES = sorted(path.name for path in FOLDER.iterdir() if path.name != "catalog")
UPDATE = bool(os.environ.get("RENDER_UPDATE_CASES"))
DECIDING = ("retagged", "digested")
"""Cases in which an override decides the version."""
IMAGES = ("web", "web-exporter", "web-proxy", "web-tools", "web-worker", "web-cache", "job", "job-backup")
"""Policies of the images that are automated without a table."""
MARK = re.compile(r'"([^"]*)" # \{"\$imagepolicy": "flux-system:([^":]+)(:\w+)?"\}')


def repository(folder: Path, case: str) -> Project:
    files = {f"catalog/{path.name}": path.read_bytes() for path in (FOLDER / "catalog").iterdir()}
    return project(folder, {**files, "platform.yaml": (FOLDER / case / "platform.yaml").read_bytes()})


def built(folder: Path, case: str) -> dict[str, bytes]:
    """Build a case into a folder that may hold the tree of another one, and return the tree."""
    made = repository(folder, case)
    # An override that sets a version gives up the one that the tree has, and wants that to be said.
    reset = ("--reset-tags", "web", "--reset-tags", "job") if case in DECIDING else ()
    ran = made.run("build", *reset)
    assert ran.code == 0, ran.err
    return made.tree()


def expected(case: str) -> dict[str, bytes]:
    top = FOLDER / case / "tree"
    return {path.relative_to(top).as_posix(): path.read_bytes() for path in sorted(top.rglob("*")) if path.is_file()}


def policies(tree: dict[str, bytes]) -> dict[str, str]:
    """Return the repository that each policy scans."""
    found = [one for path, text in tree.items() if path.endswith(".yaml") for one in objects(text.decode())]
    names = {one["metadata"]["name"] for one in found if one["kind"] == "ImagePolicy"}
    scanned = {one["metadata"]["name"]: one["spec"]["image"] for one in found if one["kind"] == "ImageRepository"}
    assert names == set(scanned)
    return scanned


def marked(tree: dict[str, bytes]) -> set[str]:
    """Return the policies that markers name."""
    return {match[2] for text in tree.values() for match in MARK.finditer(text.decode())}


@pytest.mark.parametrize("case", CASES)
def test_tree_is_the_expected_one(case: str, tmp_path: Path) -> None:
    tree = built(tmp_path, case)
    if UPDATE:
        for path, text in tree.items():
            target = FOLDER / case / "tree" / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(text)

    assert expected(case) == tree


def test_images_that_no_entry_matches_are_automated_as_without_a_table() -> None:
    plain, tree = expected("without"), expected("unmatched")

    for path in ("apps/web/image-automation.yaml", "apps/job/image-automation.yaml"):
        assert plain[path] == tree[path]
    assert set(IMAGES) == set(policies(tree)) == marked(tree)
    assert b"# registries.imageOverrides\n" in tree["apps/web/helmrelease.yaml"]


def test_renamed_images_are_scanned_where_they_are_pulled_from() -> None:
    tree = expected("renamed")
    entries = yaml.safe_load((FOLDER / "renamed/platform.yaml").read_text())["registries"]["imageOverrides"]

    assert {entry["newName"] for entry in entries} == set(policies(tree).values())
    assert set(IMAGES) == set(policies(tree)) == marked(tree)
    for path in ("apps/web/image-automation.yaml", "apps/job/image-automation.yaml"):
        assert tree[path].count(b"secretRef:\n    name: mirror-pull\n") == tree[path].count(b"kind: ImageRepository")


def test_renamed_images_are_written_with_their_new_name_only_where_the_bot_writes_the_name() -> None:
    values = next(one["spec"]["values"] for one in objects(expected("renamed")["apps/web/helmrelease.yaml"].decode()))

    assert values["image"]["repository"] == "docker.io/library/nginx"
    assert values["exporter"]["image"]["registry"] == "quay.io"
    assert values["proxy"]["image"]["repository"] == "quay.io/team/proxy"
    assert values["toolsImage"] == "mirror.example/ghcr/tools:3.1.0"
    assert b'image: "mirror.example/hub/redis:7.4.1"' in expected("renamed")["apps/job/workload.yaml"]


@pytest.mark.parametrize("case", DECIDING)
def test_image_whose_version_an_override_decides_is_not_automated(case: str, tmp_path: Path) -> None:
    tree = expected(case)

    assert policies(tree) == {}
    assert set() == marked(tree)
    told = [one for one in repository(tmp_path, case).build().diagnostics if one.code == "R603"]
    assert len(IMAGES) == len(told)
    assert all(place.path == "platform.yaml" and text == "decided here" for one in told for place, text in one.related)


def test_pinned_image_is_renamed_and_never_automated() -> None:
    tree = expected("pinned-and-renamed")
    (release,) = objects(tree["apps/held/helmrelease.yaml"].decode())

    assert release["spec"]["values"]["image"] == {"repository": "docker.io/library/mariadb", "tag": "11.4.1"}
    assert release["spec"]["postRenderers"][-1]["kustomize"]["images"] == [
        {"name": "docker.io/library/mariadb", "newName": "mirror.example/hub/mariadb"}
    ]
    assert set(IMAGES) == set(policies(tree))


@pytest.mark.parametrize("case", [case for case in CASES if case != "without"])
def test_switching_a_table_on_and_off_returns_to_the_first_tree(case: str, tmp_path: Path) -> None:
    first = built(tmp_path, "without")
    assert first != built(tmp_path, case)

    assert first == built(tmp_path, "without")


def test_order_of_tables_leaves_no_trace(tmp_path: Path) -> None:
    for case in (*CASES, *reversed(CASES)):
        assert expected(case) == built(tmp_path, case)


MOVED = {"web": "1.27.5", "web-proxy": "2.4.0", "web-tools": "3.9.9", "web-cache": "1.6.38", "job": "7.4.9"}
"""Tags that the bot has written, by policy."""


def move(tree: dict[str, bytes], folder: Path, tags: dict[str, str]) -> dict[str, bytes]:
    """Write into a tree what the bot would."""

    def moved(match: re.Match[str]) -> str:
        text, policy, part = match.groups()
        tag = tags.get(policy)
        if tag is None or part == ":digest":
            return match[0]
        return match[0].replace(text, tag if part == ":tag" else f"{text.rpartition(':')[0]}:{tag}", 1)

    made = {path: MARK.sub(moved, text.decode()).encode() for path, text in tree.items()}
    for path, text in made.items():
        (folder / path).write_bytes(text)
    return made


@pytest.mark.parametrize("case", ["unmatched", "renamed", "pinned-and-renamed"])
def test_what_the_bot_wrote_survives_a_table_that_comes_and_goes(case: str, tmp_path: Path) -> None:
    # The tag of a renamed workload is one of the mirror, and nothing says that it is there without the table.
    tags = {policy: tag for policy, tag in MOVED.items() if case != "renamed" or policy != "job"}
    first = move(built(tmp_path, "without"), tmp_path, tags)
    under = built(tmp_path, case)

    assert all(tag.encode() in b"".join(under.values()) for tag in tags.values())
    assert first == built(tmp_path, "without")


def test_bots_tag_of_a_workload_that_is_no_longer_renamed_is_for_a_person_to_judge(tmp_path: Path) -> None:
    move(built(tmp_path, "renamed"), tmp_path, MOVED)

    ran = repository(tmp_path, "without").run("build")

    assert ran.code == 1
    assert "it is a version of `mirror.example/hub/redis`" in ran.err


@pytest.mark.parametrize("case", DECIDING)
def test_a_table_that_would_lower_what_the_bot_wrote_is_refused(case: str, tmp_path: Path) -> None:
    first = move(built(tmp_path, "without"), tmp_path, MOVED)
    made = repository(tmp_path, case)

    ran = made.run("build")

    assert ran.code == 1
    assert "R510" in ran.err
    assert first == made.tree()
