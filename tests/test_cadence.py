"""Durations, and cron expressions as durations."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from itertools import pairwise

import pytest
from cronsim import CronSim
from hypothesis import given, settings
from hypothesis import strategies as st

from render.flux import cadence as module
from render.flux.cadence import CadenceError, DurationError, cadence, format_duration, parse_duration, parse_go_duration

SECOND = 10**9
NICKNAMES = "`@yearly`, `@annually`, `@monthly`, `@weekly`, `@daily`, `@midnight`, `@hourly`"
DURATIONS = "in `h`, `m`, `s` or `ms`, such as `30m` or `1h30m`"


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("1h30m", 5400 * SECOND),
        ("1.5h", 5400 * SECOND),
        ("90s1500ms", 91 * SECOND + SECOND // 2),
        ("0s", 0),
        ("0.000000001s", 1),
        ("1m1m", 120 * SECOND),
        ("2562047h47m16.854775807s", 2**63 - 1),
    ],
)
def test_duration_is_read(text: str, nanoseconds: int) -> None:
    assert nanoseconds == parse_duration(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1d", "`1d` is not a duration in `h`, `m`, `s` or `ms`, such as `30m` or `1h30m`"),
        ("0", "`0` is not a duration in `h`, `m`, `s` or `ms`, such as `30m` or `1h30m`"),
        ("-1h", "`-1h` is not a duration in `h`, `m`, `s` or `ms`, such as `30m` or `1h30m`"),
        ("1h\n", "`1h\n` is not a duration in `h`, `m`, `s` or `ms`, such as `30m` or `1h30m`"),
        ("2562048h", "`2562048h` is longer than a duration can be"),
        ("99999999999999999999s", "`99999999999999999999s` is longer than a duration can be"),
    ],
)
def test_duration_is_refused(text: str, message: str) -> None:
    with pytest.raises(DurationError) as caught:
        parse_duration(text)

    assert message == str(caught.value)


def test_field_without_hours_says_so() -> None:
    with pytest.raises(DurationError, match="`1h` is in hours, which this field does not take: write it in minutes"):
        parse_duration("1h", hours=False)

    assert parse_duration("90m", hours=False) == 5400 * SECOND


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [("-1.5h", -5400 * SECOND), ("+1us", 1000), ("1\u00b5s", 1000), (".5m", 30 * SECOND), ("0", 0)],
)
def test_go_reads_more_than_flux(text: str, nanoseconds: int) -> None:
    assert nanoseconds == parse_go_duration(text)
    with pytest.raises(DurationError):
        parse_duration(text)


@given(st.integers(0, 10**9))
def test_formatted_duration_reads_back(seconds: int) -> None:
    assert parse_duration(format_duration(seconds)) == seconds * SECOND


@pytest.mark.parametrize(
    ("seconds", "text"), [(86400, "24h"), (5400, "1h30m"), (60, "1m"), (3601, "1h1s"), (45, "45s"), (0, "0s")]
)
def test_duration_is_written_in_the_fewest_units(seconds: int, text: str) -> None:
    assert text == format_duration(seconds)


@pytest.mark.parametrize("text", ["1m", "60s", "6h", "1.5h", "90m", "1h30m"])
def test_duration_passes_as_written(text: str) -> None:
    assert text == cadence(text)


@pytest.mark.parametrize(
    ("expression", "duration"),
    [
        ("30 4 * * *", "24h"),
        ("0 4 * * 1", "168h"),
        ("* * * * *", "1m"),
        ("*/7 * * * *", "4m"),
        ("0 */6 * * *", "6h"),
        ("0 22,2 * * *", "4h"),
        ("0 0 1 * *", "672h"),
        ("0 0 L * *", "672h"),
        ("0 0 29 2 *", "35064h"),
        ("0 0 1 1 *", "8760h"),
        ("0 12 13 * 5", "24h"),
        ("0 12 * * fri#2", "672h"),
        ("15 4 * * MON,wed", "48h"),
        ("0,50 23 1-2 * *", "50m"),
        ("30 0,23 * * *", "1h"),
        ("@daily", "24h"),
        ("@Weekly", "168h"),
        ("@hourly", "1h"),
        ("@monthly", "672h"),
        ("@yearly", "8760h"),
        ("  0   4 * * *  ", "24h"),
    ],
)
def test_cron_expression_becomes_its_shortest_gap(expression: str, duration: str) -> None:
    assert duration == cadence(expression)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("30s", "`30s` is less than a minute"),
        ("59999ms", "`59999ms` is less than a minute"),
        ("@reboot", f"`@reboot` is none of {NICKNAMES}"),
        ("daily", f"`daily` is not a duration {DURATIONS}; or write a cron expression of five fields"),
        ("0 4 * *", "`0 4 * *` has 4 fields, and a cron expression has 5"),
        ("0 0 4 * * *", "`0 0 4 * * *` has 6 fields, and a cron expression has 5"),
        ("61 * * * *", "`61 * * * *` has the minute `61`, which no firing can have"),
        ("0 0 30 2 *", "`0 0 30 2 *` has the day of the month `30`, which no firing can have"),
        ("0 0 * 13 *", "`0 0 * 13 *` has the month `13`, which no firing can have"),
        ("0 0 * * mo", "`0 0 * * mo` has the day of the week `mo`, which no firing can have"),
        ("0 0 29 2 */7", "`0 0 29 2 */7` fires only once from 2000 to 2027"),
    ],
)
def test_cadence_is_refused(text: str, message: str) -> None:
    with pytest.raises(CadenceError) as caught:
        cadence(text)

    assert message == str(caught.value)


def field(low: int, high: int) -> st.SearchStrategy[str]:
    number = st.integers(low, high)
    span = st.tuples(number, number).map(lambda pair: f"{min(pair)}-{max(pair)}")
    step = st.integers(1, high).map("*/{}".format)
    listed = st.lists(st.one_of(number.map(str), span), min_size=1, max_size=3).map(",".join)
    return st.one_of(st.just("*"), step, listed)


@settings(max_examples=40)
@given(st.tuples(st.integers(0, 59).map(str), st.integers(0, 23).map(str), field(1, 28), field(1, 12), field(0, 7)))
def test_gap_is_that_of_the_firings(fields: tuple[str, ...]) -> None:
    expression = " ".join(fields)
    firings = []
    for firing in CronSim(expression, datetime(1999, 12, 31, 23, 59, tzinfo=UTC)):
        if firing.year > 2027 or len(firings) > 1000:
            break
        firings.append(firing)
    gaps = [later - earlier for earlier, later in pairwise(firings)]

    if firings[-1].year < 2027 and len(firings) > 1000:
        assert parse_duration(cadence(expression)) <= min(gaps).total_seconds() * SECOND
    elif gaps:
        assert parse_duration(cadence(expression)) == min(gaps).total_seconds() * SECOND


def test_rare_firings_of_every_minute_are_found_quickly() -> None:
    started = time.perf_counter()
    assert cadence("* * * * *") == "1m"
    assert cadence("* * 29 2 *") == "1m"

    assert time.perf_counter() - started < 2


USUAL = st.sampled_from(
    ["*", "*/5", "*/7", "*/15", "*/59", "*/90", "0", "05", "7", "23", "59", "60", "*/0", "1-5", "1,2", ""]
)


@given(
    USUAL,
    USUAL,
    st.sampled_from(["*", "1"]),
    st.sampled_from(["*", "2"]),
    st.sampled_from(["*", "0", "3", "7", "8", "1-5"]),
)
def test_what_is_told_without_the_library_is_what_it_says(
    minute: str, hour: str, day: str, month: str, week: str
) -> None:
    fields = [minute, hour, day, month, week]
    told = module._usual_gap(fields)
    if told is None:
        return
    firings = CronSim(" ".join(fields), datetime(2000, 1, 1, tzinfo=UTC))
    first = [next(firings) for _ in range(2 * 60 * 24 + 1 if told < 60 else 60)]
    assert min((later - earlier).total_seconds() for earlier, later in pairwise(first)) == 60 * told


@pytest.mark.parametrize(
    ("text", "minutes"),
    [("0 3 * * *", 1440), ("*/15 * * * *", 15), ("7 */6 * * *", 360), ("30 4 * * 1", 10080), ("*/7 * * * *", 4)],
)
def test_usual_expressions_need_no_calendar(text: str, minutes: int) -> None:
    assert module._usual_gap(text.split()) == minutes
