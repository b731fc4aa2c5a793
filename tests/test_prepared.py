from __future__ import annotations

import json
import marshal
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from render import prepared, preparing
from render.flux.api_schema import DURATION, DURATION_WITHOUT_HOURS
from render.model import schema
from render.plan import platform
from tests.compiled import IS_COMPILED

TOP = Path(__file__).parents[1]
KEYS = preparing.keys()
DURATIONS = (DURATION, DURATION_WITHOUT_HOURS)


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Give what writes the file that is read."""
    path = tmp_path / "prepared.bin"
    monkeypatch.setattr(prepared, "path", lambda: str(path))
    prepared._load.cache_clear()
    yield path
    prepared._load.cache_clear()


@pytest.mark.parametrize("key", KEYS, ids=[repr(text)[:60] for text, _ in KEYS])
def test_a_kept_pattern_is_the_compiled_one(key: tuple[str | bytes, int], there: Path) -> None:
    there.write_bytes(marshal.dumps((prepared.KEY, {key: marshal.dumps(preparing.compiled(*key))})))

    made, expected = prepared.pattern(*key), re.compile(*key)

    # Patterns are equal when their code is.
    assert made == expected
    assert (made.groups, made.groupindex, made.flags) == (expected.groups, expected.groupindex, expected.flags)
    assert made is not expected


def test_the_patterns_of_modules_schemas_and_tables_are_kept() -> None:
    texts = {text for text, _ in KEYS}

    assert platform._KEY._text in texts  # type: ignore[attr-defined]
    assert set(KEYS) >= {(pattern, int(re.ASCII)) for pattern in DURATIONS}
    assert json.loads(schema.text("service"))["properties"]["name"]["pattern"].replace("$", r"\Z") in texts
    assert len(texts) > 150


def test_the_file_holds_patterns_and_schemas(there: Path) -> None:
    there.write_bytes(preparing.content())

    assert all(prepared.part(key) is not None for key in KEYS)
    assert {kind: prepared.part(kind) for kind in schema.KINDS} == {
        kind: json.loads(schema.text(kind)) for kind in schema.KINDS
    }


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0",
        marshal.dumps(7),
        marshal.dumps((prepared.KEY,)),
        marshal.dumps((("another Python",), {KEYS[0]: b"x"})),
        preparing.content()[:-9],
    ],
    ids=["empty", "no marshal", "a number", "one part", "of another Python", "cut"],
)
def test_another_file_is_none(data: bytes, there: Path) -> None:
    there.write_bytes(data)

    assert prepared.part(KEYS[0]) is None
    assert prepared.pattern(*KEYS[0]) == re.compile(*KEYS[0])


def test_without_a_file_patterns_are_compiled(there: Path) -> None:
    assert not there.exists()
    assert prepared.pattern("a(?P<b>c)", re.IGNORECASE) == re.compile("a(?P<b>c)", re.IGNORECASE)


@pytest.mark.skipif(not IS_COMPILED, reason="nothing is prepared in a checkout")
def test_a_wheel_brings_the_file() -> None:
    assert prepared.part(KEYS[0]) is not None


def test_a_usual_build_compiles_no_pattern_but_those_of_policies(there: Path, tmp_path: Path) -> None:
    there.write_bytes(preparing.content())
    script = f"""
import re, sys
import cronsim, locale, yaml
from re import _compiler
from render import prepared
prepared.path = lambda: {str(there)!r}
made, compile = [], _compiler.compile
_compiler.compile = lambda text, flags=0: made.append(text) or compile(text, flags)
import render.session
code = render.session.run_plain("build", sys.argv[1:], None)
assert code == 0, code
print("\\n".join(map(repr, made)))
"""
    arguments = ["catalog", "--platform", "platform.yaml", "--out", str(tmp_path / "out"), "--quiet", "--jobs", "1"]
    ran = subprocess.run(
        [sys.executable, "-c", script, *arguments], cwd=TOP, capture_output=True, text=True, check=True
    )

    assert [line for line in ran.stdout.splitlines() if not line.startswith("'^")] == []
