"""Edits at random to a repository, and runs in between: with a cache they print and write what they do without."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from render.cache import store
from tests import forked
from tests.project import PLATFORM
from tests.sound import examples

NAMES = ("web", "redis", "app", "job")
TAGS = ("1.2.3", "1.2.4", "1.3.0", "2.0.0")
EXTRAS = (
    "",
    "dependsOn: [redis]\n",
    "dependsOn: [web, nobody]\n",
    "namespace: shared\n",
    "enabled: false\n",
    "objectName: same\nnamespace: shared\n",
    "kustomize: {resources: [own.yaml]}\n",
    "labels: {a: b}\n",
    "extraObjects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: more, namespace: shared}}]\n",
    "extraObjects: [{apiVersion: image.toolkit.fluxcd.io/v1, kind: ImagePolicy, metadata: {name: mine}, spec: {}}]\n",
    "verison: 1\n",
    "values: [\n",
    '# {"$imagepolicy": "flux-system:web"}\n',
)
VALUES = ("{a: 1}", "{a: 2}", "{a: yes}", "{b: '${X}'}")
PLATFORMS = (
    PLATFORM,
    PLATFORM.replace("test", "text"),
    PLATFORM.replace("[]", "[{name: ghcr.io/example/web, newName: mirror.example/web}]"),
    PLATFORM.replace("[]", '[{name: docker.io/library/nginx, newTag: "1.0.0"}]'),
    f"{PLATFORM}defaults: {{namespace: shared}}\n",
    f"{PLATFORM}imageAutomation: {{enabled: true, author: {{email: bot@example.org}}}}\n",
    f"{PLATFORM}unknown: 1\n",
)
FLAGS = (
    (),
    ("--no-image-automation",),
    ("--format", "json"),
    ("--format", "github"),
    ("-q",),
    ("--fail-on", "warning"),
    ("--reset-tags", "web"),
    ("--allow-reinstall", "web"),
    ("--jobs", "2"),
    ("--out", "out"),
)


def definition(name: str, tag: str, extra: str, values: str, *, automated: bool) -> str:
    """Write a service."""
    chart = "chart: {url: https://charts.example, name: web, version: 1.0.0}"
    update = "update: {range: 1.x}\n" if automated else ""
    return f"name: {name}\nsource:\n  image: ghcr.io/example/{name}:{tag}\n  {chart}\n{update}values: {values}\n{extra}"


definitions = st.builds(
    definition,
    st.sampled_from(NAMES),
    st.sampled_from(TAGS),
    st.sampled_from(EXTRAS),
    st.sampled_from(VALUES),
    automated=st.booleans(),
)
Act = Callable[[Path], object]


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_symlink() or not path.exists() or path.is_file():
        path.unlink(missing_ok=True) if path.is_symlink() else None
        path.write_text(text)


def in_place(path: Path, old: str, new: str) -> None:
    """Overwrite a part of a file and put its times back, as nobody would."""
    if path.is_file():
        before = path.stat()
        path.write_text(path.read_text(errors="surrogateescape").replace(old, new), errors="surrogateescape")
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def tree(folder: Path) -> dict[str, tuple[int, bytes | str]]:
    """Everything below a folder."""
    found: dict[str, tuple[int, bytes | str]] = {}
    for path in sorted(folder.rglob("*")):
        name, kind = path.relative_to(folder).as_posix(), path.lstat().st_mode
        found[name] = (kind, str(path.readlink()) if path.is_symlink() else "" if path.is_dir() else path.read_bytes())
    return found


class Twins(RuleBasedStateMachine):
    """One repository twice, of which one is rendered with a cache."""

    def __init__(self) -> None:
        super().__init__()
        self.top = Path(tempfile.mkdtemp())
        self.folders = [self.top / name / "repository" for name in ("cached", "plain")]
        self.cache = self.top / "cache"

    def both(self, act: Act) -> None:
        for folder in self.folders:
            act(folder)

    @initialize(texts=st.lists(definitions, min_size=1, max_size=4))
    def begin(self, texts: list[str]) -> None:
        for folder in self.folders:
            write(folder / "platform.yaml", PLATFORM)
            for index, text in enumerate(texts):
                write(folder / f"catalog/{index}.yaml", text)
        self.run("build", ())

    @rule(index=st.integers(0, 4), text=definitions)
    def edit(self, index: int, text: str) -> None:
        self.both(lambda top: write(top / f"catalog/{index}.yaml", text))

    @rule(index=st.integers(0, 4), pair=st.permutations(TAGS))
    def edit_in_place(self, index: int, pair: list[str]) -> None:
        self.both(lambda top: in_place(top / f"catalog/{index}.yaml", pair[0], pair[1]))

    @rule(index=st.integers(0, 4), pair=st.permutations(VALUES[:2]))
    def edit_values(self, index: int, pair: list[str]) -> None:
        self.both(lambda top: in_place(top / f"catalog/{index}.yaml", pair[0], pair[1]))

    @rule(index=st.integers(0, 4), other=st.sampled_from(["5.yaml", "more/6.yaml", ".hidden.yaml", "notes.txt"]))
    def rename(self, index: int, other: str) -> None:
        def act(top: Path) -> None:
            old, new = top / f"catalog/{index}.yaml", top / "catalog" / other
            new.parent.mkdir(exist_ok=True)
            if old.exists():
                old.replace(new)

        self.both(act)

    @rule(index=st.integers(0, 4))
    def delete(self, index: int) -> None:
        self.both(lambda top: (top / f"catalog/{index}.yaml").unlink(missing_ok=True))

    @rule(index=st.integers(0, 4))
    def link(self, index: int) -> None:
        def act(top: Path) -> None:
            path = top / f"catalog/{index}.yaml"
            path.unlink(missing_ok=True)
            path.symlink_to("0.yaml" if index else "1.yaml")

        self.both(act)

    @rule(text=st.sampled_from(PLATFORMS))
    def edit_platform(self, text: str) -> None:
        self.both(lambda top: write(top / "platform.yaml", text))

    @rule(name=st.sampled_from(NAMES), old=st.sampled_from(TAGS), new=st.sampled_from(TAGS))
    def move_on_as_the_bot_does(self, name: str, old: str, new: str) -> None:
        marked = ' # {"$imagepolicy": "flux-system:' + name + ':tag"}'
        self.both(lambda top: in_place(top / f"apps/{name}/helmrelease.yaml", f'"{old}"{marked}', f'"{new}"{marked}'))

    @rule(name=st.sampled_from(NAMES), file=st.sampled_from(["helmrelease", "kustomization", "source"]))
    def edit_by_hand(self, name: str, file: str) -> None:
        self.both(lambda top: in_place(top / f"apps/{name}/{file}.yaml", "e", "x"))

    @rule(name=st.sampled_from(NAMES), file=st.sampled_from(["helmrelease", "kustomization", "own"]))
    def lose(self, name: str, file: str) -> None:
        self.both(lambda top: (top / f"apps/{name}/{file}.yaml").unlink(missing_ok=True))

    @rule(
        place=st.sampled_from([*(f"apps/{name}/own.yaml" for name in NAMES), "platform/alerts/own.yaml", "apps/x.txt"]),
        text=st.sampled_from(["a: 1\n", 'a: b # {"$imagepolicy": "flux-system:web:tag"}\n', "kind: ImagePolicy\n"]),
    )
    def add_a_file(self, place: str, text: str) -> None:
        self.both(lambda top: write(top / place, text))

    @rule(name=st.sampled_from(NAMES), mode=st.sampled_from([0o600, 0o755]))
    def set_permissions(self, name: str, mode: int) -> None:
        def act(top: Path) -> None:
            path = top / f"apps/{name}/helmrelease.yaml"
            if path.exists():
                path.chmod(mode)

        self.both(act)

    @rule(name=st.sampled_from(NAMES))
    def leave_what_a_killed_run_leaves(self, name: str) -> None:
        def act(top: Path) -> None:
            if (top / f"apps/{name}").is_dir():
                (top / f"apps/{name}/.source.yaml.render-tmp").write_text("half")

        self.both(act)

    @rule(
        data=st.data(),
        damage=st.sampled_from(["bit", "cut", "empty", "mode", "gone", "other"]),
    )
    def damage_the_cache(self, data: st.DataObject, damage: str) -> None:
        if not self.cache.is_dir():
            return
        for path in sorted(self.cache.iterdir()):
            content = path.read_bytes()
            if damage == "bit" and content:
                place = data.draw(st.integers(0, len(content) - 1))
                path.write_bytes(content[:place] + bytes([content[place] ^ 8]) + content[place + 1 :])
            elif damage == "cut":
                path.write_bytes(content[: data.draw(st.integers(0, len(content)))])
            elif damage == "empty":
                path.write_bytes(b"")
            elif damage == "mode":
                path.chmod(0o666)
            elif damage == "gone":
                path.unlink()
            else:
                store.save(str(path), ["what", "else"])

    @rule(verb=st.sampled_from(["build", "check"]), flags=st.sampled_from(FLAGS))
    def run(self, verb: str, flags: tuple[str, ...]) -> None:
        ran, _ = forked.run(self.folders[0], self.cache, verb, *flags)
        plain, _ = forked.run(self.folders[1], None, verb, *flags)
        assert ran == plain

    @rule(verb=st.sampled_from(["build", "check"]))
    def run_twice_at_once(self, verb: str) -> None:
        going = [forked.start(self.folders[0], self.cache, verb) for _ in range(2)]
        told = [one.end()[0] for one in going]
        first = forked.run(self.folders[1], None, verb)[0]
        second = forked.run(self.folders[1], None, verb)[0]
        # Either may have been the first to write.
        assert sorted(told, key=repr) == sorted((first, second), key=repr) or told == [second, second]

    @invariant()
    def the_trees_are_the_same(self) -> None:
        assert tree(self.folders[0]) == tree(self.folders[1])

    def teardown(self) -> None:
        shutil.rmtree(self.top)


TestTwins = Twins.TestCase
TestTwins.settings = settings(examples(8), stateful_step_count=25)
