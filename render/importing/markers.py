"""The setter markers at a service's images in, the images with the policies that move them out."""

from __future__ import annotations

from render.flux.image import ImageError, Reference
from render.flux.overrides import split
from render.importing.convert import replaced, without
from render.importing.draft import PLAIN, Draft
from render.importing.images import Image, Site, find_images, scalars
from render.importing.policies import Automation, Name
from render.importing.reading import File, Found, lines_of
from render.importing.tables import table_of
from render.importing.workloads import image_of
from render.plan.sites import WHOLE
from render.yaml.source import Mapping, Scalar, Sequence


def images_of(draft: Draft, automation: Automation) -> list[Image]:
    """Return the images of a draft.

    Those of its values, those that entries of its post-renderers set, and those of its objects that a marker moves.
    """
    made: list[Image] = []
    values = draft.spec.get("values")
    if type(values) is Mapping:
        made += find_images(values, draft.main.file.markers)
        for image in made:
            image.policy = _policy(image, draft.main.file)
        made += _marked(draft, values, made, automation)
    if draft.is_release:
        _take_entries(draft, made, automation)
    if draft.workload is not None:
        node = image_of(draft.main)
        reference = _parsed(node)
        if node is None or reference is None:
            draft.workload = None
            draft.extras[:0] = [draft.main, *draft.in_workload]
            draft.in_workload = []
        else:
            marker = draft.main.file.markers.get(node.line)
            made.append(Image(reference, "container", [], policy=_name(marker)))
    for found in draft.extras:
        made += _in_object(found, draft.extras)
    return made


def _marked(draft: Draft, values: Mapping, images: list[Image], automation: Automation) -> list[Image]:
    """Return the images at markers that stand where no image was found.

    Of a tag alone the policy's repository says of which image it is.
    """
    file = draft.main.file
    if not file.markers:
        return []
    taken = {node.line for image in images for site in image.sites for node in site.nodes.values()}
    made: list[Image] = []
    for path, node in scalars(values, ()):
        marker = file.markers.get(node.line, "")
        policy = _name(marker)
        if policy not in automation.policies or policy is None or node.line in taken or not node.is_string:
            continue
        repository = automation.repository_of(policy)
        name = repository.text("spec", "image") if repository is not None else None
        reference = _parsed(node)
        if marker.endswith(":tag") and name is not None:
            named = [
                one
                for one in scalars(values, ())
                if one[1].is_string and one[1].line not in taken and split(_effective(draft, one[1].text))[0] == name
            ]
            if len(named) == 1 and not _is_claimed(values, file, node, name, automation):
                nodes, parts = {"repository": named[0][1], "tag": node}, {"repository": named[0][0], "tag": path}
                reference = Reference(named[0][1].text, node.text)
                made.append(Image(reference, "map", [Site(path, nodes, parts)], policy=policy))
            else:
                _enter(made, Image(Reference(name, node.text), "tag", [Site(path, {"tag": node})], policy=policy))
        elif marker == ":".join(policy) and reference is not None:
            _enter(made, Image(reference, "string", [Site(path, {WHOLE: node})], policy=policy))
    return made


def _is_claimed(values: Mapping, file: File, tag: Scalar, name: str, automation: Automation) -> bool:
    """Whether another tag has a marker of the same repository too, so that its name may be that of either."""
    for _, node in scalars(values, ()):
        policy = _name(file.markers.get(node.line))
        if node is tag or policy not in automation.policies or policy is None or not node.is_string:
            continue
        repository = automation.repository_of(policy)
        if repository is not None and repository.text("spec", "image") == name:
            return True
    return False


def _enter(images: list[Image], image: Image) -> None:
    """Add an image, or its place to one that is there."""
    for one in images:
        if (one.shape, one.reference, one.policy) == (image.shape, image.reference, image.policy):
            one.sites += image.sites
            return
    images.append(image)


def _parsed(node: Scalar | None) -> Reference | None:
    try:
        return None if node is None else Reference.parse(node.text)
    except ImageError:
        return None


def _name(marker: str | None) -> Name | None:
    if marker is None:
        return None
    namespace, _, rest = marker.partition(":")
    return (namespace, rest.partition(":")[0]) if rest and "{" not in marker else None


def _policy(image: Image, file: File) -> Name | None:
    """Return the policy whose markers stand where rendering would put them."""
    names: set[Name | None] = set()
    for site in image.sites:
        wanted = {WHOLE: ""} if WHOLE in site.nodes else {"tag": ":tag", "digest": ":digest"}
        found = {part: file.markers.get(node.line, "") for part, node in site.nodes.items()}
        name = next((_name(found[part]) for part in wanted if found.get(part)), None)
        if name is not None and any(
            found.get(part) not in (None, "", ":".join(name) + wanted[part]) for part in wanted
        ):
            return None
        names.add(name)
    return names.pop() if len(names) == 1 else None


def _in_object(found: Found, extras: list[Found]) -> list[Image]:
    """Return the images of an object that markers move."""
    if not found.file.markers or not any(line in found.file.markers for line in lines_of(found.root)):
        return []
    if sum(one.kind == found.kind and one.name == found.name for one in extras) > 1:
        return []
    made = []
    for image in find_images(found.root, found.file.markers):
        image.policy = _policy(image, found.file)
        image.in_object = (found.kind, found.name)
        if image.policy is not None:
            made.append(image)
    return made


def _take_entries(draft: Draft, images: list[Image], automation: Automation) -> None:
    """Turn the last post-renderer into images, where policies move entries of it; the others are fixed images."""
    renderers = draft.spec.get("postRenderers")
    last = renderers.items[-1] if type(renderers) is Sequence and renderers.items else None
    kustomize = last.get("kustomize") if type(last) is Mapping else None
    if type(renderers) is not Sequence or type(kustomize) is not Mapping:
        return
    listed = kustomize.get("images")
    if type(listed) is not Sequence or len(kustomize.entries) != 1 or not listed.items:
        return
    taken: list[tuple[Image, Reference]] = []
    for item in listed.items:
        found = _entry(item, draft.main.file, images) if type(item) is Mapping else None
        if found is None or found[0].policy not in (None, *automation.policies):
            return
        taken.append(found)
    if all(image.policy is None for image, _ in taken):
        return
    for image, reference in taken:
        for other in images:
            # One entry is enough for several images of one name, each with a policy of its own.
            is_named = (other.reference.name, other.reference.tag) == (reference.name, reference.tag)
            if is_named and image.policy is not None and other.policy in automation.policies:
                other.reference = reference
        image.reference = reference
        if image not in images:
            images.append(image)
    kept = renderers.items[:-1]
    draft.spec = replaced(draft.spec, "postRenderers", Sequence(kept, renderers.line, renderers.column))
    if not kept:
        draft.spec = without(draft.spec, "postRenderers")


def _entry(item: Mapping, file: File, images: list[Image]) -> tuple[Image, Reference] | None:
    tag = item.get("newTag")
    name = item.text("name")
    if type(tag) is not Scalar or name is None or {key.text for key, _ in item.entries} - {"name", "newTag", "digest"}:
        return None
    marker = file.markers.get(tag.line)
    policy = _name(marker)
    if marker is not None and policy is None:
        return None
    reference = Reference(name, tag.text, item.text("digest") or None)
    for image in images:
        same = (image.reference.name, image.reference.tag) == (name, tag.text)
        if policy is not None and image.policy == policy and same:
            return image, reference
    return Image(reference, "postRenderer", [], policy=policy), reference


def fold(draft: Draft, automation: Automation) -> list[str]:
    """Give each image that a policy moves its update; return why others get none."""
    reasons = []
    for image in draft.images:
        image.update = None
        if image.policy is None or draft.level >= PLAIN:
            if image.policy is not None and image.policy in automation.policies:
                reasons.append(f"the policy `{'/'.join(image.policy)}` stays outside the catalog: {draft.reason}")
            continue
        effective = split(_effective(draft, str(image.reference)))[0] if draft.is_release else image.reference.name
        image.update, why = automation.update_of(image, image.policy, effective)
        if image.update is None:
            reasons.append(f"`{image.reference.name}` has no update: {why} (`{'/'.join(image.policy)}`)")
    return reasons


def _effective(draft: Draft, text: str) -> str:
    """Return what the release's post-renderers, and the platform's table, make of an image."""
    renderers = draft.spec.get("postRenderers")
    for item in renderers.items if type(renderers) is Sequence else ():
        kustomize = item.get("kustomize") if type(item) is Mapping else None
        listed = kustomize.get("images") if type(kustomize) is Mapping else None
        if type(listed) is Sequence and listed.items:
            text = table_of(listed).apply(text).text
    return table_of(draft.table).apply(text).text if draft.table is not None else text
