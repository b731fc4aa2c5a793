"""Processes that a test has started, seen from outside."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path

import pytest


def group(pid: int) -> list[int]:
    """The processes of a group that run."""
    found = []
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            with contextlib.suppress(OSError):
                _, _, rest = (path / "stat").read_text().rpartition(")")
                state, _, of = rest.split()[:3]
                if int(of) == pid and state not in "ZX":
                    found.append(int(path.name))
    return found


def wait_for(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are looked up in /proc")
