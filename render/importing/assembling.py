"""A draft in, the fields of its definition out."""

from __future__ import annotations

import re
from collections.abc import Mapping as Dict
from dataclasses import dataclass, field
from typing import Any

from render.committed import TABLE_COMMENT
from render.definition import Verbatim
from render.flux.versions import FluxVersion
from render.importing import text
from render.importing.convert import replaced
from render.importing.draft import BARE, Draft
from render.importing.images import Image
from render.importing.lifecycle import reduced
from render.importing.moving import take_out
from render.importing.reading import Found
from render.importing.text import Block, Lines
from render.plan.context import Report
from render.plan.release import RESERVED, check_release, merge, rollback_fields
from render.plan.sources import plain
from render.yaml.source import Mapping, Node, Scalar, Sequence

_OUTSIDE = re.compile(r"[a-z0-9.-]+/[a-z0-9.-]+\Z")
_METADATA = {"name", "namespace", "labels", "annotations", "creationTimestamp", "managedFields", "resourceVersion"}
_METADATA |= {"uid", "generation"}


@dataclass(slots=True)
class Surroundings:
    """What a definition leans on."""

    flux: FluxVersion
    interval: str
    """`defaults.interval` of the platform."""
    timeout: str | None
    retries: int
    namespace: str | None
    """`defaults.namespace`."""
    defaults: Mapping
    """`defaults.release`."""
    at: Dict[str, str]
    """Default `at` of the platform's chart sources."""
    services: dict[tuple[str, str], str] = field(default_factory=dict)
    """Services of the catalog by namespace and name of their releases."""
    cache: dict[int, Lines] = field(default_factory=dict)


def rest_of(spec: Mapping) -> Mapping:
    """Return the fields of a spec that have no place of their own in a definition."""
    kept = [
        (key, value)
        for key, value in spec.entries
        if key.text not in RESERVED and key.text not in ("chart", "interval") and not _is_null(value)
    ]
    return Mapping(kept, spec.line, spec.column)


def rolls_back(spec: Mapping, retries: int) -> bool:
    """Whether a spec says all that makes Flux roll a failed upgrade back, as `update` says it."""
    wanted = rollback_fields(retries)
    facts = plain(spec)
    return all(_holds(facts.get(name), value) for name, value in wanted.items())


def _holds(facts: Any, wanted: Any) -> bool:
    if isinstance(wanted, dict):
        return isinstance(facts, dict) and all(_holds(facts.get(key), value) for key, value in wanted.items())
    return bool(facts == wanted)


def _is_null(node: Node) -> bool:
    return type(node) is Scalar and node.is_null


class Assembler:
    """Makes the fields of one definition."""

    def __init__(self, draft: Draft, around: Surroundings) -> None:
        self.draft = draft
        self.around = around
        self.found = draft.main
        self.lines = draft.lines(around.cache)
        self.made: dict[str, Any] = {}
        self.carried: set[int] = set()
        """Lines of the main object's file whose comments are kept."""
        self.anchors: dict[str, str] = {}
        """Anchor on `name` and `namespace`."""

    def fields(self) -> dict[str, Any]:
        """Return the fields; what was decided is told in the draft."""
        draft, made = self.draft, self.made
        draft.told, draft.lost, draft.dropped = [], [], []
        made["name"] = draft.service
        if draft.object_name != draft.service and (draft.is_release or draft.workload is not None):
            made["objectName"] = draft.object_name
        if draft.namespace is not None and draft.namespace != self.around.namespace:
            made["namespace"] = draft.namespace
        if draft.is_release:
            self._release()
        elif draft.workload is not None:
            self._metadata(("app.kubernetes.io/name",))
            if self.found.get("spec", "progressDeadlineSeconds") is None:
                # The deadline is written for workloads whose failed updates are held back, and for no others.
                self._decline_rollback()
            made["workload"] = draft.workload
        made["kustomize"] = draft.kustomize or None
        made["imageOverrides"] = draft.emit
        self._images()
        self._extras()
        self._count_comments()
        return made

    # A release

    def _release(self) -> None:
        draft, made, spec = self.draft, self.made, self.draft.spec
        self._metadata(())
        self._find_anchors()
        assert draft.settled is not None
        made["source"] = {"chart": draft.settled.chart}
        if draft.settled.identity[1] == draft.home and (found := draft.settled.chart.get("existingSource")):
            made["source"] = {"chart": {**draft.settled.chart, "existingSource": {**found, "namespace": None}}}
        made["dependsOn"] = self._depends_on() or None
        made["valuesFrom"] = self._carried("valuesFrom")
        made["postRenderers"] = self._carried("postRenderers")
        values = spec.get("values")
        if type(values) is Mapping and values.entries:
            found_values = self._block("values")
            if draft.level < BARE:
                values, found_values = take_out(values, found_values, self.lines, draft.images)
            if values.entries and found_values is not None:
                made["values"] = self._verbatim(found_values)
            elif found_values is not None:
                self._carry(found_values)
        elif values is not None and not _is_null(values) and type(values) is not Mapping:
            draft.lost.append("spec.values")
        made["release"] = self._own_fields() or None

    def _own_fields(self) -> dict[str, Any]:
        draft, around = self.draft, self.around
        own: dict[str, Any] = {}
        interval = draft.spec.text("interval")
        if interval is None:
            draft.told.append(f"the release says no interval: it gets the platform's, {around.interval}")
        elif interval != around.interval:
            own["interval"] = draft.spec.get("interval")
        rest = rest_of(draft.spec)
        has_update = any(image.update is not None for image in draft.images)
        is_automatic = has_update and rolls_back(rest, around.retries)
        if has_update and not is_automatic:
            self._decline_rollback()
        base: Any = around.defaults
        if around.timeout is not None and base.get("timeout") is None:
            base = Mapping([*base.entries, (Scalar("timeout", ""), Scalar(around.timeout, ""))])
        if is_automatic:
            base = as_node(merge(base, rollback_fields(around.retries)))
        for key, value in rest.entries:
            kept = self._valid(key, value)
            if kept is None:
                draft.lost.append(f"spec.{key.text}")
                continue
            left = reduced(kept, base.get(key.text))
            if left is not None:
                own[key.text] = left
        for key, _ in base.entries:
            if rest.get(key.text) is None and key.text not in ("chart", "interval"):
                own[key.text] = Scalar("null", "")
        chart = self._chart_fields()
        return {**own, **({"chart": chart} if chart else {})}

    def _decline_rollback(self) -> None:
        for image in self.draft.images:
            if image.update is not None:
                image.update["autoRollbackOnFailedHealth"] = False
                # Said once, it holds for the whole service.
                return

    def _valid(self, key: Scalar, value: Node) -> Node | None:
        """Return a field of the spec without what the API does not know; None if nothing of it can stay."""
        for _ in range(2):
            report = Report(self.found.file.source)
            check_release(self.found.file.source, report, Mapping([(key, value)]), "spec", self.around.flux)
            if not report.failed:
                return value
            unknown = {(one.location.line, one.location.column) for one in report.items if one.code == "R101"}
            self.draft.told += (f"left out: {one.message}" for one in report.items)
            if len(unknown) != len(report.items):
                return None
            value = _pruned(value, unknown)
        return None

    def _chart_fields(self) -> dict[str, Any]:
        use = self.draft.use
        assert use is not None
        made: dict[str, Any] = {}
        if use.metadata is not None and not _is_null(use.metadata):
            made["metadata"] = use.metadata
        if use.followed:
            made["spec"] = {key.text: value for key, value in use.followed}
        return made

    def _metadata(self, without_labels: tuple[str, ...]) -> None:
        metadata = self.found.root.get("metadata")
        for key, value in metadata.entries if type(metadata) is Mapping else ():
            if key.text in ("labels", "annotations"):
                kept = (
                    [one for one in value.entries if one[0].text not in without_labels]
                    if type(value) is Mapping
                    else []
                )
                if kept:
                    self.made[key.text] = Mapping(kept, value.line, value.column)
            elif key.text not in _METADATA and not _is_null(value):
                self.draft.lost.append(f"metadata.{key.text}")

    def _find_anchors(self) -> None:
        metadata = self.found.root.get("metadata")
        if type(metadata) is not Mapping:
            return
        for key, wanted in (("name", self.draft.service), ("namespace", self.draft.namespace)):
            node = metadata.get(key)
            for line, name, value in self.lines.anchored:
                if type(node) is Scalar and line == node.line and value == node.text == wanted and key in self.made:
                    self.anchors.setdefault(name, key)

    def _depends_on(self) -> list[Any]:
        made: list[Any] = []
        listed = self.draft.spec.get("dependsOn")
        for item in listed.items if type(listed) is Sequence else ():
            name = item.text("name") if type(item) is Mapping else None
            if type(item) is not Mapping or name is None:
                self.draft.lost.append("spec.dependsOn")
                continue
            namespace = item.text("namespace") or self.draft.home
            expression = item.get("readyExpr")
            service = self.around.services.get((namespace, name))
            if service is None or service == self.draft.service or self.draft.loose:
                if not _OUTSIDE.match(f"{namespace}/{name}"):
                    self.draft.lost.append(f"spec.dependsOn[{name}]")
                    continue
                made.append({"helmRelease": f"{namespace}/{name}", "readyExpr": expression})
            else:
                made.append({"name": service, "readyExpr": expression} if expression is not None else service)
        return made

    def _carried(self, name: str) -> Verbatim | None:
        value = self.draft.spec.get(name)
        if type(value) is not Sequence or not value.items:
            return None
        spec = self.found.root.get("spec")
        if type(spec) is Mapping and spec.get(name) is value:
            found = self._block(name)
            return None if found is None else self._verbatim(found)
        return Verbatim(text.anew(value))

    def _block(self, name: str) -> Block | None:
        spec = self.found.root.get("spec")
        assert type(spec) is Mapping
        _, last = self.lines.span(self.found.root.line, self.found.last)
        limit = last + 1
        following = [key.line for key, _ in self.found.root.entries if key.line > spec.line]
        return text.block_of(self.lines, spec, name, min([limit, *following]), frozenset(self.anchors))

    def _verbatim(self, found: Block) -> Verbatim:
        self._carry(found)
        return Verbatim(found.text)

    def _carry(self, found: Block) -> None:
        if found.keeps_comments:
            self.carried.update(found.numbers or range(found.first, found.last + 1))

    # Images

    def _images(self) -> None:
        if self.draft.level >= BARE:
            if self.draft.images:
                self.draft.told.append(f"its images stay in the values: {self.draft.reason}")
            return
        entry = self.draft.settled.entry if self.draft.settled is not None else None
        default = self.around.at.get(entry or "", "image").replace("{service}", self.draft.service)
        others: dict[str, Any] = {}
        for image in self.draft.images:
            said = _said(image, default)
            if not image.key:
                self.made.setdefault("source", {})
                self.made["source"] = {"image": said, **self.made["source"]}
                if image.update is not None:
                    self.made["update"] = image.update
            elif image.update is not None:
                others[image.key] = {**(said if isinstance(said, dict) else {"ref": said}), "update": image.update}
            else:
                others[image.key] = said
        if others:
            self.made["images"] = others

    # Other objects

    def _extras(self) -> None:
        out = [self._object(found) for found in self.draft.extras]
        if out:
            self.made["extraObjects"] = Verbatim("".join(out))

    def _object(self, found: Found) -> str:
        lines = self.draft.lines(self.around.cache, found)
        wanted = _placed(found)
        made = text.document(lines, found.root)
        body = None
        if made is not None:
            body = made.text if wanted is found.root else _with_namespace(made, found, wanted)
        if body is None or made is None:
            body = text.anew(wanted)
            first, last = lines.span(found.root.line, found.last)
            self.draft.dropped += lines.comments(first, last)
        elif found.file is self.found.file:
            self.carried.update(made.numbers)
        rows = body.splitlines(keepends=True)
        lead = next((index for index, row in enumerate(rows) if row.strip() and not row.startswith("#")), 0)
        item = [*rows[:lead], f"- {rows[lead]}", *(f"  {row}" if row.strip() else row for row in rows[lead + 1 :])]
        return "".join(item)

    def _count_comments(self) -> None:
        first, last = self.lines.span(self.found.root.line, self.found.last)
        ours = f"# {TABLE_COMMENT}" if self.draft.table is not None else ""
        found = self.lines.comments(first, last)
        self.draft.dropped += [one for one in found if one[0] not in self.carried and one[1] != ours]


def _said(image: Image, default: str) -> Any:
    """Return an image as a definition says it."""
    if image.shape == "container":
        return str(image.reference)
    if image.shape == "postRenderer":
        return {"ref": str(image.reference), "shape": "postRenderer"}
    at = image.at
    if not image.is_lifted:
        return {"at": at}
    made: dict[str, Any] = {"ref": str(image.reference), "at": at}
    if image.shape not in ("split", "map"):
        made["shape"] = image.shape
    if not image.key and at == default and image.shape == "split":
        return str(image.reference)
    return made


def _pruned(node: Node, places: set[tuple[int, int]]) -> Node:
    """Return a tree without the keys at some places."""
    if type(node) is Mapping:
        kept = [(k, _pruned(v, places)) for k, v in node.entries if (k.line, k.column) not in places]
        return Mapping(kept, node.line, node.column)
    if type(node) is Sequence:
        return Sequence([_pruned(item, places) for item in node.items], node.line, node.column)
    return node


def as_node(value: Any) -> Any:
    """Return a merged value, of nodes and of values of ours, as one node."""
    if isinstance(value, Scalar | Mapping | Sequence):
        return value
    if isinstance(value, dict):
        return Mapping([(Scalar(key, ""), as_node(inner)) for key, inner in value.items()])
    spelled = ("true" if value else "false") if isinstance(value, bool) else str(value)
    return Scalar(spelled, "")


def _placed(found: Found) -> Mapping:
    """Return an object in the namespace that the kustomizations around it leave it in."""
    metadata = found.root.get("metadata")
    if found.namespace == found.own_namespace or found.namespace is None or type(metadata) is not Mapping:
        return found.root
    return replaced(found.root, "metadata", replaced(metadata, "namespace", Scalar(found.namespace, "")))


def _with_namespace(made: Block, found: Found, wanted: Mapping) -> str | None:
    """Return the lines of an object with its namespace written in."""
    metadata = found.root.get("metadata")
    key = (
        metadata.key("namespace" if found.own_namespace is not None else "name") if type(metadata) is Mapping else None
    )
    if key is None or key.line not in made.numbers:
        return None
    rows = made.text.splitlines()
    index = made.numbers.index(key.line)
    indent = rows[index][: len(rows[index]) - len(rows[index].lstrip())]
    line = f"{indent}namespace: {found.namespace}"
    if found.own_namespace is None:
        rows.insert(index + 1, line)
    else:
        rows[index] = line
    body = "\n".join(rows) + "\n"
    return body if text.same(body, wanted) else None
