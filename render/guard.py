"""Committed and new text of changed files in, what the change would do to running releases out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from render.committed import TABLE_COMMENT
from render.diagnostics import Diagnostic, Location
from render.patterns import lazy
from render.yaml import source as yaml

_TABLE = lazy(rf"^ *# {re.escape(TABLE_COMMENT)}\n(?P<table>(?: .*\n)*)", re.MULTILINE)
_KIND = lazy(r"^kind: [\"']?(Deployment|StatefulSet)\b", re.MULTILINE)
_IDENTITY = lazy(
    r"^(?:kind|  (?:name|namespace|releaseName|targetNamespace|storageNamespace|url)|      chart): .+$"
    r"|^  chartRef:\n(?:    .+\n)+",
    re.MULTILINE,
)
"""What makes a release the same release, as `render` writes it: fields above `values` in fixed places."""

Texts = Mapping[str, str]
Lookup = Callable[[str], str | None]


def service_of(path: str) -> str:
    """Return the service that a path below the root belongs to; `""` for a file of none."""
    parts = path.split("/")
    return parts[1] if len(parts) == 3 and parts[0] in ("apps", "configs") and parts[1] != "sources" else ""


def carries_table(text: str) -> bool:
    """Whether a release carries the platform's table."""
    return _TABLE.search(text) is not None


def table_upgrades(committed: Texts, files: Texts, changed: Iterable[str]) -> int:
    """Count the releases that a changed table upgrades: any edit of the post-renderers does."""
    return sum(_table(committed[path]) != _table(files[path]) for path in changed if path.endswith("/helmrelease.yaml"))


def _table(text: str) -> str:
    match = _TABLE.search(text)
    return match["table"] if match else ""


def reinstalls(
    committed: Texts, files: Texts, new: frozenset[str], allowed: frozenset[str]
) -> list[tuple[str, Diagnostic]]:
    """Return, by path, the changes that would uninstall a release or workload and install another, unless allowed.

    `committed` holds the present texts of the files that would change or go, `new` the paths that are not there yet.
    """

    def present(path: str) -> str | None:
        text = committed.get(path)
        return text if text is not None or path in new or path not in files else files[path]

    found = []
    users = _users_of_changed_sources(committed, files)
    for service in sorted({service_of(path) for path in committed} | users):
        if service in allowed or not service:
            continue
        path = f"apps/{service}/helmrelease.yaml"
        old, text = present(path), files.get(path)
        if old is not None and text is not None:
            moved = service in users or f"apps/{service}/source.yaml" in committed
            if moved or _identity_lines(old) != _identity_lines(text):
                found += _release_faults(service, path, (old, present), (text, files.get))
        path = f"apps/{service}/workload.yaml"
        if path in committed and path in files:
            found += _workload_faults(service, path, committed[path], files[path])
    return found


def _users_of_changed_sources(committed: Texts, files: Texts) -> set[str]:
    """Return the services whose chart comes from a shared source that names another chart than before."""
    found: set[str] = set()
    for path in committed:
        folder, _, name = path.rpartition("/")
        if folder != "apps/sources" or _chart_of_source(committed[path]) == _chart_of_source(files.get(path)):
            continue
        # Named `<namespace>--<key>` where sources are not shared across namespaces.
        key = name.removesuffix(".yaml").rpartition("--")[2]
        user = lazy(rf"^  chartRef:\n    kind: OCIRepository\n    name: \"?{re.escape(key)}\"?\n", re.MULTILINE)
        found |= {service_of(one) for one in files if one.endswith("/helmrelease.yaml") and user.search(files[one])}
    return found


def _release_faults(
    service: str, path: str, before: tuple[str, Lookup], after: tuple[str, Lookup]
) -> list[tuple[str, Diagnostic]]:
    mine, other = _identity(before[0]), _identity(after[0])
    for field, value in mine.items():
        if value and other.get(field) and value != other[field]:
            return [(path, _release_fault(service, f"{field} changes from `{value}` to `{other[field]}`"))]
    old, _ = _chart(before[0], service, before[1])
    new, place = _chart(after[0], service, after[1])
    if old and new and old != new:
        return [(place or path, _release_fault(service, f"the chart's name changes from `{old}` to `{new}`"))]
    return []


def _identity_lines(text: str) -> list[str]:
    return _IDENTITY.findall(text.partition("\n  values:")[0])


def _identity(text: str) -> dict[str, str]:
    """Return what a HelmRelease is to Flux, defaults filled in; empty for a text that is no HelmRelease.

    A text whose object has no namespace says nothing of what depends on it.
    """
    root = _root(text)
    if root is None or root.text("kind") != "HelmRelease":
        return {}
    metadata, spec = _part(root, "metadata"), _part(root, "spec")
    name, namespace = metadata.text("name") or "", metadata.text("namespace") or ""
    target = spec.text("targetNamespace")
    default = f"{target}-{name}" if target else name
    return {
        "`name`": name,
        "`namespace`": namespace,
        "`spec.targetNamespace`": target or namespace,
        "`spec.storageNamespace`": spec.text("storageNamespace") or namespace,
        "`spec.releaseName`": spec.text("releaseName") or default,
    }


def _root(text: str) -> yaml.Mapping | None:
    """Return the first object of a text; None when there is none."""
    documents, faults = yaml.parse(yaml.Source("", text))
    root = documents[0].root if documents and not faults else None
    return root if type(root) is yaml.Mapping else None


def _part(node: yaml.Mapping, *keys: str) -> yaml.Mapping:
    for key in keys:
        inner = node.get(key)
        if type(inner) is not yaml.Mapping:
            return yaml.Mapping([])
        node = inner
    return node


def _chart(text: str, service: str, lookup: Lookup) -> tuple[str, str]:
    """Return the name of a release's chart and the file that says it; `""` for what is not known.

    The chart of an OCIRepository is the last part of its URL.
    """
    root = _root(text)
    if root is None:
        return "", ""
    chart = _part(root, "spec", "chart", "spec").text("chart")
    if chart:
        return chart.rstrip("/").rpartition("/")[2], ""
    reference = _part(root, "spec", "chartRef")
    name, namespace = reference.text("name") or "", reference.text("namespace")
    shared = f"{namespace or _part(root, 'metadata').text('namespace')}--{name}"
    for path in (f"apps/{service}/source.yaml", f"apps/sources/{name}.yaml", f"apps/sources/{shared}.yaml"):
        source = lookup(path)
        if name and source and _part(_root(source) or yaml.Mapping([]), "metadata").text("name") == name:
            return _chart_of_source(source), path
    return "", ""


def _chart_of_source(text: str | None) -> str:
    url = _part(_root(text) or yaml.Mapping([]), "spec").text("url") if text else None
    return url.rstrip("/").rpartition("/")[2] if url and url.startswith("oci://") else ""


def _release_fault(service: str, told: str) -> Diagnostic:
    return _fault(service, told, "what the release owns is deleted first, volumes included unless the chart keeps them")


def _workload_faults(service: str, path: str, old: str, new: str) -> list[tuple[str, Diagnostic]]:
    before, after = _KIND.search(old), _KIND.search(new)
    if before is None or after is None or before[1] == after[1]:
        return []
    told = f"the kind changes from `{before[1]}` to `{after[1]}`"
    cause = f"Flux deletes the {before[1]} (prune) and creates the {after[1]}, which has other volumes"
    return [(path, _fault(service, told, cause))]


def _fault(service: str, told: str, cause: str) -> Diagnostic:
    return Diagnostic(
        Location(""),
        "R511",
        f"`{service}` would be uninstalled and installed again: {told}",
        cause=cause,
        hint=f"undo the change, or say `--allow-reinstall {service}`",
    )
