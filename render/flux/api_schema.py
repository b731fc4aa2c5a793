"""Constructors of schema tables, and the walk that finds fields newer than a target version.

A table is a plain dict in a subset of JSON Schema: `type`, `properties`, `required`, `additionalProperties`, `items`,
`enum`, `pattern`, `minLength`, `maxLength`, `maxItems`, `description`; and `x-since`, the Flux minor that brought a
field later than 2.7. A table without `type` accepts anything.

A `pattern` is the CRD's own RE2 text. Every one used here is anchored at both ends and means the same to Python's `re`
under `re.ASCII`, save that Python's `$` also matches before a newline at the end: use `matches_pattern`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from render.flux.versions import FluxVersion
from render.patterns import lazy
from render.structs import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

Schema: TypeAlias = "dict[str, Any]"

Path = tuple[str | int, ...]

DURATION = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"
"""Flux durations: no sign, no days, no bare `0`."""
DURATION_WITHOUT_HOURS = r"^([0-9]+(\.[0-9]+)?(ms|s|m))+$"
"""What the timeouts of sources and image repositories accept."""

TYPES = ("string", "integer", "number", "boolean", "object", "array")


@struct(frozen=True)
class Problem:
    """One fault of a spec: where it stands, what is wrong, why it matters, what to change."""

    path: Path
    """Keys and list indices from the spec down; the place of the fault, or of the parent of what is missing."""
    message: str
    cause: str
    hint: str


def text(
    description: str,
    shortest: int | None = None,
    longest: int | None = None,
    *,
    pattern: str | None = None,
    since: str | None = None,
) -> Schema:
    """Make a string field; lengths count Unicode characters."""
    return _field("string", description, since, {"minLength": shortest, "maxLength": longest, "pattern": pattern})


def choice(description: str, values: str, *, since: str | None = None) -> Schema:
    """Make a string field that takes one of the words of `values`, separated by spaces."""
    return _field("string", description, since, {"enum": values.split()})


def flag(description: str, *, since: str | None = None) -> Schema:
    """Make a boolean field."""
    return _field("boolean", description, since, {})


def integer(description: str, *, since: str | None = None) -> Schema:
    """Make an integer field."""
    return _field("integer", description, since, {})


def duration(description: str, *, hours: bool = True, since: str | None = None) -> Schema:
    """Make a duration field; the timeouts of sources take no hours."""
    return text(description, pattern=DURATION if hours else DURATION_WITHOUT_HOURS, since=since)


def array(description: str, items: Schema, *, longest: int | None = None, since: str | None = None) -> Schema:
    """Make a list field."""
    return _field("array", description, since, {"items": items, "maxItems": longest})


def strings(description: str, *, longest: int | None = None, since: str | None = None) -> Schema:
    """Make a list of strings."""
    return array(description, {"type": "string"}, longest=longest, since=since)


def string_map(description: str, *, since: str | None = None) -> Schema:
    """Make a map with free keys and string values."""
    return _field("object", description, since, {"additionalProperties": {"type": "string"}})


def obj(description: str, fields: dict[str, Schema], *, since: str | None = None) -> Schema:
    """Make an object that allows only `fields`; a name that ends in `*` is required."""
    required = [name[:-1] for name in fields if name.endswith("*")]
    properties = {name.removesuffix("*"): schema for name, schema in fields.items()}
    return _field(
        "object",
        description,
        since,
        {"properties": properties, "required": required or None, "additionalProperties": False},
    )


def anything(description: str) -> Schema:
    """Make a field of any shape."""
    return {"description": description}


def named(description: str, *, since: str | None = None) -> Schema:
    """Make a reference by name to an object of the same namespace."""
    return obj(description, {"name*": text("Name of the object.")}, since=since)


def _field(kind: str, description: str, since: str | None, more: dict[str, Any]) -> Schema:
    schema: Schema = {"type": kind, "description": description}
    schema.update((key, value) for key, value in more.items() if value is not None)
    if since is not None:
        schema["x-since"] = since
    return schema


def matches_pattern(pattern: str, value: str) -> bool:
    """Say whether the API server's RE2 finds `pattern` in `value`."""
    if pattern.endswith("$") and value.endswith("\n"):
        return False
    return _compiled(pattern).search(value) is not None


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    return lazy(pattern, re.ASCII)


def newer_fields(schema: Schema, value: object, version: FluxVersion, path: Path = ()) -> list[Problem]:
    """Return a problem for each field of `value` that `schema` marks as newer than `version`, outermost only.

    `path` is where `value` stands. Fields that the table does not know and values of another type are left to the
    schema check.
    """
    newer_there = _newer_part(schema, version)
    return _newer_fields(newer_there, value, version, path) if newer_there else []


_Newer = dict[str, "str | _Newer"]
"""The part of a table that is newer than a version: a field's first version, or the part below it."""
_ITEMS, _OTHERS = "[]", "{}"
"""Keys of such a part for the items of a list, and the values of free keys."""
_newer_parts: dict[tuple[int, FluxVersion], tuple[Schema, _Newer]] = {}


def _newer_part(schema: Schema, version: FluxVersion) -> _Newer:
    # The schema is kept, so that its identity stays its own.
    known = _newer_parts.get((id(schema), version))
    if known is None:
        known = _newer_parts[id(schema), version] = (schema, _find_newer(schema, version))
    return known[1]


def _find_newer(schema: Schema, version: FluxVersion) -> _Newer:
    made: _Newer = {}
    fields = {**schema.get("properties", {}), _ITEMS: schema.get("items"), _OTHERS: schema.get("additionalProperties")}
    for key, field in fields.items() if "type" in schema else ():
        if not field:
            continue
        since = field.get("x-since") if key != _ITEMS else None
        found = since if since is not None and not version.since(since) else _find_newer(field, version)
        if found:
            made[key] = found
    return made


def _newer_fields(part: _Newer, value: object, version: FluxVersion, path: Path) -> list[Problem]:
    problems: list[Problem] = []
    steps: Iterable[tuple[str | int, object]] = ()
    if isinstance(value, dict):
        steps = value.items()
    elif isinstance(value, list):
        steps = enumerate(value)
    for step, child in steps:
        below = part.get(_ITEMS if isinstance(step, int) else step)
        if below is None and not isinstance(step, int):
            below = part.get(_OTHERS)
        if isinstance(below, str):
            problems.append(newer(below, version, (*path, step)))
        elif below:
            problems += _newer_fields(below, child, version, (*path, step))
    return problems


def newer(since: str, version: FluxVersion, path: Path, what: str = "") -> Problem:
    """Return the problem that `what` (default: the field at `path`) exists only from the minor `since` on."""
    return Problem(
        path,
        f"{what or f'`{dotted(path)}`'} needs Flux {since}; the target is {version}",
        "the API of an older Flux refuses the whole object, and the Kustomization that applies it fails",
        f"remove it, or raise the target version to {since}",
    )


def dotted(path: Path) -> str:
    """Write a path as people do: `valuesFrom[0].name`."""
    written = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return written.removeprefix(".")


def mapping(value: object) -> dict[str, Any]:
    """Return `value` if it is a map, else an empty one: a rule has nothing to say about a misshapen part."""
    return value if isinstance(value, dict) else {}


def sequence(value: object) -> list[Any]:
    """Return `value` if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def is_set(parent: dict[str, Any], *names: str) -> list[str]:
    """Return those of `names` that `parent` sets; the API server drops a null before it applies its rules."""
    return [name for name in names if parent.get(name) is not None]


def exactly_one(parent: dict[str, Any], names: tuple[str, str], path: Path, absent_hint: str) -> list[Problem]:
    """Return a problem unless exactly one of two fields of the object at `path` is set."""
    first, second = (f"`{dotted((*path, name))}`" for name in names)
    chosen = is_set(parent, *names)
    cause = "the Flux API takes exactly one of the two and refuses the object"
    if len(chosen) == 2:
        return [
            Problem((*path, names[1]), f"{first} and {second} must not both be set", cause, "remove one of the two")
        ]
    if not chosen:
        return [Problem(path, f"one of {first} and {second} must be set", cause, absent_hint)]
    return []


def kube_config_rules(spec: dict[str, Any]) -> list[Problem]:
    """Return a problem unless `kubeConfig`, where present, names exactly one source."""
    if not isinstance(spec.get("kubeConfig"), dict):
        return []
    return exactly_one(
        spec["kubeConfig"], ("secretRef", "configMapRef"), ("kubeConfig",), "add `secretRef` with the name of a Secret"
    )


def health_check_rules(spec: dict[str, Any], version: FluxVersion) -> list[Problem]:
    """Return a problem for each `healthCheckExprs` entry without `kind`, which Flux requires before 2.9."""
    if version.since("2.9"):
        return []
    return [
        Problem(
            ("healthCheckExprs", index),
            f"`healthCheckExprs[{index}]` must name a `kind` for a target older than Flux 2.9",
            f"Flux {version} requires it and refuses the object",
            "add the `kind` that the expressions are about",
        )
        for index, entry in enumerate(sequence(spec.get("healthCheckExprs")))
        if isinstance(entry, dict) and entry.get("kind") is None
    ]
