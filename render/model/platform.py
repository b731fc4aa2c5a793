"""The platform file: one cluster, and everything that is no service's own business."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from render.model.base import Duration, Free, Label, Labels, Model, NameRef, ObjectName
from render.model.service import Shape

Variable = Annotated[str, Field(pattern=r"^[_A-Za-z][_A-Za-z0-9]*$")]


class FluxSource(Model):
    """The source that Flux Kustomizations of the cluster read."""

    kind: Literal["GitRepository", "OCIRepository", "Bucket"] = Field("GitRepository", description="Kind.")
    name: ObjectName = Field("flux-system", description="Name.")
    namespace: Label | None = Field(None, description="Namespace. Default: `flux.namespace`.")


class Flux(Model):
    """The Flux installation the output is for."""

    version: str = Field(
        description="Flux version: 2.7 to 2.9, optionally with a patch number.", pattern=r"^2\.[0-9]+(\.[0-9]+)?$"
    )
    namespace: Label = Field("flux-system", description="Namespace of Flux; holds policies and shared sources.")
    source: FluxSource = Field(FluxSource(), description="Source of the Flux Kustomizations.")
    cross_namespace_refs: bool = Field(
        True, description="`false`: the controllers run with `--no-cross-namespace-refs`."
    )
    decryption: Free | None = Field(
        None, description="Kustomization `decryption` of the tree, for SOPS files: `{provider: sops, secretRef: …}`."
    )
    kustomizations: Literal["all", "namespace", "service"] = Field(
        "all", description="Flux Kustomizations: one for all services, one a namespace, or one a service."
    )


class ChartSource(Model):
    """A named chart source."""

    url: str | None = Field(None, description="`oci://…` (the chart, or its folder with `name`) or `https://…`.")
    git: str | None = Field(None, description="URL of a Git repository.")
    name: str | None = Field(None, description="Name of the chart, where the source holds one.", min_length=1)
    path: str | None = Field(None, description="Folder of the chart in the Git repository.")
    ref: Free | None = Field(None, description="GitRepository `ref`.")
    version: str | None = Field(
        None, description="Exact version for every service; shares the OCI source.", min_length=1
    )
    version_range: str | None = Field(None, description="Semver range instead of an exact version.", min_length=1)
    at: str | None = Field(None, description="Default image path of its services; `{service}` stands for the name.")
    shape: Shape | None = Field(None, description="Default image shape of its services.")
    interval: Duration | None = Field(None, description="How often the source is fetched.")
    secret_ref: NameRef | None = Field(None, description="Credentials of the source.")
    cert_secret_ref: NameRef | None = Field(None, description="TLS certificates of the source.")
    insecure: bool | None = Field(None, description="Plain HTTP (OCI sources).")
    provider: str | None = Field(None, description="Cloud provider whose identity is used.")
    verify: Free | None = Field(None, description="Signature verification, as the source takes it.")


class Override(Model):
    """A kustomize `images` entry."""

    name: str = Field(description="The image name as it is spelled in manifests.")
    new_name: str | None = Field(None, description="The name it becomes.")
    new_tag: str | None = Field(None, description="The tag it becomes; drops an existing digest.")
    digest: str | None = Field(
        None, description="The sha256 digest it becomes; drops the tag unless `newTag` is given."
    )


class Credentials(Model):
    """How one registry, or a path in it, is reached."""

    registry: str = Field(description="Host, optionally with a path; the longest match wins.", min_length=1)
    secret_ref: NameRef | None = Field(None, description="Secret of type kubernetes.io/dockerconfigjson.")
    cert_secret_ref: NameRef | None = Field(None, description="Secret with TLS certificates.")
    insecure: bool | None = Field(None, description="Plain HTTP.")
    provider: Literal["generic", "aws", "azure", "gcp"] | None = Field(None, description="Cloud provider.")


class Registries(Model):
    """Registries and what becomes of the images in them."""

    image_overrides: list[Override] | None = Field(
        None, description="The override table. `[]` says there is none; absent says nothing."
    )
    emit: Literal["all", "declared", "none"] = Field("all", description="Which entries a release carries by default.")
    credentials: list[Credentials] = Field([], description="Credentials of registries.")


class Author(Model):
    """Author of the bot's commits."""

    name: str = Field("fluxcdbot", description="Name.")
    email: str | None = Field(None, description="Address; required when the automation is enabled.")


class ImageAutomation(Model):
    """The ImageUpdateAutomation of the cluster."""

    enabled: bool = Field(False, description="Render it; policies and markers are rendered either way.")
    interval: Duration = Field("30m", description="How often it runs.")
    branch: str | None = Field(None, description="Branch it checks out. Default: main.")
    push_branch: str | None = Field(None, description="Branch it pushes to. Default: `branch`.")
    push_refspec: str | None = Field(
        None, description="Reference that it pushes to besides, as `source:destination`.", min_length=1
    )
    push_options: dict[str, str] = Field({}, description="Push options for the Git server.")
    author: Author = Field(Author(), description="Author of its commits.")
    message_template: str | None = Field(
        None, description="Go template of its commit messages; carried as it is, variables of postBuild aside."
    )
    signing_key: Free | None = Field(None, description="ImageUpdateAutomation `signingKey`.")
    policy_selector: Free | None = Field(
        None, description="ImageUpdateAutomation `policySelector`; policies get its `matchLabels`."
    )
    secret_file: str | None = Field(None, description="`NAME.sops.yaml` beside it, listed in the kustomization.")


class Alerts(Model):
    """Alerts about failed updates."""

    enabled: bool = Field(False, description="Render the PrometheusRule, and the metrics that it needs.")
    namespace: Label = Field("monitoring", description="Its namespace.")
    labels: Labels = Field({}, description="Its labels.")
    runbooks: str = Field(
        "docs/alerts.md",
        description="Address of the page that says what to do; an alert links to its section.",
        pattern=r"^([^\s{]|\{[^\s{])+$",
    )


class Defaults(Model):
    """Defaults of every service."""

    namespace: Label | None = Field(None, description="Namespace of services that name none.")
    namespaces: bool = Field(True, description="Render the Namespace objects.")
    interval: Duration = Field("1h", description="Interval of releases and sources.")
    timeout: Duration | None = Field(None, description="Timeout of Helm operations.")
    retries: int = Field(3, description="Upgrade retries of an automatic rollback.", ge=-1)
    release: Free | None = Field(None, description="HelmRelease spec fields of every release.")
    substitute: list[Variable] | None = Field(
        None, description="Variables that Flux's postBuild fills; absent: this tree has no postBuild."
    )


class Platform(Model):
    """A platform file."""

    cluster: Label = Field(description="Name of the cluster.")
    root: str = Field(".", description="Output root relative to the repository's top.")
    flux: Flux = Field(description="The Flux installation.")
    charts: dict[str, ChartSource] = Field({}, description="Named chart sources.")
    registries: Registries = Field(Registries(), description="Registries and overrides.")
    flux_image_overrides: list[Override] = Field([], description="Overrides of Flux's own images.")
    image_automation: ImageAutomation = Field(ImageAutomation(), description="The ImageUpdateAutomation.")
    alerts: Alerts = Field(Alerts(), description="Alerts about failed updates.")
    defaults: Defaults = Field(Defaults(), description="Defaults of every service.")
