"""What the members of a consumer group are subscribed to: names, expressions, the topics behind them now."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from odradek.group.consumer_member import ConsumerMember
from odradek.group.subscribed_regex import SubscribedRegex, compiled
from odradek.group.topic_view import TopicView

Subscription = tuple[frozenset[str], str]
"""Names and an expression, which may be empty."""


@dataclass(slots=True, eq=False)
class GroupSubscriptions:
    """The topics that matter to one group.

    They are looked at when a member changes its subscription and when topics have changed, not with every
    heartbeat.
    """

    topics: TopicView
    regexes: dict[str, SubscribedRegex] = field(default_factory=dict)
    partitions: dict[bytes, int] = field(default_factory=dict)
    """How many partitions each topic has that a member is subscribed to, by topic id."""
    is_stale: bool = False
    """Topics have changed since the last look."""
    ids: dict[Subscription, frozenset[bytes]] = field(default_factory=dict)

    def topic_ids(self, member: ConsumerMember) -> frozenset[bytes]:
        """The topics that a member is subscribed to, as far as they exist."""
        key = (member.subscribed_topic_names, member.subscribed_topic_regex)
        if key not in self.ids:
            self.ids[key] = self.existing(*key)
        return self.ids[key]

    def existing(self, names: frozenset[str], pattern: str) -> frozenset[bytes]:
        """The ids behind one subscription."""
        if pattern:
            names |= self.regex(pattern).topic_names
        found = (self.topics.topic_id(name) for name in names)
        return frozenset(topic_id for topic_id in found if topic_id is not None)

    def regex(self, pattern: str) -> SubscribedRegex:
        """An expression that members may share; all topics are matched against it when it is new."""
        regex = self.regexes.get(pattern)
        if regex is None:
            regex = self.regexes[pattern] = SubscribedRegex(pattern, compiled(pattern))
            regex.resolve(self.topics.topic_names())
        return regex

    def refresh(self, members: Iterable[ConsumerMember]) -> bool:
        """Look again; whether topics came, went or have grown."""
        wanted = {
            (member.subscribed_topic_names, member.subscribed_topic_regex): member for member in members
        }
        used = {pattern for _, pattern in wanted}
        self.regexes = {pattern: regex for pattern, regex in self.regexes.items() if pattern in used}
        if self.is_stale:
            for regex in self.regexes.values():
                regex.resolve(self.topics.topic_names())
        self.is_stale = False
        self.ids = {}
        before, self.partitions = self.partitions, {}
        for member in wanted.values():
            for topic_id in self.topic_ids(member) - self.partitions.keys():
                name = self.topics.topic_name(topic_id)
                self.partitions[topic_id] = 0 if name is None else self.topics.partition_count(name)
        return before != self.partitions
