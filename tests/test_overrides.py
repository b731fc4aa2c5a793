from __future__ import annotations

import time
from typing import Any

import pytest
import re2
from hypothesis import given
from hypothesis import strategies as st

from render.flux.image import Reference
from render.flux.overrides import (
    Again,
    Chain,
    Entry,
    Hit,
    OverrideFailure,
    Site,
    Step,
    Table,
    accidental_matches,
    apply,
    chains,
    lint,
    rewrites_again,
    sites,
    spelling_variants,
    split,
    transform,
)

HEX = "0123456789abcdef" * 4
SHA256 = f"sha256:{HEX}"


def entry(name: str, **fields: str) -> Entry:
    return Entry.of({"name": name, **fields})


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a", ("a", "", "")),
        ("reg:5000/a:1", ("reg:5000/a", "1", "")),
        ("localhost:5000", ("localhost", "5000", "")),
        ("/x:1", ("/x", "1", "")),
        ("a:1/b:2", ("a:1/b", "2", "")),
        ("a:b:c", ("a", "b:c", "")),
        ("a@b:c", ("a", "", "b:c")),
        (f"a:1@{SHA256}", ("a", "1", SHA256)),
        ("a:@", ("a", "", "")),
        ("", ("", "", "")),
    ],
)
def test_references_are_split_by_position(text: str, parts: tuple[str, str, str]) -> None:
    assert parts == split(text)


@pytest.mark.parametrize(
    ("fields", "bare", "tagged", "full"),
    [
        ({}, "a", "a:1", "a:1@sha256:x"),
        ({"newTag": "9"}, "a:9", "a:9", "a:9"),
        ({"digest": "sha256:y"}, "a@sha256:y", "a@sha256:y", "a@sha256:y"),
        ({"newTag": "9", "digest": "sha256:y"}, "a:9@sha256:y", "a:9@sha256:y", "a:9@sha256:y"),
        ({"newName": "m"}, "m", "m:1", "m:1@sha256:x"),
        ({"newName": "m", "newTag": "9"}, "m:9", "m:9", "m:9"),
        ({"newName": "", "newTag": "", "digest": ""}, "a", "a:1", "a:1@sha256:x"),
        ({"newName": "$1"}, "$1", "$1:1", "$1:1@sha256:x"),
    ],
)
def test_fields_of_an_entry_rewrite_their_parts(fields: dict[str, str], bare: str, tagged: str, full: str) -> None:
    table = [entry("a", **fields)]
    assert bare == apply(table, "a").text
    assert tagged == apply(table, "a:1").text
    assert full == apply(table, "a:1@sha256:x").text


@pytest.mark.parametrize(
    ("name", "text", "matched"),
    [
        ("nginx", "nginx", True),
        ("nginx", "nginx:", True),
        ("nginx", "nginx:{V}", True),
        ("nginx", "library/nginx", False),
        ("nginx", "docker.io/library/nginx:1", False),
        ("nginx", "Nginx", False),
        ("nginx", "nginx2", False),
        ("nginx", "nginx:1+b", False),
        ("nginx", "nginx:$(V)", False),
        ("nginx", "nginx\n", False),
        ("nginx", " nginx", False),
        ("nginx", "nginx@sha512:ff", False),
        ("nginx", "nginx:1@SHA256:ff", False),
        ("gcr.io/a", "gcrXio/a:1", True),
        ("gcr.io/a", "gcréio/a:1", True),
        ("gcr.io/a", "gcr\nio/a:1", False),
        ("gcr.io/a", "gcrXXio/a:1", False),
        ("nginx:1", "nginx:1", True),
        ("nginx:1", "nginx:1:2", True),
        ("nginx:1", "nginx:2", False),
        ("nginx@sha256:a", "nginx@sha256:a", True),
        ("", "", True),
        ("", ":1", True),
        ("", "a", False),
        ("*", "anything:1+b@sha512:x", True),
        ("*", "", True),
        (".*", "a/b", True),
        ("a|nginx", "a-thing", True),
        ("a|nginx", "x/nginx:1", True),
        ("a|nginx", "nginx2", False),
        (r"gcr\.io/a", "gcrXio/a", False),
        ("gcr[.]io/a", "gcr.io/a:1", True),
        ("a{,2}", "a{,2}:1", True),
        (r"\Qa.b\E", "a.b", True),
        (r"\Q\C\E", r"\C", True),
        ("n[[:alpha:]]+x", "nginx:1", True),
        ("(?i)nginx", "NGINX", True),
        ("é", "é:1", True),
    ],
)
def test_a_name_matches_as_an_unescaped_expression_between_anchors(name: str, text: str, matched: bool) -> None:
    assert matched == bool(apply([entry(name, newTag="t")], text).trace)


@pytest.mark.parametrize(
    "name", ["[", "(nginx", "a)", "a**", "a++", "a{1001}", "(?=a)", r"\1", r"\C", r"a\\\C", "(?x)a"]
)
def test_a_name_that_is_no_expression_fails_every_reference(name: str) -> None:
    with pytest.raises(OverrideFailure, match="is no regular expression: ") as caught:
        apply([entry("a", newTag="1"), entry(name, newTag="t")], "other")
    assert caught.value.entry == 1


def test_an_escaped_backslash_before_a_capital_c_is_an_expression() -> None:
    assert apply([entry(r"a\\C", newTag="t")], r"a\C").text == r"a\C:t"


def test_the_unreleased_rules_match_any_digest_and_tolerate_bad_names() -> None:
    table = [entry("[", newTag="x"), entry("a", newName="m")]
    assert apply(table, "a:1@sha512:ff", unreleased=True).text == "m:1@sha512:ff"
    assert apply(table, "a@b1:{x}", unreleased=True).text == "m@b1:{x}"
    assert apply(table, "a@1b:x", unreleased=True).text == "a@1b:x"
    assert apply([entry("(a)", newName="m")], "a@md5:x", unreleased=True).text == "m@md5:x"
    assert apply([entry("(a)", newName="m")], "a@md5:x").text == "a@md5:x"


def test_entries_run_in_order_on_what_the_one_before_left() -> None:
    there, onward = entry("a", newName="b"), entry("b", newName="c", newTag="2")
    assert apply([there, onward], "a:1") == ("c:2", (Step(0, "a:1", "b:1"), Step(1, "b:1", "c:2")))
    assert apply([onward, there], "a:1") == ("b:1", (Step(1, "a:1", "b:1"),))
    swap = [entry("a", newName="b"), entry("b", newName="a")]
    assert [apply(swap, text).text for text in ("a", "b")] == ["a", "a"]
    assert apply([entry("a", newTag="1"), entry("a", newTag="2")], "a").text == "a:2"
    assert apply([entry("a", newTag="1+x"), entry("a", newTag="2")], "a").text == "a:1+x"


def test_a_doubled_site_runs_each_entry_twice() -> None:
    table = [entry("a", newName="a:7")]
    assert apply(table, "a").text == "a:7"
    assert apply(table, "a", double=True) == ("a:7:7", (Step(0, "a", "a:7:7"),))
    assert apply([entry("a", newName="b"), entry("b", newName="a")], "a", double=True).text == "a"


def test_an_entry_that_changes_nothing_is_in_the_trace() -> None:
    assert apply([entry("a", newName="a")], "a:1") == ("a:1", (Step(0, "a:1", "a:1"),))
    assert apply([entry("a", newName="b")], "x:1") == ("x:1", ())


def test_a_thousand_entries_on_two_thousand_images_take_no_two_million_matches() -> None:
    table = Table(entry(f"r{i % 30}.example/t{i % 7}/app-{i}", newName=f"mirror.lan/app-{i}") for i in range(1000))
    images = [f"r{i % 30}.example/t{i % 7}/app-{i}:1.{i}@{SHA256}" for i in range(2000)]
    start = time.perf_counter()
    outcomes = [table.apply(image) for image in images]
    assert time.perf_counter() - start < 1.0
    assert sum(bool(outcome.trace) for outcome in outcomes) == 1000
    assert outcomes[999].text == f"mirror.lan/app-999:1.999@{SHA256}"


def plainly(entries: list[Entry], text: str, *, double: bool) -> str:
    """The rule written down straight: RE2 for every name, entry after entry."""
    for one in entries:
        pattern = re2.compile(f"^{one.name}(:[a-zA-Z0-9_.{{}}-]*)?(@sha256:[a-zA-Z0-9_.{{}}-]*)?$")
        for _ in range(1 + double):
            if not pattern.search(text):
                continue
            slash = text.find("/")
            head, tail = (text[:slash], text[slash:]) if slash > 0 else ("", text)
            at, colon = tail.find("@"), tail.find(":")
            tag = digest = ""
            name = tail
            if at >= 0 and (colon == -1 or at < colon):
                name, digest = tail[:at], tail[at + 1 :]
            elif at >= 0:
                name, tag, digest = tail[:colon], tail[colon + 1 : at], tail[at + 1 :]
            elif colon >= 0:
                name, tag = tail[:colon], tail[colon + 1 :]
            name = one.new_name or head + name
            if one.new_tag and one.digest:
                tag, digest = one.new_tag, one.digest
            elif one.new_tag:
                tag, digest = one.new_tag, ""
            elif one.digest:
                tag, digest = "", one.digest
            text = name + (":" + tag if tag else "") + ("@" + digest if digest else "")
    return text


NAMES = st.one_of(
    st.sampled_from(
        ["a", "b", "a.b", "a.b/c", "r.io/a", "r:1/a", "a:1", "..", "", "a/.", "*", "a|b", "[ab]", ".*", "b+"]
    ),
    st.text("ab./:@-", max_size=5),
)
TAILS = st.sampled_from(
    ["", ":", ":1", ":1.2", ":1:2", ":+", "@sha256:", "@sha256:f", ":1@sha256:f", "@sha512:f", "\n"]
)
VALUES = st.sampled_from(["", "a", "b", "a.b", "aXb", "b:7", "r.io/a", "b@sha256:q", "x/y"])
ENTRIES = st.lists(st.builds(Entry, NAMES, VALUES, VALUES, st.sampled_from(["", "sha256:f", "sha512:f"])), max_size=6)
IMAGES = st.builds(lambda name, tail, wild: name.replace(".", wild) + tail, NAMES, TAILS, st.sampled_from(".X/\né"))


@given(ENTRIES, IMAGES, st.booleans())
def test_the_index_gives_what_one_entry_after_another_gives(entries: list[Entry], image: str, double: bool) -> None:
    outcome = Table(entries).apply(image, double=double)
    assert plainly(entries, image, double=double) == outcome.text
    assert [*sorted({step.entry for step in outcome.trace})] == [step.entry for step in outcome.trace]
    for before, after in zip(outcome.trace, outcome.trace[1:], strict=False):
        assert before.after == after.before


def pod(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}


def deep(value: Any) -> dict[str, Any]:
    return {"apiVersion": "x.io/v1", "kind": "X", "metadata": {"name": "x"}, "deep": value}


def test_pod_fields_are_visited_twice_and_image_volumes_once() -> None:
    obj = pod(
        containers=[{"image": "a"}, {"name": "none"}, None],
        initContainers=[{"image": "b"}],
        ephemeralContainers=[{"image": "c"}],
        volumes=[{"image": {"reference": "d"}}, {"name": "v"}],
        image="e",
    )
    assert sites(obj) == [
        Site(("spec", "containers", 0, "image"), doubled=True),
        Site(("spec", "initContainers", 0, "image"), doubled=True),
        Site(("spec", "volumes", 0, "image", "reference"), doubled=False),
    ]


def test_container_lists_are_found_at_any_depth_in_any_kind() -> None:
    inner = {"containers": [{"image": "a", "x": {"initContainers": [{"image": "b"}]}}], "volumes": ["a"]}
    path = ("deep", 0, "containers", 0)
    expected = [
        Site((*path, "x", "initContainers", 0, "image"), doubled=False),
        Site((*path, "image"), doubled=False),
    ]
    assert expected == sites(deep([inner]))


def test_lists_and_maps_stand_for_each_other_in_field_paths() -> None:
    assert sites(pod(containers={"image": "a"})) == [Site(("spec", "containers", "image"), doubled=False)]
    assert sites(deep({"containers": {"image": "a"}})) == []
    volumes = {"template": [{"spec": {"volumes": {"image": {"reference": "a"}}}}]}
    path = ("spec", "template", 0, "spec", "volumes", "image", "reference")
    assert sites(pod(**volumes)) == [Site(path, doubled=False)]


def test_definitions_of_resources_are_skipped_and_lists_entered() -> None:
    crd = {**pod(containers="x"), "kind": "CustomResourceDefinition"}
    assert sites(crd) == []
    item = ("items", 1, "spec", "containers", 0, "image")
    many = {"apiVersion": "v1", "kind": "List", "items": [crd, pod(containers=[{"image": "a"}])]}
    assert sites(many) == [Site(item, doubled=True)]


@pytest.mark.parametrize(
    ("obj", "path"),
    [
        (pod(template="text"), ("spec", "template")),
        (pod(template=["text"]), ("spec", "template", 0)),
        (pod(containers="text"), ("spec", "containers")),
        (pod(containers=["text"]), ("spec", "containers", 0)),
        (pod(volumes=["text"]), ("spec", "volumes", 0)),
        (pod(volumes=[{"image": "text"}]), ("spec", "volumes", 0, "image")),
        (pod(volumes=[{"image": {"reference": {}}}]), ("spec", "volumes", 0, "image", "reference")),
        (deep({"containers": [[]]}), ("deep", "containers", 0)),
        (deep({"initContainers": ["a"]}), ("deep", "initContainers", 0)),
        (deep({"containers": [{"image": {"tag": "1"}}]}), ("deep", "containers", 0, "image")),
        ({**pod(), "spec": 3}, ("spec",)),
    ],
)
def test_shapes_that_kustomize_cannot_walk_fail_the_release(obj: dict[str, Any], path: tuple[str | int, ...]) -> None:
    with pytest.raises(OverrideFailure) as caught:
        sites(obj)
    assert path == caught.value.path
    with pytest.raises(OverrideFailure) as caught:
        transform([pod(), {"kind": "List", "items": [{**obj, "metadata": {"name": "other"}}]}], [entry("z")])
    assert caught.value.document == 1
    assert ("items", 0, *path) == caught.value.path
    assert transform([obj], []).documents == [obj]


@pytest.mark.parametrize(
    "obj",
    [
        deep({"containers": "text", "volumes": ["a"], "template": "text"}),
        deep({"containers": None}),
        pod(containers=[None], template=None, volumes=[None, {"image": None}]),
        {**pod(), "spec": None},
        deep({"sidecars": ["a"], "container": "a"}),
    ],
)
def test_shapes_that_kustomize_passes_over_stay(obj: dict[str, Any]) -> None:
    assert sites(obj) == []
    assert transform([obj], [entry("z")]).documents == [obj]


def test_null_lists_of_pod_fields_become_empty_lists() -> None:
    before = pod(containers=None, template={"spec": {"volumes": None, "other": None}}, x={"containers": None})
    after = pod(containers=[], template={"spec": {"volumes": [], "other": None}}, x={"containers": None})
    assert transform([before], [entry("z")]).documents == [after]
    assert transform([before], []).documents == [before]


def test_a_table_is_run_on_copies_of_the_objects() -> None:
    obj = pod(containers=[{"image": "a:1"}, {"image": "x:1"}])
    documents, changes = transform([None, obj, deep({"containers": [{"image": "a"}]})], [entry("a", newName="a:7")])
    assert documents[0] == pod(containers=[{"image": "a:7:1"}, {"image": "x:1"}])
    assert documents[1] == deep({"containers": [{"image": "a:7"}]})
    assert [(change.document, change.path, change.before, change.after, change.doubled) for change in changes] == [
        (0, ("spec", "containers", 0, "image"), "a:1", "a:7:1", True),
        (1, ("deep", "containers", 0, "image"), "a", "a:7", False),
    ]
    assert obj == pod(containers=[{"image": "a:1"}, {"image": "x:1"}])


def test_scalars_are_matched_by_their_text() -> None:
    obj = pod(containers=[{"image": value} for value in (123, True, None, 1.5)])
    table = [entry("123", newTag="t"), entry("true", newTag="t"), entry("null", newTag="t"), entry("1.5", newTag="t")]
    images = ["123:t", "true:t", "null:t", "1.5:t"]
    assert transform([obj], table).documents == [pod(containers=[{"image": text} for text in images])]


def test_the_callers_scalars_decide_what_a_rewrite_leaves() -> None:
    class Numbers:
        def is_null(self, value: object) -> bool:
            return value is None

        def text(self, value: object) -> str:
            return str(value)

        def rewrite(self, value: object, text: str) -> object:
            return int(text) if isinstance(value, int) else text

    obj = pod(containers=[{"image": 5}, {"image": "5"}])
    expected = pod(containers=[{"image": 7}, {"image": "7"}])
    assert transform([obj], [entry("5", newName="7")], Numbers()).documents == [expected]


def test_list_objects_are_expanded_and_local_config_dropped() -> None:
    local = pod()
    local["metadata"] = {"name": "l", "annotations": {"config.kubernetes.io/local-config": "true"}}
    kept = pod()
    kept["metadata"] = {"name": "k", "annotations": {"config.kubernetes.io/local-config": "false"}}
    inner = {"kind": "XList", "items": [pod(), None]}
    documents = [local, kept, {"kind": "List", "items": [inner, deep(1)]}, {"kind": "XList", "items": None}]
    assert transform(documents, []).documents == [kept, pod(), deep(1)]
    bare = {"kind": "AllowList", "metadata": {"name": "a"}}
    assert transform([bare], []).documents == [bare]


@pytest.mark.parametrize(
    ("documents", "document", "words"),
    [
        ([pod(), pod()], 1, "a second Pod `p`"),
        ([pod(), {**pod(), "metadata": {"name": "p", "namespace": "default"}}], 1, "a second Pod `p`"),
        ([{**pod(), "metadata": {"generateName": "p-"}}], 0, "without `metadata.name`"),
        ([{**pod(), "metadata": None}], 0, "without `metadata.name`"),
        ([{"metadata": {"name": "p"}}], 0, "without `kind`"),
        ([pod(), {"kind": "AllowList", "items": {"a": 1}}], 1, "no list"),
        ([{"kind": "AllowList", "items": ["a"]}], 0, "no Kubernetes object"),
        (["text"], 0, "no Kubernetes object"),
    ],
)
def test_what_kustomize_refuses_to_load_fails_with_any_table(documents: list[Any], document: int, words: str) -> None:
    with pytest.raises(OverrideFailure, match=words) as caught:
        transform(documents, [])
    assert document == caught.value.document


def test_same_names_in_other_namespaces_or_versions_are_loaded() -> None:
    other = {**pod(), "metadata": {"name": "p", "namespace": "x"}}
    newer = {**pod(), "apiVersion": "v2"}
    assert transform([pod(), other, newer], []).documents == [pod(), other, newer]


def test_a_bad_name_fails_only_where_an_image_is_looked_at() -> None:
    assert transform([deep({"containers": [{"name": "a"}]})], [entry("[")]).changes == []
    with pytest.raises(OverrideFailure, match="panics") as caught:
        transform([pod(containers=[{"image": "a"}])], [entry("[")])
    assert caught.value.path == ("spec", "containers", 0, "image")
    assert caught.value.entry == 0


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


def test_chains_are_renames_that_a_later_entry_takes_up() -> None:
    table = [
        entry("a", newName="b", newTag="1"),
        entry("x", newTag="2"),
        entry("b", newName="c"),
        entry("c", newName="d"),
    ]
    assert chains(table) == [Chain(0, 2, "b:1", "d:1"), Chain(2, 3, "c", "d")]
    assert chains([entry("b", newName="c"), entry("a", newName="b")]) == []
    assert chains([entry("a", newName="gcrXio/a"), entry("gcr.io/a", newName="m")]) == [Chain(0, 1, "gcrXio/a", "m")]


def references(*texts: str) -> list[Reference]:
    return [Reference.parse(text) for text in texts]


def test_an_entry_in_another_spelling_of_an_image_is_found() -> None:
    images = references("docker.io/library/nginx:1", "redis:7", "ghcr.io/a:1")
    table = [
        entry("nginx", newName="m/nginx"),
        entry("docker.io/redis", newName="m/redis"),
        entry("ghcr.io/a", newTag="2"),
    ]
    assert spelling_variants(table, images) == [Hit(0, images[0]), Hit(1, images[1])]
    assert spelling_variants([*table, entry("docker.io/library/nginx", newName="m")], images) == [Hit(1, images[1])]
    assert spelling_variants([], images) == []


def test_a_dot_that_matches_another_character_is_found() -> None:
    images = references("gcrxio/a:1", "gcr.io/a:1")
    assert accidental_matches([entry("gcr.io/a", newName="m")], images) == [Hit(0, images[0])]
    assert accidental_matches([entry("gcrxio/a", newName="m")], images) == []


def test_a_result_that_the_table_rewrites_again_is_found() -> None:
    image = Reference.parse("a:1")
    assert rewrites_again([entry("b", newName="c"), entry("a", newName="b")], image) == Again("b:1", "c:1", 1, 0)
    assert rewrites_again([entry("a", newName="b"), entry("b", newName="c")], image) is None
    assert rewrites_again([entry("a", newTag="2")], image) is None
    assert rewrites_again(Table([entry("x", newName="b")]), image) is None
