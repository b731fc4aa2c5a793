"""What every decision may look at: the platform, the target Flux, the override table, the other services."""

from __future__ import annotations

from render.catalog import Definition, PlatformFile
from render.committed import Committed
from render.diagnostics import Diagnostic, Location
from render.flux.image import canonical_name
from render.flux.overrides import Table
from render.flux.versions import FluxVersion
from render.structs import field, struct
from render.yaml.source import Mapping, Node, Sequence, Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from render.model.platform import Credentials, Override, Platform
    from render.plan.table_notes import TableNotes


@struct(frozen=True)
class Header:
    """What other services may need to know of one: enough to depend on it."""

    name: str
    object_name: str
    namespace: str
    enabled: bool
    is_release: bool
    """Whether it is delivered as a HelmRelease."""
    place: Location
    is_checked: bool = True
    """False for a service that is declared and could not be checked: nothing is said about it twice."""


@struct()
class Context:
    """The platform side of a build."""

    file: PlatformFile
    overrides: list[Override]
    table: Table
    automation: bool
    """False leaves out image automation's objects and markers."""
    committed: Committed | None = None
    """The present tree; None renders as into an empty folder."""
    reset: frozenset[str] = frozenset()
    """Services whose committed image values give way to the catalog's."""
    headers: dict[str, Header] = field(default_factory=dict)
    is_complete: bool = True
    """False when a file could not be read, so that a name may be missing from `headers`."""
    notes: TableNotes | None = None
    """What is surprising about the table; None without one."""
    bot_selector: dict[str, Any] | None = None
    """The selector of the policies that the bot follows, once it has been asked for."""
    releases: dict[bool, dict[str, Any]] = field(default_factory=dict)
    """The sound spec of a release for which the service says nothing, with automatic rollback and without."""

    @property
    def platform(self) -> Platform:
        """The checked platform."""
        return self.file.platform

    @property
    def flux(self) -> FluxVersion:
        """The target version."""
        return self.file.flux

    @property
    def flux_namespace(self) -> str:
        """Where policies and shared sources live."""
        return self.file.platform.flux.namespace

    def credentials(self, image: str) -> list[Credentials]:
        """Return the credentials whose registry matches an image or URL path best; several match equally in a tie.

        An image without a registry is one of `docker.io`, as to every runtime.
        """
        best: list[Credentials] = []
        length = 0
        if self.platform.registries.credentials and "${" not in image:
            image = canonical_name(image)
        for entry in self.platform.registries.credentials:
            host, slash, path = entry.registry.rstrip("/").partition("/")
            prefix = ("docker.io" if host == "index.docker.io" else host.lower()) + slash + path
            if image != prefix and not image.startswith(prefix + "/"):
                continue
            if len(prefix) > length:
                best, length = [entry], len(prefix)
            elif len(prefix) == length:
                best.append(entry)
        return best

    def override_place(self, index: int) -> Location:
        """Return the place of an entry of the override table."""
        return self.notes.table.place(index) if self.notes is not None else self.file.source.place(None)


class Report:
    """Collects what is wrong in one file."""

    __slots__ = ("failed", "items", "source")

    def __init__(self, source: Source) -> None:
        self.source = source
        self.items: list[Diagnostic] = []
        self.failed = False

    def error(
        self,
        code: str,
        node: Node | None,
        message: str,
        *,
        cause: str = "",
        hint: str = "",
        related: tuple[tuple[Location, str], ...] = (),
    ) -> None:
        """Add an error at `node`."""
        self.failed = True
        self.items.append(self.source.fault(code, node, message, cause=cause, hint=hint, related=related))

    def warn(
        self,
        code: str,
        node: Node | None,
        message: str,
        *,
        cause: str = "",
        hint: str = "",
        related: tuple[tuple[Location, str], ...] = (),
    ) -> None:
        """Add a warning at `node`."""
        self.items.append(
            self.source.fault(code, node, message, cause=cause, hint=hint, severity="warning", related=related)
        )


def header_of(definition: Definition, platform: Platform) -> Header:
    """Return the header of a definition."""
    service = definition.service
    return Header(
        name=service.name,
        object_name=service.object_name or service.name,
        namespace=service.namespace or platform.defaults.namespace or service.name,
        enabled=service.enabled,
        is_release=bool(service.source and service.source.chart),
        place=definition.source.place(definition.root.key("name")),
    )


def node_at(root: Node | None, *keys: str | int) -> Node | None:
    """Return the deepest node on a path of keys and indices: the place of what is wrong there, or of its parent."""
    node = root
    for key in keys:
        inner: Node | None = None
        if type(node) is Mapping and isinstance(key, str):
            inner = node.get(key)
        elif type(node) is Sequence and isinstance(key, int) and key < len(node.items):
            inner = node.items[key]
        if inner is None:
            break
        node = inner
    return node
