"""Every recorded answer of the real version and range parser."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from render.flux.semver import Constraint, RangeError, VersionError, parse_version

CASES = Path(os.environ.get("RENDER_SHARED", Path(__file__).parents[3] / "shared")) / "cases"
pytestmark = pytest.mark.skipif(not CASES.is_dir(), reason="the shared cases are not here")


def cases(name: str) -> Iterator[dict[str, Any]]:
    with (CASES / f"{name}.jsonl").open(encoding="ascii") as lines:
        yield from map(json.loads, lines)


def normalized(tag: str) -> str | None:
    try:
        return str(parse_version(tag))
    except VersionError:
        return None


def test_tags_are_versions_exactly_where_flux_takes_them() -> None:
    expected = {case["tag"]: case["normalized"] for case in cases("semver-parse")}

    assert len(expected) > 3000
    assert expected == {tag: normalized(tag) for tag in expected}


def answers(text: str, tags: list[str]) -> dict[str, bool | str] | None:
    try:
        constraint = Constraint.parse(text)
    except RangeError:
        return None
    return {tag: "unparsable" if normalized(tag) is None else constraint.check(parse_version(tag)) for tag in tags}


def test_ranges_admit_exactly_what_the_library_admits() -> None:
    expected = {case["range"]: case["checks"] if case["valid"] else None for case in cases("semver-ranges")}

    assert len(expected) > 1500
    assert expected == {text: answers(text, list(checks or ())) for text, checks in expected.items()}


def test_refused_ranges_say_where() -> None:
    for case in cases("semver-ranges"):
        if not case["valid"]:
            with pytest.raises(RangeError) as caught:
                Constraint.parse(case["range"])

            assert 0 <= caught.value.position <= len(case["range"])


def test_positions_agree_with_membership() -> None:
    for case in cases("semver-ranges"):
        if not case["valid"]:
            continue
        constraint = Constraint.parse(case["range"])
        checks = {parse_version(tag): answer for tag, answer in case["checks"].items() if answer != "unparsable"}
        admitted = [version for version, answer in checks.items() if answer]
        assert not (admitted and constraint.is_empty)
        for version, answer in checks.items():
            position = constraint.position(version)
            assert (position == "inside") == answer
            assert position != "above" or all(version < other for other in admitted)
            assert position != "below" or all(other < version for other in admitted)
