"""The install manifests of the corpus: each image is overridable, and nothing else moves."""

from __future__ import annotations

import io
import json
import os
import re
from pathlib import Path

import pytest
import yaml

from render.flux.override_sites import transform
from render.flux.overrides import Entry
from render.manifest import Rewrite, read, rewrite
from render.override import read_json_table

SAMPLES = Path(os.environ.get("RENDER_SHARED", Path(__file__).parents[3] / "shared")) / "samples" / "flux-install"

pytestmark = pytest.mark.skipif(not SAMPLES.is_dir(), reason="the shared samples are not here")

NAMES = sorted(path.name for path in SAMPLES.glob("*.yaml")) if SAMPLES.is_dir() else []
IMAGE = re.compile(r"^ +image: (ghcr\.io/fluxcd/[a-z-]+):(\S+)$", re.MULTILINE)


def rewritten(data: bytes, entries: list[dict[str, str]]) -> Rewrite:
    made = read(Path("-"), io.BytesIO(data))
    rewrite(made, read_json_table(json.dumps(entries), "--overrides").placed, "--overrides")
    assert made.diagnostics == []
    return made


@pytest.mark.parametrize("name", NAMES)
def test_an_empty_list_changes_no_byte_and_every_controller_is_listed(name: str) -> None:
    data = (SAMPLES / name).read_bytes()
    made = rewritten(data, [])

    assert made.made == data
    assert [fate.before for fate in made.fates] == [":".join(found) for found in IMAGE.findall(data.decode())]
    assert len(made.fates) >= 5


@pytest.mark.parametrize("name", NAMES)
def test_every_image_of_flux_can_be_overridden_and_nothing_else_moves(name: str) -> None:
    data = (SAMPLES / name).read_bytes()
    found = IMAGE.findall(data.decode())
    entries = [{"name": image, "newName": f"r.example:5000/{image}", "newTag": f"{tag}-corp"} for image, tag in found]
    made = rewritten(data, entries)

    expected = data.decode()
    for image, tag in found:
        expected = expected.replace(f"image: {image}:{tag}\n", f"image: r.example:5000/{image}:{tag}-corp\n")
    assert made.made.decode() == expected
    documents = [one for one in yaml.load_all(data, yaml.CBaseLoader) if one]
    table = [Entry.of(one) for one in entries]
    assert transform(documents, table).documents == [one for one in yaml.load_all(made.made, yaml.CBaseLoader) if one]
