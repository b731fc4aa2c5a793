from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from render.build import Build
from tests.project import PLATFORM, objects, only, project, told

IMAGE = "name: web\nsource: {image: 'ghcr.io/example/web:1.2.3'}\n"
PROBE = "probes: {readiness: {tcpSocket: {port: 80}}}"
CORP = PLATFORM.replace(" []", "\n  - {name: ghcr.io/example/web, newName: registry.corp.example/web}")


def made(folder: Path, workload: str, more: str = "", platform: str = PLATFORM, *, automation: bool = True) -> Build:
    """Return the build of a plain workload, its fields in flow YAML."""
    text = f"{IMAGE}workload: {{{workload}}}\n{more}"
    return project(folder, {"catalog/web.yaml": text, "platform.yaml": platform}).build(automation=automation)


def deployment(folder: Path, workload: str, more: str = "") -> Any:
    built = made(folder, workload, more)
    assert not built.failed, told(built)
    return only(built, "Deployment")


def pod(folder: Path, workload: str) -> Any:
    return deployment(folder, workload)["spec"]["template"]["spec"]


def container(folder: Path, workload: str) -> Any:
    (one,) = pod(folder, workload)["containers"]
    return one


def codes(built: Build) -> list[str]:
    return [fault.code for fault in built.diagnostics]


def test_workload_that_says_nothing_is_one_pod(tmp_path: Path) -> None:
    assert deployment(tmp_path, "") == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "web", "labels": {"app.kubernetes.io/name": "web"}},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app.kubernetes.io/name": "web"}},
            "template": {
                "metadata": {"labels": {"app.kubernetes.io/name": "web"}},
                "spec": {"containers": [{"name": "web", "image": "ghcr.io/example/web:1.2.3"}]},
            },
        },
    }


def test_every_field_is_rendered_in_the_order_of_kubernetes(tmp_path: Path) -> None:
    found = deployment(
        tmp_path,
        "replicas: 0, command: [serve], args: ['--port', '80'], env: {A: b}, envFrom: [{secretRef: {name: web}}], "
        "ports: [{name: http, containerPort: 8080}], "
        "probes: {readiness: {tcpSocket: {port: 1}}, liveness: {exec: {command: [a]}}, startup: {grpc: {port: 3}}}, "
        "resources: {limits: {memory: 64Mi}}, volumes: [{name: tmp, mountPath: /tmp, emptyDir: {}}], "
        "securityContext: {runAsNonRoot: true}, podSecurityContext: {fsGroup: 100}, serviceAccountName: web, "
        "strategy: {type: Recreate}",
    )

    spec = found["spec"]
    assert list(spec) == ["replicas", "strategy", "selector", "template"]
    assert (spec["replicas"], spec["strategy"]) == (0, {"type": "Recreate"})
    inner = spec["template"]["spec"]
    assert list(inner) == ["serviceAccountName", "securityContext", "containers", "volumes"]
    assert (inner["serviceAccountName"], inner["securityContext"]) == ("web", {"fsGroup": 100})
    assert list(inner["containers"][0].items()) == [
        ("name", "web"),
        ("image", "ghcr.io/example/web:1.2.3"),
        ("command", ["serve"]),
        ("args", ["--port", "80"]),
        ("env", [{"name": "A", "value": "b"}]),
        ("envFrom", [{"secretRef": {"name": "web"}}]),
        ("ports", [{"name": "http", "containerPort": 8080, "protocol": "TCP"}]),
        ("startupProbe", {"grpc": {"port": 3}}),
        ("readinessProbe", {"tcpSocket": {"port": 1}}),
        ("livenessProbe", {"exec": {"command": ["a"]}}),
        ("resources", {"limits": {"memory": "64Mi"}}),
        ("volumeMounts", [{"name": "tmp", "mountPath": "/tmp"}]),
        ("securityContext", {"runAsNonRoot": True}),
    ]


def test_environment_keeps_its_order_and_its_spelling(tmp_path: Path) -> None:
    built = made(
        tmp_path, """env: {ZED: 'yes', ALPHA: "0644", FROM: {valueFrom: {fieldRef: {fieldPath: metadata.name}}}}"""
    )

    assert built.files["apps/web/workload.yaml"].partition("        env:\n")[2] == (
        "        - name: ZED\n"
        "          value: 'yes'\n"
        "        - name: ALPHA\n"
        '          value: "0644"\n'
        "        - name: FROM\n"
        "          valueFrom:\n"
        "            fieldRef:\n"
        "              fieldPath: metadata.name\n"
    )


@pytest.mark.parametrize("value", ["8080", "yes", "1e3", "0644", "1.20", "2024-07-01", "[a]", "{value: a}"])
def test_environment_values_are_strings(tmp_path: Path, value: str) -> None:
    built = made(tmp_path, f"env: {{A: {value}}}")

    assert built.failed
    assert codes(built)[-1] in ("R101", "R103")


def test_labels_join_the_selectors_label_and_stay_out_of_the_selector(tmp_path: Path) -> None:
    found = deployment(tmp_path, "", "labels: {team: shop}\nannotations: {owner: me}\n")

    assert found["metadata"]["labels"] == {"app.kubernetes.io/name": "web", "team": "shop"}
    assert found["metadata"]["annotations"] == {"owner": "me"}
    assert found["spec"]["selector"]["matchLabels"] == {"app.kubernetes.io/name": "web"}


def test_selector_names_the_service_and_objects_their_own_name(tmp_path: Path) -> None:
    found = deployment(tmp_path, "", "objectName: shop\nnamespace: apps\n")

    assert (found["metadata"]["name"], found["metadata"]["namespace"]) == ("shop", "apps")
    assert found["spec"]["selector"]["matchLabels"] == {"app.kubernetes.io/name": "web"}


# Ports and the Service


def test_no_ports_make_no_service(tmp_path: Path) -> None:
    assert {one["kind"] for one in objects(made(tmp_path, ""))} >= {"Deployment"}
    assert "Service" not in {one["kind"] for one in objects(made(tmp_path, ""))}


def test_service_leads_to_the_ports_of_the_pod_by_name(tmp_path: Path) -> None:
    ports = "{name: http, containerPort: 8080, port: 80}, {name: dns, containerPort: 53, protocol: UDP}"

    built = made(tmp_path, f"ports: [{ports}]")

    found = only(built, "Service")
    assert found["metadata"] == {"name": "web", "namespace": "web", "labels": {"app.kubernetes.io/name": "web"}}
    assert found["spec"] == {
        "selector": {"app.kubernetes.io/name": "web"},
        "ports": [
            {"name": "http", "port": 80, "targetPort": "http", "protocol": "TCP"},
            {"name": "dns", "port": 53, "targetPort": "dns", "protocol": "UDP"},
        ],
    }
    assert only(built, "Deployment")["spec"]["template"]["spec"]["containers"][0]["ports"] == [
        {"name": "http", "containerPort": 8080, "protocol": "TCP"},
        {"name": "dns", "containerPort": 53, "protocol": "UDP"},
    ]


def test_service_has_type_and_annotations_of_its_own(tmp_path: Path) -> None:
    workload = "ports: [{name: http, containerPort: 80}], service: {type: LoadBalancer, annotations: {pool: lan}}"

    built = made(tmp_path, workload, "annotations: {owner: me}\n")

    found = only(built, "Service")
    assert found["spec"]["type"] == "LoadBalancer"
    assert found["metadata"]["annotations"] == {"owner": "me", "pool": "lan"}
    assert only(built, "Deployment")["metadata"]["annotations"] == {"owner": "me"}


@pytest.mark.parametrize(
    "port",
    [
        "{containerPort: 80}",
        "{name: http}",
        "{name: http, containerPort: 0}",
        "{name: http, containerPort: 65536}",
        "{name: http, containerPort: '80'}",
        "{name: http, containerPort: 80, protocol: tcp}",
        "{name: HTTP, containerPort: 80}",
        "{name: a-name-of-more-than-15, containerPort: 80}",
    ],
)
def test_port_that_kubernetes_would_refuse_is_refused(tmp_path: Path, port: str) -> None:
    assert made(tmp_path, f"ports: [{port}]").failed


# Volumes


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("emptyDir: {}", {"emptyDir": {}}),
        ("emptyDir: {medium: Memory}", {"emptyDir": {"medium": "Memory"}}),
        ("configMap: {name: c}", {"configMap": {"name": "c"}}),
        ("secret: {secretName: s}", {"secret": {"secretName": "s"}}),
        ("hostPath: {path: /dev}", {"hostPath": {"path": "/dev"}}),
        ("nfs: {server: nas, path: /x}", {"nfs": {"server": "nas", "path": "/x"}}),
        ("existingClaim: mine", {"persistentVolumeClaim": {"claimName": "mine"}}),
        (
            "claim: {resources: {requests: {storage: 1Gi}}}",
            {"persistentVolumeClaim": {"claimName": "web-data"}},
        ),
    ],
)
def test_volume_of_each_kind_is_mounted(tmp_path: Path, source: str, expected: dict[str, Any]) -> None:
    found = pod(tmp_path, f"volumes: [{{name: data, mountPath: /data, subPath: a, readOnly: true, {source}}}]")

    assert found["volumes"] == [{"name": "data", **expected}]
    assert found["containers"][0]["volumeMounts"] == [
        {"name": "data", "mountPath": "/data", "subPath": "a", "readOnly": True}
    ]


def test_claim_is_rendered_for_one_pod_unless_it_says_otherwise(tmp_path: Path) -> None:
    claims = (
        "volumes: [{name: a, mountPath: /a, claim: {resources: {requests: {storage: 1Gi}}}}, "
        "{name: b, mountPath: /b, claim: {accessModes: [ReadWriteMany], storageClassName: nfs, "
        "resources: {requests: {storage: 2Gi}}}}]"
    )

    built = made(tmp_path, claims, "objectName: shop\n")

    found = {one["metadata"]["name"]: one["spec"] for one in objects(built) if one["kind"] == "PersistentVolumeClaim"}
    assert found == {
        "shop-a": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        "shop-b": {
            "accessModes": ["ReadWriteMany"],
            "storageClassName": "nfs",
            "resources": {"requests": {"storage": "2Gi"}},
        },
    }


@pytest.mark.parametrize(
    ("annotations", "expected"), [("owner: me", "disabled"), ("kustomize.toolkit.fluxcd.io/prune: enabled", "enabled")]
)
def test_claim_outlives_its_service_unless_that_says_otherwise(tmp_path: Path, annotations: str, expected: str) -> None:
    claim = "volumes: [{name: a, mountPath: /a, claim: {resources: {requests: {storage: 1Gi}}}}]"

    built = made(tmp_path, claim, f"annotations: {{{annotations}}}\n")

    found = only(built, "PersistentVolumeClaim")["metadata"]["annotations"]
    assert found["kustomize.toolkit.fluxcd.io/prune"] == expected
    assert annotations.partition(":")[0] in only(built, "Deployment")["metadata"]["annotations"]


def test_claim_template_makes_a_stateful_set(tmp_path: Path) -> None:
    workload = (
        "replicas: 2, strategy: {type: OnDelete}, ports: [{name: http, containerPort: 80}], volumes: ["
        "{name: data, mountPath: /data, claimTemplate: {resources: {requests: {storage: 1Gi}}}}, "
        "{name: tmp, mountPath: /tmp, emptyDir: {}}]"
    )

    built = made(tmp_path, workload)

    assert not built.failed, told(built)
    assert "Deployment" not in {one["kind"] for one in objects(built)}
    spec = only(built, "StatefulSet")["spec"]
    assert list(spec) == ["replicas", "serviceName", "updateStrategy", "selector", "template", "volumeClaimTemplates"]
    assert (spec["replicas"], spec["serviceName"], spec["updateStrategy"]) == (2, "web", {"type": "OnDelete"})
    assert spec["volumeClaimTemplates"] == [
        {
            "metadata": {"name": "data"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        }
    ]
    inner = spec["template"]["spec"]
    assert inner["volumes"] == [{"name": "tmp", "emptyDir": {}}]
    assert [mount["name"] for mount in inner["containers"][0]["volumeMounts"]] == ["data", "tmp"]


@pytest.mark.parametrize(
    "volume",
    [
        "{name: a, mountPath: /a}",
        "{name: a, mountPath: /a, emptyDir: {}, existingClaim: b}",
        "{name: a, mountPath: /a, claim: {}}",
        "{name: a, mountPath: /a, claim: {resources: {limits: {storage: 1Gi}}}}",
        "{name: a, mountPath: /a, claimTemplate: {storageClassName: fast}}",
    ],
)
def test_volume_that_cannot_be_is_refused(tmp_path: Path, volume: str) -> None:
    assert codes(made(tmp_path, f"volumes: [{volume}]")) == ["R405"]


@pytest.mark.parametrize(
    ("workload", "expected"),
    [
        (
            "volumes: [{name: a, mountPath: /a, emptyDir: {}}, {name: a, mountPath: /b, hostPath: {path: /dev}}]",
            "R104 `workload.volumes[1].name` must differ from the others, and `a` is taken",
        ),
        (
            "volumes: [{name: a, mountPath: /a, emptyDir: {}}, {name: b, mountPath: /a, emptyDir: {}}]",
            "R104 `workload.volumes[1].mountPath` must differ from the others, and `/a` is taken",
        ),
        (
            "ports: [{name: a, containerPort: 1}, {name: a, containerPort: 2}]",
            "R104 `workload.ports[1].name` must differ from the others, and `a` is taken",
        ),
        (
            "ports: [{name: a, containerPort: 1, port: 80}, {name: b, containerPort: 80}]",
            "R104 `workload.ports[1].port` must differ from the others, and `80/TCP` is taken",
        ),
    ],
)
def test_what_must_differ_is_told_at_the_second(tmp_path: Path, workload: str, expected: str) -> None:
    (fault,) = made(tmp_path, workload).diagnostics

    assert f"{fault.code} {fault.message}" == expected
    assert len(fault.related) == 1


def test_one_port_of_two_protocols_is_taken(tmp_path: Path) -> None:
    ports = "{name: dns, containerPort: 53}, {name: dns-udp, containerPort: 53, protocol: UDP}"

    assert codes(made(tmp_path, f"ports: [{ports}]")) == []


# The parts in Kubernetes' form


@pytest.mark.parametrize(
    ("workload", "expected"),
    [
        (
            "probes:\n    readiness:\n      tcpSocket: {port: 1}\n      initialDelaySecond: 5",
            "R101 catalog/web.yaml:7:7 unknown field `initialDelaySecond` in `workload.probes.readiness`",
        ),
        (
            "probes:\n    liveness:\n      httpGet: {path: /}",
            "R102 catalog/web.yaml:6:7 `workload.probes.liveness.httpGet` needs the field `port`",
        ),
        (
            "probes:\n    startup: {periodSeconds: 1}",
            "R102 catalog/web.yaml:5:5 `workload.probes.startup` must have exactly one form, and has none",
        ),
        (
            "probes:\n    startup:\n      tcpSocket: {port: 1}\n      grpc: {port: 1}",
            (
                "R104 catalog/web.yaml:7:7 `workload.probes.startup` must have exactly one form,"
                " and has `tcpSocket` and `grpc`"
            ),
        ),
        (
            "resources:\n    limit: {memory: 64Mi}",
            "R101 catalog/web.yaml:5:5 unknown field `limit` in `workload.resources`",
        ),
        (
            "securityContext:\n    runAsUser: root",
            "R103 catalog/web.yaml:5:16 `workload.securityContext.runAsUser` must be an integer, not the text `root`",
        ),
        (
            "podSecurityContext:\n    fsgroup: 100",
            "R101 catalog/web.yaml:5:5 unknown field `fsgroup` in `workload.podSecurityContext`",
        ),
        ("strategy:\n    typ: Recreate", "R101 catalog/web.yaml:5:5 unknown field `typ` in `workload.strategy`"),
        (
            "strategy:\n    type: OnDelete",
            "R104 catalog/web.yaml:5:11 `workload.strategy.type` must be `RollingUpdate` or `Recreate`, not `OnDelete`",
        ),
        (
            "strategy:\n    type: Recreate\n    rollingUpdate: {maxSurge: 1}",
            "R104 catalog/web.yaml:6:5 `workload.strategy.rollingUpdate` does not go with the type `Recreate`",
        ),
        (
            "env:\n    A: {valueFrom: {secretKeyRef: {name: a}}}",
            "R102 catalog/web.yaml:5:21 `workload.env.A.valueFrom.secretKeyRef` needs the field `key`",
        ),
        (
            "env:\n    A: {valueFrom: {}}",
            "R102 catalog/web.yaml:5:9 `workload.env.A.valueFrom` must have exactly one form, and has none",
        ),
        (
            "envFrom:\n  - {prefix: A_}",
            "R102 catalog/web.yaml:5:5 `workload.envFrom[0]` must have exactly one form, and has none",
        ),
        (
            "volumes:\n  - {name: a, mountPath: /a, secret: {name: a}}",
            "R101 catalog/web.yaml:5:39 unknown field `name` in `workload.volumes[0].secret`",
        ),
        (
            "volumes:\n  - {name: a, mountPath: /a, claim: {storageClass: a}}",
            "R101 catalog/web.yaml:5:38 unknown field `storageClass` in `workload.volumes[0].claim`",
        ),
    ],
)
def test_part_in_the_form_of_kubernetes_is_checked(tmp_path: Path, workload: str, expected: str) -> None:
    text = f"name: web\nsource: {{image: 'ghcr.io/example/web:1.2.3'}}\nworkload:\n  {workload}\n"

    assert told(project(tmp_path, {"catalog/web.yaml": text}).build()) == [expected]


def test_strategy_of_a_stateful_set_is_its_own(tmp_path: Path) -> None:
    volume = "volumes: [{name: a, mountPath: /a, claimTemplate: {resources: {requests: {storage: 1Gi}}}}]"

    assert codes(made(tmp_path / "a", f"{volume}, strategy: {{rollingUpdate: {{partition: 1}}}}")) == []
    assert codes(made(tmp_path / "b", f"{volume}, strategy: {{rollingUpdate: {{maxSurge: 1}}}}")) == ["R101"]
    assert codes(made(tmp_path / "c", f"{volume}, strategy: {{type: Recreate}}")) == ["R104"]


def test_image_that_is_none_hides_no_fault_of_the_workload(tmp_path: Path) -> None:
    text = "name: web\nsource: {image: 'https://a/web'}\nworkload: {volumes: [{name: a, mountPath: /a}]}\n"

    assert sorted(codes(project(tmp_path, {"catalog/web.yaml": text}).build())) == ["R205", "R405"]


# The image


def test_image_is_one_scalar_under_the_whole_image_marker(tmp_path: Path) -> None:
    built = made(tmp_path, PROBE, "update: {range: 1.x}\n")

    marked = '        image: "ghcr.io/example/web:1.2.3" # {"$imagepolicy": "flux-system:web"}\n'
    assert marked in built.files["apps/web/workload.yaml"]
    assert built.files["apps/web/kustomization.yaml"].endswith("- image-automation.yaml\n- workload.yaml\n")


def test_table_is_applied_when_rendering(tmp_path: Path) -> None:
    built = made(tmp_path, PROBE, "update: {range: 1.x}\n", CORP)

    assert codes(built) == []
    assert only(built, "Deployment")["spec"]["template"]["spec"]["containers"][0]["image"] == (
        "registry.corp.example/web:1.2.3"
    )
    assert only(built, "ImageRepository")["spec"]["image"] == "registry.corp.example/web"
    assert "images:" not in "".join(text for path, text in built.files.items() if path.endswith("kustomization.yaml"))


@pytest.mark.parametrize(
    ("mode", "image"), [("none", "ghcr.io/example/web:1.2.3"), ("declared", "registry.corp.example/web:1.2.3")]
)
def test_mode_of_the_overrides_holds_for_workloads_too(tmp_path: Path, mode: str, image: str) -> None:
    built = made(tmp_path, "", f"imageOverrides: {mode}\n", CORP)

    assert only(built, "Deployment")["spec"]["template"]["spec"]["containers"][0]["image"] == image


def test_pinned_image_has_no_marker(tmp_path: Path) -> None:
    built = made(tmp_path, PROBE, "update: {pin: 1.2.0}\n")

    assert '        image: "ghcr.io/example/web:1.2.0"\n' in built.files["apps/web/workload.yaml"]


def test_workload_without_an_image_is_refused(tmp_path: Path) -> None:
    built = project(tmp_path, {"catalog/web.yaml": "name: web\nworkload: {}\n"}).build()

    assert codes(built) == ["R207"]


@pytest.mark.parametrize(
    "field",
    [
        "values: {a: 1}",
        "valuesFrom: [{kind: Secret, name: a}]",
        "release: {suspend: true}",
        "postRenderers: [{kustomize: {}}]",
    ],
)
def test_fields_of_a_release_need_a_chart(tmp_path: Path, field: str) -> None:
    assert codes(made(tmp_path, "", field + "\n")) == ["R212"]


def test_chart_and_workload_exclude_each_other(tmp_path: Path) -> None:
    text = "name: web\nsource: {chart: {url: 'oci://a.example/b', version: '1.0.0'}}\nworkload: {}\n"

    assert codes(project(tmp_path, {"catalog/web.yaml": text}).build()) == ["R212"]


# The automatic rollback


def test_update_sets_the_deadline_of_the_rollout(tmp_path: Path) -> None:
    assert (
        only(made(tmp_path / "a", PROBE, "update: {range: 1.x}\n"), "Deployment")["spec"]["progressDeadlineSeconds"]
        == 600
    )
    assert "progressDeadlineSeconds" not in deployment(tmp_path / "b", PROBE)["spec"]


DECLINED = "update: {range: 1.x, autoRollbackOnFailedHealth: false}\n"
STATEFUL = (
    f"{PROBE}, volumes: [{{name: a, mountPath: /a, claimTemplate: {{resources: {{requests: {{storage: 1Gi}}}}}}}}]"
)


@pytest.mark.parametrize(
    "workload", ["", "probes: {liveness: {grpc: {port: 1}}}", f"{PROBE}, strategy: {{type: Recreate}}", STATEFUL]
)
def test_rollback_needs_an_old_pod_and_a_probe(tmp_path: Path, workload: str) -> None:
    assert codes(made(tmp_path / "a", workload, "update: {range: 1.x}\n")) == ["R403"]
    assert codes(made(tmp_path / "b", workload, DECLINED)) == []


@pytest.mark.parametrize("strategy", ["{type: RollingUpdate}", "{rollingUpdate: {maxSurge: 1}}", "{}"])
def test_rolling_update_keeps_the_old_pod(tmp_path: Path, strategy: str) -> None:
    assert codes(made(tmp_path, f"{PROBE}, strategy: {strategy}", "update: {range: 1.x}\n")) == []
