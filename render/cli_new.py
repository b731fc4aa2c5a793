"""The commands `new` and `init`: options in, questions on a terminal, files and streams out."""

from __future__ import annotations

import os
import posixpath
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from render.cli_options import CONTEXT, PATH, REPORTS, format_option, platform_option, print_report, quiet_option

if TYPE_CHECKING:
    from render.catalog import PlatformFile
    from render.scaffold import Made, Wish

EXIT_PROBLEMS = 1
CHANNELS = ("stable", "prerelease", "calver", "build", "digest")
CI_KINDS = ("github", "gitlab", "forgejo", "none")
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,51}[a-z0-9])?\Z")
_SOURCE = re.compile(r"[A-Za-z0-9+.:/@_~%-]+\Z")
_PORT = click.IntRange(1, 65535)
_OPTIONS = {
    "chart": "--chart or --image",
    "chart_name": "--chart-name",
    "version": "--version",
    "port": "--port, for the health check of an automated image",
}
_QUESTIONS = {
    "chart_name": "Name of the chart in its repository",
    "version": "Version of the chart",
    "port": "Port that the container listens on",
}


def _is_terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


@click.command(
    context_settings=CONTEXT,
    epilog="Examples:\n\n  render new podinfo --chart oci://ghcr.io/stefanprodan/charts/podinfo --version 6.7.1\n\n"
    "  render new whoami --image docker.io/traefik/whoami:v1.10.3 --range 1.x --port 80",
)
@click.argument("name")
@click.option(
    "--chart",
    metavar="CHART",
    help="`KEY` or `KEY/NAME` for a chart source of the platform, `oci://…`, or `https://…`.",
)
@click.option("--chart-name", metavar="NAME", help="Name of the chart in its repository.")
@click.option("--version", metavar="VERSION", help="Exact version of the chart.")
@click.option("--image", metavar="REF", help="The main image; without a chart, of a plain Deployment.")
@click.option("--at", metavar="PATH", help="Where the image stands in the chart's values.")
@click.option("--namespace", metavar="NAME", help="Namespace.  [default: the platform's, else NAME]")
@click.option("--range", "range_", metavar="RANGE", help="Keep the image up to date within this range.")
@click.option("--channel", type=click.Choice(CHANNELS), help="What counts as the next version of the image.")
@click.option("--port", type=_PORT, help="Port of the container; without a chart.")
@click.option("--description", metavar="TEXT", help="For people and reports.")
@click.option("--catalog", metavar="DIR", default="catalog", show_default=True, type=PATH, help="The catalog.")
@platform_option()
@click.option("--file", "file", metavar="PATH", type=PATH, help="The new file, from the catalog on.")
@click.option("--dry-run", is_flag=True, help="Print the definition, and write nothing.")
@format_option(REPORTS, "Form of the report.")
def new(
    name: str,
    chart: str | None,
    chart_name: str | None,
    version: str | None,
    image: str | None,
    at: str | None,
    namespace: str | None,
    range_: str | None,
    channel: str | None,
    port: int | None,
    description: str | None,
    catalog: Path,
    platform_path: Path,
    file: Path | None,
    dry_run: bool,
    style: str,
) -> None:
    """Write the definition of a new service NAME, from a chart or an image; nothing is overwritten.

    On a terminal, what is needed and missing is asked for.
    """
    from render.catalog import read_platform
    from render.scaffold import Wish, missing, new_service, place_of

    if _NAME.match(name) is None:
        raise click.UsageError(f"NAME must be lower-case letters, digits and inner `-`, at most 53, not `{name}`")
    platform, faults = read_platform(platform_path)
    if platform is None:
        print_report(faults, 1, style)
        sys.exit(EXIT_PROBLEMS)
    wish = Wish(name, chart, chart_name, version, image, at, namespace, channel, range_, port, description)
    if missing(wish, platform) and _is_terminal():
        wish = _ask(wish, platform)
    _check(wish, platform)
    path = catalog / file if file is not None else place_of(wish, catalog)
    if file is not None and (file.suffix not in (".yaml", ".yml") or file.is_absolute() or ".." in file.parts):
        raise click.UsageError("--file must be the path of a .yaml file in the catalog")
    made = new_service(wish, path, catalog, platform_path)
    _finish(made, style, product=made.files[path] if dry_run else None)


def _ask(wish: Wish, platform: PlatformFile) -> Wish:
    """Return the wish with the answers of a person."""
    from render.scaffold import missing

    while wanted := missing(wish, platform):
        if wanted == ["chart"]:
            keys = ", ".join(platform.platform.charts)
            told = "Chart: KEY/NAME, oci://… or https://… (empty: a plain Deployment)"
            click.echo(f"chart sources of the platform: {keys}" if keys else "the platform names no charts", err=True)
            wish = replace(wish, chart=_asked(told) or None)
            image = "Image (empty: the chart's own)" if wish.chart else "Image"
            wish = replace(wish, image=_asked(image) or None)
            if wish.image:
                wish = replace(wish, range=_asked("Range of its updates, such as 1.x (empty: fixed)") or None)
            wish = replace(wish, namespace=_asked("Namespace (empty: the default)") or None)
            continue
        answers: dict[str, Any] = {
            one: click.prompt(_QUESTIONS[one], type=_PORT if one == "port" else str, err=True) for one in wanted
        }
        wish = replace(wish, **answers)
    return wish


def _asked(question: str) -> str:
    return str(click.prompt(question, default="", show_default=False, err=True)).strip()


def _check(wish: Wish, platform: PlatformFile) -> None:
    """Refuse options that are missing, or that say nothing."""
    from render.scaffold import missing

    wanted = missing(wish, platform)
    if wanted:
        raise click.UsageError("missing " + ", ".join(_OPTIONS[one] for one in wanted))
    if wish.chart is not None and wish.port is not None:
        raise click.UsageError("--port is for a plain Deployment; a chart has its own")
    if wish.image is None and (wish.at or wish.range or wish.channel):
        raise click.UsageError("--at, --range and --channel are about --image")
    if wish.chart is None and (wish.at or wish.version or wish.chart_name):
        raise click.UsageError("--at, --version and --chart-name are about --chart")


def _finish(made: Made, style: str, told: str = "", product: str | None = None) -> None:
    """Write the files, or tell why not, and leave; a `product` is printed in their place."""
    from render.catalog import shown_path
    from render.report import render_json
    from render.scaffold import write

    if not made.failed and product is None:
        made.diagnostics += write(made.files)
    files = [] if made.failed or product is not None else [shown_path(path) for path in made.files]
    if style == "json":
        texts = {shown_path(path): text for path, text in made.files.items()}
        click.echo(render_json(made.diagnostics, {"written": files, "files": texts}), nl=False)
        sys.exit(EXIT_PROBLEMS if made.failed else 0)
    print_report(made.diagnostics, made.checked, style)
    if product is not None and style != "github":
        click.echo(product, nl=False)
    if made.failed:
        sys.exit(EXIT_PROBLEMS)
    for path in files:
        click.echo(path, err=style == "github")
    if told:
        click.echo(told, err=True)
    sys.exit(0)


@click.command(
    context_settings=CONTEXT,
    epilog="Examples:\n\n  render init --cluster home\n\n"
    "  render init infra --cluster home --flux-version 2.8 --root clusters/home --ci gitlab --no-example",
)
@click.argument("folder", metavar="[DIR]", default=".", type=PATH)
@click.option("--cluster", metavar="NAME", help="Name of the cluster.")
@click.option("--flux-version", metavar="VERSION", help="Flux version, 2.7 to 2.9.  [default: 2.9]")
@click.option("--root", metavar="DIR", help="Output root, from the top of the repository.  [default: clusters/NAME]")
@click.option("--ci", type=click.Choice(CI_KINDS), help="Pipeline that runs `render check`.  [default: none]")
@click.option("--source", metavar="URL", help="Whence the pipeline installs `render`: a Git URL, `@` and a revision.")
@click.option("--pre-commit/--no-pre-commit", default=True, help="A pre-commit hook that builds.  [default: yes]")
@click.option("--example/--no-example", default=True, help="An example service.  [default: yes]")
@format_option(REPORTS, "Form of the report.")
@quiet_option
def init(
    folder: Path,
    cluster: str | None,
    flux_version: str | None,
    root: str | None,
    ci: str | None,
    source: str | None,
    pre_commit: bool,
    example: bool,
    style: str,
    quiet: bool,
) -> None:
    """Begin a repository in DIR: a platform file, a catalog, and what runs `render`; nothing is overwritten.

    On a terminal, what is not given is asked for.
    """
    from render.flux.versions import MINORS
    from render.scaffold import NO_SOURCE, Plan, new_repository, source_of

    if cluster is None and _is_terminal():
        cluster = str(click.prompt("Name of the cluster", err=True)).strip()
        flux_version = flux_version or str(click.prompt("Flux version", default=MINORS[-1], err=True))
        root = root or str(click.prompt("Output root", default=f"clusters/{cluster}", err=True))
        ci = ci or str(click.prompt("Pipeline", type=click.Choice(CI_KINDS), default=_found_ci(folder), err=True))
    if cluster is None:
        raise click.UsageError("missing --cluster")
    if source is not None and _SOURCE.match(source) is None:
        raise click.UsageError("--source must be a URL, such as https://git.example.org/render@v1.0.0")
    plan = Plan(
        folder,
        cluster,
        flux_version or MINORS[-1],
        root or f"clusters/{cluster}",
        ci or "none",
        pre_commit,
        example,
        source or source_of(),
    )
    made = new_repository(plan)
    told = f"next: `render build`, commit, and point Flux at ./{posixpath.normpath(plan.root)}/flux".replace("/./", "/")
    if plan.ci != "none" and plan.source.startswith(NO_SOURCE):
        told = f"put the place of `render` into the pipeline, in the place of {NO_SOURCE}\n{told}"
    _finish(made, style, "" if quiet else told)


def _found_ci(folder: Path) -> str:
    """Return the kind of pipeline that a repository seems to use."""
    known = {"github": ".github", "gitlab": ".gitlab-ci.yml", "forgejo": ".forgejo"}
    return next((kind for kind, name in known.items() if os.path.lexists(folder / name)), "none")
