"""Every file of the bot's corpus, carried as a service's values: the bot moves our output by its marked values alone.

The marked scalars of a case become sites of the service's image where one can be there: then the marker that `render`
writes stands in the very shape of the case.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.bot import NotModelled, rewrite
from tests.project import Project, project

SHARED = Path(os.environ.get("RENDER_SHARED", Path(__file__).parents[3] / "shared"))
CASES = SHARED / "cases" / "setter-rewrites.jsonl"

pytestmark = pytest.mark.skipif(not CASES.exists(), reason="the shared cases are absent")

IMAGE = "ghcr.io/example/app"
OLD, NEW = "1.0.0", "1.5.0"
RELEASE = "apps/app/helmrelease.yaml"
SERVICE = """\
name: app
source:
  image: {{ref: "{image}:{old}", at: {at}, shape: {shape}}}
  chart: {{url: "oci://charts.example.org/app", version: "1.0.0"}}
update: {{range: 1.x}}
values:
  case:
{case}
"""


def sites(text: str) -> Iterator[tuple[str, yaml.ScalarNode, str]]:
    """Yield path, node and setter of each scalar that a marker follows on its line."""
    lines = text.split("\n")

    def walk(node: yaml.Node, path: str) -> Iterator[tuple[str, yaml.ScalarNode, str]]:
        if isinstance(node, yaml.MappingNode) and not node.flow_style:
            for key, value in node.value:
                name = str(key.value)
                yield from walk(
                    value, f"{path}.{name}" if re.fullmatch(r"[\w-]+", name) else f"{path}.{json.dumps(name)}"
                )
        elif isinstance(node, yaml.SequenceNode) and not node.flow_style:
            for index, value in enumerate(node.value):
                yield from walk(value, f"{path}[{index}]")
        elif isinstance(node, yaml.ScalarNode) and node.style in (None, "", "'", '"'):
            rest = lines[node.end_mark.line][node.end_mark.column :]
            match = re.match(r'[ \t]+#+[ \t]*\{"\$imagepolicy": *"([^"]+)"', rest)
            if match and node.start_mark.line == node.end_mark.line:
                yield path, node, match[1]

    root = yaml.compose(text, yaml.SafeLoader)
    if isinstance(root, yaml.MappingNode):
        yield from walk(root, "case")


def services(text: str) -> Iterator[tuple[str, str]]:
    """Yield what a case becomes, each with its kind: values beside the image, or with the image at a marked scalar."""
    body = "".join(f"    {line}".rstrip(" ") + "\n" if line else "\n" for line in text.split("\n"))
    yield "beside", SERVICE.format(image=IMAGE, old=OLD, at="image", shape="split", case=body)
    try:
        found = list(sites(text))
    except yaml.YAMLError:
        return
    for path, node, setter in found:
        shape = {"tag": "tag", "app": "string", "db": "string", "redis": "string", "v": "string"}.get(
            setter.split(":")[-1]
        )
        if shape is None:
            continue
        value = f"{IMAGE}:{OLD}" if shape == "string" else OLD
        start, end = node.start_mark, node.end_mark
        lines = text.split("\n")
        line = lines[start.line]
        lines[start.line] = f'{line[: start.column]}"{value}"{line[end.column :]}'
        body = "".join(f"    {one}\n" if one else "\n" for one in lines)
        yield "inside", SERVICE.format(image=IMAGE, old=OLD, at=json.dumps(path), shape=shape, case=body)


def policies(tag: str) -> list[dict[str, Any]]:
    return [{"namespace": "flux-system", "name": "app", "image": IMAGE, "tag": tag}]


def moves(made: Project) -> str:
    """Build, let the bot commit and build again; what came of it."""
    if made.run("build", "--quiet").code != 0:
        return "refused"
    before = made.tree()
    try:
        after = rewrite(before[RELEASE], policies(NEW))
    except NotModelled:
        return "not modelled"
    assert after is not None, "the bot leaves the release alone"
    old, new = before[RELEASE].decode().split("\n"), after.split("\n")
    assert len(old) == len(new)
    changed = [(one, two) for one, two in zip(old, new, strict=True) if one != two]
    assert changed
    assert all(one.replace(OLD, NEW) == two and "$imagepolicy" in one for one, two in changed)
    (made.folder / RELEASE).write_text(after)
    committed = made.tree()

    checked, built = made.run("check"), made.run("build")

    assert (checked.code, checked.out) == (0, ""), checked.out + checked.err
    assert built.code == 0
    assert made.tree() == committed
    return "moved"


def test_the_bots_commit_on_any_values_is_clean(tmp_path: Path) -> None:
    outcomes: Counter[str] = Counter()
    for number, line in enumerate(CASES.read_text(encoding="utf-8").splitlines()):
        text = json.loads(line)["file"].removeprefix("\ufeff").replace("\r\n", "\n")
        for chunk in re.split(r"(?m)^---[^\n]*\n", text):
            if not chunk.strip():
                continue
            for index, (kind, service) in enumerate(services(chunk)):
                folder = tmp_path / f"{number}-{outcomes.total()}-{index}"
                outcomes[f"{kind} {moves(project(folder, {'catalog/app.yaml': service.encode()}))}"] += 1
    # What is refused is YAML that no catalog may hold.
    assert not [one for one in outcomes if "not modelled" in one]
    assert outcomes["beside moved"] >= 600
    assert outcomes["inside moved"] >= 640
