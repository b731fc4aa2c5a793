"""Tables in files, predictions for any image, and manifests rewritten."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from render.flux.override_sites import transform
from render.flux.overrides import Entry, Outcome, Step
from render.override import Prediction, as_json, as_text, predict, read_manifests, read_table, rewrite_manifests
from render.yaml.source import Source
from tests.readings import KYAML, SIGS, documents

RENAME = Entry("nginx", new_name="mirror.example/nginx")
PIN = Entry("nginx", new_tag="1.27", digest="sha256:" + "a" * 64)


def table_of(folder: Path, text: str, **options: bool) -> Any:
    path = folder / "table.yaml"
    path.write_text(text)
    return read_table(path, **options)


def told(table: Any) -> list[str]:
    return [
        f"{fault.code} {fault.location.line}:{fault.location.column} {fault.message}" for fault in table.diagnostics
    ]


@pytest.mark.parametrize(
    "text",
    [
        "- name: nginx\n  newName: mirror.example/nginx\n",
        "[{name: nginx, newName: mirror.example/nginx}]",
        '[{"name": "nginx", "newName": "mirror.example/nginx"}]',
        '[\n\t{\n\t\t"name": "nginx",\n\t\t"newName": "mirror.example/nginx"\n\t}\n]\n',
        "images:\n- {name: nginx, newName: mirror.example/nginx}\n",
        '{"images": [{"name": "nginx", "newName": "mirror.example/nginx"}]}',
        "cluster: home\nregistries:\n  imageOverrides:\n  - {name: nginx, newName: mirror.example/nginx}\n",
        "\ufeffimages:\r\n- name: nginx\r\n  newName: mirror.example/nginx\r\n",
        "x: &e {name: nginx, newName: mirror.example/nginx}\nimages: [*e]\n",
    ],
)
def test_table_is_read_from_lists_and_objects_in_yaml_and_json(text: str, tmp_path: Path) -> None:
    table = table_of(tmp_path, text)

    assert (table.entries, table.diagnostics) == ([RENAME], [])
    assert not table.failed


@pytest.mark.parametrize("text", ["[]", "images: []", "images:\n", "registries: {imageOverrides: null}"])
def test_empty_table_has_no_entries(text: str, tmp_path: Path) -> None:
    table = table_of(tmp_path, text)

    assert (table.entries, table.diagnostics) == ([], [])


@pytest.mark.parametrize("text", ["", "a: 1", "nginx", "images: {name: x}", "a: 1\n---\nb: 2\n"])
def test_file_without_a_table_is_refused(text: str, tmp_path: Path) -> None:
    table = table_of(tmp_path, text)

    assert table.failed
    assert [one.message for one in table.diagnostics] == ["there is no override table in the file"]


def test_platform_file_may_have_no_table(tmp_path: Path) -> None:
    table = table_of(tmp_path, "cluster: home\n", may_be_absent=True)

    assert (table.entries, table.diagnostics) == ([], [])


def test_faults_of_a_table_are_told_with_their_places(tmp_path: Path) -> None:
    text = "images:\n- name: nginx\n  newTag: 1.10\n- name: nginx:1\n  newName: x\n"

    assert told(table_of(tmp_path, text)) == [
        "R601 3:11 `images[0]`: `newTag` must be a string, not the number `1.10`",
        "R601 4:9 `images[1]`: `name` must not hold a tag: `nginx:1`",
    ]


def test_warning_of_a_table_does_not_fail_it(tmp_path: Path) -> None:
    table = table_of(tmp_path, "- {name: a, newName: b}\n- {name: b, newName: c}\n")

    assert not table.failed
    assert [one.code for one in table.diagnostics] == ["R608"]


def test_without_lint_a_table_is_taken_as_kustomize_takes_it(tmp_path: Path) -> None:
    table = table_of(
        tmp_path, "- {name: 'ngin.*', newTag: 1.10, other: x}\n- {name: nginx, newTag: null}\n", lint=False
    )

    assert [Entry("ngin.*", new_tag="1.10"), Entry("nginx")] == table.entries
    assert table.diagnostics == []


def test_without_lint_an_entry_must_still_be_a_map(tmp_path: Path) -> None:
    assert told(table_of(tmp_path, "- nginx\n", lint=False)) == ["R601 1:3 `entries[0]`: an entry must be a map"]


def test_unreadable_table_is_told(tmp_path: Path) -> None:
    assert [one.code for one in read_table(tmp_path / "none.yaml").diagnostics] == ["R001"]
    assert [one.code for one in table_of(tmp_path, "a: [").diagnostics] == ["R003"]


def test_entry_places_are_those_of_the_file(tmp_path: Path) -> None:
    placed = table_of(tmp_path, "images:\n- {name: a, newName: b}\n- {name: c, newName: d}\n").placed

    assert [placed.place(index).line for index in range(3)] == [2, 3, 0]


def test_prediction_has_the_trace_of_the_entries_that_matched() -> None:
    (one,) = predict([RENAME, Entry("redis", new_tag="7"), Entry("mirror.example/nginx", new_tag="1")], ["nginx:2"])

    steps = (Step(0, "nginx:2", "mirror.example/nginx:2"), Step(2, "mirror.example/nginx:2", "mirror.example/nginx:1"))
    assert Prediction("nginx:2", Outcome("mirror.example/nginx:1", steps)) == one
    assert as_json([one]) == [{"declared": "nginx:2", "effective": "mirror.example/nginx:1", "entries": [0, 2]}]


def test_prediction_of_a_name_that_makes_kustomize_panic_says_so() -> None:
    made = predict([Entry("a(", new_name="b")], ["nginx"])

    assert as_json(made) == [{"declared": "nginx", "effective": None, "entries": [], "error": made[0].failure}]
    assert "panics on the name `a(`" in made[0].failure


def test_text_shows_each_entry_below_its_image() -> None:
    entries = [RENAME, PIN]

    assert as_text(predict(entries, ["nginx:1", "redis"]), entries) == (
        "nginx:1 -> mirror.example/nginx:1\n  entry 0 `nginx`: nginx:1 -> mirror.example/nginx:1\nredis -> redis\n"
    )


POD = """\
apiVersion: v1
kind: Pod
metadata:
  name: web
  annotations:
    since: 2024-07-01
    empty:
spec:
  # A comment.
  initContainers: null
  containers:
  - &c
    name: a
    image: nginx
    tty: yes
  - <<: *c
    name: b
    image: 'nginx:1'
"""


def rewritten(text: str, *entries: Entry) -> list[Any]:
    made, faults = rewrite_manifests(Source("in.yaml", text), entries)
    assert made is not None, faults
    as_read = documents(made.text, SIGS)
    assert as_read == documents(made.text, KYAML)
    return as_read


def test_manifests_are_rewritten_as_kustomize_leaves_them() -> None:
    (pod,) = rewritten(POD, RENAME)

    assert pod["metadata"] == {"name": "web", "annotations": {"since": "2024-07-01", "empty": ""}}
    assert pod["spec"] == {
        "initContainers": [],
        "containers": [
            {"name": "a", "image": "mirror.example/nginx", "tty": "yes"},
            {"name": "b", "image": "mirror.example/nginx:1", "tty": "yes"},
        ],
    }


@pytest.mark.parametrize("empty", ["{}", "null", ""])
def test_annotations_without_any_are_left_out(empty: str) -> None:
    (made,) = rewritten(f"apiVersion: v1\nkind: A\nmetadata: {{name: a, annotations: {empty}}}\nlabels: {{}}\n")

    assert made == {"apiVersion": "v1", "kind": "A", "metadata": {"name": "a"}, "labels": {}}


def test_lists_are_expanded_and_definitions_left_alone() -> None:
    crd = {"kind": "CustomResourceDefinition", "apiVersion": "v1", "metadata": {"name": "c"}, "containers": [{}]}
    crd["containers"] = [{"image": "nginx"}]
    pod = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p"}, "spec": {"containers": [{"image": "nginx"}]}}
    text = json.dumps({"kind": "List", "apiVersion": "v1", "items": [crd, pod]})

    first, second = rewritten(text, RENAME)

    assert crd == first
    assert second["spec"]["containers"] == [{"image": "mirror.example/nginx"}]


def test_plain_scalar_that_becomes_a_number_is_one_as_in_kustomize() -> None:
    text = "kind: A\nmetadata: {name: a}\ncontainers: [{image: nginx}, {image: 'nginx'}]\n"

    (made,) = rewritten(text, Entry("nginx", new_name="1.10"))

    assert made["containers"] == [{"image": 1.1}, {"image": "1.10"}]


def test_object_that_fails_kustomize_is_told_with_its_place() -> None:
    text = "kind: A\nmetadata: {name: a}\n---\nkind: B\nmetadata: {name: b}\nspec:\n  template: text\n"

    made, faults = rewrite_manifests(Source("in.yaml", text), [RENAME])

    assert made is None
    assert [(one.code, str(one.location)) for one in faults] == [("R605", "in.yaml:7:13")]
    assert "kustomize fails on this object" in faults[0].message


def test_name_that_fails_kustomize_is_told_where_it_meets_an_image() -> None:
    text = "kind: A\nmetadata: {name: a}\nspec:\n  containers:\n  - image: nginx\n"

    made, faults = rewrite_manifests(Source("in.yaml", text), [Entry("a(", new_tag="1")])

    assert made is None
    assert [(one.code, str(one.location)) for one in faults] == [("R601", "in.yaml:5:12")]


def test_duplicate_keys_are_refused_and_long_ones_taken() -> None:
    long = "k" * 200
    made, faults = rewrite_manifests(Source("in.yaml", f"kind: A\nmetadata: {{name: a}}\n{long}: 1\n"), [])
    assert faults == []
    assert made is not None
    assert long in made.text

    made, faults = rewrite_manifests(Source("in.yaml", "kind: A\nkind: B\n"), [])
    assert made is None
    assert [one.code for one in faults] == ["R002"]


def test_manifests_may_be_larger_than_a_definition(tmp_path: Path) -> None:
    text = "kind: A\nmetadata: {name: a}\ntext: |\n" + f"  {'x' * 100}\n" * 12_000
    (tmp_path / "big.yaml").write_text(text)

    source, faults = read_manifests(tmp_path / "big.yaml", io.BytesIO())
    made, more = rewrite_manifests(source, [RENAME])

    assert (faults, more) == ([], [])
    assert made is not None
    assert documents(text, SIGS) == documents(made.text, SIGS)


def test_standard_input_is_read_and_named() -> None:
    source, faults = read_manifests(Path("-"), io.BytesIO(b"\xef\xbb\xbfkind: A\n"))
    assert (source.path, source.text, faults) == ("<stdin>", "kind: A\n", [])

    _, faults = read_manifests(Path("-"), io.BytesIO(b"kind: A\nx: \xff\n"))
    assert [f"{one.location} {one.message}" for one in faults] == ["<stdin>:2 byte 0xff is not UTF-8"]


texts = st.sampled_from(["nginx", "nginx:1", "redis", "true", "010", "2024-07-01", "a: b", "", "~"])
values = st.recursive(
    st.one_of(texts, st.none(), st.integers(), st.booleans()),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["spec", "image", "name", "containers", "yes", "1"]), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(st.lists(values, max_size=3))
def test_rewriting_json_equals_the_rewriting_of_plain_data(parts: list[Any]) -> None:
    given_ = [{"kind": "A", "metadata": {"name": f"a{i}"}, "part": part} for i, part in enumerate(parts)]
    text = "---\n".join(json.dumps(one) + "\n" for one in given_)
    made, faults = rewrite_manifests(Source("in.yaml", text), [RENAME, PIN])
    if made is None:
        assert [one.code for one in faults] == ["R605"]
        return

    assert transform(given_, [RENAME, PIN]).documents == documents(made.text, SIGS)
