"""kill -9 during appends: acknowledged records survive."""

from __future__ import annotations

import itertools
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from odradek.log.log_config import LogConfig
from odradek.log.partition_log import PartitionLog
from odradek.wire.record_batch import record_batches, records

pytestmark = pytest.mark.ci

APPENDER = """
import sys
from pathlib import Path
from odradek.log.log_config import LogConfig
from odradek.log.partition_log import PartitionLog
from odradek.wire.record import Record
from odradek.wire.record_batch import build_batch

log = PartitionLog(Path(sys.argv[1]), LogConfig(segment_bytes=1 << 20), 0)
for sequence in range(10**9):
    value = b"%d:" % sequence + b"x" * (sequence * 7919 % 60_000)
    batch = build_batch([Record(None, value, 0)], producer_id=7, producer_epoch=0, base_sequence=sequence)
    print(log.append(batch, 0).base_offset, flush=True)
"""


@pytest.mark.parametrize("appends", [1, 40, 200])
def test_acknowledged_records_survive_kill_9(tmp_path: Path, appends: int) -> None:
    folder = tmp_path / "pushes-0"
    folder.mkdir()
    appender = subprocess.Popen(
        [sys.executable, "-c", APPENDER, str(folder)], stdout=subprocess.PIPE, text=True
    )
    assert appender.stdout is not None
    acknowledged = [int(line) for line in itertools.islice(appender.stdout, appends)]
    appender.send_signal(signal.SIGKILL)
    acknowledged += [int(line) for line in appender.stdout.read().split("\n")[:-1]]
    appender.wait()

    log = PartitionLog(folder, LogConfig(), 0)

    values = list(stored_values(log))
    assert len(values) >= len(acknowledged) >= appends
    assert [int(value.partition(b":")[0]) for value in values] == list(range(len(values)))
    assert log.producers.producers[7].last_sequence == len(values) - 1
    log.release()
    appender.stdout.close()


def stored_values(log: PartitionLog) -> list[bytes]:
    found, offset = [], 0
    while offset < log.log_end_offset:
        for header, batch in record_batches(log.read(offset, 1 << 20)):
            found += [record.value or b"" for record in records(batch, header)]
            offset = header.next_offset
    return found
