"""The ServiceDefinition: one service of the catalog, as people write it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from render.model.base import LABEL_OR_VARIABLE, Annotations, Free, Label, Labels, Model, NameRef, ObjectName
from render.model.vm import Vm

ServiceName = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", min_length=1, max_length=53)]
TargetName = Annotated[str, Field(pattern=LABEL_OR_VARIABLE, min_length=1, max_length=53)]
"""The name of a release or workload; one that holds a variable of Flux's postBuild is judged only in the cluster."""
TargetNamespace = Annotated[str, Field(pattern=LABEL_OR_VARIABLE, min_length=1, max_length=63)]
"""A namespace, by the same rule."""
Shape = Literal["split", "registry", "digest", "string", "tag", "postRenderer"]
DigestMode = Literal["never", "ifNotPresent", "always"]


class FilterTags(Model):
    """Which tags a policy sees, and what of them it orders."""

    pattern: str | None = Field(None, description="RE2 pattern; a tag that it does not find is not considered.")
    extract: str | None = Field(
        None, description="Go template of the pattern's groups that is ordered in a tag's place."
    )


class Update(Model):
    """How an image is kept up to date."""

    channel: Literal["stable", "prerelease", "calver", "build", "digest", "custom"] = Field(
        "stable", description="What counts as the next version."
    )
    range: str | None = Field(None, description="Semver range (Masterminds grammar) the new version must lie in.")
    cadence: str | None = Field(
        None,
        description="How often the registry is scanned: a duration, or a cron expression whose shortest gap is taken. "
        "Of a virtual machine: when it updates itself.",
    )
    digest: DigestMode | None = Field(None, description="Whether the digest is written beside the tag, and followed.")
    auto_rollback_on_failed_health: bool | None = Field(
        None, description="Roll a failed upgrade back once its health checks fail. Default: true."
    )
    pin: str | None = Field(
        None, description="This tag (`TAG` or `TAG@digest`), and no image automation; no updates in a virtual machine."
    )
    policy: Free | None = Field(None, description="ImagePolicy `policy`, as it is (channel `custom`).")
    filter_tags: FilterTags | None = Field(None, description="ImagePolicy `filterTags`, as it is (channel `custom`).")


class Image(Model):
    """An image and where it stands."""

    ref: str | None = Field(None, description="The reference; absent: read from `values` at `at`.")
    at: str | list[str] | dict[str, str] | None = Field(
        None, description="Path into `values` (or `extraObjects[…]`), a list of paths, or a path for each part."
    )
    shape: Shape | None = Field(None, description="How the image stands at `at`. Default: `split`.")
    reach: Literal["values"] | None = Field(
        None, description="`values`: kustomize does not look where the chart puts it; write the effective reference."
    )


class ExtraImage(Image):
    """A further image, with its own update."""

    update: Update | None = Field(None, description="Absent: the image is fixed.")


class ExistingSource(Model):
    """A source object that is not of the catalog, and is there all the same."""

    kind: Literal["HelmRepository", "OCIRepository", "GitRepository", "Bucket", "HelmChart", "ExternalArtifact"] = (
        Field(description="Kind of the object.")
    )
    name: str = Field(description="Name of the object.", min_length=1, max_length=253)
    namespace: TargetNamespace | None = Field(None, description="Its namespace. Default: the service's.")


class Chart(Model):
    """The chart: by a name of the platform's `charts`, by URL, from Git, or from a source object that exists."""

    repository: str | None = Field(None, description="A key of the platform's `charts`.")
    url: str | None = Field(
        None, description="`oci://…` (the chart, or its folder when `name` is given) or `https://…`."
    )
    git: str | None = Field(None, description="URL of a Git repository (`https://…` or `ssh://…`).")
    existing_source: ExistingSource | None = Field(
        None, description="A source object that something else brings; none is rendered."
    )
    name: str | None = Field(None, description="Name of the chart in its repository.", min_length=1)
    path: str | None = Field(None, description="Folder of the chart in the Git repository.")
    ref: Free | None = Field(None, description="GitRepository `ref`: branch, tag, semver, name or commit.")
    version: str | None = Field(None, description="Exact version.", min_length=1)
    version_range: str | None = Field(None, description="Semver range instead of an exact version.", min_length=1)
    values_files: list[str] | None = Field(None, description="Values files of the chart itself (HTTP and Git charts).")
    secret_ref: NameRef | None = Field(None, description="Credentials of the source.")
    cert_secret_ref: NameRef | None = Field(None, description="TLS certificates of the source.")
    insecure: bool | None = Field(None, description="Plain HTTP (OCI charts).")
    provider: str | None = Field(None, description="Cloud provider whose identity is used.")
    verify: Free | None = Field(None, description="Signature verification, as the source takes it.")
    interval: str | None = Field(None, description="How often the source is fetched.")


class ServiceSource(Model):
    """What a service is made of."""

    image: str | Image | None = Field(None, description="The main image: a reference, or where it stands.")
    chart: Chart | None = Field(None, description="The Helm chart; absent: a plain workload.")


class Dependency(Model):
    """A service, or a HelmRelease outside the catalog, that must be ready first."""

    name: str | None = Field(None, description="A service of the catalog.")
    helm_release: str | None = Field(
        None, description="`namespace/name` of a HelmRelease outside the catalog.", pattern=r"^[a-z0-9.-]+/[a-z0-9.-]+$"
    )
    ready_expr: str | None = Field(None, description="CEL expression that replaces the built-in readiness check.")


class ValueFrom(Model):
    """An environment variable's value from elsewhere."""

    value_from: Free = Field(description="EnvVarSource, in Kubernetes' form.")


class Port(Model):
    """A port of the container and of the Service."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", max_length=15)] = Field(description="Name.")
    container_port: int = Field(description="Port the container listens on.", ge=1, le=65535)
    port: int | None = Field(None, description="Port of the Service; default: `containerPort`.", ge=1, le=65535)
    protocol: Literal["TCP", "UDP", "SCTP"] = Field("TCP", description="Protocol.")


class ServiceOptions(Model):
    """The Service of a plain workload."""

    type: Literal["ClusterIP", "NodePort", "LoadBalancer"] | None = Field(None, description="Service type.")
    annotations: Annotations = Field({}, description="Annotations of the Service only.")


class Probes(Model):
    """The container's probes, each in Kubernetes' form."""

    readiness: Free | None = Field(None, description="readinessProbe; the gate of an automatic rollback.")
    liveness: Free | None = Field(None, description="livenessProbe.")
    startup: Free | None = Field(None, description="startupProbe.")


class Volume(Model):
    """A volume and where it is mounted; exactly one source."""

    name: Label = Field(description="Name of the volume.")
    mount_path: str = Field(description="Where it is mounted.", min_length=1)
    sub_path: str | None = Field(None, description="Path inside the volume.")
    read_only: bool | None = Field(None, description="Mount it read-only.")
    empty_dir: Free | None = Field(None, description="EmptyDirVolumeSource.")
    config_map: Free | None = Field(None, description="ConfigMapVolumeSource.")
    secret: Free | None = Field(None, description="SecretVolumeSource.")
    host_path: Free | None = Field(None, description="HostPathVolumeSource.")
    nfs: Free | None = Field(None, description="NFSVolumeSource.")
    existing_claim: ObjectName | None = Field(None, description="Name of a PersistentVolumeClaim that exists.")
    claim: Free | None = Field(None, description="PersistentVolumeClaimSpec of a claim rendered for the service.")
    claim_template: Free | None = Field(None, description="PersistentVolumeClaimSpec; makes a StatefulSet.")


class Workload(Model):
    """A service without a chart: a Deployment, or a StatefulSet when a volume has a `claimTemplate`."""

    replicas: int | None = Field(None, description="Number of pods. Default: 1.", ge=0)
    command: list[str] | None = Field(None, description="Entry point.")
    args: list[str] | None = Field(None, description="Arguments.")
    env: dict[str, str | ValueFrom] = Field({}, description="Environment: name to string, or to `{valueFrom: …}`.")
    env_from: list[Free] = Field([], description="EnvFromSource list, in Kubernetes' form.")
    ports: list[Port] = Field([], description="Ports; with at least one there is a Service.")
    service: ServiceOptions | None = Field(None, description="Options of the Service.")
    probes: Probes | None = Field(None, description="Probes.")
    resources: Free | None = Field(None, description="ResourceRequirements.")
    volumes: list[Volume] = Field([], description="Volumes.")
    security_context: Free | None = Field(None, description="SecurityContext of the container.")
    pod_security_context: Free | None = Field(None, description="PodSecurityContext.")
    service_account_name: ObjectName | None = Field(None, description="ServiceAccount of the pods.")
    strategy: Free | None = Field(None, description="DeploymentStrategy (`updateStrategy` of a StatefulSet).")


class Kustomize(Model):
    """Further fields of the service's kustomization.yaml; the files they name are yours, beside the rendered ones."""

    resources: list[str] = Field([], description="Further resources.")
    config_map_generator: list[Free] | None = Field(None, description="configMapGenerator.")
    secret_generator: list[Free] | None = Field(None, description="secretGenerator.")
    generator_options: Free | None = Field(None, description="generatorOptions.")
    components: list[str] | None = Field(None, description="Components.")
    patches: list[Free] | None = Field(None, description="Patches.")


class Service(Model):
    """A ServiceDefinition."""

    name: ServiceName = Field(description="Unique in the catalog; a DNS-1123 label of at most 53 characters.")
    kind: Literal["container", "vm"] = Field("container", description="What runs it.")
    object_name: TargetName | None = Field(None, description="Name of the HelmRelease or workload. Default: `name`.")
    namespace: TargetNamespace | None = Field(
        None, description="Namespace. Default: the platform's `defaults.namespace`, else the name."
    )
    description: str | None = Field(None, description="For people and reports; rendered nowhere.")
    labels: Labels = Field({}, description="Labels of every object rendered for the service.")
    annotations: Annotations = Field({}, description="Annotations of every object rendered for the service.")
    enabled: bool = Field(True, description="`false`: not rendered; nothing enabled may depend on it.")
    depends_on: list[str | Dependency] = Field([], description="What must be ready first.")
    source: ServiceSource | None = Field(None, description="Image and chart.")
    images: dict[str, str | ExtraImage] = Field({}, description="Further images by name.")
    update: Update | None = Field(None, description="Keeps `source.image` up to date; absent: no image automation.")
    values: Free | None = Field(None, description="Helm values, carried as written.")
    values_from: list[Free] = Field([], description="HelmRelease `valuesFrom`.")
    release: Free | None = Field(None, description="Any other field of the HelmRelease's spec.")
    post_renderers: list[Free] = Field([], description="The release's own post-renderers.")
    image_overrides: Literal["all", "declared", "none"] | None = Field(
        None, description="Which overrides the release carries. Default: the platform's `registries.emit`."
    )
    workload: Workload | None = Field(None, description="Plain delivery, instead of a chart.")
    vm: Vm | None = Field(None, description="The virtual machine (`kind: vm`).")
    extra_objects: list[Free] = Field([], description="Raw Kubernetes objects that ship with the service.")
    kustomize: Kustomize | None = Field(None, description="Further fields of the service's kustomization.yaml.")


Values = Any
"""A source node that is carried as written (what `Free` fields hold after reading)."""
