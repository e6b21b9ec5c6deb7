"""Faults for some topics of a request: the rest of the request is served as usual."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from odradek.broker.broker import Broker
from odradek.broker.dispatch.throttling import Draft
from odradek.broker.fetch.fetch_session import NO_SESSION, UNKNOWN
from odradek.plugin.context import RequestContext
from odradek.waiting.deferred import Deferred
from odradek.wire.codec import element_writer
from odradek.wire.messages.fetch import FetchRequest, FetchTopic
from odradek.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from odradek.wire.types import NIL_UUID, EncodedElements

INDEXES = ("partition_index", "index", "partition")
"""Names of the field with the number of a partition."""


Serve = Callable[[Any], Any]
"""The rest of handling a request."""


class Shape(NamedTuple):
    """The fields in which an API names topics and partitions; None for an API that names no partitions."""

    topics: str
    partitions: str | None
    answered: str
    """The topics in the response."""
    partitions_answered: str | None
    changes_nothing: bool = False
    """The handler may see the whole request: only its response is changed."""


USUAL = Shape("topics", "partitions", "topics", "partitions")
SHAPES: Mapping[str, Shape] = {
    "CreatePartitions": Shape("topics", None, "results", None),
    "CreateTopics": Shape("topics", None, "topics", None),
    "DeleteRecords": USUAL,
    # a fetch session must learn all partitions of the client
    "Fetch": Shape("topics", "partitions", "responses", "partitions", changes_nothing=True),
    "ListOffsets": USUAL,
    "Metadata": Shape("topics", None, "topics", None, changes_nothing=True),
    "OffsetCommit": USUAL,
    "OffsetForLeaderEpoch": USUAL,
    "Produce": Shape("topic_data", "partition_data", "responses", "partition_responses"),
    "TxnOffsetCommit": USUAL,
}
"""The APIs whose requests and responses have a row for each topic."""


def title(row: Any) -> str:
    """The name of the topic in a row; empty if the row has only its id."""
    return (row.name if hasattr(row, "name") else row.topic) or ""


def index_of(partition: Any) -> int:
    return next(int(getattr(partition, name)) for name in INDEXES if hasattr(partition, name))


def replaced(message: Any, field: str, value: Any) -> Any:
    """A copy of a message with another value of a field."""
    changed = copy(message)
    setattr(changed, field, value)
    return changed


@dataclass(frozen=True, slots=True)
class TopicScope:
    """The topics and partitions that a fault affects.

    Args:
        api: An API of `SHAPES`.
        topic: Name of the topic, or a pattern with ``*``.
        partition: Number of the partition; None for all.
    """

    api: str
    topic: str
    partition: int | None = None

    def __str__(self) -> str:
        return f"topic={self.topic}" + ("" if self.partition is None else f" partition={self.partition}")

    @property
    def shape(self) -> Shape:
        return SHAPES[self.api]

    def affected(self, request: Any, broker: Broker) -> Any:
        """A copy of a request with only the affected partitions, and the names of their topics."""
        rows = [row for row in self.named_rows(request, broker) if fnmatchcase(title(row), self.topic)]
        return replaced(request, self.shape.topics, list(self.picked(rows, self.takes)))

    def unaffected(self, request: Any, broker: Broker) -> Any:
        """A copy of a request with the other partitions."""
        rows = getattr(request, self.shape.topics)
        names = [title(row) for row in self.named_rows(request, broker)]
        others = [row for row, name in zip(rows, names, strict=True) if not fnmatchcase(name, self.topic)]
        same = [row for row, name in zip(rows, names, strict=True) if fnmatchcase(name, self.topic)]
        others += self.picked(same, lambda partition: not self.takes(partition))
        return replaced(request, self.shape.topics, others)

    def takes(self, partition: Any) -> bool:
        return self.partition is None or (partition is not None and index_of(partition) == self.partition)

    def picked(self, rows: list[Any], takes: Callable[[Any], bool]) -> Iterator[Any]:
        """Yield rows with only the partitions that ``takes`` accepts, which gets None if there are none."""
        array = self.shape.partitions
        for row in rows:
            if array is None:
                if takes(None):
                    yield row
            elif partitions := [each for each in getattr(row, array) if takes(each)]:
                yield replaced(row, array, partitions)

    def named_rows(self, request: Any, broker: Broker) -> list[Any]:
        """The rows of a request, with names where it has ids."""
        rows = getattr(request, self.shape.topics)
        if isinstance(request, MetadataRequest) and rows is None:
            return [MetadataRequestTopic(name=topic.name) for topic in broker.topics]
        found = []
        for row in rows:
            topic = None if title(row) else broker.topics.by_id.get(getattr(row, "topic_id", b""))
            field = "name" if hasattr(row, "name") else "topic"
            found.append(row if topic is None else replaced(row, field, topic.name))
        if isinstance(request, FetchRequest) and request.session_id in broker.fetch_sessions.sessions:
            found += [
                FetchTopic(topic=each.topic or "", topic_id=each.topic_id, partitions=[each.wanted])
                for each in broker.fetch_sessions.sessions[request.session_id].partitions.values()
            ]
        return found

    def is_named_in(self, request: Any, broker: Broker) -> bool:
        """Whether a request has an affected partition."""
        return bool(getattr(self.affected(request, broker), self.shape.topics))

    def answer(
        self, request: Any, refused: Any, context: RequestContext, broker: Broker, serve: Serve
    ) -> Any:
        """The response to a request whose affected partitions are refused.

        Args:
            request: The request.
            refused: The response to its affected part.
            context: The context of the request.
            broker: The broker that answers.
            serve: Handles the rest of the request.
        """
        rest = request if self.shape.changes_nothing else self.unaffected(request, broker)
        if not self.shape.changes_nothing and not getattr(rest, self.shape.topics):
            return refused

        def merged(response: Any) -> Any:
            if isinstance(response, Draft):
                settle = response.settle
                return Draft(merged(response.response), lambda: merged(settle()), response.throttled)
            if response is not None:
                self.merge(response, refused, context.api_version)
                self.forget(response, broker)
            return response

        response = serve(rest)
        if not isinstance(response, Deferred):
            return merged(response)
        response = response.then(merged)
        if self.shape.changes_nothing and response.hurry is not None:
            response.hurry()  # a fetch must not wait for records before it reports the error
        return response

    def merge(self, response: Any, refused: Any, version: int) -> None:
        """Replace the refused partitions in a response, or add them."""
        rows = getattr(response, self.shape.answered)
        writer: Any = element_writer  # mypy doubts that classes are hashable
        for row in getattr(refused, self.shape.answered):
            if isinstance(rows, EncodedElements):
                rows.append(writer(type(response), version, self.shape.answered)(row))
                continue
            at = next((at for at, each in enumerate(rows) if same_topic(each, row)), None)
            array = self.shape.partitions_answered
            if at is None:
                rows.append(row)
            elif array is None:
                rows[at] = row
            else:
                others = {index_of(each): each for each in getattr(rows[at], array)}
                others |= {index_of(each): each for each in getattr(row, array)}
                rows[at] = replaced(rows[at], array, list(others.values()))

    def forget(self, response: Any, broker: Broker) -> None:
        """Let a fetch session name the affected partitions again, as after every error."""
        session = broker.fetch_sessions.sessions.get(getattr(response, "session_id", NO_SESSION))
        for each in () if session is None else session.partitions.values():
            if fnmatchcase(each.topic or "", self.topic) and self.takes(each.wanted):
                each.high_watermark = UNKNOWN


def same_topic(one: Any, other: Any) -> bool:
    """Whether two rows are about the same topic; one may have only its name, the other only its id."""
    if title(one) and title(other):
        return title(one) == title(other)
    return bool(getattr(one, "topic_id", None) == getattr(other, "topic_id", NIL_UUID) != NIL_UUID)
