"""A file and image policies in, the file as image-automation-controller rewrites it out; or NotModelled.

A model of the setter update, for proving that what the compiler writes survives it: which scalars change, how the new
value is quoted, and how kyaml serialises everything else. It knows block collections, one-line and quoted scalars,
literal blocks, flow collections without comments, and comments in the usual places; for everything else it raises
NotModelled instead of guessing.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

import yaml

from render.yaml.scalar import double_quoted, kyaml, sigs

TOKEN = '"$imagepolicy"'
_ODD_BREAKS = re.compile("[\x85\u2028\u2029\r]")
_BREAKS = re.compile("[\n\r\x85\u2028\u2029]")
_SEPARATOR = re.compile(r"\n---.*\n")
_TAGS = {
    "string": "!!str",
    "int": "!!int",
    "float": "!!float",
    "bool": "!!bool",
    "null": "!!null",
    "timestamp": "!!timestamp",
    "other": "!!merge",
}
_REGISTRY = re.compile(r"[A-Za-z0-9.-]+(?::[0-9]+)?\Z")
_REPOSITORY = re.compile(r"[a-z0-9_./-]{1,255}\Z")
_TAG = re.compile(r"[A-Za-z0-9_.-]{1,127}\Z")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}\Z")


class NotModelled(Exception):  # noqa: N818
    """The model does not know what the bot makes of this input."""


@dataclass
class Node:
    start: int
    end: int
    line: int
    last_line: int
    column: int
    head: list[str] = field(default_factory=list)
    comment: str | None = None
    foot: list[str] = field(default_factory=list)


@dataclass
class Scalar(Node):
    value: str = ""
    style: str = ""
    tag: str | None = None
    resolved: str = "!!str"

    @property
    def absent(self) -> bool:
        return self.start == self.end and not self.style and self.tag is None


@dataclass
class Sequence(Node):
    items: list[Node] = field(default_factory=list)
    flow: bool = False


@dataclass
class Entry:
    key: Node
    value: Node
    head: list[str] = field(default_factory=list)
    comment: str | None = None
    foot: list[str] = field(default_factory=list)


@dataclass
class Mapping(Node):
    entries: list[Entry] = field(default_factory=list)
    flow: bool = False


@dataclass
class Document:
    root: Mapping
    text: str
    head: list[str] = field(default_factory=list)
    foot: list[str] = field(default_factory=list)
    foot_apart: bool = False
    unmodelled: str = ""
    """Why it is not known how the document is written; whether anything in it changes is."""


def rewrite(text: bytes | str, policies: list[dict[str, Any]], name: str = "file.yaml") -> str | None:
    """The file after the bot's run, or None if the bot leaves it alone (nothing to change, or unreadable to kyaml).

    `name` is the file's own, of which annotations may speak. Each policy is
    `{namespace, name, image, tag, digest}`; one without `image` has no latest reference yet.
    """
    if isinstance(text, bytes):
        text = text.decode()
    if TOKEN not in text:
        return None
    setters = _setters(policies)
    if setters is None:
        return None
    if not any(_setter(comment, setters) for comment in re.findall(r"#.*", text)):
        return None
    chunks = _split(text.removeprefix("\ufeff").replace("\r\n", "\n"))
    if chunks is None:
        return None
    documents = []
    for chunk in chunks:
        read = _read(chunk)
        if read is False:
            return None
        if isinstance(read, Document):
            documents.append(read)
    if any(_is_misplaced(document.root, name) for document in documents):
        # The run stops at this file, and no file is changed.
        return None
    only = documents[0].root if len(documents) == len(chunks) == 1 else None
    if only is not None and _kind(only) in ("List", "ResourceList") and _get(only, "items") is not None:
        # The items go into files of their own.
        return None
    changes = [_update(document.root, setters, in_sequence=False) for document in documents]
    if not any(changes):
        return None
    for document in documents[:-1]:
        if document.foot:
            raise NotModelled("a comment at the end of a document that is not the last")
    for document in documents:
        if document.unmodelled:
            raise NotModelled(document.unmodelled)
        _drop_empty(document)
    written = [_write(document) for document in documents]
    if any(text.endswith("\n\n") for text in written[:-1]):
        raise NotModelled("a block that keeps its line breaks at the end of a document that is not the last")
    return "---\n".join(written)


def _setters(policies: list[dict[str, Any]]) -> dict[str, str] | None:
    """The value of each setter; None if an image reference is malformed, on which the bot's whole run stops."""
    setters = {}
    for policy in policies:
        image = policy.get("image")
        if not image:
            continue
        tag, digest = policy.get("tag") or "", policy.get("digest") or ""
        reference = f"{image}:{tag}" + (f"@{digest}" if digest else "")
        if not _well_formed(image, tag, digest):
            return None
        name = f"{policy['namespace']}:{policy['name']}"
        setters |= {name: reference, f"{name}:tag": tag, f"{name}:name": image, f"{name}:digest": digest}
    return setters


def _well_formed(image: str, tag: str, digest: str) -> bool:
    first, slash, rest = image.partition("/")
    if slash and ("." in first or ":" in first or first == "localhost"):
        if not _REGISTRY.match(first):
            raise NotModelled(f"the registry {first!r}")
        image = rest
    return bool(_REPOSITORY.match(image) and _TAG.match(tag) and (not digest or _DIGEST.match(digest)))


def _setter(comment: str | None, setters: dict[str, str]) -> str | None:
    if not comment:
        return None
    try:
        marker = json.loads(comment.lstrip("#"))
    except ValueError:
        return None
    if not isinstance(marker, dict) or not all(value is None or isinstance(value, str) for value in marker.values()):
        return None
    if "$ref" in marker or "$openapi" in marker:
        raise NotModelled("a marker of kyaml's own kind")
    name = marker.get("$imagepolicy")
    if name and "%" in name:
        raise NotModelled("an escaped marker")
    return name if name in setters else None


def _update(node: Node, setters: dict[str, str], *, in_sequence: bool) -> bool:
    """Set the marked scalars below a node; whether any value changed."""
    if isinstance(node, Mapping):
        changes = [_update(entry.value, setters, in_sequence=False) for entry in node.entries]
        return any(changes)
    if isinstance(node, Sequence):
        changes = [_update(item, setters, in_sequence=not node.flow) for item in node.items]
        return any(changes)
    assert isinstance(node, Scalar)
    comment = node.comment or ("\n".join(node.head) if in_sequence else "")
    name = _setter(comment, setters)
    if name is None:
        return False
    new, changed = setters[name], setters[name] != node.value
    node.value = new
    null = not node.style and (node.tag or node.resolved) == "!!null"
    if new and sigs(new).kind not in ("string", "timestamp") and not null:
        if node.style in ("'", '"'):
            node.tag = node.tag and "!!str"
        else:
            node.style, node.tag = '"', None
    elif not node.style and node.tag is None and _TAGS[kyaml(new).kind] != node.resolved:
        if node.resolved == "!!str":
            node.style = '"'
        else:
            node.tag = node.resolved
    return changed


def _split(text: str) -> list[str] | None:
    chunks, position = [], 0
    for match in _SEPARATOR.finditer(text):
        rest = match[0][4:].strip()
        if rest and not rest.startswith("#"):
            return None
        chunks.append(text[position : match.start()] + "\n")
        position = match.end()
    return [*chunks, text[position:]]


def _read(chunk: str) -> Document | bool | None:
    """A chunk's document; None for one without content, False for one that kyaml cannot read."""
    start = re.match(r"\s*---[ \t]*\n", chunk)
    if start and chunk[: start.end()].strip() == "---" and not chunk[: start.start()].strip():
        # Whatever the separator, the document starts after it.
        text = "\n" * chunk[: start.end()].count("\n") + chunk[start.end() :]
    else:
        text = chunk
    if re.match(r"(?:[ \t]*(?:#.*)?\n)*%", chunk):
        return False
    if _ODD_BREAKS.search(text) or re.search(r"(?m)^(?:---|%)", text):
        raise NotModelled("an odd line break, a second separator or a directive")
    # To PyYAML a tab before a comment is an error.
    text = re.sub(r"(?m)^([^\"'#|>]*\S)\t+(?=#)", r"\1 ", text)
    if not re.sub(r"(?m)^[ \t]*#.*$", "", text).strip():
        return None
    end = re.search(r"(?m)^\.\.\.[ \t]*\n?\Z", text)
    if end:
        text = text[: end.start()]
    elif re.search(r"(?m)^\.\.\.", text):
        raise NotModelled("an end of a document within")
    try:
        events = list(yaml.parse(text, Loader=yaml.SafeLoader))
    except yaml.YAMLError as error:
        if getattr(error, "problem", "").startswith("expected '<document start>'"):
            return False
        if "\t" not in text and getattr(error, "problem", "") in _UNREADABLE:
            return False
        raise NotModelled(f"unreadable: {error}") from error
    reader = _Reader(text, events)
    root = reader.root()
    if isinstance(root, Scalar) and root.style == "" and kyaml(root.value).kind == "null":
        return None
    if not isinstance(root, Mapping):
        return False
    metadata = _get(root, "metadata")
    if metadata is not None and not isinstance(metadata, Mapping) and not _null(metadata):
        return False
    document = Document(root, chunk)
    if root.flow:
        raise NotModelled("a flow collection as the root")
    _Comments(text, reader, document).attach()
    return document


_UNREADABLE = (
    "mapping values are not allowed here",
    "expected <block end>, but found '?'",
    "expected <block end>, but found '<block mapping start>'",
    "expected <block end>, but found '-'",
    "expected <block end>, but found '<scalar>'",
)


class _Reader:
    """Builds the tree of one document from PyYAML's events, refusing what the model does not cover."""

    def __init__(self, text: str, events: list[Any]) -> None:
        self.text = text
        self.events = [event for event in events if not isinstance(event, yaml.StreamStartEvent | yaml.StreamEndEvent)]
        self.position = 0
        self.dash = 0
        """The line of the last item's dash."""
        self.scalars: list[Scalar] = []
        self.blocks: list[Mapping | Sequence] = []
        self.flows: list[Mapping | Sequence] = []
        self.values: list[Node] = []
        self.keys: list[Entry] = []
        self.lines: dict[int, tuple[int, Entry | Node]] = {}

    def root(self) -> Node:
        documents = sum(isinstance(event, yaml.DocumentStartEvent) for event in self.events)
        if documents != 1:
            raise NotModelled("several documents")
        self.position = 1
        return self._node()

    def _next(self) -> Any:
        event = self.events[self.position]
        self.position += 1
        return event

    def _place(self, event: Any) -> dict[str, int]:
        return {
            "start": event.start_mark.index,
            "end": event.end_mark.index,
            "line": event.start_mark.line,
            "last_line": event.end_mark.line,
            "column": event.start_mark.column,
        }

    def _node(self) -> Node:
        event = self._next()
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            raise NotModelled("an anchor or alias")
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event)
        if event.tag is not None:
            raise NotModelled("a tagged collection")
        if isinstance(event, yaml.SequenceStartEvent):
            return self._sequence(event)
        return self._mapping(event)

    def _scalar(self, event: Any) -> Scalar:
        node = Scalar(**self._place(event), value=event.value, style=event.style or "")
        source = self.text[node.start : node.end]
        if event.tag is not None:
            match = re.match(r"(!!?[A-Za-z]*)[ \t]+(?=\S)", source)
            if not match or node.style in ("|", ">"):
                raise NotModelled("a tag of an odd form")
            node.tag = match[1]
            source = source[match.end() :]
        if node.style == ">":
            raise NotModelled("a folded scalar")
        if node.style == '"' and re.search(r"(?<!\\)(?:\\\\)*\\/", source):
            raise NotModelled("an escaped slash")
        if node.style == "|" and re.search(r"\A[^\n]*\n(?:[ ]*\n)*[ ]*\t", source):
            raise NotModelled("a literal block that starts with a tab")
        if not node.style:
            if node.value == "<<":
                raise NotModelled("a merge key as a value")
            node.resolved = _TAGS[kyaml(node.value).kind]
        self.scalars.append(node)
        return node

    def _sequence(self, event: Any) -> Sequence:
        node = Sequence(**self._place(event), flow=bool(event.flow_style))
        (self.flows if node.flow else self.blocks).append(node)
        while not isinstance(self.events[self.position], yaml.SequenceEndEvent):
            begin = self.events[self.position].start_mark
            if not node.flow:
                self._register_item(node, begin)
            line = self.dash
            item = self._node()
            if not node.flow:
                self._check_item(node, item, line)
            node.items.append(item)
        self._close(node)
        return node

    def _register_item(self, sequence: Sequence, begin: Any) -> None:
        line = begin.line
        if not self.text[: begin.index].rpartition("\n")[2].strip(" "):
            # The dash is on a line of its own, and is joined with its item.
            before = self.text[: begin.index].rstrip(" \n")
            if not before.endswith("-") or before.rpartition("\n")[2].strip(" ") != "-":
                raise NotModelled("a dash on a line of its own, with a comment")
            line = before.count("\n")
        if line not in self.lines:
            self.lines[line] = (sequence.column, sequence)
        self.dash = line

    def _check_item(self, sequence: Sequence, item: Node, line: int) -> None:
        if isinstance(item, Scalar) and item.absent:
            raise NotModelled("an absent item")
        self.values.append(item)
        if self.lines[line] == (sequence.column, sequence):
            self.lines[line] = (sequence.column, item)

    def _mapping(self, event: Any) -> Mapping:
        node = Mapping(**self._place(event), flow=bool(event.flow_style))
        (self.flows if node.flow else self.blocks).append(node)
        while not isinstance(self.events[self.position], yaml.MappingEndEvent):
            entry = Entry(key := Node(0, 0, 0, 0, 0), key)
            begin = self.events[self.position].start_mark
            if not node.flow:
                self.lines.setdefault(begin.line, (node.column, entry))
            entry.key = self._node()
            if not isinstance(entry.key, Scalar) or entry.key.style == "|" or entry.key.absent:
                raise NotModelled("an odd key")
            if entry.key.value == "<<" and not entry.key.style:
                raise NotModelled("a merge key")
            entry.value = self._node()
            if node.flow and isinstance(entry.value, Scalar) and entry.value.absent:
                raise NotModelled("an absent value in a flow mapping")
            if not node.flow:
                self.keys.append(entry)
                self.values.append(entry.value)
            node.entries.append(entry)
        self._close(node)
        return node

    def _close(self, node: Mapping | Sequence) -> None:
        event = self._next()
        node.end, node.last_line = event.end_mark.index, event.end_mark.line


class _Comments:
    """Attaches the comments of a document to its nodes as go-yaml does in the usual cases."""

    def __init__(self, text: str, reader: _Reader, document: Document) -> None:
        self.reader, self.document = reader, document
        self.lines = text.split("\n")
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line) + 1)
        masked = list(text)
        self.inside: set[int] = set()
        for scalar in reader.scalars:
            begin, end = scalar.start, scalar.end
            if scalar.style == "|":
                header = re.match(r"\|[-+0-9]*", text[begin:])
                assert header
                masked[begin : begin + header.end()] = "x" * header.end()
                begin = text.find("\n", begin) if "\n" in text[begin:] else len(text)
            masked[begin:end] = [character if character == "\n" else "x" for character in masked[begin:end]]
            last = scalar.last_line
            if scalar.style == "|":
                last = scalar.line + text[scalar.start : scalar.end].rstrip(" \n").count("\n")
            self.inside.update(range(scalar.line + 1, last + 1))
        self.masked = "".join(masked).split("\n")

    def attach(self) -> None:
        blocks: list[tuple[int, int]] = []
        for number, line in enumerate(self.masked):
            found = re.search(r"(?:^|[ \t])(#)", line)
            if not found:
                continue
            if line[: found.start(1)].strip(" \t"):
                self._trailing(number, found.start(1))
            elif number in self.inside:
                raise NotModelled("a comment between the lines of a scalar")
            elif blocks and blocks[-1][1] == number - 1:
                blocks[-1] = (blocks[-1][0], number)
            else:
                blocks.append((number, number))
        for first, last in blocks:
            self._block(first, last)

    def _trailing(self, number: int, column: int) -> None:
        text, index = self.lines[number][column:], self.starts[number] + column
        for flow in self.reader.flows:
            if flow.start < index < flow.end:
                raise NotModelled("a comment in a flow collection")
        before = self.masked[number][:column]
        for node in self.reader.values:
            literal = isinstance(node, Scalar) and node.style == "|" and node.line == number
            ends = node.last_line == number and isinstance(node, Scalar) and node.style != "|" and not node.absent
            if isinstance(node, Mapping | Sequence) and node.flow:
                ends = node.last_line == number
            if literal or (ends and not self.masked[number][node.end - self.starts[number] : column].strip(" \t")):
                node.comment = text
                return
        for entry in self.reader.keys:
            key = entry.key
            if key.last_line == number and re.fullmatch(r":[ \t]+", before[key.end - self.starts[number] :]):
                if not isinstance(entry.value, Mapping) or entry.value.flow:
                    if isinstance(entry.value, Scalar):
                        raise NotModelled("a comment after the key of a scalar")
                    self.document.unmodelled = "a comment after the key of what is no mapping"
                entry.comment = text
                return
        raise NotModelled("a comment in an odd place")

    def _blank(self, number: int) -> bool:
        return number not in self.inside and not self.masked[number].strip(" \t")

    def _block(self, first: int, last: int) -> None:
        lines = self.lines[first : last + 1]
        texts = [line.lstrip(" \t") for line in lines]
        columns = {
            len(self.lines[number]) - len(text) for number, text in zip(range(first, last + 1), texts, strict=True)
        }
        if len(columns) != 1:
            raise NotModelled("comment lines at different columns")
        column = columns.pop()
        following = last + 1
        while following < len(self.lines) and self._blank(following):
            following += 1
        apart = following > last + 1
        blank_before = first > 0 and self._blank(first - 1)
        prior = any(not self._blank(number) for number in range(first))
        if following >= len(self.lines):
            self._final(texts, first, column, apart=blank_before, prior=prior)
            return
        if following not in self.reader.lines:
            if self.masked[following].strip(" \t").startswith("#"):
                if prior or self.document.head:
                    raise NotModelled("several blocks of comments")
                self.document.head = texts
                return
            raise NotModelled("a comment before something odd")
        target_column, target = self.reader.lines[following]
        if apart and not prior:
            if self.document.head:
                raise NotModelled("several blocks of comments")
            self.document.head = texts
            return
        if apart and not blank_before:
            raise NotModelled("a comment with an empty line after it")
        inner = self._innermost(self.starts[first] + column)
        if inner is None or target_column >= inner.column:
            target.head += texts
        elif apart:
            raise NotModelled("a comment between empty lines before a shallower line")
        elif column == target_column:
            target.head += texts
        elif blank_before:
            raise NotModelled("a comment after an empty line before a shallower line")
        else:
            self._last(inner).foot += texts

    def _final(self, texts: list[str], first: int, column: int, *, apart: bool, prior: bool) -> None:
        if not prior or self.document.foot:
            raise NotModelled("several comments at the end")
        inner = self._innermost(self.starts[first] + column)
        if column == 0:
            self.document.foot, self.document.foot_apart = texts, apart
        elif inner is not None and column == inner.column and not apart:
            self._last(inner).foot += texts
        else:
            raise NotModelled("a comment at an odd column at the end")

    def _innermost(self, index: int) -> Mapping | Sequence | None:
        open_blocks = [block for block in self.reader.blocks if block.start < index <= block.end]
        return max(open_blocks, key=lambda block: (block.column, block.start), default=None)

    def _last(self, block: Mapping | Sequence) -> Entry | Node:
        return block.entries[-1] if isinstance(block, Mapping) else block.items[-1]


def _get(mapping: Mapping, key: str) -> Node | None:
    found = [entry.value for entry in mapping.entries if isinstance(entry.key, Scalar) and entry.key.value == key]
    if len(found) > 1:
        raise NotModelled(f"`{key}` twice")
    return found[0] if found else None


def _null(node: Node) -> bool:
    return isinstance(node, Scalar) and not node.style and node.resolved == "!!null"


def _kind(root: Mapping) -> str | None:
    kind = _get(root, "kind")
    return kind.value if isinstance(kind, Scalar) else None


_PATHS = ("config.kubernetes.io/path", "internal.config.kubernetes.io/path")
_STRIPPED = {
    *_PATHS,
    "config.kubernetes.io/index",
    "internal.config.kubernetes.io/index",
    "internal.config.kubernetes.io/seqindent",
}


def _annotations(root: Mapping) -> dict[str, Node]:
    metadata = _get(root, "metadata")
    annotations = _get(metadata, "annotations") if isinstance(metadata, Mapping) else None
    entries = annotations.entries if isinstance(annotations, Mapping) else []
    return {entry.key.value: entry.value for entry in entries if isinstance(entry.key, Scalar)}


def _is_misplaced(root: Mapping, name: str) -> bool:
    """Whether an annotation names another file than the one it is in."""
    places = [value for key, value in _annotations(root).items() if key in _PATHS]
    return any(not isinstance(place, Scalar) or place.value != name for place in places)


def _drop_empty(document: Document) -> None:
    """Drop annotations of kyaml's own, then annotations and metadata that are empty."""
    root = document.root
    metadata = _get(root, "metadata")
    if metadata is None:
        return
    if isinstance(metadata, Mapping):
        for key in _annotations(root):
            own = "config.kubernetes.io/" in key or "config.k8s.io/" in key
            if own and key not in _STRIPPED:
                raise NotModelled("an annotation of kyaml's own")
        annotations = _get(metadata, "annotations")
        if isinstance(annotations, Mapping):
            _drop(annotations, *_STRIPPED)
        if annotations is not None and (not isinstance(annotations, Mapping) or not annotations.entries):
            _drop(metadata, "annotations")
    if _null(metadata) or (isinstance(metadata, Mapping) and not metadata.entries):
        _drop(root, "metadata")


def _drop(mapping: Mapping, *keys: str) -> None:
    gone = [entry for entry in mapping.entries if isinstance(entry.key, Scalar) and entry.key.value in keys]
    if any(entry.head or entry.comment or entry.foot for entry in gone):
        raise NotModelled("a comment on what is dropped")
    mapping.entries = [entry for entry in mapping.entries if not any(entry is one for one in gone)]


def wide(text: str) -> bool:
    """Whether kyaml's textual derivation indents the sequences of a document."""
    lines = text.split("\n")
    for number, line in enumerate(lines):
        dash = re.match(r"( *)- ", line)
        if not dash:
            continue
        key = next((prior for prior in reversed(lines[:number]) if not prior.strip(" ").startswith("#")), "")
        key = key.split("#", 1)[0]
        if key.count(":") != 1 or not key.rstrip(" ").endswith(":"):
            continue
        depth = len(dash[1]) - (len(key) - len(key.lstrip(" ")))
        if depth in (0, 2):
            return depth == 2
    return False


def _write(document: Document) -> str:
    writer = _Writer(2 if wide(document.text) else 0)
    if document.head:
        writer.lines += [*document.head, ""]
    writer.mapping(document.root, 0)
    if document.foot:
        if writer.open_ended:
            raise NotModelled("a comment after a block that keeps its line breaks")
        writer.lines += ([""] if document.foot_apart else []) + document.foot
    return "\n".join(writer.lines) + "\n"


class _Writer:
    def __init__(self, sequence_indent: int) -> None:
        self.sequence_indent = sequence_indent
        self.lines: list[str] = []
        self.open_ended = False

    def mapping(self, node: Mapping, indent: int, prefix: str | None = None) -> None:
        for entry in node.entries:
            self._comments(entry.head, indent, prefix)
            assert isinstance(entry.key, Scalar)
            start = " " * indent if prefix is None else prefix
            prefix = None
            key, simple = _key(entry.key, indent + 2)
            if simple:
                self._value(entry.value, indent, f"{start}{key}:", entry.comment)
            else:
                if not isinstance(entry.value, Scalar) or entry.value.style == "|":
                    raise NotModelled("a long key with a value that is no scalar")
                self._append(f"{start}? {key}")
                self._value(entry.value, indent, " " * indent + ":", entry.comment)
            self._comments(entry.foot, indent, None)

    def sequence(self, node: Sequence, indent: int, prefix: str | None = None) -> None:
        for item in node.items:
            self._comments(item.head, indent, prefix)
            start = (" " * indent if prefix is None else prefix) + "- "
            prefix = None
            if isinstance(item, Mapping) and not item.flow:
                self.mapping(item, indent + 2, start)
            elif isinstance(item, Sequence) and not item.flow:
                self.sequence(item, indent + 2, start)
            else:
                self._value(item, indent, start.rstrip(" "), None)
            self._comments(item.foot, indent, None)

    def _value(self, node: Node, indent: int, start: str, comment: str | None) -> None:
        if isinstance(node, Mapping) and not node.flow:
            self._append(start + (f" {comment}" if comment else ""))
            self.mapping(node, indent + 2)
        elif isinstance(node, Sequence) and not node.flow:
            self._append(start)
            self.sequence(node, indent + self.sequence_indent)
        else:
            self._leaf(node, indent, start)

    def _leaf(self, node: Node, indent: int, start: str) -> None:
        comment = f" {node.comment}" if node.comment else ""
        if isinstance(node, Scalar) and _style(node, flow=False, key=False) == "|":
            self._literal(node, indent + 2, start, comment)
            return
        text = _flow(node) if not isinstance(node, Scalar) else _scalar(node, indent + 2, flow=False, key=False)
        self._append(f"{start} {text}{comment}" if text else f"{start}{comment}")

    def _literal(self, node: Scalar, indent: int, start: str, comment: str) -> None:
        value = node.value
        hint = "2" if value[0] in " \n" else ""
        chomp = "" if value.endswith("\n") else "-"
        if value.endswith("\n\n") or value == "\n":
            chomp = "+"
        self._append(f"{start} |{hint}{chomp}{comment}")
        self.lines += [" " * indent + line if line else "" for line in value.removesuffix("\n").split("\n")]
        self.open_ended = chomp == "+"

    def _append(self, line: str) -> None:
        self.lines += line.split("\n")
        self.open_ended = False

    def _comments(self, comments: list[str], indent: int, prefix: str | None) -> None:
        if comments and prefix is not None:
            raise NotModelled("a comment inside a line")
        if comments and self.open_ended:
            raise NotModelled("a comment after a block that keeps its line breaks")
        self.lines += [" " * indent + comment for comment in comments]


def _key(node: Scalar, indent: int) -> tuple[str, bool]:
    length = len(node.value.encode()) + len(node.tag or "")
    simple = not _BREAKS.search(node.value) and length <= 128
    return _scalar(node, indent, flow=False, key=simple), simple


def _flow(node: Node) -> str:
    if isinstance(node, Sequence):
        return "[" + ", ".join(_flow(item) for item in node.items) + "]"
    if isinstance(node, Mapping):
        parts = []
        for entry in node.entries:
            assert isinstance(entry.key, Scalar)
            if _BREAKS.search(entry.key.value) or len(entry.key.value.encode()) > 128:
                raise NotModelled("a long key in a flow mapping")
            parts.append(f"{_scalar(entry.key, 0, flow=True, key=True)}: {_flow(entry.value)}")
        return "{" + ", ".join(parts) + "}"
    assert isinstance(node, Scalar)
    if "\n" in node.value and node.style != '"':
        raise NotModelled("a scalar of several lines in a flow collection")
    return _scalar(node, 0, flow=True, key=False)


def _style(node: Scalar, *, flow: bool, key: bool) -> str:
    """The style that go-yaml's emitter settles on, from the one asked for and what the text allows."""
    value, style = node.value, node.style
    if node.absent:
        return ""
    broken = "\n" in value
    special = not all(character in "\t\n" or _printable(character) for character in value)
    tabs, space_break = "\t" in value, " \n" in value
    if style == "" and broken:
        style = "|"
    if key and broken:
        return '"'
    if style == "":
        plain = not (special or tabs or broken or value != value.strip(" ") or _indicators(value, flow=flow))
        if not plain or (not value and (flow or key)):
            style = "'"
    if style == "'" and (special or tabs or space_break or "\n " in value):
        style = '"'
    if style == "|" and (not value or special or space_break or value.endswith(" ") or flow or key):
        style = '"'
    return style


def _printable(character: str) -> bool:
    return " " <= character <= "~" or ("\xa0" <= character < "\U00010000" and character not in "\ufeff\ufffe\uffff")


def _indicators(value: str, *, flow: bool) -> bool:
    """Whether the text holds what keeps it from being plain."""
    if value.startswith(("---", "...")):
        return True
    if value[:1] and value[0] in "#,[]{}&*!|>'\"%@`":
        return True
    if re.match(r"[?:-](?:[ \t\n]|\Z)", value) or re.search(r":(?:[ \t\n]|\Z)|[ \t\n]#", value):
        return True
    return flow and re.search(r"[,?\[\]{}:]", value) is not None


def _scalar(node: Scalar, indent: int, *, flow: bool, key: bool) -> str:
    style = _style(node, flow=flow, key=key)
    if style == "|":
        raise NotModelled("a literal block in an odd place")
    if style == '"':
        text = double_quoted(node.value)
    elif style == "'":
        text = _single_quoted(node.value, indent)
    else:
        text = node.value
    return f"{node.tag} {text}" if node.tag else text


def _single_quoted(value: str, indent: int) -> str:
    """Single-quoted text: each run of line breaks is one longer, and only the lines with text are indented."""
    runs = re.split(r"(\n+)", value.replace("'", "''"))
    for number, run in enumerate(runs):
        if run.startswith("\n"):
            runs[number] = "\n" + run
        elif number and run:
            runs[number] = " " * indent + run
    return "'" + "".join(runs) + "'"
