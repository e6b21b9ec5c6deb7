"""The contract rules that a plugin breaks, not counting timing rules that fail on a busy machine."""

from __future__ import annotations

from collections.abc import Callable

from odradek.testing.contracts import Kind, Outcome, Subject, rules_of, verdicts


def broken_rules(kind: Kind, subject: Callable[[], Subject]) -> list[str]:
    """The rules that are broken in both of two runs."""
    once = [found.rule for found in verdicts(rules_of(kind), subject()) if found.outcome is Outcome.FAILED]
    again = verdicts(once, subject())
    return [str(found.rule) for found in again if found.outcome is Outcome.FAILED]
