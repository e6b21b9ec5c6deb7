"""GROUP resources: described as by Kafka 4.3.1, and in force for existing groups."""

from __future__ import annotations

from odradek.broker.broker import Broker
from odradek.broker.configs.config_changes import KeyChange, ResourceChange, alter
from odradek.broker.configs.config_rights import ConfigRights
from odradek.group.group_config import GroupConfig
from odradek.group.group_properties import GROUP_KEYS
from odradek.plugin.authorizer import AclOperation
from odradek.waiting.steps import result_of
from odradek.wire.config_resource import ConfigOperation, ConfigSource, ResourceType
from odradek.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from odradek.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
)
from support.broker import BrokerClient, make_broker, make_context

SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
LETTERS = "errors.deadletterqueue.topic.name"
GROUPS_ALONE = (
    LETTERS,
    "share.auto.offset.reset",
    "share.isolation.level",
    "share.renew.acknowledge.enable",
)


def put(broker: Broker, **properties: str) -> None:
    """Replace the keys of group ``g``."""
    keys = [
        KeyChange(name.replace("_", "."), ConfigOperation.SET, value) for name, value in properties.items()
    ]
    change = ResourceChange(type=ResourceType.GROUP, name="g", keys=keys, replace=True)
    rights = ConfigRights(broker.authorization, make_context(), AclOperation.ALTER_CONFIGS)
    assert result_of(alter([change], False, rights, broker)) == [None]


def shown(broker: Broker) -> dict[str, DescribeConfigsResourceResult]:
    resource = DescribeConfigsResource(
        resource_type=ResourceType.GROUP, resource_name="g", configuration_keys=None
    )
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=True)
    (result,) = BrokerClient(broker).send(request, 4).results
    return {row.name: row for row in result.configs}


def beat(broker: Broker, epoch: int = 0) -> ConsumerGroupHeartbeatResponse:
    """The only member of group ``g``; it joins, or sends a heartbeat."""
    joins = epoch == 0
    request = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="m",
        member_epoch=epoch,
        rebalance_timeout_ms=60_000 if joins else -1,
        subscribed_topic_names=["t"] if joins else None,
        topic_partitions=[] if joins else None,
    )
    answer: ConsumerGroupHeartbeatResponse = BrokerClient(broker).send(request, 1)
    assert not answer.error_code
    return answer


def test_an_unconfigured_group_shows_the_values_in_force() -> None:
    broker = make_broker(groups=GroupConfig(consumer_session_timeout_ms=50_000))

    rows = shown(broker)

    assert sorted(rows) == sorted(GROUP_KEYS)
    assert (rows[HEARTBEAT].value, rows[HEARTBEAT].config_source) == ("5000", ConfigSource.DEFAULT)
    assert [(row.name, row.value, row.source) for row in rows[SESSION].synonyms] == [
        ("group.consumer.session.timeout.ms", "50000", ConfigSource.STATIC_BROKER),
        ("group.consumer.session.timeout.ms", "45000", ConfigSource.DEFAULT),
    ]


def test_a_groups_own_value_comes_before_the_hosts() -> None:
    broker = make_broker()

    put(broker, consumer_session_timeout_ms=" 51000 ")

    row = shown(broker)[SESSION]
    assert (row.value, row.config_source, row.read_only) == ("51000", ConfigSource.GROUP, False)
    assert [(synonym.name, synonym.value, synonym.source) for synonym in row.synonyms] == [
        (SESSION, "51000", ConfigSource.GROUP),
        ("group.consumer.session.timeout.ms", "45000", ConfigSource.DEFAULT),
    ]


def test_members_get_a_change_with_their_next_heartbeat() -> None:
    broker = make_broker()
    joined = beat(broker)

    put(broker, consumer_heartbeat_interval_ms="9000")

    assert joined.heartbeat_interval_ms == 5_000
    assert beat(broker, joined.member_epoch).heartbeat_interval_ms == 9_000


def test_a_group_created_later_uses_its_keys() -> None:
    broker = make_broker()
    put(broker, consumer_session_timeout_ms="60000", consumer_heartbeat_interval_ms="9000")

    joined = beat(broker)

    assert joined.heartbeat_interval_ms == 9_000
    broker.clock.advance(59_999)  # type: ignore[attr-defined]  # a clock that stands still
    assert not broker.groups.group("g").is_empty
    broker.clock.advance(1)  # type: ignore[attr-defined]
    assert broker.groups.group("g").is_empty


def test_a_group_whose_keys_are_deleted_uses_the_hosts_again() -> None:
    broker = make_broker()
    put(broker, consumer_heartbeat_interval_ms="9000")
    joined = beat(broker)

    put(broker)

    assert beat(broker, joined.member_epoch).heartbeat_interval_ms == 5_000
    assert not broker.groups.own_configs


def test_the_keys_of_a_group_survive_a_restart() -> None:
    before = make_broker()
    put(before, consumer_heartbeat_interval_ms="9000")

    after = make_broker(metadata=before.metadata)

    assert beat(after).heartbeat_interval_ms == 9_000


def test_keys_that_only_groups_have_are_described_with_their_defaults() -> None:
    broker = make_broker()
    put(broker, share_isolation_level="read_committed")

    rows = shown(broker)

    assert {name: (rows[name].value, rows[name].config_source) for name in GROUPS_ALONE} == {
        LETTERS: ("", ConfigSource.DEFAULT),
        "share.auto.offset.reset": ("latest", ConfigSource.DEFAULT),
        "share.isolation.level": ("read_committed", ConfigSource.GROUP),
        "share.renew.acknowledge.enable": ("true", ConfigSource.DEFAULT),
    }
    assert rows["share.auto.offset.reset"].synonyms == []


def test_the_host_can_change_the_assignment_interval_of_share_groups() -> None:
    broker = make_broker()
    put(broker, share_record_lock_duration_ms="20000")
    change = ResourceChange(
        type=ResourceType.BROKER,
        name="",
        keys=[KeyChange("group.share.assignment.interval.ms", ConfigOperation.SET, "0")],
    )
    rights = ConfigRights(broker.authorization, make_context(), AclOperation.ALTER_CONFIGS)

    assert result_of(alter([change], False, rights, broker)) == [None]

    own = broker.groups.own_configs["g"].share
    assert (broker.groups.config.share.assignment_interval_ms, own.assignment_interval_ms) == (0, 0)
    assert own.record_lock_duration_ms == 20_000
