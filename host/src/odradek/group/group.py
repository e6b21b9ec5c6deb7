"""What groups of all protocols have to say of those that commit offsets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode

PartitionCheck = Callable[[bytes, int], None]
"""Checks one partition (topic id, index) of a commit; raises `ApiError` to refuse it."""
MEMBER_EPOCH_VERSION = 9
"""The first version of OffsetCommit that carries a member epoch."""
TXN_MEMBER_EPOCH_VERSION = 6
"""The first version of TxnOffsetCommit whose clients know the errors of member epochs."""


class GroupType(StrEnum):
    """The types of groups, as named by ListGroups v5 (GroupType.java)."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"


@dataclass(frozen=True, slots=True, kw_only=True)
class Committer:
    """The identity in OffsetCommit and TxnOffsetCommit."""

    member_id: str = ""
    group_instance_id: str | None = None
    generation_id: int = -1
    """In the consumer protocol, the member epoch. -1 if the client is not a member."""
    api_version: int = 10
    is_transactional: bool = False

    @property
    def knows_member_epochs(self) -> bool:
        """Whether this version of the request has the errors GROUP_ID_NOT_FOUND and STALE_MEMBER_EPOCH."""
        first = TXN_MEMBER_EPOCH_VERSION if self.is_transactional else MEMBER_EPOCH_VERSION
        return self.api_version >= first


def not_of_type(group_id: str, wanted: GroupType) -> ApiError:
    """The refusal of a request for another type of group, in Kafka's words."""
    return ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a {wanted} group.")
