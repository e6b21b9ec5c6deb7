"""Patterns of host names with a node id."""

from __future__ import annotations

import pytest

from odradek.gateway.node_names import NodeNames


@pytest.mark.parametrize("node_id", [0, 1, 103, 2**31 - 1])
def test_a_name_leads_back_to_its_node(node_id: int) -> None:
    names = NodeNames.of("b$(nodeId).kafka.example.com")

    assert names.name(node_id) == f"b{node_id}.kafka.example.com"
    assert names.node_id(names.name(node_id)) == node_id


@pytest.mark.parametrize("name", ["B7.Kafka.example.COM", "b7.kafka.example.com."])
def test_case_and_a_final_dot_do_not_count(name: str) -> None:
    assert NodeNames.of("B$(nodeId).kafka.Example.com.").node_id(name) == 7


@pytest.mark.parametrize(
    "name",
    [
        "",
        "b",
        "b.kafka.example.com",
        "b-1.kafka.example.com",
        "b+1.kafka.example.com",
        "b01.kafka.example.com",
        "b1x.kafka.example.com",
        "b1.b2.kafka.example.com",
        "b٣.kafka.example.com",
        "b2147483648.kafka.example.com",
        "b99999999999.kafka.example.com",
        "b1.kafka.example.org",
        "c1.kafka.example.com",
        "bootstrap.kafka.example.com",
        "xb1.kafka.example.com",
    ],
)
def test_another_name_has_no_node(name: str) -> None:
    assert NodeNames.of("b$(nodeId).kafka.example.com").node_id(name) is None


def test_parts_of_a_pattern_may_not_overlap_in_a_name() -> None:
    assert NodeNames.of("b$(nodeId)b.x").node_id("b.x") is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("kafka.example.com", "has"),
        ("b$(nodeId).$(nodeId).example.com", "has"),
        ("b$(nodeid).example.com", "has"),
        ("b$(nodeId).exa mple.com", "host names"),
        ("b_$(nodeId).example.com", "host names"),
        ("-$(nodeId).example.com", "host names"),
        ("b$(nodeId)..example.com", "host names"),
        ("b$(nodeId).example.com:9093", "host names"),
        ("127.0.0.$(nodeId)", "host names"),
        ("b" * 54 + "$(nodeId).example.com", "host names"),
        ("b$(nodeId)." + "x." * 130 + "com", "host names"),
    ],
)
def test_a_text_that_is_no_pattern_is_refused(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        NodeNames.of(text)
