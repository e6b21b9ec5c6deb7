"""Tens of thousands of random client ids against a budget of a thousand series, in a real Prometheus.

Unit and property tests cannot show that Prometheus gets no series besides, and that it adds up the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from random import Random

import pytest
from contrib.capture.ports import free_ports

from odradek.plugin import TelemetryRecord
from odradek.temporality.budgets.policy import BudgetLimits
from support.budget_clients import metric
from support.exposed_clients import Exposed
from support.prometheus_server import prometheus_server
from support.scrape_server import served
from support.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1_500)]
PATIENCE_S = 60.0
CLIENTS = 4_000
"""Four times the budget."""
BUDGET = 1_000
NAMES = ("records.total", "bytes.total", "errors.total")
SUM = "sum(last_over_time({}[5m]))"
"""It has a value also after a scrape that failed, which ends all series until the next one."""
CONFIG = """
global:
  scrape_interval: 1s
scrape_configs:
- job_name: clients
  static_configs: [{{targets: ["127.0.0.1:{port}"]}}]
"""


def pushes(exposed: Exposed) -> Iterator[TelemetryRecord]:
    """A push of each client, with one counter."""
    random = Random(7)
    for number in range(CLIENTS):
        client_id = random.randbytes(16).hex()[:20] + "x"
        yield exposed.record(
            metric(NAMES[number % len(NAMES)], number % 5, 60),
            instance=random.randbytes(16),
            labels={"client_id": client_id},
            context={"client_id": client_id},
        )


def test_random_client_ids_stay_within_the_budget(prometheus_program: Path, tmp_path: Path) -> None:
    (port,) = free_ports(1)
    exposed = Exposed(budgets=BudgetLimits(series=BUDGET))
    waiting = pushes(exposed)
    exposed.deliver(*islice(waiting, CLIENTS // 2))
    exposed.restart(60)
    exposed.deliver(*waiting)
    clients = list(exposed.exposition.clients())

    with served(clients) as listener:
        config = tmp_path / "prometheus.yml"
        config.write_text(CONFIG.format(port=listener))
        with prometheus_server(prometheus_program, config, port, tmp_path) as server:
            wait_until(lambda: bool(server.query("records_total")), "no series in Prometheus", PATIENCE_S)
            counted = server.query('count(last_over_time({__name__=~"(records|bytes|errors)_total"}[5m]))')
            sums = {name: server.query(SUM.format(name.replace(".", "_")))[0][1] for name in NAMES}

    assert counted[0][1] <= BUDGET + len(NAMES)
    assert sums == {
        name: sum(number % 5 for number in range(index, CLIENTS, len(NAMES)))
        for index, name in enumerate(NAMES)
    }
