"""The names of topics that clients call by their ids, as the cluster tells them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

MOST_NAMES: Final = 100_000
MOST_UNKNOWN: Final = 1_000


class TopicNames:
    """Names by id.

    Args:
        refresh: Asks the cluster soon.
    """

    def __init__(self, refresh: Callable[[], None]) -> None:
        self.refresh = refresh
        self.names: dict[bytes, str] = {}
        self.unknown: dict[bytes, None] = {}
        """Ids that the cluster is asked for, with each poll until it knows them."""

    def name_of(self, topic_id: bytes) -> str | None:
        """The name of a topic; None if it is not known yet."""
        name = self.names.get(topic_id)
        if name is None and topic_id not in self.unknown:
            if len(self.unknown) >= MOST_UNKNOWN:
                del self.unknown[next(iter(self.unknown))]
            self.unknown[topic_id] = None
            self.refresh()
        return name

    def wanted(self) -> list[bytes]:
        """The ids to ask for. May be called on another thread."""
        return list(self.unknown)

    def learn(self, names: Mapping[bytes, str]) -> None:
        """Take names from the cluster."""
        for topic_id, name in names.items():
            self.unknown.pop(topic_id, None)
            if len(self.names) >= MOST_NAMES:
                del self.names[next(iter(self.names))]
            self.names[topic_id] = name
