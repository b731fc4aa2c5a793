"""The command line's entry point; answers `--version` before anything is imported."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command line and return its exit code."""
    if sys.argv[1:] == ["--version"]:
        from render import __version__

        sys.stdout.write(f"render {__version__}\n")
        return 0
    from render.cli import run

    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
