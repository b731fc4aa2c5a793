"""`${…}` in what is rendered: checked against the variables that Flux's postBuild fills."""

from __future__ import annotations

import re

from render.catalog import Definition
from render.plan import paths
from render.plan.context import Context, Report
from render.yaml.source import Mapping, Node, Scalar, Sequence

# Flux's substitution takes `$$` for a dollar sign, and only the form with braces for a variable.
_FORM = re.compile(r"\$\$|\$\{(?P<body>[^}]*)(?P<close>\}?)")
_VARIABLE = re.compile(r"(?P<name>[_A-Za-z][_A-Za-z0-9]*)(?P<rest>.*)", re.DOTALL)
_OPT_OUT = "kustomize.toolkit.fluxcd.io/substitute"
_NOT_RENDERED = frozenset(("description", "name", "kind", "enabled", "dependsOn"))


def check_variables(context: Context, definition: Definition, report: Report) -> None:
    """Report `${…}` that postBuild would fail on or empty, or escapes that nothing would undo."""
    if "${" not in definition.source.text:
        return
    if (
        definition.service.annotations.get(_OPT_OUT) == "disabled"
        or definition.service.labels.get(_OPT_OUT) == "disabled"
    ):
        return
    declared = context.platform.defaults.substitute
    for key, value in definition.root.entries:
        if key.text in _NOT_RENDERED:
            continue
        if key.text == "extraObjects" and type(value) is Sequence:
            for item in value.items:
                if not _opts_out(item):
                    _walk(item, declared, report, set())
        else:
            _walk(value, declared, report, set())


def _opts_out(node: Node) -> bool:
    for field in ("annotations", "labels"):
        found = paths.find(node, ("metadata", field, _OPT_OUT))
        if type(found) is Scalar and found.text == "disabled":
            return True
    return False


def _walk(node: Node, declared: list[str] | None, report: Report, seen: set[int]) -> None:
    if type(node) is Scalar:
        if "${" in node.text:
            _check(node, declared, report)
        return
    if id(node) in seen:
        return
    seen.add(id(node))
    if type(node) is Sequence:
        for item in node.items:
            _walk(item, declared, report, seen)
    elif type(node) is Mapping:
        for key, value in node.entries:
            if "${" in key.text:
                _check(key, declared, report)
            _walk(value, declared, report, seen)


def _check(node: Scalar, declared: list[str] | None, report: Report) -> None:
    told: set[str] = set()
    position = 0
    while match := _FORM.search(node.text, position):
        position = match.end()
        if match.group() == "$$":
            if declared is None and node.text.startswith("{", position) and "$$" not in told:
                told.add("$$")
                report.warn(
                    "R215",
                    node,
                    "`$${` is written as it is",
                    cause="the platform declares no `defaults.substitute`, so nothing undoes the escape",
                    hint="write `${`, or declare the variables of this tree",
                )
            continue
        if declared is None or match.group() in told:
            continue
        told.add(match.group())
        _check_one(node, match, declared, report)


def _check_one(node: Scalar, match: re.Match[str], declared: list[str], report: Report) -> None:
    body = match["body"]
    shown = report.source.shown(Scalar(match.group(), '"', node.line, node.column))
    found = _VARIABLE.fullmatch(body)
    if not match["close"] or found is None or re.match(r"[.\s-]", found["rest"]):
        report.error(
            "R215",
            node,
            f"`{shown}` is no form that Flux can substitute",
            cause="the tree has postBuild variables, and this would fail the whole Kustomization",
            hint=f"write `$${shown}` if it is meant as text",
        )
        return
    if found["name"] in declared or re.match(r":?[=-]", found["rest"]):
        return
    report.error(
        "R215",
        node,
        f"the variable `{found['name']}` is not declared in `defaults.substitute`",
        cause="Flux 2.9 fails on an undefined variable, and earlier releases put an empty text in its place",
        hint=f"declare it, give a default (`${{{found['name']}:=…}}`), or write `$${shown}` if it is meant as text",
    )
