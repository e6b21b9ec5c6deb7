"""The operations that Metadata and the Describe APIs report as allowed, as bits."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from odradek.plugin.authorizer import AclOperation, ResourceType


def bits(operations: Iterable[AclOperation]) -> int:
    """One bit per operation."""
    return sum(1 << operation for operation in operations)


NOT_ASKED_FOR = -(2**31)
OPERATIONS: Final = {
    ResourceType.TOPIC: (
        AclOperation.READ,
        AclOperation.WRITE,
        AclOperation.CREATE,
        AclOperation.DELETE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
    ),
    ResourceType.CLUSTER: (
        AclOperation.CREATE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE,
        AclOperation.CLUSTER_ACTION,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
        AclOperation.IDEMPOTENT_WRITE,
    ),
    ResourceType.GROUP: (
        AclOperation.READ,
        AclOperation.DELETE,
        AclOperation.DESCRIBE,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
    ),
}
"""The operations of each type whose resources are reported."""
ALL_BITS: Final = {kind: bits(operations) for kind, operations in OPERATIONS.items()}
TOPIC_OPERATIONS = ALL_BITS[ResourceType.TOPIC]
CLUSTER_OPERATIONS = ALL_BITS[ResourceType.CLUSTER]
GROUP_OPERATIONS = ALL_BITS[ResourceType.GROUP]
