"""Pages with marked blocks in, the same pages with the blocks as the program makes them out.

The pages are written by hand; what stands between `<!-- render.docs WHAT -->` and `<!-- end -->` is not. A block that
shows output is made from the last service (and platform) example above it, so that no example can be wrong.
`python -m render.docs` rewrites the pages of the repository.
"""

from __future__ import annotations

import contextlib
import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from render.patterns import lazy
from render.structs import struct

ROOT = Path(__file__).resolve().parent.parent
PLATFORM = "platform.yaml"
ERRORS = "docs/errors.md"
_BLOCK = lazy(r"(?P<head><!-- render\.docs (?P<what>[^\n]+) -->\n)(?P<body>.*?)(?P<tail><!-- end -->)", re.DOTALL)
_EXAMPLE = lazy(
    r"^```yaml (?P<kind>service|broken|platform)(?: (?P<path>\S+))?\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE
)


class DocsError(ValueError):
    """A block that asks for something that is not there."""


@struct(frozen=True)
class Project:
    """A catalog of one file and a platform file, as an example shows them."""

    path: str
    """Of the catalog file."""
    service: str
    platform: str

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """Make the project the working directory for a while."""
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            self.write()
            yield

    def write(self) -> None:
        """Write the two files into the working directory."""
        for path, text in ((self.path, self.service), (PLATFORM, self.platform)):
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).write_text(text, encoding="utf-8")


def pages() -> list[Path]:
    """Return the pages that may hold blocks."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def current(page: Path) -> str:
    """Return the text that a page should have; raise DocsError for a block that cannot be made."""
    if page == ROOT / ERRORS:
        from render.codes import document

        return document()
    return refresh(page.read_text(encoding="utf-8"))


def refresh(text: str) -> str:
    """Return a page's text with every block made anew."""

    def make(match: re.Match[str]) -> str:
        name, *arguments = match["what"].split()
        if name not in _MAKERS:
            raise DocsError(f"there is no block `{name}`")
        body = _MAKERS[name](arguments, text[: match.start()])
        return f"{match['head']}{body.rstrip()}\n{match['tail']}"

    return _BLOCK.sub(make, text)


def examples(text: str) -> list[tuple[str, str | None, str]]:
    """Return kind, path (if it says one) and text of the examples of a page."""
    return [(match["kind"], match["path"], match["text"]) for match in _EXAMPLE.finditer(text)]


def project(above: str, back: int = 1) -> Project:
    """Return the project that the last examples of a text describe; `back` takes an earlier service."""
    found = examples(above)
    services = [(path, text) for kind, path, text in found if kind != "platform"]
    platforms = [text for kind, _, text in found if kind == "platform"]
    if len(services) < back:
        raise DocsError("there is no service example above the block")
    path, text = services[-back]
    name = re.search(r"^name: (\S+)", text, re.MULTILINE)
    if path is None and name is None:
        raise DocsError("the example has no name")
    platform = platforms[-1] if platforms else (ROOT / PLATFORM).read_text(encoding="utf-8")
    return Project(path or f"catalog/{name[1]}.yaml" if name else str(path), text, platform)


def rendered(made: Project) -> Mapping[str, str]:
    """Return the files of a project; raise DocsError if there is anything to complain of but warnings."""
    from render.build import build
    from render.report import render_report

    with made.entered():
        result = build(Path("catalog"), Path(PLATFORM))
    if result.failed:
        raise DocsError(render_report(result.diagnostics, "full"))
    return result.files


def fenced(text: str, language: str) -> str:
    """Return a fenced block."""
    return f"```{language}\n{text.rstrip()}\n```\n"


def excerpt(document: str, path: str) -> str:
    """Return the lines of a key of a rendered document, with the key, moved to the left margin."""
    lines = document.splitlines()
    indent = 0
    for number, key in enumerate(path.split(".")):
        indent = 2 * number
        starts = [i for i, line in enumerate(lines) if line.startswith(f"{' ' * indent}{key}:")]
        if not starts:
            raise DocsError(f"there is no `{path}` in the document")
        lines = lines[starts[0] :]
        lines = lines[: 1 + next((i for i, line in enumerate(lines[1:]) if not _inside(line, indent)), len(lines))]
    return "".join(f"{line[indent:]}\n" for line in lines)


def _inside(line: str, indent: int) -> bool:
    """Say whether a line belongs to the key above it; items and their comments stand as far left as the key."""
    own = len(line) - len(line.lstrip(" "))
    return own > indent or (own == indent and line[own : own + 2] in ("- ", "# "))


def _output(arguments: list[str], above: str) -> str:
    """`output FILE [KIND] [PATH…]`: a rendered file, or a document, or some of its keys."""
    path, *rest = arguments
    text = rendered(project(above)).get(path)
    if text is None:
        raise DocsError(f"the example renders no file {path}")
    if rest and rest[0][0].isupper():
        kind = rest.pop(0)
        found = [one for one in text.split("\n", 1)[1].split("---\n") if f"\nkind: {kind}\n" in one]
        if not found:
            raise DocsError(f"{path} holds no {kind}")
        text = found[0]
    return fenced("".join(excerpt(text, key) for key in rest) if rest else text, "yaml")


def printed(arguments: list[str]) -> str:
    """Return what a command prints, both streams in order."""
    from click.testing import CliRunner

    from render.cli import cli

    result = CliRunner(env={"NO_COLOR": "1", "COLUMNS": "80"}).invoke(cli, arguments, prog_name="render")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return str(result.output)


def _run(arguments: list[str], above: str) -> str:
    """`run COMMAND …`: what a command prints in the example's project."""
    with project(above).entered():
        return fenced(printed(arguments), "json" if "json" in arguments else "text")


def _bot(arguments: list[str], above: str) -> str:
    """`bot OLD NEW COMMAND …`: as `run`, in a tree that is built and in which the bot wrote NEW for OLD."""
    return _after_bot(arguments, project(above), project(above))


def _then(arguments: list[str], above: str) -> str:
    """`then OLD NEW COMMAND …`: as `bot`, but the tree is that of the service example before the last."""
    return _after_bot(arguments, project(above, 2), project(above))


def _after_bot(arguments: list[str], before: Project, after: Project) -> str:
    old, new, *command = arguments
    with before.entered():
        printed(["build"])
        for path in Path("apps").rglob("*.yaml"):
            lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
            text = "".join(line.replace(old, new) if '{"$imagepolicy"' in line else line for line in lines)
            path.write_text(text, encoding="utf-8")
        Path(before.path).unlink()
        after.write()
        return fenced(printed(command), "text")


def _help(arguments: list[str], _: str) -> str:
    """`help [COMMAND]`: the help text of a command."""
    return fenced(printed([*arguments, "--help"]), "text")


def _tree(_: list[str], above: str) -> str:
    """`tree`: the paths of the rendered files."""
    return fenced("\n".join(sorted(rendered(project(above)))), "text")


@cache
def definitions() -> dict[str, dict[str, Any]]:
    """Return the JSON Schema of every object that people may write, by the model's name."""
    from render.model import schema

    made: dict[str, dict[str, Any]] = {}
    for kind, name in (("service", "Service"), ("platform", "Platform")):
        whole = json.loads(schema.generate(kind))  # type: ignore[arg-type]
        made |= whole["$defs"]
        made[name] = {key: value for key, value in whole.items() if key != "$defs"}
    return made


def _fields(arguments: list[str], _: str) -> str:
    """`fields MODEL`: a table of the fields of an object."""
    (name,) = arguments
    if name not in definitions():
        raise DocsError(f"there is no object `{name}`")
    found = definitions()[name]
    rows = ["| field | value | default | meaning |", "|---|---|---|---|"]
    for field, described in found["properties"].items():
        default = "required" if field in found.get("required", ()) else _default(described)
        # A field's description is left out where it is that of its object.
        told = described.get("description") or definitions()[_model(described)]["description"]
        meaning = told.replace("|", "\\|")
        rows.append(f"| `{field}` | {_value(described)} | {default} | {meaning} |")
    return "\n".join(rows)


def _model(described: dict[str, Any]) -> str:
    return str(described["$ref"].rpartition("/")[2])


def _default(described: dict[str, Any]) -> str:
    default = described.get("default")
    if default in (None, [], {}) or (isinstance(default, dict)):
        return ""
    return f"`{default}`" if isinstance(default, str) else f"`{json.dumps(default)}`"


def _value(described: dict[str, Any]) -> str:
    """Return in words what a field holds."""
    if "anyOf" in described:
        parts = [_value(one) for one in described["anyOf"] if one.get("type") != "null"]
        return " or ".join(dict.fromkeys(parts))
    if "$ref" in described:
        name = _model(described)
        return f"[{name}](#{name.lower()})"
    if "enum" in described or "const" in described:
        return ", ".join(f"`{value}`" for value in described.get("enum", [described.get("const")]))
    kind = described.get("type")
    if kind == "array":
        return f"list: {_value(described['items'])}"
    if kind == "object":
        inner = described.get("additionalProperties")
        return f"map: {_value(inner)}" if isinstance(inner, dict) else "free mapping"
    if kind == "string":
        return _string(described)
    bounds = [f"{word} {described[key]}" for key, word in (("minimum", "from"), ("maximum", "to")) if key in described]
    return " ".join([str(kind), *bounds])


def _string(described: dict[str, Any]) -> str:
    word = _named_patterns().get(described.get("pattern", ""), "string")
    if word == "name" and described.get("maxLength", 63) < 63:
        return f"name, at most {described['maxLength']} characters"
    return word


@cache
def _named_patterns() -> dict[str, str]:
    from pydantic import TypeAdapter

    from render.model import base

    named = ((base.Duration, "duration"), (base.Label, "name"), (base.ObjectName, "name"))
    found = {TypeAdapter(alias).json_schema()["pattern"]: word for alias, word in named}
    return {**found, base.LABEL_OR_VARIABLE: "name"}


TAGS: tuple[tuple[str, str, str | None], ...] = (
    ("stable", "1.27.3", "1.x"),
    ("stable", "v1.10.3", "1.x"),
    ("stable", "7.4.1-alpine", "7.x"),
    ("stable", "16.6", "16.x"),
    ("stable", "9", ">=9"),
    ("stable", "4.0.11.2680", "4.x"),
    ("stable", "2.9.6-ls261", "2.x"),
    ("prerelease", "v2.0.0-rc.1", "2.x-0"),
    ("prerelease", "1.33.0-beta2", "1.x-0"),
    ("calver", "2024.07.0", ">=2024.7 <2026"),
    ("calver", "24.04", None),
    ("calver", "2024-07-01", None),
    ("build", "main-1432", None),
    ("build", "20240701120000", None),
    ("build", "main-20240701T120000-3f2a1bc", None),
    ("digest", "rolling", None),
)
"""Channel, current tag and range of the rows of the `tags` table."""


def _tags(_: list[str], __: str) -> str:
    """`tags`: what each channel makes of tags as they are found in the wild."""
    from render.flux.derive import derive

    rows = ["| channel | current tag | `range` | `pattern` | `extract` | `policy` |", "|---|---|---|---|---|---|"]
    for channel, tag, range_ in TAGS:
        made = derive(channel, tag, range_)
        policy = f"semver `{made.policy_range}`" if made.policy_kind == "semver" else f"{made.policy_kind} {made.order}"
        cells = [channel, _code(tag), _code(range_), _code(made.pattern), _code(made.extract), policy]
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def _code(text: str | None) -> str:
    escaped = (text or "").replace("|", "\\|")
    return f"`{escaped}`" if escaped else ""


_MAKERS: dict[str, Callable[[list[str], str], str]] = {
    "bot": _bot,
    "fields": _fields,
    "help": _help,
    "output": _output,
    "run": _run,
    "tags": _tags,
    "then": _then,
    "tree": _tree,
}


def main() -> int:
    """Rewrite the pages that are not current, and name them."""
    for page in pages():
        try:
            text = current(page)
        except DocsError as error:
            sys.stderr.write(f"{page.relative_to(ROOT)}: {error}\n")
            return 1
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")
            sys.stderr.write(f"wrote {page.relative_to(ROOT)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
