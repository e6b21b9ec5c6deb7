"""Gateways in front of one cluster, behind a load balancer whose address they advertise."""

from __future__ import annotations

import json
import queue
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from contrib.capture.ports import free_range

from integration.java.gateway_process import HOST, Seen, WatchedGateway, gateway_process
from support.mapped_port import mapped_to

GATEWAYS = 2
BOOTSTRAP_AND_NODES = 4
"""Ports of a gateway in front of three nodes."""
PUSH_TIMEOUT_S = 90


@dataclass(slots=True)
class BalancedGateways:
    """Gateways by their numbers, from 0 on, and the balancer's address."""

    folder: Path
    upstream: str
    nodes: str
    secret: str
    settings: tuple[str, ...]
    first_port: int
    """The balancer's first port."""
    ports: Sequence[int]
    """The first port of each gateway."""
    running: dict[int, WatchedGateway] = field(default_factory=dict)
    logs: list[str] = field(default_factory=list)
    """Of gateways that were killed."""
    stack: ExitStack = field(default_factory=ExitStack)

    @property
    def bootstrap(self) -> str:
        return f"{HOST}:{self.first_port}"

    def start(self, number: int) -> None:
        """Start a gateway, also one that was killed, and wait until it is ready."""
        advertised = (
            f"advertised.listeners=PLAINTEXT://{self.bootstrap}",
            f"gateway.advertised.port.start={self.first_port + 1}",
            f"gateway.name=edge-{number}",
        )
        folder = self.folder / f"gateway-{number}"
        folder.mkdir(exist_ok=True)
        self.running[number] = self.stack.enter_context(
            gateway_process(
                folder,
                self.upstream,
                self.nodes,
                self.secret,
                *advertised,
                *self.settings,
                port=self.ports[number],
            )
        )

    def kill(self, number: int) -> None:
        """End a gateway with SIGKILL."""
        gateway = self.running.pop(number)
        gateway.kill()
        self.logs.append(gateway.log)

    def next_push(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The next push to any gateway for which ``wanted`` is true."""
        deadline = time.monotonic() + PUSH_TIMEOUT_S
        while time.monotonic() < deadline:
            for gateway in self.running.values():
                try:
                    push: dict[str, Any] = json.loads(gateway.lines.get(timeout=0.05))
                except queue.Empty:
                    continue
                if wanted(push):
                    return push
        raise AssertionError(f"no such push in {PUSH_TIMEOUT_S} s")

    def stopped(self) -> list[Seen]:
        """Stop all and return what their clients were sent."""
        return [self.running.pop(number).stopped() for number in list(self.running)]

    @property
    def faults(self) -> str:
        """The logs from the first error on; empty without one."""
        log = "\n".join([*self.logs, *(gateway.log for gateway in self.running.values())])
        found = re.search(r"Traceback|ERROR", log)
        return log[found.start() :] if found else ""


@contextmanager
def balanced_gateways(
    folder: Path, upstream: str, nodes: str, secret: str, *settings: str
) -> Iterator[BalancedGateways]:
    """Start two gateways and a balancer in front of a cluster of three nodes, yield, stop."""
    ports = BOOTSTRAP_AND_NODES * (1 + GATEWAYS)
    first_port = free_range(ports)
    first_ports = range(first_port, first_port + ports, BOOTSTRAP_AND_NODES)
    gateways = BalancedGateways(folder, upstream, nodes, secret, settings, first_port, first_ports[1:])
    with gateways.stack as stack:
        for number in range(GATEWAYS):
            gateways.start(number)
        for place in range(BOOTSTRAP_AND_NODES):
            targets = [port + place for port in gateways.ports]
            stack.enter_context(mapped_to(*targets, port=gateways.first_port + place))
        yield gateways
