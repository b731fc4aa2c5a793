"""Committed and new text of changed files in, what the change would do to running releases out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from render.committed import TABLE_COMMENT
from render.diagnostics import Diagnostic, Location
from render.patterns import lazy
from render.yaml import source as yaml

_TABLE = lazy(rf"^ *# {re.escape(TABLE_COMMENT)}\n(?P<table>(?: .*\n)*)", re.MULTILINE)
_IDENTITY = lazy(
    r"^(?:kind|  (?:name|namespace|releaseName|targetNamespace|storageNamespace|url)|      chart): .+$"
    r"|^  chartRef:\n(?:    .+\n)+",
    re.MULTILINE,
)
"""What makes a release the same release, as `render` writes it: fields above `values` in fixed places."""

_OBJECT = lazy(
    r"^kind: [\"']?(HelmRelease|Deployment|StatefulSet|VirtualMachine)[\"']?\n"
    r"metadata:\n  name: [\"']?([^\"'\n]+)[\"']?\n  namespace: [\"']?([^\"'\n]+)",
    re.MULTILINE,
)
_FLUX = lazy(
    r"^kind: Kustomization\nmetadata:\n  name: \"?(?P<name>[^\"\n]+)\"?\n  namespace: \"?(?P<namespace>[^\"\n]+)\"?\n"
    r"(?:[a-z ].*\n)*?  path: (?P<path>.+)$",
    re.MULTILINE,
)
"""A Flux Kustomization as we write it."""
KUSTOMIZATIONS = "flux/kustomizations.yaml"

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


def moved(committed: Texts, files: Texts, new: Iterable[str]) -> dict[str, str]:
    """Return the releases, workloads and machines of renamed services, the new path of each by the old one.

    To Flux, one object with the same name and namespace is the same one, whatever file it stands in.
    """
    stale = {path: text for path, text in committed.items() if path not in files and _holds_object(path)}
    if not stale:
        return {}
    places = {key: path for path in new if _holds_object(path) and (key := _object(files[path]))}
    return {path: places[key] for path, text in stale.items() if (key := _object(text)) in places}


def _holds_object(path: str) -> bool:
    return service_of(path) != "" and path.endswith(("/helmrelease.yaml", "/workload.yaml", "/vm.yaml"))


def _object(text: str) -> tuple[str, str, str] | None:
    """Return what a release, workload or machine is to Flux; a Deployment and a StatefulSet have one name in turn."""
    match = _OBJECT.search(text)
    return ("" if match[1] in ("Deployment", "StatefulSet") else match[1], match[2], match[3]) if match else None


def reinstalls(
    committed: Texts, files: Texts, new: frozenset[str], allowed: frozenset[str], moves: Mapping[str, str]
) -> list[tuple[str, Diagnostic]]:
    """Return, by path, the changes that would uninstall a release or workload and install another, unless allowed.

    `committed` holds the present texts of the files that would change or go, `new` the paths that are not there yet,
    `moves` the objects that go to another file.
    """

    def present(path: str) -> str | None:
        text = committed.get(path)
        return text if text is not None or path in new or path not in files else files[path]

    found = []
    users = _users_of_changed_sources(committed, files)
    pairs = {(service, service) for service in {service_of(path) for path in committed} | users if service}
    pairs |= {(service_of(old), service_of(path)) for old, path in moves.items()}
    for was, service in sorted(pairs):
        if service in allowed:
            continue
        old_path, path = (f"apps/{name}/helmrelease.yaml" for name in (was, service))
        old, text = present(old_path), files.get(path)
        if old is not None and text is not None and (was == service or moves.get(old_path) == path):
            # Where its source has changed, the chart may have another name.
            has_moved = was != service or service in users or f"apps/{service}/source.yaml" in committed
            if has_moved or _identity_lines(old) != _identity_lines(text):
                found += _release_faults((was, service), path, (old, present), (text, files.get))
        old_path, path = (f"apps/{name}/workload.yaml" for name in (was, service))
        if old_path in committed and path in files and (was == service or moves.get(old_path) == path):
            found += _workload_faults(service, path, committed[old_path], files[path])
        old_path, path = (f"configs/{name}/vm.yaml" for name in (was, service))
        if old_path in committed and path in files and (was == service or moves.get(old_path) == path):
            found += _machine_faults(service, path, committed[old_path], files[path])
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
    services: tuple[str, str], path: str, before: tuple[str, Lookup], after: tuple[str, Lookup]
) -> list[tuple[str, Diagnostic]]:
    was, service = services
    mine, other = _identity(before[0]), _identity(after[0])
    for field, value in mine.items():
        if value and other.get(field) and value != other[field]:
            return [(path, _release_fault(service, f"{field} changes from `{value}` to `{other[field]}`"))]
    old, _ = _chart(before[0], was, before[1])
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


def _workload_faults(service: str, path: str, old: str, text: str) -> list[tuple[str, Diagnostic]]:
    before, after = _OBJECT.search(old), _OBJECT.search(text)
    if before is None or after is None:
        return []
    for field, value, other in zip(("kind", "name", "namespace"), before.groups(), after.groups(), strict=True):
        if value != other:
            told = f"the `{field}` of the workload changes from `{value}` to `{other}`"
            new = "another one" if before[1] == after[1] else f"the {after[1]}"
            cause = f"Flux deletes the {before[1]} (prune) and creates {new}, which has other volumes"
            return [(path, _fault(service, told, cause))]
    return []


def divisions(
    committed: Texts, files: Texts, new: frozenset[str], allowed: frozenset[str], moves: Mapping[str, str]
) -> list[tuple[str, Diagnostic]]:
    """Return, by path, that services would go to other Flux Kustomizations than those that apply them, unless allowed.

    A Kustomization deletes what it holds no longer, except what another one has taken over by then; nothing orders the
    two (https://github.com/fluxcd/kustomize-controller/issues/339).
    """
    old = _division(committed[KUSTOMIZATIONS]) if KUSTOMIZATIONS in committed else None
    now = _division(files[KUSTOMIZATIONS]) if KUSTOMIZATIONS in files else None
    old = now if old is None and KUSTOMIZATIONS not in new else old
    if old is None or now is None:
        return []
    services = {service_of(path) for path in moves.values()} if now[0] == "service" else set()
    if old != now:
        # Those of one a namespace share their `configs` with those of one for all.
        apart = old[1] != now[1] or "service" in (old[0], now[0])
        folders = ("apps/", "configs/") if apart else ("apps/",)
        ours = [path for path in files if path.startswith(folders) and path.endswith("/kustomization.yaml")]
        services |= {service_of(path) for path in ours if path not in new}
    services -= {"", *allowed}
    if not services:
        return []
    first = min(services)
    told = f"`{first}` moves" if len(services) == 1 else f"{len(services)} services, such as `{first}`, move"
    each = f"`--allow-reinstall {first}`" if len(services) == 1 else "`--allow-reinstall NAME` for each of them"
    return [
        (
            KUSTOMIZATIONS,
            Diagnostic(
                Location(""),
                "R516",
                f"{told} to another Flux Kustomization",
                cause="the present one deletes what it no longer holds, so releases may be uninstalled before the new "
                "one has taken them over",
                hint="undo the change; or suspend the present ones (`flux suspend kustomization NAME`), build with "
                f"{each}, and resume them when the new ones are ready",
            ),
        )
    ]


def _division(text: str) -> tuple[str, str] | None:
    """Return how many Flux Kustomizations apply the services, and their namespace; None without any."""
    namespace = ""
    for match in _FLUX.finditer(text):
        name = match["name"]
        if name.partition("-")[0] not in ("apps", "configs"):
            continue
        namespace = namespace or match["namespace"]
        if "-" in name:
            # The others of several are of its kind.
            return "namespace" if match["path"].rstrip('"').endswith(f"/flux/{name}") else "service", namespace
    return ("all", namespace) if namespace else None


def _machine_faults(service: str, path: str, old: str, new: str) -> list[tuple[str, Diagnostic]]:
    before, after = _object(old), _object(new)
    if before is None or after is None:
        return []
    for field, value, other in zip(("kind", "name", "namespace"), before, after, strict=True):
        if value != other:
            told = f"the `{field}` of the virtual machine changes from `{value}` to `{other}`"
            cause = "Flux deletes the machine with its DataVolumes (prune) and creates another one, whose disks are new"
            return [(path, _fault(service, told, cause))]
    return []


def _fault(service: str, told: str, cause: str) -> Diagnostic:
    return Diagnostic(
        Location(""),
        "R511",
        f"`{service}` would be uninstalled and installed again: {told}",
        cause=cause,
        hint=f"undo the change, or say `--allow-reinstall {service}`",
    )
