from __future__ import annotations

import copy
import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from render.flux.api_core import CORE
from tests.project import project

SCHEMAS = Path(os.environ.get("RENDER_SHARED", Path(__file__).parents[3] / "shared")) / "schemas"
pytestmark = pytest.mark.skipif(not SCHEMAS.is_dir(), reason="the JSON schemas are not here")

POD = ("spec", "template", "spec")
CONTAINER = (*POD, "containers", "[]")
DEPLOYMENT, STATEFUL_SET = "apps/deployment_v1", "apps/statefulset_v1"
PLACES: dict[str, list[tuple[str, tuple[str, ...]]]] = {
    "Probe": [(DEPLOYMENT, (*CONTAINER, f"{name}Probe")) for name in ("readiness", "liveness", "startup")],
    "ResourceRequirements": [(DEPLOYMENT, (*CONTAINER, "resources"))],
    "SecurityContext": [(DEPLOYMENT, (*CONTAINER, "securityContext"))],
    "PodSecurityContext": [(DEPLOYMENT, (*POD, "securityContext"))],
    "EnvVarSource": [(DEPLOYMENT, (*CONTAINER, "env", "[]", "valueFrom"))],
    "EnvFromSource": [(DEPLOYMENT, (*CONTAINER, "envFrom", "[]"))],
    "EmptyDirVolumeSource": [(DEPLOYMENT, (*POD, "volumes", "[]", "emptyDir"))],
    "ConfigMapVolumeSource": [(DEPLOYMENT, (*POD, "volumes", "[]", "configMap"))],
    "SecretVolumeSource": [(DEPLOYMENT, (*POD, "volumes", "[]", "secret"))],
    "HostPathVolumeSource": [(DEPLOYMENT, (*POD, "volumes", "[]", "hostPath"))],
    "NFSVolumeSource": [(DEPLOYMENT, (*POD, "volumes", "[]", "nfs"))],
    "PersistentVolumeClaimSpec": [
        ("core/persistentvolumeclaim_v1", ("spec",)),
        (STATEFUL_SET, ("spec", "volumeClaimTemplates", "[]", "spec")),
    ],
    "DeploymentStrategy": [(DEPLOYMENT, ("spec", "strategy"))],
    "StatefulSetUpdateStrategy": [(STATEFUL_SET, ("spec", "updateStrategy"))],
}

QUANTITIES = {
    "ResourceRequirements.limits.*",
    "ResourceRequirements.requests.*",
    "EnvVarSource.resourceFieldRef.divisor",
    "EmptyDirVolumeSource.sizeLimit",
    "PersistentVolumeClaimSpec.resources.limits.*",
    "PersistentVolumeClaimSpec.resources.requests.*",
}
"""The schemas type them as strings; the API server reads numbers as well."""

MODES = {f"{kind}VolumeSource.{field}" for kind in ("ConfigMap", "Secret") for field in ("defaultMode", "items[].mode")}

NOT_COMPARED = {
    "description": "ours are our own words",
    "format": "no number that a person writes comes near the bounds of int32",
    "x-kubernetes-map-type": "tells how lists and maps merge",
    "x-kubernetes-list-type": "tells how lists and maps merge",
    "x-kubernetes-list-map-keys": "tells how lists and maps merge",
}

Rows = dict[str, dict[str, Any]]


@cache
def schema(file: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((SCHEMAS / f"{file}.json").read_text("utf-8"))
    return loaded


def part(file: str, steps: tuple[str, ...]) -> dict[str, Any]:
    found = schema(file)
    for step in steps:
        found = found["items"] if step == "[]" else found["properties"][step]
    return found


def rows(node: dict[str, Any], path: str) -> Rows:
    """Flatten a table or schema: the path of each node and what it demands there."""
    here = {key: value for key, value in node.items() if key not in NOT_COMPARED}
    properties, items, others = here.pop("properties", {}), here.pop("items", None), here.get("additionalProperties")
    here["required"] = sorted(here.get("required", []))
    if isinstance(others, dict):
        here["additionalProperties"] = True
    found: Rows = {path: here}
    for name, child in properties.items():
        found |= rows(child, f"{path}.{name}")
    if items is not None:
        found |= rows(items, f"{path}[]")
    if isinstance(others, dict):
        found |= rows(others, f"{path}.*")
    return found


def types(row: dict[str, Any]) -> set[str]:
    """The types that a node of the schemas takes, null among them."""
    if "oneOf" in row:
        return {option["type"] for option in row["oneOf"]}
    return {row["type"]} if isinstance(row["type"], str) else set(row["type"])


def their_rows(node: dict[str, Any], path: str) -> Rows:
    """Rows of a Kubernetes schema in the terms of our tables."""
    made: Rows = {}
    for place, row in rows(node, path).items():
        kinds = types(row) - {"null"}
        row.pop("oneOf", None)
        row.pop("type", None)
        if place in QUANTITIES:
            assert kinds == {"string"}
            row["anyOf"] = [{"type": "number"}, {"type": "string"}]
        elif len(kinds) == 1:
            row["type"] = kinds.pop()
        else:
            assert kinds == {"integer", "string"}
            row["anyOf"] = [{"type": "integer"}, {"type": "string"}]
        if place in MODES:
            row["x-octal"] = True
        made[place] = row
    return made


def test_every_table_has_a_place_in_the_schemas() -> None:
    assert list(PLACES) == list(CORE)


@pytest.mark.parametrize(("name", "file", "steps"), [(name, *place) for name in PLACES for place in PLACES[name]])
def test_table_has_the_fields_and_types_of_the_schema(name: str, file: str, steps: tuple[str, ...]) -> None:
    assert their_rows(part(file, steps), name) == rows(CORE[name], name)


@pytest.mark.parametrize("name", list(PLACES))
def test_exactly_the_fields_that_are_not_required_may_be_null(name: str) -> None:
    """The reader takes null for absence just where a field is not required."""
    found = rows(part(*PLACES[name][0]), name)
    for path, row in found.items():
        parent, dot, field = path.rpartition(".")
        if dot and field != "*" and not path.endswith("[]"):
            assert ("null" in types(row)) == (field not in found[parent]["required"]), path
        elif dot or path.endswith("[]"):
            assert "null" not in types(row), path


def test_the_schemas_say_nothing_that_a_table_cannot() -> None:
    keywords = {key for name in PLACES for row in rows(part(*PLACES[name][0]), name).values() for key in row}
    assert {"additionalProperties", "oneOf", "required", "type"} == keywords


def test_comparison_notices_a_lost_field_a_changed_type_and_a_lost_requirement() -> None:
    changed = copy.deepcopy(part(*PLACES["Probe"][0]))
    assert len(rows(changed, "Probe")) > 20
    del changed["properties"]["periodSeconds"]
    changed["properties"]["httpGet"]["properties"]["port"]["oneOf"] = [{"type": "integer"}]
    changed["properties"]["grpc"]["required"] = []
    ours, theirs = rows(CORE["Probe"], "Probe"), their_rows(changed, "Probe")
    differing = {path for path in ours | theirs if ours.get(path) != theirs.get(path)}
    assert {"Probe.periodSeconds", "Probe.httpGet.port", "Probe.grpc"} == differing


@pytest.mark.parametrize("ssh", [[], ["--ssh"]])
def test_secret_of_the_write_credential_is_a_secret(tmp_path: Path, ssh: list[str]) -> None:
    text = project(tmp_path, {}).run("write-back", "secret", *ssh).out
    filled = yaml.safe_load(text.replace('""', '"filled in"'))

    schema = json.loads((SCHEMAS / "core/secret_v1.json").read_text())
    assert set(filled) <= set(schema["properties"])
    assert set(filled["metadata"]) == {"name", "namespace"}
    assert schema["properties"]["stringData"]["additionalProperties"] == {"type": "string"}
    assert all(isinstance(value, str) for value in filled["stringData"].values())
