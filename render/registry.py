"""A repository in a container registry in, its tags out, over the OCI distribution API.

The client is the one of the ORAS project; here it learns what it lacks: time limits, errors of one line, CA files
beside the trusted ones, plain HTTP only where it is allowed, and registries that take a password, not a token.
"""

from __future__ import annotations

import inspect
import json
import socket
import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import requests
from oras.container import Container  # type: ignore[import-untyped, import-not-found, unused-ignore]
from oras.provider import Registry  # type: ignore[import-untyped, import-not-found, unused-ignore]
from requests.adapters import HTTPAdapter
from requests.utils import DEFAULT_CA_BUNDLE_PATH

from render.dockerconfig import DockerConfig, DockerConfigError
from render.flux.image import DOCKER_HUB, canonical_name
from render.patterns import lazy
from render.redact import printable
from render.structs import field, struct

HUB_API = "registry-1.docker.io"
"""Where docker.io answers."""
PAGE = 1000
"""Tags asked for at once, as image-reflector-controller's client does; a registry may give fewer."""
_TAG = lazy(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_MESSAGE = 200
# The client repeats what failed, for more than two minutes; what lies below repeats nothing.
_request_once = inspect.unwrap(Registry.do_request)


class RegistryError(Exception):
    """Why the tags of a repository are not known: one line, lower case, no full stop."""


def trusted(ca_file: Path | None = None) -> ssl.SSLContext:
    """Return what is trusted: the system's certificates, those of the client, a file's; raise RegistryError."""
    made = ssl.create_default_context()
    made.load_verify_locations(DEFAULT_CA_BUNDLE_PATH)
    if ca_file is not None:
        try:
            made.load_verify_locations(ca_file)
        except FileNotFoundError as error:
            raise RegistryError(f"there is no file {ca_file}") from error
        except (OSError, ValueError) as error:
            raise RegistryError(f"{ca_file} holds no certificates in PEM") from error
    return made


@struct(frozen=True)
class Access:
    """How registries are asked; for many threads."""

    config: DockerConfig
    timeout: float = 30.0
    """Seconds for all requests about one repository."""
    trust: ssl.SSLContext = field(default_factory=trusted)


def list_tags(repository: str, access: Access, *, insecure: bool = False) -> list[str]:
    """Return the tags of a repository as its registry lists them; raise RegistryError.

    `repository` may be short (`redis`); `insecure` has the registry asked over plain HTTP, also for its login.
    """
    registry, _, path = canonical_name(repository).partition("/")
    try:
        with _Client(registry, path, access, insecure=insecure) as client:
            return client.tags()
    except RegistryError as error:
        raise RegistryError(printable(f"{registry}: {error}")) from error


class _Repository(Container):  # type: ignore[misc]
    """A repository whose tags are asked for in pages of a known size."""

    def tags_url(self, N: int | None = None) -> str:  # noqa: N803  # the client's name
        return str(super().tags_url(N or PAGE))


class _Client(Registry):  # type: ignore[misc]
    """Asks one registry about one repository."""

    def __init__(self, registry: str, path: str, access: Access, *, insecure: bool) -> None:
        host = HUB_API if registry == DOCKER_HUB else registry
        # The client takes what has neither a dot nor a port for a part of the path.
        host = host if "." in host or ":" in host else f"{host}:{80 if insecure else 443}"
        super().__init__(hostname=host, insecure=insecure)
        self.registry, self.host, self.access = registry, host, access
        self.repository = _Repository(f"{host}/{path}")
        self.note = ""
        """What is wrong with the login, told where the registry asks for one."""
        self.asked: set[str] = set()
        self.last: requests.Response | None = None
        adapter = _Adapter(access)
        self.session.mount("https://", adapter)
        if insecure:
            self.session.mount("http://", adapter)
        else:
            del self.session.adapters["http://"]
        # Otherwise `~/.netrc` would take the place of the token.
        self.session.auth = _unchanged
        self.session.hooks["response"].append(self._keep)

    def __enter__(self) -> _Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.session.close()

    def tags(self) -> list[str]:
        """Return all tags of the repository; raise RegistryError."""
        try:
            self._log_in()
            return list(dict.fromkeys(self.get_tags(self.repository)))
        except requests.RequestException as error:
            raise RegistryError(f"{self._elsewhere(error)}{_reason(error, self.access.timeout)}") from error
        except (ValueError, TypeError, AttributeError, LookupError, OSError) as error:
            # The client trusts the form of what a registry sends, and tells a refusal by a ValueError.
            is_refused = self.last is not None and not self.last.ok
            told = self._told(self.last) if is_refused and self.last is not None else "its answer is not understood"
            raise RegistryError(told) from error

    def _log_in(self) -> None:
        """Ask for the tags as anybody, and prepare for the login that the registry asks for."""
        response = self.session.get(f"{self.prefix}://{self.repository.tags_url(1)}")
        if response.status_code != requests.codes.unauthorized:
            return
        try:
            login = self.access.config.login(self.registry)
        except DockerConfigError as error:
            login, self.note = None, str(error)
        if response.headers.get("Www-Authenticate", "").lower().startswith("basic"):
            if login is None:
                raise RegistryError(self._refused(response))
            self.session.auth = (login.username, login.password)
        elif login is not None:
            self.auth.set_basic_auth(login.username, login.password)

    def _elsewhere(self, error: requests.RequestException) -> str:
        """Name the host that was asked, where it is not the registry itself."""
        asked = urlsplit(getattr(error.request, "url", None) or "").netloc
        return "" if asked in ("", self.host) else f"it leads to {asked}: "

    def do_request(self, url: str, *arguments: Any, **options: Any) -> requests.Response:
        """Ask for one page once; only an answer that is a page is returned."""
        parts = urlsplit(url)
        # Behind a proxy some registries name the next page by a host or a scheme that is not theirs.
        path = parts.path if parts.path.strip("/") else f"/v2/{self.repository.api_prefix}/tags/list"
        url = urlunsplit((self.prefix, self.host, path, parts.query, ""))
        if url in self.asked:
            raise RegistryError("its list of tags leads back to a page that it gave before")
        self.asked.add(url)
        # The client answers every challenge by asking for a token.
        takes_token = self.session.auth is _unchanged
        response: requests.Response = (
            _request_once(self, url, *arguments, **options) if takes_token else self.session.get(url)
        )
        if response.status_code != requests.codes.ok:
            raise RegistryError(self._told(response))
        _check_page(response)
        return response

    def _keep(self, response: requests.Response, **_: Any) -> None:
        self.last = response

    def _told(self, response: requests.Response) -> str:
        if response.status_code in (requests.codes.unauthorized, requests.codes.forbidden):
            return self._refused(response)
        if response.status_code == requests.codes.not_found:
            return f"it has no repository `{self.repository.api_prefix}`{_message(response)}"
        return f"it answers {_status(response)}{_message(response)}"

    def _refused(self, response: requests.Response) -> str:
        what = f"it refuses `{self.repository.api_prefix}` with {_status(response)}{_message(response)}"
        return f"{what}; {self.note or f'`docker login` keeps logins in {self.access.config.path}'}"


class _Adapter(HTTPAdapter):
    """Ends all requests about a repository at one time, and checks certificates by one context for all."""

    def __init__(self, access: Access) -> None:
        self.trust = access.trust
        super().__init__()
        self.end = time.monotonic() + access.timeout

    def init_poolmanager(self, *arguments: Any, **options: Any) -> None:
        super().init_poolmanager(*arguments, ssl_context=self.trust, **options)  # type: ignore[no-untyped-call, unused-ignore]

    def proxy_manager_for(self, *arguments: Any, **options: Any) -> Any:
        return super().proxy_manager_for(*arguments, ssl_context=self.trust, **options)

    def cert_verify(self, conn: Any, url: Any, verify: Any, cert: Any) -> None:
        if verify is not True:
            # A file that `REQUESTS_CA_BUNDLE` names.
            super().cert_verify(conn, url, verify, cert)  # type: ignore[no-untyped-call, unused-ignore]
        conn.cert_reqs = "CERT_REQUIRED"

    def send(self, request: requests.PreparedRequest, *arguments: Any, **options: Any) -> requests.Response:
        left = self.end - time.monotonic()
        if left <= 0:
            raise requests.Timeout
        return super().send(request, *arguments, **options | {"timeout": left})


def _unchanged(request: requests.PreparedRequest) -> requests.PreparedRequest:
    return request


def _check_page(response: requests.Response) -> None:
    try:
        page = response.json()
    except (ValueError, RecursionError) as error:
        raise RegistryError("the answer is not JSON, so it is no registry, or not its address") from error
    tags = page.get("tags") or [] if isinstance(page, dict) else None
    if not isinstance(tags, list) or not all(isinstance(tag, str) and _TAG.fullmatch(tag) for tag in tags):
        raise RegistryError("the answer is no list of tags")


def _status(response: requests.Response) -> str:
    return f"{response.status_code} {response.reason or ''}".rstrip()


def _message(response: requests.Response) -> str:
    """Return the registry's own words."""
    try:
        first = json.loads(response.content)["errors"][0]
        text = str(first.get("message") or first.get("code") or "")
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return ""
    return f" ({text[:_MESSAGE]})" if text else ""


def _reason(error: requests.RequestException, timeout: float) -> str:
    """Say in a few words why there is no answer."""
    causes = list(_causes(error))
    if isinstance(error, requests.Timeout):
        return f"no answer within {timeout:g} s"
    if isinstance(error, requests.exceptions.InvalidSchema):
        return "it leads to plain HTTP, which needs `insecure` in the platform's `registries.credentials`"
    if isinstance(error, requests.exceptions.SSLError):
        found = next((one for one in causes if isinstance(one, ssl.SSLCertVerificationError)), None)
        if found is not None:
            return f"its certificate is not trusted: {found.verify_message}; give its authority by --ca-file"
        return (
            "it does not speak TLS as it should; plain HTTP needs `insecure` in the platform's `registries.credentials`"
        )
    if isinstance(error, requests.exceptions.ProxyError):
        return "the proxy does not connect to it"
    if any(isinstance(one, socket.gaierror) for one in causes):
        return "there is no host of this name"
    refused = next((one for one in causes if isinstance(one, OSError) and one.errno), None)
    if refused is not None:
        return str(refused.strerror).lower()
    if isinstance(error, requests.exceptions.JSONDecodeError):
        return "the answer is not JSON, so it is no registry, or not its address"
    return f"the request fails ({type(error).__name__})"


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Give the exceptions below one, whichever way they are linked."""
    waiting: list[Any] = [error]
    seen: set[int] = set()
    while waiting:
        one = waiting.pop(0)
        if not isinstance(one, BaseException) or id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        waiting += [one.__cause__, one.__context__, getattr(one, "reason", None), *one.args]
