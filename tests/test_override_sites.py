from __future__ import annotations

from typing import Any

import pytest

from render.flux.override_sites import Image, Site, images, sites, transform
from render.flux.overrides import Entry, OverrideFailure

LOCAL = "config.kubernetes.io/local-config"


def entry(name: str, **fields: str) -> Entry:
    return Entry.of({"name": name, **fields})


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
    made = transform([None, obj, deep({"containers": [{"image": "a"}]})], [entry("a", newName="a:7")])
    documents, changes = made.documents, made.changes
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


def test_images_are_listed_where_they_stand_in_the_documents() -> None:
    inner = {"kind": "PodList", "items": [{**pod(containers=[{"image": "b"}]), "metadata": {"name": "inner"}}]}
    local = {**pod(containers=[{"image": "x"}]), "metadata": {"name": "l", "annotations": {LOCAL: "true"}}}
    documents = [
        local,
        {"kind": "List", "items": [inner, {"kind": "CustomResourceDefinition", "metadata": {"name": "c"}}]},
        {**pod(volumes=[{"image": {"reference": "c"}}], containers=[{"image": "a"}]), "metadata": {"name": "p"}},
    ]

    assert images(documents) == [
        Image(1, ("items", 0, "items", 0, "spec", "containers", 0, "image"), True, "b"),
        Image(2, ("spec", "containers", 0, "image"), True, "a"),
        Image(2, ("spec", "volumes", 0, "image", "reference"), False, "c"),
    ]
    changes = transform(documents, [entry(".*", newName="new")]).changes
    assert [(one.before, one.doubled) for one in changes] == [(one.value, one.doubled) for one in images(documents)]


def test_an_object_that_fails_the_release_fails_the_list_too() -> None:
    documents = [{"kind": "List", "items": [{"kind": "A", "metadata": {"name": "a"}, "spec": {"template": "text"}}]}]

    with pytest.raises(OverrideFailure) as failed:
        images(documents)
    assert (failed.value.document, failed.value.path[:4]) == (0, ("items", 0, "spec", "template"))
