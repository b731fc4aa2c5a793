"""`${…}` in what is rendered: checked against the variables that Flux's postBuild fills."""

from __future__ import annotations

from render.catalog import Definition, PlatformFile
from render.flux.substitution import SubstitutionError, variables
from render.patterns import lazy
from render.plan import paths
from render.plan.context import Context, Report
from render.yaml.source import Mapping, Node, Scalar, Sequence

# Flux's substitution takes `$$` for a dollar sign, and only the form with braces for a variable.
_ESCAPE = lazy(r"\$\$")
_BRACES = lazy(r"\$\{(\w+)\}")
_OPT_OUT = "kustomize.toolkit.fluxcd.io/substitute"
_NOT_RENDERED = frozenset(("description", "name", "kind", "enabled"))
_OF_PLATFORM = (("charts",), ("registries",), ("imageAutomation",), ("alerts",), ("defaults", "release"))
"""Parts of the platform file that are written into the tree."""


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
    extracts = set() if declared is None else _check_extracts(definition, report)
    for key, value in definition.root.entries:
        if key.text in _NOT_RENDERED:
            continue
        if key.text == "extraObjects" and type(value) is Sequence:
            for item in value.items:
                if not _opts_out(item):
                    _walk(item, declared, report, set())
        else:
            _walk(value, declared, report, set(extracts))


def _check_extracts(definition: Definition, report: Report) -> set[int]:
    """Report groups of `filterTags.extract` in braces, and return the nodes."""
    images = definition.root.get("images")
    owners = (
        [definition.root, *(value for _, value in images.entries)] if type(images) is Mapping else [definition.root]
    )
    told = set()
    for owner in owners:
        node = paths.find(owner, ("update", "filterTags", "extract"))
        if type(node) is Scalar and "${" in node.text:
            told.add(id(node))
            report.error(
                "R215",
                node,
                "`extract` names a group in braces, which postBuild takes for a variable",
                cause="Flux would fill it in, or fail on it, before the policy sees it",
                hint="write `" + _BRACES.sub(r"$\1", node.text) + "`",
            )
    return told


def check_platform_variables(file: PlatformFile, report: Report) -> None:
    """Report the same of what the platform file says in the tree."""
    if "${" not in file.source.text:
        return
    for path in _OF_PLATFORM:
        found = paths.find(file.root, path)
        if found is not None:
            # A template of Go's is carried as it is: what substitution would take is escaped.
            template = paths.find(found, ("messageTemplate",)) if path == ("imageAutomation",) else None
            _walk(found, file.platform.defaults.substitute, report, {id(template)})


def _opts_out(node: Node) -> bool:
    for field in ("annotations", "labels"):
        found = paths.find(node, ("metadata", field, _OPT_OUT))
        if type(found) is Scalar and found.text == "disabled":
            return True
    return False


def _walk(node: Node, declared: list[str] | None, report: Report, seen: set[int]) -> None:
    if id(node) in seen:
        return
    if type(node) is Scalar:
        if "${" in node.text:
            _check(node, declared, report)
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
    if declared is None:
        if any(node.text.startswith("{", match.end()) for match in _ESCAPE.finditer(node.text)):
            report.warn(
                "R215",
                node,
                "`$${` is written as it is",
                cause="the platform declares no `defaults.substitute`, so nothing undoes the escape",
                hint="write `${`, or declare the variables of this tree",
            )
        return
    told: set[str] = set()
    try:
        found = variables(node.text)
    except SubstitutionError as error:
        _no_form(node, node.text[error.position : error.end], str(error), report)
        return
    for variable in found:
        text = node.text[variable.start : variable.end]
        if text in told:
            continue
        told.add(text)
        if not variable.can_be_set:
            _no_form(node, text, f"`{variable.name}` is no name of a variable", report)
        elif variable.name not in declared and not variable.has_default:
            report.error(
                "R215",
                node,
                f"the variable `{variable.name}` is not declared in `defaults.substitute`",
                cause="Flux 2.9 fails on an undefined variable, and earlier releases put an empty text in its place",
                hint=f"declare it, give a default (`${{{variable.name}:=…}}`), or write {_escaped(node, text, report)}"
                " if it is meant as text",
            )


def _no_form(node: Scalar, text: str, reason: str, report: Report) -> None:
    report.error(
        "R215",
        node,
        f"`{_shown(node, text, report)}` is no form that Flux can substitute",
        cause=f"{reason}, and postBuild would fail the whole Kustomization",
        hint=f"write {_escaped(node, text, report)} if it is meant as text",
    )


def _shown(node: Scalar, text: str, report: Report) -> str:
    return report.source.shown(Scalar(text.partition("\n")[0], '"', node.line, node.column))


def _escaped(node: Scalar, text: str, report: Report) -> str:
    return f"`${_shown(node, text, report)}`"
