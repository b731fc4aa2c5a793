"""The commands about images and overrides: options in, calls and streams out."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from render.cli_options import (
    CONTEXT,
    PATH,
    PATH_OR_DASH,
    catalog_argument,
    fail_on_option,
    format_option,
    only_option,
    platform_option,
    print_report,
)
from render.progress import progress

if TYPE_CHECKING:
    from render.override import TableFile

EXIT_PROBLEMS = 1


@click.command(
    context_settings=CONTEXT,
    epilog="Examples:\n\n  render images\n\n  render images --platform platform-airgap.yaml --format markdown",
)
@catalog_argument
@platform_option()
@click.option(
    "--overrides",
    "overrides_path",
    metavar="FILE",
    type=PATH,
    help="Show what this override table would do in place of the platform's.",
)
@only_option("Show the images")
@format_option(("table", "json", "csv", "markdown"), "Form of the list.")
@fail_on_option()
def images(
    catalog: Path, platform_path: Path, overrides_path: Path | None, only: tuple[str, ...], style: str, fail_on: str
) -> None:
    """Show each declared image: where it stands, what it becomes, by which overrides, and what updates it."""
    from render.inventory import Inventory, notes, render_rows, summary, take_inventory
    from render.override import read_table
    from render.report import render_json

    table = None if overrides_path is None else read_table(overrides_path)
    if table is not None and table.failed:
        found = None
        diagnostics, checked = table.diagnostics, 1
    else:
        with progress("planning services") as step:
            found = take_inventory(catalog, platform_path, table.placed if table else None, step)
        diagnostics = sorted({*found.build.diagnostics, *(table.diagnostics if table else ())})
        checked = found.build.sources + (table is not None)
    is_sound = found is not None and not found.build.failed
    if found is not None and is_sound:
        for name in only:
            if name not in found.build.names:
                raise click.UsageError(f"--only {name}: there is no such service in the catalog")
        if only:
            found.keep(only)
    if style == "json":
        from render.build import Build

        click.echo(render_json(diagnostics, summary(found or Inventory(Build()))), nl=False)
    else:
        if found is not None and is_sound:
            click.echo(render_rows(found.rows, style), nl=False)
        print_report(diagnostics, checked)
    if found is not None and is_sound:
        for line in notes(found, unused=not only):
            click.echo(line, err=True)
    sys.exit(EXIT_PROBLEMS if not is_sound or (fail_on == "warning" and diagnostics) else 0)


@click.command(
    context_settings=CONTEXT,
    epilog="Examples:\n\n  render override nginx:1.27 --platform platform-airgap.yaml\n\n"
    "  helm template web ./chart | render override --manifest - --overrides table.yaml",
)
@click.argument("images", nargs=-1, metavar="[IMAGE]…")
@click.option(
    "--overrides",
    "overrides_path",
    metavar="FILE",
    type=PATH,
    help="A file with the table: a list of entries, or an object with `images` or `registries.imageOverrides`.",
)
@click.option(
    "--platform",
    "platform_path",
    metavar="FILE",
    type=PATH,
    help="A platform file, for its `registries.imageOverrides`.",
)
@click.option(
    "--manifest",
    metavar="FILE",
    type=PATH_OR_DASH,
    help="Rewrite these manifests (`-`: standard input), and print them.",
)
@format_option(("text", "json"), "Form of the answer.")
@click.option(
    "--no-lint", is_flag=True, help="Predict also for a table that `render` refuses, as kustomize would run it."
)
def override(
    images: tuple[str, ...],
    overrides_path: Path | None,
    platform_path: Path | None,
    manifest: Path | None,
    style: str,
    no_lint: bool,
) -> None:
    """Tell what kustomize makes of any IMAGE, or of manifests, under an override table; needs no catalog."""
    from render.override import as_json, as_text, predict, read_table

    path = overrides_path or platform_path
    if path is None or (overrides_path is not None and platform_path is not None):
        raise click.UsageError("give the table by either --overrides or --platform")
    if bool(images) == (manifest is not None):
        raise click.UsageError("give either images or --manifest")
    if manifest is not None and style == "json":
        raise click.UsageError("--format json is for images; --manifest prints YAML")
    table = read_table(path, lint=not no_lint, may_be_absent=platform_path is not None)
    print_report(table.diagnostics, 1)
    if table.failed:
        sys.exit(EXIT_PROBLEMS)
    if manifest is not None:
        _rewrite(table, manifest)
        return
    predictions = predict(table.entries, images)
    if style == "json":
        click.echo(json.dumps(as_json(predictions), indent=2, ensure_ascii=False))
    else:
        click.echo(as_text(predictions, table.entries), nl=False)
    sys.exit(EXIT_PROBLEMS if any(one.outcome is None for one in predictions) else 0)


def _rewrite(table: TableFile, manifest: Path) -> None:
    from render.override import read_manifests, rewrite_manifests
    from render.report import count

    source, faults = read_manifests(manifest, sys.stdin.buffer)
    made = None
    if not faults:
        made, faults = rewrite_manifests(source, table.entries)
    if made is None:
        print_report(faults, 1)
        sys.exit(EXIT_PROBLEMS)
    click.echo(made.text, nl=False)
    click.echo(f"{count(len(made.changes), 'image')} rewritten", err=True)
