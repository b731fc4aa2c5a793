"""What a person wants in, the files of a new service or of a new repository out; nothing that is there is touched."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from render import __version__
from render.build import build
from render.catalog import find_files, reason_of, shown_path
from render.definition import definition_text, platform_text, schema_files, schema_path
from render.diagnostics import Diagnostic, Location
from render.files import read_bytes
from render.plan.chart_rules import form_of
from render.structs import replace
from render.tree import compare
from render.yaml.emit import Value

if TYPE_CHECKING:
    from render.catalog import PlatformFile

DISTRIBUTION = "flux-catalog-render"
NO_SOURCE = "https://git.example.org/example/render"
"""Stands where nobody knows whence the compiler was installed."""


@dataclass(frozen=True)
class Wish:
    """A new service, as it was asked for."""

    name: str
    chart: str | None = None
    """`KEY` or `KEY/NAME` of the platform's charts, `oci://…`, or `https://…`."""
    chart_name: str | None = None
    version: str | None = None
    image: str | None = None
    at: str | None = None
    namespace: str | None = None
    channel: str | None = None
    range: str | None = None
    port: int | None = None
    description: str | None = None

    @property
    def is_named(self) -> bool:
        """Whether the chart comes from a source of the platform file."""
        return self.chart is not None and "://" not in self.chart


@dataclass(slots=True)
class Made:
    """New files and what is wrong with them."""

    files: dict[Path, str] = field(default_factory=dict)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    checked: int = 0
    """Files that were looked at."""

    @property
    def failed(self) -> bool:
        """Whether nothing may be written."""
        return any(one.severity == "error" for one in self.diagnostics)


def missing(wish: Wish, platform: PlatformFile) -> list[str]:
    """Return what a service cannot do without, as fields of `Wish`; `chart` stands for `image` too."""
    if wish.chart is None:
        needs_port = wish.image is not None and wish.port is None and _is_automated(wish)
        return ["chart"] if wish.image is None else ["port"] if needs_port else []
    entry = platform.platform.charts.get(wish.chart.partition("/")[0]) if wish.is_named else None
    url = entry.url if entry is not None else wish.chart
    wanted = []
    is_http = form_of(url, None) == "http"
    has_name = wish.chart_name is not None or (wish.is_named and "/" in wish.chart)
    if is_http and not has_name and not (entry is not None and entry.name):
        wanted.append("chart_name")
    is_versioned = entry is not None and (entry.git or entry.version or entry.version_range)
    if wish.version is None and not is_versioned:
        wanted.append("version")
    return wanted


def _is_automated(wish: Wish) -> bool:
    return wish.range is not None or wish.channel is not None


def service_fields(wish: Wish) -> dict[str, Value]:
    """Return the fields of the definition."""
    image: Value = wish.image
    if wish.at is not None:
        image = {"ref": wish.image, "at": wish.at}
    update: Value = {"channel": wish.channel, "range": wish.range} if _is_automated(wish) else None
    return {
        "name": wish.name,
        "namespace": wish.namespace,
        "description": wish.description,
        "source": {"image": image, "chart": _chart(wish)},
        "update": update,
        "workload": _workload(wish) if wish.chart is None else None,
    }


def _chart(wish: Wish) -> Value:
    if wish.chart is None:
        return None
    if not wish.is_named:
        return {"url": wish.chart, "name": wish.chart_name, "version": wish.version}
    key, _, name = wish.chart.partition("/")
    return {"repository": key, "name": name or wish.chart_name, "version": wish.version}


def _workload(wish: Wish) -> Value:
    """Return a Deployment: with a port it has a Service, and is ready once it listens."""
    if wish.port is None:
        return {}
    return {
        "ports": [{"name": "http", "containerPort": wish.port}],
        "probes": {"readiness": {"tcpSocket": {"port": "http"}}},
    }


def place_of(wish: Wish, catalog: Path) -> Path:
    """Return where the definition goes: into the namespace's folder of the catalog, if it has one."""
    folder = catalog / (wish.namespace or wish.name)
    # A namespace that is no name of a folder is told when the definition is read.
    return (folder if os.path.isdir(folder) else catalog) / f"{wish.name}.yaml"


def new_service(wish: Wish, path: Path, catalog: Path, platform_path: Path) -> Made:
    """Return the file of a new service, and the schemas that its first line names where they are not there yet.

    The catalog is rendered with it, and what is wrong with it, or with another service because of it, is reported.
    """
    schema_at = schema_path(catalog, path)
    text = definition_text(service_fields(wish), schema_at)
    made = Made({path: text})
    for schema_file, content in schema_files(catalog).items():
        is_named = Path(os.path.normpath(path.parent / schema_at)) == Path(os.path.normpath(schema_file))
        if is_named and not os.path.lexists(schema_file):
            made.files[schema_file] = content
    made.checked = 1
    made.diagnostics += in_the_way([path], "name another file with `--file`, or another service")
    if made.failed:
        return made
    shown = shown_path(path)
    faults, made.checked = _build_with(path, text, catalog, platform_path)
    for fault in faults:
        if shown in (fault.location.path, *(where.path for where, _ in fault.related)):
            made.diagnostics.append(fault)
    return made


def _build_with(path: Path, text: str, catalog: Path, platform_path: Path) -> tuple[list[Diagnostic], int]:
    """Return what is wrong with a catalog that has one more file, and the number of files read.

    Nothing is written into the real one.
    """
    with TemporaryDirectory() as folder:
        copy = Path(folder, Path(os.path.realpath(catalog)).name)
        is_there = os.path.isdir(catalog)
        for name in find_files(catalog)[0] if is_there else ():
            there = copy / name
            there.parent.mkdir(parents=True, exist_ok=True)
            # What is wrong with another file is told when the catalog is built.
            with contextlib.suppress(OSError):
                there.write_bytes(read_bytes(catalog / name))
        place = copy / os.path.relpath(path, catalog)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
        built = build(copy, platform_path)
        prefix = shown_path(copy)
    return [_moved(one, prefix, shown_path(catalog)) for one in built.diagnostics], built.sources


def _moved(fault: Diagnostic, prefix: str, shown: str) -> Diagnostic:
    """Return a fault of the copied catalog as one of the real one."""

    def place(where: Location) -> Location:
        return replace(where, path=where.path.replace(prefix, shown, 1))

    related = tuple((place(where), told) for where, told in fault.related)
    return replace(fault, location=place(fault.location), related=related)


def in_the_way(paths: list[Path], hint: str) -> list[Diagnostic]:
    """Return the faults of files that are there already."""
    cause = "a new file never takes the place of another one"
    return [
        Diagnostic(Location(shown_path(path)), "R805", "the file is there already", cause=cause, hint=hint)
        for path in paths
        if os.path.lexists(path)
    ]


def write(files: Mapping[Path, str]) -> list[Diagnostic]:
    """Write files that do not exist, all or none; returns why one could not be."""
    undo: list[Callable[[], None]] = []
    for path, text in files.items():
        place, made = path, "file"
        try:
            for folder in reversed((path.parent, *path.parent.parents)):
                if not os.path.isdir(folder):
                    place, made = folder, "folder"
                    folder.mkdir()
                    undo.append(folder.rmdir)
            place, made = path, "file"
            with path.open("x", encoding="utf-8", newline="\n") as file:
                undo.append(path.unlink)
                file.write(text)
        except OSError as error:
            for step in reversed(undo):
                with contextlib.suppress(OSError):
                    step()
            is_taken = isinstance(error, FileExistsError)
            return [
                Diagnostic(
                    Location(shown_path(place)),
                    "R508",
                    f"cannot write the {made}: {reason_of(error)}",
                    cause="nothing is written unless everything is",
                    hint="move what has its name away" if is_taken else "set the permissions, or make room",
                )
            ]
    return []


# A new repository


@dataclass(frozen=True)
class Plan:
    """A new repository, as it was asked for."""

    folder: Path
    cluster: str
    flux_version: str
    root: str
    ci: str = "none"
    pre_commit: bool = True
    example: bool = True
    source: str = NO_SOURCE
    """Whence a pipeline installs the compiler, as pip takes it after `git+`."""


EXAMPLE = Wish(
    "podinfo",
    chart="oci://ghcr.io/stefanprodan/charts/podinfo",
    version="6.7.1",
    image="ghcr.io/stefanprodan/podinfo:6.7.1",
    namespace="demo",
    range="6.x",
    description="Small web service to try things on",
)


def new_repository(plan: Plan) -> Made:
    """Return the files of a repository whose catalog builds at once."""
    catalog, platform = plan.folder / "catalog", plan.folder / "platform.yaml"
    fields: dict[str, Value] = {
        "cluster": plan.cluster,
        "root": plan.root,
        "flux": {"version": plan.flux_version},
    }
    files = {platform: platform_text(fields, schema_path(catalog, platform, "platform")), **schema_files(catalog)}
    if plan.example:
        path = catalog / "demo" / "podinfo.yaml"
        files[path] = definition_text(service_fields(EXAMPLE), schema_path(catalog, path))
    if plan.pre_commit:
        files[plan.folder / ".pre-commit-config.yaml"] = _PRE_COMMIT
    if plan.ci != "none":
        place, text = _CI[plan.ci]
        files[plan.folder / place] = text.replace("SOURCE", plan.source)
    made = Made(dict(sorted(files.items())))
    made.diagnostics += in_the_way(list(made.files), "move it away, or leave its kind out; `--help` tells how")
    made.checked = len(made.files)
    if not made.failed:
        made.diagnostics += _check_new(plan, made.files)
    return made


def _check_new(plan: Plan, files: Mapping[Path, str]) -> list[Diagnostic]:
    """Return why a new repository would not build; nothing is written into the real one."""
    with TemporaryDirectory() as folder:
        top = Path(folder, "new")
        for path, text in {
            Path(".git"): "",
            **{path.relative_to(plan.folder): text for path, text in files.items()},
        }.items():
            (top / path).parent.mkdir(parents=True, exist_ok=True)
            (top / path).write_text(text, encoding="utf-8")
        built = build(top / "catalog", top / "platform.yaml", root=lambda file: top / file.platform.root)
        found = list(built.diagnostics)
        if not built.failed:
            found = compare(built, top / plan.root).diagnostics
        prefix = f"{shown_path(top)}/"
    shown = shown_path(plan.folder)
    found = [_moved(one, prefix, "" if shown == "." else f"{shown}/") for one in found]
    return [one for one in found if one.severity == "error"]


def source_of() -> str:
    """Return whence the compiler was installed, as pip noted it: a Git repository and the commit; else `NO_SOURCE`."""
    unknown = f"{NO_SOURCE}@v{__version__}"
    try:
        noted = distribution(DISTRIBUTION).read_text("direct_url.json")
    except PackageNotFoundError:
        return unknown
    found = json.loads(noted) if noted else {}
    if found.get("vcs_info", {}).get("vcs") != "git":
        return unknown
    return f"{found['url']}@{found['vcs_info']['commit_id']}"


_PRE_COMMIT = """\
repos:
  - repo: local
    hooks:
      - id: render
        name: render build
        entry: render build --quiet
        language: system
        pass_filenames: false
        always_run: true # pre-commit does not count deleted files
"""

_GITHUB = """\
name: render
on:
  pull_request:
  push:
    branches: [main]
permissions:
  contents: read
jobs:
  render:
    runs-on: RUNNER
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with:
          python-version: "3.13"
      - run: pip install "git+SOURCE"
      - run: render check --format github
"""

_GITLAB = """\
render:
  image: python:3.13
  script:
    - pip install "git+SOURCE"
    - render check
"""

_CI = {
    "github": (".github/workflows/render.yaml", _GITHUB.replace("RUNNER", "ubuntu-latest")),
    "gitlab": (".gitlab-ci.yml", _GITLAB),
    "forgejo": (".forgejo/workflows/render.yaml", _GITHUB.replace("RUNNER", "docker").replace(" --format github", "")),
}
