"""Catalogs of growing size in, how the cost of each command grows out: an exponent of 1 is linear, 2 quadratic.

    python benchmarks/scaling.py [--small 500] [--factor 4] [--only NAME ...]
    python benchmarks/scaling.py --memory 10000 [100000]

Costs are seconds of CPU of one process, the least of some runs, so that other work on the machine counts little. The
exponent is that of the growth over what the smallest catalog costs besides the start of the program.
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import generate
from run import Job, catalog_command, edit, render_command, shown

MOST = 1.15
"""The exponent that is still called linear: the start of the program and noise are in it."""
CHART = "chart: {url: https://charts.example.org, name: web, version: 1.0.0}"


def write(folder: Path, platform: str, services: Sequence[str]) -> None:
    """Write a catalog of one file a service, in folders of a hundred."""
    for index, text in enumerate(services):
        path = folder / "catalog" / f"{index // 100:03}" / f"{index:05}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (folder / "platform.yaml").write_text(platform, encoding="utf-8")


PLATFORM = 'cluster: bench\nroot: out\nflux: {version: "2.9", kustomizations: service}\n'


def many_services(folder: Path, count: int) -> None:
    """Write the services of the other benchmark."""
    generate.write(folder, count)


def many_edges(folder: Path, count: int) -> None:
    """Write services of which each depends on ten that come later: `count` edges."""
    number = max(11, count // 10)
    names = [f"s{index:05}" for index in range(number)]
    texts = []
    for index, name in enumerate(names):
        needs = names[index + 1 : index + 11]
        texts.append(f"name: {name}\nsource: {{{CHART}}}\ndependsOn: [{', '.join(needs)}]\n")
    write(folder, PLATFORM + "registries: {imageOverrides: []}\n", texts)


def many_overrides(folder: Path, count: int) -> None:
    """Write a table of `count` entries, and fifty images: each release carries the whole table, as long as it is."""
    lines = [PLATFORM + "registries:", "  emit: none", "  imageOverrides:"]
    lines += [
        f"    - {{name: registry.example.org/a{index:05}, newName: mirror.example.org/a{index:05}}}"
        for index in range(count)
    ]
    image = (
        "source: {{image: 'registry.example.org/a{0:05}:1.2.3', {1}}}\nimageOverrides: all\nupdate: {{range: 1.x}}\n"
    )
    texts = [f"name: s{index:05}\n" + image.format(index, CHART) for index in range(0, count, max(1, count // 50))]
    write(folder, "\n".join(lines) + "\n", texts)


def many_images(folder: Path, count: int) -> None:
    """Write services of twenty images each, all of which are automated: `count` images."""
    texts = []
    for number in range(max(1, count // 20)):
        lines = [f"name: s{number:05}", f"source: {{{CHART}}}", "images:"]
        for index in range(20):
            ref = f"registry.example.org/s{number:05}/i{index:02}:1.2.{index}"
            lines.append(f"  i{index:02}: {{ref: '{ref}', at: parts.i{index:02}.image, update: {{range: 1.x}}}}")
        texts.append("\n".join(lines) + "\n")
    write(folder, PLATFORM + "registries: {imageOverrides: []}\n", texts)


def build(folder: Path) -> list[str]:
    """Return the command that builds into the tree of the catalog."""
    return catalog_command("build", folder, folder / "out", "--no-cache", "--jobs", "1")


def check(folder: Path) -> list[str]:
    """Return the command that checks the tree, in one process and without a cache."""
    return catalog_command("check", folder, folder / "out", "--no-cache", "--jobs", "1")


def images(folder: Path) -> list[str]:
    """Return the command that lists images."""
    return [*render_command(), "images", str(folder / "catalog"), "--platform", str(folder / "platform.yaml")]


def diff(folder: Path) -> list[str]:
    """Return the command that compares two trees."""
    return [*render_command(), "diff", "--format", "json", str(folder / "other"), str(folder / "out")]


def policy(folder: Path) -> list[str]:
    """Return the command that asks for every automated image, as `policy --all` does, but of a list of tags."""
    code = (
        "import sys\nfrom pathlib import Path\nfrom render.policies import ask, catalog_subjects, render_answers\n"
        "folder = Path(sys.argv[1])\nfound = catalog_subjects(folder / 'catalog', folder / 'platform.yaml')\n"
        "tags = [f'1.{index}.0' for index in range(100)]\n"
        "sys.stdout.write(render_answers([ask(one, tags) for one in found.subjects], most=10))\n"
    )
    return [sys.executable, "-c", code, str(folder)]


def import_(folder: Path) -> list[str]:
    """Return the command that makes a catalog of the tree."""
    made = ["--catalog", str(folder / "new"), "--platform", str(folder / "platform.yaml"), "--dry-run", "--quiet"]
    return [*render_command(), "import", str(folder / "out" / "apps"), *made]


def with_tree(folder: Path) -> None:
    """Build the tree, and another one with small differences everywhere."""
    subprocess.run(build(folder), check=True, capture_output=True)
    for path in (folder / "out").rglob("*.yaml"):
        other = folder / "other" / path.relative_to(folder / "out")
        other.parent.mkdir(parents=True, exist_ok=True)
        other.write_text(path.read_text(encoding="utf-8").replace("1h", "2h").replace("30m", "20m"), encoding="utf-8")


CASES: dict[str, tuple[Callable[[Path, int], None], Callable[[Path], list[str]], int]] = {
    "build, services": (many_services, build, 1),
    "check, services": (many_services, check, 1),
    "build, 10,000 dependsOn edges": (many_edges, build, 5),
    "build, 1,000 override entries": (many_overrides, build, 1),
    "build, 2,000 images": (many_images, build, 1),
    "images, services": (many_services, images, 1),
    "images, 1,000 override entries": (many_overrides, images, 1),
    "diff of two trees, services": (many_services, diff, 1),
    "policy --all, services": (many_services, policy, 1),
    "policy --all, 2,000 images": (many_images, policy, 1),
    "import, services": (many_services, import_, 1),
}
"""What is written, what is run, and how many times the usual number of things it has."""


def cost(command: Sequence[str], runs: int) -> tuple[float, int]:
    """Return the least CPU time of some runs, and the exit code."""
    least, code = math.inf, 0
    environment = {**os.environ, "RENDER_CACHE_DIR": ""}
    for _ in range(runs):
        with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment
        ) as child:
            _, status, usage = os.wait4(child.pid, 0)
            code = child.returncode = os.waitstatus_to_exitcode(status)
        least = min(least, usage.ru_utime + usage.ru_stime)
    return least, code


def grow(name: str, small: int, factor: int, runs: int) -> str:
    """Return the line of a table for one case."""
    make, command, times = CASES[name]
    costs = []
    for count in (small * times, small * times * factor):
        with tempfile.TemporaryDirectory(prefix="render-scaling-") as folder:
            make(Path(folder), count)
            with_tree(Path(folder))
            spent, code = cost(command(Path(folder)), runs)
            if code not in (0, 1):
                raise SystemExit(f"{name}: exit code {code}: {' '.join(command(Path(folder)))}")
            costs.append(spent)
    start, _ = cost([*render_command(), "--help"], runs)
    exponent = math.log((costs[1] - start) / max(costs[0] - start, 1e-3), factor)
    shape = "linear" if exponent <= MOST else "more than linear"
    sizes = f"{small * times:,} | {shown(costs[0])} | {small * times * factor:,} | {shown(costs[1])}"
    return f"| {name} | {sizes} | {exponent:.2f} | {shape} |"


def memory(count: int, work: Path | None) -> str:
    """Return time and peak memory of a cold build, the next one, and one with an edited file, for many services."""
    lines = [f"| N = {count:,} | wall | CPU | peak MiB | a service |", "| --- | --- | --- | --- | --- |"]
    with tempfile.TemporaryDirectory(prefix="render-scaling-", dir=work) as name:
        folder = Path(name)
        generate.write(folder, count)
        kept = {"RENDER_CACHE_DIR": str(folder / "cache")}
        command = catalog_command("build", folder, folder / "out", "--jobs", "1")
        for told in ("cold", "nothing changed", "nothing changed, again", "one file edited"):
            job = Job(f"build, {told}", lambda _: command, None, lambda _: kept)
            if told == "one file edited":
                edit(folder, 1)
            else:
                time.sleep(3)
            job.run(1, keep=True)
            each = f"{job.wall[0] / count * 1000:.3f} ms"
            lines.append(f"| {job.name} | {shown(job.wall[0])} | {shown(job.cpu[0])} | {job.peak[0]:.0f} | {each} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Print how costs grow."""
    parser = argparse.ArgumentParser(description="Show how the cost of each command grows with the catalog.")
    parser.add_argument("--small", type=int, default=500, help="services of the smaller catalog")
    parser.add_argument("--factor", type=int, default=4, help="how many times as many the larger one has")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", nargs="+", default=[], help="parts of the names of the cases")
    parser.add_argument(
        "--memory", nargs="+", type=int, metavar="N", help="time and peak memory for N services instead"
    )
    parser.add_argument("--work", type=Path, help="where the temporary folder goes")
    asked = parser.parse_args()
    if asked.memory:
        for count in asked.memory:
            print(memory(count, asked.work), flush=True)
        return
    print("| case | of | CPU | of | CPU | exponent | |\n| --- | --- | --- | --- | --- | --- | --- |")
    for name in CASES:
        if not asked.only or any(part in name for part in asked.only):
            print(grow(name, asked.small, asked.factor, asked.runs), flush=True)


if __name__ == "__main__":
    main()
