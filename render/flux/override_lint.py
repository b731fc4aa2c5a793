"""kustomize `images` entries as a person wrote them in, what is wrong with them out.

Not all that is found fails in a cluster: much of it has no effect there, or an effect that nobody means.
"""

from __future__ import annotations

import re

from render.flux.image import ImageError, Reference, check_digest, check_tag
from render.flux.override_sites import PLAIN_DATA
from render.flux.overrides import LITERAL_NAME, OverrideFailure, compile_name, shown
from render.structs import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

_FIELDS = ("name", "newName", "newTag", "digest")
_ALIASES = {"tag": "newTag", "image": "name", "newimage": "newName", "repository": "name", "newrepository": "newName"}
"""Words people use for a field that no measure of likeness finds."""


@struct(frozen=True)
class Finding:
    """One fault of a table as a person wrote it."""

    index: int
    """Of the entry; -1 where the table itself is meant."""
    field: str
    """The key at fault, as written; empty where the whole entry is."""
    message: str
    cause: str = ""
    hint: str = ""
    severity: Literal["error", "warning"] = "error"
    related: int | None = None
    """Index of another entry that the message is about."""
    at_key: bool = False
    """Whether the key itself is at fault, not its value."""


def lint(entries: object) -> list[Finding]:
    """Check a table as read from YAML, before it is taken for `Entry` values; never raises.

    A field that YAML reads as a string is a `str`; any other value may carry its source text in an attribute `source`,
    by which it is then quoted. Findings come in the order of the entries.
    """
    if not isinstance(entries, list | tuple):
        message = f"the entries must be a list, not {_noun(entries)}"
        return [Finding(-1, "", message, hint="write one `- name: …` for each image name")]
    findings: list[Finding] = []
    first: dict[str, int] = {}
    for index, raw in enumerate(entries):
        findings += _lint_entry(index, raw)
        name = raw.get("name") if isinstance(raw, dict) else None
        if not isinstance(name, str) or not name:
            continue
        if name in first:
            findings.append(
                Finding(
                    index,
                    "name",
                    f"`name` must be unique: `{shown(name)}` has an entry already",
                    cause="kustomize runs both: after a rename the later one matches nothing, else the last tag wins",
                    hint="merge the two entries",
                    related=first[name],
                )
            )
        first.setdefault(name, index)
    return findings


def _lint_entry(index: int, raw: object) -> list[Finding]:
    """Check one entry by itself."""
    if not isinstance(raw, dict):
        return [
            Finding(index, "", f"an entry must be a map, not {_noun(raw)}", hint="write `name: …` and `newName: …`")
        ]
    findings: list[Finding] = []
    guessed: set[str] = set()
    for key in raw:
        if key not in _FIELDS:
            closest = _closest(key)
            guessed.update(closest)
            cause = "kustomize `images` entries have `name`, `newName`, `newTag`, `digest`"
            hint = f"rename it to `{closest[0]}`" if closest else "delete it"
            findings.append(Finding(index, str(key), f"unknown field `{shown(str(key))}`", cause, hint, at_key=True))
    checks = {"name": _lint_name, "newName": _lint_new_name, "newTag": _lint_new_tag, "digest": _lint_digest}
    for field, check in checks.items():
        if field not in raw:
            continue
        value = raw[field]
        findings += check(index, value) if isinstance(value, str) else [_lint_type(index, field, value)]
    if "name" not in raw and "name" not in guessed:
        findings.append(Finding(index, "", "`name` is missing", hint="add the name of the image to override"))
    given = [field for field in _FIELDS[1:] if field in raw]
    if not given and not guessed.intersection(_FIELDS[1:]):
        cause = "an entry with a `name` alone has no effect"
        hint = "add `newName`, `newTag` or `digest`"
        findings.append(Finding(index, "", "an entry must change something", cause, hint))
    if given == ["newName"] and isinstance(raw["newName"], str) and raw["newName"] == raw.get("name"):
        message = "`newName` must differ from `name` where nothing else changes"
        findings.append(Finding(index, "newName", message, "the entry has no effect", "delete the entry"))
    return findings


def _lint_type(index: int, field: str, value: object) -> Finding:
    """Give the finding of a field that is no string."""
    source = _source(value)
    message = f"`{field}` must be a string, not {_noun(value)}"
    if isinstance(value, dict | list | tuple) or value is None:
        return Finding(index, field, message, hint=f"write a string or delete `{field}`")
    import json

    quoted = json.dumps(source, ensure_ascii=False)
    cause = "Flux types the field as a string; the API server refuses the release"
    return Finding(index, field, message, cause, f"quote it: `{field}: {shown(quoted)}`")


def _lint_name(index: int, name: str) -> list[Finding]:
    """Check what an entry matches."""

    def finding(message: str, cause: str = "", hint: str = "") -> list[Finding]:
        return [Finding(index, "name", message, cause, hint)]

    if not name:
        cause = "an empty name matches images without a name, such as `:tag`, and nothing else"
        return finding("`name` must not be empty", cause, "write the image's name as it stands in the manifests")
    try:
        reference = Reference.parse(name)
    except ImageError as error:
        message = f"`name` must be the name of an image, not `{shown(name)}`"
        bare = name.replace("[.]", ".").replace("\\.", ".")
        hint = f"write `name: {bare}`" if bare != name and _is_name(bare) else error.hint
        if not LITERAL_NAME.match(name):
            try:
                compile_name(name, unreleased=False)
            except OverrideFailure as failure:
                return finding(message, failure.reason, hint or "write one entry for each name")
            cause = f"kustomize reads it as a regular expression, and {error}"
            return finding(message, cause, hint or "write one entry for each name")
        return finding(message, str(error), hint)
    if reference.tag is None and reference.digest is None:
        return []
    part = "tag" if reference.digest is None else "digest"
    cause = f"kustomize would match only images with this very {part}; a bare name matches any tag and digest"
    return finding(f"`name` must not hold a {part}: `{shown(name)}`", cause, f"write `name: {reference.name}`")


def _is_name(text: str) -> bool:
    """Tell whether a text is a name without tag and digest."""
    try:
        reference = Reference.parse(text)
    except ImageError:
        return False
    return reference.name == text


def _lint_new_name(index: int, name: str) -> list[Finding]:
    """Check the name that an entry writes."""
    if not name:
        return [_empty(index, "newName")]
    try:
        reference = Reference.parse(name)
    except ImageError as error:
        message = f"`newName` must be the name of an image, not `{shown(name)}`"
        stripped = re.sub(r"^[A-Za-z][A-Za-z0-9+.-]*://", "", name).strip().strip("/")
        hint = f"write `newName: {stripped}`" if stripped != name and _is_name(stripped) else error.hint
        return [Finding(index, "newName", message, f"kustomize writes it as it is, and {error}", hint)]
    if reference.tag is None and reference.digest is None:
        return []
    part = "tag" if reference.digest is None else "digest"
    cause = f"kustomize appends the image's own tag or digest to it: `{name}:1.0`"
    parts = [f"newName: {reference.name}"]
    parts += [f'newTag: "{reference.tag}"'] if reference.tag else []
    parts += [f"digest: {reference.digest}"] if reference.digest else []
    hint = "write " + ", ".join(f"`{text}`" for text in parts)
    return [Finding(index, "newName", f"`newName` must not hold a {part}: `{shown(name)}`", cause, hint)]


def _lint_new_tag(index: int, tag: str) -> list[Finding]:
    """Check the tag that an entry writes."""
    if not tag:
        return [_empty(index, "newTag")]
    head, at, digest = tag.partition("@")
    try:
        check_tag(tag)
    except ImageError as error:
        hint = error.hint
        if at:
            hint = f'write `newTag: "{shown(head)}"` and `digest: {shown(digest)}`'
        elif tag.strip().startswith(":"):
            hint = "delete the `:`"
        message = f"`newTag` must be a tag, not `{shown(tag)}`"
        return [Finding(index, "newTag", message, f"kustomize writes it as it is, and {error}", hint)]
    return []


def _lint_digest(index: int, digest: str) -> list[Finding]:
    """Check the digest that an entry writes."""
    if not digest:
        return [_empty(index, "digest")]
    try:
        check_digest(digest)
    except ImageError as error:
        hint = "delete the `@`" if digest.startswith("@") else error.hint
        message = f"`digest` must be a digest, not `{shown(digest)}`"
        return [Finding(index, "digest", message, f"kustomize writes it as it is, and {error}", hint)]
    if digest.startswith("sha256:"):
        return []
    message = "`digest` is no `sha256` digest, the only kind that kustomize matches"
    cause = "a later entry, or another run of the table, leaves the image alone"
    return [Finding(index, "digest", message, cause, "use the image's `sha256` digest", severity="warning")]


def _empty(index: int, field: str) -> Finding:
    """Give the finding of an empty string, which kustomize takes for an absent field."""
    message = f"`{field}` must not be empty"
    return Finding(index, field, message, "kustomize takes an empty string for an absent field", f"delete `{field}`")


def _closest(key: object) -> list[str]:
    """Give the field that a person may have meant, or none."""
    from difflib import get_close_matches

    word = str(key).replace("_", "").replace("-", "").lower()
    if word in _ALIASES:
        return [_ALIASES[word]]
    lower = {field.lower(): field for field in _FIELDS}
    return [lower[match] for match in get_close_matches(word, lower, n=1)]


def _source(value: object) -> str:
    """Give the text that stands in the file for a value that is no string, as well as it is known."""
    source = getattr(value, "source", None)
    if isinstance(source, str):
        return source
    try:
        return PLAIN_DATA.text(value)
    except ValueError:
        return "…"


def _noun(value: object) -> str:
    """Name a value in a message."""
    if isinstance(value, dict):
        return "a map"
    if isinstance(value, list | tuple):
        return "a list"
    source = _source(value)
    if isinstance(value, str):
        noun = "the string"
    elif source in {"", "~", "null", "Null", "NULL"}:
        return "null"
    elif source[0].isdigit() or source[0] in "+-.":
        noun = "the number"
    else:
        noun = "the value"
    return f"{noun} `{shown(source)}`"
