"""Several workers of one gateway: they share ports and work, and one that is killed comes back."""

from __future__ import annotations

import contextlib
import queue
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from contrib.capture.ports import free_range

from odradek.upkeep.data_dir import DataDir
from odradek.wire.messages.api_versions import ApiVersionsRequest
from support.gateway_workers import WorkerGateway, workers_of
from support.hosts import EVERYTHING, ThreadedHost, running_host
from support.otlp_collector import Collector, collecting
from support.pushers import pushing
from support.waiting import wait_until
from support.wire_client import WireClient

pytestmark = pytest.mark.ci

TELEMETRY_KEYS = {71, 72}
BOTH = {"0", "1"}


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreadedHost]:
    """A cluster without telemetry of its own."""
    folder = tmp_path_factory.mktemp("host")
    with running_host(folder, "node.id=1", "telemetry.durability=memory") as running:
        yield running


@pytest.fixture(scope="module")
def gateway(host: ThreadedHost, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkerGateway]:
    folder = tmp_path_factory.mktemp("gateway")
    with workers_of(
        host.bootstrap, folder, "plugins.stdout.enabled=true", "gateway.observe=none", *EVERYTHING
    ) as running:
        yield running


def offered(client: WireClient) -> set[int]:
    """The telemetry APIs that a client is offered."""
    answer = client.send(ApiVersionsRequest(client_software_name="t", client_software_version="1"), 3)
    return {row.api_key for row in answer.api_keys} & TELEMETRY_KEYS


def exporting(collector: Collector) -> tuple[str, ...]:
    return (f"plugins.otlp.endpoint={collector.url}", "plugins.otlp.protocol=http/protobuf", *EVERYTHING)


def is_gone(pid: int) -> bool:
    """Whether a process has ended; it may not be waited for yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_connections_reach_all_workers_and_one_endpoint_has_the_metrics_of_all(
    gateway: WorkerGateway,
) -> None:
    assert gateway.process.ready.endswith(" workers=2")
    with contextlib.ExitStack() as opened:
        for _ in range(32):
            client = opened.enter_context(WireClient(gateway.address))
            assert offered(client) == TELEMETRY_KEYS
        connections = gateway.values("odradek_connections")
        assert connections.keys() == BOTH
        assert sum(connections.values()) == 32
        assert min(connections.values()) > 0
    assert gateway.values("odradek_gateway_ready") == {"0": 1, "1": 1}
    assert gateway.get("/healthz") == gateway.get("/readyz") == (200, "ok\n")


def test_a_client_goes_on_pushing_when_its_worker_is_killed(gateway: WorkerGateway) -> None:
    kafka = pytest.importorskip("confluent_kafka")
    producer = kafka.Producer(
        {
            "bootstrap.servers": gateway.process.bootstrap,
            "client.id": "moving",
            "reconnect.backoff.max.ms": 100,
        }
    )

    def next_push() -> Any:
        while True:
            producer.produce("moved", b"a record")
            producer.poll(0.05)
            with contextlib.suppress(queue.Empty):
                return gateway.process.next_push(lambda row: row["context"]["client_id"] == "moving", 0.2)

    first = next_push()
    name = first["labels"]["gateway"]
    worker = int(name.rpartition("-")[2]) if name.endswith("-1") else 0
    gateway.kill(worker)
    other = wait_until(lambda: (row := next_push())["labels"]["gateway"] != name and row, "a push elsewhere")
    gateway.wait_ready(2)
    assert producer.flush(20) == 0
    assert other["context"]["client_instance_id"] == first["context"]["client_instance_id"]
    assert gateway.values("odradek_gateway_worker_restarts_total")[str(worker)] == 1


def test_the_kill_switch_reaches_all_and_stays_when_a_worker_is_killed(gateway: WorkerGateway) -> None:
    for step in (1, 2):
        gateway.process.process.send_signal(signal.SIGUSR1)
        gateway.wait_for("odradek_gateway_switch", {"0": step, "1": step})
    gateway.kill(0)
    gateway.wait_for("odradek_gateway_switch", {"1": 2})
    gateway.wait_ready(2)
    assert gateway.values("odradek_gateway_switch") == {"0": 2, "1": 2}
    for _ in range(16):
        with WireClient(gateway.address) as client:
            assert offered(client) == set()


@pytest.mark.parametrize(
    ("same", "problem"),
    [("listeners=", "address already in use"), ("data.dir=", "is in use by another process")],
)
def test_another_gateway_gets_neither_the_ports_nor_the_folder(
    gateway: WorkerGateway, host: ThreadedHost, tmp_path: Path, same: str, problem: str
) -> None:
    arguments = [str(each) for each in gateway.process.process.args]  # type: ignore[union-attr]
    taken = [each for each in arguments if each.startswith(same)][-1]
    own = [f"listeners=PLAINTEXT://127.0.0.1:{free_range(2)}", f"data.dir={tmp_path}", "gateway.nodes=1"]
    options = [each for value in (*own, taken) for each in ("--set", value)]
    command = [sys.executable, "-m", "odradek", "gateway", "--upstream", host.bootstrap, "--workers", "2"]
    done = subprocess.run([*command, *options], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert problem in done.stderr.splitlines()[-1]


def test_what_was_accepted_is_delivered_after_a_kill_and_with_fewer_workers(
    host: ThreadedHost, tmp_path: Path
) -> None:
    with collecting() as collector:
        collector.down()
        with workers_of(host.bootstrap, tmp_path, *exporting(collector)) as gateway:
            with pushing(4) as pushers:
                pushers.bootstrap = gateway.process.bootstrap
                appended = "odradek_push_appended_total"
                wait_until(
                    lambda: min(gateway.values(appended).values()) > 20, lambda: gateway.values(appended)
                )
                gateway.kill(1)
                gateway.wait_ready(1)
                accepted = len(pushers.names())
                wait_until(lambda: len(pushers.names()) > accepted + 20, "pushes at the other worker")
                gateway.wait_ready(2)
            assert gateway.process.terminate() == 0
        assert not collector.seen
        collector.up()
        with workers_of(host.bootstrap, tmp_path, *exporting(collector), workers=1) as gateway:
            wait_until(lambda: not collector.missing(pushers.names()), lambda: len(collector.seen))
            gateway.wait_for("odradek_gateway_former_workers", {"": 0})
            assert any("everything is delivered" in line for line in gateway.process.errors)


def test_workers_end_with_their_parent(host: ThreadedHost, tmp_path: Path) -> None:
    with workers_of(host.bootstrap, tmp_path) as gateway:
        pids = gateway.pids
        assert len(pids) == 2
        gateway.process.process.kill()
        wait_until(lambda: all(map(is_gone, pids.values())), "the end of the workers")
        gateway.process.process.wait(10)
        gateway.process.join()
    for folder in (tmp_path, tmp_path / "workers" / "1"):
        DataDir(folder).close()  # raises if a worker still has it
