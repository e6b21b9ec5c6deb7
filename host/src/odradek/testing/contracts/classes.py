"""The rules as test classes, with one test per rule and one fixture to override."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import ClassVar

import pytest

from odradek.testing.contracts.kinds import rules_of
from odradek.testing.contracts.rule import Outcome, Rule, RuleBroken, verdict
from odradek.testing.contracts.subject import Kind, Subject

KIT = Path(__file__).parents[1]


class Contract:
    """The base of all test classes, with a test for each rule. Override the fixture `subject`."""

    kind: ClassVar[Kind]

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Called by pytest for each test of the class."""
        if "rule" in metafunc.fixturenames:
            metafunc.parametrize("rule", rules_of(self.kind), ids=str)

    @pytest.fixture
    def subject(self) -> Subject:
        """The plugin under test: ``return Subject(make=MyReceiver)``."""
        raise NotImplementedError(f"{type(self).__name__} must override the fixture subject")

    def test_rule(self, rule: Rule, subject: Subject) -> None:
        check(rule, subject)


def check(rule: Rule, subject: Subject) -> None:
    """Check a rule and fail or skip the test with the reason, and the frames of the plugin alone."""
    found = verdict(rule, subject)
    if found.outcome is Outcome.SKIPPED:
        pytest.skip(f"{rule}: {found.why}")
    if found.outcome is Outcome.FAILED:
        text = "\n".join([f"{rule}: {found.why}", found.explanation[1], *frames_of(found.error)])
        pytest.fail(text, pytrace=False)


def frames_of(error: BaseException | None) -> list[str]:
    """The lines of a traceback below those of the kit; none if the plugin raised nothing."""
    raised = error.__cause__ if isinstance(error, RuleBroken) else error
    frames = [] if raised is None else traceback.extract_tb(raised.__traceback__)
    below = [at for at, frame in enumerate(frames, 1) if Path(frame.filename).is_relative_to(KIT)]
    return ["".join(traceback.format_list(frames[below[-1] if below else 0 :]))] if frames else []


class ReceiverContract(Contract):
    """Tests a receiver (KIP-714) that the hook ``odradek_client_telemetry`` returns."""

    kind = Kind.RECEIVER


class ExporterContract(Contract):
    """Tests an exporter (KIP-1217) that the hook ``odradek_client_telemetry`` returns."""

    kind = Kind.EXPORTER


class ForwarderContract(Contract):
    """Tests a forwarder that the hook ``odradek_forwarder`` returns."""

    kind = Kind.FORWARDER


class EnricherContract(Contract):
    """Tests an enricher that the hook ``odradek_enricher`` returns."""

    kind = Kind.ENRICHER


class QuotaCallbackContract(Contract):
    """Tests a quota callback that the hook ``odradek_quota_callback`` returns."""

    kind = Kind.QUOTA_CALLBACK


class SourceContract(Contract):
    """Tests a source that the hook ``odradek_source`` returns."""

    kind = Kind.SOURCE
