from __future__ import annotations

import copy
import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from render.flux import api, kinds
from render.flux.versions import FluxVersion, served_versions

SHARED = Path(os.environ.get("RENDER_SHARED", Path(__file__).parents[3] / "shared"))
CRDS = SHARED / "crds"
SCHEMAS = SHARED / "schemas"

pytestmark = pytest.mark.skipif(not CRDS.is_dir(), reason="the CRDs are not here")

PLURALS = {
    "HelmRelease": "helmreleases",
    "HelmRepository": "helmrepositories",
    "OCIRepository": "ocirepositories",
    "GitRepository": "gitrepositories",
    "ImageRepository": "imagerepositories",
    "ImagePolicy": "imagepolicies",
    "ImageUpdateAutomation": "imageupdateautomations",
    "Kustomization": "kustomizations",
}

NOT_COMPARED = {
    "description": "ours are our own words",
    "default": "a value that the API server fills in constrains nothing",
    "x-since": "a CRD knows no other version than its own",
    "x-kubernetes-validations": "the rules say them; their places are compared below",
    "x-kubernetes-map-type": "tells how lists and maps merge",
    "x-kubernetes-list-type": "tells how lists and maps merge",
    "x-kubernetes-preserve-unknown-fields": "a table without a type takes anything",
}

CEL_PLACES = {
    "HelmRelease": ["", "install.strategy", "kubeConfig", "kubeConfig", "upgrade.strategy"],
    "GitRepository": [""],
    "ImagePolicy": ["", ""],
    "Kustomization": ["kubeConfig", "kubeConfig"],
}

Rows = dict[str, dict[str, Any]]


def rows(schema: dict[str, Any], path: str = "") -> Rows:
    """Flatten a schema: the path of each node and what it demands there."""
    here = {key: value for key, value in schema.items() if key not in NOT_COMPARED}
    properties = here.pop("properties", {})
    items = here.pop("items", None)
    others = here.get("additionalProperties")
    here["required"] = sorted(here.get("required", []))
    if properties:
        # A CRD prunes or refuses what it does not list, without saying `additionalProperties: false`.
        here["additionalProperties"] = False
    elif isinstance(others, dict):
        here["additionalProperties"] = True
    found: Rows = {path: here}
    for name, child in properties.items():
        found |= rows(child, f"{path}.{name}".removeprefix("."))
    if items is not None:
        found |= rows(items, f"{path}[]")
    if isinstance(others, dict):
        found |= rows(others, f"{path}.*")
    return found


def cel_places(schema: dict[str, Any], path: str = "") -> list[str]:
    places = [path] * len(schema.get("x-kubernetes-validations", []))
    for name, child in schema.get("properties", {}).items():
        places += cel_places(child, f"{path}.{name}".removeprefix("."))
    if "items" in schema:
        places += cel_places(schema["items"], f"{path}[]")
    return places


@cache
def crd(kind: str) -> dict[str, Any]:
    group = api.OBJECTS[kind].api_version.partition("/")[0]
    loaded: dict[str, Any] = yaml.safe_load((CRDS / f"{group}_{PLURALS[kind]}.yaml").read_text("utf-8"))
    return loaded


def crd_spec(kind: str) -> dict[str, Any]:
    spec: dict[str, Any] = crd(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    return spec


def schema_spec(kind: str) -> dict[str, Any]:
    group, _, version = api.OBJECTS[kind].api_version.partition("/")
    loaded = json.loads((SCHEMAS / group / f"{kind.lower()}_{version}.json").read_text("utf-8"))
    spec: dict[str, Any] = loaded["properties"]["spec"]
    return spec


def test_every_known_object_has_a_crd_here() -> None:
    assert set(PLURALS) == set(api.OBJECTS)


@pytest.mark.parametrize("kind", sorted(PLURALS))
def test_table_has_the_fields_and_limits_of_the_crd(kind: str) -> None:
    assert rows(crd_spec(kind)) == rows(api.OBJECTS[kind].spec)


@pytest.mark.parametrize("kind", sorted(PLURALS))
def test_table_has_the_fields_and_limits_of_the_json_schema(kind: str) -> None:
    assert rows(schema_spec(kind)) == rows(api.OBJECTS[kind].spec)


def test_crds_say_nothing_that_a_table_cannot() -> None:
    keywords = {key for kind in PLURALS for row in rows(crd_spec(kind)).values() for key in row}
    assert {
        "additionalProperties",
        "enum",
        "maxItems",
        "maxLength",
        "minLength",
        "pattern",
        "required",
        "type",
    } == keywords


def test_comparison_notices_a_changed_limit_and_a_lost_field() -> None:
    spec = copy.deepcopy(crd_spec("HelmRelease"))
    assert len(rows(spec)) > 150
    spec["properties"]["chart"]["properties"]["spec"]["properties"]["chart"]["maxLength"] = 2047
    del spec["properties"]["valuesFrom"]["items"]["properties"]["optional"]
    ours = rows(api.HELM_RELEASE_SPEC)
    theirs = rows(spec)
    differing = {path for path in ours | theirs if ours.get(path) != theirs.get(path)}
    assert {"chart.spec.chart", "valuesFrom[].optional"} == differing


@pytest.mark.parametrize("kind", sorted(PLURALS))
def test_crd_has_no_rule_that_the_code_does_not_know(kind: str) -> None:
    expected = CEL_PLACES.get(kind, [])
    assert expected == sorted(cel_places(crd_spec(kind)))
    assert expected == sorted(cel_places(schema_spec(kind)))


@pytest.mark.parametrize("kind", sorted(PLURALS))
def test_crd_serves_the_version_that_is_written_in_a_namespace(kind: str) -> None:
    loaded = crd(kind)["spec"]
    served = tuple(f"{loaded['group']}/{version['name']}" for version in loaded["versions"] if version["served"])
    assert served == served_versions(kind, FluxVersion.parse("2.9"))
    assert (api.OBJECTS[kind].api_version,) == served
    assert loaded["scope"] == "Namespaced"
    assert kinds.is_cluster_scoped(served[0], kind) is False


def test_known_groups_are_those_with_schemas_but_gateway_api() -> None:
    groups = {folder.name for folder in SCHEMAS.iterdir() if folder.is_dir()}
    known = {name for name in groups if kinds.is_known_group("v1" if name == "core" else f"{name}/v1")}
    assert groups - known == {"gateway.networking.k8s.io"}


def test_every_kind_with_a_schema_has_a_scope() -> None:
    known = {(group or "core", kind.lower()) for group, kind in kinds.KINDS}
    files = {
        (file.parent.name, file.stem.rpartition("_")[0])
        for file in SCHEMAS.glob("*/*.json")
        if file.parent.name != "gateway.networking.k8s.io"
    }
    of_the_protocol = {("core", "apiversions"), ("core", "apigroup"), ("core", "status")}
    lists = {(group, kind) for group, kind in files if kind.endswith("list")}
    assert files - of_the_protocol - lists - known == set()
