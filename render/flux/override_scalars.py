"""What the override predictor asks of the scalars of an object; imported for its type only."""

from __future__ import annotations

from typing import Protocol


class Scalars(Protocol):
    """How `sites` and `transform` read and write the scalars of an object; maps are dicts and lists are lists."""

    def is_null(self, value: object) -> bool:
        """Tell whether a YAML reader takes the scalar for null."""

    def text(self, value: object) -> str:
        """Give the scalar's source text, without quotes: kustomize matches that, whatever the type."""

    def rewrite(self, value: object, text: str) -> object:
        """Give the scalar that replaces `value`: its quoting, the new text, the type resolved anew if plain."""
