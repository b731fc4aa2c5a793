"""A pattern in, what can be said of every text it matches out: anchored or not, digits in a group or not."""

from __future__ import annotations

from functools import lru_cache

from render.flux.regex import Pattern, pieces, template_parts
from render.patterns import lazy
from render.structs import struct

_DIGIT_PIECES = lazy(r"[0-9]|\\d|\[(?:[0-9]|[0-9]-[0-9]|\\d|\[:digit:\])+\]|\{[0-9,]+\}|[+*?|()]")
_NON_CAPTURING = lazy(r"\(\?:")
_NAMED = lazy(r"\(\?P?<[^>]*>")
_OPTIONAL = lazy(r"[?*]|\{0[,}]")


@struct()
class _Group:
    """A group of a pattern; the pattern itself is one too."""

    parent: _Group | None
    start: int
    body: str = ""
    branches: bool = False
    """Whether `|` stands directly in it."""
    optional: bool = False

    @property
    def certain(self) -> bool:
        """Whether it takes part in every match."""
        return not self.optional and (self.parent is None or (not self.parent.branches and self.parent.certain))


@lru_cache(maxsize=256)
def anchored(text: str) -> bool:
    """Say whether a pattern has to match a tag from its start to its end."""
    return not _groups(text)[0].branches and _starts(text) and _ends(text)


def anchor(text: str) -> str:
    """Return the pattern with the anchors it lacks."""
    if _groups(text)[0].branches:
        return f"^(?:{text})$"
    return f"{'' if _starts(text) else '^'}{text}{'' if _ends(text) else '$'}"


def gives_digits(text: str, extract: str) -> bool:
    """Say whether every tag that passes a filter becomes digits; a pattern too clever to follow counts as not.

    `text` has to compile; an empty `extract` stands for the whole tag.
    """
    groups = _groups(text)
    if not extract:
        return anchored(text) and _only_digits(text[1:-1])
    pattern, certain = Pattern(text), False
    for literal, name in template_parts(extract):
        if literal and not (literal.isascii() and literal.isdigit()):
            return False
        for number in pattern.group_numbers(name):
            if number == 0 or not _only_digits(groups[number].body):
                return False
            certain = certain or (groups[number].certain and not Pattern(f"^(?:{groups[number].body})$").matches(""))
    return certain


def _only_digits(body: str) -> bool:
    body = _NAMED.sub("(", _NON_CAPTURING.sub("(", body))
    return bool(body) and all(_DIGIT_PIECES.fullmatch(piece) for piece, _ in pieces(body))


def _groups(text: str) -> dict[int, _Group]:
    """Return the capturing groups by number, and as number 0 the pattern itself."""
    current = _Group(None, 0, text)
    groups = {0: current}
    closed: _Group | None = None
    for piece, start in pieces(text):
        if closed is not None and _OPTIONAL.match(piece):
            closed.optional = True
        closed = None
        if piece == "(":
            named = _NAMED.match(text, start)
            current = _Group(current, start + len(named[0] if named else piece))
            if named is not None or text[start + 1 : start + 2] != "?":
                groups[len(groups)] = current
        elif piece == ")" and current.parent is not None:
            current.body = text[current.start : start]
            closed, current = current, current.parent
        elif piece == "|":
            current.branches = True
    return groups


def _starts(text: str) -> bool:
    return text.startswith(("^", r"\A"))


def _ends(text: str) -> bool:
    return [piece for piece, _ in pieces(text)][-1:] in (["$"], [r"\z"])
