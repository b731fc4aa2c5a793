"""The platform file in, what the image bot's write credential needs out: a Secret, a SOPS rule and a patch.

All of it is text for people to fill in, and none of it holds a secret. The Secret that lies in the tree is checked: it
must be encrypted, and something must decrypt it.
"""

from __future__ import annotations

import re

from render.catalog import shown_path
from render.diagnostics import Diagnostic, Location
from render.yaml.emit import Emitter
from render.yaml.source import Mapping, Node, decode, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from render.model.platform import Platform

FOLDER = "platform/image-automation"
FILE = "git.sops.yaml"
"""The file's name where the platform file names none."""
PARTS = ("secret", "rule", "patch")


def path_in_repository(platform: Platform) -> str:
    """Return where the Secret's file lies, from the top of the repository."""
    name = platform.image_automation.secret_file or FILE
    return "/".join(part for part in (*platform.root.split("/"), FOLDER, name) if part not in ("", "."))


def text_of(part: str, platform: Platform, *, ssh: bool = False) -> str:
    """Return one of `PARTS` as YAML under a comment that says what to do with it."""
    if part == "secret":
        return _secret(platform, ssh=ssh)
    return _rule(platform) if part == "rule" else _patch(platform)


def _names(platform: Platform) -> tuple[str, str, str]:
    """Return the namespace and the name of the GitRepository, and the name of its Secret."""
    source = platform.flux.source
    return source.namespace or platform.flux.namespace, source.name, f"{source.name}-write"


def _commented(comment: str, fields: dict[str, Any]) -> str:
    return "".join(f"# {line}\n" for line in comment.splitlines()) + Emitter().fields("", fields)


def _secret(platform: Platform, *, ssh: bool) -> str:
    namespace, _, secret = _names(platform)
    keys = ("identity", "identity.pub", "known_hosts") if ssh else ("username", "password")
    comment = f"""\
The Git credential of the image bot. Fill it in and encrypt it; only then commit it:
  sops encrypt --in-place {path_in_repository(platform)}"""
    fields = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": secret, "namespace": namespace},
        "stringData": dict.fromkeys(keys, ""),
    }
    return _commented(comment, fields)


def _rule(platform: Platform) -> str:
    folder = re.escape(path_in_repository(platform).rpartition("/")[0]).replace("\\-", "-")
    comment = """\
For `.sops.yaml` at the top of the repository. Put your own key in the place of `age`."""
    rule = {
        "path_regex": rf"{folder}/[^/]+\.sops\.ya?ml$",
        "encrypted_regex": "^(data|stringData)$",
        "age": "PUBLIC KEY",
    }
    return _commented(comment, {"creation_rules": [rule]})


def _patch(platform: Platform) -> str:
    namespace, name, secret = _names(platform)
    operation = Emitter().fields("", {"patch": [{"op": "add", "path": "/spec/secretRef", "value": {"name": secret}}]})
    comment = f"""\
For the kustomization.yaml beside the GitRepository {namespace}/{name}, which
`flux bootstrap` puts into gotk-sync.yaml."""
    patch = {
        "target": {
            "group": "source.toolkit.fluxcd.io",
            "kind": "GitRepository",
            "name": name,
            "namespace": namespace,
        },
        "patch": operation.removeprefix("patch:\n"),
    }
    return _commented(comment, {"patches": [patch]})


def check_file(path: str, data: bytes, platform: Platform) -> Iterator[Diagnostic]:
    """Yield what is wrong with the credential in the tree."""
    source, faults = decode(shown_path(path), data)
    documents, broken = parse(source) if not faults else ([], [])
    if faults or broken:
        yield Diagnostic(
            (faults or broken)[0].location,
            "R611",
            "the credential is no YAML that can be read",
            cause="it is listed in the kustomization, and the build of its folder would fail",
            hint="encrypt it again, from what `render write-back secret` prints",
        )
        return
    for document in documents:
        root = document.root
        if type(root) is not Mapping or root.text("kind") != "Secret":
            continue
        found = source.place(root.get("kind"))
        place = Location(found.path, found.line, found.column, found.length)
        if root.get("sops") is None:
            if _is_filled(root.get("data")) or _is_filled(root.get("stringData")):
                yield Diagnostic(
                    place,
                    "R611",
                    "the credential is not encrypted",
                    cause="whoever can read the repository could write to it",
                    hint=f"`sops encrypt --in-place {path_in_repository(platform)}`; replace the credential if it was "
                    "committed",
                )
        elif platform.flux.decryption is None:
            yield Diagnostic(
                place,
                "R612",
                "nothing decrypts the credential",
                cause="Flux refuses an encrypted Secret in a Kustomization without `decryption`",
                hint="set `flux.decryption: {provider: sops, secretRef: {name: …}}` in the platform file",
            )


def _is_filled(node: Node | None) -> bool:
    return type(node) is Mapping and bool(node.entries)
