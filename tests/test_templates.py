from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from render.diagnostics import Diagnostic, RenderError
from render.templates import render, shipped_folder
from render.yaml.emit import Marked
from tests.hostile import keys, texts


@pytest.fixture
def write(tmp_path: Path) -> Any:
    """Write a template and return what renders it."""

    def make(text: str) -> Any:
        (tmp_path / "one.yaml.j2").write_text(text, encoding="utf-8")
        return lambda **values: render("one", values, tmp_path)

    return make


def fault(call: Any, **values: Any) -> Diagnostic:
    with pytest.raises(RenderError) as caught:
        call(**values)
    (found,) = caught.value.diagnostics
    return found


def test_a_value_stands_at_its_line(write: Any) -> None:
    run = write("kind: Thing\nspec:\n  name: {{ name }}\n  list: {{ items }}\n  {{ rest }}\n")

    assert (
        run(name="1", items=["a"], rest={"b": {"c": 1}})
        == 'kind: Thing\nspec:\n  name: "1"\n  list:\n  - a\n  b:\n    c: 1\n'
    )


def test_a_line_without_a_value_is_left_out(write: Any) -> None:
    assert write("kind: Thing\nname: {{ name }}\n{{ rest }}\n")(name=None, rest=None) == "kind: Thing\n"


def test_lists_are_wide_where_the_bot_would_make_them_wide(write: Any) -> None:
    run = write("text: {{ text }}\nlist: {{ items }}\n")

    assert run(text="a:\n  - b\n", items=["x"]) == "text: |\n  a:\n    - b\nlist:\n  - x\n"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("name: {{ nam }}", "`nam` is undefined"),
        ("{{ nam }}", "`nam` is undefined"),
        ("name: {{ name.x }}", "`str object` has no attribute `x`"),
    ],
)
def test_an_undefined_name_is_told(write: Any, line: str, message: str) -> None:
    found = fault(write(f"kind: Thing\n{line}\n"), name="x")

    assert ("R301", message, "templates/one.yaml.j2") == (found.code, found.message, found.location.path)


@pytest.mark.parametrize(
    "line",
    [
        "name: x{{ name }}",
        "name: {{ name }} # x",
        "- {{ name }}",
        "{{ name }}: x",
        "name: 'x'",
        "name: x y",
        "",
        "  ",
        "name: {{name}}",
    ],
)
def test_a_line_of_another_form_is_refused_at_its_number(write: Any, line: str) -> None:
    found = fault(write(f"kind: Thing\n{line}\nlast: word\n"), name="x")

    assert (found.code, found.location.line) == ("R301", 2)


def test_statements_choose_lines(write: Any) -> None:
    run = write(
        "kind: Thing\n{% if name %}\nname: {{ name }}\n{% endif %}\n{# a remark #}\nlast: {{ name or 'none' }}\n"
    )

    assert run(name="a") == "kind: Thing\nname: a\nlast: a\n"
    assert run(name="") == "kind: Thing\nlast: none\n"


def test_a_fault_behind_statements_has_its_line(write: Any) -> None:
    found = fault(write("kind: Thing\n{% if True %}\nname: {{ nam }}\n{% endif %}\n"))

    assert (found.message, found.location.line) == ("`nam` is undefined", 3)


@pytest.mark.parametrize(("line", "value"), [("name: {{ name }}", object()), ("{{ name }}", "text"), ("{{ name }}", 1)])
def test_a_value_that_is_no_yaml_is_told(write: Any, line: str, value: Any) -> None:
    assert fault(write(f"{line}\n"), name=value).code == "R301"


def test_a_missing_template_is_told(tmp_path: Path) -> None:
    with pytest.raises(RenderError) as caught:
        render("none", {}, tmp_path)
    assert caught.value.diagnostics[0].code == "R301"


@given(st.dictionaries(keys(), texts(), max_size=3), texts(), st.lists(texts(), max_size=3))
def test_no_value_breaks_out_of_its_line(mapping: dict[str, str], text: str, items: list[str]) -> None:
    name = Marked(text, "flux-system:x")
    made = yaml.load(render("namespace", {"name": name, "annotations": mapping}), yaml.CSafeLoader)
    whole = yaml.load(render("object", {"object": {"items": items, "text": text}}), yaml.CSafeLoader)

    assert made == {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": text, "annotations": mapping}}
    assert whole == {"items": items, "text": text}


@pytest.mark.parametrize("path", sorted(Path(shipped_folder()).glob("*.j2")), ids=lambda path: path.name)
def test_shipped_templates_begin_with_the_object_and_hold_every_value(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    names = [part.split(" }}")[0] for part in text.split("{{ ")[1:]]
    values = {name: {"x": f"value of {name}"} for name in names}
    made = render(path.name.removesuffix(".yaml.j2"), values)
    loaded = yaml.load(made, yaml.CSafeLoader)

    assert [name for name in names if f"value of {name}" not in made] == []
    if path.name != "object.yaml.j2":
        assert list(loaded)[:2] == ["apiVersion", "kind"]
        assert path.name == loaded["kind"].lower() + ".yaml.j2" or path.name == "fluxkustomization.yaml.j2"


@pytest.mark.parametrize("path", sorted(Path(shipped_folder()).glob("*.j2")), ids=lambda path: path.name)
def test_shipped_templates_name_the_field_that_a_value_fills(path: Path) -> None:
    pairs = [line.split(": {{ ") for line in path.read_text(encoding="utf-8").split("\n") if ": {{ " in line]
    odd = {(key.strip(), name.removesuffix(" }}")) for key, name in pairs if key.strip() != name.removesuffix(" }}")}

    assert odd <= {
        ("matchLabels", "selector"),
        ("labels", "selector"),
        ("spec", "pod"),
        ("spec", "instance"),
    }
