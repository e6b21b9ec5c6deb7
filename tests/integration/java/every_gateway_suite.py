"""All suites of clients that need only an address, through two gateways in front of three Kafka nodes.

Run by name, because they take two minutes: `pytest -m java tests/integration/java/every_gateway_suite.py`.
With ``ODRADEK_TEST_WITHOUT_GATEWAY=1`` the clients connect to the nodes: what passes there has to pass
through gateways.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from integration.java.balanced_gateways import BalancedGateways
from integration.java.kafka_cluster import KafkaCluster
from integration.test_client_matrix import (  # noqa: F401  pytest finds what is imported
    test_aiokafka_compresses_and_joins_a_group,
    test_franz_go_produces_reads_with_a_group_and_pushes,
    test_kafka_python_compresses_and_joins_a_group,
    test_kcat_finds_an_offset_by_timestamp,
    test_kcat_lists_produces_and_consumes,
    test_librdkafka_2_5_3_compresses_joins_groups_and_pushes,
    test_librdkafka_compresses_joins_groups_and_pushes,
)
from integration.test_consumer_groups import (  # noqa: F401
    make,
    test_a_cooperative_rebalance_revokes_only_partitions_that_move,
    test_groups_are_listed_described_and_deleted_by_an_admin_client,
    test_two_members_share_the_partitions_and_one_takes_over_from_the_other,
)
from integration.test_consumer_protocol import (  # noqa: F401
    test_a_group_is_converted_to_the_consumer_protocol_and_back,
    test_a_later_member_resumes_at_the_committed_offsets,
    test_a_regular_expression_finds_topics_created_later,
    test_a_static_member_that_restarts_gets_its_partitions_back,
    test_an_admin_client_sees_the_group,
    test_every_record_is_read_once_by_members_that_commit_over_a_rebalance,
    test_the_range_assignor_is_used_on_request,
    test_two_members_share_the_partitions_and_one_takes_over,
)
from integration.test_real_clients import (  # noqa: F401
    test_aiokafka_creates_produces_and_fetches_back,
    test_confluent_kafka_learns_that_there_is_no_authorizer,
    test_confluent_kafka_produces_idempotently_and_fetches_back,
    test_kafka_python_creates_produces_and_fetches_back,
)
from integration.test_transactions import (  # noqa: F401
    test_aiokafka_commits_and_aborts,
    test_confluent_kafka_commits_and_aborts,
    test_confluent_kafka_does_not_read_open_transactions,
    test_confluent_kafka_sends_offsets_with_its_records,
    test_confluent_kafka_zombie_is_fenced,
    test_kafka_python_commits_and_aborts,
)

pytestmark = [pytest.mark.java, pytest.mark.timeout(150)]
WITHOUT_GATEWAY = "ODRADEK_TEST_WITHOUT_GATEWAY"


@dataclass(frozen=True, slots=True)
class Reached:
    """The address for clients."""

    bootstrap: str


@pytest.fixture(scope="module")
def host(kafka_nodes: KafkaCluster, request: pytest.FixtureRequest) -> Reached:
    if os.environ.get(WITHOUT_GATEWAY):
        return Reached(kafka_nodes.bootstrap)
    gateways: BalancedGateways = request.getfixturevalue("gateways")
    return Reached(gateways.bootstrap)


@pytest.fixture
def serve(gateways: BalancedGateways) -> BalancedGateways:
    """Gateways take the place of the host, which takes pushes too: these tests have no run without them."""
    return gateways


@pytest.fixture
def logs(kafka_nodes: KafkaCluster) -> Path:
    return kafka_nodes.folder
