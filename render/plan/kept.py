"""The bot's committed value and the catalog's in, the one to write out; a running version is never lowered in silence.

A committed value stays when its policy admits it and orders it at or after the catalog's, when there is no order (the
same tag with another digest), or when an override renames the image (the catalog's newer tag may not be mirrored yet).
Where the catalog's value is taken and is not provably at or after the committed one, that is refused.
"""

from __future__ import annotations

from collections.abc import Iterator

from render.committed import Marks
from render.flux.derive import Derived, DeriveError, derive
from render.flux.image import Reference, canonical_name
from render.flux.overrides import split
from render.flux.policy import select
from render.flux.regex import Pattern
from render.flux.semver import RangeError
from render.plan.context import Context, Report, header_of
from render.plan.images import ImagePlan, Images
from render.plan.policy import policy_name
from render.structs import struct
from render.yaml.source import Mapping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_ANY_VERSION = {"semver": {"range": ">=0.0.0-0"}}
_SHORT_DIGEST = len("sha256:") + 12


@struct(frozen=True)
class Refusal:
    """Why the catalog's value may not be taken, and what to do besides `--reset-tags`."""

    cause: str
    advice: str = ""


@struct(frozen=True)
class Verdict:
    """What becomes of a committed value that is not simply replaced by the catalog's."""

    image: ImagePlan
    committed: Reference
    """The committed version under the name that the catalog has."""
    refusal: Refusal | None = None
    """Why neither of the two can be taken; None: the committed one stays."""
    wanted: Reference | None = None
    """What the catalog would have to say; None where the value must not be written there.

    That is a version older than the catalog's, one of another image, and one that an override decides.
    """


def keep_all(context: Context, service: str, images: Images, report: Report) -> list[tuple[str, str, str]]:
    """Take over what the bot wrote, where it stays: policies with the catalog's reference and the one that is written.

    An image whose key has changed is known by its repository; one that is declared no more is refused.
    """
    kept: list[tuple[str, str, str]] = []
    if report.failed:
        return kept
    verdicts, lost = judge_all(context, service, images)
    for verdict in verdicts:
        image = verdict.image
        if verdict.refusal is not None:
            refuse(service, verdict, report)
        elif image.policy is not None:
            declared = image.reference
            images.take(image, verdict.committed)
            kept.append((image.policy.name, str(declared), str(verdict.committed)))
    for found in lost:
        refuse_lost(service, found, images, report)
    return kept


def judge_all(context: Context, service: str, images: Images) -> tuple[list[Verdict], list[Marks]]:
    """Return what becomes of the committed values of a service, and those of which no image is declared."""
    committed = context.committed
    if committed is None or service in context.reset:
        return [], []
    folder, marks = service, committed.marks(service)
    if not marks and not committed.has(service):
        folder = committed.holder(_objects(context, images))
        marks = committed.marks(folder) if folder else {}
    if not marks:
        return [], []
    pairs = _pairs(context, folder, images.plans, marks)
    _share(images.plans, pairs)
    verdicts = [judge(context, folder, image, found) for image, found in pairs]
    for name, found in marks.items():
        found.name = found.name or name
    return [one for one in verdicts if one is not None], [found for found in marks.values() if found.tag is not None]


def _objects(context: Context, images: Images) -> Iterator[tuple[str, str, str]]:
    """Yield the objects of a service that may hold versions, by kind, namespace and name."""
    header = header_of(images.definition, context.platform)
    for kind in ("HelmRelease",) if header.is_release else ("Deployment", "StatefulSet"):
        yield kind, header.namespace, header.object_name
    for node in images.objects:
        if type(node) is Mapping and type(metadata := node.get("metadata")) is Mapping:
            yield node.text("kind") or "", metadata.text("namespace") or "", metadata.text("name") or ""


def _pairs(
    context: Context, folder: str, images: list[ImagePlan], marks: dict[str, Marks]
) -> list[tuple[ImagePlan, Marks]]:
    """Pair images with committed values, by the policies' names and then by repository; takes them out of `marks`.

    `folder` is the service's name in the tree: another one where it has been renamed.
    """
    pairs: list[tuple[ImagePlan, Marks]] = []
    others: list[ImagePlan] = []
    for image in images:
        found = marks.pop(policy_name(folder, image), None)
        if found is None:
            others.append(image)
        else:
            pairs.append((image, found))
    for image in others:
        names = [name for name, found in marks.items() if found.name and _is_same_image(context, folder, image, found)]
        if names:
            pairs.append((image, marks.pop(names[0])))
    return pairs


def _share(images: list[ImagePlan], pairs: list[tuple[ImagePlan, Marks]]) -> None:
    """Give images that share a post-renderer entry what is committed there, though its markers name the first's policy.

    Two images of one repository share an entry where all that is said of them is equal.
    """
    committed = {id(image): marks for image, marks in pairs}
    owners: dict[str, ImagePlan] = {}
    for image in images:
        if not image.needs_entry:
            continue
        owner = owners.setdefault(image.spelled.name, image)
        theirs, own = committed.get(id(owner)), committed.get(id(image))
        if owner is image or theirs is None or not image.is_like(owner):
            continue
        if own is None:
            pairs.append((image, Marks(theirs.tag, theirs.digest, theirs.name)))
        elif own.tag == theirs.tag:
            own.digest = own.digest or theirs.digest


def judge(context: Context, folder: str, image: ImagePlan, marks: Marks) -> Verdict | None:
    """Return what becomes of a committed value; None where the catalog's takes its place."""
    if marks.tag is None or image.pinned_by == "pin" or not image.is_settled:
        return None
    committed = Reference(image.reference.name, marks.tag, marks.digest)
    ours = _decided(image)
    is_same = _is_same_image(context, folder, image, marks)
    if is_same and image.policy is not None and context.automation and _stays(image, committed):
        kept = Reference(committed.name, committed.tag, committed.digest if image.follows else None)
        if kept == image.reference:
            return None
        order = _order(image.policy.derived, marks.tag, image.reference.tag)
        return Verdict(image, kept, wanted=None if order is not None and order < 0 else kept)
    if (is_same or ours.tag == committed.tag) and _is_at_or_after(image, committed):
        return None
    if not is_same:
        return Verdict(image, committed, Refusal(f"it is a version of `{marks.name}`"))
    refusal = _why(context, image, committed)
    digest = committed.digest if image.policy is None or image.follows else None
    wanted = None if image.pinned_by else Reference(committed.name, committed.tag, digest)
    return Verdict(image, committed, refusal, wanted)


def _decided(image: ImagePlan) -> Reference:
    """Return the version that would run: the declared one, unless an override sets another."""
    if not image.pinned_by:
        return image.reference
    name, tag, digest = split(image.effective)
    return Reference(name, tag or None, digest or None)


def _is_same_image(context: Context, folder: str, image: ImagePlan, marks: Marks) -> bool:
    """Whether the committed value is a version of this image: by its own name, or by one that a table gave it."""
    if marks.name is None:
        return True
    names = {image.reference.name, image.spelled.name, split(image.effective)[0]}
    if canonical_name(marks.name) in {canonical_name(name) for name in names}:
        return True
    # The table may have changed since; the committed release carries the one that named the image.
    before = context.committed.table(folder) if context.committed is not None else None
    return before is not None and split(before.apply(str(image.spelled)).text)[0] == marks.name


def _stays(image: ImagePlan, committed: Reference) -> bool:
    """Whether the committed version of an automated image stays."""
    assert image.policy is not None
    assert committed.tag is not None
    derived, declared = image.policy.derived, image.reference
    if committed.tag == declared.tag:
        return committed.digest is not None and image.follows
    if not _admits(derived, committed.tag):
        return False
    if split(image.effective)[0] != image.spelled.name:
        return True
    order = _order(derived, committed.tag, declared.tag)
    return order is not None and order >= 0


def _is_at_or_after(image: ImagePlan, committed: Reference) -> bool:
    """Whether the version that would run is provably at or after the committed one."""
    ours = _decided(image)
    if ours.tag is None or committed.tag is None:
        return False
    if ours.tag == committed.tag:
        # A tag without its digest holds what it held, or what was pushed since; two digests have no order.
        return ours.digest is None or committed.digest is None or ours.digest == committed.digest
    derived = image.policy.derived if image.policy is not None else _derived(ours.tag)
    order = _order(derived, ours.tag, committed.tag) if derived is not None else None
    return order is not None and order >= 0


def _derived(tag: str) -> Derived | None:
    """Return a policy that can order two tags of the form of `tag`, for an image without automation."""
    for channel in ("stable", "prerelease", "calver", "build"):
        try:
            return derive(channel, tag, None if channel in ("build", "calver") else ">=0.0.0-0")
        except (DeriveError, RangeError):
            continue
    return None


def _admits(derived: Derived, tag: str) -> bool:
    return select([tag], derived.policy, derived.filter_tags).tag is not None


def _order(derived: Derived, one: str, other: str | None) -> int | None:
    """Return how the policy orders two tags, whatever its range says: positive for `one` after `other`.

    None where there is no order: a tag that the filter drops, or that the policy cannot read.
    """
    if other is None:
        return None
    policy: dict[str, Any] = _ANY_VERSION if "semver" in derived.policy else derived.policy
    values = [select([tag], policy, derived.filter_tags).candidates for tag in (one, other)]
    if not all(values):
        return None
    if values[0][0].value == values[1][0].value:
        return 0
    selection = select([one, other], policy, derived.filter_tags)
    if selection.tag is None:
        return 0 if selection.undetermined else None
    return 1 if selection.tag == one else -1


def _why(context: Context, image: ImagePlan, committed: Reference) -> Refusal:
    """Say why the committed value cannot stay and the catalog's cannot be taken."""
    assert committed.tag is not None
    version = f"{committed.tag}@{committed.digest}" if committed.digest else committed.tag
    write = f"write `{version}` here with `render sync`"
    if image.pinned_by == "postRenderers":
        return Refusal("the service's own post-renderer decides the version now", "set it there")
    if image.pinned_by:
        return Refusal(f"`{image.pinned_by}` decides the version now", f"set `newTag: {committed.tag}` there")
    if image.policy is None:
        return Refusal("nothing keeps the image up to date any more", write)
    if not context.automation:
        return Refusal("image automation is left out", write)
    derived = image.policy.derived
    if derived.channel == "digest":
        return Refusal(f"channel `digest` stays with the tag `{image.reference.tag}`", write)
    pattern = (derived.filter_tags or {}).get("pattern") or ""
    if not Pattern(pattern).matches(committed.tag):
        advice = f"let the pattern match it and {write}" if derived.channel == "custom" else write
        return Refusal(f"it does not match the pattern `{pattern}` of the policy", advice)
    text = derived.policy_range
    if text is not None and not _admits(derived, committed.tag):
        return Refusal(f"the range `{text}` leaves it out", f"widen the range and {write}")
    return Refusal("the policy has no order for the two", write)


def refuse(service: str, verdict: Verdict, report: Report) -> None:
    """Report a committed value that can neither stay nor give way."""
    image, committed, why = verdict.image, verdict.committed, verdict.refusal
    assert why is not None
    ours = _decided(image)
    there, here = _shown(committed), _shown(ours) or "no version"
    if committed.tag == ours.tag and there == here:
        there, here = f"{committed.tag}@{committed.digest}", f"{ours.tag}@{ours.digest}"
    by = f" by `{image.pinned_by}`" if image.pinned_by else " here"
    reset = ("accept that" if image.pinned_by else "take the catalog's") + f" with `--reset-tags {service}`"
    report.error(
        "R510",
        image.node,
        f"`{image.label}` is `{there}` in the tree, and `{here}`{by}",
        cause=f"the image bot wrote the committed one: {why.cause}",
        hint=f"{why.advice}, or {reset}" if why.advice else reset,
    )


def refuse_lost(service: str, found: Marks, images: Images, report: Report) -> None:
    """Report a committed value of which no image is declared; `found` has its repository, or its policy, as name."""
    root = images.definition.root
    report.error(
        "R510",
        root.key("images") or root.key("source") or root.get("name"),
        f"`{found.name}` is `{found.text}` in the tree, and no image of it is declared",
        cause="the image bot wrote the committed one, and the chart's own version would take its place",
        hint=f"declare the image again, or accept that with `--reset-tags {service}`",
    )


def _shown(reference: Reference) -> str:
    digest = reference.digest
    return (reference.tag or "") + (f"@{digest[:_SHORT_DIGEST]}…" if digest else "")
