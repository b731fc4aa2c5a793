from __future__ import annotations

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from render.flux.gotemplate import TemplateError, parse
from tests.gotemplates import REFUSED, TAKEN, fragments


def fault_of(text: str) -> TemplateError | None:
    try:
        parse(text, frozenset())
    except TemplateError as error:
        return error
    return None


@pytest.mark.parametrize("text", TAKEN)
def test_template_is_taken(text: str) -> None:
    parse(text, frozenset())


@pytest.mark.parametrize("text", REFUSED)
def test_template_is_refused(text: str) -> None:
    with pytest.raises(TemplateError):
        parse(text, frozenset())


@given(st.one_of(st.text(), st.lists(fragments(), max_size=8).map("".join)))
def test_any_text_is_taken_or_refused_at_a_line_of_it(text: str) -> None:
    found = fault_of(text)

    event("taken" if found is None else "refused")
    assert found is None or 1 <= found.line <= text.count("\n") + 1
    assert found is None or str(found)


@given(st.text().filter(lambda text: "{{" not in text))
def test_text_without_actions_is_taken(text: str) -> None:
    assert parse(text, frozenset()).actions == []


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a\nb {{ nofunction }}", 2),
        ("{{ print\n  1\n  nofunction }}", 3),
        ("{{ print `\n\n` }}{{ $x }}", 3),
        ("{{ if .A }}\n\n", 3),
        ("{{/* a\n */}}\n{{ end }}", 3),
        ("a\n{{- . -}}\n\n{{ . . ", 4),
    ],
)
def test_fault_has_its_line(text: str, line: int) -> None:
    with pytest.raises(TemplateError) as raised:
        parse(text, frozenset())
    assert raised.value.line == line


@pytest.mark.parametrize("text", ["{{ if .A }}" * 5000, "{{ if .A }}{{ else if .A }}" * 5000, "{{ " + "(" * 5000])
def test_template_that_is_nested_too_deep_is_refused(text: str) -> None:
    with pytest.raises(TemplateError, match="nested too deep"):
        parse(text, frozenset())


def test_a_long_template_is_taken() -> None:
    text = '{{ range .A }}{{ .B | printf "%s" }}\n{{ end }}' * 3000

    assert len(parse(text, frozenset()).actions) == 3000


def test_tree_holds_what_is_asked_for() -> None:
    text = "a {{ range $k, $v := .Changed.Objects }}{{ $v.Setter | print }}{{ else }}b{{ end }}"
    (action,) = parse(text, frozenset()).actions

    assert (action.kind, action.other) == ("range", [])
    assert action.pipeline is not None
    assert action.pipeline.declared == ["$k", "$v"]
    ((operand,),) = action.pipeline.commands
    assert (operand.kind, operand.fields) == ("field", ["Changed", "Objects"])
    (inner,) = action.body
    assert inner.pipeline is not None
    assert [[one.kind for one in command] for command in inner.pipeline.commands] == [["variable"], ["identifier"]]
