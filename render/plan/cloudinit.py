"""A machine's `cloudInit` in, the user data and network data of its guest out."""

from __future__ import annotations

import base64

from render.flux.cadence import CadenceError, DurationError, parse_duration
from render.flux.calendar import calendar, timespan
from render.model.read import snake_case
from render.patterns import lazy
from render.plan import paths
from render.plan.context import Report, node_at
from render.plan.guest import Guest, reboots, updates
from render.redact import has_credential
from render.yaml.emit import Emitter
from render.yaml.source import Mapping, Node, Scalar, Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from render.model.service import Update
    from render.model.vm import CloudInit, GuestFile, GuestUser, Vm

CLOUD_CONFIG = "#cloud-config\n"
"""The line by which cloud-init knows the format."""
DEFAULT_ZONE = "UTC"
WINDOW = "1h"
"""Length of a reboot window that does not say its own."""
OWN_KEYS = {
    "fqdn": "vm.hostname",
    "hostname": "vm.hostname",
    "locale": "vm.cloudInit.locale",
    "packages": "vm.cloudInit.packages",
    "runcmd": "vm.cloudInit.commands",
    "timezone": "vm.cloudInit.timezone",
    "users": "vm.cloudInit.users",
    "write_files": "vm.cloudInit.files",
}
"""Keys of cloud-config that a service has a field of its own for."""

_KEY_TYPES = lazy(
    r"(?P<type>(?:sk-)?(?:ssh-(?:rsa|dss|ed25519)|ecdsa-sha2-nistp(?:256|384|521))(?:@openssh\.com)?)"
    r"[ \t]+(?P<data>[A-Za-z0-9+/]+={0,2})(?:[ \t]+.*)?\Z"
)
_PACKAGE = lazy(r"[A-Za-z0-9][A-Za-z0-9+._:~=@/-]*")
_PRIVATE = lazy(r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY")
_PASSWORDS = frozenset(
    ("passwd", "hashed_passwd", "plain_text_passwd", "chpasswd", "password", "ssh_keys", "auth_key", "authkey")
)
"""Keys of cloud-config whose values are secrets, whatever they look like."""
_IN_GIT = "the user data is committed to Git as it is"
_ENCRYPTED = "keep the user data in an encrypted Secret of your own, and name it with `cloudInit.secretRef`"


class GuestData:
    """Plans what cloud-init is given."""

    def __init__(self, report: Report, node: Node | None, vm: Vm, update: Update | None, update_node: Node | None):
        self.report = report
        self.node = node
        """The mapping of `vm`."""
        self.vm = vm
        self.update = update
        self.update_node = update_node
        self.cloud: CloudInit | None = vm.cloud_init
        self.own_files: set[str] = set()
        """Paths of the files that are written for updates."""

    def _at(self, *path: str | int) -> Node | None:
        return node_at(self.node, "cloudInit", *path)

    def network_data(self) -> str | None:
        """Return the network data."""
        if self.cloud is None or self.cloud.network_data is None:
            return None
        node: Any = self.cloud.network_data
        if not node.entries:
            return None
        self._check_secrets(node)
        return Emitter().fields("", node)

    def user_data(self, default_cadence: str) -> str | None:
        """Return the user data, None for a guest without any; what is wrong with it is reported."""
        guest = self._updates(default_cadence)
        self.own_files = {path for path, _ in guest.files}
        if self.cloud is None:
            made = self._config(None, guest)
        elif self.cloud.secret_ref is not None:
            self._check_alone()
            return None
        else:
            self._check()
            made = self._config(self.cloud, guest)
        return CLOUD_CONFIG + made if made else None

    # What is written

    def _config(self, cloud: CloudInit | None, guest: Guest) -> str:
        users = [] if cloud is None else [one if isinstance(one, str) else _user(one) for one in cloud.users]
        packages = [] if cloud is None else list(cloud.packages)
        packages += [name for name in guest.packages if name not in packages]
        files = [_plain_file(path, text) for path, text in guest.files]
        # A command of a person may end the script in which they all run.
        commands: list[Any] = [*guest.commands]
        if cloud is not None:
            files += [_file(one) for one in cloud.files]
            commands += cloud.commands
        fields: dict[str, Any] = {
            "timezone": cloud and cloud.timezone,
            "locale": cloud and cloud.locale,
            "users": users or None,
            "package_update": True if packages and not self._says("package_update") else None,
            "packages": packages or None,
            "write_files": files or None,
            "runcmd": commands or None,
        }
        emitter = Emitter()
        free: Any = None if cloud is None else cloud.user_data
        return emitter.fields("", fields) + (emitter.fields("", free) if free is not None else "")

    def _says(self, key: str) -> bool:
        found = paths.find(self.node, ("cloudInit", "userData"))
        return type(found) is Mapping and found.get(key) is not None

    # Updates in the guest

    def _updates(self, default_cadence: str) -> Guest:
        made = Guest()
        # A zone of the guest's own is its clock; named in a timer, one that it does not know would stop the timer.
        zone = "" if self.cloud is not None and self.cloud.timezone else DEFAULT_ZONE
        is_on = self.update is not None and self.update.pin is None
        if self.vm.reboot is not None and not is_on:
            self._refuse_reboot()
        if not is_on or self.update is None:
            return made
        os = self.vm.os
        if os is None:
            self.report.error(
                "R225",
                self.node,
                "a machine that updates itself must say its `vm.os`",
                cause="the distribution decides what the update is made with",
                hint="add `os: debian`, `ubuntu`, `fedora` or `el`; or remove `update`",
            )
            return made
        try:
            cadence = self.update.cadence
            made = updates(os, default_cadence if cadence is None else cadence, zone)
        except CadenceError as error:
            self._refuse_cadence(node_at(self.update_node, "cadence"), "update.cadence", str(error))
        if self.vm.reboot is not None:
            self._add_reboots(made, os, zone)
        return made

    def _add_reboots(self, made: Guest, os: str, zone: str) -> None:
        assert self.vm.reboot is not None
        events: list[str] = []
        spread = ""
        try:
            events = calendar(self.vm.reboot.schedule, zone)
        except CadenceError as error:
            self._refuse_cadence(node_at(self.node, "reboot", "schedule"), "vm.reboot.schedule", str(error))
        try:
            window = self.vm.reboot.window
            spread = timespan(parse_duration(WINDOW if window is None else window) // 10**6)
        except DurationError as unread:
            self._refuse_cadence(node_at(self.node, "reboot", "window"), "vm.reboot.window", str(unread))
        more = reboots(os, events, spread)
        made.packages += more.packages
        made.files += more.files
        made.commands += more.commands

    def _refuse_cadence(self, node: Node | None, label: str, reason: str) -> None:
        self.report.error(
            "R707",
            node,
            f"`{label}` cannot be that of a systemd timer",
            cause=reason,
            hint="write a duration such as `1h`" if label == "vm.reboot.window" else "write one such as `0 4 * * 0`",
        )

    def _refuse_reboot(self) -> None:
        assert isinstance(self.node, Mapping)
        self.report.error(
            "R225",
            self.node.key("reboot"),
            "`vm.reboot` needs an `update`",
            cause="the guest restarts for updates, and nothing updates it",
            hint="remove `pin`, or `reboot`" if self.update else "add `update: {cadence: …}`, or remove `reboot`",
        )

    # What is refused

    def _check_alone(self) -> None:
        """Refuse what would have to go into a Secret that is not ours."""
        assert self.cloud is not None
        node = self._at()
        assert isinstance(node, Mapping)
        for key, _ in node.entries:
            if key.text not in ("secretRef", "networkData"):
                self.report.error(
                    "R223",
                    key,
                    f"`vm.cloudInit.{key.text}` does not go with `secretRef`",
                    cause="the Secret holds the whole user data",
                    hint="put it into the Secret, or remove `secretRef`",
                )
        if self.update is not None and self.update.pin is None:
            self.report.error(
                "R225",
                self._at("secretRef"),
                "a machine with `cloudInit.secretRef` cannot be made to update itself",
                cause="the timer is part of the user data, and the Secret holds the whole of it",
                hint="put the updates into the Secret and remove `update`, or remove `secretRef`",
            )

    def _check(self) -> None:
        assert self.cloud is not None
        self._check_user_data()
        names = [user if isinstance(user, str) else user.name for user in self.cloud.users]
        for index, user in enumerate(self.cloud.users):
            self._once("users", index, "name", names, "user")
            if not isinstance(user, str):
                self._check_user(index, user)
        listed = [file.path for file in self.cloud.files]
        for index, file in enumerate(self.cloud.files):
            if not file.append:
                self._once("files", index, "path", listed, "file")
            self._check_file(index, file)
        for index, command in enumerate(self.cloud.commands):
            if not command:
                self._misshapen(self._at("commands", index), f"`vm.cloudInit.commands[{index}]` is empty", "remove it")
            for line in [command] if isinstance(command, str) else command:
                if _PRIVATE.search(line):
                    self._secret(self._at("commands", index), f"`vm.cloudInit.commands[{index}]` holds a private key")
        for index, name in enumerate(self.cloud.packages):
            if not _PACKAGE.fullmatch(name):
                self._misshapen(
                    self._at("packages", index),
                    f"`{self.report.source.shown(self._scalar('packages', index))}` is no name of a package",
                    "write one name an item",
                )

    def _scalar(self, *path: str | int) -> Scalar:
        found = self._at(*path)
        assert isinstance(found, Scalar)
        return found

    def _once(self, listed: str, index: int, field: str, values: list[str], what: str) -> None:
        first = values.index(values[index])
        if first < index:
            self.report.error(
                "R223",
                self._at(listed, index, field),
                f"the {what} `{values[index]}` is there twice",
                cause="cloud-init would take the two one after the other",
                hint="remove one of them",
                related=((self.report.source.place(self._at(listed, first)), "the other one"),),
            )

    def _check_user(self, index: int, user: GuestUser) -> None:
        for number, key in enumerate(user.ssh_keys):
            node = self._at("users", index, "sshKeys", number)
            if _PRIVATE.search(key):
                self._secret(node, f"`{user.name}` has a private key among `sshKeys`", "write the public key")
            elif not is_public_key(key):
                self._misshapen(
                    node,
                    f"an SSH key of `{user.name}` is none",
                    "write the line of a `.pub` file, such as `ssh-ed25519 AAAA… comment`",
                )

    def _check_file(self, index: int, file: GuestFile) -> None:
        text = file.content
        if file.path in self.own_files:
            self.report.error(
                "R223",
                self._at("files", index, "path"),
                f"`{file.path}` is written for the updates of the guest",
                cause="the later of two files would replace the earlier one",
                hint="take another path, or remove `update`",
            )
        if file.encoding == "b64":
            try:
                text = base64.b64decode("".join(text.split()), validate=True).decode("latin-1")
            except ValueError:
                node = self._at("files", index, "content")
                self._misshapen(node, f"the content of `{file.path}` is no base64", "encode it, or remove `encoding`")
        if _PRIVATE.search(text):
            self._secret(self._at("files", index, "content"), f"the file `{file.path}` holds a private key")
        elif any(has_credential(line) for line in text.split("\n")):
            self.report.warn(
                "R224",
                self._at("files", index, "content"),
                f"the file `{file.path}` seems to hold a password",
                cause=_IN_GIT,
                hint=_ENCRYPTED,
            )

    def _check_user_data(self) -> None:
        free = paths.find(self.node, ("cloudInit", "userData"))
        if not isinstance(free, Mapping):
            return
        for key, _ in free.entries:
            if key.text in OWN_KEYS:
                self.report.error(
                    "R223",
                    key,
                    f"`{key.text}` has a field of its own",
                    cause="cloud-init takes a key once, and `render` writes it",
                    hint=f"write it under `{OWN_KEYS[key.text]}`",
                )
        self._check_secrets(free)

    def _check_secrets(self, node: Node) -> None:
        """Refuse passwords and private keys, wherever they stand."""
        if isinstance(node, Scalar):
            if _PRIVATE.search(node.text):
                self._secret(node, "a private key stands here in plain")
        elif isinstance(node, Sequence):
            for item in node.items:
                self._check_secrets(item)
        elif isinstance(node, Mapping):
            for key, value in node.entries:
                is_given = not isinstance(value, Scalar) or bool(value.text and not value.is_null)
                looks = isinstance(value, Scalar) and has_credential(f"{key.text}: {value.text}")
                if (key.text in _PASSWORDS or looks) and is_given and not _is_boolean(value):
                    self._secret(key, f"`{key.text}` holds a password or key in plain")
                else:
                    self._check_secrets(value)

    def _secret(self, node: Node | None, message: str, hint: str = "") -> None:
        self.report.error(
            "R224",
            node,
            message,
            cause=_IN_GIT,
            hint=hint or _ENCRYPTED,
        )

    def _misshapen(self, node: Node | None, message: str, hint: str) -> None:
        self.report.error("R223", node, message, cause="cloud-init would pass over it", hint=hint)


def _is_boolean(node: Node) -> bool:
    return isinstance(node, Scalar) and not node.style and node.text.lower() in ("true", "false", "yes", "no")


def is_public_key(text: str) -> bool:
    """Whether a text is a line of an `authorized_keys` file: a type, the key that says the same, and a comment."""
    match = _KEY_TYPES.match(text.strip())
    if match is None:
        return False
    try:
        data = base64.b64decode(match["data"], validate=True)
    except ValueError:
        return False
    size = int.from_bytes(data[:4], "big")
    return data[4 : 4 + size] == match["type"].encode() and len(data) > 4 + size


def _user(user: GuestUser) -> dict[str, Any]:
    return {
        "name": user.name,
        "gecos": user.gecos,
        "primary_group": user.primary_group,
        "groups": list(user.groups) or None,
        "shell": user.shell,
        "homedir": user.home,
        "uid": user.uid,
        "system": user.system,
        "sudo": user.sudo,
        "lock_passwd": True,
        "ssh_authorized_keys": list(user.ssh_keys) or None,
    }


def _plain_file(path: str, text: str) -> dict[str, Any]:
    return {"path": path, "content": text}


def _file(file: GuestFile) -> dict[str, Any]:
    owner = file.owner
    made = {snake_case(name): getattr(file, name) for name in ("path", "owner", "permissions", "encoding", "append")}
    # Users other than root are made after the first files are written.
    is_late = owner is not None and any(part != "root" for part in owner.split(":"))
    return {**made, "defer": True if is_late else None, "content": file.content}
