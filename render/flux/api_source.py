"""The specs of HelmRepository, OCIRepository and GitRepository as tables, and the rules that no schema says.

Source: the CRDs of source-controller 1.9 (`source.toolkit.fluxcd.io/v1`).
"""

from __future__ import annotations

from render.flux.api_parts import (
    ACCESS_FROM,
    CERT_SECRET_REF,
    GIT_REF_FIELDS,
    PROXY_SECRET_REF,
    SECRET_REF,
    VERIFY_PROVIDER,
    suspend,
)
from render.flux.api_schema import (
    Problem,
    array,
    choice,
    duration,
    flag,
    named,
    newer,
    newer_fields,
    obj,
    strings,
    text,
)
from render.flux.versions import FluxVersion

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_IGNORE = text("Files to leave out of the artifact, in the syntax of `.gitignore`.")
_INTERVAL = duration("How often to look for changes.")
_TIMEOUT = duration("Limit for remote operations, by default 60s.", hours=False)

HELM_REPOSITORY_SPEC = obj(
    "A repository of Helm charts.",
    {
        "url*": text(
            "Address of the repository; for OCI the path above the chart.", pattern=r"^(http|https|oci)://.*$"
        ),
        "type": choice("Protocol of the repository.", "default oci"),
        "interval": _INTERVAL,
        "timeout": _TIMEOUT,
        "suspend": suspend(),
        "insecure": flag("Allow plain HTTP, for OCI only."),
        "passCredentials": flag("Send the credentials also to other hosts that the index names."),
        "provider": choice("Cloud whose identity gives access, for OCI only.", "generic aws azure gcp"),
        "secretRef": SECRET_REF,
        "certSecretRef": CERT_SECRET_REF,
        "accessFrom": ACCESS_FROM,
    },
)

OCI_REPOSITORY_SPEC = obj(
    "An artifact in an OCI registry.",
    {
        "url*": text("Full path of the artifact, without tag.", pattern=r"^oci://.*$"),
        "interval*": _INTERVAL,
        "timeout": _TIMEOUT,
        "suspend": suspend(),
        "ref": obj(
            "Which version to take; the tag `latest` when absent.",
            {
                "tag": text("Tag to take."),
                "semver": text("Range of tags, the highest wins; wins over `tag`."),
                "semverFilter": text("Regular expression that tags must match to be in the range."),
                "digest": text("Digest to take; wins over all others."),
            },
        ),
        "layerSelector": obj(
            "Which layer to take; the first when absent.",
            {
                "mediaType": text("Media type of the layer."),
                "operation": choice("Unpack the layer or keep it as it is, by default extract.", "extract copy"),
            },
        ),
        "insecure": flag("Allow plain HTTP."),
        "provider": choice("Cloud whose identity gives access.", "generic aws azure gcp"),
        "secretRef": SECRET_REF,
        "serviceAccountName": text("Service account whose pull secrets or identity give access."),
        "certSecretRef": CERT_SECRET_REF,
        "proxySecretRef": PROXY_SECRET_REF,
        "ignore": _IGNORE,
        "verify": obj(
            "Signature check.",
            {
                "provider*": VERIFY_PROVIDER,
                "secretRef": SECRET_REF,
                "matchOIDCIdentity": array(
                    "Signers to accept in keyless mode, any of which suffices.",
                    obj(
                        "One signer.",
                        {
                            "issuer*": text("Issuer of the token, a regular expression."),
                            "subject*": text("Subject of the token, a regular expression."),
                        },
                    ),
                ),
                "trustedRootSecretRef": named("Secret with the roots of a Sigstore of one's own.", since="2.9"),
            },
        ),
    },
)

GIT_REPOSITORY_SPEC = obj(
    "A Git repository.",
    {
        "url*": text("Address of the repository.", pattern=r"^(http|https|ssh)://.*$"),
        "interval*": _INTERVAL,
        "timeout": _TIMEOUT,
        "suspend": suspend(),
        "ref": obj("What to check out; the branch `master` when absent.", GIT_REF_FIELDS),
        "provider": choice("Service whose identity gives access.", "generic aws azure github"),
        "secretRef": SECRET_REF,
        "serviceAccountName": text("Service account whose identity gives access, for azure and aws only."),
        "proxySecretRef": PROXY_SECRET_REF,
        "verify": obj(
            "Signature check.",
            {
                "mode": choice("What must be signed.", "head HEAD Tag TagAndHEAD"),
                "secretRef*": named("Secret with the public keys of trusted authors."),
            },
        ),
        "ignore": _IGNORE,
        "sparseCheckout": strings("Folders to check out; all when absent."),
        "recurseSubmodules": flag("Fetch submodules too."),
        "include": array(
            "Artifacts of other GitRepositories to copy in.",
            obj(
                "One of them.",
                {
                    "repository*": named("The other GitRepository."),
                    "fromPath": text("Folder to copy from."),
                    "toPath": text("Folder to copy to."),
                },
            ),
        ),
    },
)


def git_repository_rules(spec: dict[str, Any], version: FluxVersion) -> list[Problem]:
    """Return what is wrong with a GitRepository spec beyond its table."""
    problems = newer_fields(GIT_REPOSITORY_SPEC, spec, version)
    provider = spec.get("provider")
    if provider == "aws" and not version.since("2.9"):
        problems.append(newer("2.9", version, ("provider",), "the provider `aws` of a GitRepository"))
    if spec.get("serviceAccountName") is not None and provider not in ("azure", "aws"):
        problems.append(
            Problem(
                ("serviceAccountName",),
                "`serviceAccountName` goes only with the providers `azure` and `aws`",
                "the Flux API refuses the GitRepository",
                "remove it, or set `provider`",
            )
        )
    return problems


def helm_repository_rules(spec: dict[str, Any], version: FluxVersion) -> list[Problem]:
    """Return what is wrong with a HelmRepository spec beyond its table."""
    problems = newer_fields(HELM_REPOSITORY_SPEC, spec, version)
    url = spec.get("url")
    if spec.get("type") == "oci" and isinstance(url, str) and not url.startswith("oci://"):
        problems.append(
            Problem(
                ("url",),
                "`url` of a HelmRepository of type `oci` must start with `oci://`",
                "source-controller cannot read the repository",
                "write `oci://`, or remove `type`",
            )
        )
    return problems


def oci_repository_rules(spec: dict[str, Any], version: FluxVersion) -> list[Problem]:
    """Return what is wrong with an OCIRepository spec beyond its table."""
    return newer_fields(OCI_REPOSITORY_SPEC, spec, version)
