"""Answers to PushTelemetry, under both error policies where they agree."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any, cast

import pytest

from conformance.telemetry_broker import (
    DATA,
    DEFAULT_PROPERTIES,
    Broken,
    TelemetryBroker,
    counted,
    metrics_with,
    otlp,
)
from odradek.telemetry.telemetry_config import ErrorPolicy
from odradek.wire.compression import Codec, compress
from odradek.wire.error_code import ErrorCode
from odradek.wire.types import NIL_UUID

NONE = ErrorCode.NONE
THROTTLED = ErrorCode.THROTTLING_QUOTA_EXCEEDED
INVALID_REQUEST = ErrorCode.INVALID_REQUEST
INVALID_RECORD = ErrorCode.INVALID_RECORD
UNKNOWN_SUBSCRIPTION_ID = ErrorCode.UNKNOWN_SUBSCRIPTION_ID
TOO_LARGE = ErrorCode.TELEMETRY_TOO_LARGE


@pytest.fixture(params=list(ErrorPolicy))
def broker(request: pytest.FixtureRequest) -> TelemetryBroker:
    return TelemetryBroker(request.param)


def test_push_reaches_the_receiver(broker: TelemetryBroker) -> None:
    broker.update("sub-1", DEFAULT_PROPERTIES)
    told = broker.get()

    code = broker.push(told)

    instance = broker.known(told)
    assert (code, instance.terminating, instance.last_known_error) == (NONE, False, NONE)
    assert broker.metric_count() == metrics_with(1)
    assert broker.counts(told) == counted(export=1)
    assert broker.metric("plugin-export-rate", told) > 0
    assert not broker.never_timed(told)
    assert [payload.data for payload in broker.receiver.payloads] == [DATA]


def test_kafka_policy_passes_on_bytes_that_are_not_otlp() -> None:
    broker = TelemetryBroker(ErrorPolicy.KAFKA)
    told = broker.get()

    code = broker.push(told, b"test-data")

    assert (code, [payload.data for payload in broker.receiver.payloads]) == (NONE, [b"test-data"])


def test_client_safe_policy_refuses_bytes_that_are_not_otlp() -> None:
    broker = TelemetryBroker(ErrorPolicy.CLIENT_SAFE)
    told = broker.get()

    code = broker.push(told, b"test-data")

    assert (code, broker.receiver.payloads) == (INVALID_RECORD, [])
    assert broker.counts(told) == counted(error=1)


def test_push_to_a_broker_without_state_is_accepted(broker: TelemetryBroker) -> None:
    told = TelemetryBroker().get()

    code = broker.push(told)

    assert (code, broker.metric_count(), broker.metric("instance-count")) == (NONE, metrics_with(1), 1)
    assert broker.counts(told) == counted(export=1)


def test_push_after_the_interval_is_accepted(broker: TelemetryBroker) -> None:
    broker.update("sub-1", DEFAULT_PROPERTIES)
    told = broker.get()
    first = broker.push(told)
    broker.clock.time_ms += 30_000

    second = broker.push(told)

    assert (first, second) == (NONE, NONE)


@pytest.mark.parametrize("absent", [None, b""])
def test_push_without_a_client_instance_id_is_refused(broker: TelemetryBroker, absent: bytes | None) -> None:
    told = replace(broker.get(), client_instance_id=cast(Any, absent))

    code = broker.push(told)

    assert (code, broker.metric("instance-count")) == (INVALID_REQUEST, 1)


def test_nil_client_instance_id_is_refused(broker: TelemetryBroker) -> None:
    told = replace(broker.get(), client_instance_id=NIL_UUID)

    code = broker.push(told)

    assert (code, broker.metric("instance-count")) == (INVALID_REQUEST, 1)


def test_reserved_client_instance_id_is_refused(broker: TelemetryBroker) -> None:
    told = replace(broker.get(), client_instance_id=bytes(15) + b"\x01")

    code = broker.push(told)

    assert (code, broker.metric("instance-count")) == (INVALID_REQUEST, 1)


def test_immediate_second_push_is_throttled(broker: TelemetryBroker) -> None:
    told = broker.get()

    codes = [broker.push(told) for _ in range(2)]

    instance = broker.known(told)
    assert codes == [NONE, THROTTLED]
    assert (instance.last_known_error, instance.terminating) == (THROTTLED, False)
    assert broker.counts(told) == counted(export=1, throttle=1)


def test_terminating_push_may_be_early(broker: TelemetryBroker) -> None:
    told = broker.get()

    codes = [broker.push(told), broker.push(told, terminating=True)]

    assert (codes, broker.known(told).terminating) == ([NONE, NONE], True)
    assert broker.counts(told) == counted(export=2)
    assert [payload.terminating for payload in broker.receiver.payloads] == [False, True]


def test_no_push_is_accepted_after_terminating(broker: TelemetryBroker) -> None:
    told = broker.get()

    codes = [broker.push(told, b"", terminating=True), broker.push(told, terminating=True)]

    instance = broker.known(told)
    assert codes == [NONE, INVALID_REQUEST]
    assert (instance.terminating, instance.last_known_error) == (True, INVALID_REQUEST)


def test_refused_push_that_does_not_terminate_unlocks_the_instance(broker: TelemetryBroker) -> None:
    told = broker.get()

    codes = [broker.push(told, terminating=terminating) for terminating in (True, False, False)]

    assert (codes, broker.known(told).terminating) == ([NONE, INVALID_REQUEST, THROTTLED], False)


def test_wrong_subscription_id_is_refused(broker: TelemetryBroker) -> None:
    told = broker.get()

    code = broker.push(told, subscription_id=1234)

    instance = broker.known(told)
    assert code == UNKNOWN_SUBSCRIPTION_ID
    assert (instance.terminating, instance.last_known_error) == (False, UNKNOWN_SUBSCRIPTION_ID)
    assert broker.counts(told) == counted(unknown=1)
    assert broker.metric("unknown-subscription-request-rate") > 0
    assert broker.never_timed(told)


@pytest.mark.parametrize("codec", [100, 5, -1])
def test_unknown_codec_is_refused(broker: TelemetryBroker, codec: int) -> None:
    told = broker.get()

    code = broker.push(told, codec=codec)

    assert code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert broker.known(told).last_known_error == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


def test_push_with_null_metrics_is_accepted(broker: TelemetryBroker) -> None:
    told = broker.get()

    code = broker.push(told, cast(Any, None))

    assert (code, broker.receiver.payloads, broker.metric("instance-count")) == (NONE, [], 1)
    assert broker.counts(told) == counted()
    assert broker.never_timed(told)


def test_push_without_metrics_is_accepted(broker: TelemetryBroker) -> None:
    told = broker.get()

    code = broker.push(told, b"")

    assert (code, broker.receiver.payloads, broker.metric("instance-count")) == (NONE, [], 1)
    assert broker.counts(told) == counted()
    assert broker.never_timed(told)


@pytest.mark.parametrize("policy", list(ErrorPolicy))
def test_push_above_the_size_limit_is_too_large(policy: ErrorPolicy) -> None:
    broker = TelemetryBroker(policy, telemetry_max_bytes=1)
    told = broker.get()

    code = broker.push(told, b"ab")

    instance = broker.known(told)
    assert code == TOO_LARGE
    assert (instance.last_known_error, instance.terminating) == (TOO_LARGE, False)
    assert broker.counts(told) == counted()


@pytest.mark.parametrize("policy", list(ErrorPolicy))
def test_push_at_the_size_limit_is_accepted(policy: ErrorPolicy) -> None:
    broker = TelemetryBroker(policy, telemetry_max_bytes=len(DATA))
    told = broker.get()

    code = broker.push(told)

    assert code == NONE


def test_of_two_pushes_of_an_unknown_instance_one_is_throttled(broker: TelemetryBroker) -> None:
    told = TelemetryBroker().get()

    codes = [broker.push(told) for _ in range(2)]

    assert codes == [NONE, THROTTLED]
    assert broker.counts(told) == counted(export=1, throttle=1)


def test_of_two_pushes_after_an_update_one_is_throttled(broker: TelemetryBroker) -> None:
    told = broker.get()
    broker.update("sub-1", DEFAULT_PROPERTIES)

    codes = [broker.push(told) for _ in range(2)]

    assert codes == [UNKNOWN_SUBSCRIPTION_ID, THROTTLED]
    assert broker.counts(told) == counted(unknown=1, throttle=1)
    assert len(broker.connections) == 2


def test_raising_plugin_fails_the_push_under_kafka_policy() -> None:
    broker = TelemetryBroker(ErrorPolicy.KAFKA)
    broker.plugin.remove(broker.receiver)
    broker.plugin.add_receiver("broken", Broken())
    broker.update("sub-1", DEFAULT_PROPERTIES)
    told = broker.get()

    code = broker.push(told)

    instance = broker.known(told)
    assert code == INVALID_RECORD
    assert (instance.last_known_error, instance.terminating) == (INVALID_RECORD, False)
    assert broker.counts(told) == counted(error=1)
    assert broker.metric("plugin-error-rate", told) > 0
    assert broker.never_timed(told)


def test_raising_plugin_does_not_fail_the_push_under_client_safe_policy() -> None:
    broker = TelemetryBroker(ErrorPolicy.CLIENT_SAFE)
    broker.plugin.add_receiver("broken", Broken())
    told = broker.get()

    code = broker.push(told)

    assert (code, broker.known(told).last_known_error) == (NONE, NONE)
    assert broker.counts(told) == counted(error=1)
    assert broker.never_timed(told)


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_too_large_after_decompression_under_kafka_policy(codec: Codec) -> None:
    broker = TelemetryBroker(ErrorPolicy.KAFKA)
    data = otlp("m" * 200)
    told = broker.get()

    code = broker.push(told, compress(codec, data), codec=codec)

    assert code == TOO_LARGE
    assert broker.known(told).last_known_error == TOO_LARGE
    assert broker.counts(told) == counted(error=1)
    assert broker.receiver.payloads == []


def test_client_safe_policy_has_its_own_decompressed_limit() -> None:
    broker = TelemetryBroker(ErrorPolicy.CLIENT_SAFE, max_decompressed_bytes=250)
    data = otlp("m" * 200)
    told = broker.get()

    code = broker.push(told, compress(Codec.ZSTD, data), codec=Codec.ZSTD)

    assert (code, [payload.data for payload in broker.receiver.payloads]) == (NONE, [data])


def test_too_large_after_decompression_under_client_safe_policy() -> None:
    broker = TelemetryBroker(ErrorPolicy.CLIENT_SAFE, max_decompressed_bytes=200)
    told = broker.get()

    code = broker.push(told, compress(Codec.ZSTD, otlp("m" * 200)), codec=Codec.ZSTD)

    assert code == TOO_LARGE
    assert broker.known(told).last_known_error == TOO_LARGE
    assert broker.counts(told) == counted(error=1)


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_corrupt_compressed_data_is_an_invalid_record(broker: TelemetryBroker, codec: Codec) -> None:
    told = broker.get()

    code = broker.push(told, b"\xff" + random.Random(17).randbytes(40), codec=codec)

    assert (code, broker.receiver.payloads) == (INVALID_RECORD, [])
    assert broker.known(told).last_known_error == INVALID_RECORD
    assert broker.counts(told) == counted(error=1)


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.NONE])
def test_any_supported_codec_is_accepted(broker: TelemetryBroker, codec: Codec) -> None:
    told = broker.get()

    code = broker.push(told, compress(codec, DATA), codec=codec)

    assert (code, [payload.data for payload in broker.receiver.payloads]) == (NONE, [DATA])


def test_terminating_push_that_is_refused_locks_the_instance(broker: TelemetryBroker) -> None:
    told = broker.get()
    broker.update("sub-1", DEFAULT_PROPERTIES)

    refused = broker.push(told, terminating=True)

    current = broker.known(told).subscription_id
    assert [refused, broker.push(told, subscription_id=current)] == [UNKNOWN_SUBSCRIPTION_ID, INVALID_REQUEST]


def test_wrong_subscription_id_consumes_the_interval(broker: TelemetryBroker) -> None:
    told = broker.get()

    codes = [broker.push(told, subscription_id=1234), broker.push(told)]

    assert codes == [UNKNOWN_SUBSCRIPTION_ID, THROTTLED]


def test_early_push_with_a_wrong_subscription_id_is_throttled(broker: TelemetryBroker) -> None:
    told = broker.get()

    codes = [broker.push(told), broker.push(told, subscription_id=1234)]

    assert codes == [NONE, THROTTLED]


def test_an_empty_compressed_payload_does_not_reach_the_plugins(broker: TelemetryBroker) -> None:
    told = broker.get()

    code = broker.push(told, compress(Codec.ZSTD, b""), codec=Codec.ZSTD)

    assert (code, [payload.data for payload in broker.receiver.payloads]) == (NONE, [b""])


def test_large_payload_is_decompressed_elsewhere_and_finished_later() -> None:
    broker = TelemetryBroker(inline_bytes=50)
    data = otlp("m" * 200)
    told = broker.get()

    pending = broker.pending_push(told, compress(Codec.ZSTD, data), Codec.ZSTD)
    before = broker.counts(told)
    answer = broker.finish(pending)

    assert (before, answer.error_code) == (counted(), NONE)
    assert broker.counts(told) == counted(export=1)
    assert [payload.data for payload in broker.receiver.payloads] == [data]


def test_large_payload_consumes_its_interval_before_it_is_decompressed() -> None:
    broker = TelemetryBroker(inline_bytes=10)
    told = broker.get()
    broker.pending_push(told, DATA)

    code = broker.push(told)

    assert code == THROTTLED


def test_large_payload_that_is_not_otlp_is_an_invalid_record() -> None:
    broker = TelemetryBroker(inline_bytes=5)
    told = broker.get()
    pending = broker.pending_push(told, b"test-data")

    answer = broker.finish(pending)

    assert answer.error_code == INVALID_RECORD
    assert broker.known(told).last_known_error == INVALID_RECORD
    assert broker.counts(told) == counted(error=1)


def test_large_payload_above_every_limit_is_too_large() -> None:
    broker = TelemetryBroker(inline_bytes=50, max_decompressed_bytes=200_000)
    told = broker.get()
    pending = broker.pending_push(told, compress(Codec.ZSTD, otlp("m" * 300_000)), Codec.ZSTD)

    answer = broker.finish(pending)

    assert (answer.error_code, broker.counts(told)) == (TOO_LARGE, counted(error=1))


def test_instance_may_be_gone_when_a_large_payload_is_finished() -> None:
    broker = TelemetryBroker(inline_bytes=10)
    told = broker.get(connection_id="conn-1")
    pending = broker.pending_push(told, DATA)
    broker.manager.connection_closed("conn-1")

    answer = broker.finish(pending)

    assert (answer.error_code, broker.metric_count(), len(broker.receiver.payloads)) == (
        NONE,
        metrics_with(0),
        1,
    )


@pytest.mark.parametrize(
    ("policy", "code"), [(ErrorPolicy.CLIENT_SAFE, THROTTLED), (ErrorPolicy.KAFKA, INVALID_RECORD)]
)
def test_death_of_a_worker_is_answered_by_policy(policy: ErrorPolicy, code: ErrorCode) -> None:
    broker = TelemetryBroker(policy, inline_bytes=10)
    told = broker.get()
    pending = broker.pending_push(told, DATA)

    answer = broker.finish(pending, EOFError("worker died"))

    assert (answer.error_code, broker.counts(told)) == (code, counted(error=1))
