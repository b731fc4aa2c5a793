from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.bot import NotModelled, rewrite

SHARED = Path(os.environ.get("RENDER_SHARED", Path(__file__).parents[3] / "shared"))
CASES = SHARED / "cases" / "setter-rewrites.jsonl"

pytestmark = pytest.mark.skipif(not CASES.exists(), reason="the shared cases are absent")


@pytest.fixture(scope="module")
def cases() -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in CASES.read_text(encoding="utf-8").splitlines()]
    # Which file names the bot considers is not the model's matter.
    return [row for row in rows if row.get("name", "f.yaml").endswith((".yaml", ".yml"))]


def test_the_model_agrees_or_declines(cases: list[dict[str, Any]]) -> None:
    outcomes: Counter[str] = Counter()
    wrong = []
    for case in cases:
        try:
            after = rewrite(case["file"].encode(), case["policies"], case.get("name", "file.yaml"))
        except NotModelled:
            outcomes["declined"] += 1
            continue
        if after == case["after"]:
            outcomes["untouched" if after is None else "rewritten"] += 1
        else:
            wrong.append((case["file"], case["after"], after))
    assert wrong == []
    assert outcomes["rewritten"] >= 428
    assert outcomes["untouched"] >= 115
    assert outcomes["declined"] <= 39
