"""Ingest against its peers, on one topic in one run: ``python plugins/spark/bench/ingest.py [PUSHES ...]``.

A host serves the topic. ``odradek`` is the whole pipeline on ``local[2]``, ``kafka`` the same sink behind
Spark's Kafka source (``--jars``). The peers have no Spark and no commits: two processes read the
same ranges, decode and write. ``pyarrow``, ``duckdb`` and ``polars`` write only points; ``tables`` writes
all four tables as a task of the pipeline does, so the rest of the pipeline's cost is Spark and the commits.
CPU is that of all processes of a way. *Marginal* compares the largest topic with the smallest, so that fixed
costs cancel out. The goals are for the sizes ``4000 16000 64000 200000``; 200,000 pushes are 26 million
points. *Rate* is thousands of points per second of CPU. Ways whose library is not installed are left out.
Linux only: CPU of processes that are not children comes from /proc.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
from confluent_kafka import Producer

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tests"))

from decode import java_like, librdkafka_like  # type: ignore[import-not-found]
from spark_payloads import RECEIVED_MS, topic_record
from spark_topics import TOPIC, options

import odradek.testing
from bench.harness import head, skip, tree_cpu_s
from odradek_spark.cli.session import opened
from odradek_spark.sink.written import Written, write_records
from odradek_spark.source.offsets import OffsetRange
from odradek_spark.source.topic import TopicReader
from odradek_tables.decoder.decode import Decoder
from odradek_tables.decoder.topic_record import TopicRecord
from odradek_tables.files import TableFiles
from odradek_tables.schemas import POINTS

HERE = Path(__file__).resolve()
PUSHES = (1_000, 4_000, 16_000)
CLIENTS, PARTITIONS, FILLED = 200, 2, 5_000
PEERS = ("pyarrow", "tables", "duckdb", "polars")
OURS, BY_KAFKA = "odradek", "kafka"
LIBRARIES = ("duckdb", "polars")
"""Ways that need a library of their name."""
WAYS = ("pyarrow", "tables", OURS, BY_KAFKA, "duckdb", "polars")
"""pyarrow comes first, because it counts the points."""
JVM = {"spark.driver.memory": "2g", "spark.driver.extraJavaOptions": "-XX:+UseParallelGC"}
"""Records cross the JVM, which must optimize its code."""
FILLER = {
    "enable.metrics.push": False,
    "linger.ms": 20,
    "compression.type": "lz4",
    "batch.size": 1 << 20,
    "message.max.bytes": 2 << 20,
}


def records(first: int, end: int) -> list[TopicRecord]:
    """Pushes like the Java client's and librdkafka's, six to four."""
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
        for number in range(first, end)
    ]


def fill(producer: Producer, first: int, end: int) -> None:
    """Add pushes to the topic up to a number."""
    for begin in range(first, end, FILLED):
        for each in records(begin, min(begin + FILLED, end)):
            producer.poll(0)
            producer.produce(TOPIC, each.value, each.key, partition=each.partition, headers=[*each.headers])
        assert producer.flush(300) == 0


def write(way: str, root: str, rows: pa.RecordBatch, number: int, files: TableFiles) -> None:
    """Write the rows of one chunk as Parquet, partitioned into folders."""
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
    """Run one process of a peer: write one partition of the topic to files, and print the resources used."""
    reader, decoder, points = TopicReader(options(bootstrap)), Decoder(), 0
    if way == "tables":
        write_records(reader.read(OffsetRange(partition, 0, end)), decoder, root, Written())
        print(json.dumps({}))
        return
    with TableFiles(root, POINTS) as files:
        for number, chunk in enumerate(reader.read(OffsetRange(partition, 0, end))):
            decoded = decoder.decode(chunk).points
            points += decoded.num_rows
            write(way, root, decoded, number, files)
    reader.close()
    print(json.dumps({"points": points}))


def ours(way: str, bootstrap: str, root: str, jars: str) -> None:
    """Run the pipeline in this process."""
    started_s = time.monotonic()
    session = opened("local[2]", JVM | ({"spark.jars": jars} if jars else {}))
    ready_s = time.monotonic()
    source = {"kafka.bootstrap.servers": bootstrap, "subscribe": TOPIC, "includeHeaders": "true"}
    rows = session.readStream.format(way).options(startingOffsets="earliest", **source).load()
    writer = rows.writeStream.format("odradek").trigger(availableNow=True)
    writer.option("checkpointLocation", f"{root}-c").option("path", root).start().awaitTermination()
    done_s = time.monotonic()
    parts = tree_cpu_s(os.getpid())
    said = {"session_s": ready_s - started_s, "wall_s": done_s - ready_s, "cpu_s": sum(parts.values())}
    print(json.dumps(said | {f"of {name}": cpu for name, cpu in parts.items()}), flush=True)
    session.stop()


def measured(commands: list[list[str]]) -> dict[str, float]:
    """Run programs in parallel; return their wall time, their CPU with children, and their output."""
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


def way(name: str, bootstrap: str, end: int, jars: str) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="ingest-bench-") as folder:
        program = [sys.executable, str(HERE)]
        if name in PEERS:
            parts = range(PARTITIONS)
            return measured(
                [[*program, "peer", name, bootstrap, str(part), str(end), f"{folder}/d"] for part in parts]
            )
        return measured([[*program, "ours", name, bootstrap, f"{folder}/d", jars]])


def serve(done: Any, told: Any) -> None:
    """Run the host, in a process whose CPU is not counted."""
    with odradek.testing.host() as host:
        host.topics.create(TOPIC, PARTITIONS)
        told.send(host.bootstrap)
        done.wait()


def installed(name: str, jars: str) -> bool:
    """Whether a way can run here; says so if not."""
    if name in LIBRARIES and find_spec(name) is None:
        skip(name, "it is not installed")
        return False
    if name == BY_KAFKA and not jars:
        skip(name, "it needs --jars")
        return False
    return True


def report(sizes: Sequence[int], names: Sequence[str], jars: str) -> None:
    """Measure every way at every size, smallest first."""
    results: dict[str, list[Found]] = {name: [] for name in names}
    done = multiprocessing.Event()
    told, tell = multiprocessing.Pipe()
    serving = multiprocessing.Process(target=serve, args=(done, tell), daemon=True)
    serving.start()
    bootstrap, sent, points = told.recv(), 0, 0
    producer = Producer(FILLER | {"bootstrap.servers": bootstrap})
    print(
        f"{'':14}{'pushes':>8}{'points':>11}{'wall s':>9}{'CPU s':>9}{'us/point':>10}{'rate':>9}", flush=True
    )
    for size in sizes:
        fill(producer, sent, size)
        sent = size
        for name in names:
            found = way(name, bootstrap, size // PARTITIONS, jars)
            points = int(found.get("points", points))
            results[name].append((points, found))
            print(line(name, size, points, found), flush=True)
    producer.close()
    done.set()
    serving.join()
    print()
    for name in names:
        print(f"{name:14} {slopes(results[name])}")
    for goal in goals(results):
        print(goal)


Found = tuple[int, dict[str, float]]
"""The number of points, and the measurements."""


def line(name: str, size: int, points: int, found: dict[str, float]) -> str:
    """One measurement."""
    text = (
        f"{name:14}{size:8}{points:11}{found['wall_s']:9.1f}{found['cpu_s']:9.1f}"
        f"{found['cpu_s'] / points * 1e6:10.2f}{points / found['cpu_s'] / 1e3:9.0f}"
    )
    if "session_s" in found:
        parts = ", ".join(f"{each[3:]} {found[each]:.1f}" for each in found if each.startswith("of "))
        text += f"   session ready in {found['session_s']:.1f} s; CPU of {parts}"
    return text


def marginal(found: Sequence[Found], what: str) -> float:
    """The cost of each further point between the smallest and the largest topic, in microseconds."""
    (few, least), (many, most) = found[0], found[-1]
    return (most[what] - least[what]) / (many - few) * 1e6


def slopes(found: Sequence[Found]) -> str:
    """The cost of each further point: overall, and in wall time from each size to the next."""
    steps = [marginal(pair, "wall_s") for pair in pairwise(found)]
    fixed_s = found[0][1]["wall_s"] - steps[0] * found[0][0] / 1e6
    return (
        f"marginal {marginal(found, 'cpu_s'):.2f} us CPU, {marginal(found, 'wall_s'):.2f} us wall per point; "
        f"from size to size {', '.join(f'{step:.2f}' for step in steps)} us wall; fixed {fixed_s:.1f} s"
    )


def goals(results: dict[str, list[Found]]) -> list[str]:
    """The ratios with goals, and the goals."""
    lines = []
    for name, goal in ((OURS, 2.0), (BY_KAFKA, 1.5)):
        found = results.get(name, [])
        if found:
            cost, bare = marginal(found, "cpu_s"), marginal(results["pyarrow"], "cpu_s")
            lines.append(f"marginal CPU, {name}: {cost:.2f} us (goal: at most {goal}; pyarrow {bare:.2f})")
        if len(found) > 2:
            steps = [marginal(pair, "wall_s") for pair in pairwise(found)]
            ratio = max(later / earlier for earlier, later in pairwise(steps))
            lines.append(f"slope of {name}, from size to size: {ratio:.2f} (goal: at most 1.3)")
    return lines


ROLES: dict[str, Callable[..., None]] = {
    "peer": lambda name, bootstrap, part, end, root: peer(name, bootstrap, int(part), int(end), root),
    "ours": ours,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("pushes", type=int, nargs="*", default=PUSHES, help="sizes, at least two, ascending")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS, help="pyarrow is always among them")
    parser.add_argument("--jars", default="", help="jars of Spark's Kafka source, separated by commas")
    arguments = parser.parse_args()
    print(head("ingest"), file=sys.stderr)
    wanted = [name for name in WAYS if name in ("pyarrow", *arguments.ways)]
    report(arguments.pushes, [name for name in wanted if installed(name, arguments.jars)], arguments.jars)


if __name__ == "__main__":
    role = ROLES.get(sys.argv[1]) if len(sys.argv) > 1 else None
    if role is None:
        main()
    else:
        role(*sys.argv[2:])
