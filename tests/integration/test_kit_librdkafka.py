"""KIP-714 in librdkafka: 2.5.3, the oldest version with working telemetry, and the newest.

Tests of client bugs or open questions cite the issue that reported them.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from odradek.testing import Push, RunningHost
from odradek.wire.compression import Codec
from odradek.wire.error_code import ErrorCode

pytest.importorskip("confluent_kafka")
pytestmark = [pytest.mark.timeout(90), pytest.mark.ci]
PROGRAM = Path(__file__).with_name("telemetry_program.py")
CREATED = "org.apache.kafka.producer.connection.creation.total"
INTERVAL_MS = 200
PATIENCE_S = 20
"""For steps that take milliseconds on an idle machine."""


class Client:
    """A running program with a producer."""

    def __init__(self, python: str, host: RunningHost, *settings: str) -> None:
        self.host = host
        self.process = subprocess.Popen(
            [python, str(PROGRAM), host.bootstrap, "me", *settings],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def end(self) -> str:
        """Let it flush and end; return its output."""
        printed, _ = self.process.communicate(timeout=30)
        assert self.process.returncode == 0, printed
        return printed

    def first_push(self, after: Push | None = None) -> Push:
        """The next accepted push with metrics."""
        return self.host.telemetry.wait_for_push(client_id="me", timeout_s=PATIENCE_S, after=after)


Start = Callable[..., Client]


@pytest.fixture(params=["newest", pytest.param("2.5.3", marks=pytest.mark.slow)])
def start(request: pytest.FixtureRequest, odradek_host: RunningHost) -> Iterator[Start]:
    """Starts clients of one version of librdkafka; kills those that the test does not end."""
    python = sys.executable if request.param == "newest" else request.getfixturevalue("old_librdkafka")
    with ExitStack() as started:

        def start(*settings: str) -> Client:
            client = Client(python, odradek_host, *settings)
            started.enter_context(client.process)
            started.callback(client.process.kill)
            return client

        yield start


@pytest.fixture
def host(odradek_host: RunningHost) -> RunningHost:
    """A host that subscribes to all metrics."""
    odradek_host.subscribe("org.apache.kafka.", INTERVAL_MS)
    return odradek_host


def gets(host: RunningHost) -> int:
    """The number of times that the client asked for its subscription."""
    return len(host.requests.of("GetTelemetrySubscriptions", client_id="me"))


@contextmanager
def asked_again(host: RunningHost) -> Iterator[None]:
    """The action makes the client ask for its subscription once more."""
    before = gets(host)
    yield
    host.requests.wait_for(
        "GetTelemetrySubscriptions", client_id="me", count=before + 1, timeout_s=PATIENCE_S
    )


def test_a_client_asks_for_its_subscription_once_and_pushes_with_its_id(
    host: RunningHost, start: Start
) -> None:
    client = start()

    push = client.first_push()

    assert gets(host) == 1
    assert push.request.client_instance_id in {
        instance.client_instance_id for instance in host.call(host.host.telemetry.instances)
    }
    assert push.request.compression_type == Codec.ZSTD
    assert push.context.connection.client_software_name == "confluent-kafka-python"


def test_pushes_follow_the_interval(host: RunningHost, start: Start) -> None:
    first = start().first_push()

    host.telemetry.wait_for_push(after=first, timeout_s=PATIENCE_S)
    host.requests.wait_for("PushTelemetry", count=5, timeout_s=PATIENCE_S)

    pushes = host.telemetry.pushes
    assert {push.error for push in pushes} == {ErrorCode.NONE}
    assert {push.request.client_instance_id for push in pushes} == {first.request.client_instance_id}
    assert gets(host) == 1


def test_a_requested_metric_has_a_value(host: RunningHost, start: Start) -> None:
    start()

    (point,) = host.telemetry.wait_for(CREATED, client_id="me", timeout_s=PATIENCE_S)

    assert (point.kind, point.delta, point.monotonic) == ("sum", True, True)
    # KAFKA-15865, https://github.com/apache/kafka/pull/14924: clients do not push their client id
    assert "client_id" not in point.labels


def test_a_changed_subscription_is_fetched_after_an_unknown_id(host: RunningHost, start: Start) -> None:
    client = start()
    first = client.first_push()

    with asked_again(host):
        host.subscribe("org.apache.kafka.producer.connection.creation.", INTERVAL_MS)
    refused = host.telemetry.wait_for_push(error="UNKNOWN_SUBSCRIPTION_ID", after=first, timeout_s=PATIENCE_S)
    second = client.first_push(after=refused)

    assert second.request.client_instance_id == first.request.client_instance_id
    assert second.request.subscription_id != first.request.subscription_id
    assert {name.rpartition(".")[0] for name in second.metrics} == {CREATED.rpartition(".")[0]}


def test_a_changed_subscription_leaves_no_gap_in_the_deltas(host: RunningHost, start: Start) -> None:
    client = start()
    first = client.first_push()

    host.subscribe("org.apache.kafka.producer.", INTERVAL_MS)
    refused = host.telemetry.wait_for_push(error="UNKNOWN_SUBSCRIPTION_ID", after=first, timeout_s=PATIENCE_S)
    second = client.first_push(after=refused)

    pushes = [push for push in host.telemetry.pushes if first.number <= push.number <= second.number]
    times = [
        (point.raw.start_time_unix_nano, point.raw.time_unix_nano)
        for push in pushes
        for point in push.points
        if point.metric == CREATED
    ]
    assert [end for _, end in times[:-1]] == [begin for begin, _ in times[1:]]
    assert len(times) == len(pushes) >= 3


def test_an_unknown_subscription_id_makes_the_client_ask_again(host: RunningHost, start: Start) -> None:
    client = start()
    first = client.first_push()

    with asked_again(host):
        host.fault("PushTelemetry", error="UNKNOWN_SUBSCRIPTION_ID").wait(PATIENCE_S)
    refused = host.telemetry.wait_for_push(error="UNKNOWN_SUBSCRIPTION_ID", after=first, timeout_s=PATIENCE_S)

    assert client.first_push(after=refused).metrics


def test_a_throttled_push_is_followed_by_another(host: RunningHost, start: Start) -> None:
    client = start()
    first = client.first_push()

    host.fault("PushTelemetry", error="THROTTLING_QUOTA_EXCEEDED").wait(PATIENCE_S)

    refused = host.telemetry.wait_for_push(
        error="THROTTLING_QUOTA_EXCEEDED", after=first, timeout_s=PATIENCE_S
    )
    assert client.first_push(after=refused).metrics


def test_librdkafka_4507_too_large_does_not_end_telemetry(host: RunningHost, start: Start) -> None:
    """https://github.com/confluentinc/librdkafka/pull/4507: "TODO: what to do"."""
    client = start()
    first = client.first_push()

    host.fault("PushTelemetry", error="TELEMETRY_TOO_LARGE", times=2).wait(PATIENCE_S, times=2)

    refused = host.telemetry.wait_for_push(error="TELEMETRY_TOO_LARGE", after=first, timeout_s=PATIENCE_S)
    assert client.first_push(after=refused).metrics


def test_invalid_record_ends_telemetry(host: RunningHost, start: Start) -> None:
    """KAFKA-21076, https://github.com/apache/kafka/pull/23444: the reason why the host returns it only for
    payloads that are not OTLP.
    """
    client = start()
    client.first_push()

    fault = host.fault("PushTelemetry", error="INVALID_RECORD", times=None)
    fault.wait(PATIENCE_S)
    time.sleep(3 * INTERVAL_MS / 1000)  # there is no event to wait for: the test shows that no push comes
    client.end()

    assert fault.used == 1


def test_a_closing_client_pushes_once_more(host: RunningHost, start: Start) -> None:
    client = start()
    first = client.first_push()
    # It does not push once more while it waits for the answer to a push: the next is a minute away.
    with asked_again(host):
        host.subscribe("org.apache.kafka.", 60_000)
    produced = len(host.requests.of("Produce", client_id="me"))
    host.requests.wait_for("Produce", client_id="me", count=produced + 2, timeout_s=PATIENCE_S)

    client.end()

    last = host.telemetry.wait_for_push(terminating=True, after=first, timeout_s=PATIENCE_S)
    assert last.number == len(host.telemetry.pushes)
    assert last.metrics


def test_librdkafka_4833_a_subscription_without_matching_metrics_is_harmless(
    odradek_host: RunningHost, start: Start
) -> None:
    """https://github.com/confluentinc/librdkafka/issues/4833: 2.5.0 aborted; and
    https://github.com/confluentinc/confluent-kafka-python/issues/2185: 2.8.0 pushed null.
    """
    odradek_host.subscribe("org.apache.kafka.nobody.has.this.", INTERVAL_MS)
    client = start()

    odradek_host.requests.wait_for("PushTelemetry", client_id="me", count=3, timeout_s=PATIENCE_S)
    client.end()

    assert {push.error for push in odradek_host.telemetry.pushes} == {ErrorCode.NONE}
    assert {tuple(push.metrics) for push in odradek_host.telemetry.pushes} == {()}


def test_confluent_kafka_dotnet_2399_the_assigned_id_is_logged_as_a_change(
    host: RunningHost, start: Start
) -> None:
    """https://github.com/confluentinc/confluent-kafka-dotnet/issues/2399: a line that looks like an error."""
    client = start()
    client.first_push()

    printed = client.end()

    assert printed.count("Telemetry client instance id changed") == 1


def test_a_connection_lost_during_a_push_does_not_end_telemetry(host: RunningHost, start: Start) -> None:
    client = start()
    first = client.first_push()

    host.fault("PushTelemetry", drop="after").wait(PATIENCE_S)

    assert client.first_push(after=first).metrics


def test_a_client_without_a_subscription_pushes_no_metrics(odradek_host: RunningHost, start: Start) -> None:
    client = start()

    odradek_host.requests.wait_for("GetTelemetrySubscriptions", client_id="me", timeout_s=PATIENCE_S)
    client.end()

    assert [push for push in odradek_host.telemetry.pushes if push.metrics] == []


def test_two_consumers_of_the_new_protocol_share_soon(odradek_host: RunningHost) -> None:
    from confluent_kafka import Consumer

    odradek_host.topics.create("t", 2)
    settings = {"bootstrap.servers": odradek_host.bootstrap, "group.id": "g", "group.protocol": "consumer"}
    consumers = [Consumer(settings) for _ in range(2)]
    first, second = consumers
    most = 100

    def rounds(shares: tuple[int, int]) -> int:
        """The polls of 10 ms until each has so many partitions."""
        for number in range(most):
            if tuple(len(each.assignment()) for each in consumers) == shares:
                return number
            for each in consumers:
                each.poll(0.01)
        return most

    try:
        first.subscribe(["t"])
        alone = rounds((2, 0))
        second.subscribe(["t"])
        shared = rounds((1, 1))
    finally:
        for each in consumers:
            each.close()

    assert max(alone, shared) < most
