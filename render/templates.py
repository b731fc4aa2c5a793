"""A template's name and planned values in, the text of one YAML document out.

Templates are Jinja2 and show the shape of one object line by line: a literal `key:` or `key: word`, `key: {{ value }}`,
`{{ mapping }}` alone, whose entries go there, or a statement. Every value passes the emitter at the indentation of its
line, and a key whose value is None is left out with its line. Other uses of `{{ }}` are refused, so a template cannot
make broken YAML.

A template without statements, whose values are plain names, needs no Jinja2 to run: its lines are carried out directly,
with the same result, and a start costs no import and no compilation. The shipped templates are all of that kind.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache

from render.diagnostics import Diagnostic, Location, RenderError
from render.files import StrPath
from render.patterns import lazy
from render.yaml.emit import Emitter, derives_wide
from render.yaml.scalar import quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    from jinja2 import Template

Run: TypeAlias = "Callable[[dict[str, Any], Emitter], str]"

_ENTRY = lazy(r"( *)([A-Za-z][A-Za-z0-9./-]*): \{\{ ([^{}]+) \}\}")
_ALONE = lazy(r"( *)\{\{ ([^{}]+) \}\}")
_LITERAL = lazy(r" *(?:- )?[A-Za-z][A-Za-z0-9./-]*:(?: [A-Za-z][A-Za-z0-9./-]*)?")
_STATEMENT = lazy(r"\s*\{%.*%\}\s*|\s*\{#.*#\}\s*")
_NAME = lazy(r"[A-Za-z_][A-Za-z0-9_]*")
_RULE = "a line must be `key:`, `key: word`, `key: {{ value }}`, `{{ mapping }}` or a statement"


def shipped_folder() -> str:
    """Return the folder of the shipped templates: inside the installed package, or at the top of a checkout."""
    package = os.path.dirname(__file__)
    inside = f"{package}/_templates"
    return inside if os.path.isdir(inside) else f"{os.path.dirname(package)}/templates"


def render(name: str, values: dict[str, Any], folder: StrPath | None = None) -> str:
    """Return the text of a document; raises RenderError for a fault of the template."""
    try:
        run = load(name, os.fspath(folder) if folder is not None else "")
        text = run(values, Emitter())
        # Nothing but a literal block can hold a list that is not compact.
        if "|" in text and "- " in text and derives_wide(text):
            return run(values, Emitter(wide=True))
    except TemplateFaultError as fault:
        raise RenderError(_diagnostic(fault, name)) from fault
    return text


class TemplateFaultError(Exception):
    """What is wrong in a template."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


@cache
def load(name: str, folder: str = "") -> Run:
    """Return what renders a template: each is read and compiled once."""
    place = folder or shipped_folder()
    try:
        with open(f"{place}/{name}.yaml.j2", encoding="utf-8") as file:
            lines = file.read().removesuffix("\n").split("\n")
    except FileNotFoundError:
        raise TemplateFaultError("there is no such template", 0) from None
    steps = _flat(lines)
    return _FlatTemplate(steps) if steps is not None else JinjaTemplate(lines, place)


Step = tuple[str, str, str]
"""Of a flat template: indentation, key (empty for a mapping alone) and name; a literal line has only the first."""


def _flat(lines: list[str]) -> list[Step] | None:
    """Return the steps of a template without statements and expressions; None for any other."""
    steps: list[Step] = []
    for line in lines:
        entry, alone = _ENTRY.fullmatch(line), _ALONE.fullmatch(line)
        if entry and _NAME.fullmatch(entry[3]):
            steps.append((entry[1], entry[2], entry[3]))
        elif alone and _NAME.fullmatch(alone[2]):
            steps.append((alone[1], "", alone[2]))
        elif _LITERAL.fullmatch(line):
            if steps and not steps[-1][2]:
                line = steps.pop()[0] + line  # noqa: PLW2901 - literal lines in a row are one step
            steps.append((line + "\n", "", ""))
        else:
            return None
    return steps


class _FlatTemplate:
    """Carries out the steps of a flat template."""

    def __init__(self, steps: list[Step]) -> None:
        self.steps = steps

    def __call__(self, values: dict[str, Any], emitter: Emitter) -> str:
        out: list[str] = []
        name = ""
        try:
            for indent, key, name in self.steps:
                if not name:
                    out.append(indent)
                elif (value := values[name]) is None:
                    continue
                elif type(value) is str and key and "\n" not in value:
                    # Half of all values: one line of text.
                    out.append(f"{indent}{key}: {quote(value)}\n")
                else:
                    emitter.write(out, indent, key, value)
        except KeyError as error:
            if error.args != (name,):
                raise
            raise TemplateFaultError(f"`{name}` is undefined", 0) from None
        except TypeError as error:
            raise TemplateFaultError(f"`{name}` cannot be written: {error}", 0) from error
        return "".join(out)


def _emit(emitter: Emitter, indent: str, key: str, value: Any, name: str) -> str:
    try:
        return emitter.entry(indent, key, value) if key else emitter.fields(indent, value)
    except TypeError as error:
        raise TemplateFaultError(f"`{name}` cannot be written: {error}", 0) from error


class JinjaTemplate:
    """Runs a template through Jinja2."""

    def __init__(self, lines: list[str], folder: str) -> None:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined, TemplateSyntaxError

        # The output is YAML, which the emitter quotes; HTML escaping has no place in it.
        environment = Environment(
            loader=FileSystemLoader(folder),
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
            autoescape=False,  # noqa: S701
        )
        try:
            self.template: Template = environment.from_string(_calls(lines))
        except TemplateSyntaxError as error:
            raise TemplateFaultError(_sentence(error), error.lineno) from error

    def __call__(self, values: dict[str, Any], emitter: Emitter) -> str:
        """Return the text of a document."""
        from jinja2 import TemplateError, Undefined

        def emit(indent: str, key: str, value: Any) -> str:
            if isinstance(value, Undefined):
                value._fail_with_undefined_error()
            return "" if value is None else _emit(emitter, indent, key, value, key or "mapping")

        try:
            return self.template.render(values, _emit=emit)
        except (TemplateError, TemplateFaultError) as error:
            raise TemplateFaultError(_sentence(error), _line(error)) from error


def _calls(lines: list[str]) -> str:
    """Turn each line with a value into a call of the emitter; the line numbers stay those of the file."""
    out = []
    for number, line in enumerate(lines, 1):
        entry, alone = _ENTRY.fullmatch(line), _ALONE.fullmatch(line)
        if entry:
            out.append(f'{{{{ _emit("{entry[1]}", "{entry[2]}", {entry[3]})\n}}}}')
        elif alone:
            out.append(f'{{{{ _emit("{alone[1]}", "", {alone[2]})\n}}}}')
        elif _LITERAL.fullmatch(line) or _STATEMENT.fullmatch(line):
            out.append(line + "\n")
        else:
            raise TemplateFaultError(_RULE, number)
    return "".join(out)


def _line(error: BaseException) -> int:
    """Return the line of the template in which an error was raised."""
    line = 0
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == "<template>":
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def _sentence(error: Exception) -> str:
    return str(error).split("\n", 1)[0].replace("'", "`").rstrip(".")


def _diagnostic(fault: TemplateFaultError, name: str) -> Diagnostic:
    return Diagnostic(
        Location(f"templates/{name}.yaml.j2", fault.line),
        "R301",
        str(fault),
        cause="the template does not fit what the plan gives it",
        hint="use one of the names that other lines of the template use, or correct the line",
    )
