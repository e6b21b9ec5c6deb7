"""Event streams of one user leave room for those of others, at a real server."""

from __future__ import annotations

import socket
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import pytest

from odradek.client.admin import AdminClient
from odradek.endpoints import Address
from odradek_console.view import View
from odradek_console.web.access import Access
from odradek_console.web.access_settings import AccessSettings
from odradek_console.web.console import make_console
from odradek_console.web.server_settings import ServerSettings
from support.consoles import LISTEN, serving
from support.waiting import wait_until

pytestmark = pytest.mark.timeout(180)
PATIENCE_S = 60.0
ANN, OLI = "a-token-for-looking-1", "a-token-for-acting-22"
NOBODY = "127.0.0.1:1"


@pytest.fixture
def access(tmp_path: Path) -> Access:
    tokens = tmp_path / "tokens.toml"
    tokens.write_text(
        f'[[token]]\nname = "ann"\nrole = "viewer"\ntoken = "{ANN}"\n'
        f'[[token]]\nname = "oli"\nrole = "viewer"\ntoken = "{OLI}"\n'
    )
    tokens.chmod(0o600)
    return Access(AccessSettings(tokens=tokens), LISTEN)


def test_streams_of_one_user_leave_room_for_others(access: Access) -> None:
    def connect() -> AdminClient:
        return AdminClient(NOBODY)

    console = make_console(View(connect), connect, NOBODY, access)
    console.stream_interval_s = 0.05

    def opened(stack: ExitStack, token: str, port: int) -> str:
        """The status of a stream, and what is said if there is none."""
        peer = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S))
        peer.sendall(
            f"GET /events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
        )
        head, _, body = peer.recv(4_096).partition(b"\r\n\r\n")
        status = head.split()[1].decode()
        return status if status == "200" else f"{status} {(body or peer.recv(4_096)).decode().strip()}"

    with serving(console, ServerSettings(address=Address("127.0.0.1", 0))) as server, ExitStack() as stack:
        found = Counter(opened(stack, ANN, server.port) for _ in range(125))
        other = opened(stack, OLI, server.port)

        text = "20 pages of ann are live already: close one; reload this page to renew it"
        assert found == {"200": 20, f"503 {text}": 105}
        assert other == "200"
        assert (console.counts["streams"], console.counts["refused_streams"]) == (21, 105)

        stack.close()
        wait_until(lambda: console.counts["streams"] == 0, "the streams end with their connections")
        assert opened(stack, ANN, server.port) == "200"
