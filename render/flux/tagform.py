"""A tag in, its parts out: prefix, numbers, pre-release, suffix and build counter, as people write tags."""

from __future__ import annotations

import re

from render.patterns import lazy
from render.structs import struct

# Words after which a number counts builds of one version; other words name a variant, as `alpine3` and `jdk17` do.
_COUNTING = r"ls|rev|release|build|eksbuild\.|rke2r|k3s|k0s\.|r|p"
_LABELS = "alpha|beta|rc|cr|preview|pre|dev|snapshot|nightly|canary|next|edge|milestone|unstable"
_CORE = lazy(r"([A-Za-z_.-]*?)([0-9]+(?:\.[0-9]+)*)(.*)", re.DOTALL)
_PRERELEASE = lazy(
    rf"([-._]?)((?:{_LABELS})(?![A-Za-z])|(?:a|b|c|m)(?=[0-9]))((?:\.?[0-9]+(?:\.[0-9]+)*)?)(?=$|[-._+])", re.IGNORECASE
)
_COUNTER = lazy(rf"(?:(.*?[-_](?:{_COUNTING}))|([-_]))([0-9]+)")
_HASH = lazy(r"(?=.*[0-9])(?=.*[a-f])[0-9a-f]{7,40}|g[0-9a-f]{6,40}|[0-9a-f]{64}")
_UNNAMED = lazy(r"[-._+]?[0-9]|[A-Za-z]+[0-9]")
_LONG_NUMBER = lazy(r"[0-9]{6,}")
_SEPARATOR = lazy(r"([-._+])")


@struct(frozen=True)
class Prerelease:
    """A pre-release as written, such as `-rc.1` or `b3`."""

    lead: str
    """What stands between version and label: `-`, `.`, `_` or nothing."""
    label: str
    glued: bool
    """Whether the number follows the label without a dot, so that semver compares `rc10` as text."""
    numbers: tuple[str, ...]


@struct(frozen=True)
class Form:
    """How a tag is made up; prefix, numbers, pre-release, suffix and counter follow each other."""

    prefix: str
    numbers: tuple[str, ...]
    """Digits as written; dots stand between them."""
    prerelease: Prerelease | None
    suffix: str
    """Literal text: a variant such as `-alpine`, or what stands before the counter such as `-ls`."""
    counter: str
    """The digits of a number that counts builds, or nothing."""

    @property
    def version(self) -> str:
        """The numbers with their dots."""
        return ".".join(self.numbers)


def parse_form(tag: str) -> Form | None:
    """Take a tag apart; None if it holds no number."""
    match = _CORE.fullmatch(tag)
    if match is None:
        return None
    prefix, core, rest = match.groups()
    if not rest:
        return Form(prefix, tuple(core.split(".")), None, "", "")
    prerelease = None
    found = _PRERELEASE.match(rest)
    if found is not None:
        lead, label, numbers = found.groups()
        prerelease = Prerelease(lead, label, numbers[:1].isdigit(), tuple(re.findall("[0-9]+", numbers)))
        rest = rest[found.end() :]
    counted = _COUNTER.fullmatch(rest)
    suffix, counter = (counted[1] or counted[2], counted[3]) if counted else (rest, "")
    return Form(prefix, tuple(core.split(".")), prerelease, suffix, counter)


def varies(suffix: str) -> bool:
    """Say whether a suffix holds what changes from tag to tag: a hash, a date, or a number without a name."""
    unnamed = _UNNAMED.match(suffix) is not None
    return unnamed or any(is_hash(word) or _LONG_NUMBER.search(word) for word in words(suffix))


def words(text: str) -> list[str]:
    """Split a text at `-`, `.`, `_` and `+`; the separators stand at the odd places."""
    return _SEPARATOR.split(text)


def is_hash(text: str) -> bool:
    """Say whether a text looks like a commit hash, which has no order."""
    return len(text) > 6 and _HASH.fullmatch(text) is not None
