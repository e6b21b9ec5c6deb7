"""The calls of one forwarder: each ends in time, and each outcome is told and counted."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from threading import Event, Lock
from typing import Final

from odradek.delivery.batch_delivery import BatchDelivery, backoff_ms
from odradek.delivery.delivery_ledger import DeliveryLedger
from odradek.delivery.forwarder_settings import ForwarderSettings
from odradek.hosting.bounded_call import CutOffError, bounded, waited
from odradek.hosting.destination_log import DELIVER, START, DestinationLog
from odradek.hosting.watched_call import told_if_long
from odradek.plugin.places import place_of, place_of_definition
from odradek.plugin.plugin_stats import described
from odradek.plugin.protocols import Forwarder, Reject, Retry

log = logging.getLogger(__name__)

MAX_START_MS: Final = 300_000
"""The most time that a later attempt to start has, unless ``deliver.timeout.ms`` is longer."""
MAX_DOUBLINGS: Final = 30


def monotonic_ms() -> int:
    """A monotonic clock, for the age of records."""
    return time.monotonic_ns() // 1_000_000


class ForwarderCalls:
    """Calls a plugin on its own thread. Whatever it raises goes no further."""

    def __init__(
        self,
        name: str,
        forwarder: Forwarder,
        settings: ForwarderSettings,
        ledger: DeliveryLedger,
        lock: Lock,
        uniform: Callable[[], float],
    ) -> None:
        self.forwarder = forwarder
        self.settings = settings
        self.ledger = ledger
        self.lock = lock
        self.uniform = uniform
        self.destination = DestinationLog(name, settings.failure_max_attempts)
        self.opened = Event()
        """Set after the first attempt to start."""

    async def start(self, stopping: asyncio.Event) -> bool:
        """Start the plugin, again and again until it succeeds; False if the runner stops first.

        Each attempt has twice the time of the one before: a start may have much to read.
        """
        settings, attempts = self.settings, 0
        most_ms = max(settings.deliver_timeout_ms, MAX_START_MS)
        while not stopping.is_set():
            limit_s = min(settings.deliver_timeout_ms << attempts, most_ms) / 1000
            try:
                with self.destination.call(START, limit_s, monotonic_ms()), self.told_if_long(limit_s):
                    await bounded(self.forwarder.start, limit_s)
            except Exception as error:  # noqa: BLE001  a plugin may raise anything
                self.destination.broken(START, error, 0, monotonic_ms())
                attempts = min(attempts + 1, MAX_DOUBLINGS)
                with self.lock:
                    self.ledger.failures += 1
                    self.ledger.last_error = described(error)
                self.opened.set()
                await waited(stopping, backoff_ms(settings, attempts, self.uniform))
            else:
                self.opened.set()
                self.destination.started()
                return True
        return False

    def told_if_long(self, limit_s: float) -> AbstractContextManager[None]:
        """Tell of a start that takes long."""
        then = f"pushes wait for it, its time limit is {limit_s:g} s"
        return told_if_long(self.destination.name, START, then)

    async def deliver(self, delivery: BatchDelivery) -> int:
        """Call ``deliver`` once; return the milliseconds to wait before the next call."""
        batch = delivery.piece()
        limit_s = self.settings.deliver_timeout_ms / 1000
        try:
            with self.destination.call(DELIVER, limit_s, monotonic_ms()):
                answer = await bounded(lambda: self.forwarder.deliver(batch), limit_s)
        except Retry as error:
            self.destination.failed(error, len(batch), monotonic_ms())
            with self.lock:
                return delivery.retry(error)
        except Reject as error:
            with self.lock:
                delivery.reject(error)
        except CutOffError as error:
            self.destination.failed(error, len(batch), monotonic_ms())
            with self.lock:
                return delivery.timed_out(f"TimeoutError: {error}")
        except Exception as error:  # noqa: BLE001  a plugin may raise anything
            self.destination.broken(DELIVER, error, len(batch), monotonic_ms())
            with self.lock:
                return delivery.failed(described(error))
        else:
            if answer is not None:
                self.destination.answered(answer, place_of_definition(self.forwarder.deliver))
            self.destination.delivered(monotonic_ms())
            with self.lock:
                delivery.delivered()
        return 0

    async def close(self, limit_s: float) -> None:
        """Close the plugin within the time."""
        try:
            await bounded(self.forwarder.close, limit_s)
        except Exception as error:
            name, told = self.destination.name, described(error) + place_of(error)
            log.warning("plugin %s cannot be closed: %s", name, told, exc_info=error, extra={"plugin": name})
