"""A build and its changes in, the folder brought to them: under a lock, each file at once, only what is ours."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Iterable, Iterator

from render.catalog import reason_of, shown_path
from render.diagnostics import Diagnostic, Location
from render.files import StrPath, below
from render.progress import pause

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from render.build import Build
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


def write(build: Build, changes: Changes, root: StrPath, step: Step | None = None) -> list[Diagnostic]:
    """Bring the tree to the build: content first, then kustomizations, then deletions; each file old or new.

    What a kustomization lists is there before it and goes after it, folders included: of those that are written the
    inner ones come first, of those that are deleted the outer ones. Content is written by as many processes as have
    planned it.

    `step` is told how many files are written.

    Returns what could not be written; the next build goes on from there. No file is synced by itself: one sync of the
    folder that changed last commits the journal, in which all changes before it stand. On file systems that write
    content later, a loss of power may leave new names over empty files; those hold nothing that could be lost, so the
    next build writes them again.
    """
    top = os.fspath(root)
    pending = sorted((*changes.new, *changes.changed), key=_turn)
    lists = next((index for index, path in enumerate(pending) if _is_list(path)), len(pending))
    parts = [pending[:lists]]
    if build.jobs > 1 and lists >= build.jobs * FEWEST:
        ends = [lists * (index + 1) // build.jobs for index in range(build.jobs)]
        parts = [pending[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    writer = _Writer(build, top, len(pending), step)
    helpers = _Helpers(writer, parts[1:])
    with helpers:
        fault = writer.write(parts[0])
    if fault is None:
        fault = helpers.faults[0] if helpers.faults else writer.write(pending[lists:])
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


class _Helpers:
    """Forked processes that write a part of the files each; none outlives the block."""

    def __init__(self, writer: _Writer, parts: list[list[str]]) -> None:
        self.writer = writer
        self.parts = parts
        self.going: list[tuple[int, int, str]] = []
        """Of each its number, where it tells what it could not write, and its first file."""
        self.faults: list[Fault] = []
        """What they could not write, once the block is left."""

    def __enter__(self) -> _Helpers:
        try:
            for part in self.parts:
                heard, told = os.pipe()
                parent = os.getpid()
                pid = os.fork()
                if not pid:
                    os.close(heard)
                    _help(self.writer, part, told, parent)
                os.close(told)
                self.going.append((pid, heard, part[0]))
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        try:
            while self.going and error is None:
                pid, heard, first = self.going[0]
                with os.fdopen(heard, "rb", closefd=False) as stream:
                    data = stream.read()
                _, status = os.waitpid(pid, 0)
                del self.going[0]
                os.close(heard)
                fault = _outcome(first, data, os.waitstatus_to_exitcode(status))
                if fault is not None:
                    self.faults.append(fault)
        finally:
            self._stop()

    def _stop(self) -> None:
        """Let all end between two files."""
        if not self.going:
            return
        import signal

        for pid, heard, _ in self.going:
            # An interrupt may come between the end of one and the note of it.
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(pid, signal.SIGINT)
                os.waitpid(pid, 0)
            os.close(heard)
        self.going = []


def _help(writer: _Writer, part: list[str], told: int, parent: int) -> NoReturn:
    """Write a part, tell of what could not be written, and end this process."""
    code = 1
    try:
        writer.step, writer.parent = None, parent
        fault = writer.write(part)
        if fault is not None:
            os.write(told, "\0".join(fault).encode("utf-8", "surrogateescape"))
        code = 0
    except KeyboardInterrupt:
        code = 0
    except BaseException:
        import traceback

        with contextlib.suppress(OSError):
            os.write(2, traceback.format_exc().encode("utf-8", "replace"))
    finally:
        os._exit(code)


def _outcome(first: str, data: bytes, code: int) -> Fault | None:
    """Return what a process could not write, from what it told and how it ended."""
    if code:
        import signal

        told = f"signal {-code} ({signal.strsignal(-code)})" if code < 0 else f"exit code {code}"
        return first, f"a process that wrote it and others has ended early, by {told}"
    if not data:
        return None
    path, _, reason = data.decode("utf-8", "surrogateescape").partition("\0")
    return path, reason


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
