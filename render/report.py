"""Diagnostics and a summary in, text for people or machines out; the only place that knows colour."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from render.diagnostics import Diagnostic, Location
from render.redact import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from render.tree import Changes

FORMATS = ("full", "concise", "json", "github")
JSON_VERSION = 1
WIDTH = 100
"""Columns of a source line that are shown; a longer one is clipped around what the carets mark."""
_BEFORE = 40
_COLOURS = {"error": "\x1b[1;31m", "warning": "\x1b[1;33m", "bold": "\x1b[1m", "dim": "\x1b[2m", "off": "\x1b[0m"}


def count(number: int, noun: str) -> str:
    """Return a number with its noun: `1 file`, `2 files`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def render_full(diagnostic: Diagnostic, *, colour: bool = False, detail: bool = True) -> str:
    """Return a diagnostic in full: headline, place, source line with carets, cause, hint and detail."""
    paint = _COLOURS if colour else dict.fromkeys(_COLOURS, "")
    place = diagnostic.location
    head = f"{paint[diagnostic.severity]}{diagnostic.severity}[{diagnostic.code}]{paint['off']}"
    lines = [f"{head}: {paint['bold']}{printable(diagnostic.message)}{paint['off']}", f" --> {printable(str(place))}"]
    if diagnostic.snippet and place.column:
        lines += _marked(diagnostic.snippet, place)
    indent = " " * (len(str(place.line)) + 1 if place.line else 2)
    told = [(what, str(where)) for where, what in diagnostic.related]
    told += [("cause", diagnostic.cause), ("hint", diagnostic.hint)]
    lines += [f"{indent}= {what}: {printable(text)}" for what, text in told if text]
    if detail and diagnostic.detail:
        lines.append(diagnostic.detail.rstrip("\n"))
    return "\n".join(lines) + "\n"


def _marked(snippet: str, place: Location) -> list[str]:
    """Return the source line under its number, and the carets below it."""
    number = str(place.line)
    first, length = place.column - 1, max(1, min(place.length, len(snippet) - place.column + 1))
    if len(snippet) > WIDTH:
        snippet, first, length = _clip(snippet, first, length)
    shown = printable(snippet.replace("\t", " "))
    return [
        f"{number} | {shown}",
        f"{' ' * len(number)} | {' ' * _columns(shown[:first])}{'^' * max(1, _columns(shown[first : first + length]))}",
    ]


def _clip(snippet: str, first: int, length: int) -> tuple[str, int, int]:
    """Return a window of a long line that holds what is marked, or its beginning, and where that is in it."""
    start = 0 if first + min(length, WIDTH - _BEFORE) <= WIDTH else max(0, min(first - _BEFORE, len(snippet) - WIDTH))
    window = snippet[start : start + WIDTH]
    before, after = "…" if start else "", "…" if start + WIDTH < len(snippet) else ""
    moved = first - start
    return before + window + after, moved + len(before), max(1, min(length, len(window) - moved))


def _columns(text: str) -> int:
    """Return the columns that a text takes on a terminal."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(one) else 2 if east_asian_width(one) in "WF" else 1 for one in text)


def render_concise(diagnostic: Diagnostic) -> str:
    """Return a diagnostic as one line."""
    hint = f"; {diagnostic.hint}" if diagnostic.hint else ""
    severity = "" if diagnostic.severity == "error" else "warning: "
    return printable(f"{diagnostic.location}: {diagnostic.code} {severity}{diagnostic.message}{hint}") + "\n"


def render_github(diagnostic: Diagnostic) -> str:
    """Return a diagnostic as a GitHub workflow command."""
    place = diagnostic.location
    fields = [f"file={_property(place.path)}"]
    if place.line:
        fields.append(f"line={place.line}")
    if place.column:
        fields.append(f"col={place.column}")
    fields.append(f"title={diagnostic.code}")
    parts = [diagnostic.message, diagnostic.cause, f"hint: {diagnostic.hint}" if diagnostic.hint else ""]
    text = "\n".join(printable(part) for part in parts if part)
    return f"::{diagnostic.severity} {','.join(fields)}::{_data(text)}\n"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(printable(text)).replace(":", "%3A").replace(",", "%2C")


def render_json(diagnostics: Sequence[Diagnostic], summary: dict[str, object]) -> str:
    """Return the whole report as one JSON document (`docs/json.md`)."""
    import json

    report = {"version": JSON_VERSION, **summary, "diagnostics": [_as_json(one) for one in diagnostics]}
    text = json.dumps(report, indent=2, ensure_ascii=False)
    if any(printable(line) != line for line in text.split("\n")):
        # Such as a file name that is no UTF-8.
        text = json.dumps(report, indent=2, ensure_ascii=True)
    return text + "\n"


def _as_json(diagnostic: Diagnostic) -> dict[str, object]:
    return {
        "code": diagnostic.code,
        "severity": diagnostic.severity,
        **_place_json(diagnostic.location),
        "message": diagnostic.message,
        "cause": diagnostic.cause or None,
        "hint": diagnostic.hint or None,
        "related": [{**_place_json(place), "message": what} for place, what in diagnostic.related],
    }


def _place_json(place: Location) -> dict[str, object]:
    return {"file": place.path, "line": place.line or None, "column": place.column or None}


def render_report(diagnostics: Iterable[Diagnostic], style: str, *, colour: bool = False, detail: bool = True) -> str:
    """Return all diagnostics in a style other than `json`; without `detail` when their diffs are shown elsewhere."""
    if style == "concise":
        return "".join(map(render_concise, diagnostics))
    if style == "github":
        return "".join(map(render_github, diagnostics))
    return "\n".join(render_full(one, colour=colour, detail=detail) for one in diagnostics)


def faults_line(diagnostics: Sequence[Diagnostic], checked: int) -> str:
    """Return the last line of a run with faults: `2 errors in 1 file (12 checked)`."""
    errors = [one for one in diagnostics if one.severity == "error"]
    warnings = len(diagnostics) - len(errors)
    told = []
    if errors:
        told.append(count(len(errors), "error"))
    if warnings:
        told.append(count(warnings, "warning"))
    files = len({one.location.path for one in diagnostics})
    return f"{' and '.join(told)} in {count(files, 'file')} ({checked} checked)"


def render_stale(changes: Changes, root: str) -> str:
    """Return a GitHub annotation for each file that is not what the catalog says."""
    out = []
    for listed, told in ((changes.new, "is missing"), (changes.changed, "is stale"), (changes.stale, "is left over")):
        for path in listed:
            where = _property(f"{root}/{path}")
            out.append(f"::error file={where},title=stale::the generated file {told}; run `render build`, and commit\n")
    return "".join(sorted(out))


def summary_lines(changes: Changes, *, checking: bool) -> list[str]:
    """Return the last lines of a run: what stays, what a change does to releases, and the counts."""
    would = "would be " if checking else ""
    lines = [f"kept {kept} of `{policy}` (the catalog says {declared})" for policy, declared, kept in changes.kept]
    if changes.upgrades:
        lines.append(f"the override table changes: {count(changes.upgrades, 'release')} {would}upgraded")
    for old, new in sorted(changes.moved.items()):
        kind = "release" if new.endswith("/helmrelease.yaml") else "workload"
        was, name = (path.split("/")[1] for path in (old, new))
        lines.append(
            f"`{name}` {'would take' if checking else 'takes'} over the {kind} of `{was}`, which goes on running"
        )
    for policy, version in changes.forgotten:
        goes = "would go" if checking else "goes"
        lines.append(
            f"{version} of `{policy}` {goes} with its files, unless `render sync` has written it into the catalog"
        )
    will = "would" if checking else "will"
    lines += [f"Flux {will} uninstall the release of `{service}`" for service in changes.uninstalled]
    lines += [f"Flux {will} delete the workload of `{service}`" for service in changes.deleted]
    lines += [
        f"Flux {will} delete the virtual machine of `{service}`, with its DataVolumes"
        for service in changes.deleted_machines
    ]
    changed = len(changes.new) + len(changes.changed)
    line = f"{count(changes.services, 'service')}, {count(changed + changes.unchanged, 'file')}: "
    line += f"{changed} {would}changed, {changes.unchanged} unchanged, {len(changes.stale)} {would}pruned"
    return [*map(printable, lines), line]
