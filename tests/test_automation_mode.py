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
