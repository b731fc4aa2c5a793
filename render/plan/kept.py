"""The bot's committed value and the catalog's in, the one to write out; a running version is never lowered in silence.

A committed value stays when its policy admits it and orders it at or after the catalog's, when there is no order (the
same tag with another digest), or when an override renames the image (the catalog's newer tag may not be mirrored yet).
Where the catalog's value is taken and is not provably at or after the committed one, that is refused.
"""

from __future__ import annotations

from typing import Any

from render.committed import Marks
from render.flux.derive import Derived, DeriveError, derive
from render.flux.image import ImageError, Reference
from render.flux.policy import select
from render.flux.semver import RangeError
from render.plan.context import Context, Report
from render.plan.images import ImagePlan

_ANY_VERSION = {"semver": {"range": ">=0.0.0-0"}}


def keep(context: Context, service: str, image: ImagePlan, marks: Marks, report: Report) -> Reference | None:
    """Return the reference with the committed values, where they stay; None where the catalog's are written."""
    if marks.tag is None or image.pinned_by == "pin" or service in context.reset:
        return None
    reference = image.reference
    policy = image.policy
    moves = policy is not None and context.automation
    followed = policy is not None and policy.digest != "never"
    if marks.tag == reference.tag:
        same_digest = marks.digest == reference.digest or not followed
        if same_digest or marks.digest is None:
            return None
        if moves:
            return Reference(reference.name, reference.tag, marks.digest)
        _refuse(service, image, marks, report, "the same tag with another digest has no order")
        return None
    known = {reference.name, _name(image.effective)}
    if marks.name is not None and marks.name not in known:
        _refuse(service, image, marks, report, f"it is a version of `{marks.name}`, another repository")
        return None
    if policy is not None and moves:
        admitted = select([marks.tag], policy.derived.policy, policy.derived.filter_tags).tag is not None
        renamed = _name(image.effective) != reference.name
        if admitted and (renamed or _newer(policy.derived, marks.tag, reference.tag) == marks.tag):
            return Reference(reference.name, marks.tag, marks.digest if followed else None)
    decided = _tag(image.effective) if image.pinned_by else reference.tag
    derived = policy.derived if policy is not None else _derived(decided)
    if derived is None or decided is None or _newer(derived, marks.tag, decided) != decided:
        _refuse(service, image, marks, report, _why(image, moves=moves))
    return None


def _name(text: str) -> str:
    try:
        return Reference.parse(text).name
    except ImageError:
        return text


def _tag(text: str) -> str | None:
    try:
        return Reference.parse(text).tag
    except ImageError:
        return None


def _derived(tag: str | None) -> Derived | None:
    """Return a policy that can order two tags of the form of `tag`, for an image without automation."""
    if tag is None:
        return None
    for channel in ("stable", "prerelease", "build"):
        try:
            return derive(channel, tag, None if channel == "build" else ">=0.0.0-0")
        except (DeriveError, RangeError):
            continue
    return None


def _newer(derived: Derived, one: str, other: str | None) -> str | None:
    """Return which of two tags the policy orders last, whatever its range says; None where that is not certain."""
    if other is None:
        return None
    if one == other:
        return one
    policy: dict[str, Any] = derived.policy
    if "semver" in policy:
        policy = _ANY_VERSION
    selection = select([one, other], policy, derived.filter_tags)
    # Both must be candidates: a tag that the filter drops has no order at all.
    return selection.tag if len(selection.candidates) == 2 else None


def _why(image: ImagePlan, *, moves: bool) -> str:
    if image.pinned_by:
        return f"`{image.pinned_by}` decides the version now"
    if image.policy is None:
        return "nothing keeps the image up to date any more"
    if not moves:
        return "image automation is left out"
    return "the policy does not admit it, or orders it after the catalog's"


def _refuse(service: str, image: ImagePlan, marks: Marks, report: Report, why: str) -> None:
    declared = image.reference.tag or image.reference.digest or "no tag"
    if image.reference.tag and image.reference.digest and marks.digest:
        declared = f"{image.reference.tag}@{image.reference.digest}"
    report.error(
        "R510",
        image.node,
        f"`{image.label}` is `{marks.text}` in the tree, and `{declared}` here",
        cause=f"the image bot wrote the committed one: {why}",
        hint=f"write `{marks.text}` here, or take the catalog's with `--reset-tags {service}`",
    )
