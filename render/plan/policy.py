"""An image's `update` in, its ImageRepository and ImagePolicy out, proved against the current tag."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from render.flux.cadence import CadenceError, cadence
from render.flux.derive import Derived, DeriveError, derive, self_test
from render.flux.image import ImageError, Reference
from render.flux.semver import RangeError
from render.plan.context import Context, Report
from render.plan.images import ImagePlan
from render.plan.sources import credentials_of, plain

if TYPE_CHECKING:
    from render.model.service import Update

FINDING_CODES = {
    "range": "R702",
    "extract": "R705",
    "pattern": "R705",
    "order": "R704",
    "policy": "R703",
    "tag": "R703",
}
"""Diagnostic codes by the first word of a self-test finding's name."""


@dataclass(frozen=True, slots=True)
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
        repository = {"image": self.image, "interval": self.interval, **self.access}
        digest = {"ifNotPresent": "IfNotPresent", "always": "Always"}.get(self.digest)
        filters = self.derived.filter_tags
        policy = {
            "filterTags": filters and {key: _quoted(value) for key, value in filters.items()},
            "policy": _policy(self.derived.policy),
            "digestReflectionPolicy": digest,
            # The CRD demands the interval with Always, and refuses it otherwise.
            "interval": self.interval if self.digest == "always" else None,
        }
        return [("imagerepository", {**shared, **repository}), ("imagepolicy", {**shared, **policy})]


def _policy(policy: dict[str, dict[str, str]]) -> dict[str, Any]:
    if "semver" in policy:
        return {"semver": {"range": _quoted(policy["semver"]["range"])}}
    return dict(policy)


def _quoted(text: str) -> Any:
    from render.yaml.emit import Marked

    return Marked(text)


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
        reference = image.reference
        if reference.tag is None:
            self.report.error(
                "R703",
                image.node,
                f"`{image.label}` has no tag that an update could start from",
                cause="the policy is derived from the current tag, and proved against it",
                hint=f"write the tag that runs now: `{reference.name}:TAG`",
            )
            return None
        if "$" in str(reference):
            self.report.error(
                "R703",
                image.node,
                f"`{image.label}` holds a variable and cannot be automated",
                hint="write the image out, or remove `update`",
            )
            return None
        digest = self._digest(image, update)
        derived = self._derive(image, update, reference.tag)
        interval = self._interval(image, update)
        try:
            effective = Reference.parse(image.effective).name
        except ImageError as error:
            self.report.error(
                "R601",
                image.node,
                f"the override table makes `{image.effective}` of `{image.label}`: {error}",
                cause="that is what the registry would be asked for",
                hint="correct the entry's `newName`",
            )
            return None
        access = credentials_of(self.context, effective, self.report, image.node)
        if digest is None or derived is None or interval is None or access is None:
            return None
        return Policy(policy_name(self.service_name, image), effective, interval, access, derived, digest)

    def _field(self, image: ImagePlan, field: str) -> Any:
        found = image.update_node.get(field) if image.update_node is not None else None
        return found if found is not None else image.update_node or image.node

    def _digest(self, image: ImagePlan, update: Update) -> str | None:
        has_digest = image.reference.digest is not None
        mode = update.digest
        if mode is None:
            mode = "always" if update.channel == "digest" else "ifNotPresent" if has_digest else "never"
        node = self._field(image, "digest")
        if mode == "never" and has_digest:
            self.report.error(
                "R706",
                node,
                f"`digest: never` on `{image.label}`, which carries a digest",
                cause="the bot would move the tag and leave the digest, and the old digest would run for ever",
                hint="remove `digest: never`, or the digest from the reference",
            )
            return None
        if mode == "never" and update.channel == "digest":
            self.report.error(
                "R706",
                node,
                "`digest: never` with `channel: digest`",
                cause="the channel keeps the tag and follows the digest alone",
                hint="remove one of the two",
            )
            return None
        if mode != "never" and image.shape == "tag":
            self.report.error(
                "R706",
                node,
                f"the shape `tag` of `{image.label}` has no place for a digest",
                cause="the bot would look it up and write it nowhere",
                hint="use the shape `postRenderer`, or write `digest: never` and drop the digest from the reference",
            )
            return None
        return mode

    def _derive(self, image: ImagePlan, update: Update, tag: str) -> Derived | None:
        filters = update.filter_tags
        raw_filters = None if filters is None else {"pattern": filters.pattern, "extract": filters.extract}
        policy: Any = plain(update.policy) if update.policy is not None else None
        try:
            derived = derive(update.channel, tag, update.range, policy=policy, filter_tags=raw_filters)
        except DeriveError as error:
            self.report.error(
                "R703", self._field(image, "channel"), f"`{image.label}`: {error.reason}", hint=error.advice
            )
            return None
        except RangeError as error:
            self.report.error(
                "R701",
                self._field(image, "range" if update.range is not None else "policy"),
                f"the range of `{image.label}` is not valid: {error}",
                cause="Flux would refuse the policy, and nothing would ever be selected",
                hint="write it in the grammar of Masterminds semver, such as `>=1.2 <2` or `1.x`",
            )
            return None
        failed = False
        for finding in self_test(derived, tag):
            tell = self.report.error if finding.severity == "error" else self.report.warn
            tell(
                finding_code(finding.code_name),
                self._field(image, "range"),
                f"`{image.label}`: {finding.message}",
                hint=finding.hint,
            )
            failed = failed or finding.severity == "error"
        return None if failed else derived

    def _interval(self, image: ImagePlan, update: Update) -> str | None:
        text = update.cadence if update.cadence is not None else self.context.platform.defaults.interval
        try:
            return cadence(text)
        except CadenceError as error:
            self.report.error(
                "R707",
                self._field(image, "cadence"),
                f"`update.cadence`: {error}",
                cause="it says how often the registry is scanned",
                hint="write a duration such as `6h`, or a cron expression such as `0 4 * * *`",
            )
            return None


def finding_code(name: str) -> str:
    """Return the diagnostic code of a self-test finding."""
    return FINDING_CODES.get(name.split("-", 1)[0], "R704")
