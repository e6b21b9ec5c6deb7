"""The client at the other end of a connection."""

from __future__ import annotations

from typing import NamedTuple


class Peer(NamedTuple):
    """The address of a client."""

    address: str
    """The address as Java prints it."""
    port: int
