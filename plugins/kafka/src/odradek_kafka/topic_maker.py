"""Creates missing topics."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from odradek.endpoints import with_token_file
from odradek_kafka.producer_session import described, library_log

log = logging.getLogger(__name__)

NOT_OURS_TO_MAKE = frozenset(
    {
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
    }
)
"""Errors after which the topic may exist anyway; producing to it shows whether it does."""


class TopicSettings(Protocol):
    """How topics are created: `KafkaSettings` or `WriterSettings`."""

    @property
    def options(self) -> Mapping[str, str]: ...

    @property
    def topic_create(self) -> bool: ...

    @property
    def topic_partitions(self) -> int: ...

    @property
    def topic_replication_factor(self) -> int: ...

    @property
    def liveness_topic(self) -> str | None: ...


class TopicMaker:
    """Creates each topic once, unless it exists; the liveness topic is compacted."""

    def __init__(self, settings: TopicSettings, make: Callable[..., Any] = AdminClient) -> None:
        self.settings = settings
        self.make = make
        self.ready: set[str] = set()

    async def ensure(self, topics: Iterable[str], timeout_s: float) -> str | None:
        """Create the missing topics.

        Returns:
            None if all topics exist or may exist; otherwise the problem, with the name of the topic.
        """
        missing = set(topics) - self.ready
        problem = None
        if missing and self.settings.topic_create:
            problem = await self.create(sorted(missing), timeout_s)
        if problem is None:
            self.ready |= missing
        return problem

    def forget(self, topics: Iterable[str]) -> None:
        """Check these topics again before the next use: they may have been deleted."""
        self.ready.difference_update(topics)

    async def create(self, topics: list[str], timeout_s: float) -> str | None:
        client = self.make(with_token_file(self.settings.options, time.time()), logger=library_log)
        futures = client.create_topics([self.new_topic(topic) for topic in topics], request_timeout=timeout_s)
        problems = [await self.made(topic, asyncio.wrap_future(future)) for topic, future in futures.items()]
        return next((problem for problem in problems if problem), None)

    async def made(self, topic: str, answer: asyncio.Future[None]) -> str | None:
        """The problem with a topic; None if it exists or may exist."""
        try:
            await answer
        except KafkaException as error:
            reason: KafkaError = error.args[0]
            if reason.code() in NOT_OURS_TO_MAKE:
                extra = {"topic": topic, "problem": described(reason)}
                log.warning("not allowed to create the topic: create it, or allow it", extra=extra)
            elif reason.code() != KafkaError.TOPIC_ALREADY_EXISTS:
                return f"topic {topic} cannot be created: {described(reason)}"
        else:
            log.info("topic created", extra={"topic": topic})
        return None

    def new_topic(self, name: str) -> NewTopic:
        compacted = {"cleanup.policy": "compact"} if name == self.settings.liveness_topic else {}
        return NewTopic(
            name, self.settings.topic_partitions, self.settings.topic_replication_factor, config=compacted
        )
