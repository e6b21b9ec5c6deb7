"""The settings of SASL listeners; names and defaults after BrokerSecurityConfigs.java."""

from __future__ import annotations

from dataclasses import dataclass

from odradek.security.oauth.oauth_settings import OAUTHBEARER
from odradek.security.scram import ScramMechanism
from odradek.settings.kinds import INT, LONG, Items, Whole
from odradek.settings.setting import setting

PLAIN = "PLAIN"
SCRAM_MECHANISMS = tuple(each.mechanism_name for each in ScramMechanism)
MECHANISMS = (*SCRAM_MECHANISMS, PLAIN, OAUTHBEARER)
"""The mechanisms that can be enabled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslSettings:
    """Settings of SASL listeners."""

    # fmt: off
    enabled_mechanisms: tuple[str, ...] = setting(
        "sasl.enabled.mechanisms", Items(MECHANISMS, least=1), SCRAM_MECHANISMS,
        "SASL mechanisms that clients may use; `PLAIN` can be added, but sends passwords unencrypted, and "
        "`OAUTHBEARER` needs keys.", by_listener=True, page="../howto/authenticate-clients.md",
    )
    max_reauth_ms: int = setting(
        "connections.max.reauth.ms", Whole(LONG), 0,
        "How long a connection may be used before its client has to authenticate again; 0 does not ask for "
        "it. A token that expires earlier ends the time.", unit="ms", by_listener=True, by_mechanism=True,
    )
    failed_authentication_delay_ms: int = setting(
        "connection.failed.authentication.delay.ms", Whole(INT), 100,
        "How long the host waits before it tells a client that authentication failed.", unit="ms",
    )
    server_max_receive_bytes: int = setting(
        "sasl.server.max.receive.size", Whole(INT), 524_288,
        "Largest request of a client that has not authenticated yet; a client that sends a larger one is "
        "disconnected.", unit="bytes",
    )
    attempts_per_ip: int = setting(
        "max.authentication.rate.per.ip", Whole(INT, 1), 50,
        "Attempts to authenticate per second from one address, or one IPv6 network of 64 bits; further ones "
        "are answered later.",
        unit="attempts/s",
    )
    most_unauthenticated: int = setting(
        "connections.unauthenticated.max", Whole(INT, 1), 5_000,
        "Limit of open connections to listeners with SASL or TLS that have not authenticated, but at most "
        "half of the connections that the process's limit of open files allows; one more closes the oldest.",
        unit="connections",
    )
    max_unauthenticated_ms: int = setting(
        "connections.unauthenticated.max.ms", Whole(INT, 100), 60_000,
        "A connection that has not authenticated after this time is closed; a TLS handshake counts.",
        unit="ms",
    )
    # fmt: on
