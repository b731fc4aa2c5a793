"""A cadence in, the settings of a systemd timer with the same firings out.

systemd combines the weekdays and the days of one `OnCalendar=` with "and", and several of them with "or". A cron
expression whose two day fields are both restricted means "or", so it becomes two settings. `~` counts the days of a
month from its end.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from render.flux.cadence import CadenceError, cadence, cron_of, parse_duration, schedule_of

if TYPE_CHECKING:
    from cronsim import CronSim

FIRST_RUN = "15min"
"""How long after a start the first run of a timer without a calendar comes."""

_NAMES = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_WEEK = frozenset(range(7))
_WORKDAYS = frozenset(range(5))
_MONTH = frozenset(range(1, 32))
_LAST, _LAST_WEEKDAY = -1000, -1001
"""What cronsim has for `L` and `LW`."""


class _Days(NamedTuple):
    """The days that are among some weekdays and among some days of the month."""

    weekdays: frozenset[int] = _WEEK
    """From 0 for Monday."""
    days: frozenset[int] = _MONTH
    """From 1; from the end of the month where `from_end` is set, 1 being the last day."""
    from_end: bool = False

    def both(self, other: _Days) -> _Days | None:
        """Return the days that are in both; None where one setting cannot say it."""
        if _MONTH in (self.days, other.days):
            whole = other if self.days == _MONTH else self
            return whole._replace(weekdays=self.weekdays & other.weekdays)
        if self.from_end != other.from_end:
            return None
        return _Days(self.weekdays & other.weekdays, self.days & other.days, self.from_end)


def timer(text: str, zone: str) -> list[tuple[str, str]]:
    """Return the settings of a `[Timer]` section, in order; raise CadenceError for what is no cadence.

    A duration repeats from the last run; a cron expression fires by the clock of the time zone `zone`, and without one
    by that of the machine.
    """
    duration = cadence(text)
    expression = cron_of(text)
    if expression is None:
        return [("OnActiveSec", FIRST_RUN), ("OnUnitActiveSec", timespan(parse_duration(duration) // 10**6))]
    return [("OnCalendar", line) for line in _calendar(schedule_of(expression, text), text, zone)]


def calendar(text: str, zone: str) -> list[str]:
    """Return the calendar events of a cron expression; raise CadenceError for anything else."""
    expression = cron_of(text)
    if expression is None:
        raise CadenceError(f"`{text}` is no cron expression of five fields")
    schedule = schedule_of(expression, text)
    cadence(text)
    return _calendar(schedule, text, zone)


def timespan(milliseconds: int) -> str:
    """Return a time span as systemd writes it: `1h 30min`."""
    parts = []
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000), ("ms", 1)):
        number, milliseconds = divmod(milliseconds, size)
        if number:
            parts.append(f"{number}{unit}")
    return " ".join(parts) or "0"


def _calendar(schedule: CronSim, text: str, zone: str) -> list[str]:
    months = _listed(schedule.months, 1, 12)
    clock = f"{_listed(schedule.hours, 0, 23)}:{_listed(schedule.minutes, 0, 59)}:00"
    made = []
    for one in _days(schedule, text):
        if not one.weekdays or not one.days:
            continue
        names = "" if one.weekdays == _WEEK else _names(one.weekdays) + " "
        days = _listed(one.days, 1, 31)
        made.append(f"{names}*-{months}{'~' if one.from_end else '-'}{days} {clock} {zone}".rstrip())
    return list(dict.fromkeys(made))


def _days(schedule: CronSim, text: str) -> list[_Days]:
    """Return the days on which an expression fires, as the union of what single settings can say."""
    by_date, by_weekday = _by_date(schedule.days), _by_weekday(schedule.weekdays)
    if not schedule.day_and:
        return by_date + by_weekday
    both = [date.both(weekday) for date in by_date for weekday in by_weekday]
    if None in both:
        raise CadenceError(f"`{text}` counts days from both ends of a month, which a systemd timer cannot")
    return [one for one in both if one is not None]


def _by_date(items: Iterable[int]) -> list[_Days]:
    plain = frozenset(item for item in items if item > 0)
    made = [_Days(days=plain)] if plain else []
    if _LAST in items:
        made.append(_Days(days=frozenset((1,)), from_end=True))
    if _LAST_WEEKDAY in items:
        # The last day, or the Friday before a weekend at the end.
        made.append(_Days(_WORKDAYS, frozenset((1,)), from_end=True))
        made.append(_Days(frozenset((4,)), frozenset((2, 3)), from_end=True))
    return made


def _by_weekday(items: Iterable[int | tuple[int, int]]) -> list[_Days]:
    plain = frozenset((item - 1) % 7 for item in items if isinstance(item, int))
    made = [_Days(weekdays=plain)] if plain else []
    for item in sorted(item for item in items if isinstance(item, tuple)):
        weekday, nth = item
        last = nth == _LAST
        week = range(1, 8) if last else range(7 * nth - 6, min(7 * nth, 31) + 1)
        made.append(_Days(frozenset(((weekday - 1) % 7,)), frozenset(week), from_end=last))
    return made


def _listed(values: Iterable[int], first: int, last: int) -> str:
    """Return numbers in the shortest of the forms `*`, `00/15` and `01,05..07`."""
    numbers = sorted(values)
    if numbers == list(range(first, last + 1)):
        return "*"
    if len(numbers) > 2:
        step = numbers[1] - numbers[0]
        if step > 1 and numbers == list(range(numbers[0], last + 1, step)):
            return f"{numbers[0]:02}/{step}"
    return ",".join(_span(run, [f"{n:02}" for n in range(last + 1)]) for run in _runs(numbers))


def _names(weekdays: frozenset[int]) -> str:
    return ",".join(_span(run, _NAMES) for run in _runs(sorted(weekdays)))


def _runs(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """Return the first and last of each run of consecutive numbers."""
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return runs


def _span(run: tuple[int, int], names: Sequence[str]) -> str:
    first, last = run
    if first == last:
        return names[first]
    return f"{names[first]}{',' if last == first + 1 else '..'}{names[last]}"
