"""The metrics of listeners with TLS or SASL, their sessions (KIP-368), and the keys of OAUTHBEARER."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from odradek.meters.instrument import Instrument
from odradek.net.listener import Listener
from odradek.telemetry.client_metrics_stats import MetricRow

if TYPE_CHECKING:
    from odradek.security.oauth.key_set import KeySet

GROUP = "kafka.server.socket.server.metrics"
AUTHENTICATION_INSTRUMENTS = {
    "successful-authentication": Instrument(
        f"{GROUP}.successful.authentication", "counter", "{connection}", "Connections that authenticated"
    ),
    "failed-authentication": Instrument(
        f"{GROUP}.failed.authentication", "counter", "{connection}", "Connections that failed to authenticate"
    ),
    "successful-reauthentication": Instrument(
        f"{GROUP}.successful.reauthentication", "counter", "{connection}", "Re-authentications that succeeded"
    ),
    "failed-reauthentication": Instrument(
        f"{GROUP}.failed.reauthentication", "counter", "{connection}", "Re-authentications that failed"
    ),
    "reauthentication-latency": Instrument(
        f"{GROUP}.reauthentication.latency", "counter", "ms", "Time of all successful re-authentications"
    ),
    "successful-authentication-no-reauth": Instrument(
        f"{GROUP}.successful.authentication.no.reauth",
        "counter",
        "{connection}",
        "Connections that authenticated and cannot do so again",
    ),
    "expired-connections-killed": Instrument(
        f"{GROUP}.expired.connections.killed",
        "counter",
        "{connection}",
        "Connections closed because their clients were late to authenticate again",
    ),
    "connections-unauthenticated": Instrument(
        "odradek.connections.unauthenticated",
        "gauge",
        "{connection}",
        "Open connections that have not authenticated",
    ),
    "connections-unauthenticated-closed": Instrument(
        "odradek.connections.unauthenticated.closed",
        "counter",
        "{connection}",
        "Connections closed because they did not authenticate",
    ),
    "authentication-delayed": Instrument(
        "odradek.authentication.delayed",
        "counter",
        "{attempt}",
        "Attempts to authenticate that waited because of their address's rate",
    ),
    "jwks-keys": Instrument("odradek.jwks.keys", "gauge", "{key}", "Keys that may verify tokens"),
    "jwks-fetches": Instrument("odradek.jwks.fetches", "counter", "{fetch}", "Fetches of keys"),
    "jwks-fetches-failed": Instrument(
        "odradek.jwks.fetches.failed", "counter", "{fetch}", "Fetches of keys that failed"
    ),
    "jwks-age": Instrument("odradek.jwks.age", "gauge", "s", "Time since the keys were fetched"),
}
"""By row name."""


def authentication_rows(listeners: Sequence[Listener]) -> Iterator[MetricRow]:
    """The attempts of each listener with TLS or SASL, and the connections of all of them that have not
    authenticated.
    """
    for listener in listeners:
        labels, counts = {"listener": listener.address.name}, listener.counts
        if listener.unauthenticated is not None:
            yield MetricRow("successful-authentication", "counter", labels, counts.succeeded)
            yield MetricRow("failed-authentication", "counter", labels, counts.failed)
        if listener.authentication is not None:
            yield MetricRow("successful-reauthentication", "counter", labels, counts.succeeded_again)
            yield MetricRow("failed-reauthentication", "counter", labels, counts.failed_again)
            yield MetricRow("reauthentication-latency", "counter", labels, counts.again_ms)
            yield MetricRow("successful-authentication-no-reauth", "counter", labels, counts.never_again)
            yield MetricRow("expired-connections-killed", "counter", labels, counts.expired)
    waiting = next((each.unauthenticated for each in listeners if each.unauthenticated is not None), None)
    if waiting is not None:
        yield MetricRow("connections-unauthenticated", "gauge", {}, len(waiting))
        yield MetricRow("connections-unauthenticated-closed", "counter", {}, waiting.closed)
    sasl = next((each.authentication for each in listeners if each.authentication is not None), None)
    if sasl is not None:
        yield MetricRow("authentication-delayed", "counter", {}, sasl.rate.delayed)


def key_rows(key_sets: Iterable[KeySet], now_ms: int) -> Iterator[MetricRow]:
    """The keys of OAUTHBEARER, by the address they come from."""
    for keys in key_sets:
        labels = {"url": keys.url}
        yield MetricRow("jwks-keys", "gauge", labels, len(keys.keys))
        yield MetricRow("jwks-fetches", "counter", labels, keys.fetches)
        yield MetricRow("jwks-fetches-failed", "counter", labels, keys.failures)
        if keys.fetched_ms is not None:
            yield MetricRow("jwks-age", "gauge", labels, (now_ms - keys.fetched_ms) / 1000)
