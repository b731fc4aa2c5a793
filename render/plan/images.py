"""A service's images in, where each is written and what it becomes out.

For every image: the declared reference, the sites it is written at, the effective reference after the release's own
post-renderers and the platform's table, and whether anything keeps it up to date.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from render.catalog import Definition
from render.flux.image import ImageError, Reference, split_tag
from render.flux.overrides import Entry, Outcome, OverrideFailure, Step, Table
from render.plan import paths
from render.plan.context import Context, Report
from render.yaml.source import Mapping, Node, Scalar, Sequence

if TYPE_CHECKING:
    from render.model.platform import ChartSource
    from render.model.service import Image, Update
    from render.plan.policy import Policy

PARTS = ("registry", "repository", "tag", "digest")
SHAPE_PARTS = {
    "split": ("repository", "tag"),
    "registry": ("registry", "repository", "tag"),
    "digest": ("repository", "tag", "digest"),
    "tag": ("tag",),
}
EXTRA_OBJECTS = "extraObjects"


@dataclass(slots=True)
class Site:
    """One place an image is written at, or read from."""

    path: paths.Path
    parts: dict[str, paths.Path]
    """Path of each part, for shapes that have parts."""
    in_object: int | None = None
    """Index into `extraObjects`; None: the release's values."""


@dataclass(slots=True)
class ImagePlan:
    """One image of a service."""

    key: str
    """`""` for the main image."""
    label: str
    """How people find it: `source.image`, `images.exporter`."""
    node: Node
    reference: Reference
    """As declared; with `pin`, the pinned version."""
    shape: str
    sites: list[Site]
    update: Update | None
    update_node: Mapping | None
    reads_values: bool = False
    """Whether reference and shape were read from `values`."""
    reach_values: bool = False
    effective: str = ""
    trace: tuple[Step, ...] = ()
    pinned_by: str = ""
    """`pin`, or the override that decides the version; empty when neither does."""
    policy: Policy | None = None
    read_parts: dict[str, Scalar] = field(default_factory=dict)

    @property
    def automated(self) -> bool:
        """Whether something moves it (also where the mode leaves the objects out)."""
        return self.policy is not None


class Renderers:
    """The post-renderers that an image of the service passes, in order."""

    def __init__(self, context: Context, definition: Definition, report: Report) -> None:
        self.context = context
        self.own: list[Table] = []
        if definition.service.source and definition.service.source.chart:
            self.own = [Table(entries) for entries in _own_entries(definition)]
        self.report = report
        self.table = context.table

    def declare(self, images: list[Reference], mode: str) -> None:
        """Keep what the mode emits: `all` entries, those matching a `declared` image, or `none`."""
        if mode == "all":
            return
        hit: set[int] = set()
        if mode == "declared":
            for image in images:
                before, _ = self.before_table(str(image))
                hit.update(step.entry for step in self.context.table.apply(before).trace)
        kept = [entry if i in hit else _NEVER for i, entry in enumerate(self.context.table.entries)]
        self.table = Table(kept) if hit else Table(())

    @property
    def emitted(self) -> list[int]:
        """Indices of the table's entries that the release carries."""
        return [i for i, entry in enumerate(self.table.entries) if entry is not _NEVER]

    def before_table(self, text: str) -> tuple[str, bool]:
        """Return what the release's own post-renderers make of a reference, and whether they set a tag or digest."""
        pinned = False
        for table in self.own:
            outcome = table.apply(text)
            pinned = pinned or any(_decides(table.entries[step.entry]) for step in outcome.trace)
            text = outcome.text
        return text, pinned

    def rewrite(self, text: str) -> Outcome:
        """Return what the release's post-renderers make of a reference; the trace is the platform table's."""
        return self.table.apply(self.before_table(text)[0])


_NEVER = Entry(name="never/matches@none")


def _decides(entry: Entry) -> bool:
    return bool(entry.new_tag or entry.digest)


def _own_entries(definition: Definition) -> list[list[Entry]]:
    found: list[list[Entry]] = []
    for renderer in definition.service.post_renderers:
        assert isinstance(renderer, Mapping)
        images = paths.find(renderer, ("kustomize", "images"))
        if type(images) is Sequence:
            raw = [item for item in images.items if type(item) is Mapping]
            found.append([Entry.of({key.text: v.text for key, v in e.entries if type(v) is Scalar}) for e in raw])
    return found


class Images:
    """Reads, checks and places the images of one service."""

    def __init__(self, context: Context, definition: Definition, chart: ChartSource | None, report: Report) -> None:
        self.context = context
        self.definition = definition
        self.service = definition.service
        self.report = report
        self.chart = chart
        """The platform's entry for the chart, when it has one."""
        self.is_release = bool(self.service.source and self.service.source.chart)
        values = self.service.values
        self.values: Node | None = values if isinstance(values, Mapping) else None
        self.objects: list[Node] = list(self.service.extra_objects)  # type: ignore[arg-type]
        self.entries: list[dict[str, Any]] = []
        """Our own `images` entries in the release's post-renderers."""
        self.plans: list[ImagePlan] = []
        self.renderers = Renderers(context, definition, report)

    def declare(self) -> None:
        """Read every image and decide what it becomes."""
        root = self.definition.root
        source = self.service.source
        if source and source.image is not None:
            node = paths.find(root, ("source", "image"))
            update_node = root.get("update")
            assert node is not None
            self._declare("", "source.image", node, source.image, self.service.update, update_node)
        elif self.service.update is not None:
            self.report.error(
                "R206",
                root.key("update"),
                "`update` concerns `source.image`, and there is none",
                hint="name the image under `source.image`, or remove `update`",
            )
        images = root.get("images")
        for name, image in self.service.images.items():
            assert type(images) is Mapping
            node = images.get(name)
            assert node is not None
            update = None if isinstance(image, str) else image.update
            update_node = node.get("update") if type(node) is Mapping else None
            self._declare(name, f"images.{name}", node, image, update, update_node)
        mode = self.service.image_overrides or self.context.platform.registries.emit
        try:
            self.renderers.declare([plan.reference for plan in self.plans], mode)
            for plan in self.plans:
                self._effect(plan)
        except OverrideFailure as failure:
            self.report.error(
                "R602",
                root.get("postRenderers"),
                f"an image post-renderer makes kustomize fail: {failure.reason}",
                cause="the whole release would fail to render",
                hint="escape the special characters of the entry's `name`",
            )

    def _declare(
        self, key: str, label: str, node: Node, image: str | Image, update: Update | None, update_node: Node | None
    ) -> None:
        plain = isinstance(image, str)
        ref = image if isinstance(image, str) else image.ref
        ref_node = node if plain else (node.get("ref") if type(node) is Mapping else None) or node
        at = None if isinstance(image, str) else image.at
        shape: str | None = None if isinstance(image, str) else image.shape
        reach = not isinstance(image, str) and image.reach == "values"
        is_container = not key and not self.is_release and self.service.workload is not None
        if is_container and at is None:
            sites: list[Site] | None = []
            shape = "container"
        else:
            sites = self._sites(label, node, at, shape)
            if isinstance(at, dict) and shape is None:
                shape = _shape_of_parts(at)
        if sites is None:
            return
        at_node = (node.get("at") if type(node) is Mapping else None) or node
        if ref is None:
            read = self._read(label, node, at_node, sites, shape)
            if read is None:
                return
            reference, shape, parts = read
        else:
            parts = {}
            try:
                reference = Reference.parse(ref)
            except ImageError as error:
                self.report.error(
                    "R205",
                    ref_node,
                    f"`{label}` is no image reference: {error}",
                    hint=error.hint or "write `registry/name:tag`",
                )
                return
        default = self.chart.shape if self.chart else None
        plan = ImagePlan(
            key=key,
            label=label,
            node=ref_node,
            reference=reference,
            shape=shape or default or "split",
            sites=sites,
            update=update,
            update_node=update_node if type(update_node) is Mapping else None,
            reads_values=ref is None,
            reach_values=reach,
            read_parts=parts,
        )
        self._pin(plan)
        if not is_container and not self._is_somewhere(plan, node):
            return
        self.plans.append(plan)

    def _is_somewhere(self, plan: ImagePlan, node: Node) -> bool:
        in_values = [site for site in plan.sites if site.in_object is None]
        if self.is_release or not (in_values or plan.shape == "postRenderer"):
            return True
        self.report.error(
            "R207",
            node,
            f"`{plan.label}` stands nowhere in the output",
            cause="the service has no chart whose values could hold it",
            hint="give `source.chart` or `workload`, or point `at` into `extraObjects[…]`",
        )
        return False

    def _pin(self, plan: ImagePlan) -> None:
        if plan.update is None or plan.update.pin is None:
            return
        node = plan.update_node.get("pin") if plan.update_node else plan.node
        try:
            tag, digest = split_tag(plan.update.pin)
        except ImageError as error:
            self.report.error(
                "R205", node, f"`update.pin` is no tag: {error}", hint=error.hint or "write `TAG` or `TAG@sha256:…`"
            )
            return
        plan.reference = Reference(plan.reference.name, tag, digest)
        plan.pinned_by = "pin"

    def _sites(
        self, label: str, node: Node, at: str | list[str] | dict[str, str] | None, shape: str | None
    ) -> list[Site] | None:
        """Return the sites of an image; None after reporting."""
        if shape == "postRenderer":
            if at is not None:
                self.report.error(
                    "R208",
                    node,
                    f"`{label}` has the shape `postRenderer` and a path `at`",
                    cause="the shape writes nothing into values",
                    hint="remove one of the two",
                )
                return None
            return []
        default = "image"
        if at is None and self.chart is not None and self.chart.at:
            default = self.chart.at.replace("{service}", self.service.name)
        listed: list[str] | dict[str, str]
        listed = [default] if at is None else [at] if isinstance(at, str) else at
        where = (node.get("at") if type(node) is Mapping else None) or node
        try:
            if isinstance(listed, dict):
                return self._part_sites(label, where, listed, shape)
            made = [self._site(paths.parse(text)) for text in listed]
        except paths.PathError as error:
            self.report.error(
                "R208", where, f"`{label}`: {error}", hint="write keys with dots between, quoted if they hold dots"
            )
            return None
        if not made:
            self.report.error("R208", where, f"`{label}` has no path in `at`", hint="name at least one path")
        return made or None

    def _part_sites(self, label: str, where: Node, parts: dict[str, str], shape: str | None) -> list[Site] | None:
        wanted = SHAPE_PARTS.get(shape) if shape else None
        unknown = [part for part in parts if part not in PARTS]
        if unknown or (wanted is not None and set(parts) != set(wanted)) or not parts or "tag" not in parts:
            allowed = ", ".join(f"`{part}`" for part in wanted or PARTS)
            self.report.error(
                "R208",
                where,
                f"the map `at` of `{label}` must name the path of each part: {allowed}",
                hint="write it as `{repository: path.of.repository, tag: path.of.tag}`",
            )
            return None
        made = {part: paths.parse(text) for part, text in parts.items()}
        first = self._site(next(iter(made.values())))
        made = {part: self._site(path).path for part, path in made.items()}
        return [Site((), made, first.in_object)]

    def _site(self, path: paths.Path) -> Site:
        """Return the site of a path, which may lead into one of the service's extraObjects."""
        if path[0] != EXTRA_OBJECTS:
            return Site(path, {})
        if len(path) < 3 or isinstance(path[1], str):
            raise paths.PathError("a path into `extraObjects` selects an object and a field of it")
        objects = Sequence(self.objects)
        index = path[1] if isinstance(path[1], int) else None
        if index is None:
            assert isinstance(path[1], tuple)
            index = next((i for i, item in enumerate(objects.items) if paths.matches(item, path[1])), None)
        if index is None or index >= len(self.objects):
            raise paths.PathError(f"`{paths.show(path[:2])}` selects no object")
        return Site(path[2:], {}, index)

    def tree(self, site: Site) -> Node | None:
        """Return the tree that a site stands in."""
        return self.values if site.in_object is None else self.objects[site.in_object]

    def _read(
        self, label: str, node: Node, at_node: Node, sites: list[Site], shape: str | None
    ) -> tuple[Reference, str, dict[str, Scalar]] | None:
        """Read reference and shape from what stands at the first site."""
        if not sites:
            self.report.error("R102", node, f"`{label}` needs the field `ref`", hint="add `ref: registry/name:tag`")
            return None
        site = sites[0]
        tree = self.tree(site)
        if site.parts:
            found = {part: paths.find(tree, path) for part, path in site.parts.items()}
        else:
            target = paths.find(tree, site.path)
            if target is None:
                self.report.error(
                    "R209",
                    at_node,
                    f"`{label}` has no `ref`, and nothing stands at `{paths.show(site.path)}`",
                    cause="without `ref` the image is read from there",
                    hint="add `ref: registry/name:tag`, or correct the path",
                )
                return None
            if type(target) is Scalar:
                return self._read_scalar(label, target, shape)
            if type(target) is not Mapping:
                self.report.error(
                    "R209", target, f"`{label}` must be a mapping or a string, not a list", hint="correct the path"
                )
                return None
            found = {part: target.get(part) for part in PARTS}
        return self._read_parts(label, at_node, found, shape)

    def _read_scalar(
        self, label: str, target: Scalar, shape: str | None
    ) -> tuple[Reference, str, dict[str, Scalar]] | None:
        if shape not in (None, "string"):
            self.report.error(
                "R209",
                target,
                f"`{label}` has the shape `{shape}`, and a whole reference stands in `values`",
                hint="write `shape: string`, or give the reference as `ref`",
            )
            return None
        try:
            return Reference.parse(target.text), "string", {"whole": target}
        except ImageError as error:
            self.report.error(
                "R205", target, f"`{label}` is no image reference: {error}", hint=error.hint or "correct it"
            )
            return None

    def _read_parts(
        self, label: str, at_node: Node, found: dict[str, Node | None], shape: str | None
    ) -> tuple[Reference, str, dict[str, Scalar]] | None:
        parts: dict[str, Scalar] = {}
        for part, inner in found.items():
            if inner is None:
                continue
            if type(inner) is not Scalar:
                self.report.error(
                    "R209", inner, f"`{part}` of `{label}` must be a plain value", hint="correct the path"
                )
                return None
            if inner.is_null or not inner.text:
                continue
            if not inner.is_string:
                shown = self.report.source.shown(inner)
                self.report.error(
                    "R103",
                    inner,
                    f"`{part}` of `{label}` must be a string, not `{shown}`",
                    cause="the chart would get a number or a boolean for it",
                    hint=f'quote it: `{part}: "{shown}"`',
                )
                return None
            parts[part] = inner
        if "repository" not in parts:
            self.report.error(
                "R209",
                at_node,
                f"`{label}` has no `ref`, and `values` name no repository there",
                cause="without `ref` the image is read from `values`",
                hint="add `ref: registry/name:tag`",
            )
            return None
        text = {part: node.text for part, node in parts.items()}
        try:
            reference = Reference.join(text["repository"], text.get("tag"), text.get("digest"), text.get("registry"))
        except ImageError as error:
            self.report.error(
                "R205",
                parts["repository"],
                f"`{label}` is no image reference: {error}",
                hint=error.hint or "correct it",
            )
            return None
        seen = "registry" if "registry" in parts else "digest" if "digest" in parts else "split"
        return reference, shape or seen, parts

    def take(self, plan: ImagePlan, reference: Reference) -> None:
        """Write another version of an image than the declared one."""
        plan.reference = reference
        self._rewrite(plan)

    def _rewrite(self, plan: ImagePlan) -> bool:
        """Set the effective reference; return whether the release's own post-renderers decide the version."""
        release = self.is_release and all(site.in_object is None for site in plan.sites)
        text = str(plan.reference)
        own_pins = False
        if release:
            text, own_pins = self.renderers.before_table(text)
        outcome = self.renderers.table.apply(text)
        plan.effective, plan.trace = outcome.text, outcome.trace
        return own_pins

    def _effect(self, plan: ImagePlan) -> None:
        """Work out the effective reference, and whether an override decides the version."""
        own_pins = self._rewrite(plan)
        deciding = [step.entry for step in plan.trace if _decides(self.renderers.table.entries[step.entry])]
        if plan.update is None or plan.pinned_by:
            return
        if own_pins:
            plan.pinned_by = "postRenderers"
        elif deciding:
            plan.pinned_by = f"registries.imageOverrides[{deciding[-1]}]"
        if plan.pinned_by:
            related = ((self.context.override_place(deciding[-1]), "decided here"),) if deciding else ()
            self.report.warn(
                "R603",
                plan.update_node or plan.node,
                f"`{plan.label}` is not automated: `{plan.pinned_by}` decides its version",
                cause="an entry with `newTag` or `digest` replaces whatever tag the bot would write",
                hint="remove `update` here, or the tag and digest there",
                related=related,
            )


def _shape_of_parts(parts: dict[str, str]) -> str:
    if set(parts) == {"tag"}:
        return "tag"
    return "registry" if "registry" in parts else "digest" if "digest" in parts else "split"
