"""Shields requests from failures of a plugin's quota callback."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TypeVar

from odradek.clock import Clock
from odradek.plugin.client_quota import ClientQuotaEntity, ClientQuotaType
from odradek.plugin.plugin_stats import PluginStats
from odradek.plugin.protocols import ClientQuotaCallback
from odradek.quota.quota_entity import sanitize

Answer = TypeVar("Answer")


class GuardedCallback:
    """Passes calls on to the callback. An exception or an illegal answer counts as "no limit".

    A slow callback stays on the event loop: a request needs its answer.
    """

    def __init__(self, name: str, callback: ClientQuotaCallback, clock: Clock, slow_ms: int = 5) -> None:
        self.callback = callback
        self.clock = clock
        self.slow_ns = slow_ms * 1_000_000
        self.stats = PluginStats(name)

    def quota_metric_tags(self, quota_type: ClientQuotaType, user: str, client_id: str) -> Mapping[str, str]:
        def tags() -> Mapping[str, str]:
            answer = dict(self.callback.quota_metric_tags(quota_type, user, client_id))
            if not all(isinstance(text, str) for pair in answer.items() for text in pair):
                raise TypeError("metric tags must be strings")
            return answer

        answer = self.answer(tags, None)
        return {"user": sanitize(user), "client-id": client_id} if answer is None else answer

    def quota_limit(self, quota_type: ClientQuotaType, metric_tags: Mapping[str, str]) -> float | None:
        def limit() -> float | None:
            answer = self.callback.quota_limit(quota_type, metric_tags)
            if answer is not None and not (math.isfinite(answer) and answer >= 0):
                raise ValueError(f"{answer} is not a limit: expected a finite number of at least 0, or None")
            return answer

        return self.answer(limit, None)

    def update_quota(self, quota_type: ClientQuotaType, entity: ClientQuotaEntity, value: float) -> None:
        self.answer(lambda: self.callback.update_quota(quota_type, entity, value), None)

    def remove_quota(self, quota_type: ClientQuotaType, entity: ClientQuotaEntity) -> None:
        self.answer(lambda: self.callback.remove_quota(quota_type, entity), None)

    def quota_reset_required(self, quota_type: ClientQuotaType) -> bool:
        return bool(self.answer(lambda: self.callback.quota_reset_required(quota_type), False))

    def answer(self, ask: Callable[[], Answer], otherwise: Answer) -> Answer:
        """The plugin's answer, or ``otherwise`` if it fails."""
        started_ns = self.clock.monotonic_ns()
        try:
            answer = ask()
        except Exception as error:  # noqa: BLE001 - plugins' code
            self.stats.fail(error, self.clock.monotonic_ms())
            answer = otherwise
        else:
            self.stats.exported += 1
        took_ns = self.clock.monotonic_ns() - started_ns
        if took_ns > self.slow_ns:
            self.stats.block("odradek_quota_callback", took_ns, self.clock.monotonic_ms())
        return answer
