"""Plugins that break the contract, and the rules they break; a busy machine breaks rules about time, too."""

from __future__ import annotations

from collections.abc import Callable

from odradek.testing.contracts import Kind, Outcome, Subject, rules_of, verdicts


class ClosedOnce:
    """Breaks the rule that an object may be closed twice; to be put before a class that keeps all rules."""

    closed = False

    def close(self) -> None:
        if self.closed:
            raise RuntimeError("closed")
        self.closed = True


def broken_rules(kind: Kind, subject: Callable[[], Subject]) -> list[str]:
    """The rules that are broken in both of two runs."""
    once = [found.rule for found in verdicts(rules_of(kind), subject()) if found.outcome is Outcome.FAILED]
    again = verdicts(once, subject())
    return [str(found.rule) for found in again if found.outcome is Outcome.FAILED]
