"""DescribeCluster, API key 60 (KIP-700).

Source: DescribeClusterRequest.json and DescribeClusterResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from odradek.wire.types import Bool, Int8, Int16, Int32, String, Versions, between, since


@dataclass(slots=True, kw_only=True)
class DescribeClusterBroker:
    """One of `DescribeClusterResponse.brokers`."""

    broker_id: Int32 = 0
    host: String = ""
    port: Int32 = 0
    rack: String | None = None
    is_fenced: Annotated[Bool, since(2)] = False


@dataclass(slots=True, kw_only=True)
class DescribeClusterRequest:
    """Learn the brokers or controllers of the cluster."""

    API_KEY: ClassVar[int] = 60
    VERSIONS: ClassVar[Versions] = between(0, 2)
    FLEXIBLE: ClassVar[Versions] = since(0)

    include_cluster_authorized_operations: Bool = False
    endpoint_type: Annotated[Int8, since(1)] = 1
    """1 brokers, 2 controllers."""
    include_fenced_brokers: Annotated[Bool, since(2)] = False


@dataclass(slots=True, kw_only=True)
class DescribeClusterResponse:
    """Answer to `DescribeClusterRequest`."""

    API_KEY: ClassVar[int] = 60
    VERSIONS: ClassVar[Versions] = between(0, 2)
    FLEXIBLE: ClassVar[Versions] = since(0)

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
