"""The text of a plain scalar in, what each YAML reader in Flux's path takes it for out; strings in, scalar text out.

Two readers see every file. *kyaml* (go.yaml.in/yaml v3 and kyaml's JSON conversion) reads it in the kustomize build;
*sigs* (sigs.k8s.io/yaml, the rules of go-yaml v2) reads it after postBuild substitution and in Helm. They agree on
numbers, and differ on `yes`, `on`, `y` and their kin, on dates, on `<<`, on infinities and on most keys.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from render.patterns import lazy
from render.structs import struct

Value = str | int | float | bool | None

_CACHE = 2048


@struct(frozen=True)
class Resolved:
    """What a reader makes of a plain scalar."""

    kind: str
    """`string`, `int`, `float`, `bool`, `null`, `timestamp`, `error` (the reader fails), `other` (no JSON scalar)."""
    value: Value
    """The value as JSON has it; None where there is none: for `null`, and for what JSON cannot carry."""


_ERROR = Resolved("error", None)

_NULLS = frozenset(("", "~", "null", "Null", "NULL"))
_TRUE = frozenset(("true", "True", "TRUE"))
_FALSE = frozenset(("false", "False", "FALSE"))
_SIGS_TRUE = _TRUE | frozenset(("y", "Y", "yes", "Yes", "YES", "on", "On", "ON"))
_SIGS_FALSE = _FALSE | frozenset(("n", "N", "no", "No", "NO", "off", "Off", "OFF"))
_DIFFERING = (_SIGS_TRUE | _SIGS_FALSE) - _TRUE - _FALSE
_INFINITIES = {
    sign + word: key for sign, key in (("", ".inf"), ("+", ".inf"), ("-", "-.inf")) for word in (".inf", ".Inf", ".INF")
}
_NANS = frozenset((".nan", ".NaN", ".NAN"))

# A text that both scanners take for one plain scalar of a block collection: no indicator in front, no `: `, no ` #`, no
# blank at either end. Only space and tab are blanks to them.
_PLAIN = lazy(
    r"(?:[^ \t\-?:,\[\]{}#&*!|>'\"%@`]|[-?:](?![ \t]|\Z))"
    r"(?:[^ \t:#]|:(?![ \t]|\Z)|(?<![ \t])#|[ \t]+(?=[^ \t#]))*\Z"
)
# What ends a line, and what go-yaml's reader refuses (DEL among it).
_BREAKS = lazy("[\n\r\x85\u2028\u2029]")
_UNREADABLE = lazy(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufeff\ufffe\uffff]")
_UNCARRIED = lazy("[\x7f-\x84\x86-\x9f\ufffe\uffff]")
_MAX_KEY = 1024

_DECIMAL = lazy(r"[-+]?(?:0|[1-9][0-9]*)\Z")
_RADIX = lazy(r"([-+]?)0(?:([xX])([0-9a-fA-F]+)|([bB])([01]+)|[oO]?([0-7]+))\Z")
_SIGNED_BINARY = lazy(r"0b([-+][01]+)\Z")
_SIGNED_OCTAL = lazy(r"0_*o_*([-+][0-7_]*[0-7][0-7_]*)\Z")
_FLOAT = lazy(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z")

# The layouts that go-yaml gives to Go's time.Parse, with what that function tolerates: a comma before the fraction,
# several blanks between date and time, a zone of up to 24:60.
_TIMESTAMP = lazy(
    r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})"
    r"(?:([Tt]| +)([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})(?:[.,]([0-9]+))?(Z|[-+][0-9]{2}:[0-9]{2})?)?\Z"
)

_WORDS = frozenset(("y", "yes", "true", "on", "n", "no", "false", "off", "null"))
_LETTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
_SIMPLE = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./-"
_IN_WORDS = _SIMPLE + ":@"
"""What stands in plain scalars that begin with a letter and hold no blank."""
_BEGINS_SAFE = _LETTERS | frozenset("_/")
_DIGITS = frozenset("0123456789")
_SIMPLE_KEY = lazy(r"[A-Za-z_][A-Za-z0-9_./-]*\Z")
_DURATION = lazy(r"(?:[0-9]+(?:\.[0-9]+)?(?:ms|s|m|h))+\Z")
_URL = lazy(r"[a-z][a-z0-9+.-]*://[A-Za-z0-9._~/?#@!$&'()*+,;=%:-]*[A-Za-z0-9_~/=-]\Z")

_ESCAPES = {
    "\0": "\\0",
    "\a": "\\a",
    "\b": "\\b",
    "\t": "\\t",
    "\n": "\\n",
    "\v": "\\v",
    "\f": "\\f",
    "\r": "\\r",
    "\x1b": "\\e",
    '"': '\\"',
    "\\": "\\\\",
    "\x85": "\\N",
    "\xa0": "\\_",
    "\u2028": "\\L",
    "\u2029": "\\P",
}
_ESCAPED = lazy('[\x00-\x1f"\\\\\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\U00010000-\U0010ffff]')


def is_plain(text: str) -> bool:
    """Whether the text, written as a value in a block collection, is one plain scalar on one line, spelled as it is.

    An empty text is not: it is nothing at all.
    """
    if _PLAIN.match(text) is None:
        return False
    # All that the two name are unprintable.
    return text.isprintable() or (_BREAKS.search(text) is None and _UNREADABLE.search(text) is None)


@lru_cache(_CACHE)
def sigs(text: str) -> Resolved:
    """Resolve a plain scalar, as a value, as sigs.k8s.io/yaml does (go-yaml v2 and the conversion to JSON).

    Infinities and NaN are errors: JSON has none. A date is one, but keeps its spelling.
    """
    if text in _SIGS_TRUE:
        return Resolved("bool", True)
    if text in _SIGS_FALSE:
        return Resolved("bool", False)
    if text in _INFINITIES or text in _NANS:
        return _ERROR
    resolved = _common(text)
    if resolved is None:
        return Resolved("timestamp", text) if _timestamp(text) else Resolved("string", text)
    return resolved


@lru_cache(_CACHE)
def kyaml(text: str) -> Resolved:
    """Resolve a plain scalar, as a value, as kyaml does (go.yaml.in/yaml v3 and the conversion to JSON).

    Infinities and NaN are floats without a value: the conversion fails. A date becomes RFC 3339. `<<` is a merge key
    even as a value.
    """
    if text in _TRUE:
        return Resolved("bool", True)
    if text in _FALSE:
        return Resolved("bool", False)
    if text in _INFINITIES or text in _NANS:
        return Resolved("float", None)
    if text == "<<":
        return Resolved("other", text)
    if text[:1] == "0" and (match := _SIGNED_OCTAL.match(text)):
        return Resolved("int", int(match[1].replace("_", ""), 8))
    resolved = _common(text)
    if resolved is None:
        moment = _timestamp(text)
        return Resolved("timestamp", moment.json) if moment else Resolved("string", text)
    return resolved


@lru_cache(_CACHE)
def sigs_key(text: str) -> str | None:
    """Return the key that a plain mapping key becomes in sigs.k8s.io/yaml's JSON; None if the document fails on it.

    Numbers are respelled (floats in 32-bit precision), booleans become `true` and `false`; a null, a merge key and an
    integer of more than 63 bits fail.
    """
    if text == "<<" or len(text) > _MAX_KEY:
        return None
    if text in _INFINITIES:
        return _INFINITIES[text]
    if text in _NANS:
        return ".nan"
    found = sigs(text)
    value = found.value
    if found.kind == "null":
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value) if value < 2**63 else None
    if isinstance(value, float):
        return _float32(value)
    return text


def kyaml_key(text: str) -> str | None:
    """Return the key that a plain mapping key becomes in kyaml's JSON: its own spelling.

    None for an absent key and for a merge key, which make none.
    """
    return None if text in ("", "<<") or len(text) > _MAX_KEY else text


class Memo(dict[str, bool]):
    """The answers of a question about texts, looked up at the speed of a dict; bounded."""

    def __init__(self, ask: Callable[[str], bool]) -> None:
        super().__init__()
        self.ask = ask

    def __missing__(self, text: str) -> bool:
        if len(self) >= _CACHE:
            self.clear()
        answer = self[text] = self.ask(text)
        return answer


@lru_cache(_CACHE)
def is_plain_string(text: str) -> bool:
    """Whether both readers take the plain text for exactly the string it spells, so that it needs no quotes."""
    if text[:1] in _LETTERS and not text.strip(_IN_WORDS) and text[-1] != ":":
        # Only words that begin with a letter are anything but strings.
        return text not in _SIGS_TRUE and text not in _SIGS_FALSE and text not in _NULLS
    return is_plain(text) and sigs(text).kind == "string" and kyaml(text).kind == "string"


def readers_differ(text: str) -> bool:
    """Whether the two readers take the plain scalar, as a value, for different things."""
    one, other = sigs(text), kyaml(text)
    return one.kind != other.kind or one.value != other.value


def is_carried(text: str, *, plain: bool = False) -> bool:
    """Whether kustomize can write the scalar: its output passes through JSON, and through a strict YAML reader.

    JSON has no infinities; the reader refuses the characters from DEL on that YAML does not count as printable, in any
    form. (Those below the space are escaped in between.)
    """
    if (not text.isascii() or "\x7f" in text) and _UNCARRIED.search(text):
        return False
    return not (plain and (text in _INFINITIES or text in _NANS))


def keys_differ(text: str) -> bool:
    """Whether the two readers make different keys of the plain scalar."""
    return sigs_key(text) != kyaml_key(text)


def _is_sound_value(text: str) -> bool:
    if text.isascii() and text.isprintable():
        first = text[:1]
        if first in _LETTERS:
            return text not in _DIFFERING
        # Both resolve numbers alike, but for octal ones in old spellings; dates have a hyphen after four digits.
        if first in _DIGITS and text[4:5] != "-" and (first != "0" or text[1:2] == "."):
            return True
    return is_carried(text, plain=True) and not readers_differ(text)


SOUND_VALUES = Memo(_is_sound_value)
"""Whether a plain scalar is one value to both readers, and kustomize can write it."""
SOUND_KEYS = Memo(lambda text: kyaml(text).kind == "string" and is_carried(text) and not keys_differ(text))
"""The same for a plain key, which must be a string."""

USUAL_KEYS = Memo(lambda text: len(text) <= 128 and _SIMPLE_KEY.match(text) is not None and text.lower() not in _WORDS)
"""Whether a plain key is short and, by its letters alone, the string that it spells to every reader."""


@lru_cache(_CACHE)
def quote(text: str) -> str:
    """Write a string as a scalar: plain where every reader must agree (and for durations and URLs), else double-quoted.

    The result is a value, or a key of up to 128 bytes, in a block collection.
    """
    if text[:1] in _BEGINS_SAFE and not text.strip(_SIMPLE):
        return double_quoted(text) if text.lower() in _WORDS else text
    if _DURATION.match(text) or _URL.match(text):
        return text
    return double_quoted(text)


def double_quoted(text: str) -> str:
    """Write a string as a double-quoted scalar on one line, in the escapes that kyaml would rewrite it to.

    Raises ValueError for a lone surrogate, which UTF-8 cannot carry.
    """
    if text.isascii() and text.isprintable():
        if '"' in text or "\\" in text:
            text = text.replace("\\", "\\\\").replace('"', '\\"')
    else:
        for position, character in enumerate(text):
            if 0xD800 <= ord(character) <= 0xDFFF:
                raise ValueError(f"a lone surrogate at character {position + 1} is no text")
        if text[0] == "\ufeff":
            # go-yaml escapes every character of a text that starts with a byte order mark.
            text = "".join(map(_escape, text))
        else:
            text = _ESCAPED.sub(lambda match: _escape(match[0]), text)
    return f'"{text}"'


def _escape(character: str) -> str:
    short = _ESCAPES.get(character)
    if short is not None:
        return short
    code = ord(character)
    if code <= 0xFF:
        return f"\\x{code:02X}"
    return f"\\u{code:04X}" if code <= 0xFFFF else f"\\U{code:08X}"


def _common(text: str) -> Resolved | None:
    """Resolve what both readers agree on: nulls and numbers; None for anything else."""
    if text in _NULLS:
        return Resolved("null", None)
    first = text[0]
    if first == ".":
        return _float(text) if _FLOAT.match(text) else None
    if first not in "+-0123456789":
        return None
    digits = text.replace("_", "")
    number = _integer(digits)
    if number is not None:
        return Resolved("int", number)
    return _float(digits) if _FLOAT.match(digits) else None


def _integer(digits: str) -> int | None:
    """Read an integer as Go's ParseInt and ParseUint do in base 0 (a leading 0 means octal); None if out of 64 bits."""
    if (digits.isdigit() and digits.isascii() and digits[0] != "0") or _DECIMAL.match(digits):
        number = int(digits)
    elif match := _RADIX.match(digits):
        sign, _, hexadecimal, _, binary, octal = match.groups()
        number = int(hexadecimal, 16) if hexadecimal else int(binary, 2) if binary else int(octal, 8)
        number = -number if sign == "-" else number
    elif match := _SIGNED_BINARY.match(digits):
        number = int(match[1], 2)
    else:
        return None
    return number if -(2**63) <= number < (2**63 if digits[0] in "+-" else 2**64) else None


def _float(digits: str) -> Resolved | None:
    """Read a decimal float; one that overflows is a string to Go, one that underflows is zero."""
    number = float(digits)
    return None if number in (float("inf"), float("-inf")) else Resolved("float", number)


@struct(frozen=True)
class _Moment:
    json: str | None


def _timestamp(text: str) -> _Moment | None:
    """Read a date or time that go-yaml recognises, with its JSON form (None where Go refuses to write it)."""
    match = _TIMESTAMP.match(text) if text[4:5] == "-" else None
    if match is None:
        return None
    year, month, day = int(match[1]), int(match[2]), int(match[3])
    if not 1 <= month <= 12 or not 1 <= day <= _days(year, month):
        return None
    separator = match[4]
    if separator is None:
        return _Moment(f"{year:04}-{month:02}-{day:02}T00:00:00Z")
    hour, minute, second, zone = int(match[5]), int(match[6]), int(match[7]), match[9]
    if hour > 23 or minute > 59 or second > 59 or (zone is None) != (separator[0] == " "):
        return None
    moment = f"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}"
    fraction = (match[8] or "")[:9].rstrip("0")
    if fraction:
        moment += f".{fraction}"
    if zone is None or zone == "Z":
        return _Moment(f"{moment}Z")
    hours, minutes = int(zone[1:3]), int(zone[4:6])
    if hours > 24 or minutes > 60:
        return None
    hours, minutes = divmod(hours * 60 + minutes, 60)
    if hours > 23:
        return _Moment(None)
    return _Moment(f"{moment}{zone[0]}{hours:02}:{minutes:02}" if hours or minutes else f"{moment}Z")


def _days(year: int, month: int) -> int:
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31


def _float32(number: float) -> str:
    """Spell a float as Go's FormatFloat(number, 'g', -1, 32) does: the fewest digits that keep 32-bit precision."""
    import struct as packing

    try:
        single: float = packing.unpack("<f", packing.pack("<f", number))[0]
    except OverflowError:
        return ".inf" if number > 0 else "-.inf"
    if single == 0:
        return "-0" if str(single)[0] == "-" else "0"
    for digits in range(9):
        spelled = f"{single:.{digits}e}"
        try:
            if packing.unpack("<f", packing.pack("<f", float(spelled)))[0] == single:
                break
        except OverflowError:
            continue
    mantissa, exponent = spelled.split("e")
    power = int(exponent)
    if power < -4 or power >= 6:
        return f"{mantissa}e{power:+03d}"
    return f"{float(spelled):.{max(digits - power, 0)}f}"
