"""An import in, what it kept and what it lost out: as lines for people and as the documented JSON object."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from render.catalog import shown_path
from render.importing.importer import Imported, Outcome
from render.report import count


def report_lines(imported: Imported, *, in_full: bool) -> Iterator[str]:
    """Yield the fidelity report: what was lost of each release, and `in_full` what was decided and left besides."""
    for outcome in imported.outcomes:
        if not in_full and not outcome.lost:
            continue
        yield f"{outcome.object} -> {outcome.service}: {verdict(outcome)}"
        yield from (f"  lost: {path}" for path in outcome.lost)
        if in_full:
            yield from (f"  note: {note}" for note in outcome.notes)
            yield from (f"  comment dropped, line {line}: {text}" for line, text in outcome.comments)
    if in_full:
        yield from (f"platform: {note}" for note in imported.platform_notes)
        for left in imported.left:
            yield f"left: {left.what} ({left.path}:{left.line}): {left.why}"


def verdict(outcome: Outcome) -> str:
    """Return how an object came back, in a word."""
    if outcome.lost:
        return "lost " + count(len(outcome.lost), "path")
    return "equal" if outcome.equal else "equal but for what is noted"


def counts_line(imported: Imported, *, written: bool) -> str:
    """Return the last line of an import."""
    lost = sum(bool(one.lost) for one in imported.outcomes)
    equal = sum(one.equal for one in imported.outcomes)
    noted = len(imported.outcomes) - lost - equal
    line = f"{count(len(imported.outcomes), 'service')}: {equal} equal, {noted} equal but for what is noted, "
    line += f"{lost} with losses; {count(len(imported.files), 'file')} "
    return line + ("written" if written else "not written")


def summary(imported: Imported, platform: Path, *, written: bool) -> dict[str, object]:
    """Return all of an import but its diagnostics as the documented JSON object."""
    return {
        "releases": [
            {
                "source": str(outcome.source),
                "object": outcome.object,
                "service": outcome.service,
                "file": outcome.file,
                "equal": outcome.equal,
                "lost": outcome.lost,
                "notes": outcome.notes,
                "comments": [{"line": line, "text": text} for line, text in outcome.comments],
            }
            for outcome in imported.outcomes
        ],
        "left": [{"file": one.path, "line": one.line, "what": one.what, "why": one.why} for one in imported.left],
        "platform": {
            "file": shown_path(platform),
            "needed": imported.needed or None,
            "notes": imported.platform_notes,
        },
        "files": [shown_path(path) for path in sorted(imported.files)],
        "written": written,
    }
