"""The Renovate configuration: what its regular expressions find, in the shipped catalog and in every spelling."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import re2
import yaml
from hypothesis import given
from hypothesis import strategies as st

from render.renovate import OutsideError, Renovate, configure
from render.renovate_check import Dependency, Wanted, check, extract
from tests.project import PLATFORM, Project, project

ROOT = Path(__file__).parents[1]
D = "sha256:" + "d" * 64

CHARTS = """\
charts:
  named: {url: https://charts.example.org/}
  own:
    url: https://own.example.org
    name: own-chart
  folder:
    url: oci://r.example:5000/charts
    interval: 1h
  whole:
    url: oci://r.example/charts/whole
    # one for all
    version: "1.2.3"
  git:
    git: https://git.example.org/charts.git
    path: charts/a
    ref:
      tag: v1.0.0
  git-own:
    git: https://git.example.org/own.git
    path: a
"""


def made_of(folder: Path, service: str, *, automation: bool = True, platform: str = CHARTS) -> Renovate:
    made = project(folder, {"platform.yaml": PLATFORM + platform, "catalog/apps/web.yaml": service})
    return configured(made, automation=automation)


def configured(made: Project, *, automation: bool = True) -> Renovate:
    return configure(made.folder / "catalog", made.folder / "platform.yaml", automation=automation)


def seen(made: Renovate) -> list[tuple[str | None, ...]]:
    return [found[1:] for found in made.found if found.file.startswith("catalog/")]


def told(made: Renovate) -> list[str]:
    return [f"{one.code} {one.location.line} {one.message}" for one in made.diagnostics]


# The shipped catalog


def expected_charts() -> Counter[tuple[str, str, str]]:
    """The chart versions of the shipped catalog, read by PyYAML: file, name and version."""
    platform = yaml.safe_load((ROOT / "platform.yaml").read_text())
    made: Counter[tuple[str, str, str]] = Counter()
    for path in sorted((ROOT / "catalog").rglob("*.yaml")):
        for service in yaml.safe_load_all(path.read_text()):
            chart = (service.get("source") or {}).get("chart")
            if not chart:
                continue
            version = chart.get("version") or (chart.get("ref") or {}).get("tag")
            if version is not None:
                entry = platform["charts"].get(chart.get("repository"), chart)
                address = str(entry.get("url") or entry.get("git")).removeprefix("oci://").rstrip("/")
                is_oci = str(entry.get("url")).startswith("oci://")
                name = f"{address}/{chart['name']}" if is_oci and chart.get("name") else chart.get("name")
                made[path.relative_to(ROOT).as_posix(), name or address, version] += 1
    for entry in platform["charts"].values():
        if "version" in entry:
            made["platform.yaml", entry["url"].removeprefix("oci://"), entry["version"]] += 1
    return made


def expected_images(*, automation: bool) -> Counter[tuple[str, str, str | None, str | None]]:
    """The images of the shipped catalog that are not Flux's, read by PyYAML: file, name, tag and digest."""
    made: Counter[tuple[str, str, str | None, str | None]] = Counter()
    for path in sorted((ROOT / "catalog").rglob("*.yaml")):
        for service in yaml.safe_load_all(path.read_text()):
            listed = [((service.get("source") or {}).get("image"), service.get("update"))]
            images = (service.get("images") or {}).values()
            listed += [(image, image.get("update") if isinstance(image, dict) else None) for image in images]
            for image, update in listed:
                if image is None or (update is not None if automation else "pin" in (update or {})):
                    continue
                ref = image.get("ref") if isinstance(image, dict) else image
                if ref is None:
                    ref = in_values(service, image)
                match = re.fullmatch(r"(.+?)(?::([^:/@]+))?(?:@(.+))?", ref)
                assert match is not None
                made[path.relative_to(ROOT).as_posix(), match[1], match[2], match[3]] += 1
    return made


def in_values(service: dict[str, Any], image: dict[str, Any]) -> str:
    node = service["values"]
    for key in image["at"].split("."):
        node = node[key]
    registry = f"{node['registry']}/" if "registry" in node else ""
    return f"{registry}{node['repository']}:{node['tag']}" + (f"@{node['digest']}" if "digest" in node else "")


@pytest.mark.parametrize("automation", [True, False])
def test_each_version_of_the_shipped_catalog_is_found_once_and_nothing_else(automation: bool) -> None:
    made = configure(ROOT / "catalog", ROOT / "platform.yaml", automation=automation)
    charts = Counter((one.file, one.package, one.value) for one in made.found if one.kind == "chart")
    images = Counter((one.file, one.package, one.value, one.digest) for one in made.found if one.kind == "image")

    assert made.diagnostics == []
    assert charts == expected_charts()
    assert images == expected_images(automation=automation)
    assert len(made.found) == sum(charts.values()) + sum(images.values()) > 30


def test_the_datasource_and_the_registry_are_those_of_the_address() -> None:
    found = {one.package: one for one in configure(ROOT / "catalog", ROOT / "platform.yaml").found}

    assert found["cert-manager"][3:] == ("cert-manager", "v1.16.2", None, "https://charts.jetstack.io")
    assert found["cert-manager"].datasource == "helm"
    assert found["ghcr.io/bjw-s-labs/helm/app-template"].file == "platform.yaml"
    assert {one.datasource for one in found.values() if one.kind == "image"} == {"docker"}
    assert found["https://github.com/rancher/local-path-provisioner"].datasource == "git-tags"


def test_images_that_flux_automates_are_never_found() -> None:
    from render.inventory import take_inventory

    rows = take_inventory(ROOT / "catalog", ROOT / "platform.yaml").rows
    automated = {(row.service, row.declared) for row in rows if row.policy is not None}
    made = configure(ROOT / "catalog", ROOT / "platform.yaml")
    found = {
        (
            Path(one.file).stem,
            one.package + (f":{one.value}" if one.value else "") + (f"@{one.digest}" if one.digest else ""),
        )
        for one in made.found
    }

    assert len(automated) > 20
    assert {service for service, _ in automated} & {service for service, _ in found}
    assert automated & found == set()


@pytest.mark.parametrize("automation", [True, False])
def test_every_step_is_a_pattern_of_both_engines(automation: bool) -> None:
    made = configure(ROOT / "catalog", ROOT / "platform.yaml", automation=automation)
    steps = [step for manager in made.config["customManagers"] for step in manager["matchStrings"]]

    for step in steps:
        re2.compile(step)
        assert not re.search(r"\(\?(?![:<])|\(\?<[=!]|\\[1-9AzZpPQE]", step)
        assert re2.compile(step).fullmatch("") is None
    assert len(steps) > 50


def test_the_configuration_is_the_same_each_time() -> None:
    first, second = (configure(ROOT / "catalog", ROOT / "platform.yaml").text for _ in range(2))

    assert first == second
    assert json.loads(first)["$schema"].startswith("https://")


def test_the_output_is_left_alone() -> None:
    made = configure(ROOT / "catalog", ROOT / "platform.yaml")

    assert made.config["ignorePaths"] == [
        f"clusters/home/{folder}/**"
        for folder in ("apps", "configs", "platform/image-automation", "platform/alerts", "flux")
    ]


# Charts in every form


@pytest.mark.parametrize(
    ("chart", "found"),
    [
        (
            "{repository: named, name: x, version: 1.2.3-a}",
            ("helm", "x", "1.2.3-a", None, "https://charts.example.org/"),
        ),
        ("{repository: own, version: 1.2.3-a}", ("helm", "own-chart", "1.2.3-a", None, "https://own.example.org")),
        ("{repository: own, name: x, version: 1.2.3-a}", ("helm", "x", "1.2.3-a", None, "https://own.example.org")),
        (
            "{repository: folder, name: x, version: 1.2.3-a}",
            ("docker", "r.example:5000/charts/x", "1.2.3-a", None, None),
        ),
        ("{repository: whole, version: '1.2.3'}", ("docker", "r.example/charts/whole", "1.2.3", None, None)),
        (
            f"{{repository: folder, name: x, version: '1.2.3@{D}'}}",
            ("docker", "r.example:5000/charts/x", "1.2.3", D, None),
        ),
        ("{url: 'oci://r.example/a/b', version: 1.2.3-a}", ("docker", "r.example/a/b", "1.2.3-a", None, None)),
        ('{url: "oci://r.example/a", name: b, version: 1.2.3-a}', ("docker", "r.example/a/b", "1.2.3-a", None, None)),
        (
            "{url: https://h.example/c, name: b, version: 1.2.3-a}",
            ("helm", "b", "1.2.3-a", None, "https://h.example/c"),
        ),
        (
            "{name: b, version: 1.2.3-a, url: https://h.example/c, secretRef: {name: creds}}",
            ("helm", "b", "1.2.3-a", None, "https://h.example/c"),
        ),
        (
            "{git: https://git.example.org/a.git, path: charts/x, ref: {tag: v2}}",
            ("git-tags", "https://git.example.org/a.git", "v2", None, None),
        ),
        ("{repository: git-own, ref: {tag: v2}}", ("git-tags", "https://git.example.org/own.git", "v2", None, None)),
    ],
)
@pytest.mark.parametrize("form", ["braces", "block", "wide", "in one line", "crlf"])
def test_a_chart_is_found_in_every_form(chart: str, found: tuple[str, ...], form: str, tmp_path: Path) -> None:
    fields = yaml.safe_load(chart)
    if form == "braces":
        text = f"name: web\nsource:\n  chart: {chart} # why\n"
    elif form == "in one line":
        text = f"name: web\nsource: {{ chart: {chart}}}\n"
    else:
        indent = 4 if form == "wide" else 2
        dumped = yaml.safe_dump(
            {"name": "web", "source": {"chart": fields}}, sort_keys=False, indent=indent, width=1000
        )
        text = dumped.replace("version:", "# version: 9.9.9\n\n        version:") if form == "wide" else dumped
        text = text.replace("\n", "\r\n") if form == "crlf" else text
    made = made_of(tmp_path, text)

    assert told(made) == []
    assert seen(made) == [("chart", *found)]


@pytest.mark.parametrize(
    "chart",
    [
        "{repository: named, name: x, versionRange: 1.x}",
        "{repository: whole}",
        "{repository: git}",
        "{repository: git-own, ref: {branch: main}}",
        "{existingSource: {kind: HelmRepository, name: a}, name: b, version: 1.2.3-a}",
    ],
)
def test_a_chart_without_a_version_of_its_own_is_none(chart: str, tmp_path: Path) -> None:
    made = made_of(tmp_path, f"name: web\nsource:\n  chart: {chart}\n")

    assert told(made) == []
    assert seen(made) == []


def test_the_versions_of_the_platform_file_are_found_there(tmp_path: Path) -> None:
    made = made_of(tmp_path, "name: web\nsource:\n  chart: {repository: whole}\n")

    assert made.found == [
        Dependency("platform.yaml", "chart", "docker", "r.example/charts/whole", "1.2.3", None),
        Dependency("platform.yaml", "chart", "git-tags", "https://git.example.org/charts.git", "v1.0.0", None),
    ]


def test_the_version_of_a_whole_repository_of_the_platform_is_told(tmp_path: Path) -> None:
    platform = "charts:\n  many:\n    url: https://many.example.org\n    version: 1.2.3-a\n"
    made = made_of(tmp_path, "name: web\nsource:\n  chart: {repository: many, name: x}\n", platform=platform)

    assert made.found == []
    assert told(made) == ["R804 9 the chart `:1.2.3-a` stands where Renovate does not see it"]


def test_a_secret_below_the_chart_is_not_its_name(tmp_path: Path) -> None:
    service = """\
    name: web
    source:
      chart:
        url: oci://r.example/a
        certSecretRef:
          name: tls
        version: 1.2.3-a
        secretRef:
          name: creds
        verify:
          provider: cosign
          secretRef:
            name: keys
    """
    made = made_of(tmp_path, service)

    assert seen(made) == [("chart", "docker", "r.example/a", "1.2.3-a", None, None)]
    assert told(made) == []


def test_what_only_looks_like_a_chart_is_none(tmp_path: Path) -> None:
    service = """\
    name: web
    description: |
      source:
        chart:
          url: oci://r.example/no
          version: 9.9.9
    source:
      image: docker.io/a/b:1.0.0
    workload:
      env:
        A: "1"
    extraObjects:
    - apiVersion: v1
      kind: ConfigMap
      metadata: {name: a}
      data:
        source: 'a'
        chart: {url: oci://r.example/no, version: 9.9.9}
    """.replace("{url: oci://r.example/no, version: 9.9.9}", "|\n          url: oci://r.example/no")
    made = made_of(tmp_path, service)

    assert [one.kind for one in made.found if one.file != "platform.yaml"] == ["image"]


# Images in every form

PLAIN = "workload: {probes: {readiness: {tcpSocket: {port: 80}}}}\n"

IMAGES = """\
name: web
source:
  image: {main}
  chart: {{url: oci://r.example/a, version: 1.2.3-a}}
images:
  one: {one}
  two: {{ref: docker.io/x/two:2, at: two}}
  three:
    ref: docker.io/x/three:3
    at: three
    update: {{range: "*"}}
  four: {{ref: docker.io/x/four:4, at: four, update: {{range: 4.x}}}}
  five:
    at: five
    ref: "docker.io/x/five:5@{D}"

    # after a blank line
    update:
      pin: "5"
  six: {{ref: 'docker.io/x/six:6', at: six, update: {{pin: "6"}}}}
{update}"""


@pytest.mark.parametrize(
    ("update", "automated", "pinned"),
    [
        ("", False, False),
        ("update: {range: '*'}\n", True, False),
        ("update:\n  range: '*'\n  digest: always\n", True, False),
        ("update:\n  # later\n\n  channel: stable\n  range: '*'\n", True, False),
        ("update: {pin: 1.0.0-a}\n", True, True),
        ("update: {range: '*', pin: 1.0.0-a} # why\n", True, True),
        ("update:\n  range: '*'\n# here\n\n  pin: 1.0.0-a\n", True, True),
        ("values: {update: {pin: x}, pin: y}\n", False, False),
        ("annotations: {a/update: b}\nvalues:\n  update:\n    pin: x\n", False, False),
    ],
)
@pytest.mark.parametrize(
    ("main", "one"),
    [
        ("docker.io/x/main:1.0.0-a", "{at: one, ref: docker.io/x/one:1}"),
        ('{ref: "docker.io/x/main:1.0.0-a", at: main}', "docker.io/x/one:1 # at its default place"),
    ],
)
@pytest.mark.parametrize("automation", [True, False])
def test_images_are_found_unless_they_are_automated_or_pinned(
    update: str, automated: bool, pinned: bool, main: str, one: str, automation: bool, tmp_path: Path
) -> None:
    made = made_of(tmp_path, IMAGES.format(main=main, one=one, update=update, D=D), automation=automation)
    found = sorted(one.package.rpartition("/")[2] for one in made.found if one.kind == "image")
    takes_main = not (automated if automation else pinned)
    others = ["one", "two"] if automation else ["four", "one", "three", "two"]

    assert [one for one in told(made) if one.startswith("R804")] == []
    assert found == sorted([*others, *(["main"] if takes_main else [])])


@pytest.mark.parametrize("document", range(3))
def test_the_update_of_another_document_is_none(document: int, tmp_path: Path) -> None:
    services = [f"name: s{n}\nsource: {{image: docker.io/x/s{n}:1.0.0}}\n{PLAIN}" for n in range(3)]
    services[document] += "update: {range: 1.x}\n"
    made = made_of(tmp_path, "# all\n---\n" + "--- # next\n".join(services))

    assert [one.package[-1] for one in made.found if one.kind == "image"] == [str(n) for n in range(3) if n != document]


def test_a_digest_without_a_tag_is_found(tmp_path: Path) -> None:
    made = made_of(tmp_path, f"name: web\nsource:\n  image: reg:5000/a@{D}\nworkload: {{}}\n")

    assert seen(made) == [("image", "docker", "reg:5000/a", None, D, None)]


VALUES = """\
name: web
source:
  image: {{at: {at}{shape}}}
  chart: {{url: oci://r.example/a, version: 1.2.3-a}}
update: {{range: 1.x}}
values:
  other: docker.io/x/a:1.0.0
  deep:
{values}
"""


@pytest.mark.parametrize(
    ("values", "shape", "digest"),
    [
        ("    app:\n      repository: docker.io/x/a\n      tag: 1.0.0-a\n", "", None),
        ("    app:\n      tag: '1.0.0-a' # bot\n      pullPolicy: Always\n      repository: docker.io/x/a\n", "", None),
        (f'    app: {{repository: docker.io/x/a, tag: "1.0.0-a@{D}"}}\n', "", D),
        ("    app:\n      registry: docker.io\n      repository: x/a\n      tag: 1.0.0-a\n", ", shape: registry", None),
        (f"    app:\n      repository: docker.io/x/a\n      tag: 1.0.0-a\n      digest: {D}\n", ", shape: digest", D),
        ("    app: docker.io/x/a:1.0.0-a\n", ", shape: string", None),
        (f"    app: &i docker.io/x/a:1.0.0-a@{D}\n    again: *i\n", ", shape: string", D),
    ],
)
def test_an_image_in_values_is_found_by_its_lines(values: str, shape: str, digest: str | None, tmp_path: Path) -> None:
    service = VALUES.format(at="deep.app", shape=shape, values=values.rstrip("\n"))
    made = made_of(tmp_path, service, automation=False)
    images = [one for one in made.found if one.kind == "image"]

    assert told(made) == []
    assert images == [Dependency("catalog/apps/web.yaml", "image", "docker", "docker.io/x/a", "1.0.0-a", digest)]
    assert [one for one in made_of(tmp_path, service).found if one.kind == "image"] == []
    (manager,) = [one for one in made.config["customManagers"] if "in its values" in one["description"]]
    (match,) = re2.compile(manager["matchStrings"][0]).finditer((tmp_path / "catalog/apps/web.yaml").read_text())
    filled = (
        manager["autoReplaceStringTemplate"]
        .replace("{{{newValue}}}", "1.0.0-a")
        .replace("{{{newDigest}}}", str(digest))
    )
    assert match.group() == filled


def test_ranges_and_digests_limit_what_is_proposed(tmp_path: Path) -> None:
    made = made_of(
        tmp_path,
        IMAGES.format(
            main="docker.io/x/main:1.2.0",
            one="{at: one, ref: docker.io/x/one:1}",
            update="update: {range: '>=1.2, <2'}\n",
            D=D,
        ),
        automation=False,
    )
    limits = {rule["matchPackageNames"][0]: rule for rule in made.config["packageRules"] if "matchPackageNames" in rule}

    assert {name: rule.get("allowedVersions") for name, rule in limits.items()} == {
        "docker.io/x/main": ">=1.2 <2",
        "docker.io/x/four": "4.x",
    }
    assert limits["docker.io/x/main"]["matchFileNames"] == ["catalog/apps/web.yaml"]
    made = made_of(
        tmp_path,
        f"name: web\nsource: {{image: 'x/a:rolling@{D}'}}\nupdate: {{channel: digest}}\n{PLAIN}",
        automation=False,
    )
    assert made.config["packageRules"][-1]["matchUpdateTypes"] == ["major", "minor", "patch"]
    assert made.config["packageRules"][-1]["enabled"] is False


@pytest.mark.parametrize(
    ("ref", "range_", "limited"),
    [
        ("a:2024.07.0", ">=2024.7.0 <2025.0.0", False),
        ("a:1.2.3", "!=1.5", False),
        ("a:1.2.3", "1.2 - 1.4 || ^2", True),
        ("a:v1.2.3", "~1.2.0", True),
    ],
)
def test_a_range_that_npm_does_not_know_limits_nothing(ref: str, range_: str, limited: bool, tmp_path: Path) -> None:
    made = made_of(
        tmp_path,
        f"name: web\nsource: {{image: docker.io/x/{ref}}}\nupdate: {{range: '{range_}'}}\n{PLAIN}",
        automation=False,
    )

    assert not made.failed
    assert any("allowedVersions" in rule for rule in made.config["packageRules"]) == limited


def test_a_rule_is_for_one_file_whatever_its_name(tmp_path: Path) -> None:
    service = f"name: web\nsource: {{image: docker.io/x/a:1.2.3}}\nupdate: {{range: 1.x}}\n{PLAIN}"
    made = configured(project(tmp_path, {"catalog/[a].yaml": service}), automation=False)

    assert made.config["packageRules"][-1]["matchFileNames"] == [r"/^catalog\/\[a\]\.yaml$/"]


# What is not found is told


@pytest.mark.parametrize(
    ("service", "line"),
    [
        ('name: web\nsource:\n  chart:\n    "url": oci://r.example/a\n    version: 1.2.3-a\n', 5),
        ("name: web\nvalues: {a: &v 1.2.3-a}\nsource:\n  chart:\n    url: oci://r.example/a\n    version: *v\n", 2),
        ("{name: web, source: {image: 'docker.io/x/a:1'}, workload: {}}\n", 1),
        ("name: web\nsource:\n  image: &x docker.io/x/a:1\nworkload: {}\n", 3),
    ],
)
def test_a_version_in_another_form_is_told(service: str, line: int, tmp_path: Path) -> None:
    made = made_of(tmp_path, service)

    assert [one.partition(" `")[0] for one in told(made)] == [
        f"R804 {line} the {'image' if 'image' in service else 'chart'}"
    ]
    assert made.config


def test_an_update_from_a_merge_key_is_respected(tmp_path: Path) -> None:
    service = """\
    name: web
    source: {chart: {url: oci://r.example/a, version: 1.2.3-a}}
    images:
      one: &one
        ref: docker.io/x/one:1.0.0
        at: one
        update: {range: 1.x}
      two:
        <<: *one
        ref: docker.io/x/two:1.0.0
        at: two
    """
    made = made_of(tmp_path, service)

    assert [one for one in made.found if one.kind == "image"] == []


def test_what_looks_like_a_version_is_told() -> None:
    config = {
        "customManagers": [
            {
                "managerFilePatterns": ["/yaml$/"],
                "matchStrings": ["# (?<depName>[a-z]+):(?<currentValue>[0-9]+)"],
                "datasourceTemplate": "docker",
                "depTypeTemplate": "image",
            }
        ]
    }
    found, faults = check(config, {"a.yaml": "# a:1\n", "b.json": "# a:1\n"}, Wanted())

    assert [one.file for one in found] == ["a.yaml"]
    assert [one.message for one in faults] == ["`a:1` would be taken for a version by Renovate"]


def test_a_step_that_matches_nothing_is_our_fault() -> None:
    manager = {"managerFilePatterns": ["/./"], "matchStrings": ["a*"], "datasourceTemplate": "docker"}

    with pytest.raises(ValueError, match="matches nothing"):
        list(extract({"customManagers": [manager]}, {"a": "b"}))


# Random definitions in random spellings: what PyYAML reads is what is found.


@st.composite
def services(draw: st.DrawFn) -> tuple[str, list[tuple[str, str, str]], bool]:
    """A definition with a chart and images, in block style with a random indentation, order and comments."""
    indent = draw(st.integers(1, 4))
    pad = " " * indent
    version = draw(st.sampled_from(["1.2.3-a", '"1.2.3-a"', "'1.2.3-a'"]))
    chart = [f"version: {version}", "url: oci://r.example/a", f"interval: 1h{draw(st.sampled_from(['', ' # x']))}"]
    chart += draw(st.sampled_from([[], ["name: b"], ["secretRef:\n" + pad * 3 + "name: c"], ["secretRef: {name: c}"]]))
    chart = draw(st.permutations(chart))
    name = "r.example/a/b" if "name: b" in chart else "r.example/a"
    between = st.sampled_from(["", "", "\n", f"{pad}# version: 0\n", "# image: a:0\n"])
    parts = {
        "description": "description: about image and chart\n",
        "source": f"source:\n{pad}image: {draw(st.sampled_from(['x/main:1.0.0', '{ref: x/main:1.0.0, at: main}']))}\n"
        + draw(between)
        + f"{pad}chart:\n"
        + "".join(draw(between) + f"{pad * 2}{line}\n" for line in chart),
        "values": f"values:\n{pad}image: x/no:1\n{pad}chart:\n{pad * 2}version: 0.0.1\n",
    }
    found = [("chart", name, "1.2.3-a")]
    automated = draw(st.booleans())
    if automated:
        parts["update"] = draw(st.sampled_from(["update: {range: 1.x}\n", f"update:\n{pad}range: 1.x\n"]))
    else:
        found.append(("image", "x/main", "1.0.0"))
    listed = draw(st.permutations(["one", "two", "up", "update"]))[: draw(st.integers(0, 4))]
    if listed:
        parts["images"] = "images:\n"
    for index, key in enumerate(listed):
        moves = draw(st.booleans())
        lines = [f"ref: x/i-{key[:2]}:1.0.{index}", f"at: a{index}", *(["update: {range: 1.x}"] if moves else [])]
        lines = draw(st.permutations(lines))
        if draw(st.booleans()):
            parts["images"] += f"{pad}{key}: {{{', '.join(lines)}}}\n"
        else:
            parts["images"] += f"{pad}{key}:\n" + "".join(draw(between) + f"{pad * 2}{line}\n" for line in lines)
        if not moves:
            found.append(("image", f"x/i-{key[:2]}", f"1.0.{index}"))
    order = draw(st.permutations(sorted(parts)))
    text = "name: web\n" + "".join(draw(between) + parts[key] for key in order)
    return text, sorted(found), automated


CONFIG = configure(ROOT / "catalog", ROOT / "platform.yaml").config


@given(services(), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_random_spellings_are_found(
    service: tuple[str, list[tuple[str, str, str]], bool], end: str, twice: bool
) -> None:
    text, wanted, _ = service
    assert isinstance(yaml.safe_load(text), dict)
    whole = (text + (f"---\n{text}" if twice else "")).replace("\n", end)
    found = extract(CONFIG, {"catalog/web.yaml": whole})

    assert sorted((one.kind, one.package, one.value) for one in found) == sorted(wanted * (2 if twice else 1))


# The command


def test_the_command_prints_the_configuration(tmp_path: Path) -> None:
    made = project(
        tmp_path,
        {"platform.yaml": PLATFORM + CHARTS, "catalog/web.yaml": "name: web\nsource: {chart: {repository: whole}}\n"},
    )
    ran = made.run("renovate")

    assert (ran.code, ran.err) == (0, "2 charts and 0 images found\n")
    assert json.loads(ran.out) == configured(made).config
    assert made.run("renovate", "--quiet").err == ""


def test_the_json_report_holds_the_configuration(tmp_path: Path) -> None:
    made = project(tmp_path, {"catalog/web.yaml": f"name: web\nsource: {{image: 'x/a:1@{D}'}}\n{PLAIN}"})
    ran = made.run("renovate", "--format", "json")
    report = json.loads(ran.out)

    assert (ran.code, ran.err, report["diagnostics"]) == (0, "", [])
    assert report["config"] == configured(made).config
    assert report["found"] == [
        {
            "file": "catalog/web.yaml",
            "kind": "image",
            "datasource": "docker",
            "package": "x/a",
            "version": "1",
            "digest": D,
            "registryUrl": None,
        }
    ]
    (tmp_path / "catalog/web.yaml").write_text("name: web\nsorce: {}\n")
    ran = made.run("renovate", "--format", "json")
    assert (ran.code, json.loads(ran.out)["config"]) == (1, None)
    ran = made.run("renovate", "--format", "github")
    assert (ran.code, ran.out.startswith("::error file=catalog/web.yaml,line=2")) == (1, True)


def test_nothing_is_printed_for_a_faulty_catalog(tmp_path: Path) -> None:
    ran = project(tmp_path, {"catalog/web.yaml": "name: web\nsorce: {}\n"}).run("renovate", "--format", "concise")

    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("catalog/web.yaml:2:1: R101")


def test_a_warning_stops_where_it_is_told_to(tmp_path: Path) -> None:
    made = project(tmp_path, {"catalog/web.yaml": "name: web\nsource: {image: &x 'docker.io/x/a:1'}\nworkload: {}\n"})

    assert made.run("renovate").code == 0
    ran = made.run("renovate", "--fail-on", "warning")
    assert (ran.code, ran.out) == (1, "")
    assert "warning[R804]" in ran.err


def test_a_catalog_outside_the_repository_is_a_wrong_command_line(tmp_path: Path) -> None:
    made = project(
        tmp_path,
        {
            "in/platform.yaml": PLATFORM,
            "in/.git/HEAD": "",
            "catalog/web.yaml": "name: web\nsource: {image: 'x/a:1'}\nworkload: {}\n",
        },
    )
    ran = made.run("renovate", "catalog", "--platform", "in/platform.yaml")

    assert ran.code == 2
    assert "lies outside the repository" in ran.err
    with pytest.raises(OutsideError):
        configure(tmp_path / "catalog", tmp_path / "in/platform.yaml")


def test_paths_are_those_of_the_repository(tmp_path: Path) -> None:
    files = {
        ".git/HEAD": "",
        "ops/home+1/platform.yaml": PLATFORM + "root: clusters/x\n",
        "ops/home+1/catalog/web.yaml": "name: web\nsource: {image: 'x/a:1'}\nworkload: {}\n",
        "ops/home+1/catalog/.hidden/web.yaml": "no: catalog\n",
    }
    made = project(tmp_path, files)
    result = configure(tmp_path / "ops/home+1/catalog", tmp_path / "ops/home+1/platform.yaml")
    (pattern,) = {one for manager in result.config["customManagers"] for one in manager["managerFilePatterns"]}
    found = re2.compile(pattern[1:-1])

    assert [one.file for one in result.found] == ["ops/home+1/catalog/web.yaml"]
    assert result.config["ignorePaths"][0] == "clusters/x/apps/**"
    assert found.search("ops/home+1/catalog/a/b.yml")
    assert not found.search("ops/home+1/catalog/.hidden/web.yaml")
    assert not found.search("ops/homee1/catalog/a.yaml")
    assert made.run("renovate", "ops/home+1/catalog", "--platform", "ops/home+1/platform.yaml").code == 0
