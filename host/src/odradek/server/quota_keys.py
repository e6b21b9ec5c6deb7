"""The quotas of a host: the keys of their windows, their making, and forgetting who is idle.

Names and defaults of the keys are those of QuotaConfig.java (Kafka 4.3).
"""

from __future__ import annotations

from collections.abc import Sequence

from odradek.clock import Clock, Timer
from odradek.metrics.registry import SWEEP_MS
from odradek.plugin.config import PluginConfig
from odradek.quota.connection_quotas import ConnectionQuotas
from odradek.quota.guarded_callback import GuardedCallback
from odradek.quota.quota_config import QuotaConfig
from odradek.quota.quota_managers import QuotaConfigs, QuotaManagers
from odradek.server.plugins.active_plugin import ActivePlugin, quota_callback

INT32_MAX = 2**31 - 1
SENSORS_PER_TURN = 500
"""Of each kind: two milliseconds if all of them go."""
BETWEEN_TURNS_MS = 20


def read_quota_configs(top: PluginConfig) -> QuotaConfigs:
    """The windows of each kind of quota."""
    return QuotaConfigs(
        client=windows(top, ""),
        controller=windows(top, "controller."),
        replication=windows(top, "replication."),
        alter_log_dirs=windows(top, "alter.log.dirs.replication."),
    )


def windows(top: PluginConfig, prefix: str) -> QuotaConfig:
    """How many windows are looked at, and how long one is."""
    return QuotaConfig(
        samples=top.integer(f"{prefix}quota.window.num", 11, 1, INT32_MAX),
        window_size_s=top.integer(f"{prefix}quota.window.size.seconds", 1, 1, INT32_MAX),
    )


def make_quotas(
    configs: QuotaConfigs, clock: Clock, timer: Timer, plugins: Sequence[ActivePlugin]
) -> QuotaManagers:
    """The managers, asking a plugin who shares what if there is one that decides it.

    Raises:
        ConfigError: More than one plugin wants to.
    """
    found = quota_callback(plugins)
    callback = None if found is None else GuardedCallback(*found, clock)
    return QuotaManagers(configs, clock, callback, timer)


def forget_idle(
    quotas: QuotaManagers | ConnectionQuotas, clock: Clock, timer: Timer, unseen: int | None = None
) -> None:
    """Forget clients and addresses that did nothing for an hour, now and every 30 s; a few at a time."""
    now_ms = clock.now_ms()
    left = (quotas.sensors if unseen is None else unseen) - SENSORS_PER_TURN
    quotas.expire(now_ms, SENSORS_PER_TURN)
    if left > 0:
        timer.schedule(now_ms + BETWEEN_TURNS_MS, lambda: forget_idle(quotas, clock, timer, left))
    else:
        timer.schedule(now_ms + SWEEP_MS, lambda: forget_idle(quotas, clock, timer))
