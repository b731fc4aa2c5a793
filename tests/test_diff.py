from __future__ import annotations

import json
import random
import textwrap
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from render.diff import Diff, ObjectDiff, diff
from render.diff_markdown import LIMIT, TAG, render_failure, render_markdown
from render.diff_report import Titles, as_json, change_lines, counts, render_text
from render.plan import paths
from render.report import render_json
from tests.trees import GOLDENS, tree

TITLES = Titles("old", "new")
FILE = "apps/web/workload.yaml"
RELEASE = "apps/web/helmrelease.yaml"
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: demo
spec:
  replicas: 1
  template:
    spec:
      containers:
      - name: app
        image: "ghcr.io/o/web:1.0.0"
        ports:
        - containerPort: 80
        - containerPort: 80
          protocol: UDP
        env:
        - name: A
          value: "1"
        - name: B
          value: "2"
        volumeMounts:
        - mountPath: /data
          name: data
        args:
        - "--verbose"
        - "--level"
      - name: side
        image: "ghcr.io/o/side:1.0.0"
      volumes:
      - name: data
        emptyDir: {}
      - name: tmp
        emptyDir: {}
"""
HELMRELEASE = """\
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata:
  name: web
  namespace: demo
spec:
  interval: 1h
  chartRef:
    kind: OCIRepository
    name: web
  values:
    image:
      repository: ghcr.io/o/web
      tag: "1.0.0" # {"$imagepolicy": "flux-system:web:tag"}
    hosts:
    - name: a
    - name: b
"""
TABLE = """\
  postRenderers:
  # registries.imageOverrides
  - kustomize:
      images:
      - name: ghcr.io/o/web
        newName: mirror.example/web
"""
SOURCE = """\
apiVersion: source.toolkit.fluxcd.io/v1
kind: OCIRepository
metadata:
  name: web
  namespace: demo
spec:
  url: oci://charts.example/web
  ref:
    tag: "1.0.0"
"""


def differences(old: dict[str, str], new: dict[str, str]) -> Diff:
    made, *faults = diff(old, new)
    assert faults == [[], []]
    return made


def one(old: str, new: str, path: str = FILE) -> ObjectDiff:
    (found,) = differences({path: old}, {path: new}).objects
    return found


def told(found: ObjectDiff) -> list[str]:
    """The changes as `kind path`."""
    return [f"{change.kind} {paths.show(change.path)}" for change in found.changes]


def all_formats(made: Diff) -> str:
    text, page = render_text(made), render_markdown(made, TITLES)
    return text + page + render_json([], as_json(made, TITLES, []))


# What is no difference


@pytest.mark.parametrize("rendering", ["home", "airgap"])
def test_tree_does_not_differ_from_itself(rendering: str) -> None:
    files = dict(tree(rendering).files)

    assert differences(files, files).is_empty
    assert differences(files, {path: f"# other\n{text}" for path, text in files.items()}).is_empty


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a: 'x'", 'a: "x"'),
        ("a: x", "a: 'x'"),
        ("a: 0644", "a: 420"),
        ("a: true", "a: True"),
        ("a: null", "a: ~"),
        ("a: {b: 1, c: 2}", "a:\n  c: 2\n  b: 1\n"),
        ("a: [x, y]", "a:\n  - x\n  - y\n"),
        ("a: b", "# comment\na: b # another\n"),
        ("'a': 1", "a: 1"),
    ],
)
def test_spelling_is_no_difference(old: str, new: str) -> None:
    assert differences({FILE: old}, {FILE: new}).is_empty


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a: 1", 'a: "1"'),
        ("a: yes", 'a: "yes"'),
        ("a: yes", "a: true"),
        ("a: 1", "a: 1.0"),
        ("a: 2024-01-01", 'a: "2024-01-01"'),
        ("a: null", "a: ''"),
        ("a: {}", "a: []"),
        ("a: x", "a: [x]"),
        ("a: 0x1F", "a: '31'"),
    ],
)
def test_another_meaning_to_either_reader_is_a_difference(old: str, new: str) -> None:
    assert told(one(old, new)) == ["changed a"]


def test_order_of_sets_is_no_difference() -> None:
    items = [
        "      - name: data\n        emptyDir: {}\n",
        "      - name: tmp\n        emptyDir: {}\n",
    ]
    env = ['        - name: A\n          value: "1"\n', '        - name: B\n          value: "2"\n']
    ports = ["        - containerPort: 80\n", "        - containerPort: 80\n          protocol: UDP\n"]
    turned = DEPLOYMENT
    for first, second in (items, env, ports):
        assert first + second in turned
        turned = turned.replace(first + second, second + first)

    assert differences({FILE: DEPLOYMENT}, {FILE: turned}).is_empty


@given(st.randoms(use_true_random=False))
def test_no_order_of_sets_of_a_pod_is_a_difference(chance: random.Random) -> None:
    names = [f"n{index}" for index in range(5)]
    sets = {
        "containers": [{"name": name, "image": "a/b:1"} for name in names],
        "volumes": [{"name": name, "emptyDir": {}} for name in names],
        "imagePullSecrets": [{"name": name} for name in names],
        "ports": [{"containerPort": 80 + index} for index in range(5)],
        "env": [{"name": name, "value": name} for name in names],
        "volumeMounts": [{"name": "x", "mountPath": f"/{name}"} for name in names],
    }
    shuffled = {key: chance.sample(items, len(items)) for key, items in chance.sample([*sets.items()], len(sets))}

    assert differences({FILE: pod(sets)}, {FILE: pod(shuffled)}).is_empty


def pod(spec: Any) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": spec})


def test_order_counts_where_it_may_mean_something() -> None:
    init = ["      - name: one\n        image: a/b:1\n", "      - name: two\n        image: a/b:1\n"]
    old = DEPLOYMENT + "      initContainers:\n" + init[0] + init[1]
    new = DEPLOYMENT + "      initContainers:\n" + init[1] + init[0]

    found = one(old, new)

    assert told(found) == ["order spec.template.spec.initContainers"]
    assert "  (order)" in change_lines(found.changes[0])[0]


def test_order_counts_in_values_since_it_upgrades_the_release() -> None:
    new = HELMRELEASE.replace("    - name: a\n    - name: b\n", "    - name: b\n    - name: a\n")
    made = differences({RELEASE: HELMRELEASE}, {RELEASE: new})

    assert told(made.objects[0]) == ["order spec.values.hosts"]
    assert made.upgraded == ["demo/web"]


# What is one


@pytest.mark.parametrize(
    ("before", "after", "path"),
    [
        ("replicas: 1", "replicas: 2", "changed spec.replicas"),
        ('value: "2"', 'value: "3"', "changed spec.template.spec.containers[name=app].env[name=B].value"),
        (
            "protocol: UDP",
            "protocol: SCTP",
            (
                "removed spec.template.spec.containers[name=app].ports[containerPort=80,protocol=UDP]|"
                "added spec.template.spec.containers[name=app].ports[containerPort=80,protocol=SCTP]"
            ),
        ),
        (
            "name: data\n        args",
            "name: tmp\n        args",
            "changed spec.template.spec.containers[name=app].volumeMounts[mountPath=/data].name",
        ),
        ("--level", "--debug", "changed spec.template.spec.containers[name=app].args[1]"),
        ('        - "--verbose"\n', "", "removed spec.template.spec.containers[name=app].args[0]"),
        (
            '        - "--verbose"\n',
            '        - "--x"\n        - "--verbose"\n',
            "added spec.template.spec.containers[name=app].args[0]",
        ),
        ("      - name: tmp\n        emptyDir: {}\n", "", "removed spec.template.spec.volumes[name=tmp]"),
        ("  replicas: 1\n", "", "removed spec.replicas"),
        ("  replicas: 1\n", "  replicas: 1\n  paused: true\n", "added spec.paused"),
        ("apps/v1\n", "apps/v2\n", "changed apiVersion"),
    ],
)
def test_change_is_told_by_path(before: str, after: str, path: str) -> None:
    assert before in DEPLOYMENT

    assert path.split("|") == told(one(DEPLOYMENT, DEPLOYMENT.replace(before, after)))


def test_objects_are_paired_by_identity_whatever_file_they_stand_in() -> None:
    made = differences({FILE: DEPLOYMENT}, {"apps/other/a.yaml": f"{SOURCE}---\n{DEPLOYMENT}"})

    assert [f"{found.status} {found.id}" for found in made.objects] == ["added OCIRepository demo/web"]


def test_move_into_another_part_of_the_tree_is_told() -> None:
    made = differences({FILE: DEPLOYMENT}, {"configs/web/extra.yaml": DEPLOYMENT})

    assert ([found.status for found in made.objects], counts(made)) == (["moved"], "1 object moved")
    assert f"({FILE} → configs/web/extra.yaml)" in render_text(made)


def test_two_objects_of_one_identity_are_both_compared() -> None:
    made = differences({FILE: f"{SOURCE}---\n{SOURCE}"}, {FILE: f"{SOURCE}---\n{SOURCE.replace('1.0.0', '2.0.0')}"})

    assert told(made.objects[0]) == ["changed spec.ref.tag"]


def test_documents_that_are_no_objects_are_known_by_their_file() -> None:
    found = one("a: 1\nb: [x]\n", "a: 2\nb: [x]\n", "apps/web/values.yaml")

    assert (str(found.id), told(found)) == ("file apps/web/values.yaml", ["changed a"])


def test_marker_is_a_change_of_its_own() -> None:
    new = HELMRELEASE.replace(' # {"$imagepolicy": "flux-system:web:tag"}', "")
    made = differences({RELEASE: HELMRELEASE}, {RELEASE: new})

    (found,) = made.objects
    assert told(found) == ["marker spec.values.image.tag"]
    assert change_lines(found.changes[0]) == [" spec.values.image.tag  (setter marker)", "-flux-system:web:tag"]
    assert (found.images, made.upgraded) == ([], [])


def test_text_is_compared_by_line() -> None:
    text = "".join(f"line {index}\n" for index in range(40))
    old = "data:\n  f: |\n" + textwrap.indent(text, "    ")
    lines = change_lines(one(old, old.replace("line 20", "line x")).changes[0])

    assert "-line 20" in lines
    assert "+line x" in lines
    assert len(lines) < 10


LEAVES = st.one_of(
    st.integers(),
    st.booleans(),
    st.text(st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"]), max_size=8),
    st.none(),
)
KEYS = st.text(st.sampled_from("abcxyz.-/ "), min_size=1, max_size=5).filter(lambda key: key.strip() == key)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=20,
)


@given(VALUES)
def test_nothing_differs_from_itself(value: Any) -> None:
    assert differences({FILE: json.dumps({"k": value})}, {FILE: json.dumps({"k": value}, indent=1)}).is_empty


@given(st.dictionaries(KEYS, VALUES, min_size=1), st.data())
def test_exactly_what_was_changed_is_told(value: dict[str, Any], data: st.DataObject) -> None:
    places = leaves(value, ())
    chosen = data.draw(st.lists(st.sampled_from(places), unique=True)) if places else []
    changed = json.loads(json.dumps(value))
    for number, place in enumerate(chosen):
        target = changed
        for step in place[:-1]:
            target = target[step]
        target[place[-1]] = f"changed {number}"
    made = differences({FILE: json.dumps(value)}, {FILE: json.dumps(changed)})

    found = [change for one in made.objects for change in one.changes]
    assert {paths.show(place) for place in chosen} == {paths.show(change.path) for change in found}
    assert len(chosen) == len(found)


def leaves(value: Any, path: tuple[str | int, ...]) -> list[tuple[str | int, ...]]:
    if isinstance(value, dict):
        return [place for key, inner in value.items() for place in leaves(inner, (*path, key))]
    if isinstance(value, list):
        return [place for index, inner in enumerate(value) for place in leaves(inner, (*path, index))]
    return [path] if path else []


@given(VALUES, VALUES)
def test_every_format_takes_any_difference(old: Any, new: Any) -> None:
    made = differences({FILE: json.dumps({"k": old})}, {FILE: json.dumps({"k": new})})

    assert made.is_empty == (all_formats(made).count("No object differs") == 1)
    json.loads(render_json([], as_json(made, TITLES, [])))


# Releases


@pytest.mark.parametrize(
    ("before", "after", "is_upgrade"),
    [
        ("interval: 1h", "interval: 2h", False),
        ('tag: "1.0.0"', 'tag: "1.1.0"', True),
        ("  values:", "  commonMetadata:\n    labels: {a: b}\n  values:", True),
        ("  values:", "  valuesFrom:\n  - kind: ConfigMap\n    name: x\n  values:", True),
        ("  values:", "  timeout: 5m\n  values:", False),
        ("  name: web\n  namespace", "  name: web\n  labels: {a: b}\n  namespace", False),
    ],
)
def test_what_upgrades_a_release(before: str, after: str, is_upgrade: bool) -> None:
    made = differences({RELEASE: HELMRELEASE}, {RELEASE: HELMRELEASE.replace(before, after)})

    assert (["demo/web"] if is_upgrade else []) == made.upgraded


def test_another_chart_version_upgrades_its_users() -> None:
    source = "apps/web/source.yaml"
    old = {RELEASE: HELMRELEASE, source: SOURCE}

    assert differences(old, {**old, source: SOURCE.replace("1.0.0", "2.0.0")}).upgraded == ["demo/web"]
    assert differences(old, {**old, source: SOURCE.replace("spec:", "spec:\n  interval: 1h")}).upgraded == []


def test_another_namespace_is_a_reinstall() -> None:
    new = HELMRELEASE.replace("spec:", "spec:\n  targetNamespace: other")
    made = differences({RELEASE: HELMRELEASE}, {RELEASE: new})

    (reinstalled,) = made.reinstalled
    assert reinstalled[0] == "web"
    assert "targetNamespace" in reinstalled[1]
    assert made.upgraded == []
    assert "releases: 1 reinstalled" in counts(made)
    assert "`web` is uninstalled and installed again: " in render_text(made)


def test_releases_come_and_go() -> None:
    came = differences({FILE: DEPLOYMENT}, {FILE: DEPLOYMENT, RELEASE: HELMRELEASE})
    went = differences({FILE: DEPLOYMENT, RELEASE: HELMRELEASE}, {FILE: DEPLOYMENT})

    assert (came.installed, came.uninstalled) == (["demo/web"], [])
    assert (went.installed, went.uninstalled) == ([], ["demo/web"])


def test_table_is_told_once_and_its_upgrades_are_counted() -> None:
    names = ("a", "b", "c")
    old = {f"apps/{name}/helmrelease.yaml": HELMRELEASE.replace("name: web", f"name: {name}") for name in names}
    new = {path: text + TABLE for path, text in old.items()}
    made = differences(old, new)

    assert (made.by_table, made.upgraded) == (3, ["demo/a", "demo/b", "demo/c"])
    assert [found.changes for found in made.objects] == [[]] * 3
    assert render_text(made).count("newName: mirror.example/web") == 1
    assert "the override table changes, which alone upgrades 3 releases" in render_text(made)


def test_own_post_renderers_stay_apart_from_the_table() -> None:
    own = '  - kustomize:\n      images:\n      - name: ghcr.io/o/side\n        newTag: "{}"\n'
    table = TABLE.replace("  # registries", own.format("1") + "  # registries")
    found = one(HELMRELEASE + table, HELMRELEASE + table.replace('newTag: "1"', 'newTag: "2"'), RELEASE)

    assert told(found) == ["changed spec.postRenderers[0].kustomize.images[name=ghcr.io/o/side].newTag"]
    assert found.table == []
    assert [(image.old, image.new) for image in found.images] == [("ghcr.io/o/side:1", "ghcr.io/o/side:2")]


# Images


@pytest.mark.parametrize(
    ("old", "new", "images"),
    [
        (DEPLOYMENT, DEPLOYMENT.replace("web:1.0.0", "web:1.1.0"), [("ghcr.io/o/web:1.0.0", "ghcr.io/o/web:1.1.0")]),
        (HELMRELEASE, HELMRELEASE.replace('"1.0.0"', '"1.1.0"'), [("ghcr.io/o/web:1.0.0", "ghcr.io/o/web:1.1.0")]),
        (HELMRELEASE, HELMRELEASE + TABLE, [("ghcr.io/o/web:1.0.0", "mirror.example/web:1.0.0")]),
        (
            HELMRELEASE + TABLE,
            HELMRELEASE.replace('"1.0.0"', '"1.1.0"') + TABLE,
            [("mirror.example/web:1.0.0", "mirror.example/web:1.1.0")],
        ),
        (HELMRELEASE, HELMRELEASE.replace("interval: 1h", "interval: 2h"), []),
        (
            HELMRELEASE + '    version: x # {"$imagepolicy": "flux-system:a:tag"}\n',
            HELMRELEASE + '    version: y # {"$imagepolicy": "flux-system:a:tag"}\n',
            [(":x", ":y")],
        ),
        (
            HELMRELEASE + "    side: {registry: r.io, repository: a, tag: '1', digest: 'sha256:1'}\n",
            HELMRELEASE + "    side: {registry: r.io, repository: a, tag: '1', digest: 'sha256:2'}\n",
            [("r.io/a:1@sha256:1", "r.io/a:1@sha256:2")],
        ),
    ],
)
def test_images_have_a_table_of_their_own(old: str, new: str, images: list[tuple[str, str]]) -> None:
    path = FILE if old is DEPLOYMENT else RELEASE

    assert images == [(image.old, image.new) for image in one(old, new, path).images]


def test_an_image_that_many_objects_share_is_one_row() -> None:
    old = {f"apps/{name}/workload.yaml": DEPLOYMENT.replace("name: web", f"name: {name}") for name in "abcdef"}
    made = differences(old, {path: text.replace("web:1.0.0", "web:2.0.0") for path, text in old.items()})
    page = render_markdown(made, TITLES)

    assert page.count("| <code>ghcr.io/o/web:1.0.0</code> | <code>ghcr.io/o/web:2.0.0</code> |") == 1
    assert "and 3 more" in page
    assert "6 objects of kind Deployment: 1 change" in page


# Secrets

HIDING = [
    "kind: Secret\napiVersion: v1\nmetadata: {{name: s}}\ndata:\n  k: {0}\n",
    "kind: Secret\napiVersion: v1\nmetadata: {{name: s}}\nstringData:\n  k: |\n    line\n    {0}\n",
    "kind: Secret\napiVersion: v1\nmetadata: {{name: s}}\nstringData: {{deep: [{0}]}}\n",
    (
        "kind: Secret\napiVersion: v1\nmetadata:\n  name: s\n  annotations:\n"
        '    kubectl.kubernetes.io/last-applied-configuration: \'{{"data": "{0}"}}\'\n'
    ),
    "spec:\n  values:\n    extraDeploy:\n    - kind: Secret\n      stringData: {{k: {0}}}\n",
    "spec:\n  values:\n    extraDeploy:\n    - |\n      kind: Secret\n      stringData:\n        k: {0}\n",
    "password: {0}\n",
    "adminPassword: '{0}'\n",
    "a: {{api_key: {0}}}\n",
    "credentials:\n  user: {0}\n  list: [{0}]\n",
    "env:\n- name: DB_PASSWORD\n  value: {0}\n",
    "env:\n- name: CLIENT_SECRET\n  value: {0}\n",
    "sops: {{age: [{{enc: {0}}}]}}\nx: ENC[AES256_GCM,data:{0},type:str]\n",
    "args: ['--password={0}']\n",
    "args: ['--db-password', {0}]\n",
    "command: ['sh', '-c', 'login --token {0} now']\n",
    "url: https://user:{0}@db.example/x\n",
    "conf: |\n  [db]\n  password = {0}\n  x = 1\n",
    'conf: |\n  {{\n    "token": "{0}"\n  }}\n',
    "key: |\n  -----BEGIN RSA PRIVATE KEY-----\n  {0}\n  -----END RSA PRIVATE KEY-----\n",
    "image: https://user:{0}@registry.example/x:1\n",
]
WORDS = st.text(st.sampled_from("abcdefghijkmnopqrstuvwxyz"), min_size=8, max_size=12).map("zq{}9".format)


@given(st.sampled_from(HIDING), WORDS, WORDS)
def test_secrets_appear_in_no_format(form: str, old: str, new: str) -> None:
    texts = [form.format(word) for word in (old, new)]
    sides: list[dict[str, str]] = [{FILE: text, RELEASE: SOURCE} for text in texts]
    bare = {RELEASE: SOURCE}
    shown = "".join(
        all_formats(differences(*pair)) for pair in ((sides[0], sides[1]), (sides[0], bare), (bare, sides[1]))
    )

    assert old not in shown
    assert new not in shown


@pytest.mark.parametrize("form", HIDING)
def test_a_changed_secret_is_a_change_that_is_not_shown(form: str) -> None:
    made = differences({FILE: form.format("zqone")}, {FILE: form.format("zqtwo")})

    changes = [change for found in made.objects for change in found.changes]
    assert changes
    assert all(change.is_redacted for change in changes)
    assert "…" in render_text(made)


def test_what_is_no_secret_is_shown() -> None:
    text = "automountServiceAccountToken: {0}\nexistingSecret: {1}\npasswordKey: {1}\nimage: a/b:{1}\n"
    shown = all_formats(differences({FILE: text.format("false", "vone")}, {FILE: text.format("true", "vtwo")}))

    assert all(word in shown for word in ("+true", "+vone"[1:], "+vtwo", "a/b:vtwo"))


def test_broken_secret_is_not_quoted() -> None:
    text = "kind: Secret\ndata:\n  a: zqone\n  a: zqtwo\n"
    made, old, new = diff({FILE: text}, {FILE: DEPLOYMENT})

    assert (made.is_empty, new) == (True, [])
    (fault,) = old
    assert (fault.code, fault.snippet) == ("R002", "")
    assert "zq" not in render_failure(TITLES, [("old", old)])


# Forms


def test_a_tree_that_cannot_be_read_shows_no_differences() -> None:
    made, old, new = diff({FILE: DEPLOYMENT, RELEASE: HELMRELEASE}, {FILE: "a: [\n"})

    assert made.is_empty
    assert (old, [fault.code for fault in new]) == ([], ["R003"])


@pytest.mark.parametrize("limit", [2_000, 10_000, LIMIT])
def test_markdown_keeps_its_limit_and_says_what_was_cut(limit: int) -> None:
    old = {path: (GOLDENS / "home" / path).read_text() for path in tree("home").files}
    page = render_markdown(differences(old, dict(tree("airgap").files)), TITLES, limit=limit)

    assert limit // 2 < len(page) <= limit
    assert "Cut to the size of a comment: " in page
    assert page.startswith(f"{TAG}\n")
    assert page.count("<details>") == page.count("</details>")
    assert page.count("```") % 2 == 0


def test_one_huge_object_is_cut_and_not_the_page() -> None:
    text = "data:\n  f: |\n" + "".join(f"    {{}} line {index}\n" for index in range(20_000))
    page = render_markdown(differences({FILE: text.replace("{}", "a")}, {FILE: text.replace("{}", "b")}), TITLES)

    assert len(page) < 10_000
    assert " more lines" in page


def test_long_lists_of_names_are_counted() -> None:
    old = {
        f"apps/a{index}/helmrelease.yaml": HELMRELEASE.replace("name: web", f"name: a{index}") for index in range(99)
    }
    made = differences(old, {path: text + TABLE for path, text in old.items()})

    assert "upgraded: demo/a0, demo/a1, " in render_text(made)
    assert ", and 89 more\n" in render_text(made)
    assert "- <code>and 49 more</code>\n" in render_markdown(made, TITLES)


def test_markdown_cannot_be_broken_out_of() -> None:
    name = "</details>|`*<script>"
    old = f"kind: A\napiVersion: b/v1\nmetadata: {{name: '{name}'}}\nimage: 'x/y:1'\nt: \"```\\n# x\\n\"\n"
    page = render_markdown(differences({FILE: old}, {FILE: old.replace("y:1", "y:2").replace("# x", "# y")}), TITLES)
    prose = "".join(part for index, part in enumerate(page.split("\n````diff\n")) if not index)

    assert "<script>" not in page
    assert "````diff" in page
    assert "`*" not in prose


def test_control_characters_are_not_printed() -> None:
    made = differences({FILE: 'a: "\\e[31m"\n'}, {FILE: 'a: "x\\u202E\\n\\e[0m"\n"b\\e": 1\n'})

    assert not {"\x1b", "\u202e"} & set(render_text(made) + render_markdown(made, TITLES))


def test_json_has_values_as_data() -> None:
    old, new = "a: 1\nb: x\nc: [1, '1', null, yes]\n", "a: '1'\nb: {d: 1.5}\n"
    made = as_json(differences({FILE: old}, {FILE: new}), TITLES, [])

    (found,) = made["objects"]  # type: ignore[misc]
    changes = {change["path"]: (change["old"], change["new"]) for change in found["changes"]}
    assert changes == {"a": (1, "1"), "b": ("x", {"d": 1.5}), "c": ([1, "1", None, True], None)}


def test_colours_are_only_added() -> None:
    made = differences({FILE: DEPLOYMENT}, {FILE: DEPLOYMENT.replace("replicas: 1", "replicas: 2")})
    coloured = render_text(made, colour=True)

    assert "\x1b[32m   +2\x1b[0m" in coloured
    assert render_text(made) == coloured.replace("\x1b[32m", "").replace("\x1b[31m", "").replace(
        "\x1b[1;33m", ""
    ).replace("\x1b[0m", "")
