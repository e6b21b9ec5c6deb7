"""Unmodified clients at a host with ACLs: administrators change them, and the others may do what they say."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from odradek.client.admin import AdminClient
from odradek.client.resources import NewTopic
from odradek.client.users import new_credential
from odradek.security.acl import AclFilter
from odradek.security.scram import ScramMechanism
from support.acls import acl
from support.hosts import ThreadedHost, running_host

USER, PASSWORD, MECHANISM = "alice", "secret", ScramMechanism.SCRAM_SHA_256
LISTENERS = "listeners=PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0"
SETTINGS = ("authorizer.class.name=StandardAuthorizer", "super.users=User:ANONYMOUS")
READ_ORDERS = "ALLOW User:bob READ TOPIC orders"


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreadedHost]:
    """Super users connect without a password, alice with hers."""
    with running_host(tmp_path_factory.mktemp("acls") / "data", LISTENERS, *SETTINGS) as started:
        credential = new_credential(USER, MECHANISM, PASSWORD, 4096, b"salt of alice")
        with AdminClient(started.bootstrap) as admin:
            assert admin.alter_user_scram_credentials(upsertions=[credential]) == {USER: None}
        yield started


def alice(host: ThreadedHost) -> dict[str, Any]:
    """The configuration of librdkafka for alice."""
    return {
        "bootstrap.servers": f"127.0.0.1:{host.host.listeners[1].bound_port}",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": MECHANISM.mechanism_name,
        "sasl.username": USER,
        "sasl.password": PASSWORD,
    }


def allow(host: ThreadedHost, *texts: str) -> None:
    with AdminClient(host.bootstrap) as admin:
        assert set(admin.create_acls([acl(text) for text in texts]).values()) == {None}


def create_topic(host: ThreadedHost, name: str) -> None:
    with AdminClient(host.bootstrap) as admin:
        admin.create_topics([NewTopic(name=name, partitions=1)])


def acls_of(host: ThreadedHost, principal: str) -> list[Any]:
    with AdminClient(host.bootstrap) as admin:
        return admin.describe_acls(AclFilter(principal=principal))


def test_confluent_kafka_administers_acls(host: ThreadedHost) -> None:
    kafka = pytest.importorskip("confluent_kafka.admin")
    client = kafka.AdminClient({"bootstrap.servers": host.bootstrap})
    read, allow = kafka.AclOperation.READ, kafka.AclPermissionType.ALLOW
    orders = (kafka.ResourceType.TOPIC, "orders", kafka.ResourcePatternType.LITERAL, "User:bob", "*")
    binding = kafka.AclBinding(*orders, read, allow)
    matching = kafka.AclBindingFilter(
        kafka.ResourceType.TOPIC, "orders", kafka.ResourcePatternType.MATCH, "User:bob", None, read, allow
    )

    client.create_acls([binding])[binding].result(10)
    stored = acls_of(host, "User:bob")
    described = client.describe_acls(matching).result(10)
    deleted = client.delete_acls([matching])[matching].result(10)

    assert stored == [acl(READ_ORDERS)]
    assert described == [binding]
    assert deleted == [binding]
    assert acls_of(host, "User:bob") == []


def test_confluent_kafka_is_told_what_is_wrong(host: ThreadedHost) -> None:
    kafka = pytest.importorskip("confluent_kafka")
    admin = pytest.importorskip("confluent_kafka.admin")
    client = admin.AdminClient({"bootstrap.servers": host.bootstrap})
    wrong = admin.AclBinding(
        admin.ResourceType.BROKER,
        "another-cluster",
        admin.ResourcePatternType.LITERAL,
        "User:bob",
        "*",
        admin.AclOperation.ALTER,
        admin.AclPermissionType.ALLOW,
    )

    with pytest.raises(kafka.KafkaException) as refusal:
        client.create_acls([wrong])[wrong].result(10)

    assert refusal.value.args[0].code() == kafka.KafkaError.INVALID_REQUEST
    assert refusal.value.args[0].str() == "The only valid name for the CLUSTER resource is kafka-cluster"


def test_kafka_python_administers_acls(host: ThreadedHost) -> None:
    kafka = pytest.importorskip("kafka.admin")
    client = kafka.KafkaAdminClient(bootstrap_servers=host.bootstrap)
    pattern = kafka.ResourcePattern(kafka.ResourceType.TOPIC, "payments")
    made = kafka.ACL("User:carol", "*", kafka.ACLOperation.WRITE, kafka.ACLPermissionType.ALLOW, pattern)
    wanted = kafka.ACLFilter("User:carol", None, kafka.ACLOperation.ANY, kafka.ACLPermissionType.ANY, pattern)

    created = client.create_acls([made])
    stored = acls_of(host, "User:carol")
    described, _ = client.describe_acls(wanted)
    ((_, deleted, _),) = client.delete_acls([wanted])
    client.close()

    assert created["failed"] == []
    assert stored == [acl("ALLOW User:carol WRITE TOPIC payments")]
    assert described == [made]
    assert deleted == [made]
    assert acls_of(host, "User:carol") == []


def test_librdkafka_produces_after_it_is_allowed_to(host: ThreadedHost) -> None:
    kafka = pytest.importorskip("confluent_kafka")
    create_topic(host, "written")
    errors: list[Any] = []

    def send() -> int:
        producer = kafka.Producer(alice(host))
        producer.produce("written", b"value", on_delivery=lambda error, _: errors.append(error))
        return int(producer.flush(10))

    left_refused = send()
    allow(host, "ALLOW User:alice WRITE TOPIC writ*")
    left = send()

    refusal, success = errors
    assert (left_refused, left) == (0, 0)
    assert refusal.code() == kafka.KafkaError.TOPIC_AUTHORIZATION_FAILED
    assert success is None


def test_kafka_python_is_refused_with_the_names_of_the_topics(host: ThreadedHost) -> None:
    kafka = pytest.importorskip("kafka")
    errors = pytest.importorskip("kafka.errors")
    create_topic(host, "secret")
    producer = kafka.KafkaProducer(
        bootstrap_servers=alice(host)["bootstrap.servers"],
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism=MECHANISM.mechanism_name,
        sasl_plain_username=USER,
        sasl_plain_password=PASSWORD,
        max_block_ms=5_000,
    )

    with pytest.raises((errors.TopicAuthorizationFailedError, errors.KafkaTimeoutError)):
        producer.send("secret", b"value").get(10)
    producer.close()


def test_aiokafka_is_refused(host: ThreadedHost) -> None:
    aiokafka = pytest.importorskip("aiokafka")
    errors = pytest.importorskip("aiokafka.errors")
    create_topic(host, "hidden")

    async def send() -> None:
        async with aiokafka.AIOKafkaProducer(
            bootstrap_servers=alice(host)["bootstrap.servers"],
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism=MECHANISM.mechanism_name,
            sasl_plain_username=USER,
            sasl_plain_password=PASSWORD,
        ) as producer:
            await producer.send_and_wait("hidden", b"value")

    with pytest.raises(errors.TopicAuthorizationFailedError):
        asyncio.run(send())


def test_the_pipeline_needs_to_read_the_telemetry_topic_and_nothing_else(host: ThreadedHost) -> None:
    topic = pytest.importorskip("odradek_spark.source.topic")
    options = pytest.importorskip("odradek_spark.source.options")
    create_topic(host, "telemetry")
    producer = pytest.importorskip("confluent_kafka").Producer({"bootstrap.servers": host.bootstrap})
    producer.produce("telemetry", b"push")
    producer.flush(10)
    wanted = options.ReadOptions(client=alice(host), topic="telemetry")

    def read() -> list[Any]:
        with closing(topic.TopicReader(wanted)) as reader:
            marks = reader.watermarks(reader.partitions())
            ranges = [topic.OffsetRange(number, *between) for number, between in marks.items()]
            return [record.value for each in ranges for chunk in reader.read(each) for record in chunk]

    with pytest.raises(topic.TopicError, match="Topic authorization failed"):
        read()
    allow(host, "ALLOW User:alice READ TOPIC telemetry")

    assert read() == [b"push"]
