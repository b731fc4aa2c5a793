"""Bytes in, their digests out; OpenSSL is loaded when there is much to digest.

Loading it takes as long as digesting some hundred files without it.
"""

from __future__ import annotations

from _blake2 import blake2b

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

DIGEST_SIZE = 16
"""Bytes by which a file's content is known again."""
MANY = 300
"""Digests from which on OpenSSL, which takes a fourth of the time for each, is worth its start."""

_made = 0
_sha256: Callable[[], Any] | None = None


def sha256() -> Any:
    """Return a new SHA-256 digest."""
    global _made, _sha256  # noqa: PLW0603 - the module's own state
    _made += 1
    if _sha256 is None or _made == MANY:
        _sha256 = _builtin() if _made < MANY else _openssl()
    return _sha256()


def _builtin() -> Callable[[], Any]:
    """Return Python's own SHA-256, whose module is named otherwise from 3.12 on, and which a build may leave out."""
    for name in ("_sha2", "_sha256"):
        try:
            return __import__(name).sha256  # type: ignore[no-any-return]
        except ImportError:
            continue
    return _openssl()


def _openssl() -> Callable[[], Any]:
    import hashlib

    return hashlib.sha256


def digest_of(data: bytes) -> bytes:
    """Return the digest by which the content of a file is known again."""
    return blake2b(data, digest_size=DIGEST_SIZE).digest()
