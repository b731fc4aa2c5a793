from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from render.build import Build
from render.plan.platform import is_branch
from tests.project import Project, objects, project, told

WEB = "name: web\nsource: {chart: {url: 'oci://charts.example.org/c', version: '1.0.0'}}\n"
LEAST = 'cluster: test\nflux: {version: "2.9"}\n'
DIGEST = "sha256:" + "0123456789abcdef" * 4


def made(folder: Path, platform: str) -> Build:
    return project(folder, {"catalog/web.yaml": WEB, "platform.yaml": platform}).build()


def codes(folder: Path, platform: str) -> list[str]:
    return [fault.code for fault in made(folder, platform).diagnostics]


def overrides(*entries: str, field: str = "imageOverrides") -> str:
    listed = ", ".join(f"{{{entry}}}" for entry in entries)
    return LEAST + (
        f"registries: {{imageOverrides: [{listed}]}}\n" if field == "imageOverrides" else f"{field}: [{listed}]\n"
    )


def test_cluster_and_version_are_all_that_is_needed(tmp_path: Path) -> None:
    built = made(tmp_path, LEAST)

    assert told(built) == []
    assert not built.failed


@pytest.mark.parametrize(
    ("platform", "code"),
    [
        ('flux: {version: "2.9"}\n', "R102"),
        ("cluster: test\n", "R102"),
        ("cluster: test\nflux: {}\n", "R102"),
        ('cluster: Test\nflux: {version: "2.9"}\n', "R104"),
        (LEAST + "extra: 1\n", "R101"),
        ("", "R105"),
        ("---\n# nothing\n", "R105"),
        (LEAST + "---\n" + LEAST, "R105"),
        ("- a\n", "R103"),
        ("cluster: [\n", "R003"),
        (LEAST + "cluster: other\n", "R002"),
    ],
)
def test_platform_file_that_is_none_is_refused(tmp_path: Path, platform: str, code: str) -> None:
    assert codes(tmp_path, platform) == [code]


@pytest.mark.parametrize("version", ["2.7", "2.7.5", "2.8", "2.8.0", "2.9", "2.9.4"])
def test_served_flux_versions(tmp_path: Path, version: str) -> None:
    assert codes(tmp_path, LEAST.replace("2.9", version)) == []


@pytest.mark.parametrize("version", ["2.6", "2.6.9", "3.0", "2", "latest", "v2.9", "2.x", "2.9.4-rc.1", "2.42"])
def test_other_flux_versions_are_refused(tmp_path: Path, version: str) -> None:
    assert codes(tmp_path, LEAST.replace("2.9", version)) == ["R104"]


def test_flux_version_must_be_quoted(tmp_path: Path) -> None:
    assert codes(tmp_path, LEAST.replace('"2.9"', "2.9")) == ["R103"]


@pytest.mark.parametrize("root", ["clusters/home", ".", "a", "./a"])
def test_root_lies_in_the_repository(tmp_path: Path, root: str) -> None:
    assert codes(tmp_path, LEAST + f"root: {root}\n") == []


@pytest.mark.parametrize(
    "root",
    [
        "..",
        "../other",
        "a/../../b",
        "/etc",
        "''",
        "'a\\b'",
        "' '",
        '"a\\0b"',
        '"a\\nb"',
        '"\\x7f"',
        "a" * 256,
        "a/" * 2000,
    ],
)
def test_root_outside_the_repository_is_refused(tmp_path: Path, root: str) -> None:
    assert codes(tmp_path, LEAST + f"root: {root}\n") == ["R502"]
    ran = Project(tmp_path).run("build", "--format", "concise")

    assert ran.code == 1
    assert ran.err.startswith("platform.yaml:3:7: R502 `root` must be a folder inside the repository, not")


# Chart sources


@pytest.mark.parametrize(
    ("entry", "code"),
    [
        ("base: {url: 'oci://a.example/b'}", None),
        ("base: {url: 'https://a.example', name: b, version: '1.0.0'}", None),
        ("base: {git: 'https://a.example/b', path: c, ref: {branch: main}}", None),
        (
            "base: {url: 'oci://a.example/b', at: 'controllers.{service}.containers[name=app].image', shape: string}",
            None,
        ),
        ("base: {name: b}", "R204"),
        ("base: {url: 'oci://a.example/b', git: 'https://a.example/b'}", "R204"),
        ("base: {url: a.example}", "R204"),
        ("base: {url: 'ftp://a.example'}", "R204"),
        ("base: {url: 'oci://a.example/b', version: '1.0.0', versionRange: 1.x}", "R204"),
        ("Base: {url: 'oci://a.example/b'}", "R104"),
        ("a.b: {url: 'oci://a.example/b'}", "R104"),
        ("base: {url: 'oci://a.example/b', at: 'a..b'}", "R208"),
        ("base: {url: 'oci://a.example/b', shape: whole}", "R104"),
        ("base: {url: 'oci://a.example/b', version: 1.10}", "R103"),
        ("base: {url: 'oci://a.example/b', interval: 1d}", "R104"),
        ("base: {url: 'oci://a.example/b', verison: '1'}", "R101"),
    ],
)
def test_chart_source_is_checked_used_or_not(tmp_path: Path, entry: str, code: str | None) -> None:
    assert codes(tmp_path, LEAST + f"charts:\n  {entry}\n") == ([code] if code else [])


@pytest.mark.parametrize("version", ["1.x", "'*'", "'>=1'"])
def test_version_of_a_chart_source_is_exact(tmp_path: Path, version: str) -> None:
    assert codes(tmp_path, LEAST + f"charts: {{base: {{url: 'oci://a.example/b', version: {version}}}}}\n") == ["R204"]


@pytest.mark.parametrize(
    ("at", "hint"),
    [
        ("controllers.{service}.[0]", "write `controllers.{service}[0]`"),
        ("a..{service}", "write `key.list[0].key`"),
    ],
)
def test_path_of_a_chart_source_is_quoted_as_it_is_written(tmp_path: Path, at: str, hint: str) -> None:
    (fault,) = made(tmp_path, LEAST + f"charts: {{base: {{url: 'oci://a.example/b', at: '{at}'}}}}\n").diagnostics

    assert (fault.message, fault.hint) == (f"`charts.base.at` must be a path, not `{at}`", hint)


@pytest.mark.parametrize(("key", "hint"), [("Bitnami_Old", "rename it to `bitnami-old`"), ("_", "rename it")])
def test_name_of_a_chart_source_is_repaired(tmp_path: Path, key: str, hint: str) -> None:
    (fault,) = made(tmp_path, LEAST + f"charts: {{{key}: {{url: 'oci://a.example/b'}}}}\n").diagnostics

    assert (fault.code, fault.hint) == ("R104", hint)


def test_credentials_for_one_registry_are_refused_used_or_not(tmp_path: Path) -> None:
    listed = "{registry: a.example/b}, {registry: a.example}, {registry: a.example/b/}"

    (fault,) = made(tmp_path, LEAST + f"registries: {{credentials: [{listed}]}}\n").diagnostics

    assert (fault.code, fault.message) == ("R606", "two entries of `registries.credentials` are for `a.example/b`")


# The override tables


@pytest.mark.parametrize(
    "entry",
    [
        "name: ghcr.io/a/b, newName: corp.example/b",
        "name: nginx, newTag: '1.27.0'",
        f"name: 'registry.example:5000/a', digest: '{DIGEST}'",
        f"name: a/b, newName: c/d, newTag: '1', digest: '{DIGEST}'",
    ],
)
@pytest.mark.parametrize("field", ["imageOverrides", "fluxImageOverrides"])
def test_entry_that_kustomize_takes_is_taken(tmp_path: Path, entry: str, field: str) -> None:
    assert codes(tmp_path, overrides(entry, field=field)) == []


REFUSED = [
    ("newName: corp.example/b", "R102"),
    ("name: a/b", "R601"),
    ("name: '', newName: b", "R601"),
    ("name: a/b, newName: ''", "R601"),
    ("name: a/b, newTag: ''", "R601"),
    ("name: 'a/b:1', newName: c/d", "R601"),
    (f"name: 'a/b@{DIGEST}', newName: c/d", "R601"),
    ("name: 'https://a/b', newName: c/d", "R601"),
    ("name: 'a/.*', newName: c/d", "R601"),
    ("name: 'a/(b|c)', newName: c/d", "R601"),
    ("name: 'a/b+', newName: c/d", "R601"),
    ("name: a/b, newName: 'https://c/d'", "R601"),
    ("name: a/b, newName: 'c/d:1'", "R601"),
    ("name: a/b, newName: c/d/", "R601"),
    ("name: a/b, newTag: 'a b'", "R601"),
    ("name: a/b, digest: 'sha256:abc'", "R601"),
    ("name: a/b, digest: '1.0'", "R601"),
    ("name: a/b, newTag: 1.20", "R103"),
    ("name: a/b, newTag: 20240701", "R103"),
    ("name: a/b, newName: [c]", "R103"),
    ("name: a/b, newname: c/d", "R101"),
    ("name: a/b, tagSuffix: -x", "R101"),
]


@pytest.mark.parametrize(("entry", "code"), REFUSED)
def test_entry_that_does_not_say_what_is_meant_is_refused(tmp_path: Path, entry: str, code: str) -> None:
    assert code in codes(tmp_path / "all", overrides(entry))
    assert code in codes(tmp_path / "flux", overrides(entry, field="fluxImageOverrides"))


@pytest.mark.parametrize(("entry", "code"), REFUSED)
def test_fault_of_an_entry_names_the_entry_and_its_line(tmp_path: Path, entry: str, code: str) -> None:
    text = f"{LEAST}registries:\n  imageOverrides:\n  - {{name: x/y, newName: z}}\n  - {{{entry}}}\n"

    fault = next(fault for fault in made(tmp_path, text).diagnostics if fault.code == code)

    assert "[1]" in fault.message
    assert (fault.location.path, fault.location.line) == ("platform.yaml", 6)


def test_two_entries_of_one_name_are_refused_with_both_places(tmp_path: Path) -> None:
    text = f"{LEAST}registries:\n  imageOverrides:\n  - {{name: a/b, newName: c}}\n  - {{name: a/b, newTag: '1'}}\n"

    (fault,) = made(tmp_path, text).diagnostics

    assert fault.code == "R601"
    assert [fault.location.line, *(place.line for place, _ in fault.related)] == [6, 5]


def test_entry_that_rewrites_what_an_earlier_one_writes_is_warned_of(tmp_path: Path) -> None:
    built = made(tmp_path, overrides("name: a/b, newName: c/d", "name: c/d, newName: e/f"))

    assert [(fault.code, fault.severity) for fault in built.diagnostics] == [("R608", "warning")]
    assert codes(tmp_path / "turned", overrides("name: c/d, newName: e/f", "name: a/b, newName: c/d")) == []


@pytest.mark.parametrize("empty", ["registries: {imageOverrides: []}\n", "registries: {imageOverrides: null}\n", ""])
def test_table_may_be_empty_or_absent(tmp_path: Path, empty: str) -> None:
    assert codes(tmp_path, LEAST + empty) == []


def test_fault_of_the_table_brings_no_fault_of_services(tmp_path: Path) -> None:
    image = WEB.replace("{chart:", "{image: 'a/b:1.0.0', chart:") + "update: {range: 1.x}\n"
    made_ = project(tmp_path, {"catalog/web.yaml": image, "platform.yaml": overrides("name: a/b, newTag: ''")}).build()

    assert [fault.code for fault in made_.diagnostics] == ["R601"]


# The image update automation

AUTOMATION = "imageAutomation: {enabled: true, author: {email: bot@example.org}"


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        (AUTOMATION + "}\n", None),
        (AUTOMATION + ", secretFile: git.sops.yaml}\n", None),
        ("imageAutomation: {enabled: true}\n", "R102"),
        ("imageAutomation: {enabled: false}\n", None),
        (AUTOMATION + ", secretFile: ../git.sops.yaml}\n", "R502"),
        (AUTOMATION + ", secretFile: /git.yaml}\n", "R502"),
        (AUTOMATION + ", secretFile: git.txt}\n", "R502"),
        ("imageAutomation: {secretFile: ../git.sops.yaml}\n", "R502"),
        ("imageAutomation: {secretFile: kustomization.yaml}\n", "R502"),
        (AUTOMATION + ", secretFile: image-update-automation.yaml}\n", "R502"),
        (AUTOMATION + ", signingKey: {secretRef: {name: a}}, policySelector: {matchLabels: {a: b}}}\n", None),
        (AUTOMATION + ", signingKey: {secret: {name: a}}}\n", "R101"),
        (AUTOMATION + ", policySelector: {matchLabels: {a: true}}}\n", "R103"),
        (AUTOMATION + ", messageTemplate: '{{ .Updated }}'}\n", "R401"),
        (AUTOMATION + ", interval: hourly}\n", "R104"),
        (AUTOMATION + ", brunch: main}\n", "R101"),
        (AUTOMATION + ", messageTemplate: '{{ range .Changed.Changes }}{{ .Setter }}'}\n", "R401"),
        (AUTOMATION + ", messageTemplate: '{{ range .Changed.Changes }}{{ .Setter }}{{ end }}'}\n", None),
        (AUTOMATION + ", messageTemplate: 'no template: }} {'}\n", None),
        (AUTOMATION + ", pushOptions: {ci.skip: ''}, pushRefspec: 'refs/heads/*:refs/heads/bot/*'}\n", None),
        (AUTOMATION + ", pushOptions: {ci.skip: true}}\n", "R103"),
        (AUTOMATION + ", pushRefspec: 'main'}\n", "R401"),
        (AUTOMATION + ", pushRefspec: 'a:b:c'}\n", "R401"),
        (AUTOMATION + ", pushRefspec: 'a/*:b'}\n", "R401"),
        (AUTOMATION + ", pushRefspec: ':b'}\n", "R401"),
    ],
)
def test_settings_of_the_automation_are_checked(tmp_path: Path, settings: str, code: str | None) -> None:
    assert codes(tmp_path, LEAST + settings) == ([code] if code else [])


def test_field_of_the_automation_that_is_newer_than_the_target_is_told_at_its_place(tmp_path: Path) -> None:
    platform = LEAST.replace("2.9", "2.8") + AUTOMATION + ",\n  signingKey: {secretRef: {name: a},\n    type: ssh}}\n"

    (fault,) = made(tmp_path, platform).diagnostics

    assert (fault.code, fault.location.line, fault.location.column) == ("R401", 5, 11)


@pytest.mark.parametrize(
    ("decryption", "code"),
    [("{provider: sops, secretRef: {name: age}}", None), ("{provider: pgp}", "R104"), ("{provder: sops}", "R101")],
)
def test_decryption_is_checked(tmp_path: Path, decryption: str, code: str | None) -> None:
    platform = LEAST.replace('"2.9"', f'"2.9", decryption: {decryption}')

    assert codes(tmp_path, platform) == ([code] if code else [])


def test_automation_needs_a_git_repository(tmp_path: Path) -> None:
    source = LEAST.replace('"2.9"', '"2.9", source: {kind: OCIRepository}')

    assert codes(tmp_path / "on", source + AUTOMATION + "}\n") == ["R401"]
    assert codes(tmp_path / "off", source) == []


def test_source_of_another_namespace_needs_references_across_them(tmp_path: Path) -> None:
    source = LEAST.replace('"2.9"', '"2.9", source: {namespace: git}')
    own = LEAST.replace('"2.9"', '"2.9", source: {namespace: flux-system}, crossNamespaceRefs: false')

    assert codes(tmp_path / "allowed", source) == []
    assert codes(tmp_path / "own", own) == []
    assert codes(tmp_path / "refused", source.replace('"2.9"', '"2.9", crossNamespaceRefs: false')) == ["R401"]


@pytest.mark.parametrize("enabled", ["true", "false"])
@pytest.mark.parametrize(
    "labels", ["x", "1", "[a]", "[{}]", "true", "{a: [b]}", '{a: "two\\nlines"}', '{"": ""}', "{a: b c}", "{a: 1}"]
)
def test_labels_of_the_selector_are_labels(tmp_path: Path, enabled: str, labels: str) -> None:
    web = WEB.replace("source: {", "source: {image: 'r.example/web:1.0.0', ") + "update: {range: 1.x}\n"
    author = "author: {email: bot@example.org}"
    platform = f"{LEAST}imageAutomation: {{enabled: {enabled}, {author}, policySelector: {{matchLabels: {labels}}}}}\n"
    built = project(tmp_path, {"catalog/web.yaml": web, "platform.yaml": platform}).build()

    assert built.failed
    assert all(fault.location.line == 3 for fault in built.diagnostics)
    assert all("policySelector" in fault.message for fault in built.diagnostics)


@pytest.mark.parametrize(
    "name",
    [
        "main", "a/b", "a.b", "a@b", "ü", "-a", "a b", "a..b", "a.lock", ".a", "a.", "a/", "/a", "a//b", "a/.b", "a~",
        "a^", "a:b", "a?", "a*", "a[", "a\\b", "a@{b", "@", "a\tb", "a\n", "a\x7f", "HEAD", "", " ",
        "a/b.lock/c", "a.lock.b",
    ],
)  # fmt: skip
def test_name_of_a_branch_is_what_git_takes(name: str, tmp_path: Path) -> None:
    git = subprocess.run(["git", "check-ref-format", "--branch", name], cwd=tmp_path, capture_output=True, check=False)

    assert is_branch(name) == (git.returncode == 0 and name != "HEAD")


@pytest.mark.parametrize("runbooks", ["https://wiki/{{ x }}", "a b", '""', '"a\\n"', "a{"])
def test_address_of_the_runbooks_is_no_template(tmp_path: Path, runbooks: str) -> None:
    (fault,) = made(tmp_path, LEAST + f"alerts:\n  runbooks: {runbooks}\n").diagnostics

    assert (fault.code, fault.location.line) == ("R104", 4)


def test_settings_of_an_automation_that_is_left_out_are_not_asked_for(tmp_path: Path) -> None:
    repository = project(
        tmp_path, {"catalog/web.yaml": WEB, "platform.yaml": LEAST + "imageAutomation: {enabled: true}\n"}
    )

    assert not repository.build(automation=False).failed


# Defaults


@pytest.mark.parametrize(
    ("defaults", "code"),
    [
        ("interval: 1h30m, timeout: 90s, retries: -1", None),
        ("interval: 1d", "R104"),
        ("interval: 60", "R103"),
        ("retries: -2", "R104"),
        ("namespace: Apps", "R104"),
        ("namespaces: maybe", "R103"),
        ("substitute: [DOMAIN, _x1]", None),
        ("substitute: [domain.name]", "R104"),
        ("substitute: [1X]", "R104"),
        ("release: {maxHistory: 3}", None),
        ("release: {maxhistory: 3}", "R101"),
        ("release: {values: {}}", "R402"),
    ],
)
def test_defaults_are_checked(tmp_path: Path, defaults: str, code: str | None) -> None:
    assert codes(tmp_path, LEAST + f"defaults: {{{defaults}}}\n") == ([code] if code else [])


@pytest.mark.parametrize("field", ["services: {}", "registries: {mirrors: []}", "registries: {allowed: []}"])
def test_fields_for_later_are_refused(tmp_path: Path, field: str) -> None:
    assert codes(tmp_path, LEAST + field + "\n") == ["R101"]


def test_all_faults_of_the_platform_file_are_told_with_those_of_the_catalog(tmp_path: Path) -> None:
    platform = LEAST + "root: ..\nregistries: {imageOverrides: [{name: a}]}\ncharts: {base: {name: b}}\n"
    repository = project(tmp_path, {"catalog/web.yaml": WEB + "dependsOn: [gone]\n", "platform.yaml": platform})

    assert sorted(fault.code for fault in repository.build().diagnostics) == ["R201", "R204", "R502", "R601"]


def test_catalog_is_checked_although_there_is_no_platform_file(tmp_path: Path) -> None:
    repository = project(tmp_path, {"catalog/web.yaml": WEB + "replicas: 1\n"})
    (tmp_path / "platform.yaml").unlink()

    built = repository.build()

    assert sorted(fault.code for fault in built.diagnostics) == ["R101", "R105"]
    assert objects(built) == []
