"""A folder of rendered output in, the texts of its YAML files by path out."""

from __future__ import annotations

import os
from pathlib import Path

from render.catalog import SUFFIXES, reason_of, shown_path
from render.diagnostics import Diagnostic, Location
from render.files import read_bytes
from render.tree import OWNED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from render.progress import Step


def read_tree(root: Path, step: Step | None = None) -> tuple[dict[str, str], list[Diagnostic]]:
    """Return the text of each YAML file in the folders that `render` owns below a root, and what cannot be read.

    Files of other people in these folders are among them. A root without any file is a fault: it is no rendered tree.
    """
    texts: dict[str, str] = {}
    faults: list[Diagnostic] = []
    for folder in OWNED:
        if os.path.lexists(root / folder):
            _walk(root, folder, texts, faults, step)
    if not texts and not faults:
        hint = "name the output root itself: the folder that holds `apps/`"
        told = "there is no rendered output in this folder"
        cause = "compared with nothing, every object would look added or deleted"
        faults.append(Diagnostic(Location(shown_path(root)), "R001", told, cause=cause, hint=hint))
    return texts, faults


def _walk(root: Path, folder: str, texts: dict[str, str], faults: list[Diagnostic], step: Step | None) -> None:
    stack = [folder]
    while stack:
        folder = stack.pop()
        path = root / folder
        try:
            if path.is_symlink():
                faults.append(_fault(path, "a symbolic link is not followed", "put the files themselves here"))
                continue
            entries = sorted(os.scandir(path), key=lambda entry: entry.name)
        except OSError as error:
            faults.append(_fault(path, f"cannot read the folder: {reason_of(error)}", "make it readable"))
            continue
        for entry in entries:
            inner = f"{folder}/{entry.name}"
            if entry.is_dir(follow_symlinks=False) or (entry.is_symlink() and entry.is_dir()):
                stack.append(inner)
            elif entry.name.endswith(SUFFIXES):
                if step is not None:
                    step(len(texts), 0)
                _read(root, inner, texts, faults)


def _read(root: Path, path: str, texts: dict[str, str], faults: list[Diagnostic]) -> None:
    place = root / path
    if place.is_symlink():
        faults.append(_fault(place, "a symbolic link is not followed", "put the file itself here"))
        return
    try:
        text = read_bytes(place).decode("utf-8")
    except OSError as error:
        faults.append(_fault(place, f"cannot read the file: {reason_of(error)}", "make it readable"))
    except UnicodeDecodeError:
        faults.append(_fault(place, "the file is not UTF-8", "save it as UTF-8"))
    else:
        texts[path] = text.removeprefix("\ufeff").replace("\r\n", "\n")


def _fault(path: Path, told: str, hint: str) -> Diagnostic:
    return Diagnostic(Location(shown_path(path)), "R001", told, hint=hint)
