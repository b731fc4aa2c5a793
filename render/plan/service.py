"""One definition in, its files as documents of templates out, with what the whole tree must know of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from render.catalog import Definition
from render.diagnostics import Diagnostic, Location
from render.plan.context import Context, Header, Report, node_at
from render.plan.images import ImagePlan, Images
from render.plan.kept import keep
from render.plan.objects import Extras, Identity
from render.plan.policy import Policies, policy_name
from render.plan.release import Release
from render.plan.sources import Charts, SourcePlan, plain
from render.plan.variables import check_variables
from render.plan.workload import Document, Plain
from render.plan.writing import Writer
from render.yaml.source import Mapping, Node

FILES = ("source", "helmrelease", "image-automation", "workload", "extra")
"""The files of a service, in the order its kustomization lists them."""


@dataclass(slots=True)
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
    configs: list[Document] = field(default_factory=list)
    shared: list[SourcePlan] = field(default_factory=list)
    identities: list[tuple[Identity, Location]] = field(default_factory=list)
    namespaces: set[str] = field(default_factory=set)
    depends_on: list[str] = field(default_factory=list)
    """Catalog services that the service's Flux Kustomization waits for (`flux.kustomizations: service`)."""
    images: list[ImagePlan] = field(default_factory=list)
    timeout: str | None = None
    """Of the release's Helm operations."""
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
        policies = Policies(self.context, self.service.name, self.report)
        for plan in images.plans:
            plan.policy = policies.plan(plan)
        self._keep_committed(images)
        self._check_written_effective(images)
        writer = Writer(images)
        writer.write()
        rollback = self._rolls_back()
        depends_on = self._depends_on()
        if self.header.is_release:
            self._release(images, entry, depends_on, rollback=rollback)
        elif self.service.workload is not None:
            workload = Plain(self.context, self.definition, self.header, images, self.report)
            self.made.apps["workload"] = workload.plan(writer, rollback=rollback)
            self.made.namespaces.add(self.header.namespace)
        self._extras(images)
        self._automation(images)
        self._kustomize()
        self.made.images = images.plans
        if not self.report.failed:
            self._identify()
        return self.made

    def _is_possible(self) -> bool:
        """Refuse a definition that is nothing, or two things at once."""
        service = self.service
        root = self.definition.root
        name_key = root.key("name")
        if service.name == "sources":
            self.report.error(
                "R203",
                name_key,
                "`sources` is no service name",
                cause="`apps/sources/` holds shared chart sources",
                hint="take another name",
            )
        if service.kind == "vm" or service.vm is not None:
            self.report.error(
                "R213",
                root.key("kind") or root.key("vm"),
                "virtual machines are not supported yet",
                cause="this version renders containers only",
                hint="remove the service, or set `enabled: false`",
            )
        if self.header.is_release and service.workload is not None:
            self.report.error(
                "R212",
                root.key("workload"),
                "a service has either `source.chart` or `workload`",
                cause="both would deliver the same service",
                hint="remove one of the two",
            )
        only_chart = {
            "values": service.values,
            "valuesFrom": service.values_from,
            "release": service.release,
            "postRenderers": service.post_renderers,
        }
        if not self.header.is_release:
            for name, value in only_chart.items():
                if value:
                    self.report.error(
                        "R212",
                        root.key(name),
                        f"`{name}` needs `source.chart`",
                        cause="it is part of a HelmRelease",
                        hint="remove it, or give the chart",
                    )
            if service.workload is None and not service.extra_objects and service.kustomize is None:
                self.report.error(
                    "R212",
                    name_key,
                    f"`{service.name}` renders nothing",
                    cause="it has neither `source.chart`, `workload`, `extraObjects` nor `kustomize`",
                    hint="give it one of them, or set `enabled: false`",
                )
        return not self.report.failed

    def _keep_committed(self, images: Images) -> None:
        """Take over what the image bot wrote, where it stays."""
        committed = self.context.committed
        if committed is None or not images.plans or self.report.failed:
            return
        marks = committed.marks(self.service.name)
        for plan in images.plans:
            found = marks.get(policy_name(self.service.name, plan))
            if found is None:
                continue
            declared = plan.reference
            reference = keep(self.context, self.service.name, plan, found, self.report)
            if reference is not None:
                images.take(plan, reference)
                self.made.kept.append((plan.policy.name if plan.policy else "", str(declared), str(reference)))

    def _check_written_effective(self, images: Images) -> None:
        """Refuse an effective reference that is written down and that the table would then rewrite once more."""
        for plan in images.plans:
            is_written = (plan.automated and plan.shape == "string") or plan.reach_values
            if not is_written or not self.header.is_release or any(site.in_object is not None for site in plan.sites):
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

    def _depends_on(self) -> list[dict[str, Any]]:
        """Return the HelmRelease's `dependsOn`; what only Flux Kustomizations can carry goes into the plan."""
        made: list[dict[str, Any]] = []
        node = self.definition.root.get("dependsOn")
        for index, item in enumerate(self.service.depends_on):
            where = node_at(node, index)
            name = item if isinstance(item, str) else item.name
            expression = None if isinstance(item, str) else item.ready_expr
            outside = None if isinstance(item, str) else item.helm_release
            if (name is None) == (outside is None):
                self.report.error(
                    "R201",
                    where,
                    "a dependency names either a service (`name`) or a release outside the catalog (`helmRelease`)",
                    hint="keep one of the two",
                )
                continue
            if outside is not None:
                if not self.header.is_release:
                    self._not_expressible(where, f"the HelmRelease `{outside}`")
                    continue
                namespace, _, release = outside.partition("/")
                made.append({"name": release, "namespace": namespace, "readyExpr": expression})
                continue
            assert name is not None
            target = self.context.headers.get(name)
            if target is None:
                if self.context.is_complete:
                    self._unknown_dependency(where, name)
            elif not target.is_checked:
                continue
            elif not target.enabled:
                self.report.error(
                    "R201",
                    where,
                    f"service `{self.service.name}` needs `{name}`, which is disabled",
                    cause="`dependsOn` would wait for a release that is never there, for ever",
                    hint=f"enable `{name}`, or remove the dependency",
                    related=((target.place, "defined here"),),
                )
            elif name == self.service.name:
                self.report.error("R202", where, f"`{name}` depends on itself", hint="remove it")
            else:
                self._depend(where, target, expression, made)
        return made

    def _depend(self, where: Node | None, target: Header, expression: str | None, made: list[dict[str, Any]]) -> None:
        by_service = self.context.platform.flux.kustomizations == "service"
        if self.header.is_release and target.is_release:
            made.append({"name": target.object_name, "namespace": target.namespace, "readyExpr": expression})
            return
        if not by_service:
            self._not_expressible(where, f"`{target.name}`")
            return
        if expression is not None:
            self.report.error(
                "R201",
                where,
                f"`readyExpr` needs HelmReleases on both sides, and `{target.name}` is none"
                if self.header.is_release
                else "`readyExpr` needs HelmReleases on both sides",
                cause="between other services the Flux Kustomizations wait for each other, by their own readiness",
                hint="remove `readyExpr`",
            )
            return
        self.made.depends_on.append(target.name)

    def _not_expressible(self, where: Node | None, target: str) -> None:
        self.report.error(
            "R201",
            where,
            f"`{self.service.name}` cannot depend on {target}",
            cause="Flux knows dependencies between HelmReleases only, and one side here is none",
            hint="remove it, or set `flux.kustomizations: service` in the platform file",
        )

    def _unknown_dependency(self, where: Node | None, name: str) -> None:
        import difflib

        close = difflib.get_close_matches(name, self.context.headers, 1)
        self.report.error(
            "R201",
            where,
            f"service `{self.service.name}` needs `{name}`, which is not in the catalog",
            cause="Flux would wait for it for ever",
            hint=f"use `{close[0]}`"
            if close
            else "add it, or write `{helmRelease: namespace/name}` for one outside the catalog",
        )

    def _release(self, images: Images, entry: Any, depends_on: list[dict[str, Any]], *, rollback: bool) -> None:
        service, header = self.service, self.header
        chart = self.charts.plan(
            header.object_name if header.object_name == service.name else service.name, header.namespace, entry
        )
        release = Release(self.context, self.definition, header, images, self.report)
        if chart is None:
            return
        spec = release.plan(chart, depends_on, rollback=rollback)
        if spec is None:
            return
        release.warn_hooks()
        self.made.timeout = plain(spec["timeout"])
        common = self._common()
        source = chart.source
        if source.shared is not None:
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

    def _extras(self, images: Images) -> None:
        extras = Extras(self.context, self.definition, self.header, images, self.report)
        for extra in extras.plan():
            document: Document = ("object", {"object": extra.node})
            if extras.in_configs(extra):
                self.made.configs.append(document)
            else:
                self.made.apps.setdefault("extra", []).append(document)
            self.made.identities.append((extra.identity, self.definition.source.place(extra.source)))
            if extra.identity.namespace:
                self.made.namespaces.add(extra.identity.namespace)

    def _kustomize(self) -> None:
        kustomize = self.service.kustomize
        if kustomize is None:
            return
        node = self.definition.root.get("kustomize")
        self.made.resources = kustomize.resources
        self.made.kustomization = {
            "components": kustomize.components,
            "configMapGenerator": kustomize.config_map_generator,
            "secretGenerator": kustomize.secret_generator,
            "generatorOptions": kustomize.generator_options,
            "patches": kustomize.patches,
        }
        for name, where in _foreign_files(node):
            if "://" in name or name.startswith(("github.com/", "git@")):
                self.report.error(
                    "R214",
                    where,
                    f"`{name}` is not in the repository",
                    cause="a build must not depend on the network",
                    hint="vendor it, and name the copy",
                )
            else:
                self.made.foreign.append((name, self.definition.source.place(where)))

    def _identify(self) -> None:
        place = self.header.place
        header = self.header
        kinds = {
            "helmrelease": ("helm.toolkit.fluxcd.io", "HelmRelease"),
            "ocirepository": ("source.toolkit.fluxcd.io", "OCIRepository"),
            "helmrepository": ("source.toolkit.fluxcd.io", "HelmRepository"),
            "gitrepository": ("source.toolkit.fluxcd.io", "GitRepository"),
            "imagerepository": ("image.toolkit.fluxcd.io", "ImageRepository"),
            "imagepolicy": ("image.toolkit.fluxcd.io", "ImagePolicy"),
            "deployment": ("apps", "Deployment"),
            "statefulset": ("apps", "StatefulSet"),
            "service": ("", "Service"),
            "persistentvolumeclaim": ("", "PersistentVolumeClaim"),
        }
        for documents in self.made.apps.values():
            for template, context in documents:
                if template in kinds:
                    group, kind = kinds[template]
                    self.made.identities.append(
                        (Identity(group, kind, context.get("namespace", header.namespace), context["name"]), place)
                    )
        if not self.context.automation:
            # Both modes refuse the same catalogs.
            for plan in self.made.images:
                if plan.policy is not None:
                    for kind in ("ImageRepository", "ImagePolicy"):
                        self.made.identities.append(
                            (
                                Identity(
                                    "image.toolkit.fluxcd.io", kind, self.context.flux_namespace, plan.policy.name
                                ),
                                place,
                            )
                        )


def _foreign_files(node: Node | None) -> list[tuple[str, Node]]:
    """Return the files that `kustomize` names, relative to the service's folder."""
    from render.yaml.source import Scalar, Sequence

    found: list[tuple[str, Node]] = []

    def take(item: Node | None, *, keyed: bool = False) -> None:
        if type(item) is Scalar and not item.is_null:
            name = item.text.split("=", 1)[1] if keyed and "=" in item.text else item.text
            found.append((name, item))

    if type(node) is not Mapping:
        return found
    for key in ("resources", "components"):
        listed = node.get(key)
        for item in listed.items if type(listed) is Sequence else ():
            take(item)
    for key in ("configMapGenerator", "secretGenerator"):
        listed = node.get(key)
        for generator in listed.items if type(listed) is Sequence else ():
            for field_name in ("files", "envs"):
                files = generator.get(field_name) if type(generator) is Mapping else None
                for item in files.items if type(files) is Sequence else ():
                    take(item, keyed=field_name == "files")
            take(generator.get("env") if type(generator) is Mapping else None)
    patches = node.get("patches")
    for patch in patches.items if type(patches) is Sequence else ():
        take(patch.get("path") if type(patch) is Mapping else None)
    return found
