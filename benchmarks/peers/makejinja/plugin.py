"""makejinja plug-in: a filter that writes YAML which every reader takes for what it was."""

from __future__ import annotations

import re
from typing import Any

import yaml

_LIKE_A_NUMBER = re.compile(r"[-+.]?[0-9][0-9a-fA-FxXob._+:-]*")


class Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """Quotes strings such as `077958` and `12e4`, which PyYAML leaves plain and other readers take for numbers."""


def _text(dumper: Any, value: str) -> Any:
    style = '"' if _LIKE_A_NUMBER.fullmatch(value) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


Dumper.add_representer(str, _text)


def to_yaml(value: Any) -> str:
    """Write a value as block YAML without a last line end."""
    return yaml.dump(value, Dumper=Dumper, sort_keys=False, default_flow_style=False).rstrip("\n")


def with_image(values: dict[str, Any], image: dict[str, Any]) -> dict[str, Any]:
    """Return values with the image at its place."""
    name, _, tag = image["ref"].partition(":")
    first, *rest = image["at"].split(".")
    if rest:
        inner = with_image(values.get(first, {}), {"ref": image["ref"], "at": ".".join(rest)})
    else:
        inner = {**values.get(first, {}), "repository": name, "tag": tag}
    return {**values, first: inner}


class Plugin:
    """What makejinja loads."""

    def __init__(self, **_: Any) -> None:
        pass

    def filters(self) -> list[Any]:
        """Return the filters."""
        return [to_yaml, with_image]
