"""A plugin that gives each tenant one quota: all users whose names start with ``acme-`` share acme's quota.

Run it: ``python examples/05_tenant_quotas.py`` (needs ``odradek``). Takes a second: the minute in
it passes on a mock clock.

The plugin is the class and the hook below. To install it, put both into a package and name the package in its
pyproject.toml::

    [project.entry-points.odradek]
    tenants = "my_package"

and configure it::

    [plugins.tenants]
    default = 2000000

    [plugins.tenants.bytes_per_s]
    acme = "1000000"
"""

from __future__ import annotations

from collections.abc import Mapping

from odradek.hosting.active_plugin import activate, quota_callback
from odradek.hosting.plugin_manager import load_plugins
from odradek.plugin import ClientQuotaEntity, ClientQuotaType, PluginConfig, hookimpl
from odradek.quota.guarded_callback import GuardedCallback
from odradek.quota.quota_managers import QuotaConfigs, QuotaManagers
from odradek.testing.clock import MockClock

TYPES = (ClientQuotaType.PRODUCE, ClientQuotaType.FETCH)
REQUEST_BYTES = 100_000
SECONDS = 60


class TenantQuotas:
    """One quota per tenant for bytes in and bytes out. A quota set for a user applies to the whole tenant."""

    def __init__(self, bytes_per_s: Mapping[str, float], default: float) -> None:
        self.limits = {(kind, tenant): value for kind in TYPES for tenant, value in bytes_per_s.items()}
        self.default = default

    def quota_metric_tags(self, quota_type: ClientQuotaType, user: str, client_id: str) -> Mapping[str, str]:
        return {"tenant": tenant_of(user)}

    def quota_limit(self, quota_type: ClientQuotaType, metric_tags: Mapping[str, str]) -> float | None:
        if quota_type not in TYPES:
            return None
        return self.limits.get((quota_type, metric_tags["tenant"]), self.default)

    def update_quota(self, quota_type: ClientQuotaType, entity: ClientQuotaEntity, value: float) -> None:
        if isinstance(entity.user, str):
            self.limits[quota_type, tenant_of(entity.user)] = value

    def remove_quota(self, quota_type: ClientQuotaType, entity: ClientQuotaEntity) -> None:
        if isinstance(entity.user, str):
            self.limits.pop((quota_type, tenant_of(entity.user)), None)

    def quota_reset_required(self, quota_type: ClientQuotaType) -> bool:
        """Limits change only by the two calls above, after which the host looks them up anyway."""
        return False


def tenant_of(user: str) -> str:
    """The tenant of a user: ``acme`` for ``acme-web``."""
    return user.partition("-")[0]


class TenantPlugin:
    """The object that the entry point would refer to. A module with this function works as well."""

    @hookimpl
    def odradek_quota_callback(self, config: PluginConfig) -> TenantQuotas:
        """Read ``[plugins.tenants]``. The host does not start if the table has an unread key."""
        limits = {tenant: float(text) for tenant, text in config.table("bytes_per_s").items()}
        return TenantQuotas(limits, config.integer("default", 2_000_000))


class Sender:
    """A client that produces as fast as its quota allows, and waits for each throttle time."""

    def __init__(self, user: str, managers: QuotaManagers, clock: MockClock) -> None:
        self.user = user
        self.produce = managers.produce
        self.clock = clock
        self.sent_bytes = 0

    def send(self) -> None:
        self.sent_bytes += REQUEST_BYTES
        now_ms = self.clock.monotonic_ms()
        wait_ms = self.produce.record_and_throttle_ms(self.user, "app", REQUEST_BYTES, now_ms)
        self.clock.timer.schedule(now_ms + max(wait_ms, 10), self.send)


def main() -> None:
    plugins = load_plugins()
    plugins.add("tenants", TenantPlugin(), distribution="example", version="1.0")
    table = {"default": 2_000_000, "bytes_per_s": {"acme": "1000000"}}
    found = quota_callback(activate(plugins, {"tenants": table}))
    assert found is not None
    clock = MockClock()
    managers = QuotaManagers(QuotaConfigs(), clock, GuardedCallback(*found, clock))

    senders = [Sender(user, managers, clock) for user in ("acme-web", "acme-batch", "zen-app")]
    for sender in senders:
        sender.send()
    clock.advance(10_000)  # skip the first ten seconds' worth, which is allowed at once
    before = [sender.sent_bytes for sender in senders]
    clock.advance(SECONDS * 1000)

    rates = {
        sender.user: (sender.sent_bytes - sent_bytes) / SECONDS / 1e6
        for sender, sent_bytes in zip(senders, before, strict=True)
    }
    for user, rate in rates.items():
        print(f"{user}: {rate:.1f} MB/s")
    print(f"acme together: {rates['acme-web'] + rates['acme-batch']:.1f} MB/s")
    managers.produce.update_quota(ClientQuotaEntity(user="acme-web"), 3_000_000)
    print(f"acme from now on: {managers.produce.limit('acme-batch', 'app') / 1e6:.1f} MB/s")


if __name__ == "__main__":
    main()
