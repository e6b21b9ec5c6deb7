"""Every example runs alone, ends by itself, and prints its result."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.ci

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("[0-9][0-9]_*.py"))
SOURCES = os.pathsep.join(str(path) for path in (ROOT / "host/src", *sorted(ROOT.glob("plugins/*/src"))))
TIME_LIMIT_S = 240

SAYS = {
    "01_one_client": ["my-app runs ", "labels: ", "client_id=my-app", "metric: org.apache.kafka.producer."],
    "02_enrich_with_team": [
        "payments-invoicer-3: team=payments",
        "search-indexer: team=search",
        "cron: team=platform",
    ],
    "03_test_a_client": [
        "test_it_pushes_what_it_is_asked_for PASSED",
        "test_it_goes_on_pushing_after_a_push_was_too_large PASSED",
        "4 passed",
    ],
    "04_throttle_a_noisy_client": [
        "both try to write 3.0 MB a second; noisy may write 1.0 MB\n",
        "noisy wrote ",
        "neighbor wrote ",
        "throttled: noisy\n",
    ],
    "05_tenant_quotas": [
        "zen-app: 2.0 MB/s",
        "acme together: 1.0 MB/s",
        "acme from now on: 3.0 MB/s",
    ],
    "06_ask_the_tables": [
        "|  billing|confluent-kafka-p...|",
        "|   orders|confluent-kafka-p...|",
        "client_id ",
        "billing reports 1",
    ],
    "07_export_pushes": ["my-app pushes every 0.5 s, "],
    "08_forward_to_a_file": [
        "the folder is missing; tried again: True",
        "the folder exists; delivered: True",
        "the first line is a push of my-app",
    ],
    "09_run_a_companion": [
        "the companion ran in a process of its own: True",
        "it saw the telemetry topic: True",
    ],
    "10_authorize_by_file": [
        "User:billing may write to billing.invoices: rule 1\n",
        "User:billing may not write to payroll: no rule\n",
        "User:auditor may read payroll: rule 2\n",
        "User:admin may write to payroll: SuperUser\n",
    ],
    "13_write_elsewhere": [
        "a push is on the disk: True",
        "the first line is a push of my-app",
    ],
    "12_bring_records_in": [
        "temperature of boiler: 61.5\n",
        "temperature of fridge: 4.25\n",
        "lines that wait: 0\n",
    ],
    "11_principals_of_services": [
        "without SASL: Address:127.0.0.1\n",
        "with SASL: User:alice User:billing\n",
    ],
}
"""Part of each example's output."""
WITH_SPARK = ("06_ask_the_tables",)
"""These start a Spark session."""


def run(example: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(example)],
        env=os.environ | {"PYTHONPATH": SOURCES},
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT_S,
        check=False,
    )


def test_every_example_is_known_here() -> None:
    assert {example.stem for example in EXAMPLES} == set(SAYS)


@pytest.mark.timeout(TIME_LIMIT_S + 10)
@pytest.mark.parametrize(
    "example",
    [
        pytest.param(each, id=each.stem, marks=[pytest.mark.spark] if each.stem in WITH_SPARK else [])
        for each in EXAMPLES
    ],
)
def test_an_example_runs_alone_and_prints_its_result(example: Path) -> None:
    finished = run(example)

    assert finished.returncode == 0, finished.stderr
    missing = [text for text in SAYS[example.stem] if text not in finished.stdout]
    assert missing == [], finished.stdout
    assert "Traceback" not in finished.stderr
