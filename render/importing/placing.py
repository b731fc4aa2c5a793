"""The objects of a repository in, the namespace of each out, as the kustomizations around it leave it.

A kustomization's `namespace` replaces that of everything it lists, the outer one's that of the inner one, and
`targetNamespace` of a Flux Kustomization that of all of them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from render.flux.kinds import is_cluster_scoped
from render.importing.reading import FLUX_KUSTOMIZE, Found, Repository, is_service
from render.yaml.source import Mapping, Node, Scalar, Sequence

_MAX_DEPTH = 50
_LISTS = ("resources", "bases", "components")
_PATCHES = ("patches", "patchesStrategicMerge", "patchesJson6902")

Placed = tuple[str, str]
"""A namespace, and what says it."""


def place(repository: Repository) -> None:
    """Set the namespace of each object, and tell which files are patches."""
    Placing(repository).run()


class Placing:
    """Follows kustomizations from the inside to the outside."""

    def __init__(self, repository: Repository) -> None:
        self.repository = repository
        self.parents: dict[str, list[Found]] = {}
        """The kustomizations that list a file or a folder."""
        self.patches: set[str] = set()
        self.targets: dict[str, list[Found]] = {}
        """The Flux Kustomizations of a folder."""
        self._reached: dict[str, bool] = {}
        self._known: dict[str, frozenset[Placed | None]] = {}

    def run(self) -> None:
        """Read all kustomizations, then place every object."""
        for folder, found in self.repository.kustomizations.items():
            for field in _LISTS:
                for item in _texts(found.get(field)):
                    self.parents.setdefault(_join(folder, item), []).append(found)
            for field in _PATCHES:
                self.patches |= {_join(folder, item) for item in _patch_files(found.get(field))}
        for found in self.repository.of_kind(FLUX_KUSTOMIZE, "Kustomization"):
            applied = self.folder_of(found)
            if applied is not None:
                self.targets.setdefault(applied, []).append(found)
        for found in self.repository.objects:
            found.file.is_patch = found.file.path in self.patches
            found.file.is_listed = found.file.path in self.parents or (
                found.file.folder not in self.repository.kustomizations
            )
            found.file.is_applied = not self.targets or self._is_applied(found.file.path, 0)
            ways = self._of(found.file.path, 0)
            said = sorted(way for way in ways if way is not None)
            if not said or is_cluster_scoped(found.api_version, found.kind) is True:
                continue
            is_one = len({way[0] if way is not None else found.own_namespace for way in ways} - {None}) == 1
            if is_one or is_service(found):
                # Other objects of several namespaces go with the service that they belong to.
                found.namespace, found.placed_by = said[0]
            if not is_one:
                found.several = [f"`{namespace}` from {what}" for namespace, what in said]

    def folder_of(self, found: Found) -> str | None:
        """Return the folder that a Flux Kustomization applies; None when it is not among what was read."""
        path = found.text("spec", "path")
        if path is None:
            return None
        for top in self.repository.tops:
            folder = _join(top, path)
            if os.path.isdir(folder):
                return folder
        return None

    def _of(self, path: str, depth: int) -> frozenset[Placed | None]:
        """Return the namespaces that a file or folder may get; None in it: none is set."""
        known = self._known.get(path)
        if known is not None:
            return known
        self._known[path] = frozenset((None,))
        made: set[Placed | None] = set()
        for flux in self.targets.get(path, ()):
            namespace = flux.text("spec", "targetNamespace")
            made.add((namespace, f"targetNamespace of the Flux Kustomization `{flux.name}`") if namespace else None)
        for parent in self.parents.get(path, ()) if depth < _MAX_DEPTH else ():
            own = parent.text("namespace")
            placed = (own, parent.file.source.path) if own else None
            made |= {outer or placed for outer in self._of(parent.file.folder, depth + 1)}
        made |= set(self._applied(path))
        self._known[path] = frozenset(made or {None})
        return self._known[path]

    def _is_applied(self, path: str, depth: int) -> bool:
        """Whether a Flux Kustomization reaches a file or folder, by itself or through others."""
        known = self._reached.get(path)
        if known is None:
            self._reached[path] = False
            known = path in self.targets or bool(list(self._applied(path)))
            known = known or any(
                depth < _MAX_DEPTH and self._is_applied(parent.file.folder, depth + 1)
                for parent in self.parents.get(path, ())
            )
            self._reached[path] = known
        return known

    def _applied(self, path: str) -> Iterator[Placed | None]:
        """Yield what a Flux Kustomization says that applies a folder above, where no kustomization.yaml chooses."""
        folder = path
        while True:
            parent = os.path.dirname(folder)
            if parent == folder or parent in self.repository.kustomizations:
                return
            folder = parent
            for flux in self.targets.get(folder, ()):
                namespace = flux.text("spec", "targetNamespace")
                yield (namespace, f"targetNamespace of the Flux Kustomization `{flux.name}`") if namespace else None
            if folder in self.targets:
                return


def _join(folder: str, path: str) -> str:
    return os.path.normpath(f"{folder}{os.sep}{path}")


def _texts(node: Node | None) -> list[str]:
    if type(node) is not Sequence:
        return []
    return [item.text for item in node.items if type(item) is Scalar and "://" not in item.text]


def _patch_files(node: Node | None) -> list[str]:
    found = [text for text in _texts(node) if "\n" not in text]
    for item in node.items if type(node) is Sequence else ():
        path = item.text("path") if type(item) is Mapping else None
        if path is not None:
            found.append(path)
    return found
