from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from render.plan.paths import Path, PathError, check_writable, find, parse, put, replace, show
from render.yaml.source import Mapping, Node, Scalar, Sequence, Source
from render.yaml.source import parse as parse_yaml
from tests.hostile import texts


def tree(text: str) -> Node:
    documents, faults = parse_yaml(Source("f.yaml", text))
    assert faults == []
    return documents[0].root


def data(node: Any) -> Any:
    if isinstance(node, Scalar):
        return node.text
    if isinstance(node, Mapping):
        return {key.text: data(value) for key, value in node.entries}
    return [data(item) for item in node.items] if isinstance(node, Sequence) else node


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("image", ("image",)),
        ("controllers.app.containers.main.image", ("controllers", "app", "containers", "main", "image")),
        ("a[0].b", ("a", 0, "b")),
        ("a[10][2]", ("a", 10, 2)),
        ("containers[name=app].image", ("containers", (("name", "app"),), "image")),
        (
            "extraObjects[kind=Cluster,name=pg].spec",
            ("extraObjects", (("kind", "Cluster"), ("name", "pg")), "spec"),
        ),
        ("a[name=x y.z/w:1]", ("a", (("name", "x y.z/w:1"),))),
        ("a[name=]", ("a", (("name", ""),))),
        ('"a.b".c', ("a.b", "c")),
        ("a.'b.c'[1]", ("a", "b.c", 1)),
        ('a."say \\"x\\" \\\\"', ("a", 'say "x" \\')),
        ("a-b/c_d@e:f", ("a-b/c_d@e:f",)),
        ("{service}.image", ("{service}", "image")),
    ],
)
def test_a_path_is_read(text: str, path: Path) -> None:
    assert path == parse(text)


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("", 0),
        (".a", 0),
        ("a..b", 1),
        ("a.", 1),
        ("a b", 1),
        ("a[", 1),
        ("a[]", 1),
        ("a[-1]", 1),
        ("a[x]", 1),
        ("a[0", 1),
        ("a[0]b", 4),
        ('a"b"', 1),
        ('"a', 0),
        ("'a", 0),
        ("a]b", 1),
        ("a[name=b", 1),
        ("a.[0", 1),
    ],
)
def test_what_is_no_path_is_placed(text: str, position: int) -> None:
    with pytest.raises(PathError) as caught:
        parse(text)

    assert position == caught.value.position


steps = (
    texts()
    | st.integers(0, 99)
    | st.lists(
        st.tuples(st.from_regex(r"[a-z]{1,4}", fullmatch=True), st.from_regex(r"[a-z0-9./:-]{0,5}", fullmatch=True)),
        min_size=1,
        max_size=2,
    ).map(tuple)
)


@given(texts(), st.lists(steps, max_size=4))
def test_a_path_is_shown_as_it_is_read(first: str, rest: list[Any]) -> None:
    path = (first, *rest)

    assert path == parse(show(path))


@given(st.text("ab.[]=\"'\\0 ,{}-", max_size=12))
def test_any_text_is_a_path_or_a_fault_inside_it(text: str) -> None:
    try:
        path = parse(text)
    except PathError as error:
        position = error.position
    else:
        assert path == parse(show(path))
        position = 0
    assert 0 <= position <= len(text)


VALUES = """
image: {repository: r, tag: t}
containers:
- name: app
  image: x
- metadata: {name: side, namespace: n}
  image: y
- plain
lists: [[1, 2], [3]]
"a.b": {c: d}
empty:
"""


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("image.tag", "t"),
        ("image", {"repository": "r", "tag": "t"}),
        ("containers[0].image", "x"),
        ("containers[name=app].image", "x"),
        ("containers[name=side].image", "y"),
        ("containers[name=side,namespace=n].image", "y"),
        ("containers[name=side,image=z].image", None),
        ("containers[3]", None),
        ("containers[name=none]", None),
        ("containers.app", None),
        ("lists[0][1]", "2"),
        ("lists[0].x", None),
        ('"a.b".c', "d"),
        ("a.b.c", None),
        ("image.tag.x", None),
        ("empty.x", None),
        ("image[0]", None),
    ],
)
def test_a_path_finds_what_stands_there(path: str, expected: Any) -> None:
    assert expected == data(find(tree(VALUES), parse(path)))


@pytest.mark.parametrize(
    "path", ["image.tag", "containers[0].image", "lists[1][0]", '"a.b".c', "new.way.down", "empty.x"]
)
def test_what_is_put_is_found_and_nothing_else_changes(path: str) -> None:
    before = tree(VALUES)
    value = Scalar("new")
    made = put(before, parse(path), value)

    assert value is find(made, parse(path))
    assert data(before) == data(tree(VALUES))
    assert list(data(before))[: len(data(before))] == list(data(made))[: len(data(before))]
    assert isinstance(before, Mapping)
    first = parse(path)[0]
    others = [key.text for key, _ in before.entries if key.text != first]
    assert all(find(made, (key,)) is find(before, (key,)) for key in others)


def test_missing_keys_are_appended() -> None:
    assert data(put(tree("a: 1\n"), parse("b.c"), Scalar("new"))) == {"a": "1", "b": {"c": "new"}}
    assert data(put(None, parse("b.c"), Scalar("new"))) == {"b": {"c": "new"}}


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("image.tag.x", "`image.tag` is a plain value, so `image.tag.x` cannot stand below it"),
        ("lists.x", "`lists` is a list, so `lists.x` cannot stand below it"),
        ("image[0]", "`image` is no list, so `image[0]` selects nothing"),
        ("lists[7]", "`lists[7]` selects nothing: the list has 2 items"),
        ("containers[name=no]", "`containers[name=no]` selects nothing: the list has `name=app`"),
        ("empty[0]", "there is no list at `empty` to select from"),
        ("nothing[name=x]", "there is no list at `nothing` to select from"),
    ],
)
def test_what_stands_in_the_way_is_told(path: str, message: str) -> None:
    with pytest.raises(PathError) as caught:
        put(tree(VALUES), parse(path), Scalar("new"))

    assert message == str(caught.value)


@pytest.mark.parametrize(
    ("key", "style"), [("tag", ""), ("a.b", ""), ("yes", '"'), ("null", '"'), ("a b", '"'), ("1", '"')]
)
def test_a_new_key_is_plain_only_where_every_reader_takes_it_for_a_string(key: str, style: str) -> None:
    made = put(None, (key,), Scalar("v"))

    assert isinstance(made, Mapping)
    assert (key, style) == (made.entries[0][0].text, made.entries[0][0].style)


def test_a_node_is_replaced_wherever_it_is_aliased_to() -> None:
    before = tree("a: &x {k: 1}\nb: [*x, {k: 1}]\nc: {d: *x}\ne: 1\n")
    assert isinstance(before, Mapping)
    node = before.get("a")
    made = replace(before, {id(node): Scalar("new")})

    assert data(made) == {"a": "new", "b": ["new", {"k": "1"}], "c": {"d": "new"}, "e": "1"}
    assert before is replace(before, {})


@pytest.mark.parametrize(
    "path", [("a",) * 50, ("a", 0, (("name", "x"),), "b"), ("x" * 128,), ("ä" * 64,), ('"a b".c',), ("a:b#c",)]
)
def test_a_path_may_be_written_along(path: Path) -> None:
    check_writable(path)


@pytest.mark.parametrize("path", [("a",) * 51, ("x" * 129,), ("ä" * 65,), ("a", "b\nc"), ("a\x85",), ("a\u2028b", 0)])
def test_a_path_whose_keys_would_take_another_form_is_not_written_along(path: Path) -> None:
    with pytest.raises(PathError) as caught:
        check_writable(path)

    assert caught.value.hint


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("a.[0]", "write `a[0]`"),
        ("a.[0].[name=b].c", "write `a[0][name=b].c`"),
        ("a..b", "write keys with dots between, quoted if they hold dots"),
        ("", "write the key, such as `image`"),
    ],
)
def test_text_that_is_no_path_has_a_hint(text: str, hint: str) -> None:
    with pytest.raises(PathError) as caught:
        parse(text)

    assert hint == caught.value.hint
