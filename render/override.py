"""An override table in a file and images or manifests in, what kustomize makes of them out; needs no catalog."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from render.catalog import read_file, shown_path
from render.diagnostics import Diagnostic
from render.flux.override_sites import Change, transform
from render.flux.overrides import Entry, Outcome, OverrideFailure, Table
from render.plan import paths
from render.plan.context import Report
from render.plan.platform import check_table
from render.yaml.emit import Emitter, derives_wide
from render.yaml.source import Mapping, Node, Scalar, Sequence, Source, parse

PLACES = (("registries", "imageOverrides"), ("images",))
"""Where a table stands in an object: a platform file, or a kustomization."""


@dataclass(slots=True)
class TableFile:
    """A table as it was read, and what is wrong with it."""

    entries: list[Entry] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    source: Source | None = None
    node: Sequence | None = None

    @property
    def failed(self) -> bool:
        """Whether the table cannot be used."""
        return any(one.severity == "error" for one in self.diagnostics)


def read_table(path: Path, *, lint: bool = True) -> TableFile:
    """Read a table from YAML or JSON: a bare list, or an object with `images` or `registries.imageOverrides`.

    Without `lint` also tables that `render` refuses are taken, as kustomize would run them; values that are no
    strings are then taken by their source text.
    """
    source, faults = read_file(path, shown_path(path))
    made = TableFile(diagnostics=faults, source=source)
    if faults:
        return made
    documents, made.diagnostics = parse(source)
    if made.diagnostics:
        return made
    root = documents[0].root if len(documents) == 1 else None
    node, name = _find(root)
    if node is None:
        hint = "write a list of entries, or an object with `images` or `registries.imageOverrides`"
        made.diagnostics = [source.fault("R601", root, "there is no override table in the file", hint=hint)]
        return made
    made.node = node
    if lint:
        report = Report(source)
        check_table(report, node, name)
        made.diagnostics = report.items
    made.entries = [_entry(item) for item in node.items if type(item) is Mapping]
    return made


def _find(root: Node | None) -> tuple[Sequence | None, str]:
    if type(root) is Sequence:
        return root, "entries"
    for place in PLACES:
        found = paths.find(root, place)
        if type(found) is Sequence:
            return found, ".".join(place)
        if type(found) is Scalar and found.is_null:
            return Sequence([]), ".".join(place)
    return None, ""


def _entry(item: Mapping) -> Entry:
    return Entry.of(
        {key.text: value.text for key, value in item.entries if type(value) is Scalar and not value.is_null}
    )


@dataclass(frozen=True, slots=True)
class Prediction:
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


class _Leaves:
    """Scalars of source nodes, for the predictor."""

    def is_null(self, value: object) -> bool:
        return isinstance(value, Scalar) and value.is_null

    def text(self, value: object) -> str:
        assert isinstance(value, Scalar)
        return value.text

    def rewrite(self, value: object, text: str) -> object:
        assert isinstance(value, Scalar)
        return Scalar(text, value.style, value.line, value.column)


def rewrite_manifests(source: Source, entries: Iterable[Entry]) -> tuple[str, list[Change], list[Diagnostic]]:
    """Return a stream of manifests with a table applied, what it changed, and what is wrong."""
    documents, faults = parse(source)
    if faults:
        return "", [], faults
    roots = [document.root for document in documents]
    try:
        made = transform([_data(root) for root in roots], Table(entries), _Leaves())
    except OverrideFailure as failure:
        index = failure.document or 0
        where = paths.find(roots[index], failure.path) or roots[index]
        fault = source.fault(
            "R605",
            where,
            f"kustomize fails on this object: {failure.reason}",
            cause="any entry of a table makes it fail, and with it the whole release",
            hint="leave the object out of the release, or give the release no image overrides",
        )
        return "", [], [fault]
    return "---\n".join(_text(document) for document in made.documents), made.changes, []


def _data(node: Node) -> Any:
    if type(node) is Mapping:
        return {key.text: _data(value) for key, value in node.entries}
    if type(node) is Sequence:
        return [_data(item) for item in node.items]
    return node


def _text(document: Any) -> str:
    text = Emitter().fields("", document)
    return Emitter(wide=True).fields("", document) if derives_wide(text) else text
