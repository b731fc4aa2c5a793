"""What an import comes to: the outcome of each service, the files there are to write, and what is wrong."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from render.diagnostics import Diagnostic, Location
from render.importing.collecting import Left


@dataclass(slots=True)
class Outcome:
    """What became of one release, or of another service."""

    source: Location
    object: str
    service: str
    file: str
    equal: bool
    lost: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    comments: list[tuple[int, str]] = field(default_factory=list)
    """Comments that did not come along, with their lines."""
    is_release: bool = True


@dataclass(slots=True)
class Imported:
    """An import, nothing of which is written yet."""

    outcomes: list[Outcome] = field(default_factory=list)
    left: list[Left] = field(default_factory=list)
    files: dict[Path, str] = field(default_factory=dict)
    """What there is to write, by path."""
    needed: str = ""
    """What the platform file would have to say besides, as YAML."""
    platform_notes: list[str] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    sources: int = 0
    """YAML files found."""
    definitions: dict[str, str] = field(default_factory=dict)
    """Definitions by their path in the catalog."""

    is_blocked: bool = False
    """Whether nothing may be written: a file is in the way, or there is nothing."""

    @property
    def failed(self) -> bool:
        """Whether something was lost, or is wrong."""
        return any(one.severity == "error" for one in self.diagnostics)


@dataclass(slots=True)
class Target:
    """Where an import goes."""

    catalog: Path
    platform: Path
    root: str | None = None
    """Output root of a new platform file."""
