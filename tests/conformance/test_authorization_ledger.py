"""Every API has a row in ``authorization.toml``, asks for exactly the rights of its row, and tells a caller
without rights nothing.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from conformance.test_authorization_golden import clients, ids_of, sender
from odradek.broker.broker import Broker
from odradek.broker.client_quotas import QuotaFilter
from odradek.broker.dispatch.routes import Route, Routes
from odradek.broker.features import SHARE_VERSION
from odradek.plugin.authorizer import Action
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    OpData,
    RequestEntryData,
)
from odradek.wire.messages.alter_share_group_offsets import AlteredTopic, AlterShareGroupOffsetsRequest
from odradek.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from odradek.wire.messages.delete_share_group_offsets import DeletedTopic, DeleteShareGroupOffsetsRequest
from odradek.wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    ShareOffsetsGroup,
    ShareOffsetsTopic,
)
from odradek.wire.messages.share_acknowledge import (
    AcknowledgementBatch,
    AcknowledgePartition,
    AcknowledgeTopic,
    ShareAcknowledgeRequest,
)
from odradek.wire.messages.share_fetch import FetchPartition, FetchTopic, ShareFetchRequest
from odradek.wire.messages.share_group_describe import ShareGroupDescribeRequest
from odradek.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from odradek.wire.messages.streams_group_describe import StreamsGroupDescribeRequest
from support.authorization.case import Case
from support.authorization.cases import CASES
from support.authorization.world import TOPICS, WORLD, make_topics
from support.batches import batch_of
from support.broker import BrokerClient, make_broker, make_connection
from support.element_requests import Contents, Topic, full_requests, smallest
from support.grants import Grants
from support.offenders import offenders
from support.streams_requests import client as streams_client
from support.streams_requests import join as streams_join
from support.streams_requests import stateful

LEDGER = Path(__file__).with_name("authorization.toml")
ROWS: dict[int, dict[str, Any]] = {
    row["key"]: row for row in tomllib.loads(LEDGER.read_text(encoding="utf-8"))["row"]
}
ROUTES = Routes()
FEW = 4
"""Elements in the arrays of the requests."""
UNSEEN_IDS = {ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.TOPIC_AUTHORIZATION_FAILED}
"""A caller who knows the id of a topic, which cannot be guessed, learns whether it exists, as in Kafka."""


def limited(broker: Broker) -> BrokerClient:
    """A caller without any right."""
    return BrokerClient(broker, replace(make_connection(), principal="User:limited"))


@cache
def full_host() -> BrokerClient:
    """A host with topics, groups, transactions, users and quotas; the tests change nothing."""
    client, admin, _ = clients(Case("", [], lambda _ids: None))
    for step in WORLD:
        step(sender(admin))
    for feature in client.broker.features:
        client.broker.features.finalize(feature.name, feature.max_version)
    user = ScramCredentialUpsertion(
        name="a", mechanism=1, iterations=4096, salt=b"12345678", salted_password=b"1" * 32
    )
    assert not admin.send(AlterUserScramCredentialsRequest(upsertions=[user])).results[0].error_code
    quota = RequestEntryData(
        entity=[EntityData(entity_type="client-id", entity_name="c")],
        ops=[OpData(key="producer_byte_rate", value=1e6)],
    )
    assert not admin.send(AlterClientQuotasRequest(entries=[quota])).entries[0].error_code
    return client


@cache
def empty_host() -> BrokerClient:
    """A host without any of that."""
    host = limited(make_broker(authorizer=Grants()))
    host.broker.features.levels |= full_host().broker.features.levels
    return host


def contents() -> Contents:
    ids = ids_of(full_host())
    return Contents(
        topics=[Topic(name, ids[name], 2) for name in TOPICS],
        groups=["club", "crew"],
        users=["a"],
        clients=["c"],
        transactional_ids=["tx"],
        batch=batch_of(b"x"),
    )


def requests_of(route: Route) -> Iterator[tuple[Any, int]]:
    """Requests of every version: the empty one, and for each array some with elements."""
    for version in range(route.versions.first, route.versions.last + 1):
        yield smallest(route.request), version
        for _, request in full_requests(route.request, version, contents(), FEW):
            yield request, version


def answer_of(client: BrokerClient, request: Any, version: int) -> Any:
    """The answer in plain form; None if there is none, or if the connection is closed."""
    try:
        return same_for_unseen_ids(client.send(request, version))
    except EOFError:
        return None


def same_for_unseen_ids(value: Any) -> Any:
    """A message as dictionaries, in which a missing id looks like one that may not be seen."""
    if isinstance(value, list):
        return [same_for_unseen_ids(each) for each in value]
    if not is_dataclass(value):
        return value
    found = {each.name: same_for_unseen_ids(getattr(value, each.name)) for each in fields(value)}
    if found.get("error_code") in UNSEEN_IDS:
        found |= {"error_code": "unseen", "error_message": None}
    return found


def state(broker: Broker) -> object:
    """What requests of a caller without rights must not change."""
    return (
        {topic.name: [log.log_end_offset for log in topic.partitions] for topic in broker.topics},
        {name: group.is_empty for name, group in broker.groups.groups.items()},
        {name: sorted(broker.groups.offsets.of_group(name)) for name in ("club", "crew")},
        {
            known.transactional_id: (known.state, known.producer_epoch, known.partitions)
            for known in broker.transactions
        },
        sorted(broker.credentials.users()),
        [list(broker.metadata.resource_names(kind)) for kind in (2, 4, 16, 32)],
        dict(broker.features.levels),
        list(broker.client_quotas.find(QuotaFilter({}, frozenset(), False))),
    )


def test_every_api_has_a_row() -> None:
    named = {key: row["api"] for key, row in ROWS.items()}

    assert named == {key: route.request.__name__.removesuffix("Request") for key, route in ROUTES.items()}


def says_why_without_rights(row: dict[str, Any]) -> None:
    assert bool(row["rights"]) != bool(row.get("why", ""))


def test_a_row_without_rights_says_why() -> None:
    assert offenders(says_why_without_rights, ROWS.values()) == {}


@cache
def asked_in_cases() -> dict[int, set[str]]:
    """The rights that the APIs ask for in the cases of callers with some rights, by API key."""
    found: dict[int, set[str]] = {}
    for case in CASES:
        client, admin, grants = clients(case)
        for step in WORLD:
            step(sender(admin))
        request = case.ask(ids_of(client))
        client.send(request, case.version)
        found.setdefault(request.API_KEY, set()).update(names_of(grants.single))
    return found


@cache
def asked_of_share_groups() -> dict[int, set[str]]:
    """The rights that the APIs of share groups ask for beside that on the group."""
    client, admin, grants = clients(
        Case(
            "",
            ["READ GROUP sharers", "READ GROUP new", "DELETE GROUP new"],
            lambda _ids: ShareGroupDescribeRequest(),
        )
    )
    make_topics(sender(admin))
    client.broker.features.finalize(SHARE_VERSION, 2)
    join = ShareGroupHeartbeatRequest(group_id="sharers", member_id="m", subscribed_topic_names=["shut"])
    stay = ShareGroupHeartbeatRequest(group_id="sharers", member_id="m", member_epoch=2)
    for beat in (join, stay):
        assert not admin.send(beat).error_code
        client.broker.clock.advance(1_000)  # type: ignore[attr-defined]  # a clock that stands still
    named = ShareOffsetsGroup(group_id="sharers", topics=[ShareOffsetsTopic(topic_name="shut")])
    altered = AlteredTopic(topic_name="shut")
    topic_id = client.broker.topics.by_name["shut"].id
    accept = AcknowledgementBatch(first_offset=0, last_offset=0, acknowledge_types=[1])
    said = AcknowledgePartition(acknowledgement_batches=[accept])
    asking: list[Any] = [
        join,
        ShareGroupDescribeRequest(group_ids=["sharers"]),
        ShareFetchRequest(
            group_id="sharers",
            member_id="m",
            topics=[FetchTopic(topic_id=topic_id, partitions=[FetchPartition()])],
        ),
        ShareAcknowledgeRequest(
            group_id="sharers",
            member_id="m",
            share_session_epoch=1,
            topics=[AcknowledgeTopic(topic_id=topic_id, partitions=[said])],
        ),
        DescribeShareGroupOffsetsRequest(groups=[named]),
        AlterShareGroupOffsetsRequest(group_id="new", topics=[altered]),
        DeleteShareGroupOffsetsRequest(group_id="new", topics=[DeletedTopic(topic_name="shut")]),
    ]
    found = {}
    for request in asking:
        grants.single.clear()
        client.send(request)
        found[request.API_KEY] = names_of(grants.single)
    return found


@cache
def asked_of_streams_groups() -> dict[int, set[str]]:
    """The same of the APIs of streams groups."""
    seen = Grants(["READ GROUP streamers", "DESCRIBE TOPIC words", "DESCRIBE TOPIC log"])
    client = streams_client(authorizer=seen)
    found = {}
    asking: list[Any] = [streams_join(stateful()), StreamsGroupDescribeRequest(group_ids=["streamers"])]
    for request in asking:
        seen.single.clear()
        client.send(request)
        found[request.API_KEY] = names_of(seen.single)
    return found


def names_of(actions: Sequence[Action]) -> set[str]:
    return {f"{action.operation.name} {action.resource_type.name}" for action in actions}


def asked_without_rights(key: int) -> list[Action]:
    """What an API asks for in requests of a caller without any right."""
    grants = Grants()
    client = limited(make_broker(authorizer=grants))
    client.broker.features.levels |= full_host().broker.features.levels
    for request, version in requests_of(ROUTES[key]):
        answer_of(client, request, version)
    return grants.single


def asks_for_the_rights_of_its_row(key: int) -> None:
    asked = names_of(asked_without_rights(key)) | asked_in_cases().get(key, set())
    asked |= asked_of_share_groups().get(key, set()) | asked_of_streams_groups().get(key, set())

    assert sorted(asked) == sorted(ROWS[key]["rights"])


def test_an_api_asks_for_the_rights_of_its_row() -> None:
    assert (
        offenders(asks_for_the_rights_of_its_row, [key for key, row in ROWS.items() if row["rights"]]) == {}
    )


def asks_for_none(key: int) -> None:
    assert asked_without_rights(key) == []


def test_an_api_without_rights_asks_for_none() -> None:
    assert offenders(asks_for_none, [key for key, row in ROWS.items() if not row["rights"]]) == {}


@pytest.mark.parametrize("key", [key for key, row in ROWS.items() if row["rights"]])
def test_a_caller_without_rights_learns_and_changes_nothing(key: int) -> None:
    before = state(full_host().broker)

    for request, version in requests_of(ROUTES[key]):
        full, empty = (answer_of(host, request, version) for host in (full_host(), empty_host()))
        assert full == empty, f"{request} v{version}"

    assert state(full_host().broker) == before
