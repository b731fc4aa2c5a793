from __future__ import annotations

import json
from itertools import zip_longest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from render import codes
from render.codes import CODES
from render.diagnostics import Diagnostic, Location
from render.report import WIDTH, render_concise, render_full, render_github, render_json


def fault(snippet: str, column: int, length: int = 1, **more: str) -> Diagnostic:
    return Diagnostic(Location("a.yaml", 7, column, length), "R103", "a fault", snippet=snippet, **more)  # type: ignore[arg-type]


def marked(snippet: str, column: int, length: int = 1) -> tuple[str, str]:
    """Return the source line and the carets as they are shown, without their gutters."""
    _, _, line, carets = render_full(fault(snippet, column, length)).splitlines()
    assert (line[:4], carets[:4]) == ("7 | ", "  | ")
    return line[4:], carets[4:]


def under(snippet: str, column: int, length: int = 1) -> str:
    """Return what the carets of a line of narrow characters mark."""
    line, carets = marked(snippet, column, length)
    return "".join(one for one, caret in zip_longest(line, carets, fillvalue="") if caret == "^")


def test_carets_mark_the_text() -> None:
    assert marked("key: [a, b]", 6, 6) == ("key: [a, b]", "     ^^^^^^")


def test_a_fault_behind_the_line_has_one_caret() -> None:
    assert marked("key: [", 7) == ("key: [", "      ^")


@pytest.mark.parametrize("column", [1, 50, 99, 100, 101, 150, 299, 300])
def test_a_long_line_is_clipped_around_the_carets(column: int) -> None:
    snippet = "".join(chr(ord("a") + index % 26) for index in range(300))

    line, _ = marked(snippet, column)

    assert len(line) <= WIDTH + 2
    assert snippet[column - 1] == under(snippet, column)
    assert line.strip("…") in snippet
    assert line.startswith("…") is (column > WIDTH)


def test_a_text_that_is_longer_than_the_window_is_shown_from_its_start() -> None:
    snippet = " " * 80 + "x" * 200 + "y"

    assert under(snippet, 81, 200)[:60] == "x" * 60


@given(st.text("ab\tü", max_size=400), st.integers(1, 401), st.integers(1, 300))
def test_carets_begin_at_the_column(snippet: str, column: int, length: int) -> None:
    column = min(column, len(snippet) + 1)
    if not snippet:
        return
    text = snippet.replace("\t", " ")

    shown = under(snippet, column, length)

    assert text[column - 1 :].startswith(shown)
    assert shown or column > len(snippet)


def test_wide_characters_take_two_columns() -> None:
    assert marked("名前: x", 5) == ("名前: x", "      ^")
    assert marked("名前: x", 1, 2) == ("名前: x", "^^^^")


def test_control_characters_reach_no_terminal() -> None:
    one = fault("a\x1b[2Jb\x9b1m", 2, cause="c\x1bd", hint="e\u202ef")
    one = Diagnostic(
        one.location,
        "R103",
        "m\x07n",
        cause=one.cause,
        hint=one.hint,
        snippet=one.snippet,
        related=((Location("b\udcff.yaml", 1), "w"),),
    )

    full, concise, github = render_full(one), render_concise(one), render_github(one)

    assert "7 | a·[2Jb·1m\n  |  ^\n" in full
    assert "m·n" in full
    assert "= w: b·.yaml:1\n" in full
    for text in (full, concise, github, render_json([one], {})):
        assert not {"\x1b", "\x9b", "\x07", "\u202e", "\udcff"} & set(text)
    assert json.loads(render_json([one], {}))["diagnostics"][0]["message"] == "m\x07n"


def test_document_has_one_title_and_a_section_a_family() -> None:
    lines = codes.document().splitlines()

    assert [line for line in lines if line.startswith("# ")] == ["# Diagnostics"]
    families = [line[3:5] for line in lines if line.startswith("## ")]
    assert families == sorted({code[:2] for code in CODES})
    assert [line[4:8] for line in lines if line.startswith("### ")] == list(CODES)
