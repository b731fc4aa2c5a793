from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from render.strays import markers
from tests.bot import NotModelled, rewrite
from tests.project import Project, Ran, project

WEB = """\
name: web
source:
  image: ghcr.io/example/web:1.2.3
  chart:
    url: oci://charts.example.org/web
    version: "1.0.0"
update:
  range: 1.x
"""
MARKED = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: mine
data:
  tag: "1.2.3" # {{"$imagepolicy": "{}"}}
"""
POLICY = """\
apiVersion: image.toolkit.fluxcd.io/v1
kind: ImagePolicy
metadata:
  name: mine
  namespace: flux-system
spec:
  imageRepositoryRef:
    name: mine
  policy:
    alphabetical: {}
"""


def tree(folder: Path, files: dict[str, str], catalog: str = WEB) -> Project:
    """Return a repository whose tree is written, with files of a person in it."""
    made = project(folder, {"catalog/web.yaml": catalog, **files})
    assert made.run("build", "--quiet").code == 0
    return made


def codes(ran: Ran) -> list[tuple[str, str, str]]:
    """Return what a run reports as JSON: code, file and message."""
    assert ran.code == 0
    return [(one["code"], one["file"], one["message"]) for one in json.loads(ran.out)["diagnostics"]]


def checked(made: Project, *arguments: str) -> list[tuple[str, str, str]]:
    return codes(made.run("check", "--format", "json", *arguments))


# Markers


@pytest.mark.parametrize(
    "marker", ["flux-system:web", "flux-system:web:tag", "flux-system:web:name", "flux-system:web:digest"]
)
def test_marker_of_a_rendered_policy_is_sound(tmp_path: Path, marker: str) -> None:
    named = WEB + "kustomize:\n  resources: [mine.yaml]\n"

    assert checked(tree(tmp_path, {"apps/web/mine.yaml": MARKED.format(marker)}, named)) == []


@pytest.mark.parametrize(
    "marker",
    [
        "flux-system:wbe:tag",
        "flux-system:web:Tag",
        "flux-system/web:tag",
        "web:web:tag",
        "${NAMESPACE}:web:tag",
        "web",
        "",
    ],
)
@pytest.mark.parametrize("path", ["apps/web/mine.yaml", "apps/other/deep/mine.yml", "configs/mine.yaml"])
def test_marker_of_no_policy_is_told_with_its_line(tmp_path: Path, marker: str, path: str) -> None:
    made = tree(tmp_path, {path: MARKED.format(marker)})
    told = [("R513", path, f"the marker `{marker}` names no image policy of the tree")]

    assert [one for one in checked(made) if one[0] == "R513"] == told
    assert [one for one in codes(made.run("build", "--format", "json")) if one[0] == "R513"] == told
    assert f"{path}:6: R513 warning: " in made.run("check", "--format", "concise").err
    assert f"::warning file={path},line=6,title=R513::" in made.run("check", "--format", "github").out


@pytest.mark.parametrize("marker", ["flux-system:webb:tag", "flux-system:web:Tag", "web:web:tag", "${NS}:web:tag"])
def test_closest_policy_is_offered(tmp_path: Path, marker: str) -> None:
    made = tree(tmp_path, {"apps/mine/mine.yaml": MARKED.format(marker)})

    assert "= hint: write `flux-system:web:tag`\n" in made.run("check").err


@pytest.mark.parametrize("marker", ["flux-system:nobody", "flux-system:w", "nobody"])
def test_nothing_is_offered_that_is_not_close(tmp_path: Path, marker: str) -> None:
    made = tree(tmp_path, {"apps/mine/mine.yaml": MARKED.format(marker)})

    assert "= hint: give the image an `update`, or remove the marker\n" in made.run("check").err


def test_marker_of_a_service_that_is_automated_no_more_is_told(tmp_path: Path) -> None:
    named = WEB + "kustomize:\n  resources: [mine.yaml]\n"
    made = tree(tmp_path, {"apps/web/mine.yaml": MARKED.format("flux-system:web:tag")}, named)
    (tmp_path / "catalog/web.yaml").write_text(named.replace("update:\n  range: 1.x\n", ""))

    ran = made.run("build", "--format", "json")

    assert codes(ran) == [
        ("R513", "apps/web/mine.yaml", "the marker `flux-system:web:tag` names no image policy of the tree")
    ]


def test_marker_of_a_policy_of_the_person_is_sound(tmp_path: Path) -> None:
    files = {"apps/mine/policy.yaml": POLICY, "apps/mine/mine.yaml": MARKED.format("flux-system:mine:tag")}

    assert checked(tree(tmp_path, files)) == []


@pytest.mark.parametrize(
    "text",
    [
        'a: |\n  b: "1" # {{"$imagepolicy": "{0}"}}\n',
        '# {{"$imagepolicy": "{0}"}}\na: b\n',
        'a: # {{"$imagepolicy": "{0}"}}\n  b: c\n',
        'a: [b] # {{"$imagepolicy": "{0}"}}\n',
        'a: &x b\nc: *x # {{"$imagepolicy": "{0}"}}\n',
        'a: b # tag {{"$imagepolicy": "{0}"}}\n',
        'a: "# {{\\"$imagepolicy\\": \\"{0}\\"}}"\n',
        'a: b # {{"$imagepolicy": ["{0}"]}}\n',
        'a: b # {{"$imagepolicy": "{0}"\n',
        "a: b # {{'$imagepolicy': '{0}'}}\n",
        pytest.param('a: b # {{"$imagepolicy": ' + "[" * 100_000 + "]" * 100_000 + "}}\n", id="deep"),
    ],
)
def test_what_the_bot_takes_for_no_marker_is_none(tmp_path: Path, text: str) -> None:
    assert checked(tree(tmp_path, {"apps/mine/mine.yaml": text.format("flux-system:nobody:tag")})) == []


def test_marker_above_a_list_item_is_one(tmp_path: Path) -> None:
    text = 'a:\r\n# {"$imagepolicy": "flux-system:nobody"}\r\n- b\r\n'
    made = tree(tmp_path, {"apps/mine/mine.yaml": text})

    assert [code for code, _, _ in checked(made)] == ["R513"]


def test_files_of_other_names_that_the_bot_reads_are_looked_at(tmp_path: Path) -> None:
    text = MARKED.format("flux-system:nobody:tag")
    made = tree(tmp_path, {"apps/mine/Kustomization": text, "outside.yaml": text, "apps/mine/notes.txt": text})
    (tmp_path / "apps/mine/linked.yaml").symlink_to(tmp_path / "outside.yaml")
    (tmp_path / "apps/mine/nowhere.yaml").symlink_to(tmp_path / "nothing.yaml")
    (tmp_path / "apps/mine/folder.yaml").symlink_to(tmp_path)

    assert [path for _, path, _ in checked(made)] == ["apps/mine/Kustomization", "apps/mine/linked.yaml"]


def test_without_image_automation_no_marker_is_judged(tmp_path: Path) -> None:
    files = {"apps/mine/policy.yaml": POLICY, "apps/mine/mine.yaml": MARKED.format("flux-system:web:tag")}
    made = project(tmp_path, {"catalog/web.yaml": WEB, **files})
    assert made.run("build", "--no-image-automation").code == 0

    assert checked(made, "--no-image-automation") == []


@given(st.text(alphabet=" ab\"'#:{}[]-*\n", max_size=30), st.sampled_from(["", "- ", "a: ", "a:\n  b: ", "  "]))
def test_the_bots_markers_are_found(value: str, start: str) -> None:
    # What the model of the bot rewrites has a marker where this finds one.
    text = f'{start}{value} # {{"$imagepolicy": "flux-system:web:tag"}}\n'
    policy = {"namespace": "flux-system", "name": "web", "image": "web", "tag": "other"}
    try:
        written = rewrite(f"k:\n{text}" if start == "- " else text, [policy])
    except NotModelled:
        return
    if written is not None:
        assert [one.text for one in markers("", text)] == ["flux-system:web:tag"]


# Policies


def test_policy_that_no_marker_names_is_told(tmp_path: Path) -> None:
    made = tree(tmp_path, {"apps/mine/all.yaml": "---\na: 1\n---\n" + POLICY})

    assert checked(made) == [
        ("R514", "apps/mine/all.yaml", "no marker in the tree names the image policy `flux-system:mine`")
    ]


def test_policy_among_extra_objects_needs_a_marker_too(tmp_path: Path) -> None:
    indented = "".join(f"    {line}\n" for line in POLICY.splitlines())
    made = tree(tmp_path, {}, WEB + "extraObjects:\n  -" + indented[3:])

    assert checked(made) == [
        ("R514", "apps/web/extra.yaml", "no marker in the tree names the image policy `flux-system:mine`")
    ]
    (tmp_path / "apps/mine").mkdir()
    (tmp_path / "apps/mine/mine.yaml").write_text(MARKED.format("flux-system:mine:tag"))
    assert checked(made) == []


# Files that nothing lists


@pytest.mark.parametrize("path", ["apps/web/mine.yaml", "apps/web/mine.yml", "flux/mine.yaml", "apps/mine.yaml"])
def test_file_beside_ours_that_nothing_lists_is_told(tmp_path: Path, path: str) -> None:
    made = tree(tmp_path, {path: "kind: ConfigMap\n"})

    assert checked(made) == [("R515", path, "the file is in no kustomization")]


@pytest.mark.parametrize(
    "path",
    [
        "apps/mine/mine.yaml",
        "apps/web/deep/mine.yaml",
        "apps/web/.sops.yaml",
        "apps/web/README.md",
        "platform/mine.yaml",
        "mine.yaml",
    ],
)
def test_other_files_of_people_are_not(tmp_path: Path, path: str) -> None:
    assert checked(tree(tmp_path, {path: "kind: ConfigMap\n"})) == []


@pytest.mark.parametrize(
    "kustomize",
    [
        "resources: [./mine.yaml]",
        "resources: [../web/mine.yaml]",
        "patches: [{path: mine.yaml}]",
        "configMapGenerator: [{name: x, files: [a=mine.yaml]}]",
        "components: [mine.yaml]",
    ],
)
def test_file_that_the_catalog_names_is_listed(tmp_path: Path, kustomize: str) -> None:
    made = tree(tmp_path, {"apps/web/mine.yaml": "kind: ConfigMap\n"}, WEB + f"kustomize:\n  {kustomize}\n")

    assert checked(made) == []


def test_only_limits_what_is_told_to_files_of_the_service(tmp_path: Path) -> None:
    files = {"apps/web/mine.yaml": "a: 1\n", "catalog/db.yaml": WEB.replace("web", "db"), "apps/db/mine.yaml": "a: 1\n"}
    made = tree(tmp_path, files)

    assert [path for _, path, _ in checked(made, "--only", "db")] == ["apps/db/mine.yaml"]


def test_warnings_stop_where_they_shall(tmp_path: Path) -> None:
    made = tree(tmp_path, {"apps/web/mine.yaml": "a: 1\n"})

    assert made.run("check", "--fail-on", "warning").code == 1


def test_unreadable_yaml_of_a_person_is_no_fault(tmp_path: Path) -> None:
    text = "{{ if }}\nkind: ImagePolicy\n" + MARKED.format("flux-system:web:tag")

    assert checked(tree(tmp_path, {"apps/mine/chart.yaml": text})) == []
