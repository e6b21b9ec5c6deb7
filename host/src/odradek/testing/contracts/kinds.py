"""The rules for each kind of plugin."""

from __future__ import annotations

from odradek.testing.contracts.enricher_rules import ENRICHER_RULES
from odradek.testing.contracts.forwarder_rules import FORWARDER_RULES
from odradek.testing.contracts.quota_rules import QUOTA_RULES
from odradek.testing.contracts.receiver_rules import EXPORTER_RULES, RECEIVER_RULES
from odradek.testing.contracts.rule import Rule
from odradek.testing.contracts.source_rules import SOURCE_RULES
from odradek.testing.contracts.subject import Kind

RULES = {
    Kind.RECEIVER: RECEIVER_RULES,
    Kind.EXPORTER: EXPORTER_RULES,
    Kind.FORWARDER: FORWARDER_RULES,
    Kind.ENRICHER: ENRICHER_RULES,
    Kind.QUOTA_CALLBACK: QUOTA_RULES,
    Kind.SOURCE: SOURCE_RULES,
}


def rules_of(kind: Kind) -> tuple[Rule, ...]:
    """The rules for a kind of plugin, in the order of their numbers."""
    return RULES[kind]
