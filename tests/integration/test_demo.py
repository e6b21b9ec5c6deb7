"""``odradek demo`` as a person runs it, into a pipe."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest


def test_the_demo_shows_a_labeled_producer_and_consumer() -> None:
    pytest.importorskip("confluent_kafka")

    result = subprocess.run(
        [sys.executable, "-m", "odradek", "demo", "--seconds", "6"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert result.returncode == 0, result.stderr
    for kind in ("producer", "consumer"):
        row = re.search(rf"^  {kind} client_id=demo-{kind} (.*)$", result.stdout, re.MULTILINE)
        assert row is not None, result.stdout
        assert re.match(
            r"software=confluent-kafka-python/\S+ instance=\S{22} labeled=yes pushes=[1-9]", row[1]
        )
        assert re.search(r"metrics=[1-9]\d* \| \S", row[1])
    assert re.search(
        r"^[1-9]\d* labeled pushes of 2 client instances; [1-9]\d* data points in",
        result.stdout,
        re.MULTILINE,
    )
