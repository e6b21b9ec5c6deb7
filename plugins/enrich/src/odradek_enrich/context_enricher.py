"""Labels from the context of a request (KIP-714, "Metrics plugin": labels added by the broker)."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping

from odradek.plugin import RequestContext

Label = Callable[[bytes, RequestContext], str | None]
"""Computes a label from client instance id and request; None leaves the label out."""


def instance_id_text(client_instance_id: bytes) -> str:
    """The id as Kafka's ``Uuid.toString`` prints it, 22 characters."""
    return base64.urlsafe_b64encode(client_instance_id).rstrip(b"=").decode()


def broker_node_id(_: bytes, context: RequestContext) -> str:
    """The id of the broker that accepted the push."""
    return str(context.connection.node_id)


LABELS: dict[str, Label] = {
    "client_instance_id": lambda instance, _: instance_id_text(instance),
    "client_id": lambda _, context: context.client_id,
    "client_software_name": lambda _, context: context.connection.client_software_name,
    "client_software_version": lambda _, context: context.connection.client_software_version,
    "client_source_address": lambda _, context: context.connection.client_address,
    "client_source_port": lambda _, context: str(context.connection.client_port),
    "principal": lambda _, context: context.connection.principal,
    "broker_node_id": broker_node_id,
    "node_id": broker_node_id,
}
"""The labels of the KIP, in its order; the last is its literal name of ``broker_node_id``."""

DEFAULT = tuple(name for name in LABELS if name != "node_id")
"""Without ``node_id``: Java clients put an attribute of that name, the node they measured, on their data
points. A destination that makes labels and attributes those of a series keeps only one of them."""


class ContextEnricher:
    """Sets the chosen labels and the static ones."""

    def __init__(self, names: tuple[str, ...], static: Mapping[str, str]) -> None:
        self.chosen = [(name, LABELS[name]) for name in names]
        self.static = dict(static)

    def reload(self, replacement: ContextEnricher) -> None:
        """Set the labels of another table from now on."""
        self.chosen, self.static = replacement.chosen, replacement.static

    def labels(self, client_instance_id: bytes, context: RequestContext) -> dict[str, str]:
        """The labels of a client instance, as a new mapping."""
        labels = dict(self.static)
        for name, label in self.chosen:
            value = label(client_instance_id, context)
            if value is not None:
                labels[name] = value
        return labels
