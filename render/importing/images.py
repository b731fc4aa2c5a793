"""The values of a release in, the images in them out: where each stands, in which shape, and whether it can move.

An image is one that rendering writes back as it was: all its parts are texts, and put together and taken apart again
they are the same. Others stay in `values`, and are no images to the catalog.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from collections.abc import Mapping as Dict
from dataclasses import dataclass, field

from render.flux.image import ImageError, Reference
from render.plan import paths
from render.plan.paths import Path
from render.plan.sites import PARTS, WHOLE
from render.yaml.source import Mapping, Node, Scalar, Sequence

_IMAGE_KEY = re.compile(r"(?:.*[a-z0-9_-])?[iI]mage\Z")
_FLAT = re.compile(r"(?P<lead>|.*[a-z0-9])(?P<word>[iI]mage)Repository\Z")
_SELECTABLE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]*\Z")
_OTHER_NAMES = ("repo", "name", "image", "registry")
"""Keys beside `tag` that charts give the repository, where it is not called so."""


@dataclass(slots=True)
class Site:
    """One place of an image."""

    path: Path
    """Of the mapping or scalar that holds it."""
    nodes: dict[str, Scalar]
    """Its parts."""
    parts: dict[str, Path] = field(default_factory=dict)
    """Path of each part, where their names are not those that `render` knows."""
    holder: Mapping | None = None
    """The mapping that holds the parts."""
    is_shared: bool = False
    """Whether an alias repeats it, or something around it; or a part of it is empty. It stays where it is then."""

    @property
    def lines(self) -> list[int]:
        """Lines of its parts."""
        return [node.line for node in self.nodes.values()]


@dataclass(slots=True)
class Image:
    """One image of a service, and what a definition says of it."""

    reference: Reference
    shape: str
    sites: list[Site]
    in_object: tuple[str, str] | None = None
    """Kind and name of the extra object that it stands in."""
    key: str = ""
    """Empty for the main image."""
    is_lifted: bool = False
    """Whether it left the values, so that its reference stands in the definition."""
    policy: tuple[str, str] | None = None
    """Namespace and name of the policy that its markers name."""
    update: dict[str, object] | None = None

    @property
    def is_side(self) -> bool:
        """Whether it is that of an init container or a sidecar, by the words on its path."""
        steps = [step.lower() for step in (self.sites[0].path if self.sites else ()) if isinstance(step, str)]
        return any("init" in step or "sidecar" in step or "extra" in step for step in steps)

    @property
    def at(self) -> str | list[str] | dict[str, str]:
        """Its places, as a definition names them."""
        prefix = "" if self.in_object is None else "extraObjects[kind={},name={}].".format(*self.in_object)
        first = self.sites[0]
        if first.parts:
            return {part: prefix + paths.show(path) for part, path in first.parts.items()}
        listed = [prefix + paths.show(site.path) for site in self.sites]
        return listed if len(listed) > 1 else listed[0]


def find_images(values: Node, markers: Dict[int, str]) -> list[Image]:
    """Return the images that stand in values, equal ones under equal markers together."""
    found: dict[tuple[object, ...], Image] = {}
    seen = _Seen(values)
    for site, shape in _sites(values, (), 0):
        reference = _reference(site, shape)
        if reference is None or (reference.tag is None and reference.digest is None):
            continue
        is_repeated = seen.is_shared(site)
        site.is_shared = is_repeated or any(not one.text for one in site.nodes.values())
        # What aliases repeat is one image, read at one of its places; the others follow.
        nodes = tuple(map(id, site.nodes.values())) if is_repeated else ()
        moved = {":".join(markers[line].split(":")[:2]) for line in site.lines if line in markers}
        key = (reference, shape, nodes, repr(site.parts), frozenset(moved))
        if key not in found:
            found[key] = Image(reference, shape, [site])
        elif not is_repeated:
            found[key].sites.append(site)
        elif found[key].is_side and not Image(reference, shape, [site]).is_side:
            found[key].sites = [site]
    return list(found.values())


class _Seen:
    """Which nodes stand at more than one place."""

    def __init__(self, root: Node) -> None:
        self.times: dict[int, int] = {}
        self.parents: dict[int, int] = {}
        self._walk(root)

    def _walk(self, node: Node) -> None:
        self.times[id(node)] = self.times.get(id(node), 0) + 1
        if self.times[id(node)] > 1:
            return
        inner = (
            node.items
            if type(node) is Sequence
            else [value for _, value in node.entries]
            if type(node) is Mapping
            else []
        )
        for one in inner:
            self.parents.setdefault(id(one), id(node))
            self._walk(one)

    def is_shared(self, site: Site) -> bool:
        """Whether an alias repeats a site, a part of it, or something around it."""
        if any(self.times[id(node)] > 1 for node in site.nodes.values()):
            return True
        at: int | None = id(next(iter(site.nodes.values())))
        while at is not None:
            if self.times[at] > 1:
                return True
            at = self.parents.get(at)
        return False


def _steps(node: Mapping | Sequence) -> Iterator[tuple[paths.Step, Node]]:
    """Yield the values of a mapping, or the items of a list, each with the step to it."""
    if type(node) is Mapping:
        yield from ((key.text, value) for key, value in node.entries)
        return
    assert type(node) is Sequence
    names = [item.text("name") if type(item) is Mapping else None for item in node.items]
    for index, (name, item) in enumerate(zip(names, node.items, strict=True)):
        is_told = name is not None and names.count(name) == 1 and _SELECTABLE.match(name)
        yield (("name", name),) if is_told and name is not None else index, item


def scalars(node: Node, path: Path) -> Iterator[tuple[Path, Scalar]]:
    """Yield all scalars with their paths."""
    if type(node) is Scalar:
        yield path, node
    elif len(path) < paths.MAX_STEPS - 2:
        for step, value in _steps(node):
            yield from scalars(value, (*path, step))


def _sites(node: Node, path: Path, depth: int) -> Iterator[tuple[Site, str]]:
    if type(node) is Scalar or depth >= paths.MAX_STEPS - 2:
        return
    if type(node) is Mapping:
        yield from _of_mapping(node, path)
    for step, value in _steps(node):
        yield from _sites(value, (*path, step), depth + 1)


def _of_mapping(node: Mapping, path: Path) -> Iterator[tuple[Site, str]]:
    """Yield the images whose parts are entries of one mapping."""
    texts = {key.text: value for key, value in node.entries if type(value) is Scalar and _is_text(value)}
    taken: set[str] = set()
    if "repository" in texts and "tag" in texts and "image" not in texts:
        nodes = {part: texts[part] for part in PARTS if part in texts}
        digest = node.get("digest")
        if type(digest) is Scalar and digest.style and not digest.text:
            # The place of a digest that the bot has not written yet.
            nodes["digest"] = digest
        taken |= set(nodes)
        if "registry" in nodes and "digest" in nodes:
            yield Site(path, nodes, {part: (*path, part) for part in nodes}, node), "map"
        else:
            yield (
                Site(path, nodes, {}, node),
                next(s for s in ("registry", "digest", "split") if s in nodes or s == "split"),
            )
    elif "tag" in texts and path:
        name = next((name for name in _OTHER_NAMES if name in texts and _is_name(name, texts, path)), None)
        if name is not None:
            keys = {"repository": name, "tag": "tag"}
            if name != "registry" and "registry" in texts:
                keys = {"registry": "registry", **keys}
            if "digest" in texts:
                keys["digest"] = "digest"
            taken |= set(keys.values())
            parts = {part: (*path, key) for part, key in keys.items()}
            yield Site(path, {part: texts[key] for part, key in keys.items()}, parts, node), "map"
    for key, text in texts.items():
        flat = _FLAT.match(key)
        if flat is not None:
            tag = f"{flat['lead']}{flat['word']}Tag"
            if tag in texts:
                parts = {"repository": (*path, key), "tag": (*path, tag)}
                yield Site(path, {"repository": text, "tag": texts[tag]}, parts, node), "map"
        elif _IMAGE_KEY.match(key) and key not in taken:
            yield Site((*path, key), {WHOLE: text}, {}, node), "string"


def _is_name(name: str, texts: dict[str, Scalar], path: Path) -> bool:
    last = next((step for step in reversed(path) if isinstance(step, str)), "")
    is_image = "image" in last.lower()
    if name == "image":
        return "/" in texts[name].text or is_image
    return is_image and (name != "registry" or "/" in texts[name].text)


def _is_text(node: Scalar) -> bool:
    return bool(node.text) and node.is_string and "${" not in node.text and "\n" not in node.text


def _reference(site: Site, shape: str) -> Reference | None:
    """Return the reference at a site, if taking it apart gives the site's parts back."""
    texts = {part: node.text for part, node in site.nodes.items() if node.text}
    try:
        if WHOLE in texts:
            reference = Reference.parse(texts[WHOLE])
        else:
            reference = Reference.join(
                texts["repository"], texts.get("tag"), texts.get("digest"), texts.get("registry")
            )
    except ImageError:
        return None
    if shape == "string" and reference.tag is None and reference.digest is None:
        return None
    return reference if written(reference, tuple(texts)) == texts else None


def written(reference: Reference, parts: tuple[str, ...]) -> dict[str, str | None]:
    """Return what rendering writes for each part of an image."""
    registry, path = reference.registry_parts
    made: dict[str, str | None] = {
        WHOLE: str(reference),
        "registry": registry,
        "repository": path if "registry" in parts else reference.name,
        "tag": reference.tag if "digest" in parts else reference.tag_text,
        "digest": reference.digest,
    }
    return {part: made[part] for part in parts}
