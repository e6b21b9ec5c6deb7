"""Features of the cluster: what the host could do, and the level that is in force (KIP-584).

After org.apache.kafka.server.common.Feature and QuorumFeatures. A level of 0 is off, and is not listed
among the finalized ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

GROUP_VERSION = "group.version"
"""1: the consumer protocol (KIP-848)."""
TRANSACTION_VERSION = "transaction.version"
"""2: batches join their transaction by themselves, and every end bumps the epoch (KIP-890)."""


@dataclass(frozen=True, slots=True)
class Feature:
    """One feature that the host knows."""

    name: str
    min_version: int
    max_version: int
    level: int
    """In force as long as nobody has set another one."""


FEATURES = (Feature(GROUP_VERSION, 0, 1, 1), Feature(TRANSACTION_VERSION, 0, 2, 2))
"""One row each."""


@dataclass(slots=True)
class Features:
    """The features of one host and their levels."""

    known: tuple[Feature, ...] = FEATURES
    levels: dict[str, int] = field(default_factory=dict)
    """Of those that were set; `level` knows all."""
    epoch: int = 0
    """Grows with every change. Clients ignore finalized features below 0."""

    def __iter__(self) -> Iterator[Feature]:
        return iter(self.known)

    def level(self, name: str) -> int:
        """The level in force; 0 for a feature that is off, or unknown."""
        for feature in self.known:
            if feature.name == name:
                return self.levels.get(name, feature.level)
        return 0

    def finalized(self) -> dict[str, int]:
        """The levels of all features that are on."""
        levels = {feature.name: self.level(feature.name) for feature in self.known}
        return {name: level for name, level in levels.items() if level > 0}

    def finalize(self, name: str, level: int) -> None:
        """Set a level.

        Raises:
            ValueError: There is no such feature, or no such level of it.
        """
        feature = next((feature for feature in self.known if feature.name == name), None)
        if feature is None or not feature.min_version <= level <= feature.max_version:
            raise ValueError(f"{name} has no level {level}")
        self.levels[name] = level
        self.epoch += 1
