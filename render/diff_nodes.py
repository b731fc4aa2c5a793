"""Two objects in, the paths at which they differ out: by identity where a list has one, never by line."""

from __future__ import annotations

from collections.abc import Hashable
from difflib import SequenceMatcher
from typing import Literal, NamedTuple

from render.diff_secrets import Cover, shown_text
from render.patterns import lazy
from render.plan.paths import Path, Selector
from render.yaml import scalar
from render.yaml.source import Mapping, Node, Scalar, Sequence

Kind = Literal["added", "removed", "changed", "order", "marker"]

_MARKER = lazy(r"#\s*(\{\s*\"\$[a-z]+\".*\})\s*\Z")
_POLICY = lazy(r"\{\s*\"\$imagepolicy\"\s*:\s*\"(?P<policy>[^\"\s]+)\"\s*\}")
_BREAKS = lazy("\r\n|[\r\n\x85\u2028\u2029]")

_CONTAINER_PORT = (("containerPort", ""), ("protocol", "TCP"))
_SERVICE_PORT = (("port", ""), ("protocol", "TCP"))
_NAME = (("name", ""),)
KEYS: dict[str, tuple[tuple[tuple[str, str], ...], ...]] = {
    "containers": (_NAME,),
    "ephemeralContainers": (_NAME,),
    "volumes": (_NAME,),
    "volumeClaimTemplates": (_NAME,),
    "env": (_NAME,),
    "imagePullSecrets": (_NAME,),
    "ports": (_CONTAINER_PORT, _SERVICE_PORT, _NAME),
    "volumeMounts": ((("mountPath", ""),),),
    "volumeDevices": ((("devicePath", ""),),),
    "hostAliases": ((("ip", ""),),),
    "conditions": ((("type", ""),),),
    "topologySpreadConstraints": ((("topologyKey", ""), ("whenUnsatisfiable", "")),),
    "dependsOn": ((("namespace", "-"), ("name", "")),),
}
"""Lists that Kubernetes or Flux takes as sets by these keys, each with its default (`""`: none, `-`: may be absent)."""

_OTHER_KEYS: tuple[tuple[tuple[str, str], ...], ...] = (
    (("kind", ""), ("name", "")),
    _NAME,
    (("mountPath", ""),),
    _CONTAINER_PORT,
    _SERVICE_PORT,
    (("host", ""),),
    (("key", ""),),
    (("id", ""),),
)
"""What tells the items of any other list apart; the order of such a list may mean something."""
_MAX_ALIGNED = 250_000


class Change(NamedTuple):
    """One difference between two objects."""

    path: Path
    kind: Kind
    old: Node | None
    """What may be shown of the old value: the marker's text of a `marker`, the names in order of an `order`."""
    new: Node | None
    is_redacted: bool = False
    """Whether some of the values is not shown."""


class Side:
    """One of two versions of an object: its root, its setter markers by line, and what of it may be shown."""

    def __init__(self, root: Node, markers: dict[int, str]) -> None:
        self.root = root
        self.markers = markers
        self.cover = Cover(root)


def markers_of(text: str) -> dict[int, str]:
    """Return the setter markers of a text by line: what an image marker names (`flux-system:web:tag`), or all of it."""
    if "$" not in text:
        return {}
    found = ((number, _MARKER.search(line)) for number, line in enumerate(_BREAKS.split(text), 1))
    return {number: _marker(match[1]) for number, match in found if match}


def _marker(comment: str) -> str:
    policy = _POLICY.fullmatch(comment)
    return policy["policy"] if policy else "".join(comment.split())


def compare(old: Side, new: Side, *, is_release: bool = False) -> list[Change]:
    """Return the differences of two objects, in the order of the old one.

    Two scalars are equal when both readers in Flux's path make the same of them. The order of keys does not count, nor
    that of lists that Kubernetes takes as sets; in the values of a release (`is_release`) every order counts.
    """
    comparison = _Comparison(old, new, is_release=is_release)
    comparison.nodes(old.root, new.root, ())
    return comparison.changes


def meaning(node: Node) -> Hashable:
    """Return what both readers make of a node, such that equal nodes have equal meanings."""
    if type(node) is Scalar:
        if node.is_string:
            return ("string", node.text)
        one, other = scalar.kyaml(node.text), scalar.sigs(node.text)
        is_clear = one.kind in _CLEAR and other.kind in _CLEAR
        return (one.kind, one.value, other.kind, other.value, "" if is_clear else node.text)
    if type(node) is Sequence:
        return ("list", *map(meaning, node.items))
    assert type(node) is Mapping
    return ("map", frozenset((_key(key), meaning(value)) for key, value in node.entries))


_CLEAR = frozenset(("string", "int", "float", "bool", "null", "timestamp"))


def _key(key: Scalar) -> tuple[str | None, str | None]:
    return (key.text, key.text) if key.style else (scalar.kyaml_key(key.text), scalar.sigs_key(key.text))


class _Comparison:
    def __init__(self, old: Side, new: Side, *, is_release: bool) -> None:
        self.old = old
        self.new = new
        self.is_release = is_release
        self.changes: list[Change] = []

    def _add(self, path: Path, kind: Kind, old: Node | None, new: Node | None) -> None:
        shown_old = None if old is None else self.old.cover.shown(old)
        shown_new = None if new is None else self.new.cover.shown(new)
        pairs = ((old, shown_old), (new, shown_new))
        is_redacted = any(a is not None and b is not None and meaning(a) != meaning(b) for a, b in pairs)
        self.changes.append(Change(path, kind, shown_old, shown_new, is_redacted))

    def nodes(self, old: Node, new: Node, path: Path) -> None:
        if self.old.cover.hides(old) or self.new.cover.hides(new):
            if meaning(old) != meaning(new):
                self._add(path, "changed", old, new)
        elif type(old) is Mapping and type(new) is Mapping:
            self._mappings(old, new, path)
        elif type(old) is Sequence and type(new) is Sequence:
            self._sequences(old, new, path)
        else:
            if meaning(old) != meaning(new):
                self._add(path, "changed", old, new)
            self._markers(old, new, path)

    def _markers(self, old: Node, new: Node, path: Path) -> None:
        one = self.old.markers.get(old.line) if type(old) is Scalar else None
        other = self.new.markers.get(new.line) if type(new) is Scalar else None
        if one != other:
            before, after = (None if text is None else Scalar(text, "") for text in (one, other))
            self.changes.append(Change(path, "marker", before, after))

    def _mappings(self, old: Mapping, new: Mapping, path: Path) -> None:
        theirs = {_key(key): (key, value) for key, value in new.entries}
        for key, value in old.entries:
            found = theirs.pop(_key(key), None)
            if found is None:
                self._add((*path, key.text), "removed", value, None)
            else:
                self.nodes(value, found[1], (*path, key.text))
        for key, value in theirs.values():
            self._add((*path, key.text), "added", None, value)

    def _sequences(self, old: Sequence, new: Sequence, path: Path) -> None:
        field = path[-1] if path and isinstance(path[-1], str) else ""
        for keys in KEYS.get(field, _OTHER_KEYS):
            before, after = identities(old, keys), identities(new, keys)
            if before is not None and after is not None:
                self._named(dict(zip(before, old.items, strict=True)), dict(zip(after, new.items, strict=True)), path)
                in_values = self.is_release and path[:2] == ("spec", "values")
                if field not in KEYS or in_values:
                    self._order(before, after, path)
                return
        self._aligned(old.items, new.items, path)

    def _named(self, old: dict[Selector, Node], new: dict[Selector, Node], path: Path) -> None:
        for index, (name, item) in enumerate(old.items()):
            place = (*path, step(name, index))
            if name in new:
                self.nodes(item, new[name], place)
            else:
                self._add(place, "removed", item, None)
        for index, (name, item) in enumerate(new.items()):
            if name not in old:
                self._add((*path, step(name, index)), "added", None, item)

    def _order(self, before: list[Selector], after: list[Selector], path: Path) -> None:
        old, new = ([one for one in names if one in others] for names, others in ((before, after), (after, before)))
        if old != new:
            texts = ([Scalar(",".join(value for _, value in name)) for name in names] for names in (old, new))
            self._add(path, "order", *(Sequence(list(one)) for one in texts))

    def _aligned(self, old: list[Node], new: list[Node], path: Path) -> None:
        """Compare lists whose items have no names, after finding out which items stayed."""
        if len(old) * len(new) > _MAX_ALIGNED:
            self._paired(old, new, 0, 0, path)
            return
        before, after = [*map(meaning, old)], [*map(meaning, new)]
        matcher = SequenceMatcher(None, before, after, autojunk=False)
        stayed = sum(block.size for block in matcher.get_matching_blocks())
        if len(old) == len(new) and stayed <= sum(a == b for a, b in zip(before, after, strict=True)):
            self._paired(old, new, 0, 0, path)
            return
        for _, first, last, start, end in matcher.get_opcodes():
            self._paired(old[first:last], new[start:end], first, start, path)

    def _paired(self, old: list[Node], new: list[Node], first: int, start: int, path: Path) -> None:
        """Compare items by their position; a number in a path counts in the list that holds the item."""
        both = min(len(old), len(new))
        for index in range(both):
            self.nodes(old[index], new[index], (*path, start + index))
        for index in range(both, len(old)):
            self._add((*path, first + index), "removed", old[index], None)
        for index in range(both, len(new)):
            self._add((*path, start + index), "added", None, new[index])


def identities(items: Sequence, keys: tuple[tuple[str, str], ...]) -> list[Selector] | None:
    """Return what tells the items of a list apart by `keys`; None unless each item has it, and no two the same."""
    found: list[Selector] = []
    for item in items.items:
        if type(item) is not Mapping:
            return None
        name: list[tuple[str, str]] = []
        for key, default in keys:
            text = item.text(key)
            if text is None and key == "name" and type(metadata := item.get("metadata")) is Mapping:
                text = metadata.text(key)
            if text is None and not default:
                return None
            if text is not None and text != default:
                name.append((key, text))
        found.append(tuple(name))
    return found if len(set(found)) == len(found) else None


def step(name: Selector, index: int) -> Selector | int:
    """Return the step to an item: its name, where a path can hold it."""
    is_plain = all(value == shown_text(value) and not set(value) & set("[],\n") for _, value in name)
    return name if name and is_plain else index
