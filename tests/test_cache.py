"""A run of which nothing has changed is told again; anything that has makes a run of its own."""

from __future__ import annotations

import marshal
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from render.cache import store
from tests import forked
from tests.compiled import interpreted
from tests.project import PLATFORM, project

CHART = "source: {chart: {url: https://charts.example, name: web, version: 1.0.0}}"
WEB = f"name: web\n{CHART}\nvalues: {{a: 1}}\n"
DB = f"name: db\n{CHART}\nvalues: {{a: 1}}\n"
REPLAY = ["render.cache.replay", "render.cache.store"]
TOP = Path(__file__).parents[1]


def tree_of(folder: Path) -> dict[str, bytes | str]:
    """All files and links below a folder."""
    found = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*")}
    return {
        name: str(path.readlink()) if path.is_symlink() else path.read_bytes()
        for name, path in sorted(found.items())
        if path.is_symlink() or path.is_file()
    }


class Repository:
    """A repository whose runs are kept in a cache beside it."""

    def __init__(self, folder: Path) -> None:
        self.made = project(folder / "repository", {"catalog/web.yaml": WEB, "catalog/db.yaml": DB})
        self.folder = self.made.folder
        self.cache = folder / "cache"

    def run(self, *arguments: str) -> bool:
        """Run with the cache, and in a copy without; both agree. Return whether the first was told from the cache."""
        return self.take(*arguments) == "all"

    def take(self, *arguments: str) -> str:
        """Run with the cache, and in a copy without; both agree. Return what the first took from the cache."""
        copy = self.folder.with_name("copy")
        shutil.copytree(self.folder, copy / self.folder.name, symlinks=True)
        ran, taken = forked.run(self.folder, self.cache, *arguments)
        assert forked.run(copy / self.folder.name, None, *arguments)[0] == ran
        assert tree_of(copy / self.folder.name) == tree_of(self.folder)
        shutil.rmtree(copy)
        return taken

    def settle(self, *arguments: str) -> None:
        """Build, and look once more, so that a record is there that needs to read nothing."""
        forked.run(self.folder, self.cache, "build", *arguments)
        assert self.run("check", *arguments)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


def test_a_build_of_several_processes_is_told_again(pair: Repository) -> None:
    rewrite(pair, "catalog/redis.yaml", "a: 1", "a: 2")

    assert not pair.run("build", "--jobs", "2")
    assert pair.run("build", "--jobs", "2")


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
        for chunk in store.unpacked(store.load_all(str(next(repository.cache.glob("*.run"))))[1])
        for path, signature in zip(*marshal.loads(chunk)[:2], strict=True)
    }
    late = next(repository.cache.glob("*.late"))
    assert store.load(str(late))["entries"]["catalog/web.yaml"][0] is None
    assert times["catalog/db.yaml"] is not None
    assert repository.run("check")

    assert repository.run("check")
    assert store.load(str(late))["entries"]["catalog/web.yaml"][0] is not None
    before = late.stat().st_mtime_ns
    assert repository.run("check")
    assert late.stat().st_mtime_ns == before


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
    ran, taken = forked.run(repository.folder, repository.cache, "check", "--fail-on", "warning")
    again, taken_again = forked.run(repository.folder, repository.cache, "check", "--fail-on", "warning")

    assert "warning[R008]" in ran.err
    assert (ran, ran.code, taken, taken_again) == (again, 1, "", "all")


@pytest.mark.parametrize("style", ["full", "concise", "json", "github"])
def test_every_form_of_the_report_is_told_again(repository: Repository, style: str) -> None:
    repository.settle("--format", style)

    assert repository.run("build", "--format", style)


@pytest.mark.parametrize(
    ("style", "streams", "code", "told"),
    [
        ("full", "2>&-", 0, b""),
        ("json", ">&-", 0, b""),
        ("full", "2>/dev/full", 1, b""),
        ("json", ">/dev/full", 1, b"error: cannot print what there is to say: no space left on device\n"),
        ("json", ">/dev/full 2>&1", 1, b""),
    ],
)
def test_a_stream_that_takes_nothing_is_the_same_to_all_runs(
    repository: Repository, style: str, streams: str, code: int, told: bytes
) -> None:
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(TOP), "RENDER_CACHE_DIR": str(repository.cache)}

    def run(into: str, *options: str) -> tuple[int, bytes, bytes]:
        arguments = [sys.executable, "-m", "render", "build", "--format", style, *options]
        command = ["sh", "-c", f'exec "$@" {into}', "sh", *arguments]
        done = subprocess.run(command, cwd=repository.folder, env=environment, capture_output=True, check=False)
        return done.returncode, done.stdout, done.stderr

    assert run("")[0] == 0
    assert list(repository.cache.glob("*.run"))

    assert run(streams) == run(streams, "--no-cache") == (code, b"", told)


@pytest.mark.parametrize("option", ["-v", "--verbose", "-qv"])
def test_an_option_of_build_is_misuse_of_check(repository: Repository, option: str) -> None:
    repository.run("build", option)
    assert repository.run("build", option)

    assert not repository.run("check", option)
    assert forked.run(repository.folder, repository.cache, "check", option)[0].code == 2


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
    ran, taken = going.end()

    assert (ran.code, taken) == (0, "")


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


REDIS = """\
name: redis
namespace: shared
source:
  image: ghcr.io/example/redis:1.2.3
  chart: {url: https://charts.example, name: redis, version: 1.0.0}
update: {range: 1.x}
values: {a: 1}
"""
APP = f"name: app\ndependsOn: [redis]\n{CHART}\nvalues: {{a: 1}}\n"


@pytest.fixture
def pair(repository: Repository) -> Repository:
    """A service and one that depends on it, built."""
    (repository.folder / "catalog/redis.yaml").write_text(REDIS)
    (repository.folder / "catalog/app.yaml").write_text(APP)
    repository.settle()
    return repository


def rewrite(repository: Repository, name: str, old: str, new: str) -> None:
    path = repository.folder / name
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


LOCAL = {
    "values": ("catalog/redis.yaml", "{a: 1}", "{a: 2, b: {c: d}}"),
    "a tag": ("catalog/redis.yaml", "redis:1.2.3", "redis:1.3.0"),
    "a chart's version": ("catalog/app.yaml", "version: 1.0.0", "version: 1.1.0"),
    "a comment": ("catalog/app.yaml", "name: app", "# The app.\nname: app"),
    "a warning": ("catalog/app.yaml", "{a: 1}", "{a: yes}"),
    "a range": ("catalog/redis.yaml", "1.x", "'>=1.0.0 <2.0.0'"),
}


@interpreted
@pytest.mark.parametrize(("name", "old", "new"), LOCAL.values(), ids=LOCAL)
def test_an_edit_that_concerns_one_service_plans_that_service(pair: Repository, name: str, old: str, new: str) -> None:
    rewrite(pair, name, old, new)

    assert pair.take("check") == "rest"
    assert pair.take("build") == ("all" if new.startswith("#") else "rest")
    assert pair.take("build") == "all"
    assert pair.take("check") == "all"
    rewrite(pair, "catalog/web.yaml", "a: 1", "a: 3")
    assert pair.take("build") == "rest"
    assert pair.take("check") == "all"


WIDE = {
    "a name": ("catalog/app.yaml", "name: app", "name: application"),
    "a name that is taken": ("catalog/app.yaml", "name: app", "name: web"),
    "a name that others need": ("catalog/redis.yaml", "name: redis", "name: cache"),
    "a namespace": ("catalog/app.yaml", "name: app", "name: app\nnamespace: shared"),
    "a namespace that others need": ("catalog/redis.yaml", "namespace: shared", "namespace: other"),
    "a dependency": ("catalog/app.yaml", "[redis]", "[redis, web]"),
    "a dependency on nobody": ("catalog/app.yaml", "[redis]", "[nobody]"),
    "a circle": ("catalog/redis.yaml", "name: redis\n", "name: redis\ndependsOn: [app]\n"),
    "a service less": ("catalog/app.yaml", "name: app", "name: app\nenabled: false"),
    "an object of another": ("catalog/app.yaml", "name: app", "name: app\nobjectName: web\nnamespace: web"),
    "no automation": ("catalog/redis.yaml", "update: {range: 1.x}\n", ""),
    "an error": ("catalog/app.yaml", "values", "valeus"),
    "no YAML": ("catalog/app.yaml", "name: app", "name: [app"),
    "a range that excludes the tag": ("catalog/redis.yaml", "1.x", "0.x"),
    "a chart from elsewhere": ("catalog/app.yaml", "https://charts.example", "https://other.example"),
    "another chart": ("catalog/app.yaml", "name: web", "name: www"),
}


@pytest.mark.parametrize(("name", "old", "new"), WIDE.values(), ids=WIDE)
def test_an_edit_that_reaches_further_reads_all(pair: Repository, name: str, old: str, new: str) -> None:
    rewrite(pair, name, old, new)

    assert pair.take("check") == ""
    assert pair.take("build") == ""


@interpreted
def test_a_value_of_the_bot_is_kept_through_an_edit(pair: Repository) -> None:
    rewrite(pair, "apps/redis/helmrelease.yaml", "1.2.3", "1.5.0")
    assert pair.take("build") == ""
    assert pair.take("check") == "all"
    rewrite(pair, "catalog/redis.yaml", "a: 1", "a: 2")

    assert pair.take("check") == "rest"
    assert pair.take("build") == "rest"
    assert pair.take("check") == "all"
    assert "1.5.0" in (pair.folder / "apps/redis/helmrelease.yaml").read_text()
    rewrite(pair, "catalog/redis.yaml", "redis:1.2.3", "redis:1.6.0")
    assert pair.take("build") == "rest"
    assert pair.take("build") == "all"
    assert "1.6.0" in (pair.folder / "apps/redis/helmrelease.yaml").read_text()


def test_an_edit_beside_a_change_of_the_tree_reads_all(pair: Repository) -> None:
    rewrite(pair, "catalog/redis.yaml", "a: 1", "a: 2")
    rewrite(pair, "apps/web/helmrelease.yaml", "a: 1", "a: 3")

    assert pair.take("check") == ""


@interpreted
def test_several_edits_at_once(pair: Repository) -> None:
    rewrite(pair, "catalog/redis.yaml", "a: 1", "a: 2")
    rewrite(pair, "catalog/web.yaml", "a: 1", "a: 3")

    assert pair.take("build") == "rest"


def test_edits_of_a_service_and_one_that_depends_on_it_read_all(pair: Repository) -> None:
    rewrite(pair, "catalog/redis.yaml", "a: 1", "a: 2")
    rewrite(pair, "catalog/app.yaml", "a: 1", "a: 3")

    assert pair.take("build") == ""


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
@pytest.mark.parametrize("kind", ["edit", "base"])
def test_an_edit_with_a_damaged_cache_reads_all(pair: Repository, kind: str, damage: Callable[[bytes], bytes]) -> None:
    rewrite(pair, "catalog/redis.yaml", "a: 1", "a: 2")
    for path in pair.cache.glob(f"*.{kind}"):
        path.write_bytes(damage(path.read_bytes()))

    # The base may be damaged where none of the edited files lies, which is no harm.
    assert pair.take("build") in (("", "rest") if kind == "base" else ("",))
    assert pair.take("build") == "all"


@interpreted
def test_after_many_edited_files_all_are_read_again(pair: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("render.cache.edits.MOST_NEWER", 1)
    rewrite(pair, "catalog/redis.yaml", "a: 1", "a: 2")
    assert pair.take("build") == "rest"
    rewrite(pair, "catalog/redis.yaml", "a: 2", "a: 3")
    assert pair.take("build") == "rest"
    rewrite(pair, "catalog/app.yaml", "a: 1", "a: 2")
    assert pair.take("build") == ""
    assert pair.take("build") == "all"

    rewrite(pair, "catalog/app.yaml", "a: 2", "a: 3")
    assert pair.take("build") == "rest"


@interpreted
@pytest.mark.parametrize("damage", [*DAMAGE.values(), None], ids=[*DAMAGE, "gone"])
def test_without_what_an_edit_left_all_is_read_again(pair: Repository, damage: Callable[[bytes], bytes] | None) -> None:
    rewrite(pair, "catalog/redis.yaml", "a: 1", "a: 2")
    assert pair.take("build") == "rest"
    (late,) = pair.cache.glob("*.late")
    if damage is None:
        late.unlink()
    else:
        late.write_bytes(damage(late.read_bytes()))

    assert pair.take("build") == ""
    assert pair.take("build") == "all"


@interpreted
def test_what_an_edit_left_does_not_count_for_a_later_record(pair: Repository) -> None:
    rewrite(pair, "catalog/redis.yaml", "a: 1", "a: 2")
    assert pair.take("build") == "rest"
    (late,) = pair.cache.glob("*.late")
    kept = late.read_bytes()
    (pair.folder / "catalog/new.yaml").write_text(WEB.replace("web", "new"))
    assert pair.take("build") == ""
    assert not late.exists()
    late.write_bytes(kept)

    assert pair.take("build") == "all"


@interpreted
def test_an_edit_that_is_taken_back_is_one_more(pair: Repository) -> None:
    for old, new in (("a: 1", "a: 2"), ("a: 2", "a: 1"), ("a: 1", "a: 2")):
        rewrite(pair, "catalog/redis.yaml", old, new)
        assert pair.take("build") == "rest"
        assert pair.take("check") == "all"


@pytest.mark.parametrize("most", [0, 1, 256])
def test_other_times_are_kept_beside_a_record_while_they_are_few(
    repository: Repository, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("render.cache.replay.MOST_LATE", most)
    repository.settle()
    for name in ("web", "db"):
        path = repository.folder / f"catalog/{name}.yaml"
        path.touch()
    (record,) = repository.cache.glob("*.run")
    before = record.read_bytes()

    assert repository.run("check")
    assert (record.read_bytes() == before) is (most == 256)
    assert bool(list(repository.cache.glob("*.late"))) is (most == 256)
    kept = {path.name: path.stat().st_mtime_ns for path in repository.cache.iterdir()}
    assert repository.run("check")
    assert kept == {path.name: path.stat().st_mtime_ns for path in repository.cache.iterdir()}
