"""Topics with plain OTLP: one record has the pushes of several clients."""

from __future__ import annotations

from collections.abc import Sequence

from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from odradek.delivery.batch_queue import BatchQueue
from odradek.delivery.dead_letter import dead_letters
from odradek.delivery.delivery_ledger import DeliveryLedger
from odradek.delivery.forwarder_settings import ForwarderSettings
from odradek.delivery.log_cursor import MAX_MALFORMED, Chunk, LogCursor
from odradek.delivery.spooled_record import RecordFormat
from odradek.plugin import Origin, TelemetryRecord
from odradek.topic import TopicFormat, decode_record
from odradek.wire.record import Record
from odradek.wire.record_batch import build_batch, records

OTLP = RecordFormat(name=TopicFormat.OTLP_PROTO, interval_ms=30_000)


def message(*clients: str) -> Record:
    """A record with a Resource for each client."""
    data = MetricsData()
    for client in clients:
        attribute = data.resource_metrics.add().resource.attributes.add(key="service.name")
        attribute.value.string_value = client
    return Record(None, data.SerializeToString(), 5_000)


def cursor_of(max_malformed: int = MAX_MALFORMED) -> LogCursor:
    return LogCursor({0: 0}, max_malformed, OTLP)


def chunk(*messages: Record) -> Chunk:
    return Chunk(0, 0, build_batch(messages), "topic")


def names(pushes: Sequence[TelemetryRecord]) -> list[str]:
    found = [MetricsData.FromString(push.payload.data).resource_metrics[0].resource for push in pushes]
    return [resource.attributes[0].value.string_value for resource in found]


def balanced(cursor: LogCursor, taken: int, end: int) -> bool:
    """Whether each push was taken, dropped, or is still to be read."""
    return cursor.offered({0: end}) == taken + sum(cursor.dropped.values()) + cursor.unread({0: end})


def test_each_client_of_a_record_is_a_push_with_the_position_of_the_record() -> None:
    cursor = cursor_of()

    found = cursor.take(chunk(message("a"), message("b", "c", "d")))

    assert names(found) == ["a", "b", "c", "d"]
    assert [push.position for push in found] == [Origin("topic", 0, offset) for offset in (0, 1, 1, 1)]
    assert [push.is_first for push in found] == [True, True, False, False]
    assert {(push.push_interval_ms, push.context.received_ms, push.source) for push in found} == {
        (30_000, 5_000, "kafka")
    }
    assert balanced(cursor, len(found), end=5)


def test_a_record_without_clients_is_counted_as_empty() -> None:
    cursor = cursor_of()

    found = cursor.take(chunk(message(), message("a"), message()))

    assert (names(found), cursor.dropped) == (["a"], {"empty": 2})
    assert cursor.expected == {0: 3}
    assert balanced(cursor, len(found), end=3)


def test_records_of_another_format_are_malformed_and_do_not_hide_good_ones() -> None:
    cursor = cursor_of(max_malformed=1)
    junk = Record(None, b"\xff\xff")

    found = cursor.take(chunk(junk, junk, message("a", "b"), Record(b"key", None), junk, message("c")))

    assert names([push for push in found if push.fault is None]) == ["a", "b", "c"]
    assert [push.original.value for push in found if push.fault is not None] == [junk.value]
    assert cursor.dropped == {"malformed": 3}
    assert balanced(cursor, len(found), end=6)


def test_withdrawn_records_are_read_again_with_balanced_accounts() -> None:
    cursor = cursor_of()
    everything = chunk(message("a"), message("b", "c"), message("d", "e", "f"))
    taken = cursor.take(everything)

    cursor.move({}, taken[1:])

    assert cursor.expected == {0: 1}
    assert balanced(cursor, 1, end=3)
    again = cursor.take(everything)
    assert names(again) == ["b", "c", "d", "e", "f"]
    assert balanced(cursor, 6, end=3)


def test_the_pushes_of_a_record_stay_in_one_batch() -> None:
    settings = ForwarderSettings(batch_max_records=2, batch_max_age_ms=1_000)
    queue = BatchQueue(settings, DeliveryLedger())
    for push in cursor_of().take(chunk(message("a"), message("b", "c", "d"), message("e"), message("f"))):
        queue.put(push, 0)

    batches = []
    while queue.waiting:
        batches.append(names(queue.take(0, flush=True)))

    assert batches == [["a", "b", "c", "d"], ["e", "f"]]


def test_a_dead_letter_has_the_push_of_its_client_only() -> None:
    _, lost = cursor_of().take(chunk(message("a", "b")))

    (batch,) = dead_letters([lost], "otlp", "metrics", "HTTP 400")
    (letter,) = records(batch)

    read = decode_record(letter.key, letter.value, letter.headers)
    assert read.payload.client_instance_id == lost.payload.client_instance_id
    assert read.payload.data == lost.payload.data
    assert (read.origin, read.labeled) == (Origin("topic", 0, 0), False)
    assert dict(letter.headers)["dead_letter_offset"] == b"0"


def test_a_malformed_record_is_a_dead_letter_as_it_is() -> None:
    (lost,) = cursor_of().take(chunk(Record(b"key", b"\xff", 7, (("h", b"v"),))))

    (batch,) = dead_letters([lost], "otlp", "metrics", "malformed")
    (letter,) = records(batch)

    assert (letter.key, letter.value, letter.headers[0]) == (b"key", b"\xff", ("h", b"v"))
