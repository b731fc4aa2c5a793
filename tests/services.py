"""ServiceDefinitions and platform files at random, of every form that people may write; most of them are in order."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from render.yaml.scalar import double_quoted

DIGEST = "sha256:" + "0123456789abcdef" * 4
REPOSITORIES = ("ghcr.io/o/web", "docker.io/library/redis", "nginx", "registry.example:5000/a/b_c", "quay.io/x/y-z.w")
UPDATES: tuple[tuple[str, dict[str, Any] | None], ...] = (
    ("1.2.3", None),
    ("1.2.3", {"range": "1.x"}),
    ("1.2.3", {"range": ">=1.2.0 <2.0.0", "cadence": "12h"}),
    ("v1.2.3", {"range": "^1.2", "cadence": "0 */6 * * *"}),
    ("1.2.3-alpine", {"range": "1.x", "autoRollbackOnFailedHealth": False}),
    ("1.20", {"range": "1.x"}),
    ("1.2.3-rc.1", {"channel": "prerelease", "range": ">=1.0.0-0"}),
    ("2024.7.1", {"channel": "calver"}),
    ("20240701", {"channel": "build"}),
    (f"1.2.3@{DIGEST}", {"range": "1.x"}),
    (f"1.2.3@{DIGEST}", None),
    ("1.2.3", {"range": "1.x", "digest": "always"}),
    ("latest", {"channel": "digest"}),
    (f"latest@{DIGEST}", {"channel": "digest"}),
    ("1.2.3", {"range": "1.x", "pin": "1.2.4"}),
    ("1.2.3", {"range": "1.x", "pin": f"1.2.4@{DIGEST}"}),
    (
        "b-7",
        {
            "channel": "custom",
            "policy": {"numerical": {"order": "asc"}},
            "filterTags": {"pattern": "^b-(?P<n>[0-9]{1,9})$", "extract": "$n"},
        },
    ),
)
"""A tag, and an update that fits it."""
SHAPES = ("split", "registry", "digest", "string", "tag", "postRenderer", None)
CHARTS = (
    {"url": "https://charts.example", "name": "web", "version": "1.0.0"},
    {"url": "oci://charts.example/web", "version": "1.0.0"},
    {"url": "oci://charts.example", "name": "web", "versionRange": "1.x"},
    {"git": "https://git.example/charts", "path": "charts/web", "ref": {"tag": "v1"}},
    {"repository": "shared", "name": "web", "version": "2.0.0"},
    {"repository": "packed"},
)
FREE: tuple[dict[str, Any], ...] = (
    {},
    {"replicas": 2, "text": "x:\n  - y\n", "list": ["1", {"a": ["yes"]}], "empty": {}, "none": []},
    {"list": [[1, 2], []], "words": {"yes": "no", "1": "0x1"}, "block": "a\n\nb\n", "astral": "😀"},
)


def yaml_of(value: Any) -> str:
    """Write a value as YAML in flow style, all its strings double-quoted."""
    if isinstance(value, str):
        return double_quoted(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "{" + ", ".join(f"{double_quoted(key)}: {yaml_of(inner)}" for key, inner in value.items()) + "}"
    return "[" + ", ".join(map(yaml_of, value)) + "]" if isinstance(value, list) else str(value)


def document(definition: dict[str, Any]) -> str:
    """Write a definition as a catalog file."""
    return "".join(f"{key}: {yaml_of(value)}\n" for key, value in definition.items())


@st.composite
def images(draw: st.DrawFn, path: str, *, shaped: bool) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """An image with a place of its own, and its update."""
    tag, update = draw(st.sampled_from(UPDATES))
    image: dict[str, Any] = {"ref": f"{draw(st.sampled_from(REPOSITORIES))}:{tag}"}
    if shaped:
        shape = draw(st.sampled_from(SHAPES))
        if shape is not None:
            image["shape"] = shape
        if shape != "postRenderer":
            at: Any = draw(st.sampled_from([path, [path, f"deep.{path}"], f'"{path}.x".y']))
            if shape is None and draw(st.booleans()):
                at = {"repository": f"{path}Name", "tag": f"{path}.tag"}
            image["at"] = at
    return image, update


@st.composite
def extra_objects(draw: st.DrawFn, name: str) -> dict[str, Any]:
    """A raw object, of a kind that is known or not."""
    api, kind = draw(st.sampled_from([("v1", "ConfigMap"), ("batch/v1", "CronJob"), ("example.org/v1", "Widget")]))
    made: dict[str, Any] = {"apiVersion": api, "kind": kind, "metadata": {"name": name}}
    if draw(st.booleans()):
        made["metadata"]["namespace"] = "elsewhere"
    if kind == "CronJob":
        container = {"name": "job", "image": f"{draw(st.sampled_from(REPOSITORIES))}:1.2.3"}
        made["spec"] = {"jobTemplate": {"spec": {"template": {"spec": {"containers": [container]}}}}}
    else:
        made["data" if kind == "ConfigMap" else "spec"] = {"text": "a\nb\n"}
    return made


@st.composite
def workloads(draw: st.DrawFn) -> dict[str, Any]:
    """A plain workload with a readiness probe."""
    made: dict[str, Any] = {
        "replicas": draw(st.integers(0, 3)),
        "probes": {"readiness": {"httpGet": {"path": "/", "port": "http"}}},
        "ports": [{"name": "http", "containerPort": draw(st.integers(1, 65535))}],
    }
    if draw(st.booleans()):
        made["env"] = {"A": "1", "B": {"valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}}
        made["args"] = ["--x", "yes"]
    volume = draw(st.sampled_from(["none", "emptyDir", "claim"]))
    if volume != "none":
        source: dict[str, Any] = {} if volume == "emptyDir" else {"resources": {"requests": {"storage": "1Gi"}}}
        made["volumes"] = [{"name": "data", "mountPath": "/data", volume: source}]
    return made


SSH_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEmT5DtkVx1S9Yx5cTxdRQmXQhcGjo5Kt9b1a8E2T6Ck"


@st.composite
def machines(draw: st.DrawFn) -> dict[str, Any]:
    """A virtual machine of `source.image`, and perhaps what its guest is given."""
    made: dict[str, Any] = {"memory": "2Gi", "os": draw(st.sampled_from(["debian", "ubuntu", "fedora", "el"]))}
    if draw(st.booleans()):
        root = draw(
            st.sampled_from([{"image": "main"}, {"dataVolume": {"size": "9Gi", "registry": {"image": "main"}}}])
        )
        data = draw(
            st.sampled_from(
                [
                    {"emptyDisk": "1Gi"},
                    {"claim": {"resources": {"requests": {"storage": "1Gi"}}}},
                    {"dataVolume": {"size": "1Gi", "blank": True}},
                ]
            )
        )
        made["disks"] = [{"name": "root", **root}, {"name": "data", **data}]
        made["networks"] = draw(st.sampled_from([[], [{"name": "a"}, {"name": "b", "multus": "lan/br0"}]]))
        made["spec"] = {"domain": {"devices": {"rng": {}}}}
    if draw(st.booleans()):
        text = "a:\n  - b\n" * draw(st.sampled_from([1, 400]))
        made["cloudInit"] = {
            "users": ["default", {"name": "ada", "sshKeys": [SSH_KEY]}],
            "files": [{"path": "/etc/x", "content": text, "permissions": "0644"}],
            "commands": ["echo yes", ["echo", "1.20"]],
            "userData": draw(st.sampled_from([{}, {"ntp": {"servers": ["yes", "1"]}}])),
        }
    return made


@st.composite
def services(draw: st.DrawFn, name: str = "web") -> dict[str, Any]:
    """A ServiceDefinition delivered by a chart, as a plain workload, as a virtual machine, or as raw objects."""
    made: dict[str, Any] = {"name": name}
    delivery = draw(st.sampled_from(["chart", "chart", "chart", "workload", "vm", "objects"]))
    if draw(st.booleans()):
        made["namespace"] = draw(st.sampled_from(["apps", "flux-system", "default"]))
    if draw(st.booleans()):
        made["labels"], made["annotations"] = {"team": "yes"}, {"note": "a: b # c"}
    if delivery == "chart":
        made["source"] = {"chart": draw(st.sampled_from(CHARTS))}
        made["values"] = draw(st.sampled_from(FREE))
        if draw(st.booleans()):
            made["source"]["image"], update = draw(images("image", shaped=True))
            if update is not None:
                made["update"] = update
        if draw(st.booleans()):
            extra, update = draw(images("side", shaped=True))
            made["images"] = {"side": {**extra, **({"update": update} if update is not None else {})}}
        if draw(st.booleans()):
            made["postRenderers"] = [{"kustomize": {"patches": [{"patch": "- op: x\n", "target": {"kind": "A"}}]}}]
    elif delivery == "workload":
        image, update = draw(images("x", shaped=False))
        made["source"], made["workload"] = {"image": image["ref"]}, draw(workloads())
        if update is not None:
            made["update"] = update
    elif delivery == "vm":
        made |= {"kind": "vm", "source": {"image": f"{draw(st.sampled_from(REPOSITORIES))}:13"}, "vm": draw(machines())}
        update = draw(st.sampled_from([None, {"cadence": "12h"}, {"cadence": "0 4 1 * MON"}, {"pin": "12"}]))
        if update is not None:
            made["update"] = update
    if delivery == "objects" or draw(st.integers(0, 3)) == 0:
        made["extraObjects"] = [draw(extra_objects(f"{name}-extra"))]
        if delivery == "objects" and draw(st.booleans()):
            image, update = draw(images("x", shaped=False))
            at = "extraObjects[0].spec.image"
            made["extraObjects"][0] |= {"apiVersion": "example.org/v1", "kind": "Widget"}
            made["source"] = {"image": {**image, "at": at, "shape": "string"}}
            if update is not None:
                made["update"] = update
    return made


TABLES: tuple[list[dict[str, Any]] | None, ...] = (
    None,
    [],
    [{"name": "ghcr.io/o/web", "newName": "mirror.example/o/web"}],
    [
        {"name": "nginx", "newName": "mirror.example/nginx", "newTag": "1.0"},
        {"name": "docker.io/library/redis", "digest": DIGEST},
    ],
    [{"name": name, "newName": f"mirror.example/m{i}"} for i, name in enumerate(REPOSITORIES)],
)


@st.composite
def platforms(draw: st.DrawFn) -> dict[str, Any]:
    """A platform file with two named chart sources and perhaps a table of overrides."""
    made: dict[str, Any] = {
        "cluster": "test",
        "flux": {
            "version": draw(st.sampled_from(["2.7", "2.8", "2.9"])),
            "kustomizations": draw(st.sampled_from(["all", "namespace", "service"])),
            "crossNamespaceRefs": draw(st.booleans()),
        },
        "charts": {
            "shared": {"url": "https://shared.example"},
            "packed": {"url": "oci://packed.example/web", "version": "3.0.0", "at": "app.{service}.image"},
        },
        "registries": {"emit": draw(st.sampled_from(["all", "declared", "none"]))},
        "imageAutomation": {"enabled": draw(st.booleans()), "author": {"email": "bot@example.org"}},
        "alerts": {"enabled": draw(st.booleans())},
        "defaults": {"namespaces": draw(st.booleans())},
    }
    table = draw(st.sampled_from(TABLES))
    if table is not None:
        made["registries"]["imageOverrides"] = table
    return made
