"""Which rules of the contract a plugin breaks, told apart from what a busy machine does to a rule that counts
time.
"""

from __future__ import annotations

from collections.abc import Callable

from odradek.testing.contracts import Kind, Outcome, Subject, rules_of, verdicts


def broken_rules(kind: Kind, subject: Callable[[], Subject]) -> list[str]:
    """The rules that are broken whenever they are asked for: twice."""
    once = [found.rule for found in verdicts(rules_of(kind), subject()) if found.outcome is Outcome.FAILED]
    again = verdicts(once, subject())
    return [str(found.rule) for found in again if found.outcome is Outcome.FAILED]
