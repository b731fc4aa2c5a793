"""The wheel, built from the source distribution and installed where nothing but its declared dependencies is."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path
from shutil import copytree, ignore_patterns

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.trees import GOLDENS, RENDERINGS, ROOT

NAME = "flux-catalog-render"


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    """Run a program that does not see this checkout."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "RENDER_"))}
    done = subprocess.run(command, cwd=cwd, env=kept | environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def needed(name: str, seen: set[str]) -> Iterator[Distribution]:
    """Yield what a distribution declares to need, and what that needs, without extras."""
    for text in distribution(name).requires or ():
        requirement = Requirement(text)
        wanted = canonicalize_name(requirement.name)
        if wanted in seen or (requirement.marker and not requirement.marker.evaluate({"extra": ""})):
            continue
        seen.add(wanted)
        yield distribution(wanted)
        yield from needed(wanted, seen)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy that holds nothing that an earlier build left in the checkout."""
    folder = tmp_path_factory.mktemp("source") / "render"
    folder.mkdir()
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        (folder / name).write_bytes((ROOT / name).read_bytes())
    for name in ("render", "templates"):
        copytree(ROOT / name, folder / name, ignore=ignore_patterns("__pycache__"))
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", "dist", cwd=folder)
    (made,) = (folder / "dist").glob("*.whl")
    return made


@pytest.fixture(scope="module")
def program(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The installed `render`, in an environment of its own."""
    folder = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=folder)
    run(
        *(sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", folder / "bin" / "python"),
        *("install", "--quiet", "--no-index", "--no-deps", wheel),
        cwd=folder,
    )
    (packages,) = folder.glob("lib/python*/site-packages")
    for dependency in needed(NAME, set()):
        for top in {file.parts[0] for file in dependency.files or () if file.parts[0] not in ("..", "__pycache__")}:
            (packages / top).symlink_to(Path(str(dependency.locate_file(top))))
    return folder / "bin" / "render"


def test_wheel_holds_every_module_template_and_schema(wheel: Path) -> None:
    expected = {path.relative_to(ROOT).as_posix() for path in (ROOT / "render").rglob("*.py")}
    expected |= {f"render/model/{path.name}" for path in (ROOT / "render" / "model").glob("*.json")}
    expected |= {f"render/_templates/{path.name}" for path in (ROOT / "templates").iterdir() if path.is_file()}
    expected |= {"render/py.typed", "render/prepared.bin"}
    with zipfile.ZipFile(wheel) as archive:
        found = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert expected == found


@pytest.mark.parametrize("rendering", RENDERINGS)
def test_installed_program_renders_the_goldens(program: Path, tmp_path: Path, rendering: str) -> None:
    platform, automation = RENDERINGS[rendering]
    for name in ("catalog", platform):
        (tmp_path / name).symlink_to(ROOT / name)
    options = [] if automation else ["--no-image-automation"]
    run(program, "build", "catalog", "--platform", platform, "--out", "out", *options, cwd=tmp_path)
    expected, out = GOLDENS / rendering, tmp_path / "out"
    names = {path.relative_to(expected) for path in expected.rglob("*") if path.is_file()}
    assert names == {path.relative_to(out) for path in out.rglob("*") if path.is_file()}
    assert [name for name in sorted(names) if (expected / name).read_bytes() != (out / name).read_bytes()] == []


def test_installed_program_is_not_this_checkout(program: Path, tmp_path: Path) -> None:
    out = run(program.parent / "python", "-c", "import render; print(render.__file__)", cwd=tmp_path)
    assert not Path(out.strip()).is_relative_to(ROOT)
    with pytest.raises(AssertionError, match="No module named 'pytest'"):
        run(program.parent / "python", "-c", "import pytest", cwd=tmp_path)
