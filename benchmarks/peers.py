"""A number of services in, the input of render and of each peer out; and an output in, its objects out.

python benchmarks/peers.py FOLDER N        writes catalog/, platform.yaml and values.yaml
python benchmarks/peers.py --kustomize TREE FOLDER        writes bases and overlays for a rendered tree
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import generate

HERE = Path(__file__).resolve().parent
CHART = HERE / "peers" / "helm"
MAKEJINJA = HERE / "peers" / "makejinja"
SERVICE_KINDS = ("OCIRepository", "HelmRelease", "ImageRepository", "ImagePolicy")
"""What kustomize builds: the objects of services."""


def helm_values(count: int) -> str:
    """Return one values file that holds the same services: the definitions' own text, as items of a list."""
    lines = ["platform:", *(f"  {line}" for line in generate.platform().splitlines()), "services:"]
    for index in range(count):
        kept = [line for line in generate.definition(index).splitlines() if not line.startswith("#")]
        lines += ["  - " + kept[0], *("    " + line for line in kept[1:])]
    return "\n".join(lines) + "\n"


def objects(texts: Iterator[str]) -> Counter[str]:
    """Return how often each object stands in some YAML texts, as JSON with sorted keys."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    found: Counter[str] = Counter()
    for text in texts:
        for document in yaml.load_all(text, Loader=loader):
            if document is not None:
                found[json.dumps(document, sort_keys=True)] += 1
    return found


def is_of_service(text: str) -> bool:
    """Whether an object, as `objects` returns it, is one of a service that kustomize builds too."""
    return json.loads(text)["kind"] in SERVICE_KINDS


def tree(folder: Path) -> Iterator[str]:
    """Yield the text of each YAML file below a folder."""
    for path in sorted(folder.rglob("*.yaml")):
        yield path.read_text(encoding="utf-8")


def kinds(found: Counter[str]) -> dict[str, int]:
    """Return the number of objects of each kind, by `group/kind`."""
    counted: Counter[str] = Counter()
    for text, times in found.items():
        value: dict[str, Any] = json.loads(text)
        counted[f"{value['apiVersion'].rpartition('/')[0]}/{value['kind']}".lstrip("/")] += times
    return dict(sorted(counted.items()))


def expected_kinds(count: int) -> dict[str, int]:
    """Return the number of objects of each kind that the first `count` services must become, from their texts."""
    texts = [generate.definition(index) for index in range(count)]
    repositories = [text.partition("    repository: ")[2].partition("\n")[0] for text in texts]
    namespaces = {text.partition("\nnamespace: ")[2].partition("\n")[0] for text in texts}
    shared = {name for name in repositories if name != "charts"}
    images = count + sum("\nimages:\n" in text for text in texts)
    return {
        "Namespace": len(namespaces),
        "helm.toolkit.fluxcd.io/HelmRelease": count,
        "image.toolkit.fluxcd.io/ImagePolicy": images,
        "image.toolkit.fluxcd.io/ImageRepository": images,
        "image.toolkit.fluxcd.io/ImageUpdateAutomation": 1,
        # One a service, and one each for apps, flux, image automation and the shared sources.
        "kustomize.config.k8s.io/Kustomization": count + 3 + bool(shared),
        "kustomize.toolkit.fluxcd.io/Kustomization": count + 2,
        "source.toolkit.fluxcd.io/HelmRepository": len(shared),
        "source.toolkit.fluxcd.io/OCIRepository": repositories.count("charts"),
    }


def kustomize(tree: Path, folder: Path) -> None:
    """Write the services of a rendered tree as kustomize users do: a base for each shape, and overlays of patches."""
    import yaml

    shapes: set[str] = set()
    names = sorted(path.parent.name for path in tree.glob("apps/*/helmrelease.yaml"))
    for name in names:
        found: list[Any] = []
        for stem in ("source", "helmrelease", "image-automation"):
            path = tree / "apps" / name / f"{stem}.yaml"
            if path.exists():
                found += yaml.load_all(path.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", None))
        kept = [
            frozenset(one["spec"]) & {"interval", "upgrade", "rollback", "layerSelector", "filterTags"} for one in found
        ]
        shape = "-".join(f"{one['kind'].lower()}" for one in found)
        if shape not in shapes:
            shapes.add(shape)
            common = [
                {**one, "metadata": {"name": f"base-{index}"}, "spec": {key: one["spec"][key] for key in sorted(keys)}}
                for index, (one, keys) in enumerate(zip(found, kept, strict=True))
            ]
            _write(folder / "base" / shape, {"resources": ["objects.yaml"]})
            (folder / "base" / shape / "objects.yaml").write_text(
                "---\n".join(json.dumps(one) + "\n" for one in common)
            )
        patches = []
        for index, (one, keys) in enumerate(zip(found, kept, strict=True)):
            changes = [{"op": "replace", "path": "/metadata", "value": one["metadata"]}]
            for key, value in one["spec"].items():
                changes.append({"op": "replace" if key in keys else "add", "path": f"/spec/{key}", "value": value})
            target = {"kind": one["kind"], "name": f"base-{index}"}
            patches.append({"target": target, "patch": json.dumps(changes), "options": {"allowNameChange": True}})
        _write(folder / "svc" / name, {"resources": [f"../../base/{shape}"], "patches": patches})
    _write(folder, {"resources": [f"svc/{name}" for name in names]})


def _write(folder: Path, fields: dict[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    head = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}
    (folder / "kustomization.yaml").write_text(json.dumps({**head, **fields}) + "\n", encoding="utf-8")


def main() -> None:
    """Write a catalog and the values file of the same services; or the input of kustomize."""
    if sys.argv[1] == "--kustomize":
        kustomize(Path(sys.argv[2]), Path(sys.argv[3]))
        return
    folder, count = Path(sys.argv[1]), int(sys.argv[2])
    generate.write(folder, count)
    (folder / "values.yaml").write_text(helm_values(count), encoding="utf-8")


if __name__ == "__main__":
    main()
