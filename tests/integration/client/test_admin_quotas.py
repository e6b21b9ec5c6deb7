"""Client quotas, and requests that exceed them: repeated after the broker's throttle time (KIP-599)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from odradek.client.errors import RequestFailed
from odradek.client.quotas import ANY
from odradek.client.resources import NewPartitions, NewTopic
from odradek.client.retries import Retries
from odradek.plugin.client_quota import ClientQuotaEntity
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    ResponseEntryData,
)
from odradek.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from odradek.wire.messages.create_topics import (
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from odradek.wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from odradek.wire.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntryData,
    ValueData,
)
from odradek.wire.messages.describe_client_quotas import EntityData as DescribedEntity
from support.scripted_cluster import scripted_cluster

QUOTA = ErrorCode.THROTTLING_QUOTA_EXCEEDED
NAMES = ["a", "b"]


@dataclass
class Pauses:
    """A clock that only pauses advance."""

    now_s: float = 0.0
    taken: list[float] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.taken.append(seconds)
        self.now_s += seconds

    def retries(self, timeout_s: float) -> Retries:
        return Retries(timeout_s, lambda: self.now_s, self.sleep)


@dataclass
class Limited:
    """Refuse ``b`` several times, each time with a throttle time."""

    throttles_ms: list[int]
    asked: list[list[str]] = field(default_factory=list)

    def outcomes(self, names: list[str]) -> tuple[dict[str, int], int]:
        """Codes by name, and the throttle time."""
        self.asked.append(names)
        throttle_ms = self.throttles_ms.pop(0) if self.throttles_ms else 0
        return {name: QUOTA if name == "b" and throttle_ms else 0 for name in names}, throttle_ms

    def create_topics(self, request: CreateTopicsRequest) -> CreateTopicsResponse:
        codes, throttle_ms = self.outcomes([topic.name for topic in request.topics])
        rows = [CreatableTopicResult(name=name, error_code=code) for name, code in codes.items()]
        return CreateTopicsResponse(throttle_time_ms=throttle_ms, topics=rows)

    def create_partitions(self, request: CreatePartitionsRequest) -> CreatePartitionsResponse:
        codes, throttle_ms = self.outcomes([topic.name for topic in request.topics])
        rows = [CreatePartitionsTopicResult(name=name, error_code=code) for name, code in codes.items()]
        return CreatePartitionsResponse(throttle_time_ms=throttle_ms, results=rows)

    def delete_topics(self, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
        codes, throttle_ms = self.outcomes([topic.name or "" for topic in request.topics])
        rows = [DeletableTopicResult(name=name, error_code=code) for name, code in codes.items()]
        return DeleteTopicsResponse(throttle_time_ms=throttle_ms, responses=rows)

    @property
    def answers(self) -> dict[type[Any], Callable[[Any], Any]]:
        return {
            CreateTopicsRequest: self.create_topics,
            CreatePartitionsRequest: self.create_partitions,
            DeleteTopicsRequest: self.delete_topics,
        }


Call = Callable[..., None]
CALLS: list[Call] = [
    lambda admin, **options: admin.create_topics([NewTopic(name=name) for name in NAMES], **options),
    lambda admin, **options: admin.create_partitions({name: NewPartitions(3) for name in NAMES}, **options),
    lambda admin, **options: admin.delete_topics(NAMES, **options),
]
each_call = pytest.mark.parametrize(
    "call", CALLS, ids=["create_topics", "create_partitions", "delete_topics"]
)


@each_call
def test_a_request_above_a_quota_is_repeated_after_the_throttle(call: Call) -> None:
    limited, pauses = Limited([2_000, 1_500]), Pauses()

    with scripted_cluster(limited.answers) as (_, admin):
        admin.retries = pauses.retries(5)
        call(admin)

    assert limited.asked == [["a", "b"], ["b"], ["b"]]
    assert pauses.taken == [2, 1.5]


@each_call
def test_a_throttle_longer_than_the_timeout_is_reported(call: Call) -> None:
    limited, pauses = Limited([2_000, 3_500]), Pauses()

    with scripted_cluster(limited.answers) as (_, admin):
        admin.retries = pauses.retries(5)
        with pytest.raises(RequestFailed) as refusal:
            call(admin)

    assert (refusal.value.code, refusal.value.throttle_ms, refusal.value.subject) == (QUOTA, 3_500, "b")
    assert pauses.taken == [2]


@each_call
def test_a_caller_can_ask_not_to_retry(call: Call) -> None:
    limited, pauses = Limited([2_000]), Pauses()

    with scripted_cluster(limited.answers) as (_, admin):
        admin.retries = pauses.retries(5)
        with pytest.raises(RequestFailed) as refusal:
            call(admin, retry_on_quota_violation=False)

    assert (refusal.value.code, refusal.value.throttle_ms) == (QUOTA, 2_000)
    assert (limited.asked, pauses.taken) == ([["a", "b"]], [])


def test_a_throttle_without_a_refusal_is_no_failure() -> None:
    def throttled(request: DeleteTopicsRequest) -> DeleteTopicsResponse:
        rows = [DeletableTopicResult(name=topic.name) for topic in request.topics]
        return DeleteTopicsResponse(throttle_time_ms=20_000, responses=rows)

    pauses = Pauses()
    with scripted_cluster({DeleteTopicsRequest: throttled}) as (_, admin):
        admin.retries = pauses.retries(5)
        admin.delete_topics(NAMES)

    assert pauses.taken == []


def altering(code: int = 0) -> Callable[[AlterClientQuotasRequest], AlterClientQuotasResponse]:
    """The same result for every entity, in another order than requested."""

    def answer(request: AlterClientQuotasRequest) -> AlterClientQuotasResponse:
        return AlterClientQuotasResponse(
            entries=[
                ResponseEntryData(
                    error_code=code, error_message="no" if code else None, entity=list(reversed(row.entity))
                )
                for row in reversed(request.entries)
            ]
        )

    return answer


BOTH, DEFAULT_IP = ClientQuotaEntity(user="u", client_id=None), ClientQuotaEntity(ip=None)


def test_quotas_are_set_and_removed() -> None:
    with scripted_cluster({AlterClientQuotasRequest: altering()}) as (broker, admin):
        admin.alter_client_quotas(
            {BOTH: {"request_percentage": 1.5, "x": None}, DEFAULT_IP: {"connection_creation_rate": 2}},
            validate_only=True,
        )

    (request,) = broker.of(AlterClientQuotasRequest)
    assert request.validate_only
    assert [[(op.key, op.value, op.remove) for op in row.ops] for row in request.entries] == [
        [("request_percentage", 1.5, False), ("x", 0, True)],
        [("connection_creation_rate", 2, False)],
    ]
    assert request.entries[0].entity == [
        EntityData(entity_type="user", entity_name="u"),
        EntityData(entity_type="client-id", entity_name=None),
    ]


def test_a_refused_quota_raises() -> None:
    answers = {AlterClientQuotasRequest: altering(42)}
    with scripted_cluster(answers) as (_, admin), pytest.raises(RequestFailed) as refusal:
        admin.alter_client_quotas({BOTH: {"bad": 1}})

    assert str(refusal.value) == "INVALID_REQUEST: no"


def described(request: DescribeClientQuotasRequest) -> DescribeClientQuotasResponse:
    entity = [
        DescribedEntity(entity_type="client-id", entity_name=None),
        DescribedEntity(entity_type="user", entity_name="u"),
    ]
    return DescribeClientQuotasResponse(
        entries=[EntryData(entity=entity, values=[ValueData(key="request_percentage", value=1.5)])]
    )


def test_quotas_are_described_by_entity() -> None:
    with scripted_cluster({DescribeClientQuotasRequest: described}) as (broker, admin):
        found = admin.describe_client_quotas({"user": "u", "client-id": None, "ip": ANY}, strict=True)

    (request,) = broker.of(DescribeClientQuotasRequest)
    assert found == {BOTH: {"request_percentage": 1.5}}
    assert request.strict
    assert [(row.entity_type, row.match_type, row.match) for row in request.components] == [
        ("user", 0, "u"),
        ("client-id", 1, None),
        ("ip", 2, None),
    ]


def test_a_refused_filter_raises() -> None:
    def refused(request: DescribeClientQuotasRequest) -> DescribeClientQuotasResponse:
        return DescribeClientQuotasResponse(error_code=35, error_message="Unsupported", entries=None)

    with (
        scripted_cluster({DescribeClientQuotasRequest: refused}) as (_, admin),
        pytest.raises(RequestFailed, match="UNSUPPORTED_VERSION: Unsupported"),
    ):
        admin.describe_client_quotas({})
