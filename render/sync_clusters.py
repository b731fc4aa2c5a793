"""A catalog and platform files in, what each cluster pulls before and after a change out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from render.build import Build, build
from render.catalog import Definition
from render.committed import Committed
from render.diagnostics import Diagnostic
from render.files import StrPath, below, repository
from render.flux.overrides import Table
from render.plan.context import Context, Report
from render.plan.images import Images
from render.plan.kept import keep_all
from render.plan.policy import Policies
from render.plan.sources import Charts
from render.structs import struct
from render.sync_edits import Change, Edit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from render.catalog import PlatformFile


@struct()
class Reach:
    """What another cluster of the same catalog gets from a change."""

    change: Change
    cluster: str
    platform: str
    """Path of its platform file."""
    before: str
    """The image that it pulls now."""
    after: str
    refused: str = ""
    """Why that cluster would not build any more; empty when it would."""


@struct()
class Cluster:
    """One platform file with its rendering."""

    made: Build
    planned: Context | None
    """None without a sound platform file: the build has failed then."""
    path: Path

    @property
    def context(self) -> Context:
        """What its services are planned in."""
        assert self.planned is not None
        return self.planned


def open_cluster(catalog: Path, path: Path, out: Path | None, *, automation: bool) -> Cluster:
    """Render a catalog for the cluster of a platform file; `out` is its tree in place of the platform's `root`."""

    def root(file: PlatformFile) -> StrPath:
        return out if out is not None else below(repository(path), file.platform.root)

    made = build(catalog, path, automation=automation, root=root)
    platform = made.platform
    committed = Committed(made.root) if made.root is not None else None
    entries = (platform.platform.registries.image_overrides or []) if platform is not None else []
    context = Context(platform, entries, Table(made.table), automation, committed) if platform is not None else None
    return Cluster(made, context, path)


def declared(context: Context, definition: Definition, report: Report) -> Images:
    """Return the images of a service as a build has them before the bot's values are looked at."""
    images = Images(context, definition, Charts(context, definition, report).entry(), report)
    images.declare()
    policies = Policies(context, definition.service.name, report)
    for plan in images.plans:
        plan.policy = policies.plan(plan)
    return images


def reach(other: Cluster, edit: Edit, after: Definition) -> Iterator[Reach]:
    """Yield what another cluster would pull in place of what it pulls now."""
    old, faults = _effective(other.context, edit.definition)
    new, errors = _effective(other.context, after)
    assert other.made.platform is not None
    for change in edit.changes:
        before, now = old.get(change.label, ""), new.get(change.label, "")
        refused = ""
        if not faults:
            refused = next((one.message for one in errors if f"`{change.label}`" in one.message), "")
        if before != now or refused:
            name = other.made.platform.platform.cluster
            yield Reach(change, name, other.made.platform.source.path, before, now, refused)


def _effective(context: Context, definition: Definition) -> tuple[dict[str, str], list[Diagnostic]]:
    """Return what a cluster pulls for each image of a service, and what a build says against it."""
    report = Report(definition.source)
    images = declared(context, definition, report)
    keep_all(context, definition.service.name, images, report)
    faults = [fault for fault in report.items if fault.severity == "error"]
    return {image.label: image.effective for image in images.plans}, faults
