"""Leases in the names of subscriptions."""

from __future__ import annotations

import pytest

from odradek.client.lease import is_over, lease_end_s, lease_name


def test_a_name_tells_when_its_lease_ends() -> None:
    name = lease_name(1_700_000_000, "a1")

    assert lease_end_s(name) == 1_700_000_000
    assert not is_over(name, 1_699_999_999.9)
    assert is_over(name, 1_700_000_000.0)


@pytest.mark.parametrize(
    "name", ["all", "odradek-watch", "odradek-watch-x-1", "odradek-watch-12", "my-odradek-watch-1-a", ""]
)
def test_other_names_are_no_leases(name: str) -> None:
    assert lease_end_s(name) is None
    assert not is_over(name, 1e18)
