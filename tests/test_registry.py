"""Tags over the distribution API: pages, logins, and what each fault is called."""

from __future__ import annotations

import json
import re
import socket
import time
from pathlib import Path

import pytest

pytest.importorskip("oras")

from render.dockerconfig import DockerConfig
from render.registry import Access, RegistryError, list_tags
from tests.distribution import PASSWORD, TOKEN, Behaviour, Registry, docker_config, serving

MANY = [f"1.{number}.0" for number in range(2500)]


def access(folder: Path, config: str = "", timeout: float = 10) -> Access:
    """Return how registries are asked with this `config.json`."""
    if config:
        (folder / "config.json").write_text(config, encoding="utf-8")
    return Access(DockerConfig.read(folder), timeout)


def tags_of(registry: Registry, given: Access, name: str = "library/web", *, insecure: bool = True) -> list[str]:
    return list_tags(f"{registry.host}/{name}", given, insecure=insecure)


def fault_of(registry: Registry, given: Access, name: str = "library/web", *, insecure: bool = True) -> str:
    """Return the error's text, with the registry's name taken off."""
    with pytest.raises(RegistryError) as caught:
        tags_of(registry, given, name, insecure=insecure)
    text = str(caught.value)
    assert text.startswith(f"{registry.host}: ")
    assert "\n" not in text
    return text.removeprefix(f"{registry.host}: ")


@pytest.mark.parametrize(
    "link",
    ["{path}?{query}", "http://{host}{path}?{query}", "https://inner.example:8443{path}?{query}", "?{query}"],
    ids=["path", "url", "address behind a proxy", "query alone"],
)
def test_all_pages_are_read_whatever_form_their_links_have(tmp_path: Path, link: str) -> None:
    with serving(Behaviour({"library/web": MANY}, page=100, link=link)) as registry:
        tags = tags_of(registry, access(tmp_path))
    assert sorted(MANY) == tags
    assert len(registry.behaviour.seen) == 1 + 25


def test_pages_as_large_as_may_be_are_asked_for(tmp_path: Path) -> None:
    with serving(Behaviour({"library/web": MANY})) as registry:
        assert len(tags_of(registry, access(tmp_path))) == 2500
    assert [path.partition("?")[2] for path, _ in registry.behaviour.seen] == [
        "n=1",
        "n=1000",
        f"n=1000&last={sorted(MANY)[999]}",
        f"n=1000&last={sorted(MANY)[1999]}",
    ]


def test_a_list_that_leads_in_a_circle_is_left(tmp_path: Path) -> None:
    with serving(Behaviour({"library/web": MANY}, page=100, link="{path}?n=100&last=1.1.0")) as registry:
        fault = fault_of(registry, access(tmp_path))
    assert fault == "its list of tags leads back to a page that it gave before"


def test_a_repository_without_tags_has_none(tmp_path: Path) -> None:
    answers = {"library/web": (200, b'{"name": "library/web", "tags": null}')}
    with serving(Behaviour(answers=answers)) as registry:
        assert tags_of(registry, access(tmp_path)) == []


@pytest.mark.parametrize("login", ["basic", "token"])
def test_the_docker_configuration_logs_in(tmp_path: Path, login: str) -> None:
    with serving(Behaviour({"library/web": MANY}, login=login)) as registry:
        assert len(tags_of(registry, access(tmp_path, docker_config(registry.host)))) == 2500
    assert registry.behaviour.seen[0][1] == ""


def test_a_token_is_given_to_anybody_where_the_registry_wants_one(tmp_path: Path) -> None:
    with serving(Behaviour({"library/web": ["1.0.0"]}, login="anonymous")) as registry:
        assert tags_of(registry, access(tmp_path)) == ["1.0.0"]
    assert registry.behaviour.seen[-1][1] == f"Bearer {TOKEN}"


@pytest.mark.parametrize("login", ["basic", "token", "empty"])
@pytest.mark.parametrize("given", ["", "wrong password", "other registry"])
def test_a_refusal_says_where_logins_are_kept_and_no_password(
    tmp_path: Path, login: str, given: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with serving(Behaviour({"library/web": ["1.0.0"]}, login=login)) as registry:
        config = {
            "": "",
            "wrong password": docker_config(registry.host, password=PASSWORD[:-1]),
            "other registry": docker_config("registry.example"),
        }[given]
        fault = fault_of(registry, access(tmp_path, config))
    said = "no such reader" if login == "token" else "authentication required"
    refused = f"it refuses `library/web` with 401 Unauthorized ({said})"
    assert fault == f"{refused}; `docker login` keeps logins in {tmp_path}/config.json"
    assert capfd.readouterr() == ("", "")


def test_a_registry_that_other_people_log_in_to_gets_no_password(tmp_path: Path) -> None:
    with serving(Behaviour({"library/web": ["1.0.0"]}, login="basic")) as registry:
        fault_of(registry, access(tmp_path, docker_config("registry.example")))
    assert [authorization for _, authorization in registry.behaviour.seen] == [""]


def test_a_netrc_file_is_no_login(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login somebody password else\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    with serving(Behaviour({"library/web": ["1.0.0"]}, login="token")) as registry:
        assert tags_of(registry, access(tmp_path, docker_config(registry.host))) == ["1.0.0"]


def test_a_login_that_cannot_be_used_is_told_with_the_refusal(tmp_path: Path) -> None:
    with serving(Behaviour({"library/web": ["1.0.0"]}, login="basic")) as registry:
        config = json.dumps({"credHelpers": {registry.host: "none-such"}})
        fault = fault_of(registry, access(tmp_path, config))
    assert fault.endswith(
        f"; cannot run `docker-credential-none-such`, which {tmp_path}/config.json names: No such file or directory"
    )


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ((200, b"<html>"), "the answer is not JSON, so it is no registry, or not its address"),
        ((200, b"[" * 100_000), "the answer is not JSON, so it is no registry, or not its address"),
        ((200, b'["1.0.0"]'), "the answer is no list of tags"),
        ((200, b'{"tags": [1]}'), "the answer is no list of tags"),
        ((200, b'{"tags": ["\\u001b[31m"]}'), "the answer is no list of tags"),
        ((403, b"no"), "it refuses `library/web` with 403 Forbidden; `docker login` keeps logins in DIR/config.json"),
        (
            (429, b'{"errors": [{"message": "too\\nmany \\u001b[1m"}]}'),
            "it answers 429 Too Many Requests (too·many ·[1m)",
        ),
        ((500, b'{"errors": {}}'), "it answers 500 Internal Server Error"),
        ((204, b""), "it answers 204 No Content"),
    ],
)
def test_an_answer_that_is_no_list_of_tags_is_named(tmp_path: Path, answer: tuple[int, bytes], told: str) -> None:
    with serving(Behaviour(answers={"library/web": answer})) as registry:
        fault = fault_of(registry, access(tmp_path))
    assert fault.replace(str(tmp_path), "DIR") == told


def test_an_unknown_repository_is_named(tmp_path: Path) -> None:
    with serving(Behaviour()) as registry:
        fault = fault_of(registry, access(tmp_path), "team/none")
    assert fault == "it has no repository `team/none` (repository name not known to registry)"


def test_plain_http_needs_leave(tmp_path: Path) -> None:
    with serving(Behaviour({"library/web": ["1.0.0"]})) as registry:
        fault = fault_of(registry, access(tmp_path), insecure=False)
    assert fault == (
        "it does not speak TLS as it should; plain HTTP needs `insecure` in the platform's `registries.credentials`"
    )
    assert registry.behaviour.seen == []


def test_all_requests_about_a_repository_share_the_time(tmp_path: Path) -> None:
    start = time.monotonic()
    with serving(Behaviour({"library/web": MANY}, page=100, slow=0.1)) as registry:
        fault = fault_of(registry, access(tmp_path, timeout=0.5))
    assert fault == "no answer within 0.5 s"
    assert time.monotonic() - start < 3


def test_a_registry_that_does_not_run_is_named_at_once(tmp_path: Path) -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        host = f"127.0.0.1:{bound.getsockname()[1]}"
        with pytest.raises(RegistryError, match=rf"^{re.escape(host)}: connection refused$"):
            list_tags(f"{host}/web", access(tmp_path))


def test_a_host_without_an_address_is_named(tmp_path: Path) -> None:
    with pytest.raises(RegistryError, match=r"^registry\.invalid: there is no host of this name$"):
        list_tags("registry.invalid/web", access(tmp_path))


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("redis", "registry-1.docker.io:443"),
        ("docker.io/redis", "registry-1.docker.io:443"),
        ("index.docker.io/library/redis", "registry-1.docker.io:443"),
        ("localhost/web", "localhost:443"),
        ("quay.io/team/web", "quay.io:443"),
    ],
)
def test_a_repository_is_asked_for_where_runtimes_pull_it(
    tmp_path: Path, name: str, asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A proxy on loopback that never answers sees whom the client wants to reach.
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.getsockname()[1]}")
        for variable in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(variable, raising=False)
        with pytest.raises(RegistryError, match=r": no answer within 0.5 s$"):
            list_tags(name, access(tmp_path, timeout=0.5))
        proxy.settimeout(5)
        connection, _ = proxy.accept()
        with connection:
            assert connection.recv(100).startswith(f"CONNECT {asked} ".encode())


def test_a_token_service_that_is_not_there_is_named(tmp_path: Path) -> None:
    behaviour = Behaviour({"library/web": ["1.0.0"]}, login="token", realm="http://auth.invalid/token")
    with serving(behaviour) as registry:
        fault = fault_of(registry, access(tmp_path))
    assert fault == "it leads to auth.invalid: there is no host of this name"
