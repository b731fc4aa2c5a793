"""Several processes write one tree: what one would write, with its faults, and none is left behind."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from render import tree
from render.build import Build
from render.crew import Crew
from render.diagnostics import Diagnostic
from render.texts import IN_MEMORY
from render.tree import Changes
from render.writer import FEWEST
from tests.processes import group, needs_proc, wait_for

COUNT = 3 * FEWEST
BIG = "x" * (IN_MEMORY // COUNT) + "\n"
"""Some of the texts lie in the file that the processes share, then."""


def made(jobs: int, count: int = COUNT) -> tuple[Build, Changes]:
    build = Build(jobs=jobs)
    for index in range(count):
        build.files.add(f"apps/s{index:04}/values.yaml", f"{index}\n{BIG}".encode())
        build.files.add(f"apps/s{index:04}/kustomization.yaml", f"{index}\n".encode())
    return build, Changes(new=list(build.files))


def write(build: Build, changes: Changes, root: Path) -> list[Diagnostic]:
    with Crew() as crew:
        crew.jobs = build.jobs
        return tree.write(build, changes, root, crew)


def contents(root: Path) -> dict[str, bytes]:
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize("jobs", [1, 2, 3])
def test_any_number_of_processes_writes_the_same_tree(tmp_path: Path, jobs: int) -> None:
    build, changes = made(jobs)

    assert write(build, changes, tmp_path) == []

    assert contents(tmp_path) == {path: build.files.data(path) for path in build.files}


def test_a_kustomization_is_written_after_all_that_it_lists(tmp_path: Path) -> None:
    build, changes = made(3)

    assert write(build, changes, tmp_path) == []

    times = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.yaml")}
    lists = [time for path, time in times.items() if path.name == "kustomization.yaml"]
    assert max(time for path, time in times.items() if path.name == "values.yaml") <= min(lists)


@pytest.mark.parametrize("index", [0, COUNT - 1], ids=["its own part", "another's"])
def test_a_file_that_cannot_be_written_is_told(tmp_path: Path, index: int) -> None:
    build, changes = made(3)
    (tmp_path / "apps").mkdir()
    (tmp_path / f"apps/s{index:04}").write_text("a file is in the way")

    (fault,) = write(build, changes, tmp_path)

    assert fault.code == "R508"
    assert fault.location.path.endswith(f"apps/s{index:04}/values.yaml")
    assert "file exists" in fault.message or "not a directory" in fault.message
    written = contents(tmp_path)
    assert not [path for path in written if path.endswith(("kustomization.yaml", ".render-tmp"))]


def run_apart(tmp_path: Path, first: str) -> int:
    """Fork a process that writes with two more; `first` says what happens where."""
    pid = os.fork()
    if pid:
        return pid
    code = 99
    try:
        os.setsid()
        build, changes = made(3)
        own = os.getpid()
        ask = os.open

        def slow(path: str, flags: int, mode: int = 0o777) -> int:
            if first == "slow":
                time.sleep(0.02)
            if first == "kill" and os.getpid() != own:
                os.kill(os.getpid(), signal.SIGKILL)
            return ask(path, flags, mode)

        os.open = slow  # type: ignore[assignment]
        faults = write(build, changes, tmp_path)
        sys.stdout.write("".join(f"{one.message}\n" for one in faults))
        code = len(faults)
    except KeyboardInterrupt:
        code = 42
    finally:
        os._exit(code)


def wait_until_it_writes(root: Path) -> None:
    wait_for(lambda: len(list(root.rglob("values.yaml"))) >= 9)


@needs_proc
@pytest.mark.parametrize("whom", ["the group", "one process"])
def test_an_interrupt_leaves_no_process_and_no_part_of_a_file(tmp_path: Path, whom: str) -> None:
    pid = run_apart(tmp_path, "slow")
    wait_until_it_writes(tmp_path)
    if whom == "the group":
        os.killpg(pid, signal.SIGINT)
    else:
        os.kill(pid, signal.SIGINT)

    _, status = os.waitpid(pid, 0)

    assert os.waitstatus_to_exitcode(status) == 42
    assert group(pid) == []
    assert [path for path in contents(tmp_path) if path.endswith(".render-tmp")] == []
    assert 0 < len(contents(tmp_path)) < COUNT


@needs_proc
def test_no_process_goes_on_when_the_first_is_killed(tmp_path: Path) -> None:
    pid = run_apart(tmp_path, "slow")
    wait_until_it_writes(tmp_path)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)

    wait_for(lambda: group(pid) == [])
    assert len(contents(tmp_path)) < COUNT


def test_a_process_that_is_killed_is_told(tmp_path: Path) -> None:
    pid = run_apart(tmp_path, "kill")

    _, status = os.waitpid(pid, 0)

    assert os.waitstatus_to_exitcode(status) == 1
    assert not list(tmp_path.rglob("kustomization.yaml"))
