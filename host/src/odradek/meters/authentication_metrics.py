"""The metrics of listeners with TLS or SASL, their sessions (KIP-368), and the keys of OAUTHBEARER."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from odradek.metrics.metric import MetricRow, Metrics
from odradek.net.listener import Listener
from odradek.net.unauthenticated import Unauthenticated
from odradek.security.sasl_session import AuthenticationCounts

if TYPE_CHECKING:
    from odradek.security.oauth.key_set import KeySet
    from odradek.security.sasl_authentication import SaslAuthentication

GROUP = "kafka.server.socket.server.metrics"
FIRST = Metrics[AuthenticationCounts](GROUP, "listener")
FIRST.counter("successful.authentication", "{connection}", "Connections that authenticated", "succeeded")
FIRST.counter("failed.authentication", "{connection}", "Connections that failed to authenticate", "failed")

AGAIN = Metrics[AuthenticationCounts](GROUP, "listener")
AGAIN.counter(
    "successful.reauthentication", "{connection}", "Re-authentications that succeeded", "succeeded_again"
)
AGAIN.counter("failed.reauthentication", "{connection}", "Re-authentications that failed", "failed_again")
AGAIN.counter("reauthentication.latency", "ms", "Time of all successful re-authentications", "again_ms")
AGAIN.counter(
    "successful.authentication.no.reauth",
    "{connection}",
    "Connections that authenticated and cannot do so again",
    "never_again",
)
AGAIN.counter(
    "expired.connections.killed",
    "{connection}",
    "Connections closed because their clients were late to authenticate again",
    "expired",
)

WAITING = Metrics[Unauthenticated]("odradek.connections")
WAITING.gauge("unauthenticated", "{connection}", "Open connections that have not authenticated", len)
WAITING.counter(
    "unauthenticated.closed", "{connection}", "Connections closed because they did not authenticate", "closed"
)

SASL: Metrics[SaslAuthentication] = Metrics("odradek.authentication")
SASL.counter(
    "delayed",
    "{attempt}",
    "Attempts to authenticate that waited because of their address's rate",
    "rate.delayed",
)

KEYS: Metrics[KeySet, int] = Metrics("odradek.jwks", "url")
KEYS.gauge("keys", "{key}", "Keys that may verify tokens")
KEYS.counter("fetches", "{fetch}", "Fetches of keys")
KEYS.counter("fetches.failed", "{fetch}", "Fetches of keys that failed", "failures")
KEYS.gauge(
    "age",
    "s",
    "Time since the keys were fetched",
    lambda it, now_ms: None if it.fetched_ms is None else (now_ms - it.fetched_ms) / 1000,
)


def authentication_rows(listeners: Sequence[Listener]) -> Iterator[MetricRow]:
    """The attempts of each listener with TLS or SASL, and the connections of all of them that have not
    authenticated.
    """
    for listener in listeners:
        if listener.unauthenticated is not None:
            yield from FIRST.rows(listener.counts, listener=listener.address.name)
        if listener.authentication is not None:
            yield from AGAIN.rows(listener.counts, listener=listener.address.name)
    waiting = next((each.unauthenticated for each in listeners if each.unauthenticated is not None), None)
    if waiting is not None:
        yield from WAITING.rows(waiting)
    sasl = next((each.authentication for each in listeners if each.authentication is not None), None)
    if sasl is not None:
        yield from SASL.rows(sasl)


def key_rows(key_sets: Iterable[KeySet], now_ms: int) -> Iterator[MetricRow]:
    """The keys of OAUTHBEARER, by the address they come from."""
    for keys in key_sets:
        yield from KEYS.rows(keys, now_ms, url=keys.url)
