"""The records of a share partition that are neither done nor new: spans from the start offset to the next.

Spans of equal state cover the offsets from the start offset, before which everything is done, to the next
offset, from which nothing was delivered yet.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Self

from odradek.share.span import (
    ACKNOWLEDGED,
    ACQUIRED,
    AVAILABLE,
    RecordState,
    Span,
    StoredSpan,
    first_of,
    merged,
)


@dataclass(slots=True, eq=False)
class DeliverySpans:
    """The spans in order, and the ends of what they cover."""

    start: int = 0
    """All records before this offset are done."""
    next: int = 0
    """The first offset that was never acquired."""
    spans: list[Span] = field(default_factory=list)
    """Without holes from `start` to `next`."""
    available_from: int = 0
    """No span before this offset is available."""

    @classmethod
    def restored(cls, start: int, stored: Iterable[StoredSpan] = ()) -> Self:
        """The state after a restart."""
        found = cls(start=start, next=start, available_from=start)
        for first, last, state, deliveries in stored:
            if first > found.next:
                found.append(first - 1, AVAILABLE, 0)
            if last >= found.next:
                found.append(last, RecordState(state), deliveries)
        found.advance()
        return found

    def append(self, last: int, state: RecordState, deliveries: int) -> Span:
        batch = None if state >= ACKNOWLEDGED else (self.next, last)
        span = Span(self.next, last, state, deliveries, batch)
        self.spans.append(span)
        self.next = last + 1
        return span

    def advance(self) -> None:
        """Move the start offset over the records that are done."""
        done = 0
        while done < len(self.spans) and self.spans[done].is_done:
            done += 1
        if done:
            self.start = self.spans[done - 1].last + 1
            del self.spans[:done]
            self.available_from = max(self.available_from, self.start)

    def start_from(self, log_start: int) -> bool:
        """Forget the records that the log no longer has; return whether there were any."""
        if log_start <= self.start:
            return False
        if log_start >= self.next:
            self.spans.clear()
            self.next = log_start
        else:
            index = self.split_at(log_start)
            del self.spans[:index]
        self.start = log_start
        self.available_from = max(self.available_from, log_start)
        self.advance()
        return True

    def stored(self) -> list[StoredSpan]:
        """What a restart needs, beside the start offset."""
        return merged(span.stored for span in self.spans)

    @property
    def done(self) -> int:
        """The number of records after the start offset that are done."""
        return sum(span.last - span.first + 1 for span in self.spans if span.is_done)

    @property
    def held(self) -> int:
        """The number of records that members hold."""
        return sum(span.last - span.first + 1 for span in self.spans if span.state is ACQUIRED)

    # Spans

    def index_of(self, offset: int) -> int:
        """The index of the span that contains an offset; that of the first or after the last otherwise."""
        index = bisect_right(self.spans, offset, key=first_of) - 1
        if index < 0:
            return 0
        return index if self.spans[index].last >= offset else index + 1

    def spans_from(self, offset: int) -> Iterator[Span]:
        """The spans from the one that contains an offset."""
        for index in range(self.index_of(offset), len(self.spans)):
            yield self.spans[index]

    def split_at(self, offset: int) -> int:
        """Make a span begin at an offset; return its index."""
        index = self.index_of(offset)
        if index < len(self.spans) and self.spans[index].first < offset:
            index += 1
            self.spans.insert(index, self.spans[index - 1].split(offset))
        return index

    def within(self, first: int, last: int) -> list[Span]:
        """The spans from ``first`` to ``last``, cut there if need be."""
        start = self.split_at(first)
        return self.spans[start : self.split_at(last + 1)]

    def tidy(self, first: int, last: int) -> None:
        """Join the spans of a part that have become equal, with their neighbors."""
        index = max(self.index_of(first) - 1, 0)
        end = min(self.index_of(last) + 2, len(self.spans))
        joined = [self.spans[index]] if index < end else []
        for span in self.spans[index + 1 : end]:
            if joined[-1].goes_on(span):
                joined[-1].last = span.last
            else:
                joined.append(span)
        self.spans[index:end] = joined
