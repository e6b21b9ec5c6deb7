"""Manual replica assignments: with a single broker, only that broker is legal.

After ReplicationControlManager.validateManualPartitionAssignment (Kafka 4.3), in its words.
"""

from __future__ import annotations

from collections.abc import Sequence

from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode


def check_replicas(broker_ids: Sequence[int], node_id: int) -> None:
    """Check the replicas that a client assigns to one partition.

    Raises:
        ApiError: INVALID_REPLICA_ASSIGNMENT.
    """
    if not broker_ids:
        raise wrong("The manual partition assignment includes an empty replica list.")
    for position, broker_id in enumerate(sorted(broker_ids)):
        if broker_id != node_id:
            raise wrong(
                f"The manual partition assignment includes broker {broker_id}, but no such broker is "
                "registered."
            )
        if position:
            raise wrong(f"The manual partition assignment includes the broker {node_id} more than once.")


def wrong(message: str) -> ApiError:
    """The refusal of an assignment."""
    return ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
