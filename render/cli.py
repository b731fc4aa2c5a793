"""Command-line options in, calls, streams and exit codes out; no rule lives here."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from render import __version__, session
from render.cli_options import (
    CONTEXT,
    PATH,
    REPORTS,
    Command,
    automation_option,
    catalog_argument,
    fail_on_option,
    format_option,
    only_option,
    out_option,
    platform_option,
    quiet_option,
)
from render.session import MOST_JOBS, Inputs, MisuseError, Session, guarded

if TYPE_CHECKING:
    from render.cache.replay import Memory

_INPUT_OPTIONS = (
    catalog_argument,
    platform_option(),
    out_option("Output root. Default: the platform's `root`, from the top of the repository."),
    automation_option("Leave out image automation: its objects and markers."),
    click.option(
        "--reset-tags",
        multiple=True,
        metavar="SERVICE",
        help="Write the catalog's image version where the bot wrote another one (repeatable).",
    ),
    click.option(
        "--allow-reinstall",
        multiple=True,
        metavar="SERVICE",
        help="Accept that this service's release is uninstalled and installed again (repeatable).",
    ),
    format_option(REPORTS, "Form of the report."),
    fail_on_option(),
    click.option(
        "--jobs",
        type=click.IntRange(1, MOST_JOBS),
        metavar="N",
        help="Plan the services in N processes. Default: as many as are worth it.",
    ),
    click.option(
        "--no-cache",
        is_flag=True,
        expose_value=False,
        help="Read everything again, and leave nothing for the next run.",
    ),
    quiet_option,
)


def input_options(command: Command) -> Command:
    """Add what every rendering command takes; it arrives as one `Inputs`."""
    import functools

    names = Inputs.__match_args__

    @functools.wraps(command)
    def wrapped(**options: Any) -> Any:
        given: dict[str, Any] = {name: options.pop(name) for name in names}
        texts = {name: str(one) for name, one in given.items() if isinstance(one, Path)}
        inputs = Inputs(**{**given, **texts})
        return command(inputs=inputs, **options)

    for option in reversed(_INPUT_OPTIONS):
        wrapped = option(wrapped)
    return wrapped  # type: ignore[return-value]


_ELSEWHERE = {
    "diff": ("cli_diff", "diff"),
    "flux": ("cli_flux", "flux"),
    "images": ("cli_images", "images"),
    "import": ("cli_import", "import_"),
    "init": ("cli_new", "init"),
    "new": ("cli_new", "new"),
    "override": ("cli_images", "override"),
    "policy": ("cli_policy", "policy"),
    "renovate": ("cli_flux", "renovate"),
    "sync": ("cli_sync", "sync"),
    "write-back": ("cli_writeback", "write_back"),
}
"""Module and function of each command that is not here: `build` and `check` shall not pay for their options."""


class _Commands(click.Group):
    """Imports the commands of other modules when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *_ELSEWHERE})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in _ELSEWHERE and cmd_name not in self.commands:
            from importlib import import_module

            module, name = _ELSEWHERE[cmd_name]
            self.add_command(getattr(import_module(f"render.{module}"), name))
        return super().get_command(ctx, cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.list_commands(ctx):
            # The message about it names what is close.
            load_all()
        return super().resolve_command(ctx, args)


@click.group(cls=_Commands, context_settings=CONTEXT, epilog="See `render COMMAND --help` for examples.")
@click.version_option(__version__, message="render %(version)s")
def cli() -> None:
    """Compile a catalog of services into the Flux objects of one cluster."""


def load_all() -> None:
    """Import every command, so that `cli.commands` holds them."""
    context = click.Context(cli)
    for name in cli.list_commands(context):
        cli.get_command(context, name)


@cli.command(
    epilog="Examples:\n\n  render build\n\n  render build catalog --platform platform-airgap.yaml --no-image-automation"
)
@input_options
@click.option(
    "--force",
    multiple=True,
    metavar="PATH",
    type=PATH,
    help="Take over this file although a person edited or wrote it (repeatable).",
)
@click.option("-v", "--verbose", is_flag=True, help="List the files that change.")
def build(inputs: Inputs, force: tuple[Path, ...], verbose: bool) -> None:
    """Render CATALOG into the output root: all of it, or nothing if anything is wrong."""
    with _misuse():
        session.build(_session(inputs), force, verbose=verbose)


@cli.command(epilog="Examples:\n\n  render check\n\n  render check --only pihole --format github")
@input_options
@only_option("Compare the files")
@click.option(
    "--tree",
    "trees",
    multiple=True,
    metavar="DIR",
    type=PATH,
    help="Compare nothing; find HelmReleases in this folder that lack the override table (repeatable).",
)
def check(inputs: Inputs, only: tuple[str, ...], trees: tuple[Path, ...]) -> None:
    """Tell what `build` would change, as a unified diff; exit 1 if anything."""
    with _misuse():
        session.check(_session(inputs), only, trees)


@cli.command(epilog="Examples:\n\n  render schema service > service.json\n\n  render schema platform")
@click.argument("kind", type=click.Choice(("service", "platform")))
def schema(kind: str) -> None:
    """Print the JSON Schema of a ServiceDefinition or a platform file."""
    from render.model import schema as schemas

    click.echo(schemas.text("service" if kind == "service" else "platform"), nl=False)


@cli.command(epilog="Examples:\n\n  render explain R103\n\n  render explain R603")
@click.argument("code")
def explain(code: str) -> None:
    """Explain a diagnostic code."""
    from render.codes import CODES, page

    wanted = code.upper()
    if wanted not in CODES:
        # One wrong character, and only one code that it can be.
        close = [one for one in CODES if len(one) == len(wanted) and sum(map(str.__ne__, one, wanted)) == 1]
        raise click.UsageError(f"there is no code {code}" + (f"; did you mean {close[0]}?" if len(close) == 1 else ""))
    click.echo(page(wanted), nl=False)


class _Kept(NamedTuple):
    """What click hands on to the commands."""

    memory: Memory | None


def _session(inputs: Inputs) -> Session:
    kept = click.get_current_context().find_object(_Kept)
    return Session(inputs, kept.memory if kept is not None else None)


@contextlib.contextmanager
def _misuse() -> Iterator[None]:
    """Tell misuse as the command line does."""
    try:
        yield
    except MisuseError as error:
        raise click.UsageError(str(error)) from error


def run(arguments: Sequence[str], memory: Memory | None = None) -> int:
    """Run the command line in this process and return its exit code; a bug is 3 and says so.

    `memory` is where the run may leave what it found for the runs after it.
    """
    return guarded(lambda: cli.main(args=list(arguments), prog_name="render", standalone_mode=True, obj=_Kept(memory)))
