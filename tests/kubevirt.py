"""A VirtualMachine against the fields of its API, as tables of names.

Source: the OpenAPI of KubeVirt 1.7 and of its Containerized Data Importer, as far as the objects that are rendered go.
`*` is required, `[]` a list, `any` a part that is not described here; quantities may be strings.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

TABLE = """
VirtualMachineSpec dataVolumeTemplates:[]DataVolumeTemplateSpec instancetype:any preference:any runStrategy:text
  running:flag template*:VirtualMachineInstanceTemplateSpec updateVolumesStrategy:text
DataVolumeTemplateSpec apiVersion:text kind:text metadata:any spec*:DataVolumeSpec status:any
DataVolumeSpec checkpoints:[]any contentType:text finalCheckpoint:flag preallocation:flag priorityClassName:text
  pvc:any source:DataVolumeSource sourceRef:any storage:StorageSpec
DataVolumeSource blank:any gcs:any http:DataVolumeSourceHTTP imageio:any pvc:DataVolumeSourcePVC
  registry:DataVolumeSourceRegistry s3:any snapshot:any upload:any vddk:any
DataVolumeSourceHTTP certConfigMap:text extraHeaders:[]text secretExtraHeaders:[]text secretRef:text url*:text
DataVolumeSourcePVC name*:text namespace*:text
DataVolumeSourceRegistry certConfigMap:text imageStream:text platform:any pullMethod:text secretRef:text url:text
StorageSpec accessModes:[]text dataSource:any dataSourceRef:any resources:any selector:any storageClassName:text
  volumeMode:text volumeName:text
VirtualMachineInstanceTemplateSpec metadata:any spec:VirtualMachineInstanceSpec
VirtualMachineInstanceSpec accessCredentials:[]any affinity:any architecture:text dnsConfig:any dnsPolicy:text
  domain*:DomainSpec evictionStrategy:text hostname:text livenessProbe:any networks:[]Network nodeSelector:any
  priorityClassName:text readinessProbe:any resourceClaims:[]any schedulerName:text startStrategy:text
  subdomain:text terminationGracePeriodSeconds:integer tolerations:[]any topologySpreadConstraints:[]any
  utilityVolumes:[]any volumes:[]Volume
DomainSpec chassis:any clock:any cpu:CPU devices*:Devices features:Features firmware:Firmware ioThreads:any
  ioThreadsPolicy:text launchSecurity:any machine:Machine memory:Memory rebootPolicy:text resources:any
CPU cores:integer dedicatedCpuPlacement:flag features:[]any isolateEmulatorThread:flag maxSockets:integer model:text
  numa:any realtime:any sockets:integer threads:integer
Memory guest:text hugepages:any maxGuest:text reservedOverhead:any
Machine type:text
Firmware acpi:any bootloader:Bootloader kernelBoot:any serial:text uuid:text
Bootloader bios:BIOS efi:EFI
EFI persistent:flag secureBoot:flag
BIOS useSerial:flag
Features acpi:FeatureState apic:any hyperv:any hypervPassthrough:any kvm:any pvspinlock:FeatureState
  smm:FeatureState
FeatureState enabled:flag
Devices autoattachGraphicsDevice:flag autoattachInputDevice:flag autoattachMemBalloon:flag
  autoattachPodInterface:flag autoattachSerialConsole:flag autoattachVSOCK:flag blockMultiQueue:flag
  clientPassthrough:any disableHotplug:flag disks:[]Disk downwardMetrics:any filesystems:[]any gpus:[]any
  hostDevices:[]any inputs:[]any interfaces:[]Interface logSerialConsole:flag networkInterfaceMultiqueue:flag
  panicDevices:[]any rng:any sound:any tpm:any useVirtioTransitional:flag video:any watchdog:any
Disk blockSize:any bootOrder:integer cache:text cdrom:CDRomTarget changedBlockTracking:flag dedicatedIOThread:flag
  disk:DiskTarget errorPolicy:text io:text lun:LunTarget name*:text serial:text shareable:flag tag:text
DiskTarget bus:text pciAddress:text readonly:flag
CDRomTarget bus:text readonly:flag tray:text
LunTarget bus:text readonly:flag reservation:flag
Interface acpiIndex:integer binding:any bootOrder:integer bridge:any dhcpOptions:any macAddress:text macvtap:any
  masquerade:any model:text name*:text passt:any passtBinding:any pciAddress:text ports:[]Port slirp:any sriov:any
  state:text tag:text
Port name:text port*:integer protocol:text
Network multus:MultusNetwork name*:text pod:PodNetwork
MultusNetwork default:flag networkName*:text
PodNetwork vmIPv6NetworkCIDR:text vmNetworkCIDR:text
Volume cloudInitConfigDrive:any cloudInitNoCloud:CloudInitNoCloudSource configMap:any
  containerDisk:ContainerDiskSource containerPath:any dataVolume:DataVolumeVolumeSource downwardAPI:any
  downwardMetrics:any emptyDisk:EmptyDiskSource ephemeral:any hostDisk:any memoryDump:any name*:text
  persistentVolumeClaim:PersistentVolumeClaimVolumeSource secret:any serviceAccount:any sysprep:any
ContainerDiskSource image*:text imagePullPolicy:text imagePullSecret:text path:text
PersistentVolumeClaimVolumeSource claimName*:text hotpluggable:flag readOnly:flag
DataVolumeVolumeSource hotpluggable:flag name*:text
EmptyDiskSource capacity*:text
CloudInitNoCloudSource networkData:text networkDataBase64:text networkDataSecretRef:any secretRef:any userData:text
  userDataBase64:text
"""


class Field(NamedTuple):
    """What a field holds."""

    is_required: bool
    is_list: bool
    kind: str
    """`text`, `integer`, `flag`, `any`, or the name of a type."""


def _types() -> dict[str, dict[str, Field]]:
    found: dict[str, dict[str, Field]] = {}
    for line in TABLE.replace("\n  ", " ").strip().splitlines():
        name, *fields = line.split()
        found[name] = {}
        for field in fields:
            key, _, kind = field.partition(":")
            found[name][key.removesuffix("*")] = Field(
                key.endswith("*"), kind.startswith("[]"), kind.removeprefix("[]")
            )
    return found


TYPES = _types()
_PRIMITIVES = {"text": str, "integer": int, "flag": bool}


def faults(machine: Any) -> list[str]:
    """Return what KubeVirt does not know, or misses, in a VirtualMachine."""
    assert set(machine) <= {"apiVersion", "kind", "metadata", "spec"}
    return list(_faults("VirtualMachineSpec", machine["spec"], "spec"))


def _faults(name: str, value: Any, path: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{path} is no mapping"
        return
    fields = TYPES[name]
    yield from (f"{path} has no {key}" for key, field in fields.items() if field.is_required and key not in value)
    for key, inner in value.items():
        here = f"{path}.{key}"
        if key not in fields:
            yield f"{here} is unknown"
            continue
        field = fields[key]
        if field.is_list and not isinstance(inner, list):
            yield f"{here} is no list"
            continue
        for index, item in enumerate(inner if field.is_list else [inner]):
            where = f"{here}[{index}]" if field.is_list else here
            if field.kind in TYPES:
                yield from _faults(field.kind, item, where)
            elif field.kind in _PRIMITIVES and type(item) is not _PRIMITIVES[field.kind]:
                yield f"{where} is no {field.kind}"


def rules(machine: Any) -> list[str]:
    """Return what the webhook of KubeVirt refuses in a VirtualMachine, as far as disks, networks and user data go."""
    spec = machine["spec"]["template"]["spec"]
    devices = spec["domain"]["devices"]
    disks = [one["name"] for one in devices.get("disks", ())]
    interfaces = [one["name"] for one in devices.get("interfaces", ())]
    volumes = [one["name"] for one in spec.get("volumes", ())]
    networks = [one["name"] for one in spec.get("networks", ())]
    made = [f"{name} is there twice" for names in (disks, interfaces) for name in names if names.count(name) > 1]
    made += [f"{name} is on one side only" for name in {*disks} ^ {*volumes} | {*interfaces} ^ {*networks}]
    made += [f"{one} has not one source" for one in spec.get("volumes", ()) if len(one) != 2]
    orders = [
        one["bootOrder"] for kind in ("disks", "interfaces") for one in devices.get(kind, ()) if "bootOrder" in one
    ]
    made += ["a boot order is there twice"] * (len(orders) != len(set(orders)))
    made += ["the pod has two networks"] * (sum("pod" in one for one in spec.get("networks", ())) > 1)
    for volume in spec.get("volumes", ()):
        cloud = volume.get("cloudInitNoCloud")
        if cloud is None:
            continue
        made += [f"{key} is too long" for key in ("userData", "networkData") if len(cloud.get(key, "").encode()) > 2048]
        made += ["there is no data"] * (not cloud)
        made += ["there are two user data"] * ("userData" in cloud and "secretRef" in cloud)
        made += ["there are two network data"] * ("networkData" in cloud and "networkDataSecretRef" in cloud)
    return made
