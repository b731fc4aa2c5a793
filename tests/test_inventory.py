"""Every declared image with what becomes of it."""

from __future__ import annotations

import contextlib
import csv
import io
from pathlib import Path
from typing import Any

import pytest

from render.inventory import COLUMNS, Inventory, Row, as_json, notes, render_rows, summary, take_inventory
from render.override import read_table
from tests.project import project

DIGEST = "sha256:" + "a" * 64
CHART = 'chart: {url: "oci://charts.example/web", version: 1.0.0}'
PLATFORM = """\
cluster: test
flux: {version: "2.9"}
registries:
  imageOverrides:
  - {name: docker.io/library/nginx, newName: mirror.example/nginx}
  - {name: docker.io/library/redis, newTag: "7.0"}
  - {name: quay.io/only/in-a-chart, newName: mirror.example/chart}
"""
WEB = f"""\
name: web
source:
  image: docker.io/library/nginx:1.27.0
  {CHART}
update: {{range: 1.x}}
images:
  cache: {{ref: "docker.io/library/redis:7.4.1", at: cache.image, update: {{range: 7.x}}}}
  pinned: {{ref: "ghcr.io/a/pinned:1.0.0", at: [x.image, y.image], update: {{pin: 1.0.1}}}}
  parts: {{ref: "ghcr.io/a/parts:1.0.0", at: {{repository: partsRepo, tag: partsTag}}}}
  operand: {{ref: "docker.io/library/nginx:1.26.0", shape: string, at: operand, reach: values}}
  post: {{ref: "ghcr.io/a/post:1.0.0", shape: postRenderer}}
"""
PLAIN = """\
name: a-plain
source: {image: "docker.io/library/nginx:1.27.0"}
update: {range: 1.x}
workload: {replicas: 1}
images:
  pg: {ref: "ghcr.io/a/pg:16.1", shape: string, at: "extraObjects[kind=Cluster,name=pg].spec.imageName"}
extraObjects:
- {apiVersion: example.org/v1, kind: Cluster, metadata: {name: pg}}
"""


def inventory(folder: Path, files: dict[str, Any], table: str | None = None) -> Inventory:
    made = project(folder, files)
    overrides = None
    if table is not None:
        (folder / "table.yaml").write_text(table)
    with contextlib.chdir(made.folder):
        if table is not None:
            overrides = read_table(Path("table.yaml")).placed
        return take_inventory(Path("catalog"), Path("platform.yaml"), overrides)


@pytest.fixture
def taken(tmp_path: Path) -> Inventory:
    plain = PLAIN.replace("{replicas: 1}", "{replicas: 1, probes: {readiness: {tcpSocket: {port: 80}}}}")
    return inventory(tmp_path, {"catalog/b.yaml": WEB, "catalog/z.yaml": plain, "platform.yaml": PLATFORM})


def test_rows_tell_of_each_declared_image_what_becomes_of_it(taken: Inventory) -> None:
    mirror, nginx = "mirror.example/nginx", "docker.io/library/nginx"
    assert [
        Row("a-plain", "main", "container", f"{nginx}:1.27.0", f"{mirror}:1.27.0", (0,), "a-plain", mirror, None),
        Row("a-plain", "pg", "extraObjects[0].spec.imageName", *["ghcr.io/a/pg:16.1"] * 2, (), None, None, None),
        Row("web", "main", "values.image", f"{nginx}:1.27.0", f"{mirror}:1.27.0", (0,), "web", mirror, None),
        Row(
            *("web", "cache", "values.cache.image", "docker.io/library/redis:7.4.1", "docker.io/library/redis:7.0"),
            *((1,), None, None, "registries.imageOverrides[1]"),
        ),
        Row(
            *("web", "pinned", "values.x.image, values.y.image", "ghcr.io/a/pinned:1.0.0", "ghcr.io/a/pinned:1.0.1"),
            *((), None, None, "pin"),
        ),
        Row("web", "parts", "values.partsRepo, values.partsTag", *["ghcr.io/a/parts:1.0.0"] * 2, (), None, None, None),
        Row("web", "operand", "values.operand", f"{nginx}:1.26.0", f"{mirror}:1.26.0", (0,), None, None, None),
        Row("web", "post", "postRenderers", *["ghcr.io/a/post:1.0.0"] * 2, (), None, None, None),
    ] == taken.rows


def test_entries_without_an_image_and_images_out_of_reach_are_told(taken: Inventory) -> None:
    assert taken.unused == [2]
    assert taken.unreached == [("web", "operand", "values.operand", True)]
    assert notes(taken) == [
        "no entry reaches `values.operand` of web (operand): the effective image is written there",
        "entries that hit no declared image (a chart may bring it): quay.io/only/in-a-chart",
        "8 images, 2 automated",
    ]


def test_image_in_the_environment_is_out_of_reach(tmp_path: Path) -> None:
    service = f'name: web\nsource: {{image: {{ref: "a/b:1", shape: string, at: env.X}}, {CHART}}}\n'

    taken = inventory(tmp_path, {"catalog/web.yaml": service})

    assert taken.unreached == [("web", "main", "values.env.X", False)]
    assert notes(taken)[0] == "no entry reaches `values.env.X` of web (main): say `reach: values` if it is run there"


def test_keeping_services_leaves_out_the_rest(taken: Inventory) -> None:
    taken.keep(["a-plain"])

    assert {"a-plain"} == {row.service for row in taken.rows}
    assert taken.unreached == []
    assert notes(taken, unused=False) == ["2 images, 1 automated"]


def test_another_table_takes_the_place_of_the_platforms(tmp_path: Path) -> None:
    table = "- {name: docker.io/library/nginx, newTag: '1.25'}\n"
    taken = inventory(tmp_path, {"catalog/b.yaml": WEB, "platform.yaml": PLATFORM}, table)

    row = taken.rows[0]
    assert (row.effective, row.entries, row.policy) == ("docker.io/library/nginx:1.25", (0,), None)
    assert row.pinned_by == "registries.imageOverrides[0]"
    assert taken.unused == []


def test_nothing_is_collected_from_a_catalog_with_errors(tmp_path: Path) -> None:
    taken = inventory(tmp_path, {"catalog/b.yaml": WEB, "catalog/c.yaml": "name: x\nnone: 1\n"})

    assert taken.build.failed
    assert (taken.rows, taken.unused, taken.unreached) == ([], [], [])


def test_nothing_is_written(tmp_path: Path) -> None:
    made = project(tmp_path, {"catalog/b.yaml": WEB, "platform.yaml": PLATFORM})
    take_inventory(tmp_path / "catalog", tmp_path / "platform.yaml")

    assert made.tree() == {}


def test_json_rows_have_the_documented_fields(taken: Inventory) -> None:
    (row,) = as_json(taken.rows[:1])

    assert list(COLUMNS) == list(row)
    assert row == {
        "service": "a-plain",
        "image": "main",
        "at": "container",
        "declared": "docker.io/library/nginx:1.27.0",
        "effective": "mirror.example/nginx:1.27.0",
        "entries": [0],
        "policy": "a-plain",
        "imageRepository": "mirror.example/nginx",
        "pinnedBy": None,
    }
    assert list(summary(taken)) == ["images", "unusedEntries", "unreached"]


def test_csv_is_read_back_as_the_rows(taken: Inventory) -> None:
    read = list(csv.DictReader(io.StringIO(render_rows(taken.rows, "csv"))))

    def text(value: Any) -> str:
        return " ".join(map(str, value)) if isinstance(value, list) else value or ""

    assert read == [{key: text(value) for key, value in row.items()} for row in as_json(taken.rows)]


def test_table_aligns_its_columns_and_markdown_has_a_row_an_image(taken: Inventory) -> None:
    rows = taken.rows[:2]

    assert render_rows(rows, "table") == (
        "service  image  at                              declared                        effective"
        "                    entries  policy   imageRepository       pinnedBy\n"
        "a-plain  main   container                       docker.io/library/nginx:1.27.0  mirror.example/nginx:1.27.0"
        "  0        a-plain  mirror.example/nginx  -\n"
        "a-plain  pg     extraObjects[0].spec.imageName  ghcr.io/a/pg:16.1               ghcr.io/a/pg:16.1"
        "            -        -        -                     -\n"
    )
    lines = render_rows(rows, "markdown").splitlines()
    assert len(lines) == 4
    assert {10} == {line.count("|") for line in lines}


@pytest.mark.parametrize("style", ["table", "csv", "markdown"])
def test_list_without_images_has_its_head_alone(style: str) -> None:
    assert render_rows([], style).count("\n") == (2 if style == "markdown" else 1)
