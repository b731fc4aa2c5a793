"""The Renovate configuration against Renovate itself: its validator, its extraction and its replacement.

RENDER_RENOVATE names a folder in which `npm install renovate` ran, and RENDER_NODE the program (default: node).
Without the native RE2 Renovate takes JavaScript's own engine, so this is the test of the patterns in that one.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from render.renovate import Renovate, configure

MODULES = Path(os.environ.get("RENDER_RENOVATE", ".")) / "node_modules"
NODE = os.environ.get("RENDER_NODE", "node")
ROOT = Path(__file__).parents[2]
DIST = MODULES / "renovate" / "dist"

pytestmark = pytest.mark.skipif("RENDER_RENOVATE" not in os.environ, reason="RENDER_RENOVATE names no folder")

EXTRACT = """
import { readFileSync, writeFileSync, mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
const [dist, local, input] = process.argv.slice(2);
const regex = await import(join(dist, 'modules/manager/custom/regex/index.js'));
const { matchRegexOrGlobList } = await import(join(dist, 'util/string-match.js'));
const { doAutoReplace } = await import(join(dist, 'workers/repository/update/branch/auto-replace.js'));
const { GlobalConfig } = await import(join(dist, 'config/global.js'));
GlobalConfig.set({ localDir: local });
const { config, files } = JSON.parse(readFileSync(input, 'utf-8'));
const out = [];
for (const manager of config.customManagers) {
  for (const [file, content] of Object.entries(files)) {
    if (!matchRegexOrGlobList(file, manager.managerFilePatterns)) continue;
    const found = regex.extractPackageFile(content, file, manager);
    for (const [depIndex, dep] of (found?.deps ?? []).entries()) {
      mkdirSync(dirname(join(local, file)), { recursive: true });
      writeFileSync(join(local, file), content);
      const upgrade = { ...manager, ...dep, manager: 'regex', packageFile: file, depIndex,
        newValue: dep.currentValue && '77.7.7',
        newDigest: dep.currentDigest && 'sha256:' + '7'.repeat(64), updateType: 'minor' };
      const replaced = await doAutoReplace(upgrade, content, false);
      out.push({ file, dep, replaced });
    }
  }
}
console.log(JSON.stringify(out));
"""


def node(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "LOG_LEVEL": "error"}
    return subprocess.run([NODE, *arguments], capture_output=True, text=True, check=False, env=environment)


@pytest.fixture(scope="module", params=[True, False], ids=["automation", "no automation"])
def made(request: pytest.FixtureRequest) -> Renovate:
    return configure(ROOT / "catalog", ROOT / "platform.yaml", automation=request.param)


def test_the_validator_accepts_it(made: Renovate, tmp_path: Path) -> None:
    path = tmp_path / "renovate.json"
    path.write_text(made.text)
    done = node(str(DIST / "config-validator.js"), "--strict", "--no-global", str(path))

    assert done.returncode == 0, done.stdout + done.stderr


def test_the_validator_refuses_a_broken_pattern(made: Renovate, tmp_path: Path) -> None:
    path = tmp_path / "renovate.json"
    path.write_text(made.text.replace("(?<currentValue>", "(?<currentValue>(", 1))

    assert node(str(DIST / "config-validator.js"), "--strict", "--no-global", str(path)).returncode == 1


def test_renovate_finds_and_replaces_what_is_said(made: Renovate, tmp_path: Path) -> None:
    script, given = tmp_path / "extract.mjs", tmp_path / "input.json"
    script.write_text(EXTRACT)
    files = {path.relative_to(ROOT).as_posix(): path.read_text() for path in (ROOT / "catalog").rglob("*.yaml")}
    files["platform.yaml"] = (ROOT / "platform.yaml").read_text()
    given.write_text(json.dumps({"config": made.config, "files": files}))
    done = node(str(script), str(DIST.resolve()), str(tmp_path / "local"), str(given))
    assert done.returncode == 0, done.stdout + done.stderr
    rows: list[dict[str, Any]] = json.loads(done.stdout)

    def found(row: dict[str, Any]) -> tuple[Any, ...]:
        dep = row["dep"]
        (registry,) = dep.get("registryUrls") or [None]
        package = dep.get("packageName") or dep["depName"]
        registry = registry and registry.rstrip("/")
        version = (dep.get("currentValue"), dep.get("currentDigest"))
        return row["file"], dep["depType"], dep["datasource"], package, *version, registry

    assert sorted(map(found, rows), key=str) == sorted(
        ((*one[:6], one.registry and one.registry.rstrip("/")) for one in made.found), key=str
    )
    for row in rows:
        before, after = (text.splitlines() for text in (files[row["file"]], row["replaced"]))
        changed = [(old, new) for old, new in zip(before, after, strict=True) if old != new]
        # Nothing but the version changes, on the line or lines that hold it.
        assert 1 <= len(changed) <= 2
        for old, new in changed:
            value, digest = row["dep"].get("currentValue"), row["dep"].get("currentDigest")
            expected = re.sub(re.escape(value) + r"(?=[\"'@\s#},]|$)", "77.7.7", old) if value else old
            assert new == (expected.replace(digest, "sha256:" + "7" * 64) if digest else expected)
