"""TLS on a plain transport, with a client in memory: data in both directions, pauses, ends and failures."""

from __future__ import annotations

import contextlib
import gc
import ssl
import weakref
from itertools import pairwise

import pytest

from odradek.net.tls_transport import GONE, PART_BYTES, RECORD_BYTES
from support.certificates import authority, client, other_authority
from support.tls_pair import FULL_BYTES, READ_BYTES, Buffered, OwnPair, TlsPair, server_context

SIZES = (1, 100, RECORD_BYTES, RECORD_BYTES + 1, PART_BYTES, PART_BYTES + 1, 300_000)


@pytest.fixture
def connection() -> TlsPair:
    made = TlsPair()
    made.shake()
    return made


def test_the_protocol_gets_the_transport_after_the_handshake() -> None:
    connection = TlsPair()
    before = (list(connection.end.events), connection.transport.handshaken.done())

    connection.shake()

    assert before == ([], False)
    assert connection.end.events == ["made"]
    assert connection.transport.handshaken.result() is None
    assert connection.transport.get_extra_info("ssl_object").version() == "TLSv1.3"
    assert connection.transport.get_extra_info("sockname") == ("127.0.0.1", 9093)


@pytest.mark.parametrize("size", SIZES)
def test_data_of_any_size_arrives_in_both_directions(connection: TlsPair, size: int) -> None:
    data = bytes(range(256)) * (size // 256) + b"x" * (size % 256)

    connection.send(data)
    connection.transport.write(data)
    back = connection.client_read()

    assert connection.end.data == data
    assert back == data
    assert connection.plain.largest < PART_BYTES + 1_000


def test_lines_are_written_as_one_record(connection: TlsPair) -> None:
    connection.transport.writelines([b"a", bytearray(b"b"), memoryview(b"c")])
    connection.transport.write(b"")

    assert len(connection.plain.written) < 3 + 30
    assert connection.client_read() == b"abc"


@pytest.mark.parametrize("step", [1, 7, 5_000])
def test_records_may_arrive_in_pieces(connection: TlsPair, step: int) -> None:
    data = bytes(3_000) if step < 100 else bytes(100_000)
    connection.client.write(data)
    stream = connection.to_server.read()

    for start in range(0, len(stream), step):
        connection.transport.data_received(stream[start : start + step])

    assert connection.end.data == data


def test_a_buffered_protocol_gets_the_rest(connection: TlsPair) -> None:
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
    assert connection.plain.calls == []


def test_a_paused_protocol_gets_nothing_until_it_goes_on(connection: TlsPair) -> None:
    connection.end.then = connection.transport.pause_reading
    connection.send(bytes(100_000))
    before = len(connection.end.data)

    connection.end.then = lambda: None
    connection.transport.resume_reading()
    connection.loop.run()

    assert 0 < before <= RECORD_BYTES
    assert len(connection.end.data) == 100_000
    assert connection.plain.calls == ["pause", "resume"]


def test_a_close_says_goodbye_after_what_was_written(connection: TlsPair) -> None:
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


def test_an_end_does_not_wait_for_a_client_that_has_seen_it(connection: TlsPair) -> None:
    connection.transport.close()

    connection.send(b"goodbye")

    assert connection.end.data == b""
    assert connection.plain.calls == ["close"]


def test_the_goodbye_of_the_client_closes(connection: TlsPair) -> None:
    connection.client.write(b"last")
    with pytest.raises(ssl.SSLWantReadError):
        connection.client.unwrap()
    connection.exchange()

    assert connection.end.data == b"last"
    assert connection.plain.calls == ["close"]


def test_a_lost_connection_is_told_once_and_forgotten(connection: TlsPair) -> None:
    error = ConnectionResetError()

    connection.transport.close()
    connection.transport.connection_lost(error)
    connection.loop.run()

    assert connection.plain.calls == []
    assert connection.end.events == ["made", error]
    assert connection.transport.get_protocol() is GONE


def test_bytes_that_are_not_the_clients_close_with_an_alert(connection: TlsPair) -> None:
    connection.client.write(b"secret")
    stream = bytearray(connection.to_server.read())
    stream[-1] ^= 1

    connection.transport.data_received(bytes(stream))

    assert connection.end.data == b""
    assert connection.plain.calls == ["close"]
    with pytest.raises(ssl.SSLError, match=r"(?i)bad record mac"):
        connection.client_read()


def test_a_client_without_a_certificate_is_told_so() -> None:
    connection = TlsPair(server_context(client_auth="required"))

    connection.shake()

    with pytest.raises(ssl.SSLError):
        connection.transport.handshaken.result()
    assert connection.end.events == []
    assert connection.plain.calls == ["close"]
    with pytest.raises(ssl.SSLError, match=r"(?i)certificate required"):
        connection.client_read()


@pytest.mark.parametrize("data", [b"GET / HTTP/1.1\r\n\r\n", bytes(100), b"\x16\x03\x01"])
def test_a_connection_that_is_lost_in_the_handshake_fails_it(data: bytes) -> None:
    connection = TlsPair()

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
    connection = TlsPair(server_context(client_auth="required"), there)

    connection.shake()

    found = connection.transport.get_extra_info("ssl_object").getpeercert(True)
    assert found == ssl.PEM_cert_to_DER_cert(client().certificate)


def test_a_paused_protocol_gets_no_more_than_it_has_and_the_rest_stays_in_the_socket(
    connection: TlsPair,
) -> None:
    connection.transport.pause_reading()
    connection.client.write(bytes(4 * READ_BYTES))
    connection.exchange()
    connection.transport.resume_reading()
    connection.end.then = connection.transport.pause_reading
    connection.loop.run()
    connection.exchange()

    assert len(connection.end.data) <= RECORD_BYTES
    assert READ_BYTES - 2 * RECORD_BYTES < connection.end.unread_bytes < READ_BYTES
    assert len(connection.on_the_way) > 3 * READ_BYTES
    assert connection.transport.incoming.pending < 2 * PART_BYTES


def test_pauses_while_something_waits_decrypt_all_of_it_before_the_next_read(connection: TlsPair) -> None:
    connection.end.then = connection.transport.pause_reading
    connection.client.write(bytes(READ_BYTES))
    connection.exchange()
    found = [len(connection.end.data)]

    while connection.end.unread_bytes:
        connection.transport.resume_reading()
        connection.transport.pause_reading()
        connection.transport.resume_reading()
        connection.loop.run()
        found.append(len(connection.end.data))
    connection.end.then = lambda: None
    connection.transport.resume_reading()
    connection.exchange()
    connection.loop.run()

    steps = {after - before for before, after in pairwise(found)}
    assert max(steps) <= RECORD_BYTES
    assert len(connection.end.data) == READ_BYTES
    assert connection.plain.calls == ["pause", "resume"]


def test_a_large_buffer_gets_as_many_records_as_there_are(connection: TlsPair) -> None:
    rest = Buffered(1 << 20)
    connection.transport.set_protocol(rest)
    connection.client.write(bytes(4 << 20))

    reads = 0
    while connection.arrive():
        reads += 1

    assert len(rest.data) == 4 << 20
    assert len(rest.counts) == reads
    assert connection.plain.calls == []


def test_a_goodbye_behind_what_fills_a_buffer_is_seen(connection: TlsPair) -> None:
    rest = Buffered(1 << 20)
    connection.transport.set_protocol(rest)
    rest.eof_received = lambda: False  # type: ignore[method-assign]
    connection.client.write(bytes(50_000))
    with pytest.raises(ssl.SSLWantReadError):
        connection.client.unwrap()
    connection.exchange()

    assert rest.counts == [50_000]
    assert connection.plain.calls == ["close"]


def test_what_the_socket_does_not_take_waits_as_plaintext(connection: TlsPair) -> None:
    connection.transport.set_write_buffer_limits(high=1_000_000)

    connection.transport.write(bytes(600_000))
    before = (len(connection.plain.written), list(connection.end.events))
    connection.transport.write(b"x" * 600_000)
    waiting = connection.transport.get_write_buffer_size()
    back = connection.client_read()

    assert FULL_BYTES < before[0] <= FULL_BYTES + PART_BYTES + 1_000
    assert before[1] == ["made"]
    assert connection.end.events == ["made", "full"]
    assert not connection.end.is_writer_paused
    assert 1_200_000 <= waiting < 1_201_000
    assert back == bytes(600_000) + b"x" * 600_000
    assert connection.transport.get_write_buffer_size() == 0


def test_a_writer_may_change_its_buffer_after_a_write(connection: TlsPair) -> None:
    data = bytearray(b"x" * 400_000)

    connection.transport.write(data)
    data[:] = bytes(400_000)

    assert connection.client_read() == b"x" * 400_000


def test_a_close_sends_what_waits_first(connection: TlsPair) -> None:
    connection.transport.write(bytes(400_000))
    connection.transport.close()
    connection.loop.run()
    before = list(connection.plain.calls)

    back = connection.client_read()

    assert before == []
    assert back == bytes(400_000)
    assert connection.plain.calls == ["close"]
    assert connection.client.read(1) == b""


@pytest.mark.parametrize("says_goodbye", [True, False])
def test_a_client_that_has_left_gets_what_waits(connection: TlsPair, says_goodbye: bool) -> None:
    connection.end.stays = True
    connection.transport.write(bytes(400_000))
    if says_goodbye:
        with pytest.raises(ssl.SSLWantReadError):
            connection.client.unwrap()
        connection.arrive()
    else:
        assert connection.transport.eof_received()
    connection.transport.close()
    before = [each for each in connection.plain.calls if each != "pause"]

    taken = connection.plain.take()
    while connection.plain.written:
        taken += connection.plain.take()

    assert before == []
    assert connection.end.events.count("left") == 1
    assert len(taken) > 400_000
    assert connection.plain.calls[-1] == "close"


@pytest.mark.parametrize("closes_first", [True, False])
def test_a_client_that_only_reads_gets_what_waits(connection: TlsPair, closes_first: bool) -> None:
    connection.transport.write(bytes(400_000))
    if closes_first:
        connection.transport.close()

    stays = connection.transport.eof_received()
    connection.loop.run()
    back = connection.client_read()

    assert stays
    assert back == bytes(400_000)
    assert connection.plain.calls[-1] == "close"


@pytest.mark.parametrize("ends", ["abort", "lost", "garbage"])
def test_an_end_frees_what_waits(connection: TlsPair, ends: str) -> None:
    connection.end.then = connection.transport.pause_reading
    connection.transport.write(bytes(400_000))
    connection.client.write(bytes(READ_BYTES))
    connection.arrive()
    before = connection.end.unread_bytes

    if ends == "abort":
        connection.transport.abort()
    elif ends == "lost":
        connection.transport.connection_lost(None)
    else:
        connection.transport.arrived = memoryview(bytes(100))
        connection.transport.incoming.read()
        connection.transport.resume_reading()
        connection.loop.run()
    written = len(connection.plain.written)
    connection.transport.write(b"later")
    connection.transport.resume_writing()

    assert before > 100_000
    assert connection.end.unread_bytes == 0
    assert not connection.transport.unsent
    assert not connection.transport.arrived
    assert len(connection.plain.written) == written


def test_a_connection_that_has_ended_leaves_no_cycle() -> None:
    found = []
    gc.collect()
    gc.disable()
    try:
        for data in (b"", b"GET / HTTP/1.1\r\n\r\n"):
            pair = TlsPair()
            if data:
                pair.transport.data_received(data)
                with contextlib.suppress(ssl.SSLError):
                    pair.transport.handshaken.result()
            else:
                pair.shake()
                pair.transport.write(bytes(400_000))
            pair.transport.connection_lost(None)
            pair.plain.protocol = GONE
            found.append(weakref.ref(pair.transport.tls))
            del pair
    finally:
        gc.enable()

    assert [each() for each in found] == [None, None]


def test_a_client_and_a_server_of_ours_understand_each_other() -> None:
    both = OwnPair(ssl.create_default_context(cadata=authority().issued.certificate))
    both.exchange()

    both.client.write(b"question")
    both.exchange()
    both.server.transport.write(b"answer")
    both.exchange()

    assert both.client.handshaken.result() is None
    assert both.server.end.data == b"question"
    assert both.end.data == b"answer"


def test_a_client_does_not_trust_any_server() -> None:
    both = OwnPair(ssl.create_default_context(cadata=other_authority().issued.certificate))
    both.exchange()
    both.client.connection_lost(None)

    with pytest.raises(ssl.SSLCertVerificationError):
        both.client.handshaken.result()
    assert both.plain.calls == ["close"]
    assert both.end.events == []


def test_a_protocol_is_told_why_its_connection_was_closed(connection: TlsPair) -> None:
    connection.transport.data_received(b"GET / HTTP/1.1\r\n\r\n")
    connection.transport.connection_lost(None)

    assert isinstance(connection.end.events[-1], ssl.SSLError)


def test_nothing_of_a_read_is_kept_when_all_of_it_is_decrypted(connection: TlsPair) -> None:
    connection.send(bytes(100_000))

    assert connection.transport.arrived.obj == b""
