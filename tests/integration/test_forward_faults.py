"""Forwarders beside a topic, when the topic, the group, the cluster or a process fails."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from odradek.client.admin import AdminClient
from odradek.client.group_member import GroupTimes
from odradek.client.group_offsets import CommittedOffset
from odradek.client.resources import NewPartitions
from odradek.client.shared_topic import Membership, OffsetReset
from odradek.plugin import Enricher, PluginConfig, RequestContext, hookimpl
from support.forwarding import (
    FLEET,
    GROUP,
    HELD_S,
    QUICK,
    HeldFarSide,
    ThreadedForward,
    create_topic,
    far_sides,
    fill,
    forwarding,
    metrics,
    until,
)
from support.hosts import ThreadedHost, running_host
from support.kafka_export import record_of
from support.spooling import FarSide, name_of
from support.stop_order import watch_stop
from support.waiting import wait_until

GROUP_ID = f"{GROUP}.fake.all"
SHORT = GroupTimes(session_timeout_ms=1_000, heartbeat_interval_ms=100)
"""For processes that stop answering."""


def cluster_at(data_dir: Path, *overrides: str) -> contextlib.AbstractContextManager[ThreadedHost]:
    quick = ("group.initial.rebalance.delay.ms=0", "group.min.session.timeout.ms=500")
    return running_host(data_dir, *quick, *overrides)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[ThreadedHost]:
    with cluster_at(tmp_path / "cluster") as host:
        create_topic(host.bootstrap)
        create_topic(host.bootstrap, 1, f"{FLEET}_dead_letter")
        yield host


def committed(cluster: ThreadedHost) -> dict[int, int]:
    with AdminClient(cluster.bootstrap) as admin:
        found = admin.offset_fetch(GROUP_ID)
    return {index: each.offset for (topic, index), each in found.items() if topic == FLEET}


def move(cluster: ThreadedHost, offsets: Mapping[int, int]) -> None:
    with AdminClient(cluster.bootstrap) as admin:
        admin.offset_commit(GROUP_ID, {(FLEET, at): CommittedOffset(to) for at, to in offsets.items()})


@pytest.mark.ci  # waits for real seconds
def test_another_process_takes_over_from_one_that_stops_answering(cluster: ThreadedHost) -> None:
    """The stopped one comes back with a batch in flight: its offsets do not count."""
    one, two, awake = HeldFarSide(), FarSide(), threading.Event()
    fill(cluster.bootstrap, range(400))
    with forwarding(cluster.bootstrap, one, times=SHORT) as first:
        assert one.held.wait(HELD_S)
        first.feeds[0].host_loop.call_soon_threadsafe(awake.wait, HELD_S)
        with forwarding(cluster.bootstrap, two) as second:
            until(lambda: set(two.names) == set(metrics(range(400))), second)
            until(lambda: committed(cluster) == dict.fromkeys(range(4), 100), second)
            one.released.set()
            awake.set()
            until(lambda: len(first.owned) == len(second.owned) == 2, first, second)
            fill(cluster.bootstrap, range(400, 600))
            until(lambda: set(one.names + two.names) == set(metrics(range(600))), first, second)

    repeated = {name for name, count in Counter(one.names + two.names).items() if count > 1}
    assert repeated <= set(one.names[:40])


def test_a_topic_that_is_created_again_is_read_from_its_start(cluster: ThreadedHost) -> None:
    far_side = FarSide()
    fill(cluster.bootstrap, range(40))
    with forwarding(cluster.bootstrap, far_side) as process:
        until(lambda: len(far_side.taken) == 40, process)
        with AdminClient(cluster.bootstrap) as admin:
            admin.delete_topics([FLEET])
        until(lambda: process.feeds[0].problem is not None, process)
        create_topic(cluster.bootstrap, 6)
        fill(cluster.bootstrap, range(100, 160), 6)
        until(lambda: len(far_side.taken) >= 100, process)

        assert len(process.owned) == 6
        assert process.stats().queued == 0
    assert Counter(far_side.names) == Counter(metrics(range(40)) + metrics(range(100, 160)))


def test_added_partitions_are_read_from_their_start(cluster: ThreadedHost) -> None:
    one, two = FarSide(), FarSide()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("odradek.client.shared_topic.METADATA_S", 0.2)
        with (
            forwarding(cluster.bootstrap, one, offset_reset=OffsetReset.LATEST) as first,
            forwarding(cluster.bootstrap, two, offset_reset=OffsetReset.LATEST) as second,
        ):
            first.started.result(HELD_S)
            second.started.result(HELD_S)
            with AdminClient(cluster.bootstrap) as admin:
                admin.create_partitions({FLEET: NewPartitions(6)})
            fill(cluster.bootstrap, range(60), 6)
            until(lambda: len(one.taken) + len(two.taken) >= 60, first, second)

    assert Counter(one.names + two.names) == Counter(metrics(range(60)))


def test_a_group_can_begin_at_the_end_and_says_so_at_once(cluster: ThreadedHost) -> None:
    far_side = FarSide()
    fill(cluster.bootstrap, range(40))
    with forwarding(cluster.bootstrap, far_side, offset_reset=OffsetReset.LATEST) as process:
        process.started.result(HELD_S)
        assert committed(cluster) == dict.fromkeys(range(4), 10)
        fill(cluster.bootstrap, range(40, 80))
        until(lambda: len(far_side.taken) >= 40, process)

    assert Counter(far_side.names) == Counter(metrics(range(40, 80)))


def test_offsets_that_an_operator_moved_meanwhile_are_followed(cluster: ThreadedHost) -> None:
    """Forward, back, before the first record that is left, and after the end."""
    far_side = FarSide()
    fill(cluster.bootstrap, range(40))
    with AdminClient(cluster.bootstrap) as admin:
        admin.delete_records({(FLEET, 2): 4})
    move(cluster, {0: 8, 1: 0, 2: 1, 3: 1_000})
    with forwarding(cluster.bootstrap, far_side) as process:
        until(lambda: len(far_side.taken) >= 2 + 10 + 6 + 10, process)

        assert process.stats().dropped == {"expired": 3}
        until(lambda: committed(cluster) == dict.fromkeys(range(4), 10), process)
    assert Counter(record.origin.partition for record in far_side.taken if record.origin) == {
        0: 2, 1: 10, 2: 6, 3: 10
    }  # fmt: skip


class Labels:
    """Labels clients with their ids; knows how often it was asked."""

    def __init__(self) -> None:
        self.asked = 0

    def labels(self, client_instance_id: bytes, context: RequestContext) -> dict[str, str]:
        self.asked += 1
        return {"team": f"team of {context.client_id}"}


class Labeling:
    def __init__(self, labels: Enricher) -> None:
        self.enricher = labels

    @hookimpl
    def odradek_enricher(self, config: PluginConfig) -> Enricher:
        return self.enricher


def test_a_record_that_no_host_has_labeled_gets_the_labels_of_the_enrichers(cluster: ThreadedHost) -> None:
    records = [record_of(number, instance=1 + number % 2) for number in range(20)]
    for record in records[10:]:
        record.labeled = False
    records[19].payload = type(records[19].payload)(bytes(15) + b"\1", False, b"\xff not OTLP")
    fill(cluster.bootstrap, range(20), records=records)
    far_side, labels = FarSide(), Labels()
    plugins = far_sides(all=far_side)
    plugins.add("labels", Labeling(labels), "labels", "1")
    with ThreadedForward(cluster.bootstrap, plugins) as process:
        until(lambda: len(far_side.taken) == 19, process)
        until(lambda: sum(process.stats().rejected.values()) == 1, process)

    labeled = [
        name_of(each.payload.data) for each in far_side.taken if b"team of client-" in each.payload.data
    ]
    assert sorted(labeled) == sorted(metrics(range(10, 19)))
    assert all(record.labeled for record in far_side.taken)
    assert labels.asked == 1 + 3


def test_forwarders_beside_the_log_of_a_host_label_too(tmp_path: Path) -> None:
    """A relay wrote the records into the telemetry topic of the host."""
    records = [record_of(number, instance=1 + number) for number in range(8)]
    for record in records[4:]:
        record.labeled = False
    far_side, labels = FarSide(), Labels()
    plugins = far_sides(all=far_side)
    plugins.add("labels", Labeling(labels), "labels", "1")
    with running_host(tmp_path / "host", *QUICK, plugins=plugins) as host:
        fill(host.bootstrap, range(8), 1, records, host.host.config.spool.topic_name)
        wait_until(lambda: len(far_side.taken) == 8, lambda: [each.stats() for each in host.host.forwarders])

    labeled = [record.context.client_id for record in far_side.taken if b"team of " in record.payload.data]
    assert labeled == [f"client-{number}" for number in range(5, 9)]
    assert labels.asked == 1 + 4


def test_a_cluster_that_is_away_loses_and_repeats_nothing(tmp_path: Path) -> None:
    far_side = FarSide()
    with cluster_at(tmp_path / "cluster") as host:
        create_topic(host.bootstrap)
        fill(host.bootstrap, range(40))
        process = forwarding(host.bootstrap, far_side)
        bootstrap = host.bootstrap
        process.__enter__()
        until(lambda: committed(host) == dict.fromkeys(range(4), 10), process)
    with contextlib.closing(process):
        until(lambda: process.feeds[0].problem is not None, process)
        with cluster_at(tmp_path / "cluster", f"listeners=PLAINTEXT://{bootstrap}"):
            fill(bootstrap, range(40, 80))
            until(lambda: len(far_side.taken) >= 80, process)
            until(lambda: process.feeds[0].problem is None, process)
            process.stop()

    assert Counter(far_side.names) == Counter(metrics(range(80)))


def test_a_stop_delivers_and_commits_the_batch_in_flight(cluster: ThreadedHost) -> None:
    held, released = threading.Event(), threading.Event()

    async def hold() -> None:
        held.set()
        while not released.is_set():
            await asyncio.sleep(0.01)

    far_side = FarSide(lambda batch: hold())
    fill(cluster.bootstrap, range(400))
    with forwarding(cluster.bootstrap, far_side, "shutdown.timeout.ms=60000") as process:
        assert held.wait(HELD_S)
        process.loop.call_soon_threadsafe(process.stop_event.set)
        wait_until(lambda: process.made.result(0).runners[0].stopping.is_set(), "not stopping")
        released.set()

    assert sum(committed(cluster).values()) == len(far_side.taken) == 40


def test_offsets_are_not_committed_before_the_dead_letters_are_stored(tmp_path: Path) -> None:
    """Without the topic of dead letters, the forwarder waits for it."""
    far_side = FarSide()
    with cluster_at(tmp_path / "cluster") as host:
        create_topic(host.bootstrap, 1)
        records = [record_of(number) for number in range(3)]
        records[1].labeled = False
        records[1].payload = type(records[1].payload)(bytes(15) + b"\1", False, b"\xff not OTLP")
        fill(host.bootstrap, range(3), 1, records)
        with forwarding(host.bootstrap, far_side) as process:
            wait_until(
                lambda: process.feeds[0].problem or process.made.result(0).runners[0].delivery, "no batch"
            )
            assert committed(host) == {0: 0}
            create_topic(host.bootstrap, 1, f"{FLEET}_dead_letter")
            until(lambda: committed(host) == {0: 3}, process)

            assert sum(process.stats().rejected.values()) == 1


def test_no_timed_action_needs_a_file_thread_after_the_threads_have_ended(cluster: ThreadedHost) -> None:
    ended: list[str] = []

    with forwarding(cluster.bootstrap, FarSide()) as process:
        watch_stop(process.made.result(), ended)

    assert ended == ["threads"]


@pytest.mark.ci  # waits for real seconds
def test_a_bug_beside_the_group_is_told_with_its_traceback_and_tried_again(
    cluster: ThreadedHost, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    far_side = FarSide()
    with forwarding(cluster.bootstrap, far_side) as process:
        feed, bugs = process.feeds[0], 2
        membership = feed.shared.membership

        def buggy() -> Membership:
            nonlocal bugs
            if bugs:
                bugs -= 1
                raise KeyError("member")
            return membership()

        monkeypatch.setattr(feed.shared, "membership", buggy)
        fill(cluster.bootstrap, range(8))
        until(lambda: not bugs and set(far_side.names) == set(metrics(range(8))), process)
        wait_until(lambda: feed.problem is None, lambda: feed.problem)

    (told,) = [each for each in caplog.records if each.getMessage() == "group failed, trying again"]
    assert told.exc_info is not None
    assert told.exc_info[0] is KeyError


class StartsLate(FarSide):
    """Its start raises until it may succeed."""

    def __init__(self) -> None:
        super().__init__()
        self.may_start, self.starts = threading.Event(), 0

    async def start(self) -> None:
        self.starts += 1
        if not self.may_start.is_set():
            raise OSError("address in use")


def test_others_have_the_partitions_of_a_forwarder_whose_start_fails(cluster: ThreadedHost) -> None:
    late, well = StartsLate(), FarSide()
    with forwarding(cluster.bootstrap, late) as first, forwarding(cluster.bootstrap, well) as second:
        wait_until(lambda: late.starts > 2, "further starts")
        until(lambda: len(second.owned) == 4, first, second)
        problem = first.made.result(0).not_ready()
        fill(cluster.bootstrap, range(8))
        until(lambda: set(well.names) == set(metrics(range(8))), first, second)
        late.may_start.set()
        until(lambda: len(first.owned) == len(second.owned) == 2, first, second)
        wait_until(lambda: first.made.result(0).not_ready() is None, "the first is ready")

    assert problem == "forwarder fake.all: start raised OSError: address in use"
