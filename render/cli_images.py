"""The commands about images and overrides: options in, calls and streams out."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from render.diagnostics import Diagnostic
    from render.override import TableFile

_PATH = click.Path(path_type=Path)


def _report(diagnostics: Sequence[Diagnostic]) -> None:
    """Print diagnostics to stderr."""
    from render.report import render_report

    colour = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
    click.echo(render_report(diagnostics, "full", colour=colour), nl=False, err=True, color=True)


@click.command(
    epilog="Examples:\n\n  render images\n\n  render images --platform platform-airgap.yaml --format markdown"
)
@click.argument("catalog", default="catalog", type=_PATH)
@click.option(
    "--platform", "platform_path", default="platform.yaml", show_default=True, type=_PATH, help="The platform file."
)
@click.option("--overrides", "overrides_path", type=_PATH, help="Show what this override table would do instead.")
@click.option(
    "--format",
    "style",
    type=click.Choice(("table", "json", "csv", "markdown")),
    default="table",
    show_default=True,
    help="Form of the list.",
)
@click.option("--only", multiple=True, metavar="SERVICE", help="Show the images of this service (repeatable).")
@click.option(
    "--fail-on",
    type=click.Choice(("error", "warning")),
    default="error",
    show_default=True,
    help="What makes the exit code 1.",
)
def images(
    catalog: Path, platform_path: Path, overrides_path: Path | None, style: str, only: tuple[str, ...], fail_on: str
) -> None:
    """Show each declared image: where it stands, what it becomes, by which override, and what updates it."""
    from render.inventory import as_json, render_rows, take_inventory
    from render.override import read_table

    table = None
    if overrides_path is not None:
        table = read_table(overrides_path)
        _stop_on_faults(table)
    found = take_inventory(catalog, platform_path, table)
    diagnostics = found.build.diagnostics
    for name in only:
        if name not in found.build.names and not found.build.failed:
            raise click.UsageError(f"--only {name}: there is no such service in the catalog")
    if only:
        found.rows = [row for row in found.rows if row.service in only]
    if not found.build.failed:
        if style == "json":
            product = {"version": 1, "images": as_json(found.rows), "unusedEntries": found.unused}
            click.echo(json.dumps(product, indent=2, ensure_ascii=False))
        else:
            click.echo(render_rows(found, style), nl=False)
    if diagnostics:
        _report(diagnostics)
    if found.unused and not only:
        names = [found.build.table[index].name for index in found.unused]
        click.echo(f"entries that hit no declared image (a chart may bring it): {', '.join(names)}", err=True)
    automated = sum(row.policy is not None for row in found.rows)
    click.echo(f"{len(found.rows)} images, {automated} automated", err=True)
    sys.exit(1 if found.build.failed or (fail_on == "warning" and diagnostics) else 0)


def _stop_on_faults(table: TableFile) -> None:
    if table.diagnostics:
        _report(table.diagnostics)
    if table.failed:
        sys.exit(1)


@click.command(
    epilog="Examples:\n\n  render override nginx:1.27 --platform platform-airgap.yaml\n\n"
    "  helm template web ./chart | render override --manifest - --overrides table.yaml"
)
@click.argument("images", nargs=-1, metavar="IMAGE…")
@click.option("--overrides", "overrides_path", type=_PATH, help="A file with the table.")
@click.option("--platform", "platform_path", type=_PATH, help="A platform file, for its `registries.imageOverrides`.")
@click.option(
    "--manifest", type=click.Path(path_type=Path, allow_dash=True), help="Rewrite these manifests, and print them."
)
@click.option(
    "--format",
    "style",
    type=click.Choice(("text", "json")),
    default="text",
    show_default=True,
    help="Form of the answer.",
)
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
    from render.override import as_json, predict, read_table

    if (overrides_path is None) == (platform_path is None):
        raise click.UsageError("give the table by either --overrides or --platform")
    if bool(images) == (manifest is not None):
        raise click.UsageError("give either images or --manifest")
    table = read_table(overrides_path or platform_path or Path(), lint=not no_lint)
    _stop_on_faults(table)
    if manifest is not None:
        _rewrite(table, manifest)
        return
    predictions = predict(table.entries, images)
    if style == "json":
        click.echo(json.dumps(as_json(predictions), indent=2, ensure_ascii=False))
    else:
        for one in predictions:
            click.echo(f"{one.declared} -> {one.outcome.text}" if one.outcome else f"{one.declared}: {one.failure}")
            for step in one.outcome.trace if one.outcome else ():
                entry = table.entries[step.entry]
                click.echo(f"  entry {step.entry} `{entry.name}`: {step.before} -> {step.after}")
    sys.exit(1 if any(one.outcome is None for one in predictions) else 0)


def _rewrite(table: TableFile, manifest: Path) -> None:
    from render.catalog import read_file, shown_path
    from render.override import rewrite_manifests
    from render.yaml.source import decode

    if str(manifest) == "-":
        source, faults = decode("<stdin>", sys.stdin.buffer.read())
    else:
        source, faults = read_file(manifest, shown_path(manifest))
    text = ""
    if not faults:
        text, changes, faults = rewrite_manifests(source, table.entries)
    if faults:
        _report(faults)
        sys.exit(1)
    click.echo(text, nl=False)
    click.echo(f"{len(changes)} images rewritten", err=True)
