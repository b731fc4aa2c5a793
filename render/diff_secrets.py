"""Objects in, what of them may be shown out: nodes whose secret values are blanked."""

from __future__ import annotations

import re

from render.patterns import lazy
from render.redact import BLANK, has_credential, redact, redact_line
from render.yaml.source import Mapping, Node, Scalar, Sequence

_SECRET_FIELDS = ("data", "stringData")
_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""An annotation that holds a copy of the whole object."""
_PRIVATE_KEY = lazy(r"PRIVATE KEY-----|AGE-SECRET-KEY-")
_ASSIGNED = lazy(r"(?P<key>[\w.-]+)(?P<sign>[\"']?\s*=\s*)(?=\S)[^\n]+")
_FLAG = lazy(r"(?<!\S)-{1,2}(?P<key>[\w.-]+)(?P<sign>\s+)(?=\S)[^\n]+")
_LONE_FLAG = lazy(r"-{1,2}(?P<key>[\w.-]+)\Z")
_LOGIN = lazy(r"(://[^/\s:@]*:)[^/\s@]+(?=@)")
_SWITCHES = frozenset(("true", "false", "True", "False", "TRUE", "FALSE"))


class Cover:
    """Knows which nodes of an object must not be shown: by identity, so only for the trees it was given."""

    def __init__(self, *roots: Node) -> None:
        self._roots = roots
        self._hidden: set[int] = set()
        for root in roots:
            if type(root) is Mapping and type(sops := root.get("sops")) is Mapping:
                self._hide(sops)
            self._take(root)

    def hides(self, node: Node) -> bool:
        """Whether nothing of a node may be shown."""
        return id(node) in self._hidden

    def shown(self, node: Node) -> Node:
        """Return a copy of a node that holds no secret."""
        if id(node) in self._hidden:
            return Scalar(BLANK, "")
        if type(node) is Scalar:
            return Scalar(shown_text(node.text), node.style)
        if type(node) is Sequence:
            return Sequence([self.shown(item) for item in node.items])
        assert type(node) is Mapping
        return Mapping([(Scalar(shown_text(key.text), key.style), self.shown(value)) for key, value in node.entries])

    def _take(self, node: Node) -> None:
        if type(node) is Sequence:
            for before, item in zip([None, *node.items], node.items, strict=False):
                if type(before) is Scalar and (flag := _LONE_FLAG.match(before.text)) and is_credential(flag["key"]):
                    self._hide(item)
                self._take(item)
        elif type(node) is Mapping:
            name = node.text("name")
            is_secret = node.text("kind") == "Secret"
            is_named = name is not None and (is_credential(name) or name.lower().endswith("secret"))
            for key, value in node.entries:
                if is_secret and key.text in _SECRET_FIELDS:
                    self._hide_entries(value)
                elif key.text == _APPLIED or is_credential(key.text) or (is_named and key.text == "value"):
                    self._hide(value)
                self._take(value)

    def _hide_entries(self, node: Node) -> None:
        """Hide the values of a mapping, and leave its keys."""
        if type(node) is Mapping:
            for _, value in node.entries:
                self._hide(value)
        else:
            self._hide(node)

    def _hide(self, node: Node) -> None:
        if type(node) is Scalar:
            if node.text and not node.is_null and (node.style or node.text not in _SWITCHES):
                self._hidden.add(id(node))
        elif type(node) is Sequence:
            if node.items:
                self._hidden.add(id(node))
            for item in node.items:
                self._hide(item)
        elif type(node) is Mapping:
            if node.entries:
                self._hidden.add(id(node))
            for _, value in node.entries:
                self._hide(value)


def is_credential(key: str) -> bool:
    """Whether a key looks like that of a credential."""
    return has_credential(f"{key}: x")


def shown_text(text: str) -> str:
    """Return the text of a scalar without the credentials in it: of a file that it holds, a flag, or an address."""
    if _PRIVATE_KEY.search(text):
        return BLANK
    text = redact(text) if "\n" in text else redact_line(text)
    if "=" in text:
        text = _ASSIGNED.sub(_blanked, text)
    if "-" in text:
        text = _FLAG.sub(_blanked, text)
    return _LOGIN.sub(rf"\1{BLANK}", text) if "://" in text else text


def _blanked(match: re.Match[str]) -> str:
    if not is_credential(match["key"]):
        return match[0]
    return match[0][: match.end("sign") - match.start()] + BLANK
