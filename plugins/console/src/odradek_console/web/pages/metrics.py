"""``/metrics``: the figures of the console itself, for Prometheus."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from odradek_console.web.console import Console, console_of

PREFIX: Final = "odradek_console_"
GAUGES: Final = frozenset({"alarms", "begun_logins", "sessions", "streams", "waiting_messages"})
"""Counts of the page of settings that can fall."""


class Figures:
    """The metrics of a console, as a registry of prometheus_client asks for them."""

    def __init__(self, console: Console) -> None:
        self.console = console

    def collect(self) -> Iterator[Metric]:
        """All of them."""
        reading = self.console.view.reading()
        for name, value, text in (
            ("caught_up", reading.is_caught_up, "1 if the topic has been read up to its end."),
            ("reading", not reading.problem, "1 if the topic can be read."),
            ("clients", reading.clients, "Client instances in memory."),
            ("series", reading.series, "Series in memory."),
            ("held_bytes", reading.held_bytes, "Memory of clients and series, approximately."),
            ("history_ratio", reading.scale, "Part of their full length that histories have."),
        ):
            yield GaugeMetricFamily(PREFIX + name, text, float(value))
        for name, count in (reading.counts | self.console.counts).items():
            text = name.replace("_", " ").capitalize()
            if name in GAUGES:
                yield GaugeMetricFamily(PREFIX + name, f"{text} now.", count)
            else:
                yield CounterMetricFamily(PREFIX + name, f"{text} since the start.", count)


def metrics(request: Request) -> Response:
    """The metrics, in the format that the request accepts."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Figures(console_of(request)))
    encode, content_type = choose_encoder(request.headers.get("accept", ""))
    return Response(encode(registry), headers={"Content-Type": content_type})


routes = [Route("/metrics", metrics)]
