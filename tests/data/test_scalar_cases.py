from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from render.yaml import scalar

SHARED = Path(os.environ.get("RENDER_SHARED", Path(__file__).parents[3] / "shared"))
CASES = SHARED / "cases" / "yaml-scalars.jsonl"

pytestmark = pytest.mark.skipif(not CASES.exists(), reason="the shared cases are absent")


@pytest.fixture(scope="module")
def cases() -> list[dict[str, Any]]:
    return [json.loads(line) for line in CASES.read_text(encoding="utf-8").splitlines()]


def scanned(text: str) -> tuple[str, bool]:
    """The scalar's text as a scanner hands it over, without blanks and comment, and whether a comment was cut."""
    trimmed = re.split(r"(?:^|[ \t]+)#", text, maxsplit=1)
    return trimmed[0].strip(" \t\x85\u2028"), len(trimmed) > 1


def same(expected: Any, actual: Any) -> bool:
    if isinstance(expected, bool) or isinstance(actual, bool) or expected is None or isinstance(expected, str):
        return type(expected) is type(actual) and expected == actual
    return isinstance(actual, int | float) and float(expected) == float(actual)


def plain_cases(cases: list[dict[str, Any]]) -> list[tuple[dict[str, Any], str, bool]]:
    """The cases that hold one plain scalar or none, each with the scalar's text and whether a comment follows."""
    found = []
    for case in cases:
        text, commented = scanned(case["plain"])
        if not text or scalar.is_plain(text):
            found.append((case, text, commented))
    return found


def test_values_are_what_both_readers_give(cases: list[dict[str, Any]]) -> None:
    wrong = []
    for case, text, _ in plain_cases(cases):
        sigs, kyaml = scalar.sigs(text), scalar.kyaml(text)
        if sigs.kind != case["kind"] or not same(case["json"], sigs.value):
            wrong.append((case, sigs))
        if kyaml.kind != case["kyaml"]["kind"] or not same(case["kyaml"]["json"], kyaml.value):
            wrong.append((case, kyaml))
    assert wrong == []


def test_keys_are_what_both_readers_give(cases: list[dict[str, Any]]) -> None:
    wrong = []
    for case, text, commented in plain_cases(cases):
        # A comment hides the colon; at the start of a line `---` and `...` are no keys.
        if commented or text.startswith(("--- ", "... ")):
            continue
        if case["key_json"] != scalar.sigs_key(text):
            wrong.append((case, "sigs", scalar.sigs_key(text)))
        if case["kyaml"]["key"] != scalar.kyaml_key(text):
            wrong.append((case, "kyaml", scalar.kyaml_key(text)))
    assert wrong == []


def test_most_cases_are_plain_scalars(cases: list[dict[str, Any]]) -> None:
    assert (len(cases), len(plain_cases(cases))) == (2434, 2137)


def test_what_a_reader_refuses_is_no_plain_scalar(cases: list[dict[str, Any]]) -> None:
    refused = [case for case in cases if case["kyaml"]["kind"] == "error"]
    assert len(refused) > 150
    assert [case for case in refused if scalar.is_plain(scanned(case["plain"])[0])] == []


def test_a_text_is_plain_when_both_readers_spell_it_back(cases: list[dict[str, Any]]) -> None:
    for case in cases:
        text = case["plain"]
        as_is = case["kind"] == case["kyaml"]["kind"] == "string" and case["json"] == case["kyaml"]["json"] == text
        assert (text, as_is) == (text, scalar.is_plain_string(text))


def test_the_readers_differ_where_their_answers_do(cases: list[dict[str, Any]]) -> None:
    for case, text, _ in plain_cases(cases):
        differ = case["kind"] != case["kyaml"]["kind"] or not same(case["json"], case["kyaml"]["json"])
        assert (text, differ) == (text, scalar.readers_differ(text))
