"""Text that is to be shown in, the same text without secrets out."""

from __future__ import annotations

import re

_CREDENTIAL = re.compile(
    r"""(?ix) (?<![\w.-]) (["']?[\w.-]*
    (?:passw(?:or)?d|passphrase|token|secret[_-]?key|api[_-]?key|private[_-]?key|credentials?)["']?
    \s*:\s*) (?![|>&*{\[]|$) (?!["']?\s*$) .+ """
)
_SOPS = re.compile(r"ENC\[[^\]]*\]?")
_SECRET_KIND = re.compile(r"^kind: [\"']?Secret[\"']?\s*$", re.MULTILINE)
_SECRET_DATA = re.compile(r"^(?:data|stringData):\n(?:[ #-].*\n|\n)*", re.MULTILINE)
_VALUE = re.compile(r"^( +[^:\n]+:).*\n(?:   +.*\n|\n)*", re.MULTILINE)


def redact_line(line: str) -> str:
    """Blank what looks like a credential, or is a SOPS value, in one line."""
    return _SOPS.sub("…", _CREDENTIAL.sub(r"\1…", line))


def has_credential(line: str) -> bool:
    """Whether a line gives a credential a value."""
    return _CREDENTIAL.search(line) is not None


def redact(text: str) -> str:
    """Blank the data of Secrets, and every credential, in a rendered file."""
    documents = text.split("\n---\n")
    for index, document in enumerate(documents):
        if _SECRET_KIND.search(document):
            documents[index] = _SECRET_DATA.sub(lambda data: _VALUE.sub(r"\1 …\n", data.group()), document + "\n")[:-1]
    return "\n".join(redact_line(line) for line in "\n---\n".join(documents).split("\n"))
