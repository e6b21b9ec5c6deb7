"""Members of share groups, and what a group must have done at the end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from lives.actors import Actor
from lives.clients import Client
from lives.truth import Truth
from lives.world import PARTITIONS, TOPIC
from odradek.programs.host import Host
from odradek.share.acknowledgement import ACCEPT, GAP, REJECT, RELEASE
from odradek.share.share_sessions import FINAL_EPOCH, INITIAL_EPOCH
from odradek.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig
from odradek.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from odradek.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from odradek.wire.messages.share_acknowledge import AcknowledgementBatch
from odradek.wire.messages.share_fetch import FetchPartition, FetchTopic, ShareFetchRequest
from odradek.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from odradek.wire.record_batch import record_batches, records

GROUP_RESOURCE: Final = 32
LETTERS: Final = "dlq.lives"
KEEPS_LETTERS: Final = "sharers-letters"
GROUPS: Final = {
    "sharers": {"share.auto.offset.reset": "earliest", "share.delivery.count.limit": "3"},
    KEEPS_LETTERS: {
        "share.auto.offset.reset": "earliest",
        "errors.deadletterqueue.topic.name": LETTERS,
        "errors.deadletterqueue.copy.record.enable": "true",
    },
}
"""With their settings."""
LETTERS_TOPIC: Final = CreatableTopic(
    name=LETTERS,
    num_partitions=1,
    replication_factor=1,
    configs=[CreatableTopicConfig(name="errors.deadletterqueue.group.enable", value="true")],
)
TOPIC_NAMES_VERSION: Final = 12
Words = dict[int, list[AcknowledgementBatch]]
"""By partition."""


def settings() -> IncrementalAlterConfigsRequest:
    """What an operator sets before the first member comes."""
    return IncrementalAlterConfigsRequest(
        resources=[
            AlterConfigsResource(
                resource_type=GROUP_RESOURCE,
                resource_name=group,
                configs=[AlterableConfig(name=name, value=value) for name, value in configs.items()],
            )
            for group, configs in GROUPS.items()
        ]
    )


async def topic_id(client: Client) -> bytes:
    told = await client.ask(MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)]), TOPIC_NAMES_VERSION)
    return bytes(told.topics[0].topic_id)


class Sharer(Actor):
    """A member of a share group, which takes records, says something about some of them, and often
    vanishes.
    """

    async def act(self, client: Client, port: int) -> None:
        group, epoch, session = self.chance.choice(list(GROUPS)), 0, INITIAL_EPOCH
        topic = await topic_id(client)
        held: dict[int, list[tuple[int, int]]] = {}
        for left in reversed(range(self.chance.randint(2, 10))):
            self.truth.acts["share"] += 1
            epoch = await self.beat(client, group, epoch)
            words = self.words(held) if session > INITIAL_EPOCH else {}
            if session > INITIAL_EPOCH and not left and self.chance.random() < 0.4:
                session = FINAL_EPOCH
            answer = await client.ask(self.fetch(group, topic, session, words))
            if answer.error_code or session == FINAL_EPOCH:
                held.clear()
            if not answer.error_code:
                self.note(group, words, answer, held)
            session = INITIAL_EPOCH if answer.error_code or session == FINAL_EPOCH else session + 1
            await self.pause()
        if self.chance.random() < 0.4:
            await self.beat(client, group, -1)

    async def beat(self, client: Client, group: str, epoch: int) -> int:
        """Send a heartbeat; the epoch of the next one."""
        answer = await client.ask(
            ShareGroupHeartbeatRequest(
                group_id=group,
                member_id=self.name,
                member_epoch=epoch,
                subscribed_topic_names=None if epoch else [TOPIC],
            )
        )
        return 0 if answer.error_code else int(answer.member_epoch)

    def words(self, held: dict[int, list[tuple[int, int]]]) -> Words:
        """What it says about records that it holds; about some of them, nothing."""
        found: Words = {}
        for partition, ranges in held.items():
            said = [each for each in ranges if self.chance.random() < 0.8]
            held[partition] = [each for each in ranges if each not in said]
            for first, last in said:
                kinds = self.chance.choices((ACCEPT, RELEASE, REJECT, GAP), (6, 2, 2, 1), k=last - first + 1)
                batch = AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=kinds)
                found.setdefault(partition, []).append(batch)
        return found

    def fetch(self, group: str, topic: bytes, session: int, words: Words) -> ShareFetchRequest:
        named = range(PARTITIONS) if session == INITIAL_EPOCH else words
        rows = [
            FetchPartition(partition_index=index, acknowledgement_batches=words.get(index, []))
            for index in named
        ]
        return ShareFetchRequest(
            group_id=group,
            member_id=self.name,
            share_session_epoch=session,
            max_wait_ms=self.chance.choice((0, 0, 500, 5_000)),
            min_bytes=self.chance.choice((0, 1, 1_000)),
            max_bytes=1 << 20,
            max_records=self.chance.choice((1, 7, 500)),
            batch_size=self.chance.choice((1, 500)),
            share_acquire_mode=self.chance.choice((0, 1)),
            topics=[FetchTopic(topic_id=topic, partitions=rows)] if rows else [],
        )

    def note(self, group: str, words: Words, answer: Any, held: dict[int, list[tuple[int, int]]]) -> None:
        """Note what was promised, and what it holds now."""
        rows = {row.partition_index: row for topic in answer.responses for row in topic.partitions}
        for partition, batches in words.items():
            if partition in rows and not rows[partition].acknowledge_error_code:
                for batch in batches:
                    for offset, kind in enumerate(batch.acknowledge_types, batch.first_offset):
                        if kind != RELEASE:
                            self.truth.shared[group, partition, offset] = kind
        for partition, row in rows.items():
            got = [(each.first_offset, each.last_offset) for each in row.acquired_records]
            held[partition] = sorted(held.get(partition, []) + got)


async def visit(client: Client) -> None:
    """Let each group do what it has left undone: a fetch loads what is stored."""
    topic = await topic_id(client)
    for group in GROUPS:
        for epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            rows = [FetchPartition(partition_index=index) for index in range(PARTITIONS)]
            request = ShareFetchRequest(
                group_id=group,
                member_id="auditor",
                share_session_epoch=epoch,
                max_wait_ms=0,
                max_records=1,
                topics=[FetchTopic(topic_id=topic, partitions=rows if epoch == INITIAL_EPOCH else [])],
            )
            assert not (await client.ask(request)).error_code


def promises_of_groups(host: Host, truth: Truth, *, has_disk_faults: bool) -> Iterator[str]:
    """What a quiet host has done with the words of members, and what it holds for them."""
    shares, topic = host.broker.shares, host.broker.topics.by_name[TOPIC]
    open_ones = []
    for (group, partition, offset), kind in truth.shared.items():
        delivery = shares.deliveries.get(group, (topic.id, partition))
        if delivery is None or not is_done(delivery.partition, offset):
            open_ones.append((group, partition, offset, kind))
    if open_ones:
        yield f"records of share groups are not done: {open_ones}"
    held = {
        "sessions": len(shares.sessions.sessions),
        "connections of sessions": len(shares.sessions.connections),
        "partitions of sessions": shares.sessions.partitions,
        "held records": sum(each.held for each in shares.deliveries.partitions()),
        "waiting fetches": sum(len(each.listeners) for each in shares.deliveries.partitions()),
        "records given up": shares.deliveries.given_up,
        "members": sum(len(each.members) for each in host.broker.groups.shares.share_groups()),
    }
    for what, number in held.items():
        if number:
            yield f"{number} {what} of share groups are left"
    if not has_disk_faults and (lost := rejected(truth) - set(letters(host))):
        yield f"rejected records are no dead letters: {sorted(lost)}"


def is_done(partition: Any, offset: int) -> bool:
    """Whether a group never delivers a record again."""
    if offset < partition.start:
        return True
    return any(span.first <= offset <= span.last and span.is_done for span in partition.spans)


def rejected(truth: Truth) -> set[tuple[int, int]]:
    """Partition and offset of the records that have to be dead letters."""
    return {
        (partition, offset)
        for (group, partition, offset), kind in truth.shared.items()
        if group == KEEPS_LETTERS and kind == REJECT
    }


def letters(host: Host) -> Iterator[tuple[int, int]]:
    """Partition and offset of the records that are dead letters."""
    log = host.broker.topics.log(LETTERS, 0)
    for header, batch in record_batches(log.read(log.log_start_offset, 1 << 30)):
        for each in records(batch, header):
            about = dict(each.headers)
            partition, offset = (about[f"__dlq.errors.{name}"] for name in ("partition", "offset"))
            yield int(partition or b""), int(offset or b"")
