"""What a VirtualMachine may say besides the fields that a service has for it, as tables.

Source: the OpenAPI of KubeVirt 1.7. A part without a described form is carried as it is.
"""

from __future__ import annotations

from render.flux.api_schema import Schema, anything, array, choice, flag, integer, obj, text

_TERM = obj(
    "Conditions on a node, all of which must hold.",
    {"matchExpressions": anything("Conditions on labels."), "matchFields": anything("Conditions on fields.")},
)

AFFINITY = obj(
    "Which nodes are preferred or needed.",
    {
        "nodeAffinity": obj(
            "By the node.",
            {
                "preferredDuringSchedulingIgnoredDuringExecution": array(
                    "Preferences.",
                    obj("One preference.", {"weight*": integer("From 1 to 100."), "preference*": _TERM}),
                ),
                "requiredDuringSchedulingIgnoredDuringExecution": obj(
                    "Needs.", {"nodeSelectorTerms*": array("Terms, one of which must hold.", _TERM)}
                ),
            },
        ),
        "podAffinity": anything("By the pods that run there."),
        "podAntiAffinity": anything("By the pods that do not."),
    },
)

TOLERATION = obj(
    "A taint that is borne.",
    {
        "key": text("Key of the taint, by default any."),
        "operator": choice("Exists or Equal, by default Equal.", "Exists Equal Lt Gt"),
        "value": text("Value of the taint."),
        "effect": choice("Effect, by default all.", "NoSchedule PreferNoSchedule NoExecute"),
        "tolerationSeconds": integer("How long NoExecute is borne, by default for ever."),
    },
)

VOLUMES = (
    "cloudInitConfigDrive",
    "configMap",
    "downwardAPI",
    "downwardMetrics",
    "ephemeral",
    "hostDisk",
    "secret",
    "serviceAccount",
    "sysprep",
)
"""Volume sources that a disk has no field of its own for."""

_DEVICES = obj(
    "Devices besides disks and interfaces.",
    {
        "autoattachGraphicsDevice": flag("Whether there is a graphics card, by default yes."),
        "autoattachInputDevice": flag("Whether there is a tablet."),
        "autoattachMemBalloon": flag("Whether there is a memory balloon, by default yes."),
        "autoattachSerialConsole": flag("Whether there is a serial console, by default yes."),
        "autoattachVSOCK": flag("Whether there is a VSOCK."),
        "blockMultiQueue": flag("Whether disks have a queue for each processor."),
        "clientPassthrough": anything("USB redirection."),
        "disableHotplug": flag("Whether nothing can be attached while it runs."),
        "downwardMetrics": anything("A channel for metrics of the host."),
        "filesystems": anything("File systems by virtiofs."),
        "gpus": anything("Graphics processors of the host."),
        "hostDevices": anything("Devices of the host."),
        "inputs": anything("Input devices."),
        "logSerialConsole": flag("Whether the serial console is logged."),
        "networkInterfaceMultiqueue": flag("Whether interfaces have a queue for each processor."),
        "panicDevices": anything("Devices that tell of a crash of the guest."),
        "rng": anything("A source of entropy of the host."),
        "sound": anything("A sound card."),
        "tpm": anything("A TPM."),
        "useVirtioTransitional": flag("Whether old guests find virtio devices."),
        "video": anything("The graphics card."),
        "watchdog": anything("A watchdog."),
    },
)

_DOMAIN = obj(
    "The machine itself.",
    {
        "chassis": anything("What the firmware tells of the case."),
        "clock": anything("The clock and its timers."),
        "cpu": obj(
            "Processors.",
            {
                "dedicatedCpuPlacement": flag("Whether each processor gets one of the host."),
                "features": anything("Features to force or to hide."),
                "isolateEmulatorThread": flag("Whether the emulator gets a processor of its own."),
                "maxSockets": integer("Sockets that can be plugged in while it runs."),
                "numa": anything("NUMA topology."),
                "realtime": anything("Real-time scheduling."),
            },
        ),
        "devices": _DEVICES,
        "features": anything("Features of the hypervisor."),
        "firmware": obj(
            "Firmware.",
            {
                "acpi": anything("ACPI tables."),
                "kernelBoot": anything("A kernel that is started directly."),
                "serial": text("Serial number of the system."),
                "uuid": text("UUID of the system."),
            },
        ),
        "ioThreads": anything("Threads for disks."),
        "ioThreadsPolicy": choice("How disks share threads.", "shared auto supplementalPool"),
        "launchSecurity": anything("Confidential computing."),
        "memory": obj(
            "Memory.",
            {
                "hugepages": anything("Huge pages."),
                "maxGuest": text("The most that can be plugged in while it runs."),
                "reservedOverhead": anything("Memory set aside for the hypervisor."),
            },
        ),
        "rebootPolicy": choice("What a reboot of the guest does.", "Reboot Terminate"),
        "resources": anything("What the pod asks for."),
    },
)

INSTANCE_SPEC: Schema = obj(
    "Fields of a VirtualMachineInstance's spec that a service has no field for.",
    {
        "accessCredentials": anything("Keys and passwords from Secrets, that are kept current in the guest."),
        "dnsConfig": anything("DNS settings."),
        "dnsPolicy": choice("Where names are looked up.", "ClusterFirstWithHostNet ClusterFirst Default None"),
        "domain": _DOMAIN,
        "livenessProbe": anything("Check whose failure restarts the machine."),
        "readinessProbe": anything("Check whose failure takes it out of Services."),
        "resourceClaims": anything("Dynamic resources."),
        "schedulerName": text("Scheduler."),
        "startStrategy": choice("Paused starts it paused.", "Paused"),
        "subdomain": text("Subdomain of the host name."),
        "topologySpreadConstraints": anything("How machines are spread."),
        "utilityVolumes": anything("Claims for the pod alone."),
    },
)

OWN_FIELDS: dict[tuple[str, ...], str] = {
    ("affinity",): "vm.affinity",
    ("architecture",): "vm.architecture",
    ("domain", "cpu", "cores"): "vm.cpu.cores",
    ("domain", "cpu", "model"): "vm.cpu.model",
    ("domain", "cpu", "sockets"): "vm.cpu.sockets",
    ("domain", "cpu", "threads"): "vm.cpu.threads",
    ("domain", "devices", "autoattachPodInterface"): "vm.networks",
    ("domain", "devices", "disks"): "vm.disks",
    ("domain", "devices", "interfaces"): "vm.networks",
    ("domain", "firmware", "bootloader"): "vm.firmware",
    ("domain", "machine"): "vm.machine",
    ("domain", "memory", "guest"): "vm.memory",
    ("evictionStrategy",): "vm.evictionStrategy",
    ("hostname",): "vm.hostname",
    ("networks",): "vm.networks",
    ("nodeSelector",): "vm.nodeSelector",
    ("priorityClassName",): "vm.priorityClassName",
    ("terminationGracePeriodSeconds",): "vm.terminationGracePeriodSeconds",
    ("tolerations",): "vm.tolerations",
    ("volumes",): "vm.disks",
}
"""Fields of the spec that a service has a field of its own for."""
