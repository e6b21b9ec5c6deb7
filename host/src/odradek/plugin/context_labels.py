"""Labels from the context of a request (KIP-714, "Metrics plugin": labels added by the broker)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from odradek.plugin.context import RequestContext
from odradek.wire.uuid_text import uuid_text

CLUSTER_NAME: Final = "cluster.name"
"""The Resource attribute that names the cluster. A host and a gateway set it on each push."""
Label = Callable[[bytes, RequestContext], str | None]
"""Computes a label from client instance id and request; None leaves the label out."""


def broker_node_id(_: bytes, context: RequestContext) -> str:
    """The id of the broker that accepted the push."""
    return str(context.connection.node_id)


def client_source_address(_: bytes, context: RequestContext) -> str | None:
    """The address of the client; None if the record does not tell it."""
    return context.connection.client_address or None


def client_source_port(_: bytes, context: RequestContext) -> str | None:
    """The port of the client; None if the record does not tell the address."""
    connection = context.connection
    return str(connection.client_port) if connection.client_address else None


CONTEXT_LABELS: Final[Mapping[str, Label]] = {
    "client_instance_id": lambda instance, _: uuid_text(instance),
    "client_id": lambda _, context: context.client_id,
    "client_software_name": lambda _, context: context.connection.client_software_name,
    "client_software_version": lambda _, context: context.connection.client_software_version,
    "client_source_address": client_source_address,
    "client_source_port": client_source_port,
    "principal": lambda _, context: context.connection.principal,
    "broker_node_id": broker_node_id,
    "cluster_id": lambda _, context: context.connection.cluster_id,
    "node_id": broker_node_id,
}
"""The labels of the KIP, in its order, and the cluster of a relayed push. The last is the KIP's literal name
of ``broker_node_id``.
"""

DEFAULT_LABELS: Final = tuple(name for name in CONTEXT_LABELS if name != "node_id")
"""Without ``node_id``: Java clients put an attribute of that name, the node they measured, on their data
points. A destination that makes labels and attributes those of a series keeps only one of them."""

CLIENT_LABELS: Final = (
    "client_rack",
    "group_id",
    "group_instance_id",
    "group_member_id",
    "member_id",
    "transactional_id",
)
"""Resource attributes of the clients (KIP-714). librdkafka calls the member ``member_id``."""


def context_labels(client_instance_id: bytes, context: RequestContext) -> dict[str, str]:
    """The default labels of a client instance. The first reader sets them on a record that has no labels."""
    labels = {name: CONTEXT_LABELS[name](client_instance_id, context) for name in DEFAULT_LABELS}
    return {name: value for name, value in labels.items() if value is not None}
