"""A duration or cron expression in, a Flux duration out.

Flux writes durations in Go's form, and its schemas narrow that to a pattern; both have to hold.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from functools import lru_cache

from render.patterns import lazy

TYPE_CHECKING = False
if TYPE_CHECKING:
    import datetime

    from cronsim import CronSim

MINIMUM_SECONDS = 60
"""The shortest cadence: a shorter one is a mistake, and registries limit requests."""

_UNITS = {
    "h": 3600 * 10**9,
    "m": 60 * 10**9,
    "s": 10**9,
    "ms": 10**6,
    "us": 10**3,
    "\u00b5s": 10**3,
    "\u03bcs": 10**3,
    "ns": 1,
}
_COMPONENT = lazy(rf"([0-9]*)(\.[0-9]*)?({'|'.join(sorted(_UNITS, key=len, reverse=True))})(?![^0-9.])")
_CRD = {True: lazy(r"([0-9]+(\.[0-9]+)?(ms|s|m|h))+"), False: lazy(r"([0-9]+(\.[0-9]+)?(ms|s|m))+")}
_MAX_NANOSECONDS = 2**63 - 1

_NICKNAMES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_USUAL_DAYS = frozenset("*01234567")
_YEARS = range(2000, 2028)
_DAY = 24 * 60
"""Minutes in a day."""


class DurationError(ValueError):
    """A text that is no duration, or none that a Flux field takes."""


class CadenceError(ValueError):
    """A text that says no cadence."""


def parse_go_duration(text: str) -> int:
    """Return the nanoseconds of a duration as Go's `time.ParseDuration` reads it; raise DurationError for none."""
    sign, rest = (-1, text[1:]) if text.startswith("-") else (1, text.removeprefix("+"))
    if rest == "0":
        return 0
    total = at = 0
    while at < len(rest):
        match = _COMPONENT.match(rest, at)
        if match is None or (not match[1] and len(match[2] or "") < 2):
            raise DurationError(f"`{text}` is not a duration such as `30m` or `1h30m`")
        total += _nanoseconds(match, text)
        at = match.end()
        # The most negative duration has no positive counterpart.
        if total > _MAX_NANOSECONDS + (sign < 0):
            raise DurationError(f"`{text}` is longer than a duration can be")
    if not rest:
        raise DurationError(f"`{text}` is not a duration such as `30m` or `1h30m`")
    return sign * total


def _nanoseconds(match: re.Match[str], text: str) -> int:
    unit = _UNITS[match[3]]
    whole = match[1].lstrip("0")
    if len(whole) > 19 or int(whole or "0") > 2**63:
        raise DurationError(f"`{text}` is longer than a duration can be")
    fraction, scale = 0, 1
    for digit in (match[2] or ".")[1:]:
        # Go stops to read a fraction where it would overflow, and computes it in floating point.
        if fraction > (2**63 - 1) // 10 or fraction * 10 + int(digit) > 2**63:
            break
        fraction = fraction * 10 + int(digit)
        scale *= 10
    return int(whole or "0") * unit + int(float(fraction) * (float(unit) / float(scale)))


def parse_duration(text: str, *, hours: bool = True) -> int:
    """Return the nanoseconds of a duration in a Flux field; raise DurationError where schema or controller refuse it.

    `hours` is False for the few fields whose pattern has no `h`, such as an ImageRepository's `timeout`.
    """
    if _CRD[hours].fullmatch(text) is None:
        if hours or _CRD[True].fullmatch(text) is None:
            raise DurationError(f"`{text}` is not a duration in `h`, `m`, `s` or `ms`, such as `30m` or `1h30m`")
        raise DurationError(f"`{text}` is in hours, which this field does not take: write it in minutes")
    return parse_go_duration(text)


def format_duration(seconds: int) -> str:
    """Return a duration of whole seconds in the fewest units: `24h`, `1h30m`, `45s`."""
    hours, rest = divmod(seconds, 3600)
    minutes, rest = divmod(rest, 60)
    parts = ((hours, "h"), (minutes, "m"), (rest, "s"))
    return "".join(f"{number}{unit}" for number, unit in parts if number) or "0s"


@lru_cache(maxsize=1024)
def cadence(text: str) -> str:
    """Return the Flux duration that a cadence stands for.

    A duration stays as written. A cron expression of five fields, or a name such as `@daily`, becomes the shortest
    time between two of its firings from 2000 to 2027, in UTC. Raise CadenceError for anything else and for less than
    a minute.
    """
    expression = cron_of(text)
    if expression is not None:
        return format_duration(60 * _shortest_gap(expression, text))
    try:
        nanoseconds = parse_duration(text)
    except DurationError as error:
        raise CadenceError(f"{error}; or write a cron expression of five fields") from None
    if nanoseconds < MINIMUM_SECONDS * 10**9:
        raise CadenceError(f"`{text}` is less than a minute")
    return text


def cron_of(text: str) -> str | None:
    """Return the fields of a text that is meant as a cron expression, names such as `@daily` included; else None.

    Raise CadenceError for a name that there is not.
    """
    stripped = text.strip()
    if stripped.startswith("@"):
        expression = _NICKNAMES.get(stripped.lower())
        if expression is None:
            raise CadenceError(f"`{text}` is none of `{'`, `'.join(_NICKNAMES)}`")
        return expression
    return stripped if len(stripped.split()) > 1 else None


def schedule_of(expression: str, text: str) -> CronSim:
    """Return the firings of the fields of a cron expression; raise CadenceError, which quotes `text`, for none."""
    import datetime  # only cron expressions need a calendar

    from cronsim import CronSim, CronSimError

    fields = expression.split()
    if len(fields) != 5:
        raise CadenceError(f"`{text}` has {len(fields)} fields, and a cron expression has 5")
    try:
        return CronSim(expression, datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC))
    except CronSimError as error:
        raise CadenceError(_fault(text, fields, str(error))) from None


def _shortest_gap(expression: str, text: str) -> int:
    """Return the least number of minutes between two firings."""
    usual = _usual_gap(expression.split())
    if usual is not None:
        return usual
    import datetime

    schedule = schedule_of(expression, text)
    times = sorted(60 * hour + minute for hour in schedule.hours for minute in schedule.minutes)
    gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
    days = _firing_days(schedule, datetime.date)
    previous = next(days, None)
    if previous is None:
        raise CadenceError(f"`{text}` never fires from 2000 to 2027")
    for day in days:
        gaps.append((day - previous) * _DAY + times[0] - times[-1])
        if day == previous + 1:
            break
        previous = day
    if not gaps:
        raise CadenceError(f"`{text}` fires only once from 2000 to 2027")
    return min(gaps)


def _usual_gap(fields: list[str]) -> int | None:
    """Return the least number of minutes between two firings every day, or on one day of each week.

    None for fields other than `*`, `*/N` and `N`. Most expressions are so simple, and a calendar is slow to import.
    """
    if len(fields) != 5 or fields[2] != "*" or fields[3] != "*" or fields[4] not in _USUAL_DAYS:
        return None
    minutes, hours = _usual_field(fields[0], 60), _usual_field(fields[1], 24)
    if minutes is None or hours is None:
        return None
    times = [60 * hour + minute for hour in hours for minute in minutes]
    days = 1 if fields[4] == "*" else 7
    gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
    return min([*gaps, days * _DAY + times[0] - times[-1]])


def _usual_field(field: str, end: int) -> range | None:
    """Return the values below `end` that a field stands for; None for one that is unusual, or wrong."""
    if field == "*":
        return range(end)
    is_step = field.startswith("*/")
    number = field[2:] if is_step else field
    if not (number.isascii() and number.isdigit() and len(number) <= 2):
        return None
    if is_step:
        return range(0, end, int(number)) if int(number) else None
    return range(int(number), int(number) + 1) if int(number) < end else None


def _firing_days(schedule: CronSim, date: type[datetime.date]) -> Iterator[int]:
    """Yield the ordinals of the days on which an expression fires, in order."""
    first, end = (date(year, 1, 1).toordinal() for year in (_YEARS.start, _YEARS.stop))
    for ordinal in range(first, end):
        day = date.fromordinal(ordinal)
        if day.month in schedule.months and schedule.match_day(day):
            yield ordinal


def _fault(text: str, fields: list[str], fault: str) -> str:
    """Put the library's complaint, `Bad <field>`, in words that show the field."""
    names = ("minute", "hour", "day-of-month", "month", "day-of-week")
    for name, field in zip(names, fields, strict=True):
        if fault.endswith(name):
            return f"`{text}` has the {name.replace('-of-', ' of the ')} `{field}`, which no firing can have"
    return f"`{text}` is not a cron expression"
