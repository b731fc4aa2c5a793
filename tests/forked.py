"""Arguments in, what the command line's entry point does with them out: each run in a child process, as people run it.

A child of this process has all modules loaded, so a run costs milliseconds. Its file descriptors are its own.
"""

from __future__ import annotations

import io
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import render.__main__
import render.cache.edits
import render.cache.record
import render.report
import render.tree
from render.cache import replay
from tests.project import Ran

GRACE = 40_000_000
"""Nanoseconds in which a change time proves nothing, in these tests: a few ticks of the kernel's clock."""


@dataclass(frozen=True)
class Run:
    """A run that goes on."""

    pid: int
    streams: tuple[io.BufferedRandom, io.BufferedRandom, io.BufferedRandom]

    def end(self) -> tuple[Ran, str]:
        """Wait for it; return what it printed, and what it took from the cache: `all`, `rest` or nothing."""
        _, status = os.waitpid(self.pid, 0)
        told = []
        for stream in self.streams:
            stream.seek(0)
            told.append(stream.read().decode())
            stream.close()
        assert not told[2].startswith("Traceback"), told[2]
        return Ran(os.waitstatus_to_exitcode(status), told[0], told[1]), told[2]


def start(
    folder: Path,
    cache: Path | None,
    *arguments: str,
    pause: float = 2 * GRACE / 1e9,
    first: Callable[[], object] = lambda: None,
) -> Run:
    """Start a run in a folder, after a pause in which what was written gets old; without a cache every file is read.

    `first` is called in the new process.
    """
    time.sleep(pause)
    streams = (tempfile.TemporaryFile(), tempfile.TemporaryFile(), tempfile.TemporaryFile())  # noqa: SIM115
    pid = os.fork()
    if pid:
        return Run(pid, streams)
    code = 99
    try:
        first()
        os.dup2(streams[0].fileno(), 1)
        os.dup2(streams[1].fileno(), 2)
        code = _run(folder, cache, arguments, streams[2].fileno())
    except BaseException:
        os.write(streams[2].fileno(), traceback.format_exc().encode())
    finally:
        os._exit(code)


def _run(folder: Path, cache: Path | None, arguments: tuple[str, ...], note: int) -> int:
    sys.stdout, sys.stderr = (os.fdopen(handle, "w", encoding="utf-8") for handle in (1, 2))
    os.chdir(folder)
    os.environ["RENDER_CACHE_DIR"] = str(cache or "")
    replay.GRACE = GRACE
    told = replay.Memory.replay

    def noting(memory: replay.Memory) -> int | None:
        code = told(memory)
        if code is not None:
            os.write(note, b"all")
        return code

    replay.Memory.replay = noting  # type: ignore[method-assign]
    apply = render.cache.edits.apply

    def noting_rest(*arguments: Any, **options: Any) -> render.cache.edits.Edited | None:
        edited = apply(*arguments, **options)
        if edited is not None:
            os.write(note, b"rest")
        return edited

    render.cache.edits.apply = noting_rest
    sys.argv = ["render", *arguments]
    code = render.__main__.main()
    sys.stdout.flush()
    sys.stderr.flush()
    return code


def run(folder: Path, cache: Path | None, *arguments: str) -> tuple[Ran, str]:
    """Run in a folder; return what is printed, and what it took from the cache."""
    return start(folder, cache, *arguments).end()
