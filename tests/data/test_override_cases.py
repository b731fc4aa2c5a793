"""Every recorded answer of kustomize 5.7.1 and 5.8.1 about `images`, against the predictor."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from render.flux.override_sites import transform
from render.flux.overrides import Entry, OverrideFailure, Table, apply

CASES = Path(os.environ.get("RENDER_SHARED", Path(__file__).parents[3] / "shared")) / "cases"

pytestmark = pytest.mark.skipif(not CASES.is_dir(), reason="the shared cases are not here")

LOADER_ERRORS = ("unknown anchor", "already defined", "invalid document separator")
"""Errors of the YAML reader, which runs before any of the rules under test."""

RETYPED = {"456": 456, "null": None, "true": True, "012": 10, "0x1F": 31, "1e3": 1000, "1.10": 1.1, "123": 123}
"""What go-yaml makes of the plain texts in the cases that it does not take for strings."""

INTERNAL = ("config.kubernetes.io/", "internal.config.kubernetes.io/", "alpha.config.kubernetes.io/")


def lines(name: str) -> list[dict[str, Any]]:
    path = CASES / name
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.is_file() else []


def entries(case: dict[str, Any]) -> list[Entry]:
    return [Entry.of(raw) for raw in case["images"]]


@pytest.mark.parametrize("version", ["v571", "v581"])
def test_every_recorded_image_is_predicted(version: str) -> None:
    wrong = []
    cases = lines("kustomize-images.jsonl")
    for case in cases:
        expected = "ERROR" if case[version].startswith("ERROR: ") else case[version]
        try:
            actual = apply(entries(case), case["input"], double=True).text
        except OverrideFailure as failure:
            named = failure.entry is not None and case["images"][failure.entry]["name"] in failure.reason
            actual = "ERROR" if named and "PANIC" in case[version] else failure.reason
        if actual != expected:
            wrong.append((case["id"], actual))
    assert len(cases) >= 2211
    assert not wrong


class Scalar(str):
    """A scalar's text that remembers whether it was plain."""

    plain: bool = False
    null: bool = False


class LexicalScalars:
    def is_null(self, value: object) -> bool:
        return value is None or (isinstance(value, Scalar) and value.null)

    def text(self, value: object) -> str:
        return str(value)

    def rewrite(self, value: object, text: str) -> object:
        assert isinstance(value, Scalar)
        return scalar(text, plain=value.plain)


def scalar(text: str, *, plain: bool) -> Scalar:
    made = Scalar(text)
    made.plain = plain
    made.null = plain and text in {"", "~", "null"}
    return made


def composed(node: yaml.Node) -> object:
    """Maps, lists and `Scalar` leaves; merge keys of maps expanded."""
    if isinstance(node, yaml.ScalarNode):
        return scalar(node.value, plain=node.style is None)
    if isinstance(node, yaml.SequenceNode):
        return [composed(item) for item in node.value]
    assert isinstance(node, yaml.MappingNode)
    made: dict[str, object] = {}
    for key, value in node.value:
        if key.value == "<<":
            merged = composed(value)
            assert isinstance(merged, dict)
            made = {**merged, **made}
        else:
            made[key.value] = composed(value)
    return made


def documents(text: str) -> list[object]:
    return [composed(node) for node in yaml.compose_all(text, Loader=yaml.SafeLoader) if node is not None]


def resolved(node: object) -> object:
    """A comparable value: numbers as numbers, other plain scalars by kind, all else as text."""
    if isinstance(node, dict):
        return {key: resolved(value) for key, value in node.items() if not key.startswith(INTERNAL)}
    if isinstance(node, list):
        return [resolved(item) for item in node]
    assert isinstance(node, Scalar)
    if not node.plain:
        return str(node)
    if node.null:
        return None
    if node in RETYPED:
        return RETYPED[node]
    if node == "2024-01-01":
        return "2024-01-01T00:00:00Z"
    try:
        return float(node)
    except ValueError:
        return str(node)


def comparable(found: list[object]) -> list[object]:
    values = [resolved(obj) for obj in found]
    for value in values:
        assert isinstance(value, dict)
        annotations = value["metadata"].get("annotations")
        if annotations:
            value["metadata"]["annotations"] = {
                key: "null" if text is None else "true" if text is True else str(text).removesuffix(".0")
                for key, text in annotations.items()
            }
    return sorted(values, key=lambda value: json.dumps(value, sort_keys=True))


@pytest.mark.parametrize("version", ["v571", "v581"])
def test_every_recorded_manifest_is_predicted(version: str) -> None:
    cases = lines("kustomize-structures.jsonl")
    wrong = []
    for case in cases:
        answer = case[version]
        if any(text in answer for text in LOADER_ERRORS):
            continue
        try:
            actual = comparable(transform(documents(case["manifest"]), entries(case), LexicalScalars()).documents)
        except OverrideFailure as failure:
            if not answer.startswith("ERROR: "):
                wrong.append((case["id"], str(failure)))
            continue
        if answer.startswith("ERROR: ") or comparable(documents(answer)) != actual:
            wrong.append((case["id"], actual))
    assert len(cases) >= 86
    assert not wrong


def test_one_table_for_all_cases_gives_what_a_table_for_each_gives() -> None:
    cases = [case for case in lines("kustomize-images.jsonl") if not case["v581"].startswith("ERROR")][:300]
    all_entries = [entry for case in cases for entry in entries(case)]
    table = Table(all_entries)
    for case in cases:
        text = case["input"]
        for entry in all_entries:
            text = apply([entry], text).text
        assert text == table.apply(case["input"]).text
