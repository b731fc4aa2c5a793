"""The rendered alerts under a real `promtool`: over the series that objects of Flux make, minute by minute."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.metrics import configuration, flux_object, series
from tests.project import PLATFORM, only, project
from tests.trees import RENDERINGS, tree

PROMTOOL = shutil.which("promtool") or ""
CLUSTER = (
    PLATFORM
    + "imageAutomation: {enabled: true, author: {email: bot@example.org}}\n"
    + "alerts: {enabled: true, runbooks: 'https://runbooks.example.org/alerts'}\n"
)
PLAIN = """\
name: plain
source: {image: 'ghcr.io/example/plain:1.0.0'}
update: {range: 1.x}
workload: {probes: {readiness: {httpGet: {path: /, port: 8080}}}}
"""
State = dict[str, Any] | None
"""An object, or None while there is none."""

pytestmark = pytest.mark.skipif(not PROMTOOL, reason="there is no promtool")


def promtool(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([PROMTOOL, *arguments], capture_output=True, text=True, check=False)


@cache
def rendered(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the groups of the PrometheusRule, and the configuration of the metrics."""
    built = project(folder, {"catalog/plain.yaml": PLAIN, "platform.yaml": CLUSTER}).build()
    assert not built.failed
    rule = only(built.files["platform/alerts/prometheus-rule.yaml"], "PrometheusRule")["spec"]
    return rule, configuration(built.files["apps/kube-state-metrics.yaml"])


def values(present: Sequence[bool]) -> str:
    """Return a series' samples, one a minute, with the marker that a scrape leaves once the series is gone."""
    out, before = [], False
    for now in present:
        out.append("1" if now else "stale" if before else "_")
        before = now
    return " ".join(out)


def inputs(config: dict[str, Any], histories: Iterable[Sequence[State]]) -> list[dict[str, str]]:
    """Return the series of objects, each by its state a minute."""
    made: dict[str, str] = {}
    for history in histories:
        names = [series(config, state) if state else [] for state in history]
        made |= {one: values([one in listed for listed in names]) for listed in names for one in listed}
    return [{"series": name, "values": text} for name, text in sorted(made.items())]


class Alerts:
    """Asks promtool when alerts fire."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rule, self.config = rendered(folder)
        (folder / "rules.json").write_text(json.dumps(self.rule))

    def expected(self, alert: str, labels: dict[str, str]) -> dict[str, Any]:
        kind = labels.get("kind")
        (rule,) = [
            one
            for one in self.rule["groups"][0]["rules"]
            if one["alert"] == alert and one["labels"].get("kind") == kind
        ]
        everything = {**rule["labels"], **labels}
        texts = {
            key: re.sub(r"\{\{ \$labels\.(\w+) \}\}", lambda match: everything.get(match[1], ""), text)
            for key, text in rule["annotations"].items()
        }
        return {"exp_labels": everything, "exp_annotations": texts}

    def assert_fires(
        self, alert: str, labels: dict[str, str], minutes: Iterable[int], series_: list[dict[str, str]], until: int
    ) -> None:
        """Assert that an alert fires in exactly these minutes, and no other alert ever does."""
        firing = set(minutes)
        one = self.expected(alert, labels)
        names = {rule["alert"] for rule in self.rule["groups"][0]["rules"]}
        cases = [
            {
                "eval_time": f"{minute}m",
                "alertname": name,
                "exp_alerts": [one] if name == alert and minute in firing else [],
            }
            for minute in range(until)
            for name in sorted(names)
        ]
        test = {
            "rule_files": ["rules.json"],
            "evaluation_interval": "1m",
            "tests": [{"interval": "1m", "input_series": series_, "alert_rule_test": cases}],
        }
        path = self.folder / "test.json"
        path.write_text(json.dumps(test))
        ran = promtool("test", "rules", path)
        assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.fixture
def alerts(tmp_path: Path) -> Alerts:
    return Alerts(tmp_path)


def bot(ready: str | None = "True", *, suspend: bool | None = None) -> dict[str, Any]:
    conditions = {} if ready is None else {"Ready": ready}
    return flux_object("ImageUpdateAutomation", "test", conditions, suspend=suspend)


def release(**conditions: str) -> dict[str, Any]:
    return flux_object("HelmRelease", "shop", conditions)


BOT = {"exported_namespace": "flux-system", "name": "test"}
SHOP = {"exported_namespace": "web", "name": "shop", "kind": "HelmRelease"}
HOUR = 60


def deployment(stuck: Sequence[bool], name: str = "plain", namespace: str = "plain") -> list[dict[str, str]]:
    """Return the series of a Deployment's condition, as kube-state-metrics makes them."""
    at = f'namespace="{namespace}",deployment="{name}",condition="Progressing",job="kube-state-metrics"'
    return [
        {"series": f'kube_deployment_status_condition{{{at},status="{status}"}}', "values": " ".join(told)}
        for status, told in {
            "false": ["1" if one else "0" for one in stuck],
            "true": ["0" if one else "1" for one in stuck],
            "unknown": ["0"] * len(stuck),
        }.items()
    ]


@pytest.mark.parametrize("rendering", RENDERINGS)
def test_rules_of_the_shipped_catalog_are_rules(rendering: str, tmp_path: Path) -> None:
    text = tree(rendering).files.get("platform/alerts/prometheus-rule.yaml")
    if text is None:
        assert not tree(rendering).platform.platform.alerts.enabled  # type: ignore[union-attr]
        return
    rule = only(text, "PrometheusRule")["spec"]
    (tmp_path / "rules.json").write_text(json.dumps(rule))

    ran = promtool("check", "rules", "--lint-fatal", tmp_path / "rules.json")

    assert (ran.returncode, f"SUCCESS: {len(rule['groups'][0]['rules'])} rules found" in ran.stdout) == (0, True)


def test_nothing_fires_while_all_is_well(alerts: Alerts) -> None:
    policy, repository = (flux_object(kind, "web", {"Ready": "True"}) for kind in ("ImagePolicy", "ImageRepository"))
    made = inputs(alerts.config, [[one] * HOUR for one in (bot(), policy, repository, release(Ready="True"))])

    alerts.assert_fires("ImagePolicyStalled", {}, (), made + deployment([False] * HOUR), HOUR)


# The bot


def test_bot_that_fails_is_told_of_although_each_try_is_in_progress(alerts: Alerts) -> None:
    tries = [bot("False" if minute % 2 else "Unknown") for minute in range(30)]

    made = inputs(alerts.config, [[bot()] * 5 + tries + [bot()] * 10])

    alerts.assert_fires("ImageUpdateAutomationFailing", BOT, range(20, 35), made, 45)


def test_bot_that_never_was_ready_is_told_of(alerts: Alerts) -> None:
    alerts.assert_fires(
        "ImageUpdateAutomationFailing", BOT, range(15, 30), inputs(alerts.config, [[bot(None)] * 30]), 30
    )


def test_metric_that_is_missing_is_told_of(alerts: Alerts) -> None:
    made = inputs(alerts.config, [[bot()] * 10 + [None] * 30])

    alerts.assert_fires("ImageUpdateAutomationFailing", BOT, range(25, 40), made, 40)


@pytest.mark.parametrize(
    "between",
    [[bot("Unknown")] * 10, [bot("False")] * 14, [None] * 5, [bot("False", suspend=True)] * 40],
    ids=["a long run", "a failure that passes", "kube-state-metrics restarts", "suspended"],
)
def test_bot_is_left_alone(alerts: Alerts, between: list[State]) -> None:
    made = inputs(alerts.config, [[bot()] * 5 + between + [bot()] * 5])

    alerts.assert_fires("ImageUpdateAutomationFailing", BOT, (), made, len(between) + 10)


def test_suspended_bot_that_is_resumed_is_well(alerts: Alerts) -> None:
    made = inputs(alerts.config, [[bot(suspend=True)] * 20 + [bot(suspend=False)] * 20])

    alerts.assert_fires("ImageUpdateAutomationFailing", BOT, (), made, 40)


# Policies


@pytest.mark.parametrize("kind", ["ImagePolicy", "ImageRepository"])
def test_policy_or_scan_that_fails_is_told_of(alerts: Alerts, kind: str) -> None:
    well, broken, trying = (flux_object(kind, "web", {"Ready": status}) for status in ("True", "False", "Unknown"))
    labels = {"customresource_kind": kind, "exported_namespace": "flux-system", "name": "web"}
    made = inputs(alerts.config, [[well] * 5 + [broken, trying] * 25 + [well] * 5, [bot()] * HOUR])

    alerts.assert_fires("ImagePolicyStalled", labels, range(35, 55), made, HOUR)


# Releases


UPGRADING = release(Ready="Unknown", Reconciling="True")
ROLLING_BACK = release(Ready="False", Released="False", Reconciling="True")
TRYING_AGAIN = release(Ready="Unknown", Released="False", Remediated="True", Reconciling="True")
ROLLED_BACK = release(Ready="False", Released="False", Remediated="True", Reconciling="True")
STALLED = release(Ready="False", Released="False", Remediated="True", Stalled="True")
WELL = release(Ready="True", Released="True")


def assert_release(alerts: Alerts, history: list[dict[str, Any]], minutes: Iterable[int]) -> None:
    made = inputs(alerts.config, [history, [bot()] * len(history)])
    alerts.assert_fires("UpdateHealthGateFailed", SHOP, minutes, made, len(history))


@pytest.mark.parametrize(
    "between",
    [
        [UPGRADING] * 25,
        [release(Ready="False")] * 40,
        [release(Ready="Unknown")] * 10 + [release(Ready="False")] * 10,
        [flux_object("HelmRelease", "shop", {"Ready": "False", "Stalled": "True"}, suspend=True)] * 40,
    ],
    ids=["a long upgrade", "waits for another release", "chart cannot be fetched", "suspended"],
)
def test_release_is_left_alone(alerts: Alerts, between: list[dict[str, Any]]) -> None:
    assert_release(alerts, [WELL] * 5 + between + [WELL] * 5, ())


def test_upgrade_after_upgrade_is_left_alone(alerts: Alerts) -> None:
    assert_release(alerts, ([UPGRADING] * 7 + [WELL] * 3) * 6, ())


def test_release_that_is_rolled_back_for_good_is_told_of(alerts: Alerts) -> None:
    history = [WELL] * 5 + [UPGRADING] * 5 + [ROLLING_BACK] * 2 + [STALLED] * 30 + [UPGRADING] * 4 + [WELL] * 10

    # The condition `Remediated` is there from minute 12 on, and the next upgrade is a way out only when it is ready.
    assert_release(alerts, history, range(13, 46))


def test_release_that_is_tried_for_ever_is_told_of_without_a_break(alerts: Alerts) -> None:
    cycle = [ROLLED_BACK, *[TRYING_AGAIN] * 5, *[ROLLING_BACK] * 2]
    history = [WELL] * 3 + [UPGRADING] * 5 + [ROLLING_BACK] * 2 + cycle * 5 + [WELL] * 10

    assert_release(alerts, history, range(11, 50))


def test_release_whose_second_try_works_is_told_of_until_then(alerts: Alerts) -> None:
    history = [UPGRADING] * 5 + [ROLLING_BACK] * 2 + [ROLLED_BACK] + [TRYING_AGAIN] * 4 + [WELL] * 20

    assert_release(alerts, history, range(8, 12))


def test_release_without_a_way_back_is_told_of(alerts: Alerts) -> None:
    stuck = release(Ready="False", Released="False", Stalled="True")

    assert_release(alerts, [UPGRADING] * 5 + [stuck] * 20, range(6, 25))


# Plain Deployments


def test_deployment_past_its_deadline_is_told_of(alerts: Alerts) -> None:
    labels = {"namespace": "plain", "deployment": "plain", "kind": "Deployment"}
    made = deployment([False] * 15 + [True] * 20 + [False] * 10) + inputs(alerts.config, [[bot()] * 45])

    alerts.assert_fires("UpdateHealthGateFailed", labels, range(16, 35), made, 45)


def test_deployment_of_a_chart_is_not_looked_at(alerts: Alerts) -> None:
    made = inputs(alerts.config, [[bot()] * 30])
    made += deployment([True] * 30, namespace="web") + deployment([True] * 30, name="other")

    alerts.assert_fires("UpdateHealthGateFailed", {"kind": "Deployment"}, (), made, 30)
