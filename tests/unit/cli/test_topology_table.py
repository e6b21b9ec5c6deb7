"""The table of ``odradek topology``."""

from __future__ import annotations

from typing import Any

from odradek.cli.topology import table

ROW: dict[str, Any] = {
    "client_id": "billing-writer-with-a-long-name",
    "address": "10.0.0.1",
    "principal": "User:a",
    "library": "librdkafka",
    "library_version": "2.16.0",
    "topic": "orders",
    "direction": "write",
    "first_ms": 1_000,
    "last_ms": 3_600_000,
}


def test_it_fits_eighty_columns_and_tells_ages() -> None:
    lines = list(table([ROW, {**ROW, "direction": "read", "topic": "t" * 200}], 60, 3_720.0))

    assert lines[0].split() == ["TOPIC", "USE", "CLIENT", "ADDRESS", "LIBRARY", "LAST", "SINCE"]
    assert lines[1] == "orders          write billing-writer~ 10.0.0.1    librdkafka 2~ 2m 0s   1h 1m"
    assert lines[2].startswith("t" * 14 + "~ read")
    assert max(map(len, lines)) <= 80
    assert max(map(len, table([ROW], 200, 3_720.0))) > 100
