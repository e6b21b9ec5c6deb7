"""The delivery of records to share groups, beside a model that knows each record by itself.

No record is held by two members, none is lost before it was accepted, rejected or delivered as often as the
group allows, each delivery is counted, and what is given up is done once it is a dead letter.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.share.acknowledgement import ACCEPT, REJECT, RELEASE, RENEW, Acknowledgement
from odradek.share.acquisition import Limits, LogBatch, Wanted
from odradek.share.given_up import first_of
from odradek.share.share_partition import SharePartition
from odradek.share.span import AVAILABLE
from odradek.wire.api_error import ApiError
from support.examples import examples

END = 60
MEMBERS = ("a", "b", "c")
LIMITS = Limits(lock_ms=10, most_deliveries=3, in_flight=30, has_dead_letters=True)

steps = st.lists(
    st.one_of(
        st.tuples(
            st.just("fetch"), st.sampled_from(MEMBERS), st.integers(1, 12), st.integers(1, 8), st.booleans()
        ),
        st.tuples(
            st.just("say"),
            st.sampled_from(MEMBERS),
            st.lists(st.tuples(st.integers(0, END), st.integers(0, 4), st.integers(0, 4)), max_size=3),
        ),
        st.tuples(st.just("leave"), st.sampled_from(MEMBERS)),
        st.tuples(st.just("wait"), st.integers(1, 6)),
        st.tuples(st.just("restart")),
        st.tuples(st.just("bury"), st.integers(1, 10)),
        st.tuples(st.just("delete"), st.integers(0, END)),
    ),
    max_size=60,
)
"""What happens to a partition, in order."""
sizes = st.lists(st.integers(1, 7), min_size=END, max_size=END)


@dataclass
class Model:
    """Each record by its offset."""

    deliveries: list[int] = field(default_factory=lambda: [0] * END)
    holder: dict[int, tuple[str, int]] = field(default_factory=dict)
    """The member that holds a record, and when its lock ends."""
    done: set[int] = field(default_factory=set)
    given_up: set[int] = field(default_factory=set)
    """Records that have to be dead letters, and are not delivered again."""

    def release(self, offset: int) -> None:
        del self.holder[offset]
        if self.deliveries[offset] >= LIMITS.most_deliveries:
            self.given_up.add(offset)

    def say(self, member: str, words: list[Acknowledgement], now_ms: int, start: int) -> bool:
        """Whether the words are taken."""
        offsets = [
            (offset, kind)
            for first, last, kind in words
            for offset in range(first, last + 1)
            if offset >= start
        ]
        if any(self.holder.get(offset, ("", 0))[0] != member for offset, _ in offsets):
            return False
        for offset, kind in offsets:
            if kind == RENEW:
                self.holder[offset] = member, now_ms + LIMITS.lock_ms
            elif kind == RELEASE:
                self.release(offset)
            else:
                del self.holder[offset]
                (self.given_up if kind == REJECT else self.done).add(offset)
        return True


def log_of(batch_sizes: list[int]) -> list[LogBatch]:
    """Batches without gaps, up to the end of the log."""
    found, first = [], 0
    for size in batch_sizes:
        last = min(first + size, END) - 1
        if last >= first:
            found.append(LogBatch(first, last))
        first = last + 1
    return found


class Run:
    """A partition and its model, step by step."""

    def __init__(self, log: list[LogBatch]) -> None:
        self.log, self.partition, self.model = log, SharePartition(), Model()
        self.now_ms = 0

    def fetch(self, member: str, max_records: int, batch_size: int, strict: bool) -> None:
        offset = self.partition.next_fetch_offset(LIMITS)
        if offset is None:
            return
        read = [batch for batch in self.log if batch.last >= offset]
        wanted = Wanted(max_records, batch_size, strict)
        got = self.partition.acquire(member, read, wanted, LIMITS, self.now_ms)
        for first, last, deliveries in got:
            for record in range(first, last + 1):
                assert record not in self.model.holder
                assert record not in self.model.done | self.model.given_up
                self.model.deliveries[record] += 1
                assert self.model.deliveries[record] == deliveries
                self.model.holder[record] = member, self.now_ms + LIMITS.lock_ms
        if strict:
            assert sum(last - first + 1 for first, last, _ in got) <= max_records

    def say(self, member: str, spoken: list[tuple[int, int, int]]) -> None:
        words, end = [], 0
        for first, more, kind in sorted(spoken):
            if first >= end:
                words.append(Acknowledgement(first, first + more, kind))
                end = first + more + 1
        start = self.partition.start
        try:
            self.partition.acknowledge(member, words, LIMITS, self.now_ms)
            taken = True
        except ApiError:
            taken = False
        assert taken == self.model.say(member, words, self.now_ms, start)
        self.partition.advance()

    def leave(self, member: str) -> None:
        self.partition.release(member, LIMITS)
        for offset in [offset for offset, (holder, _) in self.model.holder.items() if holder == member]:
            self.model.release(offset)
        self.partition.advance()

    def wait(self, passed_ms: int) -> None:
        self.now_ms += passed_ms
        self.partition.expire(LIMITS, self.now_ms)
        for offset in [offset for offset, (_, end_ms) in self.model.holder.items() if end_ms <= self.now_ms]:
            self.model.release(offset)
        self.partition.advance()
        deadlines = [end_ms for _, end_ms in self.model.holder.values()]
        assert self.partition.next_deadline_ms == (min(deadlines) if deadlines else None)

    def restart(self) -> None:
        self.partition = SharePartition.restored(self.partition.start, self.partition.stored())
        self.partition.find_given_up(LIMITS)
        for offset in self.model.holder:
            self.model.deliveries[offset] -= 1
        self.model.holder.clear()

    def delete(self, log_start: int) -> None:
        self.partition.start_from(log_start)
        for offset in range(log_start):
            self.model.holder.pop(offset, None)
            self.model.given_up.discard(offset)
            self.model.done.add(offset)

    def bury(self, records: int) -> None:
        """Some records have become dead letters."""
        for lot in list(first_of(self.partition.given_up, records)):
            for offset in range(lot.first, lot.last + 1):
                assert offset in self.model.given_up | self.model.done
                self.model.given_up.discard(offset)
                self.model.done.add(offset)
        self.partition.buried(records)
        self.partition.advance()

    def check(self) -> None:
        partition, model = self.partition, self.model
        assert set(range(min(partition.start, END))) <= model.done
        at = partition.start
        for span in partition.spans:
            assert (span.first, span.last >= span.first) == (at, True)
            at = span.last + 1
            for offset in range(span.first, span.last + 1):
                held = model.holder.get(offset)
                assert (span.member, span.deadline_ms) == (held or ("", 0))
                assert span.is_done == (offset in model.done)
                assert span.is_done or span.deliveries == model.deliveries[offset]
        assert at == partition.next
        waiting = {offset for each in partition.given_up for offset in range(each.first, each.last + 1)}
        assert model.given_up <= waiting
        assert not partition.spans or not partition.spans[0].is_done
        open_ones = [each.first for each in partition.spans if each.state is AVAILABLE]
        assert partition.available_from <= min(open_ones, default=partition.next)


@given(batch_sizes=sizes, script=steps)
@settings(max_examples=examples(300), deadline=None)
def test_every_record_is_delivered_to_one_member_at_a_time_until_it_is_done(
    batch_sizes: list[int], script: list[tuple[object, ...]]
) -> None:
    run = Run(log_of(batch_sizes))
    for name, *arguments in script:
        getattr(run, str(name))(*arguments)
        run.check()

    # a member that accepts everything gets all that is left
    run.wait(LIMITS.lock_ms)
    for _ in range(END):
        run.fetch("last", END, END, strict=False)
        for first, last in [(each.first, each.last) for each in run.partition.spans if each.member]:
            run.say("last", [(first, last - first, ACCEPT)])
        run.bury(END)
    assert run.model.done == set(range(END))
