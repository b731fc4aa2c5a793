"""Properties of whole builds: what people write never breaks the output, and never the compiler."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from hypothesis import assume, event, example, given
from hypothesis import strategies as st

from tests.bot import NotModelled
from tests.hostile import keys, texts
from tests.project import objects
from tests.services import document, platforms, services
from tests.sound import (
    MARK,
    PLATFORMS,
    TOP,
    Files,
    assert_sound,
    assert_survives_the_bot,
    assert_told_well,
    built,
    check,
    examples,
)

CHART = {"url": "https://c.example", "name": "w", "version": "1.0.0"}
SHIPPED = sorted((TOP / "catalog").rglob("*.yaml"))


@examples(50)
@given(services(), services("two"), platforms())
def test_what_is_rendered_is_sound_and_survives_the_bot(
    one: dict[str, Any], two: dict[str, Any], platform: dict[str, Any]
) -> None:
    files: Files = {
        "catalog/a.yaml": document(one) + "---\n" + document(two),
        "platform.yaml": document(platform),
    }
    made = built(files)
    assert_told_well(made.diagnostics, files)
    assume(not made.failed)
    assert_sound(made)
    for text in made.files.values():
        if MARK.search(text):
            try:
                assert_survives_the_bot(text)
            except NotModelled as reason:
                event(f"not modelled: {reason}")


# Where a person's text lands: a field of the definition, and where it is in the output.


@examples(40)
@given(st.dictionaries(keys(), texts(), max_size=3), st.dictionaries(keys(), texts(), max_size=3), texts())
def test_labels_annotations_and_descriptions_stay_in_their_place(
    labels: dict[str, str], annotations: dict[str, str], description: str
) -> None:
    definition = {
        "name": "web",
        "description": description,
        "labels": labels,
        "annotations": annotations,
        "source": {
            "image": "ghcr.io/o/web:1.2.3",
            "chart": {"url": "https://c.example", "name": "w", "version": "1.0.0"},
        },
        "update": {"range": "1.x"},
        "extraObjects": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}],
    }
    made = check({"catalog/web.yaml": document(definition)})
    for one in objects(made) if made else []:
        if one["kind"] in ("Namespace", "Kustomization"):
            continue
        metadata = one["metadata"]
        assert (labels, annotations) == (metadata.get("labels", {}), metadata.get("annotations", {}))
        assert {"name", "namespace", "labels", "annotations"} >= set(metadata)


@examples(40)
@given(st.dictionaries(keys(), texts(), max_size=3), st.lists(texts(), max_size=3), st.lists(texts(), max_size=2))
def test_environment_and_arguments_stay_in_their_place(
    env: dict[str, str], args: list[str], command: list[str]
) -> None:
    workload = {"env": env, "args": args, "command": command}
    definition = {"name": "web", "source": {"image": "ghcr.io/o/web:1.2.3"}, "workload": workload}
    made = check({"catalog/web.yaml": document(definition)})
    if made:
        (deployment,) = (one for one in objects(made) if one["kind"] == "Deployment")
        (container,) = deployment["spec"]["template"]["spec"]["containers"]
        assert env == {entry["name"]: entry["value"] for entry in container.get("env", [])}
        assert (args, command) == (container["args"], container["command"])


json_like = st.recursive(
    texts() | st.booleans() | st.integers(-(2**60), 2**60),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys(), inner, max_size=3),
    max_leaves=6,
)


@examples(40)
@given(st.dictionaries(keys(), json_like, max_size=3))
def test_values_stay_in_their_place(values: dict[str, Any]) -> None:
    assume("image" not in values)
    definition = {
        "name": "web",
        "source": {"chart": CHART},
        "values": values,
        "extraObjects": [{"apiVersion": "example.org/v1", "kind": "Any", "metadata": {"name": "x"}, "spec": values}],
    }
    made = check({"catalog/web.yaml": document(definition)})
    if made:
        (release,) = (one for one in objects(made) if one["kind"] == "HelmRelease")
        (extra,) = (one for one in objects(made) if one["kind"] == "Any")
        assert values == release["spec"].get("values", {})
        assert values == extra["spec"]


FIELDS = (
    "name",
    "objectName",
    "namespace",
    "source.image",
    "source.image.at",
    "source.chart.url",
    "source.chart.name",
    "source.chart.version",
    "source.chart.interval",
    "source.chart.secretRef.name",
    "update.range",
    "update.cadence",
    "update.channel",
    "update.pin",
    "dependsOn[]",
    "release.timeout",
    "release.releaseName",
    "release.targetNamespace",
    "images.side",
    "images[]",
    "kustomize.resources[]",
    "extraObjects.kind",
    "extraObjects.name",
    "extraObjects.apiVersion",
    "postRenderers.name",
    "valuesFrom.name",
)


TRANSLATED = ("update.channel", "update.cadence", "update.pin", "source.image", "images.side", "source.image.at")
"""What does not stand in the output as it is written."""


def with_field(field: str, text: str) -> dict[str, Any]:
    """A definition that is in order but for one field."""
    image: dict[str, Any] = {"ref": "ghcr.io/o/web:1.2.3"}
    chart: dict[str, Any] = dict(CHART)
    made: dict[str, Any] = {"name": "web", "source": {"image": image, "chart": chart}, "update": {"range": "1.x"}}
    extra: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}
    parts = field.split(".")
    if field == "source.image":
        image["ref"] = text
    elif field == "source.image.at":
        image["at"] = text
    elif field.startswith("source.chart"):
        if parts[2] == "secretRef":
            chart["secretRef"] = {"name": text}
        else:
            chart[parts[2]] = text
    elif field in ("update.range", "update.cadence", "update.channel", "update.pin"):
        made["update"][parts[1]] = text
    elif field == "dependsOn[]":
        made["dependsOn"] = [text]
    elif parts[0] == "release":
        made["release"] = {parts[1]: text}
    elif field == "images.side":
        made["images"] = {"side": {"ref": text, "at": "side"}}
    elif field == "images[]":
        made["images"] = {text: {"ref": "nginx:1.2.3", "at": "side", "update": {"range": "1.x"}}}
    elif field == "kustomize.resources[]":
        made["kustomize"] = {"resources": [text]}
    elif parts[0] == "extraObjects":
        made["extraObjects"] = [
            extra | {parts[1]: text} if parts[1] != "name" else extra | {"metadata": {"name": text}}
        ]
    elif field == "postRenderers.name":
        made["postRenderers"] = [{"kustomize": {"images": [{"name": text, "newTag": "1"}]}}]
    elif field == "valuesFrom.name":
        made["valuesFrom"] = [{"kind": "ConfigMap", "name": text}]
    else:
        made[field] = text
    return made


@pytest.mark.parametrize("field", FIELDS)
@examples(6)
@given(text=texts())
@example(text='a"}\nkind: Evil #')
@example(text="a\x1b")
def test_any_text_in_a_field_is_refused_or_stays_there(field: str, text: str) -> None:
    made = check({"catalog/web.yaml": document(with_field(field, text))})
    if made is None:
        return
    kinds = [one["kind"] for one in objects(made)]
    assert (kinds.count("HelmRelease"), kinds.count("HelmRepository")) == (1, 1)
    if field not in TRANSLATED:
        assert text in ("", "null") or any(text in leaf for leaf in leaves(objects(made)))


def leaves(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield str(key)
            yield from leaves(inner)
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item)
    else:
        yield str(value)


@pytest.mark.parametrize("field", ["name", "source.chart.url", "update.range", "dependsOn[]"])
@pytest.mark.parametrize("text", ["a\x1b[31mred", "a\nb", "a\x85b", "a\u2028b", "a\x7fb", "a\rb"])
def test_no_message_holds_a_control_character(field: str, text: str) -> None:
    files: Files = {"catalog/web.yaml": document(with_field(field, text))}
    told = [line for one in built(files).diagnostics for line in (one.message, one.cause, one.hint)]

    assert told
    assert not any(re.search("[\x00-\x1f\x7f-\x9f\u2028\u2029]", line) for line in told)


NAMES = st.text(
    st.characters(codec="utf-8", exclude_characters="/\x00") | st.sampled_from(" #\n\r\t\x85\u2028'\"{}[]:;,&*\\é😀"),
    min_size=1,
    max_size=20,
).filter(lambda name: not name.startswith("."))


@examples(25)
@given(NAMES, st.booleans())
def test_no_name_of_a_file_or_folder_reaches_beyond_the_header(name: str, is_folder: bool) -> None:
    path = f"catalog/{name}/web.yaml" if is_folder else f"catalog/{name}.yaml"
    made = check({path: document({"name": "web", "source": {"image": "ghcr.io/o/web:1.2.3"}, "workload": {}})})
    if made:
        text = made.files["apps/web/workload.yaml"]
        assert text.startswith(f"# Generated by render from {path}; do not edit. sha256:")
        assert [one["kind"] for one in objects(text)] == ["Deployment"]


# fmt: off
HOSTILE = st.sampled_from((
    "[]", "{}", "1", "1.20", "null", "~", "yes", "- x", "*a", "&a", "!x y", "|", ">", '"', "'", "{", "[", "@", "`",
    "a: b", "<<", "${X}", "$${X}", "{{ x }}", "\x00", "\t", "\ufeff", "😀", "é", "x" * 300, "0x1F", "2024-01-01", "-1",
    "?", "#",
))
# fmt: on


@st.composite
def mutations(draw: st.DrawFn, text: str) -> str:
    """A text with one to three lines dropped, repeated, moved, indented, or with another value."""
    lines = text.split("\n")
    for _ in range(draw(st.integers(1, 3))):
        i = draw(st.integers(0, len(lines) - 1))
        kind = draw(st.sampled_from(["drop", "repeat", "move", "deeper", "higher", "value", "key", "cut", "insert"]))
        line = lines[i]
        if kind == "drop":
            del lines[i]
            lines = lines or [""]
        elif kind == "repeat":
            lines.insert(i, line)
        elif kind == "move":
            lines.insert(draw(st.integers(0, len(lines) - 1)), lines.pop(i))
        elif kind == "deeper":
            lines[i] = " " * draw(st.integers(1, 3)) + line
        elif kind == "higher":
            lines[i] = line[draw(st.integers(1, 2)) :]
        elif kind == "value" and ":" in line:
            lines[i] = line.split(":", 1)[0] + ": " + draw(HOSTILE)
        elif kind == "key" and ":" in line:
            blanks = len(line) - len(line.lstrip(" -"))
            lines[i] = line[:blanks] + draw(HOSTILE) + ":" + line.split(":", 1)[1]
        elif kind == "cut":
            lines[i] = line[: draw(st.integers(0, len(line)))]
        else:
            position = draw(st.integers(0, len(line)))
            lines[i] = line[:position] + draw(HOSTILE) + line[position:]
    return "\n".join(lines)


@st.composite
def mutated_files(draw: st.DrawFn) -> tuple[str, str]:
    path = draw(st.sampled_from(SHIPPED))
    return path.name, draw(mutations(path.read_text(encoding="utf-8")))


@examples(60)
@given(mutated_files(), st.sampled_from(PLATFORMS))
def test_a_damaged_catalog_file_is_refused_or_sound(file: tuple[str, str], platform: str) -> None:
    name, text = file
    check({f"catalog/{name}": text, "platform.yaml": (TOP / platform).read_bytes()})


@examples(40)
@given(st.sampled_from(PLATFORMS).flatmap(lambda name: mutations((TOP / name).read_text(encoding="utf-8"))))
def test_a_damaged_platform_file_is_refused_or_sound(text: str) -> None:
    service = (TOP / "catalog/demo/podinfo.yaml").read_bytes()
    check({"catalog/podinfo.yaml": service, "platform.yaml": text})


@given(st.lists(texts(), max_size=3).map("".join))
def test_any_file_is_refused_or_empty(text: str) -> None:
    files: Files = {"catalog/any.yaml": text}
    made = built(files)
    assert_told_well(made.diagnostics, files)
    try:
        empty = not any(one is not None for one in yaml.load_all(text.lstrip("\ufeff"), yaml.CSafeLoader))
    except Exception:
        empty = False
    assert made.failed or empty


WIDGET = """\
name: web
source: {image: {ref: "ghcr.io/o/web:1.2.3", at: "extraObjects[0].%s", shape: string}}
update: {range: 1.x}
extraObjects:
- apiVersion: example.org/v1
  kind: %s
  metadata: {name: x%s}
  %s: {}
"""


@pytest.mark.parametrize("empty", ["annotations: {}", "annotations: ~", "annotations: null"])
def test_empty_annotations_beside_a_marker_survive_the_bot(empty: str) -> None:
    made = check({"catalog/web.yaml": WIDGET % ("spec.image", "Widget", f", {empty}", "spec")})

    assert made is not None
    for text in made.files.values():
        if MARK.search(text):
            assert_survives_the_bot(text)


@pytest.mark.parametrize("name", ["config.kubernetes.io/path", "internal.config.kubernetes.io/path"])
def test_an_annotation_that_ends_the_whole_run_of_the_bot_is_refused(name: str) -> None:
    assert (
        check({"catalog/web.yaml": WIDGET % ("spec.image", "Widget", f", annotations: {{{name}: a.yaml}}", "spec")})
        is None
    )


def test_a_marker_inside_a_list_is_refused() -> None:
    text = WIDGET % ("items[0].spec.image", "List", "", "items")
    text = text.replace("example.org/v1", "v1").replace("items: {}", "items: [{apiVersion: a/b, kind: C, spec: {}}]")

    assert check({"catalog/web.yaml": text}) is None


@pytest.mark.parametrize("name", ["/etc/passwd", "", "source.yaml", "helmrelease.yaml", "kustomization.yaml", "."])
def test_a_resource_that_kustomize_refuses_or_takes_twice_is_refused(name: str) -> None:
    assert check({"catalog/web.yaml": document(with_field("kustomize.resources[]", name))}) is None


def test_a_key_overrides_a_merged_one_that_a_reader_takes_for_the_same() -> None:
    values = "values: {a: &a {yes: x}, b: {<<: *a, 'true': y}}\n"

    made = check({"catalog/web.yaml": document({"name": "web", "source": {"chart": CHART}}) + values})

    assert made is not None
    assert "    b:\n      'true': y\n" in made.files["apps/web/helmrelease.yaml"]
