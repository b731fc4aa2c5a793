"""A run of which nothing has changed is told again; anything that has makes a run of its own."""

from __future__ import annotations

import marshal
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from render.cache import store
from tests import forked
from tests.project import PLATFORM, project

CHART = "source: {chart: {url: https://charts.example, name: web, version: 1.0.0}}"
WEB = f"name: web\n{CHART}\nvalues: {{a: 1}}\n"
DB = f"name: db\n{CHART}\nvalues: {{a: 1}}\n"
REPLAY = ["render.cache.replay", "render.cache.store"]
TOP = Path(__file__).parents[1]


class Repository:
    """A repository whose runs are kept in a cache beside it."""

    def __init__(self, folder: Path) -> None:
        self.made = project(folder / "repository", {"catalog/web.yaml": WEB, "catalog/db.yaml": DB})
        self.folder = self.made.folder
        self.cache = folder / "cache"

    def run(self, *arguments: str) -> bool:
        """Run twice, with the cache and without: both agree; return whether the first was told from the cache."""
        ran, is_replayed = forked.run(self.folder, self.cache, *arguments)
        plain, _ = forked.run(self.folder, None, *arguments)
        if arguments[0] == "check":
            assert ran == plain
        assert (ran.code, ran.out) == (plain.code, plain.out)
        return is_replayed

    def settle(self, *arguments: str) -> None:
        """Build, and look once more, so that a record is there that needs to read nothing."""
        forked.run(self.folder, self.cache, "build", *arguments)
        assert self.run("check", *arguments)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


def test_a_build_is_told_again_from_its_first_run_on(repository: Repository) -> None:
    assert not repository.run("build")

    assert repository.run("build")
    assert repository.run("check")
    assert repository.run("check")


def test_a_run_with_other_options_is_another_run(repository: Repository) -> None:
    repository.settle()

    assert not repository.run("check", "--no-image-automation")
    assert repository.run("check")


def replace_text(path: Path, old: str, new: str, *, keep_times: bool = True) -> None:
    """Write a text of the same size in place, and put the modification time back."""
    before = path.stat()
    text = path.read_text()
    assert text.count(old) >= 1
    assert len(old) == len(new)
    path.write_text(text.replace(old, new))
    if keep_times:
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


Change = Callable[[Path], object]


def by_another_file(top: Path) -> None:
    (top / "catalog/db.yaml").replace(top / "catalog/web.yaml")


def in_a_new_folder(top: Path) -> None:
    (top / "catalog/more").mkdir()
    (top / "catalog/more/new.yaml").write_text(WEB.replace("name: web", "name: new"))


def by_a_link(top: Path) -> None:
    (top / "apps/web/helmrelease.yaml").rename(top / "away.yaml")
    (top / "apps/web/helmrelease.yaml").symlink_to(top / "away.yaml")


def stale(top: Path, path: str = "apps/old.yaml") -> None:
    (top / path).parent.mkdir(parents=True, exist_ok=True)
    (top / path).write_bytes((top / "apps/kustomization.yaml").read_bytes())


CHANGES: dict[str, Change] = {
    "a definition, same size and time": lambda top: replace_text(top / "catalog/web.yaml", "a: 1", "a: 2"),
    "a definition by another file": by_another_file,
    "a new definition": lambda top: (top / "catalog/new.yaml").write_text(WEB.replace("name: web", "name: new")),
    "a definition in a new folder": in_a_new_folder,
    "a definition less": lambda top: (top / "catalog/web.yaml").unlink(),
    "a definition renamed": lambda top: (top / "catalog/web.yaml").rename(top / "catalog/www.yaml"),
    "the platform": lambda top: replace_text(top / "platform.yaml", "test", "text"),
    "a generated file": lambda top: replace_text(top / "apps/web/helmrelease.yaml", "a: 1", "a: 7"),
    "a generated file less": lambda top: (top / "apps/web/helmrelease.yaml").unlink(),
    "a generated file by a link": by_a_link,
    "somebody's file": lambda top: (top / "apps/web/own.yaml").write_text("a: 1\n"),
    "a stale file": stale,
    "a folder that was not there": lambda top: stale(top, "platform/alerts/own.yaml"),
    "a repository around": lambda top: (top.parent / ".git").mkdir(),
    "a repository here": lambda top: (top / ".git").mkdir(),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_has_changed_is_seen(repository: Repository, change: Change) -> None:
    repository.settle()
    change(repository.folder)

    # `check` agrees with a run without a cache, whatever it makes of the change.
    repository.run("check")
    assert repository.run("check") is (forked.run(repository.folder, None, "check")[0].code == 0)


def test_what_does_not_count_is_read_and_told_again(repository: Repository) -> None:
    repository.settle()
    for path in (repository.folder / "catalog/web.yaml", repository.folder / "apps/web/helmrelease.yaml"):
        copy = path.with_name("copy")
        copy.write_bytes(path.read_bytes())
        copy.replace(path)
    (repository.folder / "catalog/README.md").write_text("# Services\n")
    (repository.folder / "catalog/.web.yaml.swp").write_text("")
    (repository.folder / "own").mkdir()

    assert repository.run("check")


def test_a_file_that_was_just_written_is_known_by_its_content(repository: Repository) -> None:
    repository.settle()
    path = repository.folder / "catalog/web.yaml"
    path.write_text(WEB + "# Seen at the same tick of the clock, perhaps.\n")
    forked.start(repository.folder, repository.cache, "build", pause=0).end()

    times = {
        path: signature
        for chunk in store.load(str(next(repository.cache.glob("*.run"))))["chunks"]
        for path, signature in zip(*marshal.loads(chunk)[:2], strict=True)
    }
    assert times["catalog/web.yaml"] is None
    assert times["catalog/db.yaml"] is not None
    assert repository.run("check")


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "cut": lambda data: data[:-7],
    "empty": lambda _: b"",
    "one bit": lambda data: data[:60] + bytes([data[60] ^ 1]) + data[61:],
    "the last byte": lambda data: data[:-1] + bytes([data[-1] ^ 1]),
    "longer": lambda data: data + b"\0",
    "something else": lambda _: b"name: web\n" * 100,
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_record_is_made_anew(repository: Repository, damage: Callable[[bytes], bytes]) -> None:
    repository.settle()
    for path in repository.cache.iterdir():
        path.write_bytes(damage(path.read_bytes()))

    assert not repository.run("check")
    assert repository.run("check")


def test_a_record_that_others_may_write_is_not_believed(repository: Repository) -> None:
    repository.settle()
    for path in repository.cache.iterdir():
        path.chmod(0o666)

    assert not repository.run("check")
    repository.cache.chmod(0o777)
    assert not repository.run("check")


def test_a_record_behind_a_link_is_not_believed(repository: Repository, tmp_path: Path) -> None:
    repository.settle()
    for path in repository.cache.iterdir():
        path.rename(tmp_path / path.name)
        path.symlink_to(tmp_path / path.name)

    assert not repository.run("check")


def test_a_cache_that_cannot_be_written_is_none(repository: Repository) -> None:
    repository.cache.write_text("no folder")

    assert not repository.run("build")
    assert not repository.run("build")
    assert repository.cache.read_text() == "no folder"


def test_no_cache_reads_all_and_keeps_nothing(repository: Repository) -> None:
    forked.run(repository.folder, repository.cache, "build", "--no-cache")

    assert not repository.cache.exists()


def test_warnings_are_told_again(repository: Repository) -> None:
    (repository.folder / "catalog/web.yaml").write_text(WEB.replace("a: 1", "a: yes"))
    repository.settle()
    ran, is_replayed = forked.run(repository.folder, repository.cache, "check", "--fail-on", "warning")
    again, is_told_again = forked.run(repository.folder, repository.cache, "check", "--fail-on", "warning")

    assert "warning[R008]" in ran.err
    assert (ran, ran.code, is_replayed, is_told_again) == (again, 1, False, True)


@pytest.mark.parametrize("style", ["full", "concise", "json", "github"])
def test_every_form_of_the_report_is_told_again(repository: Repository, style: str) -> None:
    repository.settle("--format", style)

    assert repository.run("build", "--format", style)


def test_a_build_waits_for_one_that_writes(repository: Repository) -> None:
    repository.settle()
    code = "import fcntl, os\nfcntl.flock(os.open('.', os.O_RDONLY), fcntl.LOCK_EX)\nprint()\nos.read(0, 1)"
    command = [sys.executable, "-uc", code]
    with subprocess.Popen(command, cwd=repository.folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        going = forked.start(repository.folder, repository.cache, "build")
        time.sleep(0.2)
        assert os.waitpid(going.pid, os.WNOHANG) == (0, 0)
        other.communicate(b"x")
    ran, is_replayed = going.end()

    assert (ran.code, is_replayed) == (0, False)


def test_old_records_go_and_other_files_stay(tmp_path: Path) -> None:
    names = [f"{index:032x}.run" for index in range(5)]
    for index, name in enumerate(names):
        (tmp_path / name).write_text("")
        os.utime(tmp_path / name, ns=(index, index))
    (tmp_path / "notes.run").write_text("mine")
    store.tidy(str(tmp_path), 2)

    assert sorted(path.name for path in tmp_path.iterdir()) == [*names[3:], "notes.run"]


@pytest.mark.parametrize(
    ("environment", "folder"),
    [
        ({"RENDER_CACHE_DIR": "/c", "XDG_CACHE_HOME": "/x", "HOME": "/h"}, "/c"),
        ({"RENDER_CACHE_DIR": "", "XDG_CACHE_HOME": "/x", "HOME": "/h"}, None),
        ({"XDG_CACHE_HOME": "/x", "HOME": "/h"}, "/x/render"),
        ({"XDG_CACHE_HOME": "x", "HOME": "/h"}, "/h/.cache/render"),
        ({"HOME": "/h"}, "/h/.cache/render"),
        ({"HOME": "h"}, None),
        ({}, None),
    ],
)
def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], folder: str | None) -> None:
    for name in ("RENDER_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    assert store.folder() == folder


def test_a_run_of_which_nothing_has_changed_imports_next_to_nothing(tmp_path: Path) -> None:
    project(tmp_path, {"catalog/web.yaml": WEB, "platform.yaml": PLATFORM})
    code = "import sys\nsys.argv = ['render', 'check']\nfrom render.__main__ import main\ncode = main()\n"
    code += "print(code, *sorted(name for name in sys.modules if name.split('.')[0] in ('render', 'click', 'typing')))"
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(TOP), "RENDER_CACHE_DIR": str(tmp_path / "cache")}

    def run(*command: str) -> str:
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
        return done.stdout

    # Twice with the very command: the first keeps a record, once there is nothing to do.
    run(sys.executable, "-S", "-c", "import site; site.main()\n" + code.replace("check", "build"))
    told = run(sys.executable, "-S", "-c", "import site; site.main()\n" + code)

    assert told.split() == [
        "0",
        "render",
        "render.__main__",
        "render.cache",
        "render.cache.replay",
        "render.cache.store",
    ]
