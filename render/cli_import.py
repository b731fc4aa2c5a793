"""The command `import`: options in, calls, files and streams out."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from render.cli_options import (
    CONTEXT,
    PATH,
    REPORTS,
    fail_on_option,
    format_option,
    platform_option,
    quiet_option,
)
from render.session import has_colour

if TYPE_CHECKING:
    from render.importing.importer import Imported

EXIT_PROBLEMS = 1


@click.command(
    "import",
    context_settings=CONTEXT,
    epilog="Examples:\n\n  render import kubernetes --dry-run\n\n"
    "  render import clusters/home apps --catalog catalog --platform platform.yaml --format json",
)
@click.argument("places", nargs=-1, required=True, metavar="PATH…", type=PATH)
@click.option(
    "--catalog", default="catalog", show_default=True, metavar="DIR", type=PATH, help="Where the definitions go."
)
@platform_option("The platform file; written when there is none.")
@click.option("--out", metavar="DIR", help="Output root that a new platform file names.")
@click.option("--dry-run", is_flag=True, help="Write nothing.")
@format_option(REPORTS, "Form of the report.")
@fail_on_option()
@quiet_option
def import_(
    places: tuple[Path, ...],
    catalog: Path,
    platform_path: Path,
    out: str | None,
    dry_run: bool,
    style: str,
    fail_on: str,
    quiet: bool,
) -> None:
    """Make a catalog of an existing Flux repository, and prove what each release renders to.

    PATH… are folders or files with HelmReleases, their sources, image policies and kustomizations.
    Nothing is overwritten.
    """
    from render.importing.importer import Target, import_repository
    from render.importing.writing import write

    shows = sys.stderr.isatty() and style in ("full", "concise") and not quiet
    imported = import_repository(places, Target(catalog, platform_path, out), _progress if shows else None)
    if shows:
        click.echo("\r\x1b[K", nl=False, err=True)
    written = False
    if not dry_run and not imported.is_blocked:
        faults = write(imported.files)
        imported.diagnostics = sorted({*imported.diagnostics, *faults})
        written = not faults
    _tell(imported, platform_path, style, quiet=quiet, written=written)
    stops = imported.failed or (fail_on == "warning" and imported.diagnostics)
    sys.exit(EXIT_PROBLEMS if stops else 0)


def _progress(done: int, of: int) -> None:
    if done % 50 == 0 or done == of:
        click.echo(f"\rreading {done} of {of} files", nl=False, err=True)


def _tell(imported: Imported, platform_path: Path, style: str, *, quiet: bool, written: bool) -> None:
    from render.importing.report import counts_line, report_lines, summary
    from render.report import faults_line, render_json, render_report

    if style == "json":
        told = summary(imported, platform_path, written=written)
        click.echo(render_json(imported.diagnostics, told), nl=False)
        return
    is_github = style == "github"
    if not is_github:
        for line in report_lines(imported, in_full=style == "full"):
            click.echo(line)
    text = render_report(imported.diagnostics, style, colour=not is_github and has_colour())
    if text:
        click.echo(text, nl=False, err=not is_github, color=True)
    if imported.diagnostics and not (quiet and not imported.failed):
        click.echo(faults_line(imported.diagnostics, imported.sources), err=True)
    if imported.outcomes and not (quiet and not imported.failed):
        click.echo(counts_line(imported, written=written), err=True)
