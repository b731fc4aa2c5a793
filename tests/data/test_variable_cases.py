from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from tests.project import PLATFORM, project

SHARED = Path(os.environ.get("RENDER_SHARED", Path(__file__).parents[3] / "shared"))
FILE = SHARED / "cases/envsubst.jsonl"
NAME = re.compile(r"[_A-Za-z][_A-Za-z0-9]*", re.ASCII)
pytestmark = pytest.mark.skipif(not FILE.exists(), reason="the shared cases are not here")


def test_every_text_that_flux_fails_on_is_refused(tmp_path: Path) -> None:
    """Each case as a value of one service; a name that Flux refuses cannot be declared, so such cases are left out."""
    cases = [json.loads(line) for line in FILE.read_text().splitlines()]
    cases = [case for case in cases if all(NAME.fullmatch(name) for name in case["vars"])]
    assert len(cases) > 500
    missed = []
    for case in cases:
        service = {
            "name": "web",
            "source": {"chart": {"url": "oci://charts.example.org/c", "version": "1.0.0"}},
            "values": {"a": case["text"]},
        }
        platform = PLATFORM + "defaults: {substitute: " + json.dumps(sorted(case["vars"])) + "}\n"
        built = project(tmp_path, {"catalog/web.yaml": json.dumps(service), "platform.yaml": platform}).build()
        if "error" in case and not built.failed:
            missed.append(case["text"])

    assert missed == []
