"""A registry of the distribution API on loopback: what it serves and how it behaves in, requests seen out.

    with serving(Behaviour(tags={"library/web": ["1.0.0"]})) as registry:
        ... registry.host ...

It speaks HTTP as RFC 9110 and the distribution specification say: pages by `n` and `last` with a `Link`, and logins by
password or by a token from its own token service.
"""

from __future__ import annotations

import base64
import contextlib
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

USER, PASSWORD = "reader", "s3cret:with:colons"
TOKEN = "token-of-the-reader"


@dataclass
class Behaviour:
    """What the registry holds, and what is odd about it."""

    tags: dict[str, list[str]] = field(default_factory=dict)
    login: str = ""
    """`basic`, or `token`, or `anonymous`: a token is needed and given to anybody; `empty`: a challenge of no form."""
    page: int = 1000
    """Tags in a page at most."""
    link: str = "{path}?{query}"
    """Form of the next page's address."""
    realm: str = "http://{host}/token"
    token: str = TOKEN
    answers: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    """Status and body instead of a list, by repository."""
    slow: float = 0.0
    """Seconds before each answer."""
    open_at_once: int = 0
    """The most requests that were waiting together."""
    seen: list[tuple[str, str]] = field(default_factory=list)
    """Path with query, and `Authorization`, of each request."""


@dataclass(frozen=True)
class Registry:
    """A running registry."""

    host: str
    behaviour: Behaviour


@contextlib.contextmanager
def serving(behaviour: Behaviour) -> Iterator[Registry]:
    """Serve on a free port of loopback until the block ends."""
    lock, waiting = threading.Lock(), [0]

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = 1 << 16  # or each answer waits for the acknowledgement of its head

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            del format, args

        def do_GET(self) -> None:
            with lock:
                waiting[0] += 1
                behaviour.open_at_once = max(behaviour.open_at_once, waiting[0])
                behaviour.seen.append((self.path, self.headers.get("Authorization") or ""))
            time.sleep(behaviour.slow)
            with lock:
                waiting[0] -= 1
            if self.path.startswith("/token"):
                self.token()
            elif self.admitted():
                self.listing()

        def answer(self, status: int, body: bytes | dict[str, Any], **headers: str) -> None:
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            with contextlib.suppress(OSError):
                self.wfile.write(content)

        def token(self) -> None:
            is_known = behaviour.login == "anonymous" or self.headers.get("Authorization") == _basic()
            error = {"errors": [{"code": "UNAUTHORIZED", "message": "no such reader"}]}
            self.answer(*((200, {"token": behaviour.token}) if is_known else (401, error)))

        def admitted(self) -> bool:
            given = self.headers.get("Authorization")
            wanted = _basic() if behaviour.login == "basic" else f"Bearer {behaviour.token}"
            if not behaviour.login or given == wanted:
                return True
            realm = behaviour.realm.format(host=host)
            challenge = {
                "basic": 'Basic realm="Registry Realm"',
                "empty": "Bearer",
            }.get(behaviour.login, f'Bearer realm="{realm}",service="here",scope="repository:library/web:pull"')
            error = {"errors": [{"code": "UNAUTHORIZED", "message": "authentication required"}]}
            self.answer(401, error, WWW_Authenticate=challenge)
            return False

        def listing(self) -> None:
            parts = urlsplit(self.path)
            name = parts.path.removeprefix("/v2/").removesuffix("/tags/list")
            if name in behaviour.answers:
                self.answer(*behaviour.answers[name])
                return
            if name not in behaviour.tags:
                error = {"errors": [{"code": "NAME_UNKNOWN", "message": "repository name not known to registry"}]}
                self.answer(404, error)
                return
            query = parse_qs(parts.query)
            size = min(int(query["n"][0]), behaviour.page)
            tags = sorted(behaviour.tags[name])
            rest = [tag for tag in tags if tag > query.get("last", [""])[0]]
            headers = {}
            if len(rest) > size:
                link = behaviour.link.format(path=parts.path, query=f"n={size}&last={rest[size - 1]}", host=host)
                headers["Link"] = f'<{link}>; rel="next"'
            self.answer(200, {"name": name, "tags": rest[:size]}, **headers)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    host = f"127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield Registry(host, behaviour)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _basic() -> str:
    return "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()


def docker_config(host: str, username: str = USER, password: str = PASSWORD) -> str:
    """Return the text of a `config.json` with one login."""
    auth = base64.b64encode(f"{username}:{password}".encode()).decode()
    return json.dumps({"auths": {host: {"auth": auth}}})
