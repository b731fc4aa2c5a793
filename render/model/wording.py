"""Scalars and what was expected of them in, the words of a diagnostic out.

Nothing here looks at whether a text may be shown: callers pass what they are allowed to quote.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from render.patterns import lazy
from render.structs import struct
from render.yaml import scalar
from render.yaml.source import Scalar

WIDTH = 79
"""Columns of a headline."""
LISTED = 12
"""Names that a cause lists before it is cut."""

# A number in base 60 to YAML 1.1 readers other than Flux's, such as those of editors and linters.
SEXAGESIMAL = lazy(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?\Z", re.ASCII)
_TRAILING_FRACTION = lazy(r"[0-9]+\.[0-9]+\Z")


@struct(frozen=True)
class Meaning:
    """What a pattern asks for, as people say it."""

    expected: str
    """What stands after `must be`."""
    cause: str = ""
    repair: Callable[[str], str] = lambda _: ""
    """Returns what a text was probably meant to be; `""` when that is not clear."""


def _as_name(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z_. -][A-Za-z0-9_. -]*", text):
        return ""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def _as_duration(text: str) -> str:
    parts = re.fullmatch(r"([0-9]+) *([a-z]+)", text.lower())
    if parts is None:
        return ""
    number, unit = int(parts[1]), parts[2]
    if unit in ("w", "week", "weeks", "d", "day", "days"):
        return f"{number * (168 if unit[0] == 'w' else 24)}h"
    known = {"h": "h", "m": "m", "s": "s", "hr": "h", "min": "m", "sec": "s", "hour": "h", "minute": "m", "second": "s"}
    short = known.get(unit) or known.get(unit.removesuffix("s"))
    return f"{number}{short}" if short else ""


def _in_minutes(text: str) -> str:
    parts = re.fullmatch(r"([0-9]+)h(?:([0-9]+)m)?", _as_duration(text) or text)
    return f"{int(parts[1]) * 60 + int(parts[2] or 0)}m" if parts else _as_duration(text)


def _as_size(text: str) -> str:
    parts = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) *([kmgt])(i?)b?", text.lower())
    return f"{parts[1]}{parts[2].upper()}i" if parts else ""


def _as_flux_version(text: str) -> str:
    match = re.match(r"v?(2\.[0-9]+(?:\.[0-9]+)?)(?![0-9])", text)
    return match[1] if match else ""


_QUALIFIED_NAME = r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"
_QUALIFIED = rf"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?{_QUALIFIED_NAME}$"
_LABEL = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
_LABEL_OR_VARIABLE = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?|.*[$][{].*)$"
_SUBDOMAIN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"

MEANINGS = {
    r"^([^\s{]|\{[^\s{])+$": Meaning(
        "an address without blanks and `{{`", "Prometheus takes what stands in `{{ }}` for a template"
    ),
    _LABEL: Meaning("lower-case letters, digits and inner `-`", repair=_as_name),
    _LABEL_OR_VARIABLE: Meaning("lower-case letters, digits and inner `-`", repair=_as_name),
    _SUBDOMAIN: Meaning("lower-case letters, digits, `-` and `.`", repair=_as_name),
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?|.*[$][{].*)$": Meaning(
        "lower-case letters, digits and inner `-`", repair=_as_name
    ),
    r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$": Meaning(
        "a duration such as `1h30m`", "units are `h`, `m`, `s` and `ms`; there are no days", _as_duration
    ),
    r"^([0-9]+(\.[0-9]+)?(ms|s|m))+$": Meaning(
        "a duration such as `90s`", "units are `m`, `s` and `ms`; this field takes no hours", _in_minutes
    ),
    r"^[_A-Za-z][_A-Za-z0-9]*$": Meaning("the name of a variable", "letters, digits and `_`, no digit first"),
    r"^[a-z0-9.-]+/[a-z0-9.-]+$": Meaning("`namespace/name`"),
    _QUALIFIED: Meaning("`name` or `prefix/name`", "letters, digits, `-`, `_` and `.`; the prefix is a DNS name"),
    rf"^({_QUALIFIED_NAME}|.*[$][{{].*)?$": Meaning(
        "a label's value", "letters, digits and inner `-`, `_` and `.`, or empty"
    ),
    r"^2\.[0-9]+(\.[0-9]+)?$": Meaning("a Flux version such as `2.9` or `2.8.6`", repair=_as_flux_version),
    r"^[\-._a-zA-Z0-9]+$": Meaning("a key of letters, digits, `-`, `_` and `.`"),
    r"^([a-zA-Z0-9_\-.\\\/]|\[[0-9]{1,5}\])+$": Meaning(
        "a path such as `parent.list[0].child`", "letters, digits, `_`, `-`, `.`, `/`, and `[0]` for items of lists"
    ),
    r"^(http|https|oci)://.*$": Meaning("a URL of `https://`, `http://` or `oci://`"),
    r"^(http|https|ssh)://.*$": Meaning("a URL of `https://`, `http://` or `ssh://`"),
    r"^oci://.*$": Meaning("a URL of `oci://`"),
    r"^https?://\S+$": Meaning("a URL of `https://` or `http://`"),
    r"^[0-9]+(\.[0-9]+)?(Ki|Mi|Gi|Ti|Pi|Ei|k|M|G|T|P|E)?$": Meaning(
        "a size such as `2Gi`", "units are `Ki`, `Mi`, `Gi`, `Ti`, and `k`, `M`, `G`, `T` for powers of 1000", _as_size
    ),
    r"^[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}$": Meaning("a MAC address such as `02:00:00:00:00:01`"),
    r"^[a-z_][a-z0-9_-]*$": Meaning("a login name", "lower-case letters, digits, `_` and `-`, no digit first"),
    r"^/[^\n]*[^/\n]$": Meaning("an absolute path"),
    r"^0?[0-7]{3,4}$": Meaning("an octal mode such as `0644`"),
    r"^[A-Za-z0-9_.-]+(:[A-Za-z0-9_.-]+)?$": Meaning("`user` or `user:group`"),
    r"^[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*$": Meaning("a time zone such as `Europe/Berlin`"),
    r"^[A-Za-z0-9_.+-]+$": Meaning("letters, digits, `_`, `.`, `+` and `-`"),
    r"^[A-Za-z0-9_.@-]+$": Meaning("a locale such as `en_GB.UTF-8`"),
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?/)?[a-z0-9]([-a-z0-9.]*[a-z0-9])?$": Meaning("`name` or `namespace/name`"),
}
"""The patterns of the models and of the tables of `render.flux.api`."""

_LENGTHS = {
    15: "Kubernetes takes names of ports of at most 15 characters",
    53: "Helm takes release names of at most 53 characters",
    63: "Kubernetes takes labels of at most 63 characters",
    253: "Kubernetes takes names of at most 253 characters",
}


def meaning_of(pattern: str) -> Meaning:
    """Return what a pattern asks for."""
    return MEANINGS.get(pattern) or Meaning(f"text matching `{pattern}`")


def length_reason(pattern: str | None, most: int) -> str:
    """Say who limits the length of a name; `""` for other texts."""
    return _LENGTHS.get(most, "") if pattern in (_LABEL, _LABEL_OR_VARIABLE, _SUBDOMAIN) else ""


def kind_of(node: Scalar) -> str:
    """Say what a scalar is to YAML, as a noun with its article: `the number`."""
    if node.style:
        return "the string"
    kinds = (scalar.sigs(node.text).kind, scalar.kyaml(node.text).kind)
    for kind, word in (("bool", "the boolean"), ("null", "the null"), ("timestamp", "the date")):
        if kind in kinds:
            return word
    if "int" in kinds or "float" in kinds:
        return "the number"
    is_text = scalar.is_plain_string(node.text) and not SEXAGESIMAL.match(node.text)
    return "the text" if is_text else "the plain"


def reading(node: Scalar, *, quoting: bool) -> str:
    """Say what readers make of a plain scalar that not all take for a string; its value only when `quoting`."""
    text = node.text
    if SEXAGESIMAL.match(text):
        return "readers of YAML 1.1 take it for a number in base 60"
    if text == "<<":
        return "YAML takes it for a merge key"
    readings = (scalar.sigs(text), scalar.kyaml(text))
    values = {_shown_value(one.value) for one in readings if one.value is not None and one.kind != "string"}
    told = " or ".join(f"`{value}`" for value in sorted(values - {text}))
    if told and quoting:
        return f"YAML reads it as {told}"
    same = f", the same as `{text}0`" if quoting and _TRAILING_FRACTION.match(text) else ""
    return f"without quotes it is {kind_of(node).replace('the ', 'a ')} to YAML{same}"


def _shown_value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e16:
        return str(int(value))
    return str(value)


def listed(names: Iterable[str], *, most: int | None = None) -> str:
    """Return names in backticks with commas between, cut after `most`."""
    shown = [f"`{name}`" for name in names]
    return ", ".join(shown[:most]) + (", …" if most is not None and len(shown) > most else "")


def one_of(names: Iterable[str]) -> str:
    """Return names in backticks as alternatives."""
    shown = [f"`{name}`" for name in names]
    return shown[0] if len(shown) == 1 else ", ".join(shown[:-1]) + " or " + shown[-1]


def closest(text: str, names: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Return the name that `text` probably means, apart from case, `_` and `-`; None when none is close."""
    import difflib

    options = list(names)
    folded = {_fold(name): name for name in options}
    return folded.get(_fold(text)) or next(iter(difflib.get_close_matches(text, options, 1, cutoff)), None)


def _fold(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: `1 item`, `2 items`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
