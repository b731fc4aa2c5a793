"""The plan of a service in, what the whole build takes from it out: its texts, and what must fit with other services.

An outcome and the file it comes from hold nothing of the source's tree, so that they can be handed from one process to
another.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Container

from render.diagnostics import Diagnostic, Location, RenderError
from render.headers import data_of
from render.plan.cluster import kustomization
from render.plan.context import Context, Header
from render.plan.fluxtree import Rendered
from render.plan.service import CONFIG_FILES, FILES, PolicyName, ServicePlan, plan_service
from render.structs import field, struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from render.catalog import Definition
    from render.plan.objects import Identity
    from render.plan.sources import SourcePlan
    from render.plan.table_notes import Noted

MANY_FILES = 200
"""From here on a second process saves more than it costs."""
MOST_JOBS = 8
SHARES = {2: 1.0}
"""Share of an equal part that the first process plans, by the number of processes.

It need not hand over what it makes, and puts together what the others have made.
"""
FIRST_SHARE = 0.9
"""The same for any other number."""


@struct()
class Outcome:
    """What one service adds to a build."""

    name: str
    place: Location
    diagnostics: list[Diagnostic] = field(default_factory=list)
    files: list[tuple[str, bytes]] = field(default_factory=list)
    """Path below the root, and content in UTF-8."""
    foreign: list[tuple[str, Location]] = field(default_factory=list)
    identities: list[tuple[Identity, Location]] = field(default_factory=list)
    policies: list[PolicyName] = field(default_factory=list)
    shared: list[SourcePlan] = field(default_factory=list)
    namespaces: set[str] = field(default_factory=set)
    kept: list[tuple[str, str, str]] = field(default_factory=list)
    taken: dict[str, int] = field(default_factory=dict)
    """Checksums of the committed files whose values were respected."""
    carries_table: bool = False
    noted: Noted | None = None
    """What is surprising about the override table."""
    rendered: Rendered | None = None
    """None when the service has errors, and adds only diagnostics."""


@struct()
class Entered:
    """One enabled or disabled service of a file."""

    header: Header
    edges: list[tuple[str, Location]]
    """Services that it depends on, and where that is said."""
    outcome: Outcome | None = None
    """None for a service that is disabled, or not planned yet."""

    def waits_for(self, known: Container[str]) -> bool:
        """Whether it depends on services that are not known."""
        return any(name not in known for name, _ in self.edges)


@struct()
class FileOutcome:
    """What one catalog file adds to a build."""

    path: str | None
    is_readable: bool
    diagnostics: list[Diagnostic]
    broken: list[Header]
    setter: tuple[Location, str] | None
    """The first setter marker in the file, and its line."""
    services: list[Entered] = field(default_factory=list)


def outcome_of(
    context: Context,
    definition: Definition,
    header: Header,
    visit: Callable[[ServicePlan], None] | None = None,
) -> Outcome:
    """Return what a service adds to a build; `visit` sees its plan."""
    plan, reports = plan_service(context, definition, header)
    made = Outcome(header.name, header.place, reports)
    if context.notes is not None:
        made.noted = context.notes.take()
    if context.committed is not None:
        made.taken = context.committed.taken()
    if plan is None:
        return made
    if visit is not None:
        visit(plan)
    try:
        _fill(made, plan)
    except RenderError as error:
        made.diagnostics += error.diagnostics
    return made


def _fill(made: Outcome, plan: ServicePlan) -> None:
    """Write the files of a service, and take over what its plan says."""
    name = plan.name
    listed = []
    for stem in FILES:
        documents = plan.apps.get(stem)
        if documents:
            made.files.append((f"apps/{name}/{stem}.yaml", data_of(plan.label, documents)))
            listed.append(f"{stem}.yaml")
    resources = listed + plan.resources
    has_apps = bool(resources or any(plan.kustomization.values()))
    if has_apps:
        document = kustomization(resources, plan.kustomization)
        made.files.append((f"apps/{name}/kustomization.yaml", data_of(plan.label, [document])))
    held = [stem for stem in CONFIG_FILES if plan.configs.get(stem)]
    for stem in held:
        made.files.append((f"configs/{name}/{stem}.yaml", data_of(plan.label, plan.configs[stem])))
    if held:
        document = kustomization([f"{stem}.yaml" for stem in held])
        made.files.append((f"configs/{name}/kustomization.yaml", data_of(plan.label, [document])))
    made.foreign = [(f"apps/{name}/{file}", place) for file, place in plan.foreign]
    made.identities, made.policies, made.shared = plan.identities, plan.policies, plan.shared
    made.namespaces, made.kept, made.carries_table = plan.namespaces, plan.kept, plan.carries_table
    made.rendered = Rendered(
        plan.header,
        has_apps,
        bool(held),
        tuple(plan.depends_on),
        plan.timeout,
        plan.marks_configs,
        plan.has_gated_deployment,
        "vm" in held,
    )


class OutOfOrderError(Exception):
    """Raised when files that are read apart declare one name, so that it counts which of them comes first."""


def jobs_for(files: int) -> int:
    """Return how many processes a catalog of so many files is worth on this machine."""
    if files < MANY_FILES:
        return 1
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:
        # Not on every system.
        cores = os.cpu_count() or 1
    return min(cores, MOST_JOBS, 1 + files // MANY_FILES)


def split(files: list[tuple[str, str]], parts: int) -> list[list[tuple[str, str]]]:
    """Return a list in order, in parts of equal length but for the first."""
    first = round(len(files) * SHARES.get(parts, FIRST_SHARE) / parts)
    rest = len(files) - first
    ends = [first + rest * index // (parts - 1) for index in range(parts)]
    return [files[start:end] for start, end in zip([0, *ends], ends, strict=False)]
