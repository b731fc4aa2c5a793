"""Work in, what several processes make of a part of it each out: forked once, and told what to do next.

After a fork each page of memory is copied when it is written to, and counting references writes to most of them; so
the processes that write the tree are those that look at it for the cache's record.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator

from render.structs import struct
from render.texts import unnamed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO, NoReturn

    Task = Callable[[int], Iterator[bytes | memoryview]]
    """The number of a process in, from 1 on, what it makes out."""

_LENGTH = 8
_MADE, _UNMADE, _BUG = b".x!"


class UnmadeError(Exception):
    """Raised by a task that cannot be done, and told as such."""


@struct()
class Result:
    """What one process has made, or why it has not."""

    data: bytes = b""
    is_made: bool = True
    """False when the task could not be done."""
    ended: str = ""
    """How the process ended before it was done, such as `signal 9 (Killed)`."""


@struct()
class _Process:
    pid: int
    file: IO[bytes]
    """What it has made last."""
    up: int
    down: int


class Crew:
    """Some processes beside this one; none outlives the block. They know what this one does at its first `start`."""

    def __init__(self) -> None:
        self.jobs = 1
        """Processes in all, this one included."""
        self.tasks: list[Task] = []
        self.going: list[_Process] = []
        self.is_forked = False

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        going, self.going = self.going, []
        for process in going:
            # Told so, it ends when it waits for what to do next; else between two files.
            os.close(process.down)
        for process in going:
            # An interrupt may come between the end of one and the note of it.
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                if error is not None and not isinstance(error, SystemExit):
                    import signal

                    os.kill(process.pid, signal.SIGINT)
                os.waitpid(process.pid, 0)
            os.close(process.up)
            process.file.close()

    def add(self, task: Task) -> int:
        """Take in what is to be done later, before the first `start`; return its number."""
        assert not self.is_forked
        self.tasks.append(task)
        return len(self.tasks) - 1

    def start(self, task: int) -> None:
        """Let all others begin with a task; `results` has to be called before the next one."""
        if not self.is_forked:
            self.is_forked = True
            for which in range(1, self.jobs):
                self._fork(which)
        for process in self.going:
            with contextlib.suppress(BrokenPipeError):
                # It has ended, as `results` will tell.
                os.write(process.down, bytes([task]))

    def results(self) -> list[Result]:
        """Return what each has made of its part, in the order of their numbers, once all are done."""
        return [_result(process) for process in self.going]

    def _fork(self, which: int) -> None:
        file = unnamed()
        up, told = os.pipe()
        heard, down = os.pipe()
        parent = os.getpid()
        pid = os.fork()
        if not pid:
            # Only while the parent alone holds its ends of the pipes is its death seen at the others.
            for handle in (up, down, *(one for process in self.going for one in (process.up, process.down))):
                os.close(handle)
            _serve(self.tasks, which, file, told, heard, parent)
        os.close(told)
        os.close(heard)
        self.going.append(_Process(pid, file, up, down))


def _serve(tasks: list[Task], which: int, file: IO[bytes], told: int, heard: int, parent: int) -> NoReturn:
    """Do what is asked for, until nobody asks any more, and end this process."""
    try:
        while (asked := os.read(heard, 1)) and os.getppid() == parent:
            size, how = 0, _MADE
            try:
                file.seek(0)
                for part in tasks[asked[0]](which):
                    size += file.write(part)
                file.flush()
            except (OSError, UnmadeError):
                size, how = 0, _UNMADE
            except Exception:
                import traceback

                os.write(2, traceback.format_exc().encode("utf-8", "replace"))
                size, how = 0, _BUG
            os.write(told, bytes([how]) + size.to_bytes(_LENGTH, "little"))
    except (KeyboardInterrupt, OSError):
        # The process that asks is gone, or is about to go.
        pass
    finally:
        os._exit(0)


def _result(process: _Process) -> Result:
    answer = b""
    while len(answer) <= _LENGTH:
        part = os.read(process.up, _LENGTH + 1 - len(answer))
        if not part:
            import signal

            _, status = os.waitpid(process.pid, 0)
            code = os.waitstatus_to_exitcode(status)
            return Result(ended=f"signal {-code} ({signal.strsignal(-code)})" if code < 0 else f"exit code {code}")
        answer += part
    if answer[0] == _BUG:
        raise RuntimeError("another process met a bug; it said which")
    size = int.from_bytes(answer[1:], "little")
    parts, start = [], 0
    while start < size:
        parts.append(os.pread(process.file.fileno(), min(size - start, 1 << 20), start))
        start += len(parts[-1])
    return Result(b"".join(parts), answer[0] == _MADE)
