"""An image's `update` in, its ImageRepository and ImagePolicy out, proved against the current tag."""

from __future__ import annotations

import re

from render.flux.cadence import CadenceError, cadence
from render.flux.derive import Derived, DeriveError, Finding, derive, self_test
from render.flux.overrides import split
from render.flux.semver import Constraint, RangeError
from render.plan.context import Context, Report, node_at
from render.plan.images import ImagePlan
from render.plan.sources import plain, registry_access
from render.structs import struct
from render.yaml.emit import Marked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from render.model.service import Update

SHORTEST = "1m"
"""The shortest interval of a scan."""
FINDING_CODES = {
    "range": "R702",
    "extract": "R705",
    "pattern": "R705",
    "order": "R704",
    "policy": "R703",
    "tag": "R703",
}
"""Diagnostic codes by the first word of a self-test finding's name."""


@struct(frozen=True)
class Policy:
    """What keeps one image up to date."""

    name: str
    """Of the ImageRepository and the ImagePolicy."""
    image: str
    """The repository that is scanned: the effective one."""
    interval: str
    access: dict[str, Any]
    derived: Derived
    digest: str
    """`never`, `ifNotPresent` or `always`."""

    def documents(self, context: Context, common: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
        """Return the two objects as templates and what they are given."""
        shared = {**common, "name": self.name, "namespace": context.flux_namespace}
        labels = policy_labels(context, common)
        repository = {"image": self.image, "interval": self.interval, **self.access}
        digest = {"ifNotPresent": "IfNotPresent", "always": "Always"}.get(self.digest)
        filters: dict[str, Any] | None = self.derived.filter_tags
        policy = {
            "filterTags": filters and {key: Marked(value) for key, value in filters.items()},
            "policy": _policy(self.derived.policy),
            "digestReflectionPolicy": digest,
            # The CRD demands the interval with Always, and refuses it otherwise.
            "interval": self.interval if self.digest == "always" else None,
        }
        return [
            ("imagerepository", {**shared, **repository}),
            ("imagepolicy", {**shared, "labels": labels or None, **policy}),
        ]


def _policy(policy: dict[str, dict[str, str]]) -> dict[str, Any]:
    if "semver" in policy:
        return {"semver": {"range": Marked(policy["semver"]["range"])}}
    return dict(policy)


def bot_selector(context: Context) -> dict[str, Any]:
    """Return the selector of the policies that the bot follows; an empty one selects all."""
    if context.bot_selector is None:
        selector = plain(context.platform.image_automation.policy_selector)
        context.bot_selector = selector if isinstance(selector, dict) else {}
    return context.bot_selector


def policy_labels(context: Context, common: dict[str, Any]) -> dict[str, str]:
    """Return the labels of an ImagePolicy: the service's, and those by which the bot selects it."""
    labels = dict(common["labels"] or {})
    for key, value in (bot_selector(context).get("matchLabels") or {}).items():
        labels.setdefault(key, value)
    return labels


def policy_name(service: str, image: ImagePlan) -> str:
    """Return the name of an image's ImageRepository and ImagePolicy."""
    return f"{service}-{image.key}" if image.key else service


class Policies:
    """Plans the policies of one service's images."""

    def __init__(self, context: Context, service_name: str, report: Report) -> None:
        self.context = context
        self.service_name = service_name
        self.report = report

    def plan(self, image: ImagePlan) -> Policy | None:
        """Return the policy of an image that is to be automated; None without one, and after reporting."""
        update = image.update
        if update is None or image.pinned_by:
            return None
        interval = self._interval(image, update)
        if not image.is_read:
            self._check_range(image, update)
            return None
        reference = image.reference
        if reference.tag is None:
            self._check_range(image, update)
            self.report.error(
                "R703",
                image.node,
                f"`{image.label}` has no tag that an update could start from",
                cause="the policy is derived from the current tag, and proved against it",
                hint=f"write the tag that runs now: `{reference.name}:TAG`",
            )
            return None
        digest = self._digest(image, update)
        derived = self._derive(image, update, reference.tag)
        if not image.is_settled:
            return None
        effective = split(image.effective)[0]
        access = registry_access(self.context, effective)
        if digest is None or derived is None or interval is None:
            return None
        return Policy(policy_name(self.service_name, image), effective, interval, access, derived, digest)

    def _field(self, image: ImagePlan, *keys: str) -> Any:
        """Return the deepest node on a path below the image's update; for a missing field, its parent's place."""
        return image.node if image.update_node is None else node_at(image.update_node, *keys)

    def _check_range(self, image: ImagePlan, update: Update) -> None:
        """Check what can be checked of a range without the tag."""
        if update.range is None or update.channel not in ("stable", "prerelease", "calver"):
            return
        try:
            Constraint.parse(update.range)
        except RangeError as error:
            self._refuse_range(image, update, error)

    def _digest(self, image: ImagePlan, update: Update) -> str | None:
        has_digest = image.reference.digest is not None
        mode = update.digest
        if mode is None:
            mode = "always" if update.channel == "digest" else "ifNotPresent" if has_digest else "never"
        node = self._field(image, "digest")
        if mode == "never" and update.channel == "digest":
            self.report.error(
                "R706",
                node,
                "`channel: digest` must follow the digest, and `digest: never` forbids it",
                cause="the channel keeps the tag and follows the digest alone",
                hint="remove one of the two",
            )
            return None
        if mode == "never" and has_digest:
            self.report.error(
                "R706",
                node,
                f"`{image.label}` carries a digest, and `digest: never` forbids to follow it",
                cause="the bot would move the tag and leave the digest, and the old digest would run for ever",
                hint="remove `digest: never`, or the digest from the reference",
            )
            return None
        if mode != "never" and image.is_placed and not image.holds_digest():
            self._refuse_place(image, update, node)
            return None
        return mode

    def _refuse_place(self, image: ImagePlan, update: Update, node: Any) -> None:
        names_image = all("repository" in site.places for site in image.sites)
        shape = "`digest` or `string`" if names_image else "`postRenderer`"
        what = f"the shape `{image.shape}` of `{image.label}`" if not names_image else f"`{image.label}`"
        leave = "write `digest: never`" if update.digest is not None else ""
        if image.reference.digest is not None:
            leave = "drop the digest from the reference"
        self.report.error(
            "R706",
            node if update.digest is not None or image.reference.digest is None else image.node,
            f"{what} has no place for a digest",
            cause="the bot would look it up and write it nowhere"
            + (", and no post-renderer reaches the image" if names_image else ""),
            hint=f"use the shape {shape}" + (f", or {leave}" if leave and update.channel != "digest" else ""),
        )

    def _derive(self, image: ImagePlan, update: Update, tag: str) -> Derived | None:
        filters = update.filter_tags
        raw_filters = None if filters is None else {"pattern": filters.pattern, "extract": filters.extract}
        policy: Any = plain(update.policy) if update.policy is not None else None
        try:
            derived = derive(update.channel, tag, update.range, policy=policy, filter_tags=raw_filters)
            if derived.policy_range:
                Constraint.parse(derived.policy_range)
        except DeriveError as error:
            field = self._field_of(update, error)
            self.report.error("R703", self._field(image, field), f"`{image.label}`: {error.reason}", hint=error.advice)
            return None
        except RangeError as unread:
            self._refuse_range(image, update, unread)
            return None
        failed = False
        for finding in self_test(derived, tag):
            tell = self.report.error if finding.severity == "error" else self.report.warn
            code = finding_code(finding.code_name)
            place = self._place_of(image, finding.code_name)
            tell(code, place, f"`{image.label}`: {_message(finding)}", hint=finding.hint)
            failed = failed or finding.severity == "error"
        if failed:
            return None
        for note in derived.notes:
            self.report.warn(
                "R704",
                self._field(image, "channel"),
                f"`{image.label}` will stay on pre-releases: its policy admits no release",
                cause=note,
                hint="move to `channel: stable` with the release, or pin it",
            )
        return derived

    @staticmethod
    def _field_of(update: Update, error: DeriveError) -> str:
        """Return the field of the update that a derivation is refused for."""
        if "`range`" in error.advice and update.range is not None:
            return "range"
        if update.channel != "custom" and "derives policy and filter" in error.reason:
            return "policy" if update.policy is not None else "filterTags"
        return "range" if update.channel == "custom" and update.range is not None else "channel"

    def _place_of(self, image: ImagePlan, finding: str) -> Any:
        """Return the place of a self-test's finding: its first word says what is at fault."""
        word = finding.split("-", 1)[0]
        if word == "tag":
            return image.read_node("tag")
        if word in ("pattern", "extract"):
            return self._field(image, "filterTags", word)
        if image.update is not None and image.update.policy is not None:
            return self._field(image, "policy", "semver", "range")
        return self._field(image, "range" if word == "range" else "channel")

    def _refuse_range(self, image: ImagePlan, update: Update, error: RangeError) -> None:
        fields = ("range",) if update.range is not None else ("policy", "semver", "range")
        reason = str(error).partition("is not a semver range: ")[2] or str(error)
        self.report.error(
            "R701",
            self._field(image, *fields),
            f"`{image.update_path}.{'.'.join(fields)}` must be a semver range, and {reason}",
            cause="Flux would refuse the policy, and nothing would ever be selected",
            hint="write it in the grammar of Masterminds semver, such as `>=1.2 <2` or `1.x`",
        )

    def _interval(self, image: ImagePlan, update: Update) -> str | None:
        text = update.cadence
        if text is None:
            # The platform's interval concerns more than registries, and may be shorter than a cadence may be.
            return _cadence(self.context.platform.defaults.interval) or SHORTEST
        try:
            return cadence(text)
        except CadenceError as error:
            self._refuse_cadence(image, text, error)
            return None

    def _refuse_cadence(self, image: ImagePlan, text: str, error: CadenceError) -> None:
        path, reason = f"{image.update_path}.cadence", str(error)
        hint = "write a duration such as `6h`, or a cron expression such as `0 4 * * *`"
        cause = "it says how often the registry is scanned"
        message = f"`{path}`: {reason}"
        if "is less than a minute" in reason:
            message = f"`{path}` must be at least a minute, not `{text}`"
            cause = "the registry is asked each time"
        elif "is not a duration" in reason:
            message = f"`{path}` must be a duration or a cron expression, not `{text}`"
            hint = f"write `@{text.lower()}`" if _cadence(f"@{text}") else hint
        self.report.error("R707", self._field(image, "cadence"), message, cause=cause, hint=hint)


def _cadence(text: str) -> str | None:
    try:
        return cadence(text)
    except CadenceError:
        return None


def _message(finding: Finding) -> str:
    """Return a finding's text; of a pattern that does not compile, in the words of RE2 where they say little."""
    match = re.search(r"(?:invalid or unsupported Perl syntax|bad perl operator) (`[^`]*`)\Z", finding.message)
    return f"the pattern uses {match[1]}, which RE2 does not have" if match else finding.message


def finding_code(name: str) -> str:
    """Return the diagnostic code of a self-test finding."""
    return FINDING_CODES.get(name.split("-", 1)[0], "R704")
