"""Differences of two trees in, text for people or machines out: plain text, Markdown for a comment, JSON."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator

from render.diff import Diff, ImageChange, ObjectDiff, Status
from render.diff_nodes import Change
from render.plan import paths
from render.redact import BLANK, printable
from render.report import count
from render.structs import struct
from render.yaml import scalar
from render.yaml.emit import Emitter
from render.yaml.source import Mapping, Node, Scalar, Sequence

WIDTH = 160
"""Characters of a value that are shown in one line; a longer one is clipped around what differs."""
_BEFORE = 40
MARKS: dict[Status, str] = {"added": "+", "removed": "-", "changed": "~", "moved": "~"}
STATUSES = tuple(MARKS)
_COLOURS = {"+": "\x1b[32m", "-": "\x1b[31m", "~": "\x1b[1;33m"}
_OFF = "\x1b[0m"


@struct(frozen=True)
class Titles:
    """What the two sides are called."""

    old: str
    new: str


@struct(frozen=True)
class Row:
    """An image that changes in the same way in some places."""

    old: str | None
    new: str | None
    places: tuple[tuple[ObjectDiff, str], ...]


def image_rows(diff: Diff) -> list[Row]:
    """Return the changes of images, those that are equal as one, in the order of their objects."""
    rows: dict[tuple[str | None, str | None], list[tuple[ObjectDiff, str]]] = {}
    for one in diff.objects:
        for image in one.images:
            rows.setdefault((image.old, image.new), []).append((one, image.path))
    return [Row(old, new, tuple(places)) for (old, new), places in rows.items()]


def groups(diff: Diff) -> list[tuple[list[ObjectDiff], list[list[str]]]]:
    """Return what differs, but for the override table: objects of one kind that change alike, or one object alone.

    With them come the lines of each change.
    """
    found: dict[tuple[object, ...], tuple[list[ObjectDiff], list[list[str]]]] = {}
    for one in diff.objects:
        lines = [change_lines(change) for change in one.changes]
        if lines or one.status != "changed":
            alone = () if lines else (one.id,)
            key = (one.status, one.id.group, one.id.kind, *map(tuple, lines), *alone)
            found.setdefault(key, ([], lines))[0].append(one)
    return list(found.values())


def tables(diff: Diff) -> list[tuple[list[ObjectDiff], list[Change]]]:
    """Return the changes of the override table, each with the releases that carry it."""
    found: dict[tuple[str, ...], tuple[list[ObjectDiff], list[Change]]] = {}
    for one in diff.objects:
        if one.table:
            lines = tuple(line for change in one.table for line in change_lines(change))
            found.setdefault(lines, ([], one.table))[0].append(one)
    return list(found.values())


def counts(diff: Diff) -> str:
    """Return what differs in one line: `1 object added, 2 changed; 2 releases upgraded`."""
    words = [f"{diff.count(status)} {status}" for status in STATUSES]
    told = [word for word in words if not word.startswith("0 ")]
    if not told:
        return "no difference"
    number, _, word = told[0].partition(" ")
    parts = [", ".join([f"{count(int(number), 'object')} {word}", *told[1:]])]
    releases = [
        f"{len(names)} {verb}"
        for names, verb in (
            (diff.reinstalled, "reinstalled"),
            (diff.uninstalled, "uninstalled"),
            (diff.upgraded, "upgraded"),
            (diff.installed, "installed"),
        )
        if names
    ]
    if releases:
        parts.append("releases: " + ", ".join(releases))
    return "; ".join(parts)


def warnings(diff: Diff) -> list[str]:
    """Return what a reviewer must not miss: reinstalls, uninstalls, and what the table upgrades."""
    lines = [f"`{service}` is uninstalled and installed again: {reason}" for service, reason in diff.reinstalled]
    lines += [f"the release `{name}` is uninstalled" for name in diff.uninstalled]
    if diff.by_table:
        lines.append(f"the override table changes, which alone upgrades {count(diff.by_table, 'release')}")
    return lines


def headline(one: ObjectDiff) -> str:
    """Return an object with the file it stands in."""
    file = one.new_file or one.old_file or ""
    if one.status == "moved":
        file = f"{one.old_file} → {one.new_file}"
    return str(one.id) if one.id.name == file else f"{one.id} ({file})"


def listed(names: list[str], most: int = 10) -> list[str]:
    """Return names, the last of a longer list as their number."""
    return names if len(names) <= most + 1 else [*names[:most], f"and {len(names) - most} more"]


def value_lines(node: Node | None) -> list[str]:
    """Return a value as YAML, in lines without indentation of their own."""
    if node is None:
        return []
    text = Emitter().entry("", "x", node)
    first, _, rest = text.removesuffix("\n").partition("\n")
    if not rest:
        return [first[3:]]
    indent = 0 if type(node) is Sequence else 2
    return [line[indent:] for line in rest.split("\n")]


def change_lines(change: Change) -> list[str]:
    """Return a change as lines of a diff: ` path`, then what goes (`-`) and what comes (`+`)."""
    notes = {"order": "  (order)", "marker": "  (setter marker)"}
    lines = [f" {paths.show(change.path) or '.'}{notes.get(change.kind, '')}"]
    old, new = change.old, change.new
    if type(old) is Scalar and type(new) is Scalar:
        if "\n" in old.text and "\n" in new.text:
            return lines + _text_lines(old.text, new.text)
        if "\n" not in old.text + new.text:
            before, after = _clip(value_lines(old)[0], value_lines(new)[0])
            same = "  (changed, and not shown)" if before == after else ""
            return [*lines, f"-{before}{same}", f"+{after}{same}"]
    return lines + [f"-{short(line)}" for line in value_lines(old)] + [f"+{short(line)}" for line in value_lines(new)]


def _text_lines(old: str, new: str) -> list[str]:
    """Return the difference of two texts by line."""
    made = difflib.unified_diff(old.split("\n"), new.split("\n"), lineterm="", n=2)
    lines = [f" {line}" if line.startswith("@@") else short(line) for line in list(made)[2:]]
    return lines or [f"-{BLANK}  (changed, and not shown)", f"+{BLANK}  (changed, and not shown)"]


def short(line: str) -> str:
    """Return a line without what goes beyond the width."""
    return line if len(line) <= WIDTH else f"{line[: WIDTH - 1]}…"


def _clip(old: str, new: str) -> tuple[str, str]:
    """Return a window of two long lines that holds the first place at which they differ."""
    if max(len(old), len(new)) <= WIDTH:
        return old, new
    common = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    start = max(0, common - _BEFORE)

    def window(text: str) -> str:
        end = "…" if len(text) > start + WIDTH else ""
        return ("…" if start else "") + text[start : start + WIDTH] + end

    return window(old), window(new)


def render_text(diff: Diff, *, colour: bool = False) -> str:
    """Return the differences as plain text: objects, the table's changes, images, and what happens to releases."""
    blocks = [
        [f"{MARKS[one.status]} {headline(one)}" for one in alike]
        + [f"   {line}" for lines in changes for line in lines]
        for alike, changes in groups(diff)
    ]
    for releases, changes in tables(diff):
        lines = [f"   {line}" for change in changes for line in change_lines(change)]
        names = f"   in {', '.join(listed([str(one.id) for one in releases]))}"
        blocks.append([f"~ override table of {count(len(releases), 'release')}", *lines, names])
    rows = image_rows(diff)
    if rows:
        blocks.append(["images", *(f"  {line}" for row in rows for line in _row_text(row))])
    told = warnings(diff)
    if diff.upgraded:
        told.append(f"upgraded: {', '.join(listed(diff.upgraded))}")
    if diff.installed:
        told.append(f"installed: {', '.join(listed(diff.installed))}")
    if told:
        blocks.append(["releases", *(f"  {line}" for line in told)])
    lines = [line for block in blocks for line in [*map(printable, block), ""]]
    return "".join(f"{_coloured(line) if colour else line}\n" for line in lines[:-1])


def _row_text(row: Row) -> Iterator[str]:
    yield f"{row.old or '(none)'} → {row.new or '(none)'}"
    for one, path in row.places:
        yield f"  {one.id} {path}"


def _coloured(line: str) -> str:
    mark = line.lstrip(" ")[:1]
    is_value = line.startswith("   ") and line[3:4] == mark
    if mark in _COLOURS and (line[:1] == mark or is_value):
        return f"{_COLOURS[mark]}{line}{_OFF}"
    return line


def as_json(diff: Diff, titles: Titles, failed: Iterable[str]) -> dict[str, object]:
    """Return the differences as JSON has them (`docs/json.md`); `failed` names the sides that could not be read."""
    return {
        "old": titles.old,
        "new": titles.new,
        "failed": list(failed),
        "counts": {status: diff.count(status) for status in STATUSES},
        "objects": [_object_json(one) for one in diff.objects],
        "images": [
            {"object": _id_json(one), "path": image.path, "old": image.old, "new": image.new}
            for one, image in _images(diff)
        ],
        "releases": {
            "installed": diff.installed,
            "uninstalled": diff.uninstalled,
            "upgraded": diff.upgraded,
            "reinstalled": [{"service": service, "reason": reason} for service, reason in diff.reinstalled],
            "byTable": diff.by_table,
        },
    }


def _images(diff: Diff) -> Iterator[tuple[ObjectDiff, ImageChange]]:
    for one in diff.objects:
        for image in one.images:
            yield one, image


def _id_json(one: ObjectDiff) -> dict[str, object]:
    return {
        "group": one.id.group,
        "kind": one.id.kind or None,
        "namespace": one.id.namespace or None,
        "name": one.id.name,
    }


def _object_json(one: ObjectDiff) -> dict[str, object]:
    return {
        **_id_json(one),
        "service": one.service or None,
        "status": one.status,
        "file": {"old": one.old_file, "new": one.new_file},
        "changes": [
            {
                "path": paths.show(change.path),
                "kind": change.kind,
                "old": plain(change.old),
                "new": plain(change.new),
                "redacted": change.is_redacted,
            }
            for change in [*one.changes, *one.table]
        ],
    }


def plain(node: Node | None) -> object:
    """Return a value as JSON has it, numbers as Helm reads them; None also where there is none."""
    if node is None:
        return None
    if type(node) is Sequence:
        return [plain(item) for item in node.items]
    if type(node) is Mapping:
        return {key.text: plain(value) for key, value in node.entries}
    assert type(node) is Scalar
    resolved = scalar.sigs(node.text)
    if node.is_string or resolved.kind not in ("int", "float", "bool", "null"):
        return node.text
    return resolved.value
