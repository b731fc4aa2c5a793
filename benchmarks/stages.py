"""A generated catalog in, the share of each stage of a cold build in time and memory out.

    python benchmarks/stages.py --n 1000 [--functions 30] [--memory] [--work FOLDER]

Stages are timed by wrapping the functions at their borders, in this process; a stage's time is its own, without that
of the stages it calls. `--functions` runs under cProfile instead, under which small functions look too dear.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import generate

STAGES = (
    ("find files", "render.catalog", "find_files"),
    ("read", "render.catalog", "read_file"),
    ("parse", "render.catalog", "parse"),
    ("check schema", "render.catalog", "Reader.read"),
    ("plan: sources", "render.plan.sources", "Charts.plan"),
    ("plan: images", "render.plan.images", "Images.declare"),
    ("plan: policies", "render.plan.policy", "Policies.plan"),
    ("plan: the rest", "render.outcome", "plan_service"),
    ("render templates", "render.templates", "render"),
    ("header and digest", "render.outcome", "data_of"),
    ("compare with the tree", "render.tree", "compare"),
    ("write", "render.tree", "write"),
)
"""Stage, module, and the function whose own time it is; the first call of a function loads what it needs."""


class Clock:
    """Own time of nested stages."""

    def __init__(self) -> None:
        self.own: dict[str, float] = {}
        self.calls: dict[str, int] = {}
        self.stack: list[str] = ["the rest"]
        self.last = time.perf_counter()

    def switch(self, push: str | None) -> None:
        """Charge the time since the last switch to the running stage; enter `push`, or leave the running one."""
        now = time.perf_counter()
        self.own[self.stack[-1]] = self.own.get(self.stack[-1], 0.0) + now - self.last
        if push is None:
            self.stack.pop()
        else:
            self.stack.append(push)
            self.calls[push] = self.calls.get(push, 0) + 1
        self.last = time.perf_counter()

    def wrap(self, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return `function`, timed."""

        def timed(*args: Any, **kwargs: Any) -> Any:
            self.switch(stage)
            try:
                return function(*args, **kwargs)
            finally:
                self.switch(None)

        return timed


def find(module: str, path: str) -> tuple[Any, str, Callable[..., Any]]:
    """Return the owner, the name and the function of an entry of `STAGES`."""
    owner: Any = importlib.import_module(module)
    *parents, name = path.split(".")
    for parent in parents:
        owner = getattr(owner, parent)
    return owner, name, getattr(owner, name)


def peak() -> float:
    """Return the peak of this process's resident memory so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def build(folder: Path, out: Path) -> None:
    """Build a catalog cold."""
    from render import build as pipeline
    from render import tree
    from render.crew import Crew

    made = pipeline.build(folder / "catalog", folder / "platform.yaml")
    changes = tree.compare(made, out)
    faults = [*made.diagnostics, *changes.diagnostics, *tree.write(made, changes, out, Crew())]
    if faults:
        raise SystemExit(f"{len(faults)} findings, first: {faults[0]}")


def stages(folder: Path, out: Path) -> None:
    """Print the table of stages."""
    clock = Clock()
    clock.switch("imports")
    before = peak()
    for module in ("render.build", "render.tree"):
        importlib.import_module(module)
    clock.switch(None)
    loaded = peak()
    for stage, module, path in STAGES:
        owner, name, function = find(module, path)
        setattr(owner, name, clock.wrap(stage, function))
    build(folder, out)
    clock.switch(None)
    unused = [stage for stage, _, _ in STAGES if stage not in clock.calls]
    if unused:
        raise SystemExit(f"never entered: {', '.join(unused)}")
    total = sum(clock.own.values())
    print("| stage | share | ms | calls | µs a call |\n| --- | --- | --- | --- | --- |")
    for stage, spent in sorted(clock.own.items(), key=lambda pair: -pair[1]):
        calls = clock.calls.get(stage, 1)
        print(f"| {stage} | {spent / total:.1%} | {spent * 1e3:.1f} | {calls} | {spent / calls * 1e6:.0f} |")
    print(f"| in all | 100% | {total * 1e3:.1f} | | |")
    print(f"\nPeak memory: {before:.0f} MiB bare, {loaded:.0f} with the modules, {peak():.0f} at the end.")


def functions(folder: Path, out: Path, count: int) -> None:
    """Print the dearest functions under cProfile."""
    import cProfile
    import pstats

    profile = cProfile.Profile()
    profile.runcall(build, folder, out)
    table = pstats.Stats(profile).strip_dirs()
    for order in ("tottime", "cumulative"):
        table.sort_stats(order).print_stats(count)


def memory(folder: Path, out: Path) -> None:
    """Print what is allocated after each step, and where, by tracemalloc."""
    import tracemalloc

    from render import build as pipeline
    from render import tree
    from render.crew import Crew

    tracemalloc.start()

    def tell(step: str) -> None:
        gc.collect()
        held, most = tracemalloc.get_traced_memory()
        print(f"{step}: {held / 2**20:.1f} MiB held, {most / 2**20:.1f} at the most")
        tracemalloc.reset_peak()

    made = pipeline.build(folder / "catalog", folder / "platform.yaml")
    tell("build")
    for line in tracemalloc.take_snapshot().statistics("lineno")[:15]:
        frame = line.traceback[0]
        place = "/".join(frame.filename.split("/")[-3:])
        print(f"  {line.size / 1024:8.0f} KiB in {line.count:6d}  {place}:{frame.lineno}")
    changes = tree.compare(made, out)
    tell("compare")
    tree.write(made, changes, out, Crew())
    tell("write")


def main() -> None:
    """Profile a cold build."""
    parser = argparse.ArgumentParser(description="Show where the time and the memory of a cold build go.")
    parser.add_argument("--n", type=int, default=1000)
    parser.add_argument("--functions", type=int, metavar="COUNT", help="list this many functions by cProfile")
    parser.add_argument("--memory", action="store_true", help="show allocations by tracemalloc")
    parser.add_argument("--work", type=Path, help="where the temporary folder goes")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=asked.work) as folder:
        generate.write(Path(folder), asked.n)
        out = Path(folder) / "out"
        if asked.memory:
            memory(Path(folder), out)
        elif asked.functions:
            functions(Path(folder), out, asked.functions)
        else:
            stages(Path(folder), out)


if __name__ == "__main__":
    main()
