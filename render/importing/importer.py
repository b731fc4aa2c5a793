"""Paths of a repository in, a catalog and a platform file as texts out, with the proof of what they render to."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from render.catalog import PlatformFile, read_catalog, read_platform, shown_path
from render.definition import platform_text, schema_files, schema_path
from render.diagnostics import Diagnostic, Location
from render.importing.collecting import Collector
from render.importing.deciding import Decisions
from render.importing.placing import place
from render.importing.platforms import PlatformDraft
from render.importing.proving import Proof
from render.importing.reading import Progress, Reading
from render.importing.result import Imported, Outcome, Target
from render.importing.settling import Settling

__all__ = ["Imported", "Outcome", "Target", "import_repository"]


def import_repository(places: Iterable[Path], target: Target, progress: Progress | None = None) -> Imported:
    """Read a repository and make a catalog of it; writes nothing."""
    # Trees of thousands of files have no cycles: the collector would only search in vain.
    collects = gc.isenabled()
    gc.disable()
    try:
        return _Import(target).run(places, progress)
    finally:
        if collects:
            gc.enable()


class _Import:
    def __init__(self, target: Target) -> None:
        self.target = target
        self.made = Imported()
        self.existing: PlatformFile | None = None

    def run(self, places: Iterable[Path], progress: Progress | None) -> Imported:
        made, target = self.made, self.target
        if os.path.lexists(target.platform):
            self.existing, faults = read_platform(target.platform)
            if self.existing is None:
                made.diagnostics += faults
                made.is_blocked = True
                return made
        listed = list(places)
        repository = Reading([target.catalog, target.platform], progress).read(listed)
        made.sources = repository.files
        made.diagnostics += repository.diagnostics
        place(repository)
        default = self.existing.platform.defaults.namespace if self.existing is not None else None
        collected = Collector(repository, *self._taken(default), default).run()
        made.diagnostics += collected.diagnostics
        made.left = collected.left
        if not collected.drafts:
            made.is_blocked = True
            if all(fault.code != "R001" for fault in made.diagnostics):
                made.diagnostics.append(_nothing(listed, is_known=collected.is_known))
            made.diagnostics = sorted(set(made.diagnostics))
            return made
        decided = Decisions(repository, collected.drafts, self.existing, made, target.root)
        decided.run()
        rendered = Settling(decided, made, target).run()
        Proof(decided, rendered, made).run()
        self._finish(decided.platform)
        return made

    def _taken(self, default: str | None) -> tuple[set[str], set[tuple[str, str]]]:
        """Return the service names and the releases of the catalog that is there."""
        names: set[str] = set()
        releases: set[tuple[str, str]] = set()
        if not self.target.catalog.is_dir():
            return names, releases
        for file in read_catalog(self.target.catalog):
            names |= set(file.broken)
            for definition in file.definitions:
                service = definition.service
                names.add(service.name)
                releases.add((service.namespace or default or service.name, service.object_name or service.name))
        return names, releases

    def _finish(self, platform: PlatformDraft) -> None:
        made, catalog = self.made, self.target.catalog
        made.is_blocked = made.is_blocked or not made.definitions
        for name, text in made.definitions.items():
            self._enter(catalog / name, text)
        if self.existing is None:
            at = schema_path(catalog, self.target.platform, "platform")
            self._enter(self.target.platform, platform_text(platform.fields, at))
        elif platform.needed:
            made.needed = platform_text(platform.needed)
            shown = shown_path(self.target.platform)
            made.diagnostics.append(
                Diagnostic(
                    Location(shown),
                    "R906",
                    f"the platform file lacks {_listed(platform.needed)}",
                    "warning",
                    cause="a platform file that exists is not written over",
                    hint="add what stands below",
                    detail=made.needed,
                )
            )
        schemas = schema_files(catalog)
        for path, text in schemas.items():
            named = schema_path(catalog, catalog / "x.yaml", "platform" if path.stem == "platform" else "service")
            if os.path.realpath(catalog / named) == os.path.realpath(path) and not path.exists():
                made.files[path] = text
        made.platform_notes = platform.notes
        made.left.sort(key=lambda one: (one.path, one.line, one.what))
        made.diagnostics = sorted(set(made.diagnostics))

    def _enter(self, path: Path, text: str) -> None:
        if os.path.lexists(path):
            self.made.is_blocked = True
            self.made.diagnostics.append(
                Diagnostic(
                    Location(shown_path(path)),
                    "R907",
                    "the file exists, and is not written over",
                    cause="an import only adds to a catalog",
                    hint="move it away, or name another folder with `--catalog`",
                )
            )
        self.made.files[path] = text


def _listed(needed: dict[str, Any]) -> str:
    return " and ".join(f"`{name}`" for name in needed)


def _nothing(places: list[Path], *, is_known: bool) -> Diagnostic:
    shown = ", ".join(shown_path(path) for path in places)
    return Diagnostic(
        Location(shown_path(places[0])),
        "R908",
        "there is nothing to import",
        cause=f"the catalog has all releases of {shown} already"
        if is_known
        else f"no whole HelmRelease, and no Deployment whose image a marker moves, is in {shown}",
        hint="take a definition out of the catalog to import its release again"
        if is_known
        else "name the folder that Flux applies, or one above it",
    )
