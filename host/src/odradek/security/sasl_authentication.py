"""The parts of authentication that the connections of a listener share."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from odradek.bounds.sampled_log import SampledLog
from odradek.plugin.context import ConnectionContext
from odradek.security.attempt_rate import AttemptRate
from odradek.security.oauth.bearer_token import TokenValidator
from odradek.security.oauth.oauth_settings import OAUTHBEARER
from odradek.security.plain_server import PlainSaslServer
from odradek.security.refused_login import RefusedLogin
from odradek.security.sasl_server import SaslServer
from odradek.security.sasl_session import AuthenticationCounts
from odradek.security.sasl_settings import SaslSettings
from odradek.security.scram import mechanism_named
from odradek.security.scram_credential import CredentialLookup
from odradek.security.scram_server import ScramSaslServer
from odradek.waiting.clock import Clock, Timer
from odradek.waiting.deferred import Offload

log = logging.getLogger(__name__)

FAILURES_LOGGED = 60
"""Failures that are logged in a minute; further ones are counted."""


def user_principal(_connection: ConnectionContext, _mechanism: str, user: str) -> str:
    """Return Kafka's own principal of a user."""
    return f"User:{user}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslAuthentication:
    """Shared by all connections of a listener. Listeners share all of it but what is set for each of them."""

    settings: SaslSettings
    credentials: CredentialLookup
    clock: Clock
    timer: Timer
    offload: Offload
    new_nonce: Callable[[], str]
    secret: bytes
    rate: AttemptRate
    tokens: TokenValidator | None = None
    """None if no client may use OAUTHBEARER."""
    max_reauth_ms: Mapping[str, int] = field(default_factory=dict)
    """``connections.max.reauth.ms`` by mechanism, where it is not that of the settings."""
    principal: Callable[[ConnectionContext, str, str], str] = user_principal
    """Makes the principal from a connection, a mechanism and a user. Raises `SaslFailure`."""
    report: Callable[[RefusedLogin], None] = lambda _: None
    """Called with each refused login."""
    counts: AuthenticationCounts = field(default_factory=AuthenticationCounts)
    failures_log: SampledLog = field(default_factory=lambda: SampledLog(log, most=FAILURES_LOGGED))

    def server(self, mechanism: str) -> SaslServer:
        """A fresh attempt with one of `MECHANISMS`."""
        if mechanism == OAUTHBEARER:
            from odradek.security.oauth.bearer_server import OAuthBearerSaslServer

            assert self.tokens is not None
            return OAuthBearerSaslServer(self.tokens)
        scram = mechanism_named(mechanism)
        if scram is None:
            return PlainSaslServer(self.credentials, self.secret)
        return ScramSaslServer(scram, self.credentials, self.secret, self.new_nonce())

    def reauth_ms(self, mechanism: str) -> int:
        """``connections.max.reauth.ms`` of a mechanism."""
        return self.max_reauth_ms.get(mechanism, self.settings.max_reauth_ms)
