"""Addresses of listeners of plugins."""

from __future__ import annotations

import pytest

from odradek.endpoints import Address, parsed_address


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("[::]:9464", ["::", "0.0.0.0"]),
        ("[::1]:9464", ["::1"]),
        ("0.0.0.0:9464", ["0.0.0.0"]),
        ("localhost:9464", ["localhost"]),
    ],
)
def test_all_addresses_of_ipv6_include_those_of_ipv4(text: str, hosts: list[str]) -> None:
    address = parsed_address(text)

    assert address is not None
    assert address.hosts == hosts
    assert str(address) == text


@pytest.mark.parametrize("text", ["local host:1", ":1", "localhost", "localhost:65536", "::1:80"])
def test_what_is_no_address(text: str) -> None:
    assert parsed_address(text) is None


def test_the_port_may_be_any_free_one() -> None:
    assert parsed_address("localhost:0") == Address("localhost", 0)
