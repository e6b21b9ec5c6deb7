"""DescribeCluster v0-v2 (KIP-700, KIP-919, KIP-1073).

Behavior:
    * One broker, which is also the controller.
    * Endpoint type 2 asks for controllers: MISMATCHED_ENDPOINT_TYPE. An unknown type is
      UNSUPPORTED_ENDPOINT_TYPE.
Ignored fields:
    * IncludeFencedBrokers: no broker is ever fenced.
"""

from __future__ import annotations

from odradek.broker.authorized_operations import NOT_ASKED_FOR
from odradek.broker.broker import Broker
from odradek.broker.dispatch.routes import answers
from odradek.plugin.context import RequestContext
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

BROKERS, CONTROLLERS = 1, 2


@answers(DescribeClusterRequest)
def describe_cluster(
    request: DescribeClusterRequest, context: RequestContext, broker: Broker
) -> DescribeClusterResponse:
    if request.endpoint_type == CONTROLLERS:
        raise ApiError(
            ErrorCode.MISMATCHED_ENDPOINT_TYPE, "this endpoint belongs to a broker, not to a controller"
        )
    if request.endpoint_type != BROKERS:
        raise ApiError(
            ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"unsupported endpoint type {request.endpoint_type}"
        )
    nodes = broker.nodes.all(context.connection)
    operations = NOT_ASKED_FOR
    if request.include_cluster_authorized_operations:
        operations = broker.authorization.cluster_operations(context)
    return DescribeClusterResponse(
        cluster_id=broker.cluster_id,
        controller_id=nodes[0].id,
        brokers=[DescribeClusterBroker(broker_id=each.id, host=each.host, port=each.port) for each in nodes],
        cluster_authorized_operations=operations,
    )
