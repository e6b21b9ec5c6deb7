"""The producers of all partitions of a host together: their number, and how long they are remembered."""

from __future__ import annotations

from dataclasses import dataclass, field

from odradek.settings.kinds import INT, Whole
from odradek.settings.setting import Scope, setting
from odradek.settings.state_limit import StateLimit
from odradek.waiting.clock import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerIdConfig:
    """Settings of idempotent producers (ProducerStateManagerConfig.java)."""

    # fmt: off
    expiration_ms: int = setting(
        "producer.id.expiration.ms", Whole(INT, 1), 86_400_000,
        "A partition forgets an idempotent producer after this time without a batch.", unit="ms",
        scope=Scope.BROKER,
    )
    max_ids: int = setting(
        "producer.ids.max", Whole(INT, 1), 1_000_000,
        "Most idempotent producers of all partitions together, each counted once per partition that it "
        "writes to; each takes 0.5 kB of memory.", unit="producers",
    )
    # fmt: on


@dataclass(slots=True, eq=False)
class ProducerIds:
    """The count of all producers, shared by the partitions, which update it."""

    config: ProducerIdConfig = field(default_factory=ProducerIdConfig)
    clock: Clock | None = None
    known: int = 0
    limit: StateLimit = field(init=False)

    def __post_init__(self) -> None:
        self.limit = StateLimit(
            "producer ids", "producer.ids.max", self.config.max_ids, lambda: self.known, self.clock
        )

    def use_config(self, config: ProducerIdConfig) -> None:
        """Forget producers after another time from now on."""
        self.config = config
