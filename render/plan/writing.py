"""Planned images in, values and objects with the images written into them out, markers included."""

from __future__ import annotations

from typing import Any

from render.flux.image import Reference
from render.plan import paths
from render.plan.images import SHAPE_PARTS, ImagePlan, Images, Site
from render.yaml.emit import Marked
from render.yaml.source import Node, Scalar


class Writer:
    """Writes the planned images into values and objects, with markers where something moves them."""

    def __init__(self, images: Images) -> None:
        self.images = images
        self.report = images.report
        self.context = images.context
        self.swaps: dict[int, Any] = {}
        self.entry_owners: dict[str, ImagePlan] = {}

    def write(self) -> None:
        """Write every image; the results are `images.values`, `.objects` and `.entries`."""
        for plan in self.images.plans:
            if plan.shape != "container":
                self._write(plan)
        if self.swaps:
            if self.images.values is not None:
                self.images.values = paths.replace(self.images.values, self.swaps)
            self.images.objects = [paths.replace(item, self.swaps) for item in self.images.objects]

    def marked(self, plan: ImagePlan, text: str, suffix: str = "") -> Marked:
        """Return a scalar that the bot may write: double-quoted in every mode, marked where automation is on."""
        if plan.policy is None or not self.context.automation:
            return Marked(text)
        return Marked(text, f"{self.context.flux_namespace}:{plan.policy.name}{suffix}")

    def whole(self, plan: ImagePlan) -> Marked:
        """Return the whole reference as one scalar."""
        return self.marked(plan, self.whole_text(plan))

    def whole_text(self, plan: ImagePlan) -> str:
        """Return the reference as it stands in one scalar: effective where no post-renderer comes after it."""
        in_object = any(site.in_object is not None for site in plan.sites)
        if plan.shape == "container" or in_object or plan.reach_values or (plan.automated and plan.shape == "string"):
            return plan.effective
        return str(plan.reference)

    def _write(self, plan: ImagePlan) -> None:
        self._check_twice(plan)
        if plan.shape == "postRenderer":
            self._entry(plan, plan.reference.tag, plan.reference.digest)
            return
        if plan.reads_values and plan.pinned_by != "pin":
            if plan.automated or plan.reach_values:
                self._swap(plan)
            return
        for site in plan.sites:
            for path, value in self._values(plan, site):
                self._put(plan, site, path, value)
        self._entry_for_digest(plan)

    def _swap(self, plan: ImagePlan) -> None:
        """Mark what stands in `values` already, wherever it is aliased to."""
        parts = plan.read_parts
        if "whole" in parts:
            self.swaps[id(parts["whole"])] = self.whole(plan)
            return
        wanted = self._part_values(plan)
        for part, node in parts.items():
            if (part in ("tag", "digest") and part in wanted) or (plan.reach_values and part in wanted):
                self.swaps[id(node)] = wanted[part]
        self._entry_for_digest(plan)

    def _values(self, plan: ImagePlan, site: Site) -> list[tuple[paths.Path, Any]]:
        """Return what to write at a site, path by path."""
        if plan.shape == "string":
            return [(site.path, self.whole(plan))]
        values = self._part_values(plan)
        if plan.shape == "tag" and not site.parts:
            return [(site.path, values["tag"])] if "tag" in values else []
        if site.parts:
            return [(site.parts[part], value) for part, value in values.items() if part in site.parts]
        return [((*site.path, part), value) for part, value in values.items()]

    def _part_values(self, plan: ImagePlan) -> dict[str, Any]:
        """Return the parts of a reference in the image's shape, without those it does not have."""
        in_object = any(site.in_object is not None for site in plan.sites)
        reference = plan.reference
        if plan.reach_values or in_object:
            reference = Reference.parse(plan.effective)
        made: dict[str, Any] = {}
        wanted = SHAPE_PARTS[plan.shape]
        if "registry" in wanted:
            made["registry"], made["repository"] = reference.registry_parts
        elif "repository" in wanted:
            made["repository"] = reference.name
        if "digest" in wanted:
            if reference.tag is not None:
                made["tag"] = self.marked(plan, reference.tag, ":tag")
            follows = plan.policy is not None and plan.policy.digest != "never"
            if reference.digest is not None or follows:
                digest = reference.digest or ""
                made["digest"] = self.marked(plan, digest, ":digest") if follows else Marked(digest)
        elif plan.automated:
            assert reference.tag is not None
            made["tag"] = self.marked(plan, reference.tag, ":tag")
        elif reference.tag_text is not None:
            made["tag"] = Marked(reference.tag_text)
        return made

    def _entry_for_digest(self, plan: ImagePlan) -> None:
        """Carry a digest that `values` cannot hold in a post-renderer entry of the release."""
        if plan.shape not in ("split", "registry", "tag"):
            return
        follows = plan.policy is not None and plan.policy.digest != "never"
        bare_digest = plan.reference.tag is None and plan.reference.digest is not None
        if follows:
            self._entry(plan, plan.reference.tag, plan.reference.digest or "")
        elif bare_digest:
            self._entry(plan, None, plan.reference.digest)

    def _entry(self, plan: ImagePlan, tag: str | None, digest: str | None) -> None:
        name, _ = self.images.renderers.before_table(self._rendered_name(plan))
        if name in self.entry_owners:
            return
        self.entry_owners[name] = plan
        entry: dict[str, Any] = {"name": name}
        if tag is not None:
            entry["newTag"] = self.marked(plan, tag, ":tag")
        follows = plan.policy is not None and plan.policy.digest != "never"
        if digest is not None:
            entry["digest"] = self.marked(plan, digest, ":digest") if follows else Marked(digest)
        if len(entry) > 1:
            self.images.entries.append(entry)

    def _rendered_name(self, plan: ImagePlan) -> str:
        """Return the name as the chart will spell it in its pods."""
        return "/".join(plan.reference.registry_parts) if plan.shape == "registry" else plan.reference.name

    def _check_twice(self, plan: ImagePlan) -> None:
        """Refuse two images of one repository when a post-renderer entry, which knows only names, writes one."""
        for other in self.images.plans:
            if other is plan:
                return
            same = other.reference.name == plan.reference.name
            if same and (_has_entry(plan) or _has_entry(other)) and not _equal(plan, other):
                self.report.error(
                    "R210",
                    plan.node,
                    f"`{plan.label}` and `{other.label}` name the same repository with different versions or updates",
                    cause="the release's post-renderer sets the version by repository, so it would hit both",
                    hint="give both the same reference and `update`, or one of them the shape `digest` or `string`",
                    related=((self.report.source.place(other.node), "the other one"),),
                )

    def _put(self, plan: ImagePlan, site: Site, path: paths.Path, value: Any) -> None:
        tree = self.images.tree(site)
        existing = paths.find(tree, path)
        text = value.text if isinstance(value, Marked) else value
        if existing is not None and not self._may_replace(plan, existing, text, path):
            return
        try:
            made = paths.put(tree, path, value)
        except paths.PathError as error:
            self.report.error(
                "R211",
                error.node if error.node is not None and error.node.line else plan.node,
                f"`{plan.label}` cannot be written: {error}",
                cause=f"it belongs at `{paths.show(path)}`",
                hint="correct `at`, or the values in its way",
            )
            return
        if site.in_object is None:
            self.images.values = made
        else:
            self.images.objects[site.in_object] = made

    def _may_replace(self, plan: ImagePlan, existing: Node | str | Marked, text: str, path: paths.Path) -> bool:
        if isinstance(existing, str | Marked):
            self.report.error(
                "R211",
                plan.node,
                f"two images are written at `{paths.show(path)}`",
                hint="give each image its own `at`",
            )
            return False
        if type(existing) is Scalar and (existing.is_null or existing.text in ("", text)):
            return True
        if plan.pinned_by == "pin" and plan.reads_values:
            return True
        kind = "another value" if type(existing) is Scalar else "a value of another type"
        place = f"`{paths.show(path)}` of `values`"
        self.report.error(
            "R211",
            existing,
            f"{place} holds {kind} than `{plan.label}`",
            cause=f"`{plan.label}` is written there as `{text}`",
            hint="remove it here, or remove `ref` so that the image is read from here",
        )
        return False


def _has_entry(plan: ImagePlan) -> bool:
    if plan.shape == "postRenderer":
        return True
    if plan.shape not in ("split", "registry", "tag"):
        return False
    follows = plan.policy is not None and plan.policy.digest != "never"
    return follows or (plan.reference.tag is None and plan.reference.digest is not None)


def _equal(one: ImagePlan, other: ImagePlan) -> bool:
    def facts(plan: ImagePlan) -> Any:
        update = plan.update
        return plan.reference, update and {k: v for k, v in vars(update).items() if k != "node"}

    return bool(facts(one) == facts(other))
