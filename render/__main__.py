"""The command line's entry point; answers `--version`, and runs that change nothing, before anything is imported."""

from __future__ import annotations

import sys


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
        if code is not None:
            return code
    from render.cli import run

    return run(arguments, memory)


if __name__ == "__main__":
    sys.exit(main())
