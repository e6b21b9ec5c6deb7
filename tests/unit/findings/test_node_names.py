"""A node has one name, whatever a library calls it."""

from __future__ import annotations

import pytest

from odradek.findings.node_names import node_name


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("node-1", "1"),
        ("node--1", "-1"),
        ("node-2147483646", "coordinator-1"),
        ("node-+1", "coordinator-1"),
        ("node-+0", "coordinator-0"),
        ("2147483646", "coordinator-1"),
        ("coordinator-1", "coordinator-1"),
        ("node-1000000000", "1000000000"),
        ("node-+-1", "-1"),
        ("node-a", "node-a"),
        ("1", "1"),
        ("-1", "-1"),
        ("", ""),
    ],
)
def test_a_node_of_java_is_a_number_as_elsewhere(text: str, expected: str) -> None:
    assert node_name(text) == expected
