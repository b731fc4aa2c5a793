"""kustomize `images` entries and an image reference in, what kustomize makes of it out; plain data.

`Table` and `apply` say what entries do to a reference; `chains` and the functions after it, what is surprising about
them. `render.flux.override_sites` finds the references in objects, `render.flux.override_lint` checks entries as a
person wrote them. The rules are those of kustomize 5.7.1 and 5.8.1, the versions inside helm-controller 1.5 and 1.6,
which treat images alike.
"""

from __future__ import annotations

from bisect import bisect_left

from render.flux.image import Reference, canonical_name
from render.patterns import lazy
from render.structs import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

Path = tuple[str | int, ...]
"""Keys and list indices from the root of an object."""

LITERAL_NAME = lazy(r"[A-Za-z0-9_/:@ .-]*\Z")
"""Names that mean themselves to RE2, save that each dot matches any character but a newline."""
_VALUE = lazy(r"[a-zA-Z0-9_.{}-]*\Z")
_TAG_PATTERN = "(:[a-zA-Z0-9_.{}-]*)?"
_DIGEST_PATTERN = "(@sha256:[a-zA-Z0-9_.{}-]*)?"
_ANY_DIGEST_PATTERN = "(@[a-zA-Z][a-zA-Z0-9]*:[a-zA-Z0-9_.{}-]*)?"
_ANY_ALGORITHM = lazy(r"[a-zA-Z][a-zA-Z0-9]*\Z")


class OverrideFailure(ValueError):  # noqa: N818 - the word Flux and its users have for it
    """What makes kustomize fail, and with it the whole release: nothing of the release is applied."""

    def __init__(self, reason: str, path: Path = (), *, entry: int | None = None, document: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.path = path
        """The offending place in its object."""
        self.entry = entry
        """Index of the entry at fault; None: any table would do."""
        self.document = document
        """Index of the object in what `transform` was given; None where there is one object only."""


@struct(frozen=True)
class Entry:
    """One entry of `images`; an empty string is an absent field, as kustomize takes it."""

    name: str
    new_name: str = ""
    new_tag: str = ""
    digest: str = ""

    @classmethod
    def of(cls, raw: Mapping[str, str]) -> Entry:
        """Take an entry with kustomize's field names."""
        return cls(raw.get("name", ""), raw.get("newName", ""), raw.get("newTag", ""), raw.get("digest", ""))

    def rewrite(self, text: str) -> str:
        """Give what stands in place of a text that the entry matched."""
        name, tag, digest = split(text)
        if self.new_tag or self.digest:
            tag, digest = self.new_tag, self.digest
        return (self.new_name or name) + (f":{tag}" if tag else "") + (f"@{digest}" if digest else "")


@struct(frozen=True)
class Step:
    """One entry's part in a rewrite."""

    entry: int
    """Its index in the table."""
    before: str
    after: str
    """Equal to `before` when the entry matched and changed nothing."""


@struct(frozen=True)
class Outcome:
    """What a table makes of one reference."""

    text: str
    trace: tuple[Step, ...]
    """The entries that matched, in order. With any, kustomize rewrites the scalar: a plain one is resolved anew."""


def split(text: str) -> tuple[str, str, str]:
    """Split a reference into name, tag and digest by position alone, as kustomize does; absent parts are empty."""
    start = max(text.find("/"), 0)
    at, colon = text.find("@", start), text.find(":", start)
    if at >= 0 and (colon < 0 or at < colon):
        return text[:at], "", text[at + 1 :]
    if colon < 0:
        return text, "", ""
    end = at if at >= 0 else len(text)
    return text[:colon], text[colon + 1 : end], text[end + 1 :]


class Table:
    """Entries in order, indexed: the answer of running one after another, without trying each on each reference.

    `unreleased` takes the rules of kustomize's main branch after 5.8.1: a digest of any algorithm is matched, and a
    name that is no regular expression matches nothing instead of panicking.
    """

    __slots__ = ("_literal", "_masks", "_wide", "entries", "unreleased")

    def __init__(self, entries: Iterable[Entry], *, unreleased: bool = False) -> None:
        self.entries = tuple(entries)
        self.unreleased = unreleased
        self._literal: dict[str, list[int]] = {}
        self._masks: dict[int, dict[tuple[int, ...], None]] = {}
        self._wide: list[tuple[int, Callable[[str], bool]]] | None = None
        for index, entry in enumerate(self.entries):
            name = entry.name
            if LITERAL_NAME.match(name):
                self._literal.setdefault(name, []).append(index)
                dots = tuple(i for i, c in enumerate(name) if c == ".")
                self._masks.setdefault(len(name), {})[dots] = None

    def apply(self, text: str, *, double: bool = False) -> Outcome:
        """Run every entry on a reference, each on what the one before left.

        `double`: the site is one that kustomize visits twice for each entry (`sites` says which). Raises
        OverrideFailure when a name is no regular expression, whether or not it could match: kustomize panics.
        """
        return self._run(text, 0, double=double)

    def _run(self, text: str, start: int, *, double: bool) -> Outcome:
        """Run the entries from `start` on."""
        wide = self._patterns()
        trace: list[Step] = []
        while (index := self._next(text, start, wide)) is not None:
            before, entry = text, self.entries[index]
            text = entry.rewrite(text)
            if double and self._next(text, index, wide) == index:
                text = entry.rewrite(text)
            trace.append(Step(index, before, text))
            start = index + 1
        return Outcome(text, tuple(trace))

    def _next(self, text: str, start: int, wide: list[tuple[int, Callable[[str], bool]]]) -> int | None:
        """Index of the first entry from `start` on that matches."""
        best = len(self.entries)
        for name in self._names(text):
            for dots in self._masks.get(len(name), ()):
                spelling = _masked(name, dots)
                found = self._literal.get(spelling, ()) if spelling is not None else ()
                position = bisect_left(found, start)
                if position < len(found):
                    best = min(best, found[position])
        for index, matches in wide:
            if index >= best:
                break
            if index >= start and matches(text):
                return index
        return best if best < len(self.entries) else None

    def _names(self, text: str) -> list[str]:
        """List the beginnings of a reference that leave no more than a tag and a digest, either may be empty."""
        names = [text]
        head, at, digest = text.rpartition("@")
        if at:
            algorithm, colon, digits = digest.partition(":")
            known = _ANY_ALGORITHM.match(algorithm) if self.unreleased else algorithm == "sha256"
            if known and colon and _VALUE.match(digits):
                names.append(head)
        for whole in tuple(names):
            head, colon, tag = whole.rpartition(":")
            if colon and _VALUE.match(tag):
                names.append(head)
        return names

    def _patterns(self) -> list[tuple[int, Callable[[str], bool]]]:
        """Give the names that need a regular expression, each as a search; compiled at the first call."""
        if self._wide is None:
            wide: list[tuple[int, Callable[[str], bool]]] = []
            for index, entry in enumerate(self.entries):
                if LITERAL_NAME.match(entry.name):
                    continue
                try:
                    wide.append((index, compile_name(entry.name, unreleased=self.unreleased)))
                except OverrideFailure as failure:
                    if not self.unreleased:
                        raise OverrideFailure(failure.reason, entry=index) from None
            self._wide = wide
        return self._wide


def apply(entries: Iterable[Entry], text: str, *, double: bool = False, unreleased: bool = False) -> Outcome:
    """Run entries on one reference; `Table` says how, and is the way for more than one reference."""
    return Table(entries, unreleased=unreleased).apply(text, double=double)


def _masked(name: str, dots: tuple[int, ...]) -> str | None:
    """Put dots at the places given; None when one of them holds the newline that a dot does not match."""
    for i in dots:
        if name[i] == "\n":
            return None
        if name[i] != ".":
            name = f"{name[:i]}.{name[i + 1 :]}"
    return name


def compile_name(name: str, *, unreleased: bool) -> Callable[[str], bool]:
    """Give the search for a name between kustomize's anchors, compiled as Go does; raises OverrideFailure."""
    from render.flux.regex import Pattern, PatternError

    try:
        return Pattern(f"^{name}{_TAG_PATTERN}{_ANY_DIGEST_PATTERN if unreleased else _DIGEST_PATTERN}$").matches
    except PatternError as error:
        reason = shown(error.upstream.removeprefix("error parsing regexp: ").partition(": `")[0])
    except UnicodeEncodeError:
        reason = "no Unicode text"
    message = f"kustomize panics on the name `{shown(name)}`, which is no regular expression: {reason}"
    raise OverrideFailure(message)


def shown(text: str, limit: int = 80) -> str:
    """Give a text as it can stand in a message of one line."""
    text = text if len(text) <= limit else f"{text[:limit]}…"
    return text if text.isprintable() else ascii(text)[1:-1]


@struct(frozen=True)
class Chain:
    """Two entries of which the later one takes what the earlier one wrote."""

    first: int
    second: int
    between: str
    """The reference after the first."""
    after: str


def chains(entries: Iterable[Entry]) -> list[Chain]:
    """List the renames that a later entry rewrites again; raises OverrideFailure as `Table.apply`."""
    table = Table(entries)
    found: list[Chain] = []
    for index, entry in enumerate(table.entries):
        if not entry.new_name:
            continue
        between = entry.rewrite("")
        after = table._run(between, index + 1, double=False)
        found += [Chain(index, step.entry, between, after.text) for step in after.trace[:1] if after.text != between]
    return found


@struct(frozen=True)
class Hit:
    """An entry and a declared image that concern each other."""

    entry: int
    image: Reference


def spelling_variants(entries: Iterable[Entry], images: Iterable[Reference]) -> list[Hit]:
    """List entries that name an image's repository in another spelling, so that the image is left alone.

    An image that an entry for its repository does match is left out; raises OverrideFailure as `Table.apply`.
    """
    table = Table(entries)
    by_repository: dict[str, list[int]] = {}
    for index, entry in enumerate(table.entries):
        by_repository.setdefault(canonical_name(entry.name), []).append(index)
    found: list[Hit] = []
    for image in images:
        same = by_repository.get(image.canonical, [])
        if same and not {step.entry for step in table.apply(str(image)).trace}.intersection(same):
            found += [Hit(index, image) for index in same]
    return found


def accidental_matches(entries: Iterable[Entry], images: Iterable[Reference]) -> list[Hit]:
    """List images that an entry rewrites only because a `.` in its name matches any character.

    Raises OverrideFailure as `Table.apply`; names that are no image names are `lint`'s business.
    """
    table = Table(entries)
    found: list[Hit] = []
    for image in images:
        for step in table.apply(str(image)).trace:
            name = table.entries[step.entry].name
            if LITERAL_NAME.match(name) and not step.before.startswith(name):
                found.append(Hit(step.entry, image))
    return found


@struct(frozen=True)
class Again:
    """An effective reference that is not safe from the table that made it."""

    effective: str
    again: str
    """What a second run makes of it."""
    first: int
    """Index of the entry that gave the effective reference."""
    second: int
    """Index of the entry that rewrites it once more."""


def rewrites_again(entries: Table | Iterable[Entry], image: Reference) -> Again | None:
    """Tell whether a table, run on its own result, would change it: matters where the result is written down."""
    table = entries if isinstance(entries, Table) else Table(entries)
    first = table.apply(str(image))
    if not first.trace:
        return None
    second = table.apply(first.text)
    if second.text == first.text:
        return None
    changing = next(step for step in second.trace if step.before != step.after)
    return Again(first.text, second.text, first.trace[-1].entry, changing.entry)
