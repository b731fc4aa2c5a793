"""A range in, its place in Flux's order of versions out; also the door to `render.flux.semver_version`.

A range becomes half-open intervals over the total order of versions, so that membership, emptiness and its place
relative to a version are exact, never sampled. The grammar and its oddities are those of the Masterminds semver
library (v3, as pinned by Flux 2.7 and later).
"""

from __future__ import annotations

import re
from functools import lru_cache

from render.flux.semver_version import (
    FIRST_PRERELEASE,
    IDENTIFIERS,
    MAX_PART,
    RELEASE,
    Identifier,
    Key,
    Version,
    VersionError,
    parse_loose,
    parse_part,
    parse_version,
    prerelease_key,
)
from render.patterns import lazy
from render.structs import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal, TypeAlias

Position: TypeAlias = 'Literal["inside", "above", "below", "excluded"]'

__all__ = [
    "Constraint",
    "Position",
    "RangeError",
    "Version",
    "VersionError",
    "go_quote",
    "parse_loose",
    "parse_version",
]

Interval = tuple[Key, Key]
"""From the first key, included, to the second, excluded."""

_START: Key = (0, 0, 0, FIRST_PRERELEASE)
_END: Key = (MAX_PART + 1, 0, 0, FIRST_PRERELEASE)
_EVERYTHING: tuple[Interval, ...] = ((_START, _END),)

# Upstream's class for a part of a range's version holds `|` by accident; such a part is refused when it is read.
_PART = r"[0-9|xX*]+"
_PARTIAL = rf"v?({_PART})(?:\.({_PART}))?(?:\.({_PART}))?(?:-({IDENTIFIERS}))?(?:\+{IDENTIFIERS})?"
_SPACE = "\t\n\f\r "
_COMPARATOR = lazy(rf"(!=|>=|=>|<=|=<|~>|=|>|<|~|\^|)[{_SPACE}]*({_PARTIAL})")
_FOURTH_PART = lazy(rf"\.(0|[1-9][0-9]*)(?=[{_SPACE},]|\Z)")
_HYPHEN = lazy(rf"({_PARTIAL})[{_SPACE}]+-[{_SPACE}]+({_PARTIAL})")


class RangeError(ValueError):
    """A text that is no range; `position` is the 0-based offset of the fault, `upstream` the controller's own text."""

    def __init__(self, message: str, position: int, upstream: str) -> None:
        super().__init__(message)
        self.position = position
        self.upstream = upstream


@struct(frozen=True)
class _Comparator:
    """One comparison of a range, such as `>=1.2`."""

    operator: str
    major: int
    minor: int
    patch: int
    pre: tuple[int | Identifier, ...]
    known: int
    """Parts given before the first wildcard: 0 to 3."""
    start: int
    """Offset in the text it was read from."""
    end: int
    """Offset just after its numeric parts."""

    def intervals(self, *, prereleases: bool) -> tuple[Interval, ...]:
        """Return the versions it admits; with pre-releases, `hole` has to be taken away from them."""
        exact = (self.major, self.minor, self.patch, self.pre)
        match self.operator:
            case "!=":
                return self._unequal(exact, prereleases=prereleases)
            case ">":
                return ((self._after(), _END),) if self.known in (1, 2) else ((_successor(exact), _END),)
            case "<":
                return ((_START, exact),)
            case ">=" | "=>":
                return ((exact, _END),)
            case "<=" | "=<":
                return ((_START, _successor(exact) if self.known == 3 else self._after()),)
            case "^":
                return ((exact, self._caret_end()),)
            case "~" | "~>":
                return ((exact, self._tilde_end()),)
            case _:
                return ((exact, _successor(exact) if self.known == 3 else self._tilde_end()),)

    def hole(self) -> tuple[int, int, tuple[int | Identifier, ...]] | None:
        """Return major, minor and pre-release of the versions that `!=1.2.x` takes away when pre-releases count."""
        return (self.major, self.minor, self.pre) if self.operator == "!=" and self.known == 2 else None

    def _unequal(self, exact: Key, *, prereleases: bool) -> tuple[Interval, ...]:
        if self.known in (0, 3):
            return (_START, exact), (_successor(exact), _END)
        if self.known == 2 and prereleases:
            return _EVERYTHING
        return (_START, _first(self.major, self.minor if self.known == 2 else 0, 0)), (self._after(), _END)

    def _after(self) -> Key:
        """Return the first version after all those that share the known parts; `*` counts as `0.0` here."""
        return _first(self.major + 1, 0, 0) if self.known == 1 else _first(self.major, self.minor + 1, 0)

    def _tilde_end(self) -> Key:
        # Upstream lets `~0.0.0` and `*` reach up to anything.
        if self.known in (0, 3) and (self.major, self.minor, self.patch) == (0, 0, 0):
            return _END
        return self._after()

    def _caret_end(self) -> Key:
        if self.major or self.known == 1:
            return _first(self.major + 1, 0, 0)
        if self.minor or self.known == 2:
            return _first(0, self.minor + 1, 0)
        return _first(0, 0, self.patch + 1)


@struct(frozen=True)
class _Group:
    """The comparators between two `||`: intervals in ascending order, less the versions in the holes."""

    intervals: tuple[Interval, ...]
    holes: frozenset[tuple[int, int, tuple[int | Identifier, ...]]]
    prereleases: bool

    def admits_between(self, low: Key, high: Key) -> bool:
        """Say whether a version from `low`, included, to `high`, excluded, is admitted."""
        return any(self._first_admitted(max(low, start), min(high, end)) for start, end in self.intervals)

    def _first_admitted(self, low: Key, high: Key) -> bool:
        key = _representable(low)
        while True:
            if not self.prereleases and key[3] != RELEASE:
                key = (*key[:3], RELEASE)
            if key >= high:
                return False
            if (key[0], key[1], key[3]) not in self.holes:
                return True
            key = _representable(_successor(key))


class Constraint:
    """A range: groups of comparators of which one has to admit a version."""

    __slots__ = ("_comparators", "_groups", "_rewritten", "text")

    def __init__(self, text: str, rewritten: str, comparators: list[list[_Comparator]]) -> None:
        self.text = text
        self._rewritten = rewritten
        self._comparators = comparators
        self._groups = [_group(group) for group in comparators]

    @classmethod
    @lru_cache(maxsize=1024)
    def parse(cls, text: str) -> Constraint:
        """Read a range; raise RangeError where the library refuses it."""
        rewritten = _rewrite_hyphens(text)
        comparators = []
        offset = 0
        for part in rewritten.split("||"):
            comparators.append(_comparators(rewritten, offset, offset + len(part), text))
            offset += len(part) + 2
        return cls(text, rewritten, comparators)

    def check(self, version: Version) -> bool:
        """Say whether the range admits the version."""
        key = version.key
        return any(group.admits_between(key, _successor(key)) for group in self._groups)

    def position(self, version: Version) -> Position:
        """Say how the range lies towards the version.

        `inside`: it admits it. `above`: it admits only greater versions. `below`: only smaller ones. `excluded`: it
        admits some on both sides, or none at all.
        """
        if self.check(version):
            return "inside"
        smaller = any(group.admits_between(_START, version.key) for group in self._groups)
        greater = any(group.admits_between(_successor(version.key), _END) for group in self._groups)
        if smaller == greater:
            return "excluded"
        return "below" if smaller else "above"

    @property
    def admits_prerelease(self) -> bool:
        """Whether a comparator opens the range, or one of its alternatives, to pre-releases."""
        return any(group.prereleases for group in self._groups)

    @property
    def is_empty(self) -> bool:
        """Whether no version at all can lie in the range."""
        return not any(group.admits_between(_START, _END) for group in self._groups)

    def with_prereleases(self) -> str:
        """Return the range with `-0` on its bounds, so that every alternative admits pre-releases.

        Bounds become those of a scheme that has pre-releases only: `<5` leaves out all of 5, `<=4.2.3` still takes in
        all of 4.2.3. Hyphen ranges come back as two comparators.
        """
        text = self._rewritten
        for comparators, group in reversed(list(zip(self._comparators, self._groups, strict=True))):
            if group.prereleases:
                continue
            opened = [
                c for c in comparators if c.operator != "!=" and not (c.operator in ("<=", "=<") and c.known == 3)
            ]
            for comparator in reversed(opened):
                text = f"{text[: comparator.end]}-0{text[comparator.end :]}"
            if not opened:
                start = comparators[0].start
                text = f"{text[:start]}>=0.0.0-0 {text[start:]}"
        return text.strip(_SPACE)


def _rewrite_hyphens(text: str) -> str:
    """Turn every `A - B` into two comparators, textually and before anything else, as upstream does."""
    if "-" not in text:
        return text
    result = text
    free = 0
    for match in _HYPHEN.finditer(text):
        start, end = match.span()
        # Upstream swallows the spaces around a hyphen range with it, and replaces the first place with that text.
        while start > free and text[start - 1] in _SPACE:
            start -= 1
        free = end = _skip(text, end, len(text))
        result = result.replace(text[start:end], f">= {match[1]}, <= {match[6]} ", 1)
    return result


def _comparators(text: str, start: int, end: int, original: str) -> list[_Comparator]:
    matches = _scan(text, start, end, original)
    return [_comparator(match, original) for match in matches]


def _scan(text: str, start: int, end: int, original: str) -> list[re.Match[str]]:
    """Split a group at spaces and commas; its whole shape is judged before any version in it."""
    matches = []
    at = _skip(text, start, end)
    while True:
        match = _COMPARATOR.match(text, at, end)
        if match is None:
            raise _improper(text, start, end, at, original)
        matches.append(match)
        after = _skip(text, match.end(), end)
        if after == end:
            return matches
        if text[after] == ",":
            after = _skip(text, after + 1, end)
        elif after == match.end():
            raise _improper(text, start, end, after, original, _four_parts(match, after, end))
        at = after


def _four_parts(match: re.Match[str], after: int, end: int) -> str:
    """Say what to write where a fourth numeric part follows a comparison; empty where something else does."""
    fourth = _FOURTH_PART.match(match.string, after, end)
    if fourth is None or not (match[5] or "").isdigit() or match.end() != match.end(5):
        return ""
    return f"`{match[2]}{fourth[0]}` has four parts; write `{match[0]}-{fourth[1]}`"


def _skip(text: str, start: int, end: int) -> int:
    while start < end and text[start] in _SPACE:
        start += 1
    return start


def _improper(text: str, start: int, end: int, at: int, original: str, what: str = "") -> RangeError:
    if not what:
        what = f"`{text[at:end].rstrip(_SPACE)}` is no comparison" if at < end else "a version is missing"
    if not original.strip(_SPACE):
        what = "it is empty"
    message = f"`{original}` is not a semver range: {what}"
    return RangeError(message, _position(text, at, original), f"improper constraint: {go_quote(text[start:end])}")


def _position(text: str, at: int, original: str) -> int:
    """Return where an offset of the rewritten text lies in the original: past the first hyphen range, that range."""
    same = next(
        (n for n, (a, b) in enumerate(zip(text, original, strict=False)) if a != b), min(len(text), len(original))
    )
    return min(at, same)


def _comparator(match: re.Match[str], original: str) -> _Comparator:
    parts: list[int] = []
    try:
        for part in match.group(3, 4, 5):
            if part in {None, "x", "X", "*"}:
                break
            if not part.isdigit():
                raise VersionError(f"`{match[2]}` is neither a version nor a wildcard")
            parts.append(parse_part(part, match[2]))
        pre = prerelease_key(match[6] or "", match[2])
    except VersionError as error:
        message = f"`{original}` is not a semver range: {error}"
        raise RangeError(
            message, _position(match.string, match.start(2), original), "constraint parser error"
        ) from error
    major, minor, patch = (*parts, 0, 0, 0)[:3]
    end = max(match.end(group) for group in (3, 4, 5))
    return _Comparator(match[1], major, minor, patch, pre, len(parts), match.start(), end)


def _group(comparators: list[_Comparator]) -> _Group:
    prereleases = any(comparator.pre != RELEASE for comparator in comparators)
    intervals = _EVERYTHING
    for comparator in comparators:
        admitted = comparator.intervals(prereleases=prereleases)
        clipped = [(max(a, c), min(b, d)) for a, b in intervals for c, d in admitted]
        intervals = tuple((low, high) for low, high in clipped if low < high)
    holes = (comparator.hole() for comparator in comparators) if prereleases else ()
    return _Group(intervals, frozenset(hole for hole in holes if hole is not None), prereleases)


def _first(major: int, minor: int, patch: int) -> Key:
    """Return the least version with these three parts: its pre-release `0`."""
    return (major, minor, patch, FIRST_PRERELEASE)


def _successor(key: Key) -> Key:
    """Return the next version in the order: versions are discrete, `1.2.3` is followed by `1.2.4-0`."""
    if key[3] == RELEASE:
        return _first(key[0], key[1], key[2] + 1)
    return (*key[:3], (*key[3], (0, 0)))


def _representable(key: Key) -> Key:
    """Carry parts that exceed 64 bits."""
    major, minor, patch, _ = key
    if patch > MAX_PART:
        key = major, minor, patch, _ = _first(major, minor + 1, 0)
    return _first(major + 1, 0, 0) if minor > MAX_PART else key


def go_quote(text: str) -> str:
    """Quote a text as Go's `%q` does."""
    escapes = {"\a": r"\a", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\v": r"\v"}
    escapes |= {'"': r"\"", "\\": r"\\"}
    out = []
    for char in text:
        code = ord(char)
        if char in escapes:
            out.append(escapes[char])
        elif char == " " or char.isprintable():
            out.append(char)
        elif code < 0x80:
            out.append(f"\\x{code:02x}")
        else:
            out.append(f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}")
    return f'"{"".join(out)}"'
