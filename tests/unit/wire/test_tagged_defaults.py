"""Defaults of tagged fields, which no comparison of bytes can show: a field with its default is not on the
wire.

The table holds the facts of Kafka 4.4's JSON files.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import pytest

from odradek.wire.layout import ArrayOf, Kind, StructOf, layout, struct_of
from odradek.wire.messages import api_versions, create_topics, fetch, produce
from odradek.wire.reader_source import compile_reader
from odradek.wire.types import NIL_UUID
from odradek.wire.writer_source import compile_writer
from random_messages import declared_messages

LEADER = {"leader_id": -1, "leader_epoch": -1}
FACTS: list[tuple[type, type, str, int, int, Any, Any]] = [
    # message, structure, field, tag, first version, default, another value
    (
        produce.ProduceResponse,
        produce.PartitionProduceResponse,
        "current_leader",
        0,
        10,
        LEADER,
        produce.LeaderIdAndEpoch(leader_id=0),
    ),
    (produce.ProduceResponse, produce.ProduceResponse, "node_endpoints", 0, 10, [], [produce.NodeEndpoint()]),
    (fetch.FetchRequest, fetch.FetchRequest, "cluster_id", 0, 12, None, ""),
    (
        fetch.FetchRequest,
        fetch.FetchRequest,
        "replica_state",
        1,
        15,
        {"replica_id": -1, "replica_epoch": -1},
        fetch.ReplicaState(replica_epoch=0),
    ),
    (fetch.FetchRequest, fetch.FetchPartition, "replica_directory_id", 0, 17, NIL_UUID, b"\1" * 16),
    (fetch.FetchRequest, fetch.FetchPartition, "high_watermark", 1, 18, 9223372036854775807, 0),
    (
        fetch.FetchResponse,
        fetch.PartitionData,
        "diverging_epoch",
        0,
        12,
        {"epoch": -1, "end_offset": -1},
        fetch.EpochEndOffset(end_offset=0),
    ),
    (
        fetch.FetchResponse,
        fetch.PartitionData,
        "current_leader",
        1,
        12,
        LEADER,
        fetch.LeaderIdAndEpoch(leader_epoch=0),
    ),
    (
        fetch.FetchResponse,
        fetch.PartitionData,
        "snapshot_id",
        2,
        12,
        {"end_offset": -1, "epoch": -1},
        fetch.SnapshotId(epoch=0),
    ),
    (fetch.FetchResponse, fetch.FetchResponse, "node_endpoints", 0, 16, [], [fetch.NodeEndpoint()]),
    (
        api_versions.ApiVersionsResponse,
        api_versions.ApiVersionsResponse,
        "supported_features",
        0,
        3,
        [],
        [api_versions.SupportedFeatureKey()],
    ),
    (
        api_versions.ApiVersionsResponse,
        api_versions.ApiVersionsResponse,
        "finalized_features_epoch",
        1,
        3,
        -1,
        0,
    ),
    (
        api_versions.ApiVersionsResponse,
        api_versions.ApiVersionsResponse,
        "finalized_features",
        2,
        3,
        [],
        [api_versions.FinalizedFeatureKey()],
    ),
    (
        api_versions.ApiVersionsResponse,
        api_versions.ApiVersionsResponse,
        "zk_migration_ready",
        3,
        3,
        False,
        True,
    ),
    (
        create_topics.CreateTopicsResponse,
        create_topics.CreatableTopicResult,
        "topic_config_error_code",
        0,
        5,
        0,
        1,
    ),
]
IDS = [f"{structure.__name__}.{field}" for _, structure, field, *_ in FACTS]
each_fact = pytest.mark.parametrize(
    ("message", "structure", "field", "tag", "first", "default", "other"), FACTS, ids=IDS
)


def tagged_fields(message: type, kind: Kind, version: int) -> Iterator[tuple[type, type, str, int, int]]:
    if isinstance(kind, ArrayOf):
        yield from tagged_fields(message, kind.element, version)
    if isinstance(kind, StructOf):
        for field in kind.tagged:
            assert field.tag is not None
            yield message, kind.cls, field.name, field.tag, version
        for field in kind:
            yield from tagged_fields(message, field.kind, version)


def shape(message: Any, structure: type) -> StructOf:
    return struct_of(structure, message.VERSIONS.last, flexible=True)


def test_all_tagged_fields_have_the_tag_and_first_version_of_kafka() -> None:
    found: dict[tuple[type, type, str, int], int] = {}
    for cls in declared_messages():
        for version in range(cls.VERSIONS.last, cls.VERSIONS.first - 1, -1):
            for *place, first in tagged_fields(cls, layout(cls, version), version):
                found[tuple(place)] = first  # type: ignore[index]

    facts = {(message, structure, field, tag): first for message, structure, field, tag, first, *_ in FACTS}

    assert found == facts


@each_fact
def test_a_new_structure_has_the_default(
    message: type, structure: type, field: str, tag: int, first: int, default: Any, other: Any
) -> None:
    made = getattr(structure(), field)

    plain = dataclasses.asdict(made) if dataclasses.is_dataclass(made) else made  # type: ignore[arg-type]

    assert plain == default


@each_fact
def test_a_structure_without_the_tag_is_decoded_with_the_default(
    message: type, structure: type, field: str, tag: int, first: int, default: Any, other: Any
) -> None:
    layout_of_structure = shape(message, structure)
    data = bytes(compile_writer(layout_of_structure, "test")(structure()))

    made, _ = compile_reader(layout_of_structure, "test")(data, 0)

    assert data[-1] == 0
    value = getattr(made, field)
    assert (dataclasses.asdict(value) if dataclasses.is_dataclass(value) else value) == default  # type: ignore[arg-type]


@each_fact
def test_any_other_value_is_written_with_the_tag(
    message: type, structure: type, field: str, tag: int, first: int, default: Any, other: Any
) -> None:
    layout_of_structure = shape(message, structure)
    changed = structure(**{field: other})

    data = bytes(compile_writer(layout_of_structure, "test")(changed))

    without = bytes(compile_writer(layout_of_structure, "test")(structure()))
    assert data.startswith(without[:-1] + bytes([1, tag]))
    assert compile_reader(layout_of_structure, "test")(data, 0) == (changed, len(data))


def test_defaults_of_decoded_messages_are_not_shared() -> None:
    layout_of_structure = shape(fetch.FetchRequest, fetch.FetchRequest)
    data = compile_writer(layout_of_structure, "test")(fetch.FetchRequest())
    read = compile_reader(layout_of_structure, "test")

    first, second = read(data, 0)[0], read(data, 0)[0]

    assert first.replica_state is not second.replica_state
