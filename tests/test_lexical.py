"""What stands in `values` reads from the output as it did from the catalog, in both readers of Flux's path."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from render.build import Build
from render.yaml import scalar
from render.yaml.source import Document, Mapping, Node, Sequence, Source, parse
from tests.hostile import PLAIN, TELLING, texts
from tests.project import project, told

SERVICE = """\
name: web
source:
  chart: {url: "https://charts.example", name: web, version: "1.0.0"}
"""

CARRIED = [text for text in PLAIN if scalar.is_carried(text, plain=True)]


def build(values: str, *, before: str = "") -> Build:
    """Build a service whose `values` are the given text, which is indented by two spaces."""
    with tempfile.TemporaryDirectory() as folder:
        text = SERVICE + before + "values:\n" + values
        return project(Path(folder), {"catalog/web.yaml": text.encode()}).build()


def root(text: str) -> Mapping:
    documents: list[Document]
    documents, faults = parse(Source("f.yaml", text))
    assert faults == []
    assert isinstance(documents[0].root, Mapping)
    return documents[0].root


def carried(made: Build) -> Node:
    """The `values` of the output."""
    assert not made.failed, told(made)
    spec = root(made.files["apps/web/helmrelease.yaml"]).get("spec")
    assert isinstance(spec, Mapping)
    values = spec.get("values")
    assert values is not None
    return values


def reading(node: Node, *, key: bool = False) -> Any:
    """What both readers make of a node: (kyaml, sigs) for scalars, pairs for mappings, lists."""
    if isinstance(node, Sequence):
        return [reading(item) for item in node.items]
    if isinstance(node, Mapping):
        return [(reading(name, key=True), reading(value)) for name, value in node.entries]
    if node.style:
        return ("string", node.text)
    if key:
        names = scalar.kyaml_key(node.text), scalar.sigs_key(node.text)
        return ("string", node.text) if names == (node.text, node.text) else names
    kyaml, sigs = scalar.kyaml(node.text), scalar.sigs(node.text)
    if kyaml.kind == "other":
        # A plain `<<` is a merge key to kyaml even as a value; what the catalog means by it is its text.
        kyaml = sigs
    if kyaml.kind == sigs.kind == "string":
        return ("string", node.text)
    return (kyaml, sigs)


def assert_same(values: str, *, before: str = "") -> None:
    made = build(values, before=before)
    source = root(SERVICE + before + "values:\n" + values).get("values")
    assert source is not None
    assert reading(source) == reading(carried(made))


@pytest.mark.parametrize("text", [text for text in CARRIED if "\t" not in text])
def test_a_plain_scalar_stays_what_it_is(text: str) -> None:
    assert_same(f"  a: {text}\n  b: [1]\n  c:\n  - {text}\n  - - {text}\n")


@pytest.mark.parametrize("text", [text for text in PLAIN if scalar.kyaml(text).kind == "string" and len(text) <= 128])
def test_a_plain_key_stays_what_it_is(text: str) -> None:
    assert_same(f"  {text}: 1\n  sub:\n    {text}: [x]\n  list:\n  - {text}: y\n")


@pytest.mark.parametrize("text", ["0", "-1", "1.20", "1e3", "0x1F", "true", "False", "2024-07-01", ".inf"])
def test_a_plain_key_that_is_no_string_is_an_error(text: str) -> None:
    told_ = told(build(f"  a:\n  - {text}: 1\n  b: {{'{text}': 1}}\n"))

    assert [line.rpartition(" the ")[0] for line in told_] == ["R007 catalog/web.yaml:6:5 a key must be a string, not"]


@pytest.mark.parametrize("text", [".inf", "-.INF", ".NaN"])
def test_a_number_that_json_has_not_is_an_error(text: str) -> None:
    assert told(build(f"  a: [{text}]\n  b: '{text}'\n")) == [
        f"R009 catalog/web.yaml:5:7 `{text}` is no number that JSON has"
    ]


@pytest.mark.parametrize("character", ["\\x7f", "\\x80", "\\x9f", "\\uffff", "\\ufffe"])
def test_a_control_character_that_kustomize_cannot_write_is_an_error(character: str) -> None:
    what = "the text holds a control character that kustomize cannot write"

    assert told(build(f'  a: "{character}"\n  b: {{"x{character}": 1}}\n')) == [
        f"R009 catalog/web.yaml:5:6 {what}",
        f"R009 catalog/web.yaml:6:7 {what}",
    ]


@pytest.mark.parametrize("character", ["\\0", "\\a", "\\e", "\\N", "\\x85", "\\u2028", "\\ufeff"])
def test_a_character_that_kustomize_escapes_is_none(character: str) -> None:
    assert told(build(f'  a: "{character}"\n')) == []


@pytest.mark.parametrize("text", ["~", "null", "Null", "NULL", "18446744073709551615"])
def test_a_plain_key_that_a_reader_refuses_is_an_error(text: str) -> None:
    errors = [line for line in told(build(f"  {text}: 1\n")) if not line.startswith("R008")]

    assert errors == [f"R007 catalog/web.yaml:5:3 `{text}` cannot be a key"]


def single(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


@given(texts().filter(scalar.is_carried), texts().filter(scalar.is_carried))
def test_double_quoted_text_stays_that_text(value: str, item: str) -> None:
    values = f"  a: {scalar.double_quoted(value)}\n  b: [{scalar.double_quoted(item)}, x]\n"
    node = carried(build(values))

    assert isinstance(node, Mapping)
    assert (value, [item, "x"]) == (node.text("a"), [one.text for one in node.get("b").items])  # type: ignore[union-attr]
    assert_same(values)


@pytest.mark.parametrize("text", [text for text in TELLING if text.isprintable() and text.isascii()])
def test_quoted_text_stays_that_text_as_value_and_key(text: str) -> None:
    assert_same(f"  a: {single(text)}\n  b: {{c: {single(text)}, d: [{single(text)}]}}\n")
    if len(text) <= 128:
        assert_same(f"  {single(text)}: 1\n  sub: {{{single(text)}: 2, {scalar.double_quoted('x' + text[:120])}: 3}}\n")


@pytest.mark.parametrize(
    "values",
    [
        "  a: {b: [1, {c: yes, 'd': [~, \"\"]}], e: {}, f: []}\n",
        "  a: [[], [[]], {}, [{}], [1, [2]]]\n",
        "  a: {x, y: , ? z}\n",
        "  a: [b: c, 'd': e]\n",
        "  a: |\n    x\n     y\n\n    z\n",
        "  a: |-\n    x\n    y\n",
        "  a: |+\n    x\n\n\n  b: 1\n",
        "  a: |2\n      lead\n    x\n",
        "  a: |1-\n   x\n",
        "  a: >\n    one\n    two\n\n    three\n      four\n    five\n",
        "  a: >-\n    one\n    two\n",
        "  a: >+\n    one\n\n  b: 1\n",
        "  a: |\n    trailing \n    blanks\t\n",
        "  a: |\n    x: \n      - y\n  b: [1]\n",
        "  a: |\n    😀\n    é\n",
        "  a: |\n\n    x\n",
        "  a: |\n    x\n    \ty\n",
        "  a: one\n    two\n\n    three\n  b: 'one\n    two'\n  c: \"one\n    two\\\n    \\ three\\n\"\n",
        "  a: |  # a comment\n    # no comment\n    x\n  # a comment\n  b: 1 # a comment\n",
        "  a: 'x'   \n  b:   y   # c\n",
        "  a: # nothing\n  b:\n  c: ~\n  d:\n  - \n  - ~\n",
        "  a: !!str 1\n  b: !!int 1\n  c: ! yes\n",
        "  a:\n    - 1\n    -\n      - 2\n      -   b: 3\n          c: 4\n",
        "  ? a\n  : b\n  ? c\n",
        '  "a\\x41\\u00e9\\t": "\\x41\\/\\_\\N"\n',
    ],
)
def test_every_way_of_writing_a_value_carries_it(values: str) -> None:
    assert_same(values)


@pytest.mark.parametrize(
    ("before", "values"),
    [
        ("labels: {k: &x 'yes'}\n", "  a: *x\n  b: [*x]\n"),
        ("annotations: &x {k: '1.20', l: v}\n", "  a: *x\n  b:\n    <<: *x\n    k: 0644\n"),
        ("release: {install: &x {crds: Skip}}\n", "  <<: *x\n  crds: Create\n"),
        ("", "  a: &x {k: 1, l: 2}\n  b: {<<: *x, l: 3}\n  c: {<<: [{l: 4}, *x]}\n"),
        ("", "  a: &x 1\n  b: *x\n  c: &x yes\n  d: *x\n"),
        ("", "  &k a: 1\n  b: *k\n"),
        ("", "  a: &x |\n    text\n  b: *x\n"),
    ],
)
def test_aliases_and_merges_are_expanded(before: str, values: str) -> None:
    made = build(values, before=before)

    assert_same(values, before=before)
    assert not {"&", "*"} & set("".join(made.files["apps/web/helmrelease.yaml"].split("\n", 1)[1]))


def test_the_order_of_keys_is_kept() -> None:
    node = carried(build("  z: 1\n  a: {y: 1, b: 2}\n  m: [{q: 1, c: 2}]\n"))

    assert isinstance(node, Mapping)
    assert [key.text for key, _ in node.entries] == ["z", "a", "m"]


def test_comments_stay_in_the_catalog() -> None:
    made = build("  # above\n  a: 1 # beside\n  # below\n")

    assert [line[0] for line in made.files["apps/web/helmrelease.yaml"].split("\n") if "#" in line] == ["#"]


@pytest.mark.parametrize("text", ["yes", "off", "y", "0o17", "2024-07-01", "<<"])
def test_a_value_that_the_readers_take_differently_is_a_warning_at_its_place(text: str) -> None:
    expected = [f"R008 catalog/web.yaml:5:6 two readers take the value `{text}` differently"]

    assert (expected if scalar.readers_differ(text) else []) == told(build(f"  a: {text}\n"))


@given(st.lists(st.sampled_from(CARRIED), min_size=1, max_size=5))
def test_many_plain_scalars_in_a_list_stay_what_they_are(items: list[str]) -> None:
    assert_same("  a:\n" + "".join(f"  - {text}\n" for text in items))
