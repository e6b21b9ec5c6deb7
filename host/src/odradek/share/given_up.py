"""Records that a share group does not deliver any more, on their way to its dead-letter topic (KIP-1191)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

REJECTED: Final = "Offset rejected by client."
"""Kafka's text, which readers of the topic compare."""
TOO_OFTEN: Final = "Offset delivery count exceeded the threshold."


class GivenUp(NamedTuple):
    """Consecutive records that were given up together."""

    first: int
    last: int
    deliveries: int
    reason: str

    @property
    def records(self) -> int:
        """How many."""
        return self.last - self.first + 1


def first_of(given_up: Iterable[GivenUp], records: int) -> Iterator[GivenUp]:
    """The first ``records`` of them, or all."""
    for each in given_up:
        if records <= 0:
            return
        yield each if each.records <= records else each._replace(last=each.first + records - 1)
        records -= each.records
