from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from render.yaml.scalar import double_quoted, quote
from tests.bot import NotModelled, rewrite, wide

POLICIES = [
    {"namespace": "flux-system", "name": "app", "image": "ghcr.io/o/app", "tag": "2.0", "digest": "sha256:" + "a" * 64},
    {"namespace": "flux-system", "name": "bare", "image": "redis", "tag": "7.2.5"},
    {"namespace": "flux-system", "name": "unscanned"},
]


def marked(value: str, setter: str) -> str:
    return f'{value} # {{"$imagepolicy": "{setter}"}}'


def mark(value: str, setter: str = "flux-system:bare:tag") -> str:
    return f"image: {marked(value, setter)}\n"


@pytest.mark.parametrize(
    ("setter", "new"),
    [
        ("flux-system:app", "ghcr.io/o/app:2.0@sha256:" + "a" * 64),
        ("flux-system:app:tag", "2.0"),
        ("flux-system:app:name", "ghcr.io/o/app"),
        ("flux-system:app:digest", "sha256:" + "a" * 64),
        ("flux-system:bare", "redis:7.2.5"),
        ("flux-system:bare:digest", ""),
    ],
)
def test_each_suffix_sets_its_part(setter: str, new: str) -> None:
    assert mark(f'"{new}"', setter) == rewrite(mark('"old"', setter), POLICIES)


@pytest.mark.parametrize(
    "text",
    [
        mark('"old"', "flux-system:unscanned"),
        mark('"old"', "flux-system:other"),
        mark('"old"', "other:app"),
        mark('"old"', "flux-system:bare:Tag"),
        mark('"7.2.5"'),
        '# {"$imagepolicy": "flux-system:bare:tag"}\nimage: old\n',
        'image: # {"$imagepolicy": "flux-system:bare:tag"}\n  a: b\n',
        'image: [old] # {"$imagepolicy": "flux-system:bare:tag"}\n',
        'text: |\n  image: old # {"$imagepolicy": "flux-system:bare:tag"}\n',
        "image: old # {'$imagepolicy': 'flux-system:bare:tag'}\n",
        'image: old # x {"$imagepolicy": "flux-system:bare:tag"}\n',
        '- old # {"$imagepolicy": "flux-system:bare:tag"}\n',
        mark('"old"') + "metadata:\n  annotations:\n    config.kubernetes.io/path: other.yaml\n",
        'kind: List\nitems:\n- a: "old" # {"$imagepolicy": "flux-system:bare:tag"}\n',
        "%YAML 1.2\n---\n" + mark('"old"'),
        "{a: b}\n" + mark('"old"'),
        'a: # {"$imagepolicy": "flux-system:bare:tag"}\n- b\n',
        mark('"old"') + "--- x\na: b\n",
        mark('"old"') + "a: b: c\n",
        mark('"old"') + "metadata: x\n",
        "image: old\n",
        "",
    ],
)
def test_the_bot_leaves_the_file_alone(text: str) -> None:
    assert rewrite(text, POLICIES) is None


@pytest.mark.parametrize(
    ("old", "setter", "new"),
    [
        ("old", "flux-system:app:tag", '"2.0"'),
        ("old", "flux-system:bare:tag", "7.2.5"),
        ("'old'", "flux-system:app:tag", "'2.0'"),
        ("1", "flux-system:bare:tag", "!!int 7.2.5"),
        ("1", "flux-system:app:tag", '"2.0"'),
        ("~", "flux-system:app:tag", "!!null 2.0"),
        ("yes", "flux-system:bare:tag", "7.2.5"),
        ("old", "flux-system:bare:digest", '""'),
    ],
)
def test_the_new_value_keeps_or_loses_its_quotes(old: str, setter: str, new: str) -> None:
    assert mark(new, setter) == rewrite(mark(old, setter), POLICIES)


def test_a_marker_above_a_list_item_sets_it() -> None:
    text = 'a:\n# {"$imagepolicy": "flux-system:bare"}\n- "old"\n'
    assert text.replace("old", "redis:7.2.5") == rewrite(text, POLICIES)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a: b\r\nc: d\r\n", "a: b\nc: d\n"),
        ("a: b\n\n\nc: d\n\n", "a: b\nc: d\n"),
        ("a:   b   # c\n", "a: b # c\n"),
        ("a:\n    b:\n        c: d\n", "a:\n  b:\n    c: d\n"),
        ("a:\n-   b: c\n    d: e\n", "a:\n- b: c\n  d: e\n"),
        ("a:\n  - b\nc:\n- d\n", "a:\n  - b\nc:\n  - d\n"),
        ("a:\n- b\nc:\n  - d\n", "a:\n- b\nc:\n- d\n"),
        ("t: |\n  k:\n    - x\na:\n- b\n", "t: |\n  k:\n    - x\na:\n  - b\n"),
        ("t: |\n  k:\n\n    - x\na:\n- b\n", "t: |\n  k:\n\n    - x\na:\n- b\n"),
        ("a: b\n  c\n", "a: b c\n"),
        ('a: "b\n\n  c"\n', 'a: "b\\nc"\n'),
        ('a: "\\xe9\\x07"\n', 'a: "é\\a"\n'),
        ("a: \U0001f600\n", 'a: "\\U0001F600"\n'),
        ("a: |\n  \U0001f600\n", 'a: "\\U0001F600\\n"\n'),
        ("a: |\n  x  \n  y\n", 'a: "x  \\ny\\n"\n'),
        ("a: |\n    x\n      y\n", "a: |\n  x\n    y\n"),
        ("a: |\n\n  x\n", "a: |2\n\n  x\n"),
        ("a: |-\n  x\n\n\n", "a: |-\n  x\n"),
        ("a: 'it''s \tx'\n", 'a: "it\'s \\tx"\n'),
        ("a: ---x\n", "a: '---x'\n"),
        ("a: [ b,c ]\nd: {e: f}\n", "a: [b, c]\nd: {e: f}\n"),
        ("? a\n: b\n", "a: b\n"),
        ("k" * 129 + ": b\n", "? " + "k" * 129 + "\n: b\n"),
        ("é" * 65 + ": b\n", "? " + "é" * 65 + "\n: b\n"),
        ('"a\\rb": c\n', '? "a\\rb"\n: c\n'),
        ("a:\n# c\n  b: d\n", "a:\n  # c\n  b: d\n"),
        ("a: b\n\n# foot\n", "a: b\n\n# foot\n"),
        ("a:\n  - b\n  # f\nc: d\n", "a:\n  - b\n  # f\nc: d\n"),
        ("a: b\n---\n---\n# only\n---\nc: d\n", "a: b\n---\nc: d\n"),
        ("a: b\n...\n", "a: b\n"),
        ("a:\n-\n  b: c\n  d: e\n-\n  - f\n", "a:\n- b: c\n  d: e\n- - f\n"),
        ("a:\n-\n  b\nc: d\n", "a:\n- b\nc: d\n"),
        ("a: |+\n  b\n\n", "a: |+\n  b\n\n"),
        ("metadata: {}\na: b\n", "a: b\n"),
        ("metadata:\n  annotations:\n  name: x\n", "metadata:\n  name: x\n"),
        ("metadata:\n  annotations: {}\n", ""),
        ('metadata:\n  name: x\n  annotations:\n    config.kubernetes.io/index: "5"\n', "metadata:\n  name: x\n"),
        (
            'metadata:\n  annotations:\n    config.kubernetes.io/path: file.yaml\n    a: "1"\n',
            'metadata:\n  annotations:\n    a: "1"\n',
        ),
    ],
)
def test_the_rest_of_the_file_is_serialised_anew(before: str, after: str) -> None:
    assert mark('"7.2.5"') + after == rewrite(mark('"old"') + before, POLICIES)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("---\n{}", "{}"),
        ("# top\n---\n{}", "{}"),
        ("\ufeff{}", "{}"),
        ("\n\n{}", "{}"),
        ("# h\n{}", "# h\n{}"),
        ("# h\n\n{}", "# h\n\n{}"),
    ],
)
def test_first_lines(before: str, after: str) -> None:
    assert after.format(mark('"7.2.5"')) == rewrite(before.format(mark('"old"')), POLICIES)


@pytest.mark.parametrize(
    "text",
    [
        "a: &x b\nc: *x\n",
        "a: >\n  b\n",
        "a: [b, # c\n  d]\n",
        "a: b\n# c\n\nd: e\n",
        "a:\n-\n  # c\n  b: c\n",
        'metadata:\n  annotations:\n    config.k8s.io/id: "1"\n',
        "a: b\x85\n",
        "a: <<\n",
        "a: |+\n  b\n\n---\nc: d\n",
        "a: |+\n  b\n\n# foot\n",
    ],
)
def test_the_model_declines_what_it_does_not_know(text: str) -> None:
    with pytest.raises(NotModelled):
        rewrite(mark('"old"') + text, POLICIES)


# What a careful generator writes, and the same text after a bot's commit.

_WORDS = st.sampled_from(
    [
        "a",
        "y",
        "1.20",
        "",
        "~",
        "a b",
        "é漢",
        "---x",
        "\U0001f600",
        "x\ty",
        "k:",
        "- x",
        "#c",
        "\x7f",
        "'",
        '"',
        "https://a",
    ]
)
_STRINGS = _WORDS | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x85\u2028\u2029\ufeff"))
_LINE = st.sampled_from(["k:", "- x", "  - x", "", "# c", "a: b", "x\ty", "---", "é"])
_TREES = st.recursive(
    _STRINGS | st.lists(_LINE, min_size=2, max_size=5).map("\n".join) | st.integers() | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_WORDS, inner, max_size=3),
    max_leaves=12,
)


def is_literal(text: str) -> bool:
    return (
        "\n" in text
        and text[0] not in " \t\n"
        and not text.endswith(("\n\n", " "))
        and " \n" not in text
        and all(character in "\t\n" or " " <= character <= "~" or "\xa0" <= character <= "\ufffd" for character in text)
    )


def leaf(value: Any, indent: int) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if not isinstance(value, str):
        return "{}" if value == {} else "[]" if value == [] else str(value)
    if not is_literal(value):
        return quote(value)
    lines = value.removesuffix("\n").split("\n")
    return "\n".join(["|" if value.endswith("\n") else "|-", *(" " * indent + line if line else "" for line in lines)])


def tree_lines(value: Any, indent: int, step: int) -> str:
    """The entries or items of a collection, each from its line break on."""
    margin = "\n" + " " * indent
    text = ""
    for key, inner in value.items() if isinstance(value, dict) else ((None, item) for item in value):
        start = margin + ("-" if key is None else quote(key) + ":")
        if not isinstance(inner, dict | list) or not inner:
            text += f"{start} {leaf(inner, indent + 2)}"
        elif key is None:
            text += f"{start} {tree_lines(inner, indent + 2, step).lstrip()}"
        else:
            text += start + tree_lines(inner, indent + (2 if isinstance(inner, dict) else step), step)
    return text


def document(tree: dict[str, Any], tag: str, step: int) -> str:
    return f"# generated{tree_lines(tree, 0, step)}\n{mark(double_quoted(tag))}"


@given(st.dictionaries(_WORDS.filter(lambda key: key not in ("kind", "metadata")), _TREES, max_size=4), st.booleans())
def test_what_a_careful_generator_writes_changes_by_one_line(tree: dict[str, Any], second: bool) -> None:
    step = 0
    if wide(document(tree, "old", 0)):
        step = 2
        if not wide(document(tree, "old", 2)):
            return
    before, after = (document(tree, tag, step) for tag in ("old", "7.2.5"))
    assert {**tree, "image": "old"} == yaml.safe_load(before)
    if second:
        before, after = (f"{text}---\n{text}" for text in (before, after))
    assert after == rewrite(before, POLICIES)
