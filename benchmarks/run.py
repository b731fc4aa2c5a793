"""Commands in, a table of their times, peak memory and ratios out; or, with --smoke, whether their results agree.

    python benchmarks/run.py --n 3 100 1000 [--runs 5] [--only NAME ...] [--work FOLDER]
    python benchmarks/run.py --smoke

The commands run in rounds (A B C, A B C, ...), so a change of the machine's speed hits all of them; a ratio is the
median of the ratios round by round. Peak memory is the kernel's count for the finished child.
"""

from __future__ import annotations

import argparse
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import peers

SMOKE = 20
BASE = "helm template"


@dataclass
class Job:
    """One command that is timed."""

    name: str
    command: Callable[[int], Sequence[str]]
    """The command line of a round."""
    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    peak: list[float] = field(default_factory=list)

    def run(self, number: int, *, keep: bool) -> None:
        """Run round `number`; seconds and MiB are kept after the first, which warms the caches."""
        start = time.perf_counter()
        with subprocess.Popen(
            list(self.command(number)),
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        ) as child:
            assert child.stderr is not None
            told = child.stderr.read()
            _, status, usage = os.wait4(child.pid, 0)
            spent = time.perf_counter() - start
            child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            raise SystemExit(f"{self.name}: exit code {child.returncode}: {told.decode(errors='replace')[-2000:]}")
        if keep:
            self.wall.append(spent)
            self.cpu.append(usage.ru_utime + usage.ru_stime)
            self.peak.append(usage.ru_maxrss / 1024)

    def ratio(self, base: Job) -> float:
        """Return the median of the ratios round by round."""
        return statistics.median(mine / other for mine, other in zip(self.wall, base.wall, strict=True))


def environment() -> dict[str, str]:
    """Return the environment of the commands: modules are compiled once, as for everybody who installs them."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def render_command() -> list[str]:
    """Return how render is called: RENDER_COMMAND, else the script beside this Python, else its module."""
    given = os.environ.get("RENDER_COMMAND")
    if given:
        return shlex.split(given)
    script = Path(sys.executable).with_name("render")
    return [str(script)] if script.exists() else [sys.executable, "-m", "render"]


def catalog_command(verb: str, folder: Path, out: Path) -> list[str]:
    """Return the command that builds or checks a generated catalog."""
    platform = str(folder / "platform.yaml")
    return [*render_command(), verb, "--quiet", str(folder / "catalog"), "--platform", platform, "--out", str(out)]


def helm_command(folder: Path) -> list[str] | None:
    """Return the command that renders the same with helm; None when RENDER_HELM names no binary."""
    binary = os.environ.get("RENDER_HELM")
    if not binary:
        return None
    return [binary, "template", "services", str(peers.CHART), "--values", str(folder / "values.yaml")]


def jobs(folder: Path, outputs: Path) -> list[Job]:
    """Return the commands; every cold build writes to a folder of its own."""
    warm = outputs / "warm"
    made = [
        Job("render build, cold", lambda number: catalog_command("build", folder, outputs / f"cold-{number}")),
        Job("render build, nothing changed", lambda _: catalog_command("build", folder, warm)),
        Job("render check, nothing changed", lambda _: catalog_command("check", folder, warm)),
        Job("render --version", lambda _: [*render_command(), "--version"]),
        Job("python -c pass", lambda _: [sys.executable, "-c", "pass"]),
        Job("python -c 'import click'", lambda _: [sys.executable, "-c", "import click"]),
    ]
    helm = helm_command(folder)
    if helm is not None:
        made.insert(0, Job(BASE, lambda _: helm))
    return made


def prepare(folder: Path, count: int) -> None:
    """Write a catalog and what the peers read instead of it, in a process of its own.

    The kernel counts the peak of this process to that of its children, so it has to stay small.
    """
    subprocess.run([sys.executable, str(peers.HERE / "peers.py"), str(folder), str(count)], check=True)


def measure(count: int, runs: int, only: Sequence[str], work: Path | None) -> str:
    """Time the commands for `count` services and return a table."""
    with tempfile.TemporaryDirectory(prefix="render-bench-", dir=work) as name:
        folder = Path(name)
        prepare(folder, count)
        subprocess.run(catalog_command("build", folder, folder / "out" / "warm"), check=True)
        chosen = [job for job in jobs(folder, folder / "out") if not only or any(part in job.name for part in only)]
        for number in range(runs + 1):
            for job in chosen:
                job.run(number, keep=number > 0)
    return table(chosen, count)


def table(measured: Sequence[Job], count: int) -> str:
    """Return the figures as a Markdown table; ratios are against helm, or the first command without it."""
    base = next((job for job in measured if job.name == BASE), measured[0])
    bare = next((job for job in measured if job.name == "python -c pass"), None)
    lines = [
        f"N = {count}, {len(base.wall)} rounds",
        "",
        f"| command | wall, median (least..most) | CPU | peak MiB | / {base.name} | / python -c pass |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for job in measured:
        span = f"{shown(min(job.wall))}..{shown(max(job.wall))}"
        against = f"{job.ratio(bare):.2f}" if bare else ""
        figures = [
            f"{shown(statistics.median(job.wall))} ({span})",
            shown(statistics.median(job.cpu)),
            f"{max(job.peak):.0f}",
            f"{job.ratio(base):.2f}",
            against,
        ]
        lines.append(f"| {job.name} | {' | '.join(figures)} |")
    return "\n".join(lines) + "\n"


def shown(seconds: float) -> str:
    """Return a time as people read it."""
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.2f} s"


def versions() -> str:
    """Return what is measured, in which versions."""
    found = [f"Python {sys.version.split()[0]}"]
    for name in ("flux-catalog-render", "click", "jinja2", "pyyaml"):
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    binary = os.environ.get("RENDER_HELM")
    if binary:
        told = subprocess.run([binary, "version", "--short"], check=True, capture_output=True, text=True)
        found.append(f"helm {told.stdout.strip()}")
    return ", ".join(found) + f"; {os.cpu_count()} cores"


def smoke(count: int = SMOKE) -> list[str]:
    """Run each command once on a few services; return what is wrong with the objects they give."""
    with tempfile.TemporaryDirectory(prefix="render-bench-") as name:
        folder = Path(name)
        prepare(folder, count)
        out = folder / "out"
        subprocess.run(catalog_command("build", folder, out), check=True)
        ours = peers.objects(peers.tree(out))
        found = []
        if subprocess.run(catalog_command("check", folder, out), check=False).returncode:
            found.append("render: the tree it built is not what it checks for")
        counted, expected = peers.kinds(ours), peers.expected_kinds(count)
        found += [
            f"render: {counted.get(kind, 0)} objects of {kind}, not {expected.get(kind, 0)}"
            for kind in sorted(expected.keys() | counted.keys())
            if counted.get(kind, 0) != expected.get(kind, 0)
        ]
        helm = helm_command(folder)
        if helm is not None:
            told = subprocess.run(helm, check=True, capture_output=True, text=True).stdout
            theirs = peers.objects(iter([told]))
            found += [f"only render gives {text}" for text in ours - theirs]
            found += [f"only helm gives {text}" for text in theirs - ours]
    return found


def main() -> None:
    """Measure, or check results."""
    parser = argparse.ArgumentParser(description="Time render against helm; RENDER_HELM names the helm binary.")
    parser.add_argument("--n", type=int, nargs="+", default=[3, 100, 1000], help="numbers of services")
    parser.add_argument("--runs", type=int, default=5, help="rounds, after one that is not counted")
    parser.add_argument("--only", nargs="+", default=[], help="parts of the names of the commands to run")
    parser.add_argument("--work", type=Path, help="where the temporary folder goes")
    parser.add_argument("--smoke", action="store_true", help="compare results on a few services, and time nothing")
    asked = parser.parse_args()
    if asked.smoke:
        found = smoke()
        for line in found:
            print(line)
        raise SystemExit(1 if found else 0)
    print(versions() + "\n")
    for count in asked.n:
        print(measure(count, asked.runs, asked.only, asked.work), flush=True)


if __name__ == "__main__":
    main()
