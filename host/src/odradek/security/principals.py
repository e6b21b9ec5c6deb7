"""The principals of clients, if a plugin builds them."""

from __future__ import annotations

import re

from odradek.plugin.context import ConnectionContext
from odradek.plugin.guard import Guard
from odradek.plugin.principal_builder import AuthenticationContext, PrincipalBuilder
from odradek.security.sasl_server import SaslFailure
from odradek.waiting.clock import Clock

PRINCIPAL = re.compile(r"[^:]+:.+", re.DOTALL)
"""A type and a name."""
EXPECTED = "expected a principal such as User:alice"


class UnknownPrincipal(Exception):
    """The principal of a client cannot be determined."""


class BuiltPrincipals:
    """Asks the builder of a plugin. A client whose principal cannot be built is refused.

    Args:
        name: The name of the plugin.
        builder: Its builder.
        longest: ``name.max.length``, of the name without the type.
        clock: The time.
        slow_ms: A call that takes longer is counted and logged.
    """

    def __init__(
        self, name: str, builder: PrincipalBuilder, longest: int, clock: Clock, slow_ms: int = 5
    ) -> None:
        self.builder = builder
        self.longest = longest
        self.guard = Guard(name, "odradek_principal_builder", clock, slow_ms)
        self.stats = self.guard.stats

    def of_user(self, connection: ConnectionContext, mechanism: str, user: str) -> str:
        """The principal of a client that has authenticated with SASL.

        Raises:
            SaslFailure: It cannot be built.
        """
        principal = self.of(
            AuthenticationContext(
                connection=connection, principal=f"User:{user}", sasl_mechanism=mechanism, sasl_user=user
            )
        )
        if principal is None:
            raise SaslFailure("the plugin cannot build the principal")
        return principal

    def of_peer(self, connection: ConnectionContext, certificate: bytes | None) -> str | None:
        """The principal of a client of a listener without SASL; None if it cannot be built."""
        return self.of(
            AuthenticationContext(
                connection=connection, principal=connection.principal, certificate=certificate
            )
        )

    def of(self, authentication: AuthenticationContext) -> str | None:
        """The answer of the plugin; None if it fails or is no principal."""

        def build() -> str:
            principal = self.builder.principal(authentication)
            if not isinstance(principal, str) or not PRINCIPAL.fullmatch(principal):
                raise TypeError(f"principal returned {principal!r:.200}, {EXPECTED}")
            if len(principal.partition(":")[2]) > self.longest:
                longest = f"with a name of at most {self.longest} characters"
                raise TypeError(f"principal returned {principal!r:.200}, {EXPECTED}, {longest}")
            return principal

        return self.guard.answer(self.builder.principal, build, None)
