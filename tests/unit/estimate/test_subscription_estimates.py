"""``subscription.estimate``: what the host does with a change that would bring too many series."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from odradek.broker.spool_settings import SpoolSettings
from odradek.broker.telemetry_spool import TelemetrySpool
from odradek.delivery.log_cursor import Chunk
from odradek.estimate.budgets import EstimateMode, SubscriptionBudgets
from odradek.estimate.subscription_estimates import PointsWork, SubscriptionEstimates
from odradek.plugin.authorizer import AclOperation, Action, Decision
from odradek.plugin.authorizer import ResourceType as AclResourceType
from odradek.plugin.context import RequestContext
from odradek.telemetry.telemetry_config import TelemetryConfig
from odradek.testing.pushes import recorded
from odradek.waiting.deferred import offload_inline
from odradek.waiting.steps import Step
from odradek.wire.api_error import ApiError
from odradek.wire.config_resource import ConfigOperation, ResourceType
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages import alter_configs
from odradek.wire.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from odradek.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from support.broker import BrokerClient, make_broker, make_spool

NONE_SET = {"series": 0, "principal_series": 0, "app_series": 0, "client_series": 0}
INVALID = ErrorCode.INVALID_CONFIG
NONE = ErrorCode.NONE
EVERYTHING = {"metrics": "*", "interval.ms": "1000"}
ONE_CLIENT = 104
"""Series of a Java producer of one topic on one broker: the guess for a client that says nothing."""


@dataclass
class Asked:
    """An operator and a client on one broker."""

    client: BrokerClient
    offloaded: list[PointsWork] = field(default_factory=list)

    def alter(
        self, *, validate_only: bool = False, **subscriptions: Mapping[str, str | None]
    ) -> list[tuple[int, str]]:
        """Set properties of subscriptions; None deletes a key. The codes and messages."""
        resources = [
            AlterConfigsResource(
                resource_type=ResourceType.CLIENT_METRICS,
                resource_name=name,
                configs=[
                    AlterableConfig(
                        name=key,
                        config_operation=ConfigOperation.DELETE if value is None else ConfigOperation.SET,
                        value=value,
                    )
                    for key, value in properties.items()
                ],
            )
            for name, properties in subscriptions.items()
        ]
        request = IncrementalAlterConfigsRequest(resources=resources, validate_only=validate_only)
        response = self.client.send(request)
        return [(row.error_code, row.error_message or "") for row in response.responses]

    def stored(self, name: str) -> Mapping[str, str]:
        return self.client.broker.metadata.resource(ResourceType.CLIENT_METRICS, name)


def host(mode: EstimateMode, spool: bool = False, **budgets: int) -> Asked:
    """A broker that estimates, with one client that asked for its subscription."""
    client = BrokerClient(make_broker(telemetry=TelemetryConfig(inline_bytes=20_000)))
    broker = client.broker
    pushes = make_spool(broker, SpoolSettings(partitions=3)) if spool else None
    broker.sink = pushes
    asked = Asked(client)

    def offload(work: PointsWork, done: Callable[[Any], None]) -> None:
        asked.offloaded.append(work)
        offload_inline(work, done)

    limits = SubscriptionBudgets(mode=mode, **{**NONE_SET, **budgets})
    broker.estimates = SubscriptionEstimates(limits, broker.telemetry, broker.clock, pushes, offload)
    return asked


def greet(asked: Asked, number: int = 0) -> None:
    """A client that asks for its subscription, on a connection of its own."""
    connection = replace(asked.client.connection, connection_id=f"c{number}")
    request = GetTelemetrySubscriptionsRequest(client_instance_id=bytes([number + 1]) * 16)
    BrokerClient(asked.client.broker, connection).send(request)


def test_subscription_over_budget_is_refused_with_the_figures(caplog: pytest.LogCaptureFixture) -> None:
    asked = host(EstimateMode.REFUSE, series=ONE_CLIENT - 1)
    greet(asked)

    with caplog.at_level(logging.INFO):
        ((code, message),) = asked.alter(all=EVERYTHING)

    assert code == INVALID
    assert message == (
        "subscription all would bring too many series: 104 series exceed subscription.budget.series = 103; "
        "name fewer metrics or clients, or raise the budget. Estimate: 1 of 1 live clients change; series "
        "0 -> 104, samples/s 0 -> 104, pushes/s 0 -> 1, bytes/min 0 B -> 811 kB; guessed 100 %"
    )
    assert asked.stored("all") == {}
    (line,) = [each for each in caplog.records if "subscription" in each.message]
    assert (line.levelname, line.__dict__["refused"]) == ("WARNING", True)


def test_subscription_within_the_budgets_is_accepted() -> None:
    asked = host(
        EstimateMode.REFUSE, series=ONE_CLIENT, principal_series=ONE_CLIENT, client_series=ONE_CLIENT
    )
    greet(asked)

    assert asked.alter(all=EVERYTHING) == [(NONE, "")]
    assert asked.stored("all") == EVERYTHING


def test_warning_changes_nothing_but_the_log(caplog: pytest.LogCaptureFixture) -> None:
    asked = host(EstimateMode.WARN, client_series=1)
    greet(asked)

    with caplog.at_level(logging.INFO):
        codes = asked.alter(all=EVERYTHING), asked.alter(all={"metrics": None, "interval.ms": None})

    assert codes == ([(NONE, "")], [(NONE, "")])
    levels = [each.levelname for each in caplog.records if each.message.startswith("subscription ")]
    assert levels == ["WARNING", "INFO"]


def test_validation_only_estimates_too() -> None:
    asked = host(EstimateMode.REFUSE, series=ONE_CLIENT - 1)
    greet(asked)

    codes = [
        asked.alter(all=EVERYTHING, validate_only=True)[0][0],
        asked.alter(few={**EVERYTHING, "metrics": "org.apache.kafka.producer.node."}, validate_only=True)[0][
            0
        ],
    ]

    assert codes == [INVALID, NONE]
    assert (asked.stored("all"), asked.stored("few")) == ({}, {})


def test_replaced_configuration_is_estimated() -> None:
    asked = host(EstimateMode.REFUSE, series=1)
    greet(asked)
    configs = [alter_configs.AlterableConfig(name=key, value=value) for key, value in EVERYTHING.items()]
    resource = alter_configs.AlterConfigsResource(
        resource_type=ResourceType.CLIENT_METRICS, resource_name="all", configs=configs
    )

    (row,) = asked.client.send(alter_configs.AlterConfigsRequest(resources=[resource])).responses

    assert row.error_code == INVALID


def test_invalid_change_has_its_own_error() -> None:
    asked = host(EstimateMode.REFUSE, series=1)
    greet(asked)

    ((code, message),) = asked.alter(all={**EVERYTHING, "interval.ms": "5"})

    assert (code, "must be between" in message) == (ErrorCode.INVALID_REQUEST, True)


def test_subscriptions_of_one_request_add_up() -> None:
    asked = host(EstimateMode.REFUSE, series=20)
    greet(asked)
    some = {"metrics": "org.apache.kafka.producer.topic.", "interval.ms": "1000"}
    others = {"metrics": "org.apache.kafka.producer.node.", "interval.ms": "1000"}

    codes = [code for code, _ in asked.alter(some=some, others=others)]

    assert codes == [NONE, INVALID]
    assert (asked.stored("some"), asked.stored("others")) == (some, {})


def test_fewer_series_are_accepted_over_the_budget() -> None:
    asked = host(EstimateMode.REFUSE, spool=True, series=1)
    push(asked, "java-producer")
    asked.client.broker.estimates, estimates = None, asked.client.broker.estimates
    asked.alter(all={"metrics": "org.apache.kafka.", "interval.ms": "2000"})
    asked.client.broker.estimates = estimates

    codes = [
        asked.alter(all={"metrics": "org.apache.kafka.producer."})[0][0],
        asked.alter(all={"metrics": None, "interval.ms": None})[0][0],
    ]

    assert codes == [NONE, NONE]


def push(asked: Asked, client: str) -> None:
    """Store a push of a recorded client as if it came now."""
    sink = asked.client.broker.sink
    assert isinstance(sink, TelemetrySpool)
    clock = asked.client.broker.clock
    record = recorded(client)[1].record
    sink.take_record(replace(record, context=replace(record.context, received_ms=clock.now_ms())))
    clock.advance(1_000)  # type: ignore[attr-defined]
    asked.client.broker.timer.run_due(clock.monotonic_ms())


def test_series_are_counted_in_the_log_and_large_pushes_by_a_worker() -> None:
    asked = host(EstimateMode.REFUSE, spool=True, series=1)
    for client in ("java-producer", "java-consumer", "librdkafka-producer"):
        push(asked, client)
    asked.client.broker.estimates, estimates = None, asked.client.broker.estimates
    asked.alter(all={"metrics": "org.apache.kafka.", "interval.ms": "2000"})
    asked.client.broker.estimates = estimates

    ((code, _),) = asked.alter(more={"metrics": "*", "interval.ms": "1000"})

    assert code == NONE  # 104 + 128 + 10 series, as now
    assert [len(work.data) > 20_000 for work in asked.offloaded] == [True]
    ((code, message),) = asked.alter(fast={"metrics": "com.example.", "interval.ms": "100"})
    assert (code, message) == (NONE, "")


def test_pushes_that_no_worker_opens_are_one_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    asked = host(EstimateMode.REFUSE, spool=True, series=1)
    for _ in range(3):
        push(asked, "java-producer")
    assert asked.client.broker.estimates is not None
    asked.client.broker.estimates.offload = lambda work, done: done(OSError("too many payloads wait"))
    asked.client.broker.telemetry.inline_bytes = 0

    asked.alter(all=EVERYTHING)

    (line,) = [each for each in caplog.records if "cannot be read" in each.message]
    assert (line.levelname, line.__dict__["pushes"]) == ("WARNING", 3)
    assert line.__dict__["problem"] == "too many payloads wait"


class Unreadable:
    """A log whose disk fails."""

    def since(self, timestamp_ms: int) -> Iterator[Step]:
        raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR)

    def ends(self) -> dict[int, int]:
        return {}

    def read(self, positions: Mapping[int, int]) -> list[Chunk]:
        return []


def test_log_that_cannot_be_read_leaves_guesses(caplog: pytest.LogCaptureFixture) -> None:
    asked = host(EstimateMode.REFUSE, series=1)
    greet(asked)
    assert asked.client.broker.estimates is not None
    asked.client.broker.estimates.pushes = Unreadable()  # type: ignore[assignment]

    ((code, message),) = asked.alter(all=EVERYTHING)

    assert (code, "guessed 100 %" in message) == (INVALID, True)
    assert "pushes cannot be read for an estimate" in [each.message for each in caplog.records]


class Nobody:
    """An authorizer that allows nothing."""

    def authorize(self, context: RequestContext, actions: Sequence[Action]) -> Sequence[Decision]:
        return [Decision(is_allowed=False) for _ in actions]

    def authorize_by_resource_type(
        self, context: RequestContext, operation: AclOperation, resource_type: AclResourceType
    ) -> Decision:
        return Decision(is_allowed=False)


class Counting:
    """Estimates nothing, and tells what it was asked."""

    def __init__(self) -> None:
        self.asked: list[Mapping[str, Mapping[str, str]]] = []

    def refusals(
        self, changes: Mapping[str, Mapping[str, str]]
    ) -> Generator[Step, Any, Mapping[str, ApiError]]:
        self.asked.append(changes)
        yield None
        return {}


def test_caller_without_the_right_costs_no_estimate() -> None:
    counting = []
    for authorizer in (Nobody(), None):
        broker = make_broker(authorizer=authorizer)
        estimates = Counting()
        broker.estimates = estimates  # type: ignore[assignment]
        ((code, _),) = Asked(BrokerClient(broker)).alter(all=EVERYTHING)
        counting.append((code, estimates.asked))

    assert counting == [(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, [{}]), (NONE, [{"all": EVERYTHING}])]
