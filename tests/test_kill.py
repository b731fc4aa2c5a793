"""A build that is killed at any moment: every file is the old or the new one, and the next build finishes.

The processes that are killed are forks of one that has rendered already, so that hundreds of kills take seconds.
`RENDER_KILLS` is the number of kills at random moments; one at each call of the operating system comes on top.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import render
from render import tree
from render.build import Build, build
from render.crew import Crew
from tests.project import project

KILLS = int(os.environ.get("RENDER_KILLS", "120"))
SERVICE = """\
name: {name}
source:
  image: ghcr.io/example/{name}:1.2.3
  chart:
    url: oci://charts.example.org/web
    version: "1.0.0"
update:
  range: 1.x
values:
  host: {host}
  text: {text}
"""
FOREIGN = {
    "apps/README.md": b"mine\n",
    "apps/same-0/mine.yaml": b"kind: ConfigMap\n",
    "apps/gone-0/mine.yaml": b"a: [",
    "apps/new-1/.hidden.yaml": b"",
    "notes.yaml": b"mine: true\r\n",
}
PAGE = resource.getpagesize()
TEMPORARY = re.compile(r"\.[^/]+\.yaml\.render-tmp\Z")
CALLS = ("open", "write", "close", "replace", "unlink", "mkdir", "rmdir", "fsync")
"""What the writer asks of the operating system."""


@dataclass
class Site:
    """A tree at rest and the build that would change it."""

    root: Path
    old: dict[str, bytes]
    new: dict[str, bytes]
    made: Build

    @classmethod
    def make(cls, folder: Path, number: int) -> Site:
        """Return a site of `number` services each that stay the same, change, vanish and come."""
        root = folder / "tree"
        before = _render(folder / "before", root, number, ("same", "changed", "gone"), "a.example.org")
        changes = tree.compare(before, root)
        assert tree.write(before, changes, root, Crew()) == []
        for path, data in FOREIGN.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(data)
        made = _render(folder / "after", root, number, ("same", "changed", "new"), "b.example.org")
        old = read(root)
        expected = {path: text.encode() for path, text in made.files.items()} | FOREIGN
        assert old != expected
        return cls(root, old, expected, made)

    def reset(self) -> None:
        """Bring the old tree back."""
        present = read(self.root)
        for path in present.keys() - self.old.keys():
            (self.root / path).unlink()
        for path, data in self.old.items():
            if present.get(path) != data:
                (self.root / path).parent.mkdir(parents=True, exist_ok=True)
                (self.root / path).write_bytes(data)
        for folder, _, _ in os.walk(self.root, topdown=False):
            with contextlib.suppress(OSError):
                Path(folder).rmdir()

    def build(self, before_writing: Callable[[], object] = bool) -> None:
        """Do what `build` does once it has rendered."""
        with tree.lock(self.root) as faults:
            assert faults == []
            changes = tree.compare(self.made, self.root)
            assert [one for one in changes.diagnostics if one.severity == "error"] == []
            before_writing()
            assert tree.write(self.made, changes, self.root, Crew()) == []

    def check_killed(self) -> None:
        """Assert that each file is old or new, whole, and that the next build finishes."""
        found = read(self.root)
        own = {path: data for path, data in found.items() if not TEMPORARY.search(path)}
        assert len(found) - len(own) <= 1, "more than one temporary file"
        for path, data in own.items():
            assert data in (self.old.get(path), self.new.get(path)), path
        assert own.keys() >= self.old.keys() & self.new.keys(), "a file is missing"
        for path, data in own.items():
            if path.endswith("/kustomization.yaml"):
                check_listed(path, data.decode(), own)
        self.build()
        assert read(self.root) == self.new
        # A kill between the last file of a folder and the folder itself leaves that, which Git does not see.
        assert sum(len(folders) for _, folders, _ in os.walk(self.root)) - len(folders_of(self.new)) in (0, 1)


def _render(folder: Path, root: Path, number: int, kinds: tuple[str, ...], host: str) -> Build:
    files = {}
    for kind in kinds:
        for index in range(number):
            name = f"{kind}-{index}"
            chosen = "a.example.org" if kind == "same" else host
            text = SERVICE.format(name=name, host=chosen, text="x" * (index % 5) * 2000 + "x")
            files[f"catalog/{name}.yaml"] = text
    made = project(folder, files)
    result = build(made.folder / "catalog", made.folder / "platform.yaml", root=lambda _: root)
    assert not result.failed
    return result


def read(root: Path) -> dict[str, bytes]:
    """Return all files below a folder."""
    found = {}
    for folder, _, names in os.walk(root):
        for name in names:
            path = os.path.join(folder, name)
            with open(path, "rb") as file:
                found[os.path.relpath(path, root)] = file.read()
    return found


def folders_of(files: dict[str, bytes]) -> set[str]:
    """Return the folders that hold files, at any depth."""
    return {str(parent) for path in files for parent in Path(path).parents} - {"."}


def check_listed(path: str, text: str, files: dict[str, bytes]) -> None:
    """Assert that what a kustomization lists is there."""
    folder = path.rpartition("/")[0]
    for name in re.findall(r"^- ([^\s:]+)$", text, re.MULTILINE):
        place = f"{folder}/{name}"
        assert place in files or f"{place}/kustomization.yaml" in files, f"{path} lists {name}"


@contextlib.contextmanager
def fork(work: Callable[[], None]) -> Iterator[int]:
    """Run something in a child of this process, which is gone in the end."""
    child = os.fork()
    if not child:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    try:
        yield child
    finally:
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def outcome(child: int) -> int:
    """Wait for a child and return its exit code, or the negative number of the signal that killed it."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


class Trap:
    """Stops this process by a signal at its n-th call of the operating system: before it, or in the middle of it."""

    def __init__(self, number: int, *, halfway: bool, stop: int = signal.SIGKILL) -> None:
        self.number = number
        self.halfway = halfway
        self.stop = stop
        self.calls = 0

    def set(self) -> None:
        for name in CALLS:
            setattr(os, name, self._trapped(name, getattr(os, name)))

    def _trapped(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def trapped(*arguments: Any, **named: Any) -> Any:
            self.calls += 1
            if self.calls != self.number:
                return real(*arguments, **named)
            if self.halfway and name == "write":
                arguments = (arguments[0], bytes(arguments[1])[: len(arguments[1]) // 2])
            if not self.halfway:
                os.kill(os.getpid(), self.stop)
            try:
                return real(*arguments, **named)
            finally:
                if self.halfway:
                    os.kill(os.getpid(), self.stop)

        return trapped


def test_a_build_killed_at_any_call_of_the_system_leaves_each_file_old_or_new(tmp_path: Path) -> None:
    site = Site.make(tmp_path, 2)
    kills = 0
    for halfway in (False, True):
        for number in range(1, 10_000):
            site.reset()
            trap = Trap(number, halfway=halfway)
            with fork(partial(site.build, trap.set)) as child:
                code = outcome(child)
            site.check_killed()
            if code == 0:
                break
            assert code == -signal.SIGKILL
            kills += 1

    # Four calls a file that is written, and one a file or folder that goes, twice.
    assert kills > 2 * 4 * sum(site.old.get(path) != data for path, data in site.new.items())


def test_a_build_killed_at_a_random_moment_leaves_each_file_old_or_new(tmp_path: Path) -> None:
    site = Site.make(tmp_path, 4)
    chance = random.Random(KILLS)
    begin, end = os.pipe()
    longest, kills, halves = 0.0, 0, 0
    while kills < KILLS:
        site.reset()
        with fork(partial(site.build, partial(os.write, end, b"x"))) as child:
            assert os.read(begin, 1) == b"x"
            start = time.perf_counter()
            if longest:
                time.sleep(chance.uniform(0, longest))
                os.kill(child, signal.SIGKILL)
            code = outcome(child)
            # How long writing takes here, as the slowest of the builds that were not killed.
            longest = max(longest, time.perf_counter() - start) if code == 0 else longest * 0.99
        kills += code != 0
        halves += read(site.root) not in (site.old, site.new)
        site.check_killed()
    os.close(begin)
    os.close(end)

    assert halves, "no kill hit a build that was writing"


def test_a_killed_command_line_is_finished_by_the_next(tmp_path: Path) -> None:
    made = project(
        tmp_path, {f"catalog/{i}.yaml": SERVICE.format(name=f"web-{i}", host="a", text="x") for i in range(40)}
    )
    assert made.run("build").code == 0
    old = made.tree()
    for path in (tmp_path / "catalog").iterdir():
        path.write_text(path.read_text().replace("host: a", "host: b"))
    new = {path: text.encode() for path, text in made.build().files.items()}
    environment = {**os.environ, "PYTHONPATH": str(Path(render.__file__).parent.parent)}
    command = [sys.executable, "-m", "render", "build"]

    for share in range(1, 5):
        running = subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL)
        while running.poll() is None:
            changed = sum((tmp_path / path).read_bytes() != data for path, data in old.items())
            if changed >= share * 8:
                running.kill()
        running.wait()
        found = {path: data for path, data in made.tree().items() if not TEMPORARY.search(path)}
        assert all(data in (old[path], new[path]) for path, data in found.items())
        assert found.keys() == old.keys()
    assert made.run("build").code == 0
    assert made.tree() == new


def test_what_a_killed_build_left_goes_although_its_file_needs_no_change_any_more(tmp_path: Path) -> None:
    made = project(tmp_path, {"catalog/web.yaml": SERVICE.format(name="web", host="a", text="x")})
    assert made.run("build").code == 0
    before = made.tree()
    for path in ("apps/web/.helmrelease.yaml.render-tmp", "apps/gone/.source.yaml.render-tmp"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text("half a fi")
    mine = {"apps/web/.mine.swp": b"x", "apps/web/mine.render-tmp": b"x", ".mine.yaml.render-tmp": b"x"}
    for path, data in mine.items():
        (tmp_path / path).write_bytes(data)

    assert made.run("check").code == 0
    assert made.run("build").code == 0
    assert made.tree() == before | mine
    assert not (tmp_path / "apps/gone").exists()


# Two builds at once


def test_a_second_build_waits_for_one_that_is_writing(tmp_path: Path) -> None:
    site = Site.make(tmp_path, 3)
    for number in range(1, 80, 13):
        site.reset()
        trap = Trap(number, halfway=True, stop=signal.SIGSTOP)
        with fork(partial(site.build, trap.set)) as one:
            assert os.WIFSTOPPED(os.waitpid(one, os.WUNTRACED)[1])
            handle = os.open(site.root, os.O_RDONLY)
            try:
                with pytest.raises(BlockingIOError):
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            finally:
                os.close(handle)
            with fork(site.build) as other:
                os.kill(one, signal.SIGCONT)
                assert (outcome(one), outcome(other)) == (0, 0)
        assert read(site.root) == site.new


# Disks that are full, and folders that may not be written


def full(limit: int) -> Callable[[], None]:
    def work() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    return work


def failed(site: Site, prepare: Callable[[], None]) -> str:
    """Build in a child after `prepare`, which makes it fail, and return the one fault that is told."""
    begin, end = os.pipe()

    def work() -> None:
        prepare()
        with tree.lock(site.root) as faults:
            changes = tree.compare(site.made, site.root) if not faults else tree.Changes()
            told = [one for one in (*faults, *changes.diagnostics) if one.severity == "error"] or tree.write(
                site.made, changes, site.root, Crew()
            )
        os.write(end, "\n".join(f"{one.code} {one.message}" for one in told).encode())

    with fork(work) as child:
        os.close(end)
        told = os.read(begin, 1 << 16).decode()
        os.close(begin)
        assert outcome(child) == 0
    assert len(told.splitlines()) == 1
    return told


@pytest.mark.parametrize("limit", [0, 700, 3000])
def test_file_that_grows_too_large_is_told_and_the_old_one_stays(tmp_path: Path, limit: int) -> None:
    site = Site.make(tmp_path, 5)

    assert failed(site, full(limit)) == "R508 cannot write the file: file too large"
    assert not any(TEMPORARY.search(path) for path in read(site.root))
    site.check_killed()


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("mount"), reason="only root mounts a small disk")
@pytest.mark.parametrize("pages", [0, 3, 30])
def test_full_disk_is_told_and_no_file_is_half_written(tmp_path: Path, pages: int) -> None:
    site = Site.make(tmp_path, 10)
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "none", disk], check=False).returncode:
        pytest.skip("this root may not mount")
    try:
        site.root = Path(shutil.copytree(site.root, disk / "tree"))
        filler = disk / "filler"
        with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
            while file.write(b"x" * PAGE):
                pass
        os.truncate(filler, filler.stat().st_size - pages * PAGE)

        assert failed(site, lambda: None) == "R508 cannot write the file: no space left on device"
        assert not any(TEMPORARY.search(path) for path in read(site.root))
        filler.unlink()
        site.check_killed()
    finally:
        subprocess.run(["umount", disk], check=True)


def unprivileged(root: Path) -> Callable[[], None]:
    """Return what makes a process one that must ask for permission."""

    def work() -> None:
        os.chdir(root.parent)
        if os.geteuid() == 0:
            os.setgid(65534)
            os.setuid(65534)

    return work


@pytest.mark.parametrize(
    ("folder", "mode"),
    [
        ("apps/changed-1", 0o555),
        ("apps/changed-1", 0),
        ("apps/gone-1", 0o555),
        ("apps/gone-1", 0),
        ("apps", 0o555),
        ("apps", 0),
        (".", 0),
    ],
)
def test_folder_that_may_not_be_written_is_told(tmp_path: Path, folder: str, mode: int) -> None:
    site = Site.make(tmp_path, 2)
    if os.geteuid() == 0:
        for path, folders, files in os.walk(site.root):
            for name in (".", *folders, *files):
                os.chown(os.path.join(path, name), 65534, 65534)
    (site.root / folder).chmod(mode)
    tmp_path.chmod(0o755)
    place, site.root = site.root, Path("tree")
    try:
        told = failed(site, unprivileged(place))
    finally:
        site.root = place
        (site.root / folder).chmod(0o755)

    assert re.fullmatch(
        r"R508 (?:cannot (?:write the file|read it|make or lock the output root)): permission denied", told
    )
    assert not any(TEMPORARY.search(path) for path in read(site.root))
    site.check_killed()
