"""Values and the images in them in, the values without the images that can leave them out, as nodes and as lines.

An image stays where its lines say more than itself: a comment, an anchor, an alias.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from render.importing.images import Image
from render.importing.text import Block, Lines, anew, says
from render.plan import paths
from render.plan.paths import Path
from render.plan.sites import WHOLE
from render.yaml.source import Mapping, Node, Scalar, Sequence


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
