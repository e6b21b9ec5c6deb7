"""The app that a client belongs to if no rule of the configuration says it: the name that instances share."""

from __future__ import annotations

import re
from typing import Final

ENDS: Final = re.compile(
    r"[-_.]([0-9]{1,20}|[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|[0-9a-fA-F]{32})$"
)
"""The difference between instances of an app: a number or a UUID at the end of the client id."""


def app_name(client_id: str, group_id: str = "") -> str:
    """The group, else the client id without its end.

    Args:
        client_id: The client id; empty if the client has none.
        group_id: The consumer group; empty for other clients.
    """
    return group_id or ENDS.sub("", client_id)
