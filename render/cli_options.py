"""The options that several commands share, each a named decorator; and how their diagnostics are printed."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from render.session import has_colour

if TYPE_CHECKING:
    from render.diagnostics import Diagnostic

Command = TypeVar("Command", bound=Callable[..., Any])
Option = Callable[[Command], Command]

CONTEXT = {"help_option_names": ["-h", "--help"]}
REPORTS = ("full", "concise", "json", "github")


class _Path(click.Path):
    """A path, refused where no file can have it; an empty one is a variable of the shell that is not set."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = super().convert(value, param, ctx)
        try:
            os.lstat(path)
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                self.fail(f"{value}: the name is too long", param, ctx)
        if not value:
            self.fail("the path is empty; `.` is the working directory", param, ctx)
        return path


PATH = _Path(path_type=Path)
PATH_OR_DASH = _Path(path_type=Path, allow_dash=True)
"""`-` is standard input."""

catalog_argument: Option[Any] = click.argument("catalog", default="catalog", type=PATH)
quiet_option: Option[Any] = click.option("-q", "--quiet", is_flag=True, help="Leave out the last line on success.")


def platform_option(text: str = "The platform file.") -> Option[Any]:
    """Return `--platform`, by default platform.yaml."""
    return click.option("--platform", "platform_path", default="platform.yaml", show_default=True, type=PATH, help=text)


def out_option(text: str) -> Option[Any]:
    """Return `--out`."""
    return click.option("--out", type=PATH, help=text)


def automation_option(text: str) -> Option[Any]:
    """Return `--no-image-automation`, which arrives as `automation`."""
    return click.option("--no-image-automation", "automation", is_flag=True, flag_value=False, default=True, help=text)


def only_option(text: str) -> Option[Any]:
    """Return `--only NAME`, repeatable."""
    return click.option("--only", multiple=True, metavar="NAME", help=f"{text} of this service only (repeatable).")


def format_option(choices: Sequence[str], text: str) -> Option[Any]:
    """Return `--format`, which arrives as `style`; the first choice is the default."""
    return click.option(
        "--format", "style", type=click.Choice(choices), default=choices[0], show_default=True, help=text
    )


def fail_on_option(text: str = "What makes the exit code 1.") -> Option[Any]:
    """Return `--fail-on`."""
    return click.option(
        "--fail-on", type=click.Choice(("error", "warning")), default="error", show_default=True, help=text
    )


def print_report(diagnostics: Sequence[Diagnostic], checked: int | None = None, style: str = "full") -> None:
    """Print diagnostics in a style other than `json`, with a last line when the number of `checked` files is given.

    They go to stderr; in the style `github` to stdout, where GitHub looks for them.
    """
    from render.catalog import with_snippet
    from render.report import faults_line, render_report

    if not diagnostics:
        return
    told = [with_snippet(one) for one in diagnostics] if style == "full" else diagnostics
    to_stdout = style == "github"
    text = render_report(told, style, colour=not to_stdout and has_colour())
    click.echo(text, nl=False, err=not to_stdout, color=True)
    if checked is not None:
        click.echo(faults_line(diagnostics, checked), err=True)
