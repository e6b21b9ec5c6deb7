"""A client under quotas: an in-memory broker on a mock clock."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from odradek.plugin.client_quota import DEFAULT, ClientQuotaEntity
from odradek.plugin.protocols import ClientQuotaCallback
from odradek.quota.quota_config import QuotaConfig
from odradek.quota.quota_managers import QuotaConfigs, QuotaManagers
from odradek.testing.clock import MockClock
from odradek.wire.messages.fetch import FetchRequest
from support.batches import batch_of
from support.broker import BrokerClient, make_broker
from support.data_requests import fetch_request, produce_request

EVERY_CLIENT = ClientQuotaEntity(client_id=DEFAULT)
SLOW_NS = 10_000_000
"""A handler of this length uses up a small request quota at once."""


@dataclass(slots=True)
class QuotaClient:
    """Sends requests as user ``ANONYMOUS`` with client id ``test``, unless told otherwise."""

    samples: int = 11
    handler_ns: int = 0
    """The duration of each part of a request, as the dispatcher measures it."""
    elapsed_ns: int = 1
    callback: ClientQuotaCallback | None = None
    client: BrokerClient = field(init=False)

    def __post_init__(self) -> None:
        windows = QuotaConfig(samples=self.samples)
        broker = make_broker(
            quotas=QuotaConfigs(client=windows, controller=windows), quota_callback=self.callback
        )
        self.client = BrokerClient(broker)
        self.client.dispatcher.monotonic_ns = self.monotonic_ns
        broker.topics.create("t", 1, {})

    def monotonic_ns(self) -> int:
        """Time that passes at each reading of the clock."""
        self.elapsed_ns += self.handler_ns
        return self.elapsed_ns

    @property
    def clock(self) -> MockClock:
        clock = self.client.broker.clock
        assert isinstance(clock, MockClock)
        return clock

    @property
    def quotas(self) -> QuotaManagers:
        return self.client.broker.quotas

    def limit(self, entity: ClientQuotaEntity = EVERY_CLIENT, **values: float | None) -> None:
        """Set quotas."""
        self.quotas.apply(entity, values)

    def send(self, request: Any, version: int | None = None) -> Any:
        return self.client.send(request, version)

    @property
    def muted_ms(self) -> int:
        """How long the channel is muted after the newest answer, in ms."""
        return 0 if self.client.throttled is None else self.client.throttled.throttle.time_ms

    @property
    def muted_by(self) -> str:
        """The manager that is charged."""
        assert self.client.throttled is not None
        return self.client.throttled.throttle.manager.quota_type.value

    def produce(self, size: int = 1000, acks: int = -1, version: int = 12) -> Any:
        """Produce one batch of about this size."""
        batch = batch_of(b"v" * size, timestamp_ms=self.clock.now_ms())
        return self.send(produce_request("t", batch, acks=acks), version)

    def fetching(self, offset: int = 0, **fields: Any) -> FetchRequest:
        """Fetch one partition without waiting."""
        return fetch_request("t", offset, **fields)

    def fetch(self, offset: int = 0, version: int = 12, **fields: Any) -> Any:
        return self.send(self.fetching(offset, **fields), version)

    def metric(self, name: str, group: str) -> float:
        """A metric of the only budget."""
        found = [
            row.value
            for row in self.quotas.measured(self.clock.monotonic_ms())
            if (row.name.name, row.name.group) == (name, group)
        ]
        (value,) = found or [0.0]
        return value


def records_in(response: Any) -> int:
    """The record bytes in the answer to a fetch."""
    return sum(len(row.records or b"") for topic in response.responses for row in topic.partitions)
