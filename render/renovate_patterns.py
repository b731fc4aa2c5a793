r"""Steps of regular expressions for Renovate: each narrows the text that the one before found, the last one captures.

They mean the same to RE2 and to JavaScript: no look-around, no back-reference, no flag, and no match of an empty text
(Renovate would repeat it ten thousand times). `^` and `$` are the ends of the text. What a person may write in a
ServiceDefinition is YAML; what these find is YAML in block style with spaces, or a mapping in braces on one line.
"""

from __future__ import annotations

import re

_LINE = r"[^\n]*"
_MOST = 4
"""The deepest indentation of a key that is looked for."""
_END = r"(?:[\s,}][\s\S]*)?$"
_TAG = r"[A-Za-z0-9_][A-Za-z0-9_.-]*"
_NAME = r"(?:[A-Za-z0-9.-]+(?::[0-9]+)?/)?[A-Za-z0-9][A-Za-z0-9._/-]*"
_VERSION = r"[A-Za-z0-9][^\s\"'#,{}\[\]$@]*"
_DIGEST = r"sha256:[0-9a-f]{64}"
_KEY = r"[A-Za-z0-9][A-Za-z0-9-]*"
_OPEN = r"[ \t]*(?:#[^\n]*)?\r?"

WORD = r"[A-Za-z0-9][^\s\"'#,{}\[\]$]*"
"""A scalar without spaces and without variables."""

VERSION = rf"{_VERSION}(?:@{_DIGEST})?"
CAPTURED_VERSION = rf"(?<currentValue>{_VERSION})(?:@(?<currentDigest>{_DIGEST}))?$"
CAPTURED_TAG = rf"(?<currentValue>{_TAG})"
CAPTURED_DIGEST = rf"(?<currentDigest>{_DIGEST})"

_REFERENCE = rf"{_NAME}(?::{_TAG})?(?:@{_DIGEST})?"
CAPTURED_REFERENCE = rf"(?<depName>{_NAME})(?::{CAPTURED_TAG})?(?:@{CAPTURED_DIGEST})?$"


def literal(text: str) -> str:
    """Return a text for both engines; Python's `re.escape` also escapes what JavaScript lets nobody escape."""
    return re.sub(r"([.*+?^${}()|\[\]\\])", r"\\\1", text)


def _deeper(indent: int) -> str:
    """Match lines with at least this indentation, comments, and the blank lines between them."""
    return rf"(?:(?:\n[ \t\r]*)*\n(?: {{{indent},}}[^\s#]{_LINE}|[ \t]*#{_LINE}))*"


def top(key: str) -> str:
    """Match a key of the document and what belongs to it."""
    return rf"(?:^|\n){key}:{_LINE}{_deeper(1)}"


def block(key: str) -> str:
    """Match a key inside of another one, at any indentation, and what belongs to it."""
    nested = "|".join(rf"\n {{{n}}}{key}:{_LINE}{_deeper(n + 1)}" for n in range(1, _MOST + 1))
    braces = r"\{[^{}\n]*(?:\{[^{}\n]*\}[^{}\n]*)*\}"
    return rf"(?:{nested}|[{{,][ \t]*{key}:[ \t]*(?:{braces}|[^,{{}}\n]*))"


ENTRY = block(_KEY)
"""Each entry of a mapping of images."""


def _up_to(key: str, before: str = rf"(?:\n{_LINE})*") -> str:
    """Match the beginning of a block up to the value of a key, on a line of its own or in braces."""
    line = rf"{_LINE}{before}\n[ \t]*"
    braces = rf"[^\n{{]*\{{(?:{_LINE},)?[ \t]*"
    return rf"^[\n{{,]?(?:{line}|{braces}){key}:[ \t]+"


def has(key: str, value: str) -> str:
    """Match a block in which a key has a value; all of the block."""
    return rf"{_up_to(key)}[\"']?{value}[\"']?{_END}"


def has_name(value: str) -> str:
    """Match as `has` does, for `name`, but not for the name of a Secret."""
    return rf"{_up_to('name', _NOT_A_SECRET)}[\"']?{value}[\"']?{_END}"


def may_have_name(value: str) -> str:
    """Match as `has_name` does, and any block without one."""
    return rf"(?:{has_name(value)}|^[\s\S]+$)"


def value_of(key: str) -> str:
    """Match from a key to the end of its version."""
    return rf"(?:\n[ \t]*|[{{,][ \t]*){key}:[ \t]+[\"']?{VERSION}"


IMAGE = rf"(?:^[\n{{,]?[ \t]*{_KEY}:[ \t]+|{_up_to('ref')})[\"']?{_REFERENCE}"
"""From the beginning of an entry to the end of its image, which is its value or that of its `ref`."""


def _not_words(*words: str) -> str:
    """Match the beginning of a plain key that is none of the words: as many characters as it takes to tell."""
    firsts = "".join(sorted({word[0] for word in words}))
    made = [rf"[^\s#\"'<{firsts}]"]
    for first in firsts:
        made += [first + rest for rest in _not_rest([word[1:] for word in words if word[0] == first])]
    return rf"(?:{'|'.join(made)})"


def _not_rest(rests: list[str]) -> list[str]:
    firsts = "".join(sorted({rest[0] for rest in rests if rest}))
    # A word that ends here is told from a longer one by what follows.
    made = [rf"[^{firsts}\n:\s]" if "" in rests else rf"[^{firsts}\n]"]
    for first in firsts:
        made += [first + rest for rest in _not_rest([rest[1:] for rest in rests if rest[:1] == first])]
    return made


def _no_text(key: str) -> str:
    """Match a text of one line that does not hold a key."""
    parts = [rf"{key[:n]}[^{key[n]}\n]" for n in range(len(key))]
    return rf"(?:{'|'.join(parts)}|{key}[^:\"'\n])*"


_NOT_A_SECRET = (
    rf"(?:(?:\n{_LINE})*\n[ \t]*{_not_words('secretRef', 'certSecretRef')}{_LINE})?(?:\n[ \t]*(?:#{_LINE}|\r?))*"
)
"""Lines of which the last one does not open a reference to a Secret; comments and blank lines do not count."""

_NO_DASHES = r"(?:[^-\n][^\n]*|-(?:[^-\n][^\n]*)?|--(?:[^-\n][^\n]*)?)?"
DOCUMENT = rf"(?:^|\n)[A-Za-z#]{_LINE}(?:\n{_NO_DASHES})*"
"""Each document of a file, from its first key or comment on."""

_ABOVE = rf"^\n?(?:(?:#{_LINE}|\r?)\n)*"
_BETWEEN = rf"(?:\n(?:[ \t]*#{_LINE}|[ \t]*\r?))*"
_OTHER = rf"{_not_words('update')}{_LINE}(?:\n(?:[ \t-]{_LINE}|#{_LINE}|\r?))*"
_UNPINNED = (
    rf"update:(?:{_OPEN}(?:\n(?:[ \t]+{_not_words('pin')}{_LINE}|[ \t]*#{_LINE}|[ \t]*\r?))*"
    rf"|[ \t]*\{{{_no_text('pin')}\}}{_OPEN}{_BETWEEN})"
)

NO_UPDATE = rf"{_ABOVE}{_OTHER}(?:\n{_OTHER})*$"
"""A document without `update`."""

NO_PIN = rf"{_ABOVE}(?:{_OTHER}|{_UNPINNED})(?:\n(?:{_OTHER}|{_UNPINNED}))*$"
"""A document whose `update`, if it has one, pins nothing."""


def _without(key: str) -> str:
    """Match an entry no line of which begins with a key, and in no braces of which it stands."""
    braces = rf"\{{{_no_text(key)}\}}"
    first = rf"[\n{{,]?[ \t]*{_KEY}:(?:[ \t]*{braces}{_OPEN}|[^\n{{]*)"
    line = rf"[ \t]*(?:[-#]{_LINE}|\r|{_not_words(key)}(?:[^\n{{]|{braces})*)?"
    return rf"^{first}(?:\n{line})*$"


NO_UPDATE_IN_ENTRY = _without("update")
NO_PIN_IN_ENTRY = _without("pin")
