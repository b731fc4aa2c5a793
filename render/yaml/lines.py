"""YAML text in, the nodes that libyaml would give out, when each line of it has one of the usual forms; else None.

The usual forms are keys, list items and scalars of one line, literal blocks, and flow collections of one line, with
comments and several documents. Anchors, tags, escapes, scalars over several lines and every fault are left to libyaml.
A line costs a tenth of what its events do, and the binding is not even imported. The rules are those of libyaml's
scanner, where a scalar or collection of one line is concerned; tests read many texts with both.
"""

from __future__ import annotations

from render.patterns import lazy
from render.structs import final
from render.yaml.nodes import Document, Mapping, Node, Scalar, Sequence, Source
from render.yaml.scalar import SOUND_VALUES, USUAL_KEYS

MAX_DEPTH = 60
MAX_FLOW_DEPTH = 20
MAX_KEY = 128

_SINGLE_QUOTED = lazy(r"'((?:[^']|'')*)'")
_AFTER = lazy(r" *(?: #.*)?\Z")
_BEGINS_PLAIN = frozenset("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz./~")
_NO_PLAIN = frozenset(("", *"?:,[]{}#&*!|>'\"%@` "))
"""What cannot begin a plain scalar here; `-` can before a character that is no blank."""
_FLOW_KEY = lazy(r"""(?:([A-Za-z_][A-Za-z0-9_./-]*)|"([^"\\]*)"|'([^']*)'):( +)""")
_FLOW_SCALAR = lazy(
    r"""((?:-(?=[A-Za-z0-9_.-])|[A-Za-z0-9_./~$+=<^();])"""
    r"""(?:[A-Za-z0-9_./~$+=<>^();@%-]|:(?=[A-Za-z0-9_/$])| +(?=[A-Za-z0-9_./$]))*)"""
    r"""|("[^"\\]*"|'[^']*')"""
)


_NOTHING = Scalar("", "")


@final
class _Open:
    """An open collection: its column, and the key of it that waits for its value."""

    __slots__ = ("column", "entries", "node", "waiting")

    def __init__(self, column: int, node: Mapping | Sequence | None) -> None:
        self.column = column
        self.node = node
        self.entries = node.entries if type(node) is Mapping else None
        self.waiting: Scalar | None = None

    def end_value(self) -> None:
        """Give a key that still waits for its value none: an empty scalar right after the colon."""
        key = self.waiting
        if key is not None and self.entries is not None:
            self.entries.append((key, Scalar("", "", key.line, key.column + key.length + 1, 0)))
            self.waiting = None

    def is_sound(self) -> bool:
        """End the collection; False for duplicate keys."""
        if self.entries is None:
            return True
        self.end_value()
        return len({key.text for key, _ in self.entries}) == len(self.entries)


def read(source: Source) -> list[Document] | None:
    """Return the documents of a file; empty ones are left out. None for a text in which something is unusual."""
    text = source.text
    if not text.endswith("\n") or not text.replace("\n", "").isprintable():
        return None
    return _Lines(source).read()


class _Lines:
    """Keeps what is open around the innermost collection: the column, the node and the waiting key of each."""

    __slots__ = ("above", "documents", "is_sound", "lines", "read_to", "root", "source")

    def __init__(self, source: Source) -> None:
        self.source = source
        self.documents: list[Document] = []
        self.lines: list[str] = []
        self.root: Node | None = None
        self.read_to = 0
        """The last line of a literal block."""
        self.above: list[_Open] = []
        # Usual keys are sound, and so is quoted text here, where all is printable.
        self.is_sound = True

    def read(self) -> list[Document] | None:
        # The innermost collection is in local variables: most lines are an entry of it.
        top, above = self._bottom(), self.above
        column, entries = -1, top.entries
        lines = self.lines = self.source.text.split("\n")
        lines.pop()
        for number, line in enumerate(lines, 1):
            if number <= self.read_to:
                continue
            rest = line.lstrip(" ")
            at = len(line) - len(rest)
            key = _key(rest)
            if not key:
                if rest[:2] == "- ":
                    found = self._item(top, rest[2:], number, at)
                elif not rest or rest[0] == "#":
                    continue
                elif rest == "---" and not at and self._end(top):
                    found = self._bottom()
                else:
                    return None
                if found is None:
                    return None
                top, column, entries = found, found.column, found.entries
                continue
            if at != column or entries is None:
                while column > at:
                    if not top.is_sound():
                        return None
                    top = above.pop()
                    column = top.column
                if column == at and top.entries is None:
                    # A list may stand in the column of its key.
                    top = above.pop()
                    column = top.column
                if column != at:
                    mapping = Mapping([], number, at + 1)
                    if not self._begin(top, mapping, at):
                        return None
                    top, column = _Open(at, mapping), at
                entries = top.entries
                if entries is None:
                    return None
            if top.waiting is not None:
                top.end_value()
            size = len(key)
            name = Scalar(key, "", number, at + 1, size)
            rest = rest[size + 2 :]
            if not rest:
                top.waiting = name
                continue
            at += size + 2
            if rest[0] in _BEGINS_PLAIN and rest[-1] not in " :" and ": " not in rest and "#" not in rest:
                entries.append((name, Scalar(rest, "", number, at + 1, len(rest))))
                if not SOUND_VALUES[rest]:
                    self.is_sound = False
                continue
            value = self._value(rest.lstrip(" "), number, at + len(rest) - len(rest.lstrip(" ")), column)
            if value is None:
                return None
            if value is _NOTHING:
                top.waiting = name
                continue
            if type(value) is not Scalar:
                value.key_node = name
            entries.append((name, value))
        return self.documents if self._end(top) else None

    def _bottom(self) -> _Open:
        """Return what lies below all collections of a document."""
        self.above.clear()
        self.root = None
        return _Open(-1, None)

    def _close(self, top: _Open, column: int) -> _Open | None:
        """End the collections that begin right of `column`; None for duplicate keys."""
        while top.column > column:
            if not top.is_sound():
                return None
            top = self.above.pop()
        return top

    def _begin(self, top: _Open, node: Mapping | Sequence, column: int) -> bool:
        """Begin a collection as the value of the key that waits for one, or as the document; False if none does."""
        if top.node is None:
            if self.root is not None or column:
                return False
            self.root = node
        elif top.entries is not None and top.waiting is not None and len(self.above) < MAX_DEPTH:
            top.entries.append((top.waiting, node))
            node.key_node = top.waiting
            top.waiting = None
        else:
            return False
        self.above.append(top)
        return True

    def _item(self, top: _Open, rest: str, number: int, column: int) -> _Open | None:
        """Take a line that begins with `- `, and return the innermost collection after it."""
        above = self._close(top, column)
        if above is None:
            return None
        if above.column != column or type(above.node) is not Sequence:
            sequence = Sequence([], number, column + 1)
            if not self._begin(above, sequence, column):
                return None
            above = _Open(column, sequence)
        assert type(above.node) is Sequence
        column += 2
        after = rest.lstrip(" ")
        dash, key = after[:2] == "- ", _key(after)
        if not dash and not key:
            value = self._value(rest, number, column, above.column)
            if value is None or value is _NOTHING:
                return None
            above.node.items.append(value)
            return above
        if rest[0] == " ":
            return None
        inner: Mapping | Sequence
        inner = Sequence([], number, column + 1) if dash else Mapping([], number, column + 1)
        above.node.items.append(inner)
        self.above.append(above)
        top = _Open(column, inner)
        if dash:
            return self._item(top, rest[2:], number, column) if len(self.above) < MAX_DEPTH else None
        name = Scalar(key, "", number, column + 1, len(key))
        text = rest[len(key) + 2 :]
        blanks = len(text) - len(text.lstrip(" "))
        value = self._value(text[blanks:], number, column + len(key) + 2 + blanks, column)
        if value is None:
            return None
        if value is _NOTHING:
            top.waiting = name
            return top
        if type(value) is not Scalar:
            value.key_node = name
        assert top.entries is not None
        top.entries.append((name, value))
        return top

    def _end(self, top: _Open) -> bool:
        """End the document; False for duplicate keys."""
        if self._close(top, -1) is None:
            return False
        if self.root is not None:
            self.documents.append(Document(self.source, self.root, is_sound=self.is_sound))
        return True

    def _value(self, rest: str, line: int, column: int, parent: int) -> Node | None:
        """Return the value that begins at `column` (from 0), `rest` being what the line holds from there on.

        `parent` is the column of the collection that it belongs to. `_NOTHING` stands for no value on this line.
        """
        first = rest[:1]
        if first == '"' or first == "'":  # noqa: PLR1714 - twice as fast
            return _quoted(rest, line, column + 1)
        if first not in _NO_PLAIN and (first != "-" or rest[1:2] not in ("", " ")):
            if "#" in rest:
                rest = rest.partition(" #")[0]
            if rest[-1] == " ":
                rest = rest.rstrip(" ")
            if ":" in rest and (": " in rest or rest[-1] == ":"):
                return None
            if not SOUND_VALUES[rest]:
                self.is_sound = False
            return Scalar(rest, "", line, column + 1, len(rest))
        if first in ("", "#"):
            return _NOTHING
        if first == "|":
            return self._literal(rest, line, column + 1, parent)
        if first in "[{":
            self.is_sound = False  # not looked at
            found = _flow(rest, 0, line, column + 1, 1)
            return found[0] if found is not None and _AFTER.match(rest, found[1]) else None
        return None

    def _literal(self, rest: str, line: int, column: int, parent: int) -> Scalar | None:
        if rest not in ("|", "|-", "|+"):
            return None
        lines = self.lines
        first = lines[line] if line < len(lines) else ""
        depth = len(first) - len(first.lstrip(" "))
        if not parent < depth < len(first):
            return None
        prefix = first[:depth]
        end = line
        while end < len(lines) and (lines[end].startswith(prefix) or not lines[end].strip(" ")):
            end += 1
        self.read_to = end
        body = [one[depth:] for one in lines[line:end]]
        blank = 0
        while not body[-1]:
            body.pop()
            blank += 1
        ends = {"|": 1, "|-": 0, "|+": 1 + blank}[rest]
        return Scalar("\n".join(body) + "\n" * ends, "|", line, column)


def _key(line: str) -> str:
    """Return the usual key that a line without its indentation begins with, before `: ` or `:` at its end; or `""`."""
    colon = line.find(":")
    if colon <= 0 or (colon + 1 != len(line) and line[colon + 1] != " "):
        return ""
    key = line[:colon]
    return key if USUAL_KEYS[key] else ""


def _quoted(rest: str, line: int, column: int) -> Scalar | None:
    """Return a scalar in quotes that ends on its line, without escapes but `''`."""
    quote = rest[0]
    end = rest.find(quote, 1)
    if end == len(rest) - 1:
        text = rest[1:-1]
    else:
        match = _SINGLE_QUOTED.match(rest) if quote == "'" else None
        if match is not None:
            end, text = match.end() - 1, match[1].replace("''", "'")
        else:
            text = rest[1:end]
        if end < 0 or not _AFTER.match(rest, end + 1):
            return None
    if quote == '"' and "\\" in text:
        return None
    return Scalar(text, quote, line, column, end + 1)


def _flow(rest: str, at: int, line: int, column: int, depth: int) -> tuple[Mapping | Sequence, int] | None:
    """Return the flow collection that begins at index `at` of `rest`, and the index after it.

    `column` is the place of `rest` itself, from 1.
    """
    if depth > MAX_FLOW_DEPTH:
        return None
    closing = "]" if rest[at] == "[" else "}"
    made: Mapping | Sequence
    made = Sequence([], line, column + at) if closing == "]" else Mapping([], line, column + at)
    at = _skip(rest, at + 1)
    if rest[at : at + 1] == closing:
        return made, at + 1
    while True:
        key = None
        if type(made) is Mapping:
            match = _FLOW_KEY.match(rest, at)
            if match is None or (match[1] is not None and not USUAL_KEYS[match[1]]) or match.end() - at > MAX_KEY // 4:
                return None
            style = "" if match[1] is not None else rest[at]
            text = match[1] if match[1] is not None else rest[at + 1 : match.start(4) - 2]
            key = Scalar(text, style, line, column + at, match.start(4) - 1 - at)
            at = match.end()
        value: Node
        if rest[at : at + 1] in ("[", "{"):
            found = _flow(rest, at, line, column, depth + 1)
            if found is None:
                return None
            inner, end = found
            inner.key_node = key
            value = inner
        else:
            match = _FLOW_SCALAR.match(rest, at)
            if match is None:
                return None
            end = match.end()
            style = "" if match[1] is not None else rest[at]
            text = match[1] if match[1] is not None else match[2][1:-1]
            value = Scalar(text, style, line, column + at, end - at)
        if type(made) is Mapping:
            made.entries.append((key, value))  # type: ignore[arg-type]
        else:
            made.items.append(value)
        at = _skip(rest, end)
        if rest[at : at + 1] == closing:
            if type(made) is Mapping and len({one.text for one, _ in made.entries}) != len(made.entries):
                return None
            return made, at + 1
        if rest[at : at + 1] != ",":
            return None
        at = _skip(rest, at + 1)


def _skip(rest: str, at: int) -> int:
    while rest[at : at + 1] == " ":
        at += 1
    return at
