"""A cluster of one scripted broker, which leads every partition and coordinates every group."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from odradek.client.admin import AdminClient
from odradek.client.retries import Retries
from odradek.wire.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from odradek.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from odradek.wire.types import Versions
from support.scripted_broker import Answer, ScriptedBroker

NODE_ID = 1


class Now:
    """Time for retries: a pause takes no real time and advances the clock a little."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds

    def retries(self, timeout_s: float) -> Retries:
        return Retries(timeout_s, lambda: self.now_s, self.sleep)


@contextmanager
def scripted_cluster(
    answers: Mapping[Any, Answer],
    topics: Mapping[str, int] | None = None,
    **versions: Versions,
) -> Iterator[tuple[ScriptedBroker, AdminClient]]:
    """The broker, and a client whose retries take no time.

    Args:
        answers: Its answers, besides Metadata and FindCoordinator.
        topics: Its topics and their numbers of partitions. versions: By module name of a request: the
            versions it offers, instead of all.
    """
    with ScriptedBroker() as broker:
        broker.answers = {
            MetadataRequest: metadata_of(broker, topics or {}),
            FindCoordinatorRequest: coordinated_by(broker),
            **answers,
        }
        broker.offered = {
            request.API_KEY: versions.get(request.__module__.rpartition(".")[2], request.VERSIONS)
            for request in broker.answers
        }
        with AdminClient(broker.address, timeout_s=5) as admin:
            admin.retries = Now().retries(5)
            yield broker, admin


def metadata_of(
    broker: ScriptedBroker, topics: Mapping[str, int]
) -> Callable[[MetadataRequest], MetadataResponse]:
    """The topics, led by the one broker."""

    def answer(request: MetadataRequest) -> MetadataResponse:
        names = list(topics) if request.topics is None else [row.name for row in request.topics]
        return MetadataResponse(
            controller_id=NODE_ID,
            brokers=[MetadataResponseBroker(node_id=NODE_ID, host="127.0.0.1", port=broker.port)],
            topics=[topic(name, topics.get(name or "")) for name in names],
        )

    return answer


def topic(name: str | None, partitions: int | None) -> MetadataResponseTopic:
    """One topic; None if it does not exist."""
    if partitions is None:
        return MetadataResponseTopic(name=name, error_code=3)
    return MetadataResponseTopic(
        name=name,
        partitions=[
            MetadataResponsePartition(
                partition_index=index, leader_id=NODE_ID, replica_nodes=[NODE_ID], isr_nodes=[NODE_ID]
            )
            for index in reversed(range(partitions))
        ],
    )


def coordinated_by(
    broker: ScriptedBroker,
) -> Callable[[FindCoordinatorRequest], FindCoordinatorResponse]:
    """The one broker, in both formats of the answer."""

    def answer(request: FindCoordinatorRequest) -> FindCoordinatorResponse:
        return FindCoordinatorResponse(
            node_id=NODE_ID,
            host="127.0.0.1",
            port=broker.port,
            coordinators=[
                Coordinator(key=key, node_id=NODE_ID, host="127.0.0.1", port=broker.port)
                for key in request.coordinator_keys
            ],
        )

    return answer
