"""The kind of a document in, its published JSON Schema and compiled check out.

The schema files beside this module are written from the models by `python -m render.model.schema`.
"""

from __future__ import annotations

import sys
from functools import cache

from render import prepared
from render.model.read import ObjectCheck, Schema, compile_schema

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal, TypeAlias

Kind: TypeAlias = 'Literal["service", "platform"]'

KINDS: tuple[Kind, ...] = ("service", "platform")


def text(kind: Kind) -> str:
    """Return the JSON Schema of a kind as published."""
    with open(_path(kind), encoding="utf-8") as file:
        return file.read()


def _path(kind: Kind) -> str:
    return f"{__file__.rpartition('/')[0]}/{kind}.json"


@cache
def form(kind: Kind) -> Schema:
    """Return the JSON Schema of a kind as a mapping, which is not to be changed."""
    found: Schema | None = prepared.part(kind)
    if found is None:
        import json

        found = json.loads(text(kind))
    return found


@cache
def check(kind: Kind) -> ObjectCheck:
    """Return the compiled check of a kind."""
    compiled = compile_schema(form(kind))
    assert isinstance(compiled, ObjectCheck)
    return compiled


def generate(kind: Kind) -> str:
    """Return the JSON Schema text that the models give."""
    import json

    from render.model.platform import Platform
    from render.model.service import Service

    model = Service if kind == "service" else Platform
    schema = _tidy(model.model_json_schema(by_alias=True))
    titled = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": {"service": "ServiceDefinition", "platform": "Platform"}[kind],
        **schema,
    }
    return json.dumps(titled, indent=1, ensure_ascii=False) + "\n"


def _tidy(schema: Any) -> Any:
    """Drop pydantic's titles, which repeat the field names."""
    if isinstance(schema, list):
        return [_tidy(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if len(schema.get("patternProperties", {})) == 1:
        # One pattern for all keys is said of the keys, which also refuses the others.
        ((pattern, value),) = schema["patternProperties"].items()
        rest = {key: inner for key, inner in schema.items() if key not in ("patternProperties", "propertyNames")}
        names = {"pattern": pattern, **schema.get("propertyNames", {})}
        schema = {**rest, "propertyNames": names, "additionalProperties": value}
    made = {}
    for key, value in schema.items():
        if key == "title" and isinstance(value, str):
            continue
        if key in ("properties", "$defs"):
            made[key] = {name: _tidy(inner) for name, inner in value.items()}
        else:
            made[key] = value if key == "default" else _tidy(value)
    return made


def main() -> int:
    """Write the schema files."""
    for kind in KINDS:
        with open(_path(kind), "w", encoding="utf-8") as file:
            file.write(generate(kind))
    return 0


if __name__ == "__main__":
    sys.exit(main())
