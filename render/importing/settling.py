"""Drafts in, definitions that the compiler takes out, with what they render to.

What does not render is tried again with less: without updates, then without images; what does not even then is given
up, with the compiler's reason.
"""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

from render.build import Build, build
from render.catalog import shown_path
from render.definition import definition_text, platform_text, schema_path
from render.diagnostics import Diagnostic, Location
from render.importing.assembling import Assembler
from render.importing.deciding import Decisions
from render.importing.draft import GIVEN_UP, Draft
from render.importing.fidelity import Rendered
from render.importing.markers import fold
from render.importing.result import Imported, Target
from render.structs import replace

_STEPS = 100
"""More builds than definitions can be refused one after the other: each has four steps down, and most fall together."""


class Settling:
    """Writes definitions until they render."""

    def __init__(self, decided: Decisions, made: Imported, target: Target) -> None:
        self.drafts = decided.drafts
        self.around = decided.around
        self.automation = decided.automation
        self.platform = decided.platform
        self.made = made
        self.target = target
        self.rendered = Rendered()
        self.prefix = ""
        """How the paths of definitions begin in the compiler's diagnostics."""
        self.starts: dict[str, list[tuple[int, Draft]]] = {}
        """The first line of each definition in its file."""

    def run(self) -> Rendered:
        """Write all definitions and build them, with less of those that do not render, until all do.

        Return what they render to.
        """
        for _ in range(_STEPS):
            self._write(self.drafts)
            faults = self._build() if self.made.definitions else []
            if not faults:
                break
            if not self._step_down(faults):
                self._blame(faults)
                break
        else:
            raise AssertionError("a definition that is refused loses something at each step")
        return self.rendered

    def _blame(self, faults: list[Diagnostic]) -> None:
        """Report faults of the whole, which are of no definition: the platform file's."""
        shown = shown_path(self.target.platform)
        for fault in faults:
            self.made.is_blocked = True
            self.made.diagnostics.append(replace(fault, location=Location(shown), snippet="", related=()))

    def _write(self, drafts: list[Draft]) -> None:
        """Make the texts of all definitions."""
        self.around.services = {
            (draft.home, draft.object_name): draft.service
            for draft in drafts
            if draft.is_release and draft.level < GIVEN_UP
        }
        by_file: dict[str, list[str]] = {}
        self.starts = {}
        for draft in drafts:
            if draft.level >= GIVEN_UP:
                continue
            reasons = fold(draft, self.automation)
            assembler = Assembler(draft, self.around)
            fields = assembler.fields()
            draft.told += reasons
            file = self.target.catalog / draft.file
            text = definition_text(fields, schema_path(self.target.catalog, file))
            for anchor, key in assembler.anchors.items():
                if f"*{anchor}" in text:
                    text = re.sub(rf"^{key}: (?!&)", f"{key}: &{anchor} ", text, count=1, flags=re.MULTILINE)
            texts = by_file.setdefault(draft.file, [])
            first = sum(one.count("\n") + 1 for one in texts) + 1
            self.starts.setdefault(draft.file, []).append((first, draft))
            texts.append(text)
        self.made.definitions = {name: "---\n".join(texts) for name, texts in sorted(by_file.items())}

    def _build(self) -> list[Diagnostic]:
        """Render what there is from a folder that is gone afterwards; return its errors."""
        with tempfile.TemporaryDirectory(prefix="render-import-") as folder:
            top = Path(folder)
            name = Path(os.path.realpath(self.target.catalog)).name or "catalog"
            for file, text in self.made.definitions.items():
                path = top / name / file
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            platform = top / self.target.platform.name
            platform.write_text(self._platform_text(), encoding="utf-8")
            self.prefix = f"{shown_path(top / name)}/".removeprefix("./")
            built: Build = build(top / name, platform)
            faults = [one for one in built.diagnostics if one.severity == "error"]
            if not faults:
                self.rendered = Rendered.of(built)
            return faults

    def _platform_text(self) -> str:
        return platform_text(self.platform.fields)

    def _step_down(self, faults: list[Diagnostic]) -> bool:
        """Try less of the services that have a fault; False when a fault is of none."""
        stepped: set[int] = set()
        for fault in faults:
            found = self.starts.get(fault.location.path.removeprefix(self.prefix))
            if found is None:
                return False
            before = [draft for first, draft in found if first <= fault.location.line]
            for draft in before[-1:] or [draft for _, draft in found]:
                if id(draft) in stepped:
                    continue
                stepped.add(id(draft))
                draft.reason = fault.message
                if fault.code == "R202" and not draft.loose:
                    draft.loose = True
                    continue
                draft.level += 1
                has_update = any(image.policy in draft.known_policies for image in draft.images)
                if draft.level == 1 and not has_update:
                    draft.level += 1
                if draft.level == 2 and not draft.images:
                    draft.level += 1
                if draft.level >= GIVEN_UP:
                    self._give_up(draft)
        return True

    def _give_up(self, draft: Draft) -> None:
        draft.level = GIVEN_UP
        found = draft.main
        self.made.diagnostics.append(
            found.file.source.fault(
                "R904",
                found.root,
                f"`{found}` cannot be a service",
                cause=f"its definition would be refused: {draft.reason}",
                hint="correct the object, or keep it outside the catalog",
            )
        )
