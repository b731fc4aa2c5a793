"""A build and its changes in, the folder brought to them: under a lock, each file at once, only what is ours."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from render.catalog import reason_of, shown_path
from render.diagnostics import Diagnostic, Location

if TYPE_CHECKING:
    from render.build import Build
    from render.progress import Step
    from render.tree import Changes

_SUFFIX = ".render-tmp"
"""Ends the names of temporary files: not .yaml or .yml, since the bot reads hidden files too."""


def check_root(root: Path) -> list[Diagnostic]:
    """Return why `root` cannot be a folder: something else is there, or on the way to it."""
    top = os.path.abspath(root)
    while not os.path.lexists(top):
        top = os.path.dirname(top)
    if os.path.isdir(top):
        return []
    is_root = os.path.abspath(root) == top
    told = "the output root is not a folder" if is_root else "the output root cannot be made: this is not a folder"
    hint = "name another folder with `--out`, or move it away"
    return [Diagnostic(Location(shown_path(Path(top))), "R508", told, hint=hint)]


@contextlib.contextmanager
def lock(root: Path) -> Iterator[list[Diagnostic]]:
    """Hold the tree's lock, so that two builds cannot interleave; the second waits. The lock is no file in the tree.

    Yields why it is not held: the root can then not be made or opened, and nothing may be written. A root that was made
    for the lock and stays empty is removed again.
    """
    faults = check_root(root)
    if faults:
        yield faults
        return
    missing = _missing(root)
    try:
        handle = _open(root)
    except OSError as error:
        told = f"cannot make or lock the output root: {reason_of(error)}"
        hint = "set the permissions, or name another folder"
        faults = [Diagnostic(Location(shown_path(root)), "R508", told, hint=hint)]
    if faults:
        yield faults
        return
    try:
        yield []
    finally:
        os.close(handle)
        for folder in missing:
            with contextlib.suppress(OSError):
                os.rmdir(folder)


def _missing(root: Path) -> list[str]:
    """Return the root and the folders above it that do not exist, the innermost first."""
    found = []
    folder = os.path.abspath(root)
    while not os.path.exists(folder):
        found.append(folder)
        folder = os.path.dirname(folder)
    return found


def _open(root: Path) -> int:
    os.makedirs(root, exist_ok=True)
    handle = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
    except BaseException:
        os.close(handle)
        raise
    return handle


def write(build: Build, changes: Changes, root: Path, step: Step | None = None) -> list[Diagnostic]:
    """Bring the tree to the build: content first, then kustomizations, then deletions; each file old or new.

    What a kustomization lists is there before it and goes after it, folders included: of those that are written the
    inner ones come first, of those that are deleted the outer ones.

    `step` is told how many files are written.

    Returns what could not be written; the next build goes on from there. No file is synced by itself: one sync of the
    folder that changed last commits the journal, in which all changes before it stand. On file systems that write
    content later, a loss of power may leave new names over empty files; those hold nothing that could be lost, so the
    next build writes them again.
    """
    top = os.fspath(root)
    pending = sorted((*changes.new, *changes.changed), key=_turn)
    made: set[str] = set()
    current = last = ""
    try:
        for index, path in enumerate(pending):
            if step is not None:
                step(index, len(pending))
            current = path
            folder, _, name = path.rpartition("/")
            last = f"{top}/{folder}"
            if folder not in made:
                os.makedirs(last, exist_ok=True)
                made.add(folder)
            replace(last, name, build.files.data(path))
        for path in (*sorted(changes.stale, key=_turn, reverse=True), *changes.leftovers):
            current = path
            with contextlib.suppress(FileNotFoundError):
                os.unlink(f"{top}/{path}")
            last = f"{top}/{_remove_empty(top, path.rpartition('/')[0])}"
        if last:
            _sync(last)
    except OSError as error:
        return [
            Diagnostic(
                Location(shown_path(root / current)),
                "R508",
                f"cannot write the file: {reason_of(error)}",
                cause="the files before it are written, those after it are not; none is half-written",
                hint="make room or set the permissions, then build again",
            )
        ]
    return []


def _turn(path: str) -> tuple[bool, int, str]:
    """Return what orders the files that are written."""
    is_list = path.endswith("/kustomization.yaml")
    return is_list, -path.count("/") if is_list else 0, path


def is_temporary(path: str) -> bool:
    """Whether a file is named as those of a run that was writing; in nobody's use once the lock is held."""
    name = path.rpartition("/")[2]
    return name.startswith(".") and name.endswith(_SUFFIX)


def replace(folder: str, name: str, data: bytes, mode: int | None = None) -> None:
    """Write a file by a temporary one beside it. What a killed run left under that name is in nobody's use.

    `mode` is its permissions; without them it has those of a new file. Raises OSError, and leaves the file as it was.
    """
    temporary = f"{folder}/.{name}{_SUFFIX}"
    try:
        handle = _create(temporary)
        try:
            if mode is not None:
                os.fchmod(handle, mode)
            view = memoryview(data)
            while view:
                written = os.write(handle, view)
                view = view[written:]
        finally:
            os.close(handle)
        os.replace(temporary, f"{folder}/{name}")
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _create(path: str) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    try:
        return os.open(path, flags, 0o666)
    except FileExistsError:
        os.unlink(path)
        return os.open(path, flags, 0o666)


def _remove_empty(top: str, folder: str) -> str:
    """Remove a folder below the root and those above it while they are empty; return the one that stays."""
    while folder:
        try:
            os.rmdir(f"{top}/{folder}")
        except OSError:
            break
        folder = folder.rpartition("/")[0]
    return folder


def _sync(folder: str) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        # Some network file systems sync no folders.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EROFS):
            raise
    finally:
        os.close(handle)
