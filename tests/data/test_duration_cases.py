"""Every recorded answer of Go's duration parser and of the patterns in Flux's schemas."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from render.flux.cadence import DurationError, parse_duration, parse_go_duration

CASES = Path(os.environ.get("RENDER_SHARED", Path(__file__).parents[3] / "shared")) / "cases"
pytestmark = pytest.mark.skipif(not CASES.is_dir(), reason="the shared cases are not here")


def go(text: str) -> int | None:
    try:
        return parse_go_duration(text)
    except DurationError:
        return None


def flux(text: str, *, hours: bool) -> int | None:
    try:
        return parse_duration(text, hours=hours)
    except DurationError:
        return None


def test_durations_are_read_as_schema_and_controller_read_them() -> None:
    with (CASES / "durations.jsonl").open(encoding="ascii") as lines:
        cases = [json.loads(line) for line in lines]

    assert len(cases) > 300
    for case in cases:
        text, nanoseconds = case["s"], case["go_ns"]
        expected = (nanoseconds, nanoseconds if case["dur_h"] else None, nanoseconds if case["dur_m"] else None)
        assert expected == (go(text), flux(text, hours=True), flux(text, hours=False)), text
