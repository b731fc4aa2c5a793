"""The alerts and the metrics that they need, as objects. What fires when is asked of promtool in tests/real."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from render.build import Build
from tests.metrics import configuration, flux_object, series
from tests.project import PLATFORM, objects, only, project, told

ALERTS = "alerts: {enabled: true}\n"
BOT = "imageAutomation: {enabled: true, author: {email: bot@example.org}}\n"
WEB = "name: web\nsource: {image: 'a.example/b:1.0.0', chart: {url: 'oci://a.example/c', version: '1.0.0'}}\n"
PROBES = "workload: {probes: {readiness: {httpGet: {path: /, port: 80}}}}\n"
RULE = "platform/alerts/prometheus-rule.yaml"
METRICS = "apps/kube-state-metrics.yaml"
PAGE = Path(__file__).parents[1] / "docs/alerts.md"


def plain(name: str, more: str = "update: {range: 1.x}\n") -> str:
    return f"name: {name}\nsource: {{image: 'a.example/b:1.0.0'}}\n{PROBES}{more}"


def made(folder: Path, platform: str = ALERTS, *services: str, automation: bool = True) -> Build:
    files = {f"catalog/{index}.yaml": text for index, text in enumerate(services or (WEB,))}
    built = project(folder, {**files, "platform.yaml": PLATFORM + platform}).build(automation=automation)
    assert not built.failed, told(built)
    return built


def rules(built: Build) -> list[dict[str, Any]]:
    (group,) = only(built.files[RULE], "PrometheusRule")["spec"]["groups"]
    assert group["name"] == "platform-health.automated-updates"
    found: list[dict[str, Any]] = group["rules"]
    return found


def names(built: Build) -> list[str]:
    return [rule["alert"] for rule in rules(built)]


def test_there_are_none_unless_they_are_asked_for(tmp_path: Path) -> None:
    assert not any("alerts" in path or path == METRICS for path in made(tmp_path, BOT).files)


def test_rule_is_named_as_the_cluster_and_labelled_as_the_platform_says(tmp_path: Path) -> None:
    built = made(tmp_path, "alerts: {enabled: true, namespace: obs, labels: {release: prometheus}}\n")

    metadata = only(built.files[RULE], "PrometheusRule")["metadata"]
    assert metadata == {"name": "platform-health-test", "namespace": "obs", "labels": {"release": "prometheus"}}
    assert {rule["labels"]["cluster"] for rule in rules(built)} == {"test"}
    assert only(built.files[METRICS], "ConfigMap")["metadata"]["namespace"] == "obs"


def test_namespace_of_the_alerts_is_in_use(tmp_path: Path) -> None:
    built = made(tmp_path, "alerts: {enabled: true, namespace: obs}\n")

    assert "obs" in [one["metadata"]["name"] for one in objects(built.files["apps/namespaces.yaml"])]


def test_alerts_are_about_what_the_tree_has(tmp_path: Path) -> None:
    everything = ["ImageUpdateAutomationFailing", "ImagePolicyStalled", "UpdateHealthGateFailed"]

    assert names(made(tmp_path / "all", ALERTS + BOT)) == everything
    assert names(made(tmp_path / "no-bot", ALERTS)) == everything[1:]
    assert names(made(tmp_path / "no-automation", ALERTS + BOT, automation=False)) == everything[2:]
    assert names(made(tmp_path / "plain", ALERTS + BOT, plain("web"))) == [*everything, everything[2]]


def test_alert_about_the_bot_names_it(tmp_path: Path) -> None:
    platform = PLATFORM.replace('"2.9"', '"2.9"\n  namespace: gitops') + ALERTS + BOT
    built = project(tmp_path, {"catalog/web.yaml": WEB, "platform.yaml": platform}).build()

    bot = 'customresource_kind="ImageUpdateAutomation",exported_namespace="gitops",name="test"'
    assert rules(built)[0]["expr"].count(bot) == 2
    assert 'exported_namespace="gitops"' in rules(built)[1]["expr"]


def test_deployments_that_render_made_are_named_by_their_namespaces(tmp_path: Path) -> None:
    services = (
        plain("web", "namespace: shop\nupdate: {range: 1.x}\n"),
        plain("db", "namespace: shop\nobjectName: store\nupdate: {range: 1.x}\n"),
        plain("app"),
        plain("fixed", ""),
        plain("bare", "update: {range: 1.x, autoRollbackOnFailedHealth: false}\n"),
    )

    rule = rules(made(tmp_path, ALERTS, *services))[-1]

    assert rule["labels"]["kind"] == "Deployment"
    matchers = re.findall(r'namespace="([^"]+)",deployment=~"([^"]+)"', rule["expr"])
    assert matchers == [("app", "app"), ("shop", "store|web")]


def test_every_alert_links_to_its_section_of_the_page(tmp_path: Path) -> None:
    sections = re.findall(r"^## (\w+)$", PAGE.read_text(), re.MULTILINE)

    for rule in rules(made(tmp_path, ALERTS + BOT, plain("web"))):
        assert rule["alert"] in sections
        assert rule["annotations"]["runbook_url"] == f"docs/alerts.md#{rule['alert'].lower()}"


def test_address_of_the_page_is_the_platforms(tmp_path: Path) -> None:
    built = made(tmp_path, "alerts: {enabled: true, runbooks: 'https://docs.example.org/alerts'}\n")

    urls = {rule["annotations"]["runbook_url"] for rule in rules(built)}
    assert all(url.startswith("https://docs.example.org/alerts#") for url in urls)


# The metrics


def test_metric_tells_the_state_of_an_object(tmp_path: Path) -> None:
    values = configuration(made(tmp_path, ALERTS + BOT).files[METRICS])

    release = flux_object("HelmRelease", "shop", {"Ready": "False", "Stalled": "True"}, suspend=False)
    labels = (
        'customresource_group="helm.toolkit.fluxcd.io",customresource_kind="HelmRelease",customresource_version="v2",'
        'exported_namespace="web",name="shop",ready="False",stalled="True",suspended="false"'
    )
    assert series(values, release) == [f"gotk_resource_info{{{labels}}}"]
    assert len(series(values, flux_object("ImagePolicy", "web", {}))) == 1


def test_every_label_and_kind_that_an_alert_looks_at_is_told(tmp_path: Path) -> None:
    built = made(tmp_path, ALERTS + BOT, plain("web"))
    values = configuration(built.files[METRICS])

    for rule in rules(built):
        for matchers in re.findall(r"gotk_resource_info\{([^}]*)\}", rule["expr"]):
            labels = dict(re.findall(r'(\w+)[!=~]+"([^"]*)"', matchers))
            for kind in labels.pop("customresource_kind").split("|"):
                conditions = {"Ready": "True", "Stalled": "True", "Remediated": "True"}
                (one,) = series(values, flux_object(kind, "web", conditions, suspend=True))
                assert set(labels) <= set(re.findall(r"(\w+)=", one))


def test_kube_state_metrics_may_read_what_it_is_told_to(tmp_path: Path) -> None:
    values = configuration(made(tmp_path, ALERTS + BOT).files[METRICS])

    allowed = {
        (group, resource)
        for rule in values["rbac"]["extraRules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        if rule["verbs"] == ["list", "watch"]
    }
    read = [one["groupVersionKind"] for one in values["customResourceState"]["config"]["spec"]["resources"]]
    # The plural of these kinds is their name with `ies` or `s`.
    plurals = {(kind["group"], re.sub("ys$", "ies", kind["kind"].lower() + "s")) for kind in read}
    assert plurals == allowed


def test_values_of_the_two_charts_say_the_same(tmp_path: Path) -> None:
    text = made(tmp_path).files[METRICS]

    data = only(text, "ConfigMap")["data"]
    assert yaml.safe_load(data["values.yaml"]) == {
        "kube-state-metrics": yaml.safe_load(data["kube-state-metrics.yaml"])
    }
    assert only(text, "ConfigMap")["metadata"]["labels"] == {"reconcile.fluxcd.io/watch": "Enabled"}


def test_metrics_of_image_automation_are_left_out_with_it(tmp_path: Path) -> None:
    values = configuration(made(tmp_path, ALERTS + BOT, automation=False).files[METRICS])

    kinds = [one["groupVersionKind"]["kind"] for one in values["customResourceState"]["config"]["spec"]["resources"]]
    assert kinds == ["HelmRelease"]
    assert [rule["resources"] for rule in values["rbac"]["extraRules"]] == [["helmreleases"]]


# The Flux Kustomization


@pytest.mark.parametrize(
    ("mode", "after"), [("all", ["apps"]), ("namespace", ["apps", "apps-web"]), ("service", ["apps"])]
)
def test_rule_comes_after_what_brings_its_kind_and_the_metrics_before(
    tmp_path: Path, mode: str, after: list[str]
) -> None:
    platform = PLATFORM.replace('"2.9"', f'"2.9"\n  kustomizations: {mode}') + ALERTS
    built = project(tmp_path, {"catalog/web.yaml": WEB, "platform.yaml": platform}).build()

    found = {one["metadata"]["name"]: one["spec"] for one in objects(built.files["flux/kustomizations.yaml"])}
    alerts = found["platform-alerts"]
    assert [one["name"] for one in alerts["dependsOn"]] == after
    assert (alerts["path"], alerts["prune"], alerts["wait"], alerts["retryInterval"]) == (
        "./platform/alerts",
        True,
        True,
        "2m",
    )
    assert "kube-state-metrics.yaml" in only(built.files["apps/kustomization.yaml"], "Kustomization")["resources"]


def test_alerts_pass_postbuild_as_they_are(tmp_path: Path) -> None:
    built = made(tmp_path, ALERTS + BOT + "defaults: {substitute: [DOMAIN]}\n", plain("web"))

    assert not re.search(r"\$[{$]", built.files[RULE] + built.files[METRICS])
