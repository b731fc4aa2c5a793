"""Nodes and what they must be in, records out; faults are collected with their places."""

from __future__ import annotations

from render.diagnostics import Diagnostic
from render.model.wording import kind_of
from render.yaml.source import Node, Scalar, Sequence, Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

Schema: TypeAlias = "dict[str, Any]"


class Invalid:
    """What a check returns for a value it has reported."""


INVALID = Invalid()


class Reader:
    """Checks nodes of one file, collecting faults."""

    def __init__(self, source: Source, faults: list[Diagnostic]) -> None:
        self.source = source
        self.faults = faults

    def read(self, check: Check, node: Node, path: str, at: Node | None = None) -> Any:
        """Return what `check` makes of `node`, or INVALID; `path` names it, `at` is the place of what is missing."""
        return check.read(self, node, path, at or node)

    def fault(self, code: str, node: Node, message: str, cause: str = "", hint: str = "") -> Invalid:
        """Report a fault and return INVALID."""
        self.faults.append(self.source.fault(code, node, message, cause=cause, hint=hint))
        return INVALID

    def quotable(self, node: Scalar) -> bool:
        """Whether the text of a scalar may be quoted in full: it is no secret, and short."""
        return self.source.shown(node) == node.text

    def entry(self, node: Scalar, at: Node, text: str) -> str:
        """Return `key: text`, as the entry of `node` would be written; `text` alone for a list's item."""
        is_keyed = type(at) is Scalar and at is not node and self.quotable(at)
        return f"{at.text}: {text}" if is_keyed and type(at) is Scalar else text

    def wrong_type(self, node: Node, path: str, expected: str, hint: str = "") -> Invalid:
        """Report a value of another type."""
        name = f"`{path}`" if path else "the document"
        if type(node) is Scalar and node.style == "?":
            return INVALID
        if type(node) is not Scalar:
            kind = "a list" if type(node) is Sequence else "a mapping"
            return self.fault("R103", node, f"{name} must be {expected}, not {kind}", hint=hint)
        if node.is_null:
            drop = f"give `{path}` a value, or remove the key" if path else ""
            return self.fault("R103", node, f"{name} must be {expected}, not empty", hint=drop)
        told = f"{name} must be {expected}, not {kind_of(node)} `{self.source.shown(node)}`"
        return self.fault("R103", node, told, hint=hint)


class Check:
    """What a value must be."""

    expected = "a value"
    nullable = False
    kind: type = Scalar
    """The nodes that it takes: how a union of forms chooses."""

    def read(self, reader: Reader, node: Node, path: str, at: Node) -> Any:
        """Return the checked value, or INVALID after reporting."""
        raise NotImplementedError

    def fits(self, node: Scalar) -> bool:  # noqa: ARG002
        """Whether a scalar is spelled as this form asks: how a union of scalar forms chooses."""
        return True
