"""Explains for people why Spark ended a query, and whether a retry may help."""

from __future__ import annotations

import re
from dataclasses import dataclass

from odradek_spark.conditions import without_condition

OURS = re.compile(r"odradek_(?:spark|tables)\.[\w.]*\.(\w+): (.+)")
"""The last line of a traceback of an error that these packages raised."""
PASSING = ("Unreachable",)
SPARK = re.compile(r"terminated with exception: (.+)")
RAISED = re.compile(r"^(?:: )?(?:\w+\.)*(\w+(?:Error|Exception)): (.+(?:\n.*↳.*)*)$", re.MULTILINE)
"""An error of Python, or of the JVM, which Py4J prefixes with a colon."""
DEEPER = re.compile(r"\s*(?:\x1b\[\d+m)?↳(?:\x1b\[\d+m)?\s*")
"""Separates an error of ``deltalake`` from its causes, which are on lines of their own, in color."""
NO_STORE = re.compile(r'No FileSystem for scheme "(\w+)"')
NOISE = re.compile(r"( SQLSTATE: \w+)+\s*$")
DAMAGED = (
    "MALFORMED_LOG_FILE",
    "Failed to read log file",
    "Incomplete log file",
    "StreamMetadata",
    "STATE_STORE_CHECKPOINT_LOCATION_NOT_EMPTY",  # the first entry is incomplete
    "INCLUDE_SOURCE_IN_LOCATION",  # Jackson, for invalid JSON; here it reads only checkpoints
)
"""Errors of Spark about an unreadable checkpoint."""
SHARED = ("CONCURRENT_STREAM_LOG_UPDATE", "Multiple streaming queries are concurrently using")
"""Errors of Spark if another query writes to the same checkpoint."""


class IngestFailed(Exception):
    """Ingest cannot continue; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Failure:
    message: str
    is_passing: bool
    """Whether a retry may help."""


def explain(error: BaseException, checkpoint: str = "") -> Failure:
    """Explain an error of Spark, whose text has the tracebacks of its workers; a job has no checkpoint."""
    text = str(error)
    ours = OURS.findall(text)
    if ours:
        name, message = ours[-1]
        return Failure(without_condition(NOISE.sub("", message)), name in PASSING)
    no_store = NO_STORE.search(text)
    if no_store is not None:
        return Failure(
            f"Spark has no jar for {no_store[1]}:// and cannot store the checkpoint {checkpoint}: choose a "
            "folder that it can write with --checkpoint (the tables themselves need no jar)",
            is_passing=False,
        )
    if any(each in text for each in SHARED):
        return Failure(
            f"another ingester uses the checkpoint {checkpoint}: stop it, or choose another dataset",
            is_passing=False,
        )
    if any(each in text for each in DAMAGED):
        return Failure(
            f"the checkpoint {checkpoint} is damaged: delete that folder and start again. Nothing is lost or "
            "duplicated: the tables store the offsets up to which they have the topic",
            is_passing=False,
        )
    found = RAISED.findall(text)
    if found:
        name, message = found[-1]
        message = DEEPER.sub(": ", NOISE.sub("", message))
        return Failure(f"{name}: {message}", is_passing=name != "PermissionError")
    said = SPARK.search(text)
    last = said[1] if said else (text.splitlines() or [type(error).__name__])[0]
    return Failure(NOISE.sub("", last), is_passing=True)
