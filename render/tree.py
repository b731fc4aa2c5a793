"""A build and a folder in, what differs out; and the folder brought to it: atomically, only what is ours."""

from __future__ import annotations

import contextlib
import difflib
import fcntl
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from render.build import HEADER, Build, digest_of
from render.catalog import shown_path
from render.diagnostics import Diagnostic, Location
from render.guard import carries_table, reinstalls, service_of, table_upgrades
from render.redact import redact

OWNED = ("apps", "configs", "platform/image-automation", "platform/alerts", "flux")
"""Folders below the root that hold generated files; people's own files beside them are left alone."""


@dataclass(slots=True)
class Changes:
    """What a build would do to a tree."""

    new: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    stale: list[str] = field(default_factory=list)
    """Generated files that are no longer produced."""
    unchanged: int = 0
    committed: dict[str, str] = field(default_factory=dict)
    """Present text of the changed and stale files."""
    diagnostics: list[Diagnostic] = field(default_factory=list)
    upgrades: int = 0
    """Releases that a changed override table upgrades."""

    @property
    def uninstalled(self) -> list[str]:
        """Services whose release vanishes."""
        return [
            service_of(path) for path in self.stale if path.startswith("apps/") and path.endswith("/helmrelease.yaml")
        ]

    @property
    def is_clean(self) -> bool:
        """Whether the tree is what the build says."""
        return not (self.new or self.changed or self.stale)


def compare(
    build: Build, root: Path, *, force: frozenset[str] = frozenset(), reinstall: frozenset[str] = frozenset()
) -> Changes:
    """Compare a build with the tree at `root`.

    `force` names files (below the root) to take over, `reinstall` services whose release may be installed anew.
    """
    made = Changes()
    made.diagnostics += _check_root(root)
    if made.diagnostics:
        return made
    for path, place in build.foreign:
        if not (root / path).exists():
            made.diagnostics.append(
                Diagnostic(
                    place,
                    "R507",
                    f"the file `{path}` does not exist in the output tree",
                    cause="the service's kustomization.yaml names it, and the build of the whole tree would fail",
                    hint=f"put it at `{shown_path(root / path)}`, or remove the entry",
                )
            )
    if build.failed:
        return made
    links = _Links(root)
    present = set(_walk(root, made))
    for path, text in build.files.items():
        _compare_file(root, path, text, made, links, force)
    foreign = {path for path, _ in build.foreign}
    for path in sorted(present - build.files.keys()):
        _compare_stale(root, path, made, links, force, foreign)
    for listed in (made.new, made.changed, made.stale):
        listed.sort()
    _judge(build, root, made, reinstall)
    return made


def _judge(build: Build, root: Path, made: Changes, reinstall: frozenset[str]) -> None:
    """Add what the changes mean for running releases."""
    made.upgrades = table_upgrades(made.committed, build.files, made.changed)
    for path, fault in reinstalls(made.committed, build.files, made.changed, reinstall):
        made.diagnostics.append(replace(fault, location=Location(shown_path(root / path))))
    platform = build.platform
    if platform is None or platform.platform.registries.image_overrides is not None:
        return
    carrying = [path for path in made.changed if carries_table(made.committed[path])]
    if carrying:
        made.diagnostics.append(
            platform.source.fault(
                "R509",
                platform.root.get("registries"),
                "the tree carries an override table, and the platform file has none",
                cause=f"every release would lose it, such as `{carrying[0]}`; absent is not empty",
                hint="give `registries.imageOverrides`, or say `imageOverrides: []` if there is to be none",
            )
        )


def _check_root(root: Path) -> list[Diagnostic]:
    if root.exists() and not root.is_dir():
        hint = "name a folder with `--out`"
        return [Diagnostic(Location(shown_path(root)), "R508", "the output root is a file", hint=hint)]
    return []


class _Links:
    """Finds symbolic links on the way from the root to a file; each folder is looked at once."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.seen: dict[str, bool] = {"": False}

    def leads_away(self, path: str) -> bool:
        """Whether the file, or a folder above it, is a symbolic link."""
        return self._is_link(path) or self._folder(path.rpartition("/")[0])

    def _folder(self, folder: str) -> bool:
        if folder not in self.seen:
            self.seen[folder] = self._is_link(folder) or self._folder(folder.rpartition("/")[0])
        return self.seen[folder]

    def _is_link(self, path: str) -> bool:
        try:
            return stat.S_ISLNK(os.lstat(self.root / path).st_mode)
        except OSError:
            return False


def _walk(root: Path, made: Changes) -> Iterator[str]:
    """Yield the YAML files in the owned folders, as paths below the root; links are not followed."""
    stack = [folder for folder in OWNED if (root / folder).is_dir() and not (root / folder).is_symlink()]
    while stack:
        folder = stack.pop()
        try:
            entries = list(os.scandir(root / folder))
        except OSError as error:
            made.diagnostics.append(_unreadable(root / folder, error))
            continue
        for entry in entries:
            path = f"{folder}/{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                stack.append(path)
            elif entry.name.endswith((".yaml", ".yml")) and not entry.is_symlink():
                yield path


def _unreadable(path: Path, error: OSError) -> Diagnostic:
    reason = (error.strerror or str(error)).lower()
    return Diagnostic(Location(shown_path(path)), "R508", f"cannot read it: {reason}", hint="make it readable")


def _compare_file(root: Path, path: str, text: str, made: Changes, links: _Links, force: frozenset[str]) -> None:
    target = root / path
    if links.leads_away(path):
        made.diagnostics.append(
            Diagnostic(
                Location(shown_path(target)),
                "R506",
                "the file is a symbolic link, or lies behind one",
                cause="writing through it could change a file outside the output root",
                hint="replace the link by a real file or folder",
            )
        )
        return
    try:
        data = target.read_bytes()
    except FileNotFoundError:
        made.new.append(path)
        return
    except OSError as error:
        made.diagnostics.append(_unreadable(target, error))
        return
    if data == text.encode():
        made.unchanged += 1
        return
    present = data.decode("utf-8", errors="replace")
    if path not in force:
        made.diagnostics += _in_the_way(target, present, text)
    made.changed.append(path)
    made.committed[path] = present


def _compare_stale(
    root: Path, path: str, made: Changes, links: _Links, force: frozenset[str], foreign: set[str]
) -> None:
    if path in foreign:
        return
    target = root / path
    try:
        present = target.read_bytes().decode("utf-8", errors="replace")
    except OSError as error:
        made.diagnostics.append(_unreadable(target, error))
        return
    if not _header(present) or links.leads_away(path):
        return
    if path not in force:
        made.diagnostics += _in_the_way(target, present, None)
    made.stale.append(path)
    made.committed[path] = present


def _header(text: str) -> str | None:
    """Return the digest of a file's header; None for a file that is not ours."""
    first = text.split("\n", 1)[0].rstrip("\r").removeprefix("\ufeff")
    match = HEADER.match(first)
    return match["digest"] if match else None


def _in_the_way(target: Path, present: str, text: str | None) -> list[Diagnostic]:
    """Return why a present file may not be replaced by `text`, or deleted (None)."""
    shown = shown_path(target)
    if "\n<<<<<<< " in "\n" + present and "\n>>>>>>> " in present:
        return [
            Diagnostic(
                Location(shown, present[: present.index("<<<<<<<")].count("\n") + 1),
                "R505",
                "the file holds conflict markers of a merge",
                cause="it is generated, so neither side needs to be merged by hand",
                hint=f"run `git checkout --theirs {shown}` (or `--ours`), then build",
            )
        ]
    digest = _header(present)
    normal = present.removeprefix("\ufeff").replace("\r\n", "\n")
    if digest is not None and digest_of(normal.partition("\n")[2]) == digest:
        return []
    verb = "be replaced" if text is not None else "be deleted"
    detail = diff(shown, present, text if text is not None else "")
    if digest is None:
        return [
            Diagnostic(
                Location(shown),
                "R504",
                f"a file that is not generated would {verb}",
                cause="it has no header, so a person wrote it, or took it over",
                hint=f"move it away, or say `--force {shown}`",
                detail=detail,
            )
        ]
    return [
        Diagnostic(
            Location(shown),
            "R503",
            f"the file was edited by hand and would {verb}",
            cause="its text does not fit the digest in its header",
            hint=f"bring the change into the catalog, or say `--force {shown}` to give it up",
            detail=detail,
        )
    ]


def diff(path: str, old: str, new: str) -> str:
    """Return a unified diff of two texts of a file, without secrets."""
    before, after = redact(old).splitlines(), redact(new).splitlines()
    lines = list(
        difflib.unified_diff(before, after, path if old else "/dev/null", path if new else "/dev/null", lineterm="")
    )
    if not lines and old != new:
        return f"{path}: only line ends, or values that are not shown, differ\n"
    return "".join(line + "\n" for line in lines)


def diffs(build: Build, changes: Changes, root: Path) -> Iterator[str]:
    """Yield the unified diff of each file that would change, in the order of their paths."""
    for path in sorted((*changes.new, *changes.changed, *changes.stale)):
        yield diff(shown_path(root / path), changes.committed.get(path, ""), build.files.get(path, ""))


@contextlib.contextmanager
def lock(root: Path) -> Iterator[None]:
    """Hold the tree's lock, so that two builds cannot interleave; the second waits. The lock is no file in the tree."""
    root.mkdir(parents=True, exist_ok=True)
    handle = os.open(root, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def write(build: Build, changes: Changes, root: Path) -> list[Diagnostic]:
    """Bring the tree to the build: content first, then kustomizations, then deletions; each file old or new.

    Returns what could not be written; the next build goes on from there.
    """
    pending = [*changes.new, *changes.changed]
    ordered = sorted(pending, key=lambda path: (path.endswith("kustomization.yaml"), path))
    made: set[str] = set()
    current = root
    try:
        for path in ordered:
            current = root / path
            folder = path.rpartition("/")[0]
            if folder not in made:
                current.parent.mkdir(parents=True, exist_ok=True)
                made.add(folder)
            _replace(current, build.files[path].encode())
        for path in changes.stale:
            current = root / path
            current.unlink(missing_ok=True)
            _remove_empty(current.parent, root)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        return [
            Diagnostic(
                Location(shown_path(current)),
                "R508",
                f"cannot write the file: {reason}",
                cause="the files before it are written, those after it are not; none is half-written",
                hint="make room or set the permissions, then build again",
            )
        ]
    return []


def _replace(target: Path, data: bytes) -> None:
    """Write a file by a temporary one beside it; its name must not end in .yaml, since the bot reads hidden files."""
    temporary = target.parent / f".{target.name}.{os.getpid()}.tmp"
    try:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666)
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(handle, view) :]
        finally:
            os.close(handle)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _remove_empty(folder: Path, root: Path) -> None:
    while folder != root and folder.is_relative_to(root):
        try:
            folder.rmdir()
        except OSError:
            return
        folder = folder.parent
