"""What an image policy selects, and why not the rest."""

from __future__ import annotations

import math
from typing import Any

import pytest
import re2
from hypothesis import example, given
from hypothesis import strategies as st

from render.flux.policy import Candidate, Selection, exclude, parse_number, select
from render.flux.regex import Pattern, PatternError, quote, template_parts

SEMVER = {"semver": {"range": "*"}}
NUMERICAL = {"numerical": {"order": "asc"}}
ALPHABETICAL = {"alphabetical": {"order": "asc"}}
BAD_ORDER = "invalid order argument provided: 'UP', must be one of: ASC, DESC"
BAD_PATTERN = (
    "invalid regular expression pattern '(?!1)': error parsing regexp: invalid or unsupported Perl syntax: `(?!`"
)
STRICT = {"pattern": r"^[0-9]+\.[0-9]+\.[0-9]+$"}


def test_semver_selects_the_greatest_in_the_range() -> None:
    selection = select(["1.9.0", "1.10.0", "2.0.0", "1.11.0-rc.1", "1.12"], {"semver": {"range": "1.x"}})

    assert (
        Selection(
            tag="1.10.0",
            undetermined=(),
            error=None,
            candidates=(Candidate("1.10.0", "1.10.0"), Candidate("1.9.0", "1.9.0")),
            rejected=(
                ("2.0.0", "`2.0.0` is not in the range `1.x`"),
                ("1.12", "`1.12` has fewer than three parts, and Flux takes no such tag for a version"),
                ("1.11.0-rc.1", "`1.11.0-rc.1` is a pre-release, and the range `1.x` admits none"),
            ),
        )
        == selection
    )


def test_equal_versions_are_left_to_chance_only_with_a_filter() -> None:
    tags = ["1.2.3", "v1.2.3", "1.2.2"]

    assert select(tags, SEMVER).tag == "v1.2.3"
    assert (
        select(tags, SEMVER, {"pattern": ""}).tag,
        select(tags, SEMVER, {"pattern": ""}).undetermined,
    ) == (None, ("v1.2.3", "1.2.3"))


def test_filter_rejects_what_its_pattern_does_not_match() -> None:
    selection = select(["1.2.3", "v9.9.9"], SEMVER, STRICT)

    assert (
        selection.tag,
        selection.rejected,
    ) == ("1.2.3", (("v9.9.9", r"does not match the pattern `^[0-9]+\.[0-9]+\.[0-9]+$`"),))


def test_of_tags_with_the_same_extract_the_least_stays() -> None:
    filter_tags = {"pattern": r"^(?P<v>[0-9.]+)-[a-z]+$", "extract": "$v"}
    selection = select(["1.2.3-b", "1.2.3-a", "1.2.3-c"], SEMVER, filter_tags)

    assert selection.tag == "1.2.3-a"
    assert list(selection.rejected) == [
        ("1.2.3-c", "gives way to `1.2.3-b`, from which `1.2.3` is extracted too"),
        ("1.2.3-b", "gives way to `1.2.3-a`, from which `1.2.3` is extracted too"),
    ]


@pytest.mark.parametrize(
    ("policy", "selected"),
    [
        (ALPHABETICAL, "9"),
        ({"alphabetical": {"order": "desc"}}, "10"),
        ({"alphabetical": {}}, "9"),
        (NUMERICAL, "10"),
        ({"numerical": {"order": "desc"}}, "2"),
        ({"semver": None, "numerical": {}}, "10"),
        ({"numerical": {}, "alphabetical": {}}, "9"),
    ],
)
def test_orders(policy: dict[str, Any], selected: str) -> None:
    assert selected == select(["2", "10", "9"], policy).tag


def test_numbers_beyond_53_bits_tie() -> None:
    tags = ["20240701123456789", "20240701123456788"]

    assert select(tags, NUMERICAL).tag == "20240701123456788"
    assert tuple(tags) == select(tags, NUMERICAL, {"pattern": "^[0-9]+$"}).undetermined


def test_not_a_number_makes_the_outcome_depend_on_the_order_of_visits() -> None:
    few = ["nan", "3", "2", "1"]
    many = ["nan", *map(str, range(1, 9))]

    assert select(few, NUMERICAL, {"pattern": ""}).undetermined == ("nan", "3")
    assert sorted(many) == sorted(select(many, NUMERICAL, {"pattern": ""}).undetermined)


@pytest.mark.parametrize(
    ("tags", "policy", "filter_tags", "error"),
    [
        ([], SEMVER, None, "no tags in database"),
        ([], {"semver": {"range": "x1"}}, None, "invalid policy: constraint parser error"),
        (["1.2.3"], None, None, "invalid policy: given ImagePolicyChoice object is invalid"),
        (["1"], {"numerical": {"order": "up"}}, None, f"invalid policy: {BAD_ORDER}"),
        (["latest"], SEMVER, None, "unable to determine latest version from provided list"),
        (["latest"], SEMVER, STRICT, "version list argument cannot be empty"),
        (["1", "latest"], NUMERICAL, None, "failed to parse invalid numeric value 'latest'"),
        (["1", "main", "latest"], NUMERICAL, None, "failed to parse invalid numeric value 'main'"),
        (["1", "main", "latest"], NUMERICAL, {"pattern": ""}, "failed to parse invalid numeric value"),
        (["1"], NUMERICAL, {"pattern": "(?!1)"}, f"failed to filter tags: {BAD_PATTERN}"),
    ],
)
def test_errors_are_the_controllers(tags: list[str], policy: Any, filter_tags: Any, error: str) -> None:
    selection = select(tags, policy, filter_tags)

    assert (None, error) == (selection.tag, selection.error)


any_tags = st.lists(
    st.from_regex(r"\Av?[0-9]{1,2}\.[0-9]\.[0-9](-rc\.[0-9])?\Z|\A[0-9]{1,4}\Z|\A[a-z]{1,3}\Z"),
    max_size=12,
    unique=True,
)
policies = st.sampled_from([SEMVER, {"semver": {"range": ">=1.0.0-0 <9"}}, NUMERICAL, ALPHABETICAL])
filters = st.sampled_from([None, {"pattern": r"^[0-9]"}, {"pattern": r"^v?(.*)$", "extract": "$1"}, STRICT])


@given(any_tags, policies, filters, st.randoms())
def test_selection_does_not_depend_on_the_order_of_the_tags(
    tags: list[str], policy: Any, filter_tags: Any, random: Any
) -> None:
    shuffled = list(tags)
    random.shuffle(shuffled)

    assert select(tags, policy, filter_tags) == select(shuffled, policy, filter_tags)


@given(any_tags, policies, filters)
def test_every_tag_is_accounted_for_once(tags: list[str], policy: Any, filter_tags: Any) -> None:
    selection = select(tags, policy, filter_tags)

    seen = [candidate.tag for candidate in selection.candidates] + [tag for tag, _ in selection.rejected]
    assert sorted(tags) == sorted(seen)
    if selection.error is None:
        assert selection.candidates[0].tag in {selection.tag, *selection.undetermined}


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1_000", 1000.0),
        ("5.", 5.0),
        (".5e1", 5.0),
        ("0x1p4", 16.0),
        ("0x_1.8p1", 3.0),
        ("+Inf", math.inf),
        ("-1E2", -100.0),
    ],
)
def test_number_is_read_as_go_reads_it(text: str, number: float) -> None:
    assert number == parse_number(text)


@pytest.mark.parametrize(
    "text", ["", "1_", "_1", "1__0", "0x10", "1e", ".", " 1", "1e400", "0x1p9999", "+nan", "1,0", "\u0661"]
)
def test_number_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="`"):
        parse_number(text)


def test_exclusions_replace_the_default() -> None:
    tags = ["1.0.0", "1.0.0-rc1", "sha256-abc.sig"]

    assert exclude(tags) == ["1.0.0", "1.0.0-rc1"]
    assert exclude(tags, []) == ["1.0.0", "1.0.0-rc1"]
    assert exclude(tags, ["-rc"]) == ["1.0.0", "sha256-abc.sig"]
    with pytest.raises(PatternError):
        exclude(tags, ["["])


@pytest.mark.parametrize(
    ("template", "result"),
    [
        ("$v", "1.2"),
        ("${v}.0", "1.2.0"),
        ("$v.0", "1.2.0"),
        ("$v0", ""),
        ("$1_$2", "b"),
        ("$$v", "$v"),
        ("$-", "$-"),
        ("${v", "${v"),
        ("$0", "1.2-b"),
        ("$3", ""),
        ("$01", ""),
    ],
)
def test_template_is_expanded_as_go_does(template: str, result: str) -> None:
    assert result == Pattern(r"(?P<v>[0-9.]+)-([a-z])").expand(template, "x1.2-b")


def test_template_of_a_text_without_match_gives_nothing() -> None:
    assert Pattern("^a$").expand("$0", "b") is None


def test_template_names_its_groups() -> None:
    assert list(template_parts("x$v$$-${1}.0")) == [("x", "v"), ("$-", "1"), (".0", None)]


def test_first_group_of_a_shared_name_that_took_part_counts() -> None:
    assert Pattern(r"(?P<n>a)|(?<n>b)").expand("$n", "b") == "b"


@pytest.mark.parametrize(
    ("pattern", "message", "position"),
    [
        ("^((?!rc).)*$", "the pattern `^((?!rc).)*$` does not compile: invalid or unsupported Perl syntax `(?!`", 2),
        (r"a\C", r"the pattern `a\C` does not compile: invalid escape sequence `\C`", 1),
        ("a{100000000000}", "the pattern `a{100000000000}` does not compile: invalid repeat count `{100000000000}`", 1),
        ("(?P<é>a)", "the pattern `(?P<é>a)` does not compile: invalid named capture `(?P<é>`", 0),
        ("(?<=a)b", "the pattern `(?<=a)b` does not compile: invalid named capture `(?<=a)b`", 0),
    ],
)
def test_pattern_is_refused_with_its_place(pattern: str, message: str, position: int) -> None:
    with pytest.raises(PatternError) as caught:
        Pattern(pattern)

    assert (message, position) == (str(caught.value), caught.value.position)


def test_dollar_is_the_end_of_the_text_only() -> None:
    assert not Pattern("^a$").matches("a\n")


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12), st.text(max_size=4))
def test_quoted_text_matches_itself_alone(text: str, other: str) -> None:
    pattern = Pattern(f"^{quote(text)}$")

    assert pattern.matches(text)
    assert (other == text) == pattern.matches(other)


PLAIN = st.lists(
    st.sampled_from(
        ["a", "v", "-", "_", "7", r"\.", r"\+", "[0-9]+", "(?P<n>", "(?P<m>", ")", "[0-9]", "+", "*", "?", "(", "$"]
    ),
    max_size=8,
).map(lambda parts: f"^{''.join(parts)}$")
TAGS = st.lists(st.sampled_from(["a", "v", "-", "_", "7", "07", ".", "+", "\n"]), max_size=6).map("".join)


@given(PLAIN, st.lists(TAGS, min_size=1, max_size=4))
@example("^(?P<n>[0-9]+)$", ["7", "7\n", "", "a7"])
@example("^(?P<n>a)(?P<n>a)$", ["aa"])
def test_both_engines_match_alike(pattern: str, tags: list[str]) -> None:
    try:
        expected = re2.compile(pattern)
    except re2.error:
        with pytest.raises(PatternError):
            Pattern(pattern)
        return
    subject = Pattern(pattern)
    for tag in tags:
        match = expected.search(tag)
        assert (match is not None) == subject.matches(tag)
        assert subject.expand("$0|$1|$n", tag) == (
            None
            if match is None
            else f"{match[0]}|{(match[1] or '') if expected.groups else ''}|{_first(match, subject)}"
        )


def _first(match: Any, subject: Pattern) -> str:
    return next((match[number] for number in subject.group_numbers("n") if match[number] is not None), "")
