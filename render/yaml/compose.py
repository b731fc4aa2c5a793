"""YAML text in, nodes out, by libyaml, of which go-yaml (and so every reader in Flux's path) is a port.

Aliases share their node, so identity tells which places mean the same thing; merge keys are expanded in place.
"""

from __future__ import annotations

import re

from yaml._yaml import CParser
from yaml.error import MarkedYAMLError, YAMLError
from yaml.events import (
    AliasEvent,
    DocumentEndEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)

from render.diagnostics import Diagnostic
from render.yaml import scalar
from render.yaml.nodes import BREAKS, Document, Mapping, Node, Scalar, Sequence, Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_DEPTH = 100
MAX_KEY = 128
SHORT_KEY = MAX_KEY // 4
"""Characters that are no more than `MAX_KEY` bytes."""
MAX_NODES = 100_000
"""Values that the aliases of a file may unfold into, a long text counting for several; real files have a thousand."""

_MISSING = "?"
"""Style of the scalar that stands for an alias without its anchor: reported once, and not again for its value."""
_CORE = "tag:yaml.org,2002:"


def compose(source: Source) -> tuple[list[Document], list[Diagnostic]]:
    """Return the documents of a file and what is wrong with it."""
    return _Composer(source).run()


class _Composer:
    """Builds nodes from libyaml's events (its own composer refuses an anchor that is defined twice)."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.faults: list[Diagnostic] = []
        self.anchors: dict[str, Node] = {}
        self.open_anchors: dict[int, str] = {}
        self.unfolded = 0

    def run(self) -> tuple[list[Document], list[Diagnostic]]:
        documents: list[Document] = []
        try:
            self._read(documents)
        except MarkedYAMLError as error:
            return [], [*self.faults, _syntax_fault(self.source, error)]
        except YAMLError:
            return [], [*self.faults, _character_fault(self.source)]
        except _TooLargeError as large:
            fault = self.source.fault(
                "R005",
                large.node,
                large.problem,
                cause="readers give up on deeper trees"
                if large.deep
                else "a small file of aliases can unfold into gigabytes",
                hint="flatten the value" if large.deep else "write the values out, or split the service",
            )
            return [], [*self.faults, fault]
        return documents, self.faults

    def _read(self, documents: list[Document]) -> None:
        next_event = CParser(self.source.text).get_event
        stack: list[Mapping | Sequence] = []
        keys: list[Scalar | None] = []
        root: Node | None = None
        while True:
            event: Any = next_event()
            kind = type(event)
            if kind is ScalarEvent:
                start, end = event.start_mark, event.end_mark
                line, column = start.line, start.column
                length = end.column - column if end.line == line else 1
                text = Scalar(event.value, event.style, line + 1, column + 1, length)
                if event.tag is not None:
                    self._scalar_tag(event.tag, text)
                node: Node = text
                if event.anchor is not None:
                    self.anchors[event.anchor] = node
            elif kind is MappingStartEvent or kind is SequenceStartEvent:
                mark = event.start_mark
                made: Mapping | Sequence
                if kind is MappingStartEvent:
                    made = Mapping([], mark.line + 1, mark.column + 1)
                else:
                    made = Sequence([], mark.line + 1, mark.column + 1)
                if event.tag is not None:
                    self._collection_tag(event.tag, made, "map" if kind is MappingStartEvent else "seq")
                if event.anchor is not None:
                    self.anchors[event.anchor] = made
                    self.open_anchors[id(made)] = event.anchor
                stack.append(made)
                keys.append(None)
                if len(stack) > MAX_DEPTH:
                    raise _TooLargeError(made, f"nested more than {MAX_DEPTH} levels deep", deep=True)
                continue
            elif kind is MappingEndEvent or kind is SequenceEndEvent:
                node = stack.pop()
                keys.pop()
                if type(node) is Mapping:
                    self._close_mapping(node)
                if self.open_anchors:
                    self.open_anchors.pop(id(node), None)
            elif kind is AliasEvent:
                node = self._alias(event)
                self._count(node)
                if type(node) is not Scalar and len(stack) + node.depth > MAX_DEPTH:
                    raise _TooLargeError(node, f"aliases nest more than {MAX_DEPTH} levels deep", deep=True)
            elif kind is DocumentStartEvent:
                self.anchors = {}
                root = None
                continue
            elif kind is DocumentEndEvent:
                if root is not None and not (type(root) is Scalar and root.is_null):
                    documents.append(Document(self.source, root))
                continue
            elif kind is StreamEndEvent:
                return
            else:
                continue
            if not stack:
                root = node
                continue
            parent = stack[-1]
            key = keys[-1]
            if type(parent) is Sequence:
                parent.items.append(node)
            elif key is None:
                is_sound = type(node) is Scalar and len(node.text) <= SHORT_KEY and scalar.USUAL_KEYS[node.text]
                keys[-1] = node if is_sound else self._key(node)  # type: ignore[assignment]
                continue
            else:
                parent.entries.append((key, node))
                keys[-1] = None
            if type(node) is Scalar:
                parent.weight += 1 + (len(node.text) >> 4)
                continue
            parent.weight += node.weight
            if node.depth >= parent.depth:
                parent.depth = node.depth + 1
            if node.key_node is None:
                node.key_node = key

    def _scalar_tag(self, tag: str, node: Scalar) -> None:
        if tag in ("!", _CORE + "str"):
            # The tag makes any text a string; quotes say the same without it.
            node.style = node.style or '"'
            return
        name = tag.removeprefix(_CORE)
        if not node.style and name in ("int", "float", "bool", "null"):
            kinds = {scalar.sigs(node.text).kind, scalar.kyaml(node.text).kind}
            if kinds == {name}:
                return
        self._custom_tag(tag, node)

    def _collection_tag(self, tag: str, node: Mapping | Sequence, plain: str) -> None:
        if tag not in ("!", _CORE + plain):
            self._custom_tag(tag, node)

    def _custom_tag(self, tag: str, node: Node) -> None:
        shown = "!!" + tag.removeprefix(_CORE) if tag.startswith(_CORE) else tag
        self.faults.append(
            self.source.fault(
                "R004",
                node,
                f"the tag `{shown}` is not allowed",
                cause="Kubernetes has no tags: the value would lose its tag or be refused on the way to the cluster",
                hint="remove the tag; quote the value if it is a string",
            )
        )

    def _count(self, node: Node) -> None:
        """Add a value that is repeated by an alias or a merge key."""
        self.unfolded += 1 + (len(node.text) >> 4) if type(node) is Scalar else node.weight
        if self.unfolded > MAX_NODES:
            raise _TooLargeError(node, f"aliases unfold into more than {MAX_NODES:,} values")

    def _alias(self, event: Any) -> Node:
        mark = event.start_mark
        place = Scalar("", _MISSING, mark.line + 1, mark.column + 1, event.end_mark.column - mark.column)
        node = self.anchors.get(event.anchor)
        if node is None:
            self.faults.append(
                self.source.fault(
                    "R006",
                    place,
                    f"the alias `*{event.anchor}` names no anchor above it",
                    cause="an alias repeats a value marked `&" + event.anchor + "` earlier in the same document",
                    hint=_closest_anchor(event.anchor, self.anchors),
                )
            )
            return place
        if id(node) in self.open_anchors:
            self.faults.append(
                self.source.fault(
                    "R006",
                    place,
                    f"the alias `*{event.anchor}` stands inside the value it repeats",
                    cause="the value would contain itself without end",
                    hint="write the inner value out",
                )
            )
            return place
        return node

    def _key(self, node: Node) -> Scalar:
        if type(node) is Scalar:
            if (len(node.text) > SHORT_KEY and len(node.text.encode()) > MAX_KEY) or BREAKS.search(node.text):
                self.faults.append(
                    self.source.fault(
                        "R007",
                        node,
                        f"a key must be one line of at most {MAX_KEY} bytes",
                        cause="longer keys take another form when the image bot rewrites the file",
                        hint="move the entry into a list, or into a text block",
                    )
                )
            return node
        self.faults.append(
            self.source.fault(
                "R007",
                node,
                "a key must be a single value, not a list or mapping",
                cause="keys of Kubernetes objects are strings",
                hint="write the key as a plain word or a quoted string",
            )
        )
        return Scalar(f"\0{len(self.faults)}", '"', node.line, node.column)

    def _close_mapping(self, node: Mapping) -> None:
        """Refuse duplicate keys and unfold merge keys, which never count as duplicates."""
        entries = node.entries
        texts: set[str] = set()
        is_usual = True
        for key, _ in entries:
            texts.add(key.text)
            if not key.style and not scalar.USUAL_KEYS[key.text]:
                is_usual = False
        if is_usual and len(texts) == len(entries):
            return
        seen: dict[tuple[str, str], Scalar] = {}
        merges: list[Node] = []
        kept: list[tuple[Scalar, Node]] = []
        for key, value in entries:
            if key.text == "<<" and not key.style:
                if merges:
                    self._duplicate(key, key)
                merges.append(value)
                kept.append((key, value))
                continue
            names = self._key_names(key)
            first = next((seen[name] for name in names if name in seen), None)
            if first is not None:
                self._duplicate(key, first)
                continue
            for name in names:
                seen[name] = key
            kept.append((key, value))
        node.entries = self._merge(node, kept, set(seen)) if merges else kept

    def _key_names(self, key: Scalar) -> tuple[tuple[str, str], ...]:
        if key.style or scalar.USUAL_KEYS[key.text]:
            return (("kyaml", key.text), ("sigs", key.text))
        kyaml, sigs = scalar.kyaml_key(key.text), scalar.sigs_key(key.text)
        if kyaml is None or sigs is None:
            self.faults.append(
                self.source.fault(
                    "R007",
                    key,
                    f"`{self.source.shown(key)}` cannot be a key",
                    cause="a reader on the way to the cluster refuses it",
                    hint="quote the key",
                )
            )
            return (("kyaml", key.text), ("sigs", key.text))
        return (("kyaml", kyaml), ("sigs", sigs))

    def _duplicate(self, key: Scalar, first: Scalar) -> None:
        spelled = "" if key.text == first.text else f" (the same key as `{first.text}`)"
        self.faults.append(
            self.source.fault(
                "R002",
                key,
                f"duplicate key `{key.text}`{spelled}",
                cause="a later key silently replaces an earlier one, so neither is trusted",
                hint="delete one of the two",
                related=((self.source.place(first), "first here"),),
            )
        )

    def _merge(
        self, node: Mapping, entries: list[tuple[Scalar, Node]], taken: set[tuple[str, str]]
    ) -> list[tuple[Scalar, Node]]:
        """Return the entries with those of merged mappings in place; `taken` are the keys that are there already."""
        merged: list[tuple[Scalar, Node]] = []
        for key, value in entries:
            if key.text != "<<" or key.style:
                merged.append((key, value))
                continue
            sources = value.items if type(value) is Sequence else [value]
            for source in sources:
                if type(source) is Scalar and source.style == _MISSING:
                    continue
                if type(source) is not Mapping:
                    self.faults.append(
                        self.source.fault(
                            "R007",
                            key,
                            "`<<` must merge a mapping, or a list of mappings",
                            cause="a merge key copies the entries of other mappings into this one",
                            hint="give it an alias of a mapping, or quote the key if it is meant as text",
                        )
                    )
                    break
                for inner_key, inner in source.entries:
                    names = self._key_names(inner_key)
                    if taken.isdisjoint(names):
                        taken.update(names)
                        merged.append((inner_key, inner))
                        self._count(inner)
                        node.weight += 1 if type(inner) is Scalar else inner.weight
        return merged


class _TooLargeError(Exception):
    def __init__(self, node: Node, problem: str, *, deep: bool = False) -> None:
        super().__init__(problem)
        self.node = node
        self.problem = problem
        self.deep = deep


def _closest_anchor(name: str, anchors: dict[str, Node]) -> str:
    import difflib

    close = difflib.get_close_matches(name, anchors, 1)
    return f"use `*{close[0]}`" if close else "define the anchor first, or write the value out"


_SYNTAX = (
    ("cannot start any token", "a character that begins no value", "quote the value; indent with spaces, not tabs"),
    (
        "mapping values are not allowed",
        "a `:` where no key can be",
        "quote a value that holds `: `, or indent it right",
    ),
    ("could not find expected ':'", "a key without `:`", "put `: ` after the key, or correct the indentation"),
    ("did not find expected key", "a missing key, or a wrong indentation", "align the line with the keys above"),
    ("did not find expected '-' indicator", "a missing `-`, or a wrong indentation", "align it with the list above"),
    ("unexpected end of stream", "a quote that is never closed", "close the quote"),
    ("did not find expected ',' or ']'", "a bracket that is not closed", "close it, or put commas between the items"),
    ("did not find expected ',' or '}'", "a brace that is not closed", "close it, or put commas between the entries"),
    ("unknown escape character", "an escape that YAML does not have", "double the backslash, or use single quotes"),
    ("did not find expected node content", "a missing value", "write the value, or remove the comma"),
    ("did not find expected <document start>", "text after the end of the document", "separate documents by `---`"),
    ("found undefined tag handle", "a tag that is not declared", "quote the value if it begins with `!`"),
)
"""libyaml's words for a fault, what they mean, and what to do."""


def _syntax_fault(source: Source, error: MarkedYAMLError) -> Diagnostic:
    problem = str(error.problem or error.context or "")
    mark = error.problem_mark or error.context_mark
    if "unexpected end of stream" in problem and error.context_mark is not None:
        mark = error.context_mark
    place = _clamped(source, mark.line + 1, mark.column + 1) if mark is not None else None
    known = ((told, hint) for part, told, hint in _SYNTAX if part in problem)
    told, hint = next(known, (problem, "correct the syntax"))
    cause = "no YAML reader takes the file"
    begun = error.context_mark
    if begun is not None and mark is not None and begun.line != mark.line and begun is not mark:
        cause = f"what it belongs to begins on line {begun.line + 1}"
    return source.fault("R003", place, f"not valid YAML: {told}", cause=cause, hint=hint)


def _clamped(source: Source, line: int, column: int) -> Scalar:
    """Return a place inside the file: a fault at its end lies behind the last character."""
    lines = BREAKS.split(source.text)
    while len(lines) > 1 and not lines[-1]:
        lines.pop()
    if line > len(lines):
        line, column = len(lines), len(lines[-1]) + 1
    return Scalar("", "", line, column)


def _character_fault(source: Source) -> Diagnostic:
    bad = re.search("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufeff\ufe00-\ufffd\U00010000-\U0010ffff]", source.text)
    if bad is None:
        return source.fault("R003", None, "not valid YAML: a character that is not allowed", hint="remove it")
    before = BREAKS.split(source.text[: bad.start()])
    place = Scalar("", "", len(before), len(before[-1]) + 1)
    return source.fault(
        "R003",
        place,
        f"the character U+{ord(bad.group()):04X} is not allowed in YAML",
        cause="no YAML reader takes the file",
        hint='remove it, or write it as an escape such as "\\x07" in double quotes',
    )
