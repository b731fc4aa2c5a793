"""`render policy --registry` against a docker-registry on loopback: `docker-registry` of Debian, or the binary that
RENDER_DOCKER_REGISTRY names.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("oras")

from tests.distribution import USER, Behaviour, docker_config, serving
from tests.project import PLATFORM, Project, project
from tests.test_cli_policy import run

PROGRAM = os.environ.get("RENDER_DOCKER_REGISTRY") or shutil.which("docker-registry")
OPENSSL = shutil.which("openssl")
pytestmark = pytest.mark.skipif(not PROGRAM, reason="docker-registry is not installed")
needs_openssl = pytest.mark.skipif(not OPENSSL, reason="openssl is not installed")

TAGS = [f"{major}.{minor}.{patch}" for major in (1, 2) for minor in range(50) for patch in range(25)]
# `s3cret:with:colons`, by bcrypt, which is all that this registry takes.
HTPASSWD = f"{USER}:$2b$04$821g9SdsPXuPinNj3Vc4e.dQbrIJImS25dLidl.bpAwX9z4t/FX.u\n"


def free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])


@contextlib.contextmanager
def registry(folder: Path, http: dict[str, Any] | None = None, auth: dict[str, Any] | None = None) -> Iterator[str]:
    """Run the registry with 2,500 tags in `library/web`, and give its address."""
    port = free_port()
    tags = folder / "data/docker/registry/v2/repositories/library/web/_manifests/tags"
    for tag in TAGS:
        # As the registry's own `filesystem` driver lays them out.
        (tags / tag / "current").mkdir(parents=True)
        (tags / tag / "current/link").write_text(f"sha256:{'0' * 64}")
    config = {
        "version": 0.1,
        "log": {"level": "error", "accesslog": {"disabled": True}},
        "storage": {"filesystem": {"rootdirectory": str(folder / "data")}},
        "http": {"addr": f"127.0.0.1:{port}", **(http or {})},
        **({"auth": auth} if auth else {}),
    }
    (folder / "config.yml").write_text(json.dumps(config))
    with (folder / "log").open("wb") as log:
        command = [str(PROGRAM), "serve", str(folder / "config.yml")]
        process = subprocess.Popen(command, stdout=log, stderr=log, env={"OTEL_TRACES_EXPORTER": "none"})
    try:
        for _ in range(200):
            assert process.poll() is None, (folder / "log").read_text()
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            time.sleep(0.05)
        yield f"127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(20)


def catalog(folder: Path, host: str, *, insecure: bool = True) -> Project:
    service = f"""\
name: web
source:
  image: {host}/library/web:1.0.0
  chart: {{url: "oci://charts.example.org/web", version: "1.0.0"}}
update: {{range: 1.x}}
"""
    credentials = f"registries:\n  credentials: [{{registry: '{host}', insecure: {str(insecure).lower()}}}]\n"
    return project(
        folder, {"catalog/web.yaml": service, "platform.yaml": PLATFORM.replace("registries:\n", credentials)}
    )


def told(made: Project, *arguments: str) -> str:
    """Return the choice and the first tags with each fate, or the error, as text."""
    ran = run(made, "web", "--registry", "--format", "json", *arguments)
    assert ran.err == ""
    (answer,) = json.loads(ran.out)["policies"]
    assert ran.code == (answer["selected"] is None)
    if answer["error"]:
        return str(answer["error"])
    return f"{answer['selected']} of {len(answer['candidates'])} and {len(answer['rejected'])}"


@pytest.fixture(autouse=True)
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of Docker's configuration."""
    (tmp_path / "docker").mkdir()
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "docker"))
    return tmp_path / "docker"


CHOSEN = "1.49.24 of 1250 and 1250"


def test_2500_tags_are_judged_over_plain_http_where_the_platform_allows_it(tmp_path: Path) -> None:
    with registry(tmp_path) as host:
        assert told(catalog(tmp_path, host)) == CHOSEN
        fault = told(catalog(tmp_path, host, insecure=False))
    assert fault == (
        f"{host}: it does not speak TLS as it should; "
        "plain HTTP needs `insecure` in the platform's `registries.credentials`"
    )


def test_the_pages_of_a_registry_that_gives_pages_are_joined(tmp_path: Path) -> None:
    # This release gives all tags at once, so a front cuts its list.
    with registry(tmp_path) as host:
        with urllib.request.urlopen(f"http://{host}/v2/library/web/tags/list") as answer:
            listed = json.load(answer)["tags"]
        assert sorted(listed) == sorted(TAGS)
        with serving(Behaviour({"library/web": listed}, page=100)) as front:
            assert told(catalog(tmp_path, front.host)) == CHOSEN
    assert len(front.behaviour.seen) == 1 + 25


def test_an_unknown_repository_is_named_in_the_words_of_the_registry(tmp_path: Path) -> None:
    with registry(tmp_path) as host:
        made = catalog(tmp_path, host)
        service = made.folder / "catalog/web.yaml"
        service.write_text(service.read_text().replace("library/web", "library/none"))
        assert told(made) == f"{host}: it has no repository `library/none` (repository name not known to registry)"


def test_htpasswd_takes_the_login_of_the_docker_configuration(tmp_path: Path, docker: Path) -> None:
    (tmp_path / "htpasswd").write_text(HTPASSWD)
    auth = {"htpasswd": {"realm": "here", "path": str(tmp_path / "htpasswd")}}
    with registry(tmp_path, auth=auth) as host:
        made = catalog(tmp_path, host)
        refused = (
            f"{host}: it refuses `library/web` with 401 Unauthorized (authentication required); "
            f"`docker login` keeps logins in {docker}/config.json"
        )
        assert told(made) == refused
        (docker / "config.json").write_text(docker_config(host, password="wrong"))
        assert told(made) == refused
        (docker / "config.json").write_text(docker_config(host))
        assert told(made) == CHOSEN


def openssl(folder: Path, *arguments: str, stdin: bytes = b"") -> bytes:
    return subprocess.run([str(OPENSSL), *arguments], cwd=folder, input=stdin, capture_output=True, check=True).stdout


def certificate(folder: Path) -> dict[str, Any]:
    """Make a certificate of loopback that is its own authority, and return the registry's settings for it."""
    name = ("-subj", "/CN=loopback", "-addext", "subjectAltName=IP:127.0.0.1")
    openssl(
        folder,
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-keyout",
        "key.pem",
        "-out",
        "ca.pem",
        *name,
    )
    return {"tls": {"certificate": str(folder / "ca.pem"), "key": str(folder / "key.pem")}}


@needs_openssl
def test_tls_needs_the_authority_and_then_a_login(tmp_path: Path, docker: Path) -> None:
    (tmp_path / "htpasswd").write_text(HTPASSWD)
    auth = {"htpasswd": {"realm": "here", "path": str(tmp_path / "htpasswd")}}
    with registry(tmp_path, http=certificate(tmp_path), auth=auth) as host:
        (docker / "config.json").write_text(docker_config(host))
        made = catalog(tmp_path, host, insecure=False)
        assert told(made) == (
            f"{host}: its certificate is not trusted: self-signed certificate; give its authority by --ca-file"
        )
        assert told(made, "--ca-file", str(tmp_path / "ca.pem")) == CHOSEN
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "ca.pem"))
            assert told(made) == CHOSEN
        (docker / "config.json").unlink()
        assert told(made, "--ca-file", str(tmp_path / "ca.pem")).startswith(
            f"{host}: it refuses `library/web` with 401 Unauthorized"
        )


@needs_openssl
def test_a_certificate_of_another_host_is_not_trusted(tmp_path: Path) -> None:
    with registry(tmp_path, http=certificate(tmp_path)) as host:
        made = catalog(tmp_path, f"localhost:{host.partition(':')[2]}", insecure=False)
        fault = told(made, "--ca-file", str(tmp_path / "ca.pem"))
    assert "its certificate is not trusted: Hostname mismatch" in fault


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def signed_token(folder: Path) -> str:
    """Return a token that lets its bearer pull `library/web`, signed with the key of the certificate."""
    der = base64.b64encode(openssl(folder, "x509", "-in", "ca.pem", "-outform", "DER")).decode()
    claims = {
        "iss": "tests",
        "sub": USER,
        "aud": "here",
        "exp": int(time.time()) + 600,
        "nbf": int(time.time()) - 600,
        "iat": int(time.time()),
        "jti": "1",
        "access": [{"type": "repository", "name": "library/web", "actions": ["pull"]}],
    }
    parts = [encoded(json.dumps(part).encode()) for part in ({"typ": "JWT", "alg": "RS256", "x5c": [der]}, claims)]
    text = ".".join(parts)
    return f"{text}.{encoded(openssl(folder, 'dgst', '-sha256', '-sign', 'key.pem', stdin=text.encode()))}"


def token_auth(folder: Path, service: str) -> dict[str, Any]:
    """Return the registry's settings for tokens of a service on loopback, signed with the certificate's key."""
    realm = {"realm": f"http://{service}/token", "service": "here", "issuer": "tests"}
    return {"token": {**realm, "rootcertbundle": str(folder / "ca.pem")}}


@needs_openssl
def test_a_token_service_is_asked_with_the_login(tmp_path: Path, docker: Path) -> None:
    certificate(tmp_path)
    with (
        serving(Behaviour(login="token", token=signed_token(tmp_path))) as service,
        registry(tmp_path, auth=token_auth(tmp_path, service.host)) as host,
    ):
        made = catalog(tmp_path, host)
        assert told(made).startswith(f"{host}: it refuses `library/web` with 401 Unauthorized (no such reader)")
        (docker / "config.json").write_text(docker_config(host))
        assert told(made) == CHOSEN
    assert service.behaviour.seen[-1][0] == "/token?service=here&scope=repository%3Alibrary%2Fweb%3Apull"


@needs_openssl
def test_a_registry_with_tls_cannot_have_a_login_sent_in_the_clear(tmp_path: Path, docker: Path) -> None:
    tls = certificate(tmp_path)
    with (
        serving(Behaviour(login="token", token=signed_token(tmp_path))) as service,
        registry(tmp_path, http=tls, auth=token_auth(tmp_path, service.host)) as host,
    ):
        (docker / "config.json").write_text(docker_config(host))
        fault = told(catalog(tmp_path, host, insecure=False), "--ca-file", str(tmp_path / "ca.pem"))
    assert fault == (
        f"{host}: it leads to plain HTTP, which needs `insecure` in the platform's `registries.credentials`"
    )
    assert service.behaviour.seen == []
