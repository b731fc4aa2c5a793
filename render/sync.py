"""A catalog and the tree that the image bot has moved on in, the catalog's files with the bot's versions in them out.

Only the scalars that hold a version change: their places are known from reading, and the text around them is never
written anew. What would not build afterwards is refused, and then nothing is written.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, cast

from render.build import Build
from render.catalog import Definition, read_catalog, reason_of
from render.diagnostics import Diagnostic, Location
from render.files import below, read_bytes
from render.model import schema
from render.model.read import INVALID, Reader
from render.plan.context import Context, Report
from render.plan.kept import judge_all, keep_all, refuse, refuse_lost
from render.structs import field, struct
from render.sync_clusters import Cluster, Reach, declared, open_cluster, reach
from render.sync_edits import Change, Edit, add_change, shown, version
from render.tree import conflict, unreadable
from render.writer import replace
from render.yaml.source import Mapping, Source, parse
from render.yaml.splice import SpliceError, Splicer

if TYPE_CHECKING:
    from render.model.service import Service

_BOM = b"\xef\xbb\xbf"


@struct()
class FileChange:
    """One file of the catalog, before and after."""

    path: str
    before: str
    after: str


@struct()
class Sync:
    """What is to be written, and what stands in the way."""

    build: Build
    changes: list[Change] = field(default_factory=list)
    files: list[FileChange] = field(default_factory=list)
    reached: list[Reach] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    """What is wrong; an error among them stops everything."""
    left: list[Diagnostic] = field(default_factory=list)
    """Errors of files that are left alone, while the others are written: an anchor repeats the version."""
    sources: int = 0
    """Files read."""

    @property
    def failed(self) -> bool:
        """Whether nothing may be written."""
        return any(fault.severity == "error" for fault in self.diagnostics)


def plan_sync(
    catalog: Path,
    platform_path: Path,
    *,
    out: Path | None = None,
    automation: bool = True,
    only: frozenset[str] = frozenset(),
    also: tuple[Path, ...] = (),
) -> Sync:
    """Return what `sync` would write; reads, and writes nothing.

    `out` is the tree in place of the platform's `root`; `only` leaves out all other services; `also` are platform
    files of other clusters of the same catalog. A service is refused (R510) where the committed value belongs to
    another image or is decided by an override, and (R512) where its place cannot be written or the result not built.
    """
    cluster = open_cluster(catalog, platform_path, out, automation=automation)
    others = [open_cluster(catalog, path, None, automation=True) for path in also]
    made = Sync(cluster.made, sources=cluster.made.sources + len(others))
    for one in (cluster, *others):
        made.diagnostics += (fault for fault in one.made.diagnostics if fault.code != "R510")
    made.diagnostics = sorted(set(made.diagnostics))
    if made.failed:
        return made
    for file in read_catalog(catalog):
        edits = []
        for index, definition in enumerate(file.definitions):
            name = definition.service.name
            if _is_there(cluster.context, definition) and (not only or name in only):
                edit = _edit(made, cluster.context, index, definition)
                edits += [edit] if edit.changes else []
        if edits and file.path is not None:
            _change(made, cluster, others, file.path, edits)
    for one in (cluster, *others):
        made.diagnostics += _unread(one)
    made.diagnostics = sorted(set(made.diagnostics))
    made.left.sort()
    made.changes.sort(key=lambda change: change.service)
    made.reached.sort(key=lambda one: (one.change.service, one.cluster, one.platform))
    return made


def write_sync(made: Sync) -> list[Diagnostic]:
    """Write the changed files, each at once; return why not all could be written."""
    for file in made.files:
        # A link inside the catalog stays a link.
        path = Path(os.path.realpath(file.path))
        try:
            data = read_bytes(path)
            if data.removeprefix(_BOM) != file.before.encode():
                return [_unwritten(file.path, "it has changed since it was read")]
            mark = _BOM if data.startswith(_BOM) else b""
            replace(os.fspath(path.parent), path.name, mark + file.after.encode(), stat.S_IMODE(path.stat().st_mode))
        except OSError as error:
            return [_unwritten(file.path, reason_of(error))]
    return []


def _unwritten(path: str, reason: str) -> Diagnostic:
    return Diagnostic(
        Location(path),
        "R512",
        f"cannot write the file: {reason}",
        cause="the files before it are written, those after it are not; none is half-written",
        hint="make room or set the permissions, then run `render sync` again",
    )


def _unread(cluster: Cluster) -> Iterator[Diagnostic]:
    """Yield the files of a tree of which it is not known what the bot wrote there."""
    committed = cluster.context.committed
    if committed is None:
        return
    for path, why in committed.unread.items():
        target = below(committed.top, path)
        yield conflict(target, why) if isinstance(why, str) else unreadable(target, why)


def _is_there(context: Context, definition: Definition) -> bool:
    """Whether a service may have versions in the tree: a disabled one has while its files are there."""
    service = definition.service
    return service.enabled or (context.committed is not None and context.committed.has(service.name))


def _edit(made: Sync, context: Context, index: int, definition: Definition) -> Edit:
    """Return what is to change in one service; what cannot be synced is reported."""
    service = definition.service.name
    edit = Edit(index, definition)
    report = Report(definition.source)
    images = declared(context, definition, report)
    verdicts, lost = judge_all(context, service, images)
    for verdict in verdicts:
        if verdict.wanted is not None:
            fault = add_change(edit, verdict.image, verdict.wanted)
            report.items += [fault] if fault is not None else []
        elif verdict.refusal is not None:
            refuse(service, verdict, report)
    for found in lost:
        refuse_lost(service, found, images, report)
    faults = [fault for fault in report.items if fault.severity == "error"]
    if faults and not definition.service.enabled:
        # No build looks at it, so nothing it says may stop the others.
        return Edit(index, definition)
    edit.known = {(fault.code, fault.message) for fault in faults}
    made.diagnostics += faults
    return edit


def _change(made: Sync, cluster: Cluster, others: list[Cluster], path: str, edits: list[Edit]) -> None:
    """Change one file, and prove that it then says what it is to say; otherwise report why not."""
    source = edits[0].definition.source
    splicer = Splicer(source.text)
    changes = [change for edit in edits for change in edit.changes]
    held = [fault for change in changes if (fault := _behind(source, splicer, change)) is not None]
    if held:
        made.left += held
        return
    faults = [fault for change in changes if (fault := _in_place(source, splicer, change)) is not None]
    if not faults:
        text = splicer.splice({place: value for change in changes for place, value in change.values.items()})
        definitions = _read(path, text, edits[0].definition.label)
        for edit in edits:
            faults += _prove(cluster.context, edit, definitions[edit.index] if definitions else None)
    made.diagnostics += faults
    if faults:
        return
    made.files.append(FileChange(path, source.text, text))
    made.changes += changes
    for edit in edits:
        for other in others:
            made.reached += reach(other, edit, definitions[edit.index])


def _behind(source: Source, splicer: Splicer, change: Change) -> Diagnostic | None:
    """Return that an anchor repeats what would change, if one does."""
    for where in change.values:
        anchor = splicer.anchor_of(where)
        if anchor is not None:
            return source.fault(
                "R512",
                change.node,
                f"`{change.label}` stands behind the anchor `&{anchor.name}`, which is used elsewhere",
                cause=f"`{shown(change.new)}` would hold wherever `*{anchor.name}` stands; the file is left alone",
                hint=f"write `{version(change.new)}` there yourself, or write the value out in both places",
                related=((Location(source.path, *anchor.used), "used here"),),
            )
    return None


def _in_place(source: Source, splicer: Splicer, change: Change) -> Diagnostic | None:
    """Return why the scalars of an image cannot be changed where they stand."""
    try:
        splicer.splice(change.values)
    except SpliceError as error:
        return _cannot(source, change, str(error))
    return None


def _cannot(
    source: Source, change: Change, cause: str, hint: str = "", related: tuple[tuple[Location, str], ...] = ()
) -> Diagnostic:
    return source.fault(
        "R512",
        change.node,
        f"`{change.label}` cannot take `{shown(change.new)}` over from the tree",
        cause=cause,
        hint=hint or f"write `{version(change.new)}` there by hand",
        related=related,
    )


def _read(path: str, text: str, label: str) -> list[Definition]:
    """Return the definitions of a changed file; none when it does not say anything sensible any more."""
    source = Source(path, text)
    documents, faults = parse(source)
    check = schema.check("service")
    definitions = []
    for document in documents:
        value = Reader(source, faults).read(check, document.root, "")
        if value is INVALID or type(document.root) is not Mapping:
            return []
        definitions.append(Definition(cast("Service", value), document.root, source, label))
    return definitions


def _prove(context: Context, edit: Edit, after: Definition | None) -> Iterator[Diagnostic]:
    """Yield what a build would say of the changed service, and that it does not say what was written."""
    source = edit.definition.source
    if after is None:
        yield _cannot(source, edit.changes[0], "the file would not be valid any more")
        return
    report = Report(after.source)
    images = declared(context, after, report)
    keep_all(context, after.service.name, images, report)
    errors = [one for one in report.items if one.severity == "error" and (one.code, one.message) not in edit.known]
    made = {image.label: image for image in images.plans}
    for change in edit.changes:
        mine = [one for one in errors if f"`{change.label}`" in one.message] or errors
        if mine:
            place = mine[0].location
            related = ((place, "that would be at fault"),) if place.line != change.node.line else ()
            cause = "a build would refuse it: " + mine[0].message.removeprefix(f"`{change.label}`: ")
            yield _cannot(source, change, cause, mine[0].hint, related)
            continue
        image = made[change.label]
        if (image.declared or image.reference) != change.new:
            yield _cannot(source, change, "it would not be read as that version")
        change.changes_policy = image.policy != change.policy
