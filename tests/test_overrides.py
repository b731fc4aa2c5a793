from __future__ import annotations

import time

import pytest
import re2
from hypothesis import given
from hypothesis import strategies as st

from render.flux.image import Reference
from render.flux.overrides import (
    Again,
    Chain,
    Entry,
    Hit,
    Outcome,
    OverrideFailure,
    Step,
    Table,
    accidental_matches,
    apply,
    chains,
    rewrites_again,
    spelling_variants,
    split,
)

HEX = "0123456789abcdef" * 4
SHA256 = f"sha256:{HEX}"


def entry(name: str, **fields: str) -> Entry:
    return Entry.of({"name": name, **fields})


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a", ("a", "", "")),
        ("reg:5000/a:1", ("reg:5000/a", "1", "")),
        ("localhost:5000", ("localhost", "5000", "")),
        ("/x:1", ("/x", "1", "")),
        ("a:1/b:2", ("a:1/b", "2", "")),
        ("a:b:c", ("a", "b:c", "")),
        ("a@b:c", ("a", "", "b:c")),
        (f"a:1@{SHA256}", ("a", "1", SHA256)),
        ("a:@", ("a", "", "")),
        ("", ("", "", "")),
    ],
)
def test_references_are_split_by_position(text: str, parts: tuple[str, str, str]) -> None:
    assert parts == split(text)


@pytest.mark.parametrize(
    ("fields", "bare", "tagged", "full"),
    [
        ({}, "a", "a:1", "a:1@sha256:x"),
        ({"newTag": "9"}, "a:9", "a:9", "a:9"),
        ({"digest": "sha256:y"}, "a@sha256:y", "a@sha256:y", "a@sha256:y"),
        ({"newTag": "9", "digest": "sha256:y"}, "a:9@sha256:y", "a:9@sha256:y", "a:9@sha256:y"),
        ({"newName": "m"}, "m", "m:1", "m:1@sha256:x"),
        ({"newName": "m", "newTag": "9"}, "m:9", "m:9", "m:9"),
        ({"newName": "", "newTag": "", "digest": ""}, "a", "a:1", "a:1@sha256:x"),
        ({"newName": "$1"}, "$1", "$1:1", "$1:1@sha256:x"),
    ],
)
def test_fields_of_an_entry_rewrite_their_parts(fields: dict[str, str], bare: str, tagged: str, full: str) -> None:
    table = [entry("a", **fields)]
    assert bare == apply(table, "a").text
    assert tagged == apply(table, "a:1").text
    assert full == apply(table, "a:1@sha256:x").text


@pytest.mark.parametrize(
    ("name", "text", "matched"),
    [
        ("nginx", "nginx", True),
        ("nginx", "nginx:", True),
        ("nginx", "nginx:{V}", True),
        ("nginx", "library/nginx", False),
        ("nginx", "docker.io/library/nginx:1", False),
        ("nginx", "Nginx", False),
        ("nginx", "nginx2", False),
        ("nginx", "nginx:1+b", False),
        ("nginx", "nginx:$(V)", False),
        ("nginx", "nginx\n", False),
        ("nginx", " nginx", False),
        ("nginx", "nginx@sha512:ff", False),
        ("nginx", "nginx:1@SHA256:ff", False),
        ("gcr.io/a", "gcrXio/a:1", True),
        ("gcr.io/a", "gcréio/a:1", True),
        ("gcr.io/a", "gcr\nio/a:1", False),
        ("gcr.io/a", "gcrXXio/a:1", False),
        ("nginx:1", "nginx:1", True),
        ("nginx:1", "nginx:1:2", True),
        ("nginx:1", "nginx:2", False),
        ("nginx@sha256:a", "nginx@sha256:a", True),
        ("", "", True),
        ("", ":1", True),
        ("", "a", False),
        ("*", "anything:1+b@sha512:x", True),
        ("*", "", True),
        (".*", "a/b", True),
        ("a|nginx", "a-thing", True),
        ("a|nginx", "x/nginx:1", True),
        ("a|nginx", "nginx2", False),
        (r"gcr\.io/a", "gcrXio/a", False),
        ("gcr[.]io/a", "gcr.io/a:1", True),
        ("a{,2}", "a{,2}:1", True),
        (r"\Qa.b\E", "a.b", True),
        (r"\Q\C\E", r"\C", True),
        ("n[[:alpha:]]+x", "nginx:1", True),
        ("(?i)nginx", "NGINX", True),
        ("é", "é:1", True),
    ],
)
def test_a_name_matches_as_an_unescaped_expression_between_anchors(name: str, text: str, matched: bool) -> None:
    assert matched == bool(apply([entry(name, newTag="t")], text).trace)


@pytest.mark.parametrize(
    "name", ["[", "(nginx", "a)", "a**", "a++", "a{1001}", "(?=a)", r"\1", r"\C", r"a\\\C", "(?x)a"]
)
def test_a_name_that_is_no_expression_fails_every_reference(name: str) -> None:
    with pytest.raises(OverrideFailure, match="is no regular expression: ") as caught:
        apply([entry("a", newTag="1"), entry(name, newTag="t")], "other")
    assert caught.value.entry == 1


def test_an_escaped_backslash_before_a_capital_c_is_an_expression() -> None:
    assert apply([entry(r"a\\C", newTag="t")], r"a\C").text == r"a\C:t"


def test_the_unreleased_rules_match_any_digest_and_tolerate_bad_names() -> None:
    table = [entry("[", newTag="x"), entry("a", newName="m")]
    assert apply(table, "a:1@sha512:ff", unreleased=True).text == "m:1@sha512:ff"
    assert apply(table, "a@b1:{x}", unreleased=True).text == "m@b1:{x}"
    assert apply(table, "a@1b:x", unreleased=True).text == "a@1b:x"
    assert apply([entry("(a)", newName="m")], "a@md5:x", unreleased=True).text == "m@md5:x"
    assert apply([entry("(a)", newName="m")], "a@md5:x").text == "a@md5:x"


def test_entries_run_in_order_on_what_the_one_before_left() -> None:
    there, onward = entry("a", newName="b"), entry("b", newName="c", newTag="2")
    assert apply([there, onward], "a:1") == Outcome("c:2", (Step(0, "a:1", "b:1"), Step(1, "b:1", "c:2")))
    assert apply([onward, there], "a:1") == Outcome("b:1", (Step(1, "a:1", "b:1"),))
    swap = [entry("a", newName="b"), entry("b", newName="a")]
    assert [apply(swap, text).text for text in ("a", "b")] == ["a", "a"]
    assert apply([entry("a", newTag="1"), entry("a", newTag="2")], "a").text == "a:2"
    assert apply([entry("a", newTag="1+x"), entry("a", newTag="2")], "a").text == "a:1+x"


def test_a_doubled_site_runs_each_entry_twice() -> None:
    table = [entry("a", newName="a:7")]
    assert apply(table, "a").text == "a:7"
    assert apply(table, "a", double=True) == Outcome("a:7:7", (Step(0, "a", "a:7:7"),))
    assert apply([entry("a", newName="b"), entry("b", newName="a")], "a", double=True).text == "a"


def test_an_entry_that_changes_nothing_is_in_the_trace() -> None:
    assert apply([entry("a", newName="a")], "a:1") == Outcome("a:1", (Step(0, "a:1", "a:1"),))
    assert apply([entry("a", newName="b")], "x:1") == Outcome("x:1", ())


def test_a_thousand_entries_on_two_thousand_images_take_no_two_million_matches() -> None:
    table = Table(entry(f"r{i % 30}.example/t{i % 7}/app-{i}", newName=f"mirror.lan/app-{i}") for i in range(1000))
    images = [f"r{i % 30}.example/t{i % 7}/app-{i}:1.{i}@{SHA256}" for i in range(2000)]
    start = time.perf_counter()
    outcomes = [table.apply(image) for image in images]
    assert time.perf_counter() - start < 1.0
    assert sum(bool(outcome.trace) for outcome in outcomes) == 1000
    assert outcomes[999].text == f"mirror.lan/app-999:1.999@{SHA256}"


def plainly(entries: list[Entry], text: str, *, double: bool) -> str:
    """The rule written down straight: RE2 for every name, entry after entry."""
    for one in entries:
        pattern = re2.compile(f"^{one.name}(:[a-zA-Z0-9_.{{}}-]*)?(@sha256:[a-zA-Z0-9_.{{}}-]*)?$")
        for _ in range(1 + double):
            if not pattern.search(text):
                continue
            slash = text.find("/")
            head, tail = (text[:slash], text[slash:]) if slash > 0 else ("", text)
            at, colon = tail.find("@"), tail.find(":")
            tag = digest = ""
            name = tail
            if at >= 0 and (colon == -1 or at < colon):
                name, digest = tail[:at], tail[at + 1 :]
            elif at >= 0:
                name, tag, digest = tail[:colon], tail[colon + 1 : at], tail[at + 1 :]
            elif colon >= 0:
                name, tag = tail[:colon], tail[colon + 1 :]
            name = one.new_name or head + name
            if one.new_tag and one.digest:
                tag, digest = one.new_tag, one.digest
            elif one.new_tag:
                tag, digest = one.new_tag, ""
            elif one.digest:
                tag, digest = "", one.digest
            text = name + (":" + tag if tag else "") + ("@" + digest if digest else "")
    return text


NAMES = st.one_of(
    st.sampled_from(
        ["a", "b", "a.b", "a.b/c", "r.io/a", "r:1/a", "a:1", "..", "", "a/.", "*", "a|b", "[ab]", ".*", "b+"]
    ),
    st.text("ab./:@-", max_size=5),
)
TAILS = st.sampled_from(
    ["", ":", ":1", ":1.2", ":1:2", ":+", "@sha256:", "@sha256:f", ":1@sha256:f", "@sha512:f", "\n"]
)
VALUES = st.sampled_from(["", "a", "b", "a.b", "aXb", "b:7", "r.io/a", "b@sha256:q", "x/y"])
ENTRIES = st.lists(st.builds(Entry, NAMES, VALUES, VALUES, st.sampled_from(["", "sha256:f", "sha512:f"])), max_size=6)
IMAGES = st.builds(lambda name, tail, wild: name.replace(".", wild) + tail, NAMES, TAILS, st.sampled_from(".X/\né"))


@given(ENTRIES, IMAGES, st.booleans())
def test_the_index_gives_what_one_entry_after_another_gives(entries: list[Entry], image: str, double: bool) -> None:
    outcome = Table(entries).apply(image, double=double)
    assert plainly(entries, image, double=double) == outcome.text
    assert [*sorted({step.entry for step in outcome.trace})] == [step.entry for step in outcome.trace]
    for before, after in zip(outcome.trace, outcome.trace[1:], strict=False):
        assert before.after == after.before


def test_chains_are_renames_that_a_later_entry_takes_up() -> None:
    table = [
        entry("a", newName="b", newTag="1"),
        entry("x", newTag="2"),
        entry("b", newName="c"),
        entry("c", newName="d"),
    ]
    assert chains(table) == [Chain(0, 2, "b:1", "d:1"), Chain(2, 3, "c", "d")]
    assert chains([entry("b", newName="c"), entry("a", newName="b")]) == []
    assert chains([entry("a", newName="gcrXio/a"), entry("gcr.io/a", newName="m")]) == [Chain(0, 1, "gcrXio/a", "m")]


def references(*texts: str) -> list[Reference]:
    return [Reference.parse(text) for text in texts]


def test_an_entry_in_another_spelling_of_an_image_is_found() -> None:
    images = references("docker.io/library/nginx:1", "redis:7", "ghcr.io/a:1")
    table = [
        entry("nginx", newName="m/nginx"),
        entry("docker.io/redis", newName="m/redis"),
        entry("ghcr.io/a", newTag="2"),
    ]
    assert spelling_variants(table, images) == [Hit(0, images[0]), Hit(1, images[1])]
    assert spelling_variants([*table, entry("docker.io/library/nginx", newName="m")], images) == [Hit(1, images[1])]
    assert spelling_variants([], images) == []


def test_a_dot_that_matches_another_character_is_found() -> None:
    images = references("gcrxio/a:1", "gcr.io/a:1")
    assert accidental_matches([entry("gcr.io/a", newName="m")], images) == [Hit(0, images[0])]
    assert accidental_matches([entry("gcrxio/a", newName="m")], images) == []


def test_a_result_that_the_table_rewrites_again_is_found() -> None:
    image = Reference.parse("a:1")
    assert rewrites_again([entry("b", newName="c"), entry("a", newName="b")], image) == Again("b:1", "c:1", 1, 0)
    assert rewrites_again([entry("a", newName="b"), entry("b", newName="c")], image) is None
    assert rewrites_again([entry("a", newTag="2")], image) is None
    assert rewrites_again(Table([entry("x", newName="b")]), image) is None
