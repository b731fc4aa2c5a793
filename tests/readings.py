"""YAML text or planned values in, what one of the two readers in Flux's path makes of them out, as JSON has it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from render.yaml import scalar
from render.yaml.emit import Commented, Marked
from render.yaml.source import Mapping, Scalar, Sequence, Source, parse


class Reader(NamedTuple):
    """How a reader resolves plain scalars, as values and as keys."""

    value: Callable[[str], scalar.Resolved]
    key: Callable[[str], str | None]


SIGS = Reader(scalar.sigs, scalar.sigs_key)
KYAML = Reader(scalar.kyaml, scalar.kyaml_key)


def documents(text: str, reader: Reader) -> list[Any]:
    """Return the documents of a YAML text."""
    found, faults = parse(Source("text.yaml", text))
    assert not faults
    return [read(document.root, reader) for document in found]


def read(value: Any, reader: Reader) -> Any:
    """Return a source node, or what a plan holds, as JSON values; mapping entries that the plan leaves out are None."""
    if isinstance(value, Scalar):
        return value.text if value.style else reader.value(value.text).value
    if isinstance(value, Mapping):
        return {key.text if key.style else reader.key(key.text): read(inner, reader) for key, inner in value.entries}
    if isinstance(value, Sequence):
        return [read(item, reader) for item in value.items]
    if isinstance(value, Marked):
        return value.text
    if isinstance(value, Commented):
        return read(value.value, reader)
    if isinstance(value, dict):
        return {key: read(inner, reader) for key, inner in value.items() if inner is not None}
    if isinstance(value, list | tuple):
        return [read(item, reader) for item in value]
    return value


def leaves(value: Any, path: tuple[str | int, ...] = ()) -> dict[tuple[str | int, ...], Any]:
    """Return every scalar and every empty collection of a JSON value by its path."""
    if isinstance(value, dict) and value:
        return {at: leaf for key, inner in value.items() for at, leaf in leaves(inner, (*path, key)).items()}
    if isinstance(value, list) and value:
        return {at: leaf for index, inner in enumerate(value) for at, leaf in leaves(inner, (*path, index)).items()}
    return {path: value}
