"""The image objects of a repository and the markers of a service's images in, their `update` out.

The channel is the one that derives the very policy from the image's tag; where none does, it is `custom`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from render.flux.cadence import CadenceError, cadence
from render.flux.derive import DeriveError, derive
from render.flux.semver import RangeError
from render.importing.images import Image
from render.importing.reading import IMAGE, Found, Repository
from render.plan.sources import plain
from render.yaml.source import Mapping

_CHANNELS = ("stable", "calver", "prerelease", "build", "digest")
_REPOSITORY = ("image", "interval", "secretRef", "certSecretRef", "insecure", "provider")
_POLICY = ("imageRepositoryRef", "policy", "filterTags", "digestReflectionPolicy", "interval")
_MODES = {"Never": "never", "IfNotPresent": "ifNotPresent", "Always": "always"}

Name = tuple[str, str]
"""Namespace and name."""


@dataclass(slots=True)
class Automation:
    """The image objects of a repository."""

    policies: dict[Name, Found] = field(default_factory=dict)
    repositories: dict[Name, Found] = field(default_factory=dict)
    interval: str = "1h"
    """Of a scan, when the update names none."""

    @classmethod
    def of(cls, repository: Repository, flux_namespace: str, interval: str) -> Automation:
        """Collect the image objects; those without a namespace are taken for Flux's."""
        made = cls(interval=interval)
        for found in repository.of_kind(IMAGE, "ImagePolicy"):
            made.policies.setdefault((found.namespace or flux_namespace, found.name), found)
        for found in repository.of_kind(IMAGE, "ImageRepository"):
            made.repositories.setdefault((found.namespace or flux_namespace, found.name), found)
        return made

    def repository_of(self, name: Name) -> Found | None:
        """Return the ImageRepository of a policy."""
        policy = self.policies[name]
        wanted = policy.text("spec", "imageRepositoryRef", "name") or ""
        return self.repositories.get((policy.text("spec", "imageRepositoryRef", "namespace") or name[0], wanted))

    def update_of(self, image: Image, name: Name, effective: str) -> tuple[dict[str, Any] | None, str]:
        """Return the `update` that renders an image's policy back, or None and why there is none.

        `effective` is the repository that the cluster pulls from.
        """
        policy = self.policies.get(name)
        if policy is None:
            return None, "the policy is not among what was read"
        repository = self.repository_of(name)
        if repository is None:
            return None, "its ImageRepository is not among what was read"
        for found, known in ((repository, _REPOSITORY), (policy, _POLICY)):
            spec = found.get("spec")
            further = {key.text for key, _ in spec.entries} - set(known) if type(spec) is Mapping else set()
            if further:
                return None, f"`update` has no field for `{min(further)}` of the {found}"
        if repository.text("spec", "image") != effective:
            return None, f"the {repository} scans another image than `{image.reference.name}`"
        if image.reference.tag is None:
            return None, "the image has no tag that the policy could start from"
        made = self._channel(policy, image.reference.tag)
        if made is None:
            return None, f"the {policy} has no policy"
        made |= self._cadence(repository)
        mode = _MODES.get(policy.text("spec", "digestReflectionPolicy") or "Never", "never")
        implied = (
            "always"
            if made.get("channel") == "digest"
            else "never"
            if image.reference.digest is None
            else "ifNotPresent"
        )
        if mode != implied:
            made["digest"] = mode
        return made, ""

    def _cadence(self, repository: Found) -> dict[str, str]:
        interval = repository.text("spec", "interval")
        if interval is None:
            return {}
        try:
            is_default = cadence(interval) == cadence(self.interval)
        except CadenceError:
            is_default = False
        return {} if is_default else {"cadence": interval}

    def _channel(self, policy: Found, tag: str) -> dict[str, Any] | None:
        """Return the channel that derives a policy, or `custom` with the policy as it is."""
        said, filters = policy.get("spec", "policy"), policy.get("spec", "filterTags")
        if type(said) is not Mapping or not said.entries:
            return None
        wanted = (_settled(plain(said)), plain(filters) or None)
        range_ = policy.text("spec", "policy", "semver", "range")
        for channel in _CHANNELS:
            for text in dict.fromkeys((None, range_, (range_ or "").replace("-0", ""))):
                has_range = text is not None
                if text == "" or (has_range != (range_ is not None) and not (channel == "calver" and not has_range)):
                    continue
                try:
                    derived = derive(channel, tag, text)
                except (DeriveError, RangeError):
                    continue
                if (_settled(derived.policy), derived.filter_tags) == wanted:
                    made: dict[str, Any] = {} if channel == "stable" else {"channel": channel}
                    return made | ({"range": text} if text is not None else {})
        custom: dict[str, Any] = {"channel": "custom", "policy": said}
        return custom | ({"filterTags": filters} if type(filters) is Mapping and filters.entries else {})


def _settled(policy: Any) -> Any:
    """Return a policy with the order that holds when it names none, and only the kind that the controller takes."""
    for kind in ("semver", "alphabetical", "numerical"):
        found = policy.get(kind) if isinstance(policy, dict) else None
        if found is not None:
            return {kind: found if kind == "semver" else {"order": (found or {}).get("order", "asc")}}
    return policy
