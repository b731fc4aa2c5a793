"""A pattern text in, Go's regexp behaviour out: compiling, unanchored search and template expansion.

RE2 does the matching; what Go's own parser takes differently is settled before and after it. Patterns of the few forms
that every engine understands alike, as those which channels derive, are matched by Python's own, which is there already
and answers ten times as fast.
"""

from __future__ import annotations

import re
from functools import lru_cache

from render.patterns import lazy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_GO_TEXTS = {
    "bad repetition operator": "invalid nested repetition operator",
    "invalid named capture group": "invalid named capture",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid repetition size": "invalid repeat count",
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "no argument for repetition operator": "missing argument to repetition operator",
}
_MAX_REPEAT = 1000
_MAX_DEPTH = 999
_MAX_MEMORY = 64 << 20

# One token: a quoted run, a character property, another escape, a character class, a repeat count, any character.
_TOKEN = lazy(
    r"\\Q.*?(?:\\E|\Z)|\\[pP]\{[^}]*\}|\\.|\[\^?\]?(?:\[:[^\]]*:\]|\\[pP]\{[^}]*\}|\\.|[^\]\\])*\]"
    r"|\{[0-9]+(?:,[0-9]*)?\}|.",
    re.DOTALL,
)
# Anchored at both ends: literal text, and numbers that end before a character that is no digit, so that nothing is
# ever tried twice; both also in groups that are not nested.
_PLAIN_PART = r"(?:[A-Za-z0-9_-]|\\[.+]|\[0-9\]\+(?=\)?(?:\$|[A-Za-z_-]|\\[.+])))"
_PLAIN = lazy(rf"\^(?:{_PLAIN_PART}|\(\?P<[a-z]+>{_PLAIN_PART}+\))*\$")
_SPECIAL = lazy(r"[\\.+*?()|\[\]{}^$]")
_NAMED = lazy(r"\(\?P?<([^>]*)>")
_PROPERTY = lazy(r"\\([pP])\{(\^?)([^}]*)\}|\\.", re.DOTALL)
# Properties that Go knows and RE2 does not, as the inside of a character class.
_PROPERTIES = {"ascii": r"\x00-\x7F", "lc": r"\p{Lu}\p{Ll}\p{Lt}"}


class PatternError(ValueError):
    """A text that Go's regexp refuses; `position` is the 0-based offset, `upstream` Go's own text."""

    def __init__(self, pattern: str, fault: str, piece: str, position: int) -> None:
        super().__init__(f"the pattern `{pattern}` does not compile: {fault} `{piece}`")
        self.position = position
        self.upstream = f"error parsing regexp: {fault}: `{piece}`"


class Pattern:
    """A compiled pattern."""

    __slots__ = ("_compiled", "names", "text")

    def __init__(self, text: str) -> None:
        """Compile a Go regular expression; raise PatternError where Go would."""
        self.text = text
        self._compiled = _compile(text)
        self.names = _group_names(text)
        """The numbers of the groups that bear a name: Go lets several share one."""

    @property
    def groups(self) -> int:
        """The count of capturing groups."""
        return int(self._compiled.groups)

    def matches(self, text: str) -> bool:
        """Say whether the pattern matches anywhere in the text."""
        return self._compiled.search(text) is not None

    def expand(self, template: str, text: str) -> str | None:
        """Return the template filled from the first match, or None without a match.

        `$name`, `${name}`, `$1` and `$$` are understood as by Go's `Expand`: a group that does not exist or took no
        part gives the empty string, a malformed reference stays as it is.
        """
        match = self._compiled.search(text)
        if match is None:
            return None
        out = []
        for literal, name in template_parts(template):
            out.append(literal)
            spans = (match.group(number) for number in self.group_numbers(name))
            out.append(next((span for span in spans if span is not None), ""))
        return "".join(out)

    def group_numbers(self, name: str | None) -> tuple[int, ...]:
        """Return the numbers of the groups that a name in a template stands for; 0 is the whole match."""
        if name is None:
            return ()
        if name.isascii() and name.isdigit() and len(name) <= 9 and (name == "0" or name[0] != "0"):
            return (int(name),) if int(name) <= self.groups else ()
        return self.names.get(name, ())


def template_parts(template: str) -> Iterator[tuple[str, str | None]]:
    """Split an extract template into literal texts, each with the name of the group that follows it (or None)."""
    literal = ""
    at = 0
    while (dollar := template.find("$", at)) >= 0:
        literal += template[at:dollar]
        at = dollar + 1
        if template[at : at + 1] == "$":
            literal += "$"
            at += 1
            continue
        brace = template[at : at + 1] == "{"
        start = end = at + brace
        while end < len(template) and (template[end].isalpha() or template[end].isdecimal() or template[end] == "_"):
            end += 1
        if start == end or (brace and template[end : end + 1] != "}"):
            literal += "$"
            continue
        yield literal, template[start:end]
        literal = ""
        at = end + brace
    yield literal + template[at:], None


def pieces(text: str) -> Iterator[tuple[str, int]]:
    """Split a pattern into its smallest parts, each with its offset: an escape, a class, a count, a character."""
    for match in _TOKEN.finditer(text):
        yield match[0], match.start()


def quote(text: str) -> str:
    """Return a pattern that matches the text literally, escaping no more than is needed."""
    return _SPECIAL.sub(r"\\\g<0>", text)


@lru_cache(maxsize=256)
def _compile(text: str) -> Any:
    if _PLAIN.fullmatch(text):
        try:
            # The end is the end of the text, and not also before a last line break.
            return re.compile(text[:-1] + r"\Z", re.ASCII)
        except re.error:
            # Such as two groups of one name.
            pass
    import re2  # type: ignore[import-untyped]  # it loads slowly, and few commands need it

    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MAX_MEMORY
    try:
        return re2.compile(text, options)
    except re2.error as error:
        known = _TOKEN.sub(_known_properties, text)
        if known != text:
            try:
                return re2.compile(known, options)
            except re2.error:
                pass
        raise _go_error(text, error.args[0].decode(errors="replace")) from None


def _known_properties(token: re.Match[str]) -> str:
    """Spell the character properties in a token as RE2 knows them; Go ignores case in their names."""
    text = token[0]
    if text.startswith("["):
        return text[0] + _PROPERTY.sub(lambda match: _property(match, inside=True), text[1:])
    return _PROPERTY.sub(lambda match: _property(match, inside=False), text) if text[:2] in {r"\p", r"\P"} else text


def _property(match: re.Match[str], *, inside: bool) -> str:
    if match[3] is None:
        return match[0]
    negated = (match[1] == "P") != bool(match[2])
    name = match[3].casefold()
    if name == "cn":
        # Everything that has a category is assigned.
        assigned = r"\pC\pL\pM\pN\pP\pS\pZ"
        return match[0] if inside else f"[{'' if negated else '^'}{assigned}]"
    if name in _PROPERTIES and not (inside and negated):
        return _PROPERTIES[name] if inside else f"[{'^' if negated else ''}{_PROPERTIES[name]}]"
    canonical = "_".join(word.capitalize() for word in name.split("_"))
    return f"\\{match[1]}{{{match[2]}{canonical}}}"


def _go_error(pattern: str, fault: str) -> PatternError:
    kind, _, piece = fault.partition(": ")
    if kind == "invalid perl operator" and piece.startswith("(?<") and len(piece) > 3:
        # To Go a look-behind is a group with a bad name, shown up to the next `>`.
        start = max(pattern.find(piece), 0)
        end = pattern.find(">", start)
        kind, piece = "invalid named capture group", pattern[start : end + 1] if end >= 0 else pattern[start:]
    return PatternError(pattern, _GO_TEXTS.get(kind, kind), piece, max(pattern.find(piece), 0))


@lru_cache(maxsize=256)
def _group_names(text: str) -> dict[str, tuple[int, ...]]:
    """Return the numbers of the named groups, and refuse on the way what RE2 takes and Go does not."""
    names: dict[str, tuple[int, ...]] = {}
    depth = groups = 0
    for piece, start in pieces(text):
        if piece == r"\C":
            raise PatternError(text, "invalid escape sequence", piece, start)
        if piece[0] == "{" and len(piece) > 2:
            counts = (int(count[:12]) for count in piece[1:-1].split(",") if count)
            if max(counts) > _MAX_REPEAT:
                raise PatternError(text, "invalid repeat count", piece, start)
        if piece == ")":
            depth -= 1
        elif piece == "(":
            depth += 1
            if depth > _MAX_DEPTH:
                raise PatternError(text, "expression nests too deeply", text, start)
            named = _NAMED.match(text, start)
            groups += named is not None or text[start + 1] != "?"
            if named is not None:
                if not named[1].isascii():
                    raise PatternError(text, "invalid named capture", named[0], start)
                names[named[1]] = (*names.get(named[1], ()), groups)
    return names
