"""The brokers of one cluster, and the open connections to them."""

from __future__ import annotations

import ssl
from collections.abc import Collection
from typing import TYPE_CHECKING, Self

from odradek.client.address import Address, addresses
from odradek.client.connection import DEFAULT_TIMEOUT_S, SOFTWARE_NAME, Connection
from odradek.client.errors import ClientError, ConnectFailed, check
from odradek.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

if TYPE_CHECKING:
    from odradek.client.sasl import SaslLogin

NO_NODE = -1


class Cluster:
    """Connections to the brokers of a cluster, opened on first use; a context manager.

    Args:
        bootstrap: ``h1:p1,h2:p2``, tried in this order.
        client_id: The client id that the brokers use for quotas and logs.
        timeout_s: Limit for connecting, and for each request with its response.
        login: How the client authenticates; None for listeners without authentication.
        tls: Encrypts the connections; None for listeners without TLS.

    Raises:
        ConfigError: ``bootstrap`` is not a list of addresses. The constructor does not connect.
    """

    def __init__(
        self,
        bootstrap: str,
        client_id: str = SOFTWARE_NAME,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        login: SaslLogin | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.bootstrap = addresses(bootstrap)
        self.client_id = client_id
        self.timeout_s = timeout_s
        self.login = login
        self.tls = tls
        self.connections: dict[Address, Connection] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections. Closing again does nothing."""
        for connection in self.connections.values():
            connection.close()
        self.connections.clear()

    def connection(self, address: Address) -> Connection:
        """An open connection to one broker."""
        known = self.connections.get(address)
        if known is None or known.broken:
            known = Connection(
                address.host, address.port, self.client_id, self.timeout_s, self.login, self.tls
            )
            self.connections[address] = known
        return known

    def any(self) -> Connection:
        """A connection to any broker: an open one, or the first in the bootstrap list that answers.

        Raises:
            ClientError: No broker answers. The message has the reason for each of them.
        """
        for connection in self.connections.values():
            if not connection.broken:
                return connection
        failures: list[ClientError] = []
        for address in self.bootstrap:
            try:
                return self.connection(address)
            except ClientError as error:
                failures.append(error.with_traceback(None))  # which holds this frame, and so the list
        if len(failures) == 1:
            raise failures.pop()
        raise ConnectFailed(f"no broker answers: {'; '.join(map(str, failures))}")

    def metadata(self, topics: list[str] | None = None) -> MetadataResponse:
        """Brokers, and the leaders of topics.

        Args:
            topics: Names of topics; None for all topics. Missing topics are not created.
        """
        wanted = None if topics is None else [MetadataRequestTopic(name=name) for name in topics]
        response: MetadataResponse = self.any().send(
            MetadataRequest(topics=wanted, allow_auto_topic_creation=False), least_version=4
        )
        check(response.error_code, subject="Metadata")
        return response

    def topic_names(self, topic_ids: Collection[bytes]) -> dict[bytes, str]:
        """The names of topics by id; those that do not exist, or may not be seen, are left out.

        Raises:
            UnsupportedVersion: The brokers are older than topic ids in Metadata (2.8).
        """
        wanted = [MetadataRequestTopic(topic_id=topic_id, name=None) for topic_id in topic_ids]
        response: MetadataResponse = self.any().send(
            MetadataRequest(topics=wanted, allow_auto_topic_creation=False), least_version=12
        )
        return {row.topic_id: row.name for row in response.topics if row.name and not row.error_code}

    def node(self, node_id: int, metadata: MetadataResponse | None = None) -> Connection:
        """A connection to the broker with this id.

        Raises:
            ClientError: There is no such broker, or it does not answer.
        """
        for broker in (metadata or self.metadata([])).brokers:
            if broker.node_id == node_id:
                return self.connection(Address(broker.host, broker.port))
        raise ConnectFailed(f"the cluster has no broker {node_id}")

    def controller(self) -> Connection:
        """A connection to the controller, or to any broker, which forwards to the controller in KRaft."""
        metadata = self.metadata([])
        if metadata.controller_id == NO_NODE:
            return self.any()
        return self.node(metadata.controller_id, metadata)
