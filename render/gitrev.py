"""A Git revision in, files of its tree in a folder of their own out; the one module that starts a program.

Files are taken as Git stores them, by `git ls-tree` and `git cat-file`: no checkout is disturbed, no filter or hook
runs, and nothing is fetched.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from render.patterns import lazy

SUFFIXES = (".yaml", ".yml")
_OFFLINE = {
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
_OF_THE_CALLER = frozenset(("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR"))
"""What Git sets for a hook: relative to another folder than the one it is asked in here."""
_ENTRY = lazy(rb"(?P<mode>[0-7]{6}) (?P<type>[a-z]+) (?P<name>[0-9a-f]+)\t(?P<path>.+)", re.DOTALL)
_LINK = b"120000"


class GitError(ValueError):
    """What Git cannot give, or why it cannot be asked."""


class Revision:
    """The tree of a revision, of which what is asked for is written below `folder`."""

    def __init__(self, revision: str, start: Path, into: Path) -> None:
        """Find a revision of the repository that holds the folder `start`; raise GitError when there is none.

        `into` is an empty folder. What is taken lies below a folder in it that has the name of the repository's own.
        """
        self._start = start
        if not revision or revision.startswith("-"):
            raise GitError("that is no name of a revision")
        top = self._git("rev-parse", "--show-toplevel").removesuffix(b"\n")
        self.top = Path(os.path.realpath(os.fsdecode(top)))
        """The top of the repository."""
        asked = ("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
        self.commit = self._git(*asked, unknown="there is no such revision here").decode().strip()
        """The full name of the commit."""
        self.folder = Path(os.path.realpath(into)) / (self.top.name or "repository")
        self.folder.mkdir(parents=True)

    def place(self, path: Path) -> Path:
        """Return where a path of the repository is once it was taken; raise GitError for one outside."""
        real = Path(os.path.realpath(path))
        if not real.is_relative_to(self.top):
            raise GitError(f"`{path}` is not in the repository `{self.top}`")
        return self.folder / real.relative_to(self.top)

    def take(self, *paths: Path) -> None:
        """Write the YAML files at and below paths of the repository; what the revision does not have is left out."""
        wanted = [self.place(path).relative_to(self.folder).as_posix() for path in paths]
        # An empty list asks for everything.
        below = [] if "." in wanted else wanted
        listed = self._git("ls-tree", "-r", "-z", "--full-tree", self.commit, "--", *below)
        found: list[tuple[Path, bytes, bool]] = []
        for line in listed.split(b"\0"):
            entry = _ENTRY.fullmatch(line)
            if entry is None or entry["type"] != b"blob":
                continue
            path = os.fsdecode(entry["path"])
            is_link = entry["mode"] == _LINK
            is_wanted = path.endswith(SUFFIXES) or path in wanted or is_link
            if is_wanted and not {"", ".", ".."} & set(path.split("/")):
                found.append((self.folder / path, entry["name"], is_link))
        self._write(found)

    def _write(self, files: list[tuple[Path, bytes, bool]]) -> None:
        made = self._git("cat-file", "--batch", given=b"".join(name + b"\n" for _, name, _ in files)) if files else b""
        position = 0
        for path, name, is_link in files:
            end = made.index(b"\n", position)
            head = made[position:end].split(b" ")
            if len(head) != 3:
                raise GitError(f"the object {name.decode()} is missing; fetch the whole history of the base")
            start, position = end + 1, end + 2 + int(head[2])
            data = made[start : position - 1]
            if os.path.lexists(path) or not Path(os.path.realpath(path.parent)).is_relative_to(self.folder):
                # Taken before; or a forged tree, which would have it written through a link.
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            if is_link:
                path.symlink_to(os.fsdecode(data))
            else:
                path.write_bytes(data)

    def _git(self, *arguments: str, given: bytes = b"", unknown: str = "") -> bytes:
        """Run Git in the repository; `unknown` is what it means when it fails without a word."""
        environment = {key: value for key, value in os.environ.items() if key not in _OF_THE_CALLER}
        try:
            done = subprocess.run(  # noqa: S603 - arguments are a list, and what people give cannot be an option
                ["git", "--no-pager", *arguments],  # noqa: S607 - the Git that people use themselves
                cwd=self._start,
                env=environment | _OFFLINE,
                input=given,
                capture_output=True,
                check=False,
            )
        except FileNotFoundError as error:
            if not os.path.isdir(self._start):
                raise GitError(f"there is no folder `{self._start}`") from error
            raise GitError("`git` is not installed, or not on PATH") from error
        except OSError as error:
            raise GitError(f"cannot run `git`: {(error.strerror or str(error)).lower()}") from error
        if done.returncode:
            told = done.stderr.decode("utf-8", "replace").strip().split("\n")[0]
            told = told.removeprefix("fatal: ").removeprefix("error: ")
            raise GitError(unknown if unknown and not told else f"git says: {told or f'exit code {done.returncode}'}")
        return done.stdout
