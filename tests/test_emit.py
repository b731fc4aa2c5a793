from __future__ import annotations

import hashlib
import random
import re
from typing import Any

import pytest
import yaml
from hypothesis import assume, event, example, given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from render.build import digest_of, with_header
from render.yaml import scalar
from render.yaml.emit import Commented, Emitter, Marked, derives_wide, is_literal
from render.yaml.source import Mapping, Node, Scalar, Sequence
from tests.bot import NotModelled, rewrite, wide
from tests.hostile import TELLING, keys, texts

MARK = "flux-system:app"
POLICY = {
    "namespace": "flux-system",
    "name": "app",
    "image": "registry.example/new/name",
    "tag": "9.9.9-new",
    "digest": "sha256:" + "d" * 64,
}
WRITTEN = {
    f"{MARK}": f"{POLICY['image']}:{POLICY['tag']}@{POLICY['digest']}",
    f"{MARK}:tag": POLICY["tag"],
    f"{MARK}:name": POLICY["image"],
    f"{MARK}:digest": POLICY["digest"],
}


def emit(tree: Any) -> str:
    """Write a mapping as a document, in the style that kyaml would derive from it."""
    text = Emitter().fields("", tree)
    return Emitter(wide=True).fields("", tree) if derives_wide(text) else text


@st.composite
def values(draw: st.DrawFn, depth: int = 3) -> Any:
    kind = draw(st.integers(0, 9 if depth else 5))
    if kind >= 8:
        return draw(st.lists(values(depth - 1), max_size=3))
    if kind >= 6:
        return draw(trees(depth - 1, 0))
    if kind >= 3:
        return draw(texts())
    if kind == 2:
        return Marked(draw(texts()), draw(st.sampled_from(sorted(WRITTEN))))
    return draw(st.booleans()) if kind else draw(st.integers(-(2**63), 2**63))


@st.composite
def trees(draw: st.DrawFn, depth: int = 3, least: int = 1) -> dict[str, Any]:
    """A mapping of ours: texts, numbers, booleans, marked scalars, lists and mappings."""
    return {draw(keys()): draw(values(depth)) for _ in range(draw(st.integers(least, 3)))}


def as_source(value: Any, rng: random.Random) -> Any:
    """The same tree as nodes of a source, each scalar in a style at random that can hold it."""
    if isinstance(value, dict):
        return Mapping([(as_source(key, rng), as_source(inner, rng)) for key, inner in value.items()])
    if isinstance(value, list):
        return Sequence([as_source(item, rng) for item in value])
    if isinstance(value, Marked):
        return value
    if isinstance(value, bool | int):
        return Scalar(str(value).lower(), "")
    return Scalar(value, rng.choice("'\"|>" if value == "<<" or not scalar.is_plain(value) else ["", "", "'"]))


source_trees = st.builds(as_source, trees(), st.integers(0, 99).map(random.Random))


def plain_data(value: Any) -> Any:
    if isinstance(value, Marked):
        return value.text
    if isinstance(value, dict):
        return {key: plain_data(inner) for key, inner in value.items()}
    return [plain_data(item) for item in value] if isinstance(value, list) else value


def composed(node: yaml.Node) -> Any:
    """What libyaml composes, without PyYAML's resolution: plain scalars in angle brackets."""
    if isinstance(node, yaml.ScalarNode):
        return node.value if node.style else f"<{node.value}>"
    if isinstance(node, yaml.SequenceNode):
        return [composed(item) for item in node.value]
    assert isinstance(node, yaml.MappingNode)
    return [(composed(key), composed(value)) for key, value in node.value]


def expected(value: Any) -> Any:
    """What must be composed of a value of ours: quoted, or plain where every reader agrees on the string."""
    if isinstance(value, dict):
        return [(expected(key), expected(inner)) for key, inner in value.items()]
    if isinstance(value, list):
        return [expected(item) for item in value]
    if isinstance(value, bool):
        return "<true>" if value else "<false>"
    if isinstance(value, int):
        return f"<{value}>"
    text = value.text if isinstance(value, Marked) else value
    is_plain = isinstance(value, str) and scalar.quote(text) == text
    assert not is_plain or scalar.is_plain_string(text)
    return f"<{text}>" if is_plain else text


@given(trees())
def test_libyaml_reads_back_the_texts_and_their_quoting(tree: dict[str, Any]) -> None:
    assert expected(tree) == composed(yaml.compose(emit(tree), yaml.CSafeLoader))


@given(trees())
def test_ruamel_reads_back_the_tree(tree: dict[str, Any]) -> None:
    assert plain_data(tree) == YAML(typ="safe", pure=True).load(emit(tree))


@given(trees())
def test_the_text_has_no_blank_lines_trailing_blanks_or_odd_breaks(tree: dict[str, Any]) -> None:
    text = emit(tree)
    blocks = any(is_literal(leaf) for leaf in leaves(tree))

    assert text.endswith("\n")
    assert not text.endswith("\n\n")
    assert re.search(r"[ \t]\n|[\r\x85\u2028\u2029\x7f]", text) is None
    assert blocks or "\n\n" not in text


def leaves(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [leaf for inner in value.values() for leaf in leaves(inner)]
    if isinstance(value, list):
        return [leaf for inner in value for leaf in leaves(inner)]
    return [value] if isinstance(value, str) else []


def markers(text: str) -> dict[int, str]:
    """The setter of each marked line."""
    found = re.compile(r' # \{"\$imagepolicy": "(flux-system:app(?::[a-z]+)?)"\}$')
    matches = ((i, found.search(line)) for i, line in enumerate(text.split("\n")))
    return {i: match[1] for i, match in matches if match}


def assert_survives_the_bot(body: str) -> None:
    """The bot changes the marked scalars, and neither another byte nor the header's digest."""
    text = with_header("catalog/x.yaml", body)
    try:
        after = rewrite(text, [POLICY])
    except NotModelled as reason:
        event(f"not modelled: {reason}")
        assume(False)
    marked = markers(text)
    assert after is not None
    before, lines = text.split("\n"), after.split("\n")
    assert len(before) == len(lines)
    for i, (old, new) in enumerate(zip(before, lines, strict=True)):
        if i in marked:
            value = f'"{WRITTEN[marked[i]]}" # {{"$imagepolicy": "{marked[i]}"}}'
            assert new.endswith(value)
            assert new.removesuffix(value) == old[: len(new) - len(value)]
        else:
            assert old == new
    assert digest_of(body) == digest_of(after.split("\n", 1)[1])


@given(trees())
@example({"a": "x:\n  - y\n", "b": ["1", {"c": ["2"]}]})
@example({"a": {"b": ["x"]}, "c": {"": ["- "]}})
@example({"'\"": Marked('"', MARK)})
def test_what_is_written_is_a_fixed_point_of_the_bot(tree: dict[str, Any]) -> None:
    marked = {**tree, "zz": Marked("1.0", f"{MARK}:tag")}
    assume(has_a_style(marked))
    assert_survives_the_bot(emit(marked))


def has_a_style(tree: Any) -> bool:
    """Whether kyaml settles on a style: it does not where a list of mappings with lists is under an odd key."""
    return not wide(Emitter().fields("", tree)) or wide(Emitter(wide=True).fields("", tree))


@given(trees())
def test_the_wide_style_is_that_which_kyaml_derives(tree: dict[str, Any]) -> None:
    compact, spread = Emitter().fields("", tree), Emitter(wide=True).fields("", tree)

    assert wide(compact) == derives_wide(compact)
    # The choice is stable: the style that is written is the one that is derived from it, if there is such a style.
    assert emit(tree) == (spread if wide(compact) else compact)
    assert wide(emit(tree)) == wide(compact) or not has_a_style(tree)


def assert_carried(node: Any, found: yaml.Node) -> None:
    """The same texts in the same quoting class, or quoted where both readers took the plain text for that string."""
    if isinstance(node, Sequence):
        assert isinstance(found, yaml.SequenceNode)
        assert len(node.items) == len(found.value)
        for item, one in zip(node.items, found.value, strict=True):
            assert_carried(item, one)
    elif isinstance(node, Mapping):
        assert isinstance(found, yaml.MappingNode)
        assert len(node.entries) == len(found.value)
        for (key, value), (found_key, found_value) in zip(node.entries, found.value, strict=True):
            assert_carried(key, found_key)
            assert_carried(value, found_value)
    else:
        assert isinstance(found, yaml.ScalarNode)
        assert (node.text or "null" if is_null(node) else node.text) == found.value
        if isinstance(node, Scalar) and not node.style:
            string = scalar.sigs(node.text).kind == "string" and scalar.kyaml(node.text).kind in ("string", "other")
            assert not found.style or string
        else:
            assert found.style


def is_null(node: Any) -> bool:
    return isinstance(node, Scalar) and node.is_null


@given(source_trees)
def test_source_nodes_keep_their_text_and_quoting_class(tree: Mapping) -> None:
    assert_carried(tree, yaml.compose(emit(tree), yaml.CSafeLoader))


@given(source_trees)
def test_source_nodes_are_a_fixed_point_of_the_bot(tree: Mapping) -> None:
    marked: tuple[Scalar, Any] = (Scalar("zz", ""), Marked("1.0", f"{MARK}:tag"))
    kept: list[tuple[Scalar, Node]] = [entry for entry in tree.entries if entry[0].text != "zz"]

    whole = Mapping([*kept, marked])
    assume(has_a_style(whole))
    assert_survives_the_bot(emit(whole))


@pytest.mark.parametrize(
    ("tree", "text"),
    [
        ({"a": {}, "b": [], "c": {"d": None}}, "a: {}\nb: []\nc: {}\n"),
        ({"a": None, "b": {"c": None, "d": 1}}, "b:\n  d: 1\n"),
        ({"a": [{}, [], [[]], {"b": None}]}, "a:\n- {}\n- []\n- - []\n- {}\n"),
        ({"a": [[1, [2]], {"b": [3], "c": 4}]}, "a:\n- - 1\n  - - 2\n- b:\n  - 3\n  c: 4\n"),
        (
            {"a": "x\ny\n", "b": ["x\ny", {"c": "p\n q"}]},
            "a: |\n  x\n  y\nb:\n- |-\n  x\n  y\n- c: |-\n    p\n     q\n",
        ),
        ({"a": True, "b": False, "c": -1, "d": "true", "e": "-1"}, 'a: true\nb: false\nc: -1\nd: "true"\ne: "-1"\n'),
        ({"a": Marked("x"), "b": [Marked("", "n:p:digest")]}, 'a: "x"\nb:\n- "" # {"$imagepolicy": "n:p:digest"}\n'),
        ({"a": [1, Commented("why", {"b": 2})]}, "a:\n- 1\n# why\n- b: 2\n"),
        ({"yes": 1, "a b": 2, "": 3}, '"yes": 1\n"a b": 2\n"": 3\n'),
        ({"a": "v:\n  - x\n", "b": [1]}, "a: |\n  v:\n    - x\nb:\n  - 1\n"),
        ({"a": "v:\n- x\n", "b": [1]}, "a: |\n  v:\n  - x\nb:\n- 1\n"),
        ({"a": [1], "b": "v:\n  - x\n"}, "a:\n- 1\nb: |\n  v:\n    - x\n"),
    ],
)
def test_the_layout(tree: dict[str, Any], text: str) -> None:
    assert text == emit(tree)


def test_entries_stand_at_their_indentation() -> None:
    emitter = Emitter(wide=True)

    assert emitter.entry("    ", "a", ["x"]) == "    a:\n      - x\n"
    assert emitter.fields("  ", {"a": 1, "b": [{"c": "x\ny"}]}) == "  a: 1\n  b:\n    - c: |-\n        x\n        y\n"


def test_nothing_is_written_for_none() -> None:
    assert (Emitter().entry("", "a", None), Emitter().fields("", None), Emitter().fields("", {})) == ("", "", "")


@pytest.mark.parametrize("value", [1.5, b"x", object(), {1, 2}])
def test_what_is_no_value_of_yaml_is_refused(value: Any) -> None:
    with pytest.raises(TypeError, match="cannot write a"):
        Emitter().entry("", "a", value)


def test_only_a_mapping_stands_alone() -> None:
    with pytest.raises(TypeError, match="only a mapping"):
        Emitter().fields("", ["a"])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("a\nb", True),
        ("a\nb\n", True),
        ("a\n\nb\n", True),
        ("a\n\tb\n", True),
        ("é\n日\n", True),
        ("a", False),
        ("a\n\n", False),
        (" a\nb", False),
        ("\na", False),
        ("a \nb", False),
        ("a\nb\t", False),
        ("a\n😀\n", False),
        ("a\r\nb", False),
        ("a\n\x85", False),
    ],
)
def test_a_literal_block_is_one_that_kyaml_keeps(text: str, kept: bool) -> None:
    assert kept == is_literal(text)


@pytest.mark.parametrize("text", [text for text in TELLING if "\n" in text])
def test_only_what_kyaml_keeps_is_written_as_a_literal_block(text: str) -> None:
    assert ("a: |" in emit({"a": text})) == is_literal(text)
    assert_survives_the_bot(emit({"a": text, "zz": Marked("1.0", f"{MARK}:tag")}))


MARKED = re.compile(r'"(?:[^"\\\n]|\\.)*"(?= # \{"\$imagepolicy": )')
MARKED_LINES = st.lists(
    st.sampled_from(
        [
            '"',
            "\\",
            "a",
            "key: ",
            "\n",
            '"1.2.3"',
            "'",
            " ",
            ' # {"$imagepolicy": ',
            '"ns:web:tag"}\n',
            "#",
            '""',
            '\\"',
        ]
    ),
    max_size=14,
).map("".join)


@given(MARKED_LINES)
def test_digest_leaves_out_what_stands_in_quotes_before_a_marker(body: str) -> None:
    left = MARKED.sub('""', body)

    assert digest_of(body) == hashlib.sha256(left.encode()).hexdigest()[:16]
