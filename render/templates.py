"""A template's name and planned values in, the text of one YAML document out.

A template shows the shape of one object, line by line: a literal `key:` or `key: word`, `key: {{ value }}`, or
`{{ mapping }}` alone, whose entries go there. Every value passes the emitter at the indentation of its line, and a key
whose value is None is left out with its line. Other uses of `{{ }}` are refused, so a template cannot make broken YAML.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import (
    Environment,
    FileSystemLoader,
    StrictUndefined,
    Template,
    TemplateError,
    TemplateSyntaxError,
    Undefined,
)
from jinja2.ext import Extension

from render.diagnostics import Diagnostic, Location, RenderError
from render.yaml.emit import Emitter, Value, derives_wide

_ENTRY = re.compile(r"( *)([A-Za-z][A-Za-z0-9./-]*): \{\{ ([^{}]+) \}\}")
_ALONE = re.compile(r"( *)\{\{ ([^{}]+) \}\}")
_LITERAL = re.compile(r" *(?:- )?[A-Za-z][A-Za-z0-9./-]*:(?: [A-Za-z][A-Za-z0-9./-]*)?")
_STATEMENT = re.compile(r"\s*\{%.*%\}\s*|\s*\{#.*#\}\s*")


class _Lines(Extension):
    """Turns each line into calls of the emitter; the line numbers of errors stay those of the file."""

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
        out = []
        for number, line in enumerate(source.removesuffix("\n").split("\n"), 1):
            entry, alone = _ENTRY.fullmatch(line), _ALONE.fullmatch(line)
            if entry:
                out.append(f'{{{{ _entry("{entry[1]}", "{entry[2]}", {entry[3]})\n}}}}')
            elif alone:
                out.append(f'{{{{ _fields("{alone[1]}", {alone[2]})\n}}}}')
            elif _LITERAL.fullmatch(line) or _STATEMENT.fullmatch(line):
                out.append(line + "\n")
            else:
                raise TemplateSyntaxError(
                    "a line must be `key:`, `key: word`, `key: {{ value }}`, `{{ mapping }}` or a statement",
                    number,
                    name,
                    filename,
                )
        return "".join(out)


class _Strict(StrictUndefined):
    """An undefined name is an error wherever it is used."""


def shipped_folder() -> Path:
    """Return the folder of the shipped templates: inside the installed package, or at the top of a checkout."""
    inside = Path(__file__).parent / "_templates"
    return inside if inside.is_dir() else Path(__file__).parent.parent / "templates"


@cache
def environment(folder: Path | None = None) -> Environment:
    """Return the environment of a folder of templates (the shipped ones without one), each compiled once."""
    if folder is None:
        folder = shipped_folder()
    # The output is YAML, which the emitter quotes; HTML escaping has no place in it.
    return Environment(
        loader=FileSystemLoader(folder),
        extensions=[_Lines],
        undefined=_Strict,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701
    )


@cache
def _template(name: str, folder: Path | None) -> Template:
    return environment(folder).get_template(f"{name}.yaml.j2")


def render(name: str, values: dict[str, Any], folder: Path | None = None) -> str:
    """Return the text of a document; raises RenderError for a fault of the template."""
    try:
        template = _template(name, folder)
        text = _render(template, values, Emitter())
        if derives_wide(text):
            return _render(template, values, Emitter(wide=True))
    except (TemplateError, TypeError) as error:
        raise RenderError(_fault(error, name)) from error
    return text


def _render(template: Template, values: dict[str, Any], emitter: Emitter) -> str:
    def entry(indent: str, key: str, value: Value) -> str:
        if isinstance(value, Undefined):
            value._fail_with_undefined_error()
        return emitter.entry(indent, key, value)

    def fields(indent: str, value: Value) -> str:
        if isinstance(value, Undefined):
            value._fail_with_undefined_error()
        return emitter.fields(indent, value)

    return template.render(values, _entry=entry, _fields=fields)


def _fault(error: Exception, name: str) -> Diagnostic:
    """Return the diagnostic of a template's fault, at the line of the template."""
    line = error.lineno if isinstance(error, TemplateSyntaxError) else 0
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename.endswith(".j2"):
            line = trace.tb_lineno
        trace = trace.tb_next
    message = str(error).split("\n", 1)[0].replace("'", "`").rstrip(".")
    return Diagnostic(
        Location(f"templates/{name}.yaml.j2", line),
        "R301",
        message,
        cause="the template does not fit what the plan gives it",
        hint="use one of the names that other lines of the template use, or correct the line",
    )
