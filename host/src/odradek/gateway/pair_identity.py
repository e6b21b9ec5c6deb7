"""The client of one pair: its address, and the names it gave."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ANONYMOUS = "User:ANONYMOUS"

PrincipalSource = Literal["none", "sasl", "tls"]


@dataclass(slots=True)
class PairIdentity:
    """The client of a pair. Fields are filled as requests pass."""

    address: str
    """The client's IP address, or the one that the PROXY header named."""
    port: int
    listener: str
    """Name of the listener, as in the setting `listeners`."""
    node_id: int | None = None
    """The node of the port that the client dialed; None for the bootstrap address."""
    client_id: str = ""
    """From the header of the last request."""
    software_name: str = ""
    """From ApiVersions v3 and newer; empty before, and for older clients."""
    software_version: str = ""
    principal: str = ANONYMOUS
    """`User:NAME`, set once the broker has accepted the credentials. A claim: the broker may map the name."""
    principal_source: PrincipalSource = "none"
    security_protocol: str = "PLAINTEXT"
    """Of the listener that the client is connected to."""
    awaiting_sasl: bool = False
    """The broker wants authentication and has not accepted any: requests for telemetry close the pair."""
