"""New files in, on the disk out; a file that is there is never touched."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from render.catalog import reason_of, shown_path
from render.diagnostics import Diagnostic, Location


def write(files: Mapping[Path, str]) -> list[Diagnostic]:
    """Write files that do not exist yet; return why some could not be."""
    faults: list[Diagnostic] = []
    for path, text in sorted(files.items()):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8", newline="\n") as file:
                file.write(text)
        except OSError as error:
            faults.append(
                Diagnostic(
                    Location(shown_path(path)),
                    "R909",
                    f"the file cannot be written: {reason_of(error)}",
                    hint="make its folder writable, and import again into an empty one",
                )
            )
    return faults
