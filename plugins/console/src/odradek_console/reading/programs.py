"""Gateways and hosts by their own metrics: whether they are up, and how their destinations do."""

from __future__ import annotations

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from prometheus_client.parser import text_string_to_metric_families

from odradek.endpoints.http_exchange import NoAnswer, exchange
from odradek_console.json_form import JsonRow

log = logging.getLogger(__name__)

INTERVAL_S: Final = 10.0
TIMEOUT_S: Final = 3.0
MOST_BYTES: Final = 32 << 20
LOST_S: Final = 30.0
"""A destination that accepts nothing for so long, while pushes wait for it, is lost."""
STOP_S: Final = 1.0
QUEUED, DELIVERED = "odradek_forwarder_queued", "odradek_forwarder_delivered"
UP, CONNECTIONS, GATEWAY = "odradek_up", "odradek_connections", "odradek_gateway_"
Values = dict[str, dict[str, float]]
"""By name without unit and suffix, and plugin; values of other labels are added."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramRow(JsonRow):
    """A program, with one of its destinations; a program without any has one row."""

    program: str
    """Its URL."""
    kind: str
    """``gateway`` or ``host``; empty if it has never answered."""
    state: str
    """``up``, or why it does not answer."""
    connections: float | None
    destination: str
    """Empty without one."""
    waiting: float | None
    delivered: float | None
    """Pushes since the start of the program."""
    health: str
    """``well``, or ``lost`` if pushes wait and none is accepted."""
    still_s: float | None
    """For how long nothing was accepted; None if that is well."""


@dataclass(slots=True)
class Program:
    """What one program has told last."""

    url: str
    values: Values | None = None
    problem: str = "not asked yet"
    moved_s: dict[str, float] | None = None
    """When `delivered` of a destination has moved, or nothing waited for it."""

    def ask(self, now_s: float) -> None:
        """Read its metrics."""
        try:
            answer = exchange(f"{self.url}/metrics", timeout_s=TIMEOUT_S, max_bytes=MOST_BYTES)
            if not answer.is_success:
                raise NoAnswer(f"it answers {answer.status}")
            found = values_of(answer.body.decode())
        except (OSError, ValueError) as error:
            self.problem = str(error) or type(error).__name__
            return
        except Exception as error:
            problem = f"its page cannot be read: {error!r}"
            if problem != self.problem:
                log.exception("the page of a program cannot be read", extra={"program": self.url})
            self.problem = problem
            return
        before = self.values or {}
        moved_s = self.moved_s or {}
        for name, waiting in found.get(QUEUED, {}).items():
            delivered = found.get(DELIVERED, {}).get(name, 0.0)
            if not waiting or delivered != before.get(DELIVERED, {}).get(name) or name not in moved_s:
                moved_s[name] = now_s
        self.values, self.moved_s, self.problem = found, moved_s, ""

    def rows(self, now_s: float) -> Iterator[ProgramRow]:
        """One for each destination."""
        values = self.values or {}
        kind = "gateway" if any(each.startswith(GATEWAY) for each in values) else "host"
        connections = values.get(CONNECTIONS)
        for name in sorted(values.get(QUEUED, {})) or [""]:
            still_s = now_s - (self.moved_s or {}).get(name, now_s)
            is_lost = still_s >= LOST_S
            yield ProgramRow(
                program=self.url,
                kind=kind if self.values is not None else "",
                state=self.problem or "up",
                connections=sum(connections.values()) if connections else None,
                destination=name,
                waiting=values.get(QUEUED, {}).get(name),
                delivered=values.get(DELIVERED, {}).get(name),
                health="" if not name else "lost" if is_lost else "well",
                still_s=still_s if is_lost else None,
            )


def values_of(text: str) -> Values:
    """The metrics of a page, without units.

    Raises:
        ValueError: It is no page of metrics.
    """
    found: Values = defaultdict(dict)
    wanted = (QUEUED, DELIVERED, UP, CONNECTIONS)
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            name = sample.name.removesuffix("_total")
            known = next((each for each in wanted if name == each), "")
            if known or name.startswith(GATEWAY):
                plugin = sample.labels.get("plugin", "")
                by_plugin = found[known or GATEWAY]
                by_plugin[plugin] = by_plugin.get(plugin, 0.0) + sample.value
    if UP not in found:
        raise ValueError("its page has no metrics of a gateway or a host")
    return found


class Programs:
    """Asks programs in a thread of its own from `start` to `stop`. Any thread may call `rows`.

    Args:
        urls: Their ``metrics.listener``.
        now_s: A monotonic clock.
    """

    def __init__(self, urls: Sequence[str], now_s: Callable[[], float] = time.monotonic) -> None:
        self.programs = [Program(each.removesuffix("/metrics")) for each in urls]
        self.now_s = now_s
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.run, name="programs", daemon=True)

    def start(self) -> None:
        """Start the thread, which asks at once."""
        if self.programs:
            self.thread.start()

    def stop(self) -> None:
        """Stop the thread."""
        self.stopping.set()
        if self.thread.is_alive():
            self.thread.join(STOP_S)

    def run(self) -> None:
        """Ask until stopped."""
        self.ask()
        while not self.stopping.wait(INTERVAL_S):
            self.ask()

    def ask(self) -> None:
        """Ask each program."""
        for each in self.programs:
            if not self.stopping.is_set():
                each.ask(self.now_s())

    def rows(self) -> list[ProgramRow]:
        """All of them, in the order that they were named."""
        return [row for each in self.programs for row in each.rows(self.now_s())]
