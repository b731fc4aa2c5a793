"""A HelmRelease spec in, what is wrong with it beyond its table out.

Source: the CEL rules of helm-controller's CRD, its code and documentation, and Helm's `--set` parser.
"""

from __future__ import annotations

from render.flux.api_helm import HELM_RELEASE_SPEC, TARGET_PATH
from render.flux.api_schema import (
    Path,
    Problem,
    exactly_one,
    health_check_rules,
    is_set,
    kube_config_rules,
    mapping,
    matches_pattern,
    newer_fields,
    sequence,
)
from render.flux.versions import FluxVersion
from render.patterns import lazy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_PATH_PART = lazy(r"\\.?|\.|\[[0-9]+\]|[^\\.\[]")
_HIGHEST_INDEX = 65536
_DEEPEST_PATH = 30


def helm_release_rules(spec: dict[str, Any], version: FluxVersion, *, partial: bool = False) -> list[Problem]:
    """Return what is wrong with a HelmRelease spec beyond its table, newer fields included.

    `spec` is plain data; misshapen parts are left to the schema check. With `partial` it is a part of a spec to be
    merged with others, and the absence of a chart is no fault.
    """
    problems = newer_fields(HELM_RELEASE_SPEC, spec, version)
    problems += _chart_rules(spec, partial=partial)
    for action in ("install", "upgrade"):
        problems += _retry_rules(action, mapping(mapping(spec.get(action)).get("strategy")))
    problems += kube_config_rules(spec)
    if version.since("2.8"):
        problems += health_check_rules(spec, version)
    for index, entry in enumerate(sequence(spec.get("valuesFrom"))):
        problems += _values_from_rules(mapping(entry), ("valuesFrom", index))
    return problems


def _chart_rules(spec: dict[str, Any], *, partial: bool) -> list[Problem]:
    problems: list[Problem] = []
    if is_set(spec, "chart", "chartRef") or not partial:
        problems += exactly_one(spec, ("chart", "chartRef"), (), "add the one that fits the chart's source")
    chart = mapping(mapping(spec.get("chart")).get("spec"))
    kind = mapping(chart.get("sourceRef")).get("kind")
    if chart.get("verify") is not None and kind in ("GitRepository", "Bucket"):
        problems.append(
            Problem(
                ("chart", "spec", "verify"),
                f"`chart.spec.verify` does not go with a chart from a {kind}",
                "only charts of an OCI HelmRepository carry signatures that Flux can check",
                "remove `verify`, or take the chart from an OCI registry",
            )
        )
    return problems


def _retry_rules(action: str, strategy: dict[str, Any]) -> list[Problem]:
    if strategy.get("retryInterval") is None or strategy.get("name") != "RemediateOnFailure":
        return []
    return [
        Problem(
            (action, "strategy", "retryInterval"),
            f"`{action}.strategy.retryInterval` goes only with the strategy `RetryOnFailure`",
            "the Flux API refuses the HelmRelease",
            "remove `retryInterval`; `remediation.retries` says how often to try",
        )
    ]


def _values_from_rules(entry: dict[str, Any], path: Path) -> list[Problem]:
    target = entry.get("targetPath")
    if not isinstance(target, str) or not matches_pattern(TARGET_PATH, target):
        return []
    if entry.get("literal") is True and "\\" in target:
        # Helm's literal parser has no escapes, so the path splits in other places.
        return []
    fault = _target_path_fault(target)
    if fault is None:
        return []
    return [
        Problem(
            (*path, "targetPath"),
            f"`targetPath` {fault}",
            "Helm reads it as a `--set` path, and then fails the release or drops the value",
            r"write it as `parent.list[0].child`, a dot inside a name as `\.`",
        )
    ]


def _target_path_fault(target: str) -> str | None:
    r"""Return what Helm's `--set` parser would stumble over in a path that has the CRD's characters.

    A `\` takes the next character literally. Helm refuses indices over 65536 and more than 30 levels of names, and
    drops a value below an empty name.
    """
    before, levels = "nothing", 0
    for part in _PATH_PART.findall(target):
        if part[0] == "[":
            if before == "nothing":
                return "must not have an index without a name before it"
            if int(part[1:-1]) > _HIGHEST_INDEX:
                return f"must not have an index above {_HIGHEST_INDEX}"
            before = "index"
        elif part == ".":
            if before == "nothing":
                return "must not have an empty name before a dot"
            levels += before == "name"
            before = "nothing"
        elif before == "index":
            return "must have a dot or an index after an index"
        elif part == "\\":
            return r"must not end in a lone `\`"
        else:
            before = "name"
    if before == "nothing":
        return "must not end in a dot"
    return f"must not step down more than {_DEEPEST_PATH} times" if levels > _DEEPEST_PATH else None
