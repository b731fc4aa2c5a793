"""Regular expressions that are compiled when they are first used.

Compiling the hundred of them that stand in modules of the build's path takes longer than a small build; most serve
messages, or texts that few files have.
"""

from __future__ import annotations

from render import prepared
from render.structs import cast

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from typing import Any, AnyStr


class _Pattern:
    """Stands for a pattern; each of its methods is looked up once."""

    __slots__ = ("_flags", "_text", "findall", "finditer", "fullmatch", "match", "search", "split", "sub")

    def __init__(self, text: str | bytes, flags: int) -> None:
        self._text = text
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        found = getattr(prepared.pattern(self._text, self._flags), name)
        if name in self.__slots__:
            setattr(self, name, found)
        return found


def lazy(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return what is used like `re.compile(text, flags)`."""
    return cast("re.Pattern[AnyStr]", _Pattern(text, flags))
