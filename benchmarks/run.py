"""Commands in, tables of their times and ratios and whether each bar holds out; or whether their results agree.

    python benchmarks/run.py --n 3 100 1000 [--runs 7] [--only NAME ...] [--work FOLDER]
    python benchmarks/run.py --smoke

The commands run in rounds (A B C, A B C, ...), so a change of the machine's speed hits all of them; a ratio is the
median of the ratios round by round. Peak memory is the kernel's count for the finished child.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import peers

SMOKE = 20
SETTLED = 3
"""Seconds after which what was written counts as old, for render and for Git."""
HELM, MAKEJINJA, KUSTOMIZE = "helm template", "makejinja, one stream", "kustomize, one root"
COLD, TWO, NO_CHANGE, CHECK, EDIT = (
    "render build, cold, one process",
    "render build, cold, two processes",
    "render build, nothing changed",
    "render check, nothing changed",
    "render build, one file edited",
)
VERSION, HELP, EXPLAIN, COMPLETION = "render --version", "render --help", "render explain R103", "render, completion"
STATUS, BARE, CLICK = "git status", "python -I -c pass", "python -c 'import click'"


@dataclass(frozen=True)
class Bar:
    """A ratio that must be reached."""

    name: str
    base: str
    most: Mapping[int, float]
    """The ratio for a number of services; it also holds for those between this and the next."""

    def at(self, count: int) -> float | None:
        """Return the ratio for a number of services."""
        fitting = [number for number in self.most if number <= count]
        return self.most[max(fitting)] if fitting else None


BARS = (
    Bar(COLD, HELM, {3: 2.0, 100: 0.9, 1000: 0.5}),
    Bar(TWO, COLD, {1000: 0.7}),
    Bar(COLD, MAKEJINJA, {1000: 0.15}),
    Bar(COLD, KUSTOMIZE, {100: 0.15}),
    Bar(NO_CHANGE, STATUS, {1000: 3.0, 10000: 1.6}),
    Bar(CHECK, STATUS, {1000: 3.0, 10000: 1.6}),
    Bar(EDIT, NO_CHANGE, {1000: 1.5}),
    Bar(VERSION, BARE, {1: 2.0}),
    Bar(HELP, CLICK, {1: 1.5}),
    Bar(EXPLAIN, CLICK, {1: 1.5}),
    Bar(COMPLETION, CLICK, {1: 1.5}),
)
SLOW = {MAKEJINJA: 1000, KUSTOMIZE: 100}
"""The only number of services with which a peer is run: its rounds are long."""


@dataclass
class Job:
    """One command that is timed."""

    name: str
    command: Callable[[int], Sequence[str]]
    """The command line of a round."""
    folder: Path | None = None
    """Where it runs."""
    environment: Callable[[int], Mapping[str, str]] = lambda _: {}
    before: Callable[[int], object] = lambda _: None
    """What is done before it, and not timed."""
    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    peak: list[float] = field(default_factory=list)

    def run(self, number: int, *, keep: bool) -> None:
        """Run round `number`; seconds and MiB are kept after the first, which warms the caches."""
        self.before(number)
        start = time.perf_counter()
        with subprocess.Popen(
            list(self.command(number)),
            cwd=self.folder,
            env={**environment(), **self.environment(number)},
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

    def ratios(self, base: Job) -> list[float]:
        """Return the ratios round by round."""
        return [mine / other for mine, other in zip(self.wall, base.wall, strict=True)]

    def ratio(self, base: Job) -> float:
        """Return the median of the ratios round by round."""
        return statistics.median(self.ratios(base))


def environment() -> dict[str, str]:
    """Return the environment of the commands: modules are compiled once, as for everybody who installs them."""
    dropped = ("PYTHONDONTWRITEBYTECODE", "RENDER_CACHE_DIR", "XDG_CACHE_HOME")
    return {name: value for name, value in os.environ.items() if name not in dropped}


def in_memory() -> Path | None:
    """Return a file system in memory, where there is one with room: what a disk takes for a file differs tenfold.

    ext4 looks through the inodes that were freed some minutes ago for each file that it creates, for example.
    """
    memory = Path("/dev/shm")
    is_there = memory.is_dir() and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 2 << 30
    return memory if is_there else None


def render_command() -> list[str]:
    """Return how render is called: RENDER_COMMAND, else the script beside this Python, else its module."""
    given = os.environ.get("RENDER_COMMAND")
    if given:
        return shlex.split(given)
    script = Path(sys.executable).with_name("render")
    return [str(script)] if script.exists() else [sys.executable, "-m", "render"]


def catalog_command(verb: str, folder: Path, out: Path | None = None, *more: str) -> list[str]:
    """Return the command that builds or checks a generated catalog."""
    platform = str(folder / "platform.yaml")
    command = [*render_command(), verb, "--quiet", str(folder / "catalog"), "--platform", platform, *more]
    return [*command, "--out", str(out)] if out is not None else command


def helm_command(folder: Path) -> list[str] | None:
    """Return the command that renders the same with helm; None when RENDER_HELM names no binary."""
    binary = os.environ.get("RENDER_HELM")
    if not binary:
        return None
    return [binary, "template", "services", str(peers.CHART), "--values", str(folder / "values.yaml")]


def makejinja_command(folder: Path, out: Path) -> list[str] | None:
    """Return the command that renders the same with makejinja; None when RENDER_MAKEJINJA names no binary."""
    binary = os.environ.get("RENDER_MAKEJINJA")
    if not binary:
        return None
    data = ["--data", str(folder / "values.yaml"), "--plugin", "plugin:Plugin"]
    return [binary, "--quiet", "--force", *data, "--input", str(peers.MAKEJINJA / "in"), "--output", str(out)]


MAKEJINJA_ENVIRONMENT = {
    "PYTHONPATH": str(peers.MAKEJINJA),
    "MAKEJINJA_SETTINGS": str(peers.MAKEJINJA / "cached.toml"),
}


def kustomize_command(folder: Path) -> list[str] | None:
    """Return the command that builds the services with kustomize; None when RENDER_KUBECTL names no binary."""
    binary = os.environ.get("RENDER_KUBECTL")
    return [binary, "kustomize", str(folder / "kustomize")] if binary else None


def jobs(folder: Path, work: Path, count: int) -> list[Job]:
    """Return the commands; every cold build writes to a folder of its own, and finds no cache."""
    warm, edited = work / "warm", work / "edited"
    kept = {"RENDER_CACHE_DIR": str(work / "cache")}

    def cold(name: str, processes: int) -> Job:
        return Job(
            name,
            lambda number: catalog_command(
                "build", folder, work / f"cold-{processes}-{number}", "--jobs", str(processes)
            ),
            environment=lambda number: {"RENDER_CACHE_DIR": str(work / f"cache-{processes}-{number}")},
        )

    def repository(name: str, verb: str, where: Path, before: Callable[[int], object] = lambda _: None) -> Job:
        return Job(name, lambda _: [*render_command(), verb, "--quiet"], where, lambda _: kept, before)

    made = [
        cold(COLD, 1),
        cold(TWO, 2),
        repository(NO_CHANGE, "build", warm),
        repository(CHECK, "check", warm),
        repository(EDIT, "build", edited, lambda number: edit(edited, number)),
        Job(VERSION, lambda _: [*render_command(), "--version"]),
        Job(HELP, lambda _: [*render_command(), "--help"]),
        Job(EXPLAIN, lambda _: [*render_command(), "explain", "R103"]),
        Job(COMPLETION, lambda _: render_command(), environment=lambda _: {"_RENDER_COMPLETE": "bash_source"}),
        Job(BARE, lambda _: [sys.executable, "-I", "-c", "pass"]),
        Job(CLICK, lambda _: [sys.executable, "-c", "import click"]),
    ]
    if shutil.which("git"):
        made.insert(2, Job(STATUS, lambda _: ["git", "status", "--porcelain"], warm))
    helm = helm_command(folder)
    if helm is not None:
        made.insert(0, Job(HELM, lambda _: helm))
    if makejinja_command(folder, work) is not None and count == SLOW[MAKEJINJA]:
        made.append(
            Job(
                MAKEJINJA,
                lambda number: makejinja_command(folder, work / f"makejinja-{number}") or [],
                environment=lambda _: MAKEJINJA_ENVIRONMENT,
            )
        )
    kustomize = kustomize_command(folder)
    if kustomize is not None and count == SLOW[KUSTOMIZE]:
        made.append(Job(KUSTOMIZE, lambda _: kustomize))
    return made


def edit(folder: Path, number: int) -> None:
    """Edit one definition, so that a build has something to write."""
    path = max((folder / "catalog").rglob("*.yaml"))
    lines = path.read_text(encoding="utf-8").split("\n")
    place = next(index for index, line in enumerate(lines) if line.strip().startswith("replicaCount:"))
    lines[place] = f"  replicaCount: {number + 10}"
    path.write_text("\n".join(lines), encoding="utf-8")


def prepare(folder: Path, count: int) -> None:
    """Write a catalog and what the peers read instead of it, in a process of its own.

    The kernel counts the peak of this process to that of its children, so it has to stay small.
    """
    subprocess.run([sys.executable, str(peers.HERE / "peers.py"), str(folder), str(count)], check=True)


def prepare_kustomize(folder: Path, tree: Path) -> None:
    """Write what kustomize reads, in a process of its own."""
    script = str(peers.HERE / "peers.py")
    subprocess.run([sys.executable, script, "--kustomize", str(tree), str(folder / "kustomize")], check=True)


def prepare_repositories(folder: Path, work: Path) -> None:
    """Make two repositories of a catalog and its tree, rendered and committed."""
    for name in ("warm", "edited"):
        target = work / name
        target.mkdir()
        shutil.copytree(folder / "catalog", target / "catalog")
        shutil.copy(folder / "platform.yaml", target)
        cache = {"RENDER_CACHE_DIR": str(work / "cache")}
        subprocess.run([*render_command(), "build", "--quiet"], cwd=target, env={**environment(), **cache}, check=True)
        if shutil.which("git"):
            author = ["-c", "user.name=bench", "-c", "user.email=bench@example.org"]
            for command in (["init", "-q"], ["add", "."], [*author, "commit", "-qm", "Render"]):
                subprocess.run(["git", *command], cwd=target, check=True)


def measure(count: int, runs: int, only: Sequence[str], work: Path | None) -> list[Job]:
    """Time the commands for `count` services."""
    with tempfile.TemporaryDirectory(prefix="render-bench-", dir=work) as name:
        folder, space = Path(name) / "input", Path(name) / "work"
        space.mkdir()
        prepare(folder, count)
        prepare_repositories(folder, space)
        chosen = [job for job in jobs(folder, space, count) if not only or any(part in job.name for part in only)]
        if any(job.name == KUSTOMIZE for job in chosen):
            prepare_kustomize(folder, space / "warm" / "out")
        time.sleep(SETTLED)
        for number in range(runs + 1):
            for job in chosen:
                job.run(number, keep=number > 0)
    return chosen


def table(measured: Sequence[Job], count: int) -> str:
    """Return the figures as a Markdown table; ratios are against helm, or the first command without it."""
    base = next((job for job in measured if job.name == HELM), measured[0])
    lines = [
        f"N = {count}, {len(base.wall)} rounds",
        "",
        f"| command | wall, median (least..most) | CPU | peak MiB | / {base.name} |",
        "| --- | --- | --- | --- | --- |",
    ]
    for job in measured:
        span = f"{shown(min(job.wall))}..{shown(max(job.wall))}"
        figures = [
            f"{shown(statistics.median(job.wall))} ({span})",
            shown(statistics.median(job.cpu)),
            f"{max(job.peak):.0f}",
            f"{job.ratio(base):.2f}",
        ]
        lines.append(f"| {job.name} | {' | '.join(figures)} |")
    return "\n".join(lines) + "\n"


def bars(measured: Sequence[Job], count: int) -> str:
    """Return the bars that apply to what was measured, as a Markdown table."""
    by_name = {job.name: job for job in measured}
    lines = ["| bar | ratio, median (least..most) | at most | holds |", "| --- | --- | --- | --- |"]
    for bar in BARS:
        most = bar.at(count)
        if most is None or bar.name not in by_name or bar.base not in by_name:
            continue
        found = by_name[bar.name].ratios(by_name[bar.base])
        middle = statistics.median(found)
        span = f"{middle:.2f} ({min(found):.2f}..{max(found):.2f})"
        lines.append(f"| {bar.name} / {bar.base} | {span} | {most:g} | {'yes' if middle <= most else 'no'} |")
    return "\n".join(lines) + "\n"


def scaling(found: Mapping[int, Sequence[Job]]) -> str:
    """Return the cost of a service at each number of services from 1,000 on, against that at 1,000."""
    lines = ["| command | services | a service | / at 1,000 |", "| --- | --- | --- | --- |"]
    for name in (COLD, NO_CHANGE):
        costs = {
            count: statistics.median(job.wall) / count
            for count, measured in found.items()
            for job in measured
            if job.name == name and count >= 1000
        }
        if len(costs) > 1 and 1000 in costs:
            lines += [
                f"| {name} | {count} | {cost * 1000:.3f} ms | {cost / costs[1000]:.2f} |"
                for count, cost in sorted(costs.items())
            ]
    return "\n".join(lines) + "\n" if len(lines) > 2 else ""


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
    asked = {
        "helm": (os.environ.get("RENDER_HELM"), "version", "--short"),
        "kubectl": (os.environ.get("RENDER_KUBECTL"), "version", "--client"),
        "makejinja": (os.environ.get("RENDER_MAKEJINJA"), "--version"),
        "git": (shutil.which("git"), "--version"),
    }
    for name, (binary, *arguments) in asked.items():
        if binary:
            told = subprocess.run([binary, *arguments], check=True, capture_output=True, text=True).stdout
            found.append(f"{name} {', '.join(line.split()[-1] for line in told.splitlines() if line.strip())}")
    return ", ".join(found) + f"; {os.cpu_count()} cores"


def smoke(count: int = SMOKE) -> list[str]:
    """Run each command once on a few services; return what is wrong with the objects they give."""
    with tempfile.TemporaryDirectory(prefix="render-bench-") as name:
        folder = Path(name)
        prepare(folder, count)
        out, cache = folder / "out", {**environment(), "RENDER_CACHE_DIR": str(folder / "cache")}
        subprocess.run(catalog_command("build", folder, out), env=cache, check=True)
        ours = peers.objects(peers.tree(out))
        # From what the first run has left, without it, and in two processes.
        found = [
            f"render: the tree it built is not what it checks for {' '.join(more)}".rstrip()
            for more in ((), ("--no-cache",), ("--no-cache", "--jobs", "2"))
            if subprocess.run(catalog_command("check", folder, out, *more), env=cache, check=False).returncode
        ]
        edit(folder, 1)
        told = subprocess.run(catalog_command("check", folder, out), env=cache, check=False, capture_output=True)
        plain = subprocess.run(
            catalog_command("check", folder, out, "--no-cache"), env=cache, check=False, capture_output=True
        )
        if told.returncode != 1 or (told.stdout, told.stderr) != (plain.stdout, plain.stderr):
            found.append("render: an edit is not told as without a cache")
        counted, expected = peers.kinds(ours), peers.expected_kinds(count)
        found += [
            f"render: {counted.get(kind, 0)} objects of {kind}, not {expected.get(kind, 0)}"
            for kind in sorted(expected.keys() | counted.keys())
            if counted.get(kind, 0) != expected.get(kind, 0)
        ]
        return found + smoke_peers(folder, out, ours)


def smoke_peers(folder: Path, out: Path, ours: Counter[str]) -> list[str]:
    """Run the peers that there are once; return where their objects differ from ours."""
    found = []
    helm = helm_command(folder)
    if helm is not None:
        told = subprocess.run(helm, check=True, capture_output=True, text=True).stdout
        found += differences("helm", ours, peers.objects(iter([told])))
    makejinja = makejinja_command(folder, folder / "makejinja")
    if makejinja is not None:
        subprocess.run(makejinja, env={**environment(), **MAKEJINJA_ENVIRONMENT}, check=True)
        found += differences("makejinja", ours, peers.objects(peers.tree(folder / "makejinja")))
    kustomize = kustomize_command(folder)
    if kustomize is not None:
        prepare_kustomize(folder, out)
        told = subprocess.run(kustomize, check=True, capture_output=True, text=True).stdout
        services = Counter({one: times for one, times in ours.items() if peers.is_of_service(one)})
        found += differences("kustomize", services, peers.objects(iter([told])))
    return found


def differences(name: str, ours: Counter[str], theirs: Counter[str]) -> list[str]:
    """Return which objects only one of two gives."""
    found = [f"only render gives {text}" for text in ours - theirs]
    return found + [f"only {name} gives {text}" for text in theirs - ours]


def main() -> None:
    """Measure, or check results."""
    parser = argparse.ArgumentParser(
        description="Time render against its peers: RENDER_HELM, RENDER_KUBECTL and RENDER_MAKEJINJA name the binaries."
    )
    parser.add_argument("--n", type=int, nargs="+", default=[3, 100, 1000], help="numbers of services")
    parser.add_argument("--runs", type=int, default=7, help="rounds, after one that is not counted")
    parser.add_argument("--only", nargs="+", default=[], help="parts of the names of the commands to run")
    parser.add_argument("--work", type=Path, default=in_memory(), help="where the temporary folder goes")
    parser.add_argument("--smoke", action="store_true", help="compare results on a few services, and time nothing")
    asked = parser.parse_args()
    if asked.smoke:
        found = smoke()
        for line in found:
            print(line)
        raise SystemExit(1 if found else 0)
    print(versions() + "\n")
    measured = {}
    for count in asked.n:
        measured[count] = measure(count, asked.runs, asked.only, asked.work)
        print(table(measured[count], count) + "\n" + bars(measured[count], count), flush=True)
    print(scaling(measured))


if __name__ == "__main__":
    main()
