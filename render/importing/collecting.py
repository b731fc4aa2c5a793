"""A repository in, the drafts of its services out, with what belongs to each, and what belongs to none."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from render.diagnostics import Diagnostic
from render.importing.convert import OLD, convert
from render.importing.draft import Draft
from render.importing.reading import FLUX_KUSTOMIZE, HELM, IMAGE, SOURCE, Found, Repository, is_service
from render.importing.sources import use_of
from render.importing.workloads import workload_of
from render.yaml.source import Mapping, Node, Scalar, Sequence

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?\Z")
_LONGEST = 53
_PROVED = ("HelmRelease", "Deployment", "StatefulSet")
_MACHINE = "VirtualMachine"


@dataclass(slots=True)
class Left:
    """An object, or a part of a kustomization, that no definition holds."""

    path: str
    line: int
    what: str
    why: str


@dataclass(slots=True)
class Collected:
    """The services of a repository."""

    drafts: list[Draft] = field(default_factory=list)
    left: list[Left] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    is_known: bool = False
    """Whether the catalog has one of them already."""


class Collector:
    """Finds what belongs together."""

    def __init__(
        self, repository: Repository, taken: Iterable[str], known: Iterable[tuple[str, str]], namespace: str | None
    ) -> None:
        self.repository = repository
        self.namespace = namespace
        """`defaults.namespace` of the platform."""
        self.names = set(taken)
        """Names of services that the catalog has already."""
        self.known = set(known)
        """Namespace and name of the releases that the catalog has already."""
        self.made = Collected()
        self.charts: dict[tuple[str, str], Found] = {
            (found.namespace or "", found.name): found for found in repository.of_kind(SOURCE, "HelmChart")
        }
        self.claimed: set[int] = set()

    def run(self) -> Collected:
        """Return the drafts, in the order of their files."""
        labelled: dict[str, list[Found]] = {}
        seen: dict[tuple[str, str, str], Found] = {}
        plain: list[Found] = []
        for found in self.repository.objects:
            group = _group(found)
            if group is not None:
                labelled.setdefault(group, []).append(found)
            elif found.file.label is None and is_service(found):
                plain.append(found)
        for group, members in labelled.items():
            self._add_labelled(group, members, seen)
        for found in plain:
            self._add(found, seen)
        self._share_out()
        self._leave_rest()
        self.made.drafts.sort(key=lambda one: (one.main.file.path, one.main.root.line))
        return self.made

    # Services

    def _add_labelled(self, group: str, members: list[Found], seen: dict[tuple[str, str, str], Found]) -> None:
        """Enter a service of a tree that `render` made: its folder tells its name, and the header its definition."""
        main = next((one for kind in (*_PROVED, _MACHINE) for one in members if one.kind == kind), None)
        own = [one for one in members if one.group not in (IMAGE, SOURCE)]
        main = main or (own[0] if own else None)
        if main is None:
            return
        draft = self._draft(main, os.path.basename(group), seen)
        if draft is None:
            return
        if main.kind == _MACHINE:
            draft.notes.append(f"the `{main}` comes back as an object: `vm` cannot be read from it")
        label = main.file.label or ""
        draft.file = label.partition("/")[2] or draft.file
        draft.extras = [one for one in own if one is not main or main.kind not in _PROVED]
        self.claimed |= {id(one) for one in members}
        self._take_kustomization(group, draft)

    def _add(self, found: Found, seen: dict[tuple[str, str, str], Found]) -> None:
        draft = self._draft(found, found.name, seen)
        if draft is not None:
            self.claimed.add(id(found))

    def _draft(self, found: Found, name: str, seen: dict[tuple[str, str, str], Found]) -> Draft | None:
        """Return the draft of a service; None after telling why there is none."""
        if found.kind == "HelmRelease" and found.group == HELM:
            spec = found.root.get("spec")
            why = _partial(found, spec)
            if why:
                self._leave(found, f"{why}: part of a release that is made elsewhere")
                self._warn(
                    "R901",
                    found,
                    f"`{found}` is no whole release, and is left out",
                    why + "; kustomize merges it into another one",
                    "import what the kustomization builds, or the release that it is merged into",
                )
                return None
        identity = (found.kind, found.namespace or "", found.name)
        use = None
        if found.kind == "HelmRelease" and type(spec := found.root.get("spec")) is Mapping:
            use = use_of(convert(spec)[0], found.namespace or self.namespace or "", self.charts)
            if use is None:
                self._leave(found, "its chart names no source")
                self._warn(
                    "R901",
                    found,
                    f"`{found}` is no whole release, and is left out",
                    "its chart names no source, and no API server takes it",
                    "name the source under `chart.spec.sourceRef` or `chartRef`",
                )
                return None
        first = seen.setdefault(identity, found)
        if first is not found:
            self._leave(found, f"a second `{found.kind}` of this name")
            self.made.diagnostics.append(
                found.file.source.fault(
                    "R902",
                    found.root,
                    f"`{found}` is there twice, and the first is taken",
                    cause="a catalog describes one cluster, and the two may be of different ones",
                    hint="import the folders of one cluster at a time",
                    severity="warning",
                    related=((first.file.source.place(first.root), "the first one"),),
                )
            )
            return None
        if (found.namespace or "", found.name) in self.known and found.kind in (*_PROVED, _MACHINE):
            self._leave(found, "the catalog has it already")
            self.made.is_known = True
            return None
        service = self._name(name, found.namespace)
        namespace = found.namespace
        folder = namespace if namespace and _NAME.match(namespace) else ""
        home = namespace or self.namespace or service
        draft = Draft(service, found, namespace, home, f"{folder}/{service}.yaml" if folder else f"{service}.yaml")
        if draft.is_release:
            spec = found.root.get("spec")
            assert type(spec) is Mapping
            draft.spec, draft.notes = convert(spec)
            version = found.api_version.rpartition("/")[2]
            if version in OLD:
                draft.notes.insert(0, f"`{version}` is rendered as `v2`")
            draft.use = use_of(draft.spec, home, self.charts)
            if draft.use is not None:
                draft.notes += draft.use.notes
        self._tell_namespace(draft)
        self._tell_idle(draft)
        self.made.drafts.append(draft)
        return draft

    def _tell_namespace(self, draft: Draft) -> None:
        found = draft.main
        if found.several:
            self._warn(
                "R902",
                found,
                f"`{found}` is there in several namespaces, and is imported once",
                f"it gets {' and '.join(found.several)}; its definition says `{draft.home}`",
                "copy the definition, under another `name`, for each other namespace",
            )
        if found.namespace is None:
            draft.missing.append("metadata.namespace")
            draft.notes.append(f"nothing says the namespace: it gets the catalog's default, `{draft.home}`")
        elif found.own_namespace != found.namespace:
            draft.notes.append(f"the namespace `{found.namespace}` is from {found.placed_by}")

    def _tell_idle(self, draft: Draft) -> None:
        """Warn of what is there and not in the cluster: rendering it would bring it there."""
        file = draft.main.file
        if file.label is not None or (file.is_listed and file.is_applied):
            return
        why = "the kustomization of its folder does not list it"
        if file.is_listed:
            why = "none of the Flux Kustomizations reaches it"
        draft.notes.append(f"nothing that was read applies it: {why}")
        self._warn(
            "R910",
            draft.main,
            f"`{draft.main}` is applied by nothing that was read",
            f"{why}; rendered from the catalog, it will be applied",
            "say `enabled: false` in its definition if it is meant to rest",
        )

    def _name(self, name: str, namespace: str | None) -> str:
        """Return a service name that is free."""
        plain = re.sub(r"[^a-z0-9]+", "-", re.sub(r"\$\{(\w+)[^}]*\}", r"\1", name).lower()).strip("-")
        base = plain[:_LONGEST].strip("-") or "service"
        made = base
        if (made in self.names or made == "sources") and namespace:
            suffix = re.sub(r"[^a-z0-9]+", "-", namespace.lower()).strip("-")
            made = f"{base[: _LONGEST - 1 - len(suffix)]}-{suffix}".strip("-")
        number = 2
        while made in self.names or made == "sources":
            made, number = f"{base[: _LONGEST - 4]}-{number}", number + 1
        self.names.add(made)
        return made

    # What belongs to them

    def _share_out(self) -> None:
        """Give each service the objects beside it: all of its folder where it is alone, else those of its name."""
        homes: dict[str, list[Draft]] = {}
        for draft in self.made.drafts:
            if draft.main.file.label is None:
                homes.setdefault(draft.main.file.folder, []).append(draft)
        beside: dict[str, list[Found]] = {}
        for found in self.repository.objects:
            if id(found) not in self.claimed and found.file.folder in homes and not found.file.is_patch:
                beside.setdefault(found.file.folder, []).append(found)
        taken: set[tuple[str, str, str, str]] = set()
        for folder, drafts in homes.items():
            for found in beside.get(folder, ()):
                if found.group in (SOURCE, IMAGE, FLUX_KUSTOMIZE, HELM) or not found.name:
                    continue
                if not found.file.is_listed:
                    self._leave(found, "the kustomization of its folder does not list it")
                    self.claimed.add(id(found))
                    continue
                identity = (found.group, found.kind, found.namespace or "", found.name)
                owner = _owner(found, drafts)
                if owner is None or identity in taken:
                    continue
                taken.add(identity)
                owner.extras.append(found)
                self.claimed.add(id(found))
            self._take_kustomization(folder, drafts[0] if len(drafts) == 1 else None)
        for one in self.made.drafts:
            self._settle_workload(one)

    def _settle_workload(self, draft: Draft) -> None:
        if draft.main.kind not in ("Deployment", "StatefulSet"):
            return
        found = workload_of(draft.main, draft.extras, draft.service)
        if found is None:
            if draft.main not in draft.extras:
                draft.extras.insert(0, draft.main)
            return
        draft.workload, draft.in_workload = found
        draft.extras = [one for one in draft.extras if one not in draft.in_workload]

    def _take_kustomization(self, folder: str, draft: Draft | None) -> None:
        """Take over what a service's kustomization says without naming files, and list the rest."""
        found = self.repository.kustomizations.get(folder)
        if found is None:
            return
        for key, value in found.root.entries:
            name = key.text
            if name in ("apiVersion", "kind", "metadata", "namespace") or (type(value) is Scalar and value.is_null):
                continue
            if name == "resources":
                self._tell_resources(found, value)
            elif draft is not None and _needs_no_file(name, value):
                draft.kustomize[name] = value
            else:
                why = "it names files, or has no place in a definition"
                what = f"`{name}` of the kustomization"
                self.made.left.append(Left(found.file.source.path, key.line, what, why))
        if set(draft.kustomize if draft is not None else ()) == {"generatorOptions"} and draft is not None:
            draft.kustomize = {}

    def _tell_resources(self, found: Found, value: Node) -> None:
        for item in value.items if type(value) is Sequence else ():
            if type(item) is Scalar and "://" in item.text:
                self.made.left.append(
                    Left(found.file.source.path, item.line, f"`{item.text}`", "a resource from elsewhere")
                )

    def _leave_rest(self) -> None:
        """List what stands beside services and belongs to none."""
        homes = {draft.main.file.folder for draft in self.made.drafts}
        for found in self.repository.of_kind(FLUX_KUSTOMIZE, "Kustomization"):
            if found.file.label is None and found.file.folder in homes | {os.path.dirname(one) for one in homes}:
                self._leave(found, _told_kustomization(found))
        for found in self.repository.objects:
            is_flux = found.group in (SOURCE, IMAGE, FLUX_KUSTOMIZE, HELM) or found.kind == "Namespace"
            if found.file.folder in homes and id(found) not in self.claimed and not is_flux:
                self._leave(found, "it belongs to no single service of its folder")

    def _leave(self, found: Found, why: str) -> None:
        self.made.left.append(Left(found.file.source.path, found.root.line, f"`{found}`", why))

    def _warn(self, code: str, found: Found, message: str, cause: str, hint: str) -> None:
        self.made.diagnostics.append(
            found.file.source.fault(code, found.root, message, cause=cause, hint=hint, severity="warning")
        )


def _told_kustomization(found: Found) -> str:
    """Return why a Flux Kustomization is left, with what of it may be wanted elsewhere."""
    spec = found.get("spec")
    names = [key.text for key, _ in spec.entries] if type(spec) is Mapping else []
    told = []
    waits = found.get("spec", "dependsOn")
    if type(waits) is Sequence and waits.items:
        named = ", ".join(item.text("name") or "?" for item in waits.items if type(item) is Mapping)
        told.append(f"`dependsOn` ({named})")
    fills = found.get("spec", "postBuild", "substitute")
    if type(fills) is Mapping and fills.entries:
        told.append(f"`postBuild.substitute` ({', '.join(key.text for key, _ in fills.entries)})")
    told += (f"`{name}`" for name in ("healthChecks", "patches", "components", "images") if name in names)
    rest = f"; this one says {', '.join(told)}" if told else ""
    return f"`render` writes Flux Kustomizations of its own{rest}"


def _partial(found: Found, spec: Node | None) -> str:
    """Return why a HelmRelease is a part of another one; empty for a whole one."""
    if found.file.is_patch:
        return "a kustomization names it as a patch"
    is_whole = type(spec) is Mapping and any(type(spec.get(name)) is Mapping for name in ("chart", "chartRef"))
    return "" if is_whole else "it has no chart"


def _group(found: Found) -> str | None:
    """Return the folder of a service in a tree that `render` made."""
    if found.file.label is None or found.group == FLUX_KUSTOMIZE:
        return None
    folder = Path(found.file.folder)
    if folder.parent.name not in ("apps", "configs") or folder.name == "sources":
        return None
    return str(folder.parent.parent / "apps" / folder.name)


def _needs_no_file(name: str, value: Node) -> bool:
    """Whether a field of a kustomization holds all that it says."""
    if name == "generatorOptions":
        return type(value) is Mapping
    if name not in ("configMapGenerator", "secretGenerator", "patches") or type(value) is not Sequence:
        return False
    files = ("files", "envs", "env", "path")
    return all(type(item) is Mapping and not any(item.get(file) is not None for file in files) for item in value.items)


def _owner(found: Found, drafts: list[Draft]) -> Draft | None:
    """Return the service that an object beside it belongs to."""
    if found.kind == "Namespace" and not found.group:
        drafts = [one for one in drafts if one.home == found.name]
    if len(drafts) == 1:
        return drafts[0]
    same_file = [one for one in drafts if one.main.file is found.file]
    if len(same_file) == 1:
        return same_file[0]
    named = [one for one in drafts if found.name == one.main.name or found.name.startswith(f"{one.main.name}-")]
    return max(named, key=lambda one: len(one.main.name)) if named else None
