"""The command that brings the image bot's versions into the catalog: options in, calls and streams out."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from render.cli_options import (
    CONTEXT,
    PATH,
    REPORTS,
    automation_option,
    catalog_argument,
    fail_on_option,
    format_option,
    only_option,
    out_option,
    platform_option,
)
from render.session import has_colour

if TYPE_CHECKING:
    from render.sync import Sync

EXIT_PROBLEMS = 1


@click.command(
    context_settings=CONTEXT,
    epilog="Examples:\n\n  render sync\n\n  render sync --only podinfo --dry-run\n\n"
    "  render sync --also platform-airgap.yaml",
)
@catalog_argument
@platform_option()
@out_option("Output root that the bot commits to. Default: the platform's `root`, from the top of the repository.")
@automation_option("The tree is built without image automation.")
@only_option("Write the values")
@click.option(
    "--also",
    multiple=True,
    metavar="PLATFORM",
    type=PATH,
    help="Tell what the cluster of this platform file gets from the values (repeatable).",
)
@click.option("--dry-run", is_flag=True, help="Print the difference, and write nothing; exit 1 if there is any.")
@format_option(REPORTS, "Form of the report.")
@fail_on_option()
@click.option("-q", "--quiet", is_flag=True, help="Leave out the last lines on success.")
def sync(
    catalog: Path,
    platform_path: Path,
    out: Path | None,
    automation: bool,
    only: tuple[str, ...],
    also: tuple[Path, ...],
    dry_run: bool,
    style: str,
    fail_on: str,
    quiet: bool,
) -> None:
    """Write the versions that the image bot has committed into CATALOG: all of them, or none if anything is wrong.

    A file in which an anchor repeats a version is left alone; the others are written, and the exit code is 1.
    """
    from render.sync import plan_sync, write_sync

    made = plan_sync(catalog, platform_path, out=out, automation=automation, only=frozenset(only), also=also)
    for name in only:
        if not made.failed and name not in made.build.names:
            raise click.UsageError(f"--only {name}: there is no such service in the catalog")
    stops = made.failed or (fail_on == "warning" and bool(made.diagnostics or made.left))
    written = not (stops or dry_run)
    if written:
        made.diagnostics += write_sync(made)
        stops = made.failed
    _tell(made, style, stops=stops, dry_run=dry_run, quiet=quiet)
    sys.exit(EXIT_PROBLEMS if stops or made.left or (dry_run and made.files) else 0)


def _tell(made: Sync, style: str, *, stops: bool, dry_run: bool, quiet: bool) -> None:
    """Print the difference, the report and the last lines, each to its stream."""
    from render import tree
    from render.report import faults_line, render_json, render_report
    from render.sync_report import lines, summary

    told = sorted({*made.diagnostics, *made.left})
    if style == "json":
        click.echo(render_json(told, summary(made, written=not (stops or dry_run))), nl=False)
        return
    if dry_run and style != "github":
        for file in made.files:
            click.echo(tree.diff(file.path, file.before, file.after), nl=False)
    stdout = style == "github"
    colour = not stdout and has_colour()
    text = render_report(told, style, colour=colour)
    if text:
        click.echo(text, nl=False, err=not stdout, color=True)
    if told and (stops or made.left or not quiet):
        click.echo(faults_line(told, made.sources), err=True)
    if not made.failed and not quiet:
        for line in lines(made, writing=not (stops or dry_run)):
            click.echo(line, err=True)
