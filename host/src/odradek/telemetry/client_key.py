"""The identity of a client that has no client instance id of its own: what the wire tells of it."""

from __future__ import annotations

from typing import NamedTuple

from odradek.plugin.context import RequestContext
from odradek.telemetry.goodbyes import Place
from odradek.wire.uuid_text import named_uuid


class ClientKey(NamedTuple):
    """The facts that tell one observed client from another."""

    principal: str
    client_id: str
    address: str
    software_name: str
    software_version: str

    @property
    def place(self) -> Place:
        """Where its members of groups are."""
        return Place(self.client_id, self.address)

    def instance_id(self, origin: str) -> bytes:
        """The 16 bytes that stand for the client instance id, the same after every restart.

        Args:
            origin: The observing program: what two of them see of a client are two series.
        """
        return named_uuid("odradek.observed", origin, *self)


def key_of_request(context: RequestContext) -> ClientKey:
    """The client that has sent a request."""
    connection = context.connection
    return ClientKey(
        connection.principal,
        context.client_id or "",
        connection.client_address,
        connection.client_software_name,
        connection.client_software_version,
    )
