"""A login that was refused, as the audit log reports it."""

from __future__ import annotations

from dataclasses import dataclass

from odradek.plugin.context import UNKNOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedLogin:
    """A client that could not prove who it is. Nothing that it claims is known to be true."""

    listener: str
    address: str
    port: int
    mechanism: str
    """A SASL mechanism, or ``SSL`` for a handshake or a certificate; empty if none was chosen."""
    why: str
    claimed: str | None = None
    """The user that the client named; None if it named none."""
    connection: str | None = None
    """The id of the connection; None if its handshake failed."""
    principal: str = "User:ANONYMOUS"
    """As which the client was known before."""
    client_id: str = ""
    software: tuple[str, str] = (UNKNOWN, UNKNOWN)
    """Its name and version."""
