"""The client's message of OAUTHBEARER (RFC 7628, section 3.1) and the server's error challenge (3.2.2).

After OAuthBearerClientInitialResponse.java, with its regular expressions.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Final

SEPARATOR = "\x01"
CONTINUE: Final = b"\x01"
"""The client has read the error challenge, and ends the attempt."""
CLIENT_FIRST = re.compile(
    r"n,(?:a=(?P<authzid>(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+))?,\x01"
    r"(?P<pairs>(?:[A-Za-z]+=[\x21-\x7e \t\r\n]+\x01)*)\x01"
)
AUTHORIZATION = re.compile(r"(?P<scheme>\w+) +(?P<token>[-_~+/.a-zA-Z0-9]+=*)", re.ASCII)


class BadBearerMessage(ValueError):
    """The bytes are not a client's message."""


@dataclass(frozen=True, slots=True)
class BearerMessage:
    """``n,a=authzid,^Aauth=Bearer token^Akey=value^A^A``."""

    authorization_id: str
    """As it was sent, with its escapes; empty if the client sent none."""
    token: str

    @classmethod
    def read(cls, message: bytes) -> BearerMessage:
        """Read a message. Extensions are checked for their form, and ignored.

        Raises:
            BadBearerMessage: It has another form, or not exactly one ``auth`` with a bearer token.
        """
        try:
            found = CLIENT_FIRST.fullmatch(message.decode())
        except UnicodeDecodeError:
            raise BadBearerMessage("not UTF-8") from None
        if found is None:
            raise BadBearerMessage("not the expected message of OAUTHBEARER")
        pairs = [pair.partition("=") for pair in found["pairs"].split(SEPARATOR)[:-1]]
        values = [value for key, _, value in pairs if key == "auth"]
        if len(values) != 1:
            raise BadBearerMessage(f"expected one key auth, found {len(values)}")
        authorization = AUTHORIZATION.fullmatch(values[0])
        if authorization is None or authorization["scheme"].lower() != "bearer":
            raise BadBearerMessage("the key auth is not a bearer token")
        return cls(found["authzid"] or "", authorization["token"])


def client_first(token: str) -> bytes:
    """Return a client's message with a token."""
    return f"n,,{SEPARATOR}auth=Bearer {token}{SEPARATOR}{SEPARATOR}".encode()


def error_challenge(status: str, scope: str | None = None) -> str:
    """Return the server's reason to refuse a token, as Kafka writes it."""
    if scope is None:
        return f'{{"status":"{status}"}}'
    return f'{{"status":"{status}", "scope":{json.dumps(scope)}}}'
