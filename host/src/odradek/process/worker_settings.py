"""Settings of the processes that open large payloads and record batches."""

from __future__ import annotations

from dataclasses import dataclass

from odradek.settings.kinds import INT, LONG, Whole
from odradek.settings.setting import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """The worker processes, and what may wait for them."""

    # fmt: off
    processes: int = setting(
        "payload.workers", Whole(INT, 0, 64), 1,
        "Worker processes that open payloads larger than `telemetry.inline.bytes`; with 0 the event loop "
        "opens them, and validates large record batches, for which there is otherwise one more process.",
        unit="processes",
    )
    queue_max_bytes: int = setting(
        "worker.queue.max.bytes", Whole(LONG, 1), 64 << 20,
        "Most bytes that wait for the worker processes of payloads, and as many for that of record batches; "
        "a client whose request finds no room must try again.", unit="bytes",
    )
    queue_max_requests: int = setting(
        "worker.queue.max.requests", Whole(INT, 1), 4_096,
        "The same limit as a number: a kilobyte can hold 20 ms of work.", unit="requests",
    )
    # fmt: on
