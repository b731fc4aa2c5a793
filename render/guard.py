"""Committed and new text of changed files in, what the change would do to running releases out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from render.diagnostics import Diagnostic, Location
from render.plan.release import TABLE_COMMENT

_TABLE = re.compile(rf"^ *# {re.escape(TABLE_COMMENT)}\n(?P<table>(?: .*\n)*)", re.MULTILINE)
_FIELDS = {
    "name": re.compile(r"^  name: (.+)$", re.MULTILINE),
    "namespace": re.compile(r"^  namespace: (.+)$", re.MULTILINE),
    "spec.releaseName": re.compile(r"^  releaseName: (.+)$", re.MULTILINE),
    "spec.targetNamespace": re.compile(r"^  targetNamespace: (.+)$", re.MULTILINE),
    "spec.storageNamespace": re.compile(r"^  storageNamespace: (.+)$", re.MULTILINE),
    "the chart's name": re.compile(r"^      chart: (.+)$", re.MULTILINE),
}
"""What makes a release the same release, as `render` writes it: fields above `values` in fixed places."""
_OCI_URL = re.compile(r"^  url: \"?oci://\S*?/(?P<chart>[^/\"\s]+)\"?$", re.MULTILINE)
_KIND = re.compile(r"^kind: (Deployment|StatefulSet)$", re.MULTILINE)


def service_of(path: str) -> str:
    """Return the service that a path below the root belongs to."""
    return path.split("/")[1]


def carries_table(text: str) -> bool:
    """Whether a release carries the platform's table."""
    return _TABLE.search(text) is not None


def table_upgrades(committed: Mapping[str, str], files: Mapping[str, str], changed: Iterable[str]) -> int:
    """Count the releases that a changed table upgrades: any edit of the post-renderers does."""
    return sum(_table(committed[path]) != _table(files[path]) for path in changed if path.endswith("/helmrelease.yaml"))


def _table(text: str) -> str:
    match = _TABLE.search(text)
    return match["table"] if match else ""


def reinstalls(
    committed: Mapping[str, str], files: Mapping[str, str], changed: Iterable[str], allowed: frozenset[str]
) -> list[tuple[str, Diagnostic]]:
    """Return, by path, the changes that would uninstall a release or workload and install another, unless allowed."""
    found = []
    for path in changed:
        if not path.startswith("apps/") or service_of(path) in allowed:
            continue
        before, after = committed[path], files[path]
        told = ""
        if path.endswith("/helmrelease.yaml"):
            told = _release_change(before, after)
        elif path.endswith("/workload.yaml"):
            told = _difference("the kind", _KIND.search(before), _KIND.search(after))
        elif path.endswith("/source.yaml"):
            told = _difference("the chart's name", _OCI_URL.search(before), _OCI_URL.search(after))
        if told:
            found.append((path, _fault(path, told)))
    return found


def _release_change(before: str, after: str) -> str:
    old, new = before.partition("\n  values:")[0], after.partition("\n  values:")[0]
    for field, pattern in _FIELDS.items():
        told = _difference(f"`{field}`" if " " not in field else field, pattern.search(old), pattern.search(new))
        # A release may change from one kind of chart source to another: its name is then in the source's URL.
        if told and not (field == "the chart's name" and not (pattern.search(old) and pattern.search(new))):
            return told
    return ""


def _difference(field: str, old: re.Match[str] | None, new: re.Match[str] | None) -> str:
    before, after = (match[match.lastindex or 0] if match else "" for match in (old, new))
    if before == after or (field == "the kind" and not (before and after)):
        return ""
    return f"{field} changes from `{before or 'nothing'}` to `{after or 'nothing'}`"


def _fault(path: str, told: str) -> Diagnostic:
    service = service_of(path)
    return Diagnostic(
        Location(path),
        "R511",
        f"`{service}` would be uninstalled and installed again: {told}",
        cause="what the release owns is deleted first, volumes included unless the chart keeps them",
        hint=f"undo the change, or say `--allow-reinstall {service}`",
    )
