"""Tokens that users log in with, from a file that may change at run time."""

from __future__ import annotations

import hashlib
import hmac
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from odradek.endpoints import WatchedFiles
from odradek.plugin import ConfigError
from odradek_console.table_file import read_tables, warn_of_readers
from odradek_console.web.users import LOCAL, Login, Role, is_name

log = logging.getLogger(__name__)

LEAST_TOKEN: Final = 20
"""Characters of a token. Shorter ones can be guessed."""
MOST_TOKENS: Final = 1_000
DIGEST: Final = re.compile(r"[0-9a-fA-F]{64}")
TOKEN: Final = re.compile(rf"[ -~]{{{LEAST_TOKEN},}}")
KEYS: Final = ("name", "role", "sha256", "token")


@dataclass(frozen=True, slots=True)
class Token(Login):
    """A token, known by its digest."""

    digest: bytes


class TokenFile:
    """The tokens of a file. A change is noticed by the next request; a file that is wrong changes nothing.

    Args:
        path: The file.

    Raises:
        ConfigError: The file is not usable.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.watched = WatchedFiles([path])
        self.watched.changed()
        self.tokens = read_tokens(path)

    def find(self, text: str) -> Token | None:
        """The token that a user has sent; None if there is no such token.

        The time that this takes depends neither on the characters of the text nor on which token it is. A
        short text is never one, even if the file has its digest: it could be guessed.
        """
        self.refresh()
        if len(text) < LEAST_TOKEN:
            return None
        sent = hashlib.sha256(text.encode("utf-8", "replace")).digest()
        found = None
        for token in self.tokens.values():
            if hmac.compare_digest(token.digest, sent):
                found = token
        return found

    def current(self, token: Token) -> Token | None:
        """The token of the same digest as it is in the file now; None if it is no longer there."""
        self.refresh()
        return self.tokens.get(token.digest)

    def refresh(self) -> None:
        """Read the file again if it has changed."""
        if self.watched.changed():
            try:
                self.tokens = read_tokens(self.path)
            except ConfigError as error:
                log.warning("tokens not renewed, using the last good ones", extra={"problem": str(error)})


def read_tokens(path: Path) -> Mapping[bytes, Token]:
    """The tokens of a file, by digest.

    Raises:
        ConfigError: The file is not usable. The message never shows a token.
    """
    found: dict[bytes, Token] = {}
    is_secret = False
    for place, row in read_tables(path, "token", MOST_TOKENS, KEYS):
        token = read_token(place, row)
        if token.digest in found:
            raise ConfigError(place, "expected a token of its own")
        found[token.digest] = token
        is_secret |= "token" in row
    if is_secret:
        warn_of_readers(path, "tokens", "use sha256, or chmod 600")
    return found


def read_token(place: str, row: Mapping[str, Any]) -> Token:
    """A token from its table.

    Raises:
        ConfigError: A key is missing or wrong.
    """
    name, role = row.get("name"), row.get("role")
    if not isinstance(name, str) or not is_name(name) or name == LOCAL:
        raise ConfigError(f"{place}.name", f"expected a printable name other than {LOCAL}")
    if role not in list(Role):
        raise ConfigError(f"{place}.role", f"expected {' or '.join(Role)}")
    return Token(name, Role(role), digest_of(place, row))


def digest_of(place: str, row: Mapping[str, Any]) -> bytes:
    """The digest of a token.

    Raises:
        ConfigError: There is not exactly one of ``token`` and ``sha256``, or it is wrong.
    """
    token, sha256 = row.get("token"), row.get("sha256")
    if (token is None) == (sha256 is None):
        raise ConfigError(place, "expected either token or sha256")
    if sha256 is not None:
        if not isinstance(sha256, str) or not DIGEST.fullmatch(sha256):
            raise ConfigError(f"{place}.sha256", "expected 64 hexadecimal digits")
        return bytes.fromhex(sha256)
    if not isinstance(token, str) or not TOKEN.fullmatch(token):
        raise ConfigError(f"{place}.token", f"expected at least {LEAST_TOKEN} printable ASCII characters")
    return hashlib.sha256(token.encode()).digest()
