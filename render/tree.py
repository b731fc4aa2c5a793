"""A build and a folder in, what differs out: new, changed and stale files, and what forbids to write them."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator

from render.build import HEADER, Build, digest_of
from render.catalog import reason_of, shown_path
from render.committed import Marks, checksum, has_conflict, take_marks
from render.credential import FOLDER as CREDENTIALS
from render.credential import check_file
from render.diagnostics import Diagnostic, Location
from render.files import StrPath, below, read_bytes
from render.guard import carries_table, divisions, moved, reinstalls, service_of, table_upgrades
from render.headers import OWNED
from render.redact import printable, redact
from render.strays import Strays
from render.structs import field, replace, struct
from render.writer import check_root, is_temporary, lock, write

__all__ = ["OWNED", "Changes", "compare", "diff", "diffs", "lock", "write"]


@struct()
class Changes:
    """What a build would do to a tree."""

    new: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    stale: list[str] = field(default_factory=list)
    """Generated files that are no longer produced."""
    leftovers: list[str] = field(default_factory=list)
    """Temporary files of a killed run."""
    unchanged: int = 0
    committed: dict[str, str] = field(default_factory=dict)
    """Present text of the changed and stale files."""
    diagnostics: list[Diagnostic] = field(default_factory=list)
    upgrades: int = 0
    """Releases that a changed override table upgrades."""
    services: int = 0
    """Services whose files were compared."""
    kept: list[tuple[str, str, str]] = field(default_factory=list)
    """Image values of their trees that stay, as in `Build.kept`."""
    walk: Walk | None = None
    """What stood in the tree; None when it was not looked at."""

    forgotten: list[tuple[str, str]] = field(default_factory=list)
    """Policies of disabled services, each with its version that goes with the files."""
    moved: dict[str, str] = field(default_factory=dict)
    """Stale files of releases, workloads and machines that are in another file now, each with that."""

    @property
    def uninstalled(self) -> list[str]:
        """Services whose release vanishes."""
        return [
            service_of(path)
            for path in self.stale
            if path.startswith("apps/") and path.endswith("/helmrelease.yaml") and path not in self.moved
        ]

    @property
    def deleted(self) -> list[str]:
        """Services whose plain workload vanishes."""
        return [
            service_of(path)
            for path in self.stale
            if path.startswith("apps/") and path.endswith("/workload.yaml") and path not in self.moved
        ]

    @property
    def deleted_machines(self) -> list[str]:
        """Services whose virtual machine vanishes."""
        return [
            service_of(path)
            for path in self.stale
            if path.startswith("configs/") and path.endswith("/vm.yaml") and path not in self.moved
        ]

    @property
    def is_clean(self) -> bool:
        """Whether the tree is what the build says."""
        return not (self.new or self.changed or self.stale)


def compare(
    build: Build,
    root: StrPath,
    *,
    force: frozenset[str] = frozenset(),
    reinstall: frozenset[str] = frozenset(),
    only: frozenset[str] | None = None,
) -> Changes:
    """Compare a build with the tree at `root`.

    `force` names files (below the root) to take over, `reinstall` services whose release may be installed anew; `only`
    limits it to the files of these services.
    """
    compared = _Comparison(build, os.fspath(root), force, only)
    made = compared.made
    made.diagnostics += check_root(root)
    if not made.diagnostics:
        compared.look_for_foreign()
        if not build.failed:
            compared.run()
            compared.judge(reinstall)
    return made


def compare_known(build: Build, root: str, reinstall: frozenset[str]) -> Changes:
    """Compare a build of a few services with their files, all of which are there; nothing else is looked at."""
    compared = _Comparison(build, root, frozenset(), None)
    for path in build.files:
        compared.compare_file(path)
    compared.sum_up()
    compared.judge(reinstall)
    return compared.made


class Walk:
    """What stands in the owned folders, by one look at each; links are not followed."""

    def __init__(self, top: str) -> None:
        self.top = top
        self.files: set[str] = set()
        """Regular files with a suffix of YAML."""
        self.odd: dict[str, str] = {}
        """Everything else that is no folder: `link`, `file` or `special file`; and folders that cannot be read."""
        self.folders: set[str] = set()
        self.faults: list[Diagnostic] = []
        for folder in OWNED:
            self._enter(folder)

    def _enter(self, folder: str) -> None:
        parts = folder.split("/")
        for path in ("/".join(parts[: index + 1]) for index in range(len(parts))):
            try:
                mode = os.lstat(f"{self.top}/{path}").st_mode
            except OSError:
                return
            if not stat.S_ISDIR(mode):
                self.odd[path] = "link" if stat.S_ISLNK(mode) else "file"
                return
        self._walk(folder)

    def _walk(self, folder: str) -> None:
        stack = [folder]
        while stack:
            folder = stack.pop()
            self.folders.add(folder)
            try:
                entries = list(os.scandir(f"{self.top}/{folder}"))
            except OSError as error:
                self.odd[folder] = "unreadable"
                self.faults.append(unreadable(below(self.top, folder), error))
                continue
            for entry in entries:
                path = f"{folder}/{entry.name}"
                if entry.is_symlink():
                    self.odd[path] = "link"
                elif entry.is_dir():
                    stack.append(path)
                elif not entry.is_file():
                    self.odd[path] = "special file"
                elif entry.name.endswith((".yaml", ".yml")):
                    self.files.add(path)
                else:
                    self.odd[path] = "file"

    def obstacle(self, path: str) -> tuple[str, str]:
        """Return what keeps a file from being at `path`, and its kind; two empty texts when nothing does."""
        if path in self.folders:
            return path, "folder"
        if path in self.odd:
            return path, self.odd[path]
        if not self.odd and not self.files:
            return "", ""
        parts = path.split("/")
        for above in ("/".join(parts[:index]) for index in range(1, len(parts))):
            if above in self.odd:
                return above, self.odd[above]
            if above in self.files:
                return above, "file"
        return "", ""


class _Comparison:
    """Compares file by file, collecting the changes."""

    def __init__(self, build: Build, root: str, force: frozenset[str], only: frozenset[str] | None) -> None:
        self.build = build
        self.root = root
        self.force = force
        self.only = only
        self.made = Changes()
        self.strays = Strays(build, root)
        self.alike: set[str] = set()
        """Changed files whose objects and markers are those of the build."""
        self.refused: set[str] = set()
        """Changed and stale files that may not be touched."""
        self.reported: set[str] = set()

    def _wants(self, path: str) -> bool:
        return self.only is None or service_of(path) in self.only

    def look_for_foreign(self) -> None:
        """Report files that the catalog names and people have not put there."""
        for path, place in self.build.foreign:
            if not self._wants(path):
                continue
            if os.path.exists(f"{self.root}/{path}"):
                self._look_at_credential(path)
                continue
            folder = "/".join(path.split("/")[:2])
            self.made.diagnostics.append(
                Diagnostic(
                    place,
                    "R507",
                    f"the file `{path}` does not exist in the output tree",
                    cause=f"`{folder}/kustomization.yaml` names it, and the build of the whole tree would fail",
                    hint=f"put it at `{shown_path(below(self.root, path))}`, or remove the entry",
                )
            )

    def _look_at_credential(self, path: str) -> None:
        platform = self.build.platform
        if path.startswith(f"{CREDENTIALS}/") and platform is not None:
            try:
                data = read_bytes(f"{self.root}/{path}")
            except OSError as error:
                place = Location(shown_path(below(self.root, path)))
                hint = "make it a file that may be read"
                self.made.diagnostics.append(
                    Diagnostic(place, "R507", f"the file cannot be read: {reason_of(error)}", hint=hint)
                )
            else:
                self.made.diagnostics += check_file(below(self.root, path), data, platform.platform)

    def run(self) -> None:
        """Compare all files."""
        walk = self.made.walk = Walk(self.root)
        self.made.diagnostics += walk.faults
        files = self.build.files
        for path in files:
            if self._wants(path):
                self._compare(path, walk)
        foreign = {path for path, _ in self.build.foreign}
        for path in sorted(walk.files):
            if path not in files and self._wants(path):
                self._compare_stale(path, is_named=path in foreign)
        self.made.leftovers = sorted(path for path in walk.odd if is_temporary(path) and walk.odd[path] == "file")
        self.strays.add_odd(path for path in walk.odd if self._wants(path))
        self.made.diagnostics += self.strays.judge()
        self.sum_up()
        if self.only is not None:
            names = {service_of(path) for path in files} & self.only
            self.made.services = len(names)
            # Policies are named `<service>` and `<service>-<image>`.
            own = tuple(f"{name}-" for name in names)
            self.made.kept = [one for one in self.build.kept if f"{one[0]}-".startswith(own)]

    def sum_up(self) -> None:
        """Bring the lists into order, and take over the counts."""
        for listed in (self.made.new, self.made.changed, self.made.stale):
            listed.sort()
        self.made.services, self.made.kept = self.build.services, self.build.kept

    def _compare(self, path: str, walk: Walk) -> None:
        if path not in walk.files:
            place, kind = walk.obstacle(path)
            if not kind:
                self.made.new.append(path)
            elif kind != "unreadable" and place not in self.reported:
                self.reported.add(place)
                self.made.diagnostics.append(_obstacle(below(self.root, place), kind, is_file=place == path))
            return
        self.compare_file(path)

    def compare_file(self, path: str) -> None:
        """Compare a file that is there."""
        data = self._read(path)
        if data is None:
            return
        if data == self.build.files.data(path):
            self.made.unchanged += 1
            return
        self._differs(path, data, self.build.files[path])
        self.made.changed.append(path)

    def _compare_stale(self, path: str, *, is_named: bool) -> None:
        data = self._read(path)
        if data is None:
            return
        if not is_named and _digest_in(data.partition(b"\n")[0].decode("utf-8", "replace")):
            self._differs(path, data, None)
            self.made.stale.append(path)
        else:
            self.strays.add(path, data)

    def _read(self, path: str) -> bytes | None:
        try:
            return _read(f"{self.root}/{path}")
        except OSError as error:
            self.made.diagnostics.append(unreadable(below(self.root, path), error))
            return None

    def _differs(self, path: str, data: bytes, text: str | None) -> None:
        """Keep the present text, and find out whether it may be replaced by `text`, or deleted."""
        present = data.decode("utf-8", "replace")
        self.made.committed[path] = present
        taken = self.build.taken.get(path)
        if taken is not None and taken != checksum(_normal(present)):
            self.refused.add(path)
            self.made.diagnostics.append(_changed_since(below(self.root, path)))
            return
        if text is not None and _says_the_same(_normal(present), text):
            self.alike.add(path)
        elif path not in self.force:
            fault = _in_the_way(below(self.root, path), present, text)
            if fault is not None:
                self.refused.add(path)
                self.made.diagnostics.append(fault)

    def judge(self, reinstall: frozenset[str]) -> None:
        """Add what the changes mean for running releases."""
        made, build = self.made, self.build
        committed = {
            path: _normal(text)
            for path, text in made.committed.items()
            if path not in self.alike and path not in self.refused
        }
        made.upgrades = table_upgrades(committed, build.files, [path for path in made.changed if path in committed])
        new = frozenset(made.new)
        made.moved = moved(committed, build.files, new)
        made.forgotten = _forgotten(made, build)
        faults = reinstalls(committed, build.files, new, reinstall, made.moved)
        for path, fault in (*faults, *divisions(committed, build.files, new, reinstall, made.moved)):
            made.diagnostics.append(replace(fault, location=Location(shown_path(below(self.root, path)))))
        if not build.names and (gone := len(made.uninstalled) + len(made.deleted)):
            made.diagnostics.append(_all_gone(self.root, gone))
        platform = build.platform
        if platform is None or platform.platform.registries.image_overrides is not None:
            return
        carrying = [path for path in made.changed if carries_table(_normal(made.committed[path]))]
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


def _read(path: str) -> bytes:
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        size = os.fstat(handle).st_size
        data = os.read(handle, size + 1)
        if len(data) == size:
            return data
        parts = [data]
        while part := os.read(handle, 1 << 20):
            parts.append(part)
        return b"".join(parts)
    finally:
        os.close(handle)


def _normal(text: str) -> str:
    """Return a committed text as it was written: without the byte order mark and line ends of a checkout."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n")


def _digest_in(first_line: str) -> str | None:
    """Return the digest of a file's header line; None for a file that is not ours."""
    match = HEADER.match(first_line.rstrip().removeprefix("\ufeff"))
    return match["digest"] if match else None


def _says_the_same(present: str, text: str) -> bool:
    """Whether a present file of ours holds the objects and markers of `text`, differently formatted."""
    if _digest_in(present.partition("\n")[0]) is None:
        return False
    from render.yaml.compare import same_objects

    return same_objects(present, text)


def _forgotten(made: Changes, build: Build) -> list[tuple[str, str]]:
    taken_over = {service_of(path) for path in made.moved}
    found: dict[str, Marks] = {}
    for path in made.stale:
        if service_of(path) in build.names and service_of(path) not in taken_over:
            take_marks(_normal(made.committed[path]), found)
    return sorted((policy, marks.text) for policy, marks in found.items() if marks.tag is not None)


def _all_gone(root: str, number: int) -> Diagnostic:
    return Diagnostic(
        Location(shown_path(root)),
        "R517",
        f"everything in the tree would be deleted, and what runs of {number} service{'' if number == 1 else 's'}",
        cause="the catalog holds no service; this may be the wrong folder, or half a checkout",
        hint="name the catalog's folder; a service with `enabled: false` says that nothing is meant",
    )


def unreadable(path: str, error: OSError) -> Diagnostic:
    """Return the fault of a file of the tree that cannot be read."""
    told = f"cannot read it: {reason_of(error)}"
    return Diagnostic(Location(shown_path(path)), "R508", told, hint="make it readable")


def _obstacle(path: str, kind: str, *, is_file: bool) -> Diagnostic:
    """Return the fault of something that is no regular file, or no folder, where one must be."""
    place = Location(shown_path(path))
    wanted = "file" if is_file else "folder"
    if kind == "link":
        return Diagnostic(
            place,
            "R506",
            f"a symbolic link is in the place of a {wanted}",
            cause="writing through it could change a file outside the output root",
            hint=f"replace the link by a real {wanted}",
        )
    return Diagnostic(place, "R508", f"a {kind} is in the place of a {wanted}", hint="move it away")


def _changed_since(path: str) -> Diagnostic:
    return Diagnostic(
        Location(shown_path(path)),
        "R518",
        "the file has changed since its versions were read",
        cause="the image bot's newer version would be lost, such as one that was pulled in the meantime",
        hint="run the command again",
    )


def conflict(path: str, present: str) -> Diagnostic:
    """Return the fault of a generated file that holds the conflict markers of a merge."""
    shown = shown_path(path)
    return Diagnostic(
        Location(shown, present[: present.index("<<<<<<<")].count("\n") + 1),
        "R505",
        "the file holds conflict markers of a merge",
        cause="it is generated, so neither side needs to be merged by hand",
        hint=f"run `git checkout --theirs {shown}` (or `--ours`), then build",
    )


def _in_the_way(target: str, present: str, text: str | None) -> Diagnostic | None:
    """Return why a present file may not be replaced by `text`, or deleted (None)."""
    shown = shown_path(target)
    if has_conflict(present):
        return conflict(target, present)
    if not present.strip("\0\ufeff \t\r\n"):
        # Nothing is lost: such as a file whose content did not reach the disk.
        return None
    first, _, body = _normal(present).partition("\n")
    digest = _digest_in(first)
    if digest is not None and digest_of(body) == digest:
        return None
    verb = "be replaced" if text is not None else "be deleted"
    detail = diff(shown, present, text if text is not None else "")
    if digest is None:
        return Diagnostic(
            Location(shown),
            "R504",
            f"a file that is not generated would {verb}",
            cause="it has no header, so a person wrote it, or took it over",
            hint=f"move it away, or say `--force {shown}`",
            detail=detail,
        )
    return Diagnostic(
        Location(shown),
        "R503",
        f"the file was edited by hand and would {verb}",
        cause="its text does not fit the digest in its header",
        hint=f"bring the change into the catalog, or say `--force {shown}` to give it up",
        detail=detail,
    )


def diff(path: str, old: str, new: str) -> str:
    """Return a unified diff of two texts of a file, without secrets."""
    before, after = (redact(text).removesuffix("\n").split("\n") if text else [] for text in (old, new))
    shown = printable(path)
    names = [shown if text else "/dev/null" for text in (old, new)]
    import difflib

    lines = list(difflib.unified_diff(before, after, names[0], names[1], lineterm=""))
    if not lines and old != new:
        return f"{shown}: only line ends, or values that are not shown, differ\n"
    return "".join(printable(line) + "\n" for line in lines)


def diffs(build: Build, changes: Changes, root: str) -> Iterator[str]:
    """Yield the unified diff of each file that would change, in the order of their paths."""
    for path in sorted((*changes.new, *changes.changed, *changes.stale)):
        yield diff(shown_path(below(root, path)), changes.committed.get(path, ""), build.files.get(path, ""))
