"""`render flux` against `kubectl kustomize`, named by RENDER_KUBECTL: same manifest, same overrides, same objects.

RENDER_KUBECTL_CASES multiplies the number of runs (default 1), RENDER_KUBECTL_SEED picks others. The install manifests
of RENDER_SHARED are taken too, where they are.
"""

from __future__ import annotations

import io
import json
import os
import random
import subprocess
from pathlib import Path

import pytest

from render.manifest import Rewrite, read, rewrite
from render.override import read_json_table

KUBECTL = os.environ.get("RENDER_KUBECTL", "")
TIMES = int(os.environ.get("RENDER_KUBECTL_CASES", "1"))
SEED = int(os.environ.get("RENDER_KUBECTL_SEED", "20260701"))
SAMPLES = Path(os.environ.get("RENDER_SHARED", Path(__file__).parents[3] / "shared")) / "samples" / "flux-install"

pytestmark = pytest.mark.skipif(not KUBECTL, reason="RENDER_KUBECTL names no binary")

SMALL = """\
# Everything that kustomize looks at, and much that it does not.
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: pods.example.org
spec:
  # These are no containers of a pod.
  containers:
  - image: ghcr.io/fluxcd/source-controller:v1.6.2
  - text
  template: {spec: {initContainers: [{image: "ghcr.io/fluxcd/cli:v2.9.0"}]}}
  versions:
  - schema:
      openAPIV3Schema:
        properties:
          containers: {type: array, items: {properties: {image: {type: string, default: "ghcr.io/fluxcd/cli:v1"}}}}
---
apiVersion: v1
kind: List
items:
- apiVersion: apiextensions.k8s.io/v1
  kind: CustomResourceDefinition
  metadata: {name: lists.example.org}
  spec: {containers: [{image: ghcr.io/fluxcd/cli:v2.9.0}]}
- apiVersion: v1
  kind: Pod
  metadata: {name: listed}
  spec:
    containers: [{image: ghcr.io/fluxcd/cli:v2.9.0, name: a}, {"image":"ghcr.io/fluxcd/cli", "name": "b"}]
---
apiVersion: apps/v1
kind: Deployment
metadata: &meta
  name: source-controller
  namespace: flux-system
  annotations:
    about: "ghcr.io/fluxcd/source-controller:v1.6.2"
spec:
  template:
    spec:
      initContainers:
      - &init
        image: &cli 'ghcr.io/fluxcd/cli:v2.9.0@sha256:DIGEST' # pinned
        name: first
      containers:
      - <<: *init
        name: again
      - image: *cli
        name: once-more
      - image: >-
          ghcr.io/fluxcd/source-controller:v1.6.2
        name: manager
        env: [{name: IMAGE, value: "ghcr.io/fluxcd/source-controller:v1.6.2"}]
      - name: number
        image: 123
      - name: local
        image: localhost:5000/fluxcd/source-controller
      ephemeralContainers:
      - image: ghcr.io/fluxcd/source-controller:v1.6.2
      volumes:
      - name: data
        image:
          reference: "ghcr.io/fluxcd/cli:v2.9.0"
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: job}
spec:
  jobTemplate:
    spec:
      template:
        spec:
          containers:
          - {name: a, image: ghcr.io/fluxcd/cli:v2.9.0}
          volumes:
          - {name: b, image: {reference: ghcr.io/fluxcd/cli:v2.9.0}}
---
apiVersion: example.org/v1
kind: Widget
metadata: {name: deep}
status:
  image: ghcr.io/fluxcd/cli:v2.9.0
  sidecars: [{image: ghcr.io/fluxcd/cli:v2.9.0}]
  parts:
  - - initContainers:
      - image: !!str ghcr.io/fluxcd/cli:v2.9.0
        containers:
        - image: ghcr.io/fluxcd/source-controller
---
apiVersion: v1
kind: ConfigMap
metadata: {name: text}
data:
  # integers keep their digits
  big: "9007199254740993"
  manifest: |
    containers:
    - image: ghcr.io/fluxcd/cli:v2.9.0
""".replace("DIGEST", "0" * 64)

NEW_NAMES = ["registry.corp.example/fluxcd/x", "r.example:5000/a/b/c", "ghcr.io/fluxcd/cli", "x", "127.0.0.1/y"]
NEW_TAGS = ["v9.9.9", "1", "1e3", "0x10", "null", "v1.6.2-corp.1", "2024-01-01"]


def kustomized(folder: Path, data: bytes, table: list[dict[str, str]]) -> str:
    """Return what kustomize makes of a manifest: objects in its order, keys sorted, comments gone."""
    folder.mkdir(exist_ok=True)
    (folder / "gotk.yaml").write_bytes(data)
    kustomization = {"resources": ["gotk.yaml"], "images": table}
    (folder / "kustomization.yaml").write_text(json.dumps(kustomization), encoding="utf-8")
    done = subprocess.run([KUBECTL, "kustomize", str(folder)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def rewritten(data: bytes, table: list[dict[str, str]]) -> Rewrite:
    made = read(Path("-"), io.BytesIO(data))
    rewrite(made, read_json_table(json.dumps(table), "--overrides").placed, "--overrides")
    return made


def tables(data: bytes, rng: random.Random) -> list[dict[str, str]]:
    """Return a table whose entries all match something, in an order where some take what others wrote."""
    images = sorted({fate.before for fate in rewritten(data, []).fates})
    names = sorted({image.split("@")[0].rsplit(":", 1)[0] if "/" in image else image for image in images})
    names = [name for name in names if not name.isdigit()] + ["ghcr.io/fluxcd/cli"] * (rng.random() < 0.2)
    made = []
    for name in dict.fromkeys(rng.sample(names, rng.randint(1, len(names)))):
        entry = {"name": name}
        if rng.random() < 0.7:
            entry["newName"] = rng.choice([one for one in NEW_NAMES if one != name])
        if rng.random() < 0.5 or len(entry) == 1:
            entry["newTag"] = rng.choice(NEW_TAGS)
        if rng.random() < 0.3:
            entry["digest"] = "sha256:" + "".join(rng.choices("0123456789abcdef", k=64))
        made.append(entry)
    return made


def compare(folder: Path, data: bytes, rng: random.Random) -> int:
    """Compare one random table; return how many images it rewrites."""
    table = tables(data, rng)
    made = rewritten(data, table)
    hit = {step.entry for fate in made.fates for step in fate.trace}
    table = [entry for index, entry in enumerate(table) if index in hit]
    made = rewritten(data, table)
    assert [one.message for one in made.diagnostics if one.severity == "error"] == []

    # Our text through kustomize without overrides: only what it does to every object is left, and done on both sides.
    assert kustomized(folder, made.made, []) == kustomized(folder, data, table)
    return sum(fate.is_rewritten for fate in made.fates)


def test_a_small_manifest_is_rewritten_as_kustomize_does(tmp_path: Path) -> None:
    rng = random.Random(SEED)
    changed = 0
    for _ in range(30 * TIMES):
        data = SMALL.encode()
        if rng.random() < 0.3:
            data = data.replace(b"\n", b"\r\n")
        changed += compare(tmp_path / "small", data.rstrip() if rng.random() < 0.3 else data, rng)

    assert changed > 100 * TIMES


@pytest.mark.parametrize("name", sorted(path.name for path in SAMPLES.glob("*.yaml")) if SAMPLES.is_dir() else [])
def test_an_install_manifest_is_rewritten_as_kustomize_does(name: str, tmp_path: Path) -> None:
    rng = random.Random(SEED)
    data = (SAMPLES / name).read_bytes()
    changed = sum(compare(tmp_path / "sample", data, rng) for _ in range(6 * TIMES))

    assert changed > 10 * TIMES


def test_objects_that_fail_kustomize_are_refused_and_fine_without_overrides(tmp_path: Path) -> None:
    odd = b"apiVersion: v1\nkind: Widget\nmetadata: {name: a}\nspec: {template: text}\n---\n" + SMALL.encode()
    table = [{"name": "ghcr.io/fluxcd/cli", "newTag": "v1"}]
    made = rewritten(odd, table)

    assert [one.code for one in made.diagnostics] == ["R605"]
    with pytest.raises(AssertionError):
        kustomized(tmp_path / "odd", odd, table)
    assert rewritten(odd, []).made == odd
    kustomized(tmp_path / "odd", odd, [])


def test_a_list_that_is_null_stays_null_here_and_is_empty_to_kustomize(tmp_path: Path) -> None:
    pod = b"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{image: a:1}], initContainers: null}\n"
    table = [{"name": "a", "newTag": "2"}]
    made = rewritten(pod, table)

    assert made.made == pod.replace(b"a:1", b"a:2")
    assert "initContainers: []" in kustomized(tmp_path / "null", pod, table)
