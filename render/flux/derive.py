"""An image's update policy and its current tag in, findings out: what would go wrong with it in a cluster.

Also the door to `render.flux.channels`, which derives policies.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from render.flux.channels import (
    CHANNELS,
    EXACT_BELOW,
    KINDS,
    Derived,
    DeriveError,
    derive,
    suggest_filter,
)
from render.flux.policy import parse_number
from render.flux.regex import Pattern, PatternError, quote, template_parts
from render.flux.regex_shape import anchor, anchored, gives_digits
from render.flux.semver import Constraint, RangeError, Version, VersionError, parse_version
from render.flux.tagform import is_hash, parse_form
from render.patterns import lazy
from render.structs import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal

__all__ = ["CHANNELS", "KINDS", "DeriveError", "Derived", "Finding", "derive", "self_test", "suggest_filter"]

_GLUED = lazy(r"(?:^|[.-])(?:alpha|beta|rc|pre|preview|dev)[0-9]+(?:$|[.-])", re.IGNORECASE)


@struct(frozen=True)
class Finding:
    """One fault of a policy."""

    severity: Literal["error", "warning"]
    code_name: str
    """A stable name in kebab case; its first word is at fault: policy, pattern, extract, tag, range or order."""
    message: str
    """One line, lower case, no full stop."""
    hint: str = ""
    """What to write instead."""


def self_test(subject: Derived | Mapping[str, Any], tag: str) -> list[Finding]:
    """Try a policy on the current tag, and return what speaks against it.

    `subject` is a derived policy or a mapping with `policy` and `filterTags` as in an ImagePolicy's spec. A later
    check runs only where an earlier one leaves it a meaning.
    """
    if isinstance(subject, Derived):
        policy, filter_tags, channel = subject.policy, subject.filter_tags or {}, subject.channel
    else:
        policy, filter_tags, channel = subject.get("policy") or {}, subject.get("filterTags") or {}, "custom"
    kind = next((kind for kind in KINDS if policy.get(kind) is not None), None)
    if kind is None:
        message = "the policy has none of `semver`, `alphabetical` and `numerical`, so it selects nothing"
        return [Finding("error", "policy-missing", message, "write `semver: {range: …}`")]
    findings: list[Finding] = []
    value = _filtered(filter_tags, tag, findings)
    if any(finding.code_name == "pattern-syntax" for finding in findings):
        return findings
    if kind == "semver":
        findings += _semver(policy[kind].get("range") or "", tag, value, channel)
    else:
        findings += _ordered(kind, policy[kind].get("order") or "asc", filter_tags, value)
    return findings


def _filtered(filter_tags: Mapping[str, Any], tag: str, findings: list[Finding]) -> str | None:
    """Return what the filter makes of the tag, None where it is stopped."""
    text, extract = filter_tags.get("pattern") or "", filter_tags.get("extract") or ""
    try:
        pattern = Pattern(text)
    except PatternError as error:
        hint = "write it in RE2, which has neither look-around nor back-references"
        findings.append(Finding("error", "pattern-syntax", str(error), hint))
        return None
    if text and not anchored(text):
        message = f"the pattern `{text}` is not anchored, so it also matches tags that merely contain a match"
        findings.append(Finding("warning", "pattern-unanchored", message, f"write `{anchor(text)}`"))
    findings += _extract(pattern, extract)
    value = pattern.expand(extract, tag) if extract else tag
    if not pattern.matches(tag):
        message = f"the current tag `{tag}` does not match the pattern `{text}`"
        findings.append(Finding("error", "tag-unmatched", message, f"write {suggest_filter(tag)}"))
        return None
    if any(finding.code_name.startswith("extract-") for finding in findings):
        return None
    twin = _twin(pattern, extract, tag)
    if twin is not None:
        message = f"the policy cannot tell `{tag}` from `{twin}`: `extract` makes them equal"
        findings.append(Finding("error", "extract-ties", message, f"write {suggest_filter(tag)}"))
    return value


def _twin(pattern: Pattern, extract: str, tag: str) -> str | None:
    """Return a tag with another number in its version or build counter that the policy would take for equal."""
    form = parse_form(tag) if extract else None
    if form is None or is_hash(tag) or (form.prefix not in ("", "v") and len(form.numbers) < 2):
        return None
    start = len(form.prefix)
    spans = []
    for number in form.numbers:
        spans.append((start, start + len(number)))
        start += len(number) + 1
    if tag[start - 1 : start].isalnum():
        return None  # what looks like a number is the head of a word or a hash
    if form.counter:
        spans.append((len(tag) - len(form.counter), len(tag)))
    value = _ordering(pattern.expand(extract, tag))
    for begin, end in spans:
        twin = f"{tag[:begin]}{int(tag[begin:end]) + 1}{tag[end:]}"
        if pattern.matches(twin) and _ordering(pattern.expand(extract, twin)) == value:
            return twin
    return None


def _ordering(value: str | None) -> Version | str | None:
    """Return what a policy compares: versions without their build metadata, other texts as they are."""
    try:
        return parse_version(value or "")
    except VersionError:
        return value


def _extract(pattern: Pattern, extract: str) -> Iterator[Finding]:
    """Look for templates that give every tag the same text, wholly or in part."""
    if not extract:
        return
    references = [name for _, name in template_parts(extract) if name is not None]
    known = [f"`${name}`" for name in pattern.names] or [f"`${number}`" for number in range(1, pattern.groups + 1)]
    hint = (
        f"write {' or '.join(known)}" if known else "name a group in the pattern, as in `(?P<v>[0-9]+)`, and write `$v`"
    )
    for name in references:
        if not pattern.group_numbers(name):
            message = f"`extract` refers to `${name}`, and the pattern has no such group, so it extracts nothing there"
            yield Finding("error", "extract-unknown-group", message, hint)
    if not references:
        message = f"`extract` refers to no group, so every tag becomes `{extract}` and chance decides between them"
        yield Finding("error", "extract-constant", message, hint)


def _semver(text: str, tag: str, value: str | None, channel: str) -> Iterator[Finding]:
    fault = ""
    try:
        constraint = Constraint.parse(text)
    except RangeError as error:
        fault = str(error)
    if fault:
        yield Finding("error", "range-syntax", fault, "write a range such as `1.x`, `~1.2` or `>=1.2.0 <2.0.0`")
        return
    if constraint.is_empty:
        message = f"no version at all lies in the range `{text}`, so the policy selects nothing"
        yield Finding(
            "error", "range-empty", message, "write comparisons that one version can meet, or join them by `||`"
        )
        return
    if value is None:
        return
    try:
        version = parse_version(value)
    except VersionError as unparsable:
        fault = str(unparsable)
    if fault:
        message = fault if value == tag else f"{fault}, and that is what `extract` makes of the current tag `{tag}`"
        yield Finding("error", "tag-unparsable", message, f"write {suggest_filter(tag)}")
        return
    what = f"`{tag}`" if value == tag else f"`{tag}`, which is `{value}` to the policy"
    if constraint.admits_prerelease and _GLUED.search(version.prerelease):
        message = f"`{version.prerelease}` is compared as text, in which `rc10` comes before `rc9`"
        yield Finding(
            "warning",
            "order-prerelease-as-text",
            message,
            "extract it as a number of its own, as in `$v-$label.$number`",
        )
    if channel == "prerelease" and not constraint.admits_prerelease and not version.prerelease:
        message = f"channel `prerelease` follows no pre-release, because the range `{text}` admits none"
        yield Finding("warning", "range-without-prereleases", message, f"write `{constraint.with_prereleases()}`")
    position = constraint.position(version)
    if position == "inside":
        return
    opened = constraint.with_prereleases() if version.prerelease else text
    if version.prerelease and Constraint.parse(opened).check(version) and not constraint.admits_prerelease:
        message = f"the range `{text}` admits no pre-release, and the current tag {what} is one"
        # Where releases below the tag are admitted too, the policy may downgrade it.
        severity: Literal["error", "warning"] = "warning" if position == "above" else "error"
        yield Finding(severity, "range-shuts-out-prerelease", message, f"write `{opened}`")
    elif position == "above":
        message = f"the range `{text}` lies wholly above the current tag {what}"
        yield Finding(
            "warning",
            "range-above-tag",
            message,
            "widen it, or expect the next update to leave the current line",
        )
    elif position == "below":
        message = f"the range `{text}` lies wholly below the current tag {what}, so the policy would downgrade it"
        yield Finding("error", "range-below-tag", message, f"write, say, `{version.major}.x`")
    else:
        message = f"the range `{text}` leaves out the current tag {what}"
        yield Finding("error", "range-excludes-tag", message, "widen it, or correct the tag")


def _ordered(kind: str, order: str, filter_tags: Mapping[str, Any], value: str | None) -> Iterator[Finding]:
    if order.upper() not in ("ASC", "DESC"):
        yield Finding("error", "order-unknown", f"there is no order `{order}`", "write `asc` to select the greatest")
        return
    if order.upper() == "DESC":
        least = "lowest number" if kind == "numerical" else "alphabetically first tag"
        yield Finding(
            "warning", "order-descending", f"order `{order}` selects the {least}", "write `asc` to select the newest"
        )
    pattern, extract = filter_tags.get("pattern") or "", filter_tags.get("extract") or ""
    if kind == "numerical":
        yield from _numerical(pattern, extract, value)
    elif value is not None and is_hash(value) and pattern != f"^{quote(value)}$":
        message = (
            f"`{value}` looks like a commit hash, and the alphabetical order of hashes says nothing about their age"
        )
        yield Finding("warning", "order-of-hashes", message, "let tags start with a time, as in `<time>-<hash>`")


def _numerical(pattern: str, extract: str, value: str | None) -> Iterator[Finding]:
    digits = "capture digits alone, as in `(?P<n>[0-9]+)`, and write `extract: $n`"
    if value is not None:
        fault = ""
        try:
            number = parse_number(value)
        except ValueError as error:
            fault = f"{error}, and one such tag makes a numerical policy fail"
        if fault:
            yield Finding("error", "tag-not-numeric", fault, digits)
            return
        if not abs(number) < EXACT_BELOW:
            message = f"`{value}` is not below 2^53, from where on neighbours are equal to a numerical policy"
            yield Finding(
                "error", "order-number-inexact", message, "extract fewer digits, or write an alphabetical policy"
            )
    if not gives_digits(pattern, extract):
        message = "the policy is numerical, and nothing makes sure that it gets numbers: one other tag makes it fail"
        yield Finding("warning", "extract-numbers-unproven", message, digits)
