"""Logins out of Docker's configuration file."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from render.dockerconfig import DockerConfig, DockerConfigError, Login

HOST = "registry.example:5000"
AUTH = base64.b64encode(b"reader:a:b").decode()


def config(folder: Path, data: Any) -> DockerConfig:
    (folder / "config.json").write_text(data if isinstance(data, str) else json.dumps(data), encoding="utf-8")
    return DockerConfig.read(folder)


def helper(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, script: str) -> None:
    """Put a credential helper on the path."""
    program = folder / f"docker-credential-{name}"
    program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


@pytest.mark.parametrize(
    ("entries", "host", "login"),
    [
        ({HOST: {"auth": AUTH}}, HOST, Login("reader", "a:b")),
        ({f"https://{HOST}/v1/": {"auth": AUTH}}, HOST, Login("reader", "a:b")),
        ({HOST: {"username": "reader", "password": "pw"}}, HOST, Login("reader", "pw")),
        ({"registry.example": {"auth": AUTH}}, HOST, None),
        ({HOST: {}}, HOST, None),
        ({HOST: "text"}, HOST, None),
        ({"https://index.docker.io/v1/": {"auth": AUTH}}, "docker.io", Login("reader", "a:b")),
        ({"docker.io": {"auth": AUTH}}, "docker.io", Login("reader", "a:b")),
        ({"https://index.docker.io/v1/": {"auth": AUTH}}, "quay.io", None),
    ],
)
def test_a_host_gets_the_login_that_is_filed_for_it(
    tmp_path: Path, entries: dict[str, Any], host: str, login: Login | None
) -> None:
    assert login == config(tmp_path, {"auths": entries}).login(host)


def test_docker_config_names_the_folder_and_home_has_the_usual_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("DOCKER_CONFIG", raising=False)
    assert DockerConfig.read() == DockerConfig(tmp_path / ".docker/config.json")
    (tmp_path / "other").mkdir()
    config(tmp_path / "other", {"auths": {HOST: {"auth": AUTH}}})
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "other"))
    assert DockerConfig.read().login(HOST) == Login("reader", "a:b")


@pytest.mark.parametrize("text", ["{", "[]", '"x"', "\0", "[" * 100_000])
def test_a_file_of_another_form_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(DockerConfigError, match=r"config\.json (is not JSON|holds no JSON object)$"):
        config(tmp_path, text)


@pytest.mark.parametrize("data", [{"auths": []}, {"auths": None, "credHelpers": 1}, {}])
def test_parts_of_another_form_hold_no_login(tmp_path: Path, data: dict[str, Any]) -> None:
    assert config(tmp_path, data).login(HOST) is None


@pytest.mark.parametrize(
    ("auth", "told"),
    [
        ("%%", "`auth` of `registry.example:5000` is not Base64"),
        (base64.b64encode(b"\xff:x").decode(), "`auth` of `registry.example:5000` is not Base64"),
        (base64.b64encode(b"alone").decode(), "`auth` of `registry.example:5000` holds no name and password"),
        (base64.b64encode(b"<token>:x").decode(), "an identity token for `registry.example:5000`"),
    ],
)
def test_a_login_that_cannot_be_used_is_told(tmp_path: Path, auth: str, told: str) -> None:
    with pytest.raises(DockerConfigError) as caught:
        config(tmp_path, {"auths": {HOST: {"auth": auth}}}).login(HOST)
    assert told in str(caught.value)


def test_a_helper_of_the_host_comes_before_the_one_for_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    helper(
        tmp_path,
        monkeypatch,
        "own",
        f"""[ "$1 $(cat)" = "get {HOST}" ] && echo '{{"Username": "u", "Secret": "own"}}'""",
    )
    helper(tmp_path, monkeypatch, "all", """echo '{"Username": "u", "Secret": "all"}'""")
    found = config(tmp_path, {"credHelpers": {HOST: "own"}, "credsStore": "all", "auths": {HOST: {"auth": AUTH}}})
    assert found.login(HOST) == Login("u", "own")
    assert found.login("other.example") == Login("u", "all")


def test_the_file_serves_what_a_helper_does_not_know(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    helper(tmp_path, monkeypatch, "all", "echo credentials not found in native keychain; exit 1")
    found = config(tmp_path, {"credsStore": "all", "auths": {HOST: {"auth": AUTH}}})
    assert found.login(HOST) == Login("reader", "a:b")


@pytest.mark.parametrize("answer", ["", "[]", "{}", '{"Username": "u"}'])
def test_a_helper_that_answers_in_another_form_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    helper(tmp_path, monkeypatch, "all", f"echo '{answer}'")
    with pytest.raises(DockerConfigError, match=r"^`docker-credential-all` answered with no `Username` and `Secret`$"):
        config(tmp_path, {"credsStore": "all"}).login(HOST)


def test_a_helper_that_is_not_installed_is_told(tmp_path: Path) -> None:
    with pytest.raises(DockerConfigError, match=r"^cannot run `docker-credential-none-such`, which "):
        config(tmp_path, {"credsStore": "none-such"}).login(HOST)


def test_a_login_does_not_show_its_password() -> None:
    assert repr(Login("reader", "hidden")) == "Login(username='reader')"
