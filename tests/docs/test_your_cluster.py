"""The steps of ``tutorial/your-cluster.md``, with a host without telemetry as the cluster of the reader."""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.error import HTTPError

import pytest
from contrib.capture.ports import free_ports
from contrib.prometheus.prometheus import PROMETHEUS

from integration.collector.conftest import built
from odradek.cli.main import installed_commands
from support.gateways import GatewayProcess
from support.hosts import ServeProcess
from support.prometheus_server import prometheus_server
from support.reference_page import ROOT, blocks
from support.waiting import wait_until

PAGE = "tutorial/your-cluster.md"
PORTS = ("9092", "9192", "9193", "9404", "9642", "9090")
QUICKER = {"scrape_interval: 15s": "scrape_interval: 1s"}
PATIENCE_S = 60.0
ALARM_S = 420.0
"""A minute in which nothing is read, one of the alarm, and the rounds in between."""


def texts(language: str, replaced: dict[str, str]) -> list[str]:
    """The blocks in a language, in order, with the ports of this test."""
    found = [text for each, text in blocks(PAGE) if each == language]
    for old, new in QUICKER.items():
        found = [text.replace(old, new) for text in found]
    return [re.sub("|".join(PORTS), lambda port: replaced[port[0]], text) for text in found]


def odradek(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    program, *arguments = shlex.split(command)
    assert program == "odradek"
    return subprocess.run(
        [sys.executable, "-m", "odradek", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


@contextmanager
def stopped(process: ServeProcess) -> Iterator[ServeProcess]:
    try:
        yield process
    finally:
        process.terminate()


@contextmanager
def started(command: list[str], folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A program of the page that goes on, until Ctrl-C."""
    with subprocess.Popen(
        [sys.executable, *command], cwd=folder, stdout=subprocess.PIPE, text=True
    ) as running:
        try:
            yield running
        finally:
            running.send_signal(signal.SIGINT)
            running.wait(PATIENCE_S)


def test_what_is_shortened_is_on_the_page() -> None:
    text = "".join(text for _, text in blocks(PAGE))

    assert [old for old in QUICKER if old not in text] == []


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_a_stuck_member_is_named_and_rings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("confluent_kafka")
    if "console" not in installed_commands():
        pytest.skip("odradek-console is not installed")
    prometheus = built(PROMETHEUS)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "contrib").symlink_to(ROOT / "contrib")
    ports = dict(zip(PORTS, map(str, free_ports(len(PORTS))), strict=True))
    _, lag, gateway, console, scrape, stuck, take_away = texts("sh", ports)
    check, gateway = gateway.splitlines()
    for name, (text,) in {
        "stuck.py": texts("python", ports),
        "gateway.toml": texts("toml", ports),
        "prometheus.yml": texts("yaml", ports),
    }.items():
        (tmp_path / name).write_text(text, encoding="utf-8")

    def console_says(path: str) -> str:
        """The text of a page; empty as long as it is not there."""
        try:
            with urllib.request.urlopen(
                f"http://127.0.0.1:{ports['9642']}{path}", timeout=PATIENCE_S
            ) as answer:
                text: str = answer.read().decode()
        except HTTPError:
            return ""
        return text

    with ExitStack() as running:
        cluster = ("node.id=1", "telemetry.durability=memory", f"data.dir={tmp_path / 'cluster'}")
        settings = [each for value in cluster for each in ("--set", value)]
        listener = f"listeners=PLAINTEXT://127.0.0.1:{ports['9092']}"
        running.enter_context(stopped(ServeProcess(*settings, "--set", listener)))
        checked = odradek(check, tmp_path)
        running.enter_context(stopped(GatewayProcess(*shlex.split(gateway)[2:])))
        seen = running.enter_context(started(["-m", *shlex.split(console)], tmp_path))
        assert seen.stdout is not None
        assert seen.stdout.readline().startswith("odradek console ready")
        server = running.enter_context(
            prometheus_server(prometheus, tmp_path / "prometheus.yml", int(ports["9090"]), tmp_path)
        )
        member = running.enter_context(started(shlex.split(stuck)[1:], tmp_path))
        wait_until(lambda: "stuck-1" in odradek(lag, tmp_path).stdout, "the group", PATIENCE_S)
        wait_until(lambda: "stuck-1" in console_says("/groups/stuck"), "the member", ALARM_S)

        def ringing() -> list[str]:
            alerts = server.get("/api/v1/alerts")["data"]["alerts"]
            return [each["annotations"]["summary"] for each in alerts if each["state"] == "firing"]

        wait_until(lambda: bool(ringing()), lambda: json.dumps(server.get("/api/v1/alerts")), ALARM_S)
        rung = ringing()
        member.send_signal(signal.SIGINT)
        member.wait(PATIENCE_S)
        topics, groups, _ = take_away.splitlines()
        taken = [odradek(command, tmp_path) for command in (topics, groups)]

    assert checked.returncode == 0, checked.stdout
    assert scrape.startswith("prometheus --config.file=prometheus.yml --storage.tsdb.path=")
    assert len(rung) == 1
    assert re.fullmatch(
        r"The group stuck has stopped reading odradek-try: \d\d records "
        r"\(the group has members, and the last minute says: stalled\)",
        rung[0],
    )
    assert [done.returncode for done in taken] == [0, 0], taken
