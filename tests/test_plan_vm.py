"""Virtual machines and what their guests are given."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from render.build import Build
from render.flux.api_kubevirt import INSTANCE_SPEC, OWN_FIELDS
from render.model import schema
from render.plan.cloudinit import is_public_key
from render.plan.fluxtree import MACHINE_HEALTH
from render.plan.guest import FAMILIES, reboots
from render.plan.vm import INLINE
from render.plan.vm_parts import size_of
from tests import kubevirt
from tests.hostile import TELLING, texts
from tests.project import PLATFORM, objects, only, project, told
from tests.readings import KYAML, SIGS, documents
from tests.services import document, machines
from tests.sound import built, check, examples
from tests.trees import GOLDENS, golden_files

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEmT5DtkVx1S9Yx5cTxdRQmXQhcGjo5Kt9b1a8E2T6Ck"
IMAGE = "quay.io/containerdisks/debian:13"
CORP = PLATFORM.replace(" []", "\n  - {name: quay.io/containerdisks/debian, newName: registry.corp.example/debian}")
LABEL = {"app.kubernetes.io/name": "desk"}
MEMORY = {"memory": "2Gi"}


def made(folder: Path, vm: dict[str, Any], platform: str = PLATFORM, *, automation: bool = True, **more: Any) -> Build:
    """Return the build of a machine of one image."""
    definition = {"name": "desk", "kind": "vm", "source": {"image": IMAGE}, "vm": {**MEMORY, **vm}, **more}
    files = {"catalog/desk.yaml": document(definition), "platform.yaml": platform}
    return project(folder, files).build(automation=automation)


def machine(folder: Path, vm: dict[str, Any], platform: str = PLATFORM, **more: Any) -> Any:
    built = made(folder, vm, platform, **more)
    assert not built.failed, told(built)
    return only(built, "VirtualMachine")


def instance(folder: Path, vm: dict[str, Any], platform: str = PLATFORM, **more: Any) -> Any:
    return machine(folder, vm, platform, **more)["spec"]["template"]["spec"]


def volume(folder: Path, disk: dict[str, Any], platform: str = PLATFORM, **more: Any) -> Any:
    """Return the volume of a second disk."""
    disks = [{"name": "root", "image": "main"}, {"name": "data", **disk}]
    (_, found) = instance(folder, {"disks": disks}, platform, **more)["volumes"]
    assert found.pop("name") == "data"
    return found


def guest_text(one: Any) -> str:
    """Return the user data of a machine, wherever it is."""
    machines = [each for each in one if each["kind"] == "VirtualMachine"]
    (source,) = [v["cloudInitNoCloud"] for v in machines[0]["spec"]["template"]["spec"]["volumes"][1:]]
    if "userData" in source:
        return str(source["userData"])
    (secret,) = [each for each in one if each["kind"] == "Secret"]
    assert source == {"secretRef": {"name": secret["metadata"]["name"]}}
    return str(secret["stringData"]["userdata"])


def guest(folder: Path, vm: dict[str, Any], platform: str = PLATFORM, **more: Any) -> Any:
    """Return the user data as cloud-init reads it."""
    built = made(folder, vm, platform, **more)
    assert not built.failed, told(built)
    text = guest_text(objects(built))
    assert text.startswith("#cloud-config\n")
    return yaml.safe_load(text)


def codes(built: Build) -> list[str]:
    return [fault.code for fault in built.diagnostics]


def test_machine_that_says_nothing_runs_from_its_image(tmp_path: Path) -> None:
    assert machine(tmp_path, {}) == {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": {"name": "desk", "namespace": "desk", "labels": LABEL},
        "spec": {
            "runStrategy": "Always",
            "template": {
                "metadata": {"labels": LABEL},
                "spec": {
                    "domain": {
                        "memory": {"guest": "2Gi"},
                        "devices": {
                            "disks": [{"name": "root", "disk": {"bus": "virtio"}}],
                            "interfaces": [{"name": "default", "masquerade": {}}],
                        },
                    },
                    "networks": [{"name": "default", "pod": {}}],
                    "volumes": [{"name": "root", "containerDisk": {"image": IMAGE}}],
                },
            },
        },
    }


def test_every_field_of_the_hardware_is_rendered(tmp_path: Path) -> None:
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{}]}}}
    vm = {
        "cpu": {"cores": 2, "sockets": 1, "threads": 2, "model": "host-model"},
        "machine": "q35",
        "architecture": "amd64",
        "firmware": {"bootloader": "efi", "secureBoot": True, "persistent": True},
        "runStrategy": "Halted",
        "evictionStrategy": "None",
        "terminationGracePeriodSeconds": 60,
        "hostname": "table",
        "nodeSelector": {"disk": "fast"},
        "affinity": affinity,
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
        "priorityClassName": "high",
    }
    found = machine(tmp_path, vm, objectName="shelf", namespace="vms", annotations={"note": "yes"})
    spec = found["spec"]["template"]["spec"]

    assert found["metadata"] == {
        "name": "shelf",
        "namespace": "vms",
        "labels": LABEL,
        "annotations": {"note": "yes"},
    }
    assert found["spec"]["runStrategy"] == "Halted"
    assert {key: spec[key] for key in spec if key not in ("domain", "networks", "volumes")} == {
        "architecture": "amd64",
        "hostname": "table",
        "evictionStrategy": "None",
        "terminationGracePeriodSeconds": 60,
        "priorityClassName": "high",
        "nodeSelector": {"disk": "fast"},
        "affinity": affinity,
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
    }
    domain = spec["domain"]
    assert domain["cpu"] == {"cores": 2, "sockets": 1, "threads": 2, "model": "host-model"}
    assert domain["machine"] == {"type": "q35"}
    assert domain["firmware"] == {"bootloader": {"efi": {"secureBoot": True, "persistent": True}}}
    assert domain["features"] == {"smm": {"enabled": True}}


@pytest.mark.parametrize(
    ("firmware", "expected"),
    [
        ({"bootloader": "efi"}, {"efi": {"secureBoot": False}}),
        ({"bootloader": "bios"}, {"bios": {}}),
        ({}, {"bios": {}}),
    ],
)
def test_secure_boot_is_off_unless_asked_for(tmp_path: Path, firmware: Any, expected: Any) -> None:
    domain = instance(tmp_path, {"firmware": firmware})["domain"]

    assert domain["firmware"] == {"bootloader": expected}
    assert "features" not in domain


DISKS: list[tuple[dict[str, Any], Any]] = [
    ({"existingClaim": "old"}, {"persistentVolumeClaim": {"claimName": "old"}}),
    ({"existingDataVolume": "old"}, {"dataVolume": {"name": "old"}}),
    ({"emptyDisk": "1Gi"}, {"emptyDisk": {"capacity": "1Gi"}}),
    ({"volume": {"configMap": {"name": "x"}}}, {"configMap": {"name": "x"}}),
    ({"claim": {"resources": {"requests": {"storage": "1Gi"}}}}, {"persistentVolumeClaim": {"claimName": "desk-data"}}),
    ({"dataVolume": {"size": "1Gi", "blank": True}}, {"dataVolume": {"name": "desk-data"}}),
    (
        {"image": "main", "pullSecret": "pull"},
        {"containerDisk": {"image": IMAGE, "imagePullSecret": "pull"}},
    ),
]


@pytest.mark.parametrize(("disk", "expected"), DISKS)
def test_disk_of_each_kind_has_its_volume(tmp_path: Path, disk: dict[str, Any], expected: Any) -> None:
    assert volume(tmp_path, disk) == expected


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ({"blank": True}, {"blank": {}}),
        ({"http": {"url": "https://x.example/a.qcow2"}}, {"http": {"url": "https://x.example/a.qcow2"}}),
        (
            {"http": {"url": "http://x.example/a.img", "secretRef": "s", "certConfigMap": "c"}},
            {"http": {"url": "http://x.example/a.img", "secretRef": "s", "certConfigMap": "c"}},
        ),
        ({"pvc": {"name": "golden"}}, {"pvc": {"name": "golden", "namespace": "desk"}}),
        ({"pvc": {"name": "golden", "namespace": "x"}}, {"pvc": {"name": "golden", "namespace": "x"}}),
        ({"registry": {"image": "main"}}, {"registry": {"url": f"docker://{IMAGE}"}}),
        (
            {"registry": {"image": "main", "pullMethod": "node", "secretRef": "s", "certConfigMap": "c"}},
            {
                "registry": {
                    "url": f"docker://{IMAGE}",
                    "pullMethod": "node",
                    "secretRef": "s",
                    "certConfigMap": "c",
                }
            },
        ),
    ],
)
def test_data_volume_is_filled_from_its_source(tmp_path: Path, content: Any, expected: Any) -> None:
    disk = {"name": "root", "dataVolume": {"size": "20Gi", **content}}
    more = {} if "registry" in content else {"source": {}}
    (template,) = machine(tmp_path, {"disks": [disk]}, **more)["spec"]["dataVolumeTemplates"]

    assert template == {
        "metadata": {"name": "desk-root"},
        "spec": {"source": expected, "storage": {"resources": {"requests": {"storage": "20Gi"}}}},
    }


def test_data_volume_says_how_it_is_stored(tmp_path: Path) -> None:
    storage = {"storageClassName": "fast", "accessModes": ["ReadWriteMany"], "volumeMode": "Block"}
    disk = {"name": "root", "dataVolume": {"size": "20Gi", "registry": {"image": "main"}, **storage}}
    (template,) = machine(tmp_path, {"disks": [disk]})["spec"]["dataVolumeTemplates"]

    assert template["spec"]["storage"] == {**storage, "resources": {"requests": {"storage": "20Gi"}}}


@pytest.mark.parametrize(
    ("drive", "expected"),
    [
        ({}, {"disk": {"bus": "virtio"}}),
        ({"bus": "sata", "readOnly": True}, {"disk": {"bus": "sata", "readonly": True}}),
        ({"type": "cdrom"}, {"cdrom": {"bus": "sata"}}),
        ({"type": "lun", "bootOrder": 2, "serial": "A1"}, {"lun": {"bus": "scsi"}, "bootOrder": 2, "serial": "A1"}),
    ],
)
def test_disk_is_attached_as_it_says(tmp_path: Path, drive: Any, expected: Any) -> None:
    disks = [{"name": "root", "image": "main"}, {"name": "data", "existingClaim": "x", **drive}]
    found = instance(tmp_path, {"disks": disks})["domain"]["devices"]["disks"]

    assert found[1] == {"name": "data", **expected}


def test_claim_of_a_disk_outlives_the_machine(tmp_path: Path) -> None:
    disks = [
        {"name": "root", "image": "main"},
        {"name": "data", "claim": {"resources": {"requests": {"storage": "1Gi"}}}},
    ]
    claim = only(made(tmp_path, {"disks": disks}), "PersistentVolumeClaim")

    assert claim["metadata"]["name"] == "desk-data"
    assert claim["metadata"]["annotations"] == {"kustomize.toolkit.fluxcd.io/prune": "disabled"}
    assert claim["spec"] == {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


NETWORKS: list[tuple[dict[str, Any], Any, Any]] = [
    ({}, {"pod": {}}, {"masquerade": {}}),
    ({"binding": "bridge"}, {"pod": {}}, {"bridge": {}}),
    ({"multus": "lan/br0"}, {"multus": {"networkName": "lan/br0"}}, {"bridge": {}}),
    ({"multus": "fast", "binding": "sriov"}, {"multus": {"networkName": "fast"}}, {"sriov": {}}),
    (
        {"macAddress": "02:00:00:00:00:0a", "model": "e1000", "bootOrder": 3, "ports": [{"port": 22, "name": "ssh"}]},
        {"pod": {}},
        {
            "masquerade": {},
            "macAddress": "02:00:00:00:00:0a",
            "model": "e1000",
            "bootOrder": 3,
            "ports": [{"name": "ssh", "port": 22, "protocol": "TCP"}],
        },
    ),
]


@pytest.mark.parametrize(("network", "there", "interface"), NETWORKS)
def test_network_and_its_interface(tmp_path: Path, network: Any, there: Any, interface: Any) -> None:
    spec = instance(tmp_path, {"networks": [{"name": "net", **network}]})

    assert spec["networks"] == [{"name": "net", **there}]
    assert spec["domain"]["devices"]["interfaces"] == [{"name": "net", **interface}]


def test_no_network_is_none(tmp_path: Path) -> None:
    spec = instance(tmp_path, {"networks": []})

    assert "networks" not in spec
    assert spec["domain"]["devices"]["autoattachPodInterface"] is False
    assert "interfaces" not in spec["domain"]["devices"]


def test_further_fields_are_merged_in(tmp_path: Path) -> None:
    spec = {"domain": {"devices": {"rng": {}}, "cpu": {"dedicatedCpuPlacement": True}}, "subdomain": "vms"}
    found = instance(tmp_path, {"cpu": {"cores": 2}, "spec": spec})

    assert found["domain"]["cpu"] == {"cores": 2, "dedicatedCpuPlacement": True}
    assert found["domain"]["devices"]["rng"] == {}
    assert found["domain"]["devices"]["disks"]
    assert found["subdomain"] == "vms"


# The image


def test_table_is_applied_to_every_kind_of_disk(tmp_path: Path) -> None:
    disks = [
        {"name": "root", "image": "main"},
        {"name": "data", "dataVolume": {"size": "1Gi", "registry": {"image": "main"}}},
        {"name": "tools", "image": "tools"},
    ]
    found = machine(tmp_path, {"disks": disks}, CORP, images={"tools": "quay.io/x/tools:1.2.3"})["spec"]
    volumes = found["template"]["spec"]["volumes"]

    assert volumes[0]["containerDisk"]["image"] == "registry.corp.example/debian:13"
    assert volumes[2]["containerDisk"]["image"] == "quay.io/x/tools:1.2.3"
    source = found["dataVolumeTemplates"][0]["spec"]["source"]
    assert source == {"registry": {"url": "docker://registry.corp.example/debian:13"}}


@pytest.mark.parametrize("mode", ["all", "declared", "none"])
def test_mode_of_the_overrides_holds_for_machines_too(tmp_path: Path, mode: str) -> None:
    (volume,) = instance(tmp_path, {}, CORP, imageOverrides=mode)["volumes"]

    assert volume["containerDisk"]["image"] == (IMAGE if mode == "none" else "registry.corp.example/debian:13")


@given(st.sampled_from(["1.2", "13", "latest"]), st.sampled_from([None, "sha256:" + "a" * 64]))
def test_importer_gets_no_tag_beside_a_digest(tag: str, digest: str | None) -> None:
    image = f"quay.io/x/y:{tag}" + (f"@{digest}" if digest else "")
    definition = {
        "name": "desk",
        "kind": "vm",
        "source": {"image": image},
        "vm": {**MEMORY, "disks": [{"name": "root", "dataVolume": {"size": "1Gi", "registry": {"image": "main"}}}]},
    }
    files = {"catalog/desk.yaml": document(definition), "platform.yaml": PLATFORM}
    (template,) = only(built(files), "VirtualMachine")["spec"]["dataVolumeTemplates"]
    url = template["spec"]["source"]["registry"]["url"]

    assert url == (f"docker://quay.io/x/y@{digest}" if digest else f"docker://{image}")


def test_pin_is_the_version_and_ends_updates(tmp_path: Path) -> None:
    built = made(tmp_path, {"os": "debian"}, update={"cadence": "24h", "pin": "12"})
    (volume,) = only(built, "VirtualMachine")["spec"]["template"]["spec"]["volumes"]

    assert volume == {"name": "root", "containerDisk": {"image": "quay.io/containerdisks/debian:12"}}


def test_table_may_retag_a_machine_without_a_word(tmp_path: Path) -> None:
    table = PLATFORM.replace(" []", "\n  - {name: quay.io/containerdisks/debian, newTag: '14'}")
    built = made(tmp_path, {"os": "debian"}, table, update={"cadence": "24h"})

    assert codes(built) == []
    disk = only(built, "VirtualMachine")["spec"]["template"]["spec"]["volumes"][0]
    assert disk["containerDisk"]["image"] == "quay.io/containerdisks/debian:14"


@pytest.mark.parametrize("update", [None, {}, {"cadence": "0 4 * * *"}, {"pin": "12"}])
def test_no_machine_has_a_policy_or_a_marker(tmp_path: Path, update: Any) -> None:
    more = {} if update is None else {"update": update}
    on = made(tmp_path, {"os": "debian"}, **more)
    off = made(tmp_path, {"os": "debian"}, automation=False, **more)

    assert dict(on.files) == dict(off.files)
    assert {"ImageRepository", "ImagePolicy"} & {one["kind"] for one in objects(on)} == set()
    assert not any("$imagepolicy" in text for text in on.files.values())


def test_images_lists_where_a_machine_holds_them(tmp_path: Path) -> None:
    disks = [
        {"name": "root", "image": "main"},
        {"name": "x", "dataVolume": {"size": "1Gi", "registry": {"image": "x"}}},
    ]
    definition = {
        "name": "desk",
        "kind": "vm",
        "source": {"image": IMAGE},
        "images": {"x": "quay.io/x/y:1"},
        "update": {"pin": "12"},
        "vm": {**MEMORY, "disks": disks},
    }
    ran = project(tmp_path, {"catalog/desk.yaml": document(definition), "platform.yaml": CORP}).run(
        "images", "--format", "csv"
    )

    assert ran.code == 0
    assert ran.out.splitlines()[1:] == [
        f"desk,main,containerDisk,{IMAGE},registry.corp.example/debian:12,0,,,pin",
        "desk,x,dataVolume,quay.io/x/y:1,quay.io/x/y:1,,,,",
    ]


# Where it goes


def test_machine_is_reconciled_after_the_apps(tmp_path: Path) -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "desk"}}
    built = made(tmp_path, {}, extraObjects=[service, {**service, "apiVersion": "x.example/v1", "kind": "X"}])
    files = [path for path in built.files if "desk" in path]
    kustomizations = {
        one["metadata"]["name"]: one["spec"]
        for one in objects(built)
        if one["kind"] == "Kustomization" and "metadata" in one
    }

    assert sorted(files) == [
        "apps/desk/extra.yaml",
        "apps/desk/kustomization.yaml",
        "configs/desk/extra.yaml",
        "configs/desk/kustomization.yaml",
        "configs/desk/vm.yaml",
    ]
    assert kustomizations["configs"]["dependsOn"] == [{"name": "apps"}]
    (health,) = kustomizations["configs"]["healthCheckExprs"]
    assert (health["apiVersion"], health["kind"]) == ("kubevirt.io/v1", "VirtualMachine")


def test_only_kustomizations_with_machines_look_at_their_health(tmp_path: Path) -> None:
    web = {"name": "web", "extraObjects": [{"apiVersion": "x.example/v1", "kind": "X", "metadata": {"name": "x"}}]}
    machines = {"name": "desk", "kind": "vm", "source": {"image": IMAGE}, "vm": MEMORY}
    platform = PLATFORM.replace('"2.9"', '"2.9"\n  kustomizations: service')
    files = {"catalog/a.yaml": document(web), "catalog/b.yaml": document(machines), "platform.yaml": platform}
    found = {
        one["metadata"]["name"]: one["spec"]
        for one in objects(project(tmp_path, files).build().files["flux/kustomizations.yaml"])
    }

    assert {name for name, spec in found.items() if "healthCheckExprs" in spec} == {"configs-desk"}


def test_dependencies_of_machines_are_those_of_their_kustomizations(tmp_path: Path) -> None:
    platform = PLATFORM.replace('"2.9"', '"2.9"\n  kustomizations: service')
    desk = {"name": "desk", "kind": "vm", "source": {"image": IMAGE}, "vm": MEMORY, "dependsOn": ["shelf", "web"]}
    shelf = {"name": "shelf", "kind": "vm", "source": {"image": IMAGE}, "vm": MEMORY}
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web"}}
    web = {"name": "web", "dependsOn": ["shelf"], "extraObjects": [config]}
    files = {f"catalog/{one['name']}.yaml": document(one) for one in (desk, shelf, web)}
    built = project(tmp_path, {**files, "platform.yaml": platform}).build()
    assert not built.failed, told(built)
    found = {
        one["metadata"]["name"]: [other["name"] for other in one["spec"].get("dependsOn", ())]
        for one in objects(built.files["flux/kustomizations.yaml"])
    }

    assert found["configs-desk"] == ["apps", "configs-shelf", "apps-web"]
    assert found["apps-web"] == ["apps", "configs-shelf"]
    assert found["configs-shelf"] == ["apps"]


def test_namespace_of_a_machine_is_rendered(tmp_path: Path) -> None:
    assert only(made(tmp_path, {}, namespace="vms"), "Namespace")["metadata"]["name"] == "vms"


# What the guest is given


def test_users_packages_files_and_commands(tmp_path: Path) -> None:
    cloud = {
        "timezone": "Europe/Berlin",
        "locale": "en_GB.UTF-8",
        "users": [
            "default",
            {
                "name": "ada",
                "gecos": "Ada L",
                "groups": ["sudo", "adm"],
                "primaryGroup": "users",
                "shell": "/bin/bash",
                "home": "/srv/ada",
                "uid": 1234,
                "system": False,
                "sudo": "ALL=(ALL) NOPASSWD:ALL",
                "sshKeys": [KEY, f"{KEY} ada@x"],
            },
        ],
        "packages": ["nginx"],
        "files": [
            {"path": "/etc/a", "content": "yes\n", "permissions": "0644"},
            {"path": "/etc/b", "content": "aGk=", "encoding": "b64", "append": True, "owner": "root:root"},
            {"path": "/srv/c", "content": "", "owner": "ada:users"},
        ],
        "commands": ["echo 'hi' > /tmp/x", ["touch", "yes"]],
        "userData": {"ssh_pwauth": False, "ntp": {"enabled": True}},
    }

    assert guest(tmp_path, {"cloudInit": cloud}) == {
        "timezone": "Europe/Berlin",
        "locale": "en_GB.UTF-8",
        "users": [
            "default",
            {
                "name": "ada",
                "gecos": "Ada L",
                "groups": ["sudo", "adm"],
                "primary_group": "users",
                "shell": "/bin/bash",
                "homedir": "/srv/ada",
                "uid": 1234,
                "system": False,
                "sudo": "ALL=(ALL) NOPASSWD:ALL",
                "lock_passwd": True,
                "ssh_authorized_keys": [KEY, f"{KEY} ada@x"],
            },
        ],
        "package_update": True,
        "packages": ["nginx"],
        "write_files": [
            {"path": "/etc/a", "permissions": "0644", "content": "yes\n"},
            {"path": "/etc/b", "owner": "root:root", "encoding": "b64", "append": True, "content": "aGk="},
            {"path": "/srv/c", "owner": "ada:users", "defer": True, "content": ""},
        ],
        "runcmd": ["echo 'hi' > /tmp/x", ["touch", "yes"]],
        "ssh_pwauth": False,
        "ntp": {"enabled": True},
    }


def test_package_update_of_a_person_stays(tmp_path: Path) -> None:
    cloud = {"packages": ["nginx"], "userData": {"package_update": False}}

    assert guest(tmp_path, {"cloudInit": cloud}) == {"packages": ["nginx"], "package_update": False}


def test_secret_of_a_person_is_named(tmp_path: Path) -> None:
    found = instance(tmp_path, {"cloudInit": {"secretRef": {"name": "mine"}, "networkData": {"version": 2}}})

    assert found["volumes"][1] == {
        "name": "cloud-init",
        "cloudInitNoCloud": {"secretRef": {"name": "mine"}, "networkData": '"version": 2\n'},
    }


def test_network_data_is_carried_as_text(tmp_path: Path) -> None:
    files = {
        "catalog/desk.yaml": f"""\
            name: desk
            kind: vm
            source: {{image: "{IMAGE}"}}
            vm:
              memory: 2Gi
              cloudInit:
                networkData:
                  version: 2
                  ethernets:
                    enp1s0:
                      dhcp4: true
                      mtu: 0x5dc
                      addresses: ["10.0.0.2/24"]
            """
    }
    spec = only(project(tmp_path, files).build(), "VirtualMachine")["spec"]["template"]["spec"]

    assert spec["volumes"][1]["cloudInitNoCloud"]["networkData"] == (
        'version: 2\nethernets:\n  enp1s0:\n    dhcp4: true\n    mtu: 0x5dc\n    addresses:\n    - "10.0.0.2/24"\n'
    )


@pytest.mark.parametrize("over", [0, 1])
def test_data_beyond_the_limit_of_kubevirt_is_a_secret(tmp_path: Path, over: int) -> None:
    def cloud(size: int) -> dict[str, Any]:
        return {
            "cloudInit": {
                "files": [{"path": "/x", "content": "é" + "a" * size}],
                "networkData": {"x": "é" + "a" * size},
            }
        }

    empty = objects(made(tmp_path, cloud(0)))
    size = INLINE - len(guest_text(empty).encode()) + over
    built = made(tmp_path, cloud(size))
    source = only(built, "VirtualMachine")["spec"]["template"]["spec"]["volumes"][1]["cloudInitNoCloud"]
    if over:
        secret = only(built, "Secret")
        assert "networkData" in source
        assert source["secretRef"] == {"name": "desk-cloud-init"}
        assert secret["metadata"] == {"name": "desk-cloud-init", "namespace": "desk", "labels": LABEL}
        assert list(secret["stringData"]) == ["userdata"]
        assert len(secret["stringData"]["userdata"].encode()) == INLINE + 1
    else:
        assert len(source["userData"].encode()) == INLINE
        assert "Secret" not in {one["kind"] for one in objects(built)}


def test_long_network_data_is_in_the_secret_too(tmp_path: Path) -> None:
    built = made(tmp_path, {"cloudInit": {"networkData": {"x": "a" * INLINE}}})
    source = only(built, "VirtualMachine")["spec"]["template"]["spec"]["volumes"][1]["cloudInitNoCloud"]

    assert source == {"networkDataSecretRef": {"name": "desk-cloud-init"}}
    assert yaml.safe_load(only(built, "Secret")["stringData"]["networkdata"]) == {"x": "a" * INLINE}


@pytest.mark.parametrize(("declared", "kind"), [("", "inline"), ("  substitute: [SITE]\n", "Secret")])
def test_data_that_postbuild_changes_is_a_secret(tmp_path: Path, declared: str, kind: str) -> None:
    platform = PLATFORM + f"defaults:\n  namespaces: true\n{declared}"
    built = made(tmp_path, {"cloudInit": {"commands": ["echo ${SITE}"]}}, platform)

    assert not built.failed
    assert (kind == "Secret") == ("Secret" in {one["kind"] for one in objects(built)})


def test_undeclared_variable_in_user_data_is_refused(tmp_path: Path) -> None:
    platform = PLATFORM + "defaults:\n  substitute: []\n"

    assert codes(made(tmp_path, {"cloudInit": {"commands": ["echo ${HOME}"]}}, platform)) == ["R215"]


TEXTS = st.lists(texts(), min_size=1, max_size=4)


@examples(60)
@given(TEXTS, st.booleans())
def test_any_text_reaches_the_guest(values: list[str], shell: bool) -> None:
    commands: list[Any] = [value for value in values if value] if shell else [["echo", *values]]
    cloud = {
        "users": [{"name": "ada", "gecos": values[0], "groups": values, "shell": values[-1]}],
        "files": [{"path": f"/{i}", "content": value, "append": True} for i, value in enumerate(values)],
        "commands": commands,
        "userData": {"bootcmd": [["echo", *values]], "final_message": values[0]},
    }
    definition = {"name": "desk", "kind": "vm", "source": {"image": IMAGE}, "vm": {**MEMORY, "cloudInit": cloud}}
    found = check({"catalog/desk.yaml": document(definition), "platform.yaml": PLATFORM})
    if found is None:
        return
    path = "configs/desk/vm.yaml"
    for reader in (KYAML, SIGS):
        read = yaml.safe_load(guest_text(documents(found.files[path], reader)))
        assert read["users"][0]["gecos"] == values[0]
        assert read["users"][0]["groups"] == values
        assert [one["content"] for one in read["write_files"]] == values
        assert read.get("runcmd", []) == commands
        assert read["bootcmd"] == [["echo", *values]]
        assert read["final_message"] == values[0]


def test_most_telling_texts_reach_the_guest_at_all() -> None:
    """The property above passes over what the catalog refuses."""
    taken = 0
    for text in TELLING:
        cloud = {"files": [{"path": "/x", "content": text}]}
        definition = {"name": "desk", "kind": "vm", "source": {"image": IMAGE}, "vm": {**MEMORY, "cloudInit": cloud}}
        taken += not built({"catalog/desk.yaml": document(definition), "platform.yaml": PLATFORM}).failed

    assert taken > 0.9 * len(TELLING)


# Updates in the guest


@pytest.mark.parametrize("os", sorted(FAMILIES))
def test_guest_updates_itself_by_a_timer(tmp_path: Path, os: str) -> None:
    found = guest(tmp_path, {"os": os}, update={"cadence": "0 4 1 * MON"})
    files = {one["path"]: one["content"] for one in found["write_files"]}
    run = {
        "debian": ["/usr/bin/apt-get -q update", "/usr/bin/unattended-upgrade"],
        "fedora": ["/usr/bin/dnf-automatic --installupdates"],
    }["debian" if os in ("debian", "ubuntu") else "fedora"]

    assert found["packages"] == [
        {"debian": "unattended-upgrades", "ubuntu": "unattended-upgrades", "fedora": "dnf5-plugin-automatic"}.get(
            os, "dnf-automatic"
        )
    ]
    assert files["/etc/systemd/system/guest-update.service"] == (
        "[Unit]\nDescription=Install updates\nWants=network-online.target\nAfter=network-online.target\n\n"
        "[Service]\nType=oneshot\n" + "".join(f"ExecStart={command}\n" for command in run)
    )
    assert files["/etc/systemd/system/guest-update.timer"] == (
        "[Unit]\nDescription=Time for updates\n\n[Timer]\n"
        "OnCalendar=*-*-01 04:00:00 UTC\nOnCalendar=Mon *-*-* 04:00:00 UTC\nPersistent=true\n\n"
        "[Install]\nWantedBy=timers.target\n"
    )
    assert ("/etc/apt/apt.conf.d/60guest-update" in files) == (os in ("debian", "ubuntu"))
    assert found["runcmd"] == [
        ["systemctl", "daemon-reload"],
        ["systemctl", "enable", "--now", "guest-update.timer"],
    ]


def test_duration_is_counted_from_the_last_run(tmp_path: Path) -> None:
    found = guest(tmp_path, {"os": "debian"}, update={"cadence": "36h"})
    files = {one["path"]: one["content"] for one in found["write_files"]}

    assert "[Timer]\nOnActiveSec=15min\nOnUnitActiveSec=1d 12h\n\n" in files["/etc/systemd/system/guest-update.timer"]


def test_cadence_is_by_default_that_of_the_platform(tmp_path: Path) -> None:
    platform = PLATFORM + "defaults:\n  interval: 6h\n"
    found = guest(tmp_path, {"os": "debian"}, platform, update={})

    assert "OnUnitActiveSec=6h\n" in found["write_files"][-1]["content"]


@pytest.mark.parametrize("os", sorted(FAMILIES))
def test_guest_restarts_in_its_window(tmp_path: Path, os: str) -> None:
    vm = {"os": os, "reboot": {"schedule": "0 5 * * SUN", "window": "90m"}, "cloudInit": {"timezone": "Asia/Tokyo"}}
    found = guest(tmp_path, vm, update={"cadence": "@daily"})
    files = {one["path"]: one["content"] for one in found["write_files"]}
    timer = files["/etc/systemd/system/guest-reboot.timer"]

    assert "[Timer]\nOnCalendar=Sun *-*-* 05:00:00\nRandomizedDelaySec=1h 30min\n\n" in timer
    # A restart that was missed is not made up for: it would come outside the window.
    assert "Persistent" not in timer
    assert "OnCalendar=*-*-* 00:00:00\n" in files["/etc/systemd/system/guest-update.timer"]
    assert "After=guest-update.service\n" in files["/etc/systemd/system/guest-reboot.service"]
    assert found["runcmd"][-1] == ["systemctl", "enable", "--now", "guest-reboot.timer"]
    assert found["packages"][1:] == {"fedora": ["dnf5-plugins"], "el": ["dnf-plugins-core"]}.get(os, [])


def test_packages_are_named_once_and_commands_of_a_person_come_last(tmp_path: Path) -> None:
    cloud = {"packages": ["unattended-upgrades", "nginx"], "commands": ["exit 1"]}
    found = guest(tmp_path, {"os": "ubuntu", "cloudInit": cloud}, update={"cadence": "24h"})

    assert found["packages"] == ["unattended-upgrades", "nginx"]
    assert found["runcmd"][-1] == "exit 1"


def test_machine_without_updates_or_cloud_init_has_no_such_disk(tmp_path: Path) -> None:
    assert [one["name"] for one in instance(tmp_path, {"os": "debian", "cloudInit": {}})["volumes"]] == ["root"]


# What is refused, besides the cases of tests/errors


@pytest.mark.parametrize(
    "key",
    [
        KEY,
        f"{KEY} ada",
        f"  {KEY}\tada  l ",
        "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAgQC7",
        "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTY=",
        "sk-ssh-ed25519@openssh.com AAAAGnNrLXNzaC1lZDI1NTE5QG9wZW5zc2guY29tAAAAIA==",
    ],
)
def test_public_keys_are_taken(key: str) -> None:
    assert is_public_key(key)


@pytest.mark.parametrize(
    "key",
    [
        "",
        "ssh-ed25519",
        "ssh-ed25519 !",
        "ssh-ed25519 AAAA",
        KEY.replace("ed25519 ", "rsa "),
        KEY.partition(" ")[2],
        f"no-pty {KEY}",
        f"{KEY}\n{KEY}",
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5",
    ],
)
def test_other_texts_are_no_public_keys(key: str) -> None:
    assert not is_public_key(key)


@pytest.mark.parametrize(
    ("quantity", "size"),
    [
        ("1", 1),
        ("1k", 1000),
        ("1Ki", 1024),
        ("1.5Gi", 3 * 2**29),
        ("0.5M", 500_000),
        ("2E", 2 * 10**18),
        ("1.25Ki", 1280),
    ],
)
def test_size_of_a_quantity(quantity: str, size: int) -> None:
    assert size == size_of(quantity)


@pytest.mark.parametrize(
    ("user_data", "expected"),
    [
        ({"password": "x"}, ["R224"]),
        ({"chpasswd": {"users": []}}, ["R224"]),
        ({"ssh_keys": {"rsa_private": "x"}}, ["R224"]),
        ({"rh_subscription": {"password": "x"}}, ["R224"]),
        ({"landscape": {"client": {"registration_token": "x"}}}, ["R224"]),
        ({"bootcmd": ["x", "-----BEGIN EC PRIVATE KEY-----"]}, ["R224"]),
        ({"ssh_pwauth": True}, []),
        ({"password": ""}, []),
        ({"lock_passwd": True}, []),
        ({"disable_root": False}, []),
    ],
)
def test_secrets_in_plain_are_refused(tmp_path: Path, user_data: Any, expected: list[str]) -> None:
    assert codes(made(tmp_path, {"cloudInit": {"userData": user_data}})) == expected


@pytest.mark.parametrize(
    "vm",
    [
        {"evictionStrategy": "LiveMigrate"},
        {"evictionStrategy": "LiveMigrateIfPossible", "networks": [{"name": "x", "binding": "bridge"}]},
        {
            "evictionStrategy": "LiveMigrate",
            "networks": [{"name": "x", "multus": "br0"}],
            "disks": [
                {"name": "root", "image": "main"},
                {"name": "x", "dataVolume": {"size": "1Gi", "blank": True, "accessModes": ["ReadWriteMany"]}},
                {"name": "y", "dataVolume": {"size": "1Gi", "blank": True}},
                {"name": "z", "existingClaim": "z"},
            ],
        },
    ],
)
def test_machine_that_may_migrate_is_taken(tmp_path: Path, vm: dict[str, Any]) -> None:
    assert codes(made(tmp_path, vm)) == []


def test_broken_image_brings_no_fault_of_its_disk(tmp_path: Path) -> None:
    disks = [
        {"name": "root", "image": "main"},
        {"name": "x", "dataVolume": {"size": "1Gi", "registry": {"image": "main"}}},
    ]
    for vm in ({}, {"disks": disks}):
        assert codes(made(tmp_path, vm, source={"image": "https://x/y"})) == ["R205"]


def test_disks_after_one_of_a_broken_image_are_told_at_their_places(tmp_path: Path) -> None:
    claim = {"accessModes": ["ReadWriteOnce"]}
    disks = [{"name": "root", "image": "main"}, {"name": "kept", "claim": claim}]
    built = made(tmp_path, {"disks": disks}, source={"image": "Not An Image"})

    assert [fault.code for fault in built.diagnostics] == ["R205", "R405"]
    assert built.diagnostics[1].message.startswith("`vm.disks[1].claim` needs")


@pytest.mark.parametrize("content", ["\u00fc", "aGk", "\ufeffaGk="])
def test_text_that_is_no_base64_is_told(tmp_path: Path, content: str) -> None:
    file = {"path": "/etc/b", "content": content, "encoding": "b64"}
    (fault,) = made(tmp_path, {"cloudInit": {"files": [file]}}).diagnostics

    assert (fault.code, fault.message) == ("R223", "the content of `/etc/b` is no base64")


@pytest.mark.parametrize("empty", ["cadence", "window"])
def test_an_empty_time_is_none(tmp_path: Path, empty: str) -> None:
    reboot = {"schedule": "@daily", **({"window": ""} if empty == "window" else {})}
    update = {"cadence": "" if empty == "cadence" else "24h"}
    (fault,) = made(tmp_path, {"os": "debian", "reboot": reboot}, update=update).diagnostics

    assert empty in fault.message


def test_faults_of_all_parts_are_told_in_one_run(tmp_path: Path) -> None:
    vm = {
        "memory": "5",
        "disks": [{"name": "root"}],
        "networks": [{"name": "x", "binding": "sriov"}],
        "cloudInit": {"packages": ["a b"]},
        "spec": {"hostname": "x"},
        "evictionStrategy": "LiveMigrate",
    }
    built = made(tmp_path, vm, update={"cadence": "1 2"})

    assert sorted(codes(built)) == ["R207", "R221", "R222", "R223", "R225", "R226", "R228"]


def test_disabled_machine_is_not_rendered(tmp_path: Path) -> None:
    assert not any("desk" in path for path in made(tmp_path, {}, enabled=False).files)


@pytest.mark.parametrize("field", ["values", "release"])
def test_what_belongs_to_a_release_is_refused(tmp_path: Path, field: str) -> None:
    assert codes(made(tmp_path, {}, **{field: {"x": "y"}})) == ["R212"]


# Against the API of KubeVirt


@examples(60)
@given(machines(), st.sampled_from([None, {}, {"cadence": "0 4 1 * MON"}, {"pin": "12"}]))
def test_kubevirt_knows_every_field_of_a_machine(vm: dict[str, Any], update: Any) -> None:
    definition = {"name": "desk", "kind": "vm", "source": {"image": IMAGE}, "vm": vm}
    if update is not None:
        definition["update"] = update
    one = only(built({"catalog/desk.yaml": document(definition), "platform.yaml": PLATFORM}), "VirtualMachine")

    assert kubevirt.faults(one) == []
    assert kubevirt.rules(one) == []


@pytest.mark.parametrize("path", [path for path in golden_files() if path.endswith("/vm.yaml")])
def test_kubevirt_knows_every_field_of_the_goldens(path: str) -> None:
    one = only((GOLDENS / path).read_text("utf-8"), "VirtualMachine")

    assert kubevirt.faults(one) == []
    assert kubevirt.rules(one) == []


def test_kubevirt_knows_every_disk_and_network(tmp_path: Path) -> None:
    disks = [{"name": f"d{i}", **disk} for i, (disk, _) in enumerate(DISKS)]
    disks += [
        {"name": "cd", "existingClaim": "x", "type": "cdrom"},
        {"name": "lun", "existingClaim": "y", "type": "lun"},
    ]
    networks = [{"name": f"n{i}", **network} for i, (network, _, _) in enumerate(NETWORKS) if i > 1]
    firmware = {"bootloader": "efi", "secureBoot": True, "persistent": True}
    cpu = {"cores": 2, "sockets": 1, "threads": 2, "model": "host-model"}
    vm = {"disks": disks, "networks": networks, "firmware": firmware, "cpu": cpu, "machine": "q35"}
    one = machine(tmp_path, vm)

    assert kubevirt.faults(one) == []
    assert kubevirt.rules(one) == []


def test_tables_tell_of_what_is_not_there() -> None:
    one = {
        "spec": {
            "running": "yes",
            "template": {"spec": {"domain": {"devices": {"disks": [{"bus": "x"}]}, "memory": {"guests": "1"}}}},
        }
    }

    assert kubevirt.faults(one) == [
        "spec.running is no flag",
        "spec.template.spec.domain.devices.disks[0] has no name",
        "spec.template.spec.domain.devices.disks[0].bus is unknown",
        "spec.template.spec.domain.memory.guests is unknown",
    ]


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ((), "VirtualMachineInstanceSpec"),
        (("domain",), "DomainSpec"),
        (("domain", "cpu"), "CPU"),
        (("domain", "memory"), "Memory"),
        (("domain", "firmware"), "Firmware"),
        (("domain", "devices"), "Devices"),
    ],
)
def test_every_field_of_a_machine_has_one_place(path: tuple[str, ...], name: str) -> None:
    table = INSTANCE_SPEC
    for key in path:
        table = table["properties"][key]
    further = set(table["properties"])
    own = {one[-1] for one in OWN_FIELDS if one[:-1] == path}

    assert further | own == set(kubevirt.TYPES[name])
    assert further & own == set()


@pytest.mark.parametrize("own", sorted(set(OWN_FIELDS.values())))
def test_the_place_that_a_field_is_said_to_have_exists(own: str) -> None:
    found: Any = json.loads(schema.text("service"))["$defs"]["Vm"]
    for step in own.split(".")[1:]:
        found = found["properties"][step]
        reference = next((one["$ref"] for one in found.get("anyOf", ()) if "$ref" in one), "")
        found = json.loads(schema.text("service"))["$defs"][reference.rpartition("/")[2]] if reference else found


# What a change does


def desk(**more: Any) -> str:
    return document({"name": "desk", "kind": "vm", "source": {"image": IMAGE}, "vm": MEMORY, **more})


def test_vanishing_machine_is_told(tmp_path: Path) -> None:
    web = document(
        {"name": "web", "extraObjects": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}]}
    )
    made = project(tmp_path, {"catalog/desk.yaml": desk(), "catalog/web.yaml": web})
    made.run("build")
    (tmp_path / "catalog/desk.yaml").unlink()
    checked = made.run("check")
    reported = json.loads(made.run("check", "--format", "json").out)

    assert "Flux would delete the virtual machine of `desk`, with its DataVolumes\n" in checked.err
    assert reported["files"]["deletedMachines"] == ["desk"]
    assert reported["files"]["deletedWorkloads"] == []


@pytest.mark.parametrize("more", [{"objectName": "shelf"}, {"namespace": "vms"}])
def test_machine_of_another_name_is_a_reinstall(tmp_path: Path, more: Any) -> None:
    disks = [{"name": "root", "image": "main"}, {"name": "x", "claim": {"resources": {"requests": {"storage": "1Gi"}}}}]
    vm = {"vm": {**MEMORY, "disks": disks}}
    made = project(tmp_path, {"catalog/desk.yaml": desk(**vm)})
    made.run("build")
    before = made.tree()
    (tmp_path / "catalog/desk.yaml").write_text(desk(**vm, **more))
    refused = made.run("build")

    assert refused.code == 1
    assert "error[R511]: `desk` would be uninstalled and installed again" in refused.err
    assert "of the virtual machine changes from `desk` to" in refused.err
    assert made.tree() == before
    assert made.run("build", "--allow-reinstall", "desk").code == 0


def test_other_changes_of_a_machine_are_none(tmp_path: Path) -> None:
    made = project(tmp_path, {"catalog/desk.yaml": desk()})
    made.run("build")
    (tmp_path / "catalog/desk.yaml").write_text(desk(vm={"memory": "4Gi"}, labels={"a": "b"}))

    assert made.run("build").code == 0


def test_volumes_of_two_machines_may_not_have_one_name(tmp_path: Path) -> None:
    def disks(name: str, **more: Any) -> Any:
        return {
            "vm": {**MEMORY, "disks": [{"name": "root", "image": "main"}, {"name": name, **more}]},
            "namespace": "vms",
        }

    claim = {"claim": {"resources": {"requests": {"storage": "1Gi"}}}}
    blank = {"dataVolume": {"size": "1Gi", "blank": True}}
    files = {"catalog/desk.yaml": desk(**disks("a-b", **blank)), "catalog/x.yaml": desk(**disks("b", **claim))}
    files["catalog/x.yaml"] = files["catalog/x.yaml"].replace('"desk"', '"desk-a"')
    built = project(tmp_path, files).build()

    assert told(built) == ["R203 catalog/x.yaml:1:1 `PersistentVolumeClaim vms/desk-a-b` is rendered twice"]


def test_policy_tells_that_a_machine_has_none(tmp_path: Path) -> None:
    (tmp_path / "tags").write_text("13\n")
    ran = project(tmp_path, {"catalog/desk.yaml": desk()}).run("policy", "desk", "--tags", "tags")

    assert ran.code == 2
    assert "`desk/main`: a virtual machine updates itself, and nothing moves its image" in ran.err


def test_machine_in_another_file_is_the_same_machine(tmp_path: Path) -> None:
    made = project(tmp_path, {"catalog/desk.yaml": desk(namespace="vms")})
    made.run("build")
    (tmp_path / "catalog/desk.yaml").write_text(
        desk(namespace="vms", objectName="desk").replace('name: "desk"', 'name: "shelf"', 1)
    )
    ran = made.run("build")

    assert ran.code == 0, ran.err
    assert "delete" not in ran.err


@pytest.mark.parametrize(
    ("old", "new", "code"), [("all", "service", 1), ("service", "namespace", 1), ("all", "namespace", 0)]
)
def test_machine_that_goes_to_another_kustomization_is_told(tmp_path: Path, old: str, new: str, code: int) -> None:
    def platform(mode: str) -> str:
        return PLATFORM.replace('"2.9"', f'"2.9"\n  kustomizations: {mode}')

    made = project(tmp_path, {"catalog/desk.yaml": desk(namespace="vms"), "platform.yaml": platform(old)})
    assert made.run("build").code == 0
    (tmp_path / "platform.yaml").write_text(platform(new))
    ran = made.run("build")

    assert ran.code == code
    assert ("error[R516]: `desk` moves to another Flux Kustomization" in ran.err) == bool(code)
    assert made.run("build", "--allow-reinstall", "desk").code == 0


# What runs elsewhere


@pytest.mark.parametrize(
    ("strategy", "status", "expected"),
    [
        ("Always", {"printableStatus": "Running"}, True),
        ("Always", {"printableStatus": "Migrating"}, True),
        ("Always", {"printableStatus": "Stopped"}, False),
        ("Always", {"printableStatus": "Starting"}, False),
        ("Always", {"printableStatus": "ErrorUnschedulable"}, False),
        ("Halted", {"printableStatus": "Stopped"}, True),
        ("Manual", {"printableStatus": "Stopped"}, True),
        ("RerunOnFailure", {"printableStatus": "Provisioning"}, False),
        ("Halted", {}, False),
    ],
)
def test_flux_takes_a_machine_for_ready_when_it_is_as_it_should_be(strategy: str, status: Any, expected: bool) -> None:
    cel = pytest.importorskip("cel_expr_python.cel", exc_type=ImportError)
    environment = cel.NewEnv(variables={"spec": cel.Type.DYN, "status": cel.Type.DYN})
    found = environment.compile(MACHINE_HEALTH["current"]).eval(
        data={"spec": {"runStrategy": strategy}, "status": status}
    )

    assert found.value() is expected


@pytest.mark.parametrize(
    ("dnf", "expected"),
    [
        (
            "echo '  * kernel'; echo; echo 'Reboot is required to fully utilize these updates.'; exit 1",
            True,
        ),
        (
            "echo 'No core libraries or services have been updated.'; echo 'Reboot should not be necessary.'",
            False,
        ),
        ("echo 'No such command: needs-restarting.' >&2; exit 1", False),
    ],
)
def test_guest_of_rpms_restarts_only_where_dnf_says_so(tmp_path: Path, dnf: str, expected: bool) -> None:
    made = reboots("el", ["daily"], "1h")
    (line,) = [
        one for one in dict(made.files)["/etc/systemd/system/guest-reboot.service"].splitlines() if "sh -c" in one
    ]
    command = line.partition('"')[2].removesuffix('"')
    for name, text in (("dnf", dnf), ("systemctl", f"echo $* > {tmp_path}/told")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    subprocess.run(["/bin/sh", "-c", command], check=True, env={"PATH": f"{tmp_path}:/usr/bin:/bin"})

    assert (tmp_path / "told").exists() == expected
