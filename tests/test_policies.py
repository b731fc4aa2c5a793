"""Policies of catalogs and manifests, lists of tags, and what is told of the two."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from render.policies import (
    Answer,
    Subject,
    Subjects,
    ask,
    catalog_subjects,
    decode_tags,
    manifest_subjects,
    read_tags,
    render_answers,
)
from tests.project import PLATFORM, project

CATALOG = """\
name: web
source:
  image: ghcr.io/example/web:1.2.3
  chart: {url: "oci://charts.example.org/web", version: "1.0.0"}
update: {range: 1.x}
images:
  cache:
    ref: redis:7.4.1-alpine
    at: cache.image
    update: {range: 7.x}
  held:
    ref: ghcr.io/example/held:2.0.0
    at: held.image
    update: {range: 2.x, pin: 2.0.0}
  still: {ref: "ghcr.io/example/still:1.0.0", at: still.image}
"""
SEMVER = {"semver": {"range": "1.x"}}
THREE = {"pattern": r"^[0-9]+\.[0-9]+\.[0-9]+$"}


def subject(policy: dict[str, Any], filter_tags: dict[str, Any] | None = None, current: str = "") -> Subject:
    return Subject("web", "main", "ghcr.io/example/web", policy, filter_tags, current)


def of_catalog(folder: Path, platform: str = PLATFORM) -> Subjects:
    made = project(folder, {"catalog/web.yaml": CATALOG, "platform.yaml": platform})
    with contextlib.chdir(made.folder):
        return catalog_subjects(Path("catalog"), Path("platform.yaml"))


def manifest(text: str) -> Subjects:
    return manifest_subjects("policy.yaml", text.encode())


def shown(policy: dict[str, Any], tags: list[str], filter_tags: dict[str, Any] | None = None, **more: Any) -> str:
    return render_answers([ask(subject(policy, filter_tags, **more), tags)])


def test_a_catalog_has_the_policies_of_its_automated_images(tmp_path: Path) -> None:
    found = of_catalog(tmp_path)
    assert found.diagnostics == []
    three = r"^[0-9]+\.[0-9]+\.[0-9]+"
    assert found.subjects == [
        Subject(
            "web", "cache", "redis", {"semver": {"range": "7.x"}},
            {"pattern": r"^(?P<v>[0-9]+\.[0-9]+\.[0-9]+)-alpine$", "extract": "$v"}, "7.4.1-alpine",
        ),
        Subject("web", "main", "ghcr.io/example/web", SEMVER, {"pattern": f"{three}$"}, "1.2.3"),
    ]  # fmt: skip


def test_the_other_images_have_a_reason(tmp_path: Path) -> None:
    assert of_catalog(tmp_path).unmanaged == {
        "web/held": "`pin` decides its version",
        "web/still": "it has no `update`",
    }


def test_what_the_cluster_pulls_is_asked_about(tmp_path: Path) -> None:
    platform = PLATFORM.replace(
        "imageOverrides: []",
        "imageOverrides: [{name: redis, newName: registry.corp.example:5000/hub/redis}]\n"
        "  credentials: [{registry: registry.corp.example:5000, insecure: true}]",
    )
    found = {one.image: (one.repository, one.insecure) for one in of_catalog(tmp_path, platform).subjects}
    assert found == {
        "cache": ("registry.corp.example:5000/hub/redis", True),
        "main": ("ghcr.io/example/web", False),
    }


@pytest.mark.parametrize("version", ["v1", "v1beta2"])
def test_manifests_of_any_version_and_form_are_read(version: str) -> None:
    one = f"apiVersion: image.toolkit.fluxcd.io/{version}\nkind: ImagePolicy\nmetadata: {{name: a, namespace: default}}"
    spec = "spec: {imageRepositoryRef: {name: a}, policy: {semver: {range: 1.x}}, filterTags: {pattern: ^1}}"
    policy = "{imageRepositoryRef: {name: b}, policy: {numerical: {order: asc}}}"
    other = f"{{kind: ImagePolicy, metadata: {{name: b}}, spec: {policy}}}"
    listed = f"kind: List\nitems:\n- {other}\n- kind: Pod\n"
    found = manifest(f"{one}\n{spec}\n---\nkind: ImageRepository\n---\n{listed}")
    assert found.diagnostics == []
    assert found.subjects == [
        Subject("default/a", "", "", SEMVER, {"pattern": "^1"}),
        Subject("b", "", "", {"numerical": {"order": "asc"}}, None),
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("kind: Pod\n", "R102 there is no ImagePolicy in the file"),
        ("", "R102 there is no ImagePolicy in the file"),
        ("kind: ImagePolicy\n", "R102 the ImagePolicy needs the field `spec`"),
        ("- a\n", "R102 there is no ImagePolicy in the file"),
        ("a: [\n", "R003 not valid YAML"),
        ("kind: ImagePolicy\nspec: {imageRepositoryRef: {name: a}, policy: {semver: {rnage: 1.x}}}\n", "R101"),
    ],
)
def test_a_file_without_a_sound_policy_is_told(text: str, told: str) -> None:
    found = manifest(text)
    assert found.subjects == []
    assert f"{found.diagnostics[0].code} {found.diagnostics[0].message}".startswith(told)


@pytest.mark.parametrize(
    "text",
    ["a\nb\n", "# tags\n a \r\n\nb", '["a", "b", "a"]', '{"name": "x", "tags": ["a", "b"]}', '\n{"Tags": ["a", "b"]}'],
)
def test_tags_come_in_lines_or_as_json(text: str) -> None:
    assert read_tags(text) == ["a", "b"]


@pytest.mark.parametrize("text", ["", "\n", "# none\n", "[]", '{"tags": []}'])
def test_a_list_may_be_empty(text: str) -> None:
    assert read_tags(text) == []


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b'{"tags": null}', "the JSON must be a list of strings, or an object with such a list under `tags`"),
        (b"[1]", "the JSON must be a list of strings, or an object with such a list under `tags`"),
        (b"[", "the JSON does not parse: Expecting value: line 1 column 2 (char 1)"),
        (b"[" * 100_000, "the JSON does not parse: maximum recursion depth exceeded while decoding a JSON array"),
        (b"a\xff", "byte 0xff is not UTF-8"),
        (b" " * (9 << 20), "it is larger than 8 MiB"),
    ],
)
def test_what_is_no_list_of_tags_is_told(data: bytes, told: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011  # its text is compared
        decode_tags(data)
    assert str(caught.value).startswith(told)


def test_a_byte_order_mark_is_no_part_of_a_tag() -> None:
    assert decode_tags("\ufeffa\n".encode()) == ["a"]


@given(st.lists(st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,20}", fullmatch=True), unique=True))
def test_every_form_of_a_list_reads_the_same(tags: list[str]) -> None:
    assert read_tags("\n".join(tags)) == tags
    assert read_tags(json.dumps({"tags": tags})) == tags
    assert read_tags(json.dumps(tags)) == tags


@given(st.lists(st.from_regex(r"v?[0-9]\.[0-9](\.[0-9])?(-rc\.[0-9])?(\.sig)?|latest", fullmatch=True), unique=True))
def test_every_tag_is_a_candidate_or_rejected_once(tags: list[str]) -> None:
    for filter_tags in (None, THREE):
        found = ask(subject(SEMVER, filter_tags), tags).selection
        assert found is not None
        told = [candidate.tag for candidate in found.candidates] + [tag for tag, _ in found.rejected]
        assert sorted(told) == sorted(tags) or found.error == "no tags in database"


def test_the_choice_the_runners_up_and_each_reason_are_told() -> None:
    tags = ["1.0.0", "1.10.0", "1.9.0", "2.0.0", "1.11.0-rc.1", "1.12", "latest", "sha256-0a.sig"]
    assert shown(SEMVER, tags, current="1.0.0") == (
        "web/main: 1.10.0 (now 1.0.0)\n"
        "  then 1.9.0, 1.0.0\n"
        "  not latest, 1.12: has fewer than three parts, and Flux takes no such tag for a version\n"
        "  not 1.11.0-rc.1: is a pre-release, and the range `1.x` admits none\n"
        "  not sha256-0a.sig: is left out of every scan, which excludes `^.*\\.sig$`\n"
        "  not 2.0.0: is not in the range `1.x`\n"
    )


def test_tags_that_the_filter_stops_are_told_together() -> None:
    assert shown(SEMVER, ["1.0.0", "v1.0.1", "1.1.0-alpine"], THREE) == (
        "web/main: 1.0.0\n  not v1.0.1, 1.1.0-alpine: does not match the pattern `^[0-9]+\\.[0-9]+\\.[0-9]+$`\n"
    )


def test_what_is_left_to_chance_is_no_selection() -> None:
    answer = ask(subject(SEMVER, {"pattern": "^(?P<v>1.*)-(a|b)$", "extract": "$v+$0"}), ["1.0.0-a", "1.0.0-b"])
    assert not answer.is_selected
    assert render_answers([answer]) == "web/main: left to chance between 1.0.0-b, 1.0.0-a\n"


@pytest.mark.parametrize(
    ("policy", "tags", "told"),
    [
        (SEMVER, [], "web/main: nothing is selected: no tags in database\n"),
        (
            {"semver": {"range": "nonsense"}},
            ["1.0.0"],
            'web/main: nothing is selected: invalid policy: improper constraint: "nonsense"\n',
        ),
        (
            {"numerical": {"order": "asc"}},
            ["7", "x"],
            (
                "web/main: nothing is selected: failed to parse invalid numeric value 'x'\n"
                "  in question 7\n"
                "  not x: is not a number\n"
            ),
        ),
    ],
)
def test_what_flux_would_report_is_told(policy: dict[str, Any], tags: list[str], told: str) -> None:
    assert shown(policy, tags) == told


def test_of_many_tags_with_one_fate_some_are_shown() -> None:
    answers = [ask(subject(SEMVER), [f"{major}.{minor}.0" for major in (1, 2) for minor in range(30)])]
    assert render_answers(answers, most=2) == (
        "web/main: 1.29.0\n"
        "  then 1.28.0, 1.27.0 and 27 more\n"
        "  not 2.9.0, 2.8.0 and 28 more: is not in the range `1.x`\n"
    )
    assert len(render_answers(answers, most=100).split(", ")) == 29 + 30 - 1


def test_of_many_reasons_some_are_shown() -> None:
    tie = {"pattern": "^(?P<v>.*)-.$", "extract": "$v"}
    tags = [f"1.{minor}.0-{letter}" for minor in range(5) for letter in "ab"]
    text = render_answers([ask(subject(SEMVER, tie), tags)], most=2)
    assert text.splitlines()[-1] == "  not 3 more, for other reasons"
    assert len(text.splitlines()) == 5


def test_a_registry_error_stands_for_the_answer() -> None:
    answer = Answer(subject(SEMVER), None, "ghcr.io: connection refused")
    assert render_answers([answer]) == "web/main: not known: ghcr.io: connection refused\n"
    assert answer.as_json() == {
        "service": "web",
        "image": "main",
        "selected": None,
        "undetermined": [],
        "candidates": [],
        "rejected": [],
        "error": "ghcr.io: connection refused",
    }


def test_json_tells_each_tag_with_its_own_reason() -> None:
    answer = ask(subject(SEMVER), ["1.0.0", "1.1.0", "2.0.0", "x.sig"])
    assert answer.as_json() == {
        "service": "web",
        "image": "main",
        "selected": "1.1.0",
        "undetermined": [],
        "candidates": ["1.1.0", "1.0.0"],
        "rejected": [
            {"tag": "2.0.0", "reason": "`2.0.0` is not in the range `1.x`"},
            {"tag": "x.sig", "reason": "is left out of every scan, which excludes `^.*\\.sig$`"},
        ],
        "error": None,
    }


def test_what_a_terminal_would_obey_is_not_printed() -> None:
    assert shown(SEMVER, ["1.0.0", "\x1b[2J"]).splitlines()[1].startswith("  not ·[2J: ")


def test_tags_may_share_a_line_and_be_commented() -> None:
    assert read_tags("1.0.0 1.1.0 # the old ones\n\n# none\n2.0.0\n1.0.0\n") == ["1.0.0", "1.1.0", "2.0.0"]
