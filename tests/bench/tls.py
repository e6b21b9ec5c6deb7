"""The cost of TLS to the host: CPU per handshake by kind of key, and per push and produce beside plaintext.

Usage, from the folder above: ``python -m bench.tls [--rounds 5] [--handshakes 300] [--requests 2000]``

The client is Python's, so only the host's CPU time is shown. No session is resumed.
"""

from __future__ import annotations

import argparse
import socket
import ssl
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.frames import API_VERSIONS_V3, GET_NEW_INSTANCE, NIL_UUID, ask, frame
from bench.harness import cpu_ns, head, spread
from odradek.security.private_ca import LOOPBACK, RSA
from odradek.wire.codec import encode
from odradek.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from odradek.wire.messages.push_telemetry import PushTelemetryRequest
from support.batches import batch_of
from support.certificates import Files, authority, client
from support.hosts import ServeProcess

PLAIN, TLS = "PLAINTEXT", "SSL"
LISTENERS: Final = (
    "PLAINTEXT://127.0.0.1:0", "SSL://127.0.0.1:0", "SSL_RSA://127.0.0.1:0", "SSL_MUTUAL://127.0.0.1:0"
)  # fmt: skip
PUSH_BYTES: Final = 5_400
"""A push of librdkafka."""
RECORD_BYTES: Final = (100, 10_000, 500_000)


@contextmanager
def host(folder: Path) -> Iterator[tuple[int, dict[str, int]]]:
    """A host with all listeners: its process id, and the ports by listener name."""
    files = Files(folder)
    rsa = files.write("rsa.pem", authority().issue("localhost", LOOPBACK, kind=RSA).both)
    settings = (
        f"listeners={','.join(LISTENERS)}", f"data.dir={folder / 'data'}", *files.settings,
        f"listener.name.ssl_rsa.ssl.keystore.location={rsa}",
        "listener.name.ssl_mutual.ssl.client.auth=required", "subscriptions.bench.metrics=*",
    )  # fmt: skip
    arguments = [part for each in settings for part in ("--set", each)]
    serve = ServeProcess(*arguments)
    try:
        addresses = serve.ready.split("listeners=")[1].split(" ")[0].split(",")
        ports = {each.split("://")[0]: int(each.rpartition(":")[2]) for each in addresses}
        yield serve.process.pid, ports
    finally:
        serve.terminate()


def connected(port: int, context: ssl.SSLContext | None) -> socket.socket:
    """A connection that has sent a first request, so that the host has finished its handshake."""
    plain = socket.create_connection(("127.0.0.1", port))
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    found = plain if context is None else context.wrap_socket(plain, server_hostname="127.0.0.1")
    ask(found, API_VERSIONS_V3)
    return found


def connect_once(port: int, context: ssl.SSLContext | None) -> None:
    """Connect, wait for an answer, leave."""
    connected(port, context).close()


def cpu_us(pid: int, times: int, work: Callable[[], object]) -> float:
    """The host's CPU time for each of some calls, microseconds."""
    begin = cpu_ns(pid)
    for _ in range(times):
        work()
    return (cpu_ns(pid) - begin) / times / 1000


def produce(size: int) -> bytes:
    """A Produce request with one record."""
    data = PartitionProduceData(index=0, records=batch_of(bytes(size)))
    request = ProduceRequest(
        acks=1, timeout_ms=1000, topic_data=[TopicProduceData(name=f"bench-{size}", partition_data=[data])]
    )
    return frame(ProduceRequest.API_KEY, 9, encode(request, 9))


def push() -> bytes:
    """A push that the host answers without opening it: the id is unknown. The bytes are decrypted all the
    same."""
    request = PushTelemetryRequest(client_instance_id=NIL_UUID, metrics=bytes(PUSH_BYTES))
    return frame(PushTelemetryRequest.API_KEY, 0, encode(request, 0))


def contexts(folder: Path) -> dict[str, ssl.SSLContext | None]:
    """The client's context by listener."""
    found: dict[str, ssl.SSLContext | None] = {PLAIN: None}
    for name in (TLS, "SSL_RSA", "SSL_MUTUAL"):
        context = ssl.create_default_context(cadata=authority().issued.certificate)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        if name == "SSL_MUTUAL":
            file = folder / "bench-client.pem"
            file.write_text(client().both)
            context.load_cert_chain(file)
        found[name] = context
    return found


def main(arguments: argparse.Namespace) -> None:
    """Measure and print."""
    print(head("tls"), file=sys.stderr)
    figures: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as root, host(Path(root)) as (pid, ports):
        clients = contexts(Path(root))
        for _ in range(arguments.rounds):
            for name, context in clients.items():
                connect = partial(connect_once, ports[name], context)
                found = cpu_us(pid, arguments.handshakes, connect)
                figures.setdefault(f"connect, one request, close: {TITLES[name]}", []).append(found)
            for title, request in requests().items():
                for name in (PLAIN, TLS):
                    with connected(ports[name], clients[name]) as connection:
                        ask(connection, GET_NEW_INSTANCE)
                        send = partial(ask, connection, request)
                        send()
                        found = cpu_us(pid, arguments.requests, send)
                    figures.setdefault(f"{title}: {TITLES[name]}", []).append(found)
    for title, values in figures.items():
        print(f"{title:<60}{spread(values):>28} µs")


TITLES: Final = {
    PLAIN: "plaintext",
    TLS: "TLS 1.3, P-256",
    "SSL_RSA": "TLS 1.3, RSA-2048",
    "SSL_MUTUAL": "TLS 1.3, P-256, client certificate",
}


def requests() -> dict[str, bytes]:
    """The requests to compare."""
    found = {f"push of {PUSH_BYTES} B": push()}
    return found | {f"produce of {size} B": produce(size) for size in RECORD_BYTES}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--handshakes", type=int, default=300)
    parser.add_argument("--requests", type=int, default=1000)
    main(parser.parse_args())
