"""The four messages of SCRAM (RFC 5802 section 7), parsed strictly because the sender is not trusted."""

from __future__ import annotations

import binascii
import re
from base64 import b64decode, b64encode
from dataclasses import dataclass

PRINTABLE = r"[\x21-\x2b\x2d-\x7e]+"
VALUE = r"[^\x00,]*"
EXTENSIONS = rf"(?:,[A-Za-z]+={VALUE})*"
CLIENT_FIRST = re.compile(
    rf"(?P<gs2>[ny],(?:a=(?P<authzid>{VALUE}))?,)"
    rf"(?P<bare>n=(?P<user>{VALUE}),r=(?P<nonce>{PRINTABLE}){EXTENSIONS})"
)
SERVER_FIRST = re.compile(
    rf"r=(?P<nonce>{PRINTABLE}),s=(?P<salt>{VALUE}),i=(?P<iterations>[1-9][0-9]{{0,8}}){EXTENSIONS}"
)
CLIENT_FINAL = re.compile(
    rf"(?P<without_proof>c=(?P<channel>{VALUE}),r=(?P<nonce>{PRINTABLE}){EXTENSIONS}),p=(?P<proof>{VALUE})"
)
SERVER_FINAL = re.compile(rf"(?:e=(?P<error>{VALUE})|v=(?P<signature>{VALUE})){EXTENSIONS}")
ESCAPE = re.compile(r"=2C|=3D|=")
MAX_MESSAGE_BYTES = 65_536
"""Names and nonces are short; no real message is longer."""


class BadMessage(ValueError):
    """The bytes are not the expected message."""


def matched(pattern: re.Pattern[str], token: bytes) -> re.Match[str]:
    """Match a message against its pattern.

    Raises:
        BadMessage: The message does not match.
    """
    if len(token) > MAX_MESSAGE_BYTES:
        raise BadMessage(f"a message of {len(token)} bytes, at most {MAX_MESSAGE_BYTES} are accepted")
    try:
        found = pattern.fullmatch(token.decode())
    except UnicodeDecodeError:
        raise BadMessage("not UTF-8") from None
    if found is None:
        raise BadMessage("not the expected SCRAM message")
    return found


@dataclass(frozen=True, slots=True)
class ClientFirst:
    """``n,,n=user,r=nonce``."""

    gs2_header: str
    authorization_id: str
    user: str
    nonce: str
    bare: str

    @classmethod
    def read(cls, token: bytes) -> ClientFirst:
        """Raises `BadMessage`, also for channel binding (``p=``) and mandatory extensions."""
        found = matched(CLIENT_FIRST, token)
        authorization_id = unescaped(found["authzid"] or "")
        return cls(found["gs2"], authorization_id, unescaped(found["user"]), found["nonce"], found["bare"])


@dataclass(frozen=True, slots=True)
class ServerFirst:
    """``r=nonce,s=salt,i=iterations``."""

    nonce: str
    salt: bytes
    iterations: int

    @classmethod
    def read(cls, token: bytes) -> ServerFirst:
        """Raises `BadMessage`."""
        found = matched(SERVER_FIRST, token)
        return cls(found["nonce"], decoded(found["salt"]), int(found["iterations"]))

    def text(self) -> str:
        """The message as text."""
        return f"r={self.nonce},s={encoded(self.salt)},i={self.iterations}"


@dataclass(frozen=True, slots=True)
class ClientFinal:
    """``c=header,r=nonce,p=proof``."""

    channel_binding: bytes
    nonce: str
    proof: bytes
    without_proof: str

    @classmethod
    def read(cls, token: bytes) -> ClientFinal:
        """Raises `BadMessage`."""
        found = matched(CLIENT_FINAL, token)
        return cls(decoded(found["channel"]), found["nonce"], decoded(found["proof"]), found["without_proof"])


@dataclass(frozen=True, slots=True)
class ServerFinal:
    """``v=signature``, or ``e=error``."""

    signature: bytes
    error: str | None

    @classmethod
    def read(cls, token: bytes) -> ServerFinal:
        """Raises `BadMessage`."""
        found = matched(SERVER_FINAL, token)
        return cls(decoded(found["signature"] or ""), found["error"])


def escaped(name: str) -> str:
    """A name as written in a message."""
    return name.replace("=", "=3D").replace(",", "=2C")


def unescaped(name: str) -> str:
    """A name as read from a message.

    Raises:
        BadMessage: The name has an equals sign that is not an escape.
    """
    if any(found[0] == "=" for found in ESCAPE.finditer(name)):
        raise BadMessage("a name has an equals sign that is not an escape")
    return name.replace("=2C", ",").replace("=3D", "=")


def encoded(data: bytes) -> str:
    """Bytes as written in a message."""
    return b64encode(data).decode()


def decoded(text: str) -> bytes:
    """Bytes as read from a message.

    Raises:
        BadMessage: The text is not base64.
    """
    try:
        return b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise BadMessage("not base64") from None
