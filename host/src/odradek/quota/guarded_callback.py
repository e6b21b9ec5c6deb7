"""Shields requests from failures of a plugin's quota callback."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Real

from odradek.plugin.client_quota import ClientQuotaEntity, ClientQuotaType
from odradek.plugin.guard import Guard
from odradek.plugin.protocols import ClientQuotaCallback
from odradek.quota.quota_entity import sanitize
from odradek.waiting.clock import Clock


class GuardedCallback:
    """Passes calls on to the callback. An exception or an illegal answer counts as "no limit"."""

    def __init__(self, name: str, callback: ClientQuotaCallback, clock: Clock, slow_ms: int = 5) -> None:
        self.callback = callback
        self.guard = Guard(name, "odradek_quota_callback", clock, slow_ms)
        self.stats = self.guard.stats

    def quota_metric_tags(self, quota_type: ClientQuotaType, user: str, client_id: str) -> Mapping[str, str]:
        def tags() -> Mapping[str, str]:
            answer = self.callback.quota_metric_tags(quota_type, user, client_id)
            if not isinstance(answer, Mapping) or not all(
                isinstance(text, str) for pair in answer.items() for text in pair
            ):
                raise TypeError(f"quota_metric_tags returned {answer!r:.100}, expected a mapping of strings")
            return dict(answer)

        answer = self.guard.answer(self.callback.quota_metric_tags, tags, None)
        return {"user": sanitize(user), "client-id": client_id} if answer is None else answer

    def quota_limit(self, quota_type: ClientQuotaType, metric_tags: Mapping[str, str]) -> float | None:
        def limit() -> float | None:
            answer = self.callback.quota_limit(quota_type, metric_tags)
            is_number = isinstance(answer, Real) and math.isfinite(answer) and answer >= 0
            if answer is not None and not is_number:
                expected = "expected a finite number of at least 0, or None"
                raise TypeError(f"quota_limit returned {answer!r:.100}, {expected}")
            return answer

        return self.guard.answer(self.callback.quota_limit, limit, None)

    def update_quota(self, quota_type: ClientQuotaType, entity: ClientQuotaEntity, value: float) -> None:
        update = self.callback.update_quota
        self.guard.answer(update, lambda: update(quota_type, entity, value), None)

    def remove_quota(self, quota_type: ClientQuotaType, entity: ClientQuotaEntity) -> None:
        remove = self.callback.remove_quota
        self.guard.answer(remove, lambda: remove(quota_type, entity), None)

    def quota_reset_required(self, quota_type: ClientQuotaType) -> bool:
        is_required = self.callback.quota_reset_required
        return bool(self.guard.answer(is_required, lambda: is_required(quota_type), False))
