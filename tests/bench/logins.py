"""CPU time of one login, by mechanism, and the time to serve a storm of clients that come back at once.

A client connects, logs in, and asks for the metadata of no topic; the server's CPU time is divided by the
clients. The row ``plain`` has no login, so the difference to it is what a login costs. With ``--kafka`` an
Apache Kafka node serves the row ``plain``, too.

To compare two versions, run both in turn on the same machine.

Usage, from the folder above: ``python -m bench.logins [--clients 2000] [--at-once 16] [--kafka]``
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from bench.harness import Server, UnavailableError, cores, cpu_ns, head, running, spread
from odradek.client.admin import AdminClient
from odradek.client.sasl import new_nonce
from odradek.client.users import new_credential
from odradek.security.oauth.bearer_message import client_first
from odradek.security.scram import ScramMechanism
from odradek.security.scram_client import ScramSaslClient
from odradek.wire.codec import decode, encode
from odradek.wire.header import RequestHeader, request_header
from odradek.wire.messages.metadata import MetadataRequest
from odradek.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from odradek.wire.messages.sasl_handshake import SaslHandshakeRequest
from support.tokens import claims_of, jwks, public_jwk, signed

SCRAM = ScramMechanism.SCRAM_SHA_256
OPEN_FILES = 8_192
RESPONSE_HEADER_BYTES = 4


@dataclass(frozen=True, slots=True)
class Row:
    """A mechanism, with the messages of its client."""

    name: str
    mechanism: str | None
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
    client = QuickScramClient("alice", "secret")
    client.finish(await connection.token(client.final(await connection.token(client.first()))))


async def log_in_with_plain(connection: Connection) -> None:
    await connection.token(b"\0alice\0secret")


def log_in_with_token(algorithm: str) -> Callable[[Connection], Any]:
    token = client_first(signed(claims_of("alice", time.time()), algorithm, kid=algorithm))

    async def log_in(connection: Connection) -> None:
        assert await connection.token(token) == b""

    return log_in


ROWS = (
    Row("plain", None),
    Row("SCRAM-SHA-256", "SCRAM-SHA-256", log_in_with_scram),
    Row("OAUTHBEARER RS256", "OAUTHBEARER", log_in_with_token("RS256")),
    Row("OAUTHBEARER ES256", "OAUTHBEARER", log_in_with_token("ES256")),
    Row("PLAIN", "PLAIN", log_in_with_plain),
)


@asynccontextmanager
async def connected(port: int) -> AsyncIterator[Connection]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield Connection(reader, writer)
    finally:
        writer.transport.abort()


async def client(row: Row, port: int, at_once: asyncio.Semaphore) -> None:
    """Connect, log in, ask."""
    async with at_once, connected(port) as connection:
        if row.login is not None:
            await connection.ask(SaslHandshakeRequest(mechanism=row.mechanism or ""), 1)
            await row.login(connection)
        assert await connection.ask(MetadataRequest(topics=[]), 1)


async def clients(row: Row, port: int, count: int, at_once: int) -> None:
    gate = asyncio.Semaphore(at_once)
    async with asyncio.TaskGroup() as group:
        for _ in range(count):
            group.create_task(client(row, port, gate))


def measured(row: Row, server: Server, port: int, count: int, at_once: int) -> tuple[float, float]:
    """Milliseconds on a core for each client, and seconds until all were served."""
    before_ns, began_s = cpu_ns(server.pid), time.monotonic()
    asyncio.run(clients(row, port, count, at_once))
    return (cpu_ns(server.pid) - before_ns) / count / 1e6, time.monotonic() - began_s


def serve(stack: ExitStack, folder: Path, core: int | None) -> tuple[Server, int, int]:
    """A host with a user and keys: the process, its open port and its guarded one."""
    keys = folder / "keys.json"
    keys.write_bytes(jwks(*(public_jwk(each, kid=each) for each in ("RS256", "ES256"))))
    program = [sys.executable, "-m", "bench.logins_host", str(folder / "data"), keys.as_uri()]
    server = stack.enter_context(running(program, core=core))
    guarded = json.loads((folder / "data" / "guarded.json").read_text())
    with AdminClient(f"127.0.0.1:{server.port}") as admin:
        admin.alter_user_scram_credentials(
            upsertions=[new_credential("alice", SCRAM, "secret", 4096, b"salt of a bench")]
        )
    return server, server.port, guarded


def report(name: str, one: Sequence[tuple[float, float]], storm: Sequence[tuple[float, float]]) -> None:
    """Print one row."""
    cpu = spread([cpu_ms for cpu_ms, _ in one], 3)
    cpu_storm = spread([cpu_ms for cpu_ms, _ in storm], 3)
    print(f"{name:24} {cpu:>24} {cpu_storm:>24} {spread([each_s for _, each_s in storm], 2):>18}", flush=True)


def main(arguments: argparse.Namespace) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (OPEN_FILES, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    print(head("logins"))
    print(f"{'row':24} {'ms of CPU for each':>24} {'in the storm':>24} {'s until served':>18}")
    core, _ = cores()
    with tempfile.TemporaryDirectory() as root, ExitStack() as stack:
        host, plain_port, guarded = serve(stack, Path(root), core)
        jobs = [(row.name, row, host, plain_port if row.login is None else guarded) for row in ROWS]
        if arguments.kafka:
            try:
                kafka = stack.enter_context(running([sys.executable, "-m", "bench.kafka_broker"], core=core))
                jobs.append(("plain, Apache Kafka", ROWS[0], kafka, kafka.port))
            except UnavailableError as reason:
                print(f"kafka: skipped, {reason}", file=sys.stderr)
        for name, row, server, port in jobs:
            measured(row, server, port, 200, arguments.at_once)
            counts = (arguments.clients // 2, arguments.at_once), (arguments.clients, arguments.clients)
            one, storm = (
                [measured(row, server, port, *count) for _ in range(arguments.rounds)] for count in counts
            )
            report(name, one, storm)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--clients", type=int, default=2_000)
    parser.add_argument("--at-once", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kafka", action="store_true", help="with an Apache Kafka node")
    main(parser.parse_args())
