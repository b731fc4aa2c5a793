from __future__ import annotations

from pathlib import Path

import pytest

from tests.bot import rewrite
from tests.project import PLATFORM, Project, Ran, project

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
