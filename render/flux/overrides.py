"""kustomize `images` entries and image references or manifests in, what kustomize makes of them out; plain data.

Three parts: what a table does to one reference (`Table`, `apply`), which places of an object it reaches (`sites`,
`transform`), and what is wrong or surprising about a table (`lint`, `chains` and the functions after it). The rules are
those of kustomize 5.7.1 and 5.8.1, the versions inside helm-controller 1.5 and 1.6, which treat images alike.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from render.flux.image import ImageError, Reference, canonical_name, check_digest, check_tag

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

Path = tuple[str | int, ...]
"""Keys and list indices from the root of an object."""

_LITERAL = re.compile(r"[A-Za-z0-9_/:@ .-]*\Z")
"""Names that mean themselves to RE2, save that each dot matches any character but a newline."""
_VALUE = re.compile(r"[a-zA-Z0-9_.{}-]*\Z")
_TAG_PATTERN = "(:[a-zA-Z0-9_.{}-]*)?"
_DIGEST_PATTERN = "(@sha256:[a-zA-Z0-9_.{}-]*)?"
_ANY_DIGEST_PATTERN = "(@[a-zA-Z][a-zA-Z0-9]*:[a-zA-Z0-9_.{}-]*)?"
_ANY_ALGORITHM = re.compile(r"[a-zA-Z][a-zA-Z0-9]*\Z")


class OverrideFailure(ValueError):  # noqa: N818 - the word Flux and its users have for it
    """What makes kustomize fail, and with it the whole release: nothing of the release is applied."""

    def __init__(self, reason: str, path: Path = (), *, entry: int | None = None, document: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.path = path
        """The offending place in its object."""
        self.entry = entry
        """Index of the entry at fault; None: any table would do."""
        self.document = document
        """Index of the object in what `transform` was given; None where there is one object only."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of `images`; an empty string is an absent field, as kustomize takes it."""

    name: str
    new_name: str = ""
    new_tag: str = ""
    digest: str = ""

    @classmethod
    def of(cls, raw: Mapping[str, str]) -> Entry:
        """Take an entry with kustomize's field names."""
        return cls(raw.get("name", ""), raw.get("newName", ""), raw.get("newTag", ""), raw.get("digest", ""))

    def rewrite(self, text: str) -> str:
        """Give what stands in place of a text that the entry matched."""
        name, tag, digest = split(text)
        if self.new_tag or self.digest:
            tag, digest = self.new_tag, self.digest
        return (self.new_name or name) + (f":{tag}" if tag else "") + (f"@{digest}" if digest else "")


class Step(NamedTuple):
    """One entry's part in a rewrite."""

    entry: int
    """Its index in the table."""
    before: str
    after: str
    """Equal to `before` when the entry matched and changed nothing."""


class Outcome(NamedTuple):
    """What a table makes of one reference."""

    text: str
    trace: tuple[Step, ...]
    """The entries that matched, in order. With any, kustomize rewrites the scalar: a plain one is resolved anew."""


def split(text: str) -> tuple[str, str, str]:
    """Split a reference into name, tag and digest by position alone, as kustomize does; absent parts are empty."""
    start = max(text.find("/"), 0)
    at, colon = text.find("@", start), text.find(":", start)
    if at >= 0 and (colon < 0 or at < colon):
        return text[:at], "", text[at + 1 :]
    if colon < 0:
        return text, "", ""
    end = at if at >= 0 else len(text)
    return text[:colon], text[colon + 1 : end], text[end + 1 :]


class Table:
    """Entries in order, indexed: the answer of running one after another, without trying each on each reference.

    `unreleased` takes the rules of kustomize's main branch after 5.8.1: a digest of any algorithm is matched, and a
    name that is no regular expression matches nothing instead of panicking.
    """

    __slots__ = ("_literal", "_masks", "_wide", "entries", "unreleased")

    def __init__(self, entries: Iterable[Entry], *, unreleased: bool = False) -> None:
        self.entries = tuple(entries)
        self.unreleased = unreleased
        self._literal: dict[str, list[int]] = {}
        self._masks: dict[int, dict[tuple[int, ...], None]] = {}
        self._wide: list[tuple[int, Callable[[str], bool]]] | None = None
        for index, entry in enumerate(self.entries):
            name = entry.name
            if _LITERAL.match(name):
                self._literal.setdefault(name, []).append(index)
                dots = tuple(i for i, c in enumerate(name) if c == ".")
                self._masks.setdefault(len(name), {})[dots] = None

    def apply(self, text: str, *, double: bool = False) -> Outcome:
        """Run every entry on a reference, each on what the one before left.

        `double`: the site is one that kustomize visits twice for each entry (`sites` says which). Raises
        OverrideFailure when a name is no regular expression, whether or not it could match: kustomize panics.
        """
        return self._run(text, 0, double=double)

    def _run(self, text: str, start: int, *, double: bool) -> Outcome:
        """Run the entries from `start` on."""
        wide = self._patterns()
        trace: list[Step] = []
        while (index := self._next(text, start, wide)) is not None:
            before, entry = text, self.entries[index]
            text = entry.rewrite(text)
            if double and self._next(text, index, wide) == index:
                text = entry.rewrite(text)
            trace.append(Step(index, before, text))
            start = index + 1
        return Outcome(text, tuple(trace))

    def _next(self, text: str, start: int, wide: list[tuple[int, Callable[[str], bool]]]) -> int | None:
        """Index of the first entry from `start` on that matches."""
        best = len(self.entries)
        for name in self._names(text):
            for dots in self._masks.get(len(name), ()):
                spelling = _masked(name, dots)
                found = self._literal.get(spelling, ()) if spelling is not None else ()
                position = bisect_left(found, start)
                if position < len(found):
                    best = min(best, found[position])
        for index, matches in wide:
            if index >= best:
                break
            if index >= start and matches(text):
                return index
        return best if best < len(self.entries) else None

    def _names(self, text: str) -> list[str]:
        """List the beginnings of a reference that leave no more than a tag and a digest, either may be empty."""
        names = [text]
        head, at, digest = text.rpartition("@")
        if at:
            algorithm, colon, digits = digest.partition(":")
            known = _ANY_ALGORITHM.match(algorithm) if self.unreleased else algorithm == "sha256"
            if known and colon and _VALUE.match(digits):
                names.append(head)
        for whole in tuple(names):
            head, colon, tag = whole.rpartition(":")
            if colon and _VALUE.match(tag):
                names.append(head)
        return names

    def _patterns(self) -> list[tuple[int, Callable[[str], bool]]]:
        """Give the names that need a regular expression, each as a search; compiled at the first call."""
        if self._wide is None:
            wide: list[tuple[int, Callable[[str], bool]]] = []
            for index, entry in enumerate(self.entries):
                if _LITERAL.match(entry.name):
                    continue
                try:
                    wide.append((index, _compile(entry.name, unreleased=self.unreleased)))
                except OverrideFailure as failure:
                    if not self.unreleased:
                        raise OverrideFailure(failure.reason, entry=index) from None
            self._wide = wide
        return self._wide


def apply(entries: Iterable[Entry], text: str, *, double: bool = False, unreleased: bool = False) -> Outcome:
    """Run entries on one reference; `Table` says how, and is the way for more than one reference."""
    return Table(entries, unreleased=unreleased).apply(text, double=double)


def _masked(name: str, dots: tuple[int, ...]) -> str | None:
    """Put dots at the places given; None when one of them holds the newline that a dot does not match."""
    for i in dots:
        if name[i] == "\n":
            return None
        if name[i] != ".":
            name = f"{name[:i]}.{name[i + 1 :]}"
    return name


def _compile(name: str, *, unreleased: bool) -> Callable[[str], bool]:
    """Compile a name between kustomize's anchors as Go does; raises OverrideFailure."""
    from render.flux.regex import Pattern, PatternError

    try:
        return Pattern(f"^{name}{_TAG_PATTERN}{_ANY_DIGEST_PATTERN if unreleased else _DIGEST_PATTERN}$").matches
    except PatternError as error:
        reason = _shown(error.upstream.removeprefix("error parsing regexp: ").partition(": `")[0])
    except UnicodeEncodeError:
        reason = "no Unicode text"
    shown = _shown(name)
    raise OverrideFailure(f"kustomize panics on the name `{shown}`, which is no regular expression: {reason}")


_CONTAINER_LISTS = frozenset(("containers", "initContainers"))
_POD_FIELDS = (("containers[]", "image"), ("initContainers[]", "image"), ("volumes[]", "image", "reference"))
_FIELD_SPECS = tuple((*pod, *field) for pod in (("spec",), ("spec", "template", "spec")) for field in _POD_FIELDS)
_LOCAL_CONFIG = "config.kubernetes.io/local-config"


class Scalars(Protocol):
    """How `sites` and `transform` read and write the scalars of an object; maps are dicts and lists are lists."""

    def is_null(self, value: object) -> bool:
        """Tell whether a YAML reader takes the scalar for null."""

    def text(self, value: object) -> str:
        """Give the scalar's source text, without quotes: kustomize matches that, whatever the type."""

    def rewrite(self, value: object, text: str) -> object:
        """Give the scalar that replaces `value`: the same quoting, the new text, the type resolved anew if plain."""


class PlainData:
    """Scalars as a JSON reader gives them; what is rewritten becomes a string, as it does where it is quoted."""

    def is_null(self, value: object) -> bool:
        """Only None is null."""
        return value is None

    def text(self, value: object) -> str:
        """Give what YAML shows for the value."""
        if isinstance(value, str):
            return value
        if value is None:
            return "null"
        return str(value).lower() if isinstance(value, bool) else str(value)

    def rewrite(self, value: object, text: str) -> object:  # noqa: ARG002 - the protocol's shape
        """Give a string."""
        return text


_PLAIN_DATA = PlainData()


class Site(NamedTuple):
    """A place that kustomize takes for an image."""

    path: Path
    doubled: bool
    """Each entry runs twice here: once for the container list, once for the field."""


def sites(obj: object, scalars: Scalars = _PLAIN_DATA) -> list[Site]:
    """List the images of one object in kustomize's order; of a `*List` object, those of its items.

    Raises OverrideFailure for an object that fails any release whose table has an entry, matching or not.
    """
    return _visit(obj, scalars)[0]


class Change(NamedTuple):
    """One image that a table matched."""

    document: int
    """Index into `Transformed.documents`."""
    path: Path
    doubled: bool
    before: str
    after: str
    trace: tuple[Step, ...]


class Transformed(NamedTuple):
    """What kustomize leaves of a release's objects."""

    documents: list[object]
    """Copies in the order given; lists expanded, objects marked local-config gone."""
    changes: list[Change]


def transform(
    documents: Sequence[object], entries: Table | Iterable[Entry], scalars: Scalars = _PLAIN_DATA
) -> Transformed:
    """Run a table on the objects of a release, loading them as kustomize does.

    Of kustomize's other effects on its output, none is shown: order of objects and keys, annotation values becoming
    strings, numbers in Go's form. Raises OverrideFailure for the first object that fails the release.
    """
    table = entries if isinstance(entries, Table) else Table(entries)
    copies: list[object] = []
    changes: list[Change] = []
    for document, path, obj in _load(documents, scalars):
        copy = _copied(obj)
        if table.entries:
            try:
                changes += _rewrite(copy, len(copies), table, scalars)
            except OverrideFailure as failure:
                place = path + failure.path
                raise OverrideFailure(failure.reason, place, entry=failure.entry, document=document) from None
        copies.append(copy)
    return Transformed(copies, changes)


def _rewrite(obj: object, document: int, table: Table, scalars: Scalars) -> list[Change]:
    """Run a table on one object, in place."""
    found, nulls = _visit(obj, scalars)
    changes: list[Change] = []
    for path, doubled in found:
        holder, key = _holder(obj, path)
        before = scalars.text(holder[key])
        try:
            after, trace = table.apply(before, double=doubled)
        except OverrideFailure as failure:
            raise OverrideFailure(failure.reason, path, entry=failure.entry) from None
        if trace:
            holder[key] = scalars.rewrite(holder[key], after)
            changes.append(Change(document, path, doubled, before, after, trace))
    for path in nulls:
        holder, key = _holder(obj, path)
        holder[key] = []
    return changes


class _Found:
    """What the two ways through an object have come upon."""

    __slots__ = ("fields", "nulls", "scalars", "walked")

    def __init__(self, scalars: Scalars) -> None:
        self.scalars = scalars
        self.walked: dict[Path, None] = {}
        self.fields: dict[Path, None] = {}
        self.nulls: list[Path] = []

    def is_null(self, value: object) -> bool:
        return not isinstance(value, dict | list) and self.scalars.is_null(value)


def _visit(obj: object, scalars: Scalars) -> tuple[list[Site], list[Path]]:
    """Give the images of an object, and the places where kustomize writes `[]` for null."""
    if not isinstance(obj, dict) or _kind(obj, scalars) == "CustomResourceDefinition":
        return [], []
    if _is_list(obj, scalars):
        images: list[Site] = []
        nulls: list[Path] = []
        for index, item in enumerate(obj["items"] if isinstance(obj["items"], list) else ()):
            inner_images, inner_nulls = _visit(item, scalars)
            images += [Site(("items", index, *path), doubled) for path, doubled in inner_images]
            nulls += [("items", index, *path) for path in inner_nulls]
        return images, nulls
    found = _Found(scalars)
    _walk(obj, (), found)
    for spec in _FIELD_SPECS:
        _follow(obj, spec, (), found)
    images = [Site(path, path in found.fields) for path in found.walked]
    return images + [Site(path, doubled=False) for path in found.fields if path not in found.walked], found.nulls


def _walk(node: object, path: Path, found: _Found) -> None:
    """Collect the images of container lists at any depth, whatever the object's kind."""
    if isinstance(node, list):
        for index, item in enumerate(node):
            _walk(item, (*path, index), found)
    if not isinstance(node, dict):
        return
    for key, value in node.items():
        _walk(value, (*path, key), found)
        if key not in _CONTAINER_LISTS or not isinstance(value, list):
            continue
        for index, item in enumerate(value):
            place = (*path, key, index)
            if isinstance(item, dict):
                if "image" in item:
                    found.walked[_scalar(item["image"], (*place, "image"))] = None
            elif not found.is_null(item):
                raise OverrideFailure(f"an element of a list called `{key}` is no map", place)


def _follow(node: object, spec: tuple[str, ...], path: Path, found: _Found) -> None:
    """Collect what one of kustomize's field paths leads to; lists on the way are entered, whatever the path says."""
    if not spec:
        found.fields[_scalar(node, path)] = None
    elif isinstance(node, list):
        for index, item in enumerate(node):
            _follow(item, spec, (*path, index), found)
    elif isinstance(node, dict):
        key = spec[0].removesuffix("[]")
        if key not in node:
            return
        value = node[key]
        if key != spec[0] and found.is_null(value):
            found.nulls.append((*path, key))
        else:
            _follow(value, spec[1:], (*path, key), found)
    elif not found.is_null(node):
        field = "/".join(spec)
        raise OverrideFailure(f"neither a map nor a list, but kustomize looks for `{field}` in it", path)


def _scalar(value: object, path: Path) -> Path:
    """Give the path back unless a map or list stands where kustomize wants an image."""
    if isinstance(value, dict | list):
        raise OverrideFailure(
            f"a {'map' if isinstance(value, dict) else 'list'} where kustomize looks for an image", path
        )
    return path


def _kind(obj: dict[str, object], scalars: Scalars) -> str:
    """Give an object's kind, empty if it has none."""
    kind = obj.get("kind")
    return "" if isinstance(kind, dict | list) or kind is None or scalars.is_null(kind) else scalars.text(kind)


def _is_list(obj: dict[str, object], scalars: Scalars) -> bool:
    """Tell whether kustomize takes the object for a list of objects."""
    return "items" in obj and _kind(obj, scalars).endswith("List")


class _Loaded(NamedTuple):
    """An object that kustomize works on, and where it was."""

    document: int
    path: Path
    """In its document; not empty for an item of a list object."""
    obj: dict[str, object]


def _load(documents: Sequence[object], scalars: Scalars) -> list[_Loaded]:
    """Give the objects that kustomize works on; raises OverrideFailure for what it refuses to load."""
    loaded: list[_Loaded] = []
    identities: set[tuple[str, ...]] = set()
    for index, document in enumerate(documents):
        for found in _expanded(document, (), index, scalars):
            metadata = found.obj.get("metadata")
            annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
            if isinstance(annotations, dict) and scalars.text(annotations.get(_LOCAL_CONFIG, "false")) != "false":
                continue
            identity = _identity(found, scalars)
            if identity in identities:
                reason = f"a second {identity[1]} `{identity[-1]}` of the same API version and namespace"
                raise OverrideFailure(reason, found.path, document=index)
            identities.add(identity)
            loaded.append(found)
    return loaded


def _expanded(document: object, path: Path, index: int, scalars: Scalars) -> Iterable[_Loaded]:
    """Give a document, or the items of a `*List` document at any depth."""
    if isinstance(document, dict):
        if not _is_list(document, scalars):
            yield _Loaded(index, path, document)
            return
        items = document["items"]
        if isinstance(items, list):
            for i, item in enumerate(items):
                yield from _expanded(item, (*path, "items", i), index, scalars)
        elif isinstance(items, dict) or not scalars.is_null(items):
            raise OverrideFailure("the `items` of a list object are no list", (*path, "items"), document=index)
    elif isinstance(document, list) or not scalars.is_null(document):
        raise OverrideFailure("no Kubernetes object", path, document=index)


def _identity(found: _Loaded, scalars: Scalars) -> tuple[str, ...]:
    """Give what makes an object the same one to kustomize: API version, kind, namespace and name."""
    obj = found.obj
    metadata = obj.get("metadata")
    fields = metadata if isinstance(metadata, dict) else {}
    name = fields.get("name")
    for field, value in (("kind", obj.get("kind")), ("metadata.name", name)):
        if value is None or isinstance(value, dict | list) or scalars.is_null(value) or not scalars.text(value):
            reason = f"an object without `{field}`, which kustomize needs"
            raise OverrideFailure(reason, found.path, document=found.document)
    namespace = fields.get("namespace")
    named = "" if namespace is None or scalars.is_null(namespace) else scalars.text(namespace)
    version = scalars.text(obj.get("apiVersion", ""))
    return version, scalars.text(obj["kind"]), named or "default", scalars.text(name)


def _copied(node: object) -> object:
    """Copy maps and lists; scalars are shared."""
    if isinstance(node, dict):
        return {key: _copied(value) for key, value in node.items()}
    return [_copied(item) for item in node] if isinstance(node, list) else node


def _holder(root: object, path: Path) -> tuple[dict[str | int, object], str | int]:
    """Give the map or list that holds the last part of a path, and that part."""
    for part in path[:-1]:
        root = root[part]  # type: ignore[index]
    return root, path[-1]  # type: ignore[return-value]


_FIELDS = ("name", "newName", "newTag", "digest")
_ALIASES = {"tag": "newTag", "image": "name", "newimage": "newName", "repository": "name", "newrepository": "newName"}
"""Words people use for a field that no measure of likeness finds."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault of a table as a person wrote it."""

    index: int
    """Of the entry; -1 where the table itself is meant."""
    field: str
    """The key at fault, as written; empty where the whole entry is."""
    message: str
    cause: str = ""
    hint: str = ""
    severity: Literal["error", "warning"] = "error"
    related: int | None = None
    """Index of another entry that the message is about."""


def lint(entries: object) -> list[Finding]:
    """Check a table as read from YAML, before it is taken for `Entry` values; never raises.

    A field that YAML reads as a string is a `str`; any other value may carry its source text in an attribute `source`,
    by which it is then quoted. Findings come in the order of the entries.
    """
    if not isinstance(entries, list | tuple):
        message = f"the entries must be a list, not {_noun(entries)}"
        return [Finding(-1, "", message, hint="write one `- name: …` for each image name")]
    findings: list[Finding] = []
    first: dict[str, int] = {}
    for index, raw in enumerate(entries):
        findings += _lint_entry(index, raw)
        name = raw.get("name") if isinstance(raw, dict) else None
        if not isinstance(name, str) or not name:
            continue
        if name in first:
            findings.append(
                Finding(
                    index,
                    "name",
                    f"`name` must be unique: `{_shown(name)}` has an entry already",
                    cause="kustomize runs both: after a rename the later one matches nothing, else the last tag wins",
                    hint="merge the two entries",
                    related=first[name],
                )
            )
        first.setdefault(name, index)
    return findings


def _lint_entry(index: int, raw: object) -> list[Finding]:
    """Check one entry by itself."""
    if not isinstance(raw, dict):
        return [
            Finding(index, "", f"an entry must be a map, not {_noun(raw)}", hint="write `name: …` and `newName: …`")
        ]
    findings: list[Finding] = []
    guessed: set[str] = set()
    for key in raw:
        if key not in _FIELDS:
            closest = _closest(key)
            guessed.update(closest)
            cause = "kustomize `images` entries have `name`, `newName`, `newTag`, `digest`"
            hint = f"rename it to `{closest[0]}`" if closest else "delete it"
            findings.append(Finding(index, str(key), f"unknown field `{_shown(str(key))}`", cause, hint))
    checks = {"name": _lint_name, "newName": _lint_new_name, "newTag": _lint_new_tag, "digest": _lint_digest}
    for field, check in checks.items():
        if field not in raw:
            continue
        value = raw[field]
        findings += check(index, value) if isinstance(value, str) else [_lint_type(index, field, value)]
    if "name" not in raw and "name" not in guessed:
        findings.append(Finding(index, "", "`name` is missing", hint="add the name of the image to override"))
    given = [field for field in _FIELDS[1:] if field in raw]
    if not given and not guessed.intersection(_FIELDS[1:]):
        cause = "an entry with a `name` alone has no effect"
        hint = "add `newName`, `newTag` or `digest`"
        findings.append(Finding(index, "", "an entry must change something", cause, hint))
    if given == ["newName"] and isinstance(raw["newName"], str) and raw["newName"] == raw.get("name"):
        message = "`newName` must differ from `name` where nothing else changes"
        findings.append(Finding(index, "newName", message, "the entry has no effect", "delete the entry"))
    return findings


def _lint_type(index: int, field: str, value: object) -> Finding:
    """Give the finding of a field that is no string."""
    source = _source(value)
    message = f"`{field}` must be a string, not {_noun(value)}"
    if isinstance(value, dict | list | tuple) or value is None:
        return Finding(index, field, message, hint=f"write a string or delete `{field}`")
    quoted = json.dumps(source, ensure_ascii=False)
    cause = "Flux types the field as a string; the API server refuses the release"
    return Finding(index, field, message, cause, f"quote it: `{field}: {_shown(quoted)}`")


def _lint_name(index: int, name: str) -> list[Finding]:
    """Check what an entry matches."""

    def finding(message: str, cause: str = "", hint: str = "") -> list[Finding]:
        return [Finding(index, "name", message, cause, hint)]

    if not name:
        cause = "an empty name matches images without a name, such as `:tag`, and nothing else"
        return finding("`name` must not be empty", cause, "write the image's name as it stands in the manifests")
    try:
        reference = Reference.parse(name)
    except ImageError as error:
        message = f"`name` must be the name of an image, not `{_shown(name)}`"
        bare = name.replace("[.]", ".").replace("\\.", ".")
        hint = f"write `name: {bare}`" if bare != name and _is_name(bare) else error.hint
        if not _LITERAL.match(name):
            try:
                _compile(name, unreleased=False)
            except OverrideFailure as failure:
                return finding(message, failure.reason, hint or "write one entry for each name")
            cause = f"kustomize reads it as a regular expression, and {error}"
            return finding(message, cause, hint or "write one entry for each name")
        return finding(message, str(error), hint)
    if reference.tag is None and reference.digest is None:
        return []
    part = "tag" if reference.digest is None else "digest"
    cause = f"kustomize would match only images with this very {part}; a bare name matches any tag and digest"
    return finding(f"`name` must not hold a {part}: `{_shown(name)}`", cause, f"write `name: {reference.name}`")


def _is_name(text: str) -> bool:
    """Tell whether a text is a name without tag and digest."""
    try:
        reference = Reference.parse(text)
    except ImageError:
        return False
    return reference.name == text


def _lint_new_name(index: int, name: str) -> list[Finding]:
    """Check the name that an entry writes."""
    if not name:
        return [_empty(index, "newName")]
    try:
        reference = Reference.parse(name)
    except ImageError as error:
        message = f"`newName` must be the name of an image, not `{_shown(name)}`"
        stripped = re.sub(r"^[A-Za-z][A-Za-z0-9+.-]*://", "", name).strip().strip("/")
        hint = f"write `newName: {stripped}`" if stripped != name and _is_name(stripped) else error.hint
        return [Finding(index, "newName", message, f"kustomize writes it as it is, and {error}", hint)]
    if reference.tag is None and reference.digest is None:
        return []
    part = "tag" if reference.digest is None else "digest"
    cause = f"kustomize appends the image's own tag or digest to it: `{name}:1.0`"
    parts = [f"newName: {reference.name}"]
    parts += [f'newTag: "{reference.tag}"'] if reference.tag else []
    parts += [f"digest: {reference.digest}"] if reference.digest else []
    hint = "write " + ", ".join(f"`{text}`" for text in parts)
    return [Finding(index, "newName", f"`newName` must not hold a {part}: `{_shown(name)}`", cause, hint)]


def _lint_new_tag(index: int, tag: str) -> list[Finding]:
    """Check the tag that an entry writes."""
    if not tag:
        return [_empty(index, "newTag")]
    head, at, digest = tag.partition("@")
    try:
        check_tag(tag)
    except ImageError as error:
        hint = error.hint
        if at:
            hint = f'write `newTag: "{_shown(head)}"` and `digest: {_shown(digest)}`'
        elif tag.strip().startswith(":"):
            hint = "delete the `:`"
        message = f"`newTag` must be a tag, not `{_shown(tag)}`"
        return [Finding(index, "newTag", message, f"kustomize writes it as it is, and {error}", hint)]
    return []


def _lint_digest(index: int, digest: str) -> list[Finding]:
    """Check the digest that an entry writes."""
    if not digest:
        return [_empty(index, "digest")]
    try:
        check_digest(digest)
    except ImageError as error:
        hint = "delete the `@`" if digest.startswith("@") else error.hint
        message = f"`digest` must be a digest, not `{_shown(digest)}`"
        return [Finding(index, "digest", message, f"kustomize writes it as it is, and {error}", hint)]
    if digest.startswith("sha256:"):
        return []
    message = "`digest` is no `sha256` digest, the only kind that kustomize matches"
    cause = "a later entry, or another run of the table, leaves the image alone"
    return [Finding(index, "digest", message, cause, "use the image's `sha256` digest", severity="warning")]


def _empty(index: int, field: str) -> Finding:
    """Give the finding of an empty string, which kustomize takes for an absent field."""
    message = f"`{field}` must not be empty"
    return Finding(index, field, message, "kustomize takes an empty string for an absent field", f"delete `{field}`")


def _closest(key: object) -> list[str]:
    """Give the field that a person may have meant, or none."""
    from difflib import get_close_matches

    word = str(key).replace("_", "").replace("-", "").lower()
    if word in _ALIASES:
        return [_ALIASES[word]]
    lower = {field.lower(): field for field in _FIELDS}
    return [lower[match] for match in get_close_matches(word, lower, n=1)]


def _source(value: object) -> str:
    """Give the text that stands in the file for a value that is no string, as well as it is known."""
    source = getattr(value, "source", None)
    if isinstance(source, str):
        return source
    try:
        return _PLAIN_DATA.text(value)
    except ValueError:
        return "…"


def _noun(value: object) -> str:
    """Name a value in a message."""
    if isinstance(value, dict):
        return "a map"
    if isinstance(value, list | tuple):
        return "a list"
    source = _source(value)
    if isinstance(value, str):
        noun = "the string"
    elif source in {"", "~", "null", "Null", "NULL"}:
        return "null"
    elif source[0].isdigit() or source[0] in "+-.":
        noun = "the number"
    else:
        noun = "the value"
    return f"{noun} `{_shown(source)}`"


def _shown(text: str, limit: int = 80) -> str:
    """Give a text as it can stand in a message of one line."""
    text = text if len(text) <= limit else f"{text[:limit]}…"
    return text if text.isprintable() else ascii(text)[1:-1]


class Chain(NamedTuple):
    """Two entries of which the later one takes what the earlier one wrote."""

    first: int
    second: int
    between: str
    """The reference after the first."""
    after: str


def chains(entries: Iterable[Entry]) -> list[Chain]:
    """List the renames that a later entry rewrites again; raises OverrideFailure as `Table.apply`."""
    table = Table(entries)
    found: list[Chain] = []
    for index, entry in enumerate(table.entries):
        if not entry.new_name:
            continue
        between = entry.rewrite("")
        after, trace = table._run(between, index + 1, double=False)
        found += [Chain(index, step.entry, between, after) for step in trace[:1] if after != between]
    return found


class Hit(NamedTuple):
    """An entry and a declared image that concern each other."""

    entry: int
    image: Reference


def spelling_variants(entries: Iterable[Entry], images: Iterable[Reference]) -> list[Hit]:
    """List entries that name an image's repository in another spelling, so that the image is left alone.

    An image that an entry for its repository does match is left out; raises OverrideFailure as `Table.apply`.
    """
    table = Table(entries)
    by_repository: dict[str, list[int]] = {}
    for index, entry in enumerate(table.entries):
        by_repository.setdefault(canonical_name(entry.name), []).append(index)
    found: list[Hit] = []
    for image in images:
        same = by_repository.get(image.canonical, [])
        if same and not {step.entry for step in table.apply(str(image)).trace}.intersection(same):
            found += [Hit(index, image) for index in same]
    return found


def accidental_matches(entries: Iterable[Entry], images: Iterable[Reference]) -> list[Hit]:
    """List images that an entry rewrites only because a `.` in its name matches any character.

    Raises OverrideFailure as `Table.apply`; names that are no image names are `lint`'s business.
    """
    table = Table(entries)
    found: list[Hit] = []
    for image in images:
        for step in table.apply(str(image)).trace:
            name = table.entries[step.entry].name
            if _LITERAL.match(name) and not step.before.startswith(name):
                found.append(Hit(step.entry, image))
    return found


class Again(NamedTuple):
    """An effective reference that is not safe from the table that made it."""

    effective: str
    again: str
    """What a second run makes of it."""
    first: int
    """Index of the entry that gave the effective reference."""
    second: int
    """Index of the entry that rewrites it once more."""


def rewrites_again(entries: Table | Iterable[Entry], image: Reference) -> Again | None:
    """Tell whether a table, run on its own result, would change it: matters where the result is written down."""
    table = entries if isinstance(entries, Table) else Table(entries)
    effective, trace = table.apply(str(image))
    if not trace:
        return None
    again, second = table.apply(effective)
    if again == effective:
        return None
    changing = next(step for step in second if step.before != step.after)
    return Again(effective, again, trace[-1].entry, changing.entry)
