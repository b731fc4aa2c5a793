"""The automatic rollback: what is rendered, put to a model of what helm-controller does with it."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from render.build import Build
from render.plan.probes import seconds_to_ready
from tests.project import PLATFORM, only, project, told
from tests.remediation import FOR_EVER, Outcome, outcome
from tests.services import yaml_of

CHART = "chart: {url: 'oci://charts.example.org/web', version: '1.0.0'}"
AUTO = f"name: web\nsource: {{image: 'ghcr.io/example/web:1.2.3', {CHART}}}\nupdate: {{range: 1.x}}\n"
OFF = AUTO.replace("{range: 1.x}", "{range: 1.x, autoRollbackOnFailedHealth: false}")
VERSIONS = ("2.7", "2.7.5", "2.8", "2.8.0", "2.8.6", "2.9", "2.9.4")
PROBE = "{httpGet: {path: /, port: 8080}}"


def platform(version: str = "2.9", defaults: str = "") -> str:
    return PLATFORM.replace('"2.9"', f'"{version}"') + (f"defaults: {defaults}\n" if defaults else "")


def made(folder: Path, text: str, cluster: str = PLATFORM) -> Build:
    return project(folder, {"catalog/web.yaml": text, "platform.yaml": cluster}).build()


def upgrade_of(built: Build) -> dict[str, Any]:
    assert not built.failed, told(built)
    found: dict[str, Any] = only(built, "HelmRelease")["spec"].get("upgrade", {})
    return found


def codes(built: Build) -> list[str]:
    return [fault.code for fault in built.diagnostics]


# The model, as its facts have it


@pytest.mark.parametrize(
    ("upgrade", "expected"),
    [
        ({}, Outcome(("",), ends=True, is_found_out=True)),
        ({"remediation": {"retries": 2}}, Outcome(("rollback",) * 3, ends=True, is_found_out=True)),
        (
            {"remediation": {"retries": 0, "remediateLastFailure": True}},
            Outcome(("rollback",), ends=True, is_found_out=True),
        ),
        (
            {"remediation": {"retries": 2, "remediateLastFailure": False}},
            Outcome(("rollback", "rollback", ""), ends=True, is_found_out=True),
        ),
        ({"remediation": {"retries": -1}}, Outcome(("rollback",) * FOR_EVER, ends=False, is_found_out=True)),
        (
            {"remediation": {"retries": 1, "strategy": "uninstall"}},
            Outcome(("uninstall",) * 2, ends=True, is_found_out=True),
        ),
        (
            {"strategy": {"name": "RetryOnFailure"}, "remediation": {"retries": 3}},
            Outcome(("",) * FOR_EVER, ends=False, is_found_out=True),
        ),
        ({"disableWait": True, "remediation": {"retries": 3}}, Outcome(("",), ends=True, is_found_out=False)),
    ],
)
def test_model_is_what_is_known_of_the_controller(upgrade: dict[str, Any], expected: Outcome) -> None:
    assert outcome(upgrade) == expected


def test_gate_of_the_controller_changes_what_is_not_said() -> None:
    assert not outcome({"remediation": {"retries": 3}}, retries_by_default=True).rolls_back
    named = {"strategy": {"name": "RemediateOnFailure"}, "remediation": {"retries": 3}}
    assert outcome(named, retries_by_default=True).rolls_back


# What is rendered


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("retries", [-1, 0, 1, 3])
@pytest.mark.parametrize("gate", [False, True])
def test_update_that_never_becomes_healthy_is_undone_on_every_target(
    tmp_path: Path, version: str, retries: int, gate: bool
) -> None:
    upgrade = upgrade_of(made(tmp_path, AUTO, platform(version, f"{{retries: {retries}}}")))

    found = outcome(upgrade, retries_by_default=gate)
    assert found.rolls_back
    assert found.ends == (retries >= 0)
    assert len(found.undone) == (FOR_EVER if retries < 0 else retries + 1)


def test_without_the_rollback_nothing_is_said_of_remediation(tmp_path: Path) -> None:
    assert upgrade_of(made(tmp_path, OFF)) == {}


SETTINGS = st.fixed_dictionaries(
    {},
    optional={
        "disableWait": st.booleans(),
        "strategy": st.sampled_from(({"name": "RemediateOnFailure"}, {"name": "RetryOnFailure"})),
        "remediation": st.fixed_dictionaries(
            {},
            optional={
                "retries": st.sampled_from((-1, 0, 1, 3)),
                "remediateLastFailure": st.booleans(),
                "strategy": st.sampled_from(("rollback", "uninstall")),
            },
        ),
    },
)


def merged(*parts: Any) -> Any:
    """Merge settings, the weakest first."""
    if not all(isinstance(part, dict) for part in parts):
        return parts[-1]
    keys = dict.fromkeys(key for part in parts for key in part)
    return {key: merged(*(part[key] for part in parts if key in part)) for key in keys}


@given(SETTINGS, SETTINGS, st.booleans())
def test_settings_are_refused_exactly_if_they_defeat_the_rollback(
    default: dict[str, Any], own: dict[str, Any], gate: bool
) -> None:
    implied = {
        "strategy": {"name": "RemediateOnFailure"},
        "remediation": {"retries": 3, "remediateLastFailure": True, "strategy": "rollback"},
    }
    defaults = f"{{release: {{upgrade: {yaml_of(default)}}}}}"
    text = AUTO + f"release: {{upgrade: {yaml_of(own)}}}\n"
    with tempfile.TemporaryDirectory() as folder:
        built = made(Path(folder), text, platform(defaults=defaults))

    expected = merged(default, implied, own)
    rolls_back = outcome(expected, retries_by_default=gate).rolls_back
    event(f"rolls back: {rolls_back}")
    if rolls_back:
        assert upgrade_of(built) == expected
    else:
        assert set(codes(built)) == {"R403"}


# The time that there is


def test_timeout_of_nothing_is_refused(tmp_path: Path) -> None:
    (fault,) = made(tmp_path / "own", AUTO + "release: {upgrade: {timeout: 0s}}\n").diagnostics

    assert (fault.code, fault.message) == ("R403", "`release.upgrade.timeout: 0s` leaves an upgrade no time")
    assert codes(made(tmp_path / "default", AUTO, platform(defaults="{timeout: 0s}"))) == ["R403"]
    assert codes(made(tmp_path / "off", OFF + "release: {timeout: 0s}\n")) == []


@pytest.mark.parametrize(
    ("values", "release", "refused"),
    [
        ("{startupProbe: {periodSeconds: 10, failureThreshold: 30}, readinessProbe: {periodSeconds: 10}}", "{}", False),
        ("{startupProbe: {periodSeconds: 10, failureThreshold: 31}}", "{}", True),
        ("{startupProbe: {periodSeconds: 10, failureThreshold: 31}}", "{timeout: 6m}", False),
        ("{startupProbe: {periodSeconds: 10, failureThreshold: 31}}", "{upgrade: {timeout: 6m}}", False),
        ("{startupProbe: {periodSeconds: 10, failureThreshold: 31}}", "{timeout: 6m, upgrade: {timeout: 1m}}", True),
        ("{startupProbe: {enabled: false, failureThreshold: 310}}", "{}", False),
        ("{readinessProbe: {initialDelaySeconds: 400}}", "{}", True),
        ("{readinessProbe: {failureThreshold: 400}}", "{}", False),
        ("{web: {containers: [{livenessProbe: {initialDelaySeconds: 900}}]}}", "{}", False),
        ("{web: {containers: [{startupProbe: {failureThreshold: 60}}]}}", "{}", True),
        ("{probes: {startup: {enabled: true, spec: {failureThreshold: 60}}}}", "{}", True),
        ("{probes: {startup: {spec: {failureThreshold: '60'}}}}", "{}", False),
        ("{startup: {failureThreshold: 60}}", "{}", False),
    ],
)
def test_timeout_that_is_shorter_than_a_probe_of_the_values_allows_is_refused(
    tmp_path: Path, values: str, release: str, refused: bool
) -> None:
    more = f"release: {release}\nvalues: {values}\n"

    assert codes(made(tmp_path / "on", AUTO + more)) == (["R403"] if refused else [])
    assert codes(made(tmp_path / "off", OFF + more)) == []


def test_probe_and_timeout_are_both_shown(tmp_path: Path) -> None:
    values = "values:\n  startupProbe:\n    failureThreshold: 60\n"

    (fault,) = made(tmp_path, AUTO + values, platform(defaults="{timeout: 3m}")).diagnostics

    assert fault.message == "`values.startupProbe` allows 600 s, and an upgrade has only 3m"
    assert fault.hint == "set `release.timeout: 15m`, or let the probe allow less"
    assert (fault.location.path, fault.location.line) == ("catalog/web.yaml", 5)


@pytest.mark.parametrize(
    ("startup", "readiness", "seconds"),
    [
        (None, None, 0),
        (None, {}, 10),
        (None, {"initialDelaySeconds": 30, "periodSeconds": 5, "successThreshold": 3}, 45),
        ({}, None, 30),
        ({"initialDelaySeconds": 5, "periodSeconds": 2, "failureThreshold": 10}, {"periodSeconds": 3}, 28),
        ({"failureThreshold": 1}, {"initialDelaySeconds": 100}, 110),
    ],
)
def test_time_that_probes_allow(startup: dict[str, int] | None, readiness: dict[str, int] | None, seconds: int) -> None:
    assert seconds_to_ready(startup, readiness) == seconds


# Plain Deployments


def plain(more: str = "", probes: str = f"readiness: {PROBE}") -> str:
    return (
        "name: web\nsource: {image: 'ghcr.io/example/web:1.2.3'}\nupdate: {range: 1.x}\n"
        f"workload: {{probes: {{{probes}}}{more}}}\n"
    )


def test_deployment_is_gated_by_probe_and_deadline(tmp_path: Path) -> None:
    spec = only(made(tmp_path, plain()), "Deployment")["spec"]

    assert spec["progressDeadlineSeconds"] == 600
    assert "readinessProbe" in spec["template"]["spec"]["containers"][0]
    assert "strategy" not in spec


def test_deadline_is_longer_than_the_probes_allow_and_the_kustomization_waits_longer(tmp_path: Path) -> None:
    startup = PROBE.replace("{httpGet", "{periodSeconds: 10, failureThreshold: 120, httpGet")
    built = made(tmp_path, plain(probes=f"readiness: {PROBE}, startup: {startup}"))

    assert only(built, "Deployment")["spec"]["progressDeadlineSeconds"] == 1200 + 10 + 300
    assert "timeout: 30m10s" in built.files["flux/kustomizations.yaml"]


@pytest.mark.parametrize(
    ("replicas", "rolling", "refused"),
    [
        (1, "{maxUnavailable: 0}", False),
        (1, "{maxUnavailable: 1}", True),
        (1, "{maxUnavailable: 100%}", True),
        (1, "{maxUnavailable: 99%}", False),
        (1, "{maxSurge: 0}", True),
        (1, "{maxSurge: 1}", False),
        (1, "{maxSurge: 0%, maxUnavailable: 1}", True),
        (3, "{maxUnavailable: 1}", False),
        (3, "{maxSurge: 0}", False),
        (3, "{maxUnavailable: 3}", True),
        (3, "{maxUnavailable: 100%, maxSurge: 3}", True),
        (4, "{maxUnavailable: 75%}", False),
        (0, "{maxUnavailable: 1}", False),
    ],
)
def test_rolling_update_that_keeps_no_old_pod_is_refused(
    tmp_path: Path, replicas: int, rolling: str, refused: bool
) -> None:
    text = plain(f", replicas: {replicas}, strategy: {{rollingUpdate: {rolling}}}")

    assert codes(made(tmp_path / "on", text)) == (["R403"] if refused else [])
    off = text.replace("{range: 1.x}", "{range: 1.x, autoRollbackOnFailedHealth: false}")
    assert codes(made(tmp_path / "off", off)) == []
