"""What a life has promised: everything that was acknowledged, and what arrived."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

Place = tuple[str, int, int]
"""Topic, partition, offset; of share groups the group instead of the topic."""


@dataclass(slots=True)
class Truth:
    """The promises to the clients of one life, and what came of them."""

    pushed: dict[int, str] = field(default_factory=dict)
    """Number of each acknowledged push, with the site that took it."""
    sent: Counter[int] = field(default_factory=Counter)
    """How often each push was sent."""
    delivered: Counter[int] = field(default_factory=Counter)
    """How often the far side has said yes to each push."""
    rejected: set[int] = field(default_factory=set)
    """Pushes that the far side has refused for good."""
    records: dict[Place, bytes] = field(default_factory=dict)
    """Every acknowledged record."""
    open_records: dict[Place, bytes] = field(default_factory=dict)
    """Records of transactions that were aborted, or whose end was never acknowledged."""
    aborted: dict[Place, bytes] = field(default_factory=dict)
    """Records of transactions whose abort was acknowledged."""
    committed: dict[tuple[str, str, int], tuple[int, int]] = field(default_factory=dict)
    """By group, topic and partition: the offsets that were acknowledged last and sent last."""
    shared: dict[Place, int] = field(default_factory=dict)
    """By share group, partition and offset: what a member said last about a record, if it was taken; not that
    it released it."""
    deaths: int = 0
    """How often a host or gateway died without a word."""
    acts: Counter[str] = field(default_factory=Counter)
    """What happened, by kind."""
    troubles: list[str] = field(default_factory=list)
    """What an actor has found wrong."""
