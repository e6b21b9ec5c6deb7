"""The telemetry of a gateway in its host: subscriptions of the cluster, labels, and faults."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from odradek.client.cluster_watch import Observed
from odradek.net.pairs.dialer import Address
from odradek.otlp.labels import EncodedLabels
from odradek.programs.config import HostConfig, load_config
from odradek.programs.gateway import Gateway
from odradek.telemetry.enrichers import SAMPLE
from odradek.testing.host_thread import HostThread
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from support.hosts import LOOPBACK
from support.wire_client import WireClient

OF_FILE = "subscriptions.of-file.metrics=file."


class GatewayThread(HostThread):
    """A gateway on a loop of its own."""

    host: Gateway  # type: ignore[assignment]

    def __init__(self, config: HostConfig, broker: Address) -> None:
        super().__init__(config)
        self.broker = broker

    def make(self) -> Any:
        return Gateway(self.config, [self.broker], None, False, lambda why: None)


class Edge:
    """A gateway, and what polls of its cluster say."""

    def __init__(self, thread: GatewayThread) -> None:
        self.thread = thread

    def poll(self, subscriptions: Mapping[str, Mapping[str, str]] | None = None, **more: object) -> None:
        """Give the gateway the result of a poll."""
        state = Observed(subscriptions=subscriptions, **more)  # type: ignore[arg-type]
        self.thread.call(lambda: self.thread.host.polled(state))

    def in_force(self) -> dict[str, tuple[str, ...]]:
        """The metrics of each subscription."""
        by_name = self.thread.host.telemetry.subscriptions.by_name
        return self.thread.call(lambda: {name: each.metrics for name, each in sorted(by_name.items())})


@contextmanager
def gateway(data_dir: Path, *overrides: str, file: Path | None = None) -> Iterator[Edge]:
    """A gateway in front of a broker that accepts connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as broker:
        address: Address = broker.getsockname()
        thread = GatewayThread(config_of(data_dir, address, *overrides, file=file), address)
        thread.start()
        try:
            yield Edge(thread)
        finally:
            thread.close()


def config_of(data_dir: Path, broker: Address, *overrides: str, file: Path | None = None) -> HostConfig:
    values = (f"listeners={LOOPBACK}", f"data.dir={data_dir}", "gateway.nodes=1,103", "gateway.drain.ms=0")
    return load_config(file, [*values, "gateway.upstream={}:{}".format(*broker), *overrides])


def test_subscriptions_of_the_cluster_join_those_of_the_file(tmp_path: Path) -> None:
    with gateway(tmp_path, OF_FILE) as edge:
        edge.poll({"of-cluster": {"metrics": "cluster."}, "of-file": {"metrics": "hidden."}})

        assert edge.in_force() == {"of-cluster": ("cluster.",), "of-file": ("file.",)}


def test_a_deleted_subscription_ends(tmp_path: Path) -> None:
    with gateway(tmp_path, OF_FILE) as edge:
        edge.poll({"of-cluster": {"metrics": "cluster."}})
        edge.poll({})

        assert edge.in_force() == {"of-file": ("file.",)}


def test_its_metrics_are_among_those_of_the_host(tmp_path: Path) -> None:
    with gateway(tmp_path, OF_FILE) as edge:
        edge.poll({"of-cluster": {"metrics": "cluster."}})

        rows = edge.thread.call(lambda: {row.name: row.value for row in edge.thread.host.metric_rows()})

    assert (rows["odradek.gateway.subscriptions"], rows["odradek.gateway.subscriptions.of.cluster"]) == (2, 1)


def test_a_poll_that_changes_nothing_leaves_the_version(tmp_path: Path) -> None:
    """A new version makes every client's instance again and opens its gates."""
    with gateway(tmp_path) as edge:
        edge.poll({"a": {"metrics": "a."}})
        version = edge.thread.host.telemetry.subscriptions.version

        for _ in range(3):
            edge.poll({"a": {"metrics": "a."}})

        assert edge.thread.host.telemetry.subscriptions.version == version


def test_a_restart_keeps_the_last_known_set_while_the_cluster_is_down(tmp_path: Path) -> None:
    with gateway(tmp_path, OF_FILE) as edge:
        edge.poll({"of-cluster": {"metrics": "cluster."}})
    with gateway(tmp_path, OF_FILE) as edge:
        edge.poll(failure="no broker answers")

        assert edge.in_force() == {"of-cluster": ("cluster.",), "of-file": ("file.",)}


def test_a_cluster_that_refuses_is_forgotten_also_after_a_restart(tmp_path: Path) -> None:
    with gateway(tmp_path, OF_FILE) as edge:
        edge.poll({"of-cluster": {"metrics": "cluster."}})
        edge.poll(refusal="not allowed")
        refused = edge.in_force()
    with gateway(tmp_path, OF_FILE) as edge:
        assert (refused, edge.in_force()) == ({"of-file": ("file.",)}, {"of-file": ("file.",)})


def test_the_file_alone_forgets_the_cluster(tmp_path: Path) -> None:
    with gateway(tmp_path, OF_FILE) as edge:
        edge.poll({"of-cluster": {"metrics": "cluster."}})
    with gateway(tmp_path, OF_FILE, "gateway.subscriptions=file") as edge:
        assert edge.in_force() == {"of-file": ("file.",)}


def test_a_reload_of_the_file_keeps_those_of_the_cluster(tmp_path: Path) -> None:
    file = tmp_path / "odradek.toml"
    file.write_text('[subscriptions.first]\nmetrics = "first."\n')
    with gateway(tmp_path / "data", file=file) as edge:
        edge.poll({"of-cluster": {"metrics": "cluster."}})
        file.write_text('[subscriptions.second]\nmetrics = "second."\n')

        host = edge.thread.host
        again = config_of(tmp_path / "data", edge.thread.broker, file=file)
        edge.thread.call(lambda: host.reloader.reload(lambda: again))

        assert edge.in_force() == {"of-cluster": ("cluster.",), "second": ("second.",)}


def test_brokers_and_the_cluster_id_are_learned(tmp_path: Path) -> None:
    with gateway(tmp_path) as edge:
        edge.poll({}, cluster_id="upstream", nodes=[(1, "broker-1", 9092), (103, "broker-103", 9092)])

        host = edge.thread.host
        assert host.pairs.table.addresses == {1: ("broker-1", 9092), 103: ("broker-103", 9092)}
        assert host.labels.cluster.cluster_id == "upstream"


def test_a_cluster_id_that_is_learned_late_becomes_a_label_of_known_clients(tmp_path: Path) -> None:
    with gateway(tmp_path, "subscriptions.all.metrics=*", "subscriptions.all.interval.ms=100") as edge:
        with WireClient(edge.thread.address) as client:
            assert client.push(bytes.fromhex("0a00")) == ErrorCode.NONE

            def names_of_labels() -> frozenset[bytes]:
                known = edge.thread.host.telemetry.instances()[0].labels
                assert known is not None
                labels = edge.thread.host.plugins.enrichers.labels(known, bytes(16), SAMPLE)
                assert isinstance(labels, EncodedLabels)
                return labels.keys

            before = edge.thread.call(names_of_labels)

            edge.poll({}, cluster_id="upstream")

            after = edge.thread.call(names_of_labels)
        assert after - before == {b"cluster_id", b"cluster.name"}


@pytest.mark.parametrize("error", [ApiError(ErrorCode.KAFKA_STORAGE_ERROR), RuntimeError("a bug")])
def test_a_full_disk_or_a_bug_leaves_the_subscriptions_as_they_are(
    tmp_path: Path, error: Exception, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise error

    with gateway(tmp_path) as edge:
        edge.poll({"a": {"metrics": "a."}})
        with monkeypatch.context() as broken:
            broken.setattr(edge.thread.host.ground.metadata, "put_resource", fail)
            edge.poll({"b": {"metrics": "b."}})
            during = edge.in_force()
        edge.poll({"b": {"metrics": "b."}})

        assert (during, edge.in_force()) == ({"a": ("a.",)}, {"b": ("b.",)})
    assert any("cannot be" in message for message in caplog.messages)
