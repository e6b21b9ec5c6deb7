"""Ways to break the product, a line or two each. At least one life must notice each of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

import pytest

from odradek.broker.share.dead_letters import DeadLetters
from odradek.broker.share.shares import Shares
from odradek.delivery.batch_queue import BatchQueue
from odradek.delivery.delivery_ledger import DeliveryLedger
from odradek.delivery.spool_writer import SpoolWriter
from odradek.group.group_offsets import GroupOffsets
from odradek.hosting.log_feed import GROUP_PREFIX, LogFeed
from odradek.log.stored_log import StoredLog
from odradek.net.held_bytes import HeldBytes
from odradek.net.listener import Listener
from odradek.quota.connection_quotas import ConnectionQuotas
from odradek.quota.throttled_channels import ThrottledChannels
from odradek.share.deliveries import Deliveries
from odradek.transaction.transaction_coordinator import TransactionCoordinator
from odradek.waiting.clock import TimerTask

Breakage = Callable[[pytest.MonkeyPatch], None]


def held_bytes_are_never_released(patch: pytest.MonkeyPatch) -> None:
    """A connection that holds less than before still counts with what it held."""
    hold = HeldBytes.hold
    patch.setattr(
        HeldBytes, "hold", lambda self, each, size: hold(self, each, max(size, self.held.get(each, 0)))
    )


def the_last_push_of_a_batch_is_lost(patch: pytest.MonkeyPatch) -> None:
    """A batch of several pushes is delivered without the last one."""
    take = BatchQueue.take

    def short(self: BatchQueue, now_ms: int, flush: bool = False) -> Any:
        batch = take(self, now_ms, flush)
        return batch[:-1] if len(batch) > 1 else batch

    patch.setattr(BatchQueue, "take", short)


def a_push_is_acknowledged_before_it_is_appended(patch: pytest.MonkeyPatch) -> None:
    """A batch that cannot be written is answered as if it were."""
    settle = SpoolWriter.settle
    patch.setattr(SpoolWriter, "settle", lambda self, batch, _error: settle(self, batch, None))


def a_throttled_channel_is_never_read_again(patch: pytest.MonkeyPatch) -> None:
    """The end of a throttle time is told to nobody."""
    throttle = ThrottledChannels.throttle

    def deaf(
        self: ThrottledChannels, throttle_ms: int, now_ms: int, on_start: Any = None, on_end: Any = None
    ) -> Any:
        return throttle(self, throttle_ms, now_ms, on_start, None)

    patch.setattr(ThrottledChannels, "throttle", deaf)


def a_closed_channel_stays_in_a_list(patch: pytest.MonkeyPatch) -> None:
    """A listener remembers who has left."""
    kept: list[Any] = []
    closed = Listener.closed

    def remember(self: Listener, channel: Any, in_order: bool) -> None:
        kept.append(channel)
        closed(self, channel, in_order)

    patch.setattr(Listener, "closed", remember)


def a_delivery_counts_twice(patch: pytest.MonkeyPatch) -> None:
    """The account of what was delivered is more than what was taken."""
    deliver = DeliveryLedger.deliver

    def twice(self: DeliveryLedger, taken: Any) -> None:
        deliver(self, taken)
        self.delivered += len(taken)

    patch.setattr(DeliveryLedger, "deliver", twice)


def transactions_never_time_out(patch: pytest.MonkeyPatch) -> None:
    """A producer that left keeps its transaction open."""
    patch.setattr(TransactionCoordinator, "abort_timed_out", lambda _self: None)


def a_committed_offset_goes_back(patch: pytest.MonkeyPatch) -> None:
    """Each commit after the first one stores less than it was given."""
    commit = GroupOffsets.commit

    def less(self: GroupOffsets, group_id: str, offsets: Mapping[Any, Any]) -> None:
        known = {} if group_id.startswith(GROUP_PREFIX) else self.committed.get(group_id, {})
        back = {
            key: replace(value, offset=known[key].offset - 1)
            for key, value in offsets.items()
            if key in known
        }
        commit(self, group_id, {**offsets, **back})

    patch.setattr(GroupOffsets, "commit", less)


def a_forwarder_commits_nothing(patch: pytest.MonkeyPatch) -> None:
    """After a restart everything is delivered again."""
    patch.setattr(LogFeed, "commit", lambda *_arguments: None)


def aborted_transactions_are_not_told(patch: pytest.MonkeyPatch) -> None:
    """Consumers see the records of aborted transactions."""
    patch.setattr(StoredLog, "aborted_transactions", lambda *_arguments: [])


def a_place_is_never_given_back(patch: pytest.MonkeyPatch) -> None:
    """Connections that are gone count for ``max.connections``."""
    patch.setattr(ConnectionQuotas, "dec", lambda *_arguments: None)


def a_cancelled_timer_runs(patch: pytest.MonkeyPatch) -> None:
    """What nobody waits for any more happens all the same."""
    patch.setattr(TimerTask, "cancel", lambda _self: None)


def share_sessions_outlive_their_connections(patch: pytest.MonkeyPatch) -> None:
    """Who has vanished keeps a session, and records until their locks end."""
    patch.setattr(Shares, "connection_closed", lambda *_arguments: None)


def an_accepted_record_comes_again(patch: pytest.MonkeyPatch) -> None:
    """The word of a member is answered and not stored."""
    settle = Deliveries.settle

    def forgetful(self: Deliveries, deliveries: Any) -> None:
        settle(self, deliveries)
        for each in deliveries:
            if each.key[1]:
                self.store.put_share_partitions([(each.group_id, *each.key, 0, 0, b"")])
                self.drop(each)

    patch.setattr(Deliveries, "settle", forgetful)


def dead_letters_are_not_written(patch: pytest.MonkeyPatch) -> None:
    """What a group gives up is archived, and in no topic."""
    patch.setattr(DeadLetters, "append_batch", lambda _self, _topic, _index, letters: len(letters))


BREAKAGES: Final[Mapping[Breakage, int]] = {
    held_bytes_are_never_released: 13,
    the_last_push_of_a_batch_is_lost: 0,
    a_push_is_acknowledged_before_it_is_appended: 31,
    a_throttled_channel_is_never_read_again: 39,
    a_closed_channel_stays_in_a_list: 0,
    a_delivery_counts_twice: 0,
    transactions_never_time_out: 0,
    a_committed_offset_goes_back: 2,
    a_forwarder_commits_nothing: 2,
    aborted_transactions_are_not_told: 1,
    a_place_is_never_given_back: 0,
    a_cancelled_timer_runs: 0,
    share_sessions_outlive_their_connections: 0,
    an_accepted_record_comes_again: 0,
    dead_letters_are_not_written: 2,
}
"""Each with a seed that has noticed it: it is lived before the others."""
