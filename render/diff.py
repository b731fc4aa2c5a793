"""Two trees of rendered files in, their differences by object out, and what these do to running releases."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, NamedTuple

from render.committed import TABLE_COMMENT
from render.diagnostics import Diagnostic
from render.diff_images import HELM, images
from render.diff_nodes import Change, Side, compare, markers_of
from render.guard import moved, reinstalls, service_of, table_upgrades
from render.patterns import lazy
from render.plan import paths
from render.structs import field, replace, struct
from render.yaml import source as yaml

Status = Literal["added", "removed", "changed", "moved"]

SOURCES = ("OCIRepository", "GitRepository")
"""Sources whose own fields decide which chart runs; of a HelmRepository the release itself names the version."""
_LOCATING = (("spec", "ref"), ("spec", "url"))
UPGRADING = ("chart", "chartRef", "values", "valuesFrom", "postRenderers", "commonMetadata")
"""Fields of a HelmRelease whose change makes helm-controller run an upgrade; the others only guide it."""
_TABLE_LINE = lazy(rf"^ *# {re.escape(TABLE_COMMENT)}$", re.MULTILINE)
_TABLE_PATH: paths.Path = ("registries", "imageOverrides")


class ObjectId(NamedTuple):
    """What makes an object the same object; a document that is no Kubernetes object has its file for a name."""

    kind: str
    namespace: str
    name: str
    group: str
    number: int = 0
    """Counts what has one identity in one tree."""

    def __str__(self) -> str:
        return f"{self.kind or 'file'} {self.namespace + '/' if self.namespace else ''}{self.name}"


class ImageChange(NamedTuple):
    """An image that an object pulled, or pulls now; None where there is none."""

    path: str
    old: str | None
    new: str | None


@struct()
class ObjectDiff:
    """What differs of one object."""

    id: ObjectId
    status: Status
    old_file: str | None
    new_file: str | None
    changes: list[Change] = field(default_factory=list)
    table: list[Change] = field(default_factory=list)
    """Changes of the platform's table in a release, with paths that begin `registries.imageOverrides`."""
    images: list[ImageChange] = field(default_factory=list)
    whole: yaml.Node | None = None
    """What may be shown of an object that is added or removed."""

    @property
    def service(self) -> str:
        """The service that the object belongs to; `""` for those of none."""
        return service_of(self.new_file or self.old_file or "")


@struct()
class Diff:
    """What differs between two trees."""

    objects: list[ObjectDiff] = field(default_factory=list)
    """Sorted by kind, namespace and name."""
    installed: list[str] = field(default_factory=list)
    """Releases as `namespace/name`, sorted; so in the next two."""
    uninstalled: list[str] = field(default_factory=list)
    upgraded: list[str] = field(default_factory=list)
    reinstalled: list[tuple[str, str]] = field(default_factory=list)
    """Services that are uninstalled and installed again, each with the reason."""
    by_table: int = 0
    """How many of the upgrades a change of the override table alone would bring."""

    def count(self, status: Status) -> int:
        """Return the number of objects that were added, removed, changed or moved."""
        return sum(one.status == status for one in self.objects)

    @property
    def is_empty(self) -> bool:
        """Whether nothing differs."""
        return not self.objects


class _Object:
    """An object as it stands in a tree."""

    def __init__(self, file: str, side: Side, table_lines: frozenset[int]) -> None:
        self.file = file
        self.side = side
        self.table_lines = table_lines
        self.table: yaml.Mapping | None = None

    def without_table(self) -> Side:
        """Return the object without the renderer of the platform's table, which is kept in `table`."""
        root = self.side.root
        spec = paths.find(root, ("spec",))
        renderers = paths.find(root, ("spec", "postRenderers"))
        if not self.table_lines or type(spec) is not yaml.Mapping or type(renderers) is not yaml.Sequence:
            return self.side
        found = [item for item in renderers.items if type(item) is yaml.Mapping and item.line - 1 in self.table_lines]
        if not found:
            return self.side
        self.table = found[-1]
        others = [item for item in renderers.items if item is not self.table]
        left = yaml.Sequence(others, renderers.line, renderers.column) if others else None
        assert type(root) is yaml.Mapping
        other = Side(_with(root, "spec", _with(spec, "postRenderers", left)), self.side.markers)
        other.cover = self.side.cover
        return other


def _with(node: yaml.Mapping, key: str, value: yaml.Node | None) -> yaml.Mapping:
    """Return a mapping with another value at a key, or without it."""
    entries = [(k, value if k.text == key else v) for k, v in node.entries]
    return yaml.Mapping([(k, v) for k, v in entries if v is not None], node.line, node.column)


def diff(old: Mapping[str, str], new: Mapping[str, str]) -> tuple[Diff, list[Diagnostic], list[Diagnostic]]:
    """Compare two trees, given as the text of each file (LF-ended) by its path below the root.

    Returns the differences, and for each tree why it cannot be read; with any such fault there are no differences.
    """
    before = {path: text for path, text in old.items() if new.get(path) != text}
    after = {path: new[path] for path in new if path not in old or path in before}
    old_objects, old_faults = _read(before)
    new_objects, new_faults = _read(after)
    made = Diff()
    if old_faults or new_faults:
        return made, old_faults, new_faults
    for identity in sorted({*old_objects, *new_objects}, key=_order):
        found = _object_diff(identity, old_objects.get(identity), new_objects.get(identity))
        if found is not None:
            made.objects.append(found)
    _judge(made, old, new, before, after)
    return made, [], []


def _order(identity: ObjectId) -> tuple[bool, ObjectId]:
    """Objects of the cluster come first, files that only guide kustomize last."""
    return (identity.kind == "Kustomization" and identity.group == "kustomize.config.k8s.io", identity)


def _read(files: Mapping[str, str]) -> tuple[dict[ObjectId, _Object], list[Diagnostic]]:
    """Return the objects of some files."""
    found: dict[ObjectId, _Object] = {}
    faults: list[Diagnostic] = []
    for path in sorted(files):
        text = files[path]
        documents, wrong = yaml.parse(yaml.Source(path, text))
        # A line of a Secret that does not parse must not be quoted.
        faults += (replace(fault, snippet="") for fault in wrong if fault.severity == "error")
        markers = markers_of(text)
        lines = frozenset(text.count("\n", 0, match.start()) + 1 for match in _TABLE_LINE.finditer(text))
        for document in documents:
            identity = _identity(document.root, path)
            while identity in found:
                identity = identity._replace(number=identity.number + 1)
            found[identity] = _Object(path, Side(document.root, markers), lines)
    return found, faults


def _identity(root: yaml.Node, path: str) -> ObjectId:
    if type(root) is not yaml.Mapping:
        return ObjectId("", "", path, "")
    kind, version, metadata = root.text("kind") or "", root.text("apiVersion") or "", root.get("metadata")
    name = namespace = None
    if type(metadata) is yaml.Mapping:
        name, namespace = metadata.text("name"), metadata.text("namespace")
    group = version.rpartition("/")[0]
    return ObjectId(kind, namespace or "", name or path, group) if kind else ObjectId("", "", path, "")


def _object_diff(identity: ObjectId, old: _Object | None, new: _Object | None) -> ObjectDiff | None:
    """Return what differs of an object; None when nothing does."""
    left, right = (None if one is None else one.without_table() for one in (old, new))
    pulled = _image_changes(identity, old, new)
    if old is None or new is None or left is None or right is None:
        there = old or new
        assert there is not None
        whole = there.side.cover.shown(there.side.root)
        files = (old.file if old else None, new.file if new else None)
        return ObjectDiff(identity, "removed" if old else "added", *files, images=pulled, whole=whole)
    is_release = identity.kind == "HelmRelease" and identity.group == HELM
    made = ObjectDiff(identity, "changed", old.file, new.file)
    made.changes = compare(left, right, is_release=is_release)
    if old.table is not None or new.table is not None:
        tables = [Side(_entries(one.table), one.side.markers) for one in (old, new)]
        made.table = [one._replace(path=(*_TABLE_PATH, *one.path)) for one in compare(*tables)]
    made.images = [one for one in pulled if None not in (one.old, one.new) or _touches(made.changes, one.path)]
    if not made.changes and not made.table:
        # Another part of the tree is another Flux Kustomization: one prunes what the other applies.
        if old.file.partition("/")[0] == new.file.partition("/")[0]:
            return None
        made.status = "moved"
    return made


def _entries(table: yaml.Mapping | None) -> yaml.Node:
    listed = paths.find(table, ("kustomize", "images"))
    return listed if listed is not None else yaml.Sequence([])


def _image_changes(identity: ObjectId, old: _Object | None, new: _Object | None) -> list[ImageChange]:
    before, after = (
        {} if one is None else images(one.side, identity.group, identity.kind, one.table) for one in (old, new)
    )
    return [
        ImageChange(path, before.get(path), after.get(path))
        for path in [*before, *(path for path in after if path not in before)]
        if before.get(path) != after.get(path)
    ]


def _touches(changes: list[Change], place: str) -> bool:
    """Whether a value changes at, above or below a place: what only loses its marker is the image that it was."""
    shown = (paths.show(change.path) for change in changes if change.kind != "marker")
    return any(path.startswith(place) or place.startswith(path) for path in shown)


def _judge(
    made: Diff, old: Mapping[str, str], new: Mapping[str, str], before: Mapping[str, str], after: Mapping[str, str]
) -> None:
    """Add what the differences mean for running releases."""
    created = frozenset(path for path in after if path not in old)
    anew = reinstalls(before, new, created, frozenset(), moved(before, new, created))
    made.reinstalled = [(service_of(path), fault.message.partition(": ")[2]) for path, fault in anew]
    made.by_table = table_upgrades(before, after, [path for path in before if path in after])
    services = {service for service, _ in made.reinstalled}
    upgraded = _users(made, old, new)
    for one in made.objects:
        if one.id.kind != "HelmRelease" or one.id.group != HELM or one.service in services:
            continue
        name = f"{one.id.namespace}/{one.id.name}"
        if one.status == "added":
            made.installed.append(name)
        elif one.status == "removed":
            made.uninstalled.append(name)
        elif one.table or any(_upgrades(change) for change in one.changes):
            upgraded.add(name)
    made.upgraded = sorted(upgraded)


def _upgrades(change: Change) -> bool:
    return change.kind != "marker" and change.path[:1] == ("spec",) and change.path[1:2] in [(f,) for f in UPGRADING]


def _users(made: Diff, old: Mapping[str, str], new: Mapping[str, str]) -> set[str]:
    """Return the releases, there before and after, whose chart comes from a source that now gives another one."""
    other = {
        (one.id.kind, one.id.namespace, one.id.name)
        for one in made.objects
        if one.id.kind in SOURCES
        and any(change.path[:2] in (("spec", "ref"), ("spec", "url")) for change in one.changes)
    }
    found: set[str] = set()
    if not other:
        return found
    services = {service for service, _ in made.reinstalled}
    for path in new:
        text = new[path] if path in old and service_of(path) not in services else ""
        if "HelmRelease" in text and any(name in text for _, _, name in other):
            for document in yaml.parse(yaml.Source(path, text))[0]:
                name, namespace = _identity(document.root, path)[2], _identity(document.root, path)[1]
                for place in (("spec", "chartRef"), ("spec", "chart", "spec", "sourceRef")):
                    reference = paths.find(document.root, place)
                    if type(reference) is yaml.Mapping:
                        kind, source = reference.text("kind") or "", reference.text("name") or ""
                        if (kind, reference.text("namespace") or namespace, source) in other:
                            found.add(f"{namespace}/{name}")
    return found
