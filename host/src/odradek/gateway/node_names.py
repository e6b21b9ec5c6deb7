"""Host names of nodes, made from a pattern: clients name the server in the TLS handshake (SNI)."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import Final

from odradek.wire.limits import INT32_MAX

NODE_ID: Final = "$(nodeId)"
LABEL: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
LONGEST_NAME: Final = 253
DIGITS: Final = re.compile(r"0|[1-9][0-9]{0,9}")


def host_name(text: str) -> str:
    """Return a host name as it is compared: in lower case, without a final dot."""
    return text.lower().removesuffix(".")


def is_host_name(text: str) -> bool:
    """Whether clients can name a server so in TLS: it is a host name and not an IP address."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        name = host_name(text)
        return len(name) <= LONGEST_NAME and all(map(LABEL.fullmatch, name.split(".")))
    return False


@dataclass(frozen=True, slots=True)
class NodeNames:
    """One host name for each node id, like `b$(nodeId).kafka.example.com`."""

    before: str
    after: str

    @classmethod
    def of(cls, text: str) -> NodeNames:
        """Read a pattern.

        Raises:
            ValueError: It does not have the node id once, or its names are not host names.
        """
        before, found, after = text.partition(NODE_ID)
        if not found or NODE_ID in after:
            raise ValueError(f"has {NODE_ID} once")
        names = cls(before.lower(), host_name(after))
        if not all(is_host_name(names.name(each)) for each in (0, INT32_MAX)):
            raise ValueError("gives host names")
        return names

    def __str__(self) -> str:
        return f"{self.before}{NODE_ID}{self.after}"

    def name(self, node_id: int) -> str:
        """Return the name of a node."""
        return f"{self.before}{node_id}{self.after}"

    def node_id(self, name: str) -> int | None:
        """Return the node id in a name; None if it is not of this pattern."""
        name = host_name(name)
        if not (name.startswith(self.before) and name.endswith(self.after)):
            return None
        middle = name[len(self.before) : len(name) - len(self.after)]
        if DIGITS.fullmatch(middle) is None:
            return None
        found = int(middle)
        return found if found <= INT32_MAX else None
