"""Folders and files in, checked definitions and the platform out; no file is ever skipped in silence."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, cast

from render.diagnostics import Diagnostic, Location
from render.flux.versions import FluxVersion, VersionError
from render.model import schema
from render.model.read import INVALID, Reader
from render.yaml import scalar
from render.yaml.source import Document, Mapping, Node, Scalar, Sequence, Source, decode, parse

if TYPE_CHECKING:
    from render.model.platform import Platform
    from render.model.service import Service

SUFFIXES = (".yaml", ".yml")


@dataclass(slots=True)
class Definition:
    """One checked ServiceDefinition and the file it stands in."""

    service: Service
    root: Mapping
    source: Source
    label: str
    """The catalog folder's name and the path in it: what headers name."""


@dataclass(slots=True)
class PlatformFile:
    """The checked platform file."""

    platform: Platform
    root: Mapping
    source: Source
    label: str
    flux: FluxVersion


@dataclass(slots=True)
class CatalogFile:
    """One file of the catalog: its definitions, and what is wrong with it."""

    label: str
    definitions: list[Definition] = field(default_factory=list)
    faults: list[Diagnostic] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    """Names of services that are declared here and could not be checked."""
    is_readable: bool = True
    """False when not even the names in it are known."""
    path: Path | None = None
    """None for the folder itself."""


def shown_path(path: Path) -> str:
    """Return a path as people see it: relative to the working directory where that is shorter, with `/`."""
    try:
        relative = os.path.relpath(path)
    except ValueError:
        return path.as_posix()
    return relative.replace(os.sep, "/") if not relative.startswith(f"..{os.sep}..") else path.as_posix()


def read_file(path: Path, shown: str) -> tuple[Source, list[Diagnostic]]:
    """Return the source of a file; an unreadable one is a fault, and an empty source."""
    try:
        data = path.read_bytes()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        fault = Diagnostic(
            Location(shown),
            "R001",
            f"cannot read the file: {reason}",
            cause="a file that is skipped would be a service that is deleted",
            hint="make it readable, or remove it",
        )
        return Source(shown, ""), [fault]
    return decode(shown, data)


def read_platform(path: Path) -> tuple[PlatformFile | None, list[Diagnostic]]:
    """Return the platform file, or None and what is wrong with it."""
    shown = shown_path(path)
    if not path.exists():
        hint = "write one (`cluster` and `flux.version` are all it needs), or name another with `--platform`"
        return None, [Diagnostic(Location(shown), "R105", "there is no platform file", hint=hint)]
    source, faults = read_file(path, shown)
    documents: list[Document] = []
    if not faults:
        documents, faults = parse(source)
    if faults:
        return None, faults
    if len(documents) != 1:
        where = documents[1].root if documents else None
        message = "a platform file must hold one document" + ("" if documents else ", and this one is empty")
        return None, [source.fault("R105", where, message, hint="describe one cluster in one file")]
    root = documents[0].root
    value = Reader(source, faults).read(schema.check("platform"), root, "")
    if value is INVALID:
        return None, faults
    platform = cast("Platform", value)
    assert type(root) is Mapping
    node = _flux_version_node(root)
    try:
        flux = FluxVersion.parse(platform.flux.version)
    except VersionError as error:
        return None, [source.fault("R104", node, f"`flux.version` {error}", hint="name the release the cluster runs")]
    return PlatformFile(platform, root, source, path.name, flux), faults


def _flux_version_node(root: Mapping) -> Node | None:
    flux = root.get("flux")
    return flux.get("version") if type(flux) is Mapping else None


def find_files(folder: Path) -> tuple[list[Path], list[Diagnostic]]:
    """Return the definition files below a folder in the order of their paths; hidden ones are left out."""
    found: list[Path] = []
    faults: list[Diagnostic] = []
    _scan(folder, folder, found, faults)
    found.sort(key=lambda path: path.relative_to(folder).as_posix())
    return found, faults


def _scan(folder: Path, top: Path, found: list[Path], faults: list[Diagnostic]) -> None:
    try:
        entries = list(os.scandir(folder))
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        hint = "name the catalog folder, such as `render build catalog`"
        faults.append(Diagnostic(Location(shown_path(folder)), "R001", f"cannot read the folder: {reason}", hint=hint))
        return
    for entry in entries:
        if entry.name.startswith("."):
            continue
        path = Path(entry.path)
        if entry.is_symlink() and (entry.is_dir() or entry.name.endswith(SUFFIXES)):
            target = path.resolve()
            if entry.is_dir() or not target.is_relative_to(top.resolve()):
                faults.append(
                    Diagnostic(
                        Location(shown_path(path)),
                        "R001",
                        "a symbolic link to a folder, or out of the catalog, is not followed",
                        cause="what it points to is not part of the catalog that is reviewed",
                        hint="put the files themselves into the catalog",
                    )
                )
                continue
        if entry.is_dir():
            _scan(path, top, found, faults)
        elif entry.name.endswith(SUFFIXES):
            found.append(path)


def read_catalog(folder: Path) -> Iterator[CatalogFile]:
    """Read a catalog file by file, in the order of their paths."""
    files, faults = find_files(folder)
    if faults:
        yield CatalogFile(folder.name, [], faults, [], False)
    name = folder.resolve().name
    for path in files:
        yield read_definitions(path, f"{name}/{path.relative_to(folder).as_posix()}")


def read_definitions(path: Path, label: str) -> CatalogFile:
    """Read one catalog file."""
    source, faults = read_file(path, shown_path(path))
    file = CatalogFile(label, [], faults, path=path)
    if faults:
        file.is_readable = False
        return file
    documents, file.faults = parse(source)
    file.is_readable = bool(documents) or not file.faults
    check = schema.check("service")
    for document in documents:
        root = document.root
        _hide_secrets(source, root)
        before = len(file.faults)
        value = Reader(source, file.faults).read(check, root, "")
        _lint_scalars(source, root, file.faults)
        if value is not INVALID and not any(fault.severity == "error" for fault in file.faults[before:]):
            assert type(root) is Mapping
            file.definitions.append(Definition(cast("Service", value), root, source, label))
    if any(fault.severity == "error" for fault in file.faults):
        file.definitions = []
        names = [document.root.text("name") for document in documents if type(document.root) is Mapping]
        file.broken = [name for name in names if name is not None]
    return file


def _hide_secrets(source: Source, root: Node) -> None:
    objects = root.get("extraObjects") if type(root) is Mapping else None
    for item in objects.items if type(objects) is Sequence else ():
        if type(item) is Mapping and (item.text("kind") == "Secret" or item.get("sops") is not None):
            source.hide(item)


def _lint_scalars(source: Source, root: Node, faults: list[Diagnostic]) -> None:
    """Warn of plain scalars that the two readers in Flux's path take differently; each place once."""
    seen: set[int] = set()
    stack: list[Node] = [root]
    while stack:
        node = stack.pop()
        if type(node) is Scalar:
            if not node.style and scalar.readers_differ(node.text):
                faults.append(_differing(source, node, "value"))
            continue
        if id(node) in seen:
            continue
        seen.add(id(node))
        if type(node) is Sequence:
            stack.extend(node.items)
            continue
        assert type(node) is Mapping
        for key, value in node.entries:
            if not key.style and scalar.keys_differ(key.text):
                faults.append(_differing(source, key, "key"))
            stack.append(value)


def _differing(source: Source, node: Scalar, what: str) -> Diagnostic:
    shown = source.shown(node)
    return source.fault(
        "R008",
        node,
        f"two readers take the {what} `{shown}` differently",
        cause="the kustomize build reads YAML by other rules than Helm and postBuild substitution do",
        hint=f'quote it if it is text (`"{shown}"`), or write it in one plain form, such as `true` or `17`',
        severity="warning",
    )
