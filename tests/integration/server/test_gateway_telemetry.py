"""The telemetry of a gateway in its host: subscriptions of the cluster, labels, and faults."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from odradek.client.cluster_watch import Observed
from odradek.gateway.telemetry_settings import GatewayTelemetrySettings, SubscriptionSource
from odradek.programs.config import load_config
from odradek.programs.gateway_telemetry import GatewayTelemetry
from odradek.programs.host import Host
from odradek.programs.reload import reload
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from support.hosts import ThreadedHost, running_host
from support.wire_client import WireClient

OF_FILE = "subscriptions.of-file.metrics=file."
BOTH = GatewayTelemetrySettings(name="edge")


class GatewayHost:
    """A host with the telemetry of a gateway."""

    def __init__(self, settings: GatewayTelemetrySettings = BOTH) -> None:
        self.settings = settings
        self.telemetry: GatewayTelemetry
        self.learned: list[tuple[int, str, int]] = []
        self.thread: ThreadedHost

    def make(self, host: Host) -> None:
        self.telemetry = GatewayTelemetry(host, self.settings, lambda *node: self.learned.append(node))

    def poll(self, subscriptions: Mapping[str, Mapping[str, str]] | None = None, **more: object) -> None:
        """Give the host the result of a poll."""
        state = Observed(subscriptions=subscriptions, **more)  # type: ignore[arg-type]
        self.thread.call(lambda: self.telemetry.polled(state))

    def in_force(self) -> dict[str, tuple[str, ...]]:
        """The metrics of each subscription."""
        by_name = self.thread.host.telemetry.subscriptions.by_name
        return self.thread.call(lambda: {name: each.metrics for name, each in sorted(by_name.items())})


@contextmanager
def gateway(
    data_dir: Path, *overrides: str, settings: GatewayTelemetrySettings = BOTH, file: Path | None = None
) -> Iterator[GatewayHost]:
    found = GatewayHost(settings)
    with running_host(data_dir, *overrides, before_start=found.make, file=file) as thread:
        found.thread = thread
        yield found


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
    settings = GatewayTelemetrySettings(subscriptions=SubscriptionSource.FILE)
    with gateway(tmp_path, OF_FILE, settings=settings) as edge:
        assert edge.in_force() == {"of-file": ("file.",)}


def test_a_reload_of_the_file_keeps_those_of_the_cluster(tmp_path: Path) -> None:
    file = tmp_path / "odradek.toml"
    file.write_text('[subscriptions.first]\nmetrics = "first."\n')
    with gateway(tmp_path / "data", file=file) as edge:
        edge.poll({"of-cluster": {"metrics": "cluster."}})
        file.write_text('[subscriptions.second]\nmetrics = "second."\n')

        edge.thread.call(
            lambda: reload(edge.thread.host, lambda: load_config(file, [f"data.dir={tmp_path / 'data'}"]))
        )

        assert edge.in_force() == {"of-cluster": ("cluster.",), "second": ("second.",)}


def test_brokers_and_the_cluster_id_are_learned(tmp_path: Path) -> None:
    with gateway(tmp_path) as edge:
        edge.poll({}, cluster_id="upstream", nodes=[(1, "broker-1", 9092), (103, "broker-103", 9092)])

        assert edge.learned == [(1, "broker-1", 9092), (103, "broker-103", 9092)]
        assert edge.telemetry.labels.cluster_id == "upstream"


def test_a_cluster_id_that_is_learned_late_becomes_a_label_of_known_clients(tmp_path: Path) -> None:
    with gateway(tmp_path, "subscriptions.all.metrics=*", "subscriptions.all.interval.ms=100") as edge:
        with WireClient(edge.thread.address) as client:
            assert client.push(bytes.fromhex("0a00")) == ErrorCode.NONE
            labels = edge.thread.call(lambda: edge.thread.host.telemetry.instances()[0].labels)

            edge.poll({}, cluster_id="upstream")

            after = edge.thread.call(lambda: edge.thread.host.telemetry.instances()[0].labels)
        assert labels is not None
        assert b"cluster_id" not in labels.keys
        assert after is None  # asked for again with the next push


@pytest.mark.parametrize("error", [ApiError(ErrorCode.KAFKA_STORAGE_ERROR), RuntimeError("a bug")])
def test_a_full_disk_or_a_bug_leaves_the_subscriptions_as_they_are(
    tmp_path: Path, error: Exception, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise error

    with gateway(tmp_path) as edge:
        edge.poll({"a": {"metrics": "a."}})
        with monkeypatch.context() as broken:
            broken.setattr(edge.thread.host.metadata, "put_resource", fail)
            edge.poll({"b": {"metrics": "b."}})
            during = edge.in_force()
        edge.poll({"b": {"metrics": "b."}})

        assert (during, edge.in_force()) == ({"a": ("a.",)}, {"b": ("b.",)})
    assert any("cannot be" in message for message in caplog.messages)
