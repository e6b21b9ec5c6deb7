"""Each rule for quota callbacks is broken by a callback that breaks no other; a good callback follows all."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, ClassVar

import pytest

from odradek.plugin import ClientQuotaEntity, ClientQuotaType
from odradek.testing.contracts import Kind, QuotaCallbackContract, Subject, rules_of
from support.contracts import ClosedOnce, broken_rules


class Good:
    """A quota for each client of a user; the operator's quota for a user is the limit of each client."""

    def __init__(self) -> None:
        self.limits: dict[tuple[ClientQuotaType, Any], float] = {}

    def quota_metric_tags(self, quota_type: ClientQuotaType, user: str, client_id: str) -> Mapping[str, str]:
        return {"user": user, "client": client_id}

    def quota_limit(self, quota_type: ClientQuotaType, metric_tags: Mapping[str, str]) -> float | None:
        return self.limits.get((quota_type, metric_tags["user"]))

    def update_quota(self, quota_type: ClientQuotaType, entity: ClientQuotaEntity, value: float) -> None:
        self.limits[quota_type, entity.user] = value

    def remove_quota(self, quota_type: ClientQuotaType, entity: ClientQuotaEntity) -> None:
        self.limits.pop((quota_type, entity.user), None)

    def quota_reset_required(self, quota_type: ClientQuotaType) -> bool:
        return False

    def close(self) -> None:
        return None


class Blocks(Good):
    def quota_limit(self, quota_type: ClientQuotaType, metric_tags: Mapping[str, str]) -> float | None:
        time.sleep(0.008)
        return super().quota_limit(quota_type, metric_tags)


class Changes(Good):
    def quota_limit(self, quota_type: ClientQuotaType, metric_tags: Mapping[str, str]) -> float | None:
        assert isinstance(metric_tags, dict)
        metric_tags["asked"] = "yes"
        return super().quota_limit(quota_type, metric_tags)


class ClosesOnce(ClosedOnce, Good):
    pass


class Alone(Good):
    closed: ClassVar = False

    def __init__(self) -> None:
        super().__init__()
        Alone.closed = False

    def quota_limit(self, quota_type: ClientQuotaType, metric_tags: Mapping[str, str]) -> float | None:
        if Alone.closed:
            raise RuntimeError("closed")
        return super().quota_limit(quota_type, metric_tags)

    def close(self) -> None:
        Alone.closed = True


class WantsUser(Good):
    def quota_metric_tags(self, quota_type: ClientQuotaType, user: str, client_id: str) -> Mapping[str, str]:
        assert user[0]
        return super().quota_metric_tags(quota_type, user, client_id)


class WantsShortNames(Good):
    def quota_metric_tags(self, quota_type: ClientQuotaType, user: str, client_id: str) -> Mapping[str, str]:
        if len(client_id) > 255:
            raise ValueError("too long")
        return super().quota_metric_tags(quota_type, user, client_id)


class WantsAscii(Good):
    def quota_metric_tags(self, quota_type: ClientQuotaType, user: str, client_id: str) -> Mapping[str, str]:
        client_id.encode("ascii")
        return super().quota_metric_tags(quota_type, user, client_id)


class JoinsNames(Good):
    def quota_metric_tags(self, quota_type: ClientQuotaType, user: str, client_id: str) -> Mapping[str, str]:
        return {"client": f"{user}:{client_id}"}

    def quota_limit(self, quota_type: ClientQuotaType, metric_tags: Mapping[str, str]) -> float | None:
        return self.limits.get((quota_type, metric_tags["client"].partition(":")[0]))


class IgnoresOperators(Good):
    def update_quota(self, quota_type: ClientQuotaType, entity: ClientQuotaEntity, value: float) -> None:
        return None


class NeverForgets(Good):
    def remove_quota(self, quota_type: ClientQuotaType, entity: ClientQuotaEntity) -> None:
        return None


class LimitsBelowZero(Good):
    def quota_limit(self, quota_type: ClientQuotaType, metric_tags: Mapping[str, str]) -> float | None:
        return -1.0 if quota_type is ClientQuotaType.REQUEST else super().quota_limit(quota_type, metric_tags)


BROKEN = {
    Blocks: "R1-returns-in-time",
    Changes: "R2-changes-nothing",
    ClosesOnce: "R4-closes-unused",
    Alone: "R5-starts-twice",
    WantsUser: "R6-empty",
    WantsShortNames: "R8-huge",
    WantsAscii: "R9-undecodable",
    JoinsNames: "R11-spoofed",
    IgnoresOperators: "R16-accounts",
    NeverForgets: "R16-accounts",
    LimitsBelowZero: "R17-answers-as-agreed",
}


def subject_of(kind: type[Good]) -> Subject:
    return Subject(make=kind, declares=frozenset({"updates"}))


def failures(kind: type[Good]) -> list[str]:
    """The rules that the callback breaks."""
    return broken_rules(Kind.QUOTA_CALLBACK, lambda: subject_of(kind))


class TestGoodQuotaCallback(QuotaCallbackContract):
    @pytest.fixture
    def subject(self) -> Subject:
        return subject_of(Good)


@pytest.mark.parametrize("kind", BROKEN, ids=lambda kind: kind.__name__)
def test_a_broken_callback_breaks_exactly_its_rule(kind: type[Good]) -> None:
    assert failures(kind) == [BROKEN[kind]]


def test_every_rule_has_a_callback_that_breaks_it() -> None:
    assert {str(rule) for rule in rules_of(Kind.QUOTA_CALLBACK)} == set(BROKEN.values())
