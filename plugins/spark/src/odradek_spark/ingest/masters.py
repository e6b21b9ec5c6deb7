"""Checks a master of Spark before a session starts, and finds the address of the driver for its workers."""

from __future__ import annotations

import re
import socket

CONNECT_S = 10.0
LOOPBACK = "127.0.0.1"
MASTER = re.compile(r"(local(\[.+\])?|local-cluster\[.+\]|spark://.+|k8s://.+|yarn)")
STANDALONE = "spark://"


class MasterError(Exception):
    """The master is malformed or does not answer; the message says which."""


def driver_address(master: str) -> str | None:
    """The address of this machine at which the workers of a master reach the driver.

    Returns:
        Loopback for a session on this machine; for a standalone cluster, the address from which its master is
        reached. None if Spark itself finds it.

    Raises:
        MasterError: It is no master, or it does not answer.
    """
    if not MASTER.fullmatch(master):
        raise MasterError(
            f"{master!r} is no master of Spark: expected local[CORES], spark://HOST:PORT, yarn or k8s://..."
        )
    if master.startswith("local"):
        return LOOPBACK
    if not master.startswith(STANDALONE):
        return None
    problems = []
    for place in master.removeprefix(STANDALONE).split(","):
        host, _, port = place.rpartition(":")
        if not host or not port.isdigit():
            raise MasterError(f"{master}: expected spark://HOST:PORT")
        try:
            with socket.create_connection((host.strip("[]"), int(port)), CONNECT_S) as connection:
                return str(connection.getsockname()[0])
        except (OSError, OverflowError) as error:
            problems.append(f"{place}: {error}")
    raise MasterError(f"no Spark master at {master}: {'; '.join(problems)}")
