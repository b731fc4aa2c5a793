"""A service's committed files in, the values the image bot wrote at their setter markers out."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from render.flux.image import ImageError, Reference

FILES = ("apps/{}/helmrelease.yaml", "apps/{}/workload.yaml", "apps/{}/extra.yaml", "configs/{}/extra.yaml")
_MARKED = re.compile(
    r"""(?P<quote>["'])(?P<text>[^"'\n]*)(?P=quote)\s+\#\s*\{"\$imagepolicy":\s*"[^":\s]+:(?P<policy>[^":\s]+)"""
    r"""(?P<part>:tag|:digest|:name)?"\s*\}\s*$""",
    re.MULTILINE,
)
_REPOSITORY = re.compile(
    r"^kind: ImageRepository\nmetadata:\n  name: \"?(?P<policy>[^\"\n]+)\"?\n(?:  .*\n)*?"
    r"spec:\n(?:  .*\n)*?  image: \"?(?P<image>[^\"\n]+)",
    re.MULTILINE,
)


@dataclass(slots=True)
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

    def __init__(self, root: Path) -> None:
        self.root = root

    def marks(self, service: str) -> dict[str, Marks]:
        """Return the marked values of a service by policy name; empty for a service that is not in the tree."""
        found: dict[str, Marks] = {}
        for pattern in FILES:
            text = self._read(pattern.format(service))
            if '"$imagepolicy"' not in text:
                continue
            for match in _MARKED.finditer(text):
                marks = found.setdefault(match["policy"], Marks())
                _take(marks, match["part"], match["text"])
        if found:
            for match in _REPOSITORY.finditer(self._read(f"apps/{service}/image-automation.yaml")):
                marks = found.get(match["policy"], Marks())
                marks.name = marks.name or match["image"]
        return found

    def _read(self, path: str) -> str:
        try:
            return (self.root / path).read_bytes().decode("utf-8", errors="replace").replace("\r\n", "\n")
        except OSError:
            # A file that is not there has no marks; one that cannot be read is reported when the tree is compared.
            return ""


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
