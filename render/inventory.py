"""A catalog and a platform in, every declared image with what becomes of it out."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from render.build import Build, build
from render.diagnostics import Diagnostic
from render.flux.image import Reference
from render.flux.overrides import Entry, accidental_matches, spelling_variants
from render.plan import paths
from render.plan.images import ImagePlan
from render.plan.service import ServicePlan

if TYPE_CHECKING:
    from render.override import TableFile

COLUMNS = ("service", "image", "at", "declared", "effective", "entries", "policy", "pinnedBy")


@dataclass(frozen=True, slots=True)
class Row:
    """One declared image of one service."""

    service: str
    image: str
    """`main`, or its name under `images`."""
    at: str
    """Where it stands, as a path; `container` of a plain workload, `postRenderers` for that shape."""
    declared: str
    effective: str
    entries: tuple[int, ...]
    """Indices of the override entries that hit it."""
    policy: str | None
    image_repository: str | None
    """The repository that is scanned."""
    pinned_by: str | None


@dataclass(slots=True)
class Inventory:
    """All images, and what is worth knowing of the table."""

    build: Build
    rows: list[Row] = field(default_factory=list)
    unused: list[int] = field(default_factory=list)
    """Entries that hit no declared image; most hit images that only charts know."""
    notes: list[Diagnostic] = field(default_factory=list)


def take_inventory(catalog: Path, platform_path: Path, overrides: TableFile | None = None) -> Inventory:
    """Render a catalog without writing, and collect its images; `overrides` replaces the platform's table."""
    rows: list[Row] = []
    declared: set[Reference] = set()

    def visit(plan: ServicePlan) -> None:
        for image in plan.images:
            rows.append(_row(plan.name, image))
            declared.add(image.reference)

    made = build(catalog, platform_path, visit=visit, overrides=overrides.entries if overrides else None)
    rows.sort(key=lambda row: row.service)
    inventory = Inventory(made, rows)
    platform = made.platform
    if platform is None:
        return inventory
    table = made.table
    used = {index for row in rows for index in row.entries}
    inventory.unused = [index for index in range(len(table)) if index not in used]
    if not made.failed:
        inventory.notes = _notes(made, table, declared, overrides)
        made.diagnostics = sorted({*made.diagnostics, *inventory.notes})
    return inventory


def _row(service: str, image: ImagePlan) -> Row:
    return Row(
        service=service,
        image=image.key or "main",
        at=", ".join(_where(image)) or ("container" if image.shape == "container" else "postRenderers"),
        declared=str(image.reference),
        effective=image.effective,
        entries=tuple(step.entry for step in image.trace),
        policy=image.policy.name if image.policy else None,
        image_repository=image.policy.image if image.policy else None,
        pinned_by=image.pinned_by or None,
    )


def _where(image: ImagePlan) -> list[str]:
    found = []
    for site in image.sites:
        prefix = "values" if site.in_object is None else f"extraObjects[{site.in_object}]"
        listed = list(site.parts.values()) or [site.path]
        found += [f"{prefix}.{paths.show(path)}" for path in listed]
    return found


def _notes(made: Build, table: list[Entry], images: set[Reference], file: TableFile | None) -> list[Diagnostic]:
    """Return what about the table would otherwise be found out in the cluster."""
    platform = made.platform
    assert platform is not None
    source, node = platform.source, paths.find(platform.root, ("registries", "imageOverrides"))
    if file is not None and file.source is not None:
        source, node = file.source, file.node
    distinct = sorted(images, key=str)
    notes = []

    def note(index: int, message: str, cause: str, hint: str) -> None:
        where = paths.find(node, (index,))
        notes.append(source.fault("R609", where, message, cause=cause, hint=hint, severity="warning"))

    for index, image in spelling_variants(table, distinct):
        note(
            index,
            f"`{table[index].name}` leaves `{image.name}` alone, which names the same image",
            "kustomize compares the spelling, and knows nothing of default registries",
            f"add an entry for `{image.name}`, or spell the image as the entry does",
        )
    for index, image in accidental_matches(table, distinct):
        note(
            index,
            f"`{table[index].name}` also rewrites `{image.name}`",
            "a `.` in a name is any character to kustomize",
            f"write `{table[index].name.replace('.', '[.]')}`",
        )
    for image in distinct:
        for index, entry in enumerate(table) if image.digest is not None else ():
            if entry.name == image.name and entry.new_tag and not entry.digest:
                note(
                    index,
                    f"`{image.name}` loses its digest to the entry's `newTag`",
                    f"`{image}` is pinned by its digest, and a new tag drops it",
                    "add the digest of the new tag to the entry",
                )
    return notes


def render_rows(inventory: Inventory, style: str) -> str:
    """Return the rows as `csv`, `markdown` or a plain `table`."""
    cells = [[_cell(row, column) for column in COLUMNS] for row in inventory.rows]
    if style == "csv":
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerows([COLUMNS, *cells])
        return out.getvalue()
    if style == "markdown":
        lines = ["| " + " | ".join(row) + " |" for row in (list(COLUMNS), ["---"] * len(COLUMNS), *cells)]
        return "\n".join(lines) + "\n"
    widths = [max(map(len, column)) for column in zip(COLUMNS, *cells, strict=True)]
    rows = [list(COLUMNS), *cells]
    return "".join("  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() + "\n" for row in rows)


def _cell(row: Row, column: str) -> str:
    value = as_json([row])[0][column]
    if isinstance(value, list):
        return ",".join(map(str, value)) or "-"
    return "-" if value is None else str(value)


def as_json(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Return rows as the documented JSON objects."""
    return [
        {
            "service": row.service,
            "image": row.image,
            "at": row.at,
            "declared": row.declared,
            "effective": row.effective,
            "entries": list(row.entries),
            "policy": row.policy,
            "imageRepository": row.image_repository,
            "pinnedBy": row.pinned_by,
        }
        for row in rows
    ]
