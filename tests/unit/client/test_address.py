from __future__ import annotations

import pytest

from odradek.client.address import Address, addresses
from odradek.plugin.config import ConfigError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("h1:9092", [Address("h1", 9092)]),
        ("h1:9092,h2:9093", [Address("h1", 9092), Address("h2", 9093)]),
        (" h1:9092 , h2:9093, ", [Address("h1", 9092), Address("h2", 9093)]),
        ("[::1]:9092", [Address("::1", 9092)]),
        ("PLAINTEXT://broker.example:1", [Address("broker.example", 1)]),
        ("127.0.0.1:65535", [Address("127.0.0.1", 65535)]),
    ],
)
def test_a_bootstrap_list_is_read_in_order(text: str, expected: list[Address]) -> None:
    found = addresses(text)

    assert found == expected


@pytest.mark.parametrize(
    "text",
    ["", " , ", "h1", "h1:", ":9092", "h1:x", "h1:0", "h1:65536", "::1:9092", "h1:-1", "h1:9092,h2", "[]:1"],
)
def test_an_invalid_address_is_refused_with_the_option(text: str) -> None:
    with pytest.raises(ConfigError) as refused:
        addresses(text, "--bootstrap-server")

    assert refused.value.path == "--bootstrap-server"
    assert "expected host:port" in refused.value.problem


def test_an_ipv6_address_is_printed_in_brackets() -> None:
    text = str(Address("::1", 9092))

    assert text == "[::1]:9092"
