"""Command-line options in, calls, streams and exit codes out; no rule lives here."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from render import __version__

if TYPE_CHECKING:
    from render.build import Build
    from render.diagnostics import Diagnostic
    from render.tree import Changes

EXIT_PROBLEMS, EXIT_BUG = 1, 3
FORMATS = ("full", "concise", "json", "github")
_Command = TypeVar("_Command", bound=Callable[..., Any])

catalog_argument = click.argument("catalog", default="catalog", type=click.Path(path_type=Path))
platform_option = click.option(
    "--platform",
    "platform_path",
    default="platform.yaml",
    show_default=True,
    type=click.Path(path_type=Path),
    help="The platform file.",
)
out_option = click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Output root. Default: the platform's `root`, from the top of the repository.",
)
automation_option = click.option(
    "--no-image-automation",
    "automation",
    is_flag=True,
    flag_value=False,
    default=True,
    help="Leave out image automation: its objects, markers and alerts.",
)
format_option = click.option(
    "--format", "style", type=click.Choice(FORMATS), default="full", show_default=True, help="Form of the report."
)
fail_option = click.option(
    "--fail-on",
    type=click.Choice(("error", "warning")),
    default="error",
    show_default=True,
    help="What makes the exit code 1.",
)
quiet_option = click.option("-q", "--quiet", is_flag=True, help="Say nothing on success.")
force_option = click.option(
    "--force",
    multiple=True,
    metavar="PATH",
    type=click.Path(path_type=Path),
    help="Take over this file although a person edited or wrote it (repeatable).",
)


def input_options(command: _Command) -> _Command:
    """Add what every rendering command takes."""
    for option in (
        quiet_option,
        fail_option,
        format_option,
        automation_option,
        out_option,
        platform_option,
        catalog_argument,
    ):
        command = option(command)
    return command


@click.group(
    context_settings={"help_option_names": ["-h", "--help"]}, epilog="See `render COMMAND --help` for examples."
)
@click.version_option(__version__, message="render %(version)s")
def cli() -> None:
    """Compile a catalog of services into the Flux objects of one cluster."""


@cli.command(
    epilog="Examples:\n\n  render build\n\n  render build catalog --platform platform-airgap.yaml --no-image-automation"
)
@input_options
@force_option
@click.option("-v", "--verbose", is_flag=True, help="List the files that change.")
def build(
    catalog: Path,
    platform_path: Path,
    out: Path | None,
    automation: bool,
    style: str,
    fail_on: str,
    quiet: bool,
    force: tuple[Path, ...],
    verbose: bool,
) -> None:
    """Render CATALOG into the output root: all of it, or nothing if anything is wrong."""
    from render import tree

    session = _Session(catalog, platform_path, out, automation, style, fail_on, quiet)
    made = session.render()
    if made.failed:
        session.finish(made, None)
    with _usage(lambda: tree.lock(session.root)) if not session.root.is_file() else _nothing():
        changes = tree.compare(made, session.root, session.forced(force))
        faults = list(changes.diagnostics)
        if not any(fault.severity == "error" for fault in faults) and not session.stops(made):
            faults += tree.write(made, changes, session.root)
    made.diagnostics = sorted({*made.diagnostics, *faults})
    if verbose and style in ("full", "concise"):
        for mark, paths in (("+", changes.new), ("~", changes.changed), ("-", changes.stale)):
            for path in paths:
                click.echo(f"{mark} {path}", err=True)
    session.finish(made, changes)


@cli.command(epilog="Examples:\n\n  render check\n\n  render check --format github")
@input_options
def check(
    catalog: Path, platform_path: Path, out: Path | None, automation: bool, style: str, fail_on: str, quiet: bool
) -> None:
    """Tell what `build` would change, as a unified diff; exit 1 if anything."""
    from render import tree

    session = _Session(catalog, platform_path, out, automation, style, fail_on, quiet)
    made = session.render()
    if made.failed:
        session.finish(made, None)
    changes = tree.compare(made, session.root)
    made.diagnostics = sorted({*made.diagnostics, *changes.diagnostics})
    if style in ("full", "concise"):
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
        import difflib

        close = difflib.get_close_matches(wanted, CODES, 1)
        raise click.UsageError(f"there is no code {code}" + (f"; did you mean {close[0]}?" if close else ""))
    click.echo(page(wanted), nl=False)


class _Session:
    """One run of a rendering command."""

    def __init__(
        self,
        catalog: Path,
        platform_path: Path,
        out: Path | None,
        automation: bool,
        style: str,
        fail_on: str,
        quiet: bool,
    ) -> None:
        self.catalog = catalog
        self.platform_path = platform_path
        self.out = out
        self.automation = automation
        self.style = style
        self.fail_on = fail_on
        self.quiet = quiet
        self.root = out if out is not None else Path()

    def render(self) -> Build:
        """Render the catalog, and find the output root."""
        from render.build import build

        made = build(self.catalog, self.platform_path, automation=self.automation)
        if self.out is None and made.platform is not None:
            self.root = _repository(self.platform_path) / made.platform.platform.root
        return made

    def forced(self, paths: Iterable[Path]) -> frozenset[str]:
        """Return the paths of `--force` as paths below the root."""
        root = self.root.resolve()
        found = set()
        for path in paths:
            absolute = path.parent.resolve() / path.name
            if not absolute.is_relative_to(root):
                raise click.UsageError(f"--force {path}: the file is not below the output root {self.root}")
            found.add(absolute.relative_to(root).as_posix())
        return frozenset(found)

    def stops(self, made: Build) -> bool:
        """Whether the warnings alone forbid writing."""
        return made.failed or (self.fail_on == "warning" and bool(made.diagnostics))

    def finish(self, made: Build, changes: Changes | None, *, checking: bool = False) -> None:
        """Report and leave with the exit code."""
        stale = checking and changes is not None and not changes.is_clean
        bad = self.stops(made)
        summary = _summary(made, changes)
        if self.style == "json":
            from render.report import render_json

            click.echo(render_json(made.diagnostics, summary), nl=False)
        else:
            self._tell(made.diagnostics, made, changes, checking=checking)
        sys.exit(EXIT_PROBLEMS if bad or stale else 0)

    def _tell(self, diagnostics: Sequence[Diagnostic], made: Build, changes: Changes | None, *, checking: bool) -> None:
        from render.report import count, faults_line, render_report

        stdout = self.style == "github"
        colour = not stdout and sys.stderr.isatty() and not os.environ.get("NO_COLOR")
        text = render_report(diagnostics, self.style, colour=colour)
        if text:
            click.echo(text, nl=False, err=not stdout, color=True)
        if diagnostics and not (self.quiet and not made.failed):
            click.echo(faults_line(diagnostics, made.sources), err=True)
        if changes is not None and not made.failed and not self.quiet:
            changed, would = len(changes.new) + len(changes.changed), "would be " if checking else ""
            total = changed + changes.unchanged
            line = f"{count(made.services, 'service')}, {count(total, 'file')}: "
            line += f"{changed} {would}changed, {changes.unchanged} unchanged, {len(changes.stale)} {would}pruned"
            click.echo(line, err=True)


def _summary(made: Build, changes: Changes | None) -> dict[str, object]:
    files: dict[str, object] | None = None
    if changes is not None:
        files = {
            "new": changes.new,
            "changed": changes.changed,
            "stale": changes.stale,
            "unchanged": changes.unchanged,
        }
    return {"services": made.services, "files": files}


def _repository(platform_path: Path) -> Path:
    """Return the top of the repository that holds the platform file; its folder outside a repository."""
    folder = platform_path.resolve().parent
    top = next((one for one in (folder, *folder.parents) if (one / ".git").exists()), folder)
    try:
        return Path(os.path.relpath(top))
    except ValueError:
        return top


def _nothing() -> Any:
    import contextlib

    return contextlib.nullcontext()


def _usage(make: Callable[[], Any]) -> Any:
    return make()


def run(arguments: Sequence[str]) -> int:
    """Run the command line in this process and return its exit code; a bug is 3 and says so."""
    try:
        cli.main(args=list(arguments), prog_name="render", standalone_mode=True)
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else 0 if error.code is None else 1
    except Exception as error:
        click.echo(f"internal error: {type(error).__name__}: {error}", err=True)
        click.echo("".join(traceback.format_exception(error)), err=True, nl=False)
        click.echo("this is a bug in render; the input is not at fault", err=True)
        return EXIT_BUG
    return 0
