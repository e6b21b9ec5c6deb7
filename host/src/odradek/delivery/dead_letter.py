"""Records that are given up, as they stand in the dead-letter topic."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from odradek.delivery.spooled_record import SpooledRecord
from odradek.wire.compression import Codec
from odradek.wire.record_batch import build_batch

REASON: Final = "dead_letter_reason"
FORWARDER: Final = "dead_letter_forwarder"
TOPIC: Final = "dead_letter_topic"
PARTITION: Final = "dead_letter_partition"
OFFSET: Final = "dead_letter_offset"
MAX_REASON_BYTES: Final = 1_000


def dead_letters(records: Iterable[SpooledRecord], forwarder: str, topic: str, reason: str) -> bytes:
    """One batch of the records as they were, with headers that say where they come from and why."""
    text = reason.encode("utf-8", "replace")[:MAX_REASON_BYTES]
    return build_batch(
        (
            each.original._replace(
                headers=(
                    *each.original.headers,
                    (REASON, text),
                    (FORWARDER, forwarder.encode()),
                    (TOPIC, topic.encode()),
                    (PARTITION, b"%d" % each.partition),
                    (OFFSET, b"%d" % each.original.offset),
                )
            )
            for each in records
        ),
        codec=Codec.ZSTD,
    )
