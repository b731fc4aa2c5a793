"""A catalog and a platform in, a Renovate configuration for the versions that people write in them out.

The configuration knows the form of ServiceDefinitions, so it finds services that come later too. It is run on the
catalog here as Renovate runs it; what it does not find is told.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from render import renovate_patterns as patterns
from render.build import build
from render.catalog import Definition, read_catalog
from render.diagnostics import Diagnostic
from render.files import repository
from render.flux.image import ImageError, Reference
from render.plan.context import node_at
from render.plan.sites import WHOLE
from render.renovate_check import Dependency, Wanted, check
from render.tree import OWNED
from render.yaml.source import Mapping, Node, Scalar
from render.yaml.splice import Splicer

if TYPE_CHECKING:
    from render.catalog import PlatformFile
    from render.model.platform import ChartSource
    from render.plan.images import ImagePlan
    from render.plan.service import ServicePlan

SCHEMA = "https://docs.renovatebot.com/renovate-schema.json"
_NAMED = "(?<chart>" + patterns.WORD + ")"
_VALUE = "{{{newValue}}}{{#if newDigest}}@{{{newDigest}}}{{/if}}"
_REFERENCE = "{{{depName}}}{{#if newValue}}:{{{newValue}}}{{/if}}{{#if newDigest}}@{{{newDigest}}}{{/if}}"
_CHART = (patterns.top("source"), patterns.block("chart"))


@dataclass(slots=True)
class Renovate:
    """A configuration, and what is wrong with the catalog or not found by it."""

    config: dict[str, Any] = field(default_factory=dict)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    sources: int = 0
    found: list[Dependency] = field(default_factory=list)
    """What the configuration finds in the catalog and the platform file."""

    @property
    def failed(self) -> bool:
        """Whether there is no configuration."""
        return any(one.severity == "error" for one in self.diagnostics)

    @property
    def text(self) -> str:
        """The configuration as it is printed."""
        return json.dumps(self.config, indent=2, ensure_ascii=False) + "\n"


class OutsideError(ValueError):
    """The catalog lies outside the repository of the platform file, so that Renovate would not see it."""


def configure(catalog: Path, platform_path: Path, *, automation: bool = True) -> Renovate:
    """Return the configuration for a catalog; raises OutsideError."""
    plans: list[ServicePlan] = []
    made = build(catalog, platform_path, automation=automation, visit=plans.append)
    result = Renovate(diagnostics=made.diagnostics, sources=made.sources)
    if made.failed or made.platform is None:
        return result
    top = Path(os.path.realpath(repository(platform_path)))
    files = _Files(top, catalog, platform_path)
    definitions = [one for file in read_catalog(catalog) for one in file.definitions]
    maker = _Maker(made.platform, files, definitions, automation=automation)
    maker.charts()
    maker.images(plans)
    result.config = {
        "$schema": SCHEMA,
        "description": [
            "Charts of the services in the catalog"
            + (", and images that Flux's image automation leaves alone." if automation else ", and their images."),
            f"Made by `render renovate{'' if automation else ' --no-image-automation'}`.",
        ],
        "ignorePaths": [f"{prefix}{folder}/**" for prefix in [files.root(made.platform)] for folder in OWNED],
        "customManagers": maker.managers,
        "packageRules": maker.rules,
    }
    result.found, faults = check(result.config, files.texts(definitions), maker.wanted)
    result.diagnostics = sorted({*result.diagnostics, *faults})
    return result


class _Files:
    """Paths as Renovate has them: from the top of the repository."""

    def __init__(self, top: Path, catalog: Path, platform_path: Path) -> None:
        self.top = top
        self.catalog = self._below(catalog)
        self.platform = self._below(platform_path)
        self.platform_path = platform_path
        self.catalog_path = catalog

    def _below(self, path: Path) -> str:
        relative = os.path.relpath(os.path.realpath(path), self.top).replace(os.sep, "/")
        if relative == ".." or relative.startswith("../"):
            raise OutsideError(f"{path} lies outside the repository {self.top}")
        return relative

    def of(self, definition: Definition) -> str:
        """Return the path of a definition's file."""
        inner = definition.label.partition("/")[2]
        return inner if self.catalog == "." else f"{self.catalog}/{inner}"

    def root(self, platform: PlatformFile) -> str:
        """Return the output root as the beginning of a path."""
        root = os.path.normpath(platform.platform.root).replace(os.sep, "/")
        return "" if root == "." else f"{root}/"

    @property
    def pattern(self) -> str:
        """The files of the catalog; hidden ones are none of it."""
        prefix = "" if self.catalog == "." else patterns.literal(self.catalog + "/").replace("/", r"\/")
        return rf"/^{prefix}(?:[^.\/][^\/]*\/)*[^.\/][^\/]*\.ya?ml$/"

    def texts(self, definitions: Iterable[Definition]) -> dict[str, str]:
        """Return the text of each file that holds a definition, and of the platform file."""
        made = {self.of(one): one.source.text for one in definitions}
        made[self.platform] = self.platform_path.read_text(encoding="utf-8")
        return made


def exactly(path: str) -> str:
    """Return the pattern of one file."""
    return "/^" + patterns.literal(path).replace("/", r"\/") + "$/"


class _Maker:
    """Collects managers and rules, and what they must find."""

    def __init__(
        self, platform: PlatformFile, files: _Files, definitions: Sequence[Definition], *, automation: bool
    ) -> None:
        self.platform = platform
        self.files = files
        self.definitions = definitions
        self.automation = automation
        self.managers: list[dict[str, Any]] = []
        self.rules: list[dict[str, Any]] = []
        self.wanted = Wanted()

    def _manager(self, file: str, told: str, steps: Iterable[str], **templates: str) -> None:
        made: dict[str, Any] = {
            "customType": "regex",
            "description": told,
            "managerFilePatterns": [file],
            "matchStringsStrategy": "recursive",
            "matchStrings": list(steps),
        }
        made |= {f"{name}Template": value for name, value in templates.items()}
        if made not in self.managers:
            self.managers.append(made)

    # Charts

    def charts(self) -> None:
        """Add the managers of charts, and what they must find."""
        self._inline_charts()
        entries = self.platform.platform.charts
        for key in sorted(entries):
            self._named_chart(key, entries[key])
        self.rules.append(
            {
                "description": "Charts are versions: no digest is put beside them.",
                "matchManagers": ["custom.regex"],
                "matchDepTypes": ["chart"],
                "pinDigests": False,
            }
        )
        for definition in self.definitions:
            self._want_chart(definition)

    def _chart_manager(self, told: str, steps: Iterable[str], file: str = "", **templates: str) -> None:
        self._manager(file or self.files.pattern, told, steps, depType="chart", autoReplaceString=_VALUE, **templates)

    def _inline_charts(self) -> None:
        version = (patterns.value_of("version"), patterns.CAPTURED_VERSION)
        address = patterns.has("url", rf"oci://(?<address>{patterns.WORD})")
        self._chart_manager(
            "Charts of services, from an OCI registry.",
            (*_CHART, address, patterns.may_have_name(_NAMED), *version),
            packageName="{{{address}}}{{#if chart}}/{{{chart}}}{{/if}}",
            depName="{{{address}}}{{#if chart}}/{{{chart}}}{{/if}}",
            datasource="docker",
            versioning="semver",
        )
        address = patterns.has("url", rf"(?<address>https?://{patterns.WORD})")
        self._chart_manager(
            "Charts of services, from a Helm repository.",
            (*_CHART, address, patterns.has_name(_NAMED), *version),
            depName="{{{chart}}}",
            datasource="helm",
            registryUrl="{{{address}}}",
        )
        address = patterns.has("git", rf"(?<address>{patterns.WORD})")
        self._chart_manager(
            "Charts of services, from tags of a Git repository.",
            (*_CHART, address, patterns.value_of("tag"), patterns.CAPTURED_VERSION),
            depName="{{{address}}}",
            datasource="git-tags",
        )

    def _named_chart(self, key: str, entry: ChartSource) -> None:
        named = patterns.has("repository", patterns.literal(key))
        version = (patterns.value_of("version"), patterns.CAPTURED_VERSION)
        told = f"Charts of services, from the platform's `{key}`."
        own = (patterns.top("charts"), patterns.block(patterns.literal(key)))
        here, mine = exactly(self.files.platform), f"The version of the platform's `{key}`."
        if entry.git is not None:
            templates = {"depName": entry.git, "datasource": "git-tags"}
            tag = (patterns.value_of("tag"), patterns.CAPTURED_VERSION)
            self._chart_manager(told, (*_CHART, named, *tag), **templates)
            if _tag_of(entry.ref) is not None:
                self._chart_manager(mine, (*own, *tag), here, **templates)
                found = Dependency(self.files.platform, "chart", "git-tags", entry.git, _tag_of(entry.ref), None)
                self.wanted.add(found, self.platform, node_at(self.platform.root, "charts", key, "ref", "tag"))
            return
        url = str(entry.url).rstrip("/")
        is_oci = url.startswith("oci://")
        if is_oci:
            address = url.partition("://")[2]
            suffix = f"{{{{else}}}}/{entry.name}" if entry.name else ""
            package = f"{address}{{{{#if chart}}}}/{{{{{{chart}}}}}}{suffix}{{{{/if}}}}"
            name = patterns.may_have_name(_NAMED)
            templates = {"packageName": package, "depName": package, "datasource": "docker", "versioning": "semver"}
            fixed: str | None = f"{address}/{entry.name}" if entry.name else address
        else:
            package = f"{{{{#if chart}}}}{{{{{{chart}}}}}}{{{{else}}}}{entry.name}{{{{/if}}}}" if entry.name else ""
            name = patterns.may_have_name(_NAMED) if entry.name else patterns.has_name(_NAMED)
            templates = {"depName": package or "{{{chart}}}", "datasource": "helm", "registryUrl": str(entry.url)}
            fixed = entry.name
        self._chart_manager(told, (*_CHART, named, name, *version), **templates)
        if entry.version is None:
            return
        if fixed is not None:
            templates |= {"depName": fixed} | ({"packageName": fixed} if is_oci else {})
            self._chart_manager(mine, (*own, *version), here, **templates)
        value, _, digest = entry.version.partition("@")
        registry = None if is_oci else str(entry.url)
        found = Dependency(
            self.files.platform, "chart", templates["datasource"], fixed or "", value, digest or None, registry
        )
        self.wanted.add(found, self.platform, node_at(self.platform.root, "charts", key, "version"))

    def _want_chart(self, definition: Definition) -> None:
        source = definition.service.source
        chart = source.chart if source is not None else None
        if chart is None or chart.existing_source is not None:
            return
        entry = self.platform.platform.charts.get(chart.repository) if chart.repository is not None else None
        url, git = (entry.url, entry.git) if entry is not None else (chart.url, chart.git)
        name = chart.name or (entry.name if entry is not None else None)
        file, node = self.files.of(definition), node_at(definition.root, "source", "chart")
        if git is not None:
            tag = _tag_of(chart.ref)
            if tag is not None and "$" not in tag + git:
                found = Dependency(file, "chart", "git-tags", git, tag, None)
                self.wanted.add(found, definition, node_at(node, "ref", "tag"))
            return
        if chart.version is None or url is None or "$" in f"{url}{name}{chart.version}":
            return
        version, _, digest = chart.version.partition("@")
        if url.startswith("oci://"):
            address = url.partition("://")[2].rstrip("/")
            package = f"{address}/{name}" if name else address
            found = Dependency(file, "chart", "docker", package, version, digest or None)
        else:
            found = Dependency(file, "chart", "helm", name or "", version, digest or None, url)
        self.wanted.add(found, definition, node_at(node, "version"))

    # Images

    def images(self, plans: Sequence[ServicePlan]) -> None:
        """Add the managers of images, and what they must find: those that Flux does not automate, and no pinned one."""
        guard = patterns.NO_UPDATE if self.automation else patterns.NO_PIN
        inner = patterns.NO_UPDATE_IN_ENTRY if self.automation else patterns.NO_PIN_IN_ENTRY
        which = " without `update`" if self.automation else " that are not pinned"
        steps = (patterns.IMAGE, patterns.CAPTURED_REFERENCE)
        templates = {"datasource": "docker", "depType": "image", "autoReplaceString": _REFERENCE}
        main = (patterns.DOCUMENT, guard, patterns.top("source"), patterns.block("image"), *steps)
        self._manager(self.files.pattern, f"Images of services{which}.", main, **templates)
        more = (patterns.top("images"), patterns.ENTRY, inner, *steps)
        self._manager(self.files.pattern, f"Further images of services{which}.", more, **templates)
        for definition in self.definitions:
            self._want_images(definition)
        if self.automation:
            return
        files = {definition.service.name: definition for definition in self.definitions}
        for plan in sorted(plans, key=lambda one: one.name):
            definition = files[plan.name]
            for image in plan.images:
                if image.pinned_by == "pin":
                    continue
                if image.reads_values:
                    self._in_values(definition, image)
                self._limit(definition, image)

    def _want_images(self, definition: Definition) -> None:
        root = definition.root
        listed: list[tuple[Node | None, Node | None]] = []
        if _has(root, "source", "image"):
            listed.append((node_at(root, "source", "image"), root.get("update")))
        images = root.get("images")
        for _, image in images.entries if type(images) is Mapping else ():
            listed.append((image, image.get("update") if type(image) is Mapping else None))
        for node, update in listed:
            ref = node.get("ref") if type(node) is Mapping else node
            if type(ref) is not Scalar or ref.is_null:
                continue
            settled = update is not None if self.automation else type(update) is Mapping and _has(update, "pin")
            try:
                reference = Reference.parse(ref.text)
            except ImageError:
                continue
            if not settled and (reference.tag is not None or reference.digest is not None):
                file = self.files.of(definition)
                found = Dependency(file, "image", "docker", reference.name, reference.tag, reference.digest)
                self.wanted.add(found, definition, ref)

    def _in_values(self, definition: Definition, image: ImagePlan) -> None:
        """Add the managers of an image that was read from values: its lines as they stand."""
        reference = image.declared or image.reference
        splicer = Splicer(definition.source.text)
        file = self.files.of(definition)
        for site in image.sites:
            made = _lines(definition.source.text, splicer, site.nodes, reference)
            found = Dependency(file, "image", "docker", reference.name, reference.tag, reference.digest)
            self.wanted.add(found, definition, next(iter(site.nodes.values()), image.node))
            if made is not None:
                self._manager(
                    exactly(file),
                    f"`{image.label}` of `{definition.service.name}`, in its values.",
                    [made[0]],
                    depName=reference.name,
                    datasource="docker",
                    depType="image",
                    autoReplaceString=made[1],
                )

    def _limit(self, definition: Definition, image: ImagePlan) -> None:
        """Add the rule that keeps an image in its range, or on its tag."""
        update = image.update
        reference = image.declared or image.reference
        file = self.files.of(definition)
        rule: dict[str, Any] = {
            "matchManagers": ["custom.regex"],
            # A plain name would be a glob.
            "matchFileNames": [file if re.fullmatch(r"[A-Za-z0-9._/-]+", file) else exactly(file)],
            "matchPackageNames": [reference.name],
        }
        told = f"`{image.label}` of `{definition.service.name}`"
        allowed = _allowed(update.range, reference.tag) if update is not None else None
        if update is not None and update.channel == "digest":
            self.rules.append(
                {
                    "description": f"{told} follows its tag by the digest.",
                    **rule,
                    "matchUpdateTypes": ["major", "minor", "patch"],
                    "enabled": False,
                }
            )
        elif allowed is not None:
            self.rules.append({"description": f"{told} stays in its range.", **rule, "allowedVersions": allowed})


def _has(root: Mapping, *keys: str) -> bool:
    node: Node | None = root
    for key in keys:
        node = node.get(key) if type(node) is Mapping else None
    return node is not None and not (type(node) is Scalar and node.is_null)


def _tag_of(ref: Any) -> str | None:
    """Return the tag of a Git reference; None for a branch, a commit, a name or a range."""
    if type(ref) is not Mapping or any(ref.text(key) for key in ("commit", "name", "semver")):
        return None
    return ref.text("tag")


_COMPARISON = r"(?:[<>]=?|=|~|\^)? ?v?[0-9]+(?:\.(?:[0-9]+|[xX*])){0,2}(?:-[0-9A-Za-z.-]+)?"
_RANGE = re.compile(rf"{_COMPARISON}(?:(?:, ?| | \|\| ?| - ){_COMPARISON})*\Z")
_ZERO = re.compile(r"(?:^|[.v-])0[0-9]")


def _allowed(text: str | None, tag: str | None) -> str | None:
    """Return a range in npm's grammar, which Renovate applies to versions of any form; None where it has none.

    To npm a part with a leading zero is no version.
    """
    if text is None or tag is None or _RANGE.match(text.strip()) is None or _ZERO.search(tag):
        return None
    return re.sub(r",\s*", " ", text.strip())


def _lines(text: str, splicer: Splicer, nodes: dict[str, Scalar], reference: Reference) -> tuple[str, str] | None:
    """Return the pattern of the lines in which the parts of an image stand, and the template that replaces them.

    None where a part is not spelled as it reads, such as in a folded text.
    """
    extents = [(splicer.extent((node.line, node.column)), part, node.text) for part, node in nodes.items()]
    spelled = sorted((at, part, value) for at, part, value in extents if at is not None and value)
    if not spelled:
        return None
    start = text.rfind("\n", 0, spelled[0][0][0]) + 1
    pieces, template = ["(?:^|\\n)" if not start else "\\n"], ["" if not start else "\n"]
    captured: set[str] = set()
    for (first, last), part, value in spelled:
        raw = text[first:last]
        if raw.count(value) != 1:
            return None
        at = first + raw.index(value)
        made = _part(part, value, reference)
        between = text[start:at]
        if "{{" in between + value:
            return None
        pieces += [patterns.literal(between), made[0]]
        template += [between, made[1]]
        captured.update(re.findall(r"\?<(\w+)>", made[0]))
        start = at + len(value)
    # What follows must end the last scalar.
    wanted = {"currentValue"} if reference.tag is not None else set()
    wanted |= {"currentDigest"} if reference.digest is not None else set()
    if captured != wanted:
        return None
    return "".join(pieces).replace("\n", "\\n"), "".join(template)


def _part(part: str, value: str, reference: Reference) -> tuple[str, str]:
    """Return the pattern and the template of one part of an image."""
    tag, digest = (patterns.CAPTURED_TAG, "{{{newValue}}}"), (patterns.CAPTURED_DIGEST, "{{{newDigest}}}")
    name, at, end = value.partition("@")
    if part == "digest":
        return digest
    pattern = template = ""
    if part == "tag":
        pattern, template = tag
    else:
        head, colon, found = name.rpartition(":")
        if colon and part in (WHOLE, "repository") and found == reference.tag:
            pattern, template = f"{patterns.literal(head)}:{tag[0]}", f"{head}:{tag[1]}"
        else:
            pattern, template = patterns.literal(name), name
    return (f"{pattern}@{digest[0]}", f"{template}@{digest[1]}") if at and end else (pattern, template)


def last_line(made: Renovate) -> str:
    """Return the line that counts what the configuration finds."""
    from render.report import count

    charts = sum(one.kind == "chart" for one in made.found)
    return f"{count(charts, 'chart')} and {count(len(made.found) - charts, 'image')} found"


def summary(made: Renovate) -> dict[str, object]:
    """Return what the JSON report says beside its diagnostics."""
    found = [
        {
            "file": one.file,
            "kind": one.kind,
            "datasource": one.datasource,
            "package": one.package,
            "version": one.value,
            "digest": one.digest,
            "registryUrl": one.registry,
        }
        for one in made.found
    ]
    return {"config": made.config or None, "found": found}
