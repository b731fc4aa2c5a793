"""A path in, the bytes of the regular file there, or the repository around it, out."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator

from render.digests import digest_of
from render.texts import Texts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

StrPath: TypeAlias = "str | os.PathLike[str]"
"""A path; inside a build paths are texts, since importing pathlib takes a tenth of a short run."""

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

    def add(self, path: StrPath, data: bytes) -> None:
        """Enter what was read from a file."""
        name, digest = os.fspath(path), digest_of(data)
        if self.files.setdefault(name, digest) != digest:
            self.is_plain = False
        self.contents.add(name, data)


def read_bytes(path: StrPath) -> bytes:
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


def clean(path: StrPath) -> str:
    """Return a path as pathlib spells it: without `.`, empty parts and a slash at the end; `.` for an empty one."""
    text = os.fspath(path)
    if "//" not in text and "." not in text and not text.endswith("/") and text:
        return text
    root = "//" if text.startswith("//") and not text.startswith("///") else "/" if text.startswith("/") else ""
    return root + "/".join(part for part in text.split("/") if part not in ("", ".")) or "."


def below(folder: str, path: str) -> str:
    """Return the path of what lies at a path below a folder; both are clean."""
    if folder == ".":
        return path
    return f"{folder}{path}" if folder.endswith("/") else f"{folder}/{path}"


def is_inside(path: str, folder: str) -> bool:
    """Whether a path is that of a folder, or of something in it."""
    return path == folder or path.startswith(folder if folder.endswith("/") else f"{folder}/")


def upwards(folder: str) -> Iterator[str]:
    """Yield an absolute path, and those of the folders around it, the innermost first."""
    while True:
        yield folder
        parent = os.path.dirname(folder)
        if parent == folder:
            return
        folder = parent


def repository(platform_path: StrPath) -> str:
    """Return the top of the repository that holds the platform file; its folder outside a repository."""
    folder = os.path.dirname(os.path.realpath(platform_path))
    top = next((one for one in upwards(folder) if os.path.exists(f"{one}/.git")), folder)
    try:
        return os.path.relpath(top)
    except ValueError:
        return top
