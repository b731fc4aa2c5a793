"""A service's images in, where each is written and what it becomes out.

For every image: the declared reference, the sites it is written at, the effective reference after the release's own
post-renderers and the platform's table, and whether anything keeps it up to date. An image with a fault stays among
the others, so that what else is wrong with it or with them is told in the same run.
"""

from __future__ import annotations

from render.catalog import Definition
from render.diagnostics import Location
from render.flux.image import ImageError, Reference, split_tag
from render.flux.overrides import Step, split
from render.patterns import lazy
from render.plan import paths
from render.plan.context import Context, Report
from render.plan.renderers import OwnEntry, Renderers, decides
from render.plan.sites import SHAPE_PARTS, WHOLE, Site, Sites, refuse_reference, shape_of
from render.plan.sources import plain
from render.structs import struct
from render.yaml.source import Mapping, Node, Scalar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from render.model.platform import ChartSource
    from render.model.service import Image, Update
    from render.plan.policy import Policy

__all__ = ["MACHINE_SHAPES", "SHAPE_PARTS", "WHOLE", "WHOLE_SHAPES", "ImagePlan", "Images", "Renderers", "Site"]

MACHINE_SHAPES = ("containerDisk", "dataVolume")
"""Images of a machine's disks."""
WHOLE_SHAPES = ("container", *MACHINE_SHAPES)
"""Images that an object of ours holds as one scalar: a plain workload's, and those of a machine's disks."""


_IMAGE_KEY = lazy(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
LABEL_MEANING = "lower-case letters, digits and inner `-`"


@struct()
class ImagePlan:
    """One image of a service."""

    key: str
    """`""` for the main image."""
    label: str
    """How people find it: `source.image`, `images.exporter`."""
    node: Node
    reference: Reference
    """The version that is written: the declared one, with `pin` the pinned one, or the committed one that stays."""
    shape: str
    """One of `WHOLE_SHAPES` where no chart is; what a site holds is told by its places, whatever the shape's name."""
    sites: list[Site]
    update: Update | None
    update_node: Mapping | None
    in_release: bool = True
    """Whether it passes the post-renderers of a release."""
    reads_values: bool = False
    """Whether the reference was read from `values`."""
    reach_values: bool = False
    declared: Reference | None = None
    """The version in the catalog, when another one is written."""
    effective: str = ""
    """What the cluster pulls; as declared while nothing better is known."""
    trace: tuple[Step, ...] = ()
    pinned_by: str = ""
    """`pin`, or the override that decides the version; empty when neither does."""
    policy: Policy | None = None
    is_read: bool = True
    """False: its reference was reported, so nothing that depends on it is said."""
    is_placed: bool = True
    """False: its sites were reported."""
    is_settled: bool = False
    """Whether the effective reference is known."""

    @property
    def automated(self) -> bool:
        """Whether something moves it (also where the mode leaves the objects out)."""
        return self.policy is not None

    @property
    def follows(self) -> bool:
        """Whether its digest is moved together with the tag."""
        return self.policy is not None and self.policy.digest != "never"

    @property
    def update_path(self) -> str:
        """Where its update is written: `update`, `images.exporter.update`."""
        return f"{self.label}.update" if self.key else "update"

    @property
    def spelled(self) -> Reference:
        """The reference as the chart will spell it in its pods, which is what overrides see.

        A `registry` of its own is printed before the repository always, also where the reference names none.
        """
        reference = self.reference
        if self.reads_values or not any("registry" in site.places for site in self.sites):
            return reference
        return Reference("/".join(reference.registry_parts), reference.tag, reference.digest)

    @property
    def takes_entry(self) -> bool:
        """Whether a post-renderer entry of the release can carry what a site has no place for."""
        in_values = any(site.in_object is None and not site.holds_digest for site in self.sites)
        return self.in_release and not self.reach_values and in_values

    @property
    def needs_entry(self) -> bool:
        """Whether a post-renderer entry of the release carries its version, once it is known what moves it."""
        if self.shape == "postRenderer":
            return self.in_release
        return self.takes_entry and (self.follows or self.is_bare_digest)

    def is_like(self, other: ImagePlan) -> bool:
        """Whether the catalog says the same of both: reference and `update`.

        What the bot has moved already may differ for a while, so the catalog's versions are compared.
        """
        if (self.declared or self.reference) != (other.declared or other.reference):
            return False
        return (self.update is None) is (other.update is None) and plain(self.update_node) == plain(other.update_node)

    @property
    def is_bare_digest(self) -> bool:
        """Whether a digest alone says the version; a `tag` key cannot hold it."""
        return self.reference.tag is None and self.reference.digest is not None

    def read_node(self, part: str) -> Node:
        """Return what a part was read from, else the image's own node."""
        nodes = self.sites[0].nodes if self.sites else {}
        return nodes.get(part) or nodes.get(WHOLE) or self.node

    def holds_digest(self, *, repository: bool = True) -> bool:
        """Whether a digest can be written for every site; `repository`: an entry takes a site that names the image."""
        for site in self.sites:
            if site.holds_digest:
                continue
            named = not repository or "repository" in site.places
            if site.in_object is not None or not (named and self.takes_entry):
                return False
        return True


class Images:
    """Reads, checks and places the images of one service."""

    def __init__(self, context: Context, definition: Definition, chart: ChartSource | None, report: Report) -> None:
        self.context = context
        self.definition = definition
        self.service = definition.service
        self.report = report
        self.chart = chart
        self.is_release = bool(self.service.source and self.service.source.chart)
        self.is_machine = self.service.kind == "vm"
        values = self.service.values
        self.values: Node | None = values if isinstance(values, Mapping) else None
        self.objects: list[Node] = list(self.service.extra_objects)
        self.entries: list[dict[str, Any]] = []
        """Our own `images` entries in the release's post-renderers."""
        self.marks_objects: set[int] = set()
        """Indices of the extraObjects that hold setter markers (in the mode without automation: would hold them)."""
        self.plans: list[ImagePlan] = []
        self.renderers = Renderers(context, definition, report)
        self.sites = Sites(self.service.name, self.values, list(self.objects), chart, report)

    def tree(self, site: Site) -> Node | None:
        """Return the tree that a site stands in, with what has been written so far."""
        return self.values if site.in_object is None else self.objects[site.in_object]

    def declare(self) -> None:
        """Read every image and decide what it becomes."""
        root = self.definition.root
        source = self.service.source
        if source and source.image is not None:
            node = paths.find(root, ("source", "image"))
            assert node is not None
            self._declare("", "source.image", node, source.image, self._moving(self.service.update), root.get("update"))
        elif self._moving(self.service.update) is not None:
            self.report.error(
                "R206",
                root.key("update"),
                "`update` concerns `source.image`, and there is none",
                hint="name the image under `source.image`, or remove `update`",
            )
        self._refuse_empty(root, "update")
        images = root.get("images")
        for name, image in self.service.images.items():
            assert type(images) is Mapping
            node = images.get(name)
            assert node is not None
            if not _IMAGE_KEY.fullmatch(name):
                self.report.error(
                    "R104",
                    images.key(name),
                    f"the image `{name}` must be named in {LABEL_MEANING}, at most 63 of them",
                    cause="its policy is named after the service and it",
                    hint="rename it, such as `exporter`",
                )
                continue
            if type(node) is Mapping:
                self._refuse_empty(node, f"images.{name}.update")
            update = None if isinstance(image, str) else self._moving(image.update)
            update_node = node.get("update") if type(node) is Mapping else None
            self._declare(name, f"images.{name}", node, image, update, update_node)
        if self.renderers.failed:
            return
        mode = self.service.image_overrides or self.context.platform.registries.emit
        sound = [plan for plan in self.plans if plan.is_read and plan.is_placed]
        self.renderers.declare((self._at_table(plan)[0] for plan in sound), mode)
        for plan in sound:
            self._settle(plan)
            self._decide(plan)
        if self.context.notes is not None and mode != "none":
            self.context.notes.note_all(sound, self.report.source)

    def _moving(self, update: Update | None) -> Update | None:
        """Return an update as far as it concerns an image: a machine's is only ever pinned."""
        return None if self.is_machine and update is not None and update.pin is None else update

    def _refuse_empty(self, parent: Mapping, label: str) -> None:
        """Refuse an `update` whose fields are gone: it would end the automation without a word."""
        given = parent.get("update")
        if type(given) is Scalar and given.is_null:
            self.report.error(
                "R102",
                parent.key("update"),
                f"`{label}` is empty",
                cause="without it the image has no automation, and with it there must be a `range` or a `channel`",
                hint="add `range: …`, or remove the key",
            )

    def take(self, plan: ImagePlan, reference: Reference) -> None:
        """Write another version of an image than the declared one."""
        plan.declared = plan.declared or plan.reference
        plan.reference = reference
        self._settle(plan)

    def _declare(
        self, key: str, label: str, node: Node, image: str | Image, update: Update | None, update_node: Node | None
    ) -> None:
        """Enter one image; what is wrong with it is reported, and it stays among the others."""
        given = None if isinstance(image, str) else image
        ref = image if isinstance(image, str) else image.ref
        ref_node = node.get("ref") if type(node) is Mapping else None
        plan = ImagePlan(
            key=key,
            label=label,
            node=ref_node or node,
            reference=Reference(""),
            shape="split",
            sites=[],
            update=update,
            update_node=update_node if type(update_node) is Mapping else None,
            in_release=self.is_release,
            reads_values=ref is None,
            reach_values=given is not None and given.reach == "values",
        )
        self.plans.append(plan)
        self._place(plan, node, given)
        if ref is not None:
            self._parse(plan, ref)
        elif plan.is_placed:
            read = self.sites.read(label, node, plan.sites, given.shape if given else None)
            plan.is_read = read is not None
            if read is not None:
                plan.reference = read[0]
                plan.shape = given.shape if given and given.shape else read[1]
        else:
            plan.is_read = False
        self._pin(plan)
        plan.effective = str(plan.spelled) or label
        if plan.is_read and plan.is_placed:
            self._check_bare_digest(plan)

    def _place(self, plan: ImagePlan, node: Node, image: Image | None) -> None:
        """Find the sites of an image, and its shape."""
        at = image.at if image is not None else None
        shape = image.shape if image is not None else None
        if self.is_machine:
            self._place_on_disk(plan, node)
            return
        if not plan.key and not self.is_release and self.service.workload is not None and at is None:
            plan.shape = "container"
            return
        sites = self.sites.locate(plan.label, node, at, shape)
        if sites is None:
            plan.is_placed = False
            return
        plan.sites = sites
        plan.in_release = self.is_release and (shape == "postRenderer" or any(s.in_object is None for s in sites))
        default = (self.chart.shape if self.chart is not None else None) or "split"
        plan.shape = shape or (shape_of(at) if isinstance(at, dict) else default)
        if not self.is_release and (not sites or any(site.in_object is None for site in sites)):
            plan.is_placed = False
            self.report.error(
                "R207",
                node,
                f"`{plan.label}` stands nowhere in the output",
                cause="the service has no chart whose values could hold it",
                hint="give `source.chart` or `workload`, or point `at` into `extraObjects[…]`",
            )
        if not plan.reads_values:
            for site in sites:
                site.open(plan.shape)

    def _place_on_disk(self, plan: ImagePlan, node: Node) -> None:
        plan.shape = "containerDisk"
        if plan.reads_values:
            plan.is_placed = False
            self.report.error(
                "R102",
                node,
                f"`{plan.label}` needs the field `ref`",
                cause="a machine has no values that the image could be read from",
                hint="add `ref: registry/name:tag`",
            )

    def _parse(self, plan: ImagePlan, ref: str) -> None:
        try:
            plan.reference = Reference.parse(ref)
        except ImageError as error:
            plan.is_read = False
            refuse_reference(self.report, plan.node, f"`{plan.label}` is no image reference", error, ref)

    def _pin(self, plan: ImagePlan) -> None:
        if plan.update is None or plan.update.pin is None:
            return
        plan.pinned_by = "pin"
        node = plan.update_node.get("pin") if plan.update_node else None
        try:
            tag, digest = split_tag(plan.update.pin)
        except ImageError as error:
            plan.is_read = False
            hint = error.hint or "write `TAG` or `TAG@sha256:…`"
            self.report.error("R205", node or plan.node, f"`{plan.update_path}.pin` is no tag: {error}", hint=hint)
            return
        if plan.is_read:
            plan.declared = plan.reference
            plan.reference = Reference(plan.reference.name, tag, digest)

    def _check_bare_digest(self, plan: ImagePlan) -> None:
        if not plan.is_bare_digest or plan.shape in WHOLE_SHAPES or plan.shape == "postRenderer":
            return
        if plan.holds_digest(repository=False):
            return
        plan.is_placed = False
        self.report.error(
            "R208",
            plan.node,
            f"`{plan.label}` has a digest and no tag, and no place for a digest",
            cause="a `tag` key cannot hold it, and kustomize does not reach the image",
            hint="use the shape `digest` or `string`, or add the tag",
        )

    # What an image becomes

    def _at_table(self, plan: ImagePlan) -> tuple[str, OwnEntry | None]:
        """Return what meets the table, and the service's own post-renderer entry that decides its version."""
        text = str(plan.spelled)
        if not plan.in_release or not self.renderers.own:
            return text, None
        text, deciding = self.renderers.before_table(text)
        if plan.shape == "postRenderer" or (plan.takes_entry and plan.is_bare_digest):
            # The entry comes after the service's own, and sets the version anew.
            return str(Reference(split(text)[0], plan.reference.tag, plan.reference.digest)), None
        return text, deciding

    def _settle(self, plan: ImagePlan) -> None:
        """Set the effective reference."""
        plan.is_settled = True
        spelled = str(plan.spelled)
        plan.effective, plan.trace = spelled, ()
        if self.renderers.is_idle:
            return
        outcome = self.renderers.table.apply(self._at_table(plan)[0])
        plan.effective, plan.trace = outcome.text, outcome.trace
        if plan.effective == spelled:
            return
        try:
            Reference.parse(plan.effective)
        except ImageError as error:
            self._refuse_effective(plan, error)
        if plan.in_release and any(site.in_object is not None for site in plan.sites):
            self._check_one_effective(plan)

    def _refuse_effective(self, plan: ImagePlan, error: ImageError) -> None:
        plan.is_settled = False
        self.report.error(
            "R601",
            plan.node,
            f"overrides make `{plan.effective}` of `{plan.label}`",
            cause=f"that is what the cluster would pull, and {error}",
            hint="correct the `newName` of the entry",
            related=tuple((place, "rewritten here") for place in self._rewriting(plan)),
        )

    def _rewriting(self, plan: ImagePlan) -> list[Location]:
        """Return the places of the entries that rewrite an image."""
        text, found = str(plan.spelled), []
        for listed, table in self.renderers.own if plan.in_release else ():
            outcome = table.apply(text)
            found += [self.renderers.place(listed[step.entry]) for step in outcome.trace if step.before != step.after]
            text = outcome.text
        return found + [self.context.override_place(step.entry) for step in plan.trace if step.before != step.after]

    def _check_one_effective(self, plan: ImagePlan) -> None:
        """Refuse an image in values and in an object that become two: one policy scans one repository."""
        in_object = self.renderers.table.apply(str(plan.spelled)).text
        if in_object == plan.effective:
            return
        plan.is_settled = False
        self.report.error(
            "R208",
            plan.node,
            f"`{plan.label}` becomes two images, in `values` and in `extraObjects`",
            cause=f"the service's post-renderers make `{plan.effective}` of one, the other is `{in_object}`",
            hint="declare two images",
        )

    def _decide(self, plan: ImagePlan) -> None:
        """See whether an override decides the version, so that nothing may automate it."""
        if plan.update is None or plan.pinned_by or not plan.is_settled or self.renderers.is_idle:
            return
        entries = self.renderers.table.entries
        deciding = [step.entry for step in plan.trace if decides(entries[step.entry])]
        own = self._at_table(plan)[1]
        if deciding:
            plan.pinned_by = f"registries.imageOverrides[{deciding[-1]}]"
            place = self.context.override_place(deciding[-1])
        elif own is not None:
            plan.pinned_by = "postRenderers"
            place = self.renderers.place(own)
        else:
            return
        self.report.warn(
            "R603",
            plan.update_node or plan.node,
            f"`{plan.label}` is not automated: `{plan.pinned_by}` decides its version",
            cause="an entry with `newTag` or `digest` replaces whatever tag the bot would write",
            hint="remove `update` here, or the tag and digest there",
            related=((place, "decided here"),),
        )
