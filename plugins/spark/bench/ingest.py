"""Ingest against its peers, on one topic in one run: ``python plugins/spark/bench/ingest.py [PUSHES ...]``.

A host serves the topic. ``worker writer`` is the whole pipeline on ``local[2]``; ``spark writer`` lets
Spark's own Parquet writer take the rows (``rows=points``). The peers have no Spark, no commits and write
points alone: two processes read the same ranges, decode and write with pyarrow, DuckDB or polars. CPU is
that of all processes of a way. *Marginal* compares the largest topic with the smallest, so that starts
cancel out.
Linux only: CPU of processes that are not children comes from /proc.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).parent))

from decode import java_like, librdkafka_like  # type: ignore[import-not-found]
from ingested import settings
from spark_payloads import RECEIVED_MS, topic_record
from spark_topics import TOPIC, fill, options

import odradek.testing
from odradek_spark.decoder.decode import Decoder
from odradek_spark.ingest.run import run_ingest
from odradek_spark.ingest.session import archive_path, local_session
from odradek_spark.source.offsets import OffsetRange
from odradek_spark.source.topic import TopicReader
from odradek_spark.tables.files import TableFiles
from odradek_spark.tables.schemas import POINTS

HERE = Path(__file__).resolve()
PUSHES = (1_000, 4_000, 16_000)
CLIENTS, PARTITIONS = 200, 2
PEERS = ("pyarrow", "duckdb", "polars")


def records(count: int, first: int) -> list[Any]:
    """Six Java producers for four of librdkafka."""
    source = random.Random(first)
    java = [java_like(source).SerializeToString() for _ in range(50)]
    native = [librdkafka_like(source).SerializeToString() for _ in range(50)]
    return [
        topic_record(
            (java if number % 10 < 6 else native)[number % 50],
            partition=number % PARTITIONS,
            client=number % CLIENTS,
            received_ms=RECEIVED_MS + number,
        )
        for number in range(first, first + count)
    ]


def write(way: str, root: str, rows: pa.RecordBatch, number: int, files: TableFiles) -> None:
    """The rows of one chunk as Parquet, cut by folder."""
    if way == "pyarrow":
        files.write(rows)
        return
    plain = pa.Table.from_batches([rows]).cast(POINTS.schema)
    if way == "duckdb":
        import duckdb

        duckdb.sql("SET threads = 1")
        duckdb.sql(
            f"COPY (FROM plain) TO '{root}' (FORMAT parquet, COMPRESSION zstd, "
            f"PARTITION_BY (date, hour, family), OVERWRITE_OR_IGNORE, "
            f"FILENAME_PATTERN 'part-{number}-{{uuid}}')"
        )
        return
    import polars as pl

    for key, part in pl.DataFrame(plain).partition_by("date", "hour", "family", as_dict=True).items():
        folder = Path(root) / "/".join(str(each) for each in key)
        folder.mkdir(parents=True, exist_ok=True)
        part.write_parquet(folder / f"part-{os.getpid()}-{number}.parquet", compression="zstd")


def peer(way: str, bootstrap: str, partition: int, end: int, root: str) -> None:
    """One process of a peer: a partition of the topic to files. Prints what it used."""
    reader, decoder, points = TopicReader(options(bootstrap)), Decoder(), 0
    with TableFiles(root, POINTS) as files:
        for number, chunk in enumerate(reader.read(OffsetRange(partition, 0, end))):
            decoded = decoder.decode(chunk).points
            points += decoded.num_rows
            write(way, root, decoded, number, files)
    reader.close()
    print(json.dumps({"points": points}))


def ours(way: str, bootstrap: str, root: str) -> None:
    """The pipeline in a process of its own."""
    started_s = time.monotonic()
    heap = {"spark.driver.memory": "2g"} if way == "spark writer" else {}
    session = local_session("bench", "local[2]", heap, archive=archive_path())
    ready_s = time.monotonic()
    if way == "spark writer":
        source = {"bootstrap.servers": bootstrap, "topic": TOPIC}
        rows = session.readStream.format("odradek").options(**source).load()
        writer = rows.writeStream.partitionBy("date", "hour", "family").trigger(availableNow=True)
        query = writer.option("checkpointLocation", f"{root}-c").option("path", root).start()
        query.awaitTermination()
    else:
        run_ingest(session, settings(bootstrap, Path(root)), once=True)
    done_s = time.monotonic()
    said = {"session_s": ready_s - started_s, "wall_s": done_s - ready_s, "cpu_s": tree_cpu_s(os.getpid())}
    print(json.dumps(said), flush=True)
    session.stop()


def tree_cpu_s(root: int) -> float:
    """CPU of a process, of those under it, and of those that these have outlived."""
    parents, used = {}, {}
    for each in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = each.read_text().rpartition(")")[2].split()
            pid = int(each.parent.name)
            parents[pid], used[pid] = int(fields[1]), sum(map(int, fields[11:15]))
    family = {root}
    for _ in parents:
        more = {pid for pid, parent in parents.items() if parent in family} - family
        if not more:
            break
        family |= more
    return sum(used[pid] for pid in family) / os.sysconf("SC_CLK_TCK")


def measured(commands: list[list[str]]) -> dict[str, float]:
    """Run programs side by side: their wall time, the CPU of them and their children, and what they say."""
    before, started_s = os.times(), time.monotonic()
    running = [subprocess.Popen(each, stdout=subprocess.PIPE, text=True) for each in commands]
    said: dict[str, float] = {}
    for each in running:
        out, _ = each.communicate()
        assert each.returncode == 0, out
        for name, value in json.loads(out.strip().splitlines()[-1]).items():
            said[name] = said.get(name, 0) + value
    after = os.times()
    cpu_s = after.children_user + after.children_system - before.children_user - before.children_system
    return {"wall_s": time.monotonic() - started_s, "cpu_s": cpu_s} | said


def way(name: str, bootstrap: str, end: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="ingest-bench-") as folder:
        program = [sys.executable, str(HERE)]
        if name in PEERS:
            parts = range(PARTITIONS)
            return measured(
                [[*program, "peer", name, bootstrap, str(part), str(end), f"{folder}/d"] for part in parts]
            )
        return measured([[*program, "ours", name, bootstrap, f"{folder}/d"]])


def serve(done: Any, told: Any) -> None:
    """The host, in a process whose CPU is nobody's."""
    with odradek.testing.host() as host:
        host.topics.create(TOPIC, PARTITIONS)
        told.send(host.bootstrap)
        done.wait()


def report(sizes: tuple[int, ...], names: tuple[str, ...]) -> None:
    results: dict[str, list[tuple[int, dict[str, float]]]] = {name: [] for name in names}
    done = multiprocessing.Event()
    told, tell = multiprocessing.Pipe()
    serving = multiprocessing.Process(target=serve, args=(done, tell))
    serving.start()
    bootstrap, sent, points = told.recv(), 0, 0
    print(f"{'':14}{'pushes':>8}{'points':>11}{'wall s':>9}{'CPU s':>9}{'us/point':>10}", flush=True)
    for size in sizes:
        for first in range(sent, size, 1_000):
            fill(bootstrap, records(min(1_000, size - first), first))
        sent = size
        for name in names:
            found = way(name, bootstrap, size // PARTITIONS)
            points = int(found.get("points", points))
            results[name].append((points, found))
            print(
                f"{name:14}{size:8}{points:11}{found['wall_s']:9.1f}{found['cpu_s']:9.1f}"
                f"{found['cpu_s'] / points * 1e6:10.2f}"
                + (f"   session ready in {found['session_s']:.1f} s" if "session_s" in found else ""),
                flush=True,
            )
    done.set()
    serving.join()
    marginal(results)


def marginal(results: dict[str, list[tuple[int, dict[str, float]]]]) -> None:
    """What a further point costs."""
    for name, found in results.items():
        (few, least), (many, most) = found[0], found[-1]
        cpu = (most["cpu_s"] - least["cpu_s"]) / (many - few) * 1e6
        wall = (most["wall_s"] - least["wall_s"]) / (many - few) * 1e6
        print(f"{name:14} marginal {cpu:.2f} us CPU, {wall:.2f} us wall per point")


ROLES: dict[str, Callable[..., None]] = {
    "peer": lambda name, bootstrap, part, end, root: peer(name, bootstrap, int(part), int(end), root),
    "ours": ours,
}

if __name__ == "__main__":
    role = ROLES.get(sys.argv[1]) if len(sys.argv) > 1 else None
    if role is not None:
        role(*sys.argv[2:])
    else:
        # pyarrow first: it counts the points
        report(
            tuple(map(int, sys.argv[1:])) or PUSHES,
            ("pyarrow", "worker writer", "spark writer", "duckdb", "polars"),
        )
