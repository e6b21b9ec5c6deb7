"""A broker in memory: all rooms, a mock clock, no socket."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from odradek.broker.answering import PushHandling
from odradek.broker.broker import Broker, make_groups
from odradek.broker.broker_settings import BrokerSettings, Endpoint
from odradek.broker.common import Common, Stores
from odradek.broker.dispatch.dispatcher import Dispatcher, Frame
from odradek.broker.dispatch.routes import Routes
from odradek.broker.dispatch.throttling import Throttled
from odradek.broker.spool_settings import SpoolSettings
from odradek.broker.telemetry_spool import TelemetrySpool
from odradek.client.connection import answer_type
from odradek.group.group_config import GroupConfig
from odradek.log.log_config import LogConfig
from odradek.log.log_manager import LogManager
from odradek.log.log_work import LogWork
from odradek.log.partition_log import PartitionLog
from odradek.log.producer_ids import ProducerIdConfig, ProducerIds
from odradek.metadata.offset_store import SqliteOffsetStore
from odradek.metadata.store import CLUSTER_ID, MetadataStore
from odradek.metadata.transaction_store import SqliteTransactionStore
from odradek.plugin.authorizer import Authorizer
from odradek.plugin.context import ConnectionContext, RequestContext
from odradek.plugin.protocols import ClientQuotaCallback
from odradek.programs.config import HostConfig
from odradek.quota.connection_limits import ConnectionLimits
from odradek.quota.connection_quotas import ConnectionQuotas
from odradek.quota.quota_managers import QuotaConfigs, QuotaManagers
from odradek.security.authorizer_settings import AuthorizerSettings
from odradek.telemetry.client_metrics_manager import ClientMetricsManager
from odradek.telemetry.enrichers import Enrichers
from odradek.telemetry.receiver_plugin import ClientMetricsReceiverPlugin
from odradek.telemetry.telemetry_config import TelemetryConfig
from odradek.testing import request_context
from odradek.testing.clock import MockClock
from odradek.transaction.transaction_config import TransactionConfig
from odradek.waiting.deferred import Deferred, offload_inline
from odradek.waiting.step_runner import StepRunner
from odradek.wire.codec import decode, encode
from odradek.wire.header import (
    RequestHeader,
    flexible_request_header,
    flexible_response_header,
    read_response_header,
    request_header,
)

LISTENER = "PLAINTEXT"


def numbered_uuids() -> Iterator[bytes]:
    """Ids 2, 3, 4 ... as 16 bytes: different, and the same in every run."""
    return (number.to_bytes(16) for number in count(2))


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryStores:
    """The stores of a broker without a data directory."""

    metadata: MetadataStore
    logs: LogManager
    offsets: SqliteOffsetStore
    transactions: SqliteTransactionStore


def make_broker(
    directory: Path | None = None,
    *,
    settings: BrokerSettings | None = None,
    telemetry: TelemetryConfig | None = None,
    log_defaults: LogConfig | None = None,
    more_log_dirs: Sequence[Path] = (),
    metadata: MetadataStore | None = None,
    stores: Stores | None = None,
    groups: GroupConfig | None = None,
    transaction_config: TransactionConfig | None = None,
    producer_ids: ProducerIdConfig | None = None,
    connections: ConnectionLimits | None = None,
    quotas: QuotaConfigs | None = None,
    quota_callback: ClientQuotaCallback | None = None,
    given: frozenset[str] | None = None,
    offsets: SqliteOffsetStore | None = None,
    transactions: SqliteTransactionStore | None = None,
    clock: MockClock | None = None,
    log_work: LogWork | None = None,
    authorizer: Authorizer | None = None,
    authorizer_settings: AuthorizerSettings | None = None,
) -> Broker:
    """An empty broker.

    Args:
        directory: The log directory; None for a folder that is removed with the process.
        settings: The broker's part of the configuration.
        telemetry: The manager's part.
        log_defaults: Default topic configuration.
        more_log_dirs: Log directories in addition to ``directory``.
        metadata: A store written by another broker; None for an empty one in memory.
        stores: All open files; None for stores and a log directory as the other arguments say.
        groups: Limits of groups.
        producer_ids: Limits of idempotent producers.
        transaction_config: Times and limits of transactions.
        connections: Limits of connections.
        quotas: Windows of the quotas.
        quota_callback: A plugin that decides which clients share a quota.
        given: The keys of the configuration file; None for those that differ from their defaults.
        offsets: A store written by another broker; None for an empty one in memory.
        transactions: The same for transactional ids.
        clock: A clock without tasks; None for a new one.
        log_work: Does what logs ask for; None for at once.
        authorizer: Decides what callers may do; None to allow everything.
        authorizer_settings: The limit of ACLs.
    """
    config = HostConfig(
        broker=settings or BrokerSettings(),
        telemetry=telemetry or TelemetryConfig(),
        log_defaults=log_defaults or LogConfig(),
        groups=groups or GroupConfig(),
        transactions=transaction_config or TransactionConfig(),
        producer_ids=producer_ids or ProducerIdConfig(),
        connections=connections or ConnectionLimits(),
        quotas=quotas or QuotaConfigs(),
        authorizer=authorizer_settings or AuthorizerSettings(),
        given=given,
    )
    clock, uuids = clock or MockClock(), numbered_uuids()
    limits = ConnectionQuotas(clock, clock.timer, configured=config.connections)
    managers = QuotaManagers(
        config.quotas, clock, quota_callback, clock.timer, update_ip_rate=limits.update_ip_rate
    )
    stores = stores or MemoryStores(
        metadata=metadata or MetadataStore(":memory:"),
        logs=CollectedLogs(
            directory or temporary_folder(),
            *more_log_dirs,
            now_ms=clock.now_ms(),
            throttle=managers.alter_log_dirs,
            producer_ids=ProducerIds(config.producer_ids, clock),
            work=log_work,
        ),
        offsets=offsets or SqliteOffsetStore(":memory:"),
        transactions=transactions or SqliteTransactionStore(":memory:"),
    )
    if stores.metadata.value(CLUSTER_ID) is None:
        stores.metadata.put_value(CLUSTER_ID, "cluster-of-a-test-one")
    stores.metadata.failures.clock = clock
    steps = StepRunner.of_requests(clock.timer, clock, config.broker.request_turn_us)
    common = Common(config, stores, clock, clock.timer, managers, limits, steps, uuids.__next__)
    manager = ClientMetricsManager(
        config=config.telemetry,
        clock=clock,
        timer=clock.timer,
        random_uuid=uuids.__next__,
        plugin=ClientMetricsReceiverPlugin(clock),
        enrichers=Enrichers(clock, clock.timer),
    )
    session_ids = count(1).__next__
    broker = Broker(common, PushHandling(manager), make_groups(common), session_ids, authorizer=authorizer)
    broker.endpoints[LISTENER] = Endpoint("127.0.0.1", 9092)
    broker.transactions.start()
    return broker


class CollectedLogs(LogManager):
    """Closes the files of a broker that no test uses any more."""

    def __del__(self) -> None:
        with suppress(AttributeError):  # its construction has failed
            for each in self:
                each.release()


class HeldFlushes(LogWork):
    """Flushes nothing; lists the logs that want it."""

    def __init__(self) -> None:
        self.asked: list[PartitionLog] = []

    def flush(self, asking: PartitionLog, wait_ms: int) -> None:
        self.asked.append(asking)


def temporary_folder() -> Path:
    """A folder that is removed when the process ends."""
    folder = tempfile.mkdtemp(prefix="odradek-test-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def make_spool(broker: Broker, settings: SpoolSettings, max_push_bytes: int = 16 << 20) -> TelemetrySpool:
    """The telemetry topic of a broker, which follows its changes."""
    spool = TelemetrySpool(
        settings,
        max_push_bytes,
        broker.topics,
        broker.groups.offsets,
        broker.clock,
        broker.timer,
        offload_inline,
    )
    broker.topics.listeners.append(spool.topics_changed)
    return spool


def make_context(api_key: int = 0, api_version: int = 0) -> RequestContext:
    """A request of a client."""
    return request_context(api_key=api_key, api_version=api_version)


def make_connection() -> ConnectionContext:
    """A client's connection to the broker."""
    return request_context().connection


@dataclass(slots=True)
class BrokerClient:
    """Sends requests through the dispatcher, as bytes, on one connection."""

    broker: Broker = field(default_factory=make_broker)
    connection: ConnectionContext = field(default_factory=make_connection)
    client_id: str | None = "test"
    throttled: Throttled | None = None
    """The newest answer, if it throttles the client."""
    dispatcher: Dispatcher = field(init=False)

    def __post_init__(self) -> None:
        self.dispatcher = Dispatcher(self.broker, Routes())

    def send(self, request: Any, version: int | None = None) -> Any:
        """The response to a request; in the newest version if none is given.

        A deferred answer must exist by the time the handler returns.
        """
        pending = self.defer(request, version)
        return pending()

    def defer(self, request: Any, version: int | None = None) -> Callable[[], Any]:
        """Send a request; the function returns its response once it is there, None if there is none.

        It raises ``EOFError`` if the connection is closed instead.
        """
        chosen: int = request.VERSIONS.last if version is None else version
        answer = self.dispatcher.answer(self.frame(request, chosen), 0, self.connection)
        written: list[Frame | Throttled | None] = []
        if isinstance(answer, Deferred):
            answer.when_done(written.append)
        elif answer is not None:
            written.append(answer)
        return lambda: self.response(request, chosen, written)

    def frame(self, request: Any, version: int) -> bytes:
        """A request without its length prefix."""
        header = RequestHeader(request.API_KEY, version, 1, self.client_id)
        return request_header(header, flexible_request_header(request, version)) + encode(request, version)

    def response(self, request: Any, chosen: int, written: list[Frame | Throttled | None]) -> Any:
        last = written[0] if written else None
        self.throttled = last if isinstance(last, Throttled) else None
        if self.throttled is not None:
            self.throttled.begin(on_end=lambda: None)
        response = last.frame if isinstance(last, Throttled) else last
        if response is None:
            return None
        if not response:
            raise EOFError
        response = bytes(response)
        _, start = read_response_header(response, 4, flexible_response_header(request, chosen))
        return decode(answer_type(type(request)), chosen, response, start)
