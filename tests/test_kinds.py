from __future__ import annotations

import pytest

from render.flux.kinds import BUILTIN_GROUPS, KINDS, api_group, is_cluster_scoped, is_known_group


@pytest.mark.parametrize(
    "api_version",
    [
        "v1",
        "apps/v1",
        "batch/v1",
        "autoscaling/v2",
        "policy/v1",
        "networking.k8s.io/v1",
        "rbac.authorization.k8s.io/v1",
        "apiextensions.k8s.io/v1",
        "resource.k8s.io/v1beta2",
        "helm.toolkit.fluxcd.io/v2",
        "notification.toolkit.fluxcd.io/v1beta3",
    ],
)
def test_kubernetes_and_flux_groups_are_known(api_version: str) -> None:
    assert is_known_group(api_version) is True


@pytest.mark.parametrize(
    "api_version",
    [
        "gateway.networking.k8s.io/v1",
        "snapshot.storage.k8s.io/v1",
        "metrics.k8s.io/v1beta1",
        "policy.networking.k8s.io/v1alpha1",
        "cluster.x-k8s.io/v1beta1",
        "kustomize.config.k8s.io/v1beta1",
        "monitoring.coreos.com/v1",
        "cert-manager.io/v1",
        "fluxcd.controlplane.io/v1",
        "source.extensions.fluxcd.io/v1beta1",
        "toolkit.fluxcd.io/v1",
        "apps.example.org/v1",
        "extensions/v1beta1",
        "",
        "v2",
        "apps",
        "apps/",
        "/v1",
        "apps/v1/x",
        "APPS/v1",
    ],
)
def test_other_groups_are_not_known(api_version: str) -> None:
    assert is_known_group(api_version) is False


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [
        ("v1", "Namespace"),
        ("v1", "PersistentVolume"),
        ("rbac.authorization.k8s.io/v1", "ClusterRole"),
        ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"),
        ("storage.k8s.io/v1", "StorageClass"),
        ("networking.k8s.io/v1", "IngressClass"),
        ("scheduling.k8s.io/v1", "PriorityClass"),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
        ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"),
        ("admissionregistration.k8s.io/v1beta1", "MutatingAdmissionPolicy"),
        ("apiregistration.k8s.io/v1", "APIService"),
        ("node.k8s.io/v1", "RuntimeClass"),
    ],
)
def test_cluster_scoped_kinds(api_version: str, kind: str) -> None:
    assert is_cluster_scoped(api_version, kind) is True


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [
        ("v1", "ConfigMap"),
        ("v1", "PersistentVolumeClaim"),
        ("apps/v1", "Deployment"),
        ("batch/v1", "CronJob"),
        ("networking.k8s.io/v1", "Ingress"),
        ("rbac.authorization.k8s.io/v1", "Role"),
        ("storage.k8s.io/v1", "CSIStorageCapacity"),
        ("helm.toolkit.fluxcd.io/v2", "HelmRelease"),
    ],
)
def test_namespaced_kinds(api_version: str, kind: str) -> None:
    assert is_cluster_scoped(api_version, kind) is False


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [
        ("cert-manager.io/v1", "ClusterIssuer"),
        ("gateway.networking.k8s.io/v1", "GatewayClass"),
        ("v1", "Deployment"),
        ("apps/v1", "Namespace"),
        ("v1", "namespace"),
        ("", "Namespace"),
    ],
)
def test_scope_of_other_kinds_is_unknown(api_version: str, kind: str) -> None:
    assert is_cluster_scoped(api_version, kind) is None


def test_group_of_an_api_version() -> None:
    assert [api_group(text) for text in ("v1", "apps/v1", "apps")] == ["", "apps", None]


def test_every_listed_kind_is_in_a_known_group() -> None:
    assert all(is_known_group(f"{group}/v1" if group else "v1") for group, _ in KINDS)
    assert len(BUILTIN_GROUPS) == 23
