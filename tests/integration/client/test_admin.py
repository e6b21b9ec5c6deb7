from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from odradek.client.address import Address
from odradek.client.admin import AdminClient
from odradek.client.errors import ConnectFailed, RequestFailed, UnsupportedVersion
from odradek.client.resources import (
    EARLIEST,
    LATEST,
    MAX_TIMESTAMP,
    ConfigChange,
    ConfigResource,
    NewTopic,
    Offset,
)
from odradek.client.retries import Retries
from odradek.plugin.config import ConfigError
from odradek.wire.config_resource import ConfigOperation, ConfigSource, ConfigType, ResourceType
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.create_topics import (
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from odradek.wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from odradek.wire.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from odradek.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from odradek.wire.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from odradek.wire.messages.list_config_resources import (
    ConfigResource as ListedResource,
)
from odradek.wire.messages.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from odradek.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from odradek.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from odradek.wire.types import between, only
from support.scripted_broker import ScriptedBroker

SUB_1 = ConfigResource(ResourceType.CLIENT_METRICS, "sub-1")


def metadata_of(
    *brokers: ScriptedBroker, controller: int = 1, leader: int = 1
) -> Callable[[Any], MetadataResponse]:
    """Brokers 1, 2, ... and a topic ``t`` with two partitions, led by ``leader``."""

    def answer(request: MetadataRequest) -> MetadataResponse:
        topics = request.topics or []
        return MetadataResponse(
            cluster_id="prague",
            controller_id=controller,
            brokers=[
                MetadataResponseBroker(node_id=number, host="127.0.0.1", port=broker.port)
                for number, broker in enumerate(brokers, 1)
            ],
            topics=[topic(row.name, leader) for row in topics],
        )

    return answer


def topic(name: str | None, leader: int) -> MetadataResponseTopic:
    if name != "t":
        return MetadataResponseTopic(name=name, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return MetadataResponseTopic(
        name=name,
        partitions=[MetadataResponsePartition(partition_index=index, leader_id=leader) for index in (0, 1)],
    )


def altered(request: IncrementalAlterConfigsRequest) -> IncrementalAlterConfigsResponse:
    return IncrementalAlterConfigsResponse(
        responses=[
            AlterConfigsResourceResponse(resource_type=row.resource_type, resource_name=row.resource_name)
            for row in request.resources
        ]
    )


def cluster_of_two(
    first: ScriptedBroker,
    second: ScriptedBroker,
    answers: dict[type[Any], Callable[[Any], Any]],
    **place: int,
) -> None:
    """Two brokers with the same answers; broker 1 is the one to bootstrap from."""
    metadata = metadata_of(first, second, **place)
    first.answers = second.answers = {MetadataRequest: metadata, **answers}


def test_the_bootstrap_list_is_tried_in_order() -> None:
    with ScriptedBroker() as gone:
        dead = gone.address
    with (
        ScriptedBroker({MetadataRequest: lambda request: MetadataResponse(cluster_id="prague")}) as alive,
        AdminClient(f"{dead},{alive.address}", timeout_s=5) as admin,
    ):
        metadata = admin.metadata()

    assert metadata.cluster_id == "prague"


def test_an_unreachable_cluster_is_reported_with_every_broker() -> None:
    with ScriptedBroker() as one, ScriptedBroker() as two:
        dead = [one.address, two.address]

    with pytest.raises(ConnectFailed) as failure, AdminClient(",".join(dead), timeout_s=5) as admin:
        admin.metadata()

    assert all(address in str(failure.value) for address in dead)
    assert "\n" not in str(failure.value)


def test_an_invalid_bootstrap_list_is_refused_before_connecting() -> None:
    with pytest.raises(ConfigError):
        AdminClient("nonsense")


def test_changes_go_to_the_controller() -> None:
    with ScriptedBroker() as first, ScriptedBroker() as second:
        cluster_of_two(first, second, {IncrementalAlterConfigsRequest: altered}, controller=2)
        changes = [ConfigChange("metrics", "*"), ConfigChange("match", None, ConfigOperation.DELETE)]

        with AdminClient(first.address, timeout_s=5) as admin:
            admin.incremental_alter_configs({SUB_1: changes}, validate_only=True)

        assert first.of(IncrementalAlterConfigsRequest) == []
        (request,) = second.of(IncrementalAlterConfigsRequest)
        (resource,) = request.resources
        assert request.validate_only
        assert (resource.resource_type, resource.resource_name) == (16, "sub-1")
        assert [(key.name, key.config_operation, key.value) for key in resource.configs] == [
            ("metrics", 0, "*"),
            ("match", 1, None),
        ]


def test_without_a_known_controller_changes_go_to_any_broker() -> None:
    with ScriptedBroker() as broker:
        broker.answers = {
            MetadataRequest: metadata_of(broker, controller=-1),
            IncrementalAlterConfigsRequest: altered,
        }

        with AdminClient(broker.address, timeout_s=5) as admin:
            admin.incremental_alter_configs({SUB_1: [ConfigChange("metrics", "*")]})

        assert len(broker.of(IncrementalAlterConfigsRequest)) == 1


def test_a_controller_that_moved_is_looked_up_again() -> None:
    codes = [ErrorCode.NOT_CONTROLLER, ErrorCode.NONE]

    def moved(request: DeleteTopicsRequest) -> DeleteTopicsResponse:
        return DeleteTopicsResponse(responses=[DeletableTopicResult(name="t", error_code=codes.pop(0))])

    with ScriptedBroker() as broker:
        broker.answers = {MetadataRequest: metadata_of(broker), DeleteTopicsRequest: moved}

        with AdminClient(broker.address, timeout_s=5) as admin:
            admin.delete_topics(["t"])

        assert len(broker.of(MetadataRequest)) == 2
        assert codes == []


def test_a_refused_change_has_the_brokers_message() -> None:
    def refused(request: IncrementalAlterConfigsRequest) -> IncrementalAlterConfigsResponse:
        row = AlterConfigsResourceResponse(
            error_code=ErrorCode.INVALID_CONFIG,
            error_message="Illegal client matching pattern: 10",
            resource_type=16,
            resource_name="sub-1",
        )
        return IncrementalAlterConfigsResponse(responses=[row])

    with ScriptedBroker() as broker:
        broker.answers = {MetadataRequest: metadata_of(broker), IncrementalAlterConfigsRequest: refused}

        with pytest.raises(RequestFailed) as failure, AdminClient(broker.address, timeout_s=5) as admin:
            admin.incremental_alter_configs({SUB_1: [ConfigChange("match", "10")]})

    assert failure.value.code is ErrorCode.INVALID_CONFIG
    assert str(failure.value) == "sub-1: INVALID_CONFIG: Illegal client matching pattern: 10"


def test_an_unknown_error_code_is_reported_by_number() -> None:
    def refused(request: ListConfigResourcesRequest) -> ListConfigResourcesResponse:
        return ListConfigResourcesResponse(error_code=999)

    with (
        ScriptedBroker({ListConfigResourcesRequest: refused}) as broker,
        pytest.raises(RequestFailed) as failure,
        AdminClient(broker.address, timeout_s=5) as admin,
    ):
        admin.list_client_metrics()

    assert failure.value.code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert "error code 999" in str(failure.value)


def test_a_description_has_every_attribute_of_a_key() -> None:
    def described(request: DescribeConfigsRequest) -> DescribeConfigsResponse:
        row = DescribeConfigsResourceResult(
            name="interval.ms",
            value="1000",
            config_source=7,
            synonyms=[DescribeConfigsSynonym(name="interval.ms", value="1000", source=7)],
            config_type=3,
            documentation="milliseconds",
        )
        result = DescribeConfigsResult(resource_type=16, resource_name="sub-1", configs=[row])
        return DescribeConfigsResponse(results=[result])

    with ScriptedBroker({DescribeConfigsRequest: described}) as broker, AdminClient(broker.address) as admin:
        found = admin.describe_configs([SUB_1], keys=["interval.ms"], synonyms=True, documentation=True)

        (entry,) = found[SUB_1]
        (request,) = broker.of(DescribeConfigsRequest)
    assert (entry.name, entry.value, entry.documentation) == ("interval.ms", "1000", "milliseconds")
    assert (entry.source, entry.type) == (ConfigSource.CLIENT_METRICS, ConfigType.INT)
    assert [(row.name, row.value, row.source) for row in entry.synonyms] == [("interval.ms", "1000", 7)]
    assert request.resources[0].configuration_keys == ["interval.ms"]
    assert request.include_synonyms
    assert request.include_documentation


def test_a_broker_describes_itself() -> None:
    def described(request: DescribeConfigsRequest) -> DescribeConfigsResponse:
        return DescribeConfigsResponse(
            results=[
                DescribeConfigsResult(resource_type=row.resource_type, resource_name=row.resource_name)
                for row in request.resources
            ]
        )

    node, default = ConfigResource(ResourceType.BROKER, "2"), ConfigResource(ResourceType.BROKER, "")
    with ScriptedBroker() as first, ScriptedBroker() as second:
        cluster_of_two(first, second, {DescribeConfigsRequest: described})

        with AdminClient(first.address, timeout_s=5) as admin:
            found = admin.describe_configs([node, SUB_1, default])

        assert set(found) == {node, SUB_1, default}
        assert [row.resource_name for row in second.of(DescribeConfigsRequest)[0].resources] == ["2"]
        assert [row.resource_name for row in first.of(DescribeConfigsRequest)[0].resources] == ["sub-1", ""]


def test_an_unknown_broker_is_reported() -> None:
    with ScriptedBroker() as broker:
        broker.answers = {MetadataRequest: metadata_of(broker)}

        with (
            pytest.raises(ConnectFailed, match="no broker 7"),
            AdminClient(broker.address, timeout_s=5) as admin,
        ):
            admin.describe_configs([ConfigResource(ResourceType.BROKER, "7")])


@pytest.mark.parametrize("versions", [only(0), between(0, 1)])
def test_client_metrics_are_listed_by_old_and_new_brokers(versions: Any) -> None:
    def listed(request: ListConfigResourcesRequest) -> ListConfigResourcesResponse:
        return ListConfigResourcesResponse(config_resources=[ListedResource(resource_name="sub-1")])

    with ScriptedBroker({ListConfigResourcesRequest: listed}, {74: versions}) as broker:
        with AdminClient(broker.address, timeout_s=5) as admin:
            names = admin.list_client_metrics()

        assert names == ["sub-1"]
        assert broker.versions_of(ListConfigResourcesRequest) == [versions.last]


@pytest.mark.parametrize(
    "types", [(), (ResourceType.TOPIC,), (ResourceType.TOPIC, ResourceType.CLIENT_METRICS)]
)
def test_other_types_need_a_newer_broker(types: tuple[ResourceType, ...]) -> None:
    with ScriptedBroker({}, {74: only(0)}) as broker:
        with pytest.raises(UnsupportedVersion), AdminClient(broker.address, timeout_s=5) as admin:
            admin.list_config_resources(types)

        assert broker.of(ListConfigResourcesRequest) == []


def test_a_missing_api_is_reported() -> None:
    with (
        ScriptedBroker({}, {3: between(0, 12)}) as broker,
        pytest.raises(UnsupportedVersion, match="does not support ListConfigResources"),
        AdminClient(broker.address, timeout_s=5) as admin,
    ):
        admin.list_client_metrics()


def test_a_cluster_describes_itself() -> None:
    def described(request: DescribeClusterRequest) -> DescribeClusterResponse:
        broker = DescribeClusterBroker(broker_id=4, host="h", port=1, rack="r")
        return DescribeClusterResponse(cluster_id="prague", controller_id=4, brokers=[broker])

    with ScriptedBroker({DescribeClusterRequest: described}) as broker, AdminClient(broker.address) as admin:
        cluster = admin.describe_cluster()

    assert (cluster.cluster_id, cluster.controller_id) == ("prague", 4)
    assert [(node.id, node.address, node.rack) for node in cluster.nodes] == [(4, Address("h", 1), "r")]


def test_a_broker_before_describe_cluster_is_asked_for_metadata() -> None:
    with ScriptedBroker() as broker:
        broker.answers = {MetadataRequest: metadata_of(broker)}

        with AdminClient(broker.address, timeout_s=5) as admin:
            cluster = admin.describe_cluster()

        assert (cluster.cluster_id, cluster.controller_id) == ("prague", 1)
        assert [node.address.port for node in cluster.nodes] == [broker.port]


def test_metadata_never_creates_a_topic() -> None:
    with ScriptedBroker() as broker:
        broker.answers = {MetadataRequest: metadata_of(broker)}

        with AdminClient(broker.address, timeout_s=5) as admin:
            admin.metadata(["new"])
            admin.metadata()

        named, everything = broker.of(MetadataRequest)
        assert not named.allow_auto_topic_creation
        assert [row.name for row in named.topics] == ["new"]
        assert everything.topics is None


def test_topics_are_created_by_the_controller() -> None:
    def created(request: CreateTopicsRequest) -> CreateTopicsResponse:
        rows = [CreatableTopicResult(name=row.name, error_message=None) for row in request.topics]
        return CreateTopicsResponse(topics=rows)

    with ScriptedBroker() as first, ScriptedBroker() as second:
        cluster_of_two(first, second, {CreateTopicsRequest: created}, controller=2)

        with AdminClient(first.address, timeout_s=5) as admin:
            admin.create_topics([NewTopic(name="t", partitions=3, configs={"cleanup.policy": "compact"})])

        (request,) = second.of(CreateTopicsRequest)
        (wanted,) = request.topics
        assert (wanted.name, wanted.num_partitions, wanted.replication_factor) == ("t", 3, -1)
        assert [(row.name, row.value) for row in wanted.configs] == [("cleanup.policy", "compact")]


def test_an_existing_topic_is_reported() -> None:
    def refused(request: CreateTopicsRequest) -> CreateTopicsResponse:
        row = CreatableTopicResult(name="t", error_code=ErrorCode.TOPIC_ALREADY_EXISTS, error_message="there")
        return CreateTopicsResponse(topics=[row])

    with ScriptedBroker() as broker:
        broker.answers = {MetadataRequest: metadata_of(broker), CreateTopicsRequest: refused}

        with (
            pytest.raises(RequestFailed, match="t: TOPIC_ALREADY_EXISTS: there"),
            AdminClient(broker.address, timeout_s=5) as admin,
        ):
            admin.create_topics([NewTopic(name="t")])


@pytest.mark.parametrize("versions", [between(1, 5), between(1, 6)])
def test_topics_are_deleted_by_name_in_every_version(versions: Any) -> None:
    def deleted(request: DeleteTopicsRequest) -> DeleteTopicsResponse:
        return DeleteTopicsResponse(responses=[DeletableTopicResult(name="t")])

    with ScriptedBroker() as broker:
        broker.answers = {MetadataRequest: metadata_of(broker), DeleteTopicsRequest: deleted}
        broker.offered = {3: between(0, 12), 20: versions}

        with AdminClient(broker.address, timeout_s=5) as admin:
            admin.delete_topics(["t"])

        (request,) = broker.of(DeleteTopicsRequest)
        assert request.topic_names + [row.name for row in request.topics] == ["t"]


def offsets(request: ListOffsetsRequest) -> ListOffsetsResponse:
    """Partition ``n`` ends at ``100 + n``."""
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=row.name,
                partitions=[
                    ListOffsetsPartitionResponse(
                        partition_index=partition.partition_index, offset=100 + partition.partition_index
                    )
                    for partition in row.partitions
                ],
            )
            for row in request.topics
        ]
    )


def test_offsets_are_requested_from_the_leader() -> None:
    with ScriptedBroker() as first, ScriptedBroker() as second:
        cluster_of_two(first, second, {ListOffsetsRequest: offsets}, leader=2)

        with AdminClient(first.address, timeout_s=5) as admin:
            found = admin.list_offsets({("t", 0): LATEST, ("t", 1): EARLIEST})

        assert found == {("t", 0): Offset(100, -1), ("t", 1): Offset(101, -1)}
        (request,) = second.of(ListOffsetsRequest)
        assert first.of(ListOffsetsRequest) == []
        assert request.replica_id == -1
        assert [row.timestamp for row in request.topics[0].partitions] == [-1, -2]


@pytest.mark.parametrize(
    ("partition", "leader", "code"),
    [
        (("t", 2), 1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (("nowhere", 0), 1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (("t", 0), -1, ErrorCode.LEADER_NOT_AVAILABLE),
    ],
)
def test_offsets_of_an_unknown_partition_are_refused(
    partition: tuple[str, int], leader: int, code: ErrorCode
) -> None:
    with ScriptedBroker() as broker:
        broker.answers = {MetadataRequest: metadata_of(broker, leader=leader), ListOffsetsRequest: offsets}

        with AdminClient(broker.address, timeout_s=5) as admin:
            admin.retries = Retries(timeout_s=0)
            with pytest.raises(RequestFailed) as failure:
                admin.list_offsets({partition: LATEST})

    assert failure.value.code is code


def test_the_largest_timestamp_needs_a_broker_that_supports_it() -> None:
    with ScriptedBroker() as broker:
        broker.answers = {MetadataRequest: metadata_of(broker)}
        broker.offered = {3: between(0, 12), 2: between(1, 6)}

        with (
            pytest.raises(UnsupportedVersion, match="ListOffsets needs a version from 7"),
            AdminClient(broker.address, timeout_s=5) as admin,
        ):
            admin.list_offsets({("t", 0): MAX_TIMESTAMP})


def test_a_broken_connection_is_opened_again() -> None:
    def listed(request: ListConfigResourcesRequest) -> ListConfigResourcesResponse:
        return ListConfigResourcesResponse()

    with ScriptedBroker({ListConfigResourcesRequest: listed}) as broker, AdminClient(broker.address) as admin:
        admin.list_client_metrics()
        admin.cluster.any().close()

        admin.list_client_metrics()

        assert len(broker.connections) == 2
