"""The clients of a life. Each notes in the `Truth` what was acknowledged to it."""

from __future__ import annotations

import asyncio
from random import Random

from lives.clients import WAYS_TO_PART, Client, Gone
from lives.world import GATE, PARTITIONS, PLAIN, SASL, SSL, TOPIC, World
from odradek.wire.compression import Codec
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.end_txn import EndTxnRequest
from odradek.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from odradek.wire.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from odradek.wire.messages.init_producer_id import InitProducerIdRequest
from odradek.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from odradek.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from odradek.wire.messages.push_telemetry import PushTelemetryRequest
from odradek.wire.record import Record
from odradek.wire.record_batch import build_batch
from support.spooling import payload

INIT_VERSION = 5
"""The last one that is served."""
PRODUCE_VERSION = 12
"""The last one with names of topics; it adds partitions to transactions by itself."""
LONG_S = (0.0, 0.0, 0.01, 0.3, 1.0, 1.0, 5.0)


class Actor:
    """One client from its first connection to its end."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.chance: Random = world.chance
        self.truth = world.truth
        self.name = name

    def port(self) -> int:
        """Where it connects."""
        if self.world.has_gateway and self.chance.random() < 0.8:
            return GATE
        if self.world.has_tls and self.chance.random() < 0.2:
            return SSL
        return self.chance.choice((PLAIN, PLAIN, PLAIN, SASL))

    async def connected(self) -> tuple[Client, int]:
        """A client that has introduced itself, and logged in if it has to.

        Raises:
            Gone: It could not.
        """
        port = self.port()
        self.truth.acts["connect"] += 1
        client = Client(self.world.loop, self.name, tls=port == SSL)
        await client.connect(port)
        await client.introduce()
        if port == SASL and not await client.log_in(self.chance.choice(("secret",) * 5 + ("wrong",))):
            client.leave()
            raise Gone("refused")
        return client, port

    async def live(self) -> None:
        """Connect a few times and do something each time."""
        for _ in range(self.chance.choice((1, 1, 2))):
            try:
                client, port = await self.connected()
            except Gone:
                await self.pause()
                continue
            try:
                await self.act(client, port)
            except Gone:
                self.truth.acts["gone"] += 1
            client.part(self.chance.choice(WAYS_TO_PART))
            await self.pause()

    async def pause(self) -> None:
        await asyncio.sleep(self.chance.choice(LONG_S))

    async def act(self, client: Client, port: int) -> None:
        """What it does on one connection."""
        raise NotImplementedError


class Pusher(Actor):
    """Pushes telemetry as Kafka's clients do, except that it never repeats a push."""

    async def act(self, client: Client, port: int) -> None:
        site = "gateway" if port == GATE else "host"
        told = await client.ask(GetTelemetrySubscriptionsRequest())
        pushes = self.chance.randint(1, 8)
        for left in reversed(range(pushes)):
            if self.chance.random() < 0.8:
                await asyncio.sleep(told.push_interval_ms / 1000)
            number = next(self.world.numbers)
            request = PushTelemetryRequest(
                client_instance_id=told.client_instance_id,
                subscription_id=told.subscription_id,
                terminating=not left and self.chance.random() < 0.5,
                metrics=payload(number, "x" * self.chance.choice((0, 10, 5_000))),
            )
            self.truth.sent[number] += 1
            self.truth.acts["push"] += 1
            answer = await client.ask(request)
            if not answer.error_code:
                self.truth.pushed[number] = site
            elif answer.error_code == ErrorCode.UNKNOWN_SUBSCRIPTION_ID:
                again = GetTelemetrySubscriptionsRequest(client_instance_id=told.client_instance_id)
                told = await client.ask(again)
            if port == SASL and self.chance.random() < 0.3:
                self.truth.acts["re-authenticate"] += 1
                await client.log_in()


class Producer(Actor):
    """Produces records, idempotent or not, and in transactions."""

    async def act(self, client: Client, port: int) -> None:
        transactional = self.name if self.chance.random() < 0.3 else None
        idempotent = transactional is not None or self.chance.random() < 0.5
        identity = (-1, -1)
        if idempotent:
            given = await client.ask(
                InitProducerIdRequest(transactional_id=transactional, transaction_timeout_ms=20_000),
                INIT_VERSION,
            )
            if given.error_code:
                return
            identity = (given.producer_id, given.producer_epoch)
        sequence = dict.fromkeys(range(PARTITIONS), 0)
        pending: dict[tuple[str, int, int], bytes] = {}
        for _ in range(self.chance.randint(1, 5)):
            partition = self.chance.randrange(PARTITIONS)
            values = [
                b"%d" % next(self.world.numbers) + bytes(self.chance.choice((0, 50, 4_000)))
                for _ in range(self.chance.randint(1, 4))
            ]
            first = await self.produce(
                client, partition, values, identity, sequence[partition], transactional
            )
            if first is None:
                break
            sequence[partition] += len(values)
            placed = {(TOPIC, partition, first + step): value for step, value in enumerate(values)}
            (self.truth.records if transactional is None else pending).update(placed)
            await self.pause()
        if transactional is not None and pending:
            self.truth.open_records.update(pending)
            await self.end(client, transactional, identity, pending)

    async def produce(
        self, client: Client, partition: int, values: list[bytes], identity: tuple[int, int], sequence: int,
        transactional: str | None,
    ) -> int | None:  # fmt: skip
        """Send one batch; the offset of its first record if it was acknowledged."""
        batch = build_batch(
            [Record(b"k", value, self.world.clock.now_ms()) for value in values],
            codec=self.chance.choice((Codec.NONE, Codec.NONE, Codec.LZ4)),
            producer_id=identity[0],
            producer_epoch=identity[1],
            base_sequence=sequence if identity[0] >= 0 else -1,
            transactional=transactional is not None,
        )
        rows = [PartitionProduceData(index=partition, records=batch)]
        acks = -1 if identity[0] >= 0 else self.chance.choice((1, -1))
        self.truth.acts["produce"] += 1
        answer = await client.ask(
            ProduceRequest(
                acks=acks, timeout_ms=10_000, transactional_id=transactional,
                topic_data=[TopicProduceData(name=TOPIC, partition_data=rows)],
            ), PRODUCE_VERSION,
        )  # fmt: skip
        row = answer.responses[0].partition_responses[0]
        return None if row.error_code else row.base_offset

    async def end(
        self, client: Client, name: str, identity: tuple[int, int], pending: dict[tuple[str, int, int], bytes]
    ) -> None:
        """Commit or abort, or leave it to the host."""
        how = self.chance.choice(("commit", "commit", "abort", "leave"))
        self.truth.acts[how] += 1
        if how == "leave":
            return
        request = EndTxnRequest(
            transactional_id=name,
            producer_id=identity[0],
            producer_epoch=identity[1],
            committed=how == "commit",
        )
        answer = await client.ask(request)
        if not answer.error_code:
            (self.truth.records if how == "commit" else self.truth.aborted).update(pending)


class Committer(Actor):
    """Commits rising offsets for a group of its own."""

    async def act(self, client: Client, port: int) -> None:
        for _ in range(self.chance.randint(1, 6)):
            key = (self.name, TOPIC, self.chance.randrange(PARTITIONS))
            acknowledged, sent = self.truth.committed.get(key, (-1, -1))
            offset = sent + self.chance.randint(1, 5)
            self.truth.committed[key] = acknowledged, offset
            rows = [OffsetCommitRequestPartition(partition_index=key[2], committed_offset=offset)]
            topics = [OffsetCommitRequestTopic(name=TOPIC, partitions=rows)]
            self.truth.acts["offset commit"] += 1
            answer = await client.ask(OffsetCommitRequest(group_id=self.name, topics=topics), 9)
            if not answer.topics[0].partitions[0].error_code:
                self.truth.committed[key] = offset, offset
            await self.pause()


class Fetcher(Actor):
    """Reads with long polls, and may leave in the midst of one."""

    async def act(self, client: Client, port: int) -> None:
        for _ in range(self.chance.randint(1, 6)):
            rows = [
                FetchPartition(
                    partition=each,
                    fetch_offset=self.chance.choice((0, 0, 3, 1_000_000)),
                    partition_max_bytes=1 << 20,
                )
                for each in range(PARTITIONS)
            ]
            request = FetchRequest(
                max_wait_ms=self.chance.choice((0, 500, 30_000)),
                min_bytes=self.chance.choice((0, 1, 1 << 30)),
                isolation_level=self.chance.choice((0, 1)), session_epoch=self.chance.choice((-1, 0)),
                topics=[FetchTopic(topic=TOPIC, partitions=rows)],
            )  # fmt: skip
            self.truth.acts["fetch"] += 1
            waiting = client.begin(request, 12)
            if self.chance.random() < 0.2:
                return
            await client.within(waiting)
            await self.pause()
