"""The steps of ``howto/prometheus.md``, with a real Prometheus, and shorter times than a reader's."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from contrib.capture.ports import free_ports
from contrib.prometheus.prometheus import PROMETHEUS
from contrib.prometheus.promtool import PROMTOOL

from integration.collector.conftest import built
from support.hosts import ServeProcess
from support.prometheus_server import prometheus_server
from support.reference_page import blocks
from support.waiting import wait_until

PAGE = "howto/prometheus.md"
PATIENCE_S = 60.0
RECORDS = 60
QUICKER = {
    '"interval.ms" = 10000': '"interval.ms" = 500',
    "scrape_interval: 15s": "scrape_interval: 1s",
    "range(1200)": f"range({RECORDS})",
    "=> 1200": f"=> {RECORDS}",
    "[1m]": "[10s]",
}


def texts(language: str, replaced: dict[str, str]) -> list[str]:
    """The blocks in a language, in order."""
    found = [text for each, text in blocks(PAGE) if each == language]
    for old, new in replaced.items():
        found = [text.replace(old, new) for text in found]
    return found


def test_what_is_shortened_is_on_the_page() -> None:
    text = "".join(text for _, text in blocks(PAGE))

    assert [old for old in QUICKER if old not in text] == []


@pytest.mark.slow
@pytest.mark.timeout(1_500)
def test_each_step_works_as_on_the_page(tmp_path: Path) -> None:
    pytest.importorskip("confluent_kafka")
    program, promtool = built(PROMETHEUS), built(PROMTOOL)
    port, scraped, kafka = map(str, free_ports(3))
    replaced = QUICKER | {"9404": scraped, "9090": port, "localhost:9092": f"127.0.0.1:{kafka}"}
    (config,), (scrapes,), (producer,) = (texts(each, replaced) for each in ("toml", "yaml", "python"))
    install, serve, prometheus, produce, rate, total = texts("sh", replaced)
    (printed,) = texts("", replaced)
    for name, text in {"odradek.toml": config, "prometheus.yml": scrapes, "producer.py": producer}.items():
        (tmp_path / name).write_text(text)

    def asked(command: str) -> list[str]:
        """The output of promtool, without the time."""
        name, *arguments = shlex.split(command)
        assert name == "promtool"
        done = subprocess.run([promtool, *arguments], capture_output=True, text=True, timeout=60, check=True)
        return [each.partition(" @")[0] for each in done.stdout.splitlines()]

    host = ServeProcess(
        *("--config", str(tmp_path / "odradek.toml"), "--set", f"data.dir={tmp_path / 'data'}"),
        *("--set", f"listeners=PLAINTEXT://127.0.0.1:{kafka}"),
    )
    try:
        with prometheus_server(program, tmp_path / "prometheus.yml", int(port), tmp_path):
            with subprocess.Popen([sys.executable, "producer.py"], cwd=tmp_path) as running:
                wait_until(lambda: bool(asked(rate)), "no rate in Prometheus", PATIENCE_S)
                assert running.wait(PATIENCE_S) == 0
            wait_until(lambda: asked(total) == printed.splitlines(), lambda: str(asked(total)), PATIENCE_S)
    finally:
        host.terminate()

    assert (serve, produce) == ("odradek serve --config odradek.toml\n", "python producer.py\n")
    assert prometheus == "prometheus --config.file=prometheus.yml\n"
    assert install.startswith("python3 -m venv .venv")
