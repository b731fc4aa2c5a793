from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from render.yaml import scalar
from render.yaml.source import Mapping, Scalar, Source, parse
from tests.project import project

SHARED = Path(os.environ.get("RENDER_SHARED", Path(__file__).parents[3] / "shared"))
CASES = SHARED / "cases" / "yaml-scalars.jsonl"
SERVICE = """\
name: web
source:
  chart: {url: "https://charts.example", name: web, version: "1.0.0"}
values:
"""

pytestmark = pytest.mark.skipif(not CASES.exists(), reason="the shared cases are absent")


@pytest.fixture(scope="module")
def cases() -> list[dict[str, Any]]:
    return [json.loads(line) for line in CASES.read_text(encoding="utf-8").splitlines()]


def values_of(text: str) -> Mapping | None:
    """The `values` of a HelmRelease or a definition; None when the text cannot be read."""
    documents, faults = parse(Source("f.yaml", text))
    if any(fault.severity == "error" for fault in faults) or len(documents) != 1:
        return None
    root = documents[0].root
    assert isinstance(root, Mapping)
    spec = root.get("spec") or root
    assert isinstance(spec, Mapping)
    values = spec.get("values")
    return values if isinstance(values, Mapping) else None


def known(case: dict[str, Any]) -> tuple[Any, Any]:
    """What the two readers really gave for the case as a value: (kyaml, sigs), each with its kind."""
    return (case["kyaml"]["kind"], case["kyaml"]["json"]), (case["kind"], case["json"])


def modelled(node: Scalar) -> tuple[Any, Any]:
    """What the two readers make of a scalar of the output."""
    if node.style:
        return ("string", node.text), ("string", node.text)
    one, other = scalar.kyaml(node.text), scalar.sigs(node.text)
    return (one.kind, one.value), (other.kind, other.value)


def same(one: Any, other: Any) -> bool:
    """Whether kind and value are the same; JSON writers spell floats with fewer digits."""
    (kind, value), (other_kind, other_value) = one, other
    if kind == "float" and value is not None and other_value is not None:
        value, other_value = float(value), float(other_value)
    return bool(kind == other_kind and value == other_value)


def build(folder: Path, lines: list[str]) -> tuple[Mapping | None, list[str]]:
    made = project(folder, {"catalog/web.yaml": (SERVICE + "".join(lines)).encode()}).build()
    codes = [fault.code for fault in made.diagnostics if fault.severity == "error"]
    return (values_of(made.files["apps/web/helmrelease.yaml"]) if made.files else None), codes


def test_every_plain_value_reads_from_the_output_as_it_did_from_the_catalog(
    cases: list[dict[str, Any]], tmp_path: Path
) -> None:
    kept = [case for case in cases if scalar.is_plain(case["plain"])]
    # JSON has no infinities, which the case says by a number without a value.
    kept = [case for case in kept if known(case)[0] != ("float", None)]
    values, codes = build(tmp_path, [f"  k{i}: {case['plain']}\n" for i, case in enumerate(kept)])
    assert (codes, values is not None) == ([], True)
    assert values is not None
    wrong = []
    for i, case in enumerate(kept):
        node = values.get(f"k{i}")
        assert isinstance(node, Scalar)
        got, wanted = modelled(node), known(case)
        merge_key = case["kyaml"]["kind"] == "other"
        if node.text != case["plain"] or not same(wanted[1], got[1]) or not (merge_key or same(wanted[0], got[0])):
            wrong.append((case, node.style, node.text))
    assert wrong == []
    assert len(kept) > 1900


def test_every_plain_key_reads_from_the_output_as_it_did_from_the_catalog(
    cases: list[dict[str, Any]], tmp_path: Path
) -> None:
    kept = [case for case in cases if scalar.is_plain(case["plain"]) and case["key_doc"] == "ok" and case["key_json"]]
    kept = [case for case in kept if len(case["plain"]) <= 128 and case["kyaml"]["kind"] == "string"]
    values, codes = build(tmp_path, [f"  k{i}:\n    {case['plain']}: v\n" for i, case in enumerate(kept)])
    assert (codes, values is not None) == ([], True)
    assert values is not None
    wrong = []
    for i, case in enumerate(kept):
        inner = values.get(f"k{i}")
        assert isinstance(inner, Mapping)
        ((key, _),) = inner.entries
        got = (key.text, key.text) if key.style else (scalar.kyaml_key(key.text), scalar.sigs_key(key.text))
        if got != (case["kyaml"]["key"], case["key_json"]):
            wrong.append((case, key.style, key.text, got))
    assert wrong == []
    assert len(kept) > 500


def test_every_plain_key_that_is_no_string_is_refused(cases: list[dict[str, Any]], tmp_path: Path) -> None:
    kept = [
        case for case in cases if scalar.is_plain(case["plain"]) and case["kyaml"]["kind"] not in ("string", "other")
    ]
    _, codes = build(tmp_path, [f"  k{i}:\n    {case['plain']}: v\n" for i, case in enumerate(kept)])
    assert codes == ["R007"] * len(kept)
    assert len(kept) > 600


def test_every_case_is_carried_or_refused_when_quoted(cases: list[dict[str, Any]], tmp_path: Path) -> None:
    texts = [case["plain"] for case in cases if scalar.is_carried(case["plain"])]
    lines = [f"  s{i}: '{text.replace(chr(39), chr(39) * 2)}'\n" for i, text in enumerate(texts) if readable(text)]
    lines += [f"  d{i}: {scalar.double_quoted(text)}\n" for i, text in enumerate(texts)]
    values, codes = build(tmp_path, lines)
    assert (codes, values is not None) == ([], True)
    assert values is not None
    for i, text in enumerate(texts):
        for name in (f"s{i}", f"d{i}"):
            node = values.get(name)
            assert isinstance(node, Scalar) or (name[0] == "s" and not readable(text))
            if isinstance(node, Scalar):
                assert (text, True) == (node.text, bool(node.style))


def readable(text: str) -> bool:
    """Whether the text can stand between single quotes on one line."""
    return text.isprintable() and text.strip() == text


def test_every_case_alone_is_carried_or_refused(cases: list[dict[str, Any]], tmp_path: Path) -> None:
    # As it stands after `k: `, whatever that makes of the file: a comment, a list, a syntax error.
    outcomes = {"carried": 0, "refused": 0}
    for case in cases[::4]:
        line = f"  k: {case['plain']}\n"
        values, codes = build(tmp_path, [line])
        if codes:
            outcomes["refused"] += 1
            assert values is None
            continue
        source = values_of(SERVICE + line)
        node, original = values and values.get("k"), source and source.get("k")
        if values is None:
            # `values: {}` and null values leave nothing to write.
            assert source is None or source.entries == []
            continue
        outcomes["carried"] += 1
        assert type(original) is type(node)
        if isinstance(node, Scalar) and scalar.is_plain(case["plain"]) and case["kyaml"]["kind"] != "other":
            (kyaml, sigs), (got_kyaml, got_sigs) = known(case), modelled(node)
            assert same(kyaml, got_kyaml)
            assert same(sigs, got_sigs)
    assert outcomes["refused"] > 20
    assert outcomes["carried"] > 500
