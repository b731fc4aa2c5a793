from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from render.build import Build
from tests.project import PLATFORM, only, project, told

D = "sha256:" + "0123456789abcdef" * 4
CHART = 'source:\n  chart:\n    url: oci://charts.example.org/web\n    version: "1.0.0"\n'
IMAGE = CHART.replace("source:\n", "source:\n  image: ghcr.io/example/web:1.2.3\n")
WEB = f"name: web\n{CHART}"
AUTO = f"name: web\n{IMAGE}update: {{range: 1.x}}\n"
ROLLBACK = {
    "upgrade": {
        "strategy": {"name": "RemediateOnFailure"},
        "remediation": {"retries": 3, "remediateLastFailure": True, "strategy": "rollback"},
    },
    "rollback": {"cleanupOnFail": True},
}


def platform(defaults: str = "", version: str = "2.9", table: str = "[]", more: str = "") -> str:
    text = PLATFORM.replace('"2.9"', f'"{version}"').replace(" []", f" {table}")
    return text + (f"defaults: {{{defaults}}}\n" if defaults else "") + more


def table(*entries: str) -> str:
    return "[" + ", ".join(f"{{{entry}}}" for entry in entries) + "]"


RENAMED = table("name: ghcr.io/example/web, newName: registry.corp.example/web")


def made(folder: Path, text: str, cluster: str = PLATFORM, **others: str) -> Build:
    files = {f"catalog/{name}.yaml": other for name, other in others.items()}
    return project(folder, {"catalog/web.yaml": text, "platform.yaml": cluster, **files}).build()


def spec(folder: Path, text: str, cluster: str = PLATFORM, **others: str) -> dict[str, Any]:
    """Return the spec of the release `web`."""
    built = made(folder, text, cluster, **others)
    assert not built.failed, told(built)
    found: dict[str, Any] = only(built.files["apps/web/helmrelease.yaml"], "HelmRelease")["spec"]
    return found


def codes(built: Build) -> list[str]:
    return [fault.code for fault in built.diagnostics]


# Precedence


def test_release_says_as_little_as_it_can(tmp_path: Path) -> None:
    assert spec(tmp_path, WEB) == {"interval": "1h", "chartRef": {"kind": "OCIRepository", "name": "web"}}


def test_interval_and_timeout_come_from_the_platform(tmp_path: Path) -> None:
    found = spec(tmp_path, WEB, platform("interval: 20m, timeout: 3m"))

    assert (found["interval"], found["timeout"]) == ("20m", "3m")


def test_default_release_wins_over_interval_and_timeout(tmp_path: Path) -> None:
    found = spec(tmp_path, WEB, platform("interval: 20m, timeout: 3m, release: {interval: 2h, timeout: 9m}"))

    assert (found["interval"], found["timeout"]) == ("2h", "9m")


def test_own_release_wins_over_the_default_release_field_by_field(tmp_path: Path) -> None:
    text = WEB + "release: {interval: 5m, install: {remediation: {retries: 1}}}\n"
    cluster = platform(
        "release: {interval: 2h, install: {timeout: 9m, remediation: {retries: 7, remediateLastFailure: true}}}"
    )

    found = spec(tmp_path, text, cluster)

    assert found["interval"] == "5m"
    assert found["install"] == {"timeout": "9m", "remediation": {"retries": 1, "remediateLastFailure": True}}


def test_lists_replace_lists(tmp_path: Path) -> None:
    ignore = "driftDetection: {mode: enabled, ignore: [{paths: [%s]}]}"

    found = spec(tmp_path, WEB + f"release: {{{ignore % '/own'}}}\n", platform(f"release: {{{ignore % '/default'}}}"))

    assert found["driftDetection"]["ignore"] == [{"paths": ["/own"]}]


def test_update_implies_the_rollback_over_the_default_release(tmp_path: Path) -> None:
    cluster = platform("release: {upgrade: {strategy: {name: RetryOnFailure}, cleanupOnFail: true}}, retries: 5")

    found = spec(tmp_path, AUTO, cluster)

    assert found["upgrade"]["strategy"] == {"name": "RemediateOnFailure"}
    assert found["upgrade"]["cleanupOnFail"] is True
    assert found["upgrade"]["remediation"]["retries"] == 5


def test_own_release_wins_over_what_update_implies(tmp_path: Path) -> None:
    text = AUTO + "release: {upgrade: {remediation: {retries: 1}}, rollback: {cleanupOnFail: false}}\n"

    found = spec(tmp_path, text)

    assert found["upgrade"]["remediation"] == {"retries": 1, "remediateLastFailure": True, "strategy": "rollback"}
    assert found["rollback"] == {"cleanupOnFail": False}


@pytest.mark.parametrize(
    "more", ["update: {range: 1.x}\n", "release: {upgrade: {strategy: {name: RemediateOnFailure}}}\n"]
)
def test_strategy_of_another_name_takes_nothing_of_the_one_it_replaces(tmp_path: Path, more: str) -> None:
    cluster = platform("release: {upgrade: {timeout: 9m, strategy: {name: RetryOnFailure, retryInterval: 5m}}}")

    found = spec(tmp_path, f"name: web\n{IMAGE}{more}", cluster)

    assert found["upgrade"]["strategy"] == {"name": "RemediateOnFailure"}
    assert found["upgrade"]["timeout"] == "9m"


def test_strategy_of_the_same_name_is_merged(tmp_path: Path) -> None:
    cluster = platform("release: {upgrade: {strategy: {name: RetryOnFailure, retryInterval: 5m}}}")

    found = spec(tmp_path, WEB + "release: {upgrade: {strategy: {name: RetryOnFailure}}}\n", cluster)

    assert found["upgrade"]["strategy"] == {"name": "RetryOnFailure", "retryInterval": "5m"}


def test_merge_that_the_api_refuses_is_told_in_the_service_with_both_places(tmp_path: Path) -> None:
    cluster = platform("release: {kubeConfig: {configMapRef: {name: a}}}")

    built = made(tmp_path, WEB + "release: {kubeConfig: {secretRef: {name: a}}}\n", cluster)

    (fault,) = built.diagnostics
    assert (fault.code, fault.location.path, fault.location.line) == ("R401", "catalog/web.yaml", 6)
    assert fault.message == "`kubeConfig.secretRef` and `kubeConfig.configMapRef` must not both be set"
    ((place, _),) = fault.related
    assert (place.path, place.line) == ("platform.yaml", 6)


def test_default_that_the_api_refuses_is_told_once_and_in_its_own_file(tmp_path: Path) -> None:
    cluster = platform("release: {kubeConfig: {secretRef: {name: a}, configMapRef: {name: a}}}")

    built = made(tmp_path, WEB, cluster, db=DB)

    assert [(fault.code, fault.location.path) for fault in built.diagnostics] == [("R401", "platform.yaml")]


# The automatic rollback


def test_update_asks_for_the_rollback(tmp_path: Path) -> None:
    found = spec(tmp_path, AUTO)

    assert {field: found[field] for field in ROLLBACK} == ROLLBACK


def test_no_update_asks_for_no_rollback(tmp_path: Path) -> None:
    found = spec(tmp_path, f"name: web\n{IMAGE}")

    assert ROLLBACK.keys().isdisjoint(found)


def test_rollback_can_be_declined(tmp_path: Path) -> None:
    text = AUTO.replace("1.x", "1.x, autoRollbackOnFailedHealth: false")

    assert ROLLBACK.keys().isdisjoint(spec(tmp_path, text))


def test_update_of_a_further_image_asks_for_the_rollback_too(tmp_path: Path) -> None:
    side = "images: {side: {ref: 'ghcr.io/example/side:1.0.0', at: side, update: {range: 1.x}}}\n"

    assert spec(tmp_path, WEB + side)["rollback"] == {"cleanupOnFail": True}


def test_images_that_say_nothing_follow_the_one_that_does(tmp_path: Path) -> None:
    side = "images: {side: {ref: 'ghcr.io/example/side:1.0.0', at: side, update: {range: 1.x}}}\n"
    text = AUTO.replace("1.x", "1.x, autoRollbackOnFailedHealth: false") + side

    assert "rollback" not in spec(tmp_path, text)


@pytest.mark.parametrize(
    "defeat",
    [
        "upgrade: {strategy: {name: RetryOnFailure}}",
        "upgrade: {disableWait: true}",
        "upgrade: {remediation: {strategy: uninstall}}",
        "upgrade: {remediation: {remediateLastFailure: false}}",
        "upgrade: null",
        "upgrade: {strategy: null}",
        "upgrade: {remediation: null}",
        "upgrade: {remediation: {retries: 0, remediateLastFailure: null}}",
    ],
)
def test_what_defeats_the_rollback_is_refused(tmp_path: Path, defeat: str) -> None:
    built = made(tmp_path, AUTO + f"release: {{{defeat}}}\n")
    declined = AUTO.replace("1.x", "1.x, autoRollbackOnFailedHealth: false")

    assert codes(built) == ["R403"]
    assert not made(tmp_path / "declined", declined + f"release: {{{defeat}}}\n").failed


def test_default_release_that_defeats_the_rollback_is_refused_once_and_in_its_own_file(tmp_path: Path) -> None:
    cluster = platform("release: {upgrade: {disableWait: true}}")

    (fault,) = made(tmp_path, AUTO, cluster, other=AUTO.replace("web", "other")).diagnostics

    assert (fault.code, fault.location.path) == ("R403", "platform.yaml")
    assert fault.message == "`defaults.release.upgrade.disableWait` defeats the automatic rollback of `update`"
    assert not made(tmp_path / "fixed", WEB, cluster).failed


def test_release_without_an_interval_is_refused(tmp_path: Path) -> None:
    (own,) = made(tmp_path / "own", WEB + "release: {interval: null}\n").diagnostics
    (default,) = made(tmp_path / "default", WEB, platform("release: {interval: null}")).diagnostics

    assert (own.code, own.message) == ("R401", "`release.interval` must be a duration, not null")
    assert (default.code, default.message) == ("R401", "`defaults.release.interval` must be a duration, not null")


# Checked against the API


@pytest.mark.parametrize(
    ("release", "code"),
    [
        ("installl: {}", "R101"),
        ("upgrade: {remediation: {retires: 1}}", "R101"),
        ("interval: 1d", "R104"),
        ("maxHistory: many", "R103"),
        ("upgrade: {crds: Replace}", "R104"),
        ("values: {}", "R402"),
        ("valuesFrom: []", "R402"),
        ("chart: {spec: {version: 1.0.0}}", "R402"),
        ("chart: {spec: {intervall: 1h}}", "R101"),
        ("chart: {spec: {interval: 1d}}", "R104"),
        ("chartRef: {}", "R402"),
        ("dependsOn: []", "R402"),
        ("postRenderers: []", "R402"),
        ("upgrade: {strategy: {name: RemediateOnFailure, retryInterval: 5m}}", "R401"),
    ],
)
def test_release_fields_are_checked(tmp_path: Path, release: str, code: str) -> None:
    own = made(tmp_path / "own", WEB + f"release: {{{release}}}\n")
    default = made(tmp_path / "default", WEB, platform(f"release: {{{release}}}"))

    assert codes(own) == [code]
    assert codes(default) == [code]
    assert own.diagnostics[0].location.path == "catalog/web.yaml"
    assert default.diagnostics[0].location.path == "platform.yaml"


@pytest.mark.parametrize(
    ("release", "since"),
    [
        ("waitStrategy: {name: poller}", "2.8"),
        ("postRenderStrategy: nohooks", "2.9"),
        ("upgrade: {serverSideApply: auto}", "2.8"),
        ("upgrade: {chartNameChangeStrategy: Reinstall}", "2.9"),
    ],
)
def test_field_newer_than_the_target_is_refused(tmp_path: Path, release: str, since: str) -> None:
    older = f"2.{int(since[2]) - 1}"
    text = WEB + f"release: {{{release}}}\n"

    assert codes(made(tmp_path / "older", text, platform(version=older))) == ["R401"]
    assert codes(made(tmp_path / "served", text, platform(version=since))) == []


def test_values_from_is_carried_and_checked(tmp_path: Path) -> None:
    listed = "valuesFrom: [{kind: Secret, name: web, valuesKey: extra.yaml, optional: true}]\n"

    assert spec(tmp_path, WEB + listed)["valuesFrom"] == [
        {"kind": "Secret", "name": "web", "valuesKey": "extra.yaml", "optional": True}
    ]
    assert codes(made(tmp_path, WEB + listed.replace("Secret", "Pod"))) == ["R104"]
    assert codes(made(tmp_path, WEB + listed.replace("optional: true", "literal: true"), platform(version="2.8"))) == [
        "R401"
    ]


def test_post_renderers_are_checked(tmp_path: Path) -> None:
    assert codes(made(tmp_path, WEB + "postRenderers: [{kustomize: {image: []}}]\n")) == ["R101"]


def test_fields_stand_in_the_order_of_the_api(tmp_path: Path) -> None:
    text = AUTO + "release: {timeout: 5m, suspend: false, releaseName: shop, maxHistory: 2}\nvalues: {a: 1}\n"

    assert list(spec(tmp_path, text)) == [
        "interval",
        "timeout",
        "chartRef",
        "releaseName",
        "suspend",
        "maxHistory",
        "upgrade",
        "rollback",
        "values",
    ]


def test_values_are_carried_as_they_are_spelled(tmp_path: Path) -> None:
    given = "values:\n  a: 0644\n  b: '1.20'\n  c: \"yes\"\n  d: 9007199254740993\n  '8080': 1e3\n"

    text = made(tmp_path, WEB + given).files["apps/web/helmrelease.yaml"]

    assert text.partition("  values:\n")[2] == (
        "    a: 0644\n    b: '1.20'\n    c: \"yes\"\n    d: 9007199254740993\n    '8080': 1e3\n"
    )


@pytest.mark.parametrize("empty", ["", "values:\n", "values: {}\n"])
def test_empty_values_are_left_out(tmp_path: Path, empty: str) -> None:
    assert "values" not in spec(tmp_path, WEB + empty)


# Names


def test_object_name_is_the_releases_name(tmp_path: Path) -> None:
    built = made(tmp_path, f"name: web\nobjectName: redis\nnamespace: shop\n{CHART}")

    assert only(built, "HelmRelease")["metadata"] == {"name": "redis", "namespace": "shop"}
    assert only(built, "OCIRepository")["metadata"] == {"name": "web", "namespace": "shop"}


def test_one_object_name_may_run_in_two_namespaces(tmp_path: Path) -> None:
    other = f"name: b\nobjectName: redis\nnamespace: b\n{CHART}"

    assert not made(tmp_path, f"name: a\nobjectName: redis\nnamespace: a\n{CHART}", b=other).failed


@pytest.mark.parametrize(
    ("own", "defaults", "expected"),
    [("", "", "web"), ("", "namespace: apps", "apps"), ("namespace: shop\n", "namespace: apps", "shop")],
)
def test_namespace_of_a_service(tmp_path: Path, own: str, defaults: str, expected: str) -> None:
    built = made(tmp_path, f"name: web\n{own}{CHART}", platform(defaults))

    assert only(built, "HelmRelease")["metadata"]["namespace"] == expected


def test_labels_and_annotations_stand_on_every_object_of_the_service(tmp_path: Path) -> None:
    text = AUTO + "labels: {team: web}\nannotations: {owner: 'a: b'}\n"

    built = made(tmp_path, text)

    found = [
        only(built, kind)["metadata"] for kind in ("HelmRelease", "OCIRepository", "ImageRepository", "ImagePolicy")
    ]
    assert [(one["labels"], one["annotations"]) for one in found] == [({"team": "web"}, {"owner": "a: b"})] * 4


@pytest.mark.parametrize(("length", "refused"), [(53, False), (54, True)])
def test_release_name_that_helm_would_not_take_is_refused(tmp_path: Path, length: int, refused: bool) -> None:
    target = "t" * (length - len("-web"))
    built = made(tmp_path, WEB + f"release: {{targetNamespace: {target}}}\n")

    assert ("R404" in codes(built)) is refused


def test_release_name_of_its_own_may_be_short(tmp_path: Path) -> None:
    text = WEB + f"release: {{targetNamespace: {'t' * 60}, releaseName: web}}\n"

    assert not made(tmp_path, text).failed


# dependsOn

DB = WEB.replace("web", "db")
PLAIN = "name: plain\nsource: {image: 'ghcr.io/example/plain:1.0.0'}\nworkload: {replicas: 1}\n"


@pytest.mark.parametrize(
    ("listed", "expected"),
    [
        ("[db]", [{"name": "db", "namespace": "db"}]),
        ("[{name: db}]", [{"name": "db", "namespace": "db"}]),
        (
            "[{name: db, readyExpr: 'dep.status.ready'}]",
            [{"name": "db", "namespace": "db", "readyExpr": "dep.status.ready"}],
        ),
        ("[{helmRelease: infra/operator}]", [{"name": "operator", "namespace": "infra"}]),
        (
            "[{helmRelease: infra/operator}, db]",
            [{"name": "operator", "namespace": "infra"}, {"name": "db", "namespace": "db"}],
        ),
    ],
)
def test_dependency_names_release_and_namespace(tmp_path: Path, listed: str, expected: list[dict[str, str]]) -> None:
    assert spec(tmp_path, WEB + f"dependsOn: {listed}\n", db=DB)["dependsOn"] == expected


def test_dependency_is_on_the_object_in_its_namespace(tmp_path: Path) -> None:
    db = f"name: db\nobjectName: postgres\nnamespace: databases\n{CHART}"

    found = spec(tmp_path, WEB + "dependsOn: [db]\n", db=db)

    assert found["dependsOn"] == [{"name": "postgres", "namespace": "databases"}]


def test_namespace_is_written_for_neighbours_too(tmp_path: Path) -> None:
    found = spec(tmp_path, WEB + "dependsOn: [db]\n", platform("namespace: apps"), db=DB)

    assert found["dependsOn"] == [{"name": "db", "namespace": "apps"}]


def test_dependency_may_come_later_in_the_catalog(tmp_path: Path) -> None:
    found = spec(tmp_path, WEB + "dependsOn: [zz]\n", zz=WEB.replace("web", "zz"))

    assert found["dependsOn"] == [{"name": "zz", "namespace": "zz"}]


@pytest.mark.parametrize(
    ("text", "others", "code"),
    [
        (WEB + "dependsOn: [gone]\n", {}, "R201"),
        (WEB + "dependsOn: [db]\n", {"db": DB + "enabled: false\n"}, "R201"),
        (WEB + "dependsOn: [plain]\n", {"plain": PLAIN}, "R201"),
        (PLAIN + "dependsOn: [db]\n", {"db": DB}, "R201"),
        (PLAIN + "dependsOn: [{helmRelease: a/b}]\n", {}, "R201"),
        (WEB + "dependsOn: [{name: db, helmRelease: a/b}]\n", {"db": DB}, "R201"),
        (WEB + "dependsOn: [{readyExpr: a}]\n", {}, "R201"),
        (WEB + "dependsOn: [{helmRelease: b}]\n", {}, "R104"),
        (WEB + "dependsOn: [web]\n", {}, "R202"),
        (WEB + "dependsOn: [db]\n", {"db": DB + "dependsOn: [web]\n"}, "R202"),
    ],
)
def test_dependency_that_cannot_be_is_refused(tmp_path: Path, text: str, others: dict[str, str], code: str) -> None:
    assert codes(made(tmp_path, text, **others)) == [code]


def test_dependency_is_told_at_the_field_at_fault(tmp_path: Path) -> None:
    both = "name: plain\nsource: {image: 'ghcr.io/example/plain:1.0.0'}\nworkload: {}\n"
    cluster = PLATFORM.replace('"2.9"', '"2.9"\n  kustomizations: service')
    ready = made(tmp_path / "a", both + "dependsOn:\n- name: db\n  readyExpr: a\n", cluster, db=DB)
    outside = made(tmp_path / "b", both + "dependsOn:\n- helmRelease: a/b\n", cluster)

    assert told(ready) == [
        "R201 catalog/web.yaml:6:14 `readyExpr` needs HelmReleases on both sides, and `plain` is none"
    ]
    assert told(outside) == ["R201 catalog/web.yaml:5:16 `plain` cannot depend on the HelmRelease `a/b`"]
    assert outside.diagnostics[0].hint == "remove it"


def test_two_policies_of_one_name_are_told_once(tmp_path: Path) -> None:
    further = "images: {db: {ref: 'ghcr.io/example/db:1.0.0', at: db, update: {range: 1.x}}}\n"

    built = made(tmp_path, f"name: web\n{IMAGE}{further}", other=AUTO.replace("name: web", "name: web-db"))

    (fault,) = built.diagnostics
    assert (fault.code, fault.message) == ("R203", "two image policies have the name `web-db`")
    assert fault.hint == "rename the image `db` of `web`, or that of `web-db`"


@pytest.mark.parametrize("kind", ["ImageRepository", "ImagePolicy"])
@pytest.mark.parametrize("automation", [True, False])
def test_policy_that_an_extra_object_is_too_is_refused_in_both_modes(
    tmp_path: Path, kind: str, automation: bool
) -> None:
    extra = f"apiVersion: image.toolkit.fluxcd.io/v1, kind: {kind}, metadata: {{name: web, namespace: flux-system}}"
    text = AUTO + f"extraObjects: [{{{extra}}}]\n"

    built = project(tmp_path, {"catalog/web.yaml": text}).build(automation=automation)

    assert codes(built) == ["R203"]


def test_disabled_service_is_not_rendered_and_may_depend_on_anything(tmp_path: Path) -> None:
    built = made(tmp_path, WEB, off=DB + "enabled: false\ndependsOn: [gone]\n")

    assert not built.failed, told(built)
    assert not [path for path in built.files if "db" in path]


def test_circles_are_told_once_each_as_a_path(tmp_path: Path) -> None:
    def ring(*names: str) -> dict[str, str]:
        following = [*names[1:], names[0]]
        return {one: f"name: {one}\n{CHART}dependsOn: [{other}]\n" for one, other in zip(names, following, strict=True)}

    built = made(tmp_path, WEB, **ring("a", "b", "c"), **ring("p", "q"))

    assert sorted(fault.message for fault in built.diagnostics) == [
        "services depend on each other in a circle: `a` → `b` → `c` → `a`",
        "services depend on each other in a circle: `p` → `q` → `p`",
    ]


# The override table in a release


def test_table_is_the_last_post_renderer_under_its_comment(tmp_path: Path) -> None:
    text = made(
        tmp_path,
        f"name: web\n{IMAGE.replace('1.2.3', f'1.2.3@{D}')}update: {{range: 1.x}}\n"
        "postRenderers: [{kustomize: {patches: [{patch: 'x'}]}}]\n",
        platform(table=RENAMED),
    ).files["apps/web/helmrelease.yaml"]

    assert text.partition("  postRenderStrategy: ")[2] == (
        "separate\n"
        "  postRenderers:\n"
        "  - kustomize:\n"
        "      patches:\n"
        "      - patch: 'x'\n"
        "  - kustomize:\n"
        "      images:\n"
        "      - name: ghcr.io/example/web\n"
        '        newTag: "1.2.3" # {"$imagepolicy": "flux-system:web:tag"}\n'
        f'        digest: "{D}" # {{"$imagepolicy": "flux-system:web:digest"}}\n'
        "  # registries.imageOverrides\n"
        "  - kustomize:\n"
        "      images:\n"
        "      - name: ghcr.io/example/web\n"
        "        newName: registry.corp.example/web\n"
    )


def test_table_has_the_same_text_in_every_release(tmp_path: Path) -> None:
    entries = table("name: b.example/x, newName: corp.example/x", f"name: a.example/y, newTag: '1', digest: '{D}'")

    built = made(tmp_path, WEB, platform(table=entries), db=DB)

    first, second = (built.files[f"apps/{name}/helmrelease.yaml"].partition("  # reg")[2] for name in ("web", "db"))
    assert first == second
    assert first.index("b.example") < first.index("a.example")


@pytest.mark.parametrize(
    "cluster", [platform(table="[]"), platform().replace("  imageOverrides: []\n", "  emit: all\n")]
)
def test_empty_table_emits_nothing(tmp_path: Path, cluster: str) -> None:
    assert "postRender" not in made(tmp_path, WEB, cluster).files["apps/web/helmrelease.yaml"]


@pytest.mark.parametrize(("version", "emitted"), [("2.9", True), ("2.9.1", True), ("2.8", False), ("2.7", False)])
def test_strategy_for_hooks_is_written_where_it_exists(tmp_path: Path, version: str, emitted: bool) -> None:
    found = spec(tmp_path, WEB, platform(version=version, table=RENAMED))

    assert ("postRenderStrategy" in found) is emitted
    assert found.get("postRenderStrategy", "separate") == "separate"


def test_own_strategy_for_hooks_stays(tmp_path: Path) -> None:
    found = spec(tmp_path, WEB + "release: {postRenderStrategy: combined}\n", platform(table=RENAMED))

    assert found["postRenderStrategy"] == "combined"


@pytest.mark.parametrize("version", ["2.7", "2.8", "2.8.6"])
def test_hooks_that_overrides_do_not_reach_are_warned_of_once(tmp_path: Path, version: str) -> None:
    built = made(tmp_path, WEB, platform(version=version, table=RENAMED), db=DB)

    assert codes(built) == ["R604"]


@pytest.mark.parametrize(
    ("version", "entries"), [("2.8.0", RENAMED), ("2.8.5", RENAMED), ("2.9", RENAMED), ("2.7", "[]"), ("2.8.6", "[]")]
)
def test_hooks_that_overrides_reach_are_not_warned_of(tmp_path: Path, version: str, entries: str) -> None:
    assert codes(made(tmp_path, WEB, platform(version=version, table=entries))) == []


def test_strategy_that_keeps_hooks_from_the_table_is_warned_of_where_it_is_written(tmp_path: Path) -> None:
    own = made(tmp_path / "own", WEB + "release: {postRenderStrategy: nohooks}\n", platform(table=RENAMED))
    default = made(tmp_path / "a", WEB, platform("release: {postRenderStrategy: nohooks}", table=RENAMED), db=DB)
    none = made(tmp_path / "none", WEB + "release: {postRenderStrategy: nohooks}\n")

    assert told(own) == [
        "R604 catalog/web.yaml:6:31 `release.postRenderStrategy: nohooks` keeps image overrides from hooks"
    ]
    assert told(default) == [
        "R604 platform.yaml:6:42 `defaults.release.postRenderStrategy: nohooks` keeps image overrides from hooks"
    ]
    assert told(none) == []


ENTRIES = table(
    "name: ghcr.io/example/web, newName: registry.corp.example/web",
    "name: ghcr.io/example/unused, newName: registry.corp.example/unused",
    "name: registry.corp.example/web, newTag: '9'",
)


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("all", ["ghcr.io/example/web", "ghcr.io/example/unused", "registry.corp.example/web"]),
        ("declared", ["ghcr.io/example/web", "registry.corp.example/web"]),
        ("none", None),
    ],
)
def test_release_carries_the_entries_of_its_mode(tmp_path: Path, mode: str, expected: list[str] | None) -> None:
    text = f"name: web\n{IMAGE}"
    own = spec(tmp_path / "own", f"{text}imageOverrides: {mode}\n", platform(table=ENTRIES))
    cluster = platform(table=ENTRIES).replace("registries:\n", f"registries:\n  emit: {mode}\n")
    default = spec(tmp_path / "default", text, cluster)

    assert own == default
    names = [[entry["name"] for entry in one["kustomize"]["images"]] for one in own.get("postRenderers", [])]
    assert names == ([expected] if expected else [])
    assert ("postRenderStrategy" in own) is bool(expected)


def test_declared_mode_without_a_match_carries_nothing(tmp_path: Path) -> None:
    assert "postRenderers" not in spec(tmp_path, WEB + "imageOverrides: declared\n", platform(table=ENTRIES))


def test_declared_mode_sees_what_own_renderers_make_of_an_image(tmp_path: Path) -> None:
    own = "postRenderers: [{kustomize: {images: [{name: ghcr.io/example/web, newName: ghcr.io/example/unused}]}}]\n"

    found = spec(tmp_path, f"name: web\n{IMAGE}imageOverrides: declared\n{own}", platform(table=ENTRIES))

    assert [entry["name"] for entry in found["postRenderers"][-1]["kustomize"]["images"]] == ["ghcr.io/example/unused"]


def test_own_image_renderers_are_never_touched(tmp_path: Path) -> None:
    own = f"postRenderers: [{{kustomize: {{images: {RENAMED}}}}}]\n"

    found = spec(tmp_path, WEB + own, platform(table=RENAMED))

    assert found["postRenderers"][0] == found["postRenderers"][1]


# Overrides and automation


def scanned(built: Build) -> str:
    image: str = only(built, "ImageRepository")["spec"]["image"]
    return image


def test_untouched_image_is_scanned_as_declared(tmp_path: Path) -> None:
    built = made(tmp_path, AUTO, platform(table=table("name: ghcr.io/other, newName: corp.example/other")))

    assert scanned(built) == "ghcr.io/example/web"


@pytest.mark.parametrize("shape", ["split", "registry", "tag", "postRenderer"])
def test_renamed_image_is_scanned_where_it_comes_from_and_keeps_its_declared_name(tmp_path: Path, shape: str) -> None:
    text = AUTO.replace("ghcr.io/example/web:1.2.3", f"{{ref: 'ghcr.io/example/web:1.2.3', shape: {shape}}}")

    built = made(tmp_path, text, platform(table=RENAMED))

    assert codes(built) == []
    assert scanned(built) == "registry.corp.example/web"
    body = built.files["apps/web/helmrelease.yaml"].partition("  # registries")[0]
    assert 'flux-system:web:tag"}' in body
    assert "registry.corp.example" not in body


def test_renamed_string_is_written_as_the_cluster_pulls_it(tmp_path: Path) -> None:
    text = AUTO.replace("ghcr.io/example/web:1.2.3", "{ref: 'ghcr.io/example/web:1.2.3', shape: string}")

    built = made(tmp_path, text, platform(table=RENAMED))

    assert (
        'image: "registry.corp.example/web:1.2.3" # {"$imagepolicy": "flux-system:web"}\n'
        in (built.files["apps/web/helmrelease.yaml"])
    )


def test_fixed_string_is_written_as_declared(tmp_path: Path) -> None:
    text = f"name: web\n{IMAGE}".replace(
        "ghcr.io/example/web:1.2.3", "{ref: 'ghcr.io/example/web:1.2.3', shape: string}"
    )

    assert spec(tmp_path, text, platform(table=RENAMED))["values"] == {"image": "ghcr.io/example/web:1.2.3"}


def test_own_renderers_come_before_the_table(tmp_path: Path) -> None:
    own = "postRenderers: [{kustomize: {images: [{name: ghcr.io/example/web, newName: mirror.example/web}]}}]\n"
    entries = table("name: mirror.example/web, newName: registry.corp.example/web")

    assert scanned(made(tmp_path, AUTO + own, platform(table=entries))) == "registry.corp.example/web"


@pytest.mark.parametrize("change", ["newTag: '1.2.0'", f"digest: '{D}'", f"newTag: '1.2.0', digest: '{D}'"])
def test_override_of_the_version_pins_the_image(tmp_path: Path, change: str) -> None:
    built = made(tmp_path, AUTO, platform(table=table(f"name: ghcr.io/example/web, {change}")))

    (fault,) = built.diagnostics
    assert (fault.code, fault.severity) == ("R603", "warning")
    assert "imagepolicy" not in "".join(built.files.values())
    assert "apps/web/image-automation.yaml" not in built.files
    ((place, _),) = fault.related
    assert place.path == "platform.yaml"
    assert fault.location.path == "catalog/web.yaml"


def test_override_of_the_version_after_a_rename_pins_too(tmp_path: Path) -> None:
    entries = table("name: ghcr.io/example/web, newName: corp.example/web", "name: corp.example/web, newTag: '1.2.0'")

    assert "R603" in codes(made(tmp_path, AUTO, platform(table=entries)))


def test_own_renderer_of_the_version_pins_the_image(tmp_path: Path) -> None:
    own = "postRenderers: [{kustomize: {images: [{name: ghcr.io/example/web, newTag: '1.2.0'}]}}]\n"

    built = made(tmp_path, AUTO + own)

    assert codes(built) == ["R603"]
    assert "apps/web/image-automation.yaml" not in built.files


def test_pin_of_the_service_is_no_news_to_the_table(tmp_path: Path) -> None:
    text = AUTO.replace("range: 1.x", "pin: 1.2.3")

    assert codes(made(tmp_path, text, platform(table=table("name: ghcr.io/example/web, newTag: '1.2.0'")))) == []


def test_override_that_the_release_does_not_carry_decides_nothing(tmp_path: Path) -> None:
    text = AUTO + "imageOverrides: none\n"

    built = made(tmp_path, text, platform(table=table("name: ghcr.io/example/web, newTag: '1.2.0'")))

    assert codes(built) == []
    assert scanned(built) == "ghcr.io/example/web"


@pytest.mark.parametrize(
    "image", ["{ref: 'ghcr.io/example/web:1.2.3', shape: string}", "{ref: 'ghcr.io/example/web:1.2.3', reach: values}"]
)
def test_effective_reference_that_the_table_would_rewrite_again_is_refused(tmp_path: Path, image: str) -> None:
    entries = table(
        "name: registry.corp.example/web, newName: registry.corp.example/base/web",
        "name: ghcr.io/example/web, newName: registry.corp.example/web",
    )

    built = made(tmp_path, AUTO.replace("ghcr.io/example/web:1.2.3", image), platform(table=entries))

    (fault,) = built.diagnostics
    assert fault.code == "R607"
    assert [place.line for place, _ in fault.related] == [5, 5]


@pytest.mark.parametrize("shape", ["split", "string", "postRenderer"])
@pytest.mark.parametrize("more", ["", ", reach: values"])
def test_image_post_renderer_that_is_no_pattern_is_refused(tmp_path: Path, shape: str, more: str) -> None:
    own = "postRenderers: [{kustomize: {images: [{name: 'a(', newTag: '1'}]}}]\n"
    image = f"{{ref: 'ghcr.io/example/web:1.2.3', shape: {shape}{more}}}"

    assert codes(made(tmp_path, AUTO.replace("ghcr.io/example/web:1.2.3", image) + own)) == ["R602"]


def test_release_says_how_the_chart_is_followed(tmp_path: Path) -> None:
    more = "release: {chart: {metadata: {labels: {tier: a}}, spec: {interval: 5m, ignoreMissingValuesFiles: true}}}\n"
    web = "name: web\nsource: {chart: {url: 'https://charts.example', name: web, version: 1.0.0}}\n"
    chart = spec(tmp_path, web + more)["chart"]

    assert chart["metadata"] == {"labels": {"tier": "a"}}
    assert chart["spec"]["chart"] == "web"
    assert (chart["spec"]["interval"], chart["spec"]["ignoreMissingValuesFiles"]) == ("5m", True)


def test_default_of_how_charts_are_followed_leaves_charts_that_are_objects_alone(tmp_path: Path) -> None:
    cluster = platform("release: {chart: {spec: {interval: 5m}}}")

    assert "chart" not in spec(tmp_path / "default", WEB, cluster)
    assert codes(made(tmp_path / "own", WEB + "release: {chart: {spec: {interval: 5m}}}\n")) == ["R402"]
