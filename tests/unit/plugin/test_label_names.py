"""Names of labels that do not collide (spec/temporality.md, 3.3)."""

from __future__ import annotations

import pytest

from odradek.plugin import distinct_names, label_name


@pytest.mark.parametrize(
    ("attribute", "name"),
    [
        ("client_id", "client_id"),
        ("node.id", "node_id"),
        ("a..b", "a__b"),
        ("größe", "gr__e"),
        ("1st", "key_1st"),
        ("le", "attribute_le"),
        ("quantile", "attribute_quantile"),
        ("__name__", "attribute___name__"),
        ("", ""),
    ],
)
def test_name_of_a_label(attribute: str, name: str) -> None:
    assert label_name(attribute) == name


@pytest.mark.parametrize(
    ("names", "taken", "expected"),
    [
        # Without a clash, names stay.
        (["client_id", "team"], {"topic"}, ["client_id", "team"]),
        # The data point keeps its own.
        (["client_id", "topic"], {"topic"}, ["client_id", "host_topic"]),
        (["group_id"], {"group_id"}, ["client_group_id"]),
        (["node_id"], {"node_id"}, ["broker_node_id"]),
        # Names that are equal as labels only.
        (["node.id"], {"node_id"}, ["broker_node_id"]),
        (["client.id", "client_id"], set(), ["client_id", "host_client_id"]),
        # A new name is free.
        (["node_id", "broker_node_id"], {"node_id"}, ["host_node_id", "broker_node_id"]),
        (["topic", "host_topic"], {"topic"}, ["host_host_topic", "host_topic"]),
        (["topic"], {"topic", "host_topic"}, ["host_host_topic"]),
        (["node_id", "node.id"], {"node_id"}, ["broker_node_id", "host_node_id"]),
        (["le"], {"attribute_le"}, ["host_attribute_le"]),
    ],
)
def test_the_label_with_less_precedence_is_renamed(
    names: list[str], taken: set[str], expected: list[str]
) -> None:
    assert list(distinct_names(names, taken).values()) == expected
