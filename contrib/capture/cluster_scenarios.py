"""Scenarios of the APIs about a cluster of one node: its quorum and its features."""

from __future__ import annotations

from contrib.capture.golden import Recorder, Scenario
from contrib.capture.host_requests import request

from odradek.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    RequestPartitionData,
    RequestTopicData,
)
from odradek.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest


def quorum(say: Recorder) -> None:
    say.note("dynamic: offsets, times, the port of the controller")
    for version in range(3):
        for label, topics in {
            "the quorum": {"__cluster_metadata": [0]},
            "another partition": {"__cluster_metadata": [1]},
            "two partitions": {"__cluster_metadata": [0, 1]},
            "another topic": {"foo": [0]},
            "nothing": {},
        }.items():
            rows = [
                RequestTopicData(
                    topic_name=name,
                    partitions=[RequestPartitionData(partition_index=index) for index in indexes],
                )
                for name, indexes in topics.items()
            ]
            say.ask(label, request(DescribeQuorumRequest(topics=rows), version))


def features(version: int) -> Scenario:
    def scenario(say: Recorder) -> None:
        def update(label: str, *updates: FeatureUpdateKey) -> None:
            message = UpdateFeaturesRequest(feature_updates=list(updates), validate_only=version >= 1)
            say.ask(label, request(message, version))

        def level(name: str, wanted: int, kind: int = 1) -> FeatureUpdateKey:
            return FeatureUpdateKey(
                feature=name, max_version_level=wanted, upgrade_type=kind, allow_downgrade=kind == 2
            )

        update("the level in force", level("group.version", 1))
        update("unknown", level("nope", 1))
        update("no name", level("", 1))
        update("unknown beside a good one", level("group.version", 1), level("nope", 1))
        update("too high", level("group.version", 9))
        update("below zero", level("group.version", -1))
        update("a downgrade that is not meant", level("group.version", 0))
        update("none")
        if version:
            update("a downgrade", level("group.version", 0, 2))
            update("an unsafe downgrade", level("group.version", 0, 3))
            update("type 9", level("group.version", 1, 9))
            update("type 0", level("group.version", 1, 0))

    return scenario


SCENARIOS: dict[str, tuple[str, Scenario]] = {
    "describe_quorum_v2_described": ("a quorum of one", quorum),
    **{
        f"update_features_v{version}_checked": ("what levels can be set", features(version))
        for version in range(3)
    },
}
