"""`--no-image-automation` leaves out image automation, and nothing else."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import event, given

from render.build import Build, build
from tests.project import objects
from tests.services import document, platforms, services
from tests.sound import MARK, PLATFORMS, TOP, Files, assert_sound, assert_survives_the_bot, examples, repository

AUTOMATION = ("ImageRepository", "ImagePolicy", "ImageUpdateAutomation")


def without_automation(files: dict[str, str]) -> dict[str, str]:
    """A tree with image automation as it must be without: objects, their lines, markers and digests taken out."""
    made: dict[str, str] = {}
    for path, whole in files.items():
        text = whole
        if path.endswith("/image-automation.yaml") or path.startswith("platform/image-automation/"):
            kinds = {one["kind"] for one in objects(text)}
            assert kinds <= {*AUTOMATION, "Kustomization"}
            continue
        if path == "flux/kustomizations.yaml":
            header, _, body = text.partition("\n")
            parts = [part for part in body.split("---\n") if "\n  name: platform-image-automation\n" not in part]
            text = header + "\n" + "---\n".join(parts) if parts else ""
        if path == "platform/alerts/prometheus-rule.yaml":
            text = without_items(text, r"alert: Image(UpdateAutomationFailing|PolicyStalled)\n")
        if path == "apps/kube-state-metrics.yaml":
            text = without_items(text, r"(groupVersionKind|apiGroups):\n.*image\.toolkit\.fluxcd\.io\n")
        if path.endswith("/kustomization.yaml"):
            text = text.replace("- image-automation.yaml\n", "")
        if text:
            made[path] = neutral(MARK.sub("", text))
    return made


def without_items(text: str, start: str) -> str:
    """A text without the items of its lists that start so."""
    return re.sub(rf"^( *)- {start}(?:\1 +.*\n|\1(?! *- ) .*\n)*", "", text, flags=re.MULTILINE)


def neutral(text: str) -> str:
    """A file without its header's digest."""
    return re.sub(r"\A(.*sha256:)[0-9a-f]{16}\n", r"\1\n", text)


def is_automation_alone(made: Build) -> bool:
    """Whether a service has image automation and nothing else in `apps`: its folder, empty without, is left out too."""
    return any(text.endswith("\nresources:\n- image-automation.yaml\n") for text in made.files.values())


def assert_modes_agree(files: Files) -> Build:
    """Both modes refuse the same catalogs, and differ by image automation alone."""
    with repository(files) as repo:
        full, plain = repo.build(), repo.build(automation=False)
    assert full.failed == plain.failed
    if not full.failed and not is_automation_alone(full):
        expected = without_automation(dict(full.files))
        actual = {path: neutral(text) for path, text in plain.files.items()}
        assert expected == actual
        assert not any(token in text for text in actual.values() for token in ("$imagepolicy", *AUTOMATION))
        assert not any(path.startswith("platform/image-automation/") for path in actual)
    return full


@examples(60)
@given(services(), platforms())
def test_the_modes_differ_by_image_automation_alone(service: dict[str, Any], platform: dict[str, Any]) -> None:
    made = assert_modes_agree({"catalog/web.yaml": document(service), "platform.yaml": document(platform)})

    event(f"failed: {made.failed}")


@pytest.mark.parametrize("platform", PLATFORMS)
def test_the_shipped_catalog_is_sound_in_both_modes(platform: str) -> None:
    full, plain = (build(TOP / "catalog", TOP / platform, automation=mode) for mode in (True, False))

    assert_sound(full)
    assert_sound(plain)
    assert without_automation(dict(full.files)) == {path: neutral(text) for path, text in plain.files.items()}
    marked = [text for text in full.files.values() if MARK.search(text)]
    assert len(marked) > 10
    for text in marked:
        assert_survives_the_bot(text)


EVERYTHING = """\
cluster: test
flux: {version: "2.9", kustomizations: %s}
imageAutomation:
  enabled: true
  author: {email: bot@example.org}
  messageTemplate: '{{ range .Changed.Changes }}{{ .Setter }}{{ end }}'
  signingKey: {secretRef: {name: signing-key}}
  policySelector: {matchLabels: {bot: main}}
  pushOptions: {ci.skip: ""}
  secretFile: git.sops.yaml
alerts: {enabled: true, labels: {release: prometheus}}
"""
SERVICES = {
    "catalog/web.yaml": """\
name: web
source: {image: "ghcr.io/o/web:1.2.3", chart: {url: "oci://charts.example/web", version: "1.0.0"}}
update: {range: 1.x}
""",
    "catalog/plain.yaml": """\
name: plain
source: {image: "ghcr.io/o/plain:1.2.3"}
update: {range: 1.x}
workload: {probes: {readiness: {httpGet: {path: /, port: 80}}}}
""",
}


@pytest.mark.parametrize("mode", ["all", "namespace", "service"])
def test_nothing_of_image_automation_is_left_without_it(mode: str) -> None:
    files = {**SERVICES, "platform.yaml": EVERYTHING % mode}

    full = assert_modes_agree(files)

    with repository(files) as repo:
        plain = repo.build(automation=False)
    words = (
        "git.sops.yaml",
        "signing-key",
        "messageTemplate",
        "bot: main",
        "ci.skip",
        "image-automation",
        "image.toolkit",
    )
    assert [word for word in words if not any(word in text for text in full.files.values())] == []
    assert [word for word in words if any(word in text for text in plain.files.values())] == []
    assert [path for path, _ in full.foreign] == ["platform/image-automation/git.sops.yaml"]
    assert plain.foreign == []
    # What rolls a failed upgrade back, and tells of it, has nothing to do with who writes the versions.
    for files_ in (full.files, plain.files):
        assert "remediateLastFailure: true" in files_["apps/web/helmrelease.yaml"]
        assert "progressDeadlineSeconds: 600" in files_["apps/plain/workload.yaml"]
        assert files_["platform/alerts/prometheus-rule.yaml"].count("alert: UpdateHealthGateFailed") == 2


def test_settings_of_image_automation_are_not_asked_for_without_it() -> None:
    broken = EVERYTHING.replace("author: {email: bot@example.org}", "branch: main").replace("{{ end }}", "")
    files = {**SERVICES, "platform.yaml": broken % "all"}

    with repository(files) as repo:
        assert repo.build().failed
        assert not repo.build(automation=False).failed
