"""The printed Secret and patch under `kubectl kustomize`, named by RENDER_KUBECTL, on what `flux bootstrap` makes."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.project import PLATFORM, project

if TYPE_CHECKING:
    from pathlib import Path

KUBECTL = os.environ.get("RENDER_KUBECTL", "")
SYNC = """\
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata:
  name: flux-system
  namespace: flux-system
spec:
  interval: 1m0s
  ref:
    branch: main
%s  url: https://git.example.org/fleet.git
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata:
  name: flux-system
  namespace: flux-system
spec:
  interval: 10m0s
  path: ./clusters/home
  prune: true
  sourceRef:
    kind: GitRepository
    name: flux-system
"""
BEFORE = "  secretRef:\n    name: flux-system\n"

pytestmark = pytest.mark.skipif(not KUBECTL, reason="RENDER_KUBECTL names no binary")


def built(folder: Path) -> list[dict[str, Any]]:
    ran = subprocess.run([KUBECTL, "kustomize", folder], capture_output=True, text=True, check=True)
    return list(yaml.safe_load_all(ran.stdout))


@pytest.mark.parametrize("secret", ["", BEFORE], ids=["a repository without a Secret", "a repository with another"])
def test_patch_gives_the_secret_to_the_repository_and_nothing_else_changes(tmp_path: Path, secret: str) -> None:
    patch = project(tmp_path, {"platform.yaml": PLATFORM}).run("write-back", "patch").out
    (tmp_path / "gotk-sync.yaml").write_text(SYNC % secret)
    (tmp_path / "kustomization.yaml").write_text("resources:\n- gotk-sync.yaml\n")
    before = built(tmp_path)
    (tmp_path / "kustomization.yaml").write_text(f"resources:\n- gotk-sync.yaml\n{patch}")

    after = built(tmp_path)

    expected = [dict(one) for one in before]
    for one in expected:
        if one["kind"] == "GitRepository":
            one["spec"] = {**one["spec"], "secretRef": {"name": "flux-system-write"}}
    assert after == expected


@pytest.mark.parametrize("ssh", [[], ["--ssh"]])
def test_secret_that_is_filled_in_is_built(tmp_path: Path, ssh: list[str]) -> None:
    text = project(tmp_path, {"platform.yaml": PLATFORM}).run("write-back", "secret", *ssh).out
    key = '"-----BEGIN OPENSSH PRIVATE KEY-----\\nabc\\n"'
    (tmp_path / "git.yaml").write_text(text.replace('""', key))
    (tmp_path / "kustomization.yaml").write_text("resources:\n- git.yaml\n")

    (one,) = built(tmp_path)

    assert (one["kind"], one["metadata"]["namespace"]) == ("Secret", "flux-system")
    assert set(one["stringData"].values()) == {"-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n"}
