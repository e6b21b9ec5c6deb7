"""CreateAcls, DescribeAcls and DeleteAcls, with Kafka's error codes and messages."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from odradek.broker import acls
from odradek.broker.dispatch.routes import CloseConnection
from odradek.metadata.store import MetadataStore
from odradek.plugin.authorizer import AclOperation, AclPermission, PatternType, ResourceType
from odradek.security.acl import AclFilter
from odradek.security.authorizer_settings import AuthorizerSettings
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.create_acls import AclCreation, CreateAclsRequest
from odradek.wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsMatchingAcl, DeleteAclsRequest
from odradek.wire.messages.describe_acls import DescribeAclsRequest
from support.acls import ADMIN, acl, creation, standard_authorizer
from support.broker import BrokerClient, make_broker
from support.failing_connection import FailingConnection

READ_ORDERS = "ALLOW User:alice READ TOPIC orders"
CREATED = (0, "")
UNNAMED = (ErrorCode.UNKNOWN_SERVER_ERROR, None)
FULL = "acls.max allows 2 ACLs: the host has 0, the request adds 3."
LONG = "name.max.length allows 1024 characters: the principal of the ACL has 1025."
ANYTHING: dict[str, Any] = {
    "resource_type_filter": ResourceType.ANY,
    "resource_name_filter": None,
    "pattern_type_filter": PatternType.ANY,
    "principal_filter": None,
    "host_filter": None,
    "operation": AclOperation.ANY,
    "permission_type": AclPermission.ANY,
}


def admin(**settings: Any) -> BrokerClient:
    """A super user, at a broker without ACLs."""
    return BrokerClient(make_broker(authorizer=standard_authorizer(), **settings))


def created(client: BrokerClient, *creations: AclCreation) -> list[tuple[int, str | None]]:
    response = client.send(CreateAclsRequest(creations=list(creations)))
    return [(result.error_code, result.error_message) for result in response.results]


def described(client: BrokerClient, **fields: Any) -> set[str]:
    """What the filter finds, each as resource, caller and verdict."""
    response = client.send(DescribeAclsRequest(**ANYTHING | fields))
    assert (response.error_code, response.error_message) == (0, "")
    return {
        shown(resource.resource_type, resource.resource_name, resource.pattern_type, entry)
        for resource in response.resources
        for entry in resource.acls
    }


def deleted(client: BrokerClient, *filters: dict[str, Any]) -> list[set[str]]:
    """What each filter deleted."""
    made = [DeleteAclsFilter(**ANYTHING | fields) for fields in filters]
    response = client.send(DeleteAclsRequest(filters=made))
    assert {(result.error_code, result.error_message) for result in response.filter_results} <= {(0, None)}
    return [set(map(shown_match, result.matching_acls)) for result in response.filter_results]


def shown_match(found: DeleteAclsMatchingAcl) -> str:
    return shown(found.resource_type, found.resource_name, found.pattern_type, found)


def shown(resource_type: int, name: str, pattern_type: int, entry: Any) -> str:
    star = "*" if pattern_type == PatternType.PREFIXED else ""
    kind, operation = ResourceType(resource_type).name, AclOperation(entry.operation).name
    text = f"{AclPermission(entry.permission_type).name} {entry.principal} {operation} {kind} {name}{star}"
    return text if entry.host == "*" else f"{text} {entry.host}"


def test_acls_apply_from_the_answer_on() -> None:
    client = admin()
    texts = [READ_ORDERS, "DENY User:eve ALL GROUP g* 10.0.0.5", "ALLOW User:* CREATE CLUSTER kafka-cluster"]

    results = created(client, *map(creation, texts))

    assert results == [CREATED] * 3
    assert described(client) == set(texts)
    assert client.broker.acls is not None
    assert acl(READ_ORDERS) in client.broker.acls.index


def test_no_caller_may_do_too_much_while_acls_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acls, "STORED_AT_A_TIME", 1)
    authorizer = standard_authorizer()
    stored = acls.Acls(MetadataStore(":memory:"), authorizer)
    allow, deny = acl("ALLOW User:eve READ TOPIC *"), acl("DENY User:eve READ TOPIC secret")

    def may_read_after_each_step(steps: Iterator[object]) -> set[bool]:
        decide = partial(authorizer.decide, "User:eve", "h", AclOperation.READ, ResourceType.TOPIC, "secret")
        return {decide().is_allowed for _ in steps}

    assert may_read_after_each_step(stored.create_in_steps([allow, deny])) == {False}
    assert len(stored.index) == 2
    assert may_read_after_each_step(stored.delete_in_steps([AclFilter()])) == {False}
    assert len(stored.index) == 0


def test_acls_that_cannot_be_stored_do_not_apply() -> None:
    client = admin()
    created(client, creation(READ_ORDERS))
    full: Any = FailingConnection(client.broker.metadata.connection, "commit", rolls_back=True)
    client.broker.metadata.connection = full

    results = created(client, creation("ALLOW User:eve READ TOPIC orders"))
    removal = client.send(DeleteAclsRequest(filters=[DeleteAclsFilter(**ANYTHING)]))

    assert [code for code, _ in results] == [ErrorCode.KAFKA_STORAGE_ERROR]
    assert [each.error_code for each in removal.filter_results] == [ErrorCode.KAFKA_STORAGE_ERROR]
    assert described(client) == {READ_ORDERS}


def test_acls_survive_a_restart() -> None:
    metadata = MetadataStore(":memory:")
    created(admin(metadata=metadata), creation(READ_ORDERS), creation("DENY User:eve READ TOPIC orders"))

    deleted(admin(metadata=metadata), {"principal_filter": "User:eve"})

    assert described(admin(metadata=metadata)) == {READ_ORDERS}


def test_an_acl_that_is_there_is_stored_once() -> None:
    client = admin()
    same = creation(READ_ORDERS)
    created(client, same)

    results = created(client, same, creation("ALLOW User:b READ TOPIC t"), same)

    assert results == [CREATED] * 3
    assert described(client) == {READ_ORDERS, "ALLOW User:b READ TOPIC t"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"resource_type": 99}, "Invalid resourceType UNKNOWN"),
        ({"resource_pattern_type": 99}, "Invalid patternType UNKNOWN"),
        ({"operation": 99}, "Invalid operation UNKNOWN"),
        ({"permission_type": 99}, "Invalid permissionType UNKNOWN"),
        (
            {"resource_type": ResourceType.CLUSTER},
            "The only valid name for the CLUSTER resource is kafka-cluster",
        ),
        ({"resource_name": ""}, "Invalid empty resource name"),
        ({"host": ""}, "Host pattern cannot be null or empty"),
        (
            {"principal": "alice"},
            "Could not parse principal from `alice` (no colon is present separating the principal type from "
            "the principal name)",
        ),
    ],
)
def test_an_illegal_acl_is_refused_alone(changes: dict[str, object], message: str) -> None:
    client = admin()

    results = created(client, creation(READ_ORDERS, **changes), creation(READ_ORDERS))

    assert results == [(ErrorCode.INVALID_REQUEST, message), CREATED]
    assert described(client) == {READ_ORDERS}


@pytest.mark.parametrize(
    "changes",
    [
        {"resource_type": ResourceType.ANY},
        {"resource_pattern_type": PatternType.ANY},
        {"resource_pattern_type": PatternType.MATCH},
        {"operation": AclOperation.ANY},
        {"permission_type": AclPermission.ANY},
    ],
)
def test_a_value_of_filters_fails_the_request(changes: dict[str, object]) -> None:
    client = admin()

    results = created(client, creation(READ_ORDERS), creation(READ_ORDERS, **changes))

    assert results == [UNNAMED] * 2
    assert described(client) == set()


@pytest.mark.parametrize("field", ["resource_type", "resource_pattern_type", "operation", "permission_type"])
def test_the_code_0_closes_the_connection(field: str) -> None:
    client = admin()

    with pytest.raises(CloseConnection):
        created(client, creation(READ_ORDERS, **{field: 0}))

    assert described(client) == set()


@pytest.mark.parametrize(
    "field", ["resource_type_filter", "pattern_type_filter", "operation", "permission_type"]
)
def test_the_code_0_in_a_filter_closes_the_connection(field: str) -> None:
    client = admin()

    with pytest.raises(CloseConnection):
        described(client, **{field: 0})
    with pytest.raises(CloseConnection):
        deleted(client, {field: 0})


def test_the_code_0_closes_the_connection_of_a_host_without_acls() -> None:
    client = BrokerClient(make_broker())

    with pytest.raises(CloseConnection):
        created(client, creation(READ_ORDERS, operation=0))
    with pytest.raises(CloseConnection):
        described(client, operation=0)
    with pytest.raises(CloseConnection):
        deleted(client, {"operation": 0})


@pytest.mark.parametrize(
    "text",
    [
        "ALLOW User:alice IDEMPOTENT_WRITE TOPIC t",
        "ALLOW User:alice READ TOPIC t localhost",
        "ALLOW : READ TOPIC t",
        "ALLOW User: READ TOPIC t",
        "ALLOW Group:x READ TOPIC t",
        "ALLOW User:a READ TOPIC bad/name!",
        "ALLOW User:a READ CLUSTER kafka-cluster*",
    ],
)
def test_odd_acls_are_stored(text: str) -> None:
    client = admin()

    assert created(client, creation(text)) == [CREATED]
    assert described(client) == {text}


def test_too_many_new_acls_are_refused_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acls, "MAX_CHANGES", 10)
    client = admin()
    there = creation("ALLOW User:a READ TOPIC t0")
    created(client, there)
    new = [creation(f"ALLOW User:a READ TOPIC t{number}") for number in range(1, 12)]

    refused = created(client, there, *new)
    stored = created(client, there, *new[1:])

    too_many = (ErrorCode.POLICY_VIOLATION, "Unable to perform excessively large batch operation.")
    assert set(refused) == {too_many}
    assert set(stored) == {CREATED}
    assert len(described(client)) == 11


def test_the_number_of_acls_is_limited() -> None:
    client = admin(authorizer_settings=AuthorizerSettings(max_acls=2))
    first, second, third = (creation(f"ALLOW User:{name} READ TOPIC t") for name in "abc")

    results = created(client, first, second, first, third)

    assert results == [CREATED, CREATED, CREATED, (ErrorCode.POLICY_VIOLATION, FULL)]
    assert created(client, second) == [CREATED]


@pytest.mark.parametrize("field", ["resource_name", "principal", "host"])
def test_the_texts_of_an_acl_are_limited(field: str) -> None:
    long = "User:" + "x" * 1020

    ((code, message),) = created(admin(), creation(READ_ORDERS, **{field: long}))

    assert code == ErrorCode.POLICY_VIOLATION
    assert message is not None
    assert message.startswith("name.max.length allows 1024 characters")


STORED = [
    READ_ORDERS,
    "ALLOW User:bob ALL TOPIC orders 10.0.0.5",
    "DENY User:bob WRITE TOPIC ord*",
    "ALLOW User:* DESCRIBE TOPIC *",
    "ALLOW User:alice READ GROUP orders",
    "ALLOW User:alice READ TOPIC other",
]
ALICE_GROUP, OTHER = STORED[4], STORED[5]


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({}, STORED),
        ({"resource_type_filter": ResourceType.GROUP}, [ALICE_GROUP]),
        ({"resource_name_filter": "orders"}, [STORED[0], STORED[1], ALICE_GROUP]),
        ({"pattern_type_filter": PatternType.PREFIXED}, [STORED[2]]),
        ({"pattern_type_filter": PatternType.PREFIXED, "resource_name_filter": "orders"}, []),
        ({"pattern_type_filter": PatternType.LITERAL, "resource_name_filter": "*"}, [STORED[3]]),
        (
            {
                "pattern_type_filter": PatternType.MATCH,
                "resource_name_filter": "orders",
                "resource_type_filter": ResourceType.TOPIC,
            },
            STORED[:4],
        ),
        (
            {
                "pattern_type_filter": PatternType.LITERAL,
                "resource_name_filter": "orders",
                "resource_type_filter": ResourceType.TOPIC,
            },
            STORED[:2],
        ),
        ({"pattern_type_filter": PatternType.MATCH}, STORED),
        ({"principal_filter": "User:*"}, [STORED[3]]),
        ({"host_filter": "10.0.0.5"}, [STORED[1]]),
        ({"operation": AclOperation.READ}, [STORED[0], ALICE_GROUP, OTHER]),
        ({"operation": AclOperation.ALL}, [STORED[1]]),
        ({"permission_type": AclPermission.DENY}, [STORED[2]]),
    ],
)
def test_filters_select_as_kafkas(fields: dict[str, Any], found: list[str]) -> None:
    client = admin()
    created(client, *map(creation, STORED))

    assert described(client, **fields) == set(found)
    assert deleted(client, fields) == [set(found)]
    assert described(client) == set(STORED) - set(found)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"resource_type_filter": 99}, "Unknown patternFilter."),
        ({"pattern_type_filter": 99}, "Unknown patternFilter."),
        ({"operation": 99}, "Unknown entryFilter."),
        ({"permission_type": 99}, "Unknown entryFilter."),
    ],
)
def test_an_unknown_code_selects_nothing(fields: dict[str, int], message: str) -> None:
    client = admin()
    created(client, creation(READ_ORDERS))

    response = client.send(DeleteAclsRequest(filters=[DeleteAclsFilter(**ANYTHING | fields)]))

    (result,) = response.filter_results
    assert (result.error_code, result.error_message) == (ErrorCode.INVALID_REQUEST, message)
    assert described(client, **fields) == set()
    assert described(client) == {READ_ORDERS}


def test_two_filters_may_select_the_same_acl() -> None:
    client = admin()
    created(client, creation(READ_ORDERS))

    results = deleted(client, {}, {"principal_filter": "User:nobody"}, {"principal_filter": "User:alice"})

    assert results == [{READ_ORDERS}, set(), {READ_ORDERS}]
    assert described(client) == set()


def test_too_many_acls_are_not_deleted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acls, "MAX_CHANGES", 10)
    client = admin()
    created(client, *(creation(f"ALLOW User:a READ TOPIC t{number}") for number in range(10)))
    created(client, creation(READ_ORDERS))

    response = client.send(DeleteAclsRequest(filters=[DeleteAclsFilter(**ANYTHING)]))

    (result,) = response.filter_results
    assert result.error_code == ErrorCode.INVALID_REQUEST
    assert result.error_message == "Cannot remove more than 10 acls in a single delete operation."
    assert len(described(client)) == 11


def test_callers_without_the_right_on_the_cluster_learn_and_change_nothing() -> None:
    authorizer = standard_authorizer(READ_ORDERS, super_users=["User:admin"])
    client = BrokerClient(make_broker(authorizer=authorizer))

    description = client.send(DescribeAclsRequest(**ANYTHING))
    creations = client.send(CreateAclsRequest(creations=[creation(READ_ORDERS, principal="User:eve")] * 2))
    deletions = client.send(DeleteAclsRequest(filters=[DeleteAclsFilter(**ANYTHING)] * 2))

    refused = (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed.")
    assert (description.error_code, description.error_message, description.resources) == (*refused, [])
    assert [(each.error_code, each.error_message) for each in creations.results] == [refused] * 2
    assert [(each.error_code, each.error_message) for each in deletions.filter_results] == [refused] * 2
    assert list(authorizer.acls.patterns) == [acl(READ_ORDERS).pattern]


@pytest.mark.parametrize(
    ("operation", "may_describe", "may_alter"), [("DESCRIBE", True, False), ("ALTER", True, True)]
)
def test_the_rights_on_the_cluster_are_describe_and_alter(
    operation: str, may_describe: bool, may_alter: bool
) -> None:
    right = f"ALLOW {ADMIN} {operation} CLUSTER kafka-cluster"
    client = BrokerClient(make_broker(authorizer=standard_authorizer(right, super_users=["User:admin"])))

    description = client.send(DescribeAclsRequest(**ANYTHING))
    (result,) = created(client, creation(READ_ORDERS))

    assert (description.error_code == 0) == may_describe
    assert (result[0] == 0) == may_alter
