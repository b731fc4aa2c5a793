"""The command `diff`: options in, calls, streams and exit codes out."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from render.cli_options import (
    CONTEXT,
    PATH,
    automation_option,
    fail_on_option,
    format_option,
    only_option,
    out_option,
    platform_option,
    print_report,
)
from render.progress import progress
from render.structs import field, replace, struct

if TYPE_CHECKING:
    from collections.abc import Mapping

    from render.build import Build
    from render.catalog import PlatformFile
    from render.diagnostics import Diagnostic, Location
    from render.diff import Diff
    from render.gitrev import Revision

EXIT_PROBLEMS = 1


@struct()
class Tree:
    """One side of the comparison: what it is called, its files, and what is wrong with it."""

    title: str
    files: Mapping[str, str] = field(default_factory=dict)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    names: frozenset[str] = frozenset()
    """Names of the services."""
    checked: int = 1
    """Files read."""

    @property
    def failed(self) -> bool:
        """Whether it cannot be compared."""
        return any(fault.severity == "error" for fault in self.diagnostics)


@struct(frozen=True)
class Rendering:
    """What is rendered in both revisions, and how."""

    catalog: Path
    platform_path: Path
    out: Path | None
    automation: bool


@click.command(
    context_settings=CONTEXT,
    epilog="Examples:\n\n  render diff --base origin/main --format markdown\n\n  render diff ../before clusters/home",
)
@click.argument("paths", nargs=-1, metavar="[OLD NEW | CATALOG]", type=PATH)
@click.option("--base", metavar="REV", help="Compare with what CATALOG renders to in this Git revision.")
@platform_option("The platform file; with --base.")
@out_option("Output root, for the image bot's values in it; with --base.")
@automation_option("Render both sides without image automation; with --base.")
@only_option("Compare the objects")
@format_option(("text", "markdown", "json"), "Form of the differences.")
@fail_on_option("What makes the exit code 1, besides differences.")
def diff(
    paths: tuple[Path, ...],
    base: str | None,
    platform_path: Path,
    out: Path | None,
    automation: bool,
    only: tuple[str, ...],
    style: str,
    fail_on: str,
) -> None:
    """Tell by object how two rendered trees differ: OLD and NEW, or a Git revision and now; exit 1 if they do."""
    if base is None:
        if len(paths) != 2:
            raise click.UsageError("give two rendered trees, or --base REV and at most the catalog")
        old, new = (_folder(path) for path in paths)
    else:
        if len(paths) > 1:
            raise click.UsageError("--base compares one catalog with itself; give at most the catalog")
        asked = Rendering(paths[0] if paths else Path("catalog"), platform_path, out, automation)
        old, new = _revisions(base, asked)
    if only and not (old.failed or new.failed):
        _keep(old, new, only)
    found = _compare(old, new)
    _print(found, old, new, style)
    warned = fail_on == "warning" and bool(new.diagnostics)
    sys.exit(EXIT_PROBLEMS if found is None or not found.is_empty or warned else 0)


def _folder(path: Path) -> Tree:
    from render.guard import service_of
    from render.treefiles import read_tree

    if not os.path.isdir(path):
        raise click.UsageError(f"{path}: there is no such folder")
    with progress(f"reading {path}") as step:
        files, faults = read_tree(path, step)
    return Tree(str(path), files, faults, frozenset(filter(None, map(service_of, files))), len(files))


def _revisions(base: str, asked: Rendering) -> tuple[Tree, Tree]:
    """Return what the catalog renders to in a revision, and now."""
    import tempfile

    from render.gitrev import GitError, Revision

    with tempfile.TemporaryDirectory(prefix="render-") as folder:
        try:
            revision = Revision(base, _start(asked.platform_path), Path(folder))
            old = _rendered_base(base, revision, asked)
        except GitError as error:
            raise click.UsageError(f"--base {base}: {error}") from error

    def root(file: PlatformFile) -> Path:
        return asked.out if asked.out is not None else revision.top / file.platform.root

    from render.build import build

    with progress("planning services") as step:
        made = build(asked.catalog, asked.platform_path, automation=asked.automation, root=root, step=step)
    return old, _tree("the working tree", made)


def _start(platform_path: Path) -> Path:
    """Return the folder in which Git is asked: that of the platform file, if there is one."""
    folder = Path(os.path.realpath(platform_path)).parent
    return folder if os.path.isdir(folder) else Path()


def _rendered_base(base: str, revision: Revision, asked: Rendering) -> Tree:
    """Render the catalog as it was, with the image bot's values of that time."""
    from render.build import build
    from render.catalog import shown_path
    from render.tree import OWNED

    revision.take(asked.catalog, asked.platform_path)

    def root(file: PlatformFile) -> Path:
        top = asked.out if asked.out is not None else revision.top / file.platform.root
        revision.take(*(top / folder for folder in OWNED))
        return revision.place(top)

    catalog, platform_path = revision.place(asked.catalog), revision.place(asked.platform_path)
    with progress("planning services of the base") as step:
        made = build(catalog, platform_path, automation=asked.automation, root=root, step=step)
    tree = _tree(base, made)
    prefix = f"{shown_path(revision.folder)}/"
    tree.diagnostics = [_moved(fault, prefix, f"{base}:") for fault in tree.diagnostics]
    return tree


def _tree(title: str, made: Build) -> Tree:
    from render.catalog import with_snippet

    return Tree(title, made.files, [with_snippet(one) for one in made.diagnostics], made.names, made.sources)


def _moved(fault: Diagnostic, prefix: str, shown: str) -> Diagnostic:
    """Return a fault of a copied file that names the file by revision and path, as Git does."""

    def place(where: Location) -> Location:
        return replace(where, path=where.path.replace(prefix, shown))

    texts = {name: getattr(fault, name).replace(prefix, shown) for name in ("message", "cause", "hint")}
    related = tuple((place(where), told) for where, told in fault.related)
    return replace(fault, location=place(fault.location), related=related, **texts)


def _keep(old: Tree, new: Tree, only: Sequence[str]) -> None:
    """Keep the files of some services."""
    from render.guard import service_of

    for name in only:
        if name not in old.names | new.names:
            raise click.UsageError(f"--only {name}: there is no such service on either side")
    for tree in (old, new):
        tree.files = {path: tree.files[path] for path in tree.files if service_of(path) in only}


def _compare(old: Tree, new: Tree) -> Diff | None:
    """Return the differences; None when a side cannot be read, which its diagnostics then say."""
    from render.diff import diff as compare

    if old.failed or new.failed:
        return None
    found, old_faults, new_faults = compare(old.files, new.files)
    for tree, faults in ((old, old_faults), (new, new_faults)):
        prefix = f"{tree.title.rstrip('/')}/"
        tree.diagnostics = sorted(
            {
                *tree.diagnostics,
                *(replace(one, location=replace(one.location, path=prefix + one.location.path)) for one in faults),
            }
        )
    return None if old.failed or new.failed else found


def _print(found: Diff | None, old: Tree, new: Tree, style: str) -> None:
    """Print the differences to stdout, and to stderr what is wrong and how much differs."""
    from render.diff import Diff
    from render.diff_report import Titles, as_json, counts, render_text
    from render.report import render_json

    titles = Titles(old.title, new.title)
    failed = [(name, tree) for name, tree in (("old", old), ("new", new)) if tree.failed]
    # What was wrong with the base and does no harm is of no interest now.
    told = [fault for tree in (old, new) if tree.failed or tree is new for fault in tree.diagnostics]
    if style == "json":
        made = as_json(found or Diff(), titles, [name for name, _ in failed])
        click.echo(render_json(told, made), nl=False)
    else:
        if style == "markdown":
            from render.diff_markdown import render_failure, render_markdown

            failures = [(tree.title, tree.diagnostics) for _, tree in failed]
            text = render_failure(titles, failures) if found is None else render_markdown(found, titles)
            click.echo(text, nl=False)
        elif found is not None:
            colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
            click.echo(render_text(found, colour=colour), nl=False, color=colour)
        print_report(told, sum(tree.checked for tree in (old, new) if tree.failed or tree is new))
    for _, tree in failed:
        click.echo(f"nothing is compared: {tree.title} cannot be rendered or read", err=True)
    if found is not None:
        click.echo(counts(found), err=True)
