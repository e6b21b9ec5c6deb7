"""Node ids and the addresses that are advertised for them."""

from __future__ import annotations

import pytest

from odradek.gateway.addresses import NamePerNode, NodeRanges, NodeTable, PortPerNode, UnmappedNodes
from odradek.gateway.node_names import NodeNames


def addresses() -> PortPerNode:
    nodes = NodeRanges.of([(101, 103), (0, 2)])
    return PortPerNode(nodes, NodeTable(), UnmappedNodes(), "kafka.example.com", range(9193, 9199))


@pytest.mark.parametrize(
    ("node_id", "port"), [(0, 9193), (1, 9194), (2, 9195), (101, 9196), (102, 9197), (103, 9198)]
)
def test_a_port_is_a_function_of_the_node_id(node_id: int, port: int) -> None:
    assert addresses().advertised(node_id) == ("kafka.example.com", port)


@pytest.mark.parametrize("node_id", [-1, 3, 100, 104, 2**31 - 1])
def test_a_node_outside_every_range_has_no_address_and_is_counted(node_id: int) -> None:
    unmapped = addresses()
    first: list[int] = []
    unmapped.unmapped.on_first = first.append

    assert unmapped.advertised(node_id) is None
    assert unmapped.advertised(node_id) is None

    assert unmapped.unmapped.seen == {node_id: 2}
    assert int(unmapped.unmapped) == 2
    assert first == [node_id]


def test_the_table_knows_the_last_address_of_a_node() -> None:
    known = addresses()
    news: list[int] = []
    known.table.listeners.append(news.append)

    known.learned(1, "broker-1", 9092)
    known.learned(1, "broker-1", 9092)
    known.learned(1, "broker-1b", 9092)
    known.learned(7, "broker-7", 9092)
    known.learned(2, "", -1)

    assert known.table.addresses == {1: ("broker-1b", 9092)}
    assert news == [1, 1]


def test_a_name_is_a_function_of_the_node_id() -> None:
    nodes = NodeRanges.of([(0, 2**31 - 1)])
    names = NodeNames.of("b$(nodeId).kafka.example.com")
    named = NamePerNode(nodes, NodeTable(), UnmappedNodes(), names, 9443)

    assert named.advertised(0) == ("b0.kafka.example.com", 9443)
    assert named.advertised(2**31 - 1) == ("b2147483647.kafka.example.com", 9443)
    assert named.advertised(-1) is None


def test_the_table_is_bounded() -> None:
    table = NodeTable(limit=2)

    for node_id in range(3):
        table.learned(node_id, "broker", 9092)
    table.learned(1, "moved", 9092)

    assert table.addresses == {0: ("broker", 9092), 1: ("moved", 9092)}


@pytest.mark.parametrize("ranges", [[(2, 1)], [(-1, 3)], [(0, 5), (5, 6)], [(0, 9), (3, 4)]])
def test_ranges_that_make_no_sense_are_refused(ranges: list[tuple[int, int]]) -> None:
    with pytest.raises(ValueError, match="node id"):
        NodeRanges.of(ranges)


def test_ranges_are_counted_and_listed_in_order() -> None:
    nodes = NodeRanges.of([(101, 103), (0, 2)])

    assert len(nodes) == 6
    assert list(nodes) == [0, 1, 2, 101, 102, 103]


def test_a_node_outside_every_range_may_be_dialed_directly() -> None:
    direct = addresses()
    direct.unmapped.bypass = True

    direct.learned(7, "broker-7", 9092)

    assert direct.advertised(7) == ("broker-7", 9092)
    assert direct.advertised(8) is None
    assert direct.unmapped.seen == {7: 1}


def test_the_nodes_that_are_dialed_directly_are_bounded() -> None:
    direct = addresses()
    direct.unmapped.bypass, direct.unmapped.limit = True, 10

    for node_id in range(1000, 1100):
        direct.learned(node_id, "broker", 9092)

    assert len(direct.table.addresses) == 10


def test_a_host_name_that_is_too_long_takes_no_memory() -> None:
    found = addresses()

    found.learned(1, "h" * 256, 9092)

    assert found.table.addresses == {}
