"""Steps of long work in, one line on a terminal that says how far it is out; gone when the work is done."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

Step = Callable[[int, int], None]
"""Takes what is done and how much there is; 0 when nobody knows how much."""
PATIENCE = 0.5
"""Seconds after which a person wants to know."""
_EVERY = 0.1
_CLEAR = "\r\x1b[K"


def pause() -> None:
    """Let signals be seen between two steps of long work: compiled code does not look for them, and this is none."""


@contextmanager
def progress(label: str, stream: TextIO | None = None) -> Iterator[Step | None]:
    """Show how far some work is; yields None where there is no terminal, and nothing is shown then."""
    out = stream if stream is not None else sys.stderr
    if out is None or not out.isatty():
        yield None
        return
    line = _Line(label, out)
    try:
        yield line.step
    finally:
        line.clear()


class _Line:
    def __init__(self, label: str, stream: TextIO) -> None:
        self.label = label
        self.stream = stream
        self.next = time.monotonic() + PATIENCE
        self.is_shown = False

    def step(self, done: int, total: int) -> None:
        """Show what is done, if it is time to."""
        now = time.monotonic()
        if now < self.next:
            return
        self.next = now + _EVERY
        self.is_shown = True
        told = f"{done} of {total}" if total else str(done)
        self.stream.write(f"{_CLEAR}{self.label}: {told}")
        self.stream.flush()

    def clear(self) -> None:
        """Take the line away."""
        if self.is_shown:
            self.stream.write(_CLEAR)
            self.stream.flush()
