"""Long work says how far it is, on a terminal only, and leaves no trace of it."""

from __future__ import annotations

import io
import os
import pty
import sys
from pathlib import Path

import pytest

from render import progress
from tests import forked
from tests.project import project

CHART = "source: {chart: {url: https://charts.example, name: web, version: 1.0.0}}"


class Terminal(io.StringIO):
    """A stream that is one."""

    def isatty(self) -> bool:
        return True


def test_nothing_is_shown_before_half_a_second() -> None:
    stream = Terminal()
    with progress.progress("planning", stream) as step:
        assert step is not None
        for done in range(100):
            step(done, 100)

    assert stream.getvalue() == ""


def test_a_line_is_shown_and_taken_away(monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter([0.0, 0.4, 0.51, 0.55, 0.7, 0.9])
    monkeypatch.setattr("render.progress.time.monotonic", lambda: next(now))
    stream = Terminal()
    with progress.progress("planning", stream) as step:
        assert step is not None
        for done in range(4):
            step(done, 9)
        step(4, 0)

    assert stream.getvalue() == "".join(f"\r\x1b[Kplanning: {told}" for told in ("1 of 9", "3 of 9", "4")) + "\r\x1b[K"


def test_the_line_goes_when_the_work_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "PATIENCE", -1)
    stream = Terminal()

    def fail() -> None:
        with progress.progress("planning", stream) as step:
            assert step is not None
            step(1, 2)
            raise KeyError

    with pytest.raises(KeyError):
        fail()

    assert stream.getvalue().endswith("\r\x1b[K")


def test_nothing_is_shown_in_a_pipe() -> None:
    with progress.progress("planning", io.StringIO()) as step:
        assert step is None


COMMANDS = (
    ("build",),
    ("build", "--no-cache", "--jobs", "2"),
    ("check",),
    ("images",),
    ("policy", "--all", "--registry"),
    ("diff", "before", "after"),
)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_commands_show_it_on_a_terminal_only(tmp_path: Path, command: tuple[str, ...]) -> None:
    files = {f"catalog/s{index}.yaml": f"name: s{index}\n{CHART}\n" for index in range(4)}
    trees = {f"{name}/apps/web.yaml": f"kind: {name}\n" for name in ("before", "after")}
    folder = project(tmp_path, {**files, **trees}).folder
    ours, theirs = pty.openpty()

    def impatient() -> None:
        progress.PATIENCE = -1

    def on_a_terminal() -> None:
        impatient()
        # The report goes to the terminal.
        os.dup2 = _keeping(theirs)

    piped, _ = forked.start(folder, None, *command, first=impatient).end()
    forked.start(folder, None, *command, first=on_a_terminal).end()
    os.close(theirs)
    shown = b""
    try:
        while part := os.read(ours, 1 << 16):
            shown += part
    except OSError:
        # The other end is closed.
        pass
    os.close(ours)

    assert "\x1b[K" not in piped.err
    assert b"\x1b[K" in shown


def _keeping(terminal: int):  # type: ignore[no-untyped-def]
    real = os.dup2

    def dup2(one: int, other: int) -> int:
        return real(terminal if other == 2 else one, other)

    return dup2


def test_stderr_may_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    with progress.progress("planning") as step:
        assert step is None
