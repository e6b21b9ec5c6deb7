"""Telemetry that fails while records pass: producers lose nothing and wait for nothing."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from odradek.client.admin import AdminClient
from odradek.wire.error_code import ErrorCode
from support.gateways import GatewayProcess, gateway_of
from support.hosts import LOOPBACK, ThreadedHost, running_host
from support.waiting import wait_until
from support.wire_client import WireClient

pytestmark = pytest.mark.ci

kafka = pytest.importorskip("confluent_kafka")
admin = pytest.importorskip("confluent_kafka.admin")

METRICS = bytes.fromhex("0a00")
NODE = 1
HANGS = """
import time
from odradek.plugin import hookimpl

class Hanging:
    def client_receiver(self):
        return self

    def export_metrics(self, context, payload):
        time.sleep(3600)

@hookimpl
def odradek_client_telemetry(config):
    return Hanging()
"""


class Load:
    """A producer that sends as long as the test runs."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        settings = {"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 1}
        self.producer: Any = kafka.Producer(settings | {"enable.metrics.push": False})
        self.topic = topic
        self.sent = self.delivered = 0
        self.errors: list[object] = []
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self) -> None:
        while not self.ended.is_set():
            self.producer.produce(self.topic, b"%d" % self.sent, partition=0, on_delivery=self.report)
            self.sent += 1
            self.producer.poll(0.002)

    def report(self, error: object, _message: object) -> None:
        if error is None:
            self.delivered += 1
        else:
            self.errors.append(error)

    def goes_on(self) -> None:
        """Wait until records that are sent from now on are acknowledged."""
        enough = self.sent + 50
        wait_until(lambda: self.delivered > enough, "more acknowledged records")
        assert self.errors == []


@contextmanager
def load(bootstrap: str, topic: str) -> Iterator[Load]:
    """A producer; at the end all that it has sent must be acknowledged."""
    producing = Load(bootstrap, topic)
    producing.thread.start()
    try:
        yield producing
    finally:
        producing.ended.set()
        producing.thread.join(20)
        left = producing.producer.flush(20)
    assert left == 0
    assert producing.errors == []
    assert producing.delivered == producing.sent


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreadedHost]:
    folder = tmp_path_factory.mktemp("upstream")
    with running_host(folder, f"node.id={NODE}", "auto.create.topics.enable=false") as host:
        made = admin.AdminClient({"bootstrap.servers": host.bootstrap})
        for future in made.create_topics([admin.NewTopic("orders", 1, 1)]).values():
            future.result(20)
        yield host


def address_of(gateway: GatewayProcess) -> tuple[str, int]:
    name, _, port = gateway.bootstrap.rpartition(":")
    return name, int(port)


def pushed(gateway: GatewayProcess, times: int) -> list[int]:
    """The error codes of pushes, each of a new client."""
    answers = []
    for _ in range(times):
        with WireClient(address_of(gateway), timeout_s=20) as client:
            client.introduce()
            answers.append(client.push(METRICS))
    return answers


def was_logged(gateway: GatewayProcess, text: str) -> bool:
    return any(text in line for line in gateway.errors)


def test_a_topic_of_the_cluster_that_is_gone(host: ThreadedHost, tmp_path: Path) -> None:
    settings = (
        f"plugins.kafka.bootstrap.servers={host.bootstrap}",
        "plugins.kafka.topic=missing",
        "plugins.kafka.topic.create=false",
        "shutdown.timeout.ms=500",
        "subscriptions.all.metrics=*",
        "subscriptions.all.interval.ms=200",
    )
    with gateway_of(host.bootstrap, tmp_path, *settings) as gateway, load(gateway.bootstrap, "orders") as ok:
        answers = pushed(gateway, 3)
        ok.goes_on()
        with AdminClient(host.bootstrap) as client:
            topics = {each.name for each in client.metadata(None).topics}

    assert answers == [ErrorCode.NONE] * 3
    assert "missing" not in topics


def test_a_plugin_that_hangs(host: ThreadedHost, tmp_path: Path) -> None:
    (tmp_path / "hangs.py").write_text(HANGS)
    about = tmp_path / "hangs-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: hangs\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[odradek]\nhangs = hangs\n")
    values = (
        f"listeners={LOOPBACK}",
        f"data.dir={tmp_path / 'data'}",
        "subscriptions.all.metrics=*",
        "subscriptions.all.interval.ms=200",
        "shutdown.timeout.ms=500",
    )
    options = [each for value in values for each in ("--set", value)]
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    gateway = GatewayProcess("--upstream", host.bootstrap, *options, env={"PYTHONPATH": path})
    try:
        with load(gateway.bootstrap, "orders") as ok:
            answers = pushed(gateway, 4)
            ok.goes_on()
    finally:
        gateway.terminate(30)

    assert answers == [ErrorCode.NONE] * 4
    assert was_logged(gateway, "hangs")


def test_every_step_of_the_kill_switch_under_load(host: ThreadedHost, tmp_path: Path) -> None:
    switch = tmp_path / "switch"
    settings = (
        f"gateway.switch={switch}",
        "subscriptions.all.metrics=*",
        "subscriptions.all.interval.ms=200",
    )
    with (
        gateway_of(host.bootstrap, tmp_path / "data", *settings) as gateway,
        load(gateway.bootstrap, "orders") as ok,
        WireClient(address_of(gateway), timeout_s=20) as good,
    ):
        good.introduce()
        for step in ("no-observation", "no-telemetry", "rewrite-only"):
            gateway.process.send_signal(signal.SIGUSR1)
            wait_until(partial(was_logged, gateway, f"step={step}"), step)
            ok.goes_on()
            good.introduce()
        silent = good.subscriptions()
        switch.write_text("full\n")
        wait_until(partial(was_logged, gateway, "step=full"), "the way back")
        ok.goes_on()
        asked = good.subscriptions()

    assert list(silent.requested_metrics) == []
    assert list(asked.requested_metrics) == ["*"]
