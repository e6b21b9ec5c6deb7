"""Hosts whose telemetry topic is on a cluster; the cluster is a third host."""

from __future__ import annotations

import contextlib
import logging
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from confluent_kafka import Message, Producer
from contrib.capture.ports import free_port

from odradek.cli.main import run
from odradek.hosting.cluster_topic import ClusterTopic
from odradek.testing.host_thread import HostThread
from odradek.topic import decode_record
from odradek.wire.error_code import ErrorCode
from support.forwarding import FLEET, create_topic, forwarding
from support.gateways import gateway_of
from support.hosts import EVERYTHING, running_host, serving
from support.kafka_export import read
from support.pushers import pushing
from support.spooling import FarSide, name_of, names, payload, push_all
from support.waiting import wait_until
from support.wire_client import WireClient

pytestmark = pytest.mark.ci

TOPIC = "__client_telemetry"
TABLE = "plugins.kafka.telemetry"
THROTTLED = int(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
PATIENCE_S = 60.0


def durable(bootstrap: str, *overrides: str) -> tuple[str, ...]:
    """The settings of a host that writes to a cluster."""
    servers = f"{TABLE}.bootstrap.servers={bootstrap}"
    quick = f"{TABLE}.client.reconnect.backoff.max.ms=200"
    return (*EVERYTHING, "telemetry.durability=kafka", servers, quick, *overrides)


def topic_of(host: HostThread) -> ClusterTopic:
    assert host.host.pushes.cluster_topic is not None
    return host.host.pushes.cluster_topic


def assert_balanced(host: HostThread) -> None:
    """The accepted pushes and the goodbyes of clients are those that the cluster has acknowledged."""
    accounts, writer = (
        [host.host.telemetry.accounts, host.host.pushes.goodbyes.accounts],
        topic_of(host).writer,
    )
    assert all(each.balanced for each in accounts), accounts
    assert sum(each.appended + each.empty for each in accounts) == writer.acknowledged, (accounts, writer)
    assert sum(each.waiting for each in accounts) == len(writer.waiting), (accounts, writer)


@contextlib.contextmanager
def edge(data_dir: Path, bootstrap: str, *overrides: str) -> Iterator[HostThread]:
    """A host that writes to a cluster; its accounts are balanced at the end."""
    with running_host(data_dir, *durable(bootstrap, *overrides)) as host:
        yield host
        host.call(lambda: assert_balanced(host))


def pushes_of(messages: list[Message]) -> list[str]:
    return [name_of(message.value() or b"") for message in messages]


def test_real_clients_of_two_hosts_are_in_one_topic(tmp_path: Path) -> None:
    """Keys, headers and format are those of the telemetry topic of a host; the labels are set."""
    with (
        running_host(tmp_path / "cluster") as cluster,
        edge(tmp_path / "a", cluster.bootstrap, "node.id=1") as one,
        edge(tmp_path / "b", cluster.bootstrap, "node.id=2") as two,
    ):
        producers = [Producer({"bootstrap.servers": host.bootstrap}) for host in (one, two)]
        for producer in producers:
            producer.produce("orders", b"1")
            assert producer.flush(PATIENCE_S) == 0
        by_node: Counter[int] = Counter()

        def both() -> bool:
            (message,) = read(cluster.bootstrap, TOPIC, 1, lambda each: node_of(each) not in by_node)
            by_node[node_of(message)] += 1
            record = decode_record(message.key() or b"", message.value() or b"", message.headers() or [])
            assert record.context.connection.client_software_name == "confluent-kafka-python"
            assert record.labeled
            assert record.origin is None
            return len(by_node) == 2

        wait_until(both, lambda: by_node, PATIENCE_S)
        del producers, producer
        internal = [each.host.broker.topics.named(TOPIC) for each in (one, two)]

    assert internal == [None, None]


def node_of(message: Message) -> int:
    headers = dict(message.headers() or [])
    return int(headers["broker_id"] or b"")


def test_a_cluster_that_goes_away_and_comes_back(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    address = f"127.0.0.1:{free_port()}"
    with edge(tmp_path / "edge", address, "telemetry.acknowledge.timeout.ms=5000") as host:
        assert set(push_all(host, range(10))) == {THROTTLED}
        assert topic_of(host).writer.in_flight <= 2
        with running_host(tmp_path / "cluster", f"listeners=PLAINTEXT://{address}"):
            accepted = [range(number, number + 1) for number in range(10, 10_000)]
            begun = next(each.start for each in accepted if wait_pushed(host, each) == 0)
            assert push_all(host, range(begun + 1, begun + 51)) == [0] * 50
            wanted = names(range(begun, begun + 51))
            found = pushes_of(read(address, TOPIC, 51, lambda each: name_of(each.value() or b"") in wanted))
        assert set(push_all(host, range(3))) == {THROTTLED}
        reasons = dict(topic_of(host).writer.refused)

    assert set(found) == set(wanted)
    assert reasons["unavailable"] >= 9
    lines = [each.getMessage() for each in caplog.records if each.name.endswith("cluster_writer")]
    assert [line[:32] for line in lines] == [
        "the cluster acknowledges no push",
        "the cluster acknowledges pushes ",
        "the cluster acknowledges no push",
    ]


def wait_pushed(host: HostThread, numbers: range) -> int:
    """Push until the cluster is tried again; the error code."""
    (code,) = push_all(host, numbers)
    return code


def test_receivers_get_a_push_after_its_acknowledgment(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    with running_host(tmp_path / "cluster") as cluster:
        address = cluster.bootstrap
        with edge(tmp_path / "edge", address, "plugins.stdout.enabled=true") as host:
            assert push_all(host, range(3)) == [0] * 3
            stats = {each.name: each.exported for each in host.host.receivers.stats()}
            assert stats == {"stdout": 3}


def test_a_stop_gives_up_the_pushes_in_flight_in_time(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with running_host(tmp_path / "cluster") as cluster:
        address = cluster.bootstrap
    settings = durable(address, "telemetry.acknowledge.timeout.ms=60000", "shutdown.timeout.ms=300")
    with ThreadPoolExecutor(1) as pool:
        with running_host(tmp_path / "edge", *settings) as host:
            pushed = pool.submit(push_all, host, range(1))
            wait_until(lambda: topic_of(host).writer.in_flight == 1, "no push is in flight")
        assert isinstance(pushed.exception(PATIENCE_S), OSError)  # closed: the client pushes again elsewhere

    assert topic_of(host).writer.refused == {"stopped": 1}
    assert host.host.telemetry.accounts.balanced
    assert "the cluster has not acknowledged all pushes" in caplog.messages


def test_forwarders_beside_the_topic_get_what_the_hosts_accepted(tmp_path: Path) -> None:
    far_side = FarSide()
    named = f"telemetry.topic.name={FLEET}"
    with running_host(tmp_path / "cluster") as cluster:
        create_topic(cluster.bootstrap)
        with (
            edge(tmp_path / "a", cluster.bootstrap, named) as one,
            edge(tmp_path / "b", cluster.bootstrap, named) as two,
            forwarding(cluster.bootstrap, far_side),
        ):
            assert push_all(one, range(20)) + push_all(two, range(20, 40)) == [0] * 40
            wait_until(lambda: len(far_side.names) >= 40, lambda: far_side.names, PATIENCE_S)

    assert sorted(far_side.names) == sorted(names(range(40)))
    assert {record.origin.partition for record in far_side.taken if record.origin} == {0, 1, 2, 3}


def test_a_gateway_writes_to_its_cluster(tmp_path: Path) -> None:
    with running_host(tmp_path / "cluster", "telemetry.durability=memory") as cluster:
        settings = durable(cluster.bootstrap, "gateway.name=edge")
        with gateway_of(cluster.bootstrap, tmp_path / "edge", *settings) as gateway:
            address, _, port = gateway.bootstrap.partition(":")
            with WireClient((address, int(port))) as client:
                client.introduce()
                assert client.push(payload(1)) == 0
            (message,) = read(cluster.bootstrap, TOPIC, 1)

    assert dict(message.headers() or [])["broker_id"] == b"-1"
    assert pushes_of([message]) == ["push.1"]


@pytest.mark.parametrize(
    ("overrides", "problem"),
    [
        (
            (),
            'telemetry.durability: kafka needs a plugin that writes to a cluster: set plugins.kafka "',
        ),
        (
            (f"{TABLE}.bootstrap.servers=127.0.0.1:9", "plugins.kafka.bootstrap.servers=127.0.0.1:9"),
            "plugins.kafka: forwarders run beside the topic",
        ),
        ((f"{TABLE}.bootstrap.servers=127.0.0.1:9", f"{TABLE}.client.acks=1"), f"{TABLE}.client.acks"),
    ],
)
@pytest.mark.parametrize("check", [True, False])
def test_a_start_that_would_lose_pushes_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], overrides: tuple[str, ...], problem: str, check: bool
) -> None:
    settings = (f"data.dir={tmp_path}", "telemetry.durability=kafka", *overrides)
    arguments = [word for each in settings for word in ("--set", each)]

    assert run(["serve", *(["--check"] if check else []), *arguments]) == 2
    assert problem in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_a_host_killed_under_load_loses_nothing_that_was_accepted(tmp_path: Path) -> None:
    """Only a push whose answer did not arrive may be in the topic without having been accepted."""
    threads = 4
    with running_host(tmp_path / "cluster", "telemetry.topic.partitions=2") as cluster:
        settings = [word for each in durable(cluster.bootstrap) for word in ("--set", each)]
        with (
            serving(tmp_path / "a", *settings) as one,
            serving(tmp_path / "b", *settings, "--set", "node.id=2") as two,
            pushing(threads) as first,
            pushing(threads) as second,
        ):
            first.bootstrap, second.bootstrap = one.bootstrap, two.bootstrap
            wait_until(lambda: len(first.names()) > 200, first.names, PATIENCE_S)
            first.bootstrap = None
            one.kill()
            more = len(second.names()) + 200
            wait_until(lambda: len(second.names()) > more, second.names, PATIENCE_S)
            second.stop()
            first.stop()
        accepted = Counter(first.names()) + Counter(second.names())
        found = Counter(filter(None, pushes_of(everything(cluster))))  # goodbyes have no name

    assert first.refused == second.refused == Counter()
    assert accepted - found == Counter()  # the numbers of both begin at 0: what both accepted is there twice
    assert (found - accepted).total() <= threads, found - accepted


def everything(cluster: HostThread) -> list[Message]:
    """All records of the topic."""
    spool = cluster.host.spool
    assert spool is not None
    return read(cluster.bootstrap, TOPIC, cluster.call(lambda: sum(spool.ends().values())))
