"""Command-line options in, calls, streams and exit codes out; no rule lives here."""

from __future__ import annotations

import io
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from render import __version__
from render.cli_options import (
    CONTEXT,
    REPORTS,
    Command,
    automation_option,
    catalog_argument,
    fail_on_option,
    format_option,
    has_colour,
    only_option,
    out_option,
    platform_option,
    quiet_option,
)
from render.diagnostics import WorkerError
from render.files import Seen
from render.structs import struct

if TYPE_CHECKING:
    from render.build import Build
    from render.cache.edits import Edited
    from render.cache.replay import Memory
    from render.catalog import PlatformFile
    from render.plan.service import ServicePlan
    from render.tree import Changes

EXIT_PROBLEMS, EXIT_BUG = 1, 3


@struct(frozen=True)
class Inputs:
    """What every rendering command takes."""

    catalog: Path
    platform_path: Path
    out: Path | None
    automation: bool
    style: str
    fail_on: str
    quiet: bool
    reset_tags: tuple[str, ...]
    allow_reinstall: tuple[str, ...]
    jobs: int | None


_INPUT_OPTIONS = (
    catalog_argument,
    platform_option(),
    out_option("Output root. Default: the platform's `root`, from the top of the repository."),
    automation_option("Leave out image automation: its objects and markers."),
    click.option(
        "--reset-tags",
        multiple=True,
        metavar="SERVICE",
        help="Write the catalog's image version where the bot wrote another one (repeatable).",
    ),
    click.option(
        "--allow-reinstall",
        multiple=True,
        metavar="SERVICE",
        help="Accept that this service's release is uninstalled and installed again (repeatable).",
    ),
    format_option(REPORTS, "Form of the report."),
    fail_on_option(),
    click.option(
        "--jobs",
        type=click.IntRange(1, 64),
        metavar="N",
        help="Plan the services in N processes. Default: as many as are worth it.",
    ),
    click.option(
        "--no-cache",
        is_flag=True,
        expose_value=False,
        help="Read everything again, and leave nothing for the next run.",
    ),
    quiet_option,
)


def input_options(command: Command) -> Command:
    """Add what every rendering command takes; it arrives as one `Inputs`."""
    import functools

    names = Inputs.__match_args__

    @functools.wraps(command)
    def wrapped(**options: Any) -> Any:
        inputs = Inputs(**{name: options.pop(name) for name in names})
        return command(inputs=inputs, **options)

    for option in reversed(_INPUT_OPTIONS):
        wrapped = option(wrapped)
    return wrapped  # type: ignore[return-value]


_ELSEWHERE = {
    "diff": ("cli_diff", "diff"),
    "flux": ("cli_flux", "flux"),
    "images": ("cli_images", "images"),
    "import": ("cli_import", "import_"),
    "init": ("cli_new", "init"),
    "new": ("cli_new", "new"),
    "override": ("cli_images", "override"),
    "policy": ("cli_policy", "policy"),
    "renovate": ("cli_flux", "renovate"),
    "sync": ("cli_sync", "sync"),
    "write-back": ("cli_writeback", "write_back"),
}
"""Module and function of each command that is not here: `build` and `check` shall not pay for their options."""


class _Commands(click.Group):
    """Imports the commands of other modules when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *_ELSEWHERE})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in _ELSEWHERE and cmd_name not in self.commands:
            from importlib import import_module

            module, name = _ELSEWHERE[cmd_name]
            self.add_command(getattr(import_module(f"render.{module}"), name))
        return super().get_command(ctx, cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.list_commands(ctx):
            # The message about it names what is close.
            load_all()
        return super().resolve_command(ctx, args)


@click.group(cls=_Commands, context_settings=CONTEXT, epilog="See `render COMMAND --help` for examples.")
@click.version_option(__version__, message="render %(version)s")
def cli() -> None:
    """Compile a catalog of services into the Flux objects of one cluster."""


def load_all() -> None:
    """Import every command, so that `cli.commands` holds them."""
    context = click.Context(cli)
    for name in cli.list_commands(context):
        cli.get_command(context, name)


@cli.command(
    epilog="Examples:\n\n  render build\n\n  render build catalog --platform platform-airgap.yaml --no-image-automation"
)
@input_options
@click.option(
    "--force",
    multiple=True,
    metavar="PATH",
    type=click.Path(path_type=Path),
    help="Take over this file although a person edited or wrote it (repeatable).",
)
@click.option("-v", "--verbose", is_flag=True, help="List the files that change.")
def build(inputs: Inputs, force: tuple[Path, ...], verbose: bool) -> None:
    """Render CATALOG into the output root: all of it, or nothing if anything is wrong."""
    from render import tree

    session = _Session(inputs)
    edited = session.apply_edits()
    if edited is not None:
        # The tree is locked since it was looked at.
        made, changes = edited.made, edited.changes
        if not session.stops(made):
            made.diagnostics += tree.write(made, changes, session.root)
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
                made.diagnostics += tree.write(made, changes, session.root)
    if verbose and inputs.style in ("full", "concise"):
        for mark, paths in (("+", changes.new), ("~", changes.changed), ("-", changes.stale)):
            for path in paths:
                click.echo(f"{mark} {path}", err=True)
    session.finish(made, changes)


@cli.command(epilog="Examples:\n\n  render check\n\n  render check --only pihole --format github")
@input_options
@only_option("Compare the files")
@click.option(
    "--tree",
    "trees",
    multiple=True,
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Compare nothing; find HelmReleases in this folder that lack the override table (repeatable).",
)
def check(inputs: Inputs, only: tuple[str, ...], trees: tuple[Path, ...]) -> None:
    """Tell what `build` would change, as a unified diff; exit 1 if anything."""
    from render import tree

    session = _Session(inputs)
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
            click.echo(text, nl=False)
    session.finish(made, changes, checking=True)


@cli.command(epilog="Examples:\n\n  render schema service > service.json\n\n  render schema platform")
@click.argument("kind", type=click.Choice(("service", "platform")))
def schema(kind: str) -> None:
    """Print the JSON Schema of a ServiceDefinition or a platform file."""
    from render.model import schema as schemas

    click.echo(schemas.text("service" if kind == "service" else "platform"), nl=False)


@cli.command(epilog="Examples:\n\n  render explain R103\n\n  render explain R603")
@click.argument("code")
def explain(code: str) -> None:
    """Explain a diagnostic code."""
    from render.codes import CODES, page

    wanted = code.upper()
    if wanted not in CODES:
        # One wrong character, and only one code that it can be.
        close = [one for one in CODES if len(one) == len(wanted) and sum(map(str.__ne__, one, wanted)) == 1]
        raise click.UsageError(f"there is no code {code}" + (f"; did you mean {close[0]}?" if len(close) == 1 else ""))
    click.echo(page(wanted), nl=False)


class _Kept(NamedTuple):
    """What click hands on to the commands."""

    memory: Memory | None


def _kept() -> _Kept:
    return click.get_current_context().find_object(_Kept) or _Kept(None)


class _Session:
    """One run of a rendering command."""

    def __init__(self, inputs: Inputs) -> None:
        self.inputs = inputs
        self.root = inputs.out if inputs.out is not None else Path()
        self.memory: Memory | None = _kept().memory
        self.seen = Seen() if self.memory is not None else None
        self.edited: Edited | None = None

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
        from render.build import build

        inputs = self.inputs
        reset = frozenset(inputs.reset_tags)
        made = build(
            inputs.catalog,
            inputs.platform_path,
            automation=inputs.automation,
            root=self._find_root,
            reset=reset,
            visit=visit,
            seen=self.seen,
            jobs=inputs.jobs or 0,
        )
        if made.root is not None:
            self.root = made.root
        all_named = {"--reset-tags": inputs.reset_tags, "--allow-reinstall": inputs.allow_reinstall, **named}
        for option, names in all_named.items():
            for name in names:
                if not made.failed and name not in made.names:
                    raise click.UsageError(f"{option} {name}: there is no such service in the catalog")
        return made

    def _find_root(self, file: PlatformFile) -> Path:
        from render.files import repository

        if self.inputs.out is not None:
            return self.inputs.out
        return repository(self.inputs.platform_path) / file.platform.root

    def compare(
        self, made: Build, *, force: frozenset[str] = frozenset(), only: frozenset[str] | None = None
    ) -> Changes:
        """Compare the build with the tree, and add what that shows to its diagnostics."""
        from render import tree

        reinstall = frozenset(self.inputs.allow_reinstall)
        changes = tree.compare(made, self.root, force=force, reinstall=reinstall, only=only)
        made.diagnostics = sorted({*made.diagnostics, *changes.diagnostics})
        return changes

    def forced(self, paths: Iterable[Path]) -> frozenset[str]:
        """Return the paths of `--force` as paths below the root."""
        root = Path(os.path.realpath(self.root))
        found = set()
        for path in paths:
            absolute = Path(os.path.realpath(path.parent), path.name)
            if not absolute.is_relative_to(root):
                raise click.UsageError(f"--force {path}: the file is not below the output root {self.root}")
            if not os.path.lexists(absolute):
                raise click.UsageError(f"--force {path}: there is no such file")
            if absolute.is_dir() and not absolute.is_symlink():
                raise click.UsageError(f"--force {path}: this is a folder; name the files in it")
            found.add(absolute.relative_to(root).as_posix())
        return frozenset(found)

    def stops(self, made: Build) -> bool:
        """Whether what was found forbids writing, or success."""
        return made.failed or (self.inputs.fail_on == "warning" and bool(made.diagnostics))

    def finish_trees(self, folders: Sequence[Path]) -> None:
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
            click.echo(text, nl=False, err=handle == 2, color=True)
        if last and not self.inputs.quiet:
            click.echo(last, err=True)
        if self.memory is not None and changes is not None:
            self._remember(made, changes, checking=checking)
        sys.exit(self._code(made, changes, checking=checking))

    def _code(self, made: Build, changes: Changes | None, *, checking: bool) -> int:
        stale = checking and changes is not None and not changes.is_clean
        return EXIT_PROBLEMS if self.stops(made) or stale else 0

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
        keep(self.memory, self.seen, made, changes, places, reports)

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


def run(arguments: Sequence[str], memory: Memory | None = None) -> int:
    """Run the command line in this process and return its exit code; a bug is 3 and says so.

    `memory` is where the run may leave what it found for the runs after it.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # The same bytes in every locale; a path that is no UTF-8 is shown by its escapes.
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        cli.main(args=list(arguments), prog_name="render", standalone_mode=True, obj=_Kept(memory))
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else 0 if error.code is None else 1
    except Exception as error:
        if isinstance(error, WorkerError):
            click.echo(f"error: {error}; nothing was written", err=True)
            click.echo("hint: run it again, or with `--jobs 1`, which needs less memory", err=True)
            return EXIT_PROBLEMS
        click.echo(f"internal error: {type(error).__name__}: {error}", err=True)
        click.echo("".join(traceback.format_exception(error)), err=True, nl=False)
        click.echo("this is a bug in render; the input is not at fault", err=True)
        return EXIT_BUG
    return 0
