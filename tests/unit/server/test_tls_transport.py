"""TLS on a plain transport, with a client in memory: data in both directions, pauses, ends and failures."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import Any

import pytest

from odradek.server.sockets.tls_transport import GONE, PART_BYTES, RECORD_BYTES, TlsTransport
from support.certificates import authority, client, server

SIZES = (1, 100, RECORD_BYTES, RECORD_BYTES + 1, PART_BYTES, PART_BYTES + 1, 300_000)


class Loop:
    """Runs callbacks when a test says so."""

    def __init__(self) -> None:
        self.soon: list[Callable[[], object]] = []

    def get_debug(self) -> bool:
        return False

    def create_future(self) -> asyncio.Future[None]:
        return asyncio.Future(loop=self)  # type: ignore[arg-type]  # a part of a loop

    def call_soon(self, callback: Callable[[], object]) -> None:
        self.soon.append(callback)

    def call_later(self, _delay_s: float, callback: Callable[[], object]) -> None:
        self.soon.append(callback)

    def run(self) -> None:
        """Run what is due."""
        due, self.soon = self.soon, []
        for callback in due:
            callback()


class Plain(asyncio.Transport):
    """A transport that records what is written."""

    def __init__(self) -> None:
        super().__init__({"sockname": ("127.0.0.1", 9093)})
        self.written = bytearray()
        self.largest = 0
        self.calls: list[str] = []

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += data
        self.largest = max(self.largest, len(data))

    def pause_reading(self) -> None:
        self.calls.append("pause")

    def resume_reading(self) -> None:
        self.calls.append("resume")

    def close(self) -> None:
        self.calls.append("close")

    def is_closing(self) -> bool:
        return "close" in self.calls

    def abort(self) -> None:
        self.calls.append("abort")


class Received(asyncio.Protocol):
    """Records what it gets; may do something then."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.events: list[object] = []
        self.then: Callable[[], object] = lambda: None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.events.append("made")

    def data_received(self, data: bytes) -> None:
        self.data += data
        self.then()

    def connection_lost(self, exc: Exception | None) -> None:
        self.events.append(exc)

    def pause_writing(self) -> None:
        self.events.append("full")


class Buffered(asyncio.BufferedProtocol):
    """Receives into a small buffer."""

    def __init__(self) -> None:
        self.buffer = bytearray(1_000)
        self.data = bytearray()

    def get_buffer(self, sizehint: int) -> memoryview:
        return memoryview(self.buffer)

    def buffer_updated(self, nbytes: int) -> None:
        self.data += self.buffer[:nbytes]


class Connection:
    """Both ends of one connection."""

    def __init__(self, context: ssl.SSLContext | None = None, there: ssl.SSLContext | None = None) -> None:
        self.loop, self.plain, self.end = Loop(), Plain(), Received()
        own = context or server_context()
        self.transport = TlsTransport(own, self.end, self.loop)  # type: ignore[arg-type]  # a part of a loop
        self.transport.connection_made(self.plain)
        self.to_client, self.to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
        trusting = there or ssl.create_default_context(cadata=authority().issued.certificate)
        self.client = trusting.wrap_bio(self.to_client, self.to_server, server_hostname="localhost")

    def exchange(self) -> None:
        """Carry bytes in both directions."""
        self.transport.data_received(self.to_server.read())
        self.to_client.write(bytes(self.plain.written))
        self.plain.written.clear()

    def shake(self) -> None:
        """Do the handshake."""
        for _ in range(4):
            try:
                self.client.do_handshake()
            except ssl.SSLWantReadError:
                self.exchange()
        self.exchange()

    def send(self, data: bytes) -> None:
        """The client sends bytes."""
        self.client.write(data)
        self.exchange()

    def client_read(self) -> bytes:
        """Everything that the client can decrypt."""
        self.to_client.write(bytes(self.plain.written))
        self.plain.written.clear()
        found = b""
        try:
            while data := self.client.read(1 << 20):
                found += data
        except ssl.SSLWantReadError:
            pass
        return found


def server_context(**options: Any) -> ssl.SSLContext:
    from odradek.security.tls_settings import TlsSettings
    from odradek.server.sockets.tls_context import load_tls

    settings = TlsSettings(
        key=server().key,
        certificate_chain=server().certificate,
        trusted_certificates=authority().issued.certificate,
        **options,
    )
    return load_tls(settings).context


@pytest.fixture
def connection() -> Connection:
    made = Connection()
    made.shake()
    return made


def test_the_protocol_gets_the_transport_after_the_handshake() -> None:
    connection = Connection()
    before = (list(connection.end.events), connection.transport.handshaken.done())

    connection.shake()

    assert before == ([], False)
    assert connection.end.events == ["made"]
    assert connection.transport.handshaken.result() is None
    assert connection.transport.get_extra_info("ssl_object").version() == "TLSv1.3"
    assert connection.transport.get_extra_info("sockname") == ("127.0.0.1", 9093)


@pytest.mark.parametrize("size", SIZES)
def test_data_of_any_size_arrives_in_both_directions(connection: Connection, size: int) -> None:
    data = bytes(range(256)) * (size // 256) + b"x" * (size % 256)

    connection.send(data)
    connection.transport.write(data)
    back = connection.client_read()

    assert connection.end.data == data
    assert back == data
    assert connection.plain.largest < PART_BYTES + 1_000


def test_lines_are_written_as_one_record(connection: Connection) -> None:
    connection.transport.writelines([b"a", bytearray(b"b"), memoryview(b"c")])
    connection.transport.write(b"")

    assert len(connection.plain.written) < 3 + 30
    assert connection.client_read() == b"abc"


@pytest.mark.parametrize("step", [1, 7, 5_000])
def test_records_may_arrive_in_pieces(connection: Connection, step: int) -> None:
    data = bytes(3_000) if step < 100 else bytes(100_000)
    connection.client.write(data)
    stream = connection.to_server.read()

    for start in range(0, len(stream), step):
        connection.transport.data_received(stream[start : start + step])

    assert connection.end.data == data


def test_a_buffered_protocol_gets_the_rest(connection: Connection) -> None:
    rest = Buffered()

    def switch() -> None:
        connection.transport.pause_reading()
        connection.transport.set_protocol(rest)
        connection.transport.resume_reading()

    connection.end.then = switch
    connection.send(b"first")
    connection.send(bytes(50_000))

    assert connection.end.data == b"first"
    assert rest.data == bytes(50_000)
    assert connection.plain.calls == ["pause", "resume"]


def test_a_paused_protocol_gets_nothing_until_it_goes_on(connection: Connection) -> None:
    connection.end.then = connection.transport.pause_reading
    connection.send(bytes(100_000))
    before = len(connection.end.data)

    connection.end.then = lambda: None
    connection.transport.resume_reading()
    connection.loop.run()

    assert 0 < before <= RECORD_BYTES
    assert len(connection.end.data) == 100_000
    assert connection.plain.calls == ["pause", "resume"]


def test_a_close_says_goodbye_after_what_was_written(connection: Connection) -> None:
    connection.transport.write(b"last")
    connection.transport.close()
    connection.transport.write(b"ignored")
    connection.transport.close()
    before = list(connection.plain.calls)
    connection.loop.run()
    connection.transport.data_received(b"ignored, too")

    assert (before, connection.plain.calls) == ([], ["close"])
    assert connection.client_read() == b"last"
    assert connection.client.read(1) == b""
    assert connection.transport.is_closing()


def test_an_end_does_not_wait_for_a_client_that_has_seen_it(connection: Connection) -> None:
    connection.transport.close()

    connection.send(b"goodbye")

    assert connection.end.data == b""
    assert connection.plain.calls == ["close"]


def test_the_goodbye_of_the_client_closes(connection: Connection) -> None:
    connection.client.write(b"last")
    with pytest.raises(ssl.SSLWantReadError):
        connection.client.unwrap()
    connection.exchange()

    assert connection.end.data == b"last"
    assert connection.plain.calls == ["close"]


def test_a_lost_connection_is_told_once_and_forgotten(connection: Connection) -> None:
    error = ConnectionResetError()

    connection.transport.close()
    connection.transport.connection_lost(error)
    connection.loop.run()

    assert connection.plain.calls == []
    assert connection.end.events == ["made", error]
    assert connection.transport.get_protocol() is GONE


def test_a_transport_that_is_full_pauses_the_protocol(connection: Connection) -> None:
    connection.transport.pause_writing()

    assert connection.end.events == ["made", "full"]


def test_bytes_that_are_not_the_clients_close_with_an_alert(connection: Connection) -> None:
    connection.client.write(b"secret")
    stream = bytearray(connection.to_server.read())
    stream[-1] ^= 1

    connection.transport.data_received(bytes(stream))

    assert connection.end.data == b""
    assert connection.plain.calls == ["close"]
    with pytest.raises(ssl.SSLError, match=r"(?i)bad record mac"):
        connection.client_read()


def test_a_client_without_a_certificate_is_told_so() -> None:
    connection = Connection(server_context(client_auth="required"))

    connection.shake()

    with pytest.raises(ssl.SSLError):
        connection.transport.handshaken.result()
    assert connection.end.events == []
    assert connection.plain.calls == ["close"]
    with pytest.raises(ssl.SSLError, match=r"(?i)certificate required"):
        connection.client_read()


@pytest.mark.parametrize("data", [b"GET / HTTP/1.1\r\n\r\n", bytes(100), b"\x16\x03\x01"])
def test_a_connection_that_is_lost_in_the_handshake_fails_it(data: bytes) -> None:
    connection = Connection()

    connection.transport.data_received(data)
    connection.transport.connection_lost(None)

    assert isinstance(connection.transport.handshaken.exception(), OSError)
    assert connection.end.events == []


def test_the_certificate_of_a_client_is_known_when_the_protocol_is_told(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    file = tmp_path_factory.mktemp("client") / "client.pem"
    file.write_text(client().both)
    there = ssl.create_default_context(cadata=authority().issued.certificate)
    there.load_cert_chain(file)
    connection = Connection(server_context(client_auth="required"), there)

    connection.shake()

    found = connection.transport.get_extra_info("ssl_object").getpeercert(True)
    assert found == ssl.PEM_cert_to_DER_cert(client().certificate)
