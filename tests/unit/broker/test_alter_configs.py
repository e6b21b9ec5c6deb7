from __future__ import annotations

import pytest

from odradek.broker.broker import Broker
from odradek.wire.config_resource import ResourceType
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.alter_configs import AlterableConfig, AlterConfigsRequest, AlterConfigsResource
from support.broker import BrokerClient, make_broker

SUBSCRIPTION, TOPIC = ResourceType.CLIENT_METRICS, ResourceType.TOPIC
OK = (ErrorCode.NONE, None)


def replacement(name: str, values: dict[str, str | None], kind: int = SUBSCRIPTION) -> AlterConfigsResource:
    keys = [AlterableConfig(name=key, value=value) for key, value in values.items()]
    return AlterConfigsResource(resource_type=kind, resource_name=name, configs=keys)


def ask(
    broker: Broker, *resources: AlterConfigsResource, validate_only: bool = False, version: int = 2
) -> list[tuple[int, str | None]]:
    request = AlterConfigsRequest(resources=list(resources), validate_only=validate_only)
    response = BrokerClient(broker).send(request, version)
    return [(row.error_code, row.error_message) for row in response.responses]


@pytest.mark.parametrize("version", [0, 1, 2])
def test_omitted_keys_return_to_their_defaults(version: int) -> None:
    broker = make_broker()
    ask(broker, replacement("sub-1", {"metrics": "a", "interval.ms": "1000"}))

    answer = ask(broker, replacement("sub-1", {"match": "client_id=x"}), version=version)

    assert answer == [OK]
    assert broker.metadata.resource(SUBSCRIPTION, "sub-1") == {"match": "client_id=x"}
    assert broker.telemetry.subscriptions.by_name["sub-1"].metrics == ()


def test_replacing_with_no_keys_deletes_the_subscription() -> None:
    broker = make_broker()
    ask(broker, replacement("sub-1", {"metrics": "a"}))

    answer = ask(broker, replacement("sub-1", {}))

    assert answer == [OK]
    assert list(broker.telemetry.subscriptions.by_name) == []


def test_an_identical_replacement_re_evaluates_no_client() -> None:
    broker = make_broker()
    ask(broker, replacement("sub-1", {"metrics": "a"}))
    version = broker.telemetry.subscriptions.version

    ask(broker, replacement("sub-1", {"metrics": "a"}))

    assert broker.telemetry.subscriptions.version == version


def test_a_repeated_resource_is_refused_although_kafka_does_not_answer() -> None:
    broker = make_broker()

    answers = ask(broker, replacement("sub-1", {"metrics": "a"}), replacement("sub-1", {"metrics": "b"}))

    assert answers == [(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")] * 2
    assert list(broker.telemetry.subscriptions.by_name) == []


@pytest.mark.parametrize(
    ("values", "code", "message"),
    [
        ({"metrics": None}, ErrorCode.INVALID_REQUEST, "Null value not supported for : metrics"),
        ({"random": "x"}, ErrorCode.INVALID_REQUEST, "Unknown client metrics configuration: random"),
        ({"interval.ms": "bbb"}, ErrorCode.INVALID_CONFIG, "Not a number of type INT"),
    ],
)
def test_a_refused_replacement_leaves_the_old_keys(
    values: dict[str, str | None], code: ErrorCode, message: str
) -> None:
    broker = make_broker()
    ask(broker, replacement("sub-1", {"metrics": "a"}))

    ((found, words),) = ask(broker, replacement("sub-1", values))

    assert found == code
    assert message in (words or "")
    assert broker.metadata.resource(SUBSCRIPTION, "sub-1") == {"metrics": "a"}


def test_validate_only_stores_nothing() -> None:
    broker = make_broker()

    answer = ask(broker, replacement("sub-1", {"metrics": "a"}), validate_only=True)

    assert answer == [OK]
    assert list(broker.telemetry.subscriptions.by_name) == []


def test_a_topics_configuration_is_replaced() -> None:
    broker = make_broker()
    topic = broker.topics.create("t", 1, {"retention.ms": "1000"})

    answer = ask(broker, replacement("t", {"retention.bytes": "5"}, TOPIC))

    assert answer == [OK]
    assert topic.config.retention_ms == 604_800_000
    assert topic.partitions[0].config.retention_bytes == 5


def test_a_bug_is_an_error_for_every_resource(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = make_broker()
    broken = replacement("sub-1", {"metrics": "a"})
    monkeypatch.setattr("odradek.broker.configs.config_changes.check_form", None)

    answers = ask(broker, broken, replacement("sub-2", {}))

    assert answers == [(ErrorCode.UNKNOWN_SERVER_ERROR, None)] * 2
