"""The modules of a build in, the file of `render.prepared` out: `python -m render.preparing FILE`."""

from __future__ import annotations

import gc
import importlib
import json
import marshal
import re
import sys
from array import array
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from render import patterns, prepared
from render.model import schema, text

_FOLDER = Path(__file__).parent
_OTHERS = ("cli", "docs", "importing", "model/platform", "model/service", "model/vm", "renovate")
"""Beginnings of the names of modules that no build runs through."""


def keys() -> list[tuple[str | bytes, int]]:
    """Return text and flags of the patterns that a build may need."""
    for path in sorted(_FOLDER.rglob("*.py")):
        name = path.relative_to(_FOLDER).with_suffix("").as_posix()
        if not name.startswith(_OTHERS) and not name.endswith("__"):
            try:
                importlib.import_module(f"render.{name.replace('/', '.')}")
            except ModuleNotFoundError as error:
                if not error.name or error.name.startswith("render"):
                    raise
                # What needs another package is not part of every build.
    found = {(one._text, int(one._flags)) for one in gc.get_objects() if type(one) is patterns._Pattern}
    for kind in schema.KINDS:
        found |= {(text.anchored(one), int(re.ASCII)) for one in _patterns(json.loads(schema.text(kind)))}
    from render.flux.api import OBJECTS

    found |= {(one, int(re.ASCII)) for entry in OBJECTS.values() for one in _patterns(entry.spec)}
    return sorted(found, key=repr)


def _patterns(form: Any) -> Iterator[str]:
    if isinstance(form, dict):
        if isinstance(form.get("pattern"), str):
            yield form["pattern"]
        form = list(form.values())
    if isinstance(form, list):
        for inner in form:
            yield from _patterns(inner)


def compiled(pattern: str | bytes, flags: int) -> tuple[Any, ...]:
    """Return what `re` hands to its matcher: flags, code, number of groups, names of groups, and these by number."""
    compiler: Any = importlib.import_module("re._compiler")
    taken: list[tuple[Any, ...]] = []
    matcher = compiler._sre
    compiler._sre = SimpleNamespace(**{**vars(matcher), "compile": lambda *given: taken.append(given)})
    try:
        compiler.compile(pattern, flags)
    finally:
        compiler._sre = matcher
    ((_, whole, code, groups, names, numbers),) = taken
    return whole, array(prepared.WIDTH, code).tobytes(), groups, dict(names), numbers


def content() -> bytes:
    """Return the content of the file."""
    parts: dict[Any, Any] = {key: compiled(*key) for key in keys()}
    parts |= {kind: json.loads(schema.text(kind)) for kind in schema.KINDS}
    return marshal.dumps((prepared.KEY, {key: marshal.dumps(value) for key, value in parts.items()}))


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(content())
