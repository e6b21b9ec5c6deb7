"""The consumer group of a forwarder: its offsets may be moved while the host runs; no consumer may join."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError

from odradek.cli.main import run
from odradek.client.group_offsets import CommittedOffset
from odradek.wire.error_code import ErrorCode
from support.spooling import (
    PATIENCE_S,
    TOPIC,
    FarSide,
    admin_of,
    committed,
    down,
    hosting,
    names,
    push_all,
    settled_stats,
    until,
)


def test_replay_delivers_again_on_a_running_host(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    far = FarSide()

    with hosting(tmp_path, far=far) as host:
        push_all(host, range(10))
        until(host, lambda: len(far.taken) == 10)
        status = run(
            ["replay", "--plugin", "fake.far", "--since", "1h", "--bootstrap-server", host.bootstrap]
        )
        until(host, lambda: len(far.taken) == 20)
        push_all(host, range(10, 12))
        until(host, lambda: len(far.taken) == 22)
        until(host, lambda: committed(host, "odradek.forwarder.fake.far") == 12)

    assert status == 0
    assert "__client_telemetry" in capsys.readouterr().out
    assert far.names == names(range(10)) + names(range(12))


def test_offsets_can_be_moved_forward_too(tmp_path: Path) -> None:
    far = FarSide(behavior=down)

    with hosting(tmp_path, far=far) as host:
        push_all(host, range(3))
        until(host, lambda: far.calls > 0)
        push_all(host, range(3, 10))
        with admin_of(host) as admin:
            admin.offset_commit("odradek.forwarder.fake.far", {(TOPIC, 0): CommittedOffset(9)})
        far.behavior = lambda batch: None
        until(host, lambda: far.names[-1:] == ["push.9"])
        stats = settled_stats(host)

    assert stats.delivered + stats.dropped.get("skipped", 0) == 10


def test_replay_of_an_unknown_forwarder_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with hosting(tmp_path) as host:
        status = run(["replay", "--plugin", "oltp", "--since", "1h", "--bootstrap-server", host.bootstrap])

    assert status == 1
    assert "forwarder oltp not found" in capsys.readouterr().err


def test_no_consumer_can_join_the_group_of_a_forwarder(tmp_path: Path) -> None:
    far = FarSide()
    errors: list[object] = []

    with hosting(tmp_path, far=far) as host:
        consumer = Consumer(
            {
                "bootstrap.servers": host.bootstrap,
                "group.id": "odradek.forwarder.fake.far",
                "enable.metrics.push": False,
                "error_cb": errors.append,
            }
        )
        consumer.subscribe([TOPIC])
        end_s = time.monotonic() + PATIENCE_S
        code = None
        while code is None and time.monotonic() < end_s:
            message = consumer.poll(0.2)
            code = message.error().code() if message is not None and message.error() else None
        consumer.close()
        with admin_of(host) as admin:
            deleted = admin.delete_groups(["odradek.forwarder.fake.far"])

    assert code == KafkaError.GROUP_AUTHORIZATION_FAILED
    failure = deleted["odradek.forwarder.fake.far"]
    assert failure is not None
    assert failure.code is ErrorCode.NON_EMPTY_GROUP
