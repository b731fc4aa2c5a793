"""Images as they meet the override table in, what nobody means by the table out; one image after another.

kustomize compares texts: an entry misses an image in another spelling, and hits one that only looks alike to a regular
expression. Both are silent in a cluster, and so is a digest that is lost to a new tag.
"""

from __future__ import annotations

from render.flux.image import canonical_name
from render.flux.overrides import LITERAL_NAME, Entry, split
from render.plan import paths
from render.structs import field, struct
from render.yaml.source import Mapping, Node, Sequence, Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from render.diagnostics import Diagnostic, Location
    from render.plan.images import ImagePlan

UNSEEN_KEYS = frozenset(("args", "command", "env", "extraargs", "extraenv", "extraenvs", "extraenvvars", "environment"))
"""Keys of values, in lower case, that charts write into a container's environment, command or arguments."""


@struct(frozen=True)
class PlacedTable:
    """An override table, and where it stands."""

    entries: list[Entry]
    source: Source
    node: Node | None
    """The list of the entries; None when the file has none."""

    def entry_node(self, index: int) -> Node | None:
        """Return the node of an entry; the whole file for an entry that is not in it."""
        items = self.node.items if type(self.node) is Sequence else ()
        return items[index] if index < len(items) else None

    def place(self, index: int) -> Location:
        """Return the place of an entry."""
        return self.source.place(self.entry_node(index))


@struct()
class _Note:
    """One thing to say of an entry and the images of one name."""

    first: Location
    count: int = 1

    def add(self, place: Location) -> None:
        self.first = min(self.first, place)
        self.count += 1


Notes = dict[tuple[int, str], _Note]
"""By index of the entry and name of the image."""
Noted = tuple[Notes, Notes, Notes, "list[Diagnostic]"]
"""What was collected about some images."""


@struct()
class TableNotes:
    """Collects what is surprising about a table."""

    table: PlacedTable
    _variants: Notes = field(default_factory=dict)
    _accidents: Notes = field(default_factory=dict)
    _lost: Notes = field(default_factory=dict)
    _unseen: list[Diagnostic] = field(default_factory=list)
    _by_repository: dict[str, list[int]] = field(default_factory=dict)
    _last_parts: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        for index, entry in enumerate(self.table.entries):
            self._by_repository.setdefault(canonical_name(entry.name), []).append(index)
            self._last_parts.add(entry.name.rpartition("/")[2])

    def take(self) -> Noted | None:
        """Return what was collected since the last call, and forget it."""
        taken = (self._variants, self._accidents, self._lost, self._unseen)
        if not any(taken):
            return None
        self._variants, self._accidents, self._lost, self._unseen = {}, {}, {}, []
        return taken

    def add(self, noted: Noted) -> None:
        """Add what was collected before, or elsewhere."""
        for notes, more in zip((self._variants, self._accidents, self._lost), noted[:3], strict=True):
            for key, note in more.items():
                known = notes.get(key)
                if known is None:
                    notes[key] = note
                else:
                    known.first = min(known.first, note.first)
                    known.count += note.count
        self._unseen += noted[3]

    def note_all(self, images: Iterable[ImagePlan], source: Source) -> None:
        """Take the images of a service that the table is meant for; `source` is the file that declares them."""
        for image in images:
            if image.is_settled:
                self.note(image, source)

    def note(self, image: ImagePlan, source: Source) -> None:
        """Take one image whose effective reference is known."""
        place: Location | None = None
        for step in image.trace:
            entry = self.table.entries[step.entry]
            if LITERAL_NAME.match(entry.name) and not step.before.startswith(entry.name):
                place = place or source.place(image.node)
                _add(self._accidents, step.entry, split(step.before)[0], place)
            if entry.new_tag and not entry.digest and "@" in step.before and split(step.before)[2]:
                place = place or source.place(image.node)
                _add(self._lost, step.entry, split(step.before)[0], place)
        before = image.trace[0].before if image.trace else image.effective
        name = split(before)[0]
        # The last part of a name has one spelling only, so most images are done with here.
        is_near = name.rpartition("/")[2] in self._last_parts
        missed = self._by_repository.get(canonical_name(name), ()) if is_near else ()
        if missed and not any(step.entry in missed for step in image.trace):
            for index in missed:
                _add(self._variants, index, name, place or source.place(image.node))
        if image.trace and image.in_release and not image.reach_values:
            self._note_unseen(image, source)

    def _note_unseen(self, image: ImagePlan, source: Source) -> None:
        """Report an image that is written where kustomize does not look, and that the table should rename."""
        key = unseen_key(image)
        if not key or image.effective == image.trace[0].before:
            return
        index = image.trace[-1].entry
        self._unseen.append(
            source.fault(
                "R609",
                image.node,
                f"`{self.table.entries[index].name}` does not reach `{image.label}` in `{key}`",
                cause="kustomize looks at the `image` of containers, and at nothing in their environment or arguments",
                hint=f"say `reach: values` of `{image.label}`, and the effective image is written there",
                severity="warning",
                related=((self.table.place(index), "the entry"),),
            )
        )

    def finish(self) -> list[Diagnostic]:
        """Return the warnings; each names one entry and one image name, at the entry's place."""
        made = list(self._unseen)
        for (index, name), note in self._variants.items():
            entry = self.table.entries[index]
            made.append(
                self._fault(
                    index,
                    note,
                    f"`{entry.name}` leaves `{name}` alone, which is the same image",
                    "kustomize compares the spelling, and knows nothing of default registries",
                    f"add an entry for `{name}`, or spell the image as the entry does",
                )
            )
        for (index, name), note in self._accidents.items():
            entry = self.table.entries[index]
            made.append(
                self._fault(
                    index,
                    note,
                    f"`{entry.name}` also rewrites `{name}`",
                    "kustomize takes the name for a regular expression, in which `.` is any character",
                    f"put an entry for `{name}` above it, so that this one meets another name",
                )
            )
        for (index, name), note in self._lost.items():
            made.append(
                self._fault(
                    index,
                    note,
                    f"`{name}` loses its digest to the entry's `newTag`",
                    "kustomize drops the digest of an image that gets a new tag",
                    "add `digest`, that of the new tag, to the entry",
                )
            )
        return made

    def _fault(self, index: int, note: _Note, message: str, cause: str, hint: str) -> Diagnostic:
        more = note.count - 1
        told = "declared here" + (f", and {more} times more" if more > 1 else ", and once more" if more else "")
        node = self.table.entry_node(index)
        node = (node.get("name") if type(node) is Mapping else None) or node
        return self.table.source.fault(
            "R609", node, message, cause=cause, hint=hint, severity="warning", related=((note.first, told),)
        )


def _add(notes: Notes, index: int, name: str, place: Location) -> None:
    known = notes.get((index, name))
    if known is None:
        notes[index, name] = _Note(place)
    else:
        known.add(place)


def unseen_key(image: ImagePlan) -> str:
    """Return the path of values at which an image stands in an environment or in arguments; empty elsewhere."""
    for site in image.sites:
        if site.in_object is not None:
            continue
        for path in site.places.values() or (site.path,):
            if any(isinstance(step, str) and step.lower() in UNSEEN_KEYS for step in path):
                return paths.show(path)
    return ""
