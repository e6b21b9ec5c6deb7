"""``odradek cardinality estimate``: the budgets that it compares with, and the end of its reading."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import SimpleNamespace

import pytest

from odradek.cli.cardinality_estimate import Pushed, budgets_of
from odradek.client.errors import ClientError, RequestFailed
from odradek.client.leaders import Partition
from odradek.client.resources import ConfigResource
from odradek.client.retries import Retries
from odradek.estimate.budgets import CLIENT_KEY, SubscriptionBudgets
from odradek.wire.error_code import ErrorCode
from odradek.wire.record import Record


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


class Throttled:
    """A reader of one record whose first answers are empty, as those to a client over its quota."""

    refusal = None

    def __init__(self, empty: int) -> None:
        self.empty = empty
        self.positions: dict[Partition, int] = {("pushes", 0): 0}

    def poll(self) -> Iterator[SimpleNamespace]:
        if not self.empty:
            self.positions["pushes", 0] = 1
            yield SimpleNamespace(record=Record(None, b""))
        self.empty -= 1


def pushed() -> Pushed:
    """A reading whose retries take two seconds of its own clock."""
    slept_s: list[float] = []
    retries = Retries(timeout_s=2, now_s=lambda: sum(slept_s), sleep=slept_s.append)
    return Pushed(SimpleNamespace(retries=retries), "pushes", 10)  # type: ignore[arg-type]


def test_empty_answers_to_a_throttled_client_do_not_end_the_reading() -> None:
    found = pushed()

    found.follow(Throttled(empty=3), {("pushes", 0): 1})  # type: ignore[arg-type]

    assert found.count == 1


def test_a_topic_that_cannot_be_read_to_its_end_is_an_error() -> None:
    with pytest.raises(ClientError, match="pushes cannot be read to its end"):
        pushed().follow(Throttled(empty=100), {("pushes", 0): 1})  # type: ignore[arg-type]
