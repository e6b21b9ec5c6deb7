"""Scenarios of refusals by the coordinators of groups and transactions, and of two requests that describe."""

from __future__ import annotations

import time
from typing import Any

from contrib.capture.golden import Recorder, Scenario, exchange
from contrib.capture.host_requests import request
from contrib.capture.topic_scenarios import DYNAMIC_IDS, create, delete_all, new

from odradek.wire.codec import decode
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from odradek.wire.messages.describe_producers import DescribeProducersRequest
from odradek.wire.messages.describe_producers import TopicRequest as ProducersTopic
from odradek.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from odradek.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from odradek.wire.messages.heartbeat import HeartbeatRequest
from odradek.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from odradek.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from odradek.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from odradek.wire.messages.sync_group import SyncGroupRequest
from odradek.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

DYNAMIC_PORT = "dynamic: the port of the coordinator"
GROUP, TRANSACTION, SHARE = 0, 1, 2
LOADED_S = 15
"""A coordinator is available once its topic has been created and loaded."""
PAUSE_S = 0.2


def until_loaded(say: Recorder, kind: int) -> None:
    """Wait until the coordinator is available; this is not recorded."""
    message = request(FindCoordinatorRequest(key_type=kind, coordinator_keys=["any"]), 6)
    deadline = time.monotonic() + LOADED_S
    while time.monotonic() < deadline:
        frame = exchange(say.channel, message.frame(correlation_id=0))
        found = decode(FindCoordinatorResponse, 6, frame or b"", 5)
        if found.coordinators[0].error_code == ErrorCode.NONE:
            time.sleep(1)
            return
        time.sleep(PAUSE_S)
    raise SystemExit(f"no coordinator of type {kind}")


def join_refused(say: Recorder) -> None:
    until_loaded(say, GROUP)
    usual = JoinGroupRequestProtocol(name="range", metadata=b"")
    for version in (0, 4, 6, 7, 9):
        cases: dict[str, dict[str, Any]] = {
            "no group id": {"group_id": ""},
            "a short session": {"session_timeout_ms": 1},
            "an unknown member": {"member_id": "x"},
            "no protocols": {"protocols": []},
            "no type": {"protocol_type": ""},
        }
        for label, fields in cases.items():
            wanted: dict[str, Any] = {
                "group_id": "refused",
                "session_timeout_ms": 10_000,
                "rebalance_timeout_ms": 10_000,
                "protocol_type": "consumer",
                "protocols": [usual],
            }
            say.ask(label, request(JoinGroupRequest(**wanted | fields), version))


def left(say: Recorder) -> None:
    until_loaded(say, GROUP)
    one, other = MemberIdentity(member_id="x"), MemberIdentity(member_id="", group_instance_id="i")
    for version in range(6):
        for label, members in {"two members": [one, other], "no members": [], "twice": [one, one]}.items():
            for group_id in ("unknown", ""):
                message = LeaveGroupRequest(group_id=group_id, member_id="x", members=members)
                say.ask(f"{label} of group {group_id!r}", request(message, version))


def sync_refused(say: Recorder) -> None:
    until_loaded(say, GROUP)
    for version in (0, 3, 4, 5):
        for kind, name in ((None, None), ("consumer", None), (None, "range"), ("consumer", "range")):
            if version < 5 and (kind or name):
                continue
            for group_id in ("unknown", ""):
                message = SyncGroupRequest(
                    group_id=group_id, member_id="x", generation_id=1, protocol_type=kind, protocol_name=name
                )
                say.ask(f"{kind}, {name} in group {group_id!r}", request(message, version))
    for group_id in ("unknown", ""):
        beat = HeartbeatRequest(group_id=group_id, member_id="x", generation_id=1)
        say.ask(f"a heartbeat in group {group_id!r}", request(beat, 4))


def coordinator(version: int) -> Scenario:
    def scenario(say: Recorder) -> None:
        say.note(DYNAMIC_PORT)
        until_loaded(say, GROUP)
        until_loaded(say, TRANSACTION)
        kinds = (GROUP, TRANSACTION, SHARE, 3, -1) if version else (GROUP,)
        for kind in kinds:
            for key in ("g", ""):
                message = FindCoordinatorRequest(key=key, key_type=kind, coordinator_keys=[key, "h"])
                say.ask(f"key {key!r} of type {kind}", request(message, version))
        if version >= 4:
            say.ask("no keys", request(FindCoordinatorRequest(), version))

    return scenario


def offsets_refused(say: Recorder) -> None:
    say.note(DYNAMIC_IDS)
    until_loaded(say, GROUP)
    create(say, "a topic", new("offsets", 2))
    for version in (2, 8, 9):
        cases: dict[str, dict[str, Any]] = {
            "without a member": {},
            "an unknown member": {"member_id": "m", "generation_id_or_member_epoch": 3},
        }
        for label, fields in cases.items():
            for topics in ({"nope": [0]}, {"nope": [0], "offsets": [0, 9]}, {}):
                rows = [
                    OffsetCommitRequestTopic(
                        name=name,
                        partitions=[
                            OffsetCommitRequestPartition(
                                partition_index=index, committed_offset=1, committed_metadata=""
                            )
                            for index in indexes
                        ],
                    )
                    for name, indexes in topics.items()
                ]
                message = OffsetCommitRequest(group_id="refused", topics=rows, **fields)
                say.ask(f"{label}: {topics}", request(message, version))
    delete_all(say, "offsets")


def transactional_offsets_refused(say: Recorder) -> None:
    say.note(DYNAMIC_IDS)
    until_loaded(say, GROUP)
    until_loaded(say, TRANSACTION)
    create(say, "a topic", new("offsets", 2))
    for version in (0, 3, 5):
        cases: dict[str, dict[str, Any]] = {
            "an unknown producer": {},
            "no group": {"group_id": ""},
            "a generation": {"generation_id_or_member_epoch": 4, "member_id": "m"} if version >= 3 else {},
        }
        for label, fields in cases.items():
            for topics in ({"nope": [0]}, {"nope": [0], "offsets": [0, 9]}, {}):
                rows = [
                    TxnOffsetCommitRequestTopic(
                        name=name,
                        partitions=[
                            TxnOffsetCommitRequestPartition(
                                partition_index=index, committed_offset=1, committed_metadata=""
                            )
                            for index in indexes
                        ],
                    )
                    for name, indexes in topics.items()
                ]
                wanted: dict[str, Any] = {
                    "transactional_id": "refused",
                    "group_id": "refused",
                    "producer_id": 123_456,
                    "producer_epoch": 0,
                    "topics": rows,
                }
                say.ask(f"{label}: {topics}", request(TxnOffsetCommitRequest(**wanted | fields), version))
    delete_all(say, "offsets")


def heartbeats_refused(say: Recorder) -> None:
    until_loaded(say, GROUP)

    def beat(label: str, version: int = 1, **fields: Any) -> None:
        wanted: dict[str, Any] = {
            "group_id": "beats",
            "member_id": "m",
            "rebalance_timeout_ms": 10_000,
            "subscribed_topic_names": ["nope"],
            "topic_partitions": [],
        }
        say.ask(label, request(ConsumerGroupHeartbeatRequest(**wanted | fields), version))

    for version in (0, 1):
        beat("no group", version, group_id=" ")
        beat("no member", version, member_id="", member_epoch=1)
        beat("epoch -5", version, member_epoch=-5)
        beat("a static leave without an instance", version, member_epoch=-2)
        beat("a group that does not exist", version, member_epoch=5)
        beat("no timeout", version, rebalance_timeout_ms=-1)
        beat("no partitions", version, topic_partitions=None)
        owned = [TopicPartitions(topic_id=b"\7" * 16, partitions=[0])]
        beat("partitions", version, topic_partitions=owned)
        beat("no subscription", version, subscribed_topic_names=None)
        beat("an empty instance", version, instance_id="")
        beat("an empty rack", version, rack_id="")
        beat("an unknown assignor", version, server_assignor="zz")
    beat("join", instance_id="i")
    beat("an epoch ahead", instance_id="i", member_epoch=9)
    beat("an epoch behind", instance_id="i", member_epoch=1)
    beat("an unknown member", member_id="other", member_epoch=1)
    beat("an unknown member leaves", member_id="other", member_epoch=-1)
    beat("an instance of another", member_id="other", instance_id="i")
    beat("a fenced member", member_id="other", instance_id="i", member_epoch=1)
    beat("a fenced member leaves", member_id="other", instance_id="i", member_epoch=-2)
    beat("an unknown instance", instance_id="j", member_epoch=1)
    beat("an unknown instance leaves", instance_id="j", member_epoch=-2)
    for version in (2, 3, 5):
        message = LeaveGroupRequest(
            group_id="beats", member_id="zz", members=[MemberIdentity(member_id="zz")]
        )
        say.ask("a member of the other protocol leaves", request(message, version))
    beat("leave", instance_id="i", member_epoch=-1)
    for version in (2, 3, 5):
        message = LeaveGroupRequest(group_id="beats", member_id="m", members=[MemberIdentity(member_id="m")])
        say.ask("leave again, in the other protocol", request(message, version))


def users(say: Recorder) -> None:
    for names in (None, [], ["u"], ["u", "u"], [""], ["u", "v", "u"]):
        wanted = None if names is None else [UserName(name=name) for name in names]
        say.ask(f"{names}", request(DescribeUserScramCredentialsRequest(users=wanted), 0))


def producers(say: Recorder) -> None:
    say.note(DYNAMIC_IDS)
    create(say, "a topic", new("produced"))
    for name, index in (("produced", 0), ("produced", 5), ("nope", 0), ("nope", -1), ("a b", 0), ("", 0)):
        message = DescribeProducersRequest(topics=[ProducersTopic(name=name, partition_indexes=[index])])
        say.ask(f"{name}-{index}", request(message, 0))
    delete_all(say, "produced")


SCENARIOS: dict[str, tuple[str, Scenario]] = {
    "join_group_v9_refused": ("members that cannot join", join_refused),
    "leave_group_v5_unknown": ("members of unknown groups leave", left),
    "sync_group_v5_refused": ("assignments for unknown members", sync_refused),
    "offset_commit_v9_refused": ("offsets of unknown topics and members", offsets_refused),
    "txn_offset_commit_v5_refused": ("offsets that no transaction takes", transactional_offsets_refused),
    "consumer_group_heartbeat_v1_refused": ("heartbeats that are refused", heartbeats_refused),
    "describe_user_scram_credentials_v0_described": ("users without credentials", users),
    "describe_producers_v0_described": ("producers of known and unknown partitions", producers),
    **{
        f"find_coordinator_v{version}_found": ("coordinators of any type", coordinator(version))
        for version in range(7)
    },
}
