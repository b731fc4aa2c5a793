"""Kubernetes objects in, the places kustomize's `images` entries reach and the objects they leave out; plain data.

`sites` lists the places of one object; `transform` runs a table on all objects of a release. The rules are those of
kustomize 5.7.1 and 5.8.1.
"""

from __future__ import annotations

from render.flux.overrides import Entry, OverrideFailure, Path, Step, Table
from render.structs import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from render.flux.override_scalars import Scalars

_CONTAINER_LISTS = frozenset(("containers", "initContainers"))
_POD_FIELDS = (("containers[]", "image"), ("initContainers[]", "image"), ("volumes[]", "image", "reference"))
_FIELD_SPECS = tuple((*pod, *field) for pod in (("spec",), ("spec", "template", "spec")) for field in _POD_FIELDS)
_LOCAL_CONFIG = "config.kubernetes.io/local-config"


class PlainData:
    """Scalars as a JSON reader gives them; what is rewritten becomes a string, as it does where it is quoted."""

    def is_null(self, value: object) -> bool:
        """Only None is null."""
        return value is None

    def text(self, value: object) -> str:
        """Give what YAML shows for the value."""
        if isinstance(value, str):
            return value
        if value is None:
            return "null"
        return str(value).lower() if isinstance(value, bool) else str(value)

    def rewrite(self, value: object, text: str) -> object:  # noqa: ARG002 - the protocol's shape
        """Give a string."""
        return text


PLAIN_DATA = PlainData()


@struct(frozen=True)
class Site:
    """A place that kustomize takes for an image."""

    path: Path
    doubled: bool
    """Each entry runs twice here: once for the container list, once for the field."""


def sites(obj: object, scalars: Scalars = PLAIN_DATA) -> list[Site]:
    """List the images of one object in kustomize's order; of a `*List` object, those of its items.

    Raises OverrideFailure for an object that fails any release whose table has an entry, matching or not.
    """
    return _visit(obj, scalars)[0]


@struct(frozen=True)
class Change:
    """One image that a table matched."""

    document: int
    """Index into `Transformed.documents`."""
    path: Path
    doubled: bool
    before: str
    after: str
    trace: tuple[Step, ...]


@struct(frozen=True)
class Transformed:
    """What kustomize leaves of a release's objects."""

    documents: list[object]
    """Copies in the order given; lists expanded, objects marked local-config gone."""
    changes: list[Change]


def transform(
    documents: Sequence[object], entries: Table | Iterable[Entry], scalars: Scalars = PLAIN_DATA
) -> Transformed:
    """Run a table on the objects of a release, loading them as kustomize does.

    Of kustomize's other effects on its output, none is shown: order of objects and keys, annotation values becoming
    strings, numbers in Go's form. Raises OverrideFailure for the first object that fails the release.
    """
    table = entries if isinstance(entries, Table) else Table(entries)
    copies: list[object] = []
    changes: list[Change] = []
    for loaded in _load(documents, scalars):
        copy = _copied(loaded.obj)
        if table.entries:
            try:
                changes += _rewrite(copy, len(copies), table, scalars)
            except OverrideFailure as failure:
                place = loaded.path + failure.path
                raise OverrideFailure(failure.reason, place, entry=failure.entry, document=loaded.document) from None
        copies.append(copy)
    return Transformed(copies, changes)


@struct(frozen=True)
class Image:
    """One image that kustomize looks at."""

    document: int
    """Index into the documents given."""
    path: Path
    """From the document's root."""
    doubled: bool
    value: Any
    """The scalar that stands there."""


def images(documents: Sequence[object], scalars: Scalars = PLAIN_DATA) -> list[Image]:
    """List the images that a table of entries meets in a release's objects, matching or not.

    Raises OverrideFailure for the first object that fails the release, as `transform` does; no name of an entry can.
    """
    found: list[Image] = []
    for one in _load(documents, scalars):
        try:
            at = _visit(one.obj, scalars)[0]
        except OverrideFailure as failure:
            raise OverrideFailure(failure.reason, one.path + failure.path, document=one.document) from None
        for site in at:
            holder, key = _holder(one.obj, site.path)
            found.append(Image(one.document, one.path + site.path, site.doubled, holder[key]))
    return found


def _rewrite(obj: object, document: int, table: Table, scalars: Scalars) -> list[Change]:
    """Run a table on one object, in place."""
    found, nulls = _visit(obj, scalars)
    changes: list[Change] = []
    for site in found:
        holder, key = _holder(obj, site.path)
        before = scalars.text(holder[key])
        try:
            made = table.apply(before, double=site.doubled)
        except OverrideFailure as failure:
            raise OverrideFailure(failure.reason, site.path, entry=failure.entry) from None
        if made.trace:
            holder[key] = scalars.rewrite(holder[key], made.text)
            changes.append(Change(document, site.path, site.doubled, before, made.text, made.trace))
    for path in nulls:
        holder, key = _holder(obj, path)
        holder[key] = []
    return changes


class _Found:
    """What the two ways through an object have come upon."""

    __slots__ = ("fields", "nulls", "scalars", "walked")

    def __init__(self, scalars: Scalars) -> None:
        self.scalars = scalars
        self.walked: dict[Path, None] = {}
        self.fields: dict[Path, None] = {}
        self.nulls: list[Path] = []

    def is_null(self, value: object) -> bool:
        return not isinstance(value, dict | list) and self.scalars.is_null(value)


def _visit(obj: object, scalars: Scalars) -> tuple[list[Site], list[Path]]:
    """Give the images of an object, and the places where kustomize writes `[]` for null."""
    if not isinstance(obj, dict) or _kind(obj, scalars) == "CustomResourceDefinition":
        return [], []
    if _is_list(obj, scalars):
        images: list[Site] = []
        nulls: list[Path] = []
        for index, item in enumerate(obj["items"] if isinstance(obj["items"], list) else ()):
            inner_images, inner_nulls = _visit(item, scalars)
            images += [Site(("items", index, *inner.path), inner.doubled) for inner in inner_images]
            nulls += [("items", index, *path) for path in inner_nulls]
        return images, nulls
    found = _Found(scalars)
    _walk(obj, (), found)
    for spec in _FIELD_SPECS:
        _follow(obj, spec, (), found)
    images = [Site(path, path in found.fields) for path in found.walked]
    return images + [Site(path, doubled=False) for path in found.fields if path not in found.walked], found.nulls


def _walk(node: object, path: Path, found: _Found) -> None:
    """Collect the images of container lists at any depth, whatever the object's kind."""
    if isinstance(node, list):
        for index, item in enumerate(node):
            _walk(item, (*path, index), found)
    if not isinstance(node, dict):
        return
    for key, value in node.items():
        _walk(value, (*path, key), found)
        if key not in _CONTAINER_LISTS or not isinstance(value, list):
            continue
        for index, item in enumerate(value):
            place = (*path, key, index)
            if isinstance(item, dict):
                if "image" in item:
                    found.walked[_scalar(item["image"], (*place, "image"))] = None
            elif not found.is_null(item):
                raise OverrideFailure(f"an element of a list called `{key}` is no map", place)


def _follow(node: object, spec: tuple[str, ...], path: Path, found: _Found) -> None:
    """Collect what one of kustomize's field paths leads to; lists on the way are entered, whatever the path says."""
    if not spec:
        found.fields[_scalar(node, path)] = None
    elif isinstance(node, list):
        for index, item in enumerate(node):
            _follow(item, spec, (*path, index), found)
    elif isinstance(node, dict):
        key = spec[0].removesuffix("[]")
        if key not in node:
            return
        value = node[key]
        if key != spec[0] and found.is_null(value):
            found.nulls.append((*path, key))
        else:
            _follow(value, spec[1:], (*path, key), found)
    elif not found.is_null(node):
        field = "/".join(spec)
        raise OverrideFailure(f"neither a map nor a list, but kustomize looks for `{field}` in it", path)


def _scalar(value: object, path: Path) -> Path:
    """Give the path back unless a map or list stands where kustomize wants an image."""
    if isinstance(value, dict | list):
        raise OverrideFailure(
            f"a {'map' if isinstance(value, dict) else 'list'} where kustomize looks for an image", path
        )
    return path


def _kind(obj: dict[str, object], scalars: Scalars) -> str:
    """Give an object's kind, empty if it has none."""
    kind = obj.get("kind")
    return "" if isinstance(kind, dict | list) or kind is None or scalars.is_null(kind) else scalars.text(kind)


def _is_list(obj: dict[str, object], scalars: Scalars) -> bool:
    """Tell whether kustomize takes the object for a list of objects."""
    return "items" in obj and _kind(obj, scalars).endswith("List")


@struct(frozen=True)
class _Loaded:
    """An object that kustomize works on, and where it was."""

    document: int
    path: Path
    """In its document; not empty for an item of a list object."""
    obj: dict[str, object]


def _load(documents: Sequence[object], scalars: Scalars) -> list[_Loaded]:
    """Give the objects that kustomize works on; raises OverrideFailure for what it refuses to load."""
    loaded: list[_Loaded] = []
    identities: set[tuple[str, ...]] = set()
    for index, document in enumerate(documents):
        for found in _expanded(document, (), index, scalars):
            metadata = found.obj.get("metadata")
            annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
            if isinstance(annotations, dict) and scalars.text(annotations.get(_LOCAL_CONFIG, "false")) != "false":
                continue
            identity = _identity(found, scalars)
            if identity in identities:
                reason = f"a second {identity[1]} `{identity[-1]}` of the same API version and namespace"
                raise OverrideFailure(reason, found.path, document=index)
            identities.add(identity)
            loaded.append(found)
    return loaded


def _expanded(document: object, path: Path, index: int, scalars: Scalars) -> Iterable[_Loaded]:
    """Give a document, or the items of a `*List` document at any depth."""
    if isinstance(document, dict):
        if not _is_list(document, scalars):
            yield _Loaded(index, path, document)
            return
        items = document["items"]
        if isinstance(items, list):
            for i, item in enumerate(items):
                yield from _expanded(item, (*path, "items", i), index, scalars)
        elif isinstance(items, dict) or not scalars.is_null(items):
            raise OverrideFailure("the `items` of a list object are no list", (*path, "items"), document=index)
    elif isinstance(document, list) or not scalars.is_null(document):
        raise OverrideFailure("no Kubernetes object", path, document=index)


def _identity(found: _Loaded, scalars: Scalars) -> tuple[str, ...]:
    """Give what makes an object the same one to kustomize: API version, kind, namespace and name."""
    obj = found.obj
    metadata = obj.get("metadata")
    fields = metadata if isinstance(metadata, dict) else {}
    name = fields.get("name")
    for field, value in (("kind", obj.get("kind")), ("metadata.name", name)):
        if value is None or isinstance(value, dict | list) or scalars.is_null(value) or not scalars.text(value):
            reason = f"an object without `{field}`, which kustomize needs"
            raise OverrideFailure(reason, found.path, document=found.document)
    namespace = fields.get("namespace")
    named = "" if namespace is None or scalars.is_null(namespace) else scalars.text(namespace)
    version = scalars.text(obj.get("apiVersion", ""))
    return version, scalars.text(obj["kind"]), named or "default", scalars.text(name)


def _copied(node: object) -> object:
    """Copy maps and lists; scalars are shared."""
    if isinstance(node, dict):
        return {key: _copied(value) for key, value in node.items()}
    return [_copied(item) for item in node] if isinstance(node, list) else node


def _holder(root: object, path: Path) -> tuple[dict[str | int, object], str | int]:
    """Give the map or list that holds the last part of a path, and that part."""
    for part in path[:-1]:
        root = root[part]  # type: ignore[index]
    return root, path[-1]  # type: ignore[return-value]
