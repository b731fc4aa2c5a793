"""Random tables, images and objects against `kubectl kustomize`, named by RENDER_KUBECTL.

RENDER_KUBECTL_CASES multiplies the number of runs (default 1), RENDER_KUBECTL_SEED picks others.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from render.flux.override_sites import transform
from render.flux.overrides import Entry, OverrideFailure, Table

if TYPE_CHECKING:
    from pathlib import Path

KUBECTL = os.environ.get("RENDER_KUBECTL", "")
TIMES = int(os.environ.get("RENDER_KUBECTL_CASES", "1"))
SEED = int(os.environ.get("RENDER_KUBECTL_SEED", "20260701"))
IMAGES_PER_TABLE = 40

pytestmark = pytest.mark.skipif(not KUBECTL, reason="RENDER_KUBECTL names no binary")

HEX = "0123456789abcdef" * 4
HOSTS = ["", "", "docker.io/", "ghcr.io/", "gcr.io/", "localhost:5000/", "reg.corp.example:443/", "10.0.0.1/", "r_k8s/"]
PATHS = ["nginx", "library/nginx", "a", "a/b", "a.b/c", "x-y/z_w", "team/app.v2", "nginx.org/x", "sha256/a"]
TAGS = ["", "", ":1", ":1.2.3", ":v1.2.3-rc.1", ":", ":1+b", ":a b", ":{V}", ":$(T)", ":1:2", ":é", ":latest"]
DIGESTS = ["", "", "", f"@sha256:{HEX}", "@sha256:", "@sha256:x.{y}", "@sha512:ff", "@", "@SHA256:aa", "@sha256:a:b"]
WIDE = [
    ".*",
    "*",
    "?",
    "a|b",
    "[an].*",
    ".+/nginx",
    "nginx.?",
    "(?i)NGINX",
    r"gcr\.io/.*",
    "[^/]+",
    "",
    "^",
    "$",
    ".",
    "{}",
]
BROKEN = ["(", "[", "a)", "a**", "a{1001}", "(?=a)", r"\1", r"\C", r"\h", "[z-a]", "(?x)a", "a++"]
PIECES = [
    "a",
    "nginx",
    ".",
    ".*",
    "/",
    "[a-z]+",
    "(a|b)?",
    r"\.",
    r"\Qa.b\E",
    r"\w+",
    "{2}",
    "{,2}",
    "|",
    "^",
    "$",
    ":",
    "@",
]


def name(rng: random.Random) -> str:
    return rng.choice(HOSTS) + rng.choice(PATHS)


def mutated(rng: random.Random, text: str) -> str:
    if not text or rng.random() < 0.75:
        return text
    index = rng.randrange(len(text))
    return text[:index] + rng.choice(["", "X", ".", "/", "\n", "é", text[index].upper()]) + text[index + 1 :]


def entry(rng: random.Random) -> dict[str, str]:
    chance = rng.random()
    if chance < 0.80:
        made = name(rng) + (rng.choice(TAGS[2:5]) if rng.random() < 0.1 else "")
    elif chance < 0.90:
        made = rng.choice(WIDE)
    elif chance < 0.96:
        made = "".join(rng.choices(PIECES, k=rng.randint(1, 4)))
    else:
        made = rng.choice(BROKEN)
    raw = {"name": made}
    if rng.random() < 0.6:
        raw["newName"] = rng.choice(["mirror.lan/m", "nginx", "a/b", "", "b:7", "b@sha256:q", "r:5000/x", name(rng)])
    if rng.random() < 0.35:
        raw["newTag"] = rng.choice(["9", "v9.1", "", "t@sha256:u", "1.10", "a/b", "t:u", "$1"])
    if rng.random() < 0.25:
        raw["digest"] = rng.choice([f"sha256:{HEX}", "sha256:feed", "sha512:ff", "", "d@e"])
    return raw


def image(rng: random.Random, table: list[dict[str, str]]) -> str:
    base = rng.choice(table) if rng.random() < 0.6 else {"name": name(rng)}
    return mutated(rng, base["name"] + rng.choice(TAGS) + rng.choice(DIGESTS))


def build(folder: Path, table: list[dict[str, str]], documents: list[Any]) -> list[Any] | str:
    """Run kustomize: the documents it prints, or its error."""
    folder.mkdir(exist_ok=True)
    (folder / "objects.yaml").write_text("---\n".join(json.dumps(doc) + "\n" for doc in documents), encoding="utf-8")
    kustomization = {"resources": ["objects.yaml"], "images": table}
    (folder / "kustomization.yaml").write_text(json.dumps(kustomization), encoding="utf-8")
    done = subprocess.run([KUBECTL, "kustomize", str(folder)], capture_output=True, text=True, check=False)
    if done.returncode:
        return done.stderr
    return [doc for doc in yaml.safe_load_all(done.stdout) if doc is not None]


def test_random_images_are_rewritten_as_kubectl_does(tmp_path: Path) -> None:
    rng = random.Random(SEED)
    panics = cases = 0
    wrong = []
    for _ in range(8 * TIMES):
        table = [entry(rng) for _ in range(rng.randint(1, 5))]
        images = [image(rng, table) for _ in range(IMAGES_PER_TABLE)]
        containers = [{"name": f"c{i}", "image": text} for i, text in enumerate(images)]
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": containers}}
        other = {"apiVersion": "x.io/v1", "kind": "X", "metadata": {"name": "x"}, "deep": {"containers": containers}}
        answer = build(tmp_path / "k", table, [pod, other])
        predictor = Table(Entry.of(raw) for raw in table)
        try:
            predicted = [[predictor.apply(text, double=double).text for text in images] for double in (True, False)]
        except OverrideFailure:
            panics += 1
            if isinstance(answer, list) or "nil pointer" not in answer:
                wrong.append((table, answer))
            continue
        if isinstance(answer, str):
            wrong.append((table, answer))
            continue
        by_kind = {doc["kind"]: doc for doc in answer}
        lists = by_kind["Pod"]["spec"]["containers"], by_kind["X"]["deep"]["containers"]
        for texts, found in zip(predicted, lists, strict=True):
            cases += len(texts)
            for given, text, container in zip(images, texts, found, strict=True):
                if container["image"] != text:
                    wrong.append((table, given, text, container["image"]))
    assert not wrong, wrong[:5]
    assert cases > 300 * TIMES
    print(f"{cases} images, {panics} panics")  # noqa: T201 - shown by `pytest -s`


def node(rng: random.Random, depth: int) -> Any:
    """A random value, rich in the keys and shapes that matter."""
    chance = rng.random()
    if depth == 0 or chance < 0.12:
        return rng.choice([None, "x", "nginx:1", 3, True, "", [], {}])
    if chance < 0.35:
        return [node(rng, depth - 1) for _ in range(rng.randint(0, 2))]
    keys = ["spec", "template", "containers", "initContainers", "volumes", "image", "reference", "other"]
    return {key: node(rng, depth - 1) for key in rng.sample(keys, rng.randint(1, 4))}


def likely(rng: random.Random, depth: int = 0) -> Any:
    """A pod-like value with a random one in some place."""
    if rng.random() < 0.06:
        return node(rng, 2)
    if depth == 0:
        spec = likely(rng, 1) if rng.random() < 0.5 else {"template": {"spec": likely(rng, 1)}}
        return node(rng, 3) if rng.random() < 0.1 else spec
    made: dict[str, Any] = {}
    for key in ("containers", "initContainers"):
        if rng.random() < 0.6:
            images = [{"image": rng.choice(["nginx", "nginx:1", None, 3, node(rng, 1)])} for _ in range(2)]
            made[key] = rng.choice([images, images, None, {"image": "nginx:1"}, [*images, None], [images]])
    if rng.random() < 0.5:
        volume = {"image": rng.choice([{"reference": rng.choice(["nginx:1", None])}, {}, None, node(rng, 1)])}
        made["volumes"] = rng.choice([[volume], [volume, None], volume, None, [[volume]]])
    return made


def test_random_objects_are_walked_as_kubectl_does(tmp_path: Path) -> None:
    rng = random.Random(SEED)
    table = [{"name": "nginx", "newName": "m:7"}, {"name": "n*ull", "newTag": "z"}]
    failures = 0
    wrong = []
    runs = 60 * TIMES
    for number in range(runs):
        kind = rng.choice(["Pod", "X", "X", "XList", "CustomResourceDefinition"])
        obj = {"apiVersion": "x.io/v1", "kind": kind, "metadata": {"name": "x"}, "spec": likely(rng)}
        if rng.random() < 0.3:
            obj["status"] = node(rng, 3)
        if rng.random() < 0.2:
            inner = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "in"}, "spec": likely(rng)}
            obj["items"] = rng.choice([[inner], [], None, [inner, "x"], [None, inner], {"a": 1}, "x", [inner, inner]])
        answer = build(tmp_path / "k", table, [obj])
        try:
            expected: Any = transform([obj], [Entry.of(raw) for raw in table]).documents
        except OverrideFailure as failure:
            failures += 1
            if isinstance(answer, list):
                wrong.append((number, obj, str(failure), answer))
            continue
        if isinstance(answer, str) or by_name(expected) != by_name(answer):
            wrong.append((number, obj, expected, answer))
    assert not wrong, "\n".join(map(str, wrong[:5]))
    assert 0.1 < failures / runs < 0.9
    print(f"{runs} objects, {failures} failing")  # noqa: T201 - shown by `pytest -s`


def by_name(documents: list[Any]) -> list[Any]:
    return sorted(documents, key=lambda doc: doc["metadata"]["name"])
