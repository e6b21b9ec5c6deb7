"""What the three descriptions of groups to whose members the host assigns have in common."""

from __future__ import annotations

from typing import Any

import pytest

from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from odradek.wire.messages.share_group_describe import ShareGroupDescribeRequest
from odradek.wire.messages.streams_group_describe import StreamsGroupDescribeRequest
from support.broker import BrokerClient, make_broker
from support.grants import Grants

REQUESTS = (ConsumerGroupDescribeRequest, ShareGroupDescribeRequest, StreamsGroupDescribeRequest)


@pytest.mark.parametrize("request_class", REQUESTS)
def test_groups_that_the_client_may_not_describe_come_first(request_class: Any) -> None:
    client = BrokerClient(make_broker(authorizer=Grants(["DESCRIBE GROUP seen"])))

    answer = client.send(request_class(group_ids=["seen", "hidden", "seen", "hidden"]), 1)

    assert [(group.group_id, group.error_code) for group in answer.groups] == [
        ("hidden", ErrorCode.GROUP_AUTHORIZATION_FAILED),
        ("seen", ErrorCode.GROUP_ID_NOT_FOUND),
    ]


@pytest.mark.parametrize("request_class", REQUESTS)
def test_the_rights_of_a_group_that_is_refused_are_not_told(request_class: Any) -> None:
    client = BrokerClient()

    answer = client.send(request_class(group_ids=["none"], include_authorized_operations=True), 1)

    assert [group.authorized_operations for group in answer.groups] == [-(2**31)]
