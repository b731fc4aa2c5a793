"""A Flux install manifest and overrides of its images in, the same text with those images rewritten out.

What changes and to what is kustomize's; but where kustomize writes its objects anew, here only the scalars that hold
an overridden image change, and every other byte stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from render.catalog import reason_of, shown_path
from render.diagnostics import Diagnostic, Location
from render.flux.image import ImageError, Reference
from render.flux.override_sites import Image, images, sites
from render.flux.overrides import Outcome, OverrideFailure, Step, Table
from render.override import LEAVES, data_of, kustomize_refuses
from render.plan.context import Report, node_at
from render.plan.table_notes import PlacedTable
from render.redact import printable
from render.report import count
from render.structs import replace
from render.yaml import scalar
from render.yaml.source import Document, Mapping, Node, Scalar, Source, parse
from render.yaml.source import Sequence as SequenceNode
from render.yaml.splice import SpliceError, Splicer

MAX_MIB = 16
"""The largest manifest that is read; all of Flux takes less than one."""
_BOM = "\ufeff"


class Fate(NamedTuple):
    """One image of the manifest and what becomes of it."""

    place: Location
    kind: str
    name: str
    """Of the object, with its namespace before a `/` where it has one."""
    path: str
    before: str
    after: str
    trace: tuple[Step, ...]
    """The entries that match it, in order; none leaves it as it is."""

    @property
    def is_rewritten(self) -> bool:
        """Whether the text changes."""
        return self.before != self.after

    def as_json(self) -> dict[str, object]:
        """Return the documented JSON row."""
        return {
            "line": self.place.line,
            "column": self.place.column,
            "kind": self.kind,
            "name": self.name,
            "path": self.path,
            "before": self.before,
            "after": self.after,
            "entries": [step.entry for step in self.trace],
        }


@dataclass(slots=True)
class Rewrite:
    """A manifest and what overrides make of it."""

    source: Source
    data: bytes = b""
    """What was read."""
    made: bytes = b""
    """The product; equal to `data` when nothing changes."""
    fates: list[Fate] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        """Whether there is no product."""
        return any(one.severity == "error" for one in self.diagnostics)


def read(path: Path, stdin: BinaryIO) -> Rewrite:
    """Read a manifest; `-` is standard input. Nothing is rewritten yet."""
    is_stdin = str(path) == "-"
    shown = "<stdin>" if is_stdin else shown_path(path)
    most = MAX_MIB << 20
    try:
        if is_stdin:
            data = stdin.read(most + 1)
        else:
            with path.open("rb") as file:
                data = file.read(most + 1)
    except OSError as error:
        message = f"cannot read the file: {reason_of(error)}"
        fault = Diagnostic(Location(shown), "R001", message, hint="name a manifest that can be read")
        return Rewrite(Source(shown, ""), diagnostics=[fault])
    if len(data) > most:
        cause = "the install manifest of Flux has less than 1 MiB"
        fault = Diagnostic(
            Location(shown), "R005", f"the manifest has more than {MAX_MIB} MiB", cause=cause, hint="split the file"
        )
        return Rewrite(Source(shown, ""), diagnostics=[fault])
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as unread:
        place = Location(shown, data.count(b"\n", 0, unread.start) + 1)
        message = f"byte 0x{data[unread.start]:02x} is not UTF-8"
        return Rewrite(Source(shown, ""), diagnostics=[Diagnostic(place, "R001", message, hint="save it as UTF-8")])
    return Rewrite(Source(shown, text.removeprefix(_BOM)), data, data)


def rewrite(made: Rewrite, placed: PlacedTable, named: str) -> None:
    """Apply a table to a manifest that was read; `named` is the table's name in messages.

    The product is set only when nothing is wrong.
    """
    documents, faults = parse(made.source)
    # The length of keys matters to the image bot, which never sees a manifest.
    faults = [fault for fault in faults if not fault.message.startswith("a key must be one line")]
    if faults:
        made.diagnostics += faults
        return
    table = Table(placed.entries)
    try:
        found = _images(documents, table)
        outcomes = [table.apply(image.value.text, double=image.doubled) for image in found]
    except OverrideFailure as failure:
        root = documents[failure.document or 0].root
        hint = "move the object into another file"
        made.diagnostics.append(kustomize_refuses(made.source, root, failure, "any override makes it fail", hint))
        return
    for image, outcome in zip(found, outcomes, strict=True):
        made.fates.append(_fate(made.source, documents[image.document].root, image, outcome))
    made.diagnostics += _unmatched(placed, named, made.fates)
    values = _values(made, documents, found)
    if made.failed or not values:
        return
    splicer = Splicer(made.source.text)
    try:
        text = splicer.splice(values)
    except SpliceError:
        faults = _not_spliced(made, splicer, values)
        if not faults:
            raise
        made.diagnostics += faults
        return
    made.made = ((_BOM if made.data.startswith(_BOM.encode()) else "") + text).encode()


def _images(documents: Sequence[Document], table: Table) -> list[Image]:
    """Return the images that kustomize looks at; without entries it looks at none, and so nothing can be wrong."""
    roots = [data_of(document.root) for document in documents]
    if table.entries:
        return images(roots, LEAVES)
    found: list[Image] = []
    for index, root in enumerate(roots):
        try:
            at = sites(root, LEAVES)
        except OverrideFailure:
            continue
        found += (Image(index, site.path, site.doubled, node_at(documents[index].root, *site.path)) for site in at)
    return found


def _fate(source: Source, root: Node, image: Image, outcome: Outcome) -> Fate:
    node = image.value
    assert type(node) is Scalar
    holder = root
    while image.path[:1] == ("items",) and type(holder) is Mapping and type(holder.get("items")) is SequenceNode:
        inner = node_at(holder, *image.path[:2])
        assert inner is not None
        holder, image = inner, replace(image, path=image.path[2:])
    kind = name = namespace = ""
    if type(holder) is Mapping:
        metadata = holder.get("metadata")
        kind = holder.text("kind") or ""
        if type(metadata) is Mapping:
            name, namespace = metadata.text("name") or "", metadata.text("namespace") or ""
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in image.path).removeprefix(".")
    whole = f"{namespace}/{name}" if namespace else name
    return Fate(source.place(node), kind, whole, path, node.text, outcome.text, outcome.trace)


def _unmatched(placed: PlacedTable, named: str, fates: Sequence[Fate]) -> list[Diagnostic]:
    """Report the entries that match no image of the manifest."""
    import difflib

    hit = {step.entry for fate in fates for step in fate.trace}
    names = sorted({_name(fate.before) for fate in fates})
    report = Report(placed.source)
    for index, entry in enumerate(placed.entries):
        if index in hit:
            continue
        taken = next((step for fate in fates for step in fate.trace if _name(step.before) == entry.name), None)
        close = difflib.get_close_matches(entry.name, names, 1)
        cause = "an entry that does nothing is a misspelled name, or an image that this Flux does not have"
        hint = f"write `name: {close[0]}`, or delete the entry" if close else "delete the entry, or correct its name"
        if taken is not None:
            cause = f"`{named}[{taken.entry}]` stands above it, and rewrites `{taken.before}` first"
            hint = "merge the two entries, or move this one up"
        report.error(
            "R801",
            node_at(placed.node, index, "name"),
            f"`{named}[{index}]`: no image of the manifest is `{entry.name}`",
            cause=cause,
            hint=hint,
        )
    return report.items


def _name(image: str) -> str:
    try:
        return Reference.parse(image).name
    except ImageError:
        return image


def _values(made: Rewrite, documents: Sequence[Document], found: Sequence[Image]) -> dict[tuple[int, int], str]:
    """Return each scalar's place with its new text; reports what cannot be rewritten where it stands.

    Of a value that aliases repeat, all uses change with it, so all of them must be images that become the same.
    """
    values: dict[tuple[int, int], str] = {}
    results: dict[int, list[str]] = {}
    for image, fate in zip(found, made.fates, strict=True):
        results.setdefault(id(image.value), []).append(fate.after)
    changed = {id(image.value): image for image, fate in zip(found, made.fates, strict=True) if fate.is_rewritten}
    uses = _uses([documents[index].root for index in sorted({one.document for one in changed.values()})], changed)
    report = Report(made.source)
    for key, image in changed.items():
        node, after = image.value, results[key]
        assert type(node) is Scalar
        if len(set(after)) > 1 or len(after) < uses[key]:
            report.error(
                "R803",
                node,
                f"aliases repeat `{node.text}` where it does not become `{after[0]}`",
                cause="kustomize writes every use of an anchor out, and rewrites those that are images",
                hint="write the value out in place of its aliases",
            )
        elif not node.style and scalar.kyaml(after[0]).kind not in ("string", "timestamp"):
            report.error(
                "R803",
                node,
                f"`{node.text}` would become `{after[0]}`, which is no string without quotes",
                cause="kustomize keeps the quotes that an image has, and here it has none",
                hint="quote the image, or give the entry a tag",
            )
        else:
            values[node.line, node.column] = after[0]
    made.diagnostics += report.items
    return values


def _uses(roots: Sequence[Node], wanted: dict[int, Image]) -> dict[int, int]:
    """Return how often each of the wanted scalars stands in the documents, aliases and merge keys written out."""
    uses = dict.fromkeys(wanted, 0)
    stack: list[Any] = list(roots)
    while stack:
        node = stack.pop()
        if type(node) is Mapping:
            for key, value in node.entries:
                stack += (key, value)
        elif type(node) is SequenceNode:
            stack += node.items
        elif id(node) in uses:
            uses[id(node)] += 1
    return uses


def _not_spliced(made: Rewrite, splicer: Splicer, values: dict[tuple[int, int], str]) -> list[Diagnostic]:
    """Report the images that cannot be changed each by itself."""
    report = Report(made.source)
    places = {(fate.place.line, fate.place.column): fate for fate in made.fates}
    for place, value in values.items():
        try:
            splicer.splice({place: value})
        except SpliceError as error:
            report.error(
                "R803",
                Scalar("", "", *place, length=places[place].place.length),
                f"`{places[place].before}` cannot be rewritten where it stands: {error}",
                cause="nothing but the text of the image may change",
                hint="write the image on one line, in quotes",
            )
    return report.items


def lines(made: Rewrite, *, listed: bool, stops: bool) -> list[str]:
    """Return what is told of each image, if `listed`, and a last line that counts; `stops` leaves all as it was."""
    if not made.fates and made.failed:
        return []
    told = []
    for fate in made.fates if listed else ():
        if fate.is_rewritten:
            end = f"`{fate.before}` -> `{fate.after}`"
        else:
            end = f"`{fate.before}` stays" + ("" if fate.trace else ", no entry matches")
        told.append(f"{fate.place}: {fate.kind} {fate.name}: {end}")
    changed = sum(fate.is_rewritten for fate in made.fates)
    would = "would be " if stops else ""
    told.append(f"{count(len(made.fates), 'image')}: {changed} {would}rewritten, {len(made.fates) - changed} unchanged")
    return [printable(line) for line in told]


def summary(made: Rewrite, placed: PlacedTable | None, *, written: bool) -> dict[str, object]:
    """Return what the JSON report says beside its diagnostics."""
    entries = []
    for index, entry in enumerate(placed.entries if placed is not None else ()):
        hits = sum(any(step.entry == index for step in fate.trace) for fate in made.fates)
        entries.append(
            {
                "name": entry.name,
                "newName": entry.new_name or None,
                "newTag": entry.new_tag or None,
                "digest": entry.digest or None,
                "images": hits,
            }
        )
    return {
        "file": made.source.path,
        "changed": made.made != made.data,
        "written": written and made.made != made.data,
        "images": [fate.as_json() for fate in made.fates],
        "entries": entries,
    }
