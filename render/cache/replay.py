"""The arguments of a run in, the report of the same run before out, while all that it read and wrote stands as it did.

A file stands as it did when its size, times, inode and mode are those recorded; where these prove nothing, because the
file changed shortly before the run began, its content is read and its digest compared. The change time cannot be set by
people, so neither a restored modification time nor an edit of the same size goes unseen.

Nothing else of ours is imported when nothing has changed, and little of the standard library.
"""

from __future__ import annotations

import marshal
import os
import stat
import sys
import time
from _operator import attrgetter

from render import __version__
from render.cache import store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    Late = dict[str, tuple[tuple[int, ...] | None, bytes]]
    """Signature (None while it proves nothing) and digest of the files that a later run has read or written."""

FORMAT = 3
GRACE = 2_500_000_000
"""Nanoseconds before a run's start from which on a change time proves nothing.

Clocks of file systems tick coarsely (2 s on FAT), and those of servers are a little off.
"""
STDERR = 2
VERBS = ("build", "check")
_UNKEPT = ("--no-cache", "--force", "--only", "--tree", "--help", "-h")
"""Options whose runs look at more than is recorded, or at less."""
MOST_BYTES = 1 << 27
"""Longer files are not read to be compared; that of a tree's Flux Kustomizations has 330 bytes for each service."""
MOST_LATE = 256
"""Files and folders that are kept beside a record, so that it need not be written again when few have other times."""
EDITS = 8
"""Files of the catalog that may have changed for the rest to be taken from the record."""

DEFINITION, PLATFORM, CATALOG_FOLDER, OUTPUT, OUTPUT_FOLDER, PROGRAM = b"dpcots"
"""What an entry of a record is; folders are known by their listings, the program by its files' times alone."""

signature: Callable[[os.stat_result], tuple[int, ...]] = attrgetter(
    "st_mode", "st_ino", "st_size", "st_mtime_ns", "st_ctime_ns"
)


class Memory:
    """One run's place in the cache."""

    def __init__(self, arguments: Sequence[str], parent: str) -> None:
        self.started = time.time_ns()
        self.clock = time.monotonic_ns()
        self.verb = arguments[0]
        self.parent = parent
        colour = os.isatty(2) and not os.environ.get("NO_COLOR")
        told = (FORMAT, __version__, sys.version, tuple(sys.path), os.geteuid(), os.getcwd(), colour, *arguments[1:])
        if any(_is_of_one_verb(argument) for argument in arguments[1:]):
            told += (self.verb,)
        self.key = repr(told)
        name = store.digest(self.key.encode("utf-8", "surrogatepass")).hex()
        self.path = f"{parent}/{name}.run"
        self.late_path = f"{parent}/{name}.late"
        self.edit_path = f"{parent}/{name}.edit"
        self.base_path = f"{parent}/{name}.base"
        self.record: dict[str, Any] | None = None
        """The record of the run before, when all stands as it did but for a few files of the catalog."""
        self.edited: list[str] = []
        """These files."""
        self.late: dict[str, Any] = {}
        """What runs that planned a few files alone have said since: it takes the place of what the record says."""
        self.handle: int | None = None
        """The output root, locked: what was found there holds until this run ends."""

    def replay(self) -> int | None:
        """Print the report of the run before and return its exit code; None when it does not hold."""
        record, rest = store.load_all(self.path)
        if type(record) is not dict or record.get("key") != self.key:
            return None
        late: dict[str, Any] = {"token": record["token"], "entries": {}, "newer": {}}
        found = store.load(self.late_path)
        if type(found) is dict and found.get("token") == record["token"]:
            late = found
        standing = _Standing(record, rest, late["entries"], self.started)
        try:
            edited = standing.edited(self._lock if self.verb == "build" else None)
        except (OSError, ValueError):
            edited = None
        if edited is None or len(edited) > EDITS:
            self.release()
            return None
        if standing.is_renewed:
            store.save(self.path, record, store.packed(standing.chunks))
        if edited:
            self.record, self.late, self.edited = record, late, edited
            return None
        if standing.is_late_renewed:
            store.save(self.late_path, late)
        code, parts = (late.get("reports") or record["reports"])[self.verb]
        self.release()
        return _tell(code, parts)

    def _lock(self, root: str) -> bool:
        """Hold the lock that builds hold; False when another build is writing."""
        import fcntl

        self.handle = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(self.handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def release(self) -> None:
        """Give the lock back."""
        if self.handle is not None:
            os.close(self.handle)
            self.handle = None


def _is_of_one_verb(argument: str) -> bool:
    """Whether `build` and `check` may take an argument differently, so that neither tells what the other found."""
    return argument == "--verbose" or (argument[:1] == "-" != argument[1:2] and argument != "-q")


def memory_of(arguments: Sequence[str]) -> Memory | None:
    """Return a run's place in the cache; None for a run that has none."""
    if not arguments or arguments[0] not in VERBS:
        return None
    if any(argument.split("=", 1)[0] in _UNKEPT for argument in arguments):
        return None
    parent = store.folder()
    if parent is None:
        return None
    try:
        return Memory(arguments, parent)
    except OSError:
        # The working directory is gone.
        return None


def _tell(code: int, parts: Sequence[tuple[int, bytes]]) -> int:
    for handle, data in parts:
        view = memoryview(data)
        try:
            while view:
                written = os.write(handle, view)
                view = view[written:]
        except BrokenPipeError:
            # Nobody reads on; click takes that for a fault too.
            return 1
        except OSError as error:
            # The words are those of a run that reads all; on stderr nothing can be said of itself.
            told = f"error: cannot print what there is to say: {(error.strerror or '').lower()}\n"
            return 1 if handle == STDERR else _tell(1, [(STDERR, told.encode())])
    return code


class _Standing:
    """Compares a record with what stands there now."""

    def __init__(self, record: dict[str, Any], rest: memoryview, late: Late, started: int) -> None:
        self.record = record
        self.chunks: list[bytes | memoryview] = list(store.unpacked(rest))
        self.late = late
        self.is_renewed = self.is_late_renewed = False
        """Whether times were found that prove more than those recorded."""
        self.limit = started - GRACE
        self.found: list[str] = []

    def edited(self, lock: Callable[[str], bool] | None) -> list[str] | None:
        """Return the files of the catalog that differ; None when anything else does."""
        record = self.record
        if any(os.path.realpath(path) != real for path, real in record["real"]):
            return None
        if not all(stat.S_ISDIR(os.lstat(path).st_mode) for path in record["folders"]):
            return None
        if lock is not None and not lock(record["root"]):
            return None
        if any(os.path.lexists(path) for path in record["absent"]):
            return None
        if any(os.path.exists(path) is not there for path, there in record["exists"]):
            return None
        late, met = self.late, 0
        renewed: Late = {}
        again: dict[int, tuple[Any, ...]] = {}
        for index, chunk in enumerate(self.chunks):
            paths, known, digests, kinds = marshal.loads(chunk)
            now = list(map(signature, map(os.lstat, paths)))
            if now == known:
                continue
            for place, path in enumerate(paths):
                if now[place] == known[place] and path not in late:
                    continue
                found, now[place] = now[place], known[place]
                was, digest = known[place], digests[place * store.DIGEST_SIZE :][: store.DIGEST_SIZE]
                if path in late:
                    was, digest = late[path]
                    met += 1
                if found == was:
                    continue
                if not self._holds(path, found, digest, kinds[place]):
                    if kinds[place] != DEFINITION or len(self.found) > EDITS:
                        return None
                    self.found.append(path)
                elif found[4] >= self.limit:
                    # What was read may have been changed since its times were.
                    continue
                elif path in late:
                    late[path] = found, digest
                    self.is_late_renewed = True
                else:
                    now[place] = found
                    renewed[path] = found, digest
            again[index] = paths, now, digests, kinds
        if met != len(late):
            # One that was not met looks as it did before it was edited, times included.
            return None
        if renewed and len(late) + len(renewed) > MOST_LATE:
            self.is_renewed = True
            for index, entries in again.items():
                self.chunks[index] = marshal.dumps(entries)
        elif renewed:
            self.is_late_renewed = True
            late |= renewed
        return self.found

    def _holds(self, path: str, now: tuple[int, ...], digest: bytes, kind: int) -> bool:
        """Whether a file or folder with other times holds what it held."""
        if kind == PROGRAM:
            return False
        if kind in (CATALOG_FOLDER, OUTPUT_FOLDER):
            return stat.S_ISDIR(now[0]) and _listing(path, is_output=kind == OUTPUT_FOLDER) == digest
        return stat.S_ISREG(now[0]) and now[2] <= MOST_BYTES and store.digest(read(path)) == digest


def read(path: str) -> bytes:
    """Return the content of a file; raises OSError, also for a link."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        parts = []
        while part := os.read(handle, 1 << 20):
            parts.append(part)
        return b"".join(parts)
    finally:
        os.close(handle)


def _listing(path: str, *, is_output: bool) -> bytes:
    """Return the digest of what counts in a folder: all that stands in the tree, or what the catalog may hold."""
    found = []
    with os.scandir(path) as entries:
        for entry in entries:
            if is_output:
                found.append(letter(entry) + entry.name)
            elif not entry.name.startswith("."):
                if entry.is_symlink():
                    return b""
                if entry.is_dir():
                    found.append(f"d{entry.name}")
                elif entry.name.endswith((".yaml", ".yml")):
                    found.append(f"f{entry.name}")
    return store.listing(found)


def letter(entry: os.DirEntry[str]) -> str:
    """Return the letter for what an entry of the tree is: link, folder, file or something special."""
    if entry.is_symlink():
        return "l"
    return "d" if entry.is_dir() else "f" if entry.is_file() else "s"
