"""Parts of a catalog in, what their files add to the build out, planned by a forked process for each part.

A process plans what depends on services of its own part that it has met, then tells which services it has and which it
waits for, is told of those, and plans the rest. What it has made lies in temporary files without a name, so that no
process waits for another to read.
"""

from __future__ import annotations

import os
import pickle
import signal
from collections.abc import Iterator
from contextlib import suppress

from render.diagnostics import WorkerError
from render.outcome import OutOfOrderError
from render.structs import struct
from render.texts import unnamed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import IO, Any, NoReturn

    from render.outcome import FileOutcome, Outcome
    from render.plan.context import Header
    from render.renderer import Renderer

HELD = 1000
"""Definitions that a process keeps while they wait for services of other parts."""
BATCH = 32
"""Files whose outcomes are written at a time: what they have in common is written once."""
_LENGTH = 8


@struct()
class _Worker:
    """One process, seen from the one that started it."""

    pid: int
    files: IO[bytes]
    """What its files add, one after another."""
    late: IO[bytes]
    """What those services add that waited for others, in the order of the files."""
    up: int
    down: int
    count: int
    is_over: bool = False
    """Whether its exit code was taken; its number may be another process's then."""


@struct()
class _Met:
    """What a process tells of its part."""

    headers: dict[str, Header]
    awaited: set[str]
    is_complete: bool


class Workers:
    """The processes of a build; none outlives the block."""

    def __init__(self, renderer: Renderer, parts: list[list[tuple[str, str]]]) -> None:
        self.renderer = renderer
        self.parts = parts
        self.workers: list[_Worker] = []

    def __enter__(self) -> Workers:
        try:
            for part in self.parts:
                self._start(part)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def share(self, *, is_complete: bool) -> bool:
        """Tell every process of the services that it waits for; return whether all files were read.

        From here on the renderer knows all services. Raises OutOfOrderError when two parts declare one name.
        """
        known = self.renderer.headers
        told = [_receive(worker) for worker in self.workers]
        for met in told:
            is_complete = is_complete and met.is_complete
            if not known.keys().isdisjoint(met.headers):
                raise OutOfOrderError
            known.update(met.headers)
        for worker, met in zip(self.workers, told, strict=True):
            found = {name: known[name] for name in met.awaited if name in known}
            # Names that are not there are compared with all others.
            _send(worker.down, (found if len(found) == len(met.awaited) else known, is_complete))
        return is_complete

    def results(self) -> Iterator[FileOutcome]:
        """Yield what the files of all parts add, in order."""
        for worker in self.workers:
            _receive(worker)
            for stream in (worker.files, worker.late):
                stream.seek(0)
            files: Iterator[tuple[FileOutcome, bytes]] = _loaded(worker.files)
            late: Iterator[Outcome] = _loaded(worker.late)
            for _ in range(worker.count):
                file, data = next(files)
                if self.renderer.seen is not None and file.path is not None:
                    self.renderer.seen.add(file.path, data)
                for entered in file.services:
                    if entered.outcome is None and entered.header.enabled:
                        entered.outcome = next(late)
                yield file

    def _start(self, part: list[tuple[str, str]]) -> None:
        files, late = unnamed(), unnamed()
        up, told = os.pipe()
        heard, down = os.pipe()
        pid = os.fork()
        if not pid:
            # Only while the parent alone holds its ends of the pipes is its death seen at the others.
            for handle in (up, down, *(one for worker in self.workers for one in (worker.up, worker.down))):
                os.close(handle)
            _work(self.renderer, part, files, late, told, heard)
        os.close(told)
        os.close(heard)
        self.workers.append(_Worker(pid, files, late, up, down, len(part)))

    def _end(self) -> None:
        going = [worker.pid for worker in self.workers if not worker.is_over]
        for pid in going:
            os.kill(pid, signal.SIGKILL)
        for pid in going:
            os.waitpid(pid, 0)
        for worker in self.workers:
            os.close(worker.up)
            os.close(worker.down)
            worker.files.close()
            worker.late.close()
        self.workers = []


def _work(
    renderer: Renderer, part: list[tuple[str, str]], files: IO[bytes], late: IO[bytes], up: int, down: int
) -> NoReturn:
    """Plan a part, and end this process."""
    code = 1
    try:
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        _plan(renderer, part, files, late, up, down)
        code = 0
    except EOFError:
        # The process that would take the result is gone.
        pass
    except BaseException:
        import traceback

        with suppress(OSError):
            _send(up, traceback.format_exc())
    finally:
        os._exit(code)


def _plan(
    renderer: Renderer, part: list[tuple[str, str]], files: IO[bytes], late: IO[bytes], up: int, down: int
) -> None:
    assert renderer.context is not None
    renderer.held = HELD
    seen = renderer.seen
    is_complete = True
    for index in range(0, len(part), BATCH):
        batch: list[tuple[FileOutcome, bytes]] = []
        for path, label in part[index : index + BATCH]:
            file = renderer.read(path, label)
            is_complete = is_complete and file.is_readable
            batch.append((file, seen.contents.data(path) if seen is not None and path in seen.contents else b""))
        pickle.dump(batch, files, pickle.HIGHEST_PROTOCOL)
        for file, _ in batch:
            for entered in file.services:
                entered.outcome = None
    _send(up, _Met(renderer.headers, renderer.awaited, is_complete))
    known, renderer.context.is_complete = pickle.loads(_read(down))  # noqa: S301 - written by a process of ours
    renderer.headers.update(known)
    finished: list[Outcome | None] = []
    for entered in renderer.finish():
        finished.append(entered.outcome)
        if len(finished) == BATCH:
            pickle.dump(finished, late, pickle.HIGHEST_PROTOCOL)
            finished = []
    pickle.dump(finished, late, pickle.HIGHEST_PROTOCOL)
    for stream in (files, late):
        stream.flush()
    _send(up, None)


def _loaded(stream: IO[bytes]) -> Iterator[Any]:
    """Yield what was written in batches, as far as it is asked for."""
    while True:
        yield from pickle.load(stream)  # noqa: S301 - written by a process of ours


def _send(handle: int, value: Any) -> None:
    data = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    view = memoryview(len(data).to_bytes(_LENGTH, "little") + data)
    while view:
        written = os.write(handle, view)
        view = view[written:]


def _receive(worker: _Worker) -> Any:
    """Return the next message of a process; raises WorkerError when it is gone, RuntimeError when it met a bug."""
    try:
        value = pickle.loads(_read(worker.up))  # noqa: S301 - written by a process of ours
    except EOFError:
        _, status = os.waitpid(worker.pid, 0)
        worker.is_over = True
        code = os.waitstatus_to_exitcode(status)
        if code == -signal.SIGINT:
            # It may hear of the interrupt before this process does.
            raise KeyboardInterrupt from None
        told = f"signal {-code} ({signal.strsignal(-code)})" if code < 0 else f"exit code {code}"
        raise WorkerError(f"a process that planned a part of the catalog has ended early, by {told}") from None
    if isinstance(value, str):
        raise RuntimeError(f"in another process:\n{value}")
    return value


def _read(handle: int) -> bytes:
    return _exactly(handle, int.from_bytes(_exactly(handle, _LENGTH), "little"))


def _exactly(handle: int, size: int) -> bytes:
    parts = []
    while size:
        part = os.read(handle, size)
        if not part:
            raise EOFError
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
