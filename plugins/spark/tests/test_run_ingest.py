"""The end of an ingest, with a fake query."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from ingested import settings
from py4j.protocol import Py4JError, Py4JNetworkError  # type: ignore[import-untyped]

from odradek_spark.ingest import run
from odradek_spark.ingest.failures import IngestFailed
from odradek_spark.ingest.query import has_begun

NO_SESSION: Any = None


class Query:
    """A query whose JVM is gone when it should stop, as after a signal to the process group."""

    recentProgress: tuple[dict[str, int], ...] = ()  # noqa: N815  Spark's name

    def __init__(self, stop: threading.Event) -> None:
        self.told = stop

    def awaitTermination(self, timeout_s: float) -> bool:  # noqa: N802  Spark's name
        self.told.set()
        raise Py4JError("Answer from Java side is empty")

    @property
    def isActive(self) -> bool:  # noqa: N802  Spark's name
        return True

    def stop(self) -> None:
        raise Py4JError("Cannot call methods on a stopped SparkContext.")


def test_a_jvm_that_was_stopped_too_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stop = threading.Event()
    said: list[str] = []
    monkeypatch.setattr(run, "start_ingest", lambda *_, **__: Query(stop))

    run.run_ingest(NO_SESSION, settings("b:1", tmp_path), once=True, stop=stop, say=said.append)

    assert said == []


def test_a_jvm_that_has_ended_ends_ingest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A supervisor starts another one; this process cannot."""

    class Ended(Query):
        def awaitTermination(self, timeout_s: float) -> bool:  # noqa: N802  Spark's name
            raise Py4JNetworkError("An error occurred while trying to connect to the Java server")

    monkeypatch.setattr(run, "start_ingest", lambda *_, **__: Ended(threading.Event()))

    with pytest.raises(IngestFailed, match="Spark's JVM has ended"):
        run.run_ingest(NO_SESSION, settings("b:1", tmp_path), once=False)


def test_a_query_has_begun_once_spark_has_stored_offsets(tmp_path: Path) -> None:
    before = has_begun(str(tmp_path))
    (tmp_path / "metadata").touch()
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / ".0.tmp").touch()
    between = has_begun(str(tmp_path))

    (tmp_path / "offsets" / "0").touch()

    assert (before, between, has_begun(str(tmp_path))) == (False, False, True)
