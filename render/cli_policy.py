"""The command `policy`: options in, calls, streams and exit codes out."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from render.cli_options import CONTEXT, PATH, PATH_OR_DASH, format_option, platform_option, print_report
from render.progress import progress
from render.structs import struct

if TYPE_CHECKING:
    from concurrent.futures import Future

    from render.policies import Answer, Subject, Subjects
    from render.registry import Access

_MOST = 10
_EVERYTHING = sys.maxsize
_PATIENCE = 0.5
"""Seconds before a progress bar is worth a look."""


@struct(frozen=True)
class Asked:
    """Which policies are asked about which tags."""

    target: str | None
    spec: Path | None
    everything: bool
    tags: Path | None
    registry: bool


@click.command(
    context_settings=CONTEXT,
    epilog="Examples:\n\n  render policy pihole --registry\n\n  crane ls docker.io/pihole/pihole | "
    "render policy pihole/main --tags -\n\n  render policy --all --registry --format json\n\n"
    "  render policy --spec imagepolicy.yaml --tags tags.txt",
)
@click.argument("target", required=False, metavar="[SERVICE[/IMAGE]]")
@click.option("--all", "everything", is_flag=True, help="Ask for every automated image of the catalog.")
@click.option(
    "--spec", type=PATH_OR_DASH, help="Ask the ImagePolicy objects of this file (`-`: stdin); needs no catalog."
)
@click.option("--tags", type=PATH_OR_DASH, help="A file with the tags there are, one a line or as JSON (`-`: stdin).")
@click.option("--registry", is_flag=True, help="Ask the registry which tags there are.")
@click.option("--catalog", default="catalog", show_default=True, type=PATH, help="The catalog.")
@platform_option()
@format_option(("text", "json"), "Form of the answer.")
@click.option("-v", "--verbose", is_flag=True, help=f"List every tag, not just {_MOST} with one fate.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=30,
    show_default=True,
    metavar="SECONDS",
    help="Time for all that is asked about one image.",
)
@click.option(
    "--jobs", type=click.IntRange(1, 64), default=8, show_default=True, help="Images that are asked about at once."
)
@click.option("--ca-file", type=PATH, help="Certificates to trust besides the usual ones, as PEM.")
def policy(
    target: str | None,
    everything: bool,
    spec: Path | None,
    tags: Path | None,
    registry: bool,
    catalog: Path,
    platform_path: Path,
    style: str,
    verbose: bool,
    timeout: float,
    jobs: int,
    ca_file: Path | None,
) -> None:
    """Tell which tag Flux would choose now, which would come next, and why not the others."""
    asked = Asked(target, spec, everything, tags, registry)
    _check_usage(asked)
    from render.policies import ask

    if tags is not None:
        listed = _read_tags(tags)
        subjects = _subjects(asked, catalog, platform_path)
        answers = [ask(subject, listed) for subject in subjects]
    else:
        access = _access(timeout, ca_file)
        subjects = _subjects(asked, catalog, platform_path)
        answers = _ask_registries(subjects, access, jobs)
    _print(answers, style, _EVERYTHING if verbose else _MOST)
    if everything:
        from render.report import count

        known = sum(answer.is_selected for answer in answers)
        line = f"{count(len(answers), 'image')}: {known} with a selection, {len(answers) - known} without"
        click.echo(line, err=True)
    sys.exit(0 if all(answer.is_selected for answer in answers) else 1)


def _check_usage(asked: Asked) -> None:
    if sum((asked.target is not None, asked.spec is not None, asked.everything)) != 1:
        raise click.UsageError("give one of SERVICE, --spec and --all")
    if (asked.tags is not None) == asked.registry:
        raise click.UsageError("say where the tags come from by either --tags or --registry")
    if asked.everything and asked.tags is not None:
        raise click.UsageError("--all needs --registry: the tags in one file are those of one image")
    if asked.spec is not None and asked.registry:
        raise click.UsageError("--spec needs --tags: an ImagePolicy does not say which repository is scanned")
    if str(asked.spec) == str(asked.tags) == "-":
        raise click.UsageError("only one of --spec and --tags can be stdin")


def _read(path: Path, option: str) -> bytes:
    if str(path) == "-":
        return sys.stdin.buffer.read()
    try:
        return path.read_bytes()
    except OSError as error:
        raise click.UsageError(f"{option} {path}: {(error.strerror or str(error)).lower()}") from error


def _read_tags(path: Path) -> list[str]:
    from render.policies import decode_tags

    try:
        return decode_tags(_read(path, "--tags"))
    except ValueError as error:
        raise click.UsageError(f"--tags {path}: {error}") from error


def _subjects(asked: Asked, catalog: Path, platform_path: Path) -> list[Subject]:
    """Return the policies that are asked for; leave with the exit code where the input is at fault."""
    from render.policies import catalog_subjects, manifest_subjects

    if asked.spec is not None:
        shown = "<stdin>" if str(asked.spec) == "-" else str(asked.spec)
        found = manifest_subjects(shown, _read(asked.spec, "--spec"))
    else:
        with progress("planning services") as step:
            found = catalog_subjects(catalog, platform_path, step)
    if any(fault.severity == "error" for fault in found.diagnostics):
        print_report(found.diagnostics)
        sys.exit(1)
    if asked.target is None:
        return found.subjects
    chosen = _choose(found, asked.target)
    if asked.tags is not None and len(chosen) > 1:
        names = ", ".join(f"{one.service}/{one.image}" for one in chosen)
        raise click.UsageError(f"--tags are those of one image, and `{asked.target}` has {len(chosen)}: {names}")
    return chosen


def _choose(found: Subjects, target: str) -> list[Subject]:
    """Return the policies of a service, or of one of its images."""
    service, _, image = target.partition("/")
    assert found.build is not None
    if service not in found.build.names:
        _unknown(f"there is no service `{service}` in the catalog", service, found.build.names)
    chosen = [one for one in found.subjects if one.service == service and image in ("", one.image)]
    if chosen:
        return chosen
    images = [one.image for one in found.subjects if one.service == service]
    unmanaged = {
        name.partition("/")[2]: reason for name, reason in found.unmanaged.items() if name.partition("/")[0] == service
    }
    if image and image not in unmanaged and (images or unmanaged):
        _unknown(f"`{service}` has no image `{image}`", image, [*images, *unmanaged])
    reasons = [f"`{service}/{name}`: {why}" for name, why in unmanaged.items() if image in ("", name)]
    raise click.UsageError(
        f"no policy to ask: {'; '.join(reasons)}" if reasons else f"`{service}` is disabled, or declares no image"
    )


def _unknown(message: str, name: str, known: Iterable[str]) -> NoReturn:
    import difflib

    close = difflib.get_close_matches(name, sorted(known), 1)
    raise click.UsageError(message + (f"; did you mean `{close[0]}`?" if close else ""))


def _access(timeout: float, ca_file: Path | None) -> Access:
    """Return how registries are asked; nothing is asked yet."""
    import importlib.util

    if importlib.util.find_spec("oras") is None or importlib.util.find_spec("requests") is None:
        raise click.UsageError(
            "--registry needs the ORAS client; install it with `pip install 'flux-catalog-render[registry]'`"
        )
    from render.dockerconfig import DockerConfig, DockerConfigError
    from render.registry import Access, RegistryError, trusted

    try:
        return Access(DockerConfig.read(), timeout, trusted(ca_file))
    except (DockerConfigError, RegistryError) as error:
        raise click.UsageError(str(error)) from error


def _ask_registries(subjects: Sequence[Subject], access: Access, jobs: int) -> list[Answer]:
    """Ask for the tags of each image, some at once; what a registry does wrong is that image's answer."""
    from concurrent.futures import ThreadPoolExecutor, wait

    from render.policies import Answer, ask
    from render.registry import RegistryError, list_tags

    def ask_one(subject: Subject) -> Answer:
        try:
            tags = list_tags(subject.repository, access, insecure=subject.insecure)
        except RegistryError as error:
            return Answer(subject, None, str(error))
        return ask(subject, tags)

    with ThreadPoolExecutor(jobs) as pool:
        asked = [pool.submit(ask_one, subject) for subject in subjects]
        try:
            if len(asked) > 1 and wait(asked, _PATIENCE).not_done and sys.stderr.isatty():
                _show_progress(asked)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [one.result() for one in asked]


def _show_progress(asked: Sequence[Future[Answer]]) -> None:
    from concurrent.futures import FIRST_COMPLETED, wait

    waiting = set(asked)
    with click.progressbar(length=len(waiting), label="asking registries", file=sys.stderr) as bar:
        while waiting:
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            bar.update(len(done))


def _print(answers: Sequence[Answer], style: str, most: int) -> None:
    from render.policies import render_answers

    if style == "json":
        click.echo(json.dumps({"version": 1, "policies": [answer.as_json() for answer in answers]}, indent=2))
    else:
        click.echo(render_answers(answers, most=most), nl=False)
