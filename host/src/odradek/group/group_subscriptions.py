"""The subscriptions of a consumer group, by name and by regular expression, and the topics that they
match.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from odradek.bounds.bounded_regex import RegexBounds
from odradek.group.consumer_member import ConsumerMember
from odradek.group.subscribed_regex import SubscribedRegex, compiled
from odradek.group.topic_view import TopicView
from odradek.waiting.deferred import Deferred
from odradek.waiting.steps import result_of

log = logging.getLogger(__name__)

Compute = Callable[[Generator[None, None, Any]], Any]
"""Do work in steps: return its result, or a `Deferred` of it; see `StepRunner.answer`."""
Subscription = tuple[frozenset[str], str]
"""Topic names and a regular expression, which may be empty."""


@dataclass(slots=True, eq=False)
class GroupSubscriptions:
    """The subscribed topics of one group.

    They are resolved when a member changes its subscription or topics change, not with every heartbeat.
    """

    topics: TopicView
    regex_bounds: RegexBounds = field(default_factory=RegexBounds)
    compute: Compute = result_of
    sees: Callable[[str], bool] = lambda _name: True
    """Whether the client of the newest heartbeat may see a topic: expressions match no other, as in Kafka."""
    regexes: dict[str, SubscribedRegex] = field(default_factory=dict)
    new: list[SubscribedRegex] = field(default_factory=list)
    """Expressions of this heartbeat. They count from the next one on: Kafka matches in between."""
    matched_ms: int = 0
    """The time of the last match against all topics, or of the newest heartbeat without expressions."""
    matches_all: bool = False
    """Whether the next `refresh` matches all topics, not only new ones."""
    matched_names: frozenset[str] = frozenset()
    """All topics at the last change of topics: the expressions were matched against them."""
    partitions: dict[bytes, int] = field(default_factory=dict)
    """The number of partitions of each subscribed topic, by topic id."""
    is_stale: bool = False
    """Whether topics have changed since the last `refresh`."""
    ids: dict[Subscription, frozenset[bytes]] = field(default_factory=dict)
    """The existing topics of each subscription, until topics change."""
    names: dict[frozenset[str], frozenset[str]] = field(default_factory=dict)
    """The names in each subscription: one object for all members, so that they are compared quickly."""

    def topic_ids(self, member: ConsumerMember) -> frozenset[bytes]:
        """The existing topics that a member is subscribed to."""
        key = (member.subscribed_topic_names, member.subscribed_topic_regex)
        if key not in self.ids:
            self.ids[key] = self.existing(*key)
        return self.ids[key]

    def shared(self, names: Iterable[str]) -> frozenset[str]:
        """These names as other members with the same subscription have them."""
        own = frozenset(names)
        return self.names.get(own, own)

    def existing(self, names: frozenset[str], pattern: str) -> frozenset[bytes]:
        """The topic ids of one subscription."""
        if pattern:
            regex = self.regex(pattern)
            names |= frozenset() if regex in self.new else regex.topic_names
        found = (self.topics.topic_id(name) for name in names)
        return frozenset(topic_id for topic_id in found if topic_id is not None)

    def regex(self, pattern: str) -> SubscribedRegex:
        """A regular expression, shared by members. A new one is matched against all topics."""
        regex = self.regexes.get(pattern)
        if regex is None:
            regex = self.regexes[pattern] = SubscribedRegex(pattern, compiled(pattern, self.regex_bounds))
            self.new.append(regex)
            self.match(regex, self.topics.matchable_names())
        return regex

    def is_new(self, pattern: str) -> bool:
        """Whether an expression has not been matched yet."""
        return bool(pattern) and pattern not in self.regexes

    def begin(self, now_ms: int, interval_ms: int) -> None:
        """Begin a heartbeat. Let the next `refresh` match all topics again if the last time was that long
        ago, as in Kafka: the client may have gained or lost the right to see a topic.
        """
        if self.new:
            self.new.clear()
            self.is_stale = True
        if not self.regexes:
            self.matched_ms = now_ms
        elif now_ms - self.matched_ms >= interval_ms:
            self.matched_ms = now_ms
            self.is_stale = self.matches_all = True

    def match(self, regex: SubscribedRegex, names: Iterable[str], *, replace: bool = False) -> None:
        """Match topics with an expression: now, or in the background if that takes long, as in Kafka.

        Args:
            regex: The expression.
            names: The names of the topics.
            replace: They are all topics: what matched before and does not match now is dropped.
        """
        if replace:
            regex.stop()
        found = self.compute(regex.matching(names, self.sees))
        if isinstance(found, Deferred):
            regex.pending.add(found)
            found.when_done(partial(self.matched, regex, found, replace))
        else:
            regex.topic_names = found if replace else regex.topic_names | found

    def matched(
        self,
        regex: SubscribedRegex,
        work: Deferred[frozenset[str]],
        replace: bool,
        found: frozenset[str] | Exception,
    ) -> None:
        """Use the topics that were matched in the background. Some may have been deleted meanwhile: the next
        refresh removes them.
        """
        regex.pending.discard(work)
        if isinstance(found, Exception):
            log.error("cannot match topics", exc_info=found, extra={"pattern": regex.pattern})
        else:
            regex.topic_names = found if replace else regex.topic_names | found
            self.is_stale = True

    def close(self) -> None:
        """Stop all work."""
        for regex in self.regexes.values():
            regex.stop()

    def refresh(self, members: Iterable[ConsumerMember]) -> bool:
        """Resolve all subscriptions; return whether topics were added or removed or have more partitions."""
        wanted = {
            (member.subscribed_topic_names, member.subscribed_topic_regex): member for member in members
        }
        self.names = {names: names for names, _ in wanted}
        used = {pattern for _, pattern in wanted}
        for pattern in self.regexes.keys() - used:
            self.regexes.pop(pattern).stop()
        if self.is_stale:
            names = frozenset(self.topics.matchable_names() if self.regexes else ())
            added = names if self.matches_all else names - self.matched_names
            for regex in self.regexes.values():
                regex.topic_names &= names
                if added:
                    self.match(regex, added, replace=self.matches_all)
            self.matched_names, self.matches_all = names, False
            self.ids = {}
        self.is_stale = False
        self.ids = {key: ids for key, ids in self.ids.items() if key in wanted}
        before, self.partitions = self.partitions, {}
        for member in wanted.values():
            for topic_id in self.topic_ids(member) - self.partitions.keys():
                name = self.topics.topic_name(topic_id)
                self.partitions[topic_id] = 0 if name is None else self.topics.partition_count(name)
        return before != self.partitions
