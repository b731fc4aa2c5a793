from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from render.catalog import lint_scalars
from render.yaml import lines
from render.yaml.compose import compose
from render.yaml.nodes import Mapping, Node, Scalar, Source

ROOT = Path(__file__).parents[1]
FILES = sorted([*ROOT.glob("catalog/**/*.yaml"), *ROOT.glob("goldens/**/*.yaml"), *ROOT.glob("tests/**/*.yaml")])


def told(node: Node) -> Any:
    """All that a node says: what it holds, how that is spelled, where it stands and under which key."""
    if isinstance(node, Scalar):
        return (node.text, node.style, node.line, node.column, node.length)
    key = told(node.key_node) if node.key_node is not None else None
    if isinstance(node, Mapping):
        return (node.line, node.column, key, {"entries": [(told(one), told(other)) for one, other in node.entries]})
    return (node.line, node.column, key, [told(item) for item in node.items])


def agrees(text: str) -> bool:
    """Whether a text was read line by line; what was read is what libyaml reads."""
    source = Source("f.yaml", text)
    documents = lines.read(source)
    if documents is None:
        return False
    expected, faults = compose(source)
    assert faults == []
    assert [told(document.root) for document in documents] == [told(document.root) for document in expected]
    return True


def test_the_files_of_this_repository_are_read_as_by_libyaml() -> None:
    read = [agrees(path.read_bytes().decode("utf-8", "replace")) for path in FILES]

    # Most of them without libyaml; the others are test cases of what is unusual.
    assert sum(read) > 0.8 * len(read)


@pytest.mark.parametrize(
    "text",
    [
        "a: 1\n",
        "a:\n",
        "a:\nb:\n  c:\nd: e\n",
        "a: # nothing\n  # nor here\n  b: c # d\n",
        "- a\n- b: c\n  d:\n  - e\n  - - f\n    - g\n",
        "a:\n- b\n-   \"c\"\nd: ''\n".replace("-   ", "- "),
        "a: |\n  b\n\n    c\n   \n\nd: |-\n  e\nf: |+\n  g\n\n",
        "- |\n x\n- a: |\n    y\n  b: z\n",
        "a: it's\nb: 'it''s'\nc: \"it's\"  # d\n",
        "a: {b: c, d: [e, {f: g}], 'h': \"i, j\"}\nk: []\nl: {}\n",
        "---\na: b\n---\n# c\n---\n- d\n",
        "a:   b\nc:    # d\n  e: -1\nf: --g\nh: http://i:80/j#k\n",
        "a: é\nb: “c”\n",
        "# only a comment\n\n",
    ],
)
def test_usual_forms_are_read_line_by_line(text: str) -> None:
    assert agrees(text)


@pytest.mark.parametrize(
    "text",
    [
        "a: 1",
        "a: &b c\n",
        "a: *b\n",
        "a: !!str b\n",
        "a: b\n  c\n",
        'a: "b\n  c"\n',
        'a: "\\x41"\n',
        "a: b: c\n",
        "a: b:\n",
        "a: - b\n",
        "a: 1\na: 2\n",
        "a: {b: 1, b: 2}\n",
        "a:\n  b: 1\n c: 2\n",
        "a:\n\tb: 1\n",
        "a: b\r\nc: d\n",
        "yes: 1\n",
        "1: a\n",
        "<<: {a: b}\n",
        "? a\n: b\n",
        "a: >\n  b\n",
        "a: |2\n   b\n",
        "a: |\nb: c\n",
        "a: |\n\n  b\n",
        "a: |\n \n  b\n",
        "- \n- a\n",
        "-\n  a: b\n",
        "- a\n b: c\n",
        "a: [b\n",
        "a: [b]c\n",
        "a: [b: c]\n",
        "a: {b: }\n",
        "a: [b, ]\n",
        "a: 'b'c\n",
        "--- a\n",
        "%YAML 1.1\n---\na: b\n",
        "...\n",
        "a\n",
        "  a: b\n",
        "a: \x7f\n",
        "a: @b\n",
    ],
)
def test_everything_else_is_left_to_libyaml(text: str) -> None:
    assert not agrees(text)


WORDS = [
    "a",
    "b",
    "key",
    "yes",
    "1",
    "-",
    "--",
    "'",
    '"',
    "''",
    '""',
    "it's",
    "x y",
    "http://h:1/p",
    "é",
    ">",
    "|",
    "|-",
]
WORDS += [
    "|+",
    "[",
    "]",
    "{",
    "}",
    ",",
    ", ",
    ":",
    ": ",
    "#",
    " #",
    "# c",
    "&a",
    "*a",
    "!t",
    "%",
    "?",
    "~",
    "null",
    "\\",
]
PIECES = st.sampled_from(
    [*WORDS, " ", "  ", "- ", "a: ", "b: ", "key:", "'k': ", "[a, b]", "{a: b}", "---", "...", "<<: "]
)
LINE = st.tuples(st.sampled_from(["", " ", "  ", "    "]), st.lists(PIECES, max_size=4)).map(
    lambda parts: parts[0] + "".join(parts[1])
)
ENTRY = st.sampled_from(
    ["a:", "b:", "c: d", "e: |", "- a", "- b:", "- c: d", "- - e", "f: [g, h]", "'i'", "j: {k: l}", "# m", ""]
)
USUAL = st.tuples(st.integers(0, 3), ENTRY).map(lambda parts: "  " * parts[0] + parts[1])


@given(st.lists(LINE, max_size=8).map("\n".join))
@example("a: 'b'' #'\n")
@example("- 'a': b\n")
@example("a: {b: c}d\n")
@example("a: |\n  b\n c\n")
def test_any_text_that_is_read_line_by_line_is_read_as_by_libyaml(text: str) -> None:
    agrees(text + "\n")


@given(st.lists(USUAL, max_size=12).map("\n".join))
def test_any_usual_lines_are_read_as_by_libyaml(text: str) -> None:
    agrees(text + "\n")


@given(st.sampled_from(FILES), st.data())
def test_a_file_with_a_slip_in_it_is_read_as_by_libyaml(path: Path, data: st.DataObject) -> None:
    text = path.read_bytes().decode("utf-8", "replace")
    at = data.draw(st.integers(0, len(text)))
    cut = data.draw(st.integers(0, 3))
    agrees(text[:at] + data.draw(PIECES | st.text(max_size=2)) + text[at + cut :])


@given(st.lists(USUAL | LINE, max_size=8).map("\n".join))
@example("a: yes\n")
@example("a: [on]\n")
@example("a: 0x1F\n")
def test_a_sound_document_needs_no_other_look_at_its_scalars(text: str) -> None:
    source = Source("f.yaml", text + "\n")
    for document in lines.read(source) or ():
        assert not document.is_sound or lint_scalars(source, document.root) == []
