from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from render.flux.substitution import SubstitutionError, Variable, escaped, variables


@pytest.mark.parametrize("text", ["", "a", "$a", "$1", "$(a)", "$", "a$", "$$", "$${a}", "$$$${a}", "{a}", "$ {a}"])
def test_only_braces_after_one_dollar_are_a_variable(text: str) -> None:
    assert variables(text) == []


def test_variable_is_given_with_its_place() -> None:
    assert variables("x ${a} $$${b:=c}!") == [Variable("a", 2, 6, False), Variable("b", 9, 16, True)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("${a}", [("a", False)]),
        ("${a=}", [("a", True)]),
        ("${a:=d}", [("a", True)]),
        ("${a:-d e}", [("a", True)]),
        ("${a:+d}", [("a", False)]),
        ("${a:?d}", [("a", False)]),
        ("${a:-{}}", [("a", True)]),
        ("${a:-${b:-${c}}}", [("c", False), ("b", True), ("a", True)]),
        ("${a:-x${b}y}", [("b", False), ("a", True)]),
        ("${#a}", [("a", False)]),
        ("${a:1}", [("a", False)]),
        ("${a:${b}:${c}}", [("b", False), ("c", False), ("a", False)]),
        ("${a##*/}", [("a", False)]),
        ("${a%.*}", [("a", False)]),
        ("${a/b/}", [("a", False)]),
        ("${a//\\//-}", [("a", False)]),
        ("${a/%b/${c}}", [("c", False), ("a", False)]),
        ("${a^^}${b,}", [("a", False), ("b", False)]),
    ],
)
def test_forms_are_those_of_a_shell(text: str, expected: list[tuple[str, bool]]) -> None:
    assert [(one.name, one.has_default) for one in variables(text)] == expected


@pytest.mark.parametrize(
    ("text", "fault", "reason"),
    [
        ("${", "${", "no name follows the brace"),
        ("a ${}", "${}", "no name follows the brace"),
        ("${ a }", "${ a }", "no name follows the brace"),
        ("${{ a }}", "${{ a }", "no name follows the brace"),
        ("${a", "${a", "the closing brace is missing"),
        ("x ${a-b} y", "${a-b}", "the closing brace is missing"),
        ("${a.b}", "${a.b}", "the closing brace is missing"),
        ("${a+b}", "${a+b}", "the closing brace is missing"),
        ("${a^^^}", "${a^^^}", "the closing brace is missing"),
        ("${a#}", "${a#}", "a parameter is missing"),
        ("${a%%}", "${a%%}", "a parameter is missing"),
        ("${a:}", "${a:}", "a parameter is missing"),
        ("${a:0:}", "${a:0:}", "a parameter is missing"),
        ("${a:0:-1}", "${a:0:-1}", "a length is negative"),
        ("${a/}", "${a/}", "the `/` before the replacement is missing"),
        ("${a:-${b.c}}", "${b.c}", "the closing brace is missing"),
    ],
)
def test_what_flux_fails_on_is_told_with_its_bounds(text: str, fault: str, reason: str) -> None:
    with pytest.raises(SubstitutionError) as raised:
        variables(text)

    assert text[raised.value.position : raised.value.end] == fault
    assert str(raised.value) == reason


@pytest.mark.parametrize(("name", "expected"), [("a", True), ("_1", True), ("1", False), ("1a", False), ("é", False)])
def test_names_that_can_be_set(name: str, expected: bool) -> None:
    (found,) = variables(f"${{{name}}}")

    assert found.can_be_set is expected


def _read(text: str) -> tuple[SubstitutionError | None, list[Variable]]:
    try:
        return None, variables(text)
    except SubstitutionError as error:
        return error, []


@given(st.text("${}ab:=-+?#%/^,.\\ \n", max_size=30))
def test_every_text_is_read_or_refused(text: str) -> None:
    fault, found = _read(text)

    if fault is not None:
        assert text.startswith("${", fault.position)
        assert fault.position < fault.end <= len(text)
    for one in found:
        assert text.startswith(f"${{{one.name}", one.start) or text.startswith(f"${{#{one.name}", one.start)
        assert text[one.end - 1] == "}"


@given(st.text(max_size=30))
def test_text_whose_dollars_are_doubled_holds_no_variable(text: str) -> None:
    assert variables(text.replace("$", "$$")) == []


def substituted(text: str) -> str:
    """What Flux makes of a text without variables: it reads from the left, and two dollar signs are one."""
    assert variables(text) == []
    return text.replace("$$", "$")


@given(st.text("${}ab \n", max_size=30))
def test_text_that_is_escaped_passes_the_substitution_as_it_is(text: str) -> None:
    assert substituted(escaped(text)) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{{ range $k, $v := .Changed.Objects }}", "{{ range $k, $v := .Changed.Objects }}"),
        ("costs $5, or $", "costs $5, or $"),
        ("${A}", "$${A}"),
        ("$${A}", "$$$${A}"),
        ("$$", "$$$$"),
        ("{{ `$${` }}", "{{ `$$$${` }}"),
    ],
)
def test_only_what_substitution_would_take_is_escaped(text: str, expected: str) -> None:
    assert escaped(text) == expected
