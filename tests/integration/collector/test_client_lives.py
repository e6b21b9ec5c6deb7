"""Whole lives of clients in the rules for Prometheus, by scrape and by remote write."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import yaml
from contrib.grafana.rules import alert_rules

from support.client_lives import HEALTHY, SICK
from support.lives_in_promtool import Way, life_test

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
LIVES = (*HEALTHY, *SICK)


@pytest.mark.parametrize(
    ("way", "interval_s"), [("scrape", 10), pytest.param("remote-write", 60, marks=pytest.mark.nightly)]
)
def test_lives_have_the_alerts_that_are_told_of_them(
    promtool: Path, tmp_path: Path, way: Way, interval_s: int
) -> None:
    (tmp_path / "rules.yml").write_text(alert_rules(interval_s))
    tests = [life_test(life.of_interval(interval_s), way) for life in LIVES]
    content = {"rule_files": ["rules.yml"], "evaluation_interval": "30s", "tests": tests}
    (tmp_path / "lives.yml").write_text(yaml.safe_dump(content, sort_keys=False, width=1_000_000))

    done = subprocess.run(
        [promtool, "test", "rules", "lives.yml"], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr
