"""A path in, the bytes of the regular file there, or the repository around it, out."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from render.digests import digest_of
from render.texts import Texts

IN_MEMORY = 1 << 16
"""Bytes of what was read that are kept in memory; they are looked at once, if ever."""


class Seen:
    """What a run has read of its inputs, by path as it is opened: what it must find again to give the same result."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        """The digest of each file that was read."""
        self.contents = Texts(IN_MEMORY)
        """The bytes of each file."""
        self.folders: dict[str, list[str]] = {}
        """The entries of each folder that was listed, as far as they count, each after a letter for what it is."""
        self.is_plain = True
        """False when something was read that cannot be found again by its path: behind a link, or differing twice."""

    def add(self, path: Path | str, data: bytes) -> None:
        """Enter what was read from a file."""
        name, digest = os.fspath(path), digest_of(data)
        if self.files.setdefault(name, digest) != digest:
            self.is_plain = False
        self.contents.add(name, data)


def read_bytes(path: Path | str) -> bytes:
    """Read a regular file; opening a pipe or a device must not wait for it."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        found = os.fstat(handle)
        if stat.S_ISDIR(found.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        data = os.read(handle, found.st_size + 1)
        if len(data) == found.st_size:
            return data
        # It is being written, or its file system tells no size.
        parts = [data]
        while part := os.read(handle, 1 << 16):
            parts.append(part)
        return b"".join(parts)
    finally:
        os.close(handle)


def repository(platform_path: Path) -> Path:
    """Return the top of the repository that holds the platform file; its folder outside a repository."""
    folder = Path(os.path.realpath(platform_path)).parent
    top = next((one for one in (folder, *folder.parents) if os.path.exists(one / ".git")), folder)  # noqa: PTH110 - it never raises
    try:
        return Path(os.path.relpath(top))
    except ValueError:
        return top
