from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from render.diagnostics import Diagnostic
from render.model.read import INVALID, Reader, Record, compile_schema
from render.yaml import scalar
from render.yaml.source import Mapping, Scalar, Source, parse

Schema = dict[str, Any]

STRING: Schema = {"type": "string"}
INTEGER: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
BOOLEAN: Schema = {"type": "boolean"}
PORT: Schema = {"anyOf": [INTEGER, STRING]}
QUANTITY: Schema = {"anyOf": [NUMBER, STRING]}


def record(required: str = "", **properties: Schema) -> Schema:
    schema = {"type": "object", "properties": properties, "required": required.split(), "additionalProperties": False}
    return schema if required else {key: value for key, value in schema.items() if key != "required"}


def nullable(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def read(schema: Schema, text: str, path: str = "") -> tuple[Any, list[Diagnostic]]:
    """Read the only document of a text; the value as plain data, and the faults in order."""
    source = Source("web.yaml", text)
    documents, faults = parse(source)
    assert faults == []
    value = Reader(source, faults).read(compile_schema(schema), documents[0].root, path)
    assert (value is INVALID) == bool(faults)
    return plain(value), faults


def plain(value: Any) -> Any:
    if isinstance(value, Record):
        return {name: plain(inner) for name, inner in vars(value).items() if name != "node"}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return {key: plain(inner) for key, inner in value.items()} if isinstance(value, dict) else value


def value_of(schema: Schema, text: str) -> Any:
    """Return what is made of the text of one field."""
    made, faults = read(record(field=schema), f"field: {text}")
    assert faults == []
    return made["field"]


def fault_of(schema: Schema, text: str) -> Diagnostic:
    """Return the one fault of the text of one field."""
    _, faults = read(record(field=schema), f"field: {text}")
    assert len(faults) == 1, faults
    return faults[0]


class TestText:
    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ("web", "web"),
            ("'8080'", "8080"),
            ('"yes"', "yes"),
            ('""', ""),
            ("1.2.3", "1.2.3"),
            ("|-\n  true", "true"),
            ("!!str 8080", "8080"),
        ],
    )
    def test_what_every_reader_takes_for_a_string_is_one(self, text: str, value: str) -> None:
        assert value == value_of(STRING, text)

    @pytest.mark.parametrize(
        ("text", "kind", "reading"),
        [
            ("8080", "the number", ""),
            ("1.10", "the number", "`1.1`"),
            ("0644", "the number", "`420`"),
            ("0x1F", "the number", "`31`"),
            ("1_000", "the number", "`1000`"),
            ("yes", "the boolean", "`true`"),
            ("n", "the boolean", "`false`"),
            ("True", "the boolean", "`true`"),
            ("2020-01-01", "the date", "`2020-01-01T00:00:00Z`"),
            ("12:30", "", ""),
            ("<<", "", ""),
        ],
    )
    def test_an_ambiguous_scalar_is_quoted_in_the_hint(self, text: str, kind: str, reading: str) -> None:
        fault = fault_of(STRING, text)
        assert ("R103", f'quote it: `field: "{text}"`') == (fault.code, fault.hint)
        assert fault.message.startswith(f"`field` must be a string, not {kind}")
        assert fault.message.endswith(f" `{text}`")
        assert reading in fault.cause
        assert (1, 8, len(text)) == (fault.location.line, fault.location.column, fault.location.length)

    @pytest.mark.parametrize(("text", "kind"), [("[a]", "a list"), ("{a: b}", "a mapping")])
    def test_a_collection_is_no_string(self, text: str, kind: str) -> None:
        assert f"`field` must be a string, not {kind}" == fault_of(STRING, text).message

    def test_an_enum_names_its_words_and_the_closest(self) -> None:
        schema = {"type": "string", "enum": ["Always", "IfNotPresent", "Never"]}
        assert value_of(schema, "Never") == "Never"
        fault = fault_of(schema, "always")
        assert fault.code == "R104"
        assert fault.message == "`field` must be `Always`, `IfNotPresent` or `Never`, not `always`"
        assert fault.hint.endswith(" `Always`")
        assert "`" not in fault_of(schema, "sometimes").hint

    def test_a_constant_is_an_enum_of_one(self) -> None:
        assert value_of({"const": "v1"}, "v1") == "v1"
        assert fault_of({"const": "v1"}, "v2").message == "`field` must be `v1`, not `v2`"

    def test_a_pattern_is_told_by_its_meaning(self) -> None:
        name = {"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"}
        assert value_of(name, "web-1") == "web-1"
        fault = fault_of(name, "My App")
        assert fault.code == "R104"
        assert fault.message.startswith("`field` must be lower-case letters, digits and ")
        assert fault.message.endswith(", not `My App`")
        assert fault.hint.endswith(" `my-app`")
        assert fault_of({"type": "string", "pattern": "^x+$"}, "z").message == (
            "`field` must be text matching `^x+$`, not `z`"
        )

    def test_a_pattern_does_not_end_before_a_newline(self) -> None:
        assert fault_of({"type": "string", "pattern": "^x+$"}, '"x\\n"').code == "R104"

    @pytest.mark.parametrize(
        ("text", "size"), [("x", "at least 2 characters, not 1"), ("abcd", "at most 3 characters, not 4")]
    )
    def test_lengths_are_counted(self, text: str, size: str) -> None:
        schema = {"type": "string", "minLength": 2, "maxLength": 3}
        assert value_of(schema, "äöü") == "äöü"
        assert f"`field` must have {size}" == fault_of(schema, text).message

    @given(st.text("abyYnN01.:eExX_+-~<=onrfalsu", min_size=1, max_size=8).filter(scalar.is_plain))
    def test_a_plain_scalar_is_taken_only_as_both_readers_take_it(self, text: str) -> None:
        _, faults = read(record("field", field=STRING), f"field: {text}")
        agreed = scalar.sigs(text) == scalar.kyaml(text) == scalar.Resolved("string", text)
        assert agreed or faults
        assert not faults or not agreed or ":" in text


class TestNumbers:
    @pytest.mark.parametrize("text", ["0", "1", "-1", "123456789012345678"])
    def test_an_integer_is_decimal(self, text: str) -> None:
        assert int(text) == value_of(INTEGER, text)

    @pytest.mark.parametrize(
        ("text", "kind"),
        [
            ('"1"', "the string `1`"),
            ("1.0", "the number `1.0`"),
            ("1e3", "the number `1e3`"),
            ("010", "the number `010`"),
            ("0x10", "the number `0x10`"),
            ("1_000", "the number `1_000`"),
            ("+1", "the number `+1`"),
            ("-0", "the number `-0`"),
            ("one", "the text `one`"),
            ("true", "the boolean `true`"),
            ("[1]", "a list"),
        ],
    )
    def test_nothing_else_is_an_integer(self, text: str, kind: str) -> None:
        fault = fault_of(INTEGER, text)
        assert ("R103", f"`field` must be an integer, not {kind}") == (fault.code, fault.message)

    @pytest.mark.parametrize(("text", "bound"), [("0", "at least 1, not `0`"), ("65536", "at most 65535, not `65536`")])
    def test_an_integer_has_bounds(self, text: str, bound: str) -> None:
        schema = {"type": "integer", "minimum": 1, "maximum": 65535}
        assert value_of(schema, "1") == 1
        assert value_of(schema, "65535") == 65535
        fault = fault_of(schema, text)
        assert ("R104", f"`field` must be {bound}") == (fault.code, fault.message)

    @pytest.mark.parametrize(("text", "value"), [("0644", 0o644), ("0o400", 0o400), ("420", 420), ("0", 0), ("00", 0)])
    def test_a_mode_may_be_octal(self, text: str, value: int) -> None:
        assert value == value_of({"type": "integer", "x-octal": True}, text)
        assert scalar.Resolved("int", value) == scalar.sigs(text) == scalar.kyaml(text)

    @pytest.mark.parametrize("text", ["0888", "0o", "0x1a4", '"0644"', "rwx"])
    def test_what_is_no_octal_number_is_no_mode(self, text: str) -> None:
        assert fault_of({"type": "integer", "x-octal": True}, text).message.startswith(
            "`field` must be an integer, not"
        )

    @pytest.mark.parametrize(
        ("text", "value"), [("1", 1), ("0.5", 0.5), ("-1.25", -1.25), ("129e6", 129e6), ("1.5E-3", 0.0015)]
    )
    def test_a_number_may_have_a_fraction_and_an_exponent(self, text: str, value: float) -> None:
        assert value == value_of(NUMBER, text)

    @pytest.mark.parametrize("text", [".inf", ".nan", "1e400", "0x10", '"0.5"', "1.2.3", "half"])
    def test_nothing_else_is_a_number(self, text: str) -> None:
        assert fault_of(NUMBER, text).message.startswith("`field` must be a number, not")

    @pytest.mark.parametrize(("text", "value"), [("true", True), ("False", False), ("TRUE", True)])
    def test_a_boolean_is_spelled_as_every_reader_takes_it(self, text: str, value: bool) -> None:
        assert value is value_of(BOOLEAN, text)

    @pytest.mark.parametrize("text", ["yes", "on", "n", "1", '"true"', "tRuE", "{}"])
    def test_nothing_else_is_a_boolean(self, text: str) -> None:
        assert fault_of(BOOLEAN, text).message.startswith("`field` must be `true` or `false`, not")


class TestUnions:
    @pytest.mark.parametrize(("text", "value"), [("8080", 8080), ("http", "http"), ('"8080"', "8080"), ("25%", "25%")])
    def test_an_integer_or_string_is_told_by_its_spelling(self, text: str, value: object) -> None:
        made = value_of(PORT, text)
        assert (type(value), value) == (type(made), made)

    @pytest.mark.parametrize(
        ("text", "value"), [("1", 1), ("0.5", 0.5), ("500m", "500m"), ("1Gi", "1Gi"), ('"1"', "1")]
    )
    def test_a_number_or_string_is_told_by_its_spelling(self, text: str, value: object) -> None:
        made = value_of(QUANTITY, text)
        assert (type(value), value) == (type(made), made)

    def test_the_order_of_scalar_forms_makes_no_difference_to_these(self) -> None:
        assert value_of({"anyOf": [STRING, INTEGER]}, "8080") == 8080
        assert value_of({"anyOf": [STRING, INTEGER, BOOLEAN]}, "true") is True

    @pytest.mark.parametrize(
        ("schema", "text", "message", "hint"),
        [
            (PORT, "0.5", "an integer or a string, not the number `0.5`", 'quote it: `field: "0.5"`'),
            (PORT, "010", "an integer or a string, not the number `010`", 'quote it: `field: "010"`'),
            (PORT, "yes", "an integer or a string, not the boolean `yes`", 'quote it: `field: "yes"`'),
            (QUANTITY, "0x10", "a number or a string, not the number `0x10`", 'quote it: `field: "0x10"`'),
            ({"anyOf": [INTEGER, BOOLEAN]}, "web", "an integer or `true` or `false`, not the text `web`", ""),
            (PORT, "[1]", "an integer or a string, not a list", ""),
        ],
    )
    def test_what_has_none_of_the_forms_is_one_fault(self, schema: Schema, text: str, message: str, hint: str) -> None:
        fault = fault_of(schema, text)
        assert ("R103", f"`field` must be {message}", hint) == (fault.code, fault.message, fault.hint)

    def test_bounds_of_the_chosen_form_hold(self) -> None:
        schema = {"anyOf": [{"type": "integer", "maximum": 9}, {"type": "string", "enum": ["http"]}]}
        assert fault_of(schema, "10").message == "`field` must be at most 9, not `10`"
        assert fault_of(schema, "https").hint.endswith(" `http`")

    def test_forms_of_several_kinds_are_told_by_the_node(self) -> None:
        schema = {"anyOf": [STRING, {"type": "array", "items": STRING}, record("ref", ref=STRING)]}
        assert value_of(schema, "a") == "a"
        assert value_of(schema, "[a, b]") == ["a", "b"]
        assert value_of(schema, "{ref: a}") == {"ref": "a"}
        assert fault_of(schema, "1").message == "`field` must be a string, not the number `1`"
        assert fault_of(schema, "{}").message == "`field` needs the field `ref`"
        assert fault_of({"anyOf": [STRING, record(ref=STRING)]}, "[]").message == (
            "`field` must be a string or a mapping, not a list"
        )


class TestNull:
    @pytest.mark.parametrize("text", ["", "~", "null", "NULL"])
    @pytest.mark.parametrize("schema", [STRING, INTEGER, PORT, nullable(STRING), nullable(PORT), record(a=STRING)])
    def test_null_is_absence_where_a_field_may_be_absent(self, schema: Schema, text: str) -> None:
        assert value_of(schema, text) is None

    @pytest.mark.parametrize("schema", [STRING, INTEGER, BOOLEAN, PORT, {"type": "array"}, {"type": "object"}])
    def test_null_is_a_fault_where_a_field_is_required(self, schema: Schema) -> None:
        _, faults = read(record("field", field=schema), "field:")
        assert [fault.code for fault in faults] == ["R103"]
        assert faults[0].message.endswith(", not empty")
        assert faults[0].hint == "give `field` a value, or remove the key"

    def test_null_is_a_fault_in_lists_and_maps(self) -> None:
        assert fault_of({"type": "array", "items": STRING}, "[a, null]").message == (
            "`field[1]` must be a string, not empty"
        )
        assert fault_of({"type": "object", "additionalProperties": STRING}, "{a: ~}").message == (
            "`field.a` must be a string, not empty"
        )

    def test_a_quoted_null_is_a_string(self) -> None:
        assert value_of(STRING, '"null"') == "null"


class TestRecords:
    SCHEMA = record(
        "name",
        name=STRING,
        readOnly=BOOLEAN,
        ports={"type": "array", "items": record("port", port=INTEGER, host=STRING)},
        labels={"type": "object", "additionalProperties": STRING},
        retries={"type": "integer", "default": 3},
        update={**record(channel={"type": "string", "default": "stable"}), "default": {}},
    )

    def test_fields_become_attributes_with_defaults(self) -> None:
        made, faults = read(self.SCHEMA, "name: web\nreadOnly: true\nports: [{port: 80}]\nlabels: {a.b/c: d}")
        assert faults == []
        assert made == {
            "name": "web",
            "read_only": True,
            "ports": [{"port": 80, "host": None}],
            "labels": {"a.b/c": "d"},
            "retries": 3,
            "update": {"channel": "stable"},
        }

    def test_a_record_knows_its_node_and_no_other_attribute(self) -> None:
        source = Source("web.yaml", "name: web")
        documents, faults = parse(source)
        made = Reader(source, faults).read(compile_schema(self.SCHEMA), documents[0].root, "")
        assert made.node is documents[0].root
        assert made.update.node is None
        with pytest.raises(AttributeError):
            made.readOnly  # noqa: B018

    def test_an_unknown_field_suggests_the_closest_that_is_absent(self) -> None:
        _, faults = read(self.SCHEMA, "name: web\nread_only: true\nlabel: {}\nnames: x\ncolour: red")
        assert [(fault.code, fault.location.line, fault.message, fault.hint) for fault in faults] == [
            ("R101", 2, "unknown field `read_only`", "rename it to `readOnly`"),
            ("R101", 3, "unknown field `label`", "rename it to `labels`"),
            ("R101", 4, "unknown field `names`", "remove it"),
            ("R101", 5, "unknown field `colour`", "remove it"),
        ]
        assert faults[0].cause.startswith("the document allows `")
        assert sorted(self.SCHEMA["properties"]) == sorted(re.findall("`([^`]+)`", faults[0].cause))

    def test_a_misspelled_required_field_is_one_fault(self) -> None:
        _, faults = read(self.SCHEMA, "nmae: web")
        assert [(fault.code, fault.hint) for fault in faults] == [("R101", "rename it to `name`")]

    def test_a_missing_field_is_told_at_the_key_of_its_parent(self) -> None:
        _, faults = read(self.SCHEMA, "ports:\n  - host: a\n  - {}\n")
        assert [(fault.code, fault.message, fault.hint) for fault in faults] == [
            ("R102", "`ports[0]` needs the field `port`", "add `port: …`"),
            ("R102", "`ports[1]` needs the field `port`", "add `port: …`"),
            ("R102", "the document needs the field `name`", "add `name: …`"),
        ]
        _, faults = read(record(probe=record("port", port=INTEGER)), "\nprobe:\n  {}")
        assert [(fault.location.line, fault.location.column) for fault in faults] == [(2, 1)]

    def test_all_faults_of_nested_records_are_found_and_named_by_path(self) -> None:
        text = "name: 1\nports: [{port: a, hots: b}, {port: 1, host: 2}]\nlabels: {a: yes, 1: b}"
        _, faults = read(self.SCHEMA, text, "service")
        assert [(fault.code, fault.message) for fault in faults] == [
            ("R103", "`service.name` must be a string, not the number `1`"),
            ("R103", "`service.ports[0].port` must be an integer, not the text `a`"),
            ("R101", "unknown field `hots` in `service.ports[0]`"),
            ("R103", "`service.ports[1].host` must be a string, not the number `2`"),
            ("R103", "`service.labels.a` must be a string, not the boolean `yes`"),
            ("R103", "a key of `service.labels` must be a string, not the number `1`"),
        ]

    @pytest.mark.parametrize(("text", "kind"), [("web", "the text `web`"), ("[a]", "a list")])
    def test_a_document_that_is_no_mapping_is_one_fault(self, text: str, kind: str) -> None:
        _, faults = read(self.SCHEMA, text)
        assert [f"the document must be a mapping, not {kind}"] == [fault.message for fault in faults]

    def test_an_open_record_passes_over_other_fields(self) -> None:
        schema = {"type": "object", "properties": {"kind": STRING}}
        assert read(schema, "kind: a\nother: [1]") == ({"kind": "a"}, [])

    def test_definitions_are_resolved(self) -> None:
        schema = {**record(a={"$ref": "#/$defs/Name"}, b={"$ref": "#/$defs/Name"}), "$defs": {"Name": STRING}}
        assert read(schema, "a: x\nb: z") == ({"a": "x", "b": "z"}, [])
        assert [fault.message for fault in read(schema, "b: 1")[1]] == ["`b` must be a string, not the number `1`"]

    def test_a_hidden_line_shows_no_text(self) -> None:
        source = Source("web.yaml", "name: 12345\nsecret: x")
        documents, faults = parse(source)
        source.hide(documents[0].root)
        Reader(source, faults).read(compile_schema(self.SCHEMA), documents[0].root, "")
        assert [f.message for f in faults] == ["`name` must be a string, not the number `…`", "unknown field `…`"]


class TestCollections:
    def test_a_list_holds_what_its_items_became(self) -> None:
        assert value_of({"type": "array", "items": INTEGER}, "[1, 2]") == [1, 2]
        assert value_of({"type": "array", "items": PORT}, "[1, a]") == [1, "a"]
        assert value_of({"type": "array", "items": STRING}, "[]") == []

    def test_each_bad_item_is_a_fault(self) -> None:
        _, faults = read(record(a={"type": "array", "items": INTEGER}), "a: [1, x, z]")
        assert [fault.message for fault in faults] == [
            "`a[1]` must be an integer, not the text `x`",
            "`a[2]` must be an integer, not the text `z`",
        ]

    def test_a_list_item_is_quoted_without_its_path(self) -> None:
        assert fault_of({"type": "array", "items": STRING}, "[1.10]").hint == 'quote it: `"1.10"`'

    def test_a_list_has_a_limit(self) -> None:
        fault = fault_of({"type": "array", "items": INTEGER, "maxItems": 2}, "[1, 2, 3]")
        assert (fault.code, fault.message) == ("R104", "`field` must have at most 2 items, not 3")

    @pytest.mark.parametrize(("schema", "expected"), [({"type": "array"}, "a list"), ({"type": "object"}, "a mapping")])
    def test_a_scalar_is_no_collection(self, schema: Schema, expected: str) -> None:
        assert f"`field` must be {expected}, not the text `web`" == fault_of(schema, "web").message

    def test_a_mapping_of_any_form_is_carried_as_its_node(self) -> None:
        node = value_of({"type": "object", "additionalProperties": True}, "{a: [1, {b: yes}]}")
        assert type(node) is Mapping
        assert node.text("a") is None

    def test_a_value_of_any_form_is_carried_as_its_node(self) -> None:
        node = value_of({"description": "Anything."}, "1.10")
        assert type(node) is Scalar
        assert node.text == "1.10"
