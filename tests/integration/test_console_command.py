"""``odradek console`` and the companion of a host, as processes, and the bounds of their server."""

from __future__ import annotations

import asyncio
import os
import queue
import re
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
from click.testing import CliRunner
from contrib.capture.ports import free_port
from starlette.responses import Response
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

import odradek_console
from odradek.client.admin import AdminClient
from odradek.endpoints import Address, ListenerTls
from odradek.hosting.plugin_manager import HostPluginManager
from odradek.plugin import PluginConfig
from odradek.programs.config import load_config
from odradek.programs.host import Host
from odradek.testing import RunningHost
from odradek_console.terminal.console import console
from odradek_console.view import View
from odradek_console.web.console import make_console
from odradek_console.web.server import WebServer
from odradek_console.web.server_settings import ServerSettings
from support.certificates import Files
from support.child_process import same_imports
from support.consoles import serving
from support.waiting import wait_until

pytestmark = [pytest.mark.timeout(180), pytest.mark.ci]
PATIENCE_S = 60.0
STOP_S = 30.0
"""The console ends within 5 s; a machine that stands still gets more."""
READY = re.compile(r"odradek console ready (http://\S+/)")
NOBODY = "127.0.0.1:1"


@pytest.fixture
def host(odradek_hosts: Callable[..., RunningHost]) -> RunningHost:
    return odradek_hosts(telemetry_durability="log")


@contextmanager
def running(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command, and the address of its page."""
    environment = same_imports()
    with subprocess.Popen(
        [sys.executable, "-m", "odradek_console", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    ) as process:
        try:
            lines: queue.Queue[str] = queue.Queue()
            assert process.stdout is not None
            threading.Thread(target=lambda: lines.put(process.stdout.readline()), daemon=True).start()  # type: ignore[union-attr]
            found = READY.fullmatch(lines.get(timeout=PATIENCE_S).strip())
            assert found is not None
            yield process, found[1]
        finally:
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_ready_line_names_a_page_and_a_signal_ends_it_with_an_open_stream(
    host: RunningHost, number: signal.Signals
) -> None:
    with running("--bootstrap-server", host.bootstrap) as (process, url), httpx.Client(timeout=60) as browser:
        assert browser.get(url).status_code == 200
        assert browser.get(f"{url}healthz").text == "ok\n"
        with browser.stream("GET", f"{url}events") as stream:
            chunks = stream.iter_raw()
            assert next(chunks).startswith(b"retry:")

            process.send_signal(number)

            assert process.wait(STOP_S) == 0


def test_it_ends_with_its_host_though_the_cluster_never_answers() -> None:
    with ExitStack() as stack:
        silent = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        cluster = f"127.0.0.1:{silent.getsockname()[1]}"
        process, url = stack.enter_context(running("--bootstrap-server", cluster, "--until-stdin-ends"))
        waiting = stack.enter_context(socket.create_connection(("127.0.0.1", httpx.URL(url).port or 0)))
        waiting.sendall(b"GET /subscriptions HTTP/1.1\r\nHost: localhost\r\n\r\n")
        # the reader, the watch of subscriptions and the page: each waits for an answer
        for _ in range(3):
            stack.enter_context(silent.accept()[0])

        assert process.stdin is not None
        process.stdin.close()

        assert process.wait(STOP_S) == 0


@pytest.mark.parametrize(
    ("arguments", "status", "problem"),
    [
        (["--listen", "0.0.0.0:0"], 1, "users must log in: give a file of tokens"),
        (["--listen", "here"], 2, "expected HOST:PORT"),
        (["--listen", "256.0.0.1:1", "--trusted-proxy", "10.0.0.0/8"], 1, "--listen 256.0.0.1:1: "),
        (["--trusted-proxy", "everywhere"], 2, "a network such as"),
        (["--tls-key", __file__], 2, "--tls-certificate is missing"),
        (["--tls-certificate", __file__], 2, "--tls-certificate: "),
        (["--tokens", __file__], 1, "expected TOML"),
        (["--audit-log", "/no/such/folder/audit.log"], 2, "expected a file in an existing folder"),
    ],
)
def test_what_cannot_be_served_is_said(arguments: list[str], status: int, problem: str) -> None:
    result = CliRunner().invoke(console, ["--bootstrap-server", NOBODY, *arguments])

    assert result.exit_code == status
    assert problem in result.output + str(result.exception)


def test_a_port_that_is_taken(host: RunningHost) -> None:
    result = CliRunner().invoke(console, ["--bootstrap-server", NOBODY, "--listen", host.bootstrap])

    assert result.exit_code == 1
    assert f"--listen {host.bootstrap}: " in result.output


# the server


def served(app: ASGIApp | None = None, **bounds: Any) -> AbstractContextManager[WebServer]:
    """A server in a thread, by default of pages whose cluster is away."""

    def connect() -> AdminClient:
        return AdminClient(NOBODY)

    settings = ServerSettings(address=Address("127.0.0.1", 0), **bounds)
    return serving(make_console(View(connect), connect, NOBODY), settings, app)


def connected(server: WebServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S)


def is_closed(peer: socket.socket) -> bool:
    """Whether the server has closed the connection, after what it sends."""
    try:
        while peer.recv(65_536):
            pass
    except ConnectionError:
        pass
    return True


def test_a_request_that_does_not_come_is_not_waited_for() -> None:
    with served(header_timeout_s=0.2) as server, connected(server) as silent, connected(server) as slow:
        slow.sendall(b"GET /healthz HTTP/1.1\r\nHost: lo")

        assert is_closed(silent)
        assert is_closed(slow)
        wait_until(lambda: server.counts.slow_connections == 2, "two slow connections")


def test_an_answer_that_is_not_read_is_given_up() -> None:
    with served(Response(bytes(32 << 20)), stall_timeout_s=0.2) as server, connected(server) as deaf:
        deaf.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")

        wait_until(lambda: server.counts.slow_connections == 1, "it is given up", PATIENCE_S)
        assert is_closed(deaf)


def test_connections_are_bounded() -> None:
    with served(max_connections=2, header_timeout_s=PATIENCE_S) as server, ExitStack() as stack:
        kept = [stack.enter_context(connected(server)) for _ in range(2)]
        wait_until(lambda: len(server.server_state.connections) == 2, "two connections")
        further = stack.enter_context(connected(server))

        assert is_closed(further)
        kept[0].sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert kept[0].recv(100).startswith(b"HTTP/1.1 200")
        assert server.counts.refused_connections == 1


def test_the_body_of_an_answer_does_not_wait_for_its_headers() -> None:
    with served() as server, connected(server):
        wait_until(lambda: len(server.server_state.connections) == 1, "the connection")
        (connection,) = server.server_state.connections
        assert isinstance(connection, H11Protocol)
        at_server = connection.transport.get_extra_info("socket")

        assert at_server.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_headers_are_bounded() -> None:
    with served(max_header_bytes=1_000) as server, connected(server) as peer:
        peer.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: " + 2_000 * b"x")

        assert peer.recv(100).startswith(b"HTTP/1.1 400")


def test_the_pages_over_tls(tmp_path: Path) -> None:
    files = Files(tmp_path)
    context = ssl.create_default_context(cafile=files.ca)
    tls = ListenerTls(certificate=Path(files.server))
    with served(tls=tls, handshake_timeout_s=PATIENCE_S) as server:
        assert server.url.startswith("https://127.0.0.1:")
        with httpx.Client(verify=context, timeout=60) as browser:
            assert browser.get(server.url).status_code == 200


def test_a_handshake_that_does_not_come_is_not_waited_for(tmp_path: Path) -> None:
    tls = ListenerTls(certificate=Path(Files(tmp_path).server))
    with served(tls=tls, handshake_timeout_s=0.2) as server, connected(server) as silent:
        assert is_closed(silent)


# beside a host


async def page_opens(port: int) -> None:
    """Wait until the page of the companion can be opened."""
    async with httpx.AsyncClient(timeout=60) as browser:
        end_s = time.monotonic() + PATIENCE_S
        while time.monotonic() < end_s:
            try:
                answer = await browser.get(f"http://127.0.0.1:{port}/")
            except httpx.TransportError:
                await asyncio.sleep(0.05)
            else:
                assert answer.status_code == 200
                return
    raise AssertionError("no page")


def test_a_host_runs_it_and_starts_it_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", same_imports()["PYTHONPATH"])
    port = free_port()
    plugins = HostPluginManager()
    plugins.add("console", odradek_console, "odradek-console", "1.0")
    config = load_config(
        None,
        [
            "listeners=PLAINTEXT://127.0.0.1:0",
            f"data.dir={tmp_path}",
            f"plugins.console.listener=127.0.0.1:{port}",
        ],
    )

    async def scenario() -> tuple[int, int, int | None]:
        host = Host(config, plugins=plugins)
        try:
            await host.start()
            (runner,) = host.ground.companions.runners
            await page_opens(port)
            assert runner.companion.status("") == {"page": f"http://127.0.0.1:{port}/", "answers": "yes"}
            assert runner.process is not None
            first = runner.process.pid
            os.kill(first, signal.SIGKILL)
            async with asyncio.timeout(PATIENCE_S):
                while runner.starts < 2 or runner.process is None or runner.process.pid == first:
                    await asyncio.sleep(0.02)
            await page_opens(port)
            return first, runner.process.pid, runner.process.returncode
        finally:
            await host.stop()
            assert runner.process is not None
            assert runner.process.returncode is not None

    first, second, ended = asyncio.run(scenario())

    assert first != second
    assert ended is None


def test_the_status_tells_that_the_page_does_not_open() -> None:
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        companion = odradek_console.odradek_companion(PluginConfig("plugins.console", {"listener": address}))

        assert companion is not None
        status = companion.status("")

    assert status == {"page": f"http://{address}/", "answers": "no: Connection refused"}
