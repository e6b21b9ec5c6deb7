"""Clients of a SASL listener that do not authenticate, or try too often, on real sockets."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.client.admin import AdminClient
from odradek.client.sasl import SaslLogin
from odradek.client.users import new_credential
from odradek.security.scram import ScramMechanism
from odradek.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from odradek.wire.messages.sasl_handshake import SaslHandshakeRequest
from support.hosts import ThreadedHost, running_host
from support.wire_client import WireClient

SETTINGS = (
    "listeners=PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms=PLAIN",
    "max.authentication.rate.per.ip=4",
)
LOGIN = SaslLogin("PLAIN", "alice", "secret")
FEW = 4


@contextlib.contextmanager
def started(folder: Path, *overrides: str) -> Iterator[ThreadedHost]:
    with running_host(folder, *SETTINGS, *overrides) as host:
        with AdminClient(host.bootstrap) as admin:
            credential = new_credential("alice", ScramMechanism.SCRAM_SHA_256, "secret", 4096, b"salt")
            assert admin.alter_user_scram_credentials(upsertions=[credential]) == {"alice": None}
        yield host


def guarded(host: ThreadedHost) -> tuple[str, int]:
    return "127.0.0.1", host.host.listeners[1].bound_port


def counted(host: ThreadedHost, name: str) -> float:
    return float(host.call(lambda: next(row.value for row in host.host.metric_rows() if row.name == name)))


@pytest.fixture
def strangers() -> Iterator[list[socket.socket]]:
    opened: list[socket.socket] = []
    yield opened
    for each in opened:
        each.close()


def is_closed(stranger: socket.socket) -> bool:
    """Wait for the end of a connection."""
    with contextlib.suppress(ConnectionError):
        return stranger.recv(1) == b""
    return True


def test_strangers_do_not_take_the_connections_of_users(
    tmp_path: Path, strangers: list[socket.socket]
) -> None:
    with started(tmp_path, f"connections.unauthenticated.max={FEW}") as host:
        strangers += [socket.create_connection(guarded(host), 10) for _ in range(3 * FEW)]
        closed = [is_closed(each) for each in strangers[: 2 * FEW]]
        there = counted(host, "odradek.connections.unauthenticated")

        with AdminClient("{}:{}".format(*guarded(host)), login=LOGIN) as admin:
            nodes = admin.describe_cluster().nodes

        assert closed == [True] * 2 * FEW
        assert there == FEW
        assert len(nodes) == 1
        assert counted(host, "odradek.connections.unauthenticated.closed") == 2 * FEW + 1


def test_a_client_that_does_not_authenticate_is_closed_and_a_user_is_not(
    tmp_path: Path, strangers: list[socket.socket]
) -> None:
    with (
        started(tmp_path, "connections.unauthenticated.max.ms=3000") as host,
        AdminClient("{}:{}".format(*guarded(host)), login=LOGIN) as admin,
    ):
        admin.describe_cluster()
        strangers.append(socket.create_connection(guarded(host), 10))

        closed = is_closed(strangers[0])  # the user is older
        nodes = admin.describe_cluster().nodes

        assert closed
        assert len(nodes) == 1
        assert counted(host, "odradek.connections.unauthenticated.closed") == 1


def test_attempts_beyond_the_rate_are_answered_later(tmp_path: Path) -> None:
    with started(tmp_path) as host, contextlib.ExitStack() as stack:
        clients = [stack.enter_context(WireClient(guarded(host))) for _ in range(7)]
        login = SaslAuthenticateRequest(auth_bytes=b"\0alice\0secret")
        for client in clients:
            client.send(SaslHandshakeRequest(mechanism="PLAIN"))
        for client in clients:
            client.send_bytes(client.frame(login, 2))

        codes = {client.answer(login, 2).error_code for client in clients}
        delayed = counted(host, "odradek.authentication.delayed")

    assert codes == {0}
    assert 1 <= delayed <= 3
