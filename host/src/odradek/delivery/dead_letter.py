"""Records that were given up, in the format of the dead-letter topic."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from odradek.delivery.spool_writer import BATCH_BYTES
from odradek.delivery.spooled_record import SpooledRecord
from odradek.wire.compression import Codec
from odradek.wire.record import Record
from odradek.wire.record_batch import build_batch

REASON: Final = "dead_letter_reason"
FORWARDER: Final = "dead_letter_forwarder"
TOPIC: Final = "dead_letter_topic"
PARTITION: Final = "dead_letter_partition"
OFFSET: Final = "dead_letter_offset"
MAX_REASON_BYTES: Final = 1_000


def dead_letters(
    records: Iterable[SpooledRecord], forwarder: str, topic: str, reason: str
) -> Iterator[bytes]:
    """Batches of the records (see `SpooledRecord.letter`), with headers that say where they come from and
    why.

    A batch is no larger than the host writes them, or is a single record: the topic takes it.
    """
    text = reason.encode("utf-8", "replace")[:MAX_REASON_BYTES]
    waiting: list[Record] = []
    waiting_bytes = 0
    for each in records:
        found = each.letter()
        letter = found._replace(
            headers=(
                *found.headers,
                (REASON, text),
                (FORWARDER, forwarder.encode()),
                (TOPIC, topic.encode()),
                (PARTITION, b"%d" % each.partition),
                (OFFSET, b"%d" % each.original.offset),
            )
        )
        size_bytes = estimated_bytes(letter)
        if waiting and waiting_bytes + size_bytes > BATCH_BYTES:
            yield build_batch(waiting, codec=Codec.ZSTD)
            waiting, waiting_bytes = [], 0
        waiting.append(letter)
        waiting_bytes += size_bytes
    if waiting:
        yield build_batch(waiting, codec=Codec.ZSTD)


def estimated_bytes(record: Record) -> int:
    """About as many as it has in a batch that is not compressed."""
    headers = sum(len(name) + len(value or b"") for name, value in record.headers)
    return len(record.key or b"") + len(record.value or b"") + headers
