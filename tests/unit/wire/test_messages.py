"""The declared messages against the facts of Kafka 4.4."""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Iterator
from typing import Any

import pytest

from odradek.wire.codec import decode, encode
from odradek.wire.layout import ArrayOf, StructOf, hints_of, layout, marks_of
from odradek.wire.messages.metadata import MetadataResponseTopic
from odradek.wire.types import LAST_VERSION, NEVER, Int32, String, Struct, Tag, Versions
from random_messages import declared_messages, declared_versions
from support.offenders import offenders

APIS = [
    # key, name, first and last version, first flexible version
    (0, "Produce", 3, 13, 9),
    (1, "Fetch", 4, 18, 12),
    (2, "ListOffsets", 1, 11, 6),
    (3, "Metadata", 0, 13, 9),
    (8, "OffsetCommit", 2, 10, 8),
    (9, "OffsetFetch", 1, 10, 6),
    (10, "FindCoordinator", 0, 6, 3),
    (11, "JoinGroup", 0, 9, 6),
    (12, "Heartbeat", 0, 4, 4),
    (13, "LeaveGroup", 0, 5, 4),
    (14, "SyncGroup", 0, 5, 4),
    (15, "DescribeGroups", 0, 6, 5),
    (16, "ListGroups", 0, 5, 3),
    (17, "SaslHandshake", 0, 1, None),
    (18, "ApiVersions", 0, 5, 3),
    (19, "CreateTopics", 2, 7, 5),
    (20, "DeleteTopics", 1, 6, 4),
    (21, "DeleteRecords", 0, 2, 2),
    (22, "InitProducerId", 0, 6, 2),
    (23, "OffsetForLeaderEpoch", 2, 4, 4),
    (24, "AddPartitionsToTxn", 0, 5, 3),
    (25, "AddOffsetsToTxn", 0, 4, 3),
    (26, "EndTxn", 0, 5, 3),
    (28, "TxnOffsetCommit", 0, 6, 3),
    (29, "DescribeAcls", 1, 3, 2),
    (30, "CreateAcls", 1, 3, 2),
    (31, "DeleteAcls", 1, 3, 2),
    (32, "DescribeConfigs", 1, 4, 4),
    (33, "AlterConfigs", 0, 2, 2),
    (34, "AlterReplicaLogDirs", 1, 2, 2),
    (35, "DescribeLogDirs", 1, 5, 2),
    (36, "SaslAuthenticate", 0, 2, 2),
    (37, "CreatePartitions", 0, 3, 2),
    (42, "DeleteGroups", 0, 3, 2),
    (43, "ElectLeaders", 0, 2, 2),
    (44, "IncrementalAlterConfigs", 0, 1, 1),
    (45, "AlterPartitionReassignments", 0, 1, 0),
    (46, "ListPartitionReassignments", 0, 0, 0),
    (47, "OffsetDelete", 0, 0, None),
    (48, "DescribeClientQuotas", 0, 1, 1),
    (49, "AlterClientQuotas", 0, 1, 1),
    (50, "DescribeUserScramCredentials", 0, 0, 0),
    (51, "AlterUserScramCredentials", 0, 0, 0),
    (55, "DescribeQuorum", 0, 2, 0),
    (57, "UpdateFeatures", 0, 2, 0),
    (60, "DescribeCluster", 0, 2, 0),
    (61, "DescribeProducers", 0, 0, 0),
    (65, "DescribeTransactions", 0, 0, 0),
    (66, "ListTransactions", 0, 2, 0),
    (68, "ConsumerGroupHeartbeat", 0, 1, 0),
    (69, "ConsumerGroupDescribe", 0, 1, 0),
    (71, "GetTelemetrySubscriptions", 0, 0, 0),
    (72, "PushTelemetry", 0, 0, 0),
    (74, "ListConfigResources", 0, 1, 0),
    (75, "DescribeTopicPartitions", 0, 0, 0),
    (76, "ShareGroupHeartbeat", 1, 1, 0),
    (77, "ShareGroupDescribe", 1, 1, 0),
    (78, "ShareFetch", 1, 2, 0),
    (79, "ShareAcknowledge", 1, 2, 0),
    (88, "StreamsGroupHeartbeat", 0, 1, 0),
    (89, "StreamsGroupDescribe", 0, 1, 0),
    (90, "DescribeShareGroupOffsets", 0, 1, 0),
    (91, "AlterShareGroupOffsets", 0, 0, 0),
    (92, "DeleteShareGroupOffsets", 0, 0, 0),
    (93, "StreamsGroupTopologyDescriptionUpdate", 0, 0, 0),
]
MESSAGES: dict[str, Any] = {cls.__name__: cls for cls in declared_messages()}


def has_kafkas_versions(key: int, name: str, first: int, last: int, flexible: int | None, kind: str) -> None:
    cls = MESSAGES[name + kind]

    facts = cls.API_KEY, cls.VERSIONS, cls.FLEXIBLE

    assert facts == (
        key,
        Versions(first, last),
        NEVER if flexible is None else Versions(flexible, LAST_VERSION),
    )


def test_versions_are_those_of_kafka() -> None:
    assert (
        offenders(has_kafkas_versions, ((*row, kind) for row in APIS for kind in ("Request", "Response")))
        == {}
    )


@pytest.mark.parametrize("name", ["ConsumerProtocolSubscription", "ConsumerProtocolAssignment"])
def test_consumer_protocol_data_has_its_own_versions(name: str) -> None:
    cls = MESSAGES[name]

    facts = cls.VERSIONS, cls.FLEXIBLE

    assert facts == (Versions(0, 3), NEVER)


def test_no_other_message_is_declared() -> None:
    expected = {name + kind for _, name, *_ in APIS for kind in ("Request", "Response")}

    names = set(MESSAGES)

    assert names == expected | {"ConsumerProtocolSubscription", "ConsumerProtocolAssignment"}


def defaults_are_decoded(cls: type, version: int) -> None:
    message = cls()

    data = encode(message, version)

    assert decode(cls, version, data) == message


def test_defaults_are_encoded_and_decoded() -> None:
    assert offenders(defaults_are_decoded, declared_versions()) == {}


def structures(kind: object) -> Iterator[type]:
    """The classes of a message, with those inside it."""
    if isinstance(kind, ArrayOf):
        yield from structures(kind.element)
    elif isinstance(kind, StructOf):
        yield kind.cls
        for each in (*kind, *kind.absent):
            yield from structures(each.kind)


def every_field_has_a_version(message: type[Any]) -> None:
    last = message.VERSIONS.last
    for each in set(structures(layout(message, last))):
        for name, hint in hints_of(each).items():
            for mark in marks_of(hint):
                versions = mark.versions if isinstance(mark, Tag) else mark
                if isinstance(versions, Versions):
                    assert versions.first <= last, (each.__name__, name)


def test_no_field_waits_for_a_version_that_its_message_does_not_have() -> None:
    assert offenders(every_field_has_a_version, declared_messages()) == {}


def declared() -> Any:
    """A structure that nothing has used yet."""

    class Row(Struct):
        """A row."""

        name: String = ""
        places: list[Int32] = dataclasses.field(default_factory=list)

    return Row


def test_a_structure_is_a_dataclass_whichever_use_is_the_first() -> None:
    by_call, by_fields = declared(), declared()

    assert by_call(name="a", places=[1]) == by_call(name="a", places=[1]) != by_call(name="b")
    assert repr(by_call(name="a")).endswith(".Row(name='a', places=[])")
    assert by_call().places is not by_call().places
    assert [each.name for each in dataclasses.fields(by_fields)] == ["name", "places"]
    assert dataclasses.replace(by_fields(name="a"), places=[2]).places == [2]


def test_a_structure_takes_only_its_fields_by_name() -> None:
    row = declared()()

    with pytest.raises(TypeError, match="unexpected keyword argument 'other'"):
        type(row)(other=1)
    with pytest.raises(TypeError, match="1 positional argument"):
        type(row)("a")
    with pytest.raises(AttributeError):
        row.other = 1
    with pytest.raises(TypeError, match="unhashable"):
        hash(row)
    assert not dataclasses.is_dataclass(Struct)


def test_a_structure_can_be_pickled() -> None:
    struct = MetadataResponseTopic(name="orders")

    assert pickle.loads(pickle.dumps(struct)) == struct


def test_a_structure_may_have_the_fields_of_another() -> None:
    MetadataResponseTopic()

    class Wide(MetadataResponseTopic):
        width: Int32 = 7

    wide = Wide(name="orders")

    assert (wide.name, wide.width, wide.partitions) == ("orders", 7, [])
    assert wide == Wide(name="orders", width=7) != Wide(name="orders", width=8)
    names = [each.name for each in dataclasses.fields(MetadataResponseTopic)]
    assert [each.name for each in dataclasses.fields(Wide)] == [*names, "width"]
