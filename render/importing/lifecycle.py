"""The remaining spec fields of all releases in, the platform's `defaults.release` and what each release adds out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence as Listed

from render.diff_nodes import meaning
from render.importing.convert import entry
from render.yaml.source import Mapping, Node, Scalar

NULL = Scalar("null", "")
LIFTED = (
    *("install", "upgrade", "rollback", "uninstall", "test", "driftDetection", "timeout", "maxHistory"),
    *("serviceAccountName", "persistentClient", "waitStrategy", "postRenderStrategy", "commonMetadata"),
)
"""Fields that repositories say once for all: how a release lives, not what it is."""
LEAST = 2
"""Releases that must share a field before it is a default."""


def common(specs: Listed[Mapping]) -> Mapping:
    """Return the fields that most releases share, in their most frequent form, where that makes the whole shorter."""
    made = []
    for name in LIFTED:
        values = [spec.get(name) for spec in specs]
        kinds: Counter[object] = Counter()
        nodes: dict[object, Node] = {}
        for value in values:
            if value is not None:
                key = meaning(value)
                kinds[key] += 1
                nodes.setdefault(key, value)
        if not kinds:
            continue
        best, times = max(kinds.items(), key=lambda one: (one[1], repr(one[0])))
        if times < LEAST or 2 * times <= len(specs):
            continue
        with_, without = (
            sum(_cost(reduced(value, default), name) for value in values) for default in (nodes[best], None)
        )
        if with_ + _cost(nodes[best], name) < without:
            made.append(entry(name, nodes[best]))
    return Mapping(made)


def _cost(node: Node | None, name: str) -> int:
    """Return how many lines a field takes; those that only take something back count twice."""
    del name
    if node is None:
        return 0
    if type(node) is Scalar:
        return 2 if node is NULL else 1
    if type(node) is Mapping:
        return 1 + sum(_cost(value, "") for _, value in node.entries)
    return 1 + sum(_cost(value, "") for value in node.items)


def reduced(value: Node | None, base: Node | None) -> Node | None:
    """Return what must be merged over `base` to get `value`; None when that is nothing."""
    if value is None or (type(value) is Scalar and value.is_null):
        return None if base is None or base is NULL else NULL
    if base is None:
        return value
    if type(value) is not Mapping or type(base) is not Mapping:
        return None if meaning(value) == meaning(base) else value
    entries = []
    for key, inner in value.entries:
        left = reduced(inner, base.get(key.text))
        if left is not None:
            entries.append((key, left))
    entries += [(key, NULL) for key, inner in base.entries if value.get(key.text) is None and not _is_null(inner)]
    return Mapping(entries, value.line, value.column) if entries else None


def _is_null(node: Node) -> bool:
    return type(node) is Scalar and node.is_null
