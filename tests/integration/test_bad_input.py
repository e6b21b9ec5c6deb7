"""Hostile and broken bytes over real sockets. After each attack, a well-behaved client that was connected all
along and a new one are served as usual.
"""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable, Iterator
from functools import partial

import cramjam
import crc32c
import lz4.frame
import pytest
import zstandard
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from odradek.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from odradek.wire.messages.push_telemetry import PushTelemetryRequest
from odradek.wire.record import Record
from odradek.wire.record_batch import build_batch
from support.data_requests import produce_request
from support.hosts import EVERYTHING, ThreadedHost, running_host
from support.wire_client import WireClient, with_client

FRAME_LIMIT = 2_000_000
BOMB_BYTES = 200 * 1024 * 1024


class Taken:
    """A receiver, so that the host offers the telemetry APIs; it stores every payload."""

    def __init__(self) -> None:
        self.payloads: list[bytes] = []

    def client_receiver(self) -> Taken:
        return self

    def export_metrics(self, _context: object, payload: object) -> None:
        self.payloads.append(payload.data)  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def taken() -> Taken:
    return Taken()


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory, taken: Taken) -> Iterator[ThreadedHost]:
    with running_host(
        tmp_path_factory.mktemp("data"),
        f"socket.request.max.bytes={FRAME_LIMIT}",
        "plugins.enrich.static.site=test",
        *EVERYTHING,
        before_start=lambda host: host.receivers.register("taken", taken),
    ) as host:
        yield host


@pytest.fixture(autouse=True)
def bystander(host: ThreadedHost) -> Iterator[None]:
    """A client connected before the attack and a new one; both must be served after it."""
    with WireClient(host.address) as before:
        before.introduce("bystander")
        yield
        assert before.send(MetadataRequest(topics=[])).brokers[0].node_id == 1
    assert with_client(host.address, lambda client: client.push(good_payload())) == ErrorCode.NONE


def good_payload() -> bytes:
    data = MetricsData()
    metric = data.resource_metrics.add().scope_metrics.add().metrics.add(name="org.apache.kafka.producer.x")
    metric.gauge.data_points.add(as_double=1.0)
    return data.SerializeToString()


def header(api_key: int, version: int, client_id: bytes = b"raw") -> bytes:
    return struct.pack(">hhih", api_key, version, 7, len(client_id)) + client_id


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(struct.pack(">i", FRAME_LIMIT + 1), id="a frame longer than the limit"),
        pytest.param(struct.pack(">i", 2**31 - 1), id="the longest frame there is"),
        pytest.param(struct.pack(">i", -5), id="a negative length"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", id="another protocol"),
        pytest.param(framed(b""), id="an empty frame"),
        pytest.param(framed(b"\x00\x12"), id="half a header"),
        pytest.param(framed(b"\xff" * 40), id="a garbage header"),
        pytest.param(framed(header(999, 0)), id="an unknown api"),
        pytest.param(framed(header(3, 99)), id="a version out of range"),
        pytest.param(framed(header(3, -1)), id="a negative version"),
        pytest.param(framed(header(0, 2)), id="produce below the parsed versions"),
        pytest.param(framed(struct.pack(">hhih", 18, 0, 7, 500)), id="a truncated client id"),
        pytest.param(framed(header(3, 0) + struct.pack(">i", 2**31 - 1)), id="two billion topics"),
        pytest.param(framed(header(3, 0) + struct.pack(">ih", 1, 30_000)), id="a truncated name"),
    ],
)
def test_invalid_bytes_close_the_connection(host: ThreadedHost, data: bytes) -> None:
    with WireClient(host.address) as client:
        client.send_bytes(data)

        assert client.closed_by_peer()


def test_a_client_without_a_client_id_is_served(host: ThreadedHost) -> None:
    with WireClient(host.address, client_id=None) as client:
        client.introduce()

        assert client.push(good_payload()) == ErrorCode.NONE


def test_null_metrics_do_not_close_the_connection(host: ThreadedHost) -> None:
    with WireClient(host.address) as client:
        request = PushTelemetryRequest(client_instance_id=bytes(15) + b"\x05", metrics=None)
        whole = client.frame(request, 0)
        client.send_bytes(whole)

        assert whole.endswith(b"\x00\x00")  # null, no tags
        assert client.answer(request, 0).error_code == ErrorCode.UNKNOWN_SUBSCRIPTION_ID


BOMBS: dict[str, tuple[int, Callable[[bytes], bytes]]] = {
    "gzip": (1, lambda data: gzip.compress(data, 9)),
    "snappy": (2, lambda data: bytes(cramjam.snappy.compress_raw(data[: 20 * 1024 * 1024]))),
    "lz4": (3, partial(lz4.frame.compress, block_linked=False)),
    "zstd": (4, zstandard.ZstdCompressor(level=3).compress),
    "zstd without its size": (4, zstandard.ZstdCompressor(level=3, write_content_size=False).compress),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_decompression_bomb_is_too_large(host: ThreadedHost, name: str) -> None:
    codec, compress = BOMBS[name]
    bomb = compress(bytes(BOMB_BYTES))
    assert len(bomb) < 1_048_576

    error_code = with_client(host.address, lambda client: client.push(bomb, codec))

    assert error_code == ErrorCode.TELEMETRY_TOO_LARGE


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_corrupt_compression_is_an_invalid_record(host: ThreadedHost, codec: int) -> None:
    error_code = with_client(
        host.address, lambda client: client.push(b"these are no compressed bytes", codec)
    )

    assert error_code == ErrorCode.INVALID_RECORD


def test_a_million_empty_resource_metrics_are_too_large(host: ThreadedHost, taken: Taken) -> None:
    million = zstandard.compress(b"\x0a\x00" * 1_000_000)
    before = len(taken.payloads)

    error_code = with_client(host.address, lambda client: client.push(million, 4))

    assert error_code == ErrorCode.TELEMETRY_TOO_LARGE
    assert len(taken.payloads) == before


def test_ten_thousand_nested_values_are_an_invalid_record(host: ThreadedHost) -> None:
    value = AnyValue(string_value="deep").SerializeToString()
    for _ in range(10_000):
        value = delimited(0x2A, delimited(0x0A, value))  # AnyValue.array_value, ArrayValue.values
    attribute = delimited(0x0A, delimited(0x0A, b"key") + delimited(0x12, value))
    payload = zstandard.compress(delimited(0x0A, delimited(0x0A, attribute)))

    error_code = with_client(host.address, lambda client: client.push(payload, 4))

    assert error_code == ErrorCode.INVALID_RECORD


def delimited(tag: int, value: bytes) -> bytes:
    length, size = b"", len(value)
    while size > 0x7F:
        length += bytes([size & 0x7F | 0x80])
        size >>= 7
    return bytes([tag]) + length + bytes([size]) + value


@pytest.mark.parametrize("data", [b"\xff" * 100, b"plain text, not protobuf", b"\x0a\x05abc"])
def test_bytes_that_are_not_otlp_are_an_invalid_record(host: ThreadedHost, taken: Taken, data: bytes) -> None:
    before = len(taken.payloads)

    error_code = with_client(host.address, lambda client: client.push(data))

    assert error_code == ErrorCode.INVALID_RECORD
    assert len(taken.payloads) == before


def test_a_large_payload_is_decompressed_off_the_loop_and_labeled(host: ThreadedHost, taken: Taken) -> None:
    data = MetricsData()
    for number in range(3_000):
        metrics = data.resource_metrics.add().scope_metrics.add().metrics
        metrics.add(name=f"org.apache.kafka.producer.{number}").gauge.data_points.add(as_double=number)
    raw = data.SerializeToString()
    assert len(raw) > 65_536

    error_code = with_client(host.address, lambda client: client.push(zstandard.compress(raw), 4))

    assert error_code == ErrorCode.NONE
    (entry,) = MetricsData.FromString(taken.payloads[-1]).resource_metrics
    labels = {item.key: item.value.string_value for item in entry.resource.attributes}
    assert labels["site"] == "test"
    assert sum(len(scope.metrics) for scope in entry.scope_metrics) == 3_000


def test_a_corrupt_batch_is_refused_and_not_appended(host: ThreadedHost) -> None:
    batch = bytearray(build_batch([Record(None, b"value", 0)]))
    batch[-1] ^= 1
    assert crc32c.crc32c(bytes(batch[21:])) != int.from_bytes(batch[17:21])
    with WireClient(host.address) as client:
        client.send(MetadataRequest(topics=[MetadataRequestTopic(name="corrupt")]))
        produced = client.send(produce_request("corrupt", bytes(batch)), 9)
        wanted = ListOffsetsPartition(partition_index=0, timestamp=-1)
        latest = client.send(
            ListOffsetsRequest(topics=[ListOffsetsTopic(name="corrupt", partitions=[wanted])]), 7
        )

    assert produced.responses[0].partition_responses[0].error_code == ErrorCode.CORRUPT_MESSAGE
    assert latest.topics[0].partitions[0].offset == 0
