"""The entrance for records that no client pushed: metrics that the host derives, or receives in other ways.

They take the way of a push from the labels on: the same enrichers, the same log, the same receivers. Each
source has an account of its own, with the law of pushes: a record that was received is appended, rejected or
waiting.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from odradek.deferred import Deferred
from odradek.plugin.context import RequestContext
from odradek.plugin.payload import ClientTelemetryPayload
from odradek.telemetry.accepted_push import AcceptedPush
from odradek.telemetry.client_metrics_instance import ClientMetricsInstance, new_instance
from odradek.telemetry.client_metrics_manager import ClientMetricsManager
from odradek.telemetry.client_metrics_stats import InstanceStats
from odradek.telemetry.instance_match import metadata_of
from odradek.telemetry.payload import label
from odradek.telemetry.push_accounts import PushAccounts
from odradek.wire.compression import Codec
from odradek.wire.error_code import ErrorCode
from odradek.wire.errors import WireError

Keep = Callable[[AcceptedPush], bool | Deferred[bool]]
"""Store a record; the outcome, now or later, is whether it is stored."""

UNCOMPRESSED: Final = int(Codec.NONE)


@dataclass(slots=True, eq=False)
class RecordSource:
    """One source of records.

    A client of the source is matched with the subscriptions as a client that pushes, but is not among the
    instances of those.
    """

    name: str
    """Label of the metrics about the source."""
    manager: ClientMetricsManager
    keep: Keep
    accounts: PushAccounts = field(default_factory=PushAccounts)

    @property
    def subscription_version(self) -> int:
        """Incremented when the subscriptions change: the instances made before are outdated."""
        return self.manager.subscriptions.version

    def instance(self, client_instance_id: bytes, context: RequestContext) -> ClientMetricsInstance:
        """A client under the current subscriptions: its plan has the metrics and the interval."""
        metadata = metadata_of(client_instance_id, context)
        plan = self.manager.subscriptions.plan(metadata)
        instance = new_instance(metadata, plan, self.subscription_version, InstanceStats(client_instance_id))
        instance.observed = True
        return instance

    def offer(
        self, instance: ClientMetricsInstance, context: RequestContext, data: bytes, *, terminating: bool
    ) -> None:
        """Label and store a payload, then give it to the receivers. A payload that cannot be stored is lost
        and counted.

        Args:
            instance: The client, as `instance` made it.
            context: The request that the record appears to come from.
            data: A serialized ``MetricsData``.
            terminating: This is the client's last record.
        """
        self.accounts.received += 1
        try:
            labeled = label(data, self.manager.labels(instance, context), self.manager.limits)
        except WireError:
            self.accounts.reject(ErrorCode.INVALID_RECORD)
            return
        payload = ClientTelemetryPayload(instance.client_instance_id, terminating, labeled)
        push = AcceptedPush(instance, context, payload, UNCOMPRESSED, False, 0)
        self.accounts.waiting += 1
        kept = self.keep(push)
        if isinstance(kept, Deferred):
            kept.then(partial(self.settle, push))
        else:
            self.settle(push, kept)

    def settle(self, push: AcceptedPush, kept: bool) -> None:
        """Give a stored record to the receivers."""
        self.accounts.waiting -= 1
        if not kept:
            self.accounts.reject(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
            return
        self.accounts.appended += 1
        self.manager.plugin.export(push.context, push.payload, push.instance.push_interval_ms, False)
