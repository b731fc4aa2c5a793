"""A scalar and the form of a string in, the string out.

What is added to JSON Schema is lexical: a plain scalar that any YAML reader would take for something else is refused,
because its value would depend on the reader.
"""

from __future__ import annotations

import re

from render.model import wording
from render.model.record import Check, Invalid, Reader, Schema
from render.patterns import lazy
from render.yaml import scalar
from render.yaml.source import Node, Scalar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_BEGIN_NUMBERS = frozenset("0123456789+-")
STRINGS = scalar.Memo(
    lambda text: (
        scalar.is_plain_string(text) and (text[0] not in _BEGIN_NUMBERS or wording.SEXAGESIMAL.match(text) is None)
    )
)
"""Whether any YAML reader takes a plain text for the string that it spells."""


_MOST_MATCHED = 512


def anchored(pattern: str) -> str:
    """Return a schema's pattern for Python, whose `$` also stands before a last line break."""
    return f"{pattern[:-1]}\\Z" if pattern.endswith("$") else pattern


class TextCheck(Check):
    """A string, by the strict lexical rule."""

    expected = "a string"

    def __init__(self, schema: Schema) -> None:
        self.enum: list[str] | None = schema.get("enum")
        self.pattern: str | None = schema.get("pattern")
        self.regex: re.Pattern[str] | None = None
        self.matched: set[str] = set()
        """Texts that were found to match, such as the labels that many services share."""
        self.least: int = schema.get("minLength", 0)
        self.most: int | None = schema.get("maxLength")

    def read(self, reader: Reader, node: Node, path: str, at: Node) -> Any:
        """Return the text, or INVALID after reporting."""
        if type(node) is not Scalar or node.is_null or node.style == "?":
            return reader.wrong_type(node, path, self.expected)
        text = node.text
        if not node.style and not STRINGS[text]:
            return self.ambiguous(reader, node, path, at, self.expected)
        if self.enum is not None and text not in self.enum:
            return self._no_choice(reader, node, path)
        if len(text) < self.least or (self.most is not None and len(text) > self.most):
            return self._odd_length(reader, node, path)
        if self.pattern is not None and not self._matches(text):
            meaning = wording.meaning_of(self.pattern)
            told = f"`{path}` must be {meaning.expected}, not `{reader.source.shown(node)}`"
            return reader.fault("R104", node, told, cause=meaning.cause, hint=self._mend(reader, node))
        return text

    def fits(self, node: Scalar) -> bool:
        """Whether every reader takes the scalar for the string that it spells."""
        return bool(node.style) or STRINGS[node.text]

    def _matches(self, text: str) -> bool:
        assert self.pattern is not None
        if text in self.matched:
            return True
        if self.regex is None:
            self.regex = lazy(anchored(self.pattern), re.ASCII)
        if self.regex.search(text) is None:
            return False
        if len(self.matched) >= _MOST_MATCHED:
            self.matched.clear()
        self.matched.add(text)
        return True

    def _admits(self, text: str) -> bool:
        """Whether the text would do if it were quoted."""
        if self.enum is not None and text not in self.enum:
            return False
        return self.pattern is None or self._matches(text)

    def _mend(self, reader: Reader, node: Scalar) -> str:
        """Return a hint that names the text that was probably meant."""
        if not reader.quotable(node):
            return ""
        if self.enum is not None:
            meant = wording.closest(node.text, self.enum) or ""
        else:
            meant = wording.meaning_of(self.pattern or "").repair(node.text)
        sound = meant and self._admits(meant) and (self.most is None or len(meant) <= self.most)
        return f"write `{meant}`" if sound else ""

    def _no_choice(self, reader: Reader, node: Scalar, path: str, kind: str = "", code: str = "R104") -> Invalid:
        """Report a text that is none of the choices; they go into the cause when the headline cannot hold them."""
        assert self.enum is not None
        seen = f"not {kind}`{reader.source.shown(node)}`"
        told = f"`{path}` must be {wording.one_of(self.enum)}, {seen}"
        cause = ""
        if len(told) > wording.WIDTH:
            told = f"`{path}` must be one of its choices, {seen}"
            cause = f"the choices are {wording.listed(self.enum)}"
        return reader.fault(code, node, told, cause=cause, hint=self._mend(reader, node))

    def _odd_length(self, reader: Reader, node: Scalar, path: str) -> Invalid:
        size = len(node.text)
        if not size:
            hint = f"give `{path}` a value, or remove the key"
            return reader.fault("R104", node, f"`{path}` must not be empty", hint=hint)
        if size < self.least:
            told = f"at least {wording.counted(self.least, 'character')}, not {size}"
            return reader.fault("R104", node, f"`{path}` must have {told}")
        assert self.most is not None
        return reader.fault(
            "R104",
            node,
            f"`{path}` must have at most {wording.counted(self.most, 'character')}, not {size}",
            cause=wording.length_reason(self.pattern, self.most),
            hint=f"shorten it by {wording.counted(size - self.most, 'character')}",
        )

    def ambiguous(self, reader: Reader, node: Scalar, path: str, at: Node, expected: str) -> Invalid:
        """Report a plain scalar that some reader takes for something else than a string."""
        kind = wording.kind_of(node)
        quotable = reader.quotable(node)
        shown = reader.source.shown(node)
        if not self._admits(node.text):
            # Quotes alone would only lead to the next fault.
            if self.enum is not None:
                return self._no_choice(reader, node, path, f"{kind} ", "R103")
            meaning = wording.meaning_of(self.pattern or "")
            told = f"`{path}` must be {meaning.expected}, not {kind} `{shown}`"
            return reader.fault("R103", node, told, cause=meaning.cause, hint=self._mend(reader, node))
        quoted = reader.entry(node, at, f'"{node.text}"')
        return reader.fault(
            "R103",
            node,
            f"`{path}` must be {expected}, not {kind} `{shown}`",
            cause=wording.reading(node, quoting=quotable),
            hint=f"quote it: `{quoted}`" if quotable else "quote it",
        )
