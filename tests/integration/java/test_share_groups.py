"""Kafka's own share consumer: everything is received, and nothing is lost by a kill of members or host."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from contrib.capture.ports import free_port

from integration.java.console_tools import ConsoleTools
from integration.java.host_process import host_process
from integration.java.jvm import Jvm
from odradek.wire.config_resource import ResourceType
from support.share_members import (
    PATIENCE_S,
    ShareMember,
    configure,
    configure_group,
    drain_until,
    produce_values,
    share_member,
)
from support.waiting import wait_until

pytestmark = [pytest.mark.java, pytest.mark.timeout(240)]
BATCH = 100
LETTERS = "errors.deadletterqueue"
QUICK = ("group.share.min.heartbeat.interval.ms=100", "group.share.heartbeat.interval.ms=100")
"""A member gets its partitions with its second heartbeat."""


@pytest.fixture(scope="module")
def tools(jvm: Jvm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleTools]:
    """The console tools on a host for all tests of this file."""
    settings = (*QUICK, f"{LETTERS}.auto.create.topics.enable=true")
    with host_process(tmp_path_factory.mktemp("share-host"), *settings) as host:
        yield ConsoleTools(jvm, host.bootstrap)


@contextmanager
def member(jvm: Jvm, bootstrap: str, group_id: str, topic: str, *settings: str) -> Iterator[ShareMember]:
    command = jvm.command("odradek.ShareMember", bootstrap, group_id, topic, *settings)
    with share_member(command) as started:
        yield started


def prepared(tools: ConsoleTools, topic: str, partitions: int = 1, **settings: str) -> None:
    """A topic that the group of the same name reads from the beginning."""
    tools.create_topic(topic, partitions)
    configure_group(
        tools.bootstrap, topic, auto_offset_reset="earliest", assignment_interval_ms="0", **settings
    )


def produced(bootstrap: str, topic: str, batches: int, partitions: int = 1, first: int = 0) -> list[str]:
    """Values from ``first`` on in batches, over all partitions."""
    values = [f"{number:05}" for number in range(first, first + batches * BATCH)]
    for batch in range(batches):
        produce_values(bootstrap, topic, values[batch * BATCH : (batch + 1) * BATCH], batch % partitions)
    return values


def first_reader(members: Sequence[ShareMember]) -> ShareMember:
    """The first of some members that gets something."""

    def found() -> ShareMember | None:
        return next((each for each in members if each.read()), None)

    reader = wait_until(found, "no member gets anything", PATIENCE_S)
    assert reader is not None
    return reader


def test_two_members_receive_everything_once(tools: ConsoleTools, newest_jvm: Jvm) -> None:
    prepared(tools, "share-all", partitions=3)
    values = produced(tools.bootstrap, "share-all", 30, partitions=3)

    with (
        member(newest_jvm, tools.bootstrap, "share-all", "share-all") as one,
        member(newest_jvm, tools.bootstrap, "share-all", "share-all") as two,
    ):
        for each in (one, two):
            each.drain()
        drain_until([one, two], values)

    assert sorted(one.taken + two.taken) == values
    assert len(one.got + two.got) == len(values)


def test_released_records_come_again_and_rejected_ones_do_not(tools: ConsoleTools, newest_jvm: Jvm) -> None:
    prepared(tools, "share-words")
    values = produced(tools.bootstrap, "share-words", 1)

    with member(newest_jvm, tools.bootstrap, "share-words", "share-words") as one:
        first = one.poll()
        one.say("accept", first[:50])
        one.say("release", first[50:60])
        one.say("reject", first[60:])
        assert one.commit() == ""
        second = one.poll()
        one.say("accept", second)
        assert one.commit() == ""
        third = one.poll(wait_ms=2_000)

    assert [value for *_, value in first] == values
    assert second == [(0, offset, 2, values[offset]) for offset in range(50, 60)]
    assert third == []


def test_rejected_records_are_in_the_dead_letter_topic(tools: ConsoleTools, newest_jvm: Jvm) -> None:
    group, letters = "share-letters", "dlq.share-letters"
    prepared(tools, group)
    wanted = {f"{LETTERS}.topic.name": letters, f"{LETTERS}.copy.record.enable": "true"}
    configure(tools.bootstrap, ResourceType.GROUP, group, wanted)
    values = produced(tools.bootstrap, group, 1)

    with member(newest_jvm, tools.bootstrap, group, group) as one:
        first = one.poll()
        one.say("accept", first[:50])
        one.say("reject", first[50:])
        assert one.commit() == ""
    configure_group(tools.bootstrap, "readers", auto_offset_reset="earliest", assignment_interval_ms="0")
    with member(newest_jvm, tools.bootstrap, "readers", letters) as reader:
        found = reader.poll()

    assert [value for *_, value in found] == values[50:]


def test_records_of_a_killed_member_go_to_another_at_once(tools: ConsoleTools, newest_jvm: Jvm) -> None:
    prepared(tools, "share-killed")
    values = produced(tools.bootstrap, "share-killed", 1)

    with (
        member(newest_jvm, tools.bootstrap, "share-killed", "share-killed") as one,
        member(newest_jvm, tools.bootstrap, "share-killed", "share-killed") as two,
    ):
        held = one.poll()
        one.kill()
        got = two.poll()

    assert [record[:3] for record in held] == [(0, offset, 1) for offset in range(BATCH)]
    assert got == [(0, offset, 2, values[offset]) for offset in range(BATCH)]


def test_records_come_again_when_their_lock_ends(tools: ConsoleTools, newest_jvm: Jvm) -> None:
    prepared(tools, "share-lock", record_lock_duration_ms="30000")  # so that a slow member keeps its own
    produced(tools.bootstrap, "share-lock", 1)

    with (
        member(newest_jvm, tools.bootstrap, "share-lock", "share-lock") as one,
        member(newest_jvm, tools.bootstrap, "share-lock", "share-lock") as two,
    ):
        held = one.poll()
        got = two.poll(wait_ms=90_000)
        one.say("accept", held)
        late = one.commit()

    # a busy machine may let a second lock end before the other member has polled
    again = {offset: deliveries for _, offset, deliveries, _ in got}
    assert [offset for _, offset, deliveries, _ in held if again[offset] > deliveries] == list(range(BATCH))
    assert late == "InvalidRecordStateException"


def test_a_lock_is_renewed(tools: ConsoleTools, newest_jvm: Jvm) -> None:
    prepared(tools, "share-renewed")
    produced(tools.bootstrap, "share-renewed", 1)

    with member(newest_jvm, tools.bootstrap, "share-renewed", "share-renewed") as one:
        held = one.poll()
        one.say("renew", held)
        renewed = one.commit()
        again = one.poll()  # the client hands them out once more
        one.say("accept", again)
        accepted = one.commit()

    assert again == held
    assert (renewed, accepted) == ("", "")


def test_nothing_is_lost_by_kills_of_host_and_members(tmp_path: Path, newest_jvm: Jvm, jvm: Jvm) -> None:
    topic, bootstrap = "share-host", f"127.0.0.1:{free_port()}"
    listeners = f"listeners=PLAINTEXT://{bootstrap}"
    with (
        host_process(tmp_path, listeners, *QUICK) as host,
        member(newest_jvm, bootstrap, topic, topic) as one,
        member(newest_jvm, bootstrap, topic, topic) as two,
        member(newest_jvm, bootstrap, topic, topic) as three,
    ):
        prepared(ConsoleTools(jvm, bootstrap), topic, 2)
        values = produced(bootstrap, topic, 40, partitions=2)
        for each in (one, two, three):
            each.drain()
        killed = first_reader((one, two, three))
        killed.kill()
        rest = [each for each in (one, two, three) if each is not killed]
        values += produced(bootstrap, topic, 20, partitions=2, first=len(values))
        first_reader(rest)
        host.process.send_signal(signal.SIGKILL)
        host.process.wait()
        with host_process(tmp_path, listeners, *QUICK):
            drain_until(rest, values, killed)

    assert set(one.got + two.got + three.got) == set(values)
    taken = one.taken + two.taken + three.taken
    assert len(taken) == len(set(taken))
