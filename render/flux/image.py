"""The text of an image reference in, its parts out, and back; strings in, strings out.

The grammar is the one of OCI distribution, as registries and container runtimes enforce it. Nothing is normalised:
`str(Reference.parse(text)) == text`, because kustomize compares references by their spelling.
"""

from __future__ import annotations

import re

from render.patterns import lazy
from render.structs import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

DOCKER_HUB = "docker.io"
"""The registry of references that name none."""

_HOST = (
    r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*"
    r"|\[[0-9A-Fa-f:]+\])(?::[0-9]+)?"
)
_COMPONENT = r"[a-z0-9]+(?:(?:__|[._]|-+)[a-z0-9]+)*"
_PATH = rf"{_COMPONENT}(?:/{_COMPONENT})*"
_HAS_REGISTRY = r"(?:[^/]*[.:][^/]*|localhost)/"
_NAME = rf"(?:(?={_HAS_REGISTRY}){_HOST}/{_PATH}|(?!{_HAS_REGISTRY}){_PATH})"
_TAG = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"
_DIGEST = r"sha256:[0-9a-f]{64}|sha384:[0-9a-f]{96}|sha512:[0-9a-f]{128}"
_REFERENCE = lazy(rf"(?P<name>{_NAME})(?::(?P<tag>{_TAG}))?(?:@(?P<digest>{_DIGEST}))?\Z")
_TAG_ONLY = lazy(rf"{_TAG}\Z")
_DIGEST_ONLY = lazy(rf"(?:{_DIGEST})\Z")
_HOST_ONLY = lazy(rf"{_HOST}\Z")
_COMPONENT_ONLY = lazy(rf"{_COMPONENT}\Z")
_SCHEME = lazy(r"[A-Za-z][A-Za-z0-9+.-]*://")
_DIGEST_LENGTHS = {"sha256": 64, "sha384": 96, "sha512": 128}
_NAME_LIMIT = 255
_TAG_LIMIT = 128
_LONGEST = _NAME_LIMIT + 1 + _TAG_LIMIT + 1 + len("sha512:") + 128
"""Longer texts are no reference; they are refused before the pattern looks at them."""


class ImageError(ValueError):
    """A text that is no image reference, tag or digest: what is wrong, where, and the change that mends it."""

    def __init__(self, message: str, position: int, hint: str = "") -> None:
        super().__init__(message)
        self.position = position
        """0-based index into the text that was parsed."""
        self.hint = hint
        """One imperative sentence without a full stop; empty when there is nothing better than the message."""


@struct(frozen=True, order=True)
class Reference:
    """An image reference as it is spelled."""

    name: str
    """Registry and repository, or the repository alone: everything before tag and digest."""
    tag: str | None = None
    digest: str | None = None
    """Algorithm and hex digits, `sha256:…`."""

    @classmethod
    def parse(cls, text: str) -> Reference:
        """Read `[registry[:port]/]repository[:tag][@digest]`; raises ImageError.

        `localhost:5000` without a slash is the repository `localhost` with the tag `5000`, as every runtime takes it.
        """
        match = _REFERENCE.match(text) if len(text) <= _LONGEST else None
        if match is None or len(match["name"]) > _NAME_LIMIT:
            _explain(text)
        return cls(match["name"], match["tag"], match["digest"])

    @classmethod
    def join(
        cls, repository: str, tag: str | None = None, digest: str | None = None, registry: str | None = None
    ) -> Reference:
        """Put together what a chart's values hold apart; raises ImageError, its position counted in the whole text.

        Empty strings count as absent, as chart templates take them. `tag` may hold the digest: `1.2.3@sha256:…`.
        """
        text = f"{registry}/{repository}" if registry else repository
        text += f":{tag}" if tag else ""
        text += f"@{digest}" if digest else ""
        return cls.parse(text)

    def __str__(self) -> str:
        return (
            self.name
            + ("" if self.tag is None else f":{self.tag}")
            + ("" if self.digest is None else f"@{self.digest}")
        )

    @property
    def registry(self) -> str | None:
        """The first component, when it holds a `.` or `:` or is `localhost`; None: the runtime's default registry."""
        return _partition(self.name)[0]

    @property
    def repository_path(self) -> str:
        """The name without its registry."""
        return _partition(self.name)[1]

    @property
    def canonical(self) -> str:
        """The name in full, without tag and digest; equal for two names exactly if they name the same repository."""
        return canonical_name(self.name)

    @property
    def tag_text(self) -> str | None:
        """What the `tag` key of a chart's values holds: the tag with the digest inside it (`1.2.3@sha256:…`).

        None without a tag, also when there is a digest: templates print `repository:tag`, and `repository:@sha256:…`
        is no reference.
        """
        if self.tag is None or self.digest is None:
            return self.tag
        return f"{self.tag}@{self.digest}"

    @property
    def registry_parts(self) -> tuple[str, str]:
        """What the `registry` and `repository` keys of a chart's values hold.

        A reference without a registry gets `docker.io`, its path as spelled (`redis` stays `redis`): templates print
        `registry/repository`, many of them the slash even when `registry` is empty, and every runtime takes
        `docker.io/redis` for `docker.io/library/redis`. What the chart renders is then `docker.io/redis`: that is the
        spelling which image overrides see.
        """
        registry, path = _partition(self.name)
        return registry or DOCKER_HUB, path


def canonical_name(name: str) -> str:
    """Give the full form of a name without tag and digest: `nginx` is `docker.io/library/nginx`."""
    registry, path = _partition(name)
    if registry in {None, DOCKER_HUB, "index.docker.io"}:
        return f"{DOCKER_HUB}/{path}" if "/" in path else f"{DOCKER_HUB}/library/{path}"
    return f"{registry.lower() if registry else DOCKER_HUB}/{path}"


def split_tag(text: str) -> tuple[str, str | None]:
    """Read a `tag` value that may hold a digest: tag and digest; raises ImageError."""
    tag, at, digest = text.partition("@")
    check_tag(tag)
    if not at:
        return tag, None
    check_digest(digest, len(tag) + 1)
    return tag, digest


def check_tag(text: str, offset: int = 0) -> None:
    """Raise ImageError unless the text is a tag; `offset` is where it begins in what the person wrote."""
    if _TAG_ONLY.match(text):
        return
    if not text:
        raise ImageError("the tag is empty", offset, "delete the `:` or write a tag after it")
    if len(text) > _TAG_LIMIT:
        raise ImageError(f"the tag has {len(text)} characters, more than the {_TAG_LIMIT} allowed", offset + _TAG_LIMIT)
    if text[0] in ".-":
        raise ImageError(f"a tag does not begin with `{text[0]}`", offset)
    index = _first_outside(text, "_.-")
    hint = "registries show it as `_` where a chart version has `+`" if text[index] == "+" else ""
    raise ImageError(f"a tag does not hold {_name_of(text[index])}", offset + index, hint)


def check_digest(text: str, offset: int = 0) -> None:
    """Raise ImageError unless the text is a digest of an algorithm that OCI registers."""
    if _DIGEST_ONLY.match(text):
        return
    algorithm, colon, digits = text.partition(":")
    if not colon:
        hint = f"write `sha256:{text}`" if re.match(r"[0-9a-f]{64}\Z", text) else "write `sha256:` and 64 hex digits"
        raise ImageError("the digest does not begin with its algorithm", offset, hint)
    length = _DIGEST_LENGTHS.get(algorithm)
    if length is None:
        raise ImageError("the digest's algorithm is none of `sha256`, `sha384`, `sha512`", offset)
    start = offset + len(algorithm) + 1
    wrong = next((i for i, c in enumerate(digits) if c not in "0123456789abcdef"), None)
    if wrong is not None:
        hint = "write the hex digits in lower case" if digits[wrong] in "ABCDEF" else ""
        raise ImageError(f"the digest holds {_name_of(digits[wrong])} among its hex digits", start + wrong, hint)
    message = f"the digest has {len(digits)} hex digits where `{algorithm}` has {length}"
    raise ImageError(message, start + min(len(digits), length))


def _partition(name: str) -> tuple[str | None, str]:
    """Registry and path of a name."""
    first, slash, rest = name.partition("/")
    if slash and ("." in first or ":" in first or first == "localhost"):
        return first, rest
    return None, name


def _name_of(character: str) -> str:
    """Name a character for a message of one line."""
    return f"`{character}`" if character.isprintable() and character != "`" else f"the character U+{ord(character):04X}"


def _first_outside(text: str, extra: str) -> int:
    """Index of the first character that is neither an ASCII letter or digit nor in `extra`; 0 if there is none."""
    return next((i for i, c in enumerate(text) if not (c.isascii() and (c.isalnum() or c in extra))), 0)


def _explain(text: str) -> NoReturn:
    """Raise the ImageError that says why the text is no reference."""
    if not text:
        raise ImageError("the image is empty", 0)
    for index, character in enumerate(text):
        if character.isspace():
            raise ImageError("an image reference holds no white space", index)
    if scheme := _SCHEME.match(text):
        raise ImageError("an image reference has no scheme", 0, f"delete `{scheme[0]}`")
    if (index := text.find("${")) >= 0:
        raise ImageError("an image reference holds no variable", index, "write the value itself")
    rest, at, digest = text.partition("@")
    colon = rest.find(":", rest.rfind("/") + 1)
    name = rest[:colon] if colon >= 0 else rest
    _explain_name(name)
    if colon >= 0:
        check_tag(rest[colon + 1 :], colon + 1)
    if at:
        check_digest(digest, len(rest) + 1)
    raise ImageError("it is no image reference", 0)


def _explain_name(name: str) -> None:
    """Raise the ImageError that says why the text is no name, if it is none."""
    if len(name) > _NAME_LIMIT:
        raise ImageError(f"the name has {len(name)} characters, more than the {_NAME_LIMIT} allowed", _NAME_LIMIT)
    if not name:
        raise ImageError("the name before tag and digest is empty", 0)
    registry, path = _partition(name)
    offset = 0
    if registry is not None:
        if not _HOST_ONLY.match(registry):
            raise ImageError("what stands before the first `/` is no host name with an optional port", 0)
        offset = len(registry) + 1
    for component in path.split("/"):
        if not _COMPONENT_ONLY.match(component):
            _explain_component(component, offset, name)
        offset += len(component) + 1


def _explain_component(component: str, offset: int, name: str) -> NoReturn:
    """Raise the ImageError of one part of a path; `offset` is its place in the name."""
    if not component:
        if offset == 0:
            raise ImageError("an image reference does not begin with `/`", 0)
        if offset == len(name):
            raise ImageError("an image name does not end with `/`", offset - 1, "delete the slash")
        raise ImageError("an image name has something between two slashes", offset)
    index = next((i for i, c in enumerate(component) if not (c in "._-" or (c.isascii() and c.isalnum()))), None)
    if index is not None:
        raise ImageError(f"an image name does not hold {_name_of(component[index])}", offset + index)
    index = next((i for i, c in enumerate(component) if c.isupper()), None)
    if index is not None:
        hint = f"write `{component.lower()}`"
        raise ImageError("an image name holds no upper-case letters", offset + index, hint)
    if component[0] in "._-":
        raise ImageError(f"a part of an image name does not begin with `{component[0]}`", offset)
    if component[-1] in "._-":
        raise ImageError(f"a part of an image name does not end with `{component[-1]}`", offset + len(component) - 1)
    runs = (run for run in re.finditer(r"[._-]{2,}", component) if run[0] != "__" and run[0].strip("-"))
    position = next((run.start() for run in runs), 0)
    raise ImageError("an image name joins its words by one `.`, one or two `_`, or dashes", offset + position)
