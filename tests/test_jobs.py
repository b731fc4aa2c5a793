"""Any number of processes gives what one gives: the same bytes, and the same diagnostics in the same order."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from render.build import Build, build
from render.files import Seen
from render.model.fields import Record
from render.outcome import MANY_FILES, MOST_JOBS, jobs_for, split
from tests import forked
from tests.processes import group, needs_proc, wait_for
from tests.project import PLATFORM, project
from tests.services import document, platforms, services
from tests.sound import TOP, examples, repository

ERRORS = sorted(path.parent for path in (TOP / "tests" / "errors").glob("*/expected.txt"))
CHART = "source: {chart: {url: https://charts.example, name: web, version: 1.0.0}}\n"


def told(made: Build, seen: Seen) -> dict[str, Any]:
    """All that a build says."""
    return {
        "files": {path: made.files[path] for path in made.files},
        "order": list(made.files),
        "foreign": made.foreign,
        "diagnostics": made.diagnostics,
        "numbers": (made.services, made.sources),
        "names": made.names,
        "kept": made.kept,
        "table": made.table,
        "seen": (seen.files, seen.folders, seen.is_plain),
    }


def agree(folder: Path, catalog: str = "catalog", platform: str = "platform.yaml", **options: Any) -> dict[str, Any]:
    """Build with one, two, three and five processes; return what all of them say."""
    with contextlib.chdir(folder):
        found = []
        for jobs in (1, 2, 3, 5):
            seen = Seen()
            made = build(Path(catalog), Path(platform), jobs=jobs, seen=seen, root=lambda _: Path(), **options)
            found.append(told(made, seen))
    for other in found[1:]:
        assert other == found[0]
    return found[0]


@pytest.mark.parametrize("platform", ["platform.yaml", "platform-airgap.yaml"])
@pytest.mark.parametrize("automation", [True, False])
def test_the_shipped_catalog_is_the_same(platform: str, *, automation: bool) -> None:
    assert agree(TOP, platform=platform, automation=automation)["files"]


@pytest.mark.parametrize("folder", ERRORS, ids=lambda path: path.name)
def test_errors_are_the_same(folder: Path) -> None:
    if (folder / "catalog").is_dir():
        agree(folder)


@examples(25)
@given(st.integers(2, 9), platforms(), st.data())
def test_catalogs_at_random_are_the_same(count: int, platform: Any, data: st.DataObject) -> None:
    names = [f"s{index}" for index in range(count)]
    listed = [data.draw(services(name)) for name in names]
    for one in listed:
        if data.draw(st.booleans()):
            one["dependsOn"] = data.draw(st.lists(st.sampled_from([*names, "nobody"]), max_size=3, unique=True))
    texts = {f"catalog/{index}.yaml": document(one) for index, one in enumerate(listed)}
    if data.draw(st.booleans()):
        texts["catalog/a.yaml"] = texts["catalog/0.yaml"]
    if data.draw(st.booleans()):
        texts["catalog/b.yaml"] = f"name: {names[-1]}\nvalues: [\n"
    with repository({**texts, "platform.yaml": document(platform)}) as made:
        agree(made.folder)


def chain(names: list[str]) -> dict[str, str]:
    """Services of which each depends on the next."""
    pairs = zip(names, [*names[1:], ""], strict=True)
    return {
        f"catalog/{index:02}.yaml": f"name: {name}\n{CHART}" + (f"dependsOn: [{after}]\n" if after else "")
        for index, (name, after) in enumerate(pairs)
    }


def test_dependencies_cross_the_parts(tmp_path: Path) -> None:
    names = [f"s{index}" for index in range(12)]
    made = project(tmp_path, chain(names))
    random.Random(1).shuffle(names)
    other = project(tmp_path / "other", chain(names))

    assert agree(made.folder)["diagnostics"] == []
    assert agree(other.folder)["diagnostics"] == []


def test_a_circle_through_all_parts_is_one_error(tmp_path: Path) -> None:
    files = chain([f"s{index}" for index in range(12)])
    files["catalog/11.yaml"] += "dependsOn: [s0]\n"

    assert [one.code for one in agree(project(tmp_path, files).folder)["diagnostics"]] == ["R202"]


def test_a_name_in_two_parts_is_one_error(tmp_path: Path) -> None:
    files = chain([f"s{index}" for index in range(12)])
    files["catalog/99.yaml"] = f"name: s0\n{CHART}"

    assert [one.code for one in agree(project(tmp_path, files).folder)["diagnostics"]] == ["R203"]


def test_a_broken_file_spares_those_that_depend_on_it(tmp_path: Path) -> None:
    files = chain([f"s{index}" for index in range(12)])
    files["catalog/06.yaml"] += "verison: 1\n"

    assert [one.code for one in agree(project(tmp_path, files).folder)["diagnostics"]] == ["R101"]


def test_a_file_that_is_not_read_may_hold_any_name(tmp_path: Path) -> None:
    files = chain([f"s{index}" for index in range(12)])
    files["catalog/06.yaml"] = "a: [\n"

    assert {one.code for one in agree(project(tmp_path, files).folder)["diagnostics"]} == {"R003"}


def test_notes_on_the_table_are_put_together(tmp_path: Path) -> None:
    platform = PLATFORM.replace("[]", '[{name: docker.io/library/nginx, newTag: "1.2.3"}]')
    files = {
        f"catalog/{index}.yaml": f"name: s{index}\nsource: {{image: nginx:1.0.0, chart: {{url: https://c.example, "
        "name: web, version: 1.0.0}}}}\n".replace("}}}}", "}}")
        for index in range(7)
    }
    made = agree(project(tmp_path, {**files, "platform.yaml": platform}).folder)

    assert [one.code for one in made["diagnostics"] if one.code == "R609"] == ["R609"]


@given(st.integers(0, 60), st.integers(2, 8))
def test_parts_are_all_files_in_order(count: int, parts: int) -> None:
    files = [(str(index), "") for index in range(count)]
    made = split(files, parts)

    assert len(made) == parts
    assert [file for part in made for file in part] == files


def test_small_catalogs_are_left_to_one_process() -> None:
    assert jobs_for(MANY_FILES - 1) == 1
    assert 1 <= jobs_for(100 * MANY_FILES) <= MOST_JOBS


def at_services(act: Callable[[str], object]) -> None:
    """Let something happen where a service is read, whose name it is given."""
    made = Record.__init__

    def make(record: Record, fields: dict[str, Any], node: Any) -> None:
        if "depends_on" in fields:
            act(fields["name"])
        made(record, fields, node)

    Record.__init__ = make  # type: ignore[method-assign]


def slow() -> None:
    """Begin a session of its own, and let each service take long."""
    os.setsid()
    at_services(lambda _: time.sleep(0.2))


def deaf() -> None:
    """Begin a session of its own that takes no interrupts, as a shell starts what it does not wait for."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.setsid()
    at_services(lambda _: time.sleep(0.05))


@needs_proc
def test_a_run_that_takes_no_interrupts_goes_on(tmp_path: Path) -> None:
    folder = project(tmp_path, chain([f"s{index}" for index in range(30)])).folder
    going = forked.start(folder, None, "build", "--jobs", "3", first=deaf)
    wait_for(lambda: len(group(going.pid)) == 3)
    os.killpg(going.pid, signal.SIGINT)
    ran, _ = going.end()

    assert (ran.code, ran.err.splitlines()[-1]) == (0, "30 services, 94 files: 94 changed, 0 unchanged, 0 pruned")
    assert group(going.pid) == []


@needs_proc
def test_a_process_that_hears_of_an_interrupt_first_is_not_told(tmp_path: Path) -> None:
    folder = project(tmp_path, chain([f"s{index}" for index in range(30)])).folder
    going = forked.start(folder, None, "build", "--jobs", "3", first=slow)
    wait_for(lambda: len(group(going.pid)) == 3)
    os.kill(next(pid for pid in group(going.pid) if pid != going.pid), signal.SIGINT)
    ran, _ = going.end()

    assert (ran.code, ran.out, ran.err.strip()) == (1, "", "Aborted!")
    assert group(going.pid) == []
    assert not (folder / "apps").exists()


@needs_proc
def test_an_interrupt_leaves_no_file_and_no_process(tmp_path: Path) -> None:
    folder = project(tmp_path, chain([f"s{index}" for index in range(30)])).folder
    going = forked.start(folder, None, "build", "--jobs", "3", first=slow)
    wait_for(lambda: len(group(going.pid)) == 3)
    os.killpg(going.pid, signal.SIGINT)
    ran, _ = going.end()

    assert (ran.code, ran.out, ran.err.strip()) == (1, "", "Aborted!")
    assert group(going.pid) == []
    assert not (folder / "apps").exists()


@needs_proc
def test_no_process_outlives_one_that_is_killed(tmp_path: Path) -> None:
    folder = project(tmp_path, chain([f"s{index}" for index in range(30)])).folder
    going = forked.start(folder, None, "build", "--jobs", "3", first=slow)
    wait_for(lambda: len(group(going.pid)) == 3)
    os.kill(going.pid, signal.SIGKILL)
    ran, _ = going.end()

    assert ran.code == -signal.SIGKILL
    wait_for(lambda: group(going.pid) == [])
    assert not (folder / "apps").exists()


def failing(act: Callable[[], object]) -> Callable[[], None]:
    """Let something happen where the last service of the catalog is read."""
    return lambda: at_services(lambda name: name == "s29" and act())


def test_a_process_that_is_killed_is_an_error(tmp_path: Path) -> None:
    folder = project(tmp_path, chain([f"s{index}" for index in range(30)])).folder
    kill = failing(lambda: os.kill(os.getpid(), signal.SIGKILL))
    ran, _ = forked.start(folder, None, "build", "--jobs", "3", first=kill).end()

    assert (ran.code, ran.out) == (1, "")
    assert ran.err == (
        "error: a process that planned a part of the catalog has ended early, by signal 9 (Killed); "
        "nothing was written\n"
        "hint: run it again, or with `--jobs 1`, which needs less memory\n"
    )
    assert not (folder / "apps").exists()


def test_a_bug_in_a_process_is_told_as_everywhere(tmp_path: Path) -> None:
    folder = project(tmp_path, chain([f"s{index}" for index in range(30)])).folder
    ran, _ = forked.start(folder, None, "build", "--jobs", "3", first=failing(lambda: 1 // 0)).end()

    assert ran.code == 3
    assert "ZeroDivisionError" in ran.err
    assert "this is a bug in render" in ran.err
    assert not (folder / "apps").exists()


@pytest.mark.parametrize("jobs", ["0", "65", "many"])
def test_a_number_of_processes_is_checked(tmp_path: Path, jobs: str) -> None:
    assert project(tmp_path, {}).run("build", "--jobs", jobs).code == 2
