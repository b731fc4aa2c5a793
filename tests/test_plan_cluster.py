from __future__ import annotations

import random
import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from render.build import Build, build
from render.flux.substitution import variables
from render.yaml.scalar import double_quoted
from tests.project import PLATFORM, objects, only, project, told

CHART = "source: {chart: {url: 'oci://charts.example.org/c', version: '1.0.0'}}\n"
PLAIN = "source: {image: 'ghcr.io/example/plain:1.0.0'}\nworkload: {replicas: 1}\n"
CONFIG_MAP = "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}"
RELEASE = "{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {name: web, namespace: web}}"
FOREIGN = "{apiVersion: example.org/v1, kind: Widget, metadata: {name: w}}"


def chart(name: str, more: str = "") -> str:
    return f"name: {name}\n{CHART}{more}"


def made(folder: Path, *texts: str, platform: str = PLATFORM, automation: bool = True) -> Build:
    files = {f"catalog/{index}.yaml": text for index, text in enumerate(texts)}
    return project(folder, {**files, "platform.yaml": platform}).build(automation=automation)


def mode(name: str, more: str = "") -> str:
    return PLATFORM.replace('"2.9"', f'"2.9"\n  kustomizations: {name}') + more


def listed(built: Build, path: str) -> list[str]:
    """Return the resources of a kustomization.yaml."""
    found: list[str] = only(built.files[path], "Kustomization")["resources"]
    return found


def flux(built: Build) -> dict[str, Any]:
    """Return the specs of the Flux Kustomizations by name."""
    assert not built.failed, told(built)
    return {one["metadata"]["name"]: one["spec"] for one in objects(built.files["flux/kustomizations.yaml"])}


def waits(built: Build) -> dict[str, list[str]]:
    return {name: [one["name"] for one in spec.get("dependsOn", [])] for name, spec in flux(built).items()}


def codes(built: Build) -> list[str]:
    return [fault.code for fault in built.diagnostics]


# Files and kustomizations


def test_service_folder_lists_exactly_its_files(tmp_path: Path) -> None:
    text = chart("web", f"update: {{range: 1.x}}\nextraObjects: [{CONFIG_MAP}]\n").replace(
        "{chart:", "{image: 'a/b:1.0.0', chart:"
    )

    built = made(tmp_path, text)

    assert listed(built, "apps/web/kustomization.yaml") == [
        "source.yaml",
        "helmrelease.yaml",
        "image-automation.yaml",
        "extra.yaml",
    ]
    folder = {path.rpartition("/")[2] for path in built.files if path.startswith("apps/web/")}
    assert folder == {*listed(built, "apps/web/kustomization.yaml"), "kustomization.yaml"}


def test_every_folder_that_is_listed_has_a_kustomization_and_every_file_is_listed(tmp_path: Path) -> None:
    built = made(
        tmp_path, chart("web"), f"name: plain\n{PLAIN}", f"name: own\nextraObjects: [{CONFIG_MAP}, {FOREIGN}]\n"
    )

    reached = set()
    stack = [path for path in built.files if path.count("/") == 1 and path.endswith("/kustomization.yaml")]
    while stack:
        path = stack.pop()
        reached.add(path)
        for name in listed(built, path):
            inner = f"{path.rpartition('/')[0]}/{name}"
            if inner in built.files:
                reached.add(inner)
            else:
                stack.append(f"{inner}/kustomization.yaml")
    assert reached == set(built.files)


def test_services_are_listed_by_name_whatever_their_files_are_called(tmp_path: Path) -> None:
    built = made(tmp_path, chart("zebra"), chart("ape"), chart("mole"))

    assert listed(built, "apps/kustomization.yaml") == ["namespaces.yaml", "ape", "mole", "zebra"]


def test_further_kustomize_fields_and_resources_are_carried(tmp_path: Path) -> None:
    kustomize = (
        "kustomize: {resources: [dash.yaml], components: [../../components/x], "
        "configMapGenerator: [{name: c, files: [a.txt]}], secretGenerator: [{name: s, envs: [s.env]}], "
        "generatorOptions: {disableNameSuffixHash: true}, patches: [{path: p.yaml}]}\n"
    )

    built = made(tmp_path, chart("web", kustomize))

    found = only(built.files["apps/web/kustomization.yaml"], "Kustomization")
    assert found["resources"] == ["source.yaml", "helmrelease.yaml", "dash.yaml"]
    assert found["components"] == ["../../components/x"]
    assert found["configMapGenerator"] == [{"name": "c", "files": ["a.txt"]}]
    assert found["secretGenerator"] == [{"name": "s", "envs": ["s.env"]}]
    assert found["generatorOptions"] == {"disableNameSuffixHash": True}
    assert found["patches"] == [{"path": "p.yaml"}]
    assert [path for path, _ in built.foreign] == [
        "apps/web/dash.yaml",
        "apps/web/../../components/x",
        "apps/web/a.txt",
        "apps/web/s.env",
        "apps/web/p.yaml",
    ]


def test_files_under_kustomize_must_exist(tmp_path: Path) -> None:
    made_ = project(tmp_path, {"catalog/web.yaml": chart("web", "kustomize: {resources: [dash.yaml]}\n")})

    assert "error[R507]" in made_.run("build").err
    (tmp_path / "apps/web").mkdir(parents=True)
    (tmp_path / "apps/web/dash.yaml").write_text("kind: ConfigMap\n")
    assert made_.run("build").code == 0


@pytest.mark.parametrize(
    "remote", ["https://a.example/x.yaml", "github.com/a/b?ref=v1", "git@a.example:b", "ssh://a/b"]
)
def test_remote_resource_is_refused(tmp_path: Path, remote: str) -> None:
    assert codes(made(tmp_path, chart("web", f"kustomize: {{resources: ['{remote}']}}\n"))) == ["R214"]


def test_kustomizations_hold_no_images(tmp_path: Path) -> None:
    platform = PLATFORM.replace(" []", "\n  - {name: ghcr.io/example/plain, newName: corp.example/plain}")

    built = made(tmp_path, f"name: plain\n{PLAIN}", chart("web"), platform=platform)

    assert all("images" not in text for path, text in built.files.items() if path.endswith("kustomization.yaml"))
    assert codes(made(tmp_path / "own", chart("web", "kustomize: {images: []}\n"))) == ["R101"]


def test_service_that_renders_nothing_is_refused(tmp_path: Path) -> None:
    assert codes(made(tmp_path, "name: web\n")) == ["R212"]


def test_service_may_be_kustomize_files_alone(tmp_path: Path) -> None:
    built = made(tmp_path, "name: web\nkustomize: {resources: [a.yaml]}\n")

    assert listed(built, "apps/web/kustomization.yaml") == ["a.yaml"]


def test_sources_is_no_service_name(tmp_path: Path) -> None:
    assert codes(made(tmp_path, chart("sources"))) == ["R203"]


def test_empty_catalog_renders_nothing(tmp_path: Path) -> None:
    assert made(tmp_path).files == {}


# Namespaces


def namespaces(built: Build) -> list[str]:
    assert not built.failed, told(built)
    if "apps/namespaces.yaml" not in built.files:
        return []
    return [one["metadata"]["name"] for one in objects(built.files["apps/namespaces.yaml"])]


def test_each_namespace_in_use_is_rendered_once_and_never_pruned(tmp_path: Path) -> None:
    built = made(tmp_path, chart("web"), chart("db", "namespace: web\n"), f"name: plain\n{PLAIN}")

    assert namespaces(built) == ["plain", "web"]
    assert objects(built.files["apps/namespaces.yaml"])[0] == {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "plain", "annotations": {"kustomize.toolkit.fluxcd.io/prune": "disabled"}},
    }


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public", "flux-system"])
def test_namespaces_of_others_are_not_rendered(tmp_path: Path, name: str) -> None:
    built = made(tmp_path, chart("web", f"namespace: {name}\n"))

    assert namespaces(built) == []
    assert listed(built, "apps/kustomization.yaml") == ["web"]


def test_namespace_that_an_extra_object_declares_is_left_to_it(tmp_path: Path) -> None:
    declared = "extraObjects: [{apiVersion: v1, kind: Namespace, metadata: {name: web, labels: {a: b}}}]\n"

    assert namespaces(made(tmp_path, chart("web", declared), chart("db"))) == ["db"]


def test_namespace_of_an_extra_object_is_in_use(tmp_path: Path) -> None:
    objects_ = "extraObjects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: other}}]\n"

    assert namespaces(made(tmp_path, chart("web", objects_))) == ["other", "web"]


def test_namespaces_can_be_left_out(tmp_path: Path) -> None:
    assert namespaces(made(tmp_path, chart("web"), platform=PLATFORM + "defaults: {namespaces: false}\n")) == []


def test_disabled_service_needs_no_namespace(tmp_path: Path) -> None:
    assert namespaces(made(tmp_path, chart("web"), chart("db", "enabled: false\n"))) == ["web"]


# Extra objects


def test_objects_of_kubernetes_and_flux_stay_with_the_service_and_others_go_to_configs(tmp_path: Path) -> None:
    alert = "{apiVersion: notification.toolkit.fluxcd.io/v1beta3, kind: Alert, metadata: {name: a}}"

    built = made(tmp_path, chart("web", f"extraObjects: [{FOREIGN}, {CONFIG_MAP}, {alert}]\n"))

    assert [one["kind"] for one in objects(built.files["apps/web/extra.yaml"])] == ["ConfigMap", "Alert"]
    assert [one["kind"] for one in objects(built.files["configs/web/extra.yaml"])] == ["Widget"]
    assert listed(built, "configs/web/kustomization.yaml") == ["extra.yaml"]
    assert listed(built, "configs/kustomization.yaml") == ["web"]


def test_extra_object_gets_namespace_and_labels_unless_it_has_them(tmp_path: Path) -> None:
    own = "{apiVersion: v1, kind: ConfigMap, metadata: {name: d, namespace: web, labels: {team: own}}}"

    built = made(
        tmp_path, chart("web", f"labels: {{team: shop}}\nannotations: {{a: b}}\nextraObjects: [{CONFIG_MAP}, {own}]\n")
    )

    first, second = (one["metadata"] for one in objects(built.files["apps/web/extra.yaml"]))
    assert first == {"name": "c", "namespace": "web", "labels": {"team": "shop"}, "annotations": {"a": "b"}}
    assert second["labels"] == {"team": "own"}


def test_object_without_a_namespace_of_its_own_gets_none(tmp_path: Path) -> None:
    role = "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: r}}"

    built = made(tmp_path, chart("web", f"extraObjects: [{role}]\n"))

    assert only(built, "ClusterRole")["metadata"] == {"name": "r"}


def test_object_of_a_kind_that_is_not_known_is_written_without_a_namespace(tmp_path: Path) -> None:
    assert only(made(tmp_path, chart("web", f"extraObjects: [{FOREIGN}]\n")), "Widget")["metadata"] == {"name": "w"}


def test_encrypted_object_is_written_as_given(tmp_path: Path) -> None:
    secret = (
        "labels: {team: shop}\nextraObjects:\n- apiVersion: v1\n  kind: Secret\n  metadata:\n    name: s\n"
        "  stringData:\n    a: ENC[AES256_GCM,data:x]\n  sops:\n    version: 3.9.0\n"
    )

    text = made(tmp_path, chart("web", secret)).files["apps/web/extra.yaml"]

    assert text.partition("\n")[2] == (
        "apiVersion: v1\nkind: Secret\nmetadata:\n  name: s\nstringData:\n  a: ENC[AES256_GCM,data:x]\n"
        "sops:\n  version: 3.9.0\n"
    )


CRONJOB = (
    "{apiVersion: batch/v1, kind: CronJob, metadata: {name: j}, spec: {jobTemplate: {spec: {template: {spec: {"
    "initContainers: [{name: i, image: 'ghcr.io/example/plain:1'}], containers: [{name: c, image: '%s'}]}}}}}}"
)


def test_table_is_applied_to_the_images_of_extra_objects(tmp_path: Path) -> None:
    platform = PLATFORM.replace(" []", "\n  - {name: ghcr.io/example/plain, newName: corp.example/plain}")
    text = f"name: web\nextraObjects: [{CRONJOB % 'docker.io/other:2'}]\n"

    found = only(made(tmp_path, text, platform=platform), "CronJob")

    inner = found["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    assert inner["initContainers"][0]["image"] == "corp.example/plain:1"
    assert inner["containers"][0]["image"] == "docker.io/other:2"


def test_object_that_kustomize_could_not_rewrite_is_written_and_warned_of(tmp_path: Path) -> None:
    platform = PLATFORM.replace(" []", "\n  - {name: ghcr.io/example/plain, newName: corp.example/plain}")
    text = "name: web\nextraObjects: [{apiVersion: v1, kind: Odd, metadata: {name: o}, spec: {containers: none}}]\n"

    built = made(tmp_path, text, platform=platform)

    assert codes(built) == ["R605"]
    assert only(built, "Odd")["spec"] == {"containers": "none"}


@pytest.mark.parametrize("missing", ["apiVersion: v1, ", "kind: ConfigMap, ", "metadata: {name: c}", "name: c"])
def test_extra_object_that_is_none_is_refused(tmp_path: Path, missing: str) -> None:
    text = f"name: web\nextraObjects: [{CONFIG_MAP.replace(missing, '')}]\n"

    assert codes(made(tmp_path, text)) == ["R102"]


# One of each


def test_name_of_a_service_is_its_own(tmp_path: Path) -> None:
    assert codes(made(tmp_path, chart("web"), chart("web"))) == ["R203"]


def test_disabled_service_holds_its_name(tmp_path: Path) -> None:
    assert codes(made(tmp_path, chart("web"), chart("web", "enabled: false\n"))) == ["R203"]


@pytest.mark.parametrize(
    "other",
    [
        chart("db", "objectName: web\nnamespace: web\n"),
        f"name: db\nextraObjects: [{CONFIG_MAP.replace('{name: c}', '{name: c, namespace: web}')}]\n",
        f"name: db\nextraObjects: [{RELEASE}]\n",
    ],
    ids=["object-name", "extra-objects", "release-and-extra-object"],
)
def test_object_that_is_rendered_twice_is_refused_with_both_places(tmp_path: Path, other: str) -> None:
    built = made(tmp_path, chart("web", f"extraObjects: [{CONFIG_MAP}]\n"), other)

    (fault,) = built.diagnostics
    assert fault.code == "R203"
    assert {fault.location.path, *(place.path for place, _ in fault.related)} == {"catalog/0.yaml", "catalog/1.yaml"}


def test_object_that_one_service_renders_twice_is_refused(tmp_path: Path) -> None:
    assert codes(made(tmp_path, chart("web", f"extraObjects: [{CONFIG_MAP}, {CONFIG_MAP}]\n"))) == ["R203"]


def test_object_without_a_namespace_is_one_of_the_namespace_default(tmp_path: Path) -> None:
    plain = "{apiVersion: example.org/v1, kind: Thing, metadata: {name: a}}"
    placed = plain.replace("name: a", "name: a, namespace: default")

    assert codes(made(tmp_path / "a", f"name: web\nextraObjects: [{plain}, {placed}]\n")) == ["R203"]
    other = placed.replace("default", "other")
    assert codes(made(tmp_path / "b", f"name: web\nextraObjects: [{plain}, {other}]\n")) == []


@pytest.mark.parametrize(
    ("kind", "more", "path", "what"),
    [
        ("ConfigMap", "metadata: {name: 12}", "metadata.name", "the number `12`"),
        ("ConfigMap", "metadata: {name: a, namespace: true}", "metadata.namespace", "the boolean `true`"),
        ("ConfigMap", "metadata: {name: a, labels: {b: 1.20}}", "metadata.labels.b", "the number `1.20`"),
        ("ConfigMap", "metadata: {name: a}, data: {port: 80}", "data.port", "the number `80`"),
        ("Secret", "metadata: {name: a}, stringData: {port: 80}", "stringData.port", "the number `…`"),
    ],
)
def test_value_of_an_extra_object_that_must_be_a_string_is_none(
    tmp_path: Path, kind: str, more: str, path: str, what: str
) -> None:
    (fault,) = made(tmp_path, f"name: web\nextraObjects:\n- {{apiVersion: v1, kind: {kind}, {more}}}\n").diagnostics

    assert (fault.code, fault.message) == ("R103", f"`extraObjects[0].{path}` must be a string, not {what}")


def test_null_in_a_map_of_strings_is_carried(tmp_path: Path) -> None:
    text = "name: web\nextraObjects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: }, data: {b: }}]\n"

    assert only(made(tmp_path, text), "ConfigMap")["data"] == {"b": None}


def test_other_api_version_of_one_group_is_the_same_object(tmp_path: Path) -> None:
    other = FOREIGN.replace("v1", "v2")

    assert codes(made(tmp_path, chart("web", f"extraObjects: [{FOREIGN}, {other}]\n"))) == ["R203"]


def test_names_are_refused_without_image_automation_too(tmp_path: Path) -> None:
    def automated(name: str, more: str = "") -> str:
        return chart(name, "update: {range: 1.x}\n" + more).replace("{chart:", "{image: 'a/b:1.0.0', chart:")

    side = "images: {db: {ref: 'a/c:1.0.0', at: c, update: {range: 1.x}}}\n"

    for automation in (True, False):
        folder = tmp_path / str(automation)
        built = made(folder, automated("web", side), automated("web-db"), automation=automation)
        assert set(codes(built)) == {"R203"}


# The Flux Kustomizations


def test_one_kustomization_for_all(tmp_path: Path) -> None:
    built = made(tmp_path, chart("web"), chart("db"))

    assert flux(built) == {
        "apps": {
            "interval": "1h",
            "timeout": "10m",
            "sourceRef": {"kind": "GitRepository", "name": "flux-system"},
            "path": "./apps",
            "prune": True,
            "wait": True,
        }
    }
    assert listed(built, "flux/kustomization.yaml") == ["kustomizations.yaml"]


def test_configs_follow_apps(tmp_path: Path) -> None:
    built = made(tmp_path, chart("web"), chart("db", f"extraObjects: [{FOREIGN}]\n"))

    assert waits(built) == {"apps": [], "configs": ["apps"]}
    assert flux(built)["configs"]["path"] == "./configs"


@pytest.mark.parametrize(("name", "apps"), [("all", "apps"), ("namespace", "apps-web"), ("service", "apps-web")])
def test_apps_do_not_wait_for_what_their_configs_may_have_to_bring(tmp_path: Path, name: str, apps: str) -> None:
    without = flux(made(tmp_path / "without", chart("web"), platform=mode(name)))
    found = flux(made(tmp_path / "with", chart("web", f"extraObjects: [{FOREIGN}]\n"), platform=mode(name)))

    assert without[apps]["wait"] is True
    assert found[apps]["wait"] is False
    assert {spec.get("retryInterval") for key, spec in found.items() if key.startswith("configs")} == {"2m"}


def test_one_kustomization_a_namespace(tmp_path: Path) -> None:
    built = made(
        tmp_path,
        chart("web", "namespace: shop\n"),
        chart("db", "namespace: shop\n"),
        chart("log", f"extraObjects: [{FOREIGN}]\n"),
        platform=mode("namespace"),
    )

    assert waits(built) == {
        "apps": [],
        "apps-log": ["apps"],
        "apps-shop": ["apps"],
        "configs": ["apps", "apps-log", "apps-shop"],
    }
    assert flux(built)["apps-shop"]["path"] == "./flux/apps-shop"
    assert listed(built, "flux/apps-shop/kustomization.yaml") == ["../../apps/db", "../../apps/web"]
    assert listed(built, "apps/kustomization.yaml") == ["namespaces.yaml"]


def test_one_kustomization_a_service(tmp_path: Path) -> None:
    built = made(
        tmp_path,
        chart("web", f"extraObjects: [{FOREIGN}]\n"),
        f"name: only\nextraObjects: [{FOREIGN.replace('name: w', 'name: x')}]\n",
        platform=mode("service"),
    )

    assert waits(built) == {
        "apps": [],
        "apps-web": ["apps"],
        "configs-only": ["apps"],
        "configs-web": ["apps-web"],
    }
    assert flux(built)["apps-web"]["path"] == "./apps/web"
    assert flux(built)["configs-only"]["path"] == "./configs/only"


def test_kustomizations_of_services_carry_what_releases_cannot(tmp_path: Path) -> None:
    built = made(
        tmp_path,
        chart("web", "dependsOn: [db, plain, {helmRelease: infra/x}]\n"),
        chart("db"),
        f"name: plain\n{PLAIN}dependsOn: [db]\n",
        platform=mode("service", "defaults: {namespaces: false}\n"),
    )

    assert waits(built) == {"apps-db": [], "apps-plain": ["apps-db"], "apps-web": ["apps-plain"]}
    release = only(built.files["apps/web/helmrelease.yaml"], "HelmRelease")["spec"]
    assert [one["name"] for one in release["dependsOn"]] == ["db", "x"]


def test_ready_expression_needs_two_releases(tmp_path: Path) -> None:
    built = made(
        tmp_path,
        chart("web", "dependsOn: [{name: plain, readyExpr: a}]\n"),
        f"name: plain\n{PLAIN}",
        platform=mode("service"),
    )

    assert codes(built) == ["R201"]


def test_kustomization_outlasts_the_slowest_release(tmp_path: Path) -> None:
    built = made(tmp_path, chart("web", "release: {timeout: 20m}\n"), chart("db"))

    assert flux(built)["apps"]["timeout"] == "25m"


@pytest.mark.parametrize(("root", "path"), [(".", "./apps"), ("clusters/home", "./clusters/home/apps")])
def test_paths_begin_at_the_top_of_the_repository(tmp_path: Path, root: str, path: str) -> None:
    built = made(tmp_path, chart("web"), platform=PLATFORM + f"root: {root}\n")

    assert flux(built)["apps"]["path"] == path


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{kind: OCIRepository, name: tree}", {"kind": "OCIRepository", "name": "tree"}),
        (
            "{name: tree, namespace: infra}",
            {"kind": "GitRepository", "name": "tree", "namespace": "infra"},
        ),
        ("{namespace: flux-system}", {"kind": "GitRepository", "name": "flux-system"}),
    ],
)
def test_kustomizations_read_the_clusters_source(tmp_path: Path, source: str, expected: dict[str, str]) -> None:
    built = made(tmp_path, chart("web"), platform=PLATFORM.replace('"2.9"', f'"2.9"\n  source: {source}'))

    assert flux(built)["apps"]["sourceRef"] == expected


def test_declared_variables_are_filled_by_flux(tmp_path: Path) -> None:
    built = made(tmp_path, chart("web"), platform=PLATFORM + "defaults: {substitute: [DOMAIN]}\n")

    assert flux(built)["apps"]["postBuild"] == {
        "substituteFrom": [
            {"kind": "ConfigMap", "name": "cluster-settings", "optional": True},
            {"kind": "Secret", "name": "cluster-secrets", "optional": True},
        ]
    }


def test_many_services_in_one_kustomization_are_warned_of(tmp_path: Path) -> None:
    texts = ["---\n".join(chart(f"s{number}") for number in range(151))]

    assert codes(made(tmp_path / "all", *texts)) == ["R501"]
    assert codes(made(tmp_path / "namespace", *texts, platform=mode("namespace"))) == []
    assert codes(made(tmp_path / "fewer", texts[0].replace("name: s0\n", "name: s0\nenabled: false\n"))) == []


# The image update automation

ENABLED = "imageAutomation: {enabled: true, author: {email: bot@example.org}%s}\n"


def test_automation_is_off_unless_enabled_and_policies_are_rendered_either_way(tmp_path: Path) -> None:
    text = chart("web", "update: {range: 1.x}\n").replace("{chart:", "{image: 'a/b:1.0.0', chart:")

    kinds = {one["kind"] for one in objects(made(tmp_path, text))}

    assert "ImagePolicy" in kinds
    assert "ImageUpdateAutomation" not in kinds


def test_automation_is_named_as_the_cluster_and_updates_apps(tmp_path: Path) -> None:
    built = made(tmp_path, chart("web"), platform=PLATFORM + "root: clusters/test\n" + ENABLED % "")

    found = only(built, "ImageUpdateAutomation")
    assert found["metadata"] == {"name": "test", "namespace": "flux-system"}
    spec = found["spec"]
    message = spec["git"]["commit"].pop("messageTemplate")
    assert spec == {
        "interval": "30m",
        "sourceRef": {"kind": "GitRepository", "name": "flux-system"},
        "git": {
            "checkout": {"ref": {"branch": "main"}},
            "commit": {"author": {"name": "fluxcdbot", "email": "bot@example.org"}},
            "push": {"branch": "main"},
        },
        "update": {"strategy": "Setters", "path": "./clusters/test/apps"},
    }
    assert ".Changed" in message
    assert ".Updated" not in message
    assert listed(built, "platform/image-automation/kustomization.yaml") == ["image-update-automation.yaml"]
    assert flux(built)["platform-image-automation"]["path"] == "./clusters/test/platform/image-automation"


def test_automation_covers_the_whole_tree_when_configs_hold_markers(tmp_path: Path) -> None:
    cluster = "{apiVersion: postgresql.cnpg.io/v1, kind: Cluster, metadata: {name: pg}, spec: {}}"
    image = "{ref: 'a/b:1.0.0', at: 'extraObjects[0].spec.imageName', shape: string}"
    text = f"name: web\nsource: {{image: {image}}}\nupdate: {{range: 1.x}}\nextraObjects: [{cluster}]\n"

    built = made(tmp_path, text, platform=PLATFORM + "root: clusters/test\n" + ENABLED % "")

    assert only(built, "ImageUpdateAutomation")["spec"]["update"]["path"] == "./clusters/test"


def test_settings_of_the_automation_are_carried(tmp_path: Path) -> None:
    more = (
        ", interval: 5m, branch: prod, pushBranch: bot, messageTemplate: 'update {{ .Changed.Objects }}', "
        "signingKey: {secretRef: {name: key}}, policySelector: {matchLabels: {a: b}}"
    )

    spec = only(made(tmp_path, chart("web"), platform=PLATFORM + ENABLED % more), "ImageUpdateAutomation")["spec"]

    assert spec["interval"] == "5m"
    assert spec["git"]["checkout"]["ref"]["branch"] == "prod"
    assert spec["git"]["push"]["branch"] == "bot"
    assert spec["git"]["commit"]["messageTemplate"] == "update {{ .Changed.Objects }}"
    assert spec["git"]["commit"]["signingKey"] == {"secretRef": {"name": "key"}}
    assert spec["policySelector"] == {"matchLabels": {"a": "b"}}


def test_policies_get_the_labels_by_which_the_bot_selects_them(tmp_path: Path) -> None:
    text = chart("web", "labels: {c: d}\n").replace("{chart:", "{image: 'a/b:1.0.0', chart:")
    update = "update: {range: 1.x}\n"
    cluster = PLATFORM + ENABLED % ", policySelector: {matchLabels: {bot: home}}"
    exists = cluster.replace("matchLabels: {bot: home}", "matchExpressions: [{key: bot, operator: Exists}]")

    built = made(tmp_path / "a", text + update, platform=cluster)

    assert not built.diagnostics
    assert only(built, "ImagePolicy")["metadata"]["labels"] == {"c": "d", "bot": "home"}
    assert only(built, "ImageRepository")["metadata"]["labels"] == {"c": "d"}
    assert [fault.code for fault in made(tmp_path / "b", text + update, platform=exists).diagnostics] == ["R708"]
    assert not made(tmp_path / "c", text.replace("c: d", "bot: x") + update, platform=exists).diagnostics
    assert not made(tmp_path / "d", text, platform=exists).diagnostics


def test_secret_file_is_listed_and_must_exist(tmp_path: Path) -> None:
    made_ = project(
        tmp_path,
        {"catalog/web.yaml": chart("web"), "platform.yaml": PLATFORM + ENABLED % ", secretFile: git.sops.yaml"},
    )

    assert listed(made_.build(), "platform/image-automation/kustomization.yaml") == [
        "image-update-automation.yaml",
        "git.sops.yaml",
    ]
    assert "error[R507]" in made_.run("build").err


def test_without_image_automation_nothing_of_it_is_left(tmp_path: Path) -> None:
    text = chart("web", "update: {range: 1.x}\n").replace("{chart:", "{image: 'a/b:1.0.0', chart:")
    platform = PLATFORM + ENABLED % ", secretFile: git.sops.yaml"

    built = made(tmp_path, text, platform=platform, automation=False)

    assert not [path for path in built.files if "automation" in path]
    assert not [one for one in objects(built) if one["kind"].startswith("Image")]
    assert "automation" not in built.files["flux/kustomizations.yaml"]
    assert built.foreign == []
    assert "image-automation.yaml" not in listed(built, "apps/web/kustomization.yaml")


# One input, one output


@pytest.mark.parametrize("seed", range(4))
def test_output_does_not_depend_on_how_definitions_are_spread_over_files(tmp_path: Path, seed: int) -> None:
    texts = [
        chart("web", "dependsOn: [db]\nnamespace: shop\n"),
        chart("db"),
        f"name: plain\n{PLAIN}",
        f"name: own\nextraObjects: [{FOREIGN}]\n",
    ]
    shuffled = random.Random(seed).sample(texts, len(texts))
    expected = project(tmp_path / "one", {"catalog/all.yaml": "---\n".join(texts)}).build().files
    again = project(tmp_path / "other", {"catalog/all.yaml": "---\n".join(shuffled)}).build().files

    assert expected
    assert again == expected


def test_every_file_is_headed_and_its_digest_fits(tmp_path: Path) -> None:
    from render.build import HEADER, digest_of

    built = made(tmp_path, chart("web"), f"name: own\nextraObjects: [{FOREIGN}]\n", platform=PLATFORM + ENABLED % "")

    for text in built.files.values():
        first, _, body = text.partition("\n")
        match = HEADER.match(first)
        assert match is not None
        assert match["digest"] == digest_of(body)
        assert list(yaml.safe_load_all(body))


def test_header_names_the_catalog_folder_and_the_path_in_it(tmp_path: Path) -> None:
    (tmp_path / "services/apps").mkdir(parents=True)
    (tmp_path / "services/apps/web.yaml").write_text(chart("web"))
    (tmp_path / "platform.yaml").write_text(PLATFORM)

    built = build(tmp_path / "services", tmp_path / "platform.yaml")

    label = built.files["apps/web/helmrelease.yaml"].partition(";")[0]
    assert label == "# Generated by render from services/apps/web.yaml"
    assert built.files["apps/kustomization.yaml"].startswith("# Generated by render from services; do not edit.")


# The image update automation


def bot(built: Build) -> dict[str, Any]:
    assert not built.failed, told(built)
    path = "platform/image-automation/image-update-automation.yaml"
    found: dict[str, Any] = only(built.files[path], "ImageUpdateAutomation")["spec"]
    return found


def with_bot(more: str = "", platform: str = PLATFORM) -> str:
    return f"{platform}imageAutomation:\n  enabled: true\n  author: {{email: bot@example.org}}\n{more}"


def test_bot_pushes_where_the_platform_says(tmp_path: Path) -> None:
    plain = bot(made(tmp_path / "a", chart("web"), platform=with_bot()))
    more = (
        "  pushBranch: auto\n  pushRefspec: 'refs/heads/auto:refs/heads/review'\n"
        "  pushOptions: {merge_request.create: '', merge_request.target: main}\n"
    )
    full = bot(made(tmp_path / "b", chart("web"), platform=with_bot(more)))

    assert plain["git"]["push"] == {"branch": "main"}
    assert full["git"]["push"] == {
        "branch": "auto",
        "refspec": "refs/heads/auto:refs/heads/review",
        "options": {"merge_request.create": "", "merge_request.target": "main"},
    }


@given(st.text(st.characters(exclude_categories=("Cs", "Cc")) | st.sampled_from("\n\t $"), min_size=1), st.booleans())
def test_message_survives_byte_for_byte(text: str, substituted: bool) -> None:
    message = "{{ range $o, $c := .Changed.Objects }}" + text.replace("{", "{ ") + "{{ end }}$${ x $"
    platform = with_bot(f"  messageTemplate: {double_quoted(message)}\n")
    platform += "defaults: {substitute: [DOMAIN]}\n" if substituted else ""
    with tempfile.TemporaryDirectory() as folder:
        found = bot(made(Path(folder), chart("web"), platform=platform))

    told_ = found["git"]["commit"]["messageTemplate"]
    if substituted:
        assert variables(told_) == []
        told_ = told_.replace("$$", "$")
    assert told_ == message


def test_timeout_is_longer_than_that_of_any_operation(tmp_path: Path) -> None:
    text = chart("web", "release: {timeout: 7m, upgrade: {timeout: 40m}, rollback: {timeout: 1m}}\n")

    assert flux(made(tmp_path / "release", text))["apps"]["timeout"] == "45m"
    # A plain Deployment has ten minutes to become ready.
    assert flux(made(tmp_path / "plain", f"name: plain\n{PLAIN}"))["apps"]["timeout"] == "15m"


MARKED = chart("web").replace("}\n", '} # {"$imagepolicy": "flux-system:web"}\n', 1)


@pytest.mark.parametrize(
    ("text", "platform", "automation", "expected"),
    [
        (MARKED, with_bot(), True, ["R218"]),
        (MARKED, with_bot(), False, []),
        (MARKED, PLATFORM, True, []),
        (chart("web", '# the marker would be {"$imagepolicy"\n'), with_bot(), True, []),
    ],
    ids=["bot", "no image automation", "no bot", "no marker"],
)
def test_marker_in_the_catalog_that_the_bot_does_not_read_is_warned_of(
    tmp_path: Path, text: str, platform: str, automation: bool, expected: list[str]
) -> None:
    built = made(tmp_path, text, platform=platform, automation=automation)

    assert codes(built) == expected
    assert not built.failed


def test_marker_in_a_catalog_that_the_bot_reads_is_left_alone(tmp_path: Path) -> None:
    widget = "{apiVersion: example.org/v1, kind: Widget, metadata: {name: w}, spec: {imageName: ''}}"
    at = "extraObjects[kind=Widget,name=w].spec.imageName"
    image = f"{{image: {{ref: 'a.example/b:1.0.0', at: '{at}', shape: string}}, chart:"
    text = MARKED.replace("{chart:", image) + f"update: {{range: 1.x}}\nextraObjects: [{widget}]\n"

    built = made(tmp_path, text, platform=with_bot())

    assert bot(built)["update"]["path"] == "./"
    assert codes(built) == []
