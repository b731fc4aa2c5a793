"""Processes that do parts of what is asked of all, and end with the block."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from render.crew import Crew, Result, UnmadeError
from tests.processes import needs_proc, wait_for


def numbered(which: int) -> Iterator[bytes]:
    yield from (b"part ", str(which).encode())


def large(which: int) -> Iterator[bytes]:
    for _ in range(300):
        yield bytes([which]) * 10_000


def failing(error: BaseException) -> Iterator[bytes]:
    yield b"one"
    raise error


def crew_of(jobs: int) -> Crew:
    made = Crew()
    made.jobs = jobs
    return made


def assert_gone(pids: list[int]) -> None:
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_each_makes_its_part_of_one_task_after_another() -> None:
    with crew_of(3) as crew:
        tasks = {crew.add(task): task for task in (numbered, large)}
        for index in (0, 1, 0):
            crew.start(index)
            assert crew.results() == [Result(b"".join(tasks[index](which))) for which in (1, 2)]
        pids = [process.pid for process in crew.going]

    assert len(pids) == 2
    assert_gone(pids)


def test_a_crew_of_one_has_no_other_process() -> None:
    with Crew() as crew:
        crew.start(crew.add(numbered))
        assert crew.results() == []


@pytest.mark.parametrize("error", [OSError("no room"), UnmadeError()], ids=["OSError", "UnmadeError"])
def test_what_cannot_be_made_is_told_and_the_next_task_is_done(error: Exception) -> None:
    with crew_of(2) as crew:
        tasks = [crew.add(lambda _: failing(error)), crew.add(numbered)]
        crew.start(tasks[0])
        assert [one.is_made for one in crew.results()] == [False]
        crew.start(tasks[1])
        assert crew.results() == [Result(b"part 1")]


def test_a_bug_is_told(capfd: pytest.CaptureFixture[str]) -> None:
    with crew_of(2) as crew:
        crew.start(crew.add(lambda _: failing(ZeroDivisionError("a bug"))))
        with pytest.raises(RuntimeError, match="another process met a bug"):
            crew.results()
    assert "ZeroDivisionError: a bug" in capfd.readouterr().err


def killed(_: int) -> Iterator[bytes]:
    os.kill(os.getpid(), signal.SIGKILL)
    yield b""


def test_one_that_is_killed_is_told() -> None:
    with crew_of(2) as crew:
        crew.start(crew.add(killed))
        assert crew.results()[0].ended.startswith("signal 9")


def test_an_interrupt_ends_one_that_waits_and_one_that_works() -> None:
    heard, told = os.pipe()

    def long(which: int) -> Iterator[bytes]:
        os.write(told, b"x")
        if which == 1:
            signal.pause()
        yield b""

    crew = crew_of(3)
    crew.start(crew.add(long))
    assert os.read(heard, 1) + os.read(heard, 1) == b"xx"
    pids = [process.pid for process in crew.going]

    crew.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)

    assert_gone(pids)


@needs_proc
def test_none_goes_on_when_the_one_that_asks_is_killed() -> None:
    heard, told = os.pipe()
    pid = os.fork()
    if not pid:
        crew = crew_of(3)
        crew.start(crew.add(numbered))
        crew.results()
        os.write(told, b" ".join(str(one.pid).encode() for one in crew.going))
        signal.pause()
    others = [int(one) for one in os.read(heard, 100).split()]
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)

    assert len(others) == 2
    wait_for(lambda: not any(Path(f"/proc/{one}/fd").is_dir() for one in others))
