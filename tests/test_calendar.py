"""Cadences as settings of systemd timers."""

from __future__ import annotations

from itertools import islice

import pytest
from cronsim import CronSim, CronSimError
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from render.flux.cadence import CadenceError, cadence, parse_duration
from render.flux.calendar import FIRST_RUN, calendar, timer, timespan
from tests.systemd import YEAR, crons, firings

MOST = 2000
"""Firings that are compared; an expression that fires each minute has half a million a year."""


@pytest.mark.parametrize(
    ("expression", "events"),
    [
        ("0 4 * * *", ["*-*-* 04:00:00 UTC"]),
        ("@weekly", ["Sun *-*-* 00:00:00 UTC"]),
        ("*/15 * * * *", ["*-*-* *:00/15:00 UTC"]),
        ("7-59/7 1-5 * 1-3,7 *", ["*-01..03,07-* 01..05:07/7:00 UTC"]),
        ("0 0 * * 1-5", ["Mon..Fri *-*-* 00:00:00 UTC"]),
        ("0 0 * * 0,6", ["Sat,Sun *-*-* 00:00:00 UTC"]),
        # Two restricted day fields mean "or", which is two settings.
        ("0 2 13 * FRI", ["*-*-13 02:00:00 UTC", "Fri *-*-* 02:00:00 UTC"]),
        # A field that begins with `*` makes it "and".
        ("0 3 */2 * SUN", ["Sun *-*-01/2 03:00:00 UTC"]),
        ("0 0 L * *", ["*-*~01 00:00:00 UTC"]),
        ("0 0 L,15 * *", ["*-*-15 00:00:00 UTC", "*-*~01 00:00:00 UTC"]),
        ("0 0 LW * *", ["Mon..Fri *-*~01 00:00:00 UTC", "Fri *-*~02,03 00:00:00 UTC"]),
        ("5 4 * * 5L", ["Fri *-*~01..07 04:05:00 UTC"]),
        ("0 2 * * MON#2", ["Mon *-*-08..14 02:00:00 UTC"]),
        ("0 2 * * MON#5", ["Mon *-*-29..31 02:00:00 UTC"]),
    ],
)
def test_cron_expression_becomes_calendar_events(expression: str, events: list[str]) -> None:
    assert events == calendar(expression, "UTC")
    assert [("OnCalendar", event) for event in events] == timer(expression, "UTC")


def test_the_zone_ends_each_event() -> None:
    assert calendar("0 2 13 * *", "") == ["*-*-13 02:00:00"]
    assert calendar("0 2 13 * FRI", "Europe/Berlin") == [
        "*-*-13 02:00:00 Europe/Berlin",
        "Fri *-*-* 02:00:00 Europe/Berlin",
    ]


@pytest.mark.parametrize(
    ("duration", "span"),
    [
        ("24h", "1d"),
        ("1h30m", "1h 30min"),
        ("90s", "1min 30s"),
        ("1.5h", "1h 30min"),
        ("168h", "7d"),
        ("1m1ms", "1min 1ms"),
    ],
)
def test_duration_repeats_from_the_last_run(duration: str, span: str) -> None:
    assert [("OnActiveSec", FIRST_RUN), ("OnUnitActiveSec", span)] == timer(duration, "UTC")


@given(st.integers(0, 10**10))
def test_time_span_says_every_millisecond(milliseconds: int) -> None:
    sizes = {"d": 86_400_000, "h": 3_600_000, "min": 60_000, "s": 1000, "ms": 1}
    parts = [part for part in timespan(milliseconds).split() if part != "0"]
    pairs = [(part.rstrip("dhmins"), part.lstrip("0123456789")) for part in parts]

    assert milliseconds == sum(int(number) * sizes[unit] for number, unit in pairs)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0 4 */2 * 5L", "`0 4 */2 * 5L` counts days from both ends of a month, which a systemd timer cannot"),
        ("0 4 * *", "`0 4 * *` has 4 fields, and a cron expression has 5"),
        ("24h", "`24h` is no cron expression of five fields"),
        ("@reboot", "`@reboot` is none of"),
        ("0 0 30 2 *", "`0 0 30 2 *` "),
    ],
)
def test_what_no_calendar_says_is_refused(text: str, message: str) -> None:
    with pytest.raises(CadenceError) as caught:
        calendar(text, "UTC")

    assert str(caught.value).startswith(message)


def test_too_short_a_duration_is_refused() -> None:
    with pytest.raises(CadenceError):
        timer("30s", "UTC")


@settings(max_examples=150, deadline=None)
@given(crons())
def test_events_fire_exactly_when_the_cron_expression_does(expression: str) -> None:
    try:
        expected = CronSim(expression, YEAR[0].replace(year=YEAR[0].year - 1, month=12, day=31, hour=23, minute=59))
        cadence(expression)
        events = calendar(expression, "UTC")
    except (CronSimError, CadenceError):
        assume(False)
    wanted = []
    for moment in islice(expected, MOST):
        if moment >= YEAR[1]:
            break
        wanted.append(moment)

    assert wanted == list(islice(firings(events, *YEAR), MOST))


@settings(max_examples=50, deadline=None)
@given(crons())
def test_every_cadence_that_a_policy_takes_is_a_timer_or_told_not_to_be(expression: str) -> None:
    try:
        shortest = parse_duration(cadence(expression))
    except CadenceError:
        with pytest.raises(CadenceError):
            timer(expression, "UTC")
        return
    refused, made = "", [("OnCalendar", "")]
    try:
        made = timer(expression, "UTC")
    except CadenceError as error:
        refused = str(error)

    assert not refused or "from both ends of a month" in refused
    assert shortest >= 60 * 10**9
    assert {"OnCalendar"} == {key for key, _ in made}
