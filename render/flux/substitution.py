"""A text that Flux's postBuild reads in, the variables that it asks for out.

Source: the parser of kustomize-controller's envsubst, whose forms are those of a shell with a few less: defaults
(`:=`, `=`, `:-`), `:+`, `:?`, substrings, cuts (`#`, `%`), replacement (`/`), case (`^`, `,`) and length (`${#x}`).
"""

from __future__ import annotations

from render.patterns import lazy
from render.structs import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re

_NAME = lazy(r"\w+")
_VARIABLE = lazy(r"[_A-Za-z][_A-Za-z0-9]*\Z")
_DOLLARS = lazy(r"\$+(?=(\{?))")
_DEFAULTS = (":=", ":-", "=")


@struct(frozen=True)
class Variable:
    """One variable that a text asks for."""

    name: str
    start: int
    """Offset of its `${`."""
    end: int
    """Offset after its `}`."""
    has_default: bool
    """Whether the text says what to put when it is not set."""

    @property
    def can_be_set(self) -> bool:
        """Whether Flux takes the name for that of a variable; of others it substitutes nothing."""
        return _VARIABLE.match(self.name) is not None


class SubstitutionError(ValueError):
    """A text that Flux fails on, whatever the variables are; `position` and `end` bound the `${…}` at fault."""

    def __init__(self, message: str, position: int, end: int) -> None:
        super().__init__(message)
        self.position = position
        self.end = end


def variables(text: str) -> list[Variable]:
    """Return the variables of a text in the order of their ends; raises SubstitutionError."""
    if "${" not in text:
        return []
    return _Parser(text).run()


def escaped(text: str) -> str:
    """Return a text that Flux's substitution turns into `text`, with as few changes as can be.

    A lone dollar sign passes as it is, unless a brace follows; two of them become one.
    """

    def double(match: re.Match[str]) -> str:
        run = match[0]
        return run if run == "$" and not match[1] else run * 2

    return _DOLLARS.sub(double, text)


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.found: list[Variable] = []

    def run(self) -> list[Variable]:
        text = self.text
        while self.at < len(text):
            if text.startswith("$$", self.at):
                self.at += 2
            elif text.startswith("${", self.at):
                self._variable()
            else:
                self.at += 1
        return self.found

    def _variable(self) -> None:
        start = self.at
        self.at += 2
        length = self._take("#")
        match = _NAME.match(self.text, self.at)
        if match is None:
            raise self._error(start, "no name follows the brace")
        self.at = match.end()
        default = "" if length else self._function(start)
        if not self._take("}"):
            raise self._error(start, "the closing brace is missing")
        self.found.append(Variable(match[0], start, self.at, default in _DEFAULTS))

    def _function(self, start: int) -> str:
        """Step over what follows the name up to the closing brace; return the operator."""
        for operator in (":=", ":-", ":?", ":+", "="):
            if self._take(operator):
                while self.at < len(self.text) and self.text[self.at] != "}":
                    self._parameter("}")
                return operator
        if self._take(":"):
            self._need(self._parameter(":}"), start)
            if self._take(":"):
                while self._take(":"):
                    pass
                at = self.at
                self._need(self._parameter("}"), start)
                if self.text[at] == "-":
                    raise self._error(start, "a length is negative")
            return ":"
        for operator in ("##", "#", "%%", "%"):
            if self._take(operator):
                self._need(self._parameter("}"), start)
                return operator
        if self._take("/"):
            self._replacement(start)
            return "/"
        for _ in range(2):
            if not self._take("^"):
                self._take(",")
        return ""

    def _replacement(self, start: int) -> None:
        if self.at < len(self.text) and self.text[self.at] in "/#%":
            self.at += 1
        self._need(self._parameter("/", escapes=True), start)
        if not self._take("/"):
            raise self._error(start, "the `/` before the replacement is missing")
        while self._take("/"):
            pass
        if not self.text.startswith("}", self.at):
            self._need(self._parameter("}", escapes=True), start)

    def _parameter(self, ends: str, *, escapes: bool = False) -> bool:
        """Step over one text, or one variable; whether there was any."""
        begin = self.at
        if self.text.startswith("${", begin):
            self._variable()
            return True
        while self.at < len(self.text) and self.text[self.at] not in ends:
            if self.text.startswith("${", self.at):
                break
            pair = self.text[self.at : self.at + 2]
            self.at += 2 if escapes and pair in ("$$", "\\/", "\\\\") else 1
        return self.at > begin

    def _take(self, token: str) -> bool:
        if not self.text.startswith(token, self.at):
            return False
        self.at += len(token)
        return True

    def _need(self, present: bool, start: int) -> None:
        if not present:
            raise self._error(start, "a parameter is missing")

    def _error(self, start: int, message: str) -> SubstitutionError:
        close = self.text.find("}", max(self.at, start))
        return SubstitutionError(message, start, len(self.text) if close < 0 else close + 1)
