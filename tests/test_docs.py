"""The documentation against the program: blocks current, commands and options real, examples sound, links whole."""

from __future__ import annotations

import re
import shlex
import textwrap
from itertools import pairwise
from pathlib import Path

import click
import pytest

from render import docs
from render.build import Build, build
from render.cli import cli, load_all

load_all()

ROOT = docs.ROOT
PAGES = [page.relative_to(ROOT).as_posix() for page in docs.pages()]
WRITTEN = [*PAGES, "CHANGELOG.md"]
COOKBOOK = ROOT / "docs/cookbook.md"
FENCE = re.compile(r"^(?P<indent> *)```(?P<info>[^\n]*)\n(?P<text>.*?)^ *```$", re.DOTALL | re.MULTILINE)


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(page: str, language: str) -> list[str]:
    return [textwrap.dedent(m["text"]) for m in FENCE.finditer(text_of(page)) if m["info"].split()[:1] == [language]]


def build_of(project: docs.Project) -> Build:
    with project.entered():
        return build(Path("catalog"), Path(docs.PLATFORM))


def check_command(line: str) -> None:
    """Parse a `render …` line as the program would, without running it."""
    words = shlex.split(line.split(" > ", maxsplit=1)[0].split(" | ", maxsplit=1)[0])[1:]
    if not words or words[0].startswith("-"):
        assert words in (["--version"], ["--help"], ["-h"])
        return
    command = cli.commands[words[0]]
    command.make_context(words[0], words[1:])


@pytest.mark.parametrize("page", PAGES)
def test_page_is_what_the_program_makes_of_it(page: str) -> None:
    message = "run `python -m render.docs`"
    assert docs.current(ROOT / page) == text_of(page), message


@pytest.mark.parametrize("page", PAGES)
def test_every_render_command_in_a_page_parses(page: str) -> None:
    for block in blocks(page, "sh"):
        for line in block.splitlines():
            if re.match(r"(\.venv/bin/)?render\b", line):
                check_command(line)


def test_readme_and_docs_show_commands_at_all() -> None:
    shown = [line for page in PAGES for block in blocks(page, "sh") for line in block.splitlines()]
    assert {"render build", "render check"} <= set(shown)


def test_an_unknown_option_would_be_found() -> None:
    with pytest.raises(click.UsageError):
        check_command("render build --colour")
    with pytest.raises(KeyError):
        check_command("render wish")


def test_every_command_is_in_the_list_of_commands() -> None:
    listed = re.findall(r"^\| \[`([\w-]+)`\]\(#[\w-]+\) \|", text_of("docs/cli.md"), re.MULTILINE)
    assert sorted(listed) == sorted(cli.commands)


def test_make_targets_of_the_readme_exist() -> None:
    makefile = ROOT / "Makefile"
    if not makefile.exists():
        pytest.skip("there is no Makefile")
    targets = set(re.findall(r"^([\w-]+):", makefile.read_text(encoding="utf-8"), re.MULTILINE))
    told = {m for block in blocks("README.md", "sh") for m in re.findall(r"^make ([\w-]+)$", block, re.MULTILINE)}
    assert {"demo", "test"} <= told <= targets


@pytest.mark.parametrize("name", sorted(cli.commands))
def test_every_command_and_option_is_explained(name: str) -> None:
    sections = re.split(r"^## ", text_of("docs/cli.md"), flags=re.MULTILINE)
    section = next(part for part in sections if part.startswith(f"{name}\n"))
    prose = FENCE.sub("", section)
    if name == "check":
        assert "options mean the same as for `build`" in prose
        prose += FENCE.sub("", next(part for part in sections if part.startswith("build\n")))
    options = [o for o in cli.commands[name].params if isinstance(o, click.Option)]
    names = [max(option.opts, key=len) for option in options]
    assert [option for option in names if f"`{option}" not in prose] == []


def test_every_object_has_its_table() -> None:
    shown = [
        match
        for page in ("docs/servicedefinition.md", "docs/platform.md")
        for match in re.findall(r"<!-- render\.docs fields (\w+) -->", text_of(page))
    ]
    assert set(docs.definitions()) == set(shown)


def test_readme_shows_a_real_error() -> None:
    text = text_of("README.md")
    project = next(p for p in projects("README.md") if "verison" in p.service)
    with project.entered():
        printed = docs.printed(["build"])
    assert printed.startswith("error[R101]")
    assert f"```text\n{printed}```\n" in text


def projects(page: str) -> list[docs.Project]:
    """Return the project of each service example of a page."""
    text = text_of(page)
    ends = [m.end() for m in FENCE.finditer(text) if m["info"].startswith(("yaml service", "yaml broken"))]
    return [docs.project(text[:end]) for end in ends]


@pytest.mark.parametrize(("number", "project"), list(enumerate(projects("docs/cookbook.md"))))
def test_cookbook_recipe_compiles_without_a_word(number: int, project: docs.Project) -> None:  # noqa: ARG001
    made = build_of(project)
    assert made.diagnostics == []
    is_rendered = any(re.match(r"(apps|configs)/(?!sources/)[^/]+/", path) for path in made.files)
    assert is_rendered == ("enabled: false" not in project.service)


def recipes_with_output() -> list[tuple[docs.Project, str]]:
    """Return each service example of the cookbook that a plain YAML block follows, with that block."""
    text = COOKBOOK.read_text(encoding="utf-8")
    return [
        (docs.project(text[: first.end()]), second["text"])
        for first, second in pairwise(FENCE.finditer(text))
        if first["info"] == "yaml service"
        and second["info"] == "yaml"
        and "##" not in text[first.end() : second.start()]
    ]


@pytest.mark.parametrize(("project", "shown"), recipes_with_output())
def test_cookbook_shows_what_the_recipe_renders_to(project: docs.Project, shown: str) -> None:
    files = build_of(project).files.values()
    indented = [textwrap.indent(shown, " " * width) for width in range(0, 24, 2)]
    assert any(block in text for block in indented for text in files)


@pytest.mark.parametrize("page", [page for page in PAGES if page != "docs/cookbook.md"])
def test_examples_compile_and_broken_ones_do_not(page: str) -> None:
    for project in projects(page):
        is_broken = f"```yaml broken {project.path}\n{project.service}" in text_of(page)
        assert is_broken == build_of(project).failed


def anchors(text: str) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    prose = FENCE.sub("", text)
    titles = re.findall(r"^#+ (.+)$", prose, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", WRITTEN)
def test_every_link_resolves(page: str) -> None:
    prose = FENCE.sub("", text_of(page))
    broken = []
    for target in re.findall(r"(?<!`)\[[^\]`]*(?:`[^`]*`[^\]`]*)*\]\(([^)\s]+)\)", prose):
        if target.startswith("https://"):
            continue
        path, _, anchor = target.partition("#")
        file = (ROOT / page).parent / path if path else ROOT / page
        if not file.exists() or (anchor and anchor not in anchors(file.read_text(encoding="utf-8"))):
            broken.append(target)
    assert broken == []


@pytest.mark.parametrize("page", PAGES)
def test_every_code_named_in_a_page_exists(page: str) -> None:
    from render.codes import CODES

    assert set(re.findall(r"\bR\d{3}\b", text_of(page))) <= set(CODES)


def test_an_excerpt_takes_compact_lists_and_their_comments() -> None:
    text = "spec:\n  a:\n  # c\n  - b: 1\n    c: 2\n  d: 3\nkind: X\n"
    assert docs.excerpt(text, "spec.a") == "a:\n# c\n- b: 1\n  c: 2\n"
    assert docs.excerpt(text, "spec.d") == "d: 3\n"


def test_a_block_that_asks_for_nothing_real_is_refused() -> None:
    for what in ("wishes", "fields Wish", "output apps/x/helmrelease.yaml"):
        with pytest.raises(docs.DocsError):
            docs.refresh(f"<!-- render.docs {what} -->\n<!-- end -->\n")


def test_output_page_names_the_limit_of_one_kustomization() -> None:
    from render.plan.cluster import MANY_SERVICES

    assert f"up to about {MANY_SERVICES} services" in text_of("docs/output.md")


@pytest.mark.parametrize("flux", ["2.7", "2.8.5", "2.8.6", "2.9"])
def test_images_page_tells_which_flux_rewrites_hooks(flux: str) -> None:
    from render.flux.versions import FluxVersion, hooks

    rows = {"2.7": "up to 2.7", "2.8.5": "2.8.0 to 2.8.5", "2.8.6": "2.8.6 and later 2.8", "2.9": "2.9"}
    told = {
        "nohooks": "keep their images",
        "combined": "are rewritten, in one pass with the rest",
        "separate-available": "`postRenderStrategy` decides",
    }
    assert f"| {rows[flux]} | {told[hooks(FluxVersion.parse(flux))]} |" in text_of("docs/images.md")
