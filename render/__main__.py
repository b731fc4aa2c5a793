"""The command line's entry point; answers `--version`, and runs that change nothing, before anything is imported."""

from __future__ import annotations

import gc
import os
import sys

LAST_STREAM = 2
"""The number of standard error."""


def program() -> None:
    """Run the command line, and end the process.

    Taking the interpreter apart would cost a twentieth of a small build, and nothing waits for it: files are closed,
    and no thread runs any more.
    """
    code = main()
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except BrokenPipeError:
        # Nobody reads on.
        pass
    except (OSError, ValueError) as error:
        if not code:
            told = (getattr(error, "strerror", None) or str(error)).lower()
            try:
                sys.stderr.write(f"error: cannot print what there is to say: {told}\n")
                sys.stderr.flush()
            except (OSError, ValueError):
                # Standard error may be what takes nothing any more.
                pass
            code = 1
    os._exit(code)


def open_streams() -> None:
    """Give a stream that is closed a file that takes and holds nothing; what is opened next would take its number."""
    while (handle := os.open(os.devnull, os.O_RDWR)) <= LAST_STREAM:
        pass
    os.close(handle)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "r" if number == 0 else "w", encoding="utf-8"))  # noqa: SIM115


def main() -> int:
    """Run the command line and return its exit code."""
    if sys.stdin is None or sys.stdout is None or sys.stderr is None:
        open_streams()
    arguments = sys.argv[1:]
    if arguments == ["--version"]:
        from render import __version__

        try:
            sys.stdout.write(f"render {__version__}\n")
            sys.stdout.flush()
        except BrokenPipeError:
            return 1
        except OSError as error:
            sys.stderr.write(f"error: cannot print the version: {(error.strerror or '').lower()}\n")
            return 1
        return 0
    memory = None
    if arguments[:1] in (["build"], ["check"]):
        # A run makes next to no cycles, and many objects among which the collector would search for them.
        gc.disable()
        from render.cache.replay import memory_of

        memory = memory_of(arguments)
        code = memory.replay() if memory is not None else None
        if code is None and "_RENDER_COMPLETE" not in os.environ:
            from render.session import run_plain

            code = run_plain(arguments[0], arguments[1:], memory)
        if code is not None:
            return code
    from render.cli import run

    return run(arguments, memory)


if __name__ == "__main__":
    program()
