"""All quota managers of one host; after Kafka's QuotaFactory and ClientQuotaMetadataManager."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from odradek.metrics.registry import MeasuredMetric, Metrics
from odradek.plugin.client_quota import ABSENT, ClientQuotaEntity, ClientQuotaType
from odradek.plugin.protocols import ClientQuotaCallback
from odradek.quota.client_quota_manager import ClientQuotaManager
from odradek.quota.client_request_quota_manager import ClientRequestQuotaManager
from odradek.quota.controller_mutation_quota_manager import ControllerMutationQuotaManager
from odradek.quota.quota_config import QuotaConfig
from odradek.quota.replication_quota_manager import ReplicationQuotaManager, ReplicationQuotaType
from odradek.settings.setting import section
from odradek.waiting.clock import Clock, Timer

log = logging.getLogger(__name__)

CONNECTION_RATE = "connection_creation_rate"
IpRateUpdate = Callable[[str | None, float | None], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaConfigs:
    """The windows of each kind of quota."""

    client: QuotaConfig = section(
        QuotaConfig, subject="bandwidth, request time and connection rates of clients"
    )
    controller: QuotaConfig = section(QuotaConfig, "controller.", "controller mutations")
    replication: QuotaConfig = section(QuotaConfig, "replication.", "replication")
    alter_log_dirs: QuotaConfig = section(
        QuotaConfig, "alter.log.dirs.replication.", "moves between `log.dirs`"
    )


class QuotaManagers:
    """The quota managers. All changes of quotas come in through `apply`.

    ``is_enabled`` tells whether any client can be throttled; every request checks it first.
    """

    def __init__(
        self,
        configs: QuotaConfigs,
        clock: Clock,
        callback: ClientQuotaCallback | None = None,
        timer: Timer | None = None,
        update_ip_rate: IpRateUpdate | None = None,
    ) -> None:
        kinds, client = ClientQuotaType, configs.client
        self.produce = ClientQuotaManager(kinds.PRODUCE, client, clock, callback, timer)
        self.fetch = ClientQuotaManager(kinds.FETCH, client, clock, callback, timer)
        self.request = ClientRequestQuotaManager(kinds.REQUEST, client, clock, callback, timer)
        self.controller_mutation = ControllerMutationQuotaManager(
            kinds.CONTROLLER_MUTATION, configs.controller, clock, callback, timer
        )
        self.leader = ReplicationQuotaManager(ReplicationQuotaType.LEADER, configs.replication, clock)
        self.follower = ReplicationQuotaManager(ReplicationQuotaType.FOLLOWER, configs.replication, clock)
        self.alter_log_dirs = ReplicationQuotaManager(
            ReplicationQuotaType.ALTER_LOG_DIRS, configs.alter_log_dirs, clock
        )
        self.update_ip_rate = update_ip_rate
        """Called with an address (None: the default) and its connection rate (None: no limit)."""
        self.by_key: dict[str, ClientQuotaManager] = {
            "producer_byte_rate": self.produce,
            "consumer_byte_rate": self.fetch,
            "request_percentage": self.request,
            "controller_mutation_rate": self.controller_mutation,
        }
        self.is_enabled = callback is not None

    @property
    def clients(self) -> tuple[ClientQuotaManager, ...]:
        return tuple(self.by_key.values())

    @property
    def replications(self) -> tuple[ReplicationQuotaManager, ...]:
        return self.leader, self.follower, self.alter_log_dirs

    def apply(self, entity: ClientQuotaEntity, values: Mapping[str, float | None]) -> None:
        """Apply quotas of an entity: a number sets the key, None removes it.

        Keys that the entity cannot have are logged and ignored, as in Kafka: a newer version may have stored
        them.
        """
        for key, value in values.items():
            if entity.ip is not ABSENT:
                self.apply_ip(entity.ip, key, value)
            elif key in self.by_key:
                self.by_key[key].update_quota(entity, value)
            else:
                log.warning("ignored an unknown quota", extra={"key": key, "entity": entity.names()})
        self.is_enabled = any(manager.is_enabled for manager in self.clients)

    def apply_ip(self, ip: str | None, key: str, value: float | None) -> None:
        """Apply a quota of an address."""
        if key != CONNECTION_RATE:
            log.warning("ignored an unknown quota of an address", extra={"key": key, "ip": ip})
        elif self.update_ip_rate is not None:
            self.update_ip_rate(ip, value)

    @property
    def registries(self) -> list[Metrics]:
        """The registries of all sensors."""
        return [each.metrics for each in self.clients] + [each.metrics for each in self.replications]

    def expire(self, now_ms: int, most: int = sys.maxsize) -> int:
        """Remove sensors that were idle for an hour and return how many. Inspects up to ``most`` in each
        registry. Call this every 30 s.
        """
        return sum(metrics.expire(now_ms, most) for metrics in self.registries)

    @property
    def sensors(self) -> int:
        """The number of sensors in the largest registry."""
        return max(len(metrics.sensors) for metrics in self.registries)

    def measured(self, now_ms: int) -> Iterator[MeasuredMetric]:
        """The metrics of all managers, under Kafka's names."""
        for client in self.clients:
            yield from client.measured(now_ms)
        for replication in self.replications:
            yield from replication.measured(now_ms)
