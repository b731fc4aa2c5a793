from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import pytest

from render.build import Build, build, with_header
from tests.project import told

EXAMPLES = Path(os.environ.get("RENDER_SHARED", Path(__file__).parents[3] / "shared")) / "design/examples"
CLUSTERS = ("home", "airgap")
FILES = [
    (cluster, path.relative_to(EXAMPLES / "expected" / cluster).as_posix())
    for cluster in CLUSTERS
    for path in sorted((EXAMPLES / "expected" / cluster).rglob("*.yaml"))
]
APPS = "apps/kustomization.yaml"
pytestmark = pytest.mark.skipif(not EXAMPLES.exists(), reason="the shared examples are not here")


@cache
def tree(cluster: str) -> Build:
    return build(EXAMPLES / "catalog", EXAMPLES / f"{cluster}.yaml")


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_examples_render_without_a_finding(cluster: str) -> None:
    assert told(tree(cluster)) == []


@pytest.mark.parametrize(("cluster", "path"), [one for one in FILES if one[1] != APPS])
def test_file_is_the_expected_one(cluster: str, path: str) -> None:
    assert (EXAMPLES / "expected" / cluster / path).read_text() == tree(cluster).files[path]


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_list_of_services_names_the_namespaces_too(cluster: str) -> None:
    """The examples leave `namespaces.yaml` out, which the contract wants in front of the services."""
    label, body = "catalog", (EXAMPLES / "expected" / cluster / APPS).read_text().partition("\n")[2]
    body = body.replace("resources:\n", "resources:\n- namespaces.yaml\n")

    assert with_header(label, body) == tree(cluster).files[APPS]


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_services_have_no_other_files(cluster: str) -> None:
    made = {path for path in tree(cluster).files if path.startswith(("apps/", "configs/", "platform/"))}

    assert made - {path for one, path in FILES if one == cluster} == {"apps/namespaces.yaml"}
