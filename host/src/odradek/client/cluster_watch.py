"""A thread that asks a cluster for its brokers and its telemetry subscriptions again and again.

Kafka cannot notify clients of changes to CLIENT_METRICS resources.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from odradek.client.admin import AdminClient
from odradek.client.errors import ClientError, RequestFailed, UnsupportedVersion
from odradek.client.resources import ConfigResource
from odradek.plugin.config import ConfigError
from odradek.wire.config_resource import ConfigSource, ResourceType
from odradek.wire.error_code import ErrorCode

log = logging.getLogger(__name__)

LEAST_PAUSE_S: Final = 1.0
"""Between two polls, also if the watch is poked."""
STOP_TIMEOUT_S: Final = 1.0
"""A poll that hangs is left to end with the process."""
KEYS: Final = ("metrics", "interval.ms", "match")
NOT_OFFERED: Final = "the cluster cannot list client metrics; Apache Kafka can from 3.7 on, with KRaft"
NOT_ALLOWED: Final = "listing them needs the right DESCRIBE_CONFIGS on the cluster"
NOT_ALLOWED_CODES: Final = frozenset(
    {ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.TOPIC_AUTHORIZATION_FAILED}
)

Subscriptions = Mapping[str, Mapping[str, str]]
"""Properties by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """The result of one poll."""

    cluster_id: str | None = None
    """None if the brokers could not be asked."""
    nodes: Sequence[tuple[int, str, int]] = ()
    """Id, host and port of each broker."""
    subscriptions: Subscriptions | None = None
    """None if they were not asked for, refused, or could not be read."""
    refusal: str | None = None
    """The reason why the cluster does not list its subscriptions to this client."""
    topic_names: Mapping[bytes, str] = field(default_factory=dict)
    """Of those that were asked for."""
    failure: str | None = None
    """The reason why the poll was not completed."""


def poll(admin: AdminClient, with_subscriptions: bool, topic_ids: Sequence[bytes] = ()) -> Observed:
    """Ask a cluster once. Errors are part of the result.

    Args:
        admin: A client of the cluster.
        with_subscriptions: Whether to ask for subscriptions, too.
        topic_ids: Topics whose names are wanted.
    """
    names: dict[bytes, str] = {}
    try:
        metadata = admin.metadata([])
        if topic_ids:
            with suppress(UnsupportedVersion, RequestFailed):
                names = admin.cluster.topic_names(topic_ids)
    except (ClientError, ConfigError) as error:
        return Observed(failure=str(error))
    cluster_id = metadata.cluster_id
    nodes = [(row.node_id, row.host, row.port) for row in metadata.brokers]
    if not with_subscriptions:
        return Observed(cluster_id=cluster_id, nodes=nodes, topic_names=names)
    found: Subscriptions | None = None
    refusal = failure = None
    try:
        found = read_subscriptions(admin)
    except UnsupportedVersion:
        refusal = NOT_OFFERED
    except RequestFailed as error:
        if error.code in NOT_ALLOWED_CODES:
            refusal = NOT_ALLOWED
        else:
            failure = str(error)
    except ClientError as error:
        failure = str(error)
    return Observed(
        cluster_id=cluster_id,
        nodes=nodes,
        subscriptions=found,
        refusal=refusal,
        topic_names=names,
        failure=failure,
    )


def read_subscriptions(admin: AdminClient) -> dict[str, dict[str, str]]:
    """The properties that were set on each CLIENT_METRICS resource, without defaults.

    A resource that is deleted between the two requests has no properties and is left out.

    Raises:
        ClientError: The cluster refuses, or does not answer.
    """
    names = admin.list_client_metrics()
    resources = [ConfigResource(ResourceType.CLIENT_METRICS, name) for name in names]
    if not resources:
        return {}
    found: dict[str, dict[str, str]] = {}
    for resource, entries in admin.describe_configs(resources, keys=KEYS).items():
        properties = {
            entry.name: entry.value
            for entry in entries
            if entry.value is not None and entry.source != ConfigSource.DEFAULT and entry.name in KEYS
        }
        if properties:
            found[resource.name] = properties
    return found


class ClusterWatch:
    """Polls a cluster in a thread of its own.

    Args:
        connect: Makes a client of the cluster; called again after each failure.
        interval_ms: Time between two polls.
        observed: Called in the thread with the result of each poll.
        with_subscriptions: Whether to ask for subscriptions, too.
        topic_ids: Topics whose names are wanted; called in the thread.
    """

    def __init__(
        self,
        connect: Callable[[], AdminClient],
        interval_ms: int,
        observed: Callable[[Observed], None],
        *,
        with_subscriptions: bool = True,
        topic_ids: Callable[[], Sequence[bytes]] = tuple,
    ) -> None:
        self.connect = connect
        self.interval_s = interval_ms / 1000
        self.observed = observed
        self.with_subscriptions = with_subscriptions
        self.topic_ids = topic_ids
        self.admin: AdminClient | None = None
        self.polling = threading.Lock()
        """Held by the thread that uses the client."""
        self.stopping = threading.Event()
        self.wake = threading.Event()
        self.thread = threading.Thread(target=self.run, name="odradek-cluster-watch", daemon=True)

    def start(self) -> None:
        """Start the thread, which polls at once."""
        self.thread.start()

    def poke(self) -> None:
        """Poll soon, because something may have changed. Any thread may call this."""
        self.wake.set()

    def stop(self) -> None:
        """End the thread; a poll under way is waited for a moment."""
        self.stopping.set()
        self.wake.set()
        if self.thread.is_alive():
            self.thread.join(STOP_TIMEOUT_S)

    def run(self) -> None:
        """Poll until `stop`."""
        while not self.stopping.is_set():
            self.wake.clear()
            found = self.poll()
            if self.stopping.is_set():
                break
            try:
                self.observed(found)
            except Exception:
                log.exception("result of a poll cannot be used")
            if not self.stopping.wait(min(LEAST_PAUSE_S, self.interval_s)):
                self.wake.wait(max(self.interval_s - LEAST_PAUSE_S, 0))
        self.disconnect()

    def poll(self) -> Observed:
        """Ask the cluster once, over the connection of the last poll if that succeeded.

        Any thread may call this; two polls run one after the other.
        """
        with self.polling:
            try:
                if self.admin is None:
                    self.admin = self.connect()
                found = poll(self.admin, self.with_subscriptions, self.topic_ids())
            except Exception as error:
                if not isinstance(error, ClientError | ConfigError):
                    log.exception("poll of the cluster failed")
                found = Observed(failure=str(error) or type(error).__name__)
            if found.failure is not None:
                self.disconnect()
            return found

    def disconnect(self) -> None:
        """Close the connections; the next poll makes new ones and reads certificates and secrets again."""
        admin, self.admin = self.admin, None
        if admin is not None:
            admin.close()
