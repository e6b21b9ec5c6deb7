"""What goes wrong with real clients is told by the host, and by a gateway in front of it."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from odradek.client.admin import AdminClient
from odradek.client.resources import NewTopic
from odradek.client.users import new_credential
from odradek.findings.incidents import (
    FAILED_LOGINS,
    GROUP_ERRORS,
    GROUP_JOINS,
    GROUP_LEAVES,
    LOST,
    THROTTLED,
    TOPIC_REFUSALS,
    UNKNOWN_TOPICS,
)
from odradek.plugin import TelemetryRecord
from odradek.security.scram import ScramMechanism
from odradek.telemetry import goodbyes
from odradek.telemetry.goodbyes import CHECK_MS
from odradek.testing.data_points import DataPoint, data_points
from support.child_process import same_imports
from support.gateways import gateway_of
from support.hosts import ServeProcess, running_host
from support.read_back import read_back
from support.waiting import PATIENCE_S

pytestmark = pytest.mark.ci

MECHANISM = "SCRAM-SHA-256"
LOGINS = 3
JOINS = 3
LIMIT = 10_000


def quota(client_id: str) -> tuple[str, ...]:
    """The settings of a quota for a client id."""
    name = f"quotas.{client_id}"
    return "quota.window.num=3", f"{name}.client-id={client_id}", f"{name}.producer_byte_rate={LIMIT}"


MOST_BYTES = 10_000
SETTINGS = (
    "listeners=PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
    "node.id=1",
    f"sasl.enabled.mechanisms={MECHANISM}",
    "auto.create.topics.enable=false",
    "group.initial.rebalance.delay.ms=0",
    *quota("slowed"),
)


@dataclass
class Told:
    """The records about the clients of one place."""

    place: str
    records: list[TelemetryRecord]

    def of(self, client_id: str, metric: str) -> list[DataPoint]:
        """The data points of a metric of a client."""
        return [
            point
            for record in self.records
            if record.context.client_id == client_id
            for point in data_points(record.payload.data)
            if point.metric == metric
        ]


@contextmanager
def serving_users(directory: Path) -> Iterator[ServeProcess]:
    """A host with a listener for its users."""
    settings = f"data.dir={directory}", *SETTINGS
    program = ServeProcess(*(each for value in settings for each in ("--set", value)))
    try:
        users = [
            new_credential(name, ScramMechanism.SCRAM_SHA_256, "secret", 4096, b"salt")
            for name in ("alice", "gateway")
        ]
        with AdminClient(program.bootstrap) as admin:
            admin.alter_user_scram_credentials(upsertions=users)
            admin.create_topics(
                [NewTopic(name="orders", partitions=1, configs={"max.message.bytes": str(MOST_BYTES)})]
            )
        yield program
    finally:
        program.terminate()


def guarded(host: ServeProcess) -> str:
    """The address of the listener with SASL."""
    return host.ready.split("SASL_PLAINTEXT://")[1].split(" ")[0].split(",")[0]


@contextmanager
def through_gateway(directory: Path, host: ServeProcess) -> Iterator[str]:
    own = directory.parent / "own.properties"
    own.write_text(
        f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={MECHANISM}\n"
        "sasl.username=gateway\nsasl.password=secret\n"
    )
    with gateway_of(
        guarded(host), directory, f"gateway.upstream.command.config={own}", *quota("held")
    ) as program:
        yield program.bootstrap


def settings_of(bootstrap: str, client_id: str, password: str = "secret", **more: Any) -> dict[str, Any]:
    """The settings of a client of librdkafka."""
    return {
        "bootstrap.servers": bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": MECHANISM,
        "sasl.username": "alice",
        "sasl.password": password,
        "client.id": client_id,
        "error_cb": lambda _: None,
        **{name.replace("_", "."): value for name, value in more.items()},
    }


def fail_to_log_in(bootstrap: str) -> None:
    from confluent_kafka import Producer

    failures: list[str] = []
    settings = settings_of(bootstrap, "intruder", "wrong", reconnect_backoff_max_ms=200)
    settings["error_cb"] = lambda error: failures.append(error.name())
    producer = Producer(settings)
    while failures.count("_AUTHENTICATION") < LOGINS:
        producer.poll(20)


def send_too_much(bootstrap: str) -> None:
    from confluent_kafka import KafkaError, Message, Producer

    outcomes: list[KafkaError | None] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        outcomes.append(error)

    producer = Producer(settings_of(bootstrap, "talker"))
    producer.produce("orders", b"v" * 2 * MOST_BYTES, on_delivery=delivered)
    producer.flush(20)
    assert outcomes[0] is not None
    assert outcomes[0].name() == "MSG_SIZE_TOO_LARGE"


def come_and_go(bootstrap: str) -> None:
    import kafka

    for _ in range(JOINS):
        member = kafka.KafkaConsumer("orders", client_id="restless", group_id="billing", **login(bootstrap))
        with closing(member) as consumer:
            deadline_s = time.monotonic() + PATIENCE_S
            while not consumer.assignment() and time.monotonic() < deadline_s:
                consumer.poll(2_000)  # kafka-python 3.0.12 loses an assignment that comes as a poll ends
            assert consumer.assignment()


def login(bootstrap: str) -> dict[str, Any]:
    """The settings of a client of kafka-python."""
    return {
        "bootstrap_servers": bootstrap,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": MECHANISM,
        "sasl_plain_username": "alice",
        "sasl_plain_password": "secret",
    }


def send_over_the_quota(bootstrap: str, client_id: str) -> None:
    from confluent_kafka import Producer

    producer = Producer(settings_of(bootstrap, client_id, linger_ms=0))
    for _ in range(6):
        producer.produce("orders", b"v" * 5_000)
        producer.flush(20)


def ask_for_an_absent_topic(bootstrap: str) -> None:
    import kafka

    producer = kafka.KafkaProducer(client_id="seeker", max_block_ms=2_000, **login(bootstrap))
    with pytest.raises(kafka.errors.KafkaTimeoutError):
        producer.send("absent", b"v").get(5)
    producer.close()


def misbehave(bootstrap: str) -> None:
    """Let all clients do what goes wrong."""
    fail_to_log_in(bootstrap)
    send_too_much(bootstrap)
    ask_for_an_absent_topic(bootstrap)
    send_over_the_quota(bootstrap, "slowed")
    send_over_the_quota(bootstrap, "held")
    come_and_go(bootstrap)


@pytest.fixture(scope="module", params=["host", "gateway"])
def told(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Told:
    """What a host or a gateway has told by its end."""
    pytest.importorskip("confluent_kafka")
    pytest.importorskip("kafka")
    folder = tmp_path_factory.mktemp(request.param)
    with serving_users(folder / "host") as host:
        if request.param == "host":
            misbehave(guarded(host))
        else:
            with through_gateway(folder / "gateway", host) as bootstrap:
                misbehave(bootstrap)
    return Told(request.param, list(read_back(folder / request.param)))


def test_a_wrong_password_in_a_loop(told: Told) -> None:
    points = told.of("intruder", FAILED_LOGINS)

    assert sum(point.value for point in points) >= LOGINS
    assert {tuple(point.attributes.values()) for point in points} == {(MECHANISM, "alice", "127.0.0.1")}


def test_a_message_too_large(told: Told) -> None:
    (point,) = told.of("talker", TOPIC_REFUSALS)

    assert point.value == 1
    assert point.attributes == {"api": "Produce", "error": "MESSAGE_TOO_LARGE", "topic": "orders"}


def test_a_topic_that_is_absent(told: Told) -> None:
    points = told.of("seeker", UNKNOWN_TOPICS)

    assert sum(point.value for point in points) >= 10
    assert {tuple(point.attributes.values()) for point in points} == {("Metadata", "absent")}
    about = [each.context for each in told.records if each.context.client_id == "seeker"]
    assert {each.connection.principal for each in about} == {"User:alice"}


def test_a_quota(told: Told) -> None:
    by_broker = told.of("slowed", THROTTLED)
    by_gateway = told.of("held", THROTTLED)

    known = ("producer_byte_rate", "client-id slowed", str(LIMIT)) if told.place == "host" else ("",) * 3
    quota_of = dict(zip(("quota", "entity", "limit"), known, strict=True))
    assert sum(point.value for point in by_broker) > 500
    assert [point.attributes for point in by_broker[:1]] == [{"api": "Produce", **quota_of}]
    assert [point.attributes["entity"] for point in by_gateway[:1]] == (
        [] if told.place == "host" else ["client-id held"]
    )


def test_a_member_that_comes_and_goes(told: Told) -> None:
    for metric in (GROUP_JOINS, GROUP_LEAVES):
        points = told.of("restless", metric)
        assert sum(point.value for point in points) == JOINS
        assert {point.attributes["group"] for point in points} == {"billing"}
    assert told.of("restless", GROUP_ERRORS) == []


def test_a_consumer_that_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("kafka")
    monkeypatch.setattr(goodbyes, "TELL_MS", CHECK_MS)
    settings = "telemetry.observe=silent", "subscriptions.all.metrics=*", "subscriptions.all.interval.ms=300"
    with running_host(tmp_path, *settings) as host:
        with running_client("kafka_python_producer", host.bootstrap, "writer"):
            pass
        with running_client("kafka_python_consumer", host.bootstrap, "reader") as reader:
            reader.kill()
            reader.wait(10)
        time.sleep(3 * CHECK_MS / 1_000)
    found = Told("host", list(read_back(tmp_path)))

    assert [point.attributes for point in found.of("reader", LOST)] == [{"why": "group"}]
    assert {point.resource["group_id"] for point in found.of("reader", LOST)} == {"of-reader"}
    assert found.of("writer", LOST) == []


@contextmanager
def running_client(kind: str, bootstrap: str, client_id: str) -> Iterator[subprocess.Popen[str]]:
    """A client that works, in a process of its own."""
    command = [sys.executable, "-m", "support.ending_clients", kind, bootstrap, client_id]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=same_imports(), stdin=pipe, stdout=pipe, text=True) as client:
        assert client.stdout is not None
        assert client.stdout.readline() == "works\n"
        yield client
        if client.poll() is None:
            client.communicate("\n", 30)
