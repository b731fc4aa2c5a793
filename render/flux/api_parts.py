"""Parts that several Flux objects share, as schema tables."""

from __future__ import annotations

from render.flux.api_schema import Schema, array, choice, flag, named, obj, string_map, strings, text

LABEL_AND_ANNOTATION_FIELDS: dict[str, Schema] = {
    "labels": string_map("Labels to add."),
    "annotations": string_map("Annotations to add."),
}

SECRET_REF = named("Secret of the same namespace that holds the credentials.")
CERT_SECRET_REF = named("Secret of the same namespace with a client certificate, its key, or a CA.")
PROXY_SECRET_REF = named("Secret of the same namespace with the address and credentials of a proxy.")

DEPENDS_ON = array(
    "Objects of the same kind that must be ready first.",
    obj(
        "An object to wait for.",
        {
            "name*": text("Name of the object."),
            "namespace": text("Namespace of the object, by default that of the one that waits."),
            "readyExpr": text("CEL expression over `self` and `dep` that takes the place of the readiness check."),
        },
    ),
)

TARGET = obj(
    "Objects meant, where all given conditions hold; all objects when absent.",
    {
        "group": text("API group, a regular expression."),
        "version": text("API version, a regular expression."),
        "kind": text("Kind, a regular expression."),
        "name": text("Name, a regular expression."),
        "namespace": text("Namespace, a regular expression."),
        "labelSelector": text("Label selector in its text form."),
        "annotationSelector": text("Selector over annotations, in the text form of label selectors."),
    },
)

PATCHES = array(
    "Patches on objects, before any image is rewritten.",
    obj(
        "One patch.",
        {"patch*": text("A strategic merge patch or a JSON 6902 patch, as YAML text."), "target": TARGET},
    ),
)

IMAGES = array(
    "Rewrites of image references, one after another over the result of the one before.",
    obj(
        "One rewrite.",
        {
            "name*": text("Image name to match, without tag; a regular expression."),
            "newName": text("Name to write instead."),
            "newTag": text("Tag to write instead."),
            "digest": text("Digest to write, `sha256:` and 64 hexadecimal digits."),
        },
    ),
)

KUBE_CONFIG = obj(
    "Access to another cluster to deploy to, exactly one of the two.",
    {
        "secretRef": obj(
            "Secret that holds a kubeconfig.",
            {"name*": text("Name of the Secret."), "key": text("Key in the Secret, by default `value`.")},
        ),
        "configMapRef": named("ConfigMap that describes access by a cloud provider's identity."),
    },
)

VERIFY_PROVIDER = choice("Tool whose signatures are checked.", "cosign notation")

GIT_REF_FIELDS: dict[str, Schema] = {
    "branch": text("Branch to check out."),
    "tag": text("Tag to check out; wins over `branch`."),
    "semver": text("Range of tags, the highest wins; wins over `tag`."),
    "name": text("Full reference name, such as `refs/heads/main`; wins over `semver`."),
    "commit": text("Commit hash; wins over all others."),
}

ACCESS_FROM = obj(
    "Namespaces whose objects may use this one.",
    {
        "namespaceSelectors*": array(
            "Selectors of namespaces, any of which suffices.",
            obj("One selector.", {"matchLabels": string_map("Labels the Namespace object must carry.")}),
        ),
    },
)


def common_metadata() -> Schema:
    """Make the table of labels and annotations put on every object."""
    return obj("Labels and annotations for every object.", LABEL_AND_ANNOTATION_FIELDS)


def ignore_rules(description: str, *, since: str | None = None) -> Schema:
    """Make the table of fields left out of drift detection."""
    entry = {"paths*": strings("JSON pointers to the fields."), "target": TARGET}
    return array(description, obj("Fields of some objects.", entry), since=since)


def health_check_exprs(*, since: str | None = None) -> Schema:
    """Make the table of CEL health checks; `kind` is required before Flux 2.9, see `health_check_rules`."""
    entry = {
        "apiVersion*": text("API version of the custom resource; only its group counts."),
        "kind": text("Kind of the custom resource."),
        "current*": text("CEL expression that is true when the resource is ready."),
        "inProgress": text("CEL expression that is true while the resource changes; evaluated first."),
        "failed": text("CEL expression that is true when the resource has failed."),
    }
    return array("Health checks of custom resources.", obj("Checks of one kind.", entry), since=since)


def reference_kind(description: str, kinds: str, longest_name: int | None, longest_namespace: int | None) -> Schema:
    """Make the table of a reference to an object of one of `kinds`, with the length limits its CRD has."""
    return obj(
        description,
        {
            "apiVersion": text("API version of the object."),
            "kind*": choice("Kind of the object.", kinds),
            "name*": text("Name of the object.", 1 if longest_name else None, longest_name),
            "namespace": text("Namespace of the object.", 1 if longest_namespace else None, longest_namespace),
        },
    )


def suspend() -> Schema:
    """Make the field that halts reconciliation."""
    return flag("Halt reconciliation.")
