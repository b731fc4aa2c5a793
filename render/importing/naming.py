"""The images of a service in, which of them is the main one and what the others are called out."""

from __future__ import annotations

import re

from render.importing.images import Image
from render.plan import paths
from render.plan.paths import Path

_NO_NAME = re.compile(r"[^a-z0-9]+")
_GENERIC = ("image", "app", "main", "containers", "container", "controllers", "initContainers", "spec", "template")


def name_images(images: list[Image], service: str, default_at: str, policies: dict[tuple[str, str], str]) -> None:
    """Choose the main image and name the others; a policy's name decides where it can."""
    main = _main(images, service, default_at)
    taken: set[str] = set()
    for image in images:
        if image is main:
            continue
        told = image.policy[1].removeprefix(f"{service}-") if image.policy in policies and image.policy else ""
        is_theirs = image.policy is not None and image.policy[1] == f"{service}-{told}"
        path = image.sites[0].path if image.sites else (image.reference.name.rpartition("/")[2],)
        image.key = _unique(told if is_theirs else _key(path, service), taken)


def _main(images: list[Image], service: str, default_at: str) -> Image | None:
    inside = [one for one in images if one.in_object is None and one.sites]
    for image in images:
        if image.shape == "container":
            return image
    for image in images:
        if image.policy is not None and image.policy[1] == service:
            return image
    candidates = [one for one in inside if one.policy is None or not one.policy[1].startswith(f"{service}-")]
    for wanted in (default_at, "image", f"controllers.{service}.containers.app.image"):
        for image in candidates:
            if any(paths.show(site.path) == wanted for site in image.sites):
                return image
    rest = [one for one in candidates if not one.is_side]
    return rest[0] if len(rest) == 1 else None


def _key(path: Path, service: str) -> str:
    """Return a name for an image, from the most telling step to it."""
    steps = [step if isinstance(step, str) else str(step) if isinstance(step, int) else step[0][1] for step in path]
    last = steps[-1] if steps else "image"
    if last.endswith("Image") and len(last) > 5:
        return _label(last.removesuffix("Image"))
    for step in reversed(steps):
        if step not in _GENERIC and step != service and not step.isdigit():
            return _label(step)
    return _label(steps[-2] if len(steps) > 1 else "image")


def _label(text: str) -> str:
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", text).lower()
    return _NO_NAME.sub("-", spaced).strip("-")[:40].strip("-") or "image"


def _unique(name: str, taken: set[str]) -> str:
    made, number = name, 2
    while made in taken:
        made, number = f"{name}-{number}", number + 1
    taken.add(made)
    return made
