"""Two YAML texts in, whether their objects and setter markers are the same out."""

from __future__ import annotations

from render.patterns import lazy
from render.yaml.source import Mapping, Node, Scalar, Sequence, Source, parse

_BREAKS = lazy("\r\n|[\r\n\x85\u2028\u2029]")
_MARKER = lazy(r"#\s*(\{\s*\"\$[a-z]+\".*\})\s*\Z")


def same_objects(one: str, other: str) -> bool:
    """Whether two texts hold the same objects in the same order, with the same setter markers at the same values.

    Strings are the same by their text, however they are quoted; any other plain scalar only by its spelling. The order
    of keys, indents, line ends, wrapping and comments that are no markers do not count. A text that does not parse, or
    whose markers stand at no single value, is the same as none.
    """
    left, right = _Text(one), _Text(other)
    if not left.is_sound or not right.is_sound or len(left.roots) != len(right.roots):
        return False
    same = all(_same(left, a, right, b) for a, b in zip(left.roots, right.roots, strict=True))
    return same and left.met == left.markers.keys() and right.met == right.markers.keys()


class _Text:
    """A parsed text, its markers by line, and the lines whose marker was met at a value."""

    def __init__(self, text: str) -> None:
        documents, faults = parse(Source("", text))
        self.is_sound = not faults
        self.roots = [document.root for document in documents]
        found = ((number, _MARKER.search(line)) for number, line in enumerate(_BREAKS.split(text), 1))
        self.markers = {number: "".join(match[1].split()) for number, match in found if match}
        self.met: set[int] = set()

    def marker(self, node: Scalar) -> str | None:
        """Return the marker behind a value."""
        marker = self.markers.get(node.line)
        if marker is not None:
            self.met.add(node.line)
        return marker


def _same(left: _Text, one: Node, right: _Text, other: Node) -> bool:
    if type(one) is Scalar and type(other) is Scalar:
        return _spelling(one) == _spelling(other) and left.marker(one) == right.marker(other)
    if type(one) is Sequence and type(other) is Sequence:
        pairs = zip(one.items, other.items, strict=False)
        return len(one.items) == len(other.items) and all(_same(left, a, right, b) for a, b in pairs)
    if type(one) is not Mapping or type(other) is not Mapping or len(one.entries) != len(other.entries):
        return False
    values = {_spelling(key): value for key, value in other.entries}
    return all(
        _spelling(key) in values and _same(left, value, right, values[_spelling(key)]) for key, value in one.entries
    )


def _spelling(node: Scalar) -> tuple[bool, str]:
    return node.is_string, node.text
