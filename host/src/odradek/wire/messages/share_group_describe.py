"""ShareGroupDescribe, API key 77 (KIP-932).

Source: ShareGroupDescribeRequest.json and ShareGroupDescribeResponse.json, Kafka 4.4.
"""

from __future__ import annotations

from dataclasses import field

from odradek.wire.messages.consumer_group_describe import Assignment
from odradek.wire.types import Bool, Int16, Int32, Message, String, Struct, between, since


class ShareMember(Struct):
    """One of `DescribedShareGroup.members`."""

    member_id: String = ""
    rack_id: String | None = None
    member_epoch: Int32 = 0
    client_id: String = ""
    client_host: String = ""
    subscribed_topic_names: list[String] = field(default_factory=list)
    assignment: Assignment = field(default_factory=Assignment)


class DescribedShareGroup(Struct):
    """One of `ShareGroupDescribeResponse.groups`."""

    error_code: Int16 = 0
    error_message: String | None = None
    group_id: String = ""
    group_state: String = ""
    group_epoch: Int32 = 0
    assignment_epoch: Int32 = 0
    assignor_name: String = ""
    members: list[ShareMember] = field(default_factory=list)
    authorized_operations: Int32 = -0x8000_0000


class ShareGroupDescribeRequest(Message, api_key=77, versions=between(1, 1), flexible=since(0)):
    """Describe share groups."""

    group_ids: list[String] = field(default_factory=list)
    include_authorized_operations: Bool = False


class ShareGroupDescribeResponse(Message, answers=ShareGroupDescribeRequest):
    """Answer to `ShareGroupDescribeRequest`."""

    throttle_time_ms: Int32 = 0
    groups: list[DescribedShareGroup] = field(default_factory=list)
