"""TLS, users and ACLs of the test kit, with a real client."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, Producer

from odradek import testing
from odradek.plugin.authorizer import AclOperation, AclPermission, PatternType, ResourceType
from odradek.testing.host_security import acls_of
from odradek.testing.running_host import RunningHost

USERS = {"alice": "alice-secret", "bob": "bob-secret"}


def produced(host: RunningHost, user: str | None = None, **more: str) -> str | None:
    """Produce a record; the name of the error, None if the host has it."""
    outcome: list[KafkaError | None] = []
    settings = {**host.client(user), "message.timeout.ms": "5000", **more}
    producer = Producer(settings, logger=None)
    producer.produce("orders", b"value", on_delivery=lambda error, _: outcome.append(error))
    producer.flush(10)
    (error,) = outcome
    return None if error is None else str(error.name())


@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.parametrize("users", [None, USERS])
def test_a_client_connects_with_the_settings_of_the_host(tls: bool, users: dict[str, str] | None) -> None:
    with testing.host(tls=tls, users=users) as host:
        host.topics.create("orders")
        protocol = host.client()["security.protocol"]
        error = produced(host)

    assert error is None
    assert protocol == ("SASL_" if users else "") + ("SSL" if tls else "PLAINTEXT")


def test_a_user_may_do_what_the_acls_say() -> None:
    with testing.host(users=USERS, acls=["alice WRITE topic:ord*"]) as host:
        host.topics.create("orders")
        before = produced(host, "alice"), produced(host, "bob")
        host.allow("bob WRITE,DESCRIBE topic:orders")
        after = produced(host, "bob")

    assert before == (None, "TOPIC_AUTHORIZATION_FAILED")
    assert after is None


def test_users_and_acls_survive_a_restart() -> None:
    with testing.host(tls=True, users=USERS, acls=["alice WRITE topic:orders"]) as host:
        host.topics.create("orders")
        host.restart()
        errors = produced(host, "alice"), produced(host, "bob")

    assert errors == (None, "TOPIC_AUTHORIZATION_FAILED")


def test_a_text_is_an_acl_for_each_operation() -> None:
    first, second = acls_of("User:alice DENY READ,WRITE transactional-id:pay*")
    (cluster,) = acls_of("bob CREATE cluster")

    assert first.pattern == (ResourceType.TRANSACTIONAL_ID, "pay", PatternType.PREFIXED)
    assert first.entry == ("User:alice", "*", AclOperation.READ, AclPermission.DENY)
    assert second.entry.operation is AclOperation.WRITE
    assert cluster.pattern == (ResourceType.CLUSTER, "kafka-cluster", PatternType.LITERAL)
    assert cluster.entry.permission is AclPermission.ALLOW


@pytest.mark.parametrize(
    "text",
    ["", "alice READ", "alice READ topic", "alice read topic:t", "alice FLY topic:t", "a READ cluster:x"],
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected an ACL like"):
        acls_of(text)


def test_a_host_without_users_or_acls_says_so() -> None:
    with testing.host() as host:
        with pytest.raises(ValueError, match="no user 'alice'"):
            host.client("alice")
        with pytest.raises(ValueError, match="this host allows everything"):
            host.allow("alice READ topic:t")
