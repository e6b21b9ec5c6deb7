"""The members of a share group for the bench of shares, as raw requests on one connection each.

Each fetch accepts everything that the one before has got, as a consumer with implicit acknowledgement does.
All members of a process have a request under way at the same time.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import cycle, islice
from typing import Any, Final

from bench import loads
from odradek.share.share_sessions import FINAL_EPOCH, INITIAL_EPOCH
from odradek.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.wire.messages.find_coordinator import FindCoordinatorRequest
from odradek.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from odradek.wire.messages.share_acknowledge import AcknowledgementBatch
from odradek.wire.messages.share_fetch import FetchPartition, FetchTopic, ShareFetchRequest
from odradek.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from odradek.wire.record import Record
from odradek.wire.record_batch import build_batch
from support.data_requests import produce_request
from support.wire_client import WireClient

GROUP_RESOURCE: Final = 32
ACCEPT: Final = 1
PATIENCE_S: Final = 60.0
AGAIN_S: Final = 0.2
MAX_WAIT_MS: Final = 500
MAX_BYTES: Final = 1 << 20
TOPIC_EXISTS: Final = 36
LAST_PRODUCE: Final = 9
COORDINATOR_VERSION: Final = 4
Ranges = dict[int, list[tuple[int, int]]]
"""First and last offsets by partition."""


@dataclass(slots=True)
class Member:
    """One member of the group."""

    client: WireClient
    group: str
    name: str
    topic: str
    epoch: int = 0
    session: int = INITIAL_EPOCH
    partitions: list[int] = field(default_factory=list)
    topic_id: bytes = b""
    held: Ranges = field(default_factory=dict)

    def beat(self) -> bool:
        """Join or stay; whether it has partitions."""
        request = ShareGroupHeartbeatRequest(
            group_id=self.group,
            member_id=self.name,
            member_epoch=self.epoch,
            subscribed_topic_names=None if self.epoch else [self.topic],
        )
        answer = self.client.send(request)
        if answer.error_code:
            return False
        self.epoch = answer.member_epoch
        for each in answer.assignment.topic_partitions if answer.assignment else ():
            self.topic_id, self.partitions = each.topic_id, each.partitions
        return bool(self.partitions)

    def ask(self, most: int, *, last: bool = False) -> None:
        """Send a fetch that accepts what the member holds."""
        session = FINAL_EPOCH if last else self.session
        named = self.partitions if session == INITIAL_EPOCH else list(self.held)
        rows = [
            FetchPartition(
                partition_index=index,
                acknowledgement_batches=[
                    AcknowledgementBatch(first_offset=first, last_offset=end, acknowledge_types=[ACCEPT])
                    for first, end in self.held.get(index, ())
                ],
            )
            for index in named
        ]
        request = ShareFetchRequest(
            group_id=self.group,
            member_id=self.name,
            share_session_epoch=session,
            max_wait_ms=MAX_WAIT_MS,
            min_bytes=1,
            max_bytes=MAX_BYTES,
            max_records=most,
            batch_size=most,
            topics=[FetchTopic(topic_id=self.topic_id, partitions=rows)] if rows else [],
        )
        self.client.send_bytes(self.client.frame(request, request.VERSIONS.last))
        self.session += 1

    def take(self) -> tuple[int, int, int, list[str]]:
        """The answer: records accepted and got, the bytes of their batches, and problems."""
        answer = self.client.answer(ShareFetchRequest(), ShareFetchRequest.VERSIONS.last)
        accepted = sum(end - first + 1 for ranges in self.held.values() for first, end in ranges)
        self.held.clear()
        got = size_bytes = 0
        problems = [f"error {answer.error_code}"] if answer.error_code else []
        for topic in answer.responses:
            for row in topic.partitions:
                if row.error_code or row.acknowledge_error_code:
                    problems.append(f"errors {row.error_code} and {row.acknowledge_error_code}")
                ranges = [(each.first_offset, each.last_offset) for each in row.acquired_records]
                if ranges:
                    self.held[row.partition_index] = ranges
                    got += sum(end - first + 1 for first, end in ranges)
                    size_bytes += len(row.records or b"")
        return accepted, got, size_bytes, problems


class ShareFetch:
    """Fetch and accept ``records`` records with ``members`` members, ``at_once`` records with each fetch."""

    def __init__(self, port: int, settings: dict[str, Any]) -> None:
        self.records, self.at_once, self.bytes = settings["records"], settings["at_once"], 0
        self.topic, self.problems = settings["topic"], list[str]()
        self.sent = 0
        self.stack = ExitStack()
        self.address = "127.0.0.1", port
        self.prepare(settings["partitions"], settings["lengths"])
        group = f"{self.topic}-{time.monotonic_ns()}"
        self.begin_at_first(group)
        self.members = [
            Member(self.connected(), group, f"m{number}", self.topic) for number in range(settings["members"])
        ]
        deadline = time.monotonic() + PATIENCE_S
        while not all([each.beat() for each in self.members]):  # noqa: C419  each of them has to beat
            if time.monotonic() > deadline:
                raise TimeoutError("a member has no partitions")
            time.sleep(AGAIN_S)

    def connected(self) -> WireClient:
        return self.stack.enter_context(WireClient(self.address))

    def prepare(self, partitions: int, lengths: str) -> None:
        """Create the topic with its records, unless it exists: batches of as many records as a fetch gets."""
        with WireClient(self.address) as client:
            wanted = CreatableTopic(name=self.topic, num_partitions=partitions, replication_factor=1)
            created = client.send(CreateTopicsRequest(topics=[wanted], timeout_ms=30_000)).topics[0]
            if created.error_code == TOPIC_EXISTS:
                return
            if created.error_code:
                raise RuntimeError(f"the topic was not created: {created.error_code}")
            content = cycle(loads.records(lengths, 1))
            for number in range(self.records // self.at_once):
                some = [
                    Record(key, value, headers=tuple(headers))
                    for key, value, headers in islice(content, self.at_once)
                ]
                request = produce_request(self.topic, build_batch(some), index=number % partitions)
                answer = client.send(request, LAST_PRODUCE)
                code = answer.responses[0].partition_responses[0].error_code
                if code:
                    raise RuntimeError(f"records were not taken: {code}")

    def begin_at_first(self, group: str) -> None:
        """Let the group read everything. Kafka makes a topic for groups when a coordinator is asked for."""
        configs = [AlterableConfig(name="share.auto.offset.reset", value="earliest")]
        resource = AlterConfigsResource(resource_type=GROUP_RESOURCE, resource_name=group, configs=configs)
        with WireClient(self.address) as client:
            client.send(IncrementalAlterConfigsRequest(resources=[resource]))
            client.send(FindCoordinatorRequest(coordinator_keys=[group]), COORDINATOR_VERSION)

    def run(self) -> None:
        accepted = got = 0
        while accepted < self.records and not self.problems:
            busy = self.members if got < self.records else [each for each in self.members if each.held]
            for each in busy:
                each.ask(self.at_once, last=got >= self.records)
            for each in busy:
                self.sent += 1
                done, more, size_bytes, problems = each.take()
                accepted, got, self.bytes = accepted + done, got + more, self.bytes + size_bytes
                self.problems += problems
        if accepted != self.records:
            self.problems.append(f"{accepted} of {self.records} records were accepted")

    def requests(self) -> int:
        self.stack.close()
        return self.sent
