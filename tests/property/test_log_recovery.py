"""Recovery keeps every batch before the damage and never raises; the log behaves like a list of records."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from odradek.log.log_config import LogConfig
from odradek.log.partition_log import PartitionLog
from odradek.waiting.steps import result_of
from odradek.wire.compression import Codec
from odradek.wire.record_batch import record_batches, records
from support.batches import NOW_MS, batch_of, values_from
from support.examples import examples

CONFIG = LogConfig(segment_bytes=1_500, index_interval_bytes=200)
values = st.lists(st.binary(max_size=120), min_size=1, max_size=4)
batches = st.lists(values, min_size=1, max_size=25)


@contextmanager
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as path:
        yield Path(path)


def filled(path: Path, written: list[list[bytes]]) -> tuple[PartitionLog, list[tuple[int, int, int]]]:
    """A log, and for each batch its segment, its end in bytes there, and the offset after it."""
    log = PartitionLog(path, CONFIG, NOW_MS)
    ends = []
    for sequence, each in enumerate(written):
        log.append(batch_of(*each, timestamp_ms=NOW_MS + sequence), NOW_MS)
        newest = log.segments[-1]
        ends.append((newest.base_offset, newest.size_bytes, log.log_end_offset))
    return log, ends


@given(batches, st.data(), st.booleans())
@settings(max_examples=examples(150))
def test_a_cut_at_any_byte_keeps_every_batch_before_it(
    written: list[list[bytes]], data: st.DataObject, clean: bool
) -> None:
    with folder() as path:
        log, ends = filled(path, written)
        newest = log.segments[-1]
        cut = data.draw(st.integers(0, newest.size_bytes))
        if clean:
            log.close()
        else:
            log.release()
        with newest.path.open("r+b") as file:
            file.truncate(cut)

        again = PartitionLog(path, CONFIG, NOW_MS)

        whole = [end for base, size, end in ends if base < newest.base_offset or size <= cut]
        assert again.log_end_offset == max(whole, default=0)
        assert_a_prefix(again, written)
        assert again.append(batch_of(b"next"), NOW_MS).base_offset == max(whole, default=0)


@given(batches, st.data(), st.integers(1, 255), st.binary(max_size=200))
@settings(max_examples=examples(250))
def test_a_flipped_byte_anywhere_keeps_every_batch_before_it(
    written: list[list[bytes]], data: st.DataObject, flip: int, tail: bytes
) -> None:
    with folder() as path:
        log, ends = filled(path, written)
        newest = log.segments[-1]
        position = data.draw(st.integers(0, newest.size_bytes - 1))
        log.release()
        content = bytearray(newest.path.read_bytes())
        content[position] ^= flip
        newest.path.write_bytes(bytes(content) + tail)

        again = PartitionLog(path, CONFIG, NOW_MS)

        before = [end for base, size, end in ends if base < newest.base_offset or size <= position]
        assert again.log_end_offset >= max(before, default=0)
        assert_a_prefix(again, written)


def assert_a_prefix(log: PartitionLog, written: list[list[bytes]]) -> None:
    everything = list(enumerate(value for each in written for value in each))
    assert values_from(log) == everything[: log.log_end_offset]


class LogAsAList(RuleBasedStateMachine):
    """The log compared with a list of batches, through restarts and crashes with a torn tail."""

    @initialize()
    def open(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.batches: list[tuple[int, list[bytes]]] = []
        self.end = 0
        self.now_ms = NOW_MS
        self.log = PartitionLog(self.folder, CONFIG, self.now_ms)

    @rule(written=values, codec=st.sampled_from(list(Codec)), pause_ms=st.integers(0, 1_000))
    def append(self, written: list[bytes], codec: Codec, pause_ms: int) -> None:
        self.now_ms += pause_ms
        batch = batch_of(*written, timestamp_ms=self.now_ms, codec=codec, producer=(1, 0, self.end))

        info = self.log.append(batch, self.now_ms)

        assert info.base_offset == self.end
        self.batches.append((self.now_ms, written))
        self.end += len(written)

    @precondition(lambda self: self.batches)
    @rule(back=st.integers(0, 4))
    def repeat(self, back: int) -> None:
        index = max(len(self.batches) - 1 - back, 0)
        base = sum(len(written) for _, written in self.batches[:index])
        timestamp_ms, written = self.batches[index]
        batch = batch_of(*written, timestamp_ms=timestamp_ms, producer=(1, 0, base))

        info = self.log.append(batch, self.now_ms)

        assert (info.base_offset, info.duplicate) == (base, True)
        assert self.log.log_end_offset == self.end

    @rule()
    def restart(self) -> None:
        self.log.close()
        self.log = PartitionLog(self.folder, CONFIG, self.now_ms)

    @rule(torn_bytes=st.integers(0, 60))
    def crash(self, torn_bytes: int) -> None:
        self.log.release()
        with self.log.segments[-1].path.open("ab") as file:
            file.write(batch_of(b"never acknowledged")[:torn_bytes])
        self.log = PartitionLog(self.folder, CONFIG, self.now_ms)

    @precondition(lambda self: self.batches)
    @rule(data=st.data(), max_bytes=st.integers(0, 2_000))
    def read(self, data: st.DataObject, max_bytes: int) -> None:
        offset = data.draw(st.integers(0, self.end - 1))

        got = self.log.read(offset, max_bytes)

        found = [(header, list(records(batch, header))) for header, batch in record_batches(got)]
        first, _ = found[0]
        assert first.base_offset <= offset <= first.last_offset
        assert sum(header.size_bytes for header, _ in found) == len(got)
        assert len(found) == 1 or len(got) <= max_bytes
        everything = [value for _, written in self.batches for value in written]
        read = [record.value for _, each in found for record in each]
        assert read == everything[first.base_offset : first.base_offset + len(read)]

    @rule(back_ms=st.integers(-10, 5_000))
    def look_up(self, back_ms: int) -> None:
        wanted_ms = self.now_ms - back_ms

        found = result_of(self.log.offset_for_time(wanted_ms))

        offset = 0
        expected = None
        for timestamp_ms, written in self.batches:
            if timestamp_ms >= wanted_ms:
                expected = (timestamp_ms, offset)
                break
            offset += len(written)
        assert found == expected

    def teardown(self) -> None:
        if hasattr(self, "log"):
            assert self.log.log_end_offset == self.end
            self.log.release()
            shutil.rmtree(self.folder)


TestLogAsAList = LogAsAList.TestCase
TestLogAsAList.settings = settings(max_examples=examples(60), stateful_step_count=40)
