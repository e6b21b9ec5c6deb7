"""Gateways and hosts by their own metrics: whether they are up, what they hold, how their destinations do."""

from __future__ import annotations

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import Final

from prometheus_client.parser import text_string_to_metric_families

from odradek.endpoints.credentials import SecretKind, secret_headers
from odradek.endpoints.http_exchange import NoAnswer, exchange
from odradek.endpoints.tls_context import default_context
from odradek_console.engine.texts import cut
from odradek_console.program_rows import NOT_ASKED, UP, DestinationRow, ProgramRow, namesakes

log = logging.getLogger(__name__)

INTERVAL_S: Final = 10.0
TIMEOUT_S: Final = 3.0
MOST_BYTES: Final = 32 << 20
LOST_S: Final = 30.0
"""A destination that accepts nothing for so long, while pushes wait for it, is lost."""
STOP_S: Final = 1.0
AT_ONCE: Final = 8
"""Programs that are asked at the same time: one that does not answer holds up no other."""
MOST_WORKERS: Final = 64
MOST_VALUES: Final = 20_000
"""Of one page, of those that are looked at."""
MOST_DESTINATIONS: Final = 100
"""Of one program, the first ones by name."""
LARGEST: Final = 1e18
"""Larger values are no bytes, pushes or seconds of a program."""
STEPS: Final = ("full", "no-observation", "no-telemetry", "rewrite-only")
"""Of the kill switch of a gateway."""
FORWARDER, GATEWAY = "odradek_forwarder_", "odradek_gateway_"
GIVEN_UP: Final = (f"{FORWARDER}dropped_total", f"{FORWARDER}rejected_total")
WANTED: Final = (
    *("odradek_up", "odradek_connections", "odradek_connections_limit", "target_info"),
    *("odradek_queued_bytes", "odradek_queued_limit_bytes"),
    *("process_uptime_seconds", "process_memory_usage_bytes"),
    *(f"{GATEWAY}{each}" for each in ("ready", "switch", "workers")),
    *(f"{FORWARDER}{each}" for each in ("queued", "failing_seconds")),
    f"{FORWARDER}delivered_total",
    *GIVEN_UP,
)
Samples = Mapping[str, Sequence[tuple[Mapping[str, str], float]]]
"""Labels and values, by the names of Prometheus."""


@dataclass(slots=True)
class Program:
    """What one program has told last."""

    url: str
    samples: Samples = field(default_factory=dict)
    problem: str = NOT_ASKED
    asked_s: float = 0.0
    destinations: dict[str, DestinationRow] = field(default_factory=dict)
    moved_s: dict[str, float] = field(default_factory=dict)
    """When `delivered` of a destination has moved, or nothing waited for it."""

    @property
    def about(self) -> Mapping[str, str]:
        """The attributes of its Resource."""
        return next((labels for labels, _ in self.samples.get("target_info", ())), {})

    @property
    def name(self) -> str:
        """Its name, or its address."""
        return self.about.get("service_instance_id") or self.url.partition("://")[2]

    def ask(self, page: Callable[[str], str], clock: Callable[[], float]) -> None:
        """Read its metrics."""
        try:
            found = samples_of(page(f"{self.url}/metrics"))
        except (OSError, ValueError) as error:
            self.fail(str(error) or type(error).__name__)
            return
        except Exception as error:
            before = self.problem
            self.fail(f"its page cannot be read: {error!r}")
            if self.problem != before:
                log.exception("the page of a program cannot be read", extra={"program": self.url})
            return
        before_s, self.samples, self.asked_s, self.problem = self.asked_s, found, clock(), ""
        all_names = {labels.get("plugin", "") for labels, _ in found.get(f"{FORWARDER}queued", ())}
        names = sorted(all_names)[:MOST_DESTINATIONS]
        self.destinations = {name: self.destination(name, self.asked_s - before_s) for name in names}
        self.moved_s = {name: self.moved_s[name] for name in names}

    def fail(self, problem: str) -> None:
        """Keep what it has told, but nobody knows what its destinations take now."""
        self.problem = cut(problem)
        rows = self.destinations.items()
        self.destinations = {name: replace(row, per_s=None, done_s=None) for name, row in rows}

    def destination(self, name: str, seconds: float) -> DestinationRow:
        """A destination as it is now, some seconds after the last look."""
        found, before = self.samples, self.destinations.get(name)
        waiting = total(found, f"{FORWARDER}queued", name) or 0.0
        delivered = total(found, f"{FORWARDER}delivered_total", name) or 0.0
        if before is None or not waiting or delivered != before.delivered:
            self.moved_s[name] = self.asked_s
        failing = [
            each for each in found.get(f"{FORWARDER}failing_seconds", ()) if each[0].get("plugin", "") == name
        ]
        labels, still_s = max(failing, key=lambda each: each[1], default=({}, 0.0))
        # The program knows better than its observer for how long.
        still_s = still_s or self.asked_s - self.moved_s[name]
        is_lost = still_s >= LOST_S
        taken = fewer = 0.0
        if before is not None and seconds > 0:
            taken = (delivered - before.delivered) / seconds
            fewer = (before.waiting - waiting) / seconds
        return DestinationRow(
            program=self.url,
            name=self.name,
            destination=name,
            health="lost" if is_lost else "well",
            still_s=still_s if is_lost else None,
            error=labels.get("error", ""),
            waiting=waiting,
            per_s=taken if before is not None and taken >= 0 else None,
            done_s=waiting / fewer if fewer > 0 else None,
            delivered=delivered,
            given_up=sum(total(found, each, name) or 0.0 for each in GIVEN_UP),
        )

    def row(self) -> ProgramRow:
        """The program."""
        found, name = self.samples, self.name
        is_gateway = any(each.startswith(GATEWAY) for each in found)
        step = max((int(value) for _, value in found.get(f"{GATEWAY}switch", ())), default=0)
        unready = is_gateway and not total(found, f"{GATEWAY}ready")
        workers = min(int(total(found, f"{GATEWAY}workers") or 1), MOST_WORKERS)
        connections = total(found, "odradek_connections")
        kind = "gateway" if is_gateway else "host" if connections is not None else "forwarder"
        return ProgramRow(
            program=self.url,
            name=name,
            kind=kind if found else "",
            state=self.problem or ("no broker answers it" if unready else UP),
            version=self.about.get("service_version", ""),
            uptime_s=max((value for _, value in found.get("process_uptime_seconds", ())), default=None),
            memory_bytes=total(found, "process_memory_usage_bytes"),
            connections=connections,
            connections_limit=total(found, "odradek_connections_limit"),
            held=fullest(found),
            switch=STEPS[max(0, min(step, len(STEPS) - 1))] if is_gateway else "",
            lost=tuple(each for each, it in self.destinations.items() if it.health == "lost"),
            waiting=sum(each.waiting for each in self.destinations.values()) if self.destinations else None,
            gateways=(name, *(f"{name}-{each}" for each in range(1, workers))) if is_gateway else (),
        )


def total(found: Samples, name: str, plugin: str = "") -> float | None:
    """The sum of a metric over its labels, or over those of a plugin; None without values."""
    values = [value for labels, value in found.get(name, ()) if not plugin or labels.get("plugin") == plugin]
    return sum(values) if values else None


def fullest(found: Samples) -> float | None:
    """The largest used share of a memory that has a limit."""
    used, limits = (
        {(labels.get("of"), labels.get("gateway_worker")): value for labels, value in found.get(name, ())}
        for name in ("odradek_queued_bytes", "odradek_queued_limit_bytes")
    )
    return max((value / limits[each] for each, value in used.items() if limits.get(each)), default=None)


def samples_of(text: str) -> Samples:
    """The metrics of a page that are looked at.

    Raises:
        ValueError: It is no page of metrics of a gateway or a host.
    """
    found: dict[str, list[tuple[Mapping[str, str], float]]] = defaultdict(list)
    lines = list(islice((line for line in StringIO(text) if line.startswith(WANTED)), MOST_VALUES + 1))
    if len(lines) > MOST_VALUES:
        raise ValueError(f"its page has more than {MOST_VALUES} values of a gateway or a host")
    for family in text_string_to_metric_families("".join(lines)):
        for sample in family.samples:
            if sample.name in WANTED and abs(sample.value) < LARGEST:
                labels = {name: cut(value) for name, value in sample.labels.items()}
                found[sample.name].append((labels, sample.value))
    if "odradek_up" not in found:
        raise ValueError("its page has no metrics of a gateway or a host")
    return found


class Programs:
    """Asks programs in a thread of its own from `start` to `stop`. Any thread may call `rows`.

    Args:
        urls: Their ``metrics.listener``.
        now_s: A monotonic clock.
        token: The file of their ``metrics.listener.token``, which is read each time.
        ca: PEM file of the authorities of their certificates; None: those of the system.

    Raises:
        OSError: The file of the authorities is not usable.
    """

    def __init__(
        self,
        urls: Sequence[str],
        now_s: Callable[[], float] = time.monotonic,
        token: Path | None = None,
        ca: Path | None = None,
    ) -> None:
        once = dict.fromkeys(each.removesuffix("/metrics") for each in urls)
        self.programs = [Program(each) for each in once]
        self.token = token
        self.tls = None if ca is None else default_context(cafile=ca)
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
        with ThreadPoolExecutor(AT_ONCE, "program") as threads:
            for each in self.programs:
                threads.submit(each.ask, self.page, self.now_s)

    def page(self, url: str) -> str:
        """A page of a program.

        Raises:
            OSError: There is no answer, or the file of the token cannot be read.
            ValueError: The page is no text, or the file has no token.
        """
        headers = secret_headers(SecretKind.BEARER, self.token) if self.token else {}
        answer = exchange(url, timeout_s=TIMEOUT_S, max_bytes=MOST_BYTES, headers=headers, tls=self.tls)
        if answer.status == HTTPStatus.UNAUTHORIZED:
            raise NoAnswer("it refuses the token" if headers else "it needs a token: --program-token-file")
        if not answer.is_success:
            raise NoAnswer(f"it answers {answer.status}")
        return answer.body.decode()

    def rows(self) -> list[ProgramRow]:
        """All of them, in the order that they were named."""
        rows, named = [each.row() for each in self.programs], defaultdict[str, list[str]](list)
        for row in rows:
            for name in row.gateways or (row.name,):
                named[name].append(row.program)
        return [replace(row, namesakes=namesakes(row, named)) for row in rows]

    def destinations(self) -> list[DestinationRow]:
        """The destinations of all."""
        return [row for each in self.programs for row in each.destinations.values()]
