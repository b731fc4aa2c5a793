"""An object in, the images that it names out: by place, as they are after the post-renderers of its release."""

from __future__ import annotations

from collections.abc import Iterator

from render.diff_nodes import Side, identities, step
from render.diff_secrets import shown_text
from render.flux.overrides import Entry, OverrideFailure, Table
from render.plan import paths
from render.plan.paths import Path
from render.yaml.source import Mapping, Node, Scalar, Sequence

HELM = "helm.toolkit.fluxcd.io"
_FLUX = ".toolkit.fluxcd.io"
_UNSEARCHED = frozenset(("ConfigMap", "Secret", "Kustomization", "CustomResourceDefinition"))
_NAME = (("name", ""),)


def images(side: Side, group: str, kind: str, table: Mapping | None = None) -> dict[str, str]:
    """Return the images of an object by the path they stand at; a part that is not said there is left out (`:1.2`).

    An image is a reference at a key `image` or such as `imageName`, a mapping with `repository` or `tag`, an entry of
    a post-renderer that sets the version, or what a setter marker stands at. `table` is the post-renderer of the
    release that holds the platform's table: its entries are no images of the release.
    """
    root = side.root
    if type(root) is not Mapping or kind in _UNSEARCHED or (group.endswith(_FLUX) and group != HELM):
        return {}
    if group != HELM:
        return dict(_search(side, root, ()))
    renderers = paths.find(root, ("spec", "postRenderers"))
    tables = [_table(item) for item in renderers.items] if type(renderers) is Sequence else []
    values = paths.find(root, ("spec", "values"))
    found = {} if values is None else dict(_search(side, values, ("spec", "values")))
    made = {place: _rewritten(text, tables) for place, text in found.items()}
    for index, item in enumerate(renderers.items if type(renderers) is Sequence else ()):
        if item is table:
            continue
        for entry in tables[index].entries:
            if entry.new_tag or entry.digest:
                place = ("spec", "postRenderers", index, "kustomize", "images", (("name", entry.name),))
                made[paths.show(place)] = _rewritten(entry.rewrite(entry.name), tables[index + 1 :])
    return {place: shown_text(text) for place, text in made.items()}


def _table(renderer: Node) -> Table:
    listed = paths.find(renderer, ("kustomize", "images"))
    items = listed.items if type(listed) is Sequence else []
    entries = [
        Entry.of({key.text: item.text(key.text) or "" for key, _ in item.entries})
        for item in items
        if type(item) is Mapping
    ]
    return Table(entry for entry in entries if entry.name)


def _rewritten(text: str, tables: list[Table]) -> str:
    """Return what post-renderers make of a reference; as it is where they would fail, or it has no name."""
    if text.startswith((":", "@")):
        return text
    try:
        for table in tables:
            text = table.apply(text).text
    except OverrideFailure:
        pass
    return text


def _search(side: Side, node: Node, path: Path) -> Iterator[tuple[str, str]]:
    if side.cover.hides(node):
        return
    if type(node) is Sequence:
        names = identities(node, _NAME)
        for index, item in enumerate(node.items):
            yield from _search(side, item, (*path, index if names is None else step(names[index], index)))
    elif type(node) is Mapping:
        field = path[-1] if path and isinstance(path[-1], str) else ""
        text, parts = _reference(side, node, field)
        if text:
            yield paths.show(path) if path else ".", text
        for key, value in node.entries:
            if type(value) is not Scalar:
                yield from _search(side, value, (*path, key.text))
            elif key.text not in parts and not side.cover.hides(value) and (found := _single(side, key.text, value)):
                yield paths.show((*path, key.text)), found
    elif type(node) is Scalar and (found := _marked(side, node)):
        yield paths.show(path), found


def _reference(side: Side, node: Mapping, field: str) -> tuple[str, frozenset[str]]:
    """Return the image that a mapping spells in parts, and the keys of the parts."""
    repository, tag, digest = node.text("repository"), node.text("tag"), node.text("digest")
    version = (f":{tag}" if tag else "") + (f"@{digest}" if digest else "")
    is_marked = any(type(part) is Scalar and _marked(side, part) for part in map(node.get, ("tag", "digest")))
    if not version or not (repository or is_marked or field.lower().endswith("image")):
        return "", frozenset()
    registry = node.text("registry") if repository else None
    name = (f"{registry}/" if registry else "") + (repository or "")
    return name + version, frozenset(("registry", "repository", "tag", "digest"))


def _single(side: Side, key: str, value: Scalar) -> str:
    """Return the image that one scalar spells; nothing for any other scalar."""
    if found := _marked(side, value):
        return found
    is_image = key in ("image", "imageName") or key.endswith("Image")
    is_reference = value.is_string and ("/" in value.text or ":" in value.text) and " " not in value.text
    return value.text if is_image and is_reference and "\n" not in value.text and "://" not in value.text else ""


def _marked(side: Side, value: Scalar) -> str:
    """Return the image, or the part of it, that stands at a setter marker."""
    marker = side.markers.get(value.line, "")
    if not marker or marker.startswith("{") or not value.text:
        return ""
    if marker.endswith(":tag"):
        return f":{value.text}"
    return f"@{value.text}" if marker.endswith(":digest") else value.text
