"""Which offsets a batch reads, and which of them a task: plain arithmetic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Offsets = dict[int, int]
"""By partition of the topic, the next offset to read."""


class ForeignOffsets(ValueError):
    """What a checkpoint holds is not what this source wrote; the message says what to do."""


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """Some offsets of one partition."""

    partition: int
    start: int
    end: int
    """The first offset that does not belong to it."""

    @property
    def records(self) -> int:
        """How many there are at most: a log may have gaps."""
        return self.end - self.start


def as_json(offsets: Mapping[int, int]) -> dict[str, int]:
    """Offsets as Spark keeps them."""
    return {str(partition): offset for partition, offset in sorted(offsets.items())}


def from_json(offsets: Mapping[str, int]) -> Offsets:
    """What `as_json` wrote.

    Raises:
        ForeignOffsets: It was somebody else, or a disk.
    """
    try:
        return {int(partition): int(offset) for partition, offset in offsets.items()}
    except (AttributeError, TypeError, ValueError) as error:
        raise ForeignOffsets(
            f"the checkpoint holds {offsets!r} as offsets: it is damaged or that of another source. Delete it"
        ) from error


def backlog(start: Mapping[int, int], end: Mapping[int, int]) -> int:
    """Records between two offsets; a partition that is new begins where it is."""
    return sum(max(0, stop - start.get(partition, stop)) for partition, stop in end.items())


def limited(
    start: Mapping[int, int], end: Mapping[int, int], record_bytes: Mapping[int, float], max_bytes: int
) -> Offsets:
    """How far to read so that it is about ``max_bytes``: every partition gets its share of its backlog.

    At least one record of each partition that has any, so that large ones do not hold everything up.
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
    """What lies between two offsets, one range for each partition that has any."""
    return [
        OffsetRange(partition, start[partition], stop)
        for partition, stop in sorted(end.items())
        if partition in start and stop > start[partition]
    ]


def tasks(found: list[OffsetRange], record_bytes: Mapping[int, float], task_bytes: int) -> list[OffsetRange]:
    """Ranges cut into pieces that are about as large as a task should be."""
    pieces: list[OffsetRange] = []
    for each in found:
        size = max(1.0, record_bytes.get(each.partition, 1.0))
        step = max(1, int(task_bytes / size))
        pieces.extend(
            OffsetRange(each.partition, begin, min(begin + step, each.end))
            for begin in range(each.start, each.end, step)
        )
    return pieces
