"""A forwarder is moved, or its topic is deleted, while it has a batch in flight."""

from __future__ import annotations

from pathlib import Path

from odradek.cli.main import run
from odradek.client.admin import AdminClient
from odradek.client.group_offsets import CommittedOffset
from support.hosts import ThreadedHost
from support.spooling import PATIENCE_S, FarSide, down, hosting, names, push_all, settled_stats, until
from support.waiting import wait_until

TOPIC = "__client_telemetry"
GROUP = "odradek.forwarder.fake.far"


def tried_again(far: FarSide) -> None:
    """The batch in flight was refused a few more times."""
    calls = far.calls
    wait_until(lambda: far.calls > calls + 3, lambda: far.calls)


def delete_topic(host: ThreadedHost) -> None:
    with AdminClient(host.bootstrap, "test", PATIENCE_S) as admin:
        admin.delete_topics([TOPIC])


def test_records_delivered_before_the_topic_was_deleted_are_not_counted_as_deleted(tmp_path: Path) -> None:
    far = FarSide()

    with hosting(tmp_path, far=far) as host:
        push_all(host, range(3))
        until(host, lambda: len(far.taken) == 3)
        delete_topic(host)
        push_all(host, range(3, 5))
        wait_until(lambda: len(far.taken) == 5, lambda: far.taken)
        stats, spool = settled_stats(host), host.host.spool
        written = spool.written if spool is not None else 0

    assert (stats.offered, stats.delivered, stats.dropped) == (5, 5, {})
    assert written == 5


def test_a_batch_of_a_deleted_topic_does_not_move_the_forwarder_in_the_new_one(tmp_path: Path) -> None:
    far = FarSide()
    with hosting(tmp_path, far=far) as host:
        push_all(host, range(3))
        until(host, lambda: len(far.taken) == 3)
        far.behavior = down
        push_all(host, range(3, 6))
        tried_again(far)
        delete_topic(host)
        codes = push_all(host, range(6, 9))
        tried_again(far)

    after = FarSide()
    with hosting(tmp_path, far=after) as host:
        until(host, lambda: after.names == names(range(6, 9)))

    assert codes == [0] * 3


def test_a_new_topic_has_the_offsets_of_forwarders_from_the_start(tmp_path: Path) -> None:
    far = FarSide(behavior=down)

    with hosting(tmp_path, far=far) as host:
        push_all(host, range(1))
        tried_again(far)
        delete_topic(host)
        with AdminClient(host.bootstrap, "test", PATIENCE_S) as admin:
            found = admin.offset_fetch(GROUP)

    assert found[TOPIC, 0].offset == 0


def test_a_replay_is_not_forgotten_while_the_destination_is_down(tmp_path: Path) -> None:
    far = FarSide()
    with hosting(tmp_path, far=far) as host:
        push_all(host, range(5))
        until(host, lambda: len(far.taken) == 5)
        far.behavior = down
        push_all(host, range(5, 6))
        tried_again(far)
        status = run(
            ["replay", "--plugin", "fake.far", "--since", "1h", "--bootstrap-server", host.bootstrap]
        )
        tried_again(far)

    after = FarSide()
    with hosting(tmp_path, far=after) as host:
        until(host, lambda: len(after.taken) == 6)

    assert status == 0
    assert after.names == names(range(6))


def test_an_offset_after_the_end_skips_no_later_record(tmp_path: Path) -> None:
    far = FarSide()

    with hosting(tmp_path, far=far) as host:
        push_all(host, range(2))
        until(host, lambda: len(far.taken) == 2)
        with AdminClient(host.bootstrap, "test", PATIENCE_S) as admin:
            admin.offset_commit(GROUP, {(TOPIC, 0): CommittedOffset(1_000)})
        push_all(host, range(2, 4))
        until(host, lambda: len(far.taken) == 4)
        stats = settled_stats(host)

    assert far.names == names(range(4))
    assert stats.dropped == {}
