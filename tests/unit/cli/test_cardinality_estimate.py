"""``odradek cardinality estimate``: the budgets that it compares with, and the end of its reading."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import NoReturn

import pytest

from odradek.cli import telemetry_topic
from odradek.cli.cardinality_estimate import Pushed, budgets_of
from odradek.client.errors import ClientError, RequestFailed
from odradek.client.leaders import Partition
from odradek.client.resources import ConfigResource
from odradek.client.retries import Retries
from odradek.estimate.budgets import CLIENT_KEY, SubscriptionBudgets
from odradek.testing.pushes import recorded
from odradek.topic.telemetry_topic import encode_headers, record_key
from odradek.wire.error_code import ErrorCode
from odradek.wire.record import Record


class Admin:
    """An admin client of one broker, which has a budget or hides its configuration."""

    def __init__(self, budget: str | None) -> None:
        self.budget = budget

    def metadata(self, topics: Sequence[str]) -> SimpleNamespace:
        return SimpleNamespace(brokers=[SimpleNamespace(node_id=1)])

    def describe_configs(
        self, resources: Sequence[ConfigResource], keys: Sequence[str]
    ) -> Mapping[ConfigResource, Sequence[SimpleNamespace]]:
        if self.budget is None:
            raise RequestFailed(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "no right")
        return {each: [SimpleNamespace(name=CLIENT_KEY, value=self.budget)] for each in resources}


@pytest.mark.parametrize(
    ("budget", "found", "notes"),
    [
        ("7", SubscriptionBudgets(client_series=7), ""),
        (
            None,
            SubscriptionBudgets(),
            "note: the budgets are the defaults, the broker does not show its own: ",
        ),
    ],
    ids=["shown", "hidden"],
)
def test_budgets_are_those_of_the_broker_or_a_note_says_so(
    budget: str | None, found: SubscriptionBudgets, notes: str, capsys: pytest.CaptureFixture[str]
) -> None:
    budgets = budgets_of(Admin(budget))  # type: ignore[arg-type]

    assert budgets == found
    said = capsys.readouterr().err
    assert said.startswith(notes)
    assert bool(said) is bool(notes)


class Throttled:
    """A reader of one record whose first answers are empty, as those to a client over its quota."""

    refusal = None

    def __init__(self, empty: int) -> None:
        self.empty = empty
        self.positions: dict[Partition, int] = {("pushes", 0): 0}

    def poll(self) -> Iterator[SimpleNamespace]:
        if not self.empty:
            self.positions["pushes", 0] = 1
            yield SimpleNamespace(record=Record(None, b""))
        self.empty -= 1


def pushed() -> Pushed:
    """A reading whose retries take two seconds of its own clock."""
    slept_s: list[float] = []
    retries = Retries(timeout_s=2, now_s=lambda: sum(slept_s), sleep=slept_s.append)
    return Pushed(SimpleNamespace(retries=retries), "pushes", 10)  # type: ignore[arg-type]


def test_empty_answers_to_a_throttled_client_do_not_end_the_reading() -> None:
    found = pushed()

    found.follow(Throttled(empty=3), {("pushes", 0): 1})  # type: ignore[arg-type]

    assert found.count == 1


def test_a_topic_that_cannot_be_read_to_its_end_is_an_error() -> None:
    with pytest.raises(ClientError, match="pushes cannot be read to its end"):
        pushed().follow(Throttled(empty=100), {("pushes", 0): 1})  # type: ignore[arg-type]


class Cluster:
    """An admin client of brokers that do not show their settings, with topics of one record each."""

    def __init__(self, **records: Record) -> None:
        self.records = records
        self.cluster = self

    def metadata(self) -> SimpleNamespace:
        topics = [
            SimpleNamespace(name=name, partitions=[SimpleNamespace(partition_index=0)])
            for name in self.records
        ]
        return SimpleNamespace(brokers=[SimpleNamespace(node_id=1)], topics=topics)

    def describe_configs(self, resources: Sequence[ConfigResource], keys: Sequence[str]) -> NoReturn:
        raise RequestFailed(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "no right")

    def list_offsets(self, wanted: Mapping[Partition, int]) -> Mapping[Partition, SimpleNamespace]:
        return {at: SimpleNamespace(offset=1) for at in wanted}

    def reader(self, cluster: Cluster, positions: Mapping[Partition, int]) -> SimpleNamespace:
        found = [SimpleNamespace(record=self.records[topic]) for topic, _ in positions]
        return SimpleNamespace(poll=lambda: iter(found))


ADMIN = recorded("java-admin")[0].record
PUSH = Record(
    record_key(ADMIN.payload.client_instance_id), ADMIN.payload.data, headers=tuple(encode_headers(ADMIN))
)
OTHER = Record(None, b"x")


@pytest.mark.parametrize(
    ("topics", "found"),
    [
        ({"a-telemetry": OTHER, "kafka-telemetry": PUSH, "pushes": PUSH}, "kafka-telemetry"),
        ({"a-telemetry": PUSH, "__client_telemetry": OTHER}, "__client_telemetry"),
        ({"a-telemetry": OTHER}, "__client_telemetry"),
    ],
    ids=["found by a push", "the usual one", "none"],
)
def test_the_telemetry_topic_of_a_cluster_is_found(
    topics: dict[str, Record], found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Cluster(**topics)
    monkeypatch.setattr(telemetry_topic, "Reader", cluster.reader)

    assert telemetry_topic.telemetry_topic(cluster) == found  # type: ignore[arg-type]
