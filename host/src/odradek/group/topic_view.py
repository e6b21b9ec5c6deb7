"""The view of topics that groups need."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol


class TopicView(Protocol):
    """The current topics of the host; implemented by the broker."""

    def topic_id(self, name: str) -> bytes | None:
        """The id of a topic; None if there is no such topic."""

    def topic_name(self, topic_id: bytes) -> str | None:
        """The name of a topic; None if there is no such topic."""

    def partition_count(self, name: str) -> int:
        """The number of partitions of a topic; 0 if there is no such topic."""

    def matchable_names(self) -> Iterable[str]:
        """The names of all topics that an expression may match: those that are not internal."""
