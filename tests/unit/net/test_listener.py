from __future__ import annotations

import pytest

from odradek.net.listener import ListenerAddress
from odradek.wire.host_address import java_host_address


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("::1", "0:0:0:0:0:0:0:1"),
        ("2001:db8::ff00:42:8329", "2001:db8:0:0:0:ff00:42:8329"),
        ("fe80::1%eth0", "fe80:0:0:0:0:0:0:1%eth0"),
        ("::ffff:10.1.2.3", "10.1.2.3"),
    ],
)
def test_addresses_are_printed_as_in_java(address: str, expected: str) -> None:
    assert java_host_address(address) == expected


def test_an_ipv6_listener_is_printed_in_brackets() -> None:
    assert str(ListenerAddress("PLAINTEXT", "::1", 9092)) == "PLAINTEXT://[::1]:9092"
