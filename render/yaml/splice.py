"""A YAML text and new values for scalars at places in it, the text with only those scalars changed out.

libyaml tells where each scalar begins and ends, so nothing is serialised anew: comments, quotes, order, blank lines and
line ends stay because they are never touched. The result is read again and compared before it is returned.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from yaml._yaml import CParser
from yaml.error import YAMLError
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)

from render.patterns import lazy
from render.structs import struct
from render.yaml import scalar

Place = tuple[int, int]
"""1-based line and column, as `render.yaml.source` gives them to nodes: of the anchor or tag, where there is one."""

_PROPERTIES = lazy(r"(?:[&!]\S*\s(?:\s|#.*\n)*)*")
"""Anchor and tag, with the comments between them and the value."""


class SpliceError(ValueError):
    """A scalar that cannot be changed where it stands; `position` is the index of its first character."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.position = position


class Anchor(NamedTuple):
    """An anchor that a scalar carries or stands inside of, and the first place that repeats its value."""

    name: str
    used: Place


@struct()
class _Span:
    """A scalar in the text."""

    start: int
    end: int
    value: str
    style: str
    index: int
    """Of its event."""
    anchors: tuple[int, ...]
    """Numbers of the anchors around it, its own included."""


class Splicer:
    """Knows the scalars of one text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.events: list[tuple[Any, ...]] = []
        """What each event says, without its place."""
        self._spans: dict[Place, _Span | None] = {}
        self._names: list[str] = []
        self._uses: dict[int, Place] = {}
        self._read()

    def _read(self) -> None:
        next_event = CParser(self.text).get_event
        known: dict[str, int] = {}
        open_anchors: list[int | None] = []
        while True:
            event: Any = next_event()
            kind = type(event)
            mark = event.start_mark
            number = None
            if kind is AliasEvent:
                self._uses.setdefault(known.get(event.anchor, -1), (mark.line + 1, mark.column + 1))
            elif getattr(event, "anchor", None) is not None:
                number = known[event.anchor] = len(self._names)
                self._names.append(event.anchor)
            if kind is DocumentStartEvent:
                known = {}
            elif kind is MappingStartEvent or kind is SequenceStartEvent:
                open_anchors.append(number)
            elif kind is MappingEndEvent or kind is SequenceEndEvent:
                open_anchors.pop()
            elif kind is ScalarEvent:
                around = tuple(one for one in (*open_anchors, number) if one is not None)
                end = event.end_mark.index
                span = _Span(mark.index, end, event.value, event.style, len(self.events), around)
                place = (mark.line + 1, mark.column + 1)
                # Absent scalars may share a place; none of them can be told from the others.
                self._spans[place] = None if place in self._spans else span
            said = (getattr(event, name, None) for name in ("value", "style", "anchor", "tag", "flow_style"))
            self.events.append((kind, *said))
            if kind is StreamEndEvent:
                return

    def anchor_of(self, place: Place) -> Anchor | None:
        """Return an anchor whose other uses would change together with the scalar at `place`."""
        span = self._spans.get(place)
        for number in span.anchors if span is not None else ():
            if number in self._uses:
                return Anchor(self._names[number], self._uses[number])
        return None

    def extent(self, place: Place) -> tuple[int, int] | None:
        """Return where in the text the scalar at `place` begins and ends; None for one that cannot be told apart."""
        span = self._spans.get(place)
        return None if span is None else (span.start, span.end)

    def splice(self, values: Mapping[Place, str]) -> str:
        """Return the text with new values, each in its scalar's quotes; plain ones get quotes where they need them.

        Raises SpliceError for a place where no scalar begins, or one in a form that cannot be changed by itself.
        """
        pieces: list[str] = []
        at = 0
        spans = sorted(((self._span(place), value) for place, value in values.items()), key=lambda one: one[0].start)
        for span, value in spans:
            pieces += [self.text[at : span.start], self._rewritten(span, value)]
            at = span.end
        made = "".join([*pieces, self.text[at:]])
        self._prove(made, {span.index: value for span, value in spans}, spans[0][0].start if spans else 0)
        return made

    def _span(self, place: Place) -> _Span:
        span = self._spans.get(place)
        if span is None:
            raise SpliceError("no value of its own stands there", 0)
        return span

    def _rewritten(self, span: _Span, value: str) -> str:
        """Return the text of a scalar, its anchor and tag included, with another value."""
        raw = self.text[span.start : span.end]
        if not raw:
            # An absent value: what stands before is the colon, or the blank after it.
            blank = " " if self.text[: span.start].endswith(":") else ""
            return blank + _spelled(value, span.style)
        if span.style in ("|", ">"):
            head, _, body = raw.partition("\n")
            if not span.value.strip() or body.count(span.value.strip()) != 1:
                raise SpliceError("the text block holds more than the value", span.start)
            return f"{head}\n{body.replace(span.value.strip(), value)}"
        head = _PROPERTIES.match(raw)[0]  # type: ignore[index]
        if raw[len(head)] == "#":
            raise SpliceError("a comment stands before the value", span.start)
        return head + _spelled(value, span.style)

    def _prove(self, made: str, values: dict[int, str], position: int) -> None:
        """Raise SpliceError unless a reader sees the same as before, and the new values at their places."""
        try:
            after = Splicer(made).events
        except YAMLError as error:
            raise SpliceError("the text would not be YAML any more", position) from error
        told = len(self.events) == len(after)
        for index, (old, new) in enumerate(zip(self.events, after, strict=False)):
            if index in values:
                kept = (old[0], *old[3:]) == (new[0], *new[3:])
                told = told and kept and new[1] == values[index]
            else:
                told = told and old == new
        if not told:
            raise SpliceError("the value cannot be changed without changing others", position)


def _spelled(value: str, style: str) -> str:
    if style == "'" and scalar.is_plain(value):
        return f"'{value}'"
    if not style and scalar.is_plain_string(value):
        return value
    return scalar.double_quoted(value)
