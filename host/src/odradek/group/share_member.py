"""One member of a share group, and its stored form."""

from __future__ import annotations

import json
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from odradek.group.committed_offset import TopicPartition
from odradek.waiting.clock import TimerTask

NOTHING: frozenset[TopicPartition] = frozenset()


@dataclass(slots=True, eq=False)
class ShareMember:
    """One member. A null field of a request leaves its value unchanged."""

    member_id: str
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: frozenset[str] = frozenset()
    member_epoch: int = 0
    previous_member_epoch: int = 0
    assigned: AbstractSet[TopicPartition] = NOTHING
    """What the client was told."""
    target: AbstractSet[TopicPartition] = NOTHING
    """What it is told with its next heartbeat."""
    session: TimerTask | None = None

    def stop_timers(self) -> None:
        """Stop the timer of a member that is removed."""
        if self.session is not None:
            self.session.cancel()
            self.session = None

    def stored(self) -> str:
        """The member as JSON."""
        return json.dumps(
            {
                "rack_id": self.rack_id,
                "client_id": self.client_id,
                "client_host": self.client_host,
                "topics": sorted(self.subscribed_topic_names),
                "epoch": self.member_epoch,
                "previous_epoch": self.previous_member_epoch,
                "assigned": by_topic(self.assigned),
                "target": None if self.target == self.assigned else by_topic(self.target),
            }
        )

    @classmethod
    def restored(cls, member_id: str, text: str) -> ShareMember:
        """The member from its stored form. Raises as `odradek.group.kept_group.readable` expects."""
        found = json.loads(text)
        assigned = of_topics(found["assigned"])
        return cls(
            member_id,
            rack_id=found["rack_id"],
            client_id=found["client_id"],
            client_host=found["client_host"],
            subscribed_topic_names=frozenset(found["topics"]),
            member_epoch=found["epoch"],
            previous_member_epoch=found["previous_epoch"],
            assigned=assigned,
            target=assigned if found["target"] is None else of_topics(found["target"]),
        )


def indexes_of(partitions: Iterable[TopicPartition]) -> dict[bytes, list[int]]:
    """Partitions by topic, in order."""
    found: dict[bytes, list[int]] = {}
    for topic_id, index in sorted(partitions):
        found.setdefault(topic_id, []).append(index)
    return found


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    return {topic_id.hex(): indexes for topic_id, indexes in indexes_of(partitions).items()}


def of_topics(stored: dict[str, list[int]]) -> frozenset[TopicPartition]:
    return frozenset(
        (bytes.fromhex(topic_id), index) for topic_id, indexes in stored.items() for index in indexes
    )
