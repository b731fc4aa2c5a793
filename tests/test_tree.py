from __future__ import annotations

import contextlib
import errno
import os
import re
import socket
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import render
from render import tree
from render.build import build, digest_of, with_header
from tests.bot import rewrite
from tests.project import PLATFORM, Project, project

DIGEST = "sha256:" + "5c" * 32
WEB = """\
name: web
source:
  image: ghcr.io/example/web:1.2.3
  chart:
    url: oci://charts.example.org/web
    version: "1.0.0"
update:
  range: 1.x
values:
  hosts: [a.example.org, b.example.org]
"""
PLAIN = """\
name: plain
source:
  image: ghcr.io/example/plain:1.2.3
workload:
  ports: [{name: http, containerPort: 8080}]
"""
HELMRELEASE = "apps/web/helmrelease.yaml"
FILES = [
    "apps/kustomization.yaml",
    "apps/namespaces.yaml",
    "apps/web/helmrelease.yaml",
    "apps/web/image-automation.yaml",
    "apps/web/kustomization.yaml",
    "apps/web/source.yaml",
    "flux/kustomization.yaml",
    "flux/kustomizations.yaml",
]


def written(folder: Path, files: dict[str, str] | None = None) -> Project:
    """Return a repository whose tree is written."""
    made = project(folder, files or {"catalog/web.yaml": WEB})
    assert made.run("build").code == 0
    return made


def edit(folder: Path, path: str, old: str, new: str) -> str:
    """Replace a text in a file, and return what it says then."""
    text = (folder / path).read_text()
    assert old in text
    (folder / path).write_text(text.replace(old, new))
    return text.replace(old, new)


def edit_catalog(folder: Path, old: str = "a.example.org", new: str = "c.example.org") -> None:
    edit(folder, "catalog/web.yaml", old, new)


def compare(made: Project, root: Path, **options: Any) -> tree.Changes:
    return tree.compare(made.build(), root, **options)


# What differs


def test_empty_folder_lacks_every_file(tmp_path: Path) -> None:
    changes = compare(project(tmp_path, {"catalog/web.yaml": WEB}), tmp_path)

    assert changes.new == FILES
    assert (changes.changed, changes.stale, changes.unchanged) == ([], [], 0)
    assert not changes.is_clean


def test_written_tree_is_clean(tmp_path: Path) -> None:
    changes = compare(written(tmp_path), tmp_path)

    assert changes.is_clean
    assert changes.unchanged == len(FILES)


def test_changed_and_stale_files_are_told_apart(tmp_path: Path) -> None:
    made = written(tmp_path, {"catalog/web.yaml": WEB, "catalog/plain.yaml": PLAIN})
    edit_catalog(tmp_path)
    (tmp_path / "catalog/plain.yaml").unlink()

    changes = compare(made, tmp_path)

    assert changes.new == []
    # The one Deployment that waits to become ready is gone, and with it what the Kustomization says of that.
    assert changes.changed == [
        "apps/kustomization.yaml",
        "apps/namespaces.yaml",
        HELMRELEASE,
        "flux/kustomizations.yaml",
    ]
    assert changes.stale == ["apps/plain/kustomization.yaml", "apps/plain/workload.yaml"]
    assert changes.diagnostics == []


def test_comparing_writes_nothing(tmp_path: Path) -> None:
    made = project(tmp_path, {"catalog/web.yaml": WEB})

    made.run("check", "--out", "out/tree")

    assert not (tmp_path / "out").exists()


def test_diff_of_a_change_of_line_ends_alone_says_so() -> None:
    assert tree.diff("a.yaml", "a: 1\r\n", "a: 1\n") == "a.yaml: only line ends, or values that are not shown, differ\n"


def test_diff_hides_the_data_of_secrets() -> None:
    text = "apiVersion: v1\nkind: Secret\nstringData:\n  colour: {}\n"

    assert "blue" not in tree.diff("a.yaml", text.format("red"), text.format("blue"))
    assert "blue" not in tree.diff("a.yaml", "", text.format("blue"))


# Pruning


def test_files_of_a_service_that_is_gone_are_deleted_with_its_folder(tmp_path: Path) -> None:
    made = written(tmp_path, {"catalog/web.yaml": WEB, "catalog/plain.yaml": PLAIN})
    (tmp_path / "catalog/plain.yaml").unlink()

    ran = made.run("build")

    assert ran.code == 0
    assert not (tmp_path / "apps/plain").exists()
    assert sorted(made.tree()) == FILES
    assert ran.err.endswith("1 service, 8 files: 3 changed, 5 unchanged, 2 pruned\n")


def test_uninstalled_releases_are_named(tmp_path: Path) -> None:
    made = written(tmp_path, {"catalog/web.yaml": WEB, "catalog/plain.yaml": PLAIN})
    (tmp_path / "catalog/web.yaml").unlink()

    assert "Flux would uninstall the release of `web`\n" in made.run("check").err
    assert "Flux will uninstall the release of `web`\n" in made.run("build").err


def test_folder_that_holds_a_file_of_a_person_stays_with_it(tmp_path: Path) -> None:
    made = written(tmp_path, {"catalog/web.yaml": WEB, "catalog/plain.yaml": PLAIN})
    notes = {"apps/plain/README.md": "mine\n", "apps/plain/secret.sops.yaml": "kind: Secret\n"}
    for path, text in notes.items():
        (tmp_path / path).write_text(text)
    (tmp_path / "catalog/plain.yaml").unlink()

    made.run("build")

    assert {path: data.decode() for path, data in made.tree().items() if "plain" in path} == notes


@pytest.mark.parametrize(
    "path",
    ["apps/mine/helmrelease.yaml", "apps/web/mine.yaml", "configs/mine.yml", "flux/mine.yaml", "platform/mine.yaml"],
)
@pytest.mark.parametrize("text", ["kind: ConfigMap\n", "", "# Generated by render\nkind: X\n", "- not\nyaml: at all"])
def test_file_without_a_header_is_left_alone(tmp_path: Path, path: str, text: str) -> None:
    made = written(tmp_path)
    (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / path).write_text(text)
    edit_catalog(tmp_path)

    ran = made.run("build")

    assert ran.code == 0
    assert (tmp_path / path).read_text() == text


def test_generated_file_outside_the_owned_folders_is_left_alone(tmp_path: Path) -> None:
    made = written(tmp_path)
    copy = tmp_path / "docs/example.yaml"
    copy.parent.mkdir()
    copy.write_bytes((tmp_path / HELMRELEASE).read_bytes())

    made.run("build")

    assert copy.exists()


def test_file_that_the_catalog_names_is_not_deleted_even_under_a_header(tmp_path: Path) -> None:
    named = WEB + "kustomize:\n  resources: [copy.yaml]\n"
    made = project(tmp_path, {"catalog/web.yaml": named})
    copy = tmp_path / "apps/web/copy.yaml"
    copy.parent.mkdir(parents=True)
    copy.write_text(with_header("catalog/other.yaml", "kind: ConfigMap\n"))

    assert made.run("build").code == 0
    assert copy.exists()


def test_stale_file_in_another_folder_of_the_tree_is_deleted(tmp_path: Path) -> None:
    made = written(tmp_path)
    old = tmp_path / "platform/alerts/rules.yml"
    old.parent.mkdir(parents=True)
    old.write_text(with_header("platform.yaml", "kind: PrometheusRule\n"))

    ran = made.run("build")

    assert ran.err.endswith("1 pruned\n")
    assert not (tmp_path / "platform").exists()


def test_renamed_service_moves_to_its_new_folder(tmp_path: Path) -> None:
    made = written(tmp_path)
    edit_catalog(tmp_path, "name: web\n", "name: shop\n")

    ran = made.run("build")

    assert ran.code == 0
    assert not (tmp_path / "apps/web").exists()
    assert (tmp_path / "apps/shop/helmrelease.yaml").exists()
    assert b"- shop\n" in made.tree()["apps/kustomization.yaml"]
    assert "Flux will uninstall the release of `web`\n" in ran.err


def test_last_service_can_go(tmp_path: Path) -> None:
    made = written(tmp_path)
    edit_catalog(tmp_path, "name: web\n", "name: web\nenabled: false\n")

    assert made.run("build").code == 0
    assert made.tree() == {}


def test_an_empty_catalog_deletes_nothing(tmp_path: Path) -> None:
    made = written(tmp_path, {"catalog/web.yaml": WEB, "catalog/plain.yaml": PLAIN})
    before = made.tree()
    for name in ("web", "plain"):
        (tmp_path / f"catalog/{name}.yaml").unlink()

    ran = made.run("build")

    assert ran.code == 1
    assert "error[R517]: everything in the tree would be deleted, and what runs of 2 services\n" in ran.err
    assert made.tree() == before
    (tmp_path / "catalog/web.yaml").write_text(WEB + "enabled: false\n")
    assert made.run("build").code == 0


def test_an_empty_catalog_for_an_empty_tree_is_no_error(tmp_path: Path) -> None:
    assert project(tmp_path, {}).run("build").code == 0


# Files in the way


def test_edited_file_is_refused_with_the_diff_that_would_be_lost(tmp_path: Path) -> None:
    made = written(tmp_path)
    edited = edit(tmp_path, HELMRELEASE, "interval: 1h", "interval: 5m")

    ran = made.run("build")

    assert ran.code == 1
    assert f"error[R503]: the file was edited by hand and would be replaced\n --> {HELMRELEASE}\n" in ran.err
    assert "\n-  interval: 5m\n+  interval: 1h\n" in ran.err
    assert (tmp_path / HELMRELEASE).read_text() == edited


def test_edited_file_of_a_service_that_is_gone_is_not_deleted(tmp_path: Path) -> None:
    made = written(tmp_path, {"catalog/web.yaml": WEB, "catalog/plain.yaml": PLAIN})
    (tmp_path / "catalog/plain.yaml").unlink()
    edit(tmp_path, "apps/plain/workload.yaml", "replicas: 1", "replicas: 2")

    ran = made.run("build")

    assert ran.code == 1
    assert "error[R503]: the file was edited by hand and would be deleted\n --> apps/plain/workload.yaml\n" in ran.err
    assert made.run("build", "--force", "apps/plain/workload.yaml").code == 0
    assert not (tmp_path / "apps/plain").exists()


def test_edit_that_is_undone_is_no_edit(tmp_path: Path) -> None:
    made = written(tmp_path)
    edit(tmp_path, HELMRELEASE, "interval: 1h", "interval: 5m")
    edit(tmp_path, HELMRELEASE, "interval: 5m", "interval: 1h")

    assert made.run("check").code == 0


def test_edit_that_the_catalog_catches_up_with_is_accepted(tmp_path: Path) -> None:
    made = written(tmp_path)
    edit(tmp_path, HELMRELEASE, "- a.example.org", "- c.example.org")
    edit_catalog(tmp_path)

    ran = made.run("build")

    assert ran.code == 0
    assert (tmp_path / HELMRELEASE).read_text().startswith("# Generated")
    assert made.run("check").code == 0


@pytest.mark.parametrize("first", ["", "# note\n", "---\n", "# Generated by render from x; do not edit.\n"])
def test_file_without_a_header_in_the_way_is_refused(tmp_path: Path, first: str) -> None:
    made = written(tmp_path)
    body = (tmp_path / HELMRELEASE).read_text().partition("\n")[2].replace("1h", "5m")
    (tmp_path / HELMRELEASE).write_text(first + body)

    ran = made.run("build")

    assert ran.code == 1
    assert f"error[R504]: a file that is not generated would be replaced\n --> {HELMRELEASE}\n" in ran.err
    assert (tmp_path / HELMRELEASE).read_text() == first + body


def test_unparsable_file_in_the_way_is_refused(tmp_path: Path) -> None:
    made = written(tmp_path)
    (tmp_path / HELMRELEASE).write_bytes(b"\xff\xfe: [\x00")

    ran = made.run("build")

    assert ran.code == 1
    assert "error[R504]" in ran.err
    assert (tmp_path / HELMRELEASE).read_bytes() == b"\xff\xfe: [\x00"


def test_folder_in_the_way_is_told(tmp_path: Path) -> None:
    made = project(tmp_path, {"catalog/web.yaml": WEB})
    (tmp_path / HELMRELEASE).mkdir(parents=True)

    ran = made.run("build")

    assert ran.code == 1
    assert f"error[R508]: a folder is in the place of a file\n --> {HELMRELEASE}\n" in ran.err
    assert list(made.tree()) == []


@pytest.mark.parametrize("path", [HELMRELEASE, "apps/kustomization.yaml"])
def test_conflict_markers_have_their_own_diagnostic(tmp_path: Path, path: str) -> None:
    made = written(tmp_path)
    text = (tmp_path / path).read_text()
    lines = text.splitlines(keepends=True)
    mine = "".join(
        [*lines[:2], "<<<<<<< HEAD\n", *lines[2:4], "=======\n", *lines[2:3], ">>>>>>> theirs\n", *lines[4:]]
    )
    (tmp_path / path).write_text(mine)

    ran = made.run("build")

    assert ran.code == 1
    assert f"error[R505]: the file holds conflict markers of a merge\n --> {path}:3\n" in ran.err
    assert "R503" not in ran.err
    (tmp_path / path).write_text(text)
    assert made.run("check").code == 0


def test_lines_of_equals_signs_are_no_conflict(tmp_path: Path) -> None:
    banner = WEB + "  motd: |\n    =======\n    >>>>>>> hello\n"
    made = written(tmp_path, {"catalog/web.yaml": banner})
    edit_catalog(tmp_path)

    assert made.run("build").code == 0


# What is no edit


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda data: data.replace(b"\n", b"\r\n"), id="crlf"),
        pytest.param(lambda data: b"\xef\xbb\xbf" + data, id="bom"),
        pytest.param(lambda data: b"\xef\xbb\xbf" + data.replace(b"\n", b"\r\n"), id="both"),
    ],
)
def test_other_line_ends_and_a_byte_order_mark_are_no_edit(tmp_path: Path, change: Callable[[bytes], bytes]) -> None:
    made = written(tmp_path)
    before = made.tree()
    for path, data in before.items():
        (tmp_path / path).write_bytes(change(data))

    ran = made.run("build")

    assert ran.code == 0
    assert made.tree() == before


def test_formatter_is_no_edit(tmp_path: Path) -> None:
    made = written(tmp_path)
    before = made.tree()
    text = (tmp_path / HELMRELEASE).read_text()
    (tmp_path / HELMRELEASE).write_text(text.replace("    - ", "      - ").replace("interval: 1h", 'interval: "1h"'))

    assert made.run("build").code == 0
    assert made.tree() == before


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("interval: 1h", "interval: 5m"),
        ("interval: 1h", "interval: 1h\n  suspend: true"),
        ("- a.example.org", "- a.example.org\n    - d.example.org"),
        (' # {"$imagepolicy": "flux-system:web:tag"}', ""),
        ("flux-system:web:tag", "flux-system:web"),
    ],
)
def test_formatted_file_that_says_something_else_is_an_edit(tmp_path: Path, old: str, new: str) -> None:
    made = written(tmp_path)
    edit(tmp_path, HELMRELEASE, "    - ", "      - ")
    edit(tmp_path, HELMRELEASE, old, new)

    ran = made.run("build")

    assert ran.code == 1
    assert ran.err.count("error[") == 1
    assert "error[R503]" in ran.err


def test_formatted_file_without_a_header_is_foreign(tmp_path: Path) -> None:
    made = written(tmp_path)
    text = (tmp_path / HELMRELEASE).read_text()
    (tmp_path / HELMRELEASE).write_text(text.partition("\n")[2])

    assert "error[R504]" in made.run("build").err


def test_formatted_tree_upgrades_and_reinstalls_nothing(tmp_path: Path) -> None:
    made = written(tmp_path, {"catalog/web.yaml": WEB, "platform.yaml": TABLE})
    before = made.tree()
    for path, data in before.items():
        text = data.decode().replace("\nspec:\n", "\n\n# what it is\nspec:\n").replace("name: web\n", "name:   'web'\n")
        (tmp_path / path).write_text(text)

    ran = made.run("build")

    assert ran.code == 0
    assert ran.err == "1 service, 8 files: 5 changed, 3 unchanged, 0 pruned\n"
    assert made.tree() == before


@pytest.mark.parametrize("tag", ["1.2.4", "1.10.0"])
def test_bots_commit_is_no_edit_and_stays(tmp_path: Path, tag: str) -> None:
    made = written(tmp_path)
    policies = [{"namespace": "flux-system", "name": "web", "image": "ghcr.io/example/web", "tag": tag}]
    for path in FILES:
        moved = rewrite((tmp_path / path).read_bytes(), policies)
        if moved is not None:
            (tmp_path / path).write_text(moved)
    assert f'tag: "{tag}"' in (tmp_path / HELMRELEASE).read_text()
    before = made.tree()

    ran = made.run("build")

    assert ran.code == 0
    assert made.tree() == before
    assert f"kept ghcr.io/example/web:{tag} of `web` (the catalog says ghcr.io/example/web:1.2.3)\n" in ran.err


def test_bots_commit_changes_one_line(tmp_path: Path) -> None:
    made = written(tmp_path)
    policies = [{"namespace": "flux-system", "name": "web", "image": "ghcr.io/example/web", "tag": "1.9.0"}]
    before = made.tree()[HELMRELEASE].decode()

    moved = rewrite(before, policies)

    assert moved is not None
    changed = [new for old, new in zip(before.splitlines(), moved.splitlines(), strict=True) if old != new]
    assert changed == ['      tag: "1.9.0" # {"$imagepolicy": "flux-system:web:tag"}']


@given(st.text(alphabet="abz0189.-_", max_size=20), st.text(alphabet="abz0189.-_", max_size=20))
def test_digest_of_a_file_does_not_depend_on_marked_values(one: str, other: str) -> None:
    body = 'image:\n  tag: "{}" # {{"$imagepolicy": "flux-system:web:tag"}}\n  pullPolicy: Always\n'

    assert digest_of(body.format(one)) == digest_of(body.format(other))


@given(st.text(alphabet="abz0189.-_", max_size=20), st.text(alphabet="abz0189.-_", max_size=20))
def test_digest_of_a_file_depends_on_every_other_value(one: str, other: str) -> None:
    body = 'image:\n  tag: "{}"\n  pullPolicy: Always\n'

    assert (digest_of(body.format(one)) == digest_of(body.format(other))) is (one == other)


def test_digest_depends_on_the_marker() -> None:
    body = 'tag: "1" # {{"$imagepolicy": "flux-system:{}:tag"}}\n'

    assert digest_of(body.format("web")) != digest_of(body.format("other"))


# How files are written


class Recorder:
    """Records what is done to files below a folder, through the calls that do it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.steps: list[tuple[str, str]] = []
        self.temporary: list[str] = []
        real_open, real_replace, real_unlink = os.open, os.replace, os.unlink

        def opened(path: Any, flags: int, *rest: Any, **named: Any) -> int:
            if flags & os.O_CREAT:
                self.temporary.append(Path(path).name)
            return real_open(path, flags, *rest, **named)

        def replaced(source: Any, target: Any, **named: Any) -> None:
            self.steps.append(("write", str(target)))
            real_replace(source, target, **named)

        def unlinked(path: Any, **named: Any) -> None:
            self.steps.append(("delete", str(path)))
            real_unlink(path, **named)

        monkeypatch.setattr(os, "open", opened)
        monkeypatch.setattr(os, "replace", replaced)
        monkeypatch.setattr(os, "unlink", unlinked)


def test_contents_come_before_kustomizations_and_deletions_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = written(tmp_path, {"catalog/plain.yaml": PLAIN})
    (tmp_path / "catalog/plain.yaml").unlink()
    (tmp_path / "catalog/web.yaml").write_text(WEB)
    recorder = Recorder(monkeypatch)

    assert made.run("build").code == 0

    what = [
        "delete" if step == "delete" else "kustomization" if path.endswith("kustomization.yaml") else "content"
        for step, path in recorder.steps
    ]
    assert what == sorted(what, key=["content", "kustomization", "delete"].index)
    assert set(what) == {"content", "kustomization", "delete"}


def test_temporary_files_have_names_that_no_reader_of_the_tree_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = Recorder(monkeypatch)

    written(tmp_path)

    assert len(recorder.temporary) == len(FILES)
    assert not any(name.endswith((".yaml", ".yml")) for name in recorder.temporary)


def test_written_files_are_readable_by_others(tmp_path: Path) -> None:
    umask = os.umask(0o022)
    try:
        written(tmp_path)
    finally:
        os.umask(umask)

    assert stat.S_IMODE((tmp_path / HELMRELEASE).stat().st_mode) == 0o644


def test_lock_is_no_file_of_the_tree(tmp_path: Path) -> None:
    made = written(tmp_path)

    assert sorted(made.tree()) == FILES
    assert not list(tmp_path.rglob(".*"))


def test_builds_at_the_same_time_leave_one_sound_tree(tmp_path: Path) -> None:
    made = project(tmp_path, {f"catalog/{i}.yaml": WEB.replace("web", f"web{i}") for i in range(8)})
    top = str(Path(render.__file__).parent.parent)
    command = [sys.executable, "-m", "render", "build"]
    environment = {**os.environ, "PYTHONPATH": top}

    running = [
        subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True) for _ in range(3)
    ]
    told = [process.communicate()[1] for process in running]

    assert [process.returncode for process in running] == [0, 0, 0], told
    assert made.run("check").code == 0
    assert len(made.tree()) == 4 + 8 * 4


class Full:
    """Fails a call of the operating system from the n-th time on, as a full disk does."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, name: str, after: int, error: BaseException) -> None:
        real = getattr(os, name)
        self.calls = 0

        def limited(*arguments: Any, **named: Any) -> Any:
            self.calls += 1
            if self.calls > after:
                raise error
            return real(*arguments, **named)

        monkeypatch.setattr(os, name, limited)


def versions(folder: Path, made: Project) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """Return the tree as it stands, and as the catalog would have it; both are told apart by every release."""
    before = made.tree()
    for path in (folder / "catalog").iterdir():
        path.write_text(path.read_text().replace("a.example.org", "c.example.org"))
    return before, {path: text.encode() for path, text in made.build().files.items()}


@pytest.mark.parametrize("name", ["write", "replace"])
@pytest.mark.parametrize("after", range(6))
def test_full_disk_leaves_each_file_old_or_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, after: int
) -> None:
    services = {f"catalog/{i}.yaml": WEB.replace("web", f"web{i}") for i in range(6)}
    made = written(tmp_path, {**services, "catalog/gone.yaml": PLAIN})
    (tmp_path / "catalog/gone.yaml").unlink()
    before, expected = versions(tmp_path, made)

    with monkeypatch.context() as patch:
        Full(patch, name, after, OSError(errno.ENOSPC, "No space left on device"))
        ran = made.run("build")

    found = made.tree()
    assert ran.code == 1
    assert re.search(r"error\[R508\]: cannot write the file: no space left on device\n --> apps/\S+\n", ran.err)
    assert set(found) == set(before)
    assert all(data in (before[path], expected.get(path)) for path, data in found.items())
    assert sum(found[path] != before[path] for path in found) == after
    assert made.run("build").code == 0
    assert made.tree() == expected


def test_an_empty_file_is_no_obstacle(tmp_path: Path) -> None:
    # What a loss of power may leave of a file that was just made.
    made = written(tmp_path)
    before = made.tree()
    for path, content in ((HELMRELEASE, b""), ("apps/kustomization.yaml", b"\0" * 512)):
        (tmp_path / path).write_bytes(content)

    assert made.run("build").code == 0
    assert made.tree() == before


def test_a_folder_is_synced_once_after_the_last_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = written(tmp_path)
    edit_catalog(tmp_path)
    recorder = Recorder(monkeypatch)
    synced: list[os.stat_result] = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.fstat(handle)))

    made.run("build")
    made.run("build")

    assert [step for step, _ in recorder.steps] == ["write"]
    assert [one.st_ino for one in synced] == [(tmp_path / "apps/web").stat().st_ino]


@pytest.mark.parametrize("number", [errno.EINVAL, errno.EIO])
def test_only_a_file_system_that_cannot_sync_folders_is_forgiven(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    made = project(tmp_path, {"catalog/web.yaml": WEB})

    with monkeypatch.context() as patch:
        Full(patch, "fsync", 0, OSError(number, os.strerror(number)))
        ran = made.run("build")

    assert ran.code == (1 if number == errno.EIO else 0)
    assert ("error[R508]: cannot write the file: input/output error" in ran.err) is (number == errno.EIO)


def test_interrupted_run_leaves_no_temporary_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = written(tmp_path)
    before, expected = versions(tmp_path, made)

    with monkeypatch.context() as patch:
        Full(patch, "replace", 0, KeyboardInterrupt())
        code = made.run("build").code

    assert code != 0
    assert made.tree() == before
    assert made.run("build").code == 0
    assert made.tree() == expected


def test_temporary_file_of_a_killed_run_is_no_obstacle(tmp_path: Path) -> None:
    made = written(tmp_path)
    _, expected = versions(tmp_path, made)
    (tmp_path / "apps/web/.helmrelease.yaml.render-tmp").write_text("half a fi")

    assert made.run("build").code == 0
    assert made.tree() == expected


def test_link_in_place_of_a_temporary_file_is_not_followed(tmp_path: Path) -> None:
    made = written(tmp_path)
    versions(tmp_path, made)
    victim = tmp_path / "victim.txt"
    victim.write_text("mine\n")
    (tmp_path / "apps/web/.helmrelease.yaml.render-tmp").symlink_to(victim)

    made.run("build")

    assert victim.read_text() == "mine\n"


# Links and other things in the way


@pytest.mark.parametrize("command", ["build", "check"])
@pytest.mark.parametrize(
    ("made_by", "path", "told"),
    [
        ("link", "apps", "R506]: a symbolic link is in the place of a folder"),
        ("link", "apps/web", "R506]: a symbolic link is in the place of a folder"),
        ("link", HELMRELEASE, "R506]: a symbolic link is in the place of a file"),
        ("file", "apps", "R508]: a file is in the place of a folder"),
        ("file", "apps/web", "R508]: a file is in the place of a folder"),
        ("folder", HELMRELEASE, "R508]: a folder is in the place of a file"),
        ("socket", HELMRELEASE, "R508]: a special file is in the place of a file"),
        ("socket", "apps/web", "R508]: a special file is in the place of a folder"),
    ],
)
def test_what_is_in_the_way_is_told_once(tmp_path: Path, command: str, made_by: str, path: str, told: str) -> None:
    made = project(tmp_path, {"catalog/web.yaml": WEB})
    place = tmp_path / path
    place.parent.mkdir(parents=True, exist_ok=True)
    if made_by == "link":
        place.symlink_to(tmp_path / "nowhere")
    elif made_by == "file":
        place.write_text("mine\n")
    elif made_by == "folder":
        place.mkdir()
    else:
        with contextlib.chdir(place.parent), socket.socket(socket.AF_UNIX) as one:
            one.bind(place.name)

    ran = made.run(command)

    assert ran.code == 1
    assert ran.err.count("error[") == 1
    assert f"error[{told}\n --> {path}\n" in ran.err
    assert not (tmp_path / "flux/kustomization.yaml").exists()


def test_a_link_at_a_folder_that_holds_an_owned_one_is_told(tmp_path: Path) -> None:
    automated = PLATFORM + "imageAutomation: {enabled: true, author: {email: bot@example.org}}\n"
    made = project(tmp_path, {"catalog/web.yaml": WEB, "platform.yaml": automated})
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "platform").symlink_to("elsewhere")

    ran = made.run("build")

    assert ran.code == 1
    assert "error[R506]: a symbolic link is in the place of a folder\n --> platform\n" in ran.err
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_stale_file_behind_a_link_is_not_deleted(tmp_path: Path) -> None:
    made = written(tmp_path)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "old.yaml").write_text(with_header("catalog/old.yaml", "kind: ConfigMap\n"))
    (tmp_path / "apps/old").symlink_to(outside)
    (tmp_path / "apps/web/linked.yaml").symlink_to(outside / "old.yaml")

    made.run("build")

    assert (outside / "old.yaml").exists()
    assert (tmp_path / "apps/web/linked.yaml").is_symlink()


def test_root_itself_may_be_a_link(tmp_path: Path) -> None:
    made = project(tmp_path, {"catalog/web.yaml": WEB})
    (tmp_path / "real").mkdir()
    (tmp_path / "out").symlink_to(tmp_path / "real")

    ran = made.run("build", "--out", "out")

    assert ran.code == 0
    assert (tmp_path / "real" / HELMRELEASE).exists()


# --force


def test_force_of_a_foreign_file_takes_it_over(tmp_path: Path) -> None:
    made = written(tmp_path)
    for path in (HELMRELEASE, "apps/web/source.yaml"):
        (tmp_path / path).write_text("mine: true\n")

    refused = made.run("build", "--force", HELMRELEASE)

    assert refused.code == 1
    assert "--> apps/web/source.yaml" in refused.err
    assert f"--> {HELMRELEASE}" not in refused.err
    assert (tmp_path / HELMRELEASE).read_text() == "mine: true\n"
    assert made.run("build", "--force", HELMRELEASE, "--force", "apps/web/source.yaml").code == 0
    assert made.run("check").code == 0


def test_force_does_not_write_through_a_link(tmp_path: Path) -> None:
    made = written(tmp_path)
    target = tmp_path / "outside.yaml"
    target.write_text("mine: true\n")
    (tmp_path / HELMRELEASE).unlink()
    (tmp_path / HELMRELEASE).symlink_to(target)

    ran = made.run("build", "--force", HELMRELEASE)

    assert ran.code == 1
    assert "error[R506]" in ran.err
    assert target.read_text() == "mine: true\n"


def test_force_does_not_delete_a_foreign_file(tmp_path: Path) -> None:
    made = written(tmp_path)
    (tmp_path / "apps/web/mine.yaml").write_text("mine: true\n")

    made.run("build", "--force", "apps/web/mine.yaml")

    assert (tmp_path / "apps/web/mine.yaml").exists()


# What a change does to what runs


REINSTALLS = [
    ("catalog/web.yaml", "name: web\n", "name: web\nnamespace: shop\n"),
    ("catalog/web.yaml", "name: web\n", "name: web\nobjectName: shop\n"),
    ("catalog/web.yaml", "update:\n", "release:\n  releaseName: shop\nupdate:\n"),
    ("catalog/web.yaml", "update:\n", "release:\n  targetNamespace: shop\nupdate:\n"),
    ("catalog/web.yaml", "update:\n", "release:\n  storageNamespace: shop\nupdate:\n"),
    ("catalog/web.yaml", "charts.example.org/web", "charts.example.org/shop"),
    ("platform.yaml", "registries:\n", "defaults:\n  namespace: shop\nregistries:\n"),
]


@pytest.mark.parametrize(("path", "old", "new"), REINSTALLS)
def test_reinstall_is_refused_until_it_is_allowed(tmp_path: Path, path: str, old: str, new: str) -> None:
    made = written(tmp_path, {"catalog/web.yaml": WEB, "platform.yaml": PLATFORM})
    before = made.tree()
    edit(tmp_path, path, old, new)

    refused, checked = made.run("build"), made.run("check")

    assert refused.code == checked.code == 1
    assert refused.err.count("error[R511]") == checked.err.count("error[R511]") == 1
    assert "--allow-reinstall web" in refused.err
    assert made.tree() == before
    assert made.run("build", "--allow-reinstall", "web").code == 0
    assert made.run("check").code == 0


@pytest.mark.parametrize("field", ["namespace: shop", "objectName: shop"])
def test_another_name_or_namespace_of_a_workload_is_refused_until_it_is_allowed(tmp_path: Path, field: str) -> None:
    made = written(tmp_path, {"catalog/plain.yaml": PLAIN})
    edit(tmp_path, "catalog/plain.yaml", "name: plain\n", f"name: plain\n{field}\n")

    ran = made.run("build")

    assert ran.code == 1
    assert ran.err.count("error[R511]") == 1
    name = "name" if "objectName" in field else "namespace"
    assert f"the `{name}` of the workload changes from `plain` to `shop`\n" in ran.err
    assert made.run("build", "--allow-reinstall", "plain").code == 0


@pytest.mark.parametrize("edited", [False, True])
def test_refused_file_is_not_judged_beside(tmp_path: Path, edited: bool) -> None:
    made = written(tmp_path)
    text = (
        "mine: true\n" if not edited else (tmp_path / HELMRELEASE).read_text().replace("namespace: web", "namespace: x")
    )
    (tmp_path / HELMRELEASE).write_text(text)

    ran = made.run("build")

    assert ran.err.count("error[") == 1
    assert ("R503" if edited else "R504") in ran.err


def test_force_of_a_moved_release_still_asks_for_the_reinstall(tmp_path: Path) -> None:
    made = written(tmp_path)
    edit(tmp_path, HELMRELEASE, "namespace: web", "namespace: x")

    ran = made.run("build", "--force", HELMRELEASE)

    assert (
        "error[R511]: `web` would be uninstalled and installed again: `namespace` changes from `x` to `web`" in ran.err
    )
    assert made.run("build", "--force", HELMRELEASE, "--allow-reinstall", "web").code == 0


SHARED = """\
cluster: test
flux:
  version: "2.9"
charts:
  base: {url: oci://charts.example.org/web, version: "1.0.0"}
registries:
  imageOverrides: []
"""
FROM_SHARED = WEB.replace('url: oci://charts.example.org/web\n    version: "1.0.0"', "repository: base")


def test_another_chart_of_a_shared_source_reinstalls_every_release_of_it(tmp_path: Path) -> None:
    made = written(tmp_path, {"catalog/web.yaml": FROM_SHARED, "catalog/own.yaml": PLAIN, "platform.yaml": SHARED})
    edit(tmp_path, "platform.yaml", "charts.example.org/web", "charts.example.org/shop")

    ran = made.run("build")

    assert ran.code == 1
    assert ran.err.count("error[R511]") == 1
    assert "`web` would be uninstalled and installed again: the chart's name changes from `web` to `shop`" in ran.err
    assert "--> apps/sources/base.yaml\n" in ran.err
    assert made.run("build", "--allow-reinstall", "web").code == 0


@pytest.mark.parametrize(("chart", "code"), [("web", 0), ("shop", 1)])
def test_move_to_a_shared_source_is_a_reinstall_only_with_another_chart(tmp_path: Path, chart: str, code: int) -> None:
    platform = SHARED.replace("charts.example.org/web", f"charts.example.org/{chart}")
    made = written(tmp_path, {"catalog/web.yaml": WEB, "platform.yaml": platform})
    (tmp_path / "catalog/web.yaml").write_text(FROM_SHARED)

    ran = made.run("build")

    assert (ran.code, ran.err.count("error[R511]")) == (code, code)


@pytest.mark.parametrize(
    ("release", "code"), [("releaseName: web", 0), ("storageNamespace: web", 0), ("targetNamespace: web", 1)]
)
def test_a_default_that_is_spelled_out_is_no_reinstall(tmp_path: Path, release: str, code: int) -> None:
    # A target namespace goes into the default of the release's name, even if it is the release's own.
    made = written(tmp_path)
    edit(tmp_path, "catalog/web.yaml", "update:\n", f"release: {{{release}}}\nupdate:\n")

    assert made.run("build").code == code


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('version: "1.0.0"', 'version: "2.0.0"'),
        ("charts.example.org/web", "mirror.example.org/charts/web"),
        ("values:\n", "values:\n  releaseName: shop\n  namespace: shop\n"),
    ],
)
def test_other_changes_are_no_reinstall(tmp_path: Path, old: str, new: str) -> None:
    made = written(tmp_path)
    edit(tmp_path, "catalog/web.yaml", old, new)

    assert made.run("build").code == 0


TABLE = PLATFORM.replace(" []", "\n    - name: ghcr.io/example/web\n      newName: registry.corp.example/web")


def test_table_that_vanishes_without_a_word_is_refused(tmp_path: Path) -> None:
    made = written(tmp_path, {"catalog/web.yaml": WEB, "platform.yaml": TABLE})
    (tmp_path / "platform.yaml").write_text(PLATFORM.partition("registries")[0])

    assert "error[R509]" in made.run("build").err

    (tmp_path / "platform.yaml").write_text(PLATFORM)
    ran = made.run("build")
    assert ran.code == 0
    assert "the override table changes: 1 release upgraded\n" in ran.err


def test_change_of_the_table_counts_the_releases_it_upgrades(tmp_path: Path) -> None:
    files = {"catalog/web.yaml": WEB, "catalog/db.yaml": WEB.replace("web", "db"), "catalog/plain.yaml": PLAIN}
    made = written(tmp_path, {**files, "platform.yaml": TABLE})
    edit(tmp_path, "platform.yaml", "registry.corp.example", "mirror.corp.example")

    assert "the override table changes: 2 releases would be upgraded\n" in made.run("check").err
    assert "the override table changes: 2 releases upgraded\n" in made.run("build").err
    assert "the override table changes" not in made.run("build").err


def test_deleted_workloads_are_named_even_quietly(tmp_path: Path) -> None:
    made = written(tmp_path, {"catalog/web.yaml": WEB, "catalog/plain.yaml": PLAIN})
    (tmp_path / "catalog/plain.yaml").unlink()

    assert made.run("check").err.startswith("Flux would delete the workload of `plain`\n")
    assert made.run("build", "--quiet").err == "Flux will delete the workload of `plain`\n"


def test_blanks_at_the_end_of_a_header_are_no_edit(tmp_path: Path) -> None:
    made = written(tmp_path)
    path = tmp_path / "apps/web/helmrelease.yaml"
    path.write_text(path.read_text().replace("\n", " \n", 1))

    assert made.run("build").code == 0


# Files that change while a build runs


@pytest.mark.parametrize("goes", [False, True])
def test_a_bots_commit_that_comes_while_a_build_runs_is_not_lost(tmp_path: Path, goes: bool) -> None:
    made = written(tmp_path)
    edit_catalog(tmp_path)
    with contextlib.chdir(tmp_path):
        rendered = build(Path("catalog"), Path("platform.yaml"), root=lambda _: Path())
        if goes:
            edit(tmp_path, HELMRELEASE, 'tag: "1.2.3"', 'tag: "1.9.0"')
        changes = tree.compare(rendered, Path())

    assert [one.code for one in changes.diagnostics] == (["R518"] if goes else [])
    assert made.run("build").code == 0
    assert ('tag: "1.9.0"' in (tmp_path / HELMRELEASE).read_text()) is goes


# Services that are renamed, while the object stays


STAYS = [
    pytest.param(WEB, "objectName: web\nnamespace: web\n", "helmrelease", "release", id="release"),
    pytest.param(
        PLAIN.replace("plain", "web") + "  probes: {readiness: {httpGet: {path: /, port: http}}}\n",
        "objectName: web\nnamespace: web\n",
        "workload",
        "workload",
        id="workload",
    ),
]


@pytest.mark.parametrize(("service", "fields", "stem", "kind"), STAYS)
def test_an_object_that_another_service_takes_over_is_not_uninstalled(
    tmp_path: Path, service: str, fields: str, stem: str, kind: str
) -> None:
    made = written(tmp_path, {"catalog/web.yaml": service})
    edit(tmp_path, "catalog/web.yaml", "name: web\n", f"name: shop\n{fields}")

    checked, ran = made.run("check"), made.run("build")

    assert f"`shop` would take over the {kind} of `web`, which goes on running\n" in checked.err
    assert ran.code == 0
    assert f"`shop` takes over the {kind} of `web`, which goes on running\n" in ran.err
    assert "Flux will" not in ran.err
    assert (tmp_path / f"apps/shop/{stem}.yaml").exists()
    assert not (tmp_path / "apps/web").exists()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("charts.example.org/web", "charts.example.org/other"),
        ("update:\n", "release:\n  releaseName: other\nupdate:\n"),
        ("update:\n", "release:\n  storageNamespace: other\nupdate:\n"),
    ],
)
def test_a_release_that_is_taken_over_may_not_be_installed_anew(tmp_path: Path, old: str, new: str) -> None:
    made = written(tmp_path)
    edit(tmp_path, "catalog/web.yaml", "name: web\n", "name: shop\nobjectName: web\nnamespace: web\n")
    edit(tmp_path, "catalog/web.yaml", old, new)

    ran = made.run("build")

    assert ran.code == 1
    assert "error[R511]: `shop` would be uninstalled and installed again" in ran.err
    assert made.run("build", "--allow-reinstall", "shop").code == 0


# Services that go to another Flux Kustomization


def divided(how: str) -> str:
    return PLATFORM.replace('"2.9"\n', f'"2.9"\n  kustomizations: {how}\n')


@pytest.mark.parametrize("before", ["all", "namespace", "service"])
@pytest.mark.parametrize("after", ["all", "namespace", "service"])
def test_another_division_is_refused_until_it_is_allowed_for_all(tmp_path: Path, before: str, after: str) -> None:
    files = {"catalog/web.yaml": WEB, "catalog/db.yaml": WEB.replace("web", "db"), "platform.yaml": divided(before)}
    made = written(tmp_path, files)
    tree_before = made.tree()
    (tmp_path / "platform.yaml").write_text(divided(after))

    ran = made.run("build")

    assert ran.code == (0 if before == after else 1)
    if before != after:
        assert "error[R516]: 2 services, such as `db`, move to another Flux Kustomization\n" in ran.err
        assert made.tree() == tree_before
        assert "error[R516]: `db` moves to another" in made.run("build", "--allow-reinstall", "web").err
        assert made.run("build", "--allow-reinstall", "web", "--allow-reinstall", "db").code == 0
        assert made.run("check").code == 0


def test_another_namespace_of_flux_moves_everything(tmp_path: Path) -> None:
    made = written(tmp_path, {"catalog/web.yaml": WEB, "platform.yaml": PLATFORM})
    edit(tmp_path, "platform.yaml", '"2.9"\n', '"2.9"\n  namespace: gitops\n')

    assert "error[R516]: `web` moves to another Flux Kustomization\n" in made.run("check").err


def test_a_new_division_of_new_services_alone_is_free(tmp_path: Path) -> None:
    made = written(tmp_path)
    edit(tmp_path, "catalog/web.yaml", "name: web\n", "name: web\nenabled: false\n")
    (tmp_path / "catalog/plain.yaml").write_text(PLAIN)
    (tmp_path / "platform.yaml").write_text(divided("service"))

    assert made.run("build").code == 0


def test_a_renamed_service_with_a_kustomization_of_its_own_moves(tmp_path: Path) -> None:
    made = written(tmp_path, {"catalog/web.yaml": WEB, "platform.yaml": divided("service")})
    edit(tmp_path, "catalog/web.yaml", "name: web\n", "name: shop\nobjectName: web\nnamespace: web\n")

    assert "error[R516]: `shop` moves to another Flux Kustomization\n" in made.run("build").err
    assert made.run("build", "--allow-reinstall", "shop").code == 0
