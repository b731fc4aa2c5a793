"""A `messageTemplate` in, what image-automation-controller would stumble over out.

Source: image-automation-controller 1.2: the data that it gives to the template (`internal/source/source.go`,
`internal/update/result.go`), and the functions, which are the hermetic ones of Sprig 3.3.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from render.flux.gotemplate import Action, Operand, Pipeline, Template, TemplateError, parse

_SPRIG = """
abbrev abbrevboth add add1 add1f addf adler32sum ago all any append atoi b32dec b32enc b64dec b64enc base bcrypt
biggest buildCustomCert camelcase cat ceil chunk clean coalesce compact concat contains decryptAES deepCopy deepEqual
default derivePassword dict dig dir div divf duration durationRound empty encryptAES ext fail first float64 floor
fromJson genCA genCAWithKey genPrivateKey genSelfSignedCert genSelfSignedCertWithKey genSignedCert
genSignedCertWithKey get has hasKey hasPrefix hasSuffix hello htpasswd indent initial initials int int64 isAbs join
kebabcase keys kindIs kindOf last list lower max maxf merge mergeOverwrite min minf mod mul mulf mustAppend mustChunk
mustCompact mustDateModify mustDeepCopy mustFirst mustFromJson mustHas mustInitial mustLast mustMerge
mustMergeOverwrite mustPrepend mustPush mustRegexFind mustRegexFindAll mustRegexMatch mustRegexReplaceAll
mustRegexReplaceAllLiteral mustRegexSplit mustRest mustReverse mustSlice mustToDate mustToJson mustToPrettyJson
mustToRawJson mustUniq mustWithout must_date_modify nindent nospace omit osBase osClean osDir osExt osIsAbs pick pluck
plural prepend push quote randInt regexFind regexFindAll regexMatch regexQuoteMeta regexReplaceAll
regexReplaceAllLiteral regexSplit repeat replace rest reverse round semver semverCompare seq set sha1sum sha256sum
sha512sum shuffle slice snakecase sortAlpha split splitList splitn squote sub subf substr swapcase ternary title
toDate toDecimal toJson toPrettyJson toRawJson toString toStrings trim trimAll trimPrefix trimSuffix trimall trunc
tuple typeIs typeIsLike typeOf uniq unixEpoch unset until untilStep untitle upper urlJoin urlParse values without wrap
wrapWith
"""
SPRIG = frozenset(_SPRIG.split())
"""Functions of Sprig that give the same result every time; Flux takes no others."""

NAMES = "`.Changed.Changes`, `.Changed.Objects` or `.Changed.FileChanges`"
_REMOVED = {("data", "Updated"): ".Updated", ("result", "ImageResult"): ".Changed.ImageResult"}

# Of what is given to the template. A type is a word, `[type]` for a list, `{type}` for a map by text, `{object:type}`
# for a map by object; an empty text is one that nothing is known of.
_FIELDS: dict[str, dict[str, str]] = {
    "data": {"AutomationObject": "name", "Changed": "result", "Values": "{text}"},
    "name": {"Namespace": "text", "Name": "text", "String": "text", "MarshalLog": ""},
    "result": {"FileChanges": "{{object:[change]}}", "Changes": "[change]", "Objects": "{object:[change]}"},
    "object": {
        **dict.fromkeys(("APIVersion", "Kind", "Name", "Namespace"), "text"),
        **dict.fromkeys(("ResourceIdentifier", "TypeMeta", "NameMeta"), ""),
        **dict.fromkeys(("GetAPIVersion", "GetKind", "GetName", "GetNamespace"), ""),
    },
    "change": {"OldValue": "text", "NewValue": "text", "Setter": "text"},
    "text": {},
}
_SHOWN = {
    "data": "the data of the template",
    "name": "`.AutomationObject`",
    "result": "`.Changed`",
    "object": "an object",
    "change": "a change",
    "text": "a text",
}
_STRUCTURES = ("data", "name", "result", "object", "change")


class Fault(NamedTuple):
    """What is wrong in a template."""

    message: str
    """Goes on after the name of the template."""
    line: int
    hint: str
    is_removed: bool = False
    """Whether it is a field that older releases of Flux had."""


def faults(text: str) -> list[Fault]:
    """Return what Flux would stumble over in a template: its syntax, or else what it asks for that is not there."""
    try:
        template = parse(text, SPRIG)
    except TemplateError as error:
        hint = "correct the template: it has the syntax of Go's text/template"
        if str(error).startswith("there is no function"):
            hint = "use one of Go's or of Sprig's; those that tell time, chance or the environment are left out"
        return [Fault(str(error), error.line, hint)]
    return _Checker(template).run()


class _Checker:
    """Follows the types of the data through a template."""

    def __init__(self, template: Template) -> None:
        self.template = template
        self.found: dict[Fault, None] = {}
        self.checked: set[tuple[str, str]] = set()
        """Named templates, with the types that they were checked for."""
        self.assigned = {
            name for actions in (template.actions, *template.defined.values()) for name in _assigned(actions)
        }
        """Variables that are set anew somewhere, so that their types are not followed."""

    def run(self) -> list[Fault]:
        self._actions(self.template.actions, "data", {"$": "data"})
        return sorted(self.found, key=lambda fault: (fault.line, fault.message))

    def _actions(self, actions: list[Action], dot: str, known: dict[str, str]) -> None:
        """Check actions; `known` holds the types of the variables, and is added to."""
        for action in actions:
            inner = dict(known)
            value = self._pipeline(action.pipeline, dot, known if action.kind == "value" else inner)
            if action.kind == "range" and action.pipeline is not None:
                self._range(action, action.pipeline, value, dot, inner)
            elif action.kind == "template":
                self._call(action, value if action.pipeline is not None else "")
            else:
                self._actions(action.body, value if action.kind == "with" else dot, dict(inner))
                self._actions(action.other, dot, dict(inner))

    def _range(self, action: Action, pipeline: Pipeline, value: str, dot: str, known: dict[str, str]) -> None:
        if value in _STRUCTURES:
            self._fault(f"a range cannot go over {_SHOWN[value]}", action.line, f"go over {NAMES}")
        key, item = _parts(value)
        for name, kind in zip(reversed(pipeline.declared), (item, key), strict=False):
            self._declare(known, name, kind)
        self._actions(action.body, item, dict(known))
        self._actions(action.other, dot, dict(known))

    def _declare(self, known: dict[str, str], name: str, kind: str) -> None:
        known[name] = "" if name in self.assigned else kind

    def _call(self, action: Action, value: str) -> None:
        body = self.template.defined.get(action.name)
        if body is None:
            self._fault(f"there is no template `{action.name}`", action.line, "define it, or correct the name")
        elif (action.name, value) not in self.checked:
            self.checked.add((action.name, value))
            self._actions(body, value, {"$": value})

    def _pipeline(self, pipeline: Pipeline | None, dot: str, known: dict[str, str]) -> str:
        """Check a pipeline and return the type of its result; its variables get that type."""
        if pipeline is None:
            return ""
        value = ""
        for command in pipeline.commands:
            types = [self._operand(operand, dot, known) for operand in command]
            is_alone = len(types) == 1 and len(pipeline.commands) == 1
            value = types[0] if is_alone else ""
        for name in pipeline.declared:
            self._declare(known, name, value)
        return value

    def _operand(self, operand: Operand, dot: str, known: dict[str, str]) -> str:
        match operand.kind:
            case "field" | "dot":
                kind = dot
            case "variable":
                kind = known.get(operand.name, "")
            case "pipeline":
                kind = self._pipeline(operand.inner, dot, dict(known))
            case _:
                kind = ""
        for name in operand.fields:
            kind = self._field(kind, name, operand.line)
        return kind

    def _field(self, kind: str, name: str, line: int) -> str:
        if kind.startswith("{object:") or not kind:
            return ""
        if kind.startswith("{"):
            return kind[1:-1]
        if kind.startswith("["):
            self._fault(f"`.{name}` is no field of a list", line, "go over the list with `range`")
            return ""
        if name in _FIELDS[kind]:
            return _FIELDS[kind][name]
        removed = _REMOVED.get((kind, name))
        if removed is not None:
            self._fault(f"uses `{removed}`, which Flux has removed", line, f"use {NAMES}", is_removed=True)
            return ""
        there = ", ".join(f"`.{one}`" for one, of in _FIELDS[kind].items() if of)
        self._fault(
            f"`.{name}` is no field of {_SHOWN[kind]}", line, f"use one of {there}" if there else f"remove `.{name}`"
        )
        return ""

    def _fault(self, message: str, line: int, hint: str, *, is_removed: bool = False) -> None:
        self.found[Fault(message, line, hint, is_removed)] = None


def _parts(kind: str) -> tuple[str, str]:
    """Return the types of keys and items of what a range goes over."""
    if kind.startswith("{object:"):
        return "object", kind.removeprefix("{object:")[:-1]
    if kind.startswith("{"):
        return "text", kind[1:-1]
    return ("", kind[1:-1]) if kind.startswith("[") else ("", "")


def _assigned(actions: list[Action]) -> Iterator[str]:
    for action in actions:
        pipeline = action.pipeline
        if pipeline is not None and pipeline.assigns:
            yield from pipeline.declared
        yield from _assigned(action.body)
        yield from _assigned(action.other)
