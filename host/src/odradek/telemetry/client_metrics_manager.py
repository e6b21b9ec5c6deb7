"""The broker's side of KIP-714; after org.apache.kafka.server.ClientMetricsManager (trunk).

One event loop calls everything here, so there are no locks: two requests that race in Kafka come one after
the other. An answer never carries a throttle time: only the request quota sets it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Final

from odradek.metrics.metric import MetricRow
from odradek.otlp.labeled_payload import MAX_FIELDS
from odradek.otlp.protobuf_fields import TooMuchWork
from odradek.plugin.context import RequestContext
from odradek.plugin.payload import ClientTelemetryPayload
from odradek.telemetry.accepted_push import AcceptedPush
from odradek.telemetry.client_instance_ids import RESERVED_UUIDS, new_client_instance_id
from odradek.telemetry.client_instances import ClientInstances
from odradek.telemetry.client_labels import Labels
from odradek.telemetry.client_metrics_instance import ClientMetricsInstance
from odradek.telemetry.client_metrics_stats import ClientMetricsStats
from odradek.telemetry.enrichers import Enrichers
from odradek.telemetry.goodbyes import Goodbyes, nobody_reads
from odradek.telemetry.kept_pushes import LOSING_ERRORS, KeptPushes, Loss, blame
from odradek.telemetry.labeled_record import payload_limits
from odradek.telemetry.payload import PayloadOffload, PayloadWork, label
from odradek.telemetry.push_accounts import PushAccounts
from odradek.telemetry.receiver_plugin import ClientMetricsReceiverPlugin
from odradek.telemetry.subscriptions import Subscriptions
from odradek.telemetry.telemetry_config import ErrorPolicy, TelemetryConfig
from odradek.waiting.clock import Clock, Timer
from odradek.waiting.deferred import Deferred, after, offload_inline
from odradek.wire.compression import Codec, TooLarge, decompress
from odradek.wire.error_code import ErrorCode
from odradek.wire.errors import WireError
from odradek.wire.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from odradek.wire.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse
from odradek.wire.types import NIL_UUID

ACCEPTED_COMPRESSION_TYPES: Final = (Codec.ZSTD, Codec.LZ4, Codec.GZIP, Codec.SNAPPY)
"""Best first. Uncompressed pushes are accepted too, but not offered."""
REPEATABLE_ERRORS: Final = frozenset(
    {ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE}
)
"""After one of these errors a client may send Get again at once."""
ZSTD_BLOCK_BYTES: Final = 131_072
"""Room for one block: with less, a frame that does not declare its size is decompressed twice."""
NONE: Final = ErrorCode.NONE
STORED: Final = int(Codec.NONE)
# Looked up once: an attribute of an enumeration costs more than the comparison it is for.
INLINE_FIELDS: Final = 2_000
"""Protobuf fields to look at one by one on the event loop: about two milliseconds."""


Acceptance = AcceptedPush | PushTelemetryResponse
"""A push that passed the gate, or the response that refuses it."""


class ClientMetricsManager:
    """Answers GetTelemetrySubscriptions and PushTelemetry."""

    def __init__(
        self,
        config: TelemetryConfig,
        clock: Clock,
        timer: Timer,
        random_uuid: Callable[[], bytes],
        plugin: ClientMetricsReceiverPlugin,
        enrichers: Enrichers,
        offload: PayloadOffload = offload_inline,
        goodbyes: Goodbyes | None = None,
    ) -> None:
        self.config = config
        self.clock = clock
        self.random_uuid = random_uuid
        self.plugin = plugin
        self.enrichers = enrichers
        self.offload = offload
        self.goodbyes = goodbyes or Goodbyes(nobody_reads, dict, clock, timer)
        self.accounts = PushAccounts()
        self.kept = KeptPushes(config)
        self.monotonic_ms = clock.monotonic_ms
        self.monotonic_ns = clock.monotonic_ns
        self.subscriptions = Subscriptions(config, clock)
        self.stats = ClientMetricsStats(config.metric_config)
        self.client_instances = ClientInstances(config, clock, timer, self.subscriptions, self.stats)
        self.narrowed = self.client_instances.narrowed
        self.kafka_policy = config.error_policy is ErrorPolicy.KAFKA
        self.inline_bytes = min(config.inline_bytes, config.opened_max_bytes)
        self.probe_bytes = min(max(config.inline_bytes, ZSTD_BLOCK_BYTES), config.opened_max_bytes)
        self.limits = payload_limits(config, config.opened_max_bytes, MAX_FIELDS)
        self.inline_limits = payload_limits(config, self.inline_bytes, INLINE_FIELDS)

    def update_subscription(self, name: str, properties: Mapping[str, str]) -> None:
        """Set the complete properties of a CLIENT_METRICS resource; no properties delete the subscription.

        The properties were validated when they were stored: `client_metrics_configs.validate` is stricter
        with new ones.

        Raises:
            ApiError: INVALID_REQUEST or INVALID_CONFIG; nothing changed.
        """
        self.subscriptions.update(name, properties)

    def instances(self) -> list[ClientMetricsInstance]:
        """The client instances in the cache, least recently used first."""
        return list(self.client_instances.cached.values())

    def metric_rows(self) -> Iterator[MetricRow]:
        """The current broker metrics."""
        yield from self.stats.rows(len(self.client_instances.cached), self.monotonic_ms())
        yield from self.narrowed.rows()

    def connection_closed(self, connection_id: str, in_order: bool = False) -> None:
        """Forget the client instance that was created on the connection; harmless for other connections.

        Args:
            connection_id: The connection.
            in_order: See `Goodbyes.closed`.
        """
        self.client_instances.connection_closed(connection_id)
        self.goodbyes.closed(connection_id, in_order=in_order)

    def close(self) -> None:
        """Forget all instances, timers and metrics."""
        self.goodbyes.close()
        self.client_instances.close()
        self.stats.close()

    # GetTelemetrySubscriptions

    def get_telemetry_subscriptions(
        self, request: GetTelemetrySubscriptionsRequest, context: RequestContext
    ) -> GetTelemetrySubscriptionsResponse:
        """Tell a client its instance id, its metrics and its push interval.

        The answer always has the client instance id, even if the request had it: clients rely on it.
        """
        now_ms = self.monotonic_ms()
        client_instance_id = request.client_instance_id
        if not client_instance_id or client_instance_id == NIL_UUID:
            client_instance_id = new_client_instance_id(self.random_uuid, self.client_instances.cached)
        instance = self.client_instances.instance(client_instance_id, context, now_ms)
        self.goodbyes.asked(instance, context, pushes=False)
        if not instance.maybe_update_get(now_ms) and instance.last_known_error not in REPEATABLE_ERRORS:
            instance.stats.record_throttle(now_ms)
            return GetTelemetrySubscriptionsResponse(error_code=ErrorCode.THROTTLING_QUOTA_EXCEEDED)
        instance.last_known_error = NONE
        return GetTelemetrySubscriptionsResponse(
            client_instance_id=client_instance_id,
            subscription_id=instance.subscription_id,
            accepted_compression_types=list(ACCEPTED_COMPRESSION_TYPES),
            push_interval_ms=instance.push_interval_ms,
            telemetry_max_bytes=self.config.telemetry_max_bytes,
            delta_temporality=self.config.delta_temporality,
            requested_metrics=list(instance.plan.metrics),
        )

    # PushTelemetry

    def accept(
        self, request: PushTelemetryRequest, context: RequestContext
    ) -> Acceptance | Deferred[Acceptance]:
        """Check a push and open its payload.

        Returns:
            The push, which the caller keeps and then settles; or the refusal; or, if the payload is too large
            to open on the loop, a deferred of either.
        """
        self.accounts.received += 1
        client_instance_id = request.client_instance_id
        if not client_instance_id or client_instance_id in RESERVED_UUIDS:
            return self.rejected(ErrorCode.INVALID_REQUEST)
        now_ms = self.monotonic_ms()
        instance = self.client_instances.instance(client_instance_id, context, now_ms)
        self.goodbyes.asked(instance, context, pushes=True)
        refusal = self.refusal(instance, request, now_ms)
        # Also after a refusal, as in Kafka (KAFKA-20898 asks for the opposite).
        instance.terminating = request.terminating
        if refusal is not NONE:
            instance.last_known_error = refusal
            if refusal is ErrorCode.TELEMETRY_TOO_LARGE:
                self.narrowed.too_large(instance, len(request.metrics or b""), now_ms)
            return self.refused(instance, request, context, refusal)
        if self.kept.clients and self.kept.accepted(request):
            self.accounts.repeated += 1
            instance.last_known_error = NONE
            return PushTelemetryResponse()
        if not request.metrics:
            payload = ClientTelemetryPayload(client_instance_id, request.terminating, b"")
            self.accounts.waiting += 1
            codec, subscription_id = request.compression_type, request.subscription_id
            return AcceptedPush(instance, context, payload, codec, subscription_id, True, 0)
        return self.open(instance, request, context, NONE)

    def refused(
        self,
        instance: ClientMetricsInstance,
        request: PushTelemetryRequest,
        context: RequestContext,
        code: ErrorCode,
    ) -> Acceptance | Deferred[Acceptance]:
        """A refused push: the answer, or the push with its opened payload if it is to be stored."""
        if code not in LOSING_ERRORS or self.kept.is_repeated(request):
            return self.rejected(code)
        if self.subscriptions.suspended:
            loss: Loss | None = Loss.SILENCED
        else:
            loss = self.kept.loss(request, code, instance.push_interval_ms, self.monotonic_ms())
        if not request.metrics:
            return self.rejected(code)
        if loss is None:
            return self.open(instance, request, context, code)
        return self.lost(code, loss)

    def not_stored(
        self, instance: ClientMetricsInstance, code: ErrorCode, loss: Loss
    ) -> PushTelemetryResponse:
        """The answer to a refused push that should have been stored. The client may send it again."""
        self.kept.not_stored(instance.client_instance_id)
        return self.lost(code, loss)

    def lost(self, code: ErrorCode, loss: Loss) -> PushTelemetryResponse:
        """The answer to a push whose increments are lost."""
        self.kept.lose(code, loss)
        return self.rejected(code)

    def rejected(self, code: ErrorCode) -> PushTelemetryResponse:
        """The answer to a push that is not accepted."""
        self.accounts.reject(code)
        return PushTelemetryResponse(error_code=code)

    def refusal(
        self, instance: ClientMetricsInstance, request: PushTelemetryRequest, now_ms: int
    ) -> ErrorCode:
        """The reason to refuse a push before its payload is opened; NONE if there is none.

        A push refused for any reason but throttling still consumes its interval.
        """
        if instance.terminating:
            return ErrorCode.INVALID_REQUEST
        if not instance.maybe_update_push(now_ms) and not request.terminating:
            instance.stats.record_throttle(now_ms)
            return ErrorCode.THROTTLING_QUOTA_EXCEEDED
        if request.subscription_id != instance.subscription_id and not self.narrowed.adopts(
            instance, request.subscription_id
        ):
            self.stats.record_unknown_subscription(now_ms)
            return ErrorCode.UNKNOWN_SUBSCRIPTION_ID
        if not 0 <= request.compression_type <= 4:
            return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        if request.metrics and len(request.metrics) > self.config.telemetry_max_bytes:
            return ErrorCode.TELEMETRY_TOO_LARGE
        return NONE

    def open(
        self,
        instance: ClientMetricsInstance,
        request: PushTelemetryRequest,
        context: RequestContext,
        refused: ErrorCode,
    ) -> Acceptance | Deferred[Acceptance]:
        """Open the payload once labels are known. ``refused``: the answer to a push that is kept anyway."""
        self.accounts.waiting += 1
        labels = self.enrichers.of_client(instance, context)
        return after(labels, partial(self.open_labeled, instance, request, context, refused))

    def open_labeled(
        self,
        instance: ClientMetricsInstance,
        request: PushTelemetryRequest,
        context: RequestContext,
        refused: ErrorCode,
        labels: Labels,
    ) -> Acceptance | Deferred[Acceptance]:
        """Open the payload and set the labels, here if it is small."""
        started_ns = self.monotonic_ns()
        outcome: bytes | WireError | None
        try:
            raw = self.small(request)
            outcome = None if raw is None else label(raw, labels, self.inline_limits)
        except TooMuchWork:
            outcome = None
        except WireError as error:
            outcome = error.kept()
        if outcome is not None:
            return self.opened(instance, request, context, refused, started_ns, outcome)
        data = request.metrics or b""
        work = PayloadWork(codec=request.compression_type, data=data, labels=labels, limits=self.limits)
        opened = partial(self.opened, instance, request, context, refused, started_ns)
        # The push waits for the worker, and goes on with `opened`.
        deferred = Deferred[Acceptance]()
        self.offload(work, lambda outcome: deferred.complete_by(partial(opened, outcome)))
        return deferred

    def small(self, request: PushTelemetryRequest) -> bytes | None:
        """The decompressed payload; None if it is too large for the event loop."""
        raw = request.metrics or b""
        if len(raw) > self.inline_bytes:
            return None
        if request.compression_type != STORED:
            try:
                raw = decompress(request.compression_type, raw, self.probe_bytes)
            except TooLarge:
                if self.probe_bytes < self.config.opened_max_bytes:
                    return None
                raise
        return raw if len(raw) <= self.inline_bytes else None

    def opened(
        self,
        instance: ClientMetricsInstance,
        request: PushTelemetryRequest,
        context: RequestContext,
        refused: ErrorCode,
        started_ns: int,
        outcome: bytes | BaseException,
    ) -> Acceptance:
        """The push with its opened payload, or the answer to one whose payload could not be opened.

        The instance may have been forgotten while a worker opened the payload; then this is its last push.
        """
        if not isinstance(outcome, bytes):
            self.accounts.waiting -= 1
            loss = Loss.UNSOUND if isinstance(outcome, WireError) else Loss.NOT_STORED
            if refused is not NONE:
                instance_id, size_bytes = request.client_instance_id, len(request.metrics or b"")
                self.kept.charge(instance_id, size_bytes, self.monotonic_ms())
                return self.not_stored(instance, refused, loss)
            instance.last_known_error = blame(outcome, self.kafka_policy)
            instance.stats.record_error(self.monotonic_ms())
            if instance.last_known_error is ErrorCode.TELEMETRY_TOO_LARGE:
                self.narrowed.too_large(instance, len(request.metrics or b""), self.monotonic_ms())
            if instance.last_known_error in LOSING_ERRORS:
                self.kept.lose(instance.last_known_error, loss)
            return self.rejected(instance.last_known_error)
        instance.keep_resource(outcome)
        payload = ClientTelemetryPayload(request.client_instance_id, request.terminating, outcome)
        if refused is not NONE:
            self.kept.charge(request.client_instance_id, len(outcome), self.monotonic_ms())
            payload.refused = int(refused)
        codec, subscription_id = request.compression_type, request.subscription_id
        opened_ns = self.monotonic_ns() - started_ns
        return AcceptedPush(instance, context, payload, codec, subscription_id, False, opened_ns)

    def settle(self, push: AcceptedPush, kept: bool) -> PushTelemetryResponse:
        """Pass a stored push to the plugins.

        Returns:
            The response. If the push could not be stored, it throttles the client, which tries again later.
        """
        self.accounts.waiting -= 1
        instance = push.instance
        instance.has_left = kept and push.payload.terminating
        if push.payload.refused:
            return self.settle_refused(push, ErrorCode(push.payload.refused), kept)
        if not kept:
            instance.last_known_error = ErrorCode.THROTTLING_QUOTA_EXCEEDED
            if not push.is_empty:
                self.kept.lose(ErrorCode.THROTTLING_QUOTA_EXCEEDED, Loss.NOT_STORED)
            return self.rejected(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
        if push.is_empty:
            self.accounts.empty += 1
            instance.last_known_error = NONE
            return PushTelemetryResponse()
        self.accounts.appended += 1
        instance.last_known_error = error_code = self.export(push)
        # Nearly always the default, which is faster not given.
        return PushTelemetryResponse() if error_code is NONE else PushTelemetryResponse(error_code=error_code)

    def settle_refused(self, push: AcceptedPush, code: ErrorCode, kept: bool) -> PushTelemetryResponse:
        """As `settle`, of a refused push; its answer is known."""
        if not kept:
            return self.not_stored(push.instance, code, Loss.NOT_STORED)
        self.accounts.keep(code)
        # Not counted in Kafka's metrics of exports.
        self.plugin.export(push.context, push.payload, push.instance.push_interval_ms, self.kafka_policy)
        return PushTelemetryResponse(error_code=code)

    def export(self, push: AcceptedPush) -> ErrorCode:
        """Give a push to the plugins."""
        instance = push.instance
        taken = self.plugin.export(push.context, push.payload, instance.push_interval_ms, self.kafka_policy)
        if taken:
            elapsed_ms = (self.plugin.took_ns + push.opened_ns) / 1_000_000
            instance.stats.record_export(elapsed_ms, self.monotonic_ms())
            return NONE
        instance.stats.record_error(self.monotonic_ms())
        return ErrorCode.INVALID_RECORD if self.kafka_policy else NONE
