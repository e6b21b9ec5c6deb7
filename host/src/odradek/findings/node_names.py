"""The nodes of clients' metrics by one name, whatever a library calls them."""

from __future__ import annotations

import re
from typing import Final

JAVA_NODE: Final = re.compile(r"(?:node-)?(\+?)(-?[0-9]{1,10})")
COORDINATOR_BASE: Final = 2**31 - 1
"""Java clients subtract the node id of a coordinator from this, for a connection of its own."""
FIRST_COORDINATOR: Final = 2**30
"""A larger number is a coordinator's, not a node's."""


def node_name(text: str) -> str:
    """The node of a metric as librdkafka names it: ``node-1`` is 1, and ``node--1`` the bootstrap address -1.

    The coordinator of a group, to which Java clients connect once more, is ``coordinator-1``: they call it
    ``node-2147483646``, and from Kafka 4.4 on ``node-+1``. Other texts are returned as they are.
    """
    found = JAVA_NODE.fullmatch(text)
    if found is None:
        return text
    number = int(found[2])
    if found[1] and number >= 0:
        return f"coordinator-{number}"
    if FIRST_COORDINATOR <= number <= COORDINATOR_BASE:
        return f"coordinator-{COORDINATOR_BASE - number}"
    return str(number)
