"""Tell the supervisor of this process, systemd for one, whether it serves: the protocol of sd_notify(3)."""

from __future__ import annotations

import logging
import os
import socket
from typing import Final

log = logging.getLogger(__name__)

ADDRESS: Final = "NOTIFY_SOCKET"
"""The environment variable with the supervisor's socket; ``@`` begins a name that is no file."""
READY: Final = "READY=1"
STOPPING: Final = "STOPPING=1"


def tell_supervisor(state: str) -> None:
    """Send a state to the supervisor, if the environment names its socket."""
    address = os.environ.get(ADDRESS)
    if not address:
        return
    name = "\0" + address[1:] if address.startswith("@") else address
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
            channel.setblocking(False)
            channel.sendto(state.encode(), name)
    except OSError as error:
        log.warning(
            "the supervisor of this process cannot be reached, and may end it after a time",
            extra={"state": state, "socket": address, "problem": str(error)},
        )
