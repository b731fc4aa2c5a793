"""A path in, the bytes of the regular file there, or the repository around it, out."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path


def read_bytes(path: Path | str) -> bytes:
    """Read a regular file; opening a pipe or a device must not wait for it."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        found = os.fstat(handle)
        if stat.S_ISDIR(found.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        parts = []
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
