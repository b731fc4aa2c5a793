"""Paths into values (`controllers.app.image`, `containers[name=app].image`, `"a.b".tag`): parsed, followed, written."""

from __future__ import annotations

import re
from functools import lru_cache

from render.patterns import lazy
from render.yaml.source import Mapping, Node, Scalar, Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

Selector = tuple[tuple[str, str], ...]
"""Conditions `[key=value,…]` on a list item; `name` also means `metadata.name`."""
Step = str | int | Selector
Path = tuple[Step, ...]

_ESCAPED = lazy(r"\\(.)")
_PLAIN_STEP = lazy(r"[^\s.\"'\[\]]+")
_QUOTED = lazy(r'(["\\])')
_PLAIN_KEY = lazy(r"[A-Za-z_][A-Za-z0-9_./-]*")
_STEP = lazy(
    r"""(?P<dot>\.?)(?:
        "(?P<double>(?:[^"\\]|\\.)*)" | '(?P<single>[^']*)' | (?P<key>[^\s."'\[\]]+)
    ) | \[(?P<index>[0-9]+)\] | \[(?P<select>[^\[\]=,]+=[^\[\],]*(?:,[^\[\]=,]+=[^\[\],]*)*)\]""",
    re.VERBOSE,
)


MAX_STEPS = 50
"""Steps of a path that is written along; each takes a call, and values are less deep."""
MAX_KEY = 128
"""Bytes of a key that stays on its line."""
_BREAKS = frozenset("\n\r\x85\u2028\u2029")


class PathError(ValueError):
    """A path that cannot be read or followed."""

    def __init__(
        self, message: str, position: int = 0, node: Node | None = None, *, cause: str = "", hint: str = ""
    ) -> None:
        super().__init__(message)
        self.position = position
        self.node = node
        """What stands in the way, when the path could not be followed."""
        self.cause = cause
        self.hint = hint
        """The change that mends it, imperative; empty when the caller knows better."""


def parse(text: str) -> Path:
    """Return the steps of a path; raises PathError with the position of the fault."""
    steps: list[Step] = []
    position = 0
    while position < len(text):
        match = _STEP.match(text, position)
        if match is None or (match["dot"] == "." and not steps) or (match["dot"] == "" and steps and _is_key(match)):
            raise PathError(f"`{shown(text)}` is no path", position, hint=_advice(text))
        if match["index"] is not None:
            steps.append(int(match["index"]))
        elif match["select"] is not None:
            conditions = [condition.split("=", 1) for condition in match["select"].split(",")]
            steps.append(tuple((key.strip(), value.strip()) for key, value in conditions))
        elif match["double"] is not None:
            steps.append(_ESCAPED.sub(r"\1", match["double"]))
        else:
            steps.append(match["single"] if match["single"] is not None else match["key"])
        position = match.end()
    if not steps:
        raise PathError("a path must name at least one key", hint="write the key, such as `image`")
    return tuple(steps)


def check_writable(path: Path) -> None:
    """Raise PathError unless `put` may write along a path: keys must be such that the image bot leaves them alone."""
    if len(path) > MAX_STEPS:
        raise PathError(f"a path has at most {MAX_STEPS} steps, and this one {len(path)}", hint="shorten it")
    for step in path:
        if isinstance(step, str) and (len(step.encode("utf-8", "replace")) > MAX_KEY or not _BREAKS.isdisjoint(step)):
            raise PathError(
                f"the path has a key over {MAX_KEY} bytes, or over more than one line",
                cause="such a key takes another form when the image bot rewrites the file",
                hint="name a shorter key",
            )


def shown(text: str) -> str:
    """Return a text as a message quotes it: not too long, and without what a terminal would obey."""
    text = text if len(text) <= 60 else text[:59] + "…"
    return "".join(c if c.isprintable() and c != "`" else "·" for c in text)


def _advice(text: str) -> str:
    if ".[" in text:
        return f"write `{shown(text.replace('.[', '['))}`"
    return "write keys with dots between, quoted if they hold dots"


def _is_key(match: re.Match[str]) -> bool:
    return match["index"] is None and match["select"] is None


def show(path: Path) -> str:
    """Return the text of a path."""
    out = ""
    for step in path:
        if isinstance(step, int):
            out += f"[{step}]"
        elif isinstance(step, tuple):
            out += "[" + ",".join(f"{key}={value}" for key, value in step) + "]"
        else:
            plain = _PLAIN_STEP.fullmatch(step)
            out += ("." if out else "") + (step if plain else '"' + _QUOTED.sub(r"\\\1", step) + '"')
    return out


def matches(item: Node, selector: Selector) -> bool:
    """Whether a list item fulfils every condition."""
    if type(item) is not Mapping:
        return False
    for key, wanted in selector:
        found = item.text(key)
        if found is None and key in ("name", "namespace"):
            metadata = item.get("metadata")
            found = metadata.text(key) if type(metadata) is Mapping else None
        if found != wanted:
            return False
    return True


def _index(node: Sequence, step: Step) -> int | None:
    if isinstance(step, int):
        return step if step < len(node.items) else None
    if isinstance(step, str):
        return None
    return next((i for i, item in enumerate(node.items) if matches(item, step)), None)


def find(node: Node | None, path: Path) -> Node | None:
    """Return what stands at a path, or None."""
    for step in path:
        if type(node) is Mapping and isinstance(step, str):
            node = node.get(step)
        elif type(node) is Sequence:
            index = _index(node, step)
            node = None if index is None else node.items[index]
        else:
            return None
    return node


def put(node: Node | None, path: Path, value: Any, done: Path = ()) -> Node:
    """Return a copy of `node` with `value` at a path, missing keys appended; what is not on the path is shared.

    Raises PathError when a value of another type is in the way, or a list has no such item.
    """
    if not path:
        return value  # type: ignore[no-any-return]
    step, rest = path[0], path[1:]
    here = (*done, step)
    if node is None or (type(node) is Scalar and node.is_null):
        if not isinstance(step, str):
            raise PathError(f"there is no list at `{show(done)}` to select from", node=node)
        return Mapping([(Scalar(step, _key_style(step)), put(None, rest, value, here))])
    if isinstance(step, str):
        if type(node) is not Mapping:
            kind = "a list" if type(node) is Sequence else "a plain value"
            raise PathError(f"`{show(done) or 'values'}` is {kind}, so `{show(here)}` cannot stand below it", node=node)
        entries = list(node.entries)
        for i, (key, inner) in enumerate(entries):
            if key.text == step:
                entries[i] = (key, put(inner, rest, value, here))
                break
        else:
            entries.append((Scalar(step, _key_style(step)), put(None, rest, value, here)))
        return Mapping(entries, node.line, node.column)
    if type(node) is not Sequence:
        raise PathError(f"`{show(done)}` is no list, so `{show(here)}` selects nothing", node=node)
    index = _index(node, step)
    if index is None:
        raise PathError(f"`{show(here)}` selects nothing: the list has {_listed(node, step)}", node=node)
    items = list(node.items)
    items[index] = put(items[index], rest, value, here)
    return Sequence(items, node.line, node.column)


@lru_cache(1024)
def _key_style(key: str) -> str:
    return "" if _PLAIN_KEY.fullmatch(key) and Scalar(key, "").is_string else '"'


def _listed(node: Sequence, step: Step) -> str:
    if isinstance(step, tuple) and node.items:
        names = [item.text(step[0][0]) for item in node.items if type(item) is Mapping]
        return ", ".join(f"`{step[0][0]}={name}`" for name in names if name) or "no such item"
    return f"{len(node.items)} items"


def replace(node: Node, swaps: dict[int, Any]) -> Node:
    """Return a copy of a tree with nodes swapped by identity (`id(node)` to value), wherever they are aliased to."""
    if id(node) in swaps:
        return swaps[id(node)]  # type: ignore[no-any-return]
    if type(node) is Mapping:
        entries = [(key, replace(inner, swaps)) for key, inner in node.entries]
        if all(new is old for (_, new), (_, old) in zip(entries, node.entries, strict=True)):
            return node
        return Mapping(entries, node.line, node.column)
    if type(node) is Sequence:
        items = [replace(inner, swaps) for inner in node.items]
        if all(new is old for new, old in zip(items, node.items, strict=True)):
            return node
        return Sequence(items, node.line, node.column)
    return node
