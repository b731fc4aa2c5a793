"""Texts by path in, the same texts out on demand; a large build does not hold them in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import IO

IN_MEMORY = 4 << 20
"""Bytes kept in memory; what comes after lies in a temporary file without a name."""


class Texts(Mapping[str, str]):
    """A mapping of path to text that can only be added to."""

    def __init__(self) -> None:
        self._held: dict[str, bytes | tuple[int, int]] = {}
        self._size = 0
        self._spool: IO[bytes] | None = None

    def add(self, path: str, text: str) -> None:
        """Keep the text of a path."""
        data = text.encode()
        self._size += len(data)
        if self._size <= IN_MEMORY:
            self._held[path] = data
            return
        if self._spool is None:
            import tempfile

            self._spool = tempfile.TemporaryFile(prefix="render-")  # noqa: SIM115 - it lives as long as this object
        self._held[path] = (self._spool.tell(), len(data))
        self._spool.write(data)

    def data(self, path: str) -> bytes:
        """Return the text of a path in UTF-8; raises KeyError."""
        held = self._held[path]
        if isinstance(held, bytes):
            return held
        assert self._spool is not None
        end = self._spool.tell()
        self._spool.seek(held[0])
        data = self._spool.read(held[1])
        self._spool.seek(end)
        return data

    def __getitem__(self, path: str) -> str:
        return self.data(path).decode()

    def __contains__(self, path: object) -> bool:
        return path in self._held

    def __iter__(self) -> Iterator[str]:
        return iter(self._held)

    def __len__(self) -> int:
        return len(self._held)
