"""Planned images in, values and objects with the images written into them out, markers included."""

from __future__ import annotations

from render.flux.image import Reference
from render.flux.overrides import split
from render.plan import paths
from render.plan.images import WHOLE_SHAPES, ImagePlan, Images
from render.plan.sites import WHOLE, Site
from render.yaml.emit import Marked
from render.yaml.source import Mapping, Node, Scalar, Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_Key = tuple[int | None, paths.Path] | int
"""A place: the tree and the path in it, or the identity of a node that is replaced wherever it stands."""


class Writer:
    """Writes the planned images into values and objects, with markers where something moves them."""

    def __init__(self, images: Images) -> None:
        self.images = images
        self.report = images.report
        self.context = images.context
        self.swaps: dict[int, str | Marked] = {}
        self.claims: dict[_Key, tuple[ImagePlan, bool]] = {}
        """The image of each place, and whether it changes what stands there."""
        self.entry_owners: dict[str, ImagePlan] = {}

    def write(self) -> None:
        """Write every image; the results are `images.values`, `.objects`, `.entries` and `.marks_objects`."""
        for plan in self.images.plans:
            if plan.is_settled and plan.is_placed and plan.shape not in WHOLE_SHAPES:
                self._write(plan)
        if not self.swaps:
            return
        if self.images.values is not None:
            self.images.values = paths.replace(self.images.values, self.swaps)
        moves = any(plan.reads_values and plan.automated for plan in self.images.plans)
        for index, before in enumerate(self.images.objects):
            after = paths.replace(before, self.swaps)
            if after is not before:
                self.images.objects[index] = after
                if moves:
                    self.images.marks_objects.add(index)

    def marked(self, plan: ImagePlan, text: str, suffix: str = "") -> Marked:
        """Return a scalar that the bot may write: double-quoted in every mode, marked where automation is on."""
        if plan.policy is None or not self.context.automation:
            return Marked(text)
        return Marked(text, f"{self.context.flux_namespace}:{plan.policy.name}{suffix}")

    def whole(self, plan: ImagePlan, site: Site | None = None) -> Marked:
        """Return the whole reference as one scalar: effective where no post-renderer comes after it."""
        in_object = site is not None and site.in_object is not None
        is_effective = plan.shape in WHOLE_SHAPES or in_object or plan.reach_values or plan.automated
        return self.marked(plan, plan.effective if is_effective else str(plan.reference))

    def _write(self, plan: ImagePlan) -> None:
        self._check_twice(plan)
        if plan.reads_values:
            self._swap(plan)
        else:
            for site in plan.sites:
                self._fill(plan, site, self._values(plan, site))
        if plan.needs_entry:
            self._entry(plan)
        if plan.automated:
            self.images.marks_objects.update(site.in_object for site in plan.sites if site.in_object is not None)

    def _values(self, plan: ImagePlan, site: Site) -> dict[str, Any]:
        """Return the parts of a reference that are written at a site, without those it does not have."""
        if WHOLE in site.places:
            return {WHOLE: self.whole(plan, site)}
        reference = plan.reference
        if plan.reach_values or site.in_object is not None:
            reference = Reference.parse(plan.effective)
        made: dict[str, Any] = {}
        if "registry" in site.places:
            made["registry"], made["repository"] = reference.registry_parts
        else:
            made["repository"] = reference.name
        if "digest" in site.places:
            if reference.tag is not None:
                made["tag"] = self.marked(plan, reference.tag, ":tag")
            if plan.follows:
                made["digest"] = self.marked(plan, reference.digest or "", ":digest")
            elif reference.digest is not None:
                made["digest"] = Marked(reference.digest)
        elif plan.automated:
            assert reference.tag is not None
            made["tag"] = self.marked(plan, reference.tag, ":tag")
        elif reference.tag_text is not None:
            made["tag"] = Marked(reference.tag_text)
        return {part: value for part, value in made.items() if part in site.places}

    # Into what is there already

    def _swap(self, plan: ImagePlan) -> None:
        """Mark and change what stands in `values` already, wherever it is aliased to; the rest stays as it is."""
        for site in plan.sites:
            wanted = self._values(plan, site)
            is_written = plan.automated or plan.reach_values or site.in_object is not None or plan.pinned_by == "pin"
            for part, node in site.nodes.items():
                value = wanted.pop(part, None)
                if not is_written:
                    value = None
                elif value is None:
                    # The reference has no such part any more; a digest that stayed would decide what runs.
                    value = Marked("") if part in ("tag", "digest") and node.text and not node.is_null else None
                elif isinstance(value, str):
                    value = value if value != node.text else None
                elif value.marker is None and value.text == node.text and not plan.automated:
                    value = None
                if not self._claim(plan, site, part, node, writes=value is not None):
                    return
                if value is not None:
                    self.swaps[id(node)] = value
            if is_written:
                self._fill(plan, site, {part: value for part, value in wanted.items() if part in ("tag", "digest")})

    def _claim(self, plan: ImagePlan, site: Site, part: str, node: object, *, writes: bool) -> bool:
        """Enter a part of an image, by its path and by the node there; refuse one that another image changes."""
        path = site.places.get(part, (*site.path, part))
        keys: tuple[_Key, ...] = ((site.in_object, path),)
        if type(node) is Scalar:
            keys = (*keys, id(node))
        for key in keys:
            other, wrote = self.claims.get(key, (plan, False))
            if other is not plan and (wrote or writes):
                self._refuse_two(plan, other, path)
                return False
            self.claims[key] = (other, wrote or writes)
        return True

    def _fill(self, plan: ImagePlan, site: Site, values: dict[str, Any]) -> None:
        """Write the parts of an image at a site; the first fault is told, and ends it."""
        if not plan.reads_values and not self._has_clean_place(plan, site, values):
            return
        for part, value in values.items():
            if not self._put(plan, site, part, value):
                return

    def _has_clean_place(self, plan: ImagePlan, site: Site, values: dict[str, Any]) -> bool:
        """Refuse values beside the image's own that the chart would add to it."""
        around = paths.find(self.images.tree(site), site.path) if site.path and WHOLE not in site.places else None
        if type(around) is not Mapping or "repository" not in site.places:
            return True
        for part, shape in (("registry", "registry"), ("digest", "digest")):
            node = around.get(part)
            if part in values or type(node) is not Scalar or node.is_null or not node.text:
                continue
            self.report.error(
                "R211",
                node,
                f"`{paths.show((*site.path, part))}` of `{_tree_name(site)}` stands beside `{plan.label}`",
                cause=f"the chart would put it together with `{plan.reference}`",
                hint="remove it" if part in site.places else f"remove it, or write `shape: {shape}`",
            )
            return False
        return True

    def _put(self, plan: ImagePlan, site: Site, part: str, value: Any) -> bool:
        path = site.places[part]
        tree = self.images.tree(site)
        existing = paths.find(tree, path)
        if not self._claim(plan, site, part, existing, writes=True):
            return False
        if isinstance(existing, str | Marked):
            self._refuse_two(plan, self._owner_of(existing) or plan, path)
            return False
        if existing is not None and not self._may_replace(plan, site, part, existing, value):
            return False
        try:
            made = paths.put(tree, path, value)
        except paths.PathError as error:
            self._refuse_path(plan, path, error)
            return False
        if site.in_object is None:
            self.images.values = made
        else:
            self.images.objects[site.in_object] = made
        return True

    def _owner_of(self, written: object) -> ImagePlan | None:
        """Return the image that wrote a value which is reached by another path."""
        for key, (owner, _) in self.claims.items():
            if isinstance(key, tuple):
                tree = self.images.values if key[0] is None else self.images.objects[key[0]]
                if paths.find(tree, key[1]) is written:
                    return owner
        return None

    def _refuse_path(self, plan: ImagePlan, path: paths.Path, error: paths.PathError) -> None:
        # What stands in the way may be written by another image, so have no place in the catalog.
        found = error.node
        is_source = isinstance(found, Scalar | Mapping | Sequence) and found.line > 0
        self.report.error(
            "R211",
            found if is_source else plan.node,
            f"`{plan.label}` cannot be written: {error}",
            cause=f"it belongs at `{paths.show(path)}`",
            hint="correct `at`, or the values in its way",
        )

    def _refuse_two(self, plan: ImagePlan, other: ImagePlan, path: paths.Path) -> None:
        if other is plan:
            message = f"two paths of `{plan.label}` lead to `{paths.show(path)}`"
            self.report.error("R211", plan.node, message, hint="remove one of the two")
            return
        self.report.error(
            "R211",
            plan.node,
            f"`{plan.label}` and `{other.label}` are both written at `{paths.show(path)}`",
            hint="give each image its own `at`",
            related=((self.report.source.place(other.node), "the other one"),),
        )

    def _may_replace(self, plan: ImagePlan, site: Site, part: str, existing: Node, value: Any) -> bool:
        """Refuse to replace another value than the declared one: what is written may differ from that by now."""
        path, text = site.places[part], value.text if isinstance(value, Marked) else value
        if plan.reads_values:
            return True
        if type(existing) is Scalar and (
            existing.is_null
            or existing.text in ("", text)
            or existing.text in _texts(plan.declared or plan.reference, part)
        ):
            return True
        kind = "another value" if type(existing) is Scalar else "a value of another type"
        self.report.error(
            "R211",
            existing,
            f"`{paths.show(path)}` of `{_tree_name(site)}` holds {kind} than `{plan.label}`",
            cause=f"`{plan.label}` is written there as `{text}`",
            hint="remove it here, or remove `ref` so that the image is read from here",
        )
        return False

    # Into the release's post-renderers

    def _entry(self, plan: ImagePlan) -> None:
        """Carry the version, or the digest that `values` cannot hold, in a post-renderer entry of the release."""
        name = self._entry_name(plan)
        if name in self.entry_owners:
            return
        self.entry_owners[name] = plan
        tag, digest = plan.reference.tag, plan.reference.digest
        entry: dict[str, Any] = {"name": name}
        if tag is not None:
            entry["newTag"] = self.marked(plan, tag, ":tag")
        if plan.follows:
            entry["digest"] = self.marked(plan, digest or "", ":digest")
        elif digest is not None:
            entry["digest"] = Marked(digest)
        if len(entry) > 1:
            self.images.entries.append(entry)

    def _entry_name(self, plan: ImagePlan) -> str:
        """Return the name that our entry meets: what the chart spells, after the service's own renames."""
        spelled = plan.spelled
        if not self.images.renderers.own:
            return spelled.name
        return split(self.images.renderers.before_table(str(spelled))[0])[0]

    def _check_twice(self, plan: ImagePlan) -> None:
        """Refuse two images of one repository when a post-renderer entry, which knows only names, writes one."""
        for other in self.images.plans:
            if other is plan:
                return
            is_met = other.is_settled and other.in_release and plan.in_release
            if not is_met or not (plan.needs_entry or other.needs_entry) or plan.is_like(other):
                continue
            if self._entry_name(plan) == self._entry_name(other):
                self.report.error(
                    "R210",
                    plan.node,
                    f"`{plan.label}` and `{other.label}` name one repository, and differ",
                    cause="the release's post-renderer sets the version by repository, so it would hit both",
                    hint="give both the same reference and `update`, or each the shape `digest` or `string`",
                    related=((self.report.source.place(other.node), "the other one"),),
                )
                return


def _texts(reference: Reference, part: str) -> tuple[str | None, ...]:
    """Return what a part may say of the declared reference."""
    registry, path = reference.registry_parts
    return {
        WHOLE: (str(reference),),
        "registry": (registry,),
        "repository": (reference.name, path),
        "tag": (reference.tag, reference.tag_text),
        "digest": (reference.digest,),
    }[part]


def _tree_name(site: Site) -> str:
    return "values" if site.in_object is None else f"extraObjects[{site.in_object}]"
