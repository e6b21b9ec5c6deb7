"""Pushes that are accepted although they are lost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import pytest

from odradek.gateway.dropping_sink import DroppingSink
from odradek.telemetry.accepted_push import AcceptedPush
from odradek.waiting.deferred import Deferred

PUSH = cast(AcceptedPush, object())


@dataclass
class Spool:
    """Says this of each push."""

    kept: Any

    def take(self, push: AcceptedPush) -> bool | Deferred[bool]:
        return cast("bool | Deferred[bool]", self.kept)


@pytest.mark.parametrize(("kept", "dropped"), [(True, 0), (False, 1)])
def test_every_push_is_accepted_and_lost_ones_are_counted(kept: bool, dropped: int) -> None:
    sink = DroppingSink(Spool(kept))

    accepted = sink.take(PUSH)

    assert accepted is True
    assert [row.value for row in sink.metric_rows()] == [dropped]


@pytest.mark.parametrize(("kept", "dropped"), [(True, 0), (False, 1)])
def test_the_same_if_the_spool_answers_later(kept: bool, dropped: int) -> None:
    later = Deferred[bool]()
    sink = DroppingSink(Spool(later))

    accepted = cast("Deferred[bool]", sink.take(PUSH))
    later.complete(kept)

    assert accepted.result() is True
    assert sink.dropped == dropped
