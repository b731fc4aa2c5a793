from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from render.flux.image import (
    ImageError,
    Reference,
    canonical_name,
    check_digest,
    check_tag,
    split_tag,
)

if TYPE_CHECKING:
    from collections.abc import Callable

SHA256 = "sha256:" + "0123456789abcdef" * 4
SHA512 = "sha512:" + "0123456789abcdef" * 8


@pytest.mark.parametrize(
    ("text", "name", "tag", "digest"),
    [
        ("redis", "redis", None, None),
        ("docker.io/pihole/pihole:2024.07.0", "docker.io/pihole/pihole", "2024.07.0", None),
        (f"reg:5000/a/b:1@{SHA256}", "reg:5000/a/b", "1", SHA256),
        (f"reg.example/a@{SHA512}", "reg.example/a", None, SHA512),
        ("reg:5000/a", "reg:5000/a", None, None),
        ("localhost:5000", "localhost", "5000", None),
        ("localhost/a:1", "localhost/a", "1", None),
        ("[2001:db8::1]:5000/a:1", "[2001:db8::1]:5000/a", "1", None),
        ("REG.example/a", "REG.example/a", None, None),
        ("a__b/c--d/e.f_g:_x", "a__b/c--d/e.f_g", "_x", None),
        ("a:" + "x" * 128, "a", "x" * 128, None),
        ("10.0.0.1:443/x", "10.0.0.1:443/x", None, None),
    ],
)
def test_references_are_taken_apart(text: str, name: str, tag: str | None, digest: str | None) -> None:
    assert Reference(name, tag, digest) == Reference.parse(text)


@pytest.mark.parametrize(
    ("text", "position", "words"),
    [
        ("", 0, "empty"),
        (" redis", 0, "white space"),
        ("redis:1\n", 7, "white space"),
        ("https://ghcr.io/a/b", 0, "scheme"),
        ("docker://redis", 0, "scheme"),
        ("redis:", 6, "the tag is empty"),
        (f"redis:@{SHA256}", 6, "the tag is empty"),
        ("redis:-1", 6, "does not begin with `-`"),
        ("redis:1+2", 7, "does not hold `+`"),
        ("redis:1:2", 7, "does not hold `:`"),
        ("redis:" + "x" * 129, 134, "129 characters"),
        ("Redis", 0, "upper-case"),
        ("ghcr.io/a/bC:1", 11, "upper-case"),
        ("Foo/bar", 0, "upper-case"),
        ("/redis", 0, "begin with `/`"),
        ("a//b", 2, "between two slashes"),
        ("ghcr.io/a/", 9, "end with `/`"),
        ("a/b/:1", 3, "end with `/`"),
        (":1", 0, "name before tag and digest is empty"),
        (f"@{SHA256}", 0, "name before tag and digest is empty"),
        ("a.-b", 1, "joins its words"),
        ("x/a___b", 3, "joins its words"),
        ("x/-a", 2, "begin with `-`"),
        ("x/a_", 3, "end with `_`"),
        ("x/aé", 3, "does not hold `é`"),
        ("x/a*", 3, "does not hold `*`"),
        ("x/a`", 3, "U+0060"),
        ("my_reg.example/a", 0, "no host name"),
        ("reg:port/a", 0, "no host name"),
        ("${REGISTRY}/a:1", 0, "variable"),
        ("redis:${TAG}", 6, "variable"),
        ("redis@sha256", 6, "begin with its algorithm"),
        ("redis@" + "a" * 64, 6, "begin with its algorithm"),
        ("redis@md5:aa", 6, "algorithm is none of"),
        ("redis@sha256:", 13, "0 hex digits"),
        ("redis@sha256:" + "a" * 65, 77, "65 hex digits"),
        ("redis@" + SHA256.upper().replace("SHA", "sha"), 23, "among its hex digits"),
        ("redis@sha256:xy", 13, "`x`"),
        (f"redis@{SHA256}@{SHA256}", 77, "`@`"),
        ("a" * 256, 255, "256 characters"),
        ("a" * 2_000_000, 255, "2000000 characters"),
    ],
)
def test_what_is_no_reference_is_refused_with_its_place(text: str, position: int, words: str) -> None:
    with pytest.raises(ImageError) as caught:
        Reference.parse(text)
    assert words in str(caught.value)
    assert position == caught.value.position


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("https://ghcr.io/a", "delete `https://`"),
        ("Redis", "write `redis`"),
        ("redis:", "delete the `:` or write a tag after it"),
        ("ghcr.io/a/", "delete the slash"),
        ("redis@" + "a" * 64, "write `sha256:" + "a" * 64 + "`"),
    ],
)
def test_common_slips_come_with_the_change_that_mends_them(text: str, hint: str) -> None:
    with pytest.raises(ImageError) as caught:
        Reference.parse(text)
    assert hint == caught.value.hint


@pytest.mark.parametrize(
    ("name", "registry", "path", "canonical"),
    [
        ("nginx", None, "nginx", "docker.io/library/nginx"),
        ("library/nginx", None, "library/nginx", "docker.io/library/nginx"),
        ("docker.io/nginx", "docker.io", "nginx", "docker.io/library/nginx"),
        ("docker.io/library/nginx", "docker.io", "library/nginx", "docker.io/library/nginx"),
        ("index.docker.io/a/b", "index.docker.io", "a/b", "docker.io/a/b"),
        ("localhost/nginx", "localhost", "nginx", "localhost/nginx"),
        ("reg:5000/a", "reg:5000", "a", "reg:5000/a"),
        ("ghcr.io/a/b", "ghcr.io", "a/b", "ghcr.io/a/b"),
        ("GHCR.io/a/b", "GHCR.io", "a/b", "ghcr.io/a/b"),
        ("team/app", None, "team/app", "docker.io/team/app"),
        ("app.io", None, "app.io", "docker.io/library/app.io"),
    ],
)
def test_the_registry_is_told_from_the_path(name: str, registry: str | None, path: str, canonical: str) -> None:
    reference = Reference.parse(f"{name}:1")
    assert registry == reference.registry
    assert path == reference.repository_path
    assert canonical == reference.canonical
    assert canonical == canonical_name(canonical)


def test_the_registry_shape_names_docker_hub_for_a_bare_reference() -> None:
    assert Reference.parse("redis:7").registry_parts == ("docker.io", "redis")
    assert Reference.parse("bitnami/redis").registry_parts == ("docker.io", "bitnami/redis")
    assert Reference.parse("reg:5000/a/b:1").registry_parts == ("reg:5000", "a/b")


def test_the_tag_key_of_values_holds_the_digest() -> None:
    assert Reference.parse(f"a:1.2.3@{SHA256}").tag_text == f"1.2.3@{SHA256}"
    assert Reference.parse("a:1.2.3").tag_text == "1.2.3"
    assert Reference.parse("a").tag_text is None
    assert Reference.parse(f"a@{SHA256}").tag_text is None


def test_a_tag_that_holds_a_digest_is_split() -> None:
    assert split_tag(f"1.2.3@{SHA256}") == ("1.2.3", SHA256)
    assert split_tag("1.2.3") == ("1.2.3", None)


@pytest.mark.parametrize(
    ("text", "position"), [("", 0), ("1@", 2), (f"@{SHA256}", 0), ("1.2+x", 3), ("12@sha256:g", 10)]
)
def test_a_tag_value_that_is_none_is_refused_with_its_place(text: str, position: int) -> None:
    with pytest.raises(ImageError) as caught:
        split_tag(text)
    assert position == caught.value.position


def test_the_parts_of_values_are_joined() -> None:
    assert Reference("ghcr.io/a/b", "1", SHA256) == Reference.join("a/b", f"1@{SHA256}", registry="ghcr.io")
    assert Reference("a", "1", SHA256) == Reference.join("a", "1", SHA256)
    assert Reference("a") == Reference.join("a", "", "", "")
    with pytest.raises(ImageError):
        Reference.join("a", f"1@{SHA256}", SHA256)


HOSTS = st.sampled_from(["", "localhost/", "reg:5000/", "GHCR.io/", "a-b.example:443/", "[::1]/"])
COMPONENTS = st.from_regex(r"[a-z0-9]{1,4}((\.|_|__|-{1,3})[a-z0-9]{1,3}){0,2}", fullmatch=True)
TAGS = st.one_of(st.none(), st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,20}", fullmatch=True))
DIGESTS = st.sampled_from([None, SHA256, SHA512])


@given(HOSTS, st.lists(COMPONENTS, min_size=1, max_size=4), TAGS, DIGESTS)
def test_a_reference_built_from_parts_is_taken_apart_into_them(
    host: str, path: list[str], tag: str | None, digest: str | None
) -> None:
    if not host and len(path) > 1 and ("." in path[0]):
        path = ["a", *path]
    reference = Reference(host + "/".join(path), tag, digest)
    assert reference == Reference.parse(str(reference))
    if reference.tag_text is not None:
        assert split_tag(reference.tag_text) == (tag, digest)
    registry, rest = reference.registry_parts
    joined = Reference.join(rest, tag, digest, registry)
    assert reference.canonical == joined.canonical


ALPHABET = st.sampled_from([*"aZ09._-/:@[]`+ \n\x00é", "sha256:", "//", "://", "${", SHA256, "localhost", "docker.io/"])


def refusal(check: Callable[[str], object], text: str) -> ImageError | None:
    try:
        check(text)
    except ImageError as error:
        return error
    return None


@given(st.one_of(st.text(), st.lists(ALPHABET, max_size=9).map("".join)))
@example("a" * 255 + ":" + "b" * 128 + "@" + SHA512)
def test_any_text_is_either_given_back_or_refused_with_a_place_in_it(text: str) -> None:
    error = refusal(Reference.parse, text)
    if error is None:
        assert text == str(Reference.parse(text))
        return
    assert 0 <= error.position <= len(text)
    assert (str(error) + error.hint).isprintable()
    assert not str(error).endswith(".")


@given(st.one_of(st.text(max_size=140), st.from_regex(r"[a-z0-9_.-]{1,130}", fullmatch=True)))
def test_checks_of_tag_and_digest_agree_with_the_reference(text: str) -> None:
    for check, whole in ((check_tag, f"r.io/a:{text}"), (check_digest, f"r.io/a@{text}")):
        error, other = refusal(check, text), refusal(Reference.parse, whole)
        assert (error is None) == (other is None)
        assert error is None or 0 <= error.position <= len(text)
