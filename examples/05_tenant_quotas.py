"""A plugin that gives each tenant one quota: all users whose names start with ``acme-`` share acme's quota.

Run it: ``python examples/05_tenant_quotas.py`` (needs ``odradek[demo]``). Takes a second.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping

from confluent_kafka import Producer, ThrottleEvent

from odradek import testing
from odradek.plugin import ClientQuotaEntity, ClientQuotaType, PluginConfig, hookimpl


class TenantQuotas:
    """One quota per tenant for bytes in, and one for bytes out. A quota set for a user is the tenant's."""

    KINDS = (ClientQuotaType.PRODUCE, ClientQuotaType.FETCH)

    @hookimpl
    def odradek_quota_callback(self, config: PluginConfig) -> TenantQuotas:
        rates = config.table("bytes_per_s")
        self.limits = {(kind, tenant): float(rates[tenant]) for kind in self.KINDS for tenant in rates}
        self.default = config.integer("default", 2_000_000)
        return self

    def quota_metric_tags(self, quota_type: ClientQuotaType, user: str, client_id: str) -> Mapping[str, str]:
        return {"tenant": user.partition("-")[0]}

    def quota_limit(self, quota_type: ClientQuotaType, metric_tags: Mapping[str, str]) -> float | None:
        rate = self.limits.get((quota_type, metric_tags["tenant"]), self.default)
        return rate if quota_type in self.KINDS else None

    def update_quota(self, quota_type: ClientQuotaType, entity: ClientQuotaEntity, value: float) -> None:
        if isinstance(entity.user, str):
            self.limits[quota_type, entity.user.partition("-")[0]] = value

    def remove_quota(self, quota_type: ClientQuotaType, entity: ClientQuotaEntity) -> None:
        if isinstance(entity.user, str):
            self.limits.pop((quota_type, entity.user.partition("-")[0]), None)

    def quota_reset_required(self, quota_type: ClientQuotaType) -> bool:
        return False  # they change only by the two calls above, after which the host looks them up anyway


def must_wait(host: testing.RunningHost, user: str, size: int) -> bool:
    """Whether the host throttles a user who writes so many bytes."""
    events: list[ThrottleEvent] = []
    producer = Producer(host.client(user) | {"throttle_cb": events.append})
    producer.produce("events", bytes(size))
    return producer.flush(5) == 0 and any(event.throttle_time for event in events)


if __name__ == "__main__":
    users = {name: secrets.token_urlsafe() for name in ("acme-batch", "acme-web", "zen-app")}
    with testing.host(plugins={TenantQuotas: {"bytes_per_s": {"acme": "50000"}}}, users=users) as host:
        for user, size in zip(users, (900_000, 1, 900_000), strict=True):
            print(f"{user} writes {size} bytes and must wait: {must_wait(host, user, size)}")
