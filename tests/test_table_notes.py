"""What is surprising about an override table is told in every build."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from render.inventory import take_inventory
from render.override import read_table
from tests.project import project, told

PLATFORM = """\
cluster: test
flux: {version: "2.9"}
registries:
  imageOverrides:
  - {name: NAME, FIELDS}
"""
CHART = 'source: {image: IMAGE, chart: {url: "oci://charts.example/web", version: 1.0.0}}\n'
SERVICE = "name: web\n" + CHART
DIGEST = "sha256:" + "a" * 64


def notes(folder: Path, name: str, fields: str, *services: str) -> list[str]:
    files = {f"catalog/s{number}.yaml": text for number, text in enumerate(services)}
    platform = PLATFORM.replace("NAME", name).replace("FIELDS", fields)
    made = project(folder, {**files, "platform.yaml": platform}).build()
    assert not made.failed, made.diagnostics
    return told(made)


@pytest.mark.parametrize(
    ("name", "image"),
    [
        ("docker.io/library/nginx", "nginx:1"),
        ("nginx", "docker.io/library/nginx:1"),
        ("index.docker.io/library/nginx", "docker.io/library/nginx:1"),
        ("docker.io/bitnami/redis", f"bitnami/redis:7@{DIGEST}"),
        ("ghcr.io/a/b", "GHCR.io/a/b:1"),
    ],
)
def test_another_spelling_of_the_repository_is_told(name: str, image: str, tmp_path: Path) -> None:
    spelled = image.partition("@")[0].rpartition(":")[0]

    assert notes(tmp_path, name, "newName: mirror.example/x", SERVICE.replace("IMAGE", f'"{image}"')) == [
        f"R609 platform.yaml:5:12 `{name}` leaves `{spelled}` alone, which is the same image"
    ]


@pytest.mark.parametrize(
    ("name", "image"),
    [("nginx", "nginx:1"), ("nginx", "redis:1"), ("docker.io/library/nginx", "quay.io/library/nginx:1")],
)
def test_same_spelling_and_other_repositories_are_no_matter(name: str, image: str, tmp_path: Path) -> None:
    assert notes(tmp_path, name, "newName: mirror.example/x", SERVICE.replace("IMAGE", image)) == []


def test_registry_shape_is_compared_as_the_chart_spells_it(tmp_path: Path) -> None:
    service = SERVICE.replace("IMAGE", '{ref: "bitnami/nginx:1", shape: registry}')

    assert notes(tmp_path, "docker.io/bitnami/nginx", "newName: mirror.example/x", service) == []


def test_dot_that_matches_another_character_is_told(tmp_path: Path) -> None:
    service = SERVICE.replace("IMAGE", "gcr-io/team/web:1")

    assert notes(tmp_path, "gcr.io/team/web", "newName: mirror.example/x", service) == [
        "R609 platform.yaml:5:12 `gcr.io/team/web` also rewrites `gcr-io/team/web`"
    ]


def test_lost_digest_is_told(tmp_path: Path) -> None:
    service = SERVICE.replace("IMAGE", f'"nginx:1.27@{DIGEST}"')

    assert notes(tmp_path / "a", "nginx", 'newTag: "1.28"', service) == [
        "R609 platform.yaml:5:12 `nginx` loses its digest to the entry's `newTag`"
    ]
    assert notes(tmp_path / "b", "nginx", f'newTag: "1.28", digest: "{DIGEST}"', service) == []
    assert notes(tmp_path / "c", "nginx", "newName: mirror.example/x", service) == []


@pytest.mark.parametrize("key", ["env.AGENT", "args[0]", "controller.extraEnv[name=x].value", "main.command[0]"])
def test_image_in_an_environment_or_arguments_is_told(key: str, tmp_path: Path) -> None:
    image = f'{{ref: "nginx:1", shape: string, at: "{key}"}}'
    values = "values: {args: [''], main: {command: ['']}, controller: {extraEnv: [{name: x}]}}\n"
    service = SERVICE.replace("IMAGE", image) + values

    (note,) = notes(tmp_path, "nginx", "newName: mirror.example/x", service)
    assert note.endswith(f"`nginx` does not reach `source.image` in `{key}`")
    reached = service.replace("shape: string", "shape: string, reach: values")
    assert notes(tmp_path, "nginx", "newName: mirror.example/x", reached) == []


def test_service_without_overrides_is_left_out(tmp_path: Path) -> None:
    service = SERVICE.replace("IMAGE", "nginx:1") + "imageOverrides: none\n"

    assert notes(tmp_path / "a", "docker.io/library/nginx", "newName: mirror.example/x", service) == []
    declared = service.replace("none", "declared")
    assert len(notes(tmp_path / "b", "docker.io/library/nginx", "newName: mirror.example/x", declared)) == 1


def test_own_post_renderers_come_before_the_table(tmp_path: Path) -> None:
    own = "postRenderers: [{kustomize: {images: [{name: web, newName: nginx}]}}]\n"
    service = SERVICE.replace("IMAGE", "web:1") + own

    assert notes(tmp_path, "docker.io/library/nginx", "newName: mirror.example/x", service) == [
        "R609 platform.yaml:5:12 `docker.io/library/nginx` leaves `nginx` alone, which is the same image"
    ]


def test_images_of_one_name_are_told_once_with_the_first_place_and_their_number(tmp_path: Path) -> None:
    services = [f"name: s{i}\n" + CHART.replace("IMAGE", f"nginx:1.{i}") for i in range(4)]
    platform = PLATFORM.replace("NAME", "docker.io/library/nginx").replace("FIELDS", "newName: mirror.example/x")
    files = {f"catalog/s{i}.yaml": text for i, text in enumerate(services)}

    (fault,) = project(tmp_path, {**files, "platform.yaml": platform}).build().diagnostics

    ((place, text),) = fault.related
    assert (str(place), text) == ("catalog/s0.yaml:2:17", "declared here, and 3 times more")


def test_places_of_a_table_are_those_of_the_file_that_it_stands_in(tmp_path: Path) -> None:
    service = SERVICE.replace("IMAGE", "nginx:1.27.0") + "update: {range: 1.x}\n"
    made = project(tmp_path, {"catalog/web.yaml": service})
    (tmp_path / "table.yaml").write_text("- {name: nginx, newTag: '1.25'}\n")

    with contextlib.chdir(tmp_path):
        taken = take_inventory(Path("catalog"), Path("platform.yaml"), read_table(Path("table.yaml")).placed)

    assert made.build().diagnostics == []
    (retagged,) = taken.build.diagnostics
    assert (retagged.code, [str(place) for place, _ in retagged.related]) == ("R603", ["table.yaml:1:3"])


def test_build_without_a_table_is_silent(tmp_path: Path) -> None:
    assert told(project(tmp_path, {"catalog/web.yaml": SERVICE.replace("IMAGE", f'"nginx:1@{DIGEST}"')}).build()) == []
