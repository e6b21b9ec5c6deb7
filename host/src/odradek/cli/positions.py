"""Where groups are in partitions: committed offsets, or the start offsets of a share group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from odradek.client.admin import AdminClient
from odradek.client.errors import RequestFailed
from odradek.client.group_descriptions import SHARE, GroupDescription
from odradek.client.group_offsets import CommittedOffset
from odradek.client.leaders import Partition
from odradek.client.share_offsets import alter_share_offsets, share_offsets


class Positions(Protocol):
    """The offsets of one group; every method raises `ClientError`."""

    @property
    def group(self) -> str:
        """The id of the group."""

    def every(self) -> list[Partition]:
        """The partitions for which the group has offsets, in order."""

    def of(self, partitions: Sequence[Partition]) -> Mapping[Partition, int]:
        """The offsets of partitions; one without an offset is left out."""

    def put(self, offsets: Mapping[Partition, int]) -> None:
        """Set offsets; the group has no members."""


@dataclass(frozen=True, slots=True)
class CommittedPositions:
    """Those of a consumer group."""

    admin: AdminClient
    group: str

    def every(self) -> list[Partition]:
        return sorted(self.admin.offset_fetch(self.group))

    def of(self, partitions: Sequence[Partition]) -> Mapping[Partition, int]:
        return {at: each.offset for at, each in self.admin.offset_fetch(self.group, partitions).items()}

    def put(self, offsets: Mapping[Partition, int]) -> None:
        self.admin.offset_commit(self.group, {at: CommittedOffset(each) for at, each in offsets.items()})


@dataclass(frozen=True, slots=True)
class SharePositions:
    """Those of a share group."""

    admin: AdminClient
    group: str

    def every(self) -> list[Partition]:
        return sorted(share_offsets(self.admin, self.group))

    def of(self, partitions: Sequence[Partition]) -> Mapping[Partition, int]:
        known = share_offsets(self.admin, self.group)
        starts = {at: known[at].start for at in partitions if at in known}
        return {at: start for at, start in starts.items() if start is not None}

    def put(self, offsets: Mapping[Partition, int]) -> None:
        alter_share_offsets(self.admin, self.group, offsets)


def is_share_group(outcome: GroupDescription | RequestFailed) -> bool:
    """Whether a group was described as a share group."""
    return isinstance(outcome, GroupDescription) and outcome.protocol_type == SHARE


def positions_of(admin: AdminClient, group: str, outcome: GroupDescription | RequestFailed) -> Positions:
    """Those of a group that was described; one that does not exist becomes a consumer group."""
    kind = SharePositions if is_share_group(outcome) else CommittedPositions
    return kind(admin, group)
