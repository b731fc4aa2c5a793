"""What YAML is read into: nodes with their places and their exact spelling, and the file that they stand in."""

from __future__ import annotations

from render.diagnostics import Diagnostic, Location, Severity
from render.patterns import lazy
from render.redact import has_credential, printable, redact_line
from render.structs import final
from render.yaml import scalar

BREAKS = lazy("\r\n|[\r\n\x85\u2028\u2029]")


@final
class Scalar:
    """One scalar: its text after YAML's unescaping, and how it was written (`''` plain, or `' " | >`)."""

    __slots__ = ("column", "length", "line", "style", "text")

    def __init__(self, text: str, style: str = '"', line: int = 0, column: int = 0, length: int = 1) -> None:
        self.text = text
        self.style = style
        self.line = line
        self.column = column
        self.length = length

    def __reduce__(self) -> tuple[object, ...]:
        return Scalar, (self.text, self.style, self.line, self.column, self.length)

    @property
    def is_null(self) -> bool:
        """Whether both readers take it for null."""
        return not self.style and self.text in _NULLS

    @property
    def is_string(self) -> bool:
        """Whether both readers take it for the very string it spells."""
        return bool(self.style) or scalar.is_plain_string(self.text)


_FEW = 8
"""Entries of a mapping that are faster looked through than put into a dict: a mapping is asked a few times only."""


@final
class Mapping:
    """A mapping: its entries in order, keys as scalars; unique by what either reader makes of them."""

    __slots__ = ("_index", "column", "depth", "entries", "key_node", "line", "weight")

    def __init__(self, entries: list[tuple[Scalar, Node]], line: int = 0, column: int = 0) -> None:
        self.entries = entries
        self.line = line
        self.column = column
        self.weight = 1
        self.depth = 1
        self.key_node: Scalar | None = None
        """The key it was first the value of: where a fault of the whole mapping is shown."""
        self._index: dict[str, int] | None = None

    def __reduce__(self) -> tuple[object, ...]:
        return Mapping, (self.entries, self.line, self.column)

    def _position(self, key: str) -> int | None:
        if self._index is None or len(self._index) != len(self.entries):
            self._index = {k.text: i for i, (k, _) in enumerate(self.entries)}
        return self._index.get(key)

    def get(self, key: str) -> Node | None:
        """Return the value at `key`, or None."""
        if len(self.entries) <= _FEW:
            for name, value in self.entries:
                if name.text == key:
                    return value
            return None
        position = self._position(key)
        return None if position is None else self.entries[position][1]

    def key(self, key: str) -> Scalar | None:
        """Return the key node spelled `key`, or None."""
        if len(self.entries) <= _FEW:
            for name, _ in self.entries:
                if name.text == key:
                    return name
            return None
        position = self._position(key)
        return None if position is None else self.entries[position][0]

    def text(self, key: str) -> str | None:
        """Return the text of the scalar at `key`; None when it is absent, null or no scalar."""
        value = self.get(key)
        return value.text if type(value) is Scalar and not value.is_null else None


@final
class Sequence:
    """A sequence and its items."""

    __slots__ = ("column", "depth", "items", "key_node", "line", "weight")

    def __init__(self, items: list[Node], line: int = 0, column: int = 0) -> None:
        self.items = items
        self.line = line
        self.column = column
        self.weight = 1
        self.depth = 1
        self.key_node: Scalar | None = None

    def __reduce__(self) -> tuple[object, ...]:
        return Sequence, (self.items, self.line, self.column)


Node = Scalar | Mapping | Sequence

_NULLS = frozenset(("", "~", "null", "Null", "NULL"))


class Source:
    """One file: its path as shown to people, its text, and the places in it that must not be shown."""

    __slots__ = ("_hidden", "_lines", "path", "text")

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.text = text
        self._lines: list[str] | None = None
        self._hidden: list[tuple[int, int]] = []

    def hide(self, node: Node) -> None:
        """Never quote the lines of `node` (a Secret) in a diagnostic."""
        self._hidden.append((node.line, last_line(node)))

    def is_hidden(self, line: int) -> bool:
        """Whether `line` may not be shown."""
        return any(first <= line <= last for first, last in self._hidden)

    def snippet(self, line: int) -> str:
        """Return source line `line` (1-based) with credentials blanked, `""` when there is none to show."""
        if self._lines is None:
            self._lines = BREAKS.split(self.text)
        if not 0 < line <= len(self._lines) or self.is_hidden(line):
            return ""
        return redact_line(self._lines[line - 1])

    def place(self, node: Node | None) -> Location:
        """Return the location of `node`; of the file as a whole for None or a node that was not read from it."""
        if node is not None and type(node) is not Scalar and node.key_node is not None:
            node = node.key_node
        if node is None or not node.line:
            return Location(self.path)
        return Location(self.path, node.line, node.column, node.length if type(node) is Scalar else 1)

    def shown(self, node: Scalar) -> str:
        """Return the text of a scalar as it may be quoted in a message."""
        if self.is_hidden(node.line) or has_credential(self.snippet(node.line)):
            return "…"
        return node.text if len(node.text) <= 80 else node.text[:77] + "…"

    def fault(
        self,
        code: str,
        node: Node | None,
        message: str,
        *,
        cause: str = "",
        hint: str = "",
        severity: Severity = "error",
        related: tuple[tuple[Location, str], ...] = (),
    ) -> Diagnostic:
        """Return a diagnostic at `node`, quoting its line."""
        place = self.place(node)
        told = (printable(message), severity, printable(cause), printable(hint))
        return Diagnostic(place, code, *told, self.snippet(place.line), related)


class Document:
    """One YAML document of a file."""

    __slots__ = ("is_sound", "root", "source")

    def __init__(self, source: Source, root: Node, *, is_sound: bool = False) -> None:
        self.source = source
        self.root = root
        self.is_sound = is_sound
        """Whether every scalar is known to be one thing to both readers, and to be carried by kustomize."""


def last_line(node: Node) -> int:
    """Return the last source line of a node (the line of its last scalar)."""
    while type(node) is not Scalar:
        if type(node) is Mapping and node.entries:
            node = node.entries[-1][1]
        elif type(node) is Sequence and node.items:
            node = node.items[-1]
        else:
            break
    return node.line + (node.text.count("\n") if type(node) is Scalar else 0)
