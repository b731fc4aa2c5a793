"""What people keep beside generated files in, what of it comes to nothing out: markers, policies, files not listed.

Only files that are not ours are looked at: what `render` writes has a policy for each marker, a marker for each policy
and each file in a kustomization. A tree without files of people costs nothing.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator

from render.catalog import SUFFIXES, shown_path
from render.committed import without_literals
from render.diagnostics import Diagnostic, Location
from render.files import below, read_bytes
from render.patterns import lazy
from render.structs import struct
from render.yaml import source as yaml

TYPE_CHECKING = False
if TYPE_CHECKING:
    from render.build import Build

TOKEN = b'"$imagepolicy"'
"""What a file must hold for the bot to look at it."""
_POLICY = b"ImagePolicy"
_COMMENT = lazy(r"^(?P<before>.*?(?:^|[ \t]))#+[ \t]*(?P<marker>\{.*\"\$imagepolicy\".*\})[ \t]*$", re.MULTILINE)
_UNREAD = lazy(r"[ \t]*(?:-[ \t]+)*(?:[^\s:]+:(?:[ \t]+|\Z))?(?:-|\*\S+|\[.*\]|\{.*\}|[\]}]+)?\Z")
"""What stands before a comment that the bot does not take for a marker: no scalar at all, or an alias."""
_ITEM = lazy(r"[ \t]*-[ \t]")
_OWN = lazy(
    rb"^kind: ImagePolicy\nmetadata:\n  name: \"?(?P<name>[^\"\n]+)\"?\n  namespace: \"?(?P<namespace>[^\"\n]+)",
    re.MULTILINE,
)
"""An ImagePolicy as we write it."""
_SUFFIXES = ("tag", "name", "digest")


@struct(frozen=True)
class Marker:
    """A setter marker: where it stands, and what it says."""

    place: Location
    text: str

    @property
    def policy(self) -> tuple[str, str] | None:
        """Namespace and name of the policy; None for a text that the bot does not take for one."""
        namespace, _, rest = self.text.partition(":")
        name, colon, suffix = rest.partition(":")
        return None if not name or (colon and suffix not in _SUFFIXES) else (namespace, name)


class Strays:
    """Collects the files of people in the owned folders of a tree, and judges them against a build."""

    def __init__(self, build: Build, root: str) -> None:
        self.build = build
        self.root = root
        self.files: list[str] = []
        self.markers: list[Marker] = []
        self.policies: dict[tuple[str, str], Location] = {}
        """The places of ImagePolicies by namespace and name."""

    def add(self, path: str, data: bytes) -> None:
        """Take in a file by its path below the root."""
        self.files.append(path)
        self._look_into(path, data)

    def add_odd(self, paths: Iterable[str]) -> None:
        """Take in what the bot reads besides regular YAML files: `Kustomization`, and files behind links."""
        for path in paths:
            if path.endswith((*SUFFIXES, "/Kustomization")):
                try:
                    data = read_bytes(below(self.root, path))
                except OSError:
                    # No file is there for the bot either: a folder, a link to nothing, or nothing that may be read.
                    continue
                self._look_into(path, data)

    def _look_into(self, path: str, data: bytes) -> None:
        has_markers, has_policies = self.build.automation and TOKEN in data, _POLICY in data
        if not (has_markers or has_policies):
            return
        text = data.decode("utf-8", "replace").removeprefix("\ufeff").replace("\r\n", "\n")
        shown = shown_path(below(self.root, path))
        if has_markers:
            self.markers += markers(shown, text)
        if has_policies:
            self._find_policies(shown, text)

    def _find_policies(self, shown: str, text: str) -> None:
        documents, faults = yaml.parse(yaml.Source(shown, text))
        for document in documents if not faults else ():
            root = document.root
            if type(root) is not yaml.Mapping or root.text("kind") != "ImagePolicy":
                continue
            metadata = root.get("metadata")
            name = metadata.text("name") if type(metadata) is yaml.Mapping else None
            if name and type(metadata) is yaml.Mapping:
                namespace = metadata.text("namespace") or self._namespace
                self.policies.setdefault((namespace, name), Location(shown, root.line))

    @property
    def _namespace(self) -> str:
        """The namespace in which our bot sees policies."""
        assert self.build.platform is not None
        return self.build.platform.platform.flux.namespace

    def judge(self) -> list[Diagnostic]:
        """Return a warning for each thing that comes to nothing."""
        found = list(self._unlisted())
        if not self.build.automation:
            return found
        for path in self.build.files:
            if path.endswith("/extra.yaml") and _POLICY in (data := self.build.files.data(path)):
                self._find_policies(shown_path(below(self.root, path)), data.decode())
        found += self._unused()
        if self.markers:
            found += self._dangling()
        return found

    def _unlisted(self) -> Iterator[Diagnostic]:
        if not self.files:
            return
        named = {posixpath.normpath(path) for path, _ in self.build.foreign}
        for path in self.files:
            folder, _, name = path.rpartition("/")
            if path in named or name.startswith(".") or f"{folder}/kustomization.yaml" not in self.build.files:
                continue
            area, _, service = folder.partition("/")
            hint = "move it elsewhere"
            if area == "apps" and service and service in self.build.names:
                hint = f"name it under `kustomize` of `{service}`, such as `resources: [{name}]`, or {hint}"
            yield Diagnostic(
                Location(shown_path(below(self.root, path))),
                "R515",
                "the file is in no kustomization",
                "warning",
                cause=f"`{folder}/kustomization.yaml` does not list it, so Flux does not apply it",
                hint=hint,
            )

    def _unused(self) -> Iterator[Diagnostic]:
        named = {marker.policy for marker in self.markers}
        for (namespace, name), place in self.policies.items():
            if (namespace, name) not in named:
                yield Diagnostic(
                    place,
                    "R514",
                    f"no marker in the tree names the image policy `{namespace}:{name}`",
                    "warning",
                    cause="it selects a version that nothing takes",
                    hint=f'mark a value of a file of yours with `# {{"$imagepolicy": "{namespace}:{name}:tag"}}`, '
                    "or remove the policy",
                )

    def _dangling(self) -> Iterator[Diagnostic]:
        from difflib import get_close_matches

        known = {*self.policies, *_rendered(self.build)}
        names = {name: namespace for namespace, name in sorted(known)}
        for marker in self.markers:
            policy, text = marker.policy, marker.text
            if policy in known:
                continue
            cause = "the image bot leaves the value as it is, and reports nothing"
            name, colon, suffix = text.partition(":")[2].partition(":")
            close = get_close_matches(name, names, 1, cutoff=0.75)
            meant = f"{names[close[0]]}:{close[0]}{colon}{suffix.lower()}" if close else ""
            if policy is None:
                cause = f"a marker is `NAMESPACE:NAME`, alone or with `:tag`, `:name` or `:digest`; {cause}"
            elif policy[0] != self._namespace:
                cause = f"the image bot of this tree sees policies in `{self._namespace}` only"
            hint = "give the image an `update`, or remove the marker"
            yield Diagnostic(
                marker.place,
                "R513",
                f"the marker `{text}` names no image policy of the tree",
                "warning",
                cause=cause,
                hint=f"write `{meant}`" if meant else hint,
            )


def _rendered(build: Build) -> Iterator[tuple[str, str]]:
    """Yield the image policies that a build renders, by namespace and name."""
    for path in build.files:
        if path.endswith("/image-automation.yaml"):
            for match in _OWN.finditer(build.files.data(path)):
                yield match["namespace"].decode(), match["name"].decode()


def markers(shown: str, text: str) -> Iterator[Marker]:
    """Yield the setter markers of a text, in the places where the bot reads them."""
    import json

    plain = without_literals(text)
    for match in _COMMENT.finditer(plain):
        before = match["before"]
        if not before.strip():
            # A comment line is one of the list item below it.
            if not _ITEM.match(plain, match.end() + 1):
                continue
        elif _UNREAD.match(before.rstrip()):
            continue
        try:
            marker = json.loads(match["marker"])
        except (ValueError, RecursionError):
            continue
        value = marker.get("$imagepolicy") if isinstance(marker, dict) else None
        if isinstance(value, str):
            # Without a column, since the line itself is not shown: nobody knows whether it holds a secret.
            yield Marker(Location(shown, plain.count("\n", 0, match.start()) + 1), value)
