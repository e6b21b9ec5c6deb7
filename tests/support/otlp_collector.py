"""An OTLP/HTTP endpoint that the test directs; it records the metrics it accepts."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from contrib.capture.ports import free_port
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

POLL_S = 0.02
SLOW_S = 0.1
HANGING_S = 20.0


class Exchange(BaseHTTPRequestHandler):
    """One request. HTTP/1.0: a kept-alive connection would be served while the endpoint is down."""

    server: Endpoint

    def do_POST(self) -> None:
        collector = self.server.collector
        with collector.lock:
            collector.asked += 1
        collector.mood(self)

    def body(self) -> bytes:
        return self.rfile.read(int(self.headers["content-length"]))

    def take(self) -> None:
        """Accept the request."""
        self.server.collector.taken(names_of(self.body()))
        self.answer(200)

    def answer(self, status: int, text: str = "", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("content-length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *arguments: object) -> None:
        """Write no access log."""


class Endpoint(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, collector: Collector) -> None:
        super().__init__(("127.0.0.1", collector.port), Exchange)
        self.collector = collector

    def handle_error(self, *arguments: object) -> None:
        """The client was killed."""


Mood = Callable[[Exchange], None]


def well(exchange: Exchange) -> None:
    exchange.take()


def slow(exchange: Exchange) -> None:
    time.sleep(SLOW_S)
    exchange.take()


def hanging(exchange: Exchange) -> None:
    """Reads, and never answers; accepts nothing."""
    exchange.body()
    exchange.server.collector.released.wait(HANGING_S)


def busy(exchange: Exchange) -> None:
    exchange.body()
    exchange.answer(429)


def busy_for_a_second(exchange: Exchange) -> None:
    exchange.body()
    exchange.answer(429, Retry_After="1")


def closing(exchange: Exchange) -> None:
    """Reads the beginning of the body and closes."""
    exchange.rfile.read(10)
    exchange.connection.close()


def picky(exchange: Exchange) -> None:
    """Refuses a request that contains a poison metric."""
    body = exchange.body()
    names = names_of(body)
    if any(is_poison(name) for name in names):
        exchange.answer(400)
    else:
        exchange.server.collector.taken(names)
        exchange.answer(200)


def is_poison(name: str) -> bool:
    """One name in a thousand."""
    return int(name.rpartition(".")[2]) % 1_000 == 17


def names_of(body: bytes) -> list[str]:
    """The metrics of a request."""
    return [
        metric.name
        for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    ]


@dataclass(eq=False)
class Collector:
    """Listens while it is `up`; the port stays the same."""

    port: int
    mood: Mood = well
    seen: Counter[str] = field(default_factory=Counter)
    asked: int = 0
    """Requests that started."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    released: threading.Event = field(default_factory=threading.Event)
    running: tuple[Endpoint, threading.Thread] | None = None

    def taken(self, names: list[str]) -> None:
        with self.lock:
            self.seen.update(names)

    @property
    def duplicates(self) -> int:
        """Metrics that arrived again."""
        with self.lock:
            return sum(self.seen.values()) - len(self.seen)

    def missing(self, wanted: set[str]) -> set[str]:
        with self.lock:
            return wanted - self.seen.keys()

    def up(self) -> None:
        if self.running is None:
            endpoint = Endpoint(self)
            thread = threading.Thread(target=endpoint.serve_forever, args=(POLL_S,))
            thread.start()
            self.running = endpoint, thread

    def down(self) -> None:
        if self.running is not None:
            (endpoint, thread), self.running = self.running, None
            endpoint.shutdown()
            endpoint.server_close()
            thread.join()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@contextmanager
def collecting() -> Iterator[Collector]:
    """A running collector."""
    collector = Collector(free_port())
    collector.up()
    try:
        yield collector
    finally:
        collector.released.set()
        collector.down()
