"""A catalog and a platform in, every declared image with what becomes of it out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from render.build import Build, build
from render.plan import paths
from render.plan.images import WHOLE_SHAPES, ImagePlan
from render.plan.table_notes import unseen_key
from render.progress import Step
from render.structs import field, struct

if TYPE_CHECKING:
    from render.plan.service import ServicePlan
    from render.plan.table_notes import PlacedTable

COLUMNS = ("service", "image", "at", "declared", "effective", "entries", "policy", "imageRepository", "pinnedBy")
"""The columns of a list, named as the fields of the JSON rows."""
STYLES = ("table", "json", "csv", "markdown")


@struct(frozen=True)
class Row:
    """One declared image of one service."""

    service: str
    image: str
    """`main`, or its name under `images`."""
    at: str
    """Where it stands, as paths; `container` of a plain workload, `containerDisk` or `dataVolume` of a machine,
    `postRenderers` for that shape."""
    declared: str
    effective: str
    entries: tuple[int, ...]
    """Indices of the override entries that hit it."""
    policy: str | None
    """Name of its ImagePolicy and ImageRepository."""
    image_repository: str | None
    """The repository that is scanned."""
    pinned_by: str | None
    """`pin`, `postRenderers`, or the entry that decides the version."""


class Unreached(NamedTuple):
    """An image that no post-renderer reaches where it stands."""

    service: str
    image: str
    at: str
    is_written: bool
    """Whether the effective reference is written there (`reach: values`)."""


@struct()
class Inventory:
    """All images, and what is worth knowing of the table."""

    build: Build
    rows: list[Row] = field(default_factory=list)
    unused: list[int] = field(default_factory=list)
    """Entries that hit no declared image; most hit images that only charts know."""
    unreached: list[Unreached] = field(default_factory=list)

    def keep(self, services: Sequence[str]) -> None:
        """Leave out what does not belong to one of the services."""
        self.rows = [row for row in self.rows if row.service in services]
        self.unreached = [one for one in self.unreached if one.service in services]


def take_inventory(
    catalog: Path, platform_path: Path, overrides: PlacedTable | None = None, step: Step | None = None
) -> Inventory:
    """Render a catalog without writing, and collect its images; `overrides` replaces the platform's table.

    The catalog is taken as it is written: versions that the image bot has committed are not looked at. Nothing is
    collected from a catalog with errors, which are in the build's diagnostics.
    """
    rows: list[Row] = []
    unreached: list[Unreached] = []

    def visit(plan: ServicePlan) -> None:
        for image in plan.images:
            rows.append(_row(plan.name, image))
            key = "" if image.reach_values or not image.in_release else unseen_key(image)
            if image.reach_values or key:
                unreached.append(
                    Unreached(plan.name, rows[-1].image, f"values.{key}" if key else rows[-1].at, image.reach_values)
                )

    made = build(catalog, platform_path, visit=visit, overrides=overrides, step=step)
    if made.failed:
        return Inventory(made)
    used = {index for row in rows for index in row.entries}
    unused = [index for index in range(len(made.table)) if index not in used]
    # The images of a service keep their order: the main one first.
    rows.sort(key=lambda row: row.service)
    return Inventory(made, rows, unused, sorted(unreached))


def _row(service: str, image: ImagePlan) -> Row:
    return Row(
        service=service,
        image=image.key or "main",
        at=", ".join(_where(image)) or (image.shape if image.shape in WHOLE_SHAPES else "postRenderers"),
        declared=str(image.declared or image.reference),
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


def notes(inventory: Inventory, *, unused: bool = True) -> list[str]:
    """Return what a list of images does not show, as lines for people; `unused` tells of entries without an image."""
    lines = []
    for one in inventory.unreached:
        told = "the effective image is written there" if one.is_written else "say `reach: values` if it is run there"
        lines.append(f"no entry reaches `{one.at}` of {one.service} ({one.image}): {told}")
    if inventory.unused and unused:
        names = ", ".join(inventory.build.table[index].name for index in inventory.unused)
        lines.append(f"entries that hit no declared image (a chart may bring it): {names}")
    automated = sum(row.policy is not None for row in inventory.rows)
    count = len(inventory.rows)
    return [*lines, f"{count} image{'' if count == 1 else 's'}, {automated} automated"]


def render_rows(rows: Sequence[Row], style: str) -> str:
    """Return rows as `csv`, `markdown` or a plain `table`; an absent value is empty in CSV, and `-` elsewhere."""
    if style == "csv":
        return _csv(rows)
    cells = [[_cell(value) for value in row.values()] for row in as_json(rows)]
    if style == "markdown":
        escaped = [[cell.replace("|", "\\|") for cell in row] for row in cells]
        lines = ["| " + " | ".join(row) + " |" for row in (COLUMNS, ["---"] * len(COLUMNS), *escaped)]
        return "\n".join(lines) + "\n"
    shown = [COLUMNS, *cells]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    return "".join("  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() + "\n" for row in shown)


def _csv(rows: Sequence[Row]) -> str:
    import csv
    import io

    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in as_json(rows):
        writer.writerow(" ".join(map(str, value)) if isinstance(value, list) else value for value in row.values())
    return out.getvalue()


def _cell(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "-"
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


def summary(inventory: Inventory) -> dict[str, object]:
    """Return all of an inventory but its diagnostics as the documented JSON object."""
    unreached = [
        {"service": one.service, "image": one.image, "at": one.at, "written": one.is_written}
        for one in inventory.unreached
    ]
    return {"images": as_json(inventory.rows), "unusedEntries": inventory.unused, "unreached": unreached}
