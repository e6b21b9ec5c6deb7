"""The progress of ingest: lines, and metrics for Prometheus, with a fake query."""

from __future__ import annotations

import json
import socket
import urllib.request
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from spark_dataset import Push, ingested

from odradek.endpoints import Address
from odradek_spark.ingest.progress import READY_S, Progress, served, waiting
from odradek_tables.dataset import Dataset


def query(batch: int | None, end: object = None, latest: object = None) -> Any:
    """A query after a batch; None before the first."""
    told = json.dumps({"sources": [{"endOffset": end, "latestOffset": latest}]})
    progress = SimpleNamespace(runId="r", batchId=batch, json=told)
    return SimpleNamespace(lastProgress=None if batch is None else progress)


def values(url: str) -> dict[str, float]:
    """The metrics by name."""
    with urllib.request.urlopen(url, timeout=30) as page:
        families = text_string_to_metric_families(page.read().decode())
        return {each.name: each.value for family in families for each in family.samples}


def test_each_batch_is_a_line_and_counts(tmp_path: Path) -> None:
    Dataset(str(tmp_path)).create()
    said: list[str] = []
    now_s = 1_000.0
    progress = Progress(str(tmp_path), said.append, lambda: now_s)
    with served(progress, Address("127.0.0.1", 0)):
        url = said.pop().removeprefix("metrics at ")
        starting = values(url)
        progress(query(None))
        ingested(str(tmp_path), [Push(client=each, value=1.0) for each in range(3)])
        for _ in range(2):
            progress(query(0, {"t": {"0": 3, "1": 2}}, {"t": {"0": 7, "1": 5}}))
        now_s += READY_S + 2
        waits = values(url)
        progress(query(1))

    assert starting == dict.fromkeys(starting, 0)
    assert said == ["3 pushes, 3 points, 7 waiting"]
    assert waits == {
        "odradek_pipeline_batches_total": 1,
        "odradek_pipeline_pushes_total": 3,
        "odradek_pipeline_points_total": 3,
        "odradek_pipeline_dead_letters_total": 0,
        "odradek_pipeline_waiting": 7,
        "odradek_pipeline_last_batch_age_seconds": READY_S + 2,
        "odradek_pipeline_ready": 0,
    }
    assert next(each.samples[0].value for each in progress.collect() if each.name.endswith("_ready")) == 1


@pytest.mark.parametrize(
    ("end", "latest", "left"),
    [
        ({"t": {"0": 3}}, {"t": {"0": 5}}, 2),
        ('{"t": {"0": 3}}', '{"t": {"0": 5}}', 2),
        ({"t": {"0": 3}}, None, None),
        ('{"t": {"0": 3}}', "null", None),
    ],
)
def test_what_waits_is_told_as_objects_or_as_text(end: object, latest: object, left: int | None) -> None:
    assert waiting({"sources": [{"endOffset": end, "latestOffset": latest}]}) == left


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="no IPv6")
def test_metrics_are_served_over_ipv6(tmp_path: Path) -> None:
    said: list[str] = []
    with served(Progress(str(tmp_path), said.append), Address("::1", 0)):
        assert values(said[0].split()[-1])["odradek_pipeline_ready"] == 0

    assert said[0].startswith("metrics at http://[::1]:")


def test_two_servers_cannot_have_one_port(tmp_path: Path) -> None:
    said: list[str] = []
    progress = Progress(str(tmp_path), said.append)
    with served(progress, Address("127.0.0.1", 0)):
        port = int(said[0].rpartition(":")[2].removesuffix("/metrics"))
        with pytest.raises(OSError, match=f"metrics listener 127.0.0.1:{port}: .*in use"):
            served(progress, Address("127.0.0.1", port)).__enter__()
