"""Folders and files in, checked definitions and the platform out; no file is ever skipped in silence."""

from __future__ import annotations

import os
from collections.abc import Iterator

from render.diagnostics import Diagnostic, Location
from render.files import Seen, StrPath, below, is_inside, read_bytes
from render.flux.versions import FluxVersion, VersionError
from render.model import schema
from render.model.read import INVALID, Reader
from render.patterns import lazy
from render.structs import cast, field, replace, struct
from render.yaml import scalar
from render.yaml.source import Document, Mapping, Node, Scalar, Sequence, Source, decode, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from render.model.platform import Platform
    from render.model.service import Service

SUFFIXES = (".yaml", ".yml")
# What no comment of a YAML file can hold: controls, line ends, and bytes that are not UTF-8 (surrogates in Python).
_ODD_NAME = lazy(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")


@struct()
class Definition:
    """One checked ServiceDefinition and the file it stands in."""

    service: Service
    root: Mapping
    source: Source
    label: str
    """The catalog folder's name and the path in it: what headers name."""


@struct()
class PlatformFile:
    """The checked platform file."""

    platform: Platform
    root: Mapping
    source: Source
    label: str
    flux: FluxVersion


@struct()
class CatalogFile:
    """One file of the catalog: its definitions, and what is wrong with it."""

    label: str
    definitions: list[Definition] = field(default_factory=list)
    faults: list[Diagnostic] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    """Names of services that are declared here and could not be checked."""
    is_readable: bool = True
    """False when not even the names in it are known."""
    path: str | None = None
    """None for the folder itself."""


def shown_path(path: StrPath) -> str:
    """Return a path as people see it: relative to the working directory where that is shorter, with `/`."""
    relative = os.path.relpath(path)
    return os.fspath(path) if relative.startswith("../..") else relative


def read_file(path: StrPath, shown: str, seen: Seen | None = None) -> tuple[Source, list[Diagnostic]]:
    """Return the source of a file; an unreadable one is a fault, and an empty source."""
    try:
        data = read_bytes(path)
    except OSError as error:
        fault = Diagnostic(
            Location(shown),
            "R001",
            f"cannot read the file: {reason_of(error)}",
            cause="a file that is skipped would be a service that is deleted",
            hint="make it readable, or remove it",
        )
        return Source(shown, ""), [fault]
    if seen is not None:
        seen.add(path, data)
    return decode(shown, data)


def reason_of(error: OSError) -> str:
    """Return what the system says of a failed call, without the path."""
    return (error.strerror or str(error)).lower()


def _is_odd(name: str) -> bool:
    # None of those characters is printable.
    return not name.isprintable() and _ODD_NAME.search(name) is not None


def odd_name(path: StrPath, name: str) -> Diagnostic | None:
    """Return the fault of a file or folder name that no header line could hold; None for a sound one."""
    if not _is_odd(name):
        return None
    return Diagnostic(
        Location(shown_path(path)),
        "R001",
        "the name holds a control character, or is not UTF-8",
        cause="names of catalog files stand in a comment of every generated file",
        hint="rename it",
    )


def read_platform(path: StrPath, seen: Seen | None = None) -> tuple[PlatformFile | None, list[Diagnostic]]:
    """Return the platform file, or None and what is wrong with it."""
    shown = shown_path(path)
    if not os.path.lexists(path):
        hint = "write one (`cluster` and `flux.version` are all it needs), or name another with `--platform`"
        return None, [Diagnostic(Location(shown), "R105", "there is no platform file", hint=hint)]
    odd = odd_name(path, os.path.basename(path))
    source, faults = read_file(path, shown, seen) if odd is None else (Source(shown, ""), [odd])
    documents: list[Document] = []
    if not faults:
        documents, faults = parse(source)
    if faults:
        return None, faults
    if len(documents) != 1:
        where = documents[1].root if documents else None
        met = f"this one has {len(documents)}" if documents else "this one is empty"
        message = f"a platform file must hold one document, and {met}"
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
        wanted, _, examples = str(error).partition(", such as ")
        hint = "name the release the cluster runs" + (f", such as {examples}" if examples else "")
        return None, [source.fault("R104", node, f"`flux.version` {wanted}, not `{platform.flux.version}`", hint=hint)]
    return PlatformFile(platform, root, source, os.path.basename(path), flux), faults


def _flux_version_node(root: Mapping) -> Node | None:
    flux = root.get("flux")
    return flux.get("version") if type(flux) is Mapping else None


def find_files(folder: StrPath, seen: Seen | None = None) -> tuple[list[str], list[Diagnostic]]:
    """Return the definition files below a folder, as sorted paths below it with `/`; hidden ones are left out."""
    found: list[str] = []
    faults: list[Diagnostic] = []
    top = os.fspath(folder)
    _scan(top, top, "", found, faults, seen)
    found.sort()
    return found, faults


def _scan(folder: str, top: str, prefix: str, found: list[str], faults: list[Diagnostic], seen: Seen | None) -> None:
    try:
        entries = list(os.scandir(folder))
    except OSError as error:
        hint = "name the catalog folder, such as `render build catalog`"
        told = f"cannot read the folder: {reason_of(error)}"
        faults.append(Diagnostic(Location(shown_path(folder)), "R001", told, hint=hint))
        return
    counted: list[str] = []
    if seen is not None:
        seen.folders[shown_path(folder)] = counted
    for entry in entries:
        if entry.name.startswith("."):
            continue
        is_folder = _is_folder(entry)
        if not (is_folder or entry.name.endswith(SUFFIXES)):
            continue
        counted.append(("d" if is_folder else "f") + entry.name)
        if seen is not None and entry.is_symlink():
            seen.is_plain = False
        fault = None
        if _is_odd(entry.name) or entry.is_symlink():
            path = below(folder, entry.name)
            fault = odd_name(path, entry.name) or _link_fault(path, top, entry)
        if fault is not None:
            faults.append(fault)
        elif is_folder:
            _scan(below(folder, entry.name), top, f"{prefix}{entry.name}/", found, faults, seen)
        else:
            found.append(prefix + entry.name)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        # A link that leads to itself.
        return False


def _link_fault(path: str, top: str, entry: os.DirEntry[str]) -> Diagnostic | None:
    """Return why a link is not followed: only one to a file inside the catalog is."""
    if not entry.is_symlink():
        return None
    target = os.path.realpath(path)
    if not _is_folder(entry) and is_inside(target, os.path.realpath(top)):
        return None
    return Diagnostic(
        Location(shown_path(path)),
        "R001",
        "a symbolic link to a folder, or out of the catalog, is not followed",
        cause="what it points to is not part of the catalog that is reviewed",
        hint="put the files themselves into the catalog",
    )


def read_catalog(folder: StrPath, seen: Seen | None = None) -> Iterator[CatalogFile]:
    """Read a catalog file by file, in the order of their paths; `seen` takes in what is read."""
    files, faulty = list_catalog(folder, seen)
    if faulty is not None:
        yield faulty
    for path, label in files:
        yield read_definitions(path, label, seen)


def list_catalog(folder: StrPath, seen: Seen | None = None) -> tuple[list[tuple[str, str]], CatalogFile | None]:
    """Return path and label of each file of a catalog, in order; and what is wrong with its folders, as of one file."""
    files, faults = find_files(folder, seen)
    prefix, name = prefixes(folder)
    odd = odd_name(folder, name)
    if odd is not None:
        files, faults = [], [odd]
    faulty = CatalogFile(os.path.basename(folder), [], faults, [], False) if faults else None
    return [(prefix + file, f"{name}/{file}") for file in files], faulty


def prefixes(folder: StrPath) -> tuple[str, str]:
    """Return what stands before the path of a file below a catalog: where it is shown, and (with `/`) in its label."""
    return f"{shown_path(folder)}/".removeprefix("./"), os.path.basename(os.path.realpath(folder))


def read_definitions(path: str, label: str, seen: Seen | None = None) -> CatalogFile:
    """Read one catalog file; `path` is its path as it is shown."""
    return definitions_of(*read_file(path, path, seen), path, label)


def definitions_of(source: Source, faults: list[Diagnostic], path: str, label: str) -> CatalogFile:
    """Check the definitions of a file that was read."""
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
        if type(root) is Mapping and (key := root.key("apiVersion")) is not None and root.get("kind") is not None:
            file.faults.append(_kubernetes_object(source, key))
            continue
        value = Reader(source, file.faults).read(check, root, "")
        if not document.is_sound:
            refused = {fault.location for fault in file.faults}
            file.faults += (fault for fault in lint_scalars(source, root) if fault.location not in refused)
        if value is not INVALID and not any(fault.severity == "error" for fault in file.faults[before:]):
            assert type(root) is Mapping
            file.definitions.append(Definition(cast("Service", value), root, source, label))
    if any(fault.severity == "error" for fault in file.faults):
        file.definitions = []
        names = [document.root.text("name") for document in documents if type(document.root) is Mapping]
        file.broken = [name for name in names if name is not None]
    return file


def _kubernetes_object(source: Source, key: Scalar) -> Diagnostic:
    return source.fault(
        "R101",
        key,
        "this is a Kubernetes object, and no service",
        cause="every YAML file of the catalog is a ServiceDefinition",
        hint="put it under `extraObjects` of a service, or outside the catalog",
    )


def with_snippet(fault: Diagnostic) -> Diagnostic:
    """Return a fault with the source line that it lacks: one found after its file was read carries a place only."""
    if fault.snippet or not fault.location.column:
        return fault
    source, faults = read_file(fault.location.path, fault.location.path)
    if faults:
        return fault
    for document in parse(source)[0]:
        _hide_secrets(source, document.root)
    return replace(fault, snippet=source.snippet(fault.location.line))


def _hide_secrets(source: Source, root: Node) -> None:
    objects = root.get("extraObjects") if type(root) is Mapping else None
    for item in objects.items if type(objects) is Sequence else ():
        if type(item) is Mapping and (item.text("kind") == "Secret" or item.get("sops") is not None):
            source.hide(item)
    generator = root.get("kustomize") if type(root) is Mapping else None
    literals = generator.get("secretGenerator") if type(generator) is Mapping else None
    if literals is not None:
        source.hide(literals)


def lint_scalars(source: Source, root: Node) -> list[Diagnostic]:
    """Return what the kustomize build would fail on, and plain scalars that two readers take differently.

    Each place once.
    """
    faults: list[Diagnostic] = []
    seen: set[int] = set()
    stack: list[Mapping | Sequence] = []
    _lint_value(source, root, stack, faults)
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if type(node) is Sequence:
            for item in node.items:
                _lint_value(source, item, stack, faults)
            continue
        assert type(node) is Mapping
        for key, value in node.entries:
            if not (_is_sound(key.text) if key.style else scalar.SOUND_KEYS[key.text]):
                faults.append(_key_fault(source, key))
            if type(value) is not Scalar:
                stack.append(value)
            elif not (_is_sound(value.text) if value.style else scalar.SOUND_VALUES[value.text]):
                faults.append(_value_fault(source, value))
    return list(dict.fromkeys(faults))


def _lint_value(source: Source, node: Node, stack: list[Mapping | Sequence], faults: list[Diagnostic]) -> None:
    if type(node) is not Scalar:
        stack.append(node)
    elif not (_is_sound(node.text) if node.style else scalar.SOUND_VALUES[node.text]):
        faults.append(_value_fault(source, node))


def _is_sound(text: str) -> bool:
    """Whether kustomize can write a quoted text; most are told by their characters alone."""
    return (text.isascii() and "\x7f" not in text) or scalar.is_carried(text)


def _value_fault(source: Source, node: Scalar) -> Diagnostic:
    if not scalar.is_carried(node.text, plain=not node.style):
        return _not_carried(source, node)
    return _differing(source, node, "value")


def _key_fault(source: Source, key: Scalar) -> Diagnostic:
    if not key.style and scalar.kyaml(key.text).kind != "string":
        return _not_a_key(source, key)
    return _differing(source, key, "key") if scalar.is_carried(key.text) else _not_carried(source, key)


def _not_a_key(source: Source, key: Scalar) -> Diagnostic:
    shown = source.shown(key)
    kind = {"bool": "boolean", "timestamp": "date"}.get(scalar.kyaml(key.text).kind, "number")
    return source.fault(
        "R007",
        key,
        f"a key must be a string, not the {kind} `{shown}`",
        cause="the kustomize build of the whole tree fails on it",
        hint=f'quote it: `"{shown}"`' if shown == key.text else "quote it",
    )


def _not_carried(source: Source, node: Scalar) -> Diagnostic:
    if not node.style and node.text.isascii() and node.text.isprintable():
        what, hint = f"`{source.shown(node)}` is no number that JSON has", "quote it if it is text"
    else:
        what, hint = "the text holds a control character that kustomize cannot write", "remove it"
    return source.fault("R009", node, what, cause="the kustomize build of the whole tree fails on it", hint=hint)


def _differing(source: Source, node: Scalar, what: str) -> Diagnostic:
    shown = source.shown(node)
    quoted = f' (`"{shown}"`)' if shown == node.text else ""
    return source.fault(
        "R008",
        node,
        f"two readers take the {what} `{shown}` differently",
        cause="the kustomize build reads YAML by other rules than Helm and postBuild substitution do",
        hint=f"quote it if it is text{quoted}"
        + (", or write it in one plain form, such as `true` or `17`" if what == "value" else ""),
        severity="warning",
    )
