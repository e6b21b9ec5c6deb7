"""Each rule for enrichers is broken by a plugin that breaks no other; a good plugin follows all."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, ClassVar

import pytest

from odradek.plugin import RequestContext
from odradek.testing.contracts import EnricherContract, Kind, Subject, rules_of
from support.contracts import ClosedOnce, broken_rules


class Good:
    """Principal and team of a client."""

    def labels(self, client_instance_id: bytes, context: RequestContext) -> Mapping[str, str]:
        team = (context.client_id or "").partition("-")[0]
        return {"principal": context.connection.principal, "team": team}

    def close(self) -> None:
        return None


class Blocks(Good):
    def labels(self, client_instance_id: bytes, context: RequestContext) -> Mapping[str, str]:
        time.sleep(0.008)
        return super().labels(client_instance_id, context)


class Changes(Good):
    def labels(self, client_instance_id: bytes, context: RequestContext) -> Mapping[str, str]:
        context.connection.principal = context.connection.principal.removeprefix("User:")
        return super().labels(client_instance_id, context)


class Keeps(Good):
    def __init__(self) -> None:
        self.kept: list[RequestContext] = []

    def labels(self, client_instance_id: bytes, context: RequestContext) -> Mapping[str, str]:
        self.kept.append(context)
        return super().labels(client_instance_id, context)


class ClosesOnce(ClosedOnce, Good):
    pass


class Alone(Good):
    closed: ClassVar = False

    def __init__(self) -> None:
        Alone.closed = False

    def labels(self, client_instance_id: bytes, context: RequestContext) -> Mapping[str, str]:
        if Alone.closed:
            raise RuntimeError("closed")
        return super().labels(client_instance_id, context)

    def close(self) -> None:
        Alone.closed = True


class WantsClientId(Good):
    def labels(self, client_instance_id: bytes, context: RequestContext) -> Mapping[str, str]:
        if context.client_id == "":
            raise ValueError("who is it?")
        return super().labels(client_instance_id, context)


class WantsShortClientId(Good):
    def labels(self, client_instance_id: bytes, context: RequestContext) -> Mapping[str, str]:
        if len(context.client_id or "") > 255:
            raise ValueError("too long")
        return super().labels(client_instance_id, context)


class WantsAscii(Good):
    def labels(self, client_instance_id: bytes, context: RequestContext) -> Mapping[str, str]:
        (context.client_id or "").encode("ascii")
        return super().labels(client_instance_id, context)


class BelievesClients(Good):
    def labels(self, client_instance_id: bytes, context: RequestContext) -> Mapping[str, str]:
        labels = dict(super().labels(client_instance_id, context))
        if (context.client_id or "").startswith("User:"):
            labels["principal"] = str(context.client_id)
        return labels


class LetsClientsAddLabels(Good):
    def labels(self, client_instance_id: bytes, context: RequestContext) -> Mapping[str, str]:
        labels = dict(super().labels(client_instance_id, context))
        pairs = (part.partition("=") for part in (context.client_id or "").split(","))
        return {name: value for name, equals, value in pairs if equals} | labels


class SaysNone(Good):
    def labels(self, client_instance_id: bytes, context: RequestContext) -> Any:
        return {**super().labels(client_instance_id, context), "client_id": context.client_id}


BROKEN = {
    Blocks: "R1-returns-in-time",
    Changes: "R2-changes-nothing",
    Keeps: "R3-keeps-nothing",
    ClosesOnce: "R4-closes-unused",
    Alone: "R5-starts-twice",
    WantsClientId: "R6-empty",
    WantsShortClientId: "R8-huge",
    WantsAscii: "R9-undecodable",
    BelievesClients: "R11-spoofed",
    LetsClientsAddLabels: "R11-spoofed",
    SaysNone: "R17-answers-as-agreed",
}


def failures(kind: type[Good]) -> list[str]:
    """The rules that the plugin breaks."""
    return broken_rules(Kind.ENRICHER, lambda: Subject(make=kind))


class TestGoodEnricher(EnricherContract):
    @pytest.fixture
    def subject(self) -> Subject:
        return Subject(make=Good)


@pytest.mark.parametrize("kind", BROKEN, ids=lambda kind: kind.__name__)
def test_a_broken_enricher_breaks_exactly_its_rule(kind: type[Good]) -> None:
    assert failures(kind) == [BROKEN[kind]]


def test_every_rule_has_a_plugin_that_breaks_it() -> None:
    rules = {str(rule) for rule in rules_of(Kind.ENRICHER) if "far-side" not in rule.name}

    assert rules == set(BROKEN.values())
