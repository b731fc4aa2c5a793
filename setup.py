"""Compiles the modules that a build runs through with mypyc, where RENDER_COMPILE=1; all else is in pyproject.toml.

A wheel is compiled, an editable install never is: its modules are those of the checkout. That takes a C compiler and
Python's headers.

Modules are expanded before: the classes of `render.structs` get their methods in writing, since mypyc runs no
decorators, and `Node` is left open, since the trees that are written also hold what was written into them. What mypyc
would compile to something else than Python does is refused.
"""

from __future__ import annotations

import ast
import builtins
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NoReturn

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent
FOLDER = ROOT / "build" / "expanded"
LIBRARY = "render"
"""Names the shared library that holds the code of all modules: `render__mypyc`."""

INTERPRETED = (
    # A run that changes nothing loads these alone.
    *("__init__", "__main__", "cache/__init__", "cache/replay", "cache/store"),
    # Their attributes are known at run time only.
    *("patterns", "prepared", "structs", "model/fields"),
    # Any class with its methods will do.
    "flux/override_scalars",
    # Pydantic's and click's, and what loads those of others.
    *("model/base", "model/platform", "model/schema", "model/service", "model/vm", "definition", "registry"),
    # Run once, if at all; signals are seen while a step of interpreted code runs.
    *("codes", "docs", "dockerconfig", "gitrev", "preparing", "progress", "scaffold"),
)
INTERPRETED_PREFIXES = ("cli", "importing/", "renovate")

SETTINGS = """
[mypy]
ignore_missing_imports = True

[mypy-click.*,cronsim.*,jinja2.*,oras.*,pydantic.*,re2.*,requests.*,yaml.*]
follow_imports = skip
"""
"""The same result whatever is installed; `make types` is what checks the types."""

FUTURE = "from __future__ import annotations\n"
NAMES = """MYPY = False
if MYPY:
    from typing import Any as _Any, ClassVar as _ClassVar, Final as _Final, TypeAlias as _TypeAlias
"""
NODE = """
setattr(__import__("sys").modules[__name__], "_Any", object)
Node: _TypeAlias = _Any
"""
"""An alias has a value too."""
PURE_CALLS = frozenset(("bool", "end", "index", "len", "max", "min", "start"))
"""Calls that give the same when they are made twice, as mypyc does in a slice."""


def compiled_modules() -> list[Path]:
    """Return the paths of the modules that are compiled, from the top of the checkout."""
    found = []
    for path in sorted((ROOT / "render").rglob("*.py")):
        name = path.relative_to(ROOT / "render").with_suffix("").as_posix()
        if name not in INTERPRETED and not name.startswith(INTERPRETED_PREFIXES) and path.name != "__init__.py":
            found.append(path.relative_to(ROOT))
    return found


def expand(text: str) -> str:
    """Return the text of a module as it is compiled."""
    tree = ast.parse(text)
    _check(tree)
    lines = text.splitlines(keepends=True)
    changes: list[tuple[int, int, str]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            for mark in node.decorator_list:
                if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "struct":
                    changes += _written_out(node, mark)
    changes += _constants(tree, lines)
    for first, end, new in sorted(changes, key=lambda change: change[:2], reverse=True):
        lines[first:end] = [new]
    changed = "".join(lines).replace("\nNode = Scalar | Mapping | Sequence\n", NODE)
    return changed.replace(FUTURE, f"{FUTURE}{NAMES}", 1) if changed != text else text


def _check(tree: ast.Module) -> None:
    """Refuse what mypyc compiles to something else than what Python does."""
    names = {name for node in tree.body for name in _bound(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Slice):
            _check_slice(node)
        if isinstance(node, ast.FunctionDef):
            _check_function(node, names)


def _check_slice(node: ast.Slice) -> None:
    for inner in ast.walk(node):
        called = inner.func if isinstance(inner, ast.Call) else None
        name = called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""
        if isinstance(inner, ast.NamedExpr) or (called is not None and name not in PURE_CALLS):
            _refuse(inner, f"mypyc evaluates `{ast.unparse(inner)}` twice in a slice; give its result a name before")


def _check_function(function: ast.FunctionDef, names: set[str]) -> None:
    """Check a function of a module that has some names itself."""
    caught: dict[str, str] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for name in names.intersection(_bound(node)):
                _refuse(node, f"mypyc binds `{name}`, which the module has too, for the whole module; import it `as`")
        if isinstance(node, ast.ExceptHandler):
            kind = ast.unparse(node.type) if node.type is not None else ""
            if node.name and caught.setdefault(node.name, kind) != kind and not _are_builtin(caught[node.name], kind):
                _refuse(node, f"mypyc gives `{node.name}` one type, that of the first handler; choose another name")
            if any(isinstance(inner, ast.Yield | ast.YieldFrom) for inner in ast.walk(node)):
                _refuse(node, "a generator of mypyc crashes that is left while it handles an error; yield after it")


def _are_builtin(*kinds: str) -> bool:
    """Whether errors are Python's own, of which mypyc takes all for one type."""
    return all(hasattr(builtins, name) for kind in kinds for name in kind.strip("()").split(", "))


def _refuse(node: ast.AST, reason: str) -> NoReturn:
    raise SyntaxError(f"line {getattr(node, 'lineno', 0)}: {reason}")


def _constants(tree: ast.Module, lines: list[str]) -> list[tuple[int, int, str]]:
    """Return the changes that make the constants of a module final: others are looked up in a dict at each use."""
    changes = []
    changed = {name for node in ast.walk(tree) if isinstance(node, ast.Global) for name in node.names}
    for node in tree.body:
        names = _bound(node) if isinstance(node, ast.Assign | ast.AnnAssign) else []
        if len(names) != 1 or names[0].upper() != names[0] or names[0] in changed or node.value is None:
            continue
        line = lines[node.lineno - 1]
        note = f"[{ast.unparse(node.annotation)}]" if isinstance(node, ast.AnnAssign) else ""
        rest = line[line.index("=") :]
        changes.append((node.lineno - 1, node.lineno, f"{names[0]}: _Final{note} {rest}"))
    return changes


def _bound(node: ast.AST) -> list[str]:
    """Return the names that a statement gives a meaning."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [(one.asname or one.name).split(".")[0] for one in node.names]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _written_out(cls: ast.ClassDef, mark: ast.Call) -> list[tuple[int, int, str]]:
    """Return the changes that make a class of `render.structs` an ordinary one: lines from, to, and the new text."""
    changes = [(mark.lineno - 1, mark.end_lineno or 0, "")]
    flags = {keyword.arg for keyword in mark.keywords}
    own = {node.name for node in cls.body if isinstance(node, ast.FunctionDef)}
    names, parameters, body = [], ["self"], []
    compared = ""
    for node in cls.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_values":
            # `attrgetter("…")` names the field that alone is compared.
            assert isinstance(node.value, ast.Call)
            compared = ast.literal_eval(node.value.args[0])
            changes.append((node.lineno - 1, node.end_lineno or 0, ""))
        if not isinstance(node, ast.AnnAssign):
            continue
        name, note, default = ast.unparse(node.target), ast.unparse(node.annotation), node.value
        names.append(name)
        value = name
        if default is None:
            parameters.append(f"{name}: {note}")
        elif isinstance(default, ast.Call) and ast.unparse(default.func) == "field":
            parameters.append(f"{name}: {note} | None = None")
            value = f"{ast.unparse(default.keywords[0].value)}() if {name} is None else {name}"
        else:
            parameters.append(f"{name}: {note} = {ast.unparse(default)}")
        body.append(f"self.{name} = {value}")
        if default is not None:
            changes.append((node.lineno - 1, node.end_lineno or 0, f"    {name}: {note}\n"))
    if "__post_init__" in own:
        body.append("self.__post_init__()")
    fields = [compared] if compared else names
    same = " and ".join(f"self.{name} == other.{name}" for name in fields)
    shown = ", ".join(f"{name}={{self.{name}!r}}" for name in names)

    def together(who: str, names: list[str]) -> str:
        return "(" + "".join(f"{who}.{name}, " for name in names) + ")"

    def method(name: str, arguments: str, returned: str, *lines: str) -> str:
        return f"\n    def {name}({arguments}) -> {returned}:\n" + "".join(f"        {line}\n" for line in lines)

    is_other = f"isinstance(other, {cls.name})"
    made = {
        "__init__": method("__init__", ", ".join(parameters), "None", *body),
        "__reduce__": method(
            "__reduce__", "self", "tuple[object, ...]", f"return {cls.name}, {together('self', names)}"
        ),
        "__repr__": method("__repr__", "self", "str", f'return f"{cls.name}({shown})"'),
        "__eq__": method("__eq__", "self, other: object", "bool", f"return {is_other} and {same}"),
    }
    if "frozen" in flags:
        made["__hash__"] = method("__hash__", "self", "int", f"return hash({together('self', fields)})")
    if "order" in flags:
        for name, sign in (("__lt__", "<"), ("__le__", "<="), ("__gt__", ">"), ("__ge__", ">=")):
            ordered = f"{together('self', fields)} {sign} {together('other', fields)}"
            made[name] = method(
                name, "self, other: object", "_Any", f"return {ordered} if {is_other} else NotImplemented"
            )
    written = "".join(text for name, text in made.items() if name not in own)
    end = cls.end_lineno or 0
    changes.append((end, end, f"\n    __match_args__: _ClassVar[tuple[str, ...]] = {tuple(names)!r}\n{written}"))
    return changes


class BuildModules(build_py):
    """Adds what modules would compute at each start, computed by the Python that builds the wheel."""

    def run(self) -> None:
        """Build all modules."""
        super().run()
        if not self.editable_mode:
            target = (Path(self.build_lib) / "render" / "prepared.bin").resolve()
            subprocess.run([sys.executable, "-B", "-m", "render.preparing", str(target)], cwd=ROOT, check=True)  # noqa: S603


class BuildExtensions(build_ext):
    """Compiles the C files of the library side by side, the longest first."""

    def build_extensions(self) -> None:
        """Build all extensions."""
        compiler: Any = self.compiler

        def compile_all(sources: list[str], output_dir: str, macros: Any = None, **given: Any) -> list[str]:
            macros, objects, after, options, build = compiler._setup_compile(
                output_dir, macros, given["include_dirs"], sources, given["depends"], given["extra_postargs"]
            )
            before = compiler._get_cc_args(options, given["debug"], None)

            def compile_one(made: str) -> None:
                compiler._compile(made, *build[made], before, after, options)

            todo = sorted(build, key=lambda made: -Path(build[made][0]).stat().st_size)
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                list(pool.map(compile_one, todo))
            return list(objects)

        compiler.compile = compile_all
        super().build_extensions()


def extensions() -> list[Extension]:
    """Return the extensions of the compiled modules."""
    from mypyc.build import mypycify

    shutil.rmtree(FOLDER, ignore_errors=True)
    shutil.copytree(ROOT / "render", FOLDER / "render", ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    modules = compiled_modules()
    for path in modules:
        try:
            text = expand((ROOT / path).read_text(encoding="utf-8"))
        except SyntaxError as error:
            raise SystemExit(f"{path}, {error}") from error
        (FOLDER / path).write_text(text, encoding="utf-8")
    settings = FOLDER / "mypy.ini"
    settings.write_text(SETTINGS, encoding="utf-8")
    options = ["--config-file", str(settings), "--cache-dir", str(FOLDER / "cache")]
    paths = [str(FOLDER / path) for path in modules]
    made: list[Extension] = mypycify(
        [*options, *paths],
        opt_level=os.environ.get("RENDER_COMPILE_LEVEL", "2"),
        debug_level="0",
        multi_file=True,
        group_name=LIBRARY,
        target_dir=str(FOLDER),
    )
    for extension in made:
        # Nothing but the libraries' own entry points is looked up by its name.
        extension.extra_compile_args.append("-fvisibility=hidden")
    return made


def main() -> None:
    """Run what setuptools is asked for; what goes into a wheel is compiled if `RENDER_COMPILE` says so."""
    wish = os.environ.get("RENDER_COMPILE", "0")
    if wish not in ("0", "1"):
        raise SystemExit(f"RENDER_COMPILE must be 0 or 1, not `{wish}`")
    if wish == "0":
        setup(cmdclass={"build_py": BuildModules})
    elif "bdist_wheel" in sys.argv:
        setup(ext_modules=extensions(), cmdclass={"build_ext": BuildExtensions, "build_py": BuildModules})
    else:
        # Asked for before the wheel is built, where setuptools is told what that needs.
        setup(setup_requires=["mypy>=2.4.1"])


if __name__ == "__main__":
    main()
