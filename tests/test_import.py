from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from render.build import build
from render.importing.importer import Imported, Outcome, Target, import_repository
from tests.project import Project, objects, project

ROOT = Path(__file__).parents[1]
CHARTS = """\
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata:
  name: charts
  namespace: flux-system
spec:
  interval: 1h
  url: https://charts.example.org
"""
CHART = """\
  chart:
    spec:
      chart: web
      version: 1.2.3
      sourceRef:
        kind: HelmRepository
        name: charts
        namespace: flux-system
"""


def release(more: str = "", name: str = "web", namespace: str = "apps", chart: str = CHART) -> str:
    """A HelmRelease; `more` are lines of its spec."""
    where = f"  namespace: {namespace}\n" if namespace else ""
    return (
        f"apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata:\n  name: {name}\n{where}"
        f"spec:\n  interval: 1h\n{chart}{more}"
    )


def values(text: str) -> str:
    return "  values:\n" + "".join(f"    {line}\n" if line else "\n" for line in text.splitlines())


def imported(folder: Path, files: dict[str, str], *, platform: str | None = None) -> Imported:
    """Import a repository in `folder/repo`, with the new files written beside it."""
    for name, text in {"charts.yaml": CHARTS, **files}.items():
        path = folder / "repo" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    target = Target(folder / "catalog", folder / "platform.yaml")
    if platform is not None:
        target.platform.write_text(platform)
    made = import_repository([folder / "repo"], target)
    for file, text in made.files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return made


def only(made: Imported) -> tuple[Outcome, str]:
    """Return the one outcome, and its definition without the modeline."""
    (outcome,) = made.outcomes
    (text,) = made.definitions.values()
    return outcome, text.partition("\n")[2]


def equal(folder: Path, files: dict[str, str]) -> str:
    """Return the definition of the one release, which must come back equal."""
    made = imported(folder, files)
    outcome, text = only(made)
    assert (outcome.equal, outcome.lost) == (True, []), (outcome, made.diagnostics)
    assert not made.failed
    return text


def codes(made: Imported) -> list[str]:
    return [fault.code for fault in made.diagnostics]


# What a definition says


def test_a_release_becomes_what_a_person_would_write(tmp_path: Path) -> None:
    text = equal(
        tmp_path,
        {"web.yaml": release(values("image:\n  repository: ghcr.io/example/web\n  tag: v1.2.3\nreplicas: 2"))},
    )

    assert text == (
        "name: web\n"
        "namespace: apps\n"
        "source:\n"
        "  image: ghcr.io/example/web:v1.2.3\n"
        "  chart:\n"
        "    repository: charts\n"
        "    name: web\n"
        '    version: "1.2.3"\n'
        "values:\n"
        "  replicas: 2\n"
    )


def test_a_new_platform_file_names_the_sources(tmp_path: Path) -> None:
    made = imported(tmp_path, {"web.yaml": release()})

    assert made.files[tmp_path / "platform.yaml"].partition("\n")[2] == (
        'cluster: cluster\nroot: rendered/cluster\nflux:\n  version: "2.9"\n'
        "charts:\n  charts:\n    url: https://charts.example.org\ndefaults:\n  interval: 1h\n"
    )


def test_written_files_build_to_the_same_release(tmp_path: Path) -> None:
    imported(tmp_path, {"web.yaml": release(values("replicas: 2"))})
    made = Project(tmp_path).build()

    (found,) = [one for one in objects(made) if one["kind"] == "HelmRelease"]
    assert found["spec"]["values"] == {"replicas": 2}
    assert found["spec"]["chart"]["spec"]["sourceRef"]["namespace"] == "flux-system"


def test_values_keep_comments_anchors_and_spelling(tmp_path: Path) -> None:
    text = equal(
        tmp_path,
        {
            "web.yaml": release(
                values(
                    '# at the top\nmode: 0644 # a file mode\nswitch: yes\n\nlist: [a, "b"]\n'
                    "one: &one\n  a: 1\ntwo:\n  <<: *one\n  b: |\n    # no comment\n\n    text\n# at the end"
                )
            )
        },
    )

    assert text.partition("values:\n")[2] == (
        '  # at the top\n  mode: 0644 # a file mode\n  switch: yes\n\n  list: [a, "b"]\n'
        "  one: &one\n    a: 1\n  two:\n    <<: *one\n    b: |\n      # no comment\n\n      text\n  # at the end\n"
    )


@pytest.mark.parametrize("spelled", ["&app web", '&app "web"'])
def test_an_anchor_on_the_name_stays_on_the_name(tmp_path: Path, spelled: str) -> None:
    text = equal(tmp_path, {"web.yaml": release(values("fullnameOverride: *app"), name=spelled)})

    assert text.startswith("name: &app web\n")
    assert "  fullnameOverride: *app\n" in text


def test_an_anchor_of_another_place_is_written_out(tmp_path: Path) -> None:
    text = equal(
        tmp_path,
        {"web.yaml": release("  releaseName: &other 'o, k'\n" + values("list: [*other]\nname: *other # why"))},
    )

    assert '  list: ["o, k"]\n  name: "o, k" # why\n' in text


def test_json_becomes_yaml(tmp_path: Path) -> None:
    spec = {
        "apiVersion": "helm.toolkit.fluxcd.io/v2",
        "kind": "HelmRelease",
        "metadata": {"name": "web", "namespace": "apps"},
        "spec": {
            "interval": "1h",
            "chart": {
                "spec": {
                    "chart": "web",
                    "version": "1.2.3",
                    "sourceRef": {"kind": "HelmRepository", "name": "charts", "namespace": "flux-system"},
                }
            },
            "values": {"list": [1, {"a": "yes"}], "image": {"repository": "ghcr.io/example/web", "tag": "1.2.3"}},
        },
    }
    text = equal(tmp_path, {"web.yaml": json.dumps(spec, indent=1)})

    assert "  image: ghcr.io/example/web:1.2.3\n" in text
    assert text.endswith('values:\n  "list":\n    - 1\n    - "a": "yes"\n')


def test_a_comment_above_a_key_stays_with_its_value(tmp_path: Path) -> None:
    made = imported(
        tmp_path, {"web.yaml": release("  # all of them:\n  # values.yaml\n  values: # here\n    a: 1\n  # below\n")}
    )
    outcome, text = only(made)

    assert text.endswith("values:\n  # all of them:\n  # values.yaml\n  a: 1\n")
    assert [text for _, text in outcome.comments] == ["# here", "# below"]


# Images


@pytest.mark.parametrize(
    ("written", "said", "left"),
    [
        ("image:\n  repository: a/b\n  tag: v1", "image: a/b:v1", ""),
        ("image:\n  repository: a/b\n  tag: 1.2.3@sha256:" + "a" * 64, "image: a/b:1.2.3@sha256:" + "a" * 64, ""),
        (
            "image:\n  registry: quay.io\n  repository: a/b\n  tag: v1\n  pullPolicy: Always",
            "ref: quay.io/a/b:v1\n    at: image\n    shape: registry",
            "image:\n  pullPolicy: Always",
        ),
        (
            "image:\n  repository: a/b\n  tag: v1\n  digest: sha256:" + "a" * 64,
            "ref: a/b:v1@sha256:" + "a" * 64 + "\n    at: image\n    shape: digest",
            "",
        ),
        ("app:\n  image: a/b:v1\n  x: 1", "ref: a/b:v1\n    at: app.image\n    shape: string", "app:\n  x: 1"),
        ("image: {repository: a/b, tag: v1}\nx: 1", "image: a/b:v1", "x: 1"),
        (
            "imageRepository: a/b\nimageTag: v1\nx: 1",
            "ref: a/b:v1\n    at:\n      repository: imageRepository\n      tag: imageTag",
            "x: 1",
        ),
        (
            "image:\n  registry: ghcr.io/a/b\n  tag: v1",
            "ref: ghcr.io/a/b:v1\n    at:\n      repository: image.registry\n      tag: image.tag",
            "",
        ),
        (
            "containers:\n  - name: app\n    image: a/b:v1",
            "ref: a/b:v1\n    at: containers[name=app].image\n    shape: string",
            "containers:\n  - name: app",
        ),
        ("image:\n  # renovate: x\n  repository: a/b\n  tag: v1", "image:\n    at: image", None),
        ("image: &i\n  repository: a/b\n  tag: v1\nsame: *i", "image:\n    at: image", None),
        ('image:\n  repository: a/b\n  tag: "1.20"', "image: a/b:1.20", ""),
    ],
)
def test_images_leave_the_values_where_rendering_puts_them_back(
    tmp_path: Path, written: str, said: str, left: str | None
) -> None:
    text = equal(tmp_path, {"web.yaml": release(values(written))})
    rest = written if left is None else left

    assert said in text
    assert text.partition("values:\n")[2] == "".join(f"  {line}\n" for line in rest.splitlines())


@pytest.mark.parametrize(
    "written",
    [
        "image:\n  repository: a/b\n  tag: 41",
        "image:\n  repository: a/b\n  tag: 18.10",
        "image:\n  repository: a/b\n  tag: 2026-01-07",
        'image:\n  repository: a/b\n  tag: ""',
        "image:\n  repository: a/b\n  tag:",
        "image:\n  repository: a/b\n  tag: ${TAG:=v1}",
        "image:\n  repository: A/B\n  tag: v1",
        "image:\n  tag: v1",
        "image: busybox",
    ],
)
def test_what_rendering_would_change_is_no_image(tmp_path: Path, written: str) -> None:
    text = equal(tmp_path, {"web.yaml": release(values(written))})

    assert "image" not in text.partition("values:\n")[0]
    assert text.partition("values:\n")[2] == "".join(f"  {line}\n" for line in written.splitlines())


def test_equal_images_are_one_at_two_places(tmp_path: Path) -> None:
    text = equal(tmp_path, {"web.yaml": release(values("image: a/b:v1\njob:\n  image: a/b:v1"))})

    assert "    at:\n      - image\n      - job.image\n" in text


def test_further_images_are_named_after_their_places(tmp_path: Path) -> None:
    text = equal(
        tmp_path,
        {
            "web.yaml": release(
                values("image: a/b:v1\nkubectlImage: a/k:v1\ninitContainers:\n  init-db:\n    image: a/i:v1")
            )
        },
    )

    assert re.findall(r"^  (\S+):\n    ref: a/", text, re.MULTILINE) == ["image", "kubectl", "init-db"]


# Image automation


def policy(name: str = "web", spec: str = "policy: {semver: {range: 1.x}}", image: str = "ghcr.io/example/web") -> str:
    return (
        f"apiVersion: image.toolkit.fluxcd.io/v1\nkind: ImageRepository\n"
        f"metadata: {{name: {name}, namespace: flux-system}}\nspec: {{image: {image}, interval: 1h}}\n---\n"
        f"apiVersion: image.toolkit.fluxcd.io/v1\nkind: ImagePolicy\n"
        f"metadata: {{name: {name}, namespace: flux-system}}\n"
        f"spec:\n  imageRepositoryRef: {{name: {name}}}\n  {spec}\n"
    )


def marked(tag: str, name: str = "web") -> str:
    return values(
        f'image:\n  repository: ghcr.io/example/web\n  tag: {tag} # {{"$imagepolicy": "flux-system:{name}:tag"}}'
    )


@pytest.mark.parametrize(
    ("tag", "spec", "update"),
    [
        (
            "1.2.3",
            "filterTags: {pattern: '^[0-9]+\\.[0-9]+\\.[0-9]+$'}\n  policy: {semver: {range: 1.x}}",
            'update:\n  range: "1.x"\n',
        ),
        ("1.2.3", "policy: {semver: {range: 1.x}}", "update:\n  channel: custom\n"),
        (
            "main-7",
            "filterTags: {pattern: '^main-(?P<n>[0-9]{1,15})$', extract: $n}\n  policy: {numerical: {order: asc}}",
            "update:\n  channel: build\n",
        ),
        (
            "prod-0a1b2c3-20260101120000",
            "filterTags: {pattern: '^prod-[a-f0-9]+-(?P<ts>[0-9]+)', extract: $ts}\n  policy: {alphabetical: {}}",
            "update:\n  channel: custom\n",
        ),
    ],
)
def test_a_policy_is_the_channel_that_derives_it(tmp_path: Path, tag: str, spec: str, update: str) -> None:
    text = equal(tmp_path, {"web.yaml": release(marked(tag)), "image.yaml": policy(spec=spec)})

    assert f"  image: ghcr.io/example/web:{tag}\n" in text
    assert update in text
    assert "imagepolicy" not in text


def test_an_update_that_never_rolled_back_says_so(tmp_path: Path) -> None:
    text = equal(tmp_path, {"web.yaml": release(marked("1.2.3")), "image.yaml": policy()})

    assert "  autoRollbackOnFailedHealth: false\n" in text


def test_equal_images_of_which_one_is_moved_are_two(tmp_path: Path) -> None:
    other = "\nside:\n  repository: ghcr.io/example/web\n  tag: 1.2.3"
    moved = 'image:\n  repository: ghcr.io/example/web\n  tag: 1.2.3 # {"$imagepolicy": "flux-system:web:tag"}'
    text = equal(tmp_path, {"web.yaml": release(values(moved + other)), "image.yaml": policy()})

    assert "  image: ghcr.io/example/web:1.2.3\n" in text
    assert "images:\n  side:\n    ref: ghcr.io/example/web:1.2.3\n    at: side\n" in text


@pytest.mark.parametrize(
    "written",
    [
        'odd: ghcr.io/example/web:1.2.3 # {"$imagepolicy": "flux-system:web"}',
        'list:\n  - ghcr.io/example/web:1.2.3 # {"$imagepolicy": "flux-system:web"}',
        'name: ghcr.io/example/web\nversion: 1.2.3 # {"$imagepolicy": "flux-system:web:tag"}',
        'version: 1.2.3 # {"$imagepolicy": "flux-system:web:tag"}',
    ],
)
def test_markers_tell_of_images_where_no_key_does(tmp_path: Path, written: str) -> None:
    text = equal(tmp_path, {"web.yaml": release(values(written)), "image.yaml": policy()})

    assert "ref: ghcr.io/example/web:1.2.3\n" in text or "image:\n    at: " in text
    assert "update:\n" in text


def test_a_policy_of_another_name_is_renamed_with_a_note(tmp_path: Path) -> None:
    made = imported(tmp_path, {"web.yaml": release(marked("1.2.3", "other")), "image.yaml": policy("other")})
    outcome, _ = only(made)

    assert (outcome.equal, outcome.lost) == (True, [])
    assert "the policy `flux-system/other` becomes `flux-system/web`" in outcome.notes


def test_a_policy_that_says_more_than_an_update_is_a_loss(tmp_path: Path) -> None:
    image = policy().replace("interval: 1h}", "interval: 1h, exclusionList: [x]}")
    made = imported(tmp_path, {"web.yaml": release(marked("1.2.3")), "image.yaml": image})
    outcome, text = only(made)

    assert outcome.lost == ["spec.values.image.tag (marker)"]
    assert any("`update` has no field for `exclusionList`" in note for note in outcome.notes)
    assert "update:" not in text
    assert codes(made) == ["R905"]


def test_a_marker_without_its_policy_is_noted(tmp_path: Path) -> None:
    made = imported(tmp_path, {"web.yaml": release(marked("1.2.3"))})
    outcome, _ = only(made)

    assert (outcome.equal, outcome.lost) == (False, [])
    assert any("not among what was read" in note for note in outcome.notes)


def test_an_automation_becomes_the_platforms(tmp_path: Path) -> None:
    automation = (
        "apiVersion: image.toolkit.fluxcd.io/v1\nkind: ImageUpdateAutomation\n"
        "metadata: {name: home, namespace: flux-system}\nspec:\n  interval: 5m\n"
        "  sourceRef: {kind: GitRepository, name: fleet}\n  git:\n    checkout: {ref: {branch: prod}}\n"
        "    commit: {author: {name: bot, email: bot@example.org}}\n    push: {branch: updates}\n"
        "  update: {path: ./clusters/home, strategy: Setters}\n"
    )
    made = imported(tmp_path, {"web.yaml": release(marked("1.2.3")), "image.yaml": policy(), "auto.yaml": automation})
    text = made.files[tmp_path / "platform.yaml"]

    assert "cluster: home\n" in text
    assert "  source:\n    name: fleet\n" in text
    assert (
        "imageAutomation:\n  enabled: true\n  interval: 5m\n  branch: prod\n  pushBranch: updates\n"
        "  author:\n    name: bot\n    email: bot@example.org\n"
    ) in text


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("{{ range .Changed.Changes }}{{ .Setter }}{{ end }}", None),
        ("{{ range .Updated.Images }}{{ . }}{{ end }}", "uses `.Updated`, which Flux has removed"),
        ("{{ range .Changed.Changes }}", "an `{{end}}` is missing"),
    ],
)
def test_message_and_push_of_an_automation_become_the_platforms(
    tmp_path: Path, template: str, reason: str | None
) -> None:
    automation = (
        "apiVersion: image.toolkit.fluxcd.io/v1\nkind: ImageUpdateAutomation\n"
        "metadata: {name: home, namespace: flux-system}\nspec:\n  interval: 30m\n"
        "  sourceRef: {kind: GitRepository, name: flux-system}\n  git:\n    checkout: {ref: {branch: main}}\n"
        f"    commit: {{author: {{email: bot@example.org}}, messageTemplate: '{template}'}}\n"
        "    push: {branch: main, refspec: 'refs/heads/main:refs/heads/bot', options: {ci.skip: ''}}\n"
    )
    made = imported(tmp_path, {"web.yaml": release(marked("1.2.3")), "image.yaml": policy(), "auto.yaml": automation})
    text = made.files[tmp_path / "platform.yaml"]

    assert "refs/heads/main:refs/heads/bot" in text
    assert "ci.skip" in text
    assert ("messageTemplate" in text) == (reason is None)
    told = [note for note in made.platform_notes if "message template" in note]
    assert [bool(reason and reason in note) for note in told] == ([] if reason is None else [True])


def test_a_policy_that_the_compiler_refuses_stays_outside(tmp_path: Path) -> None:
    spec = "policy: {semver: {range: 1.x}}"
    made = imported(tmp_path, {"web.yaml": release(marked("2.0.0")), "image.yaml": policy(spec=spec)})
    outcome, text = only(made)

    assert "update:" not in text
    assert "  image: ghcr.io/example/web:2.0.0\n" in text
    assert outcome.lost == ["spec.values.image.tag (marker)"]
    assert any(note.startswith("the policy `flux-system/web` stays outside the catalog: ") for note in outcome.notes)


def test_an_image_that_the_compiler_refuses_stays_in_the_values(tmp_path: Path) -> None:
    odd = "image:\n  repository: a/b\n  tag: v1\n  registry: 41"
    made = imported(tmp_path, {"web.yaml": release(values(odd))})
    outcome, text = only(made)

    assert (outcome.equal, outcome.lost) == (True, [])
    assert text.partition("values:\n")[2] == "".join(f"  {line}\n" for line in odd.splitlines())
    assert any(note.startswith("its images stay in the values: ") for note in outcome.notes)


# Chart sources


def source(kind: str, name: str, namespace: str, spec: str) -> str:
    return (
        f"apiVersion: source.toolkit.fluxcd.io/v1\nkind: {kind}\nmetadata: {{name: {name}, namespace: {namespace}}}\n"
        f"spec: {{interval: 1h, {spec}}}\n"
    )


OCI = "url: oci://ghcr.io/example/charts/web, ref: {tag: 1.2.3}"
LAYER = "layerSelector: {mediaType: application/vnd.cncf.helm.chart.content.v1.tar+gzip, operation: copy}"


def ref(kind: str, name: str, namespace: str = "") -> str:
    return f"  chartRef: {{kind: {kind}, name: {name}{f', namespace: {namespace}' if namespace else ''}}}\n"


def test_an_oci_source_of_its_own_is_the_services(tmp_path: Path) -> None:
    files = {
        "web.yaml": release(chart=ref("OCIRepository", "web")),
        "oci.yaml": source("OCIRepository", "web", "apps", f"{OCI}, {LAYER}"),
    }
    text = equal(tmp_path, files)

    assert '  chart:\n    url: oci://ghcr.io/example/charts/web\n    version: "1.2.3"\n' in text


def test_an_oci_source_of_flux_is_shared(tmp_path: Path) -> None:
    files = {
        "web.yaml": release(chart=ref("OCIRepository", "shared", "flux-system")),
        "oci.yaml": source("OCIRepository", "shared", "flux-system", f"{OCI}, {LAYER}"),
    }
    text = equal(tmp_path, files)

    assert "  chart:\n    repository: shared\n" in text
    assert 'version: "1.2.3"' in (tmp_path / "platform.yaml").read_text()


def test_a_renamed_source_is_noted(tmp_path: Path) -> None:
    files = {
        "web.yaml": release(chart=ref("OCIRepository", "other")),
        "oci.yaml": source("OCIRepository", "other", "apps", f"{OCI}, {LAYER}"),
    }
    outcome, _ = only(imported(tmp_path, files))

    assert (outcome.equal, outcome.lost) == (False, [])
    assert outcome.notes == ["spec.chartRef.name: the source is rendered as `apps/web`"]


def test_a_git_source_of_its_own_is_the_services(tmp_path: Path) -> None:
    chart = "  chart: {spec: {chart: ./charts/web, sourceRef: {kind: GitRepository, name: web}}}\n"
    files = {
        "web.yaml": release(chart=chart),
        "git.yaml": source("GitRepository", "web", "apps", "url: https://git.example/x, ref: {branch: main}"),
    }
    text = equal(tmp_path, files)

    assert "    git: https://git.example/x\n" in text
    assert "reconcileStrategy: ChartVersion" in text


def test_the_repository_of_flux_itself_is_a_source_that_exists(tmp_path: Path) -> None:
    where = "sourceRef: {kind: GitRepository, name: flux-system, namespace: flux-system}"
    chart = f"  chart: {{spec: {{chart: ./charts/web, reconcileStrategy: Revision, {where}}}}}\n"
    git = source("GitRepository", "flux-system", "flux-system", "url: https://git.example/x, ref: {branch: main}")
    text = equal(tmp_path, {"web.yaml": release(chart=chart), "git.yaml": git})

    assert (
        "  chart:\n    existingSource:\n      kind: GitRepository\n      name: flux-system\n"
        "      namespace: flux-system\n    path: "
    ) in text


def test_a_source_that_says_more_ships_as_it_is(tmp_path: Path) -> None:
    files = {
        "web/web.yaml": release(chart=ref("OCIRepository", "web")),
        "web/oci.yaml": source("OCIRepository", "web", "apps", f"{OCI}, ignore: x"),
    }
    text = equal(tmp_path, files)

    assert "    existingSource:\n      kind: OCIRepository\n      name: web\n" in text
    assert "extraObjects:\n  - apiVersion: source.toolkit.fluxcd.io/v1\n    kind: OCIRepository\n" in text


def test_a_helm_chart_is_folded_into_its_release(tmp_path: Path) -> None:
    spec = "chart: web, version: 1.2.3, sourceRef: {kind: HelmRepository, name: charts}"
    files = {
        "web.yaml": release(chart=ref("HelmChart", "web", "flux-system")),
        "chart.yaml": source("HelmChart", "web", "flux-system", spec),
    }
    outcome, text = only(imported(tmp_path, files))

    assert outcome.lost == []
    assert "    repository: charts\n    name: web\n" in text


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ("version: 1.2.3", 'version: "1.2.3"'),
        ("version: v1.2.3", "version: v1.2.3"),
        ("version: 1.x", 'versionRange: "1.x"'),
        ("version: '>=1 <2'", 'versionRange: ">=1 <2"'),
        ("version: ${V}", 'version: "${V}"'),
        ("interval: 1h", 'versionRange: "*"'),
    ],
)
def test_versions_are_exact_or_said_to_be_none(tmp_path: Path, version: str, said: str) -> None:
    chart = CHART.replace("version: 1.2.3", version)

    assert said in equal(tmp_path, {"web.yaml": release(chart=chart)})


# Namespaces

KUSTOMIZATION = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n"


def flux(path: str, more: str) -> str:
    return (
        "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\n"
        "metadata: {name: web, namespace: flux-system}\n"
        f"spec: {{interval: 1h, prune: true, path: {path}, {more},\n"
        "  sourceRef: {kind: GitRepository, name: flux-system}}\n"
    )


@pytest.mark.parametrize(
    ("files", "namespace"),
    [
        ({"web/kustomization.yaml": f"{KUSTOMIZATION}namespace: media\nresources: [web.yaml]\n"}, "media"),
        ({"web/kustomization.yaml": "namespace: media\nresources: [./web.yaml]\n"}, "media"),
        (
            {
                "web/kustomization.yaml": f"{KUSTOMIZATION}namespace: inner\nresources: [web.yaml]\n",
                "kustomization.yaml": f"{KUSTOMIZATION}namespace: outer\nresources: [web]\n",
            },
            "outer",
        ),
        ({"flux.yaml": flux("./web", "targetNamespace: target")}, "target"),
        (
            {
                "web/kustomization.yaml": f"{KUSTOMIZATION}namespace: inner\nresources: [web.yaml]\n",
                "flux.yaml": flux("./web", "targetNamespace: target"),
            },
            "target",
        ),
        ({"web/kustomization.yaml": f"{KUSTOMIZATION}namespace: media\nresources: [other.yaml]\n"}, "web"),
        ({}, "web"),
    ],
)
def test_the_namespace_is_that_of_the_outermost_kustomization(
    tmp_path: Path, files: dict[str, str], namespace: str
) -> None:
    made = imported(tmp_path, {"web/web.yaml": release(namespace=""), **files})
    outcome, _ = only(made)
    built = Project(tmp_path).build()

    (found,) = [one for one in objects(built) if one["kind"] == "HelmRelease"]
    assert found["metadata"]["namespace"] == namespace
    assert outcome.lost == []
    assert any("namespace" in note for note in outcome.notes)


# Defaults, dependencies, names

BLOCK = "  install:\n    remediation:\n      retries: 3\n  upgrade:\n    cleanupOnFail: true\n"


def test_what_most_releases_say_is_said_once(tmp_path: Path) -> None:
    files = {f"{name}.yaml": release(BLOCK, name) for name in ("a", "b", "c")}
    made = imported(tmp_path, {**files, "d.yaml": release("  upgrade:\n    force: true\n", "d")})

    assert all(one.equal for one in made.outcomes)
    assert (
        "  release:\n    install:\n      remediation:\n        retries: 3\n    upgrade:\n      cleanupOnFail: true\n"
        in (tmp_path / "platform.yaml").read_text()
    )
    assert [name for name, text in made.definitions.items() if "release:" in text] == ["apps/d.yaml"]
    assert (
        "release:\n  upgrade:\n    force: true\n    cleanupOnFail: null\n  install: null\n"
        in (made.definitions["apps/d.yaml"])
    )


def test_dependencies_are_services_where_these_are_imported(tmp_path: Path) -> None:
    files = {
        "web.yaml": release("  dependsOn:\n    - name: db\n      namespace: data\n    - name: far\n"),
        "db.yaml": release(name="db", namespace="data"),
    }
    made = imported(tmp_path, files)

    assert all(one.equal for one in made.outcomes)
    assert "dependsOn:\n  - db\n  - helmRelease: apps/far\n" in made.definitions["apps/web.yaml"]


def test_dependencies_in_a_circle_stay_what_they_are(tmp_path: Path) -> None:
    files = {
        "a.yaml": release("  dependsOn: [{name: b}]\n", "a"),
        "b.yaml": release("  dependsOn: [{name: a}]\n", "b"),
    }
    made = imported(tmp_path, files)

    assert [one.lost for one in made.outcomes] == [[], []]


def test_two_releases_of_one_name_get_two_services(tmp_path: Path) -> None:
    files = {"a.yaml": release(name="redis", namespace="a"), "b.yaml": release(name="redis", namespace="b")}
    made = imported(tmp_path, files)

    assert [one.service for one in made.outcomes] == ["redis", "redis-b"]
    assert "objectName: redis\n" in made.definitions["b/redis-b.yaml"]


def test_a_name_with_a_variable_stays_the_name_of_the_object(tmp_path: Path) -> None:
    text = equal(tmp_path, {"web.yaml": release(values("host: ${APP}.${DOMAIN}"), name="${APP}")})

    assert text.startswith('name: app\nobjectName: "${APP}"\n')
    assert "  substitute:\n    - APP\n    - DOMAIN\n" in (tmp_path / "platform.yaml").read_text()


# Older versions


def test_fields_that_v2_dropped_are_converted(tmp_path: Path) -> None:
    old = release(
        "  postRenderers:\n    - kustomize:\n        patchesStrategicMerge:\n"
        "          - {apiVersion: v1, kind: Service, metadata: {name: a}}\n"
        "        patches:\n          - patch: x\n"
        "        patchesJson6902:\n          - target: {kind: Deployment, name: a}\n"
        "            patch:\n              - {op: remove, path: /a}\n"
    )
    old = old.replace("helm.toolkit.fluxcd.io/v2", "helm.toolkit.fluxcd.io/v2beta1")
    old = old.replace(
        "      chart: web\n", "      chart: web\n      valuesFile: one.yaml\n      valuesFiles: [two.yaml]\n"
    )
    made = imported(tmp_path, {"web.yaml": old})
    outcome, _ = only(made)
    built = Project(tmp_path).build()

    (found,) = [one for one in objects(built) if one["kind"] == "HelmRelease"]
    assert (outcome.equal, outcome.lost) == (True, [])
    assert found["spec"]["chart"]["spec"]["valuesFiles"] == ["one.yaml", "two.yaml"]
    assert found["spec"]["postRenderers"] == [
        {
            "kustomize": {
                "patches": [
                    {"patch": "apiVersion: v1\nkind: Service\nmetadata:\n  name: a\n"},
                    {"patch": "x"},
                    {"target": {"kind": "Deployment", "name": "a"}, "patch": "- op: remove\n  path: /a\n"},
                ]
            }
        }
    ]


# What stands beside


def test_objects_beside_a_release_ship_with_it(tmp_path: Path) -> None:
    config = "# why\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: web # this\ndata:\n  a: |\n    b\n"
    crd = "apiVersion: example.org/v1\nkind: Widget\nmetadata:\n  name: w\n  namespace: other\nspec: {}\n"
    files = {
        "web/web.yaml": release(),
        "web/config.yaml": config,
        "web/widget.yaml": crd,
        "web/kustomization.yaml": "namespace: apps\nresources: [web.yaml, config.yaml, widget.yaml]\n",
    }
    outcome, text = only(imported(tmp_path, files))

    assert outcome.lost == []
    assert text.partition("extraObjects:\n")[2] == (
        "  # why\n  - apiVersion: v1\n    kind: ConfigMap\n    metadata:\n      name: web # this\n"
        "      namespace: apps\n"
        "    data:\n      a: |\n        b\n"
        "  - apiVersion: example.org/v1\n    kind: Widget\n    metadata:\n      name: w\n      namespace: apps\n"
        "    spec: {}\n"
    )


def test_generators_without_files_ship_with_the_service(tmp_path: Path) -> None:
    files = {
        "web/web.yaml": release(),
        "web/kustomization.yaml": "resources: [web.yaml]\nconfigMapGenerator: [{name: a, literals: [b=c]}]\n"
        "secretGenerator: [{name: s, files: [s.txt]}]\n",
    }
    made = imported(tmp_path, files)
    _, text = only(made)

    assert "kustomize:\n  configMapGenerator:\n    - name: a\n      literals:\n        - b=c\n" in text
    assert [one.what for one in made.left] == ["`secretGenerator` of the kustomization"]


def test_objects_of_no_single_service_are_listed(tmp_path: Path) -> None:
    files = {
        "all/a.yaml": release(name="a"),
        "all/b.yaml": release(name="b"),
        "all/a-config.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a-config, namespace: apps}\n",
        "all/other.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other, namespace: apps}\n",
    }
    made = imported(tmp_path, files)

    assert "name: a-config" in made.definitions["apps/a.yaml"]
    assert [one.what for one in made.left] == ["`ConfigMap apps/other`"]


DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: apps
  labels: {LABELS}
spec:
  replicas: 2
  selector:
    matchLabels: {LABELS}
  template:
    metadata:
      labels: {LABELS}
    spec:
      containers:
        - name: web
          image: ghcr.io/example/web:1.2.3 # {"$imagepolicy": "flux-system:web"}
          ports:
            - name: http
              containerPort: 8080
---
apiVersion: v1
kind: Service
metadata:
  name: web
  namespace: apps
  labels: {LABELS}
spec:
  selector: {LABELS}
  ports:
    - name: http
      port: 80
      targetPort: http
"""


@pytest.mark.parametrize("labels", ["app.kubernetes.io/name: web", "app: web"])
def test_a_deployment_under_a_marker_is_a_service(tmp_path: Path, labels: str) -> None:
    made = imported(tmp_path, {"web/web.yaml": DEPLOYMENT.replace("LABELS", labels), "image.yaml": policy()})
    outcome, text = only(made)

    assert (outcome.equal, outcome.lost) == (True, [])
    assert ("workload:\n" in text) == labels.startswith("app.kubernetes.io")
    assert "update:\n  channel: custom\n" in text
    place = "extraObjects[kind=Deployment,name=web].spec.template.spec.containers[name=web].image"
    assert (place in text) == (labels == "app: web")


def test_a_deployment_without_a_marker_is_none(tmp_path: Path) -> None:
    text = re.sub(r" # \{.*\}", "", DEPLOYMENT).replace("LABELS", "app: web")

    assert codes(imported(tmp_path, {"web/web.yaml": text})) == ["R908"]


# What is there stays


def test_a_platform_file_that_exists_is_used_and_left_alone(tmp_path: Path) -> None:
    platform = (
        'cluster: home\nflux: {version: "2.8"}\ncharts:\n  upstream: {url: "https://charts.example.org/"}\n'
        "defaults: {interval: 1h, release: {maxHistory: 2}}\n"
    )
    made = imported(tmp_path, {"web.yaml": release()}, platform=platform)
    outcome, text = only(made)

    assert (tmp_path / "platform.yaml").read_text() == platform
    assert tmp_path / "platform.yaml" not in made.files
    assert "    repository: upstream\n" in text
    assert "release:\n  maxHistory: null\n" in text
    assert outcome.lost == []
    assert made.needed == ""


def test_services_of_the_catalog_keep_their_names(tmp_path: Path) -> None:
    (tmp_path / "catalog").mkdir()
    (tmp_path / "catalog/old.yaml").write_text(
        "name: web\nnamespace: old\nsource: {chart: {url: 'https://charts.example.org', name: web, version: 1.2.3}}\n"
    )
    made = imported(tmp_path, {"web.yaml": release(), "old.yaml": release(namespace="old")})

    assert [one.service for one in made.outcomes] == ["web-apps"]
    assert [one.why for one in made.left] == ["the catalog has it already"]


def test_one_broken_file_is_one_diagnostic(tmp_path: Path) -> None:
    broken = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\na: [\nb: 1\na: 2\n"
    made = imported(tmp_path, {"web.yaml": release(), "broken.yaml": broken})

    assert codes(made) == ["R003"]
    assert [one.equal for one in made.outcomes] == [True]


def test_charts_and_hidden_folders_are_passed_over(tmp_path: Path) -> None:
    template = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: {{ .Release.Name }}}\n"
    files = {
        "web.yaml": release(),
        "chart/Chart.yaml": "name: chart\n",
        "chart/templates/hr.yaml": template,
        ".github/x.yaml": template,
    }

    assert codes(imported(tmp_path, files)) == []


@pytest.mark.parametrize(
    "chart",
    [
        "  chart: {spec: {chart: web, version: 1.2.3}}\n",
        "  chart: {spec: {chart: web, sourceRef: charts}}\n",
        "  chart: {}\n",
        "  chartRef: {kind: OCIRepository}\n",
        "  chart: web\n",
    ],
)
def test_a_release_whose_chart_names_no_source_is_left(tmp_path: Path, chart: str) -> None:
    made = imported(tmp_path, {"web.yaml": release(chart=chart)})

    assert codes(made) == ["R908", "R901"]
    assert [one.what for one in made.left] == ["`HelmRelease apps/web`"]


def test_the_nearest_source_of_a_name_is_meant(tmp_path: Path) -> None:
    files = {}
    for name in ("a", "b"):
        chart = source(
            "OCIRepository", "app-template", "x", f"{OCI}-{name}, {LAYER}".replace(f"1.2.3}}-{name}", "1.2.3}")
        )
        files[f"{name}/oci.yaml"] = chart.replace(", namespace: x", "").replace("charts/web", f"charts/{name}")
        files[f"{name}/web.yaml"] = release(name=name, chart=ref("OCIRepository", "app-template"))
    made = imported(tmp_path, files)

    assert [one.lost for one in made.outcomes] == [[], []]
    assert "url: oci://ghcr.io/example/charts/a\n" in made.definitions["apps/a.yaml"]
    assert "url: oci://ghcr.io/example/charts/b\n" in made.definitions["apps/b.yaml"]


def test_sources_of_each_namespace_are_rendered_in_each(tmp_path: Path) -> None:
    shared = source("OCIRepository", "app-template", "x", f"{OCI}, {LAYER}").replace(", namespace: x", "")
    files = {
        "component/kustomization.yaml": "kind: Component\nresources: [oci.yaml]\n",
        "component/oci.yaml": shared,
    }
    for name in ("a", "b"):
        files[f"{name}/web.yaml"] = release(name=name, namespace="", chart=ref("OCIRepository", "app-template"))
        files[f"{name}/kustomization.yaml"] = f"namespace: {name}\nresources: [web.yaml]\ncomponents: [../component]\n"
    made = imported(tmp_path, files)
    built = Project(tmp_path).build()

    assert [(one.equal, one.lost) for one in made.outcomes] == [(True, []), (True, [])]
    found = [one["metadata"] for one in objects(built) if one["kind"] == "OCIRepository"]
    assert found == [{"name": "app-template", "namespace": "a"}, {"name": "app-template", "namespace": "b"}]


def test_namespaces_that_are_declared_are_left_to_the_repository(tmp_path: Path) -> None:
    namespace = "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: apps\n"
    made = imported(tmp_path / "all", {"web/web.yaml": release(), "ns.yaml": namespace})
    some = imported(
        tmp_path / "some",
        {"web/web.yaml": release(), "ns.yaml": namespace, "db.yaml": release(name="db", namespace="data")},
    )

    assert "  namespaces: false\n" in made.files[tmp_path / "all/platform.yaml"]
    assert "namespaces" not in some.files[tmp_path / "some/platform.yaml"]
    assert [one.what for one in some.left] == ["`Namespace apps`"]


def test_a_workload_whose_policy_was_not_read_is_noted(tmp_path: Path) -> None:
    text = DEPLOYMENT.replace("LABELS", "app.kubernetes.io/name: web")
    outcome, _ = only(imported(tmp_path, {"web/web.yaml": text}))

    assert (outcome.equal, outcome.lost) == (False, [])
    assert any("not among what was read" in note for note in outcome.notes)


def test_comments_that_hold_secrets_are_not_shown(tmp_path: Path) -> None:
    outcome, _ = only(imported(tmp_path, {"web.yaml": "# password: hunter2\n" + release()}))

    assert [line for line, _ in outcome.comments] == [1]
    assert "hunter2" not in outcome.comments[0][1]


def test_flux_kustomizations_are_listed_with_what_they_say(tmp_path: Path) -> None:
    more = "dependsOn: [{name: db}], postBuild: {substitute: {APP: web}}, components: [../x]"
    made = imported(tmp_path, {"web/web.yaml": release(), "flux.yaml": flux("./web", more)})

    (left,) = made.left
    assert left.what == "`Kustomization flux-system/web`"
    assert left.why.endswith("; this one says `dependsOn` (db), `postBuild.substitute` (APP), `components`")


def test_what_no_kustomization_lists_is_left_or_warned_of(tmp_path: Path) -> None:
    config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: apps}\n"
    files = {
        "web/web.yaml": release(),
        "web/x.yaml": config,
        "web/kustomization.yaml": "resources: [web.yaml]\n",
        "idle/db.yaml": release(name="db"),
        "flux.yaml": flux("./web", "wait: true"),
    }
    made = imported(tmp_path, files)

    assert codes(made) == ["R910"]
    assert made.diagnostics[0].message == "`HelmRelease apps/db` is applied by nothing that was read"
    assert "the kustomization of its folder does not list it" in {one.why for one in made.left}


@pytest.mark.parametrize(
    "files",
    [
        {"flux.yaml": flux("./", "wait: true")},
        {"flux.yaml": flux("./apps", "wait: true")},
        {"flux.yaml": flux("./apps/web", "wait: true")},
        {
            "flux.yaml": flux("./apps", "wait: true"),
            "apps/kustomization.yaml": "resources: [web]\n",
            "apps/web/kustomization.yaml": "resources: [web.yaml]\n",
        },
        {"flux.yaml": flux("./apps", "wait: true"), "apps/web/kustomization.yaml": "resources: [web.yaml]\n"},
    ],
)
def test_what_a_flux_kustomization_reaches_is_applied(tmp_path: Path, files: dict[str, str]) -> None:
    assert codes(imported(tmp_path, {"apps/web/web.yaml": release(), **files})) == []


def test_lines_of_other_systems_come_out_as_ours(tmp_path: Path) -> None:
    text = "\ufeff" + release(values("a: 1 # one\nb: |\n  c\n  d\nimage:\n  repository: a/b\n  tag: v1"))
    path = tmp_path / "repo/web.yaml"
    path.parent.mkdir()
    path.write_bytes(text.replace("\n", "\r\n").encode())
    (tmp_path / "repo/charts.yaml").write_text(CHARTS)
    made = import_repository([tmp_path / "repo"], Target(tmp_path / "catalog", tmp_path / "platform.yaml"))
    outcome, written = only(made)

    assert (outcome.equal, outcome.lost) == (True, [])
    assert written.endswith("values:\n  a: 1 # one\n  b: |\n    c\n    d\n")
    assert "\r" not in written


def test_the_version_of_flux_is_that_of_its_manifest(tmp_path: Path) -> None:
    manifest = "---\n# This manifest was generated by flux. DO NOT EDIT.\n# Flux Version: v2.8.3\nkind: {broken\n"
    made = imported(tmp_path, {"web.yaml": release(), "flux-system/gotk-components.yaml": manifest})

    assert '  version: "2.8"\n' in made.files[tmp_path / "platform.yaml"]
    assert made.platform_notes == []
    assert made.diagnostics == []


def in_list(*texts: str) -> str:
    items = "".join(
        f"- {line}\n" if not index else f"  {line}\n" if line else "\n"
        for text in texts
        for index, line in enumerate(text.splitlines())
    )
    return f"apiVersion: v1\nkind: List\nitems:\n{items}"


def test_the_items_of_a_list_are_objects(tmp_path: Path) -> None:
    one = release("  # gone\n" + values("# kept\na: 1 # one\nb: 2"), name="one")
    two = release(values("# too\nc: 1"), name="two")
    made = imported(tmp_path, {"list.yaml": in_list(one, CHARTS, two), "charts.yaml": "{}\n"})

    assert [(found.service, found.equal) for found in made.outcomes] == [("one", True), ("two", True)]
    assert [[text for _, text in found.comments] for found in made.outcomes] == [[], []]
    assert made.definitions["apps/one.yaml"].endswith("values:\n  # gone\n  # kept\n  a: 1 # one\n  b: 2\n")
    assert made.definitions["apps/two.yaml"].endswith("values:\n  # too\n  c: 1\n")
    assert (codes(made), made.left) == ([], [])


def test_a_dropped_comment_of_an_item_is_told_once(tmp_path: Path) -> None:
    one, two = (release(name=name).replace("\nspec:\n", f"\nspec: # of {name}\n") for name in ("one", "two"))
    made = imported(tmp_path, {"list.yaml": in_list(one, two)})

    assert [[text for _, text in found.comments] for found in made.outcomes] == [["# of one"], ["# of two"]]


def test_lists_of_json_and_lists_in_lists_are_read(tmp_path: Path) -> None:
    objects_ = [yaml.safe_load(release(values("a: 1"), name=name)) for name in ("one", "two")]
    inner = {"apiVersion": "v1", "kind": "List", "items": objects_[1:]}
    outer = {"apiVersion": "v1", "kind": "HelmReleaseList", "items": [objects_[0], inner, None]}
    for indent in (None, 2):
        made = imported(tmp_path / str(indent), {"list.yaml": json.dumps(outer, indent=indent)})

        assert [(found.service, found.equal) for found in made.outcomes] == [("one", True), ("two", True)]


@pytest.mark.parametrize("where", ["", "apps"])
def test_overlays_that_agree_on_the_namespace_give_it(tmp_path: Path, where: str) -> None:
    overlay = "namespace: apps\nresources: [../base]\n"
    made = imported(
        tmp_path,
        {
            "base/web.yaml": release(namespace=where),
            "base/kustomization.yaml": "resources: [web.yaml]\n",
            "one/kustomization.yaml": overlay,
            "two/kustomization.yaml": overlay if not where else "resources: [../base]\n",
        },
    )

    assert codes(made) == []
    assert made.outcomes[0].object == "HelmRelease apps/web"


def test_overlays_with_namespaces_of_their_own_are_warned_of(tmp_path: Path) -> None:
    made = imported(
        tmp_path,
        {
            "base/web.yaml": release(namespace=""),
            "base/kustomization.yaml": "resources: [web.yaml]\n",
            "one/kustomization.yaml": "namespace: first\nresources: [../base]\n",
            "two/kustomization.yaml": "namespace: second\nresources: [../base]\n",
        },
    )

    assert codes(made) == ["R902"]
    assert re.sub(r"from \S*repo/", "from ", made.diagnostics[0].cause) == (
        "it gets `first` from one/kustomization.yaml and `second` from two/kustomization.yaml; "
        "its definition says `first`"
    )
    assert made.outcomes[0].notes[0].startswith("the namespace `first` is from ")


def test_a_folder_that_an_overlay_lists_and_flux_applies_has_two_namespaces(tmp_path: Path) -> None:
    made = imported(
        tmp_path,
        {
            "flux.yaml": flux("./apps", "wait: true"),
            "apps/base/web.yaml": release(namespace=""),
            "apps/base/kustomization.yaml": "namespace: first\nresources: [web.yaml]\n",
            "apps/over/kustomization.yaml": "namespace: second\nresources: [../base]\n",
        },
    )

    assert codes(made) == ["R902"]


def test_what_is_no_object_does_not_refuse_its_neighbour(tmp_path: Path) -> None:
    odd = "apiVersion: 1\nkind: Thing\nmetadata: {name: x}\n---\napiVersion: v1\nkind: [a]\n"
    made = imported(tmp_path, {"apps/web.yaml": release(), "apps/odd.yaml": odd})

    assert only(made)[0].equal
    assert codes(made) == []


def test_a_field_of_another_type_is_a_loss_and_no_crash(tmp_path: Path) -> None:
    chart = CHART.replace("      chart: web\n", "      chart: web\n      reconcileStrategy: [null]\n")
    made = imported(tmp_path, {"web.yaml": release(chart=chart)})

    assert made.failed
    assert made.outcomes[0].lost


def test_one_entry_with_the_digest_is_enough_for_two_images_of_a_name(tmp_path: Path) -> None:
    digest = "sha256:" + "a" * 64
    image = "docker.io/library/redis:latest@" + digest
    files = {
        "catalog/web.yaml": f"""\
            name: web
            source:
              image: {{ref: "{image}", at: image}}
              chart: {{url: "https://charts.example.org", name: web, version: 1.0.0}}
            update: {{channel: digest}}
            images:
              side: {{ref: "{image}", at: side, update: {{channel: digest}}}}
            """
    }
    outcome, text = only(imported_again(tmp_path, files))

    assert (outcome.equal, outcome.lost) == (True, [])
    assert text.count(digest) == 2


def test_entries_without_a_marker_stand_beside_those_with_one(tmp_path: Path) -> None:
    files = {
        "catalog/web.yaml": """\
            name: web
            source:
              image: {ref: "ghcr.io/o/web:1.2.3", shape: postRenderer}
              chart: {url: "https://charts.example.org", name: web, version: 1.0.0}
            images:
              side: {ref: "docker.io/library/redis:1.2.3", shape: postRenderer, update: {range: 1.x}}
            """
    }
    outcome, text = only(imported_again(tmp_path, files))

    assert (outcome.equal, outcome.lost) == (True, [])
    assert text.count("shape: postRenderer") == 2


@pytest.mark.parametrize("shape", ["tag", "string", "split", "digest"])
def test_an_image_at_two_places_is_one(tmp_path: Path, shape: str) -> None:
    more = ", digest: always" if shape == "digest" else ""
    files = {
        "catalog/web.yaml": f"""\
            name: web
            source:
              chart: {{url: "https://charts.example.org", name: web, version: 1.0.0}}
            images:
              side: {{ref: "ghcr.io/o/web:1.2.3", shape: {shape}, at: [side, deep.side],
                update: {{range: 1.x{more}}}}}
            """
    }
    outcome, text = only(imported_again(tmp_path, files))

    assert (outcome.equal, outcome.lost) == (True, [])
    assert "at:\n      - side\n      - deep.side\n" in text


def test_a_name_between_two_marked_tags_is_no_part_of_either(tmp_path: Path) -> None:
    files = {
        "catalog/web.yaml": """\
            name: web
            source:
              image: {ref: "ghcr.io/o/web:1.2.3", shape: tag, at: image}
              chart: {url: "https://charts.example.org", name: web, version: 1.0.0}
            update: {range: 1.x}
            images:
              side:
                ref: "ghcr.io/o/web:1.2.3"
                at: {repository: sideName, tag: side.tag}
                update: {range: 1.x}
            """
    }
    outcome, text = only(imported_again(tmp_path, files))

    assert (outcome.equal, outcome.lost) == (True, [])
    assert text.count("shape: tag") == 2
    assert "sideName: " in text


def imported_again(folder: Path, files: dict[str, str]) -> Imported:
    """Render a catalog, and import what comes out of it."""
    built = project(folder / "own", files).build()
    assert not built.failed
    return imported(folder, {**built.files, "charts.yaml": "{}\n"})


# The catalog of this repository


CLUSTERS = {"home": "platform.yaml", "airgap": "platform-airgap.yaml", "home-no-image-automation": "platform.yaml"}


@pytest.fixture(scope="module", params=CLUSTERS)
def own(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Imported, Path]:
    cluster: str = request.param
    folder = tmp_path_factory.mktemp(cluster)
    target = Target(folder / "catalog", folder / CLUSTERS[cluster])
    made = import_repository([ROOT / "goldens" / cluster], target)
    for file, text in made.files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return cluster, made, folder


def test_the_shipped_catalog_comes_back_from_its_own_output(own: tuple[str, Imported, Path]) -> None:
    cluster, made, _ = own

    assert [(one.service, one.lost) for one in made.outcomes if not one.equal] == []
    assert {one.service for one in made.outcomes if one.notes or one.comments} == {"vm-demo"}
    services = {path.name for path in (ROOT / "goldens" / cluster / "apps").iterdir() if path.is_dir()} - {"sources"}
    assert {one.service for one in made.outcomes} == services
    assert made.diagnostics == []
    assert made.left == []


def test_it_renders_the_same_files_again(own: tuple[str, Imported, Path]) -> None:
    cluster, _, folder = own
    if cluster == "home-no-image-automation":
        pytest.skip("updates, which decide on bytes of other files too, are not in the tree")
    with contextlib.chdir(folder):
        again = dict(build(Path("catalog"), Path(CLUSTERS[cluster])).files.items())
    top = ROOT / "goldens" / cluster
    goldens = {path.relative_to(top).as_posix(): path.read_text(encoding="utf-8") for path in top.rglob("*.yaml")}
    # A virtual machine comes back as the object that it is rendered to, which needs no check of its health by `render`.
    machine = {"configs/vm-demo/vm.yaml": "configs/vm-demo/extra.yaml"}
    moved = {machine.get(name, name): text for name, text in goldens.items()}
    differing = {name for name in moved if again.get(name) != moved[name]}

    assert set(again) == set(moved)
    # Images that leave the middle of `values` come back at the end: the same object in another order.
    assert differing <= {
        "apps/external-dns/helmrelease.yaml",
        "apps/miniflux/helmrelease.yaml",
        "configs/vm-demo/kustomization.yaml",
        "flux/kustomizations.yaml",
    }
    for name in differing - {"configs/vm-demo/kustomization.yaml"}:
        one, other = objects(again[name]), objects(moved[name])
        for found in other:
            found["spec"].pop("healthCheckExprs", None)
        assert one == other


# The command


def repository(folder: Path, **files: str) -> Project:
    return project(folder, {"repo/web.yaml": release(), "repo/charts.yaml": CHARTS, **files})


def test_dry_run_writes_nothing(tmp_path: Path) -> None:
    made = repository(tmp_path)
    before = sorted(path.as_posix() for path in tmp_path.rglob("*"))
    ran = made.run("import", "repo", "--dry-run")

    assert ran.code == 0
    assert ran.out.startswith("HelmRelease apps/web -> web: equal\n")
    assert ran.err.endswith("1 service: 1 equal, 0 equal but for what is noted, 0 with losses; 3 files not written\n")
    assert sorted(path.as_posix() for path in tmp_path.rglob("*")) == before


def test_json_tells_all_of_it(tmp_path: Path) -> None:
    made = repository(tmp_path)
    ran = made.run("import", "repo", "--format", "json")
    told: dict[str, Any] = json.loads(ran.out)

    assert (ran.code, ran.err) == (0, "")
    assert told["version"] == 1
    assert told["releases"] == [
        {
            "source": "repo/web.yaml:1:1",
            "object": "HelmRelease apps/web",
            "service": "web",
            "file": "apps/web.yaml",
            "equal": True,
            "lost": [],
            "notes": [],
            "comments": [],
        }
    ]
    assert told["written"] is True
    assert "catalog/apps/web.yaml" in told["files"]
    assert [one["code"] for one in told["diagnostics"]] == ["R906"]
    assert told["platform"]["needed"].startswith("charts:\n")


def test_the_bytes_depend_on_nothing_but_the_input(tmp_path: Path) -> None:
    made = repository(tmp_path, **{"repo/db.yaml": release(marked("1.2.3"), "db"), "repo/image.yaml": policy()})
    told = []
    for seed in ("1", "2"):
        ran = subprocess.run(
            [sys.executable, "-m", "render", "import", "repo", "--platform", "new.yaml", "--format", "json"],
            cwd=made.folder,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            check=False,
        )
        files = [made.folder / "new.yaml", *sorted(made.folder.glob("catalog/**/*.yaml"))]
        told.append((ran.stdout, {file: file.read_bytes() for file in files}))
        for file in (*files, *made.folder.glob("catalog/.schema/*")):
            file.unlink()

    assert told[0] == told[1]


def test_importing_twice_adds_nothing(tmp_path: Path) -> None:
    made = repository(tmp_path)
    assert made.run("import", "repo").code == 0
    before = made.tree()
    ran = made.run("import", "repo")

    assert ran.code == 1
    assert "nothing to import" in ran.err
    assert made.tree() == before


def test_a_pull_request_shows_losses_at_their_lines(tmp_path: Path) -> None:
    odd = release().replace("  namespace: apps\n", "  namespace: apps\n  finalizers: [a/b]\n")
    ran = project(tmp_path, {"repo/web.yaml": odd, "repo/charts.yaml": CHARTS}).run(
        "import", "repo", "--format", "github", "--platform", "new.yaml"
    )

    assert ran.code == 1
    assert ran.out.startswith("::error file=repo/web.yaml,line=1,col=1,title=R905::")


def test_concise_tells_only_losses(tmp_path: Path) -> None:
    ran = repository(tmp_path).run("import", "repo", "--format", "concise", "--platform", "new.yaml", "--quiet")

    assert (ran.code, ran.out, ran.err) == (0, "", "")


def test_losses_make_the_exit_code(tmp_path: Path) -> None:
    odd = release().replace("  namespace: apps\n", "  namespace: apps\n  finalizers: [a/b]\n")
    ran = repository(tmp_path, **{"repo/odd.yaml": odd.replace("name: web", "name: odd", 1)}).run("import", "repo")

    assert ran.code == 1
    assert "  lost: metadata.finalizers\n" in ran.out


def test_warnings_fail_only_where_asked(tmp_path: Path) -> None:
    made = project(tmp_path, {"repo/web.yaml": release()})

    assert made.run("import", "repo", "--dry-run").code == 0
    assert made.run("import", "repo", "--dry-run", "--fail-on", "warning").code == 1


def test_out_is_the_root_of_a_new_platform_file(tmp_path: Path) -> None:
    made = repository(tmp_path)
    ran = made.run("import", "repo", "--platform", "new.yaml", "--out", "clusters/x")

    assert ran.code == 0
    assert "root: clusters/x\n" in (tmp_path / "new.yaml").read_text()
