"""The command line's entry point; answers `--version`, and runs that change nothing, before anything is imported."""

from __future__ import annotations

import os
import sys


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
    except (OSError, ValueError):
        # The interpreter knows what to say of it.
        sys.exit(code)
    os._exit(code)


def main() -> int:
    """Run the command line and return its exit code."""
    arguments = sys.argv[1:]
    if arguments == ["--version"]:
        from render import __version__

        sys.stdout.write(f"render {__version__}\n")
        return 0
    memory = None
    if arguments[:1] in (["build"], ["check"]):
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
