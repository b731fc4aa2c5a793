"""Source nodes and a JSON Schema in, checked records out, every fault with its place.

The schemas are those that `render schema` prints, made from the models, and the tables of `render.flux.api`. A mapping
or value without a described form is carried as its source node. `x-octal` lets an integer be octal, as file modes are;
`x-unlisted` names fields that no suggestion offers, because they have a place of their own elsewhere.
"""

from __future__ import annotations

from render.model import wording
from render.model.fields import Record
from render.model.record import INVALID, Check, Invalid, Reader, Schema
from render.model.text import TextCheck
from render.patterns import lazy
from render.yaml import scalar
from render.yaml.source import Mapping, Node, Scalar, Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["INVALID", "Check", "ObjectCheck", "Reader", "Record", "Schema", "compile_schema", "snake_case"]

_INTEGER = lazy(r"(?:0|-?[1-9][0-9]{0,17})\Z")
_OCTAL = lazy(r"0o?[0-7]{1,7}\Z")
_HUMP = lazy(r"(?<=[a-z0-9])([A-Z])")
_FLOAT = lazy(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?\Z")


class AnyCheck(Check):
    """Anything; the node itself is the value."""

    def read(self, reader: Reader, node: Node, path: str, at: Node) -> Any:  # noqa: ARG002
        return node


class IntegerCheck(Check):
    """A decimal integer; with `x-octal`, as file modes have it, an octal one too."""

    expected = "an integer"

    def __init__(self, schema: Schema) -> None:
        self.least: int | None = schema.get("minimum")
        self.most: int | None = schema.get("maximum")
        self.octal: bool = schema.get("x-octal", False)

    def read(self, reader: Reader, node: Node, path: str, at: Node) -> Any:
        if type(node) is not Scalar or not self.fits(node):
            return reader.wrong_type(node, path, self.expected, self._unquoted(reader, node, at))
        number = int(node.text, 10 if _INTEGER.match(node.text) else 8)
        if (self.least is not None and number < self.least) or (self.most is not None and number > self.most):
            is_low = self.least is not None and number < self.least
            bound = f"at least {self.least}" if is_low else f"at most {self.most}"
            return reader.fault("R104", node, f"`{path}` must be {bound}, not `{reader.source.shown(node)}`")
        return number

    def _unquoted(self, reader: Reader, node: Node, at: Node) -> str:
        """Return the hint for a number in quotes."""
        if type(node) is not Scalar or not node.style or not reader.quotable(node):
            return ""
        return f"remove the quotes: `{reader.entry(node, at, node.text)}`" if self.fits(Scalar(node.text, "")) else ""

    def fits(self, node: Scalar) -> bool:
        text = node.text
        return not node.style and bool(_INTEGER.match(text) or (self.octal and _OCTAL.match(text)))


class NumberCheck(IntegerCheck):
    """A decimal number."""

    expected = "a number"

    def read(self, reader: Reader, node: Node, path: str, at: Node) -> Any:
        if type(node) is Scalar and _is_float(node):
            return float(node.text)
        return super().read(reader, node, path, at)

    def fits(self, node: Scalar) -> bool:
        return _is_float(node) or super().fits(node)


def _is_float(node: Scalar) -> bool:
    return not node.style and bool(_FLOAT.match(node.text)) and scalar.sigs(node.text).kind == "float"


class BooleanCheck(Check):
    """`true` or `false`, as both readers spell them."""

    expected = "`true` or `false`"

    def read(self, reader: Reader, node: Node, path: str, at: Node) -> Any:
        if type(node) is not Scalar or not self.fits(node):
            return reader.wrong_type(node, path, self.expected, self._meant(reader, node, at))
        return _BOOLEANS[node.text]

    def _meant(self, reader: Reader, node: Node, at: Node) -> str:
        """Return the hint for a boolean that is quoted, or spelled as only some readers have it."""
        if type(node) is not Scalar or not reader.quotable(node):
            return ""
        value = scalar.sigs(node.text).value
        if not isinstance(value, bool):
            return ""
        entry = reader.entry(node, at, "true" if value else "false")
        return f"remove the quotes: `{entry}`" if node.style else f"write `{entry}`"

    def fits(self, node: Scalar) -> bool:
        return not node.style and node.text in _BOOLEANS


_BOOLEANS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}


class ListCheck(Check):
    """A list; the value is the list of what its items became."""

    expected = "a list"
    kind = Sequence

    def __init__(self, item: Check, most: int | None = None) -> None:
        self.item = item
        self.most = most

    def read(self, reader: Reader, node: Node, path: str, at: Node) -> Any:  # noqa: ARG002
        if type(node) is not Sequence:
            return reader.wrong_type(node, path, self.expected, "write each item on a line of its own, after `- `")
        if self.most is not None and len(node.items) > self.most:
            told = f"`{path}` must have at most {wording.counted(self.most, 'item')}, not {len(node.items)}"
            return reader.fault("R104", node, told)
        read = self.item.read
        made = [read(reader, item, f"{path}[{i}]", item) for i, item in enumerate(node.items)]
        return INVALID if any(value is INVALID for value in made) else made


class MapCheck(Check):
    """A mapping of free keys; the value is a dict."""

    expected = "a mapping"
    kind = Mapping

    def __init__(self, value: Check, key: Check | None = None) -> None:
        self.value = value
        self.key = key
        """What a key must be besides a string."""

    def read(self, reader: Reader, node: Node, path: str, at: Node) -> Any:  # noqa: ARG002
        if type(node) is not Mapping:
            return _no_mapping(reader, node, path)
        made: dict[str, Any] = {}
        broken = False
        for key, value in node.entries:
            if not key.is_string:
                quotable = reader.quotable(key)
                reader.fault(
                    "R103",
                    key,
                    f"a key of `{path}` must be a string, not {wording.kind_of(key)} `{reader.source.shown(key)}`",
                    cause=wording.reading(key, quoting=quotable),
                    hint=f'quote it: `"{key.text}":`' if quotable else "quote it",
                )
                broken = True
                continue
            where = f"{path}.{key.text}" if path else key.text
            made[key.text] = self.value.read(reader, value, where, key)
            sound = self.key is None or self.key.read(reader, key, where, key) is not INVALID
            broken = broken or made[key.text] is INVALID or not sound
        return INVALID if broken else made


def _no_mapping(reader: Reader, node: Node, path: str) -> Invalid:
    hint = "write its entries below it, as `key: value`" if path else "begin with the first key, without `- `"
    if type(node) is Sequence and path:
        hint = "write its entries as `key: value`, without `- `"
    return reader.wrong_type(node, path, "a mapping", hint)


class FreeCheck(Check):
    """A mapping carried as its node."""

    expected = "a mapping"
    kind = Mapping

    def read(self, reader: Reader, node: Node, path: str, at: Node) -> Any:  # noqa: ARG002
        return node if type(node) is Mapping else _no_mapping(reader, node, path)


class ObjectCheck(Check):
    """A mapping of known fields; the value is a Record."""

    expected = "a mapping"
    kind = Mapping

    def __init__(self, schema: Schema, defs: dict[str, Schema], made: dict[str, Check]) -> None:
        self.required: list[str] = schema.get("required", [])
        self.open: bool = schema.get("additionalProperties", True) is not False
        self.unlisted: frozenset[str] = frozenset(schema.get("x-unlisted", ()))
        """Fields that have a place of their own elsewhere: no suggestion names them."""
        self._from = schema, defs, made
        self._fields: dict[str, tuple[str, Check]] | None = None
        self._given: dict[str, Any] | None = None
        self._records: list[tuple[str, ObjectCheck]] = []

    @property
    def fields(self) -> dict[str, tuple[str, Check]]:
        """Attribute and check of each field, made when the first such mapping is met: most never are."""
        found = self._fields
        if found is None:
            schema, defs, made = self._from
            properties: dict[str, Schema] = schema["properties"]
            found = {name: (snake_case(name), _compile(inner, defs, made)) for name, inner in properties.items()}
            self._fields = found
        return found

    @property
    def defaults(self) -> dict[str, Any]:
        """The value of each optional field that is absent; those that are records are made anew."""
        given = self._given
        if given is None:
            properties = self._from[0]["properties"]
            given = {}
            for name, (attribute, check) in self.fields.items():
                if name in self.required:
                    continue
                value = given[attribute] = properties[name].get("default")
                if isinstance(check, ObjectCheck) and isinstance(value, dict):
                    self._records.append((attribute, check))
            self._given = given
        return given

    def empty(self) -> Record:
        """Return the record of an absent mapping."""
        return Record(self._defaults(), None)

    def _defaults(self) -> dict[str, Any]:
        made = self.defaults.copy()
        for name, record in self._records:
            made[name] = record.empty()
        return made

    def read(self, reader: Reader, node: Node, path: str, at: Node) -> Any:
        if type(node) is not Mapping:
            return _no_mapping(reader, node, path)
        made = self._defaults()
        before = len(reader.faults)
        misspelled: set[str] = set()
        present: set[str] = set()
        for key, value in node.entries:
            field = self.fields.get(key.text)
            if field is None:
                if not self.open:
                    misspelled.add(self._unknown(reader, key, path, node))
                continue
            present.add(key.text)
            name, check = field
            if type(value) is Scalar and value.is_null and (check.nullable or name in self.defaults):
                continue
            got = check.read(reader, value, f"{path}.{key.text}" if path else key.text, key)
            if got is not INVALID:
                made[name] = got
        for required in self.required:
            if required not in present and required not in misspelled:
                where = f"`{path}` needs" if path else "the document needs"
                reader.fault("R102", at, f"{where} the field `{required}`", hint=f"add `{required}: …`")
        return Record(made, node) if len(reader.faults) == before else INVALID

    def _unknown(self, reader: Reader, key: Scalar, path: str, node: Mapping) -> str:
        """Report a field that the form does not have; return the field that was probably meant."""
        offered = sorted(set(self.fields) - self.unlisted)
        close = wording.closest(key.text, (name for name in offered if node.get(name) is None), 0.7)
        names = sorted(offered, key=lambda name: name != close)
        shown = "…" if reader.source.is_hidden(key.line) else key.text
        hint = f"rename it to `{close}`" if close else "remove it"
        if not close and not path and "values" in self.fields:
            home = self._home(key.text)
            hint = "put it under `values` if it is the chart's, else remove it"
            hint = f"indent it below `{home}`" if home else hint
        reader.fault(
            "R101",
            key,
            f"unknown field `{shown}`" + (f" in `{path}`" if path else ""),
            cause=f"{f'`{path}`' if path else 'the document'} allows {wording.listed(names, most=wording.LISTED)}",
            hint=hint,
        )
        return close or ""

    def _home(self, name: str) -> str:
        """Return the field whose mapping has a field of this name; `""` without one, or with several."""
        homes = [field for field, (_, check) in self.fields.items() if name in _fields(check)]
        return homes[0] if len(homes) == 1 else ""


def _fields(check: Check) -> set[str]:
    inner = check.inner if isinstance(check, _Nullable) else check
    return set(inner.fields) if isinstance(inner, ObjectCheck) else set()


class UnionCheck(Check):
    """One of several forms, told apart by being a scalar, a list or a mapping, and scalars by how they are spelled."""

    def __init__(self, options: list[Check]) -> None:
        self.options = options
        self.expected = " or ".join(option.expected for option in options)

    def read(self, reader: Reader, node: Node, path: str, at: Node) -> Any:
        options = [option for option in self.options if type(node) is option.kind]
        if not options or (type(node) is Scalar and node.is_null):
            return reader.wrong_type(node, path, self.expected)
        if type(node) is Scalar and len(options) > 1:
            options = [option for option in options if option.fits(node)]
            if not options:
                return self._unlike(reader, node, path, at)
        return options[0].read(reader, node, path, at)

    def _unlike(self, reader: Reader, node: Scalar, path: str, at: Node) -> Invalid:
        text = next((option for option in self.options if isinstance(option, TextCheck)), None)
        if text is not None:
            return text.ambiguous(reader, node, path, at, self.expected)
        return reader.wrong_type(node, path, self.expected)


def compile_schema(schema: Schema) -> Check:
    """Return the check of a JSON Schema (the subset that the models and API tables use), `$defs` resolved."""
    return _compile(schema, schema.get("$defs", {}), {})


def _compile(schema: Schema, defs: dict[str, Schema], made: dict[str, Check]) -> Check:
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[-1]
        if name not in made:
            made[name] = _compile(defs[name], defs, made)
        return made[name]
    if "anyOf" in schema:
        options = [option for option in schema["anyOf"] if option.get("type") != "null"]
        checks = [_compile(option, defs, made) for option in options]
        check = checks[0] if len(checks) == 1 else UnionCheck(checks)
        return _Nullable.of(check) if len(options) < len(schema["anyOf"]) else check
    if "const" in schema:
        return TextCheck({"enum": [schema["const"]]})
    kind = schema.get("type")
    if kind == "string":
        return TextCheck(schema)
    if kind == "integer":
        return IntegerCheck(schema)
    if kind == "number":
        return NumberCheck(schema)
    if kind == "boolean":
        return BooleanCheck()
    if kind == "array":
        return ListCheck(_compile(schema.get("items", {}), defs, made), schema.get("maxItems"))
    if kind == "object":
        return _compile_object(schema, defs, made)
    return AnyCheck()


class _Nullable(Check):
    """A check that also takes null, as absence."""

    nullable = True

    def __init__(self, inner: Check) -> None:
        self.inner = inner
        self.expected = inner.expected

    @classmethod
    def of(cls, inner: Check) -> _Nullable:
        return cls(inner)

    def read(self, reader: Reader, node: Node, path: str, at: Node) -> Any:
        return self.inner.read(reader, node, path, at)


def _compile_object(schema: Schema, defs: dict[str, Schema], made: dict[str, Check]) -> Check:
    extra = schema.get("additionalProperties", True)
    if "properties" not in schema:
        if not (isinstance(extra, dict) and extra):
            return FreeCheck()
        names = schema.get("propertyNames")
        return MapCheck(_compile(extra, defs, made), TextCheck({"type": "string", **names}) if names else None)
    return ObjectCheck(schema, defs, made)


def snake_case(name: str) -> str:
    """Return the attribute name of a YAML field (`dependsOn` -> `depends_on`)."""
    return _HUMP.sub(lambda m: "_" + m.group(1).lower(), name)
