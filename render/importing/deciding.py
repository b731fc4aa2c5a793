"""The drafts of a repository in, all that concerns more than one of them out.

Chart sources, image policies, the defaults that releases share, registry credentials, variables and namespaces: what
the platform file says, new or as it is.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from render.catalog import PlatformFile
from render.importing.assembling import Surroundings, as_node, rest_of, rolls_back
from render.importing.collecting import Left
from render.importing.draft import Draft
from render.importing.lifecycle import common, reduced
from render.importing.markers import images_of
from render.importing.naming import name_images
from render.importing.platforms import (
    PlatformDraft,
    credentials_of,
    flux_of,
    interval_of,
    new_fields,
    substitute_of,
)
from render.importing.policies import Automation
from render.importing.reading import IMAGE, SOURCE, Found, Repository
from render.importing.result import Imported
from render.importing.sources import Sources
from render.importing.tables import take_tables
from render.plan import paths
from render.plan.release import rollback_fields
from render.yaml.source import Mapping, Node, Sequence

_OPT_OUT = "kustomize.toolkit.fluxcd.io/substitute"


class Decisions:
    """Decides on what concerns the whole catalog."""

    def __init__(
        self,
        repository: Repository,
        drafts: list[Draft],
        existing: PlatformFile | None,
        made: Imported,
        root: str | None,
    ) -> None:
        self.repository = repository
        self.drafts = drafts
        self.existing = existing
        self.made = made
        self.root = root
        """Output root of a new platform file."""
        self.platform = PlatformDraft()

    def run(self) -> None:
        """Decide; what there is to tell stands in the import afterwards."""
        existing, drafts, repository = self.existing, self.drafts, self.repository
        self.flux, self.namespace, notes = flux_of(repository, existing)
        self.interval = interval_of(repository, existing)
        if existing is None:
            self.platform = new_fields(repository, self.flux, self.namespace, self.interval, drafts, self.root)
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


def _opts_out(found: Found) -> bool:
    """Whether an object is exempt from postBuild substitution."""
    return "disabled" in (found.text("metadata", field, _OPT_OUT) for field in ("annotations", "labels"))


def _entries(node: object) -> dict[str, Any]:
    """Return the entries of a mapping of the platform file."""
    return {key.text: value for key, value in node.entries} if isinstance(node, Mapping) else {}
