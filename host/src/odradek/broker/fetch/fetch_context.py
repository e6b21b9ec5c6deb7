"""The partitions of one fetch request, and those that its response names (KIP-227).

After FetchContext and its four implementations (Kafka 4.3): a request has no session, opens one, continues
one, or names a wrong one, which is refused here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from odradek.broker.fetch.fetch_session import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    NO_SESSION,
    CachedPartition,
    FetchSession,
    FetchSessionCache,
    PartitionKey,
    forgotten_keys,
    next_epoch,
)
from odradek.broker.topics import Topics
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData

TOPIC_ID_VERSION = 13
MAX_SESSION_PARTITIONS = 20_000
"""As many as a request without a session can name; each request of a session reads all of them."""
Partitions = dict[PartitionKey, CachedPartition]
Answers = Sequence[tuple[PartitionKey, CachedPartition, PartitionData]]
"""Each partition with its response data, in the order of the response."""


def requested(request: FetchRequest, version: int, topics: Topics) -> Partitions:
    """The partitions that a request names, each once; the last mention counts."""
    partitions: Partitions = {}
    for topic in request.topics:
        if version >= TOPIC_ID_VERSION:
            known = topics.by_id.get(topic.topic_id)
            name, key = known.name if known is not None else None, topic.topic_id
            for wanted in topic.partitions:
                partitions[key, wanted.partition] = CachedPartition(name, key, wanted)
        else:
            for wanted in topic.partitions:
                partitions[topic.topic, wanted.partition] = CachedPartition(
                    topic.topic, topic.topic_id, wanted
                )
    return partitions


@dataclass(slots=True)
class FullContext:
    """A request that names all its partitions; the response names them all too."""

    partitions: Partitions
    cache: FetchSessionCache | None
    """The cache in which the response opens a session; None if the client wants no session."""
    uses_topic_ids: bool

    def draft(self, answers: Answers) -> FetchResponse:
        """The response that `respond` would give, without a session id; changes no state."""
        return FetchResponse(responses=by_topic(answers))

    def throttled(self) -> FetchResponse:
        """The empty response of a throttled client; opens no session."""
        return FetchResponse()

    def respond(self, answers: Answers, now_ms: int) -> FetchResponse:
        """The response with all partitions; opens a session if the client asks for one."""
        session_id = NO_SESSION
        if self.cache is not None:
            for _, partition, answer in answers:
                partition.remember(answer)
            session_id = self.cache.open(self.partitions, self.uses_topic_ids, now_ms)
        return FetchResponse(session_id=session_id, responses=by_topic(answers))


@dataclass(slots=True)
class IncrementalContext:
    """A request that continues a session; the response names only the partitions that changed."""

    session: FetchSession
    epoch: int
    """The epoch of the session until its next request."""

    @property
    def partitions(self) -> Partitions:
        return self.session.partitions

    def draft(self, answers: Answers) -> FetchResponse:
        """The response that `respond` would give; changes no state."""
        told = self.new_to_client(answers)
        return self.checked(FetchResponse(session_id=self.session.id, responses=by_topic(told)))

    def throttled(self) -> FetchResponse:
        """The empty response of a throttled client; the session continues, and changes stay unsent."""
        return self.checked(FetchResponse(session_id=self.session.id))

    def respond(self, answers: Answers, now_ms: int) -> FetchResponse:
        """The response with the partitions that changed since the last one."""
        told = self.new_to_client(answers)
        response = self.checked(FetchResponse(session_id=self.session.id, responses=by_topic(told)))
        if not response.error_code:
            for key, partition, answer in told:
                partition.remember(answer)
                if answer.records:
                    self.session.move_to_end(key)
        return response

    @staticmethod
    def new_to_client(answers: Answers) -> Answers:
        """The partitions that changed since the last response."""
        return [row for row in answers if row[1].differs(row[2])]

    def checked(self, response: FetchResponse) -> FetchResponse:
        """The response; an error if another request has advanced the session."""
        if self.session.epoch == self.epoch:
            return response
        return FetchResponse(error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH)


FetchContext = FullContext | IncrementalContext


def open_context(
    request: FetchRequest, version: int, topics: Topics, cache: FetchSessionCache, now_ms: int
) -> FetchContext:
    """The context of a request.

    Raises:
        ApiError: FETCH_SESSION_ID_NOT_FOUND, FETCH_SESSION_TOPIC_ID_ERROR (the session was opened with names
            and the request has topic ids, or the reverse) or INVALID_FETCH_SESSION_EPOCH.
    """
    by_id = version >= TOPIC_ID_VERSION
    named = requested(request, version, topics)
    if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
        cache.remove(request.session_id)
        return FullContext(named, cache if request.session_epoch == INITIAL_EPOCH else None, by_id)
    session = cache.sessions.get(request.session_id)
    if session is None:
        raise ApiError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    if session.uses_topic_ids != by_id:
        raise ApiError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
    if session.epoch != request.session_epoch:
        raise ApiError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
    session.update(named, forgotten_keys(request.forgotten_topics_data, by_id))
    if not session.partitions:
        cache.remove(session.id)
        return FullContext({}, None, by_id)
    cache.touch(session, now_ms)
    if cache.partitions > cache.max_partitions or len(session.partitions) > MAX_SESSION_PARTITIONS:
        cache.remove(session.id)  # the client then sends a full request and continues without a session
        raise ApiError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    session.epoch = next_epoch(session.epoch)
    return IncrementalContext(session, session.epoch)


def by_topic(
    answers: Iterable[tuple[PartitionKey, CachedPartition, PartitionData]],
) -> list[FetchableTopicResponse]:
    """The partitions in order; neighbors of one topic share an entry."""
    responses: list[FetchableTopicResponse] = []
    last: str | bytes | None = None
    for (topic_key, _), partition, answer in answers:
        if topic_key != last:
            last = topic_key
            responses.append(FetchableTopicResponse(topic=partition.topic or "", topic_id=partition.topic_id))
        responses[-1].partitions.append(answer)
    return responses
