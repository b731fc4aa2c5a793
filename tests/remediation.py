"""The `upgrade` of a HelmRelease in, what helm-controller does when that upgrade fails again and again out.

A model of its release loop, as far as the remediation goes: the attempts it makes, what undoes each of them, and how it
ends. The wait for the objects is what makes an upgrade fail; without it the upgrade of an unhealthy version succeeds.
"""

from __future__ import annotations

from typing import Any, NamedTuple

FOR_EVER = 9
"""Attempts that are looked at where the controller never stops."""


class Outcome(NamedTuple):
    """What becomes of an upgrade to a version that never becomes healthy."""

    undone: tuple[str, ...]
    """What follows each attempt: `rollback`, `uninstall` or nothing (empty)."""
    ends: bool
    """Whether the controller gives up, and the release is stalled."""
    is_found_out: bool
    """Whether the upgrade fails at all."""

    @property
    def rolls_back(self) -> bool:
        """Whether the old version runs after every attempt."""
        return self.is_found_out and all(one == "rollback" for one in self.undone)


def outcome(upgrade: dict[str, Any], *, retries_by_default: bool = False) -> Outcome:
    """Return what the controller does; with its gate DefaultToRetryOnFailure the strategy has another default."""
    if upgrade.get("disableWait"):
        return Outcome(("",), ends=True, is_found_out=False)
    default = "RetryOnFailure" if retries_by_default else "RemediateOnFailure"
    strategy = (upgrade.get("strategy") or {}).get("name") or default
    if strategy == "RetryOnFailure":
        return Outcome(("",) * FOR_EVER, ends=False, is_found_out=True)
    remediation = upgrade.get("remediation") or {}
    retries = remediation.get("retries") or 0
    last = remediation.get("remediateLastFailure")
    undoes = remediation.get("strategy") or "rollback"
    if retries < 0:
        return Outcome((undoes,) * FOR_EVER, ends=False, is_found_out=True)
    remediates_last = retries > 0 if last is None else last
    return Outcome(((undoes,) * retries) + ((undoes,) if remediates_last else ("",)), ends=True, is_found_out=True)
