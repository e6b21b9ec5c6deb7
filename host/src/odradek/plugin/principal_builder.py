"""Building the principal of a client; after org.apache.kafka.common.security.auth.KafkaPrincipalBuilder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from odradek.plugin.context import ConnectionContext


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthenticationContext:
    """Facts about a client that has just authenticated."""

    connection: ConnectionContext
    """Its listener, security protocol and address. ``principal`` is still the one from before."""
    principal: str
    """The principal that the host would use."""
    sasl_mechanism: str | None = None
    """None on a listener without SASL."""
    sasl_user: str | None = None
    """The user of PLAIN or SCRAM, or the claim of a token; None without SASL."""
    certificate: bytes | None = None
    """The client's certificate in DER, which TLS has verified; None without one, and with SASL."""


@runtime_checkable
class PrincipalBuilder(Protocol):
    """Gives clients their principals. Quotas, ACLs, labels, logs and the telemetry topic use them."""

    def principal(self, authentication: AuthenticationContext) -> str:
        """Return ``<type>:<name>``, such as ``User:alice``.

        Called on the event loop once for each authentication, so it must not block. A client that
        authenticates again must get the same principal. An exception refuses the client.
        """
