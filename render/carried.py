"""Folders of manifests in, the HelmReleases in them that do not carry the platform's override table out.

Generated files are looked at like those that people write; nothing is built or patched, so what a kustomize patch adds
is not seen.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from render.build import HEADER
from render.catalog import SUFFIXES, reason_of, shown_path
from render.committed import TABLE_COMMENT
from render.diagnostics import Diagnostic, Location
from render.files import StrPath
from render.flux.overrides import Entry
from render.patterns import lazy
from render.plan import paths
from render.structs import field, struct
from render.yaml.emit import Commented
from render.yaml.source import Mapping, Node, Scalar, Source, parse
from render.yaml.source import Sequence as SequenceNode

if TYPE_CHECKING:
    from render.plan.service import ServicePlan
    from render.plan.table_notes import PlacedTable

GROUP = "helm.toolkit.fluxcd.io/"
_COMMENT = lazy(rf"\s*# {re.escape(TABLE_COMMENT)}\s*\Z")


@struct()
class Emitted:
    """Sees the plan of each service, and keeps what its release emits of the table."""

    by_release: dict[tuple[str, str], list[Entry]] = field(default_factory=dict)
    """Entries by namespace and name."""

    def __call__(self, plan: ServicePlan) -> None:
        """Take the plan of a service."""
        for template, context in plan.apps.get("helmrelease", ()):
            if template == "helmrelease":
                key = (context["namespace"], context["name"])
                self.by_release[key] = _planned(context.get("postRenderers") or ())


def _planned(renderers: Iterable[Any]) -> list[Entry]:
    for one in renderers:
        if type(one) is Commented and one.comment == TABLE_COMMENT:
            value: Any = one.value
            images = value["kustomize"]["images"]
            return [Entry.of({key: text for key, text in image.items() if text}) for image in images]
    return []


@struct()
class Carried:
    """What was found in the folders."""

    releases: int = 0
    files: int = 0
    """Files that name a HelmRelease."""
    faulty: int = 0
    """Releases that do not carry the table as they should."""
    diagnostics: list[Diagnostic] = field(default_factory=list)

    @property
    def line(self) -> str:
        """The last line of a run."""
        told = f"{self.releases} HelmRelease{'' if self.releases == 1 else 's'} checked"
        return f"{told}, {self.faulty} without the override table as it is" if self.releases else told


def check_trees(
    folders: Iterable[StrPath], table: PlacedTable, emitted: Emitted, root: StrPath | None = None
) -> Carried:
    """Check every HelmRelease below the folders, hidden ones left out.

    A release that the catalog renders must carry what its service emits, any other the whole table. `root` is the
    output root of the build: generated files beside it belong to other clusters, and are passed over when it lies in
    the folder that is searched.
    """
    made = Carried()
    for folder in map(Path, folders):
        own = None
        if root is not None and _real(root).is_relative_to(_real(folder)):
            own = _real(root)
        for path in _files(folder, made):
            _check_file(path, table, emitted, own, made)
    return made


def _real(path: StrPath) -> Path:
    return Path(os.path.realpath(path))


def _files(folder: Path, made: Carried) -> Iterator[Path]:
    """Yield the YAML files below a folder, sorted; the templates of charts are no manifests."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        hint = "name the folder of the repository"
        told = f"cannot read the folder: {reason_of(error)}"
        made.diagnostics.append(Diagnostic(Location(shown_path(folder)), "R001", told, hint=hint))
        return
    is_chart = any(entry.name == "Chart.yaml" for entry in entries)
    for entry in entries:
        path = folder / entry.name
        if entry.name.startswith(".") or (is_chart and entry.name in ("templates", "charts")):
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from _files(path, made)
        elif entry.name.endswith(SUFFIXES) and os.path.isfile(path):
            yield path


def _check_file(path: Path, table: PlacedTable, emitted: Emitted, own: Path | None, made: Carried) -> None:
    shown = shown_path(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        told = f"cannot read the file: {reason_of(error)}"
        made.diagnostics.append(Diagnostic(Location(shown), "R001", told, hint="make it readable"))
        return
    if b"HelmRelease" not in data:
        return
    text = data.decode("utf-8", errors="replace").removeprefix("\ufeff")
    is_generated = HEADER.match(text.partition("\n")[0].rstrip()) is not None
    if is_generated and own is not None and not _real(path).is_relative_to(own):
        return
    source = Source(shown, text)
    documents, faults = parse(source)
    made.files += 1
    if not documents:
        made.diagnostics += [_unread(source, fault) for fault in faults[:1]]
        return
    for document in documents:
        for release in _releases(document.root):
            made.releases += 1
            found = _check(source, release, table, emitted)
            if found is not None:
                made.faulty += 1
                made.diagnostics.append(found)


def _unread(source: Source, fault: Diagnostic) -> Diagnostic:
    return Diagnostic(
        fault.location,
        "R610",
        "the file names a HelmRelease and cannot be read",
        "warning",
        fault.message,
        "correct the file, or keep what is no manifest out of the folder",
        source.snippet(fault.location.line),
    )


def _releases(node: Node) -> Iterator[Mapping]:
    """Yield the HelmReleases of a document; a patch of one, which names no chart, is none."""
    if type(node) is not Mapping:
        return
    if (node.text("kind") or "").endswith("List"):
        items = node.get("items")
        for item in items.items if type(items) is SequenceNode else ():
            yield from _releases(item)
    elif node.text("kind") == "HelmRelease" and (node.text("apiVersion") or "").startswith(GROUP):
        spec = node.get("spec")
        if type(spec) is Mapping and (spec.get("chart") or spec.get("chartRef")):
            yield node


class _Item(NamedTuple):
    """One post-renderer of a release."""

    node: Node
    entries: list[Entry]
    is_marked: bool
    """Whether it stands under the comment line of the table."""


def _check(source: Source, release: Mapping, table: PlacedTable, emitted: Emitted) -> Diagnostic | None:
    name, namespace = (paths.find(release, ("metadata", key)) for key in ("name", "namespace"))
    key = tuple(node.text if type(node) is Scalar else "" for node in (namespace, name))
    expected = emitted.by_release.get(key, table.entries)  # type: ignore[arg-type]
    told = f"the HelmRelease `{key[1]}`"
    listed = paths.find(release, ("spec", "postRenderers"))
    items = [_item(source, node) for node in listed.items] if type(listed) is SequenceNode else []
    stale = next((item for item in items if item.is_marked and item.entries != expected), None)
    if not expected or stale is not None:
        return _outdated(source, told, stale, expected, table) if stale is not None else None
    places = [index for index, item in enumerate(items) if item.entries == expected]
    if places and places[-1] == len(items) - 1:
        return None
    if places:
        return source.fault(
            "R610",
            items[places[-1]].node,
            f"{told} carries the override table before other post-renderers",
            cause="what they write passes no override",
            hint="move the table to the end of `spec.postRenderers`",
            related=((source.place(items[-1].node), "the last post-renderer"),),
        )
    alike = next((item for item in reversed(items) if _is_alike(item.entries, expected)), None)
    if alike is not None:
        return _outdated(source, told, alike, expected, table)
    where = listed if items else name
    count = len(expected)
    return source.fault(
        "R610",
        where,
        f"{told} does not carry the override table",
        cause="its images are pulled from where the chart says",
        hint=f"end `spec.postRenderers` with `# {TABLE_COMMENT}` and an item `kustomize.images` of the table's "
        + ("one entry" if count == 1 else f"{count} entries"),
        related=((table.source.place(table.node), "the table"),),
    )


def _item(source: Source, node: Node) -> _Item:
    images = paths.find(node, ("kustomize", "images"))
    entries = []
    for item in images.items if type(images) is SequenceNode else ():
        if type(item) is Mapping:
            texts = {k.text: v.text for k, v in item.entries if type(v) is Scalar and not v.is_null}
            entries.append(Entry.of(texts))
    return _Item(node, entries, _COMMENT.match(source.snippet(node.line - 1)) is not None)


def _is_alike(entries: Sequence[Entry], expected: Sequence[Entry]) -> bool:
    """Whether entries look like an older form of the table: half of the names of one are in the other."""
    names, wanted = {one.name for one in entries}, {one.name for one in expected}
    return 2 * len(names & wanted) >= min(len(names), len(wanted)) > 0


def _outdated(source: Source, told: str, item: _Item, expected: Sequence[Entry], table: PlacedTable) -> Diagnostic:
    hints = list(_differences(item.entries, expected))
    more = f" ({len(hints) - 1} more to change)" if len(hints) > 1 else ""
    return source.fault(
        "R610",
        item.node,
        f"{told} carries another override table" if expected else f"{told} carries an override table, and has none",
        cause="images are pulled by the rules that it carries, not by those of the platform file",
        hint=(hints[0] + more) if expected else "remove the item and its comment line",
        related=((table.source.place(table.node), "the table"),) if expected else (),
    )


def _differences(entries: Sequence[Entry], expected: Sequence[Entry]) -> Iterator[str]:
    """Yield what to change, one sentence for an entry."""
    present = {one.name: one for one in entries}
    wanted = {one.name: one for one in expected}
    for entry in expected:
        known = present.get(entry.name)
        if known is None:
            yield f"add the entry for `{entry.name}`"
        elif known != entry:
            for key, old, new in zip(
                ("newName", "newTag", "digest"),
                (known.new_name, known.new_tag, known.digest),
                (entry.new_name, entry.new_tag, entry.digest),
                strict=True,
            ):
                if old != new:
                    change = f"set `{key}: {new}`" if new else f"remove `{key}`"
                    yield f"{change} in the entry for `{entry.name}`"
    for entry in entries:
        if entry.name not in wanted:
            yield f"remove the entry for `{entry.name}`"
    if len(entries) > len(present):
        yield "remove the entries that are there twice"
    order = [one.name for one in entries if one.name in wanted]
    if order != [one.name for one in expected if one.name in present]:
        yield "put the entries into the order of the table"
