"""The budgets that ``odradek cardinality estimate`` compares with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace

import pytest

from odradek.cli.cardinality_estimate import budgets_of
from odradek.client.errors import RequestFailed
from odradek.client.resources import ConfigResource
from odradek.telemetry.estimate.budgets import CLIENT_KEY, SubscriptionBudgets
from odradek.wire.error_code import ErrorCode


class Admin:
    """An admin client of one broker, which has a budget or hides its configuration."""

    def __init__(self, budget: str | None) -> None:
        self.budget = budget

    def metadata(self, topics: Sequence[str]) -> SimpleNamespace:
        return SimpleNamespace(brokers=[SimpleNamespace(node_id=1)])

    def describe_configs(
        self, resources: Sequence[ConfigResource], keys: Sequence[str]
    ) -> Mapping[ConfigResource, Sequence[SimpleNamespace]]:
        if self.budget is None:
            raise RequestFailed(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "no right")
        return {each: [SimpleNamespace(name=CLIENT_KEY, value=self.budget)] for each in resources}


@pytest.mark.parametrize(
    ("budget", "found", "notes"),
    [
        ("7", SubscriptionBudgets(client_series=7), ""),
        (
            None,
            SubscriptionBudgets(),
            "note: the budgets are the defaults, the broker does not show its own: ",
        ),
    ],
    ids=["shown", "hidden"],
)
def test_budgets_are_those_of_the_broker_or_a_note_says_so(
    budget: str | None, found: SubscriptionBudgets, notes: str, capsys: pytest.CaptureFixture[str]
) -> None:
    budgets = budgets_of(Admin(budget))  # type: ignore[arg-type]

    assert budgets == found
    said = capsys.readouterr().err
    assert said.startswith(notes)
    assert bool(said) is bool(notes)
