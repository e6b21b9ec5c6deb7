"""The names of the compared servers, and how a host is started."""

from __future__ import annotations

import sys
from pathlib import Path

C_EPOLL = "C epoll"
MOCK = "librdkafka mock"
KAFKA = "Apache Kafka"
UVLOOP = "odradek, uvloop"
ASYNCIO = "odradek, asyncio"
PLAIN_LOOP = "odradek, without odradek-speed"
LOG = "odradek, log"
"""Pushes are kept in the log, as by default."""
OURS = (UVLOOP, ASYNCIO, PLAIN_LOOP, LOG)
WITHOUT_SPEED = (
    "import runpy, sys; sys.modules['odradek_speed.records'] = None; "
    "runpy.run_module('bench.host', run_name='__main__', alter_sys=True)"
)


def host_command(server: str, *options: str) -> list[str | Path]:
    """Start a host as one of `OURS`."""
    program = ["-c", WITHOUT_SPEED] if server == PLAIN_LOOP else ["-m", "bench.host"]
    durability = ["--durability", "log"] if server == LOG else []
    loop = "asyncio" if server == ASYNCIO else "uvloop"
    return [sys.executable, *program, "--loop", loop, *durability, *options]
