"""What setup.py makes of a module before mypyc compiles it."""

from __future__ import annotations

import ast
import importlib.util
import pickle
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from render.structs import replace
from tests.trees import ROOT


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("render_setup", ROOT / "setup.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SETUP = _load()
MODULES = [path.as_posix() for path in SETUP.compiled_modules()]

STRUCTS = '''
from __future__ import annotations

from operator import attrgetter
from render.structs import field, struct

@struct(frozen=True, order=True)
class Place:
    """A place."""

    path: str
    line: int = 0
    """From 1."""

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"

@struct()
class Box:
    names: list[str] = field(default_factory=list)
    place: Place | None = None
    note: str = "it's"

    def __post_init__(self) -> None:
        self.names.append("made")

@struct(frozen=True, order=True)
class Version:
    _values = attrgetter("key")
    key: tuple[int, int]
    text: str
'''


@pytest.fixture(params=["as it is", "expanded"])
def made(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A module of structs."""
    module = ModuleType("structs_of_this_test")
    sys.modules[module.__name__] = module
    text = SETUP.expand(STRUCTS) if request.param == "expanded" else STRUCTS
    assert ("@struct" in text) is (request.param == "as it is")
    exec(compile(text, "structs", "exec"), vars(module))
    yield module
    del sys.modules[module.__name__]


def test_an_expanded_class_behaves_as_the_one_it_was(made: Any) -> None:
    one, two = made.Place("a", 1), made.Place("a", line=2)

    assert one == made.Place("a", 1)
    assert one != two
    assert one != "a"
    assert hash(one) == hash(made.Place("a", 1))
    assert one < two
    assert one <= two
    assert two > one
    assert two >= one
    assert not two < one
    assert repr(one) == "Place(path='a', line=1)"
    assert str(one) == "a:1"
    assert replace(one, line=2) == two
    assert pickle.loads(pickle.dumps(two)) == two


def test_defaults_of_an_expanded_class_are_made_anew(made: Any) -> None:
    first, second = made.Box(), made.Box(["own"], note="n")

    assert (first.names, first.place, first.note) == (["made"], None, "it's")
    assert second.names == ["own", "made"]
    assert made.Box().names is not first.names
    assert repr(first) == """Box(names=['made'], place=None, note="it's")"""
    with pytest.raises(TypeError):
        hash(first)


def test_a_class_that_names_what_is_compared_compares_that_alone(made: Any) -> None:
    assert made.Version((1, 2), "1.2") == made.Version((1, 2), "v1.2")
    assert hash(made.Version((1, 2), "1.2")) == hash(made.Version((1, 2), "v1.2"))
    assert made.Version((1, 2), "z") < made.Version((1, 10), "a")


def test_order_across_classes_is_refused(made: Any) -> None:
    with pytest.raises(TypeError):
        made.Place("a") < made.Version((1, 2), "1.2")  # noqa: B015 - the comparison is what raises


@pytest.mark.parametrize("path", MODULES)
def test_every_compiled_module_is_sound(path: str) -> None:
    text = SETUP.expand((ROOT / path).read_text(encoding="utf-8"))
    tree = ast.parse(text)
    marks = [
        ast.unparse(mark) for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for mark in node.decorator_list
    ]
    assert not [mark for mark in marks if mark.startswith("struct")]


def test_every_module_that_is_not_compiled_is_there() -> None:
    assert [name for name in SETUP.INTERPRETED if not (ROOT / "render" / f"{name}.py").is_file()] == []


def test_the_open_node_is_found() -> None:
    assert "\nNode: _TypeAlias = _Any\n" in SETUP.expand((ROOT / "render/yaml/nodes.py").read_text(encoding="utf-8"))


def test_constants_are_final_and_variables_are_not() -> None:
    head = "from __future__ import annotations\n\nA = 1\nB: int = 2\nC = 3\nd = 4\nE: int\n"
    text = f"{head}\n\ndef f():\n    global C\n    C = 4\n"
    expanded = SETUP.expand(text)

    assert "\nA: _Final = 1\nB: _Final[int] = 2\nC = 3\nd = 4\nE: int\n" in expanded


REFUSED = {
    "a call in a slice": ("def f(a, b):\n    return a[b.pop() :]\n", "line 2", "b.pop()"),
    "a name that is given in a slice": ("def f(a):\n    return a[(b := 1) :]\n", "line 2", "(b := 1)"),
    "an import by a name of the module": ("def g():\n    pass\ndef f():\n    from x import g\n", "line 4", "`g`"),
    "two errors of one name": (
        "def f():\n    try:\n        g()\n    except A as e:\n        pass\n    except B as e:\n        pass\n",
        "line 6",
        "`e`",
    ),
    "a yield while an error is handled": (
        "def f():\n    try:\n        g()\n    except OSError:\n        yield 1\n",
        "line 4",
        "yield after it",
    ),
}


@pytest.mark.parametrize(("text", "line", "what"), REFUSED.values(), ids=REFUSED)
def test_what_mypyc_makes_something_else_of_is_refused(text: str, line: str, what: str) -> None:
    with pytest.raises(SyntaxError) as caught:
        SETUP.expand(text)
    assert line in str(caught.value)
    assert what in str(caught.value)


ALLOWED = (
    "def f(a, b):\n    return a[len(b) :], a[: b.start()]\n",
    "def f():\n    try:\n        g()\n    except OSError as e:\n        h(e)\n    except KeyError as e:\n        h()\n",
    "def f():\n    from x import g\n    return g\n",
)


@pytest.mark.parametrize("text", ALLOWED)
def test_what_mypyc_compiles_alike_is_left_as_it_is(text: str) -> None:
    assert SETUP.expand(text) == text
