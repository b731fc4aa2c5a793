"""The `vm` part of a ServiceDefinition: a KubeVirt VirtualMachine and the cloud-init data of its guest."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from render.model.base import Free, Label, Model, NameRef, ObjectName

Quantity = Annotated[str, Field(pattern=r"^[0-9]+(\.[0-9]+)?(Ki|Mi|Gi|Ti|Pi|Ei|k|M|G|T|P|E)?$")]
"""A Kubernetes quantity of bytes."""

MacAddress = Annotated[str, Field(pattern=r"^[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}$")]
UserName = Annotated[str, Field(pattern=r"^[a-z_][a-z0-9_-]*$", max_length=32)]
AbsolutePath = Annotated[str, Field(pattern=r"^/[^\n]*[^/\n]$")]


class VmCpu(Model):
    """The processors that the guest sees: cores times sockets times threads."""

    cores: int | None = Field(None, description="Cores of a socket. Default: 1.", ge=1)
    sockets: int | None = Field(None, description="Sockets. Default: 1.", ge=1)
    threads: int | None = Field(None, description="Threads of a core. Default: 1.", ge=1)
    model: str | None = Field(
        None, description="CPU model, `host-model` or `host-passthrough`. Default: the cluster's.", min_length=1
    )


class VmFirmware(Model):
    """What starts the guest."""

    bootloader: Literal["bios", "efi"] = Field("bios", description="BIOS or UEFI.")
    secure_boot: bool | None = Field(None, description="Secure boot (`efi`). Default: false.")
    persistent: bool | None = Field(None, description="Keep the variables of the UEFI over restarts (`efi`).")


class HttpSource(Model):
    """A disk image on a web server."""

    url: Annotated[str, Field(pattern=r"^https?://\S+$")] = Field(description="Address of the image.")
    secret_ref: ObjectName | None = Field(None, description="Secret with `accessKeyId` and `secretKey`.")
    cert_config_map: ObjectName | None = Field(None, description="ConfigMap with the certificates to trust.")


class RegistrySource(Model):
    """A disk image in a registry, as a containerDisk holds it."""

    image: str = Field(description="`main` for `source.image`, or a key of `images`.")
    pull_method: Literal["node", "pod"] | None = Field(None, description="Who pulls it. Default: the importing pod.")
    secret_ref: ObjectName | None = Field(None, description="Secret with `accessKeyId` and `secretKey`.")
    cert_config_map: ObjectName | None = Field(None, description="ConfigMap with the certificates to trust.")


class PvcSource(Model):
    """A PersistentVolumeClaim that is cloned."""

    name: ObjectName = Field(description="Name of the claim.")
    namespace: Label | None = Field(None, description="Its namespace. Default: the service's.")


class DataVolume(Model):
    """A volume that CDI makes and fills for the machine; it is deleted with the machine."""

    size: Quantity = Field(description="Size of the volume, such as `20Gi`.")
    registry: RegistrySource | None = Field(None, description="Filled from a registry.")
    http: HttpSource | None = Field(None, description="Filled from a web server.")
    pvc: PvcSource | None = Field(None, description="Filled from a claim.")
    blank: bool | None = Field(None, description="`true`: empty.")
    storage_class_name: ObjectName | None = Field(None, description="Storage class. Default: the cluster's.")
    access_modes: list[Literal["ReadWriteOnce", "ReadWriteMany", "ReadOnlyMany", "ReadWriteOncePod"]] | None = Field(
        None, description="How it can be mounted. Default: what CDI knows of the storage class."
    )
    volume_mode: Literal["Filesystem", "Block"] | None = Field(None, description="As `accessModes`.")


class VmDisk(Model):
    """A disk of the machine; exactly one source."""

    name: Label = Field(description="Name of the disk.")
    image: str | None = Field(
        None,
        description="A containerDisk, anew at each start: `main` for `source.image`, or a key of `images`.",
    )
    data_volume: DataVolume | None = Field(None, description="A DataVolume of the machine.")
    claim: Free | None = Field(None, description="PersistentVolumeClaimSpec of a claim rendered for the service.")
    existing_claim: ObjectName | None = Field(None, description="Name of a PersistentVolumeClaim that exists.")
    existing_data_volume: ObjectName | None = Field(None, description="Name of a DataVolume that exists.")
    empty_disk: Quantity | None = Field(None, description="An empty disk of this size that lives as long as a start.")
    volume: Free | None = Field(None, description="Any other volume source, in KubeVirt's form, such as `configMap`.")
    type: Literal["disk", "cdrom", "lun"] = Field("disk", description="What the guest sees.")
    bus: Literal["virtio", "sata", "scsi", "usb"] | None = Field(
        None, description="How it is attached. Default: `virtio`; `sata` for a `cdrom`, `scsi` for a `lun`."
    )
    boot_order: int | None = Field(None, description="Place in the order of booting, from 1.", ge=1)
    read_only: bool | None = Field(None, description="Attach it read-only.")
    serial: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.+-]+$", max_length=256)] | None = Field(
        None, description="Serial number that the guest sees."
    )
    pull_secret: ObjectName | None = Field(None, description="Pull secret of the containerDisk.")


class VmPort(Model):
    """A port of the guest that the pod's network forwards."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", max_length=15)] | None = Field(
        None, description="Name."
    )
    port: int = Field(description="Number.", ge=1, le=65535)
    protocol: Literal["TCP", "UDP"] = Field("TCP", description="Protocol.")


class VmNetwork(Model):
    """A network and the machine's interface in it."""

    name: Label = Field(description="Name of the network.")
    multus: str | None = Field(
        None,
        description="`[namespace/]name` of a NetworkAttachmentDefinition. Default: the pod's network.",
        pattern=r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?/)?[a-z0-9]([-a-z0-9.]*[a-z0-9])?$",
    )
    binding: Literal["masquerade", "bridge", "sriov"] | None = Field(
        None, description="How it is bound. Default: `masquerade` to the pod's network, `bridge` to others."
    )
    mac_address: MacAddress | None = Field(None, description="MAC address. Default: one that KubeVirt makes.")
    model: Literal["virtio", "e1000", "e1000e", "ne2k_pci", "pcnet", "rtl8139"] | None = Field(
        None, description="Network card that the guest sees. Default: `virtio`."
    )
    boot_order: int | None = Field(None, description="Place in the order of booting, from 1.", ge=1)
    ports: list[VmPort] = Field([], description="Ports that reach the guest (`masquerade`). Default: all.")


class GuestUser(Model):
    """A user of the guest, who logs in by key."""

    name: UserName = Field(description="Login name.")
    gecos: str | None = Field(None, description="Real name.")
    groups: list[str] = Field([], description="Further groups.")
    primary_group: str | None = Field(None, description="Primary group. Default: one of the user's name.")
    shell: str | None = Field(None, description="Login shell. Default: the distribution's.")
    home: AbsolutePath | None = Field(None, description="Home directory. Default: `/home/NAME`.")
    uid: int | None = Field(None, description="User id.", ge=0)
    system: bool | None = Field(None, description="A system user, who gets no home directory.")
    sudo: str | None = Field(None, description="Rule of sudo, such as `ALL=(ALL) NOPASSWD:ALL`.", min_length=1)
    ssh_keys: list[str] = Field([], description="Public SSH keys that may log in.")


class GuestFile(Model):
    """A file that is written into the guest."""

    path: AbsolutePath = Field(description="Absolute path.")
    content: str = Field(description="The text, or base64 with `encoding: b64`.")
    encoding: Literal["b64"] | None = Field(None, description="`b64`: `content` is base64 of the bytes.")
    owner: str | None = Field(
        None, description="`USER:GROUP`. Default: `root:root`.", pattern=r"^[A-Za-z0-9_.-]+(:[A-Za-z0-9_.-]+)?$"
    )
    permissions: str | None = Field(
        None, description='Octal mode in quotes. Default: `"0644"`.', pattern=r"^0?[0-7]{3,4}$"
    )
    append: bool | None = Field(None, description="Append to a file that is there.")


class CloudInit(Model):
    """What cloud-init does in the guest on its first start."""

    timezone: str | None = Field(
        None, description="Time zone, such as `Europe/Berlin`.", pattern=r"^[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*$"
    )
    locale: str | None = Field(None, description="Locale, such as `en_GB.UTF-8`.", pattern=r"^[A-Za-z0-9_.@-]+$")
    users: list[Literal["default"] | GuestUser] = Field(
        [], description="Users; `default` keeps the one that the image brings."
    )
    packages: list[str] = Field([], description="Packages to install.")
    files: list[GuestFile] = Field([], description="Files to write.")
    commands: list[str | list[str]] = Field(
        [], description="Commands to run once: a line for the shell, or a list of arguments."
    )
    user_data: Free | None = Field(None, description="Further keys of cloud-config, as they are.")
    network_data: Free | None = Field(None, description="Network configuration of cloud-init, as it is.")
    secret_ref: NameRef | None = Field(
        None, description="Secret with the whole user data under `userdata`, in place of all of the above."
    )


class GuestReboot(Model):
    """When the guest may restart for updates that need it."""

    schedule: str = Field(description="Cron expression of the window's begin.", min_length=1)
    window: str | None = Field(None, description="Length of the window, in which the moment is random. Default: `1h`.")


class Vm(Model):
    """A KubeVirt VirtualMachine."""

    os: Literal["debian", "ubuntu", "fedora", "el"] | None = Field(
        None, description="The guest's distribution; `el` is RHEL and its kin. Needed with `update`."
    )
    memory: Quantity = Field(description="Memory of the guest, such as `2Gi`.")
    cpu: VmCpu | None = Field(None, description="Processors. Default: one.")
    machine: str | None = Field(None, description="Machine type, such as `q35`. Default: the cluster's.", min_length=1)
    architecture: Literal["amd64", "arm64", "s390x"] | None = Field(
        None, description="Architecture. Default: the cluster's."
    )
    firmware: VmFirmware | None = Field(None, description="Firmware. Default: the cluster's.")
    run_strategy: Literal["Always", "RerunOnFailure", "Once", "Manual", "Halted"] = Field(
        "Always", description="When it runs."
    )
    eviction_strategy: Literal["LiveMigrate", "LiveMigrateIfPossible", "None", "External"] | None = Field(
        None, description="What a drained node does with it. Default: the cluster's."
    )
    termination_grace_period_seconds: int | None = Field(
        None, description="Seconds to shut down in. Default: KubeVirt's.", ge=0
    )
    hostname: Label | None = Field(None, description="Host name of the guest. Default: the machine's name.")
    disks: list[VmDisk] | None = Field(
        None, description="Disks. Default: `root`, a containerDisk of `source.image`; the first one is booted."
    )
    networks: list[VmNetwork] | None = Field(
        None, description="Networks. Default: the pod's, masqueraded; `[]` is none."
    )
    node_selector: dict[str, str] = Field({}, description="Labels of the nodes that may run it.")
    affinity: Free | None = Field(None, description="Affinity, in Kubernetes' form.")
    tolerations: list[Free] = Field([], description="Tolerations, in Kubernetes' form.")
    priority_class_name: ObjectName | None = Field(None, description="PriorityClass.")
    cloud_init: CloudInit | None = Field(None, description="What cloud-init does.")
    reboot: GuestReboot | None = Field(None, description="When it restarts for updates. Default: never by itself.")
    spec: Free | None = Field(
        None, description="Further fields of the VirtualMachineInstance's spec, merged into what is rendered."
    )
