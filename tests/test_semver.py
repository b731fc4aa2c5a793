"""Versions and ranges by Flux's rules."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from render.flux.semver import Constraint, RangeError, Version, VersionError, go_quote, parse_loose, parse_version

numbers = st.one_of(st.integers(0, 12), st.sampled_from([2**64 - 1, 2**64 - 2, 20240701]))
identifiers = st.sampled_from(["0", "1", "9", "10", "rc", "rc1", "alpha", "-", "0a", "99999999999999999999"])
prereleases = st.lists(identifiers, max_size=3).map(".".join)
versions = st.builds(
    lambda parts, pre: parse_loose(".".join(map(str, parts)) + (f"-{pre}" if pre else "")),
    st.tuples(numbers, numbers, numbers),
    prereleases,
)
partial = st.builds(
    lambda parts, pre: ".".join(map(str, parts)) + (f"-{pre}" if pre else ""),
    st.lists(st.one_of(st.integers(0, 4), st.sampled_from(["x", "*"])), min_size=1, max_size=3),
    st.sampled_from(["", "", "", "0", "rc.1"]),
)
comparators = st.builds("{}{}".format, st.sampled_from(["", "=", "!=", ">", "<", ">=", "<=", "~", "^"]), partial)
ranges = st.lists(st.lists(comparators, min_size=1, max_size=4).map(" ".join), min_size=1, max_size=3).map(" || ".join)
near = st.builds(
    lambda parts, pre: parse_loose(".".join(map(str, parts)) + pre),
    st.tuples(*[st.integers(0, 5)] * 3),
    st.sampled_from(["", "", "-0", "-0.0", "-1", "-rc.1", "-rc.2", "-z"]),
)


@pytest.mark.parametrize(
    ("tag", "canonical"),
    [
        ("1.2.3", "1.2.3"),
        ("v1.2.3-rc.1", "1.2.3-rc.1"),
        ("2024.07.01", "2024.7.1"),
        ("1.2.3-alpine3.18", "1.2.3-alpine3.18"),
        ("1.2-rc.1", "1.2.0-rc.1"),
        ("1.2.3+b.01", "1.2.3+b.01"),
        ("18446744073709551615.0.0", "18446744073709551615.0.0"),
        ("00000000000000000000001.2.3", "1.2.3"),
    ],
)
def test_tag_is_a_version(tag: str, canonical: str) -> None:
    assert canonical == str(parse_version(tag))


@pytest.mark.parametrize(
    ("tag", "message"),
    [
        ("1.2", "`1.2` has fewer than three parts, and Flux takes no such tag for a version"),
        ("V1.2.3", "`V1.2.3` is not a semantic version"),
        ("1.2.3.4", "`1.2.3.4` is not a semantic version"),
        ("1.2.3\n", "`1.2.3\n` is not a semantic version"),
        ("1.2.3-rc.01", "`1.2.3-rc.01` has the pre-release number `01` with a leading zero"),
        ("1.2.18446744073709551616", "`1.2.18446744073709551616` has a part above 18446744073709551615"),
    ],
)
def test_tag_is_no_version(tag: str, message: str) -> None:
    with pytest.raises(VersionError) as caught:
        parse_version(tag)

    assert message == str(caught.value)


def test_order_is_semver_precedence() -> None:
    texts = [
        "1.0.0-0",
        "1.0.0-2",
        "1.0.0-10",
        "1.0.0-alpha",
        "1.0.0-alpha.1",
        "1.0.0-rc10",
        "1.0.0-rc9",
        "1.0.0",
        "1.0.1-0",
    ]

    assert texts == [str(version) for version in sorted(map(parse_loose, reversed(texts)))]
    assert parse_loose("v1.02+a") == parse_loose("1.2.0+b")


@given(versions)
def test_canonical_text_reads_back_as_the_same_version(version: Version) -> None:
    assert version == parse_version(str(version))


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("*", "1.2.3", "1.2.3-rc.1"),
        ("1.2", "1.2.9", "1.3.0"),
        (">1", "2.0.0", "1.9.9"),
        (">1.0", "1.1.0", "1.0.9"),
        ("<=1.4", "1.4.9", "1.5.0"),
        ("1.2 - 1.4", "1.4.9", "1.5.0"),
        ("1 - 2 3 - 4 || 7", "7.1.0", "3.5.0"),
        ("^0.2.3", "0.2.9", "0.3.0"),
        ("^0.0.3", "0.0.3", "0.0.4"),
        ("~>1.2.3, <1.2.5", "1.2.4", "1.2.5"),
        (">=1.0.0-0 <2.0.0", "2.0.0-rc.1", "2.0.0"),
        ("!=1.2.x", "1.3.0", "1.2.7"),
        ("=>2024.07.0", "2024.8.1", "2024.6.9"),
        ("1.x||3.x", "3.1.0", "2.0.0"),
        (">=1 !=1.2.x-0", "1.2.3-rc.1", "1.2.3-0"),
    ],
)
def test_range_admits(text: str, inside: str, outside: str) -> None:
    constraint = Constraint.parse(text)

    assert (constraint.check(parse_version(inside)), constraint.check(parse_version(outside))) == (True, False)


@pytest.mark.parametrize(
    ("text", "position", "fault", "upstream"),
    [
        ("", 0, "it is empty", 'improper constraint: ""'),
        (">=1<2", 3, "`<2` is no comparison", 'improper constraint: ">=1<2"'),
        ("1.x || latest", 7, "`latest` is no comparison", 'improper constraint: " latest"'),
        ("1.x ||", 6, "a version is missing", 'improper constraint: ""'),
        (
            ">=4.0.19.3001",
            8,
            "`4.0.19.3001` has four parts; write `>=4.0.19-3001`",
            'improper constraint: ">=4.0.19.3001"',
        ),
        (
            "3.x || ^4.0.19.0, <5",
            14,
            "`4.0.19.0` has four parts; write `^4.0.19-0`",
            'improper constraint: " ^4.0.19.0, <5"',
        ),
        ("1.2.3.4.5", 5, "`.4.5` is no comparison", 'improper constraint: "1.2.3.4.5"'),
        ("1.2.3.04", 5, "`.04` is no comparison", 'improper constraint: "1.2.3.04"'),
        ("1.2.x.4", 5, "`.4` is no comparison", 'improper constraint: "1.2.x.4"'),
        ("1.2.3-b..4", 7, "`..4` is no comparison", 'improper constraint: "1.2.3-b..4"'),
        ("1 - 2 x1", 0, "`x1` is neither a version nor a wildcard", "constraint parser error"),
        ("1.2.xX", 0, "`1.2.xX` is neither a version nor a wildcard", "constraint parser error"),
        (">1.0.0-01", 1, "`1.0.0-01` has the pre-release number `01` with a leading zero", "constraint parser error"),
    ],
)
def test_range_is_refused_with_its_place(text: str, position: int, fault: str, upstream: str) -> None:
    with pytest.raises(RangeError) as caught:
        Constraint.parse(text)

    expected = (f"`{text}` is not a semver range: {fault}", position, upstream)
    assert expected == (str(caught.value), caught.value.position, caught.value.upstream)


@pytest.mark.parametrize(
    ("text", "tag", "position"),
    [
        ("1.x", "1.4.0", "inside"),
        ("1.x", "2.0.0", "below"),
        ("1.x", "0.9.0", "above"),
        ("1.x || 3.x", "2.0.0", "excluded"),
        ("*", "1.2.3-alpine", "excluded"),
        ("2.x", "1.2.3-alpine", "above"),
        (">=2.0.0-0", "1.9.9", "above"),
        ("<0.0.0", "1.2.3", "excluded"),
        (">1.2.3 <1.2.4", "1.2.3", "excluded"),
        (">1.2.3 <=1.2.4", "1.2.3", "above"),
        (">1.2.3 <1.2.4-0.0", "1.2.3", "above"),
        ("!=1.2.3", "1.2.3", "excluded"),
        ("1.2.x !=1.2.x", "1.3.0", "excluded"),
        (">=0.0.0 !=0.0.0 !=0.0.1 <=0.0.2", "0.0.1", "above"),
        (">18446744073709551615", "1.0.0", "excluded"),
        (">=1.18446744073709551615.18446744073709551615 <2", "1.0.0", "above"),
    ],
)
def test_position_of_a_range(text: str, tag: str, position: str) -> None:
    assert position == Constraint.parse(text).position(parse_version(tag))


@given(ranges, st.lists(near, min_size=2, max_size=12))
def test_position_never_contradicts_membership(text: str, sample: list[Version]) -> None:
    constraint = Constraint.parse(text)
    first, *others = sample
    position = constraint.position(first)
    admitted = [version for version in others if constraint.check(version)]

    assert (position == "inside") == constraint.check(first)
    assert position != "above" or all(version > first for version in admitted)
    assert position != "below" or all(version < first for version in admitted)
    assert not (constraint.is_empty and admitted)


@given(st.lists(comparators, min_size=1, max_size=3))
def test_alternatives_admit_what_one_of_them_admits(texts: list[str]) -> None:
    whole = Constraint.parse(" || ".join(texts))
    for patch in range(6):
        version = parse_loose(f"1.2.{patch}")

        assert any(Constraint.parse(text).check(version) for text in texts) == whole.check(version)


@pytest.mark.parametrize(
    ("text", "opened"),
    [
        ("*", "*-0"),
        ("4.x", "4.x-0"),
        (">=4.0 <5", ">=4.0-0 <5-0"),
        ("~4.1+b || 6.0.0-rc.1 || 7", "~4.1-0+b || 6.0.0-rc.1 || 7-0"),
        ("<=4.2.3", ">=0.0.0-0 <=4.2.3"),
        (">4 <=4.2.3", ">4-0 <=4.2.3"),
        ("1 - 2", ">= 1-0, <= 2-0"),
        ("!=3", ">=0.0.0-0 !=3"),
    ],
)
def test_range_is_opened_to_prereleases(text: str, opened: str) -> None:
    assert opened == Constraint.parse(text).with_prereleases()
    assert Constraint.parse(opened).admits_prerelease


bounds = st.builds("{}{}".format, st.sampled_from(["!=", ">", "<", ">=", "<=", "~", "^"]), partial)


@given(st.lists(bounds, min_size=1, max_size=3).map(" ".join), near.filter(lambda version: not version.prerelease))
def test_opened_range_still_admits_the_releases_it_admitted(text: str, version: Version) -> None:
    opened = Constraint.parse(Constraint.parse(text).with_prereleases())

    assert opened.admits_prerelease
    assert opened.check(version) or not Constraint.parse(text).check(version)


def test_quoting_follows_go() -> None:
    assert go_quote('a"\\\n\x00é\u200b') == r'"a\"\\\n\x00é\u200b"'
