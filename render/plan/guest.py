"""When a guest updates itself in, the packages, files and commands that make it do so out.

The units are ours, so that every distribution runs by one timer; what they run is the distribution's own:
unattended-upgrades, or dnf-automatic, by whose name dnf5 answers too.
"""

from __future__ import annotations

from render.flux.calendar import timer
from render.structs import field, struct

_UNITS = "/etc/systemd/system"


@struct(frozen=True)
class _Family:
    """What a distribution updates with."""

    packages: tuple[str, ...]
    run: tuple[str, ...]
    """The commands of an update."""
    needs_reboot: str
    """A shell condition; false also where it cannot be told."""
    reboot_packages: tuple[str, ...] = ()
    """What the condition needs."""
    files: tuple[tuple[str, str], ...] = ()


# The package's own timers would update at other times than the cadence says.
_APT = """\
APT::Periodic::Update-Package-Lists "0";
APT::Periodic::Unattended-Upgrade "0";
Unattended-Upgrade::Automatic-Reboot "false";
"""
_DEB = _Family(
    packages=("unattended-upgrades",),
    run=("/usr/bin/apt-get -q update", "/usr/bin/unattended-upgrade"),
    needs_reboot="test -e /run/reboot-required",
    files=(("/etc/apt/apt.conf.d/60guest-update", _APT),),
)
# dnf answers 1 both where a reboot is needed and where it fails, so its words decide.
_RPM_REBOOT = "LC_ALL=C dnf needs-restarting -r 2>/dev/null | grep -q 'Reboot is required'"
_RPM_RUN = ("/usr/bin/dnf-automatic --installupdates",)

FAMILIES = {
    "debian": _DEB,
    "ubuntu": _DEB,
    "fedora": _Family(("dnf5-plugin-automatic",), _RPM_RUN, _RPM_REBOOT, ("dnf5-plugins",)),
    "el": _Family(("dnf-automatic",), _RPM_RUN, _RPM_REBOOT, ("dnf-plugins-core",)),
}
"""By the `os` of a service."""


@struct()
class Guest:
    """What cloud-init has to do for updates."""

    packages: list[str] = field(default_factory=list)
    files: list[tuple[str, str]] = field(default_factory=list)
    """Path and text."""
    commands: list[list[str]] = field(default_factory=list)


def updates(os: str, cadence: str, zone: str) -> Guest:
    """Return what makes a guest update on a cadence; raises CadenceError for what is none."""
    family = FAMILIES[os]
    lines = [f"ExecStart={command}" for command in family.run]
    service = _unit(
        [("Description", "Install updates"), ("Wants", "network-online.target"), ("After", "network-online.target")],
        "Service",
        ["Type=oneshot", *lines],
    )
    settings = [f"{key}={value}" for key, value in timer(cadence, zone)]
    if settings[0].startswith("OnCalendar="):
        # A run that the machine slept through is made up for.
        settings.append("Persistent=true")
    return Guest(
        list(family.packages),
        [*family.files, *_pair("guest-update", service, "Time for updates", settings)],
        [["systemctl", "daemon-reload"], _enable("guest-update")],
    )


def reboots(os: str, events: list[str], spread: str) -> Guest:
    """Return what makes a guest restart, if updates need it, up to `spread` after each calendar event."""
    family = FAMILIES[os]
    service = _unit(
        # A restart that falls into an update waits for its end.
        [("Description", "Restart for updates that need it"), ("After", "guest-update.service")],
        "Service",
        ["Type=oneshot", f'ExecStart=/bin/sh -c "if {family.needs_reboot}; then systemctl reboot; fi"'],
    )
    settings = [f"OnCalendar={event}" for event in events]
    settings.append(f"RandomizedDelaySec={spread}")
    return Guest(
        list(family.reboot_packages),
        _pair("guest-reboot", service, "Time for a restart", settings),
        [_enable("guest-reboot")],
    )


def _enable(name: str) -> list[str]:
    return ["systemctl", "enable", "--now", f"{name}.timer"]


def _pair(name: str, service: str, description: str, settings: list[str]) -> list[tuple[str, str]]:
    """Return the files of a service and its timer."""
    text = _unit([("Description", description)], "Timer", settings) + "\n[Install]\nWantedBy=timers.target\n"
    return [(f"{_UNITS}/{name}.service", service), (f"{_UNITS}/{name}.timer", text)]


def _unit(unit: list[tuple[str, str]], section: str, lines: list[str]) -> str:
    head = "".join(f"{key}={value}\n" for key, value in unit)
    return f"[Unit]\n{head}\n[{section}]\n" + "".join(f"{line}\n" for line in lines)
