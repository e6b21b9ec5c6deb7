"""A query that is stopped while it waits for its tasks."""

from __future__ import annotations

import re
import traceback
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]

from odradek_spark.ingest.commit import CommitBatch

FRAME = "\tat org.apache.spark.sql.classic.Dataset.collectToPython(Dataset.scala:2139)\n"
SPARK_LOOKS_FOR = re.compile(
    r"py4j.protocol.Py4JJavaError: An error occurred while calling((.|\n)*)(java.lang.InterruptedException)"
)
"""By this text, StreamExecution distinguishes a stopped query from a failed one."""
MOST = 500
"""Characters that the pattern matches before it overflows the stack of a thread."""


class OfJava(Py4JJavaError):  # type: ignore[misc]
    """Py4J's exception, without a JVM."""

    def __init__(self, kind: str) -> None:
        self.text = f"An error occurred while calling o1.collectToPython.\n: {kind}\n{100 * FRAME}"

    def __str__(self) -> str:
        return self.text


def committed(kind: str) -> BaseException:
    """The exception of a batch's commit whose tasks did not end."""

    def collect() -> Any:
        raise OfJava(kind)

    rows: Any = SimpleNamespace(select=lambda *_: SimpleNamespace(collect=collect))
    with pytest.raises(Exception) as raised:  # noqa: PT011  the caller asks which
        CommitBatch("nowhere", "telemetry")(rows, 0)
    return raised.value


def test_a_stop_is_reported_in_a_form_that_spark_matches_without_an_overflow() -> None:
    error = committed("java.lang.InterruptedException")

    said = "".join(traceback.format_exception(error))
    found = SPARK_LOOKS_FOR.search(said)
    assert found is not None
    assert len(said) - found.start() < MOST


def test_another_error_is_reported_completely(tmp_path: Path) -> None:
    error = committed("java.lang.IllegalStateException: InterruptedException")

    assert isinstance(error, OfJava)
