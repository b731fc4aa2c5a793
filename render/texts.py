"""Texts by path in, the same texts out on demand; a large build does not hold them in memory."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO

IN_MEMORY = 1 << 18
"""Bytes kept in memory; what comes after lies in a temporary file without a name."""

_LENGTH_BITS = 32


def unnamed() -> IO[bytes]:
    """Return a temporary file without a name, for reading and writing; raises OSError.

    It is opened as `tempfile` would in the folder that it takes first; importing that takes longer than writing the
    files of a hundred services.
    """
    folder = os.environ.get("TMPDIR") or "/tmp"  # noqa: S108 - a file without a name cannot be guessed
    try:
        handle = os.open(folder, os.O_RDWR | os.O_EXCL | os.O_TMPFILE | os.O_CLOEXEC, 0o600)
    except (AttributeError, OSError):
        # Another system or file system, or another folder.
        import tempfile

        return tempfile.TemporaryFile(prefix="render-")
    return open(handle, "w+b")


class Texts(Mapping[str, str]):
    """A mapping of path to text that can only be added to."""

    def __init__(self, in_memory: int = IN_MEMORY) -> None:
        self._limit = in_memory
        self._held: dict[str, bytes | int] = {}
        """The text, or where it lies in the spool: its offset, shifted, and its length."""
        self._size = 0
        self._end = 0
        self._spool: IO[bytes] | None = None

    def __del__(self) -> None:
        if self._spool is not None:
            self._spool.close()

    def add(self, path: str, data: bytes) -> None:
        """Keep the text of a path, in UTF-8."""
        self._size += len(data)
        if self._size <= self._limit:
            self._held[path] = data
            return
        if self._spool is None:
            self._spool = unnamed()
        self._held[path] = self._end << _LENGTH_BITS | len(data)
        self._end += self._spool.write(data)

    def size(self, path: str) -> int:
        """Return the length of a text in UTF-8; raises KeyError."""
        held = self._held[path]
        return len(held) if isinstance(held, bytes) else held & (1 << _LENGTH_BITS) - 1

    def data(self, path: str) -> bytes:
        """Return the text of a path in UTF-8; raises KeyError."""
        held = self._held[path]
        if isinstance(held, bytes):
            return held
        assert self._spool is not None
        self._spool.flush()
        # Processes that are forked share the position in a file, so there is none.
        return os.pread(self._spool.fileno(), held & (1 << _LENGTH_BITS) - 1, held >> _LENGTH_BITS)

    def __getitem__(self, path: str) -> str:
        return self.data(path).decode()

    def __contains__(self, path: object) -> bool:
        return path in self._held

    def __iter__(self) -> Iterator[str]:
        return iter(self._held)

    def __len__(self) -> int:
        return len(self._held)
