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
    "04_throttle_a_noisy_client": ["noisy writes ", "second: throttled\nneighbor writes ", "as it wants\n"],
    "05_tenant_quotas": [
        "acme-batch writes 900000 bytes and must wait: True\n",
        "acme-web writes 1 bytes and must wait: True\n",
        "zen-app writes 900000 bytes and must wait: False\n",
    ],
    "06_ask_the_tables": [
        "|  billing|confluent-kafka-p...|",
        "|   orders|confluent-kafka-p...|",
        "client_id ",
        "billing reports 1",
    ],
    "07_export_pushes": ["my-app pushes every 0.5 s, "],
    "08_forward_to_a_file": [
        "the folder is missing; accepted: my-app\n",
        "the folder exists; delivered: my-app\n",
    ],
    "09_run_a_companion": ["the companion ran in a process of its own: True\n", "it saw ['orders']\n"],
    "10_authorize_by_file": [
        "billing to billing.invoices: written\n",
        "billing to payroll: KafkaError{code=TOPIC_AUTHORIZATION_FAILED",
        "auditor to payroll: KafkaError{code=TOPIC_AUTHORIZATION_FAILED",
    ],
    "11_principals_of_services": [
        "without SASL: Address:127.0.0.1\n",
        "with SASL: User:billing User:alice\n",
    ],
    "12_bring_records_in": ["stored a push of boiler: ", "stored a push of fridge: "],
    "13_write_elsewhere": ["accepted is a push of my-app\n", "it is on the disk: my-app\n"],
    "14_embed_a_host": ["a push of my-app\n"],
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
