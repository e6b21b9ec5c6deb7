"""The limits of ``match``: its length, its compiled size, and the number of subscriptions."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Generator
from typing import Any

import pytest
import re2

from odradek.bounds.bounded_regex import verdict
from odradek.broker.broker import Broker
from odradek.broker.configs.config_changes import KeyChange, ResourceChange
from odradek.broker.configs.config_changes import alter as alter_in_steps
from odradek.broker.configs.config_rights import ConfigRights
from odradek.estimate.budgets import EstimateMode, SubscriptionBudgets
from odradek.estimate.subscription_estimates import SubscriptionEstimates
from odradek.metadata.store import MetadataStore
from odradek.plugin.authorizer import AclOperation
from odradek.programs.config import load_config
from odradek.telemetry.instance_match import ClientMetricsInstanceMetadata
from odradek.telemetry.subscriptions import MAX_PLANS
from odradek.waiting.steps import Step
from odradek.wire.config_resource import ConfigOperation, ResourceType
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from support.acls import standard_authorizer
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
    verdict.cache_clear()
    lengths: list[int] = []

    def counting(compile_pattern: Any) -> Any:
        def compile_counted(pattern: str, *options: Any) -> Any:
            lengths.append(len(pattern))
            return compile_pattern(pattern, *options)

        return compile_counted

    monkeypatch.setattr(re2, "compile", counting(re2.compile))
    monkeypatch.setattr(re, "compile", counting(re.compile))
    return lengths


@pytest.mark.parametrize("pattern", ["a" * 30_000, "(" * 3_000, r"\pL" * 10_000])
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


def set_to(*matches: str) -> list[ResourceChange]:
    """A change of as many subscriptions."""
    return [
        ResourceChange(
            type=CLIENT_METRICS, name=f"s{number}", keys=[KeyChange("match", ConfigOperation.SET, match)]
        )
        for number, match in enumerate(matches)
    ]


def steps_of(changes: list[ResourceChange], broker: Broker) -> Generator[Step, Any, object]:
    rights = ConfigRights(broker.authorization, make_context(), AclOperation.ALTER_CONFIGS)
    return alter_in_steps(changes, True, rights, broker)


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The patterns that are compiled from now on."""
    verdict.cache_clear()
    found: list[str] = []
    compile_pattern = re2.compile

    def counted(pattern: str, *options: Any) -> Any:
        found.append(pattern)
        return compile_pattern(pattern, *options)

    monkeypatch.setattr(re2, "compile", counted)
    return found


@pytest.mark.parametrize(
    "matches", [[r"client_id=(\pL{100}.{100}){2}x%d"], ["client_id=%d", "client_id=(?!%d)"]]
)
@pytest.mark.parametrize("estimates", [True, False])
def test_a_step_compiles_one_pattern(matches: list[str], estimates: bool, compiled: list[str]) -> None:
    broker = make_broker()
    if estimates:
        budgets, offload = SubscriptionBudgets(mode=EstimateMode.REFUSE), lambda _work, _done: None
        broker.estimates = SubscriptionEstimates(budgets, broker.telemetry, broker.clock, None, offload)
    changes, most = set_to(*(match % number for number in range(60) for match in matches)), 0

    steps = steps_of(changes, broker)
    with contextlib.suppress(StopIteration):
        while True:
            compiled.clear()
            next(steps)
            most = max(most, len(set(compiled)))

    assert most == 1


def test_requests_that_take_turns_compile_few_patterns_in_a_step(compiled: list[str]) -> None:
    broker, most = make_broker(), 0
    requests = [
        steps_of(set_to(*(f"client_id={request}x{number}" for number in range(60))), broker)
        for request in range(10)
    ]
    while requests:
        for each in list(requests):
            compiled.clear()
            try:
                next(each)
            except StopIteration:
                requests.remove(each)
            most = max(most, len(set(compiled)))

    assert most <= 6  # one for each selector of a subscription


def test_patterns_that_others_replace_are_not_compiled(compiled_chars: list[int]) -> None:
    match = ",".join(rf"client_id=\pL{{9{number}}}" for number in range(100)) + ",client_id=a"

    broker = make_broker()
    compiled_chars.clear()

    assert alter(broker, ("s", match)) == [(OK, None)]
    assert 1 in compiled_chars
    assert len(r"\pL{90}") not in compiled_chars


def test_clients_without_the_right_have_nothing_compiled(compiled_chars: list[int]) -> None:
    broker = make_broker(authorizer=standard_authorizer(super_users=()))

    ((code, _),) = alter(broker, ("s", "client_id=abc"))

    assert code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert compiled_chars == []


@pytest.mark.parametrize(
    ("pattern", "size"),
    [(r"\pL{100}", "more than 16384 steps"), (r"\pL{15}", "17944 steps, more than 16384")],
)
def test_a_match_with_a_large_program_is_refused_with_its_size(pattern: str, size: str) -> None:
    ((code, message),) = alter(make_broker(), ("s", f"client_id={pattern}"))

    assert code == ErrorCode.INVALID_CONFIG
    assert (
        message
        == f"Client match pattern `client_id={pattern}` is not a valid regular expression: it takes {size}."
    )


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [(r"\pL{100}", "it takes more than 16384 steps"), ("(?!x).*", "invalid perl operator: (?!")],
)
def test_a_stored_match_that_cannot_be_used_is_skipped_counted_and_named(
    pattern: str, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    broker = make_broker()
    telemetry, client = (
        broker.telemetry,
        ClientMetricsInstanceMetadata(bytes(16), "a", None, None, None, None),
    )
    telemetry.update_subscription("good", {"match": "client_id=a", "metrics": "of.good"})

    telemetry.update_subscription("bad", {"match": f"client_id={pattern}", "metrics": "of.bad"})
    telemetry.update_subscription("bad", {"match": f"client_id={pattern}", "metrics": "of.bad,more"})

    assert telemetry.subscriptions.skipped == {"bad": f"client_id: {reason}"}
    assert telemetry.subscriptions.plan(client).metrics == ("of.good",)
    (record,) = caplog.records
    assert (record.levelname, vars(record)["subscription"]) == ("WARNING", "bad")
    assert reason in record.getMessage()

    telemetry.update_subscription("bad", {"match": "client_id=a", "metrics": "of.bad"})

    assert telemetry.subscriptions.skipped == {}
    assert set(telemetry.subscriptions.plan(client).metrics) == {"of.good", "of.bad"}


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
    assert broker.telemetry.subscriptions.skipped == {"old": "client_id: it takes 54 steps, more than 5"}
