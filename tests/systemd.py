"""Calendar events of systemd timers, read by their manual: an event in, the days and times of its firings out."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st

EVENT = re.compile(
    r"(?:(?P<weekdays>[A-Z][A-Za-z,.]*) )?\*-(?P<months>[^-~ ]+)(?P<end>[-~])(?P<days>\S+)"
    r" (?P<hours>[^:]+):(?P<minutes>[^:]+):00 UTC"
)
NAMES = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def numbers(text: str, first: int, last: int) -> set[int]:
    """Read a list of `*`, numbers, `a..b` and `a/step`."""
    made: set[int] = set()
    for part in text.split(","):
        start, _, step = part.partition("/")
        low, _, high = start.partition("..")
        if start == "*":
            made |= set(range(first, last + 1))
        elif step:
            made |= set(range(int(low), last + 1, int(step)))
        else:
            made |= set(range(int(low), int(high or low) + 1))
    assert made <= set(range(first, last + 1))
    return made


def weekdays(text: str | None) -> set[int]:
    """Read a list of weekdays and spans of them; None is all."""
    if text is None:
        return set(range(7))
    made: set[int] = set()
    for part in text.split(","):
        low, _, high = part.partition("..")
        made |= set(range(NAMES.index(low), NAMES.index(high or low) + 1))
    return made


def firings(events: Iterable[str], start: datetime, end: datetime) -> Iterator[datetime]:
    """Yield the moments from `start` to `end` at which any of some events fires, in order."""
    matches = [EVENT.fullmatch(event) for event in events]
    read = [
        (
            weekdays(match["weekdays"]),
            numbers(match["months"], 1, 12),
            match["end"] == "~",
            numbers(match["days"], 1, 31),
            {(h, m) for h in numbers(match["hours"], 0, 23) for m in numbers(match["minutes"], 0, 59)},
        )
        for match in matches
        if match is not None
    ]
    assert len(read) == len(matches)
    day = start
    while day < end:
        times: set[tuple[int, int]] = set()
        for on, months, from_end, days, clock in read:
            number = monthrange(day.year, day.month)[1] - day.day + 1 if from_end else day.day
            if day.weekday() in on and day.month in months and number in days:
                times |= clock
        for hour, minute in sorted(times):
            yield day.replace(hour=hour, minute=minute)
        day += timedelta(days=1)


YEAR = (datetime(2024, 1, 1, tzinfo=UTC), datetime(2025, 1, 1, tzinfo=UTC))
"""A leap year."""


@st.composite
def fields(draw: st.DrawFn, first: int, last: int, names: tuple[str, ...] = ()) -> str:
    """A field of a cron expression: all, a step, or a list of values, spans and stepped spans."""
    form = draw(st.sampled_from(["*", "*/n", "list", "list"]))
    if form == "*":
        return "*"
    if form == "*/n":
        return f"*/{draw(st.integers(1, last - first))}"
    parts = []
    for _ in range(draw(st.integers(1, 3))):
        low = draw(st.integers(first, last))
        high = draw(st.integers(low, last))
        step = draw(st.integers(1, 5))
        shown = names[low - first] if names else str(low)
        parts.append(draw(st.sampled_from([shown, f"{low}-{high}", f"{low}-{high}/{step}", f"{low}/{step}"])))
    return ",".join(parts)


@st.composite
def crons(draw: st.DrawFn) -> str:
    """A cron expression of five fields, with what cronsim knows beyond the usual."""
    day = draw(st.one_of(fields(1, 31), st.sampled_from(["L", "LW", "L,15", "1,LW"])))
    weekday = draw(st.one_of(fields(0, 7), st.sampled_from(["MON#1", "5L", "2#5", "SAT,0L", "FRI"])))
    month = draw(fields(1, 12, ("JAN", "feb", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")))
    return " ".join((draw(fields(0, 59)), draw(fields(0, 23)), day, month, weekday))
