"""The words of schema faults: what is expected, why, and what to write instead."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from render.diagnostics import Diagnostic
from render.flux.api import OBJECTS
from render.model import schema
from render.model.read import Reader, compile_schema
from render.model.wording import MEANINGS
from render.yaml.source import Source, parse

Schema = dict[str, Any]

STRING: Schema = {"type": "string"}
INTEGER: Schema = {"type": "integer", "maximum": 9}
NUMBER: Schema = {"type": "number"}
BOOLEAN: Schema = {"type": "boolean"}
NAME: Schema = {"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "maxLength": 53}
DURATION: Schema = {"type": "string", "pattern": r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"}
SHORT_DURATION: Schema = {"type": "string", "pattern": r"^([0-9]+(\.[0-9]+)?(ms|s|m))+$"}


def record(**properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "additionalProperties": False}


def faults(form: Schema, text: str) -> list[Diagnostic]:
    source = Source("web.yaml", text)
    documents, found = parse(source)
    assert found == []
    Reader(source, found).read(compile_schema(form), documents[0].root, "")
    return found


def fault(form: Schema, text: str) -> Diagnostic:
    """Return the one fault of the text of one field."""
    (found,) = faults(record(field=form), f"field: {text}")
    return found


@pytest.mark.parametrize(
    ("text", "kind", "reading"),
    [
        ("8080", "number", "without quotes it is a number to YAML"),
        ("2.9", "number", "without quotes it is a number to YAML, the same as `2.90`"),
        ("1e3", "number", "YAML reads it as `1000`"),
        (".inf", "number", "without quotes it is a number to YAML"),
        ("12:30", "plain", "readers of YAML 1.1 take it for a number in base 60"),
        ("<<", "plain", "YAML takes it for a merge key"),
        ("yes", "boolean", "YAML reads it as `true`"),
    ],
)
def test_an_ambiguous_scalar_is_told_what_it_would_be(text: str, kind: str, reading: str) -> None:
    found = fault(STRING, text)

    assert (found.message, found.cause) == (f"`field` must be a string, not the {kind} `{text}`", reading)


@pytest.mark.parametrize(
    ("form", "text", "hint"),
    [
        (INTEGER, '"2"', "remove the quotes: `field: 2`"),
        (NUMBER, "'0.5'", "remove the quotes: `field: 0.5`"),
        (INTEGER, "two", ""),
        (BOOLEAN, '"true"', "remove the quotes: `field: true`"),
        (BOOLEAN, "yes", "write `field: true`"),
        (BOOLEAN, "off", "write `field: false`"),
        (BOOLEAN, "2", ""),
        ({"type": "array"}, "web", "write each item on a line of its own, after `- `"),
        ({"type": "object"}, "none", "write its entries below it, as `key: value`"),
        ({"type": "object"}, "[{a: b}]", "write its entries as `key: value`, without `- `"),
        (record(a=STRING), "none", "write its entries below it, as `key: value`"),
    ],
)
def test_a_value_of_another_type_is_told_how_to_write_it(form: Schema, text: str, hint: str) -> None:
    found = fault(form, text)

    assert (found.code, found.hint) == ("R103", hint)


def test_a_document_that_is_a_list_is_told_how_to_begin() -> None:
    (found,) = faults(record(name=STRING), "- name: web")

    assert found.hint == "begin with the first key, without `- `"


def test_the_hint_names_the_last_key_even_if_it_holds_dots() -> None:
    found = fault({"type": "object", "additionalProperties": STRING}, "{app.kubernetes.io/part: 1}")

    assert found.hint == 'quote it: `app.kubernetes.io/part: "1"`'


def test_choices_stand_in_the_headline_where_it_holds_them() -> None:
    found = fault({"type": "string", "enum": ["Always", "Never"]}, "always")

    assert found.message == "`field` must be `Always` or `Never`, not `always`"
    assert (found.cause, found.hint) == ("", "write `Always`")


def test_choices_that_no_headline_holds_are_the_cause() -> None:
    form = {"type": "string", "enum": ["ClusterIP", "NodePort", "LoadBalancer", "ExternalName", "Headless"]}

    found = fault(form, "Nodeport")

    assert found.message == "`field` must be one of its choices, not `Nodeport`"
    assert found.cause == "the choices are `ClusterIP`, `NodePort`, `LoadBalancer`, `ExternalName`, `Headless`"
    assert found.hint == "write `NodePort`"
    assert fault(form, "none-of-these").hint == ""


@pytest.mark.parametrize(
    ("form", "text", "message"),
    [
        (
            {"type": "string", "enum": ["on-failure", "never"]},
            "no",
            "`on-failure` or `never`, not the boolean `no`",
        ),
        (DURATION, "30", "a duration such as `1h30m`, not the number `30`"),
    ],
)
def test_quotes_are_no_remedy_where_the_quoted_text_would_not_do(form: Schema, text: str, message: str) -> None:
    found = fault(form, text)

    assert (found.code, found.message, found.hint) == ("R103", f"`field` must be {message}", "")


@pytest.mark.parametrize(
    ("text", "meant"), [("1d", "24h"), ("2w", "336h"), ("1 hour", "1h"), ("30min", "30m"), ("1H", "1h")]
)
def test_a_duration_is_mended(text: str, meant: str) -> None:
    found = fault(DURATION, text)

    assert found.message == f"`field` must be a duration such as `1h30m`, not `{text}`"
    assert found.cause == "units are `h`, `m`, `s` and `ms`; there are no days"
    assert found.hint == f"write `{meant}`"


@pytest.mark.parametrize(("text", "meant"), [("1h", "60m"), ("1h30m", "90m"), ("1d", "1440m"), ("2 min", "2m")])
def test_a_duration_without_hours_is_mended(text: str, meant: str) -> None:
    assert fault(SHORT_DURATION, text).hint == f"write `{meant}`"


@pytest.mark.parametrize(
    ("text", "hint"), [("My App", "write `my-app`"), ("web_ui", "write `web-ui`"), ("-", ""), ("größe", "")]
)
def test_a_name_is_mended(text: str, hint: str) -> None:
    assert fault(NAME, f'"{text}"').hint == hint


def test_the_limit_of_a_name_is_explained() -> None:
    found = fault(NAME, "a" * 55)

    assert found.message == "`field` must have at most 53 characters, not 55"
    assert found.cause == "Helm takes release names of at most 53 characters"
    assert found.hint == "shorten it by 2 characters"
    assert fault({"type": "string", "maxLength": 53}, "a" * 54).cause == ""


def test_an_empty_text_is_told_so() -> None:
    assert fault({"type": "string", "minLength": 1}, '""').message == "`field` must not be empty"


def patterns(part: Any) -> Iterator[str]:
    """Yield the patterns of a schema."""
    if isinstance(part, dict) and isinstance(part.get("pattern"), str):
        yield part["pattern"]
    for inner in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        yield from patterns(inner)


def test_every_pattern_of_the_forms_has_a_meaning() -> None:
    forms = [json.loads(schema.text("service")), json.loads(schema.text("platform"))]
    found = set(patterns([*forms, *(kind.spec for kind in OBJECTS.values())]))

    assert found
    assert found <= set(MEANINGS)


def test_the_closest_field_is_listed_first_though_the_list_is_cut() -> None:
    fields = {f"field{index:02}": STRING for index in range(20)}

    (found,) = faults(record(**fields, version=STRING), "verison: a")

    assert found.cause.startswith("the document allows `version`, `field00`, ")
    assert found.cause.endswith(", `field10`, …")


def test_an_unlisted_field_is_never_suggested() -> None:
    form = {**record(values=STRING, value=STRING), "x-unlisted": ["values"]}

    (found,) = faults(form, "valuess: a")

    assert faults(form, "values: a") == []
    assert (found.cause, found.hint) == ("the document allows `value`", "rename it to `value`")


def test_a_field_of_the_chart_is_sent_to_the_values() -> None:
    form = record(values={"type": "object"}, other=record(a=STRING))

    (top,) = faults(form, "replicaCount: 2")
    (inner,) = faults(form, "other: {replicaCount: 2}")

    assert top.hint == "put it under `values` if it is the chart's, else remove it"
    assert inner.hint == "remove it"


@pytest.mark.parametrize(
    ("form", "line", "secrets"),
    [
        (STRING, "012345", ["12345", "5349"]),
        (STRING, "1.10", ["1.1"]),
        (STRING, "yes", ["yes", "true"]),
        (STRING, "2024-07-01", ["2024"]),
        (INTEGER, '"8"', ["8"]),
        (INTEGER, "99999999999", ["99999999999"]),
        (BOOLEAN, '"yes"', ["yes", ": true"]),
        (DURATION, "1d", ["1d", "24h"]),
        (NAME, "My_Secret", ["My_Secret", "my-secret"]),
        ({"type": "string", "enum": ["Never"]}, "never", ["write"]),
        ({"type": "array"}, "12345", ["12345"]),
    ],
)
@pytest.mark.parametrize("name", ["hidden", "password"])
def test_a_secret_is_in_no_word(form: Schema, line: str, secrets: list[str], name: str) -> None:
    source = Source("web.yaml", f"{name}: {line}")
    documents, found = parse(source)
    if name == "hidden":
        source.hide(documents[0].root)

    Reader(source, found).read(compile_schema(record(**{name: form})), documents[0].root, "")

    told = " ".join((found[0].message, found[0].cause, found[0].hint, found[0].snippet))
    assert [secret for secret in secrets if secret in told] == []


def test_a_secret_key_is_in_no_word() -> None:
    source = Source("web.yaml", "field: {12345: a}")
    documents, found = parse(source)
    source.hide(documents[0].root)

    form = record(field={"type": "object", "additionalProperties": STRING})
    Reader(source, found).read(compile_schema(form), documents[0].root, "")

    assert [fault.hint for fault in found] == ["quote it"]
    assert "12345" not in found[0].message + found[0].cause
