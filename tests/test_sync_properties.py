"""Catalogs at random, moved on by the bot and synced: only the versions change, and nothing is left to do."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import Any

from hypothesis import assume, event, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedBase, CommentedMap, CommentedSeq

from render.build import build
from render.plan.images import ImagePlan
from render.plan.service import ServicePlan
from tests.bot import NotModelled, rewrite
from tests.layouts import layouts
from tests.project import Project
from tests.services import REPOSITORIES, UPDATES, document, platforms, services
from tests.sound import examples, repository

NEWER = {
    "1.2.3": "1.10.0",
    "v1.2.3": "v1.4.0",
    "1.2.3-alpine": "1.3.0-alpine",
    "1.20": "1.21",
    "1.2.3-rc.1": "1.2.3-rc.2",
    "2024.7.1": "2024.10.1",
    "20240701": "20240801",
    "latest": "latest",
    "b-7": "b-12",
}
OTHER = "sha256:" + "f0" * 32
CHART = {"url": "https://charts.example", "name": "web", "version": "1.0.0"}


@st.composite
def readings(draw: st.DrawFn) -> dict[str, Any]:
    """A service whose image is read from `values`, in any of the forms that stand there."""
    tag, update = draw(st.sampled_from([one for one in UPDATES if one[1] is not None]))
    name = draw(st.sampled_from(REPOSITORIES))
    version, _, digest = tag.partition("@")
    form = draw(st.sampled_from(["string", "parts", "inside", "empty"]))
    if form == "string":
        there: Any = f"{name}:{tag}"
    elif form == "inside":
        there = {"repository": name, "tag": tag}
    else:
        there = {"repository": name, "tag": version, "pullPolicy": "Always"}
        there |= {"digest": digest} if digest or form == "empty" else {}
    at: Any = draw(st.sampled_from(["app.image", ["app.image", "more"]]))
    values = {"app": {"image": there, "n": 1}, "more": there}
    return {"name": "web", "source": {"chart": CHART, "image": {"at": at}}, "update": update, "values": values}


def images_of(made: Project) -> list[ImagePlan]:
    found: list[ImagePlan] = []

    def visit(plan: ServicePlan) -> None:
        found.extend(plan.images)

    with contextlib.chdir(made.folder):
        build(Path("catalog"), Path("platform.yaml"), visit=visit)
    return found


def move(made: Project) -> int:
    """Let the bot move every policy to a newer version; return how many there are."""
    policies = []
    for image in images_of(made):
        if image.policy is None:
            continue
        policy = {"namespace": "flux-system", "name": image.policy.name, "image": image.policy.image}
        policy["tag"] = NEWER[image.reference.tag or ""]
        policies.append(policy | ({"digest": OTHER} if image.follows else {}))
    for path in sorted((made.folder).rglob("*.yaml")):
        after = rewrite(path.read_bytes(), policies) if "catalog" not in path.parts else None
        if after is not None:
            path.write_text(after)
    return len(policies)


def comments(node: Any) -> list[str]:
    """Return all comments of a tree as ruamel.yaml attaches them, in order."""
    found: list[str] = []

    def add(one: Any) -> None:
        if isinstance(one, list | tuple):
            for inner in one:
                add(inner)
        elif one is not None:
            found.append(one.value)

    if isinstance(node, CommentedBase):
        add(node.ca.comment)
        for attached in node.ca.items.values():
            add(attached)
        for inner in node.values() if isinstance(node, CommentedMap) else node:
            found += comments(inner)
    return found


def assert_same_but(old: Any, new: Any, told: list[str]) -> None:
    """Two trees of ruamel.yaml have the same keys, order, styles and texts, versions aside (which go to `told`)."""
    assert type(old) is type(new) or isinstance(old, str)
    if isinstance(old, CommentedMap):
        assert old.fa.flow_style() == new.fa.flow_style()
        assert list(old) == list(new)
        for key in old:
            assert_same_but(old[key], new[key], told)
    elif isinstance(old, CommentedSeq):
        assert old.fa.flow_style() == new.fa.flow_style()
        assert len(old) == len(new)
        for one, other in zip(old, new, strict=True):
            assert_same_but(one, other, told)
    elif old != new:
        told.append(f"{old} -> {new}")
        assert any(version in new for version in (*NEWER.values(), OTHER))
        assert type(old) is type(new)


def loaded(text: str) -> Any:
    yaml = YAML(typ="rt")
    yaml.preserve_quotes = True
    return yaml.load(io.StringIO(text))


def differing(old: str, new: str) -> list[int]:
    """Return the indices of the lines that differ; there are as many in both."""
    before, after = old.split("\n"), new.split("\n")
    assert len(before) == len(after)
    return [index for index, (one, other) in enumerate(zip(before, after, strict=True)) if one != other]


@settings(examples(40), deadline=None)
@given(services() | readings(), platforms(), st.data())
def test_sync_writes_versions_alone_and_leaves_nothing_to_do(
    definition: dict[str, Any], platform: dict[str, Any], data: st.DataObject
) -> None:
    text = data.draw(layouts(definition))
    if data.draw(st.booleans()):
        text = text.replace("\n", "\r\n")
    mark = data.draw(st.sampled_from(["", "\ufeff"]))
    with repository({"catalog/web.yaml": mark + text, "platform.yaml": document(platform)}) as made:
        assume(made.run("build").code == 0)
        try:
            moved = move(made)
        except NotModelled as reason:
            event(f"not modelled: {reason}")
            return
        tree = made.tree()

        ran = made.run("sync")

        assert ran.code == 0, ran.err
        after = (made.folder / "catalog/web.yaml").read_bytes().decode()
        assert after.startswith(mark)
        after = after.removeprefix(mark)
        places = {line for line in ran.err.splitlines() if " -> " in line}
        event(f"{moved} policies, {len(places)} changes")
        assert moved == len(places)
        old, new = loaded(text), loaded(after)
        told: list[str] = []
        assert_same_but(old, new, told)
        assert comments(old) == comments(new)
        assert bool(moved) == bool(told)
        assert len(differing(text, after)) <= len(told)
        check = made.run("check")
        assert (check.code, check.out) == (0, ""), check.err
        assert made.run("build").code == 0
        assert tree == made.tree()
        assert made.run("sync").err.endswith("0 values written, 0 files changed\n")


PLAIN = platforms().map(lambda one: one | {"registries": {"imageOverrides": []}})


@settings(examples(20), deadline=None)
@given(services() | readings(), st.data())
def test_sync_clears_what_a_build_refuses(definition: dict[str, Any], data: st.DataObject) -> None:
    with repository({"catalog/web.yaml": document(definition), "platform.yaml": document(data.draw(PLAIN))}) as made:
        assume(made.run("build").code == 0)
        try:
            assume(move(made))
        except NotModelled:
            return
        tree = made.tree()
        without = {key: value for key, value in definition.items() if key != "update"}
        without["images"] = {
            name: {key: value for key, value in image.items() if key != "update"}
            for name, image in definition.get("images", {}).items()
        }
        (made.folder / "catalog/web.yaml").write_text(data.draw(layouts(without)))
        refused = made.run("check")
        assume("R510" in refused.err and refused.err.count("error[") == refused.err.count("error[R510]"))

        ran = made.run("sync")

        assert ran.code == 0, ran.err
        assert made.run("build").code == 0
        assert made.run("check").code == 0
        assert tree.keys() >= {name for name in made.tree() if name.startswith("apps/web/helm")}
