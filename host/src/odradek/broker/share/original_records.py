"""The records of a partition by offset, for those that copy them."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from odradek.broker.topics import Topic
from odradek.waiting.steps import Step
from odradek.wire.errors import WireError
from odradek.wire.limits import INT64_MAX
from odradek.wire.record import Record
from odradek.wire.record_batch import RecordBatchHeader, record_batches, records

READ_BYTES: Final = 262_144
"""Read at once; at least one batch."""
MAX_BYTES: Final = 1_048_576
"""Of keys and values that one look finds, and one record more."""


@dataclass(slots=True)
class Originals:
    """Some records of a partition."""

    by_offset: dict[int, Record] = field(default_factory=dict)
    """Those that the log still has."""
    end: int = INT64_MAX
    """Nobody has looked for records from here on."""
    size_bytes: int = 0

    def take(self, batch: bytes, header: RecordBatchHeader, first: int, last: int) -> None:
        """Take the records of a batch from ``first`` to ``last``; none of a batch that cannot be opened."""
        try:
            for each in records(batch, header):
                if first <= each.offset <= last:
                    if self.size_bytes >= MAX_BYTES:
                        self.end = each.offset
                        return
                    self.by_offset[each.offset] = each
                    self.size_bytes += len(each.key or b"") + len(each.value or b"")
        except WireError:
            return


def originals(topic: Topic, index: int, first: int, last: int) -> Generator[Step, Any, Originals]:
    """The records from ``first`` to ``last``. Batches are opened on a thread.

    Raises:
        ApiError: KAFKA_STORAGE_ERROR, CORRUPT_MESSAGE.
    """
    found = Originals()
    while first <= last and found.end == INT64_MAX:
        log = topic.partition(index)
        if log is None or log.offline:
            break
        first = max(first, log.log_start_offset)
        extent = log.find(first, READ_BYTES) if first < log.log_end_offset else None
        if extent is None:
            break
        for header, batch in record_batches(extent.read()):
            if not header.is_control and header.base_offset <= last and found.end == INT64_MAX:
                yield partial(found.take, bytes(batch), header, first, last)
            first = max(first, header.last_offset) + 1
    return found
