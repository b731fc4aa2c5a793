"""Source nodes and a JSON Schema in, checked records out, every fault with its place.

The schemas are those that `render schema` prints, made from the models, and the tables of `render.flux.api`. What the
checker adds to JSON Schema is lexical: a string field whose plain scalar any YAML reader would take for something else
is refused, because its value would depend on the reader. A mapping or value without a described form is carried as its
source node.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from render.diagnostics import Diagnostic
from render.yaml import scalar
from render.yaml.source import Mapping, Node, Scalar, Sequence, Source

Schema = dict[str, Any]

PATTERN_MEANINGS = {
    r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$": "lower-case letters, digits and inner `-`",
    r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$": "lower-case letters, digits, `-` and `.`",
    r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$": "a duration such as `30m` or `1h30m` (units `h`, `m`, `s`, `ms`)",
    r"^([0-9]+(\.[0-9]+)?(ms|s|m))+$": "a duration such as `90s` or `5m` (units `m`, `s`, `ms`; no hours)",
    r"^[_A-Za-z][_A-Za-z0-9]*$": "the name of a variable: letters, digits and `_`",
    r"^[a-z0-9.-]+/[a-z0-9.-]+$": "`namespace/name`",
    r"^2\.[0-9]+(\.[0-9]+)?$": "a Flux version such as `2.9` or `2.8.5`",
}


_INTEGER = re.compile(r"(?:0|-?[1-9][0-9]{0,17})\Z")
_OCTAL = re.compile(r"0o?[0-7]{1,7}\Z")
_FLOAT = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?\Z")
# A number in base 60 to YAML 1.1 readers other than Flux's, such as those of editors and linters.
_SEXAGESIMAL = re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?\Z", re.ASCII)


class Record:
    """The checked fields of one mapping as attributes (snake_case), with defaults filled in."""

    node: Mapping | None

    def __init__(self, fields: dict[str, Any], node: Mapping | None) -> None:
        self.__dict__.update(fields)
        self.node = node

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


class _Invalid:
    """What a check returns for a value it has reported."""


INVALID = _Invalid()


class Reader:
    """Checks nodes of one file, collecting faults."""

    def __init__(self, source: Source, faults: list[Diagnostic]) -> None:
        self.source = source
        self.faults = faults

    def read(self, check: Check, node: Node, path: str, at: Node | None = None) -> Any:
        """Return what `check` makes of `node`, or INVALID; `path` names it, `at` is the place of what is missing."""
        return check.read(self, node, path, at or node)

    def fault(self, code: str, node: Node, message: str, cause: str = "", hint: str = "") -> _Invalid:
        """Report a fault and return INVALID."""
        self.faults.append(self.source.fault(code, node, message, cause=cause, hint=hint))
        return INVALID

    def wrong_type(self, node: Node, path: str, expected: str) -> _Invalid:
        """Report a value of another type."""
        name = f"`{path}`" if path else "the document"
        if type(node) is Scalar and node.style == "?":
            return INVALID
        if type(node) is Scalar:
            if node.is_null:
                return self.fault("R103", node, f"{name} must be {expected}, not empty", hint=_or_drop(path))
            shown = self.source.shown(node)
            return self.fault("R103", node, f"{name} must be {expected}, not {_kind_of(node)} `{shown}`")
        kind = "a list" if type(node) is Sequence else "a mapping"
        return self.fault("R103", node, f"{name} must be {expected}, not {kind}")


class Check:
    """What a value must be."""

    expected = "a value"
    nullable = False
    kind: type = Scalar
    """The nodes that it takes: how a union of forms chooses."""

    def read(self, reader: Reader, node: Node, path: str, at: Node) -> Any:
        """Return the checked value, or INVALID after reporting."""
        raise NotImplementedError

    def fits(self, node: Scalar) -> bool:  # noqa: ARG002
        """Whether a scalar is spelled as this form asks: how a union of scalar forms chooses."""
        return True


class AnyCheck(Check):
    """Anything; the node itself is the value."""

    def read(self, reader: Reader, node: Node, path: str, at: Node) -> Any:  # noqa: ARG002
        return node


class TextCheck(Check):
    """A string, by the strict lexical rule."""

    expected = "a string"

    def __init__(self, schema: Schema) -> None:
        self.enum: list[str] | None = schema.get("enum")
        self.pattern: str | None = schema.get("pattern")
        self.regex: re.Pattern[str] | None = None
        self.least: int = schema.get("minLength", 0)
        self.most: int | None = schema.get("maxLength")

    def read(self, reader: Reader, node: Node, path: str, at: Node) -> Any:  # noqa: ARG002
        if type(node) is not Scalar or node.is_null or node.style == "?":
            return reader.wrong_type(node, path, self.expected)
        text = node.text
        if not self.fits(node):
            return self.ambiguous(reader, node, path, self.expected)
        if self.enum is not None and text not in self.enum:
            return reader.fault(
                "R104",
                node,
                f"`{path}` must be {_one_of(self.enum)}, not `{reader.source.shown(node)}`",
                hint=_closest(text, self.enum, "use"),
            )
        if len(text) < self.least or (self.most is not None and len(text) > self.most):
            size = f"at least {self.least}" if len(text) < self.least else f"at most {self.most}"
            return reader.fault("R104", node, f"`{path}` must have {size} characters, not {len(text)}")
        if self.pattern is not None:
            if self.regex is None:
                self.regex = re.compile(re.sub(r"\$\Z", r"\\Z", self.pattern), re.ASCII)
            if not self.regex.search(text):
                meaning = PATTERN_MEANINGS.get(self.pattern, f"text matching `{self.pattern}`")
                return reader.fault(
                    "R104", node, f"`{path}` must be {meaning}, not `{reader.source.shown(node)}`", hint=_repair(text)
                )
        return text

    def fits(self, node: Scalar) -> bool:
        return bool(node.style) or (scalar.is_plain_string(node.text) and not _SEXAGESIMAL.match(node.text))

    def ambiguous(self, reader: Reader, node: Scalar, path: str, expected: str) -> _Invalid:
        """Report a plain scalar that some reader takes for something else than a string."""
        shown = reader.source.shown(node)
        key = path.rsplit(".", 1)[-1]
        prefix = "" if key.endswith("]") or not key else f"{key}: "
        return reader.fault(
            "R103",
            node,
            f"`{path}` must be {expected}, not {_kind_of(node)} `{shown}`",
            cause=_reading(node),
            hint=f'quote it: `{prefix}"{shown}"`',
        )


class IntegerCheck(Check):
    """A decimal integer; with `x-octal`, as file modes have it, an octal one too."""

    expected = "an integer"

    def __init__(self, schema: Schema) -> None:
        self.least: int | None = schema.get("minimum")
        self.most: int | None = schema.get("maximum")
        self.octal: bool = schema.get("x-octal", False)

    def read(self, reader: Reader, node: Node, path: str, at: Node) -> Any:  # noqa: ARG002
        if type(node) is not Scalar or not self.fits(node):
            return reader.wrong_type(node, path, self.expected)
        number = int(node.text, 10 if _INTEGER.match(node.text) else 8)
        if (self.least is not None and number < self.least) or (self.most is not None and number > self.most):
            bound = (
                f"at least {self.least}" if self.least is not None and number < self.least else f"at most {self.most}"
            )
            return reader.fault("R104", node, f"`{path}` must be {bound}, not `{number}`")
        return number

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

    def read(self, reader: Reader, node: Node, path: str, at: Node) -> Any:  # noqa: ARG002
        if type(node) is not Scalar or not self.fits(node):
            return reader.wrong_type(node, path, self.expected)
        return _BOOLEANS[node.text]

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
            return reader.wrong_type(node, path, self.expected)
        if self.most is not None and len(node.items) > self.most:
            return reader.fault("R104", node, f"`{path}` must have at most {self.most} items, not {len(node.items)}")
        read = self.item.read
        made = [read(reader, item, f"{path}[{i}]", item) for i, item in enumerate(node.items)]
        return INVALID if any(value is INVALID for value in made) else made


class MapCheck(Check):
    """A mapping of free keys; the value is a dict."""

    expected = "a mapping"
    kind = Mapping

    def __init__(self, value: Check) -> None:
        self.value = value

    def read(self, reader: Reader, node: Node, path: str, at: Node) -> Any:  # noqa: ARG002
        if type(node) is not Mapping:
            return reader.wrong_type(node, path, self.expected)
        made: dict[str, Any] = {}
        broken = False
        for key, value in node.entries:
            if not key.is_string:
                reader.fault(
                    "R103",
                    key,
                    f"a key of `{path}` must be a string, not {_kind_of(key)} `{reader.source.shown(key)}`",
                    cause=_reading(key),
                    hint=f'quote it: `"{key.text}":`',
                )
                broken = True
                continue
            made[key.text] = self.value.read(reader, value, f"{path}.{key.text}" if path else key.text, key)
            broken = broken or made[key.text] is INVALID
        return INVALID if broken else made


class FreeCheck(Check):
    """A mapping carried as its node."""

    expected = "a mapping"
    kind = Mapping

    def read(self, reader: Reader, node: Node, path: str, at: Node) -> Any:  # noqa: ARG002
        return node if type(node) is Mapping else reader.wrong_type(node, path, self.expected)


class ObjectCheck(Check):
    """A mapping of known fields; the value is a Record."""

    expected = "a mapping"
    kind = Mapping

    def __init__(self) -> None:
        self.fields: dict[str, tuple[str, Check]] = {}
        self.defaults: dict[str, Any] = {}
        self.required: list[str] = []
        self.open = False

    def empty(self) -> Record:
        """Return the record of an absent mapping."""
        return Record(self._defaults(), None)

    def _defaults(self) -> dict[str, Any]:
        return {
            name: value.empty() if isinstance(value, ObjectCheck) else value for name, value in self.defaults.items()
        }

    def read(self, reader: Reader, node: Node, path: str, at: Node) -> Any:
        if type(node) is not Mapping:
            return reader.wrong_type(node, path, self.expected)
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
        import difflib

        where = f" in `{path}`" if path else ""
        absent = [name for name in self.fields if node.get(name) is None]
        folded = {name.lower(): name for name in absent}
        close = folded.get(key.text.replace("_", "").replace("-", "").lower())
        if close is None:
            close = next(iter(difflib.get_close_matches(key.text, absent, 1, 0.7)), None)
        names = sorted(self.fields)
        listed = ", ".join(f"`{name}`" for name in names[:12]) + (", …" if len(names) > 12 else "")
        shown = "…" if reader.source.is_hidden(key.line) else key.text
        reader.fault(
            "R101",
            key,
            f"unknown field `{shown}`{where}",
            cause=f"{'`' + path + '`' if path else 'the document'} allows {listed}",
            hint=f"rename it to `{close}`" if close else "remove it",
        )
        return close or ""


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
                return self._unlike(reader, node, path)
        return options[0].read(reader, node, path, at)

    def _unlike(self, reader: Reader, node: Scalar, path: str) -> _Invalid:
        text = next((option for option in self.options if isinstance(option, TextCheck)), None)
        if text is not None:
            return text.ambiguous(reader, node, path, self.expected)
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
        return MapCheck(_compile(extra, defs, made)) if isinstance(extra, dict) and extra else FreeCheck()
    check = ObjectCheck()
    check.open = extra is not False
    check.required = schema.get("required", [])
    for name, inner in schema["properties"].items():
        attribute = snake_case(name)
        field = _compile(inner, defs, made)
        check.fields[name] = (attribute, field)
        if name not in check.required:
            default = inner.get("default")
            is_record = isinstance(default, dict) and isinstance(field, ObjectCheck)
            check.defaults[attribute] = field if is_record else default
    return check


def snake_case(name: str) -> str:
    """Return the attribute name of a YAML field (`dependsOn` -> `depends_on`)."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", lambda m: "_" + m.group(1).lower(), name)


def _kind_of(node: Scalar) -> str:
    if node.style:
        return "the string"
    kinds = (scalar.sigs(node.text).kind, scalar.kyaml(node.text).kind)
    for kind, word in (("bool", "the boolean"), ("null", "the null"), ("timestamp", "the date")):
        if kind in kinds:
            return word
    return "the number" if "int" in kinds or "float" in kinds else "the text"


def _reading(node: Scalar) -> str:
    """Say what the readers make of an ambiguous plain scalar."""
    sigs, kyaml = scalar.sigs(node.text), scalar.kyaml(node.text)
    readings = sorted({_shown_value(r.value) for r in (sigs, kyaml) if r.kind != "string" or r.value != node.text})
    told = " or ".join(f"`{reading}`" for reading in readings if reading != node.text)
    return f"YAML reads it as {told}" if told else "YAML readers take the plain text for something else than a string"


def _shown_value(value: object) -> str:
    return (
        {True: "true", False: "false", None: "null"}[value] if isinstance(value, bool) or value is None else str(value)
    )


def _one_of(names: Iterable[str]) -> str:
    listed = [f"`{name}`" for name in names]
    return listed[0] if len(listed) == 1 else ", ".join(listed[:-1]) + " or " + listed[-1]


def _closest(text: str, names: Iterable[str], verb: str) -> str:
    import difflib

    options = list(names)
    folded = {name.lower(): name for name in options}
    close = folded.get(text.lower()) or next(iter(difflib.get_close_matches(text, options, 1)), None)
    return f"{verb} `{close}`" if close else f"{verb} one of these"


def _repair(text: str) -> str:
    lowered = re.sub(r"[^a-z0-9-]+", "-", text.lower()).strip("-")
    if lowered != text and re.fullmatch(r"[A-Za-z0-9_. -]+", text) and lowered and not text[0].isdigit():
        return f"use `{lowered}`"
    return ""


def _or_drop(path: str) -> str:
    return f"give `{path}` a value, or remove the key" if path else ""
