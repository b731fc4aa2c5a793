"""A service's committed files in, the values the image bot wrote at their setter markers out."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from zlib import crc32

from render.files import StrPath, read_bytes
from render.flux.image import ImageError, Reference
from render.flux.overrides import Entry, Table
from render.patterns import lazy
from render.structs import struct

FILES = ("apps/{}/helmrelease.yaml", "apps/{}/workload.yaml", "apps/{}/extra.yaml", "configs/{}/extra.yaml")
_MARKED = lazy(
    r"""(?P<quote>["'])(?P<text>[^"'\n]*)(?P=quote)\s+\#\s*\{"\$imagepolicy":\s*"[^":\s]+:(?P<policy>[^":\s]+)"""
    r"""(?P<part>:tag|:digest|:name)?"\s*\}\s*$""",
    re.MULTILINE,
)
_REPOSITORY = lazy(
    r"^kind: ImageRepository\nmetadata:\n  name: \"?(?P<policy>[^\"\n]+)\"?\n(?:  .*\n)*?"
    r"spec:\n(?:  .*\n)*?  image: \"?(?P<image>[^\"\n]+)",
    re.MULTILINE,
)
TABLE_COMMENT = "registries.imageOverrides"
"""The comment line that alone tells the platform's table from a release's own post-renderers."""
_HEAD = lazy(r"^kind: [\"']?(?P<kind>\w+)[\"']?\n(?:[^-\s].*\n)*?metadata:\n(?P<metadata>(?:  .*\n)+)", re.MULTILINE)
_FIELDS = lazy(r"^  (?P<key>name|namespace): [\"']?(?P<text>[^\"'\n]+)", re.MULTILINE)
_TABLE = lazy(rf"^ *# {re.escape(TABLE_COMMENT)}\n(?P<table>(?: .*\n)*)", re.MULTILINE)
_FIELD = lazy(
    r"^ *(?:- )?(?P<name>name|newName|newTag|digest): (?P<quote>\"?)(?P<text>[^\"\n]+)(?P=quote)$", re.MULTILINE
)
_LITERAL = lazy(r"^(?P<lead> *(?:- +)*)(?P<key>[^\n]*: )?[|>][-+0-9]*$", re.MULTILINE)
"""The line that begins a literal block, as the value of a key or as a list item."""


def has_conflict(text: str) -> bool:
    """Whether a text holds the conflict markers of a merge."""
    return "\n<<<<<<< " in "\n" + text and "\n>>>>>>> " in text


@struct()
class Marks:
    """What stands at the markers of one policy."""

    tag: str | None = None
    digest: str | None = None
    name: str | None = None
    """The repository: of a whole-image marker, else what the committed ImageRepository scans."""

    @property
    def text(self) -> str:
        """Tag and digest, as people read them."""
        return (self.tag or "") + (f"@{self.digest}" if self.digest else "")


class Committed:
    """Reads the committed files of services below an output root."""

    def __init__(self, root: StrPath) -> None:
        self.top = os.fspath(root)
        self.is_there = os.path.isdir(root)
        self.unread: dict[str, OSError | str] = {}
        """Files whose values are not known: why they cannot be read, or the text that holds conflict markers."""
        self._taken: dict[str, int] = {}
        self._holders: dict[tuple[str, str, str], str] | None = None

    def taken(self) -> dict[str, int]:
        """Return a checksum of each file whose values were taken since the last call, to know whether it changes."""
        taken, self._taken = self._taken, {}
        return taken

    def has(self, service: str) -> bool:
        """Whether the tree has a file of a service that could hold marked values."""
        return self.is_there and any(os.path.lexists(f"{self.top}/{pattern.format(service)}") for pattern in FILES)

    def holder(self, objects: Iterable[tuple[str, str, str]]) -> str:
        """Return the service whose marked files hold one of these objects (kind, namespace, name); `""` without one.

        An object that has another service's name in front of it now is the same one to Flux.
        """
        if self._holders is None:
            self._holders = dict(self._find_holders())
        return next((self._holders[one] for one in objects if one in self._holders), "")

    def _find_holders(self) -> Iterator[tuple[tuple[str, str, str], str]]:
        for area in ("apps", "configs"):
            try:
                services = sorted(entry.name for entry in os.scandir(f"{self.top}/{area}"))
            except OSError:
                continue
            for service in services:
                for pattern in FILES:
                    text = self._read(pattern.format(service)) if pattern.startswith(area) else ""
                    for match in _HEAD.finditer(text) if '"$imagepolicy"' in text else ():
                        fields = {one["key"]: one["text"] for one in _FIELDS.finditer(match["metadata"])}
                        yield (match["kind"], fields.get("namespace", ""), fields.get("name", "")), service

    def marks(self, service: str) -> dict[str, Marks]:
        """Return the marked values of a service by policy name; empty for a service that is not in the tree."""
        found: dict[str, Marks] = {}
        for pattern in FILES:
            path = pattern.format(service)
            text = self._read(path)
            if '"$imagepolicy"' not in text:
                continue
            self._taken[path] = checksum(text)
            take_marks(text, found)
        if found:
            for match in _REPOSITORY.finditer(self._read(f"apps/{service}/image-automation.yaml")):
                marks = found.get(match["policy"], Marks())
                marks.name = marks.name or match["image"]
        return found

    def table(self, service: str) -> Table:
        """Return the override table that the service's committed release carries; an empty one without any."""
        match = _TABLE.search(self._read(f"apps/{service}/helmrelease.yaml"))
        entries: list[dict[str, str]] = []
        for field in _FIELD.finditer(match["table"]) if match else ():
            if field["name"] == "name":
                entries.append({})
            entries[-1][field["name"]] = field["text"]
        return Table(Entry.of(entry) for entry in entries)

    def _read(self, path: str) -> str:
        if not self.is_there:
            return ""
        try:
            text = read_bytes(f"{self.top}/{path}").decode("utf-8", errors="replace")
        except (FileNotFoundError, NotADirectoryError):
            return ""
        except OSError as error:
            self.unread[path] = error
            return ""
        text = text.removeprefix("\ufeff").replace("\r\n", "\n")
        if has_conflict(text):
            # Which side of a merge is meant is for a person to say.
            self.unread[path] = text
            return ""
        return text


def take_marks(text: str, found: dict[str, Marks]) -> None:
    """Add what stands at the markers of a committed text, by policy name."""
    for match in _MARKED.finditer(without_literals(text)):
        _take(found.setdefault(match["policy"], Marks()), match["part"], match["text"])


def checksum(text: str) -> int:
    """Return what tells a committed text from another one, in every process."""
    return crc32(text.encode())


def without_literals(text: str) -> str:
    """Empty the lines of literal blocks: what looks like a marker there is text, and the bot leaves it alone."""
    if _LITERAL.search(text) is None:
        return text
    kept: list[str] = []
    limit = -1
    for line in text.split("\n"):
        if limit >= 0 and (not line.strip(" ") or len(line) - len(line.lstrip(" ")) > limit):
            kept.append("")
            continue
        kept.append(line)
        match = _LITERAL.search(line)
        # The text is deeper than its key, or than the dash of its list item.
        limit = -1 if match is None else len(match["lead"]) - (0 if match["key"] else 2)
    return "\n".join(kept)


def _take(marks: Marks, part: str | None, text: str) -> None:
    if part == ":tag":
        marks.tag = marks.tag or text
    elif part == ":digest":
        marks.digest = marks.digest or text or None
    elif part is None:
        try:
            reference = Reference.parse(text)
        except ImageError:
            return
        marks.tag, marks.digest, marks.name = reference.tag, reference.digest, reference.name
