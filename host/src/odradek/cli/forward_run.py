"""Runs forwarders on a topic of a cluster, on the loop of this thread."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from odradek import __version__
from odradek.broker.spool_settings import DEAD_LETTER_SUFFIX
from odradek.cli.errors import CommandFailed
from odradek.client.admin import AdminClient
from odradek.client.changelog import Changelog
from odradek.client.command_config import load_command_config
from odradek.client.errors import ClientError, RequestFailed, check
from odradek.client.group_member import GroupTimes
from odradek.client.resources import NewTopic
from odradek.client.shared_topic import OffsetReset, SharedTopic, SharedTopicSettings
from odradek.delivery.spooled_record import RecordFormat
from odradek.programs.config import HostConfig
from odradek.programs.forward import Forward
from odradek.programs.start_report import plugin_states
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode

log = logging.getLogger("odradek")

DEFAULT_GROUP = "odradek.forward"
TOTALS_SUFFIX = ".totals"
"""Follows the group in the default name of the topic of totals."""
REQUEST_TIMEOUT_MS = 10_000
"""Longest time for a request: heartbeats wait for the others."""
LETTER_ROOM_BYTES = 1 << 20
"""Room in the topic of dead letters for the rest of the record with the largest payload."""


class ForwardRun:
    """Forwarders whose settings have been checked, before they run.

    Args:
        config: The configuration.
        bootstrap_server: The cluster.
        command_config: The client's properties file.
        topic: The telemetry topic.
        group: Start of the names of the groups.
        record_format: The format of the topic's records.

    Raises:
        ConfigError: The properties file is not usable.
    """

    def __init__(
        self,
        config: HostConfig,
        bootstrap_server: str,
        command_config: Path | None,
        topic: str,
        group: str,
        record_format: RecordFormat,
    ) -> None:
        self.config = config
        self.bootstrap_server = bootstrap_server
        self.connection = load_command_config(command_config)
        self.topic = topic
        self.group = group
        self.record_format = record_format
        self.opened_topics: dict[str, SharedTopic] = {}
        """By group."""
        table = self.connection.table
        self.times = GroupTimes(
            session_timeout_ms=table.integer("session.timeout.ms", GroupTimes().session_timeout_ms, least=1),
            heartbeat_interval_ms=table.integer(
                "heartbeat.interval.ms", GroupTimes().heartbeat_interval_ms, least=1
            ),
        )
        if self.times.heartbeat_interval_ms >= self.times.session_timeout_ms:
            raise table.error("heartbeat.interval.ms", "expected less than session.timeout.ms")
        reset = table.choice("auto.offset.reset", OffsetReset.EARLIEST.value, tuple(OffsetReset))
        self.offset_reset = OffsetReset(reset)

    @property
    def letters(self) -> NewTopic:
        """The topic of dead letters, as it is created."""
        largest = self.config.telemetry.opened_max_bytes + LETTER_ROOM_BYTES
        name = self.topic + DEAD_LETTER_SUFFIX
        return NewTopic(name=name, partitions=1, configs={"max.message.bytes": str(largest)})

    @asynccontextmanager
    async def running(self, stop: asyncio.Event) -> AsyncIterator[Forward]:
        """Run the forwarders in the body of the statement, unless the stop comes first.

        Raises:
            CommandFailed: The topic or a group cannot be used.
            ConfigError: A plugin or its table is not usable.
        """
        forwarders = Forward(
            self.config, self.group, self.opened, self.totals, record_format=self.record_format
        )
        try:
            await asyncio.to_thread(self.prepare_topics)
            await forwarders.start(stop)
            yield forwarders
        except ApiError as error:
            raise CommandFailed(f"odradek forward: {error}") from error
        finally:
            await forwarders.stop()

    def prepare_topics(self) -> None:
        """Check that the topic can be read, and create that of its dead letters if there is none.

        Raises:
            CommandFailed: It cannot be read, or created.
        """
        try:
            with self.connected() as admin:
                row = admin.metadata([self.topic]).topics[0]
                check(row.error_code, subject=self.topic)
                letters = self.letters
                code = admin.metadata([letters.name]).topics[0].error_code
                if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    self.create(admin, letters)
                else:
                    check(code, subject=letters.name)
        except ClientError as error:
            raise CommandFailed(f"odradek forward: {error}") from error

    def create(self, admin: AdminClient, new: NewTopic) -> None:
        """Create a topic, unless another process was faster.

        Raises:
            ClientError: It cannot be created.
        """
        try:
            admin.create_topics([new])
        except RequestFailed as error:
            if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
                raise
        else:
            log.info("topic of dead letters created", extra={"topic": new.name})

    def report(self, forwarders: Forward, config_file: Path | None, log_level: str) -> None:
        """Log what runs. The port of the metrics is the bound one."""
        endpoint, metrics = forwarders.outlets.endpoint, self.config.metrics_listener
        log.info(
            "odradek %s",
            __version__,
            extra={"config": str(config_file) if config_file else "defaults", "log_level": log_level},
        )
        log.info(
            "forwarding",
            extra={
                "topic": self.topic,
                "groups": list(forwarders.groups),
                "metrics": metrics.at(endpoint.bound_port) if metrics and endpoint else "off",
            },
        )
        log.info("plugins", extra=plugin_states(forwarders.plugins.all))

    def opened(self, group_id: str) -> SharedTopic:
        """A forwarder's view of the topic, with connections of its own."""
        settings = SharedTopicSettings(
            topic=self.topic,
            group_id=group_id,
            dead_letter_topic=self.topic + DEAD_LETTER_SUFFIX,
            times=self.times,
            offset_reset=self.offset_reset,
        )
        self.opened_topics[group_id] = SharedTopic(self.connected(), settings)
        return self.opened_topics[group_id]

    def totals(self, group_id: str, name: str | None) -> Changelog:
        """The store of a forwarder's totals, whose topic was opened before, with connections of its own."""
        now = self.opened_topics[group_id].partitions_now
        return Changelog(self.connected(), name or group_id + TOTALS_SUFFIX, self.topic, now)

    def connected(self) -> AdminClient:
        """A client with the certificates and secrets of now. It connects on first use."""
        timeout_ms = min(self.connection.request_timeout_ms, REQUEST_TIMEOUT_MS)
        return self.connection.admin(self.bootstrap_server, timeout_ms)
