"""The command that brings the image bot's versions into the catalog: options in, calls and streams out."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from render.sync import Sync

EXIT_PROBLEMS = 1


@click.command(
    epilog="Examples:\n\n  render sync\n\n  render sync --only podinfo --dry-run\n\n"
    "  render sync --also platform-airgap.yaml"
)
@click.argument("catalog", default="catalog", type=click.Path(path_type=Path))
@click.option(
    "--platform",
    "platform_path",
    default="platform.yaml",
    show_default=True,
    type=click.Path(path_type=Path),
    help="The platform file.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Output root that the bot commits to. Default: the platform's `root`, from the top of the repository.",
)
@click.option(
    "--no-image-automation",
    "automation",
    is_flag=True,
    flag_value=False,
    default=True,
    help="The tree is built without image automation.",
)
@click.option("--only", multiple=True, metavar="NAME", help="Write the values of this service only (repeatable).")
@click.option(
    "--also",
    multiple=True,
    metavar="PLATFORM",
    type=click.Path(path_type=Path),
    help="Tell what the cluster of this platform file gets from the values (repeatable).",
)
@click.option("--dry-run", is_flag=True, help="Print the difference, and write nothing; exit 1 if there is any.")
@click.option(
    "--format",
    "style",
    type=click.Choice(("full", "concise", "json", "github")),
    default="full",
    show_default=True,
    help="Form of the report.",
)
@click.option(
    "--fail-on",
    type=click.Choice(("error", "warning")),
    default="error",
    show_default=True,
    help="What makes the exit code 1.",
)
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
    colour = not stdout and sys.stderr.isatty() and not os.environ.get("NO_COLOR")
    text = render_report(told, style, colour=colour)
    if text:
        click.echo(text, nl=False, err=not stdout, color=True)
    if told and (stops or made.left or not quiet):
        click.echo(faults_line(told, made.sources), err=True)
    if not made.failed and not quiet:
        for line in lines(made, writing=not (stops or dry_run)):
            click.echo(line, err=True)
