"""What people wrote of a chart's source in, what is wrong with it out; the same for a service and for the platform."""

from __future__ import annotations

from functools import cache

from render.flux.api import OBJECTS
from render.flux.image import ImageError, Reference, check_digest
from render.flux.semver import Constraint, RangeError
from render.model.read import Check, Reader, compile_schema
from render.patterns import lazy
from render.plan.context import Report, node_at
from render.yaml.source import Mapping, Node, Scalar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal, TypeAlias

Form: TypeAlias = 'Literal["oci", "http", "git"]'


KINDS = {"oci": "OCIRepository", "http": "HelmRepository", "git": "GitRepository"}
"""The source object of each form."""

ACCESS = ("secretRef", "certSecretRef", "insecure", "provider", "verify", "interval")
"""Fields that say how a source is reached: the platform's business where a service names one of its sources."""

_WORDS = {"oci": "an OCI chart", "http": "a chart of a Helm repository", "git": "a chart from Git"}
_STRANGE: dict[str, dict[str, str]] = {
    "oci": {"path": "remove it", "ref": "remove it", "valuesFiles": "put the values under `values`"},
    "http": dict.fromkeys(("path", "ref", "insecure", "provider", "verify"), "remove it"),
    "git": {
        "name": "remove it; `path` says which chart",
        "version": "remove it; `ref` says which version",
        "versionRange": "remove it, or write `ref: {semver: …}`",
        "insecure": "remove it",
        "certSecretRef": "put `ca.crt` into the Secret of `secretRef`",
    },
}
"""Fields that the source object of a form has no place for, each with what to do instead."""

_OCI_TAG = lazy(r"[A-Za-z0-9_][A-Za-z0-9._+-]{0,127}\Z")
_WILDCARD = lazy(r"(?:\A|\.)[xX](?:\.|\Z)")
_EXACT = lazy(r"v?[0-9]+\.[0-9]+\.[0-9]+(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?\Z")


def form_of(url: str | None, git: str | None) -> Form | None:
    """Return the form of an address, None for what Flux does not take."""
    if git is not None:
        return "git" if git.startswith(("https://", "http://", "ssh://")) else None
    if url is None or not url.startswith(("oci://", "https://", "http://")):
        return None
    return "oci" if url.startswith("oci://") else "http"


class ChartRules:
    """Checks one description of a chart's source; `label` is how its file spells the way to it."""

    def __init__(self, report: Report, node: Node | None, label: str) -> None:
        self.report = report
        self.node = node
        self.label = label

    def form(self, url: str | None, git: str | None) -> Form | None:
        """Return the form of an address; None after reporting one that Flux does not take."""
        form = form_of(url, git)
        if form is not None:
            return form if form != "oci" or self._is_chart_path(str(url)) else None
        if git is not None:
            host, colon, path = git.partition(":")
            is_scp = colon and "/" not in host and "//" not in path[:2]
            self.report.error(
                "R204",
                node_at(self.node, "git"),
                f"`{self.label}.git` must begin with `https://` or `ssh://`, not `{git}`",
                cause="Flux takes no other address of a Git repository",
                hint=f"write `ssh://{host}/{path}`" if is_scp else "write the scheme",
            )
        elif url is not None:
            self.report.error(
                "R204",
                node_at(self.node, "url"),
                f"`{self.label}.url` must begin with `oci://` or `https://`, not `{url}`",
                hint="write the scheme; a chart in a Git repository goes under `git`",
            )
        return None

    def _is_chart_path(self, url: str) -> bool:
        """Whether an OCI address is a repository without a version; one that holds a variable is not judged."""
        body = url.removeprefix("oci://").rstrip("/")
        if "/" not in body or "${" in body:
            return True
        try:
            reference = Reference.parse(body)
        except ImageError as error:
            self.report.error(
                "R204",
                node_at(self.node, "url"),
                f"`{self.label}.url` must be the path of a chart, not `{url}`",
                cause=f"Flux would refuse the OCIRepository: {error}",
                hint=f"write `oci://{body.lower()}`" if body != body.lower() else "write `oci://REGISTRY/PATH`",
            )
            return False
        if reference.tag is None and reference.digest is None:
            return True
        version = reference.tag_text or f"TAG@{reference.digest}"
        self.report.error(
            "R204",
            node_at(self.node, "url"),
            f"`{self.label}.url` must be the path of a chart without a version, not `{url}`",
            cause="Flux would refuse the OCIRepository",
            hint=f'write `url: oci://{reference.name}` and `version: "{version}"`',
        )
        return False

    def fields(self, form: Form) -> bool:
        """Whether all fields have a place in the form's source object, and its form; reports those that have not."""
        before = len(self.report.items)
        kind = KINDS[form]
        for key, value in self.node.entries if type(self.node) is Mapping else ():
            if type(value) is Scalar and value.is_null:
                continue
            name = key.text
            if name in _STRANGE[form]:
                self.report.error(
                    "R204",
                    key,
                    f"`{name}` does not go with {_WORDS[form]}",
                    cause=f"{'`chartRef`' if name == 'valuesFiles' else kind} has no such field",
                    hint=_STRANGE[form][name],
                )
            elif name in ("interval", "provider", "verify") or (name == "ref" and form == "git"):
                Reader(self.report.source, self.report.items).read(
                    _field_check(kind, name), value, f"{self.label}.{name}", key
                )
        if len(self.report.items) > before:
            self.report.failed = True
        return len(self.report.items) == before

    def version(self, form: Form, exact: str | None, ranged: str | None) -> bool:
        """Whether what is written of the chart's version can be; reports what cannot."""
        if exact is not None and ranged is not None:
            self.report.error(
                "R204",
                node_at(self.node, "versionRange"),
                f"`{self.label}` must have either `version` or `versionRange`, not both",
                hint="remove one of the two",
            )
            return False
        if exact is not None:
            return self._is_exact(form, exact)
        return ranged is None or "${" in ranged or self._is_range(ranged)

    def _is_exact(self, form: Form, version: str) -> bool:
        body, at, digest = version.partition("@")
        if form == "oci" and at:
            try:
                check_digest(digest)
            except ImageError as error:
                self.report.error(
                    "R204",
                    node_at(self.node, "version"),
                    f"`{self.label}.version` holds no digest after the `@`: {error}",
                    hint=error.hint or "copy the whole digest",
                )
                return False
        if "${" in version:
            return True
        if form == "oci" and _OCI_TAG.match(body) and not _WILDCARD.search(body):
            return True
        if form == "http" and _EXACT.match(version):
            return True
        cause = "a range lets the cluster change the chart without a commit"
        hint = f'write one version, or `versionRange: "{version}"`'
        if at and form == "http":
            cause, hint = "a Helm repository knows charts by their versions alone", f"write `{body}`"
        elif not _is_constraint(version):
            cause, hint = "Flux finds a chart by its semantic version", "write the version that the chart says it has"
        self.report.error(
            "R204",
            node_at(self.node, "version"),
            f"`{self.label}.version` must be one exact version, not `{version}`",
            cause=cause,
            hint=hint,
        )
        return False

    def _is_range(self, ranged: str) -> bool:
        try:
            Constraint.parse(ranged)
        except RangeError as error:
            reason = str(error).partition("is not a semver range: ")[2] or str(error)
            self.report.error(
                "R701",
                node_at(self.node, "versionRange"),
                f"`{self.label}.versionRange` must be a semver range, and {reason}",
                cause="Flux would refuse the source, and the release would never get its chart",
                hint="write it in the grammar of Masterminds semver, such as `>=1.2 <2` or `1.x`",
            )
            return False
        return True


@cache
def _field_check(kind: str, field: str) -> Check:
    return compile_schema(OBJECTS[kind].spec["properties"][field])


def _is_constraint(text: str) -> bool:
    try:
        Constraint.parse(text)
    except RangeError:
        return False
    return True
