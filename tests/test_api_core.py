from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from render.flux.api_core import CORE
from render.model.read import Reader, compile_schema
from render.yaml.source import Source, parse


def nodes(schema: dict[str, Any], path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, schema
    for name, child in schema.get("properties", {}).items():
        yield from nodes(child, f"{path}.{name}")
    if "items" in schema:
        yield from nodes(schema["items"], f"{path}[]")
    if isinstance(schema.get("additionalProperties"), dict):
        yield from nodes(schema["additionalProperties"], f"{path}.*")


NODES = [node for name, table in CORE.items() for node in nodes(table, name)]


def faults(name: str, text: str) -> list[str]:
    source = Source("web.yaml", text)
    documents, broken = parse(source)
    assert broken == []
    Reader(source, broken).read(compile_schema(CORE[name]), documents[0].root, "x")
    return [f"{fault.location.line}:{fault.location.column} {fault.code} {fault.message}" for fault in broken]


def test_only_known_keywords_are_used() -> None:
    allowed = {
        "integer": {"x-octal"},
        "array": {"items"},
        "object": {"properties", "required", "additionalProperties"},
        None: {"anyOf"},
    }
    wrong = {path: set(node) - {"type", "description"} - allowed.get(node.get("type"), set()) for path, node in NODES}
    assert {path: keys for path, keys in wrong.items() if keys} == {}
    assert {"string", "boolean", *allowed} == {node.get("type") for _, node in NODES}


def test_every_field_is_described_in_one_sentence() -> None:
    named = [(path, node) for path, node in NODES if not path.endswith(("[]", ".*"))]
    assert [path for path, node in named if not re.fullmatch(r"[`A-Z][^\n]{5,110}\.", node["description"])] == []


def test_objects_close_their_fields() -> None:
    assert [path for path, node in NODES if "properties" in node and node["additionalProperties"] is not False] == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Probe", "{httpGet: {path: /, port: http}, initialDelaySeconds: 5}"),
        ("Probe", "{httpGet: {port: 8080, httpHeaders: [{name: Host, value: a.example}]}, periodSeconds: null}"),
        ("Probe", '{tcpSocket: {port: "5432"}}'),
        ("Probe", "{exec: {command: [pg_isready, -U, app]}}"),
        ("ResourceRequirements", "{limits: {cpu: 1, memory: 128Mi}, requests: {cpu: 0.5, memory: 129e6}}"),
        ("ResourceRequirements", '{limits: {cpu: "1", nvidia.com/gpu: 1}, requests: {cpu: 100m}}'),
        ("SecurityContext", "{runAsUser: 0, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}"),
        ("PodSecurityContext", "{fsGroup: 1000, supplementalGroups: [44, 109], sysctls: [{name: a.b, value: '1'}]}"),
        ("EnvVarSource", "{secretKeyRef: {name: app, key: password, optional: true}}"),
        ("EnvVarSource", "{fieldRef: {fieldPath: status.podIP}}"),
        ("EnvFromSource", "{prefix: APP_, configMapRef: {name: app}}"),
        ("EmptyDirVolumeSource", "{medium: Memory, sizeLimit: 64Mi}"),
        ("EmptyDirVolumeSource", "{}"),
        ("ConfigMapVolumeSource", "{name: app, defaultMode: 0755, items: [{key: a, path: b, mode: 0o400}]}"),
        ("SecretVolumeSource", "{secretName: app, defaultMode: 420}"),
        ("HostPathVolumeSource", "{path: /dev/dri, type: Directory}"),
        ("NFSVolumeSource", "{server: nas.lan, path: /media, readOnly: true}"),
        ("PersistentVolumeClaimSpec", "{storageClassName: '', resources: {requests: {storage: 5Gi}}}"),
        ("PersistentVolumeClaimSpec", "{accessModes: [ReadWriteMany], selector: {matchLabels: {app: web}}}"),
        ("PersistentVolumeClaimSpec", "{selector: {matchExpressions: [{key: a, operator: In, values: [b]}]}}"),
        ("DeploymentStrategy", "{type: RollingUpdate, rollingUpdate: {maxSurge: 1, maxUnavailable: 25%}}"),
        ("StatefulSetUpdateStrategy", "{type: RollingUpdate, rollingUpdate: {partition: 1, maxUnavailable: 1}}"),
    ],
)
def test_what_people_write_is_taken(name: str, text: str) -> None:
    assert faults(name, text) == []


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("Probe", "httpGet: {port: 1}\ninitialDelaySecond: 5", "2:1 R101 unknown field `initialDelaySecond` in `x`"),
        ("Probe", "httpGet: {path: /}", "1:1 R102 `x.httpGet` needs the field `port`"),
        ("Probe", "periodSeconds: 10s", "1:16 R103 `x.periodSeconds` must be an integer, not the text `10s`"),
        (
            "Probe",
            "tcpSocket: {port: yes}",
            "1:19 R103 `x.tcpSocket.port` must be an integer or a string, not the boolean `yes`",
        ),
        ("ResourceRequirements", "limit: {cpu: 1}", "1:1 R101 unknown field `limit` in `x`"),
        (
            "ResourceRequirements",
            "limits:\n  cpu: true",
            "2:8 R103 `x.limits.cpu` must be a number or a string, not the boolean `true`",
        ),
        ("SecurityContext", "runAsUser: 0755", "1:12 R103 `x.runAsUser` must be an integer, not the number `0755`"),
        (
            "PodSecurityContext",
            "sysctls: [{name: a, value: 1}]",
            "1:28 R103 `x.sysctls[0].value` must be a string, not the number `1`",
        ),
        ("EnvVarSource", "secretKeyRef: {name: a}", "1:1 R102 `x.secretKeyRef` needs the field `key`"),
        ("SecretVolumeSource", "name: app", "1:1 R101 unknown field `name` in `x`"),
        ("NFSVolumeSource", "{server: nas, path: /, readonly: true}", "1:24 R101 unknown field `readonly` in `x`"),
        (
            "StatefulSetUpdateStrategy",
            "rollingUpdate: {maxSurge: 1}",
            "1:17 R101 unknown field `maxSurge` in `x.rollingUpdate`",
        ),
    ],
)
def test_a_fault_is_told_at_its_place(name: str, text: str, expected: str) -> None:
    assert [expected] == faults(name, text)
