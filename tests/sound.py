"""What every build must be, as assertions that tests of whole builds share."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hypothesis import settings

from render.build import HEADER, Build, digest_of
from render.codes import CODES
from render.diagnostics import Diagnostic
from tests.bot import rewrite
from tests.project import Project, objects, project

TOP = Path(__file__).parents[1]
PLATFORMS = ("platform.yaml", "platform-airgap.yaml")
Files = dict[str, str | bytes]
MARK = re.compile(r' # \{"\$imagepolicy": "([^"]+)"\}$', re.MULTILINE)
_SUFFIX = re.compile(r":(?:tag|name|digest)$")
_BREAKS = re.compile("\r\n|[\r\n\x85\u2028\u2029]")
_BLUNT = re.compile(r"\b[Ii]nvalid\b|[Ff]ailed to|[Oo]ops")
MOVED = {"image": "new.example/name", "tag": "99.9.9-new", "digest": "sha256:" + "e" * 64}
"""Where the bot moves every policy."""


def examples(number: int) -> settings:
    """Ask for a number of examples; `RENDER_EXAMPLES=20` asks for twenty times as many."""
    return settings(max_examples=number * int(os.environ.get("RENDER_EXAMPLES", "1")))


@contextmanager
def repository(files: Files) -> Iterator[Project]:
    """A repository of the files as they are."""
    with tempfile.TemporaryDirectory() as folder:
        yield project(Path(folder), {k: v.encode() if isinstance(v, str) else v for k, v in files.items()})


def built(files: Files, *, automation: bool = True) -> Build:
    with repository(files) as made:
        return made.build(automation=automation)


def assert_told_well(faults: list[Diagnostic], files: Files) -> None:
    """Every diagnostic has a known code, a place inside its file and one plain line of text in the project's style."""
    for fault in faults:
        assert fault.code in CODES
        text = files.get(fault.location.path, "")
        lines = _BREAKS.split(text if isinstance(text, str) else text.decode(errors="replace"))
        assert fault.location.path
        if fault.location.line:
            assert fault.location.line <= len(lines), fault
            assert fault.location.column <= len(lines[fault.location.line - 1]) + 1, fault
        assert fault.message, fault
        assert fault.message[0] == "`" or not fault.message[0].isupper() or fault.message.split()[0].isupper(), fault
        assert not fault.message.endswith("."), fault
        # What RE2 says of a pattern is quoted in its own words.
        assert fault.code in ("R602", "R705") or not _BLUNT.search(fault.message), fault


def assert_sound(made: Build) -> None:
    """Every file is what its header says, ends well, parses, and every kustomization lists what is there."""
    for path, text in made.files.items():
        first, _, body = text.partition("\n")
        match = HEADER.match(first)
        assert match is not None
        assert digest_of(body) == match["digest"]
        assert text.endswith("\n")
        assert not text.endswith("\n\n")
        assert not re.search(r"[ \t]\n|[\r\x85\u2028\u2029\x7f]", body)
        documents = objects(text)
        assert documents
        for one in documents:
            assert isinstance(one, dict)
            assert list(one)[:2] == ["apiVersion", "kind"] or path.endswith("extra.yaml")
    listed = {
        f"{path.rpartition('/')[0]}/{name}"
        for path, text in made.files.items()
        if path.endswith("/kustomization.yaml")
        for name in objects(text)[0]["resources"]
    }
    for path in made.files:
        _, _, name = path.rpartition("/")
        if name != "kustomization.yaml":
            assert path in listed


def assert_survives_the_bot(text: str) -> None:
    """A run of the bot that moves every policy changes the marked values alone, and the header stays valid."""
    setters = set(MARK.findall(text))
    policies = [
        {
            "namespace": namespace,
            "name": name,
            "image": "new.example/name",
            "tag": "99.9.9-new",
            "digest": "sha256:" + "e" * 64,
        }
        for namespace, _, name in {_SUFFIX.sub("", setter).partition(":") for setter in setters}
    ]
    after = rewrite(text, policies)
    assert after is not None
    before, lines = text.split("\n"), after.split("\n")
    assert len(before) == len(lines)
    for old, new in zip(before, lines, strict=True):
        if old != new:
            assert MARK.sub("", old).rpartition(' "')[0] == MARK.sub("", new).rpartition(' "')[0]
            assert MARK.findall(old) == MARK.findall(new)
    assert digest_of(text.partition("\n")[2]) == digest_of(after.partition("\n")[2])


def check(files: Files) -> Build | None:
    """Build; return what is sound, or None after a refusal that is told well. The command line never breaks on it."""
    with repository(files) as repo:
        made = repo.build()
        whole = {"platform.yaml": (repo.folder / "platform.yaml").read_bytes(), **files}
        assert_told_well(made.diagnostics, whole)
        for style in ("full", "github", "json"):
            ran = repo.run("build", "--out", "out", "--format", style)
            assert ran.code == (1 if made.failed else ran.code)
            assert ran.code in (0, 1), ran.err
        written = [name for name in repo.tree() if name.startswith("out/")]
        if made.failed:
            assert written == []
            assert dict(made.files) == {}
            return None
        assert_sound(made)
    return made
