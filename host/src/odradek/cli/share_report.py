"""Share groups in the output of ``odradek groups``: the tables of kafka-share-groups.sh."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from odradek.cli.columns import Column, Table
from odradek.cli.group_report import WIDE, View
from odradek.client.group_descriptions import GroupDescription
from odradek.client.leaders import Partition
from odradek.client.share_offsets import ShareOffset

OFFSETS: Sequence[Column] = (
    ("GROUP", WIDE),
    ("TOPIC", WIDE),
    ("PARTITION", 10),
    ("LEADER-EPOCH", WIDE),
    ("START-OFFSET", WIDE),
    ("LAG", 0),
)
LEADER_EPOCH = 3
"""Index of the column that is shown only with ``--verbose``."""


def share_offsets_view(
    group: GroupDescription, offsets: Mapping[Partition, ShareOffset], verbose: bool
) -> View:
    """The partitions of a share group, with the offset before which all is done and how many are left."""
    full = Table(
        OFFSETS,
        [[group.group_id, *at, each.leader_epoch, each.start, each.lag] for at, each in offsets.items()],
    )
    shown = full if verbose else full.without(LEADER_EPOCH)
    return full.objects(), ["", *shown.lines()] if offsets else []
