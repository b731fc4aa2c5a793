from __future__ import annotations

import string

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from render.yaml.source import Source, parse
from render.yaml.splice import Anchor, SpliceError, Splicer
from tests.sound import examples

REFERENCE = "host:5000/a/b:2.0.0@sha256:0f"


@pytest.mark.parametrize(
    ("text", "place", "expected"),
    [
        ("a: x:1 # why\nb: 2\n", (1, 4), f"a: {REFERENCE} # why\nb: 2\n"),
        ("a:   'x:1'   # why\n", (1, 6), f"a:   '{REFERENCE}'   # why\n"),
        ('a: "x:1"\n', (1, 4), f'a: "{REFERENCE}"\n'),
        ('a: "x\\x3a1"\n', (1, 4), f'a: "{REFERENCE}"\n'),
        ("a: &b x:1\n", (1, 4), f"a: &b {REFERENCE}\n"),
        ("a: !!str  &b 'x:1' # c\n", (1, 4), f"a: !!str  &b '{REFERENCE}' # c\n"),
        ("a: &b # c\n  # d\n  x:1\n", (1, 4), f"a: &b # c\n  # d\n  {REFERENCE}\n"),
        ("[1, {a: x:1, b: 2}]", (1, 9), f"[1, {{a: {REFERENCE}, b: 2}}]"),
        ("a: |- # c\n  x:1\n\n# d\nb: 2\n", (1, 4), f"a: |- # c\n  {REFERENCE}\n\n# d\nb: 2\n"),
        ("a:\n  x:1\nb: 2", (2, 3), f"a:\n  {REFERENCE}\nb: 2"),
        ("é: '😀'\na: x:1\n", (2, 4), f"é: '😀'\na: {REFERENCE}\n"),
        ("b: 2\r\na: x:1 # c\r\nc: 3\r\n", (2, 4), f"b: 2\r\na: {REFERENCE} # c\r\nc: 3\r\n"),
        ("a: 1\n---\na: 2\n---\na: 3\n", (3, 4), f"a: 1\n---\na: {REFERENCE}\n---\na: 3\n"),
        ("a:\nb: 2\n", (1, 3), f"a: {REFERENCE}\nb: 2\n"),
        ("{a: , b: 2}", (1, 5), f"{{a: {REFERENCE}, b: 2}}"),
        ("a: ~ # none\n", (1, 4), f"a: {REFERENCE} # none\n"),
    ],
)
def test_one_scalar_changes_and_nothing_else(text: str, place: tuple[int, int], expected: str) -> None:
    assert expected == Splicer(text).splice({place: REFERENCE})


@pytest.mark.parametrize("value", ["1.20", "1e3", "2024-07-01", "0x10", "yes", "null", "", "1_000", "~"])
@pytest.mark.parametrize("spelled", ["old", "'old'", '"old"'])
def test_text_stays_text_to_every_reader(value: str, spelled: str) -> None:
    text = Splicer(f"a: {spelled}\n").splice({(1, 4): value})

    documents, faults = parse(Source("x", text))
    assert faults == []
    assert documents[0].root.get("a").is_string  # type: ignore[union-attr]
    assert {"a": value} == yaml.safe_load(text)


def test_several_scalars_change_at_once() -> None:
    text = "a: {tag: 1.2.3, digest: 'x'} # c\nb: 4.5.6\n"

    made = Splicer(text).splice({(2, 4): "4.5.7", (1, 25): "y", (1, 10): "1.3"})

    assert made == "a: {tag: \"1.3\", digest: 'y'} # c\nb: 4.5.7\n"


@pytest.mark.parametrize(
    ("text", "place", "anchor"),
    [
        ("a: &x v\nb: *x\n", (1, 4), Anchor("x", (2, 4))),
        ("a: &x\n  b: v\nc:\n  <<: *x\n", (2, 6), Anchor("x", (4, 7))),
        ("a: &x [&y {b: v}]\nc: *x\n", (1, 15), Anchor("x", (2, 4))),
        ("a: &x [&y {b: v}]\nc: *y\n", (1, 15), Anchor("y", (2, 4))),
        ("a: &x v\nb: &x w\nc: *x\n", (2, 4), Anchor("x", (3, 4))),
        ("a: &x v\nb: &x w\nc: *x\n", (1, 4), None),
        ("a: &x v\nb: w\n", (1, 4), None),
        ("a: &x v\nb: w\nc: *x\n", (2, 4), None),
        ("a: &x {b: 1}\nc: v\nd: *x\n", (2, 4), None),
        ("a: &x v\n---\na: &x v\nb: *x\n", (1, 4), None),
    ],
)
def test_anchor_counts_when_its_value_is_used_elsewhere(text: str, place: tuple[int, int], anchor: Anchor) -> None:
    assert anchor == Splicer(text).anchor_of(place)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("a: b\n", (1, 3)),
        ("a: [b]\n", (1, 4)),
        ("a: |\n  b\n  b\n", (1, 4)),
        ("{a, b: c}", (1, 3)),
        ("a: &x # c\r  b\n", (1, 4)),
    ],
)
def test_what_cannot_be_changed_alone_is_refused(text: str, place: tuple[int, int]) -> None:
    with pytest.raises(SpliceError):
        Splicer(text).splice({place: "1\n2: {"})


BLANKS = st.sampled_from(["", " ", "  "])
BREAKS = st.sampled_from(["\n", "\n\n", "\n  \n", "\r\n", "\n# é: 'b\n", "\r\n#\r\n"])
COMMENTS = st.sampled_from(["", " # a: b", "  #", "\t# 😀"])
WORDS = st.text(string.ascii_letters + string.digits + "._:/@-", min_size=1, max_size=12)


@st.composite
def lines(draw: st.DrawFn) -> tuple[str, list[tuple[int, int]], list[str]]:
    """A block mapping in any layout, with the places and the texts of its values."""
    text, places, values = "", [], []
    for number in range(draw(st.integers(1, 6))):
        value = draw(WORDS.filter(lambda word: word[0].isalnum() and word[-1] != ":"))
        spelled = draw(st.sampled_from([value, f"'{value}'", f'"{value}"', f"&a{number} {value}", f"!!str '{value}'"]))
        text += f"key{number}: {draw(BLANKS)}"
        row = text.replace("\r\n", "\n").split("\n")
        places.append((len(row), len(row[-1]) + 1))
        values.append(value)
        text += spelled + draw(COMMENTS) + draw(BREAKS)
    return text, places, values


@examples(200)
@given(lines(), st.data())
def test_result_is_the_text_with_its_values_in_place(
    made: tuple[str, list[tuple[int, int]], list[str]], data: st.DataObject
) -> None:
    text, places, values = made
    new = {place: data.draw(WORDS) for place in places if data.draw(st.booleans())}

    after = Splicer(text).splice(new)

    expected = [new.get(place, value) for place, value in zip(places, values, strict=True)]
    assert expected == list(yaml.load(after, yaml.CBaseLoader).values())
    assert [one.partition(" #")[2] for one in text.split("\n")] == [one.partition(" #")[2] for one in after.split("\n")]
    assert text == Splicer(after).splice({}) if not new else True
    rows, changed = text.split("\n"), after.split("\n")
    assert len(rows) == len(changed)
    touched = {line - 1 for line, _ in new}
    assert [row for i, row in enumerate(rows) if i not in touched] == [
        row for i, row in enumerate(changed) if i not in touched
    ]
