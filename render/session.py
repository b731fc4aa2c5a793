"""The inputs of `build` and `check` in, their work, reports and exit codes out, without click.

Importing click costs half as much as a small build, so calls with nothing but the usual arguments come here directly.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType

from render.crew import Crew
from render.diagnostics import WorkerError
from render.files import Seen, StrPath, below, clean, is_inside, repository
from render.progress import progress
from render.structs import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from render.build import Build
    from render.cache.edits import Edited
    from render.cache.record import Look
    from render.cache.replay import Memory
    from render.catalog import PlatformFile
    from render.plan.service import ServicePlan
    from render.tree import Changes

EXIT_PROBLEMS, EXIT_BUG = 1, 3
MOST_JOBS = 64
"""The most processes that may be asked for."""
_UNPRINTED = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG, errno.EBADF))
"""What a stream says that takes nothing any more."""
LONGEST_NAME = 255
"""Bytes of a name that file systems take."""


class MisuseError(Exception):
    """Arguments that do not fit what they are about."""


@struct(frozen=True)
class Inputs:
    """What every rendering command takes."""

    catalog: str
    platform_path: str
    out: str | None
    automation: bool
    style: str
    fail_on: str
    quiet: bool
    reset_tags: tuple[str, ...]
    allow_reinstall: tuple[str, ...]
    jobs: int | None


def build(session: Session, force: Sequence[StrPath] = (), *, verbose: bool = False) -> None:
    """Render CATALOG into the output root: all of it, or nothing if anything is wrong."""
    with session.crew:
        _build(session, force, verbose=verbose)


def _build(session: Session, force: Sequence[StrPath], *, verbose: bool) -> None:
    from render import tree

    inputs = session.inputs
    edited = session.apply_edits()
    if edited is not None:
        # The tree is locked since it was looked at.
        made, changes = edited.made, edited.changes
        if not session.stops(made):
            made.diagnostics += tree.write(made, changes, session.root, session.crew)
    else:
        made = session.render()
        if made.failed:
            session.finish(made, None)
        forced = session.forced(force)
        with tree.lock(session.root) as faults:
            if faults:
                made.diagnostics = sorted({*made.diagnostics, *faults})
                session.finish(made, None)
            changes = session.compare(made, force=forced)
            if not session.stops(made):
                session.look_later(made)
                with progress("writing files") as step:
                    made.diagnostics += tree.write(made, changes, session.root, session.crew, step)
    if verbose and inputs.style in ("full", "concise"):
        for mark, paths in (("+", changes.new), ("~", changes.changed), ("-", changes.stale)):
            for path in paths:
                tell(f"{mark} {path}\n", error=True)
    session.finish(made, changes)


def check(session: Session, only: Sequence[str] = (), trees: Sequence[StrPath] = ()) -> None:
    """Tell what `build` would change, as a unified diff; exit 1 if anything."""
    with session.crew:
        _check(session, only, trees)


def _check(session: Session, only: Sequence[str], trees: Sequence[StrPath]) -> None:
    from render import tree

    inputs = session.inputs
    if trees:
        session.finish_trees(trees)
    edited = session.apply_edits()
    if edited is not None:
        made, changes = edited.made, edited.changes
    else:
        made = session.render({"--only": only})
        if made.failed:
            session.finish(made, None)
        changes = session.compare(made, only=frozenset(only) if only else None)
    if inputs.style in ("full", "concise"):
        for text in tree.diffs(made, changes, session.root):
            tell(text)
    session.finish(made, changes, checking=True)


class Session:
    """One run of a rendering command."""

    def __init__(self, inputs: Inputs, memory: Memory | None) -> None:
        self.inputs = inputs
        self.root = inputs.out if inputs.out is not None else "."
        self.memory = memory
        self.seen = Seen() if self.memory is not None else None
        self.edited: Edited | None = None
        self.crew = Crew()
        self.look: Look | None = None

    def apply_edits(self) -> Edited | None:
        """Return what a few edited files change, when all else is as it was; None when all has to be read."""
        memory, inputs = self.memory, self.inputs
        if memory is None or not memory.edited:
            return None
        from render.cache.edits import apply

        self.edited = apply(
            memory,
            inputs.catalog,
            inputs.platform_path,
            root=self._find_root,
            automation=inputs.automation,
            reset=frozenset(inputs.reset_tags),
            reinstall=frozenset(inputs.allow_reinstall),
        )
        if self.edited is None:
            memory.release()
        else:
            assert self.edited.made.root is not None
            self.root = self.edited.made.root
        return self.edited

    def render(
        self,
        named: Mapping[str, Sequence[str]] = MappingProxyType({}),
        visit: Callable[[ServicePlan], None] | None = None,
    ) -> Build:
        """Render the catalog, and find the output root; the options of `named` must name services."""
        from render.build import build as build_all

        inputs = self.inputs
        reset = frozenset(inputs.reset_tags)
        with progress("planning services") as step:
            made = build_all(
                inputs.catalog,
                inputs.platform_path,
                automation=inputs.automation,
                root=self._find_root,
                reset=reset,
                visit=visit,
                seen=self.seen,
                jobs=inputs.jobs or 0,
                step=step,
            )
        if made.root is not None:
            self.root = made.root
        self.crew.jobs = made.jobs
        all_named = {"--reset-tags": inputs.reset_tags, "--allow-reinstall": inputs.allow_reinstall, **named}
        for option, names in all_named.items():
            for name in names:
                if not made.failed and name not in made.names:
                    raise MisuseError(f"{option} {name}: there is no such service in the catalog")
        return made

    def _find_root(self, file: PlatformFile) -> str:
        if self.inputs.out is not None:
            return self.inputs.out
        return below(repository(self.inputs.platform_path), clean(file.platform.root))

    def compare(
        self, made: Build, *, force: frozenset[str] = frozenset(), only: frozenset[str] | None = None
    ) -> Changes:
        """Compare the build with the tree, and add what that shows to its diagnostics."""
        from render import tree

        reinstall = frozenset(self.inputs.allow_reinstall)
        changes = tree.compare(made, self.root, force=force, reinstall=reinstall, only=only)
        made.diagnostics = sorted({*made.diagnostics, *changes.diagnostics})
        return changes

    def forced(self, paths: Iterable[StrPath]) -> frozenset[str]:
        """Return the paths of `--force` as paths below the root."""
        root = os.path.realpath(self.root)
        found = set()
        for path in map(clean, paths):
            absolute = below(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
            if not is_inside(absolute, root):
                raise MisuseError(f"--force {path}: the file is not below the output root {self.root}")
            if not os.path.lexists(absolute):
                raise MisuseError(f"--force {path}: there is no such file")
            if os.path.isdir(absolute) and not os.path.islink(absolute):
                raise MisuseError(f"--force {path}: this is a folder; name the files in it")
            found.add(absolute.removeprefix(root).removeprefix("/") or ".")
        return frozenset(found)

    def stops(self, made: Build) -> bool:
        """Whether what was found forbids writing, or success."""
        return made.failed or (self.inputs.fail_on == "warning" and bool(made.diagnostics))

    def finish_trees(self, folders: Sequence[StrPath]) -> None:
        """Report the HelmReleases of some folders that do not carry the override table, and leave."""
        from render.carried import Emitted, check_trees

        emitted = Emitted()
        made = self.render(visit=emitted)
        if made.placed is not None and not made.failed:
            found = check_trees(folders, made.placed, emitted, made.root)
            made.sources += found.files
            made.diagnostics = sorted({*made.diagnostics, *found.diagnostics})
            self.finish(made, None, last=found.line)
        self.finish(made, None)

    def finish(self, made: Build, changes: Changes | None, *, checking: bool = False, last: str = "") -> None:
        """Report and leave with the exit code."""
        for handle, text in self._report(made, changes, checking=checking):
            tell(text, error=handle == 2)
        if last and not self.inputs.quiet:
            tell(f"{last}\n", error=True)
        if self.memory is not None and changes is not None:
            self._remember(made, changes, checking=checking)
        sys.exit(self._code(made, changes, checking=checking))

    def _code(self, made: Build, changes: Changes | None, *, checking: bool) -> int:
        stale = checking and changes is not None and not changes.is_clean
        return EXIT_PROBLEMS if self.stops(made) or stale else 0

    def look_later(self, made: Build) -> None:
        """Let the processes that write the tree know that they will look at it for the record."""
        if self.memory is not None and self.look is None:
            from render.cache.record import Look

            self.look = Look(self.memory, made, self.root, self.crew)

    def _remember(self, made: Build, changes: Changes, *, checking: bool) -> None:
        """Keep what this run says for the next ones, if the tree is now what the catalog says."""
        from render.cache.record import keep, renew
        from render.structs import replace

        if made.failed or (not changes.is_clean and (checking or self.stops(made))):
            return
        unchanged = len(changes.new) + len(changes.changed) + changes.unchanged
        settled = replace(changes, new=[], changed=[], stale=[], unchanged=unchanged, upgrades=0)
        reports = {}
        for verb in ("build", "check"):
            checks = verb == "check"
            parts = self._report(made, settled, checking=checks)
            told = [(handle, text.encode("utf-8", "backslashreplace")) for handle, text in parts]
            reports[verb] = (self._code(made, settled, checking=checks), told)
        assert self.memory is not None
        assert self.seen is not None
        if self.edited is not None:
            renew(self.memory, self.edited, self.root, reports)
            return
        places = (self.inputs.catalog, self.inputs.platform_path, self.root)
        self.look_later(made)
        assert self.look is not None
        keep(self.memory, self.seen, made, changes, places, reports, self.look)

    def _report(self, made: Build, changes: Changes | None, *, checking: bool) -> list[tuple[int, str]]:
        """Return what is to be printed: file descriptor and text, in turn."""
        from render.report import faults_line, render_json, render_report, render_stale, summary_lines

        if self.inputs.style == "json":
            return [(1, render_json(made.diagnostics, _summary(made, changes)))]
        parts: list[tuple[int, str]] = []

        quiet = self.inputs.quiet
        stdout = self.inputs.style == "github"
        colour = not stdout and has_colour()
        told = made.diagnostics
        if self.inputs.style == "full":
            from render.catalog import with_snippet

            told = [with_snippet(fault) for fault in told]
        # `check` shows the diff of each file as its product.
        text = render_report(told, self.inputs.style, colour=colour, detail=not checking)
        if text:
            parts.append((1 if stdout else 2, text))
        if made.diagnostics and not (quiet and not self.stops(made)):
            parts.append((2, faults_line(made.diagnostics, made.sources) + "\n"))
        if changes is None or made.failed:
            return parts
        # A build that a warning stops has written nothing either.
        *consequences, counts = summary_lines(changes, checking=checking or self.stops(made))
        parts += [(2, f"{line}\n") for line in (consequences if quiet else (*consequences, counts))]
        if stdout and checking:
            parts.append((1, render_stale(changes, self.root)))
        return parts


def _summary(made: Build, changes: Changes | None) -> dict[str, object]:
    files: dict[str, object] | None = None
    services, held = made.services, made.kept
    if changes is not None:
        files = {
            "new": changes.new,
            "changed": changes.changed,
            "stale": changes.stale,
            "unchanged": changes.unchanged,
            "uninstalled": changes.uninstalled,
            "deletedWorkloads": changes.deleted,
            "deletedMachines": changes.deleted_machines,
        }
        services, held = changes.services, changes.kept
    kept = [{"policy": policy, "catalog": declared, "kept": kept} for policy, declared, kept in held]
    return {"services": services, "files": files, "kept": kept}


def plain_inputs(arguments: Sequence[str]) -> Inputs | None:
    """Return the inputs of a command that is called with the usual arguments only; None for any other call."""
    flags = {"--quiet": False, "--no-image-automation": False, "--no-cache": False}
    values: dict[str, str] = {}
    left = iter(arguments)
    for argument in left:
        name = "--quiet" if argument == "-q" else argument
        if name in flags:
            flags[name] = True
            continue
        if name in ("--platform", "--out", "--jobs"):
            value = next(left, "")
        else:
            name, value = "", argument
            if name in values:
                return None
        # Click tells of names that no file can have.
        if not value or value.startswith("-") or len(os.fsencode(value)) > LONGEST_NAME:
            return None
        values[name] = value
    jobs = None
    if "--jobs" in values:
        text = values["--jobs"]
        jobs = int(text) if text.isascii() and text.isdigit() and len(text) <= len(str(MOST_JOBS)) else 0
        if not 1 <= jobs <= MOST_JOBS:
            return None
    return Inputs(
        catalog=clean(values.get("", "catalog")),
        platform_path=clean(values.get("--platform", "platform.yaml")),
        out=clean(values["--out"]) if "--out" in values else None,
        automation=not flags["--no-image-automation"],
        style="full",
        fail_on="error",
        quiet=flags["--quiet"],
        reset_tags=(),
        allow_reinstall=(),
        jobs=jobs,
    )


def run_plain(verb: str, arguments: Sequence[str], memory: Memory | None) -> int | None:
    """Run `build` or `check` with the usual arguments and return the exit code; None for any other call."""
    inputs = plain_inputs(arguments)
    if inputs is None:
        return None
    session = Session(inputs, memory)

    def command() -> None:
        try:
            if verb == "build":
                build(session)
            else:
                check(session)
        except KeyboardInterrupt:
            tell("Aborted!\n", error=True)
            sys.exit(EXIT_PROBLEMS)
        except OSError as error:
            if error.errno != errno.EPIPE:
                raise
            # Nobody reads on.
            sys.exit(EXIT_PROBLEMS)

    return guarded(command)


def guarded(command: Callable[[], object]) -> int:
    """Run a command and return its exit code; a bug is 3 and says so."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # The same bytes in every locale; a path that is no UTF-8 is shown by its escapes.
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        command()
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else 0 if error.code is None else 1
    except WorkerError as ended:
        tell(
            f"error: {ended}; nothing was written\nhint: run it again, or with `--jobs 1`, which needs less memory\n",
            error=True,
        )
        return EXIT_PROBLEMS
    except Exception as error:
        if isinstance(error, OSError) and error.errno in _UNPRINTED and error.filename is None:
            # Files of ours are written where their faults are told; this is what was to be printed.
            with contextlib.suppress(OSError):
                # It may be stderr that takes nothing.
                tell(f"error: cannot print what there is to say: {(error.strerror or '').lower()}\n", error=True)
            return EXIT_PROBLEMS
        import traceback

        told = "".join(traceback.format_exception(error))
        tell(f"internal error: {type(error).__name__}: {error}\n{told}", error=True)
        tell("this is a bug in render; the input is not at fault\n", error=True)
        return EXIT_BUG
    return 0


def tell(text: str, *, error: bool = False) -> None:
    """Print a text as it is."""
    stream = sys.stderr if error else sys.stdout
    if stream is not None:
        stream.write(text)
        stream.flush()


def has_colour() -> bool:
    """Whether the report may use colour: on a terminal, unless NO_COLOR says otherwise."""
    return sys.stderr.isatty() and not os.environ.get("NO_COLOR")
