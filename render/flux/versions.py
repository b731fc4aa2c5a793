"""Target version text in, what that Flux release does out: served APIs, hooks, substitution."""

from __future__ import annotations

import re
from functools import lru_cache

from render.patterns import lazy
from render.structs import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal, TypeAlias

Hooks: TypeAlias = 'Literal["nohooks", "combined", "separate-available"]'
"""Whether chart hooks pass the post-renderers; see `hooks`."""


MINORS = ("2.7", "2.8", "2.9")
"""The Flux minors that can be a target, oldest first."""

_VERSION = lazy(r"2\.([789])(?:\.(0|[1-9][0-9]{0,3}))?", re.ASCII)
_ANY_PATCH = -1

_V1 = ("v1",)
_V1_V1BETA2 = ("v1", "v1beta2")
_SERVED: dict[str, tuple[str, dict[str, tuple[str, ...]]]] = {
    "HelmRelease": ("helm.toolkit.fluxcd.io", {"2.7": ("v2", "v2beta2"), "2.8": ("v2",), "2.9": ("v2",)}),
    "ImageRepository": ("image.toolkit.fluxcd.io", {"2.7": _V1_V1BETA2, "2.8": _V1_V1BETA2, "2.9": _V1}),
    "ImagePolicy": ("image.toolkit.fluxcd.io", {"2.7": _V1_V1BETA2, "2.8": _V1_V1BETA2, "2.9": _V1}),
    "ImageUpdateAutomation": ("image.toolkit.fluxcd.io", {"2.7": _V1_V1BETA2, "2.8": _V1_V1BETA2, "2.9": _V1}),
    "Bucket": ("source.toolkit.fluxcd.io", {"2.7": _V1_V1BETA2, "2.8": _V1, "2.9": _V1}),
    "GitRepository": ("source.toolkit.fluxcd.io", {"2.7": _V1_V1BETA2, "2.8": _V1, "2.9": _V1}),
    "HelmChart": ("source.toolkit.fluxcd.io", {"2.7": _V1_V1BETA2, "2.8": _V1, "2.9": _V1}),
    "HelmRepository": ("source.toolkit.fluxcd.io", {"2.7": _V1_V1BETA2, "2.8": _V1, "2.9": _V1}),
    "OCIRepository": ("source.toolkit.fluxcd.io", {"2.7": _V1_V1BETA2, "2.8": _V1, "2.9": _V1}),
    "Kustomization": ("kustomize.toolkit.fluxcd.io", {"2.7": _V1_V1BETA2, "2.8": _V1, "2.9": _V1}),
}


class VersionError(ValueError):
    """The text names no Flux version that can be a target."""


@struct(frozen=True, order=True)
class FluxVersion:
    """A Flux 2 release line, or one release of it; ordered by age.

    A bare minor stands for all its patch releases and orders before the first of them.
    """

    minor: int
    patch: int = _ANY_PATCH
    """The patch number; -1 when only the minor was named."""

    @classmethod
    def parse(cls, text: str) -> FluxVersion:
        """Read `2.9` or `2.8.6`; raise VersionError for anything but 2.7 to 2.9 with an optional patch number."""
        match = _VERSION.fullmatch(text)
        if match is None:
            raise VersionError(f"must be a Flux version from {MINORS[0]} to {MINORS[-1]}, such as `2.9` or `2.8.6`")
        patch = match[2]
        return cls(int(match[1]), _ANY_PATCH if patch is None else int(patch))

    @property
    def line(self) -> str:
        """The minor as text, such as `2.8`."""
        return f"2.{self.minor}"

    def since(self, minor: str) -> bool:
        """Say whether what came with `minor` (`2.8`) is there; raise VersionError for a text that is no version."""
        return self.minor >= _minor(minor)

    def __str__(self) -> str:
        return self.line if self.patch == _ANY_PATCH else f"{self.line}.{self.patch}"


@lru_cache(16)
def _minor(text: str) -> int:
    return FluxVersion.parse(text).minor


def hooks(version: FluxVersion) -> Hooks:
    """Say whether chart hooks reach the post-renderers.

    `nohooks`: never. `combined`: always, in one pass with the templates, which fails for a chart that renders an
    object both as a hook and as a template. `separate-available`: as `combined` unless `postRenderStrategy` says
    otherwise. A bare 2.8 answers `nohooks`, the worse of what its patch releases do.
    """
    if version.since("2.9"):
        return "separate-available"
    # helm-controller 1.5.0 took Helm 4's default with it; 1.5.4 (Flux 2.8.6) went back to Helm 3's.
    if version.line == "2.8" and 0 <= version.patch <= 5:
        return "combined"
    return "nohooks"


def strict_substitution(version: FluxVersion) -> bool:
    """Say whether an undefined `${x}` fails a Kustomization with postBuild (2.9) or becomes empty (before)."""
    return version.since("2.9")


def served_versions(kind: str, version: FluxVersion) -> tuple[str, ...]:
    """Return the `apiVersion` texts under which a Flux kind is served, the stored one first.

    Empty for a kind that is not known here.
    """
    group, by_minor = _SERVED.get(kind, ("", {}))
    return tuple(f"{group}/{served}" for served in by_minor.get(version.line, ()))
