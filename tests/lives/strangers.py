"""Clients that send anything: requests of all kinds with random contents, broken ones, and bytes."""

from __future__ import annotations

import struct
from functools import cache
from typing import Any

from lives.actors import Actor
from lives.clients import Client
from odradek.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    OpData,
    RequestEntryData,
)
from odradek.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from odradek.wire.messages.heartbeat import HeartbeatRequest
from odradek.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from odradek.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from odradek.wire.messages.sync_group import SyncGroupRequest
from random_messages import MessageMaker, declared_messages

CLIENT_METRICS = 16
SESSION_MS = 10_000


@cache
def requests() -> list[type[Any]]:
    """Every declared request, in a fixed order."""
    return sorted(
        (
            each
            for each in declared_messages()
            if each.__name__.endswith("Request") and hasattr(each, "API_KEY")
        ),
        key=lambda each: each.API_KEY,
    )


class Stranger(Actor):
    """Sends requests of any kind, and things that are none."""

    async def act(self, client: Client, port: int) -> None:
        maker = MessageMaker(self.chance)
        for _ in range(self.chance.randint(1, 10)):
            kind = self.chance.choice(requests())
            version = self.chance.randint(kind.VERSIONS.first, kind.VERSIONS.last)
            request = maker.message(kind, version)
            how = self.chance.random()
            self.truth.acts["any request"] += 1
            if how < 0.5:
                waiting = client.begin(request, version)
                if self.chance.random() < 0.8 and getattr(request, "acks", True):
                    await client.within(waiting)
            elif how < 0.8:
                client.send(self.damaged(client.frame(request, version)))
            elif how < 0.9:
                client.send(client.frame(request, version)[: self.chance.randint(1, 40)])
                await self.pause()
                return
            else:
                client.send(self.noise())
            await self.pause()

    def damaged(self, frame: bytes) -> bytes:
        """A frame of the right length with other bytes."""
        data = bytearray(frame)
        for _ in range(self.chance.choice((1, 1, 4, 50))):
            data[self.chance.randrange(4, len(data))] = self.chance.randrange(256)
        return bytes(data)

    def noise(self) -> bytes:
        """What is no request."""
        return self.chance.choice((
            self.chance.randbytes(self.chance.choice((1, 30, 3_000))),
            struct.pack(">i", self.chance.choice((-1, 0, 3, 900_000, 1 << 30))) + b"abc",
            struct.pack(">i", 140_000) + bytes(self.chance.choice((20_000, 70_000, 130_000))),
                b"GET / HTTP/1.1\r\n\r\n",
            b"\x16\x03\x01\x02\x00\x01",
        ))  # fmt: skip


class Member(Actor):
    """A member of a group that several share. It often vanishes."""

    async def act(self, client: Client, port: int) -> None:
        group, member, generation = f"group-{self.chance.randrange(3)}", "", -1
        for _ in range(self.chance.randint(1, 5)):
            self.truth.acts["group"] += 1
            if generation < 0:
                joined = await client.ask(self.join(group, member))
                member = joined.member_id
                if joined.error_code:
                    continue
                generation = joined.generation_id
                await client.ask(SyncGroupRequest(
                    group_id=group, generation_id=generation, member_id=member,
                    protocol_type="consumer", protocol_name="range",
                ))  # fmt: skip
            beat = HeartbeatRequest(group_id=group, generation_id=generation, member_id=member)
            if (await client.ask(beat)).error_code:
                generation = -1
            await self.pause()

    @staticmethod
    def join(group: str, member: str) -> JoinGroupRequest:
        return JoinGroupRequest(
            group_id=group, member_id=member, session_timeout_ms=SESSION_MS, rebalance_timeout_ms=SESSION_MS,
            protocol_type="consumer", protocols=[JoinGroupRequestProtocol(name="range", metadata=b"\0\1")],
        )  # fmt: skip


class Operator(Actor):
    """Changes subscriptions, quotas and topics, none of those that promises are about."""

    async def act(self, client: Client, port: int) -> None:
        for _ in range(self.chance.randint(1, 4)):
            kind, request = self.change()
            self.truth.acts[kind] += 1
            await client.ask(request)
            await self.pause()

    def change(self) -> tuple[str, Any]:
        kind = self.chance.choice(("subscription", "throttle", "create topic", "delete topic"))
        name = self.chance.choice("abc")
        if kind == "subscription":
            wanted = {"metrics": self.chance.choice(("", "org.", "*")), "interval.ms": "1000"}
            configs = [
                AlterableConfig(name=key, config_operation=self.chance.choice((0, 1)), value=value)
                for key, value in wanted.items()
            ]
            resource = AlterConfigsResource(resource_type=CLIENT_METRICS, resource_name=name, configs=configs)
            return kind, IncrementalAlterConfigsRequest(resources=[resource])
        if kind == "throttle":
            key = self.chance.choice(("producer_byte_rate", "consumer_byte_rate", "request_percentage"))
            entity = [EntityData(entity_type="client-id", entity_name=self.chance.choice((None, self.name)))]
            value = 0.1 if key == "request_percentage" else self.chance.choice((2_000.0, 20_000.0))
            change = OpData(key=key, value=value, remove=self.chance.random() < 0.3)
            return kind, AlterClientQuotasRequest(entries=[RequestEntryData(entity=entity, ops=[change])])
        if kind == "create topic":
            topic = CreatableTopic(name=name, num_partitions=self.chance.choice((1, 3)), replication_factor=1)
            return kind, CreateTopicsRequest(topics=[topic])
        return kind, DeleteTopicsRequest(topics=[DeleteTopicState(name=name)])
