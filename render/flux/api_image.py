"""The specs of the image automation kinds as tables, and the rules that no schema says.

Source: the CRDs of image-reflector-controller and image-automation-controller 1.2 (`image.toolkit.fluxcd.io/v1`).
"""

from __future__ import annotations

from render.flux.api_parts import (
    ACCESS_FROM,
    CERT_SECRET_REF,
    GIT_REF_FIELDS,
    PROXY_SECRET_REF,
    SECRET_REF,
    reference_kind,
    suspend,
)
from render.flux.api_schema import (
    Problem,
    array,
    choice,
    duration,
    flag,
    is_set,
    mapping,
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

IMAGE_REPOSITORY_SPEC = obj(
    "An image whose tags are scanned.",
    {
        "image*": text("Image name, without scheme, tag and digest."),
        "interval*": duration("How often to scan."),
        "timeout": duration("Limit for a scan, by default the interval.", hours=False),
        "suspend": suspend(),
        "insecure": flag("Allow plain HTTP."),
        "provider": choice("Cloud whose identity gives access.", "generic aws azure gcp"),
        "secretRef": SECRET_REF,
        "serviceAccountName": text("Service account whose pull secrets or identity give access.", None, 253),
        "certSecretRef": CERT_SECRET_REF,
        "proxySecretRef": PROXY_SECRET_REF,
        "exclusionList": strings("Regular expressions of tags to leave out.", longest=25),
        "accessFrom": ACCESS_FROM,
    },
)

_ORDER = choice("Which end of the order wins: the last for asc, the first for desc.", "asc desc")

IMAGE_POLICY_SPEC = obj(
    "A choice among the tags of an image.",
    {
        "imageRepositoryRef*": obj(
            "The scanned image.",
            {
                "name*": text("Name of the ImageRepository."),
                "namespace": text("Its namespace, by default the policy's own."),
            },
        ),
        "policy*": obj(
            "The order of tags, exactly one of the three.",
            {
                "semver": obj("Semantic versions.", {"range*": text("Range of versions; the highest wins.")}),
                "alphabetical": obj("Order of bytes.", {"order": _ORDER}),
                "numerical": obj("Order of numbers.", {"order": _ORDER}),
            },
        ),
        "filterTags": obj(
            "Which tags to look at.",
            {
                "pattern": text("Regular expression that tags must match."),
                "extract": text("Replacement built from the pattern's groups, ordered in place of the tag."),
            },
        ),
        "digestReflectionPolicy": choice("When to look up the digest, by default Never.", "Always IfNotPresent Never"),
        "interval": duration("How often to look up the digest, exactly when it is looked up always."),
        "suspend": suspend(),
    },
)

IMAGE_UPDATE_AUTOMATION_SPEC = obj(
    "Commits of new tags to a Git repository.",
    {
        "interval*": duration("How often to run."),
        "suspend": suspend(),
        "sourceRef*": reference_kind("The GitRepository to clone and push to.", "GitRepository", None, None),
        "git": obj(
            "How to check out, commit and push.",
            {
                "checkout": obj("What to check out.", {"ref*": obj("The reference.", GIT_REF_FIELDS)}),
                "commit*": obj(
                    "What commits look like.",
                    {
                        "author*": obj(
                            "Who commits.",
                            {"email*": text("Email address of the author."), "name": text("Name of the author.")},
                        ),
                        "messageTemplate": text("Go template of the commit message."),
                        "messageTemplateValues": string_map("Values for the template."),
                        "signingKey": obj(
                            "Key that signs commits.",
                            {
                                "secretRef*": SECRET_REF,
                                "type": choice("Kind of key, by default gpg.", "gpg ssh", since="2.9"),
                            },
                        ),
                    },
                ),
                "push": obj(
                    "Where to push.",
                    {
                        "branch": text("Branch to push to, by default the one checked out."),
                        "refspec": text("Further reference to push to."),
                        "options": string_map("Push options for the Git server."),
                    },
                ),
            },
        ),
        "policySelector": obj(
            "Which policies of the namespace to apply; all when absent.",
            {
                "matchLabels": string_map("Labels a policy must carry."),
                "matchExpressions": array(
                    "Conditions on labels, all of which must hold.",
                    obj(
                        "One condition.",
                        {
                            "key*": text("Label name."),
                            "operator*": text("`In`, `NotIn`, `Exists` or `DoesNotExist`."),
                            "values": strings("Label values."),
                        },
                    ),
                ),
            },
        ),
        "update": obj(
            "How to edit files.",
            {
                "strategy": choice("By setter markers.", "Setters"),
                "path": text("Folder or file to edit, by default the whole repository."),
            },
        ),
    },
)


def image_policy_rules(spec: dict[str, Any], version: FluxVersion) -> list[Problem]:
    """Return what is wrong with an ImagePolicy spec beyond its table."""
    problems = newer_fields(IMAGE_POLICY_SPEC, spec, version)
    if isinstance(spec.get("policy"), dict):
        chosen = is_set(spec["policy"], "semver", "alphabetical", "numerical")
        if len(chosen) != 1:
            problems.append(_one_order(chosen))
    always = spec.get("digestReflectionPolicy") == "Always"
    if always and spec.get("interval") is None:
        problems.append(
            Problem(
                (),
                "`digestReflectionPolicy: Always` needs an `interval`",
                "the Flux API refuses the ImagePolicy",
                "add `interval`, such as `10m`",
            )
        )
    if not always and spec.get("interval") is not None:
        problems.append(
            Problem(
                ("interval",),
                "`interval` goes only with `digestReflectionPolicy: Always`",
                "the Flux API refuses the ImagePolicy; how often tags are scanned is the ImageRepository's business",
                "remove `interval`",
            )
        )
    return problems


def _one_order(chosen: list[str]) -> Problem:
    if not chosen:
        return Problem(
            ("policy",),
            "`policy` must have one of `semver`, `alphabetical`, `numerical`",
            "without one the ImagePolicy is stalled and selects nothing",
            "add the one that orders the tags",
        )
    return Problem(
        ("policy", chosen[1]),
        f"`policy` must have only one order, not {' and '.join(f'`{name}`' for name in chosen)}",
        f"Flux takes `{chosen[0]}` and ignores the rest without a word",
        "keep the one that is meant",
    )


def image_repository_rules(spec: dict[str, Any], version: FluxVersion) -> list[Problem]:
    """Return what is wrong with an ImageRepository spec beyond its table; the image name is not looked at."""
    return newer_fields(IMAGE_REPOSITORY_SPEC, spec, version)


def image_update_automation_rules(spec: dict[str, Any], version: FluxVersion) -> list[Problem]:
    """Return what is wrong with an ImageUpdateAutomation spec beyond its table."""
    problems = newer_fields(IMAGE_UPDATE_AUTOMATION_SPEC, spec, version)
    if spec.get("git") is None:
        problems.append(
            Problem(
                (),
                "`git` must be set",
                "the schema lets it be absent, but the controller then stalls the ImageUpdateAutomation",
                "add `git` with a commit author",
            )
        )
    template = mapping(mapping(spec.get("git")).get("commit")).get("messageTemplate")
    if isinstance(template, str) and "{{" in template:
        problems += _template_problems(template)
    return problems


def _template_problems(template: str) -> list[Problem]:
    # Only a template of one's own needs the parser.
    from render.flux.commit_message import faults

    problems = []
    for fault in faults(template):
        if fault.is_removed:
            message = f"`messageTemplate` {fault.message}"
            cause = "the ImageUpdateAutomation is stalled at its first commit"
        else:
            where = f" (line {fault.line})" if "\n" in template.rstrip("\n") else ""
            message = f"`messageTemplate`{where}: {fault.message}"
            cause = "Go reads it when the first update is to be committed, and nothing is committed then"
        problems.append(Problem(("git", "commit", "messageTemplate"), message, cause, fault.hint))
    return problems
