"""An override table in a file and images or manifests in, what kustomize makes of them out; needs no catalog."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from render.catalog import read_platform, reason_of, shown_path
from render.diagnostics import Diagnostic, Location
from render.flux.override_sites import Change, transform
from render.flux.overrides import Entry, Outcome, OverrideFailure, Table
from render.plan import paths
from render.plan.context import Report
from render.plan.platform import check_table
from render.plan.table_notes import PlacedTable
from render.structs import field, struct
from render.yaml import scalar
from render.yaml.emit import Emitter
from render.yaml.source import Mapping, Node, Scalar, Source, decode, parse
from render.yaml.source import Sequence as SequenceNode

PLACES = (("registries", "imageOverrides"), ("images",))
"""Where a table stands in an object: a platform file, or a kustomization."""


@struct()
class TableFile:
    """A table as it was read, and what is wrong with it."""

    source: Source
    node: Node | None = None
    """The list of the entries."""
    entries: list[Entry] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        """Whether the table cannot be used."""
        return any(one.severity == "error" for one in self.diagnostics)

    @property
    def placed(self) -> PlacedTable:
        """The table with its place."""
        return PlacedTable(self.entries, self.source, self.node)


def read_table(path: Path, *, lint: bool = True, may_be_absent: bool = False) -> TableFile:
    """Read a table from YAML or JSON: a bare list, or an object with `images` or `registries.imageOverrides`.

    Without `lint` also tables that `render` refuses are taken, as kustomize would run them; values that are no
    strings are then taken by their source text. `may_be_absent`: an object without a table, as a platform file may
    be, is an empty table.
    """
    source, faults = _decoded(path)
    made = TableFile(source, diagnostics=faults)
    documents, made.diagnostics = ([], faults) if faults else parse(source)
    if made.diagnostics:
        return made
    root = documents[0].root if len(documents) == 1 else None
    made.node, name = _find(root)
    if made.node is None:
        if may_be_absent and type(root) is Mapping:
            return made
        hint = "write a list of entries, or an object with `images` or `registries.imageOverrides`"
        made.diagnostics = [source.fault("R601", root, "there is no override table in the file", hint=hint)]
        return made
    items = made.node.items if type(made.node) is SequenceNode else []
    report = Report(source)
    if lint:
        check_table(report, made.node, name)
    for index, item in enumerate(items if not lint else ()):
        if type(item) is not Mapping:
            report.error("R601", item, f"`{name}[{index}]`: an entry must be a map", hint="write `name: …`")
    made.diagnostics = report.items
    made.entries = [_entry(item) for item in items if type(item) is Mapping]
    return made


def read_json_table(text: str, name: str) -> TableFile:
    """Read a table from an argument, which is nothing but one JSON list; `name` stands for the file's in messages.

    JSON is YAML too, which gives faults their columns; that it is JSON is checked first.
    """
    # No string of JSON holds a tab, which YAML takes for no indentation.
    source = Source(name, text.replace("\t", " "))
    made = TableFile(source)
    hint = 'write `[{"name": "…", "newName": "…"}]`'
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as unread:
        after = unread.msg == "Extra data"
        message = "nothing may stand after the list" if after else f"not JSON: {unread.msg[0].lower()}{unread.msg[1:]}"
        made.diagnostics = [source.fault("R802", Scalar("", "", unread.lineno, unread.colno), message, hint=hint)]
        return made
    except (ValueError, RecursionError) as error:
        told = "too many lists in each other" if isinstance(error, RecursionError) else f"not JSON: {error}"
        made.diagnostics = [source.fault("R802", Scalar("", "", 1, 1), told, hint=hint)]
        return made
    if not isinstance(value, list):
        made.diagnostics = [source.fault("R802", Scalar("", "", 1, 1), "the overrides must be a list", hint=hint)]
        return made
    documents, made.diagnostics = parse(source)
    if made.diagnostics:
        return made
    made.node = documents[0].root
    items = made.node.items if type(made.node) is SequenceNode else []
    report = Report(source)
    check_table(report, made.node, name)
    for item in items:
        for key, inner in item.entries if type(item) is Mapping else ():
            if type(inner) is Scalar and inner.is_null:
                report.error("R802", inner, f"`{key.text}` must be a string, not null", hint=f"delete `{key.text}`")
    made.diagnostics = report.items
    made.entries = [_entry(item) for item in items if type(item) is Mapping]
    return made


def read_flux_table(path: Path) -> TableFile:
    """Read the overrides of Flux's own images from a platform file, which must be sound; an absent list is empty."""
    file, faults = read_platform(path)
    if file is None:
        return TableFile(Source(shown_path(path), ""), diagnostics=faults)
    made = TableFile(file.source, file.root.get("fluxImageOverrides"))
    report = Report(file.source)
    check_table(report, made.node, "fluxImageOverrides")
    made.diagnostics = report.items
    items = made.node.items if type(made.node) is SequenceNode else []
    made.entries = [_entry(item) for item in items if type(item) is Mapping]
    return made


def _refuse_constant(name: str) -> None:
    raise ValueError(f"`{name}` is no JSON value")


def _find(root: Node | None) -> tuple[Node | None, str]:
    """Return the list of the entries and its name; no node where there is none."""
    if type(root) is SequenceNode:
        return root, "entries"
    for place in PLACES:
        found = paths.find(root, place)
        if type(found) is SequenceNode or (type(found) is Scalar and found.is_null):
            return found, ".".join(place)
    return None, ""


def _entry(item: Mapping) -> Entry:
    texts = {key.text: value.text for key, value in item.entries if type(value) is Scalar and not value.is_null}
    return Entry.of(texts)


def _read(path: Path) -> tuple[bytes, list[Diagnostic]]:
    """Return the bytes of a file, or of what a shell gives as one."""
    try:
        return path.read_bytes(), []
    except OSError as error:
        fault = f"cannot read the file: {reason_of(error)}"
        return b"", [Diagnostic(Location(shown_path(path)), "R001", fault, hint="name a file that can be read")]


def _decoded(path: Path) -> tuple[Source, list[Diagnostic]]:
    """Return the source of a file with a table."""
    data, faults = _read(path)
    if faults:
        return Source(shown_path(path), ""), faults
    source, faults = decode(shown_path(path), data)
    if "\t" in source.text and _is_json(source.text):
        # JSON may be indented by tabs, YAML may not; no string of JSON holds one.
        source = Source(source.path, source.text.replace("\t", " "))
    return source, faults


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


class Prediction(NamedTuple):
    """One image and what becomes of it."""

    declared: str
    outcome: Outcome | None
    """None when kustomize fails."""
    failure: str = ""


def predict(entries: Iterable[Entry], images: Iterable[str]) -> list[Prediction]:
    """Return what a table makes of images."""
    table = Table(entries)
    made = []
    for image in images:
        try:
            made.append(Prediction(image, table.apply(image)))
        except OverrideFailure as failure:
            made.append(Prediction(image, None, failure.reason))
    return made


def as_json(predictions: Iterable[Prediction]) -> list[dict[str, Any]]:
    """Return predictions as the documented JSON rows."""
    return [
        {
            "declared": one.declared,
            "effective": one.outcome.text if one.outcome else None,
            "entries": [step.entry for step in one.outcome.trace] if one.outcome else [],
            **({"error": one.failure} if one.failure else {}),
        }
        for one in predictions
    ]


def as_text(predictions: Iterable[Prediction], entries: Sequence[Entry]) -> str:
    """Return predictions as lines: the image and what it becomes, then each entry that hits it."""
    lines = []
    for one in predictions:
        if one.outcome is None:
            lines.append(f"{one.declared}: {one.failure}")
            continue
        lines.append(f"{one.declared} -> {one.outcome.text}")
        lines += (
            f"  entry {step.entry} `{entries[step.entry].name}`: {step.before} -> {step.after}"
            for step in one.outcome.trace
        )
    return "".join(f"{line}\n" for line in lines)


class _Leaves:
    """Scalars of source nodes, for the predictor."""

    def is_null(self, value: object) -> bool:
        return isinstance(value, Scalar) and value.is_null

    def text(self, value: object) -> str:
        return value.text if isinstance(value, Scalar) else str(value)

    def rewrite(self, value: object, text: str) -> object:
        return Scalar(text, value.style if isinstance(value, Scalar) else '"')


LEAVES = _Leaves()


class Rewritten(NamedTuple):
    """Manifests with a table applied."""

    text: str
    changes: list[Change]


def read_manifests(path: Path, stdin: BinaryIO) -> tuple[Source, list[Diagnostic]]:
    """Return the source of a stream of manifests of any size; `-` is standard input."""
    is_stdin = str(path) == "-"
    shown = "<stdin>" if is_stdin else shown_path(path)
    data, faults = (stdin.read(), []) if is_stdin else _read(path)
    if faults:
        return Source(shown, ""), faults
    try:
        return Source(shown, data.decode("utf-8").removeprefix("\ufeff")), []
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        message = f"byte 0x{data[error.start]:02x} is not UTF-8"
        return Source(shown, ""), [Diagnostic(Location(shown, line), "R001", message, hint="save it as UTF-8")]


def rewrite_manifests(source: Source, entries: Iterable[Entry]) -> tuple[Rewritten | None, list[Diagnostic]]:
    """Return a stream of manifests with a table applied as kustomize applies it; None and the faults otherwise.

    What is printed equals kustomize's output as objects, in the order given.
    """
    documents, faults = parse(source)
    # Long keys are a matter of the image bot's rewrite, which never sees these manifests.
    faults = [fault for fault in faults if not fault.message.startswith("a key must be one line")]
    if faults:
        return None, faults
    roots = [document.root for document in documents]
    try:
        made = transform([data_of(root) for root in roots], Table(entries), LEAVES)
    except OverrideFailure as failure:
        return None, [kustomize_refuses(source, roots[failure.document or 0], failure)]
    texts = (Emitter().fields("", _settled(document)) for document in made.documents)
    return Rewritten("---\n".join(texts), made.changes), []


def kustomize_refuses(
    source: Source,
    root: Node,
    failure: OverrideFailure,
    cause: str = "any entry of a table makes it fail, and with it the whole release",
    hint: str = "leave the object out of the release, or give the release no image overrides",
) -> Diagnostic:
    """Return the fault of an object, or of a table, on which kustomize fails."""
    where = paths.find(root, failure.path) or root
    if failure.entry is not None:
        return source.fault("R601", where, failure.reason, cause="it does when it looks at the first image")
    message = f"kustomize fails on this object: {failure.reason}"
    return source.fault("R605", where, message, cause=cause, hint=hint)


def data_of(node: Node) -> Any:
    """Return a tree of nodes as maps and lists of scalars, for the predictor with `LEAVES`."""
    if type(node) is Mapping:
        return {key.text: data_of(value) for key, value in node.entries}
    if type(node) is SequenceNode:
        return [data_of(item) for item in node.items]
    return node


def _settled(node: Any, path: tuple[str, ...] = ()) -> Any:
    """Return an object as kustomize leaves it: every reader takes each value for what kustomize took it for.

    Annotation values become strings, dates too, and annotations without any are left out.
    """
    if isinstance(node, list):
        return [_settled(item, (*path, "")) for item in node]
    if isinstance(node, dict):
        made = {key: _settled(value, (*path, key)) for key, value in node.items()}
        if path == ("metadata",) and _is_empty(made.get("annotations")):
            made.pop("annotations", None)
        return made
    if not isinstance(node, Scalar) or node.is_string:
        return node
    if path[:2] == ("metadata", "annotations") and len(path) == 3:
        return Scalar(node.text, '"')
    read = scalar.kyaml(node.text)
    if read.kind in ("string", "timestamp"):
        return Scalar(str(read.value), '"')
    return Scalar(json.dumps(read.value), "") if scalar.readers_differ(node.text) else node


def _is_empty(annotations: object) -> bool:
    return not annotations or (isinstance(annotations, Scalar) and annotations.is_null)
