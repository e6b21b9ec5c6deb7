"""The limits of ``match``: its length, its compiled size, and the number of subscriptions."""

from __future__ import annotations

import re
from typing import Any

import pytest
import re2

from odradek.broker.broker import Broker
from odradek.broker.configs.config_changes import KeyChange, ResourceChange
from odradek.broker.configs.config_changes import alter as alter_in_steps
from odradek.broker.configs.config_rights import ConfigRights
from odradek.metadata.store import MetadataStore
from odradek.plugin.authorizer import AclOperation
from odradek.server.config import load_config
from odradek.steps import run_steps
from odradek.telemetry.instance_match import ClientMetricsInstanceMetadata
from odradek.telemetry.subscriptions import MAX_PLANS
from odradek.wire.config_resource import ConfigOperation, ResourceType
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from support.broker import BrokerClient, make_broker, make_context

OK = ErrorCode.NONE
CLIENT_METRICS = ResourceType.CLIENT_METRICS


def broker_with(*overrides: str, metadata: MetadataStore | None = None) -> Broker:
    config = load_config(None, overrides)
    return make_broker(telemetry=config.telemetry, metadata=metadata)


def alter(
    broker: Broker, *subscriptions: tuple[str, str], validate_only: bool = False
) -> list[tuple[int, str | None]]:
    """Set the ``match`` of subscriptions by name; return the error code and message of each."""
    request = IncrementalAlterConfigsRequest(
        resources=[
            AlterConfigsResource(
                resource_type=CLIENT_METRICS,
                resource_name=name,
                configs=[AlterableConfig(name="match", config_operation=ConfigOperation.SET, value=match)],
            )
            for name, match in subscriptions
        ],
        validate_only=validate_only,
    )
    return [(row.error_code, row.error_message) for row in BrokerClient(broker).send(request).responses]


@pytest.fixture
def compiled_chars(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The lengths of all patterns that an engine compiles."""
    lengths: list[int] = []

    def counting(compile_pattern: Any) -> Any:
        def compile_counted(pattern: str, *options: Any) -> Any:
            lengths.append(len(pattern))
            return compile_pattern(pattern, *options)

        return compile_counted

    monkeypatch.setattr(re2, "compile", counting(re2.compile))
    monkeypatch.setattr(re, "compile", counting(re.compile))
    return lengths


@pytest.mark.parametrize("pattern", ["a" * 10_000_000, "(" * 3_000, r"\pL" * 10_000])
def test_a_long_match_is_refused_before_it_is_compiled(pattern: str, compiled_chars: list[int]) -> None:
    ((code, message),) = alter(make_broker(), ("s", f"client_id={pattern}"), validate_only=True)

    assert code == ErrorCode.INVALID_CONFIG
    assert len(message or "") < 200
    assert sum(compiled_chars) < 200


@pytest.mark.parametrize("pattern", [r"\pL" * 600, "a{1000}" * 250])
def test_a_match_that_expands_is_refused_before_it_is_compiled(
    pattern: str, compiled_chars: list[int]
) -> None:
    ((code, message),) = alter(make_broker(), ("s", f"client_id={pattern}"))

    assert code == ErrorCode.INVALID_CONFIG
    assert "more than 100 Unicode classes and repetition counts" in (message or "")
    assert sum(compiled_chars) < 200


@pytest.mark.parametrize(("length", "steps"), [(2_000, 20), (10, 1)])
def test_long_matches_are_changed_one_in_a_step(length: int, steps: int) -> None:
    keys = [KeyChange("match", ConfigOperation.SET, "client_id=" + "a" * length)]
    changes = [ResourceChange(type=CLIENT_METRICS, name=str(number), keys=keys) for number in range(20)]

    broker = make_broker()
    rights = ConfigRights(broker.authorization, make_context(), AclOperation.ALTER_CONFIGS)
    assert run_steps(alter_in_steps(changes, True, rights, broker)) == steps


def test_a_match_with_a_large_program_is_refused() -> None:
    ((code, message),) = alter(make_broker(), ("s", r"client_id=\pL{100}"))

    assert code == ErrorCode.INVALID_CONFIG
    assert "pattern too large" in (message or "")


def test_the_setting_of_the_length_is_named() -> None:
    broker = broker_with("telemetry.match.max.length=20")

    answers = alter(broker, ("s", "client_id=" + "a" * 10), ("t", "client_id=" + "a" * 11))

    assert answers == [
        (OK, None),
        (
            ErrorCode.INVALID_CONFIG,
            "A client match of 21 characters is longer than telemetry.match.max.length allows (20).",
        ),
    ]


def test_the_patterns_of_all_subscriptions_share_one_bound() -> None:
    broker = broker_with("telemetry.match.max.steps=50")

    answers = alter(broker, *((f"s{index}", "client_id=producer-.*") for index in range(4)))

    assert [code for code, _ in answers] == [OK, OK, ErrorCode.POLICY_VIOLATION, ErrorCode.POLICY_VIOLATION]
    assert (answers[2][1] or "").startswith("telemetry.match.max.steps allows 50 match steps: the host has ")
    assert broker.telemetry.subscriptions.steps_limit.refusals.number == 2


def test_a_smaller_match_is_accepted_at_the_bound() -> None:
    broker = broker_with("telemetry.match.max.steps=50")
    alter(broker, ("a", "client_id=producer-.*"), ("b", "client_id=producer-.*"))

    answers = alter(broker, ("a", "client_id=p"), ("c", "client_id=p"))

    assert answers == [(OK, None), (OK, None)]


def change_metrics(broker: Broker, name: str, metrics: str) -> int:
    keys = [AlterableConfig(name="metrics", config_operation=ConfigOperation.SET, value=metrics)]
    resource = AlterConfigsResource(resource_type=CLIENT_METRICS, resource_name=name, configs=keys)
    (answer,) = BrokerClient(broker).send(IncrementalAlterConfigsRequest(resources=[resource])).responses
    code: int = answer.error_code
    return code


def test_the_metrics_of_all_subscriptions_share_one_bound() -> None:
    broker = broker_with("telemetry.metrics.max=5")

    codes = [
        change_metrics(broker, "a", "m1,m2,m3"),
        change_metrics(broker, "b", "m1,m2,m3"),
        change_metrics(broker, "a", "m4"),
        change_metrics(broker, "b", "m1,m2,m3,m4"),
    ]

    assert codes == [OK, ErrorCode.POLICY_VIOLATION, OK, OK]
    assert broker.telemetry.subscriptions.total_metrics == 5


def test_clients_that_each_have_their_own_subscriptions_are_not_all_remembered() -> None:
    broker = broker_with()
    alter(broker, *((f"s{bit}", f"client_id=.{{{bit}}}1.*") for bit in range(11)))
    subscriptions = broker.telemetry.subscriptions

    plans = {
        subscriptions.plan(ClientMetricsInstanceMetadata(bytes(16), f"{number:011b}", None, None, None, None))
        for number in range(2_048)
    }

    assert subscriptions.plans is not None
    assert len(subscriptions.plans.remembered) <= MAX_PLANS < 2_048
    assert len(plans) == 1  # equal plans, but made for each combination


def test_the_number_of_subscriptions_is_bounded() -> None:
    broker = broker_with("telemetry.subscriptions.max=2")

    answers = alter(
        broker, ("a", "client_id=a"), ("b", "client_id=("), ("c", "client_id=c"), ("d", "client_id=d")
    )

    assert [code for code, _ in answers] == [
        OK,
        ErrorCode.INVALID_CONFIG,
        OK,
        ErrorCode.POLICY_VIOLATION,
    ]
    assert answers[3][1] == (
        "telemetry.subscriptions.max allows 2 subscriptions: the host has 2, the request adds 1."
    )
    assert alter(broker, ("a", "client_id=x")) == [(OK, None)]


def test_a_request_that_only_validates_reserves_nothing() -> None:
    broker = broker_with("telemetry.subscriptions.max=1")
    alter(broker, ("a", "client_id=a"), validate_only=True)

    assert alter(broker, ("b", "client_id=b")) == [(OK, None)]


def test_a_stored_match_beyond_the_bounds_stays_and_can_be_edited() -> None:
    broker = broker_with("telemetry.match.max.length=20", "telemetry.match.max.steps=5")
    stored = {"match": "client_id=" + "a" * 50}
    broker.metadata.put_resource(CLIENT_METRICS, "old", stored)
    broker.telemetry.update_subscription("old", stored)

    request = IncrementalAlterConfigsRequest(
        resources=[
            AlterConfigsResource(
                resource_type=CLIENT_METRICS,
                resource_name="old",
                configs=[AlterableConfig(name="metrics", config_operation=ConfigOperation.SET, value="a")],
            )
        ]
    )
    (answer,) = BrokerClient(broker).send(request).responses

    assert answer.error_code == OK
    assert broker.telemetry.subscriptions.by_name["old"].metrics == ("a",)
    assert alter(broker, ("new", "client_id=a"))[0][0] == ErrorCode.POLICY_VIOLATION


@pytest.mark.parametrize(("length", "code"), [(32_767, OK), (32_768, ErrorCode.INVALID_CONFIG)])
def test_a_value_is_as_long_as_in_kafka(length: int, code: ErrorCode) -> None:
    request = IncrementalAlterConfigsRequest(
        resources=[
            AlterConfigsResource(
                resource_type=CLIENT_METRICS,
                resource_name="s",
                configs=[
                    AlterableConfig(name="metrics", config_operation=ConfigOperation.SET, value="m" * length)
                ],
            )
        ]
    )

    (answer,) = BrokerClient(make_broker()).send(request).responses

    assert answer.error_code == code
    if code:
        assert answer.error_message == (
            "The configuration value cannot be added because it exceeds the maximum value size of 32767 "
            "bytes."
        )
