"""What strangers send to the listeners of all programs: the log has few lines of it, and no traceback."""

from __future__ import annotations

import contextlib
import socket
import ssl
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from odradek.wire.messages.api_versions import ApiVersionsRequest
from support.broker_listener import framed
from support.certificates import Files
from support.gateways import GatewayProcess
from support.hosts import ServeProcess, about_itself
from support.waiting import wait_until

pytestmark = pytest.mark.ci

REPEATED: Final = 8
MOST_LINES: Final = 3
"""For all requests of one kind: lines are sampled."""
LATE: Final = 2
"""The lines of the kind before may come with those of a kind."""
READ_TIMEOUT_S: Final = 20.0
LOOPBACK: Final = "127.0.0.1"
LOGINS: Final = (" odradek.audit: ", ": authentication failed: ")
"""Refused logins: the audit log is complete, and the other has up to 60 lines a minute."""


def post(headers: bytes, body: bytes = b"", path: bytes = b"/v1/metrics") -> bytes:
    kind = b"Content-Type: application/x-protobuf\r\n"
    return b"POST " + path + b" HTTP/1.1\r\nHost: localhost\r\n" + kind + headers + b"\r\n" + body


def hello() -> bytes:
    """The first message of a client of TLS."""
    context = ssl.create_default_context()
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(incoming, outgoing, server_hostname="localhost").do_handshake()
    return outgoing.read()


def kafka() -> bytes:
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    return framed(request, 3)


H2: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
NOISE: Final = {
    "header of 9000 bytes": post(b"X-Long: " + b"x" * 9_000 + b"\r\n"),
    "path of 9000 bytes": post(b"", path=b"/" + b"x" * 9_000),
    "header of a megabyte": post(b"X-Long: " + b"x" * (1 << 20) + b"\r\n"),
    "many headers": post(b"X: y\r\n" * 20_000),
    "header without a colon": post(b"nothing\r\n"),
    "two lengths": post(b"Content-Length: 1\r\nContent-Length: 2\r\n"),
    "negative length": post(b"Content-Length: -1\r\n"),
    "half a body": post(b"Content-Length: 1000000\r\n", b"x" * 100),
    "body that does not end": post(b"Transfer-Encoding: chunked\r\n", b"10000\r\n" + b"x" * 65_536 + b"\r\n"),
    "nonsense in chunks": post(b"Transfer-Encoding: chunked\r\n", b"zz\r\nnonsense\r\n" * 50),
    "huge chunk": post(b"Transfer-Encoding: chunked\r\n", b"f" * 40 + b"\r\n"),
    "nonsense after a request": post(b"Content-Length: 2\r\n", b"{}" + b"\x00nonsense\r\n\r\n" * 50),
    "bad gzip": post(b"Content-Encoding: gzip\r\nContent-Length: 4\r\n", b"abcd"),
    "bad url": b"GET http://[::1:80/ HTTP/1.1\r\nHost: [\r\n\r\n",
    "bad query": b"GET /metrics?shard=\xff%zz HTTP/1.1\r\nHost: a\r\nAccept: ;;;q=x\r\n\r\n",
    "version that does not exist": b"GET / HTTP/9.9\r\nHost: localhost\r\n\r\n",
    "upgrade": b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    "expectation": post(b"Expect: a miracle\r\nContent-Length: 1\r\n", b"x"),
    "hello of TLS": hello(),
    "half a hello": hello()[:50],
    "Kafka": kafka(),
    "unknown Kafka": b"\x00\x00\x00\x0c" + b"\x7f\xff" * 6,
    "huge Kafka": b"\x7f\xff\xff\xff" + b"\x00" * 100,
    "HTTP/2": H2 + b"\x00\x00\x00\x04\x00\x00\x00\x00\x00" + b"\xff" * 400,
    "noise": bytes(range(256)) * 40,
    "zeros": bytes(10_000),
    "lines": b"\r\n" * 5_000,
    "nothing": b"",
}


OF_PLUGINS: Final = ("console", "metrics", "otlp-http", "otlp-grpc", "prometheus")


class Programs:
    """A host with every listener there is, and a gateway in front of it."""

    def __init__(self, folder: Path) -> None:
        self.files = Files(folder)
        names = [name + suffix for suffix in ("", "-ssl") for name in OF_PLUGINS]
        self.ports = dict(zip(names, free_ports(len(names)), strict=True))
        self.host = self.started(folder, "serve", "")
        self.encrypted = self.started(folder, "encrypted", "-ssl")
        listeners = f"listeners=PLAINTEXT://{LOOPBACK}:0,SSL://{LOOPBACK}:0"
        file = self.written("gateway", listeners, f"data.dir={folder / 'gateway'}", *self.files.settings)
        self.gateway = GatewayProcess("--upstream", self.host.bootstrap, "--config", file)
        self.ephemeral = ServeProcess("--ephemeral")
        self.ports |= zip(("plain", "ssl", "sasl"), bound(self.host), strict=True)
        self.ports |= zip(("gateway", "gateway-ssl"), bound(self.gateway), strict=True)
        self.ports["control"] = int(self.ephemeral.ready.rpartition(":")[2])
        self.read = dict.fromkeys(self.processes(), 0)
        for process in self.processes():
            wait_until(partial(has_reported, process), "the report of a start")

    def written(self, name: str, *settings: str, plugins: str = "") -> str:
        lines = [f'"{key}" = "{value}"' for key, _, value in (each.partition("=") for each in settings)]
        return self.files.write(f"{name}.toml", "\n".join([*lines, plugins]))

    def started(self, folder: Path, name: str, suffix: str) -> ServeProcess:
        """A host with all plugins that listen, with TLS if there is a suffix."""

        def at(listener: str) -> str:
            return f"{LOOPBACK}:{self.ports[listener + suffix]}"

        scheme = "https" if suffix else "http"
        tls = f'"tls.certificate" = "{self.files.server}"\n' if suffix else ""
        plugins = (
            f'[plugins.prometheus]\n"listener" = "{scheme}://{at("prometheus")}"\n{tls}'
            f'"totals.file" = "{folder / name}.totals"\n'
            f'[plugins.otlp.source]\n"http.listener" = "{at("otlp-http")}"\n'
            f'"grpc.listener" = "{at("otlp-grpc")}"\n{tls}'
            f'[plugins.console]\n"listener" = "{at("console")}"\n{tls}'
        )
        kinds = ("PLAINTEXT",) if suffix else ("PLAINTEXT", "SSL", "SASL_PLAINTEXT")
        listeners = "listeners=" + ",".join(f"{kind}://{LOOPBACK}:0" for kind in kinds)
        metrics = f"metrics.listener={scheme}://{at('metrics')}"
        settings = (listeners, metrics, f"data.dir={folder / name}", *self.files.settings)
        return ServeProcess("--config", self.written(name, *settings, plugins=plugins))

    def processes(self) -> list[ServeProcess]:
        return [self.host, self.encrypted, self.gateway, self.ephemeral]

    def lines(self) -> list[str]:
        """The new lines in the logs of all programs. They come a moment after the events."""
        found = []
        for process in self.processes():
            found += process.errors[self.read[process] :]
            self.read[process] = len(process.errors)
        return about_itself(found)

    def stop(self) -> None:
        for process in reversed(self.processes()):
            process.terminate()


def has_reported(process: ServeProcess) -> bool:
    return any("queued.max.response.bytes" in line for line in process.errors)


def bound(process: ServeProcess) -> list[int]:
    """The ports of its listeners."""
    listeners = process.ready.split("listeners=")[1].split()[0]
    return [int(each.rpartition(":")[2]) for each in listeners.split(",")]


def free_ports(number: int) -> list[int]:
    with contextlib.ExitStack() as open_now:
        sockets = [open_now.enter_context(socket.create_server((LOOPBACK, 0))) for _ in range(number)]
        return [each.getsockname()[1] for each in sockets]


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Programs]:
    running = Programs(tmp_path_factory.mktemp("programs"))
    yield running
    running.stop()


def unverified() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


ENCRYPTED: Final = unverified()
LISTENERS: Final = (
    *("plain", "ssl", "sasl", "gateway", "gateway-ssl", "control"),
    *OF_PLUGINS,
    *(f"{name}-ssl" for name in OF_PLUGINS),
)


def connected(port: int, *, encrypted: bool) -> socket.socket:
    raw = socket.create_connection((LOOPBACK, port), READ_TIMEOUT_S)
    if not encrypted:
        return raw
    return ENCRYPTED.wrap_socket(raw)


def sent(port: int, noise: bytes, *, encrypted: bool) -> None:
    """Send it, and wait until the listener has closed the connection."""
    try:
        with connected(port, encrypted=encrypted) as stranger:
            stranger.sendall(noise)
            if not encrypted:
                stranger.shutdown(socket.SHUT_WR)
                while stranger.recv(65_536):
                    pass
    except TimeoutError:
        raise
    except OSError:
        pass  # the listener was first


@pytest.mark.parametrize("listener", LISTENERS)
def test_a_kind_of_bad_request_has_few_lines(programs: Programs, listener: str) -> None:
    port = programs.ports[listener]
    ways = (False, True) if "ssl" in listener else (False,)
    wrong = {}
    with ThreadPoolExecutor(REPEATED) as strangers:
        for kind, noise in NOISE.items():
            programs.lines()

            for encrypted in ways:
                list(strangers.map(partial(sent, port, encrypted=encrypted), [noise] * REPEATED))

            lines = programs.lines()
            logins = [line for line in lines if any(text in line for text in LOGINS)]
            if (
                len(lines) - len(logins) > LATE * MOST_LINES * len(ways)
                or len(logins) > LATE * REPEATED * len(LOGINS) * len(ways)
                or any("Traceback" in line for line in lines)
            ):
                wrong[kind] = lines
    assert not wrong
