"""The log compared with a list, through every kind of deletion; a compacted log compared with a dict."""

from __future__ import annotations

import shutil
import tempfile
from itertools import islice
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from odradek.log.cleanable import cleanable
from odradek.log.cleaner import Cleaner
from odradek.log.log_config import LogConfig
from odradek.log.log_manager import LogManager
from odradek.log.partition_log import PartitionLog
from odradek.testing.clock import MockClock
from odradek.waiting.steps import Steps, result_of, run_steps
from odradek.wire.compression import Codec
from odradek.wire.record import Record
from odradek.wire.record_batch import build_batch, is_intact, record_batches, records
from support.examples import examples

Entry = tuple[int, bytes | None, bytes | None, int]
"""Offset, key, value, timestamp."""


def entries(log: PartitionLog) -> list[Entry]:
    """All records from the log start offset on."""
    found: list[Entry] = []
    offset = log.log_start_offset
    while offset < log.log_end_offset and (data := log.read(offset, 1 << 20)):
        for header, batch in record_batches(data):
            assert is_intact(batch, header)
            found += (
                (each.offset, each.key, each.value, each.timestamp_ms)
                for each in records(batch, header)
                if each.offset >= offset
            )
            offset = header.next_offset
    return found


class LogMachine(RuleBasedStateMachine):
    """One partition in two directories."""

    config = LogConfig()

    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.clock = MockClock()
        self.end = 0
        self.going: Steps | None = None
        self.open()

    def open(self) -> None:
        self.manager = LogManager(
            self.folder / "one", self.folder / "two", now_ms=self.clock.now_ms(), max_open_files=3
        )
        self.log = self.manager.open("a", 0, self.config, bytes(range(16)))

    def append_records(self, found: list[Record], codec: Codec) -> None:
        batch = build_batch(found, codec=codec, producer_id=1, producer_epoch=0, base_sequence=self.end)
        info = self.log.append(batch, self.clock.now_ms())
        assert info.base_offset == self.end
        self.end += len(found)

    @rule()
    def restart(self) -> None:
        self.going = None
        self.manager.close()
        self.open()

    @rule(torn_bytes=st.integers(0, 60))
    def crash(self, torn_bytes: int) -> None:
        self.going = None
        self.log.release()
        with self.log.segments[-1].path.open("ab") as file:
            file.write(build_batch([Record(None, b"never acknowledged")])[:torn_bytes])
        self.open()

    @rule(steps=st.integers(1, 30))
    def move(self, steps: int) -> None:
        """Copy a part of the log to the other directory."""
        if self.going is None or ("a", 0) not in self.manager.moves:
            here = self.log.directory.parent
            there = next(each for each in self.manager.directories if each != here)
            started = self.manager.move("a", 0, there, self.clock)
            assert started is not None
            self.going = started.steps()
        for step in islice(self.going, steps):
            if callable(step):
                step()
        if self.log.directory.parent == self.manager.moves["a", 0].directory:
            run_steps(self.going)
            del self.manager.moves["a", 0]

    @invariant()
    def the_end_offset_matches(self) -> None:
        if hasattr(self, "log"):
            assert self.log.log_end_offset == self.end
            assert self.log.log_start_offset <= self.end

    def teardown(self) -> None:
        if hasattr(self, "log"):
            self.log.release()
            shutil.rmtree(self.folder)


class LogAsAList(LogMachine):
    """Only deleted records are gone, and they do not come back."""

    config = LogConfig(
        segment_bytes=700, index_interval_bytes=150, retention_ms=20_000, retention_bytes=4_000
    )

    @initialize()
    def start_empty(self) -> None:
        self.written: list[Entry] = []
        self.start = 0

    @rule(
        values=st.lists(st.binary(max_size=100), min_size=1, max_size=4),
        codec=st.sampled_from(list(Codec)),
        pause_ms=st.integers(0, 3_000),
    )
    def append(self, values: list[bytes], codec: Codec, pause_ms: int) -> None:
        self.clock.advance(pause_ms)
        now_ms = self.clock.now_ms()
        base = self.end
        self.append_records([Record(None, value, now_ms) for value in values], codec)
        self.written += ((base + index, None, value, now_ms) for index, value in enumerate(values))

    @rule()
    def roll(self) -> None:
        self.log.roll(self.clock.now_ms())

    @rule(pause_ms=st.integers(0, 15_000))
    def retain(self, pause_ms: int) -> None:
        self.clock.advance(pause_ms)
        now_ms = self.clock.now_ms()

        self.log.delete_expired(now_ms)

        kept = [each for each in self.log.segments if each.size_bytes]
        assert all(now_ms - each.max_timestamp_ms <= 20_000 for each in kept[:1])
        assert self.log.size_bytes - (kept[0].size_bytes if kept else 0) < 4_000
        self.start = max(self.start, self.log.log_start_offset)

    @precondition(lambda self: self.written)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        offset = data.draw(st.integers(-1, self.end))

        low_watermark = self.log.delete_records(offset)

        self.start = max(self.start, self.end if offset == -1 else offset)
        assert low_watermark == self.start

    @rule()
    def compare(self) -> None:
        assert self.log.log_start_offset == self.start
        assert entries(self.log) == [each for each in self.written if each[0] >= self.start]

    @precondition(lambda self: self.written)
    @rule(data=st.data())
    def look_up(self, data: st.DataObject) -> None:
        timestamp_ms = data.draw(st.sampled_from(self.written))[3]

        found = result_of(self.log.offset_for_time(timestamp_ms))

        left = [each for each in self.written if each[0] >= self.start and each[3] >= timestamp_ms]
        assert found == ((left[0][3], left[0][0]) if left else None)


class LogAsADict(LogMachine):
    """A consumer that reads a compacted log from the start ends with the last value of each key."""

    config = LogConfig(
        segment_bytes=500,
        index_interval_bytes=150,
        cleanup_policy=frozenset({"compact"}),
        delete_retention_ms=5_000,
    )

    @initialize()
    def start_empty(self) -> None:
        self.written: dict[int, Entry] = {}
        self.latest: dict[bytes, bytes] = {}

    @rule(
        pairs=st.lists(
            st.tuples(st.sampled_from(b"abcdefgh"), st.one_of(st.none(), st.binary(max_size=40))),
            min_size=1,
            max_size=5,
        ),
        codec=st.sampled_from(list(Codec)),
    )
    def append(self, pairs: list[tuple[int, bytes | None]], codec: Codec) -> None:
        now_ms = self.clock.now_ms()
        base = self.end
        found = [Record(bytes([key]) * (key % 30), value, now_ms) for key, value in pairs]
        self.append_records(found, codec)
        for index, record in enumerate(found):
            assert record.key is not None
            self.written[base + index] = (base + index, record.key, record.value, now_ms)
            if record.value is None:
                self.latest.pop(record.key, None)
            else:
                self.latest[record.key] = record.value

    @rule(pause_ms=st.integers(0, 4_000), keys=st.integers(1, 12), steps=st.integers(0, 200))
    def compact(self, pause_ms: int, keys: int, steps: int) -> None:
        """Run one compaction round, possibly abandoned; an open move keeps it from changing anything."""
        self.clock.advance(pause_ms)
        now_ms = self.clock.now_ms()
        going = Cleaner(cleanable(self.log, now_ms), now_ms, keys * 200).steps()

        for step in islice(going, steps):
            if callable(step):
                step()
        if steps % 4:
            run_steps(going)
        else:
            going.close()

    @rule()
    def compare(self) -> None:
        found = entries(self.log)
        assert [each[0] for each in found] == sorted({each[0] for each in found})
        assert all(self.written[each[0]] == each for each in found)
        state = {key: value for _, key, value, _ in found}
        assert {key: value for key, value in state.items() if value is not None} == self.latest


TestLogAsAList = LogAsAList.TestCase
TestLogAsAList.settings = settings(max_examples=examples(50), stateful_step_count=40)
TestLogAsADict = LogAsADict.TestCase
TestLogAsADict.settings = settings(max_examples=examples(50), stateful_step_count=40)
