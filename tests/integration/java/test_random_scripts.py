"""The same random script of requests to a host and to Apache Kafka: the answers are compared step by step."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import pytest
from contrib.capture.kafka_node import kafka_node

from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.find_coordinator import FindCoordinatorRequest
from support.hosts import running_host
from support.random_script import Memory, Script, in_common
from support.waiting import wait_until
from support.wire_client import WireClient

pytestmark = [pytest.mark.java, pytest.mark.timeout(300)]

GROUP, TRANSACTION = 0, 1
STEPS = 80
PATIENCE_S = 3.0
AGAIN_S = 0.05
NOT_YET = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
}
"""A broker that has just begun, or still works on the request before."""
SLOW_STEPS = ("create topic", "create partitions", "delete topic", "alter configs", "end transaction")
"""Kafka answers before every part of it knows."""
SETTLE_S = 0.3
SETTLED_WITHIN_S = 10.0


class Side:
    """One of the two brokers."""

    def __init__(self, client: WireClient) -> None:
        self.client = client
        self.memory = Memory()
        for key_type in (GROUP, TRANSACTION):  # Kafka creates its internal topics with the first question
            wait_until(partial(self.has_coordinator, key_type), "a coordinator")

    def has_coordinator(self, key_type: int) -> bool:
        return not self.client.send(FindCoordinatorRequest(key="any", key_type=key_type), 3).error_code

    def answer(self, step: Any) -> Any:
        """The answer to a step, without what only this broker says."""
        name, version, request, remember = step
        deadline_s = time.monotonic() + PATIENCE_S
        while True:
            answer = self.client.send(request(self.memory), version)
            if not error_codes(answer) & NOT_YET or time.monotonic() > deadline_s:
                break
            time.sleep(AGAIN_S)
        remember(self.memory, answer)
        return name, in_common(answer)


def connected(port: int) -> WireClient:
    return WireClient(("127.0.0.1", port), "script", timeout_s=30)


def error_codes(answer: Any) -> set[int]:
    if isinstance(answer, list):
        return {code for each in answer for code in error_codes(each)}
    names = getattr(type(answer), "__slots__", ())
    here = {int(getattr(answer, name)) for name in names if name.endswith("error_code")}
    nested = (getattr(answer, name) for name in names)
    return here | {code for each in nested if isinstance(each, list) for code in error_codes(each)}


def settle(script: Script, sides: Sequence[Side]) -> None:
    """Wait until both sides know the same topics, and a little for what Kafka does after that."""
    metadata = script.metadata()
    with contextlib.suppress(AssertionError):  # the next steps tell the difference
        wait_until(
            lambda: sides[0].answer(metadata) == sides[1].answer(metadata),
            "the same topics",
            SETTLED_WITHIN_S,
        )
    time.sleep(SETTLE_S)


@pytest.fixture(scope="module")
def kafka() -> Iterator[int]:
    """The port of a node."""
    with kafka_node() as node:
        yield node.port


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a host."""
    with running_host(tmp_path_factory.mktemp("host"), "group.initial.rebalance.delay.ms=0") as host:
        yield host.address[1]


@pytest.mark.parametrize(
    "seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(3, 12))]
)
def test_a_host_answers_a_random_script_like_kafka(seed: int, host: int, kafka: int) -> None:
    script, differences = Script(seed, int(time.time() * 1000)), []

    with connected(host) as ours, connected(kafka) as theirs:
        sides = Side(ours), Side(theirs)
        for number in range(STEPS):
            step = script.step()
            answers = [side.answer(step) for side in sides]
            if step[0] in SLOW_STEPS:
                settle(script, sides)
            if answers[0] != answers[1]:
                differences.append((number, step[1], step[2](sides[0].memory), *answers))

    assert differences == []
