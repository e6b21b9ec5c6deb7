"""Groups of both protocols, their offsets and coordinators."""

from __future__ import annotations

from odradek.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from odradek.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from odradek.wire.messages.delete_groups import DeleteGroupsRequest
from odradek.wire.messages.describe_groups import DescribeGroupsRequest
from odradek.wire.messages.find_coordinator import FindCoordinatorRequest
from odradek.wire.messages.heartbeat import HeartbeatRequest
from odradek.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from odradek.wire.messages.list_groups import ListGroupsRequest
from odradek.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from odradek.wire.messages.sync_group import SyncGroupRequest
from support.authorization.case import (
    ALL,
    Case,
)
from support.authorization.requests import (
    JOIN,
    fixed,
    heartbeat_until_assigned,
    of_group,
    offset_commit,
    offset_fetch,
    old_offset_fetch,
    subscribe,
)

CASES = [
    # Offsets
    Case("commit offsets without rights", [], offset_commit, 9),
    Case("commit offsets with READ of the group only", ["READ GROUP club"], offset_commit, 9),
    Case(
        "commit offsets of one topic",
        ["READ GROUP club", "READ TOPIC open", "READ TOPIC gone"],
        offset_commit,
        9,
    ),
    Case(
        "commit offsets by id",
        ["READ GROUP club", "READ TOPIC open"],
        lambda ids: offset_commit(ids, by_id=True),
        10,
    ),
    Case("fetch offsets without rights", [], offset_fetch, 9),
    Case("fetch offsets of one group", ["DESCRIBE GROUP club", "DESCRIBE TOPIC open"], offset_fetch, 9),
    Case(
        "fetch offsets of two groups",
        ["READ GROUP gone", "DELETE GROUP club", "DESCRIBE TOPIC open"],
        offset_fetch,
        9,
    ),
    Case(
        "fetch offsets by id",
        ["DESCRIBE GROUP club", "DESCRIBE TOPIC open"],
        lambda ids: offset_fetch(ids, by_id=True),
        10,
    ),
    Case(
        "fetch all offsets",
        ["DESCRIBE GROUP club", "DESCRIBE TOPIC open"],
        lambda ids: offset_fetch(ids, names=None),
        9,
    ),
    Case("fetch offsets of version 1 without rights", [], fixed(old_offset_fetch()), 1),
    Case(
        "fetch offsets of version 1",
        ["DESCRIBE GROUP club", "DESCRIBE TOPIC open"],
        fixed(old_offset_fetch()),
        1,
        unordered=True,
    ),
    Case("fetch offsets of version 5 without rights", [], fixed(old_offset_fetch()), 5),
    Case(
        "fetch all offsets of version 5",
        ["DESCRIBE GROUP club", "DESCRIBE TOPIC open"],
        fixed(old_offset_fetch(None)),
        5,
        unordered=True,
    ),
    *(
        Case(
            f"delete offsets{label}",
            grants,
            fixed(
                OffsetDeleteRequest(
                    group_id=group,
                    topics=[
                        OffsetDeleteRequestTopic(
                            name=name, partitions=[OffsetDeleteRequestPartition(partition_index=9)]
                        )
                        for name in ALL
                    ],
                )
            ),
            0,
        )
        for label, group, grants in (
            (" without rights", "club", ["READ GROUP club", "READ TOPIC open"]),
            (" of one topic", "club", ["DELETE GROUP club", "READ TOPIC open", "READ TOPIC gone"]),
            (" of a missing group", "gone", []),
            (" of a missing group with DELETE", "gone", ["DELETE GROUP gone"]),
        )
    ),
    # Coordinators
    Case(
        "find coordinators of groups",
        ["DESCRIBE GROUP club"],
        fixed(FindCoordinatorRequest(coordinator_keys=["gone", "club"])),
        4,
    ),
    Case(
        "find coordinators of transactions",
        ["WRITE TRANSACTIONAL_ID tx"],
        fixed(FindCoordinatorRequest(key_type=1, coordinator_keys=["gone", "tx"])),
        4,
    ),
    Case("find the coordinator of a group", [], fixed(FindCoordinatorRequest(key="club")), 3),
    Case("find the coordinator of a transaction", [], fixed(FindCoordinatorRequest(key="tx", key_type=1)), 2),
    Case("find the coordinator of a group in version 0", [], fixed(FindCoordinatorRequest(key="club")), 0),
    Case(
        "find coordinators of share groups",
        ["DESCRIBE GROUP club"],
        fixed(FindCoordinatorRequest(key_type=2, coordinator_keys=["club:AAAAAAAAAAAAAAAAAAAAAA:0"])),
        6,
    ),
    # Classic groups
    Case("join a group without rights", ["DESCRIBE GROUP club"], JOIN, 9),
    Case("join a group of version 5 without rights", [], JOIN, 5),
    Case(
        "sync without rights",
        [],
        of_group(SyncGroupRequest, protocol_type="consumer", protocol_name="range"),
        5,
    ),
    Case("sync without a protocol", [], of_group(SyncGroupRequest), 5),
    Case("heartbeat without rights", [], of_group(HeartbeatRequest), 4),
    Case(
        "leave a group without rights",
        [],
        of_group(LeaveGroupRequest, members=[MemberIdentity(member_id="a")]),
        5,
    ),
    Case("leave a group of version 2 without rights", [], of_group(LeaveGroupRequest, member_id="a"), 2),
    Case(
        "describe groups",
        ["DESCRIBE GROUP club"],
        fixed(DescribeGroupsRequest(groups=["club", "gone", "crew"], include_authorized_operations=True)),
        5,
    ),
    Case("describe groups without rights", [], fixed(DescribeGroupsRequest(groups=["club", "gone"])), 6),
    Case("list groups", ["DESCRIBE GROUP club"], fixed(ListGroupsRequest()), 5, unordered=True),
    Case(
        "list groups with DESCRIBE of the cluster",
        ["DESCRIBE CLUSTER"],
        fixed(ListGroupsRequest()),
        5,
        unordered=True,
    ),
    Case(
        "delete groups",
        ["DELETE GROUP gone"],
        fixed(DeleteGroupsRequest(groups_names=["club", "gone"])),
        2,
        unordered=True,
    ),
    # Consumer groups
    Case("heartbeat of a consumer without rights", ["READ TOPIC open"], fixed(subscribe(["open"])), 1),
    Case(
        "subscribe to a topic that may not be seen",
        ["READ GROUP new", "DESCRIBE TOPIC open"],
        fixed(subscribe(["open", "shut"])),
        1,
    ),
    Case(
        "subscribe to a missing topic that may not be seen",
        ["READ GROUP new", "DESCRIBE TOPIC open"],
        fixed(subscribe(["open", "gone"])),
        1,
    ),
    Case(
        "describe consumer groups without rights",
        ["DESCRIBE TOPIC open", "DESCRIBE TOPIC shut"],
        fixed(ConsumerGroupDescribeRequest(group_ids=["gone", "crew"], include_authorized_operations=True)),
        1,
    ),
    Case(
        "describe consumer groups without DESCRIBE of a topic",
        ["DESCRIBE GROUP crew", "DESCRIBE GROUP gone", "DESCRIBE TOPIC open"],
        fixed(ConsumerGroupDescribeRequest(group_ids=["gone", "crew"], include_authorized_operations=True)),
        1,
        unordered=True,
    ),
    Case(
        "subscribe to all topics by an expression",
        ["READ GROUP new", "DESCRIBE TOPIC open"],
        fixed(
            ConsumerGroupHeartbeatRequest(
                group_id="new",
                member_id="m-1",
                rebalance_timeout_ms=1_000,
                subscribed_topic_regex=".*",
                topic_partitions=[],
            )
        ),
        1,
        masked=("member_epoch",),
        again=heartbeat_until_assigned,
    ),
]
