"""The rendered services in, the Flux Kustomizations that reconcile their folders out, in one of three divisions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from render.flux.cadence import format_duration, parse_duration
from render.plan.context import Context, Header
from render.plan.workload import Document
from render.structs import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

HELM_TIMEOUT = 5 * 60
"""Seconds that helm-controller gives an operation without `timeout`."""
CONFIGS_RETRY = "2m"
"""How soon `configs` are tried again while a chart is still installing their kinds."""
PLATFORM_FOLDERS = ("image-automation", "alerts")
"""Folders below `platform/`, each with a Flux Kustomization of its own."""
MACHINE_HEALTH = {
    "apiVersion": "kubevirt.io/v1",
    "kind": "VirtualMachine",
    "current": "has(status.printableStatus) && (status.printableStatus in ['Running', 'Migrating', 'Paused'] || "
    "(spec.runStrategy != 'Always' && status.printableStatus == 'Stopped'))",
}
"""When a virtual machine is as it should be: KubeVirt calls a stopped one not ready, also where it is to be stopped."""
VARIABLE_SOURCES = (
    {"kind": "ConfigMap", "name": "cluster-settings", "optional": True},
    {"kind": "Secret", "name": "cluster-secrets", "optional": True},
)
"""Where Flux takes the declared variables from; the names that most repositories use."""


@struct(frozen=True)
class Rendered:
    """What the tree's own files need of a rendered service."""

    header: Header
    has_apps: bool
    has_configs: bool
    depends_on: tuple[str, ...]
    timeout: int
    """Seconds that one of its Helm operations may take, or its Deployment to become ready."""
    marks_configs: bool = False
    """Whether an object in `configs/` holds a setter marker."""
    has_gated_deployment: bool = False
    """Whether it is a plain Deployment whose updates must become ready."""
    is_machine: bool = False
    """Whether it is a virtual machine, which is one of the objects in `configs/`."""


def release_timeout(spec: Mapping[str, Any]) -> int:
    """Return the seconds that the longest of a release's operations may take; `spec` is plain data."""
    actions = (spec, *(spec.get(action) or {} for action in ("install", "upgrade", "rollback", "test")))
    given = [action["timeout"] for action in actions if action.get("timeout") is not None]
    return max([-(-parse_duration(text) // 1_000_000_000) for text in given], default=HELM_TIMEOUT)


def path_below(root: str, folder: str) -> str:
    """Return a folder of the tree as a Flux path: relative to the repository's top, with `./`."""
    parts = [part for part in (*root.split("/"), folder) if part not in ("", ".")]
    return "/".join((".", *parts)) if parts else "./"


def by_namespace(services: Iterable[Rendered]) -> dict[str, list[str]]:
    """Return the names of services with files in `apps/` by their namespaces, in order."""
    parts: dict[str, list[str]] = {}
    for service in services:
        if service.has_apps:
            parts.setdefault(service.header.namespace, []).append(service.header.name)
    return dict(sorted(parts.items()))


class FluxTree:
    """Plans the Flux Kustomizations of a cluster.

    A release may need one of its own custom resources to become ready. Were its Kustomization to wait for it,
    `configs`, which come after `apps`, would never be applied; so `apps` wait only where no `configs` follow, and
    `configs` are tried again soon.
    """

    def __init__(
        self, context: Context, services: list[Rendered], *, has_root: bool, has_base: bool, platform: Sequence[str]
    ) -> None:
        self.platform = context.platform
        self.namespace = context.flux_namespace
        self.services = services
        self.has_root = has_root
        """Whether `apps/kustomization.yaml` lists anything."""
        self.folders = platform
        """Those of `PLATFORM_FOLDERS` that hold anything."""
        self.first = ("apps",) if has_base and self.platform.flux.kustomizations != "all" else ()
        """What every other division comes after: namespaces and shared sources."""
        self.has_configs = any(service.has_configs for service in services)
        source = self.platform.flux.source
        foreign = source.namespace not in (None, self.namespace)
        self.source_ref = {
            "kind": source.kind,
            "name": source.name,
            "namespace": source.namespace if foreign else None,
        }
        # A Kustomization that waits must outlast the releases it waits for.
        seconds = max((service.timeout for service in services), default=HELM_TIMEOUT)
        self.timeout = format_duration(max(2 * HELM_TIMEOUT, seconds + HELM_TIMEOUT))
        variables = self.platform.defaults.substitute
        self.post_build: Any = {"substituteFrom": [dict(one) for one in VARIABLE_SOURCES]} if variables else None

    def documents(self) -> Iterator[Document]:
        """Yield the Kustomizations, each after those it depends on."""
        mode = self.platform.flux.kustomizations
        parts = [f"apps-{part}" for part in by_namespace(self.services)] if mode == "namespace" else []
        before = (*(("apps",) if self.has_root and mode == "all" else self.first), *parts)
        if self.has_root:
            yield self._one("apps", "apps", wait=mode != "all" or not self.has_configs)
        if mode == "service":
            yield from self._each_service()
        else:
            for part in parts:
                yield self._one(part, f"flux/{part}", self.first, wait=not self.has_configs)
            if self.has_configs:
                has_machine = any(service.is_machine for service in self.services)
                yield self._configs("configs", "configs", before, has_machine=has_machine)
        for folder in self.folders:
            # The kind PrometheusRule is one that a chart of `apps` brings.
            after, retry = (before, CONFIGS_RETRY) if folder == "alerts" else ((), None)
            yield self._one(f"platform-{folder}", f"platform/{folder}", after, retry=retry)

    def _each_service(self) -> Iterator[Document]:
        rendered = {name: part for service in self.services for name, part in _main_part(service)}
        for service in self.services:
            name = service.header.name
            others = [rendered[other] for other in service.depends_on if other in rendered]
            if service.has_apps:
                yield self._one(f"apps-{name}", f"apps/{name}", (*self.first, *others), wait=not service.has_configs)
        for service in self.services:
            name = service.header.name
            if service.has_configs:
                others = [rendered[other] for other in service.depends_on if other in rendered]
                before = (f"apps-{name}",) if service.has_apps else (*self.first, *others)
                yield self._configs(f"configs-{name}", f"configs/{name}", before, has_machine=service.is_machine)

    def _configs(self, name: str, path: str, depends_on: tuple[str, ...], *, has_machine: bool) -> Document:
        health = [dict(MACHINE_HEALTH)] if has_machine else None
        return self._one(name, path, depends_on, retry=CONFIGS_RETRY, health=health)

    def _one(
        self,
        name: str,
        path: str,
        depends_on: tuple[str, ...] = (),
        *,
        wait: bool = True,
        retry: str | None = None,
        health: list[dict[str, str]] | None = None,
    ) -> Document:
        values = {
            "name": name,
            "namespace": self.namespace,
            "interval": self.platform.defaults.interval,
            "retryInterval": retry,
            "timeout": self.timeout,
            "dependsOn": [{"name": other} for other in depends_on] or None,
            "sourceRef": self.source_ref,
            "path": path_below(self.platform.root, path),
            "prune": True,
            "wait": wait,
            "healthCheckExprs": health,
            "decryption": self.platform.flux.decryption,
            "postBuild": self.post_build,
        }
        return ("fluxkustomization", values)


def _main_part(service: Rendered) -> Iterator[tuple[str, str]]:
    """Yield the name of a service and of the Kustomization that holds what runs, if any does."""
    name = service.header.name
    if service.has_apps and not service.is_machine:
        yield name, f"apps-{name}"
    elif service.has_configs:
        yield name, f"configs-{name}"
