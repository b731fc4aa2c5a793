"""The parts of a workload that are written in Kubernetes' form, as tables.

Source: the OpenAPI of Kubernetes 1.36, which names neither the words that a field takes nor the bounds of a number, so
neither do the tables. Quantities and ports may be numbers or strings, as the API server reads them.
"""

from __future__ import annotations

from render.flux.api_schema import Schema, array, flag, integer, obj, string_map, strings, text


def _int_or_string(description: str) -> Schema:
    return {"description": description, "anyOf": [{"type": "integer"}, {"type": "string"}]}


def _quantity(description: str) -> Schema:
    return {"description": description, "anyOf": [{"type": "number"}, {"type": "string"}]}


def _quantities(description: str) -> Schema:
    return {"type": "object", "description": description, "additionalProperties": _quantity("Amount, such as `500m`.")}


def _mode(description: str) -> Schema:
    # Both readers take `0644` for octal, as people mean it.
    return {**integer(description), "x-octal": True}


def _key_of(what: str) -> Schema:
    return obj(
        f"A key of a {what}.",
        {
            "name": text(f"Name of the {what}."),
            "key*": text("The key."),
            "optional": flag("Whether object and key may be missing."),
        },
    )


def _whole(what: str) -> Schema:
    return obj(
        f"All keys of a {what}.",
        {"name": text(f"Name of the {what}."), "optional": flag("Whether the object may be missing.")},
    )


PROBE = obj(
    "A check of the container; one of `exec`, `grpc`, `httpGet`, `tcpSocket`.",
    {
        "exec": obj("A command that must succeed.", {"command": strings("The command and its arguments, no shell.")}),
        "grpc": obj(
            "A gRPC health check.",
            {"port*": integer("Port number."), "service": text("Service to ask about, by default the empty name.")},
        ),
        "httpGet": obj(
            "An HTTP request that must be answered with 200 to 399.",
            {
                "host": text("Host to connect to, by default the pod."),
                "httpHeaders": array(
                    "Headers of the request.",
                    obj("One header.", {"name*": text("Name of the header."), "value*": text("Its value.")}),
                ),
                "path": text("Path to request."),
                "port*": _int_or_string("Port number, or the name of a port of the container."),
                "scheme": text("HTTP or HTTPS, by default HTTP."),
            },
        ),
        "tcpSocket": obj(
            "A TCP port that must take a connection.",
            {
                "host": text("Host to connect to, by default the pod."),
                "port*": _int_or_string("Port number, or the name of a port of the container."),
            },
        ),
        "initialDelaySeconds": integer("Seconds from the container's start to the first check, by default 0."),
        "periodSeconds": integer("Seconds between checks, by default 10."),
        "timeoutSeconds": integer("Seconds after which a check counts as failed, by default 1."),
        "successThreshold": integer("Successes in a row that end a failure, by default 1."),
        "failureThreshold": integer("Failures in a row that count, by default 3."),
        "terminationGracePeriodSeconds": integer("Seconds to end in after a failure, by default the pod's."),
    },
)

RESOURCE_REQUIREMENTS = obj(
    "What the container may use, and what is set aside for it.",
    {
        "claims": array(
            "Dynamic resources that the container uses.",
            obj(
                "One of the pod's claims.",
                {"name*": text("Name of the claim."), "request": text("One request of the claim, by default all.")},
            ),
        ),
        "limits": _quantities("The most it may use, by resource."),
        "requests": _quantities("What is set aside for it, by resource."),
    },
)

_APP_ARMOR = obj(
    "The AppArmor profile.",
    {
        "localhostProfile": text("Name of a profile on the node, for the type Localhost."),
        "type*": text("Localhost, RuntimeDefault or Unconfined."),
    },
)
_SECCOMP = obj(
    "The seccomp profile.",
    {
        "localhostProfile": text("File of a profile on the node, for the type Localhost."),
        "type*": text("Localhost, RuntimeDefault or Unconfined."),
    },
)
_SE_LINUX = obj(
    "The SELinux label.",
    {
        "level": text("Its level."),
        "role": text("Its role."),
        "type": text("Its type."),
        "user": text("Its user."),
    },
)
_WINDOWS = obj(
    "Settings for Windows only.",
    {
        "gmsaCredentialSpec": text("The credential spec itself."),
        "gmsaCredentialSpecName": text("Name of the credential spec to use."),
        "hostProcess": flag("Whether to run as a HostProcess container."),
        "runAsUserName": text("User to run as."),
    },
)

SECURITY_CONTEXT = obj(
    "What the container may do.",
    {
        "allowPrivilegeEscalation": flag("Whether a process may gain more privileges than its parent."),
        "appArmorProfile": _APP_ARMOR,
        "capabilities": obj(
            "Capabilities beyond or short of the runtime's.",
            {"add": strings("Those to add."), "drop": strings("Those to drop.")},
        ),
        "privileged": flag("Whether its processes may do what root of the node may."),
        "procMount": text("Default or Unmasked, by default Default."),
        "readOnlyRootFilesystem": flag("Whether the root file system is read-only."),
        "runAsGroup": integer("Group to run as."),
        "runAsNonRoot": flag("Whether to refuse to run as root."),
        "runAsUser": integer("User to run as, by default the image's."),
        "seLinuxOptions": _SE_LINUX,
        "seccompProfile": _SECCOMP,
        "windowsOptions": _WINDOWS,
    },
)

POD_SECURITY_CONTEXT = obj(
    "What all containers of the pod may do, and who owns its volumes.",
    {
        "appArmorProfile": _APP_ARMOR,
        "fsGroup": integer("Group that owns the volumes."),
        "fsGroupChangePolicy": text("OnRootMismatch or Always, by default Always."),
        "runAsGroup": integer("Group to run as."),
        "runAsNonRoot": flag("Whether to refuse to run as root."),
        "runAsUser": integer("User to run as, by default the image's."),
        "seLinuxChangePolicy": text("MountOption or Recursive."),
        "seLinuxOptions": _SE_LINUX,
        "seccompProfile": _SECCOMP,
        "supplementalGroups": array("Further groups to run as.", {"type": "integer"}),
        "supplementalGroupsPolicy": text("Merge or Strict, by default Merge."),
        "sysctls": array(
            "Kernel parameters of the pod.",
            obj("One parameter.", {"name*": text("Its name."), "value*": text("Its value.")}),
        ),
        "windowsOptions": _WINDOWS,
    },
)

ENV_VAR_SOURCE = obj(
    "Where the value of an environment variable comes from; one of its fields.",
    {
        "configMapKeyRef": _key_of("ConfigMap"),
        "fieldRef": obj(
            "A field of the pod.",
            {
                "apiVersion": text("Version of the pod's form, by default v1."),
                "fieldPath*": text("Path of the field, such as `metadata.name`."),
            },
        ),
        "fileKeyRef": obj(
            "A variable of a file in an emptyDir volume.",
            {
                "key*": text("Name of the variable in the file."),
                "optional": flag("Whether file and variable may be missing."),
                "path*": text("Path of the file in the volume."),
                "volumeName*": text("Name of the volume."),
            },
        ),
        "resourceFieldRef": obj(
            "A limit or request of a container.",
            {
                "containerName": text("Name of the container, by default this one."),
                "divisor": _quantity("Unit to give it in, by default 1."),
                "resource*": text("Which one, such as `limits.cpu`."),
            },
        ),
        "secretKeyRef": _key_of("Secret"),
    },
)

ENV_FROM_SOURCE = obj(
    "Where a set of environment variables comes from; one of `configMapRef`, `secretRef`.",
    {
        "configMapRef": _whole("ConfigMap"),
        "prefix": text("Text to put before each name."),
        "secretRef": _whole("Secret"),
    },
)

EMPTY_DIR_VOLUME_SOURCE = obj(
    "A directory that lives as long as the pod.",
    {
        "medium": text("Empty for the node's disk, or Memory."),
        "sizeLimit": _quantity("The most that it may hold."),
    },
)

_KEY_TO_PATH = array(
    "Keys to put into the volume, by default all, each as a file of its name.",
    obj(
        "One key.",
        {
            "key*": text("The key."),
            "mode": _mode("Mode of its file, by default `defaultMode`."),
            "path*": text("Path of its file in the volume."),
        },
    ),
)

CONFIG_MAP_VOLUME_SOURCE = obj(
    "The keys of a ConfigMap as files.",
    {
        "defaultMode": _mode("Mode of the files, by default 0644."),
        "items": _KEY_TO_PATH,
        "name": text("Name of the ConfigMap."),
        "optional": flag("Whether object and keys may be missing."),
    },
)

SECRET_VOLUME_SOURCE = obj(
    "The keys of a Secret as files.",
    {
        "defaultMode": _mode("Mode of the files, by default 0644."),
        "items": _KEY_TO_PATH,
        "optional": flag("Whether object and keys may be missing."),
        "secretName": text("Name of the Secret."),
    },
)

HOST_PATH_VOLUME_SOURCE = obj(
    "A file or directory of the node.",
    {
        "path*": text("Its path on the node."),
        "type": text("What must be there, such as Directory; by default anything."),
    },
)

NFS_VOLUME_SOURCE = obj(
    "A directory of an NFS server.",
    {
        "path*": text("Path that the server exports."),
        "readOnly": flag("Whether to mount it read-only."),
        "server*": text("Host name or address of the server."),
    },
)

PERSISTENT_VOLUME_CLAIM_SPEC = obj(
    "The storage that a claim asks for.",
    {
        "accessModes": strings("How it can be mounted, such as ReadWriteOnce."),
        "dataSource": obj(
            "What to fill the volume from, in the same namespace.",
            {
                "apiGroup": text("API group of the object, by default the core group."),
                "kind*": text("Kind of the object."),
                "name*": text("Name of the object."),
            },
        ),
        "dataSourceRef": obj(
            "What to fill the volume from.",
            {
                "apiGroup": text("API group of the object, by default the core group."),
                "kind*": text("Kind of the object."),
                "name*": text("Name of the object."),
                "namespace": text("Namespace of the object, by default the claim's."),
            },
        ),
        "resources": obj(
            "How much of it.",
            {"limits": _quantities("The most to take."), "requests": _quantities("The least, as `storage`.")},
        ),
        "selector": obj(
            "Which volumes to consider.",
            {
                "matchExpressions": array(
                    "Conditions on labels, all of which must hold.",
                    obj(
                        "One condition.",
                        {
                            "key*": text("Name of the label."),
                            "operator*": text("In, NotIn, Exists or DoesNotExist."),
                            "values": strings("Values for In and NotIn."),
                        },
                    ),
                ),
                "matchLabels": string_map("Labels that must be there."),
            },
        ),
        "storageClassName": text("Storage class, by default the cluster's."),
        "volumeAttributesClassName": text("Class of the volume's attributes."),
        "volumeMode": text("Filesystem or Block, by default Filesystem."),
        "volumeName": text("Name of the very volume to bind."),
    },
)

DEPLOYMENT_STRATEGY = obj(
    "How a Deployment replaces its pods.",
    {
        "rollingUpdate": obj(
            "How many at a time, for the type RollingUpdate.",
            {
                "maxSurge": _int_or_string("Pods beyond `replicas`, a number or a percentage, by default 25%."),
                "maxUnavailable": _int_or_string("Pods that may be missing, number or percentage, by default 25%."),
            },
        ),
        "type": text("RollingUpdate or Recreate, by default RollingUpdate."),
    },
)

STATEFUL_SET_UPDATE_STRATEGY = obj(
    "How a StatefulSet replaces its pods.",
    {
        "rollingUpdate": obj(
            "How many at a time, for the type RollingUpdate.",
            {
                "maxUnavailable": _int_or_string("Pods that may be missing, number or percentage, by default 1."),
                "partition": integer("Lowest ordinal that is replaced, by default 0."),
            },
        ),
        "type": text("RollingUpdate or OnDelete, by default RollingUpdate."),
    },
)

CORE: dict[str, Schema] = {
    "Probe": PROBE,
    "ResourceRequirements": RESOURCE_REQUIREMENTS,
    "SecurityContext": SECURITY_CONTEXT,
    "PodSecurityContext": POD_SECURITY_CONTEXT,
    "EnvVarSource": ENV_VAR_SOURCE,
    "EnvFromSource": ENV_FROM_SOURCE,
    "EmptyDirVolumeSource": EMPTY_DIR_VOLUME_SOURCE,
    "ConfigMapVolumeSource": CONFIG_MAP_VOLUME_SOURCE,
    "SecretVolumeSource": SECRET_VOLUME_SOURCE,
    "HostPathVolumeSource": HOST_PATH_VOLUME_SOURCE,
    "NFSVolumeSource": NFS_VOLUME_SOURCE,
    "PersistentVolumeClaimSpec": PERSISTENT_VOLUME_CLAIM_SPEC,
    "DeploymentStrategy": DEPLOYMENT_STRATEGY,
    "StatefulSetUpdateStrategy": STATEFUL_SET_UPDATE_STRATEGY,
}
"""The tables by Kubernetes' names of the types."""
