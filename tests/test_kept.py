from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from render.build import build
from render.committed import Committed
from render.flux.overrides import Entry
from render.flux.policy import select
from tests.bot import rewrite
from tests.project import PLATFORM, Project, Ran, objects, project, told
from tests.trees import RENDERINGS, ROOT, tree

ONE, TWO = ("sha256:" + pair * 32 for pair in ("1a", "2b"))
CHART = "  chart: {url: 'oci://charts.example.org/web', version: '1.0.0'}\n"
RELEASE = "apps/web/helmrelease.yaml"
RANGE = "{range: 1.x}"
RENAMED = PLATFORM.replace(" []", "\n  - {name: ghcr.io/example/web, newName: registry.corp.example/web}")
RETAGGED = PLATFORM.replace(" []", "\n  - {name: ghcr.io/example/web, newTag: '1.3.0'}")


def service(tag: str, update: str | None = RANGE, *, shape: str = "split", name: str = "ghcr.io/example/web") -> str:
    text = f"name: web\nsource:\n  image: {{ref: '{name}:{tag}', shape: {shape}}}\n{CHART}"
    return text + (f"update: {update}\n" if update else "")


def moved(folder: Path, text: str, tag: str, digest: str | None = None, platform: str = PLATFORM) -> Project:
    """Return a repository whose tree is written and then moved on by the bot."""
    made = project(folder, {"catalog/web.yaml": text, "platform.yaml": platform})
    assert made.run("build").code == 0
    image = "registry.corp.example/web" if platform == RENAMED else "ghcr.io/example/web"
    state = {"namespace": "flux-system", "name": "web", "image": image, "tag": tag}
    if digest:
        state["digest"] = digest
    after = rewrite((folder / RELEASE).read_bytes(), [state])
    assert after is not None
    (folder / RELEASE).write_text(after)
    return made


def then(made: Project, text: str, *options: str, platform: str | None = None) -> Ran:
    """Build again after the catalog has changed."""
    (made.folder / "catalog/web.yaml").write_text(text)
    if platform is not None:
        (made.folder / "platform.yaml").write_text(platform)
    return made.run("build", *options)


def written(made: Project) -> str:
    return (made.folder / RELEASE).read_text()


@pytest.mark.parametrize("shape", ["split", "registry", "digest", "string", "tag", "postRenderer"])
def test_newer_value_of_the_bot_stays_in_every_shape(tmp_path: Path, shape: str) -> None:
    text = service("1.2.3", shape=shape)
    made = moved(tmp_path, text, "1.4.0")
    before = made.tree()

    ran = then(made, text + "labels: {a: b}\n")

    assert ran.code == 0
    assert "1.4.0" in written(made)
    assert "1.2.3" not in written(made)
    assert "kept ghcr.io/example/web:1.4.0 of `web`" in ran.err
    assert made.tree() != before


def test_kept_value_leaves_the_tree_clean(tmp_path: Path) -> None:
    made = moved(tmp_path, service("1.2.3"), "1.4.0")

    assert made.run("check").code == 0


@pytest.mark.parametrize("tag", ["1.5.0", "1.10.0"])
def test_newer_value_of_the_catalog_wins(tmp_path: Path, tag: str) -> None:
    made = moved(tmp_path, service("1.2.3"), "1.4.0")

    ran = then(made, service(tag))

    assert ran.code == 0
    assert f'tag: "{tag}" #' in written(made)
    assert "kept" not in ran.err


def test_value_that_the_catalog_has_caught_up_with_is_no_news(tmp_path: Path) -> None:
    made = moved(tmp_path, service("1.2.3"), "1.4.0")

    ran = then(made, service("1.4.0"))

    assert ran.code == 0
    assert "kept" not in ran.err
    assert "0 changed" in ran.err


def test_other_digest_of_the_same_tag_stays(tmp_path: Path) -> None:
    made = moved(tmp_path, service(f"1.2.3@{ONE}"), "1.2.3", TWO)

    ran = then(made, service(f"1.2.3@{ONE}") + "labels: {a: b}\n")

    assert ran.code == 0
    assert TWO in written(made)
    assert ONE not in written(made)


def test_digest_of_a_newer_tag_stays_with_it(tmp_path: Path) -> None:
    made = moved(tmp_path, service(f"1.2.3@{ONE}"), "1.4.0", TWO)

    then(made, service(f"1.2.3@{ONE}") + "labels: {a: b}\n")

    assert f'newTag: "1.4.0" # {{"$imagepolicy": "flux-system:web:tag"}}\n        digest: "{TWO}" #' in written(made)


def test_older_value_stays_where_an_override_renames_the_image(tmp_path: Path) -> None:
    made = moved(tmp_path, service("1.2.3"), "1.4.0", platform=RENAMED)

    ran = then(made, service("1.5.0"))

    assert ran.code == 0
    assert 'tag: "1.4.0" #' in written(made)
    assert "kept" in ran.err


REFUSED = {
    "range": (service("1.2.3", "{range: 1.2.x}"), ()),
    "no automation of the image": (service("1.2.3", None), ()),
    "no image automation": (service("1.2.3"), ("--no-image-automation",)),
    "repository": (service("1.2.3", name="ghcr.io/other/web"), ()),
    "newer version of another repository": (service("1.9.0", name="ghcr.io/other/web"), ()),
    "another form of tags": (service("v1.2.3"), ()),
    "no order": (service("latest", "{channel: digest}"), ()),
}


@pytest.mark.parametrize("case", REFUSED)
def test_value_that_might_be_lowered_is_refused(tmp_path: Path, case: str) -> None:
    text, options = REFUSED[case]
    made = moved(tmp_path, service("1.2.3"), "1.4.0")
    before = made.tree()

    ran = then(made, text, *options)

    assert ran.code == 1
    assert "error[R510]" in ran.err
    assert "1.4.0" in ran.err
    assert "--reset-tags web" in ran.err
    assert made.run("check", *options).code == 1
    assert made.tree() == before


@pytest.mark.parametrize("case", REFUSED)
def test_tags_can_be_reset(tmp_path: Path, case: str) -> None:
    text, options = REFUSED[case]
    made = moved(tmp_path, service("1.2.3"), "1.4.0")

    assert then(made, text, *options, "--reset-tags", "web").code == 0
    assert "1.4.0" not in written(made)


def test_reset_of_one_service_is_no_reset_of_another(tmp_path: Path) -> None:
    made = moved(tmp_path, service("1.2.3"), "1.4.0")
    (tmp_path / "catalog/db.yaml").write_text(service("1.0.0").replace("name: web", "name: db"))

    assert then(made, service("1.2.3", None), "--reset-tags", "db").code == 1


def test_override_of_the_version_is_refused_below_the_committed_value(tmp_path: Path) -> None:
    made = moved(tmp_path, service("1.2.3"), "1.4.0")

    assert "error[R510]" in then(made, service("1.2.3"), platform=RETAGGED).err


def test_override_of_the_version_above_the_committed_value_is_taken(tmp_path: Path) -> None:
    made = moved(tmp_path, service("1.2.3"), "1.2.5")

    ran = then(made, service("1.2.3"), platform=RETAGGED)

    assert ran.code == 0
    assert "error" not in ran.err


def test_pin_needs_no_reset(tmp_path: Path) -> None:
    made = moved(tmp_path, service("1.2.3"), "1.4.0")

    assert then(made, service("1.2.3", "{pin: 1.2.0}")).code == 0
    assert 'tag: "1.2.0"\n' in written(made)


def test_image_that_is_automated_no_more_may_go_on_with_a_newer_version(tmp_path: Path) -> None:
    made = moved(tmp_path, service("1.2.3"), "1.4.0")

    assert then(made, service("1.5.0", None)).code == 0
    assert 'tag: "1.5.0"\n' in written(made)


def test_service_that_is_gone_takes_its_values_with_it(tmp_path: Path) -> None:
    made = moved(tmp_path, service("1.2.3"), "1.4.0")
    (tmp_path / "catalog/web.yaml").unlink()
    (tmp_path / "catalog/db.yaml").write_text(service("1.2.3").replace("web", "db"))

    assert made.run("build").code == 0


def test_plain_workload_keeps_its_value(tmp_path: Path) -> None:
    text = (
        "name: web\nsource: {image: 'ghcr.io/example/web:1.2.3'}\nupdate: {range: 1.x}\n"
        "workload: {probes: {readiness: {tcpSocket: {port: 80}}}}\n"
    )
    made = project(tmp_path, {"catalog/web.yaml": text})
    made.run("build")
    path = tmp_path / "apps/web/workload.yaml"
    path.write_text(path.read_text().replace('web:1.2.3"', 'web:1.4.0"'))

    ran = then(made, text + "labels: {a: b}\n")

    assert ran.code == 0
    assert 'image: "ghcr.io/example/web:1.4.0" # {"$imagepolicy": "flux-system:web"}\n' in path.read_text()


def test_value_that_a_person_wrote_outside_the_policy_is_refused_too(tmp_path: Path) -> None:
    made = moved(tmp_path, service("1.2.3"), "1.4.0")
    (tmp_path / RELEASE).write_text(written(made).replace('"1.4.0"', '"2.0.0"'))

    assert "error[R510]" in made.run("build").err


def test_two_policies_of_one_service_are_kept_apart(tmp_path: Path) -> None:
    side = "images: {side: {ref: 'ghcr.io/example/side:1.0.0', at: side, update: {range: 1.x}}}\n"
    made = moved(tmp_path, service("1.2.3") + side, "1.4.0")

    ran = then(made, service("1.2.3") + side + "labels: {a: b}\n")

    assert ran.code == 0
    assert 'tag: "1.4.0" # {"$imagepolicy": "flux-system:web:tag"}\n' in written(made)
    assert 'tag: "1.0.0" # {"$imagepolicy": "flux-system:web-side:tag"}\n' in written(made)


# Every place that the bot writes, and the tree after its commit

REF = "ghcr.io/example/web:1.2.3"
OBJECT = (
    "extraObjects: [{apiVersion: example.org/v1, kind: Web, metadata: {name: web},"
    " spec: {image: '', image2: {repository: '', tag: '', digest: ''}}}]\n"
)
PLACES = {
    "split": ("{ref: 'REF'}", ""),
    "registry": ("{ref: 'REF', shape: registry}", ""),
    "digest": ("{ref: 'REF', shape: digest}", ""),
    "string": ("{ref: 'REF', shape: string}", ""),
    "postRenderer": ("{ref: 'REF', shape: postRenderer}", ""),
    "given in values too": (
        "{ref: 'REF'}",
        "values: {image: {repository: ghcr.io/example/web, tag: 'TAG'}}\n",
    ),
    "given as a string too": ("{ref: 'REF', shape: string}", "values: {image: 'REF'}\n"),
    "several paths": ("{ref: 'REF', at: [a.image, 'list[name=b].image']}", "values: {list: [{name: b}]}\n"),
    "parts": ("{ref: 'REF', at: {repository: name, tag: version}}", ""),
    "all parts": ("{ref: 'REF', at: {registry: reg, repository: repo, tag: tag, digest: dig}}", ""),
    "tag and digest": ("{ref: 'REF', at: {tag: tag, digest: dig}}", ""),
    "effective": ("{ref: 'REF', shape: digest, reach: values}", ""),
    "effective string": ("{ref: 'REF', shape: string, reach: values}", ""),
    "object": ("{ref: 'REF', shape: string, at: 'extraObjects[kind=Web].spec.image'}", OBJECT),
    "parts of an object": ("{ref: 'REF', shape: digest, at: 'extraObjects[0].spec.image2'}", OBJECT),
    "values and object": ("{ref: 'REF', shape: string, at: [image, 'extraObjects[0].spec.image']}", OBJECT),
}
READ = {
    "read split": "{repository: ghcr.io/example/web, tag: 'TAG'}",
    "read registry": "{registry: ghcr.io, repository: example/web, tag: 'TAG'}",
    "read digest": "{registry: ghcr.io, repository: example/web, tag: '1.2.3', digest: 'DIGEST'}",
    "read string": "'REF'",
}
PLACES |= {name: ("{at: image}", f"values: {{image: &i {value}, more: *i}}\n") for name, value in READ.items()}
OWN = "postRenderers: [{kustomize: {images: [{name: ghcr.io/example/web, newName: mirror.example/web}]}}]\n"


def place(name: str, digest: str | None) -> str:
    """Return a service with its image at a place, at version 1.2.3."""
    image, more = PLACES[name]
    tag = "1.2.3" + (f"@{digest}" if digest else "")
    text = f"name: web\nsource:\n  image: {image}\n{CHART}update: {RANGE}\n{more}"
    return text.replace("REF", f"ghcr.io/example/web:{tag}").replace("TAG", tag).replace("DIGEST", digest or "")


def bump(folder: Path, versions: dict[str, tuple[str, str | None]] | None = None) -> list[str]:
    """Let the bot commit: each policy's version, else 1.4.0 with another digest where one is followed."""
    found = [yaml.safe_load_all(path.read_text()) for path in folder.glob("apps/*/image-automation.yaml")]
    every = [one for file in found for one in file]
    scanned = {one["metadata"]["name"]: one["spec"]["image"] for one in every if one["kind"] == "ImageRepository"}
    states = []
    for one in every:
        if one["kind"] == "ImagePolicy":
            name = one["metadata"]["name"]
            tag, digest = (versions or {}).get(name, ("1.4.0", TWO))
            states.append({"namespace": "flux-system", "name": name, "image": scanned[name], "tag": tag})
            if "digestReflectionPolicy" in one["spec"]:
                states[-1]["digest"] = digest
    written = []
    for path in sorted(folder.rglob("*.yaml")):
        after = rewrite(path.read_bytes(), states) if path.parts[len(folder.parts)] in ("apps", "configs") else None
        if after is not None:
            path.write_text(after)
            written.append(path.relative_to(folder).as_posix())
    return written


def texts_of(made: Project) -> str:
    return "".join(data.decode() for data in made.tree().values())


@pytest.mark.parametrize("digest", [None, ONE], ids=["tag", "digest"])
@pytest.mark.parametrize("platform", [PLATFORM, RENAMED], ids=["as declared", "renamed"])
@pytest.mark.parametrize("name", PLACES)
def test_commit_of_the_bot_leaves_nothing_to_build(
    tmp_path: Path, name: str, platform: str, digest: str | None
) -> None:
    made = project(tmp_path, {"catalog/web.yaml": place(name, digest), "platform.yaml": platform})
    first = made.run("build")
    assert first.code == 0, first.err
    assert bump(tmp_path)
    before = made.tree()
    texts = texts_of(made)

    ran = made.run("build")

    assert ran.code == 0, ran.err
    assert made.tree() == before
    assert "1.4.0" in texts
    assert "1.2.3" not in texts
    assert (TWO in texts, ONE in texts) == (digest is not None, False)

    then(made, place(name, digest) + "labels: {a: b}\n")

    texts = texts_of(made)
    assert "a: b" in texts
    assert ("1.4.0" in texts, "1.2.3" in texts) == (True, False)
    assert (TWO in texts, ONE in texts) == (digest is not None, False)


@pytest.mark.parametrize("name", [name for name in PLACES if "object" not in name])
def test_commit_of_the_bot_stays_behind_renderers_of_the_service(tmp_path: Path, name: str) -> None:
    made = project(tmp_path, {"catalog/web.yaml": place(name, ONE) + OWN})
    assert made.run("build").code == 0
    bump(tmp_path)
    before = made.tree()

    assert made.run("build").code == 0
    assert made.tree() == before
    assert "mirror.example/web" in texts_of(made)


WORKLOAD = (
    "name: web\nsource: {image: 'ghcr.io/example/web:1.2.3DIGEST'}\nupdate: {range: 1.x}\n"
    "workload: {probes: {readiness: {tcpSocket: {port: 80}}}}\n"
)


@pytest.mark.parametrize("digest", ["", f"@{ONE}"], ids=["tag", "digest"])
@pytest.mark.parametrize("platform", [PLATFORM, RENAMED], ids=["as declared", "renamed"])
def test_commit_of_the_bot_to_a_workload_leaves_nothing_to_build(tmp_path: Path, platform: str, digest: str) -> None:
    made = project(tmp_path, {"catalog/web.yaml": WORKLOAD.replace("DIGEST", digest), "platform.yaml": platform})
    made.run("build")
    assert bump(tmp_path) == ["apps/web/workload.yaml"]
    before = made.tree()

    assert made.run("build").code == 0
    assert made.tree() == before


@pytest.mark.parametrize("rendering", RENDERINGS)
def test_commit_of_the_bot_to_the_shipped_catalog_leaves_nothing_to_build(tmp_path: Path, rendering: str) -> None:
    for path, text in tree(rendering).files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    versions = {}
    for one in objects(tree(rendering)):
        if one["kind"] == "ImagePolicy":
            versions[one["metadata"]["name"]] = next_version(one, texts_below(tmp_path))
    written = bump(tmp_path, versions)
    platform, automation = RENDERINGS[rendering]

    again = build(ROOT / "catalog", ROOT / platform, automation=automation, root=lambda _: tmp_path)

    assert not again.failed, told(again)
    assert bool(written) == automation
    assert {path: (tmp_path / path).read_text() for path in again.files} == dict(again.files.items())
    assert len(again.kept) == len(versions)


def texts_below(folder: Path) -> str:
    return "".join(path.read_text() for path in folder.rglob("*.yaml"))


def next_version(policy: dict[str, Any], text: str) -> tuple[str, str]:
    """Return a tag that a policy selects over the one at its markers, and another digest."""
    name, spec = policy["metadata"]["name"], policy["spec"]
    current = re.findall(rf'"([^"]+)" # {{"\$imagepolicy": "flux-system:{name}(?::tag)?"}}', text)[0]
    tag = re.sub(r"@.*", "", current).rpartition(":")[2]
    for match in reversed(list(re.finditer(r"[0-9]+", tag))):
        later = f"{tag[: match.start()]}{int(match[0]) + 1:0{len(match[0])}}{tag[match.end() :]}"
        if select([tag, later], spec["policy"], spec.get("filterTags")).tag == later:
            return later, TWO
    return tag, TWO


# The rules, one by one


@pytest.mark.parametrize(
    ("committed", "catalog", "expected"),
    [
        (("1.4.0", None), ("1.2.3", None), ("1.4.0", None)),
        (("1.4.0", TWO), ("1.2.3", ONE), ("1.4.0", TWO)),
        (("1.4.0", None), ("1.4.0", None), ("1.4.0", None)),
        (("1.4.0", TWO), ("1.4.0", ONE), ("1.4.0", TWO)),
        (("1.4.0", TWO), ("1.4.0", None), ("1.4.0", None)),
        (("1.4.0", None), ("1.4.0", ONE), ("1.4.0", ONE)),
        (("1.4.0", TWO), ("1.5.0", ONE), ("1.5.0", ONE)),
        (("1.4.0", TWO), ("1.5.0", None), ("1.5.0", None)),
        (("1.4.0", TWO), ("1.2.3", None), ("1.4.0", None)),
        (("1.10.0", None), ("1.9.0", None), ("1.10.0", None)),
    ],
)
def test_version_that_is_written(
    tmp_path: Path, committed: tuple[str, str | None], catalog: tuple[str, str | None], expected: tuple[str, str | None]
) -> None:
    def text(tag: str, digest: str | None) -> str:
        return service(f"{tag}@{digest}" if digest else tag, shape="string")

    made = moved(tmp_path, text("1.0.0", ONE if committed[1] else None), *committed)

    ran = then(made, text(*catalog))

    assert ran.code == 0, ran.err
    tag, digest = expected
    assert f'image: "ghcr.io/example/web:{tag}{f"@{digest}" if digest else ""}" #' in written(made)


@pytest.mark.parametrize(
    ("update", "tag"), [("{range: 1.x}", "1.2.3"), ("{range: '>=1'}", "1.4.0"), ("{channel: digest}", "1.4.0")]
)
def test_policy_decides_whether_the_committed_version_stays(tmp_path: Path, update: str, tag: str) -> None:
    made = moved(tmp_path, service("1.2.3"), "1.4.0")

    ran = then(made, service(tag, update))

    assert ran.code == 0, ran.err
    assert 'tag: "1.4.0" #' in written(made)


DIGESTS = {
    "update removed": (service(f"1.2.3@{ONE}", None), ()),
    "left out": (service(f"1.2.3@{ONE}"), ("--no-image-automation",)),
}


@pytest.mark.parametrize("case", DIGESTS)
def test_other_digest_that_nothing_moves_any_more_is_refused(tmp_path: Path, case: str) -> None:
    text, options = DIGESTS[case]
    made = moved(tmp_path, service(f"1.2.3@{ONE}"), "1.2.3", TWO)

    ran = then(made, text, *options)

    assert ran.code == 1
    assert (
        f"hint: write `1.2.3@{TWO}` here with `render sync`, or take the catalog's with `--reset-tags web`" in ran.err
    )
    assert then(made, text, *options, "--reset-tags", "web").code == 0
    assert ONE in written(made)


@pytest.mark.parametrize("case", DIGESTS)
def test_digest_that_the_catalog_has_caught_up_with_needs_no_reset(tmp_path: Path, case: str) -> None:
    text, options = DIGESTS[case]
    made = moved(tmp_path, service(f"1.2.3@{ONE}"), "1.2.3", TWO)

    assert then(made, text.replace(ONE, TWO), *options).code == 0


@pytest.mark.parametrize("tag", ["1.4.0", "1.5.0"])
@pytest.mark.parametrize("options", [(), ("--no-image-automation",)])
def test_version_that_is_left_to_the_catalog_may_be_equal_or_newer(
    tmp_path: Path, tag: str, options: tuple[str, ...]
) -> None:
    made = moved(tmp_path, service("1.2.3"), "1.4.0")

    ran = then(made, service(tag, RANGE if options else None), *options)

    assert ran.code == 0, ran.err
    assert f'tag: "{tag}"\n' in written(made)


@pytest.mark.parametrize(
    ("first", "committed", "tag"),
    [
        ("2024.8.1", "2024.9.1", "2024.10.2"),
        ("3.9-alpine", "3.10-alpine", "3.21-alpine"),
        ("17.0-0", "17.1-0", "17.2-0"),
        ("v1.2.3.4", "v1.2.3.10", "v1.2.4.0"),
    ],
)
def test_newer_tag_of_any_form_is_newer_without_a_policy_too(
    tmp_path: Path, first: str, committed: str, tag: str
) -> None:
    made = moved(tmp_path, service(first, "{range: '>=0'}"), committed)

    assert then(made, service(first, None)).code == 1
    assert then(made, service(tag, None)).code == 0


def test_mode_without_automation_says_what_hides_the_version(tmp_path: Path) -> None:
    made = moved(tmp_path, service("1.2.3"), "1.4.0")

    assert "image automation is left out" in then(made, service("1.2.3"), "--no-image-automation").err


# Overrides that come and go


@pytest.mark.parametrize("shape", ["split", "registry", "digest", "string", "tag", "postRenderer"])
def test_version_stays_when_a_table_renames_the_image(tmp_path: Path, shape: str) -> None:
    made = moved(tmp_path, service("1.2.3", shape=shape), "1.4.0")

    ran = then(made, service("1.2.3", shape=shape), platform=RENAMED)

    assert ran.code == 0, ran.err
    assert "1.4.0" in written(made)
    assert "1.2.3" not in written(made)


@pytest.mark.parametrize("shape", ["split", "registry", "digest", "string", "tag", "postRenderer"])
@pytest.mark.parametrize("to", ["[]", "\n  - {name: ghcr.io/example/web, newName: other.corp.example/web}"])
def test_version_stays_when_the_table_of_a_release_changes(tmp_path: Path, shape: str, to: str) -> None:
    made = moved(tmp_path, service("1.2.3", shape=shape), "1.4.0", platform=RENAMED)

    ran = then(made, service("1.2.3", shape=shape), platform=PLATFORM.replace("[]", to))

    assert ran.code == 0, ran.err
    assert "1.4.0" in written(made)
    assert "1.2.3" not in written(made)


def test_version_of_a_workload_is_of_another_repository_without_its_table(tmp_path: Path) -> None:
    made = project(tmp_path, {"catalog/web.yaml": WORKLOAD.replace("DIGEST", ""), "platform.yaml": RENAMED})
    made.run("build")
    bump(tmp_path)

    ran = then(made, WORKLOAD.replace("DIGEST", ""), platform=PLATFORM)

    assert ran.code == 1
    assert "it is a version of `registry.corp.example/web`" in ran.err
    assert then(made, WORKLOAD.replace("1.2.3DIGEST", "1.4.0")).code == 0


@pytest.mark.parametrize("tag", ["1.2.3", "1.4.0", "1.9.0"])
def test_retag_below_the_committed_version_is_refused_whatever_the_catalog_says(tmp_path: Path, tag: str) -> None:
    made = moved(tmp_path, service("1.2.3"), "1.4.0")

    ran = then(made, service(tag), platform=RETAGGED)

    assert ran.code == 1
    assert "`1.4.0` in the tree, and `1.3.0` by `registries.imageOverrides[0]`" in ran.err
    assert then(made, service(tag), "--reset-tags", "web").code == 0


def test_digest_by_an_override_is_not_provably_newer(tmp_path: Path) -> None:
    made = moved(tmp_path, service("1.2.3"), "1.4.0")
    platform = PLATFORM.replace(" []", f"\n  - {{name: ghcr.io/example/web, digest: '{ONE}'}}")

    assert "error[R510]" in then(made, service("1.2.3"), platform=platform).err


@pytest.mark.parametrize(("tag", "code"), [("1.3.0", 1), ("1.4.0", 0), ("1.5.0", 0)])
def test_version_by_a_renderer_of_the_service_must_not_be_older(tmp_path: Path, tag: str, code: int) -> None:
    made = moved(tmp_path, service("1.2.3"), "1.4.0")
    own = f"postRenderers: [{{kustomize: {{images: [{{name: ghcr.io/example/web, newTag: '{tag}'}}]}}}}]\n"

    assert then(made, service("1.2.3") + own).code == code


# Whose version it is


def test_other_spelling_is_the_same_repository(tmp_path: Path) -> None:
    made = project(tmp_path, {"catalog/web.yaml": service("1.2.3", name="nginx")})
    made.run("build")
    bump(tmp_path)

    assert then(made, service("1.2.3", name="docker.io/library/nginx")).code == 0
    assert 'tag: "1.4.0" #' in written(made)


def test_equal_version_of_another_repository_is_taken(tmp_path: Path) -> None:
    made = moved(tmp_path, service("1.2.3"), "1.4.0")

    assert then(made, service("1.4.0", name="ghcr.io/other/web")).code == 0


def test_what_looks_like_a_marker_in_a_text_is_none(tmp_path: Path) -> None:
    marker = '# {"$imagepolicy": "flux-system:web:tag"}'
    text = (
        service("1.2.3")
        + f'values:\n  a: |\n    tag: "9.9.9" {marker}\n  b:\n  - |-\n    x: "8.8.8" {marker}\n  c: d\n'
    )
    made = project(tmp_path, {"catalog/web.yaml": text})
    made.run("build")

    assert then(made, text + "labels: {a: b}\n").code == 0
    assert 'tag: "1.2.3" #' in written(made)


@pytest.mark.parametrize("prefix", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("ends", [b"\n", b"\r\n"])
def test_committed_version_is_read_from_any_checkout(tmp_path: Path, prefix: bytes, ends: bytes) -> None:
    made = moved(tmp_path, service("1.2.3"), "1.4.0")
    path = tmp_path / RELEASE
    path.write_bytes(prefix + path.read_bytes().replace(b"\n", ends))

    marks = Committed(tmp_path).marks("web")

    assert (marks["web"].tag, marks["web"].name) == ("1.4.0", "ghcr.io/example/web")
    assert made.run("build").code == 0
    assert 'tag: "1.4.0" #' in written(made)


def test_conflict_of_a_merge_is_told_and_no_version_is_guessed(tmp_path: Path) -> None:
    made = moved(tmp_path, service("1.2.3", "{range: 1.2.x}"), "1.4.0")
    path = tmp_path / RELEASE
    line = next(line for line in written(made).splitlines(keepends=True) if "tag: " in line)
    sides = f"<<<<<<< ours\n{line}=======\n{line.replace('1.4.0', '1.2.9')}>>>>>>> theirs\n"
    path.write_text(written(made).replace(line, sides))

    ran = made.run("build")

    assert re.findall(r"error\[(R\d+)\]", ran.err) == ["R505"]


def test_table_of_a_committed_release_is_read(tmp_path: Path) -> None:
    entries = [
        {"name": "ghcr.io/a", "newName": "registry.corp.example:5000/a"},
        {"name": "b", "newTag": "1.20", "digest": ONE},
    ]
    platform = PLATFORM.replace("[]", str(entries))
    project(tmp_path, {"catalog/web.yaml": service("1.2.3"), "platform.yaml": platform}).run("build")

    assert Committed(tmp_path).table("web").entries == tuple(Entry.of(entry) for entry in entries)
    assert Committed(tmp_path).table("other").entries == ()


SIDE = "images: {KEY: {ref: 'ghcr.io/example/side:1.0.0', at: side, update: {range: 1.x}}}\n"


def test_version_moves_with_its_image_to_another_key(tmp_path: Path) -> None:
    made = project(tmp_path, {"catalog/web.yaml": service("1.2.3") + SIDE.replace("KEY", "one")})
    made.run("build")
    bump(tmp_path)

    ran = then(made, service("1.2.3") + SIDE.replace("KEY", "two"))

    assert ran.code == 0, ran.err
    assert 'tag: "1.4.0" # {"$imagepolicy": "flux-system:web-two:tag"}\n' in written(made)


def test_version_of_an_image_that_is_declared_no_more_is_refused(tmp_path: Path) -> None:
    made = project(tmp_path, {"catalog/web.yaml": service("1.2.3") + SIDE.replace("KEY", "one")})
    made.run("build")
    bump(tmp_path)

    ran = then(made, service("1.2.3"))

    assert ran.code == 1
    assert "`ghcr.io/example/side` is `1.4.0` in the tree, and no image of it is declared" in ran.err
    assert then(made, service("1.2.3"), "--reset-tags", "web").code == 0


def test_two_images_of_one_entry_may_be_moved_one_after_the_other(tmp_path: Path) -> None:
    both = f"ghcr.io/example/web:1.2.3@{ONE}"
    text = service(f"1.2.3@{ONE}") + f"images: {{side: {{ref: '{both}', at: side, update: {RANGE}}}}}\n"
    made = project(tmp_path, {"catalog/web.yaml": text})
    made.run("build")
    bump(tmp_path, {"web": ("1.4.0", TWO), "web-side": ("1.3.0", TWO)})
    before = made.tree()

    ran = made.run("build")

    assert ran.code == 0, ran.err
    assert made.tree() == before


# Services that are renamed, while the object stays

SAME = "name: shop\nobjectName: web\nnamespace: web\n"


@pytest.mark.parametrize("shape", ["split", "registry", "digest", "string", "tag", "postRenderer"])
def test_value_stays_with_a_release_that_another_service_takes_over(tmp_path: Path, shape: str) -> None:
    text = service("1.2.3", shape=shape)
    made = moved(tmp_path, text, "1.4.0")

    ran = then(made, text.replace("name: web\n", SAME))

    assert ran.code == 0
    assert "kept ghcr.io/example/web:1.4.0 of `shop`" in ran.err
    release = (tmp_path / "apps/shop/helmrelease.yaml").read_text()
    assert "1.4.0" in release
    assert "1.2.3" not in release
    assert made.run("check").code == 0


def test_value_of_a_release_that_is_taken_over_without_automation_is_refused(tmp_path: Path) -> None:
    text = service("1.2.3")
    made = moved(tmp_path, text, "1.4.0")

    ran = then(made, service("1.2.3", None).replace("name: web\n", SAME))

    assert ran.code == 1
    assert "error[R510]: `source.image` is `1.4.0` in the tree, and `1.2.3` here\n" in ran.err
    assert "--reset-tags shop" in ran.err
    assert made.run("build", "--reset-tags", "shop").code == 0


def test_value_of_a_workload_and_of_an_extra_object_stay_too(tmp_path: Path) -> None:
    text = (
        "name: web\nsource:\n  image: ghcr.io/example/web:1.2.3\nworkload: {}\n"
        "update: {range: 1.x, autoRollbackOnFailedHealth: false}\n"
        "images:\n  db: {ref: 'ghcr.io/example/db:1.0.0', update: {range: 1.x}, shape: string,"
        " at: 'extraObjects[kind=Cluster,name=pg].spec.imageName'}\n"
        "extraObjects:\n- apiVersion: postgresql.cnpg.io/v1\n  kind: Cluster\n"
        "  metadata: {name: pg, namespace: web}\n  spec: {}\n"
    )
    made = project(tmp_path, {"catalog/web.yaml": text})
    assert made.run("build").code == 0
    policies = [
        {"namespace": "flux-system", "name": "web", "image": "ghcr.io/example/web", "tag": "1.4.0"},
        {"namespace": "flux-system", "name": "web-db", "image": "ghcr.io/example/db", "tag": "1.3.0"},
    ]
    for path in ("apps/web/workload.yaml", "configs/web/extra.yaml"):
        after = rewrite((tmp_path / path).read_bytes(), policies)
        assert after is not None
        (tmp_path / path).write_text(after)

    ran = then(made, text.replace("name: web\n", SAME, 1))

    assert ran.code == 0
    assert "ghcr.io/example/web:1.4.0" in (tmp_path / "apps/shop/workload.yaml").read_text()
    assert "ghcr.io/example/db:1.3.0" in (tmp_path / "configs/shop/extra.yaml").read_text()


def test_another_service_of_the_same_image_gets_nothing_of_a_vanished_one(tmp_path: Path) -> None:
    text = service("1.2.3")
    made = moved(tmp_path, text, "1.4.0")

    ran = then(made, text.replace("name: web\n", "name: shop\n"))

    assert ran.code == 0
    assert "Flux will uninstall the release of `web`" in ran.err
    assert 'tag: "1.2.3"' in (tmp_path / "apps/shop/helmrelease.yaml").read_text()


# Services that are disabled


def test_version_of_a_disabled_service_is_named_and_can_be_synced_before_it_goes(tmp_path: Path) -> None:
    made = moved(tmp_path, service("1.2.3"), "1.4.0")
    (tmp_path / "catalog/web.yaml").write_text(service("1.2.3") + "enabled: false\n")

    checked = made.run("check")
    synced = made.run("sync")
    ran = made.run("build")

    assert "1.4.0 of `web` would go with its files, unless" in checked.err
    assert synced.code == 0
    assert (tmp_path / "catalog/web.yaml").read_text() == service("1.4.0") + "enabled: false\n"
    assert ran.code == 0
    assert "1.4.0 of `web` goes with its files, unless" in ran.err
    assert not (tmp_path / "apps").exists()
    assert made.run("sync").code == 0


def test_fault_of_a_disabled_service_does_not_stop_sync(tmp_path: Path) -> None:
    made = moved(tmp_path, service("1.2.3"), "1.4.0")
    other = service("1.2.3", name="ghcr.io/example/other")
    (tmp_path / "catalog/web.yaml").write_text(other)
    assert "error[R510]" in made.run("sync").err
    (tmp_path / "catalog/web.yaml").write_text(other + "enabled: false\n")

    ran = made.run("sync")

    assert (ran.code, ran.err) == (0, "0 values written, 0 files changed\n")


def test_version_of_a_service_that_leaves_the_catalog_is_not_spoken_of(tmp_path: Path) -> None:
    made = moved(tmp_path, service("1.2.3"), "1.4.0")
    (tmp_path / "catalog/web.yaml").write_text(service("1.2.3").replace("web", "db"))

    assert "goes with" not in made.run("build").err
