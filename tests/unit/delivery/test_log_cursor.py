"""A forwarder's position in the log: records it reads, records it never will, and the accounting of both."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from odradek.delivery.dead_letter import dead_letters
from odradek.delivery.log_cursor import MAX_MALFORMED, Chunk, LogCursor
from odradek.delivery.spool_writer import BATCH_BYTES
from odradek.delivery.spooled_record import RecordFormat
from odradek.plugin import Origin, TelemetryRecord
from odradek.topic import encode_headers, record_key
from odradek.wire.compression import Codec
from odradek.wire.errors import WireError
from odradek.wire.record import Record
from odradek.wire.record_batch import build_batch, records

RecordOf = Callable[[int], TelemetryRecord]


@pytest.fixture
def batch_of(record_of: RecordOf) -> Callable[..., bytes]:
    def batch(base_offset: int, count: int, codec: int = Codec.ZSTD, control: bool = False) -> bytes:
        pushes = [record_of(10) for _ in range(count)]
        return build_batch(
            [
                Record(record_key(bytes(16)), push.payload.data, 0, tuple(encode_headers(push)))
                for push in pushes
            ],
            codec=codec,
            base_offset=base_offset,
            control=control,
        )

    return batch


BatchOf = Callable[..., bytes]


def offsets_of(cursor: LogCursor, chunk: Chunk) -> list[int]:
    return [record.original.offset for record in cursor.take(chunk)]


def test_records_are_read_once_and_in_order(batch_of: BatchOf) -> None:
    cursor = LogCursor({0: 0})

    first = offsets_of(cursor, Chunk(0, 0, batch_of(0, 3) + batch_of(3, 2)))
    again = offsets_of(cursor, Chunk(0, 5, batch_of(3, 2)))

    assert (first, again) == ([0, 1, 2, 3, 4], [])
    assert cursor.expected == {0: 5}


def test_reading_can_start_inside_a_batch(batch_of: BatchOf) -> None:
    cursor = LogCursor({0: 2})

    found = offsets_of(cursor, Chunk(0, 2, batch_of(0, 4)))

    assert found == [2, 3]
    assert cursor.dropped == {}


def test_expired_records_are_counted(batch_of: BatchOf) -> None:
    cursor = LogCursor({0: 0})

    found = offsets_of(cursor, Chunk(0, 10, batch_of(10, 2)))

    assert found == [10, 11]
    assert cursor.dropped == {"expired": 10}
    assert cursor.offered({0: 12}) == 2 + 10 + cursor.unread({0: 12})


def test_all_records_may_have_expired() -> None:
    cursor = LogCursor({0: 3})

    cursor.take(Chunk(0, 9, b""))

    assert cursor.dropped == {"expired": 6}
    assert cursor.unread({0: 9}) == 0


def test_a_batch_that_cannot_be_decompressed_is_skipped(batch_of: BatchOf) -> None:
    damaged = bytearray(batch_of(0, 3))
    damaged[70:] = bytes(len(damaged) - 70)
    cursor = LogCursor({0: 0})

    found = offsets_of(cursor, Chunk(0, 0, bytes(damaged) + batch_of(3, 1)))

    assert found == [3]
    assert cursor.dropped == {"unreadable": 3}


def test_a_transaction_marker_is_not_read_for_ever(batch_of: BatchOf) -> None:
    cursor = LogCursor({0: 0})

    found = offsets_of(cursor, Chunk(0, 0, batch_of(0, 2) + batch_of(2, 1, control=True)))

    assert found == [0, 1]
    assert cursor.expected == {0: 3}
    assert cursor.dropped == {"control": 1}


def test_a_batch_without_its_last_records_is_not_read_for_ever(batch_of: BatchOf) -> None:
    compacted = bytearray(batch_of(0, 2, codec=Codec.NONE))
    compacted[23:27] = (4).to_bytes(4, "big")  # last offset delta
    cursor = LogCursor({0: 0})

    found = offsets_of(cursor, Chunk(0, 0, bytes(compacted)))

    assert found == [0, 1]
    assert cursor.expected == {0: 5}
    assert cursor.dropped == {"expired": 3}


def test_a_record_without_the_hosts_headers_is_marked_faulty(batch_of: BatchOf) -> None:
    cursor = LogCursor({0: 0})

    (record,) = cursor.take(Chunk(0, 0, build_batch([Record(b"who?", b"data", 5)])))

    assert record.fault is not None
    assert record.original.value == b"data"


def test_a_new_partition_is_read_from_its_first_record(batch_of: BatchOf) -> None:
    cursor = LogCursor({0: 7})

    found = offsets_of(cursor, Chunk(1, 0, batch_of(0, 2)))

    assert found == [0, 1]
    assert cursor.offered({0: 7, 1: 2}) == 2


def test_going_back_counts_repeated_records(batch_of: BatchOf) -> None:
    cursor = LogCursor({0: 0})
    read = cursor.take(Chunk(0, 0, batch_of(0, 6)))

    cursor.move({0: 2}, withdrawn=read[-1:])

    # five were read, and four of the six are repeated; one of these was not read the first time
    assert cursor.beyond == 3
    assert cursor.offered({0: 6}) == 5 + cursor.unread({0: 6})


def test_going_forward_counts_skipped_records(batch_of: BatchOf) -> None:
    cursor = LogCursor({0: 0})
    read = cursor.take(Chunk(0, 0, batch_of(0, 3)))

    cursor.move({0: 10}, withdrawn=read[-1:])

    assert cursor.dropped == {"skipped": 8}
    assert cursor.offered({0: 12}) == 2 + 8 + cursor.unread({0: 12})


def test_a_recreated_topic_keeps_the_accounting_balanced(batch_of: BatchOf) -> None:
    cursor = LogCursor({0: 0})
    cursor.take(Chunk(0, 0, batch_of(0, 3)))

    cursor.start_over({0: 9}, {0: 0}, withdrawn=1)

    assert cursor.dropped == {"deleted": 7}
    assert cursor.offered({0: 4}) == 2 + 7 + cursor.unread({0: 4})


def test_a_dead_letter_names_its_origin(batch_of: BatchOf) -> None:
    cursor = LogCursor({3: 0})
    found = cursor.take(Chunk(3, 0, batch_of(0, 2)))

    (batch,) = dead_letters(found[1:], "otlp", "__client_telemetry", "HTTP 400")
    (letter,) = records(batch)

    assert letter.value == found[1].original.value
    assert letter.key == found[1].original.key
    assert letter.headers == (
        *found[1].original.headers,
        ("dead_letter_reason", b"HTTP 400"),
        ("dead_letter_forwarder", b"otlp"),
        ("dead_letter_topic", b"__client_telemetry"),
        ("dead_letter_partition", b"3"),
        ("dead_letter_offset", b"1"),
    )


def test_many_dead_letters_fit_the_limits_of_their_topic(record_of: RecordOf) -> None:
    headers = tuple(encode_headers(record_of(1)))
    original = Record(record_key(bytes(16)), random.Random(1).randbytes(BATCH_BYTES // 2), 0, headers)
    lost = [
        push for offset in range(5) for push in RecordFormat().spooled(0, original._replace(offset=offset))
    ]

    batches = list(dead_letters(lost, "otlp", "__client_telemetry", "retry.max.attempts"))

    offsets = [dict(letter.headers)["dead_letter_offset"] for batch in batches for letter in records(batch)]
    assert offsets == [b"%d" % offset for offset in range(5)]
    assert max(map(len, batches)) < BATCH_BYTES


def test_junk_is_skipped_after_some_dead_letters(
    batch_of: BatchOf, record_of: RecordOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded: list[Record] = []

    decode = RecordFormat.decode

    def noting(self: RecordFormat, record: Record) -> list[TelemetryRecord]:
        decoded.append(record)
        return decode(self, record)

    monkeypatch.setattr(RecordFormat, "decode", noting)
    push = record_of(10)
    good = Record(record_key(bytes(16)), push.payload.data, 0, tuple(encode_headers(push)))
    junk = [Record(None, b"junk"), Record(b"k", b"junk"), Record(b"k", None)] * 10_000
    batch = build_batch([good, *junk, good, *junk, good], codec=Codec.ZSTD)
    cursor = LogCursor({0: 0})

    found = cursor.take(Chunk(0, 0, batch))

    good_ones = [record.original.offset for record in found if record.fault is None]
    assert good_ones == [0, 30_001, 60_002]
    assert len(found) == 3 + MAX_MALFORMED
    assert cursor.dropped == {"malformed": 60_000 - MAX_MALFORMED}
    assert cursor.expected == {0: 60_003}
    assert len(decoded) == len(found)


def test_skipped_junk_at_the_end_of_a_batch_is_counted_once(batch_of: BatchOf) -> None:
    cursor = LogCursor({0: 0})
    chunk = Chunk(0, 0, build_batch([Record(None, b"junk")] * (MAX_MALFORMED + 50)))

    first, again = cursor.take(chunk), cursor.take(chunk)

    assert (len(first), again) == (MAX_MALFORMED, [])
    assert cursor.dropped == {"malformed": 50}
    assert cursor.expected == {0: MAX_MALFORMED + 50}


def test_a_setting_bounds_how_many_malformed_records_are_kept() -> None:
    cursor = LogCursor({0: 0}, max_malformed=3)

    found = cursor.take(Chunk(0, 0, build_batch([Record(None, b"junk")] * 10)))

    assert len(found) == 3
    assert cursor.dropped == {"malformed": 7}


def test_partitions_that_go_to_another_process_leave_balanced_accounts() -> None:
    cursor = LogCursor({0: 5, 1: 0})
    cursor.expected.update({0: 9, 1: 3})
    ends = {0: 20, 1: 3, 2: 8}

    before = cursor.offered(ends) - cursor.unread(ends)
    cursor.assign([0], {2: 6})

    assert cursor.expected == {1: 3, 2: 6}
    assert cursor.offered(ends) - cursor.unread(ends) == before == 7
    assert cursor.unread(ends) == 2


def test_an_end_that_is_not_known_is_the_position() -> None:
    cursor = LogCursor({0: 5})
    cursor.expected[0] = 9

    assert (cursor.offered({}), cursor.unread({})) == (4, 0)


def test_a_copy_has_its_own_position_and_the_origin_of_the_first(record_of: RecordOf) -> None:
    push = record_of(10)
    push.origin = Origin("their-topic", 3, 17)
    batch = build_batch([Record(record_key(bytes(16)), b"", 0, tuple(encode_headers(push)))], base_offset=5)

    (found,) = LogCursor({1: 5}).take(Chunk(1, 5, batch, "our-topic"))

    assert (found.position, found.origin) == (Origin("our-topic", 1, 5), Origin("their-topic", 3, 17))


def test_pushes_before_a_damaged_place_are_taken_before_it_is_reported(batch_of: BatchOf) -> None:
    cursor = LogCursor({0: 0})
    damaged = bytearray(batch_of(3, 2))
    damaged[16] = 1  # magic
    data = batch_of(0, 3) + bytes(damaged)

    assert offsets_of(cursor, Chunk(0, 0, data)) == [0, 1, 2]
    assert cursor.expected == {0: 3}
    with pytest.raises(WireError):
        cursor.take(Chunk(0, 3, bytes(damaged)))
