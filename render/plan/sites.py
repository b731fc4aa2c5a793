"""An image's `at` and `shape` in, the places it is written at out; and the reference that stands there."""

from __future__ import annotations

from collections.abc import Mapping as Dict

from render.flux.image import ImageError, Reference
from render.flux.overrides import split
from render.plan import paths
from render.plan.context import Report
from render.structs import field, struct
from render.yaml.source import Mapping, Node, Scalar, Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from render.model.platform import ChartSource

PARTS = ("registry", "repository", "tag", "digest")
SHAPE_PARTS = {
    "split": ("repository", "tag"),
    "registry": ("registry", "repository", "tag"),
    "digest": ("repository", "tag", "digest"),
    "tag": ("tag",),
}
WHOLE = "whole"
"""The part of a site that holds the reference in one scalar."""
EXTRA_OBJECTS = "extraObjects"
_ADD_REF = "add `ref: registry/name:tag`"

At = str | list[str] | dict[str, str] | None


@struct()
class Site:
    """One place an image is written at, or read from."""

    path: paths.Path
    """Empty where each part has a path of its own."""
    parts: dict[str, paths.Path]
    """Paths of the parts, where `at` is a map."""
    in_object: int | None = None
    """Index into `extraObjects`; None: the release's values."""
    places: dict[str, paths.Path] = field(default_factory=dict)
    """Path of each part that is written: what the site holds, whatever the shape is called."""
    nodes: dict[str, Scalar] = field(default_factory=dict)
    """What stands there for each part, when the reference was read from here."""

    def open(self, shape: str) -> None:
        """Settle the places of a site that is written."""
        if self.parts:
            self.places = dict(self.parts)
        elif shape == "string":
            self.places = {WHOLE: self.path}
        elif shape == "tag":
            self.places = {"tag": self.path}
        else:
            self.places = {part: (*self.path, part) for part in SHAPE_PARTS[shape]}

    @property
    def holds_digest(self) -> bool:
        """Whether a digest has a scalar of its own, or stands in the whole reference."""
        return WHOLE in self.places or "digest" in self.places


class Sites:
    """Finds the sites of one service's images, and reads them."""

    def __init__(
        self, service: str, values: Node | None, objects: list[Node], chart: ChartSource | None, report: Report
    ) -> None:
        self.service = service
        self.values = values
        self.objects = objects
        self.chart = chart
        """The platform's entry for the chart, when it has one."""
        self.report = report

    def tree(self, site: Site) -> Node | None:
        """Return the tree that a site stands in, as the catalog has it."""
        return self.values if site.in_object is None else self.objects[site.in_object]

    def locate(self, label: str, node: Node, at: At, shape: str | None) -> list[Site] | None:
        """Return the sites that `at` names, or the chart's default; None after reporting."""
        where = (node.get("at") if type(node) is Mapping else None) or node
        if shape == "postRenderer":
            if at is None:
                return []
            self._refuse(
                where,
                f"`{label}` has the shape `postRenderer` and a path `at`",
                cause="the shape writes nothing into values",
                hint="remove one of the two",
            )
            return None
        if isinstance(at, dict):
            return self._part_sites(label, where, at, shape)
        listed = [self._default()] if at is None else [at] if isinstance(at, str) else at
        made: list[Site] = []
        for index, text in enumerate(listed):
            here = where.items[index] if type(where) is Sequence else where
            site = self._site(label, here, text)
            if site is None:
                return None
            if any(site.path == other.path and site.in_object == other.in_object for other in made):
                self._refuse(here, f"`{label}` names the path `{text}` twice", hint="remove one of the two")
                return None
            made.append(site)
        if not made:
            self._refuse(where, f"`{label}` has no path in `at`", hint="name at least one path")
        return made or None

    def _default(self) -> str:
        at = self.chart.at if self.chart is not None else None
        return at.replace("{service}", self.service) if at else "image"

    def _refuse(self, node: Node, message: str, *, cause: str = "", hint: str) -> None:
        self.report.error("R208", node, message, cause=cause, hint=hint)

    def _part_sites(self, label: str, where: Node, parts: dict[str, str], shape: str | None) -> list[Site] | None:
        """Return the one site of a map from part to path: the parts it names are those that are written."""
        assert type(where) is Mapping
        if shape == "string":
            self._refuse(
                where,
                f"`{label}` has the shape `string` and a path for each part",
                cause="the shape writes the whole reference into one scalar",
                hint="remove `shape`, or give `at` one path",
            )
            return None
        if not self._has_known_parts(label, where, parts):
            return None
        made: dict[str, Site] = {}
        for part, text in parts.items():
            site = self._site(label, where.get(part) or where, text)
            if site is None:
                return None
            made[part] = site
        first = next(iter(made.values()))
        if any(site.in_object != first.in_object for site in made.values()):
            self._refuse(
                where,
                f"the parts of `{label}` stand in different objects",
                cause="one image is written into one place",
                hint="name paths into `values`, or into one of the extraObjects",
            )
            return None
        if len({site.path for site in made.values()}) < len(made):
            self._refuse(where, f"two parts of `{label}` have the same path", hint="give each part its own path")
            return None
        return [Site((), {part: site.path for part, site in made.items()}, first.in_object)]

    def _has_known_parts(self, label: str, where: Mapping, parts: dict[str, str]) -> bool:
        for key, _ in where.entries:
            if key.text not in PARTS:
                self._refuse(
                    key,
                    f"unknown part `{self.report.source.shown(key)}` in the map `at` of `{label}`",
                    cause=f"parts are {', '.join(f'`{part}`' for part in PARTS)}",
                    hint="rename it to `repository`" if "repository" not in parts else "remove it",
                )
                return False
        if "tag" not in parts:
            self._refuse(
                where,
                f"the map `at` of `{label}` needs the part `tag`",
                cause="every other part may stay with the chart; the version may not",
                hint="add `tag: path.of.tag`",
            )
            return False
        return True

    def _site(self, label: str, where: Node, text: str) -> Site | None:
        """Return the site of a path, which may lead into one of the service's extraObjects; None after reporting."""
        try:
            path = paths.parse(text)
            paths.check_writable(path)
            return Site(path, {}) if path[0] != EXTRA_OBJECTS else self._object_site(path)
        except paths.PathError as error:
            self._refuse(
                where,
                f"`{label}`: {error}",
                cause=error.cause,
                hint=error.hint or "write a path such as `image`, or `controllers.web.image`",
            )
            return None

    def _object_site(self, path: paths.Path) -> Site:
        if len(path) < 3 or isinstance(path[1], str):
            raise paths.PathError(
                "a path into `extraObjects` selects an object and a field of it",
                hint="write it as `extraObjects[kind=Cluster,name=pg].spec.imageName`",
            )
        step = path[1]
        if isinstance(step, int):
            index = step if step < len(self.objects) else None
        else:
            index = next((i for i, item in enumerate(self.objects) if paths.matches(item, step)), None)
        if index is None:
            raise paths.PathError(
                f"`{paths.show(path[:2])}` selects no object",
                cause=f"the service has {_listed(self.objects)}",
                hint="correct the selector, or add the object to `extraObjects`",
            )
        return Site(path[2:], {}, index)

    # What stands at a site

    def read(self, label: str, node: Node, sites: list[Site], shape: str | None) -> tuple[Reference, str] | None:
        """Read reference and shape from what stands at the sites; None after reporting."""
        where = (node.get("at") if type(node) is Mapping else None) or node
        if not sites:
            self.report.error("R102", node, f"`{label}` needs the field `ref`", hint=_ADD_REF)
            return None
        found: tuple[Reference, str] | None = None
        for site in sites:
            made = self._read(label, where, site, shape)
            if made is None:
                return None
            if found is not None and made[0] != found[0]:
                self.report.error(
                    "R209",
                    where,
                    f"`{label}` reads different images at the paths of `at`",
                    cause=f"one is `{found[0]}`, the other `{made[0]}`",
                    hint="make them equal in `values`, or declare two images",
                )
                return None
            found = found or made
        return found

    def _read(self, label: str, where: Node, site: Site, shape: str | None) -> tuple[Reference, str] | None:
        tree = self.tree(site)
        if site.parts:
            return self._read_parts(label, where, site, {part: paths.find(tree, p) for part, p in site.parts.items()})
        target = paths.find(tree, site.path)
        if target is None or (type(target) is Scalar and target.is_null):
            self.report.error(
                "R209",
                where,
                f"`{label}` has no `ref`, and nothing stands at `{paths.show(site.path)}`",
                cause="without `ref` the image is read from there",
                hint=f"{_ADD_REF}, or correct the path",
            )
            return None
        if type(target) is Scalar:
            return self._read_scalar(label, site, target, shape)
        if type(target) is Sequence:
            self.report.error(
                "R209",
                target,
                f"`{paths.show(site.path)}` must hold an image, not a list",
                cause=f"`{label}` is read from there: a string, or a mapping with `repository` and `tag`",
                hint="correct the path, or the value",
            )
            return None
        found = {part: target.get(part) for part in PARTS}
        made = self._read_parts(label, where, site, found)
        if made is not None:
            # A shape that says more than values hold has its further parts beside them.
            for part in SHAPE_PARTS.get(shape or "", ()):
                if part != "registry":
                    site.places.setdefault(part, (*site.path, part))
        return made

    def _read_scalar(self, label: str, site: Site, target: Scalar, shape: str | None) -> tuple[Reference, str] | None:
        if shape not in (None, "string"):
            self.report.error(
                "R209",
                target,
                f"`{label}` has the shape `{shape}`, and a single scalar stands in `values`",
                cause="without `ref` the shape is what stands there",
                hint="write `shape: string`, or give the reference as `ref`",
            )
            return None
        if not self._is_text(label, "the image", target, "image"):
            return None
        try:
            reference = Reference.parse(target.text)
        except ImageError as error:
            refuse_reference(self.report, target, f"`{label}` is no image reference", error, target.text)
            return None
        site.places, site.nodes = {WHOLE: site.path}, {WHOLE: target}
        return reference, "string"

    def _is_text(self, label: str, what: str, node: Scalar, key: str) -> bool:
        if node.is_string:
            return True
        shown = self.report.source.shown(node)
        self.report.error(
            "R103",
            node,
            f"{what} of `{label}` must be a string, not `{shown}`",
            cause="the chart would get a number or a boolean for it",
            hint=f'quote it: `{key}: "{shown}"`',
        )
        return False

    def _read_parts(
        self, label: str, where: Node, site: Site, found: Dict[str, Node | None]
    ) -> tuple[Reference, str] | None:
        text: dict[str, str] = {}
        for part, node in found.items():
            if node is None:
                continue
            if type(node) is not Scalar:
                self.report.error("R209", node, f"`{part}` of `{label}` must be a scalar", hint="correct the path")
                return None
            is_empty = node.is_null or not node.text
            if not is_empty:
                if not self._is_text(label, f"`{part}`", node, part):
                    return None
                text[part] = node.text
            if not is_empty or part in ("tag", "digest"):
                site.nodes[part] = node
        if "repository" not in text:
            self.report.error(
                "R209",
                where,
                f"`{label}` has no `ref`, and `values` name no repository there",
                cause="without `ref` the image is read from `values`",
                hint=_ADD_REF,
            )
            return None
        try:
            reference = Reference.join(text["repository"], text.get("tag"), text.get("digest"), text.get("registry"))
        except ImageError as error:
            part = _part_at(text, error.position)
            refuse_reference(self.report, site.nodes[part], f"`{label}` is no image reference", error, text[part])
            return None
        site.places = dict(site.parts) or {part: (*site.path, part) for part in site.nodes}
        return reference, shape_of(text)


def shape_of(parts: Dict[str, object]) -> str:
    """Return the shape that has these parts, or comes closest."""
    if "repository" not in parts and "registry" not in parts and "digest" not in parts:
        return "tag"
    return "registry" if "registry" in parts else "digest" if "digest" in parts else "split"


def refuse_reference(report: Report, node: Node, what: str, error: ImageError, text: str) -> None:
    """Report a text that is no reference, with the whole correction where there is one."""
    hint = error.hint
    if "upper-case" in str(error):
        name = split(text)[0]
        hint = f"write `{name.lower()}{text[len(name) :]}`"
    elif "hex digits" in str(error) and not hint:
        hint = "copy the whole digest"
    elif "variable" in str(error):
        hint = "write the value itself, or leave the image to `values` alone"
    report.error("R205", node, f"{what}: {error}", hint=hint or "write `registry/name:tag`")


def _part_at(text: Dict[str, str], position: int) -> str:
    """Return the part of a reference that was put together, at a position in the whole."""
    end = 0
    for part in PARTS:
        if part in text:
            end += len(text[part]) + 1
            if position < end:
                return part
    return "repository"


def _listed(objects: list[Node]) -> str:
    names = []
    for item in objects:
        if type(item) is Mapping:
            metadata = item.get("metadata")
            name = metadata.text("name") if type(metadata) is Mapping else None
            names.append(f"`{item.text('kind') or '?'} {name or '?'}`")
    return ", ".join(names) or "no extraObjects"
