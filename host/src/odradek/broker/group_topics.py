"""A view of the topics for the group coordinator."""

from __future__ import annotations

from collections.abc import Iterable

from odradek.broker.topics import Topics


class GroupTopics:
    """Implements `odradek.group.topic_view.TopicView` on `Topics`."""

    def __init__(self, topics: Topics) -> None:
        self.topics = topics

    def topic_id(self, name: str) -> bytes | None:
        topic = self.topics.by_name.get(name)
        return None if topic is None else topic.id

    def topic_name(self, topic_id: bytes) -> str | None:
        topic = self.topics.by_id.get(topic_id)
        return None if topic is None else topic.name

    def partition_count(self, name: str) -> int:
        topic = self.topics.by_name.get(name)
        return 0 if topic is None else len(topic.partitions)

    def matchable_names(self) -> Iterable[str]:
        return (name for name, topic in self.topics.by_name.items() if not topic.is_internal)
