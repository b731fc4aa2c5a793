"""The objects of a tree, entered one by one, in; what is entered twice out. Compact: a tree has many objects."""

from __future__ import annotations

from render.diagnostics import Location
from render.plan.objects import Identity

Owner = tuple[str, Location]
"""A service and the place that gives the object."""


class Identities:
    """Objects by what makes them one object in a cluster: group, kind, namespace and name."""

    def __init__(self) -> None:
        self._owners: dict[str, tuple[str | Owner, ...]] = {}
        """By namespace and name: kind and owner of each object so named, in turns."""
        self._kinds: dict[tuple[str, str], str] = {}

    def enter(self, identity: Identity, owner: Owner) -> Owner | None:
        """Enter an object; return the owner of the same object when it is there already."""
        kind = self._kinds.setdefault((identity.group, identity.kind), f"{identity.kind}.{identity.group}")
        # Without a namespace an object is one of this namespace to kustomize, as to kubectl.
        key = f"{identity.namespace or 'default'}/{identity.name}"
        known = self._owners.get(key, ())
        for index in range(0, len(known), 2):
            if known[index] == kind:
                return known[index + 1]  # type: ignore[return-value]
        self._owners[key] = (*known, kind, owner)
        return None
