"""A repository and the drafts from it in, the fields of its platform file out: what is there, and what is needed.

A platform file that exists is taken as it is. What it would need besides is told, and written nowhere.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from render.catalog import PlatformFile
from render.flux.commit_message import faults
from render.flux.substitution import SubstitutionError, variables
from render.flux.versions import FluxVersion
from render.importing.draft import Draft
from render.importing.reading import FLUX_KUSTOMIZE, HELM, IMAGE, Found, Repository
from render.model import schema
from render.plan import paths
from render.plan.cluster import DEFAULT_BRANCH, MANY_SERVICES, MESSAGE
from render.plan.sources import plain
from render.yaml.source import Mapping, Node, Scalar, Sequence

NEWEST = "2.9"
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\Z")
_ACCESS = ("secretRef", "certSecretRef", "insecure", "provider")
_DEFAULT_INTERVAL = "1h"
_FLUX = "flux-system"


@dataclass(slots=True)
class PlatformDraft:
    """The platform file on the way."""

    fields: dict[str, Any] = field(default_factory=dict)
    """All of it, as it is rendered with."""
    needed: dict[str, Any] = field(default_factory=dict)
    """What a file that exists lacks."""
    notes: list[str] = field(default_factory=list)


def flux_of(repository: Repository, existing: PlatformFile | None) -> tuple[FluxVersion, str, list[str]]:
    """Return the target version and Flux's namespace, and what was assumed."""
    if existing is not None:
        return existing.flux, existing.platform.flux.namespace, []
    version = repository.flux_version
    notes = []
    wanted = ".".join((version or NEWEST).split(".")[:2])
    if version is None:
        notes.append(f"no Flux install manifest tells the version: {NEWEST} is assumed")
    elif wanted not in ("2.7", "2.8", "2.9"):
        notes.append(f"Flux {version} is older than what `render` writes for: {NEWEST} is assumed")
        wanted = NEWEST
    return FluxVersion.parse(wanted), flux_namespace(repository), notes


def flux_namespace(repository: Repository) -> str:
    """Return the namespace where Flux runs: that of most Flux Kustomizations and image policies."""
    found = [*repository.of_kind(FLUX_KUSTOMIZE, "Kustomization"), *repository.of_kind(IMAGE, "ImageUpdateAutomation")]
    told = Counter(one.namespace for one in found if one.namespace is not None)
    return _FLUX if not told or _FLUX in told else max(told, key=lambda name: (told[name], name))


def interval_of(repository: Repository, existing: PlatformFile | None) -> str:
    """Return the interval that most releases say."""
    if existing is not None:
        return existing.platform.defaults.interval
    told = Counter(one.text("spec", "interval") for one in repository.of_kind(HELM, "HelmRelease"))
    told.pop(None, None)
    if not told:
        return _DEFAULT_INTERVAL
    best, times = max(told.items(), key=lambda one: (one[1], str(one[0])))
    return (
        str(best)
        if times * 2 > sum(told.values()) and re.fullmatch(r"([0-9]+(\.[0-9]+)?(ms|s|m|h))+", str(best))
        else _DEFAULT_INTERVAL
    )


def new_fields(
    repository: Repository, flux: FluxVersion, namespace: str, interval: str, drafts: list[Draft], root: str | None
) -> PlatformDraft:
    """Return the fields of a new platform file, without its charts and `defaults.release`."""
    made = PlatformDraft()
    automations = repository.of_kind(IMAGE, "ImageUpdateAutomation")
    cluster = next((one.name for one in automations if _LABEL.match(one.name) and one.name != _FLUX), None)
    cluster = cluster or _from_folder(repository) or "cluster"
    made.fields["cluster"] = cluster
    made.fields["root"] = root or _root(automations, cluster)
    settings: dict[str, Any] = {"version": str(flux)}
    if namespace != _FLUX:
        settings["namespace"] = namespace
    source = _source(repository, automations, namespace)
    if source:
        settings["source"] = source
    division = _division(repository)
    if division is not None:
        settings["kustomizations"] = division
    elif len(drafts) > MANY_SERVICES:
        settings["kustomizations"] = "service"
        made.notes.append(f"{len(drafts)} services: each gets a Flux Kustomization of its own")
    decryption = next(
        (
            one.get("spec", "decryption")
            for one in repository.of_kind(FLUX_KUSTOMIZE, "Kustomization")
            if one.get("spec", "decryption") is not None
        ),
        None,
    )
    if decryption is not None:
        settings["decryption"] = decryption
    made.fields["flux"] = settings
    if automations:
        made.fields["imageAutomation"] = _automation(automations[0], made.notes)
        made.notes += (f"`{one}` is left out: a platform has one" for one in automations[1:])
    alerts = _alerts(repository)
    if alerts is not None:
        made.fields["alerts"] = alerts
    made.fields["defaults"] = {"interval": interval}
    return made


def _division(repository: Repository) -> str | None:
    """Return how the Flux Kustomizations of a tree that `render` made divide it; None where one takes all."""
    for found in repository.of_kind(FLUX_KUSTOMIZE, "Kustomization"):
        path = found.text("spec", "path") or ""
        if found.file.label is not None and found.name.startswith("apps-"):
            return "namespace" if path.endswith(f"/flux/{found.name}") else "service"
    return None


def _alerts(repository: Repository) -> dict[str, Any] | None:
    """Return the alerts of a tree that `render` made."""
    for found in repository.of_kind("monitoring.coreos.com", "PrometheusRule"):
        if found.file.label is None or Path(found.file.folder).name != "alerts":
            continue
        made: dict[str, Any] = {"enabled": True}
        if found.namespace not in (None, "monitoring"):
            made["namespace"] = found.namespace
        labels = found.get("metadata", "labels")
        if labels is not None:
            made["labels"] = labels
        told = paths.find(found.root, ("spec", "groups", 0, "rules", 0, "annotations", "runbook_url"))
        book = told.text.partition("#")[0] if type(told) is Scalar else ""
        if book and book != _default_runbooks():
            made["runbooks"] = book
        return made
    return None


def _default_runbooks() -> str:
    found = json.loads(schema.text("platform"))["$defs"]["Alerts"]["properties"]["runbooks"].get("default")
    return str(found)


def _from_folder(repository: Repository) -> str | None:
    """Return the name of the cluster that the paths tell: `clusters/NAME/…`."""
    told: Counter[str] = Counter()
    for one in repository.objects:
        match = re.search(r"(?:\A|/)clusters/([^/]+)/", one.file.source.path)
        if match is not None and _LABEL.match(match[1]):
            told[match[1]] += 1
    return max(told, key=lambda name: (told[name], name)) if told else None


def _root(automations: list[Found], cluster: str) -> str:
    """Return the output root: that of a tree which `render` made, else a folder of its own."""
    for one in automations:
        path = one.text("spec", "update", "path") or ""
        if one.file.label is not None:
            return path.removeprefix("./").removesuffix("/apps").removesuffix("apps") or "."
    return f"rendered/{cluster}"


def _source(repository: Repository, automations: list[Found], namespace: str) -> dict[str, Any]:
    """Return the source of the Flux Kustomizations where it is not the usual one."""
    told: Counter[tuple[str, str, str]] = Counter()
    for one in (*repository.of_kind(FLUX_KUSTOMIZE, "Kustomization"), *automations):
        kind, name = one.text("spec", "sourceRef", "kind") or "GitRepository", one.text("spec", "sourceRef", "name")
        where = one.text("spec", "sourceRef", "namespace") or one.namespace or namespace
        if name is not None and "${" not in name:
            told[(kind, name, where)] += 1
    if not told:
        return {}
    kind, name, where = max(told, key=lambda key: (told[key], key))
    made: dict[str, Any] = {}
    if kind != "GitRepository":
        made["kind"] = kind
    if name != _FLUX:
        made["name"] = name
    if where != namespace:
        made["namespace"] = where
    return made


def _automation(found: Found, notes: list[str]) -> dict[str, Any]:
    made: dict[str, Any] = {"enabled": True}
    interval = found.text("spec", "interval")
    if interval is not None and interval != "30m":
        made["interval"] = interval
    branch = found.text("spec", "git", "checkout", "ref", "branch")
    push = found.text("spec", "git", "push", "branch")
    if branch is not None and branch != DEFAULT_BRANCH:
        made["branch"] = branch
    if push is not None and push != (branch or DEFAULT_BRANCH):
        made["pushBranch"] = push
    for name, key in (("pushRefspec", "refspec"), ("pushOptions", "options")):
        value = found.get("spec", "git", "push", key)
        if value is not None:
            made[name] = value
    author = {name: found.text("spec", "git", "commit", "author", name) for name in ("name", "email")}
    made["author"] = {key: value for key, value in author.items() if value is not None}
    template = found.text("spec", "git", "commit", "messageTemplate")
    if template is not None and template.strip() != MESSAGE.format(cluster=found.name).strip():
        broken = faults(template)
        if broken:
            reason = broken[0].message
            notes.append(f"Flux cannot run the message template of `{found}` ({reason}): the usual one is taken")
        else:
            made["messageTemplate"] = template
    for name, path in (("signingKey", ("git", "commit", "signingKey")), ("policySelector", ("policySelector",))):
        value = found.get("spec", *path)
        if value is not None:
            made[name] = value
    if found.get("spec", "suspend") is not None and found.text("spec", "suspend") == "true":
        notes.append(f"`{found}` is suspended: `imageAutomation.enabled` is off")
        made["enabled"] = False
    if "email" not in made["author"]:
        made["enabled"] = False
        notes.append(f"`{found}` names no author's address: `imageAutomation.enabled` is off")
    return made


def credentials_of(used: Iterable[Found]) -> list[dict[str, Any]]:
    """Return how registries are reached, as the ImageRepositories in use say it: by host where all agree."""
    by_host: dict[str, dict[str, dict[str, Any]]] = {}
    for found in used:
        image = found.text("spec", "image") or ""
        said = {name: found.get("spec", name) for name in _ACCESS}
        access = {
            name: plain(value)
            for name, value in said.items()
            if value is not None and plain(value) not in (None, "generic", False)
        }
        host = image.partition("/")[0] if re.match(r"[^/]*[.:][^/]*/|localhost/", image) else "docker.io"
        by_host.setdefault(host, {})[image] = access
    made = []
    for host in sorted(by_host):
        ways = [access for access in by_host[host].values() if access]
        if not ways:
            continue
        if all(access == ways[0] for access in by_host[host].values()):
            made.append({"registry": host, **ways[0]})
            continue
        for image, access in sorted(by_host[host].items()):
            if access:
                made.append({"registry": image if image.startswith(host) else f"{host}/{image}", **access})
    return made


def substitute_of(nodes: Iterable[Node]) -> list[str] | None:
    """Return the variables that a tree's postBuild must fill; None where nothing is substituted.

    Texts with forms that Flux fails on tell that nothing is.
    """
    names: set[str] = set()
    is_found = False
    stack = list(nodes)
    seen: set[int] = set()
    while stack:
        node = stack.pop()
        if type(node) is Scalar:
            if "${" in node.text:
                is_found = True
                try:
                    names |= {one.name for one in variables(node.text) if not one.has_default}
                    if any(not one.can_be_set for one in variables(node.text)):
                        return None
                except SubstitutionError:
                    return None
        elif id(node) not in seen:
            seen.add(id(node))
            if type(node) is Sequence:
                stack += node.items
            elif type(node) is Mapping:
                stack += (value for _, value in node.entries)
                stack += (key for key, _ in node.entries)
    return sorted(names) if is_found else None
