"""The programs of `bench.soak` with all their listeners, each in plaintext and over TLS."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from contrib.capture.ports import answers, free_port

from bench.frames import API_VERSIONS_V3
from bench.soak_lives import REFUSED_SOURCE, Spot
from support.certificates import Files, authority
from support.forwarding import FLEET, ForwardProcess, create_topic
from support.gateways import GatewayProcess
from support.hosts import ServeProcess, serving
from support.waiting import wait_until

GET: Final = b"GET /nothing HTTP/1.1\r\nHost: localhost\r\nX-Padding: 0123456789abcdef\r\n\r\n"
HTTP2: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0"
"""The preface of HTTP/2, with empty settings."""
SILENT_MS: Final = 1_000
MANY: Final = ("connections.unauthenticated.max=10000", f"connections.unauthenticated.max.ms={SILENT_MS}")
LOGINS: Final = ("sasl.enabled.mechanisms=PLAIN", "max.authentication.rate.per.ip=1000000")
"""Clients of one machine come faster than an attack is allowed to."""
REFUSING: Final = f"max.connections.per.ip.overrides={REFUSED_SOURCE}:0"
KAFKA_LISTENERS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


@dataclass(frozen=True, slots=True)
class Program:
    """A running program.

    Args:
        pid: Of the process; its children count, too.
        spots: Its listeners. The worst ping of the program is that of the first.
    """

    pid: int
    spots: list[Spot]


def options(*settings: str) -> list[str]:
    """Settings of the command line."""
    return [part for each in settings for part in ("--set", each)]


def client_context(*protocols: str) -> ssl.SSLContext:
    """The TLS of a client that trusts the authority of the tests."""
    context = ssl.create_default_context(cadata=authority().issued.certificate)
    if protocols:
        context.set_alpn_protocols(protocols)
    return context


def kafka_spots(process: ServeProcess) -> list[Spot]:
    """The listeners of a host or gateway with Kafka's protocol, from its ready line."""
    found = []
    for address in process.ready.split("listeners=")[1].split(" ")[0].split(","):
        name, _, port = address.replace("://", ":").split(":")
        context = client_context() if name.endswith("SSL") else None
        spot = Spot(name, int(port), API_VERSIONS_V3, context, refuses=True)
        time_out_s = None if name == "PLAINTEXT" else SILENT_MS / 1000
        found.append(replace(spot, time_out_s=time_out_s))
    return found


@dataclass(frozen=True, slots=True)
class Pages:
    """The listeners of a process beside Kafka's protocol.

    Args:
        folder: For certificates.
        secure: Whether they have TLS.
    """

    folder: Path
    secure: bool

    def settings_of(self, plugin: str, port: int, key: str = "listener") -> list[str]:
        """The settings of a page of a plugin."""
        at = f"127.0.0.1:{port}"
        if plugin == "prometheus":
            at = f"{'https' if self.secure else 'http'}://{at}"
        tls = (
            f"source.tls.certificate={self.server}" if plugin == "otlp" else f"tls.certificate={self.server}"
        )
        return [f"plugins.{plugin}.{key}={at}", *([f"plugins.{plugin}.{tls}"] if self.secure else [])]

    @property
    def server(self) -> str:
        return Files(self.folder).server

    def spot(self, name: str, port: int, request: bytes = GET) -> Spot:
        protocols = ("h2",) if request == HTTP2 else ()
        return Spot(name, port, request, client_context(*protocols) if self.secure else None)

    def metrics(self) -> tuple[list[str], Spot]:
        """The page of the host's own metrics."""
        port = free_port()
        scheme = "https" if self.secure else "http"
        return [f"metrics.listener={scheme}://127.0.0.1:{port}"], self.spot(f"metrics, {scheme}", port)

    def prometheus(self) -> tuple[list[str], Spot]:
        """The page of the clients' metrics."""
        port, scheme = free_port(), "https" if self.secure else "http"
        return self.settings_of("prometheus", port), self.spot(f"Prometheus page, {scheme}", port)

    def otlp(self) -> tuple[list[str], list[Spot]]:
        """Both sources of OTLP."""
        over_http, over_grpc = free_port(), free_port()
        settings = self.settings_of("otlp", over_http, "source.http.listener")
        settings += self.settings_of("otlp", over_grpc, "source.grpc.listener")
        kind = " over TLS" if self.secure else ""
        return settings, [
            self.spot(f"OTLP/HTTP source{kind}", over_http),
            self.spot(f"OTLP/gRPC source{kind}", over_grpc, HTTP2),
        ]

    def console(self) -> tuple[list[str], Spot]:
        """The console, as the companion of a host."""
        port, scheme = free_port(), "https" if self.secure else "http"
        return self.settings_of("console", port), self.spot(f"console, {scheme}", port)


def listening(process: ServeProcess, spots: list[Spot]) -> Program:
    """A program whose plugins listen, which may be after its ready line."""
    wait_until(lambda: all(answers(spot.port) for spot in spots), "all listeners")
    return Program(process.process.pid, spots)


@contextmanager
def stopped(process: ServeProcess) -> Iterator[ServeProcess]:
    """Stop a process at the end."""
    try:
        yield process
    finally:
        if process.process.poll() is None:
            process.terminate(60)


@contextmanager
def serve(folder: Path) -> Iterator[Program]:
    """A host with its four kinds of listeners."""
    settings = (
        "listeners=" + ",".join(f"{name}://127.0.0.1:0" for name in KAFKA_LISTENERS),
        *Files(folder).settings,
    )
    settings += (f"data.dir={folder / 'data'}", *LOGINS, *MANY, REFUSING)
    with stopped(ServeProcess(*options(*settings))) as process:
        yield Program(process.process.pid, kafka_spots(process))


@contextmanager
def pages(folder: Path, secure: bool) -> Iterator[Program]:
    """A host with the pages and sources of its plugins."""
    made = Pages(folder, secure)
    (metrics, metrics_spot), (prometheus, prometheus_spot) = made.metrics(), made.prometheus()
    (otlp, otlp_spots), (console, console_spot) = made.otlp(), made.console()
    settings = ["listeners=PLAINTEXT://127.0.0.1:0", f"data.dir={folder / 'data'}"]
    settings += [
        f"plugins.prometheus.totals.file={folder / 'totals'}",
        *(Files(folder).settings if secure else []),
    ]
    with stopped(ServeProcess(*options(*settings, *metrics, *prometheus, *otlp, *console))) as process:
        (kafka,) = kafka_spots(process)
        spots = [prometheus_spot, *otlp_spots, metrics_spot, console_spot]
        yield listening(process, [replace(kafka, refuses=False), *spots])


@contextmanager
def control(folder: Path) -> Iterator[Program]:
    """A host for tests, with its control port."""
    with stopped(ServeProcess("--ephemeral", env={"TMPDIR": str(folder)})) as process:
        port = int(process.ready.rpartition(":")[2])
        yield Program(process.process.pid, [Spot("control", port, GET)])


@contextmanager
def gateway(folder: Path) -> Iterator[Program]:
    """A gateway before a host."""
    own = folder / "gateway"
    own.mkdir()
    settings = (
        "listeners=PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0",
        *Files(folder).settings,
        REFUSING,
        *MANY,
    )
    with serving(folder / "host", *options(*MANY)) as host:
        upstream = ("--upstream", host.bootstrap)
        with stopped(GatewayProcess(*upstream, *options(*settings, f"data.dir={own}"))) as process:
            yield Program(process.process.pid, kafka_spots(process))


@contextmanager
def forward(folder: Path) -> Iterator[Program]:
    """Forwarders on a topic of a host, with their pages over TLS."""
    made = Pages(folder, secure=True)
    (metrics, metrics_spot), (prometheus, prometheus_spot) = made.metrics(), made.prometheus()
    settings = (*Files(folder).settings, *metrics, *prometheus)
    with serving(folder / "host") as host:
        create_topic(host.bootstrap)
        where = ("--bootstrap-server", host.bootstrap, "--topic", FLEET)
        with stopped(ForwardProcess(*where, *options(*settings))) as process:
            yield listening(process, [prometheus_spot, metrics_spot])


Running = Callable[[Path], AbstractContextManager[Program]]
PROGRAMS: Final[Mapping[str, Running]] = {
    "serve": serve,
    "serve, pages": partial(pages, secure=False),
    "serve, pages over TLS": partial(pages, secure=True),
    "serve --ephemeral": control,
    "gateway": gateway,
    "forward": forward,
}
