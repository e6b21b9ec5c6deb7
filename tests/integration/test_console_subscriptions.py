"""``odradek subscriptions`` at a host."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from odradek.client.admin import AdminClient
from odradek.client.cluster_watch import read_subscriptions
from odradek.client.errors import RequestFailed
from odradek.testing import RunningHost
from odradek_console.terminal.subscriptions import CHANGED, subscriptions

FILE = """
[subscriptions.producers]
metrics = ["org.apache.kafka.producer."]
"interval.ms" = 5000
match = ["client_id=orders.*"]
"""


@pytest.fixture
def host(odradek_hosts: Callable[..., RunningHost]) -> RunningHost:
    return odradek_hosts()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "wanted.toml"
    path.write_text(FILE)
    return path


def run(command: str, host: RunningHost, file: Path, *options: str) -> Result:
    arguments = [command, "--bootstrap-server", host.bootstrap, "--file", str(file), *options]
    return CliRunner().invoke(subscriptions, arguments)


def stored(host: RunningHost) -> dict[str, dict[str, str]]:
    with AdminClient(host.bootstrap) as admin:
        return read_subscriptions(admin)


def test_a_plan_changes_nothing_and_apply_does_it(host: RunningHost, file: Path) -> None:
    host.subscribe("*", name="old")

    planned = run("plan", host, file, "--check", "--prune", "--json")
    before = stored(host)
    applied = run("apply", host, file, "--prune")
    again = run("plan", host, file, "--check", "--prune")

    acts = [json.loads(line)["act"] for line in planned.output.splitlines()]
    assert (planned.exit_code, acts, list(before)) == (CHANGED, ["delete", "create"], ["old"])
    assert (applied.exit_code, again.exit_code) == (0, 0)
    assert applied.output.endswith("1 created, 0 changed, 1 deleted, 0 not in the file\n")
    assert again.output == "0 to create, 0 to change, 0 to delete, 0 not in the file\n"
    assert stored(host) == {
        "producers": {
            "metrics": "org.apache.kafka.producer.",
            "interval.ms": "5000",
            "match": "client_id=orders.*",
        }
    }


def test_drift_is_shown_and_mended(host: RunningHost, file: Path) -> None:
    run("apply", host, file)
    host.subscribe("*", interval_ms=900, name="producers")

    drift = run("plan", host, file)
    run("apply", host, file)

    assert "~ producers" in drift.output
    assert "interval.ms = 900 -> 5000" in drift.output
    assert stored(host)["producers"]["interval.ms"] == "5000"


def test_a_preset_is_planned_by_its_name(host: RunningHost, file: Path) -> None:
    host.subscribe("a.,b.", interval_ms=60_000, name="everybody")
    file.write_text('[subscriptions.everybody]\npreset = "essential"\n')

    planned = run("apply", host, file)
    again = run("plan", host, file, "--check")

    assert planned.output.splitlines()[:2] == ["~ everybody", "    metrics = a., b. -> essential"]
    assert again.exit_code == 0
    assert stored(host)["everybody"]["metrics"].startswith("org.apache.kafka.producer.node.request.latency.,")


def test_a_file_that_the_cluster_refuses_changes_nothing(host: RunningHost, file: Path) -> None:
    file.write_text(FILE + '[subscriptions.z]\nmetrics = "*"\n"interval.ms" = 5\n')

    result = run("apply", host, file)

    assert isinstance(result.exception, RequestFailed)
    assert stored(host) == {}
