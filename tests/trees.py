"""The shipped catalog in, its three renderings out: those that `goldens/` holds."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from render.build import Build, build

ROOT = Path(__file__).resolve().parent.parent
GOLDENS = ROOT / "goldens"

RENDERINGS = {
    "home": ("platform.yaml", True),
    "home-no-image-automation": ("platform.yaml", False),
    "airgap": ("platform-airgap.yaml", True),
}
"""Folder below `goldens/`: the platform file, and whether images are automated."""


@cache
def tree(rendering: str) -> Build:
    """Return what the shipped catalog renders to; shared, so not to be changed."""
    platform, automation = RENDERINGS[rendering]
    return build(ROOT / "catalog", ROOT / platform, automation=automation)


def golden_files() -> list[str]:
    """Return the path below `goldens/` of every file there, whatever it is."""
    return sorted(path.relative_to(GOLDENS).as_posix() for path in GOLDENS.rglob("*") if not path.is_dir())
