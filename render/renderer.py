"""Catalog files in, what each adds to the build out; a service's tree is gone when its files are made.

Services that depend on some that come later wait until all files are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from render.catalog import CatalogFile, Definition, read_definitions
from render.diagnostics import Location
from render.outcome import Entered, FileOutcome, outcome_of
from render.patterns import lazy
from render.plan.context import Context, Header, header_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from render.files import Seen
    from render.plan.service import ServicePlan

HELD = 50
"""Definitions kept in memory until the services that they depend on have been read; others are read again."""
_SETTER = lazy(r'#[^\n]*?(?P<marker>\{\s*"\$imagepolicy"\s*:[^}\n]*\})')


class Renderer:
    """Reads, checks and plans catalog files, and knows which services it has met."""

    def __init__(
        self,
        context: Context | None,
        seen: Seen | None = None,
        visit: Callable[[ServicePlan], None] | None = None,
        held: int = HELD,
    ) -> None:
        self.context = context
        self.seen = seen
        self.visit = visit
        self.held = held
        self.headers: dict[str, Header] = context.headers if context is not None else {}
        self._deferred: list[tuple[Entered, Definition | tuple[str, str, int]]] = []

    def read(self, path: str, label: str) -> FileOutcome:
        """Read a file, and plan what depends on nothing that is still to come; without a platform, read it only."""
        return self.take(read_definitions(path, label, self.seen), label)

    def take(self, file: CatalogFile, label: str) -> FileOutcome:
        """Plan the services of a file that was read."""
        made = outline(file)
        for header in made.broken:
            self.headers.setdefault(header.name, header)
        for index, definition in enumerate(file.definitions):
            if self.context is None:
                break
            entered = self._register(definition, made)
            if entered is None:
                continue
            made.services.append(entered)
            if not entered.header.enabled:
                continue
            if entered.waits_for(self.headers):
                few = len(self._deferred) < self.held
                self._deferred.append((entered, definition if few else (file.path or "", label, index)))
            else:
                entered.outcome = outcome_of(self.context, definition, entered.header, self.visit)
        return made

    def finish(self) -> Iterator[Entered]:
        """Plan the services that waited, in the order in which they were met."""
        assert self.context is not None
        last: tuple[str, CatalogFile] | None = None
        for entered, held in self._deferred:
            if isinstance(held, tuple):
                path, label, index = held
                if last is None or last[0] != path:
                    last = path, read_definitions(path, label, self.seen)
                if index >= len(last[1].definitions):
                    continue
                definition = last[1].definitions[index]
            else:
                definition = held
            entered.outcome = outcome_of(self.context, definition, entered.header, self.visit)
            yield entered
            entered.outcome = None
        self._deferred = []

    @property
    def awaited(self) -> set[str]:
        """The names that services wait for."""
        return {name for entered, _ in self._deferred for name, _ in entered.edges} - self.headers.keys()

    def _register(self, definition: Definition, made: FileOutcome) -> Entered | None:
        """Enter a definition among the known names; None when the name is taken."""
        assert self.context is not None
        header = header_of(definition, self.context.platform)
        known = self.headers.get(header.name)
        if known is not None and known.is_checked:
            made.diagnostics.append(
                definition.source.fault(
                    "R203",
                    definition.root.get("name"),
                    f"the service name `{header.name}` is taken",
                    cause="names are folders of the output, and what `dependsOn` refers to",
                    hint="rename one of the two; `objectName` may stay the same in another namespace",
                    related=((known.place, "the other one"),),
                )
            )
            return None
        self.headers[header.name] = header
        edges = []
        listed = definition.root.get("dependsOn")
        for index, item in enumerate(definition.service.depends_on):
            name = item if isinstance(item, str) else item.name
            if name is not None:
                edges.append((name, definition.source.place(listed.items[index])))  # type: ignore[union-attr]
        return Entered(header, edges)


def outline(file: CatalogFile) -> FileOutcome:
    """Return what a file adds to the build besides its services."""
    broken = [Header(name, name, name, True, False, Location(file.label), False) for name in file.broken]
    return FileOutcome(file.path, file.is_readable, file.faults, broken, _setter(file))


def _setter(file: CatalogFile) -> tuple[Location, str] | None:
    """Return the first setter marker in a file; whether the bot reads it is known when the whole tree is."""
    if not file.definitions or '"$imagepolicy"' not in file.definitions[0].source.text:
        return None
    source = file.definitions[0].source
    match = _SETTER.search(source.text)
    if match is None:
        return None
    start = source.text.rfind("\n", 0, match.start()) + 1
    line = source.text.count("\n", 0, start) + 1
    place = Location(source.path, line, match.start("marker") - start + 1, len(match["marker"]))
    return place, source.snippet(line)
