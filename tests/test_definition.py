from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from render.definition import FIELDS, Verbatim, definition_text, platform_text, schema_files, schema_path
from render.model import schema
from render.yaml.source import Source, parse
from tests.hostile import keys, texts
from tests.project import project


def test_the_order_names_every_field() -> None:
    assert sorted(FIELDS) == sorted(json.loads(schema.text("service"))["properties"])


def test_fields_stand_in_the_order_people_read_them_in() -> None:
    made = definition_text(
        {
            "values": {"zeta": 1, "alpha": "yes"},
            "update": {"cadence": "24h", "range": "6.x"},
            "source": {
                "chart": {"version": "6.7.1", "url": "oci://ghcr.io/stefanprodan/charts/podinfo"},
                "image": "ghcr.io/stefanprodan/podinfo:6.7.1",
            },
            "images": {
                "proxy": {"update": {"range": "1.x"}, "at": "proxy.image", "ref": "docker.io/istio/proxyv2:1.24.1"}
            },
            "description": None,
            "namespace": "demo",
            "name": "podinfo",
        },
        "../.schema/service.json",
    )

    assert made == (
        "# yaml-language-server: $schema=../.schema/service.json\n"
        "name: podinfo\n"
        "namespace: demo\n"
        "source:\n"
        "  image: ghcr.io/stefanprodan/podinfo:6.7.1\n"
        "  chart:\n"
        "    url: oci://ghcr.io/stefanprodan/charts/podinfo\n"
        '    version: "6.7.1"\n'
        "images:\n"
        "  proxy:\n"
        "    ref: docker.io/istio/proxyv2:1.24.1\n"
        "    at: proxy.image\n"
        "    update:\n"
        '      range: "1.x"\n'
        "update:\n"
        '  range: "6.x"\n'
        "  cadence: 24h\n"
        "values:\n"
        "  zeta: 1\n"
        '  alpha: "yes"\n'
    )


def test_text_that_is_there_already_keeps_its_comments() -> None:
    made = definition_text({"name": "web", "values": Verbatim("# why\na: &x 1 # one\n\nb: |\n  text\n\n  more\nc: *x")})

    assert made == ("name: web\nvalues:\n  # why\n  a: &x 1 # one\n\n  b: |\n    text\n\n    more\n  c: *x\n")


def test_source_nodes_keep_their_spelling() -> None:
    documents, faults = parse(Source("x.yaml", "mode: 0644\ntag: '1.10'\nlist: [yes, \"no\"]\n"))

    assert faults == []
    assert definition_text({"name": "web", "values": documents[0].root}) == (
        "name: web\nvalues:\n  mode: 0644\n  tag: '1.10'\n  list:\n    - yes\n    - \"no\"\n"
    )


def test_a_field_that_there_is_not_is_a_bug() -> None:
    with pytest.raises(KeyError, match="nmae"):
        definition_text({"nmae": "web"})


def test_a_platform_file_reads_back() -> None:
    made = platform_text(
        {"flux": {"version": "2.9"}, "cluster": "home", "charts": {"a": {"version": "1.0", "url": "oci://r.example/a"}}}
    )

    assert made == (
        'cluster: home\nflux:\n  version: "2.9"\ncharts:\n  a:\n    url: oci://r.example/a\n    version: "1.0"\n'
    )


def test_the_schema_is_the_one_that_the_neighbours_name(tmp_path: Path) -> None:
    catalog = tmp_path / "catalog"
    (catalog / "dns").mkdir(parents=True)
    new = catalog / "media" / "new.yaml"

    assert schema_path(catalog, new) == "../.schema/service.json"
    assert schema_path(catalog, tmp_path / "platform.yaml", "platform") == "catalog/.schema/platform.json"
    (catalog / "dns" / "a.yaml").write_text("name: a\n")
    assert schema_path(catalog, new) == "../.schema/service.json"
    (catalog / "dns" / "b.yaml").write_text("# yaml-language-server: $schema=../../render/service.json\nname: b\n")
    assert schema_path(catalog, new) == "../../render/service.json"
    (catalog / "dns" / "a.yaml").write_text("# yaml-language-server: $schema=https://example.org/s.json\n")
    assert schema_path(catalog, new) == "https://example.org/s.json"


def test_the_schemas_in_the_catalog_are_no_part_of_it(tmp_path: Path) -> None:
    made = project(tmp_path, {})
    for path, text in schema_files(tmp_path / "catalog").items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    (tmp_path / "catalog/web.yaml").write_text(
        definition_text({"name": "web", "source": {"image": "docker.io/traefik/whoami:v1.10.3"}, "workload": {}})
    )

    assert [one.code for one in made.build().diagnostics] == []


values = st.recursive(
    st.booleans() | st.integers(-(2**63), 2**63) | texts(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(keys(), values, min_size=1), texts())
def test_what_is_written_reads_back(tree: dict[str, Any], description: str) -> None:
    made = definition_text({"name": "web", "description": description, "values": tree}, "s.json")

    assert yaml.load(made, yaml.CSafeLoader) == {"name": "web", "description": description, "values": tree}
    documents, faults = parse(Source("x.yaml", made))
    assert (len(documents), faults) == (1, [])
