"""What was read and what is rendered in, the paths at which they differ out: lost, or changed for a told reason.

Objects are compared as Go reads them. What the API says in so many words to be the same is the same: an absent field
and its default, an empty list or mapping and none, a namespace that is the object's own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from render.build import Build
from render.diff import ObjectId
from render.diff_nodes import Change, Side, compare, markers_of
from render.flux.cadence import CadenceError, cadence
from render.importing.convert import replaced, without
from render.importing.draft import GIVEN_UP, Draft
from render.importing.policies import Automation
from render.importing.reading import IMAGE, SOURCE, Found
from render.importing.sources import KNOWN
from render.plan import paths
from render.plan.sources import plain
from render.yaml.source import Mapping, Node, Scalar, Sequence, Source, parse

_EMPTY_IS_NONE = (
    *(("spec", name) for name in ("values", "valuesFrom", "postRenderers", "dependsOn")),
    ("metadata", "labels"),
    ("metadata", "annotations"),
)


@dataclass(slots=True)
class Compared:
    """How an object came back."""

    lost: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """Differences for which there is a reason."""


@dataclass(slots=True)
class Rendered:
    """The objects of a build by their identity."""

    objects: dict[ObjectId, tuple[Node, dict[int, str]]] = field(default_factory=dict)
    """Each with the setter markers of its file."""

    def get(self, kind: str, namespace: str, name: str, group: str) -> Side | None:
        """Return an object, ready to be compared."""
        found = self.objects.get(ObjectId(kind, namespace, name, group))
        return None if found is None else Side(*found)

    @classmethod
    def of(cls, made: Build) -> Rendered:
        """Read every file of a build."""
        found = cls()
        for path, text in made.files.items():
            if path.endswith("/kustomization.yaml"):
                continue
            markers = markers_of(text)
            for document in parse(Source(path, text))[0]:
                identity = identity_of(document.root)
                if identity is not None:
                    found.objects.setdefault(identity, (document.root, markers))
        return found


def identity_of(root: Node) -> ObjectId | None:
    """Return what names an object."""
    if type(root) is not Mapping:
        return None
    kind, version, metadata = root.text("kind"), root.text("apiVersion"), root.get("metadata")
    if kind is None or version is None or type(metadata) is not Mapping:
        return None
    return ObjectId(kind, metadata.text("namespace") or "", metadata.text("name") or "", version.rpartition("/")[0])


def compare_release(draft: Draft, rendered: Rendered, namespace: str, policies: dict[str, str]) -> Compared:
    """Compare a HelmRelease with what its definition renders to."""
    made = Compared()
    root = draft.main.root
    metadata = root.get("metadata")
    wanted = Mapping(
        [
            (Scalar("apiVersion", ""), Scalar("helm.toolkit.fluxcd.io/v2", "")),
            (Scalar("kind", ""), Scalar("HelmRelease", "")),
            (Scalar("metadata", ""), _metadata(metadata, namespace)),
            (Scalar("spec", ""), _whole_spec(draft)),
        ]
    )
    side = rendered.get("HelmRelease", namespace, draft.main.name, "helm.toolkit.fluxcd.io")
    if side is None:
        made.lost.append("spec")
        return made
    changes = _compared(wanted, draft.main.file.markers, side, policies, is_release=True)
    for change in changes:
        reason = _reason(change, draft, namespace, wanted)
        if reason == "":
            continue
        if reason is None:
            made.lost.append(_told(change))
        else:
            made.notes.append(f"{_told(change)}: {reason}")
    return made


def _whole_spec(draft: Draft) -> Mapping:
    """Return the spec with what became images or the platform's table put back: rendering writes it again."""
    found, made = draft.main.root.get("spec"), draft.spec
    if type(found) is not Mapping:
        return made
    given, listed = found.get("postRenderers"), made.get("postRenderers")
    if type(given) is Sequence and (
        listed is None or (type(listed) is Sequence and len(listed.items) < len(given.items))
    ):
        made = replaced(made, "postRenderers", given)
    strategy = found.get("postRenderStrategy")
    return made if strategy is None else replaced(made, "postRenderStrategy", strategy)


def compare_object(
    found: Found,
    rendered: Rendered,
    service_namespace: str,
    policies: dict[str, str],
    known: frozenset[tuple[str, str]],
) -> Compared:
    """Compare another object with what is rendered in its place."""
    made = Compared()
    metadata = found.root.get("metadata")
    for namespace in dict.fromkeys((found.namespace or "", service_namespace)):
        side = rendered.get(found.kind, namespace, found.name, found.group)
        if side is not None:
            break
    else:
        made.lost.append(str(found))
        return made
    root = found.root
    if namespace != (found.own_namespace or "") and type(metadata) is Mapping and namespace:
        root = replaced(root, "metadata", _metadata(metadata, namespace))
    for change in _compared(root, found.file.markers, side, policies, is_release=False):
        if change.kind == "added" and change.path[:1] == ("metadata",) and len(change.path) > 1:
            made.notes.append(f"`{found}` {_told(change)}: every object of a service has its labels and annotations")
        elif found.kind in WORKLOAD_DEFAULTS and _is_default(change):
            continue
        elif change.kind == "marker" and (reason := _marker_reason(change, known)) is not None:
            made.notes.append(f"`{found}` {_told(change)}: {reason}")
        else:
            made.lost.append(f"{found}: {_told(change)}")
    return made


WORKLOAD_DEFAULTS = ("Deployment", "StatefulSet", "Service", "PersistentVolumeClaim")
_DEFAULTS = {"protocol": "TCP", "progressDeadlineSeconds": "600", "accessModes": "ReadWriteOnce"}


def _is_default(change: Change) -> bool:
    """Whether what is added, or left out, holds without being said."""
    last = change.path[-1] if change.path else ""
    node = change.new if change.kind == "added" else change.old
    if type(node) is Sequence and len(node.items) == 1:
        node = node.items[0]
    return change.kind in ("added", "removed") and type(node) is Scalar and _DEFAULTS.get(str(last)) == node.text


def compare_source(
    found: Found, rendered: Rendered, identity: tuple[str, str, str], policies: frozenset[tuple[str, str]]
) -> Compared:
    """Compare a source object with the one that is rendered for it, perhaps under another name."""
    made = Compared()
    kind, namespace, name = identity
    side = rendered.get(kind, namespace, name, SOURCE)
    one, other = found.get("spec"), side.root.get("spec") if side is not None and type(side.root) is Mapping else None
    if type(one) is not Mapping or type(other) is not Mapping or side is None:
        made.lost.append(str(found))
        return made
    for change in compare(Side(one, found.file.markers), Side(other, side.markers)):
        reason = _source_reason(change, found, policies)
        if reason == "":
            continue
        if reason is None:
            made.lost.append(f"{found}: spec.{_told(change)}")
        else:
            made.notes.append(f"`{found}` spec.{_told(change)}: {reason}")
    return made


def _source_reason(change: Change, found: Found, policies: frozenset[tuple[str, str]]) -> str | None:
    path, old, new = paths.show(change.path), change.old, change.new
    if path == "interval" and change.kind == "added":
        return "it says no interval, and gets the platform's"
    if path == "interval" and _same_time(old, new):
        return ""
    if (
        path in ("timeout", "type", "provider", "insecure")
        and change.kind == "removed"
        and path
        in (
            *KNOWN[found.kind],
            "type",
        )
    ):
        return ""
    if path == "layerSelector" and change.kind == "added":
        return "the layer of a chart is named"
    if path == "ref" and change.kind == "added":
        return "what holds without it is written down"
    if path == "url" and type(old) is Scalar and type(new) is Scalar and old.text.rstrip("/") == new.text.rstrip("/"):
        return ""
    if change.kind == "marker":
        return "" if type(old) is not Scalar else None if _policy_of(old.text) in policies else _UNKNOWN_POLICY
    return None


_UNKNOWN_POLICY = "its policy is not among what was read, so nothing moves the version"


def _policy_of(marker: str) -> tuple[str, str]:
    namespace, _, rest = marker.partition(":")
    return namespace, rest.partition(":")[0]


def compare_policies(draft: Draft, rendered: Rendered, automation: Automation, namespace: str) -> Compared:
    """Compare the image objects that became updates with what these render to."""
    made = Compared()
    for image in draft.images:
        if image.update is None or image.policy is None:
            continue
        name = f"{draft.service}-{image.key}" if image.key else draft.service
        policy = automation.policies[image.policy]
        repository = automation.repository_of(image.policy)
        assert repository is not None
        if image.policy != (namespace, name):
            made.notes.append(f"the policy `{'/'.join(image.policy)}` becomes `{namespace}/{name}`")
        for found in (repository, policy):
            side = rendered.get(found.kind, namespace, name, IMAGE)
            one = found.get("spec")
            other = side.root.get("spec") if side is not None and type(side.root) is Mapping else None
            if side is None or type(one) is not Mapping or type(other) is not Mapping:
                made.lost.append(str(found))
                continue
            for change in compare(
                Side(without(one, "imageRepositoryRef"), {}), Side(without(other, "imageRepositoryRef"), {})
            ):
                if not _is_same_policy(change):
                    made.lost.append(f"{found}: spec.{_told(change)}")
    return made


def _is_same_policy(change: Change) -> bool:
    path = paths.show(change.path)
    if path == "interval":
        return change.kind == "added" or _same_time(change.old, change.new)
    if path == "provider":
        return plain(change.old) in (None, "generic") and plain(change.new) in (None, "generic")
    if path == "digestReflectionPolicy":
        return plain(change.old) in (None, "Never") and plain(change.new) in (None, "Never")
    if path == "insecure":
        return not plain(change.old) and not plain(change.new)
    if path in ("policy.numerical", "policy.alphabetical", "policy.numerical.order", "policy.alphabetical.order"):
        return plain(change.new) in ("asc", {"order": "asc"}) and not plain(change.old)
    return path == "filterTags" and not plain(change.old) and not plain(change.new)


def _metadata(node: Node | None, namespace: str) -> Mapping:
    assert type(node) is Mapping
    kept = without(node, "creationTimestamp", "managedFields", "resourceVersion", "uid", "generation")
    return replaced(kept, "namespace", Scalar(namespace, '"'))


def _compared(
    root: Mapping, markers: dict[int, str], side: Side, policies: dict[str, str], *, is_release: bool
) -> Iterable[Change]:
    """Yield the differences that readers see; `policies` are the new names of those that markers name."""
    renamed = {line: _renamed(marker, policies) for line, marker in markers.items()}
    for change in compare(Side(without(root, "status"), renamed), side, is_release=is_release):
        if _is_nothing(change.old) and _is_nothing(change.new):
            continue
        yield change


def _renamed(marker: str, policies: dict[str, str]) -> str:
    namespace, _, rest = marker.partition(":")
    name, colon, suffix = rest.partition(":")
    new = policies.get(f"{namespace}:{name}")
    return marker if new is None else f"{new}{colon}{suffix}"


def _is_nothing(node: Node | None) -> bool:
    """Whether the API server takes a value for none: absent, or null."""
    return node is None or (type(node) is Scalar and node.is_null)


def _told(change: Change) -> str:
    return paths.show(change.path) + (" (marker)" if change.kind == "marker" else "")


def _same_time(one: Node | None, other: Node | None) -> bool:
    if type(one) is not Scalar or type(other) is not Scalar:
        return False
    try:
        return cadence(one.text) == cadence(other.text)
    except CadenceError:
        return False


def _reason(change: Change, draft: Draft, namespace: str, wanted: Mapping) -> str | None:
    """Return why a difference is none (`""`), why it is there, or None for what is lost."""
    path = tuple(step for step in change.path if isinstance(step, str))
    settled, use = draft.settled, draft.use
    assert settled is not None
    assert use is not None
    for empty in _EMPTY_IS_NONE:
        if change.path == empty and _is_empty(change.old) and _is_empty(change.new):
            return ""
    if change.kind == "marker":
        return _marker_reason(change, draft.known_policies)
    if path[:2] == ("spec", "interval") and draft.spec.get("interval") is None:
        return "the release says none, and gets the platform's"
    if path[:2] in (("spec", "chart"), ("spec", "chartRef")):
        return _chart_reason(change, path[2:], draft, namespace)
    if path[:2] == ("spec", "dependsOn") and path[-1] == "namespace" and change.kind == "added":
        return "" if plain(change.new) == namespace else None
    if change.path[:2] == ("spec", "dependsOn"):
        return "" if _same_dependencies(wanted, change, namespace) else None
    if path[:2] == ("spec", "postRenderers") and change.kind == "added" and _is_table(change):
        return "the release carries the platform's override table"
    if path[:2] == ("spec", "postRenderStrategy") and change.kind == "added":
        return "hooks pass the platform's override table apart"
    return None


def _is_table(change: Change) -> bool:
    """Whether what is added to post-renderers is a list of image overrides."""
    node = change.new
    items = node.items if type(node) is Sequence else [node]
    return all(type(paths.find(item, ("kustomize", "images"))) is Sequence for item in items)


def _marker_reason(change: Change, known: frozenset[tuple[str, str]]) -> str | None:
    """Return why a marker is not there any more, or why there is one; None for a loss."""
    marker = change.old.text if type(change.old) is Scalar else ""
    if not marker:
        return "the scalar is one of an image that is moved"
    if _policy_of(marker) not in known:
        return _UNKNOWN_POLICY
    if marker.endswith(":name"):
        return "no marker writes the name: it is the repository that is scanned"
    return None


def _same_dependencies(wanted: Mapping, change: Change, namespace: str) -> bool:
    """Whether a difference of dependencies is one of spelling: a namespace that is the release's own."""
    node = change.old if change.old is not None else change.new
    listed = paths.find(wanted, ("spec", "dependsOn"))
    if type(node) is not Mapping or type(listed) is not Sequence:
        return False
    mine = (node.text("namespace") or namespace, node.text("name"), node.text("readyExpr"))
    others = {
        (item.text("namespace") or namespace, item.text("name"), item.text("readyExpr"))
        for item in listed.items
        if type(item) is Mapping
    }
    return mine in others and mine[0] == namespace


def _is_empty(node: Node | None) -> bool:
    if _is_nothing(node):
        return True
    return (type(node) is Mapping and not node.entries) or (type(node) is Sequence and not node.items)


def _chart_reason(change: Change, path: tuple[str, ...], draft: Draft, namespace: str) -> str | None:
    settled, use = draft.settled, draft.use
    assert settled is not None
    assert use is not None
    if use.is_folded and not path:
        return "its HelmChart is folded into the release"
    last = path[-1] if path else ""
    if last in ("name", "namespace") and (path[0] == last or path[:2] == ("spec", "sourceRef")):
        theirs = (use.kind, use.namespace, use.name)
        if last == "namespace" and (plain(change.old) or namespace) == (plain(change.new) or namespace):
            return ""
        if settled.is_rendered and theirs != settled.identity:
            return f"the source is rendered as `{settled.identity[1]}/{settled.identity[2]}`"
        return None
    if last == "apiVersion" and change.kind == "removed":
        return ""
    if path == ("spec", "version"):
        if change.kind == "added" and plain(change.new) == "*":
            return ""
        return "Flux ignores it for such a source" if use.kind in ("GitRepository", "Bucket") else None
    if path[:2] == ("spec", "verify") and use.kind in ("GitRepository", "Bucket"):
        return "a HelmChart from such a source is refused with it"
    if path == ("spec", "interval") and change.kind == "removed" and _same_time(change.old, draft.spec.get("interval")):
        return ""
    if path == ("spec", "reconcileStrategy"):
        is_default = all((plain(one) or "ChartVersion") == "ChartVersion" for one in (change.old, change.new))
        return "" if is_default else None
    if path in (("spec", "valuesFiles"), ("metadata",), ("metadata", "labels"), ("metadata", "annotations")):
        return "" if _is_empty(change.old) and _is_empty(change.new) else None
    return None


def is_sound(draft: Draft) -> bool:
    """Whether a draft is rendered at all."""
    return draft.level < GIVEN_UP
