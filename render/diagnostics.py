"""Problems as values: a code, a place and what to do; nothing here formats or prints them."""

from __future__ import annotations

from render.structs import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal, TypeAlias

Severity: TypeAlias = 'Literal["error", "warning"]'


@struct(frozen=True, order=True)
class Location:
    """A place in a file: a path as shown to people, and 1-based line and column (0: none)."""

    path: str
    line: int = 0
    column: int = 0
    length: int = 1
    """Characters to underline from `column` on."""

    def __str__(self) -> str:
        if not self.line:
            return self.path
        return f"{self.path}:{self.line}:{self.column}" if self.column else f"{self.path}:{self.line}"


@struct(frozen=True, order=True)
class Diagnostic:
    """One fault of the input: what, where, why and the change that mends it."""

    location: Location
    code: str
    """`R` and three digits; `render.codes.CODES` explains it."""
    message: str
    """One line, lower case, no full stop, naming the thing in backticks."""
    severity: Severity = "error"
    cause: str = ""
    hint: str = ""
    snippet: str = ""
    """The source line at `location`; empty when it may not be shown."""
    related: tuple[tuple[Location, str], ...] = ()
    """Further places, each with what stands there."""
    detail: str = ""
    """More lines, such as a unified diff, shown as they are."""


class RenderError(Exception):
    """Carries the diagnostics of a step that cannot go on."""

    def __init__(self, *diagnostics: Diagnostic) -> None:
        super().__init__("; ".join(f"{d.location}: {d.code} {d.message}" for d in diagnostics))
        self.diagnostics = diagnostics


class WorkerError(Exception):
    """Raised when another process of this run has ended before its work was done, such as for want of memory."""
