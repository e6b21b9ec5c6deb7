"""The cost of TLS to the host: CPU per handshake by kind of key, per push and produce, and per megabyte of
records that busy clients produce and fetch, beside plaintext.

Usage, from the folder above: ``python -m bench.tls [--kafka] [--rounds 5] [--handshakes 300]
[--requests 1000] [--warm-up 2000] [--only records]``

The client is Python's, that of the records librdkafka, so only the server's CPU time is shown. No session is
resumed. With ``--kafka`` an Apache Kafka node takes turns with the host on the same core.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from ssl import SSLContext
from typing import Final

from bench import tls_records
from bench.comparison import Comparison, Goal, compared
from bench.frames import GET_NEW_INSTANCE, NIL_UUID, ask, frame
from bench.harness import UnavailableError, cores, cpu_ns, head, skip, spread
from bench.secured import (
    KAFKA,
    ODRADEK,
    PLAIN,
    TLS,
    TLS_MUTUAL,
    TLS_RSA,
    Secured,
    connected,
    contexts,
    servers,
)
from odradek.wire.codec import decode, encode
from odradek.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from odradek.wire.messages.push_telemetry import PushTelemetryRequest
from support.batches import batch_of

PUSH_BYTES: Final = 5_400
"""A push of librdkafka."""
RECORD_BYTES: Final = (100, 10_000, 500_000)
PRODUCE_VERSION: Final = 9
RESPONSE_HEADER_BYTES: Final = 5
REQUESTS, RECORDS = "requests", "records"
TITLES: Final = {
    PLAIN: "plaintext",
    TLS: "TLS 1.3, P-256",
    TLS_RSA: "TLS 1.3, RSA-2048",
    TLS_MUTUAL: "TLS 1.3, P-256, client certificate",
}
Figures = dict[str, dict[str, list[float]]]
"""Microseconds by row and server."""


def connect_once(port: int, context: SSLContext | None) -> None:
    """Connect, wait for an answer, leave."""
    connected(port, context).close()


def cpu_us(pid: int, times: int, work: Callable[[], object]) -> float:
    """The server's CPU time for each of some calls, microseconds."""
    begin = cpu_ns(pid)
    for _ in range(times):
        work()
    return (cpu_ns(pid) - begin) / times / 1000


def topic_of(size: int) -> str:
    return f"bench-{size}"


def produce(size: int) -> bytes:
    """A Produce request with one record."""
    data = PartitionProduceData(index=0, records=batch_of(bytes(size)))
    request = ProduceRequest(
        acks=1, timeout_ms=1000, topic_data=[TopicProduceData(name=topic_of(size), partition_data=[data])]
    )
    return frame(ProduceRequest.API_KEY, PRODUCE_VERSION, encode(request, PRODUCE_VERSION))


def push() -> bytes:
    """A push that is answered without being opened: the id is nil. The bytes are decrypted all the same."""
    request = PushTelemetryRequest(client_instance_id=NIL_UUID, metrics=bytes(PUSH_BYTES))
    return frame(PushTelemetryRequest.API_KEY, 0, encode(request, 0))


def requests() -> dict[str, bytes]:
    """The requests to compare."""
    found = {f"push of {PUSH_BYTES} B": push()}
    return found | {f"produce of {size} B": produce(size) for size in RECORD_BYTES}


def check_produced(answer: bytes) -> None:
    """Make sure that a record was appended."""
    response: ProduceResponse = decode(ProduceResponse, PRODUCE_VERSION, answer, RESPONSE_HEADER_BYTES)
    assert response.responses[0].partition_responses[0].error_code == 0, response


def round_of(
    server: Secured, clients: Mapping[str, SSLContext | None], options: argparse.Namespace
) -> dict[str, float]:
    """One figure for each row."""
    found = {}
    for name, title in TITLES.items():
        connect = partial(connect_once, server.ports[name], clients[name])
        found[f"connect, one request, close: {title}"] = cpu_us(server.pid, options.handshakes, connect)
    for what, request in requests().items():
        for name in (PLAIN, TLS):
            with connected(server.ports[name], clients[name]) as connection:
                ask(connection, GET_NEW_INSTANCE)
                send = partial(ask, connection, request)
                answer = send()
                if what.startswith("produce"):
                    check_produced(answer)
                found[f"{what}: {TITLES[name]}"] = cpu_us(server.pid, options.requests, send)
    return found


def warm_up(server: Secured, clients: Mapping[str, SSLContext | None], count: int) -> None:
    """Let a JVM compile what the rounds use."""
    for name in TITLES:
        for _ in range(count):
            connect_once(server.ports[name], clients[name])
    for request in requests().values():
        for name in (PLAIN, TLS):
            with connected(server.ports[name], clients[name]) as connection:
                for _ in range(count):
                    ask(connection, request)


def measure(options: argparse.Namespace) -> tuple[Figures, tls_records.Windows]:
    """Let the servers take turns."""
    figures: Figures = {}
    windows: tls_records.Windows = {}
    topics = [*(topic_of(size) for size in RECORD_BYTES), *tls_records.topics()]
    core, load_core = cores()
    with (
        tempfile.TemporaryDirectory() as root,
        servers(Path(root), core, kafka=options.kafka, topics=topics) as running,
    ):
        if options.only != REQUESTS:
            windows = tls_records.measure(running, Path(root), load_core, options.rounds)
        clients = contexts(Path(root))
        for server in running if options.only != RECORDS else ():
            warm_up(server, clients, options.warm_up if server.name == KAFKA else options.warm_up // 20)
        for _ in range(options.rounds if options.only != RECORDS else 0):
            for server in running:
                for row, value in round_of(server, clients, options).items():
                    figures.setdefault(row, {}).setdefault(server.name, []).append(value)
    return figures, windows


def report(figures: Figures, windows: tls_records.Windows, options: argparse.Namespace) -> None:
    """Print a line for each row."""
    tls_records.report(windows)
    print(f"{'CPU in µs':<60}{ODRADEK:>28}{KAFKA if options.kafka else '':>28}")
    for row, values in figures.items():
        print(f"{row:<60}" + "".join(f"{spread(each):>28}" for each in values.values()))


def comparisons(rounds: int) -> Iterator[Comparison]:
    """The lines of the table."""
    options = arguments_of(["--kafka", "--rounds", str(rounds), "--handshakes", "200", "--requests", "400"])
    try:
        figures, windows = measure(options)
    except UnavailableError as reason:
        skip(KAFKA, reason)
        options.kafka = False
        figures, windows = measure(options)
    report(figures, windows, options)
    for row, values in figures.items():
        medians = {server: statistics.median(each) for server, each in values.items()}
        yield from compared(row, "µs", medians, [ODRADEK], [Goal(peer=KAFKA, most=1)])
    yield from tls_records.lines(windows)


def arguments_of(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--handshakes", type=int, default=300)
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--only", choices=(REQUESTS, RECORDS), help="one half of the rows")
    parser.add_argument("--kafka", action="store_true", help="with an Apache Kafka node")
    parser.add_argument(
        "--warm-up",
        type=int,
        default=2000,
        help="connections and requests of each kind before; a 20th for the host",
    )
    return parser.parse_args(argv)


if __name__ == "__main__":
    given = arguments_of(sys.argv[1:])
    print(head("tls"), file=sys.stderr)
    report(*measure(given), given)
