"""Scenarios of requests about ACLs, to a node without an authorizer and to one with Kafka's own."""

from __future__ import annotations

from dataclasses import replace

from contrib.capture.golden import Recorder, Scenario
from contrib.capture.host_requests import request

from odradek.plugin.authorizer import AclOperation, AclPermission, PatternType, ResourceType
from odradek.wire.messages.create_acls import AclCreation, CreateAclsRequest
from odradek.wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from odradek.wire.messages.describe_acls import DescribeAclsRequest

ANY, TOPIC, READ, ALLOW = 1, 2, 3, 3
AUTHORIZER = (
    "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users=User:ANONYMOUS",
)
"""Settings of the node with an authorizer; the recorder is its super user."""


def without_authorizer(version: int) -> Scenario:
    def scenario(say: Recorder) -> None:
        everything = DescribeAclsRequest(
            resource_type_filter=ANY,
            resource_name_filter=None,
            pattern_type_filter=ANY,
            principal_filter=None,
            host_filter=None,
            operation=ANY,
            permission_type=ANY,
        )
        say.ask("describe all", request(everything, version))
        acl = AclCreation(
            resource_type=TOPIC,
            resource_name="t",
            principal="User:a",
            host="*",
            operation=READ,
            permission_type=ALLOW,
        )
        wrong = AclCreation(resource_type=99, principal="a", operation=99, permission_type=99)
        for label, creations in {"two": [acl, acl], "a wrong one": [wrong], "none": []}.items():
            say.ask(f"create {label}", request(CreateAclsRequest(creations=creations), version))
        any_acl = DeleteAclsFilter(
            resource_type_filter=ANY, pattern_type_filter=ANY, operation=ANY, permission_type=ANY
        )
        for label, filters in {"two filters": [any_acl, any_acl], "no filter": []}.items():
            say.ask(f"delete by {label}", request(DeleteAclsRequest(filters=filters), version))

    return scenario


SCENARIOS: dict[str, tuple[str, Scenario]] = {
    f"describe_acls_v{version}_disabled": ("ACLs without an authorizer", without_authorizer(version))
    for version in (1, 2, 3)
}


OF_ALICE = AclCreation(
    resource_type=TOPIC,
    resource_name="orders",
    principal="User:alice",
    host="*",
    operation=READ,
    permission_type=ALLOW,
)
PREFIXED = replace(OF_ALICE, resource_name="ord", resource_pattern_type=PatternType.PREFIXED)
WILDCARD = replace(OF_ALICE, resource_name="*", operation=AclOperation.DESCRIBE)
OF_GROUP = replace(OF_ALICE, resource_type=ResourceType.GROUP, host="10.0.0.5")
DENIAL = replace(OF_ALICE, principal="User:*", permission_type=AclPermission.DENY, operation=AclOperation.ALL)
STORED = [OF_ALICE, PREFIXED, WILDCARD, OF_GROUP, DENIAL]
EVERY = {
    "resource_type_filter": ANY,
    "resource_name_filter": None,
    "pattern_type_filter": ANY,
    "principal_filter": None,
    "host_filter": None,
    "operation": ANY,
    "permission_type": ANY,
}
FILTERS: dict[str, dict[str, object]] = {
    "all": {},
    "groups": {"resource_type_filter": ResourceType.GROUP},
    "that name": {"resource_name_filter": "orders"},
    "prefixed": {"pattern_type_filter": PatternType.PREFIXED},
    "a prefix by name": {"pattern_type_filter": PatternType.PREFIXED, "resource_name_filter": "ord"},
    "no such prefix": {"pattern_type_filter": PatternType.PREFIXED, "resource_name_filter": "orders"},
    "the wildcard": {"pattern_type_filter": PatternType.LITERAL, "resource_name_filter": "*"},
    "patterns that match": {"pattern_type_filter": PatternType.MATCH, "resource_name_filter": "orders"},
    "patterns that match *": {"pattern_type_filter": PatternType.MATCH, "resource_name_filter": "*"},
    "any match": {"pattern_type_filter": PatternType.MATCH},
    "a principal": {"principal_filter": "User:alice"},
    "everybody": {"principal_filter": "User:*"},
    "an address": {"host_filter": "10.0.0.5"},
    "read": {"operation": READ},
    "the operation all": {"operation": AclOperation.ALL},
    "denials": {"permission_type": AclPermission.DENY},
    "an empty name": {"resource_name_filter": ""},
    "type 99": {"resource_type_filter": 99},
    "pattern type 99": {"pattern_type_filter": 99},
    "operation 99": {"operation": 99},
    "permission 99": {"permission_type": 99},
}
REFUSED: dict[str, dict[str, object]] = {
    "type 99": {"resource_type": 99},
    "pattern type 99": {"resource_pattern_type": 99},
    "operation 99": {"operation": 99},
    "permission 99": {"permission_type": 99},
    "another cluster": {"resource_type": ResourceType.CLUSTER, "resource_name": "c"},
    "a cluster without a name": {"resource_type": ResourceType.CLUSTER, "resource_name": ""},
    "no name": {"resource_name": ""},
    "no name and type 99": {"resource_name": "", "resource_type": 99},
    "no name and operation 99": {"resource_name": "", "operation": 99},
    "no colon": {"principal": "alice"},
    "no colon and operation 99": {"principal": "alice", "operation": 99},
    "an empty principal": {"principal": ""},
    "pattern type 99 and permission 99": {"resource_pattern_type": 99, "permission_type": 99},
    "no host and no name": {"host": "", "resource_name": ""},
    "no host and type 99": {"host": "", "resource_type": 99},
    "no host and operation 99": {"host": "", "operation": 99},
    "no host and permission 99": {"host": "", "permission_type": 99},
    "no host and no colon": {"host": "", "principal": "alice"},
    "operation 99 and permission 99": {"operation": 99, "permission_type": 99},
    "any type": {"resource_type": ANY},
    "any pattern": {"resource_pattern_type": PatternType.ANY},
    "a match": {"resource_pattern_type": PatternType.MATCH},
    "any operation": {"operation": ANY},
    "any permission": {"permission_type": ANY},
    "any type and no name": {"resource_type": ANY, "resource_name": ""},
    "any operation and type 99": {"operation": ANY, "resource_type": 99},
}
ODD: dict[str, dict[str, object]] = {
    "an operation that topics do not have": {"operation": AclOperation.IDEMPOTENT_WRITE},
    "a host name": {"host": "localhost"},
    "no host": {"host": ""},
    "a colon alone": {"principal": ":"},
    "another type of principal": {"principal": "Group:x"},
    "a bad name": {"resource_name": "bad/name!"},
    "a prefix of the cluster": {
        "resource_type": ResourceType.CLUSTER,
        "resource_name": "kafka-cluster",
        "resource_pattern_type": PatternType.PREFIXED,
    },
}


def create(say: Recorder, label: str, *creations: AclCreation, version: int = 3) -> None:
    say.ask(label, request(CreateAclsRequest(creations=list(creations)), version))


def describe(say: Recorder, label: str, fields: dict[str, object], version: int = 3) -> None:
    made = DescribeAclsRequest(**(EVERY | fields))  # type: ignore[arg-type]  # of several types
    say.ask(label, request(made, version))


def delete(say: Recorder, label: str, *filters: dict[str, object], version: int = 3) -> None:
    made = [DeleteAclsFilter(**(EVERY | fields)) for fields in filters]  # type: ignore[arg-type]
    say.ask(label, request(DeleteAclsRequest(filters=made), version))


def stored(version: int) -> Scenario:
    def scenario(say: Recorder) -> None:
        create(say, "five", *STORED, version=version)
        create(say, "one again, and one twice", OF_ALICE, OF_ALICE, version=version)
        create(say, "none", version=version)
        describe(say, "all", {}, version)
        delete(say, "two filters", {"host_filter": "10.0.0.5"}, {"resource_type_filter": 3}, version=version)
        delete(say, "none", version=version)
        delete(say, "all", {}, version=version)
        describe(say, "nothing", {}, version)

    return scenario


def refused(say: Recorder) -> None:
    for label, fields in REFUSED.items():
        wrong = replace(OF_ALICE, **fields)  # type: ignore[arg-type]  # of several types
        create(say, label, wrong, OF_GROUP)
        describe(say, f"after {label}", {})
        delete(say, f"all after {label}", {})


def odd(say: Recorder) -> None:
    for label, fields in ODD.items():
        create(say, label, replace(OF_ALICE, **fields))  # type: ignore[arg-type]
    describe(say, "all", {})
    delete(say, "all", {})


def selected(say: Recorder) -> None:
    create(say, "five", *STORED)
    for label, fields in FILTERS.items():
        describe(say, label, fields)
    for label, fields in FILTERS.items():
        create(say, f"five for {label}", *STORED)
        delete(say, label, fields)
    delete(say, "two, one of them unknown", {"operation": 99}, {})
    describe(say, "nothing", {})


def unknown_creation(field: str) -> Scenario:
    def scenario(say: Recorder) -> None:
        create(say, f"{field} 0", OF_GROUP, replace(OF_ALICE, **{field: 0}))  # type: ignore[arg-type]

    return scenario


def unknown_filters(say: Recorder) -> None:
    delete(say, "operation 0", {}, {"operation": 0})


def unknown_filter(say: Recorder) -> None:
    describe(say, "permission 0", {"permission_type": 0})


WITH_AUTHORIZER: dict[str, tuple[str, Scenario]] = {
    **{
        f"create_acls_v{version}_stored": ("ACLs from their creation to their end", stored(version))
        for version in (1, 2, 3)
    },
    "create_acls_v3_refused": ("ACLs that cannot be created", refused),
    "create_acls_v3_odd": ("ACLs that make no sense", odd),
    "create_acls_v3_unknown": ("the code 0 in a new ACL", unknown_creation("permission_type")),
    "delete_acls_v3_selected": ("filters of ACLs", selected),
    "delete_acls_v3_unknown": ("the code 0 in a filter", unknown_filters),
    "describe_acls_v3_unknown": ("the code 0 in a filter", unknown_filter),
}
