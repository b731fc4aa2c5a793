"""A Kubernetes label selector and an object's labels in, whether it selects the object out."""

from __future__ import annotations

from collections.abc import Mapping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def selects(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Say whether a selector (`matchLabels`, `matchExpressions`) selects an object with these labels.

    All parts must hold; an empty selector selects everything. `NotIn` holds without the label too, as in apimachinery.
    """
    wanted = selector.get("matchLabels") or {}
    if any(labels.get(key) != value for key, value in wanted.items()):
        return False
    return all(_holds(part, labels) for part in selector.get("matchExpressions") or ())


def _holds(part: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    key, values = part.get("key"), part.get("values") or ()
    match part.get("operator"):
        case "In":
            return labels.get(str(key)) in values
        case "NotIn":
            return labels.get(str(key)) not in values
        case "Exists":
            return key in labels
        case _:
            return key not in labels
