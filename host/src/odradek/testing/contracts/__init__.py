"""The contract of a plugin: named rules, as test classes for pytest and as functions.

A plugin's author only writes ``class TestMine(ReceiverContract)`` with the fixture ``subject``.
`Rule.explanation` says what a rule demands. Only minor releases add rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.bounds.first_use import on_first_use

if TYPE_CHECKING:
    from odradek.testing.contracts.classes import (
        EnricherContract,
        ExporterContract,
        ForwarderContract,
        QuotaCallbackContract,
        ReceiverContract,
        SourceContract,
    )
    from odradek.testing.contracts.kinds import rules_of
    from odradek.testing.contracts.rule import Outcome, Rule, RuleBroken, Verdict, verdict, verdicts
    from odradek.testing.contracts.samples import Samples
    from odradek.testing.contracts.subject import (
        Accounts,
        Capability,
        FarSide,
        FarSideState,
        Kind,
        Subject,
        Supply,
    )

__all__ = [
    "Accounts",
    "Capability",
    "EnricherContract",
    "ExporterContract",
    "FarSide",
    "FarSideState",
    "ForwarderContract",
    "Kind",
    "Outcome",
    "QuotaCallbackContract",
    "ReceiverContract",
    "Rule",
    "RuleBroken",
    "Samples",
    "SourceContract",
    "Subject",
    "Supply",
    "Verdict",
    "rules_of",
    "verdict",
    "verdicts",
]

# The names by module. They are imported lazily because the classes need pytest, which a host lacks.
__getattr__ = on_first_use(
    __name__,
    classes="EnricherContract ExporterContract ForwarderContract QuotaCallbackContract ReceiverContract "
    "SourceContract",
    kinds="rules_of",
    rule="Outcome Rule RuleBroken Verdict verdict verdicts",
    samples="Samples",
    subject="Accounts Capability FarSide FarSideState Kind Subject Supply",
)
