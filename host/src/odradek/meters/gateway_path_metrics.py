"""The metrics of a gateway's data path; `gateway_rows` has their values."""

from __future__ import annotations

from odradek.meters.instrument import Instrument

PREFIX = "odradek.gateway"
GATEWAY_PATH_INSTRUMENTS = {
    "gateway-pairs-opened": Instrument(
        f"{PREFIX}.pairs.opened", "counter", "{pair}", "Connections of clients that reached a broker"
    ),
    "gateway-pairs-closed": Instrument(f"{PREFIX}.pairs.closed", "counter", "{pair}", "Closed, by cause"),
    "gateway-bytes": Instrument(f"{PREFIX}.bytes", "counter", "By", "Bytes read, by their sender"),
    "gateway-requests": Instrument(f"{PREFIX}.requests", "counter", "{request}", "Requests of clients"),
    "gateway-silent-requests": Instrument(
        f"{PREFIX}.requests.without.response", "counter", "{request}", "Produce requests with acks=0"
    ),
    "gateway-outstanding": Instrument(
        f"{PREFIX}.outstanding", "gauge", "{request}", "Requests that wait for a response"
    ),
    "gateway-responses-rewritten": Instrument(
        f"{PREFIX}.responses.rewritten", "counter", "{response}", "Responses that can name addresses"
    ),
    "gateway-unmapped-nodes": Instrument(
        f"{PREFIX}.unmapped.nodes", "counter", "{node}", "Brokers in responses whose id has no address"
    ),
    "gateway-server-names-refused": Instrument(
        f"{PREFIX}.server.names.refused", "counter", "{handshake}", "Handshakes without a node's server name"
    ),
    "gateway-misrouted": Instrument(
        f"{PREFIX}.misrouted", "counter", "{connection}", "Clients that expected another node at an address"
    ),
    "gateway-internal-errors": Instrument(
        f"{PREFIX}.internal.errors", "counter", "{error}", "Bugs that closed a connection"
    ),
    "gateway-dials-failed": Instrument(
        f"{PREFIX}.dials.failed", "counter", "{dial}", "Failed connections to brokers"
    ),
    "gateway-upstream-stuck": Instrument(
        f"{PREFIX}.upstream.stuck",
        "counter",
        "{connection}",
        "Connections to brokers that took or answered nothing for gateway.upstream.stuck.ms",
    ),
    "gateway-added-latency-bucket": Instrument(
        f"{PREFIX}.added.latency.bucket",
        "counter",
        "{piece}",
        "Pieces that were written after at most so long",
    ),
    "gateway-added-latency-sum": Instrument(
        f"{PREFIX}.added.latency.sum", "counter", "s", "Time between reading and writing of these pieces"
    ),
    "gateway-in-flight-pauses": Instrument(
        f"{PREFIX}.pauses.in.flight", "counter", "{pause}", "Clients with too many requests outstanding"
    ),
    "gateway-slow-peer-pauses": Instrument(
        f"{PREFIX}.pauses.slow.peer", "counter", "{pause}", "Connections not read because the other is slow"
    ),
    "gateway-nodes-known": Instrument(f"{PREFIX}.nodes.known", "gauge", "{node}", "Brokers with an address"),
    "gateway-switch": Instrument(f"{PREFIX}.switch", "gauge", "1", "Steps of the kill switch taken"),
    "gateway-ready": Instrument(f"{PREFIX}.ready", "gauge", "1", "Whether a broker has answered lately"),
}
"""By row name."""
