"""Compaction of one folder: CPU and memory for each row, bytes of a point before and after.

    python plugins/spark/bench/compact.py [BATCHES]

Each batch has 72 000 points of 200 clients. How to compare: neither CPU nor bytes per point depend on the
number of batches, and memory is bounded by `odradek_tables.duckdb_files.MEMORY`.
"""

from __future__ import annotations

import random
import resource
import sys
import tempfile
import time
from multiprocessing import get_context
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from telemetry_rows import Told, Value

from odradek_spark.jobs.compact import merged
from odradek_tables.decoder.decode import Decoder
from odradek_tables.files import Manifest, write_files
from odradek_tables.log import LiveFile
from odradek_tables.schemas import POINTS

PUSHES, CLIENTS = 400, 200
NAMES = [f"org.apache.kafka.producer.metric.{number}" for number in range(60)]
TOPICS = ("a", "b", "c")


def batch(source: random.Random, number: int) -> list[Told]:
    """The pushes of all clients in half a minute."""
    return [
        Told(
            30.0 * number + index / 20,
            tuple(Value(name, value(source), (("topic", topic),)) for name in NAMES for topic in TOPICS),
            client=1 + index % CLIENTS,
            client_id=f"app-{index % 20}",
        )
        for index in range(PUSHES)
    ]


def value(source: random.Random) -> float:
    return source.choice((0.0, source.random() * 100, float(source.randrange(50))))


def peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def measured(root: str, files: list[Manifest]) -> tuple[float, int, list[Manifest]]:
    """Merge files; return CPU seconds, additional bytes of memory, and the manifests."""
    old = [LiveFile(each.path, each.file_bytes, each.rows, each.partition) for each in files]
    before, start = peak_bytes(), time.process_time()
    manifests = merged(root, POINTS, old)
    return time.process_time() - start, peak_bytes() - before, manifests


def main(batches: int) -> None:
    """Write batches as ingest does, and merge them in another process."""
    source, decoder = random.Random(1), Decoder()
    with tempfile.TemporaryDirectory() as root:
        files: list[Manifest] = []
        for number in range(batches):
            records = [each.record(index) for index, each in enumerate(batch(source, number))]
            files += write_files(root, POINTS, decoder.decode(records).points)
        with get_context("spawn").Pool(1) as pool:
            cpu_s, memory_bytes, after = pool.apply(measured, (root, files))
    rows = sum(each.rows for each in files)
    print(f"{rows} points in {len(files)} files become {len(after)}")
    print(f"bytes per point: {size(files) / rows:.2f} unsorted, {size(after) / rows:.2f} sorted")
    print(f"CPU: {cpu_s / rows * 1e6:.2f} us per point; memory: {memory_bytes / rows:.0f} bytes per row")


def size(files: list[Manifest]) -> int:
    return sum(each.file_bytes for each in files)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 14)
