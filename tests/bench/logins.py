"""CPU time of one login, by mechanism, and the time to serve a storm of clients that come back at once.

A client connects, logs in, and asks for the metadata of no topic; the server's CPU time is divided by the
clients. The rows without a mechanism have no login, so the difference to them is what a login costs. With
``--kafka`` an Apache Kafka node serves the same clients on the same core, except those with tokens; before
each row it serves as many clients as ``--warm-up`` says, so that its code is compiled.

To compare two versions, run both in turn on the same machine.

Usage, from the folder above: ``python -m bench.logins [--clients 2000] [--at-once 16] [--rounds 3] [--kafka]
[--warm-up 3000] [--only TEXT]``
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import ssl
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from bench.harness import cores, cpu_ns, head, spread
from bench.secured import KAFKA, PASSWORD, PLAIN, SASL, SASL_TLS, SCRAM, TLS, USER, Secured, contexts, servers
from odradek.client.sasl import new_nonce
from odradek.security.oauth.bearer_message import client_first
from odradek.security.scram_client import ScramSaslClient
from odradek.wire.codec import decode, encode
from odradek.wire.header import RequestHeader, request_header
from odradek.wire.messages.metadata import MetadataRequest
from odradek.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from odradek.wire.messages.sasl_handshake import SaslHandshakeRequest
from support.issuer import JWKS_KEY
from support.tokens import claims_of, jwks, public_jwk, signed

OPEN_FILES = 8_192
RESPONSE_HEADER_BYTES = 4
PATIENCE_S = 120


@dataclass(frozen=True, slots=True)
class Row:
    """A mechanism, with the messages of its client."""

    name: str
    listener: str
    mechanism: str | None = None
    login: Callable[[Connection], Any] | None = None


@dataclass(slots=True)
class Connection:
    """One client."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def ask(self, request: Any, version: int) -> bytes:
        """Send a request; return the response after its header."""
        frame = request_header(RequestHeader(request.API_KEY, version, 1, "bench"), False)
        frame += encode(request, version)
        self.writer.write(len(frame).to_bytes(4) + frame)
        size = int.from_bytes(await self.reader.readexactly(4))
        return (await self.reader.readexactly(size))[RESPONSE_HEADER_BYTES:]

    async def token(self, token: bytes) -> bytes:
        """Send a token of SASL; return the server's."""
        body = await self.ask(SaslAuthenticateRequest(auth_bytes=token), 1)
        response: SaslAuthenticateResponse = decode(SaslAuthenticateResponse, 1, body)
        assert response.error_code == 0, response.error_message
        return response.auth_bytes


@cache
def salted(password: str, salt: bytes, iterations: int) -> bytes:
    """Salt a password once: the load must not cost more than what is measured."""
    return SCRAM.salted_password(password, salt, iterations)


class QuickScramClient(ScramSaslClient):
    """A client that has salted its password before, as clients that keep their keys do."""

    def __init__(self, user: str, password: str) -> None:
        super().__init__(Salting(), user, password, new_nonce())  # type: ignore[arg-type]  # see Salting


class Salting:
    """SCRAM-SHA-256 with `salted`."""

    salted_password = staticmethod(salted)

    def __getattr__(self, name: str) -> Any:
        return getattr(SCRAM, name)


async def log_in_with_scram(connection: Connection) -> None:
    client = QuickScramClient(USER, PASSWORD)
    client.finish(await connection.token(client.final(await connection.token(client.first()))))


async def log_in_with_plain(connection: Connection) -> None:
    await connection.token(f"\0{USER}\0{PASSWORD}".encode())


def log_in_with_token(algorithm: str) -> Callable[[Connection], Any]:
    token = client_first(signed(claims_of(USER, time.time()), algorithm, kid=algorithm))

    async def log_in(connection: Connection) -> None:
        assert await connection.token(token) == b""

    return log_in


OAUTH = "OAUTHBEARER"
ROWS = (
    Row("no login", PLAIN),
    Row("no login, TLS", TLS),
    Row("SCRAM-SHA-256", SASL, "SCRAM-SHA-256", log_in_with_scram),
    Row("SCRAM-SHA-256, TLS", SASL_TLS, "SCRAM-SHA-256", log_in_with_scram),
    Row("PLAIN", SASL, "PLAIN", log_in_with_plain),
    Row("OAUTHBEARER RS256", SASL, OAUTH, log_in_with_token("RS256")),
    Row("OAUTHBEARER ES256", SASL, OAUTH, log_in_with_token("ES256")),
)


@asynccontextmanager
async def connected(port: int, context: ssl.SSLContext | None) -> AsyncIterator[Connection]:
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", port, ssl=context, ssl_handshake_timeout=PATIENCE_S if context else None
    )
    try:
        yield Connection(reader, writer)
    finally:
        writer.transport.abort()


@dataclass(frozen=True, slots=True)
class Load:
    """The clients of one row at one server."""

    row: Row
    server: Secured
    context: ssl.SSLContext | None

    async def client(self, at_once: asyncio.Semaphore) -> None:
        """Connect, log in, ask."""
        row = self.row
        async with at_once, connected(self.server.ports[row.listener], self.context) as connection:
            if row.login is not None:
                await connection.ask(SaslHandshakeRequest(mechanism=row.mechanism or ""), 1)
                await row.login(connection)
            assert await connection.ask(MetadataRequest(topics=[]), 1)

    async def clients(self, count: int, at_once: int) -> None:
        gate = asyncio.Semaphore(at_once)
        async with asyncio.TaskGroup() as group:
            for _ in range(count):
                group.create_task(self.client(gate))

    def measured(self, count: int, at_once: int) -> Figure:
        """Serve some clients."""
        before_ns, began_s, own_s = cpu_ns(self.server.pid), time.monotonic(), time.process_time()
        asyncio.run(self.clients(count, at_once))
        spent_ms = (cpu_ns(self.server.pid) - before_ns) / 1e6
        return Figure(spent_ms / count, time.monotonic() - began_s, time.process_time() - own_s)


@dataclass(frozen=True, slots=True)
class Figure:
    """The cost of some clients."""

    cpu_ms: float
    """Milliseconds of the server for each client."""
    wall_s: float
    """Until all were served."""
    own_s: float
    """CPU time of the clients."""


def report(load: Load, one: Sequence[Figure], storm: Sequence[Figure]) -> None:
    """Print one row."""
    cells = [
        spread([each.cpu_ms for each in one], 3),
        spread([each.cpu_ms for each in storm], 3),
        spread([each.wall_s for each in storm], 2),
        spread([each.own_s for each in storm], 2),
    ]
    title = f"{load.row.name}: {load.server.name}"
    print(f"{title:40}" + "".join(f"{cell:>22}" for cell in cells), flush=True)


def main(arguments: argparse.Namespace) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (OPEN_FILES, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    print(head("logins"))
    titles = ("ms of CPU for each", "in the storm", "s until served", "s of CPU, clients")
    print(f"{'':40}" + "".join(f"{title:>22}" for title in titles), flush=True)
    core, _ = cores()
    with tempfile.TemporaryDirectory() as root:
        keys = Path(root) / "keys.json"
        keys.write_bytes(jwks(*(public_jwk(each, kid=each) for each in ("RS256", "ES256"))))
        tokens = (f"sasl.enabled.mechanisms=SCRAM-SHA-256,PLAIN,{OAUTH}", f"{JWKS_KEY}={keys.as_uri()}")
        with servers(Path(root), core, *tokens, kafka=arguments.kafka) as running:
            known = contexts(Path(root))
            for row in ROWS:
                loads = [
                    Load(row, server, known[row.listener])
                    for server in running
                    if arguments.only in row.name and (server.name != KAFKA or row.mechanism != OAUTH)
                ]
                for load in loads:
                    measure(load, arguments)


def measure(load: Load, arguments: argparse.Namespace) -> None:
    """Warm up, measure, print."""
    load.measured(arguments.warm_up if load.server.name == KAFKA else 200, arguments.at_once)
    one = [load.measured(arguments.clients // 2, arguments.at_once) for _ in range(arguments.rounds)]
    storm = [load.measured(arguments.clients, arguments.clients) for _ in range(arguments.rounds)]
    report(load, one, storm)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--clients", type=int, default=2_000)
    parser.add_argument("--at-once", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kafka", action="store_true", help="with an Apache Kafka node")
    parser.add_argument("--warm-up", type=int, default=3_000, help="clients of each row that warm Kafka up")
    parser.add_argument("--only", default="", help="only rows whose name contains this text")
    main(parser.parse_args())
