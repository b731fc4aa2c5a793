"""A release's own image post-renderers and the platform's table in, what they make of a reference out."""

from __future__ import annotations

from collections.abc import Iterable

from render.catalog import Definition
from render.diagnostics import Location
from render.flux.overrides import Entry, Outcome, OverrideFailure, Table
from render.plan import paths
from render.plan.context import Context, Report
from render.structs import struct
from render.yaml.source import Mapping, Scalar, Sequence

_NEVER = Entry(name="never/matches@none")
"""Stands for an entry that the release does not carry: indices into the table stay what they are."""


@struct(frozen=True)
class OwnEntry:
    """An `images` entry in the service's own post-renderers."""

    entry: Entry
    node: Mapping


class Renderers:
    """The post-renderers that an image of the service passes, in order."""

    def __init__(self, context: Context, definition: Definition, report: Report) -> None:
        self.context = context
        self.report = report
        self.table = context.table
        self.own: list[tuple[list[OwnEntry], Table]] = []
        self.failed = False
        """Whether kustomize would fail on the service's own entries, so that nothing can be said of any image."""
        source = definition.service.source
        if definition.service.post_renderers and source is not None and source.chart is not None:
            own = [_entries(renderer) for renderer in definition.service.post_renderers]
            self.own = [(listed, Table(own.entry for own in listed)) for listed in own if listed]
        for listed, _ in self.own:
            for own_entry in listed:
                self._check(own_entry)

    def _check(self, own: OwnEntry) -> None:
        try:
            Table([own.entry]).apply("")
        except OverrideFailure as failure:
            self.failed = True
            name = own.node.get("name")
            shown = self.report.source.shown(name) if type(name) is Scalar else ""
            self.report.error(
                "R602",
                name,
                f"the post-renderer entry `{shown}` is no regular expression: "
                + failure.reason.partition("no regular expression: ")[2],
                cause="kustomize reads the name as one and panics, and the whole release would fail",
                hint="escape the special characters of the name",
            )

    @property
    def is_idle(self) -> bool:
        """Whether every reference stays as it is."""
        return not self.own and not self.table.entries

    @property
    def emitted(self) -> list[int]:
        """Indices of the table's entries that the release carries."""
        return [i for i, entry in enumerate(self.table.entries) if entry is not _NEVER]

    def declare(self, texts: Iterable[str], mode: str) -> None:
        """Keep what the mode emits: `all` entries, those matching a `declared` image, or `none`.

        `texts` are the declared images as the table meets them.
        """
        if mode == "all" or not self.table.entries:
            return
        hit: set[int] = set()
        if mode == "declared":
            for text in texts:
                hit.update(step.entry for step in self.context.table.apply(text).trace)
        kept = [entry if i in hit else _NEVER for i, entry in enumerate(self.context.table.entries)]
        self.table = Table(kept) if hit else Table(())

    def before_table(self, text: str) -> tuple[str, OwnEntry | None]:
        """Return what the release's own post-renderers make of a reference, and the last that set a tag or digest."""
        deciding: OwnEntry | None = None
        for listed, table in self.own:
            outcome = table.apply(text)
            for step in outcome.trace:
                if decides(listed[step.entry].entry):
                    deciding = listed[step.entry]
            text = outcome.text
        return text, deciding

    def rewrite(self, text: str) -> Outcome:
        """Return what the release's post-renderers make of a reference; the trace is the platform table's."""
        return Outcome(text, ()) if self.failed else self.table.apply(self.before_table(text)[0])

    def place(self, own: OwnEntry) -> Location:
        """Return the place of one of the service's own entries."""
        return self.report.source.place(own.node.get("name") or own.node)


def decides(entry: Entry) -> bool:
    """Whether an entry sets the version."""
    return bool(entry.new_tag or entry.digest)


def _entries(renderer: object) -> list[OwnEntry]:
    images = paths.find(renderer, ("kustomize", "images")) if isinstance(renderer, Mapping) else None
    found = []
    for item in images.items if type(images) is Sequence else ():
        if type(item) is Mapping:
            raw = {key.text: item.text(key.text) or "" for key, _ in item.entries}
            found.append(OwnEntry(Entry.of(raw), item))
    return found
