from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from odradek.broker.broker import Broker
from odradek.metadata.store import MetadataStore
from odradek.wire.config_resource import ConfigOperation, ResourceType
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from odradek.wire.messages.list_config_resources import ListConfigResourcesRequest
from support.broker import BrokerClient, make_broker

SET, DELETE, APPEND, SUBTRACT = ConfigOperation
CLIENT_METRICS, TOPIC, BROKER, GROUP = (
    ResourceType.CLIENT_METRICS,
    ResourceType.TOPIC,
    ResourceType.BROKER,
    ResourceType.GROUP,
)
OK = (ErrorCode.NONE, None)


def change(name: str, *keys: tuple[str, int, str | None], kind: int = CLIENT_METRICS) -> AlterConfigsResource:
    return AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[
            AlterableConfig(name=key, config_operation=operation, value=value)
            for key, operation, value in keys
        ],
    )


def setting(name: str, **values: str) -> AlterConfigsResource:
    return change(name, *((key.replace("_", "."), SET, value) for key, value in values.items()))


def ask(
    broker: Broker, *resources: AlterConfigsResource, validate_only: bool = False
) -> list[tuple[int, str | None]]:
    """The error code and message of each resource."""
    request = IncrementalAlterConfigsRequest(resources=list(resources), validate_only=validate_only)
    response = BrokerClient(broker).send(request)
    assert [(row.resource_type, row.resource_name) for row in response.responses] == [
        (row.resource_type, row.resource_name) for row in resources
    ]
    return [(row.error_code, row.error_message) for row in response.responses]


def stored(broker: Broker, name: str, kind: int = CLIENT_METRICS) -> Mapping[str, str]:
    return broker.metadata.resource(kind, name)


def test_a_subscription_is_stored_and_in_force_at_once() -> None:
    broker = make_broker()

    answer = ask(broker, setting("sub-1", metrics="a,b", interval_ms="1000"))

    assert answer == [OK]
    assert stored(broker, "sub-1") == {"metrics": "a,b", "interval.ms": "1000"}
    assert list(broker.telemetry.subscriptions.by_name) == ["sub-1"]
    assert broker.telemetry.subscriptions.by_name["sub-1"].interval_ms == 1000


def test_omitted_keys_stay() -> None:
    broker = make_broker()
    ask(broker, setting("sub-1", metrics="a", interval_ms="1000"))

    ask(broker, change("sub-1", ("interval.ms", DELETE, None), ("match", SET, "client_id=x")))

    assert stored(broker, "sub-1") == {"metrics": "a", "match": "client_id=x"}
    assert broker.telemetry.subscriptions.by_name["sub-1"].interval_ms == 300_000


def test_a_subscription_without_keys_is_deleted() -> None:
    broker = make_broker()
    ask(broker, setting("sub-1", metrics="a"))

    answer = ask(broker, change("sub-1", ("metrics", DELETE, None)))

    assert answer == [OK]
    assert list(broker.telemetry.subscriptions.by_name) == []
    assert broker.metadata.resource_names(CLIENT_METRICS) == []


@pytest.mark.parametrize(
    "resource",
    [
        setting("sub-1", metrics="a"),
        change("sub-1", ("match", DELETE, None)),
        change("sub-1"),
        change("other", ("metrics", DELETE, None)),
        change("sub-1", ("nonsense", DELETE, None)),
    ],
)
def test_an_alteration_without_effect_re_evaluates_no_client(resource: AlterConfigsResource) -> None:
    broker = make_broker()
    ask(broker, setting("sub-1", metrics="a"))
    version = broker.telemetry.subscriptions.version

    answer = ask(broker, resource)

    assert answer == [OK]
    assert broker.telemetry.subscriptions.version == version


def test_the_merged_result_is_validated() -> None:
    broker = make_broker()
    broker.metadata.put_resource(CLIENT_METRICS, "old", {"random": "left by an older host"})

    answer = ask(broker, setting("old", metrics="a"))

    assert answer == [(ErrorCode.INVALID_REQUEST, "Unknown client metrics configuration: random")]
    assert stored(broker, "old") == {"random": "left by an older host"}


def test_one_bad_key_refuses_its_resource_and_no_other() -> None:
    broker = make_broker()

    bad, good = ask(broker, setting("bad", metrics="a", interval_ms="99"), setting("good", metrics="a"))

    assert bad[0] == ErrorCode.INVALID_REQUEST
    assert "interval must be between 100 and 3600000" in (bad[1] or "")
    assert good == OK
    assert list(broker.telemetry.subscriptions.by_name) == ["good"]
    assert stored(broker, "bad") == {}


@pytest.mark.parametrize(
    ("values", "code", "message"),
    [
        ({"interval_ms": "bbb"}, ErrorCode.INVALID_CONFIG, "Not a number of type INT"),
        ({"interval_ms": "3600001"}, ErrorCode.INVALID_REQUEST, "Invalid value 3600001 for interval.ms"),
        ({"match": "10"}, ErrorCode.INVALID_CONFIG, "Illegal client matching pattern: 10"),
        ({"match": "client_id=[unclosed"}, ErrorCode.INVALID_CONFIG, "client_id=[unclosed"),
        ({"random": "x"}, ErrorCode.INVALID_REQUEST, "Unknown client metrics configuration: random"),
    ],
)
def test_bad_values_are_refused_with_kafkas_messages(
    values: dict[str, str], code: ErrorCode, message: str
) -> None:
    broker = make_broker()

    ((found, words),) = ask(broker, setting("sub-1", **values))

    assert found == code
    assert message in (words or "")
    assert list(broker.telemetry.subscriptions.by_name) == []


def test_metrics_can_be_empty_and_both_keys_deleted() -> None:
    broker = make_broker()

    empty = ask(broker, setting("sub-1", metrics="", interval_ms="6000"))
    deleted = ask(broker, change("sub-1", ("metrics", DELETE, None), ("interval.ms", DELETE, None)))

    assert empty == deleted == [OK]
    assert list(broker.telemetry.subscriptions.by_name) == []


def test_a_repeated_resource_is_refused_and_its_sibling_is_not() -> None:
    broker = make_broker()

    answers = ask(
        broker, setting("sub1", metrics="a"), setting("sub", metrics="b"), setting("sub1", metrics="c")
    )

    refused = (ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
    assert answers == [refused, OK, refused]
    assert list(broker.telemetry.subscriptions.by_name) == ["sub"]


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ([("metrics", SET, "a"), ("metrics", DELETE, None)], "Error due to duplicate config keys"),
        ([("metrics", SET, None), ("match", APPEND, None)], "Null value not supported for : metrics, match"),
        ([("metrics", SET, None), ("metrics", SET, None)], "Error due to duplicate config keys"),
    ],
)
def test_the_form_is_checked_in_kafkas_order(keys: list[tuple[str, int, str | None]], message: str) -> None:
    broker = make_broker()

    answer = ask(broker, change("sub-1", *keys))

    assert answer == [(ErrorCode.INVALID_REQUEST, message)]


@pytest.mark.parametrize("kind", [0, 1, 124])
def test_an_unknown_resource_type_is_refused(kind: int) -> None:
    broker = make_broker()

    answer = ask(broker, change("x", ("metrics", SET, "*"), kind=kind))

    assert answer == [(ErrorCode.INVALID_REQUEST, f"Unknown resource type {kind}")]


@pytest.mark.parametrize(("operation", "verb"), [(APPEND, "APPEND"), (SUBTRACT, "SUBTRACT")])
def test_appending_to_a_subscription_is_refused(operation: int, verb: str) -> None:
    broker = make_broker()

    answer = ask(broker, change("sub-1", ("metrics", operation, "a")))

    assert answer == [
        (ErrorCode.INVALID_CONFIG, f"Can't {verb} to key metrics because its type is not LIST.")
    ]


def test_an_unknown_operation_is_kafkas_unknown_error() -> None:
    broker = make_broker()

    answers = ask(broker, change("sub-1", ("metrics", 9, "a")), setting("sub-2", metrics="a"))

    assert answers == [(ErrorCode.UNKNOWN_SERVER_ERROR, None), OK]


def test_validate_only_returns_the_result_and_stores_nothing() -> None:
    broker = make_broker()

    good, bad = ask(broker, setting("good", metrics="*"), setting("bad", interval_ms="1"), validate_only=True)

    assert good == OK
    assert bad[0] == ErrorCode.INVALID_REQUEST
    assert list(broker.telemetry.subscriptions.by_name) == []
    assert broker.metadata.resource_names(CLIENT_METRICS) == []


def test_an_answered_change_is_in_the_file(tmp_path: Path) -> None:
    store = MetadataStore(tmp_path / "metadata.db")

    ask(make_broker(metadata=store), setting("sub-1", metrics="a"))

    other_process = MetadataStore(store.path)
    assert other_process.resource(CLIENT_METRICS, "sub-1") == {"metrics": "a"}
    other_process.close()
    store.close()


def test_a_topics_key_changes_its_logs() -> None:
    broker = make_broker()
    topic = broker.topics.create("t", 2, {})

    answer = ask(broker, change("t", ("retention.ms", SET, "1000"), kind=TOPIC))

    assert answer == [OK]
    assert stored(broker, "t", TOPIC) == {"retention.ms": "1000"}
    assert topic.config.retention_ms == 1000
    assert [log.config.retention_ms for log in topic.partitions] == [1000, 1000]


def test_a_topics_list_is_changed_item_by_item() -> None:
    broker = make_broker()
    broker.topics.create("t", 1, {"cleanup.policy": "delete"})

    appended = ask(broker, change("t", ("cleanup.policy", APPEND, "compact,delete"), kind=TOPIC))
    both = stored(broker, "t", TOPIC)
    subtracted = ask(broker, change("t", ("cleanup.policy", SUBTRACT, "delete"), kind=TOPIC))

    assert appended == subtracted == [OK]
    assert both == {"cleanup.policy": "delete,compact"}
    assert stored(broker, "t", TOPIC) == {"cleanup.policy": "compact"}


@pytest.mark.parametrize(
    ("name", "key", "operation", "code", "message"),
    [
        ("t", "retention.ms", APPEND, ErrorCode.INVALID_CONFIG, "Can't APPEND to key retention.ms"),
        ("t", "nonsense", SET, ErrorCode.INVALID_CONFIG, "Unknown topic config name: nonsense"),
        ("t", "segment.bytes", SET, ErrorCode.INVALID_CONFIG, "segment.bytes"),
        (
            "nowhere",
            "retention.ms",
            SET,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "The topic 'nowhere' does not exist.",
        ),
        ("", "retention.ms", SET, ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed."),
        ("a b", "retention.ms", SET, ErrorCode.INVALID_TOPIC_EXCEPTION, "a b"),
    ],
)
def test_a_topics_bad_change_is_refused(
    name: str, key: str, operation: int, code: ErrorCode, message: str
) -> None:
    broker = make_broker()
    broker.topics.create("t", 1, {})

    ((found, words),) = ask(
        broker, change(name, (key, operation, "x" if key == "segment.bytes" else "1"), kind=TOPIC)
    )

    assert found == code
    assert message in (words or "")
    assert stored(broker, name, TOPIC) == {}


@pytest.mark.parametrize(
    ("kind", "name", "code", "message"),
    [
        (BROKER, "1", ErrorCode.INVALID_REQUEST, "Cannot update these configs dynamically: [num.partitions]"),
        (BROKER, "", ErrorCode.INVALID_REQUEST, "Cannot update these configs dynamically: [num.partitions]"),
        (BROKER, "7", ErrorCode.INVALID_REQUEST, "Unexpected broker id, expected 1, but received 7"),
        (BROKER, "x", ErrorCode.INVALID_REQUEST, "Node id must be an integer, but it is: x"),
        (GROUP, "g", ErrorCode.INVALID_CONFIG, "Unknown group config name: num.partitions"),
        (GROUP, "", ErrorCode.INVALID_REQUEST, "Default group resources are not allowed."),
    ],
)
def test_a_resource_that_cannot_be_altered_is_refused(
    kind: int, name: str, code: ErrorCode, message: str
) -> None:
    broker = make_broker()

    answer = ask(broker, change(name, ("num.partitions", SET, "3"), kind=kind))

    assert answer == [(code, message)]


def test_a_bug_half_way_leaves_the_file_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = make_broker()
    put = MetadataStore.put_resource

    def fail_at_second(store: MetadataStore, kind: int, name: str, properties: Mapping[str, str]) -> None:
        put(store, kind, name, properties)
        if name == "two":
            raise ZeroDivisionError

    monkeypatch.setattr(MetadataStore, "put_resource", fail_at_second)

    answers = ask(broker, setting("one", metrics="a"), setting("two", metrics="a"))

    assert answers == [(ErrorCode.UNKNOWN_SERVER_ERROR, None)] * 2
    assert broker.metadata.resource_names(CLIENT_METRICS) == []
    assert BrokerClient(broker).send(ListConfigResourcesRequest(), 0).config_resources == []


def test_a_value_does_not_become_longer_than_in_kafka() -> None:
    broker = make_broker()
    broker.topics.create("t", 1, {})
    most = ",".join(f"{partition}:1" for partition in range(4_900))[:32_760].rpartition(",")[0]

    def ask_for(operation: int, value: str) -> tuple[int, str | None]:
        key = "leader.replication.throttled.replicas"
        (answer,) = ask(broker, change("t", (key, operation, value), kind=TOPIC))
        return answer

    assert ask_for(SET, most) == (ErrorCode.NONE, None)
    assert ask_for(APPEND, "5000:1,5001:1,5002:1") == (
        ErrorCode.INVALID_CONFIG,
        "The configuration value cannot be added because it exceeds the maximum value size of 32767 bytes.",
    )
