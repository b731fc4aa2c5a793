"""What `kubectl kustomize`, named by RENDER_KUBECTL, makes of values that a build carries or refuses."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from render.yaml import scalar
from tests.hostile import PLAIN

if TYPE_CHECKING:
    from pathlib import Path

KUBECTL = os.environ.get("RENDER_KUBECTL", "")
HEAD = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: web}\nspec:\n  values:\n"
KEYS = [text for text in PLAIN if text not in ("<<", "?", "-") and len(text) <= 128]

pytestmark = pytest.mark.skipif(not KUBECTL, reason="RENDER_KUBECTL names no binary")


def is_built(folder: Path, line: str) -> bool:
    """Whether the build of a release with one line of values works."""
    (folder / "release.yaml").write_text(f"{HEAD}    {line}\n")
    (folder / "kustomization.yaml").write_text("resources:\n- release.yaml\n")
    return subprocess.run([KUBECTL, "kustomize", folder], capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize("text", KEYS)
def test_a_plain_key_is_built_if_it_is_a_string(tmp_path: Path, text: str) -> None:
    is_string = scalar.kyaml(text).kind == "string" and scalar.is_carried(text)

    assert is_built(tmp_path, f"{text}: x") == is_string


@pytest.mark.parametrize("text", [text for text in PLAIN if text != "<<"])
def test_a_plain_value_is_built_if_it_is_carried(tmp_path: Path, text: str) -> None:
    assert is_built(tmp_path, f"a: {text}") == scalar.is_carried(text, plain=True)


@pytest.mark.parametrize("code", [*range(0x20), *range(0x7E, 0xA1), 0x2028, 0xFEFF, 0xFFFD, 0xFFFE, 0xFFFF, 0x1F600])
def test_an_escaped_character_is_built_if_it_is_carried(tmp_path: Path, code: int) -> None:
    assert is_built(tmp_path, f"a: {scalar.double_quoted(f'a{chr(code)}b')}") == scalar.is_carried(f"a{chr(code)}b")
