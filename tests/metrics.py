"""Objects of Flux in, the series that kube-state-metrics makes of them under a rendered configuration out.

A model of its custom resource state metrics, as far as the configuration goes: type `Info`, labels from paths of keys
and of `[key=value]` lookups, the labels `customresource_…`; a label whose path leads nowhere is left out.
"""

from __future__ import annotations

from typing import Any

import yaml

from tests.project import only


def configuration(text: str, key: str = "kube-state-metrics.yaml") -> dict[str, Any]:
    """Return the values of the kube-state-metrics chart out of the text of a rendered ConfigMap."""
    values: dict[str, Any] = yaml.safe_load(only(text, "ConfigMap")["data"][key])
    return values


def at(value: Any, path: list[str]) -> Any:
    """Return what stands at a path; None where nothing does."""
    for step in path:
        if step.startswith("[") and isinstance(value, list):
            key, _, wanted = step[1:-1].partition("=")
            value = next((item for item in value if item.get(key) == wanted), None)
        else:
            value = value.get(step) if isinstance(value, dict) else None
    return value


def text_of(value: Any) -> str:
    """Return a value as Go prints it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def series(values: dict[str, Any], thing: dict[str, Any]) -> list[str]:
    """Return the series of an object: none if its kind is not configured."""
    made = []
    for resource in values["customResourceState"]["config"]["spec"]["resources"]:
        kind = resource["groupVersionKind"]
        if (f"{kind['group']}/{kind['version']}", kind["kind"]) != (thing["apiVersion"], thing["kind"]):
            continue
        for metric in resource["metrics"]:
            assert metric["each"]["type"] == "Info"
            paths = {**metric["labelsFromPath"], **metric["each"]["info"]["labelsFromPath"]}
            found = {label: at(thing, path) for label, path in paths.items()}
            labels = {label: text_of(value) for label, value in found.items() if value is not None}
            labels |= {f"customresource_{name}": text for name, text in kind.items()}
            inner = ",".join(f'{label}="{text}"' for label, text in sorted(labels.items()))
            made.append(f"{resource['metricNamePrefix']}_{metric['name']}{{{inner}}}")
    return made


def flux_object(kind: str, name: str, conditions: dict[str, str], *, suspend: bool | None = None) -> dict[str, Any]:
    """Return an object of Flux as the API server would, with the status of its conditions."""
    group = "helm" if kind == "HelmRelease" else "image"
    return {
        "apiVersion": f"{group}.toolkit.fluxcd.io/{'v2' if kind == 'HelmRelease' else 'v1'}",
        "kind": kind,
        "metadata": {"name": name, "namespace": "web" if kind == "HelmRelease" else "flux-system"},
        "spec": {} if suspend is None else {"suspend": suspend},
        "status": {"conditions": [{"type": one, "status": status} for one, status in conditions.items()]},
    }
