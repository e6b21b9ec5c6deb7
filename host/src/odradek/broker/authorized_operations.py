"""The operations that Metadata and the Describe APIs report as allowed, as bits."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from odradek.plugin.authorizer import AclOperation, ResourceType
from odradek.security.acl import SUPPORTED


def bits(operations: Iterable[AclOperation]) -> int:
    """One bit per operation."""
    return sum(1 << operation for operation in operations)


NOT_ASKED_FOR = -(2**31)
ALL_BITS: Final = {kind: bits(operations) for kind, operations in SUPPORTED.items()}
TOPIC_OPERATIONS = ALL_BITS[ResourceType.TOPIC]
CLUSTER_OPERATIONS = ALL_BITS[ResourceType.CLUSTER]
GROUP_OPERATIONS = ALL_BITS[ResourceType.GROUP]
