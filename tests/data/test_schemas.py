"""Every object of the goldens against the published schemas of its kind, their CEL rules included."""

from __future__ import annotations

import copy
import json
import os
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.readings import SIGS, documents
from tests.trees import GOLDENS, golden_files

SCHEMAS = Path(os.environ.get("RENDER_SHARED", Path(__file__).parents[3] / "shared")) / "schemas"
if not SCHEMAS.is_dir():
    pytest.skip("no folder of schemas", allow_module_level=True)

cel = pytest.importorskip("cel_expr_python.cel", exc_type=ImportError)
strings = pytest.importorskip("cel_expr_python.ext.ext_strings", exc_type=ImportError)
jsonschema_rs = pytest.importorskip("jsonschema_rs", exc_type=ImportError)

WITHOUT_SCHEMA = {
    # A file of kustomize, and no object of any cluster.
    ("kustomize.config.k8s.io/v1beta1", "Kustomization"),
    # promtool checks its rules.
    ("monitoring.coreos.com/v1", "PrometheusRule"),
    # Kinds of others, written by hand in `extraObjects`.
    ("cert-manager.io/v1", "ClusterIssuer"),
    ("external-secrets.io/v1beta1", "ClusterSecretStore"),
    # Rendered, and checked against tables of their fields.
    ("kubevirt.io/v1", "VirtualMachine"),
    ("external-secrets.io/v1beta1", "ExternalSecret"),
    ("metallb.io/v1beta1", "IPAddressPool"),
    ("metallb.io/v1beta1", "L2Advertisement"),
    ("postgresql.cnpg.io/v1", "Cluster"),
}

# Property names that CEL cannot spell are escaped in the rules of a schema.
RESERVED = frozenset(
    {"true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import"}
    | {"let", "loop", "package", "namespace", "return"}
)


class Rule(NamedTuple):
    """One CEL rule at one place of an object, with what it is evaluated on."""

    text: str
    message: str
    at: str
    value: Any


class Verdict(NamedTuple):
    """What is wrong with an object, and how many rules were evaluated on it."""

    faults: list[str]
    rules: int


def schema_path(thing: Any) -> Path:
    group, _, version = thing["apiVersion"].rpartition("/")
    return SCHEMAS / (group or "core") / f"{thing['kind'].lower()}_{version}.json"


@cache
def schema(path: Path) -> tuple[Any, Any]:
    found = json.loads(path.read_text("utf-8"))
    return found, jsonschema_rs.Draft202012Validator(found, validate_formats=True)


@cache
def program(rule: str) -> Any:
    """Compile a rule; a fault of the rule, or a function that is not known, raises."""
    environment = cel.NewEnv(variables={"self": cel.Type.DYN}, extensions=[strings.ExtStrings()])
    return environment.compile(rule)


def spelled(schema: Any, value: Any) -> Any:
    """Return a value with the names of its properties escaped as rules spell them."""
    if isinstance(value, list):
        return [spelled(schema.get("items", {}), item) for item in value]
    if not isinstance(value, dict):
        return value
    known, others = schema.get("properties", {}), schema.get("additionalProperties")
    others = others if isinstance(others, dict) else {}
    return {
        f"__{name}__" if name in known and name in RESERVED else name: spelled(known.get(name, others), inner)
        for name, inner in value.items()
    }


def rules(schema: Any, value: Any, at: str = "") -> Iterator[Rule]:
    """Yield the rules that the API server evaluates when the object is created: none on an absent or null value."""
    if value is None:
        return
    for entry in schema.get("x-kubernetes-validations", ()):
        if "oldSelf" not in entry["rule"]:
            yield Rule(entry["rule"], entry.get("message", entry["rule"]), at or ".", spelled(schema, value))
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from rules(schema.get("items", {}), item, f"{at}[{index}]")
    elif isinstance(value, dict):
        known, others = schema.get("properties", {}), schema.get("additionalProperties")
        others = others if isinstance(others, dict) else {}
        for name, inner in value.items():
            yield from rules(known.get(name, others), inner, f"{at}.{name}")


def duplicates(schema: Any, value: Any, at: str = "") -> Iterator[str]:
    """Yield the places where a list that is a set or a map to the API server holds an item twice."""
    if isinstance(value, list):
        kind, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys", ())
        named = [tuple(item.get(key) for key in keys) if kind == "map" else item for item in value]
        if kind in ("map", "set") and any(named.count(one) > 1 for one in named):
            yield f"{at}: an item is there twice"
        for index, item in enumerate(value):
            yield from duplicates(schema.get("items", {}), item, f"{at}[{index}]")
    elif isinstance(value, dict):
        known, others = schema.get("properties", {}), schema.get("additionalProperties")
        others = others if isinstance(others, dict) else {}
        for name, inner in value.items():
            yield from duplicates(known.get(name, others), inner, f"{at}.{name}")


def judge(thing: Any) -> Verdict:
    """Check an object; rules come after the shape, for on another shape they mean nothing."""
    found, validator = schema(schema_path(thing))
    faults = [f"{list(error.instance_path)}: {error.message}" for error in validator.iter_errors(thing)]
    faults += duplicates(found, thing)
    if faults:
        return Verdict(faults, 0)
    count = 0
    for count, rule in enumerate(rules(found, thing), 1):  # noqa: B007
        result = program(rule.text).eval(data={"self": rule.value}).value()
        if result is not True:
            faults.append(f"{rule.at}: {rule.message} ({result})")
    return Verdict(faults, count)


@cache
def objects(path: str) -> list[Any]:
    return documents((GOLDENS / path).read_text("utf-8"), SIGS)


def kind(thing: Any) -> tuple[str, str]:
    return thing["apiVersion"], thing["kind"]


def every() -> list[Any]:
    return [thing for path in golden_files() for thing in objects(path)]


@pytest.mark.parametrize("path", golden_files())
def test_objects_are_what_the_api_server_takes(path: str) -> None:
    faults = [judge(thing).faults for thing in objects(path) if kind(thing) not in WITHOUT_SCHEMA]
    assert [[]] * len(faults) == faults


def test_kinds_without_a_schema_are_known_ones() -> None:
    without = {kind(thing) for thing in every() if not schema_path(thing).is_file()}
    assert without == WITHOUT_SCHEMA


def test_objects_are_checked_by_the_rules_of_their_kinds() -> None:
    counts, evaluated = Counter[str](), Counter[str]()
    for thing in every():
        if kind(thing) not in WITHOUT_SCHEMA:
            counts[thing["kind"]] += 1
            evaluated[thing["kind"]] += judge(thing).rules
    assert counts.total() > 350
    assert {"HelmRelease", "ImagePolicy", "GitRepository"} == set(+evaluated)
    assert evaluated["HelmRelease"] >= counts["HelmRelease"]
    assert evaluated["ImagePolicy"] >= 2 * counts["ImagePolicy"]


def test_every_rule_of_the_kinds_at_hand_compiles() -> None:
    def texts(node: Any) -> Iterator[str]:
        if isinstance(node, dict):
            listed = node.get("x-kubernetes-validations")
            yield from (entry["rule"] for entry in listed) if isinstance(listed, list) else ()
            for inner in node.values():
                yield from texts(inner)
        elif isinstance(node, list):
            for inner in node:
                yield from texts(inner)

    paths = {schema_path(thing) for thing in every() if kind(thing) not in WITHOUT_SCHEMA}
    found = {text for path in paths for text in texts(schema(path)[0]) if "oldSelf" not in text}
    assert all(program(text) for text in found)
    assert len(found) > 5


def put(thing: Any, path: str, value: Any) -> Any:
    *steps, last = path.split(".")
    at = thing
    for step in steps:
        at = at.setdefault(step, {})
    at[last] = value
    return thing


@pytest.mark.parametrize(
    ("name", "path", "value", "fault"),
    [
        ("HelmRelease", "spec.chartRef", {"kind": "OCIRepository", "name": "x"}, "chart"),
        (
            "HelmRelease",
            "spec.upgrade.strategy",
            {"name": "RemediateOnFailure", "retryInterval": "1m"},
            "retryInterval",
        ),
        ("HelmRelease", "spec.interval", "1 hour", "does not match"),
        ("HelmRelease", "spec.intervall", "1h", "Additional properties"),
        ("HelmRelease", "spec.upgrade.remediation.retries", "3", "is not of type"),
        ("ImagePolicy", "spec.interval", "1h", "interval"),
        ("ImagePolicy", "spec.digestReflectionPolicy", "Always", "interval"),
        ("ImageUpdateAutomation", "spec.git.commit.author", {"name": "bot"}, "email"),
        ("Kustomization", "spec.decryption", {"provider": "other"}, "other"),
        (
            "Kustomization",
            "spec.kubeConfig",
            {"secretRef": {"name": "a"}, "configMapRef": {"name": "b"}},
            "exactly one",
        ),
        ("Deployment", "spec.replicas", 1.5, "is not of type"),
        ("Service", "spec.ports", [{"port": 80, "protocol": "TCP"}] * 2, "twice"),
        ("Namespace", "metadata.labels", {"a": True}, "is not of type"),
    ],
)
def test_a_faulty_object_is_told(name: str, path: str, value: Any, fault: str) -> None:
    things = [thing for thing in every() if thing["kind"] == name and kind(thing) not in WITHOUT_SCHEMA]
    thing = next(each for each in things if name != "HelmRelease" or "chart" in each["spec"])
    faults = judge(put(copy.deepcopy(thing), path, value)).faults
    assert faults
    assert fault in " ".join(faults)
