"""The delivery states of all share groups, as far as groups need them: which partitions have one.

What is in a state belongs to the room `share`, which reads and writes the same table.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from odradek.group.committed_offset import TopicPartition
from odradek.group.share_group import ShareGroup
from odradek.group.share_store import UNINITIALIZED, SharePartitionRow, ShareStore
from odradek.group.topic_view import TopicView
from odradek.wire.api_error import ApiError

log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class ShareStates:
    """The delivery states of the registered groups."""

    store: ShareStore
    groups: Mapping[str, object]
    """All registered groups, by id."""
    topics: TopicView
    dropped: Callable[[str, Iterable[TopicPartition] | None], None] = lambda _group_id, _partitions: None
    """Called with the id of a group when delivery states are deleted or set by an operator: what is known of
    these partitions (None: of all) is not true any more."""

    def share_groups(self) -> Iterator[ShareGroup]:
        """All registered share groups."""
        return (group for group in self.groups.values() if isinstance(group, ShareGroup))

    def restore(self) -> None:
        """Give the groups after a restart their delivery states."""
        groups = {group.group_id: group for group in self.share_groups()}
        for group_id, topic_id, index, *_ in self.store.share_partitions():
            groups[group_id].learn([(topic_id, index)])

    def make(self, group: ShareGroup, partitions: Sequence[TopicPartition]) -> None:
        """Let a group begin to read partitions. Its next heartbeats assign them.

        If that cannot be stored, the next heartbeat tries again.
        """
        if not partitions:
            return
        rows: list[SharePartitionRow] = [
            (group.group_id, *partition, UNINITIALIZED, 0, b"") for partition in partitions
        ]
        try:
            self.store.put_share_partitions(rows)
        except ApiError as error:
            log.warning(
                "cannot store the partitions of a share group",
                extra={"group": group.group_id, "error": str(error)},
            )
        else:
            group.learn(partitions)

    def drop_topics(self) -> None:
        """Delete the delivery states of deleted topics.

        Raises:
            ApiError: COORDINATOR_NOT_AVAILABLE: the store cannot be written now.
        """
        known = {topic_id for group in self.share_groups() for topic_id in group.known}
        gone = [topic_id for topic_id in known if self.topics.topic_name(topic_id) is None]
        if not gone:
            return
        self.store.delete_share_topics(gone)
        for group in self.share_groups():
            partitions = [(topic_id, index) for topic_id in gone for index in group.known.get(topic_id, ())]
            if partitions:
                group.forget(partitions)
                self.dropped(group.group_id, partitions)
