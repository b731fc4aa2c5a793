"""The values of a release in, the images in them out: where each stands, in which shape, and whether it can move.

An image is one that rendering writes back as it was: all its parts are texts, and put together and taken apart again
they are the same. Others stay in `values`, and are no images to the catalog.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from render.flux.image import ImageError, Reference
from render.importing.text import Block, Lines, anew, says
from render.plan import paths
from render.plan.paths import Path
from render.plan.sites import PARTS, WHOLE
from render.yaml.source import Mapping, Node, Scalar, Sequence

_IMAGE_KEY = re.compile(r"(?:.*[a-z0-9_-])?[iI]mage\Z")
_FLAT = re.compile(r"(?P<lead>|.*[a-z0-9])(?P<word>[iI]mage)Repository\Z")
_SELECTABLE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]*\Z")
_OTHER_NAMES = ("repo", "name", "image", "registry")
"""Keys beside `tag` that charts give the repository, where it is not called so."""
_NO_NAME = re.compile(r"[^a-z0-9]+")
_GENERIC = ("image", "app", "main", "containers", "container", "controllers", "initContainers", "spec", "template")


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
    """Whether an alias repeats it, or something around it."""

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
    def at(self) -> str | list[str] | dict[str, str]:
        """Its places, as a definition names them."""
        prefix = "" if self.in_object is None else "extraObjects[kind={},name={}].".format(*self.in_object)
        first = self.sites[0]
        if first.parts:
            return {part: prefix + paths.show(path) for part, path in first.parts.items()}
        listed = [prefix + paths.show(site.path) for site in self.sites]
        return listed if len(listed) > 1 else listed[0]


def find_images(values: Node) -> list[Image]:
    """Return the images that stand in values, equal ones together."""
    found: dict[tuple[object, ...], Image] = {}
    seen = _Seen(values)
    for site, shape in _sites(values, (), 0):
        reference = _reference(site, shape)
        if reference is None or (reference.tag is None and reference.digest is None):
            continue
        site.is_shared = seen.is_shared(site)
        # What aliases repeat is one image, read at one of its places; the others follow.
        nodes = tuple(map(id, site.nodes.values())) if site.is_shared else ()
        key = (reference, shape, nodes, repr(site.parts))
        if key not in found:
            found[key] = Image(reference, shape, [site])
        elif not site.is_shared:
            found[key].sites.append(site)
        elif _is_side(found[key]) and not _is_side(Image(reference, shape, [site])):
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


def _sites(node: Node, path: Path, depth: int) -> Iterator[tuple[Site, str]]:
    if type(node) is Scalar or depth >= paths.MAX_STEPS - 2:
        return
    if type(node) is Sequence:
        names = [item.text("name") if type(item) is Mapping else None for item in node.items]
        for index, item in enumerate(node.items):
            name = names[index]
            is_told = name is not None and names.count(name) == 1 and _SELECTABLE.match(name)
            step: paths.Step = (("name", name),) if is_told and name is not None else index
            yield from _sites(item, (*path, step), depth + 1)
        return
    assert type(node) is Mapping
    yield from _of_mapping(node, path)
    for key, value in node.entries:
        if type(value) is not Scalar:
            yield from _sites(value, (*path, key.text), depth + 1)


def _of_mapping(node: Mapping, path: Path) -> Iterator[tuple[Site, str]]:
    """Yield the images whose parts are entries of one mapping."""
    texts = {key.text: value for key, value in node.entries if type(value) is Scalar and _is_text(value)}
    taken: set[str] = set()
    if "repository" in texts and "tag" in texts and "image" not in texts:
        nodes = {part: texts[part] for part in PARTS if part in texts}
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
    texts = {part: node.text for part, node in site.nodes.items()}
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


# Names


def name_images(images: list[Image], service: str, default_at: str, policies: dict[tuple[str, str], str]) -> None:
    """Choose the main image and name the others; a policy's name decides where it can."""
    main = _main(images, service, default_at)
    taken: set[str] = set()
    for image in images:
        if image is main:
            continue
        told = image.policy[1].removeprefix(f"{service}-") if image.policy in policies and image.policy else ""
        is_theirs = image.policy is not None and image.policy[1] == f"{service}-{told}"
        path = image.sites[0].path if image.sites else (image.reference.name.rpartition("/")[2],)
        image.key = _unique(told if is_theirs else _key(path, service), taken)


def _main(images: list[Image], service: str, default_at: str) -> Image | None:
    inside = [one for one in images if one.in_object is None and one.sites]
    for image in images:
        if image.shape == "container":
            return image
    for image in images:
        if image.policy is not None and image.policy[1] == service:
            return image
    candidates = [one for one in inside if one.policy is None or not one.policy[1].startswith(f"{service}-")]
    for wanted in (default_at, "image", f"controllers.{service}.containers.app.image"):
        for image in candidates:
            if any(paths.show(site.path) == wanted for site in image.sites):
                return image
    rest = [one for one in candidates if not _is_side(one)]
    return rest[0] if len(rest) == 1 else None


def _is_side(image: Image) -> bool:
    steps = [step.lower() for step in (image.sites[0].path if image.sites else ()) if isinstance(step, str)]
    return any("init" in step or "sidecar" in step or "extra" in step for step in steps)


def _key(path: Path, service: str) -> str:
    """Return a name for an image, from the most telling step to it."""
    steps = [step if isinstance(step, str) else str(step) if isinstance(step, int) else step[0][1] for step in path]
    last = steps[-1] if steps else "image"
    if last.endswith("Image") and len(last) > 5:
        return _label(last.removesuffix("Image"))
    for step in reversed(steps):
        if step not in _GENERIC and step != service and not step.isdigit():
            return _label(step)
    return _label(steps[-2] if len(steps) > 1 else "image")


def _label(text: str) -> str:
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", text).lower()
    return _NO_NAME.sub("-", spaced).strip("-")[:40].strip("-") or "image"


def _unique(name: str, taken: set[str]) -> str:
    made, number = name, 2
    while made in taken:
        made, number = f"{name}-{number}", number + 1
    taken.add(made)
    return made


# Out of the values


def take_out(values: Mapping, found: Block | None, lines: Lines, images: list[Image]) -> tuple[Mapping, Block | None]:
    """Return values without the images that can leave them, and their lines; what the images are is set in each.

    An image stays where its lines say more than itself: a comment, an anchor, an alias.
    """
    for image in images:
        if image.in_object is not None or not image.sites or any(site.is_shared for site in image.sites):
            continue
        lifted = _without(values, image)
        if lifted is None:
            continue
        if found is None or not found.numbers:
            values, image.is_lifted = lifted, True
            continue
        gone = _lines_of(values, image, lines)
        if gone is None or not gone <= set(found.numbers):
            continue
        kept = [(number, line) for number, line in zip(found.numbers, found.text.split("\n"), strict=False)]
        kept = [(number, line) for number, line in kept if number not in gone]
        text = "".join(f"{line}\n" for _, line in kept)
        rest = Block(text, found.first, found.last, [number for number, _ in kept], True, found.anchors)
        if not lifted.entries or says(rest, lines, lifted):
            values, found, image.is_lifted = lifted, rest, True
    if found is not None and not found.numbers and values.entries:
        found = Block(anew(values), found.first, found.last, keeps_comments=False)
    return values, found


def _targets(image: Image) -> Iterator[Path]:
    for site in image.sites:
        if site.parts:
            yield from site.parts.values()
        elif WHOLE in site.nodes or image.shape == "tag":
            yield site.path
        else:
            yield from ((*site.path, part) for part in site.nodes)


def _without(values: Mapping, image: Image) -> Mapping | None:
    """Return values without an image and the mappings that it leaves empty; None if a list's item would be empty."""
    made: Node | None = values
    for path in _targets(image):
        made = _removed(made, path)
        if made is None:
            return Mapping([], values.line, values.column)
    return made if type(made) is Mapping else None


def _removed(node: Node | None, path: Path) -> Node | None:
    """Return a copy without what stands at a path; None when nothing is left."""
    step, rest = path[0], path[1:]
    if type(node) is Mapping:
        entries = []
        for key, value in node.entries:
            if key.text != step:
                entries.append((key, value))
            elif rest and (left := _removed(value, rest)) is not None:
                entries.append((key, left))
        return Mapping(entries, node.line, node.column) if entries else None
    if type(node) is Sequence:
        items = list(node.items)
        for index, item in enumerate(items):
            if (isinstance(step, int) and index == step) or (isinstance(step, tuple) and paths.matches(item, step)):
                left = _removed(item, rest) if rest else None
                items[index] = left if left is not None else Mapping([])
                break
        return Sequence(items, node.line, node.column)
    return None


def _lines_of(values: Mapping, image: Image, lines: Lines) -> set[int] | None:
    """Return the lines that hold an image and nothing else; None where they hold more."""
    gone: set[int] = set()
    for path in _targets(image):
        parent = paths.find(values, path[:-1])
        last = path[-1]
        key = parent.key(last) if type(parent) is Mapping and isinstance(last, str) else None
        value = parent.get(last) if type(parent) is Mapping and isinstance(last, str) else None
        if key is None or type(value) is not Scalar or key.line != value.line:
            return None
        if not _is_alone(lines, key, value):
            flow = _flow_line(values, path, image, lines)
            if flow is None:
                return None
            gone.add(flow)
            continue
        gone.add(key.line)
    # The keys above that have nothing left.
    for path in _targets(image):
        for depth in range(len(path) - 1, 0, -1):
            node, step = paths.find(values, path[: depth - 1]), path[depth - 1]
            holder = paths.find(values, path[:depth])
            if type(holder) is not Mapping or type(node) is not Mapping or not isinstance(step, str):
                break
            if any(line not in gone for line in _all_lines(holder)):
                break
            key = node.key(step)
            if key is None:
                return None
            if key.line in gone:
                continue
            if not re.fullmatch(r"\s*[^\s#&*!]+:\s*", lines.lines[key.line - 1]):
                return None
            gone.add(key.line)
    if any(lines.comments(line, line) for line in gone):
        return None
    # A comment line above belongs to what follows it.
    return None if any(_is_comment_line(lines, line - 1) for line in gone) else gone


def _is_comment_line(lines: Lines, line: int) -> bool:
    comments = lines.comments(line, line)
    return bool(comments) and lines.lines[line - 1].lstrip().startswith("#")


def _is_alone(lines: Lines, key: Scalar, value: Scalar) -> bool:
    """Whether a line holds one entry of a block, and no anchor."""
    text = lines.lines[key.line - 1]
    before, after = text[: key.column - 1], text[key.column - 1 : value.column - 1]
    rest = text[value.column - 1 + value.length :].strip()
    is_plain = not before.strip() and re.fullmatch(r"[^\s&*!]+:\s+", after) is not None
    return is_plain and (not rest or rest.startswith("#")) and value.line not in lines.inside


def _flow_line(values: Mapping, path: Path, image: Image, lines: Lines) -> int | None:
    """Return the line of `image: {repository: …, tag: …}` that holds nothing else."""
    for depth in range(len(path) - 1, 0, -1):
        holder, above, step = paths.find(values, path[:depth]), paths.find(values, path[: depth - 1]), path[depth - 1]
        if type(holder) is not Mapping or type(above) is not Mapping or not isinstance(step, str):
            return None
        key = above.key(step)
        if key is None or key.line != holder.line:
            return None
        gone = {id(node) for site in image.sites for node in site.nodes.values()}
        if any(type(value) is not Scalar or id(value) not in gone for _, value in holder.entries):
            return None
        text = lines.lines[key.line - 1]
        if not text[: key.column - 1].strip():
            return key.line if re.fullmatch(r"[^\s&*!{}]+:\s+\{[^{}&*!#]*\}\s*", text[key.column - 1 :]) else None
    return None


def _all_lines(node: Mapping) -> Iterator[int]:
    for key, value in node.entries:
        yield key.line
        if type(value) is Mapping:
            yield from _all_lines(value)
        elif type(value) is Sequence:
            yield -1
