"""Shows an orchestrator and Prometheus how a running ingest does: ``/healthz``, ``/readyz``, ``/metrics``."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from socketserver import ThreadingMixIn
from typing import Any, Final
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from odradek_spark.ingest.status import NOTHING, Totals

STILL_S: Final = 300.0
"""Ingest without a sign of life for so long counts as dead. Between attempts it waits for a minute."""
TIMEOUT_S: Final = 10
OK: Final = "200 OK"
UNAVAILABLE: Final = "503 Service Unavailable"


class Pulse:
    """The state of an ingest; any thread may use it.

    Args:
        now_s: A monotonic clock.
    """

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self.now_s = now_s
        self.beat_s = now_s()
        """The last sign of life."""
        self.batch_s: float | None = None
        """The end of the last batch; None before the first."""
        self.total = NOTHING
        self.waiting: int | None = None
        self.problem: str | None = "Spark starts"
        """Why nothing is read; None if ingest runs."""

    def runs(self, _query: object = None) -> None:
        """Ingest runs. Called every second while it does."""
        self.beat_s, self.problem = self.now_s(), None

    def waits(self, why: str) -> None:
        """Ingest has failed, and will try again."""
        self.beat_s, self.problem = self.now_s(), why

    def shows(self, total: Totals, waiting: int | None) -> None:
        """A batch is in the tables.

        Args:
            total: Since the start.
            waiting: Records of the topic that are not in the tables; None if that is not known.
        """
        self.batch_s, self.total, self.waiting = self.now_s(), total, waiting

    def not_alive(self) -> str | None:
        """Why the process should be restarted; None if it should not."""
        still_s = self.now_s() - self.beat_s
        return f"no sign of life for {still_s:.0f} s" if still_s > STILL_S else None

    def not_ready(self) -> str | None:
        """Why nothing is read; None if ingest runs."""
        return self.not_alive() or self.problem

    def collect(self) -> Iterator[Metric]:
        """The metrics; for a registry of prometheus_client."""
        for name, value, what in (
            ("batches", self.total.batches, "Batches that were committed"),
            ("pushes", self.total.pushes, "Pushes that were loaded into the tables"),
            ("points", self.total.points, "Data points that were loaded into the tables"),
            ("dead_letters", self.total.dead_letters, "Records that could not be decoded"),
        ):
            yield CounterMetricFamily(f"odradek_pipeline_{name}", f"{what} since the start.", value)
        if self.waiting is not None:
            text = "Records of the topic that were in no table after the last batch."
            yield GaugeMetricFamily("odradek_pipeline_waiting", text, self.waiting)
        if self.batch_s is not None:
            name, text = "odradek_pipeline_last_batch_age_seconds", "Time since the last batch."
            yield GaugeMetricFamily(name, text, self.now_s() - self.batch_s)
        ready = float(self.not_ready() is None)
        yield GaugeMetricFamily("odradek_pipeline_ready", "1 while ingest runs, 0 while it waits.", ready)


class SilentHandler(WSGIRequestHandler):
    """Logs no requests."""

    timeout = TIMEOUT_S

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002  its name in the base class
        """Log nothing."""


class PulseServer(ThreadingMixIn, WSGIServer):
    """Each connection has a thread: a slow client holds up no other."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], handler: type[WSGIRequestHandler]) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing: a client has broken off, or sent nothing for `TIMEOUT_S`."""


@contextmanager
def served(pulse: Pulse, host: str, port: int) -> Iterator[int]:
    """Serve the state in the body of the statement; yields the port.

    Raises:
        OSError: The address is in use, or the host does not exist.
    """
    registry = CollectorRegistry()
    registry.register(pulse)
    metrics = make_wsgi_app(registry)
    probes = {"/healthz": pulse.not_alive, "/readyz": pulse.not_ready}

    def app(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        probe = probes.get(environ.get("PATH_INFO", ""))
        if probe is None:
            found: Iterable[bytes] = metrics(environ, start_response)
            return found
        problem = probe()
        start_response(
            OK if problem is None else UNAVAILABLE, [("Content-Type", "text/plain; charset=utf-8")]
        )
        return [f"{problem or 'ok'}\n".encode()]

    server = make_server(host, port, app, PulseServer, SilentHandler)
    thread = threading.Thread(target=server.serve_forever, name="pulse", daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
