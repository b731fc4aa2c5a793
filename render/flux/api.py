"""A Flux object's kind in, its fields as a table and its rules out; the one door to the `api_*` modules."""

from __future__ import annotations

from collections.abc import Callable

from render.flux.api_helm import HELM_RELEASE_SPEC, POST_RENDERER, VALUES_FROM
from render.flux.api_helm_rules import helm_release_rules
from render.flux.api_image import (
    IMAGE_POLICY_SPEC,
    IMAGE_REPOSITORY_SPEC,
    IMAGE_UPDATE_AUTOMATION_SPEC,
    image_policy_rules,
    image_repository_rules,
    image_update_automation_rules,
)
from render.flux.api_kustomize import KUSTOMIZATION_SPEC, kustomization_rules
from render.flux.api_parts import DEPENDS_ON
from render.flux.api_schema import (
    DURATION,
    DURATION_WITHOUT_HOURS,
    Path,
    Problem,
    Schema,
    dotted,
    matches_pattern,
    newer_fields,
)
from render.flux.api_source import (
    GIT_REPOSITORY_SPEC,
    HELM_REPOSITORY_SPEC,
    OCI_REPOSITORY_SPEC,
    git_repository_rules,
    helm_repository_rules,
    oci_repository_rules,
)
from render.flux.versions import FluxVersion
from render.structs import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "DEPENDS_ON",
    "DURATION",
    "DURATION_WITHOUT_HOURS",
    "GIT_REPOSITORY_SPEC",
    "HELM_RELEASE_SPEC",
    "HELM_REPOSITORY_SPEC",
    "IMAGE_POLICY_SPEC",
    "IMAGE_REPOSITORY_SPEC",
    "IMAGE_UPDATE_AUTOMATION_SPEC",
    "KUSTOMIZATION_SPEC",
    "OBJECTS",
    "OCI_REPOSITORY_SPEC",
    "POST_RENDERER",
    "VALUES_FROM",
    "FluxObject",
    "Path",
    "Problem",
    "Schema",
    "dotted",
    "git_repository_rules",
    "helm_release_rules",
    "helm_repository_rules",
    "image_policy_rules",
    "image_repository_rules",
    "image_update_automation_rules",
    "kustomization_rules",
    "matches_pattern",
    "newer_fields",
    "oci_repository_rules",
]


@struct(frozen=True)
class FluxObject:
    """What is known of a Flux kind."""

    api_version: str
    """The version to write, served by every target."""
    spec: Schema
    rules: Callable[[dict[str, Any], FluxVersion], list[Problem]]


OBJECTS: dict[str, FluxObject] = {
    "HelmRelease": FluxObject("helm.toolkit.fluxcd.io/v2", HELM_RELEASE_SPEC, helm_release_rules),
    "HelmRepository": FluxObject("source.toolkit.fluxcd.io/v1", HELM_REPOSITORY_SPEC, helm_repository_rules),
    "OCIRepository": FluxObject("source.toolkit.fluxcd.io/v1", OCI_REPOSITORY_SPEC, oci_repository_rules),
    "GitRepository": FluxObject("source.toolkit.fluxcd.io/v1", GIT_REPOSITORY_SPEC, git_repository_rules),
    "ImageRepository": FluxObject("image.toolkit.fluxcd.io/v1", IMAGE_REPOSITORY_SPEC, image_repository_rules),
    "ImagePolicy": FluxObject("image.toolkit.fluxcd.io/v1", IMAGE_POLICY_SPEC, image_policy_rules),
    "ImageUpdateAutomation": FluxObject(
        "image.toolkit.fluxcd.io/v1", IMAGE_UPDATE_AUTOMATION_SPEC, image_update_automation_rules
    ),
    "Kustomization": FluxObject("kustomize.toolkit.fluxcd.io/v1", KUSTOMIZATION_SPEC, kustomization_rules),
}
"""The Flux kinds that are written, by kind."""
