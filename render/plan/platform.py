"""The platform file in, what is wrong with it beyond its schema out."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from render.catalog import PlatformFile
from render.diagnostics import Diagnostic, Location
from render.files import clean
from render.flux.api import OBJECTS, Schema
from render.flux.override_lint import Finding, lint
from render.flux.overrides import Entry as OverrideEntry
from render.flux.overrides import OverrideFailure, chains
from render.model import schema
from render.model.read import Reader, compile_schema
from render.patterns import lazy
from render.plan import paths
from render.plan.chart_rules import ChartRules
from render.plan.context import Report, node_at
from render.plan.release import check_release
from render.plan.sources import plain
from render.plan.variables import check_platform_variables
from render.yaml.source import Mapping, Node, Scalar, Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from render.model.platform import ChartSource


_KEY = lazy(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_NO_BRANCH = lazy(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//")
_REFERENCE = lazy(r"[^\s:~^?\[\\\x00-\x1f\x7f]+")
_FILE_NAME = lazy(r"[A-Za-z0-9][A-Za-z0-9._-]*\.ya?ml")

LONGEST_NAME, LONGEST_PATH = 255, 2048
"""Bytes of a file's name that file systems take, and half of what Linux takes of a whole path."""


class Written:
    """A value that is no string, with its source text, as the table's lint takes it."""

    def __init__(self, source: str) -> None:
        self.source = source


def check_platform(file: PlatformFile, *, automation: bool, needs_git: bool = False) -> list[Diagnostic]:
    """Return what is wrong with a platform file whose schema holds.

    `needs_git` asks for a source that the image bot can commit to, whether the tree has a bot or not.
    """
    report = Report(file.source)
    _check_root(file, report)
    for key, entry in file.platform.charts.items():
        _check_chart(file, report, key, entry)
    registries = file.root.get("registries")
    if type(registries) is Mapping:
        check_table(report, registries.get("imageOverrides"), "registries.imageOverrides")
    _check_credentials(file, report)
    check_table(report, file.root.get("fluxImageOverrides"), "fluxImageOverrides")
    _check_automation(file, report, automation=automation)
    if needs_git or (automation and file.platform.image_automation.enabled):
        _check_git(file, report)
    _check_source(file, report)
    _check_decryption(file, report)
    _check_defaults(file, report)
    check_platform_variables(file, report)
    return report.items


def is_root(root: str) -> bool:
    """Whether a folder inside the repository can have this path."""
    parts = clean(root).split("/")
    is_sound = root.isprintable() and bool(root.strip()) and "\\" not in root
    return is_sound and not root.startswith("/") and ".." not in parts and _is_short(root, parts)


def _is_short(root: str, parts: Iterable[str]) -> bool:
    """Whether a file system takes the path, with those of the files below it."""
    return len(root.encode()) <= LONGEST_PATH and all(len(part.encode()) <= LONGEST_NAME for part in parts)


def _check_root(file: PlatformFile, report: Report) -> None:
    root = file.platform.root
    if not is_root(root):
        report.error(
            "R502",
            file.root.get("root"),
            f"`root` must be a folder inside the repository, not `{paths.shown(root)}`",
            cause="it says where Flux finds the tree, from the repository's top",
            hint="write a relative path such as `clusters/home`",
        )


def _check_chart(file: PlatformFile, report: Report, key: str, entry: ChartSource) -> None:
    charts = file.root.get("charts")
    assert type(charts) is Mapping
    node = charts.get(key)
    if not _KEY.fullmatch(key):
        repaired = re.sub(r"[^a-z0-9]+", "-", key.lower()).strip("-")
        report.error(
            "R104",
            charts.key(key),
            f"the chart source `{key}` must be named in lower-case letters, digits and inner `-`",
            cause="it becomes the name of an object",
            hint=f"rename it to `{repaired}`" if repaired else "rename it",
        )
    rules = ChartRules(report, node, f"charts.{key}")
    if (entry.url is None) == (entry.git is None):
        report.error(
            "R204",
            node if entry.url is None else node_at(node, "git"),
            f"the chart source `{key}` must have either `url` or `git`",
            hint="give one address" if entry.url is None else "keep one of the two",
        )
    else:
        form = rules.form(entry.url, entry.git)
        if form is not None and rules.fields(form):
            rules.version(form, entry.version, entry.version_range)
    if entry.at is not None:
        try:
            paths.parse(entry.at.replace("{service}", "x"))
        except paths.PathError:
            report.error(
                "R208",
                node_at(node, "at"),
                f"`charts.{key}.at` must be a path, not `{entry.at}`",
                cause="keys stand between dots, and `[…]` follows its list without one",
                hint=f"write `{entry.at.replace('.[', '[')}`" if ".[" in entry.at else "write `key.list[0].key`",
            )


def _check_credentials(file: PlatformFile, report: Report) -> None:
    """Report entries for one registry: the longest wins, and of these neither is longer."""
    seen: dict[str, Node | None] = {}
    for index, entry in enumerate(file.platform.registries.credentials):
        registry = entry.registry.rstrip("/")
        place = node_at(file.root, "registries", "credentials", index, "registry")
        first = seen.setdefault(registry, place)
        if first is not place:
            report.error(
                "R606",
                place,
                f"two entries of `registries.credentials` are for `{registry}`",
                cause="the entry with the longest path is used, and neither is longer",
                hint="remove one of them, or give one a longer path",
                related=((report.source.place(first), "the other one"),),
            )


def check_table(report: Report, node: Node | None, name: str) -> None:
    """Report the faults of an override table."""
    if type(node) is not Sequence:
        return
    for finding in lint([_raw(item) for item in node.items]):
        where = _entry_node(node, finding)
        tell = report.error if finding.severity == "error" else report.warn
        related: tuple[tuple[Location, str], ...] = ()
        if finding.related is not None:
            related = ((report.source.place(node.items[finding.related]), "the other one"),)
        tell(
            "R601",
            where,
            f"`{name}[{finding.index}]`: {finding.message}",
            cause=finding.cause,
            hint=finding.hint,
            related=related,
        )
    if report.failed:
        return
    entries = [
        OverrideEntry.of({k.text: v.text for k, v in item.entries if type(v) is Scalar})
        for item in node.items
        if type(item) is Mapping
    ]
    try:
        for chain in chains(entries):
            report.warn(
                "R608",
                node.items[chain.second],
                f"`{name}[{chain.second}]` rewrites what `{name}[{chain.first}]` writes",
                cause=f"entries run one after another: `{chain.between}` becomes `{chain.after}`",
                hint="name the final image in the first entry, or put this one above it",
                related=((report.source.place(node.items[chain.first]), "written by this entry"),),
            )
    except OverrideFailure as failure:
        report.error("R601", node, f"`{name}`: {failure.reason}", hint="escape special characters, or remove them")


def _raw(item: Node) -> object:
    if type(item) is not Mapping:
        return Written(item.text) if type(item) is Scalar else Written("…")
    made: dict[str, object] = {}
    for key, value in item.entries:
        if type(value) is Scalar:
            if not value.is_null:
                made[key.text] = value.text if value.is_string else Written(value.text)
        else:
            made[key.text] = Written("…")
    return made


def _entry_node(node: Sequence, finding: Finding) -> Node:
    if finding.index < 0:
        return node
    item = node.items[finding.index]
    if finding.at_key and type(item) is Mapping:
        return item.key(finding.field) or item
    return node_at(item, finding.field) or item


def _check_automation(file: PlatformFile, report: Report, *, automation: bool) -> None:
    settings = file.platform.image_automation
    node = file.root.get("imageAutomation")
    has_selector = _check_selector(report, node)
    if not automation:
        return
    _check_secret_file(report, node, settings.secret_file)
    if not settings.enabled:
        return
    _check_author(report, node, settings.author.name, settings.author.email)
    _check_branch(report, node, "branch", settings.branch)
    _check_branch(report, node, "pushBranch", settings.push_branch)
    if settings.author.email is None:
        report.error(
            "R102",
            node_at(node, "author"),
            "`imageAutomation.author` needs the field `email`",
            cause="Flux refuses a commit author without an address",
            hint="add `email: …`",
        )
    refspec = settings.push_refspec
    if refspec is not None and not _is_refspec(refspec):
        report.error(
            "R401",
            node_at(node, "pushRefspec"),
            f"`imageAutomation.pushRefspec` must be a Git refspec, not `{refspec}`",
            cause="the push fails after the commit, again and again",
            hint="write `source:destination`, such as `refs/heads/main:refs/heads/bot`",
        )
    if has_selector:
        _check_settings(file, report, node)


def _check_author(report: Report, node: Node | None, name: str, email: str | None) -> None:
    """Refuse what cannot stand in the line of a commit that names its author; a variable is judged in the cluster."""
    for field, text, told in (("name", name, "fluxcdbot"), ("email", email, "fluxcdbot@example.org")):
        if text is None or "${" in text or (text.strip() and text.isprintable() and not {"<", ">"} & set(text)):
            continue
        report.error(
            "R242",
            node_at(node, "author", field),
            f"`imageAutomation.author.{field}` must be one line without `<` and `>`, and not empty",
            cause="Git takes no such author, so the bot could not commit",
            hint=f"write `{told}`, for example",
        )


def _check_branch(report: Report, node: Node | None, field: str, name: str | None) -> None:
    if name is None or "${" in name or is_branch(name):
        return
    report.error(
        "R242",
        node_at(node, field),
        f"`imageAutomation.{field}` must be the name of a branch, "
        + (f"not `{paths.shown(name)}`" if name else "and not empty"),
        cause="Git takes no such branch, so the bot could not commit",
        hint="write the name alone, such as `main`",
    )


def is_branch(name: str) -> bool:
    """Whether Git takes a text for the name of a branch (`git check-ref-format --branch`)."""
    if _NO_BRANCH.search(name) or name == "HEAD":
        return False
    parts = name.split("/")
    return not name.startswith("-") and all(
        part and not part.startswith(".") and not part.endswith((".", ".lock")) for part in parts
    )


def _check_selector(report: Report, node: Node | None) -> bool:
    """Whether the selector has its form, and labels that an ImagePolicy can carry: each gets them."""
    form = OBJECTS["ImageUpdateAutomation"].spec["properties"]["policySelector"]
    selector = paths.find(node, ("policySelector",))
    labels = paths.find(selector, ("matchLabels",))
    path = "imageAutomation.policySelector"
    return _has_form(report, selector, form, path) and _has_form(report, labels, _label_form(), f"{path}.matchLabels")


@cache
def _label_form() -> Schema:
    form: Schema = schema.form("platform")["$defs"]["Alerts"]["properties"]["labels"]
    return form


def _check_git(file: PlatformFile, report: Report) -> None:
    source = file.platform.flux.source
    if source.kind != "GitRepository":
        report.error(
            "R401",
            node_at(file.root, "flux", "source", "kind"),
            f"image automation needs a GitRepository, and `flux.source` has the kind `{source.kind}`",
            cause="it commits to the repository that it checks out",
            hint="set `imageAutomation.enabled: false`, or name a GitRepository",
        )


def _is_refspec(text: str) -> bool:
    """Whether Git takes a text for a refspec that pushes something: two references, both with a `*` or none."""
    source, _, destination = text.removeprefix("+").partition(":")
    stars = (source.count("*"), destination.count("*"))
    is_reference = all(_REFERENCE.fullmatch(part) for part in (source, destination))
    return is_reference and stars in ((0, 0), (1, 1))


def _check_settings(file: PlatformFile, report: Report, node: Node | None) -> None:
    """Report settings that the API of the ImageUpdateAutomation would refuse."""
    settings = file.platform.image_automation
    form = OBJECTS["ImageUpdateAutomation"].spec["properties"]
    commit = form["git"]["properties"]["commit"]["properties"]
    has_form = _has_form(report, paths.find(node, ("signingKey",)), commit["signingKey"], "imageAutomation.signingKey")
    if not has_form:
        return
    spec = {
        "interval": settings.interval,
        "sourceRef": {"kind": "GitRepository", "name": file.platform.flux.source.name},
        "git": {
            "commit": {
                "author": {"name": settings.author.name, "email": settings.author.email or "x"},
                "messageTemplate": settings.message_template or "",
                "signingKey": plain(settings.signing_key) if settings.signing_key is not None else None,
            }
        },
        "policySelector": plain(settings.policy_selector) if settings.policy_selector is not None else None,
    }
    for problem in OBJECTS["ImageUpdateAutomation"].rules(spec, file.flux):
        # The settings are those of `spec` and of `spec.git.commit` in one mapping.
        keys = problem.path[2:] if problem.path[:2] == ("git", "commit") else problem.path
        report.error("R401", node_at(node, *keys), problem.message, cause=problem.cause, hint=problem.hint)


def _check_secret_file(report: Report, node: Node | None, name: str | None) -> None:
    if name is None:
        return
    is_taken = name in ("kustomization.yaml", "kustomization.yml", "image-update-automation.yaml")
    if is_taken or not _FILE_NAME.fullmatch(name):
        report.error(
            "R502",
            node_at(node, "secretFile"),
            "`imageAutomation.secretFile` must be a file name such as `git.sops.yaml`",
            cause="a generated file has this name" if is_taken else "the file lies in `platform/image-automation/`",
            hint="take another name" if is_taken else "write the name alone",
        )


def _has_form(report: Report, node: Node | None, schema: Schema, path: str) -> bool:
    """Whether a part of the platform file in Flux's form has that form; reports where it has not."""
    if node is None or type(node) is not Mapping:
        return True
    before = len(report.items)
    Reader(report.source, report.items).read(compile_schema(schema), node, path)
    report.failed = report.failed or len(report.items) > before
    return len(report.items) == before


def _check_source(file: PlatformFile, report: Report) -> None:
    flux = file.platform.flux
    if flux.cross_namespace_refs or flux.source.namespace in (None, flux.namespace):
        return
    report.error(
        "R401",
        node_at(file.root, "flux", "source", "namespace"),
        f"`flux.source.namespace` must be `{flux.namespace}` with `crossNamespaceRefs: false`",
        cause="the controllers then refuse a source of another namespace to the Kustomizations and the image bot",
        hint="remove it, and have the source in the namespace of Flux",
    )


def _check_decryption(file: PlatformFile, report: Report) -> None:
    node = paths.find(file.root, ("flux", "decryption"))
    _has_form(report, node, OBJECTS["Kustomization"].spec["properties"]["decryption"], "flux.decryption")


def _check_defaults(file: PlatformFile, report: Report) -> None:
    node = paths.find(file.root, ("defaults", "release"))
    check_release(file.source, report, node, "defaults.release", file.flux)
