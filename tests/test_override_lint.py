from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from render.flux.image import Reference
from render.flux.override_lint import lint
from render.flux.overrides import Entry, Table

HEX = "0123456789abcdef" * 4
SHA256 = f"sha256:{HEX}"


class Written:
    """A value that is no string, with the text it has in the file."""

    def __init__(self, source: str) -> None:
        self.source = source


GOOD = {"name": "ghcr.io/a/b", "newName": "reg:5000/a/b"}


@pytest.mark.parametrize(
    "raw",
    [
        GOOD,
        {"name": "nginx", "newTag": "1.27"},
        {"name": "reg.example:5000/nginx", "digest": SHA256},
        {"name": "nginx", "newName": "nginx", "newTag": "1"},
        {"name": "nginx", "newName": "m/nginx", "newTag": "1", "digest": SHA256},
    ],
)
def test_sound_entries_have_no_findings(raw: dict[str, str]) -> None:
    assert lint([raw]) == []


@pytest.mark.parametrize(
    ("raw", "field", "message", "hint"),
    [
        ({"name": "a", "newTag": Written("1.10")}, "newTag", "not the number `1.10`", 'quote it: `newTag: "1.10"`'),
        ({"name": "a", "newTag": 8}, "newTag", "must be a string, not the number `8`", 'quote it: `newTag: "8"`'),
        ({"name": Written("yes"), "newTag": "1"}, "name", "not the value `yes`", 'quote it: `name: "yes"`'),
        ({"name": "a", "newTag": None}, "newTag", "not null", "write a string or delete `newTag`"),
        ({"name": "a", "digest": ["x"]}, "digest", "not a list", "write a string or delete `digest`"),
        ({**GOOD, "newTga": "1"}, "newTga", "unknown field `newTga`", "rename it to `newTag`"),
        ({**GOOD, "new_tag": "1"}, "new_tag", "unknown field `new_tag`", "rename it to `newTag`"),
        ({**GOOD, "tag": "1"}, "tag", "unknown field `tag`", "rename it to `newTag`"),
        ({**GOOD, "tagSuffix": "x"}, "tagSuffix", "unknown field `tagSuffix`", "delete it"),
        ({"newName": "a"}, "", "`name` is missing", "add the name of the image to override"),
        ({"nmae": "a", "newName": "b"}, "nmae", "unknown field `nmae`", "rename it to `name`"),
        ({"name": "a", "tag": "b"}, "tag", "unknown field `tag`", "rename it to `newTag`"),
        ({"name": "a"}, "", "must change something", "add `newName`, `newTag` or `digest`"),
        ({"name": "a", "newName": "a"}, "newName", "must differ from `name`", "delete the entry"),
        ({"name": "a", "newTag": ""}, "newTag", "must not be empty", "delete `newTag`"),
        (
            {"name": "", "newTag": "1"},
            "name",
            "must not be empty",
            "write the image's name as it stands in the manifests",
        ),
        ({"name": "a:1", "newTag": "2"}, "name", "must not hold a tag: `a:1`", "write `name: a`"),
        ({"name": f"a@{SHA256}", "newTag": "2"}, "name", "must not hold a digest", "write `name: a`"),
        ({"name": "r.io/a.*", "newTag": "2"}, "name", "not `r.io/a.*`", "write one entry for each name"),
        ({"name": "[", "newTag": "2"}, "name", "not `[`", "write one entry for each name"),
        ({"name": r"gcr\.io/a", "newTag": "2"}, "name", r"not `gcr\.io/a`", "write `name: gcr.io/a`"),
        ({"name": "gcr[.]io/a", "newTag": "2"}, "name", "not `gcr[.]io/a`", "write `name: gcr.io/a`"),
        ({"name": "https://r.io/a", "newTag": "2"}, "name", "not `https://r.io/a`", "delete `https://`"),
        ({"name": "r.io/a/", "newTag": "2"}, "name", "not `r.io/a/`", "delete the slash"),
        ({"name": "a", "newName": "oci://m/a"}, "newName", "not `oci://m/a`", "write `newName: m/a`"),
        ({"name": "a", "newName": "m/a/"}, "newName", "not `m/a/`", "write `newName: m/a`"),
        ({"name": "a", "newName": "m/a:1"}, "newName", "hold a tag", 'write `newName: m/a`, `newTag: "1"`'),
        (
            {"name": "a", "newName": f"m@{SHA256}"},
            "newName",
            "hold a digest",
            f"write `newName: m`, `digest: {SHA256}`",
        ),
        ({"name": "a", "newName": "${R}/a"}, "newName", "not `${R}/a`", "write the value itself"),
        ({"name": "a", "newTag": ":1"}, "newTag", "not `:1`", "delete the `:`"),
        ({"name": "a", "newTag": f"1@{SHA256}"}, "newTag", "not `1@", f'write `newTag: "1"` and `digest: {SHA256}`'),
        ({"name": "a", "newTag": "1 2"}, "newTag", "not `1 2`", ""),
        ({"name": "a", "digest": HEX}, "digest", f"not `{HEX}`", f"write `sha256:{HEX}`"),
        ({"name": "a", "digest": f"@{SHA256}"}, "digest", "not `@sha256:", "delete the `@`"),
        ({"name": "a", "digest": "sha256:feed"}, "digest", "not `sha256:feed`", ""),
        ("a", "", "an entry must be a map, not the string `a`", "write `name: …` and `newName: …`"),
        (None, "", "an entry must be a map, not null", "write `name: …` and `newName: …`"),
    ],
)
def test_each_fault_of_an_entry_is_one_finding(raw: object, field: str, message: str, hint: str) -> None:
    findings = lint([{"name": "first", "newTag": "1"}, raw])
    assert [(1, field, "error", hint)] == [(f.index, f.field, f.severity, f.hint) for f in findings]
    assert message in findings[0].message


def test_a_second_entry_for_a_name_points_to_the_first() -> None:
    findings = lint([GOOD, {"name": "x", "newTag": "1"}, GOOD, GOOD])
    assert [(f.index, f.field, f.related) for f in findings] == [(2, "name", 0), (3, "name", 0)]


def test_names_that_make_kustomize_panic_say_so() -> None:
    assert "panics" in lint([{"name": "a(", "newTag": "1"}])[0].cause
    assert lint([{"name": "a(", "newTag": "1"}])[0].cause.endswith("missing closing )")
    assert "panics" not in lint([{"name": "a*", "newTag": "1"}])[0].cause


def test_a_digest_that_kustomize_does_not_match_is_a_warning() -> None:
    assert [f.severity for f in lint([{"name": "a", "digest": "sha512:" + HEX * 2}])] == ["warning"]


def test_a_table_that_is_no_list_is_one_finding() -> None:
    assert [(f.index, f.message) for f in lint({"name": "a"})] == [(-1, "the entries must be a list, not a map")]
    assert [f.message for f in lint(None)] == ["the entries must be a list, not null"]
    assert lint([]) == []


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(),
    st.text("ab./:@*[(\\ \n$~", max_size=8),
    st.builds(Written, st.text(max_size=6)),
)
FIELDS = st.one_of(st.sampled_from(["name", "newName", "newTag", "digest", "tag"]), st.text(max_size=8), st.integers())
RAW = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(FIELDS, inner, max_size=5))


@given(st.one_of(RAW, st.lists(st.dictionaries(FIELDS, SCALARS, max_size=5), max_size=4)))
def test_any_value_can_be_linted(raw: object) -> None:
    for finding in lint(raw):
        assert finding.message
        assert (finding.message + finding.cause + finding.hint).isprintable()
        assert not finding.message.endswith(".")


SOUND = st.fixed_dictionaries(
    {"name": st.sampled_from(["a", "b", "a.b/c", "r.io/a", "r:1/a", "a:1", "a.*"])},
    optional={
        "newName": st.sampled_from(["a", "b", "aXb/c", "a.b/c", "r:1/a", "m.lan/x/y", "m/x:1"]),
        "newTag": st.sampled_from(["1", "v2.0", "x y"]),
        "digest": st.sampled_from([SHA256, "sha256:f"]),
    },
)
DECLARED = st.builds(
    Reference,
    st.sampled_from(["a", "b", "a.b/c", "r.io/a", "r:1/a", "q"]),
    st.sampled_from([None, "1", "1.2"]),
    st.sampled_from([None, SHA256]),
)


@given(st.lists(SOUND, max_size=5).filter(lambda raw: not lint(raw)), DECLARED, st.booleans())
def test_a_table_without_findings_turns_references_into_references(
    raw: list[dict[str, str]], image: Reference, double: bool
) -> None:
    text = Table(map(Entry.of, raw)).apply(str(image), double=double).text
    assert text == str(Reference.parse(text))
