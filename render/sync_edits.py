"""An image and the version that the catalog should say of it in, the scalars that change and what they become out."""

from __future__ import annotations

from render.catalog import Definition
from render.diagnostics import Diagnostic, Location
from render.flux.image import Reference
from render.plan.images import ImagePlan
from render.plan.policy import Policy
from render.plan.sites import WHOLE, Site
from render.structs import field, struct
from render.yaml.source import Scalar
from render.yaml.splice import Place

_SHORT_DIGEST = len("sha256:") + 12


@struct()
class Change:
    """One image whose version in the catalog is another one after `sync`."""

    service: str
    image: str
    """`main`, or its name under `images`."""
    label: str
    """`source.image`, `images.exporter`."""
    old: Reference
    new: Reference
    node: Scalar
    """One of the scalars that change: where faults are shown."""
    values: dict[Place, str]
    """What each scalar becomes."""
    places: list[Location]
    """The scalars, in the order of the file."""
    policy: Policy | None
    """What kept the image up to date before."""
    changes_policy: bool = False
    """Whether a build derives another policy from the new version."""


@struct()
class Edit:
    """One service of a file that changes."""

    index: int
    """Of its document in the file."""
    definition: Definition
    changes: list[Change] = field(default_factory=list)
    known: set[tuple[str, str]] = field(default_factory=set)
    """Faults that were there before, as codes with messages."""


def add_change(edit: Edit, image: ImagePlan, new: Reference) -> Diagnostic | None:
    """Add the scalars of one image that change; returns why there are none."""
    source = edit.definition.source
    spots: list[tuple[Scalar, str]] = []
    if not image.reads_values:
        assert type(image.node) is Scalar
        spots = [(image.node, str(new))]
    for site in image.sites if image.reads_values else ():
        found = _spots(site, image.reference, new)
        if found is None:
            return source.fault(
                "R512",
                image.node,
                f"`{image.label}` has no tag in `values` that `{shown(new)}` could take the place of",
                cause="`render sync` changes values, and adds no keys",
                hint=f"add `tag: {new.tag}` there",
            )
        spots += found
    spots = [(node, text) for node, text in spots if node.text != text or node.is_null]
    if not spots:
        return None
    places = {(node.line, node.column): source.place(node) for node, _ in spots}
    change = Change(
        edit.definition.service.name,
        image.key or "main",
        image.label,
        image.reference,
        new,
        spots[0][0],
        {(node.line, node.column): text for node, text in spots},
        [places[one] for one in sorted(places)],
        image.policy,
    )
    edit.changes.append(change)
    return None


def _spots(site: Site, old: Reference, new: Reference) -> list[tuple[Scalar, str]] | None:
    """Return the scalars at a site of the values with what they are to hold; None where there is none for the tag."""
    nodes = site.nodes
    if WHOLE in nodes:
        return [(nodes[WHOLE], str(new))]
    tag, digest = nodes.get("tag"), nodes.get("digest")
    holder = tag if tag is not None and (_is_filled(tag) or old.tag is None) else None
    if holder is None:
        # A repository may carry the tag: `repository: nginx:1.27`.
        holder = nodes.get("repository") if old.tag is not None else None
    if holder is None or new.tag is None:
        return None
    name = "" if holder is tag else holder.text.partition("@")[0].rpartition(":")[0] + ":"
    is_inside = digest is None or "@" in holder.text
    made = [(holder, name + (new.tag_text or "" if is_inside else new.tag))]
    if digest is not None and not is_inside and (new.digest or _is_filled(digest)):
        made.append((digest, new.digest or ""))
    return made


def _is_filled(node: Scalar) -> bool:
    return bool(node.text) and not node.is_null


def version(reference: Reference) -> str:
    """Return tag and digest."""
    return reference.tag_text or reference.digest or ""


def shown(reference: Reference) -> str:
    """Return tag and digest, the digest shortened."""
    digest = reference.digest
    return (reference.tag or "") + (f"@{digest[:_SHORT_DIGEST]}…" if digest else "")
