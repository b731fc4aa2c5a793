"""The commands about Flux itself and beside it: options in, calls and streams out."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from render.cli_options import (
    CONTEXT,
    PATH,
    PATH_OR_DASH,
    REPORTS,
    automation_option,
    catalog_argument,
    fail_on_option,
    format_option,
    platform_option,
    print_report,
    quiet_option,
)

if TYPE_CHECKING:
    from render.diagnostics import Diagnostic
    from render.manifest import Rewrite
    from render.plan.table_notes import PlacedTable

EXIT_PROBLEMS = 1


@click.command(
    context_settings=CONTEXT,
    epilog="Examples:\n\n  flux install --export | render flux - > gotk-components.yaml\n\n"
    "  render flux clusters/home/flux-system/gotk-components.yaml --in-place",
)
@click.argument("manifest", metavar="FILE", type=PATH_OR_DASH)
@click.option(
    "--platform", "platform_path", metavar="FILE", type=PATH, help="The platform file.  [default: platform.yaml]"
)
@click.option(
    "--overrides",
    metavar="JSON",
    help="A JSON list of kustomize `images` entries, in place of the platform's `fluxImageOverrides`.",
)
@click.option("--in-place", is_flag=True, help="Write the file itself, at once, and nothing to stdout.")
@format_option(REPORTS, "Form of the report.")
@fail_on_option()
@quiet_option
def flux(
    manifest: Path,
    platform_path: Path | None,
    overrides: str | None,
    in_place: bool,
    style: str,
    fail_on: str,
    quiet: bool,
) -> None:
    """Rewrite the images of Flux's own install manifest FILE (`-`: standard input), and no other byte of it."""
    from render import manifest as manifests

    if overrides is not None and platform_path is not None:
        raise click.UsageError("give the overrides by either --overrides or --platform")
    if in_place and str(manifest) == "-":
        raise click.UsageError("--in-place needs a file, not standard input")
    placed, named, diagnostics = _table(overrides, platform_path or Path("platform.yaml"))
    made = manifests.read(manifest, sys.stdin.buffer)
    if placed is not None and not made.failed:
        manifests.rewrite(made, placed, named)
    made.diagnostics = sorted({*diagnostics, *made.diagnostics})
    stops = made.failed or (fail_on == "warning" and bool(made.diagnostics))
    if in_place and not stops and made.made != made.data:
        made.diagnostics += _write(manifest, made.made)
        stops = stops or made.failed
    _tell(made, placed, style, quiet=quiet, stops=stops, in_place=in_place)
    sys.exit(EXIT_PROBLEMS if stops else 0)


def _table(overrides: str | None, platform_path: Path) -> tuple[PlacedTable | None, str, list[Diagnostic]]:
    """Return the entries with their place, and their name in messages; None and the faults where they are unsound."""
    from render.override import read_flux_table, read_json_table

    name = "fluxImageOverrides" if overrides is None else "--overrides"
    table = read_flux_table(platform_path) if overrides is None else read_json_table(overrides, name)
    return (None if table.failed else table.placed), name, table.diagnostics


def _write(path: Path, data: bytes) -> list[Diagnostic]:
    """Replace a file by its rewritten text, with its permissions; never through a link."""
    from render.catalog import reason_of, shown_path
    from render.diagnostics import Diagnostic, Location
    from render.writer import replace

    place = Location(shown_path(path))
    try:
        found = path.lstat()
        if stat.S_ISLNK(found.st_mode):
            hint = "name the file that the link leads to"
            return [Diagnostic(place, "R506", "the file is a symbolic link", cause="no write follows one", hint=hint)]
        if not stat.S_ISREG(found.st_mode):
            return [Diagnostic(place, "R508", "not a regular file", hint="leave `--in-place` out")]
        replace(os.fspath(path.parent), path.name, data, stat.S_IMODE(found.st_mode))
    except OSError as error:
        message = f"cannot write the file: {reason_of(error)}"
        return [Diagnostic(place, "R508", message, cause="it is as it was", hint="set the permissions, or make room")]
    return []


def _tell(made: Rewrite, placed: PlacedTable | None, style: str, *, quiet: bool, stops: bool, in_place: bool) -> None:
    """Print the product and the report."""
    from render.manifest import lines, summary
    from render.report import render_json

    if style == "json":
        click.echo(render_json(made.diagnostics, summary(made, placed, written=in_place and not stops)), nl=False)
        return
    print_report(made.diagnostics, 2, style)
    for line in () if quiet and not stops else lines(made, listed=style != "github", stops=stops):
        click.echo(line, err=True)
    if style != "github" and not in_place and not stops:
        # As text, which is what stands in for stdout where this command is called in-process.
        click.echo(made.made.decode(), nl=False)


@click.command(
    context_settings=CONTEXT,
    epilog="Examples:\n\n  render renovate > renovate.json\n\n  render renovate catalog --no-image-automation",
)
@catalog_argument
@platform_option()
@automation_option("Handle the images that Flux would automate, too.")
@format_option(REPORTS, "Form of the report.")
@fail_on_option()
@quiet_option
def renovate(catalog: Path, platform_path: Path, automation: bool, style: str, fail_on: str, quiet: bool) -> None:
    """Print a Renovate configuration for the charts of CATALOG, and for the images that Flux does not automate."""
    from render.renovate import OutsideError, configure, last_line, summary

    try:
        made = configure(catalog, platform_path, automation=automation)
    except OutsideError as error:
        raise click.UsageError(str(error)) from error
    stops = made.failed or (fail_on == "warning" and bool(made.diagnostics))
    if style == "json":
        from render.report import render_json

        click.echo(render_json(made.diagnostics, summary(made)), nl=False)
        sys.exit(EXIT_PROBLEMS if stops else 0)
    print_report(made.diagnostics, made.sources, style)
    if not stops:
        if style != "github":
            click.echo(made.text, nl=False)
        if not quiet:
            click.echo(last_line(made), err=True)
    sys.exit(EXIT_PROBLEMS if stops else 0)
