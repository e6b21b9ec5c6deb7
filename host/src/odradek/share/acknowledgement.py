"""What a member says about records that it got."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, Protocol

from odradek.share.errors import invalid_request, invalid_state

GAP: Final = 0
"""There is no record at this offset."""
ACCEPT: Final = 1
RELEASE: Final = 2
REJECT: Final = 3
RENEW: Final = 4
"""Hold the record for another lock duration (KIP-1222)."""
NAMES: Final = ("gap", "accept", "release", "reject", "renew")
"""Of the types, by number."""


class Acknowledgement(NamedTuple):
    """The same word about consecutive records."""

    first: int
    last: int
    type: int


class RequestedBatch(Protocol):
    """An element of ShareFetch and ShareAcknowledge."""

    @property
    def first_offset(self) -> int: ...

    @property
    def last_offset(self) -> int: ...

    @property
    def acknowledge_types(self) -> Sequence[int]: ...


def parsed(batches: Iterable[RequestedBatch], last_type: int) -> list[Acknowledgement]:
    """The acknowledgements of one partition, in order; neighbors of one type in one piece.

    Args:
        batches: Those of the request.
        last_type: The greatest type that the version of the request has.

    Raises:
        ApiError: INVALID_REQUEST: the batches are not in order, or the types do not fit.
            INVALID_RECORD_STATE: two words about one record.
    """
    found: list[Acknowledgement] = []
    end = 0
    for batch in batches:
        first, last, types = batch.first_offset, batch.last_offset, batch.acknowledge_types
        if first > last or first < end:
            raise invalid_request(f"acknowledgement batch from {first} to {last} is out of order")
        if found and first == end:
            raise invalid_state(first, first)  # Kafka takes the first word, then misses the record
        end = last
        if not types or (len(types) > 1 and len(types) != last - first + 1):
            raise invalid_request(f"{len(types)} acknowledge types for offsets {first} to {last}")
        for each in types:
            if not GAP <= each <= last_type:
                raise invalid_request(f"unknown acknowledge type {each}")
        if len(types) == 1:
            found.append(Acknowledgement(first, last, types[0]))
        else:
            found += runs(first, types)
    return found


def runs(first: int, types: Sequence[int]) -> Iterable[Acknowledgement]:
    """One type for each offset, as pieces of equal types."""
    start = 0
    for index in range(1, len(types) + 1):
        if index == len(types) or types[index] != types[start]:
            yield Acknowledgement(first + start, first + index - 1, types[start])
            start = index
