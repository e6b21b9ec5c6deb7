from __future__ import annotations

import pytest

from odradek.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsTopics,
)
from support.broker import BrokerClient, make_broker


@pytest.mark.parametrize(
    "topics", [None, [], [ListPartitionReassignmentsTopics(name="t", partition_indexes=[0, 9])]]
)
def test_no_partition_is_being_reassigned(topics: list[ListPartitionReassignmentsTopics] | None) -> None:
    client = BrokerClient(make_broker())
    client.broker.topics.create("t", 1, {})

    response = client.send(ListPartitionReassignmentsRequest(topics=topics))

    assert response == ListPartitionReassignmentsResponse(error_message=None)
