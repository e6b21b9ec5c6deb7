"""Administrative requests while nothing can be written: refused with Kafka's code, without a traceback."""

from __future__ import annotations

import dataclasses
import resource
from collections.abc import Iterator
from typing import Any

import pytest

from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    OpData,
    RequestEntryData,
)
from odradek.wire.messages.alter_configs import AlterableConfig as ReplacingConfig
from odradek.wire.messages.alter_configs import AlterConfigsRequest
from odradek.wire.messages.alter_configs import AlterConfigsResource as ReplacedResource
from odradek.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from odradek.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from odradek.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from odradek.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from odradek.wire.messages.init_producer_id import InitProducerIdRequest
from odradek.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from odradek.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from support.hosts import ServeProcess, serving
from support.wire_client import WireClient, with_client

TOPIC, BROKER, CLIENT_METRICS, GROUP = 2, 4, 16, 32


def configs(resource_type: int, name: str, key: str, value: str) -> IncrementalAlterConfigsRequest:
    change = AlterableConfig(name=key, value=value)
    return IncrementalAlterConfigsRequest(
        resources=[AlterConfigsResource(resource_type=resource_type, resource_name=name, configs=[change])]
    )


def new_topics(*names: str) -> CreateTopicsRequest:
    return CreateTopicsRequest(
        topics=[CreatableTopic(name=name, num_partitions=2, replication_factor=1) for name in names]
    )


REQUESTS: dict[str, Any] = {
    "create topics": new_topics("new", "newer"),
    "create a topic by asking for it": MetadataRequest(
        topics=[MetadataRequestTopic(name="asked")], allow_auto_topic_creation=True
    ),
    "add partitions": CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name="t", count=4, assignments=None)], timeout_ms=1_000
    ),
    "configure a topic": configs(TOPIC, "t", "retention.ms", "5"),
    "configure all brokers": configs(BROKER, "", "log.retention.ms", "5000"),
    "configure a subscription": configs(CLIENT_METRICS, "s", "metrics", "*"),
    "configure a group": configs(GROUP, "g", "consumer.session.timeout.ms", "50000"),
    "replace the configuration of a topic": AlterConfigsRequest(
        resources=[
            ReplacedResource(
                resource_type=TOPIC,
                resource_name="t",
                configs=[ReplacingConfig(name="retention.ms", value="6")],
            )
        ]
    ),
    "set a quota": AlterClientQuotasRequest(
        entries=[
            RequestEntryData(
                entity=[EntityData(entity_type="user", entity_name="u")],
                ops=[OpData(key="producer_byte_rate", value=1000.0)],
            )
        ]
    ),
    "add a user": AlterUserScramCredentialsRequest(
        upsertions=[
            ScramCredentialUpsertion(
                name="u", mechanism=1, iterations=4096, salt=b"s" * 16, salted_password=b"p" * 32
            )
        ]
    ),
    "change a feature": UpdateFeaturesRequest(
        feature_updates=[FeatureUpdateKey(feature="transaction.version", max_version_level=1, upgrade_type=2)]
    ),
    "get a producer id": InitProducerIdRequest(transactional_id=None),
    "delete a topic": DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=1_000),
}


def codes(message: Any) -> Iterator[ErrorCode]:
    """All error codes in a response."""
    for field in dataclasses.fields(message):
        value = getattr(message, field.name)
        if field.name == "error_code":
            yield ErrorCode(value)
        elif isinstance(value, list):
            for each in value:
                if dataclasses.is_dataclass(each):
                    yield from codes(each)


def limit_files(serve: ServeProcess, size_bytes: int) -> None:
    """Let every write beyond this size fail, as on a full disk."""
    _, hard = resource.prlimit(serve.process.pid, resource.RLIMIT_FSIZE)
    wanted = hard if size_bytes < 0 else size_bytes
    resource.prlimit(serve.process.pid, resource.RLIMIT_FSIZE, (wanted, hard))


@pytest.fixture(scope="module")
def serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServeProcess]:
    with serving(tmp_path_factory.mktemp("data"), "--set", "auto.create.topics.enable=true") as started:
        ask(started, new_topics("t"))
        yield started


def ask(serve: ServeProcess, request: Any) -> Any:
    host, _, port = serve.bootstrap.partition(":")

    version = 5 if isinstance(request, InitProducerIdRequest) else None  # 6 is not served

    def send(client: WireClient) -> Any:
        return client.send(request, version)

    return with_client((host, int(port)), send)


@pytest.mark.parametrize("wanted", REQUESTS)
@pytest.mark.ci
def test_an_administrative_request_is_refused_and_then_accepted(serve: ServeProcess, wanted: str) -> None:
    request = REQUESTS[wanted]
    limit_files(serve, 1)
    try:
        refused = ask(serve, request)
    finally:
        limit_files(serve, -1)

    accepted = ask(serve, request)
    if set(codes(accepted)) == {ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}:
        accepted = ask(serve, request)  # a topic that has just been created is known to the next request

    assert {code for code in codes(refused) if code is not ErrorCode.NONE} == {ErrorCode.KAFKA_STORAGE_ERROR}
    assert set(codes(accepted)) == {ErrorCode.NONE}
    assert "Traceback" not in "\n".join(serve.errors)
