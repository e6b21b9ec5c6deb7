"""DescribeCluster, API key 60 (KIP-700).

Source: DescribeClusterRequest.json and DescribeClusterResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import field
from typing import Annotated

from odradek.wire.types import Bool, Int8, Int16, Int32, Message, String, Struct, between, since


class DescribeClusterBroker(Struct):
    """One of `DescribeClusterResponse.brokers`."""

    broker_id: Int32 = 0
    host: String = ""
    port: Int32 = 0
    rack: String | None = None
    is_fenced: Annotated[Bool, since(2)] = False


class DescribeClusterRequest(Message, api_key=60, versions=between(0, 2), flexible=since(0)):
    """Learn the brokers or controllers of the cluster."""

    include_cluster_authorized_operations: Bool = False
    endpoint_type: Annotated[Int8, since(1)] = 1
    """1 brokers, 2 controllers."""
    include_fenced_brokers: Annotated[Bool, since(2)] = False


class DescribeClusterResponse(Message, answers=DescribeClusterRequest):
    """Answer to `DescribeClusterRequest`."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    endpoint_type: Annotated[Int8, since(1)] = 1
    """1 brokers, 2 controllers."""
    cluster_id: String = ""
    controller_id: Int32 = -1
    """-1 if unknown."""
    brokers: list[DescribeClusterBroker] = field(default_factory=list)
    cluster_authorized_operations: Int32 = -0x8000_0000
    """A bit per `AclOperation`; the default means that it was not asked for."""
