"""Positions in the logs, by which a record is added once, however often it is delivered."""

from __future__ import annotations

from collections.abc import Iterable

from odradek.plugin import Origin

Partition = tuple[str, int]
"""Topic id and partition."""


class Positions:
    """The next offset of each partition."""

    def __init__(self, known: Iterable[Origin] = ()) -> None:
        """Continue at stored positions.

        Args:
            known: Each partition with its next offset.
        """
        self.next_offsets: dict[Partition, int] = {
            (each.topic_id, each.partition): each.offset for each in known
        }
        self.changed: set[Partition] = set()
        self.last_clients: dict[Partition, set[bytes]] = {}
        """The clients with a push in the last record of each partition. All pushes of a record come in one
        batch."""

    def take(self, position: Origin, instance_id: bytes) -> int | None:
        """Move past the push of a client in a record.

        Returns:
            The number of records that were skipped, or None if this record was taken before. The first record
            of a partition skips nothing.
        """
        partition = (position.topic_id, position.partition)
        expected = self.next_offsets.get(partition, position.offset)
        clients = self.last_clients.get(partition)
        if clients is not None and position.offset == expected - 1 and instance_id not in clients:
            clients.add(instance_id)
            return 0
        if position.offset < expected:
            return None
        self.last_clients[partition] = {instance_id}
        self.next_offsets[partition] = position.offset + 1
        self.changed.add(partition)
        return position.offset - expected

    def take_changes(self) -> list[Origin]:
        """The next offsets that have changed since the last call."""
        changed = [Origin(*partition, self.next_offsets[partition]) for partition in sorted(self.changed)]
        self.changed.clear()
        return changed
