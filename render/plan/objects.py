"""A service's extraObjects in, the objects as they are rendered out: labelled, in a namespace, overrides applied."""

from __future__ import annotations

from render.flux.kinds import is_cluster_scoped, is_known_group
from render.flux.override_sites import sites
from render.flux.overrides import OverrideFailure, Table
from render.model.read import Reader, compile_schema
from render.plan import paths
from render.plan.context import node_at
from render.plan.part import Part
from render.structs import struct
from render.yaml.emit import Marked
from render.yaml.source import Mapping, Node, Scalar, Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

BOT_ANNOTATIONS = frozenset(
    f"{prefix}config.kubernetes.io/{name}" for prefix in ("", "internal.") for name in ("path", "index")
) | {"internal.config.kubernetes.io/seqindent"}
"""Annotations in which kyaml keeps where an object comes from."""


@struct(frozen=True)
class Identity:
    """What makes an object one object in a cluster."""

    group: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        where = f"{self.namespace}/" if self.namespace else ""
        return f"{self.kind} {where}{self.name}"


@struct(frozen=True)
class ExtraObject:
    """One extra object."""

    index: int
    """Into `extraObjects`."""
    node: Mapping
    identity: Identity
    api_version: str
    source: Node
    """Where it stands in the catalog."""


class _NodeScalars:
    """Scalars of source nodes, as the override predictor reads them."""

    def is_null(self, value: object) -> bool:
        return isinstance(value, Scalar) and value.is_null

    def text(self, value: object) -> str:
        assert isinstance(value, Scalar | Marked)
        return value.text

    def rewrite(self, value: object, text: str) -> object:  # noqa: ARG002 - the protocol's shape
        return Scalar(text)


_SCALARS = _NodeScalars()
_TEXT = compile_schema({"type": "string"})
_TEXTS = compile_schema({"type": "object", "additionalProperties": {"type": "string"}})
_TEXT_PATHS: tuple[paths.Path, ...] = (("apiVersion",), ("kind",), ("metadata", "name"), ("metadata", "namespace"))
_TEXT_MAPS: dict[str, tuple[paths.Path, ...]] = {
    "v1 ConfigMap": (("data",), ("binaryData",)),
    "v1 Secret": (("data",), ("stringData",)),
}
"""Maps of strings, by API version and kind."""
_EXAMPLES = {"apiVersion": "apiVersion: v1", "kind": "kind: ConfigMap", "metadata.name": "metadata: {name: …}"}


class Extras(Part):
    """Plans the extra objects of one service."""

    def plan(self) -> list[ExtraObject]:
        """Return the objects in order, without those that were reported."""
        originals = self.definition.service.extra_objects
        made: list[ExtraObject] = []
        for index, (original, node) in enumerate(zip(originals, self.images.objects, strict=True)):
            assert isinstance(original, Mapping)
            assert isinstance(node, Mapping)
            extra = self._object(index, original, node)
            if extra is not None:
                made.append(extra)
        return made

    def _object(self, index: int, original: Mapping, node: Mapping) -> ExtraObject | None:
        metadata = original.get("metadata")
        missing = [key for key in ("apiVersion", "kind") if original.text(key) is None]
        if type(metadata) is not Mapping or metadata.text("name") is None:
            missing.append("metadata.name")
        if missing:
            self.report.error(
                "R102",
                original,
                f"`extraObjects[{index}]` needs {' and '.join(f'`{key}`' for key in missing)}",
                cause="it is no Kubernetes object, and the whole kustomize build would fail",
                hint="add them" if len(missing) > 1 else f"add `{_EXAMPLES[missing[0]]}`",
            )
            return None
        api_version, kind = original.text("apiVersion") or "", original.text("kind") or ""
        assert type(metadata) is Mapping
        name = metadata.text("name") or ""
        cluster_scoped = is_cluster_scoped(api_version, kind)
        namespace = metadata.text("namespace") or ""
        if original.get("sops") is None:
            self._check_strings(f"extraObjects[{index}]", original, f"{api_version} {kind}")
            if not namespace and cluster_scoped is False:
                namespace = self.header.namespace
                node = self._put(node, ("metadata", "namespace"), namespace)
            node = self._decorate(_without_empty(node))
            self._check_for_bot(index, original, kind)
            node = self._override(index, node, f"{kind} {name}")
        group = api_version.rpartition("/")[0]
        return ExtraObject(index, node, Identity(group, kind, namespace, name), api_version, original)

    def _check_strings(self, label: str, original: Mapping, kind: str) -> None:
        """Refuse values that the API server takes for strings alone: one that is none fails the whole apply."""
        reader = Reader(self.definition.source, self.report.items)
        before = len(self.report.items)
        for path in _TEXT_PATHS:
            found = paths.find(original, path)
            if found is not None and not _is_null(found):
                reader.read(_TEXT, found, f"{label}.{paths.show(path)}")
        for path in (("metadata", "labels"), *_TEXT_MAPS.get(kind, ())):
            found = paths.find(original, path)
            if found is None or _is_null(found):
                continue
            if type(found) is not Mapping:
                reader.read(_TEXTS, found, f"{label}.{paths.show(path)}")
                continue
            for key, value in found.entries:
                if not _is_null(value):
                    reader.read(_TEXT, value, f"{label}.{paths.show((*path, key.text))}", key)
        self.report.failed = self.report.failed or len(self.report.items) > before

    def _decorate(self, node: Mapping) -> Mapping:
        service = self.definition.service
        for field, wanted in (("labels", service.labels), ("annotations", service.annotations)):
            for key, value in wanted.items():
                if paths.find(node, ("metadata", field, key)) is None:
                    node = self._put(node, ("metadata", field, key), value)
        return node

    def _check_for_bot(self, index: int, original: Mapping, kind: str) -> None:
        """Refuse what makes the image bot fail on the file, or write another one."""
        annotations = paths.find(original, ("metadata", "annotations"))
        for key, _ in annotations.entries if type(annotations) is Mapping else ():
            if key.text in BOT_ANNOTATIONS:
                self.report.error(
                    "R216",
                    key,
                    f"the annotation `{key.text}` stops the image bot",
                    cause="kyaml keeps its own notes under this name; the bot's whole run fails on it, or strips it",
                    hint="remove it",
                )
        if index in self.images.marks_objects and kind.endswith("List") and original.get("items") is not None:
            self.report.error(
                "R216",
                original,
                f"an image inside a `{kind}` cannot be updated",
                cause="the bot takes the items of a list apart, and writes each into a file of its own",
                hint="write the items as extraObjects of their own",
            )

    def _put(self, node: Mapping, path: paths.Path, value: str) -> Mapping:
        try:
            made = paths.put(node, path, value)
        except paths.PathError as error:
            self.report.error("R211", error.node or node, f"an extra object is misshapen: {error}", hint="correct it")
            return node
        assert isinstance(made, Mapping)
        return made

    def _override(self, index: int, node: Mapping, label: str) -> Mapping:
        """Apply the table to the images that kustomize would visit; images of the service are effective already."""
        table: Table = self.images.renderers.table
        if not table.entries:
            return node
        try:
            for site in sites(_data(node), _SCALARS):
                found = paths.find(node, site.path)
                if type(found) is not Scalar:
                    continue
                outcome = table.apply(found.text, double=site.doubled)
                if outcome.text != found.text:
                    changed = paths.put(node, site.path, Scalar(outcome.text, found.style))
                    assert isinstance(changed, Mapping)
                    node = changed
        except OverrideFailure as failure:
            where = f"`{paths.show(failure.path)}`: " if failure.path else ""
            self.report.warn(
                "R605",
                node_at(self.definition.root, "extraObjects", index, *failure.path),
                f"kustomize cannot apply image overrides to `{label}`",
                cause=f"{where}{failure.reason}; the object is written without overrides",
                hint="write the image as the cluster should pull it",
            )
        return node

    def in_configs(self, extra: ExtraObject) -> bool:
        """Whether the object goes to `configs/`: its kind may not exist before a chart has been installed."""
        return not is_known_group(extra.api_version)


def _is_null(node: Node) -> bool:
    return type(node) is Scalar and node.is_null


def _without_empty(node: Mapping) -> Mapping:
    """Return an object without empty annotations, which the bot's rewrite drops."""
    metadata = node.get("metadata")
    if type(metadata) is not Mapping:
        return node
    found = metadata.get("annotations")
    if found is None or not (_is_null(found) or (type(found) is Mapping and not found.entries)):
        return node
    kept = Mapping([one for one in metadata.entries if one[0].text != "annotations"], metadata.line, metadata.column)
    entries = [(key, kept if key.text == "metadata" else value) for key, value in node.entries]
    return Mapping(entries, node.line, node.column)


def _data(node: Any) -> Any:
    """Return a tree as dicts and lists whose leaves are the nodes."""
    if type(node) is Mapping:
        return {key.text: _data(value) for key, value in node.entries}
    if type(node) is Sequence:
        return [_data(item) for item in node.items]
    return node
