"""The command that prints what the image bot's write credential needs: options in, streams and an exit code out."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from render.cli_options import CONTEXT, fail_on_option, format_option, platform_option, print_report

EXIT_PROBLEMS = 1


@click.command(
    "write-back",
    context_settings=CONTEXT,
    epilog="Examples:\n\n"
    "  render write-back secret > clusters/home/platform/image-automation/git.sops.yaml\n\n"
    "  render write-back patch --platform platform-airgap.yaml",
)
@click.argument("part", type=click.Choice(("secret", "rule", "patch")))
@platform_option()
@click.option("--ssh", is_flag=True, help="An SSH key instead of a user name and a token (`secret` only).")
@format_option(("full", "concise"), "Form of the report.")
@fail_on_option()
def write_back(part: str, platform_path: Path, ssh: bool, style: str, fail_on: str) -> None:
    """Print what the image bot needs to write: one PART of it.

    `secret` is the Secret of its Git credential, to be filled in and encrypted; `rule` the rule for .sops.yaml; `patch`
    what gives the Secret to the GitRepository. None of them holds a secret.
    """
    from render.catalog import read_platform
    from render.credential import text_of
    from render.plan.platform import check_platform

    if ssh and part != "secret":
        raise click.UsageError(f"--ssh goes with `secret`, not with `{part}`")
    file, faults = read_platform(platform_path)
    if file is not None:
        faults += check_platform(file, automation=True, needs_git=True)
    print_report(sorted(faults), style=style)
    if file is None or any(fault.severity in ("error", fail_on) for fault in faults):
        sys.exit(EXIT_PROBLEMS)
    click.echo(text_of(part, file.platform, ssh=ssh), nl=False)
