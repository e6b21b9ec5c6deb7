"""Shares of users and addresses."""

from __future__ import annotations

import pytest

from odradek.endpoints import Shares, holder_of


def test_a_holder_with_its_share_takes_nothing_from_others() -> None:
    shares = Shares(2)

    taken = [shares.take(holder) for holder in ("a", "a", "a", "b")]

    assert taken == [True, True, False, True]


def test_what_was_given_back_can_be_taken_again_and_holders_of_nothing_are_forgotten() -> None:
    shares = Shares(1)
    shares.take("a")

    shares.give_back("a")

    assert shares.held == {}
    assert shares.take("a")


@pytest.mark.parametrize(
    ("address", "holder"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:0:1:2::3", "2001:db8:0:1::/64"),
        ("2001:db8:0:1::", "2001:db8:0:1::/64"),
        ("", ""),
        ("a path", "a path"),
    ],
)
def test_an_address_of_version_4_holds_for_itself_and_one_of_version_6_for_its_network(
    address: str, holder: str
) -> None:
    assert holder_of(address) == holder
