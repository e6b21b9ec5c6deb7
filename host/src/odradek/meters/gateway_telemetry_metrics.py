"""The metrics of a gateway's telemetry; `GatewayTelemetry.metric_rows` has their values."""

from __future__ import annotations

from odradek.meters.instrument import Instrument

GATEWAY_TELEMETRY_INSTRUMENTS = {
    "gateway-telemetry-answers": Instrument(
        "odradek.gateway.telemetry.answers",
        "counter",
        "{answer}",
        "Telemetry requests of clients that the gateway answered",
    ),
    "gateway-subscriptions": Instrument(
        "odradek.gateway.subscriptions", "gauge", "{subscription}", "Subscriptions in force"
    ),
    "gateway-subscriptions-of-cluster": Instrument(
        "odradek.gateway.subscriptions.of.cluster",
        "gauge",
        "{subscription}",
        "Subscriptions of the upstream cluster, as last known",
    ),
    "gateway-subscriptions-left-out": Instrument(
        "odradek.gateway.subscriptions.left.out",
        "gauge",
        "{subscription}",
        "Subscriptions of the upstream cluster that are not valid here",
    ),
    "gateway-subscriptions-age": Instrument(
        "odradek.gateway.subscriptions.age",
        "gauge",
        "s",
        "Time since the upstream cluster listed its subscriptions",
    ),
    "gateway-subscription-polls": Instrument(
        "odradek.gateway.subscription.polls", "counter", "{poll}", "Polls of the upstream cluster"
    ),
    "gateway-pushes-dropped": Instrument(
        "odradek.gateway.pushes.dropped",
        "counter",
        "{push}",
        "Accepted pushes that were lost because the telemetry topic was full",
    ),
    "gateway-observed-clients": Instrument(
        "odradek.gateway.observed.clients", "gauge", "{client}", "Clients that are observed now"
    ),
    "gateway-observed-clients-evicted": Instrument(
        "odradek.gateway.observed.clients.evicted",
        "counter",
        "{client}",
        "Observed clients that were forgotten because there were too many",
    ),
    "gateway-observed-clients-folded": Instrument(
        "odradek.gateway.observed.clients.folded",
        "counter",
        "{connection}",
        "Connections that are observed as the client id `other`",
    ),
}
"""By row name."""
