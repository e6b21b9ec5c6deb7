"""Shields requests from failures of a plugin that the host asks for an answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from odradek.plugin.plugin_stats import PluginStats
from odradek.waiting.clock import Clock

Answer = TypeVar("Answer")


class Guard:
    """Calls a plugin on the event loop: a request needs its answer, so a slow plugin stays there.

    Args:
        name: The name of the plugin.
        hook: The hook that offered the object.
        clock: The time.
        slow_ms: A call that takes longer is counted and logged.
    """

    def __init__(self, name: str, hook: str, clock: Clock, slow_ms: int) -> None:
        self.hook = hook
        self.clock = clock
        self.slow_ns = slow_ms * 1_000_000
        self.stats = PluginStats(name)

    def answer(self, method: object, ask: Callable[[], Answer], otherwise: Answer) -> Answer:
        """The plugin's answer, or ``otherwise`` if it fails.

        Args:
            method: The method of the plugin, whose place is told.
            ask: Calls it, and raises if its answer is no answer.
            otherwise: Stands for the answer.
        """
        started_ns = self.clock.monotonic_ns()
        try:
            answer = ask()
        except Exception as error:  # noqa: BLE001 - plugins' code
            self.stats.fail(error, self.clock.monotonic_ms(), method)
            answer = otherwise
        else:
            self.stats.exported += 1
        took_ns = self.clock.monotonic_ns() - started_ns
        if took_ns > self.slow_ns:
            self.stats.block(self.hook, took_ns, self.clock.monotonic_ms(), method)
        return answer
