"""The spec of a HelmRelease (`helm.toolkit.fluxcd.io/v2`) as tables; `api_helm_rules` says what no schema can.

Source: the CRD of helm-controller 1.6.
"""

from __future__ import annotations

from render.flux.api_parts import (
    DEPENDS_ON,
    IMAGES,
    KUBE_CONFIG,
    LABEL_AND_ANNOTATION_FIELDS,
    PATCHES,
    SECRET_REF,
    VERIFY_PROVIDER,
    common_metadata,
    health_check_exprs,
    ignore_rules,
    reference_kind,
    suspend,
)
from render.flux.api_schema import (
    Schema,
    anything,
    array,
    choice,
    duration,
    flag,
    integer,
    obj,
    strings,
    text,
)

TARGET_PATH = r"^([a-zA-Z0-9_\-.\\\/]|\[[0-9]{1,5}\])+$"
_CRDS = "Skip Create CreateReplace"
_APPLY = "enabled disabled auto"

VALUES_FROM = array(
    "ConfigMaps and Secrets with values, merged in order below `values`.",
    obj(
        "One source of values.",
        {
            "kind*": choice("Kind of the object.", "Secret ConfigMap"),
            "name*": text("Name of the object, of the release's namespace.", 1, 253),
            "valuesKey": text("Key in the object, by default `values.yaml`.", None, 253, pattern=r"^[\-._a-zA-Z0-9]+$"),
            "targetPath": text("Path in the values where the single value goes.", None, 250, pattern=TARGET_PATH),
            "optional": flag("Whether the object may be missing."),
            "literal": flag("Take the value at `targetPath` verbatim, not in `--set` syntax.", since="2.9"),
        },
    ),
)

POST_RENDERER = obj(
    "One step that edits what the chart renders.",
    {"kustomize": obj("The edits, in kustomize's form.", {"patches": PATCHES, "images": IMAGES})},
)

_CHART = obj(
    "The chart by name, in a source that holds charts.",
    {
        "metadata": obj("Metadata of the HelmChart object.", LABEL_AND_ANNOTATION_FIELDS),
        "spec*": obj(
            "The chart.",
            {
                "chart*": text("Name of the chart, or its path in a Git repository or bucket.", 1, 2048),
                "version": text("Version or range; any version when absent, ignored for Git and buckets."),
                "sourceRef*": reference_kind(
                    "The source that holds the chart.", "HelmRepository GitRepository Bucket", 253, 63
                ),
                "interval": duration("How often to look for a new version, by default the release's interval."),
                "reconcileStrategy": choice("What counts as a new chart.", "ChartVersion Revision"),
                "valuesFiles": strings("Values files of the source to use instead of the chart's own."),
                "ignoreMissingValuesFiles": flag("Whether values files may be missing."),
                "verify": obj(
                    "Signature check, for charts of an OCI HelmRepository.",
                    {"provider*": VERIFY_PROVIDER, "secretRef": SECRET_REF},
                ),
            },
        ),
    },
)


def _strategy(action: str) -> Schema:
    return obj(
        f"What to do when the {action} fails.",
        {
            "name*": choice("The strategy.", "RemediateOnFailure RetryOnFailure"),
            "retryInterval": duration("Pause between attempts, for `RetryOnFailure` only."),
        },
    )


def _remediation(undo: str, more: dict[str, Schema]) -> Schema:
    return obj(
        f"{undo} after a failure.",
        {
            "retries": integer("Further attempts after a failure; negative for no limit."),
            "ignoreTestFailures": flag("Do nothing about failed tests."),
            "remediateLastFailure": flag("Act after the last attempt too."),
            **more,
        },
    )


def _timeout(action: str) -> Schema:
    return duration(f"Limit for each Kubernetes operation of the {action}.")


def _waiting(action: str) -> dict[str, Schema]:
    return {
        "timeout": _timeout(action),
        "disableWait": flag(f"Do not wait for the objects to be ready after the {action}."),
        "disableWaitForJobs": flag(f"Do not wait for Jobs to complete after the {action}."),
        "disableHooks": flag(f"Run no hooks during the {action}."),
    }


def _applying(action: str) -> dict[str, Schema]:
    return {
        **_waiting(action),
        "disableOpenAPIValidation": flag("Do not check rendered objects against the cluster's OpenAPI schema."),
        "disableSchemaValidation": flag("Do not check values against the chart's JSON schema."),
        "disableTakeOwnership": flag("Do not adopt existing objects that belong to no release."),
    }


_INSTALL = obj(
    "How to install the release.",
    {
        **_applying("install"),
        "strategy": _strategy("install"),
        "remediation": _remediation("Uninstall", {}),
        "replace": flag("Use the name of a deleted release again."),
        "crds": choice("What to do with the chart's CRDs, by default Create.", _CRDS),
        "skipCRDs": flag("Deprecated and without effect; say `crds: Skip`."),
        "createNamespace": flag("Create `targetNamespace` if it does not exist."),
        "serverSideApply": flag("Whether to use server-side apply, by default true.", since="2.8"),
    },
)

_UPGRADE = obj(
    "How to upgrade the release.",
    {
        **_applying("upgrade"),
        "strategy": _strategy("upgrade"),
        "remediation": _remediation(
            "Rollback or uninstall",
            {"strategy": choice("What to do after a failure, by default rollback.", "rollback uninstall")},
        ),
        "force": flag("Replace objects that cannot be patched; ignored by server-side apply."),
        "preserveValues": flag("Start from the values of the last release, which makes the release non-declarative."),
        "cleanupOnFail": flag("Delete objects that a failed upgrade created."),
        "crds": choice("What to do with the chart's CRDs, in practice Create by default.", _CRDS),
        "serverSideApply": choice("Whether to use server-side apply, by default auto.", _APPLY, since="2.8"),
        "chartNameChangeStrategy": choice(
            "What to do when the chart's name changes, by default Reinstall.", "InPlaceUpdate Reinstall", since="2.9"
        ),
    },
)

_ROLLBACK = obj(
    "How to roll the release back.",
    {
        **_waiting("rollback"),
        "recreate": flag("Without effect since Flux 2.8."),
        "force": flag("Replace objects that cannot be patched; ignored by server-side apply."),
        "cleanupOnFail": flag("Delete objects that a failed rollback created."),
        "serverSideApply": choice("Whether to use server-side apply, by default auto.", _APPLY, since="2.8"),
    },
)

_UNINSTALL = obj(
    "How to uninstall the release.",
    {
        "timeout": _timeout("uninstall"),
        "disableHooks": flag("Run no hooks during the uninstall."),
        "keepHistory": flag("Keep the release history."),
        "disableWait": flag("Do not wait for the objects to be gone."),
        "deletionPropagation": choice("How dependent objects are deleted.", "background foreground orphan"),
    },
)

_TEST = obj(
    "Whether and how to run the chart's tests.",
    {
        "enable": flag("Run them after an install or upgrade."),
        "timeout": _timeout("tests"),
        "ignoreFailures": flag("Do not count failed tests as a failure."),
        "filters": array(
            "Which tests to run.",
            obj(
                "One test.",
                {"name*": text("Name of the test.", 1, 253), "exclude": flag("Leave it out instead.")},
            ),
        ),
    },
)

HELM_RELEASE_SPEC = obj(
    "What a HelmRelease installs, and how.",
    {
        "interval*": duration("How often to reconcile."),
        "timeout": duration("Limit for each Kubernetes operation, by default 5m."),
        "suspend": suspend(),
        "chart": _CHART,
        "chartRef": reference_kind(
            "The object that holds the chart.", "OCIRepository HelmChart ExternalArtifact", 253, 63
        ),
        "releaseName": text("Name of the Helm release, by default composed of target namespace and name.", 1, 53),
        "targetNamespace": text("Namespace to install into, by default the HelmRelease's own.", 1, 63),
        "storageNamespace": text("Namespace of Helm's records, by default the HelmRelease's own.", 1, 63),
        "serviceAccountName": text("Service account to act as.", 1, 253),
        "kubeConfig": KUBE_CONFIG,
        "persistentClient": flag("Use one client for the whole reconciliation, by default true."),
        "maxHistory": integer("Revisions that Helm keeps, by default 5; 0 for all."),
        "dependsOn": DEPENDS_ON,
        "values": anything("Values for the chart."),
        "valuesFrom": VALUES_FROM,
        "install": _INSTALL,
        "upgrade": _UPGRADE,
        "rollback": _ROLLBACK,
        "uninstall": _UNINSTALL,
        "test": _TEST,
        "driftDetection": obj(
            "What to do about changes made in the cluster.",
            {
                "mode": choice("Correct, report or ignore them, by default disabled.", "enabled warn disabled"),
                "ignore": ignore_rules("Fields to leave out of the comparison."),
            },
        ),
        "commonMetadata": common_metadata(),
        "postRenderers": array("Steps that edit what the chart renders, in order.", POST_RENDERER),
        "postRenderStrategy": choice(
            "How hooks pass the post-renderers, by default combined.", "nohooks combined separate", since="2.9"
        ),
        "waitStrategy": obj(
            "How to wait for readiness.",
            {"name*": choice("By kstatus, or as Helm 3 did.", "poller legacy")},
            since="2.8",
        ),
        "healthCheckExprs": health_check_exprs(since="2.8"),
    },
)
