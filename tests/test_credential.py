"""What the image bot's credential needs, as text and in the tree."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from render.credential import PARTS
from tests.project import PLATFORM, Project, project

WEB = "name: web\nsource: {chart: {url: 'oci://a.example/c', version: '1.0.0'}}\n"
BOT = "imageAutomation: {enabled: true, author: {email: bot@example.org}, secretFile: git.sops.yaml}\n"
DECRYPTED = PLATFORM.replace('"2.9"', '"2.9"\n  decryption: {provider: sops, secretRef: {name: sops-age}}')
FILE = "platform/image-automation/git.sops.yaml"
ENCRYPTED = """\
apiVersion: v1
kind: Secret
metadata: {name: flux-system-write, namespace: flux-system}
stringData:
  username: ENC[AES256_GCM,data:x,iv:x,tag:x,type:str]
  password: ENC[AES256_GCM,data:x,iv:x,tag:x,type:str]
sops: {version: 3.9.0}
"""
PLAIN = re.sub(r"ENC\S+", "hunter2", ENCRYPTED).replace("sops: {version: 3.9.0}\n", "")


def made(folder: Path, platform: str = PLATFORM, **files: str) -> Project:
    return project(folder, {"catalog/web.yaml": WEB, "platform.yaml": platform, **files})


def printed(folder: Path, *arguments: str, platform: str = PLATFORM) -> Any:
    ran = made(folder, platform).run("write-back", *arguments)
    assert (ran.code, ran.err) == (0, "")
    return yaml.safe_load(ran.out)


def codes(folder: Path, platform: str, secret: str, *arguments: str) -> list[str]:
    ran = made(folder, platform, **{FILE: secret}).run("check", "--format", "concise", *arguments)
    assert "hunter2" not in ran.out + ran.err
    return re.findall(r"\bR\d{3}\b", ran.err)


def test_secret_is_to_be_filled_in(tmp_path: Path) -> None:
    assert printed(tmp_path, "secret") == {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "flux-system-write", "namespace": "flux-system"},
        "stringData": {"username": "", "password": ""},
    }


def test_secret_may_be_an_ssh_key(tmp_path: Path) -> None:
    assert printed(tmp_path, "secret", "--ssh")["stringData"] == {"identity": "", "identity.pub": "", "known_hosts": ""}


def test_secret_lies_where_its_repository_is_and_the_patch_names_both(tmp_path: Path) -> None:
    platform = PLATFORM.replace('"2.9"', '"2.9"\n  source: {name: fleet, namespace: git}')

    secret = printed(tmp_path / "a", "secret", platform=platform)
    (patch,) = printed(tmp_path / "b", "patch", platform=platform)["patches"]

    assert secret["metadata"] == {"name": "fleet-write", "namespace": "git"}
    assert {key: patch["target"][key] for key in ("name", "namespace")} == {"name": "fleet", "namespace": "git"}
    assert yaml.safe_load(patch["patch"]) == [
        {"op": "add", "path": "/spec/secretRef", "value": {"name": "fleet-write"}}
    ]


@pytest.mark.parametrize(
    ("root", "name", "path"),
    [
        (".", None, "platform/image-automation/git.sops.yaml"),
        ("clusters/home", None, "clusters/home/platform/image-automation/git.sops.yaml"),
        ("clusters/a+b.c", "token.sops.yml", "clusters/a+b.c/platform/image-automation/token.sops.yml"),
    ],
)
def test_rule_fits_the_file_and_no_other(tmp_path: Path, root: str, name: str | None, path: str) -> None:
    platform = f"{PLATFORM}root: {root}\n" + (f"imageAutomation: {{secretFile: {name}}}\n" if name else "")

    (rule,) = printed(tmp_path, "rule", platform=platform)["creation_rules"]

    pattern = rule["path_regex"]
    assert re.search(pattern, path)
    assert re.search(pattern, f"/repository/{path}")
    others = (
        path.replace(".sops", ""),
        path.replace("image-automation", "alerts"),
        f"{path}.bak",
        path.replace(".y", "xy"),
    )
    assert not any(re.search(pattern, other) for other in others)
    assert re.fullmatch(rule["encrypted_regex"], "stringData")
    assert not re.search(rule["encrypted_regex"], "metadata")


def test_nothing_that_is_printed_holds_a_secret_or_a_key_of_ours(tmp_path: Path) -> None:
    repository = made(tmp_path)

    for part in PARTS:
        values = re.findall(r": \"?([^\n\"]*)", repository.run("write-back", part).out)
        assert not any(re.search(r"[A-Za-z0-9+/]{32,}|ghp_|age1|PRIVATE", value) for value in values)


def test_source_must_be_one_that_the_bot_can_commit_to(tmp_path: Path) -> None:
    platform = PLATFORM.replace('"2.9"', '"2.9"\n  source: {kind: OCIRepository}')

    ran = made(tmp_path, platform).run("write-back", "secret")

    assert (ran.code, ran.out) == (1, "")
    assert "error[R401]: image automation needs a GitRepository" in ran.err


@pytest.mark.parametrize("arguments", [["patch", "--ssh"], ["rule", "--ssh"], ["token"], []])
def test_wrong_arguments_are_a_usage_error(tmp_path: Path, arguments: list[str]) -> None:
    assert made(tmp_path).run("write-back", *arguments).code == 2


def test_platform_file_with_faults_is_told_of(tmp_path: Path) -> None:
    ran = made(tmp_path, PLATFORM + "alerts: {enable: true}\n").run("write-back", "patch")

    assert (ran.code, ran.out) == (1, "")
    assert "error[R101]" in ran.err


def test_warnings_of_the_platform_file_do_not_stop_it_unless_they_are_to(tmp_path: Path) -> None:
    table = "\n  - {name: a/b, newName: c/d}\n  - {name: c/d, newName: e/f}"
    repository = made(tmp_path, PLATFORM.replace(" []", table))

    ran = repository.run("write-back", "patch", "--format", "concise")
    assert (ran.code, ran.err.count("R608")) == (0, 1)
    assert ran.out.startswith("# ")
    stopped = repository.run("write-back", "patch", "--fail-on", "warning")
    assert (stopped.code, stopped.out) == (1, "")


# In the tree


def test_encrypted_credential_is_taken(tmp_path: Path) -> None:
    assert codes(tmp_path, DECRYPTED + BOT, ENCRYPTED) == []


def test_credential_in_plain_text_is_refused(tmp_path: Path) -> None:
    assert codes(tmp_path / "plain", DECRYPTED + BOT, PLAIN) == ["R611"]
    template = made(tmp_path / "other", DECRYPTED + BOT).run("write-back", "secret").out
    assert codes(tmp_path / "template", DECRYPTED + BOT, template) == ["R611"]
    assert codes(tmp_path / "second", DECRYPTED + BOT, f"{ENCRYPTED}---\n{PLAIN}") == ["R611"]


def test_nothing_is_written_beside_a_credential_in_plain_text(tmp_path: Path) -> None:
    repository = made(tmp_path, DECRYPTED + BOT, **{FILE: PLAIN})

    assert repository.run("build").code == 1
    assert list(repository.tree()) == [FILE]


def test_credential_that_is_replaced_by_plain_text_after_an_earlier_run_is_refused(tmp_path: Path) -> None:
    repository = made(tmp_path, DECRYPTED + BOT, **{FILE: ENCRYPTED})
    assert repository.run("build").code == 0
    assert repository.run("check").code == 0

    (tmp_path / FILE).write_text(PLAIN)

    assert "error[R611]" in repository.run("check").err


def test_credential_that_nothing_decrypts_is_refused(tmp_path: Path) -> None:
    assert codes(tmp_path, PLATFORM + BOT, ENCRYPTED) == ["R612"]


@pytest.mark.parametrize("text", ["kind: [", "a: 1\na: 2\n", "\x00"])
def test_credential_that_is_no_yaml_is_refused(tmp_path: Path, text: str) -> None:
    assert codes(tmp_path, DECRYPTED + BOT, text) == ["R611"]


def test_secret_of_another_kind_is_left_alone(tmp_path: Path) -> None:
    sealed = (
        "apiVersion: bitnami.com/v1alpha1\nkind: SealedSecret\nmetadata: {name: a}\nspec: {encryptedData: {a: b}}\n"
    )

    assert codes(tmp_path, PLATFORM + BOT, sealed) == []


def test_credential_is_not_asked_for_without_image_automation(tmp_path: Path) -> None:
    assert codes(tmp_path, PLATFORM + BOT, PLAIN, "--no-image-automation") == []


def test_credential_that_cannot_be_read_is_told_of(tmp_path: Path) -> None:
    repository = made(tmp_path, PLATFORM + BOT)
    (tmp_path / FILE).mkdir(parents=True)

    ran = repository.run("check", "--format", "concise")

    assert re.findall(r"\bR\d{3}\b", ran.err) == ["R507"]
