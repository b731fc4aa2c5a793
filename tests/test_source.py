from __future__ import annotations

import random
import re
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from render.codes import CODES
from render.diagnostics import Diagnostic
from render.yaml.compose import MAX_DEPTH
from render.yaml.source import MAX_BYTES, Document, Mapping, Node, Scalar, Sequence, Source, decode, parse

BREAKS = re.compile("\r\n|[\r\n\x85\u2028\u2029]")


def read(text: str) -> tuple[list[Document], list[Diagnostic]]:
    return parse(Source("f.yaml", text))


def shape(node: Node) -> Any:
    """A tree as lists of pairs, lists and scalars; each scalar as its style (`p` for plain) and its text."""
    if isinstance(node, Scalar):
        return (node.style or "p") + node.text
    if isinstance(node, Mapping):
        return [(shape(key), shape(value)) for key, value in node.entries]
    return [shape(item) for item in node.items]


def shapes(text: str) -> list[Any]:
    documents, faults = read(text)
    assert faults == []
    return [shape(document.root) for document in documents]


def faults(text: str) -> list[str]:
    return [f"{fault.location.line}:{fault.location.column} {fault.code} {fault.message}" for fault in read(text)[1]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: 1\nb: 2\na: 3\n", "3:1 R002 duplicate key `a`"),
        ("a:\n  - k: 1\n    k: 2\n", "3:5 R002 duplicate key `k`"),
        ("{k: 1, 'k': 2}\n", "1:8 R002 duplicate key `k`"),
        ("1: a\n'1': b\n", "2:1 R002 duplicate key `1`"),
        ("1: a\n0x1: b\n", "2:1 R002 duplicate key `0x1` (the same key as `1`)"),
        ("0o17: a\n15: b\n", "2:1 R002 duplicate key `15` (the same key as `0o17`)"),
        ("1.0: a\n1.00: b\n", "2:1 R002 duplicate key `1.00` (the same key as `1.0`)"),
        ("yes: a\n'true': b\n", "2:1 R002 duplicate key `true` (the same key as `yes`)"),
        ("yes: a\ntrue: b\n", "2:1 R002 duplicate key `true` (the same key as `yes`)"),
        ("&a k: v\n*a : w\n", "1:1 R002 duplicate key `k`"),
        ('"k": 1\n"\\x6b": 2\n', "2:1 R002 duplicate key `k`"),
        ("é: 1\ne: 2\né: 3\n", "3:1 R002 duplicate key `é`"),
    ],
)
def test_a_key_is_a_duplicate_by_what_either_reader_makes_of_it(text: str, expected: str) -> None:
    assert [expected] == faults(text)


def test_a_duplicate_names_both_places() -> None:
    (fault,) = read("a: 1\nb:\n  c: 1\n  d: 2\n  c: 3\n")[1]

    assert (str(fault.location), str(fault.related[0][0]), fault.snippet) == ("f.yaml:5:3", "f.yaml:3:3", "  c: 3")


@pytest.mark.parametrize("text", ["a: 1\nA: 2\n", "1: a\n2: b\n", "on: a\noff: b\n", "a: {k: 1}\nb: {k: 1}\n"])
def test_different_keys_are_no_duplicates(text: str) -> None:
    assert faults(text) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("~: a\n", "1:1 R007 `~` cannot be a key"),
        ("null: a\n", "1:1 R007 `null` cannot be a key"),
        ("a:\n  Null: a\n", "2:3 R007 `Null` cannot be a key"),
        ("18446744073709551615: a\n", "1:1 R007 `18446744073709551615` cannot be a key"),
        ("? [a]\n: b\n", "1:3 R007 a key must be a single value, not a list or mapping"),
        ("? {a: b}\n: c\n", "1:3 R007 a key must be a single value, not a list or mapping"),
        ("? |\n  a\n  b\n: x\n", "1:3 R007 a key must be one line of at most 128 bytes"),
        ("? a\n\n  b\n: x\n", "1:3 R007 a key must be one line of at most 128 bytes"),
        ("k" * 129 + ": 1\n", "1:1 R007 a key must be one line of at most 128 bytes"),
        ("é" * 65 + ": 1\n", "1:1 R007 a key must be one line of at most 128 bytes"),
    ],
)
def test_a_key_must_be_one_that_every_reader_takes(text: str, expected: str) -> None:
    assert [expected] == faults(text)


def test_a_key_may_have_128_bytes() -> None:
    assert faults("k" * 128 + ": 1\n" + "é" * 64 + ": 2\n") == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<<: *a\n  k: 2\n", [("pk", "p2"), ("pl", "p1")]),
        ("k: 2\n  <<: *a\n", [("pk", "p2"), ("pl", "p1")]),
        ("<<: [*b, *a]\n", [("pl", "p3"), ("pk", "p1")]),
        ("<<: [*a, *b]\n", [("pk", "p1"), ("pl", "p1")]),
        ("<<: {k: 4}\n  m: 5\n", [("pk", "p4"), ("pm", "p5")]),
        ("<<: []\n  m: 5\n", [("pm", "p5")]),
        ('"<<": 1\n', [('"<<', "p1")]),
    ],
)
def test_merge_keys_are_unfolded_and_overridden(text: str, expected: list[Any]) -> None:
    (tree,) = shapes("a: &a {k: 1, l: 1}\nb: &b {l: 3}\nc:\n  " + text)

    assert sorted(expected) == sorted(tree[2][1])


def test_a_merged_mapping_may_merge_another() -> None:
    (tree,) = shapes("a: &a {k: 1}\nb: &b {<<: *a, l: 2}\nc: {<<: *b, m: 3}\n")

    assert tree[2][1] == [("pk", "p1"), ("pl", "p2"), ("pm", "p3")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<<: 1\n", "1:1 R007 `<<` must merge a mapping, or a list of mappings"),
        ("a:\n  <<: [x]\n", "2:3 R007 `<<` must merge a mapping, or a list of mappings"),
        ("a: &a {}\nb:\n  <<: *a\n  <<: *a\n", "4:3 R002 duplicate key `<<`"),
    ],
)
def test_a_merge_key_takes_mappings_once(text: str, expected: str) -> None:
    assert [expected] == faults(text)


def test_an_anchor_defined_twice_means_the_one_above() -> None:
    assert shapes("a: &x 1\nb: *x\nc: &x 2\nd: *x\n") == [[("pa", "p1"), ("pb", "p1"), ("pc", "p2"), ("pd", "p2")]]


def test_an_anchor_redefined_inside_its_own_value_means_the_inner_one() -> None:
    assert shapes("a: &x\n  b: &x 1\n  c: *x\n") == [[("pa", [("pb", "p1"), ("pc", "p1")])]]


def test_an_alias_is_the_same_node() -> None:
    ((document,), _) = read("a: &x {k: 1}\nb: *x\nc: {k: 1}\n")
    root = document.root

    assert isinstance(root, Mapping)
    assert root.get("a") is root.get("b")
    assert root.get("a") is not root.get("c")


def test_anchors_end_with_their_document() -> None:
    assert faults("a: &x 1\n---\nb: *x\n") == ["3:4 R006 the alias `*x` names no anchor above it"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ab: *y\n", "1:5 R006 the alias `*y` names no anchor above it"),
        ("a: [*y, &y 1]\n", "1:5 R006 the alias `*y` names no anchor above it"),
        ("a: &x [*x]\n", "1:8 R006 the alias `*x` stands inside the value it repeats"),
        ("a: &x\n  b: {c: *x}\n", "2:10 R006 the alias `*x` stands inside the value it repeats"),
    ],
)
def test_an_alias_needs_a_finished_anchor_above_it(text: str, expected: str) -> None:
    assert [expected] == faults(text)


@pytest.mark.parametrize("text", ["a: {<<: *zz}\n", "*zz : 1\n", "a: {<<: [*zz]}\n"])
def test_a_missing_anchor_is_reported_once(text: str) -> None:
    assert [fault.split()[1] for fault in faults(text)] == ["R006"]


def test_an_unknown_alias_names_the_closest_anchor() -> None:
    (fault,) = read("common: &common 1\na: *comon\n")[1]

    assert fault.hint == "use `*common`"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: !!str 1\n", '"1'),
        ("a: !!str '1'\n", "'1"),
        ("a: ! 1\n", '"1'),
        ("a: !<tag:yaml.org,2002:str> yes\n", '"yes'),
        ("a: !!int 1\n", "p1"),
        ("a: !!float 1.5\n", "p1.5"),
        ("a: !!bool true\n", "ptrue"),
        ("a: !!null ~\n", "p~"),
        ("a: !!map {}\n", []),
        ("a: !!seq [1]\n", ["p1"]),
        ("a: !!str |\n  x\n", "|x\n"),
    ],
)
def test_a_tag_that_says_what_is_there_is_dropped(text: str, expected: Any) -> None:
    assert [[("pa", expected)]] == shapes(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: !secret x\n", "1:4 R004 the tag `!secret` is not allowed"),
        ("a: !!int '1'\n", "1:4 R004 the tag `!!int` is not allowed"),
        ("a: !!int 1.5\n", "1:4 R004 the tag `!!int` is not allowed"),
        ("a: !!bool yes\n", "1:4 R004 the tag `!!bool` is not allowed"),
        ("a: !!binary aGk=\n", "1:4 R004 the tag `!!binary` is not allowed"),
        ("a: !!timestamp 2024-07-01\n", "1:4 R004 the tag `!!timestamp` is not allowed"),
        ("a:\n  !!set {x}\n", "2:3 R004 the tag `!!set` is not allowed"),
        ("- !!omap []\n", "1:3 R004 the tag `!!omap` is not allowed"),
        ("!x a: 1\n", "1:1 R004 the tag `!x` is not allowed"),
        ("%TAG ! tag:x,2000:\n---\na: !y 1\n", "3:4 R004 the tag `tag:x,2000:y` is not allowed"),
    ],
)
def test_a_tag_that_changes_the_value_is_refused(text: str, expected: str) -> None:
    assert [expected] == faults(text)


def bomb(levels: int, width: int) -> str:
    lines = ["a0: &a0 [" + ", ".join("x" * width) + "]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * width)}]" for i in range(1, levels)]
    return "\n".join(lines) + "\n"


def test_an_alias_bomb_is_refused_where_it_grows_too_large() -> None:
    assert faults(bomb(9, 10)) == ["4:1 R005 aliases unfold into more than 100,000 values"]


def test_aliases_below_the_limit_are_read() -> None:
    assert faults(bomb(4, 10)) == []


def test_a_bomb_of_merge_keys_is_refused_or_small() -> None:
    # Merged entries count once a name; the values behind them count each time.
    lines = ["a0: &a0 {" + ", ".join(f"k{i}: [1, 2, 3]" for i in range(100)) + "}"]
    lines += [f"a{i}: &a{i} {{<<: *a{i - 1}, in{i}: *a{i - 1}}}" for i in range(1, 30)]

    assert [fault.split()[1] for fault in faults("\n".join(lines) + "\n")] == ["R005"]


def test_a_long_text_repeated_by_aliases_is_refused() -> None:
    text = "a: &a '" + "x" * 100_000 + "'\nb: [" + ", ".join(["*a"] * 10_000) + "]\n"

    assert [fault.split()[1] for fault in faults(text)] == ["R005"]


def test_nesting_has_a_limit() -> None:
    deepest = "[" * MAX_DEPTH + "]" * MAX_DEPTH

    assert faults(deepest) == []
    assert [f"1:{MAX_DEPTH + 1} R005 nested more than {MAX_DEPTH} levels deep"] == faults("[" + deepest + "]")


def test_aliases_do_not_nest_deeper_than_the_limit() -> None:
    half = MAX_DEPTH // 2 + 5
    text = "a: &a " + "[" * half + "]" * half + "\nb: " + "[" * half + "*a" + "]" * half + "\n"

    assert [fault.split()[1] for fault in faults(text)] == ["R005"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("# only a comment\n", []),
        ("---\n", []),
        ("---\n---\nnull\n---\n~\n...\n", []),
        ("--- a\n--- b\n", ["pa", "pb"]),
        ("a: 1\n---\nb: 2\n---\n# c\n---\nc: 3\n...\n", [[("pa", "p1")], [("pb", "p2")], [("pc", "p3")]]),
        ("''\n", ["'"]),
        ("{}\n---\n[]\n", [[], []]),
    ],
)
def test_documents_are_read_in_order_and_empty_ones_left_out(text: str, expected: list[Any]) -> None:
    assert expected == shapes(text)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\x85", "\u2028", "\u2029"])
def test_every_line_break_of_yaml_counts_a_line(end: str) -> None:
    text = end.join(["a: 1", "b: 2", "  ", "a: 3", ""])

    assert [(faults(text)[0], read(text)[1][0].snippet)] == [("4:1 R002 duplicate key `a`", "a: 3")]


def test_crlf_is_no_part_of_a_value() -> None:
    assert shapes("a: |\r\n  x\r\n  y\r\nb: 'p\r\n  q'\r\n") == [[("pa", "|x\ny\n"), ("pb", "'p q")]]


def test_columns_are_characters() -> None:
    assert faults("é😀: [z, !x y]\n") == ["1:9 R004 the tag `!x` is not allowed"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: [1,\n", "1:7 R003"),
        ("a: 'x\n", "1:4 R003"),
        ('a: "\\q"\n', "1:5 R003"),
        ('a: "\\ud800"\n', "1:7 R003"),
        ("a:\n\tb: 1\n", "2:1 R003"),
        ("a: b: c\n", "1:5 R003"),
        ("a: 1\n  b: 2\n", "2:4 R003"),
        ("- a\nb: 1\n", "2:1 R003"),
        ("a: @x\n", "1:4 R003"),
        ("a: |\n  x\n y\n", "3:2 R003"),
        ("a: 1\n... x\n", "2:5 R003"),
        ("%YAML 2.0\n---\na: 1\n", "1:1 R003"),
        ("a: x\x00y\n", "1:5 R003"),
        ("é: 1\r\na: x\x7fy\n", "2:5 R003"),
        ("a: \ufffe\n", "1:4 R003"),
    ],
)
def test_what_is_no_yaml_is_placed(text: str, expected: str) -> None:
    documents, found = read(text)

    assert ([], [expected]) == (documents, [f"{one.location.line}:{one.location.column} {one.code}" for one in found])
    assert found[0].cause
    assert found[0].hint


def test_half_a_file_is_no_file() -> None:
    documents, found = read("a: 1\n---\nb: [\n")

    assert (documents, [fault.code for fault in found]) == ([], ["R003"])


def test_faults_before_a_syntax_error_are_kept() -> None:
    assert [fault.split()[1] for fault in faults("a: 1\na: 2\n---\nb: [\n")] == ["R002", "R003"]


def test_a_byte_order_mark_is_dropped() -> None:
    source, found = decode("f.yaml", b"\xef\xbb\xbfa: 1\na: 2\n")

    assert (found, source.text) == ([], "a: 1\na: 2\n")


@pytest.mark.parametrize(
    ("data", "line", "message"),
    [
        (b"a: \xe9\n", 1, "byte 0xe9 is not UTF-8"),
        (b"a: ok\r\nb: \xc3\n", 2, "byte 0xc3 is not UTF-8"),
        (b"\xff\xfea\x00", 1, "byte 0xff is not UTF-8"),
        (b"a: 1\n\nb: \xed\xa0\x80\n", 3, "byte 0xed is not UTF-8"),
    ],
)
def test_bytes_that_are_no_utf8_are_placed(data: bytes, line: int, message: str) -> None:
    source, (fault,) = decode("f.yaml", data)

    assert ("", line, "R001", message) == (source.text, fault.location.line, fault.code, fault.message)


def test_a_file_of_more_than_a_mebibyte_is_refused() -> None:
    assert decode("f.yaml", b"#" * MAX_BYTES)[1] == []
    assert [fault.code for fault in decode("f.yaml", b"#" * (MAX_BYTES + 1))[1]] == ["R005"]


def inside(text: str, fault: Diagnostic) -> bool:
    """Whether a fault's place is a line of the text (or the end after its last line) and a column of it."""
    place = fault.location
    lines = BREAKS.split(text)
    if not place.line:
        return place.column == 0
    return place.line <= len(lines) and place.column <= len(lines[place.line - 1]) + 1


FRAGMENTS = st.sampled_from(list("abx10 \n\t:-?,[]{}#&*!|>'\"%@`~<\r\\\x85\u2028\ufeff\x00\x7f😀é")) | st.sampled_from(
    [
        "\n  ",
        "\n- ",
        ": ",
        "- ",
        "&a ",
        "*a",
        "*a ",
        "<<: ",
        "!!str ",
        "!x ",
        "---\n",
        "...\n",
        "|\n",
        ">-\n",
        "k: ",
        "null",
        "yes",
        "? ",
        "\r\n",
        "%YAML 1.1\n",
    ]
)


@given(st.one_of(st.text(), st.lists(FRAGMENTS, max_size=25).map("".join)))
@example("a: &a {k: *a}\n? *a\n: <<")
@example("[" * 101)
@example("? \n: a\n")
@example("a: '\n\n")
def test_any_text_is_read_or_refused_inside_the_file(text: str) -> None:
    documents, found = read(text)

    assert [fault for fault in found if not inside(text, fault) or fault.code not in CODES] == []
    assert documents == [] or not any(fault.code == "R003" for fault in found)


@given(st.binary() | st.text().map(str.encode))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    source, found = decode("f.yaml", data)
    if not found:
        parse(source)

    assert bool(found) == (source.text.encode() != data.removeprefix(b"\xef\xbb\xbf"))


KEYS = st.text(st.sampled_from("abcdef"), min_size=1, max_size=3)
TREES = st.recursive(
    KEYS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=20,
)


def flow(tree: Any, rng: random.Random) -> str:
    """Write a tree in flow style, spacing and quoting at random."""
    blank = rng.choice(["", " ", "  ", "\n "])
    if isinstance(tree, str):
        return rng.choice([f"{tree}", f"'{tree}'", f'"{tree}"', f"!!str {tree}"])
    if isinstance(tree, list):
        return "[" + blank + ("," + blank).join(flow(item, rng) for item in tree) + blank + "]"
    pairs = (f"{rng.choice([key, repr(key)])}: {flow(value, rng)}" for key, value in tree.items())
    return "{" + blank + ("," + blank).join(pairs) + blank + "}"


def data(node: Node) -> Any:
    if isinstance(node, Scalar):
        return node.text
    if isinstance(node, Sequence):
        return [data(item) for item in node.items]
    return {key.text: data(value) for key, value in node.entries}


@given(TREES, st.randoms(use_true_random=False))
def test_a_tree_is_what_was_written(tree: Any, rng: random.Random) -> None:
    (document,), found = read("root: " + flow(tree, rng) + "\n")

    assert ([], {"root": tree}) == (found, data(document.root))


@given(TREES, st.randoms(use_true_random=False))
def test_each_scalar_knows_its_place(tree: Any, rng: random.Random) -> None:
    text = "root: " + flow(tree, rng).replace("!!str ", "") + "\n"
    lines = text.split("\n")
    ((document,), _) = read(text)
    stack: list[Node] = [document.root]
    while stack:
        node = stack.pop()
        if isinstance(node, Scalar):
            written = lines[node.line - 1][node.column - 1 : node.column - 1 + node.length]
            assert node.style + node.text + node.style == written
        elif isinstance(node, Sequence):
            stack += node.items
        else:
            stack += [part for entry in node.entries for part in entry]


@given(st.lists(KEYS, min_size=1, max_size=8))
def test_a_repeated_key_is_reported_each_time_it_comes_again(keys: list[str]) -> None:
    text = "".join(f"{key}: {i}\n" for i, key in enumerate(keys))
    again = [i + 1 for i, key in enumerate(keys) if key in keys[:i]]

    assert again == [fault.location.line for fault in read(text)[1]]
