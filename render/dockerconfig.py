"""A Docker configuration file and a registry's host in, the login for that host out."""

from __future__ import annotations

import base64
import binascii
import json
import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HUB = frozenset({"docker.io", "index.docker.io", "registry-1.docker.io"})
"""Names of one registry; `docker login` files it under `https://index.docker.io/v1/`."""
_HUB_KEY = "https://index.docker.io/v1/"
_HELPER_SECONDS = 15
_TOKEN_USER = "<token>"  # noqa: S105  # what a helper answers as the name for an identity token


class DockerConfigError(ValueError):
    """A configuration that cannot be read, or a login that cannot be used."""


@dataclass(frozen=True, slots=True)
class Login:
    """A name and a password."""

    username: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class DockerConfig:
    """What `docker login` keeps."""

    path: Path
    data: dict[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def read(cls, folder: Path | None = None) -> DockerConfig:
        """Read `config.json` of a folder, by default `$DOCKER_CONFIG`, else `~/.docker`; a missing one is empty."""
        path = (folder or Path(os.environ.get("DOCKER_CONFIG") or Path("~/.docker").expanduser())) / "config.json"
        try:
            data = json.loads(path.read_bytes())
        except (FileNotFoundError, NotADirectoryError):
            return cls(path)
        except OSError as error:
            raise DockerConfigError(f"cannot read {path}: {error.strerror}") from error
        except (ValueError, RecursionError) as error:
            raise DockerConfigError(f"{path} is not JSON") from error
        if not isinstance(data, dict):
            raise DockerConfigError(f"{path} holds no JSON object")
        return cls(path, data)

    def login(self, host: str) -> Login | None:
        """Return the login for a registry (`host[:port]`), None where there is none.

        As in Docker a helper for the host comes before the one for all, and that before what the file holds.
        """
        names = (_HUB_KEY, *sorted(HUB)) if host in HUB else (host,)
        helpers = self._mapping("credHelpers")
        helper = next((helpers[name] for name in names if name in helpers), self.data.get("credsStore"))
        if helper:
            found = self._ask(str(helper), names[0])
            if found is not None:
                return found
        entries = self._mapping("auths")
        entry = next((entries[name] for name in names if name in entries), None)
        if entry is None:
            hosts = {_host(key): value for key, value in entries.items()}
            entry = next((hosts[name] for name in names if name in hosts), None)
        return self._stored(host, entry) if isinstance(entry, dict) else None

    def _mapping(self, key: str) -> dict[str, Any]:
        found = self.data.get(key)
        return found if isinstance(found, dict) else {}

    def _stored(self, host: str, entry: dict[str, Any]) -> Login | None:
        encoded = entry.get("auth")
        if encoded:
            try:
                username, colon, password = base64.b64decode(str(encoded), validate=True).decode().partition(":")
            except (binascii.Error, UnicodeDecodeError) as error:
                raise DockerConfigError(f"{self.path}: `auth` of `{host}` is not Base64") from error
            if not colon:
                raise DockerConfigError(f"{self.path}: `auth` of `{host}` holds no name and password")
            return self._usable(host, username, password.rstrip("\0"))
        if entry.get("username"):
            return self._usable(host, str(entry["username"]), str(entry.get("password") or ""))
        return None

    def _usable(self, host: str, username: str, password: str) -> Login:
        if username == _TOKEN_USER:
            raise DockerConfigError(f"{self.path} has an identity token for `{host}`, which is not supported")
        return Login(username, password)

    def _ask(self, helper: str, name: str) -> Login | None:
        """Ask `docker-credential-HELPER`; None when it has no such login."""
        program = f"docker-credential-{helper}"
        try:
            ran = subprocess.run(  # noqa: S603  # the person's own configuration names the program
                [program, "get"], input=name.encode(), capture_output=True, timeout=_HELPER_SECONDS, check=False
            )
        except OSError as error:
            raise DockerConfigError(f"cannot run `{program}`, which {self.path} names: {error.strerror}") from error
        except subprocess.TimeoutExpired as error:
            raise DockerConfigError(f"`{program}` did not answer within {_HELPER_SECONDS} s") from error
        if ran.returncode != 0:
            return None
        try:
            answer = json.loads(ran.stdout)
            username, password = str(answer["Username"]), str(answer["Secret"])
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise DockerConfigError(f"`{program}` answered with no `Username` and `Secret`") from error
        return self._usable(name, username, password) if username else None


def _host(key: str) -> str:
    """Return the host of a key as old versions wrote it: `https://registry.example/v1/`."""
    return key.removeprefix("https://").removeprefix("http://").partition("/")[0]
