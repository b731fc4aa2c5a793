"""Imports go one way; what a start does not need is not imported."""

from __future__ import annotations

import ast
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "render"

LAYERS = (
    ("structs", "prepared", "patterns", "progress", "digests"),
    ("render", "diagnostics", "redact", "codes", "files", "texts", "crew"),
    ("yaml",),
    ("model",),
    ("catalog", "committed"),
    ("plan",),
    ("templates",),
    ("identities",),
    (
        "guard",
        "credential",
    ),
    ("headers", "outcome", "renderer", "workers"),
    ("build",),
    ("writer", "strays", "tree"),
    ("report", "inventory", "carried", "policies", "override", "importing"),
    ("cli", "docs", "__main__"),
)
"""A module imports from its own layer and those before it; `cli` stands for `cli_…` too.

A module that is not listed serves commands: it stands with `report`.

`flux` stands aside: it knows nothing but itself and `TOOLS`.
"""

TOOLS = {"structs", "prepared", "patterns"}
"""Replace what Python has more slowly, and know nothing of the rest."""


def name_of(path: Path) -> str:
    """The module's name without `render.`; `render` for the package itself."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts).removesuffix("__init__").rstrip(".") or "render"


MODULES = {name_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def imports(path: Path, *, types: bool = True) -> set[str]:
    """The modules of ours that a module imports, wherever in it; without `types`, only when it runs."""
    found: set[str] = set()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    if not types:
        tree.body = [one for one in tree.body if not (isinstance(one, ast.If) and is_for_types(one.test))]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide the layer"
            module = node.module or ""
            whole = {f"{module}.{alias.name}" for alias in node.names}
            found |= {name if name.removeprefix("render.") in MODULES else module for name in whole}
    return {name.removeprefix("render.") for name in found if name.split(".")[0] == "render"}


USES_DIAGNOSTICS = ("yaml.nodes", "yaml.compose", "yaml.source")


def is_for_types(test: ast.expr) -> bool:
    return isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"


def layer(module: str) -> int:
    """The index of a module's layer; the most telling prefix decides."""
    for index, members in enumerate(LAYERS):
        if module in members or module.split(".", maxsplit=1)[0] in members:
            return index
    return layer("report")


def is_flux(module: str) -> bool:
    return module.split(".", maxsplit=1)[0] == "flux"


@pytest.mark.parametrize("module", [module for module in MODULES if not is_flux(module)])
def test_a_module_imports_nothing_above_it(module: str) -> None:
    above = [name for name in imports(MODULES[module]) if not is_flux(name) and layer(name) > layer(module)]

    assert above == []


@pytest.mark.parametrize("module", [module for module in MODULES if is_flux(module)])
def test_the_rules_of_flux_know_only_themselves(module: str) -> None:
    assert [name for name in imports(MODULES[module]) if not is_flux(name) and name not in TOOLS] == []


@pytest.mark.parametrize("module", [module for module in MODULES if module.split(".")[0] == "yaml"])
def test_the_yaml_modules_know_nothing_of_flux(module: str) -> None:
    allowed = TOOLS | {"diagnostics", "redact"} if module in USES_DIAGNOSTICS else TOOLS
    others = {name for name in imports(MODULES[module]) if name.split(".")[0] != "yaml"}

    assert set() == others - allowed


def test_no_modules_import_each_other() -> None:
    graph = {module: imports(path, types=False) - {module, "render"} for module, path in MODULES.items()}

    # Raises CycleError, which names the cycle.
    assert set(MODULES) <= set(TopologicalSorter(graph).static_order())


def run(code: str) -> str:
    """Run code in a new interpreter in which every warning is an error, and return what it prints."""
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=PACKAGE.parent)
    assert (done.stderr, done.returncode) == ("", 0)
    return done.stdout


def test_every_module_imports_alone() -> None:
    names = sorted(f"render.{name}" if name != "render" else name for name in MODULES)
    # Each in a child of its own, so that none leans on what another of ours has imported.
    run(
        "import importlib, os, click, jinja2, pydantic, yaml\n"
        f"for name in {names!r}:\n"
        "    if not os.fork():\n"
        "        try:\n"
        "            importlib.import_module(name)\n"
        "        except BaseException as error:\n"
        "            os.write(2, f'{name}: {error!r}\\n'.encode())\n"
        "        finally:\n"
        "            os._exit(0)\n"
        f"for name in {names!r}:\n"
        "    os.wait()\n"
    )


HEAVY = ("pydantic", "jinja2", "yaml", "re2", "cronsim", "ruamel", "typing_extensions")


def heavy(code: str) -> list[str]:
    return run(f"import sys\n{code}\nprint(*(name for name in {HEAVY!r} if name in sys.modules))").split()


def test_the_command_line_imports_nothing_heavy() -> None:
    assert heavy("import render.cli") == []


def test_a_build_needs_neither_pydantic_nor_ruamel() -> None:
    code = (
        "from pathlib import Path\nfrom render.build import build\n"
        "made = build(Path('catalog'), Path('platform.yaml'))\nassert made.files"
    )

    assert {"pydantic", "ruamel", "typing_extensions"} & set(heavy(code)) == set()


def test_a_usual_build_needs_no_click(tmp_path: Path) -> None:
    code = (
        f"import sys\nsys.argv = ['render', 'build', '--quiet', '--no-cache', '--out', {str(tmp_path)!r}]\n"
        "from render.__main__ import main\nassert main() == 0\nprint('click' in sys.modules, 'yaml' in sys.modules)"
    )

    assert run(code).split()[0] == "False"
