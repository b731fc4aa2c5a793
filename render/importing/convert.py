"""A HelmRelease of any version in, its spec as `helm.toolkit.fluxcd.io/v2` has it out, with what was changed.

What v2 dropped: `chart.spec.valuesFile`, and `patchesStrategicMerge` and `patchesJson6902` of a post-renderer.
kustomize runs strategic merges before `patches`, and JSON patches after them.
"""

from __future__ import annotations

from render.importing.text import anew
from render.yaml.source import Mapping, Node, Scalar, Sequence

OLD = ("v2beta1", "v2beta2")


def entry(key: str, value: Node) -> tuple[Scalar, Node]:
    """Return an entry of ours."""
    return Scalar(key, ""), value


def without(node: Mapping, *keys: str) -> Mapping:
    """Return a mapping without some keys."""
    return Mapping([one for one in node.entries if one[0].text not in keys], node.line, node.column)


def replaced(node: Mapping, key: str, value: Node) -> Mapping:
    """Return a mapping with another value at a key; a new key comes last."""
    if node.get(key) is None:
        return Mapping([*node.entries, entry(key, value)], node.line, node.column)
    return Mapping([(k, value if k.text == key else v) for k, v in node.entries], node.line, node.column)


def convert(spec: Mapping) -> tuple[Mapping, list[str]]:
    """Return a spec without the fields that v2 dropped, and a note for each that was rewritten."""
    notes: list[str] = []
    made = _values_file(spec, notes)
    renderers = made.get("postRenderers")
    if type(renderers) is Sequence:
        items = [_renderer(item, index, notes) for index, item in enumerate(renderers.items)]
        if any(one is not other for one, other in zip(items, renderers.items, strict=True)):
            made = replaced(made, "postRenderers", Sequence(items, renderers.line, renderers.column))
    return made, notes


def _values_file(spec: Mapping, notes: list[str]) -> Mapping:
    chart = spec.get("chart")
    inner = chart.get("spec") if type(chart) is Mapping else None
    if type(chart) is not Mapping or type(inner) is not Mapping:
        return spec
    single = inner.get("valuesFile")
    if type(single) is not Scalar:
        return spec
    several = inner.get("valuesFiles")
    files = [*([] if single.is_null else [single]), *(several.items if type(several) is Sequence else ())]
    notes.append("`chart.spec.valuesFile` is written as `valuesFiles`, where it comes first")
    changed = replaced(without(inner, "valuesFile"), "valuesFiles", Sequence(files))
    return replaced(spec, "chart", replaced(chart, "spec", changed))


def _renderer(item: Node, index: int, notes: list[str]) -> Node:
    kustomize = item.get("kustomize") if type(item) is Mapping else None
    if type(item) is not Mapping or type(kustomize) is not Mapping:
        return item
    merges, patches, operations = (
        found.items if type(found := kustomize.get(name)) is Sequence else []
        for name in ("patchesStrategicMerge", "patches", "patchesJson6902")
    )
    old = [name for name in ("patchesStrategicMerge", "patchesJson6902") if kustomize.key(name) is not None]
    if not old:
        return item
    notes += (f"`postRenderers[{index}].kustomize.{name}` is written as `patches`" for name in old)
    made = [Mapping([entry("patch", _text(one))]) for one in merges]
    made += patches  # type: ignore[arg-type]
    made += (
        Mapping([(k, _text(v) if k.text == "patch" else v) for k, v in one.entries])
        for one in operations
        if type(one) is Mapping
    )
    kept = without(kustomize, *old, "patches")
    changed = Mapping([entry("patches", Sequence(list(made))), *kept.entries])
    return Mapping([(k, changed if k.text == "kustomize" else v) for k, v in item.entries])


def _text(node: Node) -> Scalar:
    """Return a patch as the text that v2 wants; one that is a text already stays."""
    if type(node) is Scalar:
        return node
    return Scalar(anew(node), "|")
