"""What `sync` writes into a catalog, and what it leaves alone."""

from __future__ import annotations

import json
import os
import stat
import textwrap
from pathlib import Path
from typing import Any

import pytest

from tests.bot import rewrite
from tests.project import PLATFORM, Project, project

ONE, TWO = ("sha256:" + pair * 32 for pair in ("1a", "2b"))
CHART = "  chart: {url: 'oci://charts.example.org/web', version: '1.0.0'}\n"
NAME = "ghcr.io/example/web"
MIRROR = PLATFORM.replace(" []", f"\n  - {{name: {NAME}, newName: registry.corp.example/web}}")
RETAGGED = PLATFORM.replace(" []", f"\n  - {{name: {NAME}, newTag: '1.3.0'}}")


def service(image: str = f"{NAME}:1.2.3", update: str | None = "{range: 1.x}", more: str = "") -> str:
    return f"name: web\nsource:\n  image: {image}\n{CHART}" + (f"update: {update}\n" if update else "") + more


def commit(made: Project, *policies: dict[str, str], root: str = "") -> None:
    """Let the bot move policies, each given by `name`, `tag` and perhaps `image` and `digest`."""
    given = [{"namespace": "flux-system", "image": NAME, **policy} for policy in policies]
    for path in sorted((made.folder / root).rglob("*.yaml")):
        after = rewrite(path.read_bytes(), given)
        if after is not None:
            path.write_text(after)


def moved(
    folder: Path,
    text: str | bytes,
    *policies: dict[str, str],
    platform: str = PLATFORM,
    **more: str | bytes,
) -> Project:
    """Return a repository whose tree is built and then moved on by the bot."""
    files = {f"catalog/{name}.yaml": content for name, content in more.items()}
    made = project(folder, {"catalog/web.yaml": text, "platform.yaml": platform, **files})
    ran = made.run("build")
    assert ran.code == 0, ran.err
    commit(made, *(policies or ({"name": "web", "tag": "1.4.0"},)))
    return made


def catalog(made: Project, name: str = "web") -> str:
    return (made.folder / f"catalog/{name}.yaml").read_bytes().decode()


def assert_in_step(made: Project) -> None:
    """Neither command has anything to do any more, and the tree is what the bot left."""
    before = made.tree()
    check = made.run("check")
    assert (check.code, check.out) == (0, ""), check.err
    assert "kept" not in check.err
    assert made.run("build").code == 0
    assert before == made.tree()
    again = made.run("sync")
    assert (again.code, again.err) == (0, "0 values written, 0 files changed\n")


COMMENTED = textwrap.dedent(
    """\
    # The web of the shop.

    update:   # follows the minor line
        range: "1.x"

    source:
      chart:   {url: 'oci://charts.example.org/web',   version: '1.0.0'}
      image:   'ghcr.io/example/web:1.2.3'    # see 1.2.3's notes
    name: web
    values: { a:  [1,2 ,3] }
    # end"""
)


def test_only_the_scalar_of_the_image_changes(tmp_path: Path) -> None:
    made = moved(tmp_path, COMMENTED)

    ran = made.run("sync")

    assert (ran.code, ran.out) == (0, "")
    assert ran.err == "web: 1.2.3 -> 1.4.0 (catalog/web.yaml:8)\n1 value written, 1 file changed\n"
    assert COMMENTED.replace("web:1.2.3'", "web:1.4.0'") == catalog(made)
    assert_in_step(made)


def test_line_ends_and_byte_order_mark_stay(tmp_path: Path) -> None:
    text = b"\xef\xbb\xbf" + COMMENTED.replace("\n", "\r\n").encode()
    made = moved(tmp_path, text)

    assert made.run("sync").code == 0

    assert text.replace(b"web:1.2.3'", b"web:1.4.0'") == (tmp_path / "catalog/web.yaml").read_bytes()
    assert_in_step(made)


WORKLOAD = f"""\
name: web
source: {{image: {NAME}:1.2.3}}
update: {{range: 1.x}}
workload: {{probes: {{readiness: {{exec: {{command: [x]}}}}}}}}
"""
EXTRA = f"""\
name: web
source: {{image: {{at: "extraObjects[0].spec.image"}}}}
update: {{range: 1.x}}
extraObjects:
  - apiVersion: example.org/v1
    kind: Widget
    metadata: {{name: x}}
    spec: {{image: {NAME}:1.2.3}} # c
"""
WRITTEN = {
    "plain": (service(), "1.4.0", None, [("web:1.2.3", "web:1.4.0")]),
    "double-quoted": (service(f'"{NAME}:1.2.3"'), "1.4.0", None, [("web:1.2.3", "web:1.4.0")]),
    "object": (service(f"{{ref: {NAME}:1.2.3, shape: digest}}"), "1.4.0", None, [("web:1.2.3", "web:1.4.0")]),
    "post-renderer": (
        service(f"{{ref: '{NAME}:1.2.3', shape: postRenderer}}"),
        "1.4.0",
        None,
        [("web:1.2.3", "web:1.4.0")],
    ),
    "digest in the reference": (
        service(f"{NAME}:1.2.3@{ONE}"),
        "1.4.0",
        TWO,
        [(f"web:1.2.3@{ONE}", f"web:1.4.0@{TWO}")],
    ),
    "same tag, other digest": (service(f"{NAME}:1.2.3@{ONE}"), "1.2.3", TWO, [(ONE, TWO)]),
    "digest that appears": (
        service(update="{range: 1.x, digest: always}"),
        "1.4.0",
        TWO,
        [("web:1.2.3", f"web:1.4.0@{TWO}")],
    ),
    "digest channel": (
        service(f"{NAME}:latest", "{channel: digest}"),
        "latest",
        TWO,
        [("web:latest", f"web:latest@{TWO}")],
    ),
    "workload": (
        WORKLOAD,
        "1.4.0",
        None,
        [("web:1.2.3", "web:1.4.0")],
    ),
    "string in values": (
        service("{at: image}", more=f"values: {{image: {NAME}:1.2.3}} # c\n"),
        "1.4.0",
        None,
        [("web:1.2.3", "web:1.4.0")],
    ),
    "parts in values": (
        service(
            "{at: app.image}", more=f"values:\n  app:\n    image:\n      repository: {NAME}\n      tag: 1.2.3 # c\n"
        ),
        "1.4.0",
        None,
        [("tag: 1.2.3", "tag: 1.4.0")],
    ),
    "tag with its digest": (
        service("{at: app}", more=f"values: {{app: {{repository: {NAME}, tag: '1.2.3@{ONE}'}}}}\n"),
        "1.4.0",
        TWO,
        [(f"'1.2.3@{ONE}'", f"'1.4.0@{TWO}'")],
    ),
    "tag and digest apart": (
        service("{at: app}", more=f"values: {{app: {{digest: '{ONE}', repository: {NAME}, tag: 1.2.3}}}}\n"),
        "1.4.0",
        TWO,
        [(ONE, TWO), ("1.2.3", "1.4.0")],
    ),
    "empty digest": (
        service(
            "{at: app}",
            "{range: 1.x, digest: always}",
            f"values:\n  app:\n    digest: '' # none\n    repository: {NAME}\n    tag: 1.2.3\n",
        ),
        "1.4.0",
        TWO,
        [("digest: ''", f"digest: '{TWO}'"), ("1.2.3", "1.4.0")],
    ),
    "absent digest": (
        service(
            "{at: app}",
            "{range: 1.x, digest: always}",
            f"values:\n  app:\n    digest: # none\n    repository: {NAME}\n    tag: 1.2.3\n",
        ),
        "1.4.0",
        TWO,
        [("digest: #", f"digest: {TWO} #"), ("1.2.3", "1.4.0")],
    ),
    "two places": (
        service(
            "{at: [a.image, b.image]}",
            more=f"values:\n  a: {{image: '{NAME}:1.2.3'}}\n  b: {{image: {NAME}:1.2.3}}\n",
        ),
        "1.4.0",
        None,
        [("web:1.2.3", "web:1.4.0")],
    ),
    "parts at paths of their own": (
        service(
            "{at: {repository: a.name, tag: b.version}}",
            more=f"values: {{a: {{name: {NAME}}}, b: {{version: 1.2.3}}}}\n",
        ),
        "1.4.0",
        None,
        [("version: 1.2.3", "version: 1.4.0")],
    ),
    "extra object": (
        EXTRA,
        "1.4.0",
        None,
        [("web:1.2.3", "web:1.4.0")],
    ),
    "port": (
        service("registry.example:5000/a/web:1.2.3"),
        "1.4.0",
        None,
        [("web:1.2.3", "web:1.4.0")],
    ),
    "anchor that nothing uses": (service(f"&image {NAME}:1.2.3"), "1.4.0", None, [("web:1.2.3", "web:1.4.0")]),
}


@pytest.mark.parametrize("case", WRITTEN)
def test_every_form_of_an_image_is_written(tmp_path: Path, case: str) -> None:
    text, tag, digest, changes = WRITTEN[case]
    image = "registry.example:5000/a/web" if case == "port" else NAME
    policy = {"name": "web", "tag": tag, "image": image}
    made = moved(tmp_path, text, policy if digest is None else {**policy, "digest": digest})

    ran = made.run("sync")

    assert ran.code == 0, ran.err
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    assert text == catalog(made)
    assert_in_step(made)


def test_tag_of_another_form_gets_quotes_and_its_policy_is_named(tmp_path: Path) -> None:
    text = service("{at: app}", more=f"values: {{app: {{repository: {NAME}, tag: 1.2.3}}}}\n")
    made = moved(tmp_path, text, {"name": "web", "tag": "1.20"})

    ran = made.run("sync")

    assert ran.err.startswith(
        "web: 1.2.3 -> 1.20 (catalog/web.yaml:6)\n"
        "web: the form of the tag is another one, and so is the ImagePolicy that a build derives from it\n"
    )
    assert text.replace("tag: 1.2.3", 'tag: "1.20"') == catalog(made)
    check = made.run("check")
    assert "apps/web/image-automation.yaml" in check.out
    assert "helmrelease" not in check.out
    assert made.run("build").code == 0
    assert_in_step(made)


def test_images_have_versions_of_their_own(tmp_path: Path) -> None:
    text = service(
        more=f"images:\n  side: {{ref: {NAME}-side:2.0.0, at: side, update: {{range: 2.x}}}}\n"
        "  plain: {ref: 'x:1', at: z}\n"
    )
    made = moved(tmp_path, text, {"name": "web-side", "image": f"{NAME}-side", "tag": "2.1.0"})

    ran = made.run("sync")

    assert ran.err == "web, images.side: 2.0.0 -> 2.1.0 (catalog/web.yaml:7)\n1 value written, 1 file changed\n"
    assert text.replace("side:2.0.0", "side:2.1.0") == catalog(made)
    assert_in_step(made)


@pytest.mark.parametrize("shape", ["split", "postRenderer"])
def test_images_that_share_an_entry_take_its_version_both(tmp_path: Path, shape: str) -> None:
    update = "{range: 1.x, digest: always}"
    side = f"images:\n  side: {{ref: '{NAME}:1.2.3', shape: {shape}, at: side, update: {update}}}\n"
    text = service(f"{{ref: '{NAME}:1.2.3', shape: {shape}}}", update, side)
    both = [{"name": name, "tag": "1.4.0", "digest": ONE} for name in ("web", "web-side")]
    made = moved(tmp_path, text.replace(", at: side", "" if shape == "postRenderer" else ", at: side"), *both)

    ran = made.run("sync")

    assert ran.code == 0, ran.err
    assert catalog(made).count(f"{NAME}:1.4.0@{ONE}") == 2
    assert_in_step(made)


def test_tree_that_cannot_be_read_is_no_tree_without_versions(tmp_path: Path) -> None:
    made = moved(tmp_path, service(), other=service().replace("name: web", "name: other"))
    path = made.folder / "apps/web/helmrelease.yaml"
    text = path.read_text()
    path.write_text(f"<<<<<<< ours\n{text}=======\n{text}>>>>>>> theirs\n")
    (made.folder / "apps/other/helmrelease.yaml").unlink()
    (made.folder / "apps/other/helmrelease.yaml").mkdir()
    before = made.tree()

    ran = made.run("sync", "--format", "concise")

    assert ran.code == 1
    assert "apps/web/helmrelease.yaml:1: R505 the file holds conflict markers of a merge" in ran.err
    assert "apps/other/helmrelease.yaml: R508 cannot read it: " in ran.err
    assert before == made.tree()


def test_only_the_right_document_changes(tmp_path: Path) -> None:
    other = service().replace("name: web", "name: other")
    text = f"{other}---\n{service()}---\n{other.replace('other', 'third')}"
    made = moved(tmp_path, text)

    assert made.run("sync").code == 0

    assert f"{other}---\n{service(f'{NAME}:1.4.0')}---\n{other.replace('other', 'third')}" == catalog(made)
    assert_in_step(made)


def test_only_the_named_services_are_written(tmp_path: Path) -> None:
    other = service().replace("name: web", "name: other")
    made = moved(tmp_path, service(), {"name": "web", "tag": "1.4.0"}, {"name": "other", "tag": "1.5.0"}, other=other)

    ran = made.run("sync", "--only", "other")

    assert ran.code == 0
    assert service() == catalog(made)
    assert "image: ghcr.io/example/web:1.5.0\n" in catalog(made, "other")
    assert made.run("sync", "--only", "others").code == 2


KEPT_AS_IT_IS = {
    "newer in the catalog": service(f"{NAME}:1.5.0"),
    "equal": service(f"{NAME}:1.4.0"),
    "pinned": service(update="{range: 1.x, pin: 1.3.0}"),
}


@pytest.mark.parametrize("case", KEPT_AS_IT_IS)
def test_value_of_the_catalog_stays(tmp_path: Path, case: str) -> None:
    made = moved(tmp_path, service())
    (tmp_path / "catalog/web.yaml").write_text(KEPT_AS_IT_IS[case])

    ran = made.run("sync")

    assert (ran.code, ran.err) == (0, "0 values written, 0 files changed\n")
    assert KEPT_AS_IT_IS[case] == catalog(made)


def test_older_value_of_a_mirror_is_kept_and_not_written(tmp_path: Path) -> None:
    made = moved(
        tmp_path, service(), {"name": "web", "image": "registry.corp.example/web", "tag": "1.4.0"}, platform=MIRROR
    )
    (tmp_path / "catalog/web.yaml").write_text(service(f"{NAME}:1.5.0"))
    assert "kept" in made.run("build").err

    assert made.run("sync").err == "0 values written, 0 files changed\n"
    assert service(f"{NAME}:1.5.0") == catalog(made)


def test_newer_value_of_a_mirror_is_written_under_the_name_of_the_catalog(tmp_path: Path) -> None:
    made = moved(
        tmp_path, service(), {"name": "web", "image": "registry.corp.example/web", "tag": "1.4.0"}, platform=MIRROR
    )

    assert made.run("sync").code == 0

    assert service(f"{NAME}:1.4.0") == catalog(made)
    assert_in_step(made)


REFUSED_BY_BUILD = {
    "no automation of the image": (service(update=None), (), service(f"{NAME}:1.4.0", None)),
    "no image automation": (service(), ("--no-image-automation",), service(f"{NAME}:1.4.0")),
    "another form of tags": (service(f"{NAME}:v1.2.3"), (), service(f"{NAME}:1.4.0")),
    "no order": (service(f"{NAME}:latest", "{channel: digest}"), (), service(f"{NAME}:1.4.0", "{channel: digest}")),
    "no tag": (service(NAME, None), (), service(f"{NAME}:1.4.0", None)),
}


@pytest.mark.parametrize("case", REFUSED_BY_BUILD)
def test_value_that_a_build_refuses_to_lower_is_written(tmp_path: Path, case: str) -> None:
    text, options, expected = REFUSED_BY_BUILD[case]
    made = moved(tmp_path, service())
    (tmp_path / "catalog/web.yaml").write_text(text)
    refused = made.run("check", *options)
    assert refused.code == 1
    assert "R510" in refused.err
    assert "`render sync`" in refused.err

    ran = made.run("sync", *options)

    assert ran.code == 0, ran.err
    assert expected == catalog(made)
    assert made.run("build", *options).code == 0
    assert made.run("check", *options).code == 0
    assert "1.4.0" in (tmp_path / "apps/web/helmrelease.yaml").read_text()


def test_digest_of_an_image_that_nothing_moves_any_more_is_written(tmp_path: Path) -> None:
    made = moved(tmp_path, service(f"{NAME}:1.2.3@{ONE}"), {"name": "web", "tag": "1.2.3", "digest": TWO})
    (tmp_path / "catalog/web.yaml").write_text(service(f"{NAME}:1.2.3@{ONE}", None))

    assert made.run("sync").code == 0

    assert service(f"{NAME}:1.2.3@{TWO}", None) == catalog(made)
    assert made.run("build").code == 0


NOT_WRITTEN = {
    "range": (
        service(update="{range: 1.2.x}"),
        PLATFORM,
        "R512",
        "a build would refuse it: the range `1.2.x` lies wholly below the current tag `1.4.0`",
    ),
    "pattern": (
        service(update="{channel: custom, policy: {semver: {range: 1.x}}, filterTags: {pattern: '^1\\.2\\.[0-9]+$'}}"),
        PLATFORM,
        "R512",
        "does not match the pattern",
    ),
    "another repository": (service("ghcr.io/other/web:1.2.3"), PLATFORM, "R510", f"it is a version of `{NAME}`"),
    "override": (service(), RETAGGED, "R510", "set `newTag: 1.4.0` there"),
    "declared no more": (f"name: web\nsource:\n{CHART}", PLATFORM, "R510", "no image of it is declared"),
    "no tag in values": (
        service("{at: app}", None, more=f"values: {{app: {{repository: {NAME}}}}}\n"),
        PLATFORM,
        "R512",
        "add `tag: 1.4.0` there",
    ),
    "fault in the catalog": (service() + "wishes: 1\n", PLATFORM, "R101", "unknown field `wishes`"),
}


@pytest.mark.parametrize("case", NOT_WRITTEN)
def test_nothing_is_written_where_anything_is_wrong(tmp_path: Path, case: str) -> None:
    text, platform, code, told = NOT_WRITTEN[case]
    other = service().replace("name: web", "name: other")
    made = moved(tmp_path, service(), {"name": "web", "tag": "1.4.0"}, {"name": "other", "tag": "1.5.0"}, other=other)
    (tmp_path / "catalog/web.yaml").write_text(text)
    (tmp_path / "platform.yaml").write_text(platform)

    ran = made.run("sync")

    assert ran.code == 1
    assert f"error[{code}]" in ran.err
    assert told in ran.err
    assert "->" not in ran.err.replace("-->", "")
    assert (text, other) == (catalog(made), catalog(made, "other"))


REPEATED = {
    "text block": (
        service("{at: app}", more=f"values:\n  app: &x |-\n    {NAME}:1.2.3\n  other: *x\n"),
        "stands behind the anchor `&x`",
    ),
    "alias": (
        service("{at: app}", more=f"values: {{self: &image '{NAME}:1.2.3', app: *image}}\n"),
        "stands behind the anchor `&image`",
    ),
    "merged mapping": (
        service(
            "{at: app}", more=f"values:\n  base: &base {{repository: {NAME}, tag: 1.2.3}}\n  app:\n    <<: *base\n"
        ),
        "stands behind the anchor `&base`",
    ),
}


@pytest.mark.parametrize("case", REPEATED)
def test_file_with_an_anchor_is_left_alone_and_the_others_are_written(tmp_path: Path, case: str) -> None:
    text, told = REPEATED[case]
    text += "---\n" + service().replace("name: web", "name: second")
    other = service().replace("name: web", "name: other")
    policies = [{"name": name, "tag": "1.4.0"} for name in ("web", "second", "other")]
    made = moved(tmp_path, text, *policies, other=other)

    ran = made.run("sync")

    assert ran.code == 1
    assert told in ran.err
    assert ran.err.endswith(
        "1 error in 1 file (3 checked)\nother: 1.2.3 -> 1.4.0 (catalog/other.yaml:3)\n1 value written, 1 file changed\n"
    )
    assert text == catalog(made)
    assert other.replace("1.2.3", "1.4.0") == catalog(made, "other")


def test_other_services_are_written_when_one_is_left_out(tmp_path: Path) -> None:
    other = service().replace("name: web", "name: other")
    made = moved(tmp_path, service(), {"name": "web", "tag": "1.4.0"}, {"name": "other", "tag": "1.5.0"}, other=other)
    (tmp_path / "catalog/web.yaml").write_text(service(update="{range: 1.2.x}"))

    assert made.run("sync", "--only", "other").code == 0
    assert "web:1.5.0" in catalog(made, "other")


def test_dry_run_shows_the_difference_and_writes_nothing(tmp_path: Path) -> None:
    text = service(more="values: {apiToken: hunter2}\n")
    made = moved(tmp_path, text)

    ran = made.run("sync", "--dry-run")

    assert ran.code == 1
    assert "-  image: ghcr.io/example/web:1.2.3\n+  image: ghcr.io/example/web:1.4.0\n" in ran.out
    assert "hunter2" not in ran.out
    assert ran.err.endswith("1 value would be written, 1 file would be changed\n")
    assert text == catalog(made)
    made.run("sync")
    assert made.run("sync", "--dry-run").code == 0


def test_json_lists_what_changes(tmp_path: Path) -> None:
    made = moved(tmp_path, service(f"{NAME}:1.2.3@{ONE}"), {"name": "web", "tag": "1.4.0", "digest": TWO})

    ran = made.run("sync", "--format", "json")

    assert json.loads(ran.out) == {
        "version": 1,
        "written": True,
        "files": ["catalog/web.yaml"],
        "changes": [
            {
                "service": "web",
                "image": "main",
                "old": f"{NAME}:1.2.3@{ONE}",
                "new": f"{NAME}:1.4.0@{TWO}",
                "policyChanges": False,
                "places": [{"file": "catalog/web.yaml", "line": 3, "column": 10}],
            }
        ],
        "reached": [],
        "diagnostics": [],
    }
    assert ran.err == ""


def test_github_format_keeps_the_report_on_stdout(tmp_path: Path) -> None:
    made = moved(tmp_path, service())
    (tmp_path / "catalog/web.yaml").write_text(service(update="{range: 1.2.x}"))

    ran = made.run("sync", "--format", "github")

    assert ran.out.startswith("::error file=catalog/web.yaml,line=3,col=10,title=R512::")


def test_warnings_stop_the_run_where_that_is_asked_for(tmp_path: Path) -> None:
    text = service(more="values: {a: yes}\n")
    made = moved(tmp_path, text)

    assert made.run("sync", "--fail-on", "warning").code == 1
    assert text == catalog(made)
    ran = made.run("sync", "--quiet")
    assert (ran.code, "written" in ran.err) == (0, False)
    assert text.replace("1.2.3", "1.4.0") == catalog(made)


def test_permissions_and_links_stay(tmp_path: Path) -> None:
    made = moved(tmp_path, service(), notes="")
    (tmp_path / "catalog/.shared").mkdir()
    (tmp_path / "catalog/web.yaml").rename(tmp_path / "catalog/.shared/web.yaml")
    (tmp_path / "catalog/web.yaml").symlink_to(".shared/web.yaml")
    (tmp_path / "catalog/.shared/web.yaml").chmod(0o640)

    assert made.run("sync").code == 0

    assert (tmp_path / "catalog/web.yaml").is_symlink()
    assert stat.S_IMODE((tmp_path / "catalog/.shared/web.yaml").stat().st_mode) == 0o640
    assert os.listdir(tmp_path / "catalog/.shared") == ["web.yaml"]
    assert service(f"{NAME}:1.4.0") == catalog(made)


AIRGAP = "cluster: airgap\nroot: airgap\nflux: {version: '2.9'}\nregistries:\n  imageOverrides:\n"
OTHERS = {
    "another mirror": (
        f"{AIRGAP}  - {{name: {NAME}, newName: mirror.example/web}}\n",
        "mirror.example/web:1.2.3 -> mirror.example/web:1.4.0",
    ),
    "a version of its own": (f"{AIRGAP}  - {{name: {NAME}, newTag: '1.0.0'}}\n", None),
    "plain": ("cluster: airgap\nroot: airgap\nflux: {version: '2.9'}\n", f"{NAME}:1.2.3 -> {NAME}:1.4.0"),
}


@pytest.mark.parametrize("case", OTHERS)
def test_other_clusters_that_a_value_reaches_are_named(tmp_path: Path, case: str) -> None:
    platform, told = OTHERS[case]
    other = service("nginx:1.0.0").replace("name: web", "name: other")
    made = moved(tmp_path, service(), other=other)
    (tmp_path / "airgap.yaml").write_text(platform)

    ran = made.run("sync", "--also", "airgap.yaml")

    assert ran.code == 0
    reached = [line for line in ran.err.splitlines() if "airgap" in line and "R603" not in line and "->" in line]
    assert reached == ([f"web: on `airgap` (airgap.yaml) {told}"] if told else [])
    assert service(f"{NAME}:1.4.0") == catalog(made)


def test_another_cluster_whose_bot_is_ahead_is_not_reached(tmp_path: Path) -> None:
    made = moved(tmp_path, service())
    (tmp_path / "airgap.yaml").write_text(OTHERS["plain"][0])
    assert made.run("build", "--platform", "airgap.yaml").code == 0
    commit(made, {"name": "web", "tag": "1.9.0"}, root="airgap")

    ran = made.run("sync", "--also", "airgap.yaml", "--format", "json")

    assert json.loads(ran.out)["reached"] == []


def test_broken_file_of_another_cluster_stops_the_run(tmp_path: Path) -> None:
    made = moved(tmp_path, service())

    ran = made.run("sync", "--also", "airgap.yaml")

    assert ran.code == 1
    assert "airgap.yaml" in ran.err
    assert service() == catalog(made)


def test_file_that_cannot_be_replaced_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = moved(tmp_path, service())

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    ran = made.run("sync")

    assert ran.code == 1
    assert "error[R512]: cannot write the file: no space left on device" in ran.err
    assert service() == catalog(made)
    assert os.listdir(tmp_path / "catalog") == ["web.yaml"]
