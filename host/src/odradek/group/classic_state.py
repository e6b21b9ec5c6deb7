"""States of a classic group, and which may follow which."""

from __future__ import annotations

from enum import StrEnum


class ClassicState(StrEnum):
    """After ClassicGroupState.java, with the names that Describe shows."""

    EMPTY = "Empty"
    """No members, perhaps offsets."""
    PREPARING_REBALANCE = "PreparingRebalance"
    """Waiting for all members to join."""
    COMPLETING_REBALANCE = "CompletingRebalance"
    """The generation is made up; waiting for the leader's assignment."""
    STABLE = "Stable"
    DEAD = "Dead"
    """Removed: whoever still asks is told UNKNOWN_MEMBER_ID."""


MAY_FOLLOW: dict[ClassicState, frozenset[ClassicState]] = {
    ClassicState.EMPTY: frozenset({ClassicState.PREPARING_REBALANCE}),
    ClassicState.PREPARING_REBALANCE: frozenset(
        {ClassicState.EMPTY, ClassicState.COMPLETING_REBALANCE, ClassicState.STABLE}
    ),
    ClassicState.COMPLETING_REBALANCE: frozenset({ClassicState.PREPARING_REBALANCE}),
    ClassicState.STABLE: frozenset({ClassicState.COMPLETING_REBALANCE}),
    ClassicState.DEAD: frozenset(ClassicState),
}
"""Each state's possible predecessors."""
