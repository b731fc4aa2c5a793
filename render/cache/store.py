"""A key and some values in, a file of the cache out; and that file in, the values out, or nothing when in doubt.

A record is believed only if its folder and file belong to this user alone to write, and its digest fits. This module is
imported when nothing has changed, so it imports what a bare interpreter has loaded.
"""

from __future__ import annotations

import marshal
import os
import stat
from _blake2 import blake2b

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

MAGIC = b"render cache 3\n"
DIGEST_SIZE = 16
SUFFIXES = (".run", ".late", ".edit", ".base")
"""What the names of our files end with, after a key in hexadecimal digits."""
MOST_FILES = 64
"""Files that the folder may hold; when there are more, those that were used least recently go."""
_LENGTH = 8
_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH


def folder() -> str | None:
    """Return the cache's folder; None when there is to be none, or no place for it is known."""
    given = os.environ.get("RENDER_CACHE_DIR")
    if given is not None:
        return given or None
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not base.startswith("/"):
        home = os.environ.get("HOME", "")
        if not home.startswith("/"):
            return None
        base = f"{home}/.cache"
    return f"{base}/render"


def digest(*parts: bytes | memoryview) -> bytes:
    """Return the digest of some bytes, one after another."""
    made = blake2b(digest_size=DIGEST_SIZE)
    for part in parts:
        made.update(part)
    return made.digest()


def load(path: str) -> Any:
    """Return the value of a record; None for one that is missing, damaged, or that somebody else could have written."""
    return load_all(path)[0]


def load_all(path: str) -> tuple[Any, memoryview]:
    """Return the value of a record and the bytes that follow it; None and nothing for one that is not believed."""
    nothing = None, memoryview(b"")
    try:
        handle, size = _open(path)
        try:
            data = _read(handle, size)
        finally:
            os.close(handle)
    except OSError:
        return nothing
    start = len(MAGIC) + DIGEST_SIZE
    body = memoryview(data)[start:]
    if data[: len(MAGIC)] != MAGIC or digest(body) != data[len(MAGIC) : start]:
        return nothing
    try:
        size = int.from_bytes(body[:_LENGTH], "little")
        return marshal.loads(body[_LENGTH:][:size]), body[_LENGTH + size :]
    except (EOFError, ValueError, TypeError):
        return nothing


def part(path: str, start: int, length: int, known: bytes) -> bytes | None:
    """Return some bytes of a file that `save_parts` has kept; None if they are not those of a digest."""
    try:
        handle, _ = _open(path)
        try:
            data = os.pread(handle, length, start)
        finally:
            os.close(handle)
    except OSError:
        return None
    return data if digest(data) == known else None


def _open(path: str) -> tuple[int, int]:
    """Open a file that only this user can have written, and return its size too; raises OSError for any other."""
    above = os.lstat(os.path.dirname(path))
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        found = os.fstat(handle)
        if stat.S_ISREG(found.st_mode) and stat.S_ISDIR(above.st_mode) and _is_ours(found) and _is_ours(above):
            return handle, found.st_size
    except BaseException:
        os.close(handle)
        raise
    os.close(handle)
    raise OSError("others may have written it")


def save(path: str, value: Any, more: Iterable[bytes | memoryview] = ()) -> bool:
    """Keep a value that `marshal` takes, and bytes after it, in one step; a cache that cannot be written is none."""
    body = marshal.dumps(value)

    def fill(handle: int) -> None:
        made = blake2b(digest_size=DIGEST_SIZE)
        _write(handle, MAGIC + bytes(DIGEST_SIZE))
        for parts in ((len(body).to_bytes(_LENGTH, "little"), body), more):
            for one in parts:
                made.update(one)
                _write(handle, one)
        os.pwrite(handle, made.digest(), len(MAGIC))

    return _save(path, fill)


def save_parts(path: str, parts: Iterable[bytes | memoryview]) -> bool:
    """Keep some bytes, one after another, whose digests are kept elsewhere."""

    def fill(handle: int) -> None:
        for one in parts:
            _write(handle, one)

    return _save(path, fill)


def _save(path: str, fill: Callable[[int], None]) -> bool:
    parent = os.path.dirname(path)
    temporary = f"{path}.{os.getpid()}"
    try:
        _make(parent)
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fill(handle)
        finally:
            os.close(handle)
        os.replace(temporary, path)
    except OSError:
        _remove(temporary)
        return False
    except BaseException:
        _remove(temporary)
        raise
    return True


def packed(chunks: Iterable[bytes | memoryview]) -> Iterator[bytes | memoryview]:
    """Yield what `unpacked` splits into these chunks again."""
    for chunk in chunks:
        yield len(chunk).to_bytes(_LENGTH, "little")
        yield chunk


def unpacked(data: memoryview) -> Iterator[memoryview]:
    """Yield the chunks of the bytes that follow a value."""
    start = 0
    while start < len(data):
        end = start + _LENGTH + int.from_bytes(data[start : start + _LENGTH], "little")
        yield data[start + _LENGTH : end]
        start = end


def forget(path: str) -> None:
    """Remove a record."""
    _remove(path)


def tidy(parent: str, most: int = MOST_FILES) -> None:
    """Remove our files that were written least recently, so that at most `most` stay."""
    try:
        with os.scandir(parent) as entries:
            ours = [entry for entry in entries if entry.name[2 * DIGEST_SIZE :].startswith(SUFFIXES)]
            found = sorted((entry.stat(follow_symlinks=False).st_mtime_ns, entry.path) for entry in ours)
    except OSError:
        return
    for _, path in found[: max(0, len(found) - most)]:
        _remove(path)


def listing(entries: Iterable[str]) -> bytes:
    """Return the digest of a folder's entries: names, each after a letter for what it is."""
    return digest("/".join(sorted(entries)).encode("utf-8", "surrogatepass"))


def _is_ours(found: os.stat_result) -> bool:
    return found.st_uid == os.geteuid() and not found.st_mode & _OTHERS_MAY_WRITE


def _read(handle: int, size: int) -> bytes:
    data = os.read(handle, size + 1)
    if len(data) == size:
        return data
    parts = [data]
    while part := os.read(handle, 1 << 20):
        parts.append(part)
    return b"".join(parts)


def _write(handle: int, data: bytes | memoryview) -> None:
    view = memoryview(data)
    while view:
        written = os.write(handle, view)
        view = view[written:]


def _make(parent: str) -> None:
    if os.path.isdir(parent):
        return
    above = os.path.dirname(parent)
    if above and not os.path.isdir(above):
        os.makedirs(above, 0o700, exist_ok=True)
    try:
        os.mkdir(parent, 0o700)
    except FileExistsError:
        return


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        return
