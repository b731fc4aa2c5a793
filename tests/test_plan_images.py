from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest
import yaml

from render.build import Build
from render.catalog import read_definitions, read_platform
from render.flux.overrides import Table
from render.plan.context import Context, Report
from render.plan.images import Images
from render.plan.policy import Policies
from render.plan.writing import Writer
from tests.project import PLATFORM, objects, only, project, told

HEX = "0123456789abcdef" * 4
D = f"sha256:{HEX}"
CHART = '  chart:\n    url: oci://charts.example.org/web\n    version: "1.0.0"\n'
FIXED, MOVING = "", "update: {range: 1.x}\n"
RANGE = {"range": "1.x"}


def mark(part: str = "", policy: str = "web") -> str:
    """Return the marker of a policy, after one blank."""
    return f' # {{"$imagepolicy": "flux-system:{policy}{part}"}}'


def service(image: str, more: str = "") -> str:
    """Return a service with a chart, `image` after `source.image:`."""
    return f"name: web\nsource:\n  image: {image}\n{CHART}{more}"


def made(folder: Path, text: str, platform: str = PLATFORM, *, automation: bool = True) -> Build:
    return project(folder, {"catalog/web.yaml": text, "platform.yaml": platform}).build(automation=automation)


def release(folder: Path, text: str, platform: str = PLATFORM, *, automation: bool = True) -> str:
    """Return the release of the only service."""
    built = made(folder, text, platform, automation=automation)
    assert not built.failed, told(built)
    return built.files["apps/web/helmrelease.yaml"]


def section(text: str, field: str) -> str:
    """Return what stands below a field of the spec."""
    lines = text.splitlines()
    start = lines.index(f"  {field}:") + 1
    end = next((i for i, line in enumerate(lines) if i >= start and line[:3].strip(" ") not in ("", "-")), len(lines))
    return textwrap.dedent("\n".join(lines[start:end])) + "\n"


def values(folder: Path, text: str, platform: str = PLATFORM, *, automation: bool = True) -> str:
    return section(release(folder, text, platform, automation=automation), "values")


def entries(folder: Path, text: str, platform: str = PLATFORM) -> str:
    """Return the release's post-renderers."""
    return section(release(folder, text, platform), "postRenderers")


def lines(text: str) -> str:
    return textwrap.dedent(text).lstrip("\n")


def faults(folder: Path, text: str, platform: str = PLATFORM) -> list[str]:
    """Return codes and messages."""
    built = made(folder, text, platform)
    return [f"{fault.code} {fault.message}" for fault in built.diagnostics]


# The six shapes: what stands at `at`, fixed and automated

REF = "ghcr.io/example/web:1.2.3"
WRITTEN = {
    "split": (
        REF,
        lines(f"""
        image:
          repository: ghcr.io/example/web
          tag: "1.2.3"{mark(":tag")}
        """),
    ),
    "registry": (
        REF,
        lines(f"""
        image:
          registry: ghcr.io
          repository: example/web
          tag: "1.2.3"{mark(":tag")}
        """),
    ),
    "digest": (
        f"{REF}@{D}",
        lines(f"""
        image:
          repository: ghcr.io/example/web
          tag: "1.2.3"{mark(":tag")}
          digest: "{D}"{mark(":digest")}
        """),
    ),
    "string": (REF, f'image: "{REF}"{mark()}\n'),
    "tag": (REF, f'image: "1.2.3"{mark(":tag")}\n'),
}


@pytest.mark.parametrize("shape", WRITTEN)
def test_shape_is_written_with_its_markers(tmp_path: Path, shape: str) -> None:
    ref, expected = WRITTEN[shape]

    assert values(tmp_path, service(f"{{ref: '{ref}', shape: {shape}}}", MOVING)) == expected


@pytest.mark.parametrize("shape", WRITTEN)
def test_fixed_image_is_quoted_alike_without_markers(tmp_path: Path, shape: str) -> None:
    ref, expected = WRITTEN[shape]
    bare = "".join(line.partition(" # ")[0].rstrip("\n") + "\n" for line in expected.splitlines())

    assert values(tmp_path, service(f"{{ref: '{ref}', shape: {shape}}}", FIXED)) == bare


@pytest.mark.parametrize("shape", WRITTEN)
def test_without_image_automation_only_the_markers_are_missing(tmp_path: Path, shape: str) -> None:
    ref, _ = WRITTEN[shape]
    text = service(f"{{ref: '{ref}', shape: {shape}}}", MOVING)

    automated = release(tmp_path / "with", text)
    manual = release(tmp_path / "without", text, automation=False)

    assert [line.partition(" # {")[0] for line in automated.splitlines()][1:] == manual.splitlines()[1:]
    assert "imagepolicy" not in manual


def test_split_at_image_is_the_default(tmp_path: Path) -> None:
    assert values(tmp_path, service(REF, MOVING)) == WRITTEN["split"][1]


def test_post_renderer_shape_writes_an_entry_and_no_values(tmp_path: Path) -> None:
    text = release(tmp_path, service(f"{{ref: {REF}, shape: postRenderer}}", MOVING))

    assert "  values:" not in text
    assert section(text, "postRenderers") == lines(f"""
        - kustomize:
            images:
            - name: ghcr.io/example/web
              newTag: "1.2.3"{mark(":tag")}
        """)


def test_post_renderer_shape_carries_the_digest(tmp_path: Path) -> None:
    assert entries(tmp_path, service(f"{{ref: '{REF}@{D}', shape: postRenderer}}", MOVING)) == lines(f"""
        - kustomize:
            images:
            - name: ghcr.io/example/web
              newTag: "1.2.3"{mark(":tag")}
              digest: "{D}"{mark(":digest")}
        """)


def test_fixed_post_renderer_entry_has_no_markers(tmp_path: Path) -> None:
    assert entries(tmp_path, service(f"{{ref: '{REF}@{D}', shape: postRenderer}}")) == lines(f"""
        - kustomize:
            images:
            - name: ghcr.io/example/web
              newTag: "1.2.3"
              digest: "{D}"
        """)


# Paths


@pytest.mark.parametrize(
    ("at", "given", "expected"),
    [
        ("image", "", "image: X\n"),
        ("controllers.web.image", "", "controllers:\n  web:\n    image: X\n"),
        ("'containers[0].image'", "containers: [{name: a}]", "containers:\n- name: a\n  image: X\n"),
        (
            "'containers[name=app].image'",
            "containers: [{name: log}, {name: app, args: [x]}]",
            "containers:\n- name: log\n- name: app\n  args:\n  - x\n  image: X\n",
        ),
        (
            "'containers[name=app,tier=web].image'",
            "containers: [{name: app, tier: db}, {name: app, tier: web}]",
            "containers:\n- name: app\n  tier: db\n- name: app\n  tier: web\n  image: X\n",
        ),
        ("""'"my.chart".image'""", "", "my.chart:\n  image: X\n"),
        ("""'a."b c".image'""", "a: {b: 1}", 'a:\n  b: 1\n  "b c":\n    image: X\n'),
        ("""'"8080".image'""", "", '"8080":\n  image: X\n'),
        ("'matrix[1][0]'", "matrix: [[a], ['']]", "matrix:\n- - a\n- - X\n"),
    ],
)
def test_path_leads_to_its_place(tmp_path: Path, at: str, given: str, expected: str) -> None:
    text = service(f"{{ref: {REF}, shape: string, at: {at}}}", f"values: {{{given}}}\n")

    assert values(tmp_path, text) == expected.replace("X", f'"{REF}"')


def test_missing_keys_are_appended_after_those_that_are_there(tmp_path: Path) -> None:
    text = service(REF, "values:\n  image:\n    pullPolicy: Always\n  replicas: 2\n")

    assert values(tmp_path, text) == lines("""
        image:
          pullPolicy: Always
          repository: ghcr.io/example/web
          tag: "1.2.3"
        replicas: 2
        """)


def test_value_that_is_there_already_may_be_the_same_or_empty(tmp_path: Path) -> None:
    text = service(REF, 'values:\n  image:\n    repository: ghcr.io/example/web\n    tag: ""\n    pullPolicy: Always\n')

    assert values(tmp_path, text) == lines("""
        image:
          repository: ghcr.io/example/web
          tag: "1.2.3"
          pullPolicy: Always
        """)


@pytest.mark.parametrize("empty", ["", "~", "null", "{}"])
def test_empty_value_at_the_path_is_filled(tmp_path: Path, empty: str) -> None:
    text = service(REF, f"values:\n  image: {empty}\n")

    assert yaml.safe_load(values(tmp_path, text)) == {"image": {"repository": "ghcr.io/example/web", "tag": "1.2.3"}}


def test_list_of_paths_writes_every_place(tmp_path: Path) -> None:
    text = service(f"{{ref: {REF}, at: [web.image, worker.image]}}", MOVING)

    assert values(tmp_path, text) == lines(f"""
        web:
          image:
            repository: ghcr.io/example/web
            tag: "1.2.3"{mark(":tag")}
        worker:
          image:
            repository: ghcr.io/example/web
            tag: "1.2.3"{mark(":tag")}
        """)


def test_map_of_parts_writes_each_part_at_its_own_path(tmp_path: Path) -> None:
    text = service(f"{{ref: {REF}, at: {{repository: imageRepository, tag: versions.web}}}}", MOVING)

    assert values(tmp_path, text) == lines(f"""
        imageRepository: ghcr.io/example/web
        versions:
          web: "1.2.3"{mark(":tag")}
        """)


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ("{tag: tag}", {"tag": "1.2.3"}),
        ("{registry: r, repository: p, tag: t}", {"r": "ghcr.io", "p": "example/web", "t": "1.2.3"}),
        ("{repository: p, tag: t, digest: d}", {"p": "ghcr.io/example/web", "t": "1.2.3"}),
    ],
)
def test_map_of_parts_says_the_shape(tmp_path: Path, parts: str, expected: dict[str, str]) -> None:
    assert yaml.safe_load(values(tmp_path, service(f"{{ref: {REF}, at: {parts}}}"))) == expected


def test_chart_entry_of_the_platform_gives_path_and_shape(tmp_path: Path) -> None:
    platform = PLATFORM + lines("""
        charts:
          base:
            url: oci://charts.example.org/base
            at: controllers.{service}.image
            shape: registry
        """)
    text = f'name: web\nsource:\n  image: {REF}\n  chart: {{repository: base, version: "1.0.0"}}\n'

    assert yaml.safe_load(values(tmp_path, text, platform)) == {
        "controllers": {"web": {"image": {"registry": "ghcr.io", "repository": "example/web", "tag": "1.2.3"}}}
    }


def test_service_overrules_path_and_shape_of_the_chart_entry(tmp_path: Path) -> None:
    platform = PLATFORM + "charts:\n  base: {url: 'oci://charts.example.org/base', at: a.image, shape: registry}\n"
    chart = "  chart: {repository: base, version: '1.0.0'}\n"
    text = f"name: web\nsource:\n  image: {{ref: {REF}, at: b, shape: string}}\n{chart}"

    assert values(tmp_path, text, platform) == f'b: "{REF}"\n'


@pytest.mark.parametrize("at", ["''", "a..b", ".a", "a.", "'[x'", "a b", "'a[b'", "'a[]'", """'"a'"""])
def test_text_that_is_no_path_is_refused(tmp_path: Path, at: str) -> None:
    (fault,) = made(tmp_path, service(f"{{ref: {REF}, at: {at}}}")).diagnostics

    assert fault.code == "R208"


@pytest.mark.parametrize(
    ("at", "given"),
    [
        ("'list[2].image'", "list: [{}, {}]"),
        ("'list[name=x].image'", "list: [{name: a}]"),
        ("'list[0].image'", "other: 1"),
        ("list.image", "list: [a]"),
        ("text.image", "text: a"),
        ("'map[0]'", "map: {a: 1}"),
    ],
)
def test_path_that_values_do_not_have_is_refused(tmp_path: Path, at: str, given: str) -> None:
    built = made(tmp_path, service(f"{{ref: {REF}, shape: string, at: {at}}}", f"values: {{{given}}}\n"))

    assert [fault.code for fault in built.diagnostics] == ["R211"]


def test_other_value_at_the_path_is_refused(tmp_path: Path) -> None:
    text = service(REF, 'values:\n  image:\n    repository: ghcr.io/example/web\n    tag: "1.2.4"\n')

    assert faults(tmp_path, text) == ["R211 `image.tag` of `values` holds another value than `source.image`"]


# References as they are spelled


@pytest.mark.parametrize(
    ("ref", "expected"),
    [
        ("nginx:1.27.0", {"repository": "nginx", "tag": "1.27.0"}),
        ("docker.io/library/nginx:1.27.0", {"repository": "docker.io/library/nginx", "tag": "1.27.0"}),
        ("'registry.corp.example:5000/web:1.2.3'", {"repository": "registry.corp.example:5000/web", "tag": "1.2.3"}),
        ("localhost/web:1.2.3", {"repository": "localhost/web", "tag": "1.2.3"}),
        ("ghcr.io/example/web", {"repository": "ghcr.io/example/web"}),
        (f"'ghcr.io/example/web:1.2.3@{D}'", {"repository": "ghcr.io/example/web", "tag": f"1.2.3@{D}"}),
    ],
)
def test_split_keeps_the_spelling(tmp_path: Path, ref: str, expected: dict[str, str]) -> None:
    assert yaml.safe_load(values(tmp_path, service(ref))) == {"image": expected}


@pytest.mark.parametrize(
    ("ref", "expected"),
    [
        ("ghcr.io/example/web:1.2.3", {"registry": "ghcr.io", "repository": "example/web", "tag": "1.2.3"}),
        ("nginx:1.27.0", {"registry": "docker.io", "repository": "nginx", "tag": "1.27.0"}),
        ("bitnami/redis:7.2.5", {"registry": "docker.io", "repository": "bitnami/redis", "tag": "7.2.5"}),
        (
            "'registry.corp.example:5000/a/b:1.2.3'",
            {"registry": "registry.corp.example:5000", "repository": "a/b", "tag": "1.2.3"},
        ),
    ],
)
def test_registry_shape_names_a_registry_always(tmp_path: Path, ref: str, expected: dict[str, str]) -> None:
    assert yaml.safe_load(values(tmp_path, service(f"{{ref: {ref}, shape: registry}}"))) == {"image": expected}


@pytest.mark.parametrize("shape", ["split", "registry", "tag"])
def test_digest_without_a_tag_goes_into_a_post_renderer(tmp_path: Path, shape: str) -> None:
    text = release(tmp_path, service(f"{{ref: 'ghcr.io/example/web@{D}', shape: {shape}}}"))

    assert "tag:" not in text
    assert section(text, "postRenderers") == lines(f"""
        - kustomize:
            images:
            - name: ghcr.io/example/web
              digest: "{D}"
        """)


def test_digest_without_a_tag_has_its_own_key_in_the_digest_shape(tmp_path: Path) -> None:
    text = release(tmp_path, service(f"{{ref: 'ghcr.io/example/web@{D}', shape: digest}}"))

    assert yaml.safe_load(section(text, "values")) == {"image": {"repository": "ghcr.io/example/web", "digest": D}}
    assert "postRenderers" not in text


def test_digest_without_a_tag_stands_in_a_string(tmp_path: Path) -> None:
    text = service(f"{{ref: 'ghcr.io/example/web@{D}', shape: string}}")

    assert values(tmp_path, text) == f'image: "ghcr.io/example/web@{D}"\n'


# Tag and digest of automated images

BOTH = f"{REF}@{D}"


@pytest.mark.parametrize("shape", ["split", "registry"])
def test_automated_digest_goes_into_a_post_renderer_entry(tmp_path: Path, shape: str) -> None:
    text = release(tmp_path, service(f"{{ref: '{BOTH}', shape: {shape}}}", MOVING))

    assert f'tag: "1.2.3"{mark(":tag")}\n' in section(text, "values")
    assert "sha256" not in section(text, "values")
    assert section(text, "postRenderers") == lines(f"""
        - kustomize:
            images:
            - name: ghcr.io/example/web
              newTag: "1.2.3"{mark(":tag")}
              digest: "{D}"{mark(":digest")}
        """)


def test_entry_of_the_registry_shape_names_what_the_chart_spells(tmp_path: Path) -> None:
    text = service(f"{{ref: 'nginx:1.27.0@{D}', shape: registry}}", MOVING)

    assert "- name: docker.io/nginx\n" in entries(tmp_path, text)


def test_overrides_meet_the_registry_shape_as_the_chart_spells_it(tmp_path: Path) -> None:
    platform = PLATFORM.replace(" []", "\n  - {name: nginx, newName: registry.corp.example/nginx}")

    built = made(tmp_path, service("{ref: 'nginx:1.27.0', shape: registry}", MOVING), platform)

    assert only(built, "ImageRepository")["spec"]["image"] == "docker.io/nginx"


def test_entry_names_what_the_releases_own_renderers_make_of_it(tmp_path: Path) -> None:
    own = "postRenderers:\n- kustomize:\n    images:\n    - {name: ghcr.io/example/web, newName: mirror.example/web}\n"

    assert "- name: mirror.example/web\n      newTag:" in entries(tmp_path, service(f"'{BOTH}'", MOVING + own))


def test_whole_image_marker_moves_the_digest_of_a_string(tmp_path: Path) -> None:
    text = release(tmp_path, service(f"{{ref: '{BOTH}', shape: string}}", MOVING))

    assert section(text, "values") == f'image: "{BOTH}"{mark()}\n'
    assert "postRenderers" not in text


def test_digest_that_is_followed_and_not_known_yet_has_its_place(tmp_path: Path) -> None:
    follow = "update: {range: 1.x, digest: always}\n"

    text = release(tmp_path, service(f"{{ref: {REF}, shape: digest}}", follow))

    assert f'digest: ""{mark(":digest")}\n' in text


@pytest.mark.parametrize(
    ("ref", "update", "policy", "interval"),
    [
        (REF, "range: 1.x", None, None),
        (BOTH, "range: 1.x", "IfNotPresent", None),
        (BOTH, "range: 1.x, digest: always, cadence: 6h", "Always", "6h"),
        (REF, "range: 1.x, digest: ifNotPresent", "IfNotPresent", None),
        (REF, "range: 1.x, digest: never", None, None),
        ("ghcr.io/example/web:latest", "channel: digest", "Always", "1h"),
        (f"ghcr.io/example/web:latest@{D}", "channel: digest, cadence: 30m", "Always", "30m"),
        (f"ghcr.io/example/web:latest@{D}", "channel: digest, digest: ifNotPresent", "IfNotPresent", None),
    ],
)
def test_digest_policy_and_its_interval(
    tmp_path: Path, ref: str, update: str, policy: str | None, interval: str | None
) -> None:
    built = made(tmp_path, service(f"{{ref: '{ref}', shape: string}}", f"update: {{{update}}}\n"))

    spec = only(built, "ImagePolicy")["spec"]
    assert (spec.get("digestReflectionPolicy"), spec.get("interval")) == (policy, interval)


@pytest.mark.parametrize(
    ("image", "update"),
    [
        (f"'{BOTH}'", "range: 1.x, digest: never"),
        (f"{{ref: '{BOTH}', shape: tag}}", "range: 1.x"),
        (f"{{ref: {REF}, shape: tag}}", "range: 1.x, digest: ifNotPresent"),
        (REF, "channel: digest, digest: never"),
    ],
)
def test_digest_that_would_be_left_behind_is_refused(tmp_path: Path, image: str, update: str) -> None:
    (fault,) = made(tmp_path, service(image, f"update: {{{update}}}\n")).diagnostics

    assert fault.code == "R706"


# Pins


@pytest.mark.parametrize(
    ("pin", "tag"), [("1.2.0", "1.2.0"), (f"1.2.0@{D}", f"1.2.0@{D}"), ("weird_TAG-1", "weird_TAG-1")]
)
def test_pin_writes_its_version_and_automates_nothing(tmp_path: Path, pin: str, tag: str) -> None:
    built = made(tmp_path, service(REF, f"update: {{pin: '{pin}', range: 9.x}}\n"))

    assert not built.failed, told(built)
    assert only(built, "HelmRelease")["spec"]["values"]["image"]["tag"] == tag
    assert {"ImagePolicy", "ImageRepository"}.isdisjoint(one["kind"] for one in objects(built))
    assert "imagepolicy" not in "".join(built.files.values())
    assert built.files["apps/web/kustomization.yaml"].endswith("resources:\n- source.yaml\n- helmrelease.yaml\n")


def test_pin_replaces_the_version_that_stands_in_values_too(tmp_path: Path) -> None:
    text = values(tmp_path, service(REF, "update: {pin: 1.2.0}\n" + THERE))

    assert yaml.safe_load(text)["image"]["tag"] == "1.2.0"


def test_pin_keeps_the_automatic_rollback(tmp_path: Path) -> None:
    assert "strategy: rollback" in release(tmp_path, service(REF, "update: {pin: 1.2.0}\n"))


# Reading from values

THERE = "values:\n  image:\n    repository: ghcr.io/example/web\n    tag: '1.2.3'\n    pullPolicy: Always\n"


def test_image_without_ref_is_read_from_values_and_marked_there(tmp_path: Path) -> None:
    assert values(tmp_path, service("{at: image}", MOVING + THERE)) == lines(f"""
        image:
          repository: ghcr.io/example/web
          tag: "1.2.3"{mark(":tag")}
          pullPolicy: Always
        """)


def test_fixed_image_that_is_read_from_values_stays_as_it_is(tmp_path: Path) -> None:
    assert "    tag: '1.2.3'\n".strip() in values(tmp_path, service("{at: image}", THERE))


@pytest.mark.parametrize(
    ("given", "image"),
    [
        ("{repository: example/web, tag: '1.2.3'}", "example/web"),
        ("{registry: ghcr.io, repository: example/web, tag: '1.2.3'}", "ghcr.io/example/web"),
        (f"{{repository: example/web, tag: '1.2.3@{D}'}}", "example/web"),
        (f"{{repository: example/web, tag: '1.2.3', digest: '{D}'}}", "example/web"),
        ("ghcr.io/example/web:1.2.3", "ghcr.io/example/web"),
        (f"'ghcr.io/example/web:1.2.3@{D}'", "ghcr.io/example/web"),
    ],
)
def test_shape_is_read_from_values_too(tmp_path: Path, given: str, image: str) -> None:
    built = made(tmp_path, service("{at: image}", f"{MOVING}values:\n  image: {given}\n"))

    assert not built.failed, told(built)
    assert only(built, "ImageRepository")["spec"]["image"] == image


def test_digest_inside_the_tag_of_values_moves_into_an_entry(tmp_path: Path) -> None:
    inside = f"values:\n  image: {{repository: example/web, tag: '1.2.3@{D}'}}\n"

    text = release(tmp_path, service("{at: image}", MOVING + inside))

    assert f'tag: "1.2.3"{mark(":tag")}' in section(text, "values")
    assert f'digest: "{D}"{mark(":digest")}' in section(text, "postRenderers")


def test_digest_key_of_values_is_marked(tmp_path: Path) -> None:
    own = f"values:\n  image: {{repository: example/web, tag: '1.2.3', digest: '{D}'}}\n"

    text = values(tmp_path, service("{at: image}", MOVING + own))

    assert f'tag: "1.2.3"{mark(":tag")}\n' in text
    assert f'digest: "{D}"{mark(":digest")}\n' in text


def test_places_that_alias_what_is_read_are_sites_too(tmp_path: Path) -> None:
    aliased = lines("""
        values:
          image: &image
            repository: ghcr.io/example/web
            tag: &tag "1.2.3"
          worker:
            image: *image
          labels:
            version: *tag
          migration:
            image:
              <<: *image
              pullPolicy: Never
        """)

    text = values(tmp_path, service("{at: image}", MOVING + aliased))

    assert text.count(f'tag: "1.2.3"{mark(":tag")}\n') == 3
    assert f'version: "1.2.3"{mark(":tag")}\n' in text
    assert "*" not in text


def test_parts_are_read_at_their_paths(tmp_path: Path) -> None:
    given = "values: {imageRepository: ghcr.io/example/web, imageTag: '1.2.3'}\n"
    text = service("{at: {repository: imageRepository, tag: imageTag}}", MOVING + given)

    assert values(tmp_path, text) == f'imageRepository: ghcr.io/example/web\nimageTag: "1.2.3"{mark(":tag")}\n'


@pytest.mark.parametrize(
    ("image", "given", "code"),
    [
        ("{at: image}", "{}", "R209"),
        ("{at: image}", "{image: [a]}", "R209"),
        ("{at: image}", "{image: {tag: '1'}}", "R209"),
        ("{at: image}", "{image: {repository: {a: b}, tag: '1'}}", "R209"),
        ("{at: image, shape: split}", "{image: 'a:1'}", "R209"),
        ("{at: image}", "{image: {repository: a, tag: 1.20}}", "R103"),
        ("{at: image}", "{image: {repository: Upper, tag: '1'}}", "R205"),
        ("{at: image}", "{image: 'http://a'}", "R205"),
        ("{shape: postRenderer}", "{}", "R102"),
    ],
)
def test_what_cannot_be_read_as_an_image_is_refused(tmp_path: Path, image: str, given: str, code: str) -> None:
    (fault,) = made(tmp_path, service(image, f"values: {given}\n")).diagnostics

    assert fault.code == code


# Images that operators start

CORP = PLATFORM.replace(" []", "\n  - {name: ghcr.io/example/web, newName: registry.corp.example/web}")


def test_image_in_reach_of_values_alone_is_written_as_the_cluster_pulls_it(tmp_path: Path) -> None:
    text = service(f"{{ref: {REF}, at: operator.image, reach: values}}", MOVING)

    assert yaml.safe_load(values(tmp_path, text, CORP)) == {
        "operator": {"image": {"repository": "registry.corp.example/web", "tag": "1.2.3"}}
    }


def test_image_in_reach_of_the_renderers_is_written_as_declared(tmp_path: Path) -> None:
    assert yaml.safe_load(values(tmp_path, service(REF, MOVING), CORP)) == {
        "image": {"repository": "ghcr.io/example/web", "tag": "1.2.3"}
    }


def test_image_read_from_values_in_reach_of_values_alone_is_rewritten(tmp_path: Path) -> None:
    text = service("{at: image, reach: values}", THERE)

    assert "repository: registry.corp.example/web\n" in values(tmp_path, text, CORP)


CLUSTER = lines("""
    extraObjects:
    - apiVersion: postgresql.cnpg.io/v1
      kind: Cluster
      metadata:
        name: pg
      spec:
        imageName: ""
    """)


@pytest.mark.parametrize("select", ["[kind=Cluster,name=pg]", "[0]", "[kind=Cluster]", "[name=pg]"])
def test_image_in_an_extra_object_is_marked_there(tmp_path: Path, select: str) -> None:
    image = f"{{ref: '{REF}', at: 'extraObjects{select}.spec.imageName', shape: string}}"
    text = f"name: web\nsource:\n  image: {image}\n{MOVING}{CLUSTER}"

    built = made(tmp_path, text)

    assert not built.failed, told(built)
    assert f'    imageName: "{REF}"{mark()}\n'[2:] in built.files["configs/web/extra.yaml"]
    assert only(built, "ImageRepository")["spec"]["image"] == "ghcr.io/example/web"


def test_image_in_an_extra_object_is_the_effective_one(tmp_path: Path) -> None:
    image = f"{{ref: '{REF}', at: 'extraObjects[0].spec.imageName', shape: string}}"

    built = made(tmp_path, f"name: web\nsource:\n  image: {image}\n{MOVING}{CLUSTER}", CORP)

    assert only(built, "Cluster")["spec"]["imageName"] == "registry.corp.example/web:1.2.3"
    assert only(built, "ImageRepository")["spec"]["image"] == "registry.corp.example/web"


@pytest.mark.parametrize("select", ["[kind=Pooler]", "[1]", "[name=other]", ""])
def test_path_to_no_extra_object_is_refused(tmp_path: Path, select: str) -> None:
    image = f"{{ref: '{REF}', at: 'extraObjects{select}.spec.imageName', shape: string}}"

    (fault,) = made(tmp_path, f"name: web\nsource:\n  image: {image}\n{CLUSTER}").diagnostics

    assert fault.code == "R208"


# Several images


def extra(ref: str, more: str = "") -> str:
    return f"images:\n  side:\n    ref: '{ref}'\n    at: side.image\n{more}"


def test_further_image_has_a_policy_of_its_own_name(tmp_path: Path) -> None:
    text = service(REF, MOVING + extra("ghcr.io/example/side:v2.0.0", "    update: {range: 2.x}\n"))

    built = made(tmp_path, text)

    assert not built.failed, told(built)
    names = [one["metadata"]["name"] for one in objects(built) if one["kind"] == "ImagePolicy"]
    assert names == ["web", "web-side"]
    assert f'tag: "v2.0.0"{mark(":tag", "web-side")}\n' in built.files["apps/web/helmrelease.yaml"]


def test_further_image_without_update_is_fixed(tmp_path: Path) -> None:
    built = made(tmp_path, service(REF, MOVING + extra("ghcr.io/example/side:v2.0.0")))

    assert only(built, "ImagePolicy")["metadata"]["name"] == "web"
    assert 'tag: "v2.0.0"\n' in built.files["apps/web/helmrelease.yaml"]


def test_further_image_may_be_a_bare_reference(tmp_path: Path) -> None:
    built = made(tmp_path, f"name: web\nsource:\n{CHART}images:\n  side: ghcr.io/example/side:1.0.0\n")

    assert only(built, "HelmRelease")["spec"]["values"]["image"]["repository"] == "ghcr.io/example/side"


def test_two_images_of_one_repository_may_stand_apart_in_values(tmp_path: Path) -> None:
    assert not made(tmp_path, service(REF, extra("ghcr.io/example/web:1.0.0"))).failed


@pytest.mark.parametrize(
    "text",
    [
        service(f"'{BOTH}'", MOVING + extra("ghcr.io/example/web:1.0.0")),
        service(
            REF, extra("ghcr.io/example/web:1.0.0", "    shape: postRenderer\n").replace("    at: side.image\n", "")
        ),
        service(f"'{BOTH}'", MOVING + extra(BOTH)),
        service(f"'ghcr.io/example/web@{D}'", extra("ghcr.io/example/web:1.0.0")),
    ],
    ids=["digest-entry", "post-renderer", "other-update", "bare-digest"],
)
def test_two_images_of_one_repository_under_one_entry_are_refused(tmp_path: Path, text: str) -> None:
    (fault,) = made(tmp_path, text).diagnostics

    assert fault.code == "R210"


def test_two_equal_images_share_one_entry(tmp_path: Path) -> None:
    text = service(f"'{BOTH}'", MOVING + extra(BOTH, "    update: {range: 1.x}\n"))

    assert entries(tmp_path, text).count("- name: ") == 1


def test_two_images_at_one_place_are_refused(tmp_path: Path) -> None:
    built = made(tmp_path, service(REF, extra("ghcr.io/example/side:1.0.0").replace("side.image", "image")))

    assert {fault.code for fault in built.diagnostics} == {"R211"}


def test_image_that_stands_nowhere_is_refused(tmp_path: Path) -> None:
    text = f"name: web\nsource: {{image: '{REF}'}}\n{CLUSTER}"

    assert [fault.code for fault in made(tmp_path, text).diagnostics] == ["R207"]


@pytest.mark.parametrize(
    "ref", ["", "Web:1", "https://ghcr.io/a:1", "web:", "web:1 2", "web@sha256:12", "ghcr.io//a:1"]
)
def test_what_is_no_reference_is_refused(tmp_path: Path, ref: str) -> None:
    (fault,) = made(tmp_path, service(f"'{ref}'")).diagnostics

    assert fault.code == "R205"


# Policies


def policy(folder: Path, ref: str, update: str) -> dict[str, Any]:
    built = made(folder, service(f"'{ref}'", f"update: {{{update}}}\n"))
    assert not built.failed, told(built)
    found: dict[str, Any] = only(built, "ImagePolicy")["spec"]
    return found


@pytest.mark.parametrize(
    ("tag", "update", "filters", "ordered"),
    [
        ("1.2.3", "range: 1.x", {"pattern": r"^[0-9]+\.[0-9]+\.[0-9]+$"}, {"semver": {"range": "1.x"}}),
        ("v1.2.3", "range: '>=1.2 <2'", {"pattern": r"^v[0-9]+\.[0-9]+\.[0-9]+$"}, {"semver": {"range": ">=1.2 <2"}}),
        (
            "1.2.3-alpine",
            "range: 1.x",
            {"pattern": r"^(?P<v>[0-9]+\.[0-9]+\.[0-9]+)-alpine$", "extract": "$v"},
            {"semver": {"range": "1.x"}},
        ),
        ("latest", "channel: digest", {"pattern": "^latest$"}, {"alphabetical": {"order": "asc"}}),
        (
            "build-417",
            "channel: build",
            {"pattern": "^build-(?P<n>[0-9]{1,15})$", "extract": "$n"},
            {"numerical": {"order": "asc"}},
        ),
        (
            "1.2.3",
            "channel: custom, policy: {semver: {range: '>=1.0.0-0'}}, filterTags: {pattern: '^[0-9.]+$'}",
            {"pattern": "^[0-9.]+$"},
            {"semver": {"range": ">=1.0.0-0"}},
        ),
    ],
)
def test_channel_renders_filter_and_policy(
    tmp_path: Path, tag: str, update: str, filters: dict[str, str], ordered: dict[str, Any]
) -> None:
    spec = policy(tmp_path, f"ghcr.io/example/web:{tag}", update)

    assert spec["policy"] == ordered
    assert spec["filterTags"] == filters
    assert spec["imageRepositoryRef"] == {"name": "web"}


@pytest.mark.parametrize(
    ("cadence", "interval"),
    [
        ("", "1h"),
        (", cadence: 90s", "90s"),
        (", cadence: '0 4 * * *'", "24h"),
        (", cadence: '@weekly'", "168h"),
        (", cadence: '0,30 * * * *'", "30m"),
        (", cadence: '30 4 * * 1-5'", "24h"),
    ],
)
def test_cadence_is_the_interval_of_the_scan(tmp_path: Path, cadence: str, interval: str) -> None:
    built = made(tmp_path, service(REF, f"update: {{range: 1.x{cadence}}}\n"))

    assert only(built, "ImageRepository")["spec"]["interval"] == interval


def test_policies_live_with_flux_and_markers_name_its_namespace(tmp_path: Path) -> None:
    platform = PLATFORM.replace('version: "2.9"', 'version: "2.9"\n  namespace: gitops')

    built = made(tmp_path, service(REF, MOVING), platform)

    assert only(built, "ImagePolicy")["metadata"] == {"name": "web", "namespace": "gitops"}
    assert only(built, "ImageRepository")["metadata"] == {"name": "web", "namespace": "gitops"}
    assert '# {"$imagepolicy": "gitops:web:tag"}' in built.files["apps/web/helmrelease.yaml"]


@pytest.mark.parametrize(
    ("ref", "update", "code"),
    [
        (REF, "{}", "R703"),
        ("ghcr.io/example/web", "{range: 1.x}", "R703"),
        ("ghcr.io/example/web:latest", "{range: 1.x}", "R703"),
        (REF, "{range: '1.x and up'}", "R701"),
        (REF, "{range: 0.x}", "R702"),
        (REF, "{range: '>2 <1'}", "R702"),
        (REF, "{range: 1.x, channel: build}", "R703"),
        (REF, "{channel: custom}", "R703"),
        (REF, "{channel: custom, policy: {semver: {range: 1.x}}, filterTags: {pattern: '^v'}}", "R703"),
        (REF, "{channel: custom, policy: {semver: {range: 1.x}}, filterTags: {pattern: '('}}", "R705"),
        (REF, "{range: 1.x, cadence: 30s}", "R707"),
        (REF, "{range: 1.x, cadence: '* * *'}", "R707"),
    ],
)
def test_policy_that_does_not_hold_is_refused(tmp_path: Path, ref: str, update: str, code: str) -> None:
    built = made(tmp_path, service(ref, f"update: {update}\n"))

    assert code in [fault.code for fault in built.diagnostics if fault.severity == "error"]


def test_update_without_an_image_is_refused(tmp_path: Path) -> None:
    assert [fault.code for fault in made(tmp_path, f"name: web\nsource:\n{CHART}{MOVING}").diagnostics] == ["R206"]


# Digests and pins in places that are easily forgotten


def test_pin_reaches_the_places_that_alias_what_is_read(tmp_path: Path) -> None:
    aliased = "values:\n  image: &image {repository: a/b, tag: '1.0.0'}\n  worker: *image\n"

    assert "1.0.0" not in values(tmp_path, service("{at: image}", "update: {pin: 1.9.9}\n" + aliased))


def test_pin_leaves_no_digest_of_another_version(tmp_path: Path) -> None:
    own = f"values:\n  image: {{repository: a/b, tag: '1.0.0', digest: '{D}'}}\n"

    assert D not in values(tmp_path, service("{at: image}", "update: {pin: 1.9.9}\n" + own))


@pytest.mark.parametrize(
    "text",
    [
        service(f"{{ref: '{BOTH}', reach: values}}", MOVING),
        service(f"{{ref: '{BOTH}', at: 'extraObjects[0].spec.image'}}", MOVING + CLUSTER),
        f"name: web\nsource:\n  image: {{ref: '{BOTH}', at: 'extraObjects[0].spec.image'}}\n{MOVING}{CLUSTER}",
        service(f"{{ref: 'ghcr.io/example/web@{D}', reach: values}}"),
    ],
    ids=["values", "object-beside-a-release", "object", "bare-digest"],
)
def test_digest_that_no_renderer_could_carry_is_refused(tmp_path: Path, text: str) -> None:
    assert made(tmp_path, text).failed


# What the parts of a site decide

PARTS_AT = "{registry: reg, repository: repo, tag: tag, digest: dig}"
ALWAYS = "update: {range: 1.x, digest: always}\n"


def test_map_of_all_parts_writes_the_digest_beside_the_registry(tmp_path: Path) -> None:
    text = release(tmp_path, service(f"{{ref: '{BOTH}', at: {PARTS_AT}}}", MOVING))

    assert section(text, "values") == lines(f"""
        reg: ghcr.io
        repo: example/web
        tag: "1.2.3"{mark(":tag")}
        dig: "{D}"{mark(":digest")}
        """)
    assert "postRenderers" not in text


@pytest.mark.parametrize("shape", ["", ", shape: split", ", shape: registry", ", shape: tag"])
def test_map_of_parts_counts_whatever_the_shape_is_called(tmp_path: Path, shape: str) -> None:
    text = values(tmp_path, service(f"{{ref: '{BOTH}', at: {PARTS_AT}{shape}}}"))

    assert yaml.safe_load(text) == {"reg": "ghcr.io", "repo": "example/web", "tag": "1.2.3", "dig": D}


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ("{tag: tag, digest: dig}", {"tag": "1.2.3", "dig": D}),
        ("{registry: reg, tag: tag}", {"reg": "ghcr.io", "tag": f"1.2.3@{D}"}),
        ("{repository: repo, tag: tag}", {"repo": "ghcr.io/example/web", "tag": f"1.2.3@{D}"}),
    ],
)
def test_parts_that_are_not_named_stay_with_the_chart(tmp_path: Path, parts: str, expected: dict[str, str]) -> None:
    assert yaml.safe_load(values(tmp_path, service(f"{{ref: '{BOTH}', at: {parts}}}"))) == expected


def test_digest_beside_a_tag_alone_may_be_followed(tmp_path: Path) -> None:
    text = values(tmp_path, service(f"{{ref: '{BOTH}', at: {{tag: tag, digest: dig}}}}", MOVING))

    assert text == f'tag: "1.2.3"{mark(":tag")}\ndig: "{D}"{mark(":digest")}\n'


def test_digest_key_is_marked_beside_a_registry_that_is_read(tmp_path: Path) -> None:
    given = f"{{registry: ghcr.io, repository: example/web, tag: 1.2.3, digest: '{D}'}}"

    text = release(tmp_path, service("{at: image}", f"{MOVING}values: {{image: {given}}}\n"))

    assert f'      digest: "{D}"{mark(":digest")}\n' in text
    assert "postRenderers" not in text


@pytest.mark.parametrize("given", ["digest: ''", "digest:"])
def test_empty_digest_key_that_is_read_is_the_place_of_the_digest(tmp_path: Path, given: str) -> None:
    there = f"values:\n  image:\n    repository: ghcr.io/example/web\n    {given}\n    tag: '1.2.3'\n"

    text = release(tmp_path, service("{at: image}", ALWAYS + there))

    assert section(text, "values") == lines(f"""
        image:
          repository: ghcr.io/example/web
          digest: ""{mark(":digest")}
          tag: "1.2.3"{mark(":tag")}
        """)
    assert "postRenderers" not in text


def test_shape_gives_what_is_read_a_place_for_the_digest(tmp_path: Path) -> None:
    text = release(tmp_path, service("{at: image, shape: digest}", ALWAYS + THERE))

    assert f'    digest: ""{mark(":digest")}\n' in text
    assert "postRenderers" not in text


def test_every_path_is_read(tmp_path: Path) -> None:
    same = "{repository: ghcr.io/example/web, tag: 1.2.3}"
    text = service("{at: [a, b.image]}", f"{MOVING}values: {{a: {same}, b: {{image: {same}}}}}\n")

    assert values(tmp_path, text).count(mark(":tag")) == 2


@pytest.mark.parametrize("other", ["{repository: ghcr.io/example/web, tag: 1.2.4}", "'ghcr.io/example/other:1.2.3'"])
def test_different_images_at_the_paths_are_refused(tmp_path: Path, other: str) -> None:
    text = service("{at: [a, b]}", f"values: {{a: 'ghcr.io/example/web:1.2.3', b: {other}}}\n")

    assert faults(tmp_path, text) == ["R209 `source.image` reads different images at the paths of `at`"]


@pytest.mark.parametrize(
    ("at", "message"),
    [
        ("{repo: a, tag: b}", "unknown part `repo` in the map `at` of `source.image`"),
        ("{repository: a}", "the map `at` of `source.image` needs the part `tag`"),
        ("{}", "the map `at` of `source.image` needs the part `tag`"),
        ("{repository: a, tag: a}", "two parts of `source.image` have the same path"),
        ("{repository: a, tag: 'extraObjects[0].b'}", "the parts of `source.image` stand in different objects"),
        ("[]", "`source.image` has no path in `at`"),
        ("[a, b, a]", "`source.image` names the path `a` twice"),
        ("'extraObjects[name=x].a'", "`source.image`: `extraObjects[name=x]` selects no object"),
        (f"'{'a.' * 60}b'", "`source.image`: a path has at most 50 steps, and this one 61"),
        (f"'{'a' * 129}'", "`source.image`: the path has a key over 128 bytes, or over more than one line"),
        (r'''"'a\nb'"''', "`source.image`: the path has a key over 128 bytes, or over more than one line"),
    ],
)
def test_paths_that_cannot_be_are_told_once(tmp_path: Path, at: str, message: str) -> None:
    assert faults(tmp_path, service(f"{{ref: '{REF}', at: {at}}}", CLUSTER)) == [f"R208 {message}"]


def test_whole_reference_has_no_parts(tmp_path: Path) -> None:
    (fault,) = made(tmp_path, service(f"{{ref: '{REF}', at: {PARTS_AT}, shape: string}}")).diagnostics

    assert fault.code == "R208"


def test_hint_at_a_missing_object_lists_those_that_are_there(tmp_path: Path) -> None:
    image = f"{{ref: '{REF}', at: 'extraObjects[name=x].spec.image'}}"

    (fault,) = made(tmp_path, service(image, CLUSTER)).diagnostics

    assert fault.cause == "the service has `Cluster pg`"


# What stands beside an image, or in its way


@pytest.mark.parametrize(
    ("shape", "given", "key"),
    [
        ("split", "registry: docker.io", "registry"),
        ("split", f"digest: '{D}'", "digest"),
        ("registry", f"digest: '{D}'", "digest"),
        ("digest", f"digest: '{D}'", "digest"),
        ("digest", "registry: docker.io", "registry"),
    ],
)
def test_part_that_the_chart_would_add_to_the_image_is_refused(
    tmp_path: Path, shape: str, given: str, key: str
) -> None:
    text = service(f"{{ref: {REF}, shape: {shape}}}", f"values: {{image: {{{given}}}}}\n")

    assert faults(tmp_path, text) == [f"R211 `image.{key}` of `values` stands beside `source.image`"]


@pytest.mark.parametrize("given", ["registry: ''", "registry: ~", "digest: ''", "digest: ~", "pullPolicy: Always"])
def test_empty_part_beside_the_image_is_no_fault(tmp_path: Path, given: str) -> None:
    assert "tag:" in values(tmp_path, service(REF, f"values: {{image: {{{given}}}}}\n"))


@pytest.mark.parametrize(
    ("main", "side", "given"),
    [
        (REF, "{ref: 'ghcr.io/example/side:1.0.0', at: image}", "{}"),
        (REF, "{ref: 'ghcr.io/example/side:1.0.0', at: image, shape: string}", "{}"),
        (f"{{ref: {REF}, shape: string}}", "{ref: 'ghcr.io/example/side:1.0.0', at: image}", "{}"),
        (f"{{ref: {REF}, at: 'l[0]', shape: string}}", "{ref: 'a:1', at: 'l[0].image', shape: string}", "{l: ['']}"),
        (
            f"{{ref: {REF}, at: 'l[0].i', shape: string}}",
            "{ref: 'a:1', at: 'l[name=b].i', shape: string}",
            "{l: [{name: b}]}",
        ),
    ],
)
def test_two_images_in_one_place_are_told_once(tmp_path: Path, main: str, side: str, given: str) -> None:
    built = made(tmp_path, service(main, f"images: {{side: {side}}}\nvalues: {given}\n"))

    assert [fault.code for fault in built.diagnostics] == ["R211"]


@pytest.mark.parametrize("at", ["['l[0].i', 'l[name=b].i']", "{repository: 'l[0].i', tag: 'l[name=b].i'}"])
def test_two_paths_to_one_place_are_refused(tmp_path: Path, at: str) -> None:
    shape = ", shape: string" if at.startswith("[") else ""

    text = service(f"{{ref: {REF}, at: {at}{shape}}}", "values: {l: [{name: b}]}\n")

    assert faults(tmp_path, text) == ["R211 two paths of `source.image` lead to `l[name=b].i`"]


@pytest.mark.parametrize("first", ["main", "side"])
def test_image_that_is_written_into_one_that_is_read_is_refused(tmp_path: Path, first: str) -> None:
    read, write = "{at: image}", f"{{ref: '{REF}', at: {{tag: image.tag, digest: image.digest}}}}"
    main, side = (read, write) if first == "main" else (write, read)
    text = service(main, f"images: {{side: {side}}}\n" + THERE)

    assert [fault.partition(" ")[0] for fault in faults(tmp_path, text)] == ["R211"]


def test_two_images_that_are_read_and_stay_as_they_are_may_share_a_place(tmp_path: Path) -> None:
    assert faults(tmp_path, service("{at: image}", "images: {side: {at: image}}\n" + THERE)) == []


def test_two_images_that_are_read_from_one_place_are_refused(tmp_path: Path) -> None:
    side = "images: {side: {at: image, update: {range: 1.x}}}\n"

    assert faults(tmp_path, service("{at: image}", MOVING + side + THERE)) == [
        "R211 `images.side` and `source.image` are both written at `image.tag`"
    ]


# What an image becomes


@pytest.mark.parametrize(
    ("entry", "effective"),
    [
        ("name: nginx, newName: registry.corp.example/nginx", "docker.io/nginx"),
        ("name: docker.io/nginx, newName: registry.corp.example/nginx", "registry.corp.example/nginx"),
    ],
)
def test_registry_shape_is_overridden_as_the_chart_spells_it(tmp_path: Path, entry: str, effective: str) -> None:
    platform = PLATFORM.replace(" []", f"\n  - {{{entry}}}")

    built = made(tmp_path, service("{ref: 'nginx:1.27.0', shape: registry}", MOVING), platform)

    assert only(built, "ImageRepository")["spec"]["image"] == effective


def test_declared_entries_are_those_that_the_chart_s_spelling_meets(tmp_path: Path) -> None:
    platform = PLATFORM.replace(
        " []", "\n  - {name: docker.io/nginx, newName: a.example/nginx}\n  - {name: b, newTag: c}"
    )

    built = made(tmp_path, service("{ref: 'nginx:1.27.0', shape: registry}", "imageOverrides: declared\n"), platform)

    (renderer,) = only(built, "HelmRelease")["spec"]["postRenderers"]
    assert [entry["name"] for entry in renderer["kustomize"]["images"]] == ["docker.io/nginx"]


def test_entry_of_ours_comes_after_a_tag_that_the_service_sets(tmp_path: Path) -> None:
    own = "postRenderers: [{kustomize: {images: [{name: ghcr.io/example/web, newName: m.example/web, newTag: '9'}]}}]\n"

    built = made(tmp_path, service(f"{{ref: {REF}, shape: postRenderer}}", MOVING + own))

    assert told(built) == []
    assert only(built, "ImageRepository")["spec"]["image"] == "m.example/web"
    renderers = only(built, "HelmRelease")["spec"]["postRenderers"]
    assert renderers[1] == {"kustomize": {"images": [{"name": "m.example/web", "newTag": "1.2.3"}]}}


def test_both_places_are_named_when_the_service_s_renderer_decides(tmp_path: Path) -> None:
    own = "postRenderers:\n- kustomize:\n    images:\n    - name: ghcr.io/example/web\n      newTag: '9'\n"

    built = made(tmp_path, service(REF, MOVING + own))

    (fault,) = built.diagnostics
    assert (fault.code, fault.location.line) == ("R603", 7)
    assert [(place.line, what) for place, what in fault.related] == [(11, "decided here")]


@pytest.mark.parametrize("image", [f"{{ref: {REF}, reach: values}}", REF, f"{{ref: {REF}, shape: string}}"])
@pytest.mark.parametrize("update", ["", MOVING])
def test_override_that_makes_no_reference_is_refused(tmp_path: Path, image: str, update: str) -> None:
    own = "postRenderers: [{kustomize: {images: [{name: ghcr.io/example/web, newName: 'http://a/web'}]}}]\n"

    (fault,) = made(tmp_path, service(image, update + own)).diagnostics

    assert fault.code == "R601"
    assert len(fault.related) == 1


def test_image_that_becomes_two_in_values_and_in_an_object_is_refused(tmp_path: Path) -> None:
    own = "postRenderers: [{kustomize: {images: [{name: ghcr.io/example/web, newName: m.example/web}]}}]\n"
    image = f"{{ref: {REF}, shape: string, at: [image, 'extraObjects[0].spec.imageName']}}"

    assert faults(tmp_path, service(image, MOVING + own + CLUSTER)) == [
        "R208 `source.image` becomes two images, in `values` and in `extraObjects`"
    ]


def test_values_and_object_each_get_what_reaches_them(tmp_path: Path) -> None:
    image = f"{{ref: {REF}, shape: string, at: [image, 'extraObjects[0].spec.imageName']}}"

    built = made(tmp_path, service(image, CLUSTER), CORP)

    assert only(built, "HelmRelease")["spec"]["values"]["image"] == REF
    assert only(built, "Cluster")["spec"]["imageName"] == "registry.corp.example/web:1.2.3"


# One fault hides no other


def codes(folder: Path, text: str) -> list[str]:
    return sorted(fault.code for fault in made(folder, text).diagnostics)


def test_fault_of_an_image_hides_no_other(tmp_path: Path) -> None:
    side = (
        "images:\n  a: {ref: 'b:1', at: text.image}\n  c: {ref: 'C:1', at: c, update: {cadence: 1s, range: '1..x'}}\n"
    )
    update = "update: {range: '1 and 2', cadence: often}\n"

    text = service("{ref: 'web:', at: 'x..y'}", update + side + "values: {text: a}\nlabels: {a: b}\n")

    assert codes(tmp_path, text) == ["R205", "R205", "R208", "R211", "R701", "R701", "R707", "R707"]


def test_image_without_a_tag_hides_no_fault_of_its_update(tmp_path: Path) -> None:
    update = "update: {range: '1 and 2', cadence: often}\n"

    assert codes(tmp_path, service("ghcr.io/example/web", update)) == ["R701", "R703", "R707"]


def test_image_of_a_workload_hides_no_fault_of_its_volumes(tmp_path: Path) -> None:
    text = "name: web\nsource: {image: 'Upper:1'}\nworkload: {volumes: [{name: a, mountPath: /a}]}\n"

    assert codes(tmp_path, text) == ["R205", "R405"]


@pytest.mark.parametrize("pin", ["v1/2", "1.2.3@sha256:abc", ":", ""])
def test_pin_that_is_no_tag_is_told_once(tmp_path: Path, pin: str) -> None:
    assert codes(tmp_path, service(REF, f"update: {{pin: '{pin}'}}\n")) == ["R205"]


def test_renderer_that_fails_hides_no_fault_of_an_update(tmp_path: Path) -> None:
    own = "postRenderers: [{kustomize: {images: [{name: 'a(', newTag: '1'}, {name: 'b[', newTag: '1'}]}}]\n"

    assert codes(tmp_path, service(REF, own + "update: {range: '1 and 2'}\n")) == ["R602", "R602", "R701"]


def test_path_of_a_further_image_is_named(tmp_path: Path) -> None:
    side = "images: {side: {ref: 'b:1.0.0', at: b, update: {range: 1.x, cadence: daily}}}\n"

    (fault,) = made(tmp_path, service(REF, side)).diagnostics

    assert fault.message == "`images.side.update.cadence` must be a duration or a cron expression, not `daily`"
    assert fault.hint == "write `@daily`"


# Where a fault of a policy is shown


@pytest.mark.parametrize(
    ("tag", "update", "code", "shown"),
    [
        ("1.2.3", "range: 0.x", "R702", "0.x"),
        ("1.2.3", "channel: digest, range: 1.x", "R703", "1.x"),
        ("1.2.3", "channel: build, policy: {semver: {range: 1.x}}", "R703", "{semver: {range: 1.x}}"),
        ("1.2.3", "channel: custom, policy: {semver: {range: 0.x}}", "R702", "0.x"),
        ("1.2.3", "channel: custom, policy: {semver: {range: 1 and 2}}", "R701", "1 and 2"),
        ("1.2.3", "channel: custom, policy: {semver: {range: 1.x}}, filterTags: {pattern: '1'}", "R705", "'1'"),
        ("1.2.3", "channel: custom, policy: {semver: {range: 1.x}}, filterTags: {pattern: '^v$'}", "R703", "REF"),
        (
            "1.2.3",
            "channel: custom, policy: {semver: {range: 1.x}}, filterTags: {pattern: '^.*$', extract: $x}",
            "R705",
            "$x",
        ),
        ("1.2.3", "range: 1.x, cadence: 1s", "R707", "1s"),
    ],
)
def test_fault_of_a_policy_is_shown_where_it_is(tmp_path: Path, tag: str, update: str, code: str, shown: str) -> None:
    text = service(f"ghcr.io/example/web:{tag}", f"update: {{{update}}}\n")
    built = made(tmp_path, text)

    (fault,) = [fault for fault in built.diagnostics if fault.code == code]
    line = text.splitlines()[fault.location.line - 1]
    place = line[fault.location.column - 1 :]
    if shown.startswith("{"):
        assert place.startswith("policy")
    else:
        assert place.startswith(f"ghcr.io/example/web:{tag}" if shown == "REF" else shown)


def test_pre_releases_that_no_release_follows_are_warned_of(tmp_path: Path) -> None:
    built = made(tmp_path, service("ghcr.io/example/web:1.2.0rc1", "update: {channel: prerelease, range: '>=1.2-0'}\n"))

    (fault,) = built.diagnostics
    assert (fault.code, fault.severity) == ("R704", "warning")
    assert "releases are left out" in fault.cause
    assert "policy" in str(only(built, "ImagePolicy"))


def test_interval_of_the_platform_is_no_scan_of_every_second(tmp_path: Path) -> None:
    built = made(tmp_path, service(REF, MOVING), PLATFORM + "defaults: {interval: 10s}\n")

    assert only(built, "ImageRepository")["spec"]["interval"] == "1m"


# Markers in extra objects


@pytest.mark.parametrize(
    ("image", "update", "expected"),
    [
        (f"{{ref: '{REF}', shape: string, at: 'extraObjects[1].spec.image'}}", MOVING, {1}),
        (f"{{ref: '{REF}', at: [image, 'extraObjects[0].spec.image']}}", MOVING, {0}),
        ("{at: 'extraObjects[1].spec.image'}", MOVING, {1}),
        ("{at: image}", MOVING, {0}),
        (f"{{ref: '{REF}', shape: string, at: 'extraObjects[1].spec.image'}}", FIXED, set()),
        (REF, MOVING, set()),
    ],
)
def test_objects_that_hold_markers_are_known(tmp_path: Path, image: str, update: str, expected: set[int]) -> None:
    there = "{repository: ghcr.io/example/web, tag: 1.2.3}"
    value = there if "ref" not in image else "{}"
    text = service(image, f"{update}values: {{image: &i {value}}}\n")
    second = f"'{REF}'" if "ref" not in image else "''"
    first = "*i" if image == "{at: image}" else "{}"
    text += (
        "extraObjects:\n"
        f"- {{apiVersion: a.example/v1, kind: A, metadata: {{name: a}}, spec: {{image: {first}}}}}\n"
        f"- {{apiVersion: a.example/v1, kind: A, metadata: {{name: b}}, spec: {{image: {second}}}}}\n"
    )

    assert planned(tmp_path, text).marks_objects == expected


def planned(folder: Path, text: str) -> Images:
    """Return the images of a service, written."""
    where = project(folder, {"catalog/web.yaml": text}).folder
    platform, _ = read_platform(where / "platform.yaml")
    assert platform is not None
    definition = read_definitions(str(where / "catalog/web.yaml"), "catalog/web.yaml").definitions[0]
    context = Context(platform, [], Table(()), True)
    report = Report(definition.source)
    images = Images(context, definition, None, report)
    images.declare()
    for plan in images.plans:
        plan.policy = Policies(context, "web", report).plan(plan)
    Writer(images).write()
    assert report.items == []
    return images
