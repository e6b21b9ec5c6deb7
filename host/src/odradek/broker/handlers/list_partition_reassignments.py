"""ListPartitionReassignments v0 (KIP-455).

Behavior:
    * Partitions never move to another broker: the list is always empty.
Ignored fields:
    * Topics, TimeoutMs.
"""

from __future__ import annotations

from odradek.broker.broker import Broker
from odradek.broker.dispatch.routes import answers
from odradek.plugin.authorizer import AclOperation
from odradek.plugin.context import RequestContext
from odradek.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)


@answers(ListPartitionReassignmentsRequest)
def list_partition_reassignments(
    request: ListPartitionReassignmentsRequest, context: RequestContext, broker: Broker
) -> ListPartitionReassignmentsResponse:
    broker.authorization.require_on_cluster(context, AclOperation.DESCRIBE)
    return ListPartitionReassignmentsResponse(error_message=None)
