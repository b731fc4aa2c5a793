"""What `sync` has found in, its last lines and its JSON object out."""

from __future__ import annotations

from render.report import count
from render.sync_edits import Change, shown, version

TYPE_CHECKING = False
if TYPE_CHECKING:
    from render.sync import Sync

_OTHER_POLICY = "the form of the tag is another one, and so is the ImagePolicy that a build derives from it"


def _both(change: Change) -> tuple[str, str]:
    """Return the two versions as people read them: digests are short where they do not differ at once."""
    old, new = shown(change.old), shown(change.new)
    return (old, new) if old != new else (version(change.old), version(change.new))


def _name(change: Change) -> str:
    return change.service if change.image == "main" else f"{change.service}, {change.label}"


def lines(made: Sync, *, writing: bool) -> list[str]:
    """Return the last lines of a run: each change, what it reaches, and the counts."""
    told = []
    for change in made.changes:
        old, new = _both(change)
        places = ", ".join(dict.fromkeys(f"{place.path}:{place.line}" for place in change.places))
        told.append(f"{_name(change)}: {old or 'no version'} -> {new} ({places})")
        if change.changes_policy:
            told.append(f"{_name(change)}: {_OTHER_POLICY}")
    for one in made.reached:
        where = f"{_name(one.change)}: on `{one.cluster}` ({one.platform})"
        if one.before != one.after:
            told.append(f"{where} {one.before} -> {one.after}")
        if one.refused:
            told.append(f"{where} a build would be refused: {one.refused}")
    would = "" if writing else "would be "
    values, files = count(len(made.changes), "value"), count(len(made.files), "file")
    return [*told, f"{values} {would}written, {files} {would}changed"]


def summary(made: Sync, *, written: bool) -> dict[str, object]:
    """Return all of a run but its diagnostics as the documented JSON object."""
    changes = [
        {
            "service": change.service,
            "image": change.image,
            "old": str(change.old),
            "new": str(change.new),
            "policyChanges": change.changes_policy,
            "places": [{"file": one.path, "line": one.line, "column": one.column} for one in change.places],
        }
        for change in made.changes
    ]
    reached = [
        {
            "service": one.change.service,
            "image": one.change.image,
            "cluster": one.cluster,
            "platform": one.platform,
            "old": one.before,
            "new": one.after,
            "refused": one.refused or None,
        }
        for one in made.reached
    ]
    return {"written": written, "files": [file.path for file in made.files], "changes": changes, "reached": reached}
