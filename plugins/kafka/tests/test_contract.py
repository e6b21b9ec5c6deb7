"""The contract kit of the host, with a cluster that can be stopped."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import pytest

from odradek.testing.contracts import FarSideState, ForwarderContract, Subject
from odradek_kafka.kafka_forwarder import KafkaForwarder
from odradek_kafka.kafka_settings import Encoding, KafkaSettings
from odradek_kafka.producer_session import ProducerSession

Kit = Any
"""From conftest."""
ERRORS = {FarSideState.DOWN: "_MSG_TIMED_OUT", FarSideState.REFUSING: "MSG_SIZE_TOO_LARGE"}


class ClusterSide:
    """The cluster that the producers of all sessions use."""

    def __init__(self, kit: Kit) -> None:
        self.kit = kit
        self.state = FarSideState.UP
        self.taken: list[bytes] = []

    def turn(self, state: FarSideState) -> None:
        self.state = state

    def received(self) -> Iterable[bytes]:
        return list(self.taken)

    def judge(self, sent: Any, together: Any) -> Any:
        if self.state is FarSideState.SLOW:
            return self.kit.hang
        if self.state in ERRORS:
            return self.kit.error(ERRORS[self.state])
        self.taken.append(bytes(bytearray(sent.value)))
        return None

    def producer(self, options: dict[str, str], **callbacks: Any) -> Any:
        producer = self.kit.producer(self.judge)(options, **callbacks)
        producer.sent = Forgetful()
        return producer


class Forgetful(list[Any]):
    """The fake's own memory would count as the forwarder's."""

    def append(self, item: Any) -> None:
        return None


def subject_of(kit: Kit, encoding: Encoding) -> Subject:
    side = ClusterSide(kit)
    settings = KafkaSettings(options={}, topic_create=False, deliver_timeout_ms=1_500, encoding=encoding)
    session = partial(ProducerSession, make=side.producer)
    return Subject(make=lambda: KafkaForwarder(settings, session), far_side=side)


class TestWithProto(ForwarderContract):
    @pytest.fixture
    def subject(self, kit: Kit) -> Subject:
        return subject_of(kit, Encoding.PROTO)


class TestWithJson(ForwarderContract):
    @pytest.fixture
    def subject(self, kit: Kit) -> Subject:
        return subject_of(kit, Encoding.JSON)
