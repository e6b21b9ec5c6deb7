"""Arithmetic on offsets: the offsets of a batch, and of each of its tasks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from odradek_spark.conditions import Condition

Offsets = dict[int, int]
"""By partition of the topic, the next offset to read."""


class ForeignOffsets(Condition, ValueError):
    """The checkpoint holds offsets that this source did not write; the message says what to do."""

    condition = "ODRADEK_CHECKPOINT"


@dataclass(frozen=True, slots=True)
class OffsetRange:
    partition: int
    start: int
    end: int
    """The last offset plus 1."""

    @property
    def records(self) -> int:
        """The maximum number of records: a log may have gaps."""
        return self.end - self.start


def as_json(offsets: Mapping[int, int]) -> dict[str, int]:
    return {str(partition): offset for partition, offset in sorted(offsets.items())}


def from_json(offsets: Mapping[str, int]) -> Offsets:
    try:
        return {int(partition): int(offset) for partition, offset in offsets.items()}
    except (AttributeError, TypeError, ValueError) as error:
        raise ForeignOffsets(
            f"the checkpoint holds the offsets {offsets!r}: it is damaged or belongs to another source. "
            "Delete it"
        ) from error


def backlog(start: Mapping[int, int], end: Mapping[int, int]) -> int:
    """The number of records between two offsets; partitions without a start count as empty."""
    return sum(max(0, stop - start.get(partition, stop)) for partition, stop in end.items())


def limited(
    start: Mapping[int, int], end: Mapping[int, int], record_bytes: Mapping[int, float], max_bytes: int
) -> Offsets:
    """The end of a batch of about ``max_bytes``. Each partition gets a share in proportion to its backlog.

    The batch has at least one record of each partition with a backlog, so large records cannot block it.
    """
    sizes = {
        partition: (stop - start.get(partition, stop)) * max(1.0, record_bytes.get(partition, 1.0))
        for partition, stop in end.items()
    }
    total = sum(sizes.values())
    if total <= max_bytes:
        return dict(end)
    share = max_bytes / total
    reached = {}
    for partition, stop in end.items():
        begin = start.get(partition, stop)
        reached[partition] = (
            begin if stop <= begin else min(stop, begin + max(1, int((stop - begin) * share)))
        )
    return reached


def ranges(start: Mapping[int, int], end: Mapping[int, int]) -> list[OffsetRange]:
    """The records between two offsets, one range for each partition that has any."""
    return [
        OffsetRange(partition, start[partition], stop)
        for partition, stop in sorted(end.items())
        if partition in start and stop > start[partition]
    ]


def grouped(
    pieces: list[OffsetRange], record_bytes: Mapping[int, float], group_bytes: int
) -> list[tuple[OffsetRange, ...]]:
    """Put small adjacent pieces together, up to ``group_bytes``: a task costs more than a few records."""
    groups: list[tuple[OffsetRange, ...]] = []
    held = 0.0
    for each in pieces:
        size = each.records * max(1.0, record_bytes.get(each.partition, 1.0))
        if groups and held + size <= group_bytes:
            groups[-1] = (*groups[-1], each)
            held += size
        else:
            groups.append((each,))
            held = size
    return groups


def tasks(
    found: list[OffsetRange],
    record_bytes: Mapping[int, float],
    task_bytes: int,
    most_records: int | None = None,
) -> list[OffsetRange]:
    """Split ranges into pieces of about ``task_bytes``, of ``most_records`` at most."""
    pieces: list[OffsetRange] = []
    for each in found:
        size = max(1.0, record_bytes.get(each.partition, 1.0))
        step = max(1, int(task_bytes / size))
        step = step if most_records is None else min(step, most_records)
        pieces.extend(
            OffsetRange(each.partition, begin, min(begin + step, each.end))
            for begin in range(each.start, each.end, step)
        )
    return pieces
