"""The spec of a Flux Kustomization as a table, and the rules that no schema says.

Source: the CRD of kustomize-controller 1.9 (`kustomize.toolkit.fluxcd.io/v1`).
"""

from __future__ import annotations

from render.flux.api_parts import (
    DEPENDS_ON,
    IMAGES,
    KUBE_CONFIG,
    PATCHES,
    SECRET_REF,
    common_metadata,
    health_check_exprs,
    ignore_rules,
    reference_kind,
    suspend,
)
from render.flux.api_schema import (
    Problem,
    array,
    choice,
    duration,
    flag,
    health_check_rules,
    kube_config_rules,
    newer_fields,
    obj,
    string_map,
    strings,
    text,
)
from render.flux.versions import FluxVersion

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

KUSTOMIZATION_SPEC = obj(
    "A folder of manifests to build and apply.",
    {
        "interval*": duration("How often to reconcile."),
        "retryInterval": duration("How soon to try again after a failure, by default the interval."),
        "timeout": duration("Limit for validation, apply and health checks."),
        "suspend": suspend(),
        "sourceRef*": reference_kind(
            "The source that holds the folder.", "OCIRepository GitRepository Bucket ExternalArtifact", None, None
        ),
        "path": text("Folder to build, by default the root of the source."),
        "prune*": flag("Delete objects that are no longer in the source."),
        "force": flag("Recreate objects whose immutable fields change."),
        "wait": flag("Wait until everything applied is ready; `healthChecks` are then ignored."),
        "healthChecks": array(
            "Objects to wait for.",
            obj(
                "One object.",
                {
                    "apiVersion": text("API version of the object."),
                    "kind*": text("Kind of the object."),
                    "name*": text("Name of the object."),
                    "namespace": text("Namespace of the object."),
                },
            ),
        ),
        "healthCheckExprs": health_check_exprs(),
        "dependsOn": DEPENDS_ON,
        "deletionPolicy": choice(
            "What happens to the objects when this one is deleted, by default MirrorPrune.",
            "MirrorPrune Delete WaitForTermination Orphan",
        ),
        "targetNamespace": text("Namespace to set on every object.", 1, 63),
        "namePrefix": text("Text to put before every object's name.", 1, 200),
        "nameSuffix": text("Text to put after every object's name.", 1, 200),
        "commonMetadata": common_metadata(),
        "components": strings("Folders of kustomize components."),
        "ignoreMissingComponents": flag("Whether components may be missing."),
        "patches": PATCHES,
        "images": IMAGES,
        "buildMetadata": array(
            "Annotations about the build to put on every object.",
            {"type": "string", "enum": ["originAnnotations", "transformerAnnotations"]},
            since="2.9",
        ),
        "ignore": ignore_rules("Fields to leave out of drift detection and apply.", since="2.9"),
        "postBuild": obj(
            "Variables to fill in after the build.",
            {
                "substitute": string_map("Variables and their values."),
                "substituteFrom": array(
                    "ConfigMaps and Secrets whose keys are variables.",
                    obj(
                        "One of them.",
                        {
                            "kind*": choice("Kind of the object.", "Secret ConfigMap"),
                            "name*": text("Name of the object, of the same namespace.", 1, 253),
                            "optional": flag("Whether the object may be missing."),
                        },
                    ),
                ),
                "substituteStrategy": choice(
                    "Whether to substitute when no variable is defined.", "WithVariables Always", since="2.9"
                ),
            },
        ),
        "decryption": obj(
            "How to decrypt Secrets.",
            {
                "provider*": choice("Tool that encrypted them.", "sops"),
                "secretRef": SECRET_REF,
                "serviceAccountName": text("Service account whose cloud identity gives access to keys."),
            },
        ),
        "serviceAccountName": text("Service account to act as."),
        "kubeConfig": KUBE_CONFIG,
    },
)


def kustomization_rules(spec: dict[str, Any], version: FluxVersion) -> list[Problem]:
    """Return what is wrong with a Flux Kustomization spec beyond its table."""
    return [
        *newer_fields(KUSTOMIZATION_SPEC, spec, version),
        *kube_config_rules(spec),
        *health_check_rules(spec, version),
    ]
