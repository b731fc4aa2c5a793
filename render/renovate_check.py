"""A Renovate configuration and texts in, what Renovate would find in them out: its regex managers, and no more.

Only what the configuration here uses is known: the strategy `recursive`, and templates with groups and one `if`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import re2  # type: ignore[import-untyped]

from render.diagnostics import Diagnostic, Location
from render.yaml.source import Node

if TYPE_CHECKING:
    from render.catalog import Definition, PlatformFile

_IF = re.compile(r"\{\{#if (\w+)\}\}(.*?)(?:\{\{else\}\}(.*?))?\{\{/if\}\}")
_GROUP = re.compile(r"\{\{\{(\w+)\}\}\}")


class Dependency(NamedTuple):
    """What Renovate looks up and writes."""

    file: str
    """As Renovate names it: from the repository's top."""
    kind: str
    """`chart` or `image`."""
    datasource: str
    package: str
    value: str | None
    digest: str | None
    registry: str | None = None
    """URL of a Helm repository."""


@dataclass(slots=True)
class Wanted:
    """Dependencies that the configuration must find, with the place of each version."""

    places: dict[Dependency, list[tuple[Definition | PlatformFile, Node | None]]] = field(default_factory=dict)

    def add(self, found: Dependency, file: Definition | PlatformFile, node: Node | None) -> None:
        """Add one."""
        self.places.setdefault(found, []).append((file, node))


def check(
    config: dict[str, Any], texts: Mapping[str, str], wanted: Wanted
) -> tuple[list[Dependency], list[Diagnostic]]:
    """Return what a configuration finds, and warnings about what it does not find, or should not."""
    found = sorted(extract(config, texts), key=str)
    faults = []
    counted = Counter(found)
    for dependency, places in wanted.places.items():
        for file, node in places[counted[dependency] :]:
            what = f"{dependency.package}:{dependency.value or dependency.digest}"
            faults.append(
                file.source.fault(
                    "R804",
                    node,
                    f"the {dependency.kind} `{what}` stands where Renovate does not see it",
                    cause="its regular expressions know block style and one-line braces, not every form of YAML",
                    hint="write one key a line, without anchors, merge keys and quoted keys",
                    severity="warning",
                )
            )
    for dependency, number in counted.items():
        if number > len(wanted.places.get(dependency, ())):
            what = f"{dependency.package}:{dependency.value or dependency.digest}"
            faults.append(
                Diagnostic(
                    Location(dependency.file),
                    "R804",
                    f"`{what}` would be taken for a version by Renovate",
                    "warning",
                    "something in the file looks like one",
                    "write the service in block style, one key a line",
                )
            )
    return found, faults


def extract(config: dict[str, Any], texts: Mapping[str, str]) -> Iterator[Dependency]:
    """Yield the dependencies that a configuration finds in files, given by their paths."""
    for manager in config["customManagers"]:
        steps = [_compiled(step) for step in manager["matchStrings"]]
        patterns = [_compiled(pattern[1:-1]) for pattern in manager["managerFilePatterns"]]
        for path, text in texts.items():
            if any(pattern.search(path) for pattern in patterns):
                for groups in _narrowed(steps, text, {}):
                    made = _dependency(path, manager, groups)
                    if made is not None:
                        yield made


@cache
def _compiled(pattern: str) -> Any:
    return re2.compile(pattern)


def _narrowed(steps: list[Any], text: str, groups: dict[str, str | None]) -> Iterator[dict[str, str | None]]:
    """Yield the groups of each way through the steps."""
    if not steps:
        yield groups
        return
    for match in steps[0].finditer(text):
        if not match.group():
            raise ValueError(f"a step matches nothing, which Renovate repeats: {steps[0].pattern}")
        yield from _narrowed(steps[1:], match.group(), {**groups, **match.groupdict()})


def _dependency(path: str, manager: dict[str, Any], groups: dict[str, str | None]) -> Dependency | None:
    """Return what Renovate makes of groups; None where it passes them over."""
    fields = {
        name: _filled(manager[f"{name}Template"], groups) if f"{name}Template" in manager else groups.get(name)
        for name in ("depName", "packageName", "currentValue", "currentDigest", "datasource", "registryUrl", "depType")
    }
    package = fields["packageName"] or fields["depName"]
    value, digest = fields["currentValue"] or None, fields["currentDigest"] or None
    if not package or not (value or digest):
        return None
    kind, source = str(fields["depType"]), str(fields["datasource"])
    return Dependency(path, kind, source, package, value, digest, fields["registryUrl"] or None)


def _filled(template: str, groups: dict[str, str | None]) -> str:
    """Return a template with its groups."""
    chosen = _IF.sub(lambda match: match[2] if groups.get(match[1]) else match[3] or "", template)
    return _GROUP.sub(lambda match: groups.get(match[1]) or "", chosen)
