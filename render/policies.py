"""An image policy and a list of tags in, the tag that Flux would choose out, with the reasons for the others."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from render.build import Build, build
from render.diagnostics import Diagnostic
from render.flux.api import OBJECTS
from render.flux.policy import DEFAULT_EXCLUSIONS, Selection, exclude, select
from render.flux.versions import MINORS, FluxVersion
from render.model.read import INVALID, Reader, compile_schema
from render.patterns import lazy
from render.plan.context import node_at
from render.plan.images import MACHINE_SHAPES, ImagePlan
from render.plan.service import ServicePlan
from render.plan.sources import plain
from render.progress import Step
from render.redact import printable
from render.structs import field, replace, struct
from render.yaml.source import Mapping, Node, Source, decode, parse
from render.yaml.source import Sequence as Items

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_LEADING = lazy(r"\A`[^`]*` ")
_LONGEST = 8 << 20
"""Bytes of a file of tags; the largest repositories list some ten thousand."""


@struct(frozen=True)
class Subject:
    """One policy that can be asked."""

    service: str
    """The service; of a manifest, `namespace/name` of the ImagePolicy."""
    image: str
    """`main`, or the image's name; empty for a manifest."""
    repository: str
    """What is scanned; empty for a manifest."""
    policy: dict[str, Any]
    filter_tags: dict[str, Any] | None
    current: str = ""
    """The tag that runs now, where it is known."""
    insecure: bool = False
    """Whether the platform lets the registry be asked over plain HTTP."""


@struct(frozen=True)
class Answer:
    """What a policy makes of a list of tags."""

    subject: Subject
    selection: Selection | None
    error: str | None = None
    """Why the tags are not known: the registry's error."""

    @property
    def is_selected(self) -> bool:
        """Whether one tag is selected for certain."""
        return self.selection is not None and self.selection.tag is not None

    @property
    def name(self) -> str:
        """`service/image`, or the name of a manifest."""
        return f"{self.subject.service}/{self.subject.image}" if self.subject.image else self.subject.service

    def as_json(self) -> dict[str, Any]:
        """Return the documented JSON object."""
        found = self.selection
        return {
            "service": self.subject.service,
            "image": self.subject.image,
            "selected": found.tag if found else None,
            "undetermined": list(found.undetermined) if found else [],
            "candidates": [candidate.tag for candidate in found.candidates] if found else [],
            "rejected": [{"tag": tag, "reason": reason} for tag, reason in found.rejected] if found else [],
            "error": self.error or (found.error if found else None),
        }


@struct()
class Subjects:
    """The policies found, and what was wrong on the way."""

    subjects: list[Subject] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    build: Build | None = None
    unmanaged: dict[str, str] = field(default_factory=dict)
    """Images without a policy, as `service/image`, each with the reason."""


def _unmanaged(image: ImagePlan) -> str:
    """Return why nothing moves an image."""
    if image.pinned_by:
        return f"`{image.pinned_by}` decides its version"
    if image.shape in MACHINE_SHAPES:
        return "a virtual machine updates itself, and nothing moves its image"
    return "it has no `update`"


def catalog_subjects(catalog: Path, platform_path: Path, step: Step | None = None) -> Subjects:
    """Return the policies of every automated image of a catalog."""
    made = Subjects()

    def visit(plan: ServicePlan) -> None:
        for image in plan.images:
            name = image.key or "main"
            if image.policy is None:
                made.unmanaged[f"{plan.name}/{name}"] = _unmanaged(image)
                continue
            derived = image.policy.derived
            made.subjects.append(
                Subject(
                    plan.name,
                    name,
                    image.policy.image,
                    dict(derived.policy),
                    derived.filter_tags,
                    image.reference.tag or "",
                    bool(image.policy.access.get("insecure")),
                )
            )

    made.build = build(catalog, platform_path, visit=visit, step=step)
    made.diagnostics = made.build.diagnostics
    made.subjects.sort(key=lambda subject: (subject.service, subject.image))
    return made


def manifest_subjects(shown: str, data: bytes) -> Subjects:
    """Return the ImagePolicy objects of a file that is shown as `shown`, as somebody has them already.

    Items of a `List`, which is what `kubectl get -o yaml` prints, count as documents do.
    """
    source, faults = decode(shown, data)
    made = Subjects(diagnostics=faults)
    if faults:
        return made
    documents, made.diagnostics = parse(source)
    for document in documents:
        for root in _objects(document.root):
            _read_manifest(made, source, root)
    if not made.subjects and not made.diagnostics:
        hint = "name a file with an `apiVersion: image.toolkit.fluxcd.io/v1`, `kind: ImagePolicy`"
        made.diagnostics.append(source.fault("R102", None, "there is no ImagePolicy in the file", hint=hint))
    return made


def _objects(root: Node | None) -> Iterator[Mapping]:
    if type(root) is not Mapping:
        return
    items = root.get("items")
    if (root.text("kind") or "").endswith("List") and type(items) is Items:
        for item in items.items:
            yield from _objects(item)
    elif root.text("kind") == "ImagePolicy":
        yield root


def _read_manifest(made: Subjects, source: Source, root: Mapping) -> None:
    spec = root.get("spec")
    if spec is None:
        made.diagnostics.append(source.fault("R102", root, "the ImagePolicy needs the field `spec`", hint="add it"))
        return
    check = compile_schema(OBJECTS["ImagePolicy"].spec)
    if Reader(source, made.diagnostics).read(check, spec, "spec") is INVALID:
        return
    data = plain(spec)
    for problem in OBJECTS["ImagePolicy"].rules(data, FluxVersion.parse(MINORS[-1])):
        where = node_at(spec, *problem.path)
        made.diagnostics.append(source.fault("R401", where, problem.message, cause=problem.cause, hint=problem.hint))
    metadata = root.get("metadata")
    named = [metadata.text(key) for key in ("namespace", "name")] if type(metadata) is Mapping else []
    name = "/".join(part for part in named if part) or "ImagePolicy"
    made.subjects.append(Subject(name, "", "", data.get("policy") or {}, data.get("filterTags")))


def decode_tags(data: bytes) -> list[str]:
    """Return the tags in the bytes of a file; raise ValueError, its text to be shown, for anything else."""
    if len(data) > _LONGEST:
        raise ValueError(f"it is larger than {_LONGEST >> 20} MiB")
    try:
        return read_tags(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ValueError(f"byte 0x{data[error.start]:02x} is not UTF-8") from error
    except (json.JSONDecodeError, RecursionError) as unread:
        raise ValueError(f"the JSON does not parse: {unread}") from unread


def read_tags(text: str) -> list[str]:
    """Return each tag once: from a JSON list, an object with one, or text with blanks between (`#` begins a comment).

    The object is what registries answer (`{"tags": […]}`), or what skopeo prints (`{"Tags": […]}`).
    """
    stripped = text.strip()
    if stripped.startswith(("[", "{")):
        data = json.loads(stripped)
        listed = data.get("tags", data.get("Tags")) if isinstance(data, dict) else data
        if not isinstance(listed, list) or not all(isinstance(tag, str) for tag in listed):
            raise ValueError("the JSON must be a list of strings, or an object with such a list under `tags`")
    else:
        # No tag holds a blank or a `#`, so several may stand on a line, and a comment after them.
        listed = [tag for line in text.splitlines() for tag in line.partition("#")[0].split()]
    return list(dict.fromkeys(listed))


def ask(subject: Subject, tags: Sequence[str]) -> Answer:
    """Return what Flux would choose from a repository with these tags."""
    scanned = exclude(tags)
    found = select(scanned, subject.policy, subject.filter_tags)
    if len(scanned) < len(tags):
        kept = set(scanned)
        reason = f"is left out of every scan, which excludes `{DEFAULT_EXCLUSIONS[0]}`"
        found = replace(found, rejected=(*found.rejected, *((tag, reason) for tag in tags if tag not in kept)))
    return Answer(subject, found)


def render_answers(answers: Iterable[Answer], *, most: int = 10) -> str:
    """Return answers as text: the choice, the runners-up, and why not the others; of tags with one fate `most`."""
    out = []
    for answer in answers:
        found = answer.selection
        out.append(f"{answer.name}: {_choice(answer)}")
        if found is None:
            continue
        best = (found.tag, *found.undetermined)
        following = [candidate.tag for candidate in found.candidates if candidate.tag not in best]
        if following:
            out.append(f"  {'in question' if found.error else 'then'} {_listed(following, most)}")
        reasons: dict[str, list[str]] = {}
        for tag, reason in found.rejected:
            reasons.setdefault(_LEADING.sub("", reason), []).append(tag)
        told = sorted(reasons.items(), key=lambda pair: (-len(pair[1]), pair[0]))
        out += [f"  not {_listed(tags, most)}: {reason}" for reason, tags in told[:most]]
        if len(told) > most:
            out.append(f"  not {sum(len(tags) for _, tags in told[most:])} more, for other reasons")
    return "".join(f"{printable(line)}\n" for line in out)


def _choice(answer: Answer) -> str:
    found = answer.selection
    if found is None:
        return f"not known: {answer.error}"
    if found.tag is not None:
        current = answer.subject.current
        return found.tag if current in ("", found.tag) else f"{found.tag} (now {current})"
    if found.undetermined:
        return f"left to chance between {', '.join(found.undetermined)}"
    return f"nothing is selected: {found.error}"


def _listed(tags: Sequence[str], most: int) -> str:
    more = f" and {len(tags) - most} more" if len(tags) > most else ""
    return ", ".join(tags[:most]) + more
