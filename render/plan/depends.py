"""A service's `dependsOn` in, the HelmRelease's dependencies and those of its Flux Kustomization out."""

from __future__ import annotations

from render.catalog import Definition
from render.plan.context import Context, Header, Report, node_at
from render.yaml.source import Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Dependencies:
    """Plans what one service waits for.

    `dependsOn` of a HelmRelease names HelmReleases only. Any other pair of services can wait for each other where each
    has a Flux Kustomization of its own.
    """

    def __init__(self, context: Context, definition: Definition, header: Header, report: Report) -> None:
        self.context = context
        self.service = definition.service
        self.node = definition.root.get("dependsOn")
        self.header = header
        self.report = report
        self.releases: list[dict[str, Any]] = []
        """Entries of the HelmRelease's `dependsOn`."""
        self.services: list[str] = []
        """Catalog services that only the Flux Kustomization of the service can wait for."""

    def plan(self) -> None:
        """Fill `releases` and `services`, reporting what cannot be waited for."""
        for index, item in enumerate(self.service.depends_on):
            where = node_at(self.node, index)
            if isinstance(item, str):
                self._on_service(where, item, None)
            elif item.name is not None and item.helm_release is None:
                self._on_service(where, item.name, item.ready_expr)
            elif item.name is None and item.helm_release is not None:
                self._on_outside(where, item.helm_release, item.ready_expr)
            else:
                self.report.error(
                    "R201",
                    where,
                    "a dependency must name either a service or a HelmRelease outside the catalog",
                    cause="`name` is a service of the catalog, `helmRelease` is `namespace/name` of a release",
                    hint="add one of the two" if item.name is None else "remove one of the two",
                )

    def _on_outside(self, where: Node | None, outside: str, expression: str | None) -> None:
        if not self.header.is_release:
            self.report.error(
                "R201",
                node_at(where, "helmRelease"),
                f"`{self.service.name}` cannot depend on the HelmRelease `{outside}`",
                cause=f"only HelmReleases wait for HelmReleases, and `{self.service.name}` is none",
                hint="remove it",
            )
            return
        namespace, _, release = outside.partition("/")
        self.releases.append({"name": release, "namespace": namespace, "readyExpr": expression})

    def _on_service(self, where: Node | None, name: str, expression: str | None) -> None:
        target = self.context.headers.get(name)
        if target is None:
            if self.context.is_complete:
                self._unknown(node_at(where, "name"), name)
        elif not target.is_checked:
            return
        elif not target.enabled:
            self.report.error(
                "R201",
                node_at(where, "name"),
                f"service `{self.service.name}` needs `{name}`, which is disabled",
                cause="`dependsOn` would wait for a release that is never there, for ever",
                hint=f"enable `{name}`, or remove the dependency",
                related=((target.place, "defined here"),),
            )
        elif name == self.service.name:
            self.report.error("R202", node_at(where, "name"), f"`{name}` depends on itself", hint="remove it")
        elif self.header.is_release and target.is_release:
            self.releases.append({"name": target.object_name, "namespace": target.namespace, "readyExpr": expression})
        else:
            self._by_kustomization(where, target, expression)

    def _by_kustomization(self, where: Node | None, target: Header, expression: str | None) -> None:
        if self.context.platform.flux.kustomizations != "service":
            self.report.error(
                "R201",
                node_at(where, "name"),
                f"`{self.service.name}` cannot depend on `{target.name}`",
                cause="Flux knows dependencies between HelmReleases only, and one side here is none",
                hint="remove it, or set `flux.kustomizations: service` in the platform file",
            )
        elif expression is not None:
            without = target.name if self.header.is_release else self.service.name
            self.report.error(
                "R201",
                node_at(where, "readyExpr"),
                f"`readyExpr` needs HelmReleases on both sides, and `{without}` is none",
                cause="between other services the Flux Kustomizations wait for each other, by their own readiness",
                hint="remove `readyExpr`",
            )
        else:
            self.services.append(target.name)

    def _unknown(self, where: Node | None, name: str) -> None:
        import difflib

        close = difflib.get_close_matches(name, self.context.headers, 1)
        self.report.error(
            "R201",
            where,
            f"service `{self.service.name}` needs `{name}`, which is not in the catalog",
            cause="Flux would wait for it for ever",
            hint=f"use `{close[0]}`"
            if close
            else "add it, or write `{helmRelease: namespace/name}` for one outside the catalog",
        )
