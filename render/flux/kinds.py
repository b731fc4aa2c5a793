"""An `apiVersion` and a kind in, whose they are and whether they live in a namespace out."""

from __future__ import annotations

_FLUX_SUFFIX = ".toolkit.fluxcd.io"

_CLUSTER: dict[str, str] = {
    "": "Namespace Node PersistentVolume ComponentStatus",
    "admissionregistration.k8s.io": (
        "MutatingAdmissionPolicy MutatingAdmissionPolicyBinding MutatingWebhookConfiguration "
        "ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration"
    ),
    "apiextensions.k8s.io": "CustomResourceDefinition",
    "apiregistration.k8s.io": "APIService",
    "authentication.k8s.io": "SelfSubjectReview TokenReview",
    "authorization.k8s.io": "SelfSubjectAccessReview SelfSubjectRulesReview SubjectAccessReview",
    "certificates.k8s.io": "CertificateSigningRequest ClusterTrustBundle",
    "flowcontrol.apiserver.k8s.io": "FlowSchema PriorityLevelConfiguration",
    "internal.apiserver.k8s.io": "StorageVersion",
    "networking.k8s.io": "IPAddress IngressClass ServiceCIDR",
    "node.k8s.io": "RuntimeClass",
    "rbac.authorization.k8s.io": "ClusterRole ClusterRoleBinding",
    "resource.k8s.io": "DeviceClass DeviceTaintRule ResourcePoolStatusRequest ResourceSlice",
    "scheduling.k8s.io": "PriorityClass",
    "storage.k8s.io": "CSIDriver CSINode StorageClass VolumeAttachment VolumeAttributesClass",
    "storagemigration.k8s.io": "StorageVersionMigration",
}

_NAMESPACED: dict[str, str] = {
    "": (
        "Binding ConfigMap Endpoints Event LimitRange PersistentVolumeClaim Pod PodTemplate ReplicationController "
        "ResourceQuota Secret Service ServiceAccount"
    ),
    "apps": "ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet",
    "authorization.k8s.io": "LocalSubjectAccessReview",
    "autoscaling": "HorizontalPodAutoscaler",
    "batch": "CronJob Job",
    "certificates.k8s.io": "PodCertificateRequest",
    "coordination.k8s.io": "Lease LeaseCandidate",
    "discovery.k8s.io": "EndpointSlice",
    "events.k8s.io": "Event",
    "networking.k8s.io": "Ingress NetworkPolicy",
    "policy": "Eviction PodDisruptionBudget",
    "rbac.authorization.k8s.io": "Role RoleBinding",
    "resource.k8s.io": "ResourceClaim ResourceClaimTemplate",
    "scheduling.k8s.io": "PodGroup Workload",
    "storage.k8s.io": "CSIStorageCapacity",
    "helm.toolkit.fluxcd.io": "HelmRelease",
    "image.toolkit.fluxcd.io": "ImagePolicy ImageRepository ImageUpdateAutomation",
    "kustomize.toolkit.fluxcd.io": "Kustomization",
    "notification.toolkit.fluxcd.io": "Alert Provider Receiver",
    "source.toolkit.fluxcd.io": "Bucket ExternalArtifact GitRepository HelmChart HelmRepository OCIRepository",
}

KINDS: dict[tuple[str, str], bool] = {
    **{(group, kind): True for group, kinds in _CLUSTER.items() for kind in kinds.split()},
    **{(group, kind): False for group, kinds in _NAMESPACED.items() for kind in kinds.split()},
}
"""(API group, kind) -> whether it is cluster-scoped, of Kubernetes 1.36 and Flux; the core group is the empty text."""

BUILTIN_GROUPS = frozenset(group for group, _ in KINDS if not group.endswith(_FLUX_SUFFIX))
"""The API groups that every Kubernetes 1.36 API server brings along.

Other groups under `k8s.io` (`gateway.networking.k8s.io`, `snapshot.storage.k8s.io`, `metrics.k8s.io` ...) belong to
CRDs or to aggregated API servers that something has to install first.
"""


def api_group(api_version: str) -> str | None:
    """Return the group of an `apiVersion`, empty for the core group (`v1`); None for a text that is no apiVersion."""
    if api_version == "v1":
        return ""
    group, slash, version = api_version.partition("/")
    return group if slash and group and version and "/" not in version else None


def is_known_group(api_version: str) -> bool:
    """Say whether an `apiVersion` belongs to Kubernetes itself or to Flux, so that its kinds exist before any chart."""
    group = api_group(api_version)
    return group is not None and (group in BUILTIN_GROUPS or group.endswith(_FLUX_SUFFIX))


def is_cluster_scoped(api_version: str, kind: str) -> bool | None:
    """Say whether a kind has no namespace; None for a kind that is not in `KINDS`."""
    group = api_group(api_version)
    return None if group is None else KINDS.get((group, kind))
