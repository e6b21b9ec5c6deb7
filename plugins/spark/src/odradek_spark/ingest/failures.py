"""What Spark says when ingest ends, for a person; and whether it may pass by itself."""

from __future__ import annotations

import re
from dataclasses import dataclass

OURS = re.compile(r"odradek_spark\.[\w.]*\.(\w+): (.+)")
"""The last line of a traceback in which this package raised something itself."""
PASSING = ("Unreachable",)
SPARK = re.compile(r"terminated with exception: (.+)")
RAISED = re.compile(r"^(?:: )?(?:\w+\.)*(\w+(?:Error|Exception)): (.+(?:\n.*↳.*)*)$", re.MULTILINE)
"""In Python; or in the JVM, where Py4J puts a colon before it."""
DEEPER = re.compile(r"\s*(?:\x1b\[\d+m)?↳(?:\x1b\[\d+m)?\s*")
"""Between what ``deltalake`` says and why: on lines of their own, in color."""
NO_STORE = re.compile(r'No FileSystem for scheme "(\w+)"')
NOISE = re.compile(r"( SQLSTATE: \w+)+\s*$")
DAMAGED = (
    "MALFORMED_LOG_FILE",
    "Failed to read log file",
    "Incomplete log file",
    "StreamMetadata",
    "STATE_STORE_CHECKPOINT_LOCATION_NOT_EMPTY",  # its first entry was cut off
    "INCLUDE_SOURCE_IN_LOCATION",  # Jackson, of JSON that it cannot read: here only checkpoints are read so
)
"""What Spark says of a checkpoint that it cannot read."""
SHARED = ("CONCURRENT_STREAM_LOG_UPDATE", "Multiple streaming queries are concurrently using")
"""What Spark says where another query wrote to its checkpoint."""
NO_KAFKA = re.compile(r"data source: `?kafka\b")
KAFKA_JAR = "org.apache.spark:spark-sql-kafka-0-10_2.13"


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a query ended."""

    message: str
    is_passing: bool
    """Whether it is worth trying again."""


def explain(error: BaseException, checkpoint: str = "", *, is_plain: bool = False) -> Failure:
    """Read what Spark raised: a text that holds the tracebacks of its workers.

    Args:
        error: Of a query, or of a job.
        checkpoint: Where the query keeps what it has planned; a job has none.
        is_plain: Whether Spark's own writer writes, which has nothing but the checkpoint to go by.
    """
    text = str(error)
    ours = OURS.findall(text)
    if ours:
        name, message = ours[-1]
        return Failure(NOISE.sub("", message), name in PASSING)
    if NO_KAFKA.search(text):
        return Failure(
            "Spark's own Kafka source is not in this session: bring its jar, of Spark's version, by "
            f"--conf spark.jars.packages={KAFKA_JAR}:VERSION, or read by --source odradek, which needs none",
            is_passing=False,
        )
    no_store = NO_STORE.search(text)
    if no_store is not None:
        return Failure(
            f"Spark has no jar for {no_store[1]}:// and cannot keep the checkpoint {checkpoint} there: name "
            "a folder that it can write by --checkpoint; the tables need no jar",
            is_passing=False,
        )
    if any(each in text for each in SHARED):
        return Failure(
            f"another ingester works with the checkpoint {checkpoint}: stop it, or take another dataset",
            is_passing=False,
        )
    if any(each in text for each in DAMAGED):
        what_to_do = (
            "bring back a copy, or begin in an empty folder: Spark's own writer cannot go on without it"
            if is_plain
            else "delete that folder and start again. Nothing is lost and nothing comes twice: the tables "
            "know up to where the topic is in them"
        )
        return Failure(f"the checkpoint {checkpoint} is damaged: {what_to_do}", is_passing=False)
    found = RAISED.findall(text)
    if found:
        name, message = found[-1]
        message = DEEPER.sub(": ", NOISE.sub("", message))
        return Failure(f"{name}: {message}", is_passing=name != "PermissionError")
    said = SPARK.search(text)
    last = said[1] if said else (text.splitlines() or [type(error).__name__])[0]
    return Failure(NOISE.sub("", last), is_passing=True)
