"""All service plans and the platform in, the documents that belong to no single service out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from render.flux.cadence import format_duration, parse_duration
from render.plan.context import Context, Header
from render.plan.sources import SourcePlan
from render.plan.workload import Document

PRUNE_OPT_OUT = {"kustomize.toolkit.fluxcd.io/prune": "disabled"}
MANY_SERVICES = 150
"""From here on one Flux Kustomization for all services is worth a warning: kustomize is quadratic in folders."""
HELM_TIMEOUT = 5 * 60
"""Seconds that helm-controller gives an operation without `timeout`."""
CONFIGS_RETRY = "2m"
"""How soon `configs` are tried again while a chart is still installing their kinds."""
DEFAULT_BRANCH = "main"
VARIABLE_SOURCES = (
    {"kind": "ConfigMap", "name": "cluster-settings", "optional": True},
    {"kind": "Secret", "name": "cluster-secrets", "optional": True},
)
"""Where Flux takes the declared variables from; the names that most repositories use."""

MESSAGE = """chore(images): update {cluster}
{{{{ range $object, $changes := .Changed.Objects }}}}
{{{{ $object.Kind }}}} {{{{ $object.Namespace }}}}/{{{{ $object.Name }}}}
{{{{- range $changes }}}}
- {{{{ .Setter }}}}: {{{{ .OldValue }}}} -> {{{{ .NewValue }}}}
{{{{- end }}}}
{{{{ end }}}}
"""


@dataclass(frozen=True, slots=True)
class Rendered:
    """What the tree's own files need of a rendered service."""

    header: Header
    has_apps: bool
    has_configs: bool
    depends_on: tuple[str, ...]
    timeout: int
    """Seconds that one of its Helm operations may take."""
    marks_configs: bool = False
    """Whether an object in `configs/` holds a setter marker."""


@dataclass(slots=True)
class ClusterFiles:
    """Files by path below the root: the label their header names, and their documents."""

    files: dict[str, tuple[str, list[Document]]] = field(default_factory=dict)

    def add(self, path: str, label: str, documents: list[Document]) -> None:
        """Add a file."""
        self.files[path] = (label, documents)


def kustomization(resources: Iterable[str], further: dict[str, Any] | None = None) -> Document:
    """Return a kustomization.yaml."""
    fields = dict.fromkeys(("components", "configMapGenerator", "secretGenerator", "generatorOptions", "patches"))
    return ("kustomization", {"resources": list(resources), **fields, **(further or {})})


def release_timeout(text: str | None) -> int:
    """Return the seconds of a release's timeout."""
    return HELM_TIMEOUT if text is None else -(-parse_duration(text) // 1_000_000_000)


def plan_cluster(
    context: Context,
    catalog: str,
    services: list[Rendered],
    shared: list[SourcePlan],
    namespaces: list[str],
) -> ClusterFiles:
    """Return the cluster's own files; `services` in order of their names, `catalog` the folder's name."""
    made = ClusterFiles()
    base: list[str] = []
    if namespaces:
        documents: list[Document] = [("namespace", {"name": name, "annotations": PRUNE_OPT_OUT}) for name in namespaces]
        made.add("apps/namespaces.yaml", catalog, documents)
        base.append("namespaces.yaml")
    platform = context.file.label
    if shared:
        names = []
        for source in shared:
            crossing = context.platform.flux.cross_namespace_refs
            name = f"{source.name}.yaml" if crossing else f"{source.namespace}--{source.name}.yaml"
            names.append(name)
            values = {
                "name": source.name,
                "namespace": source.namespace,
                "labels": None,
                "annotations": None,
                **source.spec,
            }
            made.add(f"apps/sources/{name}", platform, [(source.template, values)])
        made.add("apps/sources/kustomization.yaml", platform, [kustomization(sorted(names))])
        base.append("sources")
    apps = [service for service in services if service.has_apps]
    mode = context.platform.flux.kustomizations
    listed = [service.header.name for service in apps] if mode == "all" else []
    if base or listed:
        made.add("apps/kustomization.yaml", catalog, [kustomization(base + listed)])
    configs = [service.header.name for service in services if service.has_configs]
    if configs:
        made.add("configs/kustomization.yaml", catalog, [kustomization(configs)])
    if context.automation:
        _plan_automation(context, made, services)
    _plan_flux(context, made, services, base)
    return made


def _plan_automation(context: Context, made: ClusterFiles, services: list[Rendered]) -> None:
    settings = context.platform.image_automation
    platform = context.platform
    resources = []
    # The bot's run fails when its path does not exist, so it is left out of a tree without services.
    if settings.enabled and services:
        source = platform.flux.source
        foreign = source.namespace not in (None, context.flux_namespace)
        branch = settings.branch or DEFAULT_BRANCH
        author = {"name": settings.author.name, "email": settings.author.email}
        values = {
            "name": platform.cluster,
            "namespace": context.flux_namespace,
            "interval": settings.interval,
            "sourceRef": {
                "kind": "GitRepository",
                "name": source.name,
                "namespace": source.namespace if foreign else None,
            },
            "branch": branch,
            "author": author,
            "messageTemplate": settings.message_template or MESSAGE.format(cluster=platform.cluster),
            "signingKey": settings.signing_key,
            "pushBranch": settings.push_branch or branch,
            "policySelector": settings.policy_selector,
            "path": path_below(platform.root, "" if any(one.marks_configs for one in services) else "apps"),
        }
        resources.append("image-update-automation.yaml")
        made.add(
            "platform/image-automation/image-update-automation.yaml",
            context.file.label,
            [("imageupdateautomation", values)],
        )
    if settings.secret_file:
        resources.append(settings.secret_file)
    if resources:
        made.add("platform/image-automation/kustomization.yaml", context.file.label, [kustomization(resources)])


def path_below(root: str, folder: str) -> str:
    """Return a folder of the tree as a Flux path: relative to the repository's top, with `./`."""
    parts = [part for part in (*root.split("/"), folder) if part not in ("", ".")]
    return "/".join((".", *parts)) if parts else "./"


def _plan_flux(context: Context, made: ClusterFiles, services: list[Rendered], base: list[str]) -> None:
    platform = context.platform
    mode = platform.flux.kustomizations
    source = platform.flux.source
    foreign = source.namespace not in (None, context.flux_namespace)
    source_ref = {"kind": source.kind, "name": source.name, "namespace": source.namespace if foreign else None}
    # A Kustomization that waits must outlast the releases it waits for.
    seconds = max([service.timeout for service in services], default=HELM_TIMEOUT)
    timeout = format_duration(max(2 * HELM_TIMEOUT, seconds + HELM_TIMEOUT))
    variables = platform.defaults.substitute
    post_build = {"substituteFrom": [dict(entry) for entry in VARIABLE_SOURCES]} if variables else None
    documents: list[Document] = []

    def add(name: str, path: str, depends_on: list[str], *, wait: bool = True, retry: str | None = None) -> None:
        values = {
            "name": name,
            "namespace": context.flux_namespace,
            "interval": platform.defaults.interval,
            "timeout": timeout,
            "dependsOn": [{"name": other} for other in depends_on] or None,
            "sourceRef": source_ref,
            "path": path_below(platform.root, path),
            "retryInterval": retry,
            "prune": True,
            "wait": wait,
            "decryption": platform.flux.decryption,
            "postBuild": post_build,
        }
        documents.append(("fluxkustomization", values))

    apps = [service for service in services if service.has_apps]
    configs = [service for service in services if service.has_configs]
    first = ["apps"] if base and mode != "all" else []
    # A release may need one of its own custom resources to become ready. Were `apps` to wait for it, `configs`, which
    # comes after `apps`, would never be applied; so it waits only where no `configs` follow, which try again instead.
    if "apps/kustomization.yaml" in made.files:
        add("apps", "apps", [], wait=mode != "all" or not configs)
    if mode == "all":
        if configs:
            add("configs", "configs", ["apps"] if apps or base else [], retry=CONFIGS_RETRY)
    elif mode == "namespace":
        parts: dict[str, list[str]] = {}
        for service in apps:
            parts.setdefault(service.header.namespace, []).append(service.header.name)
        for namespace, names in sorted(parts.items()):
            folder = f"flux/apps-{namespace}"
            made.add(
                f"{folder}/kustomization.yaml",
                context.file.label,
                [kustomization(f"../../apps/{name}" for name in names)],
            )
            add(f"apps-{namespace}", folder, first, wait=not configs)
        if configs:
            add("configs", "configs", first + [f"apps-{name}" for name in sorted(parts)], retry=CONFIGS_RETRY)
    else:
        rendered = {service.header.name for service in apps}
        for service in apps:
            others = [f"apps-{name}" for name in service.depends_on if name in rendered]
            name = service.header.name
            add(f"apps-{name}", f"apps/{name}", first + others, wait=not service.has_configs)
        for service in configs:
            before = [f"apps-{service.header.name}"] if service.has_apps else first
            add(f"configs-{service.header.name}", f"configs/{service.header.name}", before, retry=CONFIGS_RETRY)
    if "platform/image-automation/kustomization.yaml" in made.files:
        add("platform-image-automation", "platform/image-automation", [])
    if documents:
        made.add("flux/kustomizations.yaml", context.file.label, documents)
        made.add("flux/kustomization.yaml", context.file.label, [kustomization(["kustomizations.yaml"])])
