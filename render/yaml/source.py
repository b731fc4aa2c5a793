"""YAML text in, trees of nodes with their places and their exact spelling out.

Nodes keep the text and the style of each scalar and resolve nothing: what a scalar means is asked of
`render.yaml.scalar`. Most files are read line by line (`render.yaml.lines`); libyaml reads the others, and all that
are at fault (`render.yaml.compose`). Both make the same nodes of the same text.
"""

from __future__ import annotations

from render.diagnostics import Diagnostic, Location
from render.yaml import lines
from render.yaml.nodes import Document, Mapping, Node, Scalar, Sequence, Source, last_line

__all__ = [
    "MAX_BYTES",
    "Document",
    "Mapping",
    "Node",
    "Scalar",
    "Sequence",
    "Source",
    "decode",
    "last_line",
    "parse",
]

MAX_BYTES = 1 << 20


def decode(path: str, data: bytes) -> tuple[Source, list[Diagnostic]]:
    """Return the source of a file's bytes: UTF-8, a BOM dropped, at most `MAX_BYTES` long."""
    if len(data) > MAX_BYTES:
        size = f"{len(data) / MAX_BYTES:.1f} MiB"
        return Source(path, ""), [
            Diagnostic(
                Location(path),
                "R005",
                f"the file is {size}, more than 1 MiB",
                cause="no definition is that large; something else was put here",
                hint="move it out of the catalog, or split it",
            )
        ]
    try:
        return Source(path, data.decode("utf-8").removeprefix("\ufeff")), []
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return Source(path, ""), [
            Diagnostic(
                Location(path, line),
                "R001",
                f"byte 0x{data[error.start]:02x} is not UTF-8",
                cause="Flux reads UTF-8 only",
                hint="save the file as UTF-8",
            )
        ]


def parse(source: Source) -> tuple[list[Document], list[Diagnostic]]:
    """Return the documents of a file and what is wrong with it; empty documents are left out.

    After a syntax error the documents before it are not returned either: half a file is no file.
    """
    documents = lines.read(source)
    if documents is not None:
        return documents, []
    # libyaml's binding takes a third as long to import as a small build takes in all.
    from render.yaml.compose import compose

    return compose(source)
