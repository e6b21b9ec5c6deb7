"""How long the topics of a cluster keep records, asked for rarely."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from itertools import islice
from typing import Final

from odradek.client.asked_brokers import AskedBrokers
from odradek.client.connection import Connection
from odradek.waiting.clock import Clock
from odradek.waiting.steps import Steps
from odradek.wire.config_resource import ResourceType
from odradek.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)

ASKED_EVERY_MS: Final = 600_000
"""Settings of topics change rarely."""
TOPICS_A_REQUEST: Final = 100
RETENTION, POLICY, DELETE = "retention.ms", "cleanup.policy", "delete"


class RetentionTimes:
    """``retention.ms`` of topics that are read.

    A topic whose settings this client may not see (DESCRIBE_CONFIGS) has none.

    Args:
        brokers: Of the cluster. Any of them knows the topics.
        clock: The time.
    """

    def __init__(self, brokers: AskedBrokers, clock: Clock) -> None:
        self.brokers = brokers
        self.clock = clock
        self.times: dict[str, int | None] = {}
        """By topic, in ms; None where records stay, or nothing may be seen."""
        self.due_ms = 0
        """When all are asked for again, on the monotonic clock."""

    def learn(self, topics: Collection[str]) -> Steps:
        """Ask for topics that are new, and for all of them from time to time."""
        now_ms = self.clock.monotonic_ms()
        if now_ms >= self.due_ms:
            self.due_ms = now_ms + ASKED_EVERY_MS
            wanted = iter(list(topics))
        else:
            wanted = iter([name for name in topics if name not in self.times])
        self.times = {name: time_ms for name, time_ms in self.times.items() if name in topics}
        while some := list(islice(wanted, TOPICS_A_REQUEST)):
            for node in list(self.brokers.nodes):
                found: DescribeConfigsResponse | None = yield from self.brokers.answer(
                    node, partial(ask, topics=some)
                )
                if found is not None:
                    self.times |= {row.resource_name: retention_ms(row) for row in found.results}
                    break


def ask(connection: Connection, topics: Sequence[str]) -> DescribeConfigsResponse:
    """Ask for what deletes the records of topics.

    Raises:
        ClientError: The broker does not answer.
    """
    resources = [
        DescribeConfigsResource(
            resource_type=ResourceType.TOPIC, resource_name=name, configuration_keys=[RETENTION, POLICY]
        )
        for name in topics
    ]
    response: DescribeConfigsResponse = connection.send(DescribeConfigsRequest(resources=resources))
    return response


def retention_ms(row: DescribeConfigsResult) -> int | None:
    """The time after which records are deleted; None if they are not, or if nothing may be seen."""
    values = {each.name: each.value or "" for each in row.configs}
    text = values.get(RETENTION, "")
    if row.error_code or DELETE not in values.get(POLICY, DELETE) or not text.lstrip("-").isdecimal():
        return None
    return int(text)
