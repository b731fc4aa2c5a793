"""A run that found, or made, the tree as the catalog says in, the record that lets the same run be told again out."""

from __future__ import annotations

import marshal
import os
import stat
import sys
import time
from collections.abc import Iterable, Iterator
from itertools import chain, islice

from render.cache import replay, store
from render.crew import UnmadeError
from render.digests import digest_of
from render.files import Seen, below, is_inside, upwards
from render.templates import shipped_folder
from render.tree import OWNED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from render.build import Build
    from render.cache.edits import Edited
    from render.cache.replay import Memory
    from render.crew import Crew
    from render.diagnostics import Diagnostic
    from render.tree import Changes

CHUNK = 1024
"""Entries of a record that are in memory at one time."""
Entry = tuple[str, int, bytes]
"""Path, kind, and digest of what the run found there, or left there."""
Parts = list[tuple[int, bytes]]
"""What is printed: file descriptor and text, in turn."""
Index = dict[str, tuple[int, int, bytes]]
"""Where the files of the catalog lie in the record's base, with their lengths and digests."""
FIRST_SHARE = 0.6
"""Share of an equal part of the tree's files at which the process looks that also keeps the inputs."""
FEWEST = 200
"""Files for which another process is worth waking."""
_MODULES = (".py", ".json", ".j2", ".so", ".bin")


class Look:
    """What other processes look at for a record: most files of a large tree."""

    def __init__(self, memory: Memory, made: Build, root: str, crew: Crew) -> None:
        self.made = made
        self.root = root
        self.crew = crew
        self.limit = memory.started - replay.GRACE
        """From here on a change time proves nothing."""
        paths = list(made.files)
        jobs = crew.jobs if len(paths) >= crew.jobs * FEWEST else 1
        first = int(len(paths) / jobs * FIRST_SHARE) if jobs > 1 else len(paths)
        each = -(-(len(paths) - first) // max(jobs - 1, 1))
        self.shares = [paths[:first], *(paths[first:][each * which :][:each] for which in range(jobs - 1))]
        self.task = crew.add(self._look) if jobs > 1 else None

    def files(self, which: int = 0) -> Iterator[Entry]:
        """Yield the files of one share."""
        for path in self.shares[which]:
            yield f"{self.root}/{path}", replay.OUTPUT, digest_of(self.made.files.data(path))

    def start(self) -> None:
        """Let the others begin, after the tree is written."""
        if self.task is not None:
            self.crew.start(self.task)

    def results(self) -> Iterator[bytes]:
        """Yield what they have found; raises UnmadeError when one could not look."""
        for result in self.crew.results() if self.task is not None else ():
            if result.ended or not result.is_made:
                raise UnmadeError
            yield result.data

    def _look(self, which: int) -> Iterator[bytes | memoryview]:
        return store.packed(_chunks(self.files(which), self.limit))


def keep(
    memory: Memory,
    seen: Seen,
    made: Build,
    changes: Changes,
    places: tuple[str, str, str],
    reports: dict[str, tuple[int, Parts]],
    look: Look,
) -> bool:
    """Keep the record of a run; False when there is something in it that could not be known again.

    `places` are catalog, platform file and output root as the run was told them, `reports` what each command says while
    nothing changes. After the run the tree is what `made` says.
    """
    drift = (time.time_ns() - memory.started) - (time.monotonic_ns() - memory.clock)
    if not seen.is_plain or abs(drift) > replay.GRACE // 2:
        return False
    token = os.urandom(store.DIGEST_SIZE)
    try:
        look.start()
        tree = _Tree(places[2], made, changes)
        head = {**_head(memory, made, places, tree), "token": token, "reports": reports}
        store.forget(memory.late_path)
        store.save_parts(memory.base_path, map(seen.contents.data, seen.files))
        store.save(memory.edit_path, _value(made, token, _index(seen)))
        own = _chunks(chain(_inputs(seen, places[1]), look.files(), tree.rest()), look.limit)
        kept = store.save(memory.path, head, chain(store.packed(own), look.results()))
    except (OSError, UnmadeError):
        return False
    store.tidy(memory.parent)
    return kept


def renew(memory: Memory, edited: Edited, root: str, reports: dict[str, tuple[int, Parts]]) -> bool:
    """Keep beside a record what a run says that has planned the edited files alone; the tree is what that run says."""
    assert memory.record is not None
    made = edited.made
    digests = {path: digest_of(data) for path, data in edited.contents.items()}
    digests |= {f"{root}/{path}": digest_of(made.files.data(path)) for path in edited.changes.changed}
    late = memory.late
    value = {
        "token": memory.record["token"],
        "entries": {**late["entries"], **{path: (None, digest) for path, digest in digests.items()}},
        "newer": {**late["newer"], **edited.contents},
        "diagnostics": _pickled(made.diagnostics),
        "kept": made.kept,
        "reports": reports,
    }
    return store.save(memory.late_path, value)


def _index(seen: Seen) -> Index:
    index, end = {}, 0
    for path, digest in seen.files.items():
        length = seen.contents.size(path)
        index[path] = (end, length, digest)
        end += length
    return index


def _value(made: Build, token: bytes, index: Index) -> dict[str, object]:
    """Return what a run that plans edited files alone has to know of the others."""
    return {
        "token": token,
        "names": made.paths,
        "diagnostics": _pickled(made.diagnostics),
        "kept": made.kept,
        "services": made.services,
        "sources": made.sources,
        "files": len(made.files),
        "index": index,
    }


def _pickled(diagnostics: list[Diagnostic]) -> bytes:
    if not diagnostics:
        # As most runs have none, and the import takes longer than all else here.
        return b""
    import pickle

    return pickle.dumps(diagnostics, pickle.HIGHEST_PROTOCOL)


def _head(memory: Memory, made: Build, places: tuple[str, str, str], tree: _Tree) -> dict[str, object]:
    exists = [(f"{tree.root}/{path}", True) for path, _ in made.foreign]
    return {
        "key": memory.key,
        "root": tree.root,
        "real": [(path, os.path.realpath(path)) for path in places],
        "folders": tree.above,
        "absent": tree.absent,
        "exists": exists + _repository(places[1]),
    }


def _chunks(entries: Iterable[Entry], limit: int) -> Iterator[bytes]:
    """Yield some entries at a time with what is known of them; from `limit` on a change time proves nothing."""
    left = iter(entries)
    while part := list(islice(left, CHUNK)):
        paths = [path for path, _, _ in part]
        now: list[tuple[int, ...] | None] = list(map(replay.signature, map(os.lstat, paths)))
        digests = []
        for index, (path, kind, digest) in enumerate(part):
            found = now[index]
            assert found is not None
            if found[4] >= limit:
                if not digest:
                    raise UnmadeError
                now[index] = None
            elif not digest and kind == replay.OUTPUT:
                digest = digest_of(replay.read(path))  # noqa: PLW2901 - it was not known before
            digests.append(digest or bytes(store.DIGEST_SIZE))
        yield marshal.dumps((paths, now, b"".join(digests), bytes(kind for _, kind, _ in part)))


def _inputs(seen: Seen, platform: str) -> Iterator[Entry]:
    for path in _program():
        yield path, replay.PROGRAM, b""
    for path, digest in seen.files.items():
        if path == platform:
            yield os.path.realpath(path), replay.PLATFORM, digest
        else:
            yield path, replay.DEFINITION, digest
    for path, names in seen.folders.items():
        yield path, replay.CATALOG_FOLDER, store.listing(names)


def _program() -> Iterator[str]:
    """Yield what decides how a catalog is rendered: our modules and templates, and the folders of other packages."""
    ours = os.path.dirname(os.path.dirname(__file__))
    for top in (ours, shipped_folder()):
        for folder, _, names in os.walk(top):
            yield from (f"{folder}/{name}" for name in names if name.endswith(_MODULES))
    around = os.path.dirname(ours)
    # The code of all compiled modules.
    yield from (f"{around}/{name}" for name in os.listdir(around) if name.startswith("render__mypyc."))
    for entry in sys.path:
        if entry.endswith("-packages") and os.path.isdir(entry):
            yield entry


def _repository(platform: str) -> list[tuple[str, bool]]:
    """Return which of the folders around the platform file are tops of repositories, up to the first that is."""
    found = []
    for one in upwards(os.path.dirname(os.path.realpath(platform))):
        path = below(one, ".git")
        found.append((path, os.path.exists(path)))
        if found[-1][1]:
            break
    return found


class _Tree:
    """The output tree as the run leaves it."""

    def __init__(self, root: str, made: Build, changes: Changes) -> None:
        walk = changes.walk
        if walk is None:
            raise UnmadeError
        self.root = root
        self.made = made
        self.others = sorted(walk.files.difference(made.files))
        """People's files."""
        self.odd = walk.odd
        if (
            changes.stale
            or changes.leftovers
            or any(kind != "file" or "/" not in path for path, kind in walk.odd.items())
            or not stat.S_ISDIR(os.stat(root).st_mode)
        ):
            raise UnmadeError
        if not changes.is_clean and (self.others or walk.odd or changes.diagnostics or _keeps(changes)):
            # What the next run will say of these could differ from what this one says.
            raise UnmadeError
        self.folders = {folder: bytearray() for folder in walk.folders}
        """The entries of each folder, each after a letter for what it is and with `/` behind it."""
        for path in (*walk.files, *walk.odd, *changes.new):
            self._enter(path, "f")
        for path in walk.folders:
            self._enter(path, "d")
        self.above: list[str] = []
        """Folders that must be folders, whatever else they hold."""
        self.absent: list[str] = []
        self._look_above()

    def _enter(self, path: str, letter: str) -> None:
        folder, _, name = path.rpartition("/")
        listed = self.folders.get(folder)
        if listed is None:
            if path in OWNED or not any(is_inside(path, one) for one in OWNED):
                return
            listed = self.folders[folder] = bytearray()
            self._enter(folder, "d")
        listed += f"{letter}{name}/".encode("utf-8", "surrogateescape")

    def _look_above(self) -> None:
        for folder in OWNED:
            parts = folder.split("/")
            for index in range(len(parts)):
                path = "/".join(parts[: index + 1])
                full = f"{self.root}/{path}"
                if folder in self.folders:
                    if path != folder:
                        self.above.append(full)
                elif not os.path.lexists(full):
                    self.absent.append(full)
                    break
                else:
                    self.above.append(full)

    def rest(self) -> Iterator[Entry]:
        """Yield the other files, without a digest, which is taken when it is known to be the one, and folders."""
        for path in (*self.others, *self.odd):
            yield f"{self.root}/{path}", replay.OUTPUT, b""
        for folder, names in self.folders.items():
            entries = names.decode("utf-8", "surrogateescape").split("/")[:-1]
            yield f"{self.root}/{folder}", replay.OUTPUT_FOLDER, store.listing(entries)


def _keeps(changes: Changes) -> bool:
    """Whether a value of the bot was kept in a service that is written."""
    if not changes.kept:
        return False
    services = {path.split("/")[1] for path in (*changes.new, *changes.changed) if path.count("/") == 2}
    return any(f"{policy}-".startswith(f"{service}-") for policy, _, _ in changes.kept for service in services)
