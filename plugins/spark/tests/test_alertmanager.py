"""A real Alertmanager: it gets an anomaly, notifies its receiver, and resolves the alert at the end."""

from __future__ import annotations

import json
import subprocess
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from contrib.alertmanager.alertmanager import ALERTMANAGER
from contrib.capture.ports import free_port
from ingested import until

from odradek_spark.jobs.deliver import run_deliver
from odradek_spark.jobs.destinations import Alertmanager
from odradek_spark.jobs.rewriting import rewritten, rows_of
from odradek_tables.dataset import Dataset
from odradek_tables.files import write_files
from odradek_tables.log import live
from odradek_tables.schemas import ANOMALIES

pytestmark = pytest.mark.slow
CONFIG = """
route: {{receiver: hook, group_wait: 100ms, group_interval: 100ms, group_by: [alertname, client_id]}}
receivers: [{{name: hook, webhook_configs: [{{url: "{url}", send_resolved: true}}]}}]
"""


@pytest.fixture
def alertmanager(hook: tuple[str, list[Any]], tmp_path: Path) -> Iterator[str]:
    """The URL of an Alertmanager that notifies ``hook``."""
    program = ALERTMANAGER.kept
    if not program.exists():
        pytest.skip("it takes minutes to build: python -m contrib.alertmanager.alertmanager")
    config = tmp_path / "alertmanager.yml"
    config.write_text(CONFIG.format(url=hook[0]))
    address = f"127.0.0.1:{free_port()}"
    command = [
        *(str(program), f"--config.file={config}", f"--storage.path={tmp_path / 'data'}"),
        *(f"--web.listen-address={address}", "--cluster.listen-address="),
    ]
    with (tmp_path / "log").open("w") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            until(lambda: is_ready(f"http://{address}/-/ready"), 30)
            yield f"http://{address}"
        finally:
            process.terminate()


def is_ready(url: str) -> bool:
    try:
        urllib.request.urlopen(url, timeout=1).close()
    except OSError:
        return False
    return True


def alerts(url: str) -> list[Any]:
    """The active alerts."""
    with urllib.request.urlopen(f"{url}/api/v2/alerts?active=true", timeout=10) as response:
        found: list[Any] = json.load(response)
    return found


def test_an_alarm_arrives_and_closes(alertmanager: str, hook: tuple[str, list[Any]], tmp_path: Path) -> None:
    now = datetime.now(UTC)
    dataset = Dataset(str(tmp_path / "tables"))
    dataset.create([ANOMALIES])
    began = now - timedelta(minutes=5)
    row: dict[str, Any] = dict.fromkeys(ANOMALIES.schema.names)
    row |= {"rule": "throttled-produce", "client_instance_id": "i1", "client_id": "orders", "name": "m"}
    row |= {"started_ts": began, "fired_ts": now, "last_ts": now, "last_recv_ts": now, "attrs": None}
    row |= {"state": "open", "op": ">", "threshold": 0.0, "last": 7.0, "worst": 9.0, "delivered": ""}
    row |= {"principal": "User:o", "client_rack": "r1", "date": f"{began:%Y-%m-%d}"}
    rows = pa.Table.from_pylist([row], ANOMALIES.schema)
    dataset.exchange(ANOMALIES, [], write_files(dataset.root, ANOMALIES, rows), data_change=True)
    destination = Alertmanager(alertmanager)

    for _ in range(2):  # an open alert is repeated
        run_deliver(dataset.root, [destination], now)
    until(lambda: bool(hook[1]), 30)
    opened = alerts(alertmanager)
    files = live(dataset.existing(ANOMALIES))
    (stored,) = rows_of(dataset, files)
    stored |= {"state": "closed", "closed_ts": now, "reason": "recovered"}
    rewritten(dataset, [stored], files, {})
    done = run_deliver(dataset.root, [destination], datetime.now(UTC))
    until(lambda: len(hook[1]) > 1, 30)

    (alert,) = opened
    labels = {"alertname": "throttled-produce", "client_id": "orders", "principal": "User:o"}
    assert labels.items() <= alert["labels"].items()
    assert alert["annotations"]["advice"]
    assert [body["status"] for body in hook[1]] == ["firing", "resolved"]
    assert [each["labels"]["client_rack"] for body in hook[1] for each in body["alerts"]] == ["r1", "r1"]
    assert alerts(alertmanager) == []
    assert done is not None
    assert done.line() == "deliver: 0 openings, 1 closings"
