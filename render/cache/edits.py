"""A few edited files of the catalog in, what the whole build would say out, as long as nothing else can have changed.

The files are planned as they were and as they are. Where both give the same facts that other services or the tree's own
files depend on (names, namespaces, dependencies, objects, policies, shared sources, the set of files), the rest of the
build is that of the record: only texts, and what is said of these services, can differ. Everything else, errors
included, is left to a build of the whole catalog.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from render.build import prepare, told_once
from render.cache import store
from render.catalog import PlatformFile, definitions_of, prefixes, read_definitions
from render.files import read_bytes
from render.headers import data_of
from render.plan.context import Context, Header, header_of
from render.renderer import Renderer
from render.structs import replace, struct
from render.tree import compare_known
from render.yaml.source import decode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from render.build import Build
    from render.cache.replay import Memory
    from render.catalog import CatalogFile
    from render.diagnostics import Diagnostic
    from render.outcome import Entered, FileOutcome, Outcome
    from render.plan.sources import SourcePlan
    from render.tree import Changes

MOST_NEWER = 64
"""Edited files that are kept beside a record; with one more, the whole catalog is read, and recorded, anew."""
Kept = list[tuple[str, str, str]]


@struct()
class Edited:
    """A build of which only the edited services were planned."""

    made: Build
    changes: Changes
    contents: dict[str, bytes]
    """The edited files of the catalog by path."""


class _ElsewhereError(Exception):
    """Raised when an edit may reach further than the services of its file."""


def apply(
    memory: Memory,
    catalog: str,
    platform_path: str,
    *,
    root: Callable[[PlatformFile], str],
    automation: bool,
    reset: frozenset[str],
    reinstall: frozenset[str],
) -> Edited | None:
    """Return the build and the changes that the edits make; None when the whole catalog has to be read."""
    if memory.record is None or len({*memory.late["newer"], *memory.edited}) > MOST_NEWER:
        return None
    value = store.load(memory.edit_path)
    if type(value) is not dict or value.get("token") != memory.record["token"]:
        return None
    value |= memory.late
    made, context = prepare(platform_path, automation=automation, root=root, reset=reset)
    if context is None or made.root is None:
        return None
    try:
        contents = _Edits(made, context, value, memory.base_path, prefixes(catalog)).take(memory.edited)
    except (_ElsewhereError, OSError):
        return None
    changes = compare_known(made, made.root, reinstall)
    if made.failed or changes.diagnostics:
        return None
    changes.unchanged += value["files"] - len(made.files)
    return Edited(made, changes, contents)


def _unpickled(data: bytes) -> list[Diagnostic]:
    if not data:
        return []
    import pickle

    made: list[Diagnostic] = pickle.loads(data)  # noqa: S301 - its digest was proved
    return made


class _Edits:
    def __init__(self, made: Build, context: Context, value: dict[str, Any], base: str, names: tuple[str, str]) -> None:
        self.made = made
        self.context = context
        self.value = value
        self.base = base
        self.prefix, self.name = names
        self.told = _unpickled(value["diagnostics"])
        self.kept: Kept = list(value["kept"])

    def take(self, edited: list[str]) -> dict[str, bytes]:
        """Put the build together; return the edited files. Raises _ElsewhereError."""
        contents = {}
        for path in edited:
            contents[path] = read_bytes(path)
            before = self._file(path, self._before(path))
            after = self._file(path, contents[path])
            headers = self._headers((before, after), edited)
            self._replace(path, self._plan(before, headers), self._plan(after, headers))
        made, value = self.made, self.value
        made.names = frozenset(value["names"])
        made.paths = value["names"]
        made.services, made.sources, made.kept = value["services"], value["sources"], self.kept
        made.diagnostics = told_once([*made.diagnostics, *self.told])
        return contents

    def _before(self, path: str) -> bytes:
        """Return what an edited file was; raises _ElsewhereError when that is not known any more."""
        newer = self.value["newer"].get(path)
        found = newer if newer is not None else store.part(self.base, *self.value["index"][path])
        if found is None:
            raise _ElsewhereError
        return bytes(found)

    def _label(self, path: str) -> str:
        return f"{self.name}/{path.removeprefix(self.prefix)}"

    def _file(self, path: str, data: bytes) -> CatalogFile:
        return definitions_of(*decode(path, data), path, self._label(path))

    def _headers(self, files: tuple[CatalogFile, ...], edited: list[str]) -> dict[str, Header]:
        """Return the headers of the services in other files that those in these files depend on."""
        own = {definition.service.name for file in files for definition in file.definitions}
        found: dict[str, Header] = {}
        for definition in (one for file in files for one in file.definitions):
            for item in definition.service.depends_on:
                name = item if isinstance(item, str) else item.name
                if name is None or name in own or name in found:
                    continue
                path = self.value["names"].get(name)
                if path is None or path in edited:
                    raise _ElsewhereError
                for other in read_definitions(path, self._label(path)).definitions:
                    if other.service.name == name:
                        found[name] = header_of(other, self.context.platform)
                if name not in found:
                    raise _ElsewhereError
        return found

    def _plan(self, file: CatalogFile, headers: dict[str, Header]) -> FileOutcome:
        renderer = Renderer(replace(self.context, headers=dict(headers)))
        made = renderer.take(file, file.label)
        # An outcome is the renderer's only until the next one.
        late = [(entered, entered.outcome) for entered in renderer.finish()]
        for entered, outcome in late:
            entered.outcome = outcome
        return made

    def _replace(self, path: str, before: FileOutcome, after: FileOutcome) -> None:
        """Put what the file adds now in the place of what it added; raises _ElsewhereError when that is not all."""
        if _facts(before) != _facts(after):
            raise _ElsewhereError
        was = {*before.diagnostics, *(one for outcome in _outcomes(before) for one in outcome.diagnostics)}
        self.told = [one for one in self.told if one not in was]
        for one in self.told:
            # It is said of this file because of others, or of others because of it; its lines may have moved.
            if one.location.path == path or any(place.path == path for place, _ in one.related):
                raise _ElsewhereError
        self.told += after.diagnostics
        for outcome in _outcomes(after):
            self.told += outcome.diagnostics
            self.made.taken |= outcome.taken
            for name, data in outcome.files:
                self.made.files.add(name, data)
        self._replace_kept(_kept(before), _kept(after))

    def _replace_kept(self, before: Kept, after: Kept) -> None:
        if before == after:
            return
        start = self.kept.index(before[0]) if before and before[0] in self.kept else -1
        if start < 0 or self.kept[start : start + len(before)] != before:
            raise _ElsewhereError
        self.kept[start : start + len(before)] = after


def _outcomes(file: FileOutcome) -> Iterator[Outcome]:
    return (entered.outcome for entered in file.services if entered.outcome is not None)


def _kept(file: FileOutcome) -> Kept:
    return [one for outcome in _outcomes(file) for one in outcome.kept]


def _facts(file: FileOutcome) -> list[tuple[Any, ...]]:
    """Return all of a file's services that others may depend on; raises _ElsewhereError when it cannot be told."""
    told = [*file.diagnostics, *(one for outcome in _outcomes(file) for one in outcome.diagnostics)]
    if not file.is_readable or file.broken or file.setter or any(one.severity == "error" for one in told):
        raise _ElsewhereError
    return [_service(entered) for entered in file.services]


def _source(plan: SourcePlan) -> bytes:
    common = {"name": plan.name, "namespace": plan.namespace, "labels": None, "annotations": None}
    return data_of("", [(plan.template, {**common, **plan.spec})])


def _service(entered: Entered) -> tuple[Any, ...]:
    header, outcome = entered.header, entered.outcome
    head = tuple(getattr(header, name) for name in Header.__match_args__ if name != "place")
    edges = [name for name, _ in entered.edges]
    if outcome is None:
        return head, edges
    if outcome.rendered is None or outcome.noted is not None:
        raise _ElsewhereError
    files = dict(outcome.files)
    if any(b"ImagePolicy" in data for path, data in files.items() if path.endswith("/extra.yaml")):
        # Files of people may lean on it.
        raise _ElsewhereError
    source = files.get(f"apps/{outcome.name}/source.yaml", b"")
    rendered = outcome.rendered
    return (
        head,
        edges,
        list(files),
        # Another service may take its chart from there.
        [line for line in source.split(b"\n") if b"url:" in line],
        [path for path, _ in outcome.foreign],
        [identity for identity, _ in outcome.identities],
        [(policy.name, policy.owner) for policy in outcome.policies],
        [_source(one) for one in outcome.shared],
        sorted(outcome.namespaces),
        outcome.carries_table,
        [getattr(rendered, name) for name in rendered.__match_args__ if name != "header"],
    )
