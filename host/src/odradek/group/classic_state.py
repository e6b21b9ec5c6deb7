"""The states of a classic group and the transitions between them."""

from __future__ import annotations

from enum import StrEnum


class ClassicState(StrEnum):
    """The states, with the names that Describe shows; after ClassicGroupState.java."""

    EMPTY = "Empty"
    """There are no members, but there may be offsets."""
    PREPARING_REBALANCE = "PreparingRebalance"
    """The group waits for all members to join."""
    COMPLETING_REBALANCE = "CompletingRebalance"
    """The generation has started and waits for the leader's assignment."""
    STABLE = "Stable"
    DEAD = "Dead"
    """The group was removed. Its former members get UNKNOWN_MEMBER_ID."""


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
