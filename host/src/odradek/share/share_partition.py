"""The delivery of one partition to one share group, as a state machine (KIP-932).

After SharePartition.java (Kafka 4.4).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from odradek.share.acknowledgement import ACCEPT, REJECT, RELEASE, RENEW, Acknowledgement
from odradek.share.acquisition import Acquired, Limits, LogBatch, Portion, Wanted, ends
from odradek.share.delivery_spans import DeliverySpans
from odradek.share.errors import invalid_request, invalid_state
from odradek.share.given_up import REJECTED, TOO_OFTEN, GivenUp, first_of
from odradek.share.span import ACKNOWLEDGED, ACQUIRED, ARCHIVED, ARCHIVING, AVAILABLE, Span


@dataclass(slots=True, eq=False)
class SharePartition(DeliverySpans):
    """The records of one partition that are on their way to the members of one group."""

    listeners: dict[Callable[[], object], None] = field(default_factory=dict)
    """Called in their order when records may be acquired that could not be before."""
    given_up: list[GivenUp] = field(default_factory=list)
    """What has to be written to the dead-letter topic, and is archived then."""
    exhausted: int = 0
    """Records that were delivered too often, since somebody counted them."""

    # Acquiring

    def next_fetch_offset(self, limits: Limits) -> int | None:
        """The first offset that a fetch could acquire; None while too many records are in flight."""
        for span in self.spans_from(self.available_from):
            if span.state is AVAILABLE:
                self.available_from = span.first
                return span.first
        self.available_from = self.next
        return self.next if self.next - self.start < limits.in_flight else None

    def acquire(
        self, member: str, read: Sequence[LogBatch], wanted: Wanted, limits: Limits, now_ms: int
    ) -> list[Acquired]:
        """Deliver records to a member.

        Args:
            member: Its id.
            read: Batches of the log, from the one that contains or follows `next_fetch_offset`.
            wanted: What the fetch asks for.
            limits: Settings of the group.
            now_ms: Monotonic time.
        """
        if not read or wanted.max_records <= 0:
            return []
        self._drop_vanished(read[0].first)
        deadline_ms = now_ms + limits.lock_ms
        portion = Portion(wanted.max_records, wanted.strict, limits)
        found = self._acquire_again(member, read[-1].last, portion, deadline_ms)
        if portion.rest > 0 and read[-1].last >= self.next:
            found += self._acquire_new(member, read, wanted, portion, deadline_ms)
        if any(batch.aborted for batch in read):
            found = self._without_aborted(found, [batch for batch in read if batch.aborted])
        return found

    def _drop_vanished(self, first: int) -> None:
        """Archive the available records before ``first``: compaction has deleted them."""
        if self.available_from < min(first, self.next):
            for span in self.within(self.available_from, min(first, self.next) - 1):
                if span.state is AVAILABLE:
                    span.unlock(ARCHIVED)

    def _acquire_again(self, member: str, end: int, portion: Portion, deadline_ms: int) -> list[Acquired]:
        """Deliver records that were released."""
        found: list[Acquired] = []
        index = self.index_of(self.available_from)
        while index < len(self.spans) and self.spans[index].first <= end:
            span = self.spans[index]
            index += 1
            if span.state is not AVAILABLE:
                continue
            last = min(span.first + portion.of(span) - 1, end)
            if last < span.first:
                break
            if last < span.last:
                self.spans.insert(index, span.split(last + 1))
            span.lock(member, deadline_ms)
            portion.took(last - span.first + 1)
            found.append(Acquired(span.first, last, span.deliveries))
        return found

    def _acquire_new(
        self,
        member: str,
        read: Sequence[LogBatch],
        wanted: Wanted,
        portion: Portion,
        deadline_ms: int,
    ) -> list[Acquired]:
        """Deliver records for the first time: whole batches, the last of which may exceed the limits."""
        most = min(portion.rest, portion.limits.in_flight - (self.next - self.start))
        read = [batch for batch in read if batch.last >= self.next]
        if most <= 0:
            return []
        if read[0].first > self.next:
            if self.spans:
                self.append(read[0].first - 1, ARCHIVED, 0)  # a gap in the log
            else:
                self.start = self.next = read[0].first
        first, last = self.next, read[-1].last
        if last - first + 1 > most:
            last = max(first, *(batch.last for batch in read if batch.first < first + most))
        if wanted.strict:
            span = self.append(last, AVAILABLE, 0)
            if last - first + 1 > most:
                self.spans.append(span.split(first + most))
            span.lock(member, deadline_ms)
            return [Acquired(first, span.last, 1)]
        found = []
        for end in ends(read, first, last, wanted.batch_size):
            span = self.append(end, AVAILABLE, 0)
            span.lock(member, deadline_ms)
            found.append(Acquired(span.first, end, 1))
        return found

    def _without_aborted(self, found: list[Acquired], aborted: Sequence[LogBatch]) -> list[Acquired]:
        """Archive what belongs to aborted transactions; return the rest."""
        kept: list[Acquired] = []
        for first, last, deliveries in found:
            for batch in aborted:
                if batch.last < first or batch.first > last:
                    continue
                for span in self.within(max(first, batch.first), min(last, batch.last)):
                    span.unlock(ARCHIVED)
                if batch.first > first:
                    kept.append(Acquired(first, batch.first - 1, deliveries))
                first = batch.last + 1
            if first <= last:
                kept.append(Acquired(first, last, deliveries))
        if found:
            self.tidy(found[0].first, found[-1].last)
        self.advance()
        return kept

    # Acknowledging

    def acknowledge(
        self, member: str, acknowledgements: Sequence[Acknowledgement], limits: Limits, now_ms: int
    ) -> bool:
        """Take the words of a member about records that it holds: all of them or none.

        Records before the start offset are ignored: they are done, whatever the member says.

        Returns:
            Whether the state has to be stored; a renewed lock is not.

        Raises:
            ApiError: INVALID_REQUEST: nobody ever got such a record. INVALID_RECORD_STATE: the member does
                not hold it, or locks cannot be renewed.
        """
        current = [
            (max(first, self.start), last, kind)
            for first, last, kind in acknowledgements
            if last >= self.start
        ]
        for first, last, kind in current:
            self._check_held(member, first, last)
            if kind == RENEW and not limits.may_renew:
                raise invalid_state(first, last)
        for first, last, kind in current:
            for span in self.within(first, last):
                if kind == RENEW:
                    span.deadline_ms = now_ms + limits.lock_ms
                elif kind == RELEASE:
                    self._release(span, limits)
                elif kind == REJECT:
                    self._give_up(span, limits, REJECTED)
                else:
                    span.unlock(ACKNOWLEDGED if kind == ACCEPT else ARCHIVED)
            self.tidy(first, last)
        return any(kind != RENEW for _, _, kind in current)

    def _check_held(self, member: str, first: int, last: int) -> None:
        if last >= self.next:
            raise invalid_request(f"offset {last} was never acquired")
        for span in self.spans_from(first):
            if span.first > last:
                break
            if span.state is not ACQUIRED or span.member != member:
                raise invalid_state(first, last)

    # Releasing

    def _release(self, span: Span, limits: Limits) -> None:
        """Make records available again, unless they were delivered too often."""
        if span.deliveries >= limits.most_deliveries:
            self.exhausted += span.last - span.first + 1
            self._give_up(span, limits, TOO_OFTEN)
        else:
            span.unlock(AVAILABLE)
            self.available_from = min(self.available_from, span.first)

    def release(self, member: str, limits: Limits) -> int:
        """Release everything that a member holds; return how many records that were."""
        return self._release_where(limits, lambda span: span.member == member)

    def expire(self, limits: Limits, now_ms: int) -> int:
        """Release what is locked no longer; return how many records that were."""
        return self._release_where(limits, lambda span: span.deadline_ms <= now_ms)

    def _release_where(self, limits: Limits, chosen: Callable[[Span], bool]) -> int:
        spans = [span for span in self.spans if span.state is ACQUIRED and chosen(span)]
        records = sum(span.last - span.first + 1 for span in spans)
        for span in spans:
            self._release(span, limits)
        if spans:
            self.tidy(spans[0].first, spans[-1].last)
        return records

    # Giving up

    def _give_up(self, span: Span, limits: Limits, reason: str) -> None:
        """Deliver records no more. They are done once they are dead letters, if the group has these."""
        if limits.has_dead_letters:
            span.unlock(ARCHIVING)
            self.given_up.append(GivenUp(span.first, span.last, span.deliveries, reason))
        else:
            span.unlock(ARCHIVED)

    def find_given_up(self, limits: Limits) -> None:
        """Find after a restart what has to be written. The reasons were not stored: the deliveries tell."""
        self.given_up = [
            GivenUp(
                span.first,
                span.last,
                span.deliveries,
                TOO_OFTEN if span.deliveries >= limits.most_deliveries else REJECTED,
            )
            for span in self.spans
            if span.state is ARCHIVING
        ]

    def buried(self, records: int) -> None:
        """Archive the first records of those that are given up: as many as that, or all."""
        for each in first_of(self.given_up, records):
            first = max(each.first, self.start)
            if first <= each.last:
                for span in self.within(first, each.last):
                    span.unlock(ARCHIVED)
                self.tidy(first, each.last)
        while records > 0 and self.given_up:
            each = self.given_up[0]
            if each.records <= records:
                del self.given_up[0]
            else:
                self.given_up[0] = each._replace(first=each.first + records)
            records -= each.records

    @property
    def next_deadline_ms(self) -> int | None:
        """When the next lock ends; None if no record is held."""
        return min((span.deadline_ms for span in self.spans if span.state is ACQUIRED), default=None)

    def advanced(self, limits: Limits) -> bool:
        """Move the start offset; return whether a fetch may find records that it could not get before."""
        was_full = self.next - self.start >= limits.in_flight
        self.advance()
        offset = self.next_fetch_offset(limits)
        return offset is not None and (was_full or offset < self.next)

    def tell(self) -> None:
        """Wake those that wait for records, in the order in which they came."""
        for listener in tuple(self.listeners):
            listener()
