"""Paths of a repository in, a catalog and a platform file as texts out, with the proof of what they render to."""

from __future__ import annotations

import gc
import os
import re
import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from render.build import Build, build
from render.catalog import PlatformFile, read_catalog, read_platform, shown_path
from render.definition import definition_text, platform_text, schema_files, schema_path
from render.diagnostics import Diagnostic, Location
from render.importing.assembling import Assembler, Surroundings, as_node, rest_of, rolls_back
from render.importing.collecting import Collected, Collector, Left
from render.importing.draft import GIVEN_UP, Draft
from render.importing.fidelity import (
    Rendered,
    compare_object,
    compare_policies,
    compare_release,
    compare_source,
)
from render.importing.images import name_images
from render.importing.lifecycle import common, reduced
from render.importing.markers import fold, images_of
from render.importing.placing import place
from render.importing.platforms import (
    PlatformDraft,
    credentials_of,
    flux_of,
    interval_of,
    new_fields,
    substitute_of,
)
from render.importing.policies import Automation
from render.importing.reading import IMAGE, SOURCE, Found, Progress, Reading, Repository
from render.importing.sources import Sources
from render.importing.tables import take_tables
from render.plan import paths
from render.plan.release import rollback_fields
from render.redact import redact_line
from render.structs import replace
from render.yaml.source import Mapping, Node, Sequence

_OPT_OUT = "kustomize.toolkit.fluxcd.io/substitute"
_STEPS = 6
"""Builds until every definition either renders or is given up; each takes at least one step down a short ladder."""


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
        self.platform = PlatformDraft()
        self.rendered = Rendered()

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
            made.diagnostics.append(_nothing(listed))
            made.diagnostics = sorted(set(made.diagnostics))
            return made
        self._decide(repository, collected)
        self._settle_all(collected.drafts)
        self._prove(collected.drafts)
        self._finish()
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

    # Decisions about the whole

    def _decide(self, repository: Repository, collected: Collected) -> None:
        existing, drafts = self.existing, collected.drafts
        self.flux, self.namespace, notes = flux_of(repository, existing)
        self.interval = interval_of(repository, existing)
        if existing is None:
            self.platform = new_fields(repository, self.flux, self.namespace, self.interval, drafts, self.target.root)
        else:
            self.platform.fields = {key.text: value for key, value in existing.root.entries}
        self.platform.notes[:0] = notes
        self._settle_sources(repository, drafts)
        table = take_tables(drafts) if existing is None else None
        if table is not None:
            self.platform.fields["registries"] = {"imageOverrides": table}
        self.automation = Automation.of(repository, self.namespace, self.interval)
        known = frozenset(self.automation.policies)
        for draft in drafts:
            draft.known_policies = known
            draft.images = images_of(draft, self.automation)
            name_images(draft.images, draft.service, "image", draft.policies or dict.fromkeys(known, ""))
        self.around = Surroundings(
            self.flux,
            self.interval,
            existing.platform.defaults.timeout if existing is not None else None,
            existing.platform.defaults.retries if existing is not None else 3,
            existing.platform.defaults.namespace if existing is not None else None,
            Mapping([]),
            self._places(drafts),
        )
        for draft in drafts:
            entry = draft.settled.entry if draft.settled is not None else None
            default = self.around.at.get(entry or "", "image").replace("{service}", draft.service)
            name_images(draft.images, draft.service, default, dict.fromkeys(known, ""))
        self._lift(drafts)
        self._say_access(drafts)
        self._say_variables(drafts)
        self._leave_flux(repository, drafts)
        self._say_namespaces(repository, drafts)

    def _settle_sources(self, repository: Repository, drafts: list[Draft]) -> None:
        existing = self.existing
        self.sources = Sources(repository, self.flux, self.namespace, self.interval)
        if existing is not None:
            charts = existing.root.get("charts")
            if type(charts) is Mapping:
                self.sources.entries = {
                    key.text: {inner.text: node for inner, node in value.entries}
                    for key, value in charts.entries
                    if type(value) is Mapping
                }
            for said in self.sources.entries.values():
                for name, node in said.items():
                    said[name] = node if type(node) in (Mapping, Sequence) else getattr(node, "text", node)
            self.sources.crosses = existing.platform.flux.cross_namespace_refs
        uses = [(draft.service, draft.home, draft.use) for draft in drafts if draft.use is not None]
        self.sources.enter((draft.service, draft.main, draft.use) for draft in drafts if draft.use is not None)
        if existing is None:
            is_apart = any(
                use.source is not None
                and use.namespace != self.namespace
                and (use.kind == "HelmRepository" or len(self.sources.users[id(use.source)]) > 1)
                for _, _, use in uses
            )
            if is_apart and all(use.namespace == where for _, where, use in uses):
                self.sources.crosses = False
                self.platform.fields["flux"] = {**self.platform.fields["flux"], "crossNamespaceRefs": False}
                self.platform.notes.append(
                    "no release names a source of another namespace: `flux.crossNamespaceRefs` is off"
                )
        settled = self.sources.settle(
            (draft.service, draft.home, draft.use, draft.main) for draft in drafts if draft.use is not None
        )
        told: set[tuple[str, str, str]] = set()
        for draft in drafts:
            draft.settled = settled.get(draft.service)
            if draft.settled is None or draft.use is None or draft.settled.is_rendered:
                continue
            found = draft.use.source
            if found is None and draft.use.key not in told:
                told.add(draft.use.key)
                self._tell_missing(draft)
            elif found is not None and found.file.folder == draft.main.file.folder and self._is_own(found):
                draft.extras.append(found)
        if existing is not None and self.sources.added:
            self.platform.needed["charts"] = self.sources.added
        if self.sources.entries:
            self.platform.fields["charts"] = dict(self.sources.entries)

    def _is_own(self, found: Found) -> bool:
        return len(self.sources.users.get(id(found), ())) == 1 and found.name != self.namespace

    def _tell_missing(self, draft: Draft) -> None:
        use, found = draft.use, draft.main
        assert use is not None
        spec = found.root.get("spec")
        node = paths.find(spec, ("chartRef",)) or paths.find(spec, ("chart", "spec", "sourceRef"))
        self.made.diagnostics.append(
            found.file.source.fault(
                "R903",
                node,
                f"the {use.kind} `{use.namespace}/{use.name}` is not among what was read",
                cause="the service names it as a source that exists; nothing in the catalog brings it",
                hint="name the path that holds it too, or give the chart's address in its place",
                severity="warning",
            )
        )

    def _places(self, drafts: list[Draft]) -> dict[str, str]:
        """Return where the services of each chart source keep their image, and say it in the new sources."""
        made: dict[str, str] = {}
        for key, entry in self.sources.entries.items():
            if isinstance(entry.get("at"), str):
                made[key] = entry["at"]
        told: dict[str, Counter[str]] = {}
        for draft in drafts:
            named = draft.settled.entry if draft.settled is not None else None
            if named is None or named not in self.sources.added:
                continue
            main = next((one for one in draft.images if not one.key and one.in_object is None), None)
            at = main.at if main is not None and main.sites else None
            if isinstance(at, str) and main is not None and main.shape == "split":
                steps = [re.sub(rf"\A{re.escape(draft.service)}\Z", "{service}", step) for step in at.split(".")]
                told.setdefault(named, Counter())[".".join(steps)] += 1
        for key, counted in told.items():
            at, times = max(counted.items(), key=lambda one: (one[1], one[0]))
            if times > 1 and at != "image":
                made[key] = at
                self.sources.added[key]["at"] = at
        return made

    def _lift(self, drafts: list[Draft]) -> None:
        """Say once what most releases say."""
        if self.existing is not None:
            found = paths.find(self.existing.root, ("defaults", "release"))
            self.around.defaults = found if type(found) is Mapping else Mapping([])
            return
        releases = [draft for draft in drafts if draft.is_release]
        rest = [rest_of(draft.spec) for draft in releases]
        automated = [
            spec for spec, draft in zip(rest, releases, strict=True) if any(one.policy for one in draft.images)
        ]
        retries: Counter[int] = Counter()
        for spec in automated:
            node = paths.find(spec, ("upgrade", "remediation", "retries"))
            text = getattr(node, "text", "")
            if re.fullmatch(r"-?[0-9]{1,4}", text):
                retries[int(text)] += 1
        if retries:
            best = max(retries, key=lambda number: (retries[number], number))
            self.around.retries = best if best >= -1 else 3
            if self.around.retries != 3:
                self.platform.fields["defaults"]["retries"] = self.around.retries
        implied = as_node(rollback_fields(self.around.retries))
        for index, spec in enumerate(rest):
            if any(spec is one for one in automated) and rolls_back(spec, self.around.retries):
                # What updates imply is no default of the others.
                left = [(key, reduced(value, implied.get(key.text))) for key, value in spec.entries]
                rest[index] = Mapping([(key, value) for key, value in left if value is not None])
        self.around.defaults = common(rest)
        if self.around.defaults.entries:
            self.platform.fields["defaults"]["release"] = self.around.defaults

    def _say_access(self, drafts: list[Draft]) -> None:
        names = {image.policy for draft in drafts for image in draft.images if image.policy is not None}
        scanned = [self.automation.repository_of(name) for name in sorted(names & set(self.automation.policies))]
        credentials = credentials_of(found for found in scanned if found is not None)
        if not credentials:
            return
        if self.existing is None:
            said = self.platform.fields.get("registries") or {}
            self.platform.fields["registries"] = {**said, "credentials": credentials}
            return
        there = {entry.registry for entry in self.existing.platform.registries.credentials}
        lacking = [entry for entry in credentials if entry["registry"] not in there]
        if lacking:
            self.platform.needed["registries"] = {"credentials": lacking}
            said = _entries(self.platform.fields.get("registries"))
            listed = said.get("credentials")
            said["credentials"] = [*(listed.items if type(listed) is Sequence else ()), *lacking]
            self.platform.fields["registries"] = said

    def _say_variables(self, drafts: list[Draft]) -> None:
        nodes: list[Node] = []
        for draft in drafts:
            if not _opts_out(draft.main):
                members = (draft.main, *draft.extras, *draft.in_workload)
                nodes += (found.root for found in members if not _opts_out(found))
            if draft.use is not None and draft.use.source is not None:
                nodes.append(draft.use.source.root)
        names = substitute_of(nodes)
        if names is None:
            return
        if self.existing is None:
            self.platform.fields["defaults"]["substitute"] = names
            return
        there = self.existing.platform.defaults.substitute
        lacking = [name for name in names if name not in (there or ())]
        if there is not None and lacking:
            self.platform.needed["defaults"] = {"substitute": [*there, *lacking]}
            said = _entries(self.platform.fields.get("defaults"))
            self.platform.fields["defaults"] = {**said, "substitute": [*there, *lacking]}

    def _leave_flux(self, repository: Repository, drafts: list[Draft]) -> None:
        """List the sources and policies that stay outside though they were read."""
        used = {id(draft.use.source) for draft in drafts if draft.use is not None and draft.use.source is not None}
        rendered = {
            id(draft.use.source)
            for draft in drafts
            if draft.use is not None and draft.settled is not None and draft.settled.is_rendered
        }
        inside = {id(found) for draft in drafts for found in draft.extras}
        for found in repository.of_kind(SOURCE, "HelmRepository", "OCIRepository", "GitRepository", "Bucket"):
            if id(found) in used - rendered - inside:
                why = "it says more than a platform file can, or several services share it: it stays what it is"
                self.made.left.append(Left(found.file.source.path, found.root.line, f"`{found}`", why))
        for found in repository.of_kind(IMAGE, "ImagePolicy"):
            name = (found.namespace or self.namespace, found.name)
            if not any(image.policy == name for draft in drafts for image in draft.images):
                self.made.left.append(
                    Left(found.file.source.path, found.root.line, f"`{found}`", "no image of a service is moved by it")
                )

    def _say_namespaces(self, repository: Repository, drafts: list[Draft]) -> None:
        """Leave namespaces to the repository where it declares all that are used."""
        inside = {id(found) for draft in drafts for found in draft.extras}
        outside = [
            one for one in repository.of_kind("", "Namespace") if id(one) not in inside and one.file.label is None
        ]
        declared = {one.name for one in outside}
        used = {draft.home for draft in drafts} - {"default", self.namespace}
        used = {name for name in used if not name.startswith("kube-")}
        if not declared & used or self.existing is not None:
            return
        if used <= declared:
            self.platform.fields["defaults"]["namespaces"] = False
            self.platform.notes.append("all namespaces are declared already: `defaults.namespaces` is off")
            return
        for found in outside:
            if found.name in used:
                why = "`render` writes a Namespace of this name too: move its labels into `extraObjects`"
                self.made.left.append(Left(found.file.source.path, found.root.line, f"`{found}`", why))

    # Definitions that render

    def _settle_all(self, drafts: list[Draft]) -> None:
        """Write all definitions and build them, with less of those that do not render, until all do."""
        for _ in range(_STEPS):
            self._write(drafts)
            faults = self._build() if self.made.definitions else []
            if not faults:
                return
            if not self._step_down(drafts, faults):
                self._blame(faults)
                return
        for draft in drafts:
            if draft.level < GIVEN_UP and draft.reason:
                self._give_up(draft)
        self._write(drafts)
        self._blame(self._build())

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
            by_file.setdefault(draft.file, []).append(text)
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

    def _step_down(self, drafts: list[Draft], faults: list[Diagnostic]) -> bool:
        """Try less of the services that have a fault; False when a fault is of none."""
        by_file: dict[str, list[Draft]] = {}
        for draft in drafts:
            if draft.level < GIVEN_UP:
                by_file.setdefault(draft.file, []).append(draft)
        stepped: set[int] = set()
        for fault in faults:
            found = by_file.get(fault.location.path.removeprefix(self.prefix))
            if found is None:
                return False
            for draft in found:
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

    # The proof

    def _prove(self, drafts: list[Draft]) -> None:
        """Compare every object with what is rendered for it."""
        if self.made.is_blocked:
            return
        for draft in drafts:
            outcome = Outcome(
                draft.main.file.source.place(draft.main.root),
                str(draft.main),
                draft.service,
                draft.file,
                equal=False,
                is_release=draft.is_release,
            )
            self.made.outcomes.append(outcome)
            outcome.notes += draft.notes
            if draft.level >= GIVEN_UP:
                outcome.lost.append("spec")
                outcome.notes.append(f"not imported: {draft.reason}")
                continue
            outcome.notes += draft.told
            outcome.comments = [(line, redact_line(text)) for line, text in sorted(set(draft.dropped))]
            self._compare(draft, outcome)

    def _compare(self, draft: Draft, outcome: Outcome) -> None:
        namespace = draft.home
        renamed = {}
        for image in draft.images:
            if image.update is not None and image.policy is not None:
                name = f"{draft.service}-{image.key}" if image.key else draft.service
                renamed[":".join(image.policy)] = f"{self.namespace}:{name}"
        differing = 0
        if draft.is_release:
            found = compare_release(draft, self.rendered, namespace, renamed)
            outcome.lost += [*draft.lost, *(one for one in found.lost if not _is_told(one, draft.lost))]
            outcome.notes += found.notes
            differing += len(found.notes)
        elif draft.workload is not None:
            for one in (draft.main, *draft.in_workload):
                found = compare_object(one, self.rendered, namespace, renamed, draft.known_policies)
                outcome.lost += found.lost
                outcome.notes += found.notes
                differing += len(found.notes)
        for extra in draft.extras:
            found = compare_object(extra, self.rendered, namespace, renamed, draft.known_policies)
            outcome.lost += found.lost
            outcome.notes += found.notes
        if draft.settled is not None and draft.settled.is_rendered and draft.use is not None:
            assert draft.use.source is not None
            found = compare_source(draft.use.source, self.rendered, draft.settled.identity, draft.known_policies)
            outcome.lost += found.lost
            outcome.notes += found.notes
        found = compare_policies(draft, self.rendered, self.automation, self.namespace)
        outcome.lost += found.lost
        outcome.notes += found.notes
        outcome.lost = list(dict.fromkeys(outcome.lost))
        outcome.notes = list(dict.fromkeys(outcome.notes))
        outcome.equal = not outcome.lost and not differing
        if outcome.lost:
            more = f" and {len(outcome.lost) - 1} more" if len(outcome.lost) > 1 else ""
            self.made.diagnostics.append(
                draft.main.file.source.fault(
                    "R905",
                    draft.main.root,
                    f"`{draft.main}` loses `{outcome.lost[0]}`{more}",
                    cause="what is rendered from the definition does not say it",
                    hint="see the report, and add to the definition what is missing",
                )
            )

    def _finish(self) -> None:
        made, catalog = self.made, self.target.catalog
        made.is_blocked = made.is_blocked or not made.definitions
        for name, text in made.definitions.items():
            self._enter(catalog / name, text)
        if self.existing is None:
            at = schema_path(catalog, self.target.platform, "platform")
            self._enter(self.target.platform, platform_text(self.platform.fields, at))
        elif self.platform.needed:
            made.needed = platform_text(self.platform.needed)
            shown = shown_path(self.target.platform)
            made.diagnostics.append(
                Diagnostic(
                    Location(shown),
                    "R906",
                    f"the platform file lacks {_listed(self.platform.needed)}",
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
        made.platform_notes = self.platform.notes
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


def _opts_out(found: Found) -> bool:
    """Whether an object is exempt from postBuild substitution."""
    return "disabled" in (found.text("metadata", field, _OPT_OUT) for field in ("annotations", "labels"))


def _entries(node: object) -> dict[str, Any]:
    """Return the entries of a mapping of the platform file."""
    return {key.text: value for key, value in node.entries} if isinstance(node, Mapping) else {}


def _is_told(path: str, lost: list[str]) -> bool:
    """Whether a lost path lies in one that is told already."""
    return any(path == one or path.startswith((f"{one}.", f"{one}[")) for one in lost)


def _listed(needed: dict[str, Any]) -> str:
    return " and ".join(f"`{name}`" for name in needed)


def _nothing(places: list[Path]) -> Diagnostic:
    shown = ", ".join(shown_path(path) for path in places)
    return Diagnostic(
        Location(shown_path(places[0])),
        "R908",
        "there is nothing to import",
        cause=f"no HelmRelease, and no Deployment whose image a marker moves, is in {shown}",
        hint="name the folder that Flux applies, or one above it",
    )
