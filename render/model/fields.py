"""What a checked mapping becomes; never compiled, since its attributes are not known before the schema is read."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from render.yaml.source import Mapping


class Record:
    """The checked fields of one mapping as attributes (snake_case), with defaults filled in."""

    node: Mapping | None

    def __init__(self, fields: dict[str, Any], node: Mapping | None) -> None:
        self.__dict__.update(fields)
        self.node = node

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)
