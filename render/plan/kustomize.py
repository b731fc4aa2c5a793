"""A service's `kustomize` in, the further fields of its kustomization.yaml and the files that they name out."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from render.catalog import Definition
from render.diagnostics import Location
from render.plan.context import Report
from render.structs import field, struct
from render.yaml.source import Mapping, Node, Scalar, Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

RENDERED = frozenset(
    f"{stem}.yaml" for stem in ("source", "helmrelease", "image-automation", "workload", "extra", "kustomization")
)
"""Names in a service's folder that are taken."""
_BESIDE = "files under `kustomize` lie beside the rendered ones, in the service's folder of the output tree"


@struct()
class KustomizePlan:
    """What people add to the kustomization of one service."""

    fields: dict[str, Any] = field(default_factory=dict)
    """Fields of the kustomization.yaml besides `resources`."""
    resources: list[str] = field(default_factory=list)
    foreign: list[tuple[str, Location]] = field(default_factory=list)
    """Files below `apps/<service>/` that must exist, and where they are named."""


def plan_kustomize(definition: Definition, report: Report) -> KustomizePlan:
    """Return the plan of a service's `kustomize`, an empty one without it; reports what is not in the repository."""
    kustomize = definition.service.kustomize
    if kustomize is None:
        return KustomizePlan()
    made = KustomizePlan(
        {
            "components": kustomize.components,
            "configMapGenerator": kustomize.config_map_generator,
            "secretGenerator": kustomize.secret_generator,
            "generatorOptions": kustomize.generator_options,
            "patches": kustomize.patches,
        },
        kustomize.resources,
    )
    for name, node in _files(definition.root.get("kustomize")):
        told = _unfit(definition.service.name, name)
        if told:
            report.error("R502", node, f"`{name}` {told}", cause=_BESIDE, hint="name a file of your own in that folder")
        elif "://" in name or name.startswith(("github.com/", "git@")):
            report.error(
                "R214",
                node,
                f"`{name}` is not in the repository",
                cause="a build must not depend on the network",
                hint="vendor it, and name the copy",
            )
        else:
            made.foreign.append((name, report.source.place(node)))
    return made


def _unfit(service: str, name: str) -> str:
    """Return what is wrong with a file name under `kustomize`; nothing for a sound one."""
    inside = posixpath.normpath(posixpath.join("apps", service, name))
    if not name or name.startswith("/") or inside.startswith(".."):
        return "is not in the output tree"
    if inside == f"apps/{service}":
        return "is the service's own folder"
    if posixpath.dirname(inside) == f"apps/{service}" and posixpath.basename(inside) in RENDERED:
        return "is a file that `render` writes"
    return ""


def _files(node: Node | None) -> Iterator[tuple[str, Scalar]]:
    """Yield the files that `kustomize` names, relative to the service's folder."""
    for key in ("resources", "components"):
        yield from _names(_field(node, key))
    for key in ("configMapGenerator", "secretGenerator"):
        for generator in _items(_field(node, key)):
            for name, where in _names(_field(generator, "files")):
                yield name.partition("=")[2] or name, where
            yield from _names(_field(generator, "envs"))
            yield from _name(_field(generator, "env"))
    for patch in _items(_field(node, "patches")):
        yield from _name(_field(patch, "path"))


def _field(node: Node | None, key: str) -> Node | None:
    return node.get(key) if type(node) is Mapping else None


def _items(node: Node | None) -> list[Node]:
    return node.items if type(node) is Sequence else []


def _names(node: Node | None) -> Iterator[tuple[str, Scalar]]:
    for item in _items(node):
        yield from _name(item)


def _name(node: Node | None) -> Iterator[tuple[str, Scalar]]:
    if type(node) is Scalar and not node.is_null:
        yield node.text, node
