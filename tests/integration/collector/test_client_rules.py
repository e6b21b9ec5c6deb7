"""promtool checks the rules about clients and runs their unit tests, amtool the route of the alerts."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from contrib.grafana.__main__ import ALERTMANAGER, PROMETHEUS, ROOT, files
from contrib.grafana.alerts import alerts
from contrib.grafana.causes import CONSEQUENCES
from contrib.grafana.promql import INTERVAL_S
from contrib.grafana.rules import rules_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1_500)]
RULES = ("client-alerts.yml", "client-recording.yml")
TESTS = ("client-alerts.test.yml", "client-recording.test.yml")
OF_EACH_KIND = "(SlowBroker|RecordErrors|RebalanceStorm|Silent|Throttled|Behind)"
"""Alerts of all kinds of rules: those of 32 take more than a minute of CPU."""


def run(promtool: Path, folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [promtool, *arguments], cwd=folder, capture_output=True, text=True, timeout=400, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("interval_s", "of"),
    [
        (INTERVAL_S, OF_EACH_KIND),
        *(pytest.param(each, ".*", marks=pytest.mark.nightly) for each in (INTERVAL_S, 300)),
    ],
)
def test_rules_fire_beyond_their_thresholds_and_not_below(
    promtool: Path, tmp_path: Path, interval_s: int, of: str
) -> None:
    for path, text in files(interval_s).items():
        if path.startswith(PROMETHEUS):
            (tmp_path / Path(path).name).write_text(text)

    checked = run(promtool, tmp_path, "check", "rules", *RULES)
    run(promtool, tmp_path, "test", "rules", f"--run=KafkaClient{of}$", "--run=by-app$", *TESTS)

    rules = [rule for alert in alerts(interval_s) for rule in rules_of(alert)]
    assert f"{len(rules)} rules found" in checked


def test_alertmanager_understands_the_route_and_the_inhibition(amtool: Path) -> None:
    config = ROOT / ALERTMANAGER / "client-alerts.yml"

    checked = run(amtool, config.parent, "check-config", config.name)
    route = run(amtool, config.parent, "config", "routes", "test", f"--config.file={config.name}", "a=b")

    assert f"{len(CONSEQUENCES)} inhibit rules" in checked
    assert route.split() == ["people"]


def test_alerts_about_totals_fire_beyond_their_thresholds_and_not_below(promtool: Path) -> None:
    folder = ROOT / PROMETHEUS

    run(promtool, folder, "check", "rules", "alerts.yml")
    run(promtool, folder, "test", "rules", "alerts.test.yml")
