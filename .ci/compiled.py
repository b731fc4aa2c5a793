"""Build the compiled wheel, lay what it holds over a copy of this checkout, and run pytest there with some arguments.

Given `--install FOLDER`, put the wheel into a new environment instead, which is what the benchmarks time.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache" / "compiled"
SOURCES = ("setup.py", "pyproject.toml", "constraints.txt", "README.md", "LICENSE", "render", "templates")


def stamp() -> str:
    """Return the digest of all that the wheel is made of."""
    made = hashlib.sha256(sys.version.encode())
    for name in SOURCES:
        top = ROOT / name
        for path in [top] if top.is_file() else sorted(top.rglob("*")):
            if path.is_file() and path.suffix != ".pyc":
                made.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    return made.hexdigest()[:16]


def wheel() -> Path:
    """Return the compiled wheel of this checkout, which is built once."""
    folder = CACHE / stamp()
    if not folder.is_dir():
        shutil.rmtree(CACHE, ignore_errors=True)
        source, partial = CACHE / "source", CACHE / "partial"
        for name in SOURCES:
            target = source / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, target, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(ROOT / name, target)
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check"]
        options = ["--no-build-isolation", "--no-deps", "--wheel-dir", str(partial)]
        subprocess.run([*command, *options, str(source)], check=True, env={**os.environ, "RENDER_COMPILE": "1"})
        partial.rename(folder)
        shutil.rmtree(source)
    (made,) = folder.glob("*.whl")
    return made


def install(folder: Path) -> None:
    """Make an environment with the wheel in it, unless that is what it holds."""
    note = folder / "wheel"
    if note.is_file() and note.read_text(encoding="utf-8") == stamp():
        return
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "--constraint", str(ROOT / "constraints.txt"), str(wheel())], check=True)
    note.write_text(stamp(), encoding="utf-8")


def test(arguments: list[str]) -> int:
    """Run pytest on the compiled modules."""
    made = wheel()
    copy = made.parent / "checkout"
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    shutil.rmtree(copy, ignore_errors=True)
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).exists():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, copy / name, follow_symlinks=False)
    # The copy is a repository of its own, as the checkout is.
    subprocess.run(["git", "init", "--quiet", str(copy)], check=True)
    with zipfile.ZipFile(made) as archive:
        archive.extractall(copy, [name for name in archive.namelist() if name.endswith((".so", "/prepared.bin"))])
    # Processes that tests start elsewhere see these modules too, before those of the checkout.
    environment = {**os.environ, "PYTHONPATH": str(copy)}
    environment.setdefault("RENDER_SHARED", str(ROOT.parent / "shared"))
    command = [sys.executable, "-m", "pytest", "--quiet", "--numprocesses", "2", *arguments]
    return subprocess.run(command, cwd=copy, env=environment, check=False).returncode


if __name__ == "__main__":
    if sys.argv[1:2] == ["--install"]:
        install(Path(sys.argv[2]))
    else:
        sys.exit(test(sys.argv[1:]))
