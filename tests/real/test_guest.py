"""What the real programs of a guest make of a machine's user data: `cloud-init schema` and `systemd-analyze`.

Each is skipped where the program is not installed.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from datetime import UTC, datetime
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import yaml
from cronsim import CronSim, CronSimError
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from render.flux.cadence import CadenceError, cadence
from render.flux.calendar import calendar, timer, timespan
from render.plan.guest import FAMILIES
from tests.project import objects
from tests.services import document, machines
from tests.sound import PLATFORMS, built
from tests.systemd import crons
from tests.trees import GOLDENS, golden_files

CLOUD_INIT = shutil.which("cloud-init")
SYSTEMD = shutil.which("systemd-analyze")
PLATFORM = 'cluster: test\nflux: {version: "2.9"}\n'
START = "2023-12-31 23:59:59 UTC"
SOURCE = {"image": "quay.io/containerdisks/debian:13"}

needs_cloud_init = pytest.mark.skipif(not CLOUD_INIT, reason="cloud-init is not installed")
needs_systemd = pytest.mark.skipif(not SYSTEMD, reason="systemd-analyze is not installed")


def run(*command: str) -> str:
    environment = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL": "C", "TZ": "UTC"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def user_data(things: list[Any]) -> list[str]:
    """Return the user data of all machines among some objects, and of their Secrets."""
    made = []
    for one in things:
        if one["kind"] == "VirtualMachine":
            volumes = one["spec"]["template"]["spec"]["volumes"]
            made += [volume.get("cloudInitNoCloud", {}).get("userData") for volume in volumes]
        elif one["kind"] == "Secret":
            made.append(one["stringData"].get("userdata"))
    return [text for text in made if text]


def of_machine(vm: dict[str, Any], **more: Any) -> list[str]:
    definition = {"name": "desk", "kind": "vm", "source": SOURCE, "vm": vm, **more}
    result = built({"catalog/desk.yaml": document(definition), "platform.yaml": PLATFORM})
    assert not result.failed, result.diagnostics
    return user_data(objects(result))


def check_user_data(text: str, folder: Path) -> None:
    file = folder / "user-data"
    file.write_text(text, encoding="utf-8")
    told = run(str(CLOUD_INIT), "schema", "--config-file", str(file))
    assert "Valid" in told
    assert "deprecat" not in told.lower()


def units(text: str) -> dict[str, str]:
    """Return the systemd units that a user data writes, by their file names."""
    files = yaml.safe_load(text).get("write_files", ())
    return {Path(one["path"]).name: one["content"] for one in files if one["path"].startswith("/etc/systemd/system/")}


SHIPPED = [path for path in golden_files() if path.endswith("/vm.yaml")]


@needs_cloud_init
@pytest.mark.parametrize("path", SHIPPED)
def test_cloud_init_takes_the_user_data_of_the_goldens(path: str, tmp_path: Path) -> None:
    (text,) = user_data(objects((GOLDENS / path).read_text("utf-8")))

    check_user_data(text, tmp_path)


def test_there_is_a_machine_for_each_platform() -> None:
    assert len(SHIPPED) > len(PLATFORMS)


EVERYTHING = {
    "timezone": "Europe/Berlin",
    "locale": "en_GB.UTF-8",
    "users": [
        "default",
        {
            "name": "ada",
            "gecos": "Ada: L",
            "groups": ["sudo", "adm"],
            "primaryGroup": "users",
            "shell": "/bin/bash",
            "home": "/srv/ada",
            "uid": 1234,
            "system": False,
            "sudo": "ALL=(ALL) NOPASSWD:ALL",
            "sshKeys": ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEmT5DtkVx1S9Yx5cTxdRQmXQhcGjo5Kt9b1a8E2T6Ck ada"],
        },
    ],
    "packages": ["nginx"],
    "files": [
        {"path": "/etc/a", "content": "yes\n", "permissions": "0644"},
        {"path": "/etc/b", "content": "aGk=", "encoding": "b64", "append": True},
        {"path": "/srv/c", "content": "", "owner": "ada:users"},
    ],
    "commands": ["echo 'hi' > /tmp/x", ["touch", "yes"]],
    "userData": {"ssh_pwauth": False, "ntp": {"enabled": True}},
}


@needs_cloud_init
@pytest.mark.parametrize("os", sorted(FAMILIES))
def test_cloud_init_takes_every_field(os: str, tmp_path: Path) -> None:
    vm = {"memory": "2Gi", "os": os, "reboot": {"schedule": "0 5 * * SUN"}, "cloudInit": EVERYTHING}
    (text,) = of_machine(vm, update={"cadence": "0 4 1 * MON"})

    check_user_data(text, tmp_path)


@needs_cloud_init
def test_cloud_init_would_tell_of_a_fault(tmp_path: Path) -> None:
    (text,) = of_machine({"memory": "2Gi", "cloudInit": {"userData": {"bootcmd": "not a list"}}})

    with pytest.raises(AssertionError, match="bootcmd"):
        check_user_data(text, tmp_path)


@needs_cloud_init
@settings(max_examples=8, deadline=None)
@given(machines(), st.sampled_from([None, {"cadence": "12h"}, {"cadence": "0 4 1 * MON"}]))
def test_cloud_init_takes_what_random_machines_are_given(
    tmp_path_factory: pytest.TempPathFactory, vm: dict[str, Any], update: Any
) -> None:
    for text in of_machine(vm, **({} if update is None else {"update": update})):
        check_user_data(text, tmp_path_factory.mktemp("data"))


# Timers


@cache
def moments(event: str, number: int) -> list[datetime]:
    """Return the first firings of a calendar event, as systemd tells them."""
    told = run(str(SYSTEMD), "calendar", f"--iterations={number}", f"--base-time={START}", event)
    found = re.findall(r"(?:Next elapse|Iter\. #\d+|Iteration #\d+): \w{3} (\S+ \S+) UTC$", told, re.MULTILINE)
    return [datetime.strptime(moment, "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC) for moment in found]


def check_firings(expression: str, number: int) -> None:
    """Compare the first firings of a cron expression with those of its calendar events, as far as both are known."""
    start = datetime.strptime(START, "%Y-%m-%d %H:%M:%S UTC").replace(tzinfo=UTC)
    wanted = list(islice(CronSim(expression, start), number))
    lists = [moments(event, number) for event in calendar(expression, "UTC")]
    # systemd ends with the year 2199; an event of more firings is known only as far as they were asked for.
    ends = [found[-1] for found in lists if len(found) == number]
    known = min([*ends, wanted[-1], datetime(2199, 1, 1, tzinfo=UTC)])
    told = sorted({moment for found in lists for moment in found})

    assert [moment for moment in wanted if moment <= known] == [moment for moment in told if moment <= known]


NOTABLE = (
    "0 4 * * *", "*/15 * * * *", "30 3 1,15 * MON", "0 0 L * *", "0 0 LW * *", "5 4 * * 5L", "0 2 * * MON#2",
    "0 2 13 * FRI", "0 3 */2 * SUN", "7-59/7 1-5 * 1-3,7 *", "0 0 L,15 * *", "0 0 29 2 *", "0 1 31 * 7", "0 0 * * 1#5",
)  # fmt: skip


@needs_systemd
@pytest.mark.parametrize("expression", NOTABLE)
def test_systemd_fires_when_cron_does(expression: str) -> None:
    check_firings(expression, 60)


@needs_systemd
@settings(max_examples=40, deadline=None)
@given(crons())
def test_systemd_fires_when_random_expressions_do(expression: str) -> None:
    try:
        CronSim(expression, datetime(2024, 1, 1, tzinfo=UTC))
        cadence(expression)
        calendar(expression, "UTC")
    except (CronSimError, CadenceError):
        assume(False)
    check_firings(expression, 40)


@needs_systemd
@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "Etc/GMT+3", ""])
def test_systemd_takes_time_zones(zone: str) -> None:
    for event in calendar("0 2 13 * FRI", zone):
        assert "Next elapse" in run(str(SYSTEMD), "calendar", f"--base-time={START}", event)


@needs_systemd
@settings(max_examples=20, deadline=None)
@given(st.integers(1, 10**10))
def test_systemd_reads_time_spans(milliseconds: int) -> None:
    told = run(str(SYSTEMD), "timespan", timespan(milliseconds))

    assert re.search(rf"^ *\S+: {milliseconds * 1000}$", told, re.MULTILINE), told


@needs_systemd
@pytest.mark.parametrize("os", sorted(FAMILIES))
@pytest.mark.parametrize("cadence_", ["90m", "0 4 1 * MON", "0 0 LW * *"])
def test_systemd_finds_no_fault_in_the_units(os: str, cadence_: str, tmp_path: Path) -> None:
    (text,) = of_machine({"memory": "2Gi", "os": os, "reboot": {"schedule": "@weekly"}}, update={"cadence": cadence_})
    made = units(text)
    assert set(made) == {f"guest-{what}.{kind}" for what in ("update", "reboot") for kind in ("service", "timer")}
    for name, unit in made.items():
        # The programs of other distributions are not on this machine.
        local = re.sub(r"^ExecStart=/usr/bin/\S+", "ExecStart=/bin/true", unit, flags=re.MULTILINE)
        (tmp_path / name).write_text(local, encoding="utf-8")
    for name in made:
        told = run(str(SYSTEMD), "verify", "--man=no", str(tmp_path / name))
        assert str(tmp_path) not in told
        assert "guest-" not in told, told


@needs_systemd
def test_systemd_would_tell_of_a_fault(tmp_path: Path) -> None:
    (tmp_path / "guest-update.timer").write_text("[Timer]\nOnCalendar=now and then\n", encoding="utf-8")

    told = subprocess.run(
        [str(SYSTEMD), "verify", "--man=no", str(tmp_path / "guest-update.timer")],
        capture_output=True,
        text=True,
        check=False,
    )

    assert "guest-" in told.stderr


def test_settings_of_a_timer_are_those_that_are_checked() -> None:
    assert {key for text in ("90m", "@daily") for key, _ in timer(text, "UTC")} == {
        "OnActiveSec",
        "OnUnitActiveSec",
        "OnCalendar",
    }
