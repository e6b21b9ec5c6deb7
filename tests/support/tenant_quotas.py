"""A quota callback with one budget for all users of a tenant; the tenant is the user's prefix."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from odradek.plugin.client_quota import ClientQuotaEntity, ClientQuotaType


@dataclass
class TenantQuotas:
    """Limits by tenant; quotas set by operators are recorded."""

    limits: dict[str, float]
    reset_required: bool = False
    updates: list[tuple[ClientQuotaType, ClientQuotaEntity, float | None]] = field(default_factory=list)
    lookups: list[tuple[ClientQuotaType, str]] = field(default_factory=list)

    def quota_metric_tags(self, quota_type: ClientQuotaType, user: str, client_id: str) -> Mapping[str, str]:
        return {"tenant": user.partition("-")[0]}

    def quota_limit(self, quota_type: ClientQuotaType, metric_tags: Mapping[str, str]) -> float | None:
        self.lookups.append((quota_type, metric_tags["tenant"]))
        return self.limits.get(metric_tags["tenant"])

    def update_quota(self, quota_type: ClientQuotaType, entity: ClientQuotaEntity, value: float) -> None:
        self.updates.append((quota_type, entity, value))

    def remove_quota(self, quota_type: ClientQuotaType, entity: ClientQuotaEntity) -> None:
        self.updates.append((quota_type, entity, None))

    def quota_reset_required(self, quota_type: ClientQuotaType) -> bool:
        required, self.reset_required = self.reset_required, False
        return required
