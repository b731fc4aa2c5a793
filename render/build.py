"""A catalog and a platform file in, every file of the output tree out; reads, and writes nothing."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator

from render.catalog import PlatformFile, list_catalog, read_file, read_platform, shown_path
from render.committed import Committed
from render.diagnostics import Diagnostic, Location
from render.files import Seen, StrPath, below, clean, is_inside, repository
from render.flux.overrides import Entry, Table
from render.flux.versions import hooks
from render.headers import HEADER, OWNED, data_of, digest_of, with_header
from render.identities import Identities, Owner
from render.model.read import Record
from render.outcome import Entered, FileOutcome, Outcome, OutOfOrderError, jobs_for, split
from render.plan import paths
from render.plan.cluster import MANY_SERVICES, bot_path, plan_cluster
from render.plan.context import Context, node_at
from render.plan.fluxtree import Rendered
from render.plan.objects import Identity
from render.plan.platform import check_platform, is_root
from render.plan.service import PolicyName, ServicePlan
from render.plan.sources import SourcePlan
from render.plan.table_notes import Noted, PlacedTable, TableNotes
from render.progress import Step
from render.renderer import Renderer, outline
from render.structs import field, replace, struct
from render.texts import Texts
from render.yaml.source import Mapping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["HEADER", "Build", "build", "digest_of", "with_header"]

IMAGE_GROUP = "image.toolkit.fluxcd.io"
IMAGE_KINDS = ("ImageRepository", "ImagePolicy")


@struct()
class Build:
    """What a catalog renders to on one cluster."""

    files: Texts = field(default_factory=Texts)
    """Text of each file by its path below the output root; empty when there are errors."""
    foreign: list[tuple[str, Location]] = field(default_factory=list)
    """Files that people keep in the tree and the catalog names, each with the naming place."""
    diagnostics: list[Diagnostic] = field(default_factory=list)
    services: int = 0
    """Services rendered."""
    sources: int = 0
    """Files read."""
    platform: PlatformFile | None = None
    table: list[Entry] = field(default_factory=list)
    """The override table that was applied."""
    placed: PlacedTable | None = None
    """The table with its place; None without a platform file."""
    names: frozenset[str] = frozenset()
    """Names of all services, disabled ones included."""
    paths: dict[str, str] = field(default_factory=dict)
    """The catalog file of each service, by its name; empty when nobody asked what was read."""
    jobs: int = 1
    """Processes that planned it."""
    automation: bool = True
    """Whether images are automated: with `--no-image-automation`, no policy is rendered."""
    root: str | None = None
    """The output root whose committed image values were respected."""
    taken: dict[str, int] = field(default_factory=dict)
    """Checksums of the files that these values were read from."""
    kept: list[tuple[str, str, str]] = field(default_factory=list)
    """Image values of the tree that stay: policy, the catalog's reference, the one written."""

    @property
    def failed(self) -> bool:
        """Whether anything is wrong enough that nothing may be written."""
        return any(diagnostic.severity == "error" for diagnostic in self.diagnostics)


def build(
    catalog: StrPath,
    platform_path: StrPath,
    *,
    automation: bool = True,
    root: Callable[[PlatformFile], StrPath] | None = None,
    reset: frozenset[str] = frozenset(),
    overrides: PlacedTable | None = None,
    visit: Callable[[ServicePlan], None] | None = None,
    seen: Seen | None = None,
    jobs: int = 1,
    step: Step | None = None,
) -> Build:
    """Render a catalog; every fault of every file is in the result's diagnostics, sorted by place.

    `root` tells where the output goes; the image bot's values in that tree are respected, except those of the services
    in `reset`. Without it the catalog is rendered as into an empty folder. `overrides` takes the place of the
    platform's table; `visit` sees the plan of each service, and `seen` takes in what is read of catalog and platform.
    `jobs` processes do the work, or as many as are worth it (0); the result is the same for any number.
    `step` is told how many files are done, and of how many.
    """
    made, context = prepare(
        platform_path, automation=automation, root=root, reset=reset, overrides=overrides, seen=seen
    )
    # Trees and plans have no cycles, so reference counts free them; the collector would only search in vain.
    collects = gc.isenabled()
    gc.disable()
    try:
        _Builder(made, os.fspath(catalog), Renderer(context, seen, visit), step).run(jobs)
    except OutOfOrderError:
        return build(
            catalog,
            platform_path,
            automation=automation,
            root=root,
            reset=reset,
            overrides=overrides,
            seen=seen,
            step=step,
        )
    finally:
        if collects:
            gc.enable()
    made.diagnostics = told_once(made.diagnostics)
    if made.failed:
        made.files = Texts()
    return made


def prepare(
    platform_path: StrPath,
    *,
    automation: bool,
    root: Callable[[PlatformFile], StrPath] | None = None,
    reset: frozenset[str] = frozenset(),
    overrides: PlacedTable | None = None,
    seen: Seen | None = None,
) -> tuple[Build, Context | None]:
    """Return a build without any service, and what its services are planned in; None without a sound platform file."""
    made = Build(automation=automation)
    platform, faults = read_platform(platform_path, seen)
    made.diagnostics += faults
    made.sources += 1
    made.platform = platform
    context = None
    if platform is not None:
        made.diagnostics += check_platform(platform, automation=automation)
        given = platform.platform.registries.image_overrides or []
        if overrides is not None:
            given = [_override(entry) for entry in overrides.entries]
        broken = any(fault.severity == "error" for fault in made.diagnostics)
        made.table = [] if broken else [Entry(e.name, e.new_name or "", e.new_tag or "", e.digest or "") for e in given]
        made.root = clean(root(platform)) if root is not None and is_root(platform.platform.root) else None
        committed = Committed(made.root) if made.root is not None else None
        context = Context(platform, [] if broken else given, Table(made.table), automation, committed, reset)
        if broken:
            context.bot_selector = {}
        node = paths.find(platform.root, ("registries", "imageOverrides"))
        made.placed = overrides or PlacedTable(made.table, platform.source, node)
        context.notes = TableNotes(made.placed) if made.table else None
    return made, context


class _Builder:
    """Puts together what the files of the catalog add, and makes what belongs to no single service."""

    def __init__(self, made: Build, catalog: str, renderer: Renderer, step: Step | None) -> None:
        self.made = made
        self.catalog = catalog
        self.renderer = renderer
        self.step = step
        self.context = renderer.context
        self.headers = renderer.headers
        self.entered: set[str] = set()
        """Names of the services that were met so far."""
        self.is_complete = True
        self.edges: dict[str, list[tuple[str, Location]]] = {}
        self.rendered: list[Rendered] = []
        self.shared: dict[tuple[str, str, str], SourcePlan] = {}
        self.identities = Identities()
        self.setters: list[tuple[Location, str]] = []
        """The first setter marker of each catalog file that has any, and its line."""
        self.carries_table = False
        self.namespaces: set[str] = set()
        self.declared_namespaces: set[str] = set()
        self.notes: list[Noted] = []

    def run(self, jobs: int) -> None:
        """Take in the whole catalog; raises OutOfOrderError when several processes cannot do it."""
        overlap = _overlap(self.catalog, self.made)
        if overlap is not None:
            # What an earlier build left there is no service, and would be told file by file.
            self.made.diagnostics.append(overlap)
            return
        files, faulty = list_catalog(self.catalog, self.renderer.seen)
        if faulty is not None:
            self._enter(outline(faulty))
        jobs = jobs or jobs_for(len(files))
        if jobs > 1 and len(files) >= jobs and self.context is not None and self.renderer.visit is None:
            self.made.jobs = jobs
            self._run_workers(files, jobs)
        else:
            self._run_here(files)
        if self.context is None:
            return
        if self.is_complete and not self.headers and not self.made.failed:
            self.made.diagnostics.append(_no_service(self.catalog))
        self._check_cycles()
        self._check_markers()
        self.made.names = frozenset(self.headers)
        if self.renderer.seen is not None:
            self.made.paths = {name: header.place.path for name, header in self.headers.items()}
        self._finish()

    def _run_here(self, files: list[tuple[str, str]]) -> None:
        for index, (path, label) in enumerate(files):
            if self.step is not None:
                self.step(index, len(files))
            file = self.renderer.read(path, label)
            self._enter(file)
            for entered in file.services:
                self._enter_service(entered)
                self._merge(entered.outcome)
        if self.context is not None:
            self.context.is_complete = self.is_complete
            for entered in self.renderer.finish():
                self._merge(entered.outcome)

    def _run_workers(self, files: list[tuple[str, str]], jobs: int) -> None:
        """Let other processes plan all but the first part, and take in all parts in the order of one process."""
        from render.workers import Workers

        assert self.context is not None
        own, *parts = split(files, jobs)
        with Workers(self.renderer, parts) as workers:
            for index, (path, label) in enumerate(own):
                if self.step is not None:
                    # The others are about as far.
                    self.step(index * len(files) // len(own), len(files))
                file = self.renderer.read(path, label)
                self._enter(file)
                for entered in file.services:
                    self._enter_service(entered)
                    self._merge(entered.outcome)
            self.context.is_complete = workers.share(is_complete=self.is_complete)
            deferred = [entered.outcome for entered in self.renderer.finish()]
            for file in workers.results():
                self._enter(file)
                for entered in file.services:
                    self._enter_service(entered)
                    if entered.waits_for(self.entered):
                        deferred.append(entered.outcome)
                    else:
                        self._merge(entered.outcome)
        for outcome in deferred:
            self._merge(outcome)

    def _enter(self, file: FileOutcome) -> None:
        self.made.sources += file.path is not None
        self.made.diagnostics += file.diagnostics
        self.is_complete = self.is_complete and file.is_readable
        self.entered.update(header.name for header in file.broken)
        if file.setter is not None:
            self.setters.append(file.setter)
            if self.renderer.seen is not None:
                # Whether it is read depends on where folders lie.
                self.renderer.seen.is_plain = False

    def _enter_service(self, entered: Entered) -> None:
        self.entered.add(entered.header.name)
        if entered.edges:
            self.edges[entered.header.name] = entered.edges

    def _check_markers(self) -> None:
        """Warn of markers in the catalog that the bot of this tree does not read."""
        context = self.context
        assert context is not None
        settings = context.platform.image_automation
        if not self.setters or not (context.automation and settings.enabled):
            return
        path = bot_path(context, self.rendered)
        top = os.path.realpath(below(repository(context.file.source.path), path))
        if is_inside(os.path.realpath(self.catalog), top):
            return
        self.made.diagnostics += [
            Diagnostic(
                place,
                "R218",
                "a setter marker in the catalog does nothing",
                cause=f"the image bot edits files below `{path}`, where `update` writes the markers",
                hint="remove the comment; `render sync` writes the bot's versions into the catalog",
                severity="warning",
                snippet=snippet,
            )
            for place, snippet in self.setters
        ]

    def _merge(self, outcome: Outcome | None) -> None:
        """Take in what a service adds; None for one that is disabled, or comes later."""
        if outcome is None:
            return
        assert self.context is not None
        made = self.made
        made.diagnostics += outcome.diagnostics
        if outcome.noted is not None and self.context.notes is not None:
            self.notes.append(outcome.noted)
        if outcome.rendered is None:
            return
        made.services += 1
        made.kept += outcome.kept
        made.taken |= outcome.taken
        owner = (outcome.name, outcome.place)
        for identity, place in outcome.identities:
            self._identify(identity, owner if place is owner[1] else (outcome.name, place))
        for policy in outcome.policies:
            self._enter_policy(policy, outcome.name)
        for path, data in outcome.files:
            made.files.add(path, data)
        made.foreign += outcome.foreign
        for source in outcome.shared:
            self.shared[(source.kind, source.namespace, source.name)] = source
        self.namespaces |= outcome.namespaces
        self.declared_namespaces |= {i.name for i, _ in outcome.identities if i.kind == "Namespace" and not i.group}
        self.rendered.append(outcome.rendered)
        self.carries_table = self.carries_table or outcome.carries_table

    def _identify(self, identity: Identity, owner: Owner) -> None:
        known = self.identities.enter(identity, owner)
        if known is None:
            return
        first, second = sorted((known, owner), key=lambda one: one[1])
        self._report(
            Diagnostic(
                second[1],
                "R203",
                f"`{identity}` is rendered twice",
                cause="kustomize refuses two objects with one identity, and Flux would apply whichever comes last",
                hint="rename one of them, or put them into different namespaces",
                related=((first[1], f"also rendered for `{first[0]}`"),),
            )
        )

    def _enter_policy(self, policy: PolicyName, service: str) -> None:
        """Enter the objects of an image policy, two of which always have one name; theirs is one fault."""
        assert self.context is not None
        namespace = self.context.flux_namespace
        owner = (service, policy.place)
        repository, named = (Identity(IMAGE_GROUP, kind, namespace, policy.name) for kind in IMAGE_KINDS)
        known = self.identities.enter(named, owner) or self.identities.enter(repository, owner)
        if known is None:
            return
        first, second = sorted((known, owner), key=lambda one: one[1])
        self._report(
            Diagnostic(
                second[1],
                "R203",
                f"two image policies have the name `{policy.name}`",
                cause=f"they are named `SERVICE` or `SERVICE-IMAGE`, and all of them live in `{namespace}`",
                hint=f"rename {policy.owner}, or that of `{first[0] if first[0] != service else second[0]}`",
                related=((first[1], "the other one"),),
            )
        )

    def _report(self, fault: Diagnostic) -> None:
        """Add a fault of which only the place was kept, with the line that stands there."""
        source, _ = read_file(fault.location.path, fault.location.path)
        self.made.diagnostics.append(replace(fault, snippet=source.snippet(fault.location.line)))

    def _check_cycles(self) -> None:
        """Report each cycle of dependencies once, as a path."""
        state: dict[str, int] = {}
        for start in sorted(self.edges):
            if start in state:
                continue
            path: list[str] = []
            stack: list[tuple[str, Iterator[tuple[str, Location]]]] = [(start, iter(self.edges[start]))]
            state[start] = 1
            path.append(start)
            while stack:
                node, edges = stack[-1]
                target, place = next(edges, (None, None))
                if target is None or place is None:
                    state[node] = 2
                    stack.pop()
                    path.pop()
                elif state.get(target) == 1 and target != node:
                    self._cycle([*path[path.index(target) :], target], place)
                elif target not in state and target in self.edges:
                    state[target] = 1
                    path.append(target)
                    stack.append((target, iter(self.edges[target])))

    def _cycle(self, path: list[str], place: Location) -> None:
        self._report(
            Diagnostic(
                place,
                "R202",
                "services depend on each other in a circle: " + " → ".join(f"`{name}`" for name in path),
                cause="each would wait for the next, for ever",
                hint="remove one of these dependencies",
            )
        )

    def _finish(self) -> None:
        """Make the files that belong to no single service."""
        context = self.context
        assert context is not None
        self.rendered.sort(key=lambda service: service.header.name)
        used = self.namespaces | {source.namespace for source in self.shared.values()}
        if context.platform.alerts.enabled:
            used.add(context.platform.alerts.namespace)
        skipped = self.declared_namespaces | {"default", context.flux_namespace, ""}
        namespaces = sorted(name for name in used - skipped if not name.startswith("kube-"))
        if not context.platform.defaults.namespaces:
            namespaces = []
        shared = [self.shared[key] for key in sorted(self.shared)]
        name = os.path.basename(os.path.realpath(self.catalog))
        cluster = plan_cluster(context, name, self.rendered, shared, namespaces)
        for path, (label, documents) in cluster.files.items():
            self.made.files.add(path, data_of(label, documents))
        if context.platform.flux.kustomizations == "all" and len(self.rendered) > MANY_SERVICES:
            source = context.file.source
            flux = context.file.root.get("flux")
            self.made.diagnostics.append(
                source.fault(
                    "R501",
                    flux,
                    f"one Flux Kustomization for {len(self.rendered)} services is slow",
                    cause="kustomize takes quadratic time: 2 s for 100 folders, 17 s for 400, 119 s for 1,000",
                    hint="set `flux.kustomizations: service`, or `namespace`",
                    severity="warning",
                )
            )
        if context.notes is not None:
            for noted in self.notes:
                context.notes.add(noted)
            self.made.diagnostics += context.notes.finish()
        if self.carries_table and hooks(context.flux) == "nohooks":
            self.made.diagnostics.append(_hooks_escape(context))
        settings = context.platform.image_automation
        if settings.secret_file and context.automation:
            place = context.file.source.place(node_at(context.file.root, "imageAutomation", "secretFile"))
            self.made.foreign.append((f"platform/image-automation/{settings.secret_file}", place))


def told_once(diagnostics: list[Diagnostic]) -> list[Diagnostic]:
    """Sort diagnostics; a value that is refused is not also warned of for its spelling."""
    refused = {one.location for one in diagnostics if one.severity == "error"}
    return sorted({one for one in diagnostics if one.code != "R008" or one.location not in refused})


def _overlap(catalog: str, made: Build) -> Diagnostic | None:
    """Return the fault of a tree that would be read as a part of the catalog; hidden folders of it are not read."""
    if made.root is None or made.platform is None:
        return None
    top = os.path.realpath(catalog)
    inside = [os.path.realpath(below(made.root, folder)) for folder in OWNED]
    read = [one.removeprefix(top) for one in inside if is_inside(one, top)]
    if not any(all(not part.startswith(".") for part in one.split("/")) for one in read):
        return None
    file = made.platform
    is_own = os.path.realpath(made.root) == os.path.realpath(below(repository(file.source.path), file.platform.root))
    place = file.source.place(file.root.get("root") or file.root) if is_own else Location(shown_path(made.root))
    return Diagnostic(
        place,
        "R241",
        f"the output root lies in the catalog `{shown_path(catalog)}`",
        cause="every YAML file of the catalog is a service, so the next build would refuse what this one writes",
        hint="write another folder, such as `clusters/home`" if is_own else "name another folder with `--out`",
    )


def _no_service(catalog: str) -> Diagnostic:
    return Diagnostic(
        Location(shown_path(catalog)),
        "R217",
        "the catalog holds no service",
        "warning",
        cause="everything in the tree is deleted then; this may be the wrong folder, or half a checkout",
        hint="name the catalog's folder; a service with `enabled: false` says that nothing is meant",
    )


def _hooks_escape(context: Context) -> Diagnostic:
    registries = context.file.root.get("registries")
    table = registries.key("imageOverrides") if type(registries) is Mapping else None
    return context.file.source.fault(
        "R604",
        table,
        f"image overrides do not reach the hooks of charts on Flux {context.flux}",
        cause="this release line does not pass hooks to post-renderers; a migration Job keeps its image",
        hint="set such images in `values`, or move to Flux 2.9",
        severity="warning",
    )


def _override(entry: Entry) -> Any:
    """Return an entry in the form that the platform file has."""
    fields = {"new_name": entry.new_name or None, "new_tag": entry.new_tag or None, "digest": entry.digest or None}
    return Record({"name": entry.name, **fields}, None)
