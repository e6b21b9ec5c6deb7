"""The codec, on bytes written by hand."""

from __future__ import annotations

import traceback
from typing import Any

import pytest

from odradek.wire.codec import (
    MAX_ELEMENTS,
    MAX_RESPONSE_ELEMENTS,
    decode,
    element_writer,
    encode,
    reader,
    writer,
)
from odradek.wire.errors import Truncated, WireError
from odradek.wire.messages.alter_client_quotas import AlterClientQuotasRequest, OpData, RequestEntryData
from odradek.wire.messages.api_versions import ApiVersionsResponse, SupportedFeatureKey
from odradek.wire.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from odradek.wire.messages.consumer_protocol import ConsumerProtocolSubscription
from odradek.wire.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from odradek.wire.messages.describe_quorum import DescribeQuorumResponse, Listener, Node
from odradek.wire.messages.fetch import FetchRequest, ReplicaState
from odradek.wire.messages.heartbeat import HeartbeatRequest
from odradek.wire.messages.list_groups import ListGroupsRequest
from odradek.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from odradek.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from odradek.wire.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse
from odradek.wire.messages.sasl_handshake import SaslHandshakeRequest
from odradek.wire.messages.sync_group import SyncGroupResponse
from odradek.wire.types import NIL_UUID, EncodedElements
from odradek.wire.varint import MAX_STRING, MAX_TAGS, varint

ID = bytes(range(16))
PUSH = PushTelemetryRequest(
    client_instance_id=ID, subscription_id=-2, terminating=True, compression_type=4, metrics=b"otlp"
)
PUSH_BYTES = ID + bytes.fromhex("fffffffe 01 04 05") + b"otlp" + b"\0"
HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m", group_instance_id=None)
HEADLESS_FETCH = bytes.fromhex("00000000 00000000 7fffffff 00 00000000 ffffffff 01 01 01")
"""FetchRequest v15 up to its tagged section."""


def test_a_flexible_request_is_decoded() -> None:
    data = PUSH_BYTES

    message = decode(PushTelemetryRequest, 0, data)

    assert message == PUSH


def test_a_flexible_request_is_encoded() -> None:
    message = PUSH

    data = encode(message, 0)

    assert data == PUSH_BYTES


@pytest.mark.parametrize("version", [0, 2])
def test_elements_may_be_encoded_one_by_one(version: int) -> None:
    results = [DeletableGroupResult(group_id=f"group-{number}", error_code=number) for number in range(3)]
    write = element_writer(DeleteGroupsResponse, version, "results")
    assert write is not None

    encoded: Any = EncodedElements(map(write, results))
    data = encode(DeleteGroupsResponse(results=encoded), version)

    assert data == encode(DeleteGroupsResponse(results=results), version)


def test_a_response_of_fixed_width_is_encoded() -> None:
    message = PushTelemetryResponse(throttle_time_ms=256, error_code=117)

    data = encode(message, 0)

    assert data == bytes.fromhex("00000100 0075 00")


@pytest.mark.parametrize(
    ("version", "data"),
    [
        (0, "0001 67 00000001 0001 6d"),
        (3, "0001 67 00000001 0001 6d ffff"),
        (4, "02 67 00000001 02 6d 00 00"),
    ],
)
def test_lengths_are_compact_from_the_first_flexible_version(version: int, data: str) -> None:
    message = HEARTBEAT

    written = encode(message, version)

    assert written == bytes.fromhex(data)
    assert decode(HeartbeatRequest, version, written) == message


@pytest.mark.parametrize("size", [126, 127, 128, 255, 256, 16_382, 16_383, 16_384, 70_000])
@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_lengths_of_any_number_of_bytes_are_read(size: int, kind: type[Any]) -> None:
    push = PushTelemetryRequest(client_instance_id=ID, metrics=b"m" * size)

    read = decode(PushTelemetryRequest, 0, kind(encode(push, 0)))

    assert read == push
    assert type(read.metrics) is bytes


@pytest.mark.parametrize("length", ["05", "85 00", "85 80 00"])
def test_a_length_may_have_more_bytes_than_it_needs(length: str) -> None:
    data = PUSH_BYTES[:22] + bytes.fromhex(length) + PUSH_BYTES[23:]

    assert decode(PushTelemetryRequest, 0, data) == PUSH


def test_a_length_can_take_two_bytes() -> None:
    message = HeartbeatRequest(group_id="g" * 300)

    data = encode(message, 4)

    assert data[:2] == bytes.fromhex("ad02")
    assert decode(HeartbeatRequest, 4, data) == message


def test_offsets_are_respected_and_returned() -> None:
    data = b"before" + PUSH_BYTES + b"after"

    message, offset = reader(PushTelemetryRequest, 0)(data, 6)

    assert message == PUSH
    assert data[offset:] == b"after"


def test_a_memoryview_is_read_like_bytes() -> None:
    data = memoryview(b"before" + PUSH_BYTES)[6:]

    message = decode(PushTelemetryRequest, 0, data)

    assert message == PUSH
    assert type(message.metrics) is bytes


def test_records_are_a_view_into_the_frame() -> None:
    partition = PartitionProduceData(index=1, records=b"batch")
    data = encode(ProduceRequest(topic_data=[TopicProduceData(name="t", partition_data=[partition])]), 9)

    records = decode(ProduceRequest, 9, data).topic_data[0].partition_data[0].records

    assert isinstance(records, memoryview)
    assert records.obj is data
    assert bytes(records) == b"batch"


def test_missing_fields_of_a_version_have_their_defaults() -> None:
    data = encode(FetchRequest(replica_state=ReplicaState(replica_id=3), session_id=7, rack_id="r"), 4)

    message = decode(FetchRequest, 4, data)

    assert message == FetchRequest()


def test_missing_fields_of_a_version_are_not_written() -> None:
    message = MetadataRequest(topics=None, allow_auto_topic_creation=False)

    data = encode(message, 1)

    assert data == bytes.fromhex("ffffffff")


@pytest.mark.parametrize("assignment", [None, Assignment(), Assignment(topic_partitions=[TopicPartitions()])])
def test_a_structure_may_be_null(assignment: Assignment | None) -> None:
    message = ConsumerGroupHeartbeatResponse(member_id="m", assignment=assignment)

    data = encode(message, 1)

    assert decode(ConsumerGroupHeartbeatResponse, 1, data) == message
    marker = data[len(encode(ConsumerGroupHeartbeatResponse(member_id="m"), 1)) - 2]
    assert marker == (0xFF if assignment is None else 1)


def test_floats_and_unsigned_numbers_are_encoded() -> None:
    quota = AlterClientQuotasRequest(entries=[RequestEntryData(ops=[OpData(key="k", value=0.1)])])
    quorum = DescribeQuorumResponse(nodes=[Node(listeners=[Listener(port=65_535)])])

    data = encode(quota, 1), encode(quorum, 2)

    assert decode(AlterClientQuotasRequest, 1, data[0]) == quota
    assert decode(DescribeQuorumResponse, 2, data[1]) == quorum


def test_null_is_refused_where_a_version_does_not_allow_it() -> None:
    allowed = decode(MetadataRequest, 1, bytes.fromhex("ffffffff"))

    with pytest.raises(WireError, match="topics is null"):
        decode(MetadataRequest, 0, bytes.fromhex("ffffffff"))

    assert allowed.topics is None


@pytest.mark.parametrize(
    ("message", "version"),
    [
        (HeartbeatRequest(group_id=None), 0),  # type: ignore[arg-type]
        (MetadataRequest(topics=None), 0),
        (MetadataRequest(topics=[MetadataRequestTopic(name=None)]), 9),
        (MetadataRequest(topics=[None]), 9),  # type: ignore[list-item]
        (SaslHandshakeRequest(mechanism=None), 1),  # type: ignore[arg-type]
        (PushTelemetryRequest(metrics="text"), 0),  # type: ignore[arg-type]
        (PushTelemetryRequest(client_instance_id=b"short"), 0),
        (PushTelemetryRequest(client_instance_id=None), 0),  # type: ignore[arg-type]
        (PushTelemetryRequest(subscription_id=2**31), 0),
        (PushTelemetryRequest(subscription_id=None), 0),  # type: ignore[arg-type]
        (HeartbeatRequest(group_id="g" * 40_000), 0),
        (HeartbeatRequest(group_id="\ud800"), 0),
        (ApiVersionsResponse(supported_features=None), 3),  # type: ignore[arg-type]
        (SyncGroupResponse(assignment=7), 0),  # type: ignore[arg-type]
    ],
)
def test_a_value_that_cannot_be_encoded_is_a_wire_error(message: object, version: int) -> None:
    write = writer(type(message), version)

    with pytest.raises(WireError):
        write(message)


@pytest.mark.parametrize("version", [-1, 5])
def test_an_undeclared_version_is_a_wire_error(version: int) -> None:
    message = HeartbeatRequest()

    with pytest.raises(WireError, match="HeartbeatRequest has versions 0 to 4"):
        encode(message, version)
    with pytest.raises(WireError, match="HeartbeatRequest has versions 0 to 4"):
        decode(HeartbeatRequest, version, b"")


def test_unknown_tags_are_skipped() -> None:
    data = HEADLESS_FETCH + bytes.fromhex("02 05 02 aaaa a38801 00")

    message, offset = reader(FetchRequest, 15)(data, 0)

    assert message == FetchRequest()
    assert offset == len(data)


def test_known_tags_between_unknown_ones_are_kept() -> None:
    data = HEADLESS_FETCH + bytes.fromhex("03 00 03 03 6364 01 0d 00000003 0000000000000004 00 07 01 ff")

    message = decode(FetchRequest, 15, data)

    assert message == FetchRequest(cluster_id="cd", replica_state=ReplicaState(replica_id=3, replica_epoch=4))


@pytest.mark.parametrize(
    ("tags", "complaint"),
    [
        ("01 05 05 03 6364", "need 5 bytes"),
        ("01 05 8080808010", "exceeds"),
        ("01 05 808080808000", "more than 5 bytes"),
        ("914e", "10001 tags are more than 10000"),
        ("91a10f", "250001 tags are more than 10000"),
    ],
)
def test_broken_tagged_sections_are_refused(tags: str, complaint: str) -> None:
    data = HEADLESS_FETCH + bytes.fromhex(tags)

    with pytest.raises(WireError, match=complaint):
        decode(FetchRequest, 15, data)


def test_a_compact_string_may_be_as_long_as_in_kafka() -> None:
    text = "x" * MAX_STRING

    (group,) = decode(
        DeleteGroupsRequest, 2, b"\x02" + varint(MAX_STRING + 1) + text.encode() + b"\0"
    ).groups_names
    assert group == text
    with pytest.raises(WireError, match="groups_names of 32768 bytes is longer than 32767"):
        decode(DeleteGroupsRequest, 2, b"\x02" + varint(MAX_STRING + 2) + text.encode() + b"x\0")


@pytest.mark.parametrize(
    ("tags", "cluster_id"),
    [
        ("02 05 00 04 00", None),
        ("02 05 00 00 03 03 6364", "cd"),
        ("02 00 03 03 6364 00 03 03 6566", "ef"),
        ("01 00 7f 03 6364", "cd"),
    ],
)
def test_tags_in_any_order_are_read_and_the_size_of_known_ones_is_not_looked_at(
    tags: str, cluster_id: str | None
) -> None:
    message = decode(FetchRequest, 15, HEADLESS_FETCH + bytes.fromhex(tags))

    assert message == FetchRequest(cluster_id=cluster_id)


def unknown_tags(count: int) -> bytes:
    """A tagged section of empty tags that no version knows."""
    return varint(count) + b"".join(varint(100 + number) + b"\0" for number in range(count))


def test_a_tagged_section_may_have_as_many_tags_as_in_kafka() -> None:
    data = HEADLESS_FETCH + unknown_tags(MAX_TAGS)

    message, end = reader(FetchRequest, 15)(data, 0)

    assert MAX_TAGS == 10_000
    assert (message, end) == (FetchRequest(), len(data))


def test_one_tag_more_is_refused_before_any_is_read() -> None:
    first_is_broken = HEADLESS_FETCH + varint(MAX_TAGS + 1) + b"\xff" * 4 * MAX_TAGS

    with pytest.raises(WireError, match="10001 tags are more than 10000") as raised:
        decode(FetchRequest, 15, first_is_broken)

    assert raised.type is WireError


def test_tags_of_nested_structures_are_skipped() -> None:
    data = bytes.fromhex("02 02 74 01 09 01 ff 01 00 00 01 03 00")

    message = decode(MetadataRequest, 9, data)

    assert message == MetadataRequest(
        topics=[MetadataRequestTopic(name="t")],
        allow_auto_topic_creation=True,
        include_topic_authorized_operations=False,
    )


def test_a_tagged_field_is_written_only_if_it_differs_from_its_default() -> None:
    feature = SupportedFeatureKey(name="f", min_version=0, max_version=1)
    message = ApiVersionsResponse(supported_features=[feature], finalized_features_epoch=0)

    data = encode(message, 3)

    assert encode(ApiVersionsResponse(), 3) == bytes.fromhex("0000 01 00000000 00")
    assert data == bytes.fromhex("0000 01 00000000 02 00 08 02 02 66 0000 0001 00 01 08 0000000000000000")


@pytest.mark.parametrize("size", range(len(PUSH_BYTES)))
def test_a_truncated_message_is_truncated(size: int) -> None:
    data = PUSH_BYTES[:size]

    with pytest.raises(Truncated):
        decode(PushTelemetryRequest, 0, data)


@pytest.mark.parametrize(
    ("version", "data"),
    [
        (0, "7fff 67"),
        (4, "ffffffff07 67"),
        (4, "ffffffff0f 67"),
        (4, "ffffffffff0f 67"),
        (4, "00"),
        (0, "8000"),
    ],
)
def test_bad_lengths_are_wire_errors(version: int, data: str) -> None:
    cls = HeartbeatRequest

    with pytest.raises(WireError):
        decode(cls, version, bytes.fromhex(data))


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("ff", "\ufffd"),
        ("61 c3 62", "a\ufffdb"),
        ("e2 82 61 f0 9f", "\ufffda\ufffd"),
        ("c0 80 f5", "\ufffd\ufffd\ufffd"),
        ("ed a0 80 61 ed", "\ufffda\ufffd"),
        ("e2 82 ed bf bf f4 90 80 80", "\ufffd" * 6),
    ],
)
def test_bytes_that_are_not_utf_8_are_replaced_as_in_kafka(data: str, text: str) -> None:
    """tests/integration/java/test_mutated_requests.py compares many more with Kafka's own reader."""
    raw = bytes.fromhex(data)

    message = decode(HeartbeatRequest, 0, len(raw).to_bytes(2) + raw + bytes(6))

    assert message.group_id == text


def test_a_count_is_compared_with_the_remaining_bytes() -> None:
    data = bytes.fromhex("7fffffff") + bytes(100)

    with pytest.raises(Truncated, match="need 4294967294 bytes at 4, have 100"):
        decode(DeleteGroupsRequest, 0, data)


def many_strings(count: int) -> bytes:
    return count.to_bytes(4, "big") + bytes(2 * count)


def test_the_maximum_number_of_elements_is_accepted() -> None:
    data = many_strings(MAX_ELEMENTS)

    message = decode(DeleteGroupsRequest, 0, data)

    assert len(message.groups_names) == MAX_ELEMENTS


def test_one_element_more_is_refused() -> None:
    data = many_strings(MAX_ELEMENTS + 1)

    with pytest.raises(WireError, match="groups_names") as raised:
        decode(DeleteGroupsRequest, 0, data)

    assert raised.type is WireError


def test_a_response_may_have_more_elements_than_a_request() -> None:
    size = MAX_RESPONSE_ELEMENTS.to_bytes(4, "big")
    one_more = (MAX_RESPONSE_ELEMENTS + 1).to_bytes(4, "big")
    groups = bytes(4 * MAX_RESPONSE_ELEMENTS)

    response = decode(DeleteGroupsResponse, 0, bytes(4) + size + groups)

    assert len(response.results) == MAX_RESPONSE_ELEMENTS
    with pytest.raises(WireError, match=f"results make more than {MAX_RESPONSE_ELEMENTS}"):
        decode(DeleteGroupsResponse, 0, bytes(4) + one_more + groups + bytes(4))


def test_structures_in_requests_have_the_bound_of_requests() -> None:
    topics = many_strings(MAX_ELEMENTS + 1) + b"\xff\xff\xff\xff"

    with pytest.raises(WireError, match="topics"):
        decode(ConsumerProtocolSubscription, 0, topics)


def test_elements_are_counted_over_all_arrays() -> None:
    half = ["" for _ in range(MAX_ELEMENTS // 2)]
    data = encode(ListGroupsRequest(states_filter=half, types_filter=[*half, ""]), 5)

    with pytest.raises(WireError, match="types_filter"):
        decode(ListGroupsRequest, 5, data)


def test_codecs_are_compiled_once() -> None:
    first = reader(PushTelemetryRequest, 0), writer(PushTelemetryRequest, 0)

    second = reader(PushTelemetryRequest, 0), writer(PushTelemetryRequest, 0)

    assert first == second


def test_tracebacks_show_the_compiled_lines() -> None:
    cause: Any = None
    try:
        decode(HeartbeatRequest, 4, b"\x05ab")
    except Truncated as error:
        cause = error

    text = "".join(traceback.format_exception(cause))

    assert "<odradek.wire HeartbeatRequest v4 reader>" in text
    assert "raise short(" in text


def test_uuids_default_to_nil() -> None:
    message = PushTelemetryRequest()

    data = encode(message, 0)

    assert data[:16] == NIL_UUID
