from __future__ import annotations

import pytest

from odradek.net.host_lookup import look_up


def test_before_there_is_a_loop_a_host_is_looked_up_at_once() -> None:
    found: list[object] = []

    look_up("localhost", found.extend)

    assert "127.0.0.1" in found


@pytest.mark.parametrize("host", ["x" * 70, "a..b"])
def test_a_host_without_an_address_is_no_error(host: str) -> None:
    found: list[object] = []

    look_up(host, lambda addresses: found.append(list(addresses)))

    assert found == [[]]
