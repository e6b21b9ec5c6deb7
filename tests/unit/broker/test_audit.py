"""The audit log: denials, administrative acts, and the limit of refusals."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from odradek.broker.audit import Act, Audit, AuditSettings
from odradek.broker.dispatch.administration import SUBJECTS
from odradek.broker.dispatch.routes import Routes
from odradek.broker.refusal_lines import INTERVAL_MS, MOST_CLIENTS
from odradek.broker.results import Results
from odradek.plugin.authorizer import AclOperation, Action, Decision, ResourceType
from odradek.plugin.context import RequestContext
from odradek.security.refused_login import RefusedLogin
from odradek.testing import request_context
from odradek.testing.clock import MockClock
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    OpData,
    RequestEntryData,
)
from odradek.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from odradek.wire.messages.create_acls import AclCreation, CreateAclsRequest
from odradek.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from odradek.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.wire.messages.delete_groups import DeleteGroupsRequest
from odradek.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from odradek.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from odradek.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from odradek.wire.messages.metadata import MetadataRequest
from odradek.wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteRequestTopic
from odradek.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from support.broker import BrokerClient, make_broker
from support.ticking_clock import TickingClock


def topic(name: str) -> CreatableTopic:
    return CreatableTopic(name=name, num_partitions=1, replication_factor=1)


TOPIC = topic("t")
CREATE = CreateTopicsRequest(topics=[TOPIC])
DENIED = Decision(False, "DefaultDeny")
ACTION = Action(AclOperation.DESCRIBE, ResourceType.TOPIC, "t9")


class Nobody:
    """Denies everything."""

    def authorize(self, context: RequestContext, actions: Sequence[Action]) -> list[Decision]:
        return [DENIED] * len(actions)

    def authorize_by_resource_type(
        self, context: RequestContext, operation: AclOperation, resource_type: ResourceType
    ) -> Decision:
        return DENIED


@pytest.fixture(autouse=True)
def _at_info(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "odradek.audit")


def lines(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    """The lines of the audit log, each with its message and its fields."""
    return [vars(record) for record in caplog.records if record.name == "odradek.audit"]


def context(principal: str = "User:alice") -> RequestContext:
    return request_context(principal=principal, api_key=3, api_version=12, client_id="app")


def only(code: ErrorCode) -> Results:
    return Results(Counter({code: 1}))


def audit(refusals: int = 2) -> tuple[Audit, MockClock]:
    clock = MockClock()
    return Audit(clock, clock.timer, AuditSettings(refusals=refusals)), clock


def test_a_denial_says_who_and_from_where_and_what_and_why(caplog: pytest.LogCaptureFixture) -> None:
    made, _ = audit()

    made.denied(context(), ACTION, DENIED)

    (line,) = lines(caplog)
    expected = {
        "message": "access denied",
        "principal": "User:alice",
        "address": "127.0.0.1",
        "port": 50_000,
        "listener": "PLAINTEXT",
        "client_id": "app",
        "outcome": "denied",
        "operation": "DESCRIBE",
        "on": ["Topic:t9"],
        "api": "Metadata",
        "why": "DefaultDeny",
    }
    assert {key: line[key] for key in expected} == expected


def test_refusals_are_limited_by_principal_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    made, clock = audit(refusals=2)

    for _ in range(5):
        made.denied(context("User:alice"), ACTION, DENIED)
    made.denied(context("User:bob"), ACTION, DENIED)
    in_the_minute = [line["principal"] for line in lines(caplog)]
    clock.advance(INTERVAL_MS)
    made.denied(context("User:alice"), ACTION, DENIED)

    assert in_the_minute == ["User:alice", "User:alice", "User:bob"]
    assert [(line["message"], line["principal"]) for line in lines(caplog)[3:]] == [
        ("refusals that were not logged", "User:alice"),
        ("access denied", "User:alice"),
    ]
    assert lines(caplog)[3]["count"] == 3
    assert made.denials == 7


def refused(address: str = "10.0.0.5", claimed: str | None = "alice") -> RefusedLogin:
    return RefusedLogin(
        listener="SASL_SSL",
        address=address,
        port=50_000,
        mechanism="SCRAM-SHA-256",
        why="wrong password",
        claimed=claimed,
        connection="c",
    )


def test_a_refused_login_says_who_claimed_what_and_from_where(caplog: pytest.LogCaptureFixture) -> None:
    made, _ = audit()

    made.login_refused(refused(claimed="x" * 1_000))

    (line,) = lines(caplog)
    expected = {
        "message": "login refused",
        "address": "10.0.0.5",
        "port": 50_000,
        "listener": "SASL_SSL",
        "connection": "c",
        "mechanism": "SCRAM-SHA-256",
        "outcome": "denied",
        "why": "wrong password",
    }
    assert {key: line[key] for key in expected} == expected
    assert line["claimed"].startswith("xxx")
    assert len(line["claimed"]) < 300
    assert made.denials == 0


def test_refused_logins_are_limited_by_address_whatever_they_claim(caplog: pytest.LogCaptureFixture) -> None:
    made, clock = audit(refusals=2)

    for number in range(5):
        made.login_refused(refused(claimed=f"user-{number}"))
    made.login_refused(refused("10.0.0.6"))
    for number in range(3):
        made.login_refused(refused(f"2001:db8:0:1:0:0:0:{number}"))
    made.denied(context(), ACTION, DENIED)
    in_the_minute = [line.get("address") for line in lines(caplog)]
    clock.advance(INTERVAL_MS)

    of_v6 = ["2001:db8:0:1:0:0:0:0", "2001:db8:0:1:0:0:0:1"]
    assert in_the_minute == ["10.0.0.5", "10.0.0.5", "10.0.0.6", *of_v6, "127.0.0.1"]
    ends = [line for line in lines(caplog) if line["message"] == "refusals that were not logged"]
    assert [line["count"] for line in ends] == [3, 1]
    assert ends[0]["address"] == "10.0.0.5"


def test_the_principals_that_are_counted_are_limited(caplog: pytest.LogCaptureFixture) -> None:
    made, _ = audit(refusals=1)
    made.denied(context("User:first"), ACTION, DENIED)
    made.denied(context("User:first"), ACTION, DENIED)
    caplog.clear()

    for number in range(MOST_CLIENTS):
        made.denied(context(f"User:{number}"), ACTION, DENIED)

    assert len(made.requests.windows) == MOST_CLIENTS
    counted = [line for line in lines(caplog) if line["message"] == "refusals that were not logged"]
    assert [(line["principal"], line["count"]) for line in counted] == [("User:first", 1)]


@pytest.mark.parametrize(
    ("request_", "on", "outcome"),
    [
        (CREATE, ["Topic:t"], "allowed"),
        (
            DeleteTopicsRequest(topics=[DeleteTopicState(name="there")], timeout_ms=1_000),
            ["Topic:there"],
            "allowed",
        ),
        (DeleteTopicsRequest(topics=[DeleteTopicState(name="none")]), ["Topic:none"], "failed"),
        (
            CreatePartitionsRequest(
                topics=[CreatePartitionsTopic(name="there", count=2, assignments=None)], timeout_ms=1_000
            ),
            ["Topic:there"],
            "allowed",
        ),
        (
            DeleteRecordsRequest(
                topics=[DeleteRecordsTopic(name="there", partitions=[DeleteRecordsPartition(offset=0)])]
            ),
            ["Topic:there"],
            "allowed",
        ),
        (
            IncrementalAlterConfigsRequest(
                resources=[
                    AlterConfigsResource(
                        resource_type=2,
                        resource_name="there",
                        configs=[AlterableConfig(name="retention.ms", value="1000")],
                    )
                ]
            ),
            ["TOPIC:there retention.ms"],
            "allowed",
        ),
        (
            AlterClientQuotasRequest(
                entries=[
                    RequestEntryData(
                        entity=[EntityData(entity_type="user", entity_name=None)],
                        ops=[OpData(key="producer_byte_rate", value=5.0), OpData(key="x", remove=True)],
                    )
                ]
            ),
            ["user=<default> producer_byte_rate=5.0,x=<none>"],
            "allowed",
        ),
        (
            AlterUserScramCredentialsRequest(
                deletions=[ScramCredentialDeletion(name="bob", mechanism=1)],
                upsertions=[
                    ScramCredentialUpsertion(
                        name="eve", mechanism=1, iterations=4096, salt=b"salt", salted_password=bytes(32)
                    )
                ],
            ),
            ["User:bob credential removed", "User:eve credential set"],
            "allowed",
        ),
        (DeleteGroupsRequest(groups_names=["g"]), ["Group:g"], "failed"),
        (
            OffsetDeleteRequest(group_id="g", topics=[OffsetDeleteRequestTopic(name="t")]),
            ["Group:g Topic:t"],
            "failed",
        ),
        (
            UpdateFeaturesRequest(feature_updates=[FeatureUpdateKey(feature="none", max_version_level=1)]),
            ["Feature:none"],
            "failed",
        ),
    ],
)
def test_an_administrative_act_is_logged(
    request_: Any, on: list[str], outcome: str, caplog: pytest.LogCaptureFixture
) -> None:
    client = BrokerClient()
    client.send(CreateTopicsRequest(topics=[topic("there")]))
    caplog.clear()

    client.send(request_)

    (line,) = lines(caplog)
    assert line["message"] == "administration"
    assert line["api"] == type(request_).__name__.removesuffix("Request")
    assert (line["on"], line["outcome"]) == (on, outcome)
    assert line["principal"] == "User:ANONYMOUS"


def test_a_failed_act_says_why(caplog: pytest.LogCaptureFixture) -> None:
    client = BrokerClient()
    client.send(CREATE)
    caplog.clear()

    client.send(CreateTopicsRequest(topics=[TOPIC, topic("u")]))

    (line,) = lines(caplog)
    assert line["outcome"] == "allowed"
    assert line["results"] == {"TOPIC_ALREADY_EXISTS": 1, "NONE": 1}
    assert line["why"] == ["t: Topic 't' already exists."]


def test_an_act_on_many_things_names_the_first_of_them(caplog: pytest.LogCaptureFixture) -> None:
    names = [f"{number}-{'x' * 300}" for number in range(1_000)]

    BrokerClient().send(DeleteGroupsRequest(groups_names=names))

    (line,) = lines(caplog)
    assert len(line["on"]) == len(line["why"]) == 20
    assert line["of"] == 1_000
    assert line["results"] == {"GROUP_ID_NOT_FOUND": 1_000}
    assert max(map(len, line["on"] + line["why"])) < 300


def test_a_request_that_only_checks_is_no_act(caplog: pytest.LogCaptureFixture) -> None:
    client = BrokerClient()

    client.send(CreateTopicsRequest(topics=[TOPIC], validate_only=True))
    client.send(MetadataRequest(topics=None))

    assert lines(caplog) == []


def test_an_act_of_a_client_that_is_gone_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    clock = TickingClock()
    client = BrokerClient(broker=make_broker(clock=clock))
    topics = [topic(f"t{number}") for number in range(50)]
    frame = client.frame(CreateTopicsRequest(topics=topics), 7)

    answer: Any = client.dispatcher.answer(frame, 0, client.connection)
    before = lines(caplog)
    answer.lost()
    clock.advance(0)

    assert before == []
    (line,) = lines(caplog)
    assert (line["outcome"], line["of"]) == ("allowed", 50)


def test_acls_are_described(caplog: pytest.LogCaptureFixture) -> None:
    creation = AclCreation(
        resource_type=2,
        resource_name="orders",
        resource_pattern_type=4,
        principal="User:alice",
        host="*",
        operation=3,
        permission_type=3,
    )

    described = list(SUBJECTS[CreateAclsRequest](CreateAclsRequest(creations=[creation])))

    assert described == ["ALLOW READ on TOPIC:PREFIXED:orders to User:alice from *"]


def test_every_administrative_api_is_served() -> None:
    routes = Routes()

    assert {request.API_KEY for request in SUBJECTS} <= routes.keys()


def test_a_denied_act_is_only_logged_as_denied(caplog: pytest.LogCaptureFixture) -> None:
    made, _ = audit()
    act = Act("CreateTopics", ["Topic:t"], 1, only(ErrorCode.TOPIC_AUTHORIZATION_FAILED))

    made.acted(context(), act)

    assert lines(caplog) == []


def test_failed_acts_are_limited_and_others_are_not(caplog: pytest.LogCaptureFixture) -> None:
    made, _ = audit(refusals=1)

    for code in (ErrorCode.INVALID_REQUEST, ErrorCode.NONE) * 3:
        made.acted(context(), Act("CreateTopics", ["Topic:t"], 1, only(code)))

    assert [line["outcome"] for line in lines(caplog)] == ["failed", "allowed", "allowed", "allowed"]


def test_a_check_of_the_broker_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    client = BrokerClient(broker=make_broker(authorizer=Nobody()))

    client.broker.authorization.allows(context(), AclOperation.CREATE, ResourceType.CLUSTER, "kafka-cluster")

    (line,) = lines(caplog)
    assert (line["api"], line["on"]) == ("Metadata", ["Cluster:kafka-cluster"])
