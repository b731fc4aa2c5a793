"""Differences of two trees in, Markdown that fits the comment of a pull request out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from render.diagnostics import Diagnostic
from render.diff import Diff, ObjectDiff
from render.diff_report import (
    MARKS,
    Row,
    Titles,
    change_lines,
    counts,
    groups,
    headline,
    image_rows,
    listed,
    short,
    tables,
    value_lines,
    warnings,
)
from render.patterns import lazy
from render.redact import printable
from render.report import count, render_concise

LIMIT = 60_000
"""Characters of a comment; GitHub takes 65,536."""
TAG = "<!-- render diff -->"
"""The first line: by it a later run finds the comment that it replaces."""
_LINES = 80
"""Lines of one change, or of one new object, that are shown."""
_RESERVE = 600
"""Characters kept for the notes of what was cut."""
_PLACES = 3
_NAMES = 50
_MARKS = {status: f"&#{ord(mark)};" for status, mark in MARKS.items()}
"""A mark at the beginning of a line would begin a list."""
_SPECIAL = lazy(r"[\\`*_{}\[\]<>#|~&\"']")


def render_markdown(diff: Diff, titles: Titles, *, limit: int = LIMIT) -> str:
    """Return the differences as a comment of at most `limit` characters, with a note of what was left out."""
    page = _Page(limit)
    page.must(f"{TAG}\n### Rendered changes: {_code(titles.old)} → {_code(titles.new)}\n")
    if diff.is_empty:
        page.must("No object differs.\n")
        return page.text()
    page.must(f"**{counts(diff)}**\n")
    page.items([f"- ⚠️ {_told(line)}\n" for line in warnings(diff)], "warning", limit // 6)
    page.table("| image | becomes | where |\n|---|---|---|\n", [_row(row) for row in image_rows(diff)], limit // 3)
    for releases, changes in tables(diff):
        names = _list([str(one.id) for one in releases])
        lines = [line for change in changes for line in _cut(change_lines(change))]
        title = f"{_MARKS['changed']} the override table of {count(len(releases), 'release')}"
        page.block(_folded(title, f"{_fence(lines)}\n{names}"), f"- {title}\n", len(releases))
    for alike, changed in groups(diff):
        page.block(_alike(alike, changed), f"- {_heading(alike)}\n", len(alike))
    for affected, verb in ((diff.upgraded, "upgraded"), (diff.installed, "installed")):
        if affected:
            title = f"{count(len(affected), 'release')} {verb}"
            page.block(_folded(title, _list(affected)), f"- {title}\n")
    return page.text()


def render_failure(titles: Titles, failures: Iterable[tuple[str, Sequence[Diagnostic]]], *, limit: int = LIMIT) -> str:
    """Return a comment that says which sides do not render, and why; nothing is compared then."""
    page = _Page(limit)
    page.must(f"{TAG}\n### Rendered changes: {_code(titles.old)} → {_code(titles.new)}\n")
    for title, faults in failures:
        page.must(f"⚠️ {_code(title)} cannot be rendered or read, so nothing is compared.\n")
        lines = [render_concise(fault).removesuffix("\n") for fault in faults]
        page.block(_fence(_cut(lines), ""), "")
    return page.text()


class _Page:
    """Text that grows up to a limit, and what had to be left out."""

    def __init__(self, limit: int) -> None:
        self.left = limit - _RESERVE
        self.parts: list[str] = []
        self.folded = 0
        """Blocks of which only the title is shown."""
        self.dropped: dict[str, int] = {}

    def must(self, part: str) -> None:
        self.parts.append(part)
        self.left -= len(part) + 1

    def _fits(self, part: str) -> bool:
        return len(part) + 1 <= self.left

    def items(self, items: list[str], noun: str, most: int) -> None:
        """Add a list, of at most `most` characters."""
        taken = _taken(items, min(most, self.left))
        if taken:
            self.must("".join(taken))
        self._drop(noun, len(items) - len(taken))

    def table(self, head: str, rows: list[str], most: int) -> None:
        """Add a table of images."""
        taken = _taken(rows, min(most, self.left) - len(head))
        if taken:
            self.must(head + "".join(taken))
        self._drop("image", len(rows) - len(taken))

    def block(self, text: str, title: str, objects: int = 0) -> None:
        """Add a folded block about some objects, or if that is too long its title alone."""
        if self.dropped.get("object"):
            self._drop("object", objects)
        elif self._fits(text):
            self.must(text)
        elif self._fits(title):
            self.folded += 1
            self.must(title)
        else:
            self._drop("object", objects)

    def _drop(self, noun: str, number: int) -> None:
        if number:
            self.dropped[noun] = self.dropped.get(noun, 0) + number

    def text(self) -> str:
        """Return all of it, with a note of what is not there."""
        told = [f"{count(number, noun)} left out" for noun, number in self.dropped.items()]
        if self.folded:
            told.append(f"{count(self.folded, 'section')} shown by title only")
        if told:
            self.parts.append(
                f"**Cut to the size of a comment: {', '.join(told)}.** Run `render diff` for all of it.\n"
            )
        return "\n".join(self.parts)


def _taken(items: list[str], most: int) -> list[str]:
    """Return the first items that fit into `most` characters."""
    taken: list[str] = []
    for item in items:
        most -= len(item)
        if most < 0:
            break
        taken.append(item)
    return taken


def _heading(objects: list[ObjectDiff]) -> str:
    one = objects[0]
    told = _plain(headline(one)) if len(objects) == 1 else f"{len(objects)} objects of kind {_plain(one.id.kind)}"
    return f"{_MARKS[one.status]} {told}"


def _alike(objects: list[ObjectDiff], changes: list[list[str]]) -> str:
    """Return one object, or several that change alike."""
    one, title = objects[0], _heading(objects)
    if one.status == "moved":
        return f"- {title}\n"
    if one.status != "changed":
        return _folded(title, _fence(_cut([f"{MARKS[one.status]}{short(line)}" for line in value_lines(one.whole)])))
    names = f"\n{_list([headline(one) for one in objects])}" if len(objects) > 1 else ""
    lines = [line for change in changes for line in _cut(change)]
    return _folded(f"{title}: {count(len(changes), 'change')}", _fence(_cut(lines, 4 * _LINES)) + names)


def _list(names: list[str]) -> str:
    return "".join(f"- {_code(name)}\n" for name in listed(names, _NAMES))


def _cut(lines: list[str], most: int = _LINES) -> list[str]:
    return lines if len(lines) <= most + 1 else [*lines[:most], f" … {len(lines) - most} more lines"]


def _folded(title: str, body: str) -> str:
    return f"<details><summary>{title}</summary>\n\n{body}\n</details>\n"


def _fence(lines: list[str], language: str = "diff") -> str:
    """Return a code block; its fence is longer than any run of backticks in it."""
    runs = [len(run) for line in lines for run in re.findall("`+", line)]
    fence = "`" * max(3, *(length + 1 for length in runs), 3)
    return f"{fence}{language}\n" + "".join(f"{printable(line)}\n" for line in lines) + f"{fence}\n"


def _row(row: Row) -> str:
    places = [f"{_code(str(one.id))} {_code(path)}" for one, path in row.places[:_PLACES]]
    if len(row.places) > _PLACES:
        places.append(f"and {len(row.places) - _PLACES} more")
    return f"| {_code(row.old)} | {_code(row.new)} | {'<br>'.join(places)} |\n"


def _code(text: str | None) -> str:
    """Return a text as code that may stand in a table."""
    return f"<code>{_plain(text)}</code>" if text else "—"


def _plain(text: str) -> str:
    """Return a text that neither Markdown nor HTML takes for anything else."""
    return _SPECIAL.sub(lambda match: f"&#{ord(match[0])};", printable(text))


def _told(text: str) -> str:
    """Return a line in which only backticks mean something."""
    return "".join(_code(part) if index % 2 else _plain(part) for index, part in enumerate(text.split("`")))
