"""A build and its changes in, the folder brought to them: under a lock, each file at once, only what is ours."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Iterable, Iterator
from itertools import groupby

from render.catalog import reason_of, shown_path
from render.diagnostics import Diagnostic, Location
from render.files import StrPath, below
from render.progress import pause

TYPE_CHECKING = False
if TYPE_CHECKING:
    from render.build import Build
    from render.crew import Crew
    from render.progress import Step
    from render.tree import Changes

Fault = tuple[str, str]
"""The path of a file that cannot be written, and why."""
FEWEST = 200
"""Files for which another process is worth its start."""
_SUFFIX = ".render-tmp"
"""Ends the names of temporary files: not .yaml or .yml, since the bot reads hidden files too."""


def check_root(root: StrPath) -> list[Diagnostic]:
    """Return why `root` cannot be a folder: something else is there, or on the way to it."""
    top = os.path.abspath(root)
    while not os.path.lexists(top):
        top = os.path.dirname(top)
    if os.path.isdir(top):
        return []
    is_root = os.path.abspath(root) == top
    told = "the output root is not a folder" if is_root else "the output root cannot be made: this is not a folder"
    hint = "name another folder with `--out`, or move it away"
    return [Diagnostic(Location(shown_path(top)), "R508", told, hint=hint)]


@contextlib.contextmanager
def lock(root: StrPath) -> Iterator[list[Diagnostic]]:
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


def _missing(root: StrPath) -> list[str]:
    """Return the root and the folders above it that do not exist, the innermost first."""
    found = []
    folder = os.path.abspath(root)
    while not os.path.exists(folder):
        found.append(folder)
        folder = os.path.dirname(folder)
    return found


def _open(root: StrPath) -> int:
    os.makedirs(root, exist_ok=True)
    handle = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
    except BaseException:
        os.close(handle)
        raise
    return handle


def write(build: Build, changes: Changes, root: StrPath, crew: Crew, step: Step | None = None) -> list[Diagnostic]:
    """Bring the tree to the build: content first, then kustomizations, then deletions; each file old or new.

    What a kustomization lists is there before it and goes after it, folders included: of those that are written the
    inner ones come first, of those that are deleted the outer ones. Where files are many, all of the crew write.

    `step` is told how many files are written.

    Returns what could not be written; the next build goes on from there. No file is synced by itself: one sync of the
    folder that changed last commits the journal, in which all changes before it stand. On file systems that write
    content later, a loss of power may leave new names over empty files; those hold nothing that could be lost, so the
    next build writes them again.
    """
    top = os.fspath(root)
    pending = sorted((*changes.new, *changes.changed), key=_turn)
    writer = _Writer(build, top, len(pending), step)
    groups = [_Group(writer, list(together), crew) for _, together in groupby(pending, lambda path: _turn(path)[:2])]
    fault = next((fault for group in groups if (fault := group.write()) is not None), None)
    if fault is None:
        last = f"{top}/{pending[-1].rpartition('/')[0]}" if pending else ""
        fault = _delete(top, (*sorted(changes.stale, key=_turn, reverse=True), *changes.leftovers), last)
    if fault is None:
        return []
    path, reason = fault
    return [
        Diagnostic(
            Location(shown_path(below(top, path))),
            "R508",
            f"cannot write the file: {reason}",
            cause="some of the others are written, some are not; none is half-written",
            hint="make room or set the permissions, then build again",
        )
    ]


class _Writer:
    """Writes files of a build, one after another."""

    def __init__(self, build: Build, top: str, total: int, step: Step | None) -> None:
        self.build = build
        self.top = top
        self.total = total
        self.step = step
        self.made: set[str] = set()
        self.done = 0
        self.parent = 0
        """The process for which it writes, and without which it ends."""

    def write(self, paths: list[str]) -> Fault | None:
        """Write some files, until one cannot be written."""
        for path in paths:
            pause()
            if self.parent and os.getppid() != self.parent:
                break
            if self.step is not None:
                self.step(self.done, self.total)
            self.done += 1
            folder, _, name = path.rpartition("/")
            try:
                if folder not in self.made:
                    os.makedirs(f"{self.top}/{folder}", exist_ok=True)
                    self.made.add(folder)
                replace(f"{self.top}/{folder}", name, self.build.files.data(path))
            except OSError as error:
                return path, reason_of(error)
        return None


class _Group:
    """Files that may stand there before each other, of which each process writes a part."""

    def __init__(self, writer: _Writer, paths: list[str], crew: Crew) -> None:
        self.writer = writer
        self.crew = crew
        jobs = crew.jobs if len(paths) >= crew.jobs * FEWEST else 1
        ends = [len(paths) * (index + 1) // jobs for index in range(jobs)]
        self.parts = [paths[start:end] for start, end in zip([0, *ends], ends, strict=False)]
        self.task = crew.add(self._write_part) if jobs > 1 else None

    def write(self) -> Fault | None:
        """Write all of them, until one cannot be written."""
        if self.task is None:
            return self.writer.write(self.parts[0])
        self.crew.start(self.task)
        fault = self.writer.write(self.parts[0])
        faults = [fault] if fault is not None else []
        for result, part in zip(self.crew.results(), self.parts[1:], strict=True):
            if result.ended:
                faults.append((part[0], f"a process that wrote it and others has ended early, by {result.ended}"))
            elif not result.is_made:
                faults.append((part[0], "a process that wrote it and others could not tell whether it is written"))
            elif result.data:
                path, _, reason = result.data.decode("utf-8", "surrogateescape").partition("\0")
                faults.append((path, reason))
        return faults[0] if faults else None

    def _write_part(self, which: int) -> Iterator[bytes]:
        """Write a part in another process, and yield what could not be written."""
        self.writer.step = None
        self.writer.parent = self.writer.parent or os.getppid()
        fault = self.writer.write(self.parts[which])
        if fault is not None:
            yield "\0".join(fault).encode("utf-8", "surrogateescape")


def _delete(top: str, paths: Iterable[str], last: str) -> Fault | None:
    """Delete files and the folders that are empty then, and sync the folder that changed last."""
    current = ""
    try:
        for path in paths:
            pause()
            current = path
            with contextlib.suppress(FileNotFoundError):
                os.unlink(f"{top}/{path}")
            last = f"{top}/{_remove_empty(top, path.rpartition('/')[0])}"
        if last:
            _sync(last)
    except OSError as error:
        return current or last.removeprefix(f"{top}/"), reason_of(error)
    return None


def _is_list(path: str) -> bool:
    return path.endswith("/kustomization.yaml")


def _turn(path: str) -> tuple[bool, int, str]:
    """Return what orders the files that are written."""
    is_list = _is_list(path)
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
