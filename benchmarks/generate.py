"""A number in, a catalog of so many ServiceDefinitions and its platform file out.

    python benchmarks/generate.py --n 1000 --out FOLDER [--seed 11]

Service i is drawn from a generator that is seeded with the seed and i alone, so it is the same text for every N.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path

AREAS = ("accounts", "audit", "cart", "claims", "fleet", "geo", "inbox", "ledger", "quotes", "rooms", "stock", "wages")
PARTS = ("api", "worker", "web", "gateway", "sync", "relay", "export", "admin")
SERVERS = frozenset(("api", "web", "gateway", "admin"))
REGISTRY = "registry.example.org"
SEED = 11
CADENCES = ("6h", "12h", "24h", '"0 */6 * * *"', '"@daily"')
PER_TEAM = 250


def service_name(index: int) -> str:
    """Return the name of service `index`."""
    return f"{AREAS[index % len(AREAS)]}-{PARTS[index // len(AREAS) % len(PARTS)]}-{index:05d}"


def team_of(index: int) -> str:
    """Return the folder of service `index`: no folder holds more than `PER_TEAM` files."""
    return f"team-{index // PER_TEAM:03d}"


def definition(index: int, seed: int = SEED) -> str:
    """Return the ServiceDefinition of service `index`."""
    draw = random.Random(f"{seed}/{index}")
    area, part, _ = service_name(index).split("-")
    version = (draw.randint(1, 6), draw.randint(0, 30), draw.randint(0, 12))
    lines = _head(draw, index, area, part)
    lines += _source(draw, area, part, version)
    if draw.random() < 0.5:
        lines += _second_image(area, version)
    lines += [
        "update:",
        f'  range: ">={version[0]}.{version[1]}.0 <{version[0] + 1}.0.0"',
        f"  cadence: {draw.choice(CADENCES)}",
    ]
    lines += _values(draw, index, area, part)
    return "\n".join(lines) + "\n"


def _head(draw: random.Random, index: int, area: str, part: str) -> list[str]:
    name = service_name(index)
    lines = [
        f"# {name}: see https://runbooks.example.org/{name}",
        f"name: {name}",
        f"namespace: {area}",
        f"description: The {part} of {area}",
        "labels:",
        f"  example.org/team: {team_of(index)}",
        f"  example.org/tier: {draw.choice(('frontend', 'backend', 'batch'))}",
    ]
    needs = index - draw.randint(1, 40)
    if draw.random() < 0.25 and needs >= 0:
        lines += ["dependsOn:", f"  - {service_name(needs)}"]
    return lines


def _source(draw: random.Random, area: str, part: str, version: tuple[int, int, int]) -> list[str]:
    repository = "charts" if draw.random() < 0.7 else f"{area}-charts"
    return [
        "source:",
        "  image:",
        f"    ref: {REGISTRY}/{area}/{part}:{version[0]}.{version[1]}.{version[2]}",
        "    at: image",
        "  chart:",
        f"    repository: {repository}",
        f"    name: {'web-service' if part in SERVERS else 'worker'}",
        f'    version: "{draw.choice(("1.10.2", "2.0.0", "3.4.1"))}"',
    ]


def _second_image(area: str, version: tuple[int, int, int]) -> list[str]:
    return [
        "images:",
        "  migrate:",
        f"    ref: {REGISTRY}/{area}/migrate:{version[0]}.{version[1]}.{version[2]}",
        "    at: migrations.image",
        "    update:",
        f'      range: "~{version[0]}.{version[1]}"',
        '      cadence: "@daily"',
    ]


def _values(draw: random.Random, index: int, area: str, part: str) -> list[str]:
    port = draw.choice((80, 3000, 8000, 8080, 9090))
    lines = [
        "values:",
        f"  replicaCount: {draw.randint(1, 6)}",
        "  service:",
        f"    port: {port}",
        "  ingress:",
        f"    enabled: {draw.choice(('true', 'false'))}",
        f"    host: {part}.{area}.example.org",
        "  resources:",
        "    requests:",
        f"      cpu: {draw.choice(('50m', '100m', '250m', '500m'))}",
        f"      memory: {draw.choice(('64Mi', '128Mi', '256Mi', '512Mi'))}",
        "  env:",
        f"    LOG_LEVEL: {draw.choice(('debug', 'info', 'warn'))}",
        f'    FEATURE_{part.upper()}: "{draw.choice(("on", "off", "yes", "no"))}"',
        f'    BUILD_ID: "{draw.randint(0, 999999):06d}"',
        f"    CACHE_URL: redis://cache.{area}.svc:6379/{draw.randint(0, 15)}",
    ]
    shape = index % 3
    if shape == 0:
        lines += ["  # The order is the order of the menu.", "  locales:"]
        lines += [f'    - "{one}"' for one in draw.sample(("no", "sv", "en", "de", "fr", "is"), 3)]
    elif shape == 1:
        lines += ["  config: |", "    [server]", f"    workers = {draw.randint(1, 16)}"]
        lines += [f'    path = "/srv/{part}/*.sock"']
    else:
        lines += ["  podAnnotations:", '    prometheus.io/scrape: "true"', f'    prometheus.io/port: "{port}"']
        lines += [f"    ratio: {draw.random():.3f}"]
    return lines


def platform() -> str:
    """Return the platform file."""
    lines = [
        "cluster: bench",
        "root: out",
        "flux:",
        '  version: "2.9"',
        "  kustomizations: service",
        "charts:",
        "  charts:",
        f"    url: oci://{REGISTRY}/charts",
    ]
    for area in AREAS:
        lines += [f"  {area}-charts:", f"    url: https://charts.example.org/{area}"]
    lines += ["registries:", "  imageOverrides: []", "imageAutomation:", "  enabled: true"]
    lines += ["  author:", "    email: bot@example.org", "defaults:", "  interval: 30m"]
    return "\n".join(lines) + "\n"


def write(folder: Path, count: int, seed: int = SEED) -> tuple[int, int]:
    """Write `platform.yaml` and `catalog/<team>/<service>.yaml`; return lines and bytes of all definitions."""
    lines = size = 0
    for index in range(count):
        text = definition(index, seed)
        target = folder / "catalog" / team_of(index) / f"{service_name(index)}.yaml"
        if index % PER_TEAM == 0:
            target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        lines += text.count("\n")
        size += len(text)
    (folder / "platform.yaml").write_text(platform(), encoding="utf-8")
    return lines, size


def main() -> None:
    """Write a catalog."""
    parser = argparse.ArgumentParser(description="Write a catalog of N services.")
    parser.add_argument("--n", type=int, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=SEED)
    asked = parser.parse_args()
    lines, size = write(asked.out, asked.n, asked.seed)
    print(f"{asked.n} definitions in {asked.out}: {lines / asked.n:.1f} lines and {size / asked.n:.0f} bytes each")


if __name__ == "__main__":
    main()
