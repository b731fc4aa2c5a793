"""What Go's own parser, inside the helm named by RENDER_HELM, takes and refuses of templates."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, event, example, given, settings
from hypothesis import strategies as st

from render.flux.commit_message import SPRIG
from render.flux.gotemplate import BUILTINS, TemplateError, parse
from tests.gotemplates import REFUSED, TAKEN, fragments

if TYPE_CHECKING:
    from collections.abc import Iterable

HELM = os.environ.get("RENDER_HELM", "")
TRUE_FALSE = ("taken", "refused")

pytestmark = pytest.mark.skipif(not HELM, reason="RENDER_HELM names no binary")


def refusal(texts: Iterable[str]) -> str:
    """Return what Go's parser says of the first template of a chart that it refuses; empty if it takes all of them."""
    with tempfile.TemporaryDirectory() as name:
        chart = Path(name)
        (chart / "templates").mkdir()
        (chart / "Chart.yaml").write_text("apiVersion: v2\nname: c\nversion: 0.1.0\n")
        for index, text in enumerate(texts):
            (chart / f"templates/t{index}.txt").write_bytes(text.encode())
        ran = subprocess.run([HELM, "template", "r", name], capture_output=True, text=True, check=False)
    # Everything is parsed before anything is executed, which may well fail.
    match = re.search(r"parse error at \((.*)", ran.stderr)
    return match[1] if match else ""


def is_taken(text: str) -> bool:
    try:
        parse(text, SPRIG)
    except TemplateError:
        return False
    return True


def test_templates_that_are_taken_are_taken_by_go() -> None:
    assert refusal(TAKEN) == ""


@pytest.mark.parametrize("text", REFUSED)
def test_template_that_is_refused_is_refused_by_go(text: str) -> None:
    assert refusal([text])


def test_functions_are_those_that_go_knows() -> None:
    # As arguments, so that none is called before all are parsed.
    assert refusal([f"{{{{ if false }}}}{{{{ {name} }}}}{{{{ end }}}}" for name in sorted(SPRIG | BUILTINS)]) == ""


@settings(max_examples=150, suppress_health_check=list(HealthCheck))
@given(st.lists(fragments(), min_size=1, max_size=6).map("".join))
@example("{{ . | }}")
@example("{{ $x, $y := .A }}")
@example("{{/* a */ }}")
def test_any_text_is_taken_or_refused_as_by_go(text: str) -> None:
    taken = is_taken(text)
    event(TRUE_FALSE[not taken])

    assert taken == (not refusal([text]))
