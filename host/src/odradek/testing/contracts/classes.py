"""The rules as test classes: one test for each rule, one fixture to override."""

from __future__ import annotations

import pytest

from odradek.testing.contracts.kinds import rules_of
from odradek.testing.contracts.rule import Outcome, Rule, verdict
from odradek.testing.contracts.subject import Kind, Subject


class Contract:
    """What all of them share. Override `subject`."""

    @pytest.fixture
    def subject(self) -> Subject:
        """What is tested: ``return Subject(make=MyReceiver)``."""
        raise NotImplementedError(f"{type(self).__name__} has to override the fixture subject")


def check(rule: Rule, subject: Subject) -> None:
    """Fail or skip the test with what there is to say."""
    __tracebackhide__ = True
    found = verdict(rule, subject)
    if found.outcome is Outcome.SKIPPED:
        pytest.skip(f"{rule}: {found.why}")
    if found.outcome is Outcome.FAILED:
        raise AssertionError(f"{rule}: {found.why}\nsee {rule.reference}") from found.error


class ReceiverContract(Contract):
    """For what the hook ``odradek_client_telemetry`` returns with a receiver (KIP-714)."""

    @pytest.mark.parametrize("rule", rules_of(Kind.RECEIVER), ids=str)
    def test_rule(self, rule: Rule, subject: Subject) -> None:
        check(rule, subject)


class ExporterContract(Contract):
    """For what the hook ``odradek_client_telemetry`` returns with an exporter (KIP-1217)."""

    @pytest.mark.parametrize("rule", rules_of(Kind.EXPORTER), ids=str)
    def test_rule(self, rule: Rule, subject: Subject) -> None:
        check(rule, subject)


class ForwarderContract(Contract):
    """For what the hook ``odradek_forwarder`` returns."""

    @pytest.mark.parametrize("rule", rules_of(Kind.FORWARDER), ids=str)
    def test_rule(self, rule: Rule, subject: Subject) -> None:
        check(rule, subject)


class EnricherContract(Contract):
    """For what the hook ``odradek_enricher`` returns."""

    @pytest.mark.parametrize("rule", rules_of(Kind.ENRICHER), ids=str)
    def test_rule(self, rule: Rule, subject: Subject) -> None:
        check(rule, subject)


class QuotaCallbackContract(Contract):
    """For what the hook ``odradek_quota_callback`` returns."""

    @pytest.mark.parametrize("rule", rules_of(Kind.QUOTA_CALLBACK), ids=str)
    def test_rule(self, rule: Rule, subject: Subject) -> None:
        check(rule, subject)
