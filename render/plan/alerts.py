"""The platform file and the rendered services in, the alerts about updates and the metrics that they need out.

The Flux controllers export no metric about the state of an object: kube-state-metrics does, as `gotk_resource_info`,
once it is told where the state stands. That configuration is rendered too, as values of a Helm chart. The metric has
the name and the labels of Flux's own monitoring example, and two more: `stalled` and `remediated`.
"""

from __future__ import annotations

from collections.abc import Iterable

from render.flux.api import OBJECTS
from render.plan.context import Context
from render.plan.fluxtree import Rendered
from render.plan.workload import Document
from render.yaml.emit import Emitter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

GROUP = "platform-health.automated-updates"
METRICS = "platform-health-metrics"
"""Name of the ConfigMap with the values of kube-state-metrics."""
VALUES_KEYS = {"values.yaml": "kube-state-metrics", "kube-state-metrics.yaml": None}
"""Keys of the ConfigMap, each with the name of the subchart that its values are below: those of the
kube-prometheus-stack chart under Flux's default key, and those of the kube-state-metrics chart itself."""

_WATCHED = {"reconcile.fluxcd.io/watch": "Enabled"}
"""Label by which Flux upgrades a release as soon as the values that it takes from an object change."""
_CONDITIONS = {
    "HelmRelease": {"ready": "Ready", "stalled": "Stalled", "remediated": "Remediated"},
    "ImageRepository": {"ready": "Ready"},
    "ImagePolicy": {"ready": "Ready"},
    "ImageUpdateAutomation": {"ready": "Ready"},
}
"""Labels of the metric that tell the status of a condition, by kind."""
_RESOURCES = {
    "HelmRelease": "helmreleases",
    "ImageRepository": "imagerepositories",
    "ImagePolicy": "imagepolicies",
    "ImageUpdateAutomation": "imageupdateautomations",
}
_INFO = "gotk_resource_info"


def plan_rule(context: Context, services: Iterable[Rendered], *, commits: bool) -> Document:
    """Return the PrometheusRule; `commits` says whether the tree has an ImageUpdateAutomation."""
    alerts, cluster = context.platform.alerts, context.platform.cluster
    rules: list[Any] = []
    if commits:
        rules.append(_failing(context))
    if context.automation:
        rules.append(_stalled(context))
    rules.append(_rolled_back())
    gated = _by_namespace(services)
    if gated:
        rules.append(_stuck(gated))
    for rule in rules:
        rule["labels"]["cluster"] = cluster
        rule["annotations"]["runbook_url"] = f"{alerts.runbooks}#{rule['alert'].lower()}"
    values = {
        "name": f"platform-health-{cluster}",
        "namespace": alerts.namespace,
        "labels": dict(alerts.labels) or None,
        "groups": [{"name": GROUP, "rules": rules}],
    }
    return ("prometheusrule", values)


def _rule(alert: str, expression: str, wait: str, severity: str, *texts: str, **labels: str) -> dict[str, Any]:
    summary, description = texts
    return {
        "alert": alert,
        "expr": expression,
        "for": wait,
        "labels": {"severity": severity, **labels},
        "annotations": {"summary": summary, "description": description},
    }


def _failing(context: Context) -> dict[str, Any]:
    """Return the alert about the bot. Without the metric no alert here could fire, so its absence fires this one."""
    namespace, name = context.flux_namespace, context.platform.cluster
    bot = f'customresource_kind="ImageUpdateAutomation",exported_namespace="{namespace}",name="{name}"'
    return _rule(
        "ImageUpdateAutomationFailing",
        # Between its tries a failing object is in progress (`Unknown`), so what counts is that it is never ready.
        "max by (exported_namespace, name) (\n"
        f'  {_INFO}{{{bot},ready!="True",suspended!="true"}}\n'
        f"  or absent({_INFO}{{{bot}}})\n"
        ")\n",
        "15m",
        "warning",
        "The image bot {{ $labels.exported_namespace }}/{{ $labels.name }} commits no updates",
        "The ImageUpdateAutomation {{ $labels.exported_namespace }}/{{ $labels.name }} has not been ready for 15 "
        "minutes, or kube-state-metrics does not tell its state.",
    )


def _stalled(context: Context) -> dict[str, Any]:
    kinds = f'customresource_kind=~"ImagePolicy|ImageRepository",exported_namespace="{context.flux_namespace}"'
    return _rule(
        "ImagePolicyStalled",
        "max by (customresource_kind, exported_namespace, name) (\n"
        f'  {_INFO}{{{kinds},ready!="True",suspended!="true"}}\n'
        ")\n",
        "30m",
        "warning",
        "No newer version of {{ $labels.name }} can be chosen",
        "The {{ $labels.customresource_kind }} {{ $labels.exported_namespace }}/{{ $labels.name }} has not been ready "
        "for 30 minutes: the registry cannot be scanned, or no tag fits the policy. The image stays as it is.",
    )


def _rolled_back() -> dict[str, Any]:
    release = 'customresource_kind="HelmRelease"'
    of = "max by (exported_namespace, name)"
    # An upgrade in progress is neither stalled nor remediated. `Remediated` is taken back while a rollback runs, so the
    # last minutes count; a release that is ready again is done with at once.
    return _rule(
        "UpdateHealthGateFailed",
        f'{of} ({_INFO}{{{release},stalled="True",suspended!="true"}})\n'
        "or\n"
        f'{of} (max_over_time({_INFO}{{{release},ready!="True",remediated=~".+",suspended!="true"}}[15m]))\n'
        f'unless {of} ({_INFO}{{{release},ready="True"}})\n',
        "1m",
        "critical",
        "The update of {{ $labels.exported_namespace }}/{{ $labels.name }} failed its health checks",
        "The upgrade of the HelmRelease {{ $labels.exported_namespace }}/{{ $labels.name }} did not become healthy. It "
        "was rolled back, or it is stalled and nobody tries it again.",
        kind="HelmRelease",
    )


def _by_namespace(services: Iterable[Rendered]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for service in services:
        if service.has_gated_deployment:
            found.setdefault(service.header.namespace, []).append(service.header.object_name)
    return {namespace: sorted(names) for namespace, names in sorted(found.items())}


def _stuck(gated: dict[str, list[str]]) -> dict[str, Any]:
    """Return the alert about plain Deployments; those of charts are the business of their releases."""
    metric = 'kube_deployment_status_condition{condition="Progressing",status="false"'
    parts = (f'{metric},namespace="{space}",deployment=~"{"|".join(names)}"}}' for space, names in gated.items())
    return _rule(
        "UpdateHealthGateFailed",
        "max by (namespace, deployment) (\n  " + "\n  or ".join(parts) + "\n) == 1\n",
        "1m",
        "critical",
        "The update of {{ $labels.namespace }}/{{ $labels.deployment }} failed its health checks",
        "The new pods of the Deployment {{ $labels.namespace }}/{{ $labels.deployment }} did not become ready within "
        "its progress deadline. The old pods go on running.",
        kind="Deployment",
    )


def plan_metrics(context: Context) -> Document:
    """Return the ConfigMap with the values that make kube-state-metrics tell the state of Flux's objects."""
    kinds = [kind for kind in _CONDITIONS if context.automation or kind == "HelmRelease"]
    groups: dict[str, list[str]] = {}
    for kind in kinds:
        groups.setdefault(OBJECTS[kind].api_version.partition("/")[0], []).append(_RESOURCES[kind])
    values = {
        "rbac": {
            "extraRules": [
                {"apiGroups": [group], "resources": resources, "verbs": ["list", "watch"]}
                for group, resources in groups.items()
            ]
        },
        "customResourceState": {
            "enabled": True,
            "config": {
                "kind": "CustomResourceStateMetrics",
                "spec": {"resources": [_resource(kind) for kind in kinds]},
            },
        },
    }
    texts = {key: _text({below: values} if below else values) for key, below in VALUES_KEYS.items()}
    alerts = context.platform.alerts
    return ("configmap", {"name": METRICS, "namespace": alerts.namespace, "labels": _WATCHED, "data": texts})


def _text(values: dict[str, Any]) -> str:
    return Emitter().fields("", values)


def _resource(kind: str) -> dict[str, Any]:
    group, _, version = OBJECTS[kind].api_version.partition("/")
    conditions = {
        label: ["status", "conditions", f"[type={condition}]", "status"]
        for label, condition in _CONDITIONS[kind].items()
    }
    metric = {
        "name": "resource_info",
        "help": "The state of a Flux object.",
        "each": {"type": "Info", "info": {"labelsFromPath": {"name": ["metadata", "name"]}}},
        "labelsFromPath": {
            "exported_namespace": ["metadata", "namespace"],
            "suspended": ["spec", "suspend"],
            **conditions,
        },
    }
    return {
        "groupVersionKind": {"group": group, "version": version, "kind": kind},
        "metricNamePrefix": "gotk",
        "metrics": [metric],
    }
