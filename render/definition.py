"""The fields of a ServiceDefinition or a platform file in, the YAML text that a person would have written out.

Fields stand in the order that people read them in, whatever order they are given in. Source nodes keep their spelling;
strings of ours are plain where every reader takes them for themselves, and a number-like one never is.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from render.model import schema
from render.patterns import lazy
from render.yaml import scalar
from render.yaml.emit import Emitter, Value
from render.yaml.source import Scalar

FIELDS = (
    "name",
    "kind",
    "objectName",
    "namespace",
    "description",
    "enabled",
    "labels",
    "annotations",
    "dependsOn",
    "source",
    "images",
    "update",
    "imageOverrides",
    "valuesFrom",
    "release",
    "postRenderers",
    "kustomize",
    "workload",
    "vm",
    "values",
    "extraObjects",
)
"""All fields of a ServiceDefinition, the longest ones last."""

SCHEMA_FOLDER = ".schema"
"""Folder of the schemas in the catalog: hidden, so that it is no part of it."""

_PLAIN_START = lazy(r"[A-Za-z_/]")
_DURATION = lazy(r"(?:[0-9]+(?:ms|s|m|h))+\Z")
_LINE = lazy(r"[^\n]*\n|[^\n]+\Z")
_MODELINE = lazy(r"#\s*yaml-language-server:\s*\$schema=(\S+)")


class Verbatim(NamedTuple):
    """A value as text that is there already: lines of a block collection, comments too, not indented."""

    text: str


def definition_text(fields: Mapping[str, Value | Verbatim], schema_at: str = "") -> str:
    """Return a ServiceDefinition as a file: the line that tells editors its schema, then the fields; None is left out.

    `schema_at` is the schema's path from the file's folder; without it there is no such line.
    """
    return _text(fields, schema_at, "service", FIELDS)


def platform_text(fields: Mapping[str, Value | Verbatim], schema_at: str = "") -> str:
    """Return a platform file, as `definition_text` returns a ServiceDefinition."""
    return _text(fields, schema_at, "platform", tuple(_schema("platform")["properties"]))


def modeline(schema_at: str) -> str:
    """Return the comment line by which editors find the schema."""
    return f"# yaml-language-server: $schema={schema_at}\n"


def schema_path(catalog: Path, file: Path, kind: schema.Kind = "service") -> str:
    """Return the path of a schema for a file's modeline, as seen from the file's folder.

    It is the one that another definition of the catalog names, where there is such; else its place in `SCHEMA_FOLDER`,
    whether or not it is there (`schema_files` has what belongs there).
    """
    target = (_named_schema(catalog) if kind == "service" else None) or str(catalog / SCHEMA_FOLDER / f"{kind}.json")
    if re.match(r"[a-z]+://", target):
        return target
    return os.path.relpath(target, file.parent).replace(os.sep, "/")


def schema_files(catalog: Path) -> dict[Path, str]:
    """Return what `SCHEMA_FOLDER` holds: each schema by its path."""
    kinds: tuple[schema.Kind, ...] = ("service", "platform")
    return {catalog / SCHEMA_FOLDER / f"{kind}.json": schema.text(kind) for kind in kinds}


def _named_schema(catalog: Path) -> str | None:
    """Return the schema, as a path or a URL, that the first definition with a modeline names."""
    for folder, folders, files in os.walk(catalog):
        folders[:] = sorted(one for one in folders if not one.startswith("."))
        for name in sorted(files):
            if name.startswith(".") or not name.endswith((".yaml", ".yml")):
                continue
            # Opening a pipe would wait for it.
            if not os.path.isfile(Path(folder, name)):
                continue
            try:
                with (Path(folder) / name).open(encoding="utf-8", errors="replace") as file:
                    found = _MODELINE.match(file.readline().removeprefix("\ufeff"))
            except OSError:
                # What cannot be read is told by whoever reads the catalog.
                continue
            if found is not None:
                named = found[1]
                return named if re.match(r"[a-z]+://", named) else str(Path(folder) / named)
    return None


def _text(fields: Mapping[str, Value | Verbatim], schema_at: str, kind: schema.Kind, order: tuple[str, ...]) -> str:
    unknown = set(fields) - set(order)
    if unknown:
        raise KeyError(f"no fields of a {kind}: {', '.join(sorted(unknown))}")
    whole = _schema(kind)
    emitter = Emitter(wide=True)
    out = [modeline(schema_at)] if schema_at else []
    for name in order:
        value = fields.get(name)
        if isinstance(value, Verbatim):
            out += [f"{name}:\n", *(f"  {line}" if line.strip() else line for line in _LINE.findall(value.text))]
            if out[-1][-1:] != "\n":
                out.append("\n")
        elif value is not None:
            out.append(emitter.entry("", name, _settled(value, whole["properties"][name], whole)))
    return "".join(out)


@cache
def _schema(kind: schema.Kind) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(schema.text(kind))
    return found


def _settled(value: Value, form: dict[str, Any], whole: dict[str, Any]) -> Value:
    """Return a value with the keys of its maps in the schema's order, and its strings as people write them."""
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, list):
        items = form.get("items", {})
        return [_settled(item, items, whole) for item in value]
    if not isinstance(value, dict):
        return value
    shape = _object_form(form, whole)
    known = shape.get("properties", {})
    others = shape.get("additionalProperties")
    others = others if isinstance(others, dict) else {}
    names = [name for name in known if name in value] + [name for name in value if name not in known]
    return {name: _settled(value[name], known.get(name, others), whole) for name in names}


def _object_form(form: dict[str, Any], whole: dict[str, Any]) -> dict[str, Any]:
    """Return what a schema says of a mapping."""
    if "$ref" in form:
        found: dict[str, Any] = whole["$defs"][form["$ref"].rpartition("/")[2]]
        return found
    for one in form.get("anyOf", ()):
        inner = _object_form(one, whole)
        if inner.get("type") == "object":
            return inner
    return form


def _string(text: str) -> Value:
    """Return a string that is plain where it looks like a word, a name, an address, an image or a duration."""
    if "\n" in text or not scalar.is_plain_string(text):
        return text
    is_word = _PLAIN_START.match(text) or _DURATION.match(text)
    return Scalar(text, "" if is_word else '"')
