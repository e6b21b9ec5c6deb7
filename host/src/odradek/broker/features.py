"""Features of the cluster: the supported levels, and the level in force (KIP-584).

After org.apache.kafka.server.common.Feature and QuorumFeatures. Level 0 means off; such a feature is not
listed as finalized.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode

GROUP_VERSION = "group.version"
"""1: the consumer protocol (KIP-848)."""
SHARE_VERSION = "share.version"
"""1: share groups (KIP-932). 2: topics for records that a share group gives up (KIP-1191)."""
STREAMS_VERSION = "streams.version"
"""1: streams groups (KIP-1071)."""
TRANSACTION_VERSION = "transaction.version"
"""2: a batch adds its partition to the transaction, and every end of one bumps the epoch (KIP-890)."""


METADATA_VERSION = "metadata.version"
"""The format of Kafka's metadata log. Clients and tools infer Kafka's release from it: it is always the
newest level here."""


@dataclass(frozen=True, slots=True)
class Feature:
    """One feature of Kafka."""

    name: str
    min_version: int
    max_version: int
    level: int
    """The level in force until an operator sets another one."""


FEATURES = (
    Feature(GROUP_VERSION, 0, 1, 1),
    Feature("kraft.version", 0, 1, 0),
    Feature(METADATA_VERSION, 7, 33, 33),
    Feature(SHARE_VERSION, 0, 2, 2),
    Feature(STREAMS_VERSION, 0, 1, 1),
    Feature(TRANSACTION_VERSION, 0, 2, 2),
    Feature("eligible.leader.replicas.version", 0, 1, 0),
)
"""Ranges and order are those in which Kafka lists its features. The host does not have what those of level 0
turn on: an operator may raise them, and only the level changes.
"""


@dataclass(slots=True)
class Features:
    """The features that this host lists, and their levels."""

    known: tuple[Feature, ...] = FEATURES
    levels: dict[str, int] = field(default_factory=dict)
    """Levels that an operator has set; `level` covers all features."""
    epoch: int = 0
    """Grows with every change. Clients ignore finalized features with a negative epoch."""

    def __iter__(self) -> Iterator[Feature]:
        return iter(self.known)

    def level(self, name: str) -> int:
        """The level in force; 0 for a feature that is off or unknown."""
        for feature in self.known:
            if feature.name == name:
                return self.levels.get(name, feature.level)
        return 0

    def require(self, name: str) -> None:
        """Check that a feature is on.

        Raises:
            ApiError: UNSUPPORTED_VERSION.
        """
        if self.level(name) < 1:
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION)

    def finalized(self) -> dict[str, int]:
        """The levels of all features that are on."""
        levels = {feature.name: self.level(feature.name) for feature in self.known}
        return {name: level for name, level in levels.items() if level > 0}

    def finalize(self, name: str, level: int) -> None:
        """Set a level. One that is in force already is not remembered.

        Raises:
            ValueError: The feature or the level is unknown.
        """
        feature = next((feature for feature in self.known if feature.name == name), None)
        if feature is None or not feature.min_version <= level <= feature.max_version:
            raise ValueError(f"{name} has no level {level}")
        if level != self.level(name):
            self.levels[name] = level
            self.epoch += 1
