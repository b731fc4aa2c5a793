"""Tags and an image policy in, the tag that Flux's image-reflector-controller selects out, with the reasons.

`tags` are plain texts; policies and tag filters have the form of `ImagePolicy.spec.policy` and `.filterTags`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from render.flux.regex import Pattern, PatternError
from render.flux.semver import Constraint, RangeError, Version, VersionError, parse_version
from render.structs import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DEFAULT_EXCLUSIONS = (r"^.*\.sig$",)
"""What an ImageRepository without `exclusionList` leaves out."""

_DIGITS = r"[0-9]+(?:_[0-9]+)*"
_HEX_DIGITS = r"[0-9a-fA-F]+(?:_[0-9a-fA-F]+)*"
_DECIMAL = rf"[+-]?(?:{_DIGITS}(?:\.(?:{_DIGITS})?)?|\.{_DIGITS})(?:[eE][+-]?{_DIGITS})?"
_HEX = rf"[+-]?0[xX](?:_?{_HEX_DIGITS}(?:\.(?:{_HEX_DIGITS})?)?|\.{_HEX_DIGITS})[pP][+-]?{_DIGITS}"
_SPECIAL = r"[+-]?inf(?:inity)?|nan"
# A Go map of up to eight entries is visited from a random place on, in the order of insertion; a larger one anyhow.
_ORDERED_MAP = 8


class PolicyError(ValueError):
    """A policy that the controller refuses; the text is the controller's."""


@struct(frozen=True)
class Candidate:
    """A tag that the policy could select, and the text it is ordered by."""

    tag: str
    value: str


@struct(frozen=True)
class Selection:
    """What a policy makes of a list of tags."""

    tag: str | None
    """The selected tag; None on an error, and where it is left to chance."""
    undetermined: tuple[str, ...]
    """The tags among which the controller's map order decides; empty where one is certain."""
    error: str | None
    """As in the object's Ready condition; without the tag where chance decides which bad tag is named."""
    candidates: tuple[Candidate, ...]
    """Tags in question, the selected first; equal ones in descending order of their bytes."""
    rejected: tuple[tuple[str, str], ...]
    """The other tags, each with the reason."""


def parse_number(text: str) -> float:
    """Read a number as Go's `ParseFloat` with 64 bits does; raise ValueError for none and for one too large."""
    if re.fullmatch(_SPECIAL, text, re.IGNORECASE | re.ASCII):
        return float(text)
    if re.fullmatch(_DECIMAL, text):
        number = float(text.replace("_", ""))
    elif re.fullmatch(_HEX, text):
        try:
            number = float.fromhex(text.replace("_", ""))
        except OverflowError:
            number = math.inf
    else:
        raise ValueError(f"`{text}` is not a number")
    if math.isinf(number):
        raise ValueError(f"`{text}` does not fit a 64-bit float")
    return number


def exclude(tags: Sequence[str], exclusions: Sequence[str] | None = None) -> list[str]:
    """Drop the tags that an ImageRepository's `exclusionList` excludes.

    The patterns are searched for anywhere in a tag; None or an empty list stands for the default, a list replaces it.
    Raise PatternError for one that does not compile: the controller's scan fails then.
    """
    patterns = [Pattern(text) for text in exclusions or DEFAULT_EXCLUSIONS]
    return [tag for tag in tags if not any(pattern.matches(tag) for pattern in patterns)]


def select(
    tags: Sequence[str],
    policy: Mapping[str, Any] | None,
    filter_tags: Mapping[str, Any] | None = None,
) -> Selection:
    """Return what the controller selects from the tags of a repository, whatever order they come in.

    Of several policies in one object semver comes before alphabetical, and that before numerical. `filter_tags`
    without a pattern admits every tag, but makes the outcome of ties a matter of chance as any filter does.
    """
    try:
        ranking = _ranking(policy or {})
    except PolicyError as error:
        return Selection(None, (), f"invalid policy: {error}", (), ())
    if not tags:
        return Selection(None, (), "no tags in database", (), ())
    stored = sorted(tags, reverse=True)
    rejected: list[tuple[str, str]] = []
    if filter_tags is None:
        candidates = [Candidate(tag, tag) for tag in stored]
    else:
        try:
            candidates = _filter(stored, filter_tags, rejected)
        except PatternError as broken:
            pattern = filter_tags.get("pattern") or ""
            text = f"failed to filter tags: invalid regular expression pattern '{pattern}': {broken.upstream}"
            return Selection(None, (), text, (), ())
    if not candidates:
        return Selection(None, (), "version list argument cannot be empty", (), tuple(rejected))
    return ranking.choose(candidates, rejected, by_chance=filter_tags is not None)


def _filter(stored: Sequence[str], filter_tags: Mapping[str, Any], rejected: list[tuple[str, str]]) -> list[Candidate]:
    """Keep the tags that match, by their extracted text: of several with one text the last, so the least, stays."""
    pattern = Pattern(filter_tags.get("pattern") or "")
    extract = filter_tags.get("extract") or ""
    filtered: dict[str, str] = {}
    for tag in stored:
        value = pattern.expand(extract or "$0", tag)
        if value is None:
            rejected.append((tag, f"does not match the pattern `{pattern.text}`"))
            continue
        if not extract:
            value = tag
        if filtered.get(value, tag) != tag:
            rejected.append((filtered[value], f"gives way to `{tag}`, from which `{value}` is extracted too"))
        filtered[value] = tag
    return [Candidate(tag, value) for value, tag in filtered.items()]


def _ranking(policy: Mapping[str, Any]) -> _Semver | _Alphabetical | _Numerical:
    if (semver := policy.get("semver")) is not None:
        try:
            return _Semver(Constraint.parse(semver.get("range") or ""))
        except RangeError as error:
            raise PolicyError(error.upstream) from error
    for kind, ranking in (("alphabetical", _Alphabetical), ("numerical", _Numerical)):
        if (choice := policy.get(kind)) is not None:
            order = (choice.get("order") or "asc").upper()
            if order not in ("ASC", "DESC"):
                raise PolicyError(f"invalid order argument provided: '{order}', must be one of: ASC, DESC")
            return ranking(descending=order == "DESC")
    raise PolicyError("given ImagePolicyChoice object is invalid")


def _chosen(best: Sequence[Candidate], ranked: Sequence[Candidate], rejected: Sequence[tuple[str, str]]) -> Selection:
    """Wrap up: one best candidate is selected, several are left to chance."""
    tags = sorted({candidate.tag for candidate in best}, reverse=True)
    certain = len(tags) == 1
    first = [candidate for candidate in ranked if candidate in best]
    rest = [candidate for candidate in ranked if candidate not in best]
    return Selection(
        tags[0] if certain else None, () if certain else tuple(tags), None, (*first, *rest), tuple(rejected)
    )


class _Semver:
    """The greatest version in the range; of equal ones the first visited."""

    def __init__(self, constraint: Constraint) -> None:
        self._constraint = constraint

    def choose(self, candidates: Sequence[Candidate], rejected: list[tuple[str, str]], *, by_chance: bool) -> Selection:
        versions: list[tuple[Version, Candidate]] = []
        for candidate in candidates:
            try:
                version = parse_version(candidate.value)
            except VersionError as error:
                rejected.append((candidate.tag, str(error)))
                continue
            if self._constraint.check(version):
                versions.append((version, candidate))
            else:
                rejected.append((candidate.tag, self._outside(version)))
        if not versions:
            nothing = "unable to determine latest version from provided list"
            return Selection(None, (), nothing, (), tuple(rejected))
        versions.sort(key=lambda pair: pair[0], reverse=True)
        ranked = [candidate for _, candidate in versions]
        best = [candidate for version, candidate in versions if version == versions[0][0]]
        return _chosen(best if by_chance else best[:1], ranked, rejected)

    def _outside(self, version: Version) -> str:
        range_ = self._constraint.text
        if version.prerelease and not self._constraint.admits_prerelease:
            return f"`{version.original}` is a pre-release, and the range `{range_}` admits none"
        return f"`{version.original}` is not in the range `{range_}`"


class _Alphabetical:
    """The greatest text by its bytes, or the least."""

    def __init__(self, *, descending: bool) -> None:
        self._descending = descending

    def choose(self, candidates: Sequence[Candidate], rejected: list[tuple[str, str]], *, by_chance: bool) -> Selection:
        del by_chance  # no two texts are equal
        ranked = sorted(candidates, key=lambda candidate: candidate.value, reverse=not self._descending)
        return _chosen(ranked[:1], ranked, rejected)


class _Numerical:
    """The greatest number, or the least; of equal ones the last visited. One text that is no number is fatal."""

    def __init__(self, *, descending: bool) -> None:
        self._descending = descending

    def choose(self, candidates: Sequence[Candidate], rejected: list[tuple[str, str]], *, by_chance: bool) -> Selection:
        numbers: list[tuple[float, Candidate]] = []
        bad = []
        for candidate in candidates:
            try:
                numbers.append((parse_number(candidate.value), candidate))
            except ValueError as error:
                bad.append(candidate.value)
                rejected.append((candidate.tag, str(error)))
        ranked = [candidate for _, candidate in sorted(numbers, key=self._rank, reverse=True)]
        if bad:
            text = "failed to parse invalid numeric value"
            named = text if by_chance and len(bad) > 1 else f"{text} '{bad[0]}'"
            return Selection(None, (), named, tuple(ranked), tuple(rejected))
        return _chosen(self._best(numbers, by_chance=by_chance), ranked, rejected)

    def _rank(self, pair: tuple[float, Candidate]) -> float:
        number = -pair[0] if self._descending else pair[0]
        return -math.inf if math.isnan(number) else number

    def _best(self, numbers: Sequence[tuple[float, Candidate]], *, by_chance: bool) -> list[Candidate]:
        if not by_chance:
            return [self._last_standing(numbers)]
        if not any(math.isnan(number) for number, _ in numbers):
            top = max(map(self._rank, numbers))
            return [pair[1] for pair in numbers if self._rank(pair) == top]
        # Not-a-number beats everything and is beaten by everything, so the order of visits decides.
        if len(numbers) > _ORDERED_MAP:
            return [candidate for _, candidate in numbers]
        return [self._last_standing([*numbers[start:], *numbers[:start]]) for start in range(len(numbers))]

    def _last_standing(self, numbers: Sequence[tuple[float, Candidate]]) -> Candidate:
        best, chosen = numbers[0]
        for number, candidate in numbers[1:]:
            worse = number > best if self._descending else number < best
            if not worse:
                best, chosen = number, candidate
        return chosen
