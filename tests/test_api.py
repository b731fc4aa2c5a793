from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from render.flux import api
from render.flux.api import OBJECTS, Problem, newer_fields
from render.flux.versions import MINORS, FluxVersion, served_versions

V27, V28, V29 = (FluxVersion.parse(minor) for minor in MINORS)

TABLES: dict[str, dict[str, Any]] = {
    **{kind: known.spec for kind, known in OBJECTS.items()},
    "dependsOn": api.DEPENDS_ON,
    "valuesFrom": api.VALUES_FROM,
    "postRenderers[]": api.POST_RENDERER,
}

RELEASE: dict[str, Any] = {"interval": "1h", "chartRef": {"kind": "OCIRepository", "name": "app"}}
POLICY: dict[str, Any] = {"imageRepositoryRef": {"name": "app"}, "policy": {"semver": {"range": "1.x"}}}


def nodes(schema: dict[str, Any], path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, schema
    for name, child in schema.get("properties", {}).items():
        yield from nodes(child, f"{path}.{name}")
    if "items" in schema:
        yield from nodes(schema["items"], f"{path}[]")
    if isinstance(schema.get("additionalProperties"), dict):
        yield from nodes(schema["additionalProperties"], f"{path}.*")


NODES = [node for kind, table in TABLES.items() for node in nodes(table, kind)]


def places(problems: list[Problem]) -> list[str]:
    return [api.dotted(problem.path) for problem in problems]


def release(**fields: object) -> dict[str, Any]:
    return {**RELEASE, **fields}


class TestTables:
    def test_only_known_keywords_are_used(self) -> None:
        allowed = {
            "string": {"enum", "pattern", "minLength", "maxLength"},
            "integer": {"minimum", "maximum"},
            "boolean": set(),
            "array": {"items", "maxItems"},
            "object": {"properties", "required", "additionalProperties"},
            None: set(),
        }
        common = {"type", "description", "x-since"}
        wrong = {path: set(node) - common - allowed[node.get("type")] for path, node in NODES}
        assert {path: keys for path, keys in wrong.items() if keys} == {}

    def test_every_field_is_described_in_one_sentence(self) -> None:
        named = [(path, node) for path, node in NODES if not path.endswith(("[]", ".*"))]
        assert [path for path, node in named if not re.fullmatch(r"[`A-Z][^\n]{5,110}\.", node["description"])] == []

    def test_objects_close_their_fields_and_require_only_those(self) -> None:
        for path, node in NODES:
            if "properties" in node:
                assert node["additionalProperties"] is False, path
                assert set(node.get("required", [])) <= set(node["properties"]), path
                assert not any(name.endswith("*") for name in node["properties"]), path

    def test_exactly_these_fields_are_newer_than_the_oldest_target(self) -> None:
        assert {path: node["x-since"] for path, node in NODES if "x-since" in node} == {
            "HelmRelease.valuesFrom[].literal": "2.9",
            "HelmRelease.install.serverSideApply": "2.8",
            "HelmRelease.upgrade.serverSideApply": "2.8",
            "HelmRelease.upgrade.chartNameChangeStrategy": "2.9",
            "HelmRelease.rollback.serverSideApply": "2.8",
            "HelmRelease.postRenderStrategy": "2.9",
            "HelmRelease.waitStrategy": "2.8",
            "HelmRelease.healthCheckExprs": "2.8",
            "OCIRepository.verify.trustedRootSecretRef": "2.9",
            "ImageUpdateAutomation.git.commit.signingKey.type": "2.9",
            "Kustomization.buildMetadata": "2.9",
            "Kustomization.ignore": "2.9",
            "Kustomization.postBuild.substituteStrategy": "2.9",
            "valuesFrom[].literal": "2.9",
        }

    def test_patterns_are_anchored_and_compile(self) -> None:
        patterns = {node["pattern"] for _, node in NODES if "pattern" in node}
        assert len(patterns) == 7
        for pattern in patterns:
            assert pattern.startswith("^"), pattern
            assert pattern.endswith("$"), pattern
            re.compile(pattern, re.ASCII)

    def test_written_api_versions_are_served_by_every_target(self) -> None:
        for kind, known in OBJECTS.items():
            for version in (V27, V28, V29):
                assert known.api_version == served_versions(kind, version)[0]

    def test_values_take_anything(self) -> None:
        assert {"description"} == set(api.HELM_RELEASE_SPEC["properties"]["values"])


class TestPatterns:
    @pytest.mark.parametrize(
        ("value", "with_hours", "without_hours"),
        [
            ("1h", True, False),
            ("1h30m", True, False),
            ("1.5m", True, True),
            ("90s", True, True),
            ("0s", True, True),
            ("0", False, False),
            ("1d", False, False),
            ("-1s", False, False),
            ("1s\n", False, False),
            ("\u0661s", False, False),
        ],
    )
    def test_durations(self, value: str, with_hours: bool, without_hours: bool) -> None:
        assert with_hours is api.matches_pattern(api.DURATION, value)
        assert without_hours is api.matches_pattern(api.DURATION_WITHOUT_HOURS, value)

    def test_timeouts_of_sources_take_no_hours_but_those_of_releases_do(self) -> None:
        def pattern(kind: str, field: str) -> object:
            return OBJECTS[kind].spec["properties"][field]["pattern"]

        sources = ("HelmRepository", "OCIRepository", "GitRepository", "ImageRepository")
        assert {api.DURATION_WITHOUT_HOURS} == {pattern(kind, "timeout") for kind in sources}
        assert {api.DURATION} == {pattern(kind, "interval") for kind in sources}
        assert {api.DURATION} == {pattern(kind, "timeout") for kind in ("HelmRelease", "Kustomization")}

    def test_scp_style_addresses_are_no_git_urls(self) -> None:
        pattern = api.GIT_REPOSITORY_SPEC["properties"]["url"]["pattern"]
        assert not api.matches_pattern(pattern, "git@example.org:group/repo")
        assert api.matches_pattern(pattern, "ssh://git@example.org/group/repo")


class TestNewerFields:
    @pytest.mark.parametrize(
        ("fields", "path", "since"),
        [
            ({"waitStrategy": {"name": "poller"}}, "waitStrategy", "2.8"),
            ({"install": {"serverSideApply": True}}, "install.serverSideApply", "2.8"),
            ({"upgrade": {"serverSideApply": "auto"}}, "upgrade.serverSideApply", "2.8"),
            ({"rollback": {"serverSideApply": "auto"}}, "rollback.serverSideApply", "2.8"),
            (
                {"healthCheckExprs": [{"apiVersion": "example.org/v1", "kind": "X", "current": "true"}]},
                "healthCheckExprs",
                "2.8",
            ),
            ({"postRenderStrategy": "separate"}, "postRenderStrategy", "2.9"),
            ({"upgrade": {"chartNameChangeStrategy": "Reinstall"}}, "upgrade.chartNameChangeStrategy", "2.9"),
            (
                {"valuesFrom": [{"kind": "Secret", "name": "s"}, {"kind": "Secret", "name": "s", "literal": False}]},
                "valuesFrom[1].literal",
                "2.9",
            ),
        ],
    )
    def test_release_fields_by_version(self, fields: dict[str, Any], path: str, since: str) -> None:
        for version in (V27, V28, V29):
            expected = [] if version.since(since) else [path]
            assert expected == places(api.helm_release_rules(release(**fields), version))

    def test_message_names_field_version_and_target(self) -> None:
        (problem,) = newer_fields(api.HELM_RELEASE_SPEC, {"postRenderStrategy": "nohooks"}, FluxVersion.parse("2.8.6"))
        assert problem.message == "`postRenderStrategy` needs Flux 2.9; the target is 2.8.6"
        assert problem.hint == "remove it, or raise the target version to 2.9"

    @pytest.mark.parametrize(
        ("kind", "spec", "path"),
        [
            (
                "ImageUpdateAutomation",
                {"git": {"commit": {"signingKey": {"type": "ssh"}}}},
                "git.commit.signingKey.type",
            ),
            ("OCIRepository", {"verify": {"trustedRootSecretRef": {"name": "r"}}}, "verify.trustedRootSecretRef"),
            ("Kustomization", {"buildMetadata": ["originAnnotations"]}, "buildMetadata"),
            ("Kustomization", {"ignore": [{"paths": ["/x"]}]}, "ignore"),
            ("Kustomization", {"postBuild": {"substituteStrategy": "Always"}}, "postBuild.substituteStrategy"),
            ("GitRepository", {"provider": "aws"}, "provider"),
        ],
    )
    def test_fields_of_other_kinds_that_came_with_2_9(self, kind: str, spec: dict[str, Any], path: str) -> None:
        assert [path] == places(OBJECTS[kind].rules(spec, V28))
        assert OBJECTS[kind].rules(spec, V29) == []

    def test_path_starts_where_the_value_stands(self) -> None:
        problems = newer_fields(api.VALUES_FROM, [{"literal": True}], V28, ("release", "valuesFrom"))
        assert [problem.path for problem in problems] == [("release", "valuesFrom", 0, "literal")]

    def test_values_and_unknown_fields_hold_no_newer_fields(self) -> None:
        spec = {"values": {"waitStrategy": {"name": "x"}}, "unknown": {"waitStrategy": 1}, "install": "x"}
        assert newer_fields(api.HELM_RELEASE_SPEC, spec, V27) == []


class TestHelmRelease:
    def test_exactly_one_chart_source(self) -> None:
        chart = {"spec": {"chart": "app", "sourceRef": {"kind": "HelmRepository", "name": "repo"}}}
        assert api.helm_release_rules(RELEASE, V29) == []
        assert api.helm_release_rules({"interval": "1h", "chart": chart, "chartRef": None}, V29) == []
        assert places(api.helm_release_rules(release(chart=chart), V29)) == ["chartRef"]
        (missing,) = api.helm_release_rules({"interval": "1h"}, V29)
        assert (missing.path, missing.message) == ((), "one of `chart` and `chartRef` must be set")

    def test_a_part_of_a_spec_needs_no_chart_but_may_not_have_two(self) -> None:
        assert api.helm_release_rules({"interval": "1h"}, V29, partial=True) == []
        assert places(api.helm_release_rules({"chart": {}, "chartRef": {}}, V29, partial=True)) == ["chartRef"]

    @pytest.mark.parametrize("action", ["install", "upgrade"])
    def test_retry_interval_goes_only_with_retry_on_failure(self, action: str) -> None:
        def check(name: str) -> list[str]:
            strategy = {"name": name, "retryInterval": "5m"}
            return places(api.helm_release_rules(release(**{action: {"strategy": strategy}}), V29))

        assert check("RetryOnFailure") == []
        assert [f"{action}.strategy.retryInterval"] == check("RemediateOnFailure")

    @pytest.mark.parametrize(
        ("kube_config", "expected"),
        [
            ({"secretRef": {"name": "k"}}, []),
            ({"configMapRef": {"name": "k"}}, []),
            ({"secretRef": {"name": "k"}, "configMapRef": {"name": "k"}}, ["kubeConfig.configMapRef"]),
            ({}, ["kubeConfig"]),
        ],
    )
    def test_kube_config_names_exactly_one_source(self, kube_config: dict[str, Any], expected: list[str]) -> None:
        assert expected == places(api.helm_release_rules(release(kubeConfig=kube_config), V29))
        assert expected == places(api.kustomization_rules({"kubeConfig": kube_config}, V29))

    @pytest.mark.parametrize(
        ("kind", "expected"),
        [("HelmRepository", []), ("GitRepository", ["chart.spec.verify"]), ("Bucket", ["chart.spec.verify"])],
    )
    def test_verify_goes_only_with_a_helm_repository(self, kind: str, expected: list[str]) -> None:
        source = {"kind": kind, "name": "repo"}
        chart = {"spec": {"chart": "app", "sourceRef": source, "verify": {"provider": "cosign"}}}
        assert expected == places(api.helm_release_rules({"interval": "1h", "chart": chart}, V29))

    def test_health_checks_need_a_kind_before_2_9(self) -> None:
        entries = [{"apiVersion": "a/v1", "kind": "X", "current": "true"}, {"apiVersion": "a/v1", "current": "true"}]
        spec = release(healthCheckExprs=entries)
        assert places(api.helm_release_rules(spec, V27)) == ["healthCheckExprs"]
        assert places(api.helm_release_rules(spec, V28)) == ["healthCheckExprs[1]"]
        assert api.helm_release_rules(spec, V29) == []
        flux = {"healthCheckExprs": entries}
        assert places(api.kustomization_rules(flux, V27)) == ["healthCheckExprs[1]"]
        assert api.kustomization_rules(flux, V29) == []

    @pytest.mark.parametrize(
        "target",
        [
            "a",
            "a.b.c",
            "list[0]",
            "list[0].name",
            "list[0][1].name",
            r"annotations.example\.org/name",
            r"odd\[0]",
            r"back\\slash",
            "a[65536]",
            ".".join("x" * 31),
            "a[0]." + ".".join("x" * 31),
        ],
    )
    def test_target_paths_that_helm_follows(self, target: str) -> None:
        entry = {"kind": "Secret", "name": "s", "targetPath": target}
        assert api.matches_pattern(api.VALUES_FROM["items"]["properties"]["targetPath"]["pattern"], target)
        assert api.helm_release_rules(release(valuesFrom=[entry]), V29) == []

    @pytest.mark.parametrize(
        ("target", "fault"),
        [
            ("[0]", "index without a name"),
            ("a.[0]", "index without a name"),
            ("a..b", "empty name"),
            (".a", "empty name"),
            ("a.", "end in a dot"),
            ("a[0].", "end in a dot"),
            ("a[0]b", "a dot or an index"),
            (r"a[0]\.b", "a dot or an index"),
            ("a[65537]", "index above 65536"),
            ("a\\", "end in a lone"),
            (".".join("x" * 32), "more than 30"),
        ],
    )
    def test_target_paths_that_helm_stumbles_over(self, target: str, fault: str) -> None:
        entry = {"kind": "Secret", "name": "s", "targetPath": target}
        (problem,) = api.helm_release_rules(release(valuesFrom=[{}, entry]), V29)
        assert problem.path == ("valuesFrom", 1, "targetPath")
        assert fault in problem.message

    def test_backslashes_of_a_literal_path_are_not_judged(self) -> None:
        entry = {"kind": "Secret", "name": "s", "targetPath": "a\\", "literal": True}
        assert api.helm_release_rules(release(valuesFrom=[entry]), V29) == []

    def test_target_paths_outside_the_pattern_are_left_to_the_schema(self) -> None:
        entries = [{"targetPath": "a b."}, {"targetPath": ""}, {"targetPath": 3}]
        assert api.helm_release_rules(release(valuesFrom=entries), V29) == []


class TestImagePolicy:
    @pytest.mark.parametrize(
        ("policy", "expected"),
        [
            ({"semver": {"range": "*"}}, []),
            ({"numerical": {}, "semver": None}, []),
            ({}, ["policy"]),
            ({"semver": {"range": "*"}, "numerical": {}}, ["policy.numerical"]),
            ({"alphabetical": {}, "numerical": {}}, ["policy.numerical"]),
        ],
    )
    def test_exactly_one_order(self, policy: dict[str, Any], expected: list[str]) -> None:
        assert expected == places(api.image_policy_rules({**POLICY, "policy": policy}, V29))

    def test_cause_names_the_order_that_flux_takes(self) -> None:
        policy = {"numerical": {}, "alphabetical": {}}
        (problem,) = api.image_policy_rules({**POLICY, "policy": policy}, V29)
        assert problem.cause == "Flux takes `alphabetical` and ignores the rest without a word"

    @pytest.mark.parametrize(
        ("fields", "expected"),
        [
            ({"digestReflectionPolicy": "Always", "interval": "10m"}, []),
            ({"digestReflectionPolicy": "IfNotPresent"}, []),
            ({"digestReflectionPolicy": "Always"}, [""]),
            ({"digestReflectionPolicy": "IfNotPresent", "interval": "10m"}, ["interval"]),
            ({"interval": "10m"}, ["interval"]),
        ],
    )
    def test_interval_exactly_when_the_digest_is_always_looked_up(
        self, fields: dict[str, Any], expected: list[str]
    ) -> None:
        assert expected == places(api.image_policy_rules({**POLICY, **fields}, V29))


class TestOtherKinds:
    @pytest.mark.parametrize(
        ("provider", "expected"),
        [("azure", []), ("aws", []), ("github", ["serviceAccountName"]), (None, ["serviceAccountName"])],
    )
    def test_git_service_accounts_go_only_with_azure_and_aws(self, provider: object, expected: list[str]) -> None:
        spec = {"serviceAccountName": "s", "provider": provider}
        assert expected == places(api.git_repository_rules(spec, V29))

    def test_oci_helm_repositories_have_oci_addresses(self) -> None:
        assert api.helm_repository_rules({"type": "oci", "url": "oci://example.org/charts"}, V29) == []
        assert places(api.helm_repository_rules({"type": "oci", "url": "https://example.org"}, V29)) == ["url"]
        assert api.helm_repository_rules({"url": "https://example.org"}, V29) == []

    def test_automation_needs_git(self) -> None:
        (problem,) = api.image_update_automation_rules({}, V29)
        assert problem.message == "`git` must be set"

    @pytest.mark.parametrize(
        ("template", "removed"),
        [
            ("{{ range .Changed.Changes }}{{ .OldValue }}{{ end }}", []),
            ("See .Updated for {{ .Values.Updated }}{{ with $x := .Values }}{{ $x.Updated }}{{ end }}", []),
            ('{{ print ".Updated" }} {{ .Values.UpdatedAt }}', []),
            ("{{ range .Updated.Images }}{{ . }}{{ end }}", ["Updated"]),
            ("{{- range $.Updated.Files -}}{{ end }}", ["Updated"]),
            ("{{ .Changed.ImageResult }}{{ .Updated }}{{ .Updated }}", ["Changed.ImageResult", "Updated"]),
        ],
    )
    def test_removed_template_fields_are_named(self, template: str, removed: list[str]) -> None:
        problems = api.image_update_automation_rules({"git": {"commit": {"messageTemplate": template}}}, V29)
        assert [f"`messageTemplate` uses `.{name}`, which Flux has removed" for name in removed] == [
            problem.message for problem in problems
        ]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


def specs(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values of a table's shape, now and then of another."""
    if "properties" in schema:
        fields = {name: specs(child) for name, child in schema["properties"].items()}
        return st.fixed_dictionaries({}, optional=fields) | JSON
    if "items" in schema:
        return st.lists(st.deferred(lambda: specs(schema["items"])), max_size=2) | JSON
    if "enum" in schema:
        return st.sampled_from(schema["enum"]) | JSON
    return JSON


# Building a value of a whole spec takes long on a busy machine, which is no fault of the code under test.
SPECS = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.parametrize("kind", sorted(OBJECTS))
@SPECS
@given(data=st.data(), version=st.sampled_from([V27, V28, V29]))
def test_rules_take_any_shape_and_point_into_it(kind: str, data: st.DataObject, version: FluxVersion) -> None:
    properties = OBJECTS[kind].spec["properties"]
    spec = data.draw(st.fixed_dictionaries({}, optional={name: specs(child) for name, child in properties.items()}))
    for problem in OBJECTS[kind].rules(spec, version):
        here: Any = spec
        for step in problem.path:
            here = here[step]
        assert re.fullmatch(r"[^A-Z\n].*[^.\n]", problem.message)
        assert problem.cause
        assert problem.hint


@SPECS
@given(data=st.data())
def test_newest_target_has_no_newer_fields(data: st.DataObject) -> None:
    spec = data.draw(specs(api.HELM_RELEASE_SPEC))
    assert newer_fields(api.HELM_RELEASE_SPEC, spec, V29) == []
    older = set(newer_fields(api.HELM_RELEASE_SPEC, spec, V27))
    assert {p.path for p in newer_fields(api.HELM_RELEASE_SPEC, spec, V28)} <= {p.path for p in older}


@given(st.text("ab.[]01\\/-_", max_size=12))
def test_a_target_path_yields_at_most_one_problem(target: str) -> None:
    assert len(api.helm_release_rules(release(valuesFrom=[{"targetPath": target}]), V29)) <= 1
