"""One definition in, its files as documents of templates out, with what the whole tree must know of it."""

from __future__ import annotations

from render.catalog import Definition
from render.diagnostics import Diagnostic, Location
from render.flux.selector import selects
from render.plan.context import Context, Header, Report, node_at
from render.plan.depends import Dependencies
from render.plan.fluxtree import release_timeout
from render.plan.images import ImagePlan, Images
from render.plan.kept import keep_all
from render.plan.kustomize import plan_kustomize
from render.plan.objects import Extras, Identity
from render.plan.policy import Policies, bot_selector, policy_labels
from render.plan.release import Release
from render.plan.sources import Charts, SourcePlan, plain
from render.plan.variables import check_variables
from render.plan.workload import Document, Plain
from render.plan.writing import Writer
from render.structs import field, struct
from render.yaml.source import Mapping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from render.model.platform import ChartSource

FILES = ("source", "helmrelease", "image-automation", "workload", "extra")
"""The files of a service, in the order its kustomization lists them."""

CONFIG_FILES = ("vm", "extra")
"""The same of what is reconciled after all of `apps/`."""

_KINDS = {
    "helmrelease": ("helm.toolkit.fluxcd.io", "HelmRelease"),
    "ocirepository": ("source.toolkit.fluxcd.io", "OCIRepository"),
    "helmrepository": ("source.toolkit.fluxcd.io", "HelmRepository"),
    "gitrepository": ("source.toolkit.fluxcd.io", "GitRepository"),
    "deployment": ("apps", "Deployment"),
    "statefulset": ("apps", "StatefulSet"),
    "service": ("", "Service"),
    "persistentvolumeclaim": ("", "PersistentVolumeClaim"),
    "secret": ("", "Secret"),
    "virtualmachine": ("kubevirt.io", "VirtualMachine"),
}
"""Group and kind of what the templates of a service render, those of image policies aside."""


@struct(frozen=True)
class PolicyName:
    """The name of an image's ImageRepository and ImagePolicy, in every mode: both refuse the same catalogs."""

    name: str
    owner: str
    """What to rename for another name, as people say it: the image `db` of `web`."""
    place: Location


@struct()
class ServicePlan:
    """What one service renders to."""

    name: str
    label: str
    header: Header
    apps: dict[str, list[Document]] = field(default_factory=dict)
    """Documents of each file below `apps/<service>/`, in the order of the kustomization."""
    kustomization: dict[str, Any] = field(default_factory=dict)
    """Fields of the service's kustomization.yaml besides `resources`."""
    resources: list[str] = field(default_factory=list)
    """Further resources, written by people."""
    foreign: list[tuple[str, Location]] = field(default_factory=list)
    """Files below `apps/<service>/` that must exist, and where they are named."""
    configs: dict[str, list[Document]] = field(default_factory=dict)
    """Documents of each file below `configs/<service>/`, in the order of `CONFIG_FILES`."""
    marks_configs: bool = False
    """Whether an object of `configs` holds a setter marker."""
    shared: list[SourcePlan] = field(default_factory=list)
    identities: list[tuple[Identity, Location]] = field(default_factory=list)
    policies: list[PolicyName] = field(default_factory=list)
    namespaces: set[str] = field(default_factory=set)
    depends_on: list[str] = field(default_factory=list)
    """Catalog services that the service's Flux Kustomization waits for (`flux.kustomizations: service`)."""
    images: list[ImagePlan] = field(default_factory=list)
    timeout: int = 0
    """Seconds that one of its Helm operations may take, or its Deployment to become ready."""
    has_gated_deployment: bool = False
    """Whether it is a plain Deployment whose updates must become ready."""
    carries_table: bool = False
    """Whether the release carries entries of the override table."""
    kept: list[tuple[str, str, str]] = field(default_factory=list)
    """Policies whose committed value stays: with the catalog's reference and the one that is written."""


def plan_service(
    context: Context, definition: Definition, header: Header
) -> tuple[ServicePlan | None, list[Diagnostic]]:
    """Return the plan of an enabled service (None after errors) and what is to be reported."""
    report = Report(definition.source)
    made = _Planner(context, definition, header, report).plan()
    return (None if report.failed else made), report.items


class _Planner:
    def __init__(self, context: Context, definition: Definition, header: Header, report: Report) -> None:
        self.context = context
        self.definition = definition
        self.service = definition.service
        self.header = header
        self.report = report
        self.charts = Charts(context, definition, report)
        self.made = ServicePlan(definition.service.name, definition.label, header)

    def plan(self) -> ServicePlan | None:
        if not self._is_possible():
            return None
        check_variables(self.context, self.definition, self.report)
        entry = self.charts.entry()
        images = Images(self.context, self.definition, entry, self.report)
        images.declare()
        writer = Writer(images)
        self._images(images, writer)
        rollback = self._rolls_back()
        dependencies = Dependencies(self.context, self.definition, self.header, self.report)
        dependencies.plan()
        self.made.depends_on = dependencies.services
        if self.header.is_release:
            self._release(images, entry, dependencies.releases, rollback=rollback)
        elif self.service.workload is not None:
            workload = Plain(self.context, self.definition, self.header, images, self.report)
            documents = workload.plan(writer, rollback=rollback)
            self.made.apps["workload"] = documents
            if any(template == "deployment" for template, _ in documents):
                self.made.timeout, self.made.has_gated_deployment = workload.deadline, rollback
            self.made.namespaces.add(self.header.namespace)
        elif self.service.vm is not None:
            from render.plan.vm import Machine  # few catalogs have machines

            machine = Machine(self.context, self.definition, self.header, images, self.report)
            self.made.configs["vm"] = machine.plan(writer)
            self.made.namespaces.add(self.header.namespace)
        self._extras(images)
        self._automation(images)
        kustomize = plan_kustomize(self.definition, self.report)
        self.made.kustomization, self.made.resources = kustomize.fields, kustomize.resources
        self.made.foreign = kustomize.foreign
        self.made.images = images.plans
        if not self.report.failed:
            self._identify()
        return self.made

    def _is_possible(self) -> bool:
        """Refuse a definition that is nothing, or two things at once."""
        service, root = self.service, self.definition.root
        if service.kind == "vm" or service.vm is not None:
            from render.plan.vm import check_machine

            check_machine(self.definition, self.report)
        if self.report.failed:
            return False
        if service.name == "sources":
            self.report.error(
                "R203",
                root.get("name"),
                "`sources` is no service name",
                cause="`apps/sources/` holds shared chart sources",
                hint="take another name",
            )
        if self.header.is_release and service.workload is not None:
            self.report.error(
                "R212",
                root.key("workload"),
                "a service has either `source.chart` or `workload`",
                cause="both would deliver the same service",
                hint="remove one of the two",
            )
        if not self.header.is_release:
            self._check_without_chart()
        return not self.report.failed

    def _check_without_chart(self) -> None:
        """Refuse what needs a chart, and a service that nothing delivers."""
        service, root = self.service, self.definition.root
        only_chart = {
            "values": service.values,
            "valuesFrom": service.values_from,
            "release": service.release,
            "postRenderers": service.post_renderers,
        }
        for name, value in only_chart.items():
            if value:
                self.report.error(
                    "R212",
                    root.key(name),
                    f"`{name}` needs `source.chart`",
                    cause="it is part of a HelmRelease",
                    hint="remove it, or give the chart",
                )
        delivers = service.workload or service.vm or service.extra_objects or service.kustomize is not None
        if not delivers:
            self.report.error(
                "R212",
                root.get("name"),
                f"`{service.name}` renders nothing",
                cause="it has neither `source.chart`, `workload`, `vm`, `extraObjects` nor `kustomize`",
                hint="give it one of them, or set `enabled: false`",
            )

    def _images(self, images: Images, writer: Writer) -> None:
        """Decide what keeps the images up to date, and write them."""
        policies = Policies(self.context, self.service.name, self.report)
        for plan in images.plans:
            plan.policy = policies.plan(plan)
        self.made.kept = keep_all(self.context, self.service.name, images, self.report)
        self._check_written_effective(images)
        writer.write()

    def _check_written_effective(self, images: Images) -> None:
        """Refuse an effective reference that is written down and that the table would then rewrite once more."""
        for plan in images.plans:
            is_written = plan.is_settled and (plan.reach_values or (plan.automated and plan.shape == "string"))
            if not is_written or not plan.in_release:
                continue
            outcome = images.renderers.rewrite(plan.effective)
            if outcome.text == plan.effective:
                continue
            changing = [step for step in outcome.trace if step.before != step.after]
            first = plan.trace[-1].entry if plan.trace else -1
            second = changing[0].entry if changing else -1
            related = tuple(
                (self.context.override_place(i), what)
                for i, what in ((first, "written by this entry"), (second, "rewritten by this one"))
                if i >= 0
            )
            self.report.error(
                "R607",
                plan.node,
                f"the override table would rewrite `{plan.effective}` once more, to `{outcome.text}`",
                cause=f"`{plan.label}` is written as it is after the table, and the release passes the table again",
                hint="name the final repository in one entry",
                related=related,
            )

    def _rolls_back(self) -> bool:
        """Say whether a failed upgrade is rolled back: asked for by an update, one that says nothing included."""
        updates = [(self.service.update, self.definition.root.get("update"))]
        images = self.definition.root.get("images")
        for name, image in self.service.images.items():
            if not isinstance(image, str):
                updates.append((image.update, node_at(images, name, "update")))
        given = [(update, node) for update, node in updates if update is not None]
        said = [(update.auto_rollback_on_failed_health, node) for update, node in given]
        explicit = [(value, node) for value, node in said if value is not None]
        if len({value for value, _ in explicit}) > 1:
            self.report.error(
                "R403",
                node_at(explicit[-1][1], "autoRollbackOnFailedHealth"),
                "the images of a service cannot differ in `autoRollbackOnFailedHealth`",
                cause="the release is rolled back as a whole",
                hint="say it once, under `update`",
            )
        return bool(given) and (explicit[0][0] is True if explicit else True)

    def _release(
        self, images: Images, entry: ChartSource | None, depends_on: list[dict[str, Any]], *, rollback: bool
    ) -> None:
        header = self.header
        chart = self.charts.plan(self.service.name, header.namespace, entry)
        release = Release(self.context, self.definition, header, images, self.report)
        spec = release.plan(chart, depends_on, rollback=rollback)
        if chart is None or spec is None:
            return
        self.made.timeout = release_timeout(plain({**spec, "values": None}))
        self.made.carries_table = release.carries_table
        common = self._common()
        source = chart.source
        if source is None:
            pass
        elif source.shared is not None:
            self.made.shared.append(source)
        else:
            self.made.apps["source"] = [
                (source.template, {**common, "name": source.name, "namespace": source.namespace, **source.spec})
            ]
        self.made.apps["helmrelease"] = [
            ("helmrelease", {**common, "name": header.object_name, "namespace": header.namespace, **spec})
        ]
        self.made.namespaces.add(header.namespace)

    def _common(self) -> dict[str, Any]:
        return {"labels": self.service.labels or None, "annotations": self.service.annotations or None}

    def _automation(self, images: Images) -> None:
        documents: list[Document] = []
        for plan in images.plans:
            if plan.policy is not None:
                documents += plan.policy.documents(self.context, self._common())
        if documents and self.context.automation:
            self.made.apps["image-automation"] = documents
            self._check_selected()

    def _check_selected(self) -> None:
        """Warn of policies that the bot passes over without a word."""
        selector = bot_selector(self.context)
        is_followed = selects(selector, policy_labels(self.context, self._common()))
        if is_followed or not self.context.platform.image_automation.enabled:
            return
        root, file = self.definition.root, self.context.file
        self.report.warn(
            "R708",
            root.key("labels") or root.key("update") or root.get("name"),
            f"the image bot does not follow the policies of `{self.service.name}`",
            cause="`imageAutomation.policySelector` selects them by labels that they do not have",
            hint="correct `labels`, or the selector",
            related=((file.source.place(node_at(file.root, "imageAutomation", "policySelector")), "selected here"),),
        )

    def _extras(self, images: Images) -> None:
        extras = Extras(self.context, self.definition, self.header, images, self.report)
        for extra in extras.plan():
            document: Document = ("object", {"object": extra.node})
            if extras.in_configs(extra):
                self.made.configs.setdefault("extra", []).append(document)
                self.made.marks_configs = self.made.marks_configs or extra.index in images.marks_objects
            else:
                self.made.apps.setdefault("extra", []).append(document)
            self.made.identities.append((extra.identity, self.definition.source.place(extra.source)))
            if extra.identity.namespace:
                self.made.namespaces.add(extra.identity.namespace)

    def _identify(self) -> None:
        header = self.header
        for documents in (*self.made.apps.values(), *self.made.configs.values()):
            for template, context in documents:
                if template in _KINDS:
                    group, kind = _KINDS[template]
                    namespace = context.get("namespace", header.namespace)
                    self.made.identities.append((Identity(group, kind, namespace, context["name"]), header.place))
                    # A DataVolume is filled into a claim of its name.
                    for volume in context.get("dataVolumeTemplates") or ():
                        claim = Identity("", "PersistentVolumeClaim", namespace, volume["metadata"]["name"])
                        self.made.identities.append((claim, header.place))
        images = self.definition.root.get("images")
        for plan in self.made.images:
            if plan.policy is None:
                continue
            owner, place = f"the service `{header.name}`", header.place
            if plan.key and type(images) is Mapping:
                owner = f"the image `{plan.key}` of `{header.name}`"
                place = self.definition.source.place(images.key(plan.key))
            self.made.policies.append(PolicyName(plan.policy.name, owner, place))
