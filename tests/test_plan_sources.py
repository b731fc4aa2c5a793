from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from render.build import Build
from tests.project import PLATFORM, objects, only, project, told

LAYER = {"mediaType": "application/vnd.cncf.helm.chart.content.v1.tar+gzip", "operation": "copy"}
DIGEST = "sha256:" + "0123456789abcdef" * 4
APART = PLATFORM.replace('version: "2.9"', 'version: "2.9"\n  crossNamespaceRefs: false')


def service(chart: str, name: str = "web", more: str = "") -> str:
    return f"name: {name}\nsource: {{chart: {{{chart}}}}}\n{more}"


def made(folder: Path, *texts: str, platform: str = PLATFORM) -> Build:
    files = {f"catalog/{index}.yaml": text for index, text in enumerate(texts)}
    return project(folder, {**files, "platform.yaml": platform}).build()


def charts(entries: str, platform: str = PLATFORM) -> str:
    """Return a platform with named chart sources, each a line of flow YAML."""
    return platform + "charts:\n" + "".join(f"  {line}\n" for line in entries.strip().splitlines())


def spec(built: Build, kind: str) -> dict[str, Any]:
    assert not built.failed, told(built)
    found: dict[str, Any] = only(built, kind)["spec"]
    return found


def codes(built: Build) -> list[str]:
    return [fault.code for fault in built.diagnostics]


# OCI


def test_oci_url_is_the_whole_chart(tmp_path: Path) -> None:
    built = made(tmp_path, service("url: 'oci://charts.example.org/web', version: '1.2.3'"))

    assert spec(built, "OCIRepository") == {
        "interval": "1h",
        "url": "oci://charts.example.org/web",
        "layerSelector": LAYER,
        "ref": {"tag": "1.2.3"},
    }
    assert only(built, "OCIRepository")["metadata"] == {"name": "web", "namespace": "web"}
    assert spec(built, "HelmRelease")["chartRef"] == {"kind": "OCIRepository", "name": "web"}
    assert "chart" not in spec(built, "HelmRelease")
    assert "apps/web/source.yaml" in built.files


@pytest.mark.parametrize("url", ["oci://charts.example.org/folder", "oci://charts.example.org/folder/"])
def test_oci_url_with_a_name_is_the_folder_of_the_chart(tmp_path: Path, url: str) -> None:
    built = made(tmp_path, service(f"url: '{url}', name: web, version: '1.2.3'"))

    assert spec(built, "OCIRepository")["url"] == "oci://charts.example.org/folder/web"


@pytest.mark.parametrize(
    ("version", "ref"),
    [
        ("1.2.3", {"tag": "1.2.3"}),
        ("v1.2.3", {"tag": "v1.2.3"}),
        ("1.2.3+build.5", {"tag": "1.2.3_build.5"}),
        (f"1.2.3@{DIGEST}", {"tag": "1.2.3", "digest": DIGEST}),
        ("0.0.0-latest", {"tag": "0.0.0-latest"}),
    ],
)
def test_oci_version_is_a_tag(tmp_path: Path, version: str, ref: dict[str, str]) -> None:
    built = made(tmp_path, service(f"url: 'oci://charts.example.org/web', version: '{version}'"))

    assert spec(built, "OCIRepository")["ref"] == ref


def test_oci_version_is_always_quoted(tmp_path: Path) -> None:
    built = made(tmp_path, service("url: 'oci://charts.example.org/web', version: v1.2.3"))

    assert '    tag: "v1.2.3"\n' in built.files["apps/web/source.yaml"]


def test_oci_range_is_semver(tmp_path: Path) -> None:
    built = made(tmp_path, service("url: 'oci://charts.example.org/web', versionRange: '>=1.2 <2'"))

    assert spec(built, "OCIRepository")["ref"] == {"semver": ">=1.2 <2"}


# HTTP


def test_http_chart_is_named_in_the_release(tmp_path: Path) -> None:
    built = made(tmp_path, service("url: 'https://charts.example.org', name: web, version: '1.2.3'"))

    assert spec(built, "HelmRepository") == {"interval": "1h", "url": "https://charts.example.org"}
    assert spec(built, "HelmRelease")["chart"] == {
        "spec": {"chart": "web", "version": "1.2.3", "sourceRef": {"kind": "HelmRepository", "name": "web"}}
    }
    assert "chartRef" not in spec(built, "HelmRelease")


@pytest.mark.parametrize("version", ["1.2.3", "1.2.3+build.5", "v1.2.3"])
def test_http_version_is_carried_as_it_is(tmp_path: Path, version: str) -> None:
    built = made(tmp_path, service(f"url: 'https://charts.example.org', name: web, version: '{version}'"))

    assert spec(built, "HelmRelease")["chart"]["spec"]["version"] == version


def test_http_range_and_values_files(tmp_path: Path) -> None:
    chart = "url: 'https://charts.example.org', name: web, versionRange: 1.x, valuesFiles: [a.yaml, b.yaml]"

    found = spec(made(tmp_path, service(chart)), "HelmRelease")["chart"]["spec"]

    assert (found["version"], found["valuesFiles"]) == ("1.x", ["a.yaml", "b.yaml"])


# Git


def test_git_chart_is_a_folder_that_upgrades_with_each_revision(tmp_path: Path) -> None:
    chart = "git: 'https://git.example.org/web', path: charts/web, ref: {tag: v1.2.3}"

    built = made(tmp_path, service(chart))

    assert spec(built, "GitRepository") == {
        "interval": "1h",
        "url": "https://git.example.org/web",
        "ref": {"tag": "v1.2.3"},
    }
    assert spec(built, "HelmRelease")["chart"] == {
        "spec": {
            "chart": "charts/web",
            "sourceRef": {"kind": "GitRepository", "name": "web"},
            "reconcileStrategy": "Revision",
        }
    }


def test_git_repository_is_never_shared(tmp_path: Path) -> None:
    platform = charts("base: {git: 'https://git.example.org/base', path: chart, ref: {branch: main}}")

    built = made(tmp_path, service("repository: base"), service("repository: base", "db"), platform=platform)

    names = [one["metadata"]["name"] for one in objects(built) if one["kind"] == "GitRepository"]
    assert names == ["db", "web"]


def test_git_field_of_a_service_overrules_the_platforms(tmp_path: Path) -> None:
    platform = charts("base: {git: 'https://git.example.org/base', path: chart, ref: {branch: main}}")

    built = made(tmp_path, service("repository: base, path: other, ref: {tag: v2}"), platform=platform)

    assert spec(built, "GitRepository")["ref"] == {"tag": "v2"}
    assert spec(built, "HelmRelease")["chart"]["spec"]["chart"] == "other"


@pytest.mark.parametrize(
    ("url", "hint"),
    [
        ("git@git.example.org:example/web", "write `ssh://git@git.example.org/example/web`"),
        ("git.example.org/web", "write the scheme"),
        ("oci://git.example.org/web", "write the scheme"),
        ("git://git.example.org/web", "write the scheme"),
        ("file:///srv/web", "write the scheme"),
    ],
)
def test_git_address_that_flux_does_not_take_is_refused(tmp_path: Path, url: str, hint: str) -> None:
    entry = charts(f"base: {{git: '{url}', path: a, ref: {{branch: main}}}}")

    own = made(tmp_path / "own", service(f"git: '{url}', path: a, ref: {{branch: main}}"))
    named = made(tmp_path / "named", service("repository: base"), service("repository: base", "db"), platform=entry)

    assert [(fault.code, fault.location.path, fault.hint) for fault in own.diagnostics] == [
        ("R204", "catalog/0.yaml", hint)
    ]
    assert [(fault.code, fault.location.path, fault.hint) for fault in named.diagnostics] == [
        ("R204", "platform.yaml", hint)
    ]


@pytest.mark.parametrize(
    ("url", "hint"),
    [
        ("oci://ghcr.io/x/web:1.0.0", 'write `url: oci://ghcr.io/x/web` and `version: "1.0.0"`'),
        (f"oci://ghcr.io/x/web@{DIGEST}", f'write `url: oci://ghcr.io/x/web` and `version: "TAG@{DIGEST}"`'),
        ("oci://ghcr.io/X/web", "write `oci://ghcr.io/x/web`"),
        ("oci://ghcr.io/x//web", "write `oci://REGISTRY/PATH`"),
    ],
)
def test_oci_address_that_is_no_chart_path_is_refused(tmp_path: Path, url: str, hint: str) -> None:
    own = made(tmp_path / "own", service(f"url: '{url}', version: '1.0.0'"))
    entry = charts(f"base: {{url: '{url}'}}")
    named = made(tmp_path / "named", service("repository: base, version: '1.0.0'"), platform=entry)

    assert [(fault.code, fault.location.path, fault.hint) for fault in own.diagnostics] == [
        ("R204", "catalog/0.yaml", hint)
    ]
    assert [(fault.code, fault.location.path, fault.hint) for fault in named.diagnostics] == [
        ("R204", "platform.yaml", hint)
    ]


def test_slash_at_the_end_of_an_oci_address_is_dropped(tmp_path: Path) -> None:
    built = made(tmp_path, service("url: 'oci://localhost:5000/x/web/', version: '1.0.0'"))

    assert only(built, "OCIRepository")["spec"]["url"] == "oci://localhost:5000/x/web"


# Shared sources

HTTP = "base: {url: 'https://charts.example.org'}"


def test_named_http_repository_is_shared_beside_flux(tmp_path: Path) -> None:
    chart = "repository: base, name: %s, version: '1.0.0'"

    built = made(tmp_path, service(chart % "web"), service(chart % "db", "db"), platform=charts(HTTP))

    assert only(built, "HelmRepository")["metadata"] == {"name": "base", "namespace": "flux-system"}
    assert [path for path in built.files if "source" in path] == [
        "apps/sources/base.yaml",
        "apps/sources/kustomization.yaml",
    ]
    for name in ("web", "db"):
        release = only(built.files[f"apps/{name}/helmrelease.yaml"], "HelmRelease")
        assert release["spec"]["chart"]["spec"]["sourceRef"] == {
            "kind": "HelmRepository",
            "name": "base",
            "namespace": "flux-system",
        }
        assert built.files[f"apps/{name}/kustomization.yaml"].endswith("resources:\n- helmrelease.yaml\n")
    assert "- sources\n" in built.files["apps/kustomization.yaml"]


def test_shared_source_has_no_labels_of_a_service(tmp_path: Path) -> None:
    chart = service("repository: base, name: web, version: '1.0.0'", more="labels: {team: web}\n")

    built = made(tmp_path, chart, platform=charts(HTTP))

    assert "labels" not in only(built, "HelmRepository")["metadata"]


def test_shared_source_is_headed_by_the_platform_file(tmp_path: Path) -> None:
    built = made(tmp_path, service("repository: base, name: web, version: '1.0.0'"), platform=charts(HTTP))

    assert built.files["apps/sources/base.yaml"].startswith("# Generated by render from platform.yaml; do not edit. ")


def test_shared_source_is_rendered_in_each_namespace_without_cross_namespace_references(tmp_path: Path) -> None:
    chart = "repository: base, name: %s, version: '1.0.0'"
    third = service(chart % "web2", "web2", "namespace: web\n")

    built = made(tmp_path, service(chart % "web"), service(chart % "db", "db"), third, platform=charts(HTTP, APART))

    assert sorted(path for path in built.files if "/sources/" in path) == [
        "apps/sources/db--base.yaml",
        "apps/sources/kustomization.yaml",
        "apps/sources/web--base.yaml",
    ]
    assert built.files["apps/sources/kustomization.yaml"].endswith("resources:\n- db--base.yaml\n- web--base.yaml\n")
    release = only(built.files["apps/web/helmrelease.yaml"], "HelmRelease")
    assert release["spec"]["chart"]["spec"]["sourceRef"] == {"kind": "HelmRepository", "name": "base"}
    assert only(built.files["apps/sources/web--base.yaml"], "HelmRepository")["metadata"]["namespace"] == "web"


def test_named_oci_chart_with_a_version_is_shared(tmp_path: Path) -> None:
    platform = charts("base: {url: 'oci://charts.example.org/base', version: '4.4.0'}")

    built = made(tmp_path, service("repository: base"), service("repository: base", "db"), platform=platform)

    assert only(built, "OCIRepository")["metadata"] == {"name": "base", "namespace": "flux-system"}
    assert spec(built, "OCIRepository")["ref"] == {"tag": "4.4.0"}
    assert only(built.files["apps/web/helmrelease.yaml"], "HelmRelease")["spec"]["chartRef"] == {
        "kind": "OCIRepository",
        "name": "base",
        "namespace": "flux-system",
    }


def test_service_may_repeat_the_version_of_a_shared_chart(tmp_path: Path) -> None:
    platform = charts("base: {url: 'oci://charts.example.org/base', version: '4.4.0'}")

    built = made(tmp_path, service("repository: base, version: '4.4.0'"), platform=platform)

    assert only(built, "OCIRepository")["metadata"]["name"] == "base"
    assert codes(made(tmp_path / "other", service("repository: base, version: '4.4.1'"), platform=platform)) == ["R204"]


def test_named_oci_chart_without_a_version_is_each_services_own(tmp_path: Path) -> None:
    platform = charts("base: {url: 'oci://charts.example.org/base'}")

    built = made(
        tmp_path,
        service("repository: base, version: '1.0.0'"),
        service("repository: base, version: '2.0.0'", "db"),
        platform=platform,
    )

    found = {
        one["metadata"]["name"]: one["spec"]["ref"]["tag"] for one in objects(built) if one["kind"] == "OCIRepository"
    }
    assert found == {"db": "2.0.0", "web": "1.0.0"}
    assert "apps/sources/kustomization.yaml" not in built.files


def test_another_chart_of_a_named_folder_is_not_shared(tmp_path: Path) -> None:
    platform = charts("base: {url: 'oci://charts.example.org/folder', name: base, version: '1.0.0'}")

    built = made(
        tmp_path, service("repository: base"), service("repository: base, name: other", "db"), platform=platform
    )

    found = {one["metadata"]["name"]: one["spec"]["url"] for one in objects(built) if one["kind"] == "OCIRepository"}
    assert found == {"base": "oci://charts.example.org/folder/base", "db": "oci://charts.example.org/folder/other"}


def test_unused_chart_source_is_not_rendered(tmp_path: Path) -> None:
    built = made(tmp_path, service("url: 'oci://charts.example.org/web', version: '1.0.0'"), platform=charts(HTTP))

    assert "HelmRepository" not in {one["kind"] for one in objects(built)}


# What a source takes besides its address


def test_fields_of_a_source_are_carried(tmp_path: Path) -> None:
    chart = (
        "url: 'oci://charts.example.org/web', version: '1.0.0', interval: 12h, provider: aws, insecure: true, "
        "secretRef: {name: pull}, certSecretRef: {name: ca}, verify: {provider: cosign}"
    )

    found = spec(made(tmp_path, service(chart)), "OCIRepository")

    assert found == {
        "interval": "12h",
        "url": "oci://charts.example.org/web",
        "provider": "aws",
        "layerSelector": LAYER,
        "ref": {"tag": "1.0.0"},
        "secretRef": {"name": "pull"},
        "certSecretRef": {"name": "ca"},
        "insecure": True,
        "verify": {"provider": "cosign"},
    }


def test_interval_is_the_entrys_else_the_default(tmp_path: Path) -> None:
    platform = charts("base: {url: 'https://charts.example.org', interval: 12h}", PLATFORM)
    chart = service("repository: base, name: web, version: '1.0.0'")

    assert spec(made(tmp_path / "own", chart, platform=platform), "HelmRepository")["interval"] == "12h"
    default = charts(HTTP, PLATFORM) + "defaults: {interval: 3h}\n"
    assert spec(made(tmp_path / "default", chart, platform=default), "HelmRepository")["interval"] == "3h"


CREDENTIALS = """\
  credentials:
    - {registry: registry.corp.example, secretRef: {name: host}}
    - {registry: registry.corp.example/team, secretRef: {name: team}, certSecretRef: {name: ca}, insecure: true}
    - {registry: 'registry.corp.example:5000', provider: aws}
"""


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("registry.corp.example/web", {"secretRef": {"name": "host"}}),
        (
            "registry.corp.example/team/web",
            {"secretRef": {"name": "team"}, "certSecretRef": {"name": "ca"}, "insecure": True},
        ),
        ("registry.corp.example/teams/web", {"secretRef": {"name": "host"}}),
        ("registry.corp.example:5000/web", {"provider": "aws"}),
        ("registry.corp.example.org/web", {}),
        ("mirror.registry.corp.example/web", {}),
    ],
)
def test_credentials_go_by_host_and_longest_path(tmp_path: Path, host: str, expected: dict[str, Any]) -> None:
    image = f"name: web\nsource:\n  image: '{host}:1.0.0'\n  chart: {{url: 'oci://{host}', version: '1.0.0'}}\n"

    built = made(tmp_path, image + "update: {range: 1.x}\n", platform=PLATFORM + CREDENTIALS)

    for kind in ("OCIRepository", "ImageRepository"):
        found = spec(built, kind)
        access = {key: found[key] for key in ("provider", "secretRef", "certSecretRef", "insecure") if key in found}
        assert access == expected


@pytest.mark.parametrize("registry", ["docker.io", "index.docker.io", "docker.io/library"])
@pytest.mark.parametrize("image", ["nginx", "library/nginx", "docker.io/nginx", "index.docker.io/library/nginx"])
def test_credentials_of_docker_hub_are_for_every_spelling_of_its_images(
    tmp_path: Path, registry: str, image: str
) -> None:
    platform = PLATFORM + f"  credentials: [{{registry: {registry}, secretRef: {{name: hub}}}}]\n"
    text = f"name: web\nsource:\n  image: {image}:1.0.0\n  chart: {{url: 'oci://c.example/web', version: '1.0.0'}}\n"

    built = made(tmp_path, text + "update: {range: 1.x}\n", platform=platform)

    assert spec(built, "ImageRepository")["secretRef"] == {"name": "hub"}
    assert spec(built, "ImageRepository")["image"] == image
    assert "secretRef" not in spec(built, "OCIRepository")


def test_renamed_image_is_scanned_with_the_credentials_of_its_new_registry(tmp_path: Path) -> None:
    platform = (PLATFORM + CREDENTIALS).replace(
        " []", "\n  - {name: ghcr.io/example/web, newName: registry.corp.example/web}"
    )
    image = "name: web\nsource:\n  image: ghcr.io/example/web:1.0.0\n"
    chart = "  chart: {url: 'oci://charts.example.org/web', version: '1.0.0'}\nupdate: {range: 1.x}\n"

    found = spec(made(tmp_path, image + chart, platform=platform), "ImageRepository")

    assert found["image"] == "registry.corp.example/web"
    assert found["secretRef"] == {"name": "host"}


def test_own_credentials_of_a_source_win(tmp_path: Path) -> None:
    chart = service("url: 'oci://registry.corp.example/web', version: '1.0.0', secretRef: {name: mine}")

    assert spec(made(tmp_path, chart, platform=PLATFORM + CREDENTIALS), "OCIRepository")["secretRef"] == {
        "name": "mine"
    }


@pytest.mark.parametrize(
    ("chart", "kind"),
    [
        ("url: 'https://registry.corp.example/team', name: web, version: '1.0.0'", "HelmRepository"),
        ("git: 'https://registry.corp.example/team', path: web, ref: {branch: main}", "GitRepository"),
    ],
)
def test_credentials_of_registries_are_for_oci_alone(tmp_path: Path, chart: str, kind: str) -> None:
    bare = made(tmp_path / "bare", service(chart), platform=PLATFORM + CREDENTIALS)
    own = made(tmp_path / "own", service(chart + ", secretRef: {name: mine}"), platform=PLATFORM + CREDENTIALS)

    assert {"provider", "secretRef", "certSecretRef", "insecure"}.isdisjoint(spec(bare, kind))
    assert spec(own, kind)["secretRef"] == {"name": "mine"}


def test_credentials_that_match_equally_are_refused(tmp_path: Path) -> None:
    twice = "  credentials:\n  - {registry: a.example, provider: aws}\n  - {registry: a.example/, provider: gcp}\n"
    chart = "url: 'oci://a.example/web', version: '1.0.0'"

    built = made(tmp_path, service(chart), service(chart, "db"), platform=PLATFORM + twice)

    (fault,) = built.diagnostics
    assert (fault.code, fault.location.path, fault.location.line) == ("R606", "platform.yaml", 8)
    assert [place.line for place, _ in fault.related] == [7]


# What is refused


@pytest.mark.parametrize(
    ("chart", "codes_told"),
    [
        ("name: web, version: '1.0.0'", ["R204"]),
        ("url: 'oci://a.example/b', git: 'https://a.example/b', version: '1.0.0'", ["R204"]),
        ("repository: base, url: 'oci://a.example/b', version: '1.0.0'", ["R204"]),
        ("url: a.example/b, version: '1.0.0'", ["R204"]),
        ("url: 'ftp://a.example/b', version: '1.0.0'", ["R204"]),
        ("repository: bsae, name: web, version: '1.0.0'", ["R204"]),
        ("url: 'oci://a.example/b'", ["R102"]),
        ("url: 'oci://a.example/b', version: ''", ["R104"]),
        ("url: 'oci://a.example/b', version: 1.x", ["R204"]),
        ("url: 'oci://a.example/b', version: '>=1.0.0'", ["R204"]),
        ("url: 'oci://a.example/b', version: '*'", ["R204"]),
        ("url: 'oci://a.example/b', version: '1.0.0', versionRange: 1.x", ["R204"]),
        ("url: 'oci://a.example/b', versionRange: one", ["R701"]),
        ("url: 'oci://a.example/b', version: '1.0.0', valuesFiles: [a.yaml]", ["R204"]),
        ("url: 'https://a.example', version: '1.0.0'", ["R102"]),
        ("git: 'https://a.example/b', path: c", ["R102"]),
        ("git: 'https://a.example/b', ref: {tag: v1}", ["R102"]),
        ("url: 'oci://a.example/b', version: 1.0", ["R103"]),
    ],
)
def test_chart_source_that_cannot_be_is_refused(tmp_path: Path, chart: str, codes_told: list[str]) -> None:
    assert codes(made(tmp_path, service(chart), platform=charts(HTTP))) == codes_told


def test_unknown_chart_source_suggests_the_closest(tmp_path: Path) -> None:
    (fault,) = made(tmp_path, service("repository: bsae, name: a, version: '1'"), platform=charts(HTTP)).diagnostics

    assert fault.hint == "use `base`"


@pytest.mark.parametrize("version", ["1", "1.2", "1.X", "latest", f"1.2.3@{DIGEST}", "1.2.3 || 2.0.0"])
def test_version_that_flux_would_take_for_a_range_is_refused(tmp_path: Path, version: str) -> None:
    own = made(tmp_path / "own", service(f"url: 'https://a.example', name: web, version: '{version}'"))
    entry = charts(f"base: {{url: 'https://a.example', name: web, version: '{version}'}}")
    named = made(tmp_path / "named", service("repository: base"), service("repository: base", "db"), platform=entry)

    assert codes(own) == ["R204"]
    assert [(fault.code, fault.location.path) for fault in named.diagnostics] == [("R204", "platform.yaml")]


@pytest.mark.parametrize("version", ["1.2.3", "v1.2.3", "1.2.3-rc.1", "1.2.3+build.4", "2024.01.17"])
def test_exact_version_is_carried_as_it_is(tmp_path: Path, version: str) -> None:
    built = made(tmp_path, service(f"url: 'https://a.example', name: web, version: '{version}'"))

    assert spec(built, "HelmRelease")["chart"]["spec"]["version"] == version


@pytest.mark.parametrize("digest", ["sha256:abc", "abc", "md5:" + "0" * 32, ""])
def test_digest_of_a_chart_is_checked(tmp_path: Path, digest: str) -> None:
    assert codes(made(tmp_path, service(f"url: 'oci://a.example/web', version: '1.2.3@{digest}'"))) == ["R204"]


OCI = "url: 'oci://a.example/web', version: '1.0.0'"
HELM = "url: 'https://a.example', name: web, version: '1.0.0'"
GIT = "git: 'https://a.example/web', path: chart, ref: {tag: v1}"


@pytest.mark.parametrize(
    ("chart", "field"),
    [
        (OCI, "path: chart"),
        (OCI, "ref: {tag: v1}"),
        (OCI, "valuesFiles: [a.yaml]"),
        (HELM, "path: chart"),
        (HELM, "ref: {tag: v1}"),
        (HELM, "insecure: true"),
        (HELM, "provider: aws"),
        (HELM, "verify: {provider: cosign}"),
        (GIT, "name: web"),
        (GIT, "version: '1.0.0'"),
        (GIT, "versionRange: 1.x"),
        (GIT, "insecure: true"),
        (GIT, "certSecretRef: {name: a}"),
    ],
)
def test_field_that_the_source_has_no_place_for_is_refused(tmp_path: Path, chart: str, field: str) -> None:
    own = made(tmp_path / "own", service(f"{chart}, {field}"))

    assert codes(own) == ["R204"]
    if "valuesFiles" not in field:
        entry = charts(f"base: {{{chart}, {field}}}")
        named = made(tmp_path / "named", service("repository: base"), service("repository: base", "db"), platform=entry)
        assert [(fault.code, fault.location.path) for fault in named.diagnostics] == [("R204", "platform.yaml")]


@pytest.mark.parametrize(
    "field",
    ["secretRef: {name: a}", "certSecretRef: {name: a}", "insecure: true", "provider: aws", "interval: 1h"],
)
def test_named_source_is_reached_as_the_platform_says(tmp_path: Path, field: str) -> None:
    built = made(
        tmp_path, service(f"repository: base, version: '1.0.0', {field}"), platform=charts("base: {url: 'oci://a/b'}")
    )

    assert codes(built) == ["R204"]


@pytest.mark.parametrize(
    ("chart", "code"),
    [
        (OCI + ", verify: {provider: gpg}", "R104"),
        (OCI + ", verify: {provder: cosign}", "R101"),
        (OCI + ", provider: acs", "R104"),
        (OCI + ", interval: 1d", "R104"),
        (HELM + ", interval: hourly", "R104"),
        (GIT + ", provider: gitlab", "R104"),
        (GIT.replace("tag: v1", "tga: v1"), "R101"),
        (GIT.replace("tag: v1", "tag: 1.10"), "R103"),
        (GIT.replace("tag: v1", ""), "R102"),
    ],
)
def test_parts_in_flux_form_are_checked(tmp_path: Path, chart: str, code: str) -> None:
    own = made(tmp_path / "own", service(chart))
    named = made(tmp_path / "named", service("repository: base"), platform=charts(f"base: {{{chart}}}"))

    assert codes(own) == [code]
    assert codes(named) == [code]
    assert named.diagnostics[0].location.path == ("catalog/0.yaml" if code == "R102" else "platform.yaml")


def test_field_of_a_named_source_that_is_newer_than_the_target_is_told_once_in_the_platform_file(
    tmp_path: Path,
) -> None:
    entry = "base: {url: 'oci://a.example/b', verify: {provider: cosign, trustedRootSecretRef: {name: a}}}"
    chart = "repository: base, version: '1.0.0'"

    built = made(tmp_path, service(chart), service(chart, "db"), platform=charts(entry, PLATFORM.replace("2.9", "2.8")))

    assert [(fault.code, fault.location.path) for fault in built.diagnostics] == [("R401", "platform.yaml")]


# Sources that something else brings


@pytest.mark.parametrize(
    ("chart", "expected"),
    [
        (
            "existingSource: {kind: HelmRepository, name: hub, namespace: flux-system}, name: redis, version: 1.1.2",
            {
                "chart": "redis",
                "version": "1.1.2",
                "sourceRef": {"kind": "HelmRepository", "name": "hub", "namespace": "flux-system"},
            },
        ),
        (
            "existingSource: {kind: GitRepository, name: charts, namespace: web}, path: ./charts/web",
            {
                "chart": "./charts/web",
                "sourceRef": {"kind": "GitRepository", "name": "charts"},
                "reconcileStrategy": "Revision",
            },
        ),
        (
            "existingSource: {kind: Bucket, name: charts}, path: web.tgz, valuesFiles: [values-prod.yaml]",
            {
                "chart": "web.tgz",
                "sourceRef": {"kind": "Bucket", "name": "charts"},
                "reconcileStrategy": "Revision",
                "valuesFiles": ["values-prod.yaml"],
            },
        ),
    ],
)
def test_existing_source_of_many_charts_is_named_and_not_rendered(
    tmp_path: Path, chart: str, expected: dict[str, Any]
) -> None:
    built = made(tmp_path, service(chart))

    assert spec(built, "HelmRelease")["chart"] == {"spec": expected}
    assert {one["kind"] for one in objects(built)} == {"HelmRelease", "Kustomization", "Namespace"}


@pytest.mark.parametrize("kind", ["OCIRepository", "HelmChart", "ExternalArtifact"])
def test_existing_source_that_is_the_chart_is_a_chart_ref(tmp_path: Path, kind: str) -> None:
    built = made(tmp_path, service(f"existingSource: {{kind: {kind}, name: app, namespace: flux-system}}"))

    assert spec(built, "HelmRelease")["chartRef"] == {"kind": kind, "name": "app", "namespace": "flux-system"}


@pytest.mark.parametrize(
    ("chart", "code"),
    [
        ("existingSource: {kind: OCIRepository, name: app}, version: 1.2.3", "R204"),
        ("existingSource: {kind: HelmChart, name: app}, valuesFiles: [a.yaml]", "R204"),
        ("existingSource: {kind: HelmRepository, name: app}, name: web, version: 1.2.3, secretRef: {name: s}", "R204"),
        ("existingSource: {kind: HelmRepository, name: app}, name: web, version: 1.x", "R204"),
        ("existingSource: {kind: HelmRepository, name: app}, name: web", "R102"),
        ("existingSource: {kind: HelmRepository, name: app}, version: 1.2.3", "R102"),
        ("existingSource: {kind: GitRepository, name: app}", "R102"),
        ("existingSource: {kind: GitRepository, name: app}, path: web, ref: {branch: main}", "R204"),
        ("existingSource: {kind: GitRepository, name: app}, path: web, version: 1.2.3", "R204"),
        ("existingSource: {kind: GitRepository, name: app}, path: web, git: 'https://git.example/x'", "R204"),
        ("existingSource: {kind: Secret, name: app}", "R104"),
    ],
)
def test_existing_source_is_described_by_its_object(tmp_path: Path, chart: str, code: str) -> None:
    assert codes(made(tmp_path, service(chart))) == [code]


def test_existing_source_of_another_namespace_needs_cross_namespace_references(tmp_path: Path) -> None:
    chart = "existingSource: {kind: OCIRepository, name: app, namespace: flux-system}"

    assert codes(made(tmp_path, service(chart), platform=APART)) == ["R204"]


# Variables


def test_versions_that_hold_a_variable_are_judged_in_the_cluster(tmp_path: Path) -> None:
    built = made(tmp_path, service("url: 'https://charts.example', name: web, version: '${WEB_VERSION}'"))

    assert spec(built, "HelmRelease")["chart"]["spec"]["version"] == "${WEB_VERSION}"


def test_names_that_hold_a_variable_are_judged_in_the_cluster(tmp_path: Path) -> None:
    chart = "url: 'https://charts.example', name: web, version: '1.0.0'"
    built = made(tmp_path, service(chart, more="objectName: '${APP}'\nnamespace: '${NS:=web}'\n"))

    assert only(built, "HelmRelease")["metadata"] == {"name": "${APP}", "namespace": "${NS:=web}"}
