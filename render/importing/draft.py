"""What becomes one definition: the objects it is made of, what is decided about them, and what gets lost on the way."""

from __future__ import annotations

from collections.abc import Mapping as Dict
from dataclasses import dataclass, field
from typing import Any

from render.importing.images import Image
from render.importing.reading import Found
from render.importing.sources import Settled, Use
from render.importing.text import Lines
from render.yaml.source import Mapping, Sequence

WHOLE, PLAIN, BARE, GIVEN_UP = range(4)
"""How much is tried: with images and updates, without updates, without images; and not at all."""


@dataclass(slots=True)
class Draft:
    """One service on the way into the catalog."""

    service: str
    main: Found
    """The HelmRelease, the workload, or the first of its objects."""
    namespace: str | None
    """None: nothing says it."""
    home: str
    """The namespace that it is rendered in."""
    file: str
    """Where its definition goes, below the catalog."""
    extras: list[Found] = field(default_factory=list)
    """Objects that ship with it."""
    spec: Mapping = field(default_factory=lambda: Mapping([]))
    """Of the HelmRelease, as v2 has it."""
    use: Use | None = None
    settled: Settled | None = None
    images: list[Image] = field(default_factory=list)
    level: int = WHOLE
    notes: list[str] = field(default_factory=list)
    """What was decided about the objects themselves."""
    told: list[str] = field(default_factory=list)
    """What was decided while the definition was written; made anew with it."""
    lost: list[str] = field(default_factory=list)
    """Paths that rendering does not give back; made anew with the definition."""
    policies: dict[tuple[str, str], str] = field(default_factory=dict)
    """Name of the policy that is rendered for each policy that was folded into an update."""
    known_policies: frozenset[tuple[str, str]] = frozenset()
    """Namespace and name of every policy that was read."""
    dropped: list[tuple[int, str]] = field(default_factory=list)
    """Comments that the definition does not carry, with their lines."""
    workload: dict[str, Any] | None = None
    table: Sequence | None = None
    """Entries of the platform's override table that the release carries, in a tree that `render` made."""
    emit: str | None = None
    """`imageOverrides` of the definition."""
    kustomize: dict[str, Any] = field(default_factory=dict)
    """Fields of the folder's kustomization that need no file."""
    in_workload: list[Found] = field(default_factory=list)
    """Objects that the `workload` renders, besides the main one."""
    reason: str = ""
    """Why the definition was refused last."""
    loose: bool = False
    """Whether dependencies are named as releases outside of the catalog: as services they go in a circle."""
    missing: list[str] = field(default_factory=list)
    """Fields that the release leaves to something else, and rendering adds."""

    @property
    def is_release(self) -> bool:
        """Whether it is a Helm release."""
        return self.main.kind == "HelmRelease"

    @property
    def object_name(self) -> str:
        """Name of the release or workload."""
        return self.main.name

    def lines(self, cache: dict[int, Lines], found: Found | None = None) -> Lines:
        """Return the lines of an object's file."""
        file = (found or self.main).file
        made = cache.get(id(file))
        if made is None:
            made = cache[id(file)] = Lines(file.source)
        return made


Fields = Dict[str, Any]
