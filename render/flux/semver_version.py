"""A tag in, a version out: semantic versions as the Flux controllers read and order them.

The rules are those of the Masterminds semver library (v3, as pinned by Flux 2.7 and later) together with the narrower
rule by which Flux takes a tag for a version at all.
"""

from __future__ import annotations

from operator import attrgetter

from render.patterns import lazy
from render.structs import struct

Identifier = tuple[int, int | str]
"""`(0, number)` or `(1, text)`: numeric identifiers sort before the others."""
Key = tuple[int, int, int, tuple[int | Identifier, ...]]
"""Major, minor, patch, and `(1,)` for a release or `(0, *identifiers)` for a pre-release."""

MAX_PART = 2**64 - 1
RELEASE: tuple[int | Identifier, ...] = (1,)
FIRST_PRERELEASE: tuple[int | Identifier, ...] = (0, (0, 0))
"""The pre-release `0`, before which there is none."""

IDENTIFIERS = r"[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*"
_VERSION = lazy(rf"v?([0-9]+)(?:\.([0-9]+))?(?:\.([0-9]+))?(?:-({IDENTIFIERS}))?(?:\+({IDENTIFIERS}))?")


class VersionError(ValueError):
    """A text that is no version."""


@struct(frozen=True, order=True)
class Version:
    """A version; comparison is precedence, so build metadata, a leading `v` and leading zeros make no difference."""

    _values = attrgetter("key")
    key: Key
    major: int
    minor: int
    patch: int
    prerelease: str
    """Without its hyphen; empty for a release."""
    metadata: str
    original: str
    """The text as it was read."""

    def __str__(self) -> str:
        """Return the canonical form: no `v`, three parts, no leading zeros."""
        pre = f"-{self.prerelease}" if self.prerelease else ""
        meta = f"+{self.metadata}" if self.metadata else ""
        return f"{self.major}.{self.minor}.{self.patch}{pre}{meta}"


def parse_version(tag: str) -> Version:
    """Read a tag by the rule of Flux's image policies; raise VersionError for one they skip.

    Source: `version.ParseVersion` of Flux's shared packages, which asks for two dots anywhere in the text before the
    loose parser of the library sees it; so `1.2-rc.1` is a version and `1.2` is not.
    """
    if tag.count(".") < 2:
        raise VersionError(f"`{tag}` has fewer than three parts, and Flux takes no such tag for a version")
    return parse_loose(tag)


def parse_loose(text: str) -> Version:
    """Read a version of one to three parts, as ranges hold them; raise VersionError if it is none."""
    match = _VERSION.fullmatch(text)
    if match is None:
        raise VersionError(f"`{text}` is not a semantic version")
    major, minor, patch = (parse_part(part or "0", text) for part in match.group(1, 2, 3))
    prerelease, metadata = match[4] or "", match[5] or ""
    key = (major, minor, patch, prerelease_key(prerelease, text))
    return Version(key, major, minor, patch, prerelease, metadata, text)


def parse_part(digits: str, text: str) -> int:
    """Return a numeric part of the version `text`; raise VersionError if it does not fit 64 bits."""
    significant = digits.lstrip("0")
    if len(significant) > 20 or int(significant or "0") > MAX_PART:
        raise VersionError(f"`{text}` has a part above 18446744073709551615")
    return int(significant or "0")


def prerelease_key(prerelease: str, text: str) -> tuple[int | Identifier, ...]:
    """Return the last part of a key; raise VersionError, naming the version `text`, for a number led by a zero."""
    if not prerelease:
        return RELEASE
    identifiers: list[Identifier] = []
    for identifier in prerelease.split("."):
        numeric = identifier.isdigit()
        if numeric and len(identifier) > 1 and identifier[0] == "0":
            raise VersionError(f"`{text}` has the pre-release number `{identifier}` with a leading zero")
        # A number that does not fit 64 bits is compared as text.
        if numeric and len(identifier) <= 20 and int(identifier) <= MAX_PART:
            identifiers.append((0, int(identifier)))
        else:
            identifiers.append((1, identifier))
    return (0, *identifiers)
