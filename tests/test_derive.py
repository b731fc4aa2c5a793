"""Policies derived from tags, and what the self-test finds in any policy."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from render.flux.derive import Derived, DeriveError, derive, self_test, suggest_filter
from render.flux.policy import select
from render.flux.regex import Pattern
from render.flux.semver import RangeError

A, B, C = "(?P<a>[0-9]+)", "(?P<b>[0-9]+)", "(?P<c>[0-9]+)"
D = "(?P<d>0|[1-9][0-9]*)"
THREE = r"[0-9]+\.[0-9]+\.[0-9]+"
COUNT = "(?:0|[1-9][0-9]*)"
HASH_ADVICE = "tag images `<time>-<hash>` and write `channel: build`, because a commit hash has no order"
INEXACT = "may reach 2^53, where a numerical policy takes neighbours for equal"
INEXACT_ADVICE = (
    "write `channel: custom` with `policy: {alphabetical: {order: asc}}` and `filterTags: {pattern: '^n-[0-9]{17}$'}`"
)
TOO_MANY = "has more numbers than semver keeps apart from a pre-release"
ALL_CHANNELS = "`stable`, `prerelease`, `calver`, `build`, `digest`, `custom`"
ALL_POLICIES = "`semver`, `alphabetical`, `numerical`"
CUSTOM_RANGE = "write `policy: {semver: {range: …}}`"
CUSTOM_ONLY = "write `channel: custom` for these"


@pytest.mark.parametrize(
    ("tag", "pattern", "extract", "range_"),
    [
        ("1.2.3", f"^{THREE}$", None, "1.x"),
        ("v1.2.3", f"^v{THREE}$", None, "1.x"),
        ("2024.07.0", f"^{THREE}$", None, "1.x"),
        ("1.2.3-alpine", f"^(?P<v>{THREE})-alpine$", "$v", "1.x"),
        ("v1.2.3-alpine3.18", rf"^v(?P<v>{THREE})-alpine3\.18$", "$v", "1.x"),
        ("18.6", rf"^{A}\.{B}$", "$a.$b.0", "1.x"),
        ("18-alpine", f"^{A}-alpine$", "$a.0.0", "1.x"),
        ("41", f"^{A}$", "$a.0.0", "1.x"),
        ("4.0.19.3001", rf"^{A}\.{B}\.{C}\.{D}$", "$a.$b.$c-$d", "1.x-0"),
        ("1.2.3.04", rf"^{A}\.{B}\.{C}\.0*(?P<d>[0-9]+)$", "$a.$b.$c-$d", "1.x-0"),
        ("1.2.3-ls245", rf"^{A}\.{B}\.{C}-ls{D}$", "$a.$b.$c-$d", "1.x-0"),
        ("4.0.19.3001-ls12", rf"^{A}\.{B}\.{C}\.{D}-ls(?P<e>0|[1-9][0-9]*)$", "$a.$b.$c-$d.$e", "1.x-0"),
        ("1.2.3-debian-12", f"^(?P<v>{THREE})-debian-12$", "$v", "1.x"),
        ("3.14-1", rf"^{A}\.{B}-(?P<c>0|[1-9][0-9]*)$", "$a.$b.0-$c", "1.x-0"),
    ],
)
def test_stable_admits_the_form_of_the_tag(tag: str, pattern: str, extract: str | None, range_: str) -> None:
    assert Derived("stable", pattern, extract, "semver", range_) == derive("stable", tag, "1.x")


@pytest.mark.parametrize(
    ("tag", "pattern", "extract", "range_"),
    [
        ("1.2.3", rf"^{THREE}(?:-(?:alpha|beta|rc)\.{COUNT})?$", None, "1.x"),
        ("v1.2.3-beta", f"^v{THREE}(?:-(?:alpha|beta|rc))?$", None, "1.x"),
        ("1.2.3-rc.1-alpine", rf"^(?P<v>{THREE}(?:-(?:alpha|beta|rc)\.{COUNT})?)-alpine$", "$v", "1.x"),
        ("18.6-rc.1", rf"^{A}\.{B}(?P<p>-(?:alpha|beta|rc)\.{COUNT})?$", "$a.$b.0$p", "1.x"),
        ("1.2.3-dev.5", rf"^{THREE}(?:-(?:dev)\.{COUNT})?$", None, "1.x"),
        ("1.2.3-RC1", rf"^{A}\.{B}\.{C}-(?P<l>ALPHA|BETA|RC)(?P<n>0|[1-9][0-9]*)$", "$a.$b.$c-$l.$n", "1.x-0"),
        ("2024.1.0b3", rf"^{A}\.{B}\.{C}(?P<l>a|b|rc)(?P<n>0|[1-9][0-9]*)$", "$a.$b.$c-$l.$n", "1.x-0"),
        ("1.2.3-rc.01", rf"^{A}\.{B}\.{C}-(?P<l>alpha|beta|rc)\.0*(?P<n>[0-9]+)$", "$a.$b.$c-$l.$n", "1.x-0"),
    ],
)
def test_prerelease_admits_the_form_and_its_prereleases(
    tag: str, pattern: str, extract: str | None, range_: str
) -> None:
    derived = derive("prerelease", tag, "1.x")

    assert (pattern, extract, range_) == (derived.pattern, derived.extract, derived.policy_range)


def test_prerelease_says_when_it_leaves_releases_out() -> None:
    assert derive("prerelease", "1.2.3-rc.1", "1.x").notes == ()
    assert len(derive("prerelease", "1.2.3-rc1", "1.x").notes) == 1


@pytest.mark.parametrize(
    ("tag", "pattern", "extract", "range_"),
    [
        ("2024.07.0", f"^{THREE}$", None, "*"),
        ("24.04", rf"^{A}\.{B}$", "$a.$b.0", "*"),
        ("20240701", f"^{A}$", "$a.0.0", "*"),
        ("2024-07-01", f"^{A}-{B}-{C}$", "$a.$b.$c", "*"),
        ("v2024_07-slim", f"^v{A}_{B}-slim$", "$a.$b.0", "*"),
        ("2024.07.01.05", rf"^{A}\.{B}\.{C}\.0*(?P<d>[0-9]+)$", "$a.$b.$c-$d", "*-0"),
    ],
)
def test_calver_orders_the_parts(tag: str, pattern: str, extract: str | None, range_: str) -> None:
    assert Derived("calver", pattern, extract, "semver", range_) == derive("calver", tag)


def test_calver_takes_a_range() -> None:
    assert derive("calver", "2024.07.01.05", ">=2024").policy_range == ">=2024-0"


@pytest.mark.parametrize(
    ("tag", "pattern", "extract"),
    [
        ("1234", "^[0-9]{1,15}$", None),
        ("20240701", "^[0-9]{8}$", None),
        ("1719822896123456", "^[0-8][0-9]{15}$", None),
        ("v41", "^v(?P<n>[0-9]{1,15})$", "$n"),
        ("build-42", "^build-(?P<n>[0-9]{1,15})$", "$n"),
        ("main-1a2b3c4-1700000000", "^main-[0-9a-f]+-(?P<n>[0-9]{10})$", "$n"),
        ("1700000000-g1a2b3c", "^(?P<n>[0-9]{10})-g[0-9a-f]+$", "$n"),
        ("20240701-153652", "^(?P<d>[0-9]{8})-(?P<t>[0-9]{6})$", "$d$t"),
        ("20240701T153652Z-abc1234", "^(?P<d>[0-9]{8})T(?P<t>[0-9]{6})Z-[0-9a-f]+$", "$d$t"),
    ],
)
def test_build_extracts_the_number(tag: str, pattern: str, extract: str | None) -> None:
    assert Derived("build", pattern, extract, "numerical", order="asc") == derive("build", tag)


def test_digest_admits_the_tag_alone() -> None:
    derived = derive("digest", "1.2-rolling")

    assert Derived("digest", r"^1\.2-rolling$", None, "alphabetical", order="asc") == derived
    assert (
        select(["1x2-rolling", "1.2-rolling", "1.2-rolling2"], derived.policy, derived.filter_tags).tag == "1.2-rolling"
    )


def test_custom_is_taken_as_given() -> None:
    policy: dict[str, Any] = {"alphabetical": {}, "semver": {"range": "~1"}}
    derived = derive("custom", "1.2.3", policy=policy, filter_tags={"pattern": "^1"})

    assert Derived("custom", "^1", None, "semver", "~1") == derived
    assert (derived.policy, derived.filter_tags) == ({"semver": {"range": "~1"}}, {"pattern": "^1"})
    assert derive("custom", "1", policy={"numerical": {}}).filter_tags is None


@pytest.mark.parametrize(
    ("channel", "tag", "reason", "advice"),
    [
        ("stable", "latest", "`latest` is no version", "write `channel: digest` to follow the digest of this tag"),
        ("stable", "1.2.3-rc.1", "`1.2.3-rc.1` is a pre-release", "write `channel: prerelease`"),
        ("stable", "2024-07-01", "the end of `2024-07-01` changes from tag to tag", "write `channel: calver`"),
        ("stable", "a-42", "channel `stable` knows no prefix but `v`, and `a-42` has `a-`", "write `channel: build`"),
        ("stable", "1a2b3c4d", "`1a2b3c4d` is no version", HASH_ADVICE),
        ("calver", "1.2.3", "`1.2.3` does not start with a year", "write `channel: stable`"),
        ("calver", "2024.1.0b3", "`2024.1.0b3` is a pre-release", "write `channel: prerelease`"),
        ("build", "1.2.3", "`1.2.3` does not hold exactly one number", "write `channel: stable`"),
        ("build", "n-99999999999999999", f"the number in `n-99999999999999999` {INEXACT}", INEXACT_ADVICE),
        ("prerelease", "1.2.3.4", f"`1.2.3.4` {TOO_MANY}", "write `channel: stable`"),
        ("nightly", "1", "there is no channel `nightly`", f"write one of {ALL_CHANNELS}"),
    ],
)
def test_refusal_says_what_to_write(channel: str, tag: str, reason: str, advice: str) -> None:
    with pytest.raises(DeriveError) as caught:
        derive(channel, tag, "1.x" if channel in ("stable", "prerelease") else None)

    assert f"{reason}; {advice}" == str(caught.value)
    assert (reason, advice) == (caught.value.reason, caught.value.advice)


@pytest.mark.parametrize(
    ("channel", "arguments", "reason", "advice"),
    [
        ("stable", {}, "channel `stable` needs a range", "write, say, `range: 6.x`"),
        ("build", {"range_": "1"}, "channel `build` has no semver policy, so no range", "remove `range`"),
        ("custom", {}, "channel `custom` needs a policy", f"write `policy` with one of {ALL_POLICIES}"),
        ("custom", {"range_": "1"}, "channel `custom` has its range in `policy`", CUSTOM_RANGE),
        ("digest", {"policy": {}}, "channel `digest` derives policy and filter itself", CUSTOM_ONLY),
    ],
)
def test_arguments_out_of_place_are_refused(channel: str, arguments: dict[str, Any], reason: str, advice: str) -> None:
    with pytest.raises(DeriveError) as caught:
        derive(channel, "6.1.0", **arguments)

    assert (reason, advice) == (caught.value.reason, caught.value.advice)


def test_range_that_does_not_parse_is_refused() -> None:
    with pytest.raises(RangeError):
        derive("stable", "1.2.3", "one")


@pytest.mark.parametrize(
    ("tag", "older", "newer"),
    [
        ("release-1.2.3", "release-1.2.9", "release-1.2.10"),
        ("1.9.7.4460-a39b60453", "1.9.7.9999-aaaaaa1", "1.9.7.10000-0000001"),
        ("2.0.330-63-gc1cfb6", "2.0.330-9-gffffff", "2.0.330-63-gc1cfb6"),
        ("1.2.3-alpine-20240101", "1.2.3-alpine-20240101", "1.2.3-alpine-20241001"),
        ("RELEASE.2024-04-17T00-58-46Z", "RELEASE.2024-04-17T00-58-46Z", "RELEASE.2024-05-01T00-00-00Z"),
        ("pr-12-1a2b3c4-1700000000", "pr-12-f00000a-1700000000", "pr-12-0a00000-1700000001"),
    ],
)
def test_advised_custom_policy_works(tag: str, older: str, newer: str) -> None:
    with pytest.raises(DeriveError) as caught:
        derive("stable", tag, "1.x")
    policy, _, filter_ = caught.value.advice.removeprefix("write `channel: custom` with `policy: ").partition(
        "` and `filterTags: "
    )
    kind, _, argument = policy.strip("{}").partition(": {")
    pattern, _, extract = filter_.removeprefix("{pattern: '").removesuffix("'}`").partition("', extract: '")
    name, _, value = argument.partition(": ")

    derived = derive("custom", tag, policy={kind: {name: value}}, filter_tags={"pattern": pattern, "extract": extract})
    assert self_test(derived, tag) == []
    assert newer == select([newer, older, "latest"], derived.policy, derived.filter_tags).tag


small = st.integers(0, 120)


def of_style(style: str) -> st.SearchStrategy[tuple[tuple[Any, ...], str]]:
    """Draw a tag of a style, with what orders it."""
    match style:
        case "three" | "v-three" | "three-alpine":
            head, tail = {"three": ("", ""), "v-three": ("v", ""), "three-alpine": ("", "-alpine")}[style]
            return st.tuples(small, small, small).map(lambda n: (n, f"{head}{n[0]}.{n[1]}.{n[2]}{tail}"))
        case "two":
            return st.tuples(small, small).map(lambda n: (n, f"{n[0]}.{n[1]}"))
        case "one-slim":
            return small.map(lambda n: ((n,), f"{n}-slim"))
        case "four":
            return st.tuples(small, small, small, small).map(lambda n: (n, ".".join(map(str, n))))
        case "ls":
            return st.tuples(small, small, small, small).map(lambda n: (n, f"{n[0]}.{n[1]}.{n[2]}-ls{n[3]}"))
        case "rc-glued":
            labels = st.sampled_from(["alpha", "beta", "rc"])
            return st.tuples(small, small, small, labels, small).map(
                lambda n: (n, f"{n[0]}.{n[1]}.{n[2]}-{n[3]}{n[4]}")
            )
        case "rc-dotted":
            stage = st.one_of(st.tuples(st.sampled_from(["alpha", "beta", "rc"]), small), st.just(("~release", 0)))
            return st.tuples(small, small, small, stage).map(
                lambda n: (n, f"{n[0]}.{n[1]}.{n[2]}" + (f"-{n[3][0]}.{n[3][1]}" if n[3][0] != "~release" else ""))
            )
        case "date":
            dates = st.dates(date(1950, 1, 1), date(2099, 12, 31))
            return dates.map(lambda d: ((d,), f"{d:%Y-%m-%d}"))
        case "calver":
            return st.tuples(st.integers(1990, 2099), st.integers(1, 12), small).map(
                lambda n: (n, f"{n[0]}.{n[1]:02}.{n[2]}")
            )
        case "number":
            return (
                st.integers(0, 10**15 - 1)
                .filter(lambda n: str(n)[:1] != "1" and str(n)[:2] != "20")
                .map(lambda n: ((n,), f"build-{n}"))
            )
        case _:
            return st.tuples(st.integers(10**9, 2 * 10**9 - 1), st.from_regex(r"\A[0-9a-f]{6}[a-f][0-9]\Z")).map(
                lambda n: ((n[0],), f"main-{n[1]}-{n[0]}")
            )


STYLES = {
    "three": "stable",
    "v-three": "stable",
    "three-alpine": "stable",
    "two": "stable",
    "one-slim": "stable",
    "four": "stable",
    "ls": "stable",
    "rc-glued": "prerelease",
    "rc-dotted": "prerelease",
    "date": "calver",
    "calver": "calver",
    "number": "build",
    "hash-time": "build",
}
OTHERS = ["latest", "1.2.3.4.5", "v1", "1.2.3-debian", "9-alpine", "main", "V9.9.9", "99.99.99-rc.x", "build-", "9999"]


@pytest.mark.parametrize("style", STYLES)
def test_derived_policy_picks_the_newest_of_the_style(style: str) -> None:
    channel = STYLES[style]

    @given(st.lists(of_style(style), min_size=1, max_size=8), st.lists(st.sampled_from(OTHERS), max_size=4))
    def picks(drawn: list[tuple[tuple[Any, ...], str]], others: list[str]) -> None:
        current = drawn[0][1]
        derived = derive(channel, current, ">=0.0.0-0" if channel in ("stable", "prerelease") else None)
        newest = max(drawn, key=lambda pair: pair[0])
        assume(len({pair[0] for pair in drawn}) == len({pair[1] for pair in drawn}))

        selection = select([*(tag for _, tag in drawn), *others], derived.policy, derived.filter_tags)

        assert newest[1] == selection.tag
        assert [finding for finding in self_test(derived, current) if finding.severity == "error"] == []

    picks()


@pytest.mark.parametrize("style", STYLES)
def test_derived_pattern_admits_no_tag_of_another_style(style: str) -> None:
    samples = {
        "three": "1.2.3", "v-three": "v1.2.3", "three-alpine": "1.2.3-alpine", "two": "1.2", "one-slim": "1-slim",
        "four": "1.2.3.4", "ls": "1.2.3-ls4", "rc-glued": "1.2.3-rc4", "rc-dotted": "1.2.3-rc.4", "date": "2024-07-01",
        "number": "build-7", "hash-time": "main-1a2b3c4-1700000000",
    }  # fmt: skip
    own = samples.pop(style, "2024.07.1")
    channel = STYLES[style]
    pattern = Pattern(derive(channel, own, "*" if channel in ("stable", "prerelease") else None).pattern or "")
    # The releases of its own form belong to a pre-release style; a calendar version has the form of any other.
    akin = {"rc-dotted": {"1.2.3"}, "calver": {"1.2.3"}}.get(style, set())

    assert pattern.matches(own)
    assert akin == {tag for tag in [*samples.values(), *OTHERS] if pattern.matches(tag)}


def found(policy: Any, filter_tags: Any, tag: str) -> list[str]:
    findings = self_test({"policy": policy, "filterTags": filter_tags}, tag)
    assert all(finding.message and finding.hint and "\n" not in finding.message for finding in findings)
    return [f"{finding.severity}: {finding.code_name}" for finding in findings]


NUMERICAL: dict[str, Any] = {"numerical": {}}
STRICT = {"pattern": f"^{THREE}$"}
DIGITS = {"pattern": "^b-(?P<n>[0-9]+)$", "extract": "$n"}


def semver(range_: str) -> dict[str, Any]:
    return {"semver": {"range": range_}}


@pytest.mark.parametrize(
    ("policy", "filter_tags", "tag", "expected"),
    [
        (semver("1.x"), STRICT, "1.2.3", []),
        (semver("1.x"), None, "1.2.3", []),
        ({"alphabetical": {"order": "asc"}}, {"pattern": "^rolling$"}, "rolling", []),
        ({"numerical": {"order": "asc"}}, DIGITS, "b-12", []),
        ({}, None, "1.2.3", ["error: policy-missing"]),
        (semver("1.x"), {"pattern": "(?!rc)"}, "1.2.3", ["error: pattern-syntax"]),
        (semver("1.x"), {"pattern": "^1"}, "1.2.3", ["warning: pattern-unanchored"]),
        (semver("1.x"), {"pattern": "^1.*|.*$"}, "1.2.3", ["warning: pattern-unanchored"]),
        (semver("1.x"), STRICT, "v1.2.3", ["error: tag-unmatched"]),
        (semver("1.x"), {"pattern": "^(.*)$", "extract": "$v"}, "1.2.3", ["error: extract-unknown-group"]),
        (semver("1.x"), {"pattern": "^(.*)$", "extract": "1.0.0"}, "1.2.3", ["error: extract-constant"]),
        (semver("1.x"), {"pattern": "^(?P<v>.*)$", "extract": "${v"}, "1.2.3", ["error: extract-constant"]),
        (
            semver("*"),
            {"pattern": r"^([0-9]+)\.[0-9.]+$", "extract": "$1.0.0"},
            "1.2.3",
            ["error: extract-ties"],
        ),
        (semver("*"), {"pattern": r"^v(.*)-k3s([0-9]+)$", "extract": "$1+$2"}, "v1.2.3-k3s1", ["error: extract-ties"]),
        (semver("*-0"), {"pattern": r"^v(.*)-k3s([0-9]+)$", "extract": "$1-$2"}, "v1.2.3-k3s1", []),
        (NUMERICAL, {"pattern": "^[0-9a-f]+-([0-9]+)$", "extract": "$1"}, "1a2b3c4-1700000000", []),
        (semver("1.x<2"), None, "1.2.3", ["error: range-syntax"]),
        (semver(">2 <1"), None, "1.2.3", ["error: range-empty"]),
        (semver("18.x"), None, "18.6", ["error: tag-unparsable"]),
        (semver("2.x"), None, "1.2.3", ["warning: range-above-tag"]),
        (semver("<1"), None, "1.2.3", ["error: range-below-tag"]),
        (semver("1.1.x || 1.3.x"), None, "1.2.3", ["error: range-excludes-tag"]),
        (semver("*"), None, "1.2.3-alpine", ["error: range-shuts-out-prerelease"]),
        (semver(">=1.2.3"), None, "1.2.3-rc.1", ["warning: range-shuts-out-prerelease"]),
        (semver("1.2.3"), None, "1.2.3-rc.1", ["warning: range-above-tag"]),
        (semver("*-0"), None, "1.2.3-rc1", ["warning: order-prerelease-as-text"]),
        ({"alphabetical": {"order": "desc"}}, None, "a", ["warning: order-descending"]),
        ({"numerical": {"order": "newest"}}, DIGITS, "b-12", ["error: order-unknown"]),
        ({"alphabetical": {"order": "asc"}}, {"pattern": "^[0-9a-f]+$"}, "1a2b3c4", ["warning: order-of-hashes"]),
        (NUMERICAL, {"pattern": "^b-(?P<n>.*)$", "extract": "$n"}, "b-12", ["warning: extract-numbers-unproven"]),
        (
            NUMERICAL,
            {"pattern": "^b(-(?P<n>[0-9]+))?$", "extract": "$n"},
            "b-12",
            ["warning: extract-numbers-unproven"],
        ),
        (NUMERICAL, {"pattern": "^(a|b)-(?P<n>[0-9]+)$", "extract": "$n"}, "b-12", []),
        (NUMERICAL, {"pattern": "^b-(?P<n>[0-9]*)$", "extract": "$n"}, "b-12", ["warning: extract-numbers-unproven"]),
        (NUMERICAL, None, "12", ["warning: extract-numbers-unproven"]),
        (NUMERICAL, {"pattern": r"^\d{8}$"}, "20240701", []),
        (
            NUMERICAL,
            {"pattern": r"^(?P<t>\d{8}-\d{6})$", "extract": "$t"},
            "20240701-153652",
            ["error: tag-not-numeric"],
        ),
        (NUMERICAL, {"pattern": "^[0-9]+$"}, "20240701123456789", ["error: order-number-inexact"]),
    ],
)
def test_self_test_finds(policy: Any, filter_tags: Any, tag: str, expected: list[str]) -> None:
    assert expected == found(policy, filter_tags, tag)


def test_self_test_hints_at_the_opened_range() -> None:
    (finding,) = self_test({"policy": {"semver": {"range": ">=2.0.300"}}}, "2.0.330-63-gc1cfb6")

    assert finding.hint == "write `>=2.0.300-0`"


def test_self_test_of_a_prerelease_channel_asks_for_prereleases() -> None:
    (finding,) = self_test(derive("prerelease", "2.0.0", "2.x"), "2.0.0")

    assert (finding.code_name, finding.hint) == ("range-without-prereleases", "write `2.x-0`")


@pytest.mark.parametrize("tag", ["1.2.3", "v1.2-slim", "1.2.3-rc1", "2024-07-01", "main-1a2b3c4-1700000000", "latest"])
def test_suggested_filter_admits_the_tag(tag: str) -> None:
    pattern = suggest_filter(tag).removeprefix("`filterTags: {pattern: '").partition("'")[0]

    assert Pattern(pattern).matches(tag)


@pytest.mark.parametrize(
    ("pattern", "hint"),
    [("1.x", "write `^1.x$`"), ("^a|b$", "write `^(?:^a|b$)$`"), ("^1", "write `^1$`"), (r"1\$", r"write `^1\$$`")],
)
def test_unanchored_pattern_is_shown_anchored(pattern: str, hint: str) -> None:
    findings = self_test({"policy": {"alphabetical": {}}, "filterTags": {"pattern": pattern}}, "1.x")

    assert hint in [finding.hint for finding in findings if finding.code_name == "pattern-unanchored"]
