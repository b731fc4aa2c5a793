"""The probes of a container in, how long they give it to become ready out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from render.structs import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DEFAULTS = {"initialDelaySeconds": 0, "periodSeconds": 10, "failureThreshold": 3, "successThreshold": 1}
"""What Kubernetes takes for fields that a probe does not have."""


@struct(frozen=True)
class Allowance:
    """How long a probe that stands in values lets a container take."""

    path: tuple[str | int, ...]
    seconds: int


def seconds_to_ready(startup: Mapping[str, Any] | None, readiness: Mapping[str, Any] | None) -> int:
    """Return the seconds that a sound container may take to become ready, from its start.

    The startup probe may fail as often as it allows; then the readiness probe has to succeed, which begins no sooner
    than its own delay.
    """
    if readiness is None and startup is None:
        return 0
    started = 0 if startup is None else _of(startup, "initialDelaySeconds") + _times(startup, "failureThreshold")
    if readiness is None:
        return started
    return max(started, _of(readiness, "initialDelaySeconds")) + _times(readiness, "successThreshold")


def _of(probe: Mapping[str, Any], field: str) -> int:
    # Kubernetes takes zero for the default, too.
    value = probe.get(field)
    return value if type(value) is int and value > 0 else DEFAULTS[field]


def _times(probe: Mapping[str, Any], field: str) -> int:
    return _of(probe, field) * _of(probe, "periodSeconds")


def allowances(values: Any, path: tuple[str | int, ...] = ()) -> Iterator[Allowance]:
    """Yield what the probes in the values of a chart allow, wherever they stand; `values` is plain data.

    Charts name them `startupProbe` and `readinessProbe`, or `probes.startup` and `probes.readiness` with the probe's
    own fields under `spec`. One with `enabled: false` counts for nothing.
    """
    if isinstance(values, list):
        for index, item in enumerate(values):
            yield from allowances(item, (*path, index))
        return
    if not isinstance(values, dict):
        return
    suffix = "" if path and path[-1] == "probes" else "Probe"
    startup, readiness = (_probe(values.get(f"{name}{suffix}")) for name in ("startup", "readiness"))
    if startup is not None:
        yield Allowance((*path, f"startup{suffix}"), seconds_to_ready(startup, None))
    if readiness is not None:
        yield Allowance((*path, f"readiness{suffix}"), seconds_to_ready(None, readiness))
    for key, value in values.items():
        yield from allowances(value, (*path, key))


def _probe(value: Any) -> dict[str, Any] | None:
    if not isinstance(value, dict) or value.get("enabled") is False:
        return None
    inner = value.get("spec")
    probe = inner if isinstance(inner, dict) else value
    return probe if any(field in probe for field in DEFAULTS) else None
