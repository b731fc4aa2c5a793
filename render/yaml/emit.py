"""Values and source nodes in, YAML text out that the image bot's rewrite leaves as it is.

The bot re-serialises a whole file with kyaml when it changes one tag. Text from here is a fixed point of that rewrite:
block style, two spaces, compact sequences (wide where kyaml's textual derivation says so), no blank lines, literal
blocks only where kyaml keeps them, nothing folded or wrapped.
"""

from __future__ import annotations

import re
from functools import lru_cache

from render.patterns import lazy
from render.structs import final
from render.yaml.scalar import double_quoted, quote
from render.yaml.source import Mapping, Node, Scalar, Sequence


@final
class Marked:
    """A scalar of ours under a setter marker (or where one would stand): always double-quoted."""

    __slots__ = ("marker", "text")

    def __init__(self, text: str, marker: str | None = None) -> None:
        self.text = text
        self.marker = marker
        """`namespace:policy[:tag|:name|:digest]`; None writes no marker."""

    def __reduce__(self) -> tuple[object, ...]:
        return Marked, (self.text, self.marker)


@final
class Commented:
    """A list item of ours under a comment line."""

    __slots__ = ("comment", "value")

    def __init__(self, comment: str, value: Value) -> None:
        self.comment = comment
        self.value = value

    def __reduce__(self) -> tuple[object, ...]:
        return Commented, (self.comment, self.value)


Value = str | int | bool | None | Marked | Commented | Node | dict[str, "Value"] | list["Value"]

# A plain scalar keeps its class anywhere in block context when it matches this; `[^…]` spans what starts another token.
_SAFE_PLAIN = lazy(
    r"(?![-?:](?:\s|\Z)|---|\.\.\.|<<\Z)[^\s\[\]{},#&*!|>'\"%@`\x00-\x1f\x7f-\x9f\ufeff\ufffe\uffff\u2028\u2029\U00010000-\U0010ffff]"
    r"[^\x00-\x1f\x7f-\x9f\ufeff\ufffe\uffff\u2028\u2029\U00010000-\U0010ffff]*\Z"
)
_ALNUM = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
_SIMPLE = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./:-+=~$"
"""Letters and signs that make, after one of `_ALNUM`, a plain scalar that no pattern need be asked about."""
_ENDS_PLAIN = lazy(r": |:\Z| #|\s\Z")
_LITERAL = lazy(
    r"[^ \t\n\x00-\x1f\x7f-\x9f\ufeff\ufffe\uffff\u2028\u2029\ud800-\udfff\U00010000-\U0010ffff]"
    r"[^\x00-\x08\x0b-\x1f\x7f-\x9f\ufeff\ufffe\uffff\u2028\u2029\ud800-\udfff\U00010000-\U0010ffff]*\Z"
)
_LITERAL_ENDS = lazy(r"[ \t](?:\n|\Z)|\n\n\Z")
_SINGLE = lazy(r"[^\x00-\x1f\x7f-\x9f\ufeff\ufffe\uffff\u2028\u2029\ud800-\udfff\U00010000-\U0010ffff]*\Z")


def is_literal(text: str) -> bool:
    """Whether kyaml keeps `text` as a literal block."""
    if "\n" not in text:
        return False
    if text.isascii() and text[0] not in " \n" and text.replace("\n", "").isprintable():
        # Of what the patterns refuse, this leaves blanks at ends of lines, and empty lines at the end.
        return " \n" not in text and text[-1] != " " and text[-2:] != "\n\n"
    return _LITERAL.match(text) is not None and _LITERAL_ENDS.search(text) is None


@lru_cache(maxsize=2048)
def _scalar(text: str, style: str) -> str:
    """Return one line for a source scalar, in its quoting class."""
    if style == "":
        if not text:
            return "null"
        if text[0] in _ALNUM and text[-1] != ":" and not text.strip(_SIMPLE):
            return text
        if _SAFE_PLAIN.match(text) and not _ENDS_PLAIN.search(text):
            return text
        return double_quoted(text)
    if style == "'" and _SINGLE.match(text):
        return "'" + text.replace("'", "''") + "'"
    return double_quoted(text)


class Emitter:
    """Writes one document; `wide` puts two spaces before the `- ` of sequences in mappings."""

    __slots__ = ("step",)

    def __init__(self, *, wide: bool = False) -> None:
        self.step = "  " if wide else ""

    def entry(self, indent: str, key: str, value: Value) -> str:
        """Return `key: value` as lines at `indent`; nothing for None."""
        if value is None:
            return ""
        out: list[str] = []
        self._entry(out, indent, indent, key, value)
        return "".join(out)

    def write(self, out: list[str], indent: str, key: str, value: Value) -> None:
        """Write `key: value` (not None) to `out` as lines at `indent`; without a key, the entries of a mapping."""
        if key:
            self._entry(out, indent, indent, key, value)
        elif isinstance(value, dict | Mapping):
            self._fields(out, indent, indent, value)
        else:
            raise TypeError("only a mapping can stand alone on a line")

    def fields(self, indent: str, value: Value) -> str:
        """Return the entries of a mapping as lines at `indent`; nothing for None or an empty mapping."""
        out: list[str] = []
        if value is not None:
            if not isinstance(value, dict | Mapping):
                raise TypeError("only a mapping can stand alone on a line")
            self._fields(out, indent, indent, value)
        return "".join(out)

    def _fields(self, out: list[str], first: str, indent: str, value: dict[str, Value] | Mapping) -> None:
        """Write entries, the first one after `first` (indentation, perhaps with `- `)."""
        if type(value) is Mapping:
            for key, inner in value.entries:
                name = _scalar(key.text, key.style)
                # Most values are one line of text.
                if type(inner) is Scalar and "\n" not in inner.text:
                    out.append(f"{first}{name}: {_scalar(inner.text, inner.style)}\n")
                else:
                    self._entry(out, first, indent, name, inner)
                first = indent
            return
        assert isinstance(value, dict)
        for word, other in value.items():
            if other is None:
                continue
            if type(other) is str and "\n" not in other:
                out.append(f"{first}{quote(word)}: {quote(other)}\n")
            elif type(other) is Scalar and "\n" not in other.text:
                out.append(f"{first}{quote(word)}: {_scalar(other.text, other.style)}\n")
            else:
                self._entry(out, first, indent, quote(word), other)
            first = indent

    def _entry(self, out: list[str], first: str, indent: str, key: str, value: Value) -> None:
        kind = type(value)
        if kind is Mapping or kind is dict:
            # Of a mapping without entries nothing is written after this line, which is then put right.
            out.append(f"{first}{key}:\n")
            before = len(out)
            self._fields(out, indent + "  ", indent + "  ", value)  # type: ignore[arg-type]
            if len(out) == before:
                out[-1] = f"{first}{key}: {{}}\n"
        elif kind is Sequence or kind is list:
            items = value.items if kind is Sequence else value  # type: ignore[union-attr]
            if items:
                out.append(f"{first}{key}:\n")
                self._items(out, indent + self.step, indent + self.step, items)  # type: ignore[arg-type]
            else:
                out.append(f"{first}{key}: []\n")
        else:
            out.append(f"{first}{key}: {self._text(value, indent)}\n")

    def _items(self, out: list[str], first: str, indent: str, items: list[Value]) -> None:
        for item in items:
            value = item
            if type(value) is Commented:
                out.append(f"{indent}# {value.comment}\n")
                value = value.value
            kind = type(value)
            if kind is Mapping or kind is dict:
                before = len(out)
                self._fields(out, first + "- ", indent + "  ", value)  # type: ignore[arg-type]
                if len(out) == before:
                    out.append(f"{first}- {{}}\n")
            elif kind is Sequence or kind is list:
                inner = value.items if kind is Sequence else value  # type: ignore[union-attr]
                if inner:
                    self._items(out, first + "- ", indent + "  ", inner)  # type: ignore[arg-type]
                else:
                    out.append(f"{first}- []\n")
            else:
                out.append(f"{first}- {self._text(value, indent)}\n")
            first = indent

    def _text(self, value: Value, indent: str) -> str:
        """Return a scalar; a literal block spans lines, its text two spaces deeper than `indent`."""
        if isinstance(value, Marked):
            text = double_quoted(value.text)
            return f'{text} # {{"$imagepolicy": "{value.marker}"}}' if value.marker else text
        if isinstance(value, Scalar):
            if "\n" in value.text and is_literal(value.text):
                return _literal(value.text, indent)
            return _scalar(value.text, value.style)
        if isinstance(value, str):
            return _literal(value, indent) if "\n" in value and is_literal(value) else quote(value)
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, int):
            return str(value)
        if value is None:
            return "null"
        raise TypeError(f"cannot write a {type(value).__name__}")


def _literal(text: str, indent: str) -> str:
    head = "|" if text.endswith("\n") else "|-"
    lines = text.removesuffix("\n").split("\n")
    return head + "".join(f"\n{indent}  {line}" if line else "\n" for line in lines)


# The nearest line above an item that is no comment, cut at `#`: with one `:`, at its end.
_LIST_UNDER_KEY = lazy(r"^( *)[^\n#:]*: *(?:#[^\n]*)?\n(?: *#[^\n]*\n)*(?=( *)- )", re.MULTILINE)


def derives_wide(text: str) -> bool:
    """Whether kyaml would take the sequences of this document text for wide ones (kio's seqindent derivation).

    The scan is textual: the first list item right under a `key:` line, at its column or two further, decides, even
    inside a literal block.
    """
    for match in _LIST_UNDER_KEY.finditer(text):
        depth = len(match[2]) - len(match[1])
        if depth in (0, 2):
            return depth == 2
    return False
