"""What each start would compute anew, computed when a wheel was built: compiled patterns, and the schemas' forms.

A checkout has none of it, and computes. CPython has no public way to keep a compiled pattern, so what `re` hands to its
matcher is kept, and, like a `.pyc` file, believed by that version of Python only. `render.preparing` writes it.
"""

from __future__ import annotations

import _sre  # type: ignore[import-not-found]
import marshal
import re
import sys
from functools import cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal

FILE = "prepared.bin"
"""The name of the file beside this module."""
KEY = (1, sys.implementation.cache_tag, sys.byteorder, _sre.MAGIC, _sre.CODESIZE)
WIDTH: Literal["I"] = "I"
"""The type code of a unit of a compiled pattern, of `_sre.CODESIZE` bytes."""


def path() -> str:
    """Return where the file lies."""
    return f"{__file__.rpartition('/')[0]}/{FILE}"


@cache
def _load() -> dict[Any, bytes]:
    """Return the parts, packed; none where nothing was prepared, or for another Python."""
    try:
        with open(path(), "rb") as file:
            key, parts = marshal.loads(file.read())  # noqa: S302 - a part of the program, as its modules are
    except (OSError, EOFError, TypeError, ValueError):
        return {}
    return parts if key == KEY else {}


def part(key: object) -> Any:
    """Return what was prepared under a key; None where nothing was."""
    found = _load().get(key)
    return None if found is None else marshal.loads(found)  # noqa: S302


def pattern(text: str | bytes, flags: int) -> re.Pattern[Any]:
    """Return `re.compile(text, flags)`."""
    found = part((text, int(flags)))
    if found is None:
        return re.compile(text, flags)
    whole, code, groups, names, numbers = found
    made: re.Pattern[Any] = _sre.compile(text, whole, list(memoryview(code).cast(WIDTH)), groups, names, numbers)
    return made
