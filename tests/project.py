"""Files in, a repository in a folder out, with what `render` makes of it: its build, and its command line.

    made = project(tmp_path, {"catalog/web.yaml": WEB}).build()
    ran = project(tmp_path, {"catalog/web.yaml": WEB}).run("build")

Texts are dedented, so they may be written inside a test; bytes are taken as they are. `platform.yaml` is `PLATFORM`
unless given.
"""

from __future__ import annotations

import contextlib
import io
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from render.build import Build, build
from render.cli import run

PLATFORM = """\
cluster: test
flux:
  version: "2.9"
registries:
  imageOverrides: []
"""
"""A platform file that says as little as possible: the tree's root is the folder itself."""


@dataclass(frozen=True)
class Ran:
    """One run of the command line."""

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Project:
    """A repository with a `catalog` folder and a `platform.yaml`."""

    folder: Path

    def build(self, *, automation: bool = True) -> Build:
        """Render it, writing nothing; diagnostics name files by their paths in the repository."""
        with contextlib.chdir(self.folder):
            return build(Path("catalog"), Path("platform.yaml"), automation=automation)

    def run(self, *arguments: str) -> Ran:
        """Run the command line in the repository's folder."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.chdir(self.folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = run(arguments)
        return Ran(code, out.getvalue(), err.getvalue())

    def tree(self) -> dict[str, bytes]:
        """Return all files of the repository besides catalog and platform file, by their paths in it."""
        found = {path.relative_to(self.folder).as_posix(): path for path in self.folder.rglob("*") if path.is_file()}
        inputs = ("catalog/", "platform.yaml")
        return {name: path.read_bytes() for name, path in sorted(found.items()) if not name.startswith(inputs)}


def project(folder: Path, files: Mapping[str, str | bytes]) -> Project:
    """Write `files` below `folder` and return the repository they make."""
    (folder / "catalog").mkdir(parents=True, exist_ok=True)
    for name, content in {"platform.yaml": PLATFORM, **files}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else textwrap.dedent(content).encode())
    return Project(folder)


def objects(made: Build | str) -> list[Any]:
    """Return the objects of a build (every file, in the order of the paths), or of one file's text."""
    texts = [made] if isinstance(made, str) else [text for _, text in sorted(made.files.items())]
    return [one for text in texts for one in yaml.load_all(text, yaml.CSafeLoader)]


def only(made: Build | str, kind: str) -> Any:
    """Return the one object of a kind."""
    (found,) = [one for one in objects(made) if one["kind"] == kind]
    return found


def told(made: Build) -> list[str]:
    """Return the diagnostics as `code place message`."""
    return [f"{fault.code} {fault.location} {fault.message}" for fault in made.diagnostics]
