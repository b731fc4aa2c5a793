"""All service plans and the platform in, the documents that belong to no single service out."""

from __future__ import annotations

from collections.abc import Iterable

from render.flux.substitution import escaped
from render.plan.alerts import plan_metrics, plan_rule
from render.plan.context import Context
from render.plan.fluxtree import PLATFORM_FOLDERS, FluxTree, Rendered, by_namespace, path_below
from render.plan.sources import SourcePlan
from render.plan.workload import PRUNE_OPT_OUT, Document
from render.structs import field, struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MANY_SERVICES = 150
"""From here on one Flux Kustomization for all services is worth a warning: kustomize is quadratic in folders."""
DEFAULT_BRANCH = "main"
BOT = "platform/image-automation/image-update-automation.yaml"
"""The file of the ImageUpdateAutomation."""

MESSAGE = """chore(images): update {cluster}
{{{{ range $object, $changes := .Changed.Objects }}}}
{{{{ $object.Kind }}}} {{{{ $object.Namespace }}}}/{{{{ $object.Name }}}}
{{{{- range $changes }}}}
- {{{{ .Setter }}}}: {{{{ .OldValue }}}} -> {{{{ .NewValue }}}}
{{{{- end }}}}
{{{{ end }}}}
"""


@struct()
class ClusterFiles:
    """Files by path below the root: the label their header names, and their documents."""

    files: dict[str, tuple[str, Iterable[Document]]] = field(default_factory=dict)

    def add(self, path: str, label: str, documents: Iterable[Document]) -> None:
        """Add a file."""
        self.files[path] = (label, documents)


def kustomization(resources: Iterable[str], further: dict[str, Any] | None = None) -> Document:
    """Return a kustomization.yaml."""
    fields = dict.fromkeys(("components", "configMapGenerator", "secretGenerator", "generatorOptions", "patches"))
    return ("kustomization", {"resources": list(resources), **fields, **(further or {})})


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
    if context.platform.alerts.enabled:
        made.add("apps/kube-state-metrics.yaml", platform, [plan_metrics(context)])
        base.append("kube-state-metrics.yaml")
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
    if context.platform.alerts.enabled:
        rule = plan_rule(context, services, commits=BOT in made.files)
        made.add("platform/alerts/prometheus-rule.yaml", platform, [rule])
        made.add("platform/alerts/kustomization.yaml", platform, [kustomization(["prometheus-rule.yaml"])])
    _plan_flux(context, made, services, base)
    return made


def bot_path(context: Context, services: Iterable[Rendered]) -> str:
    """Return the folder whose files the bot edits: the one that holds every marker of the tree."""
    return path_below(context.platform.root, "" if any(one.marks_configs for one in services) else "apps")


def _plan_automation(context: Context, made: ClusterFiles, services: list[Rendered]) -> None:
    settings = context.platform.image_automation
    platform = context.platform
    resources = []
    # The bot's run fails when its path does not exist, so it is left out of a tree without services.
    if settings.enabled and services:
        source = platform.flux.source
        foreign = source.namespace not in (None, context.flux_namespace)
        branch = settings.branch or DEFAULT_BRANCH
        message = settings.message_template or MESSAGE.format(cluster=platform.cluster)
        if platform.defaults.substitute:
            message = escaped(message)
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
            "messageTemplate": message,
            "signingKey": settings.signing_key,
            "push": {
                "branch": settings.push_branch or branch,
                "refspec": settings.push_refspec,
                "options": dict(settings.push_options) or None,
            },
            "policySelector": settings.policy_selector,
            "path": bot_path(context, services),
        }
        resources.append("image-update-automation.yaml")
        made.add(BOT, context.file.label, [("imageupdateautomation", values)])
    if settings.secret_file:
        resources.append(settings.secret_file)
    if resources:
        made.add("platform/image-automation/kustomization.yaml", context.file.label, [kustomization(resources)])


def _plan_flux(context: Context, made: ClusterFiles, services: list[Rendered], base: list[str]) -> None:
    """Add the Flux Kustomizations, and the folders that those of a namespace read."""
    label = context.file.label
    if context.platform.flux.kustomizations == "namespace":
        for namespace, names in by_namespace(services).items():
            resources = [f"../../apps/{name}" for name in names]
            made.add(f"flux/apps-{namespace}/kustomization.yaml", label, [kustomization(resources)])
    has_root = "apps/kustomization.yaml" in made.files
    platform = [folder for folder in PLATFORM_FOLDERS if f"platform/{folder}/kustomization.yaml" in made.files]
    if services or has_root or platform:
        tree = FluxTree(context, services, has_root=has_root, has_base=bool(base), platform=platform)
        made.add("flux/kustomizations.yaml", label, tree.documents())
        made.add("flux/kustomization.yaml", label, [kustomization(["kustomizations.yaml"])])
