"""Text that is to be shown in, the same text without secrets and control characters out."""

from __future__ import annotations

from collections.abc import Iterator

from render.patterns import lazy

BLANK = "…"
"""Stands for what is not shown."""

_WORDS = (
    r"(?:passw(?:or)?d|passphrase|[_-](?:pass|pwd)|(?<![\w.-])pass|(?-i:[a-z]Pass)|token|credentials?"
    r"|(?:access|api|encryption|private|secret|signing)[_-]?key(?:[_-]?base)?"
    r"|(?:app|auth|client|consumer|cookie|hmac|jwt|oauth2?|session|shared|signing|webhook)[_-]?secret"
    r"|(?-i:[A-Z0-9]_SECRET))"
)
_KEY = rf"(?<![\w.-])[\"']?[\w.-]*{_WORDS}[\"']?\s*:"
_BLOCK = r"[|>][-+0-9]*\s*(?:#.*)?$"
_CREDENTIAL = lazy(rf"(?i)({_KEY}\s*+)(?![{{\[*#]|{_BLOCK}|$|[\"']{{0,2}}\s*$|&\S*\s*$).+")
_CREDENTIAL_ABOVE = lazy(rf"(?i){_KEY}\s*+(?:[&!]\S*\s*)*(?P<block>{_BLOCK})?(?:#.*)?$")
_NAMED = lazy(rf"(?i)[\"']?name[\"']?\s*:\s*[\"']?[\w.-]*(?:{_WORDS}|secret)[\"']?\s*$")
_NAMED_VALUE = lazy(r"((?:^|\s)[\"']?value[\"']?\s*:).*")
_NAMED_FLOW = lazy(rf"(?i)(\bname[\"']?\s*:\s*[\"']?[\w.-]*(?:{_WORDS}|secret)[\"']?\s*,\s*[\"']?value[\"']?\s*:\s*).+")
_USER_INFO = lazy(r"(\w://[^\s/:@\"']*:)[^\s/@\"']+@.*")
_GENERATOR = lazy(r"""( *["']?secretGenerator["']?\s*:)\s*([^\s#].*)?(?:#.*)?""")
_LITERAL = lazy(r"([^=]*[^\s=]=).+")
_SOPS = lazy(r"ENC\[[^\]]*\]?")
_SECRET_KIND = lazy(r"""(?:^|[\s{,])["']?kind["']?\s*:\s*["']?Secret["']?\s*(?:$|[\n#,}])""")
_DATA = lazy(r"""(?P<lead>\s*(?:- +)*)["']?(?:data|stringData)["']?\s*:(?P<rest>.*)""")
_INNER_DATA = lazy(r"""[{,]\s*["']?(?:data|stringData)["']?\s*:""")
_ENTRY = lazy(r"( +[^:\n]+:)(?:\s.*)?")
_NESTED = lazy(r"""\s*(?:- |-$|(?:[^\s"'#][^#]*|"[^"]*"|'[^']*'):(?:\s|$))""")
# Controls of terminals and of writing direction, what ends a line, and what UTF-8 cannot carry.
_UNPRINTABLE = lazy(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe\uffff]")


def printable(text: str) -> str:
    """Return one line of text with each character that a terminal would obey, or could not show, as `·`."""
    return text if text.isascii() and text.isprintable() else _UNPRINTABLE.sub("·", text)


def redact_line(line: str) -> str:
    """Blank what looks like a credential, or is a SOPS value, in one line."""
    for pattern in (_CREDENTIAL, _NAMED_FLOW, _USER_INFO):
        line = pattern.sub(rf"\1{BLANK}", line)
    return _SOPS.sub(BLANK, line)


def has_credential(line: str) -> bool:
    """Whether a line gives a credential a value."""
    return any(pattern.search(line) for pattern in (_CREDENTIAL, _NAMED_FLOW, _USER_INFO))


def redact(text: str) -> str:
    """Blank the data of Secrets, and every credential, in a YAML file; lines of a blanked value are left out.

    The file may be anything that lies in the tree, also one that no parser takes.
    """
    documents: list[list[str]] = [[]]
    for line in text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n"):
        if line.startswith("---"):
            documents.append([])
        documents[-1].append(line)
    made: list[str] = []
    for document in documents:
        lines: Iterator[str] = iter(document)
        if _SECRET_KIND.search("\n".join(document)):
            lines = _without_data(lines)
        made += _without_credentials(_without_literals(lines))
    return "\n".join(made)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _without_data(lines: Iterator[str]) -> Iterator[str]:
    """Blank what stands under `data` and `stringData`; all that follows them in a flow mapping."""
    inside: int | None = None
    child = 0
    for line in lines:
        if inside is not None and (not line.strip() or _indent(line) > inside):
            child = child or _indent(line)
            entry = _ENTRY.fullmatch(line) if _indent(line) == child else None
            if entry is not None:
                yield f"{entry[1]} {BLANK}"
            continue
        inside = None
        if _INNER_DATA.search(line):
            yield BLANK
            return
        start = _DATA.fullmatch(line)
        if start is None:
            yield line
        elif start["rest"].strip() and not start["rest"].lstrip().startswith("#"):
            yield line[: start.start("rest")] + f" {BLANK}"
            inside, child = len(start["lead"]), 1 << 20
        else:
            yield line
            inside, child = len(start["lead"]), 0


def _without_literals(lines: Iterator[str]) -> Iterator[str]:
    """Blank the literals of a kustomization's `secretGenerator`."""
    inside: int | None = None
    for line in lines:
        indent = _indent(line)
        if inside is not None and (indent > inside or line.startswith("- ", indent)):
            yield _LITERAL.sub(rf"\1{BLANK}", line)
            continue
        start = _GENERATOR.fullmatch(line)
        inside = indent if start else None
        yield f"{start[1]} {BLANK}" if start and start[2] else line


def _without_credentials(lines: Iterator[str]) -> Iterator[str]:
    """Blank values of keys, and of named entries (`name: X`, `value: Y`), that look like credentials."""
    inside: int | None = None
    is_open = False
    named: int | None = None
    for line in lines:
        indent = _indent(line)
        if inside is not None and (not line.strip() or indent > inside) and (is_open or not _NESTED.match(line)):
            # A block scalar or a wrapped one.
            is_open = True
            continue
        inside, is_open = None, False
        column = indent + 2 if line.lstrip().startswith("- ") else indent
        if _NAMED.search(line):
            named = column
        elif named is not None and column == named and _NAMED_VALUE.search(line):
            yield _NAMED_VALUE.sub(rf"\1 {BLANK}", line)
            inside, is_open = indent, True
            continue
        elif column < (named or 0) or line.lstrip().startswith("- "):
            named = None
        blanked = redact_line(line)
        if blanked != line and _CREDENTIAL.search(line):
            inside, is_open = indent, True
        elif above := _CREDENTIAL_ABOVE.search(line):
            inside, is_open = indent, above["block"] is not None
            blanked = f"{line} {BLANK}" if is_open else line
        yield blanked
